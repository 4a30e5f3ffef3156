//! `simnel link`: an emulated line between two interfaces.

use std::io::Write;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_core::tc::{self, Config};
use simnel_gateway::link::{stop_on_signals, Link, LinkSettings};

use super::misuse;

/// Join two interfaces by an emulated line, until a signal.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel link eth0 eth1 rate 20mbit delay 15ms fifo 1000p\n  \
    simnel link eth0 eth1 rate 3mbit delay 15ms fifo 1000p reverse rate 20mbit\n\n\
Words before `reverse` describe both directions, words after it change that from B to A.")]
pub struct Args {
    /// One end.
    a: String,
    /// The other end.
    b: String,
    /// rate RATE, delay TIME, jitter TIME, fifo Np or SIZE, overhead words; `reverse` and more.
    #[arg(required = true)]
    words: Vec<String>,
}

fn line(words: &[&str]) -> miette::Result<Config> {
    let words = [&["line"], words].concat();
    tc::parse_words(&words).map_err(misuse)
}

/// Runs the line.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let mut halves = words.splitn(2, |word| *word == "reverse");
    let forward = halves.next().unwrap_or_default();
    let backward = [forward, halves.next().unwrap_or_default()].concat();
    let settings = LinkSettings {
        a: args.a.clone(),
        b: args.b.clone(),
        a_to_b: line(forward)?,
        b_to_a: line(&backward)?,
    };
    let stop = stop_on_signals().into_diagnostic()?;
    Link::new(settings).into_diagnostic()?.run(&stop).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
