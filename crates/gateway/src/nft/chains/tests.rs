//! Rules as nftables runs them: drawn packets, on a machine that knows the expressions that we use.

use simnel_core::random::Random;
use simnel_core::Span;

use super::super::Queues;
use super::*;
use crate::lanes::Spread;
use crate::netlink::Messages;
use crate::nft;
use crate::rules::{Prefix, Step};

const TIERS: u32 = 0x0f00_0000;
const CHAIN: &str = "rules";
const GROUPS: [&str; 4] = ["a/b/c", "a/b", "a", "d"];

/// A packet, and all that is known about it.
#[derive(Clone, Debug)]
struct Packet {
    ends: [IpAddr; 2],
    dscp: u8,
    protocol: u8,
    ports: [u16; 2],
    /// Path of its program's control group.
    group: &'static str,
    mark: u32,
    /// The mark of its connection.
    connection: u32,
    priority: u32,
}

impl Packet {
    fn network(&self) -> Vec<u8> {
        let dscp = u16::from(self.dscp);
        // Version, ECN, flow label and whatever else stands around.
        let (first, at, addresses) = match self.ends {
            [IpAddr::V4(source), IpAddr::V4(destination)] => {
                (0x4501 | dscp << 2, 12, [source.octets(), destination.octets()].concat())
            }
            [IpAddr::V6(source), IpAddr::V6(destination)] => {
                (0x602f | dscp << 6, 8, [source.octets(), destination.octets()].concat())
            }
            _ => panic!("two IP versions"),
        };
        let mut bytes = vec![0; 40];
        bytes[..2].copy_from_slice(&first.to_be_bytes());
        bytes[at..at + addresses.len()].copy_from_slice(&addresses);
        bytes
    }

    fn end(&self, end: End) -> IpAddr {
        self.ends[usize::from(end == End::Destination)]
    }
}

/// Numbers of control groups: those above a path have some, too.
fn id(path: &str) -> u64 {
    path.bytes()
        .fold(7, |id: u64, byte| id.wrapping_mul(0x0100_0000_01b3).wrapping_add(byte.into()))
}

/// Addresses that are known of hosts by their number, as hardware or as name.
fn known(number: usize) -> [IpAddr; 3] {
    let [a, b] = [2 * number as u32, 2 * number as u32 + 3];
    let [v4, v6] = [0x0a00_0000 + a, 0x0a00_0000 + b].map(|n| IpAddr::from(n.to_be_bytes()));
    [v4, v6, IpAddr::from((0xfd00_u128 << 112 | u128::from(a)).to_be_bytes())]
}

fn mac(number: usize) -> Mac {
    Mac([2, 0, 0, 0, 0, number as u8])
}

fn host(number: usize) -> HostName {
    HostName::read(["a.org", "b.org", "c.org"][number]).unwrap()
}

/// True if all keys fit, and of each list one item: the sentence of docs/OPERATING.md.
fn fits(traffic: &Traffic, packet: &Packet, direction: Direction) -> bool {
    fn any<T>(list: &[T], fits: impl Fn(&T) -> bool) -> bool {
        list.is_empty() || list.iter().any(fits)
    }
    let covers = |prefix: &Prefix, address: &IpAddr| match (prefix.address, address) {
        (IpAddr::V4(prefixed), IpAddr::V4(address)) => (0..u32::from(prefix.length))
            .all(|bit| (u32::from(prefixed) ^ u32::from(*address)) << bit >> 31 == 0),
        (IpAddr::V6(prefixed), IpAddr::V6(address)) => (0..u32::from(prefix.length))
            .all(|bit| (u128::from(prefixed) ^ u128::from(*address)) << bit >> 127 == 0),
        _ => false,
    };
    let knows = |number: usize, end| known(number).contains(&packet.end(end));
    let place = |list: usize, is_it: &dyn Fn(usize) -> bool| (0..list).find(|n| is_it(*n)).unwrap();
    let port = |(first, last): &(u16, u16)| packet.ports.iter().any(|p| first <= p && p <= last);
    let has_ports = match traffic.protocol {
        None if traffic.ports.is_empty() => true,
        None => [6, 17].contains(&packet.protocol),
        Some(protocol) => packet.protocol == protocol,
    };
    let group = Cgroup::read(packet.group).unwrap();
    has_ports
        && any(&traffic.ports, port)
        && any(&traffic.addresses, |prefix| packet.ends.iter().any(|end| covers(prefix, end)))
        && any(&traffic.macs, |m| knows(place(4, &|n| mac(n) == *m), End::home(direction)))
        && any(&traffic.hosts, |h| knows(place(3, &|n| host(n) == *h), End::far(direction)))
        && any(&traffic.dscps, |code| *code == packet.dscp)
        && any(&traffic.cgroups, |wanted| wanted.covers(&group))
}

