//! Deficit round robin (Shreedhar and Varghese 1995), one rotation of flows that have packets.
//!
//! Two ways to pay. With `next_covered` a flow is served when its deficit covers its first packet,
//! and else gets its quantum and goes to the end. This is the published algorithm, and Linux's
//! `drr`. With `next_solvent` a flow is served while it is not in debt, whatever its first packet.
//! The difference is one packet at most, and the packet need not be looked at. `sfq` and DRR++
//! ([`super::sparse`]) do it so.
//!
//! Caller's rules: [`Drr::activate`] for a flow that has got its first packet, [`Drr::retire`] for
//! one that has lost its last, and quanta above zero. A choice ends at the latest when its call has
//! no budget left; the next call goes on. Debts of many quanta are paid by a `Sweep`.

use super::active::Turns;
use super::rotation::Rotation;
use super::scheduler::{Head, Scheduler};
use super::sweep::{quanta_for, Sweep};
use super::{Scheduled, Standing, MOST_BYTES};
use crate::steps::Budget;

/// Flows with packets, in order of service.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drr {
    active: Rotation,
    sweep: Sweep,
}

impl Drr {
    /// Puts `flow` at the end with one quantum, unless it is active already; says whether it was
    /// not.
    #[inline]
    pub fn activate<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, quantum: u32) -> bool {
        let Some(idle) = flows.get_mut(flow as usize) else { return false };
        let account = idle.account();
        if account.standing != Standing::Idle {
            return false;
        }
        account.standing = Standing::Old;
        account.open(quantum);
        self.active.push(flows, flow);
        true
    }

    /// Takes `flow` out, if it is in; its deficit is lost.
    #[inline]
    pub fn retire<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        let Some(emptied) = flows.get_mut(flow as usize) else { return };
        if core::mem::take(&mut emptied.account().standing) == Standing::Old {
            self.sweep.left(flow);
            self.active.remove(flows, flow);
        }
    }

    /// The next flow whose deficit covers its first packet. `head` gives that packet's length,
    /// `quantum` a flow's quantum. None if no flow is active, or the budget is spent.
    #[inline]
    pub fn next_covered<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        mut head: impl FnMut(&mut F) -> u32,
        mut quantum: impl FnMut(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32> {
        loop {
            let (first, flow) = self.active.head(flows)?;
            let (needed, quantum) = (head(flow), quantum(flow));
            if self.is_covered(flows, first, needed, quantum, budget) {
                return Some(first);
            }
            if !budget.spend() {
                return None;
            }
        }
    }

    /// True if the deficit of `first`, whose turn it is, covers `needed` bytes. Else it gets its
    /// `quantum`, or what a sweep gives it, and goes to the end.
    #[inline(always)]
    pub fn is_covered<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        first: u32,
        needed: u32,
        quantum: u32,
        budget: &Budget,
    ) -> bool {
        let needed = needed.min(MOST_BYTES);
        let Some(flow) = flows.get_mut(first as usize) else { return false };
        let account = flow.account();
        if account.covers(needed) {
            self.sweep.end();
            return true;
        }
        let quantum = quantum.max(1);
        let mut quanta = 1;
        if self.sweep.is_on() || budget.used() >= Sweep::AFTER {
            let short = i64::from(needed) - i64::from(account.deficit);
            quanta = self.sweep.look(first, quanta_for(short, quantum));
        }
        account.credit(quantum.saturating_mul(quanta));
        self.active.rotate(flows);
        false
    }

    /// The next flow that is not in debt. None if no flow is active, or the budget is spent.
    #[inline]
    pub fn next_solvent<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        quantum: u32,
        budget: &Budget,
    ) -> Option<u32> {
        self.next_covered(flows, |_| 1, |_| quantum, budget)
    }

    /// The flow whose turn it is goes to the end, as rich as it was.
    pub fn pass<F: Scheduled>(&mut self, flows: &mut [F]) {
        self.active.rotate(flows);
    }

    /// The flow whose turn it is, whatever its deficit.
    pub fn first(&self) -> Option<u32> {
        self.active.first()
    }
}

impl<F: Scheduled> Scheduler<F> for Drr {
    #[inline(always)]
    fn arrived(&mut self, flows: &mut [F], flow: u32, quantum: u32, _: impl Head<F>) -> bool {
        self.activate(flows, flow, quantum)
    }

