//! `simnel demo`: one home line under load, without and with the gateway.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_core::qdisc::{build, Device};
use simnel_core::tc::{units, Digits};
use simnel_core::{Qdisc, Rate, Span};
use simnel_gateway::words::settings_of;
use simnel_gateway::Direction;
use simnel_testbed::demo::{Demo, Options, Progress, Style};

use super::{line_rates, misuse, misuse_with_help, output_failed};

/// Show what Simnel does to a home line under load: latency and throughput, before and after.
#[derive(clap::Args)]
#[command(after_help = "Makes its own home network in network namespaces (root), runs real TCP \
through it\nfor about 40 seconds, and removes it again. Without root it says so and runs the \
same\ncore over a synthetic overload.\n\n\
Examples:\n  \
    simnel demo\n  \
    simnel demo --shell                             # docs/START.md\n  \
    simnel demo --line 50mbit/10mbit --rtt 30ms fq_codel")]
pub struct Args {
    /// The discipline and its options, as after the rates of `simnel up` [default: cake].
    #[arg(value_name = "QDISC WORDS", allow_negative_numbers = true)]
    words: Vec<String>,
    /// Rates of the line, down and up: 100kbit to 1gbit.
    #[arg(long, value_name = "DOWN/UP", default_value = "20mbit/3mbit")]
    line: String,
    /// Round-trip time of the idle line, up to 2s.
    #[arg(long, value_name = "TIME", default_value = "90ms")]
    rtt: String,
    /// Instead: a shell on the router of that home network, to try things out.
    #[arg(long, conflicts_with_all = ["words", "json", "seconds"])]
    shell: bool,
    /// Print one JSON object.
    #[arg(short, long)]
    json: bool,
    /// Seconds of load in each of the two phases.
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(3..=600))]
    seconds: u32,
}

impl Args {
    fn options(&self) -> miette::Result<Options> {
        let (down, up) = line_rates(&self.line)?;
        let rtt = units::time(&self.rtt).ok().filter(|&rtt| rtt <= Span::from_secs(2));
        Ok(Options {
            simnel: Some(std::env::current_exe().into_diagnostic()?),
            words: self.words.clone(),
            download: rate(down)?,
            upload: rate(up)?,
            rtt: rtt.ok_or_else(|| {
                let help = "a time up to 2s, for example --rtt 30ms";
                misuse_with_help(format!("`{}` is no round-trip time for this", self.rtt), help)
            })?,
            seconds: self.seconds,
            ..Options::default()
        })
    }

    /// Discipline that runs at `rate`.
    fn discipline(&self, direction: Direction, rate: Rate) -> miette::Result<Box<dyn Qdisc>> {
        let mut said = String::new();
        // Writing to memory does not fail.
        let _ = units::write_rate(rate, Digits::Exact, &mut said);
        let config =
            settings_of(direction, Some(&said), self.words.join(" ").as_str()).map_err(misuse)?;
        Ok(build(&config, &Device::default()).map_err(misuse)?)
    }
}

/// A line's rate: fast enough to be seen in seconds, slow enough for this machine.
fn rate(word: &str) -> miette::Result<Rate> {
    const SLOWEST: Rate = Rate::from_bits(100_000);
    const FASTEST: Rate = Rate::from_bits(1_000_000_000);
    let rate = units::rate(word).ok().filter(|rate| (SLOWEST..=FASTEST).contains(rate));
    rate.ok_or_else(|| {
        let help = "100kbit to 1gbit, down and up: --line 20mbit/3mbit";
        misuse_with_help(format!("`{word}` is no rate for this"), help)
    })
}

/// Runs both phases and prints the comparison.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let options = args.options()?;
    if args.shell {
        return super::shell::run(&options);
    }
    // Wrong words are told before anything is set up.
    args.discipline(Direction::Download, options.download)?;
    args.discipline(Direction::Upload, options.upload)?;
    let factory = |rate: Rate| {
        args.discipline(Direction::Upload, rate).expect("the words were understood above")
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
    if args.json {
        writeln!(out, "{}", report.to_json().trim_end()).map_err(output_failed)?;
    } else {
        // Its colours are ours.
        let text = report.render(Style::of_stdout());
        writeln!(io::stdout(), "{}", text.trim_end()).map_err(output_failed)?;
    }
    Ok(ExitCode::SUCCESS)
}
