//! The words of `fq_codel` (man tc-fq_codel), and ours: `savings`.
//!
//! As in `tc`, a zero is not sent and leaves the default in force, except for `memory_limit` and
//! `ce_threshold`. The kernel raises a smaller quantum to 256.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt::{self, Write};

use super::{FqCodel, Params, Stats, MIN_QUANTUM, MOST_MEMORY};
use crate::aqm::codel::CeSelector;
use crate::qdisc::codel::words::{
    take_aqm, take_selector, write_times, write_times_json, CE_SELECTOR, CE_THRESHOLD, INTERVAL,
    LIMIT, TARGET,
};
use crate::qdisc::many::{Settings, MAX_FLOWS};
use crate::qdisc::netlink::Abi;
use crate::qdisc::{
    too_small, Bypass, Choice, ConfigError, Described, Device, Managed, Names, Needs,
};
use crate::tc::units::shown_size;
use crate::tc::{
    or_default, savings, units, Digits, Json, Keyword, Keywords, ParseError, Value, Words,
};

const FLOWS_RANGE: &str = "a number of queues, 1 to 65536";
const QUANTUM: (i64, i64) = (0, 1 << 20);
const QUANTUM_RANGE: &str = "a number of bytes, 256 to 1048576";
const BATCH: (i64, i64) = (0, u32::MAX as i64);
const BATCH_RANGE: &str = "a number of packets, 1 to 4294967295";
pub(in crate::qdisc) const SIZE: Value<u32> =
    Value::new("a SIZE such as 4mb", units::size).within("a SIZE of at most 4294967295 bytes");

/// The keywords.
const KEYWORDS: Keywords = &[
    &[
        Keyword::new("limit", "N", "packets that may be queued, default 10240"),
        FLOWS,
        Keyword::new("quantum", "N", "bytes of a flow's turn, default one full frame"),
        TARGET,
        INTERVAL,
        CE_THRESHOLD,
        CE_SELECTOR,
        MEMORY_LIMIT,
        Keyword::new("drop_batch", "N", "most packets that one overflow costs, default 64"),
        Keyword::new("ecn", "", "mark ECN-capable packets instead of dropping them (default)"),
        Keyword::new("noecn", "", "drop all"),
    ],
    &[savings::KEYWORD],
];

/// Keywords of all fair queues.
pub(in crate::qdisc) const FLOWS: Keyword = Keyword::new("flows", "N", "queues, default 1024");
pub(in crate::qdisc) const MEMORY_LIMIT: Keyword =
    Keyword::new("memory_limit", "SIZE", "memory that may be used, default 32mb");

/// Takes `word` and its value into `queues`; false if it is none that fair queues share. `default`
/// is what a zero stands for.
pub(in crate::qdisc) fn take_queues(
    queues: &mut Settings,
    default: &Settings,
    (max_flows, range): (u32, &'static str),
    word: &str,
    words: &mut Words<'_>,
) -> Result<bool, ParseError> {
    match word {
        "limit" => queues.limit = or_default(words.take(&LIMIT)?, default.limit),
        "flows" => {
            let flows = words.number((0, max_flows.into()), range)? as u32;
            queues.flows = or_default(flows, default.flows);
        }
        "memory_limit" => queues.memory_limit = words.take(&SIZE)?,
        "savings" => queues.savings = Some(savings::take(words)?),
        _ => return Ok(false),
    }
    Ok(true)
}

impl Described for Params {
    const NAMES: Names = &[("fq_codel", "fair queues whose standing delay CoDel keeps short")];
    const KEYWORDS: Keywords = KEYWORDS;
    const NETLINK: Option<Abi<Params, Stats>> = Some(super::netlink::ABI);
    type Stats = Stats;

    fn parse(words: &mut Words<'_>) -> Result<Params, ParseError> {
        let default = Params::default();
        let mut params = default;
        while let Some(word) = words.next() {
            match word {
                "quantum" => {
                    let quantum = words.number(QUANTUM, QUANTUM_RANGE)? as u32;
                    params.queues.quantum = (quantum > 0).then_some(quantum.max(MIN_QUANTUM));
                }
                "drop_batch" => {
                    let batch = words.number(BATCH, BATCH_RANGE)? as u32;
                    params.drop_batch = or_default(batch, default.drop_batch);
                }
                "ce_threshold_selector" => params.aqm.ce_selector = take_selector(words)?,
                _ if take_aqm(&mut params.aqm, word, words)? => {}
                _ if take_queues(
                    &mut params.queues,
                    &default.queues,
                    (MAX_FLOWS, FLOWS_RANGE),
                    word,
                    words,
                )? => {}
                _ => return Err(words.unknown()),
            }
        }
        let memory_limit = &mut params.queues.memory_limit;
        *memory_limit = (*memory_limit).min(MOST_MEMORY);
        if params.aqm.ce_threshold.is_none() {
            params.aqm.ce_selector = CeSelector::default();
        }
        Ok(params)
    }

    fn write_words(&self, digits: Digits, out: &mut dyn Write) -> fmt::Result {
        let Settings { limit, flows, quantum, memory_limit, savings } = self.queues;
        write!(out, "limit {limit}p flows {flows} ")?;
        if let Some(quantum) = quantum {
            write!(out, "quantum {quantum} ")?;
        }
        write_times(&self.aqm, digits, out)?;
        write!(out, "memory_limit {}", shown_size(memory_limit.into(), digits))?;
        out.write_str(match (self.aqm.ecn, digits) {
            (true, _) => " ecn ",
            (false, Digits::AsTc) => " ",
            // On is the default: off must be said.
            (false, Digits::Exact) => " noecn ",
        })?;
        write!(out, "drop_batch {} ", self.drop_batch)?;
        savings::write(savings, digits, out)
    }

    fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        let Settings { limit, flows, quantum, memory_limit, savings } = self.queues;
        json.key("limit")?.number(limit.into())?;
        json.key("flows")?.number(flows.into())?;
        if let Some(quantum) = quantum {
            json.key("quantum")?.number(quantum.into())?;
        }
        write_times_json(&self.aqm, json)?;
        json.key("memory_limit")?.number(memory_limit.into())?;
        if self.aqm.ecn {
            json.key("ecn")?.boolean(true)?;
        }
        json.key("drop_batch")?.number(self.drop_batch.into())?;
        savings::write_json(savings, json)
    }

    fn resolve(&mut self, device: &Device) {
        self.queues.quantum.get_or_insert(device.mtu);
    }

    fn drops_all(&self, device: &Device) -> Option<String> {
        too_small("limit", self.queues.limit.into(), 1)
            .or_else(|| too_small("memory_limit", self.queues.memory_limit.into(), device.mtu))
    }

    fn drops_first(&self, _: &Device) -> bool {
        self.queues.limit == 0
    }

    fn own_needs(&self) -> Needs {
        let bypass = if self.queues.savings.is_none() { Bypass::Empty } else { Bypass::Never };
        Needs { bypass, choice: Choice::Queue(self.queues.flows), ..Needs::MOST }
    }

    fn build(&self, device: &Device) -> Result<Box<dyn Managed + Send>, ConfigError> {
        Ok(Box::new(FqCodel::new(self, device)?))
    }
}
