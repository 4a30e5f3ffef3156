//! One of the schedulers, chosen at run time: what disciplines with many flows are built on.
//!
//! The caller says what happens to a flow's queue, and asks who is next; which list moves that
//! means is the scheduler's business. Lengths of first packets are asked for only where a scheduler
//! goes by them (DRR++ does not).
//!
//! Caller's rules: [`Sharing::arrived`] after each packet is queued, [`Sharing::choose`] for a
//! flow to take packets from, then [`Sharing::sent`] or [`Sharing::found_empty`] for that flow; and
//! [`Sharing::dropped`] when a flow lost packets otherwise.

use super::drr::Drr;
use super::savings::Savings;
use super::sparse::Sparse;
use super::{Scheduled, Standing};

/// A scheduler.
#[derive(Clone, Copy, Debug)]
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
    pub fn sparse() -> Sharing {
        Sharing::Sparse(Sparse::default())
    }

    /// DRR-LDS with savings of up to `limit` bytes. All of `flows` are empty.
    pub fn savings<F: Scheduled>(limit: u32, flows: &mut [F]) -> Sharing {
        Sharing::Savings(Savings::new(limit, flows, 0..flows.len() as u32))
    }

    /// A packet has been queued for `flow`. True if the flow had been idle. `head` gives the length
    /// of a flow's first packet.
    #[inline(always)]
    pub fn arrived<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        quantum: u32,
        mut head: impl FnMut(&mut F) -> Option<u32>,
    ) -> bool {
        match self {
            Sharing::Sparse(sparse) => sparse.activate(flows, flow, quantum),
            Sharing::Covered(drr) => drr.activate(flows, flow, quantum),
            Sharing::Savings(savings) => {
                let was_fresh = flows[flow as usize].account().standing == Standing::Fresh;
                let head = head(&mut flows[flow as usize]);
                savings.settle(flows, flow, head);
                was_fresh
            }
        }
    }

    /// The flow whose turn it is. `head` gives the length of a flow's first packet, `quantum` its
    /// quantum.
    #[inline(always)]
    pub fn choose<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        mut head: impl FnMut(&mut F) -> Option<u32>,
        quantum: impl Fn(&F) -> u32,
    ) -> Option<u32> {
        match self {
            Sharing::Sparse(sparse) => sparse.choose(flows, |flow, _| quantum(flow).max(1)),
            Sharing::Covered(drr) => {
                drr.next_covered(flows, |flow| head(flow).unwrap_or(0), quantum)
            }
            Sharing::Savings(savings) => savings.choose(flows, head, quantum),
        }
    }

    /// `flow`, which was chosen, has sent a packet of `len` bytes.
    #[inline(always)]
    pub fn sent<F: Scheduled>(
        &mut self,
        flows: &mut [F],
        flow: u32,
        len: u32,
        mut head: impl FnMut(&mut F) -> Option<u32>,
    ) {
        match self {
            Sharing::Sparse(_) => flows[flow as usize].account().charge(len),
            Sharing::Covered(drr) => {
                flows[flow as usize].account().charge(len);
                if head(&mut flows[flow as usize]).is_none() {
                    drr.retire(flows, flow);
                }
            }
            Sharing::Savings(savings) => {
                let head = head(&mut flows[flow as usize]);
                savings.charge(flows, flow, len, head);
            }
        }
    }

    /// `flow`, which was chosen, had no packet to send.
    #[inline(always)]
    pub fn found_empty<F: Scheduled>(&mut self, flows: &mut [F], flow: u32) {
        match self {
            Sharing::Sparse(sparse) => sparse.found_empty(flows, flow),
            Sharing::Covered(drr) => drr.retire(flows, flow),
            Sharing::Savings(savings) => savings.settle(flows, flow, None),
        }
    }

    /// `flow`, which was chosen, cannot send now: its turn passes.
    pub fn pass<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        match self {
            // Comes round again with more, as if it had paid.
            Sharing::Sparse(_) => flows[flow as usize].account().deficit = 0,
            Sharing::Covered(drr) => drr.pass(flows),
            Sharing::Savings(savings) => savings.charge(flows, flow, 0, head),
        }
    }

    /// Packets of `flow` were dropped; `head` is the length of the one that is first now.
    pub fn dropped<F: Scheduled>(&mut self, flows: &mut [F], flow: u32, head: Option<u32>) {
        match (self, head) {
            // Found empty when its turn comes.
            (Sharing::Sparse(_), _) | (Sharing::Covered(_), Some(_)) => {}
            (Sharing::Covered(drr), None) => drr.retire(flows, flow),
            (Sharing::Savings(savings), head) => savings.settle(flows, flow, head),
        }
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

    #[test]
    fn every_scheduler_serves_all_that_comes() {
        let flows = std::vec![Flow::default(); 4];
        for kind in 0..3 {
            let mut flows = flows.clone();
            let mut sharing = match kind {
                0 => Sharing::covered(),
                1 => Sharing::sparse(),
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
                    let flow = sharing.choose(&mut flows, head, |_| 1500).unwrap();
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
                let flow = sharing.choose(&mut flows, head, |_| 1500).unwrap();
                match flows[flow as usize].packets.pop_front() {
                    Some(len) => sharing.sent(&mut flows, flow, len, head),
                    None => sharing.found_empty(&mut flows, flow),
                }
            }
        }
    }
}
