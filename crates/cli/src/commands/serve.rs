//! `simnel serve --test`: the peer of `simnel test`.
//!
//! The page with charts is to be `simnel serve` without `--test`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use miette::IntoDiagnostic;
use simnel_measure::server::{Limits, Server};
use simnel_measure::{wire, Peer};

use super::misuse;

/// Serve others' measurements of their lines.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel serve --test                                  # for this machine only\n  \
    simnel serve --test --listen 0.0.0.0                 # for everybody who can reach it\n  \
    simnel serve --test --listen 192.0.2.1:9000 --token-file secret\n\n\
Then `simnel test --server HOST` elsewhere. Needs no privileges; one port, for TCP and\n\
UDP. Bounded: connections, sessions, their time and bytes; datagrams are answered only\n\
for sessions that were opened over TCP. Runs until a signal.")]
pub struct Args {
    /// Be the peer of `simnel test`.
    #[arg(long, required = true)]
    test: bool,
    /// Address and port; without it nobody else can connect [default: 127.0.0.1:7730].
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Option<String>,
    /// A file whose first line clients must know (`simnel test --token-file`).
    #[arg(long, value_name = "FILE")]
    token_file: Option<std::path::PathBuf>,
    /// Clients' sessions at a time.
    #[arg(long, value_name = "N", default_value_t = Limits::default().sessions)]
    sessions: usize,
    /// Seconds that a session may last.
    #[arg(long, value_name = "SECONDS", default_value_t = 120,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
}

/// Serves.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    let listen = match &args.listen {
        Some(text) => Peer::find(text, wire::PORT).map_err(misuse)?,
        None => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), wire::PORT),
    };
    let token = args.token_file.as_deref().map(token).transpose()?;
    let time = Duration::from_secs(args.seconds);
    let limits = Limits { sessions: args.sessions, time, ..Limits::default() };
    let server = Server::bind(listen, token, limits).into_diagnostic()?;
    let address = server.address();
    crate::say!("simnel: listening at {address}, TCP and UDP");
    if address.ip().is_loopback() {
        crate::say!("  only this machine can connect; --listen 0.0.0.0 lets others in");
    } else {
        crate::say!("  `simnel test --server {address}` measures from elsewhere");
    }
    server.run();
    Ok(ExitCode::SUCCESS)
}

/// The first line of a file.
pub(super) fn token(path: &std::path::Path) -> miette::Result<String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| miette::miette!("cannot read {}: {error}", path.display()))?;
    match text.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(misuse(format!("{} has no token in its first line", path.display()))),
    }
}
