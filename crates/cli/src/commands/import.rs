//! `simnel import`: what sqm-scripts or `tc` do now, as a configuration file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::miette;
use simnel_gateway::import::{self, Imported};

use super::output_failed;

/// Where OpenWrt keeps the settings of sqm-scripts.
const SQM: &str = "/etc/config/sqm";
/// No such file is longer; what is piped in by mistake may be.
const LONGEST: u64 = 1 << 20;

/// Take over what sqm-scripts or `tc` do now: print it as a configuration file.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel import sqm > simnel.toml            # OpenWrt's /etc/config/sqm\n  \
    simnel import sqm --command                # the line of `simnel up` instead\n  \
    (tc qdisc show; for i in eth0 ifb4eth0; do tc class show dev $i; done) | simnel import tc\n\n\
What is not taken over is named on standard error, with the reason. Exit status: 1 if\n\
there is nothing to take over, else 0.")]
pub struct Args {
    #[command(subcommand)]
    from: From,
}

#[derive(clap::Subcommand)]
enum From {
    /// OpenWrt's sqm-scripts.
    Sqm(Source),
    /// Output of `tc qdisc show`, and of `tc class show` for htb's rates.
    Tc(Source),
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
    let (source, otherwise, read): (_, _, fn(&str) -> Imported) = match &args.from {
        From::Sqm(source) => (source, SQM, import::sqm),
        From::Tc(source) => (source, "-", import::tc),
    };
    let path = source.file.as_deref().unwrap_or(Path::new(otherwise));
    let imported = read(&text(path)?);
    imported.notes.iter().for_each(|note| crate::say!("not taken over: {note}"));
    if imported.interfaces.is_empty() {
        return Err(miette!("there is nothing to take over in {}", path.display()));
    }
    let text = match source.command {
        true => imported.commands().join("\n") + "\n",
        false => imported.toml(),
    };
    out.write_all(text.as_bytes()).map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}

fn text(path: &Path) -> miette::Result<String> {
    let mut bytes = Vec::new();
    let source: io::Result<Box<dyn Read>> = match path.to_str() {
        Some("-") => Ok(Box::new(io::stdin().lock())),
        _ => File::open(path).map(|file| Box::new(file) as Box<dyn Read>),
    };
    source
        .and_then(|source| source.take(LONGEST).read_to_end(&mut bytes))
        .map_err(|error| miette!("cannot read {}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
