//! `simnel import`: what sqm-scripts or `tc` do now, as a configuration file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::miette;
use simnel_gateway::config;
use simnel_gateway::import::{self, Imported};

use super::{interface_name, output_failed};

/// Where OpenWrt keeps the settings of sqm-scripts.
const SQM: &str = "/etc/config/sqm";

/// Take over what sqm-scripts or `tc` do now: print it as a configuration file.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel import sqm > simnel.toml            # OpenWrt's /etc/config/sqm\n  \
    simnel import sqm --command                # the line of `simnel up` instead\n  \
    tc qdisc show | simnel import tc           # what `tc` has set up\n  \
    (tc qdisc show; tc class show dev eth0) | simnel import tc       # htb: with its classes\n  \
    (tc qdisc show dev eth0; tc class show dev eth0) | simnel import tc --dev eth0\n  \
    (tc qdisc show; for i in eth0 ifb4eth0; do echo dev $i; tc class show dev $i; done) |\n    \
    simnel import tc\n\n\
What is not taken over is named on standard error, with the reason. Exit status: 1 if\n\
there is nothing to take over, or no line of `simnel up` that says it, else 0.")]
pub struct Args {
    #[command(subcommand)]
    from: From,
}

#[derive(clap::Subcommand)]
enum From {
    /// OpenWrt's sqm-scripts.
    Sqm(Source),
    /// Output of `tc qdisc show`, and of `tc class show` for htb's rates.
    Tc {
        #[command(flatten)]
        source: Source,
        /// The device of lines that name none, as `tc qdisc show dev NAME` prints them.
        #[arg(long, value_name = "NAME", value_parser = interface_name)]
        dev: Option<String>,
    },
}

#[derive(clap::Args)]
struct Source {
    /// The file; `-` is standard input [default: /etc/config/sqm for sqm, - for tc].
    file: Option<PathBuf>,
    /// Print lines of `simnel up` instead of a configuration file.
    #[arg(long)]
    command: bool,
}

/// Reads, and prints what was understood.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (source, otherwise) = match &args.from {
        From::Sqm(source) => (source, SQM),
        From::Tc { source, .. } => (source, "-"),
    };
    let path = source.file.as_deref().unwrap_or(Path::new(otherwise));
    let text = text(path)?;
    let imported = match &args.from {
        From::Sqm(_) => import::sqm(&text),
        From::Tc { dev, .. } => import::tc(&text, dev.as_deref()),
    };
    let not_taken = |note: &str| crate::say!("not taken over: {note}");
    imported.notes.iter().for_each(|note| not_taken(note));
    if imported.interfaces.is_empty() {
        return Err(miette!("there is nothing to take over in {}", path.display()));
    }
    let text = if source.command { lines(&imported, not_taken)? } else { imported.toml() };
    out.write_all(text.as_bytes()).map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}

/// The lines of `simnel up`, at least one.
fn lines(imported: &Imported, not_taken: impl Fn(&str)) -> miette::Result<String> {
    let mut text = String::new();
    for line in imported.commands() {
        match line {
            Ok(line) => text += &(line + "\n"),
            Err(why) => not_taken(&why),
        }
    }
    match text.is_empty() {
        true => Err(miette!(help = "leave out --command", "no line of `simnel up` says it")),
        false => Ok(text),
    }
}

fn text(path: &Path) -> miette::Result<String> {
    let bytes = match path.to_str() {
        Some("-") => config::bytes(io::stdin().lock()),
        _ => File::open(path).and_then(config::bytes),
    }
    .map_err(|error| miette!("cannot read {}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
