//! The words of `delay`: `delay 20ms [2ms] [limit N]`. Ours; the order is netem's.
//!
//! The time may stand bare after the discipline's name or behind the keyword `delay`, the jitter
//! after it or behind `jitter`. Printing uses the keywords.

use alloc::boxed::Box;
use core::fmt::{self, Write};

use super::{Delay, Params};
use crate::qdisc::{ConfigError, Described, Device, Managed, Names};
use crate::tc::units::shown_time;
use crate::tc::{units, Digits, Json, Keyword, Keywords, ParseError, Problem, Value, Words};
use crate::time::Span;

const TIME: Value<Span> = Value::new(EXAMPLE, units::time).within("a TIME of at most 584 years");
const EXAMPLE: &str = "a TIME such as 20ms";
/// Packets under way if nothing else is said: netem's default.
const DEFAULT_LIMIT: u32 = 1000;
/// Most packets that may be under way.
const LIMIT: (i64, i64) = (1, u32::MAX as i64);
const LIMIT_RANGE: &str = "a number of packets, 1 to 4294967295";

/// netem's other words.
const NETEM: [&str; 9] =
    ["loss", "duplicate", "corrupt", "reorder", "gap", "rate", "slot", "distribution", "ecn"];
const NETEM_REASON: &str =
    "of netem's words `delay` knows the delay, its jitter and the limit; a rate is `line`'s";

/// The keywords.
const KEYWORDS: Keywords = &[&[
    Keyword::new("delay", "TIME [JITTER]", "how long every packet waits, and how much it varies"),
    Keyword::new("jitter", "TIME", "largest deviation either way; packets keep their order"),
    Keyword::new("limit", "N", "packets that may be under way, default 1000"),
]];

impl Described for Params {
    const NAMES: Names = &[("delay", "every packet waits a fixed time, more or less")];
    const KEYWORDS: Keywords = KEYWORDS;
    type Stats = ();

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let mut params = Params { delay: Span::ZERO, jitter: Span::ZERO, limit: DEFAULT_LIMIT };
        // What the first word may be without a keyword.
        if words.peek().is_none_or(|word| units::time(word).is_ok()) {
            take_delay(&mut params, words)?;
        } else if !words.peek().is_some_and(|word| KEYWORDS[0].iter().any(|k| k.word == word)) {
            words.next();
            return Err(words.error_here(Problem::Invalid { keyword: "delay", expected: EXAMPLE }));
        }
        while let Some(word) = words.next() {
            match word {
                "delay" => take_delay(&mut params, words)?,
                "jitter" => params.jitter = take_jitter(words)?,
                "limit" => params.limit = words.number(LIMIT, LIMIT_RANGE)? as u32,
                _ if NETEM.contains(&word) => {
                    return Err(words.error_here(Problem::Foreign { reason: NETEM_REASON }));
                }
                _ => return Err(words.unknown()),
            }
        }
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        write_times(self, digits, out)?;
        write!(out, "limit {} ", self.limit)
    }

    /// Times in nanoseconds, as the names say.
    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.key("delay_ns")?.number(self.delay.0)?;
        json.key("jitter_ns")?.number(self.jitter.0)?;
        json.key("limit")?.number(self.limit.into())
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Delay::new(self, device)?))
    }
}

/// Reads `TIME [JITTER]` after the keyword `delay`.
pub(in crate::qdisc) fn take_delay(
    params: &mut Params,
    words: &mut Words<'_>,
) -> Result<(), ParseError> {
    params.delay = words.take(&TIME)?;
    if let Some(Ok(jitter)) = words.peek().map(units::time) {
        words.next();
        params.jitter = jitter;
    }
    Ok(())
}

/// Reads the time after the keyword `jitter`.
pub(in crate::qdisc) fn take_jitter(words: &mut Words<'_>) -> Result<Span, ParseError> {
    words.take(&TIME)
}

/// Writes delay and jitter as words, each with a space after it.
pub(in crate::qdisc) fn write_times(
    params: &Params,
    digits: Digits,
    out: &mut dyn Write,
) -> fmt::Result {
    write!(out, "delay {} ", shown_time(params.delay, digits))?;
    if params.jitter > Span::ZERO {
        write!(out, "jitter {} ", shown_time(params.jitter, digits))?;
    }
    Ok(())
}
