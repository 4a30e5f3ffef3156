//! Shares of hosts and of flows while all of them have packets waiting.

use simnel_core::{Packet, Span};

use crate::driver::{packet, with, Driver};

/// A flow of full packets between two hosts.
fn flow(number: u32, hosts: (u32, u32)) -> Packet {
    let mut packet = packet(number, 1514);
    (packet.src_host, packet.dst_host) = hosts;
    packet
}

/// Packets of `bulk` keep waiting, one of each of `sparse` comes every `period` packets; the bytes
/// that each flow of `bulk` gets of `rounds` packets.
fn shares(words: &str, bulk: &[Packet], sparse: &[Packet], period: u32, rounds: u32) -> Vec<u64> {
    let mut driver = Driver::new(words);
    for flow in bulk {
        driver.put_all(*flow, 2);
    }
    let index = |packet: &Packet| bulk.iter().position(|flow| flow.flow == packet.flow);
    let mut bytes = vec![0; bulk.len()];
    // At first everybody is new.
    let warm_up = 20 * (bulk.len() + sparse.len()) as u32;
    for round in 0..warm_up + rounds {
        if !sparse.is_empty() && round % period == 0 {
            for flow in sparse {
                driver.put(*flow);
            }
        }
        let packet = driver.take().expect("packets wait");
        if let Some(index) = index(&packet) {
            bytes[index] += if round < warm_up { 0 } else { u64::from(packet.len) };
            driver.put(bulk[index]);
        }
        if driver.cake.next_event().is_some_and(|next| next <= driver.now) {
            driver.wait(Span(12_112));
        }
    }
    bytes
}

#[track_caller]
fn assert_share(part: u64, all: u64, per_mille: u64, tolerance: u64) {
    let share = part * 1_000 / all;
    assert!(share.abs_diff(per_mille) <= tolerance, "{share} of 1000 instead of {per_mille}");
}

/// One flow against many of one host; the host with one flow's share in 1/1000.
fn one_against_many(words: &str, many: u32, sources: bool, expected: u64, tolerance: u64) {
    let hosts = |host: u32, peer: u32| if sources { (host, peer) } else { (peer, host) };
    let mut bulk = vec![flow(0, hosts(5_001, 1))];
    bulk.extend((1..=many).map(|n| flow(n, hosts(6_002, n + 1))));
    let bytes = shares(words, &bulk, &[], 1, 300 * many.max(20));
    assert_share(bytes[0], bytes.iter().sum(), expected, tolerance);
    // And the flows of one host are equal among each other.
    let (least, most) = (bytes[1..].iter().min().unwrap(), bytes[1..].iter().max().unwrap());
    assert!(most - least <= most / 6, "{words}: {least} to {most}");
}

#[test]
fn a_host_is_a_host_however_many_flows_it_has() {
    for many in [1, 3, 8, 40] {
        for shaper in ["", "bandwidth 100mbit", "bandwidth 2mbit"] {
            let words = |mode| format!("besteffort {shaper} {mode}");
            let alone = 1_000 / (1 + u64::from(many));
            for mode in ["triple-isolate", "dual-srchost"] {
                one_against_many(&words(mode), many, true, 500, 25);
            }
            for mode in ["triple-isolate", "dual-dsthost"] {
                one_against_many(&words(mode), many, false, 500, 25);
            }
            one_against_many(&words("flows"), many, true, alone, 5);
            // The other end does not count.
            one_against_many(&words("dual-dsthost"), many, true, alone, 5);
            one_against_many(&words("dual-srchost"), many, false, alone, 5);
        }
    }
}

#[test]
fn a_quantum_of_less_than_a_byte_is_still_paid_on_average() {
    // 300 bytes among 700 flows: cut to whole bytes, nobody of them would ever send.
    let mut bulk = vec![flow(0, (5_001, 1))];
    bulk.extend((1..=700).map(|n| {
        // 700 flows over all of the 1024 queues.
        let number = u64::from(n) * 1_021 % 1_024 + 2_048;
        with(flow(n, (6_002, n + 1)), |p| p.flow = number)
    }));
    let bytes = shares("besteffort bandwidth 1mbit dual-srchost", &bulk, &[], 1, 24_000);
    assert_share(bytes[0], bytes.iter().sum(), 500, 60);
    assert!(bytes[1..].iter().filter(|bytes| **bytes > 0).count() > 600);
}

#[test]
fn triple_isolation_takes_the_busier_end() {
    // Source 1 sends to 2 and 3; source 4 to 3 as well. Loads: 1 has two flows, destination 3 two.
    let bulk = [flow(0, (11, 12)), flow(1, (11, 13)), flow(2, (14, 13)), flow(3, (15, 16))];
    let bytes = shares("besteffort triple-isolate", &bulk, &[], 1, 20_000);
    let all = bytes.iter().sum();
    for (index, expected) in [200, 200, 200, 400].into_iter().enumerate() {
        assert_share(bytes[index], all, expected, 10);
    }
}