/// A set: its elements in order, true where an interval begins.
type Elements = Vec<(Vec<u8>, bool)>;

/// An expression's name and attributes.
type Expression = (String, Vec<u8>);

/// Rules and sets of a transaction, as the kernel reads them.
#[derive(Default)]
struct Machine {
    /// Comment and expressions.
    rules: Vec<(String, Vec<Expression>)>,
    lists: BTreeMap<String, Elements>,
    /// Sets that others fill.
    named: BTreeMap<String, Vec<Vec<u8>>>,
}

fn word(data: &[u8], wanted: i32) -> u32 {
    u32::from_be_bytes(*attribute(data, wanted).expect("a number").first_chunk().unwrap())
}

impl Machine {
    fn read(rules: Batch<'_>) -> Machine {
        let mut machine = Machine::default();
        let mut lists = Batch::new(nft::Family::Routed, "table");
        lists.make_lists(&rules.lists);
        let both = [lists, rules].map(|batch| batch.end().bytes().to_vec()).concat();
        for message in Messages(&both) {
            let Some(body) = message.body.get(4..) else { continue };
            match message.kind & 0xff {
                libc::NFT_MSG_NEWSETELEM => machine.elements(body),
                libc::NFT_MSG_NEWRULE => machine.rule(body),
                _ => {}
            }
        }
        machine
    }

    fn elements(&mut self, body: &[u8]) {
        let element = |(_, element)| {
            let key = attribute(attribute(element, 1).unwrap(), 1).unwrap().to_vec();
            (key, word(element, 3) == 0)
        };
        let all: Elements = attributes(attribute(body, 3).unwrap()).map(element).collect();
        // What the kernel refuses, and what would be two where one does.
        assert!(all.len() > 2 && all[0].1 && all.windows(2).all(|w| w[0].0 < w[1].0), "{all:?}");
        assert!(all.windows(2).all(|w| w[0].1 != w[1].1), "{all:?}");
        let name = text(attribute(body, 2).unwrap());
        assert!(self.lists.insert(name, all).is_none(), "two sets of one name");
    }

    fn rule(&mut self, body: &[u8]) {
        let comment = attribute(body, 7).map_or(String::new(), |data| text(&data[2..]));
        let one = |(_, element)| {
            (
                text(attribute(element, 1).unwrap()),
                attribute(element, 2).unwrap_or_default().to_vec(),
            )
        };
        self.rules.push((comment, attributes(attribute(body, 4).unwrap()).map(one).collect()));
    }

    /// The comment of the rule that has decided, and its verdict.
    fn run(&self, packet: &mut Packet) -> Option<(&str, i32)> {
        self.rules.iter().find_map(|(comment, expressions)| {
            Some((comment.as_str(), self.verdict(expressions, packet)?))
        })
    }

