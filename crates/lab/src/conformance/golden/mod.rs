//! Recordings of Linux's queue disciplines, replayed through ours and compared packet by packet.
//!
//! A recording is one configuration of one discipline of Linux, 6.1 unless it names another
//! release. It was made from the unmodified kernel source on a virtual clock. It has arrivals
//! (`NAME.csv.gz`), what happened to each packet (`NAME.out.gz`) and the configuration
//! (`NAME.json`). `conformance/golden/README.md` describes the format. [`replay`] drives a
//! discipline through the arrivals under the same virtual device, with the same flow hashes and the
//! same random numbers. [`compare`] finds the first event that differs. The [`Ledger`] lists the
//! deviations that we chose, with reasons.
//!
//! Nothing here knows any discipline: a [`Factory`] makes one from the recording's `tc` words;
//! [`build`] is the one that knows all of ours.

use std::fmt;
use std::path::{Path, PathBuf};

use simnel_core::qdisc::{self, Device, Managed};
use simnel_core::rate::Arithmetic;
use simnel_core::tick::Tick;

mod command;
mod compare;
mod device;
mod elsewhere;
mod format;
mod journal;
pub(crate) mod ledger;
mod linux_hash;
mod owner;
mod plan;
mod row;
mod statistics;
#[cfg(test)]
mod tests;
mod words;

pub use command::{Command, What};
pub use compare::{compare, Difference, Kind};
pub use device::{replay, ReplayError, Replayed, VirtualDevice};
pub use elsewhere::{compare_decided, write_plans};
pub use format::{Event, Fate, FlowKeys, FormatError, Link, Recording, ReturnCode, State};
pub use journal::{Journal, Losses};
pub use ledger::{Deviation, Ledger, LedgerError, Stale};
pub use owner::descriptor;
pub use row::{parse_line, Arrival, Tcp};
pub use statistics::{Statistics, Values};

/// The tier and queue that a packet was taken from, in the discipline's own numbering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index of the tier.
    pub tin: u32,
    /// Index of the flow queue within the tier.
    pub flow: u32,
}

/// Makes a discipline from the recording's `tc` words, or says in one line why it cannot.
pub type Factory<'a> = dyn Fn(&[String], &Device) -> Result<Box<dyn Managed + Send>, String> + 'a;

/// Makes any of our disciplines from its `tc` words.
pub fn build(words: &[String], device: &Device) -> Result<Box<dyn Managed + Send>, String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let config = qdisc::parse_words(&words).map_err(|error| error.to_string())?;
    qdisc::build(&config, device).map_err(|error| error.to_string())
}

/// Numbers of events that a recording expects, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets sent.
    pub sent: usize,
    /// Of those, marked CE by the discipline.
    pub marked: usize,
    /// Packets dropped while dequeueing.
    pub dropped: usize,
    /// Packets dropped while enqueueing.
    pub dropped_at_enqueue: usize,
    /// Acknowledgements filtered.
    pub ack_filtered: usize,
}

impl Counts {
    /// Events of all kinds.
    pub fn total(&self) -> usize {
        self.sent + self.dropped + self.dropped_at_enqueue + self.ack_filtered
    }
}

/// Result of one recording.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// `group/name`.
    pub name: String,
    /// The recording's `tc` words.
    pub words: String,
    /// Packets that were enqueued.
    pub packets: usize,
    /// Events that the recording expects.
    pub expected: Counts,
    /// Events from the beginning that were equal.
    pub equal_events: usize,
    /// The first event that was not; None if all were equal.
    pub first_difference: Option<Difference>,
    /// Reason of the ledger entry that covers the difference.
    pub ledger: Option<String>,
}

impl Outcome {
    /// The result of a recording: equal events, and the first difference.
    fn of(
        recording: &Recording,
        (equal_events, first_difference): (usize, Option<Difference>),
        ledger: &Ledger,
    ) -> Outcome {
        let name = recording.full_name();
        let ledger = first_difference
            .as_ref()
            .and_then(|difference| ledger.covers(&name, difference, equal_events))
            .map(|deviation| deviation.reason.clone());
        Outcome {
            name,
            words: recording.words.join(" "),
            packets: recording.arrivals.len(),
            expected: recording.counts(),
            equal_events,
            first_difference,
            ledger,
        }
    }

