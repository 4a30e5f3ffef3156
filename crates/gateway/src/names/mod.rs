//! Addresses of host names, from the answers of DNS that pass.
//!
//! ```text
//! message.rs   messages of DNS: a question, and the addresses that answer it
//! log.rs       copies of what goes to port 53 and comes from there, by NFLOG
//! here         which answer counts, for how long, and what a daemon to come is told
//! ```
//!
//! An answer counts if it was asked for: addresses, ports, number and question fit a query that has
//! left by the interface within [`PATIENCE`]. So what a stranger sends unasked changes nothing, and
//! a forged answer needs what it takes to deceive the resolver itself.
//!
//! Each address stands in the kernel, in the sets of the names that the answer leads through. It
//! stays there while traffic with it flows (`nft`). Bounded: queries that wait ([`WAITING`]),
//! addresses of a name ([`ADDRESSES`]), copies read at a time, of which a flood only adds loss.

mod log;
pub(crate) mod message;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use simnel_core::flow::Addresses;
use simnel_core::wire::{flow_keys, payload, FlowKeys};
use simnel_core::{Span, Time};

use crate::classify::LINK;
use crate::control_dir::{open_directory, open_file};
use crate::error::Error;
use crate::rules::HostName;
use log::{Log, Logged};
pub(crate) use log::{COPY_RANGE, LACKS};
use message::Question;

/// Port of resolvers.
pub(crate) const PORT: u16 = 53;
/// An answer that takes longer is none.
const PATIENCE: Span = Span::from_secs(10);
/// Queries that wait for their answers.
const WAITING: usize = 1_024;
/// Addresses of one name.
pub(crate) const ADDRESSES: usize = 1_024;
/// Least and longest time that an address is kept. Clients ask no oftener than once in a while,
/// whatever an answer says, and no name stays at one place for ever.
const SHORTEST: Span = Span::from_secs(600);
/// See `SHORTEST`.
pub(crate) const LONGEST: Span = Span::from_secs(6 * 3_600);
/// Pause after as many copies as are read at a time.
const REST: Span = Span::from_millis(20);
/// Time between writings of the file.
const WRITE: Span = Span::from_secs(5);

/// An address of a name, and how long it is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) host: HostName,
    pub(crate) address: IpAddr,
    pub(crate) kept: Span,
}

/// Both ends of a query, and what it asked.
struct Query {
    flow: FlowKeys,
    id: u16,
    question: Question,
    sent: Time,
}

/// Addresses of the host names in one interface's rules.
pub(crate) struct Names {
    log: Log,
    hosts: Vec<HostName>,
    queries: VecDeque<Query>,
    known: Addressed,
    /// Time from which copies are read again.
    rested: Time,
    file: PathBuf,
    /// Something is known that the file does not say; and when it was written.
    unwritten: bool,
    written: Time,
}

/// Addresses of names, and until when they hold.
type Addressed = BTreeMap<HostName, BTreeMap<IpAddr, Time>>;

impl Names {
    /// Begins with what an earlier daemon knew of `interface`, and the first free log group.
    ///
    /// # Errors
    /// The kernel lacks what it takes, or all groups are taken.
    pub(crate) fn open(
        directory: &Path,
        interface: &str,
        groups: RangeInclusive<u16>,
        now: Time,
    ) -> Result<Names, Error> {
        let file = directory.join(format!("{interface}.names"));
        Ok(Names::begin(Log::open(groups)?, file, now))
    }

    /// Begins with what `file` says.
    fn begin(log: Log, file: PathBuf, now: Time) -> Names {
        let mut names = Names {
            log,
            hosts: Vec::new(),
            queries: VecDeque::new(),
            known: BTreeMap::new(),
            rested: now,
            file,
            unwritten: false,
            written: now,
        };
        // A hint: without it names are learnt as they are asked for.
        let mut text = String::new();
        if names.open_file().is_ok_and(|mut file| file.read_to_string(&mut text).is_ok()) {
            names.known = read(&text, now);
        }
        names
    }

