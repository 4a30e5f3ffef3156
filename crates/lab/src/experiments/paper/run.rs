//! Runs experiments: every arm with every seed, on all cores.
//!
//! Runs share nothing. What a run showed is reduced to its [`Sample`] at once, so that thousands of
//! runs fit in memory. Only the first repetition of each arm keeps its time series. After a stop
//! from outside, outcomes are the experiments of which something was run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;
use simnel_core::{Span, Time};
use simnel_sim::{Memory, Run};

use super::arms::{Difference, Ledger, Reading};
use super::claim::Verdict;
use super::findings::{self, by_reason};
use super::measure::{Measures, Sample, View};
use super::series::{self, Memories};
use super::witness::{self, Judgement, Witness};
use super::{set_up, stated, Arm, Experiment, Work};
use crate::flent;
use simnel_scenario::Finished;

/// Simulated time between looks at a run that ends when its transfers are complete.
const LOOK: Span = Span::from_millis(100);

/// Settings of the runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Repetitions instead of the experiments' own.
    pub repetitions: Option<u32>,
    /// Keep flent's data of the first repetition of every arm (of a grid of equal name: the first).
    pub keep: bool,
    /// B1 to B5 as a series: hosts remember their paths from the tests before.
    pub series: bool,
}

/// The watcher.
pub struct Watch<'a> {
    /// Set from outside: begin no further run.
    pub stop: &'a AtomicBool,
    /// Called after each run, from any thread.
    pub step: &'a (dyn Fn() + Sync),
}

/// An arm after its runs.
#[derive(Clone, Debug)]
pub struct ArmOutcome {
    /// Its name.
    pub name: String,
    /// The scenario; empty if there is none.
    pub scenario: String,
    /// Runs that were done.
    pub runs: usize,
    /// flent's file of the first repetition.
    pub flent: Option<Vec<u8>>,
}

/// An experiment after its runs.
pub struct Outcome {
    /// The experiment.
    pub experiment: &'static Experiment,
    /// Its arms.
    pub arms: Vec<ArmOutcome>,
    /// Repetitions that were asked for, its own unless told otherwise.
    pub repetitions: u32,
    /// Measures.
    pub measures: Measures,
    /// The judged claims.
    pub verdicts: Vec<Verdict>,
    /// Linux's figures for them.
    pub witness: Witness,
}

impl Outcome {
    /// The judgement of claim number `n`; None if nothing was measured of it here.
    pub fn judgement(&self, n: usize) -> Option<Judgement> {
        self.witness.judgement(n, &self.verdicts[n])
    }

    /// The judgements of all claims that have one.
    pub fn judgements(&self) -> impl Iterator<Item = Judgement> + '_ {
        (0..self.verdicts.len()).filter_map(|n| self.judgement(n))
    }

    /// In what the simulator, Linux in virtual time and `readings` are too far apart.
    pub fn differences(&self, readings: &[&Reading]) -> Vec<Difference> {
        if readings.is_empty() {
            return self.witness.differences.clone();
        }
        let own = [("simulated", &self.measures), (witness::NAME, &self.witness.measures)];
        let theirs = readings.iter().map(|reading| (reading.kind.name(), &reading.measures));
        let columns: Vec<_> = own.into_iter().chain(theirs).collect();
        Ledger::of_this_program().differences(self.experiment.id, &self.verdicts, &columns)
    }

    /// Reasons why claims do not hold: each once, with the claims that it explains.
    pub fn reasons(&self) -> Vec<(Vec<&str>, String)> {
        let own = self.experiment.repetitions;
        let all = self.arms.len() * own as usize;
        let runs: usize = self.arms.iter().map(|arm| arm.runs).sum();
        findings::reasons(&self.verdicts, own, self.repetitions == own && runs == all)
    }

    /// Claims that do not hold and have no witness, by the reason why they have none.
    pub fn lacks(&self) -> Vec<(Vec<&str>, String)> {
        let none = |n: &usize| self.judgement(*n) == Some(Judgement::NoWitness);
        let verdicts = (0..self.verdicts.len()).filter(none).map(|n| &self.verdicts[n]);
        by_reason(verdicts.map(|one| (one.claim.id.as_str(), self.witness.lack(one))))
    }

    /// The claims of which something was measured, here or in `readings`, and their numbers: runs
    /// that were stopped are no result.
    pub fn measured<'a>(
        &'a self,
        readings: &'a [&Reading],
    ) -> impl Iterator<Item = (usize, &'a Verdict)> {
        let measured = move |n: usize| {
            let others = readings.iter().map(|reading| &reading.verdicts[n]);
            others.chain([&self.verdicts[n]]).any(|verdict| !verdict.simulated.is_empty())
        };
        self.verdicts.iter().enumerate().filter(move |(n, _)| measured(*n))
    }
}

