//! The words of `sfq` (man tc-sfq).
//!
//! As in `tc`, a zero is not sent and leaves the default in force; `limit` must be at least 2. What
//! is shown is what the settings come to: `limit 10000 depth 10` is a limit of 1280. RED's `ewma`,
//! which `tc` prints in the place of `burst`, is read as well, and does without `redflowlimit`.

use alloc::boxed::Box;
use core::fmt::{self, Write};

use super::{Effective, Params, RedParams, Sfq, Stats, MAX_DIVISOR};
use crate::aqm::red::{burst_for, Law};
use crate::qdisc::netlink::Abi;
use crate::qdisc::red::words::{flags, write_flags, Said};
use crate::qdisc::red::Kind;
use crate::qdisc::{Bypass, Choice, ConfigError, Described, Device, Managed, Names, Needs};
use crate::tc::units::{packet_count, shown_size, ValueError};
use crate::tc::{units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};

const LIMIT: Value<u32> = Value::new("a number of packets, 2 to 4294967295", limit);
const COUNT: (i64, i64) = (0, u32::MAX as i64);
const COUNT_RANGE: &str = "a whole number, 0 to 4294967295";
const DIVISOR: Value<u32> = Value::new("a power of two from 1 to 65536", divisor);
const QUANTUM: Value<u32> = Value::new("a SIZE such as 1514", units::signed_size)
    .within("a SIZE of at most 2147483647 bytes");
const PERTURB: Value<u32> = Value::new("a number of seconds, 0 to 21474836", seconds);
/// Linux counts them in 32 bits of ticks, of which there may be a hundred a second.
const MOST_SECONDS: u32 = i32::MAX as u32 / 100;
const EWMA: (i64, i64) = (1, 31);
const EWMA_RANGE: &str = "a power of two, 1 to 31";
/// Size of an average packet in bytes, for RED.
const AVPKT: u32 = 1000;

/// The keywords.
const KEYWORDS: Keywords = &[
    &[
        Keyword::new("limit", "N", "packets that may be queued, default 127"),
        Keyword::new("perturb", "SECONDS", "time between changes of the hash, default 0: never"),
        Keyword::new("quantum", "SIZE", "bytes of a flow's turn, default one full frame"),
        Keyword::new("divisor", "N", "buckets of the hash, a power of two, default 1024"),
        Keyword::new("flows", "N", "flows that may have packets queued, default 128"),
        Keyword::new("depth", "N", "packets that one flow may have queued, default 127"),
        Keyword::new("headdrop", "", "drop first packets instead of last ones"),
    ],
    &[
        Keyword::new("redflowlimit", "BYTES", "RED for each flow; gives max and min their default"),
        Keyword::new("min", "BYTES", "average below which nothing happens, default a third of max"),
        Keyword::new("max", "BYTES", "average from which all are signalled, default a quarter"),
        Keyword::new("avpkt", "SIZE", "size of an average packet, default 1000"),
        Keyword::new("burst", "N", "packets that may come at once"),
        Keyword::new("ewma", "N", "weight of the average, a power of two, instead of burst"),
        Keyword::new("probability", "P", "highest chance of a signal, default 0.02"),
        Keyword::new("ecn", "", "mark ECN-capable packets"),
        Keyword::new("harddrop", "", "drop even those above max"),
    ],
];

impl Described for Params {
    const NAMES: Names = &[("sfq", "stochastic fair queues")];
    const KEYWORDS: Keywords = KEYWORDS;
    const NETLINK: Option<Abi<Params, Option<Stats>>> = Some(super::netlink::ABI);
    type Stats = Option<Stats>;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let mut params = Params::default();
        let (mut early, mut early_said, mut ewma) = (Said::default(), false, None);
        while let Some(word) = words.next() {
            match word {
                "limit" => params.limit = Some(words.take(&LIMIT)?),
                "perturb" => params.perturb = words.take(&PERTURB)?,
                "quantum" => params.quantum = above_zero(words.take(&QUANTUM)?),
                "divisor" => params.divisor = above_zero(words.take(&DIVISOR)?),
                "flows" => params.flows = count(words)?,
                "depth" => params.depth = count(words)?,
                "headdrop" => params.headdrop = true,
                "ewma" => {
                    early_said = true;
                    ewma = Some(words.number(EWMA, EWMA_RANGE)? as u32);
                }
                "redflowlimit" => {
                    early_said = true;
                    early.take_limit(words)?;
                }
                "min" | "max" | "avpkt" | "burst" | "probability" | "ecn" | "harddrop" => {
                    early_said = true;
                    early.take(word, words)?;
                }
                _ => return Err(words.unknown()),
            }
        }
        if params.effective().limit < 2 {
            let range = "more than 1 packet, also as depth times flows";
            return Err(words.unfit("limit", range, range));
        }
        if early_said {
            params.red = Some(take_red(early, ewma, words)?);
        }
        Ok(params)
    }

    /// As `tc` what they come to, or exactly what was said.
    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        let Effective { limit, depth, divisor, .. } = self.effective();
        let said = |value: Option<u32>, effective: u32| match digits {
            Digits::AsTc => Some(effective),
            Digits::Exact => value,
        };
        if let Some(limit) = said(self.limit, limit) {
            write!(out, "limit {limit}p ")?;
        }
        if let Some(quantum) = self.quantum {
            write!(out, "quantum {} ", shown_size(quantum.into(), digits))?;
        }
        if let (Some(flows), Digits::Exact) = (self.flows, digits) {
            write!(out, "flows {flows} ")?;
        }
        if let Some(depth) = said(self.depth, depth) {
            write!(out, "depth {depth} ")?;
        }
        out.write_str(if self.headdrop { "headdrop " } else { "" })?;
        if let Some(divisor) = said(self.divisor, divisor) {
            write!(out, "divisor {divisor} ")?;
        }
        if self.perturb > 0 {
            write!(out, "perturb {}sec ", self.perturb)?;
        }
        match &self.red {
            Some(red) => write_red(red, digits, out),
            None => Ok(()),
        }
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        let Effective { limit, depth, divisor, .. } = self.effective();
        json.key("limit")?.number(limit.into())?;
        if let Some(quantum) = self.quantum {
            json.key("quantum")?.number(quantum.into())?;
        }
        json.key("depth")?.number(depth.into())?;
        if self.headdrop {
            json.key("headdrop")?.boolean(true)?;
        }
        json.key("divisor")?.number(divisor.into())?;
        if self.perturb > 0 {
            json.key("perturb")?.number(self.perturb.into())?;
        }
        let Some(early) = &self.red else { return Ok(()) };
        json.key("ewma")?.number(wlog(early).into())?;
        json.key("min")?.number(early.red.min.into())?;
        json.key("max")?.number(early.red.max.into())?;
        let chance = u64::from(early.red.probability);
        json.key("probability")?.raw(|out| units::write_fraction(chance, 1 << 32, out))?;
        for (on, word) in flags(&early.red.signals, false) {
            json.key(word)?.boolean(on)?;
        }
        Ok(())
    }

    fn resolve(&mut self, device: &Device) {
        self.quantum.get_or_insert(device.mtu);
    }

    fn own_needs(&self) -> Needs {
        let choice = Choice::Queue(self.effective().divisor);
        Needs { bypass: Bypass::Empty, choice, ..Needs::MOST }
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Sfq::new(self, device)?))
    }
}

