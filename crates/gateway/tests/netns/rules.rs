//! Rules of the configuration file: what they do to packets, and that they go when the daemon does.

use std::io::Read;
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use simnel_core::qdisc::Detail;
use simnel_gateway::control::{Below, Entry};
use simnel_gateway::rules::Counted;
use simnel_gateway::view::{Naming, Viewer};
use simnel_gateway::Direction;

use crate::hangs::{family_where, kill};
use crate::in_kernel;
use crate::marked;
use crate::world::{address, bound, listener, option, World};

/// Datagrams that go each way at each port.
pub const EACH: u64 = 20;
const AF41: i32 = 34;
/// Statistics list the tiers of `diffserv4` so.
const TIERS: [&str; 4] = ["bulk", "best effort", "video", "voice"];

/// Writes the file with `rules` below the interface.
pub fn write(world: &World, words: &str, rules: &str) {
    let directory = world.control.display();
    let text = format!(
        "control_dir = \"{directory}\"\n\
         [[interface]]\nname = \"wan0\"\ndownload = \"20mbit\"\nupload = \"8mbit\"\n\
         {words}\n{rules}"
    );
    std::fs::write(world.file(), text).unwrap();
}

pub fn start(world: &mut World, words: &str, rules: &str) {
    write(world, words, rules);
    world.start(&["file"]);
}

/// The words of an interface with the discipline `qdisc`, by the backend that was asked for.
pub fn words(qdisc: &str) -> String {
    let backend = if in_kernel::is_asked() { "backend = \"kernel\"\n" } else { "" };
    format!("{backend}qdisc = \"{qdisc}\"")
}

