//! `simnel lab`: the lab in a browser, from the files that `make site` has made.

use std::error::Error;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use miette::{miette, IntoDiagnostic};

/// Serve the lab's pages to a browser on this machine, and open it.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel lab                          # target/site, which `make site` makes\n  \
    simnel lab --no-open --port 8000 /srv/simnel-lab\n\n\
Only hands out files: what is simulated is simulated in the page. Nobody else can connect.\n\
Any static host serves the same folder as well. Runs until a signal.")]
pub struct Args {
    /// Folder of the pages.
    #[arg(default_value = "target/site")]
    folder: PathBuf,
    /// Port on 127.0.0.1; 0 is any.
    #[arg(long, value_name = "PORT", default_value_t = 8740)]
    port: u16,
    /// Only serve; open no browser.
    #[arg(long)]
    no_open: bool,
}

/// Serves.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    let folder = match simnel_web::Folder::bind(&args.folder, args.port) {
        Err(error @ simnel_web::Error::Listen(..)) => {
            let reason = error.source().map(|source| format!(": {source}")).unwrap_or_default();
            let help = "another port: --port PORT; 0 is any that is free";
            return Err(miette!(help = help, "{error}{reason}"));
        }
        folder => folder.into_diagnostic()?,
    };
    let address = format!("http://{}/", folder.address().into_diagnostic()?);
    crate::say!("simnel: {address}");
    // Where nobody looks there is nothing to open.
    if !args.no_open && std::io::stderr().is_terminal() {
        let opened = Command::new("xdg-open")
            .arg(&address)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        if opened.is_err() {
            crate::say!("  no browser could be opened (xdg-open): go there yourself");
        }
    }
    folder.run().into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}
