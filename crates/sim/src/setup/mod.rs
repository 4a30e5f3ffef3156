//! Set-up of a simulation: lines, hosts, traffic. Plain data, checked once.
//!
//! The home topology: hosts at home and on the Internet, and one bottleneck with a discipline for
//! each direction between them. Every host has a way with its own delay and rate to the bottleneck
//! and back. A [`Setup`] and a seed determine a run completely.

use core::fmt;
use core::net::Ipv4Addr;

use simnel_core::framing::Framing;
use simnel_core::qdisc::{self, Device};
use simnel_core::{Rate, Span, Time};

use crate::schedule::{Step, Trace};

pub mod dash;
pub mod web;

/// A direction across the bottleneck; also the index of its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From home to the Internet.
    Up = 0,
    /// From the Internet to home.
    Down = 1,
}

impl Direction {
    /// Both.
    pub const BOTH: [Direction; 2] = [Direction::Up, Direction::Down];

    /// The opposite.
    pub const fn reverse(self) -> Direction {
        match self {
            Direction::Up => Direction::Down,
            Direction::Down => Direction::Up,
        }
    }

    /// `up` or `down`.
    pub const fn name(self) -> &'static str {
        match self {
            Direction::Up => "up",
            Direction::Down => "down",
        }
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Mechanism by which a line passes on what its discipline gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shaper {
    /// One packet after the other, each taking its length divided by the rate.
    Wire,
    /// A token bucket of so many bytes before a fast wire, as Linux's htb. (tbf, which takes a
    /// packet before it may leave, is a discipline.)
    Bucket(u32),
    /// Mahimahi's delivery opportunities.
    Trace(Trace),
}

/// Packets lost on the line, before the discipline sees them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    /// None.
    #[default]
    None,
    /// Each with this probability in units of 2^-32.
    Random(u32),
    /// Every packet with this number (counted over the line) that carries TCP payload.
    Every(u32),
}

/// Packets that others overtake behind the bottleneck, as netem's `delay` beside `reorder` has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reordering {
    /// Each one's probability in units of 2^-32; zero for none.
    pub share: u32,
    /// Additional delay of these.
    pub late: Span,
}

/// One direction of the bottleneck.
#[derive(Clone, Debug)]
pub struct LineSetup {
    /// The discipline.
    pub qdisc: qdisc::Config,
    /// The rate; None for no limit. Not used with a trace.
    pub rate: Option<Rate>,
    /// Mechanism by which packets pass.
    pub shaper: Shaper,
    /// Framing: a packet's size on the line.
    pub framing: Framing,
    /// Changes of the rate, in order of time.
    pub steps: Vec<Step>,
    /// Losses.
    pub loss: Loss,
    /// Longest additional delay behind the bottleneck; order is kept.
    pub jitter: Span,
    /// Packets that come late behind the bottleneck; but for ways with a rate of their own.
    pub reordering: Reordering,
    /// The device, for the discipline's defaults; its seed is replaced by the run's.
    pub device: Device,
}

impl LineSetup {
    /// A wire with a rate and a discipline.
    pub fn wire(qdisc: qdisc::Config, rate: Option<Rate>) -> LineSetup {
        LineSetup {
            qdisc,
            rate,
            shaper: Shaper::Wire,
            framing: Framing::default(),
            steps: Vec::new(),
            loss: Loss::None,
            jitter: Span::ZERO,
            reordering: Reordering::default(),
            device: Device::default(),
        }
    }
}

/// One direction of a host's access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Time on the way.
    pub delay: Span,
    /// Rate of the host's interface; None for no limit.
    pub rate: Option<Rate>,
}

/// A host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Host {
    /// IPv4 address.
    pub address: [u8; 4],
    /// True at home, false on the Internet.
    pub home: bool,
    /// From the host to the bottleneck.
    pub egress: Access,
    /// From the bottleneck to the host.
    pub ingress: Access,
}

/// Traffic of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One TCP transfer.
    Bulk {
        /// Payload bytes; None: without end.
        size: Option<u64>,
    },
    /// Datagrams of equal size at equal intervals: CBR, voice.
    Datagrams {
        /// UDP payload in bytes.
        size: u32,
        /// From one to the next.
        interval: Span,
        /// Pairs of ports that they take in turn; what queues sees as many flows.
        ports: u32,
    },
    /// Requests that are answered at once: round-trip times.
    Ping {
        /// Payload in bytes.
        size: u32,
        /// From one to the next.
        interval: Span,
        /// ICMP echo instead of UDP.
        icmp: bool,
    },
    /// UDP requests, each when the one before was answered: netperf's UDP_RR.
    RequestResponse {
        /// Payload of request and answer in bytes.
        size: u32,
    },
    /// HTTP connections that open at random, with requests, objects and thinking servers.
    Web(web::Params),
    /// Video in chunks, whose quality follows the throughput.
    Dash(dash::Params),
    /// Small messages over one TCP connection.
    Messages {
        /// Bytes of a message.
        size: u32,
        /// From one to the next.
        interval: Span,
    },
    /// Transfers of equal size with idle gaps between them, over one TCP connection.
    Bursts {
        /// Payload bytes of a transfer.
        size: u64,
        /// Shortest and longest gap; drawn evenly.
        pause: (Span, Span),
    },
}

