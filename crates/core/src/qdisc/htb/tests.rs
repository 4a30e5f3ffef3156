//! HTB shares: guaranteed rates, borrowing, priorities, ceils, quanta, levels.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::*;
use crate::qdisc::{self, Discard};

fn htb(words: &str) -> Htb {
    match qdisc::parse(words) {
        Ok(Config::Htb(params)) => Htb::new(&params, &Device::default()).unwrap(),
        other => panic!("{words}: {other:?}"),
    }
}

/// A packet of 1000 bytes for the class with this minor number.
fn packet(minor: u32) -> Packet {
    let mut packet = Packet::new(minor.into(), 1000);
    packet.class = Device::default().handle | minor;
    packet
}

/// Keeps ten packets in each of `backlogged` and follows `next_event` for `seconds`; bytes sent by
/// each in the last but one second and before, i.e. after the first one.
fn saturate(htb: &mut Htb, backlogged: &[u32], seconds: u64) -> Vec<u64> {
    let start = htb.now;
    let mut sent = std::vec![0; backlogged.len()];
    for minor in backlogged {
        (0..10).for_each(|_| htb.enqueue(&packet(*minor), start, &mut Discard));
    }
    let (mut now, mut idle) = (start, 0);
    while now < start + Span::from_secs(seconds) {
        now = now.max(htb.next_event().expect("a backlog"));
        let Some(done) = htb.dequeue(now, &mut Discard) else {
            idle += 1;
            assert!(idle < 100_000, "no progress at {now:?}");
            continue;
        };
        let minor = done.handle as u32;
        htb.enqueue(&packet(minor), now, &mut Discard);
        if now > start + Span::from_secs(1) {
            let at = backlogged.iter().position(|other| *other == minor).unwrap();
            sent[at] += 1000;
        }
    }
    sent
}

/// Shares in kilobytes a second, after the buckets' first bursts.
fn rates(words: &str, backlogged: &[u32]) -> Vec<u64> {
    let sent = saturate(&mut htb(words), backlogged, 11);
    sent.iter().map(|bytes| (bytes / 10 + 500) / 1000).collect()
}

const TREE: &str = "class 1:1 rate 8mbit burst 3000 cburst 3000 \
    class 1:10 parent 1:1 rate 2mbit ceil 8mbit burst 2000 cburst 2000 prio 0 \
    class 1:20 parent 1:1 rate 4mbit ceil 6mbit burst 2000 cburst 2000 prio 1 quantum 1000 \
    class 1:30 parent 1:1 rate 1mbit ceil 8mbit burst 2000 cburst 2000 prio 1 quantum 3000";

#[test]
fn one_class_keeps_its_rate_with_any_discipline_below() {
    for below in ["", "codel limit 100", "cake besteffort", "tbf rate 6mbit burst 2kb limit 50kb"] {
        let rate = rates(&format!("htb rate 4mbit burst 15k {below}"), &[1]);
        assert_eq!(rate, [500], "{below}");
    }
    let slower = rates("htb rate 4mbit burst 15k tbf rate 2mbit burst 2kb limit 50kb", &[1]);
    assert_eq!(slower, [250]);
    let ceil = rates("htb rate 2mbit ceil 4mbit burst 15k", &[1]);
    assert_eq!(ceil, [250], "nobody to borrow from");
}

#[test]
fn classes_get_their_rates_and_borrow_by_priority_and_quantum() {
    let htb = format!("htb default 30 {TREE}");
    // All busy: rates, and the eighth that is left goes to the first priority.
    assert_eq!(rates(&htb, &[0x10, 0x20, 0x30]), [375, 500, 125]);
    // Alone each reaches its ceil.
    assert_eq!(rates(&htb, &[0x10]), [1000]);
    assert_eq!(rates(&htb, &[0x20]), [750]);
    // Of 375 to borrow between equals, quanta of 1:3 would give 94 and 281.
    let shares = rates(&htb, &[0x20, 0x30]);
    assert!(shares[0].abs_diff(594) <= 2 && shares[1].abs_diff(406) <= 2, "{shares:?}");
}

