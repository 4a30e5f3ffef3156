//! Rules as the kernel carries them out, on loopback of a network namespace of their own.

use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::net::{ipproto, recv, socket, sockopt, AddressFamily, RecvFlags, SocketType};
use simnel_core::Span;

use super::super::{Holder, MarkBits, Queues, Ruling, Table, Wanted};
use super::*;
use crate::apart::{apart, cable};
use crate::names::message::tests::labels;
use crate::names::Names;
use crate::nft;
use crate::rules::{Prefix, Step};
use crate::{sys, Error};

const TIERS: u32 = 0x0f00_0000;
const NAME: &str = "simnel_lo";
const PATIENCE: Option<Duration> = Some(Duration::from_secs(5));

fn at(host: u8, port: u16) -> SocketAddr {
    ([127, 0, 0, host], port).into()
}

/// A datagram from one host of loopback to another, which has come when this returns.
fn pass(from: u8, to: SocketAddr) {
    let receiver = UdpSocket::bind(to).unwrap();
    receiver.set_read_timeout(PATIENCE).unwrap();
    let sender = UdpSocket::bind(at(from, 0)).unwrap();
    sender.send_to(b"four", to).unwrap();
    assert_eq!(receiver.recv(&mut [0; 8]).expect("the packet was dropped"), 4);
}

fn host() -> HostName {
    HostName::read("example.org").unwrap()
}

fn ports(ports: &[(u16, u16)]) -> Traffic {
    Traffic { ports: ports.to_vec(), ..Traffic::default() }
}

/// Rules of both directions, by their numbers.
fn ruling(steps: &[(usize, Traffic, Write)]) -> Ruling {
    let step = |(number, traffic, write): &(usize, Traffic, Write)| Step {
        number: *number,
        traffic: traffic.clone(),
        write: *write,
    };
    let plan = Plan { steps: steps.iter().map(step).collect() };
    Ruling { plans: [plan.clone(), plan], tiers: TIERS, ..Ruling::default() }
}

fn wanted(rules: Ruling) -> Wanted {
    let [download, upload] = [7, 8].map(|queue| Some(Holder::Process(Queues::one(queue))));
    Wanted { interface: "lo".into(), download, upload, rules, ..Wanted::default() }
}

/// The table, unless the kernel lacks what one without rules takes.
fn table(test: &str, with_rules: Wanted) -> Option<Table> {
    match Table::create(wanted(ruling(&[])), &[]) {
        Err(Error::KernelLacks { what, .. }) => {
            assert!(!has_all(), "the kernel lacks {what}?");
            eprintln!("NOT RUN: {test} lacks {what}");
            None
        }
        without => {
            without.unwrap().remove().unwrap();
            Some(Table::create(with_rules, &[]).unwrap())
        }
    }
}

/// True if the kernel has NFQUEUE, and `nft` can make tables with an owner.
fn has_all() -> bool {
    let script = "add table inet other { flags owner; }; \
                  add chain inet other arriving { type filter hook prerouting priority 0; }";
    let made = std::process::Command::new("nft").arg(script).status();
    std::path::Path::new("/proc/thread-self/net/netfilter/nfnetlink_queue").exists()
        && made.is_ok_and(|status| status.success())
}

/// Packets that rules have fitted, of the upload and of the download, by number.
fn fitted(table: &Table) -> Vec<(usize, [u64; 2])> {
    let counted = table.counted().unwrap();
    let mut all: BTreeMap<usize, [u64; 2]> = BTreeMap::new();
    for ((direction, number), counted) in counted {
        assert_eq!(counted.bytes, 32 * counted.packets, "from the IP header on");
        all.entry(number).or_default()[usize::from(direction == Direction::Download)] +=
            counted.packets;
    }
    all.into_iter().collect()
}

/// Sets of the table, and how many elements each may have, if that has a limit.
fn sets() -> Vec<(String, Option<u32>)> {
    const GET_SET: i32 = libc::NFNL_SUBSYS_NFTABLES << 8 | libc::NFT_MSG_GETSET;
    let mut writer = Writer::default();
    writer.begin(GET_SET, libc::NLM_F_DUMP, 1, libc::NFPROTO_INET as u8, 0);
    writer.string(1, NAME);
    writer.finish();
    let mut all = Vec::new();
    let each = |message: Message<'_>| {
        let name = text(message.attribute(2).unwrap());
        let size = message.attribute(9).and_then(|about| attribute(about, 1));
        all.push((name, size.map(|size| u32::from_be_bytes(*size.first_chunk().unwrap()))));
    };
    Socket::open().unwrap().dump(&writer, each).unwrap();
    all.sort();
    all
}