    #[inline(always)]
    fn choose(
        &mut self,
        flows: &mut [F],
        mut head: impl Head<F>,
        quantum: impl FnMut(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32> {
        self.next_covered(flows, |flow| head(flow).unwrap_or(0), quantum, budget)
    }

    #[inline(always)]
    fn sent(&mut self, flows: &mut [F], flow: u32, len: u32, mut head: impl Head<F>) {
        let Some(served) = flows.get_mut(flow as usize) else { return };
        served.account().charge(len);
        if head(served).is_none() {
            self.retire(flows, flow);
        }
    }

    #[inline(always)]
    fn dropped(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        if head.is_none() {
            self.retire(flows, flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{head, Flow};
    use super::*;
    use std::vec::Vec;

    fn first(flow: &mut Flow) -> u32 {
        head(flow).unwrap()
    }

    fn flows(sizes: &[u32]) -> (Drr, Vec<Flow>) {
        let (mut drr, mut flows) = (Drr::default(), Vec::new());
        for (n, size) in sizes.iter().enumerate() {
            flows.push(Flow { packets: std::vec![*size; 10_000].into(), ..Flow::default() });
            drr.activate(&mut flows, n as u32, 1500);
        }
        (drr, flows)
    }

    #[test]
    fn backlogged_flows_share_equally_whatever_their_packets() {
        for solvent in [false, true] {
            let (mut drr, mut flows) = flows(&[100, 1514, 9000]);
            let mut sent = [0u64; 3];
            for _ in 0..20_000 {
                let flow = if solvent {
                    drr.next_solvent(&mut flows, 1500, &Budget::default()).unwrap()
                } else {
                    let budget = Budget::default();
                    drr.next_covered(&mut flows, first, |_| 1500, &budget).unwrap()
                };
                let len = first(&mut flows[flow as usize]);
                flows[flow as usize].account.charge(len);
                sent[flow as usize] += u64::from(len);
            }
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            // The bound of the paper: a quantum and the largest packet.
            assert!(most - least <= 2 * (1500 + 9000), "{sent:?}");
        }
    }

    #[test]
    fn shares_follow_the_quanta() {
        let (mut drr, mut flows) = flows(&[1000, 1000]);
        let mut sent = [0u32; 2];
        for _ in 0..4_000 {
            let weight = |f: &Flow| if f.packets.len() == 10_000 { 500 } else { 1500 };
            flows[1].packets.truncate(9_999);
            let flow = drr.next_covered(&mut flows, |_| 1000, weight, &Budget::default()).unwrap();
            flows[flow as usize].account.charge(1000);
            sent[flow as usize] += 1;
        }
        assert!(sent[0].abs_diff(1000) < 5 && sent[1].abs_diff(3000) < 5, "{sent:?}");
    }

    #[test]
    fn a_lone_flow_does_not_go_round_for_long() {
        let (mut drr, mut flows) = flows(&[65_000]);
        flows[0].account.deficit = -2_000_000_000;
        let budget = Budget::default();
        assert_eq!(drr.next_covered(&mut flows, |_| 65_000, |_| 1, &budget), Some(0));
        assert!(budget.used() < 2 * Sweep::AFTER);
        assert_eq!(flows[0].account.deficit, 65_000);
        drr.retire(&mut flows, 0);
        assert_eq!(drr.next_covered(&mut flows, |_| 65_000, |_| 1, &budget), None);
    }

    /// As `next_covered`, quantum by quantum.
    fn plainly(active: &mut Rotation, flows: &mut [Flow], quantum: u32) -> u32 {
        loop {
            let first = active.first().unwrap();
            let flow = &mut flows[first as usize];
            if flow.account.covers(flow.packets[0]) {
                return first;
            }
            flow.account.credit(quantum);
            active.rotate(flows);
        }
    }

    #[test]
    fn tiny_quanta_choose_the_same_flows_in_bounded_rounds() {
        let mut random = crate::random::Random::new(7);
        for (count, quantum) in [(3, 1), (200, 7), (3_000, 40)] {
            let mut flows = std::vec![Flow::default(); count as usize];
            let mut drr = Drr::default();
            for flow in 0..count {
                flows[flow as usize].packets = (0..4).map(|_| 1 + random.below(64_000)).collect();
                drr.activate(&mut flows, flow, quantum);
            }
            let (mut twins, mut plain) = (flows.clone(), drr.active);
            for _ in 0..2 * count {
                let mut calls = 0;
                let chosen = loop {
                    let budget = Budget::default();
                    match drr.next_covered(&mut flows, first, |_| quantum, &budget) {
                        Some(flow) => break flow,
                        None => assert!(budget.is_spent()),
                    }
                    calls += 1;
                };
                assert!(calls <= count / 200, "{calls} calls for {count} flows");
                assert_eq!(chosen, plainly(&mut plain, &mut twins, quantum));
                for flows in [&mut flows, &mut twins] {
                    let flow = &mut flows[chosen as usize];
                    flow.account.charge(flow.packets[0]);
                    flow.packets.rotate_left(1);
                }
            }
            assert!(flows.iter().zip(&twins).all(|(a, b)| a.account.deficit == b.account.deficit));
        }
    }
}
