//! `simnel bench sim`: how fast the simulator is, on four scenarios that others were timed on.
//!
//! One core, one run after the other, best of several: what the machine does besides only makes
//! runs slower. Each line carries the hash of the whole trace, so that nothing can be optimised
//! away and no change of behaviour goes unseen; all runs of a scenario must agree on it.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use miette::{miette, IntoDiagnostic};
use serde::Serialize;
use simnel_lab::scenario::Scenario;
use simnel_sim::{Results, Run, Setup};

use crate::commands::{misuse_with_help, output_failed};

/// The scenarios, by name.
const SCENARIOS: [(&str, &str); 4] = [
    ("rrul", include_str!("sim/rrul.toml")),
    ("50up", include_str!("sim/50up.toml")),
    ("drr", include_str!("sim/drr.toml")),
    ("eight", include_str!("sim/eight.toml")),
];

/// Time the simulator.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel bench sim\n  \
    simnel bench sim --only rrul --runs 20 --json\n\n\
Build with --release; figures of one machine compare with figures of the same machine only.")]
pub struct Args {
    /// Only these scenarios: rrul, 50up, drr, eight.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// Runs, of which the fastest counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    runs: u8,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Figure<'a> {
    bench: &'static str,
    scenario: &'a str,
    simulated_s: u64,
    wall_ms: f64,
    bottleneck_packets: u64,
    events: u64,
    hash: String,
}

/// Times the scenarios.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    if let Some(unknown) = args.only.iter().find(|o| !SCENARIOS.iter().any(|(n, _)| n == o)) {
        let names = SCENARIOS.map(|(name, _)| name).join(", ");
        let help = format!("one of {names}");
        return Err(misuse_with_help(format!("no such scenario: `{unknown}`"), help));
    }
    if !args.json {
        writeln!(out, "scenario  simulated    wall ms    packets     events  Mpackets/s  hash")
            .map_err(output_failed)?;
    }
    for (name, text) in SCENARIOS {
        if !args.only.is_empty() && !args.only.iter().any(|only| only == name) {
            continue;
        }
        let figure = measure(name, text, args.runs)?;
        print(&figure, args.json, out).map_err(output_failed)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure<'a>(name: &'a str, text: &str, runs: u8) -> miette::Result<Figure<'a>> {
    let scenario = Scenario::parse(text, name, Path::new("")).into_diagnostic()?;
    let (setup, _) = scenario.setup(None).into_diagnostic()?;
    let mut fastest: Option<(f64, Results)> = None;
    for _ in 0..runs {
        let (millis, results) = timed(&setup)?;
        if let Some((_, earlier)) = &fastest {
            if earlier.hash != results.hash {
                return Err(miette!("`{name}` is not deterministic: two runs differ"));
            }
        }
        if fastest.as_ref().is_none_or(|(best, _)| millis < *best) {
            fastest = Some((millis, results));
        }
    }
    let (wall_ms, results) = fastest.ok_or_else(|| miette!("no runs"))?;
    Ok(Figure {
        bench: "sim",
        scenario: name,
        simulated_s: results.simulated.0 / 1_000_000_000,
        wall_ms: (wall_ms * 100.0).round() / 100.0,
        bottleneck_packets: results.bottleneck_packets,
        events: results.events,
        hash: format!("{:016x}", results.hash),
    })
}

fn timed(setup: &Setup) -> miette::Result<(f64, Results)> {
    let begin = Instant::now();
    let results = Run::new(setup, 1).into_diagnostic()?.finish();
    Ok((begin.elapsed().as_secs_f64() * 1e3, results))
}

fn print(figure: &Figure, json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        serde_json::to_writer(&mut *out, figure)?;
        writeln!(out)?;
    } else {
        let Figure { scenario, simulated_s, wall_ms, bottleneck_packets, events, hash, .. } =
            figure;
        let rate = *bottleneck_packets as f64 / wall_ms / 1e3;
        writeln!(
            out,
            "{scenario:<8}  {simulated_s:>7} s  {wall_ms:>9.2}  {bottleneck_packets:>9}  \
             {events:>9}  {rate:>10.2}  {hash}"
        )?;
    }
    out.flush()
}
