//! Behind the bottleneck (`ingress`) every packet that arrived has used the line: what is dropped
//! is charged like what is sent.

use simnel_core::qdisc::DropReason;
use simnel_core::wire::AckView;
use simnel_core::{Span, Time};

use crate::driver::{packet, with, Driver};

/// Twice the rate of 8 Mbit/s (a byte a microsecond) arrives for `seconds`, of flows that do not
/// listen. Bytes sent and bytes dropped in the last half.
fn overload(words: &str, seconds: u64) -> (u64, u64) {
    let mut driver = Driver::new(words);
    let begin = driver.now;
    let (end, half) = (begin + Span::from_secs(seconds), begin + Span::from_secs(seconds / 2));
    let (mut sent, mut dropped) = (0, 0);
    let mut arrival = begin;
    let mut number = 0;
    while driver.now < end {
        match driver.cake.next_event().map(|next| next.max(driver.now)) {
            Some(next) if next <= arrival => {
                driver.now = next;
                let bytes = driver.take_now().map_or(0, |packet| u64::from(packet.len));
                let lost = driver.owner.dropped.drain(..).map(|(packet, _)| u64::from(packet.len));
                let lost: u64 = lost.sum();
                if driver.now >= half {
                    (sent, dropped) = (sent + bytes, dropped + lost);
                }
            }
            _ => {
                driver.now = arrival;
                driver.put(packet(number % 4, 1000));
                number += 1;
                arrival += Span::from_micros(500);
            }
        }
    }
    (sent, dropped)
}

#[test]
fn drops_of_the_aqm_take_their_part_of_the_rate() {
    let base = "besteffort bandwidth 8mbit memlimit 30mb";
    let (sent, dropped) = overload(base, 20);
    assert!(sent.abs_diff(10_000_000) < 20_000, "egress: {sent} bytes in 10 s");
    assert!(dropped > 100_000, "{dropped}");
    let (sent, dropped) = overload(&format!("{base} ingress"), 20);
    assert!(dropped > 100_000, "{dropped}");
    // Together they fill the line, unless that leaves less than two thirds for what is sent.
    let all = sent + dropped;
    assert!(sent >= 6_600_000, "ingress: {sent} bytes in 10 s");
    assert!(all.abs_diff(10_000_000) < 200_000 || sent < 6_800_000, "{sent} and {dropped}");
    assert!(sent < 9_900_000, "ingress: {sent} bytes in 10 s");
}

#[test]
fn overflow_is_charged() {
    for (words, charged) in [("egress", 0), ("ingress", 4)] {
        let mut driver = Driver::new(&format!("besteffort bandwidth 8mbit memlimit 5kb {words}"));
        // Room for two packets of 2304 bytes of memory; four go.
        driver.put_all(packet(1, 1000), 6);
        assert_eq!(driver.drops(DropReason::Overlimit), 4);
        let begin = driver.now;
        driver.take();
        driver.take();
        let second = driver.now.since(begin).0;
        // The failsafe clock forgives drops: at two thirds of the rate, 1.5 ms for the first.
        let expected = if charged == 0 { 1_000_000 } else { 1_500_000 };
        assert_eq!(second, expected, "{words}");
    }
}

#[test]
fn filtered_acknowledgements_are_charged() {
    for (words, expected) in [("egress", 100_000), ("ingress", 150_000)] {
        let words = format!("besteffort bandwidth 8mbit ack-filter-aggressive {words}");
        let mut driver = Driver::new(&words);
        for ack in [1_000, 2_000, 3_000] {
            let view = AckView { flags: AckView::ACK, ack, ..AckView::default() };
            let view = AckView { expendable_options: true, ..view };
            driver.put_tcp(packet(1, 100), view);
        }
        assert_eq!(driver.drops(DropReason::AckFilter), 2);
        driver.put(packet(2, 1000));
        let begin = driver.now;
        driver.take();
        driver.take();
        // Three times 100 bytes are charged, but one sent packet is forgiven to two thirds.
        assert_eq!(driver.now.since(begin).0, expected, "{words}");
    }
}

#[test]
fn each_bulk_flow_may_keep_two_packets_waiting() {
    // Eight flows whose packets wait 20 ms: above the target of 5 ms, but only 16 packets in all.
    let run = |words: &str| {
        let mut driver = Driver::new(&format!("besteffort bandwidth 10mbit {words}"));
        for flow in 0..8 {
            driver.put_all(packet(flow, 1514), 2);
        }
        for _ in 0..2_000 {
            let packet = driver.take().expect("packets wait");
            driver.put(packet);
            let lost: Vec<_> = driver.owner.dropped.drain(..).collect();
            for (packet, _) in lost {
                driver.put(packet);
            }
        }
        driver.drops(DropReason::Congested)
    };
    assert_eq!(run("ingress"), 0);
    assert!(run("egress") > 10);
}

/// After ten seconds the control law has thousands of packets to drop before the next one may go:
/// more than one call does. The calls that follow go on where it stopped, without a packet in
/// between. The shaper has been charged for what was dropped, but is not asked again.
#[test]
fn a_turn_that_takes_several_calls_is_one_turn() {
    for words in ["ingress bandwidth 8mbit", "egress bandwidth 8mbit", "unlimited"] {
        let mut driver = Driver::new(&format!("besteffort flows rtt 1ms memlimit 30mb {words}"));
        driver.put_all(packet(1, 100), 5_000);
        // Into a spell of signals, and late.
        for _ in 0..8 {
            driver.wait(Span::from_millis(3));
            driver.take_now();
        }
        driver.wait(Span::from_secs(10));
        let waits = |driver: &Driver| driver.cake.snapshot().totals.overlimits;
        let (before, waited, mut calls) = (driver.lost().len(), waits(&driver), 1);
        while driver.take_now().is_none() {
            calls += 1;
            let event = driver.cake.next_event();
            assert!(event.is_some_and(|at| at <= driver.now), "{words}: call {calls}, {event:?}");
        }
        let lost = driver.lost().len() - before;
        assert!(calls > 1 && lost > 4_000, "{words}: {calls} calls, {lost} lost");
        assert_eq!(waits(&driver), waited, "{words}");
    }
}

