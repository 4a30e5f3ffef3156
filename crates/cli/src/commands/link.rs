//! `simnel link`: an emulated line, between two interfaces or on one.

use std::io::Write;
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_core::qdisc::{self, Config, Device};
use simnel_core::Span;
use simnel_gateway::daemon::Daemon;
use simnel_gateway::link::{stop_on_signals, Link, LinkSettings};
use simnel_gateway::Settings;

use super::{misuse, misuse_with_help, places, Control};

/// Time between batches of an emulated line above 200 Mbit/s: less than a gateway's, because a
/// line's own bursts would be taken for the gateway's.
const BATCH: Span = Span::from_micros(50);

/// Packets that may be on their way to a full line, to be dropped there.
const ARRIVING: u32 = 1_000;

/// Packets for which there is always room.
const LINE_LEAST: u32 = 32_768;

/// Emulate a line: between two interfaces, or on one that traffic is routed through.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel link eth0 eth1 rate 20mbit delay 15ms fifo 1000p\n  \
    simnel link eth0 eth1 rate 3mbit delay 15ms fifo 1000p reverse rate 20mbit\n  \
    simnel link eth0 rate 3mbit delay 15ms reverse rate 20mbit\n\n\
Two interfaces are joined as by a bridge; no addresses belong on them. On one interface,\n\
what leaves by it and what arrives takes the line, as with `simnel up`; `simnel show` and\n\
`simnel down` work on it. Words before `reverse` describe both directions, words after it\n\
change that from B to A, or of what arrives. Runs until a signal; needs root.")]
pub struct Args {
    /// One end, or the only interface.
    #[arg(value_name = "IFACE")]
    interface: String,
    /// The other end, if there is one; then rate RATE, delay TIME, jitter TIME, fifo Np or SIZE,
    /// overhead words; `reverse` and more of them.
    #[arg(required = true, value_name = "[IFACE] WORDS", allow_negative_numbers = true)]
    words: Vec<String>,
    #[command(flatten)]
    control: Control,
}

/// Settings that the words ask for.
#[derive(Debug, PartialEq)]
struct Request<'a> {
    other: Option<&'a str>,
    forward: Config,
    backward: Config,
}

/// The request of `words`, which have these `places` on the command line.
fn understand<'a>(words: &'a [String], places: &[usize]) -> miette::Result<Request<'a>> {
    let is_keyword =
        |word: &str| word == "reverse" || qdisc::keywords("line").any(|known| known.word == word);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let other = (!is_keyword(words[0])).then(|| words.remove(0));
    let places = &places[usize::from(other.is_some())..];
    if words.is_empty() {
        return Err(misuse_with_help(
            "nothing says what the line is like",
            "for example: simnel link eth0 eth1 rate 20mbit delay 15ms",
        ));
    }
    let line = |words: &[&str], skipped: usize| -> miette::Result<Config> {
        let line = qdisc::parse_words(&[&["line"], words].concat()).map_err(|mut error| {
            // In front of them stands the discipline's name.
            let index = (error.index + skipped).saturating_sub(1);
            error.index = places.get(index).copied().unwrap_or(error.index);
            misuse(error)
        })?;
        qdisc::check_rates(&words.join(" ")).map_err(misuse)?;
        Ok(line)
    };
    let mut halves = words.splitn(2, |word| *word == "reverse");
    let forward = halves.next().unwrap_or_default();
    let reverse = halves.next();
    if reverse.is_some_and(<[&str]>::is_empty) {
        return Err(misuse_with_help(
            "nothing follows `reverse`",
            "for example: reverse rate 20mbit; without it both directions are the same",
        ));
    }
    let backward = [forward, reverse.unwrap_or_default()].concat();
    // What is wrong with the second half stands behind `reverse`.
    let skipped = usize::from(reverse.is_some());
    Ok(Request { other, forward: line(forward, 0)?, backward: line(&backward, skipped)? })
}

/// Runs the line.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    let places = places([&args.interface].into_iter().chain(&args.words));
    let request = understand(&args.words, &places[1..])?;
    match request.other {
        Some(other) => {
            let settings = LinkSettings {
                a: args.interface.clone(),
                b: other.to_owned(),
                a_to_b: request.forward,
                b_to_a: request.backward,
            };
            let stop = stop_on_signals().into_diagnostic()?;
            let link = Link::new(settings).into_diagnostic()?;
            crate::say!("simnel: {} and {other} are joined by the line", args.interface);
            link.run(&stop).into_diagnostic()?;
        }
        None => on_one(args, request)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The line is a discipline like any other to the gateway's data path.
fn on_one(args: &Args, request: Request) -> miette::Result<()> {
    let mut settings = Settings::new(args.interface.as_str());
    settings.control_dir.clone_from(&args.control.directory);
    settings.tuning.batch = BATCH;
    // What the line holds waits in the kernel; more than its queue takes would pass by.
    let held = |config: &Config| match config {
        Config::Line(line) => line.max_packets(&Device::default()).saturating_add(ARRIVING),
        _ => 0,
    };
    let held = held(&request.forward).max(held(&request.backward));
    settings.tuning.queue_length = Some(held.max(LINE_LEAST));
    (settings.upload, settings.download) = (Some(request.forward), Some(request.backward));
    let mut daemon = Daemon::new(|notice| crate::say!("simnel: {notice}")).into_diagnostic()?;
    daemon.up(settings).into_diagnostic()?;
    daemon.run(None).into_diagnostic()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understood(words: &[String]) -> miette::Result<Request<'_>> {
        understand(words, &(2..2 + words.len()).collect::<Vec<_>>())
    }

    #[test]
    fn a_line_is_on_one_interface_unless_another_is_named() {
        let words = |words: &str| words.split(' ').map(String::from).collect::<Vec<_>>();
        let line = |words: &str| qdisc::parse(&format!("line {words}")).unwrap();
        let one = words("rate 3mbit delay 5ms reverse rate 20mbit");
        assert_eq!(
            understood(&one).unwrap(),
            Request {
                other: None,
                forward: line("rate 3mbit delay 5ms"),
                backward: line("rate 20mbit delay 5ms"),
            }
        );
        let two = words("eth1 delay 5ms");
        let both = line("delay 5ms");
        assert_eq!(
            understood(&two).unwrap(),
            Request { other: Some("eth1"), forward: both.clone(), backward: both }
        );
        assert!(understood(&words("eth1")).is_err());
        let error = understood(&words("eth1 rote 3mbit")).unwrap_err().to_string();
        assert!(error.contains("`rote`"), "{error}");
        for (said, expected) in [
            ("eth1 rate 3", "`rate 3` is 3 bits per second"),
            ("delay 5ms reverse rate 20", "`rate 20` is 20 bits per second"),
            ("rate 3mbit reverse", "nothing follows `reverse`"),
            ("delay nan", "`nan` (word 4)"),
            ("eth1 rate 3mbit dlay 4ms", "`dlay` (word 6) is not a keyword of line; did you mean"),
            ("eth1 rate", "`rate` (word 4) must be followed by"),
            ("delay 4ms reverse rate", "`rate` (word 6) must be followed by"),
            ("delay 4ms reverse rte 3mbit", "`rte` (word 6) is not"),
        ] {
            let error = understood(&words(said)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
