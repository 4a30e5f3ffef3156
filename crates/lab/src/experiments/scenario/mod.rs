//! Scenario files, and many runs of one at once: every discipline with every seed, on all cores.
//!
//! Runs share nothing, so their results do not depend on how many there are or on how they are
//! spread. Between its steps each reports progress and looks whether it should stop.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use serde::Serialize;
use simnel_scenario::{Finished, Scenario, ScenarioError, Simulation, Summary};

use crate::files;

mod capture;

pub use capture::Pcapng;

/// The runs to do.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Disciplines for both directions; none: the scenario's own.
    pub qdiscs: Vec<String>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// File for every frame of the first run, if it is to be captured.
    pub capture: Option<PathBuf>,
}

/// The watcher of the runs.
pub struct Watch<'a> {
    /// Set from outside: stop, and keep what there is.
    pub stop: &'a AtomicBool,
    /// Called for each of a run's [`STEPS`](simnel_scenario::STEPS), from any thread.
    pub step: &'a (dyn Fn() + Sync),
}

/// Runs of one scenario.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The scenario's name, where there are several.
    pub name: String,
    /// Seconds from value to value of all series.
    pub interval_s: f64,
    /// By discipline, a summary a seed.
    pub runs: Vec<Vec<Summary>>,
}

/// Bytes of a trace: as many as the longest that makes sense has.
const TRACE: u64 = 512 << 20;

/// The name of the scenario at `path`, where its text has none.
pub fn name(path: &Path) -> Cow<'_, str> {
    match path.file_stem() {
        _ if files::is_stdin(path) => "stdin".into(),
        Some(stem) => stem.to_string_lossy(),
        None => "scenario".into(),
    }
}

/// Reads the file at `path`, or standard input if that is `-`. The text comes back with the error,
/// to show the place in it; none if it could not be read.
pub fn read(path: &Path) -> Result<(Scenario, String), (ScenarioError, Option<String>)> {
    let text = files::read_text(path, files::WHOLE).map_err(|error| {
        let what = format!("{}: {error}", path.display());
        (ScenarioError::whole(what, "a readable scenario file"), None)
    })?;
    let directory = path.parent().unwrap_or(Path::new(""));
    match parse(&text, &name(path), directory) {
        Ok(scenario) => Ok((scenario, text)),
        Err(error) => Err((error, Some(text))),
    }
}

/// Understands `text`; the traces that it names are looked for in `directory`.
pub fn parse(text: &str, name: &str, directory: &Path) -> Result<Scenario, ScenarioError> {
    Scenario::parse(text, name, &|name| trace(directory, name))
}

/// The trace of that name in `directory`.
pub fn trace(directory: &Path, name: &str) -> Result<String, String> {
    files::read_text(&directory.join(name), TRACE).map_err(|error| error.to_string())
}

impl Plan {
    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.qdiscs.len().max(1) * self.seeds.len()
    }
}

/// Runs everything that `plan` names. The order is that of the plan: by discipline, then by seed.
/// A run that had not begun when it was told to stop is left out.
pub fn run(
    scenario: &Scenario,
    plan: &Plan,
    watch: &Watch<'_>,
) -> Result<Vec<Finished>, ScenarioError> {
    let mut simulations = Vec::new();
    if plan.qdiscs.is_empty() {
        simulations.push(scenario.simulation(None)?);
    }
    for words in &plan.qdiscs {
        simulations.push(scenario.simulation(Some(words))?);
    }
    each_once(simulations.iter())?;
    let with_seeds = |simulation| plan.seeds.iter().map(move |seed| (simulation, *seed));
    let jobs: Vec<(&Simulation, u64)> = simulations.iter().flat_map(with_seeds).collect();
    let done: Result<Vec<Option<Finished>>, ScenarioError> = jobs
        .par_iter()
        .enumerate()
        .map(|(n, (simulation, seed))| {
            if watch.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let capture = plan.capture.as_ref().filter(|_| n == 0);
            run_one(simulation, *seed, capture, watch).map(Some)
        })
        .collect();
    Ok(done?.into_iter().flatten().collect())
}

/// Refuses the same disciplines twice: their runs would stand for more than there are.
pub(super) fn each_once<'a>(
    simulations: impl Iterator<Item = &'a Simulation>,
) -> Result<(), ScenarioError> {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut seen = BTreeSet::new();
    for simulation in simulations {
        let [up, down] = simulation.qdisc().each_ref().map(|text| words(text));
        let what = format!("`{up}` is there twice");
        if !seen.insert([up, down]) {
            return Err(ScenarioError::whole(what, "each discipline once"));
        }
    }
    Ok(())
}

fn run_one(
    simulation: &Simulation,
    seed: u64,
    capture: Option<&PathBuf>,
    watch: &Watch<'_>,
) -> Result<Finished, ScenarioError> {
    let mut run = simulation.begin(seed)?;
    let drive = |run| {
        let mut told = 0;
        simulation.drive(run, &mut |steps| {
            (told..steps).for_each(|_| (watch.step)());
            told = steps;
            match watch.stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    };
    let Some(path) = capture else { return Ok(drive(run)) };
    let written = files::replace(path, |file| {
        let (writer, fate) = Pcapng::begin(file.get_ref().try_clone()?)?;
        run.capture(Box::new(writer));
        let finished = drive(run);
        fate.told().map(|()| finished)
    });
    written.map_err(|error: io::Error| {
        let what = format!("{}: {error}", path.display());
        ScenarioError::whole(what, "a file that can be written")
    })
}
