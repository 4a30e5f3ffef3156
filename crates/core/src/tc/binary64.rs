//! The few operations of IEEE 754 binary64 that `tc` does on numbers, in integers.
//!
//! `tc` reads a number with `strtod`, multiplies it by its unit as a `double` and cuts the result
//! off. The rounding shows: 1.005mbit becomes 125624 bytes a second, not 125625. To accept the same
//! words with the same meaning, without floats, a value is held here as mantissa and exponent and
//! rounded to 53 bits, ties to even, after each operation, as the hardware does.
//!
//! The witness is the hardware itself, in tests/tc_words.rs.
//!
//! Invariant: the mantissa is zero or has exactly 53 bits. Only non-negative finite values occur.

use core::fmt;

/// A non-negative number with 53 significant bits: `mantissa * 2^exponent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binary64 {
    mantissa: u64,
    exponent: i32,
}

/// Significant bits.
const BITS: u32 = 53;
/// Decimal places that are told apart: 10^22 is the largest power that leaves 54 bits of quotient
/// when a 128-bit numerator is divided by it.
const PLACES: i32 = 22;
/// Significant decimal digits that are told apart: as many as always fit in 64 bits. (A longer
/// number may come out one unit in the 53rd bit away from `strtod`'s.)
const DIGITS: u32 = 19;

impl Binary64 {
    /// `value * 2^exponent`, plus something smaller than the last bit if `inexact`.
    fn round(value: u128, exponent: i32, inexact: bool) -> Binary64 {
        let length = 128 - value.leading_zeros();
        if value == 0 {
            return Binary64 { mantissa: 0, exponent: 0 };
        }
        if length <= BITS {
            let up = BITS - length;
            return Binary64 { mantissa: (value as u64) << up, exponent: exponent - up as i32 };
        }
        let down = length - BITS;
        let kept = (value >> down) as u64;
        let rest = value & ((1 << down) - 1);
        let half = 1 << (down - 1);
        let up = rest > half || (rest == half && (inexact || kept & 1 == 1));
        match kept + u64::from(up) {
            carried if carried >> BITS != 0 => {
                Binary64 { mantissa: carried >> 1, exponent: exponent + down as i32 + 1 }
            }
            mantissa => Binary64 { mantissa, exponent: exponent + down as i32 },
        }
    }

    /// Reads the longest prefix of `text` that is a decimal number (`12`, `1.5`, `.5`, `+3`, `1e6`)
    /// and returns it with the rest. None if there is no number, or it is beyond all use (10^38).
    pub fn parse(text: &str) -> Option<(Binary64, &str)> {
        let bytes = text.as_bytes();
        let mut at = usize::from(bytes.first() == Some(&b'+'));
        let (mut digits, mut significant, mut power) = (0u64, 0u32, 0i32);
        // Zeros wait until a digit follows them, so that trailing ones cost no precision.
        let (mut zeros, mut any, mut point) = (0u32, false, false);
        while let Some(&byte) = bytes.get(at) {
            match byte {
                b'0'..=b'9' => {
                    any = true;
                    power = power.saturating_sub(i32::from(point));
                    zeros = zeros.saturating_add(1);
                    if significant == 0 {
                        zeros = 1;
                    }
                    // Digits beyond what 53 bits can tell apart count as zeros.
                    if byte != b'0' && significant.saturating_add(zeros) <= DIGITS {
                        digits = digits * 10u64.pow(zeros) + u64::from(byte - b'0');
                        significant += zeros;
                        zeros = 0;
                    }
                }
                b'.' if !point => point = true,
                _ => break,
            }
            at += 1;
        }
        if !any {
            return None;
        }
        if significant > 0 {
            power = power.saturating_add_unsigned(zeros);
        }
        if let Some((exponent, length)) = exponent(&bytes[at..]) {
            power = power.saturating_add(exponent);
            at += length;
        }
        Some((Binary64::from_decimal(digits, power)?, &text[at..]))
    }

    /// `digits * 10^power`, rounded.
    fn from_decimal(mut digits: u64, power: i32) -> Option<Binary64> {
        if digits == 0 {
            return Some(Binary64::round(0, 0, false));
        }
        if power >= 0 {
            let scale = 10u128.checked_pow(power.unsigned_abs())?;
            return Some(Binary64::round(u128::from(digits).checked_mul(scale)?, 0, false));
        }
        let mut places = power.saturating_neg();
        while places > PLACES && digits > 0 {
            digits /= 10;
            places -= 1;
        }
        if digits == 0 {
            return Some(Binary64::round(0, 0, false));
        }
        let up = digits.leading_zeros() + 64;
        let (numerator, scale) = (u128::from(digits) << up, 10u128.pow(places.unsigned_abs()));
        Some(Binary64::round(numerator / scale, -(up as i32), numerator % scale != 0))
    }

