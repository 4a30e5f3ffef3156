//! Acknowledgements, one rule at a time.

use super::*;
use crate::Config;
use simnel_core::time::Time;

fn nothing() -> Ack {
    Ack::new(0, 0)
}

/// A sender that has sent up to 1001 in segments of 100, and five of them twice.
fn sender() -> Sender {
    let mut sender = Sender::new(&Config::default());
    (sender.window.una, sender.window.nxt, sender.window.mss) = (1, 1_001, 100);
    (sender.counters.resends, sender.peer_window_max) = (5, 60_000);
    for n in 0..10 {
        sender.board.push(Record { seq: 1 + 100 * n, len: 100, ..Record::default() });
    }
    sender
}

/// RFC 2883 and RFC 8985, section 7.4: of the probe, or a reason to wait longer.
#[test]
fn a_report_is_of_the_probe_or_of_reordering() {
    let report = |left, right, probe_end, reordering_seen, resends| {
        let (mut sender, mut ack) = (sender(), nothing());
        sender.recovery.probe_end = probe_end;
        sender.recovery.reordering_seen = reordering_seen;
        sender.counters.resends = resends;
        let believed = sender.take_duplicate_report(left, right, (1, 1), &mut ack);
        assert_eq!(believed, ack.has(fact::DUPLICATE));
        assert_eq!(sender.window.delivered, u32::from(believed));
        (ack.facts, sender.rack.duplicate_seen)
    };
    let probe = fact::DUPLICATE | fact::DUPLICATE_PROBE;
    assert_eq!(report(901, 1_001, 1_001, true, 1), (probe, false));
    assert_eq!(report(801, 901, 1_001, true, 1), (fact::DUPLICATE, true));
    assert_eq!(report(801, 901, 1_001, false, 1), (fact::DUPLICATE, false));
    assert_eq!(report(901, 1_001, 0, true, 1), (fact::DUPLICATE, true));
    // Nothing was sent twice, or nothing is there.
    assert_eq!(report(901, 1_001, 1_001, true, 0), (fact::DUPLICATE_PROBE, false));
    assert_eq!(report(901, 901, 1_001, true, 1), (0, false));
}

/// Linux's `tcp_dsack_seen`: a needless repetition was delivered, too. More cannot have come twice
/// than was sent twice, nor than fits into the window.
#[test]
fn what_came_twice_was_delivered_twice() {
    let mut sender = sender();
    let mut report = |left, right| {
        let believed = sender.take_duplicate_report(left, right, (1, 1), &mut nothing());
        (believed, sender.window.delivered)
    };
    assert_eq!(report(101, 201), (true, 1));
    assert_eq!(report(201, 451), (true, 4));
    assert_eq!(report(201, 399), (false, 4));
    assert_eq!(report(201, 301), (false, 4));
    sender.counters.resends = 9;
    assert!(sender.take_duplicate_report(1, 51, (1, 1), &mut nothing()));
    sender.peer_window_max = 99;
    assert!(!sender.take_duplicate_report(1, 101, (1, 1), &mut nothing()));
    assert!(sender.take_duplicate_report(1, 100, (1, 1), &mut nothing()));

    // It counts for the control, and what is not believed is an ordinary block.
    for (resends, delivered) in [(1, 2), (0, 2)] {
        let mut sender = self::sender();
        sender.counters.resends = resends;
        let mut segment = Segment { sack_count: 2, ..Segment::new(TcpFlags::ACK, 1, 101) };
        (segment.sack[0], segment.sack[1]) = ((301, 401), (301, 401));
        sender.on_ack(&segment, &Now::default());
        assert_eq!(sender.window.delivered, delivered + resends);
        assert_eq!((sender.board.sacked_out, sender.board.len()), (1, 9));
    }
}

