//! Every number of `tc -s` moves when it should, by as much as it should (facts A.13).

use simnel_core::packet::Flags;
use simnel_core::qdisc::DropReason;
use simnel_core::wire::AckView;
use simnel_core::Span;

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
