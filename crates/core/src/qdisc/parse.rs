//! Words to settings: which discipline they name, and below which other one.
//!
//! A configuration is a discipline's name and its words in any order; of words that contradict each
//! other the last one counts, as in `tc`. Each discipline brings its own parser and its own table
//! of keywords ([`Described`](super::Described)). No input panics.

use alloc::format;

use super::described::{Listed, Names};
use super::netlink::{Read, ReadStatistics, Request, WriteClass, OTHER};
use super::{Config, DISCIPLINES};
use crate::netlink::{Error, Figure};
use crate::tc::{slip, Keyword, Keywords, ParseError, Problem, Words};

/// Most disciplines below each other: nobody needs more than a shaper in a class.
const MAX_DEPTH: u32 = 5;

/// A discipline that words can describe, under one of its names.
#[derive(Clone, Copy)]
pub struct Discipline {
    /// Its name, the first word.
    pub name: &'static str,
    /// A line about it.
    pub about: &'static str,
    /// Its keywords.
    pub keywords: Keywords,
    /// The keyword of the rate that it shapes to, if it can shape.
    pub rate: Option<&'static str>,
    /// Its part in the lab's figures: see
    /// [`Described::CONTENDERS`](super::Described::CONTENDERS).
    pub contenders: Names,
    parse: fn(&mut Words<'_>) -> Result<Config, ParseError>,
    /// The reader of its netlink attributes, if Linux has any under this name.
    pub(super) netlink: Option<Read>,
    /// The reader of its statistics, if Linux has any.
    pub(super) statistics: Option<ReadStatistics>,
    /// The writer of its classes' statistics, if Linux has any.
    pub(super) class: Option<WriteClass>,
}

impl Discipline {
    /// The entry of the `nth` of the names of `T`'s discipline.
    pub(crate) const fn of<T: Listed>(nth: usize) -> Discipline {
        let (name, about) = T::NAMES[nth];
        let contenders: Names = if nth == 0 { T::CONTENDERS } else { &[] };
        Discipline {
            name,
            about,
            keywords: T::KEYWORDS,
            rate: T::RATE,
            contenders,
            parse: parse_as::<T>,
            netlink: if nth == 0 && T::NETLINK.is_some() { Some(read_as::<T>) } else { None },
            statistics: if T::NETLINK.is_some() { Some(read_statistics_as::<T>) } else { None },
            class: match T::NETLINK {
                Some(abi) => abi.write_class,
                None => None,
            },
        }
    }

    /// Reads this discipline's words.
    fn read(&self, words: &mut Words<'_>) -> Result<Config, ParseError> {
        words.within(self.name, self.keywords, self.parse)
    }
}

fn parse_as<T: Listed>(words: &mut Words<'_>) -> Result<Config, ParseError> {
    T::parse(words).map(T::into)
}

fn read_as<T: Listed>(request: &Request<'_>, old: Option<&Config>) -> Result<Config, Error> {
    let abi = T::NETLINK.ok_or(OTHER)?;
    let old = old.map(|config| T::of(config).ok_or(OTHER)).transpose()?;
    let mut params = (abi.read)(request, old)?;
    params.resolve(request.device);
    Ok(params.into())
}

fn read_statistics_as<T: Listed>(bytes: &[u8], each: &mut dyn FnMut(Figure)) {
    if let Some(abi) = T::NETLINK {
        abi.statistics.read(bytes, each);
    }
}

/// All disciplines with their keywords, for help texts.
pub fn disciplines() -> &'static [Discipline] {
    &DISCIPLINES
}

/// The discipline of this name, if there is one.
pub fn discipline(name: &str) -> Option<&'static Discipline> {
    DISCIPLINES.iter().find(|discipline| discipline.name == name)
}

/// The keywords of the discipline `name`, in reading order; none if there is no such discipline.
pub fn keywords(name: &str) -> impl Iterator<Item = &'static Keyword> {
    discipline(name).into_iter().flat_map(|known| known.keywords.iter().copied().flatten())
}

