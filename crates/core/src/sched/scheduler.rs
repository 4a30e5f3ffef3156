//! The interface of schedulers: what disciplines with many flows are built on.
//!
//! The caller of a [`Scheduler`] says what happens to a flow's queue, and asks for the next flow to
//! serve. The scheduler alone moves flows between its lists. Lengths of first packets are asked for
//! only where a scheduler goes by them (DRR++ does not).
//!
//! Caller's rules: [`Scheduler::arrived`] after each packet is queued. [`Scheduler::choose`] for a
//! flow to take packets from, then [`Scheduler::sent`] or [`Scheduler::found_empty`] for that flow.
//! [`Scheduler::dropped`] when a flow lost packets otherwise.

use super::Scheduled;
use crate::steps::Budget;

/// Length of a flow's first packet, if it has one.
pub trait Head<F>: FnMut(&mut F) -> Option<u32> {}

impl<F, H: FnMut(&mut F) -> Option<u32>> Head<F> for H {}

/// A scheduler as its callers see it.
pub trait Scheduler<F: Scheduled> {
    /// A packet has been queued for `flow`. True if the flow had been idle.
    fn arrived(&mut self, flows: &mut [F], flow: u32, quantum: u32, head: impl Head<F>) -> bool;

    /// The flow whose turn it is. `quantum` gives a flow's quantum. None if there is no flow, or
    /// `budget` is spent.
    fn choose(
        &mut self,
        flows: &mut [F],
        head: impl Head<F>,
        quantum: impl FnMut(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32>;

    /// `flow`, which was chosen, has sent a packet of `len` bytes.
    fn sent(&mut self, flows: &mut [F], flow: u32, len: u32, head: impl Head<F>);

    /// Packets of `flow` were dropped; `head` is the length of the one that is first now.
    fn dropped(&mut self, flows: &mut [F], flow: u32, head: Option<u32>);

    /// `flow`, which was chosen, had no packet to send.
    #[inline(always)]
    fn found_empty(&mut self, flows: &mut [F], flow: u32) {
        self.dropped(flows, flow, None);
    }
}
