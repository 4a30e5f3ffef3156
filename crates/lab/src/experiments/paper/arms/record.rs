//! Recordings of experiments on Linux in virtual time: `simnel witness`.
//!
//! Every arm of a claim that Linux can judge runs with every seed, on a kernel of
//! `conformance/build-linux.sh`. As many run at once as there are processors. What a run heard is a
//! file of its own, named by its orders and seed. So a recording goes on where it was left, and
//! experiments that look at the same runs share them. An experiment's figures are written when all
//! its runs are there.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use simnel_sim::Setup;
use siphasher::sip::SipHasher13;

use super::drive::failure;
use super::error::ArmError;
use super::generator::Recorded;
use super::heard;
use super::linux::{self, Kernel};
use super::plan::Plan;
use crate::experiments::paper::measure::{Measure, Measures, View};
use crate::experiments::paper::recording::{without, ArmRecord, Recording};
use crate::experiments::paper::{set_up, stated, Arm, Experiment, Work};
use crate::files;

/// Settings of a recording.
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
    /// Runs at once; as many as there are processors, if it is none.
    pub jobs: Option<usize>,
}

/// The watcher.
pub struct Watch<'a> {
    /// Set from outside: begin no further run, and leave the one under way.
    pub stop: &'a AtomicBool,
    /// Called before each run: what it is, how many are done, and of how many.
    pub step: &'a mut (dyn FnMut(&str, usize, usize) + Send),
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
    let mut runs = Vec::new();
    for (arm, Prepared { setup, qdisc, .. }) in arms.iter().enumerate() {
        for seed in 1..=u64::from(repetitions) {
            let plan = plan(experiment, setup, qdisc, seed).map_err(ArmError::Guest)?;
            let path = record_of(&plan, seed, options)?;
            runs.push(Run { arm, seed, plan, path });
        }
    }
    hear_all(experiment, &arms, &runs, options, watch)?;
    if watch.stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let mut measures = Measures::default();
    let mut failed = BTreeSet::new();
    for Run { arm, seed, plan, path } in &runs {
        let Prepared { arm: Arm { name, .. }, setup, .. } = &arms[*arm];
        if failed.contains(arm) {
            continue;
        }
        let recorded = read(path)?;
        if let Some(reason) = failure(setup, plan, &recorded) {
            refused.insert(name.clone(), reason);
            failed.insert(*arm);
            continue;
        }
        let run = heard::finished(setup, plan, *seed, &recorded.flows);
        measures.add(name, (experiment.measure)(&View { arm: name, run: &run }));
    }
    let mut setups: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for Prepared { arm, .. } in &arms {
        setups.entry(&arm.name).or_default().push(arm.text());
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

/// An arm with a seed.
struct Run {
    /// Its place among the arms.
    arm: usize,
    seed: u64,
    plan: Plan,
    /// File of what it hears.
    path: PathBuf,
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

/// Carries out every run that has no record yet. An arm that failed with one seed is not run with
/// later ones.
fn hear_all(
    experiment: &Experiment,
    arms: &[Prepared],
    runs: &[Run],
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<(), ArmError> {
    let failed: Vec<AtomicBool> = arms.iter().map(|_| AtomicBool::new(false)).collect();
    let begun: Mutex<BTreeSet<&Path>> = Mutex::default();
    let (step, stop) = (Mutex::new(&mut watch.step), watch.stop);
    let hear = |at: usize, over: &dyn Fn() -> bool| {
        let Run { arm, seed, plan, path } = &runs[at];
        let Prepared { arm: Arm { name, .. }, setup, .. } = &arms[*arm];
        if failed[*arm].load(Ordering::Relaxed) {
            return Ok(());
        }
        let title = format!("{} {name}, seed {seed}", experiment.id);
        locked(&step)(&title, at, runs.len());
        // Arms may share a run.
        if path.exists() || !locked(&begun).insert(path) {
            return Ok(());
        }
        let mut goes_on = |_| !over();
        let recorded = linux::run(plan, &options.kernel, &options.simnel, &mut goes_on)?;
        if over() {
            return Ok(());
        }
        if failure(setup, plan, &recorded).is_some() {
            failed[*arm].store(true, Ordering::Relaxed);
        }
        let text = serde_json::to_string(&recorded)
            .map_err(|error| ArmError::Guest(format!("its results: {error}")))?;
        let failed = |source| ArmError::File { path: path.clone(), source };
        files::put(path, text.as_bytes()).map_err(failed)
    };
    on_processors(options.jobs, runs.len(), stop, &hear)
}

/// The file of what a run of `plan` heard.
fn record_of(plan: &Plan, seed: u64, options: &Options) -> Result<PathBuf, ArmError> {
    let orders = serde_json::to_string(plan)
        .map_err(|error| ArmError::Guest(format!("its orders: {error}")))?;
    Ok(options.runs.join(format!("{}-{seed}.json", fingerprint(&[&orders]))))
}

/// Does `work` for each number below `count` in turn, on `jobs` threads or one a processor. It ends
/// early if one fails or `stop` is set; work can ask if that is so.
///
/// Each thread, and so each guest, keeps to one processor. A kernel in user mode takes five times
/// as long where its system calls wake another one.
fn on_processors<E: Send>(
    jobs: Option<usize>,
    count: usize,
    stop: &AtomicBool,
    work: &(impl Fn(usize, &dyn Fn() -> bool) -> Result<(), E> + Sync),
) -> Result<(), E> {
    let allowed = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|at| allowed.is_set(*at)).collect();
    let (next, has_failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let over = || stop.load(Ordering::Relaxed) || has_failed.load(Ordering::Relaxed);
    let worker = |number: usize| {
        if let Some(processor) = processors.get(number % processors.len().max(1)) {
            let mut own = CpuSet::new();
            own.set(*processor);
            // Slower, where that is refused.
            let _ = sched_setaffinity(None, &own);
        }
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count || over() {
                return Ok(());
            }
            work(at, &over).inspect_err(|_| has_failed.store(true, Ordering::Relaxed))?;
        }
    };
    thread::scope(|scope| {
        let worker = &worker;
        let workers = jobs.unwrap_or(processors.len()).max(1);
        let workers: Vec<_> =
            (0..workers).map(|number| scope.spawn(move || worker(number))).collect();
        let ended = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        ended.collect()
    })
}

/// A mutex's content, also if a thread panicked with it: that panic ends all of this.
fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
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
    fn each_piece_of_work_is_done_once_on_one_processor() {
        let done = Mutex::new(Vec::new());
        let work = |at, _: &dyn Fn() -> bool| {
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            locked(&done).push(at);
            Ok::<(), ()>(())
        };
        for jobs in [None, Some(1), Some(7)] {
            locked(&done).clear();
            on_processors(jobs, 50, &AtomicBool::new(false), &work).unwrap();
            locked(&done).sort_unstable();
            assert_eq!(*locked(&done), (0..50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nothing_more_is_begun_after_a_failure_or_when_stopped() {
        let began = AtomicUsize::new(0);
        let fails = |at, over: &dyn Fn() -> bool| {
            began.fetch_add(1, Ordering::Relaxed);
            if at == 3 {
                return Err(at);
            }
            while at > 3 && !over() {
                thread::yield_now();
            }
            Ok(())
        };
        assert_eq!(on_processors(Some(2), 1000, &AtomicBool::new(false), &fails), Err(3));
        assert!(began.load(Ordering::Relaxed) <= 5, "{began:?}");
        began.store(0, Ordering::Relaxed);
        assert_eq!(on_processors(Some(2), 1000, &AtomicBool::new(true), &fails), Ok(()));
        assert_eq!(began.load(Ordering::Relaxed), 0);
    }

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
