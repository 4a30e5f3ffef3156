//! `red`'s netlink attributes (`TCA_RED_*` in `<linux/pkt_sched.h>`), and RED's numbers in them,
//! which `sfq` has as well.
//!
//! `tc` tells the kernel a weight and a table; settings here are a line and a burst for which RED
//! has them. So tables that no line has are refused, as are blocks of filters (`qevent`).

use super::{Kind, Params, Stats};
use crate::aqm::red::{Law, RedParams, Signals, SHIFTS};
use crate::netlink::{
    Error, Field, Layout, Part, Problem, Rules, Statistic, Statistics, Table, Writer,
};
use crate::qdisc::netlink::{Abi, Request};
use crate::rate::Rate;

const PARMS: &str = "TCA_RED_PARMS";
const STAB: &str = "TCA_RED_STAB";
const FLAGS: &str = "TCA_RED_FLAGS";

/// Flags of RED.
const ECN: u8 = 1;
const HARDDROP: u8 = 2;
const ADAPTIVE: u8 = 4;
const NODROP: u8 = 8;
/// Those that the structure may hold.
const OLD_FLAGS: u8 = ECN | HARDDROP | ADAPTIVE;
const ALL_FLAGS: u8 = OLD_FLAGS | NODROP;

/// RED's numbers as `struct tc_red_qopt` has them, and attributes beside it.
#[derive(Clone, Debug, Default)]
pub(in crate::qdisc) struct Told {
    pub limit: u32,
    pub min: u32,
    pub max: u32,
    pub wlog: u8,
    pub plog: u8,
    pub scell_log: u8,
    pub flags: u8,
    pub max_p: u32,
    /// `TCA_RED_FLAGS`: which flags are set, and to what.
    value: u32,
    selector: u32,
}

/// `struct tc_red_qopt`.
const QOPT: Layout<Told> = Layout(&[
    Part::U32(|told| told.limit, |told, bytes| told.limit = bytes),
    Part::U32(|told| told.min, |told, bytes| told.min = bytes),
    Part::U32(|told| told.max, |told, bytes| told.max = bytes),
    Part::U8(|told| told.wlog, |told, wlog| told.wlog = wlog),
    Part::U8(|told| told.plog, |told, plog| told.plog = plog),
    Part::U8(|told| told.scell_log, |told, scell_log| told.scell_log = scell_log),
    Part::U8(|told| told.flags & OLD_FLAGS, |told, flags| told.flags = flags),
]);

/// `struct nla_bitfield32`.
const BITS: Layout<Told> = Layout(&[
    Part::U32(|told| told.value, |told, value| told.value = value),
    Part::U32(|told| told.selector, |told, selector| told.selector = selector),
]);

const TABLE: Table<Told> = Table {
    rules: Rules::Liberal,
    fields: &[
        Field::<Told>::structure(PARMS, 1, QOPT).required(),
        Field::<Told>::bytes(STAB, 2, SHIFTS).required(),
        Field::number("TCA_RED_MAX_P", 3, |told| &mut told.max_p),
        Field::<Told>::bits(FLAGS, 4, ALL_FLAGS as u32, BITS).strict(),
        Field::<Told>::u32("TCA_RED_EARLY_DROP_BLOCK", 5, |_| None, |_, _| {})
            .strict()
            .unsupported(),
        Field::<Told>::u32("TCA_RED_MARK_BLOCK", 6, |_| None, |_, _| {}).strict().unsupported(),
    ],
};

/// `struct tc_red_xstats`.
const STATISTICS: Statistics<Stats> = Statistics::Structure(&[
    Statistic::U32("early", |stats| stats.early),
    Statistic::U32("pdrop", |stats| stats.pdrop),
    Statistic::U32("other", |_| 0),
    Statistic::U32("marked", |stats| stats.marked),
]);

pub(super) const ABI: Abi<Params, Stats> = Abi {
    read,
    write_options: |params, _, out| write_options(params, out),
    statistics: STATISTICS,
    write_class: None,
};

