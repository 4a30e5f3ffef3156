//! `fq_codel`'s netlink attributes (`TCA_FQ_CODEL_*` in `<linux/pkt_sched.h>`).
//!
//! The number of queues is fixed while it runs, as in Linux; the words of ours change it.

use super::{Params, Stats, MIN_QUANTUM, MOST_MEMORY};
use crate::aqm::codel::CeSelector;
use crate::netlink::{Error, Field, Rules, Statistic, Statistics, Table, Writer};
use crate::qdisc::codel::netlink::kept_micros;
use crate::qdisc::codel::UNIT;
use crate::qdisc::many::MAX_FLOWS;
use crate::qdisc::netlink::{Abi, Request};
use crate::qdisc::Class;
use crate::time::{Span, Time};

const TABLE: Table<Params> = Table {
    rules: Rules::Liberal,
    fields: &[
        Field::micros("TCA_FQ_CODEL_TARGET", 1, UNIT, |fq| &mut fq.aqm.target),
        Field::number("TCA_FQ_CODEL_LIMIT", 2, |fq| &mut fq.queues.limit),
        Field::micros("TCA_FQ_CODEL_INTERVAL", 3, UNIT, |fq| &mut fq.aqm.interval),
        Field::flag("TCA_FQ_CODEL_ECN", 4, |fq| &mut fq.aqm.ecn),
        Field::<Params>::u32(
            "TCA_FQ_CODEL_QUANTUM",
            6,
            |fq| fq.queues.quantum,
            |fq, bytes| fq.queues.quantum = Some(bytes.max(MIN_QUANTUM)),
        )
        .taking(0, 1 << 20, "at most 1048576 bytes"),
        Field::u32(
            "TCA_FQ_CODEL_DROP_BATCH_SIZE",
            8,
            |fq| Some(fq.drop_batch),
            |fq, packets| fq.drop_batch = packets.max(1),
        ),
        Field::u32(
            "TCA_FQ_CODEL_MEMORY_LIMIT",
            9,
            |fq| Some(fq.queues.memory_limit),
            |fq, bytes| fq.queues.memory_limit = bytes.min(MOST_MEMORY),
        ),
        Field::<Params>::number("TCA_FQ_CODEL_FLOWS", 5, |fq| &mut fq.queues.flows)
            .taking(1, MAX_FLOWS as i64, "1 to 65536")
            .fixed(),
        Field::u32(
            "TCA_FQ_CODEL_CE_THRESHOLD",
            7,
            |fq| fq.aqm.ce_threshold.map(kept_micros),
            |fq, delay| fq.aqm.ce_threshold = Some(Span::from_micros(delay.into())),
        ),
        Field::u8(
            "TCA_FQ_CODEL_CE_THRESHOLD_SELECTOR",
            10,
            |fq| fq.aqm.ce_threshold.map(|_| fq.aqm.ce_selector.value),
            |fq, value| fq.aqm.ce_selector.value = value,
        ),
        Field::u8(
            "TCA_FQ_CODEL_CE_THRESHOLD_MASK",
            11,
            |fq| fq.aqm.ce_threshold.map(|_| fq.aqm.ce_selector.mask),
            |fq, mask| fq.aqm.ce_selector.mask = mask,
        ),
    ],
};

/// `struct tc_fq_codel_xstats` of the discipline.
const STATISTICS: Statistics<Stats> = Statistics::Structure(&[
    // Zero is the discipline, one a flow.
    Statistic::U32("type", |_| 0),
    Statistic::U32("maxpacket", |stats| stats.maxpacket),
    Statistic::U32("drop_overlimit", |stats| stats.drop_overlimit),
    Statistic::U32("ecn_mark", |stats| stats.ecn_mark),
    Statistic::U32("new_flow_count", |stats| stats.new_flow_count),
    Statistic::U32("new_flows_len", |stats| stats.new_flows_len),
    Statistic::U32("old_flows_len", |stats| stats.old_flows_len),
    Statistic::U32("ce_mark", |stats| stats.ce_mark.0),
    Statistic::U32("memory_usage", |stats| stats.memory_used.0),
    Statistic::U32("drop_overmemory", |stats| stats.drop_overmemory.0),
]);

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read,
    write_options: |params, _, out| TABLE.write(params, out),
    statistics: STATISTICS,
    write_class: Some(write_class),
};

fn read(request: &Request<'_>, old: Option<&Params>) -> Result<Params, Error> {
    let mut params = request.read(&TABLE, old)?;
    if params.aqm.ce_threshold.is_none() || params.aqm.ce_selector.mask == 0 {
        // A mask of nothing selects all, whatever the value.
        params.aqm.ce_selector = CeSelector::default();
    }
    Ok(params)
}

/// `struct tc_fq_codel_xstats` of a flow. The delay of its last packet is not known: zero.
fn write_class(class: &Class, now: Time, out: &mut Writer<'_>) {
    const OF_A_FLOW: u32 = 1;
    out.words(&[
        OF_A_FLOW,
        class.deficit as u32,
        0,
        class.count,
        class.lastcount,
        class.drop_next.is_some().into(),
        class.drop_next.map_or(0, |due| due.micros_after(now)) as u32,
    ]);
    // The discipline's own part of it is longer.
    out.words(&[0; 3]);
}
