//! `simnel completions SHELL`: completion scripts, from the same definition as the help.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::Shell;

use super::output_failed;

/// Print a completion script for a shell.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    simnel completions bash > /etc/bash_completion.d/simnel")]
pub struct Args {
    /// The shell.
    shell: Shell,
}

/// Writes the script to `out`.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    // The generator panics where writing fails, so it writes to memory.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "simnel", &mut script);
    out.write_all(&script).map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}
