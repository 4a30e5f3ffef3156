//! `tc`'s language: words to settings, settings and statistics to text and JSON.

use crate::qdisc::{cake, delay, fifo, line};

pub mod stats;

/// A discipline with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // Copied at configuration time only.
pub enum Config {
    /// `cake`.
    Cake(cake::Params),
    /// `pfifo`, `bfifo`, `pfifo_head_drop`.
    Fifo(fifo::Params),
    /// `delay`: every packet waits a fixed time, more or less.
    Delay(delay::Params),
    /// `line`: an emulated line with its own rate, queue and delay.
    Line(line::Params),
}
