//! A scenario as orders for a real network: what the live arm and Linux's own can carry out.
//!
//! The simulator's set-up, which the scenario's text makes, is the only source: hosts keep their
//! addresses, flows their classes and times, disciplines their words. A discipline that does not
//! shape is put below a token bucket of the line's rate and burst, as the simulator does. What
//! neither arm can do (LEDBAT, jitter, a line that changes) is refused by name: no flow is left
//! out silently.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use simnel_core::framing::{Cells, Framing};
use simnel_core::random::Random;
use simnel_core::{qdisc, Span, Time};
use simnel_sim::apps::bursts::Gaps;
use simnel_sim::setup::{dash, web, LineSetup, Loss, Reordering, Shaper};
use simnel_sim::{Direction, Kind, Setup, Traffic, PATIENCE};
use simnel_tcp::{Config, CongestionControl, EcnMode, Pacing};

/// Bucket before a wire, which lets no packet out while another is under way but for its last
/// bytes: what a clock's grain would waste.
const WIRE_BURST: u32 = 64;
/// Largest packet of the hosts' interfaces.
const MTU: u16 = 1500;

/// Words of ours for what Linux's discipline of the same name cannot do, and what that is.
const OURS: [(&str, &str, &str); 5] = [
    ("red", "ns", "RED as ns-2 has it, gentle and set up by the line's rate"),
    ("pie", "freebsd", "PIE as FreeBSD has it"),
    ("fq_pie", "freebsd", "FQ-PIE as FreeBSD has it"),
    ("drr", "max-age", "DRR that drops what has waited too long"),
    ("drr", "savings", "DRR with savings"),
];

/// Bytes of an Ethernet header, which Linux counts.
const ETHERNET: i32 = 14;

/// Orders for one run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Plan {
    /// Length of the run.
    pub duration: Duration,
    /// Length of the intervals of time series.
    pub interval: Duration,
    /// Round-trip time on the idle line to each host on the Internet, the same for all at home.
    pub rtt: BTreeMap<Ipv4Addr, Duration>,
    /// Words of the disciplines, shaper included: up, down.
    pub qdisc: [String; 2],
    /// Linux's `tcp_ecn` at all hosts.
    pub tcp_ecn: u8,
    /// Segments of a super-packet at all hosts, at most: Linux's `gso_max_segs`. With 1 each leaves
    /// by itself; by default TCP sends at least two at once, whatever the interface can do.
    pub segments: u8,
    /// Bytes that a line adds to a frame, or, below zero, does not count: up, down.
    pub overhead: [i32; 2],
    /// Rates at which a line takes time for each packet, in bit/s: up, down. None of what shapes
    /// itself, or stands behind a bucket: packets are at their line's end at once.
    #[serde(default, skip_serializing_if = "is_no_wire")]
    pub wire: [Option<u64>; 2],
    /// Rate of each home host's own interface, in bit/s.
    pub access: Option<u64>,
    /// Addresses at home.
    pub home: Vec<Ipv4Addr>,
    /// Addresses on the Internet.
    pub internet: Vec<Ipv4Addr>,
    /// All flows, in the order of the set-up.
    pub flows: Vec<Flow>,
    /// From when on packets that pass the gateway in the directions of payload are watched; None:
    /// not at all.
    pub watch: Option<Duration>,
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
    /// Time at which it starts.
    pub start: Duration,
    /// Time at which it stops; None: at the end.
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
        /// Largest segment, if it is smaller than the interface's.
        mss: Option<u32>,
    },
    /// Messages over one TCP connection.
    Messages {
        /// Congestion control, by Linux's name.
        congestion: String,
        /// Bytes of one.
        size: usize,
        /// From one to the next.
        interval: Duration,
        /// They wait for what is in flight.
        nagle: bool,
        /// Acknowledgements may wait.
        delayed_ack: bool,
    },
    /// Video in chunks.
    Video {
        /// Congestion control, by Linux's name.
        congestion: String,
        /// The video, and its player.
        video: Video,
    },
    /// A household that browses.
    Web {
        /// Congestion control, by Linux's name.
        congestion: String,
        /// Largest segment, if it is smaller than the interface's.
        mss: Option<u32>,
        /// Its habits.
        browsing: Browsing,
        /// Seed of what it does.
        random: u64,
    },
    /// Transfers over one TCP connection.
    Bursts {
        /// Congestion control, by Linux's name.
        congestion: String,
        /// Bytes of one.
        size: u64,
        /// From the end of each to the next.
        gaps: Vec<Duration>,
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
        /// Time that an answer is waited for.
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

impl Work {
    /// Its congestion control, if it has one.
    pub fn congestion(&self) -> Option<&str> {
        match self {
            Work::Bulk { congestion, .. }
            | Work::Messages { congestion, .. }
            | Work::Video { congestion, .. }
            | Work::Web { congestion, .. }
            | Work::Bursts { congestion, .. } => Some(congestion),
            Work::Ping { .. } | Work::RequestResponse { .. } | Work::Datagrams { .. } => None,
        }
    }
}

/// A video and its player: [`dash::Params`], as they are written.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Video {
    chunk: Duration,
    ladder: Vec<u64>,
    buffer: Duration,
    prefill: Duration,
    safety_milli: u64,
}

