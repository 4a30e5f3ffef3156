//! PIE's arithmetic: the auto-tuning table, its bounds, the derandomised dice, the burst allowance.

use super::*;
use crate::packet::Flags;

fn law(params: &PieParams) -> Law {
    Law::new(params, 1514, 1514 * 1000, Arithmetic::LINUX)
}

/// A queue past its burst allowance, with this probability.
fn queue(prob: u64) -> PieState {
    PieState { prob, burst_time: 0, ..PieState::NEW }
}

/// Increase by one update, with a delay that stands 10 ms above target.
fn step(prob: u64) -> u64 {
    let law = law(&PieParams::default());
    let delay = law.target + units(Span::from_millis(10));
    let mut pie = PieState { qdelay: delay, qdelay_old: delay, ..queue(prob) };
    pie.update(&law, 100_000);
    pie.prob - prob
}

#[test]
fn the_tuning_table_at_every_decade_and_its_bounds() {
    // RFC 8033, section 4.2: below the bound the weights are divided by so much.
    let full = step(MAX_PROB / 10);
    let expected = (MAX_PROB / UNITS_PER_SECOND * 2 / 16) * units(Span::from_millis(10));
    assert_eq!(full, expected);
    for (parts, divisor) in
        [(10, 2), (100, 8), (1000, 32), (10_000, 128), (100_000, 512), (1_000_000, 2048)]
    {
        let bound = MAX_PROB / parts;
        let above = if divisor == 2 { 1 } else { divisor / 4 };
        for (prob, divisor) in [(bound, above), (bound - 1, divisor)] {
            let (step, wanted) = (step(prob), full / divisor);
            assert!(step <= wanted && step > wanted - wanted / 256, "{prob}: {step}, {wanted}");
        }
    }
    assert_eq!(step(0), step(MAX_PROB / 1_000_000 - 1), "no finer than a millionth");
}

#[test]
fn a_step_is_at_most_two_percent_from_ten_percent_on() {
    let law_capped = law(&PieParams::default());
    let second = units(Span::from_secs(1));
    // 200 ms after nothing: beta * 200 ms is a quarter.
    let jump = |law: &Law, prob, delay| {
        let mut pie = PieState { qdelay: delay, ..queue(prob) };
        pie.update(law, 100_000);
        pie.prob - prob
    };
    assert_eq!(jump(&law_capped, MAX_PROB / 10, second / 5), STEP);
    assert!(jump(&law_capped, MAX_PROB / 10 - 1, second / 5) > 5 * STEP);
    // Linux adds two more beyond 250 ms; FreeBSD does not.
    assert_eq!(jump(&law_capped, MAX_PROB / 10, second / 3), STEP + MAX_PROB / 50);
    let freebsd = law(&PieParams { flavour: Flavour::Freebsd, ..PieParams::default() });
    assert_eq!(jump(&freebsd, MAX_PROB / 10, second / 3), STEP);
    let uncapped = law(&PieParams { cap_drop: false, ..PieParams::default() });
    assert!(jump(&uncapped, MAX_PROB / 10, second / 5) > 10 * STEP);
}

#[test]
fn the_probability_stays_between_zero_and_one() {
    let exact = Law::new(&PieParams::default(), 1514, 0, Arithmetic::Exact);
    let mut pie = queue(MAX_PROB - 1);
    (pie.qdelay, pie.qdelay_old) = (units(Span::from_secs(9)), 0);
    pie.update(&exact, 100_000);
    assert_eq!(pie.prob, MAX_PROB);
    assert!(pie.qdelay_old > 0);
    // And down: to zero, where the allowance for bursts comes back.
    let mut rounds = 0;
    (pie.qdelay, pie.qdelay_old) = (0, 0);
    while pie.update(&exact, 0) {
        rounds += 1;
    }
    assert_eq!((pie.prob, pie.burst_time), (0, MAX_BURST));
    assert!((100..1000).contains(&rounds), "{rounds}");
}

#[test]
fn two_quiet_periods_take_a_sixty_fourth() {
    let law = law(&PieParams { alpha: 0, beta: 0, ..PieParams::default() });
    let mut pie = queue(MAX_PROB / 4);
    pie.update(&law, 0);
    assert_eq!(pie.prob, MAX_PROB / 4 - MAX_PROB / 4 / 64);
    // A backlog without any delay says that nothing has left: no change.
    let mut pie = queue(MAX_PROB / 4);
    pie.update(&law, 1514);
    assert_eq!(pie.prob, MAX_PROB / 4);
}

