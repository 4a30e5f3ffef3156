//! `tc`'s language: words to settings, settings and statistics to text and JSON.
//!
//! [`parse`] reads what a user writes after the device; [`show()`] and [`show_json`] write what
//! `tc -s qdisc show` and its JSON look like, byte for byte. A discipline's words are what
//! [`Described`] asks of its settings: a table of keywords, a parser, and writers. Those of `tc`'s
//! own disciplines are here, one file each; those of ours stand in the discipline's file. To add
//! one: docs/LAB.md.

pub(crate) mod binary64;
pub(crate) mod bucket;
mod described;
mod error;
mod grammar;
mod json;
pub(crate) mod link;
pub(crate) mod savings;
mod show;
pub mod stats;
pub mod units;

pub use crate::qdisc::htb::write_class;
pub use described::{Described, Listed, Names};
pub use error::{ParseError, Problem};
pub use grammar::{
    disciplines, keywords, or_default, parse, parse_with_default, parse_words, Discipline, Keyword,
    Keywords, Words,
};
pub use json::Json;
pub use show::{name, show, show_json, write_options, Parent, QdiscView, Statistics};
pub use units::Digits;

pub use crate::qdisc::Config;
