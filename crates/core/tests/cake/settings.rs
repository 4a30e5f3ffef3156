//! Changing settings while packets wait: none is lost, flows keep their order, the new settings are
//! in force at once.

use std::collections::BTreeMap;

use simnel_core::qdisc::{self, ConfigError, DropReason};
use simnel_core::random::Random;
use simnel_core::wire::AckView;
use simnel_core::Span;

use crate::driver::{packet, with, Driver};

/// Every setting that can change, at least once each way.
const WORDS: &[&str] = &[
    "",
    "bandwidth 10mbit",
    "bandwidth 1mbit diffserv4 ingress",
    "bandwidth 50gbit rtt 1s",
    "unlimited precedence",
    "bandwidth 10mbit diffserv8 flowblind",
    "bandwidth 10mbit diffserv3 srchost wash",
    "besteffort dsthost",
    "besteffort hosts bandwidth 5mbit",
    "diffserv4 flows nat",
    "bandwidth 7mbit dual-srchost autorate-ingress",
    "bandwidth 7mbit dual-dsthost host-load active",
    "bandwidth 7mbit host-load active diffserv4",
    "bandwidth 10mbit ack-filter lan",
    "ack-filter-aggressive no-split-gso",
    "bandwidth 10mbit pppoe-vcmux",
    "overhead -20 mpu 64 ptm",
    "fwmark 0xff diffserv4 memlimit 32mb",
    "queues 64",
    "queues 2048 besteffort bandwidth 20mbit",
    "memlimit 8mb datacentre",
];

/// A few hundred packets of ten flows in all tins.
fn fill(driver: &mut Driver, random: &mut Random) {
    for _ in 0..300 {
        let flow = random.below(10);
        // A flow has one code point, so that all of it is in one tin.
        let tos = if flow < 5 { 0 } else { (flow as u8 - 4) * 32 };
        driver.put(with(packet(flow, 64 + random.below(1_451)), |p| p.tos = tos));
        driver.wait(Span(u64::from(random.below(20_000))));
    }
}

#[test]
fn any_settings_follow_any_others_without_loss() {
    let mut random = Random::new(7);
    for before in WORDS {
        for after in WORDS {
            let mut driver = Driver::new(before);
            fill(&mut driver, &mut random);
            for _ in 0..random.below(200) {
                driver.take();
            }
            let (lost, backlog) = (driver.owner.dropped.len(), driver.cake.backlog());
            let totals = driver.cake.snapshot().totals;
            driver.change(after);
            assert_eq!(driver.owner.dropped.len(), lost, "`{before}` to `{after}`");
            assert_eq!(driver.cake.backlog(), backlog, "`{before}` to `{after}`");
            assert_eq!(driver.cake.snapshot().totals, totals, "`{before}` to `{after}`");
            let in_tins: u64 = driver.stats().tins.iter().map(|tin| tin.backlog_bytes).sum();
            assert_eq!(in_tins, backlog.bytes, "`{before}` to `{after}`");
            // All come out, each flow in order; the AQM may drop, but counts what it does.
            let sent = driver.take_all();
            let dropped = driver.owner.dropped.len() - lost;
            assert_eq!(sent.len() + dropped, backlog.packets as usize, "`{before}` to `{after}`");
            let mut last = BTreeMap::new();
            for packet in &sent {
                let before = last.insert(packet.flow, packet.handle);
                assert!(before < Some(packet.handle), "flow {} is out of order", packet.flow);
            }
        }
    }
}

#[test]
fn settings_can_change_with_every_packet() {
    let mut random = Random::new(3);
    let mut driver = Driver::new("");
    for _ in 0..3_000 {
        driver.put(packet(random.below(10), 1_000));
        driver.wait(Span(u64::from(random.below(2_000_000))));
        driver.change(WORDS[random.below(WORDS.len() as u32) as usize]);
        driver.take_now();
    }
    driver.take_all();
    let totals = driver.cake.snapshot().totals;
    assert_eq!(totals.enqueued_packets, totals.sent_packets + totals.drops());
    assert_eq!(totals.enqueued_packets, 3_000);
}

