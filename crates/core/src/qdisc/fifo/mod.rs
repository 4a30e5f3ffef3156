//! First in, first out: `pfifo`, `bfifo` and `pfifo_head_drop` (man tc-bfifo, tc-pfifo; facts D.8).
//!
//! One `BookedQueue`. `pfifo` and `bfifo` give up the newcomer when the limit of packets or bytes
//! is reached. `pfifo_head_drop` gives up the oldest, so that what is sent is fresh. Without a
//! `limit` the device's queue length counts, times its MTU for bytes.
//!
//! Invariants: order is never changed; `enqueued = sent + dropped + queued`. There are at most
//! [`MAX_PACKETS`] slots whatever the limit says, because memory is taken at construction. A
//! `bfifo` has a slot for each [`BYTES_PER_SLOT`] bytes of its limit. A flood of smaller frames
//! meets that bound before the limit, and is dropped (and counted) as over the limit.
//!
//! Like Linux's, these queues count a full queue under `dropped` only: `overlimits` is for shapers.

mod words;

use alloc::boxed::Box;

use crate::packet::Packet;
use crate::qdisc::booked::{BookedQueue, Limit};
use crate::qdisc::{
    prepared, spare_of, Backlog, Config, ConfigError, Detail, Device, DropReason, Managed,
    PacketOwner, Qdisc, Snapshot, Totals,
};
use crate::time::Time;

pub use crate::qdisc::booked::{BYTES_PER_SLOT, MAX_PACKETS};

/// Kind and limit of a FIFO.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Unit of the limit, and the end that loses.
    pub kind: Kind,
    /// Limit in packets or bytes; None takes the device's queue length (times its MTU for bytes).
    pub limit: Option<u32>,
}

/// The three FIFOs of `tc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// A limit in packets; the newcomer is dropped.
    #[default]
    Pfifo,
    /// A limit in bytes; the newcomer is dropped.
    Bfifo,
    /// A limit in packets; the oldest is dropped.
    PfifoHeadDrop,
}

impl Params {
    /// The limit in force on `device`, in packets or bytes.
    pub fn effective_limit(&self, device: &Device) -> u32 {
        self.limit.unwrap_or(match self.kind {
            Kind::Bfifo => device.tx_queue_len.saturating_mul(device.mtu),
            Kind::Pfifo | Kind::PfifoHeadDrop => device.tx_queue_len,
        })
    }

    /// Packets that the FIFO can hold on `device`, whatever their sizes.
    pub fn max_packets(&self, device: &Device) -> u32 {
        self.bounds(device).packets.max(1)
    }

    /// Limit of the queue on `device`.
    fn bounds(&self, device: &Device) -> Limit {
        let limit = self.effective_limit(device);
        match self.kind {
            Kind::Bfifo => Limit::bytes(limit),
            Kind::Pfifo | Kind::PfifoHeadDrop => Limit::packets(limit),
        }
    }
}

/// A FIFO queue.
#[derive(Clone, Debug)]
pub struct Fifo {
    params: Params,
    device: Device,
    queue: BookedQueue,
}

impl Fifo {
    /// An empty FIFO for `device`.
    pub fn new(params: &Params, device: &Device) -> Result<Fifo, ConfigError> {
        let queue =
            BookedQueue::new(params.bounds(device), params.max_packets(device), device.memory)?;
        Ok(Fifo { params: *params, device: *device, queue })
    }

    /// The oldest packet.
    #[inline]
    pub fn head(&self) -> Option<&Packet> {
        self.queue.head()
    }

    /// True if no packet is queued.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Takes `packet` in as one that is queued since `enqueued`; says whether it is now queued. For
    /// disciplines of which a FIFO is a part.
    #[inline(always)]
    pub(crate) fn admit(
        &mut self,
        packet: &Packet,
        enqueued: Time,
        owner: &mut dyn PacketOwner,
    ) -> bool {
        self.admits(packet, enqueued) || self.admit_slowly(packet, enqueued, owner)
    }

    /// The common case of [`Fifo::admit`], which calls nothing. If it says no, nothing has
    /// happened.
    #[inline(always)]
    pub(crate) fn admits(&mut self, packet: &Packet, enqueued: Time) -> bool {
        let has_slot = self.queue.has_slot(packet);
        if has_slot {
            self.queue.insert_in_slot(packet, enqueued);
        }
        has_slot
    }

    /// Takes the oldest packet.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> Option<&mut Packet> {
        self.queue.take().map(|(_, packet)| packet)
    }

    /// The packet that was taken last, if none was admitted since.
    #[inline]
    pub(crate) fn sent(&mut self) -> Option<&mut Packet> {
        self.queue.last_taken()
    }

    /// Takes over the settings of `spare`; what no longer fits is dropped, the oldest first.
    pub(crate) fn change(&mut self, spare: &mut Fifo, owner: &mut dyn PacketOwner) {
        self.params = spare.params;
        self.queue.set_limit(self.params.bounds(&self.device));
        while self.queue.is_over_limit() {
            self.queue.drop_first(DropReason::Overlimit, owner);
        }
        self.queue.take_room(&mut spare.queue);
    }

    /// Packets and bytes in, out and lost so far.
    pub(crate) fn totals(&self) -> Totals {
        self.queue.totals()
    }

    /// The queue is full, or should be looked at closely.
    #[cold]
    fn admit_slowly(
        &mut self,
        packet: &Packet,
        enqueued: Time,
        owner: &mut dyn PacketOwner,
    ) -> bool {
        if !self.queue.has_room(packet) {
            let gives_up_oldest = self.params.kind == Kind::PfifoHeadDrop;
            if !gives_up_oldest || !self.queue.drop_first(DropReason::Overlimit, owner) {
                self.queue.refuse(packet, packet.enqueued, DropReason::Overlimit, owner);
                return false;
            }
        }
        let is_queued = self.queue.insert(packet, enqueued).is_some();
        if !is_queued {
            self.queue.refuse(packet, packet.enqueued, DropReason::Overlimit, owner);
        }
        is_queued
    }
}

impl Qdisc for Fifo {
    #[inline]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.admit(packet, now, owner);
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.take()
    }

    #[inline]
    fn peek(&self) -> Option<&Packet> {
        self.head()
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.head().map(|packet| packet.enqueued)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.queue.clear(owner);
    }
}

impl Managed for Fifo {
    fn snapshot(&self) -> Snapshot {
        Snapshot { totals: self.totals(), backlog: self.backlog(), detail: Detail::Fifo(()) }
    }

    fn config(&self) -> Config {
        Config::Fifo(self.params)
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        prepared::<Params>(config, &self.device, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, _: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of(spare) else { return };
        self.change(spare, owner);
    }
}

#[cfg(test)]
mod tests;
