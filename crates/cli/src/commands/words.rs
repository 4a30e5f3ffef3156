//! `simnel words`: what a discipline understands, a line for each keyword.

use std::io::Write;
use std::process::ExitCode;

use simnel_core::qdisc;
use simnel_core::tc::Keyword;

use super::{misuse_with_help, output_failed};

/// List the keywords of a discipline, or the disciplines.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  simnel words\n  simnel words cake")]
pub struct Args {
    /// The discipline.
    #[arg(value_name = "QDISC")]
    discipline: Option<String>,
}

/// Lists them.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let Some(name) = &args.discipline else {
        for known in qdisc::disciplines() {
            writeln!(out, "{:<16} {}", known.name, known.about).map_err(output_failed)?;
        }
        return Ok(ExitCode::SUCCESS);
    };
    if qdisc::discipline(name).is_none() {
        let what = qdisc::parse(name).err().map_or_else(String::new, |error| error.to_string());
        return Err(misuse_with_help(what, "`simnel words` lists the disciplines"));
    }
    let said = |keyword: &Keyword| format!("{} {}", keyword.word, keyword.argument);
    let width = qdisc::keywords(name).map(|keyword| said(keyword).len()).max().unwrap_or(0);
    for keyword in qdisc::keywords(name) {
        writeln!(out, "{:<width$} {}", said(keyword), keyword.meaning).map_err(output_failed)?;
    }
    Ok(ExitCode::SUCCESS)
}
