//! Flows in debt, by the round in which they will have paid: a hierarchical timing wheel (Varghese
//! and Lauck 1987) whose time is rounds of deficit round robin.
//!
//! A flow that owes k quanta is looked at k times before it may send. Where many flows owe much,
//! nearly all looks are in vain: 1,000 flows of one host in CAKE get 1.5 bytes a round each. Here a
//! flow gets its k quanta at once and waits for k rounds out of sight.
//!
//! Seven levels of 64 slots; a slot of level n covers 8^n rounds. Rounds are rounded up to a
//! slot's, and paid for: a flow waits at most a seventh longer than it must, and loses nothing by
//! it. Joining, and finding the next round with anything due, take constant time.
//!
//! Caller's rule: [`Wheel::advance`] only when all that was due before has had its turn.

use super::active::{ActiveList, Turns};
use super::Scheduled;

const LEVELS: usize = 7;
/// A slot covers eight times as many rounds as one of the level below.
const SHIFT: usize = 3;
/// Slots of a level, as many as a word has bits.
const SLOTS: u64 = 64;
/// Slots ahead that a wait may reach: fewer than there are, for rounding up.
const REACH: u64 = 60;
/// The longest wait. Who owes more waits again.
const MOST_ROUNDS: u64 = REACH << (SHIFT * (LEVELS - 1));

/// The wheel.
#[derive(Clone, Debug)]
pub struct Wheel<L = ActiveList> {
    /// Rounds so far.
    round: u64,
    /// Which slots of a level have flows.
    occupied: [u64; LEVELS],
    slots: [[L; SLOTS as usize]; LEVELS],
}

impl<L: Turns> Default for Wheel<L> {
    fn default() -> Wheel<L> {
        Wheel { round: 0, occupied: [0; LEVELS], slots: [[L::default(); SLOTS as usize]; LEVELS] }
    }
}

impl<L: Turns> Wheel<L> {
    /// True if no flow waits.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.occupied == [0; LEVELS]
    }

    /// Forgets all flows.
    pub fn clear(&mut self) {
        self.occupied = [0; LEVELS];
        self.slots = [[L::default(); SLOTS as usize]; LEVELS];
    }

    /// `flow`, which is in debt and in no list, waits until it has paid. It gets `quantum` bytes a
    /// round, as a number of 16 binary places, above zero.
    pub fn wait<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, quantum: u64) {
        let account = flows[flow as usize].account();
        let debt = (1 - i64::from(account.deficit)).max(1) as u64;
        let needed = (debt << 16).div_ceil(quantum.max(1)).min(MOST_ROUNDS);
        let level = (0..LEVELS - 1).find(|level| needed <= REACH << (SHIFT * level));
        let level = level.unwrap_or(LEVELS - 1);
        let due = (self.round + needed).div_ceil(1 << (SHIFT * level));
        let rounds = (due << (SHIFT * level)) - self.round;
        account.credit(((rounds * quantum) >> 16) as u32);
        let slot = (due % SLOTS) as usize;
        if self.occupied[level] & 1 << slot == 0 {
            self.slots[level][slot] = L::default();
        }
        self.slots[level][slot].push(flows, flow);
        self.occupied[level] |= 1 << slot;
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
        for level in (0..LEVELS).filter(|&level| due[level] == next) {
            let slot = ((next >> (SHIFT * level)) % SLOTS) as usize;
            self.occupied[level] &= !(1 << slot);
            turns.append(flows, self.slots[level][slot]);
        }
        turns
    }

    /// The next round in which flows of `level` are due; the end of time if there are none.
    fn next_due(&self, level: usize) -> u64 {
        let occupied = self.occupied[level];
        if occupied == 0 {
            return u64::MAX;
        }
        let first = (self.round >> (SHIFT * level)) + 1;
        let ahead = occupied.rotate_right((first % SLOTS) as u32).trailing_zeros();
        (first + u64::from(ahead)) << (SHIFT * level)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Account;
    use super::*;
    use crate::random::Random;
    use std::vec::Vec;

    #[derive(Clone, Default)]
    struct Flow(Account);
    impl Scheduled for Flow {
        fn account(&mut self) -> &mut Account {
            &mut self.0
        }
    }

    #[test]
    fn a_debt_takes_as_many_rounds_as_its_quanta() {
        let mut random = Random::new(3);
        let mut wheel = Wheel::<ActiveList>::default();
        for _ in 0..20_000 {
            let mut flows = std::vec![Flow::default(); 1];
            let debt = (random.u32() >> (random.u32() % 32)).min(1 << 20) as i32;
            let quantum = u64::from(random.u32() >> (random.u32() % 22)).max(1);
            flows[0].0.deficit = -debt;
            let start = wheel.round;
            while flows[0].0.deficit <= 0 {
                wheel.wait(&mut flows, 0, quantum);
                let mut due = wheel.advance(&mut flows);
                assert_eq!(due.first(), Some(0));
                due.pop(&mut flows);
                assert!(due.is_empty() && wheel.is_empty());
            }
            let (rounds, needed) =
                (wheel.round - start, ((debt as u64 + 1) << 16).div_ceil(quantum));
            assert!((needed..=needed + needed / 7 + 1).contains(&rounds), "{needed}: {rounds}");
            let paid = (flows[0].0.deficit + debt) as u64;
            assert!(paid.abs_diff((rounds * quantum) >> 16) <= 2, "{rounds} of {quantum}: {paid}");
        }
    }

    #[test]
    fn flows_come_in_the_order_of_their_rounds() {
        let mut wheel = Wheel::<ActiveList>::default();
        let mut flows = std::vec![Flow::default(); 500];
        let mut random = Random::new(5);
        for flow in 0..500 {
            flows[flow as usize].0.deficit = -(random.below(1 << 19) as i32);
            wheel.wait(&mut flows, flow, 300 << 16);
        }
        let (mut order, mut last) = (Vec::new(), 0);
        while !wheel.is_empty() {
            let mut due = wheel.advance(&mut flows);
            assert!(wheel.round > last);
            last = wheel.round;
            while let Some(flow) = due.first() {
                due.pop(&mut flows);
                assert!(flows[flow as usize].0.deficit > 0);
                order.push(flow);
            }
        }
        order.sort_unstable();
        assert_eq!(order, (0..500).collect::<Vec<u32>>());
    }
}
