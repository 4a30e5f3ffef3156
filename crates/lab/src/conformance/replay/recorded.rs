//! A recording of Linux's, replayed and summed up like any other trace.

use super::drive::Waiting;
use super::rows::keys;
use super::tally::Tally;
use crate::conformance::golden::{descriptor, Event, Recording};

/// Sums up what `events` did to the packets of `recording`. On an error a flow has no addresses.
pub fn tally_of(recording: &Recording, events: &[Event]) -> Result<Tally, String> {
    let mut tally = Tally::new();
    let mut waiting = Vec::with_capacity(recording.arrivals.len());
    for (id, arrival) in recording.arrivals.iter().enumerate() {
        let protocol = if arrival.tcp.is_some() { 6 } else { 17 };
        let keys = keys(&recording.flows[arrival.flow].tuple, protocol)?;
        let note = tally.arrival(arrival.time, &descriptor(recording, id), || keys);
        waiting.push(Waiting { id: id as u64, arrived: arrival.time, len: arrival.len, note });
    }
    for event in events {
        if let Some(waiting) = waiting.get(event.id as usize) {
            tally.departure(event.time, waiting, event.fate);
        }
    }
    Ok(tally)
}
