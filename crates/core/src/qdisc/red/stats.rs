//! Statistics of `red`, as `tc` shows them.

use core::fmt::{self, Write};

use crate::qdisc::OwnStats;
use crate::tc::Json;

/// RED's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    /// Packets marked CE.
    pub marked: u32,
    /// Packets dropped by RED.
    pub early: u32,
    /// Packets dropped because the queue was full.
    pub pdrop: u32,
}

impl OwnStats for Stats {
    fn write_below(&self, _: bool, out: &mut dyn Write) -> fmt::Result {
        let Stats { marked, early, pdrop } = self;
        writeln!(out, "  marked {marked} early {early} pdrop {pdrop} other 0 ")
    }

    fn write_json(&self, _: bool, json: &mut Json<'_>) -> fmt::Result {
        json.key("marked")?.number(self.marked.into())?;
        json.key("early")?.number(self.early.into())?;
        json.key("pdrop")?.number(self.pdrop.into())?;
        json.key("other")?.number(0)
    }
}
