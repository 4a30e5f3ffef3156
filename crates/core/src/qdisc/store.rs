//! What disciplines with one or many queues in one pool keep: the pool, and the books over it.
//!
//! A [`Store`] owns the packets of all queues of a discipline; a [`Queue`] is one list in it with
//! its bytes. Every packet comes in by [`Store::insert`] and goes out by [`Store::take`], and is
//! then either sent or given up: that is how packets in = packets out + dropped + queued.

use crate::arena::{Arena, List};
use crate::packet::Packet;
use crate::qdisc::{Backlog, DropReason, PacketOwner};
use crate::tc::stats::Totals;
use crate::time::Time;

/// Slots that a discipline has at most, whatever its limit says: 64 MiB of descriptors, as many as
/// [`super::fifo::MAX_PACKETS`].
pub(crate) const MAX_PACKETS: u32 = super::fifo::MAX_PACKETS;

/// One queue of a store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Queue {
    packets: List,
    /// Bytes queued (`len`).
    pub bytes: u64,
}

impl Queue {
    /// True if no packet is queued.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

/// Packets of one discipline, with its books.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    arena: Arena,
    bytes: u64,
    /// Sum of `truesize`.
    pub memory: u64,
    pub totals: Totals,
}

impl Store {
    /// A store for `limit` packets and one that is just coming in.
    pub fn new(limit: u32) -> Store {
        Store {
            arena: Arena::new(limit.min(MAX_PACKETS) + 1),
            bytes: 0,
            memory: 0,
            totals: Totals::default(),
        }
    }

    /// Packets queued.
    #[inline]
    pub fn len(&self) -> u32 {
        self.arena.len()
    }

