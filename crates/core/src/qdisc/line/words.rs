//! The words of `line`, an emulated line: `line rate 20mbit fifo 100p delay 10ms 1ms docsis`. Ours.
//!
//! The queue is one of `tc`'s FIFOs by its name, or by its limit alone: `fifo 100p` counts packets,
//! `fifo 64kb` bytes. The framing words are cake's.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use super::{Line, Params};
use crate::qdisc::delay::words::{take_delay, take_jitter, write_times};
use crate::qdisc::fifo::Kind;
use crate::qdisc::{ConfigError, Described, Device, Managed, Names};
use crate::rate::Rate;
use crate::tc::link::FramingWords;
use crate::tc::units::{write_rate, ValueError, RATE_OR_NONE};
use crate::tc::{link, units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};
use crate::time::Span;

const FIFO: Value<Limit> = Value::new("packets or bytes, such as 100p or 64kb", limit)
    .within("at most 4294967295 packets or bytes");
const IN_FLIGHT: (i64, i64) = (1, u32::MAX as i64);
const IN_FLIGHT_RANGE: &str = "a number of packets, 1 to 4294967295";
/// Packets in flight if nothing else is said: 1 Gbit/s over 100 ms needs 8256 full ones.
const DEFAULT_IN_FLIGHT: u32 = 10_000;

/// The keywords, by group.
const KEYWORDS: Keywords = &[
    &[
        Keyword::new("rate", "RATE", "the line's rate; unlimited by default"),
        Keyword::new("delay", "TIME [JITTER]", "propagation, and how much it varies"),
        Keyword::new("jitter", "TIME", "largest deviation of it either way"),
        Keyword::new("in-flight", "N", "packets that may be under way, default 10000"),
        Keyword::new("fifo", "Np|SIZE", "longest queue before the line, in packets or bytes"),
        Keyword::new("limit", "Np|SIZE", "the same as fifo"),
        Keyword::new("pfifo", "", "count the queue in packets (default)"),
        Keyword::new("bfifo", "", "count the queue in bytes"),
        Keyword::new("pfifo_head_drop", "", "a full queue loses its oldest packet"),
    ],
    link::KEYWORDS,
];

/// A queue's limit as written.
enum Limit {
    Packets(u32),
    Bytes(u32),
}

impl Described for Params {
    const NAMES: Names = &[("line", "an emulated line: a queue, a rate, a distance")];
    const KEYWORDS: Keywords = KEYWORDS;
    const RATE: Option<&'static str> = Some("rate");
    type Stats = ();

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let mut params = Params {
            fifo: crate::qdisc::fifo::Params { kind: Kind::Pfifo, limit: None },
            rate: Rate(0),
            framing: Default::default(),
            delay: crate::qdisc::delay::Params {
                delay: Span::ZERO,
                jitter: Span::ZERO,
                limit: DEFAULT_IN_FLIGHT,
            },
        };
        let mut framing = FramingWords::default();
        while let Some(word) = words.next() {
            match word {
                "rate" => params.rate = words.take(&RATE_OR_NONE)?,
                "delay" => take_delay(&mut params.delay, words)?,
                "jitter" => params.delay.jitter = take_jitter(words)?,
                "in-flight" => {
                    let limit = words.number(IN_FLIGHT, IN_FLIGHT_RANGE)?;
                    params.delay.limit = limit as u32;
                }
                "fifo" | "limit" => set_limit(&mut params, words.take(&FIFO)?),
                "pfifo" => set_kind(&mut params, Kind::Pfifo),
                "bfifo" => set_kind(&mut params, Kind::Bfifo),
                "pfifo_head_drop" => set_kind(&mut params, Kind::PfifoHeadDrop),
                _ if framing.take(word, words)? => {}
                _ => return Err(words.unknown()),
            }
        }
        params.framing = framing.framing();
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        out.write_str("rate ")?;
        match self.rate {
            Rate(0) => out.write_str("unlimited")?,
            rate => write_rate(rate, digits, out)?,
        }
        write!(out, " {} ", self.fifo.name())?;
        if self.fifo.limit.is_some() {
            self.fifo.write_words(digits, out)?;
            out.write_char(' ')?;
        }
        write_times(&self.delay, digits, out)?;
        if self.delay.limit != DEFAULT_IN_FLIGHT {
            write!(out, "in-flight {} ", self.delay.limit)?;
        }
        link::write_words(&self.framing, out)
    }

    /// The rate in bytes a second, as `tc`.
    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        match self.rate {
            Rate(0) => json.key("rate")?.string("unlimited")?,
            rate => json.key("rate")?.number(rate.bytes())?,
        }
        json.key("fifo")?.string(self.fifo.name())?;
        self.fifo.write_json(json)?;
        json.key("delay_ns")?.number(self.delay.delay.0)?;
        json.key("jitter_ns")?.number(self.delay.jitter.0)?;
        json.key("in_flight")?.number(self.delay.limit.into())?;
        link::write_json(&self.framing, json)
    }

    fn rate(&self) -> Option<Rate> {
        (!self.rate.is_unlimited()).then_some(self.rate)
    }

    fn with_rate(&self, rate: Rate, _: fn(Rate) -> u32) -> Option<Params> {
        Some(Params { rate, ..*self })
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn drops_all(&self, device: &Device) -> Option<String> {
        self.fifo.drops_all(device)
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Line::new(self, device)?))
    }
}

/// Changes the FIFO; a limit in the other unit would no longer mean anything.
fn set_kind(params: &mut Params, kind: Kind) {
    if (params.fifo.kind == Kind::Bfifo) != (kind == Kind::Bfifo) {
        params.fifo.limit = None;
    }
    params.fifo.kind = kind;
}

fn limit(word: &str) -> Result<Limit, ValueError> {
    match units::packets(word) {
        Some(packets) => packets.map(Limit::Packets),
        // Packets to some, bytes to others.
        None if units::number(word).is_ok() => Err(ValueError::Invalid),
        None => units::size(word).map(Limit::Bytes),
    }
}

fn set_limit(params: &mut Params, limit: Limit) {
    let (limit, bytes) = match limit {
        Limit::Packets(limit) => (limit, false),
        Limit::Bytes(limit) => (limit, true),
    };
    match (params.fifo.kind, bytes) {
        (Kind::Pfifo | Kind::PfifoHeadDrop, true) => params.fifo.kind = Kind::Bfifo,
        (Kind::Bfifo, false) => params.fifo.kind = Kind::Pfifo,
        _ => {}
    }
    params.fifo.limit = Some(limit);
}
