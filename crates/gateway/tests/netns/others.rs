//! Changes by others to the machine while an interface is served.

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use simnel_gateway::check::{check, Level};
use simnel_gateway::control::{Entry, Request};
use simnel_gateway::default_routes;
use simnel_gateway::presence::Change;

use crate::cases::not_run;
use crate::hangs::family_where;
use crate::kernel::write_file;
use crate::transfer::{round_trips, Transfer};
use crate::world::{address, World};

fn shown(world: &World) -> Entry {
    world.client("wan0").show().unwrap().remove(0)
}

fn wait_for(world: &World, what: &str, is_so: impl Fn(&Entry) -> bool) {
    let start = Instant::now();
    while !is_so(&shown(world)) {
        assert!(start.elapsed() < Duration::from_secs(5), "{what}: {:?}", shown(world).config);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Packets pass the discipline.
fn assert_served(world: &World, what: &str) {
    let before = shown(world).stats.totals.sent_packets;
    round_trips(world, address("10.77.2.2", 6100), 20, Duration::from_millis(1));
    let sent = shown(world).stats.totals.sent_packets - before;
    assert!(sent >= 20, "{what}: {sent} packets passed the discipline");
}

pub fn what_others_do_to_an_interface_is_followed() {
    let mut world = World::new();
    world.start(&["wan0=|fq_codel"]);
    assert_served(&world, "at first");
    // Tables have owners, so this removes all others.
    world.nft(&["add", "table", "inet", "another"]);
    world.nft(&["flush", "ruleset"]);
    let tables = world.nft(&["list", "tables"]);
    assert!(tables.contains("simnel_wan0") && !tables.contains("another"), "{tables}");
    assert_served(&world, "after `nft flush ruleset`");

    assert!(shown(&world).config.contains("quantum 1514"));
    world.ip("g", "link set wan0 mtu 1400");
    wait_for(&world, "quantum of another MTU", |entry| entry.config.contains("quantum 1414"));
    assert_served(&world, "with another MTU");

    world.ip("g", "link set wan0 down");
    std::thread::sleep(Duration::from_millis(700));
    world.ip("g", "link set wan0 up");
    assert_served(&world, "down and up");

    world.ip("g", "link del wan0");
    std::thread::sleep(Duration::from_millis(700));
    let (gateway, server) = (world.ns("g"), world.ns("s"));
    world.ip("g", &format!("link add wan0 netns {gateway} type veth peer wan0 netns {server}"));
    for (place, host) in [("g", 1), ("s", 2)] {
        world.ip(place, &format!("addr add 10.77.2.{host}/24 dev wan0"));
        world.ip(place, "link set wan0 up");
    }
    world.ip("s", "route add 10.77.1.0/24 via 10.77.2.1");
    wait_for(&world, "quantum of the new MTU", |entry| entry.config.contains("quantum 1514"));
    assert_served(&world, "deleted and made again");
    world.stop();
}

/// Its own queue's length alone, which is the limit where the settings say none.
pub fn a_changed_queue_length_is_followed() {
    let mut world = World::new();
    let said = world.start_heard(&["wan0=|pfifo"]);
    assert!(!shown(&world).config.contains("limit 321p"), "{}", shown(&world).config);
    world.ip("g", "link set wan0 txqueuelen 321");
    wait_for(&world, "limit of another queue length", |entry| entry.config.contains("limit 321p"));
    assert_served(&world, "with another queue length");
    assert_eq!(said.count("wan0: queue length is 321 now"), 1);
    world.stop();
}

/// Memory that is there again is enough: nothing else has to change.
pub fn a_queue_length_that_failed_is_tried_again() {
    const LONG: &str = "limit 1000000p";
    let mut world = World::new();
    let said = world.start_heard(&["wan0=|pfifo"]);
    let (daemon, _) = family_where(&world, |_| true);
    let may_have = |bytes: &str| {
        let (process, limit) = (daemon.to_string(), format!("--as={bytes}:"));
        let words = ["--pid", &process, &limit];
        assert!(Command::new("prlimit").args(words).status().unwrap().success(), "{words:?}");
    };
    let status = std::fs::read_to_string(format!("/proc/{daemon}/status")).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kilobytes: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
    // A quarter of what so many packets want.
    may_have(&((kilobytes << 10) + (16 << 20)).to_string());
    world.ip("g", "link set wan0 txqueuelen 1000000");
    said.wait_for("wan0: queue length is 1000000 now");
    said.wait_for("memory");
    // Some looks.
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(said.count("memory"), 1, "told once");
    assert!(!shown(&world).config.contains(LONG), "{}", shown(&world).config);
    may_have("unlimited");
    wait_for(&world, "limit of the queue length", |entry| entry.config.contains(LONG));
    assert_served(&world, "with another queue length");
    world.stop();
}

/// A bridge takes the frames of its ports past rules of the other family.
pub fn a_change_of_bridge_is_told() {
    let mut world = World::new();
    if !world.try_shell("g", "ip link add br0 type bridge") {
        return not_run("this kernel has no bridges (CONFIG_BRIDGE)");
    }
    let said = world.start_heard(&["wan0=|fq_codel"]);
    let trouble = || world.client("wan0").ask(&Request::Show {}).unwrap().trouble;
    assert_eq!(trouble(), None);
    world.ip("g", "link set wan0 master br0");
    said.wait_for("wan0: a port of a bridge now, whose frames pass unshaped");
    assert_eq!(trouble(), Some(Change::Port));
    world.ip("g", "link set wan0 nomaster");
    said.wait_for("wan0: shaped again");
    assert_eq!((trouble(), said.count("bridge now")), (None, 1));
    assert_served(&world, "out of the bridge");
    world.stop();
}

/// Addresses, and default routes, of which the page and `top` tell as long as they are elsewhere.
pub fn addresses_and_default_routes_are_told() {
    let mut world = World::new();
    world.ip("g", "route add default via 10.77.2.2 metric 10");
    let said = world.start_heard(&["wan0=|fq_codel"]);
    let trouble = || world.client("wan0").ask(&Request::Show {}).unwrap().trouble;
    assert_eq!(trouble(), None);
    world.ip("g", "addr add 192.0.2.9/24 dev wan0");
    said.wait_for("wan0: addresses are 10.77.2.1, 192.0.2.9, fd77:2::1 now");
    assert_served(&world, "with another address");
    world.ip("g", "addr del 192.0.2.9/24 dev wan0");
    said.wait_for("wan0: addresses are 10.77.2.1, fd77:2::1 now");
    // An address of another interface is none of ours.
    world.ip("g", "addr add 192.0.2.9/24 dev wan1");
    // A spare way, which nothing takes yet.
    world.ip("g", "route add default via 10.77.3.2 metric 20");
    assert_eq!(trouble(), None);
    world.ip("g", "route del default via 10.77.2.2");
    said.wait_for("no longer the way to the Internet: the default route of IPv4 is by wan1 now");
    let told = trouble();
    assert!(matches!(&told, Some(Change::Elsewhere { by, .. }) if by == "wan1"), "{told:?}");
    world.ip("g", "route add default via 10.77.2.2 metric 5");
    said.wait_for("wan0: the way to the Internet again");
    assert_eq!(trouble(), None);
    assert_eq!((said.count("Internet"), said.count("addresses are")), (2, 2), "told once");
    // Half of the packets by each, and what leads nowhere.
    let hops = "nexthop via 10.77.3.2 dev wan1 nexthop via 10.77.2.2 dev wan0";
    world.ip("g", "route add unreachable default metric 3000");
    if world.try_shell("g", &format!("ip route replace default metric 5 {hops}")) {
        assert_eq!(world.within("g", default_routes), ["wan0", "wan1"]);
        std::thread::sleep(Duration::from_secs(2));
        assert_eq!((trouble(), said.count("Internet")), (None, 2));
    } else {
        not_run("this kernel has no routes with several next hops");
    }
    world.stop();
}

/// An attribute of netlink (linux/netlink.h).
fn attribute(kind: i32, data: &[u8]) -> Vec<u8> {
    let mut bytes = (data.len() as u16 + 4).to_ne_bytes().to_vec();
    bytes.extend((kind as u16).to_ne_bytes());
    bytes.extend(data);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A message of netfilter: `resource` is a queue's number, or a batch's subsystem.
fn message(kind: i32, flags: i32, (family, resource): (u8, u16), attributes: &[u8]) -> Vec<u8> {
    let mut bytes = (20 + attributes.len() as u32).to_ne_bytes().to_vec();
    bytes.extend((kind as u16).to_ne_bytes());
    bytes.extend((libc::NLM_F_REQUEST as u16 | flags as u16).to_ne_bytes());
    bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, family, 0]);
    bytes.extend(resource.to_be_bytes());
    bytes.extend(attributes);
    bytes
}

/// Makes a socket the owner of a kernel queue, as another program's would be; the kernel's answer.
fn own_queue(number: u16) -> (OwnedFd, i32) {
    let kind = libc::NFNL_SUBSYS_QUEUE << 8 | libc::NFQNL_MSG_CONFIG;
    let bind = [libc::NFQNL_CFG_CMD_BIND as u8, 0, 0, 0];
    let command = attribute(libc::NFQA_CFG_CMD, &bind);
    asked(&message(kind, libc::NLM_F_ACK, (0, number), &command))
}

/// Adds a rule to chain `look` of table `ids` that queues as iptables-nft has it; the kernel's
/// answer.
fn queue_by_target(number: u16) -> i32 {
    const SUBSYSTEM: i32 = libc::NFNL_SUBSYS_NFTABLES;
    let nested = |kind, data: &[u8]| attribute(kind | libc::NLA_F_NESTED, data);
    // struct xt_NFQ_info_v3: number, queues, flags (bypass).
    let info = [number, 1, 1, 0].map(u16::to_ne_bytes).concat();
    let target =
        [attribute(1, b"NFQUEUE\0"), attribute(2, &3u32.to_be_bytes()), attribute(3, &info)];
    let element = [attribute(1, b"target\0"), nested(2, &target.concat())];
    let rule =
        [attribute(1, b"ids\0"), attribute(2, b"look\0"), nested(4, &nested(1, &element.concat()))];
    let flags = libc::NLM_F_CREATE | libc::NLM_F_APPEND | libc::NLM_F_ACK;
    let inet = libc::NFPROTO_INET as u8;
    let batch = [
        message(libc::NFNL_MSG_BATCH_BEGIN, 0, (0, SUBSYSTEM as u16), &[]),
        message(SUBSYSTEM << 8 | libc::NFT_MSG_NEWRULE, flags, (inet, 0), &rule.concat()),
        message(libc::NFNL_MSG_BATCH_END, 0, (0, SUBSYSTEM as u16), &[]),
    ];
    asked(&batch.concat()).1
}

/// Asks netfilter; the socket, and the error in the first answer, 0 for none.
fn asked(request: &[u8]) -> (OwnedFd, i32) {
    // SAFETY: plain system calls on buffers of their true sizes.
    unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        let fd = libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_NETFILTER);
        let fd = OwnedFd::from_raw_fd(fd);
        let sent = libc::send(fd.as_raw_fd(), request.as_ptr().cast(), request.len(), 0);
        assert_eq!(sent, request.len() as isize);
        let mut answer = [0u8; 64];
        let read = libc::recv(fd.as_raw_fd(), answer.as_mut_ptr().cast(), answer.len(), 0);
        assert!(read >= 20, "the kernel answers");
        (fd, i32::from_ne_bytes(answer[16..20].try_into().unwrap()))
    }
}