impl Video {
    fn of(params: &dash::Params) -> Video {
        Video {
            chunk: real(params.chunk),
            ladder: params.ladder.clone(),
            buffer: real(params.buffer),
            prefill: real(params.prefill),
            safety_milli: params.safety_milli,
        }
    }

    /// The simulator's settings.
    pub fn params(&self) -> dash::Params {
        dash::Params {
            chunk: span(self.chunk),
            ladder: self.ladder.clone(),
            buffer: span(self.buffer),
            prefill: span(self.prefill),
            safety_milli: self.safety_milli,
        }
    }
}

/// Habits of a household that browses: [`web::Params`], as they are written.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Browsing {
    interval: Duration,
    pages: (u64, u64),
    objects: (u64, u64),
    object_size: u64,
    object_spread_milli: u64,
    request: (u64, u64),
    think: Duration,
    reading: Duration,
}

impl Browsing {
    fn of(params: &web::Params) -> Browsing {
        Browsing {
            interval: real(params.interval),
            pages: params.pages,
            objects: params.objects,
            object_size: params.object_size,
            object_spread_milli: params.object_spread_milli,
            request: params.request,
            think: real(params.think),
            reading: real(params.reading),
        }
    }

    /// The simulator's settings.
    pub fn params(&self) -> web::Params {
        web::Params {
            interval: span(self.interval),
            pages: self.pages,
            objects: self.objects,
            object_size: self.object_size,
            object_spread_milli: self.object_spread_milli,
            request: self.request,
            think: span(self.think),
            reading: span(self.reading),
        }
    }
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
                let begun = simnel_sim::start(seed, flows.len() as u32, traffic);
                flows.push(flow(setup, traffic, (group as u32, index), begun)?);
            }
        }
        Ok(Plan {
            duration: real(setup.duration),
            interval: real(setup.recording.interval),
            rtt: rtt(setup)?,
            overhead: [overhead(setup, Direction::Up)?, overhead(setup, Direction::Down)?],
            wire: setup.lines.each_ref().map(wire),
            access: access(setup)?,
            qdisc: [words(setup, qdisc, Direction::Up)?, words(setup, qdisc, Direction::Down)?],
            tcp_ecn: tcp_ecn(setup)?,
            segments: segments(setup)?,
            home: addresses(true),
            internet: addresses(false),
            flows,
            watch: None,
        })
    }

    /// The same, with the packets that pass the gateway watched after `setup`'s warm-up.
    pub fn watched(self, setup: &Setup) -> Plan {
        Plan { watch: Some(real(setup.warmup)), ..self }
    }

    /// The directions in which payload goes.
    pub fn ways(&self) -> Vec<Direction> {
        let goes =
            |way: &Direction| self.flows.iter().any(|flow| flow.up == (*way == Direction::Up));
        Direction::BOTH.into_iter().filter(goes).collect()
    }

    /// The hosts on the Internet by the way there, or back: half the round-trip time.
    pub fn by_distance(&self) -> BTreeMap<Duration, Vec<Ipv4Addr>> {
        let mut hosts: BTreeMap<Duration, Vec<Ipv4Addr>> = BTreeMap::new();
        for (host, rtt) in &self.rtt {
            hosts.entry(*rtt / 2).or_default().push(*host);
        }
        hosts
    }

    /// The way to all hosts on the Internet; None if they are not equally far.
    pub fn one_way(&self) -> Option<Duration> {
        let distances = self.by_distance();
        (distances.len() < 2).then(|| distances.keys().next().copied().unwrap_or_default())
    }
}

