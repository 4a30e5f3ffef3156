//! Decimal numbers as C reads and prints them: the one place of the core with floats.
//!
//! `tc` reads a number with `strtod`, multiplies it by its unit as a `double` and cuts the result
//! off. The rounding shows: 1.005mbit becomes 125624 bytes a second, not 125625. Nothing here is
//! state: what a discipline keeps are integers.

use alloc::format;
use core::fmt::{self, Write};

/// The first whole number that 64 bits do not hold.
const END: f64 = (1u128 << 64) as f64;

/// The digits after `0x`, if that is how a number begins.
pub(crate) fn after_0x(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// A number that is not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Number(f64);

impl Number {
    /// Reads the longest prefix of `text` that is a number, and returns it with the rest. It is a
    /// decimal one (`12`, `1.5`, `.5`, `+3`, `1e6`) or a whole hexadecimal one (`0x1f`). None if
    /// there is no number.
    pub fn parse(text: &str) -> Option<(Number, &str)> {
        Number::hexadecimal(text).or_else(|| Number::decimal(text))
    }

    fn hexadecimal(text: &str) -> Option<(Number, &str)> {
        let digits = after_0x(text.strip_prefix('+').unwrap_or(text))?;
        let length = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
        let (digits, rest) = digits.split_at(length);
        if digits.is_empty() {
            return None;
        }
        // All that do not fit are too large.
        Some((u64::from_str_radix(digits, 16).map_or(Number(END), Number::from), rest))
    }

    fn decimal(text: &str) -> Option<(Number, &str)> {
        let bytes = text.as_bytes();
        let digits =
            |at: usize| bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let is = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|byte| any.contains(byte));
        let start = usize::from(is(0, b"+"));
        let mut end = start + digits(start);
        let mut count = end - start;
        if is(end, b".") {
            let places = digits(end + 1);
            (end, count) = (end + 1 + places, count + places);
        }
        if count == 0 {
            return None;
        }
        if is(end, b"eE") {
            let exponent = end + 1 + usize::from(is(end + 1, b"+-"));
            let length = digits(exponent);
            end = if length > 0 { exponent + length } else { end };
        }
        Some((Number(text[..end].parse().ok()?), &text[end..]))
    }

    /// `self * n`, rounded.
    pub fn times(self, n: u64) -> Number {
        Number(self.0 * n as f64)
    }

    /// `self / n`, rounded.
    pub fn over(self, n: u64) -> Number {
        Number(self.0 / n as f64)
    }

    /// True above one.
    pub fn exceeds_one(self) -> bool {
        self.0 > 1.0
    }

    /// The whole part; None from 2^64 on.
    pub fn whole(self) -> Option<u64> {
        (self.0 < END).then_some(self.0 as u64)
    }

    /// Writes as C's `%.{digits}g` does: `digits` significant digits, without trailing zeros, with
    /// an exponent below 0.0001 and where the whole part is longer than that.
    pub fn write_general(self, digits: usize, out: &mut dyn Write) -> fmt::Result {
        let short = |text: &str| match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').into(),
            false => alloc::string::String::from(text),
        };
        let scientific = format!("{:.*e}", digits - 1, self.0);
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
        let tens: i32 = exponent.parse().unwrap_or(0);
        let last = digits as i32 - 1;
        if (-4..=last).contains(&tens) {
            let plain = format!("{:.*}", (last - tens) as usize, self.0);
            return out.write_str(&short(&plain));
        }
        let sign = if tens < 0 { '-' } else { '+' };
        write!(out, "{}e{sign}{:02}", short(mantissa), tens.unsigned_abs())
    }
}

impl From<u64> for Number {
    fn from(n: u64) -> Number {
        Number(n as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn numbers_in_all_shapes() {
        let whole = |text| Number::parse(text).map(|(v, rest)| (v.whole(), rest));
        assert_eq!(whole("1e3kbit"), Some((Some(1000), "kbit")));
        assert_eq!(whole("5.mbit"), Some((Some(5), "mbit")));
        assert_eq!(whole(".5"), Some((Some(0), "")));
        assert_eq!(whole("+7"), Some((Some(7), "")));
        assert_eq!(whole("3e"), Some((Some(3), "e")));
        assert_eq!(whole("3e+"), Some((Some(3), "e+")));
        assert_eq!(whole("1.5.5"), Some((Some(1), ".5")));
        assert_eq!(whole("0x1Fmb"), Some((Some(31), "mb")));
        assert_eq!(whole("+0X20kbit"), Some((Some(32), "kbit")));
        // As in C, where a b is a digit.
        assert_eq!(whole("0x10bit"), Some((Some(0x10b), "it")));
        assert_eq!(whole("0x1p3"), Some((Some(1), "p3")));
        assert_eq!(whole("0x1.8"), Some((Some(1), ".8")));
        assert_eq!(whole("0xffffffffffff0000"), Some((Some(0xffff_ffff_ffff_0000), "")));
        assert_eq!(whole("0x00000000000000000000012"), Some((Some(18), "")));
        assert_eq!(whole("0xmb"), Some((Some(0), "xmb")));
        assert_eq!(whole("1.00000000000000000000000000"), Some((Some(1), "")));
        assert_eq!(whole("0000000000000000000000000000012"), Some((Some(12), "")));
        assert_eq!(whole("1e-99999999999"), Some((Some(0), "")));
        for large in ["18446744073709551616", "1e39", "99e99999999999", "0x10000000000000000"] {
            assert_eq!(whole(large), Some((None, "")), "{large}");
        }
        for nothing in ["", ".", "-1", "mbit", "+", "+.", "inf", "nan", "e5", "-0x1", "++1"] {
            assert_eq!(whole(nothing), None, "{nothing}");
        }
    }

    #[test]
    fn general_notation() {
        for (n, scale, digits, text) in [
            (283_900, 1000, 3, "284"),
            (1_125, 1000, 3, "1.12"),
            (1_115, 1000, 3, "1.11"),
            (1_135, 1000, 3, "1.14"),
            (999_999, 1000, 3, "1e+03"),
            (4_294_000_000, 1_000_000, 3, "4.29e+03"),
            (4_194_303, 1, 6, "4.1943e+06"),
            (100, 1, 3, "100"),
            (0, 1, 6, "0"),
            (1, 10_000, 6, "0.0001"),
            (1, 3_000_000, 6, "3.33333e-07"),
        ] {
            let mut out = String::new();
            Number::from(n).over(scale).write_general(digits, &mut out).unwrap();
            assert_eq!(out, text);
        }
    }
}
