//! Names that hosts at home give themselves: multicast DNS, asked backwards (RFC 6762).
//!
//! ```text
//! turn:  take in what has answered, then send a few queries; nobody waits
//! query: PTR of 4.3.2.1.in-addr.arpa, from a port of our own, to 224.0.0.251 or ff02::fb,
//!        by the interface that leads to the address
//! ```
//!
//! From such a port a query is a legacy one (section 6.7). Responders answer it directly, with its
//! number and question, so no group is joined. An IPv4 host is believed about itself only; one of
//! IPv6 answers by any of its addresses. Names pass the same filter as those of files.
//!
//! Bounds: [`QUERIES`] and [`ANSWERS`] a turn, turns [`BETWEEN`] apart, [`TRIES`] a round,
//! [`HOSTS`] addresses.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use rustix::net::sockopt;
use simnel_core::{Span, Time};

use crate::names::message::{self, POINTER};

const PORT: u16 = 5353;
const GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);
/// Hops of a query (section 11): whoever checks sees that it comes from the same network.
const HOPS: u32 = 255;
/// The Internet's class, with the wish for a direct answer (section 5.4).
const CLASS: [u8; 2] = [0x80, 1];

/// Queries of a turn: a home's hosts in some seconds, no burst on a wireless network.
const QUERIES: usize = 8;
/// Datagrams that a turn reads.
const ANSWERS: usize = 64;
/// Least time between two turns, however often somebody looks.
const BETWEEN: Span = Span::from_millis(500);
/// Queries of a round; a wireless network loses some.
const TRIES: u8 = 3;
/// Time from one of them to the next.
const RETRY: Span = Span::from_secs(2);
/// From a round without an answer to the next.
const SILENCE: Span = Span::from_secs(15 * 60);
/// From an answer to the next round.
const KEPT: Span = Span::from_secs(3_600);
/// Addresses that are remembered; then the one that would be asked first makes room.
const HOSTS: usize = 512;
/// An answer is far shorter; what is cut off is no answer.
const LONGEST: usize = 1_500;
/// Characters of a name (RFC 1035 allows 253).
const LONGEST_NAME: usize = 253;

/// An address, as far as it was asked.
#[derive(Clone, Debug)]
struct Host {
    /// Number of the last query.
    id: u16,
    /// Queries of this round.
    tries: u8,
    /// Time from which the next query may be sent.
    next: Time,
    name: Option<String>,
}

/// Asks for names.
#[derive(Debug, Default)]
pub(super) struct Asker {
    hosts: BTreeMap<IpAddr, Host>,
    next_turn: Time,
    v4: Option<UdpSocket>,
    v6: Option<UdpSocket>,
}

impl Asker {
    /// Takes in answers, and asks for some of `wanted` that are due.
    pub(super) fn turn(&mut self, wanted: impl Iterator<Item = IpAddr>, now: Time) {
        if now < self.next_turn {
            return;
        }
        self.next_turn = now + BETWEEN;
        self.take_answers(now);
        for (address, id) in self.due(wanted, now) {
            // A host that cannot be asked is one that does not answer.
            let _ = self.ask(address, id);
        }
    }

    /// Names that were told.
    pub(super) fn names(&self) -> impl Iterator<Item = (IpAddr, &str)> {
        self.hosts.iter().filter_map(|(address, host)| Some((*address, host.name.as_deref()?)))
    }

    /// Addresses to ask now, with the numbers of the queries.
    fn due(&mut self, wanted: impl Iterator<Item = IpAddr>, now: Time) -> Vec<(IpAddr, u16)> {
        let mut due = Vec::new();
        for address in wanted.filter(|address| is_at_home(*address)) {
            if due.len() == QUERIES {
                break;
            }
            if !self.hosts.contains_key(&address) {
                self.make_room();
                let host = Host { id: 0, tries: 0, next: now, name: None };
                self.hosts.insert(address, host);
            }
            let Some(host) = self.hosts.get_mut(&address).filter(|host| host.next <= now) else {
                continue;
            };
            host.id = random();
            host.tries += 1;
            host.next = now + RETRY;
            if host.tries == TRIES {
                // Another host may have the address by now. The answer to this query counts still.
                (host.tries, host.next, host.name) = (0, now + SILENCE, None);
            }
            due.push((address, host.id));
        }
        due
    }

    fn make_room(&mut self) {
        if self.hosts.len() >= HOSTS {
            let first = self.hosts.iter().min_by_key(|(_, host)| host.next);
            if let Some(address) = first.map(|(address, _)| *address) {
                self.hosts.remove(&address);
            }
        }
    }

