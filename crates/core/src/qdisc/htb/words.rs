//! The words of `htb` (man tc-htb), of its classes, and of what stands below them.
//!
//! One class needs no name: `htb rate 20mbit burst 15k fq_codel`. Several are said one after the
//! other, parents first, each with its discipline last:
//! `htb default 20 class 1:1 rate 10mbit class 1:10 parent 1:1 rate 2mbit ceil 10mbit codel …`.
//! Numbers of classes are `tc`'s, hexadecimal, and only the minor one counts. Defaults as in `tc`:
//! ceil is the rate, burst and cburst 1600 bytes and a nanosecond's worth.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt::{self, Write};

use super::{bucket as bucket_of, Class, Htb, Params, Stats};
use crate::framing::{Cells, Framing};
use crate::qdisc::{parse_child, Config, ConfigError, Described, Device, Managed, Names};
use crate::rate::{Arithmetic, Rate};
use crate::tc::bucket::micros;
use crate::tc::units::{hexadecimal, packet_count, shown_rate, shown_size, ValueError};
use crate::tc::{bucket, Digits, Json, Keyword, Keywords, ParseError, Problem, Value, Words};

const MINOR: Value<u16> = Value::new("a hexadecimal number, 0 to ffff", hexadecimal);
const CLASS: &str = "a class such as 1:10";
const COUNT: Value<u32> = Value::new("a number of packets, 0 to 4294967295", packet_count);
/// Bounds of numbers.
const ANY: (i64, i64) = (0, u32::MAX as i64);
const QUANTUM_RANGE: &str = "a number of bytes without a unit";
const DIVISOR_RANGE: &str = "a whole number";
const PRIO_RANGE: &str = "a whole number; from 8 on it counts as 7";
/// Number of the class that has no name.
const ONLY: u16 = 1;
/// Bytes of a burst unless told: a full frame and some.
const MTU: u32 = 1600;

/// The keywords.
const KEYWORDS: Keywords = &[
    &[
        Keyword::new("default", "MINOR", "class of packets that name none"),
        Keyword::new("r2q", "N", "quantum is rate / N, default 10"),
        Keyword::new("direct_qlen", "N", "packets that may wait unshaped"),
        Keyword::new("debug", "N", "accepted, without effect"),
        Keyword::new("class", "ID", "begins a class (ours)"),
    ],
    &[
        Keyword::new("parent", "ID", "the class above"),
        Keyword::new("rate", "RATE", "guaranteed rate"),
        Keyword::new("ceil", "RATE", "rate that is never exceeded, default rate"),
        Keyword::new("burst", "SIZE", "bytes that may be sent at once beyond the rate"),
        Keyword::new("buffer", "SIZE", "the same"),
        Keyword::new("maxburst", "SIZE", "the same"),
        Keyword::new("cburst", "SIZE", "bytes that may be sent at once beyond the ceil"),
        Keyword::new("cbuffer", "SIZE", "the same"),
        Keyword::new("cmaxburst", "SIZE", "the same"),
        Keyword::new("prio", "N", "0 is served first, 7 last"),
        Keyword::new("quantum", "N", "bytes a turn"),
        Keyword::new("mtu", "SIZE", "largest packet, for the defaults of the bursts"),
    ],
    bucket::FRAMING,
];

/// Values of a class's words read so far.
#[derive(Default)]
struct Said {
    id: u16,
    /// Number of the word that says it; zero if none did.
    place: usize,
    parent: Option<u16>,
    rate: Option<Rate>,
    ceil: Option<Rate>,
    burst: Option<u32>,
    cburst: Option<u32>,
    prio: u8,
    quantum: Option<u32>,
    mtu: Option<u32>,
    framing: Framing,
    child: Option<Config>,
}