#[test]
fn inner_classes_lend_through_levels() {
    let words = "htb class 1:1 rate 8mbit burst 3k cburst 3k \
        class 1:2 parent 1:1 rate 4mbit ceil 8mbit burst 3k cburst 3k \
        class 1:3 parent 1:1 rate 4mbit ceil 8mbit burst 3k cburst 3k \
        class 1:21 parent 1:2 rate 1mbit ceil 8mbit burst 2k cburst 2k quantum 1000 \
        class 1:22 parent 1:2 rate 3mbit ceil 8mbit burst 2k cburst 2k quantum 1000 \
        class 1:31 parent 1:3 rate 4mbit ceil 8mbit burst 2k cburst 2k quantum 1000";
    let tree = htb(words);
    let levels: Vec<u8> = tree.tree.classes.iter().map(|class| class.level).collect();
    assert_eq!(levels, [7, 6, 6, 0, 0, 0]);
    assert_eq!(rates(words, &[0x21, 0x22, 0x31]), [125, 375, 500]);
    // What 1:22 leaves is its sister's before it is its cousin's.
    assert_eq!(rates(words, &[0x21, 0x31]), [500, 500]);
    assert_eq!(rates(words, &[0x21]), [1000]);
    let mut tree = htb(words);
    saturate(&mut tree, &[0x21, 0x31], 3);
    let (lends, borrows, _) = tree.class_stats(0x21).unwrap();
    assert!(borrows > 2 * lends && lends > 0, "{lends} {borrows}");
    assert!(tree.class_stats(2).unwrap().0 > 0 && tree.class_stats(0x99).is_none());
}

#[test]
fn no_class_exceeds_its_ceil_in_any_span() {
    let mut htb = htb(&format!("htb default 30 {TREE}"));
    let mut now = Time(0);
    (0..500).for_each(|_| htb.enqueue(&packet(0x20), now, &mut Discard));
    let (mut lowest, mut total) = (i64::MAX, 0i64);
    while let Some(event) = htb.next_event() {
        now = now.max(event);
        if let Some(packet) = htb.dequeue(now, &mut Discard) {
            // 6 Mbit/s: 750 bytes a millisecond.
            let behind = now.0 as i64 * 3 / 4000;
            lowest = lowest.min(total - behind);
            total += i64::from(packet.len);
            // Linux's rule: it sends while not in debt, so one packet more than the burst.
            assert!(total - behind - lowest <= 2000 + 1000, "{total} at {now:?}");
        }
    }
    assert_eq!(total, 500_000);
}

#[test]
fn what_belongs_to_no_class_is_direct_and_limited() {
    let mut htb = htb("htb direct_qlen 2 class 1:10 rate 1mbit");
    for minor in [0x10, 0x99, 0x98, 0x97] {
        htb.enqueue(&packet(minor), Time(0), &mut Discard);
    }
    let snapshot = htb.snapshot();
    assert_eq!(snapshot.detail, Detail::Htb(Stats { direct_packets: 2 }));
    assert_eq!((snapshot.totals.drops(), snapshot.backlog.packets), (1, 3));
    let order: Vec<u64> =
        core::iter::from_fn(|| htb.dequeue(Time(0), &mut Discard).map(|p| p.handle)).collect();
    assert_eq!(order, [0x99, 0x98, 0x10]);
    let totals = htb.snapshot().totals;
    assert_eq!((totals.sent_packets, totals.sent_bytes), (3, 3000));
    // A class of another discipline is no class of ours; neither is an inner one.
    let mut htb = self::htb(&format!("htb default 30 {TREE}"));
    let mut other = packet(0x10);
    other.class = 0x7777_0010;
    htb.enqueue(&other, Time(0), &mut Discard);
    htb.enqueue(&packet(1), Time(0), &mut Discard);
    assert_eq!(
        htb.below(2).map(|(class, below)| (class, below.backlog().packets)),
        Some((0x30, 2))
    );
}

