//! Errors in attributes: the attribute, its place, what is wrong, and the number that Linux gives.

use core::fmt::{self, Write};

/// Settings that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// Name of the attribute, as in `<linux/pkt_sched.h>`.
    pub attribute: &'static str,
    /// Place of its header among the bytes of the options; zero where it is missing.
    pub offset: usize,
    /// Kind of error.
    pub problem: Problem,
}

/// Kinds of errors in an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It has fewer bytes than its value, or more, where these are bits.
    Short {
        /// Bytes of its value.
        expected: usize,
        /// Bytes that it has.
        given: usize,
    },
    /// It has another number of bytes than its value, where Linux insists on that.
    Length {
        /// Bytes of its value.
        expected: usize,
        /// Bytes that it has.
        given: usize,
    },
    /// It holds something that is no attribute of the discipline, where Linux insists on that.
    Unknown {
        /// Number of the unknown one.
        number: u16,
    },
    /// Bytes follow that are no attribute, where Linux insists on that.
    Leftover {
        /// Number of them.
        bytes: usize,
    },
    /// It is not said to hold attributes, which it must.
    NotNested,
    /// It is said to hold attributes, which it does not.
    Nested,
    /// Its value is out of the range that is declared for it.
    OutOfRange {
        /// Least value.
        least: i64,
        /// Largest value.
        most: i64,
    },
    /// Its value is out of the range that the discipline works with.
    Refused {
        /// A correct form.
        expected: &'static str,
    },
    /// It must be given.
    Missing,
    /// It cannot be changed while the discipline runs.
    Fixed,
    /// It is for something that only Linux has.
    Unsupported,
    /// No discipline of this name has attributes, or the settings to change are another one's.
    OtherDiscipline,
}

/// Linux's number of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Errno {
    /// `EINVAL`.
    Invalid = 22,
    /// `ERANGE`.
    Range = 34,
    /// `EOPNOTSUPP`.
    NotSupported = 95,
}

impl Error {
    /// The number with which Linux answers.
    pub fn errno(&self) -> Errno {
        match self.problem {
            Problem::Short { .. } | Problem::OutOfRange { .. } => Errno::Range,
            Problem::Unsupported | Problem::OtherDiscipline => Errno::NotSupported,
            _ => Errno::Invalid,
        }
    }

    /// The error in words, as short as an extended acknowledgement must be.
    pub fn text(&self) -> Text {
        let mut text = Text::default();
        // What does not fit is cut off.
        let _ = write!(text, "{self}");
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.attribute)?;
        match self.problem {
            Problem::Short { expected, given } | Problem::Length { expected, given } => {
                write!(f, "{expected} bytes expected, {given} given")
            }
            Problem::Unknown { number } => write!(f, "attribute {number} is unknown"),
            Problem::Leftover { bytes } => write!(f, "{bytes} bytes follow the last attribute"),
            Problem::NotNested => f.write_str("the flag NLA_F_NESTED is missing"),
            Problem::Nested => f.write_str("the flag NLA_F_NESTED is not expected"),
            Problem::OutOfRange { least, most } => write!(f, "{least} to {most} expected"),
            Problem::Refused { expected } => write!(f, "{expected} expected"),
            Problem::Missing => f.write_str("must be given"),
            Problem::Fixed => f.write_str("cannot be changed, only given anew"),
            Problem::Unsupported => f.write_str("only Linux has this"),
            Problem::OtherDiscipline => f.write_str("not of this discipline"),
        }
    }
}

impl core::error::Error for Error {}

/// Most bytes of a text in an extended acknowledgement, without the zero behind it.
const TEXT: usize = 79;

/// A text of `N` bytes at most that needs no memory but its own.
#[derive(Clone, Copy, Debug)]
pub struct Text<const N: usize = TEXT> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Default for Text<N> {
    fn default() -> Text<N> {
        Text { bytes: [0; N], len: 0 }
    }
}

impl<const N: usize> Text<N> {
    /// The text.
    pub fn as_str(&self) -> &str {
        let bytes = self.bytes.get(..self.len).unwrap_or_default();
        core::str::from_utf8(bytes).unwrap_or_default()
    }
}

impl<const N: usize> Write for Text<N> {
    /// An error where not all of `text` fits; what fits, up to a whole character, is kept.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let mut fits = text.len().min(room.len());
        while !text.is_char_boundary(fits) {
            fits -= 1;
        }
        for (to, from) in room.iter_mut().zip(text.bytes().take(fits)) {
            *to = from;
        }
        self.len += fits;
        if fits < text.len() {
            Err(fmt::Error)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_to_what_fits() {
        let mut text = Text::<TEXT>::default();
        assert!(text.write_str(&"é".repeat(40)).is_err());
        assert_eq!(text.as_str(), "é".repeat(39));
        assert!(text.write_str("!").is_ok());
        assert!(text.write_str("!").is_err());
        assert_eq!(text.as_str().len(), TEXT);
    }

    #[test]
    fn errors_say_what_is_wrong_and_what_linux_answers() {
        let error = |problem| Error { attribute: "TCA_CAKE_RTT", offset: 8, problem };
        for (problem, text, errno) in [
            (Problem::Short { expected: 4, given: 2 }, "4 bytes expected, 2 given", Errno::Range),
            (
                Problem::Length { expected: 4, given: 8 },
                "4 bytes expected, 8 given",
                Errno::Invalid,
            ),
            (Problem::OutOfRange { least: -64, most: 256 }, "-64 to 256 expected", Errno::Range),
            (Problem::Unknown { number: 99 }, "attribute 99 is unknown", Errno::Invalid),
            (Problem::Missing, "must be given", Errno::Invalid),
        ] {
            let error = error(problem);
            assert_eq!(error.text().as_str(), std::format!("TCA_CAKE_RTT: {text}"));
            assert_eq!(error.errno(), errno);
        }
    }
}
