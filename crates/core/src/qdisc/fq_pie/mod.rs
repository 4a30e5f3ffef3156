//! `fq_pie`: many queues, each under PIE (man tc-fq_pie; facts D.4; FreeBSD's dn_sched_fq_pie).
//!
//! The frame is `many.rs`, PIE is `aqm/pie`. One law holds for all queues; each has a probability
//! of its own, which is due to be computed every `tupdate`. That is made up for before the queue
//! changes, as often as was due since it last did. Its bytes have been the same all that time. An
//! arrival that finds `limit` packets is dropped. As in Linux, `memory_limit` is counted only, and
//! marks are set up to a probability of `ecn_prob` percent.

mod netlink;
mod stats;
mod words;

use crate::aqm::pie::{Law, PieParams, PieState, FIRST_UPDATE};
use crate::aqm::Verdict;
use crate::packet::Packet;
use crate::qdisc::many::{FlowAqm, Left, Lists, Loss, Many, Settings};
use crate::qdisc::stats::narrow;
use crate::qdisc::{ConfigError, Detail, Device, Totals};
use crate::random::Random;
use crate::tick::Periodic;
use crate::time::Time;

pub use stats::Stats;

/// Settings, with the names and defaults of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Queues and limits.
    pub queues: Settings,
    /// Probability in percent up to which ECN-capable packets are marked, 0 to 100.
    pub ecn_prob: u32,
    /// PIE's own.
    pub aqm: PieParams,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            queues: Settings {
                limit: 10_240,
                flows: 1024,
                quantum: None,
                memory_limit: 32 << 20,
                savings: None,
            },
            ecn_prob: 10,
            aqm: PieParams::default(),
        }
    }
}

/// Linux raises a smaller quantum to this.
const MIN_QUANTUM: u32 = 256;

/// Queues under PIE.
pub type FqPie = Many<Controlled>;

/// PIE with its clock, its dice and its counters.
#[derive(Clone, Debug)]
pub struct Controlled {
    law: Law,
    timer: Periodic,
    /// Updates that were due so far.
    updates: u32,
    random: Random,
    memory_limit: u64,
    stats: Stats,
}

/// The law of `params` on `device`.
fn law(params: &Params, device: &Device) -> Law {
    let all = u64::from(params.queues.limit) * u64::from(device.mtu);
    // FreeBSD's `onoff` wakes up when a flow has a third of its share.
    let share = all / u64::from(params.queues.flows.max(1));
    let mut law = Law::new(&params.aqm, device.mtu, share, device.arithmetic);
    if params.aqm.ecn {
        law.set_mark_percent(params.ecn_prob);
    }
    law
}

impl FlowAqm for Controlled {
    type Params = Params;
    type State = PieState;
    const REFUSES: bool = true;

    fn new(params: &Params, device: &Device) -> Result<Controlled, ConfigError> {
        Ok(Controlled {
            law: law(params, device),
            timer: Periodic::new(device.tick, device.now, FIRST_UPDATE, params.aqm.tupdate),
            updates: 0,
            random: Random::new(device.seed),
            memory_limit: params.queues.memory_limit.into(),
            stats: Stats::default(),
        })
    }

    fn settings(params: &Params) -> Settings {
        params.queues
    }

    fn state(&self) -> PieState {
        PieState::after(self.updates)
    }

    fn change(&mut self, params: &Params, device: &Device) {
        self.law = law(params, device);
        self.timer.set_period(params.aqm.tupdate);
        self.memory_limit = params.queues.memory_limit.into();
    }

    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.timer.is_due(now) {
            self.count_updates(now);
        }
    }

    #[inline]
    fn settle(&mut self, state: &mut PieState, bytes: u64) {
        if state.updates != self.updates {
            self.update(state, bytes);
        }
    }

    #[inline]
    fn arrives(
        &mut self,
        state: &mut PieState,
        packet: &Packet,
        bytes: u64,
        memory: u64,
    ) -> Verdict {
        if memory > self.memory_limit + u64::from(packet.truesize) {
            self.stats.overmemory = self.stats.overmemory.wrapping_add(1);
        }
        self.settle(state, bytes);
        let verdict = state.admit(&self.law, packet, bytes, &mut self.random);
        match verdict {
            Verdict::Drop => self.stats.dropped = self.stats.dropped.wrapping_add(1),
            Verdict::Marked => {
                self.stats.ecn_mark = self.stats.ecn_mark.wrapping_add(1);
                self.stats.pkts_in = self.stats.pkts_in.wrapping_add(1);
            }
            Verdict::Pass => self.stats.pkts_in = self.stats.pkts_in.wrapping_add(1),
        }
        verdict
    }

    #[cold]
    fn refused(&mut self, state: &mut PieState, bytes: u64) {
        self.settle(state, bytes);
        state.overflowed();
        self.stats.overlimit = self.stats.overlimit.wrapping_add(1);
        self.stats.dropped = self.stats.dropped.wrapping_add(1);
    }

    fn overflowed(&mut self, _: &mut PieState, loss: Loss) {
        self.stats.dropped = self.stats.dropped.wrapping_add(loss.packets);
    }

    #[inline]
    fn passes(&mut self, state: &mut PieState, packet: &Packet, left: Left, now: Time) -> bool {
        self.settle(state, left.queue + u64::from(packet.len));
        state.dequeued(&self.law, packet.enqueued, packet.len, now, left.queue);
        true
    }

    fn found_empty(&mut self, _: &mut PieState) {}

    fn statistics(&self, lists: &Lists, totals: &mut Totals) -> Detail {
        totals.marked = self.stats.ecn_mark.into();
        Detail::FqPie(Stats {
            new_flow_count: lists.new_flow_count,
            new_flows_len: lists.new,
            old_flows_len: lists.old,
            memory_used: narrow(lists.memory),
            ..self.stats
        })
    }
}

impl Controlled {
    /// Notes the updates that were due by `now`.
    #[cold]
    fn count_updates(&mut self, now: Time) {
        self.updates = self.updates.wrapping_add(self.timer.count(now));
    }

    /// Computes the probability of a queue as often as was due while it had `bytes`. One that has
    /// come to rest needs no more rounds.
    #[cold]
    fn update(&mut self, state: &mut PieState, bytes: u64) {
        let missed = self.updates.wrapping_sub(state.updates);
        state.updates = self.updates;
        state.update_often(&self.law, bytes, missed);
    }
}

#[cfg(test)]
mod tests;
