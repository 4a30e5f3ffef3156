//! `fq_pie`'s netlink attributes (`TCA_FQ_PIE_*` in `<linux/pkt_sched.h>`).
//!
//! The number of queues is fixed while it runs, as in Linux; the words of ours change it.

use super::{Params, Stats};
use crate::netlink::{Field, Rules, Table, Writer};
use crate::qdisc::many::MAX_FLOWS;
use crate::qdisc::netlink::Abi;
use crate::qdisc::pie::netlink::{MOST_WEIGHT, WEIGHTS};
use crate::qdisc::pie::words::UNIT;
use crate::time::Span;

/// Linux raises a smaller quantum to this.
const MIN_QUANTUM: u32 = 256;

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
        Field::flag("TCA_FQ_PIE_ECN", 10, |fq| &mut fq.aqm.ecn),
        Field::flag("TCA_FQ_PIE_BYTEMODE", 11, |fq| &mut fq.aqm.bytemode),
        Field::flag("TCA_FQ_PIE_DQ_RATE_ESTIMATOR", 12, |fq| &mut fq.aqm.dq_rate_estimator),
    ],
};

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read: |request, old| request.read(&TABLE, old),
    write_options: |params, _, out| TABLE.write(params, out),
    write_statistics,
    nests_statistics: false,
    write_class: None,
};

/// `struct tc_fq_pie_xstats`.
fn write_statistics(stats: &Stats, out: &mut Writer<'_>) {
    out.words(&[
        stats.pkts_in,
        stats.dropped,
        stats.overlimit,
        stats.overmemory,
        stats.ecn_mark,
        stats.new_flow_count,
        stats.new_flows_len,
        stats.old_flows_len,
        stats.memory_used,
    ]);
}