#[test]
fn a_changed_tree_keeps_packets_and_debts() {
    let mut htb = htb(&format!("htb default 30 {TREE}"));
    for minor in [0x10, 0x20, 0x30, 0x30] {
        htb.enqueue(&packet(minor), Time(0), &mut Discard);
    }
    let words = "htb default 10 class 1:10 rate 2mbit burst 2000 codel class 1:20 rate 1mbit";
    let config = qdisc::parse(words).unwrap();
    htb.configure(&config, Time(5), &mut Discard).unwrap();
    assert_eq!((htb.backlog().packets, htb.config()), (4, config));
    // The packets of 1:30 are now in the default class.
    let in_class = |htb: &Htb, n| htb.below(n).map(|(_, below)| below.backlog().packets);
    assert_eq!((in_class(&htb, 0), in_class(&htb, 1)), (Some(3), Some(1)));
    let mut left = 0;
    let mut now = Time(5);
    while let Some(event) = htb.next_event() {
        now = now.max(event);
        left += u32::from(htb.dequeue(now, &mut Discard).is_some());
    }
    assert_eq!(left, 4);
    for words in [
        "htb class 1:1 rate 1mbit class 1:2 parent 1:9 rate 1mbit",
        "htb class 1:1 rate 1mbit class 1:1 rate 1mbit",
        "htb class 1:1",
        "htb class 1:1 rate 1mbit parent 1:1",
    ] {
        assert!(qdisc::parse(words).is_err(), "{words}");
    }
    let mut deep = "htb class 1:1 rate 1mbit".into();
    for id in 2..=9 {
        deep = format!("{deep} class 1:{id} parent 1:{} rate 1mbit", id - 1);
        assert_eq!(qdisc::parse(&deep).is_ok(), id <= 8, "{id}");
        if let Ok(Config::Htb(params)) = qdisc::parse(&deep) {
            assert!(Htb::new(&params, &Device::default()).is_ok(), "{id}");
        }
    }
}

#[test]
fn a_quantum_is_the_rate_by_r2q_within_bounds() {
    for (words, quantum) in [
        ("htb class 1:1 rate 8mbit", 100_000),
        ("htb r2q 5 class 1:1 rate 8mbit", 200_000),
        ("htb r2q 20 class 1:1 rate 8mbit", 50_000),
        ("htb class 1:1 rate 8kbit", 1_000),
        ("htb class 1:1 rate 10gbit", 200_000),
        ("htb class 1:1 rate 8mbit quantum 1", 1),
        ("htb class 1:1 rate 8mbit quantum 3000", 3_000),
    ] {
        assert_eq!(htb(words).tree.classes[0].quantum, quantum, "{words}");
    }
}

#[test]
fn what_stands_below_a_class_changes_with_it_wherever_it_is_named() {
    let classes = |codel: u32, pie: u32| {
        [
            format!("class 1:10 rate 1mbit codel limit {codel}"),
            format!("class 1:20 rate 1mbit pie limit {pie}"),
            "class 1:30 rate 1mbit drr srchost".into(),
        ]
    };
    let before = classes(10, 20).join(" ");
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        for (codel, pie) in [(10, 20), (11, 20), (10, 21), (11, 21)] {
            let mut htb = htb(&format!("htb {before}"));
            let after = order.map(|n| classes(codel, pie)[n].clone()).join(" ");
            let config = qdisc::parse(&format!("htb {after}")).unwrap();
            htb.configure(&config, Time(5), &mut Discard).unwrap();
            for (n, words) in [
                (0, format!("codel limit {codel}")),
                (1, format!("pie limit {pie}")),
                (2, "drr srchost".into()),
            ] {
                let below = htb.below(n).unwrap().1.config();
                assert_eq!(below, qdisc::parse(&words).unwrap(), "{after}");
            }
        }
    }
}

