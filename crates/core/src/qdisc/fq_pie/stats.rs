//! Statistics of `fq_pie`, as `tc` shows them.

figures! {
    /// FQ-PIE's own counters and state.
    pub struct Stats {
        /// Packets that came in.
        pkts_in: u32,
        /// Packets dropped because the limit was reached.
        overlimit: u32,
        /// Arrivals that found memory at its limit (and were taken all the same).
        overmemory: u32,
        /// Packets dropped, by PIE or because the limit was reached.
        dropped: u32,
        /// Packets marked CE.
        ecn_mark: u32,
        ;
        /// Times that a flow which had been idle came back.
        new_flow_count: u32,
        /// Flows without a standing queue (with savings: flows that can pay).
        new_flows_len: u32,
        /// Flows with a standing queue (with savings: flows that collect).
        old_flows_len: u32,
        /// Bytes of `truesize` queued.
        memory_used: u32,
    }
}
