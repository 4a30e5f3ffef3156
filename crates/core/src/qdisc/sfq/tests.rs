//! `sfq` beyond its parts: slots, victims of overflow, perturbation, RED's signals.

use super::*;
use crate::packet::{Ecn, Flags};
use crate::qdisc::{self, Discard};
use std::vec::Vec;

fn params(words: &str) -> Params {
    match qdisc::parse(words) {
        Ok(Config::Sfq(params)) => params,
        other => panic!("{words}: {other:?}"),
    }
}

fn sfq(words: &str) -> Sfq {
    Sfq::new(&params(words), &Device::default()).unwrap()
}

fn packet(handle: u64, flow: u64, len: u32) -> Packet {
    let mut packet = Packet::new(handle, len);
    packet.flow = flow;
    packet
}

#[derive(Default)]
struct Lost(Vec<u64>);
impl PacketOwner for Lost {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        self.0.push(packet.handle);
    }
}

fn fill(qdisc: &mut Sfq, flows: &[u64]) -> Vec<u64> {
    let mut lost = Lost::default();
    for (handle, flow) in (0..).zip(flows) {
        qdisc.enqueue(&packet(handle, *flow, 1514), Time(handle), &mut lost);
    }
    lost.0
}

fn order(qdisc: &mut Sfq) -> Vec<u64> {
    let next = || qdisc.dequeue(Time(100), &mut Discard).map(|packet| packet.handle);
    core::iter::from_fn(next).collect()
}

#[test]
fn overflow_costs_the_longest_flow_its_last_packet_or_its_first() {
    // Flows 1 and 2 have two packets each, flow 2 since later.
    let mut tail = sfq("sfq limit 4 divisor 65536");
    assert_eq!(fill(&mut tail, &[1, 1, 2, 2, 3]), [3]);
    assert_eq!(order(&mut tail), [0, 2, 4, 1]);
    let mut head = sfq("sfq limit 4 divisor 65536 headdrop");
    assert_eq!(fill(&mut head, &[1, 1, 2, 2, 3]), [2]);
    assert_eq!(order(&mut head), [0, 3, 4, 1]);
}

#[test]
fn of_single_packets_the_next_one_is_lost() {
    let mut qdisc = sfq("sfq limit 3 flows 10 divisor 65536");
    // Three slots are all that the limit leaves: the fourth flow finds none.
    assert_eq!(qdisc.limits.flows, 3);
    assert_eq!(fill(&mut qdisc, &[1, 2, 3, 4]), [3]);
    // With slots to spare, all single: flow 1 was next.
    let mut qdisc = sfq("sfq limit 4 flows 10 divisor 65536");
    fill(&mut qdisc, &[1, 2, 3]);
    qdisc.limits.limit = 2;
    let mut lost = Lost::default();
    qdisc.enqueue(&packet(9, 4, 100), Time(9), &mut lost);
    assert_eq!(lost.0, [0]);
}

#[test]
fn no_flow_has_more_than_depth() {
    let mut qdisc = sfq("sfq limit 100 depth 2 divisor 65536");
    assert_eq!(fill(&mut qdisc, &[1, 1, 1, 2, 1]), [2, 4]);
    let mut qdisc = sfq("sfq limit 100 depth 2 divisor 65536 headdrop");
    assert_eq!(fill(&mut qdisc, &[1, 1, 1, 2, 1]), [0, 1]);
    assert_eq!(order(&mut qdisc), [2, 3, 4]);
}

#[test]
fn settings_bound_each_other() {
    for (words, limit, flows) in [
        ("sfq", 127, 128),
        ("sfq limit 10000", 10_000, 128),
        ("sfq limit 10000000", 127 * 128, 128),
        ("sfq limit 10000 depth 10", 1280, 128),
        ("sfq limit 3000 flows 512 divisor 16 depth 30", 480, 16),
        ("sfq limit 40 flows 70000", 40, 40),
        ("sfq divisor 2", 127, 2),
    ] {
        let effective = params(words).effective();
        assert_eq!((effective.limit, effective.flows), (limit, flows), "{words}");
    }
    for words in ["sfq limit 1", "sfq limit 9 depth 1 flows 1", "sfq divisor 3", "sfq ewma 9"] {
        assert!(qdisc::parse(words).is_err(), "{words}");
    }
    let odd = Params { limit: Some(1), ..Params::default() };
    assert!(Sfq::new(&odd, &Device::default()).is_err());
}

#[test]
fn a_perturbation_sorts_anew_and_loses_nothing() {
    let mut qdisc = sfq("sfq limit 1000 perturb 10 divisor 16");
    let key = qdisc.key;
    // Thirty flows in sixteen buckets; no bucket can be too long.
    let flows: Vec<u64> = (0..90).map(|n| (n % 30) * 0x1234_5678_9abc).collect();
    assert!(fill(&mut qdisc, &flows).is_empty());
    let before: Vec<u32> = qdisc.buckets.to_vec();
    assert_eq!(qdisc.dequeue(Time(9_999_999_999), &mut Discard).unwrap().handle % 30, 0);
    assert_eq!(qdisc.key, key);
    let mut sent = Vec::from([0]);
    let mut now = Time(10_000_000_000);
    while let Some(packet) = qdisc.dequeue(now, &mut Discard) {
        sent.push(packet.handle);
        now = Time(now.0 + 1);
    }
    assert!(qdisc.key != key && before != *qdisc.buckets);
    assert_eq!((sent.len(), qdisc.backlog().packets), (90, 0));
    let mut last = [0; 30];
    for handle in sent {
        let flow = handle as usize % 30;
        assert!(handle as usize == flow || handle > last[flow], "flow {flow} was reordered");
        last[flow] = handle;
    }
    // Idle for ten periods: as many keys are passed by.
    let key = qdisc.key;
    qdisc.enqueue(&packet(0, 0, 100), Time(120_000_000_000), &mut Discard);
    assert_ne!(qdisc.key, key);
}

