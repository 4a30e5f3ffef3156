//! The word `savings` of every discipline that can run DRR-LDS: ours, printed after `tc`'s words.

use core::fmt::{self, Write};

use super::error::ParseError;
use super::grammar::{Keyword, Words};
use super::json::Json;
use super::units::{self, shown_size, Digits, Value};

/// The word.
pub(crate) const KEYWORD: Keyword =
    Keyword::new("savings", "SIZE", "DRR-LDS: what an empty queue may save up (ours)");

/// Reads the size after `savings`.
pub(crate) fn take(words: &mut Words<'_>) -> Result<u32, ParseError> {
    const SIZE: Value<u32> = Value::new("a SIZE such as 15kb", units::signed_size)
        .within("a SIZE of at most 2147483647 bytes");
    words.take(&SIZE)
}

/// Writes them as words, with a space after them.
pub(crate) fn write(savings: Option<u32>, digits: Digits, out: &mut dyn Write) -> fmt::Result {
    let Some(limit) = savings else { return Ok(()) };
    write!(out, "savings {} ", shown_size(limit.into(), digits))
}

/// Writes them in JSON.
pub(crate) fn write_json(savings: Option<u32>, json: &mut Json<'_>) -> fmt::Result {
    match savings {
        Some(limit) => json.key("savings")?.number(limit.into()),
        None => Ok(()),
    }
}
