//! The scenario file: read from TOML with the place of every value, or built by a program.
//!
//! Both take the same way to a set-up: `build` gives the words their meaning, here is only their
//! structure. Unknown keys are errors, so that a misspelt one is not silently ignored. A built file
//! is written as TOML by `to_string`, and reads back as the same set-up.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use simnel_core::tc::units::{write_rate, write_time};
use simnel_core::tc::Digits;
use simnel_core::{Rate, Span};
use simnel_sim::Direction;
use simnel_tcp::{CongestionControl, EcnMode};
use toml::Spanned;

use crate::ScenarioError;

/// A word and its place.
pub(super) type Word = Spanned<String>;

/// One value, or one for each direction. The place is that of the whole, since untagged values lose
/// the places inside them.
pub(super) type Directed = Spanned<OneOrEach>;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a string, or a table with `up` and `down`")]
pub(super) enum OneOrEach {
    Both(String),
    Each(UpDown),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "BTreeMap<Key, String>")]
pub(super) struct UpDown {
    pub up: Option<String>,
    pub down: Option<String>,
}

/// A key of [`UpDown`]. Of a struct, serde would take a list for the values in their order.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "lowercase")]
enum Key {
    Up,
    Down,
}

impl TryFrom<BTreeMap<Key, String>> for UpDown {
    type Error = &'static str;

    fn try_from(mut table: BTreeMap<Key, String>) -> Result<UpDown, &'static str> {
        let [up, down] = [Key::Up, Key::Down].map(|key| table.remove(&key));
        match (&up, &down) {
            (None, None) => Err("neither `up` nor `down`"),
            _ => Ok(UpDown { up, down }),
        }
    }
}

/// The words for up and for down.
pub(super) fn each(directed: &Directed) -> [Option<Word>; 2] {
    let words = match directed.get_ref() {
        OneOrEach::Both(word) => [Some(word), Some(word)],
        OneOrEach::Each(each) => [each.up.as_ref(), each.down.as_ref()],
    };
    words.map(|word| word.map(|word| Spanned::new(directed.span(), word.clone())))
}

/// One word or a list of them.
pub(super) type Words = Spanned<OneOrMany>;

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a string, or a list of strings")]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// The words of a list.
pub(super) fn list(words: &Words) -> Vec<Word> {
    let place = |word: &String| Spanned::new(words.span(), word.clone());
    match words.get_ref() {
        OneOrMany::One(word) => vec![place(word)],
        OneOrMany::Many(words) => words.iter().map(place).collect(),
    }
}

/// A number or words.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected a number, or a string with a unit")]
pub(super) enum Quantity {
    Integer(u64),
    Float(f64),
    Word(String),
}

/// A number, or words with a unit, and its place.
pub(super) type Amount = Spanned<Quantity>;

/// `true`, `false`, or a mode.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged, expecting = "expected true, false, or a mode")]
pub(super) enum EcnWord {
    Switch(bool),
    Mode(String),
}

/// A value in the file's words.
trait Say {
    fn say(&self) -> String;
}

impl Say for &str {
    fn say(&self) -> String {
        self.to_string()
    }
}

impl Say for Rate {
    fn say(&self) -> String {
        let mut words = String::new();
        // A string takes everything.
        let _ = write_rate(*self, Digits::Exact, &mut words);
        words.to_lowercase()
    }
}

impl Say for Span {
    fn say(&self) -> String {
        let mut words = String::new();
        let _ = write_time(*self, Digits::Exact, &mut words);
        words
    }
}

impl Say for Direction {
    fn say(&self) -> String {
        self.name().into()
    }
}

impl Say for CongestionControl {
    fn say(&self) -> String {
        self.name().into()
    }
}

/// A value without a place, as programs give them.
fn plain<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn switch(on: bool) -> bool {
    on
}

fn text(text: impl Say) -> String {
    text.say()
}

fn word(value: impl Say) -> Word {
    plain(value.say())
}

fn both(value: impl Say) -> Directed {
    plain(OneOrEach::Both(value.say()))
}

fn words(values: &[impl Say]) -> Words {
    plain(OneOrMany::Many(values.iter().map(Say::say).collect()))
}

fn bytes(bytes: u64) -> Amount {
    plain(Quantity::Integer(bytes))
}

fn rate(rate: Rate) -> Amount {
    plain(Quantity::Word(rate.say()))
}

fn mode(mode: EcnMode) -> Spanned<EcnWord> {
    plain(match mode {
        EcnMode::Off => EcnWord::Switch(false),
        EcnMode::On => EcnWord::Switch(true),
        EcnMode::Passive => EcnWord::Mode("passive".into()),
        EcnMode::Accurate => EcnWord::Mode("accurate".into()),
    })
}

