//! RED's arithmetic: weights and tables as `tc` computes them, idle averages, even distances, the
//! gentle slope.

use super::*;
use crate::packet::Flags;
use crate::tick::Tick;

/// Wlog, Scell_log and the first entries of the table as recorded (golden/red).
#[test]
fn weights_and_tables_as_tc_computes_them() {
    let params = |min, burst, bits| RedParams {
        min,
        max: 3 * min,
        avpkt: 1000,
        burst,
        bandwidth: Rate::from_bits(bits),
        probability: 85_899_345,
        adaptive: false,
        signals: Signals::default(),
    };
    for (min, burst, bits, wlog, scell_log, ones, twos) in [
        (30_000, 50, 10_000_000, 5, 15, 13, 25),
        (10_000, 16, 8_000_000, 3, 13, 15, 29),
        (20_000, 55, 10_000_000, 6, 16, 13, 25),
    ] {
        let law = Law::new(&params(min, burst, bits)).unwrap();
        assert_eq!((law.wlog, law.scell_log), (wlog, scell_log));
        let first = |shift| law.shifts.iter().position(|s| *s == shift);
        assert_eq!((first(1), first(2)), (Some(ones), Some(twos)), "{min}");
        assert_eq!((law.shifts[0], law.shifts[255]), (0, 31));
    }
    assert_eq!(Law::new(&params(30_000, 10, 10_000_000)), Err(Unfit::Burst));
    let crossed = RedParams { max: 29_999, ..params(30_000, 50, 1_000_000) };
    assert_eq!(Law::new(&crossed), Err(Unfit::Range));
    let rare = RedParams { probability: 120_000, ..params(30_000, 50, 1_000_000) };
    assert_eq!(Law::new(&rare), Err(Unfit::Probability));
}

/// The kernel is told a weight and a table; a line that has them is found for all of `tc`.
#[test]
fn a_line_is_found_for_weight_and_table() {
    for (avpkt, bits) in [(1500, 100_000_000), (1000, 2_826_854), (500, 87_356_465), (1500, 64_000)]
    {
        let bandwidth = Rate::from_bits(bits);
        let params = RedParams { avpkt, burst: 200, bandwidth, ..setting().0 };
        let law = Law::new(&params).unwrap();
        let found = params.with_table(law.wlog(), law.scell_log(), law.shifts()).unwrap();
        let again = Law::new(&found).unwrap();
        assert_eq!((again.wlog(), again.scell_log()), (law.wlog(), law.scell_log()));
        assert_eq!(again.shifts(), law.shifts(), "{avpkt} bytes at {bits} bit/s");
    }
}

fn setting() -> (RedParams, Law) {
    let params = RedParams {
        min: 30_000,
        max: 90_000,
        avpkt: 1000,
        burst: 50,
        bandwidth: Rate::from_bits(10_000_000),
        probability: (0.1 * (1u64 << 32) as f64) as u32,
        adaptive: false,
        signals: Signals::default(),
    };
    (params, Law::new(&params).unwrap())
}

fn red(average: u64) -> (Law, RedState) {
    let (params, law) = setting();
    let red = RedState::new(&params, &law, Time::ZERO, Periodic::never());
    let red = RedState { average: average << law.wlog, idle_since: None, ..red };
    (law, red)
}

/// RedVerdict for a packet that comes to as much as is there on average.
fn arrival(law: &Law, red: &mut RedState, random: &mut Random) -> RedVerdict {
    let backlog = red.average(law);
    red.arrives(law, &Packet::new(0, 1000), backlog, Time(1), random)
}