#[test]
fn a_thousand_classes_that_wake_at_once_cost_a_call_little() {
    let class = |minor| {
        format!(" class 1:{minor:x} parent 1:1 rate 100kbit ceil 200kbit burst 1600 cburst 1600")
    };
    let minors = 2..=1_024;
    let words: String = minors.clone().map(class).collect();
    let mut htb = htb(&format!("htb class 1:1 rate 1gbit{words}"));
    let (mut most, mut sent) = (0, [0u32; 1_025]);
    let mut now = htb.now;
    for pause in [0, 100, 3_600] {
        now += Span::from_secs(pause);
        for minor in minors.clone().chain(minors.clone()).chain(minors.clone()) {
            htb.enqueue(&packet(minor), now, &mut Discard);
            most = most.max(crate::steps::take());
        }
        let mut idle = 0;
        while htb.backlog().packets > 0 {
            now = now.max(htb.next_event().unwrap());
            match htb.dequeue(now, &mut Discard) {
                Some(packet) => sent[packet.handle as usize] += 1,
                None => idle += 1,
            }
            most = most.max(crate::steps::take());
            assert!(idle < 100_000, "no progress at {now:?}");
        }
    }
    assert!(sent[2..].iter().all(|sent| *sent == 9), "{sent:?}");
    assert!(most <= crate::steps::MOST, "{most} steps");
    let one_more = format!("htb class 1:1 rate 1gbit{words}{}", class(1_025));
    let Ok(Config::Htb(params)) = qdisc::parse(&one_more) else { panic!("{one_more}") };
    assert!(Htb::new(&params, &Device::default()).is_err());
}

#[test]
fn a_class_is_written_as_tc_shows_it() {
    let words = "htb default 10 class 1:1 rate 8mbit class 1:10 parent 1:1 rate 1mbit ceil 8mbit \
                 prio 3 class 1:20 parent 1:1 rate 2mbit overhead 20 linklayer atm";
    let Ok(Config::Htb(params)) = qdisc::parse(words) else { panic!("{words}") };
    for (class, leaf, shown) in [
        (0, None, "class htb 1:1 root rate 8Mbit ceil 8Mbit burst 1600b cburst 1600b \n"),
        (
            1,
            Some(0x10),
            "class htb 1:10 parent 1:1 leaf 10: prio 3 rate 1Mbit ceil 8Mbit burst 1600b \
             cburst 1600b \n",
        ),
        (
            2,
            None,
            "class htb 1:20 parent 1:1 prio 0 rate 2Mbit overhead 20 ceil 2Mbit linklayer atm \
             burst 1600b cburst 1600b \n",
        ),
    ] {
        let mut text = String::new();
        words::write_class(1, &params, &params.classes[class], leaf, &mut text).unwrap();
        assert_eq!(text, shown);
    }
    // Priorities beyond the last are the last.
    let Ok(Config::Htb(params)) = qdisc::parse("htb rate 1mbit prio 7") else { panic!() };
    for (prio, effective) in [(6, 6), (7, 7), (8, 7), (200, 7)] {
        let classes = std::vec![Class { prio, ..params.classes[0].clone() }];
        let params = Params { classes, ..params };
        let htb = Htb::new(&params, &Device::default()).unwrap();
        assert_eq!(htb.tree.classes[0].prio, effective);
    }
    let none = Class { quantum: Some(0), ..params.classes[0].clone() };
    assert_eq!(none.quantum(10), Class { quantum: None, ..none.clone() }.quantum(10));
}

