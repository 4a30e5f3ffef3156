//! `simnel rules`: the rules of the configuration file, and what they have counted.

use std::fmt::Write as _;
use std::io::Write;
use std::process::ExitCode;

use miette::{miette, IntoDiagnostic};
use simnel_gateway::control::Client;
use simnel_gateway::rules::{Counted, RuleEntry};
use simnel_gateway::{kernel, Error};

use super::{interface_name, output_failed, Control, NOTHING};

/// Show the rules of the configuration file with the packets that they have fitted.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel rules\n  \
    simnel rules --json eth0\n\n\
Rules are tables of the configuration file:\n  \
    [[rule]]\n  \
    name = \"calls\"\n  \
    protocol = \"udp\"\n  \
    ports = [3478, \"5000-5010\"]\n  \
    tier = \"voice\"\n\n\
After a change: `systemctl reload simnel`, or SIGHUP to the daemon.")]
pub struct Args {
    /// Print JSON.
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
    let names = args.control.interfaces(args.interface.as_deref())?;
    let mut rules = Vec::new();
    let mut nothing = kernel::shaped(args.interface.as_deref()).into_diagnostic()?.is_empty();
    for name in names {
        match Client::connect(directory, &name) {
            // The socket of a daemon that was killed.
            Err(Error::NotUp { .. }) if args.interface.is_none() => {}
            Err(error @ Error::Restarting(_)) if args.interface.is_none() => {
                nothing = false;
                crate::say!("simnel: {error}");
            }
            client => {
                nothing = false;
                match client.and_then(|mut client| client.rules()) {
                    // Of an interface that is waited for.
                    Err(error @ Error::Remote(_)) if args.interface.is_none() => {
                        crate::say!("simnel: {error}");
                    }
                    told => rules.extend(told.into_diagnostic()?),
                }
            }
        }
    }
    if args.json {
        let text = serde_json::to_string_pretty(&rules).map_err(|error| miette!("{error}"))?;
        writeln!(out, "{text}").map_err(output_failed)?;
    } else if nothing {
        crate::say!("{NOTHING}");
    } else if rules.is_empty() {
        crate::say!("no rules: add [[rule]] to the configuration file (`simnel rules --help`)");
    } else {
        out.write_all(table(&rules).as_bytes()).map_err(output_failed)?;
    }
    Ok(if nothing { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The rules, a line each, below headings.
fn table(rules: &[RuleEntry]) -> String {
    let headings = ["dev", "rule", "traffic", "does", "upload", "download", "name"];
    let mut rows = vec![headings.map(String::from)];
    rows.extend(rules.iter().map(|rule| {
        [
            rule.dev.clone(),
            rule.number.to_string(),
            match rule.addresses {
                Some(1) => format!("{} (1 address known)", rule.traffic),
                Some(known) => format!("{} ({known} addresses known)", rule.traffic),
                None => rule.traffic.clone(),
            },
            rule.action.clone(),
            counted(rule.upload),
            counted(rule.download),
            rule.name.clone().unwrap_or_default(),
        ]
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..headings.len()).map(|c| width(c).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            let _ = write!(line, "{cell:<width$}  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// Packets; a direction that does not run has none.
fn counted(counted: Option<Counted>) -> String {
    counted.map_or_else(|| "-".into(), |counted| format!("{} pkt", counted.packets))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rule = |number, traffic: &str, name: Option<&str>| RuleEntry {
            dev: "eth0".into(),
            number,
            name: name.map(String::from),
            traffic: traffic.into(),
            action: "tier voice".into(),
            addresses: None,
            upload: Some(Counted { packets: 12, bytes: 2_400 }),
            download: None,
        };
        let rules = [rule(1, "udp port 3478,5000-5010", Some("calls")), rule(10, "dscp EF", None)];
        assert_eq!(
            table(&rules),
            "dev   rule  traffic                  does        upload  download  name\n\
             eth0  1     udp port 3478,5000-5010  tier voice  12 pkt  -         calls\n\
             eth0  10    dscp EF                  tier voice  12 pkt  -\n"
        );
    }
}
