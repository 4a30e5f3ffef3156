//! The file's words to a set-up of the simulator.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::{Range, RangeInclusive};

use simnel_core::qdisc::Device;
use simnel_core::{qdisc, Rate, Span, Time};
use simnel_sim::schedule::{Step, Trace};
use simnel_sim::setup::{dash, web};
use simnel_sim::setup::{Access, Host, LineSetup, Loss, Recording, Reordering, Shaper};
use simnel_sim::setup::{MAX_DELAY, MAX_DURATION, MAX_FLOWS, MAX_SAMPLES};
use simnel_sim::{Direction, Kind, Setup, SetupError, Traffic};
use simnel_tcp::{Config, CongestionControl, EcnMode, Pacing, SlowStartExit};
use toml::Spanned;

use super::error::ScenarioError;
use super::file::{self, each, list, Amount, EcnWord, Word};
use super::values;
use crate::Files;

type Result<T> = std::result::Result<T, ScenarioError>;

/// Effective burst of Linux's htb where only `burst` is given: the ceiling's bucket of one MTU.
const HTB_BURST: u32 = 1600;
/// Round-trip time between home and Internet if nothing is said.
const DEFAULT_RTT: Span = Span::from_millis(50);
/// Longest round-trip time: half of it is a way.
const MAX_RTT: Span = Span(2 * MAX_DELAY.0);
/// A bucket that lets a bottleneck with an ordinary FIFO show bufferbloat: ns-3's and Linux's
/// default length.
const DEFAULT_QDISC: &str = "pfifo limit 1000";

/// Rows of a report: each has its histograms.
const MAX_GROUPS: usize = 1000;

/// A scenario whose words are understood, except for the disciplines.
#[derive(Clone, Debug)]
pub(super) struct Built {
    /// The set-up; its disciplines are placeholders.
    pub setup: Setup,
    /// The disciplines' words, up and down, and where they stand.
    pub qdisc: [Word; 2],
    /// The lines' rates as written.
    pub rates: [Option<String>; 2],
    /// Byte range in the file of each traffic of the set-up.
    places: Vec<Range<usize>>,
}

/// Reads everything but the disciplines.
pub(super) fn build(file: &file::File, files: Files) -> Result<Built> {
    let line = file.line.get_ref();
    let duration = values::time_up_to(&file.duration, "duration", MAX_DURATION)?;
    let warmup = values::time_or(&file.warmup, Span::ZERO)?;
    if warmup >= duration {
        let span = file.warmup.as_ref().map_or(file.duration.span(), Spanned::span);
        return Err(ScenarioError::at(
            span,
            "nothing is left after `warmup`",
            "less than `duration`",
        ));
    }
    let rtt = round_trip(&line.rtt, DEFAULT_RTT)?;
    let lines = lines(&file.line, duration, files)?;
    let mut hosts = Hosts::new(&file.hosts, rtt)?;
    let (mut traffic, mut places) = (Vec::new(), Vec::new());
    for entry in &file.traffic {
        check_times(entry.get_ref(), duration)?;
        add_traffic(entry, &mut hosts, &mut traffic)?;
        places.resize(traffic.len(), entry.span());
    }
    if traffic.is_empty() {
        let what = "the scenario has no traffic";
        return Err(ScenarioError::whole(what, "at least one [[traffic]] table"));
    }
    let interval = values::time_or(&file.interval, Span::from_secs(1))?;
    if let Some(word) = file.interval.as_ref().filter(|_| interval == Span::ZERO) {
        let what = "an interval of no length";
        return Err(ScenarioError::at(word.span(), what, "more than nothing, such as \"1s\""));
    }
    let recording = Recording { interval, windows: file.windows.unwrap_or(false) };
    let unsaid = || Spanned::new(0..0, DEFAULT_QDISC.to_string());
    let qdisc = match &file.qdisc {
        Some(words) => each(words).map(|word| word.unwrap_or_else(unsaid)),
        None => [unsaid(), unsaid()],
    };
    let word = |word: &Option<Word>| word.as_ref().map(|word| word.get_ref().clone());
    let rates =
        [word(&line.up), word(&line.down)].map(|rate| rate.filter(|rate| rate != "unlimited"));
    let setup = Setup { duration, warmup, lines, hosts: hosts.hosts, traffic, recording };
    if setup.samples() > MAX_SAMPLES {
        let span = file.interval.as_ref().map_or(file.duration.span(), Spanned::span);
        let expected = "at most 50 million values in a run, of the lines and all flows together";
        return Err(ScenarioError::at(span, "`interval` is too short for `duration`", expected));
    }
    Ok(Built { setup, qdisc, rates, places })
}