/// Linux's `tcp_sacktag_one`: if a segment had been SACKed before its repetition came twice, the
/// original was only late.
#[test]
fn a_repetition_of_what_was_sacked_tells_of_reordering() {
    let reordered = |flags, left, right, una, ack_seq, marker| {
        let (mut sender, mut ack) = (sender(), nothing());
        sender.board.get_mut(2).flags = flags;
        sender.recovery.undo_marker = marker;
        sender.take_duplicate_report(left, right, (una, ack_seq), &mut ack);
        (ack.reordered != NO_SEQ).then_some(ack.reordered)
    };
    let again = flag::EVER_RESENT;
    assert_eq!(reordered(again | flag::SACKED, 201, 301, 1, 101, None), Some(201));
    assert_eq!(reordered(again, 201, 301, 1, 101, None), None);
    assert_eq!(reordered(flag::SACKED, 201, 301, 1, 101, None), None);
    assert_eq!(reordered(again | flag::SACKED, 301, 401, 1, 101, None), None);
    // What this acknowledges counts if it is of the episode that may be undone.
    assert_eq!(reordered(again | flag::SACKED, 201, 301, 1, 301, None), None);
    assert_eq!(reordered(again | flag::SACKED, 201, 301, 1, 301, Some(1)), Some(201));
    assert_eq!(reordered(again | flag::SACKED, 201, 301, 1, 301, Some(300)), Some(201));
    assert_eq!(reordered(again | flag::SACKED, 201, 301, 1, 301, Some(301)), None);
    assert_eq!(reordered(again | flag::SACKED, 201, 301, 1, 251, Some(1)), None);
    assert_eq!(reordered(again | flag::SACKED, 201, 301, 301, 301, Some(1)), None);
    // A block that begins where all before is acknowledged is no valid one.
    assert_eq!(reordered(again | flag::SACKED, 201, 301, 1, 200, None), Some(201));
    assert_eq!(reordered(again | flag::SACKED, 201, 301, 1, 201, None), None);
    assert_eq!(reordered(again | flag::SACKED, 201, 301, 1, 201, Some(1)), None);
}

/// Linux's `tcp_is_sackblock_valid`: of what was sent and is not acknowledged.
#[test]
fn a_block_lies_beyond_what_is_acknowledged() {
    for (left, right, sacked) in [
        (201, 301, 1),
        (901, 1_001, 1),
        (101, 301, 0),
        (51, 301, 0),
        (901, 1_002, 0),
        (301, 301, 0),
        (401, 301, 0),
    ] {
        let mut sender = sender();
        let mut segment = Segment { sack_count: 1, ..Segment::new(TcpFlags::ACK, 1, 101) };
        segment.sack[0] = (left, right);
        sender.on_ack(&segment, &Now::default());
        assert_eq!(sender.board.sacked_out, sacked, "{left} {right}");
        // What begins below is three segments that came twice.
        let twice = if left < 101 { 3 } else { 0 };
        assert_eq!(sender.window.delivered, 1 + sacked + twice, "{left} {right}");
    }
}

/// The newest of what an acknowledgement delivers, by a SACK or not, sent again or not; and when
/// that came.
#[test]
fn the_newest_delivery_is_noted() {
    let mut sender = sender();
    let sent = [(0, 700, 0), (1, 900, flag::EVER_RESENT), (2, 800, 0), (4, 950, 0), (5, 940, 0)];
    for (id, sent_us, flags) in sent {
        let record = sender.board.get_mut(id);
        (record.sent_us, record.flags) = (sent_us, flags);
    }
    let mut ack = nothing();
    sender.take_cumulative(301, 0, 0, &mut ack, &Now::default());
    assert_eq!(ack.newest_us, Some(900));
    sender.take_block(401, 601, &mut ack, &Now::default());
    assert_eq!(ack.newest_us, Some(950));
    // What a SACK had delivered is no news.
    let mut ack = nothing();
    sender.take_cumulative(301, 601, 2, &mut ack, &Now::default());
    assert_eq!(ack.newest_us, None);
    for (ack_seq, delivered_us) in [(301, 0), (401, 9_000)] {
        let segment = Segment::new(TcpFlags::ACK, 1, ack_seq);
        sender.on_ack(&segment, &Now::new(Time(9_000_000)));
        assert_eq!(sender.delivered_us, delivered_us);
    }
}

