//! The queue of a discipline that has only one, with its limit and its books.
//!
//! Every packet comes in by [`BookedQueue::insert`], or is refused; it is taken out by
//! [`BookedQueue::take`], and is then sent, unless [`BookedQueue::discard`] follows. Not each
//! arrival is compared with the limit. A close look says how many packets and bytes may come until
//! the next one; departures only make more room.

use crate::chain::Chain;
use crate::memory::{Memory, NoMemory};
use crate::packet::Packet;
use crate::qdisc::books::Books;
use crate::qdisc::{Backlog, DropReason, PacketOwner, Totals};
use crate::time::Time;

/// Most slots of a queue: 64 MiB of descriptors. A line of 10 Gbit/s needs 83,000 full frames to
/// hold 100 ms.
pub const MAX_PACKETS: u32 = 1 << 20;

/// Bytes of a limit in bytes for each slot: the length of the smallest TCP/IPv4 packet on a device
/// without a link header.
pub const BYTES_PER_SLOT: u32 = 40;

/// Most that a queue may hold.
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
    /// Packets that came are counted here only if they were refused: the chain knows the others.
    books: Books,
    /// Packets that may have come, and bytes, before the backlog is to be compared with the limit
    /// again, or another chunk is needed.
    sure_packets: u64,
    sure_bytes: u64,
    limit: Limit,
}

impl BookedQueue {
    /// An empty queue for up to `limit`, with `capacity` slots.
    pub fn new(limit: Limit, capacity: u32, memory: Memory) -> Result<BookedQueue, NoMemory> {
        Ok(BookedQueue {
            chain: Chain::new(capacity, memory)?,
            books: Books::default(),
            sure_packets: 0,
            sure_bytes: 0,
            limit,
        })
    }

    /// Packets and bytes queued.
    #[inline(always)]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.chain.len(), bytes: self.books.bytes() }
    }

    /// Packets and bytes that came, were sent and were dropped so far.
    pub fn totals(&self) -> Totals {
        let mut books = self.books;
        books.totals.enqueued_packets += self.chain.counts().0;
        books.totals(self.chain.len())
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
    #[inline(always)]
    pub fn has_room(&self, packet: &Packet) -> bool {
        let Backlog { packets, bytes } = self.backlog();
        packets < self.limit.packets && bytes + u64::from(packet.len) <= self.limit.bytes
    }

    /// True if there is room for `packet` and it can be inserted without a call. Else
    /// [`BookedQueue::has_room`] tells.
    #[inline(always)]
    pub fn has_slot(&self, packet: &Packet) -> bool {
        let bytes_in = self.books.bytes_in() + u64::from(packet.len);
        (self.chain.counts().0 < self.sure_packets && bytes_in <= self.sure_bytes)
            || (self.chain.has_slot() && self.has_room(packet))
    }

    /// Puts a copy of `packet`, for which there is a slot, at the end, as one that is there since
    /// `enqueued`.
    #[inline(always)]
    pub fn insert_in_slot(&mut self, packet: &Packet, enqueued: Time) {
        let queued = self.chain.push(packet);
        debug_assert!(queued.is_some(), "there is room");
        if let Some(queued) = queued {
            queued.enqueued = enqueued;
            self.books.came(packet.len);
        }
    }

    /// Puts a copy of `packet`, for which there is room, at the end, as one that is there since
    /// `enqueued`. Returns the copy, to be changed. None if memory for more is short.
    #[cold]
    pub fn insert(&mut self, packet: &Packet, enqueued: Time) -> Option<&mut Packet> {
        let full = self.chain.make_room()?;
        self.sure_packets = full.min(self.chain.counts().1 + u64::from(self.limit.packets));
        let bytes = self.limit.bytes.saturating_sub(self.books.bytes());
        self.sure_bytes = self.books.bytes_in().saturating_add(bytes);
        self.books.came(packet.len);
        let queued = self.chain.push(packet)?;
        queued.enqueued = enqueued;
        Some(queued)
    }

    /// Takes the first packet and gives it out with its slot, where it lies until the next one is
    /// inserted.
    #[inline(always)]
    pub fn take(&mut self) -> Option<(usize, &mut Packet)> {
        let (slot, packet) = self.chain.pop()?;
        self.books.went(packet.len);
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
        if let Some(packet) = self.chain.get(slot) {
            self.books.discard(packet, reason, owner);
        }
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
        self.books.totals.enqueued_packets += 1;
        self.books.refuse(packet, now, reason, owner);
    }

    /// Gives up the first packet; false if there is none.
    #[cold]
    pub fn drop_first(&mut self, reason: DropReason, owner: &mut dyn PacketOwner) -> bool {
        let Some((slot, _)) = self.take() else { return false };
        self.discard(slot, reason, owner);
        true
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