fn read(request: &Request<'_>, old: Option<&Params>) -> Result<Params, Error> {
    let Some(options) = &request.options else {
        return Err(Error { attribute: PARMS, offset: 0, problem: Problem::Missing });
    };
    let mut told = Told::default();
    TABLE.read(options, &mut told, old.is_some())?;
    let error = |name, expected| TABLE.error(options.payload, name, Problem::Refused { expected });
    let table = TABLE.find(options.payload, STAB).and_then(|found| found.payload.first_chunk());
    let table: &[u8; SHIFTS] = table.unwrap_or(&[0; SHIFTS]);
    if table.iter().any(|shift| *shift >= 32) {
        return Err(error(STAB, "shifts of 0 to 31"));
    }
    told.check().map_err(|expected| error(PARMS, expected))?;

    let (value, selector) = match TABLE.find(options.payload, FLAGS) {
        Some(_) if told.flags != 0 => return Err(error(FLAGS, "flags here or in the structure")),
        Some(_) => (told.value as u8, told.selector as u8),
        None => (told.flags & OLD_FLAGS, OLD_FLAGS),
    };
    let before = match old.map(|params| &params.kind) {
        Some(Kind::Linux(linux)) => flags(&linux.signals, linux.adaptive),
        _ => 0,
    };
    let flags = (before & !selector) | value;
    if flags & (NODROP | ECN) == NODROP {
        return Err(error(FLAGS, "ecn beside nodrop"));
    }
    let linux = told.params(flags);
    let (wlog, scell_log) = (told.wlog.into(), told.scell_log.into());
    let linux = linux.with_table(wlog, scell_log, table);
    let linux = linux.ok_or_else(|| error(STAB, "weight and table that tc computes"))?;
    Ok(Params { limit: told.limit, kind: Kind::Linux(linux) })
}

impl Told {
    /// Linux's condition on weights that the numbers break, if they do.
    pub fn check_weights(&self) -> Result<(), &'static str> {
        let bits = |bytes: u32| u32::BITS - bytes.leading_zeros() + u32::from(self.wlog);
        if bits(self.min) >= 32 || bits(self.max) >= 32 {
            return Err("thresholds below 2^31 when weighed");
        }
        if self.scell_log >= 32 {
            return Err("a cell of less than 2^32");
        }
        Ok(())
    }

    /// Linux's condition that the numbers break, if they do.
    pub fn check(&self) -> Result<(), &'static str> {
        self.check_weights()?;
        if self.max < self.min || self.max == 0 {
            return Err("max of at least min");
        }
        // Less is nothing for a byte more.
        match u64::from(self.probability()) <= 2 * u64::from(self.delta()) {
            true => Err("probability above (max - min) / 2^31"),
            false => Ok(()),
        }
    }

    /// Bytes between the thresholds, or one, as in Linux.
    fn delta(&self) -> u32 {
        self.max.wrapping_sub(self.min).max(1)
    }

    /// The highest chance, Q0.32.
    fn probability(&self) -> u32 {
        match self.max_p {
            // Told by its logarithm, as from old versions of `tc`.
            0 => (u32::MAX >> self.plog.min(31)).wrapping_mul(self.delta()),
            max_p => max_p,
        }
    }

    /// RED's settings, but for packets, bursts and the line.
    pub fn params(&self, flags: u8) -> RedParams {
        RedParams {
            min: self.min,
            max: self.max,
            avpkt: 1000,
            burst: 0,
            bandwidth: Rate::from_bits(10_000_000),
            probability: self.probability(),
            adaptive: flags & ADAPTIVE != 0,
            signals: signals(flags),
        }
    }

    /// The numbers of `params`.
    pub fn of(params: &RedParams, limit: u32) -> Told {
        let law = Law::new(params);
        let (wlog, scell_log) = law.map_or((0, 0), |law| (law.wlog(), law.scell_log()));
        // The least power of two that takes the probability of a byte above one.
        let delta = u128::from(params.max.saturating_sub(params.min)) << 32;
        let plog = (0..32).find(|plog| u128::from(params.probability) << plog > delta);
        Told {
            limit,
            min: params.min,
            max: params.max,
            wlog: wlog as u8,
            plog: plog.unwrap_or(31),
            scell_log: scell_log as u8,
            flags: flags(&params.signals, params.adaptive),
            max_p: params.probability,
            value: flags(&params.signals, params.adaptive).into(),
            selector: ALL_FLAGS.into(),
        }
    }
}

