//! Rates that follow the line: the controller of `simnel-autorate`, with clock, probes and shapers.
//!
//! ```text
//! target.rs      reflectors as they are named
//! echo.rs        ICMP to reflectors, past our own queues
//! datagrams.rs   UDP to irtt servers, the same
//! session.rs     a session with one of those
//! copies.rs      headers of TCP that passes where the kernel shapes
//! here           ranges as words, reflectors by default, what `show` tells
//! ```
//!
//! The control thread does all of it, between clients: a tick and an answer cost some 30 µs each.
//! Sockets are opened before privileges go, and a daemon that is started again inherits them.

mod copies;
mod datagrams;
mod echo;
mod session;
mod target;

use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::BorrowedFd;

use serde::{Deserialize, Serialize};
use simnel_autorate::{Limits, RoundTrips, DOWN, MOST_REFLECTORS, UP};
use simnel_core::qdisc::Config;
use simnel_core::tc::units;
use simnel_core::Rate;

pub(crate) use copies::copies;
pub(crate) use datagrams::{Datagrams, News};
pub(crate) use session::{Message, Session};
pub use target::{Kind, Target};

use crate::direction::Direction;
use crate::error::Error;
use crate::frames::PacketSocket;
use crate::{sys, words};
use echo::Echoes;

/// Probed unless others are named: public resolvers, each at several places in the world. Those of
/// one operator do not follow each other, so that the first four fail independently.
const REFLECTORS: [&str; 10] = [
    "1.1.1.1",
    "9.9.9.9",
    "8.8.8.8",
    "208.67.222.222",
    "94.140.14.14",
    "1.0.0.1",
    "149.112.112.112",
    "8.8.4.4",
    "208.67.220.220",
    "94.140.15.15",
];

/// Between the two rates of a range.
const TO: &str = "..";

/// Settings of an interface whose rates follow its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Autorate {
    /// Upload and download; None keeps its rate.
    pub limits: [Option<Limits>; 2],
    /// Whom to probe, the first ones first. If nobody, passing TCP alone tells the delay.
    pub reflectors: Vec<Target>,
}

/// IP_UNICAST_IF and IPV6_UNICAST_IF of linux/in.h and linux/in6.h: the interface to leave by.
const UNICAST_IF: [(i32, i32); 2] = [(libc::IPPROTO_IP, 50), (libc::IPPROTO_IPV6, 76)];

/// Sockets for one interface's probes, opened before privileges go.
#[derive(Debug)]
pub(crate) struct Sockets {
    pub(crate) interface: String,
    /// None if nobody is asked by ICMP.
    pub(crate) echoes: Option<Echoes>,
    /// None if nobody is asked by irtt.
    pub(crate) datagrams: Option<Datagrams>,
    /// For copies of passing TCP's headers. None where a process holds the packets, or if there are
    /// reflectors and the kernel refuses.
    pub(crate) overhearing: Option<PacketSocket>,
}

/// Marks of our own probes, which pass the queues: they measure the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Own {
    /// Identifier of ICMP's.
    pub(crate) echo: Option<u16>,
    /// Our port of UDP, and those of the servers.
    pub(crate) datagrams: Option<(u16, Vec<u16>)>,
}

impl Sockets {
    /// Opens what `autorate` needs, `in_kernel` where the kernel shapes. CAP_NET_RAW is needed for
    /// ICMP, and there for passing TCP.
    ///
    /// # Errors
    /// That is missing, or the kernel refuses.
    pub(crate) fn open(
        interface: &str,
        autorate: &Autorate,
        in_kernel: bool,
    ) -> Result<Sockets, Error> {
        let asks = |kind| autorate.reflectors.iter().any(|target| target.kind() == kind);
        let echoes = asks(Kind::Icmp).then(|| Echoes::open(interface)).transpose()?;
        let datagrams = asks(Kind::Irtt).then(Datagrams::open).transpose();
        let datagrams = datagrams.map_err(|e| Error::system("opening a socket for irtt", e))?;
        let overhearing = match in_kernel.then(copies).transpose() {
            Ok(socket) => socket,
            Err(_) if autorate.probes() => None,
            Err(error) => {
                let interface = interface.to_owned();
                return Err(Error::NobodyTells { interface, error: error.to_string() });
            }
        };
        Ok(Sockets { interface: interface.to_owned(), echoes, datagrams, overhearing })
    }

