//! The rules of the law one at a time. The rate is 900,000 bytes a second and an interval 32 ms, so
//! that thirds and sixteenths of both are whole numbers, and a byte more or less is seen.

use std::vec;
use std::vec::Vec;

use super::history::{GROWTH, HISTORY, PACKET, RECENT, TRAIN};
use super::*;

const TICK: Span = Span::from_millis(32);
/// Bytes of an interval at the rate that is set.
const FULL: u64 = 28_800;
const UPLOAD: bool = true;
const DOWNLOAD: bool = false;

fn law(sends: bool) -> Law {
    Law::new(sends, Limits { floor: Rate(90_000), ceiling: Rate(9_000_000) }, Time::ZERO)
}

impl Law {
    /// So many intervals in which the queue saw this, with a delay in µs.
    fn pass(&mut self, intervals: usize, seen: Seen, delay_us: u64) {
        for _ in 0..intervals {
            self.note(&seen, Some(us(delay_us)), 1, self.history.noted + TICK);
        }
    }

    fn decide_now(&mut self, evidence: &Evidence) {
        self.decide(evidence, self.history.noted);
    }
}

fn us(us: u64) -> Span {
    Span(us * 1_000)
}

fn arrived(arrived: u64) -> Seen {
    Seen { arrived, ..Seen::default() }
}

fn released(released: u64) -> Seen {
    Seen { released, ..Seen::default() }
}

fn waiting(arrived: u64) -> Seen {
    Seen { arrived, backlog: PACKET, ..Seen::default() }
}

fn calm(delay_us: u64) -> Evidence {
    Evidence { delay: Some(us(delay_us)), accused: false, searches: false, unsure: false }
}

fn accused(delay_us: u64) -> Evidence {
    Evidence { accused: true, ..calm(delay_us) }
}

/// A law after some idle intervals and these, without delay.
fn after(sends: bool, intervals: &[Seen]) -> Law {
    let mut law = law(sends);
    law.pass(RECENT, Seen::default(), 0);
    intervals.iter().for_each(|seen| law.pass(1, *seen, 0));
    law
}

#[test]
fn it_begins_at_the_geometric_middle_and_keeps_limits_in_order() {
    assert_eq!(law(UPLOAD).rate(), Rate(900_000));
    let reversed = Limits { floor: Rate(4_000), ceiling: Rate(1_000) };
    assert_eq!(Law::new(UPLOAD, reversed, Time::ZERO).rate(), Rate(4_000));
}

/// A tenth that is even, packets that wait after each interval, or 27/32 that were released.
#[test]
fn a_load_is_what_uses_the_rate_up() {
    let loaded = |intervals: [Seen; 3]| after(DOWNLOAD, &intervals).history.is_loaded();
    assert!(loaded([arrived(FULL / 10); 3]));
    assert!(!loaded([arrived(FULL / 10 - 1); 3]));
    assert!(!loaded([arrived(0), arrived(FULL * 3 / 10), arrived(0)]));
    assert!(loaded([waiting(0); 3]));
    assert!(!loaded([waiting(0), waiting(0), Seen { backlog: PACKET - 1, ..Seen::default() }]));
    assert!(loaded([released(FULL * 27 / 32); 3]));
    assert!(!loaded([released(FULL * 27 / 32 - 1); 3]));
}

#[test]
fn a_load_is_remembered_for_a_second() {
    for (ns, remembered) in [(999_999_999, true), (1_000_000_000, false)] {
        let mut law = after(DOWNLOAD, &[arrived(FULL); 3]);
        law.note(&Seen::default(), None, 0, law.history.noted + Span(ns));
        assert!(!law.history.is_loaded());
        assert_eq!(law.history.was_loaded(), remembered);
    }
    assert!(!law(UPLOAD).history.was_loaded());
}

/// Two packets and a sixteenth more or less.
#[test]
fn arrivals_are_even_if_they_differ_by_little() {
    let even = |least| after(DOWNLOAD, &[FULL, least, FULL].map(arrived)).history.is_even();
    let least = FULL - FULL / 16 - 2 * PACKET;
    assert!(even(least) && !even(least - 1));
}

#[test]
fn a_download_starves_below_31_of_32_parts_while_none_waits() {
    let starved = |sends, bytes, waits: usize| {
        let mut intervals = [arrived(bytes); 3];
        intervals[..waits].fill(waiting(bytes));
        after(sends, &intervals).history.is_starved()
    };
    assert!(!starved(DOWNLOAD, FULL * 31 / 32, 0));
    assert!(starved(DOWNLOAD, FULL * 31 / 32 - 1, 0));
    assert!(starved(DOWNLOAD, 1_000, 2) && !starved(DOWNLOAD, 1_000, 3));
    assert!(!starved(UPLOAD, 1_000, 0));
}

