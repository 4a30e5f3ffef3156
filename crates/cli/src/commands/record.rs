//! `simnel record`: the headers of what arrives at the queues, in files that `simnel replay` reads.
//!
//! Whoever shapes tells of them: the daemon of its own queues, the kernel by copies.

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use miette::{miette, IntoDiagnostic};
use simnel_core::qdisc;
use simnel_core::tc::units::{self, Digits};
use simnel_core::Span;
use simnel_gateway::control::Client;
use simnel_gateway::kernel::{self, Arrivals, Shaped};
use simnel_gateway::link::stop_on_signals;
use simnel_gateway::record::{Bounds, Files, Recorded};
use simnel_gateway::{Direction, Error};

use super::{interface_name, misuse_with_help, output_failed, quoted, trial_time, Control};

/// Time between two requests: the daemon keeps some 100,000 packets a second in between.
const AGAIN: Duration = Duration::from_millis(50);

/// Record the headers of a line's packets, as they arrive at the queue: what would another
/// discipline have done with them?
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    simnel record wan evening --for 4h\n  \
    simnel replay evening.upload.pcap --rate 10mbit --qdisc fq_codel --qdisc cake --summary\n  \
    simnel record wan always --rotate --size 2g --anonymous --direction upload\n\n\
FILE.upload.pcap and FILE.download.pcap hold times, lengths and headers up to TCP's or UDP's,\n\
no payload; tcpdump and Wireshark read them, too. They can be read at any time, also if this\n\
command is killed. With --rotate the newest is always there: a full file becomes FILE....pcap.1\n\
in place of the one before it. Ends with Ctrl-C, after --for, or when --size is reached.\n\n\
What the kernel shapes is recorded as well, by this command itself: it needs CAP_NET_ADMIN and\n\
CAP_NET_RAW then, and a kernel with tap devices (`modprobe tun`).")]
pub struct Args {
    /// The interface.
    #[arg(value_parser = interface_name)]
    interface: String,
    /// Beginning of the files' names.
    file: PathBuf,
    /// One direction only [default: those that are shaped].
    #[arg(long, value_parser = directions())]
    direction: Option<Direction>,
    /// End after this time.
    #[arg(long = "for", value_name = "TIME", value_parser = trial_time)]
    time: Option<Span>,
    /// Bytes of all files together.
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = size)]
    size: u64,
    /// Go on when a file is full: the older half makes room.
    #[arg(long)]
    rotate: bool,
    /// Put other addresses in place of those that there are; nobody can tell which were which.
    #[arg(long)]
    anonymous: bool,
    #[command(flatten)]
    control: Control,
}

fn directions() -> impl TypedValueParser<Value = Direction> {
    PossibleValuesParser::new(["upload", "download"]).map(|name| match name.as_str() {
        "upload" => Direction::Upload,
        _ => Direction::Download,
    })
}

fn size(word: &str) -> Result<u64, String> {
    const LEAST: u32 = 64 * 1024;
    match units::size(word) {
        Ok(size) if size >= LEAST => Ok(size.into()),
        _ => Err("a size from 64k to 3g, for example 200m".into()),
    }
}

/// Records until the end.
pub fn run(args: &Args, out: &mut dyn Write) -> miette::Result<ExitCode> {
    if args.file.is_dir() {
        let example = args.file.join(&args.interface);
        return Err(misuse_with_help(
            format!("`{}` is a folder", args.file.display()),
            format!("say how the files' names begin, for example {}", example.display()),
        ));
    }
    let (source, settings) = Source::open(args)?;
    let directions: Vec<Direction> = settings.iter().map(|(direction, _)| *direction).collect();
    let bounds = Bounds { size: args.size, rotate: args.rotate };
    let files = Files::create(&args.file, &directions, bounds, args.anonymous);
    let files = files.map_err(|error| {
        let help = match error.kind() {
            ErrorKind::AlreadyExists => "say another name, or remove what is there",
            _ => "say a name in a folder that is there, may be written to, and has room",
        };
        miette!(help = help, "cannot record: {error}")
    })?;
    for (direction, path) in files.paths() {
        crate::say!("simnel: {}: the {direction} goes to {}", args.interface, path.display());
    }
    let stop = stop_on_signals().into_diagnostic()?;
    let lost = directions.iter().map(|direction| (*direction, 0)).collect();
    let (asked, missed) = (Instant::now(), Duration::ZERO);
    let mut recording = Recording { args, source, files, lost, asked, missed };
    let ended = recording.go_on(&stop);
    recording.tell(&settings, out)?;
    ended
}

/// Whoever tells of arrivals.
enum Source {
    /// The daemon, of its queues.
    Daemon(Client),
    /// The kernel, of its disciplines.
    Kernel(Arrivals),
}

impl Source {
    /// Whoever shapes the interface, asked for the first time, with the settings of the directions
    /// that are wanted: who cannot record makes no files.
    fn open(args: &Args) -> miette::Result<(Source, Vec<(Direction, String)>)> {
        let interface = args.interface.as_str();
        let present = kernel::shaped(Some(interface)).unwrap_or_default();
        if !present.is_empty() {
            let told = |shaped: &Shaped| Ok((shaped.direction, shaped.words()?));
            let settings: Result<Vec<_>, Error> = present.iter().map(told).collect();
            let settings = wanted(args, settings.into_diagnostic()?)?;
            let directions: Vec<Direction> = settings.iter().map(|(way, _)| *way).collect();
            let arrivals = Arrivals::open(interface, &directions).into_diagnostic()?;
            return Ok((Source::Kernel(arrivals), settings));
        }
        let mut client = Client::connect(&args.control.directory, interface).into_diagnostic()?;
        let shown = client.show().into_diagnostic()?.into_iter();
        let settings = wanted(args, shown.map(|entry| (entry.direction, entry.config)).collect())?;
        for (direction, _) in &settings {
            client.record(*direction).into_diagnostic()?;
        }
        Ok((Source::Daemon(client), settings))
    }

