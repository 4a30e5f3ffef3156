//! Packet storage: a fixed number of slots and lists threaded through them by index.
//!
//! All memory is reserved at construction and touched only as it is first used. A [`List`] is two
//! indices; the links live in the packets themselves, so a queue costs eight bytes and moving a
//! packet costs one cache line.
//!
//! Rule for callers: a `List` belongs to the arena that filled it, and to no other.

use alloc::vec::Vec;

use crate::packet::{Link, Packet};

/// A first-in first-out list of packets in an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    head: Link,
    /// Slot of the last packet; meaningless while the list is empty.
    tail: u32,
}

/// A fixed pool of packet slots.
#[derive(Clone, Debug)]
pub struct Arena {
    /// Slots that were ever used; grows within its reserved capacity only.
    slots: Vec<Packet>,
    capacity: u32,
    /// First free slot of `slots`.
    free: Link,
    used: u32,
}

impl Default for List {
    fn default() -> List {
        List::EMPTY
    }
}

impl List {
    /// No packets.
    pub const EMPTY: List = List { head: Link::END, tail: 0 };

    /// True if the list holds no packet.
    #[inline(always)]
    pub const fn is_empty(&self) -> bool {
        self.head.is_end()
    }

    /// Slot of the first packet, if any.
    #[inline(always)]
    pub const fn head(&self) -> Option<u32> {
        self.head.slot()
    }

    /// Slot of the last packet, if any.
    #[inline]
    pub const fn tail(&self) -> Option<u32> {
        if self.is_empty() {
            None
        } else {
            Some(self.tail)
        }
    }
}

impl Arena {
    /// An arena of `capacity` slots (at least one).
    pub fn new(capacity: u32) -> Arena {
        let capacity = capacity.clamp(1, Link::END.index() - 1);
        Arena { slots: Vec::with_capacity(capacity as usize), capacity, free: Link::END, used: 0 }
    }

