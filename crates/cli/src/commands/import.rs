//! `simnel import`: what sqm-scripts or `tc` do now, as a configuration file.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::miette;
use simnel_gateway::config;
use simnel_gateway::import::{self, Imported};

use super::{interface_name, output_failed};

/// File in which OpenWrt keeps the settings of sqm-scripts.
const SQM: &str = "/etc/config/sqm";
/// In place of a file.
const STANDARD_INPUT: &str = "-";

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
    #[command(after_help = "Examples:\n  \
        simnel import sqm > simnel.toml\n  \
        simnel import sqm --command                # the line of `simnel up` instead\n  \
        ssh router cat /etc/config/sqm | simnel import sqm -")]
    Sqm {
        /// The file; `-` is standard input.
        #[arg(default_value = SQM)]
        file: PathBuf,
        #[command(flatten)]
        form: Form,
    },
    /// Output of `tc qdisc show`, and of `tc class show` for htb's rates.
    #[command(after_help = "Examples:\n  \
        tc qdisc show | simnel import tc > simnel.toml\n  \
        tc qdisc show dev eth0 | simnel import tc --dev eth0 --command")]
    Tc {
        /// The file; `-` is standard input.
        #[arg(default_value = STANDARD_INPUT)]
        file: PathBuf,
        #[command(flatten)]
        form: Form,
        /// The device of lines that name none, as `tc qdisc show dev NAME` prints them.
        #[arg(long, value_name = "NAME", value_parser = interface_name)]
        dev: Option<String>,
    },
}

#[derive(clap::Args)]
struct Form {
    /// Print lines of `simnel up` instead of a configuration file.
    #[arg(long)]
    command: bool,
}

/// Reads, and prints what was understood.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (From::Sqm { file, form } | From::Tc { file, form, .. }) = &args.from;
    let name = match file.to_str() {
        Some(STANDARD_INPUT) => "standard input".to_owned(),
        _ => file.display().to_string(),
    };
    let text = text(file).map_err(|error| {
        let help = match error.kind() {
            io::ErrorKind::NotFound => Some("name the file, or `-` for standard input"),
            _ => None,
        };
        let what = format!("cannot read {name}: {error}");
        help.map_or_else(|| miette!("{what}"), |help| miette!(help = help, "{what}"))
    })?;
    let imported = match &args.from {
        From::Sqm { .. } => import::sqm(&text),
        From::Tc { dev, .. } => import::tc(&text, dev.as_deref()),
    };
    let not_taken = |note: &str| crate::say!("not taken over: {note}");
    imported.notes.iter().for_each(|note| not_taken(note));
    if imported.interfaces.is_empty() {
        return Err(miette!("there is nothing to take over in {name}"));
    }
    let text = if form.command { lines(&imported, not_taken)? } else { imported.toml() };
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

fn text(path: &Path) -> io::Result<String> {
    let bytes = match path.to_str() {
        Some(STANDARD_INPUT) => config::bytes(io::stdin().lock()),
        _ => File::open(path).and_then(config::bytes),
    }?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
