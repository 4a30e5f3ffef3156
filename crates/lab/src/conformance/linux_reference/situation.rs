//! A recording's set-up as a set-up of the simulator.

use simnel_core::qdisc::Device;
use simnel_core::random::Random;
use simnel_core::tc::units;
use simnel_core::{dscp, Rate, Span};
use simnel_sim::setup::{Access, Host, Reading, Recording as Series};
use simnel_sim::{Direction, Kind, Run, Setup, Traffic};
use simnel_tcp::{Config, CongestionControl, EcnMode, Pacing};

use super::format::{self, Flow, Recording};
use super::tc_lines::port;
use super::tree::Tree;

/// The probes of the recordings (linux-reference/README): 64 bytes of UDP payload, ten a second.
const PROBE_SIZE: u32 = 64;
const PROBE_INTERVAL: Span = Span::from_millis(100);
/// From one read of a slow reader to the next (record-linux.py).
const READING: Span = Span::from_millis(10);
/// Several packets' time on the slowest line; little against the time that flows need to settle.
const STAGGER: Span = Span::from_millis(20);
/// Time by which netem lets a packet go too late in the recordings: 64 or 320 ns, 130 on average.
/// RTTs of an idle path are then two different numbers of µs. If they were all alike, BBR flows
/// that start within a round trip would look for the least RTT together ever after. None of them
/// would see the rate that others leave meanwhile.
const LATENESS: Span = Span(130);
/// Memory of a segment beside its payload, beyond which a recording makes no sense.
const MOST_OVERHEAD: u64 = 65_536;
/// The router's port towards the servers, and the one towards the clients.
const PORTS: [&str; 2] = ["r1", "r0"];

/// A set-up made from one of the recording's runs.
#[derive(Clone, Debug)]
pub struct Situation {
    /// Set-up of the simulation; traffic number n is the recording's flow number n.
    pub setup: Setup,
    /// Delays of the router's ports, up and down. Linux's delays are told beyond those of the end
    /// hosts, the simulator's beyond all propagation.
    pub(super) behind: [Span; 2],
    trees: [Option<Tree>; 2],
}

impl Situation {
    /// The situation of `run`, from its set-up alone.
    pub fn new(recording: &Recording, run: &format::Run) -> Result<Situation, String> {
        let [up, down] = PORTS.map(|device| port(&recording.tc, device));
        let (up, down) = (up?, down?);
        let behind = [up.delay, down.delay];
        let trees = [up.tree, down.tree];
        let access = HostAccess::read(recording, behind);
        let mut hosts = Vec::new();
        let mut traffic = Vec::new();
        for (number, flow) in run.flows.iter().enumerate() {
            traffic.push(make(recording, flow, number, &access, &mut hosts)?);
        }
        let seconds = |seconds: f64| Span((seconds * 1e9).round() as u64);
        let setup = Setup {
            duration: seconds(run.window_s[1].min(recording.duration_s)),
            warmup: seconds(run.window_s[0]),
            lines: [up.line, down.line],
            hosts,
            traffic,
            recording: Series::default(),
        };
        setup.check().map_err(|error| error.to_string())?;
        Ok(Situation { setup, behind, trees })
    }

    /// Its simulation, exactly as it was or with flows that start later ([`Situation::staggered`]).
    pub fn run(&self, exact: bool, seed: u64) -> Result<Run, String> {
        let setup = if exact { &self.setup } else { &self.staggered() };
        let mut run = Run::new(setup, seed).map_err(|error| error.to_string())?;
        run.share_memory();
        for (direction, tree) in Direction::BOTH.into_iter().zip(&self.trees) {
            let Some(tree) = tree else { continue };
            let line = &setup.lines[direction as usize];
            let seed = Random::derive(seed, 18 + direction as u64).u64();
            let qdisc = tree.build(&line.qdisc, &Device { seed, ..line.device });
            run.host(direction, qdisc.map_err(|error| error.to_string())?);
        }
        Ok(run)
    }

