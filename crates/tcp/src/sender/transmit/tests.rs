//! Choice of the next segment, and window validation, one rule at a time.

use super::*;
use crate::{Config, CongestionControl};
use simnel_core::time::Time;

/// Window after an idle time of so many ms, with a timeout of 1 s.
fn after_idle(idle_ms: u64, change: impl Fn(&mut Sender)) -> u32 {
    let mut sender = Sender::new(&Config::default());
    (sender.window.cwnd, sender.window.ssthresh) = (100, 40);
    (sender.window.last_sent_ms, sender.counters.data_segments) = (5_000, 1);
    sender.used = 50;
    change(&mut sender);
    sender.restart_after_idle(&Now::new(Time((5_000 + idle_ms) * 1_000_000)));
    let acted = sender.used == 0;
    // Three quarters of the window are a threshold.
    assert_eq!(sender.window.ssthresh, if acted { 75 } else { 40 });
    assert_eq!(sender.used_since_ms, if acted { 5_000 + idle_ms as u32 } else { 0 });
    assert!(acted || sender.window.cwnd == 100);
    sender.window.cwnd
}

/// RFC 5681, section 4.1, and RFC 2861: a half for each timeout, down to the initial window.
#[test]
fn an_idle_time_halves_the_window_for_each_timeout() {
    for (idle_ms, cwnd) in [
        (1_000, 100),
        (1_001, 50),
        (2_000, 100 / 2),
        (2_001, 25),
        (3_001, 12),
        (4_001, 10),
        (99_000, 10),
    ] {
        assert_eq!(after_idle(idle_ms, |_| {}), cwnd, "{idle_ms}");
    }
    // Not below what there was.
    assert_eq!(after_idle(9_000, |sender| sender.window.initial = 200), 100);
    assert_eq!(after_idle(9_000, |sender| sender.settings.slow_start_after_idle = false), 100);
    assert_eq!(after_idle(9_000, |sender| sender.counters.data_segments = 0), 100);
    assert_eq!(after_idle(9_000, |sender| sender.restarted = true), 100);
    let bbr = Config { congestion: CongestionControl::Bbr, ..Config::default() };
    let own = |sender: &mut Sender| {
        sender.control = crate::congestion::Controller::new(&bbr);
    };
    assert_eq!(after_idle(9_000, own), 100);
}

/// RFC 2861: half way to what was used, at least the initial window, and only in order.
#[test]
fn an_unused_window_shrinks_half_way() {
    let shrunk = |used, phase| {
        let mut sender = Sender::new(&Config::default());
        (sender.window.cwnd, sender.window.ssthresh) = (100, 40);
        (sender.used, sender.window.phase) = (used, phase);
        sender.shrink_unused_window(&Now::new(Time(7_000_000)));
        assert_eq!(sender.used_since_ms, 7);
        (sender.window.cwnd, sender.window.ssthresh, sender.used)
    };
    assert_eq!(shrunk(60, Phase::Open), (80, 75, 0));
    assert_eq!(shrunk(4, Phase::Open), (55, 75, 0));
    assert_eq!(shrunk(100, Phase::Open), (100, 40, 0));
    assert_eq!(shrunk(60, Phase::Disorder), (100, 40, 60));
}

/// Linux's `tcp_is_cwnd_limited`: the limit was met, or, in slow start, half of it was out.
#[test]
fn a_window_of_which_half_is_used_may_grow_in_slow_start() {
    let limited = |limited, ssthresh, most_out| {
        let mut sender = Sender::new(&Config::default());
        (sender.window.cwnd, sender.window.ssthresh) = (20, ssthresh);
        (sender.limited, sender.most_out) = (limited, most_out);
        sender.is_cwnd_limited()
    };
    assert!(limited(true, 20, 0) && limited(false, 21, 11));
    assert!(!limited(false, 21, 10) && !limited(false, 20, 11));
}

