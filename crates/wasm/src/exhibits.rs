//! Disciplines to be explained: their words, and each alone under load.

use serde::Serialize;
use simnel_core::qdisc;
use simnel_scenario::exhibit::{self, Exhibit};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::fault;

/// A discipline as `simnel words` lists it.
#[derive(Serialize)]
struct Known {
    name: &'static str,
    about: &'static str,
    /// Keyword, argument, meaning.
    words: Vec<[&'static str; 3]>,
}

/// All disciplines with their words, as JSON.
#[wasm_bindgen]
pub fn disciplines() -> Result<String, String> {
    let known = |known: &qdisc::Discipline| Known {
        name: known.name,
        about: known.about,
        words: qdisc::keywords(known.name)
            .map(|keyword| [keyword.word, keyword.argument, keyword.meaning])
            .collect(),
    };
    let all: Vec<Known> = qdisc::disciplines().iter().map(known).collect();
    serde_json::to_string(&all).map_err(|error| error.to_string())
}

/// One discipline alone under load: an `Exhibit` as JSON in, its `Record` as JSON out.
#[wasm_bindgen]
pub fn exhibit(text: &str) -> Result<String, String> {
    let exhibit: Exhibit = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let record = exhibit.run().map_err(|error| fault(&error, None))?;
    serde_json::to_string(&record).map_err(|error| error.to_string())
}

/// The share of arrivals that is dropped while 0, 1, … `most` packets stand in the queue.
#[wasm_bindgen]
pub fn chances(words: &str, most: u32) -> Result<Vec<f64>, String> {
    exhibit::chances(words, most).map_err(|error| fault(&error, None))
}
