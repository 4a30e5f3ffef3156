//! The schedulers behind one interface: what disciplines with many flows are built on.
//!
//! The caller of a [`Scheduler`] says what happens to a flow's queue, and asks who is next; which
//! list moves that means is the scheduler's business. Lengths of first packets are asked for only
//! where a scheduler goes by them (DRR++ does not). [`Sharing`] is one of them, chosen at run time;
//! whoever asks for every packet asks it once which it is, and then that one.
//!
//! Caller's rules: [`Scheduler::arrived`] after each packet is queued, [`Scheduler::choose`] for a
//! flow to take packets from, then [`Scheduler::sent`] or [`Scheduler::found_empty`] for that flow;
//! and [`Scheduler::dropped`] when a flow lost packets otherwise.

use super::drr::Drr;
use super::savings::Savings;
use super::sparse::Sparse;
use super::{Scheduled, Standing};
use crate::memory::{Memory, NoMemory};
use crate::steps::Budget;

/// A scheduler.
#[derive(Clone, Debug)]
pub enum Sharing {
    /// DRR as published: a packet is sent once its flow has saved up for it.
    Covered(Drr),
    /// DRR++: flows without a standing queue go first.
    Sparse(Sparse),
    /// DRR-LDS: empty queues save up, too.
    Savings(Savings),
}

impl Sharing {
    /// DRR as published.
    pub fn covered() -> Sharing {
        Sharing::Covered(Drr::default())
    }

    /// DRR++.
    pub fn sparse(memory: Memory) -> Result<Sharing, NoMemory> {
        Ok(Sharing::Sparse(Sparse::with_wheel(memory)?))
    }

    /// DRR-LDS with savings of up to `limit` bytes. All of `flows` are empty.
    pub fn savings<F: Scheduled>(limit: u32, flows: &mut [F]) -> Sharing {
        Sharing::Savings(Savings::new(limit, flows, 0..flows.len() as u32))
    }

    /// As new, for `flows`, which are empty and on no list from now on.
    pub fn restart<F: Scheduled>(&mut self, flows: &mut [F]) {
        match self {
            Sharing::Covered(drr) => *drr = Drr::default(),
            Sharing::Sparse(sparse) => sparse.clear(),
            Sharing::Savings(savings) => savings.restart(flows, 0..flows.len() as u32),
        }
    }
}

/// A scheduler as its callers see it.
pub trait Scheduler {
    /// A packet has been queued for `flow`. True if the flow had been idle. `head` gives the length
    /// of a flow's first packet.
    fn arrived<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        quantum: u32,
        head: impl FnMut(&mut F) -> Option<u32>,
    ) -> bool;

    /// The flow whose turn it is. `head` gives the length of a flow's first packet, `quantum` its
    /// quantum. None if there is no flow, or `budget` is spent.
    fn choose<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        head: impl FnMut(&mut F) -> Option<u32>,
        quantum: impl Fn(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32>;

    /// `flow`, which was chosen, has sent a packet of `len` bytes.
    fn sent<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        len: u32,
        head: impl FnMut(&mut F) -> Option<u32>,
    );

    /// `flow`, which was chosen, had no packet to send.
    fn found_empty<F: Scheduled>(&mut self, flows: &mut [F], flow: u32);

    /// `flow`, which was chosen, cannot send now: its turn passes.
    fn pass<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>);

    /// Packets of `flow` were dropped; `head` is the length of the one that is first now.
    fn dropped<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>);
}

