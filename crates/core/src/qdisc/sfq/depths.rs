//! Slots by the number of their packets, so that the longest is at hand at any time.
//!
//! One list for each number; a slot that gains or loses a packet moves to the front of the next
//! list. Of equally long slots the one that became so last counts as the longest. Of empty ones the
//! one that became so last is used first.

use alloc::boxed::Box;

use crate::memory::{filled, NoMemory};
use crate::sched::active::Turns;
use crate::sched::links::{Linked, Links};
use crate::sched::rotation::Rotation;

/// Longest slot.
pub(super) const MAX_DEPTH: u32 = 127;
/// One list for each number of packets.
const LISTS: usize = MAX_DEPTH as usize + 1;

/// The lists.
#[derive(Clone, Debug)]
pub(super) struct Depths {
    slots: Box<[Slot]>,
    lists: [Rotation; LISTS],
    deepest: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    links: Links,
    packets: u32,
}

impl Linked for Slot {
    #[inline]
    fn links(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl Depths {
    /// `slots` empty slots; the last of them is used first.
    pub(super) fn new(slots: u32) -> Result<Depths, NoMemory> {
        let mut depths = Depths {
            slots: filled(slots as usize, Slot::default())?,
            lists: [Rotation::default(); LISTS],
            deepest: 0,
        };
        for slot in 0..slots {
            depths.lists[0].push_front(&mut depths.slots, slot);
        }
        Ok(depths)
    }

    /// Packets in `slot`.
    #[inline]
    pub(super) fn packets(&self, slot: u32) -> u32 {
        self.slots.get(slot as usize).map_or(0, |slot| slot.packets)
    }

    /// An empty slot, if there is one.
    #[inline]
    pub(super) fn free(&self) -> Option<u32> {
        self.lists[0].first()
    }

    /// The longest slot and its packets, if any.
    #[inline]
    pub(super) fn longest(&self) -> Option<(u32, u32)> {
        let slot = self.lists.get(self.deepest as usize)?.first()?;
        (self.deepest > 0).then_some((slot, self.deepest))
    }

    /// `slot`, which has fewer than [`MAX_DEPTH`], has got a packet.
    #[inline]
    pub(super) fn grown(&mut self, slot: u32) {
        let packets = self.packets(slot) + 1;
        self.move_to(slot, packets);
        self.deepest = self.deepest.max(packets);
    }

    /// `slot`, which was not empty, has lost a packet.
    #[inline]
    pub(super) fn shrunk(&mut self, slot: u32) {
        let packets = self.packets(slot);
        self.move_to(slot, packets.saturating_sub(1));
        if packets == self.deepest && self.lists[packets as usize % LISTS].is_empty() {
            self.deepest -= 1;
        }
    }

    #[inline]
    fn move_to(&mut self, slot: u32, packets: u32) {
        let Some(moved) = self.slots.get_mut(slot as usize) else { return };
        let before = core::mem::replace(&mut moved.packets, packets);
        self.lists[before as usize % LISTS].remove(&mut self.slots, slot);
        self.lists[packets as usize % LISTS].push_front(&mut self.slots, slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_and_latest_is_at_hand() {
        let mut depths = Depths::new(3).unwrap();
        assert_eq!((depths.longest(), depths.free()), (None, Some(2)));
        depths.grown(2);
        assert_eq!((depths.longest(), depths.free()), (Some((2, 1)), Some(1)));
        depths.grown(1);
        depths.grown(1);
        depths.grown(2);
        assert_eq!(depths.longest(), Some((2, 2)));
        depths.shrunk(2);
        assert_eq!(depths.longest(), Some((1, 2)));
        depths.shrunk(1);
        assert_eq!(depths.longest(), Some((1, 1)));
        depths.shrunk(2);
        depths.shrunk(1);
        assert_eq!((depths.longest(), depths.free()), (None, Some(1)));
    }
}
