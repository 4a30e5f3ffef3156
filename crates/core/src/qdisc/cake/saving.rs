//! Limited deficit savings within CAKE's tins: DRR-LDS (`sched::savings`) in the place of DRR++.
//!
//! A queue that is empty now and then saves up what it would have sent, up to a limit. It is served
//! at once when its next packet comes, so sparse flows need no list of their own. Hosts share as
//! ever: a quantum is divided by the load of the flow's hosts, and a flow is a load while it has
//! packets. (Ours; Menth et al., "Deficit Round Robin with Limited Deficit Savings", section 3.)
//!
//! Caller's rule: [`Tins::settle`] whenever a queue's first packet has changed otherwise than
//! by the arrival that [`Tins::wake`] is told of.

use alloc::boxed::Box;

use super::flows::Flow;
use super::loads::{quantum, recount};
use super::tins::Tins;
use super::MAX_TINS;
use crate::arena::Arena;
use crate::packet::Packet;
use crate::random::Random;
use crate::sched::savings::Savings;
use crate::sched::scheduler::Scheduler;
use crate::sched::Standing;
use crate::steps::Budget;
use crate::time::Time;

impl Tins {
    /// Gives each tin its scheduler, if queues may save. All queues must be empty.
    pub(super) fn open_savings(&mut self, queues: u32) {
        let Some(limit) = self.savings else { return };
        let count = self.count();
        for tin in self.tins.iter_mut().take(count) {
            let numbers = tin.base..tin.base + queues;
            let savings = Savings::new(limit, &mut self.flows.queues, numbers);
            tin.savings = Some(Box::new(savings));
        }
    }

    /// The same where all tins have theirs: nothing is allocated.
    pub(super) fn reopen_savings(&mut self, queues: u32) {
        for tin in self.tins.iter_mut() {
            if let Some(savings) = &mut tin.savings {
                savings.restart(&mut self.flows.queues, tin.base..tin.base + queues);
            }
        }
    }

    /// A packet of `adj_len` bytes has come into an empty queue.
    #[cold]
    pub(super) fn wake_saver(
        &mut self,
        tin_index: usize,
        flow_index: u32,
        packet: &Packet,
        adj_len: u32,
    ) {
        if self.rule.isolates_hosts() {
            // While the queue was empty its hosts may have been forgotten.
            self.assign_hosts(tin_index, flow_index, packet);
        }
        let tin = &mut self.tins[tin_index % MAX_TINS];
        let Some(flow) = self.flows.get(flow_index) else { return };
        recount(tin, flow, Standing::Idle, Standing::Old, self.rule, &mut self.hosts);
        self.active |= 1 << tin_index;
        if let Some(savings) = &mut tin.savings {
            savings.settle(&mut self.flows.queues, flow_index, Some(adj_len));
        }
    }

    /// The flow whose turn it is, which has a packet.
    #[cold]
    pub(super) fn choose_saver(
        &mut self,
        tin_index: usize,
        arena: &Arena,
        random: &mut Random,
        budget: &Budget,
    ) -> Option<u32> {
        let tin = &mut self.tins[tin_index % MAX_TINS];
        let (flow_quantum, base, hosts) = (tin.flow_quantum, tin.base, &self.hosts);
        tin.savings.as_mut()?.choose(
            &mut self.flows.queues,
            |flow| head(flow, arena),
            |flow| quantum(flow_quantum, base, flow, hosts, random),
            budget,
        )
    }

    /// The flow has lost packets, or, with `is_sent`, has sent one that was charged: then its turn
    /// is over.
    #[cold]
    pub(super) fn settle(
        &mut self,
        tin_index: usize,
        flow_index: u32,
        is_sent: bool,
        now: Time,
        arena: &Arena,
    ) {
        if !is_sent && self.guard.is_some() {
            return self.settle_guarded(tin_index, flow_index, now);
        }
        let tin = &mut self.tins[tin_index % MAX_TINS];
        let Some(savings) = &mut tin.savings else { return };
        let Some(flow) = self.flows.get_mut(flow_index) else { return };
        let first = head(flow, arena);
        if first.is_none() && flow.cobalt.queue_empty(&tin.cobalt, now).tamed {
            tin.counters.unresponsive -= 1;
        }
        match is_sent {
            true => savings.end_turn(&mut self.flows.queues, flow_index, first),
            false => savings.settle(&mut self.flows.queues, flow_index, first),
        }
        if first.is_none() {
            let Some(flow) = self.flows.get(flow_index) else { return };
            recount(tin, flow, Standing::Old, Standing::Idle, self.rule, &mut self.hosts);
            if tin.bulk_flows == 0 {
                self.active &= !(1 << tin_index);
            }
        }
    }
}

/// Length of a flow's first packet, framing included.
#[inline]
fn head(flow: &Flow, arena: &Arena) -> Option<u32> {
    arena.head(&flow.packets).map(|packet| packet.adj_len)
}
