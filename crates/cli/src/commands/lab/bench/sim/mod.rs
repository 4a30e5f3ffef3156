//! `simnel bench sim`: the simulator's speed, on four scenarios that others were timed on. With
//! `--scale`, the growth of its cost and memory from ten flows to ten thousand.
//!
//! One core, one run after the other, best of several: what the machine does besides only makes
//! runs slower. Each line carries the hash of the whole trace, on which all runs of a scenario must
//! agree. So nothing can be optimised away, and no change of behaviour goes unseen.
//!
//! Each scenario is measured in a process of its own, started for it alone. So its peak memory is
//! its own, program included, and no scenario finds the caches or the allocator as another left
//! them.

use std::io::{self, Write};
use std::process::{Command, ExitCode};
use std::time::Instant;

use miette::{miette, IntoDiagnostic};
use rustix::time::{clock_gettime, ClockId};
use serde::{Deserialize, Serialize};
use simnel_scenario::{no_files, Scenario};
use simnel_sim::{Results, Run, Setup};

use super::super::{misuse_with_help, output_failed};

/// The scenarios, by name.
const SCENARIOS: [(&str, &str); 4] = [
    ("rrul", include_str!("rrul.toml")),
    ("50up", include_str!("50up.toml")),
    ("drr", include_str!("drr.toml")),
    ("eight", include_str!("eight.toml")),
];

/// The scenario of `--scale`, and the numbers of flows that it runs with.
const SCALE: &str = include_str!("scale.toml");
const SCALE_FLOWS: [u32; 4] = [10, 100, 1_000, 10_000];

/// Time the simulator.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel bench sim\n  \
    simnel bench sim --only rrul --runs 50 --json\n  \
    simnel bench sim --scale\n\n\
Build with --release; figures of one machine compare with figures of the same machine only.\n\
`wall ms` and `cpu ms` are the least of all runs; on a busy machine `cpu ms` is the steadier one.\n\
`peak MB` is the greatest resident set of a process that does nothing but this scenario, once.")]
pub struct Args {
    /// Only these scenarios: rrul, 50up, drr, eight.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// 10 to 10,000 flows at 10 Gbit/s for 10 s instead: time for each packet, and memory.
    #[arg(long, conflicts_with = "only")]
    scale: bool,
    /// Runs, of which the fastest counts [default: 15, with --scale 3].
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..))]
    runs: Option<u8>,
    /// One JSON object a line.
    #[arg(short, long)]
    json: bool,
    /// Measure this in the present process.
    #[arg(long, hide = true, value_name = "NAME")]
    alone: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct Figure {
    bench: String,
    scenario: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    flows: Option<u32>,
    simulated_s: u64,
    wall_ms: f64,
    cpu_ms: f64,
    bottleneck_packets: u64,
    packets_per_s: u64,
    events: u64,
    peak_mb: Option<f64>,
    hash: String,
}

/// Times the scenarios.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let runs = args.runs.unwrap_or(if args.scale { 3 } else { 15 });
    if let Some(name) = &args.alone {
        let figure = measure(name, runs)?;
        serde_json::to_writer(&mut *out, &figure).into_diagnostic()?;
        writeln!(out).map_err(output_failed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(unknown) = args.only.iter().find(|o| !SCENARIOS.iter().any(|(n, _)| n == o)) {
        let names = SCENARIOS.map(|(name, _)| name).join(", ");
        let help = format!("one of {names}");
        return Err(misuse_with_help(format!("no such scenario: `{unknown}`"), help));
    }
    let wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|only| only == name);
    let names: Vec<String> = if args.scale {
        SCALE_FLOWS.map(|flows| flows.to_string()).to_vec()
    } else {
        let names = SCENARIOS.iter().map(|(name, _)| *name);
        names.filter(|name| wanted(name)).map(String::from).collect()
    };
    if !args.json {
        let first = if args.scale { "flows" } else { "scenario" };
        writeln!(
            out,
            "{first:<8}  simulated    wall ms     cpu ms     packets      events  Mpackets/s  \
             ns/packet  peak MB  hash"
        )
        .map_err(output_failed)?;
    }
    let mut figures = Vec::new();
    for name in &names {
        let figure = apart(name, runs)?;
        print(&figure, args.json, out).map_err(output_failed)?;
        figures.push(figure);
    }
    if let (true, false, [few, .., many]) = (args.scale, args.json, figures.as_slice()) {
        compare(few, many, out).map_err(output_failed)?;
    }
    Ok(ExitCode::SUCCESS)
}

impl Figure {
    /// CPU time for each packet through the bottleneck.
    fn nanos_per_packet(&self) -> f64 {
        self.cpu_ms * 1e6 / self.bottleneck_packets.max(1) as f64
    }
}

/// Has a process of its own measure a scenario.
fn apart(name: &str, runs: u8) -> miette::Result<Figure> {
    let program = std::env::current_exe().into_diagnostic()?;
    let output = Command::new(program)
        .args(["bench", "sim", "--alone", name, "--runs", &runs.to_string()])
        .output()
        .into_diagnostic()?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_string();
        return Err(miette!("measuring `{name}` failed: {reason}"));
    }
    serde_json::from_slice(&output.stdout).into_diagnostic()
}