/// RFC 896 with Minshall's refinement: one small segment may be out, and only it holds others.
#[test]
fn a_small_segment_waits_for_a_small_one_in_flight() {
    let holds = |nagle, in_flight, small_end, una| {
        let mut sender = Sender::new(&Config { nagle, ..Config::default() });
        if in_flight {
            sender.board.push(Record { seq: una, len: 100, ..Record::default() });
        }
        (sender.small_end, sender.window.una) = (small_end, una);
        sender.nagle_holds()
    };
    assert!(holds(true, true, 1_001, 1_000));
    assert!(!holds(true, true, 1_000, 1_000) && !holds(true, true, 900, 1_000));
    assert!(!holds(false, true, 1_001, 1_000) && !holds(true, false, 1_001, 1_000));
}

/// Linux: `tcp_tso_should_defer`.
#[test]
fn a_part_of_a_super_packet_waits_for_an_ack_that_is_due() {
    let waits = |age: u32, rtt: u32, since_write: u32| {
        let mut sender = Sender::new(&Config { tso_segments: 44, ..Config::default() });
        (sender.window.mss, sender.window.cwnd) = (1_000, 30);
        sender.window.pacing_rate = 30 * 1_024_000;
        sender.rtt.update(rtt, 0, 0);
        let now = Now::new(Time(5_000_000_000));
        let sent_us = now.us.wrapping_sub(age);
        sender.board.push(Record { len: 1_000, sent_us, ..Record::default() });
        sender.window.last_sent_ms = now.ms.wrapping_sub(since_write);
        sender.tso_waits(100_000, 29, &now)
    };
    assert!(waits(19_000, 20_000, 0) && waits(30_000, 20_000, 1));
    assert!(!waits(18_999, 20_000, 0) && !waits(0, 20_000, 0));
    assert!(waits(500, 1_000, 0) && !waits(499, 1_000, 0));
    assert!(!waits(19_000, 20_000, 2));
}

#[test]
fn neither_syn_nor_fin_is_payload() {
    for (flags, len) in [(0, 100), (flag::SYN, 99), (flag::FIN, 99), (flag::PSH, 100)] {
        let segment = outgoing(&Record { seq: 7, len: 100, flags, ..Record::default() }, true);
        assert_eq!((segment.seq, segment.len, segment.fresh), (7, len, true));
        let said = (segment.syn, segment.fin, segment.psh);
        assert_eq!(said, (flags == flag::SYN, flags == flag::FIN, flags == flag::PSH));
    }
}

/// Linux's `tcp_tso_should_defer`: nothing waits if the burst has begun, or if it repairs a loss or
/// ends what was written. Nor does a third of the window or a super-packet wait.
#[test]
fn what_is_enough_or_urgent_does_not_wait() {
    let waits = |in_flight, unsent, rate: u64, change: fn(&mut Sender)| {
        let mut sender = Sender::new(&Config { tso_segments: 44, ..Config::default() });
        (sender.window.mss, sender.window.cwnd) = (1_000, 30);
        sender.window.pacing_rate = rate * 1_024_000;
        sender.rtt.update(20_000, 0, 0);
        let now = Now::new(Time(5_000_000_000));
        let sent_us = now.us - 19_500;
        sender.board.push(Record { len: 1_000, sent_us, ..Record::default() });
        sender.window.last_sent_ms = now.ms;
        change(&mut sender);
        sender.tso_waits(unsent, in_flight, &now)
    };
    let nothing = |_: &mut Sender| {};
    assert!(waits(29, 100_000, 30, nothing) && waits(21, 100_000, 30, nothing));
    assert!(!waits(20, 100_000, 30, nothing));
    assert!(waits(27, 100_000, 4, nothing) && !waits(27, 100_000, 3, nothing));
    assert!(waits(27, 3_001, 30, nothing) && !waits(27, 3_000, 30, nothing));
    assert!(!waits(29, 100_000, 30, |sender| sender.burst = 1));
    assert!(waits(29, 100_000, 30, |sender| sender.window.phase = Phase::Cwr));
    assert!(!waits(29, 100_000, 30, |sender| sender.window.phase = Phase::Recovery));
}