#[test]
fn only_bulk_flows_are_a_hosts_load_unless_told_otherwise() {
    // Two hosts with one bulk flow each; the first has twenty more beside it,
    // which send a packet now and then.
    let bulk = [flow(0, (5_001, 1)), flow(1, (6_002, 2))];
    let sparse: Vec<Packet> =
        (2..22).map(|n| with(flow(n, (5_001, n + 1)), |p| p.len = 1600)).collect();
    let run = |words: &str| {
        let bytes = shares(words, &bulk, &sparse, 50, 20_000);
        bytes[0] * 1_000 / bytes.iter().sum::<u64>()
    };
    let shaped = "besteffort bandwidth 100mbit dual-srchost";
    let share = run(&format!("{shaped} host-load bulk"));
    assert!(share.abs_diff(500) <= 10, "{share}");
    assert_eq!(share, run(shaped), "the default");
    // With every active flow as load, the small ones take from the large one of their host.
    let share = run(&format!("{shaped} host-load active"));
    assert!(share < 450, "{share}");
}

#[test]
fn bytes_are_shared_as_they_are_on_the_line() {
    // Small packets on ATM cost more than they carry: two cells for 60 bytes at 40 of overhead.
    let small = with(flow(0, (11, 12)), |p| p.len = 60);
    let large = flow(1, (13, 14));
    let bytes =
        shares("besteffort pppoe-llcsnap bandwidth 10mbit", &[small, large], &[], 1, 40_000);
    // 60 carried on 106; 1514 on 33 cells.
    let line = [bytes[0] * 106 / 60, bytes[1] * 33 * 53 / 1514];
    assert_share(line[0], line[0] + line[1], 500, 10);
}

/// The ninth flow of a set of eight queues shares a queue, and the queue is its host's from then
/// on.
#[test]
fn a_queue_that_is_shared_belongs_to_the_host_that_came_last() {
    for words in ["", "savings 0"] {
        let mut driver = Driver::new(&format!("besteffort bandwidth 100mbit dual-srchost {words}"));
        let of = |flow: u64, host| {
            with(packet(0, 1514), |packet| {
                (packet.flow, packet.src_host, packet.dst_host) = (flow, host, 7);
            })
        };
        // All in the first set, of one host; then a flow of another one.
        let crowd: Vec<Packet> = (0..8).map(|n| of(n, 6_001)).collect();
        for packet in &crowd {
            driver.put_all(*packet, 3);
        }
        let late = of(1_024, 5_002);
        driver.put_all(late, 3);
        assert_eq!(driver.tin(0).way_collisions, 1);
        let mut bytes = std::collections::BTreeMap::new();
        for round in 0..6_000 {
            let packet = driver.take().expect("packets wait");
            *bytes.entry(driver.place().1).or_insert(0u64) += if round < 600 { 0 } else { 1 };
            // The flow whose queue was taken would come as the tenth, and take it back.
            if packet.flow != crowd[0].flow {
                driver.put(packet);
            }
        }
        // Seven queues of the crowd's host, one of the other's: half of the line.
        let (all, most) = (bytes.values().sum(), bytes.values().max().expect("queues"));
        assert_eq!(bytes.len(), 8);
        assert_share(*most, all, 500, 25);
    }
}

#[test]
fn a_flow_that_goes_and_comes_again_is_a_load_while_it_is_there() {
    for mode in ["dual-srchost", "dual-dsthost", "triple-isolate"] {
        for load in ["bulk", "active"] {
            let words = format!("besteffort bandwidth 100mbit {mode} host-load {load}");
            let mut driver = Driver::new(&words);
            // Their one peer counts where both ends do only.
            let hosts = |host, peer| match mode {
                "dual-dsthost" => (9, host),
                "dual-srchost" => (host, 9),
                _ => (host, peer),
            };
            let flows = [
                flow(0, hosts(5_001, 1)),
                flow(1, hosts(6_002, 2)),
                flow(2, hosts(6_002, 3)),
                flow(3, hosts(6_002, 4)),
            ];
            for shares in [
                [500, 167, 167, 167],
                [500, 250, 250, 0],
                [500, 500, 0, 0],
                [500, 167, 167, 167],
                [0, 500, 500, 0],
                [500, 0, 0, 500],
            ] {
                let stands = |index: usize| shares[index] > 0;
                (0..4).filter(|index| stands(*index)).for_each(|n| driver.put_all(flows[n], 3));
                let mut bytes = [0; 4];
                // Those that have gone send their last packets first.
                for round in 0..1_060 {
                    let packet = driver.take().expect("packets wait");
                    let index = flows.iter().position(|f| f.flow == packet.flow).expect("known");
                    bytes[index] += if round < 60 { 0 } else { u64::from(packet.len) };
                    if stands(index) {
                        driver.put(flows[index]);
                    }
                }
                for (part, share) in bytes.iter().zip(shares) {
                    assert_share(*part, bytes.iter().sum(), share, 12);
                }
                // Enough of each: the next begin with as many.
                while driver.cake.backlog().packets > 0 {
                    driver.take();
                }
            }
        }
    }
}