#[test]
fn the_line_limits_what_is_even_and_loads_and_waits_elsewhere() {
    let limited = |sends, intervals: &[Seen]| after(sends, intervals).history.is_limited_by_line();
    let some = arrived(20_000);
    assert!(limited(DOWNLOAD, &[some; 3]) && limited(DOWNLOAD, &[some, some, waiting(20_000)]));
    assert!(!limited(DOWNLOAD, &[some, waiting(20_000), waiting(20_000)]));
    assert!(!limited(UPLOAD, &[some; 3]));
    assert!(!limited(DOWNLOAD, &[some, some, some, arrived(0)]));
    assert!(!limited(DOWNLOAD, &[arrived(1_000); 3]));
    // The capacity is confirmed by 31 of 32 parts of it.
    let mut law = after(DOWNLOAD, &[arrived(FULL * 31 / 32); 3]);
    assert!(law.confirms());
    for (known, confirms) in [(900_000, true), (900_033, false)] {
        law.known = Some(known);
        assert_eq!(law.confirms(), confirms);
    }
    let law = after(DOWNLOAD, &[waiting(FULL); 3]);
    assert!(!law.confirms());
}

#[test]
fn more_is_wanted_where_packets_wait_or_seven_eighths_come() {
    let wants = |intervals: &[Seen]| after(DOWNLOAD, intervals).history.wants_more();
    assert!(wants(&[arrived(FULL * 7 / 8); 3]) && !wants(&[arrived(FULL * 7 / 8 - 1); 3]));
    assert!(wants(&[arrived(0), waiting(0), waiting(0)]));
    assert!(!wants(&[arrived(0), arrived(0), waiting(0)]));
}

#[test]
fn a_search_is_wanted_at_the_known_capacity() {
    let mut law = after(DOWNLOAD, &[arrived(FULL); 3]);
    // 63 of 64 parts of what is known.
    for (known, wants) in [(None, true), (Some(914_286), true), (Some(914_287), false)] {
        law.known = known;
        assert_eq!(law.wants_to_search(), wants, "{known:?}");
    }
    law.known = None;
    law.phase = Phase::Holding;
    for (hold_until, wants) in [(law.history.noted, true), (law.history.noted + Span(1), false)] {
        law.hold_until = hold_until;
        assert_eq!(law.wants_to_search(), wants);
    }
    (law.phase, law.hold_until) = (Phase::Draining, law.history.noted);
    assert!(!law.wants_to_search());
    assert!(!after(DOWNLOAD, &[arrived(FULL / 2); 3]).wants_to_search());
}

#[test]
fn an_upload_may_be_guilty_that_loads_and_a_download_whose_line_is_full() {
    assert!(after(UPLOAD, &[released(FULL); 3]).history.may_be_guilty());
    assert!(!after(UPLOAD, &[released(FULL / 2); 3]).history.may_be_guilty());
    let guilty = |before, last: Seen| {
        let mut law = law(DOWNLOAD);
        law.pass(HISTORY - RECENT, before, 0);
        law.pass(RECENT, last, 0);
        law.history.may_be_guilty()
    };
    // A queue here, and exactly the set rate: none there. What comes faster fills the line.
    assert!(!guilty(waiting(FULL), waiting(FULL)));
    let most = FULL * 17 / 16;
    assert!(!guilty(waiting(27_000), waiting(most)) && guilty(waiting(27_000), waiting(most + 1)));
    let most = FULL * 129 / 128;
    assert!(!guilty(waiting(most), waiting(most)));
    assert!(guilty(waiting(most + 1), waiting(most + 1)));
    // Starved, or even without a queue; a tenth at least.
    assert!(guilty(waiting(FULL / 10), arrived(FULL / 10)));
    assert!(!guilty(waiting(FULL / 10), arrived(FULL / 10 - 1)));
    assert!(guilty(waiting(28_000), arrived(28_000)));
}

#[test]
fn delay_grows_if_it_is_more_than_six_intervals_ago() {
    let grows = |old, new| {
        let mut law = law(UPLOAD);
        law.pass(1, Seen::default(), old);
        law.pass(STILL - 1, Seen::default(), 90_000);
        law.pass(1, Seen::default(), new);
        law.history.sees_growth()
    };
    assert!(grows(6_000, 9_001) && !grows(6_000, 9_000) && !grows(5_999, 50_000));
    let mut law = law(UPLOAD);
    assert!(law.history.sees_little());
    for (delay, little) in [(2_999, true), (3_000, false)] {
        law.pass(1, Seen::default(), delay);
        assert_eq!(law.history.sees_little(), little);
    }
}

