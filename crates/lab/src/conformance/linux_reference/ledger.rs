//! The ledger: where the simulator differs from Linux beyond tolerance, and why.

use crate::pattern::fits;
use std::path::Path;

use serde::Deserialize;

use super::{Line, ReferenceError};
use crate::files;

/// All known differences.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ledger {
    /// The entries; the first that fits counts.
    #[serde(default, rename = "difference")]
    pub entries: Vec<Entry>,
}

/// One known difference.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// Name of the situations; `*` stands for any characters.
    pub name: String,
    /// The metrics; `*` stands for any characters.
    pub metric: String,
    /// Only where runs scatter so much that so few say no more ([`Line::scatter`]).
    #[serde(default)]
    pub scatter: bool,
    /// Reason for the difference.
    pub reason: String,
}

impl Ledger {
    /// Reads a ledger.
    pub fn read(path: &Path) -> Result<Ledger, ReferenceError> {
        let fail = |problem: String| ReferenceError::new(path, problem);
        let text = files::read_text(path, files::WHOLE).map_err(|error| fail(error.to_string()))?;
        let ledger: Ledger = toml::from_str(&text).map_err(|error| fail(error.to_string()))?;
        match ledger.entries.iter().find(|entry| entry.reason.trim().is_empty()) {
            Some(entry) => Err(fail(format!("`{}`: a difference needs a reason", entry.name))),
            None => Ok(ledger),
        }
    }

    /// Reason why the figure of `line` may differ; None if no entry covers it.
    pub fn reason(&self, line: &Line) -> Option<String> {
        let entry = self.entries.iter().find(|entry| entry.fits(line))?;
        match (entry.scatter, line.linux_range, line.our_range) {
            (true, Some([least, most]), Some([ours, greatest])) => Some(format!(
                "{} (Linux's runs {least:.3} to {most:.3}, ours {ours:.3} to {greatest:.3})",
                entry.reason
            )),
            _ => Some(entry.reason.clone()),
        }
    }

    /// Entries that fit lines, all of which are within tolerance: they are no longer true.
    pub fn stale<'a>(&'a self, lines: &[Line]) -> Vec<&'a Entry> {
        let about = |entry: &&Entry| {
            let mut fitting = lines.iter().filter(|line| entry.fits(line));
            let first = fitting.next();
            first.is_some_and(|line| line.within) && fitting.all(|line| line.within)
        };
        self.entries.iter().filter(about).collect()
    }
}

impl Entry {
    fn fits(&self, line: &Line) -> bool {
        fits(&self.name, &line.name)
            && fits(&self.metric, &line.metric)
            && (line.scatter || !self.scatter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_staleness() {
        let ledger: Ledger = toml::from_str(
            "[[difference]]\nname = \"C_*\"\nmetric = \"drops*\"\nreason = \"because\"\n",
        )
        .expect("a ledger");
        let line = |within| Line { within, ..Line::failure("C_x", "drops up".into()) };
        assert_eq!(ledger.reason(&line(false)).as_deref(), Some("because"));
        let other = Line { name: "A_x".into(), ..line(false) };
        assert_eq!(ledger.reason(&other), None);
        assert_eq!(ledger.stale(&[line(true)]).len(), 1);
        assert!(
            ledger.stale(&[line(true), line(false)]).is_empty() && ledger.stale(&[]).is_empty()
        );
    }

    #[test]
    fn scatter_excuses_only_what_scatters() {
        let text =
            "[[difference]]\nname = \"*\"\nmetric = \"*\"\nscatter = true\nreason = \"few\"\n";
        let ledger: Ledger = toml::from_str(text).expect("a ledger");
        let line = |scatter| Line {
            scatter,
            linux_range: Some([1.0, 2.0]),
            our_range: Some([1.0, 3.0]),
            ..Line::failure("C_x", "drops up".into())
        };
        assert_eq!(ledger.reason(&line(false)), None);
        let reason = ledger.reason(&line(true)).expect("a reason");
        assert_eq!(reason, "few (Linux's runs 1.000 to 2.000, ours 1.000 to 3.000)");
    }
}
