//! DRR++ as FQ-CoDel has it (RFC 8290, section 4.2): flows without a standing queue go first.
//!
//! Two lists. A flow that was idle enters `new` with one quantum and is served from there at
//! once; when the quantum is used up it joins `old`, where flows share by deficit round robin. A
//! flow that is found empty leaves; but from `new` it has to pass through `old` first if anybody
//! waits there, or a stream of short-lived turns could starve the others.
//!
//! Caller's rule: [`Sparse::activate`] for each arrival; [`Sparse::choose`] for a flow to take a
//! packet from, then charge its account, or [`Sparse::found_empty`] if it had none.
//!
//! Both loops end: a choice moves one flow at a time from debt towards credit, and a flow that is
//! found empty leaves after two turns at most.

use super::active::ActiveList;
use super::{Scheduled, Standing};

/// The two lists.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sparse {
    new: ActiveList,
    old: ActiveList,
}

impl Sparse {
    /// True if no flow stands here.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.old.is_empty()
    }

    /// A packet has come for `flow`. True if the flow had been idle.
    #[inline(always)]
    pub fn activate<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, quantum: u32) -> bool {
        if flows[flow as usize].account().standing != Standing::Idle {
            return false;
        }
        self.enter(flows, flow, quantum);
        true
    }

    /// `flow`, which stands nowhere, becomes a new one.
    #[inline(always)]
    pub fn enter<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, quantum: u32) {
        let account = flows[flow as usize].account();
        account.standing = Standing::New;
        account.open(quantum);
        self.new.push(flows, flow);
    }

    /// The flow whose turn it is. Old debts are paid on the way. `quantum` gives a flow's quantum,
    /// which must be above zero sooner or later, and is told whether the flow has just passed from
    /// the new ones to the old.
    #[inline(always)]
    pub fn choose<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        mut quantum: impl FnMut(&mut F, bool) -> u32,
    ) -> Option<u32> {
        while let Some(first) = self.new.first() {
            crate::steps::step();
            let flow = &mut flows[first as usize];
            if flow.account().deficit > 0 {
                return Some(first);
            }
            flow.account().standing = Standing::Old;
            let quantum = quantum(flow, true);
            flow.account().credit(quantum);
            self.new.pop(flows);
            self.old.push(flows, first);
        }
        while let Some(first) = self.old.first() {
            crate::steps::step();
            let flow = &mut flows[first as usize];
            if flow.account().deficit > 0 {
                return Some(first);
            }
            let quantum = quantum(flow, false);
            flow.account().credit(quantum);
            self.old.rotate(flows);
        }
        None
    }

    /// `flow`, which was just chosen, leaves.
    #[inline(always)]
    pub fn leave<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        flows[flow as usize].account().standing = Standing::Idle;
        // What was chosen stands first.
        if self.new.is_empty() {
            self.old.pop(flows);
        } else {
            self.new.pop(flows);
        }
    }

    /// `flow`, which was just chosen, has no packet.
    #[inline(always)]
    pub fn found_empty<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        let was_new = !self.new.is_empty();
        self.leave(flows, flow);
        if was_new && !self.old.is_empty() {
            flows[flow as usize].account().standing = Standing::Old;
            self.old.push(flows, flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Account;
    use super::*;
    use std::vec;

    #[derive(Clone, Default)]
    struct Flow(Account);
    impl Scheduled for Flow {
        fn account(&mut self) -> &mut Account {
            &mut self.0
        }
    }

    #[test]
    fn a_new_flow_goes_first_until_its_quantum_is_used_up() {
        let mut flows = vec![Flow::default(); 3];
        let mut sparse = Sparse::default();
        assert!(sparse.activate(&mut flows, 0, 1000) && sparse.activate(&mut flows, 1, 1000));
        assert!(!sparse.activate(&mut flows, 0, 1000));
        flows[0].0.charge(1000);
        // Flow 0 is in `old` now; flow 1 is still new, and so is flow 2.
        assert_eq!(sparse.choose(&mut flows, |_, _| 1000), Some(1));
        sparse.activate(&mut flows, 2, 1000);
        assert_eq!(sparse.choose(&mut flows, |_, _| 1000), Some(1));
        flows[1].0.charge(1500);
        assert_eq!(sparse.choose(&mut flows, |_, _| 1000), Some(2));
        flows[2].0.charge(999);
        assert_eq!(sparse.choose(&mut flows, |_, _| 1000), Some(2));
        // Found empty, it may not come back as new before flows 0 and 1 had their turns.
        sparse.found_empty(&mut flows, 2);
        assert_eq!(flows[2].0.standing, Standing::Old);
        assert!(!sparse.activate(&mut flows, 2, 1000));
        assert_eq!(sparse.choose(&mut flows, |_, _| 1000), Some(0));
        assert_eq!(flows[0].0.deficit, 1000);
    }

    #[test]
    fn an_empty_flow_leaves_at_once_if_nobody_waits() {
        let mut flows = vec![Flow::default(); 1];
        let mut sparse = Sparse::default();
        sparse.activate(&mut flows, 0, 1000);
        sparse.found_empty(&mut flows, 0);
        assert_eq!(sparse.choose(&mut flows, |_, _| 1000), None);
        assert!(sparse.activate(&mut flows, 0, 1000));
    }
}