#[test]
fn drops_neither_cluster_nor_stay_away() {
    let law = law(&PieParams::default());
    let mut random = Random::new(3);
    let mut pie = PieState { qdelay: law.target, ..queue(MAX_PROB / 20) };
    let (mut gap, mut drops) = (0, 0);
    for _ in 0..100_000 {
        gap += 1;
        if pie.admit(&law, &Packet::new(0, 1514), 100_000, &mut random) == Verdict::Drop {
            // 0.85 / 0.05 and 8.5 / 0.05.
            assert!((17..=171).contains(&gap), "{gap}");
            (gap, drops) = (0, drops + 1);
        }
    }
    // About 20 more after the 17 that are free: half as often as the probability says.
    assert!((2400..3200).contains(&drops), "{drops}");
    let plain = Law::new(
        &PieParams { derandomise: false, ..PieParams::default() },
        1514,
        0,
        Arithmetic::LINUX,
    );
    let hit = |_| pie.admit(&plain, &Packet::new(0, 64), 100_000, &mut random) == Verdict::Drop;
    let drops = (0..100_000).map(hit).filter(|hit| *hit).count();
    assert!((4700..5300).contains(&drops), "{drops}");
}

#[test]
fn byte_mode_spares_small_packets() {
    let law = law(&PieParams { bytemode: true, derandomise: false, ..PieParams::default() });
    let mut random = Random::new(5);
    let mut pie = PieState { qdelay: law.target, ..queue(MAX_PROB / 4) };
    let mut drops = |len| {
        (0..20_000)
            .filter(|_| {
                let packet = &Packet::new(0, len);
                pie.admit(&law, packet, 100_000, &mut random) == Verdict::Drop
            })
            .count()
    };
    assert!((4700..5300).contains(&drops(1514)));
    assert!((200..300).contains(&drops(1514 / 20)));
}

#[test]
fn ecn_marks_up_to_ten_percent_only() {
    let law = law(&PieParams { ecn: true, derandomise: false, ..PieParams::default() });
    let mut random = Random::new(5);
    let mut seen = |prob, tos| {
        let mut pie = PieState { qdelay: law.target, ..queue(prob) };
        let mut verdicts = [0; 3];
        for _ in 0..1000 {
            let mut packet = Packet::new(0, 1514);
            (packet.flags, packet.tos) = (Flags::IPV4, tos);
            verdicts[pie.admit(&law, &packet, 100_000, &mut random) as usize] += 1;
        }
        verdicts
    };
    let [_, marked, dropped] = seen(MAX_PROB / 10, 2);
    assert!(marked > 50 && dropped == 0);
    let [_, marked, dropped] = seen(MAX_PROB / 10 + 1, 2);
    assert!(marked == 0 && dropped > 50);
    let [_, marked, dropped] = seen(MAX_PROB / 10, 0);
    assert!(marked == 0 && dropped > 50);
}

#[test]
fn small_queues_and_short_delays_are_left_alone() {
    let law = law(&PieParams { derandomise: false, ..PieParams::default() });
    let mut random = Random::new(5);
    let mut drops = |prob, qdelay, backlog| {
        let mut pie = PieState { qdelay, ..queue(prob) };
        let mut admit = |_| pie.admit(&law, &Packet::new(0, 1514), backlog, &mut random);
        (0..1000).map(&mut admit).filter(|verdict| *verdict == Verdict::Drop).count()
    };
    let half = law.target / 2;
    assert_eq!(drops(MAX_PROB / 5 - 1, half - 1, 100_000), 0);
    assert!(drops(MAX_PROB / 5, half - 1, 100_000) > 100);
    assert!(drops(MAX_PROB / 5 - 1, half, 100_000) > 100);
    assert_eq!(drops(MAX_PROB / 2, law.target, 2 * 1514 - 1), 0);
    assert!(drops(MAX_PROB / 2, law.target, 2 * 1514) > 300);
}