/// A sender in the midst of a transfer: five segments of 1000 in flight, more written.
fn sending() -> Sender {
    sending_by(CongestionControl::Cubic)
}

fn sending_by(congestion: CongestionControl) -> Sender {
    let mut sender = Sender::new(&Config { congestion, ..Config::default() });
    sender.window.mss = 1_000;
    for n in 0..5 {
        sender.board.push(Record { seq: 1_001 + 1_000 * n, len: 1_000, ..Record::default() });
    }
    (sender.window.una, sender.window.nxt, sender.write_end) = (1_001, 6_001, 100_000);
    (sender.peer_edge, sender.window.cwnd) = (100_000, 10);
    sender
}

/// RFC 9293, section 3.8.6, and RFC 5681: room in both windows; Nagle; the memory of the host.
#[test]
fn new_data_needs_room_everywhere() {
    let next = |change: fn(&mut Sender)| {
        let mut sender = sending();
        change(&mut sender);
        sender.next_new(&Now::default())
    };
    assert_eq!(next(|_| {}), Ok(1_000));
    assert_eq!(next(|sender| sender.peer_edge = 7_001), Ok(1_000));
    assert_eq!(next(|sender| sender.peer_edge = 7_000), Err(Limit::Peer));
    assert_eq!(next(|sender| sender.window.cwnd = 6), Ok(1_000));
    assert_eq!(next(|sender| sender.window.cwnd = 5), Err(Limit::Window));
    assert_eq!(next(|sender| sender.settings.in_flight_max = 6_000), Ok(1_000));
    assert_eq!(next(|sender| sender.settings.in_flight_max = 5_999), Err(Limit::Other));
    assert_eq!(next(|sender| sender.settings.in_flight_max = 5_000), Err(Limit::Other));
    assert_eq!(next(|sender| sender.write_end = 6_001), Err(Limit::Application));
    // A small segment is out: full ones leave, small ones only with FIN.
    let small = |change: fn(&mut Sender)| {
        let mut sender = sending();
        (sender.small_end, sender.write_end) = (6_001, 6_901);
        change(&mut sender);
        sender.next_new(&Now::default())
    };
    assert_eq!(small(|_| {}), Err(Limit::Other));
    assert_eq!(small(|sender| sender.write_end = 7_001), Ok(1_000));
    assert_eq!(small(|sender| sender.closing = true), Ok(900));
}

#[test]
fn a_fraction_of_a_super_packet_counts_as_held_by_the_window() {
    let mut sender = sending();
    sender.settings.tso_segments = 44;
    sender.window.pacing_rate = 30 * 1_024_000;
    sender.window.cwnd = 6;
    sender.rtt.update(20_000, 0, 0);
    let now = Now::new(Time(5_000_000_000));
    sender.board.get_mut(0).sent_us = now.us - 20_000;
    sender.window.last_sent_ms = now.ms;
    sender.window.cwnd = 20;
    sender.write_end = 1 << 20;
    for n in 5..15 {
        sender.board.push(Record { seq: 1_001 + 1_000 * n, len: 1_000, ..Record::default() });
    }
    assert_eq!(sender.next_new(&now), Err(Limit::Window));
    sender.settings.tso_segments = 1;
    assert_eq!(sender.next_new(&now), Ok(1_000));
}

/// Linux's `tcp_cwnd_validate`: the most of each round trip, and the limit above all.
#[test]
fn the_most_in_flight_is_noted_for_each_round_trip() {
    for (usage_end, limited_before, most_out, limited, noted) in [
        (1_001, false, 9, false, true),
        (1_002, false, 9, false, false),
        (1_002, true, 3, false, false),
        (1_002, false, 4, false, true),
        (1_002, false, 5, false, false),
        (1_002, true, 9, true, true),
    ] {
        let mut sender = sending();
        (sender.usage_end, sender.most_out) = (usage_end, most_out);
        sender.limited = limited_before;
        sender.validate_window(limited, &Now::default());
        let found = (sender.limited, sender.most_out, sender.usage_end);
        let kept = (limited_before, most_out, usage_end);
        assert_eq!(found, if noted { (limited, 5, 6_001) } else { kept });
    }
}