impl Scheduler for Sharing {
    #[inline(always)]
    fn arrived<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        quantum: u32,
        head: impl FnMut(&mut F) -> Option<u32>,
    ) -> bool {
        match self {
            Sharing::Covered(drr) => Scheduler::arrived(drr, flows, flow, quantum, head),
            Sharing::Sparse(sparse) => Scheduler::arrived(sparse, flows, flow, quantum, head),
            Sharing::Savings(savings) => Scheduler::arrived(savings, flows, flow, quantum, head),
        }
    }

    #[inline(always)]
    fn choose<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        head: impl FnMut(&mut F) -> Option<u32>,
        quantum: impl Fn(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32> {
        match self {
            Sharing::Covered(drr) => Scheduler::choose(drr, flows, head, quantum, budget),
            Sharing::Sparse(sparse) => Scheduler::choose(sparse, flows, head, quantum, budget),
            Sharing::Savings(savings) => Scheduler::choose(savings, flows, head, quantum, budget),
        }
    }

    #[inline(always)]
    fn sent<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        len: u32,
        head: impl FnMut(&mut F) -> Option<u32>,
    ) {
        match self {
            Sharing::Covered(drr) => Scheduler::sent(drr, flows, flow, len, head),
            Sharing::Sparse(sparse) => Scheduler::sent(sparse, flows, flow, len, head),
            Sharing::Savings(savings) => Scheduler::sent(savings, flows, flow, len, head),
        }
    }

    #[inline(always)]
    fn found_empty<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        match self {
            Sharing::Covered(drr) => Scheduler::found_empty(drr, flows, flow),
            Sharing::Sparse(sparse) => Scheduler::found_empty(sparse, flows, flow),
            Sharing::Savings(savings) => Scheduler::found_empty(savings, flows, flow),
        }
    }

    fn pass<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        match self {
            Sharing::Covered(drr) => Scheduler::pass(drr, flows, flow, head),
            Sharing::Sparse(sparse) => Scheduler::pass(sparse, flows, flow, head),
            Sharing::Savings(savings) => Scheduler::pass(savings, flows, flow, head),
        }
    }

    fn dropped<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        match self {
            Sharing::Covered(drr) => Scheduler::dropped(drr, flows, flow, head),
            Sharing::Sparse(sparse) => Scheduler::dropped(sparse, flows, flow, head),
            Sharing::Savings(savings) => Scheduler::dropped(savings, flows, flow, head),
        }
    }
}

impl Scheduler for Drr {
    #[inline(always)]
    fn arrived<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        quantum: u32,
        _: impl FnMut(&mut F) -> Option<u32>,
    ) -> bool {
        self.activate(flows, flow, quantum)
    }

    #[inline(always)]
    fn choose<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        mut head: impl FnMut(&mut F) -> Option<u32>,
        quantum: impl Fn(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32> {
        self.next_covered(flows, |flow| head(flow).unwrap_or(0), quantum, budget)
    }

    #[inline(always)]
    fn sent<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        len: u32,
        mut head: impl FnMut(&mut F) -> Option<u32>,
    ) {
        let Some(served) = flows.get_mut(flow as usize) else { return };
        served.account().charge(len);
        if head(served).is_none() {
            self.retire(flows, flow);
        }
    }

    #[inline(always)]
    fn found_empty<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        self.retire(flows, flow);
    }

    fn pass<F: Scheduled>(&mut self, flows: &mut [F], _: u32, _: Option<u32>) {
        Drr::pass(self, flows);
    }

    fn dropped<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        if head.is_none() {
            self.retire(flows, flow);
        }
    }
}

impl Scheduler for Sparse {
    #[inline(always)]
    fn arrived<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        quantum: u32,
        _: impl FnMut(&mut F) -> Option<u32>,
    ) -> bool {
        self.activate(flows, flow, quantum)
    }

    #[inline(always)]
    fn choose<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        _: impl FnMut(&mut F) -> Option<u32>,
        quantum: impl Fn(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32> {
        Sparse::choose(self, flows, quantum, budget)
    }

    #[inline(always)]
    fn sent<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        len: u32,
        _: impl FnMut(&mut F) -> Option<u32>,
    ) {
        if let Some(flow) = flows.get_mut(flow as usize) {
            flow.account().charge(len);
        }
    }

    #[inline(always)]
    fn found_empty<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        Sparse::found_empty(self, flows, flow);
    }

    fn pass<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, _: Option<u32>) {
        // Comes round again with more, as if it had paid.
        if let Some(flow) = flows.get_mut(flow as usize) {
            flow.account().deficit = 0;
        }
    }

    fn dropped<F: Scheduled>(&mut self, _: &mut [F], _: u32, _: Option<u32>) {
        // Found empty when its turn comes.
    }
}

