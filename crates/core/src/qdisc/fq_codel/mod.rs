//! `fq_codel`: many queues, each under CoDel (RFC 8290; man tc-fq_codel; facts D.2).
//!
//! The frame is `many.rs`, CoDel is `aqm/codel.rs`. When the limit of packets or memory is
//! exceeded, the queue with most bytes loses its older half, `drop_batch` packets at most. Its
//! CoDel counts them as signals (section 4.1).
//!
//! As in Linux, "a queue of one MTU or less is never bad" looks at all queues together. With many
//! flows of a packet each CoDel stays awake.

mod netlink;
mod stats;
pub(in crate::qdisc) mod words;

use crate::aqm::codel::{CodelParams, CodelState, Counters, Law};
use crate::aqm::Verdict;
use crate::packet::Packet;
use crate::qdisc::many::{Flow, FlowAqm, Left, Lists, Loss, Many, Settings};
use crate::qdisc::stats::narrow;
use crate::qdisc::{Class, ConfigError, Detail, Device, Totals, UnlessZero};
use crate::time::Time;

pub use stats::Stats;

/// Settings, with the names and defaults of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Queues and limits.
    pub queues: Settings,
    /// Most packets that one overflow costs, above zero.
    pub drop_batch: u32,
    /// CoDel's own.
    pub aqm: CodelParams,
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
            drop_batch: 64,
            aqm: CodelParams { ecn: true, ..CodelParams::default() },
        }
    }
}

/// Least quantum, as in Linux: with less, too many turns would be needed for a packet.
pub const MIN_QUANTUM: u32 = 256;

/// Most memory: Linux counts it up to 2 GiB.
const MOST_MEMORY: u32 = 1 << 31;

/// Queues under CoDel.
pub type FqCodel = Many<Controlled>;

/// CoDel with its counters.
#[derive(Clone, Debug)]
pub struct Controlled {
    law: Law,
    counters: Counters,
    drop_overlimit: u32,
    drop_overmemory: u32,
}

/// A queue's state is one cache line.
const _: () = assert!(core::mem::size_of::<Flow<CodelState>>() == 64);

impl FlowAqm for Controlled {
    type Params = Params;
    type State = CodelState;
    const REFUSES: bool = false;

    fn new(params: &Params, device: &Device) -> Result<Controlled, ConfigError> {
        Ok(Controlled {
            law: Law::new(&params.aqm, device.mtu, device.arithmetic),
            counters: Counters::default(),
            drop_overlimit: 0,
            drop_overmemory: 0,
        })
    }

    fn settings(params: &Params) -> Settings {
        params.queues
    }

    fn batch(params: &Params) -> u32 {
        params.drop_batch
    }

    fn state(&self) -> CodelState {
        CodelState::default()
    }

    fn change(&mut self, params: &Params, device: &Device) {
        self.law = Law::new(&params.aqm, device.mtu, device.arithmetic);
    }

    #[inline]
    fn arrives(&mut self, _: &mut CodelState, _: &Packet, _: u64, _: u64) -> Verdict {
        Verdict::Pass
    }

    fn refused(&mut self, _: &mut CodelState, _: u64) {}

    fn overflowed(&mut self, state: &mut CodelState, loss: Loss) {
        state.overflowed(loss.packets);
        self.drop_overlimit = self.drop_overlimit.wrapping_add(loss.packets);
        if loss.memory {
            self.drop_overmemory = self.drop_overmemory.wrapping_add(loss.packets);
        }
    }

    #[inline]
    fn passes(&mut self, state: &mut CodelState, packet: &Packet, _: Left, now: Time) -> bool {
        state.passes(&self.law, &mut self.counters, packet, now)
    }

    fn leaves(
        &mut self,
        state: &mut CodelState,
        packet: &mut Packet,
        left: Left,
        now: Time,
    ) -> Verdict {
        state.leaves(&self.law, &mut self.counters, packet, left.all, now)
    }

    #[inline]
    fn found_empty(&mut self, state: &mut CodelState) {
        state.found_empty();
    }

    fn class(&self, state: &CodelState, class: Class) -> Class {
        let (count, lastcount) = state.counts();
        Class { count, lastcount, drop_next: state.drop_next(&self.law), ..class }
    }

    fn statistics(&self, lists: &Lists, totals: &mut Totals) -> Detail {
        let Counters { ecn_marks, ce_marks, max_packet, .. } = self.counters;
        totals.marked = u64::from(ecn_marks) + u64::from(ce_marks);
        Detail::FqCodel(Stats {
            maxpacket: max_packet,
            drop_overlimit: self.drop_overlimit,
            ecn_mark: ecn_marks,
            ce_mark: UnlessZero(ce_marks),
            new_flow_count: lists.new_flow_count,
            new_flows_len: lists.new,
            old_flows_len: lists.old,
            memory_used: UnlessZero(narrow(lists.memory)),
            drop_overmemory: UnlessZero(self.drop_overmemory),
        })
    }
}

#[cfg(test)]
mod tests;
