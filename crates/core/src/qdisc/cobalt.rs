//! `cobalt`: one queue under COBALT, cake's CoDel and BLUE, without the rest of cake. Ours.
//!
//! An arrival that finds `limit` packets is dropped, and COBALT is told of it, as when cake
//! overflows and takes from its longest queue. All else is decided when packets leave, in
//! `aqm/cobalt.rs`. As in cake, the last packet of the queue may be marked but is never dropped by
//! CoDel or BLUE. The words are `codel`'s.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use crate::aqm::cobalt::{CobaltParams, CobaltState, CobaltVerdict};
use crate::packet::Packet;
use crate::qdisc::single::{Aqm, Fate, Limit, Single};
use crate::qdisc::{
    too_small, Backlog, ConfigError, Described, Detail, Device, DropReason, Managed, Names, Totals,
};
use crate::random::Random;
use crate::steps::Budget;
use crate::tc::units::{packet_count, shown_time};
use crate::tc::{units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};
use crate::time::{Span, Time};

const COUNT: Value<u32> = Value::new("a number of packets, 0 to 4294967295", packet_count);
const TIME: Value<Span> = Value::new("a TIME such as 5ms", units::time);

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Packets that may be queued.
    pub limit: u32,
    /// Standing delay that is accepted.
    pub target: Span,
    /// A worst-case round-trip time.
    pub interval: Span,
}

impl Default for Params {
    /// CoDel's own.
    fn default() -> Params {
        Params { limit: 1000, target: Span::from_millis(5), interval: Span::from_millis(100) }
    }
}

const KEYWORDS: Keywords = &[&[
    Keyword::new("limit", "N", "packets that may be queued, default 1000"),
    Keyword::new("target", "TIME", "standing delay that is accepted, default 5ms"),
    Keyword::new("interval", "TIME", "a worst-case round-trip time, default 100ms"),
]];

impl Described for Params {
    const NAMES: Names = &[("cobalt", "one queue under cake's AQM")];
    const KEYWORDS: Keywords = KEYWORDS;
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let mut params = Params::default();
        while let Some(word) = words.next() {
            match word {
                "limit" => params.limit = words.take(&COUNT)?,
                "target" => params.target = words.take(&TIME)?,
                "interval" => params.interval = words.take(&TIME)?,
                _ => return Err(words.unknown()),
            }
        }
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        let [target, interval] = [self.target, self.interval].map(|time| shown_time(time, digits));
        write!(out, "limit {}p target {target} interval {interval} ", self.limit)
    }

    /// Times in nanoseconds, as the names say.
    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.key("limit")?.number(self.limit.into())?;
        json.key("target_ns")?.number(self.target.0)?;
        json.key("interval_ns")?.number(self.interval.0)
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn drops_all(&self, _: &Device) -> Option<String> {
        too_small("limit", self.limit.into(), 1)
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Cobalt::new(self, device)?))
    }
}

/// A queue under COBALT.
pub type Cobalt = Single<Controlled>;

/// COBALT with its dice and its counters.
#[derive(Clone, Debug)]
pub struct Controlled {
    state: CobaltState,
    law: CobaltParams,
    random: Random,
    stats: Stats,
}

figures! {
    /// COBALT's own counters and state.
    pub struct Stats {
        /// Packets dropped by CoDel.
        dropped: u32,
        /// Packets dropped by BLUE.
        flooded: u32,
        /// Packets dropped because the queue was full.
        overlimit: u32,
        /// Packets marked CE.
        ecn_mark: u32,
        /// BLUE is at work.
        unresponsive: bool,
    }
}

/// The law of `params`. One queue of unknown rate: a few packets of it take no time.
fn law(params: &Params, device: &Device) -> CobaltParams {
    CobaltParams {
        target: params.target,
        interval: params.interval,
        mtu_time: Span::ZERO,
        arithmetic: device.arithmetic,
    }
}

impl Controlled {
    /// Its state: the control law's spell and BLUE's probability.
    pub fn state(&self) -> &CobaltState {
        &self.state
    }
}

impl Aqm for Controlled {
    type Params = Params;

