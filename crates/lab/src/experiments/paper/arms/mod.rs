//! Other ways to run an experiment: live, and on Linux's own disciplines.
//!
//! The simulator is one arm. The *live* arm drives the gateway's data path with Linux's TCP in
//! network namespaces (`live`); the *linux* arm drives Linux's own disciplines inside user-mode
//! Linux (`linux`, and `guest` inside). Both take the experiment's scenario, carry its flows out
//! with one generator in real time, and are measured by the experiment itself, so that a claim has
//! one column an arm. Where columns differ by more than the tolerances of `conformance/arms.toml`,
//! the report says so ([`ledger`]).

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::claim::Verdict;
use super::measure::{Measures, View};
use super::{stated, Experiment, Work};
use simnel_scenario::File;
use simnel_sim::Setup;
use simnel_testbed::TestbedError;

pub mod generator;
pub mod guest;
mod heard;
pub mod ledger;
mod linux;
mod live;
mod network;
pub mod plan;
pub mod record;

pub use generator::PaceSender;
pub use ledger::{Difference, Ledger};
pub use linux::Kernel;

/// An arm beside the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The gateway in network namespaces.
    Live,
    /// Linux's own disciplines in user-mode Linux.
    Linux,
}

impl Kind {
    /// Its column's name. What Linux says in virtual time is recorded, and is the column `linux`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Live => "live",
            Kind::Linux => "linux_now",
        }
    }
}

/// The experiments that are meant for other arms: their flows are transfers and probes, and a
/// minute shows what there is.
pub const EXPERIMENTS: [&str; 6] = ["A2", "A3", "A6", "B3", "B4", "B5"];

/// Why an arm cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ArmError {
    /// The testbed, or a program in it.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// A file of a run.
    #[error("{}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The system's message.
        source: std::io::Error,
    },
    /// User-mode Linux is not installed.
    #[error("`{}` is not installed: `apt-get install user-mode-linux`", linux::PROGRAM)]
    NoLinux,
    /// Linux's own disciplines could not be run.
    #[error("user-mode Linux: {0}")]
    Guest(String),
    /// User-mode Linux ended before its time.
    #[error("user-mode Linux: {0}")]
    GuestDied(String),
}

/// How to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which arm.
    pub kind: Kind,
    /// The `simnel` program.
    pub simnel: PathBuf,
    /// Makes the kernel pace a sender.
    pub pace: PaceSender,
    /// Real time for each run; longer scenarios are measured for less than theirs.
    pub longest: Duration,
    /// Only these contenders; none: all.
    pub contenders: Vec<String>,
}

/// The watcher.
pub struct Watch<'a> {
    /// Set from outside: begin no further run, and leave the one under way.
    pub stop: &'a AtomicBool,
    /// Called every tick: which run, how much of its time is over, and how long it lasts.
    pub step: &'a mut dyn FnMut(&str, Duration, Duration),
}

/// Results of an arm for an experiment.
#[derive(Debug)]
pub struct Reading {
    /// Which arm.
    pub kind: Kind,
    /// The experiment's identifier.
    pub id: &'static str,
    /// Measures, under the simulator's names.
    pub measures: Measures,
    /// The same claims, judged by it.
    pub verdicts: Vec<Verdict>,
    /// flent's data of each run: its title and the file's bytes.
    pub flent: Vec<(String, Vec<u8>)>,
    /// Runs that could not be made, and why.
    pub refused: Vec<(String, String)>,
    /// Seconds that were measured of each run.
    pub window_s: f64,
    /// How late a thread of the generator was woken at worst: peaks of latency may be this
    /// machine's.
    pub late: Duration,
}

impl Reading {
    /// How the runs were made, and how far their times can be trusted, in words.
    pub fn quality(&self) -> String {
        let (seconds, late) = (self.window_s, self.late.as_secs_f64() * 1e3);
        format!("one run of {seconds:.0} s measured; threads were woken up to {late:.1} ms late")
    }

    /// Nothing yet.
    pub fn new(kind: Kind, id: &'static str) -> Reading {
        Reading {
            kind,
            id,
            measures: Measures::default(),
            verdicts: Vec::new(),
            flent: Vec::new(),
            refused: Vec::new(),
            window_s: 0.0,
            late: Duration::ZERO,
        }
    }
}

