//! Sweeps: one scenario over many settings, with repetitions, resumable and divisible.
//!
//! A [`Sweep`] is a scenario's text and axes; an axis sets a key of the file to one value after the
//! other. Each run is one line of a journal, written and flushed as soon as the run is done, so
//! that a sweep that was killed goes on where it was. Runs are numbered; shard i of n does every
//! n-th of them, and journals of shards are merged by putting their lines together. The first line
//! of a journal says which sweep it belongs to, and no other sweep writes into it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Mutex;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

use super::scenario;
use crate::figures::table::{Column, Table};
use crate::files;
use crate::statistics::Estimate;
use simnel_scenario::{Scenario, Summary};

pub mod axis;
mod figures;
mod names;
mod pivot;

pub use axis::Axis;
pub use figures::figures;
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

/// A setting that is refused, and where.
fn at(what: &str, expected: &str, point: &[(String, String)]) -> SweepError {
    let words: Vec<String> = point.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let place =
        if words.is_empty() { String::new() } else { format!(" (at {})", words.join(", ")) };
    wrong(format!("{what}{place}"), format!("expected {expected}"))
}

/// Most runs of a sweep.
pub const MAX_RUNS: usize = 10_000_000;

/// Bytes of a journal that are read at most: a hundred thousand runs.
const JOURNAL: u64 = 1 << 30;
/// How the first line of a journal begins.
const BEGINNING: &[u8] = b"{\"sweep\":";

/// The sweep.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Name of the scenario.
    pub name: String,
    /// Its file.
    table: toml::Table,
    /// Where the files are that it names.
    directory: std::path::PathBuf,
    axes: Vec<Axis>,
    repetitions: u32,
    /// Identifies text, axes and repetitions.
    identity: String,
}

/// A line of a journal after the first one: one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Number of the run.
    pub run: usize,
    /// The setting: key and value.
    pub point: BTreeMap<String, String>,
    /// The seed.
    pub seed: u64,
    /// Measures, by the names of a summary's fields.
    pub values: BTreeMap<String, f64>,
}

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Head {
    sweep: String,
    scenario: String,
    runs: usize,
}

/// Results of all repetitions at one setting.
#[derive(Clone, Debug, Serialize)]
pub struct PointResult {
    /// The setting.
    pub point: BTreeMap<String, String>,
    /// Mean and interval of everything that was measured.
    pub values: BTreeMap<String, Estimate>,
    /// A value a run.
    #[serde(skip)]
    pub runs: BTreeMap<String, Vec<f64>>,
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
        let hash = SipHasher13::new().hash(format!("{text}\n{axes:?}\n{repetitions}").as_bytes());
        let identity = format!("{hash:016x}");
        let directory = directory.to_path_buf();
        let sweep = Sweep { name: name.into(), table, directory, axes, repetitions, identity };
        if sweep.runs() > MAX_RUNS {
            return Err(wrong(format!("{} runs", sweep.runs()), "at most ten million"));
        }
        sweep.try_keys()?;
        sweep.try_values()?;
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