#[test]
fn a_burst_is_used_up_by_departures_in_linux_and_by_updates_in_freebsd() {
    let ms = |n: u64| Time(n * 1_000_000);
    let linux = law(&PieParams::default());
    let mut pie = PieState::NEW;
    pie.dequeued(&linux, ms(0), 1514, ms(10), 9000);
    assert_eq!(pie.burst_time, MAX_BURST);
    pie.dequeued(&linux, ms(0), 1514, ms(60), 9000);
    assert_eq!(pie.burst_time, MAX_BURST - units(Span::from_millis(50)) as u32);
    assert_eq!(pie.delay(), Span::from_millis(60));
    pie.dequeued(&linux, ms(0), 1514, ms(600), 0);
    assert_eq!((pie.burst_time, pie.delay()), (0, Span::ZERO));

    let freebsd = law(&PieParams { flavour: Flavour::Freebsd, ..PieParams::default() });
    let mut pie = PieState { qdelay: freebsd.target, ..PieState::NEW };
    pie.prob = 1;
    for _ in 0..9 {
        pie.update(&freebsd, 9000);
    }
    assert!(pie.burst_time > 0);
    pie.update(&freebsd, 9000);
    assert_eq!(pie.burst_time, 0);
}

#[test]
fn bursts_pass_whatever_the_probability() {
    // RFC 8033, section 4.4.
    let law = law(&PieParams { derandomise: false, ..PieParams::default() });
    for (burst_time, calm) in [(MAX_BURST, true), (1, true), (0, false)] {
        let mut pie = PieState { qdelay: law.target, burst_time, ..queue(MAX_PROB / 2) };
        assert_eq!(pie.is_calm(&law, 100_000), calm, "{burst_time}");
    }
}

#[test]
fn a_queue_that_was_quiet_twice_may_burst_again() {
    // Delays below half of the target, no probability, and a rate if one is to be known.
    let half = law(&PieParams::default()).target / 2;
    for (qdelay, qdelay_old, estimates, avg_dq_rate, again) in [
        (half - 1, half - 1, false, 0, true),
        (half, half - 1, false, 0, false),
        (half - 1, half, false, 0, false),
        (0, 0, true, 1000, true),
        (0, 0, true, 0, false),
    ] {
        let law = law(&PieParams { dq_rate_estimator: estimates, ..PieParams::default() });
        assert_eq!(law.estimates_rate(), estimates);
        let mut pie = PieState { qdelay, qdelay_old, avg_dq_rate, ..queue(0) };
        pie.update(&law, 0);
        assert_eq!(pie.burst_time, if again { MAX_BURST } else { 0 }, "{qdelay} {avg_dq_rate}");
    }
}

#[test]
fn a_queue_at_rest_has_nothing_to_forget() {
    let law = law(&PieParams::default());
    let old = |qdelay_old| PieState { qdelay_old, ..PieState::NEW };
    assert!(PieState::NEW.is_at_rest(&law) && old(law.target / 2 - 1).is_at_rest(&law));
    for pie in [
        old(law.target / 2),
        PieState { prob: 1, ..PieState::NEW },
        PieState { accu_prob: 1, ..PieState::NEW },
        PieState { qdelay: 1, ..PieState::NEW },
    ] {
        assert!(!pie.is_at_rest(&law), "{pie:?}");
    }
}

/// Chance may keep the dice from hitting until the sum alone decides; that is one signal, too.
#[test]
fn a_mark_that_the_sum_brought_is_one_mark() {
    let marks_of = |arithmetic| {
        let params = PieParams { ecn: true, ..PieParams::default() };
        let law = Law::new(&params, 1514, 1514 * 1000, arithmetic);
        let mut pie = PieState {
            qdelay: law.target,
            accu_prob: ACCU_HIGH - MAX_PROB / 20,
            ..queue(MAX_PROB / 20)
        };
        let packet = Packet { flags: Flags::IPV4, tos: 2, ..Packet::new(0, 1514) };
        let mut random = Random::new(3);
        let verdicts = (0..17).map(|_| pie.admit(&law, &packet, 100_000, &mut random));
        verdicts.filter(|verdict| *verdict == Verdict::Marked).count()
    };
    // At 5 % it takes 17 packets to 0.85.
    assert_eq!(marks_of(Arithmetic::Exact), 1);
    assert_eq!(marks_of(Arithmetic::LINUX), 17);
}

