//! Words of a scenario to values, in `tc`'s units, with the place in every error.

use std::ops::Range;

use simnel_core::qdisc;
use simnel_core::tc::{slip, units};
use simnel_core::{dscp, Rate, Span};
use simnel_sim::setup::{Loss, Reordering, MAX_DELAY};
use toml::Spanned;

use super::error::ScenarioError;
use super::file::{Amount, Quantity, Word};

type Result<T> = std::result::Result<T, ScenarioError>;

fn wrong(word: &Word, expected: &str) -> ScenarioError {
    ScenarioError::at(word.span(), format!("`{}` cannot be used here", word.get_ref()), expected)
}

/// A rate; None for `unlimited`.
pub(super) fn rate(word: &Word) -> Result<Option<Rate>> {
    const EXPECTED: &str = "a rate such as \"20mbit\" (512bit at least), or \"unlimited\"";
    match word.get_ref().as_str() {
        "unlimited" => Ok(None),
        text => match plain_rate(text, word.span(), EXPECTED)? {
            rate if rate.bytes() >= 64 => Ok(Some(rate)),
            _ => Err(wrong(word, EXPECTED)),
        },
    }
}

/// A rate in a change of the line: `0bit` is an outage.
pub(super) fn changed_rate(word: &Word) -> Result<Rate> {
    plain_rate(word.get_ref(), word.span(), "a rate such as \"20mbit\"; \"0bit\" is an outage")
}

/// A rate that is what it looks like.
fn plain_rate(text: &str, span: Range<usize>, expected: &str) -> Result<Rate> {
    slip::rate(text).map_err(|what| ScenarioError::at(span, what, expected))
}

/// A time with its unit.
pub(super) fn time(word: &Word) -> Result<Span> {
    let text = word.get_ref().trim();
    let has_unit = text.ends_with(|c: char| c.is_ascii_alphabetic());
    units::time(text)
        .ok()
        .filter(|_| has_unit)
        .ok_or_else(|| wrong(word, "a time with its unit, such as \"45ms\" or \"60s\""))
}

/// A key's time, which has an end.
pub(super) fn time_up_to(word: &Word, key: &str, most: Span) -> Result<Span> {
    match time(word)? {
        time if time <= most => Ok(time),
        _ => {
            let expected = format!("at most {}s", most.0 / 1_000_000_000);
            Err(ScenarioError::at(word.span(), format!("`{key}` is too long"), expected))
        }
    }
}

/// An optional time.
pub(super) fn time_or(word: &Option<Word>, default: Span) -> Result<Span> {
    word.as_ref().map_or(Ok(default), time)
}

/// Bytes: a number, or words as `tc` reads them (`64kb` is 65536).
pub(super) fn bytes(amount: &Amount) -> Result<u64> {
    let read = match amount.get_ref() {
        Quantity::Integer(n) => Some(*n),
        Quantity::Word(word) => units::long_size(word).ok(),
        Quantity::Float(_) => None,
    };
    read.ok_or_else(|| {
        let expected = "bytes: a whole number such as 100000, or words such as \"64kb\"";
        ScenarioError::at(amount.span(), "this is no size", expected)
    })
}

/// Bytes that must fit 32 bits.
pub(super) fn small_bytes(amount: &Amount) -> Result<u32> {
    u32::try_from(bytes(amount)?).map_err(|_| {
        ScenarioError::at(amount.span(), "this size is too large", "at most 4294967295 bytes")
    })
}

/// Time between events, from their number in a second: `5`, `0.5`, `"5/s"`.
pub(super) fn frequency(amount: &Amount) -> Result<Span> {
    let number = match amount.get_ref() {
        Quantity::Integer(n) => Some(*n as f64),
        Quantity::Float(x) => Some(*x),
        Quantity::Word(word) => word.strip_suffix("/s").and_then(|number| number.parse().ok()),
    };
    let sane = number.filter(|number| (1e-5..=1e5).contains(number)).ok_or_else(|| {
        let expected = "a number a second between 0.00001 and 100000, such as 5 or \"2.5/s\"";
        ScenarioError::at(amount.span(), "this is no frequency", expected)
    })?;
    Ok(Span((1e9 / sane).round() as u64))
}

