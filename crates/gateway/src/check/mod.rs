//! A doctor: what of this machine helps or hinders the shaping of a line, and what to do about it.
//!
//! Everything is read from the kernel (netlink, /proc, ethtool) or from files that describe it, and
//! nothing is changed. What cannot be found out, mostly for lack of a right, is said to be unknown
//! and never guessed. One file for each group of findings:
//!
//! ```text
//! features.rs   parts of the kernel that the backends need
//! links.rs      interfaces: their kind, and the words for their overhead
//! line.rs       the interface to the Internet: routes, MTU, state
//! bypass.rs     what leads packets past every discipline
//! shapers.rs    disciplines that are there already, other users of NFQUEUE, a running simnel
//! machine.rs    rights, forwarding, processor, clock
//! ```

mod bypass;
mod features;
mod line;
mod links;
mod machine;
mod shapers;

use std::path::Path;

use serde::Serialize;

pub use line::{leads_out, LeadsOut};
pub use links::{link_type, LinkType, Overhead};
pub(crate) use shapers::shaper_warnings;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// Good to know.
    Note,
    /// The line will not be as good as it could.
    Warning,
    /// Shaping cannot work.
    Error,
}

impl Level {
    /// As it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Ok => "ok",
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Its severity.
    pub level: Level,
    /// A name for scripts, which stays: `flow-offload`.
    pub id: &'static str,
    /// The fact.
    pub what: String,
    /// Its consequence; empty if all is well.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The remedy; empty if nothing needs to be done.
    #[serde(rename = "do", skip_serializing_if = "String::is_empty")]
    pub fix: String,
}

impl Finding {
    /// A fact of which nothing follows.
    pub fn ok(id: &'static str, what: impl Into<String>) -> Finding {
        Finding::new(Level::Ok, id, what, "", "")
    }

    /// A fact, what follows of it, and what to do.
    pub fn new(
        level: Level,
        id: &'static str,
        what: impl Into<String>,
        why: impl Into<String>,
        fix: impl Into<String>,
    ) -> Finding {
        Finding { level, id, what: what.into(), why: why.into(), fix: fix.into() }
    }

    /// Something that could not be found out.
    pub(crate) fn unknown(id: &'static str, what: impl Into<String>, reason: &str) -> Finding {
        let what = format!("cannot tell: {}", what.into());
        Finding::new(Level::Note, id, what, reason, "")
    }
}

/// All that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The interface that was looked at, if there is one.
    pub interface: Option<String>,
    /// Its kind, in words.
    pub link: Option<&'static str>,
    /// The words for its overhead that fit.
    pub words: Option<&'static str>,
    /// In the order in which they were looked for.
    pub findings: Vec<Finding>,
}

impl Report {
    /// The worst level that occurs.
    pub fn worst(&self) -> Level {
        self.findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
    }
}

/// Looks at the machine and at `interface`, or else the one that leads to the Internet.
/// `control_dir` is where running gateways are found.
pub fn check(interface: Option<&str>, control_dir: &Path) -> Report {
    let out = leads_out();
    let mut findings = features::findings();
    findings.extend(machine::findings());
    let name = interface.map(String::from).or_else(|| out.interface().map(String::from));
    let line = line::findings(name.as_deref(), &out);
    findings.extend(line.findings);
    let mut report = Report { interface: name, link: None, words: None, findings };
    if let (Some(name), Some(link)) = (&report.interface, line.link) {
        report.link = Some(link.name());
        report.words = link.overhead().word;
        report.findings.extend(machine::of_interface(name));
        report.findings.extend(bypass::findings(name));
        report.findings.extend(shapers::findings(name, control_dir));
    }
    report
}

/// The text of a file of the kernel's, if it can be read.
fn read(path: impl AsRef<Path>) -> Option<String> {
    std::fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_as_bad_as_its_worst_finding_and_silent_about_nothing() {
        let bad = Finding::new(Level::Error, "x", "a", "b", "c");
        let findings = vec![Finding::ok("y", "z"), bad, Finding::unknown("u", "v", "w")];
        let mut report = Report { interface: None, link: None, words: None, findings };
        assert_eq!(report.worst(), Level::Error);
        let json = serde_json::to_string(&report).unwrap();
        assert!(
            json.contains(r#""level":"error","id":"x","what":"a","why":"b","do":"c""#),
            "{json}"
        );
        assert!(json.contains(r#"{"level":"ok","id":"y","what":"z"}"#), "{json}");
        report.findings.clear();
        assert_eq!(report.worst(), Level::Ok);
    }
}
