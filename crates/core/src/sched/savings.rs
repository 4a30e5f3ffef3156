//! Limited deficit savings: DRR-LDS (Menth, Mehl and Veith, "Deficit Round Robin with Limited
//! Deficit Savings (DRR-LDS) for Fairness among TCP Users", section 3).
//!
//! With DRR a queue earns nothing while it is empty. So a user whose few connections leave the
//! queue empty now and then gets less than one whose many connections never do. Here empty queues
//! earn, too, up to a limit, and are served at once when a packet comes. Every flow is in one of
//! three lists (the paper's F, E and C):
//!
//! * *fresh*: empty, and its deficit is the limit;
//! * *eligible*: the deficit covers the first packet;
//! * *collecting*: all others.
//!
//! ```text
//!             packet comes                  sent or dropped, now empty, savings full
//!   fresh ------------------> eligible ------------------------------------------> fresh
//!   fresh <--- increase ----- collecting --- increase, packet comes ---> eligible
//!   eligible <- sent, next is covered -> eligible;  eligible -- otherwise --> collecting
//! ```
//!
//! Eligible flows are served in turn, one packet each. Only when there is none do those that
//! collect get a quantum each, in turn, until one becomes eligible or none collects.
//!
//! Two cases on which the paper is silent. If the first packet of a fresh flow is larger than the
//! limit, the flow collects. While it is occupied it may collect beyond the limit. If an AQM drops
//! the first packet and a larger one is sent in its place, the deficit falls below zero.
//!
//! Caller's rule: after anything that changes a flow's queue, [`Savings::settle`]. A choice ends at
//! the latest when its call has no budget left; the next call goes on. Debts of many quanta are
//! paid by a `Sweep`.

use core::ops::Range;

use super::active::Turns;
use super::rotation::Rotation;
use super::scheduler::{Head, Scheduler};
use super::sweep::{quanta_for, Sweep};
use super::{Account, Scheduled, Standing, MOST_BYTES, MOST_QUANTUM};
use crate::steps::Budget;

/// The three lists.
#[derive(Clone, Copy, Debug)]
pub struct Savings {
    /// D_max: what an empty queue may save, in bytes.
    limit: i32,
    fresh: Rotation,
    eligible: Rotation,
    collecting: Rotation,
    /// Over those that collect.
    sweep: Sweep,
}

impl Savings {
    /// A scheduler of the flows with these `numbers`, in which an empty one saves up to `limit`
    /// bytes. All of them must be empty, and become fresh.
    pub fn new<F: Scheduled>(limit: u32, flows: &mut [F], numbers: Range<u32>) -> Savings {
        let limit = limit.min(MOST_QUANTUM) as i32;
        let none = Rotation::default();
        let sweep = Sweep::default();
        let mut savings = Savings { limit, fresh: none, eligible: none, collecting: none, sweep };
        savings.restart(flows, numbers);
        savings
    }

    /// As new, for the flows with these `numbers`.
    pub fn restart<F: Scheduled>(&mut self, flows: &mut [F], numbers: Range<u32>) {
        (self.fresh, self.eligible) = (Rotation::default(), Rotation::default());
        (self.collecting, self.sweep) = (Rotation::default(), Sweep::default());
        for flow in numbers {
            let Some(fresh) = flows.get_mut(flow as usize) else { break };
            let account = fresh.account();
            account.deficit = self.limit;
            account.standing = Standing::Fresh;
            self.fresh.push(flows, flow);
        }
    }

