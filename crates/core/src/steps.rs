//! The work of one call, counted in steps: a bound that holds at every reachable state.
//!
//! A step is one round of a loop whose length depends on what is queued: a flow visited, a packet
//! dropped, a level of a heap. A loop that could go on for longer stops after [`PER_LOOP`] rounds
//! and leaves the rest to the next call: `dequeue` then returns None while `next_event` says "now".
//!
//! Counting exists only with the feature `count-steps`, which the crate's tests and the fuzz targets
//! turn on; elsewhere [`step`] is empty.

/// Most rounds of a loop in one call. No recorded run of Linux's disciplines needs more than 501.
pub const PER_LOOP: u32 = 1_024;

/// Most steps of a call of `enqueue` or `dequeue`: some 20 µs, as a step takes 2 to 10 ns.
pub const MOST: u64 = 3 * PER_LOOP as u64;

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