/// Linux's `tcp_ack`: all is acknowledged, and a report may still take a reduction back.
#[test]
fn a_report_that_comes_last_undoes_as_well() {
    let mut sender = sender();
    sender.take_cumulative(1_001, 1, 0, &mut nothing(), &Now::default());
    (sender.recovery.undo_marker, sender.recovery.undo_resends) = (Some(1), 1);
    (sender.recovery.prior_ssthresh, sender.window.ssthresh) = (20, 10);
    let mut segment = Segment { sack_count: 1, ..Segment::new(TcpFlags::ACK, 1, 1_001) };
    segment.sack[0] = (901, 1_001);
    sender.on_ack(&segment, &Now::default());
    assert_eq!((sender.window.ssthresh, sender.counters.undos), (20, 1));
}

/// Linux's `tcp_ack`: what an old acknowledgement delivers is not counted, and makes no sample.
#[test]
fn old_acknowledgements_deliver_uncounted() {
    let mut sender = sender();
    sender.take_cumulative(101, 0, 0, &mut nothing(), &Now::default());
    let mut segment = Segment { sack_count: 1, ..Segment::new(TcpFlags::ACK, 1, 1) };
    segment.sack[0] = (301, 401);
    sender.on_ack(&segment, &Now::default());
    assert_eq!((sender.window.delivered, sender.board.sacked_out), (1, 1));
}

/// RFC 3708: only repetitions of the present episode are counted off, by size where they are
/// no longer on record.
#[test]
fn reports_account_for_the_repetitions_of_an_episode() {
    let left_of = |left, right, prior_una, marker, resends| {
        let mut sender = sender();
        (sender.recovery.undo_marker, sender.recovery.undo_resends) = (marker, resends);
        for id in [2, 3] {
            sender.board.mark_lost(id);
            sender.board.note_resent(id, 5, true);
        }
        let edges = (prior_una, prior_una);
        sender.take_duplicate_report(left, right, edges, &mut nothing());
        (sender.recovery.undo_resends, sender.board.resent_out)
    };
    // Below what is acknowledged: 250 bytes are three segments.
    assert_eq!(left_of(1, 251, 251, Some(1), 5), (2, 2));
    assert_eq!(left_of(1, 251, 251, Some(1), 2), (0, 2));
    assert_eq!(left_of(201, 451, 451, Some(1), 5), (2, 2));
    assert_eq!(left_of(1, 251, 251, Some(251), 5), (5, 2));
    assert_eq!(left_of(1, 251, 251, Some(250), 5), (2, 2));
    assert_eq!(left_of(1, 251, 251, None, 5), (5, 2));
    assert_eq!(left_of(1, 251, 251, Some(1), 0), (0, 2));
    assert_eq!(left_of(1, 251, 251, Some(1), -1), (-1, 2));
    // Still on record: those that were sent again, and no others.
    assert_eq!(left_of(101, 301, 1, Some(1), 5), (4, 1));
    assert_eq!(left_of(201, 401, 1, Some(1), 5), (3, 0));
    assert_eq!(left_of(401, 601, 1, Some(1), 5), (5, 2));
    assert_eq!(left_of(201, 399, 1, Some(1), 5), (4, 1));
    // They are on their way no more, whatever may be undone.
    assert_eq!(left_of(201, 401, 1, Some(1), 0), (0, 0));
    assert_eq!(left_of(201, 401, 1, Some(301), 5), (4, 0));
    assert_eq!(left_of(201, 401, 1, Some(300), 5), (3, 0));
    assert_eq!(left_of(201, 401, 1, None, 5), (5, 0));
    // Linux takes no block for valid that begins where all before is acknowledged.
    assert_eq!(left_of(1, 301, 1, Some(1), 5), (5, 2));
}

/// RFC 9293, section 3.4: an acknowledgement in the midst of a segment leaves the rest.
#[test]
fn part_of_a_segment_may_be_acknowledged() {
    let (mut sender, mut ack) = (sender(), nothing());
    sender.take_cumulative(231, 0, 0, &mut ack, &Now::default());
    let first = sender.board.first().unwrap();
    assert_eq!((first.seq, first.end(), sender.board.len()), (231, 301, 8));
    assert_eq!((ack.acked, sender.window.una), (2, 231));
    assert!(ack.has(fact::DATA_ACKED));
    sender.take_cumulative(301, 0, 0, &mut ack, &Now::default());
    assert_eq!((sender.board.len(), sender.window.delivered), (7, 3));
    // Data it is even if no segment is acknowledged whole.
    let mut ack = nothing();
    sender.take_cumulative(341, 0, 0, &mut ack, &Now::default());
    assert!(ack.has(fact::DATA_ACKED) && ack.acked == 0);
}

