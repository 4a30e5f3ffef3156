//! `simnel down`: give an interface back.

use std::io::Write;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_gateway::control::Client;

use super::{interface_name, output_failed, Control};

/// Give an interface back: its rules go, and queued packets are let go in order.
#[derive(clap::Args)]
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
    let packets = client.down().into_diagnostic()?;
    writeln!(out, "{}: down, {packets} queued packets let go", args.interface)
        .map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}
