//! The words of `cobalt`. Ours: cake's AQM as a discipline of its own, with `codel`'s words.

use core::fmt::{self, Write};

use super::error::ParseError;
use super::grammar::{Keyword, Words};
use super::json::Json;
use super::pie::packet_count;
use super::stats::CobaltStats;
use super::units::{self, write_time, Digits};
use super::Config;
use crate::qdisc::cobalt::Params;

const COUNT: &str = "a number of packets, 0 to 4294967295";
const TIME: &str = "a TIME such as 5ms";

/// The keywords.
pub(super) const KEYWORDS: &[&[Keyword]] = &[&[
    Keyword::new("limit", "N", "packets that may be queued, default 1000"),
    Keyword::new("target", "TIME", "standing delay that is accepted, default 5ms"),
    Keyword::new("interval", "TIME", "a worst-case round-trip time, default 100ms"),
]];

/// Reads `cobalt`'s words.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Config, ParseError> {
    let mut params = Params::default();
    while let Some(word) = words.next() {
        match word {
            "limit" => params.limit = words.value("limit", COUNT, COUNT, packet_count)?,
            "target" => params.target = words.value("target", TIME, TIME, units::time)?,
            "interval" => params.interval = words.value("interval", TIME, TIME, units::time)?,
            _ => return Err(words.unknown()),
        }
    }
    Ok(Config::Cobalt(params))
}

/// Writes the settings as words, each with a space after it.
pub(super) fn write_words(params: &Params, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    write!(out, "limit {}p target ", params.limit)?;
    write_time(params.target, digits, out)?;
    out.write_str(" interval ")?;
    write_time(params.interval, digits, out)?;
    out.write_char(' ')
}

/// Writes the settings as members of a JSON object; times in nanoseconds, as the names say.
pub(super) fn write_json(params: &Params, json: &mut Json<'_>) -> fmt::Result {
    json.key("limit")?.number(params.limit.into())?;
    json.key("target_ns")?.number(params.target.0)?;
    json.key("interval_ns")?.number(params.interval.0)
}

/// Writes the statistics below the lines that all disciplines have.
pub(super) fn write_statistics(stats: &CobaltStats, out: &mut dyn Write) -> fmt::Result {
    let CobaltStats { dropped, flooded, overlimit, ecn_mark, unresponsive } = stats;
    write!(out, "  dropped {dropped} flooded {flooded} overlimit {overlimit} ecn_mark {ecn_mark}")?;
    out.write_str(if *unresponsive { " unresponsive\n" } else { "\n" })
}

/// Writes the statistics as members of a JSON object.
pub(super) fn write_statistics_json(stats: &CobaltStats, json: &mut Json<'_>) -> fmt::Result {
    json.key("dropped")?.number(stats.dropped.into())?;
    json.key("flooded")?.number(stats.flooded.into())?;
    json.key("overlimit")?.number(stats.overlimit.into())?;
    json.key("ecn_mark")?.number(stats.ecn_mark.into())?;
    json.key("unresponsive")?.boolean(stats.unresponsive)
}