impl Described for Params {
    const NAMES: Names = &[("htb", "a hierarchy of token buckets with disciplines below")];
    const KEYWORDS: Keywords = KEYWORDS;
    const RATE: Option<&'static str> = Some("rate");
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let (mut default, mut r2q, mut direct_qlen) = (None, Params::R2Q, None);
        let mut classes: Vec<Class> = Vec::new();
        // Words of a class that has no name may stand among those of htb.
        let mut present: Option<Said> = None;
        while let Some(word) = words.next() {
            match word {
                "default" => default = Some(words.take(&MINOR)?),
                "r2q" => r2q = (words.number(ANY, DIVISOR_RANGE)? as u32).max(1),
                "direct_qlen" => direct_qlen = Some(words.take(&COUNT)?),
                "debug" => words.value("a word", "a word", |_| Ok(()))?,
                "class" => {
                    if let Some(said) = present.take() {
                        classes.push(said.finish(words)?);
                    }
                    let id = words.value(CLASS, CLASS, class_id)?;
                    let known = classes.iter().any(|class| class.id == id);
                    if known {
                        return Err(words.error_here(Problem::Twice { keyword: "class" }));
                    }
                    present = Some(Said { id, place: words.place(), ..Said::default() });
                }
                _ => {
                    let mut said = present.take().unwrap_or_default();
                    if !said.take(word, words, &classes)? {
                        return Err(words.unknown());
                    }
                    present = Some(said);
                }
            }
        }
        if let Some(mut said) = present {
            if said.id == 0 {
                // The only class there is, unless a `class` came before it and it was named.
                (said.id, default) = (ONLY, default.or(Some(ONLY)));
            }
            classes.push(said.finish(words)?);
        }
        Ok(Params { default: default.unwrap_or(0), r2q, direct_qlen, classes })
    }

    /// As `tc` does, which has no space after the last word and shows classes elsewhere
    /// ([`write_class`]), or all of them.
    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        if digits == Digits::AsTc {
            return self.show_words(&Stats::default(), out);
        }
        write!(out, "default {:#x} r2q {} ", self.default, self.r2q)?;
        if let Some(limit) = self.direct_qlen {
            write!(out, "direct_qlen {limit} ")?;
        }
        for class in &self.classes {
            if !is_nameless(self) {
                write!(out, "class :{:x} ", class.id)?;
            }
            if let Some(parent) = class.parent {
                write!(out, "parent :{parent:x} ")?;
            }
            let [rate, ceil] = [class.rate, class.ceil].map(|rate| shown_rate(rate, digits));
            let bursts = [class.burst, class.cburst];
            let [burst, cburst] = bursts.map(|bytes| shown_size(bytes.into(), digits));
            write!(out, "rate {rate} ceil {ceil} burst {burst} cburst {cburst} ")?;
            write!(out, "prio {} ", class.prio)?;
            if let Some(quantum) = class.quantum {
                write!(out, "quantum {quantum} ")?;
            }
            bucket::write_framing(&class.framing, digits, out)?;
            if let Some(child) = &class.child {
                write!(out, "{child} ")?;
            }
        }
        Ok(())
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        self.show_json(&Stats::default(), json)
    }

    /// `tc` counts a statistic among the settings.
    fn show_words(&self, stats: &Stats, out: &mut dyn Write) -> fmt::Result {
        write!(out, "r2q {} default ", self.r2q)?;
        match self.default {
            0 => out.write_char('0')?,
            minor => write!(out, "{minor:#x}")?,
        }
        write!(out, " direct_packets_stat {}", stats.direct_packets)?;
        match self.direct_qlen {
            Some(limit) => write!(out, " direct_qlen {limit}"),
            None => Ok(()),
        }
    }

    fn show_json(&self, stats: &Stats, json: &mut Json<'_>) -> fmt::Result {
        json.key("r2q")?.number(self.r2q.into())?;
        match self.default {
            0 => json.key("default")?.string("0")?,
            minor => json.key("default")?.display(format_args!("{minor:#x}"))?,
        }
        json.key("direct_packets_stat")?.number(stats.direct_packets.into())?;
        match self.direct_qlen {
            Some(limit) => json.key("direct_qlen")?.number(limit.into()),
            None => Ok(()),
        }
    }

    fn resolve(&mut self, device: &Device) {
        self.direct_qlen.get_or_insert(device.tx_queue_len);
    }

    fn is_surely(&self, _: &Params) -> bool {
        false
    }

    fn children(&self) -> Vec<(u32, &Config)> {
        let classes = self.classes.iter();
        classes.filter_map(|class| Some((class.id.into(), class.child.as_ref()?))).collect()
    }

    fn children_mut(&mut self) -> Vec<&mut Config> {
        self.classes.iter_mut().filter_map(|class| class.child.as_mut()).collect()
    }

    fn shows_classes_apart(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Packets of no class are not shaped.
    fn rate(&self) -> Option<Rate> {
        let is_leaf = |class: &Class| !self.classes.iter().any(|of| of.parent == Some(class.id));
        self.classes.iter().find(|class| class.id == self.default && is_leaf(class))?;
        let roots = self.classes.iter().filter(|class| class.parent.is_none());
        let ceils = roots.map(|class| class.ceil.0);
        Some(Rate(ceils.fold(0, u64::saturating_add)))
    }

    /// Of one class only: several have shares of their own.
    fn with_rate(&self, rate: Rate, burst: fn(Rate) -> u32) -> Option<Params> {
        let mut params = self.clone();
        let [class] = &mut params.classes[..] else { return None };
        bucket::set_rate(&mut class.rate, &mut class.burst, rate, burst)?;
        bucket::set_rate(&mut class.ceil, &mut class.cburst, rate, burst)?;
        Some(params)
    }

    fn own_tells_flows(&self) -> bool {
        false
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(Htb::new(self, device)?))
    }
}

