//! Rates, times and sizes as `tc` writes them.
//!
//! Reading follows `tc`'s arithmetic to the last bit (`number.rs`); recordings of the real
//! program are the test (tests/data/tc/units.txt). Printing comes in two kinds. [`Digits::AsTc`] is
//! what `tc` prints, which drops digits (12345678 bit/s is shown as 12345Kbit). [`Digits::Exact`]
//! loses nothing, so that what is printed can be read back.

use core::fmt::{self, Write};

use super::number::{after_0x, Number};
use crate::rate::Rate;
use crate::time::Span;

/// Number of digits of a printed value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Digits {
    /// As many as `tc` shows.
    #[default]
    AsTc,
    /// All.
    Exact,
}

/// Reason for which a word is not a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueError {
    /// It is not a number with a known unit.
    Invalid,
    /// It is a number, but too large.
    TooLarge,
    /// `tc` knows it, but we do not, for this reason.
    Foreign(&'static str),
}

/// A kind of values: what one is, with an example, what is allowed, and how it is read.
pub struct Value<T> {
    pub(super) expected: &'static str,
    pub(super) range: &'static str,
    pub(super) read: fn(&str) -> Result<T, ValueError>,
}

impl<T> Value<T> {
    /// Values of which `expected` says all.
    pub const fn new(expected: &'static str, read: fn(&str) -> Result<T, ValueError>) -> Value<T> {
        Value { expected, range: expected, read }
    }

    /// Those within `range` only.
    pub const fn within(self, range: &'static str) -> Value<T> {
        Value { range, ..self }
    }
}

/// Reason for which a number with a leading zero is not read.
const OCTAL: &str = "C and `tc` read a number with a leading zero as octal: say it without";
/// Reason for which a rate in percent is not read.
const SHARE: &str =
    "a share of the interface's own speed is no line's rate: say that, such as 10mbit";

/// Units of rates: what one is in bits per second.
const RATES: &[(&str, u64)] = &[
    ("", 1),
    ("bit", 1),
    ("kbit", 1000),
    ("mbit", 1_000_000),
    ("gbit", 1_000_000_000),
    ("tbit", 1_000_000_000_000),
    ("kibit", 1 << 10),
    ("mibit", 1 << 20),
    ("gibit", 1 << 30),
    ("tibit", 1 << 40),
    ("bps", 8),
    ("kbps", 8000),
    ("mbps", 8_000_000),
    ("gbps", 8_000_000_000),
    ("tbps", 8_000_000_000_000),
    ("kibps", 8 << 10),
    ("mibps", 8 << 20),
    ("gibps", 8 << 30),
    ("tibps", 8 << 40),
];

/// Units of times: how many make a second.
const TIMES: &[(&str, u64)] = &[
    ("", MICROS),
    ("s", 1),
    ("sec", 1),
    ("secs", 1),
    ("ms", 1000),
    ("msec", 1000),
    ("msecs", 1000),
    ("us", MICROS),
    ("usec", MICROS),
    ("usecs", MICROS),
    ("ns", NANOS),
    ("nsec", NANOS),
    ("nsecs", NANOS),
];

/// Units of sizes: what one is in bytes.
const SIZES: &[(&str, u64)] = &[
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kb", 1 << 10),
    ("m", 1 << 20),
    ("mb", 1 << 20),
    ("g", 1 << 30),
    ("gb", 1 << 30),
    ("kbit", 1 << 7),
    ("mbit", 1 << 17),
    ("gbit", 1 << 27),
];

const MICROS: u64 = 1_000_000;
const NANOS: u64 = 1_000_000_000;

/// A number and what its unit stands for in `units`; case does not matter.
fn quantity(word: &str, units: &[(&str, u64)]) -> Result<(Number, u64), ValueError> {
    let (number, suffix) = Number::parse(word).ok_or(ValueError::Invalid)?;
    let unit = units.iter().find(|(name, _)| name.eq_ignore_ascii_case(suffix));
    Ok((number, unit.ok_or(ValueError::Invalid)?.1))
}

