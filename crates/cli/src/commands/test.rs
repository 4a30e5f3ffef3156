//! `simnel test`: the user's own line, idle and under load.

use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
#[cfg(feature = "lab")]
use std::time::SystemTime;

use miette::IntoDiagnostic;
use simnel_measure::{
    iperf3, irtt, measure, wire, Error, Grade, Options, Peer, Progress, Report, Way,
};

#[cfg(feature = "lab")]
use super::lab::{line_page, place};
use super::{misuse, misuse_with_help, output_failed, serve};
use crate::terminal;

/// Peers that do without `--server`.
#[cfg(feature = "network-quality")]
const OTHERS: [&str; 3] = ["iperf3", "irtt", "network_quality"];
#[cfg(not(feature = "network-quality"))]
const OTHERS: [&str; 2] = ["iperf3", "irtt"];

/// Measure the line: delay idle and under load, throughput, loss, a grade.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel test --server 192.0.2.1             # `simnel serve --test` runs there\n  \
    simnel test --server 192.0.2.1 --load both --seconds 15\n  \
    simnel test --server 192.0.2.1 --json > before.json\n  \
    simnel test --server 192.0.2.1 --report line.html\n  \
    simnel test --iperf3 192.0.2.1 --irtt 192.0.2.1     # against those servers\n  \
    simnel test --network-quality mensura.example.org   # HTTP/2, RPM as the draft has it\n\n\
Sends an echo every 20 ms, and beside it nothing, downloads, uploads, and both, with four\n\
TCP connections each. The first two seconds of each load, in which TCP starts, are left\n\
out. The router at home is asked as well, so that WiFi is told from the line. Other\n\
traffic falsifies the result. Needs no privileges; takes half a minute.")]
pub struct Args {
    /// The peer: `simnel serve --test` there.
    #[arg(long, value_name = "HOST[:PORT]", conflicts_with_all = ["iperf3", "irtt"],
        required_unless_present_any = OTHERS)]
    server: Option<String>,
    /// Instead: an iperf3 server for load; without --irtt its host answers echoes.
    #[arg(long, value_name = "HOST[:PORT]")]
    iperf3: Option<String>,
    /// Instead: an irtt server for echoes; without --iperf3 there is no load.
    #[arg(long, value_name = "HOST[:PORT]")]
    irtt: Option<String>,
    /// Instead: a server of networkQuality's convention, by its host or its configuration's URL.
    #[cfg(feature = "network-quality")]
    #[arg(long, value_name = "HOST|URL", conflicts_with_all = ["server", "iperf3", "irtt"])]
    network_quality: Option<String>,
    /// Certificates by which its own is checked, as PEM [default: the system's].
    #[cfg(feature = "network-quality")]
    // What conflicts with a requirement lifts it.
    #[arg(long, value_name = "FILE", requires = "network_quality",
        conflicts_with_all = ["server", "iperf3", "irtt"])]
    ca: Option<PathBuf>,
    /// A file whose first line is the token that the server wants.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Loads, separated by commas: download, upload, both.
    #[arg(long, value_name = "WAYS", default_value = "download,upload,both")]
    load: String,
    /// Seconds of each load that count.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u64).range(1..=60))]
    seconds: u64,
    /// TCP connections each way.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=16))]
    flows: u64,
    /// The router at home; `none` to leave it alone [default: the default route's, if private].
    #[arg(long, value_name = "ADDRESS")]
    gateway: Option<String>,
    /// Print one JSON object.
    #[arg(short, long)]
    json: bool,
    /// A page with charts, to be shared: a path that ends in .html, or a folder for pages named by
    /// their time [default: no page].
    #[cfg(feature = "lab")]
    #[arg(long, value_name = "PATH", alias = "html")]
    report: Option<PathBuf>,
}

