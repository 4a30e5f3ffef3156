//! The queue of a discipline that has only one: a ring of packets with its limit and its books.
//!
//! Every packet comes in by `Ring::insert`, or is refused; it is taken out by `Ring::take`, and
//! is then sent, unless `Ring::discard` follows. That is how packets in = packets out + dropped +
//! queued. What one counter tells is not counted by another: a pair of enqueue and dequeue is bound
//! by what it stores to memory.
//!
//! All memory is reserved at construction and touched only as it is first used.

use alloc::vec::Vec;

use crate::packet::Packet;
use crate::qdisc::{Backlog, DropReason, PacketOwner, Totals};
use crate::time::Time;

/// Most slots of a queue: 64 MiB of descriptors. A line of 10 Gbit/s needs 83,000 full frames to
/// hold 100 ms.
pub const MAX_PACKETS: u32 = 1 << 20;

/// Bytes of a limit in bytes for which there is one slot: the smallest Ethernet frame, with its
/// check sequence.
pub const BYTES_PER_SLOT: u32 = 64;

/// How much a queue may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Packets.
    pub packets: u32,
    /// Bytes; no bound if `u64::MAX`.
    pub bytes: u64,
}

impl Limit {
    /// A limit in packets.
    pub fn packets(limit: u32) -> Limit {
        Limit { packets: limit.min(MAX_PACKETS), bytes: u64::MAX }
    }

    /// A limit in bytes, with a slot for each [`BYTES_PER_SLOT`] of them.
    pub fn bytes(limit: u32) -> Limit {
        let packets = (limit / BYTES_PER_SLOT).saturating_add(1).min(MAX_PACKETS);
        Limit { packets, bytes: limit.into() }
    }
}

/// A queue and what became of its packets.
#[derive(Clone, Debug)]
pub(crate) struct Ring {
    /// Slots that were ever used; grows within its reserved capacity only.
    slots: Vec<Packet>,
    /// Slots that there may be, a power of two, less one.
    mask: usize,
    /// Packets that ever came, and those of them that were taken out.
    came: u64,
    went: u64,
    /// Bytes that ever came, and those of them that were taken out.
    bytes_in: u64,
    bytes_out: u64,
    limit: Limit,
    /// Bytes that were taken out, but not sent.
    given_up: u64,
    /// Packets that were never queued.
    refused: u64,
    dropped: [u64; DropReason::COUNT],
}

impl Ring {
    /// An empty queue for up to `limit`.
    pub fn new(limit: Limit) -> Ring {
        let capacity = (limit.packets.max(1) as usize).next_power_of_two();
        Ring {
            slots: Vec::with_capacity(capacity),
            mask: capacity - 1,
            came: 0,
            went: 0,
            bytes_in: 0,
            bytes_out: 0,
            limit,
            given_up: 0,
            refused: 0,
            dropped: [0; DropReason::COUNT],
        }
    }

    /// Where packet `number`, in the order of coming, lies.
    #[inline(always)]
    fn slot_of(&self, number: u64) -> usize {
        number as usize & self.mask
    }

    /// Packets and bytes queued.
    #[inline(always)]
    pub fn backlog(&self) -> Backlog {
        let packets = (self.came - self.went) as u32;
        Backlog { packets, bytes: self.bytes_in - self.bytes_out }
    }

    /// Packets and bytes that came, were sent and were dropped so far.
    pub fn totals(&self) -> Totals {
        let totals = Totals {
            enqueued_packets: self.came + self.refused,
            sent_bytes: self.bytes_out - self.given_up,
            dropped: self.dropped,
            ..Totals::default()
        };
        totals.settled(self.backlog().packets)
    }

