//! `simnel demo`: one home line under load, without and with the gateway.

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_core::qdisc::cake::{Cake, Params};
use simnel_core::qdisc::Device;
use simnel_core::{Qdisc, Rate};
use simnel_lab::demo::{Demo, Options, Progress, Style};

use super::output_failed;

/// Show what Simnel does to a home line under load: latency and throughput, before and after.
#[derive(clap::Args)]
#[command(after_help = "Makes its own home network in network namespaces (root), runs real TCP \
through it\nfor about 40 seconds, and removes it again. Without root it says so and runs the \
same\ncore over a synthetic overload.")]
pub struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Seconds of load in each of the two phases.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..=600))]
    seconds: u32,
}

/// Runs both phases and prints the comparison.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let options = Options {
        simnel: Some(std::env::current_exe().into_diagnostic()?),
        seconds: args.seconds,
        ..Options::default()
    };
    let factory = |rate: Rate| -> Box<dyn Qdisc> {
        let params = Params { bandwidth: rate, ..Params::default() };
        Box::new(Cake::new(&params, &Device::default()).expect("default settings are in range"))
    };
    let mut progress = |progress: Progress| {
        if std::io::stderr().is_terminal() {
            let (elapsed, total) = (progress.elapsed.as_secs(), progress.total.as_secs());
            eprint!("\r\x1b[K{} ({elapsed} of {total} s)", progress.what);
        }
    };
    let report = Demo::run(&options, &factory, &mut progress).into_diagnostic()?;
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K");
    }
    let text = if args.json { report.to_json() } else { report.render(Style::of_stdout()) };
    writeln!(out, "{}", text.trim_end()).map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}