    fn verdict(&self, expressions: &[Expression], packet: &mut Packet) -> Option<i32> {
        let mut register: Vec<u8> = Vec::new();
        for (name, data) in expressions {
            let value = |kind| attribute(attribute(data, kind)?, 1);
            match name.as_str() {
                "counter" => {}
                "meta" if attribute(data, 3).is_some() => {
                    let written = u32::from_ne_bytes(*register.first_chunk().unwrap());
                    match word(data, 2) as i32 {
                        libc::NFT_META_MARK => packet.mark = written,
                        libc::NFT_META_PRIORITY => packet.priority = written,
                        other => panic!("writes {other}"),
                    }
                }
                "ct" => {
                    assert_eq!(word(data, 2) as i32, libc::NFT_CT_MARK);
                    match attribute(data, 4) {
                        Some(_) => {
                            let written = *register.first_chunk().unwrap();
                            packet.connection = u32::from_ne_bytes(written);
                        }
                        None => register = packet.connection.to_ne_bytes().to_vec(),
                    }
                }
                "meta" => {
                    register = match word(data, 2) as i32 {
                        libc::NFT_META_OIFNAME => b"wan\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
                        libc::NFT_META_NFPROTO if packet.ends[0].is_ipv4() => vec![2],
                        libc::NFT_META_NFPROTO => vec![10],
                        libc::NFT_META_L4PROTO => vec![packet.protocol],
                        libc::NFT_META_MARK => packet.mark.to_ne_bytes().to_vec(),
                        other => panic!("reads {other}"),
                    }
                }
                "payload" => {
                    let bytes = match word(data, 2) as i32 {
                        libc::NFT_PAYLOAD_NETWORK_HEADER => packet.network(),
                        _ => packet.ports.map(u16::to_be_bytes).concat(),
                    };
                    let (at, length) = (word(data, 3) as usize, word(data, 4) as usize);
                    register = bytes[at..at + length].to_vec();
                }
                "socket" => {
                    let level = word(data, 3) as usize;
                    let parts: Vec<&str> = packet.group.split('/').collect();
                    register = id(&parts.get(..level)?.join("/")).to_ne_bytes().to_vec();
                }
                "bitwise" => {
                    let (mask, xor) = (value(4).unwrap(), value(5).unwrap());
                    assert_eq!((word(data, 3) as usize, mask.len()), (register.len(), xor.len()));
                    for (byte, (mask, xor)) in register.iter_mut().zip(mask.iter().zip(xor)) {
                        *byte = *byte & mask ^ xor;
                    }
                }
                "cmp" => {
                    let with = value(3).unwrap();
                    assert_eq!(with.len(), register.len());
                    let holds = match word(data, 2) as i32 {
                        libc::NFT_CMP_EQ => &*register == with,
                        libc::NFT_CMP_GTE => &*register >= with,
                        libc::NFT_CMP_LTE => &*register <= with,
                        other => panic!("compares by {other}"),
                    };
                    holds.then_some(())?;
                }
                "lookup" => self.knows(data, &register).then_some(())?,
                "dynset" => assert!(self.named.contains_key(&text(attribute(data, 1).unwrap()))),
                "immediate" if word(data, 1) == 0 => {
                    return Some(word(attribute(attribute(data, 2).unwrap(), 2).unwrap(), 1) as i32);
                }
                "immediate" => register = value(2).unwrap().to_vec(),
                other => panic!("{other} is not known"),
            }
        }
        None
    }

    fn knows(&self, lookup: &[u8], wanted: &[u8]) -> bool {
        let name = text(attribute(lookup, 1).unwrap());
        if let Some(all) = self.named.get(&name) {
            return all.iter().any(|key| key == wanted);
        }
        let list = &self.lists[&name];
        assert!(list.iter().all(|(key, _)| key.len() == wanted.len()));
        list.iter().rev().find(|(key, _)| &**key <= wanted).is_some_and(|(_, begins)| *begins)
    }
}

fn drawn<T>(random: &mut Random, most: u32, mut each: impl FnMut(&mut Random) -> T) -> Vec<T> {
    // Half of the lists are empty: otherwise few packets fit.
    let length = if random.below(2) == 0 { 0 } else { 1 + random.below(most) };
    (0..length).map(|_| each(random)).collect()
}

fn address(random: &mut Random, is_v4: bool) -> IpAddr {
    let number = random.below(12);
    match (is_v4, random.below(20)) {
        (true, 0) => IpAddr::from([255; 4]),
        (true, _) => IpAddr::from((0x0a00_0000 + number).to_be_bytes()),
        (false, 0) => IpAddr::from([255; 16]),
        (false, _) => IpAddr::from((0xfd00_u128 << 112 | u128::from(number)).to_be_bytes()),
    }
}

fn prefix(address: IpAddr, length: u8) -> Prefix {
    let address = match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::from((u32::from(address) & mask).to_be_bytes())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::from((u128::from(address) & mask).to_be_bytes())
        }
    };
    Prefix { address, length }
}

fn port(random: &mut Random) -> u16 {
    if random.below(20) == 0 {
        u16::MAX
    } else {
        random.below(24) as u16
    }
}

