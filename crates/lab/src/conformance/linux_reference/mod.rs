//! The simulator against real Linux: recorded situations, simulated and compared.
//!
//! A recording is one JSON file: the set-up and what Linux measured over several runs. The set-up
//! is `tc` lines, round-trip time, ECN, and each flow's direction, congestion control, mark and
//! start. [`compare`] builds the scenario from the set-up alone, runs it over several seeds and
//! puts both side by side. Compared are goodput of each flow group, mean added latency of each
//! class of probe, drops and marks of each direction. What is beyond tolerance needs a line in the
//! [`Ledger`] with its reason, and a line that covers nothing is an error too.

use std::path::{Path, PathBuf};

use rayon::prelude::*;

mod format;
mod ledger;
mod measure;
mod situation;
mod tc_lines;
mod tree;

pub use format::Recording;
pub use ledger::{Entry, Ledger};
pub use measure::{Line, Tolerance};
pub use situation::Situation;

/// Something about the recordings or the ledger cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct ReferenceError {
    /// The file.
    pub path: String,
    /// The fault.
    pub problem: String,
}

impl ReferenceError {
    pub(crate) fn new(path: &Path, problem: impl ToString) -> ReferenceError {
        ReferenceError { path: path.display().to_string(), problem: problem.to_string() }
    }
}

/// The recordings in `directory`, sorted by name: every JSON file that has runs.
pub fn list(directory: &Path) -> Result<Vec<PathBuf>, ReferenceError> {
    let fail = |error: std::io::Error| ReferenceError::new(directory, error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Simulates the recording at `path` with `seeds` seeds for each of Linux's runs, and compares. A
/// file that cannot be used gives one line that says what is wrong with it.
pub fn compare(path: &Path, seeds: u64, ledger: &Ledger) -> Vec<Line> {
    let name = path.file_stem().map_or(String::new(), |stem| stem.to_string_lossy().into_owned());
    let mut lines = match Recording::read(path) {
        Ok(recording) => measure::measure(&name, &recording, seeds),
        Err(error) => vec![Line::failure(&name, format!("cannot be read: {error}"))],
    };
    for line in &mut lines {
        line.ledger = ledger.reason(line);
    }
    lines
}

/// Compares all of `paths`, on all cores; the order is kept. `done` is called after each.
pub fn compare_all(
    paths: &[PathBuf],
    seeds: u64,
    ledger: &Ledger,
    done: &(dyn Fn() + Sync),
) -> Vec<Vec<Line>> {
    paths
        .par_iter()
        .map(|path| {
            let lines = compare(path, seeds, ledger);
            done();
            lines
        })
        .collect()
}
