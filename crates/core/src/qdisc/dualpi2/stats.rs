//! What `dualpi2` counts, as it is shown.

use crate::aqm::pi2::ONE;
use crate::qdisc::Chance;

figures! {
    /// DualPI2's own counters and state.
    pub struct Stats {
        /// Base probability.
        prob: Chance<ONE>,
        /// Packets that came into the C queue.
        packets_in_c: u32,
        /// Packets that came into the L queue.
        packets_in_l: u32,
        /// Most packets queued.
        maxq: u32,
        /// Packets marked CE.
        ecn_mark: u32,
        /// Of those, packets beyond the step.
        step_marks: u32,
        /// Packets of the C queue dropped by the AQM.
        drops_c: u32,
        /// Packets of the L queue dropped in overload.
        drops_l: u32,
        /// Packets dropped because a limit was reached.
        overlimit: u32,
        /// Most memory in use, in bytes.
        memory_used: u64,
        /// Packets in the C queue.
        qlen_c: u32,
        /// Packets in the L queue.
        qlen_l: u32,
    }
}
