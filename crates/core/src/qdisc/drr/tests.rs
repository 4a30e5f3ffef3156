//! Both forms of `drr`: shares by weight, what overflow and age cost, settings that change.

use super::*;
use crate::qdisc::{self, Discard, DropReason};
use std::format;
use std::string::ToString;

fn drr(words: &str) -> Drr {
    match qdisc::parse(words) {
        Ok(Config::Drr(params)) => Drr::new(&params, &Device::default()).unwrap(),
        other => panic!("{words}: {other:?}"),
    }
}

/// A packet of host `host`, whose flow is `handle`.
fn of_host(handle: u64, host: u32, len: u32) -> Packet {
    let mut packet = Packet::new(handle, len);
    (packet.flow, packet.src_host) = (handle * 77, host);
    packet
}

fn of_class(handle: u64, class: u32, len: u32) -> Packet {
    let mut packet = Packet::new(handle, len);
    packet.class = class;
    packet
}

#[derive(Default)]
struct Lost(Vec<(u64, DropReason)>);
impl PacketOwner for Lost {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        self.0.push((packet.handle, reason));
    }
}

fn next(qdisc: &mut Drr, now: Time) -> Option<u64> {
    qdisc.dequeue(now, &mut Discard).map(|packet| packet.handle)
}

#[test]
fn classes_share_by_quantum_and_weight() {
    let mut qdisc = drr("drr quantum 600 class 1:10 class 1:20 weight 3 class 1:30 quantum 1200");
    for n in 0..900 {
        for class in 1..4u64 {
            qdisc.enqueue(&of_class(class, (class as u32) << 4, 1000), Time(n), &mut Discard);
        }
    }
    let mut sent = [0u32; 4];
    (0..1200).for_each(|_| sent[next(&mut qdisc, Time(0)).unwrap() as usize] += 1);
    for (class, share) in [(1, 200), (2, 600), (3, 400)] {
        assert!(sent[class].abs_diff(share) <= 3, "{sent:?}");
    }
}

#[test]
fn what_belongs_to_no_class_is_dropped() {
    let (mut qdisc, mut lost) = (drr("drr class 8001:10 pfifo limit 1"), Lost::default());
    for (handle, class) in [(0, 0), (1, 0x1_0011), (2, 0x1_0010), (3, 0x8001_0010)] {
        qdisc.enqueue(&of_class(handle, class, 100), Time(0), &mut lost);
    }
    let (unclassified, overlimit) = (DropReason::Unclassified, DropReason::Overlimit);
    assert_eq!(lost.0, [(0, unclassified), (1, unclassified), (3, overlimit)]);
    assert_eq!(next(&mut qdisc, Time(1)), Some(2));
    assert_eq!(qdisc.snapshot().totals.drops(), 3);
    let (id, child) = qdisc.below(0).unwrap();
    assert_eq!((id, child.config().to_string().as_str()), (0x8001_0010, "pfifo limit 1p"));
    assert!(qdisc.below(1).is_none());
}

#[test]
fn a_class_that_shapes_is_passed_over_and_asked_again() {
    for savings in ["", "savings 5kb"] {
        let words =
            format!("drr {savings} class 1:1 tbf rate 8mbit burst 1kb limit 100kb class 1:2");
        let mut qdisc = drr(&words);
        for n in 0..4 {
            qdisc.enqueue(&of_class(n, 1, 1000), Time(0), &mut Discard);
        }
        qdisc.enqueue(&of_class(9, 2, 1000), Time(0), &mut Discard);
        let first = [next(&mut qdisc, Time(0)), next(&mut qdisc, Time(0))];
        assert!(first.contains(&Some(0)) && first.contains(&Some(9)), "{savings}: {first:?}");
        assert_eq!(next(&mut qdisc, Time(0)), None);
        let mut now = Time(0);
        for n in 1..4 {
            let due = qdisc.next_event().unwrap();
            assert!(due > now && due.since(now).0 <= 1_000_000, "{savings}: {due:?}");
            now = due;
            assert_eq!(next(&mut qdisc, now), Some(n), "{savings}");
        }
        assert_eq!(qdisc.next_event(), None);
    }
}