    fn open_file(&self) -> Result<File, Error> {
        let directory = self.file.parent().unwrap_or(Path::new("."));
        let name = self.file.file_name().unwrap_or_default().to_string_lossy();
        open_file(&open_directory(directory)?, &name, &self.file)
    }

    /// Number of the group to which rules must log.
    pub(crate) fn group(&self) -> u16 {
        self.log.group
    }

    /// Names that rules speak of.
    pub(crate) fn set_hosts(&mut self, hosts: Vec<HostName>) {
        self.known.retain(|host, _| hosts.contains(host));
        self.hosts = hosts;
    }

    /// All that is known, for sets that are empty.
    pub(crate) fn all(&self, now: Time) -> Vec<Known> {
        let one = |host: &HostName, (address, until): (&IpAddr, &Time)| Known {
            host: host.clone(),
            address: *address,
            kept: until.since(now).max(SHORTEST),
        };
        self.known
            .iter()
            .flat_map(|(host, all)| all.iter().map(move |entry| one(host, entry)))
            .collect()
    }

    /// Number of addresses that are known of `hosts`.
    pub(crate) fn count(&self, hosts: &[HostName]) -> usize {
        hosts.iter().filter_map(|host| self.known.get(host)).map(BTreeMap::len).sum()
    }

    /// Readable when a copy is there.
    pub(crate) fn fd(&self, now: Time) -> Option<BorrowedFd<'_>> {
        (now >= self.rested).then(|| self.log.as_fd())
    }

    /// Time until copies are read again, where they wait.
    pub(crate) fn patience(&self, now: Time) -> Option<Span> {
        Some(self.rested.since(now)).filter(|rest| *rest > Span::ZERO)
    }

    /// Reads copies that are there; addresses that are to be kept from now on.
    pub(crate) fn turn(&mut self, now: Time) -> Vec<Known> {
        let mut found = Vec::new();
        if now >= self.rested {
            let (read, more) = self.log.receive();
            for index in 0..read {
                let Some(Logged { leaves, bytes }) = self.log.packet(index) else { continue };
                let Some((flow, message)) = dns(bytes) else { continue };
                let seen = Seen { flow, message, leaves };
                take(&mut self.queries, &mut self.known, &self.hosts, seen, now, &mut found);
            }
            if more {
                self.rested = now + REST;
            }
        }
        self.unwritten |= !found.is_empty();
        if self.unwritten && now >= self.written + WRITE {
            self.write(now);
        }
        found
    }

    /// Forgets what is long over, and writes the rest for a daemon to come.
    fn write(&mut self, now: Time) {
        for all in self.known.values_mut() {
            all.retain(|_, until| now < *until + LONGEST);
        }
        (self.unwritten, self.written) = (false, now);
        // Where it cannot be written, a daemon to come learns anew.
        let _ = self.open_file().and_then(|mut file| {
            let text = written(&self.known);
            let all = file.rewind().and_then(|()| file.set_len(0));
            all.and_then(|()| file.write_all(text.as_bytes()))
                .map_err(|e| Error::system("writing names", e))
        });
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        if self.unwritten {
            self.write(crate::sys::now());
        }
    }
}

/// A message of DNS as it passes.
struct Seen {
    flow: FlowKeys,
    message: message::Message,
    leaves: bool,
}

