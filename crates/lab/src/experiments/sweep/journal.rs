//! Journals of sweeps: one line that says which sweep it is, then one for each run. Read line by
//! line: a journal may be larger than memory, its runs' numbers are not.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{wrong, SweepError};
use crate::figures::table::{Column, Table};
use crate::files;
use crate::statistics::Estimate;

/// Bytes of a line that are read at most.
const LINE: u64 = 1 << 24;
/// Beginning of a journal's first line.
const BEGINNING: &[u8] = b"{\"sweep\":";
/// The remedy for a damaged line.
const AS_WRITTEN: &str = "lines as they were written; a run whose line is not there is done again";
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

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
pub(super) struct Head {
    pub sweep: String,
    pub scenario: String,
    pub runs: usize,
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

/// True if there are repetitions, and those of each setting measured the same.
pub fn are_alike(results: &[PointResult]) -> bool {
    let repetitions = |one: &PointResult| one.runs.values().map(Vec::len).max().unwrap_or(0);
    let same = |one: &PointResult| {
        let all = repetitions(one);
        let equal = |values: &Vec<f64>| values.windows(2).all(|two| two[0] == two[1]);
        one.runs.values().all(|values| values.len() == all && equal(values))
    };
    results.iter().any(|one| repetitions(one) > 1) && results.iter().all(same)
}

/// Whole lines of a journal, one after the other.
pub(super) struct Lines<'a, R> {
    reader: BufReader<R>,
    journal: &'a Path,
    /// The first line, if that is whole.
    pub head: Option<Head>,
    /// Bytes of whole lines.
    pub whole: u64,
    number: usize,
    /// The line that was read last; at the end what was not written to its end.
    line: Vec<u8>,
}

impl<'a, R: Read> Lines<'a, R> {
    /// Reads the first line.
    pub fn new(reader: R, journal: &'a Path) -> Result<Lines<'a, R>, SweepError> {
        let reader = BufReader::with_capacity(1 << 16, reader);
        let mut lines =
            Lines { reader, journal, head: None, whole: 0, number: 0, line: Vec::new() };
        if lines.next_line()? {
            let text = lines.line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&lines.line);
            lines.head = Some(serde_json::from_slice(text).map_err(|_| lines.strange())?);
        }
        Ok(lines)
    }

    /// The next run and the number of its line; None at the end.
    pub fn next_record(&mut self) -> Result<Option<(usize, Record)>, SweepError> {
        if self.head.is_none() || !self.next_line()? {
            return Ok(None);
        }
        let record: Record = serde_json::from_slice(&self.line).map_err(|_| self.strange())?;
        match self.head.as_ref().map_or(Ok(()), |head| possible(&record, head)) {
            Ok(()) => Ok(Some((self.number, record))),
            Err(why) => Err(astray(self.journal, self.number, &why)),
        }
    }

    /// True at the end of a journal, killed at its beginning, in which nothing is whole.
    pub fn may_be_torn(&self) -> bool {
        self.line.starts_with(BEGINNING) || BEGINNING.starts_with(&self.line)
    }

    /// Reads a line; false if there is no whole one.
    fn next_line(&mut self) -> Result<bool, SweepError> {
        self.number += 1;
        self.line.clear();
        let read = (&mut self.reader).take(LINE).read_until(b'\n', &mut self.line);
        let length = read.map_err(|error| unreadable(self.journal, &error))? as u64;
        let is_whole = self.line.last() == Some(&b'\n');
        if !is_whole && length == LINE {
            return Err(self.strange());
        }
        self.whole += if is_whole { length } else { 0 };
        Ok(is_whole)
    }

    fn strange(&self) -> SweepError {
        strange(self.journal, self.number)
    }
}

/// Refuses what a sweep cannot have written.
fn possible(Record { run, seed, .. }: &Record, head: &Head) -> Result<(), String> {
    if *run >= head.runs {
        return Err(format!("run {run} of {}, which are numbered from 0", head.runs));
    }
    if !(1..=*run as u64 + 1).contains(seed) {
        return Err(format!("run {run} has no seed {seed}"));
    }
    Ok(())
}

