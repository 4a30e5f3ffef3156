//! Figures of a release build: `GW_MEASURE=1 cargo test --release -p simnel-gateway --test netns`.

use std::time::Duration;

use simnel_gateway::control::Entry;
use simnel_gateway::Direction;

use crate::accuracy::Measured;
use crate::transfer::{round_trips, Transfer};
use crate::world::{address, World};

fn entry(world: &World, direction: Direction) -> Entry {
    let shown = world.client("wan0").show().unwrap();
    shown.into_iter().find(|e| e.direction == direction).unwrap()
}

pub fn all() {
    let mut world = World::new();
    idle(&mut world);
    for (kbit, seconds) in [(10_000, 12), (100_000, 10), (300_000, 8), (1_000_000, 8)] {
        let words = format!("cake bandwidth {kbit}kbit");
        let time = Duration::from_secs(seconds);
        println!("{}", Measured::upload(&mut world, &words, 1514, time));
    }
    throughput(&mut world);
}

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
        "idle RTT µs p50/p99: routed {:?}/{:?}, shaped {:?}/{:?}, added p50 {:?}",
        median(&without),
        p99(&without),
        median(&with),
        p99(&with),
        median(&with).saturating_sub(median(&without))
    );
}

fn throughput(world: &mut World) {
    let words = "cake unlimited";
    world.start(&[&format!("wan0={words}|{words}")]);
    let upload = Transfer::start(world, "c", "s", address("10.77.2.2", 5100), false);
    std::thread::sleep(Duration::from_secs(2));
    let before = entry(world, Direction::Upload);
    let rate = upload.rate(Duration::from_secs(8));
    let after = entry(world, Direction::Upload);
    upload.end();
    world.stop();
    let packets = after.datapath.released - before.datapath.released;
    let cpu = after.datapath.cpu.0 - before.datapath.cpu.0;
    println!(
        "unlimited: goodput {:.0} Mbit/s, {:.2} µs CPU a packet, {:.1} packets a turn, kernel {:?}",
        rate / 1e6,
        cpu as f64 / 1000.0 / packets as f64,
        packets as f64 / (after.datapath.turns - before.datapath.turns) as f64,
        after.kernel
    );
}