#[test]
fn the_average_after_an_idle_time() {
    let (law, mut red) = red(60_000);
    let mut random = Random::new(1);
    let start = Time(5_000_000_000);
    let cell = Span::from_micros(1 << law.scell_log);
    let mut after = |cells: u64, half_cells: u64| {
        red.average = 60_000 << law.wlog;
        red.found_empty(start);
        // Only the first moment of idleness counts.
        red.found_empty(start + cell);
        let now = start + cell * cells + Span(cell.0 / 2 * half_cells);
        red.arrives(&law, &Packet::new(0, 1000), 0, now, &mut random);
        red.average(&law)
    };
    // Below one halving in a straight line, but never further than it; then by shifts.
    assert_eq!(after(0, 0), 60_000);
    assert_eq!(after(0, 1), 30_000);
    assert_eq!(after(1, 0), 30_000);
    assert_eq!(after(12, 1), 30_000);
    assert_eq!(after(13, 0), 30_000);
    assert_eq!(after(25, 0), 15_000);
    assert_eq!(after(254, 0), 60_000 >> law.shifts[254]);
    assert_eq!(after(100_000, 0), 0);
    red.average = 60_000 << law.wlog;
    red.found_empty(start);
    red.observe(&law, 0, start + Span(cell.0 / 4));
    assert_eq!(red.average(&law), 45_000);
    // The arrival that ends the idle time does not add the queue that it finds.
    red.average = 60_000 << law.wlog;
    red.found_empty(start);
    red.arrives(&law, &Packet::new(0, 1000), 90_000, start, &mut random);
    assert_eq!((red.average(&law), red.idle_since), (60_000, None));
}

#[test]
fn the_average_follows_the_queue() {
    let (law, mut red) = red(0);
    let mut random = Random::new(1);
    for n in 1..=200u64 {
        red.arrives(&law, &Packet::new(0, 1000), 20_000, Time(n), &mut random);
        // 1 - (1 - 1/32)^n of the way.
        let ideal = 20_000.0 * (1.0 - (31f64 / 32.0).powi(n as i32));
        assert!((red.average(&law) as f64 - ideal).abs() < 40.0, "{n}");
    }
}

#[test]
fn arrivals_below_min_are_admitted_at_once() {
    let (params, law) = setting();
    let timer = Periodic::new(Tick::Exact, Time::ZERO, ADAPT_EVERY, ADAPT_EVERY);
    for adaptive in [false, true] {
        let law = Law { adaptive, ..law.clone() };
        let mut red = RedState::new(&params, &law, Time::ZERO, timer);
        let (mut random, mut queue, mut short) = (Random::new(4), 0, 0);
        for n in 1..20_000 {
            let now = Time(n * 1_000_000);
            if random.below(50) == 0 {
                red.found_empty(now);
            }
            queue = (queue + u64::from(random.below(9_000))).saturating_sub(4_100) % 80_000;
            let (mut admitted, was_idle) = (red.clone(), red.idle_since.is_some());
            let is_due = adaptive && red.timer.is_due(now);
            let admits = admitted.admits(&law, queue, now);
            let verdict = red.arrives(&law, &Packet::new(0, 1000), queue, now, &mut random);
            if admits {
                assert_eq!((verdict, &admitted), (RedVerdict::Pass, &red), "{n}");
                short += 1;
            } else {
                let is_above = red.average >= law.min;
                assert!(was_idle || is_due || is_above, "{n}");
            }
        }
        assert!((5_000..19_000).contains(&short), "{short}");
    }
}

#[test]
fn from_min_on_packets_are_counted_and_the_first_is_not_hit() {
    for (average, count) in [(29_999, -1), (30_000, 0), (60_000, 0)] {
        let (law, mut red) = red(average);
        assert_eq!(arrival(&law, &mut red, &mut Random::new(1)), RedVerdict::Pass, "{average}");
        assert_eq!(red.count, count, "{average}");
    }
    // Half of an odd average is the lesser half, whether in a straight line or not further than it.
    let (law, red) = red(0);
    let third = Span::from_micros((1 << law.scell_log) / 3 + 1);
    for (average, left) in [(3, 1), (4, 3), (5, 4)] {
        let red = RedState { average, ..red.clone() };
        assert_eq!(red.after_idling(&law, third), left, "{average}");
    }
}

