//! `tc`'s language: words to settings, settings and statistics to text and JSON.
//!
//! [`parse`] reads what a user writes after the device; [`show()`] and [`show_json`] write what
//! `tc -s qdisc show` and its JSON look like, byte for byte. A discipline's words are what
//! [`Described`] asks of its settings: a table of keywords, a parser, and writers. Those of `tc`'s
//! own disciplines are here, one file each; those of ours stand in the discipline's file. To add
//! one: docs/LAB.md.

mod binary64;
mod bucket;
mod cake;
mod codel;
mod delay;
mod described;
mod drr;
mod dualpi2;
mod error;
mod fifo;
mod fq_codel;
mod fq_pie;
mod grammar;
mod htb;
mod json;
mod line;
mod link;
mod pie;
mod red;
mod savings;
mod sfb;
mod sfq;
mod show;
pub mod stats;
mod tbf;
pub mod units;

pub use described::{Described, Listed, Names};
pub use error::{ParseError, Problem};
pub use grammar::{
    disciplines, keywords, parse, parse_with_default, parse_words, Discipline, Keyword, Keywords,
    Words,
};
pub use htb::write_class;
pub use json::Json;
pub use show::{name, show, show_json, write_options, Parent, QdiscView, Statistics};
pub use units::Digits;

pub use crate::qdisc::Config;
