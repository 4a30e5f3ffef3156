//! The words of `pie` (man tc-pie), and ours for FreeBSD's: `freebsd`, `onoff` and the switches
//! that ipfw(8) has.
//!
//! As in `tc`, a zero is not sent and leaves the default in force. Linux counts the target in 64
//! ns, which shows where `tc` prints it: 100us become 99us.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use super::{Params, Pie, Stats, UNIT};
use crate::aqm::pie::{Flavour, PieParams};
use crate::qdisc::netlink::Abi;
use crate::qdisc::{too_small, Bypass, ConfigError, Described, Device, Managed, Names, Needs};
use crate::tc::units::{packet_count, shown_time};
use crate::tc::{or_default, units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};
use crate::time::Span;

const LIMIT: Value<u32> = Value::new("a number of packets, 1 to 4294967295", packet_count);
const TIME: Value<Span> =
    Value::new("a TIME such as 15ms", units::span).within("a TIME below 4295 seconds");
const WEIGHT: (i64, i64) = (0, 32);
const WEIGHT_RANGE: &str = "a whole number of sixteenths, 1 to 32";

/// The keywords.
const KEYWORDS: Keywords =
    &[&[Keyword::new("limit", "N", "packets that may be queued, default 1000")], LINUX, OURS];

/// Keywords of PIE itself, in Linux.
pub(in crate::qdisc) const LINUX: &[Keyword] = &[
    Keyword::new("target", "TIME", "delay to steer for, default 15ms"),
    Keyword::new("tupdate", "TIME", "time between computations, default 15ms"),
    Keyword::new("alpha", "N", "weight of the distance from target, default 2 (sixteenths)"),
    Keyword::new("beta", "N", "weight of the delay's change, default 20 (sixteenths)"),
    Keyword::new("ecn", "", "mark ECN-capable packets up to a probability of 10 %"),
    Keyword::new("noecn", "", "drop all (default)"),
    Keyword::new("bytemode", "", "drop small packets less often"),
    Keyword::new("nobytemode", "", "drop all alike (default)"),
    Keyword::new("dq_rate_estimator", "", "delay from an estimated departure rate"),
    Keyword::new("no_dq_rate_estimator", "", "delay as packets have it (default)"),
];

/// Keywords of PIE itself that FreeBSD needs.
pub(in crate::qdisc) const OURS: &[Keyword] = &[
    Keyword::new("freebsd", "", "FreeBSD's PIE, with dq_rate_estimator unless told (ours)"),
    Keyword::new("onoff", "", "sleep until the queue is a third full (ours)"),
    Keyword::new("noonoff", "", "never sleep (default; ours)"),
    Keyword::new("drand", "", "keep drops from clustering (default; ours)"),
    Keyword::new("nodrand", "", "plain dice (ours)"),
    Keyword::new("capdrop", "", "no more than 2 % up at once from 10 % on (default; ours)"),
    Keyword::new("nocapdrop", "", "any step (ours)"),
];

/// Words of PIE itself, which fq_pie has as well.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::qdisc) struct AqmWords {
    params: PieParams,
    dq_rate_estimator: Option<bool>,
}