/// Makes the daemon read other rules, and waits until it has them.
pub fn reload(world: &World, words: &str, rules: &str, traffic: &str) {
    write(world, words, rules);
    world.signal(libc::SIGHUP);
    let start = Instant::now();
    while world.client("wan0").rules().unwrap().first().is_none_or(|r| r.traffic != traffic) {
        assert!(start.elapsed() < Duration::from_secs(5), "the rules are not read again");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends datagrams to a port of the server and back, none of which may be lost.
pub fn exchange(world: &World, server: &str, port: u16, tos: i32) {
    let far = address(server, port);
    let (v4, home) = (far.is_ipv4(), if far.is_ipv4() { "0.0.0.0" } else { "::" });
    let server = world.within("s", || bound(far));
    let client = world.within("c", || UdpSocket::bind(address(home, 0)).unwrap());
    for socket in [&server, &client] {
        socket.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let (level, name) = match v4 {
            true => (libc::IPPROTO_IP, libc::IP_TOS),
            false => (libc::IPPROTO_IPV6, libc::IPV6_TCLASS),
        };
        option(socket, level, name, tos);
    }
    let mut buffer = [0; 64];
    for number in 0..EACH {
        client.send_to(&[0; 32], far).unwrap();
        let (_, from) = server.recv_from(&mut buffer).expect("a datagram was lost");
        server.send_to(&[0; 32], from).unwrap();
        client.recv(&mut buffer).unwrap_or_else(|e| panic!("answer {number} was lost: {e}"));
    }
}

/// Packets that each tier of a direction has sent.
pub fn tiers(entry: &Entry) -> [u64; 4] {
    let Detail::Cake(cake) = entry.stats.detail else { panic!("no cake: {}", entry.config) };
    assert_eq!(cake.tin_count, 4);
    [0, 1, 2, 3].map(|tin| cake.tins[tin].sent_packets)
}

fn mac_of_client(world: &World) -> String {
    let shown = world.ip("c", "link show lan0");
    let mut words = shown.split_whitespace().skip_while(|word| *word != "link/ether");
    words.nth(1).unwrap().to_owned()
}

/// As many rules as there may be, with lists as long as they may be, are laid in one piece. So they
/// are at the start and by a reload, and they are told of.
pub fn rules_with_long_lists_are_laid() {
    const LAST: usize = 63;
    let mut world = World::new();
    let rules = |first: u16| {
        let rule = |number: usize| {
            let ports =
                (0..31).map(|n| 1_000 + number * 90 + 2 * n).chain([usize::from(first) + 999]);
            let ports: Vec<String> = ports.map(|port| port.to_string()).collect();
            let hosts = (1..16).flat_map(|n| [format!("10.{n}.0.0/17"), format!("fd{n:02}::/16")]);
            let own = ["10.77.1.0/24", "fd77:1::/64"].map(String::from);
            let hosts: Vec<String> = own.into_iter().chain(hosts).collect();
            let (ports, hosts) = (ports.join(","), hosts.join("\",\""));
            format!("[[rule]]\nports = [{ports}]\naddress = [\"{hosts}\"]\ntier = \"bulk\"\n")
        };
        let all: String = (1..=LAST).map(rule).collect();
        format!("[[rule]]\nport = {first}\ntier = \"video\"\n{all}")
    };
    let words = "qdisc = \"cake diffserv4\"";
    start(&mut world, words, &rules(7_001));
    let last = 1_000 + LAST as u16 * 90 + 60;
    for (first, port, number, server) in [
        (7_001, last, LAST, "10.77.2.2"),
        (7_001, last, LAST, "fd77:2::2"),
        (7_002, 7_002, 0, "10.77.2.2"),
        (7_002, last, LAST, "10.77.2.2"),
    ] {
        if world.client("wan0").rules().unwrap()[0].traffic != format!("port {first}") {
            reload(&world, words, &rules(first), &format!("port {first}"));
        }
        let before = counted(&world);
        exchange(&world, server, port, 0);
        let after = counted(&world);
        assert_eq!(after.len(), LAST + 1);
        for (at, (before, after)) in before.iter().zip(&after).enumerate() {
            let expected = if at == number { EACH } else { 0 };
            let packets = [0, 1].map(|direction| after[direction] - before[direction]);
            assert_eq!(packets, [expected; 2], "port {port}, rule {}", at + 1);
        }
    }
    reload_under_way(&world, || {
        for first in 7_003..7_009 {
            reload(&world, words, &rules(first), &format!("port {first}"));
        }
    });
    world.stop();
}

/// Exchanges at a port of the last rule as long as `reload` lasts: no packet passes unmarked.
fn reload_under_way(world: &World, reload: impl FnOnce()) {
    let port = 1_000 + 63 * 90;
    let sent =
        || -> Vec<[u64; 4]> { world.client("wan0").show().unwrap().iter().map(tiers).collect() };
    let before = sent();
    let is_over = AtomicBool::new(false);
    let exchanges = std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let mut exchanges = 0;
            while !is_over.load(Ordering::Relaxed) {
                exchange(world, "10.77.2.2", port, 0);
                exchanges += 1;
            }
            exchanges
        });
        reload();
        is_over.store(true, Ordering::Relaxed);
        traffic.join().unwrap()
    });
    println!("  {exchanges} exchanges beside it");
    for (before, after) in before.into_iter().zip(sent()) {
        let sent = [0, 1, 2, 3].map(|tier| after[tier] - before[tier]);
        println!("  {sent:?} in {TIERS:?}");
        assert_eq!(sent[0], exchanges * EACH);
    }
}

/// Packets of each rule, of upload and download.
fn counted(world: &World) -> Vec<[u64; 2]> {
    let rules = world.client("wan0").rules().unwrap();
    rules.iter().map(|rule| [rule.upload, rule.download].map(|c| c.unwrap().packets)).collect()
}

/// Connects to a port of the server and resets that.
fn connect(world: &World, server: &str, port: u16) {
    let listener = world.within("s", || listener(address(server, port)));
    let client = world.within("c", || TcpStream::connect(address(server, port)).unwrap());
    let (accepted, _) = listener.accept().unwrap();
    reset(client, accepted);
}

/// Ends a connection by a reset, behind which comes nothing.
pub fn reset(client: TcpStream, mut accepted: TcpStream) {
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).unwrap();
    drop(client);
    accepted.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let end = accepted.read(&mut [0; 8]).unwrap_err();
    assert_eq!(end.kind(), std::io::ErrorKind::ConnectionReset);
}

