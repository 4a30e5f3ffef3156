//! `tc`'s language: words, units, errors and JSON. It knows no discipline; each reads and writes
//! its own settings and statistics with what is here.

pub(crate) mod bucket;
mod error;
mod grammar;
mod json;
pub(crate) mod link;
mod number;
pub(crate) mod savings;
pub mod slip;
pub mod units;

pub use error::{nearest, ParseError, Problem};
pub use grammar::{or_default, Keyword, Keywords, Words};
pub use json::Json;
pub(crate) use number::after_0x;
pub use units::{Digits, Value};