fn traffic(random: &mut Random) -> Traffic {
    let drawn_prefix = |random: &mut Random| {
        let is_v4 = random.below(2) == 0;
        let address = address(random, is_v4);
        let longest = if is_v4 { 32 } else { 128 };
        let length = if random.below(12) == 0 { 0 } else { longest - random.below(4) as u8 };
        prefix(address, length)
    };
    let range = |random: &mut Random| {
        let first = port(random);
        (first, first.saturating_add(random.below(3) as u16))
    };
    let group = |random: &mut Random| Cgroup::read(GROUPS[random.below(4) as usize]).unwrap();
    let protocol = [None, Some(6), Some(17), Some(132)][random.below(4) as usize];
    Traffic {
        protocol,
        ports: drawn(random, 8, range),
        addresses: drawn(random, 5, drawn_prefix),
        macs: drawn(random, 3, |random| mac(random.below(4) as usize)),
        hosts: drawn(random, 3, |random| host(random.below(3) as usize)),
        cgroups: drawn(random, 3, group),
        dscps: drawn(random, 6, |random| random.below(64) as u8),
    }
}

fn packet(random: &mut Random) -> Packet {
    let is_v4 = random.below(2) == 0;
    Packet {
        ends: [address(random, is_v4), address(random, is_v4)],
        dscp: random.below(64) as u8,
        protocol: [6, 17, 17, 132, 1][random.below(5) as usize],
        ports: [port(random), port(random)],
        group: ["a/b/c/x", "a/b", "a/z", "d", "e"][random.below(5) as usize],
        mark: random.u32() & !TIERS,
        connection: random.u32(),
        priority: 0,
    }
}

/// Steps of drawn traffic, and the machine that runs them.
fn ruled(random: &mut Random, direction: Direction) -> (Plan, Vec<Found>, Machine) {
    let step = |number| {
        let write = match number % 3 {
            0 => Write::Pass,
            1 => Write::Tier(number as u8),
            _ => Write::Class(0x8001_0000 + number as u32),
        };
        Step { number, traffic: traffic(random), write }
    };
    let plan = Plan { steps: (1..=6).map(step).collect() };
    let wanted =
        |found: &Found| plan.steps.iter().any(|step| step.traffic.cgroups.contains(&found.cgroup));
    let found =
        GROUPS.map(|path| Found { cgroup: Cgroup::read(path).unwrap(), id: Some(id(path)) });
    let found: Vec<Found> = found.into_iter().filter(wanted).collect();
    let mut batch = Batch::new(nft::Family::Routed, "table");
    write(&plan, &mut batch, CHAIN, direction, Target::Packet, TIERS, &found);
    let mut machine = Machine::read(batch);
    for family in Family::BOTH {
        let mut fill = |name: String, numbers: Vec<usize>| {
            let all = numbers.into_iter().flat_map(known).filter_map(|a| octets(a, family));
            machine.named.insert(name, all.collect());
        };
        for Traffic { macs, hosts, .. } in plan.steps.iter().map(|step| &step.traffic) {
            let hosted = (0..3).filter(|n| hosts.contains(&host(*n))).collect();
            fill(host_set(hosts, family), hosted);
            fill(mac_set(macs, family), (0..4).filter(|n| macs.contains(&mac(*n))).collect());
        }
    }
    (plan, found, machine)
}

/// The first rule that fits decides, whatever lists are drawn. They have ranges and prefixes that
/// overlap, touch or come twice, both IP versions, and values at the ends of what there is.
fn what_the_kernel_is_told_fits_what_the_rules_say(direction: Direction) {
    let mut random = Random::new(18);
    let mut decided = [0; 7];
    for _ in 0..150 {
        let (plan, found, machine) = ruled(&mut random, direction);
        for _ in 0..40 {
            let mut packet = packet(&mut random);
            let before = packet.mark;
            if direction == Direction::Upload {
                let group = Cgroup::read(packet.group).unwrap();
                let number = found.iter().position(|one| one.cgroup.covers(&group));
                packet.mark |= number.map_or(0, |number| number as u32 + 1) << 24;
            }
            let told = packet.clone();
            let first = plan.steps.iter().find(|step| fits(&step.traffic, &packet, direction));
            let outcome = machine.run(&mut packet);
            let expected = first.map(|step| match step.write {
                Write::Pass => (format!("rule {}", step.number), libc::NF_ACCEPT),
                _ => (format!("rule {}", step.number), libc::NFT_RETURN),
            });
            let outcome = outcome.map(|(rule, code)| (rule.to_owned(), code));
            assert_eq!(outcome, expected, "{told:?} {direction:?} {plan:?}");
            let (mark, priority) = match first.map(|step| step.write) {
                Some(Write::Tier(tier)) => (before | u32::from(tier) << 24, 0),
                Some(Write::Class(class)) => (before, class),
                _ => (before, 0),
            };
            let written = (packet.mark, packet.priority);
            assert_eq!(written, (mark, priority), "{told:?} {direction:?} {plan:?}");
            decided[first.map_or(0, |step| step.number)] += 1;
        }
    }
    println!("packets without a rule, and of each: {decided:?}");
    assert!(decided.iter().all(|packets| *packets > 100));
}

