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
    // Words that are not understood are repeated in the error.
    let cli = Cli::try_parse().or_else(|_| Cli::try_parse_from(terminal::printable_arguments()));
    let cli = cli.unwrap_or_else(|error| error.exit());
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_command_line_is_sound() {
        Cli::command().debug_assert();
    }
}
