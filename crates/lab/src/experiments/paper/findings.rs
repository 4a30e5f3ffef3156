//! Reasons why claims do not hold, found by looking at traces, windows and queues.
//!
//! `findings.toml` beside this file; docs/LAB.md tells the same in context. Reports show a finding
//! beside the claims that it explains; no simulation and no judge reads it.

use std::sync::OnceLock;

use serde::Deserialize;

use super::claim::Verdict;
use crate::pattern::fits;

/// A reason, and the claims whose failure it explains.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// Identifiers of claims; `*` stands for any characters.
    pub claims: Vec<String>,
    /// The finding.
    pub reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    finding: Vec<Finding>,
}

/// All findings, in the order of the file.
pub fn all() -> &'static [Finding] {
    static FILE: OnceLock<File> = OnceLock::new();
    &FILE
        .get_or_init(|| toml::from_str(include_str!("findings.toml")).expect("a file of findings"))
        .finding
}

/// The first finding about the claim `id`.
pub fn about(id: &str) -> Option<&'static Finding> {
    all().iter().find(|finding| finding.claims.iter().any(|pattern| fits(pattern, id)))
}

/// Said of claims that nobody has looked into.
const UNKNOWN: &str = "not known";

/// Reasons why claims of `verdicts` do not hold: each once, with the claims that it explains; last
/// those that nothing is known about. Findings are about an experiment's `own` repetitions, which
/// `is_whole` says were made. With others, what they say of runs, means and peaks need not be so.
pub(super) fn reasons(verdicts: &[Verdict], own: u32, is_whole: bool) -> Vec<(Vec<&str>, String)> {
    let of = |id: &str| match about(id) {
        Some(finding) if is_whole => finding.reason.trim().to_string(),
        Some(_) => format!("looked into with all of {own} repetitions only: run those"),
        None => UNKNOWN.into(),
    };
    let failed = verdicts.iter().filter(|verdict| verdict.holds == Some(false));
    let ids = failed.map(|verdict| verdict.claim.id.as_str());
    let mut reasons = by_reason(ids.map(|id| (id, of(id))));
    reasons.sort_by_key(|(_, reason)| reason == UNKNOWN);
    reasons
}

/// Claims and the reason for each, by reason: in the order in which they first come.
pub(super) fn by_reason<'a>(
    claims: impl Iterator<Item = (&'a str, String)>,
) -> Vec<(Vec<&'a str>, String)> {
    let mut reasons: Vec<(Vec<&str>, String)> = Vec::new();
    for (id, reason) in claims {
        match reasons.iter_mut().find(|(_, known)| *known == reason) {
            Some((ids, _)) => ids.push(id),
            None => reasons.push((vec![id], reason)),
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    /// docs/LAB.md has the table that follows from the file. `SIMNEL_UPDATE=1` writes it.
    #[test]
    fn the_documentation_has_the_table_of_findings() {
        const HEAD: &str = "| claims | why |\n|---|---|\n";
        let row = |finding: &Finding| {
            let claims = finding.claims.join(", ").replace('*', "\\*");
            format!("| {claims} | {} |\n", finding.reason.trim())
        };
        let table = HEAD.to_string() + &all().iter().map(row).collect::<String>();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/LAB.md");
        let text = std::fs::read_to_string(path).expect("docs/LAB.md");
        let (before, rest) = text.split_once(HEAD).expect("a table of findings");
        let after = rest.find("\n\n").map(|end| &rest[end + 1..]).expect("text behind it");
        let right = format!("{before}{table}{after}");
        if std::env::var_os("SIMNEL_UPDATE").is_some() {
            std::fs::write(path, &right).expect("docs/LAB.md can be written");
        } else {
            assert!(text == right, "SIMNEL_UPDATE=1 cargo test -p simnel-lab --lib findings");
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
