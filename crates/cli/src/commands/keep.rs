//! `simnel keep`: what is on trial stays.

use std::io::Write;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_gateway::control::Client;

use super::{interface_name, output_failed, Control};

/// Keep what is on trial (`--for` of `simnel up` and `simnel change`).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel up eth0 download 50mbit upload 10mbit --for 10m &\n  \
    simnel show eth0        # says how long is left\n  \
    simnel keep eth0")]
pub struct Args {
    /// The interface.
    #[arg(value_parser = interface_name)]
    interface: String,
    #[command(flatten)]
    control: Control,
}

/// Asks the daemon.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let mut client = Client::connect(&args.control.directory, &args.interface).into_diagnostic()?;
    client.keep().into_diagnostic()?;
    writeln!(out, "{}: kept", args.interface).map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}
