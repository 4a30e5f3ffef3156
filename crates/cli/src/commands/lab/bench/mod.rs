//! `simnel bench`: how long things take.

use std::io::Write;
use std::process::ExitCode;

mod core;
mod lanes;
mod load;
mod sim;

/// Time the parts.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    Core(core::Args),
    Lanes(lanes::Args),
    Sim(sim::Args),
}

/// Runs the chosen benchmark.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    match &args.part {
        Part::Core(args) => core::run(args, out),
        Part::Lanes(args) => lanes::run(args, out),
        Part::Sim(args) => sim::run(args, out),
    }
}
