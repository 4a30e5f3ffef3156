//! Reading recordings: three files each, all lines checked, errors that name file and line.
//!
//! The CSV has one event a line with trailing empty columns left off; the `.out` has one outcome a
//! line, and `# …` lines for flow hashes and final state; the JSON holds the configuration. What a
//! discipline later needs and this module does not interpret stays available as [`Values`].

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde::Deserialize;
use simnel_core::wire::tcp::MAX_SACK_BLOCKS;
use simnel_core::Time;

use super::linux_hash::host_hash;
use super::{Counts, Place};

/// `k=v` words of one line, as written.
pub type Values = BTreeMap<String, String>;

/// A recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}: {problem}", path.display(), line.map(|n| format!(":{n}")).unwrap_or_default())]
pub struct FormatError {
    /// The file.
    pub path: PathBuf,
    /// The line in it, from 1; None if the whole file is meant.
    pub line: Option<usize>,
    /// What is wrong with it.
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
    /// What it exercises: the name of its directory.
    pub group: String,
    /// The `tc` words, discipline first: as written, or made from the arguments where they are
    /// written loosely.
    pub words: Vec<String>,
    /// The oracle's resolved arguments, `rate=…`, `seed=…`, `key0=…`, in their order.
    pub args: Vec<(String, String)>,
    /// What takes packets out.
    pub link: Link,
    /// When the discipline was made.
    pub start: Time,
    /// Packets in order of arrival; the index is the packet's id.
    pub arrivals: Vec<Arrival>,
    /// Until when the device runs after the last arrival.
    pub end: Time,
    /// The five-tuples that occur, with their injected hashes.
    pub flows: Vec<FlowKeys>,
    /// What happened to the packets.
    pub expected: Vec<Event>,
    /// Return codes of `enqueue` other than 0.
    pub returns: Vec<ReturnCode>,
    /// `timer` and `state` lines.
    pub states: Vec<State>,
    /// Final `# NAME k=v…` lines, flows excepted.
    pub finals: Vec<(String, Values)>,
}

/// What takes packets out of the discipline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// All that the discipline gives, at once, and again whenever its watchdog fires.
    InfinitelyFast,
    /// One packet at a time, at so many bits per second.
    BitsPerSecond(u64),
}

/// A packet's arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub time: Time,
    /// Bytes on the wire without frame check sequence.
    pub len: u32,
    /// Index of the five-tuple in [`Recording::flows`].
    pub flow: usize,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub tos: u8,
    /// Priority as a `tc` class id, 0 if none.
    pub class: u32,
    /// The TCP header; None for UDP.
    pub tcp: Option<Tcp>,
}

/// What the recording says of a TCP header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// Byte 13 of the header.
    pub flags: u8,
    /// Sequence number.
    pub seq: u32,
    /// Cumulative acknowledgement.
    pub ack: u32,
    /// Timestamp value and echo.
    pub timestamp: Option<(u32, u32)>,
    /// Number of SACK blocks.
    pub sack_count: u8,
    /// SACK blocks: left edge, right edge.
    pub sack: [(u32, u32); MAX_SACK_BLOCKS],
}

impl Tcp {
    /// Bytes of the header with its options.
    pub fn header_len(&self) -> u32 {
        let timestamp = if self.timestamp.is_some() { 12 } else { 0 };
        let sack = if self.sack_count > 0 { 4 + 8 * u32::from(self.sack_count) } else { 0 };
        20 + timestamp + sack
    }
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
    fn rehash_hosts(&mut self, key: (u64, u64)) -> Result<(), String> {
        let mut addresses = self.tuple.split(',');
        let mut hash = || {
            let address = addresses.next().unwrap_or_default();
            let parsed =
                address.parse().map_err(|_| format!("`{address}` is not an IP address"))?;
            Ok::<u32, String>(host_hash(key, parsed))
        };
        (self.src_hash, self.dst_hash) = (hash()?, hash()?);
        Ok(())
    }
}

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub time: Time,
    /// The packet.
    pub id: u64,
    /// What.
    pub fate: Fate,
}