#[test]
fn a_reset_begins_anew() {
    let mut htb = htb(&format!("htb default 30 {TREE}"));
    saturate(&mut htb, &[0x10, 0x20, 0x30], 2);
    assert!(htb.tree.next_wake().is_some());
    let now = htb.now;
    htb.reset(&mut Discard);
    assert_eq!((htb.backlog().packets, htb.next_event(), htb.tree.next_wake()), (0, None, None));
    // Full buckets: each sends its burst at once, and one packet more, as in Linux.
    let bursts = |htb: &mut Htb, now: Time| {
        for minor in [0x10, 0x20, 0x30] {
            (0..20).for_each(|_| htb.enqueue(&packet(minor), now, &mut Discard));
        }
        let next = || htb.dequeue(now, &mut Discard).map(|packet| packet.handle);
        core::iter::from_fn(next).collect::<Vec<_>>()
    };
    let fresh = bursts(&mut self::htb(&format!("htb default 30 {TREE}")), Time(0));
    assert_eq!(bursts(&mut htb, now), fresh);
    assert!(fresh.len() > 4, "{fresh:?}");
    // Before it is time to look again, there is nothing to be had.
    let next = htb.next_event().unwrap();
    assert!(next > now && htb.dequeue(Time(next.0 - 1), &mut Discard).is_none());
}

/// Two of one row, and one below in priority.
#[test]
fn where_one_has_nothing_to_send_the_next_is_asked_at_once() {
    let aging = "drr max-age 5ms";
    let late = "tbf rate 8kbit burst 1000 limit 9000";
    for prio in [0, 1, 7] {
        for (first, second, third, sent) in [
            (aging, "", "", Some(0x20)),
            ("", aging, "", Some(0x10)),
            (aging, aging, "", Some(0x30)),
            (late, "", "", Some(0x20)),
            (late, late, "", Some(0x30)),
            (aging, late, "", Some(0x30)),
            (late, aging, "", Some(0x30)),
            (aging, late, late, None),
            (late, aging, late, None),
            (aging, aging, aging, None),
        ] {
            let words = format!(
                "htb class 1:10 rate 80mbit prio {prio} {first} \
                 class 1:20 rate 80mbit prio {prio} {second} class 1:30 rate 80mbit prio 7 {third}"
            );
            let mut htb = htb(&words);
            let minors = [0x10, 0x20, 0x30];
            // One packet takes the whole bucket of those that are late.
            for (minor, below) in minors.into_iter().zip([first, second, third]) {
                if below == late {
                    htb.enqueue(&packet(minor), Time(0), &mut Discard);
                }
            }
            while htb.dequeue(Time(0), &mut Discard).is_some() {}
            for minor in minors {
                htb.enqueue(&packet(minor), Time(1), &mut Discard);
            }
            let now = Time(100_000_000);
            let found = htb.dequeue(now, &mut Discard).map(|packet| packet.handle);
            assert_eq!(found, sent, "{words}");
        }
    }
}

/// CoDel that has nothing to object to.
#[test]
fn an_empty_leaf_loses_its_turn_with_any_discipline_below() {
    for quantum in [700, 1_000, 1_500] {
        let classes = |below: &str| {
            let class = |minor: u32| {
                format!(" class 1:{minor:x} rate 8mbit quantum {quantum} burst 90kb prio 1 {below}")
            };
            htb(&format!("htb{}{}{}", class(0x10), class(0x20), class(0x30)))
        };
        let mut all = ["pfifo limit 99", "codel target 9s interval 20s", "drr"].map(classes);
        let mut random = crate::random::Random::new(quantum);
        for n in 0..3_000u64 {
            let now = Time(n * 2_000_000);
            let minor = [0x10, 0x20, 0x30][random.below(3) as usize];
            let packet = Packet { handle: n, len: 300 + random.below(900), ..packet(minor) };
            let count = random.below(3);
            let sent = all.each_mut().map(|htb| {
                htb.enqueue(&packet, now, &mut Discard);
                let next = |_| htb.dequeue(now, &mut Discard).map(|packet| packet.handle);
                (0..count).map(next).collect::<Vec<_>>()
            });
            assert_eq!(sent[0], sent[1], "{n} {quantum}");
            assert_eq!(sent[0], sent[2], "{n} {quantum}");
        }
    }
}

