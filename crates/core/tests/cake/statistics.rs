//! Every number of `tc -s` moves when it should, by as much as it should (facts A.13).

use simnel_core::packet::Flags;
use simnel_core::qdisc::cake::{Stats, TinStats};
use simnel_core::qdisc::{self, Config, Detail, DropReason};
use simnel_core::wire::AckView;
use simnel_core::{Rate, Span};

use crate::driver::{packet, with, Driver};

#[test]
fn packets_and_bytes_in_out_and_waiting() {
    let mut driver = Driver::new("diffserv4 bandwidth 10mbit");
    driver.put_all(packet(1, 1000), 3);
    driver.put_all(with(packet(2, 200), |p| p.tos = 46 << 2), 2);
    let totals = driver.cake.snapshot().totals;
    assert_eq!((totals.enqueued_packets, totals.sent_packets, totals.sent_bytes), (5, 0, 0));
    // A tin's "sent" is what came in. Listed: Bulk, Best Effort, Video, Voice.
    let tins = driver.stats().tins;
    assert_eq!((tins[1].sent_packets, tins[1].sent_bytes, tins[1].backlog_bytes), (3, 3000, 3000));
    assert_eq!((tins[3].sent_packets, tins[3].sent_bytes, tins[3].backlog_bytes), (2, 400, 400));
    assert_eq!((tins[0].sent_packets, tins[2].backlog_bytes), (0, 0));
    assert_eq!((tins[1].max_pkt_len, tins[3].max_pkt_len, tins[0].max_pkt_len), (1000, 200, 0));
    let backlog = driver.cake.backlog();
    assert_eq!((backlog.packets, backlog.bytes), (5, 3400));
    let sent: Vec<u32> = (0..3).map(|_| driver.take().unwrap().len).collect();
    let totals = driver.cake.snapshot().totals;
    let bytes = u64::from(sent.iter().sum::<u32>());
    assert_eq!((totals.sent_packets, totals.sent_bytes), (3, bytes));
    assert_eq!(driver.cake.backlog().bytes, 3400 - bytes);
    let in_tins: u64 = driver.stats().tins.iter().map(|tin| tin.backlog_bytes).sum();
    assert_eq!(in_tins, 3400 - bytes);
}

#[test]
fn delays_are_moving_averages() {
    let mut driver = Driver::new("besteffort");
    let (mut average, mut peak, mut base) = (0u64, 0u64, 0u64);
    let follow = |value: &mut u64, sample: u64, shift: u32| {
        *value = *value - (*value >> shift) + (sample >> shift);
    };
    for n in 0..500u64 {
        let sojourn = 1_000 + n * 7_919 % 100_000;
        driver.put(packet(1, 1000));
        driver.wait(Span(sojourn));
        driver.take_now();
        follow(&mut average, sojourn, 8);
        let rises = sojourn > peak;
        follow(&mut peak, sojourn, if rises { 2 } else { 8 });
        let falls = sojourn < base;
        follow(&mut base, sojourn, if falls { 2 } else { 8 });
        let tin = driver.tin(0);
        let shown = [tin.avg_delay, tin.peak_delay, tin.base_delay];
        assert_eq!(shown, [average, peak, base].map(Span), "packet {n}");
    }
    assert!(base < average && average < peak);
}

#[test]
fn marks_drops_and_acknowledgements_by_reason() {
    let mut driver = Driver::new("besteffort bandwidth 10mbit ack-filter");
    // A standing queue of 100 packets, half of flows that understand marks.
    let ect = with(packet(1, 1514), |p| p.tos = 2);
    driver.put_all(ect, 100);
    driver.put_all(packet(2, 1514), 100);
    let mut marked = 0;
    while let Some(sent) = driver.take() {
        assert!(!sent.flags.has(Flags::MARKED) || sent.flow == ect.flow);
        marked += u32::from(sent.flags.has(Flags::MARKED));
    }
    assert!(driver.owner.dropped.iter().all(|(packet, _)| packet.flow != ect.flow));
    let (totals, tin) = (driver.cake.snapshot().totals, driver.tin(0));
    assert!(marked > 0 && tin.drops > 0);
    assert_eq!((tin.ecn_mark, totals.marked), (marked, u64::from(marked)));
    assert_eq!(u64::from(tin.drops), totals.dropped[DropReason::Congested as usize]);
    assert_eq!(tin.ack_drops, 0);
    for ack in 1..=5 {
        let view = AckView { flags: AckView::ACK, expendable_options: true, ..AckView::default() };
        driver.put_tcp(packet(3, 64), AckView { ack: ack * 1_000, ..view });
    }
    let (totals, now) = (driver.cake.snapshot().totals, driver.tin(0));
    assert_eq!((now.ack_drops, now.drops), (3, tin.drops));
    assert_eq!(totals.dropped[DropReason::AckFilter as usize], 3);
    assert_eq!(totals.drops(), u64::from(now.ack_drops + now.drops));
}