/// A span as the clock of a real network has it.
pub fn real(span: Span) -> Duration {
    Duration::from_nanos(span.0)
}

/// A time of a real network's clock as the simulator has it.
pub fn span(real: Duration) -> Span {
    Span(real.as_nanos() as u64)
}

fn refused<T>(what: impl std::fmt::Display) -> Result<T, String> {
    Err(format!("{what}: only the simulator does that"))
}

/// The words of a discipline with everything that paces a line.
fn words(setup: &Setup, qdisc: &[String; 2], direction: Direction) -> Result<String, String> {
    let (line, words) = (&setup.lines[direction as usize], &qdisc[direction as usize]);
    // That is DRR as everybody has it.
    let words = words.strip_suffix(" savings 0").unwrap_or(words);
    if !line.steps.is_empty() {
        return refused("a line whose rate changes");
    }
    if line.loss != Loss::None {
        return refused("a line that loses packets");
    }
    if line.jitter != Span::ZERO {
        return refused("a line with jitter");
    }
    if line.reordering != Reordering::default() {
        return refused("a line that reorders");
    }
    let burst = match line.shaper {
        Shaper::Wire => WIRE_BURST,
        Shaper::Bucket(burst) => burst,
        Shaper::Trace(_) => return refused("a line that follows a trace"),
    };
    if let Some((_, _, what)) = OURS.iter().find(|(discipline, word, _)| {
        let mut words = words.split_whitespace();
        words.next() == Some(discipline) && words.any(|said| said == *word)
    }) {
        return refused(what);
    }
    let config = qdisc::parse(words).map_err(|error| format!("`{words}`: {error}"))?;
    match line.rate {
        Some(rate) if config.rate().is_none() => {
            let rate = rate.bits();
            Ok(format!("htb rate {rate}bit burst {burst}b cburst {burst}b {words}"))
        }
        _ => Ok(words.into()),
    }
}

/// The rate of a line that passes one packet after the other.
fn wire(line: &LineSetup) -> Option<u64> {
    let shapes = line.qdisc.rate().is_some() || line.shaper != Shaper::Wire;
    line.rate.filter(|_| !shapes).map(|rate| rate.bits())
}

fn is_no_wire(wire: &[Option<u64>; 2]) -> bool {
    wire.iter().all(Option::is_none)
}

/// The round-trip times, of which a host on the Internet must have one.
fn rtt(setup: &Setup) -> Result<BTreeMap<Ipv4Addr, Duration>, String> {
    let mut all = BTreeMap::new();
    for (home, internet) in setup.traffic.iter().flat_map(|traffic| &traffic.pairs) {
        let (home, internet) = (&setup.hosts[*home], &setup.hosts[*internet]);
        let access = [home.egress, internet.ingress, internet.egress, home.ingress];
        let rtt = Duration::from_nanos(access.iter().map(|access| access.delay.0).sum());
        if *all.entry(internet.address.into()).or_insert(rtt) != rtt {
            return refused("hosts at home with different round-trip times");
        }
    }
    Ok(all)
}

/// The rate of the home hosts' interfaces, which must be one for all. The Internet's have none.
fn access(setup: &Setup) -> Result<Option<u64>, String> {
    let rates = |home: bool| {
        let side = setup.hosts.iter().filter(move |host| host.home == home);
        side.flat_map(|host| [host.egress.rate, host.ingress.rate])
    };
    let first = rates(true).next().flatten();
    if rates(true).any(|rate| rate != first) {
        return refused("hosts at home with different rates");
    }
    if rates(false).any(|rate| rate.is_some()) {
        return refused("hosts on the Internet with a rate of their own");
    }
    Ok(first.map(|rate| rate.bits()))
}

