//! Figures of a release build: `GW_MEASURE=1 cargo test --release -p simnel-gateway --test netns`.
//! Needs `ethtool`. `GW_MEASURE=lanes`: what several lanes cost, and carry; `GW_MEASURE=bridge`: a
//! bridge.

use std::time::Duration;

use simnel_gateway::control::Entry;
use simnel_gateway::Direction;

use crate::accuracy::Measured;
use crate::hangs::{family_where, threads_named};
use crate::transfer::{round_trips, Transfer};
use crate::world::{address, World};

fn entry(world: &World, direction: Direction) -> Entry {
    let shown = world.client("wan0").show().unwrap();
    shown.into_iter().find(|e| e.direction == direction).unwrap()
}

pub fn all() {
    let mut world = World::new();
    idle(&mut world);
    println!("super-packets are split at the gateway's interface, and seen there as on a wire:");
    world.shell("g", "ethtool -K wan0 tso off gso off");
    let rates = [(10_000, 12), (100_000, 10), (300_000, 8), (1_000_000, 8), (2_500_000, 8)];
    for (kbit, seconds) in rates {
        let words = format!("cake bandwidth {kbit}kbit");
        let time = Duration::from_secs(seconds);
        println!("{}", Measured::upload(&mut world, &words, 1514, time));
    }
    world.shell("g", "ethtool -K wan0 tso on gso on");
    both_sizes(&mut world, World::new);
    if cores() > 1 {
        println!("the gateway on one core, the hosts on another:");
        steer_to_hosts(&world);
        WORDS.iter().for_each(|words| throughput(&mut world, words, true));
    }
}

/// The same of a bridge.
pub fn bridged() {
    let mut world = World::bridged();
    idle(&mut world);
    both_sizes(&mut world, World::bridged);
}

/// Goodput and its cost with packets and super-packets, beside the kernel's own in a world alike.
fn both_sizes(world: &mut World, alike: fn() -> World) {
    for whole in [false, true] {
        println!("{}:", if whole { "with super-packets" } else { "packets of 1500 bytes" });
        println!("by the kernel alone: goodput {:.0} Mbit/s", alone(&alike(), whole) / 1e6);
        let switch = if whole { "on" } else { "off" };
        world.shell("c", &format!("ethtool -K lan0 tso {switch} gso {switch}"));
        WORDS.iter().for_each(|words| throughput(world, words, false));
    }
}

const WORDS: [&str; 3] = ["cake bandwidth 1gbit", "cake bandwidth 2500mbit", "cake unlimited"];
/// A full packet, with its link header.
const FULL: f64 = 1514.0;

fn idle(world: &mut World) {
    let at = address("10.77.2.2", 6100);
    let gap = Duration::from_millis(1);
    let median = |times: &[Duration]| times[times.len() / 2];
    let p99 = |times: &[Duration]| times[times.len() * 99 / 100];
    let without = round_trips(world, at, 2000, gap);
    world.start(&["wan0=cake bandwidth 1gbit|cake bandwidth 1gbit"]);
    let with = round_trips(world, at, 2000, gap);
    world.stop();
    println!(
        "idle RTT µs p50/p99: by the kernel alone {:?}/{:?}, shaped {:?}/{:?}, added p50 {:?}",
        median(&without),
        p99(&without),
        median(&with),
        p99(&with),
        median(&with).saturating_sub(median(&without))
    );
}

/// The core of the gateway's threads, and that of all else, where they are kept apart.
const GATEWAY: usize = 1;
const HOSTS: usize = 2;

/// Keeps the calling thread, and what it will start, on the cores of a mask.
fn run_on(mask: usize) {
    // SAFETY: pointer and length describe `mask`, an array of bits; 0 is the calling thread.
    let result =
        unsafe { libc::sched_setaffinity(0, size_of_val(&mask), (&raw const mask).cast()) };
    assert_eq!(result, 0, "sched_setaffinity: {}", std::io::Error::last_os_error());
}

/// Lets the hosts' core attend to arrivals at any interface, and not the thread that sent them. So
/// it is with hosts that are machines of their own.
fn steer_to_hosts(world: &World) {
    for (place, interface) in [("c", "lan0"), ("g", "lan0"), ("g", "wan0"), ("s", "wan0")] {
        world.shell(
            place,
            &format!("echo {HOSTS:x} > /sys/class/net/{interface}/queues/rx-0/rps_cpus"),
        );
    }
}

