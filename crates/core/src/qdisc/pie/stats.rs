//! Statistics of `pie`, as `tc` shows them.

use core::fmt::{self, Write};

use crate::aqm::pie::MAX_PROB;
use crate::qdisc::OwnStats;
use crate::tc::units::{shown_fraction, shown_time, write_fraction};
use crate::tc::{Digits, Json};
use crate::time::Span;

/// PIE's own counters and state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    /// Drop probability, in units of 1/[`crate::aqm::pie::MAX_PROB`].
    pub probability: u64,
    /// The delay that it follows.
    pub delay: Span,
    /// Estimated departure rate in bytes a second, zero before it was measured; None unless it is
    /// asked for.
    pub departure_rate: Option<u64>,
    /// Packets that came in.
    pub packets_in: u32,
    /// Packets dropped because the queue was full.
    pub overlimit: u32,
    /// Packets dropped on arrival, by PIE or because the queue was full, as Linux counts them.
    pub dropped: u32,
    /// Most packets that an arrival found.
    pub max_queue: u32,
    /// Packets marked CE.
    pub ecn_mark: u32,
}

impl OwnStats for Stats {
    fn write_below(&self, _: bool, out: &mut dyn Write) -> fmt::Result {
        let probability = shown_fraction(self.probability, MAX_PROB);
        write!(out, "  prob {probability} delay {}", shown_time(self.delay, Digits::AsTc))?;
        if let Some(rate) = self.departure_rate {
            write!(out, " avg_dq_rate {rate}")?;
        }
        write!(out, "\n  pkts_in {} overlimit {}", self.packets_in, self.overlimit)?;
        write!(out, " dropped {} maxq {}", self.dropped, self.max_queue)?;
        writeln!(out, " ecn_mark {}", self.ecn_mark)
    }

    fn write_json(&self, _: bool, json: &mut Json<'_>) -> fmt::Result {
        json.key("prob")?.raw(|out| write_fraction(self.probability, MAX_PROB, out))?;
        json.key("delay")?.number(self.delay.as_micros())?;
        if let Some(rate) = self.departure_rate {
            json.key("avg_dq_rate")?.number(rate)?;
        }
        for (key, value) in [
            ("pkts_in", self.packets_in),
            ("overlimit", self.overlimit),
            ("dropped", self.dropped),
            ("maxq", self.max_queue),
            ("ecn_mark", self.ecn_mark),
        ] {
            json.key(key)?.number(value.into())?;
        }
        Ok(())
    }
}
