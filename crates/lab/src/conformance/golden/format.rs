//! Reading recordings: three files each, all lines checked, errors that name file and line.
//!
//! The CSV has one event a line with trailing empty columns left off. The `.out` has one outcome a
//! line, and `# …` lines for flow hashes and final state. The JSON holds the configuration. What a
//! discipline later needs and this module does not interpret stays available as [`Values`].

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use simnel_core::rate::Release;
use simnel_core::Time;

use super::command::{self, Command};
use super::linux_hash::{flow_hash, host_hash};
use super::row::{number, parse_line, Arrival};
use super::statistics::{next_look, Statistics, Values};
use super::{Counts, Place};
use crate::files;

/// A recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {problem}", path.display(), line.map(|n| format!(":{n}")).unwrap_or_default())]
pub struct FormatError {
    /// The file.
    pub path: PathBuf,
    /// The line in it, from 1; None if the whole file is meant.
    pub line: Option<usize>,
    /// The fault in it.
    pub problem: String,
}

impl FormatError {
    /// An error about a whole file.
    pub fn whole(path: &Path, problem: impl Into<String>) -> FormatError {
        FormatError { path: path.to_owned(), line: None, problem: problem.into() }
    }
}

/// One recording, in memory.
#[derive(Clone, Debug)]
pub struct Recording {
    /// Name within its group.
    pub name: String,
    /// Its subject: the name of its directory.
    pub group: String,
    /// The `tc` words, discipline first: as written, or made from the arguments where they are
    /// written loosely.
    pub words: Vec<String>,
    /// The oracle's resolved arguments, `rate=…`, `seed=…`, `key0=…`, in their order.
    pub args: Vec<(String, String)>,
    /// The device that takes packets out.
    pub link: Link,
    /// Time at which the discipline was made.
    pub start: Time,
    /// Packets in order of arrival; the index is the packet's id.
    pub arrivals: Vec<Arrival>,
    /// Commands to the discipline between them, in its order.
    pub commands: Vec<Command>,
    /// Until when the device runs after the last arrival.
    pub end: Time,
    /// The five-tuples that occur, with their injected hashes.
    pub flows: Vec<FlowKeys>,
    /// Fate of the packets.
    pub expected: Vec<Event>,
    /// Return codes of `enqueue` other than 0.
    pub returns: Vec<ReturnCode>,
    /// Counters at the commands to look, in their order.
    pub statistics: Vec<Statistics>,
    /// `timer` and `state` lines.
    pub states: Vec<State>,
    /// Final `# NAME k=v…` lines, flows excepted.
    pub finals: Vec<(String, Values)>,
}

/// The device that takes packets out of the discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// All that the discipline gives, at once, and again whenever its watchdog fires.
    InfinitelyFast,
    /// One packet at a time, at so many bits per second.
    BitsPerSecond(u64),
}

/// A five-tuple and the hashes that Linux computed for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowKeys {
    /// `src,dst,sport,dport,proto` as written.
    pub tuple: String,
    /// True for IPv6.
    pub ipv6: bool,
    /// The flow hash (`hash=`).
    pub hash: u32,
    /// The source address as the kernel hashes it (not `srchash=`: see `host_hash`); as recorded
    /// where the recording has no key, 0 where it has neither.
    pub src_hash: u32,
    /// The same of the destination address.
    pub dst_hash: u32,
    /// Every `k=v` of the flow's line; one map for each time it was printed (after a perturbation
    /// of sfq it is printed again).
    pub values: Vec<Values>,
}