/// Goodput of an upload, and what it cost the gateway.
fn throughput(world: &mut World, words: &str, apart: bool) {
    if apart {
        run_on(GATEWAY);
    }
    world.start(&[&format!("wan0={words}|{words}")]);
    if apart {
        run_on(HOSTS);
    }
    let upload = Transfer::start(world, "c", "s", address("10.77.2.2", 5100), false);
    std::thread::sleep(Duration::from_secs(2));
    let before = entry(world, Direction::Upload);
    let rate = upload.rate(Duration::from_secs(8));
    let after = entry(world, Direction::Upload);
    upload.end();
    world.stop();
    let packets = after.datapath.released - before.datapath.released;
    let bytes = after.stats.totals.sent_bytes - before.stats.totals.sent_bytes;
    let cpu = (after.datapath.cpu.0 - before.datapath.cpu.0) as f64 / 1000.0;
    println!(
        "{words}: goodput {:.0} Mbit/s, {:.2} µs CPU for 1500 bytes, {:.2} a packet of {} bytes, \
         {:.1} packets a turn, kernel {:?}",
        rate / 1e6,
        cpu / (bytes as f64 / FULL),
        cpu / packets as f64,
        bytes / packets,
        packets as f64 / (after.datapath.turns - before.datapath.turns) as f64,
        after.kernel
    );
}

/// Addresses of the server, a flow to each: spread over lanes by their hash.
const ADDRESSES: std::ops::Range<u8> = 100..108;
/// Pairs of runs: one lane, then two, since machines change their speed.
const PAIRS: usize = 3;

/// One lane beside two: goodput, and processor time of all lanes and of each. The hosts' own work
/// is done by the same cores.
pub fn lanes() {
    let mut world = World::new();
    for last in ADDRESSES {
        world.ip("s", &format!("addr add 10.77.2.{last}/24 dev wan0"));
    }
    println!("{} cores; {} flows, of hosts on the same cores", cores(), ADDRESSES.len());
    for whole in [false, true] {
        println!("{}:", if whole { "with super-packets" } else { "packets of 1500 bytes" });
        let switch = if whole { "on" } else { "off" };
        world.shell("c", &format!("ethtool -K lan0 tso {switch} gso {switch}"));
        for rate in ["1gbit", "20gbit"] {
            (0..PAIRS).for_each(|_| [1, 2].into_iter().for_each(|n| shared(&mut world, rate, n)));
        }
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Goodput of uploads at a rate that so many lanes share, and what each lane has done for it.
fn shared(world: &mut World, rate: &str, lanes: usize) {
    world.start(&[&format!("wan0 lanes {lanes}=|cake bandwidth {rate} besteffort")]);
    let (daemon, _) = family_where(world, |_| true);
    let threads = threads_named(daemon, "simnel-upload");
    let upload = |last| {
        let at = address(&format!("10.77.2.{last}"), 5100);
        Transfer::start(world, "c", "s", at, false)
    };
    let uploads: Vec<Transfer> = ADDRESSES.map(upload).collect();
    let received = || uploads.iter().map(Transfer::bytes).sum::<u64>();
    std::thread::sleep(Duration::from_secs(2));
    let times = || threads.iter().map(|thread| processor_time(daemon, *thread));
    let (before, times_before) = (entry(world, Direction::Upload), times().collect::<Vec<_>>());
    let (bytes_before, start) = (received(), std::time::Instant::now());
    std::thread::sleep(Duration::from_secs(5));
    let (bytes, time) = (received() - bytes_before, start.elapsed());
    let busy: Vec<f64> = times()
        .zip(times_before)
        .map(|(after, before)| (after - before) as f64 / time.as_nanos() as f64)
        .collect();
    let after = entry(world, Direction::Upload);
    uploads.into_iter().for_each(Transfer::end);
    world.stop();
    let packets = after.datapath.released - before.datapath.released;
    let sent = after.stats.totals.sent_bytes - before.stats.totals.sent_bytes;
    let cpu = (after.datapath.cpu.0 - before.datapath.cpu.0) as f64 / 1000.0;
    let shares: Vec<String> = busy.iter().map(|part| format!("{:.0} %", part * 100.0)).collect();
    println!(
        "{rate}, {lanes} of them: goodput {:.0} Mbit/s, {:.2} µs CPU for 1500 bytes in all lanes, \
         {:.1} packets a turn, lanes use {} of a core",
        bytes as f64 * 8.0 / time.as_secs_f64() / 1e6,
        cpu / (sent as f64 / FULL),
        packets as f64 / (after.datapath.turns - before.datapath.turns) as f64,
        shares.join(" and ")
    );
}

/// Nanoseconds that a thread has run.
fn processor_time(process: i32, thread: i32) -> u64 {
    let path = format!("/proc/{process}/task/{thread}/schedstat");
    let text = std::fs::read_to_string(path).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Goodput of an upload without a gateway in its way, in super-packets or in packets of 1500 bytes
/// from its sender on: bit/s.
fn alone(world: &World, whole: bool) -> f64 {
    if !whole {
        world.shell("c", "ethtool -K lan0 tso off gso off");
    }
    let upload = Transfer::start(world, "c", "s", address("10.77.2.2", 5100), false);
    std::thread::sleep(Duration::from_secs(2));
    let rate = upload.rate(Duration::from_secs(8));
    upload.end();
    rate
}
