//! `pie`: one queue under PIE (man tc-pie; RFC 8033; facts D.3).
//!
//! An arrival that finds `limit` packets is dropped; else `aqm/pie` decides. Its probability is
//! computed anew every `tupdate`, by a timer that runs from [`Device::now`]. The timer is caught up
//! with at each call: nothing that the computation looks at changes in between.

pub(in crate::qdisc) mod netlink;
mod stats;
pub(in crate::qdisc) mod words;

use crate::aqm::pie::{Law, PieParams, PieState, FIRST_UPDATE};
use crate::aqm::Verdict;
use crate::packet::Packet;
use crate::qdisc::single::{Aqm, Fate, Limit, Single};
use crate::qdisc::{Backlog, ConfigError, Detail, Device, DropReason, PacketOwner, Totals};
use crate::random::Random;
use crate::tick::Periodic;
use crate::time::{Span, Time};

pub use stats::Stats;

/// Unit in which Linux's PIE counts its target.
pub(in crate::qdisc) const UNIT: Span = Span(64);

/// Settings, with the names and defaults of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Packets that may be queued.
    pub limit: u32,
    /// PIE's own.
    pub aqm: PieParams,
}

impl Default for Params {
    fn default() -> Params {
        Params { limit: 1000, aqm: PieParams::default() }
    }
}

/// A queue under PIE.
pub type Pie = Single<Controlled>;

/// PIE with its clock, its dice and its counters.
#[derive(Clone, Debug)]
pub struct Controlled {
    state: PieState,
    law: Law,
    timer: Periodic,
    random: Random,
    /// Bytes in the queue after the last call.
    backlog: u64,
    stats: Stats,
}

impl Controlled {
    /// `packet` was taken out and `left` remains.
    #[inline(always)]
    fn departed(&mut self, packet: &Packet, left: Backlog, now: Time) {
        self.backlog = left.bytes;
        self.state.dequeued(&self.law, packet.enqueued, packet.len, now, left.bytes);
    }

    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.timer.is_due(now) {
            let Controlled { timer, state, law, backlog, .. } = self;
            timer.catch_up(now, |_| state.update(law, *backlog));
        }
    }
}

/// The law of `params` on `device`.
fn law(params: &Params, device: &Device) -> Law {
    let full = u64::from(params.limit) * u64::from(device.mtu);
    Law::new(&params.aqm, device.mtu, full, device.arithmetic)
}

impl Aqm for Controlled {
    type Params = Params;

    fn new(params: &Params, device: &Device) -> Result<Controlled, ConfigError> {
        Ok(Controlled {
            state: PieState::NEW,
            law: law(params, device),
            timer: Periodic::new(device.tick, device.now, FIRST_UPDATE, params.aqm.tupdate),
            random: Random::new(device.seed),
            backlog: 0,
            stats: Stats::default(),
        })
    }

    fn limit(params: &Params, _: &Device) -> Limit {
        Limit::packets(params.limit)
    }

    fn change(&mut self, params: &Params, device: &Device, _: &mut Controlled) {
        self.law = law(params, device);
        self.timer.set_period(params.aqm.tupdate);
    }

    #[inline]
    fn admits(&mut self, packet: &Packet, backlog: Backlog, now: Time) -> bool {
        if self.timer.is_due(now) || !self.state.is_calm(&self.law, backlog.bytes) {
            return false;
        }
        self.backlog = backlog.bytes + u64::from(packet.len);
        true
    }

    fn arrives(
        &mut self,
        packet: &Packet,
        backlog: Backlog,
        now: Time,
        _: &mut dyn PacketOwner,
    ) -> Fate {
        self.catch_up(now);
        let verdict = match self.state.admit(&self.law, packet, backlog.bytes, &mut self.random) {
            Verdict::Drop => {
                self.stats.dropped += 1;
                return Fate::Drop(DropReason::Congested);
            }
            Verdict::Marked => {
                self.stats.ecn_mark += 1;
                Fate::Marked
            }
            Verdict::Pass => Fate::Pass,
        };
        self.backlog = backlog.bytes + u64::from(packet.len);
        verdict
    }

    #[cold]
    fn refused(&mut self, now: Time) {
        self.catch_up(now);
        self.state.overflowed();
        self.stats.overlimit += 1;
        self.stats.dropped += 1;
    }

    #[inline]
    fn queued(&mut self, packets: u32) {
        self.stats.packets_in += 1;
        // As Linux, which looks before it queues.
        self.stats.max_queue = self.stats.max_queue.max(packets - 1);
    }

    #[inline]
    fn passes(&mut self, packet: &Packet, left: Backlog, now: Time) -> bool {
        if self.timer.is_due(now) || self.law.estimates_rate() {
            return false;
        }
        self.departed(packet, left, now);
        true
    }

