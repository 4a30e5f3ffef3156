//! `simnel check`: a doctor for this machine and its line.

use std::io::Write;
use std::net::IpAddr;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_gateway::check::{check, link_type, Finding, Level, LinkType, Report};
use simnel_gateway::{has_net_admin, next_hop};

use super::{interface_name, output_failed, Control};
use crate::terminal;

/// Look at what helps or hinders shaping here, and say what to do about it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel check              # the interface that leads to the Internet\n  \
    simnel check ppp0\n  \
    simnel check --json | jq -r '.findings[] | select(.level == \"error\") | .id'\n\n\
Nothing is changed. Without root less is seen, and what was not seen is said.\n\
Exit status: 1 if there is an error (shaping cannot work), else 0.")]
pub struct Args {
    /// Print JSON.
    #[arg(short, long)]
    json: bool,
    /// Do not ask the next router for an echo.
    #[arg(long)]
    no_echo: bool,
    /// The interface [default: the one that leads to the Internet].
    #[arg(value_parser = interface_name)]
    interface: Option<String>,
    #[command(flatten)]
    control: Control,
}

/// Looks, and prints what was found.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let mut report = check(args.interface.as_deref(), &args.control.directory);
    if let Some(interface) = report.interface.as_deref().filter(|_| !args.no_echo) {
        let finding = match next_hop(interface) {
            Some(router) => echo(router, simnel_measure::idle_delay(router), link_type(interface)),
            None => not_measured(format!("no default route by `{interface}` names a next hop")),
        };
        report.findings.push(finding);
    }
    let text = match args.json {
        true => serde_json::to_string_pretty(&report).into_diagnostic()? + "\n",
        false => render(&report, has_net_admin()),
    };
    write_coloured(out, &text, args.json)?;
    Ok(match report.worst() {
        Level::Error => ExitCode::FAILURE,
        _ => ExitCode::SUCCESS,
    })
}

const RTT: &str = "router-delay";

/// A finding about the round-trip time to the next router on the idle line: milliseconds and by
/// which echo, and the link to it.
fn echo(router: IpAddr, heard: Option<(f64, &str)>, link: Option<LinkType>) -> Finding {
    /// More is a radio, or somebody's queue.
    const LONG_MS: f64 = 5.0;
    let is_at_home = matches!(router, IpAddr::V4(router) if router.is_private());
    let Some((delay, by)) = heard else {
        return not_measured(match router {
            IpAddr::V6(router) if router.is_unicast_link_local() => {
                format!("the next hop {router} has an address of its link only")
            }
            _ => format!("the next hop {router} answers neither ICMP nor TCP"),
        });
    };
    if !is_at_home {
        return Finding::ok(RTT, format!("RTT to the next hop {router}: {delay:.1} ms ({by})"));
    }
    let what = format!("an echo from the router {router} takes {delay:.1} ms ({by})");
    if delay < LONG_MS {
        return Finding::ok(RTT, what);
    }
    let (why, fix) = match link {
        Some(LinkType::Wireless) => (
            "so much is between here and the router, mostly WiFi: no shaper at the line mends it",
            "try a cable; see `simnel test`",
        ),
        _ => (
            "the router is beyond a long line, or a radio or a full queue is on the way to it",
            "nothing, if the line itself is that long; else look at what is on the way",
        ),
    };
    Finding::new(Level::Note, RTT, what, why, fix)
}

fn not_measured(reason: String) -> Finding {
    let what = format!("RTT not measured, because {reason}");
    let why = "the delay of the first hop cannot be told from the line's";
    Finding::new(Level::Note, RTT, what, why, "`simnel test --server HOST` measures the line")
}

