//! Scenario files, and many runs of one at once: every discipline with every seed, on all cores.
//!
//! Runs share nothing, so their results do not depend on how many there are or on how they are
//! spread. Each is advanced in small steps, between which it reports progress and looks whether
//! it should stop; what was stopped keeps what it has recorded, marked as incomplete.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use simnel_core::Time;
use simnel_scenario::{Finished, Scenario, ScenarioError};
use simnel_sim::{Results, Run, Setup};

use crate::files;

mod capture;

pub use capture::Pcapng;

/// Steps of simulated time after which a run reports progress.
pub const STEPS: u64 = 1000;

/// Events after which a run looks whether it should stop: milliseconds.
const EVENTS: u64 = 50_000;

/// The runs to do.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Disciplines for both directions; none: the scenario's own.
    pub qdiscs: Vec<String>,
    /// Seeds.
    pub seeds: Vec<u64>,
    /// Where to write every frame of the first run.
    pub capture: Option<PathBuf>,
}

/// The watcher of the runs.
pub struct Watch<'a> {
    /// Set from outside: stop, and keep what there is.
    pub stop: &'a AtomicBool,
    /// Called for each step of each run, from any thread.
    pub step: &'a (dyn Fn() + Sync),
}

/// Bytes of a trace: as many as the longest that makes sense has.
const TRACE: u64 = 512 << 20;

/// Reads the file at `path`. The text comes back with the error, to show the place in it.
pub fn read(path: &Path) -> Result<(Scenario, String), (ScenarioError, String)> {
    let text = files::read_text(path, files::WHOLE).map_err(|error| {
        let what = format!("{}: {error}", path.display());
        (ScenarioError::whole(what, "a readable scenario file"), String::new())
    })?;
    let stem = path.file_stem().map_or("scenario".into(), |stem| stem.to_string_lossy());
    let directory = path.parent().unwrap_or(Path::new(""));
    match parse(&text, &stem, directory) {
        Ok(scenario) => Ok((scenario, text)),
        Err(error) => Err((error, text)),
    }
}

/// Understands `text`; the traces that it names are looked for in `directory`.
pub fn parse(text: &str, name: &str, directory: &Path) -> Result<Scenario, ScenarioError> {
    let trace = |name: &str| {
        files::read_text(&directory.join(name), TRACE).map_err(|error| error.to_string())
    };
    Scenario::parse(text, name, &trace)
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
    let mut setups = Vec::new();
    if plan.qdiscs.is_empty() {
        setups.push(scenario.setup(None)?);
    }
    for words in &plan.qdiscs {
        setups.push(scenario.setup(Some(words))?);
    }
    let jobs: Vec<(&(Setup, [String; 2]), u64)> =
        setups.iter().flat_map(|setup| plan.seeds.iter().map(move |seed| (setup, *seed))).collect();
    let done: Result<Vec<Option<Finished>>, ScenarioError> = jobs
        .par_iter()
        .enumerate()
        .map(|(n, ((setup, qdisc), seed))| {
            if watch.stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let capture = plan.capture.as_ref().filter(|_| n == 0);
            let results = run_one(setup, *seed, capture, watch)?;
            Ok(Some(Finished { qdisc: qdisc.clone(), setup: setup.clone(), results }))
        })
        .collect();
    Ok(done?.into_iter().flatten().collect())
}

fn run_one(
    setup: &Setup,
    seed: u64,
    capture: Option<&PathBuf>,
    watch: &Watch<'_>,
) -> Result<Results, ScenarioError> {
    let refused = |error: String| ScenarioError::whole(error, "a set-up that can be simulated");
    let mut run = Run::new(setup, seed).map_err(|error| refused(error.to_string()))?;
    if let Some(path) = capture {
        let writer = Pcapng::create(path)
            .map_err(|error| refused(format!("{}: {error}", path.display())))?;
        run.capture(Box::new(writer));
    }
    for step in 1..=STEPS {
        let until = u128::from(setup.duration.0) * u128::from(step) / u128::from(STEPS);
        loop {
            if watch.stop.load(Ordering::Relaxed) {
                return Ok(run.results());
            }
            if run.advance_by(Time(until as u64), EVENTS) {
                break;
            }
        }
        (watch.step)();
    }
    Ok(run.results())
}