#[test]
fn what_the_kernel_is_told_of_uploads_fits_what_the_rules_say() {
    what_the_kernel_is_told_fits_what_the_rules_say(Direction::Upload);
}

#[test]
fn what_the_kernel_is_told_of_downloads_fits_what_the_rules_say() {
    what_the_kernel_is_told_fits_what_the_rules_say(Direction::Download);
}

/// For disciplines of the kernel, what arrives has its tier in its connection's mark, whose other
/// bits stay. The packet's own mark does not matter.
#[test]
fn connections_bear_the_tier_of_the_first_rule_that_fits() {
    let port = |port| Traffic { ports: vec![(port, port)], ..Traffic::default() };
    let step = |number, traffic| Step { number, traffic, write: Write::Tier(number as u8) };
    let plan = Plan { steps: vec![step(1, port(7)), step(2, Traffic::default())] };
    for direction in Direction::BOTH {
        let mut batch = Batch::new(nft::Family::Routed, "table");
        write(&plan, &mut batch, CHAIN, direction, Target::Connection, TIERS, &[]);
        let machine = Machine::read(batch);
        let mut random = Random::new(7);
        for ports in [[7, 9], [9, 7], [8, 9]] {
            let mut packet = Packet { protocol: 17, ports, ..packet(&mut random) };
            let told = packet.clone();
            assert!(matches!(machine.run(&mut packet), Some((_, libc::NFT_RETURN))));
            let tier = if ports == [8, 9] { 2 } else { 1 };
            assert_eq!(packet.connection, told.connection & !TIERS | tier << 24, "{ports:?}");
            assert_eq!((packet.mark, packet.priority), (told.mark, 0));
        }
    }
}

/// As many rules as there are forms, whatever the lists' lengths.
#[test]
fn long_lists_make_no_more_rules() {
    let ports = (0..32).map(|n| (3 * n, 3 * n)).collect();
    let addresses = (0..32).map(|n| prefix(IpAddr::from([10, n, 0, 0]), 24));
    let traffic = Traffic { ports, addresses: addresses.collect(), ..Traffic::default() };
    let plan = Plan { steps: vec![Step { number: 1, traffic, write: Write::Pass }] };
    let mut batch = Batch::new(nft::Family::Routed, "table");
    write(&plan, &mut batch, CHAIN, Direction::Upload, Target::Packet, 0, &[]);
    let machine = Machine::read(batch);
    assert_eq!((machine.rules.len(), machine.lists.len()), (4, 3));
}

/// The kernel deletes an address once only in a transaction.
#[test]
fn an_address_of_several_answers_is_kept_once_and_for_the_longest() {
    let one = |number: usize, address: u32, seconds| Known {
        host: host(number),
        address: IpAddr::from(address.to_be_bytes()),
        kept: Span::from_secs(seconds),
    };
    let known = [one(0, 7, 5), one(1, 7, 9), one(0, 7, 7), one(2, 8, 9)];
    let set = host_set(&[host(0), host(1)], Family::V4);
    let expected = [(set, vec![(vec![0, 0, 0, 7], 9_000)])];
    assert_eq!(kept(&[host(0), host(1)], &known), expected);
    // Netlink has 16 bits for the length of all.
    let known: Vec<Known> = (0..600).map(|address| one(0, address, 1)).collect();
    let lengths = kept(&[host(0)], &known).iter().map(|(_, part)| part.len()).collect::<Vec<_>>();
    assert_eq!(lengths, [512, 88]);
}