    fn new(params: &Params, device: &Device) -> Result<Controlled, ConfigError> {
        Ok(Controlled {
            state: CobaltState::NEW,
            law: law(params, device),
            random: Random::new(device.seed),
            stats: Stats::default(),
        })
    }

    fn limit(params: &Params, _: &Device) -> Limit {
        Limit::packets(params.limit)
    }

    fn change(&mut self, params: &Params, device: &Device, _: &mut Controlled) {
        self.law = law(params, device);
    }

    #[inline]
    fn admits(&mut self, _: &Packet, _: Backlog, _: Time) -> bool {
        true
    }

    #[cold]
    fn refused(&mut self, now: Time) {
        self.state.queue_full(&self.law, now);
        self.stats.overlimit += 1;
    }

    #[inline]
    fn passes(&mut self, packet: &Packet, _: Backlog, now: Time) -> bool {
        self.state.passes(&self.law, now.since(packet.enqueued), now, 0)
    }

    fn leaves(&mut self, packet: &mut Packet, left: Backlog, now: Time) -> Fate {
        // Of one queue only the first packet of a call may have steps to catch up with.
        let budget = Budget::default();
        let decision = self.state.decide(&self.law, packet, now, 0, &mut self.random, &budget);
        self.stats.ecn_mark += u32::from(decision.is_marked());
        match decision {
            CobaltVerdict::Congested if left.packets > 0 => {
                self.stats.dropped += 1;
                Fate::Drop(DropReason::Congested)
            }
            CobaltVerdict::Flood { .. } if left.packets > 0 => {
                self.stats.flooded += 1;
                Fate::Drop(DropReason::Flood)
            }
            decision if decision.is_marked() => Fate::Marked,
            _ => Fate::Pass,
        }
    }

    #[inline]
    fn found_empty(&mut self, now: Time) {
        self.state.queue_empty(&self.law, now);
    }

    fn restart(&mut self, _: &Params, _: &Device) {
        self.state = CobaltState::NEW;
    }

