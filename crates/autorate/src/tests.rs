//! The controller on a fluid line: rates, a queue, probes; and arbitrary input.

use std::vec::Vec;

use proptest::prelude::*;

use super::*;

const MBIT: u64 = 125_000;

fn limits(floor: u64, ceiling: u64) -> Option<Limits> {
    Some(Limits { floor: Rate(floor * MBIT), ceiling: Rate(ceiling * MBIT) })
}

/// One direction with endless load, before (upload) or behind (download) a line.
#[derive(Clone)]
struct Line {
    which: usize,
    controller: Controller,
    now: Time,
    /// Seconds of queue at the line, and RTT without it.
    queue: f64,
    base: Span,
    rate: u64,
    silent: Vec<u8>,
}

impl Line {
    fn new(which: usize) -> Line {
        let mut both = [None; 2];
        both[which] = limits(2, 40);
        let settings = Settings { limits: both, reflectors: 6, active: 4 };
        Line {
            which,
            controller: Controller::new(&settings, Time::ZERO),
            now: Time::ZERO,
            queue: 0.0,
            base: Span::from_millis(30),
            rate: 10 * MBIT,
            silent: Vec::new(),
        }
    }

    /// An interval at a capacity in Mbit/s, with or without load. Download senders offer 2 % more
    /// than the set rate, and what the line cannot carry waits before it.
    fn step(&mut self, capacity: u64, load: bool) {
        let seconds = INTERVAL.0 as f64 / 1e9;
        let capacity = capacity * MBIT;
        let offered = if load { self.rate as f64 } else { 0.0 };
        let offered = if self.which == DOWN { offered * 1.02 } else { offered };
        let growth = (offered - capacity as f64) / capacity as f64 * seconds;
        let carried = if self.queue + growth > 0.0 { capacity as f64 } else { offered };
        self.queue = (self.queue + growth).clamp(0.0, 0.5);
        let passed = if self.which == UP { offered } else { carried };
        let rate = self.rate as f64;
        let seen = Seen {
            arrived: (passed * seconds) as u64,
            released: (passed.min(rate) * seconds) as u64,
            backlog: if load && passed >= rate { 20_000 } else { 0 },
        };
        self.tick(seen);
    }

    /// An interval in which our queue saw this.
    fn tick(&mut self, seen: Seen) {
        self.now += INTERVAL;
        let rtt = self.base + Span((self.queue * 1e9) as u64);
        for reflector in self.controller.active().collect::<Vec<u8>>() {
            if self.silent.contains(&reflector) {
                self.controller.lost(reflector, self.now);
            } else {
                self.controller.answer(reflector, rtt, self.now);
            }
        }
        let mut both = [Seen::default(); 2];
        both[self.which] = seen;
        let decision = self.controller.tick(self.now, both);
        self.rate = decision.rates[self.which].expect("a shaped direction").bytes();
    }

    /// A line of 20 Mbit/s whose rate was found and whose queue is gone.
    fn at_rest(which: usize) -> Line {
        let mut line = Line::new(which);
        line.run(20, 20, true);
        for _ in 0..400 {
            let state = line.controller.state();
            let is_calm = state.delay.is_some_and(|delay| delay < Span::from_millis(1));
            if is_calm && state.phases[which] == Some(Phase::Holding) {
                return line;
            }
            line.step(20, true);
        }
        panic!("{which}: no rest in 20 s");
    }

    fn run(&mut self, seconds: u64, capacity: u64, load: bool) -> Vec<(u64, f64)> {
        (0..seconds * 20)
            .map(|_| {
                self.step(capacity, load);
                (self.rate, self.queue)
            })
            .collect()
    }
}

