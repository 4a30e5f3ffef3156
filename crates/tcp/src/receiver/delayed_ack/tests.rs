//! Linux's rules for acknowledgements that are held back, one at a time.

use super::*;

const ROUND: Round = Round { srtt_us: 100_000, rto_ticks: 300 };

fn at(ms: u64) -> Now {
    Now::new(Time(ms * 1_000_000))
}

struct Receiver {
    acks: AckTimers,
    window: ReceiveWindow,
    nxt: u64,
}

impl Receiver {
    fn new(config: &Config) -> Receiver {
        let mut window = ReceiveWindow::new(config);
        window.start(1_460, 12, false);
        (window.peer_mss, window.acked) = (1_448, 1);
        Receiver { acks: AckTimers::new(config, Ticks::new(config.tick)), window, nxt: 1 }
    }

    /// One past its quick acknowledgements.
    fn steady() -> Receiver {
        let mut receiver = Receiver::new(&Config::default());
        receiver.acks.pace(&receiver.window, &ROUND, &at(1_000));
        receiver.acks.leave_quick();
        receiver
    }

    /// Data comes; true if it is acknowledged at once.
    fn data(&mut self, len: u32, ms: u64) -> bool {
        self.nxt += u64::from(len);
        self.acks.measure(len, false, &mut self.window);
        self.acks.pace(&self.window, &ROUND, &at(ms));
        self.acks.schedule();
        self.decide(false, ms)
    }

    fn decide(&mut self, out_of_order: bool, ms: u64) -> bool {
        let Receiver { acks, window, nxt } = self;
        let due = acks.decide(*nxt, out_of_order, window, &ROUND, &at(ms));
        if due {
            acks.sent();
            window.acked = *nxt;
        }
        due
    }
}

/// Linux: half the window in segments, two at least, as many as the settings say at most.
#[test]
fn the_first_segments_are_acknowledged_at_once() {
    for (offered, most, quick) in
        [(64_240, 16, 16), (28_960, 16, 10), (2_000, 16, 2), (64_240, 3, 3)]
    {
        let mut receiver = Receiver::new(&Config { quick_acks: most, ..Config::default() });
        receiver.window.offered = offered;
        let at_once = (0..40).filter(|_| receiver.data(1_448, 1_000)).count();
        // After that every second one.
        assert_eq!(at_once as u32, quick + (40 - quick) / 2, "{offered}");
    }
}

#[test]
fn every_second_full_segment_is_acknowledged() {
    let mut receiver = Receiver::steady();
    let answers: std::vec::Vec<bool> = (0..6).map(|_| receiver.data(1_448, 1_010)).collect();
    assert_eq!(answers, [false, true, false, true, false, true]);
    let mut prompt = Receiver::new(&Config { delayed_ack: false, ..Config::default() });
    prompt.acks.pace(&prompt.window, &ROUND, &at(1_000));
    prompt.acks.leave_quick();
    assert!((0..6).all(|_| prompt.data(1_448, 1_010)));
    // Nothing owed, nothing due.
    assert!(!receiver.decide(false, 1_011));
    receiver.acks.now();
    assert!(receiver.decide(false, 1_011));
    receiver.acks.quick_once();
    assert!(receiver.data(1_448, 1_012));
    assert!(!receiver.data(1_448, 1_013));
}

/// Linux's `icsk_ack.ato`: 40 ms while data flows, a mean of gaps that are longer than 20 ms.
#[test]
fn the_delay_adapts_to_the_rhythm_of_data() {
    let ato = |gaps: &[u64]| {
        let mut receiver = Receiver::steady();
        receiver.acks.ato = 100;
        let mut ms = 1_000;
        for gap in gaps {
            ms += gap;
            receiver.acks.pace(&receiver.window, &ROUND, &at(ms));
        }
        (receiver.acks.ato, receiver.acks.quick > 0)
    };
    assert_eq!(ato(&[20]), (70, false));
    assert_eq!(ato(&[21]), (71, false));
    assert_eq!(ato(&[99]), (149, false));
    assert_eq!(ato(&[100]), (100, false));
    assert_eq!(ato(&[300]), (100, false));
    // Longer than the timeout: the sender has started over.
    assert_eq!(ato(&[301]), (100, true));
    assert_eq!(ato(&[0, 0, 0, 0, 0, 0, 0, 0]), (40, false));
    assert_eq!(ato(&[99, 140, 200, 270]).0, 300);
}

