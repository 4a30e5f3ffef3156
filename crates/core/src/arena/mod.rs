//! Packet storage: a fixed number of slots and lists threaded through them by index.
//!
//! A [`List`] is two indices, and the links live in the packets themselves. So a queue costs eight
//! bytes, and moving a packet costs one cache line.
//!
//! Memory is either reserved at construction, and touched only as it is first used. Or there is
//! some for the first slots only, and pages of others come and go as needed (`pages.rs`). A
//! look beyond the slots that were reserved is a look into the pages: where all are reserved, pages
//! cost nothing.
//!
//! Rule for callers: a `List` belongs to the arena that filled it, and to no other.

mod pages;

use alloc::vec::Vec;

pub(crate) use self::pages::PAGE;

use self::pages::Pages;
use crate::memory::{reserved, Memory, NoMemory, PAGES};
use crate::packet::{Link, Packet};
use crate::room;
use crate::time::Time;

/// A first-in first-out list of packets in an [`Arena`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    head: Link,
    /// Slot of the last packet; meaningless while the list is empty.
    tail: u32,
}

/// A fixed pool of packet slots.
#[derive(Debug)]
pub struct Arena {
    /// The first slots, as far as they were ever used. Of more than a page all are reserved; else
    /// the first ones, and there is room for twice as many when those are used.
    slots: Vec<Packet>,
    /// Slots that are free, the last one to be used next: its line is in the cache.
    free: Vec<u32>,
    /// These, and those in use.
    open: u32,
    /// Slots that lie in `slots`.
    first: u32,
    capacity: u32,
    /// The slots after the first, where memory is taken as needed; those that are not open are free
    /// there.
    pages: Pages,
}

/// Slots of the first page that are reserved: so many packets need no memory.
const AT_ONCE: u32 = PAGE / 4;
/// Free slots at hand beside those that are reserved, where memory is taken as needed: they need
/// not go back and forth.
const AT_HAND: u32 = PAGE / 2;

impl Clone for Arena {
    /// With as much room for free slots as the original has.
    fn clone(&self) -> Arena {
        let mut free = Vec::with_capacity(self.free.capacity());
        free.extend_from_slice(&self.free);
        Arena { slots: self.slots.clone(), free, pages: self.pages.clone(), ..*self }
    }
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
    /// An arena of `capacity` slots (at least one). Where memory is taken as needed, some `first`
    /// ones are found with fewer steps. Theirs is reserved, or of a single page that of a few.
    #[inline(never)]
    pub fn new(capacity: u32, first: u32, memory: Memory) -> Result<Arena, NoMemory> {
        let capacity = capacity.clamp(1, Link::END.index() - 1);
        let (first, at_once, free, pages) = match memory {
            Memory::AsNeeded if PAGES => {
                let number = first.min(capacity).div_ceil(PAGE);
                let (first, pages) = (number * PAGE, Pages::new(capacity, number)?);
                (first, if number > 1 { first } else { first.min(AT_ONCE) }, first + AT_HAND, pages)
            }
            _ => (capacity, capacity, capacity, Pages::default()),
        };
        let (slots, free) = (reserved(at_once as usize)?, reserved(free as usize)?);
        Ok(Arena { slots, free, open: 0, first, capacity, pages })
    }

    /// Slots in all.
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Packets held.
    #[inline(always)]
    pub fn len(&self) -> u32 {
        self.open - self.free.len() as u32
    }