/// A weight alone leaves the size of packets open; with a table none but a line that has both will
/// do.
#[test]
fn what_is_found_for_a_weight_or_a_table_has_it() {
    let (params, _) = setting();
    let mut sizes = std::vec::Vec::new();
    for min in [0, 700, 3_000, 10_000] {
        for wlog in 1..12 {
            let of = RedParams { min, ..params };
            let Some(found) = of.with_weight(wlog) else { continue };
            assert_eq!(weight(min, found.burst, found.avpkt), Some(wlog), "{min} {wlog}");
            sizes.push(found.avpkt);
        }
    }
    assert!(sizes.contains(&1000) && sizes.contains(&500), "{sizes:?}");
    for (avpkt, rate, size) in [
        (1500, 37, 1500),
        (1500, 90, 1000),
        (500, 37, 1000),
        (64, 37, 64),
        (64, 90, 1000),
        (8000, 37, 8000),
        (8000, 900, 1500),
    ] {
        let slow = RedParams { avpkt, burst: 60_000 / avpkt, bandwidth: Rate(rate), ..params };
        let law = Law::new(&slow).unwrap();
        let found = params.with_table(law.wlog(), law.scell_log(), law.shifts()).unwrap();
        let again = Law::new(&found).unwrap();
        assert_eq!((found.avpkt, again.wlog()), (size, law.wlog()), "{avpkt} {rate}");
        assert_eq!((again.scell_log(), again.shifts()), (law.scell_log(), law.shifts()));
    }
}

/// Cells of 2^25 units: from the 64th on their times have run over.
#[test]
fn a_line_is_found_for_what_tc_makes_of_long_times() {
    let slow = RedParams { bandwidth: Rate::from_bits(9_000), ..setting().0 };
    let law = Law::new(&slow).unwrap();
    assert_eq!(law.scell_log(), 25);
    let mut table = *law.shifts();
    table[64..].fill(MAX_SHIFT);
    let found = slow.with_table(law.wlog(), 25, &table).unwrap();
    let again = Law::new(&found).unwrap();
    assert_eq!(again.scell_log(), 25);
    assert_eq!(again.shifts()[..64], law.shifts()[..64]);
    table[63] = MAX_SHIFT;
    assert_eq!(slow.with_table(law.wlog(), 25, &table), None);
    // Shorter cells have all their times.
    let law = Law::new(&RedParams { bandwidth: Rate::from_bits(64_000), ..slow }).unwrap();
    assert_eq!(law.scell_log(), 22);
    let mut table = *law.shifts();
    table[254] -= 1;
    assert_eq!(slow.with_table(law.wlog(), 22, &table), None);
}

/// Tables of newer versions of `tc`, for 3 Mbit/s, 950 Mbit/s, 10 Gbit/s, 10 Mbit/s with packets of
/// 1514 bytes, and 9 kbit/s.
#[test]
fn a_line_is_found_for_tables_of_ticks() {
    for (rate, avpkt) in [
        (375_000, 1000),
        (118_750_000, 1000),
        (1_250_000_000, 1000),
        (1_250_000, 1514),
        (1125, 1000),
    ] {
        let ticks = (avpkt * 125_000_000u64).div_ceil(8 * rate);
        let (scell_log, table) = idle_shifts_of_ticks(5, ticks.into()).unwrap();
        let found = setting().0.with_table(5, scell_log, &table).unwrap();
        let law = Law::new(&found).unwrap();
        let micros = u64::from(found.avpkt) * 1_000_000 / found.bandwidth.0;
        let expected = (avpkt as f64 * 1e6 / rate as f64).max(1.0);
        let most = 0.6f64.max(expected / 300.0);
        assert!((micros as f64 - expected).abs() <= most, "{rate}: {micros} {expected}");
        assert_eq!((law.wlog(), law.scell_log()), (5, scell_log), "{rate}");
    }
}