/// A number that somebody has is left to them, nobody gets ours, and a rule that queues to it is
/// told of.
pub fn other_users_of_our_queue_numbers_are_seen() {
    const FIRST: u16 = 0x51a0;
    let mut world = World::new();
    let (_theirs, error) = world.within("g", || own_queue(FIRST));
    assert_eq!(error, 0, "a queue of their own");
    let said = world.start_heard(&["wan0=|fq_codel"]);
    assert_eq!(shown(&world).queue, FIRST + 1);
    assert_served(&world, "beside another program's queue");
    let (_socket, error) = world.within("g", || own_queue(FIRST + 1));
    assert_ne!(error, 0, "two have the same queue");
    assert_served(&world, "after another program wanted our queue");

    world.nft(&["add", "table", "inet", "ids"]);
    let hook = "{ type filter hook forward priority 5; }";
    world.nft(&["add", "chain", "inet", "ids", "look", hook]);
    // Theirs, then ours.
    for number in [FIRST, FIRST + 1] {
        let word = number.to_string();
        let words = ["add", "rule", "inet", "ids", "look", "queue", "num", &word, "bypass"];
        if let Err(errors) = world.try_nft(&words) {
            println!("  by iptables' target, since `queue` is none: {errors}");
            assert_eq!(world.within("g", || queue_by_target(number)), 0);
        }
    }
    said.wait_for("chain `look` of table `ids` hands packets to queue 20897, which is `wan0`'s");
    assert_eq!(said.count("hands packets"), 1, "a rule to another queue is no business of ours");
    world.nft(&["delete", "table", "inet", "ids"]);
    assert_served(&world, "at last");
    world.stop();
}

