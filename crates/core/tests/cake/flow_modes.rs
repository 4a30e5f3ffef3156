//! Packets that share a queue in each flow mode, and addresses that make one host.

use std::collections::BTreeMap;

use simnel_core::flow::{Addresses, FlowHasher, HashKey};
use simnel_core::packet::Flags;
use simnel_core::Packet;

use crate::driver::{packet, with, Driver};

/// A packet between hosts 1..=9 on a port, hashed as a classifier does.
fn between(src: u8, dst: u8, port: u8) -> Packet {
    let hasher = FlowHasher::new(HashKey::new(1, 2), 128);
    let addresses = Addresses::V4([10, 0, 0, src], [10, 1, 0, dst]);
    let hash = hasher.hash(&addresses, 17, [1, port, 2, port]);
    let mut packet = packet(0, 500);
    (packet.flow, packet.src_host, packet.dst_host) = (hash.flow, hash.src_host, hash.dst_host);
    packet
}

fn queue_of(driver: &mut Driver, packet: Packet) -> u32 {
    driver.put(packet);
    driver.take().expect("a packet waits");
    driver.place().1
}

#[test]
fn each_mode_tells_apart_what_its_name_says() {
    for (mode, by_src, by_dst, by_port) in [
        ("flowblind", false, false, false),
        ("srchost", true, false, false),
        ("dsthost", false, true, false),
        ("hosts", true, true, false),
        ("flows", true, true, true),
        ("dual-srchost", true, true, true),
        ("dual-dsthost", true, true, true),
        ("triple-isolate", true, true, true),
        ("", true, true, true),
    ] {
        let mut driver = Driver::new(&format!("besteffort {mode}"));
        let mut queues = BTreeMap::new();
        for _ in 0..2 {
            for (src, dst, port) in (0..64).map(|n| (1 + n % 4, 1 + n / 4 % 4, n / 16)) {
                let key = (by_src.then_some(src), by_dst.then_some(dst), by_port.then_some(port));
                let queue = queue_of(&mut driver, between(src, dst, port));
                let known = *queues.entry(key).or_insert(queue);
                assert_eq!(queue, known, "{mode}: {src} to {dst}, port {port}");
            }
        }
        // What is told apart lies apart (these few do not collide).
        let mut distinct: Vec<u32> = queues.values().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), queues.len(), "{mode}");
    }
}

#[test]
fn the_tins_have_queues_of_their_own() {
    for mode in ["flowblind", "flows", "triple-isolate"] {
        let mut driver = Driver::new(&format!("{mode} diffserv4"));
        for tos in [0, 8 << 2, 46 << 2] {
            driver.put_all(with(packet(1, 500), |p| p.tos = tos), 3);
        }
        let places: Vec<(u8, u32)> = (0..9)
            .map(|_| {
                driver.take();
                driver.place()
            })
            .collect();
        for tin in [0, 1, 3] {
            assert_eq!(places.iter().filter(|place| place.0 == tin).count(), 3, "{mode}");
        }
        assert!(places.iter().all(|place| place.1 == places[0].1), "{mode}");
    }
}

#[test]
fn eight_flows_fit_a_set_and_more_share_with_the_first() {
    let mut driver = Driver::new("besteffort flows queues 8");
    let flow = |n: u64| with(packet(0, 500), |p| p.flow = n * 8 + 3);
    for n in 1..=8 {
        driver.put(flow(n));
    }
    let tin = driver.tin(0);
    assert_eq!((tin.way_misses, tin.way_indirect_hits, tin.way_collisions), (8, 0, 0));
    // The first is at home; the others were placed beside it and are found there.
    for n in 1..=8 {
        driver.put(flow(n));
    }
    let tin = driver.tin(0);
    assert_eq!((tin.way_direct_hits, tin.way_indirect_hits, tin.way_misses), (1, 7, 8));
    let handle = driver.put(flow(9));
    let tin = driver.tin(0);
    assert_eq!((tin.way_collisions, tin.way_misses), (1, 8));
    let mut place = None;
    while let Some(packet) = driver.take() {
        if packet.handle == handle {
            place = Some(driver.place().1);
        }
    }
    assert_eq!(place, Some(3), "in the first place of its set");
}