#[test]
fn a_line_is_found_for_the_table_of_packets_that_take_no_time() {
    let fast = RedParams { bandwidth: Rate::from_bits(10_000_000_000), ..setting().0 };
    let law = Law::new(&fast).unwrap();
    for shift in [0, MAX_SHIFT] {
        let mut table = [shift; SHIFTS];
        (table[0], table[255]) = (0, MAX_SHIFT);
        let found = fast.with_table(law.wlog(), 0, &table).unwrap();
        assert_eq!(Law::new(&found).unwrap(), law);
        assert_eq!(fast.with_table(law.wlog(), 1, &table), None);
    }
}

#[test]
fn a_queue_at_rest_has_no_average_and_counts_nothing() {
    let (_, red) = red(0);
    for (average, count, at_rest) in [(0, -1, true), (1, -1, false), (0, 0, false), (0, 3, false)] {
        assert_eq!(RedState { average, count, ..red.clone() }.is_at_rest(), at_rest);
    }
    // The first between the thresholds is hit: memory that Linux has only cleared.
    assert_eq!(RedState { count: -1, ..red.clone() }.cleared().count, 0);
}

#[test]
fn early_signals_are_marks_drops_or_none() {
    let (_, law) = setting();
    for (ecn, nodrop, tos, expected) in [
        (false, false, 2, RedVerdict::Early { marked: false }),
        (true, false, 2, RedVerdict::Early { marked: true }),
        (true, false, 0, RedVerdict::Early { marked: false }),
        (true, true, 2, RedVerdict::Early { marked: true }),
        (true, true, 0, RedVerdict::Spared),
    ] {
        let signals = Signals { ecn, nodrop, harddrop: false };
        let law = Law { signals, ..law.clone() };
        let (_, mut red) = red(60_000);
        let mut random = Random::new(1);
        let mut packet = Packet::new(0, 1000);
        (packet.flags, packet.tos) = (Flags::IPV4, tos);
        let mut verdicts =
            (0..100).map(|_| red.arrives(&law, &packet, 60_000, Time(1), &mut random));
        let signal = verdicts.find(|verdict| *verdict != RedVerdict::Pass);
        assert_eq!(signal, Some(expected));
    }
}

/// As with Linux's: from there on all, below none.
#[test]
fn where_min_is_max_the_average_is_below_or_beyond() {
    let law = Law::new(&RedParams { max: 30_000, ..setting().0 }).unwrap();
    for (average, verdict) in
        [(29_999, RedVerdict::Pass), (30_000, RedVerdict::Forced { marked: false })]
    {
        assert_eq!(arrival(&law, &mut red(average).1, &mut Random::new(1)), verdict);
    }
}

#[test]
fn signals_come_at_even_distances() {
    // In the middle of the band the chance is 5 %: distances are uniform in 1..=40.
    let (law, mut red) = red(60_000);
    let mut random = Random::new(1);
    let (mut gaps, mut gap) = (std::vec::Vec::new(), 0);
    for _ in 0..100_000 {
        gap += 1;
        if arrival(&law, &mut red, &mut random) != RedVerdict::Pass {
            gaps.push(core::mem::take(&mut gap));
        }
    }
    let (least, most) = (gaps[1..].iter().min().unwrap(), gaps[1..].iter().max().unwrap());
    assert!(*least == 1 && (19..=21).contains(most), "{least} {most}");
    let mean = 100_000 / gaps.len();
    assert!((10..=11).contains(&mean), "{mean}");
}

#[test]
fn thresholds_and_flags() {
    let mut random = Random::new(1);
    let (mut law, mut below) = red(29_999);
    assert_eq!(arrival(&law, &mut below, &mut random), RedVerdict::Pass);
    let mut above = |law: &Law, tos| {
        let (_, mut red) = red(90_000);
        let mut packet = Packet::new(0, 1000);
        (packet.flags, packet.tos) = (Flags::IPV4, tos);
        red.arrives(law, &packet, 90_000, Time(1), &mut random)
    };
    assert_eq!(above(&law, 2), RedVerdict::Forced { marked: false });
    law.signals.ecn = true;
    assert_eq!(above(&law, 2), RedVerdict::Forced { marked: true });
    assert_eq!(above(&law, 0), RedVerdict::Forced { marked: false });
    law.signals.nodrop = true;
    assert_eq!(above(&law, 0), RedVerdict::Spared);
    law.signals.harddrop = true;
    assert_eq!(above(&law, 2), RedVerdict::Forced { marked: false });
}