    /// Arrivals since the last call.
    fn record(&mut self, direction: Direction) -> Result<Recorded, Error> {
        match self {
            Source::Daemon(client) => client.record(direction),
            Source::Kernel(arrivals) => arrivals.record(direction),
        }
    }
}

/// Those of `settings` whose direction is asked for.
fn wanted(
    args: &Args,
    mut settings: Vec<(Direction, String)>,
) -> miette::Result<Vec<(Direction, String)>> {
    settings.retain(|(direction, _)| args.direction.is_none_or(|way| *direction == way));
    match args.direction {
        Some(direction) if settings.is_empty() => {
            let interface = args.interface.clone();
            Err(Error::NoDirection { interface, direction }).into_diagnostic()
        }
        _ => Ok(settings),
    }
}

/// A recording under way.
struct Recording<'a> {
    args: &'a Args,
    source: Source,
    files: Files,
    /// Packets that there was no room for.
    lost: Vec<(Direction, u64)>,
    /// The time at which the daemon was asked last.
    asked: Instant,
    /// Time in which there was no daemon to see packets.
    missed: Duration,
}

impl Recording<'_> {
    /// Asks and writes until the end.
    fn go_on(&mut self, stop: &AtomicBool) -> miette::Result<ExitCode> {
        let begin = Instant::now();
        let time = self.args.time.map(|span| Duration::from_nanos(span.0));
        let mut is_another = false;
        'asking: loop {
            let ends =
                stop.load(Ordering::Relaxed) || time.is_some_and(|time| begin.elapsed() >= time);
            for (direction, lost) in &mut self.lost {
                let recorded = match self.source.record(*direction) {
                    Ok(recorded) => recorded,
                    // The interface was given back, or somebody else records.
                    Err(error @ (Error::Remote(_) | Error::TakenAway(_))) => {
                        crate::say!("simnel: {error}");
                        return Ok(ExitCode::SUCCESS);
                    }
                    Err(error) if ends || matches!(self.source, Source::Kernel(_)) => {
                        return Err(error).into_diagnostic();
                    }
                    Err(error) => {
                        let Args { interface, control, .. } = self.args;
                        crate::say!(
                            "simnel: the daemon of {interface} has ended: waiting for another one"
                        );
                        let go_on = |_: &Error| !stop.load(Ordering::Relaxed);
                        match Client::await_another(&control.directory, interface, go_on) {
                            Ok(client) => self.source = Source::Daemon(client),
                            Err(Error::Restarting(_)) if stop.load(Ordering::Relaxed) => {
                                self.missed += self.asked.elapsed();
                                return Ok(ExitCode::SUCCESS);
                            }
                            // Given back, or given up by its supervisor, which says why.
                            Err(Error::NotUp { .. }) => {
                                crate::say!("simnel: nothing manages {interface} any more");
                                return Ok(ExitCode::SUCCESS);
                            }
                            Err(_) => return Err(error).into_diagnostic(),
                        }
                        is_another = true;
                        continue 'asking;
                    }
                };
                *lost += recorded.lost;
                let fits = self.files.append(*direction, recorded.raw);
                if !fits.map_err(|error| miette!("cannot record: {error}"))? {
                    crate::say!("simnel: the recording has its size; --rotate would go on");
                    return Ok(ExitCode::SUCCESS);
                }
            }
            if std::mem::take(&mut is_another) {
                let gap = self.asked.elapsed();
                self.missed += gap;
                let gap = gap.as_secs_f64();
                crate::say!(
                    "simnel: another daemon is recorded; packets of {gap:.1} s are missing"
                );
            }
            self.asked = Instant::now();
            if ends {
                return Ok(ExitCode::SUCCESS);
            }
            std::thread::sleep(AGAIN);
        }
    }

    /// Account of what was recorded, and how to go on from there.
    fn tell(&self, settings: &[(Direction, String)], out: &mut dyn Write) -> miette::Result<()> {
        let (missed, why) = match &self.source {
            Source::Daemon(_) => (self.missed, "without a daemon"),
            Source::Kernel(arrivals) => (arrivals.missed(), "in which others took the copies away"),
        };
        for ((_, config), (direction, lost)) in settings.iter().zip(&self.lost) {
            let packets = self.files.written(*direction);
            let path = self.files.paths().find(|(way, _)| way == direction);
            let path = quoted(path.map_or(Path::new(""), |(_, path)| path));
            let rate = qdisc::parse(config).ok().and_then(|config| config.rate());
            let mut option = String::new();
            if let Some(rate) = rate {
                option.push_str(" --rate ");
                let _ = units::write_rate(rate, Digits::Exact, &mut option);
            }
            let gap = match missed.is_zero() {
                true => String::new(),
                false => format!(", and those of {:.1} s {why}", missed.as_secs_f64()),
            };
            writeln!(
                out,
                "{direction}: {packets} packets recorded, {lost} lost{gap}\n  \
                 simnel replay {path}{option} --qdisc fq_codel --summary"
            )
            .map_err(output_failed)?;
        }
        Ok(())
    }
}
