//! Statistics of both sides: what `tc -s` shows, as the bytes that it is told.
//!
//! A recording has lines `T stats CLASS k=v…`, one for the discipline (class 0) and one for each
//! that hangs below it. `packets`, `bytes`, `drops`, `overlimits`, `qlen` and `backlog` are those
//! of every discipline; `app` is the body of `TCA_STATS_APP` and `options` that of `TCA_OPTIONS`,
//! in hexadecimal. Ours writes the same bytes (`simnel_core::qdisc::netlink`); what a difference in
//! them means is told by name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::iter;

use simnel_core::qdisc::{netlink, Common, Device, DropReason, Managed};
use simnel_core::Time;

/// Most bytes of attributes: cake's eight tiers take some 1,700.
const ROOM: usize = 4096;

/// Fields of `TCA_STATS_APP` that are not compared, and why.
const UNLIKE: &[(&str, &str)] = &[
    // A time from now; ours knows the time of the last departure.
    ("codel", "drop_next"),
    // Without autorate-ingress it means nothing: Linux's is the rate that was set first, ours the
    // one that was set last.
    ("cake", "capacity_estimate"),
];

/// The same below a class.
const UNLIKE_BELOW: &[&str] = &[
    // A packet that whoever stands above has taken out to look at is among them in Linux.
    "qlen",
    "backlog",
    // What Linux's timer does meanwhile is done here at the next call.
    "prob",
    "prob (high)",
    "delay",
    "avg_dq_rate",
];

/// `k=v` words of one line, as written.
pub type Values = BTreeMap<String, String>;

/// Counters and settings of one discipline at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// When.
    pub time: Time,
    /// Of which look, from 1: there may be more than one at a time.
    pub look: usize,
    /// Minor number of the class that it hangs at; 0 at the root.
    pub class: u32,
    /// The figures by their names.
    pub values: Values,
}

/// Adds those of `qdisc`, which stands on `device`, and of all below it.
pub(super) fn add(all: &mut Vec<Statistics>, qdisc: &dyn Managed, device: &Device, time: Time) {
    let look = next_look(all, 0);
    let below = (0..).map_while(|n| qdisc.below(n));
    for (class, qdisc) in iter::once((0, qdisc)).chain(below) {
        let values = values(qdisc, device);
        all.push(Statistics { time, look, class: class & 0xffff, values });
    }
}

/// The look to which statistics of `class` behind all others belong: the root's begin one.
pub(super) fn next_look(all: &[Statistics], class: u32) -> usize {
    all.last().map_or(0, |last| last.look) + usize::from(class == 0)
}

fn values(qdisc: &dyn Managed, device: &Device) -> Values {
    let snapshot = qdisc.snapshot();
    let common = Common::from(&snapshot);
    // Linux does not count what a reset throws away.
    let reset = snapshot.totals.dropped[DropReason::Reset as usize];
    let mut values: Values = [
        ("packets", common.sent_packets),
        ("bytes", common.sent_bytes),
        ("drops", common.drops - reset),
        ("overlimits", common.overlimits),
        ("qlen", common.backlog.packets.into()),
        ("backlog", common.backlog.bytes),
    ]
    .into_iter()
    .map(|(name, value)| (name.into(), value.to_string()))
    .collect();
    let config = qdisc.config().resolved(device);
    if config.name() == "sfq" && reset > 0 {
        // Linux's sfq counts what a reset throws away as sent.
        values.retain(|name, _| !matches!(name.as_str(), "packets" | "bytes"));
    }
    values.insert("kind".into(), config.name().into());
    let mut room = [0; ROOM];
    if let Ok(length) = netlink::write_statistics(&snapshot, &mut room) {
        values.insert("app".into(), hex(&room[..length]));
    }
    if let Ok(length) = netlink::write_options(&config, Some(&snapshot), &mut room) {
        values.insert("options".into(), hex(&room[..length]));
    }
    if config.to_string().contains(" adaptive") {
        // Linux's `red` shows the probability that it has come to, ours the one that was set.
        values.remove("options");
    }
    values
}

/// The first of the `recorded` figures that differs from `ours`, by name; None if none does.
pub(super) fn difference(recorded: &Statistics, ours: &Statistics) -> Option<String> {
    let (mut text, is_below) = (String::new(), recorded.class != 0);
    let kind = ours.values.get("kind").map_or("", String::as_str);
    for (name, value) in &recorded.values {
        let Some(mine) = ours.values.get(name).filter(|mine| *mine != value) else { continue };
        if mine.is_empty() {
            // Ours has no netlink attributes of this discipline.
            continue;
        }
        match name.as_str() {
            "app" => parts(kind, is_below, value, mine, &mut text),
            "options" => parts("", is_below, value, mine, &mut text),
            _ if is_below && UNLIKE_BELOW.contains(&name.as_str()) => {}
            _ => {
                let _ = write!(text, " {name} {value}, ours {mine};");
            }
        }
    }
    if text.is_empty() {
        return None;
    }
    let class = recorded.class;
    Some(format!("    at {} {kind} of class {class:x}:{text}\n", recorded.time.0))
}

