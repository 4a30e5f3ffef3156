//! The kernel's part on our behalf: fail-open of a full queue, marks, the IPsec exception. What the
//! data path must not do, that is, make up for all lateness. Interfaces that come late.

use std::io::{BufRead, BufReader};
use std::net::UdpSocket;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use simnel_gateway::control::Client;
use simnel_gateway::kernel::shaped;
use simnel_gateway::{Direction, Error};

use crate::cases::{assert_rate, not_run};
use crate::hangs::{family_where, kill};
use crate::transfer::Transfer;
use crate::wire::Arrivals;
use crate::world::{address, bound, option, World};

const SECOND: Duration = Duration::from_secs(1);

/// Writes the file that the daemon reads, with the world's own control directory.
pub fn write_file(world: &World, interfaces: &str) {
    let text = format!("control_dir = \"{}\"\n{interfaces}", world.control.display());
    std::fs::write(world.file(), text).unwrap();
}

/// More packets than the kernel may keep for us pass unshaped; none is lost.
pub fn what_a_full_queue_cannot_take_passes() {
    const PACKETS: usize = 1_000;
    let mut world = World::new();
    write_file(
        &world,
        "[[interface]]\nname = \"wan0\"\nupload_qdisc = \"line rate 2mbit fifo 2000p\"\n\
         queue_length = 256\n",
    );
    world.start(&["file"]);
    let (ready, wait) = std::sync::mpsc::channel();
    let receiver = world.spawn("s", move || {
        let socket = bound("10.77.2.2:6000");
        socket.set_read_timeout(Some(SECOND)).unwrap();
        option(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 8 << 20);
        ready.send(()).unwrap();
        let mut buffer = [0; 2048];
        (0..).take_while(|_| socket.recv(&mut buffer).is_ok()).count()
    });
    wait.recv().unwrap();
    world.within("c", || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..PACKETS {
            socket.send_to(&[0; 500], "10.77.2.2:6000").unwrap();
        }
    });
    let shown = world.client("wan0").show().unwrap().remove(0);
    assert!(shown.datapath.received < 700, "all of them were queued: {:?}", shown.kernel);
    assert_eq!(receiver.join().unwrap(), PACKETS);
    world.stop();
}

/// As the kernel has understood it. What IPsec does with it cannot be tried on every kernel.
pub fn rules_except_what_ipsec_will_encapsulate() {
    if !std::path::Path::new("/proc/sys/net/core/xfrm_acq_expires").exists() {
        return not_run("this kernel has no IPsec (CONFIG_XFRM)");
    }
    let mut world = World::new();
    world.start(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    for (chain, exception) in [("arriving", "meta ipsec missing"), ("leaving", "rt ipsec missing")]
    {
        let rules = world.nft(&["list", "chain", "inet", "simnel_wan0", chain]);
        // Not every `nft` prints the target; the other rule is about marks.
        let queues = |line: &&str| line.contains("\"wan0\"") && !line.contains("mark");
        let lines: Vec<&str> = rules.lines().filter(queues).collect();
        assert!(lines.len() == 1 && lines[0].contains(exception), "{rules}");
    }
    world.stop();
}

/// A user's mark gets through as it was, also on packets that we mark.
pub fn marks_of_others_stay_as_they_are() {
    let mut world = World::new();
    world.nft(&["add", "table", "inet", "user"]);
    for chain in [
        "pre { type filter hook prerouting priority -150; }",
        "arrived { type filter hook prerouting priority -80; }",
        "post { type filter hook postrouting priority 95; }",
    ] {
        let (name, hook) = chain.split_once(' ').unwrap();
        world.nft(&["add", "chain", "inet", "user", name, hook]);
    }
    let rule = |chain: &str, words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        world.nft(&[&["add", "rule", "inet", "user", chain], &words[..]].concat());
    };
    rule("pre", "udp dport 6001 meta mark set 0x0000abcd");
    for (chain, way) in [("post", "oifname wan0"), ("arrived", "iifname wan0")] {
        rule(chain, &format!("{way} udp dport 6001 ip dscp 0 meta mark 0xabcd ip ecn ce counter"));
        rule(chain, &format!("{way} udp dport 6001 meta mark != 0xabcd counter"));
    }
    world.start(&["wan0=cake bandwidth 1mbit wash|cake bandwidth 1mbit wash"]);
    for (from, to, bind) in [("c", "s", "10.77.2.2:6001"), ("s", "c", "10.77.1.2:6001")] {
        let sink = world.within(to, move || bound(bind));
        world.within(from, move || {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            // EF, able to bear marks.
            option(&socket, libc::IPPROTO_IP, libc::IP_TOS, 46 << 2 | 2);
            let start = Instant::now();
            while start.elapsed() < SECOND {
                let _ = socket.send_to(&[0; 1000], bind);
                std::thread::sleep(Duration::from_millis(4));
            }
        });
        drop(sink);
    }
    for chain in ["post", "arrived"] {
        let rules = world.nft(&["list", "chain", "inet", "user", chain]);
        let counts: Vec<u32> = rules
            .split("packets ")
            .skip(1)
            .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
            .collect();
        println!(
            "  {chain}: {} with CE and the user's mark, {} with another",
            counts[0], counts[1]
        );
        assert!(counts[0] >= 5, "no packet was marked and washed:\n{rules}");
        assert_eq!(counts[1], 0, "the user's mark was lost, or ours was left:\n{rules}");
    }
    world.stop();
}