#[test]
fn segments_of_super_packets_have_each_their_overhead() {
    for below in ["", "codel"] {
        for (segs, size, wire_len) in
            [(0, 0, 3_020), (1, 1_448, 3_020), (2, 1_434, 3_000 + 66 + 40)]
        {
            let mut htb = htb(&format!("htb rate 8mbit burst 15k overhead 20 {below}"));
            let mut packet = packet(1);
            (packet.len, packet.header_len) = (3_000, 66);
            (packet.gso_segs, packet.gso_size) = (segs, size);
            htb.enqueue(&packet, Time(0), &mut Discard);
            let sent = htb.dequeue(Time(0), &mut Discard).map(|packet| packet.adj_len);
            assert_eq!(sent, Some(wire_len), "{segs} {below}");
        }
    }
}

#[test]
fn what_another_class_has_below_is_not_ones_own() {
    let mut htb = htb("htb class 1:10 rate 1mbit codel limit 10 class 1:20 rate 1mbit pie limit 9");
    let words = "htb class 1:20 rate 1mbit codel limit 10 class 1:10 rate 1mbit codel limit 11";
    htb.configure(&qdisc::parse(words).unwrap(), Time(5), &mut Discard).unwrap();
    for (n, words) in [(0, "codel limit 11"), (1, "codel limit 10")] {
        assert_eq!(htb.below(n).unwrap().1.config(), qdisc::parse(words).unwrap());
    }
}

/// Linux ends a class's turn when its discipline has dropped the rest, before it pays for what is
/// sent. The class after it then loses its turn.
#[test]
fn who_sends_its_last_after_drops_passes_two_turns() {
    let class = |minor: u32, below: &str| {
        format!(" class 1:{minor:x} rate 80mbit burst 90kb quantum 900 {below}")
    };
    for (drops, order) in [(0, [0x10, 0x20, 0x30]), (2, [0x10, 0x30, 0x20])] {
        let first = class(0x10, "drr max-age 5ms");
        let mut htb = htb(&format!("htb{first}{}{}", class(0x20, ""), class(0x30, "")));
        (0..drops).for_each(|_| htb.enqueue(&packet(0x10), Time(0), &mut Discard));
        let now = Time(1_000_000_000);
        for minor in [0x10, 0x20, 0x30] {
            htb.enqueue(&packet(minor), now, &mut Discard);
        }
        let next = || htb.dequeue(now, &mut Discard).map(|packet| packet.handle);
        assert_eq!(core::iter::from_fn(next).collect::<Vec<_>>(), order, "{drops}");
    }
}

/// A discipline may drop all it had, together with a packet that is too large for its memory. Its
/// class then loses its turn: what comes afterwards is behind the others.
#[test]
fn who_drops_all_it_had_begins_behind_the_others() {
    let class = |minor: u32, below: &str| {
        format!(" class 1:{minor:x} rate 80mbit burst 90kb cburst 90kb quantum 9000 {below}")
    };
    let memory = class(0x10, "cake unlimited besteffort memlimit 9000");
    let mut htb = htb(&format!("htb{memory}{}", class(0x20, "")));
    for minor in [0x10, 0x10, 0x10, 0x20, 0x20] {
        htb.enqueue(&packet(minor), Time(0), &mut Discard);
    }
    let next = |htb: &mut Htb| htb.dequeue(Time(0), &mut Discard).map(|packet| packet.handle);
    // With its second packet the first class has a quantum, and its turn goes on.
    let first: Vec<_> = (0..3).filter_map(|_| next(&mut htb)).collect();
    assert_eq!(first, [0x10, 0x20, 0x10]);
    for packet in [Packet { truesize: 20_000, ..packet(0x10) }, packet(0x10)] {
        htb.enqueue(&packet, Time(0), &mut Discard);
    }
    assert_eq!([next(&mut htb), next(&mut htb)], [Some(0x20), Some(0x10)]);
}

