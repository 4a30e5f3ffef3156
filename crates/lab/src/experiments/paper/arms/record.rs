//! Recordings of experiments on Linux in virtual time: `simnel witness`.
//!
//! Every arm of a claim that Linux can judge runs with every seed, one after the other, on a kernel
//! of `conformance/build-linux.sh`. What a run heard is a file of its own, named by its orders and
//! seed, so that a recording goes on where it was left, and experiments that look at the same runs
//! share them. An experiment's figures are written when all its runs are there.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use simnel_sim::Setup;
use siphasher::sip::SipHasher13;

use super::drive::failure;
use super::generator::Recorded;
use super::linux::{self, Kernel};
use super::plan::Plan;
use super::{heard, ArmError};
use crate::experiments::paper::measure::{Measure, Measures, View};
use crate::experiments::paper::witness::{without, ArmRecord, Recording};
use crate::experiments::paper::{set_up, stated, Arm, Experiment, Work};
use crate::files;

/// How to record.
#[derive(Clone, Debug)]
pub struct Options {
    /// The kernel.
    pub kernel: Kernel,
    /// The `simnel` program.
    pub simnel: PathBuf,
    /// Directory of what single runs heard.
    pub runs: PathBuf,
    /// Repetitions instead of the experiment's own.
    pub repetitions: Option<u32>,
}

/// The watcher.
pub struct Watch<'a> {
    /// Set from outside: begin no further run, and leave the one under way.
    pub stop: &'a AtomicBool,
    /// Called before each run: what it is, how many are done, and of how many.
    pub step: &'a mut dyn FnMut(&str, usize, usize),
}

