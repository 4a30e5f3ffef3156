//! `simnel guest`: what `simnel paper --linux` starts inside user-mode Linux. Not for people.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_lab::experiments::paper::arms::guest;

/// Carry out the orders in a directory (inside user-mode Linux).
#[derive(clap::Args)]
pub struct Args {
    /// Orders are read from here, results written to it.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Carries them out. What goes wrong is a file in the directory, too.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    let pace = |stream: &std::net::TcpStream| simnel_gateway::pace_sender(stream);
    guest::run(&args.directory, pace).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