/// Rates begin at those that were found before, as far as limits allow; else in the middle.
#[test]
fn rates_begin_where_they_are_found() {
    let settings = Settings { limits: [limits(2, 18), limits(10, 90)], reflectors: 1, active: 1 };
    let begun = |found: [Option<u64>; 2]| {
        let found = found.map(|mbit| mbit.map(|mbit| Rate(mbit * MBIT)));
        let mut controller = Controller::new(&settings, Time::ZERO).beginning_at(found);
        controller.tick(Time::ZERO, [Seen::default(); 2]).rates.map(|rate| rate.unwrap().0 / MBIT)
    };
    assert_eq!(begun([None, None]), [6, 30]);
    assert_eq!(begun([Some(5), Some(70)]), [5, 70]);
    assert_eq!(begun([Some(1), Some(1_000)]), [2, 90]);
}

#[test]
fn a_halving_is_answered_within_a_second() {
    for which in [UP, DOWN] {
        let mut line = Line::new(which);
        line.run(20, 20, true);
        assert!(line.rate >= 17 * MBIT, "{which}: {} of 20 Mbit/s", line.rate * 8);
        let after = line.run(5, 10, true);
        let answered = after.iter().position(|(rate, _)| *rate <= 10 * MBIT).expect("an answer");
        assert!(answered < 20, "{which}: {answered} intervals");
        assert!(after[40..].iter().all(|(_, queue)| *queue < 0.05), "{which}: {after:?}");
    }
}

#[test]
fn a_doubling_is_found() {
    for which in [UP, DOWN] {
        let mut line = Line::new(which);
        line.run(20, 10, true);
        line.run(20, 20, true);
        assert!(line.rate >= 17 * MBIT, "{which}: {} of 20 Mbit/s", line.rate * 8);
    }
}

#[test]
fn a_constant_line_is_left_alone() {
    for which in [UP, DOWN] {
        let mut line = Line::new(which);
        line.run(20, 20, true);
        let settled = line.run(40, 20, true);
        let low = settled.iter().map(|(rate, _)| *rate).min().expect("rates");
        let high = settled.iter().map(|(rate, _)| *rate).max().expect("rates");
        assert!(low >= 15 * MBIT && high <= 23 * MBIT, "{which}: {low} to {high} bytes/s");
        let slow = settled.iter().filter(|(_, queue)| *queue > 0.03).count();
        assert!(slow * 20 <= settled.len(), "{which}: above 30 ms in {slow} of {}", settled.len());
    }
}

#[test]
fn another_route_is_no_load() {
    for which in [UP, DOWN] {
        let mut line = Line::new(which);
        line.run(20, 20, true);
        let before = line.rate;
        line.base = Span::from_millis(55);
        line.run(4, 20, true);
        assert!(line.controller.state().shifts >= 1, "{which}: no shift");
        assert!(line.rate >= before * 8 / 10, "{which}: {} after {before}", line.rate);
        // And back, which needs no judgement.
        line.base = Span::from_millis(30);
        line.run(2, 20, true);
        assert!(line.rate >= before * 8 / 10, "{which}: {} after {before}", line.rate);
    }
}

#[test]
fn a_delay_that_comes_at_once_is_watched_and_one_that_grows_is_answered() {
    for which in [UP, DOWN] {
        let mut line = Line::at_rest(which);
        let (base, before) = (line.base, line.rate);
        let mut then = line.clone();
        // A moment's: gone before anybody could have said whose it is.
        line.base = base + Span::from_millis(40);
        (0..5).for_each(|_| line.step(20, true));
        assert_eq!(line.rate, before, "{which}");
        // The same, and a queue that grows.
        then.base = base + Span::from_millis(40);
        (0..7).for_each(|_| then.step(12, true));
        assert!(then.rate < 12 * MBIT, "{which}: {} after {before}", then.rate);
    }
}

#[test]
fn a_small_delay_that_stands_still_is_a_routes() {
    let mut line = Line::at_rest(DOWN);
    let shifts = line.controller.state().shifts;
    line.base += Span::from_millis(5);
    // What passes varies, as TCP's windows do; the delay does not.
    let passes = |line: &mut Line, n: u64| line.step(20, n % 4 < 2);
    (0..40).for_each(|n| passes(&mut line, n));
    assert!(line.controller.state().shifts > shifts);
}