/// A rise from below 6 ms to 12 or more is watched for half a second.
#[test]
fn what_comes_at_once_and_stands_is_a_jump() {
    let jumped = |before, then| {
        let mut law = law(UPLOAD);
        law.pass(3, released(FULL), before);
        law.pass(1, released(FULL), then);
        law
    };
    let law = jumped(5_999, 12_000);
    let at = law.history.noted;
    assert!(law.is_jump(us(12_000), at) && law.is_jump(us(14_999), at));
    assert!(!law.is_jump(us(15_000), at));
    assert!(law.is_jump(us(12_000), at + us(499_999)));
    assert!(!law.is_jump(us(12_000), at + us(500_000)));
    for (before, then) in [(6_000, 30_000), (5_999, 11_999)] {
        assert!(!jumped(before, then).is_jump(us(then), at));
    }
    // Nor is it one if less arrives than was known.
    for (bytes, jump) in [(FULL * 7 / 8, true), (FULL * 7 / 8 - 1, false)] {
        let mut law = after(DOWNLOAD, &[arrived(bytes); 3]);
        law.known = Some(900_000);
        law.pass(1, arrived(bytes), 12_000);
        assert_eq!(law.is_jump(us(12_000), law.history.noted), jump);
    }
}

/// Bytes that would have made a queue of 64 ms, and a delay that stood still.
#[test]
fn a_delay_that_stands_still_is_no_queue_if_what_passed_did_not() {
    let passed = [4 * FULL, 0, 0, 0, FULL, FULL, 9 * FULL, 9 * FULL];
    let no_queue = |sends: bool, delays: [u64; 2], votes: [u32; STILL]| {
        let mut law = law(sends);
        law.pass(8, Seen { arrived: 7 * FULL, released: 7 * FULL, backlog: 0 }, 0);
        for (n, bytes) in passed.into_iter().enumerate() {
            let delay = us(delays[n % 2]);
            let votes = n.checked_sub(ECHO).map_or(9, |n| votes[n]);
            // What neither is on the line changes nothing.
            let other = FULL * n as u64;
            let [arrived, released] = if sends { [other, bytes] } else { [bytes, other] };
            let seen = Seen { arrived, released, backlog: 0 };
            law.note(&seen, Some(delay), votes, law.history.noted + TICK);
        }
        let cleared =
            law.cleared.is_some_and(|cleared| cleared == (law.history.noted, us(delays[1])));
        assert_eq!(cleared, law.history.is_no_queue());
        law.history.is_no_queue()
    };
    for sends in [UPLOAD, DOWNLOAD] {
        assert!(no_queue(sends, [20_000, 34_500], [1; STILL]));
        assert!(!no_queue(sends, [20_000, 34_501], [1; STILL]));
    }
    assert!(no_queue(UPLOAD, [3_000; 2], [1; STILL]) && !no_queue(UPLOAD, [2_999; 2], [1; STILL]));
    // Four RTTs, and some of the latest.
    assert!(no_queue(UPLOAD, [20_000; 2], [0, 0, 1, 1, 1, 1]));
    assert!(!no_queue(UPLOAD, [20_000; 2], [0, 0, 0, 1, 1, 1]));
    assert!(!no_queue(UPLOAD, [20_000; 2], [1, 1, 1, 1, 1, 0]));
    assert!(!no_queue(UPLOAD, [20_000; 2], [1, 1, 1, 1, 0, 1]));
}

#[test]
fn who_is_acquitted() {
    let loaded = || after(UPLOAD, &[released(FULL); 3]);
    assert!(!loaded().is_acquitted());
    assert!(after(UPLOAD, &[Seen::default(); 3]).is_acquitted());
    // Whoever was cleared of the same delay within a second.
    for (ago_ms, then, acquitted) in [
        (999, 20_000, true),
        (1_000, 20_000, false),
        (0, 22_999, true),
        (0, 23_000, false),
        (0, 17_001, true),
        (0, 17_000, false),
    ] {
        let mut law = loaded();
        let seen = released(FULL);
        (0..40).for_each(|_| law.pass(1, seen, 20_000));
        law.cleared = Some((law.history.noted - Span::from_millis(ago_ms), us(then)));
        assert_eq!(law.is_acquitted(), acquitted, "{ago_ms} {then}");
    }
    // Whose drain was in vain, or goes on for three times as long as it needs.
    let mut law = loaded();
    law.pass(50, released(FULL), 0);
    law.drain_at(800_000, us(20_000), (900_000, None), 1, law.history.noted);
    assert!(!law.is_acquitted() && !law.drains_in_vain());
    law.find_in_vain(us(20_000));
    assert!(law.is_acquitted() && law.drains_in_vain());
    for (ms, tried, tried_for_long) in
        [(399, false, false), (400, true, false), (1_349, true, false), (1_350, true, true)]
    {
        let mut law = loaded();
        law.drain_at(800_000, us(20_000), (900_000, None), 1, law.history.noted);
        law.note(&released(FULL * 60), None, 0, law.history.noted + Span::from_millis(ms));
        let found = (law.has_tried(), law.has_tried_for_long(), law.is_acquitted());
        assert_eq!(found, (tried, tried_for_long, tried_for_long), "{ms}");
    }
}

