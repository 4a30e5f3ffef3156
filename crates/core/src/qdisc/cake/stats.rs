//! Statistics of `cake`, as `tc` shows them (facts A.13).

use core::fmt::{self, Write};

use crate::qdisc::OwnStats;
use crate::rate::Rate;
use crate::tc::units::{shown_rate, shown_size, shown_time};
use crate::tc::{Digits, Json};
use crate::time::Span;

/// Most tins that there are.
pub const MAX_TINS: usize = 8;

/// CAKE's own counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Stats {
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
    /// Tins in use.
    pub tin_count: u8,
    /// The tins in the order in which `tc` prints them (Bulk before Best Effort).
    pub tins: [TinStats; MAX_TINS],
}

/// Counters of one tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TinStats {
    /// Rate up to which the tin has its priority; zero if unlimited.
    pub threshold_rate: Rate,
    /// Bytes that came in (`tc` calls them sent).
    pub sent_bytes: u64,
    /// Packets that came in.
    pub sent_packets: u64,
    /// Bytes queued.
    pub backlog_bytes: u64,
    /// Bytes of what came in and was dropped; `tc` does not know them.
    pub dropped_bytes: u64,
    /// COBALT's target in this tin.
    pub target: Span,
    /// COBALT's interval in this tin.
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

/// Name of tin `index` of `count`, in the order of `Stats::tins`, if it has one.
pub fn tin_name(count: usize, index: usize) -> Option<&'static str> {
    let names: &[&str] = match count {
        3 => &["Bulk", "Best Effort", "Voice"],
        4 => &["Bulk", "Best Effort", "Video", "Voice"],
        _ => &[],
    };
    names.get(index).copied()
}

impl OwnStats for Stats {
    fn write_below(&self, all: bool, out: &mut dyn Write) -> fmt::Result {
        let size = |bytes| shown_size(bytes, Digits::AsTc);
        let rate = |rate| shown_rate(rate, Digits::AsTc);
        let time = |time| shown_time(time, Digits::AsTc);

        let (used, limit) = (size(self.memory_used.into()), size(self.memory_limit.into()));
        writeln!(out, " memory used: {used} of {limit}")?;
        if self.overruns > 0 {
            writeln!(out, " memory overruns: {}", self.overruns)?;
        }
        writeln!(out, " capacity estimate: {}", rate(self.capacity_estimate))?;
        let (min, max) = (self.min_network_size, self.max_network_size);
        writeln!(out, " min/max network layer size: {min:>12} /{max:>8}")?;
        let (min, max) = (self.min_adj_size, self.max_adj_size);
        writeln!(out, " min/max overhead-adjusted size: {min:>8} /{max:>8}")?;
        writeln!(out, " average network hdr offset: {:>12}\n", self.avg_hdr_offset)?;

        let tins = self.tins();
        out.write_str("          ")?;
        for index in 0..tins.len() {
            match tin_name(tins.len(), index) {
                Some(name) => write!(out, " {name:>12}")?,
                None => write!(out, " {:>12}", alloc::format!("Tin {index}"))?,
            }
        }
        out.write_char('\n')?;
        row(out, "thresh", tins, |tin| rate(tin.threshold_rate))?;
        row(out, "target", tins, |tin| time(tin.target))?;
        row(out, "interval", tins, |tin| time(tin.interval))?;
        row(out, "pk_delay", tins, |tin| time(tin.peak_delay))?;
        row(out, "av_delay", tins, |tin| time(tin.avg_delay))?;
        row(out, "sp_delay", tins, |tin| time(tin.base_delay))?;
        row(out, "backlog", tins, |tin| size(tin.backlog_bytes))?;
        row(out, "pkts", tins, |tin| tin.sent_packets)?;
        row(out, "bytes", tins, |tin| tin.sent_bytes)?;
        row(out, "way_inds", tins, |tin| tin.way_indirect_hits)?;
        row(out, "way_miss", tins, |tin| tin.way_misses)?;
        row(out, "way_cols", tins, |tin| tin.way_collisions)?;
        row(out, "drops", tins, |tin| tin.drops)?;
        row(out, "marks", tins, |tin| tin.ecn_mark)?;
        row(out, "ack_drop", tins, |tin| tin.ack_drops)?;
        row(out, "sp_flows", tins, |tin| tin.sparse_flows)?;
        row(out, "bk_flows", tins, |tin| tin.bulk_flows)?;
        row(out, "un_flows", tins, |tin| tin.unresponsive_flows)?;
        row(out, "max_len", tins, |tin| tin.max_pkt_len)?;
        row(out, "quantum", tins, |tin| tin.flow_quantum)?;
        if all {
            row(out, "way_hits", tins, |tin| tin.way_direct_hits)?;
        }
        out.write_char('\n')
    }