/// Number of runs of `experiments`, and of those that a series takes to learn.
pub fn count(experiments: &[&'static Experiment], options: &Options) -> usize {
    let runs = |e: &&Experiment| (e.arms)().len() * repetitions(e, options) as usize;
    let learning = match options.series {
        true => most_repetitions(experiments, options) as usize * series::count(),
        false => 0,
    };
    experiments.iter().map(runs).sum::<usize>() + learning
}

/// Runs `experiments` and judges their claims.
pub fn run(
    experiments: &[&'static Experiment],
    options: &Options,
    watch: &Watch<'_>,
) -> Vec<Outcome> {
    let arms: Vec<Vec<Arm>> = experiments.iter().map(|e| (e.arms)()).collect();
    let mut jobs = Vec::new();
    for (n, experiment) in experiments.iter().enumerate() {
        for arm in 0..arms[n].len() {
            jobs.extend((1..=u64::from(repetitions(experiment, options))).map(|s| (n, arm, s)));
        }
    }
    let texts: Vec<Vec<String>> =
        arms.iter().map(|arms| arms.iter().map(Arm::text).collect()).collect();
    // Experiments that look at the same runs in the same way share them.
    let mut first: BTreeMap<(&str, usize, u64), usize> = BTreeMap::new();
    let same: Vec<usize> = jobs
        .iter()
        .enumerate()
        .map(|(job, (n, arm, seed))| match texts[*n][*arm].as_str() {
            "" => job,
            text => {
                let measure = experiments[*n].measure as usize;
                *first.entry((text, measure, *seed)).or_insert(job)
            }
        })
        .collect();
    let memories: Vec<Memories> = match options.series {
        true => {
            let seeds = 1..=most_repetitions(experiments, options);
            let learn = |seed: u32| Memories::of(seed.into(), watch.stop, watch.step);
            seeds.into_par_iter().map(learn).collect()
        }
        false => Vec::new(),
    };
    let done: Vec<Option<Done>> = jobs
        .par_iter()
        .with_max_len(1)
        .enumerate()
        .map(|(job, (n, arm, seed))| {
            let shared = same[job] != job;
            if shared || watch.stop.load(Ordering::Relaxed) {
                (watch.step)();
                return None;
            }
            let named = |other: &Arm| other.name == arms[*n][*arm].name;
            let leads = arms[*n].iter().position(named) == Some(*arm);
            let keep = options.keep && *seed == 1 && leads;
            let memory = memories.get(*seed as usize - 1);
            let memory = memory.and_then(|memories| memories.before(&texts[*n][*arm]));
            let done = one(experiments[*n], &arms[*n][*arm], *seed, memory, keep);
            (watch.step)();
            Some(done)
        })
        .collect();
    let mut outcomes: Vec<Outcome> = Vec::new();
    for ((experiment, arms), texts) in experiments.iter().zip(&arms).zip(&texts) {
        let arms = arms.iter().zip(texts).map(|(arm, text)| ArmOutcome {
            name: arm.name.clone(),
            scenario: text.clone(),
            runs: 0,
            flent: None,
        });
        let (arms, measures) = (arms.collect(), Measures::default());
        let repetitions = repetitions(experiment, options);
        let (verdicts, witness) = (Vec::new(), Witness::default());
        outcomes.push(Outcome { experiment, arms, repetitions, measures, verdicts, witness });
    }
    for (job, (n, arm, _)) in jobs.iter().enumerate() {
        let done = done[same[job]].clone();
        let outcome = &mut outcomes[*n];
        let arm = &mut outcome.arms[*arm];
        if let Some(done) = done {
            arm.runs += 1;
            arm.flent = arm.flent.take().or(done.flent);
            outcome.measures.add(&arm.name, done.sample);
        }
    }
    outcomes.retain(|outcome| outcome.arms.iter().any(|arm| arm.runs > 0));
    let in_series =
        |arm: &ArmOutcome| memories.first().is_some_and(|one| one.before(&arm.scenario).is_some());
    for outcome in &mut outcomes {
        let id = outcome.experiment.id;
        let claims = stated::claims(id).into_iter();
        outcome.verdicts = claims.map(|claim| claim.judge(&outcome.measures)).collect();
        outcome.witness = match outcome.arms.iter().any(in_series) {
            false => Witness::about(id, &outcome.verdicts, &outcome.measures),
            true => Witness::none(id, "Linux was recorded with hosts that remember nothing"),
        };
    }
    outcomes
}

/// A run that is done.
#[derive(Clone)]
struct Done {
    sample: Sample,
    flent: Option<Vec<u8>>,
}

fn repetitions(experiment: &Experiment, options: &Options) -> u32 {
    options.repetitions.unwrap_or(experiment.repetitions).max(1)
}

fn most_repetitions(experiments: &[&'static Experiment], options: &Options) -> u32 {
    experiments.iter().map(|experiment| repetitions(experiment, options)).max().unwrap_or(0)
}

fn one(experiment: &Experiment, arm: &Arm, seed: u64, memory: Option<&Memory>, keep: bool) -> Done {
    let (sample, finished) = sample_with(experiment, arm, seed, memory);
    // Written to memory, where nothing can fail.
    let flent = finished.filter(|_| keep).map(|finished| {
        let name = format!("{} {}", experiment.id, arm.name);
        flent::Data::of(&name, &finished).write().unwrap_or_default()
    });
    Done { sample, flent }
}

/// The measures of one run of an arm, and the run if it was one of a scenario.
pub fn sample(experiment: &Experiment, arm: &Arm, seed: u64) -> (Sample, Option<Finished>) {
    sample_with(experiment, arm, seed, None)
}

/// The same with hosts that begin with `memory`.
fn sample_with(
    experiment: &Experiment,
    arm: &Arm,
    seed: u64,
    memory: Option<&Memory>,
) -> (Sample, Option<Finished>) {
    let file = match &arm.work {
        Work::Direct(measured, work) => {
            let sample = work(seed);
            let known = |(name, _): &(String, _)| measured.contains(name);
            assert!(sample.values.iter().all(known), "{} measures {measured:?}", arm.name);
            return (sample, None);
        }
        Work::Scenario(file) => file,
    };
    let (setup, qdisc) = set_up(&format!("{} {}", experiment.id, arm.name), file);
    let mut run = Run::new(&setup, seed).expect("a set-up that was checked");
    if let Some(memory) = memory {
        run.recall(memory.clone());
    }
    if arm.until_done {
        while !run.is_over() && !run.all_finished() {
            run.advance(run.now() + LOOK);
        }
    } else {
        run.advance(Time::MAX);
    }
    let finished = Finished { qdisc, setup, results: run.results() };
    let mut sample = (experiment.measure)(&View { arm: &arm.name, run: &finished });
    if seed != 1 {
        sample.curves.clear();
    }
    (sample, Some(finished))
}