#[test]
fn a_loss_for_want_of_room_counts_as_a_drop() {
    let law = law(&PieParams::default());
    let mut random = Random::new(3);
    let mut pie = PieState { qdelay: law.target, ..queue(MAX_PROB / 20) };
    for _ in 0..50 {
        // 16 of 5 % are short of 0.85, again and again.
        for _ in 0..16 {
            let verdict = pie.admit(&law, &Packet::new(0, 1514), 100_000, &mut random);
            assert_eq!(verdict, Verdict::Pass);
        }
        pie.overflowed();
    }
    // From 0.85 on there may be a drop.
    let mut hits = (0..100).filter(|_| {
        let mut pie = PieState { qdelay: law.target, ..queue(ACCU_LOW) };
        pie.admit(&law, &Packet::new(0, 1514), 100_000, &mut random) == Verdict::Drop
    });
    assert!(hits.next().is_some());
}

#[test]
fn a_departure_rate_takes_a_threshold_of_bytes() {
    let ms = |n: u64| Time(n * 1_000_000);
    for (flavour, spent) in [(Flavour::Linux, 10), (Flavour::Freebsd, 0)] {
        let law = law(&PieParams { dq_rate_estimator: true, flavour, ..PieParams::default() });
        let measured = |bytes: u64, left| {
            let mut pie = PieState::NEW;
            pie.dequeued(&law, Time::ZERO, 1, ms(20), DQ_THRESHOLD);
            pie.dequeued(&law, Time::ZERO, bytes as u32 - 1, ms(30), left);
            (pie.departure_rate() > 0, pie.dq_count, MAX_BURST - pie.burst_time)
        };
        let burst = units(Span::from_millis(spent)) as u32;
        assert_eq!(measured(DQ_THRESHOLD - 1, 99_999), (false, DQ_THRESHOLD - 1, 0));
        assert_eq!(measured(DQ_THRESHOLD, DQ_THRESHOLD), (true, 0, burst));
        assert_eq!(measured(DQ_THRESHOLD, DQ_THRESHOLD - 1), (true, UNSET, burst));
        // Nothing begins with less to leave.
        let mut pie = PieState::NEW;
        pie.dequeued(&law, Time::ZERO, 1500, ms(20), DQ_THRESHOLD - 1);
        assert_eq!(pie.dq_count, UNSET);
    }
}

#[test]
fn only_beyond_250_ms_linux_adds_two_percent() {
    let law = law(&PieParams { alpha: 0, beta: 0, ..PieParams::default() });
    for (qdelay, added) in [(HIGH_DELAY, 0), (HIGH_DELAY + 1, MAX_PROB / 50)] {
        let mut pie = PieState { qdelay, qdelay_old: qdelay, ..queue(MAX_PROB / 3) };
        pie.update(&law, 100_000);
        assert_eq!(pie.prob - MAX_PROB / 3, added);
    }
}

#[test]
fn the_departure_rate_is_that_of_the_line() {
    let law = law(&PieParams { dq_rate_estimator: true, ..PieParams::default() });
    let mut pie = PieState::NEW;
    // 10 Mbit/s: 1.25 bytes a microsecond.
    for n in 1..1000u64 {
        pie.dequeued(&law, Time::ZERO, 1500, Time(n * 1_200_000), 30_000);
    }
    // The packet that starts a measurement counts too: eleven packets in the time of ten.
    let rate = pie.departure_rate();
    assert!((1_250_000..=1_400_000).contains(&rate), "{rate}");
    pie.update(&law, 30_000);
    assert!(pie.delay().0.abs_diff(24_000_000) < 3_000_000, "{:?}", pie.delay());
    // A short backlog ends the measurement and keeps the result.
    pie.dequeued(&law, Time::ZERO, 16_384, Time(2_000_000_000), 100);
    assert_eq!(pie.dq_count, UNSET);
    assert!(pie.departure_rate() > 0);
}

#[test]
fn on_off_sleeps_until_a_third_is_full() {
    let params = PieParams { on_off: true, derandomise: false, ..PieParams::default() };
    let law = Law::new(&params, 1514, 90_000, Arithmetic::Exact);
    let mut random = Random::new(5);
    let mut pie = PieState { qdelay: law.target, ..queue(MAX_PROB / 2) };
    let mut drops = |pie: &mut PieState, backlog| {
        let admit = |_| pie.admit(&law, &Packet::new(0, 1514), backlog, &mut random);
        (0..100).map(admit).filter(|verdict| *verdict == Verdict::Drop).count()
    };
    assert_eq!(drops(&mut pie, 29_999), 0);
    assert!(!pie.update(&law, 29_999), "asleep");
    assert!(drops(&mut pie, 30_000) > 20);
    assert!(drops(&mut pie, 29_999) > 20, "awake until it is quiet");
    (pie.qdelay, pie.qdelay_old, pie.prob) = (0, 0, 0);
    pie.update(&law, 0);
    assert!(!pie.active);
}