/// RFC 2861: a window that was not used for a timeout of 1 s shrinks.
#[test]
fn a_window_shrinks_when_unused_for_a_timeout() {
    let shrunk = |ms: u64, change: fn(&mut Sender)| {
        let mut sender = sending();
        (sender.window.cwnd, sender.window.ssthresh) = (100, 40);
        (sender.usage_end, sender.used_since_ms, sender.used) = (1 << 40, 5_000, 20);
        change(&mut sender);
        sender.validate_window(sender.limited, &Now::new(Time(ms * 1_000_000)));
        sender.window.cwnd
    };
    assert_eq!((shrunk(5_999, |_| {}), shrunk(6_000, |_| {})), (100, 60));
    assert_eq!(shrunk(6_000, |sender| sender.limited = true), 100);
    assert_eq!(shrunk(6_000, |sender| sender.settings.slow_start_after_idle = false), 100);
    let own = |sender: &mut Sender| {
        let bbr = Config { congestion: CongestionControl::Bbr, ..Config::default() };
        sender.control = crate::congestion::Controller::new(&bbr);
    };
    assert_eq!(shrunk(6_000, own), 100);
}

#[test]
fn the_end_of_a_burst_notes_the_limit_and_sets_the_timer() {
    let end = |burst, cwnd, cwnd_limited, stale| {
        let mut sender = sending();
        (sender.burst, sender.window.cwnd, sender.timer_stale) = (burst, cwnd, stale);
        // Without SACK there is no probe.
        sender.sack = false;
        assert!(sender.end_burst(cwnd_limited, &Now::default()).is_none());
        assert!(!sender.dirty && !sender.timer_stale && sender.burst == 0);
        (sender.limited, sender.usage_end > 0, sender.timers.kind)
    };
    use crate::sender::timers::Kind;
    assert_eq!(end(1, 5, false, false), (true, true, Kind::None));
    assert_eq!(end(1, 6, false, true), (false, true, Kind::Rto));
    assert_eq!(end(0, 5, false, true), (false, false, Kind::Rto));
    assert_eq!(end(0, 6, true, false), (true, true, Kind::None));
}

/// RFC 6298, section 5.3, in Linux's way: the timer starts anew with the first segment alone,
/// unless it serves reordering.
#[test]
fn the_head_sent_again_sets_the_timer_anew() {
    use crate::sender::timers::Kind;
    let set = |id, kind| {
        let mut sender = sending();
        (sender.timers.kind, sender.timers.at) = (kind, Time(77));
        sender.mark_lost(id);
        let now = Now::new(Time(1_000_000_000));
        assert_eq!(sender.resend_lost(&now).unwrap().seq, 1_001 + 1_000 * u64::from(id));
        assert!(sender.resend_lost(&now).is_none());
        (sender.timers.kind, sender.timers.at > Time(77))
    };
    assert_eq!(set(0, Kind::Rto), (Kind::Rto, true));
    assert_eq!(set(0, Kind::Probe), (Kind::Rto, true));
    assert_eq!(set(0, Kind::Reordering), (Kind::Reordering, false));
    assert_eq!(set(1, Kind::Rto), (Kind::Rto, false));
}

/// RFC 3522: the stamp of the first repetition of an episode is kept, and of losses alone.
#[test]
fn repetitions_are_counted_and_the_first_one_stamped() {
    let mut sender = sending();
    let at = |ms: u64| Now::new(Time(ms * 1_000_000));
    sender.recovery.undo_resends = -1;
    sender.send_again(4, false, &at(10));
    assert_eq!((sender.recovery.resend_stamp, sender.recovery.undo_resends), (0, -1));
    sender.send_again(0, true, &at(20));
    sender.send_again(1, true, &at(30));
    assert_eq!((sender.recovery.resend_stamp, sender.recovery.undo_resends), (21, 2));
    let counters = &sender.counters;
    assert_eq!((counters.resends, counters.data_segments, counters.bytes_sent), (3, 3, 3_000));
    // FIN alone is no data.
    let fin = Record { seq: 6_001, len: 1, flags: flag::FIN, ..Record::default() };
    let id = sender.board.push(fin);
    sender.send_again(id, true, &at(40));
    let counters = &sender.counters;
    assert_eq!((counters.resends, counters.data_segments, counters.bytes_sent), (4, 3, 3_000));
}