impl AqmWords {
    /// Takes `word` and its value; false if it is none of PIE's.
    pub(in crate::qdisc) fn take(
        &mut self,
        word: &str,
        words: &mut Words<'_>,
    ) -> Result<bool, ParseError> {
        let (params, default) = (&mut self.params, PieParams::default());
        let weight = |words: &mut Words<'_>, default| {
            let number = words.number(WEIGHT, WEIGHT_RANGE)? as u32;
            Ok::<u32, ParseError>(or_default(number, default))
        };
        match word {
            "target" => params.target = or_default(words.take(&TIME)?, default.target),
            "tupdate" => params.tupdate = or_default(words.take(&TIME)?, default.tupdate),
            "alpha" => params.alpha = weight(words, default.alpha)?,
            "beta" => params.beta = weight(words, default.beta)?,
            "ecn" => params.ecn = true,
            "noecn" => params.ecn = false,
            "bytemode" => params.bytemode = true,
            "nobytemode" => params.bytemode = false,
            "dq_rate_estimator" => self.dq_rate_estimator = Some(true),
            "no_dq_rate_estimator" => self.dq_rate_estimator = Some(false),
            "freebsd" => params.flavour = Flavour::Freebsd,
            "onoff" => params.on_off = true,
            "noonoff" => params.on_off = false,
            "drand" => params.derandomise = true,
            "nodrand" => params.derandomise = false,
            "capdrop" => params.cap_drop = true,
            "nocapdrop" => params.cap_drop = false,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Settings from the words read.
    pub(in crate::qdisc) fn params(&self) -> PieParams {
        let estimates = self.params.flavour == Flavour::Freebsd;
        let dq_rate_estimator = self.dq_rate_estimator.unwrap_or(estimates);
        PieParams { dq_rate_estimator, ..self.params }
    }
}

impl Described for Params {
    const NAMES: Names = &[("pie", "one queue whose delay PIE steers")];
    const KEYWORDS: Keywords = KEYWORDS;
    const NETLINK: Option<Abi<Params, Stats>> = Some(super::netlink::ABI);
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let (mut limit, mut aqm) = (0, AqmWords::default());
        while let Some(word) = words.next() {
            match word {
                "limit" => limit = words.take(&LIMIT)?,
                _ if aqm.take(word, words)? => {}
                _ => return Err(words.unknown()),
            }
        }
        let default = Params::default();
        Ok(Params { limit: or_default(limit, default.limit), aqm: aqm.params() })
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        write!(out, "limit {}p ", self.limit)?;
        write_steering(&self.aqm, digits, out)?;
        write_switches(&self.aqm, out)
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.key("limit")?.number(self.limit.into())?;
        write_steering_json(&self.aqm, json)?;
        write_switches_json(&self.aqm, json)
    }

    fn drops_all(&self, _: &Device) -> Option<String> {
        too_small("limit", self.limit.into(), 1)
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn resolve(&mut self, device: &Device) {
        self.aqm.tupdate = device.tick.enough(self.aqm.tupdate);
    }

    fn own_needs(&self) -> Needs {
        Needs { vain_calls: false, bypass: Bypass::AtRest, ..Needs::MOST }
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Pie::new(self, device)?))
    }
}

/// Switches of PIE with their words: those that `tc` prints when they are on, in its order.
fn switches(params: &PieParams) -> [(bool, &'static str); 8] {
    let freebsd = params.flavour == Flavour::Freebsd;
    [
        (params.ecn, "ecn"),
        (params.bytemode, "bytemode"),
        (params.dq_rate_estimator, "dq_rate_estimator"),
        (freebsd, "freebsd"),
        (freebsd && !params.dq_rate_estimator, "no_dq_rate_estimator"),
        (params.on_off, "onoff"),
        (!params.derandomise, "nodrand"),
        (!params.cap_drop, "nocapdrop"),
    ]
}

/// Writes what PIE steers by as words, each with a space after it.
pub(in crate::qdisc) fn write_steering(
    params: &PieParams,
    digits: Digits,
    out: &mut dyn Write,
) -> fmt::Result {
    let target = if digits == Digits::AsTc { params.target.floor(UNIT) } else { params.target };
    let [target, tupdate] = [target, params.tupdate].map(|time| shown_time(time, digits));
    let PieParams { alpha, beta, .. } = params;
    write!(out, "target {target} tupdate {tupdate} alpha {alpha} beta {beta} ")
}

/// Writes PIE's switches as words, each with a space after it.
pub(in crate::qdisc) fn write_switches(params: &PieParams, out: &mut dyn Write) -> fmt::Result {
    let on = switches(params).into_iter().filter(|(on, _)| *on);
    on.into_iter().try_for_each(|(_, word)| write!(out, "{word} "))
}

/// Writes what PIE steers by as members of a JSON object.
pub(in crate::qdisc) fn write_steering_json(
    params: &PieParams,
    json: &mut Json<'_>,
) -> fmt::Result {
    json.key("target")?.number(params.target.floor(UNIT).as_micros())?;
    json.key("tupdate")?.number(params.tupdate.as_micros())?;
    json.key("alpha")?.number(params.alpha.into())?;
    json.key("beta")?.number(params.beta.into())
}

/// Writes PIE's switches as members of a JSON object.
pub(in crate::qdisc) fn write_switches_json(
    params: &PieParams,
    json: &mut Json<'_>,
) -> fmt::Result {
    for (_, word) in switches(params).into_iter().filter(|(on, _)| *on) {
        json.key(word)?.boolean(true)?;
    }
    Ok(())
}
