//! The demonstration: one home line under load, without Simnel and with it, in half a minute.
//!
//! As root, everything is real: namespaces, Linux's TCP, packets. A home of two hosts and its
//! gateway stand at one end of `simnel link`, and a server at the other. The link is a line with
//! the oversized FIFO that modems have. Host 1 uploads and downloads with several CUBIC flows each
//! way while host 2 sends an echo every 20 ms, as a call would. Then the same again with
//! `simnel up` on the gateway at a share of the line's rates. Without root, the same core runs
//! against a synthetic load (`demo/synthetic.rs`), and the report says so.
//!
//! Nothing outside the namespaces is touched; whatever happens, they are deleted at the end.
//!
//! # Command lines that must exist
//! `simnel up --control-dir DIR IFACE download RATE upload RATE [WORDS]` and
//! `simnel link A B rate RATE delay TIME fifo SIZE reverse rate RATE`, both running until SIGTERM.
//! Rates are written `2850000bit`, times `15000us`, the FIFO's size in packets `1000p`.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use simnel_core::{Qdisc, Rate, Span};

use crate::probe::{Echo, Probe};
use crate::traffic::{BulkOptions, Connections, Direction};
use crate::wire::{self, Sampler};
use crate::{Home, HomeOptions, Process, TestbedError};

mod report;
mod synthetic;

pub use report::{DemoReport, Grade, Kind, LineReport, Phase, Style};

/// Settings of a demonstration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Options {
    /// The `simnel` program, for its subcommands `up` and `link`; None runs the synthetic part
    /// only.
    #[serde(skip)]
    pub simnel: Option<PathBuf>,
    /// Further words for `simnel up`, after the rates.
    pub words: Vec<String>,
    /// The line's rate towards the home.
    #[serde(skip)]
    pub download: Rate,
    /// The line's rate from the home.
    #[serde(skip)]
    pub upload: Rate,
    /// Round-trip time of the idle line.
    #[serde(skip)]
    pub rtt: Span,
    /// Packets that the line's FIFOs hold.
    pub fifo: u32,
    /// Flows each way.
    pub flows: usize,
    /// Seconds of load in each phase.
    pub seconds: u32,
    /// Part of the line's rates that Simnel is given, in percent: it must be the bottleneck.
    pub share: u32,
}

impl Default for Options {
    /// A DSL or cable line of 20/3 Mbit/s, 90 ms from the server, with 1000 packets of FIFO.
    fn default() -> Options {
        Options {
            simnel: None,
            words: Vec::new(),
            download: Rate::from_bits(20_000_000),
            upload: Rate::from_bits(3_000_000),
            rtt: Span::from_millis(90),
            fifo: 1000,
            flows: 4,
            seconds: 15,
            share: 95,
        }
    }
}

/// Makes the discipline under demonstration for a direction of the given rate (synthetic part).
pub type Factory<'a> = &'a dyn Fn(Rate) -> Box<dyn Qdisc>;

/// Step of the demonstration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// In words.
    pub what: &'a str,
    /// Time passed and time planned, of the whole.
    pub elapsed: Duration,
    /// See `elapsed`.
    pub total: Duration,
}

/// Reasons for which a demonstration failed.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// The testbed, or a program in it.
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    /// No echo came back over the idle line.
    #[error(
        "nothing passes the emulated line (waited {0:?} for an echo): try `simnel link` by hand"
    )]
    Silent(Duration),
}

/// The demonstration.
#[derive(Debug)]
pub struct Demo;

/// The idle line is measured for so long before each load.
const IDLE: Duration = Duration::from_secs(2);
/// The load's first seconds, in which flows start, are reported apart. Until its first loss a flow
/// doubles its rate each round trip. What is too much for a download then stands in the provider's
/// queue, before any gateway.
const RAMP: Duration = Duration::from_secs(2);
/// A call sends a packet each 20 ms.
const PROBE_INTERVAL: Duration = Duration::from_millis(20);
/// Interval between two reports of progress.
const TICK: Duration = Duration::from_millis(250);
/// A program may need so long until it works.
const START_UP: Duration = Duration::from_secs(5);

