//! Statistics of `fq_codel`, as `tc` shows them.

use crate::qdisc::UnlessZero;

figures! {
    /// FQ-CoDel's own counters and state.
    pub struct Stats {
        /// Largest packet seen, in bytes.
        maxpacket: u32,
        /// Packets dropped because packets or memory were at their limit.
        drop_overlimit: u32,
        /// Times that a flow which had been idle came back.
        new_flow_count: u32,
        /// Packets marked by the control law.
        ecn_mark: u32,
        /// Packets marked by `ce_threshold`.
        ce_mark: UnlessZero,
        /// Bytes of `truesize` queued.
        memory_used: UnlessZero,
        /// Packets dropped because memory was at its limit.
        drop_overmemory: UnlessZero,
        ;
        /// Flows without a standing queue (with savings: flows that can pay).
        new_flows_len: u32,
        /// Flows with a standing queue (with savings: flows that collect).
        old_flows_len: u32,
    }
}
