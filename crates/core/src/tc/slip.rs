//! Rates that are others than they look like: without a unit, in bytes, or below what lines have.
//!
//! `tc` reads `20` as 20 bits per second and `20mbps` as bytes. The grammar does so, too; who takes
//! a rate from a person asks here as well. An explicit `20bit` is what it says.

use alloc::format;
use alloc::string::String;

use super::number::Number;
use super::units;
use crate::rate::Rate;

/// The least that a line can have: what is below it is a slip, unless it is said in `bit`.
const LEAST: Rate = Rate::from_bits(64_000);

/// The other reading of `word`, if it is a rate without its unit, one of bytes, or one that rounds
/// to none. A sentence that `word` begins: "20" is "20 bits per second: did you mean ...".
pub fn of_rate(word: &str) -> Option<String> {
    let rate = units::rate(word).ok()?;
    let (number, unit) = parts(word);
    if unit.to_ascii_lowercase().ends_with("bps") {
        // A unit of bytes without its thousands is no line's either.
        let thousands = if unit.len() == 3 { "m" } else { &unit[..unit.len() - 3] };
        let bits = format!("{number}{thousands}bit");
        return Some(format!("in bytes per second, {}: did you mean `{bits}`?", shown(rate)));
    }
    // A plain zero is no limit.
    if rate.is_unlimited() && number.contains(|c: char| ('1'..='9').contains(&c)) {
        let bits =
            if unit.is_empty() { format!("{number} bits per second, ") } else { String::new() };
        return Some(format!("{bits}less than a byte per second: did you mean `{number}mbit`?"));
    }
    (unit.is_empty() && !rate.is_unlimited() && rate < LEAST).then(|| {
        format!("{number} bits per second: did you mean `{number}mbit`? If not, say `{number}bit`")
    })
}

/// The same of a whole line's rate, which is no less than lines have.
pub fn of_line(word: &str) -> Option<String> {
    of_rate(word).or_else(|| {
        let rate = units::rate(word).ok().filter(|rate| !rate.is_unlimited() && *rate < LEAST)?;
        let (number, unit) = parts(word);
        let bits = rate.bits();
        (!unit.eq_ignore_ascii_case("bit")).then(|| {
            format!("less than any line has: did you mean `{number}mbit`? If not, say `{bits}bit`")
        })
    })
}

/// The rate that `word` says, if it is what it looks like; else a sentence about it.
pub fn rate(word: &str) -> Result<Rate, String> {
    match of_rate(word) {
        Some(reading) => Err(format!("`{word}` is {reading}")),
        None => units::rate(word).map_err(|_| format!("`{word}` is no rate such as 20mbit")),
    }
}

/// The number and the unit of a word that is a rate.
fn parts(word: &str) -> (&str, &str) {
    let unit = Number::parse(word).map_or(word, |(_, unit)| unit);
    (&word[..word.len() - unit.len()], unit)
}

fn shown(rate: Rate) -> String {
    let bits = rate.bits();
    match bits {
        0..1_000 => format!("{bits} bit/s"),
        1_000..1_000_000 => format!("{} kbit/s", bits / 1_000),
        _ => {
            let mut mbit = String::new();
            // A String takes all.
            let _ = Number::from(bits).over(1_000_000).write_general(6, &mut mbit);
            mbit + " Mbit/s"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_reading_is_named() {
        for (word, reading) in [
            ("50", Some("50 bits per second: did you mean `50mbit`? If not, say `50bit`")),
            ("1e1", Some("1e1 bits per second: did you mean `1e1mbit`? If not, say `1e1bit`")),
            ("5", Some("5 bits per second, less than a byte per second: did you mean `5mbit`?")),
            ("5bit", Some("less than a byte per second: did you mean `5mbit`?")),
            ("10bps", Some("in bytes per second, 80 bit/s: did you mean `10mbit`?")),
            ("2kiBps", Some("in bytes per second, 16 kbit/s: did you mean `2kibit`?")),
            ("0.3mbps", Some("in bytes per second, 2.4 Mbit/s: did you mean `0.3mbit`?")),
            ("50bit", None),
            ("64000", None),
            ("9kbit", None),
            ("0", None),
            ("fast", None),
        ] {
            assert_eq!(of_rate(word).as_deref(), reading, "{word}");
        }
        let least = "less than any line has: did you mean `9mbit`? If not, say `9000bit`";
        assert_eq!(of_line("9kbit").as_deref(), Some(least));
        for fine in ["64kbit", "9000bit", "unlimited", "0kbit"] {
            assert_eq!(of_line(fine), None, "{fine}");
        }
    }

    #[test]
    fn a_rate_is_what_it_looks_like_or_what_is_wrong_is_said() {
        assert_eq!((rate("9kbit"), rate("0")), (Ok(Rate::from_bits(9_000)), Ok(Rate(0))));
        let below = "`5` is 5 bits per second, less than a byte per second: did you mean `5mbit`?";
        assert_eq!(rate("5"), Err(below.into()));
        assert_eq!(rate("fast"), Err("`fast` is no rate such as 20mbit".into()));
    }
}