/// A bit rate of an application.
pub(super) fn bit_rate(amount: &Amount) -> Result<Rate> {
    const EXPECTED: &str = "a rate such as \"2mbit\"";
    let read = match amount.get_ref() {
        Quantity::Word(word) => plain_rate(word, amount.span(), EXPECTED)?,
        Quantity::Integer(_) | Quantity::Float(_) => Rate(0),
    };
    match read.is_unlimited() {
        true => Err(ScenarioError::at(amount.span(), "this is no rate", EXPECTED)),
        false => Ok(read),
    }
}

/// `0.1%`, or `every 1000`.
pub(super) fn loss(word: &Word) -> Result<Loss> {
    const EXPECTED: &str = "a share such as \"0.1%\", or \"every 1000\"";
    let text = word.get_ref().trim();
    if let Some(number) = text.strip_prefix("every ") {
        let n = number.trim().parse().ok().filter(|n| *n >= 2);
        return n.map(Loss::Every).ok_or_else(|| wrong(word, EXPECTED));
    }
    match share(text) {
        Some(0) => Ok(Loss::None),
        Some(share) => Ok(Loss::Random(share)),
        None => Err(wrong(word, EXPECTED)),
    }
}

/// `1% by 10ms`.
pub(super) fn reordering(word: &Word) -> Result<Reordering> {
    const EXPECTED: &str = "a share that comes late, and by how much: \"1% by 10ms\"";
    let (first, last) = word.get_ref().split_once(" by ").ok_or_else(|| wrong(word, EXPECTED))?;
    let share = share(first).ok_or_else(|| wrong(word, EXPECTED))?;
    let late = time_up_to(&Word::new(word.span(), last.into()), "reorder", MAX_DELAY)?;
    Ok(Reordering { share, late })
}

/// `0.1%` in units of 2^-32.
fn share(text: &str) -> Option<u32> {
    let share: Option<f64> = text.trim().strip_suffix('%')?.trim().parse().ok();
    let share = share.filter(|share| (0.0..=100.0).contains(share))?;
    Some((share / 100.0 * 4_294_967_295.0).round() as u32)
}

/// A code point.
pub(super) fn code_point(word: &Word) -> Result<u8> {
    let name = match word.get_ref().as_str() {
        "BE" | "be" => "CS0",
        name => name,
    };
    dscp::parse(name).ok_or_else(|| {
        wrong(word, "a code point such as \"EF\", \"CS1\", \"BE\", or a number below 64")
    })
}

/// A discipline's words, with `{rate}` replaced by the line's rate.
pub(super) fn discipline(
    words: &str,
    rate: Option<&str>,
    span: Option<Range<usize>>,
) -> Result<qdisc::Config> {
    let filled = words.replace("{rate}", rate.unwrap_or("{rate}"));
    let expected = |text: String| (text, "a discipline in tc's words, such as \"fq_codel\"");
    let (what, expected) = if filled.contains("{rate}") {
        ("`{rate}` stands for the line's rate, and this line has none".into(), "a rate")
    } else {
        match qdisc::parse_strictly(&filled) {
            Ok(config) => match qdisc::build(&config, &Default::default()) {
                Ok(_) => return Ok(config),
                Err(error) => expected(error.to_string()),
            },
            Err(error) => {
                // Narrow the place down to the word, where the text is as it was written: inside
                // the quotes, before a rate that was put in.
                let as_written = words.find("{rate}").unwrap_or(words.len());
                let span = span.map(|span| {
                    match error.end <= as_written && span.len() == words.len() + 2 {
                        true => span.start + 1 + error.start..span.start + 1 + error.end,
                        false => span,
                    }
                });
                let what = error.to_string();
                return Err(ScenarioError { what, expected: error.expected().into(), span });
            }
        }
    };
    Err(ScenarioError { what, expected: expected.into(), span })
}

/// A range of two numbers, the first not above the second.
pub(super) fn range(numbers: &Spanned<Vec<u64>>) -> Result<(u64, u64)> {
    match numbers.get_ref().as_slice() {
        [one] if *one > 0 => Ok((*one, *one)),
        [low, high] if 0 < *low && low <= high => Ok((*low, *high)),
        _ => Err(ScenarioError::at(numbers.span(), "this is no range", "[N], or [MIN, MAX]")),
    }
}
