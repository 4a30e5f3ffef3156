//! Changes by others to the machine while an interface is served.

use std::time::{Duration, Instant};

use simnel_gateway::control::Entry;

use crate::transfer::round_trips;
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
