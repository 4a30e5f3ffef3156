//! The ledger: where the simulator differs from Linux beyond tolerance, and why.

use std::path::Path;

use serde::Deserialize;

use super::{Line, ReferenceError};

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
    /// Why it is so.
    pub reason: String,
}

impl Ledger {
    /// Reads a ledger.
    pub fn read(path: &Path) -> Result<Ledger, ReferenceError> {
        let fail = |problem: String| ReferenceError::new(path, problem);
        let text = std::fs::read_to_string(path).map_err(|error| fail(error.to_string()))?;
        let ledger: Ledger = toml::from_str(&text).map_err(|error| fail(error.to_string()))?;
        match ledger.entries.iter().find(|entry| entry.reason.trim().is_empty()) {
            Some(entry) => Err(fail(format!("`{}`: a difference needs a reason", entry.name))),
            None => Ok(ledger),
        }
    }

    /// Why `metric` of the situation `name` may differ.
    pub fn reason(&self, name: &str, metric: &str) -> Option<&str> {
        let entry = self.entries.iter().find(|entry| entry.fits(name, metric))?;
        Some(&entry.reason)
    }

    /// Entries that fit lines, all of which are within tolerance: they are no longer true.
    pub fn stale<'a>(&'a self, lines: &[Line]) -> Vec<&'a Entry> {
        let about = |entry: &&Entry| {
            let mut fitting = lines.iter().filter(|line| entry.fits(&line.name, &line.metric));
            let first = fitting.next();
            first.is_some_and(|line| line.within) && fitting.all(|line| line.within)
        };
        self.entries.iter().filter(about).collect()
    }
}

impl Entry {
    fn fits(&self, name: &str, metric: &str) -> bool {
        fits(&self.name, name) && fits(&self.metric, metric)
    }
}

/// True if `text` fits `pattern`, in which `*` stands for any characters.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            (0..=text.len())
                .filter(|at| text.is_char_boundary(*at))
                .any(|at| fits(rest, &text[at..]))
        }),
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
        assert_eq!(ledger.reason("C_rrul_sfb", "drops up"), Some("because"));
        assert_eq!(ledger.reason("A_x", "drops up"), None);
        let line = |within| Line {
            name: "C_x".into(),
            metric: "drops up".into(),
            linux: Some(1.0),
            ours: Some(1.0),
            difference: Some(0.0),
            within,
            ledger: None,
        };
        assert_eq!(ledger.stale(&[line(true)]).len(), 1);
        assert!(
            ledger.stale(&[line(true), line(false)]).is_empty() && ledger.stale(&[]).is_empty()
        );
    }
}