#[test]
fn what_a_class_was_asked_for_counts_against_its_limit_until_it_is_sent() {
    for child in
        ["fq_codel limit 3", "fq_pie limit 3", "codel limit 3", "pie limit 3", "sfq limit 3"]
    {
        let words = format!("drr class 1:1 quantum 100 {child} class 1:2 quantum 2000 pfifo");
        let (mut qdisc, mut lost) = (drr(&words), Lost::default());
        for handle in 0..6 {
            qdisc.enqueue(&of_class(handle, 1 + (handle as u32 & 1), 1500), Time(0), &mut lost);
        }
        // The first class is looked at, and cannot pay.
        assert_eq!(next(&mut qdisc, Time(1)), Some(1), "{child}");
        qdisc.enqueue(&of_class(6, 1, 1500), Time(2), &mut lost);
        assert!(!lost.0.is_empty(), "{child}");
        // With its last packet sent, all of the limit is there again.
        while next(&mut qdisc, Time(3)).is_some() {}
        lost.0.clear();
        for handle in 0..3 {
            qdisc.enqueue(&of_class(handle, 1, 1500), Time(4), &mut lost);
        }
        assert_eq!(lost.0, [], "{child}");
    }
}

#[test]
fn under_savings_a_class_that_shapes_holds_no_other_up() {
    let words = "drr savings 3kb class 1:a codel class 1:b tbf rate 1mbit burst 2kb limit 100kb";
    let mut qdisc = drr(words);
    for handle in 0..20 {
        qdisc.enqueue(&of_class(handle, 0xa + (handle as u32 & 1), 1500), Time(0), &mut Discard);
    }
    let (mut now, mut calls, mut sent) = (Time(0), 0, Vec::new());
    while let Some(event) = qdisc.next_event() {
        now = now.max(event);
        calls += 1;
        assert!(calls < 100, "asked in vain: {sent:?}");
        sent.extend(next(&mut qdisc, now));
    }
    assert_eq!(sent.len(), 20);
    // All of the first class, and of the second what its burst allows, leave at once.
    let mut first: Vec<u64> = sent[..11].to_vec();
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
}

#[test]
fn a_full_buffer_costs_the_longest_queue_its_oldest_packet() {
    let (mut qdisc, mut lost) = (drr("drr srchost buffer 5"), Lost::default());
    for n in 0..4 {
        qdisc.enqueue(&of_host(n, 1, 1000), Time(n), &mut lost);
    }
    qdisc.enqueue(&of_host(4, 2, 1000), Time(4), &mut lost);
    assert!(lost.0.is_empty());
    qdisc.enqueue(&of_host(5, 2, 1000), Time(5), &mut lost);
    qdisc.enqueue(&of_host(6, 3, 1000), Time(6), &mut lost);
    assert_eq!(lost.0, [(0, DropReason::Overlimit), (1, DropReason::Overlimit)]);
    // The rest in turn, 1514 bytes at a time.
    let order: Vec<_> = (0..5).map(|_| next(&mut qdisc, Time(7)).unwrap()).collect();
    assert_eq!(order, [2, 4, 6, 3, 5]);
}

#[test]
fn old_packets_are_dropped_when_their_turn_comes() {
    let (mut qdisc, mut lost) = (drr("drr srchost max-age 24us"), Lost::default());
    for n in 0..6 {
        qdisc.enqueue(&of_host(n, 1, 100), Time(n * 10_000), &mut lost);
    }
    // Packets of 0, 10 and 20 µs have waited longer; exactly 24 µs is not too long.
    let packet = qdisc.dequeue(Time(54_000), &mut lost).unwrap();
    assert_eq!(packet.handle, 3);
    assert_eq!(lost.0, [0, 1, 2].map(|handle| (handle, DropReason::Congested)));
    assert_eq!(qdisc.dequeue(Time(100_000), &mut lost).map(|packet| packet.handle), None);
    assert_eq!((qdisc.backlog().packets, qdisc.next_event()), (0, None));
}

#[test]
fn under_savings_a_drop_may_end_a_turn() {
    // Section 3.3: the first packet of the first eligible queue is dropped; the next one is larger
    // than the deficit, so another queue is served.
    let (mut qdisc, mut lost) = (drr("drr srchost max-age 24us savings 1000"), Lost::default());
    qdisc.enqueue(&of_host(0, 1, 900), Time(0), &mut lost);
    qdisc.enqueue(&of_host(1, 1, 1400), Time(20_000), &mut lost);
    qdisc.enqueue(&of_host(2, 2, 900), Time(20_000), &mut lost);
    assert_eq!(qdisc.dequeue(Time(30_000), &mut lost).unwrap().handle, 2);
    assert_eq!(lost.0, [(0, DropReason::Congested)]);
    assert_eq!(qdisc.dequeue(Time(30_000), &mut lost).unwrap().handle, 1);
}