/// A queue that grows by 16 ms in 160 drains at ten elevenths of what was released.
#[test]
fn the_capacity_is_estimated_by_arrivals_or_by_growth() {
    let estimate = |sends, seen, delays: [Option<u64>; 2]| {
        let mut law = law(sends);
        law.pass(1, released(9 * FULL), 0);
        law.note(&released(9 * FULL), delays[0].map(us), 1, law.history.noted + TICK);
        law.pass(GROWTH - 1, seen, 99_000);
        law.note(&seen, delays[1].map(us), 1, law.history.noted + TICK);
        law.history.estimate()
    };
    let grown = [Some(10_000), Some(26_000)];
    assert_eq!(estimate(UPLOAD, released(FULL), grown), 818_181);
    assert_eq!(estimate(UPLOAD, released(FULL), [Some(26_000), Some(10_000)]), 900_000);
    assert_eq!(estimate(UPLOAD, released(FULL), [None, Some(26_000)]), 900_000);
    assert_eq!(estimate(UPLOAD, released(FULL), [Some(10_000), None]), 900_000);
    // A download that is starved, or that the line limits, arrives at the capacity.
    assert_eq!(estimate(DOWNLOAD, arrived(FULL / 2), grown), 450_000);
    assert_eq!(estimate(DOWNLOAD, arrived(28_000), grown), 875_000);
    let queued = Seen { arrived: 2 * FULL, released: FULL, backlog: PACKET };
    assert_eq!(estimate(DOWNLOAD, queued, grown), 818_181);
}

/// Sixteen packets that wait after less than half an interval's work, and nothing before.
#[test]
fn a_burst_after_a_pause_comes_at_the_lines_capacity() {
    let queue = TRAIN * PACKET;
    let burst = |law: Law, before, arrived, released, backlog| {
        let mut law = law;
        law.pass(1, Seen { backlog: before, ..Seen::default() }, 0);
        law.pass(1, Seen { arrived, released, backlog }, 0);
        law.burst()
    };
    let loaded = || after(DOWNLOAD, &[arrived(FULL); 3]);
    let half = FULL / 2;
    // 14,399 bytes are released in 15.998888 ms; in that 15,000 came, or more than may be believed.
    assert_eq!(burst(loaded(), 0, 15_000, half - 1, queue), Some(937_565));
    assert_eq!(burst(loaded(), PACKET - 1, 100_000, half - 1, queue), Some(1_125_000));
    assert_eq!(burst(loaded(), 0, 100_000, half, queue), None);
    assert_eq!(burst(loaded(), PACKET, 100_000, half - 1, queue), None);
    assert_eq!(burst(loaded(), 0, 100_000, half - 1, queue - 1), None);
    assert_eq!(burst(after(DOWNLOAD, &[]), 0, 9_000, 100, queue), None, "no load");
    assert_eq!(burst(after(UPLOAD, &[released(FULL); 3]), 0, 100_000, half - 1, queue), None);
    // It is known at once, and the search goes on with its longest steps.
    let mut law = loaded();
    (law.phase, law.known) = (Phase::Holding, Some(930_000));
    law.pass(1, Seen::default(), 0);
    law.pass(1, Seen { arrived: 15_000, released: half - 1, backlog: queue }, 0);
    let then = law.clone();
    law.decide_now(&calm(5_999));
    assert_eq!((law.known, law.phase, law.gain), (Some(937_565), Phase::Rising, LAST_GAIN));
    let mut law = then.clone();
    law.known = Some(940_000);
    law.decide_now(&calm(0));
    assert_eq!(law.known, Some(940_000));
    let mut law = then;
    law.decide_now(&calm(6_000));
    assert_eq!(law.known, Some(930_000));
}

