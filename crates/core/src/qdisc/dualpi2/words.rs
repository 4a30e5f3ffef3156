//! The words of `dualpi2` (man tc-dualpi2, iproute2 7.1).
//!
//! As in `tc`, a zero for a limit, a time or `step_thresh` is not sent and leaves the default in
//! force. What follows from `max_rtt` or `typical_rtt` stands above what was said of the
//! controller. `split_gso` is a matter of the kernel module: elsewhere super-packets stay whole.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use super::{Dualpi2, Params, Stats, Step, UNTOUCHED};
use crate::aqm::pi2::{as_kept, Pi2Params};
use crate::qdisc::netlink::Abi;
use crate::qdisc::{too_small, Choice, ConfigError, Described, Device, Managed, Names, Needs};
use crate::tc::units::{packet_count, shown_time, write_fraction, write_time, ValueError};
use crate::tc::{or_default, units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};
use crate::time::Span;

const COUNT: Value<u32> = Value::new("a number of packets, 0 to 4294967295", packet_count);
const SIZE: Value<u32> = Value::new("a SIZE such as 32mb", bytes);
const TIME: Value<Span> = Value::new("a TIME such as 15ms", units::time);
const STEP: Value<Step> = Value::new("a TIME such as 1ms, or packets such as 5p", step);
const FACTOR: (i64, i64) = (1, 255);
const FACTOR_RANGE: &str = "a whole number, 1 to 255";
const PERCENT: Value<u8> = Value::new("a PERCENTAGE of 0 to 100, such as 10 or 10%", percent);
const HERTZ: Value<u32> = Value::new("a number of hertz below 16777216, such as 0.16", hertz);
const ROUND_TRIPS: &str =
    "`max_rtt` and `typical_rtt` that lead to an alpha and a beta of at least 1/256 Hz";
/// `alpha` and `beta` are kept in units of 1/256 Hz.
const PER_HERTZ: u64 = 256;

/// The keywords.
const KEYWORDS: Keywords = &[&[
    Keyword::new("limit", "N", "packets that may be queued, default 10000"),
    Keyword::new("memlimit", "SIZE", "memory that may be used"),
    Keyword::new("coupling_factor", "N", "how much more scalable senders are marked, default 2"),
    Keyword::new("step_thresh", "TIME|Np", "from where on low latency is marked, default 1ms"),
    Keyword::new("min_qlen_step", "N", "packets that must be queued for a step, default 0"),
    Keyword::new("drop_on_overload", "", "drop low latency, too, in overload (default)"),
    Keyword::new("overflow", "", "leave overload to the limit"),
    Keyword::new("drop_dequeue", "", "decide about classic packets as they leave (default)"),
    Keyword::new("drop_enqueue", "", "decide about them as they come"),
    Keyword::new("l4s_ect", "", "ECT(1) and CE are low latency (default)"),
    Keyword::new("any_ect", "", "all ECN-capable packets are"),
    Keyword::new("classic_protection", "PERCENT", "percent that classic packets have for sure"),
    Keyword::new("max_rtt", "TIME", "longest round trip: sets target, tupdate, alpha and beta"),
    Keyword::new("typical_rtt", "TIME", "usual round trip, a sixth of the longest unless told"),
    Keyword::new("target", "TIME", "delay of the classic queue, default 15ms"),
    Keyword::new("tupdate", "TIME", "time between computations, default 16ms"),
    Keyword::new("alpha", "HZ", "weight of the distance from target, default 0.16"),
    Keyword::new("beta", "HZ", "weight of the delay's change, default 3.2"),
    Keyword::new("split_gso", "", "kernel module: cut super-packets up (default)"),
    Keyword::new("no_split_gso", "", "leave super-packets whole"),
]];

fn hertz(word: &str) -> Result<u32, ValueError> {
    let hertz = units::number(word)?;
    match hertz.whole() {
        Some(0..=16_777_215) => Ok(hertz.times(PER_HERTZ).whole().unwrap_or(0) as u32),
        _ => Err(ValueError::TooLarge),
    }
}

/// Rounded to a whole percent.
fn percent(word: &str) -> Result<u8, ValueError> {
    let percent = units::number(word.strip_suffix('%').unwrap_or(word))?;
    match percent.times(2).whole() {
        Some(twice @ 0..=200) => Ok(twice.div_ceil(2) as u8),
        _ => Err(ValueError::TooLarge),
    }
}