fn round_trip(word: &Option<Word>, default: Span) -> Result<Span> {
    word.as_ref().map_or(Ok(default), |word| values::time_up_to(word, "rtt", MAX_RTT))
}

fn jitter(word: &Word) -> Result<Span> {
    values::time_up_to(word, "jitter", MAX_DELAY)
}

impl Built {
    /// The whole set-up, with the file's disciplines or with `words` for both directions.
    pub fn with_qdisc(&self, words: Option<&str>) -> Result<(Setup, [String; 2])> {
        let mut setup = self.setup.clone();
        let mut names = [String::new(), String::new()];
        for direction in Direction::BOTH {
            let n = direction as usize;
            let (text, span) = match words {
                Some(words) => (words, None),
                None => {
                    let word = &self.qdisc[n];
                    (word.get_ref().as_str(), Some(word.span()).filter(|span| span.end > 0))
                }
            };
            let rate = self.rates[n].as_deref();
            let line = &mut setup.lines[n];
            line.qdisc = values::discipline(text, rate, span)?;
            // What shapes itself stands before a line without a rate of its own, unless the line
            // changes or has less: then the line is what it is, and the shaper is wrong about it.
            let constant = line.steps.is_empty() && !matches!(line.shaper, Shaper::Trace(_));
            let fits = |shaped: Rate| line.rate.is_none_or(|rate| shaped <= rate);
            if constant && line.qdisc.rate().is_some_and(fits) {
                line.rate = None;
            }
            names[n] = text.replace("{rate}", rate.unwrap_or("{rate}"));
        }
        setup.check().map_err(|error| {
            let place = match error {
                SetupError::Invalid { traffic: Some(n), .. } => self.places.get(n),
                _ => None,
            };
            ScenarioError {
                what: error.to_string(),
                expected: "a set-up that can be simulated".into(),
                span: place.filter(|span| span.end > 0).cloned(),
            }
        })?;
        Ok((setup, names))
    }
}

