//! The words of `blue`. Ours: there is no `tc` discipline of this name; the words are its paper's
//! and `tc`'s habits.

use core::fmt::{self, Write};

use super::error::ParseError;
use super::grammar::{Keyword, Words};
use super::json::Json;
use super::pie::packet_count;
use super::stats::BlueStats;
use super::units::{self, write_fraction, write_probability, write_time, Digits};
use super::Config;
use crate::qdisc::blue::Params;

const COUNT: &str = "a number of packets, 0 to 4294967295";
const CHANCE: &str = "a probability such as 0.02";
const TIME: &str = "a TIME such as 100ms";
const WHOLE: u64 = 1 << 32;

/// The keywords.
pub(super) const KEYWORDS: &[&[Keyword]] = &[&[
    Keyword::new("limit", "N", "packets that may be queued, default 1000"),
    Keyword::new("threshold", "N", "packets beyond which marking rises; unless set, when full"),
    Keyword::new("increment", "P", "step up of the probability, default 0.02"),
    Keyword::new("decrement", "P", "step down, default 0.002"),
    Keyword::new("freeze", "TIME", "least time between two steps, default 100ms"),
    Keyword::new("ecn", "", "mark ECN-capable packets"),
    Keyword::new("noecn", "", "drop all (default)"),
]];

/// Reads `blue`'s words.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Config, ParseError> {
    let mut params = Params::default();
    while let Some(word) = words.next() {
        let mut chance = |keyword| words.value(keyword, CHANCE, CHANCE, units::probability);
        match word {
            "increment" => params.aqm.increment = chance("increment")?,
            "decrement" => params.aqm.decrement = chance("decrement")?,
            "limit" => params.limit = words.value("limit", COUNT, COUNT, packet_count)?,
            "threshold" => {
                params.threshold = Some(words.value("threshold", COUNT, COUNT, packet_count)?);
            }
            "freeze" => params.aqm.freeze = words.value("freeze", TIME, TIME, units::time)?,
            "ecn" => params.ecn = true,
            "noecn" => params.ecn = false,
            _ => return Err(words.unknown()),
        }
    }
    Ok(Config::Blue(params))
}

/// Writes the settings as words, each with a space after it.
pub(super) fn write_words(params: &Params, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    write!(out, "limit {}p ", params.limit)?;
    if let Some(threshold) = params.threshold {
        write!(out, "threshold {threshold}p ")?;
    }
    for (word, step) in [("increment", params.aqm.increment), ("decrement", params.aqm.decrement)] {
        write!(out, "{word} ")?;
        match digits {
            Digits::AsTc => write_fraction(step.into(), WHOLE, out)?,
            Digits::Exact => write_probability(step, out)?,
        }
        out.write_char(' ')?;
    }
    out.write_str("freeze ")?;
    write_time(params.aqm.freeze, digits, out)?;
    out.write_str(if params.ecn { " ecn " } else { " " })
}

/// Writes the settings as members of a JSON object; times in nanoseconds, as the names say.
pub(super) fn write_json(params: &Params, json: &mut Json<'_>) -> fmt::Result {
    let step = |step: u32| move |out: &mut dyn Write| write_fraction(step.into(), WHOLE, out);
    json.key("limit")?.number(params.limit.into())?;
    if let Some(threshold) = params.threshold {
        json.key("threshold")?.number(threshold.into())?;
    }
    json.key("increment")?.raw(step(params.aqm.increment))?;
    json.key("decrement")?.raw(step(params.aqm.decrement))?;
    json.key("freeze_ns")?.number(params.aqm.freeze.0)?;
    json.key("ecn")?.boolean(params.ecn)
}

/// Writes the statistics below the lines that all disciplines have.
pub(super) fn write_statistics(stats: &BlueStats, out: &mut dyn Write) -> fmt::Result {
    out.write_str("  prob ")?;
    write_fraction(stats.probability.into(), WHOLE, out)?;
    let BlueStats { dropped, overlimit, ecn_mark, .. } = stats;
    writeln!(out, " dropped {dropped} overlimit {overlimit} ecn_mark {ecn_mark}")
}

/// Writes the statistics as members of a JSON object.
pub(super) fn write_statistics_json(stats: &BlueStats, json: &mut Json<'_>) -> fmt::Result {
    json.key("prob")?.raw(|out| write_fraction(stats.probability.into(), WHOLE, out))?;
    json.key("dropped")?.number(stats.dropped.into())?;
    json.key("overlimit")?.number(stats.overlimit.into())?;
    json.key("ecn_mark")?.number(stats.ecn_mark.into())
}
