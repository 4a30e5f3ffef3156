//! `dualpi2`'s netlink attributes (`TCA_DUALPI2_*` in `<linux/pkt_sched.h>`, Linux 6.17 and later).
//!
//! One value of Linux's is refused: ECT(0) and CE to the L queue, but not ECT(1).

use super::{Params, Stats, Step};
use crate::aqm::pi2::as_kept;
use crate::netlink::{Error, Field, Problem, Rules, Statistic, Statistics, Table};
use crate::qdisc::netlink::{Abi, Request};
use crate::qdisc::stats::narrow;
use crate::time::Span;

/// Largest weight, in units of 1/256 Hz.
const MOST_WEIGHT: i64 = i32::MAX as i64;
/// The values of `TCA_DUALPI2_ECN_MASK`.
const L4S_ECT: u8 = 1;
const ANY_ECT: u8 = 3;

const TABLE: Table<Params> = Table {
    rules: Rules::Strict,
    fields: &[
        Field::<Params>::u32(
            "TCA_DUALPI2_LIMIT",
            1,
            |dual| Some(dual.limit),
            // The default of the memory follows.
            |dual, limit| (dual.limit, dual.memlimit) = (limit, None),
        )
        .within(1, u32::MAX as i64),
        Field::<Params>::u32(
            "TCA_DUALPI2_MEMORY_LIMIT",
            2,
            |dual| dual.memlimit,
            |dual, bytes| dual.memlimit = Some(bytes),
        )
        .within(1, u32::MAX as i64),
        Field::micros("TCA_DUALPI2_TARGET", 3, Span(1), |dual| &mut dual.aqm.target),
        Field::<Params>::u32(
            "TCA_DUALPI2_TUPDATE",
            4,
            |dual| Some(narrow(dual.aqm.tupdate.as_micros())),
            |dual, period| dual.aqm.tupdate = short(period),
        )
        .within(1, u32::MAX as i64),
        Field::<Params>::u32(
            "TCA_DUALPI2_ALPHA",
            5,
            |dual| Some(narrow(as_kept(dual.aqm.alpha))),
            |dual, weight| dual.aqm.alpha = weight,
        )
        .within(1, MOST_WEIGHT),
        Field::<Params>::u32(
            "TCA_DUALPI2_BETA",
            6,
            |dual| Some(narrow(as_kept(dual.aqm.beta))),
            |dual, weight| dual.aqm.beta = weight,
        )
        .within(1, MOST_WEIGHT),
        Field::u32(
            PACKETS,
            7,
            |dual| match dual.step {
                Step::Packets(packets) => Some(packets),
                Step::Delay(_) => None,
            },
            |dual, packets| dual.step = Step::Packets(packets),
        ),
        Field::u32(
            MICROS,
            8,
            |dual| match dual.step {
                Step::Packets(_) => None,
                Step::Delay(delay) => Some(narrow(delay.as_micros())),
            },
            |dual, delay| dual.step = Step::Delay(short(delay)),
        ),
        Field::number("TCA_DUALPI2_MIN_QLEN_STEP", 9, |dual| &mut dual.min_qlen_step),
        Field::<Params>::u8(
            "TCA_DUALPI2_COUPLING",
            10,
            |dual| Some(dual.coupling.min(255) as u8),
            |dual, factor| dual.coupling = factor.into(),
        )
        .within(1, 255),
        Field::<Params>::u8(
            "TCA_DUALPI2_DROP_OVERLOAD",
            11,
            |dual| Some(dual.drop_on_overload.into()),
            |dual, on| dual.drop_on_overload = on != 0,
        )
        .within(0, 1),
        Field::<Params>::u8(
            "TCA_DUALPI2_DROP_EARLY",
            12,
            |dual| Some((!dual.drop_at_dequeue).into()),
            |dual, early| dual.drop_at_dequeue = early == 0,
        )
        .within(0, 1),
        Field::<Params>::u8(
            "TCA_DUALPI2_C_PROTECTION",
            13,
            |dual| Some(dual.classic_protection),
            |dual, percent| dual.classic_protection = percent,
        )
        .within(0, 100),
        Field::<Params>::u8(
            MASK,
            14,
            |dual| Some(if dual.any_ect { ANY_ECT } else { L4S_ECT }),
            |dual, mask| dual.any_ect = mask != L4S_ECT,
        )
        .within(1, 3),
        Field::<Params>::u8(
            "TCA_DUALPI2_SPLIT_GSO",
            15,
            |dual| Some(dual.split_gso.into()),
            |dual, on| dual.split_gso = on != 0,
        )
        .within(0, 1),
    ],
};

const PACKETS: &str = "TCA_DUALPI2_STEP_THRESH_PKTS";
const MICROS: &str = "TCA_DUALPI2_STEP_THRESH_US";
const MASK: &str = "TCA_DUALPI2_ECN_MASK";

/// `struct tc_dualpi2_xstats`.
const STATISTICS: Statistics<Stats> = Statistics::Structure(&[
    Statistic::U32("prob", |stats| stats.probability),
    Statistic::U32("delay_c", |stats| narrow(stats.delay_c.as_micros())),
    Statistic::U32("delay_l", |stats| narrow(stats.delay_l.as_micros())),
    Statistic::U32("packets_in_c", |stats| stats.packets_in_c),
    Statistic::U32("packets_in_l", |stats| stats.packets_in_l),
    Statistic::U32("maxq", |stats| stats.max_queue),
    Statistic::U32("ecn_mark", |stats| stats.ecn_mark),
    Statistic::U32("step_marks", |stats| stats.step_marks),
    Statistic::U32("credit", |stats| stats.credit as u32),
    Statistic::U32("memory_used", |stats| stats.memory_used),
    Statistic::U32("max_memory_used", |stats| stats.max_memory_used),
    Statistic::U32("memory_limit", |stats| stats.memory_limit),
]);

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read,
    write_options: |params, _, out| TABLE.write(params, out),
    statistics: STATISTICS,
    write_class: None,
};

fn read(request: &Request<'_>, old: Option<&Params>) -> Result<Params, Error> {
    let payload = request.options.map_or(&[][..], |options| options.payload);
    if payload.is_empty() {
        // Nothing is what all defaults need, but no change.
        return match old {
            None => Ok(Params::default()),
            Some(_) => {
                Err(Error { attribute: "TCA_OPTIONS", offset: 0, problem: Problem::Missing })
            }
        };
    }
    let params = request.read(&TABLE, old)?;
    let refused = |name, expected| TABLE.error(payload, name, Problem::Refused { expected });
    if TABLE.find(payload, PACKETS).is_some() && TABLE.find(payload, MICROS).is_some() {
        return Err(refused(MICROS, "either that or packets"));
    }
    match TABLE.find(payload, MASK).map(|attribute| attribute.payload) {
        None | Some([L4S_ECT | ANY_ECT]) => Ok(params),
        Some(_) => Err(refused(MASK, "1 or 3")),
    }
}

/// A time that Linux keeps in 32 bits of nanoseconds.
fn short(micros: u32) -> Span {
    Span::from_micros(micros.into()).min(Span(u32::MAX.into()))
}
