//! Faults in a trace, with their place.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::conformance::golden::ReplayError;

/// Place in a trace at which something is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The file as such.
    File,
    /// A line, from 1.
    Line(u64),
    /// A packet, from 0, as in the events.
    Packet(u64),
}

/// A trace cannot be read, or not to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{place}: {problem}", path.display())]
pub struct TraceError {
    /// The file.
    pub path: PathBuf,
    /// Place in it.
    pub place: Place,
    /// The fault.
    pub problem: String,
    /// A correct form, or the fix.
    pub help: Option<&'static str>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File => Ok(()),
            Place::Line(line) => write!(f, ":{line}"),
            Place::Packet(packet) => write!(f, ": packet {packet}"),
        }
    }
}

impl TraceError {
    pub(super) fn new(path: &Path, place: Place, problem: impl Into<String>) -> TraceError {
        TraceError { path: path.to_owned(), place, problem: problem.into(), help: None }
    }

    pub(super) fn help(self, help: &'static str) -> TraceError {
        TraceError { help: Some(help), ..self }
    }

    /// The file cannot be read on.
    pub(super) fn io(path: &Path, place: Place, error: &std::io::Error) -> TraceError {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => TraceError::cut_off(path, place),
            _ => TraceError::new(path, place, error.to_string()),
        }
    }

    /// The file ends in the middle of something.
    pub(super) fn cut_off(path: &Path, place: Place) -> TraceError {
        TraceError::new(path, place, "the file is cut off here")
            .help("copy it again, or cut the incomplete end away (`editcap`, `head`)")
    }
}

/// Errors of a replay.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// The discipline cannot be built.
    #[error("{0}")]
    Discipline(String),
    /// The discipline broke its contract.
    #[error(transparent)]
    Replay(#[from] ReplayError),
    /// The result cannot be written.
    #[error("cannot write the result: {0}")]
    Output(#[from] std::io::Error),
}
