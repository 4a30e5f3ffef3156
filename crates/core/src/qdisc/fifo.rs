//! First in, first out: `pfifo`, `bfifo` and `pfifo_head_drop` (man tc-bfifo, tc-pfifo; facts D.8).
//!
//! One list in one [`Arena`]. `pfifo` and `bfifo` give up the newcomer when the limit of packets or
//! bytes is reached; `pfifo_head_drop` gives up the oldest, so that what is sent is fresh. Without
//! a `limit` the device's queue length counts, times its MTU for bytes.
//!
//! Invariants: order is never changed; `enqueued = sent + dropped + queued`; at most
//! [`MAX_PACKETS`] slots whatever the limit says, because memory is taken at construction. A
//! `bfifo` has a slot for each [`BYTES_PER_SLOT`] bytes of its limit: a flood of smaller frames
//! meets that bound before the limit, and is dropped (and counted) as over the limit.
//!
//! Like Linux's, these queues count a full queue under `dropped` only: `overlimits` is for shapers.

use crate::arena::{Arena, List};
use crate::packet::Packet;
use crate::qdisc::{Backlog, ConfigError, Device, DropReason, PacketOwner, Qdisc};
use crate::tc::stats::{Detail, Snapshot, Totals};
use crate::tc::Config;
use crate::time::Time;

/// Slots that any FIFO has at most: 64 MiB of descriptors. A line of 10 Gbit/s needs 83,000 full
/// frames to hold 100 ms.
pub const MAX_PACKETS: u32 = 1 << 20;

/// Bytes of a `bfifo`'s limit for which it has one slot: the smallest Ethernet frame, with its
/// check sequence.
pub const BYTES_PER_SLOT: u32 = 64;

/// Which FIFO, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// What the limit counts and which end loses.
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
        let limit = self.effective_limit(device);
        let slots = match self.kind {
            Kind::Bfifo => limit / BYTES_PER_SLOT + 1,
            Kind::Pfifo | Kind::PfifoHeadDrop => limit,
        };
        slots.clamp(1, MAX_PACKETS)
    }
}

/// A FIFO queue.
#[derive(Clone, Debug)]
pub struct Fifo {
    params: Params,
    device: Device,
    /// Packets that may be queued: the limit, or what the arena holds for a limit in bytes.
    max_packets: u32,
    /// Bytes that may be queued; no bound for a limit in packets.
    max_bytes: u64,
    bytes: u64,
    queue: List,
    arena: Arena,
    /// But for `sent_packets`, which the others tell.
    totals: Totals,
}

impl Fifo {
    /// An empty FIFO for `device`.
    pub fn new(params: &Params, device: &Device) -> Fifo {
        let mut fifo = Fifo {
            params: *params,
            device: *device,
            max_packets: 0,
            max_bytes: 0,
            bytes: 0,
            queue: List::EMPTY,
            arena: Arena::new(params.max_packets(device)),
            totals: Totals::default(),
        };
        fifo.set_limits(params);
        fifo
    }

    /// The oldest packet.
    #[inline]
    pub fn head(&self) -> Option<&Packet> {
        self.queue.head().map(|slot| self.arena.get(slot))
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
        self.totals.enqueued_packets += 1;
        let bytes = self.bytes + u64::from(packet.len);
        if self.arena.len() < self.max_packets && bytes <= self.max_bytes {
            if let Some((_, queued)) = self.arena.reuse_slot(&mut self.queue, packet) {
                queued.enqueued = enqueued;
                self.bytes = bytes;
                return true;
            }
        }
        self.admit_slowly(packet, enqueued, owner)
    }

    /// The packet that `dequeue` has just given out.
    #[inline]
    pub(crate) fn sent(&mut self) -> Option<&mut Packet> {
        self.arena.released()
    }

