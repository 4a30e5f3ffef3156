//! `simnel replay FILE`: a trace through any discipline; each packet's fate, or a table.
//!
//! A trace is read to its end before the first event is written: what is damaged makes an error and
//! no half result. Files that are written appear when they are complete.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::miette;
use simnel_core::qdisc::{self, Config, Device};
use simnel_core::tc::slip;
use simnel_core::Rate;
use simnel_lab::conformance::golden::{self, Link, Recording};
use simnel_lab::conformance::replay::{
    check, classifier, drive, open, tally_of, write_binary, Events, Failure, Sink, Summary, Tally,
    Trace, TraceError,
};
use simnel_lab::files::{is_stdin, replace};

use super::progress::Progress;
use super::{misuse, misuse_with_help, output_failed, place};

mod table;

/// Send a trace through disciplines: what would have happened.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel replay evening.pcap --qdisc fq_codel --qdisc 'cake bandwidth 20mbit' --summary\n  \
    simnel replay evening.pcap.gz --qdisc pie --rate 20mbit --json\n  \
    simnel replay evening.pcap --to-binary evening.bin\n  \
    simnel replay X.csv.gz --golden X.json\n\n\
A trace is arrivals as CSV, a capture (pcap, pcapng), or what --to-binary wrote; each also\n\
compressed with gzip. One event a line: time in ns, what (deq, drop, drop-enq, ackfilt), and the\n\
packet's number in the trace, from 0. Of a recording, diff compares the packets' events; lines\n\
about the kernel's inside (#, timer, state, enq-ret) are not printed:\n  \
    diff <(simnel replay X.csv.gz --golden X.json) \\\n       \
    <(zcat X.out.gz | grep -vE '^#| (timer|state|enq-ret) ')")]
pub struct Args {
    /// The trace; - is standard input.
    file: PathBuf,
    /// Discipline in tc's words; may be repeated.
    #[arg(long, value_name = "WORDS")]
    qdisc: Vec<String>,
    /// Rate of the line behind disciplines that do not shape themselves. Without any rate the line
    /// takes every packet at once, and no queue builds. [default: the rate of the first that does]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<Rate>,
    /// Replay a recording of Linux with the discipline, the device, the hashes and the random
    /// numbers of this file; FILE is its arrivals.
    #[arg(long, value_name = "X.json", conflicts_with_all = ["qdisc", "rate", "seed"])]
    golden: Option<PathBuf>,
    /// A table instead of the events.
    #[arg(long)]
    summary: bool,
    /// The table as one JSON object a discipline.
    #[arg(short, long)]
    json: bool,
    /// Flows and hosts that the summary names.
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
    /// Seed of hashes and random decisions.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write events to a file.
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["summary", "json"])]
    output: Option<PathBuf>,
    /// Write the trace in the binary format, which is read fastest.
    #[arg(long, value_name = "FILE",
        conflicts_with_all = ["qdisc", "golden", "summary", "json", "output"])]
    to_binary: Option<PathBuf>,
}

fn rate(word: &str) -> Result<Rate, String> {
    match slip::rate(word)? {
        rate if rate.is_unlimited() => Err("a rate above zero is needed".into()),
        rate => Ok(rate),
    }
}

