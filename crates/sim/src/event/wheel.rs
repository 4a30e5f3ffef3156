//! Many timers in the order of their times: a wheel.
//!
//! TCP's timers fire on ticks of a millisecond, so that among thousands of endpoints hundreds are
//! due at once. A heap of them would be walked from top to bottom for each, through memory that has
//! left the cache. Here a timer is put at the end of the list of its millisecond. When that comes
//! next, the list is sorted, which mostly it is already, and read from its beginning. The timers
//! that come soon are then known, and their owners can be fetched meanwhile.
//!
//! Events beyond the wheel, or in a millisecond that was opened already, have no place here.

use simnel_core::Time;

use super::NOTHING;

/// Length of a slot of the wheel: the tick of TCP's timers.
const SLOT_NS: u64 = 1_000_000;
/// Slots: most timers are shorter than half a second.
const SLOTS: usize = 512;

/// Timers in a block of a slot's list: with its header, three cache lines.
const BLOCK: usize = 11;
/// No block.
const NO_BLOCK: u32 = u32::MAX;

/// Part of a slot's list. Lists share their blocks: of vectors of their own, most would keep the
/// room that the fullest slot has needed.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
struct Block {
    length: u32,
    /// The block that follows in the list, or among those that are free.
    next: u32,
    timers: [u128; BLOCK],
}

const _: () = assert!(size_of::<Block>() == 192);

/// A slot's list, from its first block to its last.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

/// Pending timers, but for those that have no place.
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    /// The opened slot's timers in order, and which of them is next.
    opened: Vec<u128>,
    next: usize,
    /// Number of the opened slot, counted from time zero.
    number: u64,
    /// Timers of the slots that follow, each at its number modulo [`SLOTS`].
    slots: [List; SLOTS],
    /// Those of them that have timers, a bit each.
    occupied: [u64; SLOTS / 64],
    blocks: Vec<Block>,
    /// First of the blocks that are not in use: the last that was is in the cache.
    free: u32,
}

impl Default for Wheel {
    fn default() -> Wheel {
        Wheel {
            opened: Vec::new(),
            next: 0,
            number: 0,
            slots: [List { first: NO_BLOCK, last: NO_BLOCK }; SLOTS],
            occupied: [0; SLOTS / 64],
            blocks: Vec::new(),
            free: NO_BLOCK,
        }
    }
}

impl Wheel {
    /// The least entry.
    #[inline(always)]
    pub fn first(&self) -> u128 {
        self.opened.get(self.next).copied().unwrap_or(NOTHING)
    }

    /// The entry that comes after `n` others, if that is known.
    #[inline]
    pub fn upcoming(&self, n: usize) -> Option<u128> {
        self.opened.get(self.next + n).copied()
    }

    /// Takes an entry in, at a time at or after `now`. False if there is no place for it.
    #[inline(never)]
    pub fn push(&mut self, entry: u128, now: Time) -> bool {
        let is_idle = self.next == self.opened.len();
        if is_idle {
            // The wheel follows the time, so that there are slots for what comes next.
            self.number = self.number.max(now.0 / SLOT_NS);
        }
        let number = (entry >> 64) as u64 / SLOT_NS;
        // Of the opened slot and those before it, the difference is beyond the wheel as well.
        if number.wrapping_sub(self.number + 1) >= SLOTS as u64 - 1 {
            return false;
        }
        self.append(number as usize % SLOTS, entry);
        if is_idle {
            self.open();
        }
        true
    }

    /// Takes the least entry out; there must be one.
    #[inline(never)]
    pub fn pop(&mut self) {
        self.next += 1;
        if self.next == self.opened.len() {
            self.open();
        }
    }

    /// Puts an entry at the end of a slot's list.
    fn append(&mut self, slot: usize, entry: u128) {
        let (word, bit) = (slot / 64, 1 << (slot % 64));
        let last = self.slots[slot].last;
        let block = if self.occupied[word] & bit == 0 {
            self.occupied[word] |= bit;
            let block = self.take_block();
            self.slots[slot] = List { first: block, last: block };
            block
        } else if self.blocks[last as usize].length as usize == BLOCK {
            let block = self.take_block();
            self.blocks[last as usize].next = block;
            self.slots[slot].last = block;
            block
        } else {
            last
        };
        let block = &mut self.blocks[block as usize];
        block.timers[block.length as usize] = entry;
        block.length += 1;
    }

