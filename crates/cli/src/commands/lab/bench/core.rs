//! `simnel bench core`: nanoseconds for an enqueue and a dequeue, discipline by discipline.
//!
//! The work is that of the table of Linux's own costs which comes with the recordings. That is
//! 1514-byte UDP packets on a virtual clock, no drops, one pinned core. Each figure is the median
//! of several runs, each on a new discipline. It carries a hash of what came out in which order:
//! all runs must agree on it, and nothing can be optimised away.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use miette::miette;
use rustix::thread::{sched_getaffinity, sched_setaffinity, CpuSet};
use serde::Serialize;
use simnel_core::qdisc::Device;
use simnel_lab::conformance::golden::build;

use super::super::{misuse_with_help, output_failed};
use super::load::{Frames, Input, Load, Result as LoadResult, Workload, STANDING};

/// Disciplines that are timed unless `--qdisc` says otherwise.
const DISCIPLINES: [&str; 21] = [
    "pfifo",
    "codel",
    "fq_codel limit 20000",
    "fq_codel limit 20000 savings 15kb",
    "fq_pie limit 20000",
    "sfq limit 20000 flows 2000 divisor 65536",
    "drr srchost buffer 20000",
    "drr class 1:1",
    "cake unlimited besteffort flows",
    "cake unlimited besteffort flows savings 15kb",
    "cake unlimited diffserv4 triple-isolate",
    "cake bandwidth 200gbit diffserv4 triple-isolate",
    "cake bandwidth 200gbit diffserv4 triple-isolate ack-filter",
    "pie limit 20000",
    "red limit 400mb min 30mb max 90mb avpkt 1000 probability 1",
    "blue limit 20000",
    "cobalt limit 20000",
    "sfb limit 20000 target 20000 max 20000",
    "tbf rate 200gbit burst 1mb limit 400mb",
    "htb rate 200gbit burst 1mb pfifo limit 20000",
    "dualpi2 limit 20000",
];

/// Time an enqueue and a dequeue of the disciplines.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel bench core\n  \
    simnel bench core --qdisc 'cake bandwidth 200gbit diffserv4' --flows 100 --json\n\n\
Build with --release; figures of one machine compare with figures of the same machine only.")]
pub struct Args {
    /// A discipline in tc's words; may be repeated [default: each one].
    #[arg(long, value_name = "WORDS")]
    qdisc: Vec<String>,
    /// Numbers of flows.
    #[arg(long, value_delimiter = ',', default_value = "1,100,1000",
        value_parser = clap::value_parser!(u16).range(1..))]
    flows: Vec<u16>,
    /// Form in which each packet comes
    #[arg(long, value_delimiter = ',', default_value = "descriptor,headers")]
    input: Vec<Input>,
    /// Standing queue
    #[arg(long, value_delimiter = ',', default_value = "empty,backlog")]
    load: Vec<Load>,
    /// Pairs of enqueue and dequeue in a run.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pairs: u64,
    /// Runs, of which the median counts.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..))]
    runs: u8,
    /// One JSON object a line.
    #[arg(short, long)]
    json: bool,
}

#[derive(Serialize)]
struct Figure<'a> {
    bench: &'static str,
    qdisc: &'a str,
    flows: u16,
    input: Input,
    load: Load,
    ns_per_pair: f64,
    pairs: u64,
    runs: u8,
    drops: u64,
    hash: String,
}

/// Times everything that was asked for, and writes each figure as it comes.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    if let Err(error) = pin() {
        crate::say!("not pinned to one core ({error}): expect more noise");
    }
    let disciplines: Vec<&str> = if args.qdisc.is_empty() {
        DISCIPLINES.to_vec()
    } else {
        args.qdisc.iter().map(String::as_str).collect()
    };
    if !args.json {
        writeln!(out, "ns per pair  flows  input       load     hash              discipline")
            .map_err(output_failed)?;
    }
    for qdisc in disciplines {
        for load in &args.load {
            for input in &args.input {
                for flows in &args.flows {
                    let figure = measure(args, qdisc, *flows, *input, *load)?;
                    print(&figure, args.json, out).map_err(output_failed)?;
                }
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn measure<'a>(
    args: &Args,
    qdisc: &'a str,
    flows: u16,
    input: Input,
    load: Load,
) -> miette::Result<Figure<'a>> {
    let words: Vec<String> = qdisc.split_whitespace().map(String::from).collect();
    // FIFOs take their limit from the device; the standing packets must fit.
    let device = Device { tx_queue_len: 1000 + u32::from(flows) * STANDING, ..Device::default() };
    // Classful disciplines drop what names no class; others should not have to look.
    let class = u32::from(qdisc.contains(" class "));
    let frames = Frames::new(flows, class);
    let mut times = Vec::new();
    let mut result: Option<LoadResult> = None;
    for _ in 0..args.runs {
        let mut discipline = build(&words, &device)
            .map_err(|reason| misuse_with_help(reason, "see `man tc-cake` for the words"))?;
        let mut workload = Workload::new(discipline.as_mut(), &frames, input, load);
        workload.run(args.pairs.min(10_000));
        let begin = Instant::now();
        workload.run(args.pairs);
        times.push(begin.elapsed().as_nanos() as f64 / args.pairs as f64);
        let now = workload.result();
        if result.is_some_and(|result| result != now) {
            return Err(miette!(
                "`{qdisc}` is not deterministic: two runs gave {result:x?} and {now:x?}"
            ));
        }
        result = Some(now);
    }
    times.sort_by(f64::total_cmp);
    let LoadResult { hash, drops } = result.unwrap_or_default();
    Ok(Figure {
        bench: "core",
        qdisc,
        flows,
        input,
        load,
        ns_per_pair: (times[times.len() / 2] * 10.0).round() / 10.0,
        pairs: args.pairs,
        runs: args.runs,
        drops,
        hash: format!("{hash:016x}"),
    })
}

fn print(figure: &Figure, json: bool, out: &mut dyn Write) -> io::Result<()> {
    if json {
        serde_json::to_writer(&mut *out, figure)?;
        writeln!(out)?;
    } else {
        let Figure { qdisc, flows, input, load, ns_per_pair, drops, hash, .. } = figure;
        let (input, load) = (input.name(), load.name());
        write!(out, "{ns_per_pair:>11.1}  {flows:>5}  {input:<10}  {load:<7}  {hash}  {qdisc}")?;
        writeln!(out, "{}", if *drops > 0 { format!("  ({drops} DROPS)") } else { String::new() })?;
    }
    out.flush()
}

/// Keeps this thread on the first core that it may use: caches stay warm.
fn pin() -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let first = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu));
    let mut one = CpuSet::new();
    one.set(first.unwrap_or(0));
    Ok(sched_setaffinity(None, &one)?)
}