/// A turn that was cut short is over when nothing is left: the next packet waits for the shaper.
#[test]
fn a_turn_whose_packets_are_gone_is_over() {
    let mut driver = Driver::new("besteffort flows rtt 1ms memlimit 30mb ingress bandwidth 8mbit");
    driver.put_all(packet(1, 100), 5_000);
    for _ in 0..8 {
        driver.wait(Span::from_millis(3));
        driver.take_now();
    }
    driver.wait(Span::from_secs(10));
    assert!(driver.take_now().is_none() && driver.cake.next_event() == Some(Time::ZERO));
    driver.cake.reset(&mut driver.owner);
    assert_eq!(driver.cake.next_event(), None);
    driver.put_all(packet(1, 1000), 2);
    assert!(driver.take_now().is_some());
    let next = driver.cake.next_event();
    assert!(next > Some(driver.now) && driver.take_now().is_none(), "{next:?}");
}

/// A flow whose packets are dropped has had that part of its share. A flow that is marked instead,
/// and heeds it as little, gets more through. Both use the line equally.
#[test]
fn drops_are_paid_by_the_flow_that_lost() {
    let mut driver = Driver::new("besteffort bandwidth 8mbit ingress memlimit 30mb");
    let flows = [packet(1, 1000), with(packet(2, 1000), |p| p.tos = 2)];
    let mut used = [0u64; 2];
    let index = |packet: &simnel_core::Packet| usize::from(packet.flow == flows[1].flow);
    flows.iter().for_each(|flow| driver.put_all(*flow, 3_000));
    for _ in 0..2_000 {
        used[index(&driver.take().expect("packets wait"))] += 1;
    }
    let dropped = driver.owner.dropped.iter().filter(|(packet, _)| index(packet) == 0).count();
    assert_eq!(driver.owner.dropped.len(), dropped);
    assert!(dropped > 100, "{dropped}");
    let all = used[0] + dropped as u64;
    assert!(all.abs_diff(used[1]) <= 4, "{} sent and {dropped} lost beside {}", used[0], used[1]);
}

/// A flow that has had thousands of signals winds its count down when it comes back. If BLUE then
/// takes its packet, the next flow has its turn, which has as much to wind down.
#[test]
fn many_flows_that_wind_down_in_one_call_share_its_work() {
    const FLOWS: u32 = 16;
    let ecn = |flow, len| with(packet(flow, len), |p| p.tos = 2);
    let words = "besteffort flows rtt 1ms ingress bandwidth 1gbit memlimit 20mb";
    let mut driver = Driver::new(words);
    let full = driver.stats().memory_limit / packet(0, 100).truesize;
    let mut number = 0;
    let mut put_next = |driver: &mut Driver| {
        driver.put(ecn(number % FLOWS, 100));
        number += 1;
    };
    (1..full).for_each(|_| put_next(&mut driver));
    let least_count = |driver: &Driver| {
        let queue = |flow| driver.cake.class(driver.cake.queue_of(&packet(flow, 100))?);
        (0..FLOWS).map(|flow| queue(flow).map_or(0, |queue| queue.count)).min()
    };
    while least_count(&driver) < Some(1_100) {
        for _ in 0..1_000 {
            driver.take();
            put_next(&mut driver);
        }
    }
    // An overflow raises BLUE's probability by 1/256: it is certain of each flow.
    for _ in 0..FLOWS * 260 {
        driver.wait(Span::from_micros(60));
        put_next(&mut driver);
    }
    assert_eq!(driver.tin(0).unresponsive_flows, FLOWS as u16);
    driver.take_all();
    assert!(least_count(&driver) > Some(1_100), "{:?}", least_count(&driver));
    driver.wait(Span::from_secs(10));
    (0..FLOWS).for_each(|flow| driver.put_all(packet(flow, 1514), 2));
    driver.take_all();
    assert!(driver.drops(DropReason::Flood) >= u64::from(FLOWS));
}

/// Linux's `cake_dequeue`: a flow that lost its last packet has its turn in vain, and the tin is
/// chosen anew. What was dropped before has been charged to its tin.
#[test]
fn after_a_turn_in_vain_the_tin_is_chosen_anew() {
    let voice = |flow, len, truesize| {
        with(packet(flow, len), |p| (p.tos, p.truesize) = (46 << 2, truesize))
    };
    let mut driver = Driver::new("ingress diffserv3 bandwidth 8mbit memlimit 10kb");
    // Overflow makes the first flow lose what is sent next, too.
    driver.put_all(voice(1, 1_000, 2_500), 5);
    // The second flow loses its only packet.
    let lost = driver.put(voice(2, 9_000, 100));
    let third = driver.put(voice(3, 1_000, 50));
    let other = driver.put(with(packet(4, 1_000), |p| p.truesize = 50));
    driver.put(with(packet(4, 1_000), |p| p.truesize = 100));
    assert_eq!(driver.lost(), [1, lost]);
    // Its 9,000 bytes take voice 36 ms at a quarter of the rate.
    driver.wait(Span::from_millis(38));
    assert_eq!(driver.take_now().map(|packet| packet.handle), Some(other), "not {third}");
    assert_eq!(driver.lost(), [1, lost, 2]);
}