#[test]
fn what_fits_is_counted_until_other_rules_come() {
    const TEST: &str = "what_fits_is_counted_until_other_rules_come";
    apart(TEST, || {
        cable("lan", "far", "10.7.0.1/24");
        let named = Traffic { hosts: vec![host()], ..Traffic::default() };
        let local = Prefix { address: [127, 0, 0, 9].into(), length: 32 };
        let listed = Traffic { addresses: vec![local], ..ports(&[(5002, 5002)]) };
        let steps = [
            (1, ports(&[(5001, 5001), (5003, 5004)]), Write::Class(0x8001_0001)),
            (2, listed.clone(), Write::Pass),
            (3, named.clone(), Write::Tier(2)),
        ];
        let Some(mut table) = table(TEST, wanted(ruling(&steps))) else { return };
        let address = [127, 0, 0, 3].into();
        table.keep(&[Known { host: host(), address, kept: Span::from_secs(60) }]).unwrap();
        pass(1, at(1, 5001));
        pass(1, at(1, 5004));
        pass(1, at(9, 5002));
        pass(1, at(1, 5002));
        // To the host, and from it.
        pass(1, at(3, 5005));
        pass(3, at(1, 5005));
        pass(3, at(1, 5005));
        let one = [(1, [2, 2]), (2, [1, 1]), (3, [1, 2])];
        assert_eq!(fitted(&table), one);
        // What goes elsewhere is not the line's.
        let elsewhere = UdpSocket::bind("10.7.0.1:0").unwrap();
        elsewhere.send_to(b"four", "10.7.0.9:5001").unwrap();
        assert_eq!(fitted(&table), one);
        let lists = |all: &[(String, Option<u32>)]| {
            all.iter().filter(|(name, _)| name.starts_with("list_")).count()
        };
        assert!(lists(&sets()) > 0);

        let other = ruling(&[(4, listed, Write::Tier(1)), (5, named, Write::Tier(2))]);
        table.set_rules(other, &[]).unwrap();
        pass(1, at(1, 5001));
        pass(1, at(9, 5002));
        pass(1, at(3, 5005));
        assert_eq!(fitted(&table), [(4, [1, 1]), (5, [1, 0])], "addresses stay");
        // UDP and TCP are a list still.
        assert_eq!(lists(&sets()), 1, "{:?}", sets());
        table.stop_queueing().unwrap();
        pass(1, at(9, 5002));
        assert_eq!(fitted(&table), [(4, [1, 1]), (5, [1, 0])]);
        // At once, also where another process has its socket, too.
        let _other = table.socket().try_clone_to_owned().unwrap();
        table.remove().unwrap();
        assert!(counted(NAME).unwrap().is_empty());
        assert!(Table::create(wanted(ruling(&steps)), &[]).is_ok());
    });
}