#[test]
fn a_queue_is_free_again_once_it_is_idle() {
    let mut driver = Driver::new("besteffort flows queues 8 rtt 1ms");
    for n in 0..200 {
        driver.put(with(packet(0, 500), |p| p.flow = n * 8));
        driver.take();
        // Decay takes an interval; the next packet's turn finds the queue empty.
        driver.wait(simnel_core::Span::from_millis(5));
    }
    assert_eq!(driver.tin(0).way_collisions, 0);
}

/// A packet of an IPv6 host: `net` and `host` are the last octets of either half of its address.
fn from_v6(prefix: u8, net: u8, host: u8, port: u8) -> Packet {
    let mut address = [0x20; 16];
    (address[7], address[15]) = (net, host);
    let hasher = FlowHasher::new(HashKey::new(1, 2), prefix);
    let hash = hasher.hash(&Addresses::V6(address, [9; 16]), 6, [1, port, 2, port]);
    let mut packet = packet(0, 1500);
    (packet.flow, packet.src_host, packet.dst_host) = (hash.flow, hash.src_host, hash.dst_host);
    packet.flags = Flags::IPV6;
    packet
}

#[test]
fn a_prefix_makes_one_host_of_five_addresses() {
    for (prefix, of_ten) in [(64, 5), (128, 8)] {
        let mut driver = Driver::new(&format!("besteffort dual-srchost host-prefix {prefix}"));
        // A phone with five addresses that sends from each, against a computer with one.
        for _ in 0..60 {
            for n in 0..5 {
                driver.put(from_v6(prefix, 1, n, n));
            }
            driver.put(from_v6(prefix, 2, 0, 9));
            driver.put(from_v6(prefix, 2, 0, 9));
        }
        let computer = from_v6(prefix, 2, 0, 9).flow;
        let sent: Vec<Packet> = (0..200).map(|_| driver.take().unwrap()).skip(20).collect();
        let phone = sent.iter().filter(|packet| packet.flow != computer).count();
        let expected = if of_ten == 5 { 90 } else { 150 };
        assert!(phone.abs_diff(expected) <= 6, "{phone} of 180 with prefix {prefix}");
    }
}

/// A queue is told for a flow that has one in use: it may be any of its set of eight.
#[test]
fn the_queue_of_a_packet_is_told_while_it_is_in_use() {
    let mut driver = Driver::new("diffserv4 queues 64");
    let of = |n: u64| with(packet(0, 500), |p| (p.flow, p.tos) = (5 + n * 64, 46 << 2));
    assert_eq!(driver.cake.queue_of(&of(0)), None);
    (0..3).for_each(|n| driver.put_all(of(n), 1));
    // Voice is the fourth tin that is listed.
    let queues = [0, 1, 2, 3].map(|n| driver.cake.queue_of(&of(n)));
    assert_eq!(queues, [Some(3 * 64 + 5), Some(3 * 64 + 6), Some(3 * 64 + 7), None]);
    assert_eq!(driver.cake.queue_of(&with(of(0), |p| p.tos = 0)), None);
    let class = driver.cake.class(3 * 64 + 6).expect("a queue");
    assert_eq!((class.is_used, class.is_sparse, class.backlog.packets), (true, true, 1));
    let mut blind = Driver::new("besteffort flowblind");
    assert_eq!(blind.cake.queue_of(&of(7)), Some(0));
    blind.put(of(7));
    assert_eq!(blind.cake.queue_of(&of(8)), Some(0));
    // Addresses are combined bit by bit.
    let mut hosts = Driver::new("besteffort hosts");
    hosts.put(with(packet(0, 500), |p| (p.src_host, p.dst_host) = (3, 1)));
    hosts.take();
    assert_eq!(hosts.place().1, 2);
}
