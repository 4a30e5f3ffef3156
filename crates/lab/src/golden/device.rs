//! The virtual device of the recordings, over the contract of every discipline.
//!
//! Two kinds. An *infinitely fast* device takes packets until there are none, after each enqueue
//! and whenever the watchdog ([`Qdisc::next_event`]) fires. A *link* takes one packet, is busy for
//! `floor(bytes * 8 * 10^9 / rate)` ns, and then takes the next; an idle link tries once after each
//! enqueue and whenever the watchdog fires.
//!
//! Everything up to and including the time of an arrival happens before it. At equal times a link
//! becomes free before the watchdog fires, and the watchdog fires exactly when it is due.

use simnel_core::{Packet, Qdisc, Time};

use super::format::{Event, Fate, Link, Recording};
use super::owner::{descriptor, Owner, Phase};
use super::Place;

/// How often a watchdog may fire at one and the same time without a packet to show for it.
const FRUITLESS_LIMIT: u32 = 1000;

/// A replay that could not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The discipline asks to be called over and over without time going on.
    #[error("at {}: next_event() stays due, but dequeue gives no packet", .0 .0)]
    Livelock(Time),
    /// The discipline made a packet up, or gave one out twice.
    #[error("at {}: packet {id} left the queue, but is not in it", .time.0)]
    UnknownPacket {
        /// When.
        time: Time,
        /// The handle.
        id: u64,
    },
}

/// Drives `qdisc` through all arrivals and returns what it did, in the recording's order.
pub fn replay(recording: &Recording, qdisc: &mut dyn Qdisc) -> Result<Vec<Event>, ReplayError> {
    let mut device = Device {
        qdisc,
        owner: Owner::new(recording),
        link: recording.link,
        busy_until: None,
        fruitless: 0,
    };
    for (id, arrival) in recording.arrivals.iter().enumerate() {
        device.run_until(arrival.time)?;
        device.owner.now = arrival.time;
        device.owner.phase = Phase::Enqueue;
        let packet = descriptor(recording, id);
        device.qdisc.enqueue(packet, arrival.time, &mut device.owner);
        device.owner.enqueued();
        if device.busy_until.is_none() {
            device.take();
        }
    }
    device.run_until(recording.end)?;
    let events = device.owner.events;
    check_conservation(recording, &events)?;
    Ok(events)
}

struct Device<'a> {
    qdisc: &'a mut dyn Qdisc,
    owner: Owner<'a>,
    link: Link,
    /// When a busy link becomes free.
    busy_until: Option<Time>,
    fruitless: u32,
}

impl Device<'_> {
    /// Lets everything happen that is due up to and including `end`.
    fn run_until(&mut self, end: Time) -> Result<(), ReplayError> {
        loop {
            // While the link is busy the watchdog can change nothing.
            let due = match self.busy_until {
                Some(free) => free,
                None => match self.qdisc.next_event() {
                    Some(due) => due.max(self.owner.now),
                    None => return Ok(()),
                },
            };
            if due > end {
                return Ok(());
            }
            let later = due > self.owner.now;
            self.owner.now = due;
            self.busy_until = None;
            let before = self.owner.events.len();
            self.take();
            if later || self.owner.events.len() > before {
                self.fruitless = 0;
            } else {
                self.fruitless += 1;
                if self.fruitless > FRUITLESS_LIMIT {
                    return Err(ReplayError::Livelock(due));
                }
            }
        }
    }

    /// Takes what the device can take now.
    fn take(&mut self) {
        let now = self.owner.now;
        while let Some(packet) = self.qdisc.dequeue(now, &mut self.owner) {
            self.sent(&packet);
            if let Link::BitsPerSecond(rate) = self.link {
                let bits = u128::from(packet.len) * 8;
                let span = bits * 1_000_000_000 / u128::from(rate);
                self.busy_until = Some(Time(now.0.saturating_add(span as u64)));
                return;
            }
        }
    }

    fn sent(&mut self, packet: &Packet) {
        let fate = Fate::Sent {
            place: self.qdisc.placement().map(|(tin, flow)| Place { tin: tin.into(), flow }),
            adj_len: Some(packet.adj_len),
            marked: packet.flags.has(simnel_core::packet::Flags::MARKED),
        };
        self.owner.note(packet.handle, fate);
    }
}

/// Every packet leaves at most once, and only after it came.
fn check_conservation(recording: &Recording, events: &[Event]) -> Result<(), ReplayError> {
    let mut gone = vec![false; recording.arrivals.len()];
    for event in events {
        let arrived =
            recording.arrivals.get(event.id as usize).is_some_and(|a| a.time <= event.time);
        match gone.get_mut(event.id as usize) {
            Some(gone) if arrived && !*gone => *gone = true,
            _ => return Err(ReplayError::UnknownPacket { time: event.time, id: event.id }),
        }
    }
    Ok(())
}