/// By the doctor; and by a daemon whose rules and flows the kernel's connections tell.
pub fn connection_tracking_that_is_off_is_told() {
    let mut world = World::new();
    let told = |world: &World| {
        let findings = world.within("g", || check(Some("wan0"), &world.control)).findings;
        findings.into_iter().find(|finding| finding.id == "conntrack").unwrap()
    };
    let hook = "{ type filter hook prerouting priority raw; }";
    let turn_off = |world: &World| {
        world.nft(&["add", "table", "inet", "raw"]);
        world.nft(&["add", "chain", "inet", "raw", "pre", hook]);
        world.nft(&["add", "rule", "inet", "raw", "pre", "iif", "lo", "notrack"]);
        assert_ne!(told(world).level, Level::Warning, "loopback is not ours");
        world.nft(&["add", "rule", "inet", "raw", "pre", "notrack"]);
    };
    assert_ne!(told(&world).level, Level::Warning);
    turn_off(&world);
    let finding = told(&world);
    println!("  {finding:?}");
    assert!(finding.level == Level::Warning && finding.what.contains("table `raw`"), "{finding:?}");
    world.nft(&["delete", "table", "inet", "raw"]);

    let cake = |verb: &str| format!("tc qdisc {verb} dev lan0 root cake 2>/dev/null");
    let has_cake = world.try_shell("g", &cake("add")) && world.try_shell("g", &cake("del"));
    if !has_cake && !crate::in_kernel::is_asked() {
        return not_run(
            "this kernel lacks the qdiscs `simnel` and `cake`: `check` alone was asked",
        );
    }
    let file = "[[interface]]\nname = \"wan0\"\nbackend = \"kernel\"\nupload = \"8mbit\"\n";
    write_file(&world, file);
    let said = world.start_heard(&["file"]);
    turn_off(&world);
    said.wait_for("chain `pre` of table `raw` turns connection tracking off");
    // The look that finds another one has found both.
    world.nft(&["add", "chain", "inet", "raw", "late", hook]);
    world.nft(&["add", "rule", "inet", "raw", "late", "notrack"]);
    said.wait_for("chain `late` of table `raw` turns connection tracking off");
    assert_eq!(said.count("chain `pre`"), 1, "told once");
    world.stop();
}