    fn take_answers(&mut self, now: Time) {
        let mut bytes = [0; LONGEST];
        let mut answers = Vec::new();
        for socket in [&self.v4, &self.v6].into_iter().flatten() {
            for _ in 0..ANSWERS {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else { break };
                answers.push((bytes[..length].to_vec(), from));
            }
        }
        answers.iter().for_each(|(bytes, from)| self.take(bytes, from.ip(), now));
    }

    /// Learns from a datagram, if it answers a query.
    fn take(&mut self, bytes: &[u8], from: IpAddr, now: Time) {
        let Some(message) = message::read(bytes) else { return };
        let Some(answer) = message.answer else { return };
        let asked = |(address, host): &(&IpAddr, &mut Host)| {
            host.id == message.id
                && message.question.kind == POINTER
                && message.question.name == backwards(**address)
                && (from == **address || address.is_ipv6())
        };
        let Some((_, host)) = self.hosts.iter_mut().find(asked) else { return };
        let name = answer.names.into_iter().next().filter(|name| is_name(name));
        if let Some(name) = name {
            let name = name.strip_suffix(".local").unwrap_or(&name).to_owned();
            (host.tries, host.next, host.name) = (0, now + KEPT, Some(name));
        }
    }

    /// Sends a query for `address` to where it is.
    fn ask(&mut self, address: IpAddr, id: u16) -> std::io::Result<()> {
        let Some(here) = way_to(address)? else { return Ok(()) };
        match here {
            IpAddr::V4(here) => {
                let socket = opened(&mut self.v4, Ipv4Addr::UNSPECIFIED.into())?;
                sockopt::set_ip_multicast_if(socket, &here)?;
                socket.set_multicast_ttl_v4(HOPS)?;
                socket.send_to(&query(address, id), (GROUP_V4, PORT))?;
            }
            IpAddr::V6(here) => {
                let socket = opened(&mut self.v6, Ipv6Addr::UNSPECIFIED.into())?;
                let Some(index) = interface_with(here) else { return Ok(()) };
                sockopt::set_ipv6_multicast_if(socket, index)?;
                sockopt::set_ipv6_multicast_hops(socket, HOPS)?;
                socket.send_to(&query(address, id), (GROUP_V6, PORT))?;
            }
        }
        Ok(())
    }
}

/// True if `name` is one, and holds nothing that a terminal obeys.
pub(super) fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-_.' ".contains(c);
    let says_nothing = name.is_empty() || name == "*" || name == "localhost";
    !says_nothing && name.len() <= LONGEST_NAME && name.chars().all(is_part)
}

/// The socket of one version of IP, which is made for its first query.
fn opened(socket: &mut Option<UdpSocket>, any: IpAddr) -> std::io::Result<&UdpSocket> {
    if socket.is_none() {
        let new = UdpSocket::bind((any, 0))?;
        new.set_nonblocking(true)?;
        *socket = Some(new);
    }
    socket.as_ref().ok_or_else(|| std::io::ErrorKind::NotConnected.into())
}

/// Addresses that hosts of a home have: the Internet's IPv4 hosts are asked nothing.
fn is_at_home(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_private(),
        IpAddr::V6(address) => !(address.is_multicast() || address.is_loopback()),
    }
}

/// Our own address on the way to `address`; None if that is ours itself.
fn way_to(address: IpAddr) -> std::io::Result<Option<IpAddr>> {
    let any: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    // Nothing is sent by that: the kernel looks for the way.
    socket.connect(SocketAddr::new(address, PORT))?;
    Ok(Some(socket.local_addr()?.ip()).filter(|here| *here != address))
}

/// Number of the interface with the address `here`.
fn interface_with(here: Ipv6Addr) -> Option<u32> {
    let text = std::fs::read_to_string("/proc/thread-self/net/if_inet6").ok()?;
    interface_in(&text, here)
}

/// The same in the kernel's list: address and number in hexadecimal, and more.
fn interface_in(text: &str, here: Ipv6Addr) -> Option<u32> {
    let wanted = format!("{:032x}", here.to_bits());
    let line = text.lines().find_map(|line| line.strip_prefix(wanted.as_str()))?;
    u32::from_str_radix(line.split_whitespace().next()?, 16).ok()
}

/// The name under which the name of `address` is asked for.
fn backwards(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        IpAddr::V6(address) => {
            let digit = |at: u32| format!("{:x}.", address.to_bits() >> (4 * at) & 15);
            (0..32).map(digit).collect::<String>() + "ip6.arpa"
        }
    }
}

fn query(address: IpAddr, id: u16) -> Vec<u8> {
    let mut bytes = [id, 0, 1, 0, 0, 0].map(u16::to_be_bytes).concat();
    for label in backwards(address).split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend(POINTER.to_be_bytes());
    bytes.extend(CLASS);
    bytes
}