#[test]
fn adaptation_keeps_to_its_band_and_its_bounds() {
    let (mut params, _) = setting();
    params.adaptive = true;
    let law = Law::new(&params).unwrap();
    // The middle fifth: 54,000 to 66,000.
    let steer = |average: u64, rounds: u64| {
        let timer = Periodic::new(Tick::Exact, Time::ZERO, ADAPT_EVERY, ADAPT_EVERY);
        let mut red = RedState::new(&params, &law, Time::ZERO, timer);
        (red.average, red.idle_since) = (average << law.wlog, None);
        let now = Time(ADAPT_EVERY.0 * rounds);
        red.arrives(&law, &Packet::new(0, 1000), average, now, &mut Random::new(1));
        red.max_p()
    };
    // Per byte above `min`, to the nearest.
    let mut red = RedState::new(&params, &law, Time::ZERO, Periodic::never());
    red.timer = Periodic::new(Tick::Exact, Time::ZERO, ADAPT_EVERY, ADAPT_EVERY);
    (red.average, red.idle_since) = (80_000 << law.wlog, None);
    red.adapt(&law, Time::ZERO + ADAPT_EVERY);
    let ideal = f64::from(red.max_p) / f64::from(law.delta);
    assert_eq!(f64::from(red.step), ideal.round());
    for max_p in [100_000_000, 100_010_000, 100_020_000, 100_030_000, 100_050_000] {
        let timer = Periodic::new(Tick::Exact, Time::ZERO, ADAPT_EVERY, ADAPT_EVERY);
        let mut red = RedState { max_p, timer, ..red.clone() };
        red.adapt(&law, Time::ZERO + ADAPT_EVERY);
        let ideal = f64::from(red.max_p) / f64::from(law.delta);
        assert_eq!(f64::from(red.step), ideal.round(), "{max_p}");
    }
    let start = params.probability;
    assert_eq!(steer(54_000, 1), start);
    assert_eq!(steer(66_000, 1), start);
    assert_eq!(steer(66_001, 1), start + MAX_P_MIN);
    assert_eq!(steer(53_999, 1), start / 10 * 9);
    assert!(steer(89_000, 1000) > MAX_P_MAX && steer(89_000, 1000) <= MAX_P_MAX + MAX_P_MIN);
    assert!(steer(31_000, 1000) < MAX_P_MIN && steer(31_000, 1000) > MAX_P_MIN / 10 * 8);
}

mod simulators {
    use super::super::ns::{Law, NsParams, NsState};
    use super::*;

    #[test]
    fn what_is_not_set_is_computed() {
        let resolved = |mbit: u64, ms: u64| {
            let bandwidth = Rate::from_bits(mbit * 1_000_000);
            let rtt = Span::from_millis(ms);
            let (min, max, weight) =
                Law::new(&NsParams { bandwidth, rtt, ..NsParams::default() }).resolved();
            let q32 = (1u64 << 32) as f64;
            (min as f64 / q32, max as f64 / q32, weight as f64 / q32)
        };
        // 45 Mbit/s are 11,250 packets of 500 bytes: 56.25 in 5 ms.
        let (min, max, weight) = resolved(45, 100);
        assert_eq!((min, max), (28.125, 84.375));
        let ideal = 1.0 - (-1.0 / (10.0 * 0.1 * 11_250.0f64)).exp();
        assert!((weight / ideal - 1.0).abs() < 1e-4, "{weight} {ideal}");
        let (min, max, _) = resolved(1, 20);
        assert_eq!((min, max), (5.0, 15.0));
        assert_eq!(resolved(1, 20).2, resolved(1, 100).2, "100 ms at least");
        assert!(resolved(1, 200).2 < resolved(1, 100).2);
    }

