//! `simnel daemon`: the interfaces of the configuration file, for a service manager.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
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
    // Whoever serves reads the file again.
    let user = match all.first().filter(|_| is_for_all(&args.config)) {
        Some(first) => args.owner.or_default(&first.control_dir),
        None => args.owner.user,
    };
    let mut daemon = Daemon::serving(&interfaces, user, say).into_diagnostic()?;
    daemon.begin(all).into_diagnostic()?;
    daemon.run(Some(args.config.clone())).into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}

/// True if any user may read the file at `path`.
fn is_for_all(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let has = |path: &Path, right: u32| path.metadata().is_ok_and(|it| it.mode() & right != 0);
    has(&path, 0o004) && path.ancestors().skip(1).all(|directory| has(directory, 0o001))
}