fn step(word: &str) -> Result<Step, ValueError> {
    let suffixes = ["packets", "packet", "pkts", "pkt", "p"];
    match suffixes.iter().find_map(|suffix| word.strip_suffix(suffix)) {
        Some(count) => packet_count(count).map(Step::Packets),
        None => units::time(word).map(Step::Delay),
    }
}

impl Described for Params {
    const NAMES: Names = &[("dualpi2", "two coupled queues: low latency, and the rest")];
    const KEYWORDS: Keywords = KEYWORDS;
    const NETLINK: Option<Abi<Params, Stats>> = Some(super::netlink::ABI);
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let default = Params::default();
        let mut params = default;
        let (mut max_rtt, mut typical_rtt) = (None, None);
        while let Some(word) = words.next() {
            let time = |words: &mut Words<'_>| {
                Ok::<_, ParseError>(Some(words.take(&TIME)?).filter(|time| *time > Span::ZERO))
            };
            match word {
                "max_rtt" => max_rtt = time(words)?,
                "typical_rtt" => typical_rtt = time(words)?,
                "target" => params.aqm.target = time(words)?.unwrap_or(default.aqm.target),
                "tupdate" => params.aqm.tupdate = time(words)?.unwrap_or(default.aqm.tupdate),
                "alpha" => params.aqm.alpha = words.take(&HERTZ)?,
                "beta" => params.aqm.beta = words.take(&HERTZ)?,
                "limit" => params.limit = or_default(words.take(&COUNT)?, default.limit),
                "memlimit" => {
                    params.memlimit = Some(words.take(&SIZE)?).filter(|limit| *limit > 0);
                }
                "coupling_factor" => params.coupling = words.number(FACTOR, FACTOR_RANGE)? as u32,
                "step_thresh" => {
                    let nothing = [Step::Delay(Span::ZERO), Step::Packets(0)];
                    let step = words.take(&STEP)?;
                    params.step = if nothing.contains(&step) { default.step } else { step };
                }
                "min_qlen_step" => params.min_qlen_step = words.take(&COUNT)?,
                "drop_on_overload" => params.drop_on_overload = true,
                "overflow" => params.drop_on_overload = false,
                "drop_dequeue" => params.drop_at_dequeue = true,
                "drop_enqueue" => params.drop_at_dequeue = false,
                "l4s_ect" => params.any_ect = false,
                "any_ect" => params.any_ect = true,
                "classic_protection" => params.classic_protection = words.take(&PERCENT)?,
                "split_gso" => params.split_gso = true,
                "no_split_gso" => params.split_gso = false,
                _ => return Err(words.unknown()),
            }
        }
        if max_rtt.is_some() || typical_rtt.is_some() {
            if matches!((typical_rtt, max_rtt), (Some(typical), Some(max)) if typical > max) {
                return Err(words.lacks("dualpi2 typical_rtt", "a max_rtt that is not below it"));
            }
            params.aqm = Pi2Params::for_round_trips(max_rtt, typical_rtt)
                .ok_or_else(|| words.lacks("dualpi2", ROUND_TRIPS))?;
        }
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        write!(out, "limit {}p ", self.limit)?;
        if let Some(limit) = self.memlimit {
            write!(out, "memlimit {limit}B ")?;
        }
        let time = |time| shown_time(time, digits);
        write!(out, "target {} ", time(self.aqm.target))?;
        write!(out, "tupdate {} alpha ", time(self.aqm.tupdate))?;
        write_hertz(self.aqm.alpha, digits, out)?;
        out.write_str(" beta ")?;
        write_hertz(self.aqm.beta, digits, out)?;
        out.write_str(" step_thresh ")?;
        match self.step {
            Step::Delay(delay) => write_time(delay, digits, out)?,
            Step::Packets(count) => write!(out, "{count}p")?,
        }
        let [overload, place, ect] = self.choices();
        let percent = self.classic_protection;
        write!(out, " min_qlen_step {}p coupling_factor {}", self.min_qlen_step, self.coupling)?;
        write!(out, " {overload} {place} classic_protection {percent}% {ect} ")?;
        out.write_str(if self.split_gso { "split_gso " } else { "no_split_gso " })
    }

    /// Times in microseconds, as `tc`.
    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.key("limit")?.number(self.limit.into())?;
        if let Some(limit) = self.memlimit {
            json.key("memory-limit")?.number(limit.into())?;
        }
        json.key("target")?.number(self.aqm.target.as_micros())?;
        json.key("tupdate")?.number(self.aqm.tupdate.as_micros())?;
        for (key, weight) in [("alpha", self.aqm.alpha), ("beta", self.aqm.beta)] {
            json.key(key)?.raw(|out| write_fraction(as_kept(weight), PER_HERTZ, out))?;
        }
        match self.step {
            Step::Delay(delay) => json.key("step-thresh-us")?.number(delay.as_micros())?,
            Step::Packets(count) => json.key("step-thresh-pkts")?.number(count.into())?,
        }
        json.key("min-qlen-step")?.number(self.min_qlen_step.into())?;
        json.key("coupling")?.number(self.coupling.into())?;
        json.key("drop-overload")?.string(if self.drop_on_overload {
            "drop"
        } else {
            "overflow"
        })?;
        let [_, place, ect] = self.choices();
        json.key("drop-early")?.string(&place.replace('_', "-"))?;
        json.key("c-protection")?.number(self.classic_protection.into())?;
        json.key("ecn-mask")?.string(&ect.replace('_', "-"))?;
        match self.split_gso {
            true => json.key("split-gso")?.raw(|out| out.write_str("null")),
            false => Ok(()),
        }
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn resolve(&mut self, device: &Device) {
        self.memlimit = Some(self.memory_limit(device));
    }

    fn drops_all(&self, device: &Device) -> Option<String> {
        let memory =
            self.memlimit.and_then(|limit| too_small("memlimit", limit.into(), device.mtu));
        too_small("limit", self.limit.into(), 1).or(memory)
    }

    fn own_needs(&self) -> Needs {
        Needs { pieces: self.split_gso, choice: Choice::Small(UNTOUCHED), ..Needs::MOST }
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Dualpi2::new(self, device)?))
    }
}