/// Rhythm of a receiver that does not take all at once, but a portion now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Bytes of a portion.
    pub portion: u64,
    /// From one to the next; the first so long after the connection stands.
    pub interval: Span,
}

/// Flows of one kind.
#[derive(Clone, Debug)]
pub struct Traffic {
    /// Name in reports.
    pub name: String,
    /// Traffic of each flow.
    pub kind: Kind,
    /// The way of its payload (of a ping's requests).
    pub direction: Direction,
    /// Hosts at home and on the Internet, by index; flow number n has pair n modulo their number.
    pub pairs: Vec<(usize, usize)>,
    /// Number of flows.
    pub count: u32,
    /// DSCP of both directions.
    pub dscp: u8,
    /// Earliest start of flows.
    pub start: Span,
    /// Flows start so much later at most, evenly at random.
    pub stagger: Span,
    /// Time at which flows stop; None: at the end.
    pub stop: Option<Span>,
    /// Rhythm in which the receiver of a transfer reads; None: all that comes, at once.
    pub reading: Option<Reading>,
    /// Settings of both TCP endpoints.
    pub tcp: simnel_tcp::Config,
}

impl Traffic {
    /// One flow between the first two hosts, from the beginning to the end.
    pub fn one(name: &str, kind: Kind, direction: Direction) -> Traffic {
        Traffic {
            name: name.into(),
            kind,
            direction,
            pairs: vec![(0, 1)],
            count: 1,
            dscp: 0,
            start: Span::ZERO,
            stagger: Span::ZERO,
            stop: None,
            reading: None,
            tcp: simnel_tcp::Config::default(),
        }
    }
}

/// Records beyond counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording {
    /// Length of the intervals of time series.
    pub interval: Span,
    /// Samples of cwnd and SRTT for every flow.
    pub windows: bool,
}

impl Default for Recording {
    fn default() -> Recording {
        Recording { interval: Span::from_secs(1), windows: false }
    }
}

/// Everything that a run needs but its seed.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Simulated time.
    pub duration: Span,
    /// Results count from here.
    pub warmup: Span,
    /// The bottleneck, up and down.
    pub lines: [LineSetup; 2],
    /// Hosts at home and on the Internet.
    pub hosts: Vec<Host>,
    /// Traffic.
    pub traffic: Vec<Traffic>,
    /// Time series.
    pub recording: Recording,
}

/// A set-up that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SetupError {
    /// The discipline of a direction refuses its configuration.
    #[error("the discipline of the {} line cannot be built: {reason}", .direction.name())]
    Discipline {
        /// The line's direction.
        direction: Direction,
        /// Its words.
        reason: String,
    },
    /// Something is beyond what a run can hold or has no meaning.
    #[error("{what}: expected {expected}")]
    Invalid {
        /// The wrong item.
        what: String,
        /// A correct form.
        expected: &'static str,
        /// The number of the traffic that it is part of, if it is part of one.
        traffic: Option<usize>,
    },
}

/// Most flows in a run.
pub const MAX_FLOWS: u64 = 1 << 20;
/// Most pairs of ports of a stream of datagrams: as many as a host has for itself.
pub const MAX_PORTS: u32 = 1 << 15;
/// Longest simulated time: times then stay far from the end of 64 bits.
pub const MAX_DURATION: Span = Span::from_secs(100 * 24 * 3600);
/// Numbers of all time series together: 400 MB.
pub const MAX_SAMPLES: u64 = 50_000_000;
/// Bytes of one transfer, so that sums over the longest run stay far from the end of 64 bits.
pub const MAX_TRANSFER: u64 = 1 << 50;
/// Longest delay of one way.
pub const MAX_DELAY: Span = Span::from_secs(60);

impl Setup {
    /// Refuses what cannot be run.
    pub fn check(&self) -> Result<(), SetupError> {
        let invalid =
            |what: String, expected| Err(SetupError::Invalid { what, expected, traffic: None });
        if self.duration == Span::ZERO || self.duration > MAX_DURATION {
            return invalid("the duration".into(), "more than nothing and at most 100 days");
        }
        if self.warmup >= self.duration {
            return invalid("the warm-up".into(), "less than the duration");
        }
        let flows = self.traffic.iter().map(|traffic| u64::from(traffic.count)).sum::<u64>();
        if flows > MAX_FLOWS {
            return invalid("the number of flows".into(), "at most 1048576 in all");
        }
        if self.recording.interval == Span::ZERO || self.samples() > MAX_SAMPLES {
            let expected = "at most 50 million in a run, of all flows together";
            return invalid("the intervals".into(), expected);
        }
        for host in &self.hosts {
            if host.egress.delay.max(host.ingress.delay) > MAX_DELAY {
                return invalid(
                    format!("the delay of {}", Ipv4Addr::from(host.address)),
                    "at most 60 s",
                );
            }
        }
        for line in &self.lines {
            if line.jitter > MAX_DELAY {
                return invalid("the jitter".into(), "at most 60 s");
            }
            if line.reordering.late > MAX_DELAY {
                return invalid("what comes late".into(), "at most 60 s");
            }
            if matches!(line.loss, Loss::Every(0 | 1)) {
                return invalid("the periodic loss".into(), "every second packet at most");
            }
            if !line.steps.windows(2).all(|pair| pair[0].at <= pair[1].at) {
                return invalid("the steps of the rate".into(), "steps in order of time");
            }
        }
        (0..self.traffic.len()).try_for_each(|n| self.check_traffic(n))
    }

