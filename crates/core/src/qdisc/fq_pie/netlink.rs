//! `fq_pie`'s netlink attributes (`TCA_FQ_PIE_*` in `<linux/pkt_sched.h>`).
//!
//! The number of queues is fixed while it runs, as in Linux; the words of ours change it.

use super::{Params, Stats, MIN_QUANTUM};
use crate::netlink::{Field, Rules, Statistic, Statistics, Table};
use crate::qdisc::many::MAX_FLOWS;
use crate::qdisc::netlink::Abi;
use crate::qdisc::pie::netlink::{MOST_WEIGHT, WEIGHTS};
use crate::qdisc::pie::UNIT;
use crate::time::Span;

const TABLE: Table<Params> = Table {
    rules: Rules::Strict,
    fields: &[
        Field::number("TCA_FQ_PIE_LIMIT", 1, |fq| &mut fq.queues.limit),
        Field::<Params>::number("TCA_FQ_PIE_FLOWS", 2, |fq| &mut fq.queues.flows)
            .taking(1, MAX_FLOWS as i64, "1 to 65536")
            .fixed(),
        Field::micros("TCA_FQ_PIE_TARGET", 3, UNIT, |fq| &mut fq.aqm.target),
        Field::micros("TCA_FQ_PIE_TUPDATE", 4, Span(1), |fq| &mut fq.aqm.tupdate),
        Field::<Params>::number("TCA_FQ_PIE_ALPHA", 5, |fq| &mut fq.aqm.alpha).taking(
            0,
            MOST_WEIGHT,
            WEIGHTS,
        ),
        Field::<Params>::number("TCA_FQ_PIE_BETA", 6, |fq| &mut fq.aqm.beta).taking(
            0,
            MOST_WEIGHT,
            WEIGHTS,
        ),
        Field::<Params>::u32(
            "TCA_FQ_PIE_QUANTUM",
            7,
            |fq| fq.queues.quantum,
            |fq, bytes| fq.queues.quantum = Some(bytes.max(MIN_QUANTUM)),
        )
        .within(1, 1 << 20),
        Field::number("TCA_FQ_PIE_MEMORY_LIMIT", 8, |fq| &mut fq.queues.memory_limit),
        Field::u32(
            "TCA_FQ_PIE_ECN_PROB",
            9,
            |fq| Some(fq.ecn_prob),
            // More than all is all.
            |fq, percent| fq.ecn_prob = percent.min(100),
        ),
        Field::low_flag("TCA_FQ_PIE_ECN", 10, |fq| &mut fq.aqm.ecn),
        Field::low_flag("TCA_FQ_PIE_BYTEMODE", 11, |fq| &mut fq.aqm.bytemode),
        Field::low_flag("TCA_FQ_PIE_DQ_RATE_ESTIMATOR", 12, |fq| &mut fq.aqm.dq_rate_estimator),
    ],
};

/// `struct tc_fq_pie_xstats`.
const STATISTICS: Statistics<Stats> = Statistics::Structure(&[
    Statistic::U32("packets_in", |stats| stats.pkts_in),
    Statistic::U32("dropped", |stats| stats.dropped),
    Statistic::U32("overlimit", |stats| stats.overlimit),
    Statistic::U32("overmemory", |stats| stats.overmemory),
    Statistic::U32("ecn_mark", |stats| stats.ecn_mark),
    Statistic::U32("new_flow_count", |stats| stats.new_flow_count),
    Statistic::U32("new_flows_len", |stats| stats.new_flows_len),
    Statistic::U32("old_flows_len", |stats| stats.old_flows_len),
    Statistic::U32("memory_usage", |stats| stats.memory_used),
]);

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read: |request, old| request.read(&TABLE, old),
    write_options: |params, _, out| TABLE.write(params, out),
    statistics: STATISTICS,
    write_class: None,
};