fn lines(place: &Spanned<file::Line>, duration: Span, files: Files) -> Result<[LineSetup; 2]> {
    let line = place.get_ref();
    let framing = match &line.framing {
        None => Default::default(),
        Some(words) => match qdisc::parse(&format!("line {}", words.get_ref())) {
            Ok(qdisc::Config::Line(params)) => params.framing,
            Ok(_) => Default::default(),
            Err(error) => {
                let expected = "framing in tc's words, such as \"docsis\" or \"overhead 34 atm\"";
                return Err(ScenarioError::at(words.span(), error.to_string(), expected));
            }
        },
    };
    let shaper = match choice(line.shaper.as_ref(), "shaper", &[("wire", false), ("htb", true)])? {
        Some(true) => Shaper::Bucket(match &line.burst {
            Some(burst) => values::small_bytes(burst)?,
            None => HTB_BURST,
        }),
        _ => Shaper::Wire,
    };
    if let Some(burst) = line.burst.as_ref().filter(|_| shaper == Shaper::Wire) {
        let what = "a burst without a bucket";
        return Err(ScenarioError::at(burst.span(), what, "`shaper = \"htb\"` beside it"));
    }
    let losses = line.loss.as_ref().map_or([None, None], each);
    let jitters = line.jitter.as_ref().map_or([None, None], each);
    let reorders = line.reorder.as_ref().map_or([None, None], each);
    let traces = line.trace.as_ref().map_or([None, None], each);
    let mut made = Vec::new();
    for direction in Direction::BOTH {
        let n = direction as usize;
        let written = [&line.up, &line.down][n];
        let rate = match (written, &traces[n]) {
            (Some(word), None) => values::rate(word)?,
            (None, Some(_)) => None,
            (Some(word), Some(_)) => {
                let what = format!("`{}` has a rate and a trace", direction.name());
                return Err(ScenarioError::at(word.span(), what, "one of them"));
            }
            (None, None) => {
                let what = format!("the line has no rate {}", direction.name());
                let expected = format!("`{} = \"20mbit\"`, for instance", direction.name());
                return Err(ScenarioError::at(place.span(), what, expected));
            }
        };
        let mut steps = Vec::new();
        for change in &line.change {
            if change.up.is_none() && change.down.is_none() {
                let what = "this change changes nothing";
                return Err(ScenarioError::at(change.at.span(), what, "`up` or `down` beside it"));
            }
            if let Some(word) = [&change.up, &change.down][n] {
                if traces[n].is_some() {
                    let what = format!("`{}` follows a trace and changes", direction.name());
                    return Err(ScenarioError::at(word.span(), what, "one of them"));
                }
                if rate.is_none() {
                    let what = format!("`{}` is unlimited and changes", direction.name());
                    let expected = "a rate to begin with, such as \"1gbit\"";
                    return Err(ScenarioError::at(word.span(), what, expected));
                }
                let after = values::time(&change.at)?;
                if after >= duration {
                    let what = "this change never comes";
                    return Err(ScenarioError::at(change.at.span(), what, "less than `duration`"));
                }
                let at = Time::ZERO + after;
                if steps.last().is_some_and(|step: &Step| step.at > at) {
                    let what = "this change comes before the one above it";
                    return Err(ScenarioError::at(change.at.span(), what, "changes in order"));
                }
                steps.push(Step { at, rate: values::changed_rate(word)? });
            }
        }
        let qdisc = qdisc::parse(DEFAULT_QDISC)
            .map_err(|error| ScenarioError::whole(error.to_string(), "pfifo"))?;
        made.push(LineSetup {
            qdisc,
            rate,
            shaper: match &traces[n] {
                Some(word) => Shaper::Trace(trace(word, files)?),
                None => shaper.clone(),
            },
            framing,
            steps,
            loss: losses[n].as_ref().map_or(Ok(Loss::None), values::loss)?,
            jitter: jitters[n].as_ref().map_or(Ok(Span::ZERO), jitter)?,
            reordering: reorders[n]
                .as_ref()
                .map_or(Ok(Reordering::default()), values::reordering)?,
            device: Device::default(),
        });
    }
    let [up, down] = <[LineSetup; 2]>::try_from(made)
        .map_err(|_| ScenarioError::whole("a line is missing", "two lines"))?;
    Ok([up, down])
}

fn trace(word: &Word, files: Files) -> Result<Trace> {
    let fail = |reason: String| {
        let what = format!("{}: {reason}", word.get_ref());
        ScenarioError::at(word.span(), what, "a file in Mahimahi's format, beside the scenario")
    };
    Trace::parse(&files(word.get_ref()).map_err(fail)?).map_err(|error| fail(error.to_string()))
}

/// The hosts and their names.
struct Hosts {
    hosts: Vec<Host>,
    /// Of each name, the hosts that it stands for.
    names: BTreeMap<String, (bool, Vec<usize>)>,
    numbers: [u32; 2],
}

impl Hosts {
    fn new(entries: &[Spanned<file::Host>], rtt: Span) -> Result<Hosts> {
        let mut hosts = Hosts { hosts: Vec::new(), names: BTreeMap::new(), numbers: [0; 2] };
        for entry in entries {
            hosts.add(entry.get_ref(), rtt)?;
        }
        // Whoever names no hosts gets one at each side.
        for (home, name) in [(true, "home"), (false, "server")] {
            if !hosts.names.values().any(|(side, _)| *side == home) {
                let delay = if home { Span::ZERO } else { Span(rtt.0 / 2) };
                hosts.push(name, home, [Access { delay, rate: None }; 2])?;
            }
        }
        Ok(hosts)
    }