/// A list fits what one of its items does. Its ranges and prefixes overlap, touch and come twice,
/// of both IP versions and for UDP and TCP.
pub fn lists_fit_what_their_items_do() {
    let mut world = World::new();
    let mac = mac_of_client(&world);
    let rules = format!(
        "[[rule]]\nports = [\"7001-7004\", \"7003-7006\", 7007, 7010, 7010, \"7012-7013\"]\n\
         address = [\"10.77.1.0/30\", \"10.77.1.2\", \"10.77.1.4/30\", \"10.9.0.0/16\", \
         \"fd77:1::/126\", \"fd77:1::2\", \"fd99::/16\"]\ntier = \"voice\"\n\
         [[rule]]\naddress = [\"10.77.1.3\", \"10.77.1.0/31\", \"fd77:1::3\"]\npass = true\n\
         [[rule]]\nprotocol = \"udp\"\nport = 7008\ndscp = [\"CS1\", \"AF41\", \"EF\"]\n\
         tier = \"video\"\n\
         [[rule]]\nmac = [\"02:00:5e:10:00:01\", \"{mac}\"]\nports = [7009, 7011, 7014]\n\
         tier = \"bulk\"\n\
         [[rule]]\nmac = [\"02:00:5e:10:00:01\", \"02:00:5e:10:00:03\"]\npass = true\n"
    );
    start(&mut world, "qdisc = \"cake diffserv4\"", &rules);
    let ruled = |port: u16, is_marked: bool, is_udp: bool| match port {
        7_001..=7_007 | 7_010 | 7_012 | 7_013 => Some(0),
        7_008 if is_marked && is_udp => Some(2),
        7_009 | 7_011 | 7_014 => Some(3),
        _ => None,
    };
    let mut before = counted(&world);
    let mut check = |what: &str, least: u64, most: u64, rule: Option<usize>| {
        let after = counted(&world);
        for (at, (before, after)) in before.iter().zip(&after).enumerate() {
            let expected = if rule == Some(at) { least..=most } else { 0..=0 };
            let packets = [0, 1].map(|direction| after[direction] - before[direction]);
            assert!(packets.iter().all(|p| expected.contains(p)), "{what}: {packets:?} by {at}");
        }
        before = after;
    };
    for server in ["10.77.2.2", "fd77:2::2"] {
        for port in 7_000..=7_015 {
            for code in [AF41, 0] {
                exchange(&world, server, port, code << 2);
                check(&format!("{server} {port} {code}"), EACH, EACH, ruled(port, code > 0, true));
            }
            connect(&world, server, port);
            check(&format!("{server} {port} by TCP"), 1, 20, ruled(port, false, false));
        }
    }
    world.stop();
}

