//! Emulated-line settings. (Interface only: the discipline follows.)

use crate::framing::Framing;
use crate::qdisc::{delay, fifo};
use crate::rate::Rate;

/// A line: queue, then serialisation at a rate, then propagation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The line's queue.
    pub fifo: fifo::Params,
    /// The line's rate; zero for no limit.
    pub rate: Rate,
    /// What a packet occupies on the line.
    pub framing: Framing,
    /// Propagation.
    pub delay: delay::Params,
}
