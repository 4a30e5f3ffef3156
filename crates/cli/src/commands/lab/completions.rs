//! `simnel completions SHELL`: a script that asks this program what may come next. Commands and
//! options come from the definition of the help; words, interfaces and experiments are those that
//! there are.

use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCandidates, CompletionCandidate, Shell};
use miette::miette;
use simnel_core::qdisc;
use simnel_lab::experiments::paper;

use super::output_failed;

/// The variable by which a shell's script asks.
const ASKED: &str = "COMPLETE";

/// Print a completion script for a shell.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  \
    simnel completions bash > /etc/bash_completion.d/simnel")]
pub struct Args {
    /// The shell.
    shell: Shell,
}

/// Writes the script to `out`.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let (name, shells) = (args.shell.to_string(), Shells::builtins());
    let shell = shells.completer(&name).ok_or_else(|| miette!("no completions for {name}"))?;
    shell.write_registration(ASKED, "simnel", "simnel", "simnel", out).map_err(output_failed)?;
    Ok(ExitCode::SUCCESS)
}

/// Answers a shell that asks what may come next, and ends; else does nothing.
pub fn answer() {
    CompleteEnv::with_factory(command).var(ASKED).complete();
}

/// The command line, with what may stand where the definition leaves it open.
fn command() -> clap::Command {
    type Candidates = fn() -> Vec<CompletionCandidate>;
    // Of one command in their order: each goes to its end.
    let open: [(&str, &str, Candidates); 12] = [
        ("up", "words", words),
        ("demo", "words", words),
        ("change", "interface", interfaces),
        ("change", "direction", directions),
        ("change", "words", words),
        ("down", "interface", interfaces),
        ("show", "interface", interfaces),
        ("link", "interface", interfaces),
        ("link", "words", line),
        ("tc", "words", traffic_control),
        ("words", "discipline", disciplines),
        ("paper", "experiments", experiments),
    ];
    open.into_iter().fold(crate::Cli::command(), |command, (name, argument, candidates)| {
        let add = |argument: clap::Arg| argument.add(ArgValueCandidates::new(candidates));
        command.mut_subcommand(name, |command| command.mut_arg(argument, add))
    })
}

fn with_help(word: &'static str, help: &'static str) -> CompletionCandidate {
    CompletionCandidate::new(word).help(Some(help.into()))
}

/// The command and its whole words so far. The shell gives those of its command line after `--`,
/// the last one perhaps in part.
fn said() -> Vec<String> {
    let mut said: Vec<String> = std::env::args().skip_while(|word| word != "--").skip(2).collect();
    said.pop();
    said
}

/// Words of `simnel up` beside rates and disciplines.
const OF_UP: [(&str, &str); 4] = [
    ("autorate", "rates are ranges, and follow the line"),
    ("reflectors", "addresses that are asked for echoes"),
    ("lanes", "threads that share each direction's rate"),
    ("lanes-by", "how packets are spread over them: address, cpu"),
];

/// The interface, then directions, disciplines, and keywords of the one that was named last.
fn words() -> Vec<CompletionCandidate> {
    let said = said();
    let [command, said @ ..] = said.as_slice() else { return Vec::new() };
    if command == "up" && said.is_empty() {
        return interfaces();
    }
    let named = said.iter().rev().find_map(|word| qdisc::discipline(word));
    let keywords = qdisc::keywords(named.map_or("cake", |known| known.name))
        .map(|keyword| with_help(keyword.word, keyword.meaning));
    let mut candidates: Vec<_> = keywords.collect();
    if named.is_none() {
        candidates.extend(directions().into_iter().chain(disciplines()));
        if command == "up" {
            let of_up = OF_UP.map(|(word, help)| with_help(word, help));
            candidates.extend(of_up);
        }
    }
    candidates
}

/// A verb, a place, and after `simnel` disciplines and their keywords.
fn traffic_control() -> Vec<CompletionCandidate> {
    const VERBS: [&str; 5] = ["add", "change", "replace", "del", "show"];
    const PLACES: [&str; 5] = ["dev", "root", "parent", "handle", "simnel"];
    let said = said();
    let said: Vec<&str> =
        said.iter().skip(1).map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    match said.as_slice() {
        [] => vec![CompletionCandidate::new("qdisc")],
        [_] => VERBS.map(CompletionCandidate::new).into(),
        [.., "dev"] => interfaces(),
        said if said.contains(&"simnel") => words(),
        _ => PLACES.map(CompletionCandidate::new).into(),
    }
}

/// Description of a line.
fn line() -> Vec<CompletionCandidate> {
    let keywords = qdisc::keywords("line").map(|keyword| with_help(keyword.word, keyword.meaning));
    keywords.chain([with_help("reverse", "what follows is the other direction's")]).collect()
}

fn directions() -> Vec<CompletionCandidate> {
    ["download", "upload"].map(CompletionCandidate::new).into()
}

fn disciplines() -> Vec<CompletionCandidate> {
    qdisc::disciplines().iter().map(|known| with_help(known.name, known.about)).collect()
}

fn interfaces() -> Vec<CompletionCandidate> {
    let entries = std::fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    entries.map(|entry| CompletionCandidate::new(entry.file_name())).collect()
}

fn experiments() -> Vec<CompletionCandidate> {
    paper::experiments().iter().map(|one| with_help(one.id, one.title)).collect()
}
