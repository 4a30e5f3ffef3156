//! Tests that run one after another between the same hosts, which remember their paths.
//!
//! The evaluation of CAKE ran "a series of Flent invocations" from one host to another (its test
//! set-up, 2017). Until version 5.5 Linux begins a connection at the slow-start threshold that the
//! last one to the same destination has left. It forgets the threshold after an hour without use,
//! and a test takes little more than a minute. So only the very first test began as after a fresh
//! boot.
//!
//! The paper does not give the order: here it is that of its text, by discipline and then by test.
//! What is not the paper's comes after that. [`Memories`] has what the hosts knew before each run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use simnel_core::Time;
use simnel_sim::{Memory, Run};

use super::{contenders, experiments, performance, set_up, Arm, Work};

/// The tests, in the order in which the paper presents them: up, down, both ways, rrul, fifty up.
const TESTS: [&str; 5] = ["B2", "B1", "B3", "B4", "B5"];

/// Hosts' memories before each run of one repetition, by the run's scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Memories(BTreeMap<String, Memory>);

impl Memories {
    /// Runs the series of repetition `seed`, up to the run in which `stop` is set; `step` is called
    /// after each.
    pub(super) fn of(seed: u64, stop: &AtomicBool, step: &dyn Fn()) -> Memories {
        let mut memories = BTreeMap::new();
        let mut memory = Memory { thresholds: true, ..Memory::default() };
        for arm in series() {
            if let (Work::Scenario(file), false) = (&arm.work, stop.load(Ordering::Relaxed)) {
                memories.insert(arm.text(), memory.clone());
                let (setup, _) = set_up(&arm.name, file);
                let mut run = Run::new(&setup, seed).expect("a set-up that was checked");
                run.recall(memory.clone());
                run.advance(Time::MAX);
                memory = run.results().memory.unwrap_or(memory);
            }
            step();
        }
        Memories(memories)
    }

    /// Memory of the hosts before the run of `scenario`; None if that is no part of the series.
    pub(super) fn before(&self, scenario: &str) -> Option<&Memory> {
        self.0.get(scenario)
    }
}

/// Number of runs of a series.
pub(super) fn count() -> usize {
    series().len()
}

/// The runs of a series, in their order.
fn series() -> Vec<Arm> {
    let arms = |id: &str| {
        let experiment = experiments().into_iter().find(|experiment| experiment.id == id);
        experiment.map_or_else(Vec::new, |experiment| (experiment.arms)())
    };
    let mut tests = TESTS.map(arms);
    let own = |name: &&str| *name != performance::NOT_THE_PAPERS;
    let all = contenders::names(&performance::CONTENDERS.map(|(name, _)| name));
    let disciplines = all.iter().copied().filter(own).chain([performance::NOT_THE_PAPERS]);
    let mut series = Vec::new();
    for discipline in disciplines {
        for arms in &mut tests {
            let place = arms.iter().position(|arm| arm.name == discipline);
            series.extend(place.map(|place| arms.remove(place)));
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn the_series_is_every_discipline_with_every_test_once() {
        let series = series();
        let texts: std::collections::BTreeSet<String> = series.iter().map(Arm::text).collect();
        let disciplines = contenders::names(&performance::CONTENDERS.map(|(name, _)| name)).len();
        assert_eq!(series.len(), TESTS.len() * disciplines);
        assert_eq!(texts.len(), series.len());
        assert!(series[..TESTS.len()].iter().all(|arm| arm.name == "sfq"));
        assert_eq!(count(), series.len());
    }

    #[test]
    fn a_series_that_is_stopped_begins_no_further_run_and_counts_all() {
        let (stop, steps) = (AtomicBool::new(true), AtomicUsize::new(0));
        let step = || {
            steps.fetch_add(1, Ordering::Relaxed);
        };
        let memories = Memories::of(1, &stop, &step);
        assert!(memories.0.is_empty());
        assert_eq!(steps.into_inner(), count());
    }
}
