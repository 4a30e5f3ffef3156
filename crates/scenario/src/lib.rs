//! Scenarios: what is simulated, as a TOML text that a person writes or a [`File`] that a program
//! builds, and what its runs showed.
//!
//! A [`Scenario`] is a text or a file that has been understood. [`Scenario::simulation`] joins it
//! with its own disciplines or others, and runs it; [`Summary`] has the results of a run in the
//! field's units. `scenarios/README.md` describes every key.
//!
//! No files, no threads, no clock: whoever calls reads the text, and the traces that it names.
//!
//! A simulation from a program: build, choose a discipline and a seed, run, look.
//!
//! ```
//! use simnel_core::{Rate, Span};
//! use simnel_scenario::file::{Line, Traffic};
//! use simnel_scenario::{no_files, File, Scenario, Summary};
//! use simnel_sim::Direction;
//!
//! let [up, down] = [3_000_000, 20_000_000].map(Rate::from_bits);
//! let file = File::new(Span::from_secs(5), Line::new(up, down, Span::from_millis(90)))
//!     .traffic(Traffic::bulk().direction(Direction::Up))
//!     .traffic(Traffic::ping());
//! assert!(file.to_string().contains("up = \"3mbit\""), "a text for `simnel sim`");
//! let scenario = Scenario::new(&file, "upload", &no_files).expect("a scenario");
//! let mut delays = Vec::new();
//! for words in ["pfifo limit 1000", "cake bandwidth {rate}"] {
//!     let simulation = scenario.simulation(Some(words)).expect("a discipline");
//!     let run = simulation.finish(1).expect("a set-up");
//!     let summary = Summary::new(&scenario, &run);
//!     assert!(summary.groups[0].goodput_mbps > 1.0);
//!     let line = &run.results.lines[0];
//!     delays.push(line.sojourn[1].quantile(500));
//! }
//! assert!(delays[1] < delays[0], "a ping waits for the upload in a FIFO and not in cake");
//! ```

#![forbid(unsafe_code)]

use simnel_sim::Setup;

mod build;
mod error;
pub mod exhibit;
pub mod file;
mod frames;
mod simulation;
pub mod summary;
mod values;

pub use error::ScenarioError;
pub use file::File;
pub use frames::{Frames, Row};
pub use simulation::{advance, Beat, Simulation, Watcher, STEPS};
pub use summary::{Finished, Summary};

/// Gives the text of a file that a scenario names, or says why it cannot.
pub type Files<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// For scenarios that stand alone: refuses every file.
pub fn no_files(_: &str) -> Result<String, String> {
    Err("this scenario has no files beside it".into())
}

/// A scenario that has been read.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Its name in reports: its `name`, or the file's.
    pub name: String,
    /// The question that it answers; empty if it does not say.
    pub question: String,
    built: build::Built,
}

impl Scenario {
    /// Understands `text`; `files` gives those that it names.
    pub fn parse(text: &str, name: &str, files: Files) -> Result<Scenario, ScenarioError> {
        let file = File::parse(text)?;
        let comment = || opening_comment(text);
        let question = file.question.clone().unwrap_or_else(comment);
        Ok(Scenario { question, ..Scenario::new(&file, name, files)? })
    }

    /// Understands `file`, which a program has built; `files` gives those that it names.
    pub fn new(file: &File, name: &str, files: Files) -> Result<Scenario, ScenarioError> {
        let built = build::build(file, files)?;
        // The file's own disciplines must be right even if others will be used.
        built.with_qdisc(None)?;
        Ok(Scenario {
            name: file.name.as_deref().unwrap_or(name).to_string(),
            question: file.question.clone().unwrap_or_default(),
            built,
        })
    }

    /// The set-up with the file's disciplines, or with `qdisc` in both directions; and the words
    /// of the disciplines, up and down.
    pub fn setup(&self, qdisc: Option<&str>) -> Result<(Setup, [String; 2]), ScenarioError> {
        self.built.with_qdisc(qdisc)
    }

    /// The lines' rates, up and down, in bytes a second; zero where there is no constant rate.
    pub fn line_rates(&self) -> [u64; 2] {
        [0, 1].map(|n| {
            let line = &self.built.setup.lines[n];
            line.rate.map_or(0, |rate| rate.bytes())
        })
    }
}

/// The comment at the top of the file, as one line.
fn opening_comment(text: &str) -> String {
    // An editor's byte order mark.
    let text = text.trim_start_matches('\u{feff}');
    let lines = text.lines().take_while(|line| line.starts_with('#'));
    let words: Vec<&str> = lines.map(|line| line.trim_start_matches('#').trim()).collect();
    words.join(" ").trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_order_mark_hides_no_question() {
        let rest = "\n# For whom?\nduration = \"1s\"\n# no question\n";
        for begin in ["# Why?", "\u{feff}# Why?"] {
            assert_eq!(opening_comment(&format!("{begin}{rest}")), "Why? For whom?");
        }
    }
}
