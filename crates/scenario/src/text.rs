//! The scenario file as it is written: TOML with the place of every value.
//!
//! Only structure is checked here; `build` gives the words their meaning. Unknown keys are errors,
//! so that a misspelt one is not silently ignored.

use serde::Deserialize;
use toml::Spanned;

/// A word and its place.
pub(super) type Word = Spanned<String>;

/// One value, or one for each direction. The place is that of the whole, since untagged values lose
/// the places inside them.
pub(super) type Directed = Spanned<OneOrEach>;

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a string, or a table with `up` and `down`")]
pub(super) enum OneOrEach {
    Both(String),
    Each(UpDown),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UpDown {
    pub up: Option<String>,
    pub down: Option<String>,
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

#[derive(Clone, Debug, Deserialize)]
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
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number, or a string with a unit")]
pub(super) enum Quantity {
    Integer(u64),
    Float(f64),
    Word(String),
}

/// A number, or words with a unit, and its place.
pub(super) type Amount = Spanned<Quantity>;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub name: Option<String>,
    pub question: Option<String>,
    pub duration: Word,
    pub warmup: Option<Word>,
    pub interval: Option<Word>,
    #[serde(default)]
    pub windows: bool,
    pub line: Spanned<Line>,
    pub qdisc: Option<Directed>,
    #[serde(default, rename = "host")]
    pub hosts: Vec<Spanned<Host>>,
    #[serde(default, rename = "traffic")]
    pub traffic: Vec<Spanned<Traffic>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Line {
    pub up: Option<Word>,
    pub down: Option<Word>,
    pub rtt: Option<Word>,
    pub framing: Option<Word>,
    pub shaper: Option<Word>,
    pub burst: Option<Amount>,
    pub loss: Option<Directed>,
    pub jitter: Option<Directed>,
    pub trace: Option<Directed>,
    #[serde(default)]
    pub change: Vec<Change>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Change {
    pub at: Word,
    pub up: Option<Word>,
    pub down: Option<Word>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Host {
    pub name: Word,
    pub side: Word,
    pub count: Option<Spanned<u32>>,
    pub rtt: Option<Word>,
    pub rate: Option<Directed>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Traffic {
    pub kind: Word,
    pub name: Option<String>,
    pub direction: Option<Word>,
    pub count: Option<Spanned<u32>>,
    pub home: Option<Words>,
    pub internet: Option<Words>,
    pub dscp: Option<Words>,
    pub start: Option<Word>,
    pub stagger: Option<Word>,
    pub stop: Option<Word>,
    // TCP.
    pub cc: Option<Word>,
    pub ecn: Option<Spanned<EcnWord>>,
    pub slow_start: Option<Word>,
    pub pacing: Option<bool>,
    pub nagle: Option<bool>,
    pub delayed_ack: Option<bool>,
    pub tso: Option<Spanned<u8>>,
    pub gro: Option<Spanned<u8>>,
    pub mtu: Option<Spanned<u16>>,
    pub window: Option<Amount>,
    pub initial_window: Option<Spanned<u32>>,
    // Of single kinds.
    pub size: Option<Amount>,
    pub rate: Option<Amount>,
    pub ports: Option<Spanned<u32>>,
    pub interval: Option<Word>,
    pub pause: Option<Words>,
    pub protocol: Option<Word>,
    pub codec: Option<Word>,
    pub pages: Option<Spanned<Vec<u64>>>,
    pub objects: Option<Spanned<Vec<u64>>>,
    pub spread: Option<Spanned<f64>>,
    pub think: Option<Word>,
    pub reading: Option<Word>,
    pub chunk: Option<Word>,
    pub ladder: Option<Words>,
    pub buffer: Option<Word>,
    pub prefill: Option<Word>,
    pub safety: Option<Spanned<f64>>,
}

/// `true`, `false`, or a mode.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected true, false, or a mode")]
pub(super) enum EcnWord {
    Switch(bool),
    Mode(String),
}

impl Traffic {
    /// The keys that only some kinds have, and which of them are there.
    pub fn special(&self) -> Vec<(&'static str, std::ops::Range<usize>)> {
        let word = |word: &Option<Word>| word.as_ref().map(Spanned::span);
        let amount = |amount: &Option<Amount>| amount.as_ref().map(Spanned::span);
        [
            ("size", amount(&self.size)),
            ("rate", amount(&self.rate)),
            ("ports", self.ports.as_ref().map(Spanned::span)),
            ("interval", word(&self.interval)),
            ("pause", self.pause.as_ref().map(Spanned::span)),
            ("protocol", word(&self.protocol)),
            ("codec", word(&self.codec)),
            ("pages", self.pages.as_ref().map(Spanned::span)),
            ("objects", self.objects.as_ref().map(Spanned::span)),
            ("spread", self.spread.as_ref().map(Spanned::span)),
            ("think", word(&self.think)),
            ("reading", word(&self.reading)),
            ("chunk", word(&self.chunk)),
            ("ladder", self.ladder.as_ref().map(Spanned::span)),
            ("buffer", word(&self.buffer)),
            ("prefill", word(&self.prefill)),
            ("safety", self.safety.as_ref().map(Spanned::span)),
        ]
        .into_iter()
        .filter_map(|(key, span)| Some((key, span?)))
        .collect()
    }
}