    /// An empty block.
    fn take_block(&mut self) -> u32 {
        if self.free == NO_BLOCK {
            self.blocks.push(Block { length: 0, next: NO_BLOCK, timers: [NOTHING; BLOCK] });
            return (self.blocks.len() - 1) as u32;
        }
        let taken = self.free;
        let block = &mut self.blocks[taken as usize];
        (self.free, block.next, block.length) = (block.next, NO_BLOCK, 0);
        taken
    }

    /// Opens the first slot that has timers, if there is one. The one before must be empty.
    fn open(&mut self) {
        let start = (self.number as usize + 1) % SLOTS;
        let Some(ahead) = self.next_occupied(start) else { return };
        let slot = (start + ahead) % SLOTS;
        self.number += 1 + ahead as u64;
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        self.opened.clear();
        let List { first, last } = self.slots[slot];
        let mut at = first;
        while let Some(block) = self.blocks.get(at as usize) {
            self.opened.extend_from_slice(&block.timers[..block.length as usize]);
            at = block.next;
        }
        self.blocks[last as usize].next = self.free;
        self.free = first;
        self.opened.sort_unstable();
        self.next = 0;
    }

    /// Number of slots from `start` to the first one with timers.
    fn next_occupied(&self, start: usize) -> Option<usize> {
        let words = self.occupied.len();
        for n in 0..=words {
            let word = (start / 64 + n) % words;
            let mut bits = self.occupied[word];
            if n == 0 {
                bits &= u64::MAX << (start % 64);
            } else if n == words {
                bits &= !(u64::MAX << (start % 64));
            }
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                return Some((slot + SLOTS - start) % SLOTS);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simnel_core::random::Random;
    use std::collections::BTreeSet;

    #[test]
    fn timers_come_in_order() {
        let (mut wheel, mut model) = (Wheel::default(), BTreeSet::new());
        let mut random = Random::new(5);
        let (mut now, mut taken) = (0, 0);
        for step in 0..300_000u128 {
            // Grows to thousands, shrinks to nothing and idles, again and again.
            if random.below(100) < if step % 20_000 < 10_000 { 60 } else { 30 } {
                let ahead_ns = match random.below(4) {
                    // On a tick, within the opened slot, on the wheel, and beyond it.
                    0 => (now / SLOT_NS + 40) * SLOT_NS - now,
                    1 => u64::from(random.below(1_000)),
                    2 => u64::from(random.below(400_000_000)),
                    _ => u64::from(random.below(2_000_000_000)),
                };
                let entry = u128::from(now + ahead_ns) << 64 | step;
                if wheel.push(entry, Time(now)) {
                    model.insert(entry);
                    taken += 1;
                }
            } else if let Some(first) = model.pop_first() {
                assert_eq!(wheel.first(), first);
                wheel.pop();
                now = (first >> 64) as u64;
            } else {
                assert_eq!(wheel.first(), NOTHING);
                now += 3_000_000_000;
            }
        }
        assert!(taken > 50_000, "{taken}");
    }

    /// For minutes there is always a timer, a few or some hundred slots ahead: the wheel turns on,
    /// and most of them have their place.
    #[test]
    fn a_wheel_that_is_never_empty_stays_in_step() {
        let (mut wheel, mut model) = (Wheel::default(), BTreeSet::new());
        let mut random = Random::new(6);
        let (mut now, mut refused) = (0, 0);
        for step in 0..50_000u128 {
            let slots = u64::from(if random.below(2) == 0 { 2 } else { 2 + random.below(500) });
            let entry = u128::from(now + slots * SLOT_NS) << 64 | step;
            if wheel.push(entry, Time(now)) {
                model.insert(entry);
            } else {
                refused += 1;
            }
            if model.len() > 200 {
                assert_eq!(model.pop_first(), Some(wheel.first()));
                now = (wheel.first() >> 64) as u64;
                wheel.pop();
            }
        }
        assert!(now > 20_000 * SLOT_NS && refused < 10_000, "{now}: {refused} refused");
    }
}