    fn write_json(&self, all: bool, json: &mut Json<'_>) -> fmt::Result {
        json.key("memory_used")?.number(self.memory_used.into())?;
        json.key("memory_limit")?.number(self.memory_limit.into())?;
        if self.overruns > 0 {
            json.key("memory_overruns")?.number(self.overruns.into())?;
        }
        json.key("capacity_estimate")?.number(self.capacity_estimate.bytes())?;
        json.key("min_network_size")?.number(self.min_network_size.into())?;
        json.key("max_network_size")?.number(self.max_network_size.into())?;
        json.key("min_adj_size")?.number(self.min_adj_size.into())?;
        json.key("max_adj_size")?.number(self.max_adj_size.into())?;
        json.key("avg_hdr_offset")?.number(self.avg_hdr_offset.into())?;
        json.key("tins")?.begin_array()?;
        for tin in self.tins() {
            json.begin_object()?;
            for (key, value) in [
                ("threshold_rate", tin.threshold_rate.bytes()),
                ("sent_bytes", tin.sent_bytes),
                ("backlog_bytes", tin.backlog_bytes),
                ("target_us", tin.target.as_micros()),
                ("interval_us", tin.interval.as_micros()),
                ("peak_delay_us", tin.peak_delay.as_micros()),
                ("avg_delay_us", tin.avg_delay.as_micros()),
                ("base_delay_us", tin.base_delay.as_micros()),
                ("sent_packets", tin.sent_packets),
                ("way_indirect_hits", tin.way_indirect_hits.into()),
                ("way_misses", tin.way_misses.into()),
                ("way_collisions", tin.way_collisions.into()),
                ("drops", tin.drops.into()),
                ("ecn_mark", tin.ecn_mark.into()),
                ("ack_drops", tin.ack_drops.into()),
                ("sparse_flows", tin.sparse_flows.into()),
                ("bulk_flows", tin.bulk_flows.into()),
                ("unresponsive_flows", tin.unresponsive_flows.into()),
                ("max_pkt_len", tin.max_pkt_len.into()),
                ("flow_quantum", tin.flow_quantum.into()),
            ] {
                json.key(key)?.number(value)?;
            }
            if all {
                json.key("way_direct_hits")?.number(tin.way_direct_hits.into())?;
            }
            json.end_object()?;
        }
        json.end_array()
    }
}

impl Stats {
    /// Adds what another of several parallel queues counted. Of delays and sizes the extremes stay;
    /// settings are the same in both.
    pub fn join(&mut self, other: &Stats) {
        self.memory_used = self.memory_used.saturating_add(other.memory_used);
        self.memory_limit = self.memory_limit.saturating_add(other.memory_limit);
        self.overruns = self.overruns.saturating_add(other.overruns);
        self.min_network_size = self.min_network_size.min(other.min_network_size);
        self.max_network_size = self.max_network_size.max(other.max_network_size);
        self.min_adj_size = self.min_adj_size.min(other.min_adj_size);
        self.max_adj_size = self.max_adj_size.max(other.max_adj_size);
        self.avg_hdr_offset = self.avg_hdr_offset.max(other.avg_hdr_offset);
        for (tin, other) in self.tins.iter_mut().zip(&other.tins) {
            tin.join(other);
        }
    }

    /// The tins in use.
    pub(super) fn tins(&self) -> &[TinStats] {
        &self.tins[..usize::from(self.tin_count).min(self.tins.len())]
    }
}

impl TinStats {
    /// Bytes that were let go.
    pub fn released_bytes(&self) -> u64 {
        self.sent_bytes.saturating_sub(self.dropped_bytes).saturating_sub(self.backlog_bytes)
    }

    /// As [`Stats::join`].
    fn join(&mut self, other: &TinStats) {
        self.sent_bytes += other.sent_bytes;
        self.sent_packets += other.sent_packets;
        self.backlog_bytes += other.backlog_bytes;
        self.dropped_bytes += other.dropped_bytes;
        for (delay, other) in [
            (&mut self.peak_delay, other.peak_delay),
            (&mut self.avg_delay, other.avg_delay),
            (&mut self.base_delay, other.base_delay),
        ] {
            *delay = other.max(*delay);
        }
        for (count, other) in [
            (&mut self.way_direct_hits, other.way_direct_hits),
            (&mut self.way_indirect_hits, other.way_indirect_hits),
            (&mut self.way_misses, other.way_misses),
            (&mut self.way_collisions, other.way_collisions),
            (&mut self.drops, other.drops),
            (&mut self.ecn_mark, other.ecn_mark),
            (&mut self.ack_drops, other.ack_drops),
        ] {
            *count = count.wrapping_add(other);
        }
        for (flows, other) in [
            (&mut self.sparse_flows, other.sparse_flows),
            (&mut self.bulk_flows, other.bulk_flows),
            (&mut self.unresponsive_flows, other.unresponsive_flows),
        ] {
            *flows = flows.saturating_add(other);
        }
        self.max_pkt_len = self.max_pkt_len.max(other.max_pkt_len);
    }
}

/// Writes one row of the table of tins: twelve columns each.
fn row<D: fmt::Display>(
    out: &mut dyn Write,
    label: &str,
    tins: &[TinStats],
    value: impl Fn(&TinStats) -> D,
) -> fmt::Result {
    write!(out, "  {label:<8}")?;
    for tin in tins {
        write!(out, " {:>12}", value(tin))?;
    }
    out.write_char('\n')
}