#[test]
fn a_burst_after_a_pause_tells_the_capacity() {
    let mut line = Line::at_rest(DOWN);
    let before = line.rate;
    let known = |line: &Line| line.controller.state().known[DOWN].expect("found").bytes();
    let interval = |line: &mut Line, busy_ms: u64, backlog: u64| {
        let released = line.rate * busy_ms / 1000;
        line.tick(Seen { arrived: released + backlog, released, backlog });
    };
    // Ten milliseconds of packets after forty of silence, of which a part still waits.
    let mut other = line.clone();
    interval(&mut line, 50, 0);
    interval(&mut line, 10, 36 * 1514);
    assert!(known(&line) > before * 6 / 5, "{} of {before}", known(&line));
    interval(&mut line, 50, 20 * 1514);
    assert!(line.rate > before);
    // As much, but it did not come at once.
    interval(&mut other, 50, 0);
    interval(&mut other, 50, 36 * 1514);
    assert!(known(&other) <= before * 9 / 8, "{} of {before}", known(&other));
}

#[test]
fn without_load_a_delay_is_the_paths_own() {
    let mut line = Line::new(DOWN);
    line.run(10, 20, true);
    line.run(3, 20, false);
    let before = line.rate;
    line.base = Span::from_millis(80);
    line.run(2, 20, false);
    assert_eq!((line.rate, line.controller.state().shifts), (before, 1));
}

#[test]
fn a_silent_reflector_is_replaced_and_silence_of_all_changes_no_rate() {
    let mut line = Line::new(DOWN);
    line.run(5, 20, true);
    line.silent = std::vec![0, 1];
    line.run(3, 20, true);
    let active: Vec<u8> = line.controller.active().collect();
    assert!(active.iter().all(|reflector| *reflector > 1), "{active:?}");
    line.silent = (0..6).collect();
    line.run(2, 20, true);
    let before = line.rate;
    line.run(10, 20, true);
    assert_eq!(line.rate, before);
    assert_eq!(line.controller.state().answering, 0);
}

/// The same line, seen through passing TCP alone.
#[test]
fn passing_traffic_votes_where_no_reflector_does() {
    let mut both = [None; 2];
    both[DOWN] = limits(2, 40);
    let settings = Settings { limits: both, reflectors: 0, active: 4 };
    let mut line = Line::new(DOWN);
    line.controller = Controller::new(&settings, Time::ZERO);
    let mut answered = None;
    for n in 0..600u32 {
        let rtt = line.base + Span((line.queue * 1e9) as u64);
        line.controller.passing(7, rtt, line.now);
        line.step(if n < 400 { 20 } else { 10 }, true);
        if n >= 400 && line.rate <= 10 * MBIT {
            answered.get_or_insert(n - 400);
        }
    }
    assert!(line.controller.state().by_passing);
    assert!(answered.is_some_and(|intervals| intervals < 20), "{answered:?}");
}

/// To the next millisecond.
fn ms(rtt: Span) -> u64 {
    (rtt.as_micros() + 500) / 1000
}

/// Samples taken from `trips`.
fn taken(trips: &RoundTrips) -> Vec<(u32, u64)> {
    let mut all = Vec::new();
    trips.take(|connection, rtt| all.push((connection, ms(rtt))));
    all
}

const DATA: bool = true;

#[test]
fn a_round_trip_is_from_a_timestamps_first_leaving_to_its_first_echo() {
    let trips = RoundTrips::new();
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    let (one, other) = (7 << 32 | 1, 8 << 32 | 2);
    let sent =
        |connection, value, ms| trips.sent(connection, Stamp { value, has_data: DATA }, at(ms));
    sent(one, 500, 1000);
    sent(one, 500, 1005);
    sent(other, 500, 1010);
    sent(one, 530, 1030);
    assert_eq!(trips.echoed(one, 499, at(1035)), None, "nobody sent that");
    assert_eq!(trips.echoed(other, 500, at(1050)).map(ms), Some(40));
    assert_eq!(trips.echoed(one, 500, at(1060)).map(ms), Some(60));
    assert_eq!(trips.echoed(one, 500, at(1061)), None, "only the first echo counts");
    assert!(trips.echoed(one, 530, at(1065)).is_some());
    assert_eq!(taken(&trips), [(7, 35), (8, 40)], "the lowest of each");
    assert_eq!(taken(&trips), []);
}

