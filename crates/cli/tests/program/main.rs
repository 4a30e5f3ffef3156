//! The program from outside: what it prints, writes and refuses.

mod arms;
mod bad_arguments;
mod cli;
mod openwrt;
mod paper;
mod plot;
mod serve;
mod sim;
mod sweep;
mod top;

use std::path::Path;
use std::process::{Command, Output};

const SIMNEL: &str = env!("CARGO_BIN_EXE_simnel");

fn simnel(args: &[&str]) -> Output {
    Command::new(SIMNEL).args(args).output().expect("the program starts")
}

/// In a directory of its own.
fn simnel_in(directory: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(SIMNEL);
    command.args(args).current_dir(directory);
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

/// An error that is wrapped where the line is full, as one line without its margin.
fn unwrapped(error: &str) -> String {
    error.split_whitespace().filter(|&word| word != "│").collect::<Vec<_>>().join(" ")
}