#[test]
fn a_bucket_without_packets_has_no_slot() {
    let mut qdisc = sfq("sfq divisor 1 limit 50");
    fill(&mut qdisc, &[1, 2, 3]);
    assert_eq!(qdisc.buckets.iter().filter(|slot| **slot != NO_SLOT).count(), 1);
    assert_eq!(order(&mut qdisc), [0, 1, 2]);
    assert_eq!(qdisc.buckets[0], NO_SLOT);
}

fn ect(handle: u64) -> Packet {
    let mut packet = packet(handle, 1, 1000);
    (packet.flags, packet.tos) = (Flags::IPV4, 2);
    packet
}

#[test]
fn red_marks_the_first_packet_under_headdrop_and_else_the_newcomer() {
    for headdrop in [false, true] {
        let word = if headdrop { "headdrop" } else { "limit 127" };
        let mut qdisc =
            sfq(&std::format!("sfq redflowlimit 30000 min 2000 max 4000 ecn burst 4 {word}"));
        for n in 0..30 {
            qdisc.enqueue(&ect(n), Time(n), &mut Discard);
        }
        let stats = qdisc.stats;
        let (at_head, at_tail) = (stats.forced_mark_head, stats.forced_mark);
        assert_eq!((at_head > 10, at_tail > 10), (headdrop, !headdrop), "{stats:?}");
        let totals = qdisc.snapshot().totals;
        assert_eq!((totals.drops(), totals.marked), (0, totals.overlimits));
        let marked: Vec<u64> =
            core::iter::from_fn(|| qdisc.dequeue(Time(40), &mut Discard).copied())
                .filter(|packet| packet.ecn() == Ecn::Ce)
                .map(|packet| packet.handle)
                .collect();
        assert_eq!(marked.first() == Some(&0), headdrop, "{marked:?}");
    }
    // Who cannot be marked is dropped, or costs the first packet.
    let mut qdisc = sfq("sfq redflowlimit 30000 min 2000 max 4000 ecn burst 4");
    let mut lost = Lost::default();
    for n in 0..30 {
        qdisc.enqueue(&packet(n, 1, 1000), Time(n), &mut lost);
    }
    assert!(lost.0.len() > 10 && lost.0[0] > 4, "{:?}", lost.0);
    assert_eq!(qdisc.stats.forced_drop + qdisc.stats.prob_drop, lost.0.len() as u32);
}

#[test]
fn settings_change_without_loss() {
    let mut qdisc = sfq("sfq limit 500 divisor 1024");
    let flows: Vec<u64> = (0..200).map(|n| n % 20 * 0x9e37_79b9_7f4a).collect();
    fill(&mut qdisc, &flows);
    for (words, left) in [
        ("sfq limit 400 divisor 64 flows 64", 200),
        ("sfq limit 400 perturb 5 quantum 300", 200),
        ("sfq limit 50 headdrop redflowlimit 30000", 50),
        ("sfq limit 500 depth 127", 50),
    ] {
        let config = Config::Sfq(params(words));
        qdisc.configure(&config, Time(1000), &mut Discard).unwrap();
        assert_eq!((qdisc.backlog().packets, qdisc.config()), (left, config), "{words}");
    }
    assert_eq!(order(&mut qdisc).len(), 50);
}

#[test]
fn a_new_key_costs_a_call_little_however_much_is_queued() {
    for (limit, flows, divisor) in [(127, 128, 1024), (896, 1024, 1024), (20_000, 65_408, 65_536)] {
        let words =
            std::format!("sfq limit {limit} flows {flows} divisor {divisor} perturb 1 quantum 1");
        let mut qdisc = sfq(&words);
        let mut most = 0;
        // Now and then nobody calls for an hour.
        for round in 0..6u64 {
            for n in 0..limit {
                let now = Time::ZERO + Span::from_secs(round * 3_600 + n / 100);
                qdisc.enqueue(&packet(n, n * 0x9e37_79b9_7f4a, 1000), now, &mut Discard);
                most = most.max(crate::steps::take());
            }
            for n in 0..limit / 2 {
                let now = Time::ZERO + Span::from_secs(round * 3_600 + 1_800 + n);
                qdisc.dequeue(now, &mut Discard);
                most = most.max(crate::steps::take());
            }
        }
        assert!(most <= crate::steps::MOST, "{words}: {most} steps");
    }
}

#[test]
fn a_class_names_a_bucket_whatever_the_flow() {
    let mut qdisc = sfq("sfq limit 100 depth 2 divisor 1024");
    let mut lost = Lost::default();
    // Six flows. Three of a bucket's class; another discipline's, one beyond the buckets, none.
    let classes = [0x8001_0007, 0x8001_0007, 0x8001_0007, 0x8002_0007, 0x8001_0401, 0x8001_0000];
    for (handle, class) in (0..).zip(classes) {
        let packet = Packet { class, ..packet(handle, handle << 40, 100) };
        qdisc.enqueue(&packet, Time(handle), &mut lost);
    }
    assert_eq!(lost.0, [2]);
    let slot = qdisc.buckets[6];
    assert_eq!(qdisc.depths.packets(slot), 2);
}
