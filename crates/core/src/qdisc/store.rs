//! The pool of packets, and its books, of disciplines with many queues. Those with
//! one queue have it in [`super::booked`].
//!
//! A [`Store`] owns the packets of all queues of a discipline; a [`Queue`] is one list in it with
//! its bytes. Every packet comes in by [`Store::insert`], is taken out by [`Store::detach`] or
//! [`Store::take`], and is then either sent or given up.

use crate::arena::{Arena, List, PAGE};
use crate::memory::{Memory, NoMemory};
use crate::packet::Packet;
use crate::qdisc::books::Books;
use crate::qdisc::{Backlog, DropReason, PacketOwner, Totals};
use crate::time::Time;

pub(crate) use super::booked::MAX_PACKETS;

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

    /// A packet of `len` bytes came.
    #[inline(always)]
    fn grow(&mut self, len: u32) {
        self.bytes += u64::from(len);
    }

    /// A packet of `len` bytes went.
    #[inline(always)]
    fn shrink(&mut self, len: u32) {
        self.bytes -= u64::from(len);
    }
}

/// The sum of `truesize` where somebody asks for it: a `u64`, or nothing.
pub(crate) trait Truesizes: Copy + Default {
    fn grow(&mut self, truesize: u32);
    fn shrink(&mut self, truesize: u32);
}

impl Truesizes for u64 {
    #[inline(always)]
    fn grow(&mut self, truesize: u32) {
        *self += u64::from(truesize);
    }
    #[inline(always)]
    fn shrink(&mut self, truesize: u32) {
        *self -= u64::from(truesize);
    }
}

impl Truesizes for () {
    #[inline(always)]
    fn grow(&mut self, _: u32) {}
    #[inline(always)]
    fn shrink(&mut self, _: u32) {}
}

/// Packets of one discipline, with its books.
#[derive(Clone, Debug)]
pub(crate) struct Store<M = ()> {
    arena: Arena,
    /// Sum of `truesize`.
    pub memory: M,
    pub books: Books,
}

impl<M: Truesizes> Store<M> {
    /// A store for `limit` packets and one that is just coming in.
    pub fn new(limit: u32, memory: Memory) -> Result<Store<M>, NoMemory> {
        Ok(Store {
            arena: Arena::new(limit.min(MAX_PACKETS) + 1, PAGE, memory)?,
            memory: M::default(),
            books: Books::default(),
        })
    }

    /// True if a packet can be inserted; where need be, memory is taken for it.
    #[inline(always)]
    pub fn has_slot(&mut self) -> bool {
        self.arena.has_slot()
    }

    /// Packets queued.
    #[inline]
    pub fn len(&self) -> u32 {
        self.arena.len()
    }