    /// Slots in all.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Packets held.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.used
    }

    /// True if no packet is held.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// True if `push` would fail.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.used == self.capacity
    }

    /// Puts `packet` at the end of `list` and says where it lies, or gives it back if the arena is
    /// full.
    #[inline(always)]
    pub fn push(&mut self, list: &mut List, packet: Packet) -> Result<u32, Packet> {
        match self.push_copy(list, &packet) {
            Some((index, _)) => Ok(index),
            None => Err(packet),
        }
    }

    /// Puts a copy of `packet` at the end of `list`, and gives the copy out to be changed; None if
    /// the arena is full. Fields that are written before a copy make the copy wait for them;
    /// written after it, they cost nothing.
    #[inline(always)]
    pub fn push_copy(&mut self, list: &mut List, packet: &Packet) -> Option<(u32, &mut Packet)> {
        if self.free.is_end() {
            self.open_slot()?;
        }
        self.reuse_slot(list, packet)
    }

    /// As [`Arena::push_copy`], but into a slot that was used before; None if there is none. For
    /// callers that have a slow path anyway.
    #[inline(always)]
    pub fn reuse_slot(&mut self, list: &mut List, packet: &Packet) -> Option<(u32, &mut Packet)> {
        let index = self.free.index();
        let slots = &mut *self.slots;
        if index as usize >= slots.len() {
            return None;
        }
        if list.is_empty() {
            list.head = Link::to(index);
        } else {
            slots[list.tail as usize].next = Link::to(index);
        }
        list.tail = index;
        self.used += 1;
        let slot = &mut slots[index as usize];
        self.free = slot.next;
        *slot = *packet;
        slot.next = Link::END;
        Some((index, slot))
    }

    /// Makes a slot that was never used before the only free one; None if all are used.
    #[cold]
    fn open_slot(&mut self) -> Option<()> {
        let index = self.slots.len() as u32;
        if index == self.capacity {
            return None;
        }
        self.slots.push(Packet::new(0, 0));
        self.free = Link::to(index);
        Some(())
    }

    /// Takes the first packet of `list`.
    #[inline(always)]
    pub fn pop(&mut self, list: &mut List) -> Option<Packet> {
        let index = self.detach(list)?;
        Some(self.take(index))
    }

    /// Takes the first packet of `list` out of it, but leaves it in its slot: it can be looked at
    /// and changed there. [`Arena::take`] must follow.
    #[inline(always)]
    pub fn detach(&mut self, list: &mut List) -> Option<u32> {
        let index = list.head()?;
        list.head = self.slots[index as usize].next;
        Some(index)
    }

    /// Empties slot `index`, whose packet is in no list any more.
    #[inline(always)]
    pub fn take(&mut self, index: u32) -> Packet {
        let slot = &mut self.slots[index as usize];
        let packet = *slot;
        slot.next = self.free;
        self.free = Link::to(index);
        self.used -= 1;
        packet
    }

    /// Takes the packet that follows `before` (or the first, if None) out of `list`.
    pub fn remove_after(&mut self, list: &mut List, before: Option<u32>) -> Option<Packet> {
        let Some(before) = before else { return self.pop(list) };
        let index = self.next(before)?;
        let next = self.slots[index as usize].next;
        self.slots[before as usize].next = next;
        if next.is_end() {
            list.tail = before;
        }
        Some(self.take(index))
    }

    /// The packet in slot `index`.
    #[inline(always)]
    pub fn get(&self, index: u32) -> &Packet {
        &self.slots[index as usize]
    }

    /// The packet in slot `index`, to be changed in place.
    #[inline(always)]
    pub fn get_mut(&mut self, index: u32) -> &mut Packet {
        &mut self.slots[index as usize]
    }

    /// Brings the first packet of `list` into the cache.
    #[inline(always)]
    pub fn warm(&self, list: &List) {
        if let Some(index) = list.head() {
            core::hint::black_box(self.slots[index as usize].len);
        }
    }

    /// Slot of the packet that follows slot `index` in its list.
    #[inline]
    pub fn next(&self, index: u32) -> Option<u32> {
        self.slots[index as usize].next.slot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_share_an_arena_and_return_their_slots() {
        let mut arena = Arena::new(3);
        let (mut a, mut b) = (List::EMPTY, List::EMPTY);
        for handle in 0..3 {
            let list = if handle == 1 { &mut b } else { &mut a };
            arena.push(list, Packet::new(handle, 64)).unwrap();
        }
        assert!(arena.push(&mut b, Packet::new(9, 64)).is_err());
        assert_eq!(arena.pop(&mut a).unwrap().handle, 0);
        arena.push(&mut b, Packet::new(3, 64)).unwrap();
        assert_eq!(arena.pop(&mut b).unwrap().handle, 1);
        assert_eq!(arena.pop(&mut b).unwrap().handle, 3);
        assert!(arena.pop(&mut b).is_none() && b.tail().is_none());
        assert_eq!(arena.len(), 1);
    }

    #[test]
    fn a_packet_can_be_taken_from_the_middle_and_the_end() {
        let mut arena = Arena::new(4);
        let mut list = List::EMPTY;
        let slots: [u32; 3] =
            core::array::from_fn(|i| arena.push(&mut list, Packet::new(i as u64, 64)).unwrap());
        assert_eq!(arena.remove_after(&mut list, Some(slots[0])).unwrap().handle, 1);
        assert_eq!(arena.remove_after(&mut list, Some(slots[0])).unwrap().handle, 2);
        assert_eq!(list.tail(), Some(slots[0]));
        arena.push(&mut list, Packet::new(5, 64)).unwrap();
        assert_eq!(arena.remove_after(&mut list, None).unwrap().handle, 0);
        assert_eq!(arena.pop(&mut list).unwrap().handle, 5);
        assert!(arena.is_empty());
    }
}