/// RFC 9293, section 3.10.7.4, as Linux has it (`tcp_may_update_window`).
#[test]
fn only_a_newer_segment_tells_the_window() {
    for (ack_seq, seq, window, taken) in [
        (2, 40, 100, true),
        (1, 51, 100, true),
        (1, 50, 100, false),
        (1, 50, 5_000, false),
        (1, 50, 6_000, true),
        (1, 50, 0, true),
        (1, 49, 6_000, false),
    ] {
        let (mut sender, mut ack) = (sender(), nothing());
        (sender.window_seq, sender.peer_window, sender.peer_window_max) = (50, 5_000, 5_000);
        let segment = Segment { window, ..Segment::new(TcpFlags::ACK, seq, ack_seq) };
        sender.take_window(&segment, &mut ack);
        let (now, seen) = if taken { (window, seq) } else { (5_000, 50) };
        assert_eq!((sender.peer_window, sender.window_seq), (now, seen), "{segment:?}");
        assert_eq!(sender.peer_edge, ack_seq + u64::from(now));
        assert_eq!(sender.peer_window_max, now.max(5_000));
        assert_eq!(ack.has(fact::WINDOW), taken);
    }
}

/// RFC 5681, section 2: a duplicate acknowledgement has no data and leaves the window alone.
#[test]
fn only_a_bare_repetition_is_a_duplicate() {
    for (ack_seq, len, window, duplicates) in
        [(1, 0, 5_000, 1), (1, 100, 5_000, 0), (1, 0, 6_000, 0), (101, 0, 5_000, 0)]
    {
        let mut sender = sender();
        (sender.sack, sender.window_seq, sender.peer_window) = (false, 50, 5_000);
        sender.window.phase = Phase::Disorder;
        let segment = Segment { len, window, ..Segment::new(TcpFlags::ACK, 50, ack_seq) };
        assert!(sender.on_ack(&segment, &Now::default()));
        assert_eq!(sender.board.phantom_sacked, duplicates, "{segment:?}");
    }
}

/// RFC 2018: blocks count where both ends have agreed, even in an acknowledgement that is old.
#[test]
fn blocks_count_if_agreed_upon() {
    for (una, sack) in [(1, true), (1, false), (101, true), (101, false)] {
        let mut sender = sender();
        sender.take_cumulative(una, 0, 0, &mut nothing(), &Now::default());
        sender.sack = sack;
        let mut segment = Segment { sack_count: 1, ..Segment::new(TcpFlags::ACK, 1, 1) };
        segment.sack[0] = (301, 401);
        assert!(sender.on_ack(&segment, &Now::default()));
        assert_eq!(sender.board.sacked_out, u32::from(sack), "{una}");
    }
    // Nor is anything believed of what was never sent.
    assert!(!sender().on_ack(&Segment::new(TcpFlags::ACK, 1, 1_002), &Now::default()));
}

#[test]
fn an_acknowledgement_is_of_data_or_of_the_syn() {
    for (flags, expected) in [(0, fact::DATA_ACKED), (flag::SYN, fact::SYN_ACKED)] {
        let (mut sender, mut ack) = (sender(), nothing());
        sender.board.get_mut(0).flags = flags;
        sender.take_cumulative(101, 0, 1, &mut ack, &Now::default());
        assert_eq!(ack.facts & fact::ACKED, expected);
    }
}

/// Linux's `tcp_newly_delivered`: what an echo comes with was delivered marked, and adds up.
#[test]
fn an_echo_marks_what_it_delivers() {
    let mut sender = sender();
    sender.ecn = true;
    for (ack_seq, marked) in [(201, 2), (501, 5), (501, 5)] {
        let echo = Segment::new(TcpFlags::ACK | TcpFlags::ECE, 1, ack_seq);
        sender.on_ack(&echo, &Now::default());
        assert_eq!(sender.window.delivered_ce, marked);
    }
    sender.on_ack(&Segment::new(TcpFlags::ACK, 1, 601), &Now::default());
    assert_eq!((sender.window.delivered, sender.window.delivered_ce), (6, 5));
}