    /// Share of signals while the average stands at `packets`.
    fn share(params: &NsParams, packets: u32) -> f64 {
        let law = Law::new(params);
        let mut red = NsState::new(params, Time::ZERO, Periodic::never());
        let mut random = Random::new(7);
        let mut arrive = |red: &mut NsState| {
            red.arrives(&law, &Packet::new(0, 500), packets, Time(1), &mut random)
        };
        (0..100_000).for_each(|_| {
            arrive(&mut red);
        });
        let signals = (0..100_000).filter(|_| arrive(&mut red) != RedVerdict::Pass).count();
        signals as f64 / 100_000.0
    }

    #[test]
    fn the_slope_is_gentle() {
        let fixed =
            NsParams { min: 10, max: 30, weight: 1 << 26, adaptive: false, ..NsParams::default() };
        let plain = NsParams { wait: false, ..fixed };
        // One over the mean distance, with the chance after n packets as ns-2 has it.
        let ideal = |p: f64, wait: bool| {
            let (mut left, mut mean) = (1.0, 0.0);
            for n in (1..).map(f64::from).take_while(|_| p > 0.0) {
                let spaced = match (wait, n * p) {
                    (true, np) if np < 1.0 => 0.0,
                    (true, np) if np < 2.0 => (p / (2.0 - np)).min(1.0),
                    (false, np) if np < 1.0 => (p / (1.0 - np)).min(1.0),
                    _ => 1.0,
                };
                mean += n * left * spaced;
                left *= 1.0 - spaced;
                if left < 1e-12 {
                    return 1.0 / mean;
                }
            }
            0.0
        };
        for (packets, chance) in [(9, 0.0), (19, 0.045), (29, 0.095), (45, 0.55), (60, 1.0)] {
            for (params, wait) in [(&plain, false), (&fixed, true)] {
                // Twice max is certain, waiting or not.
                let wanted = if chance == 1.0 { 1.0 } else { ideal(chance, wait) };
                let seen = share(params, packets);
                assert!((seen - wanted).abs() <= 0.02 * wanted, "{packets}: {seen} {wanted}");
            }
        }
        let steep = NsParams { gentle: false, ..plain };
        assert_eq!(share(&steep, 30), 1.0);
    }

    /// Adaptive RED (Floyd, Gummadi and Shenker 2001, figure 1) moves max_p every half second in
    /// which the average is out of the middle fifth. Above it max_p rises by 0.01, at most by a
    /// quarter of itself. Below it max_p falls by a tenth of itself.
    #[test]
    fn the_highest_chance_follows_the_average_within_its_bounds() {
        let q32 = (1u64 << 32) as f64;
        let params = NsParams { min: 10, max: 20, weight: u32::MAX, ..NsParams::default() };
        let steer = |probability: f64, adaptive, packets, rounds: u64| {
            let params = NsParams { probability: (probability * q32) as u32, adaptive, ..params };
            let law = Law::new(&params);
            let timer = Periodic::new(Tick::Exact, Time::ZERO, ADAPT_EVERY, ADAPT_EVERY);
            let mut red = NsState::new(&params, Time::ZERO, timer);
            let mut random = Random::new(3);
            for round in 0..=rounds {
                let now = Time(ADAPT_EVERY.0 * round + 1);
                red.arrives(&law, &Packet::new(0, 500), packets, now, &mut random);
            }
            red.max_p() as f64 / q32
        };
        for (probability, adaptive, packets, rounds, expected) in [
            (0.1, true, 13, 1, 0.09),
            (0.1, true, 15, 1, 0.1),
            (0.1, true, 17, 1, 0.11),
            (0.02, true, 17, 1, 0.025),
            (0.1, true, 17, 3, 0.13),
            (0.1, true, 30, 100, 0.5),
            (0.495, true, 30, 1, 0.5),
            (0.6, true, 30, 1, 0.6),
            (0.1, true, 1, 100, 0.01),
            (0.0105, true, 1, 1, 0.01),
            (0.005, true, 1, 1, 0.005),
            (0.1, false, 30, 100, 0.1),
        ] {
            let seen = steer(probability, adaptive, packets, rounds);
            assert!((seen - expected).abs() < 1e-6, "{packets} {rounds}: {seen} {expected}");
        }
    }