#[test]
fn users_are_told_apart_as_told() {
    // Host 1 has three flows with packets, host 2 one: alternating by host.
    let mut qdisc = drr("drr srchost quantum 1000");
    for (handle, host) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2)] {
        qdisc.enqueue(&of_host(handle, host, 1000), Time(0), &mut Discard);
    }
    let order: Vec<_> = (0..5).map(|_| next(&mut qdisc, Time(9)).unwrap()).collect();
    assert_eq!(order, [1, 4, 2, 5, 3]);
    // To one destination it is one queue; by flow each of them is served before any second packet.
    for (words, expected) in [("drr dsthost", [1, 2, 3, 4, 11]), ("drr", [1, 2, 3, 11, 4])] {
        let mut qdisc = drr(words);
        for (handle, flow) in [(1, 1), (2, 1), (3, 2), (4, 1), (11, 3)] {
            let packet = Packet { flow, ..of_host(handle, 1, 700) };
            qdisc.enqueue(&packet, Time(0), &mut Discard);
        }
        let order: Vec<_> = (0..5).map(|_| next(&mut qdisc, Time(9)).unwrap()).collect();
        assert_eq!(order, expected, "{words}");
    }
}

#[test]
fn settings_change_in_every_direction() {
    let mut qdisc = drr("drr srchost");
    for n in 0..10 {
        let mut packet = of_host(n, n as u32 % 3, 500);
        packet.class = if n < 6 { 1 } else { 2 };
        qdisc.enqueue(&packet, Time(n), &mut Discard);
    }
    let mut lost = Lost::default();
    let mut change = |words: &str, lost: &mut Lost| {
        let config = qdisc::parse(words).unwrap();
        qdisc.configure(&config, Time(20), lost).unwrap();
        assert_eq!(qdisc.config(), config);
        (qdisc.backlog().packets, lost.0.len())
    };
    assert_eq!(change("drr queues 8 savings 3kb", &mut lost), (10, 0));
    assert_eq!(change("drr class 1:1 class 1:2 codel", &mut lost), (10, 0));
    assert_eq!(change("drr savings 2kb class 1:2 fq_codel class 1:1", &mut lost), (10, 0));
    assert_eq!(change("drr class 1:1 class 1:3", &mut lost), (6, 4));
    assert!(lost.0.iter().all(|(_, reason)| *reason == DropReason::Unclassified));
    assert_eq!(change("drr buffer 4", &mut lost), (4, 6));
    let totals = qdisc.snapshot().totals;
    assert_eq!((totals.enqueued_packets, totals.drops()), (10, 6));
    let order: Vec<_> = (0..4).map(|_| next(&mut qdisc, Time(30)).unwrap()).collect();
    assert_eq!(order, [2, 3, 4, 5]);
}

#[test]
fn bad_settings_are_named() {
    for (words, part) in [
        ("drr class 1", "MAJOR:MINOR"),
        ("drr class 1:0", "MAJOR:MINOR"),
        ("drr buffer 5 class 1:1", "this word or classes, not both"),
        ("drr class 1:1 buffer 5", "`buffer` (word 4)"),
        ("drr quantum 0", "above zero"),
        ("drr queues 100", "a power of two"),
        ("drr class 1:1 weight 0", "1 to 1048576"),
    ] {
        let message = qdisc::parse(words).unwrap_err().to_string();
        assert!(message.contains(part), "{words}: {message}");
    }
    let config = qdisc::parse("drr class 1:1 class 2:1").unwrap();
    let error = crate::qdisc::build(&config, &Device::default()).err().unwrap();
    assert!(error.to_string().contains("each minor number once"));
}

/// Drains `qdisc` by calls at `now`; the most steps of one.
fn drain_counted(qdisc: &mut Drr, now: Time) -> u64 {
    let (mut most, mut calls) = (0, 0);
    while qdisc.backlog().packets > 0 {
        crate::steps::take();
        qdisc.dequeue(now, &mut Discard);
        most = most.max(crate::steps::take());
        calls += 1;
        assert!(calls < 1_000_000, "{:?} never leave", qdisc.backlog());
    }
    most
}