/// A number without a unit.
pub(crate) fn number(word: &str) -> Result<Number, ValueError> {
    match Number::parse(word) {
        Some((number, "")) => Ok(number),
        _ => Err(ValueError::Invalid),
    }
}

/// A whole number as C reads it: decimal, or hexadecimal after `0x`. Octal ones are refused: few
/// who write 0100 mean 64.
pub fn whole(word: &str) -> Result<i64, ValueError> {
    let (sign, digits) = match word.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, word),
    };
    let (digits, radix) = match after_0x(digits) {
        Some(digits) => (digits, 16),
        None => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_digit(radix)) {
        return Err(ValueError::Invalid);
    }
    if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        return Err(ValueError::Foreign(OCTAL));
    }
    i64::from_str_radix(digits, radix).map(|n| sign * n).map_err(|_| ValueError::TooLarge)
}

/// A rate: `20mbit`, `64kbps` (bytes), `1.5mibit` (1024-based), `9600` (bits per second).
pub fn rate(word: &str) -> Result<Rate, ValueError> {
    if word.ends_with('%') {
        return Err(ValueError::Foreign(SHARE));
    }
    let (number, scale) = quantity(word, RATES)?;
    number.times(scale).over(8).whole().map(Rate).ok_or(ValueError::TooLarge)
}

/// A [`rate`], or `unlimited`.
fn rate_or_none(word: &str) -> Result<Rate, ValueError> {
    match word {
        "unlimited" => Ok(Rate(0)),
        word => rate(word),
    }
}

/// Rates of which `unlimited` is one.
pub(crate) const RATE_OR_NONE: Value<Rate> =
    Value::new("a RATE such as 20mbit", rate_or_none).within("a RATE below 2^64 bytes a second");

/// A time in whole microseconds, as `rtt` takes it: `5ms`, `100us`, `1.5s`, `20` (microseconds).
pub fn micros(word: &str) -> Result<u32, ValueError> {
    let (number, per_second) = quantity(word, TIMES)?;
    if per_second > MICROS {
        return Err(ValueError::Invalid);
    }
    let micros = number.times(MICROS / per_second).whole().ok_or(ValueError::TooLarge)?;
    u32::try_from(micros).map_err(|_| ValueError::TooLarge)
}

/// The same as a span.
pub(crate) fn span(word: &str) -> Result<Span, ValueError> {
    micros(word).map(|micros| Span::from_micros(micros.into()))
}

/// A time to the nanosecond: as [`micros`], and `20ns`. A bare number is still in microseconds.
pub fn time(word: &str) -> Result<Span, ValueError> {
    let (number, per_second) = quantity(word, TIMES)?;
    number.times(NANOS / per_second).whole().map(Span).ok_or(ValueError::TooLarge)
}

/// A size in bytes: `32mb`, `15k`, `1500`, `512kbit`; prefixes are 1024-based.
pub fn size(word: &str) -> Result<u32, ValueError> {
    u32::try_from(long_size(word)?).map_err(|_| ValueError::TooLarge)
}

/// The same of any size: `10gb`.
pub fn long_size(word: &str) -> Result<u64, ValueError> {
    let (number, scale) = quantity(word, SIZES)?;
    number.times(scale).whole().ok_or(ValueError::TooLarge)
}

/// A size that `tc` keeps in an integer with a sign.
pub(crate) fn signed_size(word: &str) -> Result<u32, ValueError> {
    size(word).and_then(|bytes| match i32::try_from(bytes) {
        Ok(_) => Ok(bytes),
        Err(_) => Err(ValueError::TooLarge),
    })
}

