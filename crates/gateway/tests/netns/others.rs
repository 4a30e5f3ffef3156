//! Changes by others to the machine while an interface is served.

use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use simnel_gateway::control::{Entry, Request};
use simnel_gateway::presence::Change;

use crate::cases::not_run;
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
    world.stop();
}

/// Makes a socket the owner of a kernel queue, as another program's would be; the kernel's answer.
fn own_queue(number: u16) -> (OwnedFd, i32) {
    // Length, NFQNL_MSG_CONFIG with REQUEST and ACK; family, version, queue; NFQA_CFG_CMD: bind.
    let mut request = vec![28, 0, 0, 0, 2, 3, 5, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    request.extend(number.to_be_bytes());
    request.extend([8, 0, 1, 0, 1, 0, 0, 0]);
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
    let rule = |number: u16| {
        let number = number.to_string();
        let words = ["add", "rule", "inet", "ids", "look", "queue", "num", &number, "bypass"];
        world.try_nft(&words)
    };
    if rule(FIRST).is_err() {
        return not_run("this kernel has no `queue` of nftables (nft_queue)");
    }
    rule(FIRST + 1).unwrap();
    said.wait_for("chain `look` of table `ids` hands packets to queue 20897, which is `wan0`'s");
    assert_eq!(said.count("hands packets"), 1);
    world.nft(&["delete", "table", "inet", "ids"]);
    assert_served(&world, "at last");
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