impl Demo {
    /// Runs both phases. `factory` is used only when the run is synthetic.
    pub fn run(
        options: &Options,
        factory: Factory,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<DemoReport, DemoError> {
        let synthetic = |reason: String| DemoReport {
            kind: Kind::Synthetic { reason },
            line: LineReport::new(options),
            without: synthetic::run(options, None),
            with: synthetic::run(options, Some(factory)),
        };
        let Some(simnel) = &options.simnel else {
            return Ok(synthetic("no `simnel` program was named".to_owned()));
        };
        let home = match Home::new("simnel-demo-", HomeOptions { masquerade: true }) {
            Ok(home) => home,
            Err(error @ TestbedError::NotRoot) => return Ok(synthetic(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let mut live = Live { options, home, simnel, progress, start: Instant::now() };
        let mut line = live.line()?;
        let without = live.phase("without Simnel", &mut [&mut line])?;
        let mut gateway = live.gateway()?;
        let with = live.phase("with Simnel", &mut [&mut line, &mut gateway])?;
        gateway.stop();
        line.stop();
        Ok(DemoReport { kind: Kind::Live, line: LineReport::new(options), without, with })
    }
}

/// A live demonstration under way.
struct Live<'a> {
    options: &'a Options,
    home: Home,
    simnel: &'a Path,
    progress: &'a mut dyn FnMut(Progress),
    start: Instant,
}

impl Live<'_> {
    /// Starts the emulated line and waits until it carries packets.
    fn line(&mut self) -> Result<Process, DemoError> {
        let Options { download, upload, rtt, fifo, .. } = self.options;
        // The whole round trip is split between the two directions.
        let words = format!(
            "link {} {} rate {}bit delay {}us fifo {fifo}p reverse rate {}bit",
            Home::LINE_HOME,
            Home::LINE_CORE,
            upload.bits(),
            rtt.as_micros() / 2,
            download.bits(),
        );
        let words: Vec<&str> = words.split(' ').collect();
        let mut line = self.home.isp.spawn(self.simnel, &words)?;
        self.await_echo(&mut line)?;
        Ok(line)
    }

    /// Starts Simnel on the gateway.
    fn gateway(&mut self) -> Result<Process, DemoError> {
        let share = |rate: Rate| format!("{}bit", shaped(rate, self.options.share).bits());
        let (download, upload) = (share(self.options.download), share(self.options.upload));
        // Not among the gateways of this machine, one of which may have the same interface name.
        let directory = self.home.testbed.directory()?.to_string_lossy().into_owned();
        let mut words = vec!["up", "--control-dir", &directory];
        words.extend([Home::WAN, "download", &download, "upload", &upload]);
        words.extend(self.options.words.iter().map(String::as_str));
        let mut gateway = self.home.gateway.spawn(self.simnel, &words)?;
        // Wrong words and missing rights show within this time.
        thread::sleep(Duration::from_secs(1));
        self.await_echo(&mut gateway)?;
        Ok(gateway)
    }

    /// Waits until an echo passes, or `process` has failed, or too long.
    fn await_echo(&mut self, process: &mut Process) -> Result<(), DemoError> {
        let deadline = Instant::now() + START_UP;
        while Instant::now() < deadline {
            let probe = self.probe(Duration::from_millis(50))?;
            thread::sleep(Duration::from_millis(500));
            if let Some(error) = process.failure() {
                return Err(error.into());
            }
            if probe.stop().iter().any(|echo| echo.rtt.is_some()) {
                return Ok(());
            }
        }
        Err(DemoError::Silent(START_UP))
    }

    /// The idle line, then the load, then the wait for what is still queued.
    fn phase(&mut self, name: &str, processes: &mut [&mut Process]) -> Result<Phase, DemoError> {
        let load = Duration::from_secs(u64::from(self.options.seconds));
        let probe = self.probe(PROBE_INTERVAL)?;
        self.pause(IDLE, &format!("{name}: the idle line"));

        let connect = |direction| {
            let flows = self.options.flows;
            let options = BulkOptions { direction, flows, congestion: "cubic" };
            Connections::open(&self.home.lan1, &self.home.server, Home::SERVER, options)
        };
        // All are connected while the line is idle, and then start at once.
        let (up, down) = (connect(Direction::Upload)?, connect(Direction::Download)?);
        let (up, down) = (up.start()?, down.start()?);
        let from = probe.elapsed();
        self.pause(RAMP, &format!("{name}: under load"));
        let meters = [&up, &down].map(|bulk| Sampler::start(TICK, bulk.counter()));
        self.pause(load.saturating_sub(RAMP), &format!("{name}: under load"));
        let to = probe.elapsed();
        let [upload, download] = meters.map(|meter| Rate(wire::rate(&meter.stop())));
        drop((up, down));
        self.pause(self.drain(), &format!("{name}: the queue drains"));
        let echoes = probe.stop();
        for process in processes {
            if let Some(error) = process.failure() {
                return Err(error.into());
            }
        }
        let within = |range: std::ops::Range<Duration>| {
            echoes.iter().filter(move |echo| range.contains(&echo.sent)).copied()
        };
        let idle: Vec<Echo> = within(Duration::ZERO..IDLE).collect();
        let start: Vec<Echo> = within(from..from + RAMP).collect();
        let loaded: Vec<Echo> = within(from + RAMP..to).collect();
        Ok(Phase::new(&idle, &start, &loaded, download, upload))
    }

    fn probe(&self, interval: Duration) -> Result<Probe, TestbedError> {
        Probe::start(&self.home.lan2, &self.home.server, Home::SERVER, interval)
    }

    /// Longest time for which a full FIFO can hold the last echo back, and 200 ms more.
    fn drain(&self) -> Duration {
        let slower = self.options.download.min(self.options.upload).bytes().max(1);
        Duration::from_millis(u64::from(self.options.fifo) * 1_514_000 / slower + 200)
    }

    fn pause(&mut self, span: Duration, what: &str) {
        let Options { seconds, .. } = self.options;
        let phase = IDLE + Duration::from_secs(u64::from(*seconds)) + self.drain();
        let total = 2 * phase + Duration::from_secs(2);
        let deadline = Instant::now() + span;
        loop {
            (self.progress)(Progress { what, elapsed: self.start.elapsed(), total });
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            thread::sleep(left.min(TICK));
        }
    }
}

/// `share` percent of a rate.
fn shaped(rate: Rate, share: u32) -> Rate {
    Rate((u128::from(rate.bytes()) * u128::from(share) / 100) as u64)
}

#[cfg(test)]
mod tests {
    use simnel_core::framing::Framing;
    use simnel_core::qdisc::{delay, fifo, line, Device};

    use super::*;

    /// A shaper with a short queue: what the synthetic part can show without CAKE.
    fn short_queue(rate: Rate) -> Box<dyn Qdisc> {
        let params = line::Params {
            fifo: fifo::Params { kind: fifo::Kind::Pfifo, limit: Some(10) },
            rate,
            framing: Framing::default(),
            delay: delay::Params { delay: Span::ZERO, jitter: Span::ZERO, limit: 100 },
        };
        Box::new(line::Line::new(&params, &Device::default()).unwrap())
    }

    #[test]
    fn the_synthetic_part_shows_bufferbloat_and_repeats_exactly() {
        let options = Options::default();
        let run = || Demo::run(&options, &short_queue, &mut |_| {}).unwrap();
        let report = run();
        assert!(matches!(report.kind, Kind::Synthetic { .. }));
        assert_eq!(report.to_json(), run().to_json());
        println!("{}", report.render(Style { unicode: true, colour: false }));
        let (without, with) = (&report.without, &report.with);
        assert!(without.grade == Grade::F, "{without:?}");
        assert!(with.added_ms_median.unwrap() < without.added_ms_median.unwrap() / 4.0);
        for phase in [without, with] {
            assert!((90.0..92.0).contains(&phase.idle_ms), "{phase:?}");
            // 1448 of 1514 bytes at 20 and 3 Mbit/s.
            assert!(phase.download_mbit < 19.13 && phase.upload_mbit < 2.87, "{phase:?}");
        }
        assert!(without.download_mbit > 18.0 && without.upload_mbit > 2.7, "{without:?}");
        assert!(with.download_mbit > 10.0 && with.upload_mbit > 2.0, "{with:?}");
    }
}