/// Writes a rate: `10Mbit`.
pub fn write_rate(rate: Rate, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    // Wraps around beyond 2^61 bytes a second, as tc's arithmetic does.
    let mut bits = rate.0.wrapping_mul(8);
    let mut prefixes = ["", "K", "M", "G", "T"].into_iter().peekable();
    let mut prefix = prefixes.next().unwrap_or_default();
    while let Some(&larger) = prefixes.peek() {
        // tc gives digits up once six of them remain.
        let goes_up = match digits {
            Digits::AsTc => bits >= 1000 && (bits.is_multiple_of(1000) || bits >= 1_000_000),
            Digits::Exact => bits >= 1000 && bits.is_multiple_of(1000),
        };
        if !goes_up {
            break;
        }
        (bits, prefix) = (bits / 1000, larger);
        prefixes.next();
    }
    write!(out, "{bits}{prefix}bit")
}

/// Writes a time: `18.2ms`. `tc` knows whole microseconds only.
pub fn write_time(time: Span, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    let micros = time.as_micros();
    match digits {
        Digits::AsTc => {
            let (per_unit, unit) = match micros {
                0..=999 => return write!(out, "{micros}us"),
                1_000..=999_999 => (1_000, "ms"),
                _ => (MICROS, "s"),
            };
            Number::from(micros).over(per_unit).write_general(3, out)?;
            out.write_str(unit)
        }
        Digits::Exact => {
            let (per_unit, unit) = match time.0 {
                0 => (1, "us"),
                ns if ns % NANOS == 0 => (NANOS, "s"),
                ns if ns % 1_000_000 == 0 => (1_000_000, "ms"),
                ns if ns % 1_000 == 0 => (1_000, "us"),
                _ => (1, "ns"),
            };
            write!(out, "{}{unit}", time.0 / per_unit)
        }
    }
}

/// Writes a size: `4Mb`, `15140Kb`, `1000b`.
pub fn write_size(bytes: u64, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    // How far from a whole number of units tc still calls it whole.
    for (unit, tolerance, name) in [(1u64 << 20, 1024, "Mb"), (1 << 10, 16, "Kb")] {
        let count = (bytes / unit).saturating_add(u64::from(bytes % unit >= unit / 2));
        let distance = (count.saturating_mul(unit)).abs_diff(bytes);
        match digits {
            Digits::AsTc if bytes >= unit && distance < tolerance => {
                Number::from(count).write_general(6, out)?;
                return out.write_str(name);
            }
            Digits::Exact if bytes >= unit && distance == 0 => return write!(out, "{count}{name}"),
            _ => {}
        }
    }
    write!(out, "{bytes}b")
}

/// Reads a number of packets; `tc` prints it with a p, and takes it without.
pub fn packet_count(word: &str) -> Result<u32, ValueError> {
    packets(word).unwrap_or_else(|| count(word))
}

/// Reads `1000p`; None if the word does not end in p.
pub fn packets(word: &str) -> Option<Result<u32, ValueError>> {
    Some(count(word.strip_suffix(['p', 'P'])?))
}

/// Reads a whole number that is not negative.
pub(crate) fn count(word: &str) -> Result<u32, ValueError> {
    match word.starts_with('-') {
        true => Err(ValueError::Invalid),
        false => u32::try_from(whole(word)?).map_err(|_| ValueError::TooLarge),
    }
}

/// Probabilities of which none is above one: `50` is a slip for 0.5.
pub(crate) const CHANCE: Value<u32> =
    Value::new("a probability such as 0.02", share).within("a probability of at most 1");

fn share(word: &str) -> Result<u32, ValueError> {
    match number(word)?.exceeds_one() {
        true => Err(ValueError::TooLarge),
        false => probability(word),
    }
}

/// A number of 16 bits as a class's is written: hexadecimal, with 0x or without.
pub(crate) fn hexadecimal(word: &str) -> Result<u16, ValueError> {
    let digits = after_0x(word).unwrap_or(word);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(ValueError::Invalid);
    }
    u16::from_str_radix(digits, 16).map_err(|_| ValueError::TooLarge)
}

