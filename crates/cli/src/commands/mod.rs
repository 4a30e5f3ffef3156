//! The commands, one file each.
//!
//! A new one is a file with `Args` and `run`, and three lines here, or in `lab` if the gateway can
//! do without it. `run` writes its result to `out`; what goes wrong is a [`miette::Report`] that
//! names the thing and the fix.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use miette::IntoDiagnostic;
use simnel_core::Span;
use simnel_gateway::trial::{LONGEST, SHORTEST};
use simnel_gateway::{User, DEFAULT_CONTROL_DIR};

mod auto;
mod change;
mod check;
mod daemon;
mod down;
mod import;
mod keep;
#[cfg(feature = "lab")]
pub mod lab;
mod link;
mod record;
mod rules;
mod serve;
mod show;
mod tc;
mod test;
#[cfg(feature = "top")]
mod top;
mod up;
mod way_out;
mod words;

/// The program's commands.
#[derive(clap::Subcommand)]
pub enum Command {
    Up(up::Args),
    Down(down::Args),
    Keep(keep::Args),
    Daemon(daemon::Args),
    Change(change::Args),
    Show(show::Args),
    Record(record::Args),
    Rules(rules::Args),
    Words(words::Args),
    Link(link::Args),
    Check(check::Args),
    Import(import::Args),
    Test(test::Args),
    Setup(auto::Args),
    Serve(serve::Args),
    #[cfg(feature = "top")]
    Top(top::Args),
    Tc(tc::Args),
    #[cfg(feature = "lab")]
    #[command(flatten)]
    Lab(lab::Command),
}

impl Command {
    /// Does it. The exit status is 1 where a check that was asked for failed.
    pub fn run(self, out: &mut dyn Write) -> miette::Result<ExitCode> {
        match self {
            Command::Up(args) => up::run(&args, out),
            Command::Down(args) => down::run(&args, out),
            Command::Keep(args) => keep::run(&args, out),
            Command::Daemon(args) => daemon::run(&args, out),
            Command::Change(args) => change::run(&args, out),
            Command::Show(args) => show::run(&args, out),
            Command::Record(args) => record::run(&args, out),
            Command::Rules(args) => rules::run(&args, out),
            Command::Words(args) => words::run(&args, out),
            Command::Link(args) => link::run(&args, out),
            Command::Check(args) => check::run(&args, out),
            Command::Import(args) => import::run(&args, out),
            Command::Test(args) => test::run(&args, out),
            Command::Setup(args) => auto::run(&args, out),
            Command::Serve(args) => serve::run(&args, out),
            #[cfg(feature = "top")]
            Command::Top(args) => top::run(&args, out),
            Command::Tc(args) => tc::run(&args, out),
            #[cfg(feature = "lab")]
            Command::Lab(command) => command.run(out),
        }
    }
}

/// The command line cannot be understood.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Misuse {
    message: String,
    help: Option<String>,
}

impl miette::Diagnostic for Misuse {
    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
}

/// The error that words of the command line, which `message` names, make no sense; exit status 2.
pub fn misuse(message: impl fmt::Display) -> miette::Report {
    Misuse { message: message.to_string(), help: None }.into()
}

/// As [`misuse`], with what to write instead.
pub fn misuse_with_help(message: impl fmt::Display, help: impl fmt::Display) -> miette::Report {
    Misuse { message: message.to_string(), help: Some(help.to_string()) }.into()
}

/// Places of the `words` of a command on the command line, where options may stand between them.
/// The command's own name has place 0.
fn places<'a>(words: impl IntoIterator<Item = &'a String>) -> Vec<usize> {
    let typed = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    places_among(&typed.collect::<Vec<_>>(), words)
}

fn places_among<'a>(typed: &[String], words: impl IntoIterator<Item = &'a String>) -> Vec<usize> {
    let mut next = 1;
    let place = |word: &String| {
        let skipped = typed.iter().skip(next).position(|one| one == word).unwrap_or(0);
        next += skipped + 1;
        next - 1
    };
    words.into_iter().map(place).collect()
}

/// Places of what spaces divide the `words` into, each that of its word.
fn places_inside(words: &[impl AsRef<str>], places: &[usize]) -> Vec<usize> {
    let both = words.iter().zip(places);
    both.flat_map(|(word, place)| word.as_ref().split_whitespace().map(|_| *place)).collect()
}

/// An error if one of the `words`, which have these `places`, is empty: an unset variable of a
/// script.
fn none_empty(words: &[String], places: &[usize]) -> miette::Result<()> {
    match words.iter().zip(places).find(|(word, _)| word.trim().is_empty()) {
        None => Ok(()),
        Some((_, place)) => Err(misuse_with_help(
            format!("word {} is empty", place + 1),
            "leave it out, or see whether a variable is set that was meant",
        )),
    }
}