/// Runs `experiment` on an arm, every contender once, one after the other: runs side by side would
/// take processor time from each other.
pub fn run(experiment: &'static Experiment, options: &Options, watch: &mut Watch<'_>) -> Reading {
    let _priority = Priority::raised();
    let mut reading = Reading::new(options.kind, experiment.id);
    let wanted = |name: &String| options.contenders.is_empty() || options.contenders.contains(name);
    for arm in (experiment.arms)().into_iter().filter(|arm| wanted(&arm.name)) {
        if watch.stop.load(Ordering::Relaxed) {
            break;
        }
        let Work::Scenario(file) = &arm.work else {
            let reason = "it has no network".to_string();
            reading.refused.push((arm.name, reason));
            continue;
        };
        let title = format!("{} {} {}", experiment.id, arm.name, options.kind.name());
        let prepared = match prepare(file, &title, options.longest) {
            Ok(prepared) => prepared,
            Err(reason) => {
                reading.refused.push((arm.name, reason));
                continue;
            }
        };
        let (setup, plan) = prepared;
        let mut step = |at: Duration| {
            (watch.step)(&title, at, plan.duration);
            !watch.stop.load(Ordering::Relaxed)
        };
        let recorded = match options.kind {
            Kind::Live => live::run(&plan, &options.simnel, options.pace, &mut step),
            Kind::Linux => linux::run(&plan, &Kernel::debian(), &options.simnel, &mut step),
        };
        if watch.stop.load(Ordering::Relaxed) {
            break;
        }
        // One run that fails takes nothing from the others.
        let recorded = match recorded.map(|recorded| (failure(&setup, &plan, &recorded), recorded))
        {
            Ok((None, recorded)) => recorded,
            Ok((Some(reason), _)) => {
                reading.refused.push((arm.name, reason));
                continue;
            }
            Err(error) => {
                reading.refused.push((arm.name, error.to_string()));
                continue;
            }
        };
        let run = heard::finished(&setup, &plan, SEED, &recorded.flows);
        let view = View { arm: &arm.name, run: &run };
        reading.window_s = view.window_s();
        reading.late = reading.late.max(recorded.late);
        reading.measures.add(&arm.name, (experiment.measure)(&view));
        let flent = crate::flent::Data::of(&title, &run).write().unwrap_or_default();
        reading.flent.push((title, flent));
    }
    let claims = stated::claims(experiment.id);
    reading.verdicts = claims.into_iter().map(|claim| claim.judge(&reading.measures)).collect();
    reading
}

/// Why `recorded` is no result of `plan`, which was made of `setup`.
fn failure(setup: &Setup, plan: &plan::Plan, recorded: &generator::Recorded) -> Option<String> {
    let mut flows = plan.flows.iter().zip(&recorded.flows);
    let of_one = flows.find_map(|(flow, heard)| {
        let name = &setup.traffic[flow.group as usize].name;
        heard.failure.as_ref().map(|reason| format!("{name}: {reason}"))
    });
    let nothing = || "not one transfer delivered anything".to_string();
    of_one.or_else(|| recorded.carried_nothing(plan).then(nothing))
}

/// More of the processor than others, for this thread and what it starts, where that is permitted:
/// a thread that is woken late looks like delay on the line.
struct Priority;

impl Priority {
    const STEPS: i32 = 19;

    fn raised() -> Option<Priority> {
        rustix::process::nice(-Priority::STEPS).is_ok().then_some(Priority)
    }
}

impl Drop for Priority {
    fn drop(&mut self) {
        let _ = rustix::process::nice(Priority::STEPS);
    }
}

/// Checks that an arm can run here at all; the error says what it lacks.
pub fn check(kind: Kind) -> Result<(), ArmError> {
    match kind {
        Kind::Live if !rustix::process::geteuid().is_root() => Err(TestbedError::NotRoot.into()),
        Kind::Linux if !linux::is_installed() => Err(ArmError::NoLinux),
        Kind::Live | Kind::Linux => Ok(()),
    }
}

/// Spreads the starts of flows; everything else is as random as the machine.
const SEED: u64 = 1;

fn prepare(file: &File, name: &str, longest: Duration) -> Result<(Setup, plan::Plan), String> {
    let (setup, qdisc) = super::set_up(name, file);
    let setup = plan::shortened(&setup, longest);
    let plan = plan::Plan::new(&setup, &qdisc, SEED)?;
    Ok((setup, plan))
}
