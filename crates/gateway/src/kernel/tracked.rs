//! Flows of an interface that the kernel shapes, as its connection tracking tells them
//! (linux/netfilter/nfnetlink_conntrack.h).
//!
//! A connection is told with addresses, ports and counts each way, but not with an interface. Where
//! addresses are translated, the interface is the one that has the address that others see.
//! Elsewhere it is the one that the route to either end leads by. Arrivals are counted behind the
//! discipline, what leaves in front of it.

use std::collections::hash_map::Entry;
use std::collections::HashMap;
use std::net::IpAddr;

use simnel_core::Time;

use crate::addresses;
use crate::direction::Direction;
use crate::error::Error;
use crate::flows::{FlowEntry, FORGOTTEN, MOST_FLOWS};
use crate::netlink::{attributes, Message, Socket, Writer};
use crate::routes;
use crate::sys::{self, Query};

/// Switch of the counters.
const ACCOUNTING: &str = "/proc/sys/net/netfilter/nf_conntrack_acct";
/// Bytes of Ethernet's header, which connection tracking does not count.
const ETHERNET: u64 = 14;

const NOT_TRACKED: &str = "no flows are told: no connections are tracked here, as they are where \
                           addresses are translated or a firewall looks at their state";
const NOT_COUNTED: &str = "some connections are not counted: `sysctl -w \
                           net.netfilter.nf_conntrack_acct=1`, for those that begin after it";

/// Lets connection tracking count packets and bytes of the connections that begin from now on.
/// Where it is not there, nothing is to be counted.
pub(crate) fn begin_counting() {
    let _ = std::fs::write(ACCOUNTING, "1");
}

/// One way of a connection; the port of its receiver is the sender's of the other way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tuple {
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    sport: u16,
}

/// Packets and bytes of one way, from the IP header on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    packets: u64,
    bytes: u64,
}

/// A connection as the kernel tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Connection {
    id: u32,
    /// As its first packet had them.
    original: Tuple,
    /// As answers have them.
    reply: Tuple,
    /// Of the first packet's way, and of answers; None if they are not counted.
    counts: Option<[Count; 2]>,
}

impl Connection {
    /// The attributes `CTA_*`.
    fn of(message: &Message<'_>) -> Option<Connection> {
        let (mut id, mut original, mut reply, mut counts) = (0, None, None, [None; 2]);
        for (kind, data) in message.attributes() {
            match kind {
                1 => original = tuple(data),
                2 => reply = tuple(data),
                9 => counts[0] = Some(count(data)),
                10 => counts[1] = Some(count(data)),
                12 => id = u32::from_be_bytes(*data.first_chunk()?),
                _ => {}
            }
        }
        let counts = counts[0].zip(counts[1]).map(|(first, answers)| [first, answers]);
        Some(Connection { id, original: original?, reply: reply?, counts })
    }

    /// The address that others see of the end that began, where that is translated.
    fn masquerade(&self) -> Option<IpAddr> {
        let seen = self.reply.destination;
        (seen != self.original.source).then_some(seen)
    }

    /// The entries of both directions; the upload is the first packet's if the connection
    /// `began_here`.
    fn entries(&self, dev: &str, began_here: bool) -> [FlowEntry; 2] {
        let [first, answers] = self.counts.unwrap_or_default();
        // Each end by the address that it has itself.
        let beginner = (self.original.source, self.original.sport);
        let answerer = (self.reply.source, self.reply.sport);
        let entry = |direction, from: (IpAddr, u16), to: (IpAddr, u16), count: Count| FlowEntry {
            dev: dev.to_owned(),
            direction,
            source: from.0,
            destination: to.0,
            sport: from.1,
            dport: to.1,
            protocol: self.original.protocol,
            packets: count.packets,
            bytes: count.bytes.saturating_add(count.packets.saturating_mul(ETHERNET)),
            rtt_ns: None,
            tracked: Some(self.id),
            held: None,
        };
        let (out, back) = match began_here {
            true => (Direction::Upload, Direction::Download),
            false => (Direction::Download, Direction::Upload),
        };
        [entry(out, beginner, answerer, first), entry(back, answerer, beginner, answers)]
    }
}

