//! Linux 6.1 in the papers' experiments: a witness for every claim.
//!
//! `conformance/papers/ID.json` has the figures of an experiment as `simnel witness` recorded them
//! on Linux in virtual time, with the same scenarios, seeds and measures. They are part of the
//! program. A claim that does not hold here is judged by them. Either it does not hold on Linux
//! either, or ours differs from Linux, or there is no witness, for a reason in words.

use std::collections::{BTreeMap, BTreeSet};

use super::arms::{Difference, Ledger};
use super::claim::Verdict;
use super::measure::{Measure, Measures};
use super::recording::{without, Recording};
use super::{stated, Experiment};

/// The column's name.
pub const NAME: &str = "Linux 6.1";

/// Judgement of a claim with a witness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judgement {
    /// It holds here.
    Holds,
    /// It holds neither here nor on Linux, and their figures agree.
    NotOnLinuxEither,
    /// It does not hold here, and Linux's figures are others.
    OursDiffers,
    /// It does not hold here, and Linux has not been asked.
    NoWitness,
}

impl Judgement {
    /// All, in the order in which they are counted.
    pub const ALL: [Judgement; 4] = [
        Judgement::Holds,
        Judgement::NotOnLinuxEither,
        Judgement::OursDiffers,
        Judgement::NoWitness,
    ];

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Judgement::Holds => "holds",
            Judgement::NotOnLinuxEither => "not on Linux either",
            Judgement::OursDiffers => "ours differs",
            Judgement::NoWitness => "no witness",
        }
    }
}

/// Number of each judgement, in words: "3 claims: 2 hold, ours differs in 1". If runs were stopped,
/// not every one of the `claims` is judged: "16 claims, 4 of them judged: 4 hold".
pub fn counts(claims: usize, judgements: impl Iterator<Item = Judgement>) -> String {
    let mut counts = BTreeMap::new();
    for judgement in judgements {
        *counts.entry(judgement).or_insert(0) += 1;
    }
    let each = counts.iter().map(|(judgement, count)| match (judgement, count) {
        (Judgement::Holds, 2..) => format!("{count} hold"),
        (Judgement::OursDiffers, _) => format!("ours differs in {count}"),
        (Judgement::NoWitness, _) => format!("{count} without a witness"),
        _ => format!("{count} {}", judgement.words()),
    });
    let each = each.collect::<Vec<_>>().join(", ");
    let noun = if claims == 1 { "claim" } else { "claims" };
    match counts.values().sum::<usize>() {
        0 => format!("{claims} {noun}, none judged"),
        judged if judged < claims => format!("{claims} {noun}, {judged} of them judged: {each}"),
        _ => format!("{claims} {noun}: {each}"),
    }
}

/// Linux beside the simulator, for the claims of one experiment.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    /// Linux's measures; empty if it was not asked.
    pub measures: Measures,
    /// The same claims, judged by that.
    pub verdicts: Vec<Verdict>,
    /// Measures in which the two are too far apart.
    pub differences: Vec<Difference>,
    refused: BTreeMap<String, String>,
    /// Reason why there is no witness at all, where one is known.
    absent: Option<&'static str>,
}

impl Witness {
    /// No witness about the experiment `id`, for the reason `why`.
    pub fn none(id: &str, why: &'static str) -> Witness {
        let measures = Measures::default();
        let verdicts = stated::claims(id).into_iter().map(|claim| claim.judge(&measures)).collect();
        Witness { verdicts, absent: Some(why), ..Witness::default() }
    }

    /// The witness about the experiment `id`, of which the simulator measured `simulated`.
    pub fn about(id: &str, verdicts: &[Verdict], simulated: &Measures) -> Witness {
        let recording = Recording::about(id).unwrap_or_default();
        let measures = recording.measures();
        let columns = [("simulated", simulated), (NAME, &measures)];
        let differences = Ledger::of_this_program().differences(id, verdicts, &columns);
        let verdicts = stated::claims(id).into_iter().map(|claim| claim.judge(&measures)).collect();
        Witness { measures, verdicts, differences, refused: recording.refused, absent: None }
    }

