//! Words to settings: the dispatcher, and the cursor over words that all parsers share.
//!
//! A configuration is a discipline's name and its words in any order; of words that contradict each
//! other the last one counts, as in `tc`. Each discipline brings its own parser and its own table
//! of keywords ([`super::Described`]) and stands in the list of `qdisc/mod.rs`. No input panics.

use alloc::string::String;
use alloc::vec::Vec;

use super::described::{Listed, Names};
use super::error::{nearest, ParseError, Problem};
use super::units::ValueError;
use super::Config;
use crate::qdisc::DISCIPLINES;

/// A word of a discipline's language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// The word itself.
    pub word: &'static str,
    /// What follows it (`RATE`, `TIME [JITTER]`), or nothing.
    pub argument: &'static str,
    /// What it does, in one line.
    pub meaning: &'static str,
}

/// Keywords, in groups, in the order in which a reader wants them.
pub type Keywords = &'static [&'static [Keyword]];

impl Keyword {
    /// A keyword's entry.
    pub const fn new(word: &'static str, argument: &'static str, meaning: &'static str) -> Keyword {
        Keyword { word, argument, meaning }
    }
}

/// A discipline that words can describe, under one of its names.
#[derive(Clone, Copy)]
pub struct Discipline {
    /// Its name, the first word.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Its keywords.
    pub keywords: Keywords,
    /// What of it takes part in the lab's figures: see [`super::Described::CONTENDERS`].
    pub contenders: Names,
    parse: fn(&mut Words<'_>) -> Result<Config, ParseError>,
}

impl Discipline {
    /// The entry of the `nth` of the names of `T`'s discipline.
    pub(crate) const fn of<T: Listed>(nth: usize) -> Discipline {
        let (name, about) = T::NAMES[nth];
        let contenders: Names = if nth == 0 { T::CONTENDERS } else { &[] };
        Discipline { name, about, keywords: T::KEYWORDS, contenders, parse: parse_as::<T> }
    }
}

fn parse_as<T: Listed>(words: &mut Words<'_>) -> Result<Config, ParseError> {
    T::parse(words).map(T::into)
}

/// How far below each other disciplines may stand: nobody needs more than a shaper in a class.
const MAX_DEPTH: u32 = 4;

/// All disciplines with their keywords, for help texts.
pub fn disciplines() -> &'static [Discipline] {
    &DISCIPLINES
}

/// The keywords of the discipline `name`, in reading order; none if there is no such discipline.
pub fn keywords(name: &str) -> impl Iterator<Item = &'static Keyword> {
    let known = DISCIPLINES.iter().find(|discipline| discipline.name == name);
    known.into_iter().flat_map(|discipline| discipline.keywords.iter().copied().flatten())
}

/// Reads a configuration from one text: `cake bandwidth 20mbit nat`.
pub fn parse(text: &str) -> Result<Config, ParseError> {
    parse_in(&mut Words::split(text), None)
}

/// Reads a configuration from separate words, as a shell passes them.
pub fn parse_words(words: &[&str]) -> Result<Config, ParseError> {
    parse_in(&mut Words::listed(words), None)
}

/// As [`parse_words`]; if the first word names no discipline, all words belong to `default`.
pub fn parse_with_default(words: &[&str], default: &str) -> Result<Config, ParseError> {
    parse_in(&mut Words::listed(words), Some(default))
}

fn parse_in(words: &mut Words<'_>, default: Option<&str>) -> Result<Config, ParseError> {
    let find = |name| DISCIPLINES.iter().find(|discipline| discipline.name == name);
    let named = words.words.first().and_then(|first| find(first.text));
    if named.is_some() {
        words.next = 1;
    }
    let Some(discipline) = named.or_else(|| find(default?)) else {
        let first = words.words.first().map_or("", |first| first.text);
        let names = DISCIPLINES.iter().map(|discipline| discipline.name);
        let problem = Problem::UnknownDiscipline { nearest: nearest(first, names) };
        return Err(words.error(0, problem));
    };
    words.discipline = discipline.name;
    (discipline.parse)(words)
}

/// `value`, or what stands for "not set" where it is zero.
pub fn or_default<T: Default + PartialEq>(value: T, default: T) -> T {
    if value == T::default() {
        default
    } else {
        value
    }
}

/// One word and where it starts.
#[derive(Clone, Copy)]
struct Word<'a> {
    text: &'a str,
    start: usize,
}

/// The words of a configuration, read from left to right.
pub struct Words<'a> {
    words: Vec<Word<'a>>,
    next: usize,
    /// Words from here on are not for the present discipline.
    end: usize,
    /// Disciplines that the present one is below.
    depth: u32,
    /// Where the name of `discipline` stands, if it was said.
    named: usize,
    discipline: &'static str,
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.next += 1;
        Some(word)
    }
}