/// Linux's `bbr_init`, which runs when the handshake is over: an initial window of full segments a
/// round trip, times 2.89. Linux 6.1 itself paces at 118,147 bytes a second after 350 ms.
#[test]
fn bbr_begins_with_the_handshakes_rtt_and_mss() {
    let bbr = Config { congestion: crate::CongestionControl::Bbr, ..Config::default() };
    let mut sender = Sender::new(&bbr);
    sender.open();
    assert!(sender.poll(false, &Now::new(Time(1_000_000))).is_some());
    let answer = Segment { window: 65_535, ..Segment::new(TcpFlags::ACK, 70, 1) };
    let now = Now::new(Time(351_000_000));
    assert!(sender.on_ack(&answer, &now));
    assert_eq!(sender.window.pacing_rate, crate::congestion::UNPACED);
    sender.start(1_448, false, &now);
    sender.write(100_000);
    assert!(sender.poll(true, &now).is_some());
    assert_eq!(sender.window.pacing_rate, 118_147);
}

/// Linux's `FLAG_ACK_MAYBE_DELAYED`: of one short segment, with nothing out of the ordinary.
#[test]
fn the_ack_of_a_short_segment_may_have_been_delayed() {
    for (ack_seq, mss, prior_sacked, facts, delayed) in [
        (101, 101, 0, 0, true),
        (101, 100, 0, 0, false),
        (101, 1_448, 1, 0, false),
        (201, 1_448, 0, 0, false),
        (101, 1_448, 0, fact::SACKED, false),
        (101, 1_448, 0, fact::ECHO, false),
    ] {
        let (mut sender, mut ack) = (sender(), nothing());
        (sender.window.mss, ack.facts) = (mss, facts);
        sender.take_cumulative(ack_seq, 0, prior_sacked, &mut ack, &Now::default());
        assert_eq!(ack.has(fact::MAYBE_DELAYED), delayed, "{ack_seq} {mss} {facts}");
    }
    // Not if something was delivered since it left: then the receiver had no reason to wait.
    for (sent_us, delivered_us, delayed) in [(700, 700, true), (699, 700, false)] {
        let (mut sender, mut ack) = (sender(), nothing());
        sender.delivered_us = delivered_us;
        sender.board.get_mut(0).sent_us = sent_us;
        sender.take_cumulative(101, 0, 0, &mut ack, &Now::new(Time(900_000)));
        assert_eq!(ack.has(fact::MAYBE_DELAYED), delayed && sender.window.mss > 100);
    }
}

/// Linux's `tcp_update_rtt_min`: a delayed ACK does not take the place of a minimum that has
/// grown old.
#[test]
fn a_delayed_ack_is_no_new_least_rtt() {
    let least = |facts, rtt| {
        let (mut sender, mut ack) = (sender(), nothing());
        sender.rtt.update_min(&Now::new(Time(1_000_000_000)), 10_000);
        ack.facts = facts;
        let later = Now::new(Time(1_000_000_000_000));
        assert!(sender.take_rtt(Some(rtt), Some(rtt), &mut ack, &later));
        assert_eq!(sender.window.min_rtt_us, sender.rtt.min_us());
        assert_eq!((sender.window.srtt8_us, ack.rtt_us), (8 * rtt, Some(rtt)));
        sender.rtt.min_us()
    };
    assert_eq!(least(0, 50_000), 50_000);
    assert_eq!(least(fact::MAYBE_DELAYED, 50_000), 10_000);
    assert_eq!(least(fact::MAYBE_DELAYED, 8_000), 8_000);
}

