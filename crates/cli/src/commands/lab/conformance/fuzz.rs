//! `simnel conformance fuzz`: drawn cases from standard input, asked of Linux's code and of ours.
//! A part of `conformance/fuzz-linux.sh`, which draws them.

use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_lab::conformance::fuzz::{judge, Case, Oracles};
use simnel_lab::conformance::golden::{self, Ledger};

use super::super::output_failed;

/// Ask Linux's code and ours about drawn cases: one JSON object a line, in and out.
#[derive(clap::Args)]
pub struct Args {
    /// Linux's disciplines as programs (benches/linux/compile.sh), but for `-HZ` of their names.
    #[arg(long, value_name = "PROGRAM")]
    oracle: PathBuf,
    /// The ledger of chosen deviations.
    #[arg(long, value_name = "FILE")]
    ledger: PathBuf,
    /// Directory for recordings of cases that differ.
    #[arg(long, value_name = "DIRECTORY")]
    found: PathBuf,
}

/// Judges each case; a verdict a line, at once.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let ledger = Ledger::read(&args.ledger).into_diagnostic()?;
    let mut oracles = Oracles::new(args.oracle.clone());
    let factory: &golden::Factory = &|words, device| golden::build(words, device);
    for line in std::io::stdin().lock().lines() {
        let case: Case = serde_json::from_str(&line.into_diagnostic()?).into_diagnostic()?;
        let verdict =
            judge(&case, &mut oracles, factory, &ledger, &args.found).into_diagnostic()?;
        let mut line = serde_json::to_vec(&verdict).into_diagnostic()?;
        line.push(b'\n');
        out.write_all(&line).and_then(|()| out.flush()).map_err(output_failed)?;
    }
    Ok(ExitCode::SUCCESS)
}
