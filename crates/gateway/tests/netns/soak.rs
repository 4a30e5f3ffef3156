//! A daemon that is asked, changed, recorded and disturbed again and again holds no more at last
//! than after the first rounds. `SOAK_CYCLES` is how many of them, 60 without.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use simnel_gateway::control::Request;
use simnel_gateway::Direction;

use crate::hangs::family_where;
use crate::heap;
use crate::world::World;

/// Flows that fill a direction's table.
const FLOWS: u32 = 12_000;
/// Rounds in which everything was done once, and heaps have become as large as they need be.
const FIRST: u32 = 20;
/// Rounds in the suite.
const CYCLES: u32 = 60;
/// The interface goes and comes in one of so many.
const GONE_EACH: u32 = 20;
/// Bytes of a process's heap that the rounds may add, all together.
const BOUND: i64 = 4_096;
/// Kilobytes of memory that are its own. The C library keeps what was freed, or does not: a
/// megabyte of each direction's recording, and one more as it is taken over.
const MEMORY_BOUND: i64 = 4 * 1_024 + 1_024;
const PATIENCE: Duration = Duration::from_secs(30);

/// Holdings that must be the same.
#[derive(Debug, PartialEq, Eq)]
struct Holdings {
    /// Descriptors and threads of each process.
    processes: BTreeMap<i32, (usize, usize)>,
    ruleset: String,
    kernel_queues: usize,
    /// Files beside the control socket.
    files: usize,
}

fn holdings(world: &World, family: &[i32]) -> Holdings {
    let count = |path: String| std::fs::read_dir(path).unwrap().count();
    let of = |process: &i32| {
        let place = format!("/proc/{process}");
        (*process, (count(format!("{place}/fd")), count(format!("{place}/task"))))
    };
    let queues = world.within("g", || {
        std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue").unwrap()
    });
    Holdings {
        processes: family.iter().map(of).collect(),
        // Without counters.
        ruleset: world.nft(&["-s", "list", "ruleset"]),
        kernel_queues: queues.lines().count(),
        files: count(world.control.display().to_string()),
    }
}

/// Kilobytes of each process that are its own.
fn memory(family: &[i32; 3]) -> [i64; 3] {
    family.map(|process| {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    })
}

fn wait_for_trouble(world: &World, lasts: bool) {
    let start = Instant::now();
    while world.client("wan0").ask(&Request::Show {}).unwrap().trouble.is_some() != lasts {
        assert!(start.elapsed() < PATIENCE, "trouble: not {lasts}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The interface is deleted and made again.
fn go_and_come(world: &World) {
    world.ip("g", "link del wan0");
    wait_for_trouble(world, true);
    let (gateway, server) = (world.ns("g"), world.ns("s"));
    world.ip("g", &format!("link add wan0 netns {gateway} type veth peer wan0 netns {server}"));
    for (place, host) in [("g", 1), ("s", 2)] {
        world.ip(place, &format!("addr add 10.77.2.{host}/24 dev wan0"));
        world.ip(place, "link set wan0 up");
    }
    wait_for_trouble(world, false);
}

/// Datagrams that nobody wants, each of another flow; some refusals come back by the download.
fn send_flows(world: &World, count: u32) {
    world.within("c", || {
        for number in 0..count {
            let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
            let port = 2_000 + number % 1_000;
            let _ = socket.send_to(&[0; 20], ("10.77.2.2", port as u16));
        }
    });
}

/// Everything that clients ask, and packets of new flows meanwhile.
fn cycle(world: &World, number: u32) {
    let (upload, download) = (Direction::Upload, Direction::Download);
    // Some that say nothing.
    let silent: Vec<_> = (0..4).map(|_| world.client("wan0")).collect();
    let mut client = world.client("wan0");
    // As `top` looks.
    for _ in 0..2 {
        assert_eq!(client.show().unwrap().len(), 2);
        client.flows().unwrap();
    }
    assert!(client.rules().unwrap().is_empty());
    client.record(upload).unwrap();
    client.record(download).unwrap();
    send_flows(world, 10);
    let rate = 6 + number % 3;
    for words in [
        format!("cake bandwidth {rate}mbit diffserv4"),
        format!("line rate {rate}mbit fifo 50p"),
        format!("htb rate {rate}mbit burst 15k fq_codel"),
        String::from("cake bandwidth 8mbit"),
    ] {
        client.change(upload, &words).unwrap();
    }
    let minute = Duration::from_secs(60);
    client.try_out(download, &format!("cake bandwidth {rate}mbit"), minute).unwrap();
    client.keep().unwrap();
    assert!(client.change(upload, "cakes").is_err());
    client.record(upload).unwrap();
    drop(silent);
    if number % GONE_EACH == GONE_EACH / 2 {
        go_and_come(world);
    }
}

pub fn what_is_held_stays_the_same() {
    let cycles = std::env::var("SOAK_CYCLES").map_or(CYCLES, |text| text.parse().unwrap());
    let mut world = World::new();
    let said = world.start_heard(&["wan0=cake bandwidth 20mbit|cake bandwidth 8mbit"]);
    let supervisor = world.daemon.as_ref().unwrap().id() as i32;
    let (daemon, guard) = family_where(&world, |_| true);
    let family = [supervisor, daemon, guard];
    send_flows(&world, FLOWS);
    (0..FIRST).for_each(|number| cycle(&world, number));
    // Recordings end by the daemon's next look.
    std::thread::sleep(Duration::from_secs(2));
    let (before, memory_before) = (holdings(&world, &family), memory(&family));
    let heap_before = family.map(heap::held_by);
    (FIRST..cycles).for_each(|number| cycle(&world, number));
    let more = || {
        let now = family.map(heap::held_by);
        now.iter().zip(&heap_before).map(|(now, before)| now - before).max().unwrap_or(0)
    };
    let start = Instant::now();
    while (holdings(&world, &family) != before || more() > BOUND) && start.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(holdings(&world, &family), before);
    let (heap, memory) = (family.map(heap::held_by), memory(&family));
    println!("  of supervisor, daemon, guard, after {FIRST} and {cycles} rounds:");
    println!(
        "  heap in bytes {heap_before:?} {heap:?}, own memory in kB {memory_before:?} {memory:?}"
    );
    assert!(more() <= BOUND, "{} bytes more after {cycles} rounds", more());
    for (now, before) in memory.iter().zip(&memory_before) {
        assert!(now - before <= MEMORY_BOUND, "{now} kB after {cycles} rounds, {before} before");
    }
    assert_eq!(family_where(&world, |_| true), (daemon, guard), "somebody was started again");
    assert_eq!(said.count("warning"), 0);
    world.stop();
}