#[test]
fn sets_of_several_have_names_of_their_own() {
    let macs = |numbers: &[usize]| -> Vec<Mac> { numbers.iter().map(|n| mac(*n)).collect() };
    assert_eq!(mac_set(&macs(&[3]), Family::V6), "mac_020000000003_v6");
    assert_eq!(mac_set(&macs(&[1, 2]), Family::V4), mac_set(&macs(&[2, 1]), Family::V4));
    assert_ne!(mac_set(&macs(&[1, 2]), Family::V4), mac_set(&macs(&[1, 3]), Family::V4));
    assert_eq!(host_set(&[host(0)], Family::V4), "host_a.org_v4");
}

#[test]
fn any_bytes_of_counters_are_read_without_a_panic() {
    let mut random = Random::new(29);
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.below(120)).map(|_| random.below(24) as u8).collect();
        let message = Message { kind: 0, flags: 0, seq: 0, body: &bytes };
        let _ = (count(&message, ""), counter(&bytes));
    }
}

/// The deepest group that a program is in counts, and nobody can seem to be in one.
#[test]
fn what_programs_of_the_machine_send_bears_the_number_of_their_group() {
    let found = GROUPS.map(|path| {
        // Of one that is not there nothing is sent.
        let id = (path != "a/b").then(|| id(path));
        Found { cgroup: Cgroup::read(path).unwrap(), id }
    });
    let mut batch = Batch::new(nft::Family::Routed, "table");
    mark_own(&mut batch, CHAIN, "wan", TIERS, &found);
    let machine = Machine::read(batch);
    let mut random = Random::new(3);
    for (group, number) in [("a/b/c/x", 1), ("a/b", 3), ("a/z", 3), ("d", 4), ("e", 0)] {
        let mut packet = Packet { group, mark: u32::MAX, ..packet(&mut random) };
        machine.run(&mut packet);
        assert_eq!(packet.mark, !TIERS | number << 24, "{group}");
    }
    let wanted = [Cgroup::read("a/b").unwrap()];
    assert!(owners(&wanted, Direction::Download, &found).is_empty());
    let all = owners(&[Cgroup::read("a").unwrap()], Direction::Download, &found);
    assert!(matches!(&all[..], [Owner::Socket(1, ids)] if *ids == [id("a")]));
}

/// The flags of linux/netfilter/nf_tables.h and xt_NFQUEUE.h: to bypass, and to spread by core.
#[test]
fn queues_are_bypassed_where_nobody_listens_and_spread_as_was_asked() {
    let told = |spread, native| {
        let mut batch = Batch::new(nft::Family::Routed, "table");
        let queues = Queues { first: 5, count: 3, spread };
        batch.rule(CHAIN, |rule| rule.queue(queues, native));
        let mut machine = Machine::read(batch);
        let (_, mut expressions) = machine.rules.remove(0);
        expressions.remove(0)
    };
    for (spread, flags) in [(Spread::Address, 1u16), (Spread::Cpu, 3)] {
        let (name, data) = told(spread, true);
        let values = [1, 2, 3].map(|kind| attribute(&data, kind).unwrap().to_vec());
        let expected = [5, 3, flags].map(|number| number.to_be_bytes().to_vec());
        assert_eq!((&*name, values), ("queue", expected));
        let (name, data) = told(spread, false);
        let info = [5, 3, flags, 0].map(u16::to_ne_bytes).concat();
        assert_eq!((&*name, text(attribute(&data, 1).unwrap())), ("target", "NFQUEUE".into()));
        assert_eq!(attribute(&data, 3), Some(&info[..]));
    }
}

/// Linux before 6.12 leaves the time of an element that is there as it is.
#[test]
fn elements_go_and_come_again_with_their_time() {
    let mut batch = Batch::new(nft::Family::Routed, "table");
    batch.elements("set", &[(vec![10, 0, 0, 1], 7_000)]);
    let mut told = Vec::new();
    for message in Messages(batch.end().bytes()) {
        let Some(all) = message.attribute(3) else { continue };
        let element = attribute(all, 1).unwrap();
        assert_eq!(attribute(attribute(element, 1).unwrap(), 1), Some(&[10, 0, 0, 1][..]));
        let ms = attribute(element, 4).map(|ms| u64::from_be_bytes(*ms.first_chunk().unwrap()));
        let creates = i32::from(message.flags) & libc::NLM_F_CREATE != 0;
        told.push((message.kind & 0xff, ms, creates));
    }
    let new = (libc::NFT_MSG_NEWSETELEM, Some(7_000), true);
    assert_eq!(told, [new, (libc::NFT_MSG_DELSETELEM, None, false), new]);
}