    /// True if all that `autorate` needs is here, `in_kernel` where the kernel shapes.
    pub(crate) fn suffice(&self, autorate: &Autorate, in_kernel: bool) -> bool {
        let hears = !in_kernel || autorate.probes() || self.overhearing.is_some();
        hears
            && autorate.reflectors.iter().all(|target| match target.kind() {
                Kind::Icmp => self.echoes.is_some(),
                Kind::Irtt => self.datagrams.is_some(),
            })
    }

    /// Probes leave by the interface with this number from now on.
    pub(crate) fn leave_by(&self, index: u32) -> io::Result<()> {
        let datagrams = self.datagrams.iter().flat_map(Datagrams::fds).zip(UNICAST_IF);
        let echoes = self.echoes.iter().flat_map(Echoes::fds).zip(UNICAST_IF);
        for (fd, (level, name)) in echoes.chain(datagrams) {
            sys::set_option(&fd, level, name, index.to_be())?;
        }
        Ok(())
    }

    /// Readable when an answer is there.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let datagrams = self.datagrams.iter().flat_map(Datagrams::fds);
        self.echoes.iter().flat_map(Echoes::fds).chain(datagrams)
    }

    /// Marks by which the probes of `autorate` are known to be our own.
    pub(crate) fn own(&self, autorate: &Autorate) -> Own {
        let mut servers: Vec<u16> =
            autorate.reflectors.iter().filter_map(|target| target.port()).collect();
        servers.sort_unstable();
        servers.dedup();
        Own {
            echo: self.echoes.as_ref().map(|echoes| echoes.ident),
            datagrams: self.datagrams.as_ref().map(|datagrams| (datagrams.port, servers)),
        }
    }
}

/// Bytes that a direction's discipline has seen, as counters that wrap round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) arrived: u32,
    pub(crate) released: u32,
    /// Bytes queued.
    pub(crate) backlog: u32,
}

/// A shaped line as the driver of its rates sees it, whoever holds the packets.
pub(crate) trait Line {
    /// Brings what [`Line::passed`] tells up to date.
    ///
    /// # Errors
    /// The disciplines are not to be found.
    fn look(&mut self) -> Result<(), Error>;

    /// Bytes that a direction's discipline has seen; None if it is not shaped.
    fn passed(&self, direction: Direction) -> Option<Passed>;

    /// RTTs of passing TCP, up to now; None where no process sees the packets.
    fn round_trips(&mut self) -> Option<&RoundTrips>;

    /// Another rate, and nothing else.
    ///
    /// # Errors
    /// The discipline refuses.
    fn set_rate(&mut self, direction: Direction, rate: Rate) -> Result<(), Error>;
}

impl Autorate {
    /// The range of `direction`.
    pub fn limits(&self, direction: Direction) -> Option<Limits> {
        self.limits[index(direction)]
    }

    /// `config` at the rate with which `direction` begins, if it follows the line.
    pub fn beginning(&self, direction: Direction, config: &Config) -> Option<Config> {
        config.with_rate(self.limits(direction)?.middle(), words::burst)
    }

    /// True if it asks reflectors, for which it needs sockets.
    pub fn probes(&self) -> bool {
        !self.reflectors.is_empty()
    }

    /// True if it needs any sockets, `in_kernel` where the kernel shapes.
    pub(crate) fn needs_sockets(&self, in_kernel: bool) -> bool {
        self.probes() || in_kernel
    }

