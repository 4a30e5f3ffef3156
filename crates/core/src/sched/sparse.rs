//! DRR++ as FQ-CoDel has it (RFC 8290, section 4.2): flows without a standing queue go first.
//!
//! Two lists. A flow that was idle enters `new` with one quantum and is served from there at
//! once. When the quantum is used up it joins `old`, where flows share by deficit round robin. A
//! flow that is found empty leaves. But from `new` it has to pass through `old` first if flows wait
//! there. Otherwise a stream of short-lived turns could starve the others.
//!
//! A flow in debt gets a quantum each time it is looked at. When a call's budget of looks runs
//! short, flows in debt wait in a [`Wheel`] instead. While the wheel has flows, each packet takes
//! one look, whatever its flow owes.
//!
//! Caller's rule: [`Sparse::activate`] for each arrival; [`Sparse::choose`] for a flow to take a
//! packet from, then charge its account, or [`Sparse::found_empty`] if it had none.

use alloc::boxed::Box;

use super::active::{ActiveList, Turns};
use super::rotation::Rotation;
use super::scheduler::{Head, Scheduler};
use super::wheel::Wheel;
use super::{Scheduled, Standing};
use crate::memory::{Memory, NoMemory};
use crate::rate::Arithmetic;
use crate::steps::Budget;

/// The two lists, and those who wait to join the second.
#[derive(Clone, Debug, Default)]
pub struct Sparse<L = ActiveList> {
    new: L,
    old: L,
    /// Without it, a call goes on with old debts where the last one stopped.
    in_debt: Option<Box<Wheel<L>>>,
    /// True if flows wait in the wheel.
    waits: bool,
}

/// The quanta of flows.
pub trait Quanta<F> {
    /// Bytes for `flow` in one round. `ages`: it has just passed from the new flows to the old.
    fn next(&mut self, flow: &mut F, ages: bool) -> u32;

    /// Mean bytes for `flow` in a round, with 16 binary places, above zero.
    fn mean(&mut self, flow: &mut F) -> u64;
}

impl<F, Q: FnMut(&F) -> u32> Quanta<F> for Q {
    #[inline(always)]
    fn next(&mut self, flow: &mut F, _: bool) -> u32 {
        self(flow).max(1)
    }

    fn mean(&mut self, flow: &mut F) -> u64 {
        u64::from(self(flow).max(1)) << 16
    }
}

impl<L: Turns> Sparse<L> {
    /// No flows, and a wheel for those in debt.
    pub fn with_wheel(memory: Memory) -> Result<Sparse<L>, NoMemory> {
        Ok(Sparse { in_debt: Some(Box::new(Wheel::new(memory)?)), ..Sparse::default() })
    }

    /// No flows; and a wheel, unless all is to be decided as in Linux. Linux looks at flows in debt
    /// each time round, and draws a random number each time.
    pub fn as_by(arithmetic: Arithmetic, memory: Memory) -> Result<Sparse<L>, NoMemory> {
        match arithmetic {
            Arithmetic::Exact => Sparse::with_wheel(memory),
            Arithmetic::Linux(_) => Ok(Sparse::default()),
        }
    }

    /// True if no flow stands here.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.new.is_empty() && self.old.is_empty() && !self.waits
    }

    /// Forgets all flows.
    pub fn clear(&mut self) {
        (self.new, self.old) = (L::default(), L::default());
        self.in_debt.iter_mut().for_each(|wheel| wheel.clear());
        self.waits = false;
    }

    /// A packet has come for `flow`. True if the flow had been idle.
    #[inline(always)]
    pub fn activate<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, quantum: u32) -> bool {
        let Some(entrant) = flows.get_mut(flow as usize) else { return false };
        if entrant.account().standing != Standing::Idle {
            return false;
        }
        self.enter(flows, flow, quantum);
        true
    }

    /// `flow`, which stands nowhere, becomes a new one.
    #[inline(always)]
    pub fn enter<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, quantum: u32) {
        let Some(entrant) = flows.get_mut(flow as usize) else { return };
        let account = entrant.account();
        account.standing = Standing::New;
        account.open(quantum);
        self.new.push(flows, flow);
    }

    /// The flow whose turn it is. Old debts are paid on the way. None if no flow stands here; or if
    /// `budget` is spent, and the next call has to go on.
    #[inline(always)]
    pub fn choose<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        mut quanta: impl Quanta<F>,
        budget: &Budget,
    ) -> Option<u32> {
        while let Some((first, flow)) = self.new.head(flows) {
            if flow.account().deficit > 0 {
                return Some(first);
            }
            if !budget.spend_at_ease() {
                budget.exhaust();
                return None;
            }
            flow.account().standing = Standing::Old;
            let quantum = quanta.next(flow, true);
            flow.account().credit(quantum);
            self.new.pop(flows);
            self.old.push(flows, first);
        }
        while let Some((first, flow)) = self.old.head(flows) {
            if flow.account().deficit > 0 {
                return Some(first);
            }
            if self.waits || !budget.spend_at_ease() {
                break;
            }
            let quantum = quanta.next(flow, false);
            flow.account().credit(quantum);
            self.old.rotate(flows);
        }
        if self.old.is_empty() && !self.waits {
            return None;
        }
        budget.lend(|budget| self.choose_at_length(flows, quanta, budget))
    }

    /// As [`Sparse::choose`] among the old flows, where that takes long: those in debt wait in the
    /// wheel, if there is one.
    #[cold]
    #[inline(never)]
    fn choose_at_length<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        mut quanta: impl Quanta<F>,
        budget: &Budget,
    ) -> Option<u32> {
        while budget.spend() {
            let Some(first) = self.old.first() else {
                let in_debt = self.in_debt.as_mut()?;
                self.old = in_debt.advance(flows);
                self.waits = !in_debt.is_empty();
                if self.old.is_empty() {
                    return None;
                }
                continue;
            };
            let flow = flows.get_mut(first as usize)?;
            if flow.account().deficit > 0 {
                return Some(first);
            }
            let wheel = self.in_debt.as_mut();
            if let Some(in_debt) = wheel.and_then(|wheel| wheel.has_slots().then_some(wheel)) {
                let quantum = quanta.mean(flow);
                self.old.pop(flows);
                in_debt.wait(flows, first, quantum);
                self.waits = true;
            } else {
                let quantum = quanta.next(flow, false);
                flow.account().credit(quantum);
                self.old.rotate(flows);
            }
        }
        None
    }

    /// `flow`, which was just chosen, leaves, and stands elsewhere from now on.
    #[inline(always)]
    pub fn leave<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, standing: Standing) {
        let Some(chosen) = flows.get_mut(flow as usize) else { return };
        chosen.account().standing = standing;
        // What was chosen stands first.
        if self.new.is_empty() {
            self.old.pop(flows);
        } else {
            self.new.pop(flows);
        }
    }
}