impl<'a> Words<'a> {
    fn split(text: &'a str) -> Words<'a> {
        let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        Words::new(text.split_whitespace().map(|text| Word { text, start: start(text) }).collect())
    }

    fn listed(list: &[&'a str]) -> Words<'a> {
        let mut start = 0;
        let place = list
            .iter()
            .map(|text| {
                let word = Word { text, start };
                start += text.len() + 1;
                word
            })
            .collect();
        Words::new(place)
    }

    fn new(words: Vec<Word<'a>>) -> Words<'a> {
        let end = words.len();
        Words { words, next: 0, end, depth: 0, named: 0, discipline: "" }
    }

    /// The name of the present discipline.
    pub fn name(&self) -> &'static str {
        self.discipline
    }

    /// Reads the discipline that `word`, the last one read, names, with all words up to the end of
    /// the present discipline. None if it names none.
    pub fn discipline(&mut self, word: &str) -> Result<Option<Config>, ParseError> {
        let known = DISCIPLINES.iter().find(|discipline| discipline.name == word);
        let Some(discipline) = known.filter(|_| self.depth < MAX_DEPTH) else { return Ok(None) };
        let outer = (self.named, self.discipline);
        (self.named, self.discipline) = (self.next - 1, discipline.name);
        self.depth += 1;
        let config = (discipline.parse)(self)?;
        self.depth -= 1;
        (self.named, self.discipline) = outer;
        Ok(Some(config))
    }

    /// Ends the present discipline before the next `word`; the result is for [`Words::until_end`].
    pub fn until(&mut self, word: &str) -> usize {
        let more = self.words[self.next..self.end].iter().position(|other| other.text == word);
        let end = more.map_or(self.end, |more| self.next + more);
        core::mem::replace(&mut self.end, end)
    }

    /// Goes on to where the present discipline ended before.
    pub fn until_end(&mut self, end: usize) {
        self.end = end;
    }

    /// The next word, left in place.
    pub fn peek(&self) -> Option<&'a str> {
        self.words[..self.end].get(self.next).map(|word| word.text)
    }

    /// True if `word` is among the words still to be read.
    pub fn holds(&self, word: &str) -> bool {
        self.words[self.next..self.end].iter().any(|other| other.text == word)
    }

    /// The error that `discipline` (as the user calls it) cannot do without `expected`.
    pub fn lacks(&self, keyword: &'static str, expected: &'static str) -> ParseError {
        self.error(self.named, Problem::Missing { keyword, expected })
    }

    /// The value after `keyword`, which was the last word read. `expected` says what it is, with an
    /// example; `range` what is allowed.
    pub fn value<T>(
        &mut self,
        keyword: &'static str,
        expected: &'static str,
        range: &'static str,
        read: impl FnOnce(&'a str) -> Result<T, ValueError>,
    ) -> Result<T, ParseError> {
        let Some(word) = self.next() else {
            return Err(self.error_here(Problem::Missing { keyword, expected }));
        };
        read(word).map_err(|error| {
            self.error_here(match error {
                ValueError::Invalid => Problem::Invalid { keyword, expected },
                ValueError::TooLarge => Problem::OutOfRange { keyword, range },
            })
        })
    }

    /// A whole decimal number within `low..=high` after `keyword`.
    pub fn number(
        &mut self,
        keyword: &'static str,
        (low, high): (i64, i64),
        range: &'static str,
    ) -> Result<i64, ParseError> {
        self.value(keyword, range, range, |word| match word.parse::<i64>() {
            Ok(n) if (low..=high).contains(&n) => Ok(n),
            Ok(_) => Err(ValueError::TooLarge),
            Err(_) => Err(ValueError::Invalid),
        })
    }

    /// The error that the last word read is not one of the discipline's keywords, or not one that
    /// can stand there.
    pub fn unknown(&self) -> ParseError {
        let (word, discipline) = (self.words[self.next - 1].text, self.discipline);
        let problem = match keywords(discipline).find(|keyword| keyword.word == word) {
            Some(keyword) => Problem::Misplaced { discipline, meaning: keyword.meaning },
            None => {
                let candidates = keywords(discipline).map(|keyword| keyword.word);
                Problem::UnknownWord { discipline, nearest: nearest(word, candidates) }
            }
        };
        self.error_here(problem)
    }

    /// `problem` with the last word read.
    pub fn error_here(&self, problem: Problem) -> ParseError {
        self.error(self.next.saturating_sub(1), problem)
    }

    fn error(&self, index: usize, problem: Problem) -> ParseError {
        let (text, start) = self.words.get(index).map_or(("", 0), |word| (word.text, word.start));
        ParseError { word: String::from(text), index, start, end: start + text.len(), problem }
    }
}
