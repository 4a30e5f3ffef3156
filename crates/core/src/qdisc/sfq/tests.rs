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
fn what_is_refused_came_now() {
    struct Times(Vec<(u64, Time)>);
    impl PacketOwner for Times {
        fn dropped(&mut self, packet: Packet, _: DropReason) {
            self.0.push((packet.handle, packet.enqueued));
        }
    }
    let (mut qdisc, mut lost) = (sfq("sfq limit 100 depth 2"), Times(Vec::new()));
    (1..5).for_each(|n| qdisc.enqueue(&packet(n, 1, 100), Time(10 * n), &mut lost));
    assert_eq!(lost.0, [(3, Time(30)), (4, Time(40))]);
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
        // One mark a signal; the first packet has only one to take.
        let marks = if headdrop { 1 } else { totals.marked as usize };
        assert_eq!(marked.len(), marks, "{marked:?}");
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
fn who_is_not_to_be_marked_is_dropped() {
    for (words, forced) in [("", true), ("ecn harddrop", true), ("ecn", false)] {
        let words = std::format!("sfq redflowlimit 30000 min 2000 max 4000 burst 4 {words}");
        let mut qdisc = sfq(&words);
        (0..40).for_each(|n| qdisc.enqueue(&ect(n), Time(n), &mut Discard));
        let Stats { forced_drop, forced_mark, .. } = qdisc.stats;
        assert_eq!((forced_drop > 10, forced_mark > 10), (forced, !forced), "{words}");
    }
    // Nor does the place of another make a mark.
    let mut qdisc = sfq("sfq limit 100 depth 2 headdrop");
    (0..9).for_each(|n| qdisc.enqueue(&ect(n), Time(n), &mut Discard));
    while let Some(packet) = qdisc.dequeue(Time(40), &mut Discard) {
        assert_eq!(packet.ecn(), Ecn::Ect0);
    }
}

#[test]
fn a_flow_does_not_inherit_the_average_of_another() {
    let mut qdisc = sfq("sfq redflowlimit 30000 min 2000 max 9000 burst 4 probability 0.5");
    let average = |qdisc: &Sfq| {
        let Some(Early { law, slots, .. }) = &qdisc.early else { panic!() };
        slots.iter().map(|red| red.average(law)).sum::<u64>()
    };
    (0..20).for_each(|n| qdisc.enqueue(&packet(n, 1, 1000), Time(n), &mut Discard));
    assert!(average(&qdisc) > 2000);
    order(&mut qdisc);
    qdisc.enqueue(&packet(30, 2, 1000), Time(200), &mut Discard);
    assert_eq!(average(&qdisc), 0);
}

/// `sfq` under RED, with what words say besides.
fn under_red(words: &str, arithmetic: Arithmetic) -> Sfq {
    let red = "redflowlimit 900kb min 2000 max 90000 burst 4 perturb 10";
    let params = params(&std::format!("sfq depth 100 {red} {words}"));
    Sfq::new(&params, &Device { arithmetic, ..Device::default() }).unwrap()
}

/// RED's average in each slot, and the packets there.
fn averages(qdisc: &Sfq) -> Vec<(u64, u32)> {
    let Some(Early { law, slots, .. }) = &qdisc.early else { panic!() };
    (0..).zip(slots).map(|(n, red)| (red.average(law), qdisc.depths.packets(n))).collect()
}

/// Linux's `sfq_rehash`: RED begins anew where packets were.
#[test]
fn what_is_sorted_anew_has_no_average() {
    let mut qdisc = under_red("flows 4 divisor 65536", Arithmetic::LINUX);
    for n in 0..60 {
        qdisc.enqueue(&packet(n, n % 2, 1000), Time(n), &mut Discard);
    }
    while qdisc.backlog().packets > 1 {
        qdisc.dequeue(Time(100), &mut Discard);
    }
    let average = averages(&qdisc)[3].0;
    assert!(average > 2_000);
    assert_eq!(averages(&qdisc), [(0, 0), (0, 0), (average, 1), (average, 0)]);
    qdisc.perturb(Time::ZERO + Span::from_secs(10), &mut Discard);
    assert_eq!(averages(&qdisc), [(0, 0), (0, 0), (0, 1), (average, 0)]);
}

/// In slots that get packets then, and had none, it goes on in Linux; exactly, it begins anew.
#[test]
fn a_slot_that_is_used_again_has_the_average_of_before_in_linux_alone() {
    for (arithmetic, goes_on) in [(Arithmetic::Exact, false), (Arithmetic::LINUX, true)] {
        let flow = |n: u64| n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Flows that share a bucket until the key changes.
        let sorted = (0..100).find_map(|first| {
            let mut qdisc = under_red("flows 8 divisor 16", arithmetic);
            for n in 0..800 {
                qdisc.enqueue(&packet(n, flow(n % 40), 1000), Time(n), &mut Discard);
            }
            order(&mut qdisc);
            for n in first..first + 3 {
                qdisc.enqueue(&packet(n, flow(n), 1000), Time(1_000), &mut Discard);
            }
            let before = averages(&qdisc);
            qdisc.perturb(Time::ZERO + Span::from_secs(10), &mut Discard);
            let both = before.into_iter().zip(averages(&qdisc));
            let mut new = both.filter(|(before, after)| before.1 == 0 && after.1 > 0);
            new.next().map(|(before, after)| (before.0, after.0))
        });
        let (before, after) = sorted.unwrap();
        assert!(before > 2_000 && (after > 0) == goes_on, "{arithmetic:?} {before} {after}");
    }
}

#[test]
fn the_key_changes_with_the_timer_only() {
    let never = sfq("sfq");
    assert_eq!(never.perturbation, Periodic::never());
    let mut random = Random::new(Device::default().seed);
    assert_eq!(never.key, random.key());
    let mut keys: Vec<[u64; 2]> = (0..66).map(|_| random.key()).collect();
    // The last of 64 keys, however many have been missed.
    for (periods, drawn) in [(1u64, 1), (2, 2), (63, 63), (64, 64), (65, 64), (5_000, 64)] {
        let mut qdisc = sfq("sfq perturb 10");
        assert_eq!(qdisc.key, keys[0]);
        qdisc.enqueue(&packet(0, 0, 100), Time::ZERO + Span::from_secs(10 * periods), &mut Discard);
        assert_eq!(qdisc.key, keys[drawn], "{periods}");
    }
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 66);
    // Settings that leave the period alone leave the rhythm.
    for (words, next) in [("quantum 300 perturb 10", 10), ("perturb 20", 25), ("perturb 0", 0)] {
        let mut qdisc = sfq("sfq perturb 10");
        let config = Config::Sfq(params(&std::format!("sfq {words}")));
        qdisc.configure(&config, Time::ZERO + Span::from_secs(5), &mut Discard).unwrap();
        let next = if next == 0 { Time::MAX } else { Time::ZERO + Span::from_secs(next) };
        assert_eq!(qdisc.perturbation.next(), next, "{words}");
    }
}