    /// Packets and bytes queued.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: self.arena.len(), bytes: self.books.bytes() }
    }

    /// Everything that came, was sent and was dropped so far.
    pub fn totals(&self) -> Totals {
        self.books.totals(self.len())
    }

    /// Length of the first packet of `queue`.
    #[inline]
    pub fn head_len(&self, queue: &Queue) -> Option<u32> {
        self.head(queue).map(|packet| packet.len)
    }

    /// Packets and bytes of `queue`. All its packets are gone through.
    pub fn backlog_of(&self, queue: &Queue) -> Backlog {
        Backlog { packets: self.arena.count(&queue.packets), bytes: queue.bytes }
    }

    /// The first packet of `queue`.
    #[inline]
    pub fn head(&self, queue: &Queue) -> Option<&Packet> {
        self.arena.head(&queue.packets)
    }

    /// The first packet of `queue`, to be changed in place.
    #[inline]
    pub fn head_mut(&mut self, queue: &Queue) -> Option<&mut Packet> {
        self.arena.head_mut(&queue.packets)
    }

    /// Puts a copy of `packet` at the end of `queue`, as one that is there since `enqueued`, and
    /// gives the copy out to be changed. None if the store is full, which a caller that makes room
    /// after each arrival never sees.
    #[inline(always)]
    pub fn insert(
        &mut self,
        queue: &mut Queue,
        packet: &Packet,
        enqueued: Time,
    ) -> Option<&mut Packet> {
        let (_, queued) = self.arena.push(&mut queue.packets, packet)?;
        queued.enqueued = enqueued;
        queue.grow(packet.len);
        self.books.came(packet.len);
        self.memory.grow(packet.truesize);
        Some(queued)
    }

    /// Takes the first packet out of `queue`, but leaves it in its slot, to be looked at and
    /// changed there. Returns with it the bytes that are still queued in all. [`Store::send`] or
    /// [`Store::discard`] must follow.
    #[inline]
    pub fn detach(&mut self, queue: &mut Queue) -> Option<(u32, &mut Packet, u64)> {
        let (slot, packet) = self.arena.detach(&mut queue.packets)?;
        queue.shrink(packet.len);
        self.books.went(packet.len);
        self.memory.shrink(packet.truesize);
        Some((slot, packet, self.books.bytes()))
    }

    /// Tells the owner that the first packet of `next` and then that of `after` leave soon.
    #[inline(never)]
    pub fn expect(&self, next: &Queue, after: &Queue, owner: &mut dyn PacketOwner) {
        if let (Some(next), Some(after)) = (self.head(next), self.head(after)) {
            owner.expect(next, after);
        }
    }

    /// The packet in `slot`, if there is such a slot.
    #[inline]
    pub fn packet(&self, slot: u32) -> Option<&Packet> {
        self.arena.get(slot)
    }

    /// The packet in `slot`, to be changed in place.
    #[inline]
    pub fn packet_mut(&mut self, slot: u32) -> Option<&mut Packet> {
        self.arena.get_mut(slot)
    }

    /// Sends the packet that was detached into `slot`; it lies there until the next one is
    /// inserted.
    #[inline]
    pub fn send(&mut self, slot: u32) -> Option<&mut Packet> {
        self.arena.release(slot)
    }

    /// Gives up the packet that was detached into `slot`.
    #[cold]
    pub fn discard(&mut self, slot: u32, reason: DropReason, owner: &mut dyn PacketOwner) {
        if let Some(packet) = self.arena.release(slot) {
            self.books.discard(packet, reason, owner);
        }
    }

    /// Takes the first packet of `queue`.
    #[inline]
    pub fn take(&mut self, queue: &mut Queue) -> Option<Packet> {
        let packet = *self.arena.pop(&mut queue.packets)?;
        self.account_removal(queue, &packet);
        Some(packet)
    }

    /// Takes the last packet of `queue`: as many steps as the queue has packets.
    #[cold]
    pub fn take_last(&mut self, queue: &mut Queue) -> Option<Packet> {
        let last = queue.packets.tail()?;
        let (mut before, mut slot) = (None, queue.packets.head()?);
        while slot != last {
            crate::steps::step();
            before = Some(slot);
            slot = self.arena.next(slot)?;
        }
        let packet = *self.arena.remove_after(&mut queue.packets, before)?;
        self.account_removal(queue, &packet);
        Some(packet)
    }

    #[inline]
    fn account_removal(&mut self, queue: &mut Queue, packet: &Packet) {
        queue.shrink(packet.len);
        self.books.went(packet.len);
        self.books.withdraw(packet.len);
        self.memory.shrink(packet.truesize);
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
        self.books.refuse(packet, now, reason, owner);
    }

    /// Gives up the first packet of `queue`, if there is one, and says how long it was.
    #[cold]
    pub fn drop_first(
        &mut self,
        queue: &mut Queue,
        reason: DropReason,
        owner: &mut dyn PacketOwner,
    ) -> Option<u32> {
        let packet = self.take(queue)?;
        self.books.give_up(packet, reason, owner);
        Some(packet.len)
    }

    /// Gives up all packets of `queue`.
    pub fn clear(&mut self, queue: &mut Queue, owner: &mut dyn PacketOwner) {
        while self.drop_first(queue, DropReason::Reset, owner).is_some() {}
    }

    /// Takes all packets out of `queues` into one, in the order in which they came.
    pub fn gather<'a>(&mut self, queues: impl Iterator<Item = &'a mut Queue>) -> Queue {
        let mut all = Queue::default();
        for queue in queues {
            self.arena.append(&mut all.packets, &mut queue.packets);
            all.bytes += core::mem::take(&mut queue.bytes);
        }
        self.arena.sort(&mut all.packets);
        all
    }

    /// Becomes as large as `spare`, which was never used and holds all that is in it. `queues` are
    /// all queues that have packets.
    pub fn take_room<'a>(
        &mut self,
        spare: &mut Store<M>,
        queues: impl Iterator<Item = &'a mut Queue>,
    ) {
        self.arena.take_room(&mut spare.arena, queues.map(|queue| &mut queue.packets));
    }
}