/// Treatment of packets according to `flags`.
pub(in crate::qdisc) fn signals(flags: u8) -> Signals {
    Signals { ecn: flags & ECN != 0, harddrop: flags & HARDDROP != 0, nodrop: flags & NODROP != 0 }
}

/// Flags as Linux has them.
fn flags(signals: &Signals, adaptive: bool) -> u8 {
    [
        (signals.ecn, ECN),
        (signals.harddrop, HARDDROP),
        (adaptive, ADAPTIVE),
        (signals.nodrop, NODROP),
    ]
    .into_iter()
    .map(|(on, flag)| if on { flag } else { 0 })
    .sum()
}

/// The simulators' RED has no attributes.
fn write_options(params: &Params, out: &mut Writer<'_>) {
    if let Kind::Linux(linux) = &params.kind {
        TABLE.write(&Told::of(linux, params.limit), out);
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use crate::netlink::Options;
    use crate::qdisc::{self, netlink, Config, Device};

    /// Thresholds of 30,000 and 90,000 bytes, a weight of 2^-5.
    fn settings(more: &str) -> (Params, RedParams) {
        let words = "red limit 400000 min 30000 max 90000 avpkt 1000 burst 50 probability 0.1";
        let config = qdisc::parse(&std::format!("{words} {more}")).unwrap();
        let Config::Red(params) = config else { panic!("{config}") };
        let Kind::Linux(linux) = params.kind else { panic!("{params:?}") };
        (params, linux)
    }

    /// A request as `tc` would make it of these settings, but for what `change` changes.
    fn request(change: impl Fn(&mut Told), bits: Option<[u32; 2]>) -> Vec<u8> {
        let (params, linux) = settings("");
        let mut told = Told::of(&linux, params.limit);
        change(&mut told);
        let mut room = [0; 400];
        let mut out = Writer::new(&mut room);
        out.nest(1, |out| {
            out.words(&[told.limit, told.min, told.max]);
            out.bytes(&[told.wlog, told.plog, told.scell_log, told.flags]);
        });
        out.attribute(2, Law::new(&linux).unwrap().shifts());
        out.u32(3, told.max_p);
        if let Some(bits) = bits {
            out.nest(4, |out| out.words(&bits));
        }
        let len = out.finish().unwrap();
        room[..len].to_vec()
    }

    /// The settings that are read, or the attribute and what it should be.
    fn read(
        payload: &[u8],
        old: Option<&Params>,
    ) -> Result<RedParams, (&'static str, &'static str)> {
        let old = old.map(|old| Config::Red(*old));
        let options = Options { payload, is_nested: false };
        match netlink::parse("red", Some(options), old.as_ref(), &Device::default()) {
            Ok(Config::Red(Params { kind: Kind::Linux(linux), .. })) => Ok(linux),
            Ok(other) => panic!("{other}"),
            Err(Error { attribute, problem: Problem::Refused { expected }, .. }) => {
                Err((attribute, expected))
            }
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn numbers_are_refused_as_linux_refuses_them() {
        for (change, expected) in [
            // 90,000 has 17 bits, 30,000 has 15.
            (
                (|told| told.wlog = 15) as fn(&mut Told),
                Err((PARMS, "thresholds below 2^31 when weighed")),
            ),
            (
                |told| (told.min, told.wlog) = (90_000, 15),
                Err((PARMS, "thresholds below 2^31 when weighed")),
            ),
            (|told| told.scell_log = 32, Err((PARMS, "a cell of less than 2^32"))),
            (|told| told.max = 29_999, Err((PARMS, "max of at least min"))),
            (|told| told.max_p = 120_000, Err((PARMS, "probability above (max - min) / 2^31"))),
        ] {
            assert_eq!(read(&request(change, None), None), expected);
        }
        // The hundredth entry of the table is behind both headers and the structure.
        let mut odd = request(|_| (), None);
        odd[4 + 16 + 4 + 100] -= 1;
        assert_eq!(read(&odd, None), Err((STAB, "weight and table that tc computes")));
        // The same line and burst are found again.
        let (_, linux) = settings("");
        for (change, probability) in [
            ((|_| ()) as fn(&mut Told), linux.probability),
            (|told| told.max_p = 120_001, 120_001),
            // By its logarithm: 60,000 bytes of 2^-22 each, less one in 2^32.
            (|told| (told.max_p, told.plog) = (0, 22), 1023 * 60_000),
            // Where min is max as if a byte lay between them.
            (|told| told.max = 30_000, linux.probability),
            (|told| (told.max, told.max_p, told.plog) = (30_000, 0, 4), u32::MAX >> 4),
        ] {
            let found = read(&request(change, None), None).unwrap();
            let law = |params: &RedParams| Law::new(params).unwrap();
            assert_eq!((found.min, found.probability), (30_000, probability));
            assert_eq!(law(&found).shifts(), law(&linux).shifts());
            assert_eq!(law(&found).wlog(), law(&linux).wlog());
        }
    }

    #[test]
    fn flags_stand_in_the_structure_or_beside_it() {
        let told = |structure: u8, bits, old: Option<&str>| {
            let old = old.map(|words| settings(words).0);
            let found = read(&request(|told| told.flags = structure, bits), old.as_ref());
            found.map(|linux| flags(&linux.signals, linux.adaptive))
        };
        let refused = |expected| Err((FLAGS, expected));
        let all = Some("ecn harddrop adaptive nodrop");
        for (structure, bits, old, expected) in [
            (0, None, None, Ok(0)),
            (ECN, None, None, Ok(ECN)),
            (ECN | HARDDROP, None, None, Ok(ECN | HARDDROP)),
            (ADAPTIVE, None, None, Ok(ADAPTIVE)),
            // Not among those that the structure may hold.
            (NODROP, None, None, Ok(0)),
            (ECN | NODROP, None, None, Ok(ECN)),
            (ECN, None, all, Ok(ECN | NODROP)),
            (HARDDROP, None, all, refused("ecn beside nodrop")),
            (0, Some([9, 15]), None, Ok(ECN | NODROP)),
            (0, Some([1, 1]), Some("harddrop adaptive"), Ok(ECN | HARDDROP | ADAPTIVE)),
            (0, Some([0, 2]), all, Ok(ECN | ADAPTIVE | NODROP)),
            (0, Some([0, 15]), all, Ok(0)),
            (0, Some([0, 1]), all, refused("ecn beside nodrop")),
            (0, Some([8, 15]), None, refused("ecn beside nodrop")),
            (ECN, Some([1, 15]), None, refused("flags here or in the structure")),
            (0, Some([0, 16]), None, refused("known flags")),
            (0, Some([16, 16]), None, refused("known flags")),
            (0, Some([1, 2]), None, refused("no value that is not selected")),
        ] {
            assert_eq!(told(structure, bits, old), expected, "{structure} {bits:?} {old:?}");
        }
    }

    #[test]
    fn the_logarithm_is_the_least_that_takes_a_byte_above_one() {
        let (_, linux) = settings("");
        for (max, probability, plog) in [
            (30_000 + 65_536, 1 << 26, 23),
            (30_000 + 65_536, (1 << 26) + 1, 22),
            (30_000 + 65_537, 1 << 26, 23),
            (31_024, u32::MAX, 11),
        ] {
            let told = Told::of(&RedParams { max, probability, ..linux }, 400_000);
            assert_eq!(told.plog, plog, "{max} {probability}");
        }
    }
}
