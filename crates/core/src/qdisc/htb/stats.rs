//! Statistics of `htb`; `tc` shows them among the settings.

use crate::qdisc::OwnStats;

/// HTB's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
    /// Packets that belonged to no class.
    pub direct_packets: u32,
}

impl OwnStats for Stats {}
