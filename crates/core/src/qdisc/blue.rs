//! `blue`: one queue under BLUE. Ours: no system has it as a discipline.
//!
//! Arrivals are dropped, or marked, with the probability that `aqm/blue.rs` has learnt; an arrival
//! that finds `limit` packets, or more than `threshold`, teaches it. The words are those of BLUE's
//! paper, and `tc`'s habits.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use crate::aqm::blue::{BlueParams, BlueState};
use crate::packet::Packet;
use crate::qdisc::single::{Aqm, Fate, Limit, Single};
use crate::qdisc::{
    too_small, Backlog, Chance, ConfigError, Described, Detail, Device, DropReason, Managed, Names,
    PacketOwner, Totals,
};
use crate::random::Random;
use crate::tc::units::{packet_count, shown_time, write_fraction, write_probability};
use crate::tc::{units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};
use crate::time::{Span, Time};

const COUNT: Value<u32> = Value::new("a number of packets, 0 to 4294967295", packet_count);
const TIME: Value<Span> = Value::new("a TIME such as 100ms", units::time);
const WHOLE: u64 = 1 << 32;

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
    pub aqm: BlueParams,
}

impl Default for Params {
    fn default() -> Params {
        Params { limit: 1000, threshold: None, ecn: false, aqm: BlueParams::default() }
    }
}

const KEYWORDS: Keywords = &[&[
    Keyword::new("limit", "N", "packets that may be queued, default 1000"),
    Keyword::new("threshold", "N", "packets beyond which marking rises; unless set, when full"),
    Keyword::new("increment", "P", "step up of the probability, default 0.02"),
    Keyword::new("decrement", "P", "step down, default 0.002"),
    Keyword::new("freeze", "TIME", "least time between two steps, default 100ms"),
    Keyword::new("ecn", "", "mark ECN-capable packets"),
    Keyword::new("noecn", "", "drop all (default)"),
]];

impl Described for Params {
    const NAMES: Names =
        &[("blue", "one queue under BLUE, which learns from overflow and idleness")];
    const KEYWORDS: Keywords = KEYWORDS;
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let mut params = Params::default();
        while let Some(word) = words.next() {
            match word {
                "increment" => params.aqm.increment = words.take(&units::CHANCE)?,
                "decrement" => params.aqm.decrement = words.take(&units::CHANCE)?,
                "limit" => params.limit = words.take(&COUNT)?,
                "threshold" => params.threshold = Some(words.take(&COUNT)?),
                "freeze" => params.aqm.freeze = words.take(&TIME)?,
                "ecn" => params.ecn = true,
                "noecn" => params.ecn = false,
                _ => return Err(words.unknown()),
            }
        }
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        write!(out, "limit {}p ", self.limit)?;
        if let Some(threshold) = self.threshold {
            write!(out, "threshold {threshold}p ")?;
        }
        for (word, step) in [("increment", self.aqm.increment), ("decrement", self.aqm.decrement)] {
            write!(out, "{word} ")?;
            match digits {
                Digits::AsTc => write_fraction(step.into(), WHOLE, out)?,
                Digits::Exact => write_probability(step, out)?,
            }
            out.write_char(' ')?;
        }
        write!(out, "freeze {}", shown_time(self.aqm.freeze, digits))?;
        out.write_str(if self.ecn { " ecn " } else { " " })
    }

    /// Times in nanoseconds, as the names say.
    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        let step = |step: u32| move |out: &mut dyn Write| write_fraction(step.into(), WHOLE, out);
        json.key("limit")?.number(self.limit.into())?;
        if let Some(threshold) = self.threshold {
            json.key("threshold")?.number(threshold.into())?;
        }
        json.key("increment")?.raw(step(self.aqm.increment))?;
        json.key("decrement")?.raw(step(self.aqm.decrement))?;
        json.key("freeze_ns")?.number(self.aqm.freeze.0)?;
        json.key("ecn")?.boolean(self.ecn)
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn drops_all(&self, _: &Device) -> Option<String> {
        too_small("limit", self.limit.into(), 1)
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Blue::new(self, device)?))
    }
}

/// A queue under BLUE.
pub type Blue = Single<Learnt>;

/// BLUE with its dice and its counters.
#[derive(Clone, Debug)]
pub struct Learnt {
    state: BlueState,
    params: Params,
    random: Random,
    stats: Stats,
}