#[test]
fn overlimits_count_waiting_for_the_shaper() {
    let mut driver = Driver::new("besteffort bandwidth 8mbit");
    let overlimits = |driver: &Driver| driver.cake.snapshot().totals.overlimits;
    driver.put_all(packet(1, 1000), 3);
    driver.take_now();
    assert_eq!(overlimits(&driver), 0);
    assert!(driver.take_now().is_none() && driver.take_now().is_none());
    assert_eq!(overlimits(&driver), 2);
    driver.wait(Span::from_millis(1));
    assert!(driver.take_now().is_some());
    assert_eq!(overlimits(&driver), 2);
}

#[test]
fn memory_used_is_the_most_ever() {
    let mut driver = Driver::new("memlimit 1mb");
    driver.put_all(packet(1, 1514), 10);
    driver.take_all();
    assert_eq!(driver.stats().memory_used, 23_040);
    driver.put_all(packet(1, 1514), 3);
    assert_eq!(driver.stats().memory_used, 23_040);
    assert_eq!(driver.stats().memory_limit, 1 << 20);
}

#[test]
fn a_reset_empties_the_queue_and_keeps_the_counters() {
    let mut driver = Driver::new("diffserv4 bandwidth 10mbit");
    driver.put_all(packet(1, 1514), 40);
    driver.put_all(with(packet(2, 200), |p| p.tos = 46 << 2), 10);
    for _ in 0..20 {
        driver.take();
    }
    let (before, tins) = (driver.cake.snapshot().totals, driver.stats().tins);
    let waiting = u64::from(driver.cake.backlog().packets);
    driver.cake.reset(&mut driver.owner);
    let after = driver.cake.snapshot();
    assert_eq!(after.totals.dropped[DropReason::Reset as usize], waiting);
    assert_eq!(after.totals.sent_packets, before.sent_packets);
    assert_eq!((after.backlog.packets, after.backlog.bytes), (0, 0));
    assert_eq!(driver.cake.next_event(), None);
    for (tin, was) in driver.stats().tins.iter().zip(tins) {
        assert_eq!((tin.sparse_flows, tin.bulk_flows, tin.backlog_bytes), (0, 0, 0));
        assert_eq!((tin.sent_packets, tin.drops), (was.sent_packets, was.drops));
    }
    // It works as new, and owes nothing.
    driver.put(packet(1, 1514));
    assert!(driver.take_now().is_some());
}

/// Counts of parallel queues add up; of delays and sizes the extremes stay.
#[test]
fn statistics_of_parallel_queues_are_joined() {
    let tin = |n: u32| TinStats {
        sent_bytes: (n * 1_000).into(),
        sent_packets: (n * 3).into(),
        backlog_bytes: (n * 50).into(),
        dropped_bytes: (n * 9).into(),
        peak_delay: Span(u64::from(n) * 70),
        avg_delay: Span(u64::from(n) * 7),
        base_delay: Span(u64::from(n)),
        way_direct_hits: n,
        way_indirect_hits: 10 * n,
        way_misses: 100 * n,
        way_collisions: 2 * n,
        drops: 4 * n,
        ecn_mark: 5 * n,
        ack_drops: 6 * n,
        sparse_flows: n as u16,
        bulk_flows: 2 * n as u16,
        unresponsive_flows: 3 * n as u16,
        max_pkt_len: 500 * n as u16,
        ..TinStats::default()
    };
    let of = |n: u32, sizes: (u16, u16)| Stats {
        memory_used: n,
        memory_limit: 100,
        overruns: n,
        min_network_size: sizes.0,
        max_network_size: sizes.1,
        min_adj_size: sizes.0 + 1,
        max_adj_size: sizes.1 + 1,
        avg_hdr_offset: n as u16,
        tin_count: 1,
        tins: [tin(n); 8],
        ..Stats::default()
    };
    let mut all = of(1, (60, 1400));
    all.join(&of(2, (70, 1500)));
    let mut tins = [tin(3); 8];
    for joined in &mut tins {
        (joined.peak_delay, joined.avg_delay, joined.base_delay) = (Span(140), Span(14), Span(2));
        joined.max_pkt_len = 1_000;
    }
    let avg_hdr_offset = 2;
    let memory_limit = 200;
    assert_eq!(all, Stats { memory_limit, avg_hdr_offset, tins, ..of(3, (60, 1500)) });
}