/// A quarter of the way, an eighth of the rate at most and a 32nd at least.
#[test]
fn a_rate_returns_to_the_known_capacity_in_steps() {
    for (known, rate) in [(1_828_572, 1_012_500), (1_117_461, 950_000), (918_350, 904_000)] {
        let mut law = after(DOWNLOAD, &[arrived(FULL); 3]);
        law.known = Some(known);
        law.decide_now(&calm(5_999));
        assert_eq!((law.rate, law.reason), (rate, Some((Reason::Room, law.history.noted))));
        assert_eq!(law.changed, law.history.noted);
    }
    for delay in [6_000, 50_000] {
        let mut law = after(DOWNLOAD, &[arrived(FULL); 3]);
        law.known = Some(1_828_572);
        law.decide_now(&calm(delay));
        assert_eq!((law.rate, law.reason), (900_000, None));
    }
    // Where no more is wanted, nothing rises.
    let mut law = after(DOWNLOAD, &[arrived(FULL / 2); 3]);
    law.known = Some(1_828_572);
    law.decide_now(&calm(0));
    assert_eq!(law.rate, 900_000);
}

/// A sixteenth over what was carried; twice as much each time until a quarter, where all was used.
#[test]
fn a_search_takes_longer_steps_while_they_succeed() {
    let searching = |delay| Evidence { searches: true, ..calm(delay) };
    let ready = |sends, bytes| {
        let mut law = law(sends);
        law.pass(10, Seen { arrived: 2 * FULL, released: 2 * FULL, backlog: PACKET }, 0);
        let seen = if sends { released(bytes) } else { arrived(bytes) };
        law.pass(GROWTH - 1, Seen { backlog: PACKET, ..seen }, 0);
        law
    };
    for sends in [UPLOAD, DOWNLOAD] {
        let mut law = ready(sends, FULL);
        law.decide_now(&searching(2_999));
        assert_eq!((law.rate, law.known, law.gain), (956_250, Some(900_000), 8));
        for gain in [16, 16] {
            law.pass(10, Seen { arrived: 32_000, released: 32_000, backlog: PACKET }, 0);
            law.decide_now(&searching(0));
            assert_eq!(law.gain, gain);
        }
    }
    // What used less than 31 of 32 parts was no trial of it; and a rate does not fall so.
    for (bytes, rate, gain) in
        [(27_900, 926_367, 8), (27_899, 926_333, 4), (25_200, 900_000, 4), (10_000, 900_000, 4)]
    {
        let mut law = ready(DOWNLOAD, bytes);
        law.decide_now(&searching(0));
        assert_eq!((law.rate, law.gain), (rate, gain), "{bytes}");
    }
    // Not while the other direction does, nor with the least delay, nor before a step has shown.
    for (evidence, since) in [(calm(0), 300), (searching(3_000), 300), (searching(0), 299)] {
        let mut law = ready(DOWNLOAD, FULL);
        law.stepped = law.history.noted - Span::from_millis(since);
        law.decide_now(&evidence);
        assert_eq!((law.rate, law.known), (900_000, None));
    }
    let mut law = ready(DOWNLOAD, FULL);
    law.stepped = law.history.noted - Span::from_millis(300);
    law.known = Some(910_000);
    law.decide_now(&searching(0));
    assert_eq!((law.rate, law.known, law.stepped), (956_250, Some(910_000), law.history.noted));
}

#[test]
fn a_hold_that_is_over_begins_with_the_first_gain() {
    for (until, phase, gain) in [(0, Phase::Rising, FIRST_GAIN), (1, Phase::Holding, LAST_GAIN)] {
        let mut law = after(DOWNLOAD, &[arrived(FULL); 3]);
        (law.phase, law.gain) = (Phase::Holding, LAST_GAIN);
        (law.hold_until, law.known) = (law.history.noted + Span(until), Some(1_828_572));
        law.decide_now(&calm(0));
        assert_eq!((law.phase, law.gain), (phase, gain));
        assert_eq!(law.rate > 900_000, phase == Phase::Rising);
    }
}

/// At 12 ms, or at 6 that stay for twelve intervals.
#[test]
fn an_accused_direction_drains() {
    let standing = |delays: &[u64]| {
        let mut law = law(UPLOAD);
        delays.iter().for_each(|delay| law.pass(1, released(FULL), *delay));
        law.jumped = None;
        law
    };
    let drains = |delays: &[u64], evidence: Evidence| {
        let mut law = standing(delays);
        law.decide_now(&evidence);
        law.is_draining()
    };
    let mut law = standing(&[20_000; 12]);
    law.decide_now(&accused(20_000));
    // 20 ms of queue are gone after 250.
    assert_eq!((law.rate, law.known, law.phase), (828_000, Some(900_000), Phase::Draining));
    assert_eq!(law.reason, Some((Reason::Delay, law.history.noted)));
    assert!(drains(&[10_000; 6], accused(12_000)) && !drains(&[10_000; 6], accused(11_999)));
    assert!(!drains(&[20_000; 12], calm(20_000)));
    assert!(drains(&[6_000; 12], accused(6_000)) && !drains(&[6_000; 11], accused(6_000)));
    let mut once = [6_000; 12];
    once[0] = 5_999;
    assert!(!drains(&once, accused(6_000)));
    // A rate that has just been set shows later; unless it was raised.
    for (ms, drains) in [(199, false), (200, true)] {
        let mut law = standing(&[20_000; 12]);
        (law.phase, law.changed) = (Phase::Holding, law.history.noted - Span::from_millis(ms));
        law.decide_now(&accused(20_000));
        assert_eq!(law.is_draining(), drains);
    }
    // Half the capacity at least.
    for (delay, rate) in [(124_000, 453_600), (125_000, 450_000), (400_000, 450_000)] {
        assert_eq!(drained(900_000, us(delay)), rate);
    }
    // What arrives at a download that is not even says nothing about capacity.
    let mut law = after(DOWNLOAD, &[FULL, 0, FULL].map(arrived));
    law.pass(1, arrived(0), 20_000);
    law.decide_now(&accused(40_000));
    assert!(law.is_draining() && law.known.is_none());
}