/// Names of the words of `TCA_STATS_APP`, where it is a structure.
fn names(kind: &str) -> &'static [&'static str] {
    match kind {
        "codel" => &[
            "maxpacket",
            "count",
            "lastcount",
            "ldelay",
            "drop_next",
            "drop_overlimit",
            "ecn_mark",
            "dropping",
            "ce_mark",
        ],
        "fq_codel" => &[
            "type",
            "maxpacket",
            "drop_overlimit",
            "ecn_mark",
            "new_flow_count",
            "new_flows_len",
            "old_flows_len",
            "ce_mark",
            "memory_usage",
            "drop_overmemory",
        ],
        "pie" => &[
            "prob",
            "prob (high)",
            "delay",
            "avg_dq_rate",
            "dq_rate_estimating",
            "packets_in",
            "dropped",
            "overlimit",
            "maxq",
            "ecn_mark",
        ],
        "fq_pie" => &[
            "packets_in",
            "dropped",
            "overlimit",
            "overmemory",
            "ecn_mark",
            "new_flow_count",
            "new_flows_len",
            "old_flows_len",
            "memory_usage",
        ],
        "dualpi2" => &[
            "prob",
            "delay_c",
            "delay_l",
            "packets_in_c",
            "packets_in_l",
            "maxq",
            "ecn_mark",
            "step_marks",
            "credit",
            "memory_used",
            "max_memory_used",
            "memory_limit",
        ],
        "red" => &["early", "pdrop", "other", "marked"],
        "sfb" => &[
            "earlydrop",
            "penaltydrop",
            "bucketdrop",
            "queuedrop",
            "childdrop",
            "marked",
            "maxqlen",
            "maxprob",
            "avgprob",
        ],
        _ => &[],
    }
}

/// Writes what differs between two bodies: words by name, or else by number of the word.
fn parts(kind: &str, is_below: bool, recorded: &str, ours: &str, text: &mut String) {
    let (mut recorded, ours) = (words(recorded), words(ours));
    if kind == "cake" {
        drop_active_queues(&mut recorded);
    }
    for n in 0..recorded.len().max(ours.len()) {
        let (theirs, mine) = (recorded.get(n), ours.get(n));
        if theirs == mine {
            continue;
        }
        let place = if kind == "cake" { cake_name(&recorded, n) } else { None };
        let name = names(kind).get(n).map(|name| (*name).into()).or(place);
        let name = name.unwrap_or_else(|| format!("word {n}"));
        // Linux's `pie` shows nanoseconds that have wrapped in 32 bits.
        let wraps = kind == "pie" && name == "delay" && mine > Some(&(u32::MAX / 1000));
        let is_unlike_below = is_below && UNLIKE_BELOW.contains(&name.as_str());
        if wraps || is_unlike_below || UNLIKE.contains(&(kind, &name)) {
            continue;
        }
        let show = |word: Option<&u32>| word.map_or_else(|| "nothing".into(), u32::to_string);
        let _ = write!(text, " {name} {}, ours {};", show(theirs), show(mine));
    }
}

/// Takes out what Linux since 7.3 tells for `cake_mq`: `TCA_CAKE_STATS_ACTIVE_QUEUES`.
fn drop_active_queues(words: &mut Vec<u32>) {
    const HEAD: u32 = 17 << 16 | 8;
    let mut at = 0;
    while let Some(head) = words.get(at) {
        if *head == HEAD {
            words.drain(at..words.len().min(at + 2));
            return;
        }
        at += (head & 0xffff).div_ceil(4).max(1) as usize;
    }
}

/// Name of the statistic of cake that the `n`-th word belongs to: `TCA_CAKE_STATS_*`, and
/// `TCA_CAKE_TIN_STATS_*` with the tier before it.
fn cake_name(words: &[u32], n: usize) -> Option<String> {
    const OWN: &[&str] = &[
        "",
        "",
        "capacity_estimate",
        "memory_limit",
        "memory_used",
        "avg_netoff",
        "min_netlen",
        "max_netlen",
        "min_adjlen",
        "max_adjlen",
        "tins",
    ];
    const OF_A_TIN: &[&str] = &[
        "",
        "",
        "sent_packets",
        "sent_bytes",
        "drops",
        "",
        "ack_drops",
        "",
        "ecn_mark",
        "",
        "",
        "backlog_bytes",
        "threshold_rate",
        "target_us",
        "interval_us",
        "way_indirect_hits",
        "way_misses",
        "way_collisions",
        "peak_delay_us",
        "avg_delay_us",
        "base_delay_us",
        "sparse_flows",
        "bulk_flows",
        "unresponsive_flows",
        "max_skblen",
        "flow_quantum",
    ];
    const TINS: u32 = 10;
    let (mut at, mut tin) = (0, None);
    // The head of an attribute is one word: its length below its number.
    while let Some(head) = words.get(at) {
        let (length, number) = (head & 0xffff, (head >> 16) & 0x3fff);
        let end = at + length.div_ceil(4).max(1) as usize;
        let is_nest = match tin {
            None => number == TINS,
            Some(None) => true,
            Some(Some(_)) => false,
        };
        if is_nest && n != at {
            tin = Some(tin.map(|_| number));
            at += 1;
            continue;
        }
        if n < end {
            let table = if tin.is_some() { OF_A_TIN } else { OWN };
            let name = table.get(number as usize).copied().unwrap_or("");
            return Some(match tin {
                Some(Some(tin)) => format!("tin{} {name}", tin - 1),
                _ => name.into(),
            });
        }
        at = end;
        // All attributes of a tier are numbered below the flow quantum, its last.
        if matches!(tin, Some(Some(_))) && number as usize + 1 == OF_A_TIN.len() {
            tin = Some(None);
        }
    }
    None
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn words(hex: &str) -> Vec<u32> {
    let word = |at: usize| {
        let digits = hex.get(at..at + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::swap_bytes)
    };
    (0..hex.len()).step_by(8).map_while(word).collect()
}