    /// Settings from each direction's range, and the addresses that were named, if any; none if
    /// nobody is to be asked.
    ///
    /// # Errors
    /// No direction has a range, an address is none, or there are too many.
    pub fn new(
        upload: Option<Limits>,
        download: Option<Limits>,
        named: Option<&[&str]>,
    ) -> Result<Autorate, String> {
        if upload.is_none() && download.is_none() {
            return Err(format!(
                "autorate needs a range to choose from: for example `download 10mbit{TO}80mbit`"
            ));
        }
        let read = |word: &&str| word.parse::<Target>().map_err(|e| format!("reflectors: {e}"));
        let reflectors: Vec<Target> =
            named.unwrap_or(&REFLECTORS).iter().map(read).collect::<Result<_, _>>()?;
        if reflectors.len() > usize::from(MOST_REFLECTORS) {
            return Err(format!(
                "reflectors: at most {MOST_REFLECTORS} addresses, not {}",
                reflectors.len()
            ));
        }
        for (place, target) in reflectors.iter().enumerate() {
            let address = target.address();
            if reflectors[..place].contains(target) {
                return Err(format!("reflectors: `{target}` is said twice, and would count twice"));
            }
            if address.is_loopback()
                || address.is_unspecified()
                || address.is_multicast()
                || address == Ipv4Addr::BROADCAST
            {
                return Err(format!("reflectors: `{target}` is no host beyond a line"));
            }
        }
        Ok(Autorate { limits: [upload, download], reflectors })
    }
}

pub(crate) fn index(direction: Direction) -> usize {
    match direction {
        Direction::Upload => UP,
        Direction::Download => DOWN,
    }
}

/// The rate that `said` begins with: of a range its end, with the range itself. `autorate` tells
/// whether a range can be.
///
/// # Errors
/// A range without autorate; a range that is none; rates that no line has.
pub fn range(
    direction: Direction,
    said: &str,
    autorate: bool,
) -> Result<(&str, Option<Limits>), String> {
    let Some((low, high)) = said.split_once(TO) else { return Ok((said, None)) };
    if !autorate {
        return Err(format!(
            "{direction}: `{said}` is a range, which only autorate can use: add `autorate`, or say \
             one rate (in a file: `autorate = true`)"
        ));
    }
    let rate = |word: &str| {
        words::check_rate(direction, word)?;
        let rate = units::rate(word).ok().filter(|rate| !rate.is_unlimited());
        rate.ok_or_else(|| {
            format!(
                "{direction}: `{word}` in `{said}` is no rate: say both with units, as \
                 10mbit{TO}80mbit"
            )
        })
    };
    let limits = Limits { floor: rate(low)?, ceiling: rate(high)? };
    if limits.floor >= limits.ceiling {
        let meant = match limits.floor == limits.ceiling {
            true => format!("leaves nothing to choose: say `{direction} {low}` without a range"),
            false => format!("is reversed: say `{high}{TO}{low}`"),
        };
        return Err(format!("{direction}: `{said}` {meant}"));
    }
    Ok((high, Some(limits)))
}

/// An error if the discipline has no single rate that could be moved.
///
/// # Errors
/// That, with the discipline's name.
pub fn movable(direction: Direction, config: &Config) -> Result<(), String> {
    let rate = config.rate().and_then(|rate| config.with_rate(rate, words::burst));
    rate.map(drop).ok_or_else(|| {
        let name = config.name();
        let instead = match config.children()[..] {
            [] => format!("the words of `{name}` leave none"),
            _ => format!("each class of `{name}` says its own"),
        };
        format!("{direction}: autorate needs one rate to move, and {instead}")
    })
}

/// Autorate of an interface, as `show` tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The interface.
    pub dev: String,
    /// Delay of the line above its baseline, µs; None while nobody answers.
    pub delay_us: Option<u64>,
    /// The lowest baseline of the reflectors, µs.
    pub baseline_us: Option<u64>,
    /// Times that a delay was found to be the route's.
    pub shifts: u32,
    /// Passing connections whose own timestamps tell RTTs now.
    #[serde(default)]
    pub connections: u32,
    /// True if they alone tell the delay, because no reflector answers.
    #[serde(default)]
    pub by_passing: bool,
    /// Directions that have a range.
    pub directions: Vec<Following>,
    /// All reflectors, in the order in which they are tried.
    pub reflectors: Vec<Reflector>,
}