impl Said {
    fn take(
        &mut self,
        word: &str,
        words: &mut Words<'_>,
        classes: &[Class],
    ) -> Result<bool, ParseError> {
        match word {
            "parent" => {
                let known = |word: &str| match class_id(word) {
                    Ok(id) if !classes.iter().any(|class| class.id == id) => {
                        Err(ValueError::TooLarge)
                    }
                    id => id,
                };
                let range = "a class that was said before";
                let parent = words.value(CLASS, range, known)?;
                if levels(classes, parent) >= Params::MAX_DEPTH {
                    let range = "a class with no more than 6 above it";
                    return Err(words.error_here(Problem::OutOfRange { keyword: "parent", range }));
                }
                self.parent = Some(parent);
            }
            "rate" => bucket::take_rate(&mut self.rate, "rate", words)?,
            "ceil" => bucket::take_rate(&mut self.ceil, "ceil", words)?,
            "burst" | "buffer" | "maxburst" => self.burst = Some(bucket::size(words)?),
            "cburst" | "cbuffer" | "cmaxburst" => self.cburst = Some(bucket::size(words)?),
            "mtu" => self.mtu = Some(bucket::size(words)?),
            "prio" => self.prio = words.number(ANY, PRIO_RANGE)?.min(7) as u8,
            "quantum" => self.quantum = Some(words.number(ANY, QUANTUM_RANGE)? as u32),
            _ if bucket::take_framing(&mut self.framing, word, words)? => {}
            _ => {
                // What is below the only class may have classes itself.
                let end = (self.id != 0).then(|| words.until("class"));
                let child = parse_child(words, word)?;
                end.into_iter().for_each(|end| words.until_end(end));
                match child {
                    Some(child) => self.child = Some(child),
                    None => return Ok(false),
                }
            }
        }
        Ok(true)
    }

    fn finish(self, words: &Words<'_>) -> Result<Class, ParseError> {
        let Some(rate) = self.rate else {
            let missing = Problem::Missing { keyword: "htb class", expected: "rate RATE" };
            return Err(match self.place {
                // Without a name.
                0 => words.lacks("htb class", "rate RATE"),
                place => words.error_at(place, missing),
            });
        };
        if self.id == 0 {
            return Err(words.lacks("htb", "`class ID` before the words of the first class"));
        }
        let ceil = self.ceil.unwrap_or(rate);
        // As in tc, a zero says nothing.
        let said = |bytes: &u32| *bytes > 0;
        let burst = |rate: Rate| {
            let nanosecond = (rate.0 / 1_000_000_000).min(u32::MAX.into()) as u32;
            nanosecond.saturating_add(self.mtu.filter(said).unwrap_or(MTU))
        };
        Ok(Class {
            id: self.id,
            parent: self.parent,
            rate,
            ceil,
            burst: self.burst.filter(said).unwrap_or_else(|| burst(rate)),
            cburst: self.cburst.filter(said).unwrap_or_else(|| burst(ceil)),
            prio: self.prio,
            quantum: self.quantum,
            framing: self.framing,
            child: self.child,
        })
    }
}

/// True for the one class that words without `class` describe.
fn is_nameless(params: &Params) -> bool {
    let only = |class: &Class| class.id == ONLY && class.parent.is_none();
    params.classes.len() == 1 && params.classes.iter().all(only)
}

/// Classes above each other, from `id` up.
fn levels(classes: &[Class], id: u16) -> usize {
    let parent = |id| classes.iter().find(|class| class.id == id)?.parent;
    core::iter::successors(Some(id), |id| parent(*id)).take(Params::MAX_DEPTH).count()
}

/// The minor number of `1:10`, `:10` or `10`; zero is none.
fn class_id(word: &str) -> Result<u16, ValueError> {
    let (major, minor) = word.split_once(':').unwrap_or(("", word));
    if !major.is_empty() {
        hexadecimal(major)?;
    }
    match hexadecimal(minor)? {
        0 => Err(ValueError::Invalid),
        id => Ok(id),
    }
}

/// Writes `class` of a discipline with the handle `major:` as `tc class show` does, with a line
/// feed. `leaf` is the major number of the discipline below, if it is to be named.
pub fn write_class(
    major: u32,
    params: &Params,
    class: &Class,
    leaf: Option<u32>,
    out: &mut dyn Write,
) -> fmt::Result {
    write!(out, "class htb {major:x}:{:x} ", class.id)?;
    match class.parent {
        Some(parent) => write!(out, "parent {major:x}:{parent:x} ")?,
        None => out.write_str("root ")?,
    }
    if let Some(leaf) = leaf {
        write!(out, "leaf {leaf:x}: ")?;
    }
    if !params.classes.iter().any(|other| other.parent == Some(class.id)) {
        write!(out, "prio {} ", class.prio)?;
    }
    write!(out, "rate {}", shown_rate(class.rate, Digits::AsTc))?;
    if class.framing.overhead > 0 {
        write!(out, " overhead {}", class.framing.overhead)?;
    }
    write!(out, " ceil {}", shown_rate(class.ceil, Digits::AsTc))?;
    if class.framing.cells == Cells::Atm {
        out.write_str(" linklayer atm")?;
    }
    let shown = |rate: Rate, burst| {
        let depth = bucket_of(rate, burst, Arithmetic::LINUX).depth();
        (u128::from(rate.0) * u128::from(micros(depth)) / 1_000_000) as u64
    };
    let burst = |rate, burst| shown_size(shown(rate, burst), Digits::AsTc);
    let (burst, cburst) = (burst(class.rate, class.burst), burst(class.ceil, class.cburst));
    writeln!(out, " burst {burst} cburst {cburst} ")
}