#[test]
fn a_download_finds_its_end_where_arrivals_stay_behind_a_rise() {
    let risen = |ms| {
        let mut law = after(DOWNLOAD, &[arrived(25_600); 4]);
        law.reason = Some((Reason::Room, law.history.noted - Span::from_millis(ms)));
        law
    };
    let ends = |mut law: Law, evidence: Evidence| {
        law.decide_now(&evidence);
        law.phase == Phase::Holding
    };
    let mut law = risen(0);
    law.decide_now(&accused(3_000));
    assert_eq!((law.rate, law.known, law.phase), (787_500, Some(800_000), Phase::Holding));
    assert_eq!(law.hold_until, law.history.noted + SHORT_HOLD);
    assert_eq!(law.reason, Some((Reason::Arrivals, law.history.noted)));
    assert!(!ends(risen(0), calm(3_000)) && !ends(risen(0), accused(2_999)));
    let since = Time::ZERO + Span::from_secs(1);
    let late = |ms| {
        let mut law = risen(0);
        law.history.noted = since;
        law.reason = Some((Reason::Room, since - Span::from_millis(ms)));
        law.history.loaded = Some(since);
        law
    };
    assert!(ends(late(599), accused(3_000)) && !ends(late(600), accused(3_000)));
    let mut queued = risen(0);
    queued.pass(2, waiting(25_600), 0);
    assert!(!ends(queued, accused(3_000)));
    let mut other = risen(0);
    other.reason = Some((Reason::Route, other.history.noted));
    assert!(!ends(other, accused(3_000)));
}

#[test]
fn an_upload_that_has_stepped_too_far_drains() {
    let risen = |sends| {
        let mut law = after(sends, &[Seen { arrived: FULL, released: FULL, backlog: PACKET }; 4]);
        law.reason = Some((Reason::Room, law.history.noted));
        law
    };
    let drains = |mut law: Law, evidence: Evidence| {
        law.decide_now(&evidence);
        law.is_draining()
    };
    let searching = |delay| Evidence { searches: true, ..calm(delay) };
    assert!(drains(risen(UPLOAD), searching(6_000)));
    assert!(!drains(risen(UPLOAD), searching(5_999)));
    assert!(!drains(risen(UPLOAD), calm(6_000)) && !drains(risen(DOWNLOAD), searching(6_000)));
    for (known, expected) in [(914_286, false), (914_287, true)] {
        let mut law = risen(UPLOAD);
        law.known = Some(known);
        assert_eq!(drains(law, calm(6_000)), expected);
    }
}

/// A drain of 20 ms from 900,000, where 800,000 were found; `ms` ago.
fn draining(sends: bool, number: u8, ms: u64) -> Law {
    let seen = Seen { arrived: FULL, released: FULL, backlog: PACKET };
    let mut law = after(sends, &[seen; 6]);
    law.known = Some(800_000);
    law.drain_at(800_000, us(20_000), (900_000, Some(810_000)), number, law.history.noted);
    law.note(&seen, Some(us(20_000)), 1, law.history.noted + Span::from_millis(ms));
    law
}