impl<F: Scheduled, L: Turns> Scheduler<F> for Sparse<L> {
    #[inline(always)]
    fn arrived(&mut self, flows: &mut [F], flow: u32, quantum: u32, _: impl Head<F>) -> bool {
        self.activate(flows, flow, quantum)
    }

    #[inline(always)]
    fn choose(
        &mut self,
        flows: &mut [F],
        _: impl Head<F>,
        quantum: impl FnMut(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32> {
        Sparse::choose(self, flows, quantum, budget)
    }

    #[inline(always)]
    fn sent(&mut self, flows: &mut [F], flow: u32, len: u32, _: impl Head<F>) {
        if let Some(flow) = flows.get_mut(flow as usize) {
            flow.account().charge(len);
        }
    }

    fn dropped(&mut self, _: &mut [F], _: u32, _: Option<u32>) {
        // Found empty when its turn comes.
    }

    #[inline(always)]
    fn found_empty(&mut self, flows: &mut [F], flow: u32) {
        let was_new = !self.new.is_empty();
        self.leave(flows, flow, Standing::Idle);
        if was_new && (self.waits || !self.old.is_empty()) {
            let Some(chosen) = flows.get_mut(flow as usize) else { return };
            chosen.account().standing = Standing::Old;
            self.old.push(flows, flow);
        }
    }
}

/// The list that `flow` stands in.
fn standing<F: Scheduled>(flows: &mut [F], flow: u32) -> Standing {
    flows.get_mut(flow as usize).map_or(Standing::Idle, |flow| flow.account().standing)
}

impl Sparse<ActiveList> {
    /// The flow without a standing queue that is next, if there is one.
    pub fn first_new(&self) -> Option<u32> {
        self.new.first()
    }
}

impl Sparse<Rotation> {
    /// Takes `flow`, which stands here, out; its standing and its deficit remain.
    pub fn remove<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        match standing(flows, flow) {
            Standing::New => self.new.remove(flows, flow),
            _ => self.old.remove(flows, flow),
        }
    }

    /// Puts `flow`, which was taken out elsewhere, at the end of its list.
    pub fn rejoin<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        match standing(flows, flow) {
            Standing::New => self.new.push(flows, flow),
            _ => self.old.push(flows, flow),
        }
    }

