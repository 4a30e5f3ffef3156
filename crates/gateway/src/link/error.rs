//! Reasons why a link cannot start or go on.

use crate::frames::FrameError;

/// Reason why a link cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Both ends are the same.
    #[error("a link needs two interfaces, but both ends are `{interface}`")]
    SameInterface {
        /// Its name.
        interface: String,
    },
    /// Frames of an interface cannot be had.
    #[error(transparent)]
    Frames(#[from] FrameError),
    /// The discipline cannot be built.
    #[error(transparent)]
    Discipline(#[from] simnel_core::qdisc::ConfigError),
    /// The discipline has no place in a link.
    #[error(
        "a link carries a `line`, a `delay` or a FIFO; other disciplines belong to `simnel up`"
    )]
    Unsupported,
}
