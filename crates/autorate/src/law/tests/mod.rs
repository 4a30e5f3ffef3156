//! The rules of the law one at a time. The rate is 900,000 bytes a second and an interval 32 ms. So
//! thirds and sixteenths of both are whole numbers, and a byte more or less is seen.

use std::vec;
use std::vec::Vec;

use super::history::{GROWTH, PACKET, RECENT, TRAIN};
use super::*;

mod drain;
mod history;

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
fn it_begins_at_the_geometric_middle_and_keeps_limits_in_order() {
    assert_eq!(law(UPLOAD).rate(), Rate(900_000));
    let reversed = Limits { floor: Rate(4_000), ceiling: Rate(1_000) };
    assert_eq!(Law::new(UPLOAD, reversed, Time::ZERO).rate(), Rate(4_000));
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
    // What has fallen and grows again stands no longer.
    let mut law = jumped(0, 30_000);
    law.pass(1, released(FULL), 13_000);
    law.pass(1, released(FULL), 14_000);
    assert!(law.is_jump(us(15_999), law.history.noted));
    assert!(!law.is_jump(us(16_000), law.history.noted));
    // Nor is it one if less arrives than was known.
    for (bytes, jump) in [(FULL * 7 / 8, true), (FULL * 7 / 8 - 1, false)] {
        let mut law = after(DOWNLOAD, &[arrived(bytes); 3]);
        law.known = Some(900_000);
        law.pass(1, arrived(bytes), 12_000);
        assert_eq!(law.is_jump(us(12_000), law.history.noted), jump);
    }
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

/// A sixteenth over what was carried; twice as much each time until a quarter, where all was used
/// and more than was known.
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
    // Nor was what a load came back to after a dip: half of a sixteenth more than known is.
    for (known, gain) in [(872_728, 8), (872_729, 4), (910_000, 4)] {
        let mut law = ready(UPLOAD, FULL);
        law.known = Some(known);
        law.decide_now(&searching(0));
        assert_eq!((law.rate, law.gain), (956_250, gain), "{known}");
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
    let mut jittered = risen(0);
    jittered.known = Some(810_000);
    jittered.note_jitter(us(4_000));
    jittered.decide_now(&accused(3_000));
    assert_eq!((jittered.rate, jittered.known), (797_343, Some(810_000)));
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
    // Where the line gives much less than it did, what it has carried until now is a queue.
    for (known, drains) in [(914_286, false), (914_287, true)] {
        let mut law = risen(0);
        law.known = Some(known);
        law.decide_now(&accused(3_000));
        assert_eq!((law.is_draining(), law.known), (drains, Some(800_000)), "{known}");
    }
    let mut other = risen(0);
    other.reason = Some((Reason::Route, other.history.noted));
    assert!(!ends(other, accused(3_000)));
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
    // A 32nd more or less is the same.
    assert_eq!(holds(&[1_024, 1_056, 1_023, 1_024, 1_024]), vec![250, 500, 1_000, 2_000, 2_000]);
    assert_eq!(holds(&[1_057, 1_023, 1_024]), vec![250, 250, 500]);
    law.found(0);
    assert_eq!(law.known, Some(1));
}

/// Jitter lengthens no hold, unless the same capacity was proved before.
#[test]
fn holds_grow_by_what_is_more_than_jitter() {
    let mut law = law(UPLOAD);
    let mut hold = |(shown, capacity)| {
        law.shown = shown;
        let before = law.known.replace(capacity);
        law.learn(before);
        law.hold.as_micros() / 1_000
    };
    let found = [(false, 1_000), (false, 1_000), (true, 1_000), (false, 1_000)];
    assert_eq!(found.map(&mut hold), [250, 250, 500, 1_000]);
    let found = [(false, 2_000), (false, 2_000), (true, 2_000)];
    assert_eq!(found.map(&mut hold), [250, 250, 500]);
}

/// With 4 ms of jitter, what these make of 250 is as good as the same.
#[test]
fn jitter_makes_a_capacity_differ() {
    for (jitter, capacity, hold) in
        [(4_000, 1_048, 500), (4_000, 1_049, 250), (2_999, 1_032, 500), (2_999, 1_033, 250)]
    {
        let mut law = law(UPLOAD);
        law.note_jitter(us(jitter));
        law.found(1_000);
        // A 32nd is 31, rounded down.
        law.found(capacity - 1);
        assert_eq!(law.hold.as_micros() / 1_000, hold, "{jitter} {capacity}");
    }
}

/// A queue of 24 ms is one, whatever the jitter is.
#[test]
fn what_is_known_stays_by_jitter_only_if_the_delay_is_small() {
    let drain = |delay, known, jitter| {
        let mut law = law(UPLOAD);
        law.pass(GROWTH, released(FULL), 10_000);
        law.pass(1, released(FULL), 26_000);
        law.known = known;
        law.note_jitter(us(jitter));
        law.start_draining(us(delay), law.history.noted);
        (law.known, law.shown)
    };
    assert_eq!(drain(23_999, Some(880_000), 13_000), (Some(880_000), false));
    assert_eq!(drain(23_999, Some(880_000), 12_999), (Some(880_000), true));
    assert_eq!(drain(24_000, Some(880_000), 13_000), (Some(818_181), false));
    assert_eq!(drain(23_999, None, 13_000), (Some(818_181), false));
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