/// Runs of one or several journals of a sweep, each once, in order. A number takes eight bytes.
#[derive(Debug, Default)]
pub struct Journal {
    head: Option<Head>,
    /// Measures and their places.
    names: BTreeMap<String, usize>,
    /// Settings and their places.
    points: BTreeMap<BTreeMap<String, String>, usize>,
    by_number: BTreeMap<usize, Run>,
}

#[derive(Debug)]
struct Run {
    point: usize,
    seed: u64,
    /// By the places of measures; what was not measured is no number.
    values: Box<[f64]>,
}

impl Journal {
    /// The journal at `path`, which may be packed, or on standard input if that is `-`.
    pub fn read(path: &Path) -> Result<Journal, SweepError> {
        let mut journal = Journal::default();
        journal.add(path)?;
        Ok(journal)
    }

    /// Runs that there are, and those of the sweep.
    pub fn progress(&self) -> (usize, usize) {
        (self.by_number.len(), self.head.as_ref().map_or(0, |head| head.runs))
    }

    /// Means and intervals, in the order of the settings.
    pub fn results(&self) -> Vec<PointResult> {
        let points = self.points();
        let mut results: Vec<(usize, Vec<Vec<f64>>)> = Vec::new();
        for run in self.by_number.values() {
            if results.last().is_none_or(|(point, _)| *point != run.point) {
                results.push((run.point, vec![Vec::new(); self.names.len()]));
            }
            let Some((_, columns)) = results.last_mut() else { continue };
            for (column, value) in columns.iter_mut().zip(&run.values) {
                column.extend(Some(*value).filter(|value| !value.is_nan()));
            }
        }
        let estimated = |(point, columns): (usize, Vec<Vec<f64>>)| {
            let column = |(name, place): (&String, &usize)| (name.clone(), columns[*place].clone());
            let measured = self.names.iter().map(column).filter(|(_, values)| !values.is_empty());
            let runs: BTreeMap<String, Vec<f64>> = measured.collect();
            let one =
                |(name, values): (&String, &Vec<f64>)| Some((name.clone(), Estimate::of(values)?));
            let values = runs.iter().filter_map(one).collect();
            PointResult { point: points[point].clone(), values, runs }
        };
        results.into_iter().map(estimated).collect()
    }

    /// A row a run in their order, with setting, seed and measures under the names that the Python
    /// package gives them. What a run did not measure is no number.
    pub fn table(&self) -> Table {
        let points = self.points();
        let all = || self.by_number.values();
        let keys = points.first().into_iter().flat_map(|point| point.keys());
        let words = |key: &String| all().map(|run| points[run.point][key].clone()).collect();
        let mut columns: Vec<(String, Column)> =
            keys.map(|key| (key.clone(), Column::Text(words(key)))).collect();
        columns.push(("seed".into(), Column::Number(all().map(|run| run.seed as f64).collect())));
        for (name, place) in &self.names {
            let value = |run: &Run| run.values.get(*place).copied().unwrap_or(f64::NAN);
            columns.push((name.clone(), Column::Number(all().map(value).collect())));
        }
        Table { columns }
    }

    fn add(&mut self, journal: &Path) -> Result<(), SweepError> {
        let broken = |error| unreadable(journal, &error);
        let reader: Box<dyn Read> = match files::is_stdin(journal) {
            true => Box::new(io::stdin()),
            false => Box::new(File::open(journal).map_err(broken)?),
        };
        let (_, reader) = files::stream(reader).map_err(broken)?;
        let mut lines = Lines::new(reader, journal)?;
        let head = lines.head.clone().ok_or_else(|| strange(journal, 1))?;
        if self.head.as_ref().is_some_and(|known| *known != head) {
            let what = format!("{} belongs to another sweep", journal.display());
            return Err(wrong(what, "journals of one sweep"));
        }
        self.head = Some(head);
        while let Some((line, record)) = lines.next_record()? {
            self.take(record).map_err(|why| astray(journal, line, &why))?;
        }
        Ok(())
    }

