//! Names of code points, as iproute2's users write them.
//!
//! They are the registry's: RFC 2474 CS, RFC 2597 AF, RFC 3246 EF, RFC 5865 VOICE-ADMIT as `VA`,
//! RFC 8622 `LE`. `NQB` is that of the Non-Queue-Building PHB.

use crate::tc::after_0x;

/// Names with their code points. The first name of a number is the one that is printed.
const NAMES: [(&str, u8); 27] = [
    ("CS0", 0),
    ("LE", 1),
    ("CS1", 8),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("CS2", 16),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("CS3", 24),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("CS4", 32),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("CS5", 40),
    ("VA", 44),
    ("NQB", 45),
    ("EF", 46),
    ("CS6", 48),
    ("CS7", 56),
    ("DF", 0),
    ("BE", 0),
    ("default", 0),
];

/// The name of code point `dscp`, if it has one.
pub fn name(dscp: u8) -> Option<&'static str> {
    NAMES.iter().find(|(_, number)| *number == dscp).map(|(name, _)| *name)
}

/// The code point that `word` means: a name in either case, or a number (`46`, `0x2e`) below 64.
pub fn parse(word: &str) -> Option<u8> {
    if let Some((_, number)) = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        return Some(*number);
    }
    let number = match after_0x(word) {
        Some(digits) => u8::from_str_radix(digits, 16),
        None => word.parse(),
    };
    number.ok().filter(|number| *number < 64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers() {
        for (word, number) in NAMES {
            assert_eq!(parse(word), Some(number));
        }
        for class in 0..8 {
            assert_eq!(name(class * 8).unwrap(), std::format!("CS{class}"));
        }
        assert_eq!((name(34), name(46), name(3)), (Some("AF41"), Some("EF"), None));
        assert_eq!((parse("ef"), parse("0x2e"), parse("46")), (Some(46), Some(46), Some(46)));
        assert_eq!((parse("64"), parse("AF44"), parse(""), parse("0x")), (None, None, None, None));
    }
}