/// A table of the file: keys that it always has, those that it `may` have, and its `own`, which
/// only some of its kinds have. `key: Kept = make(Given);` is a key that is kept as `Kept`, and a
/// method of its name, which sets it to what `make` makes of a `Given`.
macro_rules! table {
    (
        $(#[$doc:meta])* $table:ident { $($(#[$about:meta])* $must:ident: $needed:ty,)* }
        may { $($key:ident: $kept:ty = $make:ident($given:ty);)* }
        $(own { $($own:ident: $own_kept:ty = $own_make:ident($own_given:ty);)* })?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Deserialize, Serialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $table {
            $(pub(super) $key: Option<$kept>,)*
            $($(pub(super) $own: Option<$own_kept>,)*)?
            $($(#[$about])* pub(super) $must: $needed,)*
        }

        impl $table {
            fn with($($must: $needed),*) -> $table {
                $table { $($must,)* $($key: None,)* $($($own: None,)*)? }
            }
            $(
                #[doc = concat!("With `", stringify!($key), "`.")]
                pub fn $key(self, value: $given) -> $table {
                    $table { $key: Some($make(value)), ..self }
                }
            )*
            $($(
                #[doc = concat!("With `", stringify!($own), "`, which some kinds have.")]
                pub fn $own(self, value: $own_given) -> $table {
                    $table { $own: Some($own_make(value)), ..self }
                }
            )*

            /// The keys of single kinds that are there.
            pub(super) fn own(&self) -> Vec<(&'static str, Range<usize>)> {
                let all = [$((stringify!($own), self.$own.as_ref().map(Spanned::span))),*];
                all.into_iter().filter_map(|(key, span)| Some((key, span?))).collect()
            })?
        }
    };
}

table! {
    /// A scenario as a file has it. `scenarios/README.md` describes every key.
    File {
        duration: Word,
        line: Spanned<Line>,
        #[serde(default, rename = "host", skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<Spanned<Host>>,
        #[serde(default, rename = "traffic", skip_serializing_if = "Vec::is_empty")]
        traffic: Vec<Spanned<Traffic>>,
    }
    may {
        name: String = text(&str); question: String = text(&str); warmup: Word = word(Span);
        interval: Word = word(Span); windows: bool = switch(bool); qdisc: Directed = both(&str);
    }
}

table! {
    /// The line.
    Line {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        change: Vec<Change>,
    }
    may {
        up: Word = word(Rate); down: Word = word(Rate); rtt: Word = word(Span);
        framing: Word = word(&str); shaper: Word = word(&str); burst: Amount = bytes(u64);
        loss: Directed = both(&str); jitter: Directed = both(Span); trace: Directed = both(&str);
        reorder: Directed = both(&str);
    }
}

table! {
    /// A change of the line's rates.
    Change { at: Word, }
    may {
        up: Word = word(Rate); down: Word = word(Rate);
    }
}

table! {
    /// A host, or several of one name.
    Host { name: Word, side: Word, }
    may {
        count: Spanned<u32> = plain(u32); rtt: Word = word(Span); rate: Directed = both(Rate);
    }
}

table! {
    /// Flows of one kind.
    Traffic { kind: Word, }
    may {
        name: String = text(&str); direction: Word = word(Direction);
        count: Spanned<u32> = plain(u32); home: Words = words(&[&str]);
        internet: Words = words(&[&str]); dscp: Words = words(&[&str]); start: Word = word(Span);
        stagger: Word = word(Span); stop: Word = word(Span);
    }
    own {
        cc: Word = word(CongestionControl); ecn: Spanned<EcnWord> = mode(EcnMode);
        slow_start: Word = word(&str); pacing: Spanned<bool> = plain(bool);
        nagle: Spanned<bool> = plain(bool); delayed_ack: Spanned<bool> = plain(bool);
        tso: Spanned<u8> = plain(u8); gro: Spanned<u8> = plain(u8); mtu: Spanned<u16> = plain(u16);
        window: Amount = bytes(u64); initial_window: Spanned<u32> = plain(u32);
        size: Amount = bytes(u64); rate: Amount = rate(Rate); ports: Spanned<u32> = plain(u32);
        interval: Word = word(Span); pause: Words = words(&[Span]); protocol: Word = word(&str);
        codec: Word = word(&str); pages: Spanned<Vec<u64>> = plain(Vec<u64>);
        objects: Spanned<Vec<u64>> = plain(Vec<u64>); spread: Spanned<f64> = plain(f64);
        think: Word = word(Span); reading: Word = word(Span); chunk: Word = word(Span);
        ladder: Words = words(&[Rate]); buffer: Word = word(Span); prefill: Word = word(Span);
        safety: Spanned<f64> = plain(f64);
    }
}

impl File {
    /// So long on `line`, with neither hosts nor traffic yet.
    pub fn new(duration: Span, line: Line) -> File {
        File::with(word(duration), plain(line), Vec::new(), Vec::new())
    }

    /// One discipline for each direction.
    pub fn qdiscs(self, up: &str, down: &str) -> File {
        let each = UpDown { up: Some(up.into()), down: Some(down.into()) };
        File { qdisc: Some(plain(OneOrEach::Each(each))), ..self }
    }

    /// Adds a host.
    pub fn host(mut self, host: Host) -> File {
        self.hosts.push(plain(host));
        self
    }

    /// Adds traffic.
    pub fn traffic(mut self, traffic: Traffic) -> File {
        self.traffic.push(plain(traffic));
        self
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Result<File, ScenarioError> {
        toml::from_str(text).map_err(|error| {
            let said = error.message().trim();
            let is_value = said.starts_with("invalid ");
            let key = error.span().and_then(|span| key(text, span.start)).filter(|_| is_value);
            let of_key = |what: &str| match key {
                Some(key) => format!("`{key}`: {what}"),
                None => what.to_string(),
            };
            let (what, expected) = match said.rsplit_once(", expected ") {
                Some((_, "a string")) if key.is_some() => {
                    let expected =
                        "words in quotes, a quantity with its unit: \"20mbit\", \"45ms\"";
                    (of_key(said), expected)
                }
                // What Rust calls its numbers tells nobody anything. All of these begin at one, but
                // the one of two bytes.
                Some((what, "u8")) => (of_key(what), "a whole number, 1 or more, up to 255"),
                Some((what, "u16")) => (of_key(what), "a whole number of bytes, 100 to 1500"),
                Some((what, "u32" | "u64")) => (of_key(what), "a whole number, 1 or more"),
                _ => (said.to_string(), "the keys that scenarios/README.md describes"),
            };
            ScenarioError { what, expected: expected.into(), span: error.span() }
        })
    }
}

/// The key of the value at `place`, if it stands on the same line.
fn key(text: &str, place: usize) -> Option<&str> {
    let before = text.get(..place)?.rsplit('\n').next()?;
    let (key, _) = before.split_once('=')?;
    Some(key.trim())
}

/// As TOML.
impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&toml::to_string(self).map_err(|_| fmt::Error)?)
    }
}

impl Line {
    /// With these rates and this base round-trip time.
    pub fn new(up: Rate, down: Rate, rtt: Span) -> Line {
        Line::with(Vec::new()).up(up).down(down).rtt(rtt)
    }

    /// As a user wrote them: rates (`20mbit`, `unlimited`) and a time. They are checked with the
    /// rest.
    pub fn of_words(up: &str, down: &str, rtt: &str) -> Line {
        let [up, down, rtt] = [up, down, rtt].map(|one| Some(word(one)));
        Line { up, down, rtt, ..Line::with(Vec::new()) }
    }

    /// Adds a change.
    pub fn change(mut self, change: Change) -> Line {
        self.change.push(change);
        self
    }
}

impl Change {
    /// At this time.
    pub fn new(at: Span) -> Change {
        Change::with(word(at))
    }
}

impl Host {
    /// At home.
    pub fn home(name: &str) -> Host {
        Host::with(word(name), word("home"))
    }

    /// On the Internet.
    pub fn internet(name: &str) -> Host {
        Host::with(word(name), word("internet"))
    }
}

/// A constructor for each kind.
macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident)*) => {
        impl Traffic {
            $($(#[$doc])* pub fn $kind() -> Traffic { Traffic::with(word(stringify!($kind))) })*
        }
    };
}

kinds! {
    /// TCP transfers.
    bulk
    /// Datagrams at a constant rate.
    cbr
    /// Calls.
    voip
    /// Probes.
    ping
    /// Requests, each when the one before was answered.
    rr
    /// HTTP connections that open at random.
    web
    /// Video whose rate follows the throughput.
    dash
    /// Small messages over TCP.
    iot
    /// A swarm.
    bittorrent
    /// Transfers with gaps between them.
    bursts
}

impl Traffic {
    /// In both directions.
    pub fn both_ways(self) -> Traffic {
        Traffic { direction: Some(word("both")), ..self }
    }

    /// So many connections or messages a second.
    pub fn per_second(self, number: f64) -> Traffic {
        Traffic { rate: Some(plain(Quantity::Float(number))), ..self }
    }
}
