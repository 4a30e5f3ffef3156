//! The work of one call, counted in steps: a bound that holds at every reachable state.
//!
//! A step is one round of a loop whose length depends on the queues: a flow visited, a packet
//! dropped, a level of a heap. The loops of a call share a [`Budget`]. When it is spent, the rest
//! is left to the next call: `dequeue` then returns None while `next_event` says "now".
//!
//! Counting exists only with the feature `count-steps`, which the crate's tests and the fuzz
//! targets turn on; elsewhere a step costs nothing.

use core::cell::Cell;

/// Rounds of a loop after which it takes a shorter way, where there is one. No recorded run of
/// Linux's disciplines needs more than 501.
pub const PER_LOOP: u32 = 1_024;

/// Most steps of a call of `enqueue` or `dequeue`: below 20 µs, as a step takes 2 to 10 ns.
///
/// One thing is not counted: the building of Linux's heap of 8,192 queues (20 to 35 µs). cake does
/// it at the first overflow, where it is to decide as Linux does and without `host-guard`. It does
/// it again only after 65,535 packets sent without an overflow, or if an empty queue was found at
/// the top.
pub const MOST: u64 = 3 * PER_LOOP as u64;

/// Most classes of a discipline: each may have to be looked at in one call.
pub const MOST_CLASSES: usize = PER_LOOP as usize;

/// Work left to a call, shared by all of its loops.
#[derive(Debug)]
pub struct Budget(Cell<u32>);

impl Default for Budget {
    #[inline(always)]
    fn default() -> Budget {
        Budget(Cell::new(Budget::STEPS))
    }
}

impl Budget {
    const STEPS: u32 = 2 * PER_LOOP;
    /// Price of asking a discipline below, whose own steps are not known: four in a call.
    pub const CHILD: u32 = Budget::STEPS / 4;

    /// One step; false if there is none left.
    #[inline(always)]
    pub fn spend(&self) -> bool {
        self.spend_above(0)
    }

    /// One step of a loop that has a shorter way; false if it is to take that.
    #[inline(always)]
    pub fn spend_at_ease(&self) -> bool {
        self.spend_above(PER_LOOP)
    }

    #[inline(always)]
    fn spend_above(&self, kept: u32) -> bool {
        let left = self.0.get();
        if left <= kept {
            return false;
        }
        step();
        self.0.set(left - 1);
        true
    }

    /// Lends all that is left to `call`, which is not inlined: whose address nobody has stays in a
    /// register.
    #[inline(always)]
    pub fn lend<T>(&self, call: impl FnOnce(&Budget) -> T) -> T {
        let lent = Budget(Cell::new(self.0.get()));
        let result = call(&lent);
        self.0.set(lent.0.get());
        result
    }

    /// Takes off so many steps, for work that is not counted by [`Budget::spend`].
    #[inline(always)]
    pub fn spend_on(&self, steps: u32) {
        self.0.set(self.0.get().saturating_sub(steps));
    }

    /// The call has done enough.
    pub fn exhaust(&self) {
        self.0.set(0);
    }

    /// Steps spent.
    #[inline(always)]
    pub fn used(&self) -> u32 {
        Budget::STEPS - self.0.get()
    }

    /// True if the call has done so much that it takes shorter ways.
    #[inline(always)]
    pub fn is_short(&self) -> bool {
        self.0.get() <= PER_LOOP
    }

    /// True if nothing is left.
    #[inline(always)]
    pub fn is_spent(&self) -> bool {
        self.0.get() == 0
    }
}

#[cfg(feature = "count-steps")]
mod counting {
    extern crate std;

    use core::cell::Cell;

    std::thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn step() {
        STEPS.with(|steps| steps.set(steps.get() + 1));
    }

    /// Steps of this thread since the last call of this function.
    pub fn take() -> u64 {
        STEPS.with(|steps| steps.take())
    }
}

#[cfg(feature = "count-steps")]
pub use counting::take;

/// One round of a loop whose length depends on what is queued.
#[inline(always)]
pub(crate) fn step() {
    #[cfg(feature = "count-steps")]
    counting::step();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_taken_off_a_budget_until_nothing_is_left() {
        let budget = Budget::default();
        take();
        assert!((0..3).all(|_| budget.spend()) && budget.used() == 3);
        assert_eq!((take(), take()), (3, 0));
        budget.spend_on(PER_LOOP - 4);
        assert!(budget.used() == PER_LOOP - 1 && !budget.is_short());
        assert!(budget.spend_at_ease() && budget.is_short() && !budget.spend_at_ease());
        budget.lend(|lent| lent.spend_on(5));
        assert_eq!((budget.used(), take()), (PER_LOOP + 5, 1));
        let spent = Budget::default();
        spent.exhaust();
        budget.spend_on(u32::MAX);
        for budget in [budget, spent] {
            assert!(budget.is_spent() && !budget.spend());
            assert_eq!((budget.used(), take()), (2 * PER_LOOP, 0));
        }
    }
}