/// Remembers a query; of an answer to one, keeps the addresses of `hosts`.
fn take(
    queries: &mut VecDeque<Query>,
    known: &mut Addressed,
    hosts: &[HostName],
    Seen { flow, message, leaves }: Seen,
    now: Time,
    found: &mut Vec<Known>,
) {
    while queries.front().is_some_and(|query| now.since(query.sent) > PATIENCE) {
        queries.pop_front();
    }
    let message::Message { id, question, answer } = message;
    let Some(answer) = answer.filter(|_| !leaves) else {
        if leaves {
            if queries.len() == WAITING {
                queries.pop_front();
            }
            queries.push_back(Query { flow, id, question, sent: now });
        }
        return;
    };
    let asked = reversed(flow);
    let fits = |query: &Query| query.flow == asked && query.id == id && query.question == question;
    let Some(place) = queries.iter().position(fits) else { return };
    queries.remove(place);
    let kept = Span::from_secs(answer.ttl.into()).clamp(SHORTEST, LONGEST);
    let named = |host: &&HostName| {
        answer.aliases.iter().chain([&question.name]).any(|name| host.covers(name))
    };
    for host in hosts.iter().filter(named) {
        let all = known.entry(host.clone()).or_default();
        for &address in &answer.addresses {
            if all.len() >= ADDRESSES && !all.contains_key(&address) {
                // Whoever owns the name has used up its room.
                all.retain(|_, until| now < *until);
                if all.len() >= ADDRESSES {
                    continue;
                }
            }
            all.insert(address, now + kept);
            found.push(Known { host: host.clone(), address, kept });
        }
    }
}

/// The flow of an answer to a query of `flow`.
fn reversed(flow: FlowKeys) -> FlowKeys {
    let addresses = match flow.addresses {
        Addresses::V4(from, to) => Addresses::V4(to, from),
        Addresses::V6(from, to) => Addresses::V6(to, from),
    };
    let [s0, s1, d0, d1] = flow.ports;
    FlowKeys { addresses, ports: [d0, d1, s0, s1], ..flow }
}

/// The message of DNS in a packet. Over TCP it must be whole in one segment, behind its length.
fn dns(packet: &[u8]) -> Option<(FlowKeys, message::Message)> {
    let flow = flow_keys(LINK, packet);
    let bytes = payload(LINK, packet)?;
    let bytes = match flow.protocol.map(i32::from) {
        Some(libc::IPPROTO_UDP) => bytes,
        Some(libc::IPPROTO_TCP) => {
            let (length, rest) = bytes.split_first_chunk()?;
            rest.get(..usize::from(u16::from_be_bytes(*length)))?
        }
        _ => return None,
    };
    Some((flow, message::read(bytes)?))
}

/// A line for each address: until when it holds, the address, the name.
fn written(known: &Addressed) -> String {
    let mut text = String::new();
    for (host, all) in known {
        for (address, until) in all {
            let _ = writeln!(text, "{} {address} {host}", until.0);
        }
    }
    text
}

/// Understands what [`written`] wrote, as far as it makes sense; times are those since the start of
/// the machine.
fn read(text: &str, now: Time) -> Addressed {
    let mut known = Addressed::new();
    for line in text.lines() {
        let mut words = line.split(' ');
        let mut next = || words.next();
        let (Some(until), Some(address), Some(host)) = (next(), next(), next()) else { continue };
        let until = until.parse().map(Time);
        let (Ok(until), Ok(address), Ok(host)) = (until, address.parse(), HostName::read(host))
        else {
            continue;
        };
        if until <= now + LONGEST && now < until + LONGEST {
            let all = known.entry(host).or_default();
            if all.len() < ADDRESSES {
                all.insert(address, until);
            }
        }
    }
    known
}

/// True if a packet holds a message of DNS, for the fuzz target.
pub(crate) fn reads(datagram: &[u8]) -> bool {
    dns(datagram).is_some()
        || log::parse(datagram).is_some_and(|logged| dns(logged.bytes).is_some())
}