/// The attributes `CTA_TUPLE_*`, with `CTA_IP_*` and `CTA_PROTO_*`.
fn tuple(data: &[u8]) -> Option<Tuple> {
    let (mut ends, mut protocol, mut sport) = ([None; 2], None, 0);
    let port = |data: &[u8]| data.first_chunk().map_or(0, |port| u16::from_be_bytes(*port));
    for (kind, data) in attributes(data) {
        match kind {
            1 => {
                for (kind, data) in attributes(data) {
                    match kind {
                        1 | 3 => ends[0] = address(data),
                        2 | 4 => ends[1] = address(data),
                        _ => {}
                    }
                }
            }
            2 => {
                for (kind, data) in attributes(data) {
                    match kind {
                        1 => protocol = data.first().copied(),
                        2 => sport = port(data),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    let [source, destination] = ends;
    Some(Tuple { source: source?, destination: destination?, protocol: protocol?, sport })
}

fn address(data: &[u8]) -> Option<IpAddr> {
    match data.len() {
        4 => data.first_chunk::<4>().map(|octets| IpAddr::from(*octets)),
        16 => data.first_chunk::<16>().map(|octets| IpAddr::from(*octets)),
        _ => None,
    }
}

/// The attributes `CTA_COUNTERS_*`.
fn count(data: &[u8]) -> Count {
    let number = |data: &[u8]| data.first_chunk().map_or(0, |all| u64::from_be_bytes(*all));
    let mut count = Count::default();
    for (kind, data) in attributes(data) {
        match kind {
            1 => count.packets = number(data),
            2 => count.bytes = number(data),
            _ => {}
        }
    }
    count
}

/// A connection from look to look.
#[derive(Debug)]
struct Known {
    /// Of those that pass the interface: true if the end that began lies on this side of it.
    began_here: Option<bool>,
    bytes: u64,
    /// Time of the last look that found more bytes than the one before.
    moved: Time,
    /// Time of the last look at which the kernel told of it.
    told: Time,
}

/// Flows that were told, and why others are not.
#[derive(Clone, Debug, Default)]
pub struct Flows {
    /// Of the connections that moved in the last minute, at most [`MOST_FLOWS`] each way.
    pub flows: Vec<FlowEntry>,
    /// The reason why flows, or their counts, are missing.
    pub untold: Option<String>,
}

/// The connections that pass one interface.
#[derive(Debug, Default)]
pub struct Tracked {
    known: HashMap<u32, Known>,
}

impl Tracked {
    /// Its flows now, of the directions that are `shaped`. Whoever asks needs the capability
    /// NET_ADMIN.
    pub fn flows(&mut self, interface: &str, shaped: impl Fn(Direction) -> bool) -> Flows {
        let result = self.ask(interface, shaped).map_err(|error| match error {
            Error::System { source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                "flows of what the kernel shapes are told to root only".to_owned()
            }
            other => format!("flows are not told: {other}"),
        });
        result.unwrap_or_else(|why| Flows { untold: Some(why), ..Flows::default() })
    }

    fn ask(&mut self, interface: &str, shaped: impl Fn(Direction) -> bool) -> Result<Flows, Error> {
        const GET: i32 = libc::NFNL_SUBSYS_CTNETLINK << 8 | 1;
        let asking = |source| Error::system("asking connection tracking", source);
        let index = sys::interface(interface, Query::Index)
            .map_err(|_| Error::NoInterface(interface.to_owned()))?;
        let mut question = Writer::default();
        question.begin(GET, libc::NLM_F_DUMP, 1, libc::AF_UNSPEC as u8, 0);
        question.finish();
        let mut all = Vec::new();
        let socket = Socket::open().map_err(asking)?;
        socket.dump(&question, |message| all.extend(Connection::of(&message))).map_err(asking)?;
        let places = Places::look(index)?;
        let now = sys::now();
        let mut here = Vec::new();
        for connection in &all {
            let known = self.see(connection, now, |one| places.began_here(one));
            let Some(began_here) = known.began_here else { continue };
            // Entries of silent connections stand for days.
            if now.since(known.moved) <= FORGOTTEN {
                here.push((known.moved, began_here, connection));
            }
        }
        self.known.retain(|_, known| known.told == now);
        here.sort_by_key(|(moved, ..)| std::cmp::Reverse(*moved));
        here.truncate(MOST_FLOWS);
        let uncounted = here.iter().any(|(.., connection)| connection.counts.is_none());
        let untold = match (all.is_empty(), uncounted) {
            (true, _) => Some(NOT_TRACKED.to_owned()),
            (_, true) => Some(NOT_COUNTED.to_owned()),
            _ => None,
        };
        let flows = here
            .into_iter()
            .flat_map(|(_, began_here, connection)| connection.entries(interface, began_here))
            .filter(|flow| shaped(flow.direction));
        Ok(Flows { flows: flows.collect(), untold })
    }

    /// The record of `connection`, with what it says `now`; `way` finds its way.
    fn see(
        &mut self,
        connection: &Connection,
        now: Time,
        way: impl FnOnce(&Connection) -> Option<bool>,
    ) -> &Known {
        let [first, answers] = connection.counts.unwrap_or_default();
        let bytes = first.bytes.saturating_add(answers.bytes);
        let known = match self.known.entry(connection.id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let began_here = way(connection);
                place.insert(Known { began_here, bytes, moved: now, told: now })
            }
        };
        if known.bytes != bytes || connection.counts.is_none() {
            (known.bytes, known.moved) = (bytes, now);
        }
        known.told = now;
        known
    }
}

/// Places of addresses, seen from an interface.
struct Places {
    index: u32,
    own: Vec<(u32, IpAddr)>,
    routing: Socket,
}

impl Places {
    fn look(index: u32) -> Result<Places, Error> {
        let asking = |source| Error::system("asking for routes", source);
        let own = addresses::all().map_err(asking)?;
        Ok(Places { index, own, routing: Socket::open_routing().map_err(asking)? })
    }

    /// True if the end that began `connection` lies on this side of the interface, false if on the
    /// other. None if the connection does not pass it.
    fn began_here(&self, connection: &Connection) -> Option<bool> {
        let leads = |address| routes::leads_to(&self.routing, address) == Some(self.index);
        let owner = |address| {
            let mut own = self.own.iter();
            own.find(|(_, own)| *own == address).map(|(index, _)| *index)
        };
        match connection.masquerade().and_then(owner) {
            Some(index) if index == self.index => return Some(true),
            // It leaves by another one.
            Some(_) => return leads(connection.original.source).then_some(false),
            None => {}
        }
        if leads(connection.reply.source) {
            return Some(true);
        }
        leads(connection.original.source).then_some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Messages;

    const HOME: [u8; 4] = [10, 0, 0, 2];
    const OURS: [u8; 4] = [192, 0, 2, 1];
    const FAR: [u8; 4] = [198, 51, 100, 7];

    /// Addresses, ports and the protocol of one way, as the kernel writes them.
    fn write_tuple(writer: &mut Writer, kind: i32, ends: [(&[u8], u16); 2], protocol: u8) {
        let is_v4 = ends[0].0.len() == 4;
        let all = writer.start(kind);
        let addresses = writer.start(1);
        writer.attribute(if is_v4 { 1 } else { 3 }, ends[0].0);
        writer.attribute(if is_v4 { 2 } else { 4 }, ends[1].0);
        writer.end(addresses);
        let ports = writer.start(2);
        writer.attribute(1, &[protocol]);
        if protocol != 1 {
            writer.attribute(2, &ends[0].1.to_be_bytes());
            writer.attribute(3, &ends[1].1.to_be_bytes());
        }
        writer.end(ports);
        writer.end(all);
    }

    /// The message about a masqueraded TCP connection from home.
    fn message(counts: &[(i32, [u64; 2])]) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.begin(libc::NFNL_SUBSYS_CTNETLINK << 8, 0, 1, libc::AF_INET as u8, 0);
        write_tuple(&mut writer, 1, [(&HOME, 5000), (&FAR, 443)], 6);
        write_tuple(&mut writer, 2, [(&FAR, 443), (&OURS, 61_000)], 6);
        for (kind, [packets, bytes]) in counts {
            let all = writer.start(*kind);
            writer.attribute(1, &packets.to_be_bytes());
            writer.attribute(2, &bytes.to_be_bytes());
            writer.end(all);
        }
        writer.attribute(12, &77u32.to_be_bytes());
        writer.finish();
        writer.bytes().to_vec()
    }

    fn read(bytes: &[u8]) -> Option<Connection> {
        Connection::of(&Messages(bytes).next()?)
    }

    #[test]
    fn each_way_is_told_between_the_ends_themselves() {
        let connection = read(&message(&[(9, [10, 9_000]), (10, [7, 500])])).unwrap();
        assert_eq!(connection.masquerade(), Some(OURS.into()));
        let told = |began_here| {
            connection.entries("wan", began_here).map(|entry| {
                let ends = (entry.source, entry.sport, entry.destination, entry.dport);
                assert_eq!((entry.protocol, entry.tracked, entry.held), (6, Some(77), None));
                (entry.direction, ends, entry.packets, entry.bytes)
            })
        };
        let (home, far) = (IpAddr::from(HOME), IpAddr::from(FAR));
        let (out, back) = ((home, 5000, far, 443), (far, 443, home, 5000));
        let (first, answers) = ((10, 9_000 + 140), (7, 500 + 98));
        let (up, down) = (Direction::Upload, Direction::Download);
        let expected = [(up, out, first.0, first.1), (down, back, answers.0, answers.1)];
        assert_eq!(told(true), expected);
        let expected = [(down, out, first.0, first.1), (up, back, answers.0, answers.1)];
        assert_eq!(told(false), expected);
    }

    #[test]
    fn whatever_is_missing_or_cut_short_is_no_error() {
        assert_eq!(read(&message(&[])).unwrap().counts, None);
        assert_eq!(read(&message(&[(9, [1, 1])])).unwrap().counts, None);
        let whole = message(&[(9, [10, 9_000]), (10, [7, 500])]);
        for cut in 0..whole.len() {
            let _ = read(&whole[..cut]);
        }
        let mut writer = Writer::default();
        writer.begin(libc::NFNL_SUBSYS_CTNETLINK << 8, 0, 1, libc::AF_INET6 as u8, 0);
        let (here, there) = ([0xfd; 16], [0xfe; 16]);
        write_tuple(&mut writer, 1, [(&here, 0), (&there, 0)], 1);
        write_tuple(&mut writer, 2, [(&there, 0), (&here, 0)], 1);
        writer.finish();
        let ping = read(writer.bytes()).unwrap();
        assert_eq!((ping.original.source, ping.original.sport), (IpAddr::from(here), 0));
        assert_eq!(ping.masquerade(), None);
    }

    /// An entry that stands for days after its connection fell silent is not told for days.
    #[test]
    fn a_connection_is_silent_while_its_counts_stand() {
        let connection = |bytes| read(&message(&[(9, [1, bytes]), (10, [1, 1])])).unwrap();
        let mut tracked = Tracked::default();
        let mut asked = 0;
        let mut moved = |one: &Connection, at_s: u64| {
            let way = |_: &Connection| {
                asked += 1;
                Some(true)
            };
            tracked.see(one, Time(at_s * 1_000_000_000), way).moved.0 / 1_000_000_000
        };
        assert_eq!(moved(&connection(5), 1), 1);
        assert_eq!(moved(&connection(5), 40), 1);
        assert_eq!(moved(&connection(6), 41), 41);
        // Where nothing is counted, nobody can tell.
        assert_eq!(moved(&read(&message(&[])).unwrap(), 90), 90);
        assert_eq!(asked, 1, "a connection stays where it is");
    }
}
