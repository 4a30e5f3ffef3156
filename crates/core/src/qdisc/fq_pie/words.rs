//! The words of `fq_pie` (man tc-fq_pie): those of fair queues and those of PIE, and `ecn_prob`.
//!
//! As in `tc`, a zero is not sent and leaves the default in force.

use alloc::boxed::Box;
use core::fmt::{self, Write};

use super::{FqPie, Params, Stats, MIN_QUANTUM};
use crate::qdisc::fq_codel::words::{take_queues, FLOWS, MEMORY_LIMIT, SIZE};
use crate::qdisc::many::Settings;
use crate::qdisc::netlink::Abi;
use crate::qdisc::pie::words::{
    write_steering, write_steering_json, write_switches, write_switches_json, AqmWords, LINUX, OURS,
};
use crate::qdisc::{Choice, ConfigError, Described, Device, Managed, Names, Needs};
use crate::tc::units::shown_size;
use crate::tc::{
    or_default, savings, units, Digits, Json, Keyword, Keywords, ParseError, Value, Words,
};

const QUANTUM: Value<u32> =
    Value::new("a SIZE such as 1514", quantum).within("a SIZE of at most 1mb");
const MAX_QUANTUM: u32 = 1 << 20;
/// One fewer than fq_codel's: Linux's tests of tc want 65536 refused, as its older kernels do.
const MOST_FLOWS: (u32, &str) = (65_535, "a number of queues, 1 to 65535");
const PERCENT: (i64, i64) = (0, 100);
const PERCENT_RANGE: &str = "a whole number of percent, 0 to 100";

/// The keywords.
const KEYWORDS: Keywords = &[
    &[
        Keyword::new("limit", "N", "packets that may be queued, default 10240"),
        FLOWS,
        Keyword::new("quantum", "SIZE", "bytes of a flow's turn, default one full frame"),
        MEMORY_LIMIT,
        Keyword::new("ecn_prob", "N", "percent up to which marks are set, default 10"),
    ],
    LINUX,
    &[savings::KEYWORD],
    OURS,
];

impl Described for Params {
    const NAMES: Names = &[("fq_pie", "fair queues whose delay PIE steers")];
    const KEYWORDS: Keywords = KEYWORDS;
    const NETLINK: Option<Abi<Params, Stats>> = Some(super::netlink::ABI);
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let default = Params::default();
        let (mut params, mut aqm) = (default, AqmWords::default());
        while let Some(word) = words.next() {
            match word {
                "quantum" => {
                    let quantum = words.take(&QUANTUM)?;
                    params.queues.quantum = (quantum > 0).then_some(quantum.max(MIN_QUANTUM));
                }
                "memory_limit" => {
                    let limit = words.take(&SIZE)?;
                    params.queues.memory_limit = or_default(limit, default.queues.memory_limit);
                }
                "ecn_prob" => {
                    let percent = words.number(PERCENT, PERCENT_RANGE)? as u32;
                    params.ecn_prob = or_default(percent, default.ecn_prob);
                }
                _ if take_queues(&mut params.queues, &default.queues, MOST_FLOWS, word, words)? => {
                }
                _ if aqm.take(word, words)? => {}
                _ => return Err(words.unknown()),
            }
        }
        Ok(Params { aqm: aqm.params(), ..params })
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        let Settings { limit, flows, quantum, memory_limit, savings } = self.queues;
        write!(out, "limit {limit}p flows {flows} ")?;
        write_steering(&self.aqm, digits, out)?;
        if let Some(quantum) = quantum {
            write!(out, "quantum {} ", shown_size(quantum.into(), digits))?;
        }
        write!(out, "memory_limit {} ", shown_size(memory_limit.into(), digits))?;
        write!(out, "ecn_prob {} ", self.ecn_prob)?;
        write_switches(&self.aqm, out)?;
        savings::write(savings, digits, out)
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        let Settings { limit, flows, quantum, memory_limit, savings } = self.queues;
        json.key("limit")?.number(limit.into())?;
        json.key("flows")?.number(flows.into())?;
        write_steering_json(&self.aqm, json)?;
        if let Some(quantum) = quantum {
            json.key("quantum")?.number(quantum.into())?;
        }
        json.key("memory_limit")?.number(memory_limit.into())?;
        json.key("ecn_prob")?.number(self.ecn_prob.into())?;
        write_switches_json(&self.aqm, json)?;
        savings::write_json(savings, json)
    }

    fn resolve(&mut self, device: &Device) {
        self.queues.quantum.get_or_insert(device.mtu);
        self.aqm.tupdate = device.tick.enough(self.aqm.tupdate);
    }

    fn own_needs(&self) -> Needs {
        Needs { choice: Choice::Queue(self.queues.flows), ..Needs::MOST }
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(FqPie::new(self, device)?))
    }
}

fn quantum(word: &str) -> Result<u32, units::ValueError> {
    match units::size(word)? {
        bytes @ 0..=MAX_QUANTUM => Ok(bytes),
        _ => Err(units::ValueError::TooLarge),
    }
}