/// Replays the trace.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    for path in args.output.iter().chain(&args.to_binary) {
        let recorded = args.golden.iter().flat_map(|json| [Some(json.clone()), outcomes(json)]);
        let read: Vec<PathBuf> = recorded.flatten().chain([args.file.clone()]).collect();
        place::apart(path, read.iter().map(PathBuf::as_path))?;
    }
    if let Some(path) = &args.to_binary {
        return to_binary(args, path, out);
    }
    if let Some(json) = &args.golden {
        return recorded(args, json, out);
    }
    if args.qdisc.is_empty() {
        return Err(misuse_with_help(
            "no discipline",
            "name one or more with --qdisc, or a recording with --golden",
        ));
    }
    let runs = runs(args)?;
    if runs.iter().all(|run| matches!(run.link, Link::InfinitelyFast)) && args.rate.is_none() {
        let shaped = runs.iter().any(|run| run.shaped);
        if !shaped {
            crate::say!("no --rate: the line takes every packet at once, and no queue builds");
        }
    }
    let several = runs.len() > 1;
    // What cannot be read twice is not read ahead.
    let input = is_stdin(&args.file);
    let once = input || args.file.exists() && !args.file.is_file();
    if several && once {
        return Err(misuse_with_help(
            format!("{} can be read only once", args.file.display()),
            "give one --qdisc, or write the trace to a file first",
        ));
    }
    if args.summary || args.json {
        let mut summaries = Vec::new();
        for run in &runs {
            let tally = replay(args, run, Tally::new())?;
            summaries.push(tally.summary(&run.words, bits(run.link), args.top));
        }
        return print(args, &summaries, out);
    }

    if !once {
        let mut trace = trace(args)?;
        let progress = Progress::new(trace.size);
        let read = trace.read.clone();
        let checked = check(trace.packets.as_mut(), &mut || progress.reach(read.get()));
        progress.done();
        checked.map_err(|error| trace_error(&error))?;
    }
    with_output(args, out, &mut |out| {
        for run in &runs {
            if several {
                writeln!(out, "# qdisc {}", run.words).map_err(Failure::from).map_err(failure)?;
            }
            replay(args, run, Events::new(out, matches!(run.config, Config::Cake(_))))?;
        }
        Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

/// One discipline and what takes its packets.
struct Run {
    words: String,
    config: Config,
    link: Link,
    shaped: bool,
}

fn runs(args: &Args) -> miette::Result<Vec<Run>> {
    let mut runs = Vec::new();
    for words in &args.qdisc {
        let config = qdisc::parse_strictly(words).map_err(|error| misuse(error.to_string()))?;
        qdisc::build(&config, &Device::default())
            .map_err(|error| misuse(format!("`{words}`: {error}")))?;
        let shaped = config.rate().is_some();
        runs.push(Run { words: words.clone(), config, link: Link::InfinitelyFast, shaped });
    }
    let rate = args.rate.or_else(|| runs.iter().find_map(|run| run.config.rate()));
    for run in runs.iter_mut().filter(|run| !run.shaped) {
        if let Some(rate) = rate {
            run.link = Link::BitsPerSecond(rate.bits());
        }
    }
    Ok(runs)
}

fn bits(link: Link) -> Option<u64> {
    match link {
        Link::InfinitelyFast => None,
        Link::BitsPerSecond(rate) => Some(rate),
    }
}

fn trace(args: &Args) -> miette::Result<Trace> {
    open(&args.file, classifier(args.seed)).map_err(|error| trace_error(&error))
}

fn replay<S: Sink>(args: &Args, run: &Run, sink: S) -> miette::Result<S> {
    let Trace { mut packets, size, read } = trace(args)?;
    let progress = Progress::new(size);
    let make = |now| {
        let device = Device { seed: args.seed, now, ..Device::default() };
        qdisc::build(&run.config, &device).map_err(|error| error.to_string())
    };
    let step = &mut || progress.reach(read.get());
    let sink = drive(packets.as_mut(), make, run.link, sink, step);
    progress.done();
    let sink = sink.map_err(failure)?;
    if packets.out_of_order() > 0 {
        let count = packets.out_of_order();
        crate::say!("{count} packets were out of order: taken as arriving with the one before");
    }
    if packets.cut_short() > 0 {
        let count = packets.cut_short();
        crate::say!(
            "{count} packets were captured without their ports: their flows are not told apart; \
             capture more of each, `tcpdump -s 128`"
        );
    }
    Ok(sink)
}

/// Hands `write` where events go: standard output, or a file that appears when it is complete.
fn with_output(
    args: &Args,
    out: &mut dyn Write,
    write: &mut dyn FnMut(&mut dyn Write) -> miette::Result<()>,
) -> miette::Result<()> {
    let Some(path) = &args.output else { return write(out) };
    let mut complaint = None;
    let written = replace(path, |file| {
        write(file).map_err(|error| {
            complaint = Some(error);
            Failure::Output(io::Error::other("given up"))
        })
    });
    match (complaint, written) {
        (Some(complaint), _) => Err(complaint),
        (None, written) => written.map_err(|error| miette!("{}: {error}", path.display())),
    }
}

fn to_binary(args: &Args, path: &Path, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let Trace { mut packets, size, read } = trace(args)?;
    let progress = Progress::new(size);
    let written = write_binary(packets.as_mut(), path, &mut || progress.reach(read.get()));
    progress.done();
    let count = written.map_err(|error| match error {
        Failure::Output(error) => miette!("cannot write {}: {error}", path.display()),
        other => failure(other),
    })?;
    writeln!(out, "{count} packets to {}", path.display()).map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}

/// The file beside the recording `json` that has the kernel's own decisions.
fn outcomes(json: &Path) -> Option<PathBuf> {
    let mut beside = ["out.gz", "out"].map(|end| json.with_extension(end)).into_iter();
    beside.find(|path| path.is_file())
}

/// `--golden`: as the recording was made.
fn recorded(args: &Args, json: &Path, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let recording = Recording::read_files(json, &args.file, outcomes(json).as_deref())
        .map_err(|error| miette!("{error}"))?;
    let device = golden::linux_device(&recording).map_err(|error| miette!("{error}"))?;
    let words = recording.words.join(" ");
    let mut qdisc = golden::build(&recording.words, &device)
        .map_err(|reason| miette!("`{words}` cannot be built: {reason}"))?;
    let events = golden::replay(&recording, qdisc.as_mut(), &device)
        .map_err(|error| miette!("{error}"))?
        .events;
    if args.summary || args.json {
        let tally = tally_of(&recording, &events).map_err(|problem| miette!("{problem}"))?;
        let summary = tally.summary(&words, bits(recording.link), args.top);
        return print(args, &[summary], out);
    }
    let full = matches!(qdisc.config(), Config::Cake(_));
    with_output(args, out, &mut |out| {
        let mut lines = Events::new(out, full);
        for event in &events {
            lines.write(*event);
            lines.flush(false).map_err(output_failed)?;
        }
        lines.flush(true).map_err(output_failed)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn print(args: &Args, summaries: &[Summary], out: &mut dyn Write) -> miette::Result<ExitCode> {
    if args.json {
        for summary in summaries {
            serde_json::to_writer(&mut *out, summary)
                .map_err(io::Error::from)
                .and_then(|()| writeln!(out))
                .map_err(output_failed)?;
        }
    } else {
        table::write(summaries, out).map_err(output_failed)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn trace_error(error: &TraceError) -> miette::Report {
    match error.help {
        Some(help) => miette!(help = help, "{error}"),
        None => miette!("{error}"),
    }
}

fn failure(error: Failure) -> miette::Report {
    match error {
        Failure::Trace(error) => trace_error(&error),
        Failure::Output(error) => output_failed(error),
        other => miette!("{other}"),
    }
}