/// `tcp_send_delayed_ack`: 200 ms at most, and no longer than a round trip if that is known.
#[test]
fn the_delay_has_bounds() {
    let due = |ato, pingpong, pushed, srtt_us| {
        let mut acks = Receiver::steady().acks;
        (acks.ato, acks.pingpong, acks.pushed) = (ato, pingpong, pushed);
        assert!(!acks.waiting());
        assert!(!acks.delay(&Round { srtt_us, ..ROUND }, &at(2_000)));
        assert!(acks.waiting());
        acks.due_tick - 2_000
    };
    assert_eq!(due(40, false, false, 5_000), 40);
    assert_eq!(due(100, false, false, 0), 100);
    assert_eq!(due(300, false, false, 0), 200);
    assert_eq!(due(100, false, false, 60_000), 60);
    assert_eq!(due(100, false, false, 5_000), 40);
    assert_eq!(due(300, true, false, 900_000), 200);
    assert_eq!(due(300, false, true, 900_000), 200);
    // A timer that runs stays, unless the new one is earlier, or it has nearly fired.
    let mut acks = Receiver::steady().acks;
    acks.ato = 40;
    assert!(!acks.delay(&ROUND, &at(2_000)));
    assert!(!acks.delay(&ROUND, &at(2_029)));
    assert_eq!((acks.due_tick, acks.next_timer()), (2_040, Time(2_041_000_000)));
    assert!(acks.delay(&ROUND, &at(2_030)));
    acks.due_tick = 2_100;
    assert!(!acks.delay(&ROUND, &at(2_029)));
    assert_eq!(acks.due_tick, 2_069);
}

#[test]
fn a_missed_delay_doubles_and_a_conversation_begins_anew() {
    let mut acks = Receiver::steady().acks;
    acks.ato = 40;
    for (ms, ato) in [(2_000, 80), (3_000, 160), (4_000, 300), (5_000, 300)] {
        acks.schedule();
        acks.due = at(ms).time;
        acks.on_timer(&ROUND, &at(ms - 1));
        assert!(acks.waiting());
        acks.on_timer(&ROUND, &at(ms));
        assert_eq!((acks.ato, acks.immediate, acks.waiting()), (ato, true, false));
        acks.sent();
    }
    // Data goes both ways: the timer only ends that.
    acks.last_data = 5_000;
    acks.on_data_sent(&at(5_300));
    assert!(!acks.pingpong);
    acks.on_data_sent(&at(5_299));
    assert!(acks.pingpong);
    acks.schedule();
    acks.due = at(6_000).time;
    acks.on_timer(&ROUND, &at(6_000));
    assert_eq!((acks.ato, acks.pingpong, acks.immediate), (40, false, true));
    // With nothing owed it has nothing to say.
    acks.sent();
    acks.due = at(7_000).time;
    acks.on_timer(&ROUND, &at(7_000));
    assert_eq!((acks.ato, acks.immediate), (40, false));
}

/// Linux's `__tcp_ack_snd_check`: without SACK each duplicate counts, and none is held back.
#[test]
fn without_sack_no_duplicate_is_held_back() {
    for (sack, held) in [(true, true), (false, false)] {
        let mut receiver = Receiver::steady();
        receiver.acks.hold_back(sack);
        let at_once = (0..9).all(|_| {
            receiver.acks.schedule();
            receiver.decide(true, 2_000)
        });
        assert_eq!(at_once, !held);
    }
}

