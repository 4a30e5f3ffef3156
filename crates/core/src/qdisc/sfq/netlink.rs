//! `sfq`'s options, which are no attributes but a structure (`tc_sfq_qopt_v1` in
//! `<linux/pkt_sched.h>`, or its first part alone), with RED's numbers and counters in it.

use super::{Params, RedParams, Stats, MAX_DIVISOR};
use crate::netlink::{Error, Layout, Part, Problem, Statistics, Writer};
use crate::qdisc::netlink::{Abi, Request};
use crate::qdisc::red::netlink::{signals, Told};

/// Least and largest quantum that Linux works with.
const MIN_QUANTUM: u32 = 256;
const MAX_QUANTUM: u32 = 1 << 20;
/// Linux counts seconds in 32 bits of ticks, of which there may be a hundred a second.
const MOST_SECONDS: u32 = i32::MAX as u32 / 100;
/// RED's flags that mean something here: ecn and harddrop.
const FLAGS_OF_RED: u8 = 3;

/// The structure; zeros mean that nothing is said.
#[derive(Clone, Debug, Default)]
struct Wire {
    quantum: u32,
    perturb: u32,
    limit: u32,
    divisor: u32,
    flows: u32,
    depth: u32,
    headdrop: u32,
    red: Told,
}

/// `struct tc_sfq_qopt`.
const FIRST: Layout<Wire> = Layout(&[
    Part::U32(|wire| wire.quantum, |wire, bytes| wire.quantum = bytes),
    Part::U32(|wire| wire.perturb, |wire, seconds| wire.perturb = seconds),
    Part::U32(|wire| wire.limit, |wire, packets| wire.limit = packets),
    Part::U32(|wire| wire.divisor, |wire, buckets| wire.divisor = buckets),
    Part::U32(|wire| wire.flows, |wire, flows| wire.flows = flows),
]);

/// Fields of `struct tc_sfq_qopt_v1` behind the first part, without the counters.
const SECOND: Layout<Wire> = Layout(&[
    Part::U32(|wire| wire.depth, |wire, packets| wire.depth = packets),
    Part::U32(|wire| wire.headdrop, |wire, on| wire.headdrop = on),
    // Linux does not give it back.
    Part::U32(|_| 0, |wire, bytes| wire.red.limit = bytes),
    Part::U32(|wire| wire.red.min, |wire, bytes| wire.red.min = bytes),
    Part::U32(|wire| wire.red.max, |wire, bytes| wire.red.max = bytes),
    Part::U8(|wire| wire.red.wlog, |wire, wlog| wire.red.wlog = wlog),
    Part::U8(|wire| wire.red.plog, |wire, plog| wire.red.plog = plog),
    // Means nothing: `sfq` has no idle queues.
    Part::U8(|_| 0, |wire, scell_log| wire.red.scell_log = scell_log),
    Part::U8(|wire| wire.red.flags, |wire, flags| wire.red.flags = flags),
    Part::U32(|wire| wire.red.max_p, |wire, max_p| wire.red.max_p = max_p),
]);

/// Bytes of the counters at its end.
const COUNTERS: usize = 6 * 4;

pub(super) const ABI: Abi<Params, Option<Stats>> = Abi {
    read,
    write_options,
    // They are among the options.
    statistics: Statistics::Structure(&[]),
    // `struct tc_sfq_xstats`.
    write_class: Some(|class, _, out| out.words(&[class.deficit as u32])),
};

fn read(request: &Request<'_>, old: Option<&Params>) -> Result<Params, Error> {
    let mut params = old.map_or_else(Params::default, Params::fixed);
    let Some(options) = request.options else { return Ok(params) };
    let error = |problem| Error { attribute: "TCA_OPTIONS", offset: 0, problem };
    let refused = |expected| error(Problem::Refused { expected });
    let (expected, given) = (FIRST.width(), options.payload.len());
    let Some((first, second)) = options.payload.split_at_checked(expected) else {
        return Err(error(Problem::Length { expected, given }));
    };
    let is_whole = second.len() >= SECOND.width() + COUNTERS;
    let mut wire = Wire::default();
    FIRST.read(first, &mut wire);
    if is_whole {
        SECOND.read(second, &mut wire);
    }

    if wire.divisor > 0 && (!wire.divisor.is_power_of_two() || wire.divisor > MAX_DIVISOR) {
        return Err(refused("divisor: a power of two to 65536"));
    }
    if wire.quantum > MAX_QUANTUM {
        return Err(refused("quantum: at most 1048576 bytes"));
    }
    if wire.perturb > MOST_SECONDS {
        return Err(refused("perturb: at most 21474836 seconds"));
    }
    let said = |value: u32| Some(value).filter(|value| *value > 0);
    params.quantum = said(wire.quantum).map(|bytes| bytes.max(MIN_QUANTUM)).or(params.quantum);
    params.perturb = wire.perturb;
    params.flows = said(wire.flows).or(params.flows);
    params.divisor = said(wire.divisor).or(params.divisor);
    params.limit = said(wire.limit).or(params.limit);
    if is_whole {
        params.depth = said(wire.depth).or(params.depth);
        params.headdrop = wire.headdrop != 0;
        params.red = red(&wire.red, params.red).map_err(refused)?;
    }
    if params.effective().limit < 2 {
        return Err(refused("limit: more than 1 packet"));
    }
    Ok(params)
}

