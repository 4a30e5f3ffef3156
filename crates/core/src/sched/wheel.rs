//! Flows in debt, by the round in which they will have paid.
//!
//! This is a hierarchical timing wheel (Varghese and Lauck 1987) whose time is rounds of deficit
//! round robin.
//!
//! A flow that owes k quanta is looked at k times before it may send. Where many flows owe much,
//! nearly all looks are in vain: 1,000 flows of one host in CAKE get 1.5 bytes a round each. Here a
//! flow gets its k quanta at once and waits for k rounds out of sight.
//!
//! Five levels of 1,024 slots; a slot of level n covers 8^n rounds. Rounds are rounded up to a
//! slot's, and paid for: a flow loses nothing by it. Slots must be many: flows that are due
//! together are served together, and make the others wait. With CAKE's least quantum of 300 bytes,
//! and 1,000 flows of a host, a full packet takes 5,000 rounds: 625 slots of level 1. Joining, and
//! finding the next round with anything due, take constant time.
//!
//! Caller's rule: [`Wheel::advance`] only when all that was due before has had its turn.

use alloc::vec::Vec;

use super::active::{ActiveList, Turns};
use super::Scheduled;
use crate::memory::{reserved, Memory, NoMemory};
use crate::room;

const LEVELS: usize = 5;
/// A slot covers eight times as many rounds as one of the level below.
const SHIFT: usize = 3;
/// Slots of a level.
const SLOTS: u64 = (WORDS * 64) as u64;
/// Words of 64 slots.
const WORDS: usize = 16;
/// Slots ahead that a wait may reach: fewer than there are, for rounding up.
const REACH: u64 = SLOTS - 4;
/// The longest wait. Who owes more waits again.
const MOST_ROUNDS: u64 = REACH << (SHIFT * (LEVELS - 1));

/// The wheel.
#[derive(Clone, Debug)]
pub struct Wheel<L = ActiveList> {
    /// Rounds so far.
    round: u64,
    levels: [Level; LEVELS],
    /// The slots of all levels, level by level: the flows that are due then.
    slots: Vec<L>,
}

/// Slots of equal length.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// Slots that have flows, a bit each.
    occupied: [u64; WORDS],
    /// Words of `occupied` that are not zero, a bit each.
    summary: u16,
}

impl Level {
    const EMPTY: Level = Level { occupied: [0; WORDS], summary: 0 };

    /// `slot` has flows; says whether it had some before.
    fn occupy(&mut self, slot: usize) -> bool {
        let slot = slot % SLOTS as usize;
        let (word, bit) = (slot / 64, 1 << (slot % 64));
        let had_flows = self.occupied[word] & bit != 0;
        self.occupied[word] |= bit;
        self.summary |= 1 << word;
        had_flows
    }

    /// `slot` has no flows any more.
    fn vacate(&mut self, slot: usize) {
        let slot = slot % SLOTS as usize;
        let word = slot / 64;
        self.occupied[word] &= !(1 << (slot % 64));
        if self.occupied[word] == 0 {
            self.summary &= !(1 << word);
        }
    }

    /// Slots from `slot` on to the next one with flows, going round: zero if it has some itself.
    fn distance(&self, slot: usize) -> Option<u64> {
        let slot = slot % SLOTS as usize;
        let word = slot / 64;
        let here = self.occupied[word] >> (slot % 64);
        if here != 0 {
            return Some(here.trailing_zeros().into());
        }
        if self.summary == 0 {
            return None;
        }
        // The next word in turn; this one again, if there is no other.
        let ahead = self.summary.rotate_right((word as u32 + 1) % 16).trailing_zeros() as usize;
        let next = (word + 1 + ahead) % WORDS;
        let found = 64 * (word + 1 + ahead) + self.occupied[next].trailing_zeros() as usize;
        Some((found - slot) as u64)
    }
}

impl<L: Turns> Wheel<L> {
    /// A wheel in which no flow waits; without slots, if memory is to be taken as needed.
    pub fn new(memory: Memory) -> Result<Wheel<L>, NoMemory> {
        let mut wheel = Wheel { round: 0, levels: [Level::EMPTY; LEVELS], slots: Vec::new() };
        if memory == Memory::Reserved && !wheel.has_slots() {
            return Err(NoMemory);
        }
        Ok(wheel)
    }

    /// True if flows can wait; where need be, memory is taken for it.
    #[inline]
    pub fn has_slots(&mut self) -> bool {
        !self.slots.is_empty() || self.open().is_ok()
    }

    #[cold]
    fn open(&mut self) -> Result<(), NoMemory> {
        let all = LEVELS * SLOTS as usize;
        let mut slots = reserved(all)?;
        for _ in 0..all {
            room::push(&mut slots, L::default()).ok_or(NoMemory)?;
        }
        self.slots = slots;
        Ok(())
    }

