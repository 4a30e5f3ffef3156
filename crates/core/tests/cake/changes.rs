//! Changes of settings, and all that they leave: counters, estimates, the schedule of the line.

use simnel_core::qdisc::Config;
use simnel_core::wire::AckView;
use simnel_core::Span;

use crate::driver::{packet, with, Driver};

/// Flows without and with a standing queue, over all tins.
fn flows(driver: &Driver) -> (u16, u16) {
    let of = |(sparse, bulk), tin: &simnel_core::qdisc::cake::TinStats| {
        (sparse + tin.sparse_flows, bulk + tin.bulk_flows)
    };
    driver.stats().tins.iter().fold((0, 0), of)
}

/// A flow that has sent a quantum and one that is new.
fn with_two_flows(words: &str) -> Driver {
    let mut driver = Driver::new(words);
    driver.put_all(packet(1, 1514), 5);
    driver.take();
    driver.take();
    driver.put(packet(2, 1514));
    assert_eq!(flows(&driver), (1, 1), "`{words}`");
    driver
}

/// A change of one of the settings that decide about a packet's queue sorts packets anew, and all
/// flows are new again. Other changes leave the flows as they are. Under limited savings all flows
/// with packets count as bulk.
#[test]
fn packets_are_sorted_anew_where_one_setting_moves_them_and_else_flows_stay() {
    const BASE: &str = "diffserv4 triple-isolate queues 64 memlimit 1mb";
    for (words, expected) in [
        ("besteffort triple-isolate queues 64 memlimit 1mb", (2, 0)),
        ("diffserv4 flows queues 64 memlimit 1mb", (2, 0)),
        ("diffserv4 triple-isolate queues 128 memlimit 1mb", (2, 0)),
        ("diffserv4 triple-isolate queues 64 memlimit 1mb host-load active", (2, 0)),
        ("diffserv4 triple-isolate queues 64 memlimit 1mb host-guard", (2, 0)),
        ("diffserv4 triple-isolate queues 64 memlimit 1mb savings 15kb", (0, 2)),
        (BASE, (1, 1)),
        ("diffserv4 triple-isolate queues 64 memlimit 1mb ack-filter wash ingress", (1, 1)),
        ("diffserv4 triple-isolate queues 64 memlimit 2mb rtt 50ms bandwidth 9mbit", (1, 1)),
    ] {
        let mut driver = with_two_flows(BASE);
        driver.change(words);
        assert_eq!(flows(&driver), expected, "`{words}`");
        driver.change(BASE);
        let same = expected == (1, 1);
        assert_eq!(flows(&driver), if same { (1, 1) } else { (2, 0) }, "from `{words}`");
        // The tins' counters stay where the tins do.
        let came: u64 = driver.stats().tins.iter().map(|tin| tin.sent_packets).sum();
        assert_eq!(came, if words.starts_with("diffserv4") { 6 } else { 0 }, "`{words}`");
    }
}

#[test]
fn an_estimate_outlives_what_does_not_concern_it() {
    let mut driver = Driver::new("bandwidth 20mbit autorate-ingress memlimit 1mb");
    let capacity = |driver: &Driver| driver.stats().capacity_estimate.0;
    driver.put_all(packet(1, 1000), 10);
    driver.wait(Span::from_millis(1));
    driver.put(packet(1, 1000));
    let learnt = capacity(&driver);
    assert_ne!(learnt, 2_500_000);
    driver.change("bandwidth 20mbit autorate-ingress memlimit 1mb rtt 50ms");
    assert_eq!(capacity(&driver), learnt);
    driver.change("bandwidth 30mbit autorate-ingress memlimit 1mb");
    assert_eq!(capacity(&driver), 3_750_000);
    driver.wait(Span::from_millis(1));
    driver.put(packet(1, 1000));
    assert_ne!(capacity(&driver), 3_750_000);
    driver.change("bandwidth 40mbit memlimit 1mb");
    assert_eq!(capacity(&driver), 5_000_000);
    driver.change("bandwidth 40mbit memlimit 1mb autorate-ingress");
    assert_eq!(capacity(&driver), 5_000_000);
}

