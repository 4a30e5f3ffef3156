//! Linux's own code beside ours on drawn cases, as many as are wanted.
//!
//! A [`Case`] says settings and surroundings as a recording does, and what [`Traffic`] arrives.
//! The [`Oracle`], a program made of Linux's disciplines (`benches/linux/oracle-main.c`), answers
//! with a recording's text; ours replays it, and [`golden::compare`] judges. A case that differs is
//! kept as a recording.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;
use flate2::Compression;
use serde::{Deserialize, Serialize};

use super::golden::{self, Factory, FormatError, Ledger, Outcome};
use crate::files;

mod oracle;
mod traffic;

pub use oracle::{Oracle, Oracles};
pub use traffic::{Flow, Traffic};

/// One drawn case.
#[derive(Clone, Debug, Deserialize)]
pub struct Case {
    /// Name within the group.
    pub name: String,
    /// Discipline.
    pub group: String,
    /// Its words.
    pub tc: String,
    /// Settings and surroundings, as a recording's.
    pub args: Vec<String>,
    /// The same as the oracle reads them.
    pub configuration: String,
    /// Jiffies a second, which are compiled into the oracle.
    pub hz: u32,
    /// Time at which the discipline is made, in nanoseconds.
    pub start: u64,
    /// Packets.
    pub traffic: Traffic,
    /// Commands behind packets of these numbers, without their times.
    pub commands: Vec<(usize, String)>,
}

/// Result of a case.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// `group/name`.
    pub name: String,
    /// Packets that both sides were given.
    pub packets: usize,
    /// Reason why Linux gave no answer, as a status: 3 is refused settings.
    pub refused: Option<i32>,
    /// The first difference, if no ledger has it.
    pub difference: Option<String>,
}

/// A case that could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The oracle does not run, or no longer.
    #[error("the oracle: {0}")]
    Oracle(std::io::Error),
    /// A file could not be written.
    #[error("{}: {problem}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        problem: std::io::Error,
    },
    /// The oracle's answer is no recording.
    #[error(transparent)]
    Format(#[from] FormatError),
}

/// Asks both sides about `case`; what differs and is not in `ledger` is kept below `found`.
pub fn judge(
    case: &Case,
    oracles: &mut Oracles,
    factory: &Factory,
    ledger: &Ledger,
    found: &Path,
) -> Result<Verdict, Error> {
    let name = format!("{}/{}", case.group, case.name);
    let (arrivals, packets) = case.traffic.write(case.start, &case.commands);
    let asked = format!("{}{arrivals}", case.configuration);
    let (status, answer) =
        oracles.of(case.hz).and_then(|oracle| oracle.ask(&asked)).map_err(Error::Oracle)?;
    let refused = Some(status).filter(|status| *status != 0);
    if refused.is_some() {
        return Ok(Verdict { name, packets: 0, refused, difference: None });
    }
    let header = header(case, packets);
    let (json, csv, out) = (Path::new("drawn"), Path::new("arrivals"), Path::new("answer"));
    let outcome = golden::judge((json, &header), (csv, &arrivals), (out, answer), factory, ledger)?;
    if !outcome.accepted() {
        let texts = [("json", header.as_str()), ("csv.gz", &arrivals), ("out.gz", answer)];
        keep(&found.join(&name), &texts)?;
    }
    let Outcome { first_difference, ledger, .. } = outcome;
    let difference = first_difference.filter(|_| ledger.is_none()).map(|found| found.to_string());
    Ok(Verdict { name, packets, refused, difference })
}

/// The recording's `.json`.
fn header(case: &Case, packets: usize) -> String {
    let Case { name, group, tc, args, .. } = case;
    let mut text = serde_json::json!({
        "name": name, "group": group, "qdisc": group, "tc": tc, "args": args, "packets": packets,
    })
    .to_string();
    let _ = writeln!(text);
    text
}

fn keep(path: &Path, texts: &[(&str, &str)]) -> Result<(), Error> {
    for (extension, text) in texts {
        let path = path.with_extension(extension);
        let written = || {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            if *extension == "json" {
                return files::put(&path, text.as_bytes());
            }
            let mut packed = GzEncoder::new(Vec::new(), Compression::default());
            packed.write_all(text.as_bytes())?;
            files::put(&path, &packed.finish()?)
        };
        written().map_err(|problem| Error::File { path: path.clone(), problem })?;
    }
    Ok(())
}