/// A probability above zero, Q0.32: `0.02`. One and more are the largest value; what `tc` sends for
/// them are 32 bits that have run over.
pub fn probability(word: &str) -> Result<u32, ValueError> {
    match number(word)?.times(1 << 32).whole() {
        Some(0) => Err(ValueError::Invalid),
        Some(scaled) => Ok(u32::try_from(scaled).unwrap_or(u32::MAX)),
        None => Ok(u32::MAX),
    }
}

/// Writes a probability, Q0.32, so that [`probability`] reads the same.
pub fn write_probability(scaled: u32, out: &mut dyn Write) -> fmt::Result {
    // Ten places are finer than 2^-32; rounded up, so that cutting off gives the same.
    let places = (u64::from(scaled) * 9_765_625).div_ceil(1 << 22) as u128;
    let mut digits = places;
    let mut width = 10;
    while digits.is_multiple_of(10) && width > 1 {
        (digits, width) = (digits / 10, width - 1);
    }
    write!(out, "0.{digits:0width$}")
}

/// Writes `numerator / denominator`, a fraction of at most one, as C's `%g` does: six significant
/// digits without trailing zeros, with an exponent below 0.0001. The denominator is not zero.
pub fn write_fraction(numerator: u64, denominator: u64, out: &mut dyn Write) -> fmt::Result {
    Number::from(numerator).over(denominator.max(1)).write_general(6, out)
}

/// [`write_rate`], as a part of a text.
pub(crate) fn shown_rate(rate: Rate, digits: Digits) -> impl fmt::Display {
    Shown(move |out: &mut dyn Write| write_rate(rate, digits, out))
}

/// [`write_time`], as a part of a text.
pub(crate) fn shown_time(time: Span, digits: Digits) -> impl fmt::Display {
    Shown(move |out: &mut dyn Write| write_time(time, digits, out))
}

/// [`write_size`], as a part of a text.
pub(crate) fn shown_size(bytes: u64, digits: Digits) -> impl fmt::Display {
    Shown(move |out: &mut dyn Write| write_size(bytes, digits, out))
}

/// [`write_probability`], as a part of a text.
pub(crate) fn shown_probability(scaled: u32) -> impl fmt::Display {
    Shown(move |out: &mut dyn Write| write_probability(scaled, out))
}

/// [`write_fraction`], as a part of a text.
pub(crate) fn shown_fraction(numerator: u64, denominator: u64) -> impl fmt::Display {
    Shown(move |out: &mut dyn Write| write_fraction(numerator, denominator, out))
}

/// A value that formats itself through one of the writers above, with `{:>12}` honoured.
struct Shown<F>(F);

