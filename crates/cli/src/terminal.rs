//! Output to the terminal, which obeys nothing of what others wrote.
//!
//! Standard output goes through [`Tame`], errors and notices through [`say`] and [`print_error`].
//! Only what this program draws itself, progress and grades, goes past them.

use std::ffi::OsString;
use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write};

use simnel_core::printable::Printable;

/// A line on standard error.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::terminal::say(format_args!($($words)*)) };
}

/// Prints `words` and the end of the line on standard error. That nobody reads it any more is no
/// reason for a daemon to end.
pub fn say(words: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{}", Printable(&words.to_string()));
}

/// True if standard output is a terminal whose user wants colours (NO_COLOR is not set).
pub fn colours() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stdout().is_terminal() && !unwanted
}

/// Columns of the terminal that standard output is; None if it is none.
#[cfg(feature = "lab")]
pub fn width() -> Option<u16> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    Some(size.ws_col).filter(|columns| *columns > 0)
}

/// A writer of text that spells control characters out.
pub struct Tame<W> {
    to: W,
    /// A character of which not all bytes have come.
    begun: Vec<u8>,
}

impl<W> Tame<W> {
    /// In front of `to`.
    pub fn new(to: W) -> Tame<W> {
        Tame { to, begun: Vec::new() }
    }
}

impl<W: Write> Write for Tame<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n');
        if self.begun.is_empty() && bytes.iter().all(plain) {
            return self.to.write(bytes);
        }
        self.begun.extend_from_slice(bytes);
        let mut rest = std::mem::take(&mut self.begun);
        while !rest.is_empty() {
            let (text, broken) = match std::str::from_utf8(&rest) {
                Ok(text) => (text, Some(0)),
                Err(error) => {
                    let text = &rest[..error.valid_up_to()];
                    (std::str::from_utf8(text).unwrap_or_default(), error.error_len())
                }
            };
            write!(self.to, "{}", Printable(text))?;
            let done = text.len() + broken.unwrap_or(0);
            match broken {
                Some(0) => break,
                Some(_) => write!(self.to, "{}", char::REPLACEMENT_CHARACTER)?,
                None => {
                    self.begun = rest.split_off(done);
                    break;
                }
            }
            rest.drain(..done);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// The words of the command line, as they may be repeated in an error.
pub fn printable_arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os().map(|word| Printable(&word.to_string_lossy()).to_string().into())
}

/// `text` with its characters spelt out, and where the place `span` of it has gone. A text that is
/// shown with a mark below a place.
#[cfg(feature = "lab")]
pub fn printable_at(text: &str, span: std::ops::Range<usize>) -> (String, std::ops::Range<usize>) {
    use simnel_core::printable::is_printable;
    let until = |end: usize| {
        let before = text.char_indices().take_while(|(at, _)| *at < end);
        before.map(|(_, c)| if is_printable(c) { c.len_utf8() } else { SPELT_OUT }).sum::<usize>()
    };
    (Printable(text).to_string(), until(span.start)..until(span.end))
}

/// Bytes of `\u001b`.
#[cfg(feature = "lab")]
const SPELT_OUT: usize = 6;

/// The error, what caused it, and the fix.
pub fn print_error(error: &miette::Report) {
    let mut causes: Vec<String> =
        error.chain().map(|cause| Printable(&cause.to_string()).to_string()).collect();
    // Many an error tells its cause itself.
    let message = causes.remove(0);
    causes.retain(|cause| !message.contains(cause.as_str()));
    let add = |next, message| Some(Box::new(Cause { message, next }));
    let shown = Shown {
        error,
        message,
        cause: causes.into_iter().rev().fold(None, add),
        help: error.help().map(|help| Printable(&help.to_string()).to_string()),
    };
    let _ = writeln!(io::stderr(), "{}", Drawn(&shown));
}

/// An error with nothing in it that a terminal obeys.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Shown<'a> {
    error: &'a miette::Report,
    message: String,
    #[source]
    cause: Option<Box<Cause>>,
    help: Option<String>,
}

/// Causes of an error.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Cause {
    message: String,
    #[source]
    next: Option<Box<Cause>>,
}

impl miette::Diagnostic for Shown<'_> {
    fn help(&self) -> Option<Box<dyn Display + '_>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn Display>)
    }

    // Made with `printable_at`.
    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.error.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
        self.error.labels()
    }
}

struct Drawn<'a>(&'a Shown<'a>);

impl Display for Drawn<'_> {
    #[cfg(feature = "lab")]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        miette::ReportHandler::debug(&miette::MietteHandler::default(), self.0, f)
    }

    /// The same without the crates that draw it.
    #[cfg(not(feature = "lab"))]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.0.message)?;
        let mut cause = self.0.cause.as_ref();
        while let Some(Cause { message, next }) = cause.map(|cause| &**cause) {
            write!(f, ": {message}")?;
            cause = next.as_ref();
        }
        self.0.help.as_ref().map_or(Ok(()), |help| write!(f, "\nhelp: {help}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tamed(parts: &[&[u8]]) -> String {
        let mut out = Tame::new(Vec::new());
        for part in parts {
            out.write_all(part).unwrap();
        }
        String::from_utf8(out.to).unwrap()
    }

    #[test]
    fn control_characters_are_spelt_out_wherever_writes_end() {
        let text = "caf\u{e9} \x1b[31m \u{9b}2J\tüß \u{202e}\n".as_bytes();
        let shown = "caf\u{e9} \\u001b[31m \\u009b2J\tüß \\u202e\n";
        for end in 0..text.len() {
            assert_eq!(tamed(&[&text[..end], &text[end..]]), shown, "cut at {end}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(tamed(&bytes), shown);
        assert_eq!(tamed(&[b"a\xffb\xe2\x82c\n"]), "a\u{fffd}b\u{fffd}c\n");
    }

    #[cfg(feature = "lab")]
    #[test]
    fn a_place_stays_where_it_was() {
        let text = "a\x1b\u{9b}b = \u{e9} here";
        let (shown, place) = printable_at(text, text.find("here").unwrap()..text.len());
        assert_eq!(&shown[place], "here");
        assert_eq!(printable_at("x", 0..9).1, 0..1);
    }
}