    /// True if no flow waits.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.levels.iter().all(|level| level.summary == 0)
    }

    /// Forgets all flows.
    pub fn clear(&mut self) {
        for level in &mut self.levels {
            *level = Level::EMPTY;
        }
    }

    /// `flow`, which is in debt and in no list, waits until it has paid. It gets `quantum` bytes a
    /// round, as a number of 16 binary places, above zero.
    pub fn wait<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, quantum: u64) {
        let Some(debtor) = flows.get_mut(flow as usize) else { return };
        let account = debtor.account();
        let debt = (1 - i64::from(account.deficit)).max(1) as u64;
        let needed = (debt << 16).div_ceil(quantum.max(1)).min(MOST_ROUNDS);
        let level = (0..LEVELS - 1).find(|level| needed <= REACH << (SHIFT * level));
        let level = level.unwrap_or(LEVELS - 1);
        let due = (self.round + needed).div_ceil(1 << (SHIFT * level));
        let rounds = (due << (SHIFT * level)) - self.round;
        account.credit(((rounds * quantum) >> 16) as u32);
        let slot = (due % SLOTS) as usize;
        let (levels, slots) = (&mut self.levels, &mut self.slots);
        let list = slots.get_mut(level * SLOTS as usize + slot);
        let (Some(list), Some(level)) = (list, levels.get_mut(level)) else { return };
        if !level.occupy(slot) {
            *list = L::default();
        }
        list.push(flows, flow);
    }

    /// The flows of the next round in which any are due.
    pub fn advance<F: Scheduled>(&mut self, flows: &mut [F]) -> L {
        let due: [u64; LEVELS] = core::array::from_fn(|level| self.next_due(level));
        let mut turns = L::default();
        let next = due.into_iter().min().unwrap_or(u64::MAX);
        if next == u64::MAX {
            return turns;
        }
        self.round = next;
        for (number, level) in self.levels.iter_mut().enumerate() {
            if due[number] == next {
                let slot = ((next >> (SHIFT * number)) % SLOTS) as usize;
                level.vacate(slot);
                if let Some(&list) = self.slots.get(number * SLOTS as usize + slot) {
                    turns.append(flows, list);
                }
            }
        }
        turns
    }

    /// The next round in which flows of `level` are due; the end of time if there are none.
    fn next_due(&self, level: usize) -> u64 {
        let first = (self.round >> (SHIFT * level)) + 1;
        let distance = self.levels[level].distance((first % SLOTS) as usize);
        distance.map_or(u64::MAX, |distance| (first + distance) << (SHIFT * level))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Flow;
    use super::*;
    use crate::random::Random;
    use std::vec::Vec;

    #[test]
    fn who_waits_is_forgotten_with_the_others() {
        let mut wheel = Wheel::<ActiveList>::new(Memory::Reserved).unwrap();
        let mut flows = std::vec![Flow::default(); 2];
        for (flow, debt) in [(0, 7), (1, 1 << 20)] {
            flows[flow as usize].account.deficit = -debt;
            wheel.wait(&mut flows, flow, 1 << 16);
        }
        assert!(!wheel.is_empty());
        wheel.clear();
        assert!(wheel.is_empty() && wheel.advance(&mut flows).is_empty());
    }

    #[test]
    fn a_debt_takes_as_many_rounds_as_its_quanta() {
        let mut random = Random::new(3);
        let mut wheel = Wheel::<ActiveList>::new(Memory::Reserved).unwrap();
        for _ in 0..20_000 {
            let mut flows = std::vec![Flow::default(); 1];
            let debt = (random.u32() >> (random.u32() % 32)).min(1 << 20) as i32;
            let quantum = u64::from(random.u32() >> (random.u32() % 22)).max(1);
            flows[0].account.deficit = -debt;
            let (start, mut waits) = (wheel.round, 0);
            while flows[0].account.deficit <= 0 {
                wheel.wait(&mut flows, 0, quantum);
                waits += 1;
                let mut due = wheel.advance(&mut flows);
                assert_eq!(due.first(), Some(0));
                due.pop(&mut flows);
                assert!(due.is_empty() && wheel.is_empty());
            }
            let (rounds, needed) =
                (wheel.round - start, ((debt as u64 + 1) << 16).div_ceil(quantum));
            assert!((needed..=needed + needed / 127 + 1).contains(&rounds), "{needed}: {rounds}");
            let paid = (flows[0].account.deficit + debt) as u64;
            assert!(
                paid.abs_diff((rounds * quantum) >> 16) <= waits,
                "{rounds} of {quantum}: {paid}"
            );
        }
    }

    #[test]
    fn flows_come_in_the_order_of_their_rounds() {
        let mut wheel = Wheel::<ActiveList>::new(Memory::Reserved).unwrap();
        let mut flows = std::vec![Flow::default(); 500];
        let mut random = Random::new(5);
        for flow in 0..500 {
            flows[flow as usize].account.deficit = -(random.below(1 << 19) as i32);
            wheel.wait(&mut flows, flow, 300 << 16);
        }
        let (mut order, mut last) = (Vec::new(), 0);
        while !wheel.is_empty() {
            let mut due = wheel.advance(&mut flows);
            assert!(wheel.round > last);
            last = wheel.round;
            while let Some(flow) = due.first() {
                due.pop(&mut flows);
                assert!(flows[flow as usize].account.deficit > 0);
                order.push(flow);
            }
        }
        order.sort_unstable();
        assert_eq!(order, (0..500).collect::<Vec<u32>>());
    }
}
