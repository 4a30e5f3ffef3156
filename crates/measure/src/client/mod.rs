//! The measurement: echoes without a pause, and one load after the other beside them.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use crate::grade::quantile;
use crate::{Error, Report, Way};

mod account;
mod host;
pub mod iperf3;
mod irtt;
mod load;
mod probe;
#[cfg(feature = "network-quality")]
mod quality;
mod simnel;

use account::{milliseconds, within, Heard};
use load::{Carried, Load, Plan};
use probe::Prober;

/// Milliseconds of the quickest of some echoes from `host`, and by what; None if it gives none.
pub fn idle_delay(host: IpAddr) -> Option<(f64, &'static str)> {
    const INTERVAL: Duration = Duration::from_millis(50);
    const ECHOES: u32 = 6;
    let (prober, by) = host::start(host, INTERVAL, Instant::now())?;
    thread::sleep(INTERVAL * ECHOES);
    let quickest = prober.echoes().into_iter().filter_map(|echo| echo.rtt).min()?;
    Some((quickest.as_secs_f64() * 1e3, by))
}

/// The other end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Simnel {
        address: SocketAddr,
        token: Option<String>,
    },
    #[cfg(feature = "network-quality")]
    Quality(Box<quality::Quality>),
    Public {
        load: Option<SocketAddr>,
        echo: SocketAddr,
        irtt: bool,
    },
}

impl Peer {
    /// `simnel serve --test`.
    pub fn simnel(address: SocketAddr) -> Peer {
        Peer(Kind::Simnel { address, token: None })
    }

    /// The same, with the token that it wants.
    pub fn simnel_with(address: SocketAddr, token: Option<String>) -> Peer {
        Peer(Kind::Simnel { address, token })
    }

    /// An iperf3 server for load; echoes are its host's.
    pub fn iperf3(address: SocketAddr) -> Peer {
        Peer(Kind::Public { load: Some(address), echo: address, irtt: false })
    }

    /// An irtt server for echoes, and an iperf3 server for load, if there is one.
    pub fn irtt(address: SocketAddr, iperf3: Option<SocketAddr>) -> Peer {
        Peer(Kind::Public { load: iperf3, echo: address, irtt: true })
    }

    /// A server of networkQuality's convention, whose configuration is asked for at once: at HOST,
    /// or at a URL. Certificates are checked by those in the file `ca`, or by the system's.
    ///
    /// # Errors
    /// It is not there, or describes itself otherwise.
    #[cfg(feature = "network-quality")]
    pub fn network_quality(text: &str, ca: Option<&std::path::Path>) -> Result<Peer, Error> {
        Ok(Peer(Kind::Quality(Box::new(quality::Quality::find(text, ca)?))))
    }

    /// The address that is asked for echoes.
    pub fn address(&self) -> SocketAddr {
        match self.0 {
            Kind::Simnel { address, .. } => address,
            #[cfg(feature = "network-quality")]
            Kind::Quality(ref quality) => quality.address,
            Kind::Public { echo, .. } => echo,
        }
    }

    /// Starts echoes, and makes ready what can load the line.
    fn open(
        &self,
        options: &Options,
        start: Instant,
        notes: &mut Vec<String>,
    ) -> Result<(Prober, Option<Box<dyn Load>>), Error> {
        let interval = options.interval;
        match &self.0 {
            Kind::Simnel { address, token } => {
                let session = simnel::Session::open(*address, token.clone())?;
                let mut echoes = session.probes(interval, start)?;
                if !echoes.is_answered(PATIENCE) {
                    notes.push(format!("UDP to {address} is not answered: echoes by another way"));
                    echoes = other_echoes(*address, interval, start)?;
                }
                Ok((echoes, Some(Box::new(session))))
            }
            #[cfg(feature = "network-quality")]
            Kind::Quality(quality) => {
                let load = quality.load()?;
                Ok((other_echoes(quality.address, interval, start)?, Some(Box::new(load))))
            }
            Kind::Public { load, echo, irtt } => {
                let time = options.time() + DRAIN * (options.ways.len() + 1) as u32;
                let echoes = match irtt {
                    true => irtt::probes(*echo, interval, time, start)?,
                    false => other_echoes(*echo, interval, start)?,
                };
                let load =
                    load.map(|address| Box::new(iperf3::Iperf3 { address }) as Box<dyn Load>);
                Ok((echoes, load))
            }
        }
    }

    /// Finds the address of HOST or HOST:PORT.
    ///
    /// # Errors
    /// It is none, or the name is not known.
    pub fn find(text: &str, port: u16) -> Result<SocketAddr, Error> {
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(SocketAddr::new(address, port));
        }
        let no_address = || Error::NoAddress { text: text.to_owned(), port };
        let found = match text.contains(':') {
            true => text.to_socket_addrs(),
            false => (text, port).to_socket_addrs(),
        };
        match found {
            Ok(mut addresses) => addresses.next().ok_or_else(no_address),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Err(no_address()),
            Err(source) => Err(Error::Unresolved { text: text.to_owned(), port, source }),
        }
    }
}

/// Settings of a measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The other end.
    pub peer: Peer,
    /// TCP connections each way.
    pub flows: usize,
    /// Time for which the idle line is measured.
    pub idle: Duration,
    /// Time in which flows start, before each load that counts.
    pub ramp: Duration,
    /// Time of each load that counts.
    pub load: Duration,
    /// Time between echoes.
    pub interval: Duration,
    /// Loads.
    pub ways: Vec<Way>,
    /// A router at home, to tell WiFi from the line.
    pub gateway: Option<IpAddr>,
}

