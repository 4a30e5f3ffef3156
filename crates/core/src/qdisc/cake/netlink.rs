//! `cake`'s netlink attributes (`TCA_CAKE_*` in `<linux/pkt_sched.h>`).
//!
//! Linux takes some values that have no meaning of their own. Here they mean what Linux does with
//! them: an unknown tin mode is `diffserv3`, an unknown kind of cells none.

use super::{AckFilter, DiffservMode, FlowMode, Params, Stats, TinStats};
use crate::framing::Cells;
use crate::netlink::{Field, Rules, Statistic, Statistics, Table, Writer};
use crate::qdisc::netlink::Abi;
use crate::qdisc::stats::narrow;
use crate::qdisc::Class;
use crate::rate::Rate;
use crate::time::{Span, Time};

const OVERHEADS: &str = "-64 to 256";
const MPUS: &str = "0 to 256";

/// Flow modes by their bits.
const FLOW_MODES: [FlowMode; 8] = [
    FlowMode::Flowblind,
    FlowMode::Srchost,
    FlowMode::Dsthost,
    FlowMode::Hosts,
    FlowMode::Flows,
    FlowMode::DualSrchost,
    FlowMode::DualDsthost,
    FlowMode::TripleIsolate,
];

const TABLE: Table<Params> = Table {
    rules: Rules::Liberal,
    fields: &[
        Field::u64(
            "TCA_CAKE_BASE_RATE64",
            2,
            |cake| Some(cake.bandwidth.0),
            |cake, rate| cake.bandwidth = Rate(rate),
        ),
        Field::u32(
            "TCA_CAKE_FLOW_MODE",
            5,
            |cake| Some(cake.flow_mode.bits().into()),
            |cake, mode| cake.flow_mode = FLOW_MODES[mode as usize & 7],
        ),
        Field::u32(
            "TCA_CAKE_RTT",
            7,
            |cake| Some(micros(cake.rtt)),
            |cake, rtt| cake.rtt = some_time(rtt),
        ),
        Field::u32(
            "TCA_CAKE_TARGET",
            8,
            |cake| Some(micros(cake.target)),
            |cake, target| cake.target = some_time(target),
        ),
        Field::number("TCA_CAKE_MEMORY", 10, |cake| &mut cake.memlimit),
        Field::flag("TCA_CAKE_AUTORATE", 9, |cake| &mut cake.autorate_ingress),
        Field::flag("TCA_CAKE_INGRESS", 15, |cake| &mut cake.ingress),
        Field::u32(
            "TCA_CAKE_ACK_FILTER",
            16,
            |cake| Some(cake.ack_filter as u32),
            |cake, mode| {
                cake.ack_filter = match mode {
                    0 => AckFilter::Off,
                    2 => AckFilter::Aggressive,
                    _ => AckFilter::Conservative,
                }
            },
        ),
        Field::flag("TCA_CAKE_NAT", 11, |cake| &mut cake.nat),
        Field::u32(
            "TCA_CAKE_DIFFSERV_MODE",
            3,
            |cake| Some(cake.diffserv as u32),
            |cake, mode| {
                cake.diffserv = match mode {
                    1 => DiffservMode::Diffserv4,
                    2 => DiffservMode::Diffserv8,
                    3 => DiffservMode::Besteffort,
                    4 => DiffservMode::Precedence,
                    _ => DiffservMode::Diffserv3,
                }
            },
        ),
        Field::flag("TCA_CAKE_WASH", 13, |cake| &mut cake.wash),
        Field::<Params>::i32(
            "TCA_CAKE_OVERHEAD",
            6,
            |cake| Some(cake.framing.overhead.into()),
            |cake, bytes| {
                (cake.framing.overhead, cake.framing.compensate) = (bytes as i16, true);
                cake.forget_sizes = true;
            },
        )
        .taking(-64, 256, OVERHEADS),
        // Counts by being there, and after the overhead.
        Field::u32(
            "TCA_CAKE_RAW",
            12,
            |cake| (!cake.framing.compensate).then_some(0),
            |cake, _| (cake.framing.compensate, cake.forget_sizes) = (false, true),
        ),
        Field::u32(
            "TCA_CAKE_ATM",
            4,
            |cake| Some(cake.framing.cells as u32),
            |cake, cells| {
                cake.framing.cells = match cells {
                    1 => Cells::Atm,
                    2 => Cells::Ptm,
                    _ => Cells::None,
                }
            },
        ),
        Field::<Params>::u32(
            "TCA_CAKE_MPU",
            14,
            |cake| Some(cake.framing.mpu.into()),
            |cake, bytes| cake.framing.mpu = bytes as u16,
        )
        .taking(0, 256, MPUS),
        Field::flag("TCA_CAKE_SPLIT_GSO", 17, |cake| &mut cake.split_gso),
        Field::number("TCA_CAKE_FWMARK", 18, |cake| &mut cake.fwmark),
    ],
};