/// RED's settings from what was said.
fn take_red(mut said: Said, ewma: Option<u32>, words: &Words<'_>) -> Result<RedParams, ParseError> {
    let limit = said.limit;
    said.avpkt = if said.avpkt == 0 { AVPKT } else { said.avpkt };
    match (limit, ewma) {
        (0, None) => return Err(words.lacks("RED for sfq", "redflowlimit BYTES")),
        (0, Some(_)) if said.max == 0 => {
            return Err(words.lacks("RED for sfq", "redflowlimit BYTES, or max BYTES"));
        }
        // Stands for a limit where min and max are said.
        (0, Some(_)) => said.limit = said.max.saturating_mul(4),
        _ => {}
    }
    // The default is a quarter of the limit here, even if a min is said.
    said.max = if said.max == 0 { said.limit / 4 } else { said.max };
    if said.max > said.limit {
        let range = "no more BYTES than `redflowlimit`";
        return Err(words.unfit("max", range, range));
    }
    if let (Some(ewma), 0) = (ewma, said.burst) {
        let min = if said.min == 0 { said.max / 3 } else { said.min };
        let range = "a weight that min and avpkt allow";
        let error = || words.unfit("ewma", range, range);
        said.burst = burst_for(ewma, min, said.avpkt).ok_or_else(error)?;
    }
    match said.linux_params(words)?.kind {
        // `tc` takes that of red only.
        Kind::Linux(red) if red.min == red.max => {
            let range = "more BYTES than `min`";
            Err(words.unfit("max", range, range))
        }
        Kind::Linux(red) => Ok(RedParams { limit, red }),
        Kind::Ns(_) => Err(words.unknown()),
    }
}

fn limit(word: &str) -> Result<u32, ValueError> {
    match packet_count(word)? {
        0 | 1 => Err(ValueError::TooLarge),
        packets => Ok(packets),
    }
}

/// Reads a number, or what `tc` prints: `10sec`.
fn seconds(word: &str) -> Result<u32, ValueError> {
    let digits = word.strip_suffix("sec").unwrap_or(word);
    match packet_count(digits)? {
        seconds if seconds <= MOST_SECONDS => Ok(seconds),
        _ => Err(ValueError::TooLarge),
    }
}

fn divisor(word: &str) -> Result<u32, ValueError> {
    match packet_count(word)? {
        0 => Ok(0),
        divisor if divisor <= MAX_DIVISOR && divisor.is_power_of_two() => Ok(divisor),
        _ => Err(ValueError::TooLarge),
    }
}

fn count(words: &mut Words<'_>) -> Result<Option<u32>, ParseError> {
    Ok(above_zero(words.number(COUNT, COUNT_RANGE)? as u32))
}

fn above_zero(number: u32) -> Option<u32> {
    (number > 0).then_some(number)
}

fn write_red(params: &RedParams, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    let red = &params.red;
    match digits {
        Digits::AsTc => write!(out, "ewma {} ", wlog(params))?,
        Digits::Exact if params.limit > 0 => {
            write!(out, "redflowlimit {} burst {} avpkt {} ", params.limit, red.burst, red.avpkt)?;
        }
        // The weight stands for a limit here.
        Digits::Exact => {
            write!(out, "ewma {} burst {} avpkt {} ", wlog(params), red.burst, red.avpkt)?;
        }
    }
    for (word, size) in [("min", red.min), ("max", red.max)] {
        write!(out, "{word} {} ", shown_size(size.into(), digits))?;
    }
    out.write_str("probability ")?;
    match digits {
        Digits::AsTc => units::write_fraction(red.probability.into(), 1 << 32, out)?,
        Digits::Exact => units::write_probability(red.probability, out)?,
    }
    out.write_char(' ')?;
    write_flags(&flags(&red.signals, false), out)
}

fn wlog(params: &RedParams) -> u32 {
    Law::new(&params.red).map_or(0, |law| law.wlog())
}