impl FlowKeys {
    /// The keys of `tuple`, hashed with the recording's key.
    fn rebuilt(tuple: &str, key: (u64, u64)) -> Result<FlowKeys, String> {
        let mut flow = FlowKeys {
            tuple: tuple.into(),
            ipv6: tuple.contains(':'),
            hash: 0,
            src_hash: 0,
            dst_hash: 0,
            values: vec![Values::new()],
        };
        let hash = |(protocol, ends)| flow_hash(key, protocol, ends);
        flow.hash = flow
            .ends()
            .and_then(hash)
            .ok_or_else(|| format!("`{tuple}` is not SRC,DST,SPORT,DPORT,PROTO"))?;
        flow.rehash_hosts(key)?;
        Ok(flow)
    }

    /// Protocol, and source and destination with their ports; None if the tuple is none.
    pub fn ends(&self) -> Option<(u8, [(IpAddr, u16); 2])> {
        let mut parts = self.tuple.split(',');
        let addresses = [parts.next()?.parse().ok()?, parts.next()?.parse().ok()?];
        let ports = [parts.next()?.parse().ok()?, parts.next()?.parse().ok()?];
        let protocol = parts.next()?.parse().ok()?;
        Some((protocol, [(addresses[0], ports[0]), (addresses[1], ports[1])]))
    }

    fn rehash_hosts(&mut self, key: (u64, u64)) -> Result<(), String> {
        let (_, [source, destination]) = self
            .ends()
            .ok_or_else(|| format!("`{}` is not SRC,DST,SPORT,DPORT,PROTO", self.tuple))?;
        self.src_hash = host_hash(key, source.0);
        self.dst_hash = host_hash(key, destination.0);
        Ok(())
    }
}

/// Fate of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: Time,
    /// The packet.
    pub id: u64,
    /// The event.
    pub fate: Fate,
}

/// Way in which a packet left the discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Sent.
    Sent {
        /// From where, if that is known.
        place: Option<Place>,
        /// Bytes on the line, if that is known.
        adj_len: Option<u32>,
        /// The discipline set CE.
        marked: bool,
    },
    /// Dropped while dequeueing (or freed at once within enqueue).
    Dropped,
    /// Given back by enqueue: overflow or early drop. Not necessarily the arriving packet.
    DroppedAtEnqueue,
    /// Taken out by the ACK filter.
    AckFiltered,
}

impl Event {
    /// Reads an event's line.
    pub fn read(line: &str) -> Result<Event, String> {
        let mut words = line.split_whitespace();
        let time = Time(number(words.next().ok_or("empty line")?, "time")?);
        let kind = words.next().ok_or("a time and nothing else")?;
        let id = number(words.next().ok_or("no packet id")?, "packet id")?;
        let fate = match kind {
            "deq" => {
                let (mut tin, mut flow, mut adj_len) = (None, None, None);
                let mut marked = false;
                for word in words {
                    match word.split_once('=') {
                        Some(("tin", text)) => tin = Some(number(text, "tin")?),
                        Some(("flow", text)) => flow = Some(number(text, "flow")?),
                        Some(("adj", text)) => adj_len = Some(number(text, "adj")?),
                        _ => marked = word == "CE",
                    }
                }
                let place = tin.zip(flow).map(|(tin, flow)| Place { tin, flow });
                Fate::Sent { place, adj_len, marked }
            }
            "drop" => Fate::Dropped,
            "drop-enq" => Fate::DroppedAtEnqueue,
            "ackfilt" => Fate::AckFiltered,
            other => return Err(format!("unknown event `{other}`")),
        };
        Ok(Event { time, id, fate })
    }

    /// Appends the event's line, without its end.
    pub fn write(&self, line: &mut Vec<u8>) {
        let mut digits = itoa::Buffer::new();
        line.extend_from_slice(digits.format(self.time.0).as_bytes());
        line.extend_from_slice(match self.fate {
            Fate::Sent { .. } => b" deq ",
            Fate::Dropped => b" drop ",
            Fate::DroppedAtEnqueue => b" drop-enq ",
            Fate::AckFiltered => b" ackfilt ",
        });
        line.extend_from_slice(digits.format(self.id).as_bytes());
        let Fate::Sent { place, adj_len, marked } = self.fate else { return };
        if let Some(Place { tin, flow }) = place {
            line.extend_from_slice(b" tin=");
            line.extend_from_slice(digits.format(tin).as_bytes());
            line.extend_from_slice(b" flow=");
            line.extend_from_slice(digits.format(flow).as_bytes());
        }
        if let Some(adj_len) = adj_len {
            line.extend_from_slice(b" adj=");
            line.extend_from_slice(digits.format(adj_len).as_bytes());
        }
        if marked {
            line.extend_from_slice(b" CE");
        }
    }
}

