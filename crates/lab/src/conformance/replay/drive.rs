//! Packets of a trace through a discipline, one at a time.
//!
//! Of a packet that waits in the discipline a slot of a few words is kept; its handle is the number
//! of the slot. So memory grows with the longest queue, never with the trace.

use simnel_core::qdisc::{DropReason, Managed, PacketOwner};
use simnel_core::wire::tcp::AckView;
use simnel_core::{Packet, Time};

use super::error::Failure;
use super::source::Source;
use super::STEP;
use crate::conformance::golden::{Fate, Journal, Link, Losses, ReplayError, VirtualDevice};

/// Whoever wants to know what becomes of the packets.
pub trait Sink {
    /// Its data with each packet that waits.
    type Note: Copy;

    /// `packet`, the present one of `source`, arrives.
    fn arrived(&mut self, time: Time, packet: &Packet, source: &dyn Source) -> Self::Note;

    /// A packet left.
    fn left(&mut self, time: Time, waiting: &Waiting<Self::Note>, fate: Fate);

    /// Called now and then, and at the end: the place to write what has piled up.
    fn step(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A packet in the discipline.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<N> {
    /// Number of the packet in the trace, from 0.
    pub id: u64,
    /// Time of its arrival.
    pub arrived: Time,
    /// Bytes.
    pub len: u32,
    /// The sink's data with it.
    pub note: N,
}

/// Sends all of `source` through the discipline that `make` makes for the time of the first packet.
/// `link` takes packets out until the trace's end, or until nothing is queued. `step` is called now
/// and then, for progress.
pub fn drive<S: Sink>(
    source: &mut dyn Source,
    make: impl FnOnce(Time) -> Result<Box<dyn Managed + Send>, String>,
    link: Link,
    sink: S,
    step: &mut dyn FnMut(),
) -> Result<S, Failure> {
    let mut next = source.advance()?;
    let start = next.unwrap_or(Time::ZERO);
    let mut qdisc = make(start).map_err(Failure::Discipline)?;
    let journal = Flight {
        source,
        sink,
        losses: Losses::new(start),
        slots: Vec::new(),
        free: Vec::new(),
        arriving: u64::MAX,
        stray: None,
    };
    let mut device = VirtualDevice::new(qdisc.as_mut(), link, journal);
    let mut id = 0;
    while let Some(time) = next {
        device.run_until(time)?;
        let packet = device.journal.admit(id, time);
        device.arrive(packet, time);
        id += 1;
        if id % STEP == 0 {
            device.journal.settle()?;
            step();
        }
        next = device.journal.source.advance()?;
    }
    let end = device.journal.source.end().unwrap_or(Time::MAX);
    device.run_until(end)?;
    device.journal.settle()?;
    Ok(device.journal.sink)
}

/// The packets in the discipline.
struct Flight<'a, S: Sink> {
    source: &'a mut dyn Source,
    sink: S,
    losses: Losses,
    slots: Vec<Option<Waiting<S::Note>>>,
    free: Vec<u32>,
    /// The handle of the packet that arrives: only its headers can still be read.
    arriving: u64,
    /// A handle that left without having come.
    stray: Option<u64>,
}

impl<S: Sink> Flight<'_, S> {
    #[inline]
    fn admit(&mut self, id: u64, now: Time) -> Packet {
        let mut packet = self.source.describe();
        let note = self.sink.arrived(now, &packet, self.source);
        let waiting = Some(Waiting { id, arrived: now, len: packet.len, note });
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = waiting;
                slot
            }
            None => {
                self.slots.push(waiting);
                self.slots.len() as u32 - 1
            }
        };
        packet.handle = slot.into();
        self.arriving = packet.handle;
        packet
    }

    /// Lets the sink write, and complains of what went wrong meanwhile.
    fn settle(&mut self) -> Result<(), Failure> {
        self.sink.step()?;
        match self.stray {
            Some(id) => Err(ReplayError::UnknownPacket { time: self.losses.now, id }.into()),
            None => Ok(()),
        }
    }
}

impl<S: Sink> Journal for Flight<'_, S> {
    #[inline]
    fn losses(&mut self) -> &mut Losses {
        &mut self.losses
    }

    #[inline]
    fn left(&mut self, handle: u64, fate: Fate) {
        match self.slots.get_mut(handle as usize).and_then(Option::take) {
            Some(waiting) => {
                self.free.push(handle as u32);
                self.sink.left(self.losses.now, &waiting, fate);
            }
            None => self.stray = Some(handle),
        }
    }
}

impl<S: Sink> PacketOwner for Flight<'_, S> {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        self.lost(packet.handle, reason);
    }

    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        if packet.handle == self.arriving {
            self.source.ack_view()
        } else {
            None
        }
    }
}
