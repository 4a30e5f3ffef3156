//! A scenario as orders for a real network: what the live arm and Linux's own can carry out.
//!
//! The simulator's set-up, which the scenario's text makes, is the only source: hosts keep their
//! addresses, flows their classes and times, disciplines their words. A discipline that does not
//! shape is put below a token bucket of the line's rate and burst, as the simulator does. What
//! neither arm can do (web, video, jitter, a line that changes) is refused by name: no flow is left
//! out silently.

use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use simnel_core::{qdisc, Span, Time};
use simnel_sim::setup::{Loss, Shaper};
use simnel_sim::{Direction, Kind, Setup, Traffic, PATIENCE};
use simnel_tcp::{CongestionControl, EcnMode, Pacing};

/// Bucket of a line that passes one packet after the other: the least that carries any frame.
const WIRE_BURST: u32 = 1600;

/// Orders for one run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Plan {
    /// Length of the run.
    pub duration: Duration,
    /// Length of the intervals of time series.
    pub interval: Duration,
    /// Round-trip time of every pair of hosts on the idle line.
    pub rtt: Duration,
    /// Words of the disciplines, shaper included: up, down.
    pub qdisc: [String; 2],
    /// Linux's `tcp_ecn` at all hosts.
    pub tcp_ecn: u8,
    /// Addresses at home.
    pub home: Vec<Ipv4Addr>,
    /// Addresses on the Internet.
    pub internet: Vec<Ipv4Addr>,
    /// All flows, in the order of the set-up.
    pub flows: Vec<Flow>,
}

/// One flow.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Flow {
    /// Its traffic's number in the set-up.
    pub group: u32,
    /// Its number within the traffic.
    pub index: u32,
    /// The way of its payload is from home.
    pub up: bool,
    /// Its host at home.
    pub home: Ipv4Addr,
    /// Its host on the Internet.
    pub internet: Ipv4Addr,
    /// Code point of both directions.
    pub dscp: u8,
    /// When it starts.
    pub start: Duration,
    /// When it stops; None: at the end.
    pub stop: Option<Duration>,
    /// Its traffic.
    pub work: Work,
}

/// Traffic of a flow.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub enum Work {
    /// A TCP transfer without end.
    Bulk {
        /// Congestion control, by Linux's name.
        congestion: String,
        /// The sender is paced.
        paced: bool,
    },
    /// Requests that are answered at once.
    Ping {
        /// Payload in bytes.
        size: usize,
        /// From one to the next.
        interval: Duration,
        /// ICMP echo instead of UDP.
        icmp: bool,
    },
    /// UDP requests, each when the one before was answered.
    RequestResponse {
        /// Payload in bytes.
        size: usize,
        /// How long an answer is waited for.
        patience: Duration,
    },
    /// Datagrams one way.
    Datagrams {
        /// Payload in bytes.
        size: usize,
        /// From one to the next.
        interval: Duration,
    },
}

impl Plan {
    /// Orders for `setup`, whose disciplines' words are `qdisc`, with the starts that the simulator
    /// draws from `seed`. The error names what a real network here cannot do.
    pub fn new(setup: &Setup, qdisc: &[String; 2], seed: u64) -> Result<Plan, String> {
        let addresses = |home: bool| {
            let side = setup.hosts.iter().filter(move |host| host.home == home);
            side.map(|host| host.address.into()).collect::<Vec<Ipv4Addr>>()
        };
        let mut flows = Vec::new();
        for (group, traffic) in setup.traffic.iter().enumerate() {
            for index in 0..traffic.count {
                let start = simnel_sim::start_time(seed, flows.len() as u32, traffic);
                flows.push(flow(setup, traffic, (group as u32, index), start)?);
            }
        }
        Ok(Plan {
            duration: real(setup.duration),
            interval: real(setup.recording.interval),
            rtt: rtt(setup)?,
            qdisc: [words(setup, qdisc, Direction::Up)?, words(setup, qdisc, Direction::Down)?],
            tcp_ecn: tcp_ecn(setup)?,
            home: addresses(true),
            internet: addresses(false),
            flows,
        })
    }

    /// The way there, and the way back: half the round-trip time each.
    pub fn one_way(&self) -> Duration {
        self.rtt / 2
    }
}

fn real(span: Span) -> Duration {
    Duration::from_nanos(span.0)
}

fn refused<T>(what: impl std::fmt::Display) -> Result<T, String> {
    Err(format!("{what}: only the simulator does that"))
}

