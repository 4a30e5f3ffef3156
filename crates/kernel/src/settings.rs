//! Settings as C hands them over, and what C must know of them.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt::Display;

use simnel_core::qdisc::{amend, parse, Config};

/// Why settings were refused.
pub(crate) struct Refusal {
    /// Error number for the system call.
    pub(crate) errno: i32,
    /// One line.
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(errno: i32, error: &dyn Display) -> Refusal {
        Refusal { errno, text: format!("simnel: {error}") }
    }
}

/// Error numbers of the system calls.
pub(crate) const EINVAL: i32 = 22;
pub(crate) const ENOMEM: i32 = 12;

/// What a discipline needs of the C side beyond packets, one bit each.
pub(crate) mod wants {
    /// Connections before address translation.
    pub const TRANSLATION: u32 = 1;
    /// Super-packets in pieces.
    pub const SPLIT: u32 = 2;
}

/// Reads `words`; where there are settings already, as a change of these.
pub(crate) fn read_words(words: &str, old: Option<&Config>) -> Result<Config, Refusal> {
    let config = match old {
        None => parse(words),
        Some(old) => amend(&old.to_string(), words),
    };
    config.map_err(|error| Refusal::new(EINVAL, &error))
}

/// What `config` wants of the C side.
pub(crate) fn wanted(config: &Config) -> u32 {
    let own = match config {
        Config::Cake(params) => {
            let split = if params.split_gso { wants::SPLIT } else { 0 };
            let translation = if params.nat { wants::TRANSLATION } else { 0 };
            split | translation
        }
        _ => 0,
    };
    config.children().into_iter().fold(own, |wants, (_, child)| wants | wanted(child))
}
