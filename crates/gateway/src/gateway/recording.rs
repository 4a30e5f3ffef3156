//! Recordings of a direction: the arrivals of all its lanes, in the order of their times.

use super::Gateway;
use crate::direction::Direction;
use crate::error::Error;
use crate::record::{self, Joined, Recorded};
use crate::sys;

/// A client that records a direction.
pub(super) struct Recording {
    direction: Direction,
    /// Number of its connection.
    client: u64,
    joined: Joined,
}

impl Gateway {
    /// Arrivals of `direction` since `client` last asked; the first time begins the recording.
    ///
    /// # Errors
    /// The direction does not run, or another client that `is_there` records it.
    pub(crate) fn record(
        &mut self,
        direction: Direction,
        client: u64,
        is_there: impl Fn(u64) -> bool,
    ) -> Result<Recorded, Error> {
        let interface = self.settings.interface.clone();
        let count = self.lanes_of(direction).count();
        if count == 0 {
            return Err(Error::NoDirection { interface, direction });
        }
        let by_other = |other: &Recording| {
            other.direction == direction && other.client != client && is_there(other.client)
        };
        if self.recordings.iter().any(by_other) {
            return Err(Error::Recorded { interface, direction });
        }
        let is_own = |own: &Recording| own.direction == direction && own.client == client;
        if !self.recordings.iter().any(is_own) {
            self.recordings.retain(|recording| recording.direction != direction);
            self.recordings.push(Recording { direction, client, joined: Joined::default() });
        }
        // What comes from now on, a lane that is asked later may tell of already.
        let now = sys::now();
        let ask = |lane: &super::Lane| lane.remote.record(Some(record::room(count)));
        let parts: Vec<Recorded> = self
            .lanes_of(direction)
            .map(ask)
            .collect::<Result<_, _>>()
            .map_err(|_| Error::Unresponsive(direction))?;
        let mut all = self.recordings.iter_mut();
        let joined = all.find(|recording| is_own(recording)).map(|own| own.joined.add(parts, now));
        Ok(joined.unwrap_or_default())
    }

    /// Ends recordings of clients that are no longer there.
    pub(crate) fn end_recordings(&mut self, is_there: impl Fn(u64) -> bool) {
        let gone = |recording: &mut Recording| !is_there(recording.client);
        let ended: Vec<Recording> = self.recordings.extract_if(.., gone).collect();
        for Recording { direction, .. } in ended {
            for lane in self.lanes_of(direction) {
                // A thread that does not answer has other troubles.
                let _ = lane.remote.record(None);
            }
        }
    }
}