/// Lateness beyond what a burst may make up for is forfeited: no second holds more for it.
pub fn long_lateness_is_forfeited() {
    /// Shorter than what the guard takes for a hang.
    const STOP: Duration = Duration::from_millis(120);
    const RATE: f64 = 10e6;
    let mut world = World::new();
    world.start(&["wan0=|cake bandwidth 10mbit"]);
    // Twice the rate, so that there is always something to make up with.
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let load = world.spawn("c", move || {
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        while !stopped.load(Ordering::Relaxed) {
            for _ in 0..5 {
                let _ = socket.send_to(&[0; 1000], "10.77.2.2:9");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    let (daemon, _) = family_where(&world, |_| true);
    std::thread::sleep(SECOND / 2);
    let watcher = Arrivals::watch(&world, "s", "wan0", SECOND * 3);
    for _ in 0..2 {
        std::thread::sleep(SECOND / 2);
        kill(daemon, libc::SIGSTOP);
        std::thread::sleep(STOP);
        kill(daemon, libc::SIGCONT);
    }
    let (most, _) = watcher.join().unwrap().most_in_a_second();
    let forfeited = world.client("wan0").show().unwrap()[0].datapath.forfeited;
    println!("  most in a second {:+.2} % of the rate", (most / RATE - 1.0) * 100.0);
    assert!(most <= RATE * 1.002, "{most} bit in a second, with {forfeited:?} forfeited");
    stop.store(true, Ordering::Relaxed);
    load.join().unwrap();
    world.stop();
}

/// Linux's own cake where there is one, as for `conformance/live-on-linux.sh`; a process here, and
/// everywhere once rules are in the file. Either is said with its reason.
pub fn auto_takes_the_best_that_is_there() {
    let mut world = World::new();
    let words = |extra: &str| {
        format!(
            "[[interface]]\nname = \"wan0\"\nbackend = \"auto\"\ndownload = \"20mbit\"\n\
             upload = \"8mbit\"\n{extra}"
        )
    };
    let cake = |verb: &str| format!("tc qdisc {verb} dev lan0 root cake 2>/dev/null");
    let has_cake = world.try_shell("g", &cake("add")) && world.try_shell("g", &cake("del"));
    let shaped = |world: &World| {
        let found = world.within("g", || shaped(Some("wan0")).unwrap());
        found.iter().filter(|shaped| shaped.listed.kind == "cake").count()
    };
    write_file(&world, &words(""));
    let mut command = world.daemon_command(&["file"], &world.control);
    let mut daemon = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(daemon.stderr.take().unwrap()).lines();
    world.daemon = Some(daemon);
    let mut heard = |expected: &str| {
        let line =
            told.find_map(|line| Some(line.unwrap()).filter(|line| line.contains("backend")));
        assert!(line.as_ref().is_some_and(|line| line.contains(expected)), "{line:?}");
    };
    if has_cake {
        heard("wan0: backend kernel: Linux's own cake, since the module `simnel` is not there");
        assert_eq!(shaped(&world), 2);
        let upload = Transfer::start(&world, "c", "s", address("10.77.2.2", 5001), false);
        std::thread::sleep(SECOND / 2);
        assert_rate("Linux's cake", 8e6, || world.wire_rate("s", "wan0", SECOND));
        upload.end();
    } else {
        heard("wan0: backend userspace: this kernel lacks the qdiscs `simnel` and `cake`");
        assert_eq!(world.client("wan0").show().unwrap().len(), 2);
    }
    write_file(&world, &words("[[rule]]\nport = 5000\npass = true\n"));
    world.signal(libc::SIGHUP);
    if has_cake {
        heard("wan0: backend userspace: rules decide about each packet where it passes a process");
    }
    let start = Instant::now();
    let rules = |world: &World| Client::connect(&world.control, "wan0").ok()?.rules().ok();
    while rules(&world).is_none_or(|rules| rules.is_empty()) {
        assert!(start.elapsed() < SECOND * 5, "no rule comes");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(shaped(&world), 0);
    world.stop();
}

/// Times that a thread of `process` has given its core up.
fn voluntary_switches(process: i32, thread: i32) -> u64 {
    let path = format!("/proc/{process}/task/{thread}/status");
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.unwrap().trim().parse().unwrap()
}

/// At the start and after a reload with other tuning.
pub fn an_absent_interface_is_waited_for() {
    let mut world = World::new();
    let settings = |upload: &str, rest: &str| {
        format!("[[interface]]\nname = \"late0\"\nupload = \"{upload}\"\n{rest}")
    };
    let shown = |world: &World| {
        let mut client = Client::connect(&world.control, "late0").ok()?;
        client.show().ok().map(|mut shown| shown.remove(0))
    };
    let wait_for = |world: &World, words: &str| {
        let start = Instant::now();
        let found = |world: &World| {
            shown(world).is_some_and(|entry| {
                entry.direction == Direction::Upload && entry.config.contains(words)
            })
        };
        while !found(world) {
            assert!(start.elapsed() < SECOND * 5, "`{words}` does not come: {:?}", shown(world));
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    write_file(&world, &settings("5mbit", ""));
    world.start(&["file"]);
    std::thread::sleep(SECOND);
    assert!(shown(&world).is_none());
    // It answers all the same, and no other daemon does.
    let mut other = world.daemon_command(&["file"], &world.control).spawn().unwrap();
    let awaited = |world: &World| {
        let told = Client::connect(&world.control, "late0").ok()?.show().err()?;
        matches!(told, Error::Awaited { .. }).then(|| told.to_string())
    };
    std::thread::sleep(SECOND);
    let told = awaited(&world).unwrap();
    assert!(told.contains("there is no interface `late0`"), "{told}");
    let owner = std::fs::read_to_string(world.control.join("late0.lock")).unwrap();
    let (daemon, _) = family_where(&world, |_| true);
    assert_eq!(owner.trim(), daemon.to_string());
    kill(other.id() as i32, libc::SIGTERM);
    assert!(other.wait().unwrap().success() && awaited(&world).is_some());
    world.ip("g", "link add late0 type veth peer name late1");
    wait_for(&world, "bandwidth 5Mbit");
    world.ip("g", "link del late0");
    write_file(&world, &settings("6mbit", "catch_up_us = 5000\n"));
    world.signal(libc::SIGHUP);
    std::thread::sleep(SECOND);
    assert!(shown(&world).is_none(), "other tuning needs a restart");
    world.ip("g", "link add late0 type veth peer name late1");
    wait_for(&world, "bandwidth 6Mbit");
    assert!(shown(&world).unwrap().datapath.realtime, "a late thread is no real-time one");
    let (daemon, _) = family_where(&world, |_| true);
    let before = voluntary_switches(daemon, daemon);
    std::thread::sleep(SECOND * 2);
    let turns = voluntary_switches(daemon, daemon) - before;
    assert!((2..20).contains(&turns), "the main loop turned {turns} times in two seconds");
    world.stop();
}