/// Reads a configuration from one text: `cake bandwidth 20mbit nat`.
pub fn parse(text: &str) -> Result<Config, ParseError> {
    parse_or(Words::split(text), None)
}

/// As [`parse`], of words that a person said: a rate that is another one than it looks like is an
/// error.
pub fn parse_strictly(text: &str) -> Result<Config, ParseError> {
    let config = parse(text)?;
    check_rates(text)?;
    Ok(config)
}

/// An error for a rate in `text` that is another one than it looks like ([`slip`]). Those of
/// classes may be small.
pub fn check_rates(text: &str) -> Result<(), ParseError> {
    let takes_rate = |word: &str| {
        let mut known = DISCIPLINES.iter().flat_map(|known| keywords(known.name));
        known.find(|keyword| keyword.word == word && keyword.argument == "RATE")
    };
    let mut words = Words::split(text);
    while let Some(word) = words.next() {
        let Some(keyword) = takes_rate(word) else { continue };
        if words.peek().is_some_and(|rate| slip::of_rate(rate).is_some()) {
            words.next();
            return Err(words.error_here(Problem::Slip { keyword: keyword.word }));
        }
    }
    Ok(())
}

/// As [`parse`], of `before` and then `words`, which may say again what stands there: the later
/// value counts, also where `tc` allows only one.
pub fn amend(before: &str, words: &str) -> Result<Config, ParseError> {
    let text = format!("{before} {words}");
    let first = before.split_whitespace().count();
    parse_or(Words::split(&text).amended_from(first), None)
}

/// Reads a configuration from separate words, as a shell passes them.
pub fn parse_words(words: &[&str]) -> Result<Config, ParseError> {
    parse_or(Words::listed(words), None)
}

/// As [`parse_words`]; if the first word names no discipline, all words belong to `default`.
pub fn parse_with_default(words: &[&str], default: &str) -> Result<Config, ParseError> {
    parse_or(Words::listed(words), Some(default))
}

fn parse_or(mut words: Words<'_>, default: Option<&str>) -> Result<Config, ParseError> {
    let named = words.peek().and_then(discipline);
    if named.is_some() {
        words.next();
    }
    match named.or_else(|| discipline(default?)) {
        Some(known) => known.read(&mut words),
        None => match FOREIGN.iter().find(|(name, _)| words.peek() == Some(name)) {
            Some((_, reason)) => {
                words.next();
                Err(words.error_here(Problem::Foreign { reason }))
            }
            None => Err(words.unknown_discipline(DISCIPLINES.iter().map(|known| known.name))),
        },
    }
}

/// Disciplines of Linux that are not here, and what to use instead.
const FOREIGN: &[(&str, &str)] = &[
    ("cake_mq", "it needs the kernel: `tc` and our module have it as `simnel mq cake`"),
    ("mq", "it needs the kernel: for `tc`, our module has `simnel mq cake`"),
    ("multiq", "it hands packets to hardware queues, which are beyond our reach"),
    ("netem", "of what netem does, `delay` has the delay, and `line` a rate and a queue"),
    ("prio", "bands without rates are not here; `cake diffserv4` has priorities with shares"),
    ("pfifo_fast", "bands without rates are not here; `pfifo`, or `cake diffserv4`"),
    ("fq", "it paces the router's own sockets; forwarded packets are what `fq_codel` is for"),
    ("hfsc", "service curves are not here; `htb` divides a rate among classes"),
    ("qfq", "it is not here; `drr` shares by weight among classes"),
    ("ingress", "it holds no packets; `download RATE` shapes what comes in"),
    ("clsact", "it holds no packets; `download RATE` shapes what comes in"),
    ("noqueue", "without a queue there is nothing to manage"),
];

/// Reads the discipline that `word`, the last one read, names, with all words up to the end of the
/// present one. None if it names none.
pub(super) fn parse_child(words: &mut Words<'_>, word: &str) -> Result<Option<Config>, ParseError> {
    let known = discipline(word).filter(|_| words.depth() < MAX_DEPTH);
    known.map(|known| known.read(words)).transpose()
}
