//! `simnel paper`: the published experiments, run again and judged.
//!
//! Without arguments the list; with identifiers the tables of claims. What does not hold is a
//! finding and no failure: the exit status says only whether the runs worked.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use miette::{miette, IntoDiagnostic};
use simnel_lab::paper::{self, Options, Outcome, Watch};
use simnel_lab::report;

use super::progress::Progress;
use super::{misuse_with_help, output_failed};

/// Run published experiments again and judge what their papers state.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel paper                     list the experiments\n  \
    simnel paper A3 B4               run some\n  \
    simnel paper all --report out/   run all, with figures and data")]
pub struct Args {
    /// Experiments (A3), papers (A), or `all`.
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// One JSON object a claim and line.
    #[arg(long)]
    json: bool,
    /// Repetitions instead of the papers' own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: Option<u32>,
    /// Write a page with figures, and all data, into this directory.
    #[arg(long, value_name = "DIR")]
    report: Option<PathBuf>,
}

/// Lists or runs.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    if args.experiments.is_empty() {
        list(out).map_err(output_failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let experiments = paper::select(&args.experiments).map_err(|word| {
        let known: Vec<&str> = paper::experiments().iter().map(|e| e.id).collect();
        let help = format!("expected all, A to E, or one of {}", known.join(", "));
        misuse_with_help(format!("no such experiment: `{word}`"), help)
    })?;
    let options = Options { repetitions: args.repetitions, keep: args.report.is_some() };
    let stop = Arc::new(AtomicBool::new(false));
    let handler = signal_hook::flag::register(signal_hook::consts::SIGINT, Arc::clone(&stop))
        .into_diagnostic()?;
    let progress = Progress::new(paper::count(&experiments, &options) as u64);
    let watch = Watch { stop: &stop, step: &|| progress.advance(1) };
    let outcomes = paper::run(&experiments, &options, &watch);
    progress.done();
    signal_hook::low_level::unregister(handler);
    for outcome in &outcomes {
        let write = if args.json { json } else { table };
        write(outcome, out).map_err(output_failed)?;
    }
    for outcome in &outcomes {
        for arm in &outcome.arms {
            if let Some(reason) = &arm.refused {
                eprintln!("{} {}: not run: {reason}", outcome.experiment.id, arm.name);
            }
        }
    }
    let stopped = stop.load(Ordering::Relaxed);
    if let Some(directory) = &args.report {
        report::write(&outcomes, directory, stopped).map_err(|error| {
            miette!(
                help = "say where it may go with --report DIR",
                "cannot write the report to {}: {error}",
                directory.display()
            )
        })?;
        if !args.json {
            let page = directory.join("index.html");
            writeln!(out, "report: {}", page.display()).map_err(output_failed)?;
        }
    }
    if stopped {
        eprintln!("stopped: these are the runs until then");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a shell reports for a command that SIGINT ended.
const INTERRUPTED: u8 = 130;

fn list(out: &mut dyn Write) -> io::Result<()> {
    let mut paper = None;
    for experiment in paper::experiments() {
        if paper != Some(experiment.paper) {
            paper = Some(experiment.paper);
            let kind = experiment.paper;
            writeln!(out, "{}  {}", kind.letter(), kind.title())?;
        }
        let claims = paper::claims(experiment.id).len();
        writeln!(out, "  {:<4} {} ({claims} claims)", experiment.id, experiment.title)?;
    }
    Ok(())
}

fn json(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    for verdict in &outcome.verdicts {
        serde_json::to_writer(&mut *out, &verdict.json(outcome.experiment.paper))?;
        writeln!(out)?;
    }
    Ok(())
}

fn table(outcome: &Outcome, out: &mut dyn Write) -> io::Result<()> {
    let experiment = outcome.experiment;
    let runs: usize = outcome.arms.iter().map(|arm| arm.runs).sum();
    writeln!(out, "{}  {}", experiment.id, experiment.title)?;
    writeln!(out, "    {}", experiment.question)?;
    writeln!(out, "    {runs} runs\n")?;
    let width = |text: &dyn Fn(&paper::Verdict) -> usize| {
        outcome.verdicts.iter().map(text).max().unwrap_or(0)
    };
    let claim = width(&|verdict| verdict.claim.text.chars().count());
    let stated = width(&|verdict| verdict.claim.stated.chars().count());
    let simulated = width(&|verdict| verdict.simulated_text().chars().count());
    for verdict in &outcome.verdicts {
        let holds = match verdict.holds {
            Some(true) => "holds",
            Some(false) => "DOES NOT HOLD",
            None => "not judged",
        };
        writeln!(
            out,
            "  {:<claim$} | {:<stated$} | {:<simulated$} | {holds}",
            verdict.claim.text,
            verdict.claim.stated,
            verdict.simulated_text(),
        )?;
    }
    let held = outcome.verdicts.iter().filter(|verdict| verdict.holds == Some(true)).count();
    writeln!(out, "  {held} of {} claims hold", outcome.verdicts.len())?;
    for (claims, finding) in outcome.reasons() {
        let reason = finding.map_or("not known", |finding| finding.reason.trim());
        writeln!(out, "  why {} not: {reason}", claims.join(", "))?;
    }
    writeln!(out)
}