    /// True if every event was equal.
    pub fn equal(&self) -> bool {
        self.first_difference.is_none()
    }

    /// True if equal, or different in a way that the ledger lists.
    pub fn accepted(&self) -> bool {
        self.equal() || self.ledger.is_some()
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} packets): ", self.name, self.packets)?;
        match (&self.first_difference, &self.ledger) {
            (None, _) => write!(f, "equal, {} events", self.equal_events),
            (Some(_), Some(reason)) => {
                write!(f, "differs after {} equal events: {reason}", self.equal_events)
            }
            (Some(difference), None) => write!(f, "DIFFERS\n  {}\n{difference}", self.words),
        }
    }
}

/// The surroundings in which `recording` was made.
pub fn linux_device(recording: &Recording) -> Result<Device, FormatError> {
    let number = |key: &str, default: u64| recording.number(key).map(|n| n.unwrap_or(default));
    let hz = u32::try_from(number("hz", 1000)?).unwrap_or(u32::MAX);
    let release = recording.release()?;
    Ok(Device {
        seed: recording.seed()?,
        arithmetic: Arithmetic::Linux(release),
        now: recording.start,
        tick: Tick::Jiffies { hz, wheel: number("wheel", 0)? != 0 },
        ..Device::default()
    })
}

/// The recordings below `directory` as paths without extension, sorted; at most two levels deep.
pub fn list(directory: &Path) -> Result<Vec<PathBuf>, FormatError> {
    let mut found = Vec::new();
    collect(directory, 2, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, depth: u32, found: &mut Vec<PathBuf>) -> Result<(), FormatError> {
    let fail = |error: std::io::Error| FormatError::whole(directory, error.to_string());
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.is_dir() {
            if depth > 0 {
                collect(&path, depth - 1, found)?;
            }
        } else if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path.with_extension(""));
        }
    }
    Ok(())
}

/// Replays the recording at `path` (without extension) and compares it.
pub fn run(path: &Path, factory: &Factory, ledger: &Ledger) -> Result<Outcome, FormatError> {
    replay_and_compare(&Recording::read(path)?, factory, ledger)
}

/// As [`run`], of a recording whose three texts are at hand, each with a name for errors.
pub fn judge(
    json: (&Path, &str),
    csv: (&Path, &str),
    out: (&Path, &str),
    factory: &Factory,
    ledger: &Ledger,
) -> Result<Outcome, FormatError> {
    replay_and_compare(&Recording::parse(json, csv, Some(out))?, factory, ledger)
}

fn replay_and_compare(
    recording: &Recording,
    factory: &Factory,
    ledger: &Ledger,
) -> Result<Outcome, FormatError> {
    let compared = match decide(recording, factory)? {
        Err(reason) => (0, Some(Difference::failed(reason))),
        Ok(replayed) => compare(recording, &replayed),
    };
    Ok(Outcome::of(recording, compared, ledger))
}

/// Decisions of a discipline of `factory` about the recording's packets, or why there are none.
fn decide(
    recording: &Recording,
    factory: &Factory,
) -> Result<Result<Replayed, String>, FormatError> {
    let device = linux_device(recording)?;
    let qdisc = factory(&recording.words, &device);
    Ok(qdisc.map_err(|reason| format!("cannot be built: {reason}")).and_then(|mut qdisc| {
        replay(recording, qdisc.as_mut(), &device).map_err(|error| error.to_string())
    }))
}

/// Replays every recording below `directory` whose `group/name` fits `pattern` (`*` stands for
/// anything), in the order of their names.
pub fn run_directory(
    directory: &Path,
    pattern: &str,
    factory: &Factory,
    ledger: &Ledger,
) -> Result<Vec<Outcome>, FormatError> {
    chosen(directory, pattern)?.iter().map(|path| run(path, factory, ledger)).collect()
}

/// The recordings below `directory` whose `group/name` fits `pattern`.
fn chosen(directory: &Path, pattern: &str) -> Result<Vec<PathBuf>, FormatError> {
    let mut paths = list(directory)?;
    paths.retain(|path| crate::pattern::fits(pattern, &format::full_name(path)));
    Ok(paths)
}
