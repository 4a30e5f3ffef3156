//! `codel`'s netlink attributes (`TCA_CODEL_*` in `<linux/pkt_sched.h>`).

use super::{Params, Stats, UNIT};
use crate::netlink::{Field, Rules, Statistic, Statistics, Table};
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

/// `struct tc_codel_xstats`.
const STATISTICS: Statistics<Stats> = Statistics::Structure(&[
    Statistic::U32("maxpacket", |stats| stats.max_packet),
    Statistic::U32("count", |stats| stats.count),
    Statistic::U32("lastcount", |stats| stats.lastcount),
    Statistic::U32("ldelay", |stats| narrow(stats.last_delay.as_micros())),
    Statistic::U32("drop_next", |stats| stats.drop_next_us as u32),
    Statistic::U32("drop_overlimit", |stats| stats.drop_overlimit),
    Statistic::U32("ecn_mark", |stats| stats.ecn_mark),
    Statistic::U32("dropping", |stats| stats.dropping.into()),
    Statistic::U32("ce_mark", |stats| stats.ce_mark),
]);

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read: |request, old| request.read(&TABLE, old),
    write_options: |params, _, out| TABLE.write(params, out),
    statistics: STATISTICS,
    write_class: None,
};

/// Microseconds of a time as Linux's CoDel keeps it.
pub(in crate::qdisc) fn kept_micros(span: Span) -> u32 {
    narrow(span.floor(UNIT).as_micros())
}