#[test]
fn a_far_end_that_had_nothing_to_send_shows_no_round_trip() {
    let trips = RoundTrips::new();
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    let ack = |value| Stamp { value, has_data: !DATA };
    // A download that flows: its last packet was a moment ago.
    assert_eq!(trips.echoed(5, 1, at(998)), None);
    trips.sent(5, ack(2), at(960));
    assert!(trips.echoed(5, 2, at(1000)).is_some());
    // The server waits for something for three seconds.
    trips.sent(5, ack(3), at(1001));
    assert_eq!(trips.echoed(5, 3, at(4000)), None);
    // The acknowledgement of data waits for nothing.
    trips.sent(5, Stamp { value: 4, has_data: DATA }, at(9000));
    assert!(trips.echoed(5, 4, at(9040)).is_some());
    // Nor is an echo one that comes after a quarter of a minute.
    trips.sent(5, Stamp { value: 6, has_data: DATA }, at(9100));
    assert_eq!(trips.echoed(5, 6, at(24_100)), None);
}

#[test]
fn without_timestamps_a_round_trip_is_to_the_very_acknowledgement_and_none_if_sent_twice() {
    let trips = RoundTrips::new();
    let at = |ms: u64| Time::ZERO + Span::from_millis(ms);
    trips.asked(5, 0, at(1000));
    trips.asked(5, 1460, at(1001));
    trips.asked(6, 1460, at(1010));
    assert_eq!(trips.acknowledged(5, 1459, at(1020)), None, "nobody sent that");
    assert_eq!(trips.acknowledged(5, 0, at(1020)).map(ms), Some(20));
    assert_eq!(trips.acknowledged(6, 1460, at(1030)).map(ms), Some(20));
    assert_eq!(trips.acknowledged(6, 1460, at(1031)), None, "only the first counts");
    // It is sent again, and once more: which of them was answered?
    trips.asked(5, 1460, at(1100));
    trips.asked(5, 1460, at(1200));
    assert_eq!(trips.acknowledged(5, 1460, at(1210)), None);
    trips.asked(5, 2920, at(2000));
    assert_eq!(trips.acknowledged(5, 2920, at(12_001)), None, "after ten seconds");
    // Numbers come again after 4 GB.
    trips.asked(5, 4380, at(20_000));
    trips.asked(5, 4380, at(40_000));
    assert_eq!(trips.acknowledged(5, 4380, at(40_030)).map(ms), Some(30));
    assert_eq!(taken(&trips), [], "these are for people");
}

/// Of comings the lowest of each connection is kept, and of two in one place the first.
#[test]
fn comings_and_round_trips_are_kept_by_connection() {
    let trips = RoundTrips::new();
    let at = |us: u64| Time(us * 1_024);
    let (one, rival, other) = (7 << 32 | 1, 8 << 32 | 33, 9 << 32 | 2);
    let comings = |trips: &RoundTrips| {
        let mut all = Vec::new();
        trips.take_comings(|connection, coming| all.push((connection, coming)));
        all
    };
    let came = |connection, after: u64| {
        // A millisecond of the far clock, and so many units later.
        let arrival = ((5_000 * 1_000_000) >> 10) + after;
        trips.came(connection, 5_000, at(arrival));
    };
    trips.came(one, 0, at(9));
    assert_eq!(comings(&trips), []);
    came(one, 70);
    came(one, 90);
    came(rival, 10);
    came(other, 80);
    assert_eq!(comings(&trips), [(7, 70), (9, 80)]);
    came(one, 90);
    came(rival, 99);
    came(one, 60);
    assert_eq!(comings(&trips), [(7, 60)]);
    // Likewise the RTTs.
    let trip = |connection, rtt: u64| {
        trips.sent(connection, Stamp { value: 3, has_data: true }, at(100_000));
        trips.echoed(connection, 3, at(100_000 + rtt));
    };
    trip(one, 70);
    trip(one, 90);
    trip(rival, 10);
    let mut all = Vec::new();
    trips.take(|connection, rtt| all.push((connection, rtt.0 / 1_024)));
    assert_eq!(all, [(7, 70)]);
}