    fn add(&mut self, host: &file::Host, rtt: Span) -> Result<()> {
        let sides = [("home", true), ("internet", false)];
        let home = choice(Some(&host.side), "side", &sides)? == Some(true);
        let name = host.name.get_ref();
        if self.names.contains_key(name) {
            let what = format!("there is a host `{name}` already");
            return Err(ScenarioError::at(host.name.span(), what, "another name"));
        }
        let default = if home { Span::ZERO } else { rtt };
        let delay = Span(round_trip(&host.rtt, default)?.0 / 2);
        let rates = host.rate.as_ref().map_or([None, None], each);
        let rate = |n: usize| rates[n].as_ref().map_or(Ok(None), values::rate);
        let (up, down) = (Access { delay, rate: rate(0)? }, Access { delay, rate: rate(1)? });
        // Egress leads to the bottleneck: up from home, down from the Internet.
        let access = if home { [up, down] } else { [down, up] };
        for _ in 0..bounded(&host.count, 1, 1..=60_000, "hosts")? {
            self.push(name, home, access)?;
        }
        Ok(())
    }

    fn push(&mut self, name: &str, home: bool, [egress, ingress]: [Access; 2]) -> Result<()> {
        let number = &mut self.numbers[usize::from(home)];
        *number += 1;
        // 10.1.x.y at home, 10.2.x.y on the Internet.
        let [_, _, high, low] = number.to_be_bytes();
        let address = [10, if home { 1 } else { 2 }, high, low];
        if *number > 65_000 {
            return Err(ScenarioError::whole("there are too many hosts", "at most 65000 a side"));
        }
        let index = self.hosts.len();
        self.hosts.push(Host { address, home, egress, ingress });
        self.names.entry(name.into()).or_insert((home, Vec::new())).1.push(index);
        Ok(())
    }

    /// The hosts that `words` name; all of that side if there are none.
    fn select(&self, words: Option<&file::Words>, home: bool) -> Result<Vec<usize>> {
        let Some(words) = words else {
            let side = self.names.values().filter(|(side, _)| *side == home);
            let mut all: Vec<usize> = side.flat_map(|(_, hosts)| hosts).copied().collect();
            all.sort_unstable();
            return Ok(all);
        };
        let named = list(words);
        if named.is_empty() {
            let key = if home { "home" } else { "internet" };
            let what = format!("`{key}` names no host");
            let expected = "at least one name, or no such key: then all hosts of that side";
            return Err(ScenarioError::at(words.span(), what, expected));
        }
        let mut selected = Vec::new();
        for word in named {
            match self.names.get(word.get_ref()) {
                Some((side, hosts)) if *side == home => selected.extend(hosts),
                _ => {
                    let known = self.names.iter().filter(|(_, (side, _))| *side == home);
                    let names: Vec<&str> = known.map(|(name, _)| name.as_str()).collect();
                    let what = format!("no such host: `{}`", word.get_ref());
                    let expected = format!("one of {}", names.join(", "));
                    return Err(ScenarioError::at(word.span(), what, expected));
                }
            }
        }
        Ok(selected)
    }
}

/// Refuses what would never run.
fn check_times(entry: &file::Traffic, duration: Span) -> Result<()> {
    let start = values::time_or(&entry.start, Span::ZERO)?;
    if let Some(word) = entry.start.as_ref().filter(|_| start >= duration) {
        return Err(ScenarioError::at(word.span(), "this never starts", "less than `duration`"));
    }
    match &entry.stop {
        Some(word) if values::time(word)? <= start => {
            let what = "this stops before it starts";
            Err(ScenarioError::at(word.span(), what, "more than `start`"))
        }
        _ => Ok(()),
    }
}