/// The words of a discipline with everything that paces a line.
fn words(setup: &Setup, qdisc: &[String; 2], direction: Direction) -> Result<String, String> {
    let (line, words) = (&setup.lines[direction as usize], &qdisc[direction as usize]);
    if !line.steps.is_empty() {
        return refused("a line whose rate changes");
    }
    if line.loss != Loss::None {
        return refused("a line that loses packets");
    }
    if line.jitter != Span::ZERO {
        return refused("a line with jitter");
    }
    let burst = match line.shaper {
        Shaper::Wire => WIRE_BURST,
        Shaper::Bucket(burst) => burst,
        Shaper::Trace(_) => return refused("a line that follows a trace"),
    };
    let config = qdisc::parse(words).map_err(|error| format!("`{words}`: {error}"))?;
    match line.rate {
        Some(rate) if config.rate().is_none() => {
            let rate = rate.bits();
            Ok(format!("htb rate {rate}bit burst {burst}b cburst {burst}b {words}"))
        }
        _ => Ok(words.clone()),
    }
}

/// The round-trip time, which must be one for all.
fn rtt(setup: &Setup) -> Result<Duration, String> {
    let mut all = setup.traffic.iter().flat_map(|traffic| &traffic.pairs).map(|(a, b)| {
        let (a, b) = (&setup.hosts[*a], &setup.hosts[*b]);
        let access = [a.egress, b.ingress, b.egress, a.ingress];
        access.iter().map(|access| access.delay.0).sum::<u64>()
    });
    let first = all.next().unwrap_or(0);
    if all.any(|rtt| rtt != first) {
        return refused("hosts with different round-trip times");
    }
    if setup.hosts.iter().any(|host| host.egress.rate.or(host.ingress.rate).is_some()) {
        return refused("hosts with a rate of their own");
    }
    Ok(Duration::from_nanos(first))
}

/// ECN is a setting of a whole Linux host, so that all flows must agree.
fn tcp_ecn(setup: &Setup) -> Result<u8, String> {
    let bulk = setup.traffic.iter().filter(|traffic| matches!(traffic.kind, Kind::Bulk { .. }));
    let mut modes = bulk.map(|traffic| traffic.tcp.ecn);
    let first = modes.next().unwrap_or_default();
    if modes.any(|mode| mode != first) {
        return refused("flows with and without ECN side by side");
    }
    match first {
        EcnMode::Off => Ok(0),
        EcnMode::On => Ok(1),
        EcnMode::Passive => Ok(2),
        EcnMode::Accurate => refused("accurate ECN"),
    }
}

fn flow(
    setup: &Setup,
    traffic: &Traffic,
    (group, index): (u32, u32),
    start: Time,
) -> Result<Flow, String> {
    let (home, internet) = traffic.pairs[index as usize % traffic.pairs.len()];
    let work = match &traffic.kind {
        Kind::Bulk { .. } if traffic.tcp.congestion == CongestionControl::Ledbat => {
            return refused("LEDBAT");
        }
        Kind::Bulk { size: None } => Work::Bulk {
            congestion: traffic.tcp.congestion.name().into(),
            paced: traffic.tcp.pacing == Pacing::On,
        },
        Kind::Ping { size, interval, icmp } => {
            Work::Ping { size: *size as usize, interval: real(*interval), icmp: *icmp }
        }
        Kind::RequestResponse { size } => {
            Work::RequestResponse { size: *size as usize, patience: real(PATIENCE) }
        }
        Kind::Datagrams { size, interval, ports: 1 } => {
            Work::Datagrams { size: *size as usize, interval: real(*interval) }
        }
        _ => return refused(format_args!("the traffic `{}`", traffic.name)),
    };
    Ok(Flow {
        group,
        index,
        up: traffic.direction == Direction::Up,
        home: setup.hosts[home].address.into(),
        internet: setup.hosts[internet].address.into(),
        dscp: traffic.dscp,
        start: real(start.since(Time::ZERO)),
        stop: traffic.stop.map(real),
        work,
    })
}

/// `setup` as it can be run in real time: at most `longest`, and the measured window, if it is
/// longer than what is left, shorter.
pub fn shortened(setup: &Setup, longest: Duration) -> Setup {
    let mut setup = setup.clone();
    let longest = Span(longest.as_nanos() as u64);
    // Whatever begins later than this would not be seen at all.
    setup.duration = setup.duration.min(longest.max(setup.warmup + setup.recording.interval));
    setup
}

/// A moment of a run.
pub fn moment(at: Duration) -> Time {
    Time::ZERO + Span(at.as_nanos() as u64)
}
