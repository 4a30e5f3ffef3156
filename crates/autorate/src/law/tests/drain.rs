//! Drains: when they begin, how low they go, when they end, and what is learnt from them.

use super::*;

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
    // By a quarter of the jitter more, on a line that has it.
    for (jitter, least) in [(2_999, 6_000), (4_000, 7_000)] {
        let late = |delay| {
            let mut law = risen(UPLOAD);
            law.note_jitter(us(jitter));
            drains(law, searching(delay))
        };
        assert!(late(least) && !late(least - 1), "{jitter}");
    }
    for (known, expected) in [(914_286, false), (914_287, true)] {
        let mut law = risen(UPLOAD);
        law.known = Some(known);
        assert_eq!(drains(law, calm(6_000)), expected);
    }
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

/// Until the feedback the rate falls with what shows: 50 ms are gone after 250 ms at four fifths.
/// It is the same drain, and no later.
#[test]
fn a_drain_is_as_deep_as_the_queue_proves_long() {
    let deepened = |sends, ms, delay| {
        let mut law = draining(sends, 1, ms);
        let (changed, until) = (law.changed, law.drain.unwrap().until);
        law.decide_now(&accused(delay));
        assert_eq!((law.changed, law.drain.unwrap().until), (changed, until));
        (law.rate, law.known.unwrap())
    };
    for sends in [UPLOAD, DOWNLOAD] {
        assert_eq!(deepened(sends, 100, 20_000), (736_000, 800_000));
        assert_eq!(deepened(sends, 199, 50_000), (640_000, 800_000));
        assert_eq!(deepened(sends, 199, 300_000), (400_000, 800_000), "half at least");
    }
    assert_eq!(deepened(UPLOAD, 200, 23_000), (736_000, 800_000));
    // Not after a drain in vain, and never below the floor.
    let mut law = draining(UPLOAD, 1, 100);
    law.find_in_vain(us(50_000));
    law.decide_now(&accused(50_000));
    assert_eq!(law.rate, 736_000);
    let mut law = draining(UPLOAD, 1, 100);
    law.limits.floor = Rate(700_000);
    law.decide_now(&accused(50_000));
    assert_eq!(law.rate, 700_000);
}

/// A queue that stays while less passes than the line is taken to carry: it carries less.
#[test]
fn a_drain_learns_what_the_line_carries() {
    let stays = |bytes, delay| {
        let mut law = after(UPLOAD, &[released(FULL); 6]);
        law.known = Some(800_000);
        law.drain_at(800_000, us(20_000), (900_000, Some(810_000)), 1, law.history.noted);
        law.pass(6, released(bytes), delay + 1);
        law.pass(1, released(bytes), delay);
        law.decide_now(&accused(delay));
        (law.rate, law.known.unwrap(), law.drain.unwrap().capacity)
    };
    // 700,000 are seven eighths, and a microsecond is nearly nothing.
    assert_eq!(stays(22_400, 15_000), (736_000, 800_000, 800_000));
    assert_eq!(stays(22_399, 15_000), (657_974, 699_973, 699_973));
    // Less than 12 ms are left to the hold.
    assert_eq!(stays(22_399, 12_000), (666_374, 699_973, 699_973));
    assert_eq!(stays(22_399, 11_999), (736_000, 800_000, 800_000));
    // What has fallen, but not for long enough, is drained once more at what was shown.
    let once_more = |sends| {
        let mut law = draining(sends, 1, 96);
        let seen = Seen { arrived: FULL, released: 20_480, backlog: PACKET };
        (0..12).for_each(|n| law.pass(1, seen, 20_000 - 500 * n));
        law.decide_now(&accused(14_500));
        assert!(law.drain.unwrap().until > law.history.noted);
        (law.known.unwrap(), law.drain.unwrap().capacity)
    };
    // 640,000 in 160 ms, of which it took the line 157.5.
    assert_eq!(once_more(UPLOAD), (650_158, 650_158));
    assert_eq!(once_more(DOWNLOAD), (800_000, 800_000));
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

/// After 450 ms a drain is judged. Less than 12 ms that fell by a quarter are left to the hold. A
/// delay that fell is drained once more. One that did not counts as a failure, and the third is in
/// vain.
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

/// If a download gets less still while its drain goes on, arrivals are the capacity.
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
    assert_eq!(follow(25_600, 20_000), (736_000, 800_000, Reason::Delay));
}
