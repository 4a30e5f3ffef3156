//! `simnel change`: other settings for a running interface, without losing a queued packet.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_gateway::config::{compose, settings_of};
use simnel_gateway::control::Client;
use simnel_gateway::{Direction, DEFAULT_CONTROL_DIR};

use super::{interface_name, misuse};
use crate::tc::Core;

/// Change one direction of a running interface; queued packets stay queued.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  simnel change eth0 upload 8mbit cake diffserv4")]
pub struct Args {
    /// The interface.
    #[arg(value_parser = interface_name)]
    interface: String,
    /// `download` or `upload`.
    direction: String,
    /// The new rate.
    rate: String,
    /// The discipline's words [default: cake].
    words: Vec<String>,
}

/// Asks the daemon.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    let direction = match args.direction.as_str() {
        "download" => Direction::Download,
        "upload" => Direction::Upload,
        other => {
            return Err(misuse(format!("`{other}` is no direction: say `download` or `upload`")));
        }
    };
    let (rate, words) = (Some(args.rate.as_str()), args.words.join(" "));
    settings_of(direction, rate, &words, &Core).map_err(misuse)?;
    let words = compose(direction, rate, &words).map_err(misuse)?;
    Client::connect(Path::new(DEFAULT_CONTROL_DIR), &args.interface)
        .and_then(|mut client| client.change(direction, &words))
        .into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