fn add_traffic(
    place: &Spanned<file::Traffic>,
    hosts: &mut Hosts,
    all: &mut Vec<Traffic>,
) -> Result<()> {
    let entry = place.get_ref();
    let kind_word = entry.kind.get_ref().as_str();
    let (kind, allowed, default_direction) = kind(entry)?;
    let is_tcp = !matches!(kind, Kind::Datagrams { .. } | Kind::Ping { .. });
    for (key, span) in entry.own() {
        let has_it = allowed.contains(&key) || is_tcp && TCP_KEYS.contains(&key);
        if !has_it {
            let key = key.replace('_', "-");
            let what = format!("traffic of kind \"{kind_word}\" has no `{key}`");
            let expected = match allowed {
                [] => "no key beyond those of all traffic".to_string(),
                keys => format!("one of {}", keys.join(", ")),
            };
            return Err(ScenarioError::at(span, what, expected));
        }
    }
    let ways = [("up", UP), ("down", DOWN), ("both", &Direction::BOTH)];
    let directions =
        choice(entry.direction.as_ref(), "direction", &ways)?.unwrap_or(default_direction);
    let name = entry.name.clone().unwrap_or_else(|| kind_word.to_string());
    let home = hosts.select(entry.home.as_ref(), true)?;
    let internet = hosts.select(entry.internet.as_ref(), false)?;
    let (n, m) = (home.len(), internet.len());
    // As many pairs as make both lists come round together, within reason.
    let period = if n % m == 0 || m % n == 0 { n.max(m) } else { (n * m).min(1 << 20) };
    let count = entry.count.as_ref().map_or(1, |count| *count.get_ref());
    // Checked before anything is made for each flow.
    let flows = all.iter().map(|traffic| u64::from(traffic.count)).sum::<u64>()
        + u64::from(count) * directions.len() as u64;
    if count == 0 || flows > MAX_FLOWS {
        let span = entry.count.as_ref().map_or(place.span(), Spanned::span);
        let expected = format!("at least 1, and at most {MAX_FLOWS} in the whole scenario");
        return Err(ScenarioError::at(span, "no flows, or too many", expected));
    }
    let code_points: Vec<Word> = entry.dscp.as_ref().map_or(Vec::new(), list);
    if let Some(words) = entry.dscp.as_ref().filter(|_| code_points.is_empty()) {
        let expected = "at least one code point, or no such key: then \"BE\"";
        return Err(ScenarioError::at(words.span(), "`dscp` names no code point", expected));
    }
    let several = code_points.len();
    for direction in directions {
        for class in 0..several.max(1) {
            // Flow n has code point n modulo their number; each code point is a group.
            if all.len() >= MAX_GROUPS {
                let expected = format!("at most {MAX_GROUPS} kinds, directions and code points");
                return Err(ScenarioError::at(place.span(), "too much traffic", expected));
            }
            let share = (count as usize + several.max(1) - 1 - class) / several.max(1);
            if share == 0 {
                continue;
            }
            let mut words = vec![name.clone()];
            if several > 1 {
                words.push(code_points[class].get_ref().clone());
            }
            if directions.len() > 1 {
                words.push(direction.name().into());
            }
            all.push(Traffic {
                name: unused(words.join(" "), all),
                kind: kind.clone(),
                direction: *direction,
                pairs: (0..period.min(share))
                    .map(|flow| (class + flow * several.max(1)) % period)
                    .map(|k| (home[k % n], internet[k % m]))
                    .collect(),
                count: share as u32,
                dscp: code_points
                    .get(class)
                    .map_or(Ok(default_dscp(kind_word)), values::code_point)?,
                start: values::time_or(&entry.start, Span::ZERO)?,
                stagger: values::time_or(&entry.stagger, Span::ZERO)?,
                stop: entry.stop.as_ref().map(values::time).transpose()?,
                reading: None,
                tcp: tcp(entry)?,
            });
        }
    }
    Ok(())
}