figures! {
    /// BLUE's own counters and state.
    pub struct Stats {
        /// Probability of a drop or mark.
        prob: Chance<WHOLE>,
        /// Packets dropped by BLUE.
        dropped: u32,
        /// Packets dropped because the queue was full.
        overlimit: u32,
        /// Packets marked CE.
        ecn_mark: u32,
    }
}

impl Aqm for Learnt {
    const LEAVES_ALL: bool = true;
    type Params = Params;

    fn new(params: &Params, device: &Device) -> Result<Learnt, ConfigError> {
        Ok(Learnt {
            state: BlueState::default(),
            params: *params,
            random: Random::new(device.seed),
            stats: Stats::default(),
        })
    }

    fn limit(params: &Params, _: &Device) -> Limit {
        Limit::packets(params.limit)
    }

    fn change(&mut self, params: &Params, _: &Device, _: &mut Learnt) {
        self.params = *params;
    }

    #[inline]
    fn admits(&mut self, _: &Packet, backlog: Backlog, _: Time) -> bool {
        let threshold = self.params.threshold.unwrap_or(u32::MAX);
        backlog.packets < threshold && self.state.probability() == 0
    }

    fn arrives(
        &mut self,
        packet: &Packet,
        backlog: Backlog,
        now: Time,
        _: &mut dyn PacketOwner,
    ) -> Fate {
        if self.params.threshold.is_some_and(|threshold| backlog.packets >= threshold) {
            self.state.raise(&self.params.aqm, now);
        }
        if !self.state.hits(&mut self.random) {
            return Fate::Pass;
        }
        if self.params.ecn && packet.is_markable() {
            self.stats.ecn_mark += 1;
            return Fate::Marked;
        }
        self.stats.dropped += 1;
        Fate::Drop(DropReason::Congested)
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
        self.state = BlueState::default();
    }

    fn statistics(&self, totals: &mut Totals) -> Detail {
        totals.marked = self.stats.ecn_mark.into();
        Detail::Blue(Stats { prob: Chance(self.state.probability().into()), ..self.stats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::{self, Config, Discard, Qdisc};

    #[test]
    fn overflow_teaches_and_idleness_forgets() {
        let Ok(Config::Blue(params)) = qdisc::parse("blue limit 50 freeze 10ms") else { panic!() };
        let mut blue = Blue::new(&params, &Device::default()).unwrap();
        let probability = |blue: &Blue| blue.aqm().state.probability();
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
            overlimit[usize::from(tick >= 100_000)] = blue.aqm().stats.overlimit;
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

    /// A queue above the threshold teaches again as soon as the freeze is over.
    #[test]
    fn a_long_queue_teaches_after_the_freeze() {
        let words = "blue limit 50 threshold 10 freeze 10ms increment 0.1 decrement 0.1";
        let Ok(Config::Blue(params)) = qdisc::parse(words) else { panic!() };
        let mut blue = Blue::new(&params, &Device::default()).unwrap();
        let at = |ms: u64| Time(1_000_000_000 + 1_000_000 * ms);
        let probability = |blue: &Blue| blue.aqm().state.probability();
        let fill = |blue: &mut Blue, ms| {
            (0..20).for_each(|n| blue.enqueue(&Packet::new(n, 1_000), at(ms), &mut Discard));
        };
        fill(&mut blue, 0);
        assert!(probability(&blue) > 0);
        while blue.dequeue(at(10), &mut Discard).is_some() {}
        assert_eq!(probability(&blue), 0);
        fill(&mut blue, 19);
        assert_eq!((probability(&blue), blue.backlog().packets), (0, 20));
        blue.enqueue(&Packet::new(0, 1_000), at(20), &mut Discard);
        assert!(probability(&blue) > 0);
    }

    #[test]
    fn a_threshold_teaches_before_the_queue_is_full_and_marks_suffice() {
        let words = "blue limit 50 threshold 10 ecn increment 1";
        let Ok(Config::Blue(params)) = qdisc::parse(words) else { panic!() };
        let mut blue = Blue::new(&params, &Device::default()).unwrap();
        for n in 0..20 {
            let mut packet = Packet::new(n, 1000);
            (packet.flags, packet.tos) = (crate::packet::Flags::IPV4, 2);
            blue.enqueue(&packet, Time(n), &mut Discard);
        }
        assert_eq!(blue.aqm().stats, Stats { ecn_mark: 10, ..Stats::default() });
        assert_eq!(blue.backlog().packets, 20);
    }
}
