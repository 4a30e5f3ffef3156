//! The latest intervals: load, evenness, starvation, growth, and the capacity that they tell.

use super::*;
use crate::law::history::HISTORY;

/// A tenth that is even, packets that wait after each interval, or three quarters released.
#[test]
fn a_load_is_what_uses_the_rate_up() {
    let loaded = |intervals: [Seen; 3]| after(DOWNLOAD, &intervals).history.is_loaded();
    assert!(loaded([arrived(FULL / 10); 3]));
    assert!(!loaded([arrived(FULL / 10 - 1); 3]));
    assert!(!loaded([arrived(0), arrived(FULL * 3 / 10), arrived(0)]));
    assert!(loaded([waiting(0); 3]));
    assert!(!loaded([waiting(0), waiting(0), Seen { backlog: PACKET - 1, ..Seen::default() }]));
    assert!(loaded([released(FULL * 3 / 4); 3]));
    assert!(!loaded([released(FULL * 3 / 4 - 1); 3]));
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

/// After two intervals it shows what has passed: 640,000 bytes a second in 160 ms, for which the
/// line took 16 ms more, or less.
#[test]
fn a_capacity_shows_by_what_a_queue_changes() {
    let shown = |sends, old, new, jitter: u64| {
        let mut law = after(sends, &[]);
        law.pass(1, released(0), old);
        law.pass(GROWTH, released(20_480), old);
        // These have yet to show.
        law.pass(1, released(FULL), old);
        law.pass(1, released(FULL), new);
        law.note_jitter(us(jitter));
        law.history.shown_by_change()
    };
    // The delay of five intervals ago is the old one.
    assert_eq!(shown(UPLOAD, 10_000, 26_000, 0), Some(581_818));
    assert_eq!(shown(UPLOAD, 26_000, 10_000, 0), Some(711_111));
    assert_eq!(shown(UPLOAD, 26_000, 26_001, 0), Some(639_996));
    assert_eq!(shown(UPLOAD, 26_000, 26_000, 0), None);
    assert_eq!(shown(DOWNLOAD, 10_000, 26_000, 0), None);
    // Twice as fast at most.
    assert_eq!(shown(UPLOAD, 90_000, 10_000, 0), Some(1_280_000));
    assert_eq!(shown(UPLOAD, 100_000, 10_000, 0), Some(1_280_000));
    // More than jitter.
    assert_eq!(shown(UPLOAD, 10_000, 26_000, 16_000), None);
    assert_eq!(shown(UPLOAD, 10_000, 26_000, 15_999), Some(581_818));
    // Nobody voted.
    let mut law = after(UPLOAD, &[released(FULL)]);
    law.note(&released(FULL), None, 0, law.history.noted + TICK);
    assert_eq!(law.history.shown_by_change(), None);
}

/// With 4 ms of jitter as much of a growth may be none: of 16 ms in 160, 12 to 20 are one.
#[test]
fn jitter_speaks_against_no_known_capacity() {
    let near = |sends, seen, delays: [u64; 2], known, jitter| {
        let mut law = law(sends);
        law.pass(1, released(9 * FULL), delays[0]);
        law.pass(GROWTH - 1, seen, 99_000);
        law.pass(1, seen, delays[1]);
        law.note_jitter(us(jitter));
        law.history.estimate_near(Some(known))
    };
    let upload = |from, to, known| near(UPLOAD, released(FULL), [from, to], known, 4_000);
    for (known, told) in
        [(700_000, 800_000), (800_001, 800_001), (837_208, 837_208), (900_000, 837_209)]
    {
        assert_eq!(upload(10_000, 26_000, known), told);
    }
    // It may not have grown at all: nothing says that the line carries no more.
    assert_eq!(upload(1_000, 5_000, 2_000_000), 2_000_000);
    assert_eq!(upload(0, 4_000, 800_000), 857_142);
    assert_eq!(upload(0, 4_001, 2_000_000), 899_994);
    // 4 ms more or less of 96, in which a download came.
    for (known, told) in [(1, 432_000), (440_000, 440_000), (900_000, 469_565)] {
        assert_eq!(near(DOWNLOAD, arrived(FULL / 2), [0, 0], known, 4_000), told);
    }
    // Less than 3 ms is no line with jitter.
    for (jitter, told) in [(2_999, 818_181), (3_000, 820_000)] {
        assert_eq!(near(UPLOAD, released(FULL), [10_000, 26_000], 820_000, jitter), told);
    }
    assert_eq!(near(UPLOAD, released(FULL), [5_000, 5_000], 2_000_000, 2_999), 900_000);
}

/// By a delay of more than twice the jitter, or by arrivals.
#[test]
fn a_queue_is_proved_by_more_than_jitter() {
    let proved = |sends, seen, delay, jitter| {
        let mut law = after(sends, &[seen; 3]);
        law.pass(1, seen, delay);
        law.note_jitter(us(jitter));
        law.history.is_proved()
    };
    assert!(proved(UPLOAD, released(FULL), 8_001, 4_000));
    assert!(!proved(UPLOAD, released(FULL), 8_000, 4_000));
    assert!(proved(UPLOAD, released(FULL), 1, 2_999));
    assert!(proved(DOWNLOAD, arrived(FULL / 2), 0, 4_000));
}
