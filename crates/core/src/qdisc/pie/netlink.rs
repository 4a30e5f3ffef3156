//! `pie`'s netlink attributes (`TCA_PIE_*` in `<linux/pkt_sched.h>`), and PIE's target, which
//! `fq_pie` has as well.
//!
//! Linux takes any weight; here they are bounded as by `tc`, so that no product overflows.

use super::words::shown;
use super::{Params, Stats};
use crate::netlink::{Field, Rules, Table, Writer};
use crate::qdisc::netlink::Abi;
use crate::qdisc::stats::narrow;
use crate::tc::Digits;
use crate::time::Span;

/// Largest weight.
pub(in crate::qdisc) const MOST_WEIGHT: i64 = 32;
pub(in crate::qdisc) const WEIGHTS: &str = "0 to 32";

const TABLE: Table<Params> = Table {
    rules: Rules::Liberal,
    fields: &[
        Field::u32(
            "TCA_PIE_TARGET",
            1,
            |pie| Some(kept_micros(pie.aqm.target)),
            |pie, target| pie.aqm.target = Span::from_micros(target.into()),
        ),
        Field::u32("TCA_PIE_LIMIT", 2, |pie| Some(pie.limit), |pie, limit| pie.limit = limit),
        Field::u32(
            "TCA_PIE_TUPDATE",
            3,
            |pie| Some(narrow(pie.aqm.tupdate.as_micros())),
            |pie, period| pie.aqm.tupdate = Span::from_micros(period.into()),
        ),
        Field::<Params>::u32(
            "TCA_PIE_ALPHA",
            4,
            |pie| Some(pie.aqm.alpha),
            |pie, weight| pie.aqm.alpha = weight,
        )
        .taking(0, MOST_WEIGHT, WEIGHTS),
        Field::<Params>::u32(
            "TCA_PIE_BETA",
            5,
            |pie| Some(pie.aqm.beta),
            |pie, weight| pie.aqm.beta = weight,
        )
        .taking(0, MOST_WEIGHT, WEIGHTS),
        Field::u32(
            "TCA_PIE_ECN",
            6,
            |pie| Some(pie.aqm.ecn.into()),
            |pie, on| pie.aqm.ecn = on != 0,
        ),
        Field::u32(
            "TCA_PIE_BYTEMODE",
            7,
            |pie| Some(pie.aqm.bytemode.into()),
            |pie, on| pie.aqm.bytemode = on != 0,
        ),
        Field::u32(
            "TCA_PIE_DQ_RATE_ESTIMATOR",
            8,
            |pie| Some(pie.aqm.dq_rate_estimator.into()),
            |pie, on| pie.aqm.dq_rate_estimator = on != 0,
        ),
    ],
};

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read: |request, old| request.read(&TABLE, old),
    write_options: |params, _, out| TABLE.write(params, out),
    write_statistics,
    write_class: None,
};

/// Microseconds of a time as Linux's PIE keeps it.
pub(in crate::qdisc) fn kept_micros(span: Span) -> u32 {
    narrow(shown(span, Digits::AsTc).as_micros())
}

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
