//! `sfb`'s netlink attribute (`TCA_SFB_PARMS` in `<linux/pkt_sched.h>`): a structure that says all,
//! also when settings change.

use super::{Params, Stats, MAX_PROB};
use crate::netlink::{Error, Field, Layout, Part, Problem, Rules, Statistic, Statistics, Table};
use crate::qdisc::netlink::{Abi, Request};
use crate::qdisc::stats::narrow;
use crate::time::Span;

/// `struct tc_sfb_qopt`.
const TABLE: Table<Params> = Table {
    rules: Rules::Liberal,
    fields: &[Field::<Params>::structure(
        "TCA_SFB_PARMS",
        1,
        Layout(&[
            Part::U32(
                |sfb| millis(sfb.rehash),
                |sfb, ms| sfb.rehash = Span::from_millis(ms.into()),
            ),
            Part::U32(|sfb| millis(sfb.db), |sfb, ms| sfb.db = Span::from_millis(ms.into())),
            Part::U32(|sfb| sfb.max, |sfb, packets| sfb.max = packets),
            Part::U32(|sfb| sfb.target, |sfb, packets| sfb.target = packets),
            Part::U32(|sfb| sfb.increment.into(), |sfb, step| sfb.increment = chance(step)),
            Part::U32(|sfb| sfb.decrement.into(), |sfb, step| sfb.decrement = chance(step)),
            Part::U32(
                |sfb| sfb.limit.unwrap_or(0),
                |sfb, limit| sfb.limit = Some(limit).filter(|limit| *limit > 0),
            ),
            Part::U32(|sfb| sfb.penalty_rate, |sfb, packets| sfb.penalty_rate = packets),
            Part::U32(|sfb| sfb.penalty_burst, |sfb, packets| sfb.penalty_burst = packets),
        ]),
    )
    .required()],
};

/// `struct tc_sfb_xstats`.
const STATISTICS: Statistics<Stats> = Statistics::Structure(&[
    Statistic::U32("earlydrop", |stats| stats.earlydrop),
    Statistic::U32("penaltydrop", |stats| stats.penaltydrop),
    Statistic::U32("bucketdrop", |stats| stats.bucketdrop),
    Statistic::U32("queuedrop", |stats| stats.queuedrop),
    Statistic::U32("childdrop", |stats| stats.childdrop),
    Statistic::U32("marked", |stats| stats.marked),
    Statistic::U32("maxqlen", |stats| stats.maxqlen),
    Statistic::U32("maxprob", |stats| stats.maxprob.0 as u32),
    Statistic::U32("avgprob", |stats| stats.avgprob.0 as u32),
]);

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read,
    write_options: |params, _, out| TABLE.write(params, out),
    statistics: STATISTICS,
    write_class: None,
};

fn read(request: &Request<'_>, _: Option<&Params>) -> Result<Params, Error> {
    if request.options.is_none() {
        // Steps of Linux itself, for those who say nothing: `tc` has others, and says them.
        return Ok(Params { increment: 66, decrement: 11, ..Params::default() });
    }
    request.read(&TABLE, None).map_err(|error| match error.problem {
        // Linux makes one number of all errors here.
        Problem::Short { expected, given } => {
            Error { problem: Problem::Length { expected, given }, ..error }
        }
        _ => error,
    })
}

fn millis(span: Span) -> u32 {
    narrow(span.as_micros() / 1000)
}

/// A step of a probability: one that is larger than all is all.
fn chance(step: u32) -> u16 {
    u16::try_from(step).unwrap_or(MAX_PROB)
}

#[cfg(test)]
mod tests {
    use crate::netlink::{Options, Writer};
    use crate::qdisc::{netlink, Config, Device};
    use crate::time::Span;

    #[test]
    fn a_structure_says_all() {
        let said = |words: [u32; 9]| {
            let mut room = [0; 40];
            let mut out = Writer::new(&mut room);
            out.nest(1, |out| out.words(&words));
            out.finish().unwrap();
            let options = Options { payload: &room, is_nested: false };
            match netlink::parse("sfb", Some(options), None, &Device::default()) {
                Ok(Config::Sfb(params)) => params,
                other => panic!("{other:?}"),
            }
        };
        let all = said([1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!((all.rehash, all.db), (Span::from_millis(1), Span::from_millis(2)));
        assert_eq!((all.max, all.target, all.increment, all.decrement), (3, 4, 5, 6));
        assert_eq!((all.limit, all.penalty_rate, all.penalty_burst), (Some(7), 8, 9));
        // Steps beyond all are all, and a limit of zero is the device's.
        let most = said([0, 0, 3, 4, 65_536, 65_535, 0, 8, 9]);
        assert_eq!((most.increment, most.decrement, most.limit), (65_535, 65_535, Some(1000)));
    }
}
