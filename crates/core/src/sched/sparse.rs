//! DRR++ as FQ-CoDel has it (RFC 8290, section 4.2): flows without a standing queue go first.
//!
//! Two rotations. A flow that was idle enters `new` with one quantum and is served from there at
//! once; when the quantum is used up it joins `old`, where flows share by deficit round robin. A
//! flow that is found empty leaves; but from `new` it has to pass through `old` first if anybody
//! waits there, or a stream of short-lived turns could starve the others.
//!
//! Caller's rule: [`Sparse::activate`] for each arrival; [`Sparse::choose`] for a flow to take a
//! packet from, then charge its account, or [`Sparse::found_empty`] if it had none.
//!
//! Both loops end: a choice moves one flow at a time from debt towards credit, and a flow that is
//! found empty leaves after two turns at most.

use super::rotation::Rotation;
use super::{Scheduled, Standing};

/// The two rotations.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sparse {
    new: Rotation,
    old: Rotation,
}

impl Sparse {
    /// A packet has come for `flow`. True if the flow had been idle.
    #[inline]
    pub fn activate<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, quantum: u32) -> bool {
        let account = flows[flow as usize].account();
        if account.standing != Standing::Idle {
            return false;
        }
        account.standing = Standing::New;
        account.open(quantum);
        self.new.push(flows, flow);
        true
    }

    /// The flow whose turn it is. Old debts are paid on the way. `quantum` gives a flow's quantum,
    /// above zero.
    #[inline]
    pub fn choose<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        quantum: impl Fn(&F) -> u32,
    ) -> Option<u32> {
        loop {
            let (first, is_new) = match self.new.first() {
                Some(first) => (first, true),
                None => (self.old.first()?, false),
            };
            let flow = &mut flows[first as usize];
            if flow.account().deficit > 0 {
                return Some(first);
            }
            let quantum = quantum(flow).max(1);
            let account = flow.account();
            account.credit(quantum);
            if is_new {
                account.standing = Standing::Old;
                self.new.remove(flows, first);
                self.old.push(flows, first);
            } else {
                self.old.rotate(flows);
            }
        }
    }

    /// `flow`, which was just chosen, has no packet.
    #[inline]
    pub fn found_empty<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        let standing = flows[flow as usize].account().standing;
        let next = match standing {
            Standing::New if !self.old.is_empty() => Standing::Old,
            _ => Standing::Idle,
        };
        match standing {
            Standing::New => self.new.remove(flows, flow),
            _ => self.old.remove(flows, flow),
        }
        flows[flow as usize].account().standing = next;
        if next == Standing::Old {
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
        assert_eq!(sparse.choose(&mut flows, |_| 1000), Some(1));
        sparse.activate(&mut flows, 2, 1000);
        assert_eq!(sparse.choose(&mut flows, |_| 1000), Some(1));
        flows[1].0.charge(1500);
        assert_eq!(sparse.choose(&mut flows, |_| 1000), Some(2));
        flows[2].0.charge(999);
        assert_eq!(sparse.choose(&mut flows, |_| 1000), Some(2));
        // Found empty, it may not come back as new before flows 0 and 1 had their turns.
        sparse.found_empty(&mut flows, 2);
        assert_eq!(flows[2].0.standing, Standing::Old);
        assert!(!sparse.activate(&mut flows, 2, 1000));
        assert_eq!(sparse.choose(&mut flows, |_| 1000), Some(0));
        assert_eq!(flows[0].0.deficit, 1000);
    }

    #[test]
    fn an_empty_flow_leaves_at_once_if_nobody_waits() {
        let mut flows = vec![Flow::default(); 1];
        let mut sparse = Sparse::default();
        sparse.activate(&mut flows, 0, 1000);
        sparse.found_empty(&mut flows, 0);
        assert_eq!(sparse.choose(&mut flows, |_| 1000), None);
        assert!(sparse.activate(&mut flows, 0, 1000));
    }
}