#[test]
fn packets_that_wait_are_sorted_by_the_new_tins_and_queues() {
    let mut driver = Driver::new("besteffort flowblind bandwidth 10mbit");
    let voice = with(packet(2, 200), |p| p.tos = 46 << 2);
    driver.put_all(packet(1, 1514), 50);
    let handle = driver.put(voice);
    driver.change("diffserv4 flows bandwidth 10mbit");
    assert_eq!(driver.take().unwrap().handle, handle, "voice goes first now");
    assert_eq!(driver.place().0, 3);
    driver.put(voice);
    driver.change("besteffort flowblind bandwidth 10mbit");
    let last = driver.take_all().pop().unwrap();
    assert_eq!(last.tos, 46 << 2, "one queue for all again");
}

#[test]
fn a_lower_limit_drops_the_heads_of_the_longest_queues() {
    let mut driver = Driver::new("memlimit 1mb");
    driver.put_all(packet(1, 1514), 100);
    driver.put_all(packet(2, 1514), 10);
    driver.change("memlimit 46080b");
    // Room for 20 of 2304: ten of each flow.
    assert_eq!(driver.drops(DropReason::Overlimit), 90);
    assert_eq!(driver.lost(), (1..=90).collect::<Vec<u64>>());
    // BLUE is awake after that.
    let sent = driver.take_all().len() as u64;
    assert_eq!(sent + driver.drops(DropReason::Flood), 20);
}

#[test]
fn what_changes_is_in_force_for_packets_that_wait() {
    // Washing and framing happen when a packet comes in: those that wait keep theirs.
    let mut driver = Driver::new("bandwidth 8mbit");
    driver.put_all(with(packet(1, 1000), |p| p.tos = 46 << 2), 2);
    driver.change("bandwidth 8mbit overhead 100");
    driver.put(with(packet(1, 1000), |p| p.tos = 46 << 2));
    let lengths: Vec<u32> = driver.take_all().iter().map(|packet| packet.adj_len).collect();
    assert_eq!(lengths, [1000, 1000, 1086]);
}

#[test]
fn what_was_learnt_of_flows_outlives_a_change_that_needs_more_memory() {
    let mut driver = Driver::new("besteffort bandwidth 2mbit memlimit 100kb ack-filter");
    for n in 0..400 {
        driver.put(packet(n % 3, 1000));
        driver.wait(Span(2_000_000));
        driver.take_now();
    }
    let flows = |driver: &Driver| (0..1024).map(|n| driver.cake.class(n)).collect::<Vec<_>>();
    let (before, misses) = (flows(&driver), driver.tin(0).way_misses);
    assert!(before.iter().flatten().any(|flow| flow.count > 0), "CoDel has begun");
    driver.change("besteffort bandwidth 2mbit memlimit 10mb ack-filter");
    assert!(flows(&driver) == before, "flows have changed");
    assert_eq!(driver.tin(0).way_misses, misses);
    // Another overhead: other sizes.
    driver.change("besteffort bandwidth 2mbit memlimit 10mb ack-filter overhead 20");
    assert_eq!((driver.stats().max_adj_size, driver.stats().max_network_size), (0, 0));
    assert!(flows(&driver) == before, "flows have changed");
}

#[test]
fn a_larger_limit_makes_room_for_more_packets() {
    for words in ["", "ack-filter", "diffserv4 flowblind"] {
        let mut driver = Driver::new("memlimit 46080b");
        driver.put_all(packet(1, 1514), 20);
        driver.change(&format!("memlimit 10mb {words}"));
        driver.put_all(packet(2, 1514), 3_000);
        assert!(driver.lost().is_empty(), "`{words}`");
        assert_eq!(driver.cake.backlog().packets, 3_020, "`{words}`");
    }
}