/// `TCA_CAKE_STATS_*`, by the keys that they have in `tc`'s JSON.
const STATISTICS: Statistics<Stats> = Statistics::Attributes(&[
    (2, Statistic::U64("capacity_estimate", |stats| stats.capacity_estimate.0)),
    (3, Statistic::U32("memory_limit", |stats| stats.memory_limit)),
    (4, Statistic::U32("memory_used", |stats| stats.memory_used)),
    (5, Statistic::U32("avg_hdr_offset", |stats| stats.avg_hdr_offset.into())),
    (7, Statistic::U32("max_network_size", |stats| stats.max_network_size.into())),
    (9, Statistic::U32("max_adj_size", |stats| stats.max_adj_size.into())),
    (6, Statistic::U32("min_network_size", |stats| stats.min_network_size.into())),
    (8, Statistic::U32("min_adj_size", |stats| stats.min_adj_size.into())),
    (10, Statistic::Parts(write_tins, |number| TIN.name(number))),
]);

/// `TCA_CAKE_TIN_STATS_*` likewise.
const TIN: Statistics<TinStats> = Statistics::Attributes(&[
    (12, Statistic::U64("threshold_rate", |tin| tin.threshold_rate.0)),
    (3, Statistic::U64("sent_bytes", |tin| tin.sent_bytes)),
    (11, Statistic::U32("backlog_bytes", |tin| narrow(tin.backlog_bytes))),
    (13, Statistic::U32("target_us", |tin| micros(tin.target))),
    (14, Statistic::U32("interval_us", |tin| micros(tin.interval))),
    (2, Statistic::U32("sent_packets", |tin| tin.sent_packets as u32)),
    (4, Statistic::U32("drops", |tin| tin.drops)),
    (8, Statistic::U32("ecn_mark", |tin| tin.ecn_mark)),
    (6, Statistic::U32("ack_drops", |tin| tin.ack_drops)),
    (18, Statistic::U32("peak_delay_us", |tin| micros(tin.peak_delay))),
    (19, Statistic::U32("avg_delay_us", |tin| micros(tin.avg_delay))),
    (20, Statistic::U32("base_delay_us", |tin| micros(tin.base_delay))),
    (15, Statistic::U32("way_indirect_hits", |tin| tin.way_indirect_hits)),
    (16, Statistic::U32("way_misses", |tin| tin.way_misses)),
    (17, Statistic::U32("way_collisions", |tin| tin.way_collisions)),
    (21, Statistic::U32("sparse_flows", |tin| tin.sparse_flows.into())),
    (22, Statistic::U32("bulk_flows", |tin| tin.bulk_flows.into())),
    (23, Statistic::U32("unresponsive_flows", |tin| tin.unresponsive_flows.into())),
    (24, Statistic::U32("max_pkt_len", |tin| tin.max_pkt_len.into())),
    (25, Statistic::U32("flow_quantum", |tin| tin.flow_quantum.into())),
]);

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read: |request, old| {
        let before = old.map(|cake| Params { forget_sizes: false, ..*cake });
        let mut cake = request.read(&TABLE, before.as_ref())?;
        // A new one has seen none.
        cake.forget_sizes &= old.is_some();
        Ok(cake)
    },
    write_options: |params, _, out| TABLE.write(params, out),
    statistics: STATISTICS,
    write_class: Some(write_class),
};

/// Microseconds in 32 bits.
fn micros(span: Span) -> u32 {
    narrow(span.as_micros())
}

/// A time of which there must be some.
fn some_time(micros: u32) -> Span {
    Span::from_micros(micros.max(1).into())
}

/// `TCA_CAKE_STATS_*` of a flow. Times are below zero as long as they are to come.
fn write_class(class: &Class, now: Time, out: &mut Writer<'_>) {
    out.u32(11, class.deficit as u32);
    out.u32(13, class.drop_next.is_some().into());
    out.u32(12, class.count);
    out.u32(15, class.p_drop);
    if class.p_drop != 0 {
        out.u32(16, now.micros_after(class.blue_timer) as u32);
    }
    if let Some(due) = class.drop_next {
        out.u32(14, now.micros_after(due) as u32);
    }
}

/// The tins in use, in a nest each.
fn write_tins(stats: &Stats, out: &mut Writer<'_>) {
    for (number, tin) in (1..).zip(stats.tins()) {
        out.nest(number, |out| TIN.write(tin, out));
    }
}