/// `path` as a word of a shell's command.
fn quoted(path: &Path) -> String {
    simnel_gateway::import::quoted(&path.display().to_string())
}

/// True if the command line could not be understood.
pub fn is_misuse(report: &miette::Report) -> bool {
    #[cfg(feature = "lab")]
    if lab::is_misuse(report) {
        return true;
    }
    report.is::<Misuse>()
}

/// An interface's name, for clap.
fn interface_name(name: &str) -> Result<String, simnel_gateway::Error> {
    simnel_gateway::check_name(name).map(|()| name.to_owned())
}

/// The time of a trial, for clap: `90s`, `10m`, `1h`.
fn trial_time(word: &str) -> Result<Span, String> {
    let seconds = |unit: &str, seconds: u64| {
        let number = word.strip_suffix(unit)?.parse::<u64>().ok()?;
        number.checked_mul(seconds).filter(|all| *all <= LONGEST.as_micros() / 1_000_000)
    };
    let found = seconds("h", 3600).or_else(|| seconds("m", 60)).or_else(|| seconds("s", 1));
    let span = found.map(Span::from_secs).filter(|span| *span >= SHORTEST);
    span.ok_or_else(|| "a time from 1s to 168h, for example 90s, 10m, 1h".to_owned())
}

/// A time as people read it.
fn duration(span: Span) -> String {
    match span.as_micros().div_ceil(1_000_000) {
        seconds @ 0..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// User of the processes that stay.
#[derive(clap::Args)]
pub struct Owner {
    /// User, by name or number, of what root starts here, and of its directory [default: in
    /// /run/simnel the account `simnel`, where there is one].
    #[arg(long, value_name = "NAME", value_parser = User::named)]
    user: Option<User>,
}

impl Owner {
    /// The user that was named, or that of `directory` without a word.
    fn or_default(&self, directory: &Path) -> Option<User> {
        self.user.or_else(|| User::by_default(directory))
    }
}

/// Place where running gateways are found.
#[derive(clap::Args)]
pub struct Control {
    /// Directory of locks and control sockets; another one makes another set of gateways.
    #[arg(long = "control-dir", value_name = "DIR", default_value = DEFAULT_CONTROL_DIR)]
    directory: PathBuf,
}

impl Control {
    /// The interface that was said, or all that have a control socket.
    fn interfaces(&self, said: Option<&str>) -> miette::Result<Vec<String>> {
        match said {
            Some(name) => Ok(vec![name.to_owned()]),
            None => simnel_gateway::control::interfaces(&self.directory).into_diagnostic(),
        }
    }
}

/// Said where no interface has a daemon, and none is shaped by the kernel.
const NOTHING: &str = "nothing is shaped here: `simnel up IFACE download RATE upload RATE` begins";

/// Writing the result failed.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the result")]
struct OutputFailed(#[source] io::Error);

impl miette::Diagnostic for OutputFailed {}

/// Wraps an error of writing to `out`.
pub fn output_failed(error: io::Error) -> miette::Report {
    OutputFailed(error).into()
}

/// True if the reader of our output went away, as `head` does: not an error.
pub fn is_broken_pipe(report: &miette::Report) -> bool {
    report
        .downcast_ref::<OutputFailed>()
        .is_some_and(|OutputFailed(error)| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_what_was_typed() {
        let words = |line: &str| line.split(' ').map(String::from).collect::<Vec<_>>();
        for (typed, said, expected) in [
            ("up v0 fq_codle", "v0 fq_codle", &[1, 2][..]),
            ("up --control-dir sfq v0 sfq limt", "v0 sfq limt", &[3, 4, 5]),
            ("up v0 --anyway sfq --for=1m limt", "v0 sfq limt", &[1, 3, 5]),
            ("up -- up up", "up up", &[2, 3]),
            // Words that were not readable are counted on.
            ("up ? ?", "a b", &[1, 2]),
        ] {
            assert_eq!(places_among(&words(typed), &words(said)), expected, "{typed}");
        }
        let (words, places) = (words("sfq limit 9"), [2, 4, 5]);
        assert_eq!(places_inside(&words, &places), places);
        assert_eq!(places_inside(&["sfq limit", "9"], &[2, 4]), [2, 2, 4]);
    }

    #[test]
    fn paths_are_words_of_a_shell() {
        for (path, word) in [
            ("/var/rec/evening.upload.pcap", "/var/rec/evening.upload.pcap"),
            ("an evening", "'an evening'"),
            ("$HOME/it's", r"'$HOME/it'\''s'"),
            ("", "''"),
        ] {
            assert_eq!(quoted(Path::new(path)), word);
        }
    }
}
