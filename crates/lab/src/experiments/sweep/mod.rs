//! Sweeps: one scenario over many settings, with repetitions, resumable and divisible.
//!
//! A [`Sweep`] is a scenario's text and axes; an axis sets a key of the file to one value after the
//! other. Each run is one line of a journal, written and flushed as soon as the run is done. So a
//! sweep that was killed goes on where it was. Runs are numbered. Shard i of n does every n-th of
//! them, and journals of shards are merged by putting their lines together. The first line of a
//! journal says which sweep it belongs to, and no other sweep writes into it.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

use rayon::prelude::*;
use siphasher::sip::SipHasher13;

use super::scenario;
use journal::{astray, lock, strange, unwritable, write_line, Head, Lines};
use simnel_scenario::{Files, Scenario, Summary};

pub mod axis;
mod figures;
mod journal;
mod names;
mod pivot;

pub use axis::Axis;
pub use figures::figures;
pub use journal::{are_alike, merge, Journal, PointResult, Record};
pub use names::Words;
pub use pivot::{pivots, Pivot};

/// A sweep that cannot be done, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {fix}")]
pub struct SweepError {
    /// The fault.
    pub what: String,
    /// A correct form.
    pub fix: String,
}

fn wrong(what: impl Into<String>, fix: impl Into<String>) -> SweepError {
    SweepError { what: what.into(), fix: fix.into() }
}

fn hash(text: &str) -> u64 {
    SipHasher13::new().hash(text.as_bytes())
}

/// A setting that is refused, and where.
fn at(what: &str, expected: &str, point: &[(String, String)]) -> SweepError {
    let words: Vec<String> = point.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let place =
        if words.is_empty() { String::new() } else { format!(" (at {})", words.join(", ")) };
    wrong(format!("{what}{place}"), format!("expected {expected}"))
}

/// Most runs of a sweep.
pub const MAX_RUNS: usize = 10_000_000;

/// The sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Name of the scenario.
    pub name: String,
    /// Its file.
    table: toml::Table,
    /// Directory of the files that it names.
    directory: std::path::PathBuf,
    axes: Vec<Axis>,
    repetitions: u32,
    /// Identifies the program, text, traces, axes and repetitions.
    identity: String,
}

