//! The commands of the lab: simulation, experiments, benchmarks, and pages of the manual.

use std::io::Write;
use std::process::ExitCode;

use super::{misuse, misuse_with_help, output_failed};

mod bench;
mod compare;
pub mod completions;
mod conformance;
mod demo;
mod guest;
mod interrupt;
pub mod line_page;
mod man;
mod page;
mod paper;
pub mod place;
mod plot;
mod progress;
mod replay;
mod shell;
mod sim;
mod sweep;
mod witness;

/// The lab's commands.
#[derive(clap::Subcommand)]
pub enum Command {
    Demo(demo::Args),
    Sim(sim::Args),
    Lab(page::Args),
    Paper(paper::Args),
    #[command(hide = true)]
    Guest(guest::Args),
    #[command(hide = true)]
    Witness(witness::Args),
    Replay(replay::Args),
    Compare(compare::Args),
    Sweep(sweep::Args),
    Plot(plot::Args),
    Bench(bench::Args),
    Conformance(conformance::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// Does it. The exit status is 1 where a check that was asked for failed.
    pub fn run(self, out: &mut dyn Write) -> miette::Result<ExitCode> {
        match self {
            Command::Sim(args) => sim::run(&args, out),
            Command::Lab(args) => page::run(&args, out),
            Command::Paper(args) => paper::run(&args, out),
            Command::Guest(args) => guest::run(&args, out),
            Command::Witness(args) => witness::run(&args, out),
            Command::Replay(args) => replay::run(&args, out),
            Command::Compare(args) => compare::run(&args, out),
            Command::Sweep(args) => sweep::run(&args, out),
            Command::Plot(args) => plot::run(&args, out),
            Command::Bench(args) => bench::run(&args, out),
            Command::Completions(args) => completions::run(&args, out),
            Command::Conformance(args) => conformance::run(&args, out),
            Command::Demo(args) => demo::run(&args, out),
            Command::Man(args) => man::run(&args, out),
        }
    }
}

/// The two rates of a line, down and up.
fn line_rates(line: &str) -> miette::Result<(&str, &str)> {
    line.split_once('/').ok_or_else(|| {
        let help = "both rates, down and up: --line 20mbit/3mbit";
        misuse_with_help(format!("`{line}` is no line"), help)
    })
}

/// True if a file that the command line names makes no sense.
pub fn is_misuse(report: &miette::Report) -> bool {
    sim::is_wrong(report)
}
