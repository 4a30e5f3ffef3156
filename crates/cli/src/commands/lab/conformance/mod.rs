//! `simnel conformance golden DIR`: our disciplines against recordings of Linux's.
//! `simnel conformance linux DIR`: our simulator against recordings of whole Linux networks.
//!
//! Status 1 if a recording differs in a way that the ledger does not list, or if the ledger lists
//! what is no longer so.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::{miette, IntoDiagnostic};
use serde::Serialize;
use simnel_lab::conformance::golden::{self, Ledger, Outcome};

use super::output_failed;

mod fuzz;
mod linux;

/// Check that the disciplines decide as Linux's do.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    arm: Arm,
}

#[derive(clap::Subcommand)]
enum Arm {
    Golden(GoldenArgs),
    Linux(linux::Args),
    #[command(hide = true)]
    Fuzz(fuzz::Args),
}

/// Replay recordings of Linux's disciplines and compare packet by packet.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel conformance golden conformance/golden\n  \
    simnel conformance golden conformance/golden --only 'cake-tins/*' --json\n\n\
Exit status 1 if a recording differs and the ledger does not say why.")]
struct GoldenArgs {
    /// Directory with recordings, or with groups of them.
    directory: PathBuf,
    /// Only recordings whose GROUP/NAME fits (`*` stands for any characters).
    #[arg(long, value_name = "PATTERN", default_value = "*")]
    only: String,
    /// The ledger of chosen deviations [default: ledger.toml beside DIRECTORY, or in conformance/].
    #[arg(long, value_name = "FILE")]
    ledger: Option<PathBuf>,
    /// Replay nothing: write what kernel/test/golden needs to replay the recordings in the kernel.
    #[arg(long, value_name = "DIRECTORY", conflicts_with_all = ["json", "ledger", "decided"])]
    plans: Option<PathBuf>,
    /// Compare what the kernel module decided (kernel/test/golden) with what is decided here.
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "ledger")]
    decided: Option<PathBuf>,
    /// One JSON object a line.
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    packets: usize,
    events: usize,
    equal_events: usize,
    equal: bool,
    first_difference: Option<String>,
    ledger: Option<&'a str>,
}

/// Runs the chosen arm.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match &args.arm {
        Arm::Golden(args) => golden(args, out),
        Arm::Linux(args) => linux::run(args, out),
        Arm::Fuzz(args) => fuzz::run(args, out),
    }
}

fn golden(args: &GoldenArgs, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (directory, only) = (&args.directory, args.only.as_str());
    if let Some(to) = &args.plans {
        let plans = golden::write_plans(directory, only, to).into_diagnostic()?;
        return if plans == 0 { Err(nothing_fits(args)) } else { Ok(ExitCode::SUCCESS) };
    }
    // Here and there the core is the same: nothing may differ.
    let ledger = match &args.decided {
        Some(_) => None,
        None => find_ledger(args.ledger.as_ref(), directory, "ledger.toml"),
    };
    let ledger = match ledger {
        Some(path) => Ledger::read(&path).into_diagnostic()?,
        None => Ledger::default(),
    };
    let factory: &golden::Factory = &|words, device| golden::build(words, device);
    let outcomes = match &args.decided {
        Some(decided) => golden::compare_decided(directory, only, factory, decided),
        None => golden::run_directory(directory, only, factory, &ledger),
    };
    let outcomes = outcomes.into_diagnostic()?;
    if outcomes.is_empty() {
        return Err(nothing_fits(args));
    }
    if args.json { json(&outcomes, out) } else { table(&outcomes, out) }.map_err(output_failed)?;

    // What was not replayed here says nothing about its entries.
    let stale: Vec<_> =
        ledger.stale(&outcomes).into_iter().filter(|stale| stale.recordings_exist).collect();
    for stale in &stale {
        crate::say!("the ledger's entry for `{}` covers no difference", stale.recording);
    }
    let good = outcomes.iter().all(Outcome::accepted) && stale.is_empty();
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn nothing_fits(args: &GoldenArgs) -> miette::Report {
    miette!(
        help = "give a directory with NAME.json, NAME.csv.gz and NAME.out.gz, \
                or with sub-directories of such files; --only must fit GROUP/NAME",
        "no recording that fits `{}` in {}",
        args.only,
        args.directory.display()
    )
}

/// The ledger that was given, else the one called `name` beside the recordings' directory or in
/// this project's `conformance/`. Without any, differences cannot be explained; that is said.
fn find_ledger(given: Option<&PathBuf>, directory: &Path, name: &str) -> Option<PathBuf> {
    if let Some(given) = given {
        return Some(given.clone());
    }
    let beside = directory.parent().unwrap_or(Path::new("")).join(name);
    let usual = [beside, Path::new("conformance").join(name)];
    let found = usual.into_iter().find(|path| path.exists());
    if found.is_none() {
        crate::say!("no ledger: --ledger names the {name} that says why we differ where we do");
    }
    found
}

fn json(outcomes: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
    for outcome in outcomes {
        let line = Line {
            name: &outcome.name,
            packets: outcome.packets,
            events: outcome.expected.total(),
            equal_events: outcome.equal_events,
            equal: outcome.equal(),
            first_difference: outcome.first_difference.as_ref().map(ToString::to_string),
            ledger: outcome.ledger.as_deref(),
        };
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)?;
    }
    Ok(())
}

fn table(outcomes: &[Outcome], out: &mut dyn Write) -> io::Result<()> {
    let width = outcomes.iter().map(|outcome| outcome.name.len()).max().unwrap_or(0);
    writeln!(out, "{:width$}  {:>7}  {:>7}  result", "recording", "packets", "events")?;
    for outcome in outcomes {
        let (name, events) = (&outcome.name, outcome.expected.total());
        write!(out, "{name:width$}  {:>7}  {events:>7}  ", outcome.packets)?;
        match (&outcome.first_difference, &outcome.ledger) {
            (None, _) => writeln!(out, "equal")?,
            (Some(_), Some(reason)) => {
                writeln!(out, "differs after {}: {reason}", outcome.equal_events)?
            }
            (Some(difference), None) => {
                writeln!(out, "DIFFERS after {}: {}", outcome.equal_events, outcome.words)?;
                writeln!(out, "{difference}")?;
            }
        }
    }
    let equal = outcomes.iter().filter(|outcome| outcome.equal()).count();
    let accepted = outcomes.iter().filter(|outcome| outcome.accepted()).count();
    writeln!(
        out,
        "{} recordings, {} packets: {equal} equal, {} in the ledger, {} not",
        outcomes.len(),
        outcomes.iter().map(|outcome| outcome.packets).sum::<usize>(),
        accepted - equal,
        outcomes.len() - accepted,
    )
}