/// Runs `experiment`; None if it was stopped.
pub fn record(
    experiment: &'static Experiment,
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<Option<Recording>, ArmError> {
    let mut refused = BTreeMap::new();
    let mut arms: Vec<Prepared> = Vec::new();
    for arm in (experiment.arms)() {
        match prepare(experiment, &arm) {
            Ok((setup, qdisc)) => arms.push(Prepared { arm, setup, qdisc }),
            Err(reason) => drop(refused.insert(arm.name, reason)),
        }
    }
    let wanted = wanted(experiment, &mut refused);
    arms.retain(|one| wanted.iter().any(|measure| measure.arm == one.arm.name));
    let repetitions = options.repetitions.unwrap_or(experiment.repetitions);
    let (mut done, all) = (0, arms.len() * repetitions as usize);
    let mut measures = Measures::default();
    let mut setups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for Prepared { arm, setup, qdisc } in &arms {
        setups.entry(&arm.name).or_default().push(arm.text());
        let title = format!("{} {}", experiment.id, arm.name);
        for seed in 1..=u64::from(repetitions) {
            (watch.step)(&format!("{title}, seed {seed}"), done, all);
            done += 1;
            let plan = plan(experiment, setup, qdisc, seed).map_err(ArmError::Guest)?;
            let Some(recorded) = heard_of(&plan, seed, options, watch.stop)? else {
                return Ok(None);
            };
            if let Some(reason) = failure(setup, &plan, &recorded) {
                refused.insert(arm.name.clone(), reason);
                break;
            }
            let run = heard::finished(setup, &plan, seed, &recorded.flows);
            let sample = (experiment.measure)(&View { arm: &arm.name, run: &run });
            measures.add(&arm.name, sample);
        }
    }
    for measure in &wanted {
        let values = measures.values(measure);
        if let Some(run) = values.iter().position(|value| !value.is_finite()) {
            let reason = format!("{} of run {} is no number", measure.quantity, run + 1);
            refused.insert(measure.arm.clone(), reason);
        }
    }
    let mut recorded: BTreeMap<String, ArmRecord> = BTreeMap::new();
    for measure in wanted.iter().filter(|measure| !refused.contains_key(&measure.arm)) {
        let Some(texts) = setups.get(measure.arm.as_str()) else { continue };
        let arm = recorded.entry(measure.arm.clone()).or_default();
        arm.setup = fingerprint(texts);
        arm.values.insert(measure.quantity.clone(), measures.values(measure).to_vec());
    }
    let kernel = format!("Linux {}, user mode, time-travel=inf-cpu", options.kernel.version()?);
    Ok(Some(Recording { kernel, repetitions, arms: recorded, refused }))
}

/// An arm that Linux can run.
struct Prepared {
    arm: Arm,
    setup: Setup,
    qdisc: [String; 2],
}

/// The set-up of `arm`. The error says why Linux cannot run it.
fn prepare(experiment: &Experiment, arm: &Arm) -> Result<(Setup, [String; 2]), String> {
    let Work::Scenario(file) = &arm.work else { return Err("it has no network".into()) };
    let (setup, qdisc) = set_up(&format!("{} {}", experiment.id, arm.name), file);
    plan(experiment, &setup, &qdisc, 1)?;
    Ok((setup, qdisc))
}

fn plan(
    experiment: &Experiment,
    setup: &Setup,
    qdisc: &[String; 2],
    seed: u64,
) -> Result<Plan, String> {
    let plan = Plan::new(setup, qdisc, seed)?;
    Ok(if experiment.paper.looks_into_queues() { plan.watched(setup) } else { plan })
}

/// Measures of the claims of which Linux can run every arm. Of `refused`, which has the others,
/// those stay that a claim is about.
fn wanted(experiment: &Experiment, refused: &mut BTreeMap<String, String>) -> BTreeSet<Measure> {
    let (mut wanted, mut asked) = (BTreeSet::new(), BTreeSet::new());
    for claim in stated::claims(experiment.id) {
        let measures = claim.judge.measures();
        let known = without(&claim.id).is_some();
        if !known && measures.iter().all(|measure| !refused.contains_key(&measure.arm)) {
            wanted.extend(measures.iter().copied().cloned());
        }
        asked.extend(measures.into_iter().map(|measure| measure.arm.clone()));
    }
    refused.retain(|arm, _| asked.contains(arm));
    wanted
}

/// Records of the flows in a run of `plan`, made now or earlier; None if it was stopped.
fn heard_of(
    plan: &Plan,
    seed: u64,
    options: &Options,
    stop: &AtomicBool,
) -> Result<Option<Recorded>, ArmError> {
    let orders = serde_json::to_string(plan)
        .map_err(|error| ArmError::Guest(format!("its orders: {error}")))?;
    let path = options.runs.join(format!("{}-{seed}.json", fingerprint(&[&orders])));
    let failed = |source| ArmError::File { path: path.clone(), source };
    if path.exists() {
        return read(&path).map(Some);
    }
    let mut step = |_| !stop.load(Ordering::Relaxed);
    let recorded = linux::run(plan, &options.kernel, &options.simnel, &mut step)?;
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let text = serde_json::to_string(&recorded)
        .map_err(|error| ArmError::Guest(format!("its results: {error}")))?;
    files::put(&path, text.as_bytes()).map_err(failed)?;
    Ok(Some(recorded))
}

fn read(path: &Path) -> Result<Recorded, ArmError> {
    let text = files::read_text(path, files::WHOLE)
        .map_err(|source| ArmError::File { path: path.to_owned(), source })?;
    serde_json::from_str(&text).map_err(|error| {
        let reason = format!("{}: {error}: delete it, to run that again", path.display());
        ArmError::Guest(reason)
    })
}

/// Tells texts apart: one that has changed has another.
pub fn fingerprint(texts: &[impl AsRef<str>]) -> String {
    let mut hasher = SipHasher13::new();
    for text in texts {
        hasher.write(text.as_ref().as_bytes());
        hasher.write_u8(0xff);
    }
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::paper::experiments;

    #[test]
    fn experiments_set_nothing_of_tcp_that_linux_would_not_have() {
        let mut carried = 0;
        for experiment in experiments() {
            for arm in (experiment.arms)() {
                match prepare(experiment, &arm) {
                    Ok(_) => carried += 1,
                    Err(reason) => assert!(!reason.contains("settings of TCP"), "{reason}"),
                }
            }
        }
        assert!(carried > 0);
    }
}