/// RFC 9293, section 3.8.6.1: as much as the window takes, or a number that was acknowledged.
#[test]
fn a_window_probe_takes_what_room_there_is() {
    for (room, unsent, seq, len) in [
        (100, 5_000, 6_001, 100),
        (5_000, 100, 6_001, 100),
        (5_000, 5_000, 6_001, 1_000),
        (0, 5_000, 1_000, 0),
        (100, 0, 1_000, 0),
    ] {
        let mut sender = sending();
        (sender.peer_edge, sender.write_end) = (6_001 + room, 6_001 + unsent);
        let probe = sender.force(Forced::WindowProbe, &Now::default()).unwrap();
        assert_eq!((probe.seq, probe.len), (seq, len), "{room} {unsent}");
    }
}

/// RFC 8985, section 7.3: new data if there is some and the peer takes it, else the last again.
#[test]
fn a_tail_loss_probe_is_new_data_if_possible() {
    for (edge, write_end, seq) in
        [(7_001, 9_000, 6_001), (7_000, 9_000, 5_001), (9_000, 6_001, 5_001)]
    {
        let mut sender = sending();
        (sender.peer_edge, sender.write_end) = (edge, write_end);
        let probe = sender.force(Forced::Probe, &Now::default()).unwrap();
        assert_eq!((probe.seq, probe.len, probe.fresh), (seq, 1_000, seq == 6_001));
        assert_eq!(sender.recovery.probe_end, sender.window.nxt);
        assert_eq!(sender.recovery.probe_resent, !probe.fresh);
    }
}

/// Linux's `tcp_send_loss_probe`: new data waits for the pacer, and the timeout takes over; what is
/// sent again does not wait.
#[test]
fn a_paced_probe_of_new_data_waits() {
    for (edge, write_end, sent) in [(9_000, 9_000, false), (9_000, 6_001, true)] {
        let mut sender = sending_by(CongestionControl::Bbr);
        (sender.peer_edge, sender.write_end) = (edge, write_end);
        sender.pacer.after_sending(1_000, 10, 1_000, Time(7_000_000));
        let probe = sender.force(Forced::Probe, &Now::new(Time(7_000_001)));
        assert_eq!(probe.is_some(), sent);
        assert_eq!(sender.recovery.probe_end, if sent { 6_001 } else { 0 });
        assert_eq!(sender.timers.kind, super::super::timers::Kind::Rto);
    }
}

/// Linux's `forced_push`: whenever more than half the largest window has left without.
#[test]
fn half_a_window_is_pushed() {
    let mut sender = sending();
    (sender.source.pushed, sender.source.first_half) = (6_001, 2_000);
    let pushed: std::vec::Vec<bool> =
        (0..6).map(|_| sender.send_segment(1_000, &Now::default()).psh).collect();
    assert_eq!(pushed, [false, false, true, false, false, true]);
    // Full segments hold no small ones back, and FIN alone is no data.
    assert_eq!((sender.small_end, sender.counters.data_segments), (0, 6));
    sender.send_segment(999, &Now::default());
    assert_eq!(sender.small_end, sender.window.nxt);
    (sender.closing, sender.write_end) = (true, sender.window.nxt);
    assert!(sender.send_segment(0, &Now::default()).fin);
    assert_eq!(sender.counters.data_segments, 7);
}

