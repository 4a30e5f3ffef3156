//! One host's many flows against everybody: what is left for the others.
//!
//! An attacker sends 1,400-byte packets at ten times the line, spread over many flows. Half of the
//! flows come in bursts and are idle between them. Another host has a call (50 packets a second at
//! 10 Mbit/s), and one a bulk flow that offers six tenths of the line.

use simnel_core::random::Random;
use simnel_core::{Packet, Span};

use crate::driver::{packet, Driver};

const CALL: u32 = 1;
const BULK: u32 = 2;
const ATTACK: u32 = 100;

/// Fate of the others' packets.
#[derive(Debug)]
struct Outcome {
    /// Packets of the call lost, of 10,000.
    call_lost: u64,
    /// Delay of its packets at the 99th percentile.
    call_delay: Span,
    /// The bulk flow's share of what was sent, in 1/1000.
    bulk_share: u64,
}

/// Source and destination of the attacker's packets.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aim {
    /// To the host that the others send to.
    Same,
    /// To as many hosts as there are flows.
    Many,
    /// From the host that sends to the others, to one of its own: a download.
    Download,
}

/// A flow's packet; flows spread over all queues.
fn of(number: u32, len: u32, hosts: (u32, u32)) -> Packet {
    let mut packet = packet(0, len);
    packet.flow = u64::from(number.wrapping_mul(0x9e37_79b9).rotate_left(15) | 1);
    (packet.src_host, packet.dst_host) = hosts;
    packet
}

fn attack(words: &str, megabits: u64, flows: u32, aim: Aim) -> Outcome {
    let mut driver = Driver::new(&format!("bandwidth {megabits}mbit besteffort {words}"));
    let mut random = Random::new(u64::from(flows) + megabits);
    let bit = |len: u64, rate: u64| Span(len * 8 * 1_000 / rate);
    let hosts = |host: u32, flow: u32| match aim {
        Aim::Same => (host * 7919, 77),
        Aim::Many if flow >= ATTACK => (host * 7919, flow * 31 + 5),
        Aim::Many => (host * 7919, 77),
        Aim::Download => (77, host * 7919),
    };
    let start = driver.now;
    let end = start + Span::from_millis(100_000 / megabits);
    // The next packet of each: the attack, the call, the bulk flow.
    let mut next = [
        start,
        start + Span::from_millis(2_000 / megabits),
        start + Span::from_millis(2_000 / megabits),
    ];
    let every =
        [bit(1400, 10 * megabits), Span(200_000_000 / megabits), bit(1400, megabits * 6 / 10)];
    let (mut sent, mut call_sent, mut delays, mut bulk) = (0u64, 0u64, Vec::new(), 0u64);
    let mut turn = 0;
    loop {
        let which = (0..3).min_by_key(|&which| next[which]).unwrap();
        let arrival = next[which];
        if arrival >= end {
            break;
        }
        while let Some(due) = driver.cake.next_event().filter(|&due| due <= arrival) {
            driver.now = driver.now.max(due);
            let now = driver.now;
            let Some(packet) = driver.take_now() else { continue };
            sent += u64::from(packet.len);
            match packet.class {
                CALL => delays.push(now.since(packet.enqueued)),
                BULK => bulk += u64::from(packet.len),
                _ => {}
            }
        }
        driver.now = driver.now.max(arrival);
        next[which] += every[which];
        let mut packet = match which {
            0 => {
                // Half of the flows take turns; the others send eight packets and rest.
                turn += 1;
                let flow = if turn % 2 == 0 {
                    turn / 2 % flows.div_ceil(2)
                } else {
                    flows / 2 + (turn / 16) % flows.div_ceil(2)
                };
                of(ATTACK + flow, 1400, hosts(3, ATTACK + flow))
            }
            1 => {
                call_sent += 1;
                of(CALL, 214, hosts(1, CALL))
            }
            _ => of(BULK, 1400, hosts(2, BULK)),
        };
        packet.class = [0, CALL, BULK][which];
        next[which] += Span(random.below(100).into());
        driver.put(packet);
    }
    delays.sort_unstable();
    let lost = driver.owner.dropped.iter().filter(|(packet, _)| packet.class == CALL).count();
    Outcome {
        call_lost: lost as u64 * 10_000 / call_sent,
        call_delay: delays[delays.len() * 99 / 100],
        bulk_share: bulk * 1_000 / sent,
    }
}

#[test]
fn a_guarded_host_keeps_its_share_whatever_another_sends() {
    let upload = [("host-guard", Aim::Same), ("host-guard src", Aim::Many)];
    let download = [("host-guard", Aim::Download), ("dual-dsthost host-guard", Aim::Download)];
    for (megabits, flows) in [(10, 10), (10, 1_000), (10, 30_000), (100, 100), (100, 5_000)] {
        for (words, aim) in upload.into_iter().chain(download) {
            let outcome = attack(words, megabits, flows, aim);
            println!("{megabits:>4} Mbit/s {flows:>6} flows {words:<26} {aim:?}: {outcome:?}");
            assert!(outcome.call_lost <= 50, "{outcome:?}");
            assert!(outcome.call_delay <= Span::from_millis(20), "{outcome:?}");
            assert!(outcome.bulk_share >= 450, "{outcome:?}");
        }
    }
}

#[test]
fn without_the_guard_the_attack_succeeds() {
    // As in Linux's cake (conformance/attacks.json).
    for words in ["", "no-host-guard"] {
        let outcome = attack(words, 10, 1_000, Aim::Same);
        assert!(outcome.call_lost > 500, "{outcome:?}");
        assert!(outcome.call_delay > Span::from_millis(100), "{outcome:?}");
        assert!(outcome.bulk_share < 200, "{outcome:?}");
    }
}
