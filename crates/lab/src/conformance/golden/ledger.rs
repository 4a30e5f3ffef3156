//! The ledger of chosen deviations: where we differ from Linux on purpose, and why.
//!
//! A TOML file of `[[deviation]]` tables. A difference that no entry covers fails the comparison,
//! and so does an entry that covers no difference. So the ledger always says exactly what is true.

use crate::pattern::fits;
use std::path::Path;

use serde::Deserialize;

use super::compare::{Difference, Kind};
use super::Outcome;
use crate::files;

/// All chosen deviations.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// The entries, in the order of the file; the first that fits is the one that counts.
    #[serde(default, rename = "deviation")]
    pub deviations: Vec<Deviation>,
}

/// One chosen deviation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Deviation {
    /// `group/name` of the recordings; `*` stands for any characters.
    pub recording: String,
    /// In what the first differing event differs.
    pub what: Kind,
    /// At least so many events from the beginning are equal. Keeps the deviation from growing.
    #[serde(default)]
    pub equal_events: usize,
    /// Reason why we do otherwise.
    pub reason: String,
}

/// A ledger cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct LedgerError {
    /// The file.
    pub path: String,
    /// The fault, with the line.
    pub problem: String,
}

/// An entry that covers nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// Pattern of the entry.
    pub recording: String,
    /// True if recordings fit the pattern, but none differs so; false if no recording fits.
    pub recordings_exist: bool,
}

impl Ledger {
    /// Reads a ledger file.
    pub fn read(path: &Path) -> Result<Ledger, LedgerError> {
        let fail = |problem: String| LedgerError { path: path.display().to_string(), problem };
        let text = files::read_text(path, files::WHOLE).map_err(|error| fail(error.to_string()))?;
        Ledger::parse(&text).map_err(fail)
    }

    /// Parses the text of a ledger file.
    pub fn parse(text: &str) -> Result<Ledger, String> {
        let ledger: Ledger = toml::from_str(text).map_err(|error| error.to_string())?;
        for deviation in &ledger.deviations {
            if deviation.reason.trim().is_empty() {
                return Err(format!("`{}`: a deviation needs a reason", deviation.recording));
            }
            if deviation.what == Kind::Failed {
                return Err(format!("`{}`: a failure cannot be chosen", deviation.recording));
            }
        }
        Ok(ledger)
    }

    /// The entry that covers `difference` in the recording `name`.
    pub fn covers(
        &self,
        name: &str,
        difference: &Difference,
        equal_events: usize,
    ) -> Option<&Deviation> {
        self.deviations.iter().find(|entry| {
            fits(&entry.recording, name)
                && entry.what == difference.kind
                && equal_events >= entry.equal_events
        })
    }

    /// Entries that cover none of `outcomes`.
    pub fn stale(&self, outcomes: &[Outcome]) -> Vec<Stale> {
        let mut used = vec![false; self.deviations.len()];
        for outcome in outcomes {
            let Some(difference) = &outcome.first_difference else { continue };
            let covering = self.covers(&outcome.name, difference, outcome.equal_events);
            if let Some(at) =
                covering.and_then(|c| self.deviations.iter().position(|d| std::ptr::eq(c, d)))
            {
                used[at] = true;
            }
        }
        self.deviations
            .iter()
            .zip(used)
            .filter(|(_, used)| !used)
            .map(|(entry, _)| Stale {
                recording: entry.recording.clone(),
                recordings_exist: outcomes.iter().any(|o| fits(&entry.recording, &o.name)),
            })
            .collect()
    }
}
