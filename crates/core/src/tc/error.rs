//! Errors in a list of words: the word, its place, the expected form, and the nearest known word.

use alloc::string::String;
use core::fmt;

use super::slip;

/// A word that cannot be used, with all that a one-line message or a drawn caret needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The word; empty if words are missing at the end.
    pub word: String,
    /// Its place among the words, from 0.
    pub index: usize,
    /// First byte of it in the text (words given as a list count as joined by single spaces).
    pub start: usize,
    /// Byte after its last.
    pub end: usize,
    /// Kind of error.
    pub problem: Problem,
}

/// Kinds of errors in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No discipline has this name.
    UnknownDiscipline {
        /// The name most like it.
        nearest: Option<&'static str>,
    },
    /// The discipline has no such keyword.
    UnknownWord {
        /// The discipline.
        discipline: &'static str,
        /// The keyword most like it.
        nearest: Option<&'static str>,
    },
    /// The discipline has this keyword, but for words other than those that stand here.
    Misplaced {
        /// The discipline.
        discipline: &'static str,
        /// Meaning of the keyword, and the others that it goes with.
        meaning: &'static str,
    },
    /// A keyword stands without its value.
    Missing {
        /// The keyword.
        keyword: &'static str,
        /// The argument that must follow.
        expected: &'static str,
    },
    /// A keyword's value cannot be read.
    Invalid {
        /// The keyword.
        keyword: &'static str,
        /// A correct form.
        expected: &'static str,
    },
    /// A keyword that can be said once is said again, or what it says was said by another.
    Twice {
        /// The keyword.
        keyword: &'static str,
    },
    /// `tc` knows it, but we do not.
    Foreign {
        /// Why.
        reason: &'static str,
    },
    /// A rate that is another one than it looks like.
    Slip {
        /// The keyword.
        keyword: &'static str,
    },
    /// A keyword's value is too small or too large.
    OutOfRange {
        /// The keyword.
        keyword: &'static str,
        /// The allowed range.
        range: &'static str,
    },
}

impl ParseError {
    /// The known word that was perhaps meant.
    pub fn nearest(&self) -> Option<&'static str> {
        match self.problem {
            Problem::UnknownDiscipline { nearest } | Problem::UnknownWord { nearest, .. } => {
                nearest
            }
            _ => None,
        }
    }

    /// True if `tc` knows the word, but we do not.
    pub fn is_foreign(&self) -> bool {
        matches!(self.problem, Problem::Foreign { .. })
    }

    /// The form that would have been right in this place.
    pub fn expected(&self) -> &'static str {
        match self.problem {
            Problem::UnknownDiscipline { .. } => "the name of a discipline",
            Problem::UnknownWord { .. } => "a keyword of the discipline",
            Problem::Misplaced { .. } => "a keyword that goes with the others",
            Problem::Missing { expected, .. } | Problem::Invalid { expected, .. } => expected,
            Problem::OutOfRange { range, .. } => range,
            Problem::Foreign { .. } => "a discipline or keyword that `simnel words` lists",
            Problem::Twice { .. } => "something that was not said before",
            Problem::Slip { .. } => "a RATE such as 20mbit",
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, place) = (&self.word, self.index + 1);
        match self.problem {
            Problem::UnknownDiscipline { .. } if word.is_empty() => {
                f.write_str("no discipline is named: say `cake`, for instance")?;
            }
            Problem::UnknownDiscipline { .. } => {
                write!(f, "`{word}` (word {place}) is not a queue discipline")?;
            }
            Problem::UnknownWord { discipline, .. } => {
                write!(f, "`{word}` (word {place}) is not a keyword of {discipline}")?;
            }
            Problem::Misplaced { discipline, meaning } => {
                write!(
                    f,
                    "`{word}` (word {place}) does not fit here; in {discipline} it is for: "
                )?;
                f.write_str(meaning)?;
            }
            Problem::Missing { keyword, expected } => {
                // Under the name that was used, where there are several.
                let said = if keyword.contains(word.as_str()) { keyword } else { word };
                write!(f, "`{said}` (word {place}) must be followed by {expected}")?;
            }
            Problem::Invalid { keyword, expected } => {
                write!(f, "`{word}` (word {place}) cannot be used: `{keyword}` takes {expected}")?;
            }
            Problem::Foreign { reason } => {
                write!(f, "`{word}` (word {place}) cannot be used: {reason}")?;
            }
            Problem::Twice { keyword } => {
                write!(f, "`{word}` (word {place}) comes too late: `{keyword}` has been said")?;
            }
            Problem::Slip { keyword } => {
                let reading = slip::of_rate(word).unwrap_or_default();
                write!(f, "`{keyword} {word}` is {reading}")?;
            }
            Problem::OutOfRange { keyword, range } => {
                write!(f, "`{word}` (word {place}) is out of range: `{keyword}` takes {range}")?;
            }
        }
        match self.nearest() {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => Ok(()),
        }
    }
}