/// RED's settings: those before, with other flags, if no thresholds are given.
fn red(told: &Told, before: Option<RedParams>) -> Result<Option<RedParams>, &'static str> {
    let flags = told.flags & FLAGS_OF_RED;
    // Linux checks them also where there is to be no RED.
    told.check_weights()?;
    if told.min == 0 {
        return Ok(before.map(|mut before| {
            before.red.signals = signals(flags);
            before
        }));
    }
    told.check()?;
    let params = told.params(flags).with_weight(told.wlog.into());
    let red = params.ok_or("weight: one that min allows")?;
    Ok(Some(RedParams { limit: told.limit, red }))
}

impl Params {
    /// The same, where what follows from the rest is said: it stays when the rest changes.
    fn fixed(&self) -> Params {
        let effective = self.effective();
        Params {
            limit: Some(effective.limit),
            depth: Some(effective.depth),
            flows: Some(effective.flows),
            ..self.clone()
        }
    }
}

fn write_options(params: &Params, stats: Option<&Option<Stats>>, out: &mut Writer<'_>) {
    let effective = params.effective();
    let wire = Wire {
        quantum: params.quantum.unwrap_or(0),
        perturb: params.perturb,
        limit: effective.limit,
        divisor: effective.divisor,
        flows: effective.flows,
        depth: effective.depth,
        headdrop: params.headdrop.into(),
        red: params.red.map_or_else(Told::default, |early| Told::of(&early.red, early.limit)),
    };
    FIRST.write(&wire, out);
    SECOND.write(&wire, out);
    let stats = stats.copied().flatten().unwrap_or_default();
    out.words(&[
        stats.prob_drop,
        stats.forced_drop,
        stats.prob_mark,
        stats.forced_mark,
        stats.prob_mark_head,
        stats.forced_mark_head,
    ]);
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::netlink::Options;
    use crate::qdisc::{self, netlink, Config, Device};

    fn read(payload: &[u8], old: Option<&str>) -> Result<Params, std::string::String> {
        let old = old.map(|words| qdisc::parse(words).unwrap());
        let options = Options { payload, is_nested: false };
        match netlink::parse("sfq", Some(options), old.as_ref(), &Device::default()) {
            Ok(Config::Sfq(params)) => Ok(params),
            Ok(other) => panic!("{other}"),
            Err(error) => Err(std::format!("{error}")),
        }
    }

    /// quantum, perturb, limit, divisor, flows; and depth in the second part.
    fn request(first: [u32; 5], depth: u32) -> Vec<u8> {
        let words = first.into_iter().chain([depth]).chain([0; 6 + 6]);
        words.flat_map(u32::to_ne_bytes).collect()
    }

    #[test]
    fn numbers_have_the_bounds_of_linux() {
        for (first, fault) in [
            ([1 << 20, 0, 0, 0, 0], ""),
            ([(1 << 20) + 1, 0, 0, 0, 0], "quantum: at most 1048576 bytes"),
            ([0, 21_474_836, 0, 0, 0], ""),
            ([0, 21_474_837, 0, 0, 0], "perturb: at most 21474836 seconds"),
            ([0, 0, 0, 65_536, 0], ""),
            ([0, 0, 0, 131_072, 0], "divisor: a power of two to 65536"),
            ([0, 0, 0, 3, 0], "divisor: a power of two to 65536"),
            ([0, 0, 1, 0, 0], "limit: more than 1 packet"),
        ] {
            let said = read(&request(first, 0), None).err().unwrap_or_default();
            assert!(said.contains(fault) && said.is_empty() == fault.is_empty(), "{said}");
        }
        assert_eq!(read(&request([9, 0, 0, 0, 0], 0), None).unwrap().quantum, Some(256));
    }

    /// The second part counts if it is all there.
    #[test]
    fn a_structure_that_is_cut_off_is_its_first_part() {
        let whole = request([0; 5], 9);
        assert_eq!(whole.len(), 72);
        for (len, depth) in [(72, Some(9)), (71, None), (48, None), (20, None)] {
            assert_eq!(read(&whole[..len], None).unwrap().depth, depth, "{len}");
        }
        assert!(read(&whole[..19], None).is_err());
    }

    #[test]
    fn what_follows_from_the_rest_stays_when_the_rest_changes() {
        let words = "sfq limit 3000 flows 512 divisor 16 depth 30 quantum 300";
        for (old, limit, depth, flows) in [("sfq", 127, 127, 128), (words, 480, 30, 16)] {
            let Config::Sfq(before) = qdisc::parse(old).unwrap() else { panic!("{old}") };
            let said = Params {
                limit: Some(limit),
                depth: Some(depth),
                flows: Some(flows),
                quantum: before.quantum.or(Some(1514)),
                ..before
            };
            assert_eq!(read(&request([0; 5], 0), Some(old)), Ok(said), "{old}");
        }
    }
}