/// A pause of 5 ms, or of a quarter of the RTT, is none; a timestamp counts for ten seconds.
#[test]
fn pauses_and_stamps_have_bounds() {
    let at = |units: u64| Time(units * 1_024);
    let heard_before = |rtt: u64, pause: u64| {
        let trips = RoundTrips::new();
        trips.sent(5, Stamp { value: 2, has_data: false }, at(100_000));
        trips.echoed(5, 1, at(100_000 + rtt - pause));
        trips.echoed(5, 2, at(100_000 + rtt)).is_some()
    };
    assert!(heard_before(40_000, 10_000) && !heard_before(40_000, 10_001));
    assert!(heard_before(8_000, 4_882) && !heard_before(8_000, 4_883));
    for (units, rtt) in [(9_765_624, 9_765_664), (9_765_625, 40)] {
        let trips = RoundTrips::new();
        for sent in [1_000, 1_000 + units] {
            trips.sent(5, Stamp { value: 2, has_data: true }, at(sent));
        }
        let found = trips.echoed(5, 2, at(1_000 + units + 40)).map(|rtt| rtt.0 / 1_024);
        assert_eq!(found, Some(rtt).filter(|rtt| *rtt < 9_765_625));
    }
}

/// Two loaded directions, and a delay that grows to 40 ms. A far clock, that of a connection or of
/// a reflector, tells whose delay it is. Gives the rates before and after.
fn rates_by_a_far_clock(reflectors: u8, grows: usize, ticks_a_second: u64) -> [[Rate; 2]; 2] {
    let settings = Settings { limits: [limits(2, 20), limits(10, 80)], reflectors, active: 1 };
    let mut controller = Controller::new(&settings, Time::ZERO);
    let (trips, mut now) = (RoundTrips::new(), Time::ZERO + Span::from_secs(100));
    let mut rates = controller.tick(now, [Seen::default(); 2]).rates.map(Option::unwrap);
    let mut before = rates;
    for n in 0..120u64 {
        now += INTERVAL;
        let queue = Span::from_millis(n.saturating_sub(80));
        let way_back = if grows == DOWN { queue } else { Span::ZERO };
        let sent = now.0 - Span::from_millis(15).0 - way_back.0;
        let stamp = 7000 + (sent * ticks_a_second / 1_000_000_000) as u32;
        if reflectors > 0 {
            controller.answer(0, Span::from_millis(30) + queue, now);
            controller.came(0, stamp, now);
        } else {
            controller.passing(0, Span::from_millis(30) + queue, now);
            trips.came(1, stamp, now);
            controller.hear(&trips, now);
        }
        let seen = rates.map(|rate| {
            let bytes = rate.bytes() / 20;
            Seen { arrived: bytes, released: bytes, backlog: 20_000 }
        });
        rates = controller.tick(now, seen).rates.map(Option::unwrap);
        if n == 80 {
            before = rates;
        }
    }
    [before, rates]
}