impl Args {
    fn peer(&self) -> miette::Result<Peer> {
        let find = |text: &Option<String>, port| {
            text.as_deref().map(|text| Peer::find(text, port)).transpose().map_err(misuse)
        };
        #[cfg(feature = "network-quality")]
        if let Some(text) = &self.network_quality {
            return Peer::network_quality(text, self.ca.as_deref()).into_diagnostic();
        }
        let token = self.token_file.as_deref().map(serve::token).transpose()?;
        let iperf3 = find(&self.iperf3, iperf3::PORT)?;
        Ok(match (find(&self.server, wire::PORT)?, iperf3, find(&self.irtt, irtt::PORT)?) {
            (Some(server), ..) => Peer::simnel_with(server, token),
            (None, iperf3, Some(irtt)) => Peer::irtt(irtt, iperf3),
            (None, Some(iperf3), None) => Peer::iperf3(iperf3),
            (None, None, None) => return Err(misuse("no peer is named: --server HOST")),
        })
    }

    fn options(&self) -> miette::Result<Options> {
        let peer = self.peer()?;
        let gateway = match self.gateway.as_deref() {
            None => simnel_gateway::home_router().map(IpAddr::V4),
            Some("none") => None,
            Some(text) => Some(text.parse().map_err(|_| {
                let help = "an address such as 192.168.1.1, or none";
                misuse_with_help(format!("`{text}` is no address"), help)
            })?),
        };
        Ok(Options {
            flows: self.flows as usize,
            ways: ways(&self.load)?,
            gateway: gateway.filter(|gateway| *gateway != peer.address().ip()),
            ..Options::new(peer).lasting(Duration::from_secs(self.seconds))
        })
    }
}

fn ways(text: &str) -> miette::Result<Vec<Way>> {
    let way = |word: &str| {
        Way::ALL.into_iter().find(|way| way.name() == word).ok_or_else(|| {
            let help = "download, upload, both, or several of them separated by commas";
            misuse_with_help(format!("`{word}` is no load"), help)
        })
    };
    text.split(',').map(|word| way(word.trim())).collect()
}

/// Measures and prints.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    let options = args.options()?;
    #[cfg(feature = "lab")]
    let usual = line_page::usual(SystemTime::now());
    #[cfg(feature = "lab")]
    let page = place::page("test", args.report.as_deref(), usual, false, &[])?;
    let measured = with_progress(&options);
    let report: &Report = match &measured {
        Ok(report) => report,
        Err(Error::Cut { report, .. }) => report,
        Err(_) => return measured.map(|_| ExitCode::SUCCESS).into_diagnostic(),
    };
    if args.json {
        writeln!(out, "{}", report.to_json()).map_err(output_failed)?;
    } else {
        print(report)?;
    }
    // A page that cannot be written takes no result away.
    #[cfg(feature = "lab")]
    if let Some(page) = page {
        page.store(line_page::page(report))?;
        if !args.json {
            writeln!(out, "page: {}", page.path.display()).map_err(output_failed)?;
        }
    }
    measured.map(|_| ExitCode::SUCCESS).into_diagnostic()
}

/// Measures, and says on a terminal how far it is.
pub(super) fn with_progress(options: &Options) -> Result<Report, Error> {
    let shown = io::stderr().is_terminal();
    let mut progress = |Progress { what, elapsed, total }: Progress| {
        if shown {
            eprint!("\r\x1b[K{what} ({} of about {} s)", elapsed.as_secs(), total.as_secs());
        }
    };
    let report = measure(options, &mut progress);
    if shown {
        eprint!("\r\x1b[K");
    }
    report
}

/// Prints a result with its grade in colour.
pub(super) fn print(report: &Report) -> miette::Result<()> {
    let colours = terminal::colours();
    let grade = |grade: Grade| match colours {
        true => format!("{}{}\x1b[0m", grade.colour(), grade.name()),
        false => grade.name().to_owned(),
    };
    // Its colours are ours, and nothing in it is others' words.
    io::stdout().write_all(report.render(grade).as_bytes()).map_err(output_failed)
}
