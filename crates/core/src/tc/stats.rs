//! Statistics as `tc -s` shows them. All are plain copies: the data path hands them out whole.

use crate::qdisc::{Backlog, DropReason};
use crate::rate::Rate;
use crate::time::Span;

/// Most tiers that a discipline has.
pub const MAX_TINS: usize = 8;

/// Counters that every discipline keeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets handed in.
    pub enqueued_packets: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent (`len`).
    pub sent_bytes: u64,
    /// Packets given up, by reason: index with [`DropReason`] as usize.
    pub dropped: [u64; DropReason::COUNT],
    /// Packets on which this discipline set CE, or found it set when it wanted to.
    pub marked: u64,
    /// Times that the shaper held a packet back, or that a limit was exceeded.
    pub overlimits: u64,
}

impl Totals {
    /// Packets given up for any reason.
    pub fn drops(&self) -> u64 {
        self.dropped.iter().sum()
    }

    /// With `sent_packets` as it follows from the others: what came and was not dropped and is not
    /// among the `queued` was sent. So nobody needs to count it packet by packet.
    pub fn settled(self, queued: u32) -> Totals {
        let sent_packets = self.enqueued_packets - self.drops() - u64::from(queued);
        Totals { sent_packets, ..self }
    }
}

/// All counters of one discipline at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What every discipline counts.
    pub totals: Totals,
    /// What is queued now.
    pub backlog: Backlog,
    /// What only this discipline counts.
    pub detail: Detail,
}

/// Counters of particular disciplines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // A snapshot is one flat copy, without a heap.
pub enum Detail {
    /// Nothing beyond the totals.
    None,
    /// CAKE's.
    Cake(CakeStats),
    /// CoDel's.
    Codel(CodelStats),
    /// SFQ's, with RED.
    Sfq(SfqStats),
    /// FQ-PIE's.
    FqPie(FqPieStats),
    /// FQ-CoDel's.
    FqCodel(FqCodelStats),
    /// PIE's.
    Pie(PieStats),
    /// RED's.
    Red(RedStats),
    /// HTB's.
    Htb(HtbStats),
    /// SFB's.
    Sfb(SfbStats),
    /// Dualpi2's.
    Dualpi2(Dualpi2Stats),
    /// Of a discipline that `tc` has no form for: printed by their names.
    Figures(Figures),
}

/// Most figures that a discipline can name.
pub const MAX_FIGURES: usize = 8;

/// Figures of a discipline by the names under which they are printed, in that order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures([Option<(&'static str, Figure)>; MAX_FIGURES]);

impl Figures {
    /// These; no more than [`MAX_FIGURES`], which is checked when the program is built.
    pub fn new<const N: usize>(named: [(&'static str, Figure); N]) -> Figures {
        const { assert!(N <= MAX_FIGURES) };
        named.into_iter().collect()
    }

    /// Names and figures.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Figure)> + '_ {
        self.0.iter().copied().flatten()
    }
}

/// The first [`MAX_FIGURES`] of them.
impl FromIterator<(&'static str, Figure)> for Figures {
    fn from_iter<I: IntoIterator<Item = (&'static str, Figure)>>(named: I) -> Figures {
        let mut named = named.into_iter().fuse();
        Figures(core::array::from_fn(|_| named.next()))
    }
}

/// One figure of a discipline's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// How many, or how often.
    Count(u64),
    /// A probability, Q0.32.
    Chance(u32),
    /// How long.
    Time(Span),
    /// A state that it is in or not; as text only its name is printed, where it is.
    Flag(bool),
}

impl From<u32> for Figure {
    fn from(count: u32) -> Figure {
        Figure::Count(count.into())
    }
}

