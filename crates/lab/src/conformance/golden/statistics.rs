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
    // What Linux since 7.3 tells for `cake_mq`: `TCA_CAKE_STATS_ACTIVE_QUEUES`.
    ("cake", "number 17"),
];

/// The same below a class.
const UNLIKE_BELOW: &[&str] = &[
    // A packet that whoever stands above has taken out to look at is among them in Linux.
    "qlen",
    "backlog",
    // What Linux's timer does meanwhile is done here at the next call.
    "prob",
    "delay",
    "avg_dq_rate",
];

/// `k=v` words of one line, as written.
pub type Values = BTreeMap<String, String>;

/// Numbers with their names.
type Figures = Vec<(String, u64)>;

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
            "app" => {
                let both = [value, mine].map(|hex| statistics(kind, hex));
                compare(kind, is_below, both, &mut text);
            }
            "options" => compare("", is_below, [value, mine].map(|hex| words(hex)), &mut text),
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

/// Writes what differs between two bodies, by name.
fn compare(kind: &str, is_below: bool, both: [Figures; 2], text: &mut String) {
    let is_unlike = |(name, _): &(String, u64)| {
        UNLIKE.contains(&(kind, name)) || (is_below && UNLIKE_BELOW.contains(&name.as_str()))
    };
    let [recorded, ours] = both.map(|mut all| {
        all.retain(|figure| !is_unlike(figure));
        all
    });
    for n in 0..recorded.len().max(ours.len()) {
        let (theirs, mine) = (recorded.get(n), ours.get(n));
        let Some((name, _)) = theirs.or(mine).filter(|_| theirs != mine) else { continue };
        // Linux's `pie` shows nanoseconds that have wrapped in 32 bits.
        let most = u64::from(u32::MAX / 1000);
        if kind == "pie" && name == "delay" && mine.is_some_and(|(_, delay)| *delay > most) {
            continue;
        }
        let show = |figure: Option<&(String, u64)>| {
            figure.map_or_else(|| "nothing".into(), |(_, value)| value.to_string())
        };
        let _ = write!(text, " {name} {}, ours {};", show(theirs), show(mine));
    }
}

/// The figures in the body of `TCA_STATS_APP` of the discipline `kind`.
fn statistics(kind: &str, hex: &str) -> Figures {
    let mut all = Vec::new();
    netlink::read_statistics(kind, &bytes(hex), &mut |figure| {
        let name = figure.name.map_or_else(|| format!("number {}", figure.number), str::to_owned);
        let part = figure.part.map_or_else(String::new, |part| format!("part {part} "));
        all.push((part + &name, figure.value));
    });
    all
}

/// The words of a body without names.
fn words(hex: &str) -> Figures {
    let bytes = bytes(hex);
    let words = bytes.chunks_exact(4).map(|word| word.try_into().expect("four bytes"));
    let named = |(n, word)| (format!("word {n}"), u32::from_ne_bytes(word).into());
    words.enumerate().map(named).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes that `hex` stands for.
fn bytes(hex: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    (0..hex.len()).step_by(2).map_while(byte).collect()
}
