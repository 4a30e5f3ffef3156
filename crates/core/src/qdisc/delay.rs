//! Delay-stage settings. (Interface only: the discipline follows.)

use crate::time::Span;

/// How long packets wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Fixed part.
    pub delay: Span,
    /// Largest deviation either way; never reorders.
    pub jitter: Span,
    /// Packets that may be under way.
    pub limit: u32,
}
