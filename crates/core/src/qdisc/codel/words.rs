//! The words of `codel` (man tc-codel), and those of CoDel itself, which `fq_codel` has as well.
//!
//! As in `tc`, a zero is not sent and leaves the default in force, except for `ce_threshold`. Linux
//! counts times in 1024 ns, which shows where `tc` prints them: 333us become 332us.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use super::{Codel, Params, Stats, UNIT};
use crate::aqm::codel::{CeSelector, CodelParams};
use crate::qdisc::netlink::Abi;
use crate::qdisc::{too_small, Bypass, ConfigError, Described, Device, Managed, Names, Needs};
use crate::tc::units::{packet_count, shown_time, ValueError};
use crate::tc::{or_default, units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};
use crate::time::Span;

pub(in crate::qdisc) const LIMIT: Value<u32> =
    Value::new("a number of packets, 1 to 4294967295", packet_count);
const TIME: Value<Span> =
    Value::new("a TIME such as 5ms", units::span).within("a TIME below 4295 seconds");
const SELECTOR: &str = "VALUE/MASK, both 0 to 0xff, such as 0x1/0x1";

/// The keywords.
const KEYWORDS: Keywords = &[&[
    Keyword::new("limit", "N", "packets that may be queued, default 1000"),
    TARGET,
    INTERVAL,
    CE_THRESHOLD,
    Keyword::new("ecn", "", "mark ECN-capable packets instead of dropping them"),
    Keyword::new("noecn", "", "drop all (default)"),
]];

/// Keywords of CoDel itself.
pub(in crate::qdisc) const TARGET: Keyword =
    Keyword::new("target", "TIME", "standing delay that is accepted, default 5ms");
pub(in crate::qdisc) const INTERVAL: Keyword =
    Keyword::new("interval", "TIME", "a worst-case round-trip time, default 100ms");
pub(in crate::qdisc) const CE_THRESHOLD: Keyword =
    Keyword::new("ce_threshold", "TIME", "mark all ECN-capable packets that waited longer");
pub(in crate::qdisc) const CE_SELECTOR: Keyword =
    Keyword::new("ce_threshold_selector", "VALUE/MASK", "only those with this traffic class");

/// Takes `word` and its value into `params`; false if it is none of CoDel's.
pub(in crate::qdisc) fn take_aqm(
    params: &mut CodelParams,
    word: &str,
    words: &mut Words<'_>,
) -> Result<bool, ParseError> {
    let default = CodelParams::default();
    match word {
        "target" => params.target = or_default(words.take(&TIME)?, default.target),
        "interval" => params.interval = or_default(words.take(&TIME)?, default.interval),
        "ce_threshold" => params.ce_threshold = Some(words.take(&TIME)?),
        "ecn" => params.ecn = true,
        "noecn" => params.ecn = false,
        _ => return Ok(false),
    }
    Ok(true)
}

/// Reads `0x1/0x3`.
pub(in crate::qdisc) fn take_selector(words: &mut Words<'_>) -> Result<CeSelector, ParseError> {
    words.value(SELECTOR, SELECTOR, |word| {
        let (value, mask) = word.split_once('/').ok_or(ValueError::Invalid)?;
        let (value, mask) = (octet(value)?, octet(mask)?);
        // A mask of nothing selects all, whatever the value.
        Ok(if mask == 0 { CeSelector::default() } else { CeSelector { value, mask } })
    })
}

fn octet(word: &str) -> Result<u8, ValueError> {
    u8::try_from(units::count(word)?).map_err(|_| ValueError::TooLarge)
}

impl Described for Params {
    const NAMES: Names = &[("codel", "one queue whose standing delay CoDel keeps short")];
    const KEYWORDS: Keywords = KEYWORDS;
    const NETLINK: Option<Abi<Params, Stats>> = Some(super::netlink::ABI);
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let default = Params::default();
        let mut params = default;
        while let Some(word) = words.next() {
            match word {
                "limit" => params.limit = or_default(words.take(&LIMIT)?, default.limit),
                _ if take_aqm(&mut params.aqm, word, words)? => {}
                _ => return Err(words.unknown()),
            }
        }
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        write!(out, "limit {}p ", self.limit)?;
        write_times(&self.aqm, digits, out)?;
        out.write_str(if self.aqm.ecn { "ecn " } else { "" })
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.key("limit")?.number(self.limit.into())?;
        write_times_json(&self.aqm, json)?;
        if self.aqm.ecn {
            json.key("ecn")?.boolean(true)?;
        }
        Ok(())
    }

    fn drops_all(&self, _: &Device) -> Option<String> {
        too_small("limit", self.limit.into(), 1)
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn own_needs(&self) -> Needs {
        Needs { bypass: Bypass::Empty, ..Needs::MOST }
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Codel::new(self, device)?))
    }
}

/// A time as Linux keeps it.
fn shown(span: Span, digits: Digits) -> Span {
    match digits {
        Digits::AsTc => span.floor(UNIT),
        Digits::Exact => span,
    }
}

/// Writes CoDel's times as words, each with a space after it.
pub(in crate::qdisc) fn write_times(
    params: &CodelParams,
    digits: Digits,
    out: &mut dyn Write,
) -> fmt::Result {
    write!(out, "target {}", shown_time(shown(params.target, digits), digits))?;
    if let Some(threshold) = params.ce_threshold {
        write!(out, " ce_threshold {}", shown_time(shown(threshold, digits), digits))?;
        let CeSelector { value, mask } = params.ce_selector;
        if mask != 0 {
            // As C's `%#x`, which writes a bare zero.
            let prefix = if value == 0 { "" } else { "0x" };
            write!(out, " ce_threshold_selector {prefix}{value:x}/{mask:#x}")?;
        }
    }
    write!(out, " interval {} ", shown_time(shown(params.interval, digits), digits))
}

/// Writes CoDel's times as members of a JSON object.
pub(in crate::qdisc) fn write_times_json(params: &CodelParams, json: &mut Json<'_>) -> fmt::Result {
    let micros = |span| shown(span, Digits::AsTc).as_micros();
    json.key("target")?.number(micros(params.target))?;
    if let Some(threshold) = params.ce_threshold {
        json.key("ce_threshold")?.number(micros(threshold))?;
        let CeSelector { value, mask } = params.ce_selector;
        if mask != 0 {
            json.key("ce_threshold_selector")?.number(value.into())?;
            json.key("ce_threshold_mask")?.number(mask.into())?;
        }
    }
    json.key("interval")?.number(micros(params.interval))
}