    /// Numbers of all time series together: two lines and every flow have a series each.
    pub fn samples(&self) -> u64 {
        let flows = self.traffic.iter().map(|traffic| u64::from(traffic.count)).sum::<u64>();
        let intervals = self.duration.0 / self.recording.interval.0.max(1);
        intervals.saturating_mul(flows + 2)
    }

    fn check_traffic(&self, n: usize) -> Result<(), SetupError> {
        let traffic = &self.traffic[n];
        let invalid = |what: &str, expected| {
            let what = format!("{what} of `{}`", traffic.name);
            Err(SetupError::Invalid { what, expected, traffic: Some(n) })
        };
        if traffic.pairs.is_empty() {
            return invalid("the hosts", "at least one pair of hosts");
        }
        for (home, internet) in &traffic.pairs {
            let (Some(a), Some(b)) = (self.hosts.get(*home), self.hosts.get(*internet)) else {
                return invalid("the hosts", "hosts of the set-up");
            };
            if !a.home || b.home {
                return invalid("the hosts", "a host at home and one on the Internet");
            }
            let delays = [a.egress, a.ingress, b.egress, b.ingress].map(|access| access.delay.0);
            if delays.iter().sum::<u64>() < 1_000 {
                return invalid("the round-trip time", "at least 1 us: time must pass");
            }
        }
        if traffic.dscp > 63 {
            return invalid("the DSCP", "a number below 64");
        }
        if traffic.tcp.mtu < 100 || u32::from(traffic.tcp.mtu) + 14 > self.mtu() {
            return invalid("the MTU", "at least 100, and frames of at most the device's size");
        }
        if traffic.start > MAX_DURATION || traffic.stagger > MAX_DURATION {
            return invalid("the start", "at most 100 days");
        }
        let datagrams = |size: u32, interval: Span| {
            if size.saturating_add(28 + 14) > self.mtu() {
                return invalid("the size", "a datagram that fits the MTU");
            }
            if interval < Span::from_micros(1) || interval > MAX_DURATION {
                return invalid("the interval", "between 1 us and 100 days");
            }
            Ok(())
        };
        if let Some(Reading { portion, interval }) = traffic.reading {
            let bulk = matches!(traffic.kind, Kind::Bulk { .. });
            if !bulk || portion == 0 || interval == Span::ZERO || interval > MAX_DURATION {
                return invalid("the reading", "of a transfer, 1 byte or more, within 100 days");
            }
        }
        match &traffic.kind {
            Kind::Bulk { size: Some(size) } if !(1..=MAX_TRANSFER).contains(size) => {
                invalid("the size", "1 byte to 1 PiB")
            }
            Kind::Bulk { .. } => Ok(()),
            Kind::Datagrams { size, interval, ports } => {
                if *ports == 0 || *ports > MAX_PORTS {
                    return invalid("the ports", "1 to 32768 pairs");
                }
                datagrams(*size, *interval)
            }
            Kind::Ping { size, interval, .. } => datagrams(*size, *interval),
            Kind::RequestResponse { size } => datagrams(*size, Span::from_secs(1)),
            Kind::Messages { size, interval } => {
                if *size == 0 {
                    return invalid("the size", "at least 1 byte");
                }
                datagrams(1, *interval)
            }
            Kind::Bursts { size, pause } => {
                let sizes = 1..=MAX_TRANSFER;
                if !sizes.contains(size) || pause.0 > pause.1 || pause.1 > MAX_DURATION {
                    return invalid("the bursts", "1 byte to 1 PiB, and a pause of MIN..MAX");
                }
                Ok(())
            }
            Kind::Web(params) => match params.check() {
                Some(expected) => invalid("the web", expected),
                None => Ok(()),
            },
            Kind::Dash(params) => match params.check() {
                Some(expected) => invalid("the video", expected),
                None => Ok(()),
            },
        }
    }

    fn mtu(&self) -> u32 {
        self.lines.iter().map(|line| line.device.mtu).min().unwrap_or(1514)
    }

    /// Intervals of time series, one that has only begun included.
    pub(crate) fn intervals(&self) -> usize {
        (self.duration.0 / self.recording.interval.0) as usize + 1
    }

    /// The measured window: results count from the first time to the second.
    pub fn window(&self) -> (Time, Time) {
        (Time::ZERO + self.warmup, Time::ZERO + self.duration)
    }
}

#[cfg(test)]
mod tests;
