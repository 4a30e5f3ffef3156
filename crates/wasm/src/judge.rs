//! Published experiments, run and judged in a page: the code of `simnel paper`, its seeds too.
//!
//! Runs are spread over workers, so each call stands alone. One gives the number of an experiment's
//! arms, one a run of an arm. Another gives the verdicts of what all runs measured.

use serde::Serialize;
use simnel_lab::experiments::paper::{claims, experiments, sample, Arm, Experiment};
use simnel_lab::experiments::paper::{Measures, Sample};
use wasm_bindgen::prelude::wasm_bindgen;

/// Numbers of one run of an arm: the arm's place, and quantities with their values.
type Run = (usize, Vec<(String, Option<f64>)>);

/// A claim that was judged.
#[derive(Serialize)]
struct Judged {
    id: String,
    claim: String,
    stated: String,
    simulated: String,
    holds: Option<bool>,
}

fn experiment(id: &str) -> Result<(&'static Experiment, Vec<Arm>), String> {
    let found = experiments().into_iter().find(|experiment| experiment.id == id);
    let experiment = found.ok_or_else(|| format!("no such experiment: `{id}`"))?;
    Ok((experiment, (experiment.arms)()))
}

/// Number of arms of an experiment.
#[wasm_bindgen]
pub fn arms(id: &str) -> Result<usize, String> {
    Ok(experiment(id)?.1.len())
}

/// One run of an arm, as [`judge`] reads it.
#[wasm_bindgen]
pub fn measure(id: &str, arm: usize, seed: u64) -> Result<String, String> {
    let (experiment, arms) = experiment(id)?;
    let one = arms.get(arm).ok_or_else(|| format!("{id} has no arm {arm}"))?;
    let run: Run = (arm, sample(experiment, one, seed).0.values);
    serde_json::to_string(&run).map_err(|error| error.to_string())
}

/// The verdicts of an experiment's claims over `runs`, a JSON list of what [`measure`] gave.
#[wasm_bindgen]
pub fn judge(id: &str, runs: &str) -> Result<String, String> {
    let (_, arms) = experiment(id)?;
    let runs: Vec<Run> = serde_json::from_str(runs).map_err(|error| error.to_string())?;
    let mut measures = Measures::default();
    for (arm, values) in runs {
        let arm = arms.get(arm).ok_or_else(|| format!("{id} has no arm {arm}"))?;
        measures.add(&arm.name, Sample { values, ..Sample::default() });
    }
    let verdicts = claims(id).into_iter().map(|claim| claim.judge(&measures));
    let judged = verdicts.filter(|verdict| !verdict.simulated.is_empty()).map(|verdict| Judged {
        simulated: verdict.simulated_text(),
        holds: verdict.holds,
        id: verdict.claim.id,
        claim: verdict.claim.text,
        stated: verdict.claim.stated,
    });
    serde_json::to_string(&judged.collect::<Vec<_>>()).map_err(|error| error.to_string())
}
