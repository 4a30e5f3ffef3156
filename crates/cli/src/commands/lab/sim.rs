//! `simnel sim FILE`: run a scenario; a table, and a page beside it.
//!
//! Seeds and disciplines run on all cores. On a terminal, what takes longer than a second shows how
//! far it is. Ctrl-C stops the runs, and the report of what there is says that it is partial.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use miette::{miette, IntoDiagnostic, LabeledSpan, NamedSource};
use simnel_core::printable::Printable;
use simnel_lab::experiments::scenario::{self, Plan, Watch};
use simnel_lab::files::is_stdin;
use simnel_lab::flent::slug;
use simnel_lab::report::runs;
use simnel_scenario::{ScenarioError, Summary, STEPS};

use super::interrupt::{Interrupt, INTERRUPTED};
use super::progress::Progress;
use super::{misuse_with_help, output_failed, place};
use crate::terminal::{self, printable_at};

/// Simulate a home line: a table, and a report beside the scenario.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel sim scenarios/evening.toml\n  \
    simnel sim scenarios/rrul.toml --qdisc fq_codel --qdisc cake --seed 1..20 --json\n\n\
`{rate}` in a discipline's words stands for the line's rate. A discipline that shapes itself\n\
runs without a line behind it, unless the line has less; every other one runs on the line of the\n\
scenario.")]
pub struct Args {
    /// The scenario; `-` is standard input.
    file: PathBuf,
    /// Discipline for both directions instead of the scenario's own; may be repeated.
    #[arg(long, value_name = "WORDS")]
    qdisc: Vec<String>,
    /// Seed, or first and last seed.
    #[arg(long, value_name = "N|N..M", default_value = "1", value_parser = seeds)]
    seed: Seeds,
    /// One JSON object a run and line instead of the table; no page unless one is asked for.
    #[arg(short, long)]
    json: bool,
    /// The page: a path that ends in .html, or a folder for SCENARIO.html. Words of --qdisc are in
    /// its name. [default: beside the scenario; no page with --json].
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
    /// Write every frame of the first run to a capture that Wireshark opens.
    #[arg(long, value_name = "FILE")]
    pcapng: Option<PathBuf>,
}

/// Seeds, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seeds(u64, u64);

fn seeds(word: &str) -> Result<Seeds, String> {
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("`{word}` is no number"));
    let (first, last) = match word.split_once("..") {
        Some((first, last)) => (number(first)?, number(last.trim_start_matches('='))?),
        None => (number(word)?, number(word)?),
    };
    if first > last || last - first >= 1_000_000 {
        return Err("expected N, or N..M with N not above M, a million seeds at most".into());
    }
    Ok(Seeds(first, last))
}

