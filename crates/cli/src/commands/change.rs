//! `simnel change`: other settings for a running interface, without losing a queued packet.

use std::io::Write;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_core::tc;
use simnel_gateway::config::{compose, settings_of};
use simnel_gateway::control::Client;
use simnel_gateway::Direction;

use super::{interface_name, misuse, Control};

/// Change one direction of a running interface; queued packets stay queued.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel change eth0 upload 8mbit\n  \
    simnel change eth0 download 40mbit diffserv4 nat\n\n\
What is not named stays as it is. Another discipline's name begins from its defaults.")]
pub struct Args {
    /// The interface.
    #[arg(value_parser = interface_name)]
    interface: String,
    /// `download` or `upload`.
    direction: String,
    /// The new rate.
    rate: String,
    /// The discipline's words.
    words: Vec<String>,
    #[command(flatten)]
    control: Control,
}

/// Asks the daemon.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    let direction = match args.direction.as_str() {
        "download" => Direction::Download,
        "upload" => Direction::Upload,
        other => {
            return Err(misuse(format!("`{other}` is no direction: say `download` or `upload`")));
        }
    };
    let (rate, words) = (args.rate.as_str(), args.words.join(" "));
    settings_of(direction, Some(rate), &words).map_err(misuse)?;
    let mut client = Client::connect(&args.control.directory, &args.interface).into_diagnostic()?;
    let shown = client.show().into_diagnostic()?;
    let present = shown.iter().find(|entry| entry.direction == direction);
    let present = present.map_or("", |entry| entry.config.as_str());
    let words = changed(direction, present, rate, &words).map_err(misuse)?;
    client.change(direction, &words).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}

/// The words for what runs as `present`, with another rate and further words, which come later and
/// therefore hold.
fn changed(direction: Direction, present: &str, rate: &str, words: &str) -> Result<String, String> {
    let discipline = |words: &str| {
        let first = words.split_whitespace().next().unwrap_or_default();
        tc::disciplines().iter().find(|known| known.name == first).map(|known| known.name)
    };
    match (discipline(present), discipline(words)) {
        (Some(name @ ("cake" | "line")), new) if new.is_none_or(|new| new == name) => {
            let keyword = if name == "cake" { "bandwidth" } else { "rate" };
            let words = new.map_or(words, |new| words.trim_start().trim_start_matches(new));
            Ok(format!("{present} {keyword} {rate} {words}"))
        }
        _ => compose(direction, Some(rate), words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_stays_as_it_is() {
        let change = |present: &str, rate, words| {
            let printed = tc::parse(present).unwrap().to_string();
            let words = changed(Direction::Download, &printed, rate, words).unwrap();
            tc::parse(&words).unwrap()
        };
        let settings = |words| tc::parse(words).unwrap();
        let present = "cake bandwidth 9mbit diffserv4 nat docsis ack-filter rtt 50ms";
        assert_eq!(
            change(present, "8mbit", ""),
            settings("cake bandwidth 8mbit diffserv4 nat docsis ack-filter rtt 50ms")
        );
        assert_eq!(
            change(present, "8mbit", "cake besteffort nonat no-ack-filter"),
            settings("cake bandwidth 8mbit besteffort nonat docsis no-ack-filter rtt 50ms")
        );
        assert_eq!(change(present, "1mbit", "line fifo 9p"), settings("line rate 1mbit fifo 9p"));
        assert_eq!(
            change("line rate 3mbit delay 5ms", "1mbit", ""),
            settings("line rate 1mbit delay 5ms")
        );
    }
}
