//! What a discipline's settings must be able to do: be read, be written, and be built.

use alloc::boxed::Box;
use core::fmt::{self, Write};

use super::{Config, ConfigError, Device, Managed, OwnStats};
use crate::tc::{Digits, Json, Keywords, ParseError, Words};

/// Names, and what each stands for.
pub type Names = &'static [(&'static str, &'static str)];

/// Settings that words describe. Every discipline's `Params` are.
///
/// With its line in the list of `qdisc/mod.rs` this is all that a discipline needs to be known
/// wherever disciplines are: on the command line, in configuration files, scenarios, tables, JSON
/// and property tests.
pub trait Described: Sized {
    /// The discipline's name, the first word, and what it is, in one line. Most have one name.
    const NAMES: Names;
    /// Its keywords.
    const KEYWORDS: Keywords;
    /// What takes part in every figure of the lab in which disciplines compete, beside those of
    /// the papers: the series' name, and words. `{rate}` in them stands for the line's rate; what
    /// does not shape itself gets each experiment's shaper.
    const CONTENDERS: Names = &[];

    /// What the discipline counts beyond what all do; `()` for nothing.
    type Stats: OwnStats;

    /// Reads the words behind the name.
    fn parse(words: &mut Words<'_>) -> Result<Self, ParseError>;

    /// Writes the settings as words, without the name: with [`Digits::AsTc`] as they are shown,
    /// with [`Digits::Exact`] so that the same settings are read back.
    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result;

    /// Writes the settings as members of a JSON object.
    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result;

    /// Writes the settings as `tc` shows them where it shows a statistic among them.
    fn show_words(&self, stats: &Self::Stats, out: &mut dyn Write) -> fmt::Result {
        let _ = stats;
        self.write_words(Digits::AsTc, out)
    }

    /// The same as members of a JSON object.
    fn show_json(&self, stats: &Self::Stats, json: &mut Json<'_>) -> fmt::Result {
        let _ = stats;
        self.write_json(json)
    }

    /// The name; one of [`Described::NAMES`].
    fn name(&self) -> &'static str {
        Self::NAMES[0].0
    }

    /// Fills in what `device` decides, so that it is shown: limits and quanta.
    fn resolve(&mut self, device: &Device) {
        let _ = device;
    }

    /// The discipline, empty. All its memory is reserved here.
    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError>;
}

/// Settings of a discipline that stands in the list: the list itself makes them this.
pub trait Listed: Described + Into<Config> {
    /// The settings within `config`, if they are of this discipline.
    fn of(config: &Config) -> Option<&Self>;
}
