//! The words of `sfb` (man tc-sfb).
//!
//! As in `tc`, a bare time is in milliseconds. Given alone, a target makes max five quarters of it,
//! and a max makes target four fifths of it. Probabilities are kept in units of 1/65535.

use alloc::boxed::Box;
use core::fmt::{self, Write};

use super::{Params, Sfb, Stats, MAX_PROB};
use crate::qdisc::netlink::Abi;
use crate::qdisc::{Choice, ConfigError, Described, Device, Managed, Names, Needs};
use crate::tc::units::{packet_count, shown_fraction, shown_time, write_fraction, ValueError};
use crate::tc::{units, Digits, Json, Keyword, Keywords, ParseError, Value, Words};
use crate::time::Span;

const COUNT: Value<u32> = Value::new("a number of packets, 0 to 4294967295", count);
const CHANCE: Value<u16> = Value::new("a probability from 0 to 1, such as 0.0005", chance);
const TIME: Value<Span> =
    Value::new("a number of milliseconds, or a TIME such as 600s", milliseconds);

/// The keywords.
const KEYWORDS: Keywords = &[&[
    Keyword::new("limit", "N", "packets that may be queued"),
    Keyword::new("rehash", "MS", "how often the bins are changed over, default 600000"),
    Keyword::new("db", "MS", "how long the other bins are warmed up, default 60000"),
    Keyword::new("target", "N", "packets in a bin at which marking rises, default 20"),
    Keyword::new("max", "N", "packets in all bins of a flow at which it is dropped, default 25"),
    Keyword::new("increment", "P", "step up of the probability, default 0.0005"),
    Keyword::new("decrement", "P", "step down, default 0.00005"),
    Keyword::new("penalty_rate", "N", "packets a second of flows that do not respond, default 10"),
    Keyword::new("penalty_burst", "N", "of those, packets at once, default 20"),
]];

/// A probability, rounded to the nearest of 65536.
fn chance(word: &str) -> Result<u16, ValueError> {
    // Times 2 * 65535, so that half a unit is a whole number.
    match units::number(word)?.times(2 * u64::from(MAX_PROB)).whole() {
        Some(twice) if twice <= 2 * u64::from(MAX_PROB) => Ok((twice.div_ceil(2)) as u16),
        _ => Err(ValueError::TooLarge),
    }
}

fn milliseconds(word: &str) -> Result<Span, ValueError> {
    match (units::count(word), units::number(word)) {
        (Ok(ms), _) => Ok(Span::from_millis(ms.into())),
        // Elsewhere a bare number is in microseconds.
        (Err(error), Ok(_)) => Err(error),
        (Err(_), Err(_)) => units::time(word),
    }
}

/// `10pps` and `20p` as `tc` prints them, or bare.
fn count(word: &str) -> Result<u32, ValueError> {
    packet_count(word.strip_suffix("pps").unwrap_or(word))
}

impl Described for Params {
    const NAMES: Names = &[("sfb", "one queue; flows that do not respond go to a penalty box")];
    const KEYWORDS: Keywords = KEYWORDS;
    const NETLINK: Option<Abi<Params, Stats>> = Some(super::netlink::ABI);
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let mut params = Params { target: 0, max: 0, ..Params::default() };
        while let Some(word) = words.next() {
            match word {
                "limit" => {
                    params.limit = Some(words.take(&COUNT)?).filter(|limit| *limit > 0);
                }
                "rehash" => params.rehash = words.take(&TIME)?,
                "db" => params.db = words.take(&TIME)?,
                "target" => params.target = words.take(&COUNT)?,
                "max" => params.max = words.take(&COUNT)?,
                "increment" => params.increment = words.take(&CHANCE)?,
                "decrement" => params.decrement = words.take(&CHANCE)?,
                "penalty_rate" => params.penalty_rate = words.take(&COUNT)?,
                "penalty_burst" => params.penalty_burst = words.take(&COUNT)?,
                _ => return Err(words.unknown()),
            }
        }
        // Rounded as `tc` does: a target of 7 has a max of 9, a max of 6 a target of 5.
        let share = |n: u32, up: u64, more: u64, of: u64| {
            ((u64::from(n) * up + more) / of).min(u32::MAX.into()) as u32
        };
        params.max = match (params.max, params.target) {
            (0, 0) => Params::default().max,
            (0, target) => share(target, 5, 1, 4),
            (max, _) => max,
        };
        if params.target == 0 {
            params.target = share(params.max, 4, 3, 5);
        }
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        let [rehash, db] = [self.rehash, self.db].map(|time| shown_time(time, digits));
        write!(out, "rehash {rehash} db {db}")?;
        if let Some(limit) = self.limit {
            write!(out, " limit {limit}p")?;
        }
        let steps = [self.increment, self.decrement];
        let [up, down] = steps.map(|step| shown_fraction(step.into(), MAX_PROB.into()));
        write!(out, " max {}p target {}p ", self.max, self.target)?;
        write!(out, "increment {up} decrement {down}")?;
        let Params { penalty_rate, penalty_burst, .. } = self;
        write!(out, " penalty_rate {penalty_rate}pps penalty_burst {penalty_burst}p ")
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        let fraction =
            |n: u16| move |out: &mut dyn Write| write_fraction(n.into(), MAX_PROB.into(), out);
        json.key("rehash")?.number(self.rehash.as_micros())?;
        json.key("db")?.number(self.db.as_micros())?;
        if let Some(limit) = self.limit {
            json.key("limit")?.number(limit.into())?;
        }
        json.key("max")?.number(self.max.into())?;
        json.key("target")?.number(self.target.into())?;
        json.key("increment")?.raw(fraction(self.increment))?;
        json.key("decrement")?.raw(fraction(self.decrement))?;
        json.key("penalty_rate")?.number(self.penalty_rate.into())?;
        json.key("penalty_burst")?.number(self.penalty_burst.into())
    }

    fn resolve(&mut self, device: &Device) {
        self.limit = Some(self.effective_limit(device));
        self.rehash = device.tick.enough(self.rehash);
        self.db = device.tick.enough(self.db);
    }

    fn own_needs(&self) -> Needs {
        Needs { vain_calls: false, choice: Choice::Flow, ..Needs::MOST }
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Sfb::new(self, device)?))
    }
}
