//! `simnel keep`: what is on trial stays.

use std::io::Write;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_gateway::control::Client;
use simnel_gateway::{kernel, Error};

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

/// Asks the daemon, or those who would end what the kernel does.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let directory = &args.control.directory;
    let kept = match Client::connect(directory, &args.interface) {
        Err(Error::NotUp { .. })
            if !kernel::shaped(Some(&args.interface)).into_diagnostic()?.is_empty() =>
        {
            kernel::keep(directory, &args.interface)
        }
        client => client.and_then(|mut client| client.keep()),
    };
    kept.into_diagnostic()?;
    writeln!(out, "{}: kept", args.interface).map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}
