//! `blue`: one queue under BLUE. Ours: no system has it as a discipline.
//!
//! Arrivals are dropped, or marked, with the probability that `aqm/blue.rs` has learnt; an arrival
//! that finds `limit` packets, or more than `threshold`, teaches it.

use crate::aqm::blue::{Blue as State, Params as AqmParams};
use crate::packet::Packet;
use crate::qdisc::single::{Aqm, Limit, Single, Verdict};
use crate::qdisc::{Backlog, ConfigError, Device, DropReason};
use crate::random::Random;
use crate::tc::stats::{BlueStats, Detail, Totals};
use crate::tc::Config;
use crate::time::Time;

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Packets that may be queued.
    pub limit: u32,
    /// Packets beyond which an arrival counts as congestion; None for a full queue only.
    pub threshold: Option<u32>,
    /// Mark ECN-capable packets where others are dropped.
    pub ecn: bool,
    /// BLUE's own.
    pub aqm: AqmParams,
}

impl Default for Params {
    fn default() -> Params {
        Params { limit: 1000, threshold: None, ecn: false, aqm: AqmParams::default() }
    }
}

/// A queue under BLUE.
pub type Blue = Single<Learnt>;

/// BLUE with its dice and its counters.
#[derive(Clone, Debug)]
pub struct Learnt {
    state: State,
    params: Params,
    random: Random,
    stats: BlueStats,
}

impl Aqm for Learnt {
    const LEAVES_ALL: bool = true;
    type Params = Params;

    fn new(params: &Params, device: &Device) -> Result<Learnt, ConfigError> {
        Ok(Learnt {
            state: State::default(),
            params: *params,
            random: Random::new(device.seed),
            stats: BlueStats::default(),
        })
    }

    fn params(config: &Config) -> Option<&Params> {
        match config {
            Config::Blue(params) => Some(params),
            _ => None,
        }
    }

    fn config(params: &Params) -> Config {
        Config::Blue(*params)
    }

    fn limit(params: &Params, _: &Device) -> Limit {
        Limit::packets(params.limit)
    }

    fn change(&mut self, params: &Params, _: &Device) -> Result<(), ConfigError> {
        self.params = *params;
        Ok(())
    }

    #[inline]
    fn arrives(&mut self, packet: &Packet, backlog: Backlog, now: Time) -> Verdict {
        if self.params.threshold.is_some_and(|threshold| backlog.packets >= threshold) {
            self.state.raise(&self.params.aqm, now);
        }
        if !self.state.hits(&mut self.random) {
            return Verdict::Pass;
        }
        if self.params.ecn && packet.is_markable() {
            self.stats.ecn_mark += 1;
            return Verdict::Marked;
        }
        self.stats.dropped += 1;
        Verdict::Drop(DropReason::Congested)
    }

    #[cold]
    fn refused(&mut self, now: Time) {
        self.state.raise(&self.params.aqm, now);
        self.stats.overlimit += 1;
    }

    #[inline]
    fn passes(&mut self, _: &Packet, _: Backlog, _: Time) -> bool {
        true
    }

    #[inline]
    fn found_empty(&mut self, now: Time) {
        self.state.lower(&self.params.aqm, now);
    }

    fn restart(&mut self, _: &Params, _: &Device) {
        self.state = State::default();
    }

    fn statistics(&self, totals: &mut Totals) -> Detail {
        totals.marked = self.stats.ecn_mark.into();
        Detail::Blue(BlueStats { probability: self.state.probability(), ..self.stats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::{Discard, Qdisc};
    use crate::tc;

    #[test]
    fn overflow_teaches_and_idleness_forgets() {
        let Ok(Config::Blue(params)) = tc::parse("blue limit 50 freeze 10ms") else { panic!() };
        let mut blue = Blue::new(&params, &Device::default()).unwrap();
        let probability = |blue: &Blue| {
            let Detail::Blue(stats) = blue.snapshot().detail else { panic!() };
            stats.probability
        };
        // A line of a packet a millisecond, offered a tenth more.
        let mut overlimit = [0; 2];
        for tick in 0..200_000u64 {
            let now = Time(tick * 100_000);
            if tick * 11 / 100 != (tick + 1) * 11 / 100 {
                blue.enqueue(&Packet::new(tick, 1000), now, &mut Discard);
            }
            if tick % 10 == 0 {
                blue.dequeue(now, &mut Discard);
            }
            let Detail::Blue(stats) = blue.snapshot().detail else { panic!() };
            overlimit[usize::from(tick >= 100_000)] = stats.overlimit;
        }
        let learnt = f64::from(probability(&blue)) / f64::from(u32::MAX);
        assert!((0.05..0.16).contains(&learnt), "{learnt}");
        // Hardly anything is lost to a full queue once it has learnt.
        assert!(overlimit[1] - overlimit[0] < 50, "{overlimit:?}");
        for n in 0..2000 {
            while blue.dequeue(Time(30_000_000_000 + n * 10_000_000), &mut Discard).is_some() {}
        }
        assert_eq!(probability(&blue), 0);
    }

    #[test]
    fn a_threshold_teaches_before_the_queue_is_full_and_marks_suffice() {
        let words = "blue limit 50 threshold 10 ecn increment 1";
        let Ok(Config::Blue(params)) = tc::parse(words) else { panic!() };
        let mut blue = Blue::new(&params, &Device::default()).unwrap();
        for n in 0..20 {
            let mut packet = Packet::new(n, 1000);
            (packet.flags, packet.tos) = (crate::packet::Flags::IPV4, 2);
            blue.enqueue(&packet, Time(n), &mut Discard);
        }
        let Detail::Blue(stats) = blue.snapshot().detail else { panic!() };
        assert_eq!((stats.ecn_mark, stats.dropped, stats.overlimit), (10, 0, 0));
        assert_eq!(blue.backlog().packets, 20);
    }
}
