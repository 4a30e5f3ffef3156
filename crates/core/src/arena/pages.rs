//! Pages of slots that come and go: what an arena is made of where memory is taken as needed.
//!
//! Free slots of a page are a list through their packets' links. Slots pass between pages and the
//! arena's stack of free ones several at a time. A page all of whose slots have come back keeps its
//! memory until all slots of another one have, too. So a queue that swings about a page's end takes
//! and gives nothing.

use alloc::vec::Vec;

use crate::memory::{growing, reserved, NoMemory};
use crate::packet::{Link, Packet};
use crate::room;
use crate::sched::active::Turns;
use crate::sched::links::{Linked, Links};
use crate::sched::rotation::Rotation;

/// Slots of a page: 4 KiB.
pub(crate) const PAGE: u32 = 64;

/// Pages by number: slot n lies in page n / [`PAGE`].
#[derive(Clone, Debug, Default)]
pub(super) struct Pages {
    /// The pages' memory, apart and dense: each look at a packet passes here.
    memory: Vec<Vec<Packet>>,
    /// As many.
    pages: Vec<Page>,
    /// Pages that there may be.
    count: usize,
    /// Pages before this one are never used.
    start: u32,
    /// Pages with free slots.
    with_room: Rotation,
    /// Pages without memory.
    vacant: Rotation,
    /// A page that is kept although all of its slots are free.
    idle: Option<u32>,
}

#[derive(Clone, Debug)]
struct Page {
    links: Links,
    /// The first of its free slots.
    first: Link,
    free: u32,
}

impl Linked for Page {
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Pages {
    /// Pages of `capacity` slots, without memory for any. Those before page `start` are never used.
    pub(super) fn new(capacity: u32, start: u32) -> Result<Pages, NoMemory> {
        let count = capacity.div_ceil(PAGE) as usize;
        Ok(Pages {
            memory: growing(count)?,
            pages: growing(count)?,
            count,
            start,
            ..Pages::default()
        })
    }

    /// Adds a page without memory, and gives its number. None if there are all, or no room.
    fn add(&mut self) -> Option<u32> {
        while self.pages.len() < self.count {
            let number = self.pages.len() as u32;
            // One may be left of a try for which there was no room.
            if self.memory.len() == self.pages.len() {
                room::push(&mut self.memory, Vec::new())?;
            }
            let page = Page { links: Links::default(), first: Link::END, free: 0 };
            room::push(&mut self.pages, page)?;
            if number >= self.start {
                self.vacant.push(&mut self.pages, number);
                return Some(number);
            }
        }
        None
    }

    /// True where memory is taken as needed.
    pub(super) fn are_used(&self) -> bool {
        self.count > 0
    }

    #[inline(always)]
    pub(super) fn get(&self, slot: u32) -> Option<&Packet> {
        self.memory.get((slot / PAGE) as usize)?.get((slot % PAGE) as usize)
    }

    #[inline(always)]
    pub(super) fn get_mut(&mut self, slot: u32) -> Option<&mut Packet> {
        self.memory.get_mut((slot / PAGE) as usize)?.get_mut((slot % PAGE) as usize)
    }

    /// Takes a free slot, with a page of its own if need be. None if there is none, or no memory.
    pub(super) fn take(&mut self) -> Option<u32> {
        if self.with_room.is_empty() {
            self.open()?;
        }
        let number = self.with_room.first()?;
        let page = self.pages.get_mut(number as usize)?;
        let slot = page.first.slot()?;
        let next = self.memory.get(number as usize)?.get((slot % PAGE) as usize)?.next;
        (page.first, page.free) = (next, page.free.wrapping_sub(1));
        let is_used_up = page.first.is_end();
        if is_used_up {
            self.with_room.pop(&mut self.pages);
        }
        if self.idle == Some(number) {
            self.idle = None;
        }
        Some(slot)
    }

    /// Gives `slot` back.
    pub(super) fn put(&mut self, slot: u32) {
        let number = slot / PAGE;
        let Some(page) = self.pages.get_mut(number as usize) else { return };
        let packets = self.memory.get_mut(number as usize);
        let packet = packets.and_then(|packets| packets.get_mut((slot % PAGE) as usize));
        let Some(packet) = packet else { return };
        packet.next = page.first;
        (page.first, page.free) = (Link::to(slot), page.free.wrapping_add(1));
        let free = page.free;
        if free == 1 {
            self.with_room.push(&mut self.pages, number);
        }
        if free == PAGE {
            if let Some(other) = self.idle.replace(number) {
                self.close(other);
            }
        }
    }

    /// Memory for another page.
    #[cold]
    fn open(&mut self) -> Option<()> {
        let number = self.vacant.first().or_else(|| self.add())?;
        let page = self.pages.get_mut(number as usize)?;
        let memory = self.memory.get_mut(number as usize)?;
        let mut packets = reserved(PAGE as usize).ok()?;
        let base = number * PAGE;
        let last = base + PAGE - 1;
        for slot in base..base + PAGE {
            let mut packet = Packet::new(0, 0);
            packet.next = if slot < last { Link::to(slot + 1) } else { Link::END };
            room::push(&mut packets, packet)?;
        }
        *memory = packets;
        (page.first, page.free) = (Link::to(base), PAGE);
        self.vacant.pop(&mut self.pages);
        self.with_room.push(&mut self.pages, number);
        self.idle = self.idle.or(Some(number));
        Some(())
    }

    /// Gives up the memory of a page whose slots are all free.
    #[cold]
    fn close(&mut self, number: u32) {
        self.with_room.remove(&mut self.pages, number);
        self.vacant.push(&mut self.pages, number);
        if let Some(memory) = self.memory.get_mut(number as usize) {
            *memory = Vec::new();
        }
        if let Some(page) = self.pages.get_mut(number as usize) {
            (page.first, page.free) = (Link::END, 0);
        }
    }

    /// There may be as many pages as in `spare`, which was never used, if those are more.
    pub(super) fn take_room(&mut self, spare: &mut Pages) {
        self.count = self.count.max(spare.count);
        room::take_larger(&mut self.memory, &mut spare.memory);
        room::take_larger(&mut self.pages, &mut spare.pages);
    }

    /// Pages that have memory.
    #[cfg(test)]
    pub(super) fn open_pages(&self) -> usize {
        self.memory.iter().filter(|packets| !packets.is_empty()).count()
    }
}