#[test]
fn thousands_of_users_cost_a_call_little_however_tiny_the_quantum() {
    for words in [
        "drr queues 2048 buffer 4000 quantum 1",
        "drr queues 2048 buffer 4000 quantum 1 savings 1mb",
        "drr queues 8192 buffer 20000 max-age 1ms",
    ] {
        let mut qdisc = drr(words);
        let mut most = 0;
        for round in 0..2u64 {
            let now = Time::ZERO + Span::from_secs(round * 3_600);
            // More than there is room for: the longest queue is robbed.
            for n in 0..25_000u64 {
                let mut packet = Packet::new(n, 1 + (n * 7_919 % 65_000) as u32);
                packet.flow = u64::from((n % 1_600) as u32).wrapping_mul(0x9e37_79b1);
                crate::steps::take();
                qdisc.enqueue(&packet, now, &mut Discard);
                most = most.max(crate::steps::take());
            }
            most = most.max(drain_counted(&mut qdisc, now + Span::from_secs(5)));
        }
        assert!(most <= crate::steps::MOST, "`{words}`: {most} steps");
    }
}

#[test]
fn classes_take_turns_though_their_disciplines_are_asked_one_by_one() {
    // In each class a flood that CoDel drops when its turn comes.
    let classes: std::string::String =
        (1..=40).map(|n| std::format!(" class 1:{n:x} codel limit 5000")).collect();
    let mut qdisc = drr(&std::format!("drr{classes}"));
    for n in 0..40_000u32 {
        let mut packet = Packet::new(n.into(), 1514);
        packet.class = 1 + n % 40;
        qdisc.enqueue(&packet, Time(n.into()), &mut Discard);
    }
    let (mut most, mut sent) = (0, [0u32; 41]);
    for call in 0..8_000u64 {
        crate::steps::take();
        let now = Time(1_000_000_000 + call * 100_000);
        if let Some(packet) = qdisc.dequeue(now, &mut Discard) {
            sent[packet.class as usize] += 1;
        }
        most = most.max(crate::steps::take());
    }
    let (least, largest) = (sent[1..].iter().min().unwrap(), sent[1..].iter().max().unwrap());
    assert!(*least > 100 && largest - least <= 2, "{sent:?}");
    assert!(most <= crate::steps::MOST, "{most} steps");
}

#[test]
fn turns_and_deficits_stay_while_the_classes_do() {
    let mut qdisc = drr("drr class 1:10 quantum 1000 class 1:20 quantum 1000");
    for (handle, class) in [(1, 0x10), (2, 0x10), (3, 0x20)] {
        qdisc.enqueue(&of_class(handle, class, 600), Time(0), &mut Discard);
    }
    assert_eq!(next(&mut qdisc, Time(0)), Some(1));
    // The 400 bytes that the first class has left are too few: a new turn would be enough.
    let other = qdisc::parse("drr class 1:10 quantum 1000 class 1:20 quantum 1200").unwrap();
    qdisc.configure(&other, Time(0), &mut Discard).unwrap();
    assert_eq!([next(&mut qdisc, Time(0)), next(&mut qdisc, Time(0))], [Some(3), Some(2)]);
}

/// Turns and deficits begin anew where a class comes, or savings do.
#[test]
fn turns_begin_anew_with_other_classes_and_with_savings() {
    let classes = "class 1:10 quantum 1000 class 1:20 quantum 1000";
    for words in ["class 1:30", "savings 3000b"] {
        let mut qdisc = drr(&format!("drr {classes}"));
        for (handle, class) in [(1, 0x10), (2, 0x10), (3, 0x20)] {
            qdisc.enqueue(&of_class(handle, class, 600), Time(0), &mut Discard);
        }
        assert_eq!(next(&mut qdisc, Time(0)), Some(1));
        let other = qdisc::parse(&format!("drr {words} {classes}")).unwrap();
        qdisc.configure(&other, Time(0), &mut Discard).unwrap();
        // The first class has more than the 400 bytes that it had left.
        assert_eq!([next(&mut qdisc, Time(0)), next(&mut qdisc, Time(0))], [Some(2), Some(3)]);
    }
}

/// A call that has asked four disciplines for their packets has done enough: of classes that lack
/// quanta, the others are for the next call.
#[test]
fn a_call_asks_four_disciplines_at_most() {
    for (count, calls) in [(3, 1), (4, 2), (7, 2), (8, 3)] {
        let classes: std::string::String =
            (1..=count).map(|n| format!(" class 1:{n} quantum 100 codel")).collect();
        let mut qdisc = drr(&format!("drr{classes}"));
        for n in 1..=count {
            qdisc.enqueue(&of_class(n, n as u32, 1500), Time(0), &mut Discard);
        }
        let until = |_: &u32| next(&mut qdisc, Time(1)).is_none();
        assert_eq!((1..).take_while(until).count() + 1, calls, "{count}");
    }
}