/// Linux's `tcp_comp_sack_*`: three at once, then 44 together, for 1 ms or 5 % of the RTT.
#[test]
fn duplicates_are_held_back_after_the_third() {
    let mut receiver = Receiver::steady();
    let mut duplicate = |ms| {
        receiver.acks.schedule();
        (receiver.decide(true, ms), receiver.acks.next_timer())
    };
    for _ in 0..3 {
        assert_eq!(duplicate(2_000), (true, Time::MAX));
    }
    for n in 0..44 {
        assert_eq!(duplicate(2_000 + n / 44), (false, Time(2_001_100_000)));
    }
    assert!(duplicate(2_000).0);
    let acks = &mut receiver.acks;
    assert!(!acks.holds_back());
    acks.schedule();
    assert!(!receiver.decide(true, 2_001));
    let acks = &mut receiver.acks;
    assert!(acks.holds_back());
    acks.on_timer(&ROUND, &at(2_002));
    assert!(!acks.immediate);
    acks.on_timer(&ROUND, &at(2_003));
    assert!(acks.immediate && !acks.holds_back());
    // At another place three go out again.
    acks.sent();
    receiver.nxt += 1;
    receiver.acks.schedule();
    assert!(receiver.decide(true, 2_010));
    // A short RTT: a twentieth of it, by whichever of the two is the lower.
    receiver.acks.duplicates = 3;
    receiver.acks.schedule();
    let short = Round { srtt_us: 4_000, ..ROUND };
    receiver.acks.decide_out_of_order(receiver.nxt, &receiver.window, &short, &at(3_000));
    assert_eq!(receiver.acks.next_timer(), Time(3_000_300_000));
}

/// Linux's `__tcp_ack_snd_check`: data that fills a gap in part is acknowledged before the
/// application reads it, so that it takes room. Where nothing is held out of order, it is read
/// first.
#[test]
fn a_gap_filled_in_part_is_acknowledged_before_it_is_read() {
    let offered = |out_of_order| {
        let mut receiver = Receiver::steady();
        let now = at(1_010);
        receiver.window.auto_consume(receiver.nxt, &now);
        receiver.nxt += 2 * 1_448;
        receiver.acks.schedule();
        let Receiver { acks, window, nxt } = &mut receiver;
        assert!(acks.decide(*nxt, out_of_order, window, &ROUND, &now));
        window.offer(*nxt, || acks.leave_quick(), &now)
    };
    assert!(offered(true) < offered(false));
}

/// Linux's `tcp_cleanup_rbuf`: what is acknowledged because the application reads waits until
/// all of the moment has come, a small segment as well.
#[test]
fn what_comes_together_is_acknowledged_together() {
    let answers = |together: bool, lens: [u32; 2]| {
        let mut receiver = Receiver::steady();
        // The window moves on only when what has come has been read.
        receiver.window.offered = 200_000;
        let mut data = |len, ms, more| {
            receiver.window.auto_consume(receiver.nxt, &at(ms));
            if more {
                receiver.window.await_more();
            }
            receiver.data(len, ms)
        };
        let before = data(1_448, 1_010, false);
        [before, data(lens[0], 1_013, together), data(lens[1], 1_013, false)]
    };
    assert_eq!(answers(false, [1_448, 1_448]), [false, true, false]);
    assert_eq!(answers(true, [1_448, 1_448]), [false, false, true]);
    assert_eq!(answers(false, [100, 1_448]), [false, true, false]);
    assert_eq!(answers(true, [100, 1_448]), [false, false, true]);
    // A quick phase does not wait.
    let mut receiver = Receiver::steady();
    receiver.acks.enter_quick(2, &receiver.window);
    receiver.window.await_more();
    assert!(receiver.data(1_448, 1_013));
}

/// Linux's `tcp_measure_rcv_mss`: the longest seen, or a length that comes twice in a row.
#[test]
fn the_peers_segment_size_is_learnt() {
    let mut receiver = Receiver::steady();
    let mut measured = |len| {
        receiver.acks.pushed = false;
        receiver.acks.measure(len, false, &mut receiver.window);
        (receiver.window.peer_mss, receiver.acks.pushed)
    };
    assert_eq!(measured(1_448), (1_448, false));
    assert_eq!(measured(9_000), (1_448, false));
    assert_eq!(measured(1_000), (1_448, true));
    assert_eq!(measured(900), (1_448, true));
    assert_eq!(measured(900), (900, false));
    assert_eq!(measured(535), (900, true));
    assert_eq!(measured(535), (900, true));
    assert_eq!(measured(536), (900, true));
    assert_eq!(measured(536), (536, false));
    assert_eq!(measured(537), (537, false));
    let Receiver { acks, window, .. } = &mut receiver;
    acks.measure(1_448, true, window);
    assert!(acks.pushed);
}

