//! The words of `dualpi2` (man tc-dualpi2, iproute2 6.17).
//!
//! Super-packets are not split here: `split_gso` and `no_split_gso` are accepted without effect.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use super::{Dualpi2, Params, Stats, Step};
use crate::aqm::pi2::Params as AqmParams;
use crate::qdisc::{too_small, ConfigError, Described, Device, Managed, Names};
use crate::tc::binary64::Binary64;
use crate::tc::units::{packet_count, write_size, write_time, ValueError};
use crate::tc::{units, Digits, Json, Keyword, Keywords, ParseError, Words};
use crate::time::Span;

const COUNT: &str = "a number of packets, 0 to 4294967295";
const SIZE: &str = "a SIZE such as 32mb";
const TIME: &str = "a TIME such as 15ms";
const STEP: &str = "a TIME such as 1ms, or packets such as 5p";
const FACTOR: (i64, i64) = (1, 255);
const FACTOR_RANGE: &str = "a whole number, 1 to 255";
const PERCENT: (i64, i64) = (0, 100);
const PERCENT_RANGE: &str = "a whole number of percent, 0 to 100";
const HERTZ: &str = "a number of hertz below 256, such as 0.16";
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
    Keyword::new("classic_protection", "N", "percent that classic packets have for sure"),
    Keyword::new("max_rtt", "TIME", "longest round trip: sets target, tupdate, alpha and beta"),
    Keyword::new("typical_rtt", "TIME", "usual round trip, with max_rtt"),
    Keyword::new("target", "TIME", "delay of the classic queue, default 15ms"),
    Keyword::new("tupdate", "TIME", "time between computations, default 16ms"),
    Keyword::new("alpha", "HZ", "weight of the distance from target, default 0.16"),
    Keyword::new("beta", "HZ", "weight of the delay's change, default 3.2"),
    Keyword::new("split_gso", "", "accepted, without effect"),
    Keyword::new("no_split_gso", "", "accepted, without effect"),
]];

