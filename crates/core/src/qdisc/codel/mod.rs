//! `codel`: one queue under CoDel (man tc-codel; RFC 8289; facts D.1).
//!
//! A newcomer that finds `limit` packets is dropped; all else is decided when packets leave, in
//! `aqm/codel.rs`. CoDel's own state is shown as `tc` shows it, as of the last departure.

pub(in crate::qdisc) mod netlink;
mod stats;
pub(in crate::qdisc) mod words;

use crate::aqm::codel::{CodelParams, CodelState, Counters, Law};
use crate::aqm::Verdict;
use crate::packet::Packet;
use crate::qdisc::single::{Aqm, Fate, Limit, Single};
use crate::qdisc::{Backlog, ConfigError, Detail, Device, DropReason, Totals};
use crate::time::Time;

pub use stats::Stats;

/// Settings, with the names and defaults of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Packets that may be queued.
    pub limit: u32,
    /// CoDel's own.
    pub aqm: CodelParams,
}

impl Default for Params {
    fn default() -> Params {
        Params { limit: 1000, aqm: CodelParams::default() }
    }
}

/// A queue under CoDel.
pub type Codel = Single<Controlled>;

/// CoDel with its counters.
#[derive(Clone, Debug)]
pub struct Controlled {
    state: CodelState,
    law: Law,
    counters: Counters,
    drop_overlimit: u32,
    /// When the last packet left.
    now: Time,
}

impl Aqm for Controlled {
    type Params = Params;

    fn new(params: &Params, device: &Device) -> Result<Controlled, ConfigError> {
        Ok(Controlled {
            state: CodelState::default(),
            law: Law::new(&params.aqm, device.mtu, device.arithmetic),
            counters: Counters::default(),
            drop_overlimit: 0,
            now: device.now,
        })
    }

    fn limit(params: &Params, _: &Device) -> Limit {
        Limit::packets(params.limit)
    }

    fn change(&mut self, params: &Params, device: &Device, _: &mut Controlled) {
        self.law = Law::new(&params.aqm, device.mtu, device.arithmetic);
    }

    #[inline]
    fn admits(&mut self, _: &Packet, _: Backlog, _: Time) -> bool {
        true
    }

    #[cold]
    fn refused(&mut self, _: Time) {
        self.drop_overlimit += 1;
    }

    #[inline]
    fn passes(&mut self, packet: &Packet, _: Backlog, now: Time) -> bool {
        self.now = now;
        self.state.passes(&self.law, &mut self.counters, packet, now)
    }

    fn leaves(&mut self, packet: &mut Packet, left: Backlog, now: Time) -> Fate {
        match self.state.leaves(&self.law, &mut self.counters, packet, left.bytes, now) {
            Verdict::Pass => Fate::Pass,
            Verdict::Marked => Fate::Marked,
            Verdict::Drop => Fate::Drop(DropReason::Congested),
        }
    }

    #[inline]
    fn found_empty(&mut self, _: Time) {
        self.state.found_empty();
    }

    fn restart(&mut self, _: &Params, _: &Device) {
        self.state = CodelState::default();
        self.counters.forget_delay();
    }

    fn statistics(&self, totals: &mut Totals) -> Detail {
        let Counters { ecn_marks, ce_marks, max_packet, .. } = self.counters;
        totals.marked = u64::from(ecn_marks) + u64::from(ce_marks);
        let (count, lastcount) = self.state.counts();
        let drop_next = self.state.drop_next(&self.law);
        Detail::Codel(Stats {
            count,
            lastcount,
            last_delay: self.law.last_delay(&self.counters),
            dropping: drop_next.is_some(),
            drop_next_us: drop_next.map_or(0, |time| time.micros_after(self.now)),
            max_packet,
            ecn_mark: ecn_marks,
            drop_overlimit: self.drop_overlimit,
            ce_mark: ce_marks,
        })
    }
}