#[test]
fn packets_are_sorted_anew_where_that_is_little_work() {
    let due = Time::ZERO + Span::from_secs(10);
    for (flows, limit, packets, is_sorted, is_much) in [
        (128, 384, 100, true, false),
        (128, 385, 100, true, true),
        (1024, 2000, 896, true, true),
        (1024, 2000, 897, false, true),
    ] {
        let words = "sfq divisor 4096 perturb 10";
        let mut qdisc = sfq(&std::format!("{words} flows {flows} limit {limit}"));
        let mut sent = 0;
        // Buckets are shared by chance: what finds no slot comes again as another flow.
        for n in 0.. {
            if qdisc.backlog().packets == packets {
                break;
            }
            sent = n;
            qdisc.enqueue(
                &packet(n, n.wrapping_mul(0x9e37_79b9_7f4a_7c15), 1000),
                Time(0),
                &mut Discard,
            );
        }
        let before = qdisc.buckets.clone();
        assert_eq!(qdisc.perturb(due, &mut Discard), is_much, "{flows} {limit} {sent}");
        assert_eq!(before != qdisc.buckets, is_sorted, "{flows} {limit} {sent}");
    }
}

#[test]
fn after_much_work_debts_are_for_the_next_call() {
    let mut qdisc = sfq("sfq flows 1024 divisor 65536 limit 2000 perturb 10 quantum 1");
    for n in 0..1_800 {
        let flow = (n % 450u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        qdisc.enqueue(&packet(n, flow, 1000), Time(0), &mut Discard);
    }
    // Of each flow one packet, which puts it into debt.
    let flows = qdisc.buckets.iter().filter(|slot| **slot != NO_SLOT).count();
    for _ in 0..flows {
        assert!(qdisc.dequeue(Time(1), &mut Discard).is_some());
    }
    let due = Time::ZERO + Span::from_secs(10);
    assert!(qdisc.dequeue(due, &mut Discard).is_none());
    assert!(qdisc.next_event().is_some_and(|next| next <= due));
    let mut calls = 0;
    while qdisc.dequeue(due, &mut Discard).is_none() {
        calls += 1;
        assert!(calls < 10);
    }
}

#[test]
fn sorted_anew_no_bucket_has_more_than_depth() {
    let mut qdisc = sfq("sfq divisor 4 depth 5 limit 20 perturb 10");
    let mut lost = Lost::default();
    for n in 0..200u64 {
        let flow = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        qdisc.enqueue(&packet(n, flow, 100), Time(0), &mut lost);
    }
    let before = qdisc.backlog().packets;
    assert!(before == 20, "{before}");
    lost.0.clear();
    for round in 1..20 {
        qdisc.perturb(Time::ZERO + Span::from_secs(10 * round), &mut lost);
        let slots: Vec<u32> =
            qdisc.buckets.iter().filter(|slot| **slot != NO_SLOT).copied().collect();
        assert!(slots.iter().all(|slot| qdisc.depths.packets(*slot) <= 5), "{round}");
        assert_eq!(qdisc.backlog().packets + lost.0.len() as u32, before);
    }
    assert!((1..20).contains(&lost.0.len()), "{:?}", lost.0);
}

/// The first flow has got the last slot.
#[test]
fn few_slots_are_emptied_one_by_one_and_many_in_the_order_of_their_turns() {
    for (flows, order) in [(1024, [2, 5, 1, 4, 3, 6]), (1025, [3, 6, 1, 4, 2, 5])] {
        let mut qdisc =
            sfq(&std::format!("sfq flows {flows} divisor 65536 limit 5000 quantum 1000"));
        for n in 0..7 {
            qdisc.enqueue(&packet(n, (n % 3) << 40, 1000), Time(0), &mut Discard);
        }
        assert_eq!(qdisc.dequeue(Time(0), &mut Discard).map(|packet| packet.handle), Some(0));
        let mut all = qdisc.drain();
        let next = || qdisc.store.take(&mut all).map(|packet| packet.handle);
        assert_eq!(core::iter::from_fn(next).collect::<Vec<_>>(), order, "{flows}");
    }
}

#[test]
fn buckets_and_slots_are_as_many_as_the_settings_say() {
    for (words, buckets, slots) in [
        ("sfq divisor 64 flows 16 limit 100 quantum 900", 64, 16),
        ("sfq divisor 1024 flows 16 limit 100", 1024, 16),
        ("sfq divisor 64 flows 50 limit 100", 64, 50),
        ("sfq divisor 16 flows 8 limit 100", 16, 8),
    ] {
        let mut qdisc = sfq("sfq divisor 64 flows 16 limit 100");
        (0..20).for_each(|n| qdisc.enqueue(&packet(n, (n % 4) << 40, 100), Time(n), &mut Discard));
        let config = Config::Sfq(params(words));
        qdisc.configure(&config, Time(1000), &mut Discard).unwrap();
        assert_eq!((qdisc.buckets.len(), qdisc.slots.len()), (buckets, slots), "{words}");
        assert_eq!(order(&mut qdisc).len(), 20, "{words}");
    }
    // What is lent to whoever stands above counts for the limit.
    for (lent, left) in [(0, 20), (1, 19), (5, 15)] {
        let mut qdisc = sfq("sfq limit 100");
        (0..30).for_each(|n| qdisc.enqueue(&packet(n, (n % 4) << 40, 100), Time(n), &mut Discard));
        qdisc.lend(Backlog { packets: lent, bytes: 100 * u64::from(lent) }, Time(50));
        let config = Config::Sfq(params("sfq limit 20"));
        qdisc.configure(&config, Time(1000), &mut Discard).unwrap();
        assert_eq!(qdisc.backlog().packets, left, "{lent}");
    }
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

#[test]
fn buckets_are_shown_as_queues() {
    let mut qdisc = sfq("sfq divisor 16 quantum 2000");
    fill(&mut qdisc, &[7, 7]);
    qdisc.dequeue(Time(9), &mut Lost::default()).unwrap();
    let used: Vec<Class> = (0..16).filter_map(|n| qdisc.class(n)).filter(|c| c.is_used).collect();
    let backlog = Backlog { packets: 1, bytes: 1514 };
    assert_eq!(used, [Class { backlog, is_used: true, deficit: 486, ..Class::default() }]);
    assert_eq!(qdisc.class(16), None);
}