    fn statistics(&self, totals: &mut Totals) -> Detail {
        totals.marked = self.stats.ecn_mark.into();
        Detail::Cobalt(Stats { unresponsive: self.state.is_unresponsive(), ..self.stats })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Flags;
    use crate::qdisc::{self, Config, Discard, Qdisc};

    fn run(words: &str, tos: u8, load: u64) -> (Controlled, Span) {
        let Ok(Config::Cobalt(params)) = qdisc::parse(words) else { panic!("{words}") };
        let mut cobalt = Cobalt::new(&params, &Device::default()).unwrap();
        let mut delay = Span::ZERO;
        // A line of a packet a millisecond for twenty seconds.
        for tick in 0..200_000u64 {
            let now = Time(tick * 100_000);
            if tick * load / 100 != (tick + 1) * load / 100 {
                let mut packet = Packet::new(tick, 1000);
                (packet.flags, packet.tos) = (Flags::IPV4, tos);
                cobalt.enqueue(&packet, now, &mut Discard);
            }
            if tick % 10 == 0 {
                if let Some(packet) = cobalt.dequeue(now, &mut Discard) {
                    delay = now.since(packet.enqueued);
                }
            }
        }
        (cobalt.aqm().clone(), delay)
    }

    #[test]
    fn codel_holds_what_is_a_little_too_much() {
        let (Controlled { state, stats, .. }, delay) = run("cobalt", 0, 11);
        assert!(
            stats.dropped > 1500 && stats.overlimit == 0 && !state.is_unresponsive(),
            "{stats:?}"
        );
        assert!(delay < Span::from_millis(50), "{delay:?}");
        // Marks alone do not move a sender that does not listen.
        let (Controlled { stats, .. }, _) = run("cobalt limit 5000", 2, 11);
        assert!(stats.ecn_mark > 1500 && stats.dropped == 0, "{stats:?}");
    }

    #[test]
    fn blue_wakes_where_the_queue_overflows() {
        let (Controlled { state, stats, .. }, _) = run("cobalt limit 100", 2, 30);
        assert!(stats.overlimit > 100 && stats.flooded > 1000, "{stats:?}");
        assert!(state.is_unresponsive());
    }

    /// Neither law takes the last packet of a queue, and BLUE comes to rest where that is empty.
    #[test]
    fn the_last_packet_is_sent_and_blue_rests_on_an_empty_queue() {
        let Ok(Config::Cobalt(params)) = qdisc::parse("cobalt limit 1") else { panic!() };
        let mut cobalt = Cobalt::new(&params, &Device::default()).unwrap();
        let mut now = Time(1 << 40);
        let detail = |cobalt: &Cobalt| match cobalt.snapshot().detail {
            Detail::Cobalt(stats) => stats,
            _ => panic!(),
        };
        // Some hundred overflows, a target apart: BLUE's probability is one.
        for _ in 0..300 {
            now += params.target + Span(1);
            (0..2).for_each(|_| cobalt.enqueue(&Packet::new(1, 1000), now, &mut Discard));
        }
        let state = *cobalt.aqm().state();
        assert!(state.is_unresponsive() && state.spell().0 > 0 && detail(&cobalt).unresponsive);
        assert_eq!((state.blue().0, detail(&cobalt).overlimit), (u32::MAX, 599));
        // One that BLUE alone wants dropped.
        let mut other = cobalt.clone();
        assert!(other.dequeue(now, &mut Discard).is_some());
        other.enqueue(&Packet::new(2, 1000), now, &mut Discard);
        assert_eq!(other.dequeue(now, &mut Discard).map(|packet| packet.handle), Some(2));
        assert_eq!((detail(&other).dropped, detail(&other).flooded), (0, 0));
        let sent =
            cobalt.dequeue(now + Span::from_secs(9), &mut Discard).map(|packet| packet.handle);
        assert_eq!((sent, detail(&cobalt).dropped, detail(&cobalt).flooded), (Some(1), 0, 0));
        for steps in 1..=4_096u64 {
            now += params.target + Span(1);
            assert!(cobalt.dequeue(now + Span::from_secs(9), &mut Discard).is_none());
            let left = u64::from(u32::MAX).saturating_sub(steps << 20);
            assert_eq!(u64::from(cobalt.aqm().state().blue().0), left);
            assert_eq!(detail(&cobalt).unresponsive, left > 0);
        }
    }

    #[test]
    fn marks_are_counted_and_told_apart_from_drops() {
        for (tos, reason) in [(2, None), (0, Some(DropReason::Congested))] {
            let Ok(Config::Cobalt(params)) = qdisc::parse("cobalt") else { panic!() };
            let mut cobalt = Cobalt::new(&params, &Device::default()).unwrap();
            for handle in 0..9 {
                let mut packet = Packet::new(handle, 1000);
                (packet.flags, packet.tos) = (Flags::IPV4, tos);
                cobalt.enqueue(&packet, Time(0), &mut Discard);
            }
            let mut sent = std::vec::Vec::new();
            while let Some(packet) = cobalt.dequeue(Time(1 << 30), &mut Discard) {
                sent.push((packet.handle, packet.flags.has(Flags::MARKED)));
            }
            let totals = cobalt.snapshot().totals;
            let marked = sent.iter().filter(|(_, marked)| *marked).count() as u64;
            assert_eq!((totals.marked, cobalt.marked()), (marked, marked));
            let dropped = reason.map_or(0, |reason| totals.dropped[reason as usize]);
            assert_eq!(sent.len() as u64 + dropped, 9);
            assert_eq!((marked > 0, dropped > 0), (tos == 2, tos == 0), "{sent:?}");
        }
    }

    #[test]
    fn its_settings_are_told() {
        let config = qdisc::parse("cobalt limit 500 target 10ms interval 200ms").unwrap();
        let mut told = std::string::String::new();
        let mut json = Json::new(&mut told);
        json.begin_object().unwrap();
        config.write_json(&mut json).unwrap();
        json.end_object().unwrap();
        assert_eq!(told, r#"{"limit":500,"target_ns":10000000,"interval_ns":200000000}"#);
        assert!(!config.tells_flows());
        let device = Device::default();
        let none = qdisc::parse("cobalt limit 0").unwrap().passes_nothing(&device);
        assert!(none.is_some_and(|reason| reason.contains("`limit 0`")));
        assert_eq!(config.passes_nothing(&device), None);
    }
}
