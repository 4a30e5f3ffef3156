//! How counters look as JSON: serde's forms of types that live in `simnel-core`, which knows no
//! serde.
//!
//! Each form repeats its type's fields, so a field that is added there and forgotten here does not
//! compile. Spans are nanoseconds, rates bytes a second.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use simnel_core::qdisc::{Backlog, DropReason};
use simnel_core::tc::stats::{
    CakeStats, CodelStats, Detail, Dualpi2Stats, Figure, Figures, FqCodelStats, FqPieStats,
    HtbStats, PieStats, RedStats, SfbStats, SfqStats, Snapshot, TinStats, Totals, MAX_TINS,
};
use simnel_core::{Rate, Span};

use crate::datapath::{Counters, LATENESS_BUCKETS};

#[derive(Serialize, Deserialize)]
#[serde(remote = "Span")]
struct SpanForm(u64);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Rate")]
struct RateForm(u64);

#[derive(Serialize, Deserialize)]
#[serde(remote = "Backlog")]
struct BacklogForm {
    packets: u32,
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Totals")]
struct TotalsForm {
    enqueued_packets: u64,
    sent_packets: u64,
    sent_bytes: u64,
    dropped: [u64; DropReason::COUNT],
    marked: u64,
    overlimits: u64,
}

/// See [`Snapshot`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Snapshot")]
pub(crate) struct SnapshotForm {
    #[serde(with = "TotalsForm")]
    totals: Totals,
    #[serde(with = "BacklogForm")]
    backlog: Backlog,
    #[serde(with = "DetailForm")]
    detail: Detail,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Detail", rename_all = "snake_case")]
#[allow(clippy::large_enum_variant)] // As its original.
enum DetailForm {
    None,
    Cake(#[serde(with = "CakeStatsForm")] CakeStats),
    Codel(#[serde(with = "CodelStatsForm")] CodelStats),
    Sfq(#[serde(with = "SfqStatsForm")] SfqStats),
    FqPie(#[serde(with = "FqPieStatsForm")] FqPieStats),
    FqCodel(#[serde(with = "FqCodelStatsForm")] FqCodelStats),
    Pie(#[serde(with = "PieStatsForm")] PieStats),
    Red(#[serde(with = "RedStatsForm")] RedStats),
    Htb(#[serde(with = "HtbStatsForm")] HtbStats),
    Sfb(#[serde(with = "SfbStatsForm")] SfbStats),
    Dualpi2(#[serde(with = "Dualpi2StatsForm")] Dualpi2Stats),
    Figures(#[serde(serialize_with = "figures_out", deserialize_with = "figures_in")] Figures),
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Figure", rename_all = "snake_case")]
enum FigureForm {
    Count(u64),
    Chance(u32),
    Time(#[serde(with = "SpanForm")] Span),
    Flag(bool),
}

/// A figure with its name, under its form.
#[derive(Serialize, Deserialize)]
struct Named(String, #[serde(with = "FigureForm")] Figure);

fn figures_out<S: Serializer>(figures: &Figures, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(figures.iter().map(|(name, figure)| Named(name.into(), figure)))
}

fn figures_in<'de, D: Deserializer<'de>>(from: D) -> Result<Figures, D::Error> {
    let named = Vec::<Named>::deserialize(from)?;
    Ok(named.into_iter().map(|Named(name, figure)| (kept(name), figure)).collect())
}

/// `name` for as long as the program runs. There are few, and each is kept once.
fn kept(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let name = &*name.leak();
    names.insert(name);
    name
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "Dualpi2Stats")]
struct Dualpi2StatsForm {
    probability: u64,
    packets_in_c: u32,
    packets_in_l: u32,
    max_queue: u32,
    ecn_mark: u32,
    step_marks: u32,
    drops_c: u32,
    drops_l: u32,
    overlimit: u32,
    memory_used: u64,
    packets_c: u32,
    packets_l: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SfbStats")]
struct SfbStatsForm {
    earlydrop: u32,
    penaltydrop: u32,
    bucketdrop: u32,
    queuedrop: u32,
    marked: u32,
    maxqlen: u32,
    maxprob: u16,
    avgprob: u16,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "HtbStats")]
struct HtbStatsForm {
    direct_packets: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "RedStats")]
struct RedStatsForm {
    marked: u32,
    early: u32,
    pdrop: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CodelStats")]
struct CodelStatsForm {
    count: u32,
    lastcount: u32,
    #[serde(with = "SpanForm")]
    last_delay: Span,
    dropping: bool,
    drop_next_us: i32,
    max_packet: u32,
    ecn_mark: u32,
    drop_overlimit: u32,
    ce_mark: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FqCodelStats")]
struct FqCodelStatsForm {
    max_packet: u32,
    drop_overlimit: u32,
    ecn_mark: u32,
    ce_mark: u32,
    new_flow_count: u32,
    new_flows_len: u32,
    old_flows_len: u32,
    memory_used: u32,
    drop_overmemory: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "SfqStats")]
struct SfqStatsForm {
    prob_mark: u32,
    prob_mark_head: u32,
    prob_drop: u32,
    forced_mark: u32,
    forced_mark_head: u32,
    forced_drop: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "FqPieStats")]
struct FqPieStatsForm {
    packets_in: u32,
    overlimit: u32,
    overmemory: u32,
    dropped: u32,
    ecn_mark: u32,
    new_flow_count: u32,
    new_flows_len: u32,
    old_flows_len: u32,
    memory_used: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "PieStats")]
struct PieStatsForm {
    probability: u64,
    #[serde(with = "SpanForm")]
    delay: Span,
    departure_rate: u64,
    packets_in: u32,
    overlimit: u32,
    dropped: u32,
    max_queue: u32,
    ecn_mark: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "CakeStats")]
struct CakeStatsForm {
    memory_used: u32,
    memory_limit: u32,
    #[serde(default)]
    overruns: u32,
    #[serde(with = "RateForm")]
    capacity_estimate: Rate,
    min_network_size: u16,
    max_network_size: u16,
    min_adj_size: u16,
    max_adj_size: u16,
    avg_hdr_offset: u16,
    tin_count: u8,
    #[serde(serialize_with = "tins_out", deserialize_with = "tins_in")]
    tins: [TinStats; MAX_TINS],
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "TinStats")]
struct TinStatsForm {
    #[serde(with = "RateForm")]
    threshold_rate: Rate,
    sent_bytes: u64,
    sent_packets: u64,
    backlog_bytes: u64,
    #[serde(with = "SpanForm")]
    target: Span,
    #[serde(with = "SpanForm")]
    interval: Span,
    #[serde(with = "SpanForm")]
    peak_delay: Span,
    #[serde(with = "SpanForm")]
    avg_delay: Span,
    #[serde(with = "SpanForm")]
    base_delay: Span,
    way_direct_hits: u32,
    way_indirect_hits: u32,
    way_misses: u32,
    way_collisions: u32,
    drops: u32,
    ecn_mark: u32,
    ack_drops: u32,
    sparse_flows: u16,
    bulk_flows: u16,
    unresponsive_flows: u16,
    max_pkt_len: u16,
    flow_quantum: u16,
}

/// An array's element under its form.
#[derive(Serialize, Deserialize)]
struct Tin(#[serde(with = "TinStatsForm")] TinStats);

fn tins_out<S: Serializer>(tins: &[TinStats; MAX_TINS], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(tins.iter().map(|tin| Tin(*tin)))
}

fn tins_in<'de, D: Deserializer<'de>>(from: D) -> Result<[TinStats; MAX_TINS], D::Error> {
    let mut tins = [TinStats::default(); MAX_TINS];
    for (to, Tin(tin)) in tins.iter_mut().zip(Vec::<Tin>::deserialize(from)?) {
        *to = tin;
    }
    Ok(tins)
}

/// See [`Counters`].
#[derive(Serialize, Deserialize)]
#[serde(remote = "Counters")]
pub(crate) struct CountersForm {
    received: u64,
    released: u64,
    dropped: u64,
    marked: u64,
    washed: u64,
    unknown: u64,
    stale_verdicts: u64,
    verdict_errors: u64,
    receive_errors: u64,
    turns: u64,
    lateness: [u64; LATENESS_BUCKETS],
    #[serde(with = "SpanForm")]
    forfeited: Span,
    #[serde(with = "SpanForm")]
    cpu: Span,
    realtime: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Wrap(#[serde(with = "SnapshotForm")] Snapshot);

    #[test]
    fn a_snapshot_survives_the_wire() {
        let mut cake = CakeStats { tin_count: 3, ..CakeStats::default() };
        cake.tins[2] = TinStats { drops: 7, target: Span::from_millis(5), ..TinStats::default() };
        cake.capacity_estimate = Rate(1_250_000);
        let totals = Totals { sent_packets: 9, dropped: [1, 2, 3, 4, 5, 6], ..Totals::default() };
        let backlog = Backlog { packets: 4, bytes: 6056 };
        let figures = Figures::new([
            ("prob", Figure::Chance(7)),
            ("dropped", Figure::Count(8)),
            ("waited", Figure::Time(Span(9))),
            ("unresponsive", Figure::Flag(true)),
        ]);
        for detail in [Detail::Cake(cake), Detail::Figures(figures), Detail::None] {
            let snapshot = Snapshot { totals, backlog, detail };
            let text = serde_json::to_string(&Wrap(snapshot)).unwrap();
            assert_eq!(serde_json::from_str::<Wrap>(&text).unwrap().0, snapshot);
        }
    }
}
