//! `simnel man`: manual pages, from the same definition as the help.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory;
use miette::{IntoDiagnostic, WrapErr};

use super::output_failed;

/// Print the manual page, or write those of all commands into a directory.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel man | man -l -\n  \
    simnel man --output /usr/local/share/man/man1")]
pub struct Args {
    /// Directory for the pages of all commands (simnel.1, simnel-bench.1, …).
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
}

/// Writes the page to `out`, or the pages to a directory.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let command = crate::Cli::command();
    match &args.output {
        Some(directory) => clap_mangen::generate_to(command, directory)
            .into_diagnostic()
            .wrap_err_with(|| format!("cannot write manual pages into {}", directory.display()))?,
        None => clap_mangen::Man::new(command).render(&mut &mut *out).map_err(output_failed)?,
    }
    Ok(ExitCode::SUCCESS)
}
