//! Words of token buckets, which `tbf` and the classes of `htb` share (man tc-tbf, tc-htb).
//!
//! Sizes of buckets may carry a cell size (`15k/8`), which means nothing any more. The framing is
//! `overhead`, `mpu` and `linklayer`. `tc` shows a bucket as the bytes that pass in its time. That
//! time has been rounded to 64 ns and then to microseconds: 1000 bytes at 3 Mbit/s become 999.

use core::fmt::{self, Write};

use super::error::{ParseError, Problem};
use super::grammar::{Keyword, Words};
use super::json::Json;
use super::units::{self, write_size, Digits, ValueError};
use crate::framing::{Cells, Framing};
use crate::rate::{Arithmetic, Rate};
use crate::shaper::token_bucket::TokenBucket;
use crate::time::Span;

const SIZE: &str = "a SIZE such as 15k";
const SIZE_RANGE: &str = "a SIZE above zero and less than 4gb";
const RATE: &str = "a RATE such as 20mbit";
const RATE_RANGE: &str = "a RATE above zero and below 2^64 bytes a second";
const LAYER: &str = "ethernet, atm or adsl";
const OVERHEAD: (i64, i64) = (0, i16::MAX as i64);
const OVERHEAD_RANGE: &str = "a whole number of bytes, 0 to 32767";
const MPU: (i64, i64) = (0, u16::MAX as i64);
const MPU_RANGE: &str = "a whole number of bytes, 0 to 65535";

/// The keywords of framing.
pub(crate) const FRAMING: &[Keyword] = &[
    Keyword::new("overhead", "BYTES", "bytes that the link adds to each packet"),
    Keyword::new("mpu", "BYTES", "smallest size on the link"),
    Keyword::new("linklayer", "ethernet|atm|adsl", "cells of the link, default ethernet"),
];

/// Reads the rate after `keyword`, which may be said once.
pub(crate) fn take_rate(
    into: &mut Option<Rate>,
    keyword: &'static str,
    words: &mut Words<'_>,
) -> Result<(), ParseError> {
    let read = |word: &str| match units::rate(word)? {
        Rate(0) => Err(ValueError::TooLarge),
        rate => Ok(rate),
    };
    once(into, keyword, words)?;
    *into = Some(words.value(RATE, RATE_RANGE, read)?);
    Ok(())
}

/// Reads the size after `keyword`, which may be said once, but for a zero.
pub(crate) fn take_size(
    into: &mut Option<u32>,
    keyword: &'static str,
    words: &mut Words<'_>,
) -> Result<(), ParseError> {
    once(&into.filter(|bytes| *bytes > 0), keyword, words)?;
    *into = Some(size(words)?);
    Ok(())
}

/// Reads a size after a keyword.
pub(crate) fn size(words: &mut Words<'_>) -> Result<u32, ParseError> {
    let read = |word: &str| {
        let (size, cell) = word.split_once('/').unwrap_or((word, "1"));
        if units::size(cell)?.count_ones() != 1 {
            return Err(ValueError::Invalid);
        }
        units::size(size)
    };
    words.value(SIZE, SIZE_RANGE, read)
}

/// The error that `keyword` has been said before, unless it amends that.
pub(crate) fn once<T>(
    said: &Option<T>,
    keyword: &'static str,
    words: &Words<'_>,
) -> Result<(), ParseError> {
    match said {
        Some(_) if !words.amends() => Err(words.error_here(Problem::Twice { keyword })),
        _ => Ok(()),
    }
}

/// Sets the rate of a bucket and, if that was the default, its depth. None at no rate.
pub(crate) fn set_rate(
    rate: &mut Rate,
    bytes: &mut u32,
    new: Rate,
    default: fn(Rate) -> u32,
) -> Option<()> {
    if new.is_unlimited() {
        return None;
    }
    if *bytes == default(*rate) {
        *bytes = default(new);
    }
    *rate = new;
    Some(())
}

/// Takes a word of framing and its value; false if it is none.
pub(crate) fn take_framing(
    framing: &mut Framing,
    word: &str,
    words: &mut Words<'_>,
) -> Result<bool, ParseError> {
    match word {
        "overhead" => {
            framing.overhead = words.number(OVERHEAD, OVERHEAD_RANGE)? as i16;
        }
        "mpu" => framing.mpu = words.number(MPU, MPU_RANGE)? as u16,
        "linklayer" => {
            framing.cells = words.value(LAYER, LAYER, |word| match word {
                "ethernet" => Ok(Cells::None),
                "atm" | "adsl" => Ok(Cells::Atm),
                _ => Err(ValueError::Invalid),
            })?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// Writes the framing as `tc` does, each word with a space after it; and what it leaves out.
pub(crate) fn write_framing(framing: &Framing, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    if framing.overhead > 0 {
        write!(out, "overhead {} ", framing.overhead)?;
    }
    if framing.mpu > 0 && digits == Digits::Exact {
        write!(out, "mpu {} ", framing.mpu)?;
    }
    if framing.cells == Cells::Atm {
        out.write_str("linklayer atm ")?;
    }
    Ok(())
}

/// Writes the framing as members of a JSON object.
pub(crate) fn write_framing_json(framing: &Framing, json: &mut Json<'_>) -> fmt::Result {
    if framing.overhead > 0 {
        json.key("overhead")?.number(framing.overhead.unsigned_abs().into())?;
    }
    if framing.cells == Cells::Atm {
        json.key("linklayer")?.string("atm")?;
    }
    Ok(())
}

/// A bucket's time in the whole microseconds of `tc`: its ticks are 64 ns, and are counted in 32
/// bits.
pub(crate) fn micros(depth: Span) -> u64 {
    u64::from((depth.0 >> 6) as u32) * 8 / 125
}

/// Bytes of a bucket as `tc` shows them.
pub(crate) fn shown_burst(rate: Rate, burst: u32, framing: &Framing) -> u64 {
    let bucket = TokenBucket::new(rate, framing.wire_len(burst), Arithmetic::LINUX);
    let bytes = u128::from(rate.0) * u128::from(micros(bucket.depth())) / 1_000_000;
    bytes as u64
}

/// Time of `bytes` at `rate` in whole microseconds.
pub(crate) fn micros_of(rate: Rate, bytes: u32) -> u64 {
    (u128::from(bytes) * 1_000_000 / u128::from(rate.0.max(1))) as u64
}

/// Writes the bytes of a bucket: as `tc` shows them, or as they are.
pub(crate) fn write_burst(
    rate: Rate,
    burst: u32,
    framing: &Framing,
    digits: Digits,
    out: &mut dyn Write,
) -> fmt::Result {
    match digits {
        Digits::AsTc => write_size(shown_burst(rate, burst, framing), digits, out),
        Digits::Exact => write_size(burst.into(), digits, out),
    }
}
