//! The words of `pfifo`, `bfifo` and `pfifo_head_drop`: `limit` and nothing else (man tc-pfifo).
//!
//! As in `tc`, a limit in packets is read as a size too, so that `limit 1k` is 1024 packets. What
//! `tc` prints (`1000p`) is read as well. Without a limit the device's queue length counts; a
//! discipline that knows it should show it as its limit, as Linux does.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use super::{Fifo, Kind, Params};
use crate::qdisc::{too_small, Bypass, ConfigError, Described, Device, Managed, Names, Needs};
use crate::tc::units::{write_size, ValueError};
use crate::tc::{units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};

const LIMIT: Value<u32> = Value::new("a LIMIT such as 1000 (packets)", limit).within(LIMIT_RANGE);
const BYTE_LIMIT: Value<u32> = Value::new("a LIMIT such as 64kb", units::size).within(LIMIT_RANGE);
const LIMIT_RANGE: &str = "a LIMIT of at most 4294967295";

/// The keywords.
const KEYWORDS: Keywords =
    &[&[Keyword::new("limit", "N|SIZE", "longest queue, in packets (bfifo: bytes)")]];

impl Described for Params {
    const NAMES: Names = &[
        ("pfifo", "first in, first out; a limit in packets"),
        ("bfifo", "first in, first out; a limit in bytes"),
        ("pfifo_head_drop", "first in, first out; a full queue loses its oldest packet"),
    ];
    const KEYWORDS: Keywords = KEYWORDS;
    type Stats = ();

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let kind = match words.name() {
            "bfifo" => Kind::Bfifo,
            "pfifo_head_drop" => Kind::PfifoHeadDrop,
            _ => Kind::Pfifo,
        };
        let mut limit = None;
        while let Some(word) = words.next() {
            limit = Some(match (word, kind) {
                ("limit", Kind::Bfifo) => words.take(&BYTE_LIMIT)?,
                ("limit", _) => words.take(&LIMIT)?,
                _ => return Err(words.unknown()),
            });
        }
        Ok(Params { kind, limit })
    }

    /// Without a space after the words, as `tc`.
    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        let Some(limit) = self.limit else { return Ok(()) };
        out.write_str("limit ")?;
        match self.kind {
            Kind::Bfifo => write_size(limit.into(), digits, out),
            Kind::Pfifo | Kind::PfifoHeadDrop => write!(out, "{limit}p"),
        }
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        match self.limit {
            Some(limit) => json.key("limit")?.number(limit.into()),
            None => Ok(()),
        }
    }

    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Pfifo => "pfifo",
            Kind::Bfifo => "bfifo",
            Kind::PfifoHeadDrop => "pfifo_head_drop",
        }
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn resolve(&mut self, device: &Device) {
        self.limit = Some(self.effective_limit(device));
    }

    fn drops_all(&self, device: &Device) -> Option<String> {
        let least = if self.kind == Kind::Bfifo { device.mtu } else { 1 };
        too_small("limit", self.effective_limit(device).into(), least)
    }

    fn own_needs(&self) -> Needs {
        Needs { vain_calls: false, bypass: Bypass::Empty, ..Needs::MOST }
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Fifo::new(self, device)?))
    }
}

fn limit(word: &str) -> Result<u32, ValueError> {
    units::packets(word).unwrap_or_else(|| units::size(word))
}