impl Options {
    /// As it usually is: half a minute.
    pub fn new(peer: Peer) -> Options {
        Options {
            peer,
            flows: 4,
            idle: Duration::from_secs(2),
            ramp: Duration::from_secs(2),
            load: Duration::from_secs(6),
            interval: Duration::from_millis(20),
            ways: Way::ALL.to_vec(),
            gateway: None,
        }
    }

    /// With loads that count for `load`. Short ones have a short time before them, too.
    pub fn lasting(self, load: Duration) -> Options {
        let before = load.min(Duration::from_secs(2));
        Options { load, idle: before, ramp: before, ..self }
    }

    /// Time that it takes, but for queues that have to drain.
    fn time(&self) -> Duration {
        self.idle + (self.ramp + self.load) * self.ways.len() as u32
    }
}

/// Step of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// In words.
    pub what: &'a str,
    /// Time passed and time planned, of the whole.
    pub elapsed: Duration,
    /// See `elapsed`.
    pub total: Duration,
}

/// Longest time that a queue may take to drain after a load.
const DRAIN: Duration = Duration::from_secs(12);
/// Longest time that a first echo may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Measures.
///
/// # Errors
/// The peer does not answer, or nothing comes through; [`Error::Cut`] if some loads have passed.
pub fn measure(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<Report, Error> {
    let start = Instant::now();
    let mut notes = Vec::new();
    let address = options.peer.address();
    let (echoes, mut load) = options.peer.open(options, start, &mut notes)?;
    if !echoes.is_answered(PATIENCE) {
        return Err(Error::Silent(address));
    }
    let home = options.gateway.and_then(|gateway| {
        let found = host::start(gateway, options.interval, start);
        if found.is_none() {
            notes.push(format!("the gateway {gateway} answers neither ICMP nor TCP"));
        }
        found.map(|(prober, by)| (prober, gateway, by))
    });

    let mut tell = |what: &str| {
        progress(Progress { what, elapsed: start.elapsed(), total: options.time() });
    };
    tell("the idle line");
    let idle_from = start.elapsed();
    thread::sleep(options.idle);
    let idle_to = start.elapsed();
    let mut carried: Vec<(Way, Carried)> = Vec::new();
    let mut failed = None;
    for &way in &options.ways {
        let Some(load) = &mut load else { break };
        tell(&format!("under load: {}", way.name()));
        let Options { flows, ramp, load: time, .. } = *options;
        match load.run(&Plan { way, flows, ramp, time, start }) {
            Ok(figures) => carried.push((way, figures)),
            Err(error) if carried.is_empty() => return Err(error),
            Err(error) => {
                let load = way.name();
                notes.push(format!("the load `{load}` failed: figures are of those before it"));
                failed = Some((load, Box::new(error)));
                break;
            }
        }
        tell("the queue drains");
        drain(&echoes, idle_to);
    }
    let heard = Heard {
        echoes: echoes.echoes(),
        home: home.map(|(prober, gateway, by)| (prober.echoes(), gateway, by)),
        idle: (idle_from, idle_to),
        carried,
    };
    let report = heard.report(options, notes);
    match failed {
        None => Ok(report),
        Some((load, reason)) => Err(Error::Cut { load, report: Box::new(report), reason }),
    }
}

/// Echoes from the host of a peer whose datagrams do not pass.
fn other_echoes(address: SocketAddr, interval: Duration, start: Instant) -> Result<Prober, Error> {
    if let Some((prober, _)) = host::start(address.ip(), interval, start) {
        return Ok(prober);
    }
    let prober = Prober::connections(address, interval.max(Duration::from_millis(50)), start);
    prober.is_answered(PATIENCE).then_some(prober).ok_or(Error::Silent(address))
}

/// Waits until echoes take as long as they did on the idle line.
fn drain(echoes: &Prober, idle: Duration) {
    const RECENT: usize = 10;
    let begin = Instant::now();
    while begin.elapsed() < DRAIN {
        thread::sleep(Duration::from_millis(100));
        let all = echoes.echoes();
        let usual = quantile(within(&all, Duration::ZERO, idle).map(milliseconds), 90);
        let quick = usual.unwrap_or(0.0) * 1.1 + 5.0;
        // The last ones cannot be back yet.
        let back = all.iter().rev().skip_while(|echo| echo.rtt.is_none()).take(RECENT);
        let waiting = all.iter().rev().take_while(|echo| echo.rtt.is_none());
        let waiting = all
            .last()
            .zip(waiting.last())
            .map_or(0.0, |(last, first)| (last.sent - first.sent).as_secs_f64() * 1e3);
        let calm = back.clone().count() == RECENT
            && back.clone().all(|echo| milliseconds(echo).is_none_or(|ms| ms < quick));
        if calm && waiting < quick {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_may_have_a_port() {
        let find = |text| Peer::find(text, 7).map(|address| address.to_string()).ok();
        assert_eq!(find("192.0.2.1").as_deref(), Some("192.0.2.1:7"));
        assert_eq!(find("192.0.2.1:9").as_deref(), Some("192.0.2.1:9"));
        assert_eq!(find("2001:db8::1").as_deref(), Some("[2001:db8::1]:7"));
        assert_eq!(find("[2001:db8::1]").as_deref(), Some("[2001:db8::1]:7"));
        assert_eq!(find("[2001:db8::1]:9").as_deref(), Some("[2001:db8::1]:9"));
        let error = |text| Peer::find(text, 7).expect_err("no address").to_string();
        assert!(error("192.0.2.1:x").contains("is no address: say HOST or HOST:PORT"));
        // A label has 63 characters at most, so that no server need be asked (RFC 1035, 2.3.4).
        let long = error(&"x".repeat(64));
        assert!(long.contains("cannot be resolved") && long.contains("192.0.2.1:7"), "{long}");
        assert_eq!(find(""), None);
    }
}