#[test]
fn many_updates_at_once_are_as_many_single_ones() {
    let mut random = Random::new(7);
    for round in 0..400 {
        let arithmetic = [Arithmetic::LINUX, Arithmetic::Exact][round % 2];
        let (alpha, beta) = (random.below(33), random.below(33));
        let dq_rate_estimator = random.below(4) == 0;
        let params = PieParams { alpha, beta, dq_rate_estimator, ..PieParams::default() };
        let law = Law::new(&params, 1514, 1 << 20, arithmetic);
        let mut delay = || units(Span::from_micros(1 << random.below(21)));
        let (qdelay, qdelay_old) = (delay(), delay());
        let most = if arithmetic == Arithmetic::LINUX { u64::MAX } else { MAX_PROB };
        let prob = (u64::from(random.u32()) << 32 >> random.below(60)).min(most);
        let avg_dq_rate = random.below(100_000);
        let begin = PieState { qdelay, qdelay_old, avg_dq_rate, ..queue(prob) };
        let backlog = u64::from(random.below(1 << 20)) * u64::from(random.below(4) > 0);
        // Of an empty queue only so many are taken.
        let most = if backlog == 0 { MAX_ROUNDS } else { 20_000 };
        let (mut single, mut all, rounds) = (begin, begin, random.below(most));
        let _ = (0..rounds).all(|_| single.update(&law, backlog));
        all.update_often(&law, backlog, rounds);
        assert_eq!(single, all, "{begin:?} {law:?} {rounds} rounds");
    }
}

#[test]
fn a_queue_of_other_updates_is_a_new_one_but_for_their_number() {
    assert_eq!(PieState::after(7), PieState { updates: 7, ..PieState::NEW });
    // Nor do quiet periods forget delays and updates.
    let law = law(&PieParams { dq_rate_estimator: true, ..PieParams::default() });
    let mut pie = PieState { updates: 7, qdelay: 3, avg_dq_rate: 100, ..queue(0) };
    pie.update(&law, 50);
    assert_eq!((pie.updates, pie.burst_time), (7, MAX_BURST));
    let qdelay = (50 << RATE_SHIFT) / 100;
    assert!(qdelay > 0);
    assert_eq!((pie.qdelay, pie.qdelay_old), (qdelay, 3));
}

/// Between two updates the probability moves by the same as long as it stays in its decade.
#[test]
fn strides_end_where_a_decade_does() {
    let law = law(&PieParams::default());
    for (prob, length, rises) in
        [(MAX_PROB / 2_000, 1, true), (MAX_PROB / 900, 1, false), (MAX_PROB / 20, 1_000, false)]
    {
        let length = MAX_PROB / 1_000_000 * length;
        let mut pie = queue(prob);
        let before = if rises { prob - length } else { prob + length };
        let times = pie.stride(&law, before, u32::MAX);
        let tuning = |prob| queue(prob).tuning();
        assert_eq!(tuning(pie.prob), tuning(prob), "{prob}");
        let next = if rises { pie.prob + 2 * length } else { pie.prob - 2 * length };
        assert_ne!(tuning(next), tuning(prob), "{prob}");
        assert_eq!(pie.prob.abs_diff(prob), u64::from(times) * length, "{prob}");
        let mut few = queue(prob);
        assert_eq!((few.stride(&law, before, 3), few.prob.abs_diff(prob)), (3, 3 * length));
    }
    // What falls to nothing may be quiet then, and begin anew.
    let length = MAX_PROB / 100_000_000;
    let mut pie = queue(5 * length);
    assert_eq!((pie.stride(&law, 6 * length, 9), pie.prob), (4, length));
}

/// RFC 8033, section 4.1, as Linux draws: what is below the probability is hit.
#[test]
fn a_draw_below_the_probability_hits() {
    let law = law(&PieParams { derandomise: false, ..PieParams::default() });
    let mut random = Random::new(5);
    let low = u64::from(random.u32());
    let drawn = (u64::from(random.u32()) << 32 | low) >> 8;
    for (prob, hits) in [(drawn, false), (drawn + 1, true)] {
        assert_eq!(queue(prob).hits(&law, 1_000, &mut Random::new(5)), hits);
    }
}