/// DualPI2's own counters and state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dualpi2Stats {
    /// Base probability, in units of 1/[`crate::aqm::pi2::ONE`].
    pub probability: u64,
    /// Packets that came into the C queue.
    pub packets_in_c: u32,
    /// Packets that came into the L queue.
    pub packets_in_l: u32,
    /// Most packets queued.
    pub max_queue: u32,
    /// Packets marked CE.
    pub ecn_mark: u32,
    /// Of those, packets beyond the step.
    pub step_marks: u32,
    /// Packets of the C queue dropped by the AQM.
    pub drops_c: u32,
    /// Packets of the L queue dropped in overload.
    pub drops_l: u32,
    /// Packets dropped because a limit was reached.
    pub overlimit: u32,
    /// Most memory in use, in bytes.
    pub memory_used: u64,
    /// Packets in the C queue.
    pub packets_c: u32,
    /// Packets in the L queue.
    pub packets_l: u32,
}

/// SFB's own counters and state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SfbStats {
    /// Packets dropped as chance would have it.
    pub earlydrop: u32,
    /// Packets that the penalty box held back.
    pub penaltydrop: u32,
    /// Packets of flows all of whose bins were full.
    pub bucketdrop: u32,
    /// Packets dropped because the queue was full.
    pub queuedrop: u32,
    /// Packets marked CE.
    pub marked: u32,
    /// Packets in the longest bin.
    pub maxqlen: u32,
    /// Largest probability of a bin, of 65535.
    pub maxprob: u16,
    /// Mean probability, of 65535.
    pub avgprob: u16,
}

/// HTB's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HtbStats {
    /// Packets that belonged to no class.
    pub direct_packets: u32,
}

/// RED's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedStats {
    /// Packets marked CE.
    pub marked: u32,
    /// Packets dropped by RED.
    pub early: u32,
    /// Packets dropped because the queue was full.
    pub pdrop: u32,
}

/// CoDel's own counters and state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodelStats {
    /// Signals in the present or last spell.
    pub count: u32,
    /// Signals with which it began.
    pub lastcount: u32,
    /// How long the last packet had waited.
    pub last_delay: Span,
    /// In a spell of signals.
    pub dropping: bool,
    /// When the next signal is due, seen from the last departure, in microseconds; zero outside a
    /// spell.
    pub drop_next_us: i32,
    /// Largest packet seen, in bytes.
    pub max_packet: u32,
    /// Packets marked by the control law.
    pub ecn_mark: u32,
    /// Packets dropped because the queue was full.
    pub drop_overlimit: u32,
    /// Packets marked by `ce_threshold`.
    pub ce_mark: u32,
}

/// FQ-CoDel's own counters and state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FqCodelStats {
    /// Largest packet seen, in bytes.
    pub max_packet: u32,
    /// Packets dropped because packets or memory were at their limit.
    pub drop_overlimit: u32,
    /// Packets marked by the control law.
    pub ecn_mark: u32,
    /// Packets marked by `ce_threshold`.
    pub ce_mark: u32,
    /// Times that a flow which had been idle came back.
    pub new_flow_count: u32,
    /// Flows without a standing queue (with savings: flows that can pay).
    pub new_flows_len: u32,
    /// Flows with a standing queue (with savings: flows that collect).
    pub old_flows_len: u32,
    /// Bytes of `truesize` queued.
    pub memory_used: u32,
    /// Packets dropped because memory was at its limit.
    pub drop_overmemory: u32,
}

/// Counters of SFQ's RED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SfqStats {
    /// Arrivals marked between `min` and `max`.
    pub prob_mark: u32,
    /// First packets marked for an arrival between `min` and `max`.
    pub prob_mark_head: u32,
    /// Packets dropped for an arrival between `min` and `max`.
    pub prob_drop: u32,
    /// Arrivals marked above `max`.
    pub forced_mark: u32,
    /// First packets marked for an arrival above `max`.
    pub forced_mark_head: u32,
    /// Packets dropped for an arrival above `max`.
    pub forced_drop: u32,
}