/// One direction's rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Following {
    /// The direction.
    pub direction: Direction,
    /// Bits a second: the least, the most, and now.
    pub floor_bps: u64,
    /// See `floor_bps`.
    pub ceiling_bps: u64,
    /// See `floor_bps`.
    pub rate_bps: u64,
    /// The capacity that was found last, bit/s.
    pub known_bps: Option<u64>,
    /// `rising`, `holding` or `draining`.
    pub phase: String,
    /// Reason of the last change of rate.
    pub reason: Option<String>,
    /// Time since that change, ms.
    pub changed_ms: Option<u64>,
}

/// A reflector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reflector {
    /// Its address.
    pub address: IpAddr,
    /// Protocol by which it is asked.
    #[serde(default)]
    pub kind: Kind,
    /// Port of an irtt server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// True if it is probed now.
    pub active: bool,
    /// Probes answered.
    pub answered: u64,
    /// Probes lost.
    pub lost: u64,
    /// Its latest RTT, µs.
    pub rtt_us: Option<u64>,
    /// True if it tells when it answered, so that the way back is known.
    #[serde(default)]
    pub tells_time: bool,
    /// Reason why it did not answer last, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

impl Reflector {
    /// The reflector as it is named.
    pub fn target(&self) -> Target {
        match self.kind {
            Kind::Icmp => Target::Icmp(self.address),
            Kind::Irtt => Target::Irtt((self.address, self.port.unwrap_or_default()).into()),
        }
    }
}