impl<F: Fn(&mut dyn Write) -> fmt::Result> fmt::Display for Shown<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.width().is_none() {
            return (self.0)(f);
        }
        let mut text = alloc::string::String::new();
        (self.0)(&mut text)?;
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    /// The shortest decimals that are read as the same 32 bits.
    #[test]
    fn probabilities_are_read_as_they_are_written() {
        let text = |scaled| {
            let mut text = alloc::string::String::new();
            write_probability(scaled, &mut text).map(|()| text)
        };
        for (scaled, words) in
            [(0, "0.0"), (1 << 31, "0.5"), (1 << 30, "0.25"), (1 << 28, "0.0625")]
        {
            assert_eq!(text(scaled).as_deref(), Ok(words));
        }
        for scaled in [1, 3, 42_949_673, u32::MAX / 3, u32::MAX] {
            let words = text(scaled).unwrap_or_default();
            assert_eq!(probability(&words), Ok(scaled), "{words}");
        }
    }

    #[test]
    fn units_without_a_recording() {
        assert_eq!(time("20ns"), Ok(Span(20)));
        assert_eq!(time("1.5us"), Ok(Span(1500)));
        assert_eq!(time("20"), Ok(Span::from_micros(20)));
        assert_eq!(micros("20ns"), Err(ValueError::Invalid));
        assert_eq!(micros("4295s"), Err(ValueError::TooLarge));
        assert_eq!(time("1e12s"), Err(ValueError::TooLarge));
        assert_eq!(rate("-1mbit"), Err(ValueError::Invalid));
    }

    #[test]
    fn fractions_as_c_prints_them() {
        for (n, of, text) in [
            (0, 7, "0"),
            (7, 7, "1"),
            (1, 2, "0.5"),
            (1518, 65535, "0.0231632"),
            (1, 10_000, "0.0001"),
            (1, 65_535, "1.5259e-05"),
            (9_999_999, 10_000_000, "1"),
            (99_999_999, 1_000_000_000_000, "0.0001"),
            (1, 1 << 56, "1.38778e-17"),
            (1, 1 << 17, "7.62939e-06"),
            (3, 100_000, "3e-05"),
        ] {
            assert_eq!(shown_fraction(n, of).to_string(), text, "{n}/{of}");
        }
    }

    #[test]
    fn exact_values_have_the_largest_unit_in_which_they_are_whole() {
        let time = |ns| shown_time(Span(ns), Digits::Exact).to_string();
        let size = |bytes| shown_size(bytes, Digits::Exact).to_string();
        let rate = |bits| shown_rate(Rate::from_bits(bits), Digits::Exact).to_string();
        for (shown, text) in [
            (time(9), "9ns"),
            (time(7_000), "7us"),
            (time(7_001), "7001ns"),
            (time(5_000_000), "5ms"),
            (time(5_001_000), "5001us"),
            (time(3_000_000_000), "3s"),
            (time(1_003_000_000), "1003ms"),
            (size(0), "0b"),
            (size(1023), "1023b"),
            (size(1024), "1Kb"),
            (size(1536), "1536b"),
            (size(2048), "2Kb"),
            (size(1 << 20), "1Mb"),
            (size(3 << 19), "1536Kb"),
            (rate(0), "0bit"),
            (rate(992), "992bit"),
            (rate(8_000), "8Kbit"),
            (rate(1_000_000), "1Mbit"),
            (rate(1_000_992), "1000992bit"),
            (rate(20_000_000_000), "20Gbit"),
        ] {
            assert_eq!(shown, text);
        }
    }

    #[test]
    fn whole_numbers_have_digits_and_nothing_else() {
        for (word, number) in [
            ("0", Ok(0)),
            ("-7", Ok(-7)),
            ("0x1F", Ok(31)),
            ("-0Xa", Ok(-10)),
            ("", Err(ValueError::Invalid)),
            ("-", Err(ValueError::Invalid)),
            ("0x", Err(ValueError::Invalid)),
            ("1x", Err(ValueError::Invalid)),
            ("0xg", Err(ValueError::Invalid)),
            ("+1", Err(ValueError::Invalid)),
            ("0100", Err(ValueError::Foreign(OCTAL))),
            ("9223372036854775808", Err(ValueError::TooLarge)),
        ] {
            assert_eq!(whole(word), number, "{word}");
        }
    }

    #[test]
    fn no_time_at_all_has_the_unit_that_tc_gives_it() {
        for digits in [Digits::AsTc, Digits::Exact] {
            assert_eq!(shown_time(Span::ZERO, digits).to_string(), "0us");
        }
    }

    #[test]
    fn exact_printing_is_read_back() {
        let mut x = 1u64;
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let n = (x >> 32) >> (x % 31);
            let n = if x & 64 == 0 { n * 1000 } else { n };
            let shown = shown_rate(Rate(n), Digits::Exact);
            assert_eq!(rate(&shown.to_string()), Ok(Rate(n)), "{shown}");
            let shown = shown_time(Span(n), Digits::Exact);
            assert_eq!(time(&shown.to_string()), Ok(Span(n)), "{shown}");
            let n = n & 0xffff_ffff;
            let shown = shown_size(n, Digits::Exact);
            assert_eq!(size(&shown.to_string()), Ok(n as u32), "{shown}");
            let n = (n as u32).max(1);
            let shown = shown_probability(n);
            assert_eq!(probability(&shown.to_string()), Ok(n), "{shown}");
        }
    }
}