/// A class that waits is not asked because of its discipline, nor because of what has just come.
/// One whose discipline waits is asked when that has something.
#[test]
fn a_class_that_waits_is_asked_when_it_may_send() {
    let mut htb = htb("htb class 1:10 rate 8kbit burst 1000 cburst 1000 \
        class 1:20 rate 80mbit burst 90kb tbf rate 8mbit burst 1000 limit 9000");
    let at = |us: u64| Time(1_000_000_000 + 1_000 * us);
    for minor in [0x10, 0x10, 0x20, 0x20] {
        htb.enqueue(&packet(minor), at(0), &mut Discard);
    }
    let next = |htb: &mut Htb, us| htb.dequeue(at(us), &mut Discard).map(|sent| sent.handle);
    let first: Vec<u64> = (0..3).filter_map(|_| next(&mut htb, 0)).collect();
    assert_eq!(first, [0x10, 0x20, 0x10]);
    // The bucket below is full again after a millisecond.
    htb.enqueue(&packet(0x10), at(500), &mut Discard);
    assert_eq!(next(&mut htb, 500), None);
    assert_eq!(htb.next_event(), Some(at(1_000)));
    assert_eq!((next(&mut htb, 1_000), next(&mut htb, 1_000)), (Some(0x20), None));
    assert!(htb.next_event().is_some_and(|due| due > at(900_000)));
    // Alone, too.
    let mut htb = self::htb(
        "htb class 1:10 rate 8kbit burst 1000 cburst 1000 \
        tbf rate 8mbit burst 1000 limit 9000",
    );
    (0..3).for_each(|_| htb.enqueue(&packet(0x10), at(0), &mut Discard));
    assert_eq!((next(&mut htb, 0), next(&mut htb, 1_000)), (Some(0x10), Some(0x10)));
    assert_eq!(next(&mut htb, 1_000), None);
    assert!(htb.next_event().is_some_and(|due| due > at(900_000)));
}

/// Leaves that borrow through other classes, and whose disciplines say "not yet".
#[test]
fn a_thousand_leaves_that_cannot_send_cost_a_call_little() {
    // Seven classes above each other and all leaves below them; or a class above each leaf.
    let below = |minor: u32| if minor > 7 { 7 } else { minor - 1 };
    let beside = |minor: u32| if minor > 512 { minor - 511 } else { 1 };
    for (parent, first) in [(below as fn(u32) -> u32, 8), (beside, 513)] {
        // Only the uppermost class has tokens left.
        let mut words = String::from("htb class 1:1 rate 1gbit burst 1mb cburst 1mb");
        for minor in 2..=1_023 {
            let late = if minor < first { "" } else { "tbf rate 8kbit burst 1000 limit 9000" };
            words += &format!(
                " class 1:{minor:x} parent 1:{:x} rate 8bit ceil 1gbit burst 500 cburst 1mb {late}",
                parent(minor)
            );
        }
        let mut htb = htb(&words);
        let mut now = htb.now;
        // One packet takes the whole bucket of a leaf's discipline.
        for _ in 0..2 {
            (first..=1_023).for_each(|minor| htb.enqueue(&packet(minor), now, &mut Discard));
            now += Span::from_millis(10);
            while htb.dequeue(now, &mut Discard).is_some() {
                now += Span::from_micros(10);
            }
        }
        assert_eq!(htb.backlog().packets, 1_024 - first);
        let mut most = 0;
        for _ in 0..10 {
            htb.enqueue(&packet(first), now, &mut Discard);
            crate::steps::take();
            assert!(htb.dequeue(now, &mut Discard).is_none());
            most = most.max(crate::steps::take());
        }
        assert!((1_024..=crate::steps::MOST).contains(&most), "{most} steps");
    }
}
