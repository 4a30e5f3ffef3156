//! Scenarios for a browser: text, words and seed in; a summary and curves of the queues out.
//!
//! A shell around `simnel-scenario`. One [`Lab`] a text, parsed once; [`Lab::run`] as often as
//! there are disciplines and seeds, [`Lab::film`] for a run that is watched. One discipline alone,
//! for pages that explain it, is in `exhibits`, and the papers' claims are in `judge`. The summary
//! is the line that `simnel sim --json` prints, to the byte. The queues' lengths, which it does not
//! have, cross as typed arrays: one number an interval.
//!
//! Whoever waits for a run hears by its [`Watcher`] that it goes on.
//!
//! Errors are thrown as JSON: what is wrong, what was expected, and where.

mod exhibits;
mod judge;
mod queues;

use serde::Serialize;
use simnel_scenario::{no_files, Finished, Frames, Scenario, ScenarioError, Simulation, Summary};
use wasm_bindgen::prelude::wasm_bindgen;

use queues::Queues;

#[wasm_bindgen]
extern "C" {
    /// An object of the caller's.
    #[wasm_bindgen(typescript_type = "{ beat(): void }")]
    pub type Watcher;

    /// Called again and again while simulated time goes on.
    #[wasm_bindgen(method)]
    fn beat(this: &Watcher);
}

/// A scenario that has been read.
#[wasm_bindgen]
pub struct Lab {
    scenario: Scenario,
    text: String,
}

/// One run, frame by frame.
#[wasm_bindgen]
pub struct Film {
    head: String,
    frames: Frames,
    picture: Picture,
}

/// Results of one run.
#[wasm_bindgen]
#[derive(Default)]
pub struct Picture {
    summary: String,
    interval_s: f64,
    queues: Queues,
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
    pub fn run(
        &self,
        words: Option<String>,
        seed: u64,
        watcher: &Watcher,
    ) -> Result<Picture, String> {
        let place = words.is_none().then_some(self.text.as_str());
        let simulation = self.simulation(words.as_deref())?;
        let mut run = simulation.begin(seed).map_err(|error| fault(&error, place))?;
        let queues = Queues::watch(&mut run, simulation.setup(), &mut || watcher.beat());
        let finished = simulation.drive(run, &mut |_| std::ops::ControlFlow::Continue(()));
        self.picture(&finished, queues)
    }

    /// The same run with its frames, which tell more than the queues' lengths.
    pub fn film(
        &self,
        words: Option<String>,
        seed: u64,
        watcher: &Watcher,
    ) -> Result<Film, String> {
        let place = words.is_none().then_some(self.text.as_str());
        let film = self.simulation(words.as_deref())?.film(seed, &mut || watcher.beat());
        let (finished, frames) = film.map_err(|error| fault(&error, place))?;
        Ok(Film {
            head: serde_json::to_string(&frames).map_err(|error| error.to_string())?,
            frames,
            picture: self.picture(&finished, Queues::default())?,
        })
    }
}

impl Lab {
    fn simulation(&self, words: Option<&str>) -> Result<Simulation, String> {
        let place = words.is_none().then_some(self.text.as_str());
        self.scenario.simulation(words).map_err(|error| fault(&error, place))
    }

    fn picture(&self, finished: &Finished, queues: Queues) -> Result<Picture, String> {
        let summary = Summary::new(&self.scenario, finished);
        Ok(Picture {
            summary: serde_json::to_string(&summary).map_err(|error| error.to_string())?,
            interval_s: finished.results.interval.0 as f64 / 1e9,
            queues,
        })
    }
}

#[wasm_bindgen]
impl Film {
    /// Rows of the frames, as JSON.
    pub fn head(&self) -> String {
        self.head.clone()
    }

    /// For each frame, direction and row four numbers: packets in sparse queues, in others,
    /// dropped, marked.
    pub fn cells(&self) -> Vec<u32> {
        self.frames.cells.concat()
    }

    /// For each frame and row: congestion windows in segments.
    pub fn windows(&self) -> Vec<u32> {
        self.frames.windows.clone()
    }

    /// Further results of the run. The film has nothing more to say of it.
    pub fn picture(&mut self) -> Picture {
        std::mem::take(&mut self.picture)
    }
}

#[wasm_bindgen]
impl Picture {
    /// The figures: the line of `simnel sim --json`.
    pub fn summary(&self) -> String {
        self.summary.clone()
    }

    /// Seconds between two points of everything that is told over time.
    pub fn interval(&self) -> f64 {
        self.interval_s
    }

    /// Packets in the queue up (0) or down (1); empty of a film.
    pub fn queue(&self, way: usize) -> Vec<f64> {
        self.queues.0.get(way).cloned().unwrap_or_default()
    }
}
