//! `simnel sweep`: a scenario over many settings, resumable and divisible.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::miette;
use simnel_lab::experiments::sweep::{self, Axis, PointResult, Sweep, SweepError};
use simnel_lab::files;
use simnel_lab::report::page;

use super::interrupt::{Interrupt, INTERRUPTED};
use super::output_failed;
use super::progress::Progress;

/// Simulate a scenario over many settings.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel sweep scenarios/rrul.toml --over 'rate=1mbit..100mbit,rtt=10ms..500ms:4'\n  \
    simnel sweep rrul.toml --over 'qdisc=fq_codel|cake bandwidth {rate}' --repetitions 20\n  \
    simnel sweep rrul.toml --over rtt=10ms..1s:50 --shard 3/8 -o part3.jsonl\n  \
    simnel sweep --merge part*.jsonl -o all.jsonl\n\n\
A killed sweep goes on where it was: the same command again. Ranges are geometric, of 5 points\n\
unless `:N` says otherwise. A key is a path in the file: line.rtt, traffic.bulk.count.")]
pub struct Args {
    /// The scenario.
    #[arg(required_unless_present = "merge")]
    file: Option<PathBuf>,
    /// Axes: KEY=VALUE|VALUE or KEY=FROM..TO:POINTS, separated by commas; may be repeated.
    #[arg(long, value_name = "AXES")]
    over: Vec<String>,
    /// Runs at each setting, with seeds from 1 on.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// Journal of the runs [default: the scenario's name with .sweep.jsonl].
    #[arg(short, long, value_name = "FILE", alias = "out")]
    output: Option<PathBuf>,
    /// Do only the I-th of N parts.
    #[arg(long, value_name = "I/N", value_parser = shard)]
    shard: Option<(usize, usize)>,
    /// Put the journals of shards together instead.
    #[arg(long, value_name = "FILE", num_args = 1..,
        conflicts_with_all = ["file", "over", "shard"])]
    merge: Vec<PathBuf>,
    /// Measures to print: those whose name contains this; may be repeated.
    #[arg(long, value_name = "PART")]
    show: Vec<String>,
    /// Also draw the measures that are printed: over the axis with the most quantities, on a page.
    #[arg(long, value_name = "FILE", alias = "page")]
    report: Option<PathBuf>,
    /// One JSON object a setting and line, with everything that was measured.
    #[arg(long)]
    json: bool,
}

fn shard(text: &str) -> Result<(usize, usize), String> {
    let parts = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match parts {
        Some((i, n)) if 1 <= i && i <= n => Ok((i, n)),
        _ => Err("expected I/N with I from 1 to N, such as 3/8".into()),
    }
}

fn report(error: SweepError) -> miette::Report {
    miette!(help = error.fix.clone(), "{}", error.what)
}

/// Sweeps, or merges.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let Some(file) = &args.file else { return merge(args, out) };
    let text = files::read_text(file, files::WHOLE)
        .map_err(|error| miette!(help = "a scenario file", "{}: {error}", file.display()))?;
    let mut axes = Vec::new();
    for over in &args.over {
        axes.extend(Axis::parse_all(over).map_err(report)?);
    }
    let name = file.file_stem().map_or("scenario".into(), |stem| stem.to_string_lossy());
    let directory = file.parent().unwrap_or(Path::new(""));
    let sweep = Sweep::new(&name, &text, directory, axes, args.repetitions).map_err(report)?;
    let (i, n) = args.shard.unwrap_or((1, 1));
    let journal = args.output.clone().unwrap_or_else(|| match args.shard {
        None => PathBuf::from(format!("{name}.sweep.jsonl")),
        Some(_) => PathBuf::from(format!("{name}.sweep.{i}-of-{n}.jsonl")),
    });
    let interrupt = Interrupt::new()?;
    let progress = Progress::new((i - 1..sweep.runs()).step_by(n).len() as u64);
    let done = sweep.run(&journal, (i - 1, n), interrupt.flag(), &|| progress.advance(1));
    progress.done();
    done.map_err(report)?;
    print(args, &journal, out)?;
    if interrupt.has_come() {
        crate::say!("stopped; the same command goes on from here");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

fn merge(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let Some(target) = &args.output else {
        return Err(super::misuse("--merge needs --output FILE, where the merged journal goes"));
    };
    let missing = sweep::merge(&args.merge, target).map_err(report)?;
    print(args, target, out)?;
    if missing > 0 {
        crate::say!("{missing} runs are still missing");
    }
    Ok(ExitCode::SUCCESS)
}

fn print(args: &Args, journal: &Path, out: &mut dyn Write) -> miette::Result<()> {
    let results = sweep::results(journal).map_err(report)?;
    let names = names(&args.show, &results);
    if let Some(path) = &args.report {
        draw(path, &results, &names)?;
    }
    if args.json {
        for point in &results {
            json_line(point, out).map_err(output_failed)?;
        }
        return Ok(());
    }
    table(&results, &names, out).map_err(output_failed)?;
    let (done, all) = sweep::progress(journal).map_err(report)?;
    let state = if done < all { " (partial)" } else { "" };
    writeln!(out, "journal: {}, {done} of {all} runs{state}", journal.display())
        .map_err(output_failed)
}

fn json_line(point: &PointResult, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, point)?;
    writeln!(out)
}

/// Measures that are printed unless others are asked for.
const USUAL: [&str; 3] = [".goodput_mbps", ".utilisation", "added_ms.mean"];

/// The measures to print: those whose names contain a part of `show`, or the usual ones.
pub fn names<'a>(show: &[String], results: &'a [PointResult]) -> Vec<&'a String> {
    let shown = |name: &&String| match show.is_empty() {
        true => USUAL.iter().any(|part| name.ends_with(part)),
        false => show.iter().any(|part| name.contains(part.as_str())),
    };
    // What is nothing everywhere, such as the payload of probes, is no result.
    let something = |name: &&String| {
        let value = |point: &PointResult| point.values.get(*name).map_or(0.0, |one| one.mean);
        !show.is_empty() || results.iter().any(|point| value(point) != 0.0)
    };
    let first = results.first().into_iter();
    first.flat_map(|point| point.values.keys()).filter(shown).filter(something).collect()
}

fn draw(path: &Path, results: &[PointResult], names: &[&String]) -> miette::Result<()> {
    let figures = sweep::figures(results, names);
    if figures.is_empty() {
        let help = "an axis of numbers, rates, times or sizes, and a measure that `--show` names";
        return Err(miette!(help = help, "nothing to draw on {}", path.display()));
    }
    let body = page::figures(&figures, false);
    files::put(path, page::frame("Sweep", &body).as_bytes()).map_err(|error| {
        let help = "say where it may go with --report FILE";
        miette!(help = help, "cannot write {}: {error}", path.display())
    })
}

fn table(results: &[PointResult], names: &[&String], out: &mut dyn Write) -> io::Result<()> {
    if results.is_empty() {
        return writeln!(out, "no runs yet");
    }
    let setting = |point: &BTreeMap<String, String>| {
        point.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(" ")
    };
    for point in results {
        writeln!(out, "{}", setting(&point.point))?;
        for name in names {
            let Some(value) = point.values.get(*name) else { continue };
            writeln!(out, "  {name:<48} {value}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_numbered_from_one() {
        assert_eq!(shard("3/8"), Ok((3, 8)));
        assert!(shard("0/8").is_err() && shard("9/8").is_err() && shard("3").is_err());
    }
}
