//! Scenarios: what is simulated, as a TOML file that a person writes.
//!
//! A [`Scenario`] is a file that has been understood. [`Scenario::setup`] makes the simulator's
//! set-up of it, with the file's own disciplines or others; `run` runs many at once; [`Summary`]
//! says what they showed, in the field's units. `scenarios/README.md` describes every key.

use std::path::Path;

use simnel_sim::Setup;

use crate::files;

mod build;
mod capture;
mod error;
pub mod report;
pub mod run;
pub mod summary;
mod text;
mod values;

pub use capture::Pcapng;
pub use error::ScenarioError;
pub use run::{run, Finished, Plan, Watch};
pub use summary::Summary;

/// A scenario that has been read.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What reports call it: its `name`, or the file's.
    pub name: String,
    /// The question that it answers; empty if it does not say.
    pub question: String,
    built: build::Built,
}

impl Scenario {
    /// Reads the file at `path`. The text comes back with the error, to show the place in it.
    pub fn read(path: &Path) -> Result<Scenario, (ScenarioError, String)> {
        let text = files::read_text(path, files::WHOLE).map_err(|error| {
            let what = format!("{}: {error}", path.display());
            (ScenarioError::whole(what, "a readable scenario file"), String::new())
        })?;
        let stem = path.file_stem().map_or("scenario".into(), |stem| stem.to_string_lossy());
        let directory = path.parent().unwrap_or(Path::new(""));
        Scenario::parse(&text, &stem, directory).map_err(|error| (error, text))
    }

    /// Understands `text`; files that it names are looked for in `directory`.
    pub fn parse(text: &str, name: &str, directory: &Path) -> Result<Scenario, ScenarioError> {
        let file: text::File = toml::from_str(text).map_err(|error| ScenarioError {
            what: error.message().trim().to_string(),
            expected: "the keys that scenarios/README.md describes".into(),
            span: error.span(),
        })?;
        let built = build::build(&file, directory)?;
        // The file's own disciplines must be right even if others will be used.
        built.with_qdisc(None)?;
        let comment = || opening_comment(text);
        Ok(Scenario {
            name: file.name.unwrap_or_else(|| name.to_string()),
            question: file.question.unwrap_or_else(comment),
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
    let lines = text.lines().take_while(|line| line.starts_with('#'));
    let words: Vec<&str> = lines.map(|line| line.trim_start_matches('#').trim()).collect();
    words.join(" ").trim().to_string()
}