/// Port, address, hardware address and code point choose tiers; `pass` leads past the discipline.
pub fn rules_choose_tiers() {
    let mut world = World::new();
    let mac = mac_of_client(&world);
    let rules = format!(
        "[[rule]]\nname = \"calls\"\nprotocol = \"udp\"\nport = \"7001-7002\"\ntier = \"voice\"\n\
         [[rule]]\nmac = \"{mac}\"\nport = 7003\ntier = \"video\"\n\
         [[rule]]\naddress = \"10.77.1.0/25\"\nport = 7004\ntier = \"bulk\"\n\
         [[rule]]\nport = 7005\npass = true\n\
         [[rule]]\ndscp = \"AF41\"\ntier = 2\n\
         [[rule]]\nprotocol = \"udp\"\nport = \"7000-7001\"\ntier = \"bulk\"\n"
    );
    let words = "qdisc = \"cake diffserv4\"";
    // Whoever looks behind us sees no mark of ours. The kernel's own multicast reports bear one.
    world.nft(&["add", "table", "inet", "behind"]);
    for (chain, hook) in [("after", "postrouting priority 150"), ("in", "prerouting priority -50")]
    {
        let hook = format!("{{ type filter hook {hook}; }}");
        world.nft(&["add", "chain", "inet", "behind", chain, &hook]);
        let words = ["meta", "l4proto", "udp", "meta", "mark", "!=", "0", "counter"];
        world.nft(&[&["add", "rule", "inet", "behind", chain], &words[..]].concat());
    }
    start(&mut world, words, &rules);
    for server in ["10.77.2.2", "fd77:2::2"] {
        let before = world.client("wan0").show().unwrap();
        for port in 7001..=7006 {
            // What has no rule is where its code point leads.
            exchange(&world, server, port, if port == 7006 { AF41 << 2 } else { 0 });
        }
        let after = world.client("wan0").show().unwrap();
        // The prefix is of IPv4: elsewhere its rule leaves the packets alone.
        let bulk = if server.contains(':') { 0 } else { EACH };
        let expected = [bulk, EACH + (EACH - bulk), EACH, 2 * EACH];
        for (before, after) in before.iter().zip(&after) {
            let sent = [0, 1, 2, 3].map(|tin| tiers(after)[tin] - tiers(before)[tin]);
            println!("  {server} {}: {sent:?} in {TIERS:?}", after.direction);
            // Neighbours are asked for and groups reported beside it, in two of the tiers.
            for (tin, (sent, expected)) in sent.iter().zip(expected).enumerate() {
                let control = if tin % 2 == 1 { 12 } else { 0 };
                assert!((expected..=expected + control).contains(sent), "{}: {sent}", TIERS[tin]);
            }
        }
    }
    let counted = world.client("wan0").rules().unwrap();
    let packets = |counted: Option<Counted>| counted.unwrap().packets;
    let expected = [4 * EACH, 2 * EACH, EACH, 2 * EACH, 2 * EACH, 0];
    for (rule, expected) in counted.iter().zip(expected) {
        println!("  {}: {} → {}, {:?}", rule.number, rule.traffic, rule.action, rule.upload);
        assert_eq!((packets(rule.upload), packets(rule.download)), (expected, expected));
    }
    // 20 bytes of IPv4 or 40 of IPv6, 8 of UDP, 32 of payload.
    assert_eq!(counted[0].upload.unwrap().bytes, 2 * EACH * (60 + 80));
    let behind = world.nft(&["list", "table", "inet", "behind"]);
    for line in behind.lines().filter(|line| line.contains("mark")) {
        assert!(line.contains("packets 0 "), "a mark of ours stays: {line}");
    }

    // Flows are shown in the tiers that their packets are in.
    let names = Naming::new(false).names();
    let view = Viewer::new().look(&world.control, "wan0", &names).unwrap();
    let flows = view.flows.iter().filter_map(|flow| {
        let ports = [flow.entry.sport, flow.entry.dport];
        let port = ports.into_iter().find(|port| (7001..7007).contains(port));
        Some((port?, flow.entry.source.is_ipv4(), flow.class.as_deref()?))
    });
    let flows: Vec<_> = flows.collect();
    for (port, is_ipv4, class) in &flows {
        let expected = match port {
            7001 | 7002 => "Voice",
            7003 => "Video",
            7004 if *is_ipv4 => "Bulk",
            _ => "Best Effort",
        };
        assert_eq!(*class, expected, "port {port}");
    }
    // Five ports and two protocols, each way.
    assert_eq!(flows.len(), 5 * 2 * 2, "{flows:?}");

    // Other rules, in the midst of traffic: nothing is lost, and what came before is forgotten.
    let other = "[[rule]]\nport = 7001\ntier = \"bulk\"\n";
    let before = world.client("wan0").show().unwrap();
    let reloaded = AtomicBool::new(false);
    let exchanges = std::thread::scope(|scope| {
        let traffic = scope.spawn(|| {
            let mut exchanges = 0;
            let mut last = false;
            while !last {
                last = reloaded.load(Ordering::Relaxed);
                exchange(&world, "10.77.2.2", 7001, 0);
                exchanges += 1;
            }
            exchanges
        });
        reload(&world, words, other, "port 7001");
        reloaded.store(true, Ordering::Relaxed);
        traffic.join().unwrap()
    });
    let after = world.client("wan0").show().unwrap();
    for (before, after) in before.iter().zip(&after) {
        let sent = |tin: usize| tiers(after)[tin] - tiers(before)[tin];
        println!("  {}: {} in voice, then {} in bulk", after.direction, sent(3), sent(0));
        assert!(sent(0) > 0 && sent(0) + sent(3) == exchanges * EACH);
    }
    // A mistake changes nothing.
    write(&world, words, "[[rule]]\nport = 7001\ntier = \"vioce\"\n");
    world.signal(libc::SIGHUP);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(world.client("wan0").rules().unwrap()[0].action, "tier bulk");
    // Nor does a change to a discipline that has no tiers for the rule.
    let refused = world.client("wan0").change(Direction::Upload, "fq_codel").unwrap_err();
    assert!(refused.to_string().contains("rule 1: `tier = \"bulk\"` needs cake"), "{refused}");
    // Where the tiers are others, the rule follows.
    world.client("wan0").change(Direction::Upload, "cake bandwidth 8mbit diffserv3").unwrap();
    exchange(&world, "10.77.2.2", 7001, 0);

    // Rules end with the daemon, whatever ends it.
    let (daemon, _) = family_where(&world, |_| true);
    world.signal(libc::SIGSTOP);
    kill(daemon, libc::SIGKILL);
    let start = Instant::now();
    while world.nft(&["list", "tables"]).contains("simnel") {
        assert!(start.elapsed() < Duration::from_secs(5), "the table is still there");
    }
    println!("  table gone after {:?}", start.elapsed());
    exchange(&world, "10.77.2.2", 7001, 0);
    world.signal(libc::SIGKILL);
    world.reap();
}