impl core::error::Error for ParseError {}

/// Longest word that is compared; no keyword is longer than 22 bytes.
const COMPARED: usize = 32;

/// The candidate that is fewest edits from `word`, if they are few for its length. Or else one that
/// begins with it: `tc` takes some words so. The earlier candidate wins a tie.
pub fn nearest(word: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let most = (word.len() / 3).clamp(1, 3);
    let (mut best, mut longer) = (None, None);
    for candidate in candidates {
        if !word.is_empty() && candidate.starts_with(word) {
            longer = longer.or(Some(candidate));
        }
        let edits = edits(word.as_bytes(), candidate.as_bytes());
        if edits <= most && best.is_none_or(|(fewest, _)| edits < fewest) {
            best = Some((edits, candidate));
        }
    }
    best.map(|(_, candidate)| candidate).or(longer)
}

/// Fewest insertions, deletions, replacements and swaps of neighbours that make `b` of `a` (optimal
/// string alignment), case aside. If either has more than [`COMPARED`] bytes: the bytes of the
/// longer one instead.
fn edits(a: &[u8], b: &[u8]) -> usize {
    if a.len() > COMPARED || b.len() > COMPARED {
        return a.len().max(b.len());
    }
    let same = |i: usize, j: usize| a[i].eq_ignore_ascii_case(&b[j]);
    // row[j]: edits between the first i bytes of `a` and the first j bytes of `b`; `above` is the
    // row before it, `top` the one before that.
    let mut row: [usize; COMPARED + 1] = core::array::from_fn(|j| j);
    let mut above = row;
    for i in 1..=a.len() {
        let top = above;
        above = row;
        row[0] = i;
        for j in 1..=b.len() {
            let replaced = above[j - 1] + usize::from(!same(i - 1, j - 1));
            row[j] = replaced.min(row[j - 1] + 1).min(above[j] + 1);
            if i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1) {
                row[j] = row[j].min(top[j - 2] + 1);
            }
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_wins_and_the_earlier_of_two() {
        let of = |words: [&'static str; 3]| nearest("abcdef", words.into_iter());
        assert_eq!(of(["abcdxy", "abcdex", "abcxef"]), Some("abcdex"));
        assert_eq!(of(["abcxyz", "uvwxyz", ""]), None);
    }

    #[test]
    fn edit_distances() {
        for (a, b, n) in [
            ("", "", 0),
            ("caek", "cake", 1),
            ("kitten", "sitting", 3),
            ("nat", "", 3),
            ("ack-fitler", "ack-filter", 1),
            ("CAKE", "cake", 0),
        ] {
            assert_eq!(edits(a.as_bytes(), b.as_bytes()), n, "{a} {b}");
        }
    }

    /// As many edits as a third of the word has letters, one at least and three at most.
    #[test]
    fn longer_words_may_differ_more() {
        for (word, candidate, is_near) in [
            ("ab", "ac", true),
            ("ab", "cd", false),
            ("abcde", "abcdx", true),
            ("abcde", "abcxy", false),
            ("abcdef", "abcdxy", true),
            ("abcdef", "abcxyz", false),
            ("abcdefghi", "abcdefxyz", true),
            ("abcdefghijklmnop", "abcdefghijklwxyz", false),
        ] {
            let found = nearest(word, [candidate].into_iter());
            assert_eq!(found, is_near.then_some(candidate), "{word}");
        }
    }

    #[test]
    fn what_is_longer_than_any_keyword_is_not_compared() {
        for (a, b, edits_of) in [(32, 32, 1), (33, 33, 33), (33, 32, 33), (32, 33, 33)] {
            let word = |len: usize, last| [std::vec![b'a'; len - 1], std::vec![last]].concat();
            assert_eq!(edits(&word(a, b'x'), &word(b, b'y')), edits_of, "{a} {b}");
        }
    }

    #[test]
    fn nothing_is_near_to_nonsense() {
        assert_eq!(nearest("xyzzy", ["cake", "pfifo"].into_iter()), None);
        assert_eq!(nearest("cke", ["pfifo", "cake"].into_iter()), Some("cake"));
        assert_eq!(nearest("caek", ["pfifo", "cake"].into_iter()), Some("cake"));
    }

    #[test]
    fn a_beginning_is_near_if_nothing_else_is() {
        let of = |word| nearest(word, ["mpu", "overhead", "overdue"].into_iter());
        assert_eq!(of("ov"), Some("overhead"));
        assert_eq!(of("overdu"), Some("overdue"));
        assert_eq!((of("mpx"), of("head"), of("")), (Some("mpu"), None, None));
    }
}
