//! `simnel change`: other settings for a running interface, without losing a queued packet.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use miette::IntoDiagnostic;
use simnel_core::qdisc::{self, Config};
use simnel_core::Span;
use simnel_gateway::control::{Client, Request};
use simnel_gateway::kernel::{self, Shaped};
use simnel_gateway::words::{changed, check_words, misgiving, names_discipline, settings_of, Said};
use simnel_gateway::{Direction, Error};

use super::{
    duration, interface_name, misuse, misuse_with_help, none_empty, places, places_inside,
    trial_time, Control,
};

/// Change one direction of a running interface; queued packets stay queued.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel change eth0 upload 8mbit\n  \
    simnel change eth0 download 40mbit diffserv4 nat\n  \
    simnel change eth0 upload ack-filter\n  \
    simnel change eth0 upload 8mbit fq_codel limit 1000\n  \
    simnel change eth0 upload 8mbit --for 1m        # and back, unless `simnel keep eth0`\n\n\
What is not named stays as it is. Another discipline's name begins from its defaults.")]
pub struct Args {
    /// The interface.
    #[arg(value_parser = interface_name)]
    interface: String,
    /// `download` or `upload`.
    direction: String,
    /// The new rate, the discipline's words, or both.
    #[arg(required = true, value_name = "[RATE] [QDISC WORDS]", allow_negative_numbers = true)]
    words: Vec<String>,
    /// On trial: the settings before come back after this time unless `simnel keep` is said.
    #[arg(long = "for", value_name = "TIME", value_parser = trial_time)]
    trial: Option<Span>,
    #[command(flatten)]
    control: Control,
}

/// Asks the daemon or the kernel.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    let places = places([&args.interface, &args.direction].into_iter().chain(&args.words));
    let places = &places[2..];
    none_empty(&args.words, places)?;
    let all = args.words.iter().chain([&args.direction]);
    if let Some(word) = all.into_iter().find(|word| ["lanes", "lanes-by"].contains(&word.as_str()))
    {
        let help = "end it with `simnel down`, and begin with `simnel up` and other lanes";
        return Err(misuse_with_help(format!("`{word}` cannot change while it runs"), help));
    }
    let is_range = |word: &&String| word.contains("..") || AUTORATE.contains(&word.as_str());
    if let Some(word) = args.words.iter().find(is_range) {
        return Err(misuse_with_help(format!("`{word}` cannot change while it runs"), RANGE));
    }
    let is_direction = |word: &&String| ["download", "upload"].contains(&word.as_str());
    if let Some(word) = args.words.iter().find(is_direction) {
        let what = format!("one direction at a time: `{word}` comes after `{}`", args.direction);
        let help = format!("a command of its own: simnel change {} {word} RATE", args.interface);
        return Err(misuse_with_help(what, help));
    }
    let direction = match args.direction.as_str() {
        "download" => Direction::Download,
        "upload" => Direction::Upload,
        other => {
            return Err(misuse(format!("`{other}` is no direction: say `download` or `upload`")));
        }
    };
    let is_rate = |word: &str| word == UNLIMITED || word.starts_with(|c: char| c.is_ascii_digit());
    let rate = args.words.first().map(String::as_str).filter(|word| is_rate(word));
    let behind = usize::from(rate.is_some());
    let words = &args.words[behind..];
    let places = places_inside(words, &places[behind..]);
    let words = words.join(" ");
    let said = Said { words: &words, places: &places, unguarded: false };
    // What is wrong whatever runs is said first, and what is a word of no discipline is wrong.
    let may_fit = names_discipline(&words) || begins_with_keyword(&words);
    if rate.is_some() || !may_fit {
        let early = if may_fit { Said::default() } else { said };
        settings_of(direction, rate.or(Some(UNLIMITED)), early).map_err(misuse)?;
    }
    if names_discipline(&words) {
        check_words(direction, said).map_err(misuse)?;
    }
    let mut running = Running::find(args)?;
    let present = running.words(direction)?;
    let config = match present {
        Some(ref present) => changed(direction, present, rate, said),
        None => settings_of(direction, rate, said),
    };
    let config = config.map_err(misuse)?;
    let stays = |present: &String| {
        qdisc::parse(present).is_ok_and(|present| present.rate() == config.rate())
    };
    if running.follows_line(direction) && !present.as_ref().is_some_and(stays) {
        let what = format!("the {direction} follows its line by autorate: its rate cannot be set");
        return Err(misuse_with_help(what, RANGE));
    }
    running.change(args, direction, &config)?;
    if let Some(span) = args.trial {
        let (interface, left) = (&args.interface, duration(span));
        let keep = format!("`simnel keep {interface}` keeps it");
        crate::say!("simnel: {interface}: {direction} as before in {left}; {keep}");
    }
    if let Some(warning) = misgiving(&args.interface, direction, &config) {
        crate::say!("simnel: warning: {warning}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The shaper of the interface.
enum Running {
    Daemon(Client),
    Kernel(Vec<Shaped>),
}

impl Running {
    fn find(args: &Args) -> miette::Result<Running> {
        match Client::connect(&args.control.directory, &args.interface) {
            Err(missing @ Error::NotUp { .. }) => {
                let shaped = kernel::shaped(Some(&args.interface)).into_diagnostic()?;
                if shaped.is_empty() {
                    return Err(missing).into_diagnostic();
                }
                Ok(Running::Kernel(shaped))
            }
            client => client.map(Running::Daemon).into_diagnostic(),
        }
    }

    /// True if the rate is autorate's.
    fn follows_line(&mut self, direction: Direction) -> bool {
        let Running::Daemon(client) = self else { return false };
        let report = client.ask(&Request::Show {}).ok().and_then(|reply| reply.autorate);
        report.is_some_and(|report| report.directions.iter().any(|one| one.direction == direction))
    }

    /// Words of the settings in force.
    fn words(&mut self, direction: Direction) -> miette::Result<Option<String>> {
        match self {
            Running::Daemon(client) => client.words(direction),
            Running::Kernel(all) => Shaped::find(all, direction).map(Shaped::words).transpose(),
        }
        .into_diagnostic()
    }

    fn change(&mut self, args: &Args, direction: Direction, config: &Config) -> miette::Result<()> {
        let directory = &args.control.directory;
        let words = config.to_string();
        match self {
            Running::Daemon(client) => match args.trial {
                Some(span) => client.try_out(direction, &words, Duration::from_nanos(span.0)),
                None => client.change(direction, &words),
            },
            Running::Kernel(all) => match (Shaped::find(all, direction), args.trial) {
                (Some(present), Some(span)) => kernel::try_out(directory, present, config, span),
                (Some(present), None) => kernel::change(present, config)
                    .and_then(|()| kernel::decide(directory, &args.interface, direction)),
                (None, _) => {
                    Err(Error::NoDirection { interface: args.interface.clone(), direction })
                }
            },
        }
        .into_diagnostic()
    }
}

/// Words of `up` for rates that follow the line.
const AUTORATE: [&str; 2] = ["autorate", "reflectors"];
/// The way to other ranges.
const RANGE: &str = "change the range in the file, or end it with `simnel down` and `up`";

/// The word for no limit.
const UNLIMITED: &str = "unlimited";

/// True if `words` begin with a keyword of some discipline.
fn begins_with_keyword(words: &str) -> bool {
    let first = words.split_whitespace().next();
    let is_keyword = |known: &qdisc::Discipline| {
        qdisc::keywords(known.name).any(|keyword| Some(keyword.word) == first)
    };
    qdisc::disciplines().iter().any(is_keyword)
}