/// The rules of firewalld as it reloads: its own table goes and comes.
const FIREWALLD: &str = "add table inet firewalld
delete table inet firewalld
table inet firewalld {
    chain mangle_PREROUTING { type filter hook prerouting priority -140; policy accept; }
    chain filter_INPUT { type filter hook input priority 10; policy accept;
        ct state established,related accept; }
    chain filter_FORWARD { type filter hook forward priority 10; policy accept;
        ct state established,related accept; iifname lan0 accept; }
    chain filter_OUTPUT { type filter hook output priority 10; policy accept; }
}
";
/// Those of fw4 (OpenWrt): the table stays, and its rules go and come.
const FW4: &str = "table inet fw4
flush table inet fw4
table inet fw4 {
    chain input { type filter hook input priority filter; policy accept;
        ct state vmap { established : accept, related : accept }; }
    chain forward { type filter hook forward priority filter; policy accept;
        ct state vmap { established : accept, related : accept }; iifname lan0 accept; }
    chain output { type filter hook output priority filter; policy accept; }
    chain srcnat { type nat hook postrouting priority srcnat; policy accept; }
}
";

/// Firewalls that are loaded anew, again and again, beside a line that is full.
pub fn firewalls_may_reload() {
    const RELOADS: usize = 20;
    let mut world = World::new();
    let reload = |world: &World, rules: &str| {
        let mut nft = Command::new("ip")
            .args(["netns", "exec", &world.ns("g"), "nft", "-f", "-"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        nft.stdin.take().unwrap().write_all(rules.as_bytes()).unwrap();
        assert!(nft.wait().unwrap().success(), "{rules}");
    };
    // Theirs is there first, and comes again on both sides of ours.
    [FIREWALLD, FW4].iter().for_each(|rules| reload(&world, rules));
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let ours = || world.nft(&["-s", "list", "table", "inet", "simnel_wan0"]);
    let before = ours();
    for rules in [FIREWALLD, FW4] {
        let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
        for _ in 0..RELOADS {
            reload(&world, rules);
        }
        assert_eq!(ours(), before);
        let sent = || {
            let shown = world.client("wan0").show().unwrap().remove(1);
            let totals = shown.stats.totals;
            let known = totals.sent_packets + totals.drops();
            assert_eq!(totals.enqueued_packets, known + u64::from(shown.stats.backlog.packets));
            (Instant::now(), totals.sent_bytes, shown.datapath.received)
        };
        // What is sent goes by the shaper, and at its rate.
        let (start, bytes, received) = sent();
        std::thread::sleep(Duration::from_secs(1));
        let (end, all, later) = sent();
        let rate = (all - bytes) as f64 * 8.0 / (end - start).as_secs_f64();
        println!("  {:.3} Mbit/s after {RELOADS} reloads", rate / 1e6);
        assert!(later > received && (1e5..8.5e6).contains(&rate), "{rate}");
        upload.end();
    }
    world.stop();
}