impl Fate {
    /// The same without tier, queue and length on the line: recordings of all disciplines but cake
    /// leave them out.
    pub fn bare(self) -> Fate {
        match self {
            Fate::Sent { marked, .. } => Fate::Sent { place: None, adj_len: None, marked },
            other => other,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Vec::new();
        self.write(&mut line);
        f.write_str(&String::from_utf8_lossy(&line))
    }
}

/// Return value of `enqueue` in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnCode {
    /// When.
    pub time: Time,
    /// The packet that arrived.
    pub id: u64,
    /// 1: dropped; 2: another packet was dropped instead; 0x20000 is set if unclassified.
    pub code: u32,
}

/// A discipline's inner state at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// When.
    pub time: Time,
    /// True for a line printed because a timer had just run.
    pub timer: bool,
    /// The state.
    pub values: Values,
}

#[derive(Deserialize)]
struct Header {
    name: String,
    group: String,
    tc: String,
    args: Vec<String>,
    packets: usize,
}

/// `group/name` of a recording's path.
pub(super) fn full_name(path: &Path) -> String {
    let part = |part: Option<&std::ffi::OsStr>| {
        part.map(|part| part.to_string_lossy().into_owned()).unwrap_or_default()
    };
    format!("{}/{}", part(path.parent().and_then(Path::file_name)), part(path.file_name()))
}

impl Recording {
    /// Reads `path`.json, `path`.csv.gz and `path`.out.gz.
    pub fn read(path: &Path) -> Result<Recording, FormatError> {
        let [json, csv, out] = [".json", ".csv.gz", ".out.gz"].map(|end| suffixed(path, end));
        Recording::read_files(&json, &csv, Some(&out))
    }

    /// Reads a recording whose files lie anywhere, compressed or not. Without `out` nothing is
    /// expected, and the flows' hashes are rebuilt from the recording's key.
    pub fn read_files(
        json: &Path,
        csv: &Path,
        out: Option<&Path>,
    ) -> Result<Recording, FormatError> {
        let (header, outcomes) = (unpack(json)?, out.map(unpack).transpose()?);
        let out = out.zip(outcomes.as_deref());
        Recording::parse((json, &header), (csv, &unpack(csv)?), out)
    }

