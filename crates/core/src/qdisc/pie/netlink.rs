//! `pie`'s netlink attributes (`TCA_PIE_*` in `<linux/pkt_sched.h>`).
//!
//! Linux takes any weight; here they are bounded as by `tc`, so that no product overflows.

use super::{Params, Stats, UNIT};
use crate::netlink::{Field, Rules, Statistic, Statistics, Table};
use crate::qdisc::netlink::Abi;
use crate::qdisc::stats::narrow;
use crate::time::Span;

/// Largest weight.
pub(in crate::qdisc) const MOST_WEIGHT: i64 = 32;
pub(in crate::qdisc) const WEIGHTS: &str = "0 to 32";

const TABLE: Table<Params> = Table {
    rules: Rules::Liberal,
    fields: &[
        Field::micros("TCA_PIE_TARGET", 1, UNIT, |pie| &mut pie.aqm.target),
        Field::number("TCA_PIE_LIMIT", 2, |pie| &mut pie.limit),
        Field::micros("TCA_PIE_TUPDATE", 3, Span(1), |pie| &mut pie.aqm.tupdate),
        Field::<Params>::number("TCA_PIE_ALPHA", 4, |pie| &mut pie.aqm.alpha).taking(
            0,
            MOST_WEIGHT,
            WEIGHTS,
        ),
        Field::<Params>::number("TCA_PIE_BETA", 5, |pie| &mut pie.aqm.beta).taking(
            0,
            MOST_WEIGHT,
            WEIGHTS,
        ),
        Field::low_flag("TCA_PIE_ECN", 6, |pie| &mut pie.aqm.ecn),
        Field::low_flag("TCA_PIE_BYTEMODE", 7, |pie| &mut pie.aqm.bytemode),
        Field::low_flag("TCA_PIE_DQ_RATE_ESTIMATOR", 8, |pie| &mut pie.aqm.dq_rate_estimator),
    ],
};

/// `struct tc_pie_xstats`.
const STATISTICS: Statistics<Stats> = Statistics::Structure(&[
    // In units of 2^-64 there.
    Statistic::U64("prob", |stats| stats.probability << 8),
    Statistic::U32("delay", |stats| narrow(stats.delay.as_micros())),
    Statistic::U32("avg_dq_rate", |stats| stats.departure_rate.map_or(0, narrow)),
    Statistic::U32("dq_rate_estimating", |stats| stats.departure_rate.is_some().into()),
    Statistic::U32("packets_in", |stats| stats.packets_in),
    Statistic::U32("dropped", |stats| stats.dropped),
    Statistic::U32("overlimit", |stats| stats.overlimit),
    Statistic::U32("maxq", |stats| stats.max_queue),
    Statistic::U32("ecn_mark", |stats| stats.ecn_mark),
]);

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read: |request, old| request.read(&TABLE, old),
    write_options: |params, _, out| TABLE.write(params, out),
    statistics: STATISTICS,
    write_class: None,
};