/// `name`, or with a number behind it if some traffic is called so already.
fn unused(name: String, all: &[Traffic]) -> String {
    let taken: BTreeSet<&str> = all.iter().map(|traffic| traffic.name.as_str()).collect();
    if !taken.contains(name.as_str()) {
        return name;
    }
    let mut numbered = (2..).map(|n| format!("{name} {n}"));
    numbered.find(|name| !taken.contains(name.as_str())).unwrap_or_default()
}

/// Swarms give way; everything else is best effort unless the scenario marks it.
fn default_dscp(kind: &str) -> u8 {
    const CS1: u8 = 8;
    match kind {
        "bittorrent" => CS1,
        _ => 0,
    }
}

/// A kind, the keys that it takes, and its directions if none is given.
type KindOf = (Kind, &'static [&'static str], &'static [Direction]);

const UP: &[Direction] = &[Direction::Up];
const DOWN: &[Direction] = &[Direction::Down];

fn kind(entry: &file::Traffic) -> Result<KindOf> {
    let missing = |key: &str, example: &str| {
        let what = format!("traffic of kind \"{}\" needs `{key}`", entry.kind.get_ref());
        ScenarioError::at(entry.kind.span(), what, format!("`{key} = {example}`, for instance"))
    };
    let size = |default: u32| entry.size.as_ref().map_or(Ok(default), values::small_bytes);
    Ok(match entry.kind.get_ref().as_str() {
        "bulk" => {
            let size = entry.size.as_ref().map(values::bytes).transpose()?;
            (Kind::Bulk { size }, &["size"], DOWN)
        }
        "bittorrent" => (Kind::Bulk { size: None }, &[], &Direction::BOTH),
        "cbr" => {
            let size = size(1250)?;
            let amount = entry.rate.as_ref().ok_or_else(|| missing("rate", "\"2mbit\""))?;
            let interval = spacing(size, amount)?;
            let ports = entry.ports.as_ref().map_or(1, |ports| *ports.get_ref());
            (Kind::Datagrams { size, interval, ports }, &["size", "rate", "ports"], UP)
        }
        "voip" => {
            // RTP over UDP, 50 packets a second: 12 bytes of RTP header, and 20 ms of G.711 or two
            // 10-ms frames of G.729.
            let codecs = [("g711", 160), ("g729", 20)];
            let payload = choice(entry.codec.as_ref(), "codec", &codecs)?.unwrap_or(160);
            let (size, interval) = (payload + 12, Span::from_millis(20));
            (Kind::Datagrams { size, interval, ports: 1 }, &["codec"], &Direction::BOTH)
        }
        "ping" => {
            let protocols = [("udp", false), ("icmp", true)];
            let icmp = choice(entry.protocol.as_ref(), "protocol", &protocols)?;
            let interval = values::time_or(&entry.interval, Span::from_millis(100))?;
            let kind = Kind::Ping { size: size(64)?, interval, icmp: icmp.unwrap_or(false) };
            (kind, &["size", "interval", "protocol"], UP)
        }
        "rr" => (Kind::RequestResponse { size: size(1)? }, &["size"], UP),
        "iot" => {
            let interval = match (&entry.rate, &entry.interval) {
                (Some(rate), Some(_)) => {
                    let what = "messages have a rate and an interval";
                    return Err(ScenarioError::at(rate.span(), what, "one of them"));
                }
                (Some(rate), None) => values::frequency(rate)?,
                (None, interval) => values::time_or(interval, Span::from_millis(400))?,
            };
            (Kind::Messages { size: size(100)?, interval }, &["size", "interval", "rate"], UP)
        }
        "bursts" => {
            let size = match &entry.size {
                Some(size) => values::bytes(size)?,
                None => 1_000_000,
            };
            let pause = match &entry.pause {
                None => (Span::from_secs(5), Span::from_secs(15)),
                Some(words) => match list(words).as_slice() {
                    [one] => (values::time(one)?, values::time(one)?),
                    [low, high] => (values::time(low)?, values::time(high)?),
                    _ => {
                        let what = "this is no range";
                        let expected = "\"5s\", or [\"5s\", \"15s\"]";
                        return Err(ScenarioError::at(words.span(), what, expected));
                    }
                },
            };
            (Kind::Bursts { size, pause }, &["size", "pause"], UP)
        }
        "web" => (Kind::Web(web_params(entry)?), WEB_KEYS, DOWN),
        "dash" => (Kind::Dash(dash_params(entry)?), DASH_KEYS, DOWN),
        _ => {
            let expected = "\"bulk\", \"cbr\", \"voip\", \"ping\", \"rr\", \"web\", \"dash\", \
                            \"iot\", \"bittorrent\" or \"bursts\"";
            return Err(ScenarioError::at(entry.kind.span(), "no such kind of traffic", expected));
        }
    })
}

