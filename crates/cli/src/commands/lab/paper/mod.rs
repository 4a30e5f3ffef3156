//! `simnel paper`: the published experiments, run again and judged.
//!
//! Without arguments the list; with identifiers the tables of claims. What does not hold is a
//! finding and no failure: the exit status says only whether the runs worked. Beside the
//! simulator's figures stand those of Linux in virtual time, as they were recorded. `--live` and
//! `--linux` run the same experiments in real time too, and add a column each.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use serde_json::json;
use simnel_lab::experiments::paper::{self, Options, Watch};
use simnel_lab::report;

use super::interrupt::{Interrupt, INTERRUPTED};
use super::progress::Progress;
use super::{misuse_with_help, output_failed, place};

mod arms;
mod table;

/// Run published experiments again and judge what their papers state.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel paper                     list the experiments\n  \
    simnel paper A3 B4               run some\n  \
    simnel paper autorate            rates on lines that change (F1 to F9)\n  \
    simnel paper all --report out/   run all, with figures and data\n  \
    simnel paper B4 --live --linux   run one also on the gateway and on Linux's own qdiscs\n\n\
--live needs root; --linux needs Debian's package user-mode-linux and no root.")]
pub struct Args {
    /// Experiments (A3), papers (A), `autorate`, or `all`.
    #[arg(value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// One JSON object a claim and line; of the list, one an experiment.
    #[arg(short, long)]
    json: bool,
    /// Repetitions instead of the papers' own.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: Option<u32>,
    /// A page with figures, and all data beside it: a path that ends in .html, or a folder for
    /// EXPERIMENTS.html [default: no page].
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
    /// B1 to B5 as the paper ran them: one after another between the same hosts, which remember
    /// slow-start thresholds as Linux up to 5.5 does.
    #[arg(long)]
    series: bool,
    #[command(flatten)]
    arms: arms::ArmArgs,
}

/// Lists or runs.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    if args.experiments.is_empty() {
        let list = if args.json { list_json } else { list };
        list(out).map_err(output_failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    let experiments = paper::select(&args.experiments).map_err(|word| {
        let known: Vec<&str> = paper::experiments().iter().map(|e| e.id).collect();
        let help = format!("expected all, A to F, or one of {}", known.join(", "));
        misuse_with_help(format!("no such experiment: `{word}`"), help)
    })?;
    args.arms.check(&experiments)?;
    let usual = place::named(&args.experiments.join("-"));
    let page = place::page("paper", args.report.as_deref(), usual, false, &[])?;
    let (keep, series) = (args.report.is_some(), args.series);
    let options = Options { repetitions: args.repetitions, keep, series };
    let interrupt = Interrupt::new()?;
    let progress = Progress::new(paper::count(&experiments, &options) as u64);
    let watch = Watch { stop: interrupt.flag(), step: &|| progress.advance(1) };
    let outcomes = paper::run(&experiments, &options, &watch);
    progress.done();
    let readings = args.arms.run(&experiments, interrupt.flag())?;
    for outcome in &outcomes {
        let write = if args.json { table::json } else { table::write };
        write(outcome, &readings, out).map_err(output_failed)?;
    }
    if !args.json && outcomes.len() > 1 {
        table::summary(&outcomes, out).map_err(output_failed)?;
    }
    let stopped = interrupt.has_come();
    if let Some(page) = page {
        let path = &page.path;
        let text = report::write(&outcomes, &readings, path, stopped);
        page.store(text.map_err(|error| place::cannot_write(path, &error))?)?;
        if !args.json {
            writeln!(out, "page: {}", path.display()).map_err(output_failed)?;
        }
    }
    if stopped {
        crate::say!("stopped: these are the runs until then");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

/// An experiment a line.
fn list_json(out: &mut dyn Write) -> io::Result<()> {
    for experiment in paper::experiments() {
        let line = json!({
            "id": experiment.id,
            "paper": experiment.paper.title(),
            "title": experiment.title,
            "claims": paper::claims(experiment.id).len(),
        });
        writeln!(out, "{line}")?;
    }
    Ok(())
}

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
