//! The words of `pfifo`, `bfifo` and `pfifo_head_drop`: `limit` and nothing else (man tc-pfifo).
//!
//! As in `tc`, a limit in packets is read as a size too, so that `limit 1k` is 1024 packets. What
//! `tc` prints (`1000p`) is read as well. Without a limit the device's queue length counts; a
//! discipline that knows it should show it as its limit, as Linux does.

use core::fmt::{self, Write};

use super::error::ParseError;
use super::grammar::{Keyword, Words};
use super::json::Json;
use super::units::{self, write_size, Digits, ValueError};
use super::Config;
use crate::qdisc::fifo::{Kind, Params};

const LIMIT: &str = "a LIMIT such as 1000 (packets)";
const BYTE_LIMIT: &str = "a LIMIT such as 64kb";
const LIMIT_RANGE: &str = "a LIMIT of at most 4294967295";

/// The keywords.
pub(super) const KEYWORDS: &[&[Keyword]] =
    &[&[Keyword::new("limit", "N|SIZE", "longest queue, in packets (bfifo: bytes)")]];

/// Reads `pfifo`'s words.
pub(super) fn parse_pfifo(words: &mut Words<'_>) -> Result<Config, ParseError> {
    parse(Kind::Pfifo, words)
}

/// Reads `bfifo`'s words.
pub(super) fn parse_bfifo(words: &mut Words<'_>) -> Result<Config, ParseError> {
    parse(Kind::Bfifo, words)
}

/// Reads `pfifo_head_drop`'s words.
pub(super) fn parse_pfifo_head_drop(words: &mut Words<'_>) -> Result<Config, ParseError> {
    parse(Kind::PfifoHeadDrop, words)
}

fn parse(kind: Kind, words: &mut Words<'_>) -> Result<Config, ParseError> {
    let mut limit = None;
    while let Some(word) = words.next() {
        limit = Some(match (word, kind) {
            ("limit", Kind::Bfifo) => words.value("limit", BYTE_LIMIT, LIMIT_RANGE, units::size)?,
            ("limit", _) => {
                words.value("limit", LIMIT, LIMIT_RANGE, |word| match packets(word) {
                    Some(limit) => limit,
                    None => units::size(word),
                })?
            }
            _ => return Err(words.unknown()),
        });
    }
    Ok(Config::Fifo(Params { kind, limit }))
}

/// Reads `1000p`; None if the word does not end in p.
pub(super) fn packets(word: &str) -> Option<Result<u32, ValueError>> {
    let digits = word.strip_suffix(['p', 'P'])?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Err(ValueError::Invalid));
    }
    Some(digits.parse().map_err(|_| ValueError::TooLarge))
}

/// The name of a FIFO.
pub(super) fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Pfifo => "pfifo",
        Kind::Bfifo => "bfifo",
        Kind::PfifoHeadDrop => "pfifo_head_drop",
    }
}

/// Writes the limit as words, without a space after them (as `tc`).
pub(super) fn write_words(params: &Params, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    let Some(limit) = params.limit else { return Ok(()) };
    out.write_str("limit ")?;
    match params.kind {
        Kind::Bfifo => write_size(limit.into(), digits, out),
        Kind::Pfifo | Kind::PfifoHeadDrop => write!(out, "{limit}p"),
    }
}

/// Writes the limit as a member of a JSON object.
pub(super) fn write_json(params: &Params, json: &mut Json<'_>) -> fmt::Result {
    match params.limit {
        Some(limit) => json.key("limit")?.number(limit.into()),
        None => Ok(()),
    }
}