/// Keys of traffic over TCP.
const TCP_KEYS: &[&str] = &[
    "cc",
    "ecn",
    "slow_start",
    "pacing",
    "nagle",
    "delayed_ack",
    "tso",
    "gro",
    "mtu",
    "window",
    "initial_window",
];
const WEB_KEYS: &[&str] = &["rate", "pages", "objects", "size", "spread", "think", "reading"];
const DASH_KEYS: &[&str] = &["chunk", "ladder", "buffer", "prefill", "safety"];

/// From one datagram to the next, so that payloads make up the rate.
fn spacing(size: u32, amount: &Amount) -> Result<Span> {
    let rate = values::bit_rate(amount)?;
    let interval = u128::from(size) * 1_000_000_000 / u128::from(rate.bytes());
    match u64::try_from(interval) {
        Ok(interval) if interval >= 1_000 => Ok(Span(interval)),
        _ => {
            let what = "this rate is too high for datagrams of this size";
            Err(ScenarioError::at(amount.span(), what, "at most a datagram each microsecond"))
        }
    }
}

fn web_params(entry: &file::Traffic) -> Result<web::Params> {
    let mut params = web::Params::default();
    if let Some(rate) = &entry.rate {
        params.interval = values::frequency(rate)?;
    }
    if let Some(pages) = &entry.pages {
        params.pages = values::range(pages)?;
    }
    if let Some(objects) = &entry.objects {
        params.objects = values::range(objects)?;
    }
    if let Some(size) = &entry.size {
        params.object_size = values::bytes(size)?;
    }
    if let Some(spread) = &entry.spread {
        params.object_spread_milli = milli(spread, 4.0)?;
    }
    params.think = values::time_or(&entry.think, params.think)?;
    params.reading = values::time_or(&entry.reading, params.reading)?;
    Ok(params)
}

fn dash_params(entry: &file::Traffic) -> Result<dash::Params> {
    let mut params = dash::Params::default();
    params.chunk = values::time_or(&entry.chunk, params.chunk)?;
    params.buffer = values::time_or(&entry.buffer, params.buffer)?;
    params.prefill = values::time_or(&entry.prefill, params.prefill)?;
    if let Some(ladder) = &entry.ladder {
        let rate = |word: &Word| {
            let unlimited = || {
                let expected = "rates such as \"2mbit\"";
                ScenarioError::at(word.span(), "a film has no unlimited rate", expected)
            };
            values::rate(word)?.map(Rate::bits).ok_or_else(unlimited)
        };
        params.ladder = list(ladder).iter().map(rate).collect::<Result<_>>()?;
    }
    if let Some(safety) = &entry.safety {
        params.safety_milli = milli(safety, 1.0)?;
    }
    Ok(params)
}

/// A number as thousandths.
fn milli(number: &Spanned<f64>, most: f64) -> Result<u64> {
    let value = *number.get_ref();
    if (0.0..=most).contains(&value) {
        Ok((value * 1000.0).round() as u64)
    } else {
        Err(ScenarioError::at(number.span(), "out of range", format!("0 to {most}")))
    }
}