/// The class has been read above: below, a packet's flow alone counts.
#[test]
fn a_class_means_nothing_to_what_stands_below() {
    let mut qdisc = drr("drr class 8001:5 fq_codel flows 1024");
    for (handle, flow) in [(1, 1), (2, 1), (3, 1), (4, 9 << 22)] {
        let packet = Packet { flow, ..of_class(handle, 0x8001_0005, 1514) };
        qdisc.enqueue(&packet, Time(0), &mut Discard);
    }
    // The second flow is a new one when the first has used its quantum up.
    let order: Vec<_> = (0..4).filter_map(|_| next(&mut qdisc, Time(1))).collect();
    assert_eq!(order, [1, 4, 2, 3]);
}

#[test]
fn settings_out_of_range_are_refused() {
    let params = |change: fn(&mut Params)| {
        let Ok(Config::Drr(mut params)) = qdisc::parse("drr class 1:10") else { panic!() };
        change(&mut params);
        Drr::new(&params, &Device::default()).is_ok()
    };
    for (change, is_fit) in [
        ((|_| ()) as fn(&mut Params), true),
        (|params| params.queues = 8, true),
        (|params| params.queues = 4, false),
        (|params| params.queues = 24, false),
        (|params| params.queues = 65_536, true),
        (|params| params.queues = 131_072, false),
        (|params| params.buffer = 1, true),
        (|params| params.buffer = 0, false),
        (|params| params.quantum = Some(0), false),
        (|params| params.classes[0].weight = 0, false),
        (|params| params.classes[0].quantum = Some(0), false),
    ] {
        assert_eq!(params(change), is_fit);
    }
}

#[test]
fn bytes_sent_are_those_of_the_packets_with_any_form() {
    for words in ["drr", "drr class 1:10", "drr class 1:10 codel", "drr savings 9kb class 1:10"] {
        let mut qdisc = drr(words);
        for n in 0..9 {
            qdisc.enqueue(&of_class(n, 0x10, 100 + n as u32), Time(0), &mut Discard);
        }
        while next(&mut qdisc, Time(0)).is_some() {}
        let totals = qdisc.snapshot().totals;
        assert_eq!((totals.sent_packets, totals.sent_bytes), (9, 936), "{words}");
    }
}

/// Whoever was robbed sends again at once: the others are next all the same.
#[test]
fn in_a_full_buffer_all_are_robbed_in_turns() {
    for queues in [1024, 8192] {
        let mut qdisc = drr(&format!("drr srchost queues {queues} buffer 4"));
        let (mut lost, mut losses) = (Lost::default(), [0; 6]);
        let mut sender = 5;
        for host in (1..5).chain([5; 50]) {
            let host = if host < 5 { host } else { sender };
            qdisc.enqueue(&of_host(host, host as u32, 100), Time(0), &mut lost);
            if let Some((robbed, _)) = lost.0.pop() {
                losses[robbed as usize] += 1;
                sender = robbed;
            }
        }
        assert_eq!(losses, [0, 10, 10, 10, 10, 10], "{queues}");
    }
}

#[test]
fn who_has_lost_all_its_packets_keeps_nobody_waiting() {
    let mut qdisc = drr("drr srchost queues 8192 buffer 1");
    qdisc.enqueue(&of_host(1, 7, 100), Time(0), &mut Discard);
    qdisc.enqueue(&of_host(2, 9, 100), Time(0), &mut Discard);
    assert_eq!((next(&mut qdisc, Time(0)), qdisc.backlog().packets), (Some(2), 0));
}

#[test]
fn what_stands_below_a_class_changes_with_it() {
    let words = |codel: u32| format!("drr class 1:10 codel limit {codel} class 1:20 pie");
    for codel in [10, 11] {
        let mut qdisc = drr(&words(10));
        (0..3).for_each(|n| qdisc.enqueue(&of_class(n, 0x10, 100), Time(0), &mut Discard));
        qdisc.configure(&qdisc::parse(&words(codel)).unwrap(), Time(1), &mut Discard).unwrap();
        let (_, below) = qdisc.below(0).unwrap();
        assert_eq!(below.config(), qdisc::parse(&format!("codel limit {codel}")).unwrap());
        assert_eq!(below.backlog().packets, 3);
    }
}
