//! `simnel conformance linux DIR`: recorded situations of real Linux, simulated and compared.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use miette::{miette, IntoDiagnostic};
use simnel_lab::conformance::linux_reference::{self, Ledger, Line};

use super::super::output_failed;
use super::super::progress::Progress;
use super::find_ledger;

/// Simulate situations that real Linux was recorded in, and compare what came of them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel conformance linux conformance/linux\n  \
    simnel conformance linux ../linux-reference --only A_cubic_codel --json\n\n\
Tolerances: goodput of a group of flows 5 %, mean added latency 20 % or 0.5 ms, drops and marks\n\
25 %. Exit status 1 if a line is beyond its tolerance and the ledger does not say why.")]
pub struct Args {
    /// Directory with recordings.
    directory: PathBuf,
    /// Only recordings whose name contains this.
    #[arg(long, value_name = "PART", default_value = "")]
    only: String,
    /// Seeds for each of Linux's runs.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// The ledger [default: linux-ledger.toml beside DIRECTORY, or in conformance/].
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// One JSON object a line.
    #[arg(short, long)]
    json: bool,
}

/// Simulates and compares.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let ledger = match find_ledger(args.ledger.as_ref(), &args.directory, "linux-ledger.toml") {
        Some(path) => Ledger::read(&path).into_diagnostic()?,
        None => Ledger::default(),
    };
    let mut paths = linux_reference::list(&args.directory).into_diagnostic()?;
    paths.retain(|path| {
        path.file_stem().is_some_and(|stem| stem.to_string_lossy().contains(&args.only))
    });
    if paths.is_empty() {
        return Err(miette!(
            help = "give a directory with the recordings' JSON files; --only must fit a name",
            "no recording that fits `{}` in {}",
            args.only,
            args.directory.display()
        ));
    }
    let progress = Progress::new(paths.len() as u64);
    let compared =
        linux_reference::compare_all(&paths, args.seeds, &ledger, &|| progress.advance(1));
    progress.done();
    let lines: Vec<Line> = compared.into_iter().flatten().collect();
    if args.json { json(&lines, out) } else { table(&lines, out) }.map_err(output_failed)?;
    let stale = ledger.stale(&lines);
    for entry in &stale {
        crate::say!(
            "the ledger's entry for `{}`, `{}` covers no difference",
            entry.name,
            entry.metric
        );
    }
    let good = lines.iter().all(|line| line.within || line.ledger.is_some()) && stale.is_empty();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn json(lines: &[Line], out: &mut dyn Write) -> io::Result<()> {
    for line in lines {
        serde_json::to_writer(&mut *out, line)?;
        writeln!(out)?;
    }
    Ok(())
}

fn table(lines: &[Line], out: &mut dyn Write) -> io::Result<()> {
    let width = |of: &dyn Fn(&Line) -> usize| lines.iter().map(of).max().unwrap_or(0).min(60);
    let (name, metric) = (width(&|line| line.name.len()), width(&|line| line.metric.len()));
    writeln!(
        out,
        "{:name$}  {:metric$}  {:>10}  {:>10}  {:>8}",
        "situation", "metric", "linux", "ours", "diff"
    )?;
    let number = |value: Option<f64>| value.map_or("-".into(), |value| format!("{value:.3}"));
    for line in lines {
        let difference =
            line.difference.map_or("-".into(), |share| format!("{:+.1} %", share * 100.0));
        let verdict = match (line.within, &line.ledger) {
            (true, _) => "".into(),
            (false, Some(reason)) => format!("ledger: {reason}"),
            (false, None) => "DIFFERS".to_string(),
        };
        writeln!(
            out,
            "{:name$}  {:metric$}  {:>10}  {:>10}  {difference:>8}  {verdict}",
            line.name,
            line.metric,
            number(line.linux),
            number(line.ours)
        )?;
    }
    let within = lines.iter().filter(|line| line.within).count();
    let listed = lines.iter().filter(|line| !line.within && line.ledger.is_some()).count();
    writeln!(
        out,
        "{} figures: {within} within tolerance, {listed} in the ledger, {} not",
        lines.len(),
        lines.len() - within - listed
    )
}
