//! `simnel daemon`: the interfaces of the configuration file, for a service manager.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use miette::{miette, IntoDiagnostic};
use simnel_gateway::config::read;
use simnel_gateway::daemon::{Daemon, Interface};

use super::Owner;

/// Shape the interfaces of the configuration file; SIGHUP reads it again.
#[derive(clap::Args)]
pub struct Args {
    /// The configuration file.
    #[arg(long, default_value = "/etc/simnel/simnel.toml", value_name = "FILE")]
    config: PathBuf,
    #[command(flatten)]
    owner: Owner,
}

/// Runs the gateways.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    let all = read(&args.config).map_err(|error| {
        let help = "`simnel setup` and `simnel import` make one; `--config FILE` names another";
        match args.config.exists() {
            true => miette!("{error}"),
            false => miette!(help = help, "{error}"),
        }
    })?;
    let interfaces: Vec<Interface<'_>> = all.iter().map(Interface::of).collect();
    let say = |notice| crate::say!("simnel: {notice}");
    let mut daemon = Daemon::serving(&interfaces, args.owner.user, say).into_diagnostic()?;
    daemon.begin(all).into_diagnostic()?;
    daemon.run(Some(args.config.clone())).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