impl Report {
    /// Active reflectors that answered their latest probes.
    pub fn answering(&self) -> usize {
        self.reflectors.iter().filter(|one| one.active && one.rtt_us.is_some()).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_read_and_its_end_is_the_rate() {
        let (rate, limits) = range(Direction::Upload, "2mbit..20mbit", true).unwrap();
        let mbit = |n: u64| Rate::from_bits(n * 1_000_000);
        assert_eq!(rate, "20mbit");
        assert_eq!(limits, Some(Limits { floor: mbit(2), ceiling: mbit(20) }));
        assert_eq!(range(Direction::Upload, "9mbit", true), Ok(("9mbit", None)));
        assert_eq!(range(Direction::Upload, "9mbit", false), Ok(("9mbit", None)));
    }

    #[test]
    fn a_direction_that_follows_begins_in_the_middle_and_another_where_it_is() {
        let (_, limits) = range(Direction::Upload, "2mbit..8mbit", true).unwrap();
        let autorate = Autorate::new(limits, None, Some(&[])).unwrap();
        let config = words::settings_of(Direction::Upload, Some("8mbit"), "fq_codel").unwrap();
        let begins = autorate.beginning(Direction::Upload, &config).and_then(|at| at.rate());
        assert_eq!(begins, Some(Rate::from_bits(4_000_000)));
        assert_eq!(autorate.beginning(Direction::Download, &config), None);
    }

    #[test]
    fn what_is_no_range_says_what_to_do() {
        for (said, autorate, expected) in [
            ("2mbit..20mbit", false, "add `autorate`, or say one rate"),
            ("20mbit..2mbit", true, "is reversed: say `2mbit..20mbit`"),
            ("2mbit..2mbit", true, "say `upload 2mbit` without a range"),
            ("2..20mbit", true, "`2` is 2 bits per second, less than a byte"),
            ("0..20mbit", true, "`0` in `0..20mbit` is no rate: say both with units"),
            ("20..30mbit", true, "did you mean `20mbit`?"),
            ("..20mbit", true, "`` in `..20mbit` is no rate"),
            ("2mbit..fast", true, "`fast` in `2mbit..fast` is no rate"),
            ("2mbit..unlimited", true, "`unlimited` in"),
        ] {
            let error = range(Direction::Upload, said, autorate).unwrap_err();
            assert!(error.contains(expected), "{said}: {error}");
        }
    }

    #[test]
    fn what_has_no_rate_to_move_says_why() {
        for (words, expected) in [
            ("cake unlimited", "the words of `cake` leave none"),
            (
                "htb default 1 class :1 rate 1mbit sfq class :2 rate 1mbit sfq",
                "each class of `htb`",
            ),
        ] {
            let config = simnel_core::qdisc::parse(words).unwrap();
            let error = movable(Direction::Upload, &config).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn reflectors_are_addresses() {
        let limits = range(Direction::Upload, "2mbit..20mbit", true).unwrap().1;
        let new = |named: Option<&[&str]>| Autorate::new(limits, None, named);
        assert_eq!(new(None).unwrap().reflectors.len(), REFLECTORS.len());
        assert_eq!(new(Some(&["192.0.2.1", "2001:db8::1"])).unwrap().reflectors.len(), 2);
        assert!(new(Some(&["example.org"])).unwrap_err().contains("`example.org` is no address"));
        let both = new(Some(&["192.0.2.1", "irtt:[2001:db8::1]:2113"])).unwrap();
        assert_eq!(
            both.reflectors.into_iter().map(Target::kind).collect::<Vec<_>>(),
            [Kind::Icmp, Kind::Irtt]
        );
        assert!(!new(Some(&[])).unwrap().probes());
        assert!(new(Some(&["192.0.2.1"; 65]))
            .unwrap_err()
            .contains("at most 64 addresses, not 65"));
        for (named, expected) in [
            (["192.0.2.1", "192.0.2.1"], "`192.0.2.1` is said twice"),
            (["irtt:192.0.2.1", "irtt:192.0.2.1:2112"], "`irtt:192.0.2.1` is said twice"),
            (["192.0.2.1", "127.0.0.1"], "`127.0.0.1` is no host beyond a line"),
            (["0.0.0.0", "192.0.2.1"], "`0.0.0.0` is no"),
            (["255.255.255.255", "192.0.2.1"], "`255.255.255.255` is no"),
            (["224.0.0.1", "192.0.2.1"], "`224.0.0.1` is no"),
            (["irtt:::1", "192.0.2.1"], "`irtt:::1` is no"),
        ] {
            let error = new(Some(&named)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        assert!(new(Some(&["192.0.2.1", "irtt:192.0.2.1"])).is_ok());
        let none = Autorate::new(None, None, None).unwrap_err();
        assert!(none.contains("`download 10mbit..80mbit`"), "{none}");
    }

    #[test]
    fn sockets_are_there_for_the_reflectors_and_leave_by_the_interface() {
        let limits = range(Direction::Upload, "2mbit..20mbit", true).unwrap().1;
        let new = |named: &[&str]| Autorate::new(limits, None, Some(named)).unwrap();
        let nobody = new(&[]);
        let servers = new(&["irtt:192.0.2.9:2113", "irtt:192.0.2.1", "irtt:192.0.2.2"]);
        let both = new(&["irtt:192.0.2.1", "192.0.2.2"]);
        assert!(servers.probes() && !nobody.probes());
        // Without ICMP no capability is needed.
        let sockets = Sockets::open("lo", &servers, false).unwrap();
        assert!(sockets.echoes.is_none() && sockets.fds().count() > 0);
        let suffices = [&nobody, &servers, &both].map(|autorate| sockets.suffice(autorate, false));
        assert_eq!(suffices, [true, true, false]);
        let port = sockets.datagrams.as_ref().map(|datagrams| datagrams.port).unwrap();
        let own = Own { echo: None, datagrams: Some((port, vec![2112, 2113])) };
        assert_eq!(sockets.own(&servers), own);
        let none = Sockets::open("lo", &nobody, false).unwrap();
        assert_eq!((none.own(&nobody), none.fds().count()), (Own::default(), 0));
        // Where the kernel shapes, passing TCP is not told by itself.
        assert!(none.suffice(&nobody, false) && !none.suffice(&nobody, true));
        match Sockets::open("lo", &nobody, true) {
            Ok(sockets) => assert!(sockets.suffice(&nobody, true)),
            Err(error) => assert!(error.to_string().contains("give the service CAP_NET_RAW")),
        }
        assert!(Sockets::open("lo", &servers, true).unwrap().suffice(&servers, true));
        let loopback = sys::interface("lo", sys::Query::Index).unwrap();
        sockets.leave_by(loopback).unwrap();
        assert!(sockets.leave_by(1 << 30).is_err(), "there is no such interface");
    }
}
