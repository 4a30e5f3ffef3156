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
use crate::time::{Span, Time};

pub use stats::Stats;

/// Unit in which Linux's CoDel counts time.
pub(in crate::qdisc) const UNIT: Span = Span(1024);

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
    /// Time at which the last packet left the queue, sent or dropped.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::{show_own, Discard, Managed, Qdisc, Snapshot};
    use std::string::String;

    /// A packet a millisecond more than leaves; an empty queue then.
    #[test]
    fn marks_of_both_kinds_are_marks() {
        let ms = |ms| Time::ZERO + crate::time::Span::from_millis(ms);
        for (ecn, ce_threshold) in [(true, None), (false, Some(ms(1).since(Time::ZERO)))] {
            let mut params = Params::default();
            params.aqm.ecn = ecn;
            if let Some(threshold) = ce_threshold {
                params.aqm.ce_threshold = Some(threshold);
            }
            let mut codel = Codel::new(&params, &Device::default()).unwrap();
            for n in 0..500 {
                let mut packet = Packet::new(n, 1000);
                (packet.flags, packet.tos) = (crate::packet::Flags::IPV4, 2);
                (0..2).for_each(|_| codel.enqueue(&packet, ms(n), &mut Discard));
                codel.dequeue(ms(n), &mut Discard);
            }
            let Snapshot { totals, detail: Detail::Codel(stats), .. } = codel.snapshot() else {
                panic!()
            };
            assert_eq!((stats.ecn_mark > 0, stats.ce_mark > 0), (ecn, ce_threshold.is_some()));
            assert_eq!(totals.marked, u64::from(stats.ecn_mark + stats.ce_mark));
        }
    }

    /// Linux's `codel_dequeue`: the packet after the drop that begins a spell leaves in the same
    /// call, whatever it is. The spell ends with the queue.
    #[test]
    fn a_spell_ends_with_the_queue() {
        let mut codel = Codel::new(&Params::default(), &Device::default()).unwrap();
        let at = |ms| Time::ZERO + crate::time::Span::from_millis(ms);
        for (handle, len) in [(1, 1_500), (2, 1_500), (3, 3_000)] {
            codel.enqueue(&Packet::new(handle, len), at(100), &mut Discard);
        }
        let mut next = |ms| {
            let left = codel.dequeue(at(ms), &mut Discard).map(|packet| packet.handle);
            let Snapshot { detail: Detail::Codel(stats), .. } = codel.snapshot() else { panic!() };
            (left, stats.dropping)
        };
        assert_eq!(next(110), (Some(1), false));
        assert_eq!(next(220), (Some(3), true));
        assert_eq!(next(221), (None, false));
    }

    #[test]
    fn a_signal_that_is_overdue_is_shown_with_its_sign() {
        let mut codel = Codel::new(&Params::default(), &Device::default()).unwrap();
        let mut shown = |drop_next_us| {
            let Snapshot { detail: Detail::Codel(stats), .. } = codel.snapshot() else { panic!() };
            let detail = Detail::Codel(Stats { drop_next_us, dropping: true, ..stats });
            let mut text = String::new();
            show_own(&Snapshot { detail, ..codel.snapshot() }, &mut text).unwrap();
            codel.reset(&mut Discard);
            text
        };
        for (us, text) in [(0, "drop_next 0us"), (7, "drop_next 7us"), (-7, "drop_next -7us")] {
            assert!(shown(us).contains(text), "{}", shown(us));
        }
    }
}