#[test]
fn a_far_clock_tells_whose_delay_it_is() {
    for (reflectors, guilty, innocent) in
        [(0, UP, DOWN), (0, DOWN, UP), (1, UP, DOWN), (1, DOWN, UP)]
    {
        let [before, after] = rates_by_a_far_clock(reflectors, guilty, 1000);
        assert!(after[guilty] < before[guilty], "{guilty}: {before:?}, {after:?}");
        assert!(after[innocent] >= before[innocent], "{guilty}: {before:?}, {after:?}");
    }
    // A clock that does not count milliseconds is not believed: the upload is tried first.
    for clock in [100, 250, 1_000_000] {
        let [before, after] = rates_by_a_far_clock(0, DOWN, clock);
        assert!(after[UP] < before[UP], "{clock}: {before:?}, {after:?}");
    }
}

/// Directions that were told apart within 600 ms are no riddle: what a drain found is believed.
#[test]
fn a_far_clock_that_falls_silent_has_told_until_now() {
    let after = |silent: usize| {
        let mut both = Both::new(1);
        for _ in 0..40 {
            let now = both.now + INTERVAL;
            both.controller.came(0, 7_000 + (now.0 / 1_000_000) as u32, now);
            both.tick(30, [100, 50]);
        }
        (0..silent).for_each(|_| both.tick(30, [100, 50]));
        // So much may be of both directions, and goes.
        [8, 8, 8, 62, 62, 62].iter().for_each(|rise| both.tick(30 + rise, [100, 50]));
        assert!(both.drains()[UP], "{silent}");
        (0..3).for_each(|_| both.tick(30, [100, 50]));
        both.controller.state().phases[UP]
    };
    // Six intervals more: 600 ms since the clock was last fresh, 550 ms after it fell silent.
    for (silent, phase) in [(0, Phase::Holding), (16, Phase::Holding), (17, Phase::Rising)] {
        assert_eq!(after(silent), Some(phase), "{silent}");
    }
}

/// A controller of both directions, at 10 Mbit/s each, with a reflector.
struct Both {
    controller: Controller,
    now: Time,
    rates: [Rate; 2],
}

impl Both {
    fn new(reflectors: u8) -> Both {
        let settings = Settings { limits: [limits(1, 100); 2], reflectors, active: 1 };
        let mut controller = Controller::new(&settings, Time::ZERO);
        let rates = controller.tick(Time::ZERO, [Seen::default(); 2]).rates.map(Option::unwrap);
        Both { controller, now: Time::ZERO, rates }
    }

    /// An interval with this RTT in ms, in which so many percent of the rates arrived and were
    /// released; what used all left packets waiting.
    fn tick(&mut self, rtt_ms: u64, percent: [u64; 2]) {
        self.now += INTERVAL;
        self.controller.answer(0, Span::from_millis(rtt_ms), self.now);
        let seen = [UP, DOWN].map(|which| {
            let bytes = self.rates[which].bytes() * percent[which] / 2_000;
            let backlog = if percent[which] >= 100 { 9_000 } else { 0 };
            Seen { arrived: bytes, released: bytes, backlog }
        });
        self.rates = self.controller.tick(self.now, seen).rates.map(Option::unwrap);
    }

    fn drains(&self) -> [bool; 2] {
        self.controller.state().phases.map(|phase| phase == Some(Phase::Draining))
    }
}

/// Four fifths of what is set, an eighth more or less from interval to interval: what the longest
/// step of a search leaves.
#[test]
fn an_uneven_line_that_a_step_has_filled_is_drained() {
    let settings = Settings { limits: [None, limits(10, 80)], reflectors: 1, active: 1 };
    let mut controller = Controller::new(&settings, Time::ZERO);
    let mut now = Time::ZERO + Span::from_secs(100);
    let mut rate = controller.tick(now, [Seen::default(); 2]).rates[DOWN].unwrap();
    let before = rate;
    for n in 0..100u64 {
        now += INTERVAL;
        let queue = Span::from_millis(n.saturating_sub(60));
        let sent = now.0 - Span::from_millis(15).0 - queue.0;
        controller.answer(0, Span::from_millis(30) + queue, now);
        controller.came(0, (sent / 1_000_000) as u32, now);
        let mean = rate.bytes() / 20 * 4 / 5;
        let bytes = if n % 2 == 0 { mean + mean / 8 } else { mean - mean / 8 };
        let seen = Seen { arrived: bytes, released: bytes, backlog: 0 };
        rate = controller.tick(now, [Seen::default(), seen]).rates[DOWN].unwrap();
    }
    assert!(rate < before, "{rate:?} of {before:?}");
    assert_eq!(controller.state().shifts, 0, "it was taken for another route");
}