    /// The flows that stand here, the old ones first.
    /// `next` gives the flow after one in its list.
    pub fn standing(&self, next: impl Fn(u32) -> Option<u32> + Copy) -> impl Iterator<Item = u32> {
        self.old.iter(next).chain(self.new.iter(next))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Flow;
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn a_new_flow_goes_first_until_its_quantum_is_used_up() {
        let mut flows = vec![Flow::default(); 3];
        let mut sparse: Sparse = Sparse::with_wheel(Memory::Reserved).unwrap();
        let choose = |sparse: &mut Sparse, flows: &mut [Flow]| {
            sparse.choose(flows, |_: &Flow| 1000, &Budget::default())
        };
        assert!(sparse.activate(&mut flows, 0, 1000) && sparse.activate(&mut flows, 1, 1000));
        assert!(!sparse.activate(&mut flows, 0, 1000));
        flows[0].account.charge(1000);
        // Flow 0 is in `old` now; flow 1 is still new, and so is flow 2.
        assert_eq!(choose(&mut sparse, &mut flows), Some(1));
        sparse.activate(&mut flows, 2, 1000);
        assert_eq!(choose(&mut sparse, &mut flows), Some(1));
        flows[1].account.charge(1500);
        assert_eq!(choose(&mut sparse, &mut flows), Some(2));
        flows[2].account.charge(999);
        assert_eq!(choose(&mut sparse, &mut flows), Some(2));
        // Found empty, it may not come back as new before flows 0 and 1 had their turns.
        sparse.found_empty(&mut flows, 2);
        assert_eq!(flows[2].account.standing, Standing::Old);
        assert!(!sparse.activate(&mut flows, 2, 1000));
        assert_eq!(choose(&mut sparse, &mut flows), Some(0));
        assert_eq!(flows[0].account.deficit, 1000);
    }

    #[test]
    fn an_empty_flow_leaves_at_once_if_nobody_waits() {
        let mut flows = vec![Flow::default(); 1];
        let mut sparse: Sparse = Sparse::with_wheel(Memory::Reserved).unwrap();
        sparse.activate(&mut flows, 0, 1000);
        sparse.found_empty(&mut flows, 0);
        let chosen = sparse.choose(&mut flows, |_: &Flow| 1000, &Budget::default());
        assert_eq!(chosen, None);
        assert!(sparse.activate(&mut flows, 0, 1000));
    }

    /// Serves backlogged flows with packets of 1,514 bytes; gives what each sent, and the most
    /// steps of a choice.
    fn serve(
        flows: &mut [Flow],
        quanta: impl Quanta<Flow> + Copy,
        packets: u32,
    ) -> (Vec<u64>, u64) {
        let mut sparse: Sparse = Sparse::with_wheel(Memory::Reserved).unwrap();
        for flow in 0..flows.len() as u32 {
            sparse.enter(flows, flow, 1);
        }
        let (mut sent, mut most, mut left) = (vec![0; flows.len()], 0, packets);
        while left > 0 {
            crate::steps::take();
            let chosen = sparse.choose(flows, quanta, &Budget::default());
            most = most.max(crate::steps::take());
            let Some(flow) = chosen else { continue };
            flows[flow as usize].account.charge(1514);
            sent[flow as usize] += 1514;
            left -= 1;
        }
        (sent, most)
    }

    /// Debts are paid by each flow's own quanta, however many flows wait for it.
    #[test]
    fn shares_are_as_quanta_are() {
        let mut flows = vec![Flow::default(); 2_400];
        for (number, flow) in (0..).zip(&mut flows) {
            flow.packets.push_back(1 + 2 * (number % 2));
        }
        let (sent, _) = serve(&mut flows, |flow: &Flow| flow.packets[0], 48_000);
        let part = |odd: usize| sent.iter().skip(odd).step_by(2).sum::<u64>();
        let (one, three) = (part(0), part(1));
        assert!((3 * one).abs_diff(three) < three / 20, "{one} {three}");
    }

    #[test]
    fn a_flow_stands_among_the_new_the_old_or_those_in_debt() {
        let mut flows = vec![Flow::default(); 2];
        let mut sparse: Sparse = Sparse::with_wheel(Memory::Reserved).unwrap();
        assert!(sparse.is_empty() && sparse.first_new().is_none());
        sparse.activate(&mut flows, 1, 1000);
        assert!(!sparse.is_empty() && sparse.first_new() == Some(1));
        let choose = |sparse: &mut Sparse, flows: &mut [Flow], spent| {
            let budget = Budget::default();
            budget.spend_on(spent);
            sparse.choose(flows, |_: &Flow| 700, &budget)
        };
        flows[1].account.charge(1000);
        assert_eq!(choose(&mut sparse, &mut flows, 0), Some(1));
        assert!(!sparse.is_empty() && sparse.first_new().is_none());
        assert_eq!(flows[1].account.deficit, 700);
        // Nothing left, and few steps: it waits for its next quantum in the wheel.
        flows[1].account.charge(700);
        assert_eq!(choose(&mut sparse, &mut flows, crate::steps::PER_LOOP), Some(1));
        assert_eq!((flows[1].account.deficit, sparse.is_empty()), (700, false));
        flows[1].account.charge(700 * 40_000);
        assert_eq!(choose(&mut sparse, &mut flows, 2 * crate::steps::PER_LOOP - 1), None);
        assert!(!sparse.is_empty() && sparse.old.is_empty() && sparse.waits);
        sparse.clear();
        assert!(sparse.is_empty() && sparse.first_new().is_none());
        assert_eq!(choose(&mut sparse, &mut flows, 0), None);
    }

    #[test]
    fn equal_shares_at_any_quantum_in_bounded_steps() {
        for (count, quantum) in [(3, 1514), (1000, 1), (30_000, 1), (20_000, 1514)] {
            let mut flows = vec![Flow::default(); count];
            let (sent, most) = serve(&mut flows, |_: &Flow| quantum, 20 * count as u32);
            assert!(most <= crate::steps::MOST, "{count} of {quantum}: {most} steps");
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            assert!(most - least <= 2 * 1514, "{count} of {quantum}: {least} to {most}");
        }
    }
}