#[test]
fn a_drain_ends_with_the_delay() {
    for (delay, ends) in [(5_999, true), (6_000, false)] {
        let mut law = draining(UPLOAD, 1, 100);
        law.decide_now(&calm(delay));
        assert_eq!(law.drain.is_none(), ends, "{delay}");
    }
    // A quarter of what it was is enough.
    for (delay, ends) in [(9_999, true), (10_000, false)] {
        let mut law = draining(UPLOAD, 1, 200);
        law.drain.as_mut().unwrap().delay = us(40_000);
        law.decide_now(&calm(delay));
        assert_eq!(law.drain.is_none(), ends, "{delay}");
    }
    let mut law = draining(UPLOAD, 1, 100);
    law.decide_now(&calm(0));
    assert_eq!((law.rate, law.phase), (787_500, Phase::Holding));
    assert_eq!(law.reason, Some((Reason::Drained, law.history.noted)));
    // About the same capacity as before: the hold is longer.
    assert_eq!((law.hold, law.hold_until), (SHORT_HOLD * 2, law.history.noted + SHORT_HOLD * 2));
    // Nobody votes any more.
    let mut law = draining(UPLOAD, 1, 100);
    law.decide_now(&Evidence { delay: None, ..calm(0) });
    assert_eq!(law.phase, Phase::Holding);
    // Never above what it was before.
    let mut law = draining(UPLOAD, 1, 100);
    law.known = Some(2_000_000);
    law.decide_now(&calm(0));
    assert_eq!(law.rate, 885_937);
}

/// While the other direction may have made the delay, or after a drain in vain, nothing was found.
#[test]
fn what_another_may_have_drained_was_not_found() {
    for (unsure, in_vain) in [(true, None), (false, Some(us(20_000)))] {
        for (before, known) in [(Some(810_000), 810_000), (None, 900_000)] {
            let mut law = draining(UPLOAD, 1, 100);
            let drain = law.drain.as_mut().unwrap();
            (drain.unsure, drain.in_vain, drain.before.1) = (unsure, in_vain, before);
            let rate = law.rate;
            law.decide_now(&calm(0));
            assert_eq!((law.rate, law.known, law.phase), (rate, Some(known), Phase::Rising));
        }
    }
    // Only an upload's drain says that of itself.
    for (sends, unsure) in [(UPLOAD, true), (DOWNLOAD, false)] {
        let mut law = draining(sends, 1, 100);
        law.decide_now(&Evidence { unsure: true, ..accused(20_000) });
        assert_eq!(law.drain.unwrap().unsure, unsure);
    }
}

#[test]
fn what_was_released_before_still_adds_to_the_queue() {
    for (ms, most) in [(199, 50_000), (200, 20_000)] {
        let mut law = draining(UPLOAD, 1, ms);
        law.drain.as_mut().unwrap().in_vain = Some(us(50_000));
        law.decide_now(&accused(50_000));
        assert_eq!(law.drain.unwrap().delay, us(most), "{ms}");
    }
}

/// A delay that still grows by 3 ms after the feedback says that the estimate was too high.
#[test]
fn a_drain_whose_delay_grows_goes_lower() {
    let after = |ms, delay, change: fn(&mut Law)| {
        let mut law = draining(UPLOAD, 1, ms);
        change(&mut law);
        law.decide_now(&accused(delay));
        law.changed == law.history.noted
    };
    assert!(after(200, 23_001, |_| ()));
    assert!(!after(200, 23_000, |_| ()) && !after(199, 23_001, |_| ()));
    assert!(!after(200, 23_001, |law| law.drain.as_mut().unwrap().unsure = true));
    let in_vain = |law: &mut Law| law.drain.as_mut().unwrap().in_vain = Some(us(23_001));
    assert!(!after(200, 23_001, in_vain));
    // Having halved twice, it finds that it drains in vain.
    for (number, before, in_vain) in
        [(DRAINS, 900_000, false), (DRAINS, 1_700_000, true), (DRAINS - 1, 1_700_000, false)]
    {
        let mut law = draining(UPLOAD, number, 200);
        law.drain.as_mut().unwrap().before.0 = before;
        law.decide_now(&accused(30_000));
        let drain = law.drain.unwrap();
        assert_eq!(drain.in_vain.is_some(), in_vain, "{number} {before}");
        let halved = u8::from(before > 1_600_000 && !in_vain);
        assert_eq!(drain.number, number + halved);
    }
    // A drain in vain whose delay then grows by 6 ms was none.
    for (delay, again) in [(26_000, false), (26_001, true)] {
        let mut law = draining(UPLOAD, 2, 100);
        law.find_in_vain(us(20_000));
        law.decide_now(&accused(delay));
        assert_eq!(
            (law.drain.unwrap().in_vain.is_none(), law.drain.unwrap().number == 1),
            (again, again)
        );
    }
}

