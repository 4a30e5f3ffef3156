//! The words of `red` (man tc-red), and ours for the simulators' RED: `red ns bandwidth 3mbit`.
//!
//! As in `tc`, `limit` and `avpkt` must be given. The others have defaults: max is three times min,
//! or a quarter of the limit without min; min is a third of max. Burst is (2 min + max) / (3
//! avpkt), probability 0.02, bandwidth 10mbit. `tc` prints limit, min, max and the flags only.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use super::{Kind, Params, Red, Stats};
use crate::aqm::red::{ns, Law, RedParams, Signals, Unfit};
use crate::qdisc::netlink::Abi;
use crate::qdisc::{too_small, Bypass, ConfigError, Described, Device, Managed, Names, Needs};
use crate::rate::Rate;
use crate::tc::units::{packet_count, shown_probability, shown_rate, shown_size, shown_time};
use crate::tc::{units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};
use crate::time::Span;

const SIZE: Value<u32> =
    Value::new("a SIZE such as 30kb", units::size).within("a SIZE less than 4gb");
const COUNT: Value<u32> = Value::new("a number of packets, 0 to 4294967295", packet_count);
const RATE: Value<Rate> =
    Value::new("a RATE such as 10mbit", units::rate).within("a RATE below 2^64 bytes a second");
const CHANCE: Value<u32> = Value::new("a probability such as 0.02", units::probability);
const TIME: Value<Span> = Value::new("a TIME such as 100ms", units::time);
const DEFAULT_PROBABILITY: u32 = 85_899_345;
const DEFAULT_BANDWIDTH: Rate = Rate(1_250_000);
/// Packets that the simulators' queue holds unless told: as many as Linux's devices do.
const NS_LIMIT: u32 = 1000;

/// The keywords.
const KEYWORDS: Keywords = &[
    &[
        Keyword::new("limit", "SIZE", "longest queue (ns: in packets, default 1000)"),
        Keyword::new("min", "SIZE", "average below which nothing happens (ns: in packets)"),
        Keyword::new("max", "SIZE", "average from which all are signalled (ns: in packets)"),
        Keyword::new("avpkt", "SIZE", "size of an average packet (ns: default 500)"),
        Keyword::new("burst", "N", "packets that may come at once"),
        Keyword::new("bandwidth", "RATE", "the line's rate, default 10mbit"),
        Keyword::new("probability", "P", "highest chance of a signal, default 0.02 (ns: 0.1)"),
        Keyword::new("ecn", "", "mark ECN-capable packets"),
        Keyword::new("harddrop", "", "drop even those above max"),
        Keyword::new("nodrop", "", "with ecn: queue what cannot be marked"),
        Keyword::new("adaptive", "", "adapt the probability (ns: default)"),
        Keyword::new("adaptative", "", "the same"),
    ],
    &[
        Keyword::new("ns", "", "the simulators' RED, which configures itself (ours)"),
        Keyword::new("delay", "TIME", "ns: round trip without queueing, default 100ms (ours)"),
        Keyword::new("weight", "P", "ns: weight of one sample in the average (ours)"),
        Keyword::new("gentle", "", "ns: rise on up to twice max (default; ours)"),
        Keyword::new("nogentle", "", "ns: signal to all from max on (ours)"),
        Keyword::new("wait", "", "ns: wait between signals (default; ours)"),
        Keyword::new("nowait", "", "ns: signal as chance has it (ours)"),
        Keyword::new("noadaptive", "", "ns: keep the probability (ours)"),
    ],
];

/// Values of the words read so far.
#[derive(Clone, Default)]
pub(in crate::qdisc) struct Said {
    ns: bool,
    pub limit: u32,
    pub min: u32,
    pub max: u32,
    pub avpkt: u32,
    pub burst: u32,
    weight: u32,
    bandwidth: Option<Rate>,
    probability: Option<u32>,
    delay: Option<Span>,
    adaptive: Option<bool>,
    gentle: Option<bool>,
    wait: Option<bool>,
    signals: Signals,
}