#[test]
fn overruns_are_shown_where_there_are_any() {
    let mut driver = Driver::new("memlimit 5kb");
    driver.put_all(packet(1, 1514), 9);
    assert!(driver.drops(DropReason::Overlimit) > 0);
    for overruns in [0, 7] {
        let mut snapshot = driver.cake.snapshot();
        let Detail::Cake(stats) = &mut snapshot.detail else { panic!() };
        // Room was made each time.
        assert_eq!(stats.overruns, 0);
        stats.overruns = overruns;
        let (mut text, mut json) = (String::new(), String::new());
        qdisc::show_own(&snapshot, &mut text).unwrap();
        qdisc::show_own_json(&snapshot, &mut json).unwrap();
        assert_eq!(text.contains(" memory overruns: 7\n"), overruns == 7, "{text}");
        assert_eq!(json.contains(r#""memory_overruns":7,"#), overruns == 7, "{json}");
        assert!(overruns == 7 || !(text + &json).contains("overruns"));
    }
}

/// Too much for the memory, then a queue that stands: each drop is of bytes that came in.
#[test]
fn what_tins_let_go_is_what_was_sent() {
    let mut driver = Driver::new("diffserv4 bandwidth 8mbit memlimit 230400b");
    for n in 0..400 {
        driver.put(with(packet(n % 7, 600 + n), |p| p.tos = [0, 8, 34, 46][n as usize % 4] << 2));
    }
    for _ in 0..600 {
        driver.wait(Span::from_millis(1));
        driver.take_now();
        let stats = driver.stats();
        let let_go: u64 = stats.tins.iter().map(TinStats::released_bytes).sum();
        assert_eq!(let_go, driver.cake.snapshot().totals.sent_bytes);
    }
    assert!(driver.drops(DropReason::Overlimit) > 10 && driver.drops(DropReason::Congested) > 1);
}

/// Books of tins and packets agree whatever becomes of these.
#[test]
fn the_backlogs_of_tins_are_those_of_their_packets() {
    let mut driver = Driver::new("diffserv4 bandwidth 8mbit memlimit 23040b");
    for n in 0..60 {
        driver.put(with(packet(n % 7, 600 + n), |p| p.tos = [0, 8, 34, 46][n as usize % 4] << 2));
        if n % 3 == 0 {
            driver.wait(Span::from_millis(3));
            driver.take_now();
        }
        let in_tins: u64 = driver.stats().tins.iter().map(|tin| tin.backlog_bytes).sum();
        assert_eq!(in_tins, driver.cake.backlog().bytes, "packet {n}");
    }
    assert!(driver.drops(DropReason::Overlimit) > 10);
}

#[test]
fn questions_about_settings_are_answered() {
    let config = |words: &str| qdisc::parse(&format!("cake {words}")).unwrap();
    let autorate = config("bandwidth 1mbit autorate-ingress ack-filter");
    let rated = autorate.with_rate(Rate(777), |_| 0).expect("a rate");
    let Config::Cake(params) = rated else { panic!() };
    // A rate that is set is not estimated.
    assert_eq!((params.bandwidth, params.autorate_ingress), (Rate(777), false));
    for (words, wants) in [("", false), ("ack-filter", true), ("ack-filter-aggressive", true)] {
        assert_eq!(config(words).wants_acks(), wants, "{words}");
    }
    for (word, expected) in [
        ("0x", "cannot be used"),
        ("09", "cannot be used"),
        ("0x+f", "cannot be used"),
        ("0x1ffffffff", "out of range"),
        ("", "must be followed"),
    ] {
        let error = qdisc::parse(&format!("cake fwmark {word}")).unwrap_err().to_string();
        assert!(error.contains(expected), "{word}: {error}");
    }
}