/// Linux's `tcp_rate_check_app_limited`: at a write, if all has left that was written before, the
/// window has room and no loss is left to repair. That nothing is left to send is no sign of it.
#[test]
fn a_write_is_late_where_nothing_else_limits() {
    let limited = |cwnd, unsent, lost, resent| {
        let mut sender = sending_by(CongestionControl::Bbr);
        sender.write_end = sender.window.nxt + unsent;
        sender.window.cwnd = cwnd;
        (sender.board.lost_out, sender.board.resent_out) = (lost, resent);
        sender.send_new(&Now::default());
        assert!(!sender.sampler.app_limited());
        sender.write_end = sender.window.nxt + unsent;
        sender.write(1);
        sender.send_new(&Now::default());
        sender.sampler.app_limited()
    };
    assert!(limited(6, 0, 0, 0) && limited(6, 0, 1, 1) && limited(8, 999, 0, 0));
    assert!(!limited(5, 0, 0, 0) && !limited(6, 0, 1, 0) && !limited(4, 0, 0, 0));
    assert!(!limited(6, 1_000, 0, 0));
}

/// Linux's `tcp_rate_skb_sent`: what leaves again is stamped anew, its limit included; only an
/// empty flight makes a new start.
#[test]
fn a_repetition_is_stamped_as_it_leaves() {
    let mut sender = sending_by(CongestionControl::Bbr);
    sender.sampler.limit_by_application(7, 0);
    (0..5).for_each(|id| sender.mark_lost(id));
    sender.window.delivered = 3;
    sender.send_again(0, true, &Now::new(Time(9_000_000)));
    let departure = sender.board.departure(0);
    let stamps = (departure.delivered, departure.delivered_us, departure.first_sent_us);
    assert_eq!(stamps, (3, 0, 0));
    assert!(sender.board.get(0).has(flag::APP_LIMITED));
    assert!(!sender.board.get(1).has(flag::APP_LIMITED));
    // What is new is stamped as well.
    let id = sender.board.last_id().wrapping_add(1);
    sender.write_end = 7_001;
    sender.send_segment(1_000, &Now::new(Time(9_000_000)));
    assert!(sender.board.get(id).has(flag::APP_LIMITED) && sender.board.get(id).has(flag::PSH));
    // Once the limit is over, it is forgotten.
    sender.sampler = sending_by(CongestionControl::Bbr).sampler;
    sender.send_again(0, true, &Now::new(Time(9_000_000)));
    assert!(!sender.board.get(0).has(flag::APP_LIMITED));
}

/// Linux's `tcp_event_data_sent`: an idle time begins with the last data, even if that is a
/// retransmission. The control hears when data leaves while nothing is in flight. FIN alone is no
/// data.
#[test]
fn a_repetition_ends_an_idle_time() {
    for (lost, len, app_limited, sent_ms) in
        [(5, 1_000, true, 9), (4, 1_000, false, 9), (5, 1, false, 0)]
    {
        let mut sender = sending_by(CongestionControl::Bbr);
        sender.sampler.limit_by_application(7, 0);
        (0..lost).for_each(|id| sender.mark_lost(id));
        if len == 1 {
            let fin = Record { len, flags: flag::FIN | flag::LOST, ..*sender.board.get(0) };
            *sender.board.get_mut(0) = fin;
        }
        sender.restarted = true;
        sender.send_again(0, true, &Now::new(Time(9_000_000)));
        assert_eq!((sender.window.app_limited, sender.window.last_sent_ms), (app_limited, sent_ms));
        assert_eq!(sender.restarted, sent_ms == 0);
    }
}

#[test]
fn a_shut_window_is_probed_only_when_nothing_is_in_flight() {
    let mut sender = sending();
    sender.peer_edge = 6_001;
    sender.send_new(&Now::default());
    assert_eq!(sender.timers.kind, crate::sender::timers::Kind::None);
}

/// Linux: a ms at the pacing rate, two segments at least, as many as the settings say at most.
#[test]
fn super_packets_last_a_millisecond() {
    for (rate, segments) in [(0, 2), (3 * 1_024_000, 3), (3 * 1_024_000 - 1, 2), (1 << 40, 44)] {
        let mut sender = Sender::new(&Config { tso_segments: 44, ..Config::default() });
        (sender.window.mss, sender.window.pacing_rate) = (1_000, rate);
        assert_eq!(sender.burst_goal(), segments, "{rate}");
    }
}