/// Bits of the mark that rules needed are others' again once those are gone: not cleared any more.
pub fn bits_of_tiers_are_given_back() {
    let mut world = World::new();
    let words = "qdisc = \"cake diffserv4\"";
    start(&mut world, words, "[[rule]]\nport = 7001\ntier = \"bulk\"\n");
    let table = |world: &World| world.nft(&["list", "table", "inet", "simnel_wan0"]);
    let is_cleared = |world: &World| table(world).contains("mark & 0x3f000000");
    assert!(is_cleared(&world), "{}", table(&world));
    write(&world, words, "");
    world.signal(libc::SIGHUP);
    let start = Instant::now();
    while is_cleared(&world) {
        assert!(start.elapsed() < Duration::from_secs(5), "{}", table(&world));
        std::thread::sleep(Duration::from_millis(50));
    }
    // What cake reads of the mark went with them, and comes back with another rule.
    exchange(&world, "10.77.2.2", 7001, 0);
    let shown = world.client("wan0").show().unwrap();
    assert!(shown.iter().all(|entry| tiers(entry)[0] == 0), "{shown:?}");
    reload(&world, words, "[[rule]]\nport = 7002\ntier = \"bulk\"\n", "port 7002");
    exchange(&world, "10.77.2.2", 7002, 0);
    let shown = world.client("wan0").show().unwrap();
    assert!(shown.iter().all(|entry| tiers(entry)[0] == EACH), "{shown:?}");
    world.stop();
}

/// Two classes of htb, one of them by rule.
pub fn rules_choose_classes() {
    let mut world = World::new();
    let words = "qdisc = \"htb default 20 class 1:1 rate 8mbit \
                 class 1:10 parent 1:1 rate 2mbit ceil 8mbit pfifo \
                 class 1:20 parent 1:1 rate 6mbit ceil 8mbit pfifo\"";
    let words = words.replace("qdisc", "upload_qdisc");
    let text = format!(
        "control_dir = \"{}\"\n[[interface]]\nname = \"wan0\"\n{words}\n\
         [[rule]]\nport = 7001\nclass = \"1:10\"\n",
        world.control.display()
    );
    std::fs::write(world.file(), text).unwrap();
    // The device's own discipline is not to see our classes.
    world.nft(&["add", "table", "inet", "behind"]);
    let hook = "{ type filter hook postrouting priority 150; }";
    world.nft(&["add", "chain", "inet", "behind", "after", hook]);
    let seen = ["add", "rule", "inet", "behind", "after", "meta", "priority", "!=", "0"];
    world.nft(&[&seen[..], &["udp", "dport", "7001", "counter"]].concat());
    world.start(&["file"]);
    exchange(&world, "10.77.2.2", 7001, 0);
    exchange(&world, "10.77.2.2", 7002, 0);
    let shown = world.client("wan0").show().unwrap().remove(0);
    let sent: Vec<_> = shown.below.iter().map(|b| (b.class, b.stats.totals.sent_packets)).collect();
    println!("  {sent:?}");
    if sent.iter().any(|(class, sent)| (*class, *sent) == (0x20, 2 * EACH)) {
        return crate::cases::not_run("NFQUEUE tells no priorities here (Linux 5.18)");
    }
    assert!(sent.contains(&(0x10, EACH)), "{sent:?}");
    // The host's own packets, such as router solicitations, are of no rule either.
    assert!(sent.iter().any(|(class, sent)| *class == 0x20 && *sent >= EACH), "{sent:?}");
    let behind = world.nft(&["list", "table", "inet", "behind"]);
    assert!(behind.contains("packets 0 "), "a class of ours stays: {behind}");
    world.stop();
}

