//! Memory: its limit, and who loses a packet when it is reached (facts A.9).

use simnel_core::qdisc::{Device, DropReason};
use simnel_core::Span;

use crate::driver::{packet, with, Driver};

#[test]
fn the_limit_is_four_bandwidth_delay_products_within_bounds() {
    const MIB: u32 = 1 << 20;
    const ALL: u32 = 10_240 * 1_514;
    for (words, limit) in [
        ("", ALL),
        ("unlimited rtt 1s", ALL),
        ("bandwidth 1mbit", 4 * MIB),
        ("bandwidth 80mbit", 4 * MIB),
        ("bandwidth 100mbit", 5_000_000),
        ("bandwidth 100mbit rtt 50ms", 4 * MIB),
        ("bandwidth 20mbit satellite", 10_000_000),
        ("bandwidth 10gbit", ALL),
        ("memlimit 1mb", MIB),
        ("bandwidth 1mbit memlimit 1b", 1),
        ("bandwidth 10gbit memlimit 100mb", 100 * MIB),
        ("bandwidth 1mbit memlimit 32mb", 32 * MIB),
    ] {
        assert_eq!(Driver::new(words).stats().memory_limit, limit, "`{words}`");
    }
    let jumbo = Device { mtu: 9_014, ..Device::default() };
    assert_eq!(Driver::on("", &jumbo).stats().memory_limit, 10_240 * 9_014);
}

#[test]
fn memory_is_what_packets_take_and_stays_within_its_limit() {
    let mut driver = Driver::new("memlimit 100kb");
    for n in 0..1_000 {
        let packet = with(packet(n % 50, 100), |p| p.truesize = 500 + n * 7 % 4_000);
        driver.put(packet);
        let stats = driver.stats();
        assert!(stats.memory_used <= 102_400 + 4_500, "the newcomer is counted before drops");
    }
    let dropped: u64 = driver.owner.dropped.iter().map(|(p, _)| u64::from(p.truesize)).sum();
    let queued = (0..1_000u64).map(|n| 500 + n * 7 % 4_000).sum::<u64>() - dropped;
    assert!((96_000..=102_400).contains(&queued), "{queued}");
    assert_eq!(driver.drops(DropReason::Overlimit) as usize, driver.owner.dropped.len());
}

#[test]
fn the_longest_queue_loses_its_head() {
    // Room for 20 packets of 2304 bytes.
    let mut driver = Driver::new("besteffort memlimit 46080b");
    let long: Vec<u64> = (0..12).map(|_| driver.put(packet(1, 1514))).collect();
    let short: Vec<u64> = (0..8).map(|n| driver.put(packet(2 + n % 4, 1000))).collect();
    assert!(driver.lost().is_empty());
    // A newcomer to any queue pushes the oldest of the longest out.
    for (n, flow) in [2, 3, 7, 1].into_iter().enumerate() {
        driver.put(packet(flow, 1000));
        assert_eq!(driver.lost(), long[..=n]);
        assert_eq!(driver.owner.dropped[n].1, DropReason::Overlimit);
    }
    let sent: Vec<u64> = driver.take_all().iter().map(|packet| packet.handle).collect();
    assert!(short.iter().all(|handle| sent.contains(handle)));
}

#[test]
fn the_longest_is_sought_over_all_tins_and_by_bytes() {
    let mut driver = Driver::new("diffserv4 memlimit 46080b");
    let voice = with(packet(1, 1514), |p| p.tos = 46 << 2);
    let voices: Vec<u64> = (0..6).map(|_| driver.put(voice)).collect();
    // More packets, but fewer bytes.
    driver.put_all(with(packet(2, 100), |p| p.truesize = 2_304), 14);
    driver.put(packet(3, 1000));
    driver.put(packet(4, 1000));
    assert_eq!(driver.lost(), voices[..2]);
    let tins = driver.stats().tins;
    assert_eq!([tins[0], tins[1], tins[2], tins[3]].map(|tin| tin.drops), [0, 0, 0, 2]);
}

#[test]
fn the_heap_stays_right_while_queues_grow_and_shrink() {
    // A flood against the same queue kept by hand; the longest is unique by construction.
    let mut driver = Driver::new("besteffort memlimit 92160b");
    let mut lengths = [0i64; 8];
    for step in 0..4_000u32 {
        let flow = step * step % 7;
        lengths[flow as usize] += 1;
        // Lengths in bytes differ between flows, so that no two queues are alike.
        driver.put(with(packet(flow, 1_000 + flow), |p| p.truesize = 2_304));
        for (packet, _) in driver.owner.dropped.drain(..) {
            let flow = (packet.flow / 8 - 1) as usize;
            let bytes = |n: usize| lengths[n] * (1_000 + n as i64);
            // As in Linux the heap is near to right after the first drop.
            let longest = (0..7).map(bytes).max().unwrap();
            assert!(bytes(flow) * 10 >= longest * 6, "{} of {longest}", bytes(flow));
            lengths[flow] -= 1;
        }
        if step % 3 == 0 {
            let sent = driver.take().unwrap();
            lengths[(sent.flow / 8 - 1) as usize] -= 1;
            driver.owner.dropped.clear();
        }
    }
}

#[test]
fn blue_wakes_at_overflow_and_comes_to_rest_on_an_empty_queue() {
    let mut driver = Driver::new("besteffort bandwidth 10mbit memlimit 23040b");
    // A flood: BLUE's probability rises by 1/256 each 5 ms.
    for _ in 0..400 {
        for _ in 0..4 {
            driver.put(packet(1, 1514));
        }
        driver.wait(Span::from_micros(1_212));
        driver.take_now();
    }
    assert!(driver.drops(DropReason::Overlimit) > 500);
    assert_eq!(driver.tin(0).unresponsive_flows, 1);
    let flood = driver.drops(DropReason::Flood);
    assert!(flood > 10, "{flood}");
    driver.take_all();
    // Looked at while another flow sends, and found empty, it comes down by 1/4096 each 6 ms.
    let steps = (0..4_096).take_while(|_| {
        driver.put_all(packet(2, 1514), 2);
        driver.take_all();
        driver.wait(Span::from_millis(6));
        driver.tin(0).unresponsive_flows == 1
    });
    // It had risen to at most a half.
    assert!((500..2_048).contains(&steps.count()));
    assert_eq!(driver.tin(0).unresponsive_flows, 0);
}

/// A flow that is found empty each time others send takes BLUE's steps down there.
#[test]
fn blue_comes_to_rest_on_a_sparse_flow_as_well() {
    let mut driver = Driver::new("besteffort bandwidth 80mbit memlimit 5kb");
    let small = |flow| with(packet(flow, 100), |p| p.truesize = 768);
    driver.put_all(small(1), 7);
    assert_eq!((driver.lost().len(), driver.tin(0).unresponsive_flows), (1, 1));
    driver.take_all();
    // Its probability is 1/256: sixteen steps, each a target after the last one.
    for step in 0..16 {
        assert_eq!(driver.tin(0).unresponsive_flows, 1, "{step}");
        driver.wait(Span::from_millis(6));
        driver.put(small(1));
        driver.take_all();
        driver.put(small(10 + step));
        driver.take_all();
    }
    assert_eq!(driver.tin(0).unresponsive_flows, 0);
}
