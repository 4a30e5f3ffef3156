//! `simnel sweep`: a scenario over many settings, resumable and divisible.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::miette;
use simnel_lab::experiments::scenario;
use simnel_lab::experiments::sweep::{self, Axis, PointResult, Sweep, SweepError};
use simnel_lab::files;
use simnel_lab::report::sweep as swept;

use super::interrupt::{Interrupt, INTERRUPTED};
use super::place::Page;
use super::progress::Progress;
use super::{misuse_with_help, output_failed, place};
use crate::terminal;

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
    /// The scenario; `-` is standard input.
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
    /// The page: a path that ends in .html, or a folder for JOURNAL.html. The runs stand beside it
    /// as CSV. [default: beside the journal; no page with --json or --shard].
    #[arg(long, value_name = "PATH", alias = "page")]
    report: Option<PathBuf>,
    /// One JSON object a setting and line, with everything that was measured.
    #[arg(short, long)]
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

fn refused(error: SweepError) -> miette::Report {
    misuse_with_help(error.what, error.fix)
}

/// Sweeps, or merges.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let Some(file) = &args.file else { return merge(args, out) };
    let text = files::read_text(file, files::WHOLE)
        .map_err(|error| miette!(help = "a scenario file", "{}: {error}", file.display()))?;
    let mut axes = Vec::new();
    for over in &args.over {
        axes.extend(Axis::parse_all(over).map_err(refused)?);
    }
    let name = scenario::name(file);
    let directory = file.parent().unwrap_or(Path::new(""));
    let sweep = Sweep::new(&name, &text, directory, axes, args.repetitions).map_err(refused)?;
    let (i, n) = args.shard.unwrap_or((1, 1));
    let journal = args.output.clone().unwrap_or_else(|| match args.shard {
        None => PathBuf::from(format!("{name}.sweep.jsonl")),
        Some(_) => PathBuf::from(format!("{name}.sweep.{i}-of-{n}.jsonl")),
    });
    let page = page(args, &journal)?;
    let interrupt = Interrupt::new()?;
    let progress = Progress::new((i - 1..sweep.runs()).step_by(n).len() as u64);
    let done = sweep.run(&journal, (i - 1, n), interrupt.flag(), &|| progress.advance(1));
    progress.done();
    done.map_err(report)?;
    print(args, &journal, page, out)?;
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
    let page = page(args, target)?;
    let missing = sweep::merge(&args.merge, target).map_err(report)?;
    print(args, target, page, out)?;
    if missing > 0 {
        crate::say!("{missing} runs are still missing");
    }
    Ok(ExitCode::SUCCESS)
}

/// The page's path; runs go beside it. Of a part of a sweep on request.
fn page(args: &Args, journal: &Path) -> miette::Result<Option<Page>> {
    let usual = !args.json && args.shard.is_none();
    let (beside, of) = (journal.with_extension("html"), [journal.to_path_buf()]);
    let page = place::page("sweep", args.report.as_deref(), beside, usual, &of)?;
    if let Some(Page { path, .. }) = &page {
        for written in [path.clone(), path.with_extension("csv"), path.with_extension("parquet")] {
            let read = args.file.iter().chain(&args.merge).map(PathBuf::as_path);
            place::apart(&written, read.chain([journal]))?;
        }
    }
    Ok(page)
}

/// Prints tables; writes the page and the runs.
fn print(
    args: &Args,
    journal: &Path,
    page: Option<Page>,
    out: &mut dyn Write,
) -> miette::Result<()> {
    let runs = sweep::Journal::read(journal).map_err(report)?;
    let results = runs.results();
    let names = names(&args.show, &results);
    if names.is_empty() && !args.show.is_empty() && !results.is_empty() {
        let help = "a part of a name such as groups.ping.application.added_ms.p99; \
                    the CSV beside the page has them all as headings";
        let parts = args.show.join("`, `");
        return Err(misuse_with_help(format!("no measure's name contains `{parts}`"), help));
    }
    let (done, all) = runs.progress();
    let page = page.filter(|_| args.report.is_some() || !results.is_empty());
    let mut written = Vec::new();
    if let Some(page) = page {
        let (path, table) = (&page.path, runs.table());
        let csv = path.with_extension("csv");
        place::store(&csv, table.csv().as_bytes())?;
        written.push(("runs", csv));
        #[cfg(feature = "parquet")]
        {
            let parquet = path.with_extension("parquet");
            let bytes = table.parquet().map_err(|error| miette!("{}: {error}", path.display()))?;
            place::store(&parquet, &bytes)?;
            written.push(("runs", parquet));
        }
        let title = path.file_stem().map_or("sweep".into(), |stem| stem.to_string_lossy());
        page.store(swept::page(&title, &results, &names, done < all))?;
        written.push(("page", page.path));
    }
    if args.json {
        return results.iter().try_for_each(|point| json_line(point, out)).map_err(output_failed);
    }
    let few = if args.show.is_empty() { &names[..names.len().min(FEW)] } else { &names };
    let text = match results.is_empty() {
        true => "no runs yet\n".to_string(),
        false => swept::text(&results, few, terminal::width()),
    };
    let mut end = || -> io::Result<()> {
        write!(out, "{text}")?;
        if few.len() < names.len() {
            let more = names.len() - few.len();
            let place = if written.is_empty() { "" } else { " on the page" };
            writeln!(out, "and {more} measures more{place}; --show PART prints others")?;
        }
        for (what, path) in &written {
            writeln!(out, "{what}: {}", path.display())?;
        }
        let state = if done < all { " (partial)" } else { "" };
        writeln!(out, "journal: {}, {done} of {all} runs{state}", journal.display())
    };
    end().map_err(output_failed)
}

fn json_line(point: &PointResult, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, point)?;
    writeln!(out)
}

/// Measures that are shown unless others are asked for, the first ones first.
const USUAL: [&str; 4] = ["added_ms.p99", "added_ms.mean", ".utilisation", ".goodput_mbps"];
/// Most of them that are printed.
const FEW: usize = 6;

/// The measures to show: those whose names contain a part of `show`, or the usual ones.
pub fn names<'a>(show: &[String], results: &'a [PointResult]) -> Vec<&'a String> {
    let rank = |name: &&String| match show.is_empty() {
        true => USUAL.iter().position(|part| name.ends_with(part)),
        false => show.iter().any(|part| name.contains(part.as_str())).then_some(0),
    };
    // What is nothing everywhere, such as the payload of probes, is no result.
    let something = |name: &&String| {
        let value = |point: &PointResult| point.values.get(*name).map_or(0.0, |one| one.mean);
        !show.is_empty() || results.iter().any(|point| value(point) != 0.0)
    };
    // A setting may lack what others measured, such as delays where nothing arrived.
    let all: BTreeSet<&String> = results.iter().flat_map(|point| point.values.keys()).collect();
    let mut names: Vec<&String> =
        all.into_iter().filter(|name| rank(name).is_some()).filter(something).collect();
    names.sort_by_key(rank);
    names
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
