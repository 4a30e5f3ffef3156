//! Runs of an experiment on an arm, one contender after the other.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use simnel_scenario::File;
use simnel_sim::Setup;
use simnel_testbed::TestbedError;

use super::error::ArmError;
use super::linux::Kernel;
use super::{generator, heard, linux, live, plan, Kind, Means, Reading};
use crate::experiments::paper::measure::View;
use crate::experiments::paper::{set_up, stated, Experiment, Work};

/// Settings of the runs on an arm.
#[derive(Clone, Debug)]
pub struct Options {
    /// The arm.
    pub kind: Kind,
    /// The `simnel` program.
    pub simnel: PathBuf,
    /// Unsafe code.
    pub means: Means,
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
        let prepared = match prepare(file, &title, options) {
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
            Kind::Live => live::run(&plan, &options.simnel, options.means, &mut step),
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

/// Reason why `recorded` is no result of `plan`, which was made of `setup`; None if it is one.
pub(super) fn failure(
    setup: &Setup,
    plan: &plan::Plan,
    recorded: &generator::Recorded,
) -> Option<String> {
    let mut flows = plan.flows.iter().zip(&recorded.flows);
    let of_one = flows.find_map(|(flow, heard)| {
        let name = &setup.traffic[flow.group as usize].name;
        heard.failure.as_ref().map(|reason| format!("{name}: {reason}"))
    });
    let unseen = match recorded.unseen {
        0 => None,
        count => Some(format!("{count} packets left the gateway and were not seen to come")),
    };
    let nothing = || "not one transfer delivered anything".to_string();
    of_one.or(unseen).or_else(|| recorded.carried_nothing(plan).then(nothing))
}

/// A larger share of the processor than others have, for this thread and what it starts, where that
/// is permitted. A thread that is woken late looks like delay on the line.
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
        Kind::Linux if !linux::is_installed() => Err(ArmError::NoLinux(linux::PROGRAM)),
        Kind::Live | Kind::Linux => Ok(()),
    }
}

/// Spreads the starts of flows; everything else is as random as the machine.
const SEED: u64 = 1;

fn prepare(file: &File, name: &str, options: &Options) -> Result<(Setup, plan::Plan), String> {
    let (setup, qdisc) = set_up(name, file);
    let setup = plan::shortened(&setup, options.longest);
    let plan = plan::Plan::new(&setup, &qdisc, SEED)?;
    if options.kind == Kind::Live && plan.one_way().is_none() {
        return Err("hosts with different round-trip times: `simnel link` has one delay".into());
    }
    Ok((setup, plan))
}