    /// Refuses keys and values that make no sense before anything is run: each value of an axis is
    /// tried once, with the first values of the others.
    fn try_values(&self) -> Result<(), SweepError> {
        let first = self.point(0);
        let try_one = |point: &[(String, String)]| -> Result<(), SweepError> {
            let scenario = self.scenario(point)?;
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
        Ok(())
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

    fn scenario(&self, point: &[(String, String)]) -> Result<Scenario, SweepError> {
        let mut table = self.table.clone();
        for (key, value) in point {
            axis::set(&mut table, key, value)?;
        }
        let text = table.to_string();
        scenario::parse(&text, &self.name, &self.directory)
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
        let broken = |error: std::io::Error| {
            wrong(format!("{}: {error}", journal.display()), "a file that can be written")
        };
        if done.is_none() {
            let head = self.head();
            write_line(&mut file, &head).map_err(broken)?;
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
    fn open(&self, journal: &Path) -> Result<(File, Option<BTreeSet<usize>>), SweepError> {
        let broken = |error: std::io::Error| {
            wrong(format!("{}: {error}", journal.display()), "a file that can be written")
        };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false).open(journal);
        let mut file = file.map_err(broken)?;
        if !file.metadata().map_err(broken)?.is_file() {
            let problem = format!("{}: no journal can be there", journal.display());
            return Err(wrong(problem, "an ordinary file, from which the sweep can go on"));
        }
        if !files::try_lock(&file) {
            let problem = format!("{}: another sweep is writing it", journal.display());
            return Err(wrong(problem, "another file with --output, or that one's end"));
        }
        let bytes = files::whole(&file, JOURNAL).map_err(broken)?;
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let text = std::str::from_utf8(&bytes[..whole]).map_err(|_| strange(journal, 1))?;
        let parsed = match whole {
            0 if bytes.starts_with(BEGINNING) || BEGINNING.starts_with(&bytes) => None,
            _ => Some(parse(text, journal)?),
        };
        // What is no journal has been left as it is.
        file.set_len(whole as u64).map_err(broken)?;
        std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0)).map_err(broken)?;
        let Some((head, records)) = parsed else { return Ok((file, None)) };
        if head != self.head() {
            return Err(wrong(
                format!("{} belongs to another sweep", journal.display()),
                "another file with --output, or the scenario and axes that it began with",
            ));
        }
        for (n, Record { run, point, seed, .. }) in records.iter().enumerate() {
            let expected = self.seed(*run);
            if *seed != expected {
                return Err(astray(journal, n + 2, &format!("run {run} has seed {expected}")));
            }
            if *point != self.point(*run).into_iter().collect() {
                return Err(astray(journal, n + 2, &format!("run {run} has another setting")));
            }
        }
        Ok((file, Some(records.into_iter().map(|record| record.run).collect())))
    }

    fn one(&self, run: usize) -> Result<Record, SweepError> {
        let point = self.point(run);
        let scenario = self.scenario(&point)?;
        let seed = self.seed(run);
        let finished = scenario.simulation(None).and_then(|simulation| simulation.finish(seed));
        let finished = finished.map_err(|error| at(&error.what, &error.expected, &point))?;
        let summary = Summary::new(&scenario, &finished);
        Ok(Record { run, point: point.into_iter().collect(), seed, values: measures(&summary) })
    }
}

fn write_line(file: &mut impl Write, value: &impl Serialize) -> std::io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    // One call, so that a kill leaves a whole line or a torn last one, never two mixed.
    file.write_all(&line)?;
    file.flush()
}

fn strange(journal: &Path, line: usize) -> SweepError {
    wrong(format!("{}: line {line} is no line of a sweep", journal.display()), "another file")
}

/// A line that its sweep cannot have written.
fn astray(journal: &Path, line: usize, why: &str) -> SweepError {
    let what = format!("{}: line {line} does not belong to its sweep: {why}", journal.display());
    wrong(what, "lines as they were written; a run whose line is not there is done again")
}

fn parse(text: &str, journal: &Path) -> Result<(Head, Vec<Record>), SweepError> {
    let mut lines = text.lines().enumerate();
    let head = lines.next().and_then(|(_, line)| serde_json::from_str(line).ok());
    let head: Head = head.ok_or_else(|| strange(journal, 1))?;
    let record = |(n, line): (usize, &str)| {
        let record: Record = serde_json::from_str(line).map_err(|_| strange(journal, n + 1))?;
        let Record { run, seed, .. } = record;
        if run >= head.runs {
            let why = format!("run {run} of {}, which are numbered from 0", head.runs);
            return Err(astray(journal, n + 1, &why));
        }
        if !(1..=run as u64 + 1).contains(&seed) {
            return Err(astray(journal, n + 1, &format!("run {run} has no seed {seed}")));
        }
        Ok(record)
    };
    let records: Result<Vec<Record>, SweepError> = lines.map(record).collect();
    Ok((head, records?))
}