/// How a packet left the discipline.
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

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Event { time, id, fate } = self;
        match fate {
            Fate::Sent { place, adj_len, marked } => {
                write!(f, "{} deq {id}", time.0)?;
                if let Some(Place { tin, flow }) = place {
                    write!(f, " tin={tin} flow={flow}")?;
                }
                if let Some(adj_len) = adj_len {
                    write!(f, " adj={adj_len}")?;
                }
                if *marked {
                    f.write_str(" CE")?;
                }
                Ok(())
            }
            Fate::Dropped => write!(f, "{} drop {id}", time.0),
            Fate::DroppedAtEnqueue => write!(f, "{} drop-enq {id}", time.0),
            Fate::AckFiltered => write!(f, "{} ackfilt {id}", time.0),
        }
    }
}

/// What `enqueue` returned to the kernel.
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
        let json = suffixed(path, ".json");
        let header: Header = serde_json::from_reader(std::io::BufReader::new(
            std::fs::File::open(&json).map_err(|e| FormatError::whole(&json, e.to_string()))?,
        ))
        .map_err(|e| FormatError {
            path: json.clone(),
            line: Some(e.line()),
            problem: e.to_string(),
        })?;
        let mut args = Vec::new();
        for word in &header.args {
            args.push(
                pair(word).ok_or_else(|| {
                    FormatError::whole(&json, format!("`{word}` is not KEY=VALUE"))
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
            end: Time::ZERO,
            flows: Vec::new(),
            expected: Vec::new(),
            returns: Vec::new(),
            states: Vec::new(),
            finals: Vec::new(),
        };
        let start = recording.number("t0")?;
        let link = recording.number("link")?;
        let hash_key = recording.number("key0")?.zip(recording.number("key1")?);
        recording.start =
            Time(start.ok_or_else(|| FormatError::whole(&json, "the argument `t0=` is missing"))?);
        if let Some(rate) = link {
            if rate == 0 {
                return Err(FormatError::whole(&json, "`link=0` would never send"));
            }
            recording.link = Link::BitsPerSecond(rate);
        }

        let out = suffixed(path, ".out.gz");
        for (number, line) in unpack(&out)?.lines().enumerate() {
            recording.read_outcome(line).map_err(|problem| FormatError {
                path: out.clone(),
                line: Some(number + 1),
                problem,
            })?;
        }
        if let Some(key) = hash_key {
            for flow in &mut recording.flows {
                flow.rehash_hosts(key).map_err(|problem| FormatError::whole(&out, problem))?;
            }
        }
        let flows: BTreeMap<String, usize> =
            recording.flows.iter().enumerate().map(|(i, flow)| (flow.tuple.clone(), i)).collect();

        let csv = suffixed(path, ".csv.gz");
        let mut clock = recording.start;
        for (number, line) in unpack(&csv)?.lines().enumerate() {
            recording.read_arrival(line, &flows, &mut clock).map_err(|problem| FormatError {
                path: csv.clone(),
                line: Some(number + 1),
                problem,
            })?;
        }
        recording.end = clock;
        if recording.arrivals.len() != header.packets {
            return Err(FormatError::whole(
                &csv,
                format!("{} packets, but {} announced", recording.arrivals.len(), header.packets),
            ));
        }
        let packets = recording.arrivals.len() as u64;
        match recording.expected.iter().find(|event| event.id >= packets) {
            Some(event) => Err(FormatError::whole(&out, format!("no packet arrived as `{event}`"))),
            None => Ok(recording),
        }
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

    /// Where the kernel's random numbers began.
    pub fn seed(&self) -> Result<u64, FormatError> {
        let path = Path::new(&self.group).join(&self.name);
        let missing = || FormatError::whole(&path, "the argument `seed=` is missing");
        self.number("seed")?.ok_or_else(missing)
    }

    /// How many events of each kind are expected.
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
        let id = number(words.next().ok_or("no packet id")?, "packet id")?;
        let fate = match kind {
            "deq" => {
                let marked = line.ends_with(" CE");
                let values = values(words);
                let value = |key: &str| -> Result<Option<u32>, String> {
                    values.get(key).map(|text| number(text, key)).transpose()
                };
                let place = match (value("tin")?, value("flow")?) {
                    (Some(tin), Some(flow)) => Some(Place { tin, flow }),
                    _ => None,
                };
                Fate::Sent { place, adj_len: value("adj")?, marked }
            }
            "drop" => Fate::Dropped,
            "drop-enq" => Fate::DroppedAtEnqueue,
            "ackfilt" => Fate::AckFiltered,
            "enq-ret" => {
                let code = number(words.next().ok_or("no return code")?, "return code")?;
                self.returns.push(ReturnCode { time, id, code });
                return Ok(());
            }
            other => return Err(format!("unknown event `{other}`")),
        };
        self.expected.push(Event { time, id, fate });
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
        flows: &BTreeMap<String, usize>,
        clock: &mut Time,
    ) -> Result<(), String> {
        let columns: Vec<&str> = line.split(',').collect();
        let column = |n: usize| columns.get(n).copied().unwrap_or_default();
        let time = Time(number(column(0), "time")?);
        if time < *clock {
            return Err(format!("time goes back from {} to {}", clock.0, time.0));
        }
        *clock = time;
        match column(1) {
            "run" => return Ok(()),
            "enq+" => {}
            other => return Err(format!("unknown operation `{other}`")),
        }
        let id: usize = number(column(2), "id")?;
        if id != self.arrivals.len() {
            return Err(format!("packet {id} where {} was expected", self.arrivals.len()));
        }
        let tuple = columns.get(4..9).ok_or("no five-tuple")?.join(",");
        let flow = *flows.get(&tuple).ok_or_else(|| format!("no flow line for {tuple}"))?;
        let (dscp, ecn): (u8, u8) = (number(column(9), "dscp")?, number(column(10), "ecn")?);
        if dscp > 63 || ecn > 3 {
            return Err(format!("dscp {dscp}, ecn {ecn}: out of range"));
        }
        let tcp = match column(8) {
            "6" => Some(Tcp::read(&column)?),
            "17" => None,
            other => return Err(format!("protocol {other} is neither 6 nor 17")),
        };
        let class = match column(17) {
            "" => 0,
            text => class_id(text).ok_or_else(|| format!("`{text}` is not MAJOR:MINOR"))?,
        };
        let len = number(column(3), "length")?;
        self.arrivals.push(Arrival { time, len, flow, tos: dscp << 2 | ecn, class, tcp });
        Ok(())
    }
}

impl Tcp {
    fn read<'a>(column: &dyn Fn(usize) -> &'a str) -> Result<Tcp, String> {
        let optional = |n: usize, what: &str| match column(n) {
            "" => Ok(None),
            text => number::<u32>(text, what).map(Some),
        };
        let flags = column(11);
        let flags = u8::from_str_radix(flags.strip_prefix("0x").unwrap_or(flags), 16)
            .map_err(|_| format!("TCP flags `{flags}` are not hexadecimal"))?;
        let timestamp = match (optional(14, "tsval")?, optional(15, "tsecr")?) {
            (None, None) => None,
            (value, echo) => Some((value.unwrap_or(0), echo.unwrap_or(0))),
        };
        let mut tcp = Tcp {
            flags,
            seq: optional(12, "seq")?.unwrap_or(0),
            ack: optional(13, "ack")?.unwrap_or(0),
            timestamp,
            ..Tcp::default()
        };
        for block in column(16).split(';').filter(|block| !block.is_empty()) {
            let (left, right) =
                block.split_once('-').ok_or_else(|| format!("SACK block `{block}`"))?;
            let slot =
                tcp.sack.get_mut(usize::from(tcp.sack_count)).ok_or("too many SACK blocks")?;
            *slot = (number(left, "SACK edge")?, number(right, "SACK edge")?);
            tcp.sack_count += 1;
        }
        Ok(tcp)
    }
}

fn suffixed(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn unpack(path: &Path) -> Result<String, FormatError> {
    let mut text = String::new();
    std::fs::File::open(path)
        .and_then(|file| GzDecoder::new(file).read_to_string(&mut text))
        .map_err(|error| FormatError::whole(path, error.to_string()))?;
    Ok(text)
}

fn number<N: std::str::FromStr>(text: &str, what: &str) -> Result<N, String> {
    text.parse().map_err(|_| format!("{what} `{text}` is not a number in range"))
}

fn pair(word: &str) -> Option<(String, String)> {
    word.split_once('=').map(|(key, value)| (key.into(), value.into()))
}

fn values<'a>(words: impl Iterator<Item = &'a str>) -> Values {
    words.filter_map(pair).collect()
}

/// `1:10`, both numbers hexadecimal.
fn class_id(text: &str) -> Option<u32> {
    let (major, minor) = text.split_once(':')?;
    let (major, minor) =
        (u16::from_str_radix(major, 16).ok()?, u16::from_str_radix(minor, 16).ok()?);
    Some(u32::from(major) << 16 | u32::from(minor))
}