#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use super::message::tests::labels;
    use super::*;

    const NOW: Time = Time(3_600_000_000_000_000);

    fn flow(server: u8) -> FlowKeys {
        let addresses = Addresses::V4([192, 168, 1, 7], [192, 0, 2, server]);
        FlowKeys { addresses, protocol: Some(17), ports: [0x9c, 0x40, 0, 53] }
    }

    fn message(id: u16, name: &str, ttl: Option<u32>) -> message::Message {
        let question = Question { name: name.into(), kind: 1 };
        let address = IpAddr::from([203, 0, 113, 9]);
        let answer = ttl.map(|ttl| message::Answer {
            aliases: vec!["edge.cdn.example".into()],
            addresses: vec![address],
            names: Vec::new(),
            ttl,
        });
        message::Message { id, question, answer }
    }

    /// Addresses learnt from an answer to number `id` by `server`; server 1 was asked number 5.
    fn learnt(id: u16, server: u8, name: &str, ttl: u32, host: &str) -> Vec<Known> {
        let (mut queries, mut known) = (VecDeque::new(), Addressed::new());
        let hosts = [HostName::read(host).unwrap()];
        let mut found = Vec::new();
        let query = message(5, "video.example.org", None);
        let query = Seen { flow: flow(1), message: query, leaves: true };
        take(&mut queries, &mut known, &hosts, query, NOW, &mut found);
        assert!(found.is_empty());
        let answer = message(id, name, Some(ttl));
        for _ in 0..2 {
            let (flow, message) = (reversed(flow(server)), answer.clone());
            let answer = Seen { flow, message, leaves: false };
            take(&mut queries, &mut known, &hosts, answer, NOW, &mut found);
        }
        found
    }

    #[test]
    fn only_what_was_asked_for_counts_and_only_once() {
        let known = |host: &str| learnt(5, 1, "video.example.org", 900, host);
        assert_eq!(known("example.org").len(), 1);
        assert_eq!(known("cdn.example").len(), 1, "the name behind the alias");
        assert_eq!(known("example.net").len(), 0);
        assert_eq!(learnt(6, 1, "video.example.org", 900, "example.org").len(), 0, "number");
        assert_eq!(learnt(5, 2, "video.example.org", 900, "example.org").len(), 0, "server");
        assert_eq!(learnt(5, 1, "other.example.org", 900, "example.org").len(), 0, "question");
    }

    #[test]
    fn times_have_bounds() {
        let kept = |ttl| learnt(5, 1, "video.example.org", ttl, "example.org")[0].kept;
        assert_eq!([kept(0), kept(900), kept(u32::MAX)], [SHORTEST, Span::from_secs(900), LONGEST]);
    }

    #[test]
    fn queries_that_wait_are_few_and_not_for_ever() {
        let (mut queries, mut known) = (VecDeque::new(), Addressed::new());
        for id in 0..3_000 {
            let seen = Seen { flow: flow(1), message: message(id, "a", None), leaves: true };
            take(&mut queries, &mut known, &[], seen, NOW, &mut Vec::new());
        }
        assert_eq!(queries.len(), WAITING);
        let seen = Seen { flow: flow(1), message: message(1, "a", None), leaves: true };
        take(&mut queries, &mut known, &[], seen, NOW + PATIENCE + REST, &mut Vec::new());
        assert_eq!(queries.len(), 1);
    }

    #[test]
    fn a_name_has_no_more_than_its_room() {
        let (mut queries, mut known) = (VecDeque::new(), Addressed::new());
        let hosts = [HostName::read("example.org").unwrap()];
        let mut found = Vec::new();
        for id in 0..40u16 {
            let query =
                Seen { flow: flow(1), message: message(id, "example.org", None), leaves: true };
            take(&mut queries, &mut known, &hosts, query, NOW, &mut found);
            let mut message = message(id, "example.org", Some(60));
            let Some(answer) = &mut message.answer else { unreachable!() };
            answer.addresses = (0..=127).map(|n| IpAddr::from([10, 0, id as u8, n])).collect();
            let answer = Seen { flow: reversed(flow(1)), message, leaves: false };
            take(&mut queries, &mut known, &hosts, answer, NOW, &mut found);
        }
        assert_eq!((known[&hosts[0]].len(), found.len()), (ADDRESSES, ADDRESSES));
    }

    #[test]
    fn a_daemon_to_come_reads_what_was_written_and_no_nonsense() {
        let host = HostName::read("example.org").unwrap();
        let entry = |last, span| (IpAddr::from([192, 0, 2, last]), NOW + Span::from_secs(span));
        let known =
            Addressed::from([(host.clone(), BTreeMap::from([entry(1, 60), entry(2, 600)]))]);
        let text = written(&known);
        assert_eq!(read(&text, NOW), known);
        // Cut anywhere, of another start of the machine, long over.
        for length in 0..text.len() {
            assert!(read(&text[..length], NOW).values().all(|all| all.len() <= 2));
        }
        assert_eq!(read(&text, Time::ZERO), Addressed::new());
        assert_eq!(read(&text, NOW + LONGEST + LONGEST), Addressed::new());
        assert_eq!(read("1 2 3\n\n-1 192.0.2.1 a.org\n9 192.0.2.1", Time(9)), Addressed::new());
    }

    #[test]
    fn messages_are_found_in_packets_of_udp_and_tcp() {
        let query =
            [&[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &labels("example.org"), &[0, 1, 0, 1]]
                .concat();
        let packet = |protocol: u8, transport: &[u8], body: &[u8]| {
            let length = (20 + transport.len() + body.len()) as u8;
            let ip = [0x45, 0, 0, length, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            [&ip[..], transport, body].concat()
        };
        let udp = packet(17, &[0x9c, 0x40, 0, 53, 0, 0, 0, 0], &query);
        assert_eq!(dns(&udp).unwrap().1.question.name, "example.org");
        let mut header = vec![0x9c, 0x40, 0, 53];
        header.resize(12, 0);
        header.extend([0x50, 0x18, 0, 0, 0, 0, 0, 0]);
        let framed = [&(query.len() as u16).to_be_bytes()[..], &query].concat();
        assert_eq!(dns(&packet(6, &header, &framed)).unwrap().1.id, 7);
        // The rest of a message is in another segment.
        assert!(dns(&packet(6, &header, &framed[..framed.len() - 1])).is_none());
        assert!(dns(&packet(6, &header, &[])).is_none());
    }

    #[test]
    fn an_answer_comes_from_where_the_query_went_and_in_time() {
        let hosts = [HostName::read("example.org").unwrap()];
        let [home, far, other] = [[0xfd; 16], [0x20; 16], [0x21; 16]];
        let v6 = |far| FlowKeys { addresses: Addresses::V6(home, far), ..flow(1) };
        let back = |addresses, port| FlowKeys {
            addresses,
            protocol: Some(17),
            ports: [0, 53, 0x9c, port],
        };
        let v4 = Addresses::V4([192, 0, 2, 1], [192, 168, 1, 7]);
        for (asked, answered, after, counts) in [
            (flow(1), back(v4, 0x40), PATIENCE, true),
            (flow(1), back(v4, 0x40), PATIENCE + Span(1), false),
            (flow(1), flow(1), Span(0), false),
            (flow(1), back(v4, 0x41), Span(0), false),
            (v6(far), back(Addresses::V6(far, home), 0x40), Span(0), true),
            (v6(far), back(Addresses::V6(other, home), 0x40), Span(0), false),
        ] {
            let (mut queries, mut known) = (VecDeque::new(), Addressed::new());
            let mut found = Vec::new();
            let message = message(5, "example.org", None);
            let query = Seen { flow: asked, message, leaves: true };
            take(&mut queries, &mut known, &hosts, query, NOW, &mut found);
            let message = self::message(5, "example.org", Some(900));
            let answer = Seen { flow: answered, message, leaves: false };
            take(&mut queries, &mut known, &hosts, answer, NOW + after, &mut found);
            assert_eq!(!found.is_empty(), counts, "{asked:?} {answered:?} {after:?}");
        }
    }

    #[test]
    fn an_address_of_a_name_without_room_is_kept_longer_all_the_same() {
        let host = HostName::read("example.org").unwrap();
        let full =
            (0..ADDRESSES as u32).map(|n| (IpAddr::from((n + 1).to_be_bytes()), NOW + Span(1)));
        let (hosts, mut known) = ([host.clone()], Addressed::from([(host, full.collect())]));
        let mut learn = |last: u8, now: Time| {
            let (mut queries, mut found) = (VecDeque::new(), Vec::new());
            let message = self::message(5, "example.org", None);
            let query = Seen { flow: flow(1), message, leaves: true };
            take(&mut queries, &mut known, &hosts, query, now, &mut found);
            let mut message = self::message(5, "example.org", Some(900));
            message.answer.as_mut().unwrap().addresses = vec![IpAddr::from([0, 0, 0, last])];
            let answer = Seen { flow: reversed(flow(1)), message, leaves: false };
            take(&mut queries, &mut known, &hosts, answer, now, &mut found);
            (found.len(), known[&hosts[0]].len())
        };
        assert_eq!(learn(0, NOW), (0, ADDRESSES), "there is no room");
        assert_eq!(learn(9, NOW), (1, ADDRESSES), "it is there");
        // What is over makes room.
        assert_eq!(learn(0, NOW + Span(1)), (1, 2));
    }

    #[test]
    fn what_is_read_is_neither_over_for_long_nor_of_another_start_nor_more_than_room() {
        let lines = |count: u32, until: Time| -> String {
            let line =
                |n: u32| format!("{} {} a.example\n", until.0, IpAddr::from(n.to_be_bytes()));
            (0..count).map(line).collect()
        };
        let count = |text: &str| read(text, NOW).values().map(BTreeMap::len).sum::<usize>();
        assert_eq!(count(&lines(ADDRESSES as u32 + 9, NOW)), ADDRESSES);
        let from = Time(NOW.0 - LONGEST.0);
        for (until, counts) in
            [(NOW + LONGEST, 1), (NOW + LONGEST + Span(1), 0), (from, 0), (from + Span(1), 1)]
        {
            assert_eq!(count(&lines(1, until)), counts, "{until:?}");
        }
    }

    /// UDP between a client and a resolver: a query for `name`, or the answer with `last` in the
    /// address.
    fn packet(id: u16, name: &str, last: Option<u8>) -> Vec<u8> {
        let (client, resolver) = ([192, 168, 1, 7], [192, 0, 2, 1]);
        let header =
            [id, if last.is_some() { 0x8180 } else { 0x0100 }, 1, u16::from(last.is_some()), 0, 0];
        let mut body =
            [&header.map(u16::to_be_bytes).concat()[..], &labels(name), &[0, 1, 0, 1]].concat();
        if let Some(last) = last {
            // For 900 seconds.
            body.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 3, 132, 0, 4, 203, 0, 113, last]);
        }
        let length = (28 + body.len()) as u8;
        let fixed = [0x45, 0, 0, length, 0, 0, 0, 0, 64, 17, 0, 0];
        let (ends, ports) = match last {
            None => ([client, resolver], [0x9c, 0x40, 0, 53]),
            Some(_) => ([resolver, client], [0, 53, 0x9c, 0x40]),
        };
        [&fixed[..], &ends.concat(), &ports, &[0; 4], &body].concat()
    }

    /// The kernel's end of the log, and names of `example.org` that begin with what `file` says.
    fn logging(file: &Path, now: Time) -> (OwnedFd, Names) {
        use rustix::net::{socketpair, AddressFamily, SocketFlags, SocketType};
        let kind = SocketType::SEQPACKET;
        let pair = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None);
        let (kernel, ours) = pair.unwrap();
        let mut names = Names::begin(Log::of(7, ours), file.to_owned(), now);
        names.set_hosts(vec![HostName::read("example.org").unwrap()]);
        (kernel, names)
    }

    /// Tells of a query, and of its answer with the address 203.0.113.`last`.
    fn tell(kernel: &OwnedFd, last: u8) {
        for (leaves, packet) in [
            (true, packet(last.into(), "example.org", None)),
            (false, packet(last.into(), "example.org", Some(last))),
        ] {
            rustix::io::write(kernel, &log::tests::copied(leaves, &packet)).unwrap();
        }
    }

    fn lines(file: &Path) -> usize {
        std::fs::read_to_string(file).map_or(0, |text| text.lines().count())
    }

    /// Every five seconds, while there is something new; and at the end.
    #[test]
    fn what_passes_is_known_and_written_for_a_daemon_to_come() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("wan.names");
        // The file is written at the end by the real clock.
        let now = crate::sys::now();
        let (kernel, mut names) = logging(&file, now);
        let hosts = names.hosts.clone();
        assert_eq!((names.group(), names.count(&hosts), names.all(now)), (7, 0, vec![]));
        tell(&kernel, 1);
        let kept = Span::from_secs(900);
        let known = |last, kept| {
            let address = IpAddr::from([203, 0, 113, last]);
            Known { host: hosts[0].clone(), address, kept }
        };
        assert_eq!(names.turn(now + REST), [known(1, kept)]);
        assert_eq!((names.count(&hosts), names.count(&[])), (1, 0));
        assert_eq!(names.all(now + REST), [known(1, kept)]);
        assert_eq!(names.all(now + LONGEST), [known(1, SHORTEST)], "for a set that is empty");
        assert_eq!((names.turn(now + WRITE - Span(1)), lines(&file)), (vec![], 0));
        assert_eq!((names.turn(now + WRITE), lines(&file)), (vec![], 1));
        std::fs::write(&file, "").unwrap();
        names.turn(now + WRITE + WRITE);
        assert_eq!(lines(&file), 0, "nothing is new");
        // What is over stays for a while, and is written with what is new.
        let over = now + REST + kept + LONGEST;
        for (last, at, lines_then) in [(2, over - Span(1), 2), (3, over + WRITE, 2)] {
            tell(&kernel, last);
            assert_eq!(names.turn(at), [known(last, kept)]);
            assert_eq!(lines(&file), lines_then, "{last}");
        }
        assert_eq!(names.count(&hosts), 2, "the first is forgotten");
        names.set_hosts(Vec::new());
        assert_eq!(names.count(&hosts), 0, "no rule speaks of it");
        drop(names);

        std::fs::write(&file, "").unwrap();
        let (kernel, mut names) = logging(&file, now);
        drop(names.turn(now));
        drop(names);
        assert_eq!(lines(&file), 0, "nothing was new");
        drop(kernel);
        let (kernel, mut names) = logging(&file, now);
        tell(&kernel, 4);
        assert_eq!((names.turn(now).len(), lines(&file)), (1, 0));
        drop(names);
        let (_kernel, names) = logging(&file, now);
        assert_eq!(names.all(now), [known(4, kept)]);
    }

    #[test]
    fn what_was_over_to_the_moment_is_forgotten() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("wan.names");
        let (kernel, mut names) = logging(&file, NOW);
        tell(&kernel, 1);
        names.turn(NOW);
        tell(&kernel, 2);
        names.turn(NOW + Span::from_secs(900) + LONGEST);
        assert_eq!(names.count(&names.hosts), 1);
        names.unwritten = false;
    }

    /// A flood of copies costs a thread no more than a batch in 20 ms.
    #[test]
    fn after_a_batch_of_copies_nothing_is_read_for_a_while() {
        let directory = tempfile::tempdir().unwrap();
        let (kernel, mut names) = logging(&directory.path().join("wan.names"), NOW);
        assert!(names.fd(NOW).is_some() && names.patience(NOW).is_none());
        (0..17).for_each(|last| tell(&kernel, last));
        assert_eq!(names.turn(NOW).len(), 16);
        for (now, rest) in [(NOW, REST), (NOW + REST - Span(1), Span(1))] {
            assert_eq!((names.fd(now).is_none(), names.patience(now)), (true, Some(rest)));
            assert_eq!(names.turn(now), []);
        }
        let now = NOW + REST;
        assert_eq!((names.fd(now).is_some(), names.patience(now)), (true, None));
        assert_eq!(names.turn(now).len(), 1);
        assert!(names.fd(now).is_some(), "that was no whole batch");
        names.unwritten = false;
    }

    #[test]
    fn messages_are_found_in_packets_and_in_copies_of_them() {
        let query = packet(7, "example.org", None);
        assert!(reads(&query) && reads(&log::tests::copied(true, &query)));
        assert!(!reads(b"") && !reads(&query[..30]));
        assert!(!reads(&log::tests::copied(true, &query[..30])));
    }
}