#[test]
fn sets_have_room_for_all_addresses_of_their_hosts() {
    const TEST: &str = "sets_have_room_for_all_addresses_of_their_hosts";
    apart(TEST, || {
        let macs = vec![Mac([2, 0, 0, 0, 0, 1]), Mac([2, 0, 0, 0, 0, 2])];
        let hosts = vec![host(), HostName::read("example.net").unwrap()];
        let traffic = Traffic { macs, hosts, ..Traffic::default() };
        let Some(_table) = table(TEST, wanted(ruling(&[(1, traffic, Write::Tier(1))]))) else {
            return;
        };
        let all = sets();
        let sizes = |what: &str| {
            let mine = all.iter().filter(|(name, _)| name.starts_with(what));
            mine.map(|(_, size)| size.unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(sizes("macs_"), [2 * 64, 2 * 64]);
        assert_eq!(sizes("hosts_"), [2 * 4 * 1024, 2 * 4 * 1024]);
    });
}

/// From the question that leaves to the answer that arrives.
#[test]
fn what_resolvers_are_asked_and_answer_is_copied() {
    const TEST: &str = "what_resolvers_are_asked_and_answer_is_copied";
    apart(TEST, || {
        let directory = tempfile::tempdir().unwrap();
        let mut names = match Names::open(directory.path(), "lo", 7..=9, sys::now()) {
            Err(Error::KernelLacks { what, .. }) => {
                return eprintln!("NOT RUN: {TEST} lacks {what}");
            }
            names => names.unwrap(),
        };
        names.set_hosts(vec![host()]);
        let rules = Ruling { names: Some(names.group()), ..ruling(&[]) };
        let Some(_table) = table(TEST, wanted(rules)) else { return };
        let [client, resolver] = [at(1, 0), at(2, names::PORT)].map(|at| {
            let socket = UdpSocket::bind(at).unwrap();
            socket.set_read_timeout(PATIENCE).unwrap();
            socket
        });
        let query =
            [&[0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0][..], &labels("example.org"), &[0, 1, 0, 1]]
                .concat();
        client.send_to(&query, resolver.local_addr().unwrap()).unwrap();
        let (_, from) = resolver.recv_from(&mut [0; 64]).unwrap();
        let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 3, 132, 0, 4, 203, 0, 113, 5];
        let mut answer = [&query[..], &record].concat();
        (answer[2], answer[7]) = (0x81, 1);
        resolver.send_to(&answer, from).unwrap();
        client.recv(&mut [0; 64]).unwrap();
        let known = (0..50).find_map(|_| {
            sys::wait(&names.fd(sys::now()).into_iter().collect::<Vec<_>>(), Some(SHORT));
            names.turn(sys::now()).into_iter().next()
        });
        assert_eq!(known.map(|known| known.address), Some([203, 0, 113, 5].into()));
    });
}

const SHORT: Span = Span::from_millis(100);

/// Decisions are read from the mark's two bits behind the queue, and from nobody else's.
#[test]
fn marks_of_decisions_become_bits_of_the_header() {
    const TEST: &str = "marks_of_decisions_become_bits_of_the_header";
    apart(TEST, || {
        let Some(mut table) = table(TEST, wanted(ruling(&[]))) else { return };
        let receiver = socket(AddressFamily::INET, SocketType::RAW, Some(ipproto::UDP)).unwrap();
        sockopt::set_socket_timeout(&receiver, sockopt::Timeout::Recv, PATIENCE).unwrap();
        let _port = UdpSocket::bind(at(1, 5001)).unwrap();
        let tos = |mark: u32| {
            let sender = UdpSocket::bind(at(1, 0)).unwrap();
            sockopt::set_ip_tos(&sender, 0xb8).unwrap();
            sys::set_option(&sender, libc::SOL_SOCKET, libc::SO_MARK, mark).unwrap();
            sender.send_to(b"four", at(1, 5001)).unwrap();
            let mut bytes = [0; 64];
            recv(&receiver, &mut bytes[..], RecvFlags::empty()).expect("the packet was dropped");
            bytes[1]
        };
        let (ce, wash) = (MarkBits::DEFAULT.ce(), MarkBits::DEFAULT.wash());
        assert_eq!([0, ce, wash].map(tos), [0xb8; 3], "nobody else can ask for that");
        // What is behind the queue stays.
        table.stop_queueing().unwrap();
        let all = [0, ce, wash, ce | wash, !(ce | wash)].map(tos);
        assert_eq!(all, [0xb8, 0xbb, 0, 3, 0xb8]);
    });
}

/// Hundreds of kilobytes of rules, and as many errors as there are messages.
#[test]
fn long_transactions_have_room_and_their_errors_too() {
    const TEST: &str = "long_transactions_have_room_and_their_errors_too";
    apart(TEST, || {
        let many = |n: usize| {
            let address = |last| Prefix { address: [10, n as u8, last, 0].into(), length: 24 };
            let addresses = (0..32).map(|last| address(2 * last)).collect();
            let pairs: Vec<_> = (0..32).map(|k| 1 + n as u16 + 200 * k).map(|p| (p, p)).collect();
            (n, Traffic { addresses, ..ports(&pairs) }, Write::Pass)
        };
        let steps: Vec<_> = (1..=64).map(many).collect();
        let Some(table) = table(TEST, wanted(ruling(&steps))) else { return };
        table.remove().unwrap();
        let mut batch = Batch::new(nft::Family::Routed, NAME);
        batch.table();
        for _ in 0..2_000 {
            batch.rule("nowhere", |rule| {
                rule.counter();
                rule.verdict(libc::NF_ACCEPT, None);
            });
        }
        let refused = batch.commit(&Socket::open().unwrap()).unwrap_err();
        assert_eq!((refused.sequence, refused.code()), (2, libc::ENOENT), "{refused:?}");
        assert_eq!(refused.part, "a rule of the chain `nowhere`");
    });
}

/// Tiers are the connection's as it arrives, from its first packet on, and no packet's behind that.
#[test]
fn rules_for_disciplines_of_the_kernel_write_into_connections() {
    const TEST: &str = "rules_for_disciplines_of_the_kernel_write_into_connections";
    apart(TEST, || {
        let nft = |words: &str| {
            let output = std::process::Command::new("nft").arg(words).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        let holder = Some(Holder::Kernel);
        let lo = String::from("lo");
        let kernels = |steps: &[_]| Wanted {
            download: holder,
            upload: holder,
            interface: lo.clone(),
            rules: ruling(steps),
            ..Wanted::default()
        };
        let coded = Traffic { dscps: vec![46], ..Traffic::default() };
        let steps = [
            (1, ports(&[(5001, 5001)]), Write::Tier(2)),
            (2, coded, Write::Tier(1)),
            (3, ports(&[(5003, 5003)]), Write::Tier(3)),
        ];
        let mut table = match Table::create(kernels(&steps), &[]) {
            Err(Error::KernelLacks { what, .. }) => {
                return eprintln!("NOT RUN: {TEST} lacks {what}");
            }
            table => table.unwrap(),
        };
        nft("add table inet seen; \
             add chain inet seen first { type filter hook prerouting priority -150; }; \
             add rule inet seen first ct mark & 0xf000000 == 0x2000000 counter comment \"early\"; \
             add rule inet seen first meta mark != 0 counter comment \"marked\"; \
             add chain inet seen last { type filter hook input priority 0; }; \
             add rule inet seen last ct mark & 0xf000000 == 0x3000000 counter comment \"third\"");
        let seen = || {
            let listed = nft("list table inet seen");
            ["early", "marked", "third"].map(|comment| {
                let line = listed.lines().find(|line| line.contains(comment)).unwrap();
                let count = line.split("packets ").nth(1).unwrap().split(' ').next().unwrap();
                count.parse::<u32>().unwrap()
            })
        };
        pass(1, at(1, 5001));
        assert_eq!(seen(), [1, 0, 0]);
        // Behind a rule by code point only what arrives decides.
        pass(1, at(1, 5003));
        assert_eq!(seen(), [1, 0, 1]);
        pass(1, at(1, 5004));
        assert_eq!(fitted(&table), [(1, [1, 1]), (2, [0, 0]), (3, [1, 1])]);
        table.set_rules(ruling(&[(4, ports(&[(5004, 5004)]), Write::Tier(2))]), &[]).unwrap();
        pass(1, at(1, 5001));
        pass(1, at(1, 5004));
        assert_eq!((fitted(&table), seen()), (vec![(4, [1, 1])], [2, 0, 1]));
        table.set_rules(ruling(&[]), &[]).unwrap();
        pass(1, at(1, 5001));
        assert_eq!(seen(), [2, 0, 1]);
        table.remove().unwrap();
        assert!(counted(NAME).unwrap().is_empty());
    });
}

/// A table that is only judged is not kept.
#[test]
fn a_transaction_may_be_judged_only() {
    const TEST: &str = "a_transaction_may_be_judged_only";
    apart(TEST, || {
        let Some(table) = table(TEST, wanted(ruling(&[]))) else { return };
        table.remove().unwrap();
        let judged = |set: Option<&str>| {
            let socket = Socket::open().unwrap();
            let mut batch = Batch::new(nft::Family::Routed, NAME);
            batch.table();
            batch.branch("judged");
            batch.rule("judged", |rule| {
                rule.meta(libc::NFT_META_MARK);
                set.into_iter().for_each(|set| rule.lookup(set));
            });
            batch.judge(&socket)
        };
        let refused = judged(Some("missing")).unwrap_err();
        assert_eq!((refused.sequence, refused.code()), (3, libc::ENOENT), "{refused:?}");
        assert_eq!(refused.part, "`lookup` in a rule of the chain `judged`");
        assert!(judged(None).is_ok() && judged(None).is_ok());
    });
}

/// Somebody else's may look as it likes.
#[test]
fn a_table_that_is_there_already_is_left_alone() {
    const TEST: &str = "a_table_that_is_there_already_is_left_alone";
    apart(TEST, || {
        let Some(table) = table(TEST, wanted(ruling(&[]))) else { return };
        table.remove().unwrap();
        let made = std::process::Command::new("nft").args(["add", "table", "inet", NAME]).status();
        if !made.is_ok_and(|status| status.success()) {
            return eprintln!("NOT RUN: {TEST} needs nft");
        }
        let error = Table::create(wanted(ruling(&[])), &[]).err().unwrap();
        assert!(matches!(error, Error::TableExists { .. }), "{error}");
    });
}
