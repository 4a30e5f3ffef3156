//! The queue of a discipline that has only one, with its limit and its books.
//!
//! Every packet comes in by [`BookedQueue::insert`], or is refused; it is taken out by
//! [`BookedQueue::take`], and is then sent, unless [`BookedQueue::discard`] follows. That is how
//! packets in = packets out + dropped + queued.
//!
//! A pair of enqueue and dequeue is bound by its stores to memory, one word a cycle: nothing is
//! counted here that follows from other counters. Nor is each arrival compared with the limit. A
//! close look says how many packets and bytes may come until the next one; departures only make
//! more room.

use crate::chain::Chain;
use crate::memory::{Memory, NoMemory};
use crate::packet::Packet;
use crate::qdisc::{Backlog, DropReason, PacketOwner, Totals};
use crate::time::Time;

/// Most slots of a queue: 64 MiB of descriptors. A line of 10 Gbit/s needs 83,000 full frames to
/// hold 100 ms.
pub const MAX_PACKETS: u32 = 1 << 20;

/// Bytes of a limit in bytes for which there is one slot: the smallest TCP/IPv4 packet, as it is on
/// a device without a link header.
pub const BYTES_PER_SLOT: u32 = 40;

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
pub(crate) struct BookedQueue {
    chain: Chain,
    /// Bytes that ever came, and those of them that were taken out.
    bytes_in: u64,
    bytes_out: u64,
    /// Packets that may have come, and bytes, before the backlog is to be compared with the limit
    /// again, or another chunk is needed.
    sure_packets: u64,
    sure_bytes: u64,
    limit: Limit,
    /// Bytes that were taken out, but not sent.
    given_up: u64,
    /// Packets that were never queued.
    refused: u64,
    dropped: [u64; DropReason::COUNT],
}

impl BookedQueue {
    /// An empty queue for up to `limit`, with `capacity` slots.
    pub fn new(limit: Limit, capacity: u32, memory: Memory) -> Result<BookedQueue, NoMemory> {
        Ok(BookedQueue {
            chain: Chain::new(capacity, memory)?,
            bytes_in: 0,
            bytes_out: 0,
            sure_packets: 0,
            sure_bytes: 0,
            limit,
            given_up: 0,
            refused: 0,
            dropped: [0; DropReason::COUNT],
        })
    }

    /// Packets and bytes queued.
    #[inline(always)]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.len(), bytes: self.bytes_in - self.bytes_out }
    }

    /// Packets and bytes that came, were sent and were dropped so far.
    pub fn totals(&self) -> Totals {
        let totals = Totals {
            enqueued_packets: self.chain.counts().0 + self.refused,
            sent_bytes: self.bytes_out - self.given_up,
            dropped: self.dropped,
            ..Totals::default()
        };
        totals.settled(self.chain.len())
    }

    /// True if no packet is queued.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.chain.is_empty()
    }

    /// The first packet.
    #[inline(always)]
    pub fn head(&self) -> Option<&Packet> {
        self.chain.head()
    }

    /// True if there is room for `packet`.
    #[inline]
    pub fn has_room(&self, packet: &Packet) -> bool {
        self.has_room_once(self.bytes_in + u64::from(packet.len))
    }

    /// True if there is room for a packet with which `bytes_in` will have come.
    #[inline(always)]
    fn has_room_once(&self, bytes_in: u64) -> bool {
        self.chain.len() < self.limit.packets && bytes_in - self.bytes_out <= self.limit.bytes
    }

    /// True if there is room for `packet` and it can be inserted without a call. Else
    /// [`BookedQueue::has_room`] tells.
    #[inline(always)]
    pub fn has_slot(&self, packet: &Packet) -> bool {
        let bytes_in = self.bytes_in + u64::from(packet.len);
        (self.chain.counts().0 < self.sure_packets && bytes_in <= self.sure_bytes)
            || (self.chain.has_slot() && self.has_room_once(bytes_in))
    }

    /// Puts a copy of `packet`, for which there is a slot, at the end, as one that is there since
    /// `enqueued`.
    #[inline(always)]
    pub fn insert_in_slot(&mut self, packet: &Packet, enqueued: Time) {
        let queued = self.chain.push(packet);
        debug_assert!(queued.is_some(), "there is room");
        if let Some(queued) = queued {
            queued.enqueued = enqueued;
            self.bytes_in += u64::from(packet.len);
        }
    }

    /// Puts a copy of `packet`, for which there is room, at the end, as one that is there since
    /// `enqueued`, and gives the copy out to be changed. None if memory for more is short.
    #[cold]
    pub fn insert(&mut self, packet: &Packet, enqueued: Time) -> Option<&mut Packet> {
        let full = self.chain.make_room()?;
        self.sure_packets = full.min(self.chain.counts().1 + u64::from(self.limit.packets));
        self.sure_bytes = self.bytes_out.saturating_add(self.limit.bytes);
        self.bytes_in += u64::from(packet.len);
        let queued = self.chain.push(packet)?;
        queued.enqueued = enqueued;
        Some(queued)
    }

    /// Takes the first packet and gives it out with its slot, where it lies until the next one is
    /// inserted.
    #[inline(always)]
    pub fn take(&mut self) -> Option<(usize, &mut Packet)> {
        let (slot, packet) = self.chain.pop()?;
        self.bytes_out += u64::from(packet.len);
        Some((slot, packet))
    }

    /// The packet that was taken last, if none was inserted since.
    #[inline(always)]
    pub fn last_taken(&mut self) -> Option<&mut Packet> {
        self.chain.last_taken()
    }

    /// The packet in `slot`, if there is such a slot.
    #[inline(always)]
    pub fn packet(&self, slot: usize) -> Option<&Packet> {
        self.chain.get(slot)
    }

    /// The packet in `slot`, to be changed in place.
    #[inline(always)]
    pub fn packet_mut(&mut self, slot: usize) -> Option<&mut Packet> {
        self.chain.get_mut(slot)
    }

    /// Gives up the packet that was taken from `slot`.
    #[cold]
    pub fn discard(&mut self, slot: usize, reason: DropReason, owner: &mut dyn PacketOwner) {
        let Some(&packet) = self.packet(slot) else { return };
        self.given_up += u64::from(packet.len);
        self.give_up(packet, reason, owner);
    }

    /// Gives up an arrival that is not queued.
    #[cold]
    pub fn refuse(
        &mut self,
        packet: &Packet,
        now: Time,
        reason: DropReason,
        owner: &mut dyn PacketOwner,
    ) {
        self.refused += 1;
        self.give_up(Packet { enqueued: now, ..*packet }, reason, owner);
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

    /// True if more is queued than there may be.
    pub fn is_over_limit(&self) -> bool {
        let Backlog { packets, bytes } = self.backlog();
        packets > self.limit.packets || bytes > self.limit.bytes
    }

    /// Another limit from now on. The queue may be over it: [`BookedQueue::take_room`] must follow
    /// when it is not any more.
    pub fn set_limit(&mut self, limit: Limit) {
        (self.limit, self.sure_packets) = (limit, 0);
    }

    /// Becomes as large as `spare`, which was never used; there are no more packets than that.
    pub fn take_room(&mut self, spare: &mut BookedQueue) {
        self.sure_packets = 0;
        self.chain.take_room(&mut spare.chain);
    }
}