fn tcp(entry: &file::Traffic) -> Result<Config> {
    let mut config = Config::default();
    if entry.kind.get_ref() == "bittorrent" {
        config.congestion = CongestionControl::Ledbat;
    }
    let controls = CongestionControl::ALL.map(|control| (control.name(), control));
    if let Some(control) = choice(entry.cc.as_ref(), "congestion control", &controls)? {
        config.congestion = control;
    }
    if config.congestion == CongestionControl::Dctcp {
        config.ecn = EcnMode::Accurate;
    }
    if let Some(ecn) = &entry.ecn {
        config.ecn = match ecn.get_ref() {
            EcnWord::Switch(true) => EcnMode::On,
            EcnWord::Switch(false) => EcnMode::Off,
            EcnWord::Mode(mode) if mode == "passive" => EcnMode::Passive,
            EcnWord::Mode(mode) if mode == "accurate" => EcnMode::Accurate,
            EcnWord::Mode(_) => {
                let expected = "true, false, \"passive\" or \"accurate\"";
                return Err(ScenarioError::at(ecn.span(), "no such mode of ECN", expected));
            }
        };
    }
    let ways_out = [
        ("hystart", SlowStartExit::HyStart),
        ("hystart++", SlowStartExit::HyStartPlusPlus),
        ("loss", SlowStartExit::LossOnly),
    ];
    if let Some(exit) = choice(entry.slow_start.as_ref(), "way out of slow start", &ways_out)? {
        config.slow_start_exit = exit;
    }
    let switch =
        |key: &Option<Spanned<bool>>, default| key.as_ref().map_or(default, |on| *on.get_ref());
    if switch(&entry.pacing, false) {
        config.pacing = Pacing::On;
    }
    config.nagle = switch(&entry.nagle, config.nagle);
    config.delayed_ack = switch(&entry.delayed_ack, config.delayed_ack);
    config.tso_segments = bounded(&entry.tso, config.tso_segments, 1..=255, "segments")?;
    config.gro_segments = bounded(&entry.gro, config.gro_segments, 1..=255, "segments")?;
    config.mtu = bounded(&entry.mtu, config.mtu, 100..=1500, "bytes")?;
    if let Some(window) = &entry.window {
        config.in_flight_max = values::small_bytes(window)?;
        let segment = u32::from(config.mtu) - if config.timestamps { 52 } else { 40 };
        if (1..segment).contains(&config.in_flight_max) {
            let expected = format!("a segment of {segment} bytes at least; 0 is no limit");
            return Err(ScenarioError::at(window.span(), "nothing fits this window", expected));
        }
    }
    let initial = bounded(&entry.initial_window, config.initial_window, 1..=1000, "segments")?;
    config.initial_window = initial;
    Ok(config)
}

/// The meaning of `word` among `all`; None if nothing is said.
fn choice<T: Copy>(word: Option<&Word>, what: &str, all: &[(&str, T)]) -> Result<Option<T>> {
    let Some(word) = word else { return Ok(None) };
    let found = all.iter().find(|(name, _)| name == word.get_ref());
    found.map(|(_, meaning)| Some(*meaning)).ok_or_else(|| {
        let names: Vec<String> = all.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        let (first, last) = names.split_at(names.len() - 1);
        let expected = format!("{} or {}", first.join(", "), last.join(""));
        ScenarioError::at(word.span(), format!("no such {what}"), expected)
    })
}

/// A number within `range`; the default if nothing is said.
fn bounded<T: PartialOrd + Copy + Display>(
    number: &Option<Spanned<T>>,
    default: T,
    range: RangeInclusive<T>,
    unit: &str,
) -> Result<T> {
    match number {
        Some(number) if !range.contains(number.get_ref()) => {
            let expected = format!("{} to {} {unit}", range.start(), range.end());
            Err(ScenarioError::at(number.span(), "out of range", expected))
        }
        number => Ok(number.as_ref().map_or(default, |number| *number.get_ref())),
    }
}