    fn leaves(&mut self, packet: &mut Packet, left: Backlog, now: Time) -> Fate {
        self.catch_up(now);
        self.departed(packet, left, now);
        Fate::Pass
    }

    fn is_at_rest(&self) -> bool {
        self.state.is_at_rest(&self.law)
    }

    fn lends(&mut self, backlog: Backlog, now: Time) {
        self.catch_up(now);
        self.backlog = backlog.bytes;
    }

    fn restart(&mut self, _: &Params, _: &Device) {
        self.state = PieState::NEW;
        self.backlog = 0;
    }

    fn statistics(&self, totals: &mut Totals) -> Detail {
        totals.marked = self.stats.ecn_mark.into();
        Detail::Pie(Stats {
            probability: self.state.probability(),
            delay: self.state.delay(),
            departure_rate: self.law.estimates_rate().then(|| self.state.departure_rate()),
            ..self.stats
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::{self, Config, Discard, Managed, Qdisc};
    use crate::time::Span;

    /// A link of 1500 bytes a millisecond that is offered `load` tenths of that for `ms`; returns
    /// the delay of the last packet sent.
    fn offer(pie: &mut Pie, from: u64, ms: u64, load: u64) -> Span {
        let mut delay = Span::ZERO;
        for tick in from * 10..(from + ms) * 10 {
            let now = Time(tick * 100_000);
            if tick * load / 100 != (tick + 1) * load / 100 {
                pie.enqueue(&Packet::new(tick, 1500), now, &mut Discard);
            }
            if tick % 10 == 0 {
                if let Some(packet) = pie.dequeue(now, &mut Discard) {
                    delay = now.since(packet.enqueued);
                }
            }
        }
        delay
    }

    #[test]
    fn a_queue_is_steered_to_its_target() {
        let mut pie = Pie::new(&Params::default(), &Device::default()).unwrap();
        let delay = offer(&mut pie, 0, 20_000, 12);
        let target = Params::default().aqm.target;
        assert!(delay.0.abs_diff(target.0) < target.0 / 2, "{delay:?}");
        let totals = pie.snapshot().totals;
        let congested = totals.dropped[DropReason::Congested as usize];
        assert_eq!(congested, totals.drops());
        // A sixth of what comes is too much.
        assert!((3000..5000).contains(&congested), "{congested}");
        // Without load the probability goes, however long nobody calls.
        let Detail::Pie(before) = pie.snapshot().detail else { panic!() };
        assert!(before.probability > crate::aqm::pie::MAX_PROB / 20);
        while pie.dequeue(Time(21_000_000_000), &mut Discard).is_some() {}
        offer(&mut pie, 60_000, 20, 1);
        let Detail::Pie(after) = pie.snapshot().detail else { panic!() };
        assert_eq!((after.probability, after.delay), (0, Span::ZERO));
    }

    /// The clock is looked at before anything leaves or is lent, and the queue's length remembered
    /// after it.
    #[test]
    fn updates_see_the_queue_that_was_left_behind() {
        let device = Device::default();
        for (estimator, at, passes) in [(false, 1, true), (true, 1, false), (false, 500, false)] {
            let aqm = PieParams { dq_rate_estimator: estimator, ..PieParams::default() };
            let params = Params { aqm, ..Params::default() };
            let mut pie = Controlled::new(&params, &device).unwrap();
            let left = Backlog { packets: 1, bytes: 700 };
            let now = Time::ZERO + Span::from_millis(at);
            assert_eq!(pie.passes(&Packet::new(0, 500), left, now), passes, "{estimator} {at}");
            assert_eq!(pie.backlog, if passes { 700 } else { 0 }, "{estimator} {at}");
        }
        let mut pie = Controlled::new(&Params::default(), &device).unwrap();
        let (packet, found) = (Packet::new(0, 500), Backlog { packets: 1, bytes: 700 });
        assert!(pie.admits(&packet, found, Time(1)) && pie.backlog == 1_200);
        pie.lends(found, Time(2));
        assert_eq!((pie.backlog, pie.timer.next()), (700, Time::ZERO + FIRST_UPDATE));
        pie.lends(Backlog::default(), Time::ZERO + FIRST_UPDATE);
        let next = FIRST_UPDATE + Params::default().aqm.tupdate;
        assert_eq!((pie.backlog, pie.timer.next()), (0, Time::ZERO + next));
        assert_eq!(pie.arrives(&packet, found, Time(3), &mut Discard), Fate::Pass);
        assert_eq!(pie.backlog, 1_200);
    }

    #[test]
    fn what_is_lent_counts_as_queued() {
        for (lent, longest) in [(0, 1), (1, 2), (5, 6)] {
            let mut pie = Pie::new(&Params::default(), &Device::default()).unwrap();
            pie.lend(Backlog { packets: lent, bytes: 100 * u64::from(lent) }, Time(1));
            (0..2).for_each(|n| pie.enqueue(&Packet::new(n, 500), Time(2), &mut Discard));
            let Detail::Pie(stats) = pie.snapshot().detail else { panic!() };
            // Before the second one came.
            assert_eq!((stats.max_queue, pie.backlog().packets), (longest, 2), "{lent}");
        }
    }

    #[test]
    fn statistics_have_the_delay_and_a_rate_that_is_measured() {
        for (words, rate) in [("pie", false), ("pie dq_rate_estimator", true)] {
            let Ok(Config::Pie(params)) = qdisc::parse(words) else { panic!("{words}") };
            let mut pie = Pie::new(&params, &Device::default()).unwrap();
            offer(&mut pie, 0, 1_000, 12);
            let Detail::Pie(stats) = pie.snapshot().detail else { panic!() };
            assert!(stats.delay > Span::from_millis(5), "{words}: {stats:?}");
            assert_eq!(stats.departure_rate.is_some_and(|rate| rate > 1_000_000), rate, "{words}");
            let mut room = [0; 64];
            qdisc::netlink::write_statistics(&pie.snapshot(), &mut room).unwrap();
            // struct tc_pie_xstats begins with the probability, of 2^64.
            assert_eq!(u64::from_ne_bytes(room[..8].try_into().unwrap()) >> 8, stats.probability);
        }
    }

    #[test]
    fn freebsds_steers_as_well_and_sleeps_at_light_load() {
        let words = "pie freebsd onoff limit 90";
        let Ok(Config::Pie(params)) = qdisc::parse(words) else { panic!() };
        let mut pie = Pie::new(&params, &Device::default()).unwrap();
        // 29 packets stand: less than a third of 90.
        (0..29).for_each(|n| pie.enqueue(&Packet::new(n, 1500), Time(n), &mut Discard));
        offer(&mut pie, 1, 5000, 10);
        assert_eq!(pie.snapshot().totals.drops(), 0);
        let delay = offer(&mut pie, 5001, 20_000, 12);
        assert!(delay < Span::from_millis(45), "{delay:?}");
        assert!(pie.snapshot().totals.dropped[DropReason::Congested as usize] > 2000);
    }

    /// Of packets that pass it while it is at rest a queue misses how much of its burst they spent
    /// since the last update. After the next one, it decides as one that has seen them.
    #[test]
    fn at_rest_little_is_missed_of_what_passes() {
        let [mut seeing, mut resting] =
            [0, 0].map(|_| Pie::new(&Params::default(), &Device::default()).unwrap());
        let mut passed = 0;
        for round in 0..20 {
            let start = round * 20_000;
            for ms in start..start + 1000 {
                let (now, packet) = (Time(ms * 1_000_000), Packet::new(ms, 1500));
                let pass = |pie: &mut Pie| {
                    pie.enqueue(&packet, now, &mut Discard);
                    pie.dequeue(now, &mut Discard).unwrap();
                };
                pass(&mut seeing);
                if resting.is_at_rest() {
                    passed += 1;
                } else {
                    pass(&mut resting);
                }
            }
            assert!(seeing.is_at_rest() && resting.is_at_rest());
            let tupdate = Params::default().aqm.tupdate;
            let missed = resting.aqm().state.burst_left().0 - seeing.aqm().state.burst_left().0;
            assert!(missed < tupdate.0, "{missed}");
            let pause = round % 2 * 20;
            let load = |pie: &mut Pie| {
                let last = offer(pie, start + 1000 + pause, 3000, 12);
                let state = (pie.backlog(), pie.aqm().state.probability());
                while pie.dequeue(Time((start + 5000) * 1_000_000), &mut Discard).is_some() {}
                (last, state)
            };
            let (all, some) = (load(&mut seeing), load(&mut resting));
            assert!(all == some || pause == 0, "{all:?} {some:?}");
        }
        assert!(passed > 10_000, "{passed}");
    }

    #[test]
    fn a_full_queue_and_a_change_of_limit_are_counted_as_such() {
        let params = Params { limit: 10, ..Params::default() };
        let mut pie = Pie::new(&params, &Device::default()).unwrap();
        (0..15).for_each(|n| pie.enqueue(&Packet::new(n, 100), Time(n), &mut Discard));
        let Detail::Pie(stats) = pie.snapshot().detail else { panic!() };
        assert_eq!((stats.packets_in, stats.overlimit, stats.max_queue), (10, 5, 9));
        let small = Config::Pie(Params { limit: 4, ..params });
        pie.configure(&small, Time(20), &mut Discard).unwrap();
        assert_eq!((pie.backlog().packets, pie.config()), (4, small));
        assert_eq!(pie.dequeue(Time(20), &mut Discard).unwrap().handle, 6);
        assert_eq!(pie.snapshot().totals.dropped[DropReason::Overlimit as usize], 11);
    }
}