    /// True if no packet is held.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if `push` would fail, whatever memory there is.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.free.is_empty() && self.open == self.capacity
    }

    /// Puts a copy of `packet` at the end of `list`, and gives the copy out to be changed; None if
    /// the arena is full. Fields that are written before a copy make the copy wait for them;
    /// written after it, they cost nothing.
    #[inline(always)]
    pub fn push(&mut self, list: &mut List, packet: &Packet) -> Option<(u32, &mut Packet)> {
        if self.free.is_empty() {
            self.open_slot()?;
        }
        let index = self.free.pop()?;
        if list.is_empty() {
            list.head = Link::to(index);
        } else {
            self.get_mut(list.tail)?.next = Link::to(index);
        }
        list.tail = index;
        let slot = self.get_mut(index)?;
        *slot = *packet;
        slot.next = Link::END;
        Some((index, slot))
    }

    /// True if a packet can be pushed; where need be, memory is taken for it. Without pages,
    /// callers know by the limits that they keep.
    #[inline(always)]
    pub fn has_slot(&mut self) -> bool {
        !PAGES || !self.free.is_empty() || self.open_slot().is_some()
    }

    /// Makes a slot the only free one; None if all are used, or memory for another page is short.
    #[cold]
    fn open_slot(&mut self) -> Option<()> {
        if self.open == self.capacity {
            return None;
        }
        let mut index = self.slots.len() as u32;
        if index < self.first {
            room::push(&mut self.slots, Packet::new(0, 0))?;
        } else {
            index = self.pages.take()?;
        }
        self.open += 1;
        room::push(&mut self.free, index)
    }

    /// Takes the first packet of `list`; it lies where it lay until the next one is pushed.
    #[inline(always)]
    pub fn pop(&mut self, list: &mut List) -> Option<&mut Packet> {
        let (index, _) = self.detach(list)?;
        self.release(index)
    }

    /// Takes the first packet of `list` out of it, but leaves it in its slot: it can be looked at
    /// and changed there. [`Arena::release`] must follow.
    #[inline(always)]
    pub fn detach(&mut self, list: &mut List) -> Option<(u32, &mut Packet)> {
        let index = list.head.index();
        let packet = self.get_mut(index)?;
        list.head = packet.next;
        Some((index, packet))
    }

    /// Frees slot `index`, whose packet is in no list any more; it lies there until the next one is
    /// pushed. None if there is no such slot.
    #[inline(always)]
    pub fn release(&mut self, index: u32) -> Option<&mut Packet> {
        if self.free.len() < self.free.capacity() {
            self.free.push(index);
        } else {
            self.make_way_for(index);
        }
        self.get_mut(index)
    }

    /// Makes room for the free slot `index`: those of pages are given back to them.
    #[cold]
    fn make_way_for(&mut self, index: u32) {
        if !self.pages.are_used() {
            return;
        }
        let Arena { free, pages, first, .. } = self;
        let before = free.len();
        free.retain(|&slot| {
            let is_first = slot < *first;
            if !is_first {
                pages.put(slot);
            }
            is_first
        });
        self.open -= (before - free.len()) as u32;
        // Never more than there is room for, so that nothing is allocated.
        if free.len() < free.capacity() {
            free.push(index);
        }
    }

    /// Takes the packet that follows `before` (or the first, if None) out of `list`.
    pub fn remove_after(&mut self, list: &mut List, before: Option<u32>) -> Option<&mut Packet> {
        let Some(before) = before else { return self.pop(list) };
        let index = self.next(before)?;
        let next = self.get(index)?.next;
        self.get_mut(before)?.next = next;
        if index == list.tail {
            list.tail = before;
        }
        self.release(index)
    }

    /// Moves all packets of `list` to the end of `to`.
    pub fn append(&mut self, to: &mut List, list: &mut List) {
        match (to.tail(), list.head()) {
            (_, None) => {}
            (None, _) => *to = *list,
            (Some(tail), Some(head)) => {
                if let Some(last) = self.get_mut(tail) {
                    last.next = Link::to(head);
                    to.tail = list.tail;
                }
            }
        }
        *list = List::EMPTY;
    }

    /// Puts the packets of `list` in the order in which they came; those of the same instant stay
    /// in theirs. Merges the runs of the list, pair by pair.
    pub fn sort(&mut self, list: &mut List) {
        // Where number n holds something, it holds 2^n runs; what came first is in the higher ones.
        let mut sorted = [List::EMPTY; u32::BITS as usize];
        while !list.is_empty() {
            let mut run = self.take_run(list);
            for longer in &mut sorted {
                if longer.is_empty() {
                    *longer = run;
                    break;
                }
                run = self.merged(core::mem::take(longer), run);
            }
        }
        for longer in sorted {
            *list = self.merged(longer, *list);
        }
    }

    /// Takes packets out of `list`, from the first to the last that is not older than the one
    /// before it.
    fn take_run(&mut self, list: &mut List) -> List {
        let (mut run, mut last) = (List::EMPTY, Time::ZERO);
        while let Some(head) = list.head() {
            let enqueued = self.enqueued(head);
            if enqueued < last {
                break;
            }
            last = enqueued;
            self.move_first(list, &mut run);
        }
        run
    }

    /// Time at which the packet in `slot` came.
    fn enqueued(&self, slot: u32) -> Time {
        self.get(slot).map_or(Time::ZERO, |packet| packet.enqueued)
    }

    /// The packets of two lists in the order in which they came; of the same instant those of
    /// `first` first. Both lists are in that order.
    fn merged(&mut self, mut first: List, mut second: List) -> List {
        let mut all = List::EMPTY;
        while let (Some(a), Some(b)) = (first.head(), second.head()) {
            let is_later = self.enqueued(b) >= self.enqueued(a);
            self.move_first(if is_later { &mut first } else { &mut second }, &mut all);
        }
        self.append(&mut all, &mut first);
        self.append(&mut all, &mut second);
        all
    }

    /// Moves the first packet of `list` to the end of `to`.
    fn move_first(&mut self, list: &mut List, to: &mut List) {
        if let Some((slot, packet)) = self.detach(list) {
            packet.next = Link::END;
            let mut one = List { head: Link::to(slot), tail: slot };
            self.append(to, &mut one);
        }
    }

    /// Becomes as large as `spare`, which is empty and becomes what this one was. `lists` are all
    /// that have packets. An arena that is as large, or too small for what is held, is left alone.
    pub fn take_room<'a>(&mut self, spare: &mut Arena, lists: impl Iterator<Item = &'a mut List>) {
        if spare.capacity == self.capacity || spare.capacity < self.len() {
            return;
        }
        if self.pages.are_used() && spare.pages.are_used() {
            self.pages.take_room(&mut spare.pages);
            self.capacity = spare.capacity.max(self.open);
            return;
        }
        for list in lists {
            let mut moved = List::EMPTY;
            while let Some(packet) = self.pop(list) {
                let pushed = spare.push(&mut moved, packet);
                debug_assert!(pushed.is_some(), "there is room for all");
            }
            *list = moved;
        }
        core::mem::swap(self, spare);
    }

    /// The packet in slot `index`, if there is such a slot.
    #[inline(always)]
    pub fn get(&self, index: u32) -> Option<&Packet> {
        match self.slots.get(index as usize) {
            Some(packet) => Some(packet),
            None if PAGES => self.pages.get(index),
            None => None,
        }
    }

    /// The packet in slot `index`, to be changed in place.
    #[inline(always)]
    pub fn get_mut(&mut self, index: u32) -> Option<&mut Packet> {
        match self.slots.get_mut(index as usize) {
            Some(packet) => Some(packet),
            None if PAGES => self.pages.get_mut(index),
            None => None,
        }
    }

    /// The first packet of `list`, if any.
    #[inline(always)]
    pub fn head(&self, list: &List) -> Option<&Packet> {
        // One comparison: the end is out of range.
        self.get(list.head.index())
    }

    /// The first packet of `list`, if any, to be changed in place.
    #[inline(always)]
    pub fn head_mut(&mut self, list: &List) -> Option<&mut Packet> {
        self.get_mut(list.head.index())
    }

    /// Brings the first packet of `list` into the cache.
    #[inline(always)]
    pub fn warm(&self, list: &List) {
        if let Some(first) = self.head(list) {
            core::hint::black_box(first.len);
        }
    }

    /// Slot of the packet that follows the one in slot `index` in its list.
    #[inline]
    pub fn next(&self, index: u32) -> Option<u32> {
        self.get(index)?.next.slot()
    }

    /// Number of packets in `list`, all of which are gone through.
    pub fn count(&self, list: &List) -> u32 {
        let slots = core::iter::successors(list.head(), |index| self.next(*index));
        slots.take(self.len() as usize).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn lists_share_an_arena_and_return_their_slots() {
        let mut arena = Arena::new(3, PAGE, Memory::Reserved).unwrap();
        let (mut a, mut b) = (List::EMPTY, List::EMPTY);
        for handle in 0..3 {
            let list = if handle == 1 { &mut b } else { &mut a };
            arena.push(list, &Packet::new(handle, 64)).unwrap();
        }
        assert!(arena.push(&mut b, &Packet::new(9, 64)).is_none());
        assert_eq!(arena.pop(&mut a).unwrap().handle, 0);
        arena.push(&mut b, &Packet::new(3, 64)).unwrap();
        assert_eq!(arena.pop(&mut b).unwrap().handle, 1);
        assert_eq!(arena.pop(&mut b).unwrap().handle, 3);
        assert!(arena.pop(&mut b).is_none() && b.tail().is_none());
        assert_eq!(arena.len(), 1);
    }

    #[test]
    fn packets_are_sorted_by_their_coming_and_ties_stay() {
        let mut random = Random::new(3);
        let memories = [Memory::Reserved, Memory::AsNeeded];
        let counts = [0, 1, 2, 3, 7, 100, 1000];
        for (memory, count) in memories.into_iter().flat_map(|m| counts.map(|count| (m, count))) {
            let (mut arena, mut list) = (Arena::new(1001, PAGE, memory).unwrap(), List::EMPTY);
            let mut expected: std::vec::Vec<(Time, u64)> = (0..count)
                .map(|handle| {
                    let enqueued = Time(u64::from(random.below(50)));
                    arena.push(&mut list, &Packet::new(handle, 64)).unwrap().1.enqueued = enqueued;
                    (enqueued, handle)
                })
                .collect();
            expected.sort_by_key(|(enqueued, _)| *enqueued);
            arena.sort(&mut list);
            let mut spare = Arena::new(2000, PAGE, memory).unwrap();
            arena.take_room(&mut spare, core::iter::once(&mut list));
            assert_eq!((arena.capacity(), spare.len()), (2000, 0));
            let held = arena.len();
            assert_eq!(u64::from(held), count);
            for (enqueued, handle) in expected {
                let packet = arena.pop(&mut list).unwrap();
                assert_eq!((packet.enqueued, packet.handle), (enqueued, handle));
            }
            assert!(arena.pop(&mut list).is_none() && arena.is_empty());
        }
    }

    #[test]
    fn pages_come_with_packets_and_go_with_them() {
        let mut arena = Arena::new(10_000, PAGE, Memory::AsNeeded).unwrap();
        let mut lists = [List::EMPTY; 7];
        let mut random = Random::new(7);
        let mut model: [std::collections::VecDeque<u64>; 7] = Default::default();
        for spell in 0..60 {
            let most = [10_000, 0, 200, 64, 3_000, 1][spell % 6];
            for handle in 0..20_000 {
                let number = random.below(7) as usize;
                // Towards `most`, with some to and fro.
                if (arena.len() < most) == (random.below(8) > 0) {
                    let is_full = arena.is_full();
                    let pushed = arena.push(&mut lists[number], &Packet::new(handle, 64));
                    assert_eq!(pushed.is_none(), is_full);
                    if pushed.is_some() {
                        model[number].push_back(handle);
                    }
                } else {
                    let taken = arena.pop(&mut lists[number]).map(|packet| packet.handle);
                    assert_eq!(taken, model[number].pop_front());
                }
                let held: usize = model.iter().map(|list| list.len()).sum();
                assert_eq!(arena.len() as usize, held);
            }
            let (pages, needed) = (arena.pages.open_pages(), arena.len() as usize / 64);
            assert!(pages >= needed.saturating_sub(1), "{pages} pages for {}", arena.len());
            // Queues that are emptied in the order of their filling leave few pages half empty.
            assert!(most > 64 || pages <= 100, "{pages} pages for {}", arena.len());
        }
        for list in &mut lists {
            while arena.pop(list).is_some() {}
        }
        assert!(arena.is_empty() && arena.pages.open_pages() <= 33);
    }

    /// Half a page of free slots need not go back and forth.
    #[test]
    fn free_slots_of_pages_are_at_hand() {
        let mut arena = Arena::new(10_000, 0, Memory::AsNeeded).unwrap();
        let mut list = List::EMPTY;
        for handle in 0..100 {
            arena.push(&mut list, &Packet::new(handle, 64)).unwrap();
        }
        for free in (1..=AT_HAND).chain([1, 2]) {
            arena.pop(&mut list);
            assert_eq!(arena.free.len(), free as usize);
        }
        assert_eq!(arena.len(), 100 - AT_HAND - 2);
    }

    #[test]
    fn room_is_taken_where_it_differs_and_packets_fit() {
        let kinds = [Memory::Reserved, Memory::AsNeeded];
        for (memory, other) in kinds.into_iter().flat_map(|m| kinds.map(|other| (m, other))) {
            for (held, spare, room) in
                [(3, 2, 9), (3, 3, 3), (3, 4, 4), (3, 9, 9), (0, 1, 1), (3, 200, 200)]
            {
                let (mut arena, mut list) = (Arena::new(9, PAGE, memory).unwrap(), List::EMPTY);
                // The newest is the lowest of the free slots.
                let put = |arena: &mut Arena, list: &mut List, handle| {
                    arena.push(list, &Packet::new(handle, 64)).map(|(slot, _)| slot)
                };
                for handle in 0..held {
                    put(&mut arena, &mut list, handle).unwrap();
                }
                let mut spare = Arena::new(spare, PAGE, other).unwrap();
                arena.take_room(&mut spare, core::iter::once(&mut list));
                assert_eq!((arena.capacity(), u64::from(arena.len())), (room, held));
                assert!(spare.is_empty());
                let more =
                    (held..).take_while(|handle| put(&mut arena, &mut list, *handle).is_some());
                assert_eq!(held + more.count() as u64, room.into());
                let order = (0..u64::from(room))
                    .all(|handle| arena.pop(&mut list).map(|packet| packet.handle) == Some(handle));
                assert!(order && arena.is_empty());
            }
        }
    }

    #[test]
    fn what_is_released_too_often_allocates_nothing() {
        let mut arena = Arena::new(4, PAGE, Memory::Reserved).unwrap();
        let mut list = List::EMPTY;
        let (slot, _) = arena.push(&mut list, &Packet::new(1, 64)).unwrap();
        let room = arena.free.capacity();
        (0..2 * room).for_each(|_| _ = arena.release(slot));
        assert_eq!((arena.free.len(), arena.free.capacity()), (room, room));
        assert!(arena.release(99).is_none());
    }

    #[test]
    fn a_packet_can_be_taken_from_the_middle_and_the_end() {
        let mut arena = Arena::new(4, PAGE, Memory::Reserved).unwrap();
        let mut list = List::EMPTY;
        let slots: [u32; 3] =
            core::array::from_fn(|i| arena.push(&mut list, &Packet::new(i as u64, 64)).unwrap().0);
        assert_eq!(arena.remove_after(&mut list, Some(slots[0])).unwrap().handle, 1);
        assert_eq!(arena.remove_after(&mut list, Some(slots[0])).unwrap().handle, 2);
        assert_eq!(list.tail(), Some(slots[0]));
        arena.push(&mut list, &Packet::new(5, 64)).unwrap();
        assert_eq!(arena.remove_after(&mut list, None).unwrap().handle, 0);
        assert_eq!(arena.pop(&mut list).unwrap().handle, 5);
        assert!(arena.is_empty());
    }
}