    #[test]
    fn marks_are_for_small_chances_and_for_those_who_understand_them() {
        let signals = Signals { ecn: true, ..Signals::default() };
        let params = NsParams {
            min: 10,
            max: 20,
            weight: u32::MAX,
            adaptive: false,
            signals,
            ..NsParams::default()
        };
        let signal = |params: &NsParams, packets, tos| {
            let law = Law::new(params);
            let mut red = NsState::new(params, Time::ZERO, Periodic::never());
            let mut random = Random::new(3);
            let mut packet = Packet::new(0, 500);
            (packet.flags, packet.tos) = (Flags::IPV4, tos);
            let arrive = |_| red.arrives(&law, &packet, packets, Time(1), &mut random);
            (0..1000).map(arrive).find(|verdict| *verdict != RedVerdict::Pass)
        };
        let harddrop = NsParams { signals: Signals { harddrop: true, ..signals }, ..params };
        let deaf = NsParams { signals: Signals::default(), ..params };
        for (params, packets, tos, expected) in [
            (params, 19, 2, RedVerdict::Early { marked: true }),
            (params, 19, 0, RedVerdict::Early { marked: false }),
            // From `max` on the chance is above a tenth.
            (params, 25, 2, RedVerdict::Early { marked: false }),
            (params, 50, 2, RedVerdict::Forced { marked: true }),
            (params, 50, 0, RedVerdict::Forced { marked: false }),
            (harddrop, 19, 2, RedVerdict::Early { marked: true }),
            (harddrop, 50, 2, RedVerdict::Forced { marked: false }),
            (deaf, 19, 2, RedVerdict::Early { marked: false }),
            (deaf, 50, 2, RedVerdict::Forced { marked: false }),
        ] {
            assert_eq!(signal(&params, packets, tos), Some(expected), "{packets} {tos}");
        }
    }

    #[test]
    fn the_weight_of_a_slow_line_is_far_from_linear() {
        // 1 - exp(-1 / (10 RTT C)), of one or two packets in ten round trips of 100 ms.
        for (packets, x) in [(1u64, 1.0f64), (2, 0.5), (4, 0.25)] {
            let params = NsParams { bandwidth: Rate(500 * packets), ..NsParams::default() };
            let weight = Law::new(&params).resolved().2 as f64 / (1u64 << 32) as f64;
            let ideal = 1.0 - (-x).exp();
            assert!((weight / ideal - 1.0).abs() < 1e-6, "{weight} {ideal}");
        }
    }

    #[test]
    fn the_average_after_an_idle_time_is_that_of_packets_passing() {
        let params = NsParams {
            bandwidth: Rate(500_000),
            weight: 1 << 24,
            adaptive: false,
            ..NsParams::default()
        };
        let law = Law::new(&params);
        let mut red = NsState::new(&params, Time::ZERO, Periodic::never());
        let mut random = Random::new(7);
        let mut arrive = |red: &mut NsState, packets, now| {
            red.arrives(&law, &Packet::new(0, 500), packets, now, &mut random);
            red.average() as f64 / (1u64 << 32) as f64
        };
        for _ in 0..5000 {
            arrive(&mut red, 20, Time(1));
        }
        // A packet passes in a millisecond: 300 of them, and the arrival itself.
        red.found_empty(Time(1));
        let average = arrive(&mut red, 0, Time(300_000_001));
        let ideal = 20.0 * (255f64 / 256.0).powi(301);
        assert!((average - ideal).abs() < 0.01, "{average} {ideal}");
    }
}