    /// A recording from its files' texts, with the names that errors give them.
    pub(super) fn parse(
        (json, header): (&Path, &str),
        (csv, arrivals): (&Path, &str),
        out: Option<(&Path, &str)>,
    ) -> Result<Recording, FormatError> {
        let header: Header = serde_json::from_str(header).map_err(|e| FormatError {
            path: json.to_owned(),
            line: Some(e.line()),
            problem: e.to_string(),
        })?;
        let mut args = Vec::new();
        for word in &header.args {
            args.push(
                pair(word).ok_or_else(|| {
                    FormatError::whole(json, format!("`{word}` is not KEY=VALUE"))
                })?,
            );
        }
        let mut recording = Recording {
            name: header.name,
            group: header.group,
            words: super::words::words(&header.tc, &args),
            args,
            link: Link::InfinitelyFast,
            start: Time::ZERO,
            arrivals: Vec::new(),
            commands: Vec::new(),
            end: Time::ZERO,
            flows: Vec::new(),
            expected: Vec::new(),
            returns: Vec::new(),
            statistics: Vec::new(),
            states: Vec::new(),
            finals: Vec::new(),
        };
        let start = recording.number("t0")?;
        let link = recording.number("link")?;
        let hash_key = recording.number("key0")?.zip(recording.number("key1")?);
        recording.start =
            Time(start.ok_or_else(|| FormatError::whole(json, "the argument `t0=` is missing"))?);
        if let Some(rate) = link {
            if rate == 0 {
                return Err(FormatError::whole(json, "`link=0` would never send"));
            }
            recording.link = Link::BitsPerSecond(rate);
        }

        if let Some((out, outcomes)) = out {
            recording.read_outcomes(out, outcomes)?;
            if let Some(key) = hash_key {
                for flow in &mut recording.flows {
                    flow.rehash_hosts(key).map_err(|problem| FormatError::whole(out, problem))?;
                }
            }
        }
        recording.read_arrivals(csv, arrivals, if out.is_none() { hash_key } else { None })?;
        let packets = recording.arrivals.len();
        if packets != header.packets {
            let problem = format!("{packets} packets, but {} announced", header.packets);
            return Err(FormatError::whole(csv, problem));
        }
        match recording.expected.iter().find(|event| event.id >= packets as u64) {
            Some(event) => Err(FormatError::whole(
                out.map_or(csv, |(out, _)| out),
                format!("no packet arrived as `{event}`"),
            )),
            None => Ok(recording),
        }
    }

    /// The whole `.out` file.
    fn read_outcomes(&mut self, out: &Path, text: &str) -> Result<(), FormatError> {
        for (number, line) in text.lines().enumerate() {
            self.read_outcome(line).map_err(|problem| FormatError {
                path: out.to_owned(),
                line: Some(number + 1),
                problem,
            })?;
        }
        Ok(())
    }

    /// The whole `.csv` file. With a key, flows that are not known yet are hashed with it.
    fn read_arrivals(
        &mut self,
        csv: &Path,
        text: &str,
        key: Option<(u64, u64)>,
    ) -> Result<(), FormatError> {
        let mut flows: BTreeMap<String, usize> =
            self.flows.iter().enumerate().map(|(i, flow)| (flow.tuple.clone(), i)).collect();
        let mut clock = self.start;
        for (number, line) in text.lines().enumerate() {
            self.read_arrival(line, &mut flows, key, &mut clock).map_err(|problem| {
                FormatError { path: csv.to_owned(), line: Some(number + 1), problem }
            })?;
        }
        self.end = clock;
        Ok(())
    }

    /// `group/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// The resolved argument `key`.
    pub fn arg(&self, key: &str) -> Option<&str> {
        self.args.iter().find(|(k, _)| k == key).map(|(_, value)| value.as_str())
    }

    /// The resolved argument `key` as a number, if it is there.
    pub fn number(&self, key: &str) -> Result<Option<u64>, FormatError> {
        let Some(value) = self.arg(key) else { return Ok(None) };
        let path = Path::new(&self.group).join(&self.name);
        let fail = |_| FormatError::whole(&path, format!("`{key}={value}` is no number"));
        value.parse().map(Some).map_err(fail)
    }

    /// Seed of the kernel's random numbers.
    pub fn seed(&self) -> Result<u64, FormatError> {
        let path = Path::new(&self.group).join(&self.name);
        let missing = || FormatError::whole(&path, "the argument `seed=` is missing");
        self.number("seed")?.ok_or_else(missing)
    }

    /// The Linux that decided: 6.1 where the argument `linux` names none.
    pub fn release(&self) -> Result<Release, FormatError> {
        match self.arg("linux") {
            None | Some("6.1") => Ok(Release::V6_1),
            Some("6.12") => Ok(Release::V6_12),
            Some("7.3") => Ok(Release::V7_3),
            Some(other) => {
                let path = Path::new(&self.group).join(&self.name);
                Err(FormatError::whole(&path, format!("`linux={other}` is no release known here")))
            }
        }
    }

