//! `simnel show`: settings and statistics as `tc qdisc show` prints them.

use std::io::Write;
use std::process::ExitCode;

use miette::{miette, IntoDiagnostic};
use simnel_core::tc::{self, Config, Parent, QdiscView, Statistics};
use simnel_gateway::control::{interfaces, Client, Entry};
use simnel_gateway::Error;

use super::{interface_name, output_failed, Control};

/// The first handle that the kernel gives to a discipline without one.
const FIRST_HANDLE: u32 = 0x8001_0000;

/// Show what is being shaped, as `tc -s qdisc show` prints it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  simnel show -s\n  simnel show -j eth0\n\n\
The download of an interface is listed as IFACE:download.")]
pub struct Args {
    /// Print statistics, too.
    #[arg(short, long)]
    statistics: bool,
    /// Print JSON with tc's keys and units, statistics included.
    #[arg(short, long)]
    json: bool,
    /// One interface only [default: all].
    #[arg(value_parser = interface_name)]
    interface: Option<String>,
    #[command(flatten)]
    control: Control,
}

/// Prints what the daemons say.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let directory = &args.control.directory;
    let names = match &args.interface {
        Some(name) => vec![name.clone()],
        None => interfaces(directory),
    };
    let mut entries: Vec<(String, Config, Entry)> = Vec::new();
    for name in names {
        let mut client = match Client::connect(directory, &name) {
            // The socket of a daemon that was killed.
            Err(Error::NotUp { .. }) if args.interface.is_none() => continue,
            client => client.into_diagnostic()?,
        };
        for entry in client.show().into_diagnostic()? {
            let config = tc::parse(&entry.config)
                .map_err(|error| miette!("the daemon's own words cannot be read: {error}"))?;
            let dev = match entry.direction {
                simnel_gateway::Direction::Upload => entry.dev.clone(),
                simnel_gateway::Direction::Download => format!("{}:download", entry.dev),
            };
            entries.push((dev, config, entry));
        }
    }
    let views: Vec<QdiscView> = entries
        .iter()
        .zip(0u32..)
        .map(|((dev, config, entry), n)| QdiscView {
            handle: FIRST_HANDLE + (n << 16),
            dev: Some(dev),
            parent: Parent::Root,
            refcnt: 2,
            config,
            snapshot: Some(&entry.stats),
        })
        .collect();
    let mut text = String::new();
    let written = if args.json {
        tc::show_json(&mut text, &views, Statistics::Tc)
    } else {
        let detail = if args.statistics { Statistics::Tc } else { Statistics::Off };
        tc::show(&mut text, &views, detail)
    };
    written.map_err(|error| miette!("{error}"))?;
    out.write_all(text.as_bytes()).map_err(output_failed)?;
    if args.json && !text.ends_with('\n') {
        writeln!(out).map_err(output_failed)?;
    }
    Ok(ExitCode::SUCCESS)
}
