//! Statistics of `sfb`, as `tc` shows them.

use super::MAX_PROB;
use crate::qdisc::Chance;

const WHOLE: u64 = MAX_PROB as u64;

figures! {
    /// SFB's own counters and state.
    pub struct Stats {
        /// Packets dropped as chance would have it.
        earlydrop: u32,
        /// Packets that the penalty box held back.
        penaltydrop: u32,
        /// Packets of flows all of whose bins were full.
        bucketdrop: u32,
        /// Packets dropped because the queue was full.
        queuedrop: u32,
        /// Packets that another discipline below refused: none, while the queue is our own.
        childdrop: u32,
        /// Packets marked CE.
        marked: u32,
        ;
        /// Packets in the longest bin.
        maxqlen: u32,
        /// Largest probability of a bin.
        maxprob: Chance<WHOLE>,
        /// Mean probability.
        avgprob: Chance<WHOLE>,
    }
}