    /// The judgement of claim number `n`, whose verdict here is `ours`; None if it has none.
    pub fn judgement(&self, n: usize, ours: &Verdict) -> Option<Judgement> {
        if ours.holds? {
            return Some(Judgement::Holds);
        }
        let Some(linux) = self.verdicts.get(n).and_then(|verdict| verdict.holds) else {
            return Some(Judgement::NoWitness);
        };
        let apart: BTreeSet<&Measure> = self.differences.iter().map(|one| &one.measure).collect();
        let agree = ours.claim.judge.measures().into_iter().all(|name| !apart.contains(name));
        Some(match agree && !linux {
            true => Judgement::NotOnLinuxEither,
            false => Judgement::OursDiffers,
        })
    }

    /// Reason why Linux is no witness of the claim of `ours`, in words.
    pub fn lack(&self, ours: &Verdict) -> String {
        if let Some(why) = self.absent {
            return why.into();
        }
        let id = ours.claim.id.as_str();
        let arms = ours.claim.judge.measures().into_iter().map(|name| &name.arm);
        let refused = arms.filter_map(|arm| self.refused.get(arm).cloned()).next();
        refused.or_else(|| without(id)).unwrap_or_else(|| "it was not recorded".into())
    }
}

/// Reason why Linux can be no witness of any claim of `experiment`, the first claim's; None if a
/// claim has none.
pub fn cannot(experiment: &Experiment) -> Option<String> {
    let claims = stated::claims(experiment.id);
    let reasons: Option<Vec<String>> = claims.iter().map(|claim| without(&claim.id)).collect();
    reasons?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::paper::cake::Quantity;
    use crate::experiments::paper::{claims, experiments, of};
    use simnel_sim::Direction;

    #[test]
    fn claims_are_counted_with_those_that_are_not_judged() {
        let all = Judgement::ALL;
        let whole =
            "4 claims: 1 holds, 1 not on Linux either, ours differs in 1, 1 without a witness";
        assert_eq!(counts(4, all.into_iter()), whole);
        let part = "16 claims, 3 of them judged: 2 hold, ours differs in 1";
        assert_eq!(counts(16, [all[0], all[2], all[0]].into_iter()), part);
        assert_eq!(counts(1, [].into_iter()), "1 claim, none judged");
    }

    #[test]
    fn every_experiment_is_recorded_or_it_is_said_why_not() {
        for experiment in experiments() {
            let recorded = Recording::about(experiment.id).is_some();
            assert!(recorded != cannot(experiment).is_some(), "{}", experiment.id);
        }
    }

    /// A claim of A6 about goodputs, judged with these of ours and of Linux.
    fn judged(ours: f64, linux: Option<f64>) -> Judgement {
        let measured = |value: f64| {
            let mut measures = Measures::default();
            let download = Quantity::Carried(Direction::Down);
            for arm in ["none", "conservative", "aggressive"] {
                measures.derive(of(arm, download), vec![if arm == "none" { 20.0 } else { value }]);
            }
            measures
        };
        let judge = |measures: &Measures| -> Vec<Verdict> {
            claims("A6").into_iter().map(|claim| claim.judge(measures)).collect()
        };
        let simulated = measured(ours);
        let measures = linux.map(measured).unwrap_or_default();
        let (verdicts, columns) =
            (judge(&simulated), [("simulated", &simulated), (NAME, &measures)]);
        let differences = Ledger::of_this_program().differences("A6", &verdicts, &columns);
        let theirs = judge(&measures);
        let n = verdicts.iter().position(|one| one.claim.id == "A6.conservative.download");
        let n = n.expect("a claim about the gain of the conservative filter");
        let refused = BTreeMap::new();
        let witness = Witness { measures, verdicts: theirs, differences, refused, absent: None };
        witness.judgement(n, &verdicts[n]).expect("it was measured")
    }

    #[test]
    fn a_claim_that_fails_is_judged_by_its_witness() {
        // The paper's download gains 10 to 20 %; columns may be 10 % of their mean apart.
        assert_eq!(judged(23.0, Some(21.0)), Judgement::Holds);
        assert_eq!(judged(21.0, None), Judgement::NoWitness);
        assert_eq!(judged(21.0, Some(20.5)), Judgement::NotOnLinuxEither);
        assert_eq!(judged(21.0, Some(22.5)), Judgement::OursDiffers);
        assert_eq!(judged(29.0, Some(20.5)), Judgement::OursDiffers);
    }
}
