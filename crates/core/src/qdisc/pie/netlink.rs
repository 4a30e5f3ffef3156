//! `pie`'s netlink attributes (`TCA_PIE_*` in `<linux/pkt_sched.h>`).
//!
//! Linux takes any weight; here they are bounded as by `tc`, so that no product overflows.

use super::words::UNIT;
use super::{Params, Stats};
use crate::netlink::{Field, Rules, Table, Writer};
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
        Field::flag("TCA_PIE_ECN", 6, |pie| &mut pie.aqm.ecn),
        Field::flag("TCA_PIE_BYTEMODE", 7, |pie| &mut pie.aqm.bytemode),
        Field::flag("TCA_PIE_DQ_RATE_ESTIMATOR", 8, |pie| &mut pie.aqm.dq_rate_estimator),
    ],
};

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read: |request, old| request.read(&TABLE, old),
    write_options: |params, _, out| TABLE.write(params, out),
    write_statistics,
    nests_statistics: false,
    write_class: None,
};

/// `struct tc_pie_xstats`.
fn write_statistics(stats: &Stats, out: &mut Writer<'_>) {
    // In units of 2^-64 there.
    out.bytes(&(stats.probability << 8).to_ne_bytes());
    out.words(&[
        narrow(stats.delay.as_micros()),
        stats.departure_rate.map_or(0, narrow),
        stats.departure_rate.is_some().into(),
        stats.packets_in,
        stats.dropped,
        stats.overlimit,
        stats.max_queue,
        stats.ecn_mark,
    ]);
}