/// After 450 ms: less than 12 ms that fell by a quarter are left to the hold; what fell is drained
/// once more; what did not counts, and the third is in vain.
#[test]
fn a_drain_that_is_over_is_judged() {
    let judged = |number, ms, delay| {
        let mut law = draining(UPLOAD, number, ms);
        law.decide_now(&accused(delay));
        law
    };
    let state = |law: &Law| law.drain.map(|drain| (drain.number, drain.in_vain.is_some()));
    assert_eq!(state(&judged(1, 449, 11_000)), Some((1, false)));
    assert_eq!(state(&judged(1, 450, 11_999)), None);
    assert_eq!(state(&judged(2, 450, 14_999)), Some((1, false)), "once more");
    assert_eq!(state(&judged(1, 450, 15_000)), Some((2, false)));
    // The third drain without success, if the rate fell by an eighth.
    assert_eq!(state(&judged(2, 450, 20_000)), Some((2, true)));
    let mut law = draining(UPLOAD, 2, 450);
    law.drain.as_mut().unwrap().before.0 = 841_142;
    law.decide_now(&accused(20_000));
    assert_eq!(state(&law), Some((3, false)));
    // So little, but it did not fall.
    let mut law = draining(UPLOAD, 2, 450);
    law.drain.as_mut().unwrap().delay = us(12_000);
    law.decide_now(&accused(11_000));
    assert_eq!(state(&law), Some((2, true)));
    assert!(judged(1, 450, 14_999).rate < 800_000);
    assert_eq!(state(&judged(1, 450, 12_000)), Some((1, false)), "that much is drained once more");
    // Less than 12 ms are not drained a third time, however little the rate fell.
    for (number, delay, in_vain) in
        [(1, 11_999, false), (2, 11_999, true), (3, 11_999, true), (2, 12_000, false)]
    {
        let mut law = draining(UPLOAD, number, 450);
        let drain = law.drain.as_mut().unwrap();
        (drain.delay, drain.before.0) = (us(12_000), 841_142);
        law.decide_now(&accused(delay));
        assert_eq!(state(&law), Some((number + u8::from(!in_vain), in_vain)));
    }
    // A delay that has grown by more than a quarter asks for half of the rate.
    for (delay, found) in [(25_000, (2, true)), (25_001, (3, false))] {
        let mut law = draining(UPLOAD, 2, 450);
        law.drain.as_mut().unwrap().unsure = true;
        law.decide_now(&accused(delay));
        assert_eq!(state(&law), Some(found), "{delay}");
    }
}

/// Where a download gets less still while its drain goes on, arrivals are the capacity.
#[test]
fn a_starved_drain_follows_the_arrivals() {
    let follow = |bytes, delay| {
        let mut law = draining(DOWNLOAD, 1, 32);
        law.pass(3, arrived(bytes), 20_000);
        law.decide_now(&accused(delay));
        (law.rate, law.known.unwrap(), law.reason.unwrap().0)
    };
    assert_eq!(follow(20_000, 20_000), (575_000, 625_000, Reason::Arrivals));
    assert_eq!(follow(20_000, 11_999), (736_000, 800_000, Reason::Delay));
    assert_eq!(follow(25_600, 25_000), (736_000, 800_000, Reason::Delay));
}

#[test]
fn holds_grow_while_the_same_capacity_is_found() {
    let mut law = law(DOWNLOAD);
    let mut holds = |all: &[u64]| -> Vec<u64> {
        let hold = |capacity: &u64| {
            law.found(*capacity);
            law.hold.as_micros() / 1_000
        };
        all.iter().map(hold).collect()
    };
    // A tenth more or less is the same.
    assert_eq!(holds(&[1_000, 1_100, 990, 1_000, 1_000]), vec![250, 500, 1_000, 2_000, 2_000]);
    assert_eq!(holds(&[1_101, 990, 1_000]), vec![250, 250, 500]);
    law.found(0);
    assert_eq!(law.known, Some(1));
}

#[test]
fn another_route_gives_the_rate_back() {
    let mut law = draining(UPLOAD, 1, 100);
    law.cleared = Some((law.history.noted, us(9)));
    law.shifted(law.history.noted);
    assert_eq!((law.rate, law.known, law.phase), (900_000, Some(810_000), Phase::Holding));
    assert_eq!((law.reason, law.cleared), (Some((Reason::Route, law.history.noted)), None));
    assert_eq!(law.hold_until, law.history.noted + SHORT_HOLD);
    // Who does not drain goes on.
    let mut law = after(UPLOAD, &[released(FULL); 3]);
    law.shifted(law.history.noted);
    assert_eq!((law.rate, law.phase, law.reason), (900_000, Phase::Rising, None));
}

#[test]
fn rates_stay_within_limits_and_what_stays_is_no_change() {
    let mut law = after(UPLOAD, &[released(FULL)]);
    law.set_rate(900_000, Reason::Room, law.history.noted);
    assert_eq!((law.reason, law.changed), (None, Time::ZERO));
    for (wanted, set) in [(1, 90_000), (u64::MAX, 9_000_000), (90_001, 90_001)] {
        law.set_rate(wanted, Reason::Room, law.history.noted);
        assert_eq!((law.rate, law.changed), (set, law.history.noted));
    }
}