#[test]
fn one_direction_searches_at_a_time_and_its_turn_is_a_second() {
    let mut both = Both::new(0);
    let search = |both: &Both| both.controller.search;
    both.tick(0, [0, 0]);
    assert_eq!(search(&both), None);
    (0..2).for_each(|_| both.tick(0, [100, 100]));
    let since = both.now;
    assert_eq!(search(&both), Some((DOWN, since)), "the download begins");
    (0..19).for_each(|_| both.tick(0, [100, 100]));
    assert_eq!(search(&both), Some((DOWN, since)));
    both.tick(0, [100, 100]);
    assert_eq!(search(&both), Some((UP, both.now)), "a second later");
    // Whoever wants no more leaves it at once.
    (0..2).for_each(|_| both.tick(0, [0, 100]));
    assert_eq!(search(&both), Some((DOWN, both.now)));
    // Alone it may go on for as long as it likes.
    let since = both.now;
    (0..40).for_each(|_| both.tick(0, [0, 100]));
    assert_eq!(search(&both), Some((DOWN, since)));
    // The delay of a search that has just ended is still to come.
    let mut both = Both::new(0);
    both.tick(0, [0, 0]);
    (0..2).for_each(|_| both.tick(0, [100, 0]));
    let since = both.now;
    assert_eq!(search(&both), Some((UP, since)));
    (0..19).for_each(|_| both.tick(0, [0, 0]));
    assert_eq!(search(&both), Some((UP, since)));
    both.tick(0, [0, 0]);
    assert_eq!(search(&both), None);
}

#[test]
fn a_delay_that_nobody_made_is_the_paths_after_600_ms() {
    let mut both = Both::new(1);
    (0..10).for_each(|_| both.tick(30, [0, 0]));
    // The first of two answers is no vote yet.
    (0..2).for_each(|_| both.tick(37, [0, 0]));
    (0..11).for_each(|_| both.tick(37, [0, 0]));
    assert_eq!(both.controller.state().shifts, 0);
    both.tick(37, [0, 0]);
    assert_eq!(both.controller.state().shifts, 1);
    assert!(both.controller.state().delay.is_some_and(|delay| delay >= LOW));
    both.tick(37, [0, 0]);
    assert!(both.controller.state().delay.is_some_and(|delay| delay < LOW));
    // Less than 6 ms are noise, and a pause begins the count anew.
    let mut both = Both::new(1);
    (0..10).for_each(|_| both.tick(30, [0, 0]));
    (0..30).for_each(|_| both.tick(35, [0, 0]));
    (0..12).for_each(|_| both.tick(37, [0, 0]));
    (0..2).for_each(|_| both.tick(30, [0, 0]));
    (0..12).for_each(|_| both.tick(37, [0, 0]));
    assert_eq!(both.controller.state().shifts, 0);
}