    /// The same with flows that start up to `STAGGER` later, at times that the seed draws. What
    /// depends on how flows and timers fall together then shows as scatter.
    pub fn staggered(&self) -> Setup {
        let mut setup = self.setup.clone();
        setup.traffic.iter_mut().for_each(|traffic| traffic.stagger = STAGGER);
        setup
    }
}

/// Delays at the hosts: half of the round-trip time before the router on either side, and what the
/// router's port towards them adds behind it.
struct HostAccess {
    egress: Access,
    /// On the way to servers and to clients.
    ingress: [Access; 2],
    pacing: bool,
}

impl HostAccess {
    fn read(recording: &Recording, behind: [Span; 2]) -> HostAccess {
        let words: Vec<&str> = recording.host_qdisc.split_whitespace().collect();
        let value = |key: &str| words.windows(2).find(|pair| pair[0] == key).map(|pair| pair[1]);
        let half = Span((recording.base_rtt_ms * 1e6 / 2.0).round() as u64);
        let delay = value("delay").and_then(|word| units::time(word).ok()).unwrap_or(half);
        let delay = delay + LATENESS;
        let rate: Option<Rate> = value("rate").and_then(|word| units::rate(word).ok());
        let ingress = behind.map(|delay| Access { delay, rate: None });
        HostAccess { egress: Access { delay, rate }, ingress, pacing: words.contains(&"fq") }
    }
}

/// The host of `address`, made if it is new.
fn host(hosts: &mut Vec<Host>, address: &str, home: bool, access: &HostAccess) -> usize {
    let octets: Vec<u8> = address.split('.').filter_map(|part| part.parse().ok()).collect();
    let default = [10, 0, if home { 1 } else { 2 }, 1];
    let address = <[u8; 4]>::try_from(octets).unwrap_or(default);
    let known = hosts.iter().position(|host| host.address == address && host.home == home);
    known.unwrap_or_else(|| {
        let ingress = access.ingress[usize::from(home)];
        hosts.push(Host { address, home, egress: access.egress, ingress });
        hosts.len() - 1
    })
}

fn make(
    recording: &Recording,
    flow: &Flow,
    number: usize,
    access: &HostAccess,
    hosts: &mut Vec<Host>,
) -> Result<Traffic, String> {
    let direction = match flow.dir.as_deref() {
        Some("down") => Direction::Down,
        _ => Direction::Up,
    };
    // `srcip` is the sender: at home for uploads.
    let (home, internet) = match direction {
        Direction::Up => (&flow.srcip, &flow.dstip),
        Direction::Down => (&flow.dstip, &flow.srcip),
    };
    let pair = (host(hosts, home, true, access), host(hosts, internet, false, access));
    let mark = flow.mark.as_deref().unwrap_or("BE");
    let dscp = match mark {
        "BE" => 0,
        name => dscp::parse(name).ok_or_else(|| format!("no such mark: `{name}`"))?,
    };
    let kind = match flow.t.as_str() {
        "tcp" => Kind::Bulk { size: flow.size.map(u64::from) },
        "cbr" => {
            let (Some(rate), Some(size)) = (flow.rate, flow.size) else {
                return Err("a CBR flow needs its rate and size".into());
            };
            let interval = f64::from(size) * 8e9 / rate;
            Kind::Datagrams { size, interval: Span(interval.round() as u64), ports: 1 }
        }
        "probe" => Kind::Ping { size: PROBE_SIZE, interval: PROBE_INTERVAL, icmp: false },
        other => return Err(format!("no such kind of flow: `{other}`")),
    };
    let start = Span((flow.start * 1e9).round() as u64);
    Ok(Traffic {
        pairs: vec![pair],
        dscp,
        start,
        stop: flow.stop.map(|stop| Span((stop * 1e9).round() as u64)),
        reading: flow.read.map(|rate| Reading {
            portion: (rate / 8.0 * READING.0 as f64 / 1e9) as u64,
            interval: READING,
        }),
        tcp: tcp(recording, flow, access)?,
        ..Traffic::one(&format!("{number} {} {mark}", flow.t), kind, direction)
    })
}

