//! `simnel serve`: a page, metrics and JSON about what runs; with `--test`, the peer of
//! `simnel test`.

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use miette::IntoDiagnostic;
use simnel_gateway::config;
use simnel_measure::server::{Limits, Server};
use simnel_measure::{wire, Peer};

use super::{misuse, misuse_with_help, Control};

/// Serve a page and metrics about what is shaped, or others' measurements of their lines.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel serve                                         # http://127.0.0.1:8730/ and /metrics\n  \
    simnel serve --listen 192.168.1.1 --token-file /etc/simnel/token\n  \
    simnel serve --history /var/lib/simnel/history       # of 24 hours and 30 days\n  \
    simnel serve --test                                  # for this machine only\n  \
    simnel serve --test --listen 0.0.0.0                 # for everybody who can reach it\n  \
    simnel serve --test --listen 192.0.2.1:9000 --token-file secret\n\n\
The page, its API (/api/openapi.json) and the metrics change nothing,\n\
unless --allow-changes is said. For that, and beyond loopback, they need a token\n\
(`?token=TOKEN` in the address). With --test, `simnel test --server\n\
HOST` measures from elsewhere: no privileges, one port, for TCP and UDP. Bounded:\n\
connections, sessions, their time and bytes; datagrams are answered only for sessions\n\
that were opened over TCP. Runs until a signal.")]
pub struct Args {
    /// Be the peer of `simnel test` instead.
    #[arg(long)]
    test: bool,
    /// Address and port; without it nobody else can connect [default: 127.0.0.1, port 8730; of the
    /// peer 7730].
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Option<String>,
    /// A file whose first line clients must know (`simnel test --token-file`).
    #[arg(long, value_name = "FILE")]
    token_file: Option<std::path::PathBuf>,
    /// Clients' sessions at a time.
    #[arg(long, value_name = "N", default_value_t = Limits::default().sessions as u64,
        value_parser = clap::value_parser!(u64).range(1..=Limits::default().connections as u64))]
    sessions: u64,
    /// Seconds that a session may last.
    #[arg(long, value_name = "SECONDS", default_value_t = 120,
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// A file in which the page's history survives restarts: 24 hours by the minute, 30 days by the
    /// half hour, some MB. Without it, history is in memory only.
    #[arg(long, value_name = "FILE", conflicts_with = "test")]
    history: Option<std::path::PathBuf>,
    /// Let who knows the token try settings out, keep them and take them back, over the API.
    #[arg(long, requires = "token_file", conflicts_with = "test")]
    allow_changes: bool,
    /// Ask no hosts for their names.
    #[arg(long, conflicts_with = "test")]
    no_mdns: bool,
    #[command(flatten)]
    control: Control,
}

/// Serves.
pub fn run(args: &Args, _: &mut dyn Write) -> miette::Result<ExitCode> {
    if !args.test {
        return page(args);
    }
    let listen = match &args.listen {
        Some(text) => Peer::find(text, wire::PORT).map_err(misuse)?,
        None => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), wire::PORT),
    };
    let token = args.token_file.as_deref().map(secret).transpose()?;
    let time = Duration::from_secs(args.seconds);
    let mut limits = Limits { sessions: args.sessions as usize, time, ..Limits::default() };
    if listen.ip().is_loopback() {
        // It carries in seconds what a line does in minutes, and nobody else can ask.
        limits.bytes = u64::MAX;
    }
    let server = Server::bind(listen, token, limits).into_diagnostic()?;
    let address = server.address();
    crate::say!("simnel: listening at {address}, TCP and UDP");
    if address.ip().is_loopback() {
        crate::say!("  only this machine can connect; --listen 0.0.0.0 lets others in");
    } else {
        let host = reachable(address);
        crate::say!("  `simnel test --server {host}` measures from elsewhere");
    }
    server.run();
    Ok(ExitCode::SUCCESS)
}

/// Address at which others find what listens at `address`. What listens at all addresses of a
/// machine has no one name, and is `HOST`.
fn reachable(address: SocketAddr) -> String {
    match address.ip().is_unspecified() {
        true => format!("HOST:{}", address.port()),
        false => address.to_string(),
    }
}

/// Port of the page.
#[cfg(feature = "lab")]
const PAGE: u16 = 8730;

#[cfg(not(feature = "lab"))]
fn page(_: &Args) -> miette::Result<ExitCode> {
    let help = "`simnel show -j` and `simnel serve --test` are here; the page is in the full build";
    Err(miette::miette!(help = help, "this build has no page"))
}

/// Serves the page, without any capability.
#[cfg(feature = "lab")]
fn page(args: &Args) -> miette::Result<ExitCode> {
    let listen = match &args.listen {
        Some(text) => Peer::find(text, PAGE).map_err(misuse)?,
        None => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PAGE),
    };
    let token = args.token_file.as_deref().map(secret).transpose()?;
    let control_dir = args.control.directory.clone();
    simnel_gateway::give_up_privileges().into_diagnostic()?;
    let settings = simnel_web::Settings {
        listen,
        token,
        control_dir,
        limits: simnel_web::Limits::default(),
        history: args.history.clone(),
        asks: !args.no_mdns,
        changes: args.allow_changes,
        notice: |text| crate::say!("simnel: {text}"),
    };
    let server = simnel_web::Server::bind(settings).into_diagnostic()?;
    let address = reachable(server.address());
    match &args.token_file {
        None => crate::say!("simnel: http://{address}/ , metrics at /metrics"),
        Some(file) => crate::say!(
            "simnel: http://{address}/?token=TOKEN , metrics at /metrics; TOKEN is the first line \
             of {}",
            file.display()
        ),
    }
    server.run().into_diagnostic()?;
    Ok(ExitCode::SUCCESS)
}

/// The first line of a file, for a server. Nobody is to guess it, and every client can send it, in
/// a header as well as in an address (RFC 3986, section 2.3).
fn secret(path: &std::path::Path) -> miette::Result<String> {
    const LEAST: usize = 8;
    let token = token(path)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    let what = match (token.chars().find(|c| !is_plain(*c)), token.chars().count()) {
        (Some(other), _) => {
            let other = other.escape_debug();
            format!(
                "has `{other}`, which not every client can send: letters, digits, -._~ are left"
            )
        }
        (None, LEAST..) => return Ok(token),
        (None, 1) => format!("has 1 character, of at least {LEAST}"),
        (None, count) => format!("has {count} characters, of at least {LEAST}"),
    };
    let path = path.display();
    let help = format!("for example: od -An -tx1 -N16 /dev/urandom | tr -d ' ' > {path}");
    Err(misuse_with_help(format!("the token in {path} {what}"), help))
}

/// The first line of a file.
pub(super) fn token(path: &std::path::Path) -> miette::Result<String> {
    let bytes = std::fs::File::open(path)
        .and_then(config::bytes)
        .map_err(|error| miette::miette!("cannot read {}: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    match text.lines().next().map(str::trim).filter(|line| !line.is_empty()) {
        Some(line) => Ok(line.to_owned()),
        None => Err(misuse(format!("{} has no token in its first line", path.display()))),
    }
}
