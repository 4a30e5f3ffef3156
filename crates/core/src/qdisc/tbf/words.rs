//! The words of `tbf` (man tc-tbf), and of what stands below it: `tbf rate 5mbit burst 10kb
//! fq_codel`.
//!
//! As in `tc`, rate and burst must be given, and a limit or a latency unless a discipline follows;
//! a peakrate needs its mtu. What `tc` prints as `lat` is the time that a full queue takes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::{Params, Tbf};
use crate::qdisc::{
    parse_child, too_small, Config, ConfigError, Described, Device, Managed, Names,
};
use crate::rate::{Arithmetic, Rate};
use crate::tc::bucket::write_burst;
use crate::tc::units::{shown_rate, shown_size, shown_time};
use crate::tc::{
    bucket, units, Digits, Json, Keyword, Keywords, ParseError, Problem, Value, Words,
};
use crate::time::Span;

const TIME: Value<u32> =
    Value::new("a TIME such as 50ms", units::micros).within("a TIME below 4295 seconds");

/// The keywords.
const KEYWORDS: Keywords = &[
    &[
        Keyword::new("rate", "RATE", "rate on average"),
        Keyword::new("burst", "SIZE", "bytes that may be sent at once"),
        Keyword::new("buffer", "SIZE", "the same"),
        Keyword::new("maxburst", "SIZE", "the same"),
        Keyword::new("peakrate", "RATE", "a second, higher rate"),
        Keyword::new("mtu", "SIZE", "bytes that may be sent at once at that"),
        Keyword::new("minburst", "SIZE", "the same"),
        Keyword::new("limit", "SIZE", "longest queue, where nothing else follows"),
        Keyword::new("latency", "TIME", "the same, as a time"),
        Keyword::new("lat", "TIME", "the same"),
    ],
    bucket::FRAMING,
];

/// Values of the words read so far.
#[derive(Default)]
struct Said {
    rate: Option<Rate>,
    burst: Option<u32>,
    peak: Option<Rate>,
    mtu: Option<u32>,
    limit: Option<u32>,
    latency: Option<u32>,
    child: Option<Box<Config>>,
}

impl Said {
    /// The error that the word at `place` and `other` both say how long the queue may be.
    fn one_length(
        &self,
        place: usize,
        other: &'static str,
        words: &Words<'_>,
    ) -> Result<(), ParseError> {
        match (self.limit, self.latency) {
            (Some(1..), Some(1..)) => Err(words.error_at(place, Problem::Twice { keyword: other })),
            _ => Ok(()),
        }
    }
}