impl Described for Params {
    const NAMES: Names = &[("red", "one queue under RED, Linux's or the simulators'")];
    const KEYWORDS: Keywords = KEYWORDS;
    const NETLINK: Option<Abi<Params, Stats>> = Some(super::netlink::ABI);
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        // Sizes in bytes or numbers of packets: that is known at the end only.
        let mut said = Said { ns: words.holds("ns"), ..Said::default() };
        while let Some(word) = words.next() {
            said.take(word, words)?;
        }
        let params = if said.ns { said.ns_params() } else { said.linux_params(words)? };
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        match &self.kind {
            Kind::Linux(linux) => write_linux(self.limit, linux, digits, out),
            Kind::Ns(ns) => write_ns(self.limit, ns, digits, out),
        }
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.key("limit")?.number(self.limit.into())?;
        let (min, max, signals, adaptive) = match &self.kind {
            Kind::Linux(linux) => (linux.min, linux.max, &linux.signals, linux.adaptive),
            Kind::Ns(ns) => (ns.min, ns.max, &ns.signals, ns.adaptive),
        };
        json.key("min")?.number(min.into())?;
        json.key("max")?.number(max.into())?;
        for (on, word) in flags(signals, adaptive) {
            json.key(word)?.boolean(on)?;
        }
        if let Kind::Ns(ns) = &self.kind {
            json.key("ns")?.boolean(true)?;
            json.key("bandwidth")?.number(ns.bandwidth.0)?;
            json.key("delay_ns")?.number(ns.rtt.0)?;
            json.key("gentle")?.boolean(ns.gentle)?;
            json.key("wait")?.boolean(ns.wait)?;
        }
        Ok(())
    }

    fn drops_all(&self, device: &Device) -> Option<String> {
        let least = if matches!(self.kind, Kind::Linux(_)) { device.mtu } else { 1 };
        too_small("limit", self.limit.into(), least)
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn own_needs(&self) -> Needs {
        Needs { bypass: Bypass::AtRest, ..Needs::MOST }
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Red::new(self, device)?))
    }
}

impl Said {
    /// Reads the limit after the last word read.
    pub fn take_limit(&mut self, words: &mut Words<'_>) -> Result<(), ParseError> {
        self.limit = self.amount(words)?;
        Ok(())
    }

    pub fn take(&mut self, word: &str, words: &mut Words<'_>) -> Result<(), ParseError> {
        match word {
            "limit" => self.take_limit(words)?,
            "min" => self.min = self.amount(words)?,
            "max" => self.max = self.amount(words)?,
            "avpkt" => self.avpkt = words.take(&SIZE)?,
            "burst" => self.burst = words.take(&COUNT)?,
            "bandwidth" => {
                self.bandwidth = Some(words.take(&RATE)?).filter(|rate| !rate.is_unlimited());
            }
            "probability" if self.ns => self.probability = Some(words.take(&units::CHANCE)?),
            "probability" => self.probability = Some(words.take(&CHANCE)?),
            "weight" if self.ns => self.weight = words.take(&units::CHANCE)?,
            "delay" if self.ns => self.delay = Some(words.take(&TIME)?),
            "ecn" => self.signals.ecn = true,
            "harddrop" => self.signals.harddrop = true,
            "nodrop" => self.signals.nodrop = true,
            "adaptive" | "adaptative" => self.adaptive = Some(true),
            "noadaptive" if self.ns => self.adaptive = Some(false),
            "gentle" if self.ns => self.gentle = Some(true),
            "nogentle" if self.ns => self.gentle = Some(false),
            "wait" if self.ns => self.wait = Some(true),
            "nowait" if self.ns => self.wait = Some(false),
            "ns" => {}
            _ => return Err(words.unknown()),
        }
        Ok(())
    }

    fn amount(&self, words: &mut Words<'_>) -> Result<u32, ParseError> {
        match self.ns {
            true => words.take(&COUNT),
            false => words.take(&SIZE),
        }
    }

    fn ns_params(&self) -> Params {
        let default = ns::NsParams::default();
        Params {
            limit: if self.limit == 0 { NS_LIMIT } else { self.limit },
            kind: Kind::Ns(ns::NsParams {
                bandwidth: self.bandwidth.unwrap_or(default.bandwidth),
                rtt: self.delay.unwrap_or(default.rtt),
                mean: if self.avpkt == 0 { default.mean } else { self.avpkt },
                min: self.min,
                max: self.max,
                weight: self.weight,
                probability: self.probability.unwrap_or(default.probability),
                gentle: self.gentle.unwrap_or(default.gentle),
                wait: self.wait.unwrap_or(default.wait),
                adaptive: self.adaptive.unwrap_or(default.adaptive),
                signals: self.signals,
            }),
        }
    }

