//! `tbf` keeps its rate whatever is below, and the first packet its place.

use std::format;
use std::vec::Vec;

use super::*;
use crate::qdisc::{self, Discard};

fn tbf(words: &str) -> Tbf {
    let Ok(Config::Tbf(params)) = qdisc::parse(words) else { panic!("{words}") };
    Tbf::new(&params, &Device::default()).unwrap()
}

/// Follows `next_event` from `from` on; what left when.
fn drain(tbf: &mut Tbf, from: Time) -> Vec<(u64, u64)> {
    let (mut now, mut sent, mut idle) = (from, Vec::new(), 0);
    while let Some(event) = tbf.next_event() {
        now = now.max(event);
        match tbf.dequeue(now, &mut Discard) {
            Some(packet) => sent.push((packet.handle, now.0)),
            None => idle += 1,
        }
        assert!(idle < 1000, "no progress");
    }
    sent
}

#[test]
fn a_burst_leaves_at_once_and_the_rest_at_the_rate() {
    // A byte a microsecond.
    for below in ["limit 100kb", "limit 100kb pfifo limit 100", "codel", "cake besteffort"] {
        let mut tbf = tbf(&format!("tbf rate 8mbit burst 3000 {below}"));
        (0..6).for_each(|n| tbf.enqueue(&Packet::new(n, 1000), Time(0), &mut Discard));
        let left: Vec<_> = drain(&mut tbf, Time(0)).iter().map(|(_, at)| at / 1000).collect();
        assert_eq!(left, [0, 0, 0, 1000, 2000, 3000], "{below}");
        assert_eq!(tbf.snapshot().totals.sent_bytes, 6000);
        // Idleness fills the bucket again, and no more than it holds.
        (0..4).for_each(|n| tbf.enqueue(&Packet::new(n, 1000), Time(1 << 40), &mut Discard));
        let left = drain(&mut tbf, Time(1 << 40));
        assert_eq!(left[2].1, 1 << 40);
        assert_eq!(left[3].1, (1 << 40) + 1_000_000);
    }
}

#[test]
fn the_peak_rate_spreads_the_burst() {
    let mut tbf = tbf("tbf rate 8mbit burst 10000 peakrate 16mbit mtu 1500 limit 100kb");
    (0..10).for_each(|n| tbf.enqueue(&Packet::new(n, 1500), Time(0), &mut Discard));
    let left: Vec<_> = drain(&mut tbf, Time(0)).iter().map(|(_, at)| at / 1000).collect();
    assert_eq!(left[..6], [0, 750, 1500, 2250, 3000, 3750]);
    // 10,000 bytes and what has come since are spent after ten packets.
    assert_eq!(left[9], 6750);
}

#[test]
fn what_can_never_be_sent_is_dropped_and_super_packets_are_not() {
    let mut tbf = tbf("tbf rate 8mbit burst 2000 limit 100kb overhead 20");
    tbf.enqueue(&Packet::new(0, 2001), Time(0), &mut Discard);
    assert_eq!(tbf.snapshot().totals.dropped[DropReason::Overlimit as usize], 1);
    let mut large = Packet::new(1, 54 + 20 * 1000);
    (large.gso_size, large.gso_segs, large.header_len) = (1000, 20, 54);
    tbf.enqueue(&large, Time(0), &mut Discard);
    tbf.enqueue(&Packet::new(2, 980), Time(0), &mut Discard);
    let sent = drain(&mut tbf, Time(0));
    // 20 * 1074 bytes against the 2020 saved up, and then 1000 more.
    assert_eq!(sent, [(1, 0), (2, (20 * 1074 - 2020 + 1000) * 1000)]);
}

#[test]
fn another_discipline_below_takes_the_packets_over() {
    let mut tbf = tbf("tbf rate 8mbit burst 1000 codel");
    (0..5).for_each(|n| tbf.enqueue(&Packet::new(n, 1000), Time(0), &mut Discard));
    assert!(tbf.dequeue(Time(0), &mut Discard).is_some());
    // The next one is held.
    assert!(tbf.dequeue(Time(0), &mut Discard).is_none());
    assert_eq!(tbf.backlog(), Backlog { packets: 4, bytes: 4000 });
    let config = qdisc::parse("tbf rate 16mbit burst 1000 pfifo limit 3").unwrap();
    tbf.configure(&config, Time(0), &mut Discard).unwrap();
    assert_eq!((tbf.backlog().packets, tbf.config()), (3, config));
    let sent = drain(&mut tbf, Time(0));
    assert_eq!(sent, [(1, 500_000), (2, 1_000_000), (3, 1_500_000)]);
    let totals = tbf.snapshot().totals;
    assert_eq!((totals.enqueued_packets, totals.sent_packets, totals.drops()), (5, 4, 1));
}

#[test]
fn no_span_sees_more_than_the_rate_and_a_burst() {
    let mut tbf = tbf("tbf rate 8mbit burst 4000 overhead 20 linklayer atm bfifo limit 40kb");
    let mut random = crate::random::Random::new(5);
    let (mut now, mut sent) = (Time(0), Vec::new());
    for n in 0..4000 {
        // Offered a sixth more than the rate, with pauses in which the bucket fills.
        now += Span(u64::from(random.below(if n % 400 < 10 { 5_000_000 } else { 1_200_000 })));
        tbf.enqueue(&Packet::new(n, 60 + random.below(1400)), now, &mut Discard);
        while let Some(event) = tbf.next_event().filter(|event| *event <= now) {
            sent.extend(tbf.dequeue(now.max(event), &mut Discard).map(|p| (now.0, p.adj_len)));
        }
    }
    assert!(sent.len() > 2000 && tbf.snapshot().totals.drops() > 100);
    let burst = u64::from(tbf.framing.wire_len(4000));
    // A byte a microsecond: what has been sent, less the time that has passed, rises by no more.
    let (mut lowest, mut total) = (i64::MAX, 0);
    for (at, bytes) in sent {
        let at = at as i64;
        lowest = lowest.min(total * 1000 - at);
        total += i64::from(bytes);
        assert!(total * 1000 - at - lowest <= burst as i64 * 1000 + 1);
    }
}

#[test]
fn segments_of_super_packets_are_what_must_fit() {
    for (gso_size, passes) in [(1_434, true), (1_435, false)] {
        let mut tbf = tbf("tbf rate 8mbit burst 1500 limit 100kb");
        let mut packet = Packet::new(1, 5_000);
        (packet.gso_size, packet.gso_segs, packet.header_len) = (gso_size, 4, 66);
        tbf.enqueue(&packet, Time(0), &mut Discard);
        assert_eq!(tbf.backlog().packets, u32::from(passes), "{gso_size}");
    }
}

#[test]
fn one_discipline_stands_below_and_says_where_it_puts_packets() {
    let tbf = |words: &str| tbf(&format!("tbf rate 8mbit burst 5000 {words}"));
    let mut plain = tbf("limit 100kb");
    plain.enqueue(&Packet::new(1, 1000), Time(0), &mut Discard);
    let below = plain.below(0).map(|(class, below)| (class, below.backlog().packets));
    assert_eq!((below, plain.below(1).is_none()), (Some((1, 1)), true));
    assert_eq!(plain.placement(), None);
    let mut cake = tbf("cake besteffort");
    cake.enqueue(&Packet::new(1, 1000), Time(0), &mut Discard);
    assert!(cake.dequeue(Time(0), &mut Discard).is_some());
    assert!(cake.placement().is_some());
}