fn hertz(word: &str) -> Result<u32, ValueError> {
    let (number, "") = Binary64::parse(word).ok_or(ValueError::Invalid)? else {
        return Err(ValueError::Invalid);
    };
    // Rounded to the nearest.
    let twice = number.times(2 * PER_HERTZ).whole().ok_or(ValueError::TooLarge)?;
    match twice.div_ceil(2) {
        units if units < PER_HERTZ * PER_HERTZ => Ok(units as u32),
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
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let mut params = Params::default();
        let (mut max_rtt, mut typical_rtt) = (None, None);
        let (mut target, mut tupdate, mut alpha, mut beta) = (None, None, None, None);
        while let Some(word) = words.next() {
            let mut time = |keyword| words.value(keyword, TIME, TIME, above_zero);
            match word {
                "max_rtt" => max_rtt = Some(time("max_rtt")?),
                "typical_rtt" => typical_rtt = Some(time("typical_rtt")?),
                "target" => target = Some(time("target")?),
                "tupdate" => tupdate = Some(time("tupdate")?),
                "alpha" => alpha = Some(words.value("alpha", HERTZ, HERTZ, hertz)?),
                "beta" => beta = Some(words.value("beta", HERTZ, HERTZ, hertz)?),
                "limit" => params.limit = words.value("limit", COUNT, COUNT, packet_count)?,
                "memlimit" => {
                    params.memlimit = Some(words.value("memlimit", SIZE, SIZE, units::size)?);
                }
                "coupling_factor" => {
                    params.coupling = words.number("coupling_factor", FACTOR, FACTOR_RANGE)? as u32;
                }
                "step_thresh" => params.step = words.value("step_thresh", STEP, STEP, step)?,
                "min_qlen_step" => {
                    params.min_qlen_step =
                        words.value("min_qlen_step", COUNT, COUNT, packet_count)?;
                }
                "drop_on_overload" => params.drop_on_overload = true,
                "overflow" => params.drop_on_overload = false,
                "drop_dequeue" => params.drop_at_dequeue = true,
                "drop_enqueue" => params.drop_at_dequeue = false,
                "l4s_ect" => params.any_ect = false,
                "any_ect" => params.any_ect = true,
                "classic_protection" => {
                    let percent = words.number("classic_protection", PERCENT, PERCENT_RANGE)?;
                    params.classic_protection = percent as u8;
                }
                "split_gso" | "no_split_gso" => {}
                _ => return Err(words.unknown()),
            }
        }
        if typical_rtt.is_some() && max_rtt.is_none() {
            return Err(words.lacks("dualpi2 typical_rtt", "max_rtt TIME as well"));
        }
        if let Some(max_rtt) = max_rtt {
            params.aqm = AqmParams::for_round_trips(max_rtt, typical_rtt);
        }
        let aqm = &mut params.aqm;
        aqm.target = target.unwrap_or(aqm.target);
        aqm.tupdate = tupdate.unwrap_or(aqm.tupdate);
        aqm.alpha = alpha.unwrap_or(aqm.alpha);
        aqm.beta = beta.unwrap_or(aqm.beta);
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        let either = |on: bool, yes: &'static str, no: &'static str| if on { yes } else { no };
        write!(out, "limit {}p ", self.limit)?;
        if let Some(limit) = self.memlimit {
            out.write_str("memlimit ")?;
            write_size(limit.into(), digits, out)?;
            out.write_char(' ')?;
        }
        write!(out, "coupling_factor {} step_thresh ", self.coupling)?;
        match self.step {
            Step::Delay(delay) => write_time(delay, digits, out)?,
            Step::Packets(count) => write!(out, "{count}p")?,
        }
        write!(out, " min_qlen_step {}p ", self.min_qlen_step)?;
        let overload = either(self.drop_on_overload, "drop_on_overload", "overflow");
        let place = either(self.drop_at_dequeue, "drop_dequeue", "drop_enqueue");
        let ect = either(self.any_ect, "any_ect", "l4s_ect");
        let percent = self.classic_protection;
        write!(out, "{overload} {place} {ect} classic_protection {percent} target ")?;
        write_time(self.aqm.target, digits, out)?;
        out.write_str(" tupdate ")?;
        write_time(self.aqm.tupdate, digits, out)?;
        out.write_str(" alpha ")?;
        write_hertz(self.aqm.alpha, out)?;
        out.write_str(" beta ")?;
        write_hertz(self.aqm.beta, out)?;
        out.write_char(' ')
    }

    /// Times in microseconds where `tc` has them so.
    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.key("limit")?.number(self.limit.into())?;
        if let Some(limit) = self.memlimit {
            json.key("memlimit")?.number(limit.into())?;
        }
        json.key("target")?.number(self.aqm.target.as_micros())?;
        json.key("tupdate")?.number(self.aqm.tupdate.as_micros())?;
        json.key("alpha")?.raw(|out| write_hertz(self.aqm.alpha, out))?;
        json.key("beta")?.raw(|out| write_hertz(self.aqm.beta, out))?;
        json.key("coupling_factor")?.number(self.coupling.into())?;
        json.key("drop_on_overload")?.boolean(self.drop_on_overload)?;
        match self.step {
            Step::Delay(delay) => json.key("step_thresh")?.number(delay.as_micros())?,
            Step::Packets(count) => json.key("step_packets")?.number(count.into())?,
        }
        json.key("min_qlen_step")?.number(self.min_qlen_step.into())?;
        json.key("drop_dequeue")?.boolean(self.drop_at_dequeue)?;
        json.key("any_ect")?.boolean(self.any_ect)?;
        json.key("classic_protection")?.number(self.classic_protection.into())
    }

    fn drops_all(&self, device: &Device) -> Option<String> {
        let memory =
            self.memlimit.and_then(|limit| too_small("memlimit", limit.into(), device.mtu));
        too_small("limit", self.limit.into(), 1).or(memory)
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Dualpi2::new(self, device)))
    }
}

fn above_zero(word: &str) -> Result<Span, ValueError> {
    match units::time(word)? {
        Span::ZERO => Err(ValueError::TooLarge),
        time => Ok(time),
    }
}

/// Writes a weight in hertz: as many digits as tell 1/256 apart.
fn write_hertz(units: u32, out: &mut dyn Write) -> fmt::Result {
    write!(out, "{}.", u64::from(units) / PER_HERTZ)?;
    // Six places, rounded up: what is cut off at reading is less than a unit.
    let places = (u64::from(units) % PER_HERTZ * 1_000_000).div_ceil(PER_HERTZ);
    write!(out, "{places:06}")
}