#[test]
fn acknowledgements_that_wait_are_known_to_a_filter_that_comes_later() {
    let ack = |n: u32| AckView {
        flags: AckView::ACK,
        ack: n * 1_000,
        expendable_options: true,
        ..AckView::default()
    };
    for words in ["ack-filter", "ack-filter memlimit 10mb", "ack-filter flowblind"] {
        let mut driver = Driver::new("bandwidth 1mbit memlimit 1mb");
        let waiting: Vec<u64> = (1..=4).map(|n| driver.put_tcp(packet(3, 64), ack(n))).collect();
        driver.change(&format!("bandwidth 1mbit {words}"));
        driver.put_tcp(packet(3, 64), ack(5));
        assert_eq!(driver.lost().len(), 1, "`{words}`");
        assert!(waiting.contains(&driver.lost()[0]), "`{words}`");
        assert_eq!(driver.drops(DropReason::AckFilter), 1, "`{words}`");
    }
}

#[test]
fn impossible_settings_change_nothing() {
    let mut driver = Driver::new("bandwidth 10mbit diffserv4");
    driver.put_all(packet(1, 1000), 5);
    let (config, backlog) = (driver.cake.config(), driver.cake.backlog());
    let qdisc::Config::Cake(params) = config else { panic!() };
    let wrong = |change: fn(&mut simnel_core::qdisc::cake::Params)| {
        let mut params = params;
        change(&mut params);
        qdisc::Config::Cake(params)
    };
    for (config, option) in [
        (wrong(|p| p.queues = 1000), "queues"),
        (wrong(|p| p.queues = 4), "queues"),
        (wrong(|p| p.host_prefix = 0), "host-prefix"),
        (wrong(|p| p.framing.overhead = 300), "overhead"),
        (wrong(|p| p.framing.mpu = 300), "mpu"),
        (wrong(|p| p.rtt = Span::ZERO), "rtt"),
        (wrong(|p| p.target = Span::ZERO), "rtt"),
    ] {
        match driver.cake.configure(&config, driver.now, &mut driver.owner) {
            Err(ConfigError::OutOfRange { option: named, .. }) => assert_eq!(named, option),
            other => panic!("{option}: {other:?}"),
        }
    }
    let fifo = qdisc::parse("pfifo").unwrap();
    let outcome = driver.cake.configure(&fifo, driver.now, &mut driver.owner);
    assert_eq!(outcome, Err(ConfigError::OtherDiscipline));
    assert_eq!((driver.cake.config(), driver.cake.backlog()), (config, backlog));
    assert_eq!(driver.take_all().len(), 5);
}

#[test]
fn every_queue_count_that_can_be_said_can_be_made() {
    for shift in 3..=15 {
        let words = format!("besteffort queues {}", 1 << shift);
        let mut driver = Driver::new(&words);
        driver.put_all(packet(1, 100), 2);
        assert_eq!(driver.take_all().len(), 2, "{words}");
    }
    assert!(qdisc::parse("cake queues 4").is_err() && qdisc::parse("cake queues 65536").is_err());
}

#[test]
fn what_was_sent_under_a_shaper_is_no_debt_without_it() {
    let voice = with(packet(2, 1000), |p| p.tos = 46 << 2);
    let mut driver = Driver::new("diffserv4 bandwidth 100mbit memlimit 1mb");
    for _ in 0..5_000 {
        driver.put(packet(1, 1000));
        driver.take();
    }
    driver.change("diffserv4 unlimited memlimit 1mb");
    driver.put_all(packet(1, 1000), 100);
    driver.put_all(voice, 100);
    // Quanta of 1024 and 256 bytes: four packets for one.
    let best_effort = (0..50).filter(|_| driver.take().unwrap().tos == 0).count();
    assert!((38..=42).contains(&best_effort), "{best_effort}");
}

#[test]
fn a_first_rate_holds_at_once_however_long_the_line_was_busy() {
    for between in [&[][..], &["unlimited memlimit 2mb"]] {
        let mut driver = Driver::new("unlimited memlimit 1mb");
        driver.put_all(packet(1, 1000), 100);
        driver.wait(Span::from_millis(500));
        between.iter().for_each(|words| driver.change(words));
        driver.change("bandwidth 8mbit memlimit 1mb");
        let start = driver.now;
        let sent = driver.take_all().len() as u64;
        // Each takes 1 ms, and the last one goes when all others have gone.
        assert_eq!(driver.now.since(start), Span::from_millis(sent - 1), "{between:?}");
    }
}