    /// Packets and bytes queued.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.arena.len(), bytes: self.bytes }
    }

    /// Length of the first packet of `queue`.
    #[inline]
    pub fn head_len(&self, queue: &Queue) -> Option<u32> {
        self.head(queue).map(|packet| packet.len)
    }

    /// The first packet of `queue`.
    #[inline]
    pub fn head(&self, queue: &Queue) -> Option<&Packet> {
        queue.packets.head().map(|slot| self.arena.get(slot))
    }

    /// The first packet of `queue`, to be changed in place.
    #[inline]
    pub fn head_mut(&mut self, queue: &Queue) -> Option<&mut Packet> {
        queue.packets.head().map(|slot| self.arena.get_mut(slot))
    }

    /// Puts `packet` at the end of `queue`. Gives it back if the store is full, which a caller that
    /// makes room after each arrival never sees.
    #[inline]
    pub fn insert(&mut self, queue: &mut Queue, packet: Packet) -> Result<(), Packet> {
        let (len, truesize) = (u64::from(packet.len), u64::from(packet.truesize));
        self.arena.push(&mut queue.packets, packet)?;
        queue.bytes += len;
        self.bytes += len;
        self.memory += truesize;
        Ok(())
    }

    /// As [`Store::insert`], with `enqueued` set in the copy that is queued; says whether there was
    /// room.
    #[inline(always)]
    pub fn insert_at(&mut self, queue: &mut Queue, packet: &Packet, enqueued: Time) -> bool {
        let Some((_, queued)) = self.arena.push_copy(&mut queue.packets, packet) else {
            return false;
        };
        queued.enqueued = enqueued;
        queue.bytes += u64::from(packet.len);
        self.bytes += u64::from(packet.len);
        self.memory += u64::from(packet.truesize);
        true
    }

    /// Takes the first packet out of `queue`, but leaves it in its slot, to be looked at and
    /// changed there. [`Store::send`] or [`Store::discard`] must follow.
    #[inline]
    pub fn detach(&mut self, queue: &mut Queue) -> Option<u32> {
        let slot = self.arena.detach(&mut queue.packets)?;
        let packet = self.arena.get(slot);
        let (len, truesize) = (u64::from(packet.len), u64::from(packet.truesize));
        queue.bytes -= len;
        self.bytes -= len;
        self.memory -= truesize;
        Some(slot)
    }

    /// Brings the first packet of `queue` into the cache.
    #[inline]
    pub fn warm(&self, queue: &Queue) {
        self.arena.warm(&queue.packets);
    }

    /// The packet in `slot`.
    #[inline]
    pub fn packet_mut(&mut self, slot: u32) -> &mut Packet {
        self.arena.get_mut(slot)
    }

    /// Sends the packet that was detached into `slot`.
    #[inline]
    pub fn send(&mut self, slot: u32) -> Packet {
        self.totals.sent_packets += 1;
        self.totals.sent_bytes += u64::from(self.arena.get(slot).len);
        self.arena.take(slot)
    }

    /// Gives up the packet that was detached into `slot`.
    #[cold]
    pub fn discard(&mut self, slot: u32, reason: DropReason, owner: &mut dyn PacketOwner) {
        let packet = self.arena.take(slot);
        self.give_up(packet, reason, owner);
    }

    /// Takes the first packet of `queue`.
    #[inline]
    pub fn take(&mut self, queue: &mut Queue) -> Option<Packet> {
        let packet = self.arena.pop(&mut queue.packets)?;
        self.account_removal(queue, &packet);
        Some(packet)
    }

    /// Takes the last packet of `queue`: as many steps as the queue has packets.
    #[cold]
    pub fn take_last(&mut self, queue: &mut Queue) -> Option<Packet> {
        let last = queue.packets.tail()?;
        let (mut before, mut slot) = (None, queue.packets.head()?);
        while slot != last {
            before = Some(slot);
            slot = self.arena.next(slot)?;
        }
        let packet = self.arena.remove_after(&mut queue.packets, before)?;
        self.account_removal(queue, &packet);
        Some(packet)
    }

    #[inline]
    fn account_removal(&mut self, queue: &mut Queue, packet: &Packet) {
        queue.bytes -= u64::from(packet.len);
        self.bytes -= u64::from(packet.len);
        self.memory -= u64::from(packet.truesize);
    }

    /// The books for a packet that is sent.
    #[inline]
    pub fn sent(&mut self, packet: &Packet) {
        self.totals.sent_packets += 1;
        self.totals.sent_bytes += u64::from(packet.len);
    }

    /// Gives a packet that is not (or no longer) queued to its owner.
    pub fn give_up(&mut self, packet: Packet, reason: DropReason, owner: &mut dyn PacketOwner) {
        self.totals.dropped[reason as usize] += 1;
        owner.dropped(packet, reason);
    }

    /// Gives up all packets of `queue`.
    pub fn clear(&mut self, queue: &mut Queue, owner: &mut dyn PacketOwner) {
        while let Some(packet) = self.take(queue) {
            self.give_up(packet, DropReason::Reset, owner);
        }
    }

    /// Makes the store one for `limit` packets, which hold all that are in it. `queues` are all
    /// queues that have packets.
    pub fn resize<'a>(&mut self, limit: u32, queues: impl Iterator<Item = &'a mut Queue>) {
        let capacity = limit.min(MAX_PACKETS) + 1;
        if capacity == self.arena.capacity() {
            return;
        }
        let mut arena = Arena::new(capacity.max(self.arena.len()));
        for queue in queues {
            let mut moved = List::EMPTY;
            while let Some(packet) = self.arena.pop(&mut queue.packets) {
                let pushed = arena.push(&mut moved, packet);
                debug_assert!(pushed.is_ok(), "the new arena holds what the old one held");
            }
            queue.packets = moved;
        }
        self.arena = arena;
    }
}

/// The queue with most bytes, the first of them; none if all are empty. Looks at all.
#[cold]
pub(crate) fn longest<'a>(queues: impl Iterator<Item = &'a Queue>) -> Option<u32> {
    let (mut most, mut index) = (0, None);
    for (n, queue) in (0..).zip(queues) {
        // A packet may have no bytes, but not be overlooked for that.
        let weight = if queue.is_empty() { 0 } else { queue.bytes + 1 };
        if weight > most {
            (most, index) = (weight, Some(n));
        }
    }
    index
}