/// Measures a scenario, or the one of `--scale` with `name` flows.
fn measure(name: &str, runs: u8) -> miette::Result<Figure> {
    let flows = name.parse::<u32>().ok().filter(|flows| *flows > 0);
    let text = match (SCENARIOS.iter().find(|(known, _)| *known == name), flows) {
        (Some((_, text)), _) => *text,
        (None, Some(_)) => SCALE,
        (None, None) => return Err(miette!("no such scenario: `{name}`")),
    };
    let scenario = Scenario::parse(text, name, &no_files).into_diagnostic()?;
    let (mut setup, _) = scenario.setup(None).into_diagnostic()?;
    let flows = flows.filter(|_| text == SCALE);
    if let (Some(flows), [traffic]) = (flows, setup.traffic.as_mut_slice()) {
        traffic.count = flows;
    }
    let (mut wall_ms, mut cpu_ms) = (f64::MAX, f64::MAX);
    let (mut last, mut peak): (Option<Results>, _) = (None, None);
    for run in 0..runs {
        let earlier = last.take().map(|results| results.hash);
        let (wall, cpu, results) = timed(&setup)?;
        if earlier.is_some_and(|hash| hash != results.hash) {
            return Err(miette!("`{name}` is not deterministic: two runs differ"));
        }
        (wall_ms, cpu_ms) = (wall_ms.min(wall), cpu_ms.min(cpu));
        // Later runs find the heap as earlier ones left it: memory that was freed and is kept.
        if run == 0 {
            peak = peak_mb();
        }
        last = Some(results);
    }
    let results = last.ok_or_else(|| miette!("no runs"))?;
    let hundredths = |value: f64| (value * 100.0).round() / 100.0;
    Ok(Figure {
        bench: "sim".into(),
        scenario: if flows.is_some() { "scale".into() } else { name.into() },
        flows,
        simulated_s: results.simulated.0 / 1_000_000_000,
        wall_ms: hundredths(wall_ms),
        cpu_ms: hundredths(cpu_ms),
        bottleneck_packets: results.bottleneck_packets,
        packets_per_s: (results.bottleneck_packets as f64 / wall_ms * 1e3) as u64,
        events: results.events,
        peak_mb: peak,
        hash: format!("{:016x}", results.hash),
    })
}

/// Wall-clock and CPU time in milliseconds.
fn timed(setup: &Setup) -> miette::Result<(f64, f64, Results)> {
    let cpu = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let (begin, cpu_before) = (Instant::now(), cpu());
    let results = Run::new(setup, 1).into_diagnostic()?.finish();
    Ok((begin.elapsed().as_secs_f64() * 1e3, cpu() - cpu_before, results))
}

/// The greatest resident set of this process since it was started, in 10^6 bytes. Linux says so in
/// `VmHWM` of /proc/self/status (proc(5)), in units of 1024 bytes.
fn peak_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some((kib * 1024.0 / 1e5).round() / 10.0)
}

/// The cost of more flows: the time of a packet, and the memory of each further flow.
fn compare(few: &Figure, many: &Figure, out: &mut dyn Write) -> io::Result<()> {
    let times = many.nanos_per_packet() / few.nanos_per_packet();
    writeln!(out, "a packet among 10000 flows costs {times:.2} times one among 10")?;
    if let (Some(least), Some(most)) = (few.peak_mb, many.peak_mb) {
        let flows = many.flows.unwrap_or(0).saturating_sub(few.flows.unwrap_or(0)).max(1);
        let kib = (most - least) * 1e6 / 1024.0 / f64::from(flows);
        writeln!(out, "each flow beyond 10 takes {kib:.2} KiB")?;
    }
    Ok(())
}

fn print(figure: &Figure, json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        serde_json::to_writer(&mut *out, figure)?;
        writeln!(out)?;
    } else {
        let Figure { scenario, flows, simulated_s, wall_ms, cpu_ms, .. } = figure;
        let Figure { bottleneck_packets, events, hash, peak_mb, .. } = figure;
        let first = flows.map_or(scenario.clone(), |flows| flows.to_string());
        let rate = *bottleneck_packets as f64 / wall_ms / 1e3;
        let cost = figure.nanos_per_packet();
        let peak = peak_mb.map_or("?".into(), |peak| format!("{peak:.1}"));
        writeln!(
            out,
            "{first:<8}  {simulated_s:>7} s  {wall_ms:>9.2}  {cpu_ms:>9.2}  \
             {bottleneck_packets:>10}  {events:>10}  {rate:>10.2}  {cost:>9.1}  {peak:>7}  {hash}"
        )?;
    }
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Traces stay what they are. `hashes.txt` is a recording: where a change means to make other
    /// traces, `SIMNEL_UPDATE=1` writes it anew, and the commit says why.
    #[test]
    fn traces_are_those_that_were_recorded() {
        let line = |(name, _): &(&str, &str)| {
            let figure = measure(name, 1).unwrap_or_else(|error| panic!("{name}: {error}"));
            format!("{name} {}\n", figure.hash)
        };
        let hashes: String = SCENARIOS.iter().map(line).collect();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/commands/lab/bench/sim/hashes.txt");
        if std::env::var_os("SIMNEL_UPDATE").is_some() {
            std::fs::write(path, &hashes).expect("hashes.txt can be written");
        } else {
            let recorded = std::fs::read_to_string(path).expect("hashes.txt");
            assert_eq!(hashes, recorded, "SIMNEL_UPDATE=1 cargo test -p simnel traces_are_those");
        }
    }
}