fn tcp(recording: &Recording, flow: &Flow, access: &HostAccess) -> Result<Config, String> {
    let mut config = Config::default();
    if let Some(name) = &flow.cc {
        config.congestion = CongestionControl::from_name(name)
            .ok_or_else(|| format!("no such congestion control: `{name}`"))?;
    }
    config.ecn = match recording.ecn {
        0 => EcnMode::Off,
        1 => EcnMode::On,
        _ => EcnMode::Passive,
    };
    if access.pacing || recording.environment("PACING").is_some_and(|paced| paced > 0) {
        config.pacing = Pacing::On;
    }
    if let Some(bytes) = recording.environment("MTU") {
        config.mtu = bytes.min(u64::from(u16::MAX)) as u16;
    }
    let agrees = |option| recording.environment(option) != Some(0);
    config.sack = agrees("SACK");
    config.timestamps = agrees("TIMESTAMPS");
    config.window_scaling = agrees("WINDOW_SCALING");
    if let Some(limit) = recording.environment("RMEM") {
        config.rcvbuf_max = limit.min(u64::from(u32::MAX)) as u32;
    }
    if let Some(limit) = recording.environment("WMEM") {
        config.sndbuf_max = limit.min(u64::from(u32::MAX)) as u32;
    }
    if let Some(bytes) = recording.environment("OVERHEAD") {
        config.segment_overhead = bytes.min(MOST_OVERHEAD) as u32;
    }
    if let Some(segments) = recording.environment("GSOSEGS") {
        config.tso_segments = segments.clamp(1, 255) as u8;
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The situation of a recording with this flow, whose router delays what goes to servers.
    fn situation(flow: &serde_json::Value) -> Situation {
        let recording: Recording = serde_json::from_value(json!({
            "base_rtt_ms": 40, "duration_s": 10, "env": {"MTU": 576, "TIMESTAMPS": 0, "SACK": 1},
            "host_qdisc": "netem delay 20000us limit 100000",
            "tc": ["tc qdisc add dev r1 root netem delay 30ms",
                   "tc qdisc add dev r0 root cake bandwidth 1mbit"],
            "runs": [{"window_s": [1, 10], "flows": [flow]}],
        }))
        .expect("a recording");
        Situation::new(&recording, &recording.runs[0]).expect("a situation")
    }

    #[test]
    fn a_flow_has_its_size_its_reader_and_its_packets() {
        let flow = json!({"t": "tcp", "dir": "up", "size": 9_000, "read": 800_000});
        let traffic = &situation(&flow).setup.traffic[0];
        assert_eq!(traffic.kind, Kind::Bulk { size: Some(9_000) });
        assert_eq!(traffic.reading, Some(Reading { portion: 1_000, interval: READING }));
        assert_eq!(traffic.tcp.mtu, 576);
        let Config { sack, timestamps, window_scaling, .. } = traffic.tcp;
        assert_eq!((sack, timestamps, window_scaling), (true, false, true));
        let traffic = &situation(&json!({"t": "tcp"})).setup.traffic[0];
        assert_eq!((&traffic.kind, traffic.reading), (&Kind::Bulk { size: None }, None));
    }

    /// netem at a port of the router keeps back what goes through that port, and nothing else.
    #[test]
    fn a_port_delays_what_goes_through_it() {
        let hosts = situation(&json!({"t": "probe", "dir": "up"})).setup.hosts;
        let delays: Vec<_> = hosts.iter().map(|host| (host.home, host.ingress.delay)).collect();
        assert_eq!(delays, [(true, Span::ZERO), (false, Span::from_millis(30))]);
    }
}