    /// Changes the settings; what no longer fits is dropped, the oldest first. None of `params`'
    /// values is out of range.
    pub(crate) fn change(&mut self, params: &Params, owner: &mut dyn PacketOwner) {
        self.set_limits(params);
        while self.arena.len() > self.max_packets || self.bytes > self.max_bytes {
            self.drop_oldest(DropReason::Overlimit, owner);
        }
        let capacity = params.max_packets(&self.device);
        if capacity != self.arena.capacity() {
            let mut old = core::mem::replace(&mut self.arena, Arena::new(capacity));
            let mut packets = core::mem::take(&mut self.queue);
            while let Some(packet) = old.pop(&mut packets) {
                let moved = self.arena.push(&mut self.queue, packet);
                debug_assert!(moved.is_some(), "the packets were cut down to the capacity above");
            }
        }
    }

    /// Packets and bytes in, out and lost so far.
    #[inline]
    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    fn set_limits(&mut self, params: &Params) {
        self.params = *params;
        let limit = params.effective_limit(&self.device);
        (self.max_packets, self.max_bytes) = match params.kind {
            Kind::Bfifo => (params.max_packets(&self.device), u64::from(limit)),
            Kind::Pfifo | Kind::PfifoHeadDrop => (limit.min(MAX_PACKETS), u64::MAX),
        };
    }

    /// The queue is full, or longer than ever before.
    #[cold]
    fn admit_slowly(
        &mut self,
        packet: &Packet,
        enqueued: Time,
        owner: &mut dyn PacketOwner,
    ) -> bool {
        let is_full = self.arena.len() >= self.max_packets
            || self.bytes + u64::from(packet.len) > self.max_bytes;
        if is_full {
            if self.params.kind != Kind::PfifoHeadDrop || self.max_packets == 0 {
                return self.refuse(packet, owner);
            }
            self.drop_oldest(DropReason::Overlimit, owner);
        }
        match self.arena.push(&mut self.queue, packet) {
            Some((_, queued)) => {
                queued.enqueued = enqueued;
                self.bytes += u64::from(packet.len);
                true
            }
            None => self.refuse(packet, owner),
        }
    }

    fn drop_oldest(&mut self, reason: DropReason, owner: &mut dyn PacketOwner) {
        if let Some(packet) = self.arena.pop(&mut self.queue) {
            let packet = *packet;
            self.bytes -= u64::from(packet.len);
            self.give_up(packet, reason, owner);
        }
    }

    #[cold]
    fn refuse(&mut self, packet: &Packet, owner: &mut dyn PacketOwner) -> bool {
        self.give_up(*packet, DropReason::Overlimit, owner);
        false
    }

    #[cold]
    fn give_up(&mut self, packet: Packet, reason: DropReason, owner: &mut dyn PacketOwner) {
        self.totals.dropped[reason as usize] += 1;
        owner.dropped(packet, reason);
    }
}

impl Qdisc for Fifo {
    #[inline]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.admit(packet, now, owner);
    }

    #[inline]
    fn dequeue(&mut self, _: Time, _: &mut dyn PacketOwner) -> Option<&mut Packet> {
        let packet = self.arena.pop(&mut self.queue)?;
        let len = u64::from(packet.len);
        self.bytes -= len;
        self.totals.sent_bytes += len;
        Some(packet)
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
        Backlog { packets: self.arena.len(), bytes: self.bytes }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            totals: self.totals.settled(self.arena.len()),
            backlog: self.backlog(),
            detail: Detail::None,
        }
    }

    fn config(&self) -> Config {
        Config::Fifo(self.params)
    }

    fn configure(
        &mut self,
        config: &Config,
        _: Time,
        owner: &mut dyn PacketOwner,
    ) -> Result<(), ConfigError> {
        let Config::Fifo(params) = config else { return Err(ConfigError::OtherDiscipline) };
        self.change(params, owner);
        Ok(())
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        while !self.queue.is_empty() {
            self.drop_oldest(DropReason::Reset, owner);
        }
    }
}

#[cfg(test)]
mod tests;