impl Scheduler for Savings {
    #[inline(always)]
    fn arrived<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        _: u32,
        mut head: impl FnMut(&mut F) -> Option<u32>,
    ) -> bool {
        let Some(busy) = flows.get_mut(flow as usize) else { return false };
        let was_fresh = busy.account().standing == Standing::Fresh;
        let head = head(busy);
        self.settle(flows, flow, head);
        was_fresh
    }

    #[inline(always)]
    fn choose<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        head: impl FnMut(&mut F) -> Option<u32>,
        quantum: impl Fn(&F) -> u32,
        budget: &Budget,
    ) -> Option<u32> {
        Savings::choose(self, flows, head, quantum, budget)
    }

    #[inline(always)]
    fn sent<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        len: u32,
        mut head: impl FnMut(&mut F) -> Option<u32>,
    ) {
        let Some(served) = flows.get_mut(flow as usize) else { return };
        let head = head(served);
        self.charge(flows, flow, len, head);
    }

    #[inline(always)]
    fn found_empty<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        self.settle(flows, flow, None);
    }

    fn pass<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        self.charge(flows, flow, 0, head);
    }

    fn dropped<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        self.settle(flows, flow, head);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Account;
    use super::*;
    use std::collections::VecDeque;

    #[derive(Clone, Default)]
    struct Flow {
        account: Account,
        packets: VecDeque<u32>,
    }
    impl Scheduled for Flow {
        fn account(&mut self) -> &mut Account {
            &mut self.account
        }
    }

    fn head(flow: &mut Flow) -> Option<u32> {
        flow.packets.front().copied()
    }

    fn choose(sharing: &mut Sharing, flows: &mut [Flow]) -> u32 {
        sharing.choose(flows, head, |_| 1500, &Budget::default()).unwrap()
    }

    #[test]
    fn every_scheduler_serves_all_that_comes() {
        let flows = std::vec![Flow::default(); 4];
        for kind in 0..3 {
            let mut flows = flows.clone();
            let mut sharing = match kind {
                0 => Sharing::covered(),
                1 => Sharing::sparse(Memory::Reserved).unwrap(),
                _ => Sharing::savings(5_000, &mut flows),
            };
            let mut sent = [0u32; 4];
            let sizes = [300, 1500, 700, 64];
            for round in 0..20_000 {
                // All but flow 3 always have more.
                for flow in 0..if round % 1000 == 0 { 4 } else { 3 } {
                    let was_empty = flows[flow].packets.is_empty();
                    if was_empty || flow == 3 {
                        flows[flow].packets.push_back(sizes[flow]);
                        let idle = sharing.arrived(&mut flows, flow as u32, 1500, head);
                        assert!(!idle || was_empty);
                    }
                }
                loop {
                    let flow = choose(&mut sharing, &mut flows);
                    let Some(len) = flows[flow as usize].packets.pop_front() else {
                        sharing.found_empty(&mut flows, flow);
                        continue;
                    };
                    sent[flow as usize] += len;
                    if round % 7 == 0 && flow == 2 {
                        flows[2].packets.push_back(sizes[2]);
                        sharing.arrived(&mut flows, 2, 1500, head);
                        flows[2].packets.clear();
                        sharing.sent(&mut flows, flow, len, head);
                        sharing.dropped(&mut flows, 2, None);
                    } else {
                        sharing.sent(&mut flows, flow, len, head);
                    }
                    break;
                }
            }
            assert_eq!(sent[3], 20 * 64, "{kind}");
            assert!(sent.iter().all(|bytes| *bytes > 0), "{kind}: {sent:?}");
            while flows.iter().any(|flow| !flow.packets.is_empty()) {
                let flow = choose(&mut sharing, &mut flows);
                match flows[flow as usize].packets.pop_front() {
                    Some(len) => sharing.sent(&mut flows, flow, len, head),
                    None => sharing.found_empty(&mut flows, flow),
                }
            }
        }
    }
}
