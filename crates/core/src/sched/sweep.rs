//! Debts of many quanta in few looks, for schedulers that give a flow its quantum each time that
//! they look at it in vain.
//!
//! With quanta much smaller than packets, nearly all looks are in vain. Flows that owe 1,000 quanta
//! come round 1,000 times before one of them is served. A sweep counts, in one time round, how many
//! more looks the luckiest flow needs. In the next each flow gets as many quanta at once. The flows
//! served, their order and their deficits are the same as by single quanta. Only flows whose queues
//! change during the sweep may differ.

use super::links::NIL;

/// One time round after another over flows of which none can be served.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sweep {
    /// The flow with which each time round begins; none if there is no sweep.
    begin: u32,
    /// Quanta for each flow in this time round.
    quanta: u32,
    /// Looks that the luckiest flow of this time round needs in the next ones.
    least: u32,
}

impl Default for Sweep {
    fn default() -> Sweep {
        Sweep { begin: NIL, quanta: 1, least: u32::MAX }
    }
}

impl Sweep {
    /// Looks in vain in one call before a sweep begins. Its books cost more than a look.
    pub(super) const AFTER: u32 = 32;

    /// True while there is one.
    #[inline(always)]
    pub(super) fn is_on(&self) -> bool {
        self.begin != NIL
    }

    /// Quanta that `flow`, whose turn it is, gets for this look in vain. With a quantum for each it
    /// needs `looks` of them.
    #[cold]
    pub(super) fn look(&mut self, flow: u32, looks: u32) -> u32 {
        if !self.is_on() {
            *self = Sweep { begin: flow, ..Sweep::default() };
        } else if flow == self.begin {
            (self.quanta, self.least) = (self.least.max(1), u32::MAX);
        }
        let given = self.quanta.min(looks).max(1);
        self.least = self.least.min(looks.saturating_sub(given));
        given
    }

    /// `flow` leaves the flows that are looked at.
    #[inline(always)]
    pub(super) fn left(&mut self, flow: u32) {
        if flow == self.begin {
            self.begin = NIL;
        }
    }

    /// A flow was found that can be served.
    #[inline(always)]
    pub(super) fn end(&mut self) {
        self.begin = NIL;
    }
}

/// Quanta that make up for `short` missing bytes: rounded up, none if `short` is negative.
#[inline]
pub(super) fn quanta_for(short: i64, quantum: u32) -> u32 {
    (short.max(0) as u64).div_ceil(u64::from(quantum.max(1))).min(u64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_is_over_when_it_found_somebody_or_the_first_flow_is_gone() {
        let mut sweep = Sweep::default();
        assert!(!sweep.is_on());
        // A round of single quanta, which finds out how many all can have at once.
        assert_eq!([(3, 9), (4, 6), (5, 20)].map(|(flow, looks)| sweep.look(flow, looks)), [1; 3]);
        assert!(sweep.is_on());
        assert_eq!([(3, 8), (4, 5), (5, 19)].map(|(flow, looks)| sweep.look(flow, looks)), [5; 3]);
        sweep.left(4);
        assert!(sweep.is_on());
        sweep.left(3);
        assert!(!sweep.is_on());
        sweep.look(5, 9);
        sweep.end();
        assert!(!sweep.is_on());
    }
}