/// RFC 1122, section 4.2.3.2, in Linux: a small segment is answered when it has been read.
#[test]
fn small_segments_are_answered_at_once_if_read() {
    for (auto_read, pingpong, answered) in
        [(true, false, true), (false, false, false), (true, true, false)]
    {
        let mut receiver = Receiver::steady();
        receiver.window.set_auto_read(auto_read);
        receiver.acks.pingpong = pingpong;
        assert_eq!(receiver.data(100, 1_010), answered, "{auto_read} {pingpong}");
    }
}

/// `tcp_cleanup_rbuf`: when an application that reads late has read, more than a segment is
/// acknowledged. With the last of the data, so is a small segment, unless data goes both ways.
#[test]
fn reading_acknowledges_what_waits_for_that() {
    let due = |len, scheduled, pushed, pingpong, read| {
        let mut receiver = Receiver::steady();
        receiver.window.set_auto_read(false);
        (receiver.window.peer_mss, receiver.window.acked) = (1_448, receiver.nxt);
        let start = receiver.nxt;
        receiver.window.consume(start - 1, start, &at(1_000));
        (receiver.acks.scheduled, receiver.acks.pushed) = (scheduled, pushed);
        receiver.acks.pingpong = pingpong;
        receiver.window.consume(read, start + len, &at(1_010));
        receiver.acks.due_at_read(start + len, &receiver.window)
    };
    assert!(due(1_449, true, false, true, 1) && !due(1_448, true, false, false, 1_448));
    assert!(!due(1_449, false, false, true, 1));
    assert!(due(100, true, true, false, 100) && !due(100, true, true, false, 99));
    assert!(!due(100, true, true, true, 100) && !due(100, true, false, false, 100));
    assert!(!due(100, false, true, false, 100));
}

#[test]
fn a_quick_phase_ends_a_conversation() {
    let mut receiver = Receiver::steady();
    (receiver.acks.pingpong, receiver.acks.ato) = (true, 100);
    receiver.acks.enter_quick(5, &receiver.window);
    let AckTimers { pingpong, ato, quick, .. } = receiver.acks;
    assert_eq!((pingpong, ato, quick), (false, 40, 5));
    // More is not taken back by less; what nobody was owed uses nothing up.
    receiver.acks.enter_quick(2, &receiver.window);
    receiver.acks.sent();
    assert_eq!(receiver.acks.quick, 5);
    receiver.acks.ato = 100;
    for left in [4, 3, 2, 1] {
        receiver.acks.schedule();
        receiver.acks.sent();
        assert_eq!((receiver.acks.quick, receiver.acks.ato), (left, 100));
    }
    receiver.acks.schedule();
    receiver.acks.sent();
    assert_eq!((receiver.acks.quick, receiver.acks.ato), (0, 40));
}

/// Linux's `__tcp_ack_snd_check`: a twentieth of the lesser RTT, a ms at most, and its slack.
#[test]
fn acks_are_held_back_for_a_twentieth_of_the_rtt() {
    for (rtt_ms, srtt_us, us) in [
        (8, 0, 400),
        (8, 4_000, 200),
        (4, 8_000, 200),
        (0, 8_000, 400),
        (8, 8_000, 400),
        (100, 0, 1_000),
        (0, 0, 0),
    ] {
        let mut receiver = Receiver::steady();
        if rtt_ms > 0 {
            let mut segment = crate::Segment::new(crate::TcpFlags::ACK, 1, 1);
            (segment.len, segment.ts_echo) = (1_448, 1_001);
            receiver.window.measure_rtt(&segment, &at(1_000 + rtt_ms));
        }
        let Receiver { acks, window, nxt } = &mut receiver;
        let round = Round { srtt_us, ..ROUND };
        for n in 0..4 {
            acks.schedule();
            assert_eq!(acks.decide(*nxt, true, window, &round, &at(2_000)), n < 3);
        }
        assert_eq!(acks.next_timer(), Time(2_000_100_000 + 1_000 * us), "{rtt_ms} {srtt_us}");
    }
}