/// Runs the scenario.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (scenario, text) = scenario::read(&args.file)
        .map_err(|(error, text)| explain(error, &args.file.display().to_string(), text))?;
    let plan = Plan {
        qdiscs: args.qdisc.clone(),
        seeds: (args.seed.0..=args.seed.1).collect(),
        capture: args.pcapng.clone(),
    };
    // A pipe or a device has nothing beside it.
    let is_file = !is_stdin(&args.file) && args.file.is_file() && !args.file.starts_with("/dev");
    let usual = args.file.with_file_name(usual(args));
    let of = std::slice::from_ref(&args.file);
    let page = place::page("sim", args.report.as_deref(), usual, !args.json && is_file, of)?;
    for path in page.iter().map(|page| &page.path).chain(&args.pcapng) {
        place::apart(path, [args.file.as_path()])?;
    }
    let interrupt = Interrupt::new()?;
    let progress = Progress::new(plan.runs() as u64 * STEPS);
    let watch = Watch { stop: interrupt.flag(), step: &|| progress.advance(1) };
    let finished = scenario::run(&scenario, &plan, &watch);
    progress.done();
    let finished = finished.map_err(|error| match args.qdisc.is_empty() {
        true => explain(error, "", None),
        false => refused(error),
    })?;

    let lines = finished.iter().flat_map(|run| run.setup.lines.iter().zip(&run.qdisc));
    let vain = lines.filter_map(|(line, words)| {
        let reason = line.qdisc.passes_nothing(&line.device)?;
        Some(format!("`{words}` drops packets whatever comes: {reason}"))
    });
    vain.collect::<BTreeSet<String>>().iter().for_each(|said| crate::say!("{said}"));
    let summaries: Vec<Summary> = finished.iter().map(|run| Summary::new(&scenario, run)).collect();
    if args.json {
        for summary in &summaries {
            json_line(summary, out).map_err(output_failed)?;
        }
    } else {
        write!(out, "{}", runs::table(&scenario, &summaries, terminal::width()))
            .map_err(output_failed)?;
    }
    if let Some(page) = page {
        let interval = finished.first().map_or(0.0, |run| run.results.interval.0 as f64 / 1e9);
        let text = runs::page(&scenario, &text, interval, &summaries).into_diagnostic()?;
        page.store(text)?;
        if !args.json {
            writeln!(out, "\npage: {}", page.path.display()).map_err(output_failed)?;
        }
    }
    let interrupted = interrupt.has_come();
    if interrupted {
        crate::say!("stopped: {} of {} runs, and these in part", summaries.len(), plan.runs());
    }
    Ok(if interrupted { ExitCode::from(INTERRUPTED) } else { ExitCode::SUCCESS })
}

/// The page's name: the scenario with other disciplines has other pages.
fn usual(args: &Args) -> PathBuf {
    let name = scenario::name(&args.file);
    match args.qdisc.is_empty() {
        true => place::named(&name),
        false => place::named(&format!("{name}-{}", slug(&place::words(&args.qdisc)))),
    }
}

fn json_line(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer(&mut *out, summary)?;
    writeln!(out)
}

/// A scenario with something wrong in it, and the place in its text.
#[derive(Debug, thiserror::Error)]
#[error("{}", .error.what)]
struct Wrong {
    error: ScenarioError,
    source_code: NamedSource<String>,
}

impl miette::Diagnostic for Wrong {
    fn help(&self) -> Option<Box<dyn Display + '_>> {
        Some(Box::new(format!("expected {}", self.error.expected)))
    }

    fn source_code(&self) -> Option<&dyn miette::SourceCode> {
        self.error.span.as_ref().map(|_| &self.source_code as &dyn miette::SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let span = self.error.span.clone()?;
        Some(Box::new(std::iter::once(LabeledSpan::at(span, "here"))))
    }
}

/// True if `report` is about a scenario that makes no sense.
pub fn is_wrong(report: &miette::Report) -> bool {
    report.is::<Wrong>()
}

/// The error that words of the command line are no scenario.
pub fn refused(error: ScenarioError) -> miette::Report {
    misuse_with_help(error.what, format!("expected {}", error.expected))
}

/// The error with the place that it is about. A file that cannot be read has no text.
pub fn explain(error: ScenarioError, name: &str, text: Option<String>) -> miette::Report {
    let Some(text) = text else {
        return miette!(help = format!("expected {}", error.expected), "{}", error.what);
    };
    let (text, span) = printable_at(&text, error.span.clone().unwrap_or_default());
    let error = ScenarioError { span: error.span.map(|_| span), ..error };
    let name = Printable(name).to_string();
    Wrong { error, source_code: NamedSource::new(name, text) }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_one_or_a_range() {
        assert_eq!(seeds("7"), Ok(Seeds(7, 7)));
        assert_eq!((seeds("1..20"), seeds("1..=20")), (Ok(Seeds(1, 20)), Ok(Seeds(1, 20))));
        assert!(seeds("3..2").is_err() && seeds("x").is_err() && seeds("0..99999999").is_err());
    }
}