/// A number that nobody can guess, if the system has one.
fn random() -> u16 {
    let mut bytes = [0; 2];
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u16::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    const NOW: Time = Time(1_000_000_000_000);

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// An answer to the query for `address` with number `id`: `labels` are its name's.
    fn answer(address: IpAddr, id: u16, labels: &[&[u8]]) -> Vec<u8> {
        let mut bytes = query(address, id);
        (bytes[2], bytes[7]) = (0x84, 1);
        let label = |label: &&[u8]| [&[label.len() as u8], *label].concat();
        let name = [labels.iter().map(label).collect::<Vec<_>>().concat(), vec![0]].concat();
        // With the bit that says that nobody else has this name.
        let fixed = [0xc0, 12, 0, 12, 0x80, 1, 0, 0, 0, 10, 0, name.len() as u8];
        [bytes, fixed.to_vec(), name].concat()
    }

    #[test]
    fn names_are_asked_for_backwards() {
        assert_eq!(backwards(ip("192.168.1.5")), "5.1.168.192.in-addr.arpa");
        let v6 = backwards(ip("fd77::1234"));
        assert!(v6.starts_with("4.3.2.1.0.0.") && v6.ends_with(".7.7.d.f.ip6.arpa"), "{v6}");
        assert_eq!(v6.len(), 64 + "ip6.arpa".len());
        let bytes = query(ip("10.0.0.2"), 0x1234);
        assert_eq!(bytes[..12], [0x12, 0x34, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[12..], *b"\x012\x010\x010\x0210\x07in-addr\x04arpa\0\0\x0c\x80\x01");
    }

    #[test]
    fn an_answer_counts_if_it_was_asked_for_and_comes_from_the_host() {
        let (host, other) = (ip("10.0.0.2"), ip("10.0.0.3"));
        let mut asker = Asker::default();
        let [(_, id)] = asker.due([host].into_iter(), NOW)[..] else { panic!("one query") };
        let told = |asker: &Asker| asker.names().map(|(_, name)| name.to_owned()).next();
        let laptop: &[&[u8]] = &[b"Laptop", b"local"];
        for (bytes, from) in [
            (answer(host, id.wrapping_add(1), laptop), host),
            (answer(other, id, laptop), host),
            (answer(host, id, laptop), other),
            (answer(host, id, &[b"a\x1b[31m", b"local"]), host),
            (answer(host, id, &[b"a/b", b"local"]), host),
            (answer(host, id, &[]), host),
            (query(host, id), host),
        ] {
            asker.take(&bytes, from, NOW);
            assert_eq!(told(&asker), None, "{bytes:?} from {from}");
        }
        asker.take(&answer(host, id, laptop), host, NOW);
        assert_eq!(told(&asker).as_deref(), Some("laptop"));
        // A host of IPv6 has several addresses.
        let v6 = ip("fd77::2");
        let [(_, id)] = asker.due([v6].into_iter(), NOW)[..] else { panic!("one query") };
        asker.take(&answer(v6, id, &[b"phone", b"local"]), ip("fe80::1"), NOW);
        assert!(asker.names().any(|named| named == (v6, "phone")));
    }

    #[test]
    fn a_silent_host_is_asked_three_times_and_then_left_alone_for_a_while() {
        let host = ip("10.0.0.2");
        let mut asker = Asker::default();
        let mut asked = Vec::new();
        for second in 0..3_600 {
            if !asker.due([host].into_iter(), NOW + Span::from_secs(second)).is_empty() {
                asked.push(second);
            }
        }
        assert_eq!(asked[..4], [0, 2, 4, 904]);
        assert_eq!(asked.len(), 12);
        // One that has answered is not asked for an hour, and its name ends with its silence.
        let id = asker.hosts[&host].id;
        let answered = NOW + Span::from_secs(3_600);
        asker.take(&answer(host, id, &[b"tv", b"local"]), host, answered);
        for second in 0..3_599 {
            let now = answered + Span::from_secs(second);
            assert!(asker.due([host].into_iter(), now).is_empty());
        }
        for (second, names) in [(3_600, 1), (3_602, 1), (3_604, 0)] {
            asker.due([host].into_iter(), answered + Span::from_secs(second));
            assert_eq!(asker.names().count(), names);
        }
    }

    #[test]
    fn many_hosts_are_asked_a_few_at_a_time_and_forgotten_in_the_end() {
        let mut asker = Asker::default();
        let many = || (0..2_000u32).map(|n| IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + n)));
        for turn in 0..100 {
            let now = NOW + Span::from_secs(turn);
            assert!(asker.due(many(), now).len() <= QUERIES);
            assert!(asker.hosts.len() <= HOSTS);
        }
        let strangers = ["9.9.9.9", "127.0.0.1", "224.0.0.1", "::1", "ff02::1"].map(ip);
        assert!(asker.due(strangers.into_iter(), NOW).is_empty());
    }

    #[test]
    fn the_interface_of_an_address_is_read() {
        let text = "fe800000000000000000000000000001 02 40 20 80     eth0\n\
                    fd770000000000000000000000000001 0c 40 00 80     lan0\n";
        assert_eq!(interface_in(text, "fd77::1".parse().unwrap()), Some(12));
        assert_eq!(interface_in(text, "fd77::2".parse().unwrap()), None);
    }

    /// Of the one that would be asked first the least is known.
    #[test]
    fn the_host_that_would_be_asked_first_makes_room() {
        let mut asker = Asker::default();
        let host = |n: u32| IpAddr::from(Ipv4Addr::from_bits(0x0a00_0000 + n));
        for n in 0..HOSTS as u32 {
            asker.due([host(n)].into_iter(), NOW + Span(u64::from(n)));
        }
        asker.due([host(0)].into_iter(), NOW + RETRY + Span(1));
        asker.due([host(9_999)].into_iter(), NOW + RETRY + Span(2));
        assert_eq!(asker.hosts.len(), HOSTS);
        assert!(asker.hosts.contains_key(&host(0)) && !asker.hosts.contains_key(&host(1)));
    }

    /// However often somebody looks; those who are no hosts of a home are not asked.
    #[test]
    fn turns_are_half_a_second_apart() {
        let mut asker = Asker::default();
        let mut looked_at = |ms| {
            let mut seen = 0;
            let strangers = (0..3).map(|_| ip("9.9.9.9")).inspect(|_| seen += 1);
            asker.turn(strangers, NOW + Span::from_millis(ms));
            seen
        };
        let all = [0, 0, 499, 500, 501, 999, 1_000, 1_600].map(&mut looked_at);
        assert_eq!(all, [3, 0, 0, 3, 0, 0, 3, 3]);
    }

    #[test]
    fn numbers_of_queries_differ() {
        let numbers: std::collections::BTreeSet<u16> = (0..16).map(|_| random()).collect();
        assert!(numbers.len() > 8, "{numbers:?}");
    }

    #[test]
    fn hosts_are_asked_by_the_interface_that_leads_to_them() {
        use crate::apart::{apart, cable, ip};
        apart("hosts_are_asked_by_the_interface_that_leads_to_them", || {
            cable("lan", "far", "10.7.0.1/24");
            let mut asker = Asker::default();
            let mut bytes = [0; LONGEST];
            let patience = Some(std::time::Duration::from_secs(5));
            let host = self::ip("10.7.0.9");
            let group = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).unwrap();
            group.set_read_timeout(patience).unwrap();
            group.join_multicast_v4(&GROUP_V4, &[10, 7, 0, 1].into()).unwrap();
            asker.ask(host, 7).unwrap();
            let (length, from) = group.recv_from(&mut bytes).unwrap();
            assert_eq!((&bytes[..length], from.ip()), (&query(host, 7)[..], self::ip("10.7.0.1")));
            assert_eq!(way_to(self::ip("10.7.0.1")).unwrap(), None, "that is our own");
            // What the host answers is taken in.
            let loopback = self::ip("127.0.0.1");
            let known = Host { id: 8, tries: 1, next: NOW, name: None };
            asker.hosts.insert(loopback, known);
            let to = asker.v4.as_ref().unwrap().local_addr().unwrap().port();
            let answer = answer(loopback, 8, &[b"laptop", b"local"]);
            let host = UdpSocket::bind((Ipv4Addr::LOCALHOST, PORT + 1)).unwrap();
            host.send_to(&answer, (Ipv4Addr::LOCALHOST, to)).unwrap();
            let socket = asker.v4.as_ref().unwrap();
            crate::sys::wait(&[std::os::fd::AsFd::as_fd(socket)], Some(Span::from_secs(5)));
            asker.take_answers(NOW);
            assert!(asker.names().eq([(loopback, "laptop")]));
            if !Path::new("/proc/thread-self/net/if_inet6").exists() {
                return;
            }
            ip("address add fd77::1/64 dev lan nodad");
            let host = self::ip("fd77::9");
            drop(group);
            let group = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, PORT)).unwrap();
            group.set_read_timeout(patience).unwrap();
            let index = crate::sys::interface("lan", crate::sys::Query::Index).unwrap();
            group.join_multicast_v6(&GROUP_V6, index).unwrap();
            asker.ask(host, 9).unwrap();
            let (length, _) = group.recv_from(&mut bytes).unwrap();
            assert_eq!(bytes[..length], query(host, 9));
        });
    }
}
