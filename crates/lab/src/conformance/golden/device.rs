//! The virtual device of the recordings, over the contract of every discipline.
//!
//! Two kinds. An *infinitely fast* device takes packets until there are none, after each enqueue
//! and whenever the watchdog ([`Qdisc::next_event`]) fires. A *link* takes one packet, is busy for
//! `floor(bytes * 8 * 10^9 / rate)` ns, and then takes the next. An idle link tries once after each
//! enqueue and whenever the watchdog fires.
//!
//! Everything up to and including the time of an arrival happens before it. At equal times a link
//! becomes free before the watchdog fires, and the watchdog fires exactly when it is due.
//!
//! Departures go to a [`Journal`]: a recording's ([`replay`]), or that of a capture that streams
//! by ([`crate::conformance::replay`]).

use simnel_core::packet::Flags;
use simnel_core::qdisc::{Backlog, Device, Managed};
use simnel_core::{Packet, Qdisc, Span, Time};

use super::command::{settings, What};
use super::format::{Event, Fate, Link, Recording};
use super::journal::Journal;
use super::owner::{descriptor, Owner};
use super::statistics::{self, Statistics};
use super::Place;

/// Times that a watchdog may fire at one and the same moment without a packet to show for it.
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
    /// Ours refuses settings that Linux took.
    #[error("at {}: a change is refused: {problem}", .time.0)]
    Refused {
        /// When.
        time: Time,
        /// Why.
        problem: String,
    },
}

/// Decisions of a discipline of ours in a recording's place.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// Fate of the packets, in the recording's order.
    pub events: Vec<Event>,
    /// Counters at the commands to look.
    pub statistics: Vec<Statistics>,
}

/// Drives `qdisc`, which stands on `device`, through all arrivals and commands.
pub fn replay(
    recording: &Recording,
    qdisc: &mut dyn Managed,
    on: &Device,
) -> Result<Replayed, ReplayError> {
    let mut device = VirtualDevice::new(qdisc, recording.link, Owner::new(recording));
    let mut statistics = Vec::new();
    let mut commands = recording.commands.iter().peekable();
    for id in 0..=recording.arrivals.len() {
        while let Some(command) = commands.next_if(|command| command.arrived == id) {
            device.run_until(command.time)?;
            device.journal.losses().now = command.time;
            match &command.what {
                What::Look => device.look(on, &mut statistics),
                What::Reset => device.reset(),
                what => device.change(what, on)?,
            }
        }
        if let Some(arrival) = recording.arrivals.get(id) {
            device.run_until(arrival.time)?;
            device.arrive(descriptor(recording, id), arrival.time);
        }
    }
    device.run_until(recording.end)?;
    let events = device.journal.events;
    check_conservation(recording, &events)?;
    Ok(Replayed { events, statistics })
}

/// A discipline, and what takes packets out of it.
///
/// For each packet [`run_until`](Self::run_until) its time, then [`arrive`](Self::arrive).
pub struct VirtualDevice<'a, J, Q: Qdisc + ?Sized = dyn Qdisc> {
    qdisc: &'a mut Q,
    /// Journal of what becomes of the packets.
    pub journal: J,
    link: Link,
    /// Time at which a busy link becomes free; None if nothing is being sent.
    busy_until: Option<Time>,
    /// For when the watchdog was armed before the settings changed: Linux leaves it so until the
    /// discipline is next asked for a packet.
    armed: Option<Time>,
    fruitless: u32,
}