    /// The nearest value to `n`.
    pub fn from_integer(n: u64) -> Binary64 {
        Binary64::round(u128::from(n), 0, false)
    }

    /// `self * n`, rounded.
    pub fn times(self, n: u64) -> Binary64 {
        Binary64::round(u128::from(self.mantissa) * u128::from(n), self.exponent, false)
    }

    /// `self / n`, rounded; `n` must not be zero.
    pub fn over(self, n: u64) -> Binary64 {
        let (numerator, n) = (u128::from(self.mantissa) << 64, u128::from(n.max(1)));
        Binary64::round(numerator / n, self.exponent - 64, numerator % n != 0)
    }

    /// The whole part; None from 2^64 on.
    pub fn whole(self) -> Option<u64> {
        match self.exponent {
            _ if self.mantissa == 0 => Some(0),
            down if down <= -(BITS as i32) => Some(0),
            down if down <= 0 => Some(self.mantissa >> -down),
            up if up <= (64 - BITS) as i32 => Some(self.mantissa << up),
            _ => None,
        }
    }

    /// Writes as C's `%.{digits}g` does: `digits` significant digits, without trailing zeros, with
    /// an exponent where the whole part is longer than that. For values from 1 to below 2^64.
    pub fn write_general(self, digits: u32, out: &mut dyn fmt::Write) -> fmt::Result {
        let Some(whole) = self.whole().filter(|&whole| whole > 0) else {
            return out.write_str("0");
        };
        let mut tens = whole.ilog10();
        // The value in units of the last digit shown, ties to even.
        let (numerator, denominator) = if tens < digits {
            (u128::from(self.mantissa) * 10u128.pow(digits - 1 - tens), 1)
        } else {
            (u128::from(self.mantissa), 10u128.pow(tens + 1 - digits))
        };
        let (numerator, denominator) = match self.exponent {
            up if up >= 0 => (numerator << up, denominator),
            down => (numerator, denominator << down.unsigned_abs()),
        };
        let (quotient, twice) = (numerator / denominator, numerator % denominator * 2);
        let up = twice > denominator || (twice == denominator && quotient & 1 == 1);
        let mut shown = quotient + u128::from(up);
        if shown == 10u128.pow(digits) {
            (shown, tens) = (shown / 10, tens + 1);
        }
        let scientific = tens >= digits;
        let mut places = if scientific { digits - 1 } else { digits - 1 - tens };
        while places > 0 && shown % 10 == 0 {
            (shown, places) = (shown / 10, places - 1);
        }
        let scale = 10u128.pow(places);
        write!(out, "{}", shown / scale)?;
        if places > 0 {
            write!(out, ".{:0width$}", shown % scale, width = places as usize)?;
        }
        if scientific {
            write!(out, "e+{tens:02}")?;
        }
        Ok(())
    }
}

/// A decimal exponent (`e6`, `E-3`) at the start of `bytes`, and its length.
fn exponent(bytes: &[u8]) -> Option<(i32, usize)> {
    if !matches!(bytes.first(), Some(b'e' | b'E')) {
        return None;
    }
    let sign = usize::from(matches!(bytes.get(1), Some(b'+' | b'-')));
    let digits = bytes[1 + sign..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let end = 1 + sign + digits;
    let value = bytes[1 + sign..end]
        .iter()
        .fold(0i32, |sum, byte| sum.saturating_mul(10).saturating_add(i32::from(byte - b'0')));
    Some((if bytes[1] == b'-' { -value } else { value }, end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;

    #[test]
    fn numbers_in_all_shapes() {
        let whole = |text| Binary64::parse(text).map(|(v, rest)| (v.whole(), rest));
        assert_eq!(whole("1e3kbit"), Some((Some(1000), "kbit")));
        assert_eq!(whole("5.mbit"), Some((Some(5), "mbit")));
        assert_eq!(whole("+7"), Some((Some(7), "")));
        assert_eq!(whole("3e"), Some((Some(3), "e")));
        assert_eq!(whole("1.5.5"), Some((Some(1), ".5")));
        assert_eq!(whole("1.00000000000000000000000000"), Some((Some(1), "")));
        assert_eq!(whole("0000000000000000000000000000012"), Some((Some(12), "")));
        assert_eq!(whole("18446744073709551616"), Some((None, "")));
        assert_eq!(whole("1e-99999999999"), Some((Some(0), "")));
        for nothing in ["", ".", "-1", "mbit", "+", "inf", "1e39", "99e99999999999"] {
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
        ] {
            let mut out = String::new();
            Binary64::from_integer(n).over(scale).write_general(digits, &mut out).unwrap();
            assert_eq!(out, text);
        }
    }
}