/// The line's overhead a frame, as `tc`'s `stab` has it.
fn overhead(setup: &Setup, direction: Direction) -> Result<i32, String> {
    let framing = setup.lines[direction as usize].framing;
    match framing {
        Framing { mpu: 0, cells: Cells::None, compensate, overhead } => {
            let header = if compensate { ETHERNET } else { 0 };
            Ok(i32::from(overhead) - header)
        }
        _ => refused("a line with cells or a least size"),
    }
}

/// ECN is a setting of a whole Linux host, so that all flows must agree.
fn tcp_ecn(setup: &Setup) -> Result<u8, String> {
    let flows = setup.traffic.iter().filter(|traffic| is_over_tcp(traffic));
    let mut modes = flows.map(|traffic| traffic.tcp.ecn);
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

fn is_over_tcp(traffic: &Traffic) -> bool {
    match traffic.kind {
        Kind::Bulk { .. } | Kind::Messages { .. } | Kind::Bursts { .. } => true,
        Kind::Web(_) | Kind::Dash(_) => true,
        Kind::Ping { .. } | Kind::RequestResponse { .. } | Kind::Datagrams { .. } => false,
    }
}

/// Super-packets are a setting of a host's interface.
fn segments(setup: &Setup) -> Result<u8, String> {
    let mut all = setup.traffic.iter().map(|traffic| traffic.tcp.tso_segments);
    let first = all.next().unwrap_or(1);
    match all.all(|other| other == first) {
        true => Ok(first),
        false => refused("flows with and without super-packets side by side"),
    }
}

/// The settings of TCP that `traffic` has there: those that its flows say; others are Linux's own.
fn carried(traffic: &Traffic) -> Config {
    let Config { congestion, ecn, tso_segments, mtu, pacing, nagle, delayed_ack, .. } = traffic.tcp;
    let all = Config { congestion, ecn, tso_segments, ..Config::default() };
    match traffic.kind {
        Kind::Bulk { size: None } => Config { mtu, pacing, ..all },
        Kind::Web(_) => Config { mtu, ..all },
        Kind::Messages { .. } => Config { nagle, delayed_ack, ..all },
        _ => all,
    }
}

fn flow(
    setup: &Setup,
    traffic: &Traffic,
    (group, index): (u32, u32),
    (start, random): (Time, Random),
) -> Result<Flow, String> {
    let (home, internet) = traffic.pairs[index as usize % traffic.pairs.len()];
    let congestion = traffic.tcp.congestion.name().to_string();
    let work = match &traffic.kind {
        _ if is_over_tcp(traffic) && traffic.tcp.congestion == CongestionControl::Ledbat => {
            return refused("LEDBAT");
        }
        Kind::Messages { size, interval } => Work::Messages {
            congestion,
            size: *size as usize,
            interval: real(*interval),
            nagle: traffic.tcp.nagle,
            delayed_ack: traffic.tcp.delayed_ack,
        },
        Kind::Dash(params) if traffic.direction == Direction::Down => {
            Work::Video { congestion, video: Video::of(params) }
        }
        Kind::Bulk { size: None } => Work::Bulk {
            congestion,
            paced: traffic.tcp.pacing == Pacing::On,
            mss: largest_segment(traffic),
        },
        Kind::Bulk { size: Some(size) } => {
            Work::Bursts { congestion, size: *size, gaps: vec![Duration::ZERO] }
        }
        Kind::Web(params) if traffic.direction == Direction::Down => Work::Web {
            congestion,
            mss: largest_segment(traffic),
            browsing: Browsing::of(params),
            random: random.seed(),
        },
        Kind::Bursts { size, pause } => {
            let mut gaps = Gaps::new(*pause, random);
            let mut left = setup.duration;
            let gaps = std::iter::from_fn(|| {
                let gap = (left > Span::ZERO).then(|| gaps.draw())?;
                left = Span(left.0.saturating_sub(gap.0.max(1)));
                Some(real(gap))
            });
            Work::Bursts { congestion, size: *size, gaps: gaps.collect() }
        }
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
    if traffic.tcp != carried(traffic) {
        return refused(format_args!("these settings of TCP of the traffic `{}`", traffic.name));
    }
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

/// The largest segment of `traffic`, if it is smaller than the interface's.
fn largest_segment(traffic: &Traffic) -> Option<u32> {
    (traffic.tcp.mtu < MTU).then(|| traffic.tcp.advertised_mss().into())
}

/// `setup` as it can be run in real time: at most `longest`, and the measured window, if it is
/// longer than what is left, shorter.
pub fn shortened(setup: &Setup, longest: Duration) -> Setup {
    let mut setup = setup.clone();
    let longest = span(longest);
    // Whatever begins later than this would not be seen at all.
    setup.duration = setup.duration.min(longest.max(setup.warmup + setup.recording.interval));
    setup
}

/// A moment of a run.
pub fn moment(at: Duration) -> Time {
    Time::ZERO + span(at)
}

#[cfg(test)]
mod tests {
    use simnel_scenario::{no_files, Scenario};

    use super::*;

    fn plan(line: &str, rest: &str) -> Result<Plan, String> {
        let text = format!(
            "duration = \"4s\"\n[line]\nup = \"1mbit\"\ndown = \"1mbit\"\nrtt = \"20ms\"\n\
             {line}\n[[traffic]]\nkind = \"bulk\"\ndirection = \"up\"\n{rest}"
        );
        let scenario = Scenario::parse(&text, "test", &no_files).expect("a scenario");
        let (setup, qdisc) = scenario.setup(None).expect("a set-up");
        Plan::new(&setup, &qdisc, 1)
    }

    #[test]
    fn settings_that_no_flow_carries_are_refused() {
        assert!(plan("", "nagle = true\npacing = true\nmtu = 600\ncc = \"reno\"\n").is_ok());
        for setting in ["nagle = false", "delayed-ack = false", "initial-window = 3", "gro = 4"] {
            let reason = plan("", &format!("{setting}\n")).expect_err(setting);
            assert!(reason.contains("settings of TCP of the traffic `bulk`"), "{reason}");
        }
        let reason = plan("reorder = \"1% by 10ms\"", "").expect_err("no wire does that");
        assert!(reason.starts_with("a line that reorders"), "{reason}");
    }

    fn host(name: &str, rate: &str) -> String {
        format!("[[host]]\nname = \"{name}\"\nside = \"home\"\n{rate}\n")
    }

    #[test]
    fn what_only_the_simulator_has_is_refused_by_name() {
        for (words, what) in [
            ("red ns bandwidth 1mbit", "RED as ns-2 has it"),
            ("drr srchost max-age 24ms", "DRR that drops"),
            ("drr srchost savings 1514", "DRR with savings"),
        ] {
            let refused = plan("", &format!("[qdisc]\nup = \"{words}\"\n"));
            let reason = refused.expect_err("Linux has it not");
            assert!(reason.starts_with(what), "{words}: {reason}");
        }
        let up =
            |words: &str| plan("", &format!("[qdisc]\nup = \"{words}\"\n")).map(|plan| plan.qdisc);
        assert_eq!(up("drr srchost savings 0"), up("drr srchost"));
        assert!(up("drr srchost").is_ok());
        let hosts = host("a", "rate = \"1gbit\"") + &host("b", "rate = \"2gbit\"");
        assert!(plan("", &hosts).expect_err("two rates").starts_with("hosts at home"));
        let cells = plan("framing = \"atm\"", "").expect_err("cells");
        assert!(cells.starts_with("a line with cells"), "{cells}");
    }

    fn internet(name: &str, rtt: &str) -> String {
        format!("[[host]]\nname = \"{name}\"\nside = \"internet\"\nrtt = \"{rtt}\"\n")
    }

    #[test]
    fn messages_and_video_are_orders_beside_hosts_that_are_further() {
        let flows = "[[traffic]]\nkind = \"iot\"\nsize = 100\ninterval = \"8ms\"\nnagle = false\n\
                     delayed-ack = false\ninternet = [\"far\"]\ncc = \"reno\"\n\
                     [[traffic]]\nkind = \"dash\"\ninternet = [\"near\"]\n";
        let hosts = internet("near", "40ms") + &internet("far", "240ms");
        let plan = plan("", &(flows.to_string() + &hosts)).expect("nothing unusual");
        let [near, far] = plan.internet[..] else { panic!("{:?}", plan.internet) };
        let ms = Duration::from_millis;
        let distances = BTreeMap::from([(ms(20), vec![near]), (ms(120), vec![far])]);
        assert_eq!((plan.by_distance(), plan.one_way()), (distances, None));
        let [_, messages, video] = &plan.flows[..] else { panic!("{:?}", plan.flows) };
        let expected = Work::Messages {
            congestion: "reno".into(),
            size: 100,
            interval: ms(8),
            nagle: false,
            delayed_ack: false,
        };
        assert_eq!((messages.internet, &messages.work), (far, &expected));
        let Work::Video { congestion, video: player } = &video.work else { panic!("{video:?}") };
        assert_eq!((video.up, congestion.as_str()), (false, "cubic"));
        assert_eq!(player.params(), dash::Params::default());
    }

    /// A household does there as it does here; gaps between transfers are those that are
    /// drawn here, and enough for the whole run.
    #[test]
    fn web_and_bursts_are_orders() {
        let flows = "[[traffic]]\nkind = \"web\"\nmtu = 600\ncc = \"reno\"\n\
                     [[traffic]]\nkind = \"bursts\"\nsize = 9000\n\
                     pause = [\"300ms\", \"700ms\"]\n";
        let ledbat = plan("", &format!("{flows}[[traffic]]\nkind = \"web\"\ncc = \"ledbat\"\n"));
        assert!(ledbat.expect_err("no Linux has it").starts_with("LEDBAT"));
        let plan = plan("", flows).expect("nothing unusual");
        let [_, web, bursts] = &plan.flows[..] else { panic!("{:?}", plan.flows) };
        let Work::Web { congestion, mss, browsing, .. } = &web.work else { panic!("{web:?}") };
        assert_eq!((web.up, congestion.as_str(), *mss), (false, "reno", Some(560)));
        assert_eq!(browsing.params(), web::Params::default());
        let Work::Bursts { size, gaps, .. } = &bursts.work else { panic!("{bursts:?}") };
        let ms = Duration::from_millis;
        assert_eq!((bursts.up, *size), (true, 9_000));
        assert!(gaps.iter().all(|gap| (ms(300)..=ms(700)).contains(gap)), "{gaps:?}");
        assert!(gaps.iter().sum::<Duration>() >= plan.duration, "{gaps:?}");
    }

    #[test]
    fn one_distance_is_the_way_to_all() {
        let plan = plan("", "").expect("nothing unusual");
        assert_eq!(plan.one_way(), Some(Duration::from_millis(10)));
    }

    /// Packets take their time where the simulator's line is a wire, and only there.
    #[test]
    fn a_wire_is_one_behind_the_discipline_too() {
        let plan = |line, rest| plan(line, rest).expect("nothing unusual");
        let wire = plan("", "[qdisc]\nup = \"pie\"\ndown = \"cake bandwidth {rate}\"\n");
        assert_eq!(wire.wire, [Some(1_000_000), None]);
        assert_eq!(wire.qdisc[0], "htb rate 1000000bit burst 64b cburst 64b pie");
        let bucket = plan("shaper = \"htb\"\nburst = 15140", "");
        assert_eq!(bucket.wire, [None; 2]);
        assert!(bucket.qdisc[0].starts_with("htb rate 1000000bit burst 15140b"));
    }

    #[test]
    fn access_lines_and_headers_that_do_not_count_are_orders() {
        let hosts = host("a", "rate = \"1gbit\"") + &host("b", "rate = \"1gbit\"");
        let plan = plan("framing = \"overhead 0\"", &hosts).expect("nothing unusual");
        assert_eq!((plan.access, plan.overhead), (Some(1_000_000_000), [-14; 2]));
        assert_eq!(plan.ways(), [Direction::Up]);
        assert_eq!(plan.segments, 1);
    }
}
