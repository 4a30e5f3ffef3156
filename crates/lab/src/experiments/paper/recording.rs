//! Recordings of the papers' experiments on Linux, as files that are part of the program.
//!
//! `conformance/papers/ID.json` has the figures of an experiment as `simnel witness` recorded them,
//! run by run. `without.toml` beside them says of each other claim why Linux cannot judge it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::measure::{Measure, Measures, Sample};
use crate::pattern::fits;

macro_rules! recordings {
    ($($id:literal)*) => {
        &[$(($id, include_str!(concat!("../../../../../conformance/papers/", $id, ".json")))),*]
    };
}

/// The recordings, by experiment.
const RECORDINGS: &[(&str, &str)] = recordings!(
    "A2" "A3" "A4" "A5" "A6" "B1" "B2" "B3" "B4" "B5" "B6" "B7" "B8" "B9" "C1" "C2" "C4" "C6" "C7"
    "D1" "D3" "D5" "D6" "E1" "E2" "E3" "E4" "E6" "E7"
);

/// Figures of an experiment on Linux in virtual time.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// Release of the kernel, and how it ran.
    pub kernel: String,
    /// Runs of each arm; seeds are 1 to this.
    pub repetitions: u32,
    /// Each arm that a claim is about.
    pub arms: BTreeMap<String, ArmRecord>,
    /// Arms that Linux cannot run, and why.
    pub refused: BTreeMap<String, String>,
}

/// Figures of an arm.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ArmRecord {
    /// Fingerprint of its scenarios: figures of another set-up are no witness.
    pub setup: String,
    /// Each quantity that a claim is about, run by run.
    pub values: BTreeMap<String, Vec<f64>>,
}

impl Recording {
    /// The recording of the experiment `id` that belongs to this program.
    pub fn about(id: &str) -> Option<Recording> {
        let (_, text) = RECORDINGS.iter().find(|(known, _)| *known == id)?;
        Some(serde_json::from_str(text).expect("a test reads every recording as it is built in"))
    }

    /// As a file: JSON, a line a quantity.
    pub fn text(&self) -> String {
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let list = |lines: Vec<String>| lines.join(",\n");
        let arm = |(name, arm): (&String, &ArmRecord)| {
            let values = arm.values.iter().map(|(quantity, values)| {
                let values: Vec<String> = values.iter().map(|value| shortened(*value)).collect();
                format!("  {}: [{}]", quoted(quantity), values.join(", "))
            });
            let (name, setup) = (quoted(name), quoted(&arm.setup));
            let values = list(values.collect());
            format!(" {name}: {{\"setup\": {setup}, \"values\": {{\n{values}\n }}}}")
        };
        let refused =
            |(name, why): (&String, &String)| format!(" {}: {}", quoted(name), quoted(why));
        format!(
            "{{\"kernel\": {}, \"repetitions\": {},\n\"arms\": {{\n{}\n}},\n\
             \"refused\": {{\n{}\n}}}}\n",
            quoted(&self.kernel),
            self.repetitions,
            list(self.arms.iter().map(arm).collect()),
            list(self.refused.iter().map(refused).collect()),
        )
    }

    /// Measures of the arms.
    pub fn measures(&self) -> Measures {
        let mut measures = Measures::default();
        for (name, arm) in &self.arms {
            measures.add(name, Sample::default());
            for (quantity, values) in &arm.values {
                let measure = Measure { arm: name.clone(), quantity: quantity.clone() };
                measures.derive(measure, values.clone());
            }
        }
        measures
    }
}

/// A value to five digits: the runs differ by more.
fn shortened(value: f64) -> String {
    let text = format!("{value:.4e}");
    text.parse::<f64>().map_or(text, |value| value.to_string())
}

/// Claims without a witness, and why that was known before anything was run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Without {
    claims: Vec<String>,
    reason: String,
}

fn lacking() -> Vec<Without> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        without: Vec<Without>,
    }
    const TEXT: &str = include_str!("../../../../../conformance/papers/without.toml");
    let file: File = toml::from_str(TEXT).expect("a test reads the file as it is built in");
    file.without
}

/// Reason why Linux can be no witness of the claim `id`, if one is known.
pub fn without(id: &str) -> Option<String> {
    let fit = |entry: &Without| entry.claims.iter().any(|pattern| fits(pattern, id));
    lacking().into_iter().find(fit).map(|entry| entry.reason)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::experiments::paper::arms::record::fingerprint;
    use crate::experiments::paper::{claims, experiments, Experiment};

    fn recorded() -> impl Iterator<Item = (&'static Experiment, Recording)> {
        let all = experiments().into_iter();
        all.filter_map(|experiment| Some((experiment, Recording::about(experiment.id)?)))
    }

    #[test]
    fn recordings_are_of_the_set_ups_that_there_are() {
        for (experiment, recording) in recorded() {
            let id = experiment.id;
            let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
            for arm in (experiment.arms)() {
                let text = arm.text();
                texts.entry(arm.name).or_default().push(text);
            }
            let again = format!("{id}: record it again: `simnel witness KERNEL {id}`");
            let repetitions = recording.repetitions;
            assert!((1..=experiment.repetitions).contains(&repetitions), "{again}");
            for (name, arm) in &recording.arms {
                let setup = texts.get(name).map(|texts| fingerprint(texts));
                assert_eq!(setup.as_ref(), Some(&arm.setup), "{again} ({name})");
                let runs = repetitions as usize * texts[name].len();
                assert!(arm.values.values().all(|one| one.len() == runs), "{again} ({name})");
            }
            // Whatever a claim needs is there, or it is said why Linux cannot judge it.
            let measures = recording.measures();
            let refused = |name: &&Measure| recording.refused.contains_key(&name.arm);
            for claim in claims(id) {
                let names = claim.judge.measures();
                if without(&claim.id).is_some() {
                    continue;
                }
                for name in names.iter().filter(|_| !names.iter().any(refused)) {
                    assert!(!measures.values(name).is_empty(), "{again} ({name})");
                }
            }
            assert!(recording.refused.keys().all(|arm| !recording.arms.contains_key(arm)), "{id}");
        }
    }

    #[test]
    fn every_recording_is_a_file_in_its_own_form_and_part_of_the_program() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/papers");
        let files = std::fs::read_dir(directory).expect("conformance/papers");
        let names = files.filter_map(|file| file.ok()?.file_name().into_string().ok());
        let names: BTreeSet<String> =
            names.filter_map(|name| Some(name.strip_suffix(".json")?.to_string())).collect();
        let known: BTreeSet<String> = RECORDINGS.iter().map(|(id, _)| id.to_string()).collect();
        assert_eq!(names, known, "RECORDINGS lists the files");
        for (id, text) in RECORDINGS {
            assert_eq!(Recording::about(id).expect("it is listed").text(), *text, "{id}");
        }
    }

    #[test]
    fn reasons_for_a_lack_are_about_claims_that_there_are() {
        for entry in lacking() {
            assert!(!entry.reason.trim().is_empty(), "{:?}", entry.claims);
            for pattern in &entry.claims {
                let fit = |id: &&Experiment| claims(id.id).iter().any(|c| fits(pattern, &c.id));
                assert!(experiments().iter().any(fit), "no claim fits {pattern}");
            }
        }
    }
}
