//! The set rate, exactly: over hours, from 64 kbit/s to 100 Gbit/s.

use simnel_core::qdisc::DropReason;
use simnel_core::rate::{Arithmetic, ByteTime, Rate};
use simnel_core::shaper::deficit_clock::DeficitClock;
use simnel_core::{Packet, Span, Time};

use crate::driver::{packet, with, Driver};

const HOUR: u64 = 3_600_000_000_000;

/// Nanoseconds that `bytes` take at `bits` a second.
fn ideal(bytes: u64, bits: u64) -> u64 {
    (u128::from(bytes) * 1_000_000_000 / u128::from(bits / 8)) as u64
}

#[test]
fn no_drift_over_hours() {
    // Rates, lengths of packets such that a million of them take that long, and hours.
    for (bits, len, hours) in [
        (64_000, 1_514, 24),
        (100_000, 777, 24),
        (999_999, 1_514, 3),
        (10_000_000, 9_014, 3),
        (100_000_000, 65_550, 3),
        (1_000_000_007, 500_000, 1),
    ] {
        let mut driver = Driver::new(&format!("besteffort bandwidth {bits}bit"));
        let (begin, mut bytes) = (driver.now, 0u64);
        let small = |p: &mut Packet| p.truesize = 768;
        driver.put(with(packet(1, len), small));
        while driver.now.since(begin).0 < hours * HOUR {
            // Lengths vary, so that fractions of nanoseconds do not repeat.
            driver.put(with(packet(1, len - (bytes % 37) as u32), small));
            let sent = driver.take().expect("packets wait");
            // Whole nanoseconds, by a reciprocal of 44 bits.
            let (time, ideal) = (driver.now.since(begin).0, ideal(bytes, bits));
            assert!(time.abs_diff(ideal) <= 1 + (ideal >> 43), "{bits}: {time}, not {ideal}");
            bytes += u64::from(sent.len);
        }
    }
}

#[test]
fn no_drift_at_any_rate() {
    // The clock alone, for an hour each, at rates where that is millions of super-packets.
    for bits in [64_000, 1_234_568, 40_000_000_000, 99_999_999_992, 100_000_000_000] {
        let mut clock = DeficitClock::default();
        clock.set_rate(ByteTime::new(Rate::from_bits(bits), Arithmetic::Exact));
        clock.start(Time(0));
        let (mut bytes, mut len) = (0u64, 1_514);
        let step = (bits / 8 / 40_000).clamp(1, 500_000) as u32;
        while clock.next_due().0 < HOUR {
            clock.charge(len, true);
            bytes += u64::from(len);
            len = 64 + (len * 7 + 13) % step.max(1_451);
        }
        let time = ideal(bytes, bits);
        assert!(clock.next_due().0.abs_diff(time) <= 1 + (time >> 43), "{bits}");
    }
}

#[test]
fn a_late_driver_catches_up_and_an_idle_line_saves_nothing() {
    let mut driver = Driver::new("besteffort bandwidth 8mbit");
    let begin = driver.now;
    driver.put_all(packet(1, 1000), 20);
    // Woken every 3.5 ms only, it finds three or four packets due each time.
    let mut sent = 0;
    for _ in 0..4 {
        driver.wait(Span::from_micros(3_500));
        while driver.take_now().is_some() {
            sent += 1;
        }
    }
    assert_eq!((sent, driver.now.since(begin).0), (15, 14_000_000));
    driver.take_all();
    // Five idle seconds later, packets are a millisecond apart from the first one on.
    driver.wait(Span::from_secs(5));
    driver.put_all(packet(1, 1000), 5);
    let begin = driver.now;
    for n in 0..5 {
        driver.take();
        assert_eq!(driver.now.since(begin), Span::from_millis(n));
    }
}

#[test]
fn a_busy_spell_is_not_interrupted_by_being_short() {
    // An empty queue that fills before the last packet's time is over waits for that.
    let mut driver = Driver::new("besteffort bandwidth 8mbit");
    driver.put(packet(1, 1000));
    let begin = driver.now;
    driver.take();
    driver.wait(Span::from_micros(300));
    let overlimits = driver.cake.snapshot().totals.overlimits;
    driver.put(packet(1, 1000));
    assert_eq!(driver.cake.snapshot().totals.overlimits, overlimits + 1);
    assert!(driver.take_now().is_none());
    driver.take();
    assert_eq!(driver.now.since(begin), Span::from_millis(1));
}

#[test]
fn a_new_rate_holds_from_the_next_packet_on() {
    let mut driver = Driver::new("besteffort bandwidth 8mbit");
    driver.put_all(packet(1, 1000), 8);
    let begin = driver.now;
    driver.take();
    driver.change("besteffort bandwidth 80mbit");
    let times: Vec<u64> = (0..3)
        .map(|_| {
            driver.take();
            driver.now.since(begin).as_micros()
        })
        .collect();
    assert_eq!(times, [1_000, 1_100, 1_200]);
    driver.change("besteffort unlimited");
    for _ in 0..4 {
        assert!(driver.take_now().is_some());
    }
    assert_eq!(driver.drops(DropReason::Overlimit), 0);
}

#[test]
fn drops_cannot_hold_the_line_below_two_thirds() {
    // Ten times the rate comes in behind the bottleneck, from flows that never listen.
    let mut driver = Driver::new("besteffort bandwidth 8mbit ingress memlimit 50kb");
    let begin = driver.now;
    let mut sent = 0;
    for _ in 0..100_000 {
        driver.put(packet(1, 1000));
        driver.wait(Span::from_micros(100));
        sent += u32::from(driver.take_now().is_some());
    }
    // 10 s: 10,000 packets at the full rate.
    assert_eq!(driver.now.since(begin), Span::from_secs(10));
    assert!((6_600..=6_700).contains(&sent), "{sent}");
}
