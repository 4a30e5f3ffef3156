//! `simnel bench`: how long things take.

use std::io::Write;
use std::process::ExitCode;

mod core;
mod load;

/// Time the parts.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    part: Part,
}

#[derive(clap::Subcommand)]
enum Part {
    Core(core::Args),
}

/// Runs the chosen benchmark.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let Part::Core(args) = &args.part;
    core::run(args, out)
}