/// Nor is it one where something has arrived out of order, told of by SACKs or by duplicates.
#[test]
fn an_ack_beyond_others_was_not_delayed() {
    for (sack, sacked, duplicates, least) in
        [(true, 0, 0, 10_000), (true, 1, 0, 50_000), (false, 0, 1, 50_000)]
    {
        let mut sender = sender();
        (sender.sack, sender.window.mss) = (sack, 1_448);
        (sender.board.sacked_out, sender.board.phantom_sacked) = (sacked, duplicates);
        sender.rtt.update_min(&Now::new(Time(1_000_000_000)), 10_000);
        let later = Now::new(Time(1_000_000_000_000));
        sender.board.get_mut(0).sent_us = later.us - 50_000;
        sender.on_ack(&Segment::new(TcpFlags::ACK, 1, 101), &later);
        assert_eq!(sender.rtt.min_us(), least, "{sack} {sacked} {duplicates}");
    }
}

/// RFC 7323, section 4: a stamp tells which sending was answered. What is ahead of us, or more
/// than half an hour back, is none of ours.
#[test]
fn an_echo_tells_the_rtt_of_what_was_sent_twice() {
    let now = Now::new(Time(3_000_000_000_000));
    for (back_ms, facts, rtt_us) in [
        (40, fact::DATA_ACKED, Some(40_000)),
        (0, fact::DATA_ACKED, Some(1_000)),
        (100_000, fact::DATA_ACKED, Some(100_000_000)),
        (2_147_483, fact::DATA_ACKED, None),
        (-1, fact::DATA_ACKED, None),
        (40, fact::SACKED, None),
    ] {
        let (mut sender, mut ack) = (sender(), nothing());
        (ack.facts, ack.echo) = (facts, now.timestamp().wrapping_add_signed(-back_ms));
        sender.timers.is_doubled = true;
        assert_eq!(sender.take_rtt(None, None, &mut ack, &now), rtt_us.is_some(), "{back_ms}");
        assert_eq!((ack.rtt_us, sender.timers.is_doubled), (rtt_us, rtt_us.is_none()));
        // A sample of what was sent once is the better one.
        ack.echo = now.timestamp() - 1;
        sender.take_rtt(Some(7), Some(5), &mut ack, &now);
        assert_eq!(ack.rtt_us, Some(5));
    }
    let mut silent = nothing();
    silent.facts = fact::DATA_ACKED;
    assert!(!sender().take_rtt(None, None, &mut silent, &now));
}

/// RFC 8985, section 6.2, step 2: a repetition that has arrived counts, unless the stamp is of
/// the original.
#[test]
fn rack_learns_from_repetitions_that_arrived() {
    let now = Now::new(Time(1_000_000_000));
    for (echo, advanced) in [(0, true), (901, true), (900, false)] {
        let (mut sender, mut ack) = (sender(), nothing());
        ack.echo = echo;
        sender.rtt.update_min(&now, 10_000);
        for id in 0..2 {
            let record = sender.board.get_mut(id);
            (record.flags, record.sent_us) = (flag::RESENT | flag::EVER_RESENT, 900_000);
        }
        sender.board.resent_out = 2;
        sender.take_cumulative(101, 0, 0, &mut ack, &now);
        assert_eq!(sender.rack.advanced, advanced, "{echo}");
    }
}

/// RFC 6675: what is SACKed is neither lost nor in flight any more; once is enough.
#[test]
fn a_sacked_segment_leaves_the_pipe() {
    let pipe = |flags, lost, resent| {
        let mut sender = sender();
        let board = &mut sender.board;
        board.get_mut(4).flags = flags;
        (board.lost_out, board.resent_out) = (lost, resent);
        let record = *board.get(4);
        let mut ack = nothing();
        sender.take_sacked(4, record, &mut ack, &Now::default());
        let board = &sender.board;
        let counts = (board.sacked_out, board.lost_out, board.resent_out);
        assert_eq!(sender.window.delivered, u32::from(flags & flag::SACKED == 0));
        assert_eq!(ack.has(fact::SACKED), flags & flag::SACKED == 0);
        (counts, board.get(4).flags)
    };
    use flag::{EVER_RESENT, LOST, PSH, RESENT, SACKED};
    assert_eq!(pipe(PSH, 0, 0), ((1, 0, 0), PSH | SACKED));
    assert_eq!(pipe(LOST, 1, 0), ((1, 0, 0), SACKED));
    assert_eq!(pipe(LOST | RESENT, 1, 1), ((1, 0, 0), SACKED));
    assert_eq!(pipe(LOST | EVER_RESENT, 1, 0), ((1, 0, 0), EVER_RESENT | SACKED));
    // A repetition of what was not lost is still on its way.
    assert_eq!(pipe(RESENT | EVER_RESENT, 0, 1), ((1, 0, 1), RESENT | EVER_RESENT | SACKED));
    assert_eq!(pipe(SACKED, 0, 0), ((0, 0, 0), SACKED));
}