/// The text; `saw_all` unless a right was missing to look at everything.
fn render(report: &Report, saw_all: bool) -> String {
    let mut text = String::new();
    for Finding { level, what, why, fix, .. } in &report.findings {
        text += &format!("{:<8} {what}\n", level.name());
        if !why.is_empty() {
            text += &format!("{:<8}   why: {why}\n", "");
        }
        if !fix.is_empty() {
            text += &format!("{:<8}   do:  {fix}\n", "");
        }
    }
    let count = |level| report.findings.iter().filter(|finding| finding.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    let of = report.interface.as_ref().map_or(String::new(), |name| format!("`{name}`: "));
    let things = counted(warnings, "thing");
    let unseen = "as far as can be seen without CAP_NET_ADMIN; nothing can be shaped without it";
    text += &match (errors, warnings) {
        (0, 0) if saw_all => format!("{of}nothing is in the way\n"),
        (0, _) if saw_all => format!("{of}it works, and {things} could be better\n"),
        (0, 0) => format!("{of}nothing is in the way, {unseen}\n"),
        (0, _) => format!("{of}{things} could be better, {unseen}\n"),
        _ => format!(
            "{of}{} in the way\n",
            match errors {
                1 => "1 error is".to_owned(),
                _ => format!("{errors} errors are"),
            }
        ),
    };
    text
}

fn counted(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

/// Colours are ours, and the text is tamed on its way: they are added line by line, past that.
fn write_coloured(out: &mut dyn Write, text: &str, is_json: bool) -> miette::Result<()> {
    if is_json || !terminal::colours() {
        return out.write_all(text.as_bytes()).map_err(output_failed);
    }
    let colours = [("error", "31;1"), ("warning", "33;1"), ("note", "36"), ("ok", "32")];
    out.flush().map_err(output_failed)?;
    let mut plain = std::io::stdout().lock();
    for line in text.lines() {
        let tamed = simnel_core::printable::Printable(line).to_string();
        let found = colours
            .iter()
            .find(|(level, _)| tamed.strip_prefix(level).is_some_and(|rest| rest.starts_with(' ')));
        let line = match found {
            Some((level, colour)) => {
                format!("\x1b[{colour}m{level}\x1b[0m{}", &tamed[level.len()..])
            }
            None => tamed,
        };
        writeln!(plain, "{line}").map_err(output_failed)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_told_with_its_reason_and_what_to_do() {
        let mut report = Report {
            interface: Some("wan".into()),
            link: None,
            words: None,
            findings: vec![Finding::ok("a", "well")],
        };
        assert_eq!(render(&report, true), "ok       well\n`wan`: nothing is in the way\n");
        report.findings.push(Finding::new(Level::Warning, "b", "slow", "late", "hurry"));
        let text = render(&report, true);
        assert!(text.contains("warning  slow\n           why: late\n           do:  hurry\n"));
        assert!(text.ends_with("it works, and 1 thing could be better\n"), "{text}");
        let text = render(&report, false);
        assert!(
            !text.contains("it works") && text.contains("1 thing could be better, as"),
            "{text}"
        );
        report.findings.push(Finding::new(Level::Error, "c", "dead", "", ""));
        assert!(render(&report, true).ends_with("`wan`: 1 error is in the way\n"));
    }

    #[test]
    fn a_distant_router_is_blamed_on_a_radio_only_where_there_is_one() {
        let told = |heard, link| echo(IpAddr::from([10, 77, 0, 1]), heard, link);
        let far = Some((90.5, "ICMP"));
        let by_cable = told(far, Some(LinkType::Ethernet));
        assert!(by_cable.level == Level::Note && by_cable.why.contains("a long line"));
        assert!(!by_cable.fix.contains("cable"), "{}", by_cable.fix);
        assert!(told(far, Some(LinkType::Wireless)).fix.contains("a cable"));
        assert_eq!(told(Some((0.4, "ICMP")), Some(LinkType::Wireless)).level, Level::Ok);
    }

    #[test]
    fn the_next_hop_is_told_of_whatever_its_address_and_answer() {
        let told = |address: &str, heard| echo(address.parse().unwrap(), heard, None);
        let far = told("203.0.113.1", Some((20.25, "ICMP")));
        let what = "RTT to the next hop 203.0.113.1: 20.2 ms (ICMP)";
        assert_eq!(far, Finding::ok("router-delay", what));
        for (address, reason) in [
            ("203.0.113.1", "because the next hop 203.0.113.1 answers neither ICMP nor TCP"),
            ("10.77.0.1", "because the next hop 10.77.0.1 answers neither"),
            ("fe80::1", "because the next hop fe80::1 has an address of its link only"),
        ] {
            let silent = told(address, None);
            assert!(silent.level == Level::Note && silent.what.contains(reason), "{silent:?}");
        }
    }
}
