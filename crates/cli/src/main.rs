//! `simnel`: the command line.
//!
//! Words, rates, times and sizes are written as `tc` writes them. Help, man pages and shell
//! completions come from one definition, the types in [`commands`]. Exit status: 0 for success, 1
//! for an error or for a check that failed, 2 for a command line that cannot be understood.

#![forbid(unsafe_code)]

mod commands;
mod terminal;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::Parser;

use terminal::Tame;

/// Queue management for home gateways: CAKE and its peers, live and measured.
#[derive(Parser)]
#[command(name = "simnel", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    #[cfg(feature = "lab")]
    commands::lab::completions::answer();
    // Words that are not understood are repeated in the error.
    let cli = Cli::try_parse().or_else(|_| Cli::try_parse_from(terminal::printable_arguments()));
    let cli = match (cli, negative()) {
        (Ok(cli), _) => cli,
        (Err(error), Some(word)) if error.kind() == ErrorKind::UnknownArgument => {
            let message =
                format!("`{word}` cannot be used: no rate, time, size or number is negative");
            terminal::print_error(&commands::misuse(message));
            return ExitCode::from(2);
        }
        (Err(error), _) => error.exit(),
    };
    let mut out = Tame::new(io::stdout().lock());
    let result = cli.command.run(&mut out);
    match result.and_then(|status| out.flush().map(|()| status).map_err(commands::output_failed)) {
        Ok(status) => status,
        Err(error) if commands::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            terminal::print_error(&error);
            if commands::is_misuse(&error) {
                ExitCode::from(2)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// A word of the command line that is a negative value with a unit, which is no option.
fn negative() -> Option<String> {
    let mut words = terminal::printable_arguments().filter_map(|word| word.into_string().ok());
    words.find(|word| {
        word.strip_prefix('-').is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    /// Columns beyond which help is wrapped.
    const COLUMNS: usize = 100;

    fn wrapped(command: &clap::Command) -> Vec<String> {
        let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let long = text.lines().filter(|line| line.chars().count() > COLUMNS).map(String::from);
        long.chain(command.get_subcommands().flat_map(wrapped)).collect()
    }

    fn with_json(command: &clap::Command) -> Vec<(String, Option<char>)> {
        let json = command.get_arguments().filter(|one| one.get_long() == Some("json"));
        let own = json.map(|one| (command.get_name().to_string(), one.get_short()));
        own.chain(command.get_subcommands().flat_map(with_json)).collect()
    }

    #[test]
    fn json_has_one_short_form_in_every_command() {
        let all = with_json(&Cli::command());
        assert!(all.len() > 5 && all.iter().all(|(_, short)| *short == Some('j')), "{all:?}");
    }

    #[test]
    fn an_example_of_the_help_is_one_line_that_can_be_copied() {
        assert_eq!(wrapped(&Cli::command()), Vec::<String>::new());
    }
}