impl Described for Params {
    const NAMES: Names = &[("tbf", "a token bucket before any discipline")];
    const KEYWORDS: Keywords = KEYWORDS;
    const RATE: Option<&'static str> = Some("rate");
    type Stats = ();

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let (mut said, mut framing) = (Said::default(), Default::default());
        while let Some(word) = words.next() {
            match word {
                "rate" => bucket::take_rate(&mut said.rate, "rate", words)?,
                "burst" | "buffer" | "maxburst" => {
                    bucket::take_size(&mut said.burst, "burst", words)?;
                }
                "peakrate" => bucket::take_rate(&mut said.peak, "peakrate", words)?,
                "mtu" | "minburst" => bucket::take_size(&mut said.mtu, "mtu", words)?,
                "limit" => {
                    let place = words.place();
                    bucket::take_size(&mut said.limit, "limit", words)?;
                    said.latency = said.latency.filter(|_| !words.amends());
                    said.one_length(place, "latency", words)?;
                }
                "latency" | "lat" => {
                    let place = words.place();
                    bucket::once(&said.latency.filter(|micros| *micros > 0), "latency", words)?;
                    said.latency = Some(words.take(&TIME)?);
                    said.limit = said.limit.filter(|_| !words.amends());
                    said.one_length(place, "limit", words)?;
                }
                _ if bucket::take_framing(&mut framing, word, words)? => {}
                _ => match parse_child(words, word)? {
                    Some(child) => said.child = Some(Box::new(child)),
                    None => return Err(words.unknown()),
                },
            }
        }
        let (rate, burst) = match (said.rate, said.burst.filter(|burst| *burst > 0)) {
            (Some(rate), Some(burst)) => (rate, burst),
            (Some(_), None) => return Err(words.lacks("tbf", "burst SIZE")),
            (None, Some(_)) => return Err(words.lacks("tbf", "rate RATE")),
            (None, None) => return Err(words.lacks("tbf", "rate RATE and burst SIZE")),
        };
        let peak = match (said.peak, said.mtu.filter(|mtu| *mtu > 0)) {
            (Some(peak), _) if peak <= rate => {
                let range = "a RATE above that of `rate`";
                return Err(words.unfit("peakrate", range, range));
            }
            (Some(peak), Some(mtu)) => Some((peak, mtu)),
            (Some(_), None) => return Err(words.lacks("tbf peakrate", "mtu SIZE")),
            (None, _) => None,
        };
        let limit = match (said.limit.unwrap_or(0), said.latency.unwrap_or(0)) {
            (0, 0) if said.child.is_some() => 0,
            (0, 0) => return Err(words.lacks("tbf", "limit SIZE, latency TIME or a discipline")),
            (0, latency) => {
                let holds = |rate: Rate, burst: u32| {
                    u128::from(rate.0) * u128::from(latency) / 1_000_000 + u128::from(burst)
                };
                let least = peak.map_or(u128::MAX, |(peak, mtu)| holds(peak, mtu));
                holds(rate, burst).min(least).min(u128::from(u32::MAX)) as u32
            }
            (limit, _) => limit,
        };
        Ok(Params { rate, burst, peak, limit, framing, child: said.child })
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        write!(out, "rate {} burst ", shown_rate(self.rate, digits))?;
        write_burst(self.rate, self.burst, &self.framing, digits, out)?;
        if let Some((rate, mtu)) = self.peak {
            write!(out, " peakrate {} minburst ", shown_rate(rate, digits))?;
            write_burst(rate, mtu, &self.framing, digits, out)?;
        }
        out.write_char(' ')?;
        match latency(self).filter(|_| digits == Digits::AsTc) {
            _ if self.limit == 0 => {}
            Some(latency) => {
                out.write_str("lat ")?;
                // As text, in 32 bits.
                let micros = latency.as_micros() as u32;
                write!(out, "{} ", shown_time(Span::from_micros(micros.into()), digits))?;
            }
            None => {
                write!(out, "limit {} ", shown_size(self.limit.into(), digits))?;
            }
        }
        bucket::write_framing(&self.framing, digits, out)?;
        // As text, `tc` shows a discipline below on a line of its own.
        match &self.child {
            Some(child) if digits == Digits::Exact => write!(out, "{child} "),
            _ => Ok(()),
        }
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        let shown = |rate, burst| bucket::shown_burst(rate, burst, &self.framing);
        json.key("rate")?.number(self.rate.0)?;
        json.key("burst")?.number(shown(self.rate, self.burst))?;
        if let Some((rate, mtu)) = self.peak {
            json.key("minburst")?.number(shown(rate, mtu))?;
        }
        match latency(self) {
            _ if self.limit == 0 => {}
            Some(latency) => json.key("lat")?.number(latency.as_micros())?,
            None => json.key("limit")?.number(self.limit.into())?,
        }
        bucket::write_framing_json(&self.framing, json)
    }

    fn is_surely(&self, _: &Params) -> bool {
        false
    }

    fn children(&self) -> Vec<(u32, &Config)> {
        self.child.as_deref().map(|child| (1, child)).into_iter().collect()
    }

    fn children_mut(&mut self) -> Vec<&mut Config> {
        self.child.as_deref_mut().into_iter().collect()
    }

    fn rate(&self) -> Option<Rate> {
        let below = self.child.as_ref().and_then(|child| child.rate());
        Some(below.map_or(self.rate, |rate| rate.min(self.rate)))
    }

    fn with_rate(&self, rate: Rate, burst: fn(Rate) -> u32) -> Option<Params> {
        let mut params = self.clone();
        bucket::set_rate(&mut params.rate, &mut params.burst, rate, burst)?;
        Some(params)
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn drops_all(&self, device: &Device) -> Option<String> {
        let peak = self.peak.and_then(|(_, mtu)| too_small("mtu", mtu.into(), device.mtu));
        let limit = self.child.is_none().then_some(self.limit);
        let limit = limit.and_then(|limit| too_small("limit", limit.into(), device.mtu));
        too_small("burst", self.burst.into(), device.mtu).or(peak).or(limit)
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Tbf::new(self, device)?))
    }
}

/// Time to send a full queue, beyond what the buckets hold; None if they hold more than it.
fn latency(params: &Params) -> Option<Span> {
    let (bucket, peak_bucket) = params.buckets(Arithmetic::LINUX);
    let beyond =
        |rate, depth| bucket::micros_of(rate, params.limit).checked_sub(bucket::micros(depth));
    let peak = params.peak.zip(peak_bucket);
    let at_peak = peak.and_then(|((rate, _), bucket)| beyond(rate, bucket.depth()));
    let latency = beyond(params.rate, bucket.depth()).max(at_peak)?;
    Some(Span::from_micros(latency.min(u64::MAX / 1000)))
}