    pub fn linux_params(&self, words: &Words<'_>) -> Result<Params, ParseError> {
        if self.limit == 0 {
            return Err(words.lacks("red", "limit SIZE"));
        }
        if self.avpkt == 0 {
            return Err(words.lacks("red", "avpkt SIZE"));
        }
        if self.signals.nodrop && !self.signals.ecn {
            return Err(words.lacks("red nodrop", "ecn as well"));
        }
        let max = match (self.max, self.min) {
            (0, 0) => self.limit / 4,
            (0, min) => min.saturating_mul(3),
            (max, _) => max,
        };
        let min = if self.min == 0 { max / 3 } else { self.min };
        let whole = (2 * u64::from(min) + u64::from(max)) / (3 * u64::from(self.avpkt));
        let params = RedParams {
            min,
            max,
            avpkt: self.avpkt,
            burst: if self.burst == 0 { whole as u32 } else { self.burst },
            bandwidth: self.bandwidth.unwrap_or(DEFAULT_BANDWIDTH),
            probability: self.probability.unwrap_or(DEFAULT_PROBABILITY),
            adaptive: self.adaptive.unwrap_or(false),
            signals: self.signals,
        };
        let (keyword, range, lacking) = match Law::new(&params) {
            Ok(_) => return Ok(Params { limit: self.limit, kind: Kind::Linux(params) }),
            Err(Unfit::Range) => ("max", "at least min", "a `max` of at least min"),
            Err(Unfit::Burst) => (
                "burst",
                "at least min / avpkt packets",
                "a `burst` of at least min / avpkt packets",
            ),
            Err(Unfit::Probability) => (
                "probability",
                "more than (max - min) / 2^31",
                "a `probability` of more than (max - min) / 2^31",
            ),
            Err(Unfit::Bandwidth) => ("bandwidth", "a higher RATE", "a higher `bandwidth`"),
        };
        Err(words.unfit(keyword, range, lacking))
    }
}

/// Flags in the order in which `tc` prints them.
pub(in crate::qdisc) fn flags(signals: &Signals, adaptive: bool) -> [(bool, &'static str); 4] {
    [
        (signals.ecn, "ecn"),
        (signals.harddrop, "harddrop"),
        (adaptive, "adaptive"),
        (signals.nodrop, "nodrop"),
    ]
}

pub(in crate::qdisc) fn write_flags(
    flags: &[(bool, &'static str)],
    out: &mut dyn Write,
) -> fmt::Result {
    flags.iter().filter(|(on, _)| *on).try_for_each(|(_, word)| write!(out, "{word} "))
}

fn write_linux(limit: u32, params: &RedParams, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    for (word, size) in [("limit", limit), ("min", params.min), ("max", params.max)] {
        write!(out, "{word} {} ", shown_size(size.into(), digits))?;
    }
    if digits == Digits::Exact {
        write!(out, "avpkt {} burst {} ", params.avpkt, params.burst)?;
        write!(out, "bandwidth {} ", shown_rate(params.bandwidth, digits))?;
        write!(out, "probability {} ", shown_probability(params.probability))?;
    }
    write_flags(&flags(&params.signals, params.adaptive), out)
}

fn write_ns(limit: u32, params: &ns::NsParams, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    write!(out, "ns limit {limit}p ")?;
    for (word, packets) in [("min", params.min), ("max", params.max)] {
        if packets > 0 {
            write!(out, "{word} {packets}p ")?;
        }
    }
    let bandwidth = shown_rate(params.bandwidth, digits);
    let (delay, chance) = (shown_time(params.rtt, digits), shown_probability(params.probability));
    write!(out, "avpkt {} bandwidth {bandwidth} delay {delay} ", params.mean)?;
    write!(out, "probability {chance} ")?;
    if params.weight > 0 {
        write!(out, "weight {} ", shown_probability(params.weight))?;
    }
    write_flags(&flags(&params.signals, false), out)?;
    let off =
        [(!params.gentle, "nogentle"), (!params.wait, "nowait"), (!params.adaptive, "noadaptive")];
    write_flags(&off, out)
}