    /// Puts `flow`, whose queue has changed, where it belongs. `head` is the length of its first
    /// packet. A flow that stays where it is keeps its turn.
    #[inline]
    pub fn settle<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        let Some(changed) = flows.get_mut(flow as usize) else { return };
        let account = changed.account();
        let due = self.classify(account, head);
        if due != account.standing {
            self.move_to(flows, flow, due);
        }
    }

    /// `flow`, which was chosen, has sent `len` bytes: its turn is over. `head` is the length of
    /// the packet that is now its first.
    #[inline]
    pub fn charge<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        len: u32,
        head: Option<u32>,
    ) {
        if let Some(flow) = flows.get_mut(flow as usize) {
            flow.account().charge(len);
        }
        self.end_turn(flows, flow, head);
    }

    /// As [`Savings::charge`], for a flow whose account its owner has charged.
    #[inline]
    pub fn end_turn<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        let Some(served) = flows.get_mut(flow as usize) else { return };
        let account = served.account();
        let due = self.classify(account, head);
        if account.standing != due {
            return self.move_to(flows, flow, due);
        }
        let list = self.list(due);
        list.remove(flows, flow);
        list.push(flows, flow);
    }

    /// The list for a flow (section 3.1). An empty one keeps no more than the limit.
    #[inline]
    fn classify(&self, account: &mut Account, head: Option<u32>) -> Standing {
        match head {
            Some(len) if account.covers(len) => Standing::Eligible,
            None if account.deficit >= self.limit => {
                account.deficit = self.limit;
                Standing::Fresh
            }
            _ => Standing::Collecting,
        }
    }

    /// Puts `flow` at the end of a list.
    #[inline]
    fn move_to<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, standing: Standing) {
        let Some(moved) = flows.get_mut(flow as usize) else { return };
        let from = core::mem::replace(&mut moved.account().standing, standing);
        if standing != Standing::Collecting {
            self.sweep.left(flow);
        }
        self.list(from).remove(flows, flow);
        self.list(standing).push(flows, flow);
    }

    #[inline]
    fn list(&mut self, standing: Standing) -> &mut Rotation {
        match standing {
            Standing::Fresh => &mut self.fresh,
            Standing::Eligible => &mut self.eligible,
            _ => &mut self.collecting,
        }
    }
}

impl<F: Scheduled> Scheduler<F> for Savings {
    #[inline(always)]
    fn arrived(&mut self, flows: &mut [F], flow: u32, _: u32, mut head: impl Head<F>) -> bool {
        let Some(busy) = flows.get_mut(flow as usize) else { return false };
        let was_fresh = busy.account().standing == Standing::Fresh;
        let head = head(busy);
        self.settle(flows, flow, head);
        was_fresh
    }

    /// The next flow whose deficit covers its first packet, which stays first until it is charged
    /// or settled.
    #[inline]
    fn choose(
        &mut self,
        flows: &mut [F],
        mut head: impl Head<F>,
        mut quantum: impl FnMut(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32> {
        loop {
            if let Some(first) = self.eligible.first() {
                self.sweep.end();
                return Some(first);
            }
            let (first, flow) = self.collecting.head(flows)?;
            if !budget.spend() {
                return None;
            }
            let (head, quantum) = (head(flow), quantum(flow).max(1));
            let account = flow.account();
            let mut quanta = 1;
            if self.sweep.is_on() || budget.used() > Sweep::AFTER {
                let wanted = head.map_or(self.limit, |len| len.min(MOST_BYTES) as i32);
                let short = i64::from(wanted) - i64::from(account.deficit);
                // The last look is not in vain.
                quanta = self.sweep.look(first, quanta_for(short, quantum).saturating_sub(1));
            }
            account.credit(quantum.saturating_mul(quanta));
            let due = self.classify(account, head);
            if due != Standing::Collecting {
                account.standing = due;
                self.sweep.left(first);
                self.collecting.pop(flows);
                self.list(due).push(flows, first);
            } else {
                self.collecting.rotate(flows);
            }
        }
    }

    #[inline(always)]
    fn sent(&mut self, flows: &mut [F], flow: u32, len: u32, mut head: impl Head<F>) {
        let Some(served) = flows.get_mut(flow as usize) else { return };
        let head = head(served);
        self.charge(flows, flow, len, head);
    }

    #[inline(always)]
    fn dropped(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        self.settle(flows, flow, head);
    }
}

#[cfg(test)]
#[path = "savings_tests.rs"]
mod tests;