/// Bits a second that arrive at the server from each of `hosts` while all of them send 6 Mbit/s.
pub fn flood(world: &World, hosts: &[&'static str]) -> Vec<f64> {
    const LASTS: Duration = Duration::from_millis(1_500);
    let senders = hosts.iter().zip(7_001..).map(|(host, port)| {
        let far = address("10.77.2.2", port);
        let server = world.within("s", || bound(far));
        server.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let client = world.within("c", || UdpSocket::bind(address(host, 0)).unwrap());
        let sender = std::thread::spawn(move || {
            let start = Instant::now();
            for number in 0u32.. {
                if start.elapsed() > LASTS {
                    break;
                }
                let _ = client.send_to(&[0; 1_458], far);
                let due = Duration::from_millis(2) * (number + 1);
                std::thread::sleep(due.saturating_sub(start.elapsed()));
            }
        });
        let receiver = std::thread::spawn(move || {
            let mut buffer = [0; 2_048];
            let (mut begin, mut bytes) = (None, 0);
            while let Ok(length) = server.recv(&mut buffer) {
                // From the first packet on, and as long as all send.
                let begin = *begin.get_or_insert_with(Instant::now);
                if begin.elapsed() < LASTS {
                    bytes += length + 42;
                }
            }
            bytes as f64 * 8.0 / LASTS.as_secs_f64()
        });
        (sender, receiver)
    });
    let pairs: Vec<_> = senders.collect();
    pairs
        .into_iter()
        .map(|(sender, receiver)| {
            sender.join().unwrap();
            receiver.join().unwrap()
        })
        .collect()
}

/// A device has no more than its cap, not less than its floor, and outside of its hours what all
/// have.
pub fn shares_have_floors_and_caps() {
    let mut world = World::new();
    if in_kernel::is_asked() && !(marked::has_ctinfo(&world) && marked::has_module()) {
        return crate::cases::not_run("this kernel lacks the action ctinfo, or the module");
    }
    world.ip("c", "address add 10.77.1.3/24 dev lan0");
    // Three days from now it is another day in every time zone.
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let days = since.as_secs() / 86_400 + 4;
    let other = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"][(days + 3) as usize % 7];
    let share = |hours: &str| {
        format!(
            "[[share]]\nname = \"tv\"\naddress = \"10.77.1.2\"\nupload = \"1mbit..2mbit\"\n{hours}"
        )
    };
    let words = words("cake besteffort");
    start(&mut world, &words, &share("hours = \"00:00-24:00\""));
    exchange(&world, "10.77.2.2", 7005, 0);
    let shown = world.client("wan0").show().unwrap();
    let upload = shown.iter().find(|entry| entry.direction == Direction::Upload);
    let is_told = |below: &Below| below.class == 0x11 && below.stats.totals.sent_packets > 0;
    if upload.is_some_and(|upload| !upload.below.iter().any(is_told)) {
        return crate::cases::not_run("NFQUEUE tells no priorities here (Linux 5.18)");
    }
    let alone = flood(&world, &["10.77.1.2"])[0] / 1e6;
    let both = flood(&world, &["10.77.1.2", "10.77.1.3"]);
    let [with, others] = [both[0] / 1e6, both[1] / 1e6];
    reload(
        &world,
        &words,
        &share(&format!("day = \"{other}\"")),
        &format!("address 10.77.1.2 00:00-24:00 {other}"),
    );
    let later = flood(&world, &["10.77.1.2"])[0] / 1e6;
    println!("  of 8 Mbit/s {alone:.2} alone, {with:.2} beside {others:.2}; {later:.2} on {other}");
    assert!((1.7..2.1).contains(&alone) && (0.9..2.1).contains(&with));
    assert!((5.0..7.2).contains(&others) && (5.0..6.4).contains(&later));
    world.stop();
}
