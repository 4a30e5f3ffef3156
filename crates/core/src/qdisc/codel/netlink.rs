//! `codel`'s netlink attributes (`TCA_CODEL_*` in `<linux/pkt_sched.h>`).

use super::words::UNIT;
use super::{Params, Stats};
use crate::netlink::{Field, Rules, Table, Writer};
use crate::qdisc::netlink::Abi;
use crate::qdisc::stats::narrow;
use crate::time::Span;

const TABLE: Table<Params> = Table {
    rules: Rules::Liberal,
    fields: &[
        Field::micros("TCA_CODEL_TARGET", 1, UNIT, |codel| &mut codel.aqm.target),
        Field::number("TCA_CODEL_LIMIT", 2, |codel| &mut codel.limit),
        Field::micros("TCA_CODEL_INTERVAL", 3, UNIT, |codel| &mut codel.aqm.interval),
        Field::flag("TCA_CODEL_ECN", 4, |codel| &mut codel.aqm.ecn),
        Field::u32(
            "TCA_CODEL_CE_THRESHOLD",
            5,
            |codel| codel.aqm.ce_threshold.map(kept_micros),
            |codel, delay| codel.aqm.ce_threshold = Some(Span::from_micros(delay.into())),
        ),
    ],
};

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read: |request, old| request.read(&TABLE, old),
    write_options: |params, _, out| TABLE.write(params, out),
    write_statistics,
    nests_statistics: false,
    write_class: None,
};

/// Microseconds of a time as Linux's CoDel keeps it.
pub(in crate::qdisc) fn kept_micros(span: Span) -> u32 {
    narrow(span.floor(UNIT).as_micros())
}

/// `struct tc_codel_xstats`.
fn write_statistics(stats: &Stats, out: &mut Writer<'_>) {
    out.words(&[
        stats.max_packet,
        stats.count,
        stats.lastcount,
        narrow(stats.last_delay.as_micros()),
        stats.drop_next_us as u32,
        stats.drop_overlimit,
        stats.ecn_mark,
        stats.dropping.into(),
        stats.ce_mark,
    ]);
}