/// Both are loaded, and there is a delay. A line that delivers evenly, and no less than before, is
/// full. A download that does not may wait for its acknowledgements, in the upload's queue.
#[test]
fn whose_delay_it_is() {
    let judged = |before: u64, rise: u64, upload: u64, download: [u64; 2]| {
        let mut both = Both::new(1);
        (0..10).for_each(|_| both.tick(30, [upload, before]));
        // Enough to end all searches.
        for n in 0..18 {
            let rise = [4, 8, rise][usize::from(n >= 14) + usize::from(n >= 16)];
            both.tick(30 + rise, [upload, download[n % 2]]);
        }
        both
    };
    let drains = |rise, upload, download| judged(50, rise, upload, download).drains();
    assert_eq!(drains(40, 100, [50, 50]), [false, true], "even: the line is full");
    let less = judged(100, 40, 100, [50, 50]);
    assert_eq!(less.drains(), [true, false], "less than before");
    let state = less.controller.state();
    assert!(matches!(state.reasons[UP], Some((Reason::Delay, at)) if at == less.now));
    assert_eq!(drains(62, 100, [50, 50]), [true, true], "so much may be of both");
    assert_eq!(drains(40, 100, [80, 10]), [true, false], "uneven: the upload first");
    assert_eq!(drains(59, 100, [80, 10]), [true, false]);
    assert_eq!(drains(62, 100, [80, 10]), [true, true], "so much may be of both");
    assert_eq!(drains(40, 100, [100, 100]), [true, false], "a queue here, and none there");
    assert_eq!(drains(8, 100, [80, 10]), [false, false], "little, and not for long");
}

/// A line below the floor of the download's rate. Draining the download shows nothing. So the
/// upload is tried as well after twice the time that an effect takes, 400 ms.
#[test]
fn what_the_download_cannot_drain_may_be_the_uploads() {
    let mut both = Both::new(1);
    let limits = [limits(1, 100), limits(10, 10)];
    let settings = Settings { limits, reflectors: 1, active: 1 };
    both.controller = Controller::new(&settings, Time::ZERO);
    (0..10).for_each(|_| both.tick(30, [100, 50]));
    for n in 0..26 {
        let rise = [4, 8, 40][usize::from(n >= 14) + usize::from(n >= 16)];
        both.tick(30 + rise, [100, 50]);
        assert_eq!(both.drains(), [n >= 25, n >= 17], "{n}");
    }
}

#[test]
fn reflectors_are_replaced_while_traffic_passes() {
    for (bytes, replaced) in [(0, false), (1, true)] {
        let settings = Settings { limits: [limits(1, 9), None], reflectors: 3, active: 1 };
        let mut controller = Controller::new(&settings, Time::ZERO);
        let now = Time::ZERO + Span::from_secs(2);
        (0..4).for_each(|_| controller.lost(0, now));
        let seen = [Seen::default(), Seen { arrived: bytes, ..Seen::default() }];
        let decision = controller.tick(now, seen);
        assert_eq!((decision.replaced, decision.rates[DOWN]), (replaced, None));
        assert_eq!(controller.active().next(), Some(u8::from(replaced)));
    }
}

proptest! {
    /// Whatever comes: rates stay within their limits, and nothing panics.
    #[test]
    fn rates_stay_within_their_limits(
        calls in prop::collection::vec((0u8..7, any::<u64>(), any::<u64>(), any::<u8>()), 0..400)
    ) {
        let limits = [limits(1, 5), limits(10, 80)];
        let settings = Settings { limits, reflectors: 9, active: 4 };
        let mut controller = Controller::new(&settings, Time::ZERO);
        let mut now = Time::ZERO;
        for (call, a, b, c) in calls {
            now += Span(a % 200_000_000);
            match call {
                0 => controller.answer(c, Span(b), now),
                1 => controller.answer(c % 9, Span(b % 300_000_000), now),
                2 => controller.lost(c, now),
                3 => controller.passing(c.into(), Span(b % 1_000_000_000), now),
                4 => controller.came(c % 9, b as u32, now),
                _ => {
                    let seen = |x: u64| Seen { arrived: x, released: x / 2, backlog: x % 3000 };
                    let bytes = if call == 5 { b } else { b % 2_000_000 };
                    let rates = controller.tick(now, [seen(bytes), seen(a % 2_000_000)]).rates;
                    for (rate, limits) in rates.iter().zip(settings.limits) {
                        let (rate, limits) = (rate.expect("shaped"), limits.expect("shaped"));
                        prop_assert!(rate >= limits.floor && rate <= limits.ceiling);
                    }
                }
            }
            prop_assert!(controller.active().count() == 4);
        }
    }
}
