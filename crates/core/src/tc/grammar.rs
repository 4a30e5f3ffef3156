//! The cursor over words that all parsers share, and their tables of keywords.

use alloc::string::String;
use alloc::vec::Vec;

use super::error::{nearest, ParseError, Problem};
use super::units::{self, Value, ValueError};

/// A word of a discipline's language.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keyword {
    /// The word itself.
    pub word: &'static str,
    /// Its argument (`RATE`, `TIME [JITTER]`), or nothing.
    pub argument: &'static str,
    /// Its meaning, in one line.
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
    /// Words from here on may say again what was said before them.
    amended: usize,
    /// Disciplines that are being read, the present one below the others.
    depth: u32,
    /// Number of the word that names `discipline`, if it was said.
    named: usize,
    discipline: &'static str,
    /// Those of `discipline`.
    keywords: Keywords,
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
    /// Those of one text.
    pub(crate) fn split(text: &'a str) -> Words<'a> {
        let start = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
        Words::new(text.split_whitespace().map(|text| Word { text, start: start(text) }).collect())
    }

    /// Those that a shell passes.
    pub(crate) fn listed(list: &[&'a str]) -> Words<'a> {
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
        let amended = end;
        Words { words, next: 0, end, amended, depth: 0, named: 0, discipline: "", keywords: &[] }
    }

    /// The same, of which those from number `first` on may say again what was said before them.
    pub(crate) fn amended_from(self, first: usize) -> Words<'a> {
        Words { amended: first, ..self }
    }

    /// True if the last word read may say again what was said before.
    pub(crate) fn amends(&self) -> bool {
        self.next > self.amended
    }

    /// The name of the present discipline.
    pub fn name(&self) -> &'static str {
        self.discipline
    }

    /// Disciplines that are being read, one below the other.
    pub(crate) fn depth(&self) -> u32 {
        self.depth
    }

    /// Settings that `read` finds in the words of `discipline`, whose name was the last word read.
    pub(crate) fn within<T>(
        &mut self,
        discipline: &'static str,
        keywords: Keywords,
        read: impl FnOnce(&mut Words<'a>) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        let outer = (self.named, self.discipline, self.keywords);
        let named = self.next.saturating_sub(1);
        (self.named, self.discipline, self.keywords) = (named, discipline, keywords);
        self.depth += 1;
        let read = read(self)?;
        self.depth -= 1;
        (self.named, self.discipline, self.keywords) = outer;
        Ok(read)
    }

    /// The error that the first word is none of the `known` disciplines.
    pub(crate) fn unknown_discipline(
        &self,
        known: impl Iterator<Item = &'static str>,
    ) -> ParseError {
        let nearest = nearest(self.peek().unwrap_or(""), known);
        self.error_at(0, Problem::UnknownDiscipline { nearest })
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
        self.error_at(self.named, Problem::Missing { keyword, expected })
    }

    /// Number of the last word read.
    pub fn place(&self) -> usize {
        self.next.saturating_sub(1)
    }

    /// The error that the value of `keyword` is beyond `range`, as all words together tell. Where
    /// it was not said, the discipline lacks `expected`.
    pub fn unfit(
        &self,
        keyword: &'static str,
        range: &'static str,
        expected: &'static str,
    ) -> ParseError {
        let own = &self.words[self.named..self.next];
        match own.iter().rposition(|word| word.text == keyword) {
            Some(at) => self.error_at(self.named + at + 1, Problem::OutOfRange { keyword, range }),
            None => self.lacks(self.discipline, expected),
        }
    }

    /// The keyword that was the last word read.
    fn keyword(&self) -> &'static str {
        let last = self.next.checked_sub(1).and_then(|at| self.words.get(at));
        let mut known = self.keywords.iter().copied().flatten();
        let keyword = known.find(|keyword| last.is_some_and(|last| keyword.word == last.text));
        keyword.map_or(self.discipline, |keyword| keyword.word)
    }

    /// The value after the keyword that was the last word read.
    pub fn take<T>(&mut self, value: &Value<T>) -> Result<T, ParseError> {
        self.value(value.expected, value.range, value.read)
    }

    /// The same, however it is read.
    pub fn value<T>(
        &mut self,
        expected: &'static str,
        range: &'static str,
        read: impl FnOnce(&'a str) -> Result<T, ValueError>,
    ) -> Result<T, ParseError> {
        let keyword = self.keyword();
        let Some(word) = self.next() else {
            return Err(self.error_here(Problem::Missing { keyword, expected }));
        };
        read(word).map_err(|error| {
            self.error_here(match error {
                ValueError::Invalid => Problem::Invalid { keyword, expected },
                ValueError::TooLarge => Problem::OutOfRange { keyword, range },
                ValueError::Foreign(reason) => Problem::Foreign { reason },
            })
        })
    }

    /// A whole number within `low..=high` after the keyword that was the last word read.
    pub fn number(&mut self, bounds: (i64, i64), range: &'static str) -> Result<i64, ParseError> {
        self.bounded(bounds, range, units::whole)
    }

    /// As [`Words::number`], where `tc` reads decimal numbers only.
    pub fn decimal(&mut self, bounds: (i64, i64), range: &'static str) -> Result<i64, ParseError> {
        self.bounded(bounds, range, |word| word.parse().map_err(|_| ValueError::Invalid))
    }

    fn bounded(
        &mut self,
        (low, high): (i64, i64),
        range: &'static str,
        read: fn(&str) -> Result<i64, ValueError>,
    ) -> Result<i64, ParseError> {
        self.value(range, range, |word| match read(word)? {
            n if (low..=high).contains(&n) => Ok(n),
            _ => Err(ValueError::TooLarge),
        })
    }

    /// The error that the last word read is not one of the discipline's keywords, or not one that
    /// can stand there.
    pub fn unknown(&self) -> ParseError {
        let (word, discipline) = (self.words[self.next - 1].text, self.discipline);
        let known = self.keywords.iter().copied().flatten();
        let problem = match known.clone().find(|keyword| keyword.word == word) {
            Some(keyword) => Problem::Misplaced { discipline, meaning: keyword.meaning },
            None => {
                let nearest = nearest(word, known.map(|keyword| keyword.word));
                Problem::UnknownWord { discipline, nearest }
            }
        };
        self.error_here(problem)
    }

    /// `problem` with the last word read.
    pub fn error_here(&self, problem: Problem) -> ParseError {
        self.error_at(self.place(), problem)
    }

    /// `problem` with the word of number `index`.
    pub fn error_at(&self, index: usize, problem: Problem) -> ParseError {
        let (text, start) = self.words.get(index).map_or(("", 0), |word| (word.text, word.start));
        ParseError { word: String::from(text), index, start, end: start + text.len(), problem }
    }
}