#[test]
fn sizes_are_forgotten_with_another_overhead_or_on_request_once() {
    let mut driver = Driver::new("memlimit 1mb overhead 20");
    let sizes = |driver: &Driver| (driver.stats().min_network_size, driver.stats().max_adj_size);
    let none = (u16::MAX, 0);
    let put = |driver: &mut Driver| {
        driver.put(packet(1, 1000));
        sizes(driver)
    };
    let seen = put(&mut driver);
    assert_eq!(seen, (986, 1006));
    driver.change("memlimit 1mb overhead 20 rtt 50ms");
    assert_eq!(sizes(&driver), seen);
    driver.change("memlimit 1mb overhead 21");
    assert_eq!(sizes(&driver), none);
    assert_ne!(put(&mut driver), none);
    // As long as the link layer's header, but not measured from the network's.
    driver.change("memlimit 1mb");
    assert_eq!(sizes(&driver), none);
    let seen = put(&mut driver);
    let Config::Cake(params) = driver.cake.config() else { panic!() };
    let request = simnel_core::qdisc::cake::Params { forget_sizes: true, ..params };
    for (params, expected) in [(params, seen), (request, none)] {
        let changed = driver.cake.configure(&params.into(), driver.now, &mut driver.owner);
        assert_eq!((changed, sizes(&driver)), (Ok(()), expected));
        let Config::Cake(params) = driver.cake.config() else { panic!() };
        assert!(!params.forget_sizes, "a request is none for the next time");
    }
}

#[test]
fn a_filter_alone_knows_acknowledgements_that_wait() {
    let ack = |n: u32| AckView {
        flags: AckView::ACK,
        ack: n * 1_000,
        expendable_options: true,
        ..AckView::default()
    };
    let lost = |driver: &mut Driver| {
        driver.put_tcp(packet(3, 64), ack(5));
        driver.owner.dropped.len()
    };
    let mut driver = Driver::new("bandwidth 1mbit memlimit 1mb");
    for n in 1..=4 {
        driver.put_tcp(packet(3, 64), ack(n));
    }
    // Washing looks at each packet, too, and filters nothing.
    driver.change("bandwidth 1mbit memlimit 1mb wash");
    assert_eq!(lost(&mut driver), 0);
    driver.change("bandwidth 1mbit memlimit 1mb ack-filter");
    assert_eq!(lost(&mut driver), 1);
}

/// A driver that wakes late catches up, whatever was changed in between.
#[test]
fn a_change_takes_no_time_away_from_a_busy_line() {
    let mut driver = Driver::new("besteffort bandwidth 8mbit memlimit 1mb");
    driver.put_all(packet(1, 1000), 20);
    driver.take();
    driver.wait(Span::from_millis(5));
    driver.change("besteffort bandwidth 8mbit memlimit 1mb rtt 200ms");
    let at_once = (0..9).take_while(|_| driver.take_now().is_some()).count();
    // Due after 1, 2, 3, 4 and 5 ms.
    assert_eq!(at_once, 5);
}

/// The header's offset is a moving average, from zero.
#[test]
fn sizes_are_those_of_each_packet() {
    let mut driver = Driver::new("overhead 10 memlimit 1mb");
    let mut offset = 0u64;
    for (len, network_offset, adjusted) in
        [(1000, 14, 996), (1000, 14, 996), (1000, 18, 992), (500, 18, 492), (1000, 14, 996)]
    {
        let of = |p: &mut simnel_core::Packet| p.network_offset = network_offset;
        driver.put(with(packet(1, len), of));
        offset = offset - (offset >> 8) + ((u64::from(network_offset) << 16) >> 8);
        let sent = driver.take().unwrap();
        assert_eq!(sent.adj_len, adjusted, "{len} {network_offset}");
        assert_eq!(u64::from(driver.stats().avg_hdr_offset), (offset + 0x8000) >> 16);
    }
    let stats = driver.stats();
    assert_eq!((stats.min_network_size, stats.max_network_size), (482, 986));
    assert_eq!((stats.min_adj_size, stats.max_adj_size), (492, 996));
}

/// Arrivals that found no room in one call are counted as overruns; a change drops what it must.
#[test]
fn a_change_of_the_limit_overruns_nothing() {
    let mut driver = Driver::new("besteffort memlimit 10mb");
    driver.put_all(packet(1, 1514), 3_000);
    driver.change("besteffort memlimit 46080b");
    assert_eq!((driver.cake.backlog().packets, driver.lost().len()), (20, 2_980));
    assert_eq!(driver.stats().overruns, 0);
}
