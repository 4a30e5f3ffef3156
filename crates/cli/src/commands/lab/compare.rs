//! `simnel compare A B`: which discipline is better on my line?

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_lab::experiments::compare::{self, Compared, Question, Row};
use simnel_lab::flent::slug;
use simnel_lab::report::{result::Result, text};
use simnel_lab::statistics::Estimate;

use super::interrupt::{Interrupt, INTERRUPTED};
use super::progress::Progress;
use super::{line_rates, output_failed, place, sim};
use crate::terminal;

/// Compare disciplines on a line: a table and a verdict.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    simnel compare 'cake bandwidth {rate}' fq_codel --line 20mbit/3mbit --rtt 90ms\n\n\
`{rate}` stands for the line's rate. A discipline that shapes itself runs without a line behind\n\
it, every other one on the line. The page with the figures is compare-….html, by what is\n\
compared, unless --report says otherwise.")]
pub struct Args {
    /// Disciplines in tc's words, two or more.
    #[arg(required = true, num_args = 2.., value_name = "WORDS")]
    contenders: Vec<String>,
    /// Rates of the line, down and up.
    #[arg(long, value_name = "DOWN/UP", default_value = "50mbit/10mbit")]
    line: String,
    /// Base round-trip time.
    #[arg(long, value_name = "TIME", default_value = "50ms")]
    rtt: String,
    /// Runs of each workload.
    #[arg(long, value_name = "N", default_value_t = 5,
        value_parser = clap::value_parser!(u32).range(1..))]
    repetitions: u32,
    /// The page: a path that ends in .html, or a folder for compare-….html [default: in this one;
    /// no page with --json].
    #[arg(long, value_name = "PATH")]
    report: Option<PathBuf>,
    /// The rows as JSON, one a line.
    #[arg(short, long)]
    json: bool,
}

/// Compares.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (down, up) = line_rates(&args.line)?;
    let question = Question {
        contenders: args.contenders.clone(),
        line: (down.into(), up.into()),
        rtt: args.rtt.clone(),
        repetitions: args.repetitions,
    };
    let page = place::page("compare", args.report.as_deref(), usual(args), !args.json, &[])?;
    let interrupt = Interrupt::new()?;
    let progress = Progress::new(compare::runs(&question) as u64);
    let done = compare::compare(&question, interrupt.flag(), &|| progress.advance(1));
    progress.done();
    let done = done.map_err(sim::refused)?;
    let (rows, names) = (&done.rows, &question.contenders);
    if args.json {
        json(rows, names, out).map_err(output_failed)?;
    } else {
        table(rows, names, out).map_err(output_failed)?;
    }
    if let Some(page) = page {
        let stopped = interrupt.has_come();
        page.store(whole_page(args, done, stopped).into_diagnostic()?)?;
        if !args.json {
            writeln!(out, "page: {}", page.path.display()).map_err(output_failed)?;
        }
    }
    if interrupt.has_come() {
        crate::say!("stopped: these are the runs until then");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(ExitCode::SUCCESS)
}

/// The page's name: other disciplines on other lines have other pages.
fn usual(args: &Args) -> PathBuf {
    let words = place::words(&args.contenders);
    place::named(&slug(&format!("compare {words} {} {}", args.line, args.rtt)))
}

fn whole_page(args: &Args, done: Compared, stopped: bool) -> serde_json::Result<String> {
    let names = compare::called(&args.contenders);
    let mut said = compare::verdict(&done.rows, &names);
    said.iter_mut().for_each(|sentence| sentence.text = sentence.text.replace('`', ""));
    // The verdict ends the table, and begins the page.
    said.rotate_right(1);
    let title = format!("{} on {}, {}", names.join(" or "), args.line, args.rtt);
    let result = Result {
        partial: if stopped { "the runs were stopped before their end.".into() } else { "".into() },
        words: args.contenders.iter().map(|one| one.replace("{rate}", "RATE")).collect(),
        names,
        cases: done.cases,
        said,
        ..Result::default()
    };
    result.page(&title)
}

/// The rows of a table, with a heading.
fn lines(rows: &[Row], names: &[String]) -> Vec<Vec<String>> {
    let cell = |value: &Option<Estimate>| value.map_or("-".into(), |one| one.to_string());
    let cells = |row: &Row| {
        let names = [row.workload.to_string(), row.measure.to_string()];
        names.into_iter().chain(row.values.iter().map(cell)).collect()
    };
    let head = ["workload", "measure"].map(String::from).into_iter().chain(names.to_vec());
    [head.collect()].into_iter().chain(rows.iter().map(cells)).collect()
}

fn table(rows: &[Row], names: &[String], out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}", text::table(&lines(rows, names), 2..2 + names.len(), terminal::width()))?;
    writeln!(out)?;
    compare::verdict(rows, names).iter().try_for_each(|one| writeln!(out, "{}", one.text))
}

fn json(rows: &[Row], names: &[String], out: &mut dyn Write) -> io::Result<()> {
    for row in rows {
        let values: serde_json::Map<String, serde_json::Value> = names
            .iter()
            .zip(&row.values)
            .map(|(name, value)| (name.clone(), serde_json::json!(value)))
            .collect();
        let line = serde_json::json!({
            "workload": row.workload,
            "measure": row.measure.to_string(),
            "less_is_better": row.measure.less(),
            "values": values,
        });
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)?;
    }
    Ok(())
}