/// FQ-PIE's own counters and state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FqPieStats {
    /// Packets that came in.
    pub packets_in: u32,
    /// Packets dropped because the limit was reached.
    pub overlimit: u32,
    /// Arrivals that found memory at its limit (and were taken all the same).
    pub overmemory: u32,
    /// Packets dropped, by PIE or because the limit was reached.
    pub dropped: u32,
    /// Packets marked CE.
    pub ecn_mark: u32,
    /// Times that a flow which had been idle came back.
    pub new_flow_count: u32,
    /// Flows without a standing queue (with savings: flows that can pay).
    pub new_flows_len: u32,
    /// Flows with a standing queue (with savings: flows that collect).
    pub old_flows_len: u32,
    /// Bytes of `truesize` queued.
    pub memory_used: u32,
}

/// PIE's own counters and state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PieStats {
    /// Drop probability, in units of 1/[`crate::aqm::pie::MAX_PROB`].
    pub probability: u64,
    /// The delay that it follows.
    pub delay: Span,
    /// Estimated departure rate in bytes a second; zero if none was measured.
    pub departure_rate: u64,
    /// Packets that came in.
    pub packets_in: u32,
    /// Packets dropped because the queue was full.
    pub overlimit: u32,
    /// Packets dropped by PIE.
    pub dropped: u32,
    /// Most packets that an arrival found.
    pub max_queue: u32,
    /// Packets marked CE.
    pub ecn_mark: u32,
}

/// CAKE's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CakeStats {
    /// Most memory ever in use, in bytes of `truesize`.
    pub memory_used: u32,
    /// Limit of that.
    pub memory_limit: u32,
    /// Calls that left more memory in use than the limit allows.
    pub overruns: u32,
    /// Estimated capacity of the line (`autorate-ingress`), or the set rate if nothing was
    /// estimated.
    pub capacity_estimate: Rate,
    /// Smallest and largest packet in bytes, counted from where the overhead counts.
    pub min_network_size: u16,
    /// See `min_network_size`.
    pub max_network_size: u16,
    /// Smallest and largest packet on the line, framing included.
    pub min_adj_size: u16,
    /// See `min_adj_size`.
    pub max_adj_size: u16,
    /// Mean number of bytes before the network header.
    pub avg_hdr_offset: u16,
    /// Tiers in use.
    pub tin_count: u8,
    /// The tiers in the order in which `tc` prints them (Bulk before Best Effort).
    pub tins: [TinStats; MAX_TINS],
}

/// Counters of one tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TinStats {
    /// Rate up to which the tier has its priority; zero if unlimited.
    pub threshold_rate: Rate,
    /// Bytes that came in (`tc` calls them sent).
    pub sent_bytes: u64,
    /// Packets that came in.
    pub sent_packets: u64,
    /// Bytes queued.
    pub backlog_bytes: u64,
    /// COBALT's target in this tier.
    pub target: Span,
    /// COBALT's interval in this tier.
    pub interval: Span,
    /// Moving average of sojourn times that follows rises quickly.
    pub peak_delay: Span,
    /// Moving average of sojourn times.
    pub avg_delay: Span,
    /// Moving average of sojourn times that follows falls quickly: of sparse flows.
    pub base_delay: Span,
    /// Packets whose queue stood ready in its first place.
    pub way_direct_hits: u32,
    /// Packets whose queue was found elsewhere in its set.
    pub way_indirect_hits: u32,
    /// Packets that needed a new queue and found an idle one.
    pub way_misses: u32,
    /// Packets that had to share another flow's queue.
    pub way_collisions: u32,
    /// Packets dropped by AQM or overflow.
    pub drops: u32,
    /// Packets marked CE.
    pub ecn_mark: u32,
    /// Acknowledgements filtered.
    pub ack_drops: u32,
    /// Flows that have no standing queue.
    pub sparse_flows: u16,
    /// Flows with a standing queue.
    pub bulk_flows: u16,
    /// Flows on which BLUE is at work.
    pub unresponsive_flows: u16,
    /// Largest packet seen.
    pub max_pkt_len: u16,
    /// Bytes a flow may send in its turn.
    pub flow_quantum: u16,
}
