//! Why claims do not hold: what was found by looking at traces, windows and queues.
//!
//! `findings.toml` beside this file; docs/LAB.md tells the same in context. Reports show a finding
//! beside the claims that it explains; no simulation and no judge reads it.

use std::sync::OnceLock;

use serde::Deserialize;

use super::run::Outcome;
use crate::pattern::fits;

/// A reason, and the claims whose failure it explains.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Identifiers of claims; `*` stands for any characters.
    pub claims: Vec<String>,
    /// What was found.
    pub reason: String,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    finding: Vec<Finding>,
}

/// All findings, in the order of the file.
pub fn all() -> &'static [Finding] {
    static FILE: OnceLock<File> = OnceLock::new();
    // A test reads the file, so that it is in order in every build.
    &FILE.get_or_init(|| toml::from_str(include_str!("findings.toml")).unwrap_or_default()).finding
}

/// The first finding about the claim `id`.
pub fn about(id: &str) -> Option<&'static Finding> {
    all().iter().find(|finding| finding.claims.iter().any(|pattern| fits(pattern, id)))
}

impl Outcome {
    /// Why claims do not hold: each finding once, with the claims that do not hold and that it
    /// explains; last, without a finding, those that nothing is known about.
    pub fn reasons(&self) -> Vec<(Vec<&str>, Option<&'static Finding>)> {
        let mut reasons: Vec<(Vec<&str>, Option<&'static Finding>)> = Vec::new();
        for verdict in self.verdicts.iter().filter(|verdict| verdict.holds == Some(false)) {
            let (id, finding) = (verdict.claim.id.as_str(), about(&verdict.claim.id));
            let same = |known: &Option<&Finding>| match (known, finding) {
                (Some(a), Some(b)) => std::ptr::eq(*a, b),
                (a, b) => a.is_none() && b.is_none(),
            };
            match reasons.iter_mut().find(|(_, known)| same(known)) {
                Some((ids, _)) => ids.push(id),
                None => reasons.push((vec![id], finding)),
            }
        }
        reasons.sort_by_key(|(_, finding)| finding.is_none());
        reasons
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports and the documentation say the same.
    #[test]
    fn every_finding_stands_in_the_documentation() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/LAB.md");
        let text = std::fs::read_to_string(path).expect("docs/LAB.md");
        for finding in all() {
            let row = format!("| {} | {} |", finding.claims.join(", "), finding.reason);
            assert!(text.contains(&row.replace('*', "\\*")), "docs/LAB.md lacks: {row}");
        }
    }

    #[test]
    fn every_finding_is_about_claims_that_there_are() {
        let file: File = toml::from_str(include_str!("findings.toml")).expect("a file of findings");
        let claims: Vec<String> = crate::experiments::paper::experiments()
            .iter()
            .flat_map(|experiment| crate::experiments::paper::claims(experiment.id))
            .map(|claim| claim.id)
            .collect();
        for finding in &file.finding {
            assert!(!finding.reason.trim().is_empty(), "{:?}", finding.claims);
            for pattern in &finding.claims {
                assert!(claims.iter().any(|id| fits(pattern, id)), "no claim fits {pattern}");
            }
        }
    }
}