    /// True if no packet is queued.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.came == self.went
    }

    /// The first packet.
    #[inline(always)]
    pub fn head(&self) -> Option<&Packet> {
        match self.is_empty() {
            true => None,
            false => self.slots.get(self.slot_of(self.went)),
        }
    }

    /// True if there is room for `packet`.
    #[inline(always)]
    pub fn has_room(&self, packet: &Packet) -> bool {
        let Backlog { packets, bytes } = self.backlog();
        packets < self.limit.packets && bytes + u64::from(packet.len) <= self.limit.bytes
    }

    /// True if there is room for `packet`, in a slot that was used before: `Ring::insert` calls
    /// nothing then, so a caller that calls nothing else either saves no registers.
    #[inline(always)]
    pub fn has_slot(&self, packet: &Packet) -> bool {
        self.slot_of(self.came) < self.slots.len() && self.has_room(packet)
    }

    /// Puts a copy of `packet`, for which there is a slot, at the end, as one that is there since
    /// `enqueued`, and gives the copy out to be changed.
    #[inline(always)]
    pub fn insert(&mut self, packet: &Packet, enqueued: Time) -> Option<&mut Packet> {
        let slot = self.slot_of(self.came);
        let queued = self.slots.get_mut(slot)?;
        *queued = *packet;
        queued.enqueued = enqueued;
        self.came += 1;
        self.bytes_in += u64::from(packet.len);
        Some(queued)
    }

    /// As `Ring::insert`, where there may be room but no slot that was used before.
    #[cold]
    pub fn insert_anew(&mut self, packet: &Packet, enqueued: Time) -> Option<&mut Packet> {
        let slot = self.slot_of(self.came);
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, Packet::new(0, 0));
        }
        self.insert(packet, enqueued)
    }

    /// Takes the first packet and gives it out with its slot, where it lies until the next one is
    /// inserted.
    #[inline(always)]
    pub fn take(&mut self) -> Option<(usize, &mut Packet)> {
        if self.is_empty() {
            return None;
        }
        let slot = self.slot_of(self.went);
        let packet = self.slots.get_mut(slot)?;
        self.went += 1;
        self.bytes_out += u64::from(packet.len);
        Some((slot, packet))
    }

    /// The packet that was taken last, if none was inserted since.
    #[inline(always)]
    pub fn last_taken(&mut self) -> Option<&mut Packet> {
        let slot = self.slot_of(self.went.wrapping_sub(1));
        self.slots.get_mut(slot)
    }

    /// The packet in `slot`.
    #[inline(always)]
    pub fn packet(&self, slot: usize) -> &Packet {
        &self.slots[slot]
    }

    /// The packet in `slot`, to be changed in place.
    #[inline(always)]
    pub fn packet_mut(&mut self, slot: usize) -> &mut Packet {
        &mut self.slots[slot]
    }

    /// Gives up the packet that was taken from `slot`.
    #[cold]
    pub fn discard(&mut self, slot: usize, reason: DropReason, owner: &mut dyn PacketOwner) {
        let packet = *self.packet(slot);
        self.given_up += u64::from(packet.len);
        self.give_up(packet, reason, owner);
    }

    /// Gives up an arrival that is not queued.
    #[cold]
    pub fn refuse(&mut self, packet: Packet, reason: DropReason, owner: &mut dyn PacketOwner) {
        self.refused += 1;
        self.give_up(packet, reason, owner);
    }

    /// Gives up the first packet; false if there is none.
    #[cold]
    pub fn drop_first(&mut self, reason: DropReason, owner: &mut dyn PacketOwner) -> bool {
        let Some((slot, _)) = self.take() else { return false };
        self.discard(slot, reason, owner);
        true
    }

    fn give_up(&mut self, packet: Packet, reason: DropReason, owner: &mut dyn PacketOwner) {
        self.dropped[reason as usize] += 1;
        owner.dropped(packet, reason);
    }

    /// Gives up all packets.
    pub fn clear(&mut self, owner: &mut dyn PacketOwner) {
        while self.drop_first(DropReason::Reset, owner) {}
    }

    /// Another limit from now on. `discarded` hears of each packet, the oldest first, that goes for
    /// it.
    pub fn set_limit(
        &mut self,
        limit: Limit,
        owner: &mut dyn PacketOwner,
        mut discarded: impl FnMut(),
    ) {
        let exceeds = |Backlog { packets, bytes }| packets > limit.packets || bytes > limit.bytes;
        while exceeds(self.backlog()) {
            self.drop_first(DropReason::Overlimit, owner);
            discarded();
        }
        let mut ring = Ring { came: self.went, ..Ring::new(limit) };
        for number in self.went..self.came {
            let packet = &self.slots[self.slot_of(number)];
            ring.insert_anew(packet, packet.enqueued);
        }
        (self.slots, self.mask, self.limit) = (ring.slots, ring.mask, limit);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::qdisc::Discard;

    /// Fills to `most` and empties to `least` in turns; what goes is what came, in its order.
    fn swing(ring: &mut Ring, model: &mut VecDeque<u64>, least: usize, most: usize) {
        while model.len() < most {
            let packet = Packet::new(ring.came, 64);
            assert!(ring.has_room(&packet));
            model.push_back(ring.insert_anew(&packet, Time::ZERO).unwrap().handle);
        }
        while model.len() > least {
            assert_eq!(ring.head().map(|packet| packet.handle), model.front().copied());
            let taken = ring.take().map(|(_, packet)| packet.handle);
            assert_eq!(taken, model.pop_front());
            assert_eq!(ring.last_taken().map(|packet| packet.handle), taken);
            assert_eq!(
                ring.backlog(),
                Backlog { packets: model.len() as u32, bytes: 64 * model.len() as u64 }
            );
        }
    }

    #[test]
    fn packets_leave_in_the_order_of_their_coming() {
        let (mut ring, mut model) = (Ring::new(Limit::packets(100)), VecDeque::new());
        for (least, most) in [(0, 1), (1, 2), (0, 32), (7, 90), (31, 65), (0, 100), (0, 99)] {
            (0..100).for_each(|_| swing(&mut ring, &mut model, least, most));
        }
        assert!(ring.is_empty() && ring.head().is_none() && ring.take().is_none());
        swing(&mut ring, &mut model, 100, 100);
        assert!(!ring.has_room(&Packet::new(0, 64)));
    }

    #[test]
    fn packets_move_to_another_limit() {
        let (mut ring, mut model) = (Ring::new(Limit::packets(40)), VecDeque::new());
        for limit in [50, 20, 300, 17] {
            swing(&mut ring, &mut model, 13, 17);
            ring.set_limit(Limit::packets(limit), &mut Discard, || {});
            swing(&mut ring, &mut model, 0, 17);
        }
        swing(&mut ring, &mut model, 17, 17);
        ring.set_limit(Limit::packets(9), &mut Discard, || {});
        assert_eq!(ring.head().map(|packet| packet.handle), model.get(8).copied());
    }
}