/// Overtaking and originals show only in what was sent once.
#[test]
fn only_what_was_sent_once_tells_of_reordering() {
    let facts = |flags, high_seq, highest| {
        let (mut sender, mut ack) = (sender(), nothing());
        sender.recovery.high_seq = high_seq;
        sender.board.sacked_out = 1;
        sender.board.sacked.insert(1, highest);
        let record = Record { flags, sent_us: 7, ..*sender.board.get(4) };
        sender.take_sacked(4, record, &mut ack, &Now::default());
        (ack.has(fact::ORIGINAL), ack.reordered, ack.first_sacked_us)
    };
    // The segment has the numbers from 401 to 500.
    assert_eq!(facts(0, 501, 402), (true, 401, Some(7)));
    assert_eq!(facts(0, 500, 401), (false, NO_SEQ, Some(7)));
    assert_eq!(facts(flag::EVER_RESENT, 501, 402), (false, NO_SEQ, None));
}

/// Linux's `tcp_clean_rtx_queue`: without SACK nobody knows which sending of what was repeated has
/// arrived, nor what else did so with it.
#[test]
fn an_original_is_known_from_a_repetition_by_sacks_alone() {
    for (sack, flags, original) in [
        (true, 0, true),
        (true, flag::EVER_RESENT, true),
        (false, 0, true),
        (false, flag::EVER_RESENT, false),
    ] {
        let (mut sender, mut ack) = (sender(), nothing());
        (sender.sack, sender.recovery.high_seq) = (sack, 301);
        sender.board.get_mut(0).flags = flags;
        sender.take_cumulative(201, 0, 0, &mut ack, &Now::default());
        assert_eq!(ack.has(fact::ORIGINAL), original, "{sack} {flags}");
        assert!(ack.has(fact::DATA_ACKED) && !ack.has(fact::ECHO | fact::SACKED));
    }
}

/// Only an acknowledgement that says nothing at all may be passed over.
#[test]
fn nothing_new_while_nothing_is_in_flight_is_settled() {
    let settled = |ack_seq, nxt, window, write_end| {
        let mut sender = Sender::new(&Config::default());
        (sender.window.una, sender.window.nxt, sender.write_end) = (501, nxt, write_end);
        (sender.peer_window, sender.window_seq) = (5_000, 1);
        let segment = Segment { window, ..Segment::new(TcpFlags::ACK, 70, ack_seq) };
        let settled = sender.is_settled(&segment);
        assert_eq!(sender.window_seq, if settled { 70 } else { 1 });
        settled
    };
    assert!(settled(501, 501, 5_000, 501) && settled(501, 501, 5_000, 400));
    assert!(!settled(502, 501, 5_000, 501) && !settled(501, 601, 5_000, 501));
    assert!(!settled(501, 501, 5_001, 501) && !settled(501, 501, 5_000, 502));
}

/// RFC 2883, section 4: a first block below the acknowledgement, or within the second.
#[test]
fn the_first_block_may_report_a_duplicate() {
    for (ack_seq, first, second, duplicate) in [
        (201, (101, 201), (0, 0), true),
        (201, (201, 301), (0, 0), false),
        (1, (301, 401), (201, 501), true),
        (1, (201, 501), (201, 501), true),
        (1, (200, 401), (201, 501), false),
        (1, (301, 502), (201, 501), false),
        (1, (301, 401), (501, 601), false),
    ] {
        let (mut sender, mut ack) = (sender(), nothing());
        let mut segment = Segment::new(TcpFlags::ACK, 1, ack_seq);
        (segment.sack[0], segment.sack[1]) = (first, second);
        segment.sack_count = 1 + u8::from(second.1 > 0);
        sender.take_sack(&segment, 1, &mut ack, &Now::default());
        assert_eq!(ack.has(fact::DUPLICATE), duplicate, "{first:?} {second:?}");
    }
}