    /// Numbers of expected events, by kind.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for event in &self.expected {
            match event.fate {
                Fate::Sent { marked, .. } => {
                    counts.sent += 1;
                    counts.marked += usize::from(marked);
                }
                Fate::Dropped => counts.dropped += 1,
                Fate::DroppedAtEnqueue => counts.dropped_at_enqueue += 1,
                Fate::AckFiltered => counts.ack_filtered += 1,
            }
        }
        counts
    }

    /// One line of the `.out` file.
    fn read_outcome(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let first = words.next().ok_or("empty line")?;
        if first == "#" {
            let kind = words.next().ok_or("a bare `#`")?;
            if kind != "flow" {
                self.finals.push((kind.into(), values(words)));
                return Ok(());
            }
            let tuple = words.next().ok_or("a flow without its five-tuple")?;
            return self.read_flow(tuple, values(words));
        }
        let time = Time(number(first, "time")?);
        let kind = words.next().ok_or("a time and nothing else")?;
        if kind == "timer" || kind == "state" {
            self.states.push(State { time, timer: kind == "timer", values: values(words) });
            return Ok(());
        }
        if kind == "stats" {
            let class = words.next().ok_or("statistics of no class")?;
            let class = u32::from_str_radix(class, 16).map_err(|_| "a class that is none")?;
            let look = next_look(&self.statistics, class);
            self.statistics.push(Statistics { time, look, class, values: values(words) });
            return Ok(());
        }
        if kind == "enq-ret" {
            let id = number(words.next().ok_or("no packet id")?, "packet id")?;
            let code = number(words.next().ok_or("no return code")?, "return code")?;
            self.returns.push(ReturnCode { time, id, code });
            return Ok(());
        }
        self.expected.push(Event::read(line)?);
        Ok(())
    }

    fn read_flow(&mut self, tuple: &str, values: Values) -> Result<(), String> {
        let value = |key: &str| match values.get(key) {
            None => Ok(0),
            Some(text) => number(text, key),
        };
        if let Some(known) = self.flows.iter_mut().find(|flow| flow.tuple == tuple) {
            known.values.push(values);
            return Ok(());
        }
        self.flows.push(FlowKeys {
            tuple: tuple.into(),
            ipv6: tuple.contains(':'),
            hash: value("hash")?,
            src_hash: value("srchash")?,
            dst_hash: value("dsthash")?,
            values: vec![values],
        });
        Ok(())
    }

    /// One line of the `.csv` file.
    fn read_arrival(
        &mut self,
        line: &str,
        flows: &mut BTreeMap<String, usize>,
        key: Option<(u64, u64)>,
        clock: &mut Time,
    ) -> Result<(), String> {
        if let Some(command) = command::parse_line(line, clock, self.arrivals.len())? {
            self.commands.push(command);
            return Ok(());
        }
        let Some((mut arrival, tuple)) = parse_line(line, clock, self.arrivals.len() as u64)?
        else {
            return Ok(());
        };
        arrival.flow = match (flows.get(tuple), key) {
            (Some(flow), _) => *flow,
            (None, Some(key)) => {
                self.flows.push(FlowKeys::rebuilt(tuple, key)?);
                flows.insert(tuple.into(), self.flows.len() - 1);
                self.flows.len() - 1
            }
            (None, None) => return Err(format!("no flow line for {tuple}")),
        };
        self.arrivals.push(arrival);
        Ok(())
    }
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn unpack(path: &Path) -> Result<String, FormatError> {
    files::read_text(path, files::WHOLE).map_err(|e| FormatError::whole(path, e.to_string()))
}

fn pair(word: &str) -> Option<(String, String)> {
    word.split_once('=').map(|(key, value)| (key.into(), value.into()))
}

fn values<'a>(words: impl Iterator<Item = &'a str>) -> Values {
    words.filter_map(pair).collect()
}
