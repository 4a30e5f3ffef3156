//! `simnel guest`: what `simnel paper --linux` starts inside user-mode Linux. Not for people.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_gateway::FrameReader;
use simnel_lab::experiments::paper::arms::{guest, Means};

/// Unsafe code that the arms need and the lab does without.
pub const MEANS: Means = Means {
    pace: |stream| simnel_gateway::pace_sender(stream),
    read_frames: |socket| {
        let mut reader = FrameReader::new(socket)?;
        Ok(Box::new(move |see| reader.drain(see)))
    },
};

/// Carry out the orders in a directory (inside user-mode Linux).
#[derive(clap::Args)]
pub struct Args {
    /// Orders are read from here, results written to it.
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Carries them out. What goes wrong is a file in the directory, too.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    guest::run(&args.directory, MEANS).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
