//! Ledger of disagreeing columns: how far they may be apart, and which differences are known.
//!
//! `conformance/arms.toml` says it in numbers and reasons; it is part of the program, so that the
//! program's report and the file cannot disagree.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use serde::Deserialize;

use crate::experiments::paper::{Measure, Measures, Verdict};
use crate::pattern::fits;

/// The file.
const TEXT: &str = include_str!("../../../../../../conformance/arms.toml");

/// Tolerances and known differences.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// By measure; the first that fits counts.
    #[serde(rename = "tolerance")]
    pub tolerances: Vec<Tolerance>,
    /// Differences whose reason is known.
    #[serde(default)]
    pub known: Vec<Known>,
}

/// Allowed distance between columns: the larger of its two bounds.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tolerance {
    /// Kind of measure.
    pub quantity: String,
    /// Names of measures without their contender; `*` stands for any characters.
    pub measures: Vec<String>,
    /// Share of the mean of the columns.
    pub relative: f64,
    /// In the measure's unit.
    pub absolute: f64,
}

/// A difference whose reason is known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Experiment, contender and measure, `B4 cake/peak`; `*` stands for any characters.
    pub measure: String,
    /// Reason for the difference.
    pub reason: String,
}

/// Columns that are further apart than allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Contender and measure.
    pub measure: Measure,
    /// Each column's name and value.
    pub values: Vec<(&'static str, f64)>,
    /// Distance that was allowed, in the measure's unit.
    pub allowed: f64,
    /// Reason for the difference, if one is known.
    pub reason: Option<String>,
}

impl Ledger {
    /// The ledger that belongs to this program.
    pub fn of_this_program() -> &'static Ledger {
        static LEDGER: OnceLock<Ledger> = OnceLock::new();
        LEDGER
            .get_or_init(|| toml::from_str(TEXT).expect("a test reads the file as it is built in"))
    }

    /// The measures of `verdicts` in which `columns`, each with its name, are too far apart. A
    /// measure that a column does not have is not compared.
    pub fn differences(
        &self,
        id: &str,
        verdicts: &[Verdict],
        columns: &[(&'static str, &Measures)],
    ) -> Vec<Difference> {
        let names: BTreeSet<&Measure> =
            verdicts.iter().flat_map(|verdict| verdict.claim.judge.measures()).collect();
        let mut differences = Vec::new();
        for name in names {
            let value = |(column, measures): &(&'static str, &Measures)| {
                Some((*column, measures.estimate(name)?.mean))
            };
            let values: Vec<(&'static str, f64)> = columns.iter().filter_map(value).collect();
            let allowed = self.allowed(name, &values);
            if apart(&values) <= allowed {
                continue;
            }
            let full = format!("{id} {name}");
            let known = self.known.iter().find(|known| fits(&known.measure, &full));
            let reason = known.map(|known| known.reason.clone());
            differences.push(Difference { measure: name.clone(), values, allowed, reason });
        }
        differences
    }

    fn allowed(&self, name: &Measure, values: &[(&str, f64)]) -> f64 {
        let tolerance = self
            .tolerances
            .iter()
            .find(|entry| entry.measures.iter().any(|pattern| fits(pattern, &name.quantity)));
        // A measure of an unknown kind has to be equal: the report then shows that an entry lacks.
        let Some(tolerance) = tolerance else { return 0.0 };
        let mean = values.iter().map(|(_, value)| value.abs()).sum::<f64>() / values.len() as f64;
        (tolerance.relative * mean).max(tolerance.absolute)
    }
}

/// Distance between the least and the greatest; zero if there are fewer than two.
fn apart(values: &[(&str, f64)]) -> f64 {
    let least = values.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
    let most = values.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
    (most - least).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::paper::arms::EXPERIMENTS;
    use crate::experiments::paper::recording::Recording;
    use crate::experiments::paper::{claims, experiments, Sample};

    fn measures(arm: &str, values: &[(&str, f64)]) -> Measures {
        let values = values.iter().map(|(name, value)| (name.to_string(), Some(*value)));
        let sample = Sample { values: values.collect(), ..Sample::default() };
        let mut measures = Measures::default();
        measures.add(arm, sample);
        measures
    }

    #[test]
    fn every_measure_that_columns_are_compared_by_has_a_tolerance() {
        let ledger = Ledger::of_this_program();
        assert!(ledger.known.iter().all(|known| !known.reason.trim().is_empty()));
        for id in experiments().iter().map(|experiment| experiment.id) {
            let recording = Recording::about(id).unwrap_or_default();
            let recorded = |name: &Measure| {
                let arm = recording.arms.get(&name.arm);
                arm.is_some_and(|arm| arm.values.contains_key(&name.quantity))
            };
            for claim in claims(id) {
                for name in claim.judge.measures() {
                    let compared = EXPERIMENTS.contains(&id) || recorded(name);
                    let allowed = ledger.allowed(name, &[("simulated", 1.0)]);
                    assert!(allowed > 0.0 || !compared, "{id}: no tolerance for `{name}`");
                }
            }
        }
    }

    #[test]
    fn columns_that_are_too_far_apart_are_named() {
        let ledger = Ledger::of_this_program();
        let simulated = measures("none", &[("down", 20.0), ("up", 0.5), ("latency", 4.0)]);
        let verdicts: Vec<Verdict> =
            claims("A6").into_iter().map(|claim| claim.judge(&simulated)).collect();
        let near = measures("none", &[("down", 20.9), ("up", 0.52), ("latency", 4.9)]);
        let own = ("simulated", &simulated);
        assert_eq!(ledger.differences("A6", &verdicts, &[own, ("live", &near)]), []);
        let far = measures("none", &[("down", 15.0), ("latency", 4.2)]);
        let columns = [own, ("live", &near), ("linux", &far)];
        let differences = ledger.differences("A6", &verdicts, &columns);
        let names: Vec<String> = differences.iter().map(|one| one.measure.to_string()).collect();
        assert_eq!(names, ["none/down"]);
        assert_eq!(differences[0].values.len(), 3);
    }
}
