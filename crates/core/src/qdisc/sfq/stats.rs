//! Statistics of `sfq` with RED. `tc` shows them before the common lines, in JSON among the
//! settings.

use core::fmt::{self, Write};

use crate::qdisc::OwnStats;
use crate::tc::Json;

figures! {
    /// Counters of SFQ's RED.
    pub struct Stats {
        /// Arrivals marked between `min` and `max`.
        prob_mark: u32,
        /// First packets marked for an arrival between `min` and `max`.
        prob_mark_head: u32,
        /// Packets dropped for an arrival between `min` and `max`.
        prob_drop: u32,
        ;
        /// Arrivals marked above `max`.
        forced_mark: u32,
        /// First packets marked for an arrival above `max`.
        forced_mark_head: u32,
        /// Packets dropped for an arrival above `max`.
        forced_drop: u32,
    }
}

impl OwnStats for Option<Stats> {
    fn write_above(&self, out: &mut dyn Write) -> fmt::Result {
        self.iter().try_for_each(|stats| stats.write_below(false, out))
    }

    fn write_option_json(&self, json: &mut Json<'_>) -> fmt::Result {
        self.iter().try_for_each(|stats| stats.write_json(false, json))
    }
}