impl Params {
    /// The words for what to do in overload, where to decide, and who has low latency.
    fn choices(&self) -> [&'static str; 3] {
        [
            if self.drop_on_overload { "drop_on_overload" } else { "overflow" },
            if self.drop_at_dequeue { "drop_dequeue" } else { "drop_enqueue" },
            if self.any_ect { "any_ect" } else { "l4s_ect" },
        ]
    }
}

/// A SIZE; `B` is what `tc` prints here for bytes.
fn bytes(word: &str) -> Result<u32, ValueError> {
    units::size(word.strip_suffix('B').unwrap_or(word))
}

/// Writes a weight in hertz: six places.
fn write_hertz(weight: u32, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    let weight = match digits {
        Digits::AsTc => as_kept(weight),
        Digits::Exact => weight.into(),
    };
    // Rounded up where it is to be read again: what is cut off then is less than a unit.
    let parts = weight % PER_HERTZ * 1_000_000;
    let places = match digits {
        // Half to even.
        Digits::AsTc => (parts + PER_HERTZ / 2 - 1 + parts / PER_HERTZ % 2) / PER_HERTZ,
        Digits::Exact => parts.div_ceil(PER_HERTZ),
    };
    write!(out, "{}.{places:06}", weight / PER_HERTZ)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::{parse, Config};

    #[test]
    fn hertz_are_shown_with_six_places_half_to_even() {
        for (weight, shown) in [
            // As kept: 0, 1, 2, 3, 6, 40, 255 and 258 of 256ths.
            (1, "0.000000"),
            (2, "0.003906"),
            (3, "0.007812"),
            (4, "0.011719"),
            (7, "0.023438"),
            (41, "0.156250"),
            (256, "0.996094"),
            (259, "1.007812"),
        ] {
            let mut text = String::new();
            write_hertz(weight, Digits::AsTc, &mut text).unwrap();
            assert_eq!(text, shown, "{weight}");
        }
    }

    #[test]
    fn nothing_is_said_by_zero() {
        let of = |words: &str| match parse(words) {
            Ok(Config::Dualpi2(params)) => params,
            other => panic!("{words}: {other:?}"),
        };
        let words = "dualpi2 max_rtt 0 typical_rtt 0 target 0 tupdate 0 memlimit 0 limit 0";
        assert_eq!(of(words), Params::default());
        assert_eq!(of("dualpi2 memlimit 1").memlimit, Some(1));
        let device = Device::default();
        let reason = |words: &str| parse(words).unwrap().passes_nothing(&device);
        assert!(reason("dualpi2 memlimit 1").is_some_and(|said| said.contains("`memlimit")));
        assert_eq!(reason("dualpi2"), None);
    }
}
