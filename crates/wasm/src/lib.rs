//! Scenarios for a browser: text, words and seed in; a summary and curves out.
//!
//! A shell around `simnel-scenario`. One [`Lab`] a text, parsed once; [`Lab::run`] as often
//! as there are disciplines and seeds. The summary is the line that `simnel sim --json` prints, to
//! the byte. Curves cross as typed arrays: one number an interval, NaN where there is none.
//!
//! Errors are thrown as JSON: what is wrong, what was expected, and where.

mod curves;

use serde::Serialize;
use simnel_scenario::{no_files, Scenario, ScenarioError, Summary};
use wasm_bindgen::prelude::wasm_bindgen;

use curves::{Curve, Queues};

/// A scenario that has been read.
#[wasm_bindgen]
pub struct Lab {
    scenario: Scenario,
    text: String,
}

/// What one run showed.
#[wasm_bindgen]
pub struct Picture {
    summary: String,
    interval_s: f64,
    curves: Vec<Curve>,
}

/// An error as the page reads it.
#[derive(Serialize)]
struct Fault<'a> {
    /// `scenario`, or `words` for those of the discipline.
    of: &'static str,
    what: &'a str,
    expected: &'a str,
    /// Line and column, both from 1, of a scenario.
    place: Option<(usize, usize)>,
}

fn fault(error: &ScenarioError, text: Option<&str>) -> String {
    let fault = Fault {
        of: if text.is_some() { "scenario" } else { "words" },
        what: &error.what,
        expected: &error.expected,
        place: text.and_then(|text| error.place(text)),
    };
    // Strings and numbers: there is nothing that JSON could not say.
    serde_json::to_string(&fault).unwrap_or_default()
}

#[wasm_bindgen]
impl Lab {
    /// Reads a scenario; `name` is that of reports if the text has none.
    #[wasm_bindgen(constructor)]
    pub fn new(text: String, name: &str) -> Result<Lab, String> {
        match Scenario::parse(&text, name, &no_files) {
            Ok(scenario) => Ok(Lab { scenario, text }),
            Err(error) => Err(fault(&error, Some(&text))),
        }
    }

    /// A whole run. Without `words` the scenario's own disciplines.
    pub fn run(&self, words: Option<String>, seed: u64) -> Result<Picture, String> {
        let place = words.is_none().then_some(self.text.as_str());
        let simulation =
            self.scenario.simulation(words.as_deref()).map_err(|error| fault(&error, place))?;
        let mut run = simulation.begin(seed).map_err(|error| fault(&error, place))?;
        let queues = Queues::watch(&mut run, simulation.setup());
        let finished = simulation.drive(run, &mut |_| std::ops::ControlFlow::Continue(()));
        let summary = Summary::new(&self.scenario, &finished);
        Ok(Picture {
            summary: serde_json::to_string(&summary).map_err(|error| error.to_string())?,
            interval_s: finished.results.interval.0 as f64 / 1e9,
            curves: curves::all(&finished.results, &summary, queues),
        })
    }
}

#[wasm_bindgen]
impl Picture {
    /// The figures: the line of `simnel sim --json`.
    pub fn summary(&self) -> String {
        self.summary.clone()
    }

    /// Seconds between two points of every curve.
    pub fn interval(&self) -> f64 {
        self.interval_s
    }

    /// How many curves there are.
    pub fn curves(&self) -> usize {
        self.curves.len()
    }

    /// What curve `n` shows: `delay`, `goodput` or `queue`; empty if there is none.
    pub fn kind(&self, n: usize) -> String {
        self.curves.get(n).map_or_else(String::new, |curve| curve.kind.into())
    }

    /// The traffic that curve `n` is about, with its direction.
    pub fn name(&self, n: usize) -> String {
        self.curves.get(n).map_or_else(String::new, |curve| curve.name.clone())
    }

    /// The points of curve `n`: milliseconds, Mbit/s or packets.
    pub fn points(&self, n: usize) -> Vec<f64> {
        self.curves.get(n).map_or_else(Vec::new, |curve| curve.points.clone())
    }
}