/// RFC 6298: SACKs of what was sent after the head must not put off the head's timeout.
#[test]
fn only_sacks_older_than_the_head_set_the_timer() {
    for (head_age_ms, set) in [(39, true), (40, false), (41, false)] {
        let (mut sender, mut ack) = (sender(), nothing());
        let now = Now::new(Time(1_000_000_000));
        sender.board.get_mut(0).sent_us = now.us - 1_000 * head_age_ms;
        (ack.first_sacked_us, ack.last_sacked_us) = (Some(now.us - 40_000), now.us - 40_000);
        sender.take_cumulative(1, 0, 0, &mut ack, &now);
        assert_eq!(ack.has(fact::SET_TIMER), set, "{head_age_ms}");
    }
}

/// RFC 3522: an echo from before the repetition answers the original.
#[test]
fn an_echo_older_than_the_repetition_is_of_the_original() {
    let now = Now::new(Time(1_000_000_000));
    let original = |flags, echo| {
        answers_original(&Record { sent_us: 900_000, flags, ..Record::default() }, echo, &now)
    };
    assert!(original(flag::EVER_RESENT, 900) && original(flag::RESENT, 900));
    assert!(!original(flag::EVER_RESENT, 901) && !original(flag::EVER_RESENT, 0));
    assert!(!original(0, 900) && !original(flag::SACKED, 900));
}

/// Linux's `tcp_cong_avoid` by way of `tcp_may_raise_cwnd`.
#[test]
fn where_reordering_is_the_rule_sacks_may_open_the_window() {
    for (reordering, facts, grows) in [
        (3, fact::SACKED, false),
        (3, fact::DATA_ACKED, true),
        (3, fact::SYN_ACKED, false),
        (4, fact::SACKED, true),
        (4, fact::DATA_ACKED, true),
        (4, fact::WINDOW, false),
    ] {
        let (mut sender, mut ack) = (sender(), nothing());
        (sender.recovery.reordering, ack.facts) = (reordering, facts);
        assert_eq!(sender.may_grow(&ack), grows, "{reordering} {facts}");
    }
}

/// Linux's `tcp_check_sack_reordering`: how many segments were overtaken, 300 at most.
#[test]
fn reordering_is_as_far_as_something_was_overtaken() {
    for (low, known, reordering, seen) in [
        (501, 3, 5, true),
        (601, 3, 4, true),
        (550, 3, 5, true),
        (701, 3, 3, true),
        (901, 3, 3, true),
        (1_001, 3, 3, false),
        (501, 5, 5, true),
        (501, 9, 9, true),
    ] {
        let mut sender = sender();
        sender.recovery.reordering = known;
        sender.board.sacked_out = 1;
        sender.board.sacked.insert(901, 1_001);
        sender.note_reordering(low);
        let recovery = &sender.recovery;
        assert_eq!((recovery.reordering, recovery.reordering_seen), (reordering, seen), "{low}");
    }
    let mut sender = sender();
    sender.board.sacked_out = 1;
    sender.board.sacked.insert(90_001, 100_001);
    sender.note_reordering(1);
    assert_eq!(sender.recovery.reordering, 300);
}

/// Linux's `tcp_sacktag_write_queue`: after a timeout that cannot be undone, order says nothing.
#[test]
fn overtaking_after_a_timeout_may_mean_nothing() {
    for (phase, marker, seen) in [
        (Phase::Open, None, true),
        (Phase::Loss, None, false),
        (Phase::Loss, Some(1), true),
        (Phase::Recovery, None, true),
    ] {
        let (mut sender, mut ack) = (sender(), nothing());
        (sender.window.phase, sender.recovery.undo_marker) = (phase, marker);
        for block in [(801, 901), (301, 401)] {
            let mut segment = Segment { sack_count: 1, ..Segment::new(TcpFlags::ACK, 1, 1) };
            segment.sack[0] = block;
            sender.take_sack(&segment, 1, &mut ack, &Now::default());
        }
        assert_eq!(sender.recovery.reordering_seen, seen, "{phase:?} {marker:?}");
    }
}