impl Sweep {
    /// A sweep of the scenario `text` over `axes`; files that it names are in `directory`.
    pub fn new(
        name: &str,
        text: &str,
        directory: &Path,
        axes: Vec<Axis>,
        repetitions: u32,
    ) -> Result<Sweep, SweepError> {
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| wrong(error.message(), "mend the scenario"))?;
        let directory = directory.to_path_buf();
        let identity = String::new();
        let mut sweep = Sweep { name: name.into(), table, directory, axes, repetitions, identity };
        if sweep.runs() > MAX_RUNS {
            return Err(wrong(format!("{} runs", sweep.runs()), "at most ten million"));
        }
        sweep.try_keys()?;
        let traces = sweep.try_values()?;
        let version = env!("CARGO_PKG_VERSION");
        let whole = format!("{version}\n{text}\n{:?}\n{repetitions}\n{traces:?}", sweep.axes);
        sweep.identity = format!("{:016x}", hash(&whole));
        Ok(sweep)
    }

    /// Refuses settings that would be counted twice: a value that an axis has before, a key that a
    /// later axis sets again.
    fn try_keys(&self) -> Result<(), SweepError> {
        for axis in &self.axes {
            let mut values = BTreeSet::new();
            if let Some(twice) = axis.values.iter().find(|value| !values.insert(*value)) {
                let what = format!("`{}={twice}` is said twice", axis.key);
                return Err(wrong(what, "each value once; --repetitions is for more runs of each"));
            }
        }
        let keys: Vec<&str> = self.axes.iter().map(|axis| axis.key.as_str()).collect();
        axis::each_once(&self.table, &keys)
    }

    /// Most values that are tried before a sweep begins.
    const TRIED: usize = 1000;

    /// Refuses keys and values that make no sense before anything is run. Each value of an axis is
    /// tried once, with the first values of the others. Returns the traces that were read, by name,
    /// as hashes.
    fn try_values(&self) -> Result<BTreeMap<String, u64>, SweepError> {
        let first = self.point(0);
        let traces = RefCell::new(BTreeMap::new());
        let trace = |name: &str| {
            let text = scenario::trace(&self.directory, name)?;
            traces.borrow_mut().insert(name.to_string(), hash(&text));
            Ok(text)
        };
        let try_one = |point: &[(String, String)]| -> Result<(), SweepError> {
            let scenario = self.scenario(point, &trace)?;
            scenario.setup(None).map(drop).map_err(|error| at(&error.what, &error.expected, point))
        };
        try_one(&first)?;
        for (n, axis) in self.axes.iter().enumerate() {
            for value in axis.values.iter().skip(1).take(Sweep::TRIED) {
                let mut point = first.clone();
                point[n].1.clone_from(value);
                try_one(&point)?;
            }
        }
        Ok(traces.into_inner())
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        let points: usize = self.axes.iter().map(|axis| axis.values.len()).product();
        points.saturating_mul(self.repetitions.max(1) as usize)
    }

    /// The setting of run `run`: the last axis turns fastest.
    fn point(&self, run: usize) -> Vec<(String, String)> {
        let mut rest = run / self.repetitions.max(1) as usize;
        let mut point = Vec::new();
        for axis in self.axes.iter().rev() {
            let values = &axis.values;
            point.push((axis.key.clone(), values[rest % values.len()].clone()));
            rest /= values.len();
        }
        point.reverse();
        point
    }

    fn seed(&self, run: usize) -> u64 {
        (run % self.repetitions.max(1) as usize) as u64 + 1
    }

    fn scenario(&self, point: &[(String, String)], traces: Files) -> Result<Scenario, SweepError> {
        let mut table = self.table.clone();
        for (key, value) in point {
            axis::set(&mut table, key, value)?;
        }
        Scenario::parse(&table.to_string(), &self.name, traces)
            .map_err(|error| at(&error.what, &error.expected, point))
    }

    /// Does the runs of shard `index` (from 0) of `shards` that `journal` does not have. `step` is
    /// called for each run, done now or before. Stops soon after `stop` is set.
    pub fn run(
        &self,
        journal: &Path,
        (index, shards): (usize, usize),
        stop: &AtomicBool,
        step: &(dyn Fn() + Sync),
    ) -> Result<(), SweepError> {
        let (mut file, done) = self.open(journal)?;
        let broken = |error| unwritable(journal, &error);
        if done.is_none() {
            write_line(&mut file, &self.head()).map_err(broken)?;
        }
        let done = done.unwrap_or_default();
        let file = Mutex::new(file);
        let mine = (index..self.runs()).step_by(shards.max(1)).collect::<Vec<_>>();
        mine.par_iter().with_max_len(1).try_for_each(|run| {
            if done.contains(run) || stop.load(Ordering::Relaxed) {
                step();
                return Ok(());
            }
            let record = self.one(*run)?;
            let mut file = file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            write_line(&mut *file, &record).map_err(broken)?;
            step();
            Ok(())
        })
    }

    fn head(&self) -> Head {
        Head { sweep: self.identity.clone(), scenario: self.name.clone(), runs: self.runs() }
    }

    /// The journal, open at its end, and the runs that it has; None if it is new. A last line that
    /// was not written to its end is cut off.
    fn open(&self, path: &Path) -> Result<(File, Option<BTreeSet<usize>>), SweepError> {
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let mut file = file.map_err(|error| unwritable(path, &error))?;
        let broken = |error| unwritable(path, &error);
        if !file.metadata().map_err(broken)?.is_file() {
            let problem = format!("{}: no journal can be there", path.display());
            return Err(wrong(problem, "an ordinary file, from which the sweep can go on"));
        }
        lock(&file, path)?;
        let mut lines = Lines::new(&file, path)?;
        match &lines.head {
            Some(head) if *head != self.head() => {
                return Err(wrong(
                    format!("{} belongs to another sweep", path.display()),
                    "another file with --output, or the scenario, traces, axes and program it \
                     began with",
                ))
            }
            None if !lines.may_be_torn() => return Err(strange(path, 1)),
            _ => {}
        }
        let mut done = BTreeSet::new();
        while let Some((line, Record { run, point, seed, .. })) = lines.next_record()? {
            let expected = self.seed(run);
            if seed != expected {
                return Err(astray(path, line, &format!("run {run} has seed {expected}")));
            }
            if point != self.point(run).into_iter().collect() {
                return Err(astray(path, line, &format!("run {run} has another setting")));
            }
            done.insert(run);
        }
        let (head, whole) = (lines.head, lines.whole);
        // What is no journal has been left as it is.
        file.set_len(whole).map_err(broken)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).map_err(broken)?;
        Ok((file, head.map(|_| done)))
    }

    fn one(&self, run: usize) -> Result<Record, SweepError> {
        let point = self.point(run);
        let scenario = self.scenario(&point, &|name| scenario::trace(&self.directory, name))?;
        let seed = self.seed(run);
        let finished = scenario.simulation(None).and_then(|simulation| simulation.finish(seed));
        let finished = finished.map_err(|error| at(&error.what, &error.expected, &point))?;
        let summary = Summary::new(&scenario, &finished);
        Ok(Record { run, point: point.into_iter().collect(), seed, values: measures(&summary) })
    }
}

/// The numbers of a summary by their path, `groups.ping EF.application.added_ms.p99`. Time series
/// and single flows are left out, and so are times of what never arrived. Entries of lists go by
/// their name or direction.
pub fn measures(summary: &Summary) -> BTreeMap<String, f64> {
    let mut out = BTreeMap::new();
    let value = serde_json::to_value(summary).unwrap_or_default();
    for part in ["lines", "groups"] {
        let Some(list) = value[part].as_array() else { continue };
        for entry in list {
            let name = entry["name"].as_str().or(entry["direction"].as_str()).unwrap_or("?");
            collect(&format!("{part}.{name}"), entry, &mut out);
        }
    }
    out
}

fn collect(path: &str, value: &serde_json::Value, out: &mut BTreeMap<String, f64>) {
    match value {
        serde_json::Value::Number(number) => {
            out.extend(number.as_f64().map(|number| (path.to_string(), number)));
        }
        serde_json::Value::Object(map) => {
            map.iter().for_each(|(key, value)| collect(&format!("{path}.{key}"), value, out));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