impl<J: Journal> VirtualDevice<'_, J, dyn Managed> {
    /// Other settings, now.
    fn change(&mut self, what: &What, on: &Device) -> Result<(), ReplayError> {
        let now = self.journal.losses().now;
        self.armed = self.armed.or(self.qdisc.next_event());
        settings(what, self.qdisc, on)
            .and_then(|config| match config {
                Some(config) => self
                    .qdisc
                    .configure(&config, now, &mut self.journal)
                    .map_err(|error| error.to_string()),
                None => Ok(()),
            })
            .map_err(|problem| ReplayError::Refused { time: now, problem })
    }

    /// Notes the counters as they are now.
    fn look(&mut self, on: &Device, all: &mut Vec<Statistics>) {
        let now = self.journal.losses().now;
        // What Linux's timers did meanwhile is caught up with at a call; this one changes nothing.
        self.qdisc.lend(Backlog::default(), now);
        statistics::add(all, self.qdisc, on, now);
    }

    fn reset(&mut self) {
        self.armed = None;
        self.qdisc.reset(&mut self.journal);
    }
}

impl<'a, J: Journal, Q: Qdisc + ?Sized> VirtualDevice<'a, J, Q> {
    /// A device before `qdisc`, idle.
    pub fn new(qdisc: &'a mut Q, link: Link, journal: J) -> Self {
        VirtualDevice { qdisc, journal, link, busy_until: None, armed: None, fruitless: 0 }
    }

    /// Lets everything happen that is due up to and including `end`.
    #[inline]
    pub fn run_until(&mut self, end: Time) -> Result<(), ReplayError> {
        loop {
            // While the link is busy the watchdog can change nothing.
            let due = match self.busy_until {
                Some(free) => free,
                None => match self.armed.or_else(|| self.qdisc.next_event()) {
                    Some(due) => due.max(self.journal.losses().now),
                    None => return Ok(()),
                },
            };
            if due > end {
                return Ok(());
            }
            let later = due > self.journal.losses().now;
            self.journal.losses().now = due;
            self.busy_until = None;
            let before = self.journal.losses().count;
            let sent = self.take();
            if later || sent || self.journal.losses().count > before {
                self.fruitless = 0;
            } else {
                self.fruitless += 1;
                if self.fruitless > FRUITLESS_LIMIT {
                    return Err(ReplayError::Livelock(due));
                }
            }
        }
    }

    /// `packet` arrives at `now`.
    #[inline]
    pub fn arrive(&mut self, packet: Packet, now: Time) {
        let losses = self.journal.losses();
        losses.now = now;
        losses.enqueueing = true;
        self.qdisc.enqueue(&packet, now, &mut self.journal);
        self.journal.losses().enqueueing = false;
        if !self.journal.losses().given_back.is_empty() {
            self.give_back();
        }
        if self.busy_until.is_none() {
            self.take();
        }
    }

    #[cold]
    fn give_back(&mut self) {
        let mut given_back = std::mem::take(&mut self.journal.losses().given_back);
        for handle in given_back.drain(..) {
            self.journal.left(handle, Fate::DroppedAtEnqueue);
        }
        // Its memory serves the next.
        self.journal.losses().given_back = given_back;
    }

    /// Takes what the device can take now; says whether that was anything.
    fn take(&mut self) -> bool {
        let now = self.journal.losses().now;
        self.armed = None;
        let mut any = false;
        while let Some(packet) = self.qdisc.dequeue(now, &mut self.journal) {
            let Packet { handle, len, adj_len, flags, .. } = *packet;
            let fate = Fate::Sent {
                place: self.qdisc.placement().map(|(tin, flow)| Place { tin: tin.into(), flow }),
                adj_len: Some(adj_len),
                marked: flags.has(Flags::MARKED),
            };
            self.journal.left(handle, fate);
            any = true;
            if let Link::BitsPerSecond(rate) = self.link {
                self.busy_until = Some(now + transmission(len, rate));
                break;
            }
        }
        any
    }
}

/// Time that `bytes` take at `rate` bits per second, rounded down to whole nanoseconds.
fn transmission(bytes: u32, rate: u64) -> Span {
    const NANOS: u64 = 8 * 1_000_000_000;
    // All lengths below 2 GB fit; a division of 128 bits is several times as slow.
    Span(match u64::from(bytes).checked_mul(NANOS) {
        Some(scaled) => scaled / rate,
        None => (u128::from(bytes) * u128::from(NANOS) / u128::from(rate)) as u64,
    })
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