/// Writes one journal with the runs of `journals`, each once, in order; returns how many runs are
/// still missing.
pub fn merge(journals: &[std::path::PathBuf], out: &Path) -> Result<usize, SweepError> {
    let mut all: BTreeMap<usize, Record> = BTreeMap::new();
    let mut first: Option<Head> = None;
    for path in journals {
        let (head, records) = read(path)?;
        if first.as_ref().is_some_and(|known| *known != head) {
            let what = format!("{} belongs to another sweep", path.display());
            return Err(wrong(what, "journals of one sweep"));
        }
        first = Some(head);
        all.extend(records.into_iter().map(|record| (record.run, record)));
    }
    let Some(head) = first else { return Err(wrong("nothing to merge", "journals of shards")) };
    let broken = |error: std::io::Error| {
        wrong(format!("{}: {error}", out.display()), "a file that can be written")
    };
    files::replace(out, |file| {
        write_line(file, &head)?;
        all.values().try_for_each(|record| write_line(file, record))
    })
    .map_err(broken)?;
    Ok(head.runs - all.len().min(head.runs))
}

/// The head of a journal, and its runs in their order, each once.
fn read(path: &Path) -> Result<(Head, Vec<Record>), SweepError> {
    let broken = |error: std::io::Error| {
        wrong(format!("{}: {error}", path.display()), "a journal of `simnel sweep`")
    };
    let (head, mut records) = parse(&files::read_text(path, JOURNAL).map_err(broken)?, path)?;
    records.sort_by_key(|record| record.run);
    records.dedup_by_key(|record| record.run);
    Ok((head, records))
}

/// Runs that a journal has, and those of its sweep.
pub fn progress(journal: &Path) -> Result<(usize, usize), SweepError> {
    let (head, records) = read(journal)?;
    Ok((records.len(), head.runs))
}

/// Means and intervals of a journal, in the order of its settings.
pub fn results(journal: &Path) -> Result<Vec<PointResult>, SweepError> {
    let (_, records) = read(journal)?;
    type Values = BTreeMap<String, Vec<f64>>;
    let mut points: Vec<(BTreeMap<String, String>, Values)> = Vec::new();
    for record in records {
        if points.last().is_none_or(|(point, _)| *point != record.point) {
            points.push((record.point.clone(), BTreeMap::new()));
        }
        let Some((_, values)) = points.last_mut() else { continue };
        for (name, value) in record.values {
            values.entry(name).or_default().push(value);
        }
    }
    let estimated = |(point, runs): (BTreeMap<String, String>, Values)| {
        let one =
            |(name, values): (&String, &Vec<f64>)| Some((name.clone(), Estimate::of(values)?));
        PointResult { point, values: runs.iter().filter_map(one).collect(), runs }
    };
    Ok(points.into_iter().map(estimated).collect())
}

/// A journal as a table: a row a run in their order, with setting, seed and measures under the
/// names that the Python package gives them. What a run did not measure is no number.
pub fn table(journal: &Path) -> Result<Table, SweepError> {
    let (_, records) = read(journal)?;
    let keys: BTreeSet<&String> = records.iter().flat_map(|record| record.point.keys()).collect();
    let names: BTreeSet<&String> = records.iter().flat_map(|record| record.values.keys()).collect();
    let of = |key: &str| {
        records.iter().map(|record| record.point.get(key).cloned().unwrap_or_default()).collect()
    };
    let numbers = |one: &dyn Fn(&Record) -> Option<f64>| {
        Column::Number(records.iter().map(|record| one(record).unwrap_or(f64::NAN)).collect())
    };
    let mut columns: Vec<(String, Column)> =
        keys.into_iter().map(|key| (key.clone(), Column::Text(of(key)))).collect();
    columns.push(("seed".into(), numbers(&|record| Some(record.seed as f64))));
    for name in names {
        columns.push((name.clone(), numbers(&|record| record.values.get(name).copied())));
    }
    Ok(Table { columns })
}

/// The numbers of a summary by their path, `groups.ping EF.application.added_ms.p99`; time series
/// and single flows are left out, so are times of what never arrived; entries of lists go by their
/// name or direction.
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