    fn take(&mut self, record: Record) -> Result<(), String> {
        let Record { run, point, seed, values } = record;
        let known = self.points.first_key_value();
        if known.is_some_and(|(known, _)| !known.keys().eq(point.keys())) {
            return Err(format!("run {run} has another setting"));
        }
        let next = self.points.len();
        let point = *self.points.entry(point).or_insert(next);
        let mut row = vec![f64::NAN; self.names.len()];
        for (name, value) in values {
            let next = self.names.len();
            let place = *self.names.entry(name).or_insert(next);
            match row.get_mut(place) {
                Some(known) => *known = value,
                None => row.push(value),
            }
        }
        self.by_number.insert(run, Run { point, seed, values: row.into() });
        Ok(())
    }

    /// Settings by their places.
    fn points(&self) -> Vec<&BTreeMap<String, String>> {
        let mut points: Vec<_> = self.points.iter().collect();
        points.sort_by_key(|(_, place)| **place);
        points.into_iter().map(|(point, _)| point).collect()
    }

    /// Measures of a run.
    fn values<'a>(&'a self, run: &'a Run) -> impl Iterator<Item = (&'a String, f64)> {
        let measured = |(name, place): (&'a String, &usize)| Some((name, *run.values.get(*place)?));
        self.names.iter().filter_map(measured).filter(|(_, value)| !value.is_nan())
    }
}

/// Writes one journal with the runs of `journals`, and of the one that is there already: each once,
/// in order. Returns how many runs are still missing.
pub fn merge(journals: &[PathBuf], out: &Path) -> Result<usize, SweepError> {
    let mut runs = Journal::default();
    journals.iter().try_for_each(|journal| runs.add(journal))?;
    let there = File::open(out).ok().filter(|file| file.metadata().is_ok_and(|of| of.is_file()));
    if let Some(file) = &there {
        lock(file, out)?;
        let is_empty = file.metadata().is_ok_and(|of| of.len() == 0);
        if !is_empty && !journals.iter().any(|journal| files::is_same(journal, out)) {
            runs.add(out)?;
        }
    }
    let Some(head) = &runs.head else {
        return Err(wrong("nothing to merge", "journals of shards"));
    };
    let points = runs.points();
    files::replace(out, |file| {
        write_line(file, head)?;
        runs.by_number.iter().try_for_each(|(number, run)| {
            let values = runs.values(run).map(|(name, value)| (name.clone(), value)).collect();
            let point = points[run.point].clone();
            write_line(file, &Record { run: *number, point, seed: run.seed, values })
        })
    })
    .map_err(|error| unwritable(out, &error))?;
    let (done, all) = runs.progress();
    Ok(all - done)
}

/// The right to write a journal.
pub(super) fn lock(file: &File, journal: &Path) -> Result<(), SweepError> {
    if files::try_lock(file) {
        return Ok(());
    }
    let problem = format!("{}: another sweep is writing it", journal.display());
    Err(wrong(problem, "another file with --output, or that one's end"))
}

pub(super) fn write_line(file: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    // One call, so that a kill leaves a whole line or a torn last one, never two mixed.
    file.write_all(&line)?;
    file.flush()
}

pub(super) fn strange(journal: &Path, line: usize) -> SweepError {
    let what = format!("{}: line {line} is no line of a sweep", journal.display());
    wrong(what, if line == 1 { "another file" } else { AS_WRITTEN })
}

/// A line that its sweep cannot have written.
pub(super) fn astray(journal: &Path, line: usize, why: &str) -> SweepError {
    let what = format!("{}: line {line} does not belong to its sweep: {why}", journal.display());
    wrong(what, AS_WRITTEN)
}

pub(super) fn unwritable(journal: &Path, error: &io::Error) -> SweepError {
    wrong(format!("{}: {error}", journal.display()), "a file that can be written")
}

fn unreadable(journal: &Path, error: &io::Error) -> SweepError {
    wrong(format!("{}: {error}", journal.display()), "a journal of `simnel sweep`")
}
