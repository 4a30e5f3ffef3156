//! `simnel down`: give an interface back.

use std::io::Write;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_gateway::control::Client;
use simnel_gateway::{kernel, Error};

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

/// Asks the daemon, or takes the kernel's disciplines away.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let mut is_told = false;
    let go_on = |error: &Error| {
        if !std::mem::replace(&mut is_told, true) {
            crate::say!("simnel: {error}");
        }
        true
    };
    let client = Client::await_daemon(&args.control.directory, &args.interface, go_on);
    if matches!(client, Err(Error::NotUp { .. }))
        && !kernel::shaped(Some(&args.interface)).into_diagnostic()?.is_empty()
    {
        kernel::down(&args.interface).into_diagnostic()?;
        // Nothing on trial is no mistake here.
        let _ = kernel::keep(&args.control.directory, &args.interface);
        return writeln!(out, "{}: down", args.interface)
            .map(|()| ExitCode::SUCCESS)
            .map_err(output_failed);
    }
    if matches!(client, Err(Error::NotUp { .. } | Error::NoInterface(_))) {
        // An interface that is gone may have left its device behind.
        let removed = kernel::remove_orphans().unwrap_or_default();
        for device in &removed {
            writeln!(out, "{device}: removed, its interface is gone").map_err(output_failed)?;
        }
        if !removed.is_empty() {
            return Ok(ExitCode::SUCCESS);
        }
    }
    let mut client = client.into_diagnostic()?;
    let packets = client.down().into_diagnostic()?;
    writeln!(out, "{}: down, {packets} queued packets let go", args.interface)
        .map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}
