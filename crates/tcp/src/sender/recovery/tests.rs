//! Phases, reductions and what takes them back, one rule at a time.

use super::super::scoreboard::Record;
use super::*;
use crate::Config;

/// A sender in recovery from a window of `prior`, with so many segments in flight.
fn reducing(prior: u32, ssthresh: u32, in_flight: u32) -> Sender {
    let mut sender = Sender::new(&Config::default());
    for n in 0..u64::from(in_flight) {
        sender.board.push(Record { seq: 1 + n, len: 1, ..Record::default() });
    }
    (sender.window.prior_cwnd, sender.window.ssthresh) = (prior, ssthresh);
    sender.window.phase = Phase::Recovery;
    sender
}

/// RFC 6937, section 3: above the threshold, as many leave as keep its share of what arrives.
#[test]
fn above_the_threshold_sending_is_in_proportion() {
    let mut sender = reducing(100, 70, 90);
    let mut sent = 0;
    for delivered in 1..=20u32 {
        sender.reduce_proportionally(1, 1, true);
        let allowed = sender.window.cwnd - 90;
        assert_eq!(sent + allowed, (70 * delivered).div_ceil(100));
        for _ in 0..allowed {
            sender.count_sent_in_reduction();
        }
        sent += allowed;
    }
    // Nothing delivered, nothing said; no window known, none set.
    let before = sender.window.cwnd;
    sender.reduce_proportionally(0, 5, true);
    assert_eq!(sender.window.cwnd, before);
    sender.window.prior_cwnd = 0;
    sender.reduce_proportionally(9, 0, true);
    assert_eq!(sender.window.cwnd, before);
    // Outside a reduction nothing is counted.
    let sent = sender.recovery.sent;
    sender.window.phase = Phase::Open;
    sender.count_sent_in_reduction();
    assert_eq!(sender.recovery.sent, sent);
}

/// RFC 6937's slow-start reduction bound: the window returns to the threshold by what was
/// delivered. Each ACK that moves on without a loss adds one more (Linux's `sndcnt`).
#[test]
fn below_the_threshold_the_window_comes_back() {
    let allowed = |in_flight, delivered, lost, advanced, already: (u32, u32)| {
        let mut sender = reducing(100, 70, in_flight);
        (sender.recovery.delivered, sender.recovery.sent) = already;
        sender.reduce_proportionally(delivered, lost, advanced);
        sender.window.cwnd - in_flight
    };
    assert_eq!(allowed(40, 3, 1, true, (10, 10)), 3);
    assert_eq!(allowed(40, 3, 0, false, (10, 10)), 3);
    assert_eq!(allowed(40, 3, 0, true, (10, 10)), 4);
    // What was held back may follow.
    assert_eq!(allowed(40, 3, 1, true, (10, 5)), 8);
    assert_eq!(allowed(40, 3, 1, true, (10, 12)), 3);
    // Up to the threshold.
    assert_eq!(allowed(68, 3, 0, true, (10, 5)), 2);
    assert_eq!(allowed(70, 3, 0, true, (10, 5)), 0);
    assert_eq!(allowed(71, 3, 0, true, (10, 10)), 0);
    // The first one leaves whatever the count says, and the window never closes.
    assert_eq!(allowed(70, 3, 0, true, (0, 0)), 1);
    assert_eq!(allowed(90, 1, 1, true, (0, 0)), 1);
    let mut sender = reducing(100, 0, 0);
    sender.recovery.sent = 9;
    sender.reduce_proportionally(1, 1, true);
    assert_eq!(sender.window.cwnd, 1);
}

/// Linux's `tcp_current_ssthresh`: three quarters of the window if that is more, but not while
/// it is being reduced.
#[test]
fn an_untested_window_keeps_three_quarters() {
    let mut sender = reducing(100, 40, 10);
    sender.window.cwnd = 101;
    for (phase, ssthresh) in [
        (Phase::Open, 75),
        (Phase::Disorder, 75),
        (Phase::Cwr, 40),
        (Phase::Recovery, 40),
        (Phase::Loss, 75),
    ] {
        sender.window.phase = phase;
        assert_eq!(sender.current_ssthresh(), ssthresh, "{phase:?}");
    }
    sender.window.ssthresh = 90;
    assert_eq!(sender.current_ssthresh(), 90);
}

/// RFC 3522: answered before it could have been; RFC 3708: all repetitions were duplicates.
#[test]
fn a_reduction_is_undone_on_either_proof() {
    let mut sender = reducing(100, 50, 10);
    let mut may = |marker, resends, stamp, echo| {
        let recovery = &mut sender.recovery;
        (recovery.undo_marker, recovery.undo_resends) = (marker, resends);
        recovery.resend_stamp = stamp;
        sender.may_undo(echo)
    };
    assert!(may(Some(1), 0, 10, 0));
    assert!(!may(None, 0, 0, 0));
    // Nothing was sent again yet: whatever comes answers something else.
    assert!(may(Some(1), -1, 0, 0) && may(Some(1), 2, 0, 5));
    assert!(!may(Some(1), -1, 10, 0));
    assert!(may(Some(1), 2, 10, 9));
    assert!(!may(Some(1), 2, 10, 10) && !may(Some(1), 2, 10, 11) && !may(Some(1), 2, 10, 0));
    assert!(!may(None, 2, 10, 9));
    // Without SACK the end of the episode proves nothing.
    for (una, proof) in [(10, true), (11, false), (12, false)] {
        sender.sack = false;
        (sender.recovery.resend_stamp, sender.recovery.undo_resends) = (0, -1);
        (sender.recovery.undo_marker, sender.recovery.high_seq) = (Some(1), 11);
        sender.window.una = una;
        assert_eq!(sender.may_undo(5), proof, "{una}");
    }
}

/// Linux's `tcp_enter_recovery`: the clock of an episode starts with its first repetition.
#[test]
fn a_stamp_of_before_is_forgotten() {
    for (resent, stamp) in [(0, 0), (1, 9)] {
        let mut sender = reducing(100, 50, 10);
        (sender.window.phase, sender.board.resent_out) = (Phase::Open, resent);
        sender.recovery.resend_stamp = 9;
        sender.enter_recovery(false, &Now::default());
        assert_eq!(sender.recovery.resend_stamp, stamp);
    }
}

/// Linux's `tcp_enter_loss`: a probe that a timeout follows is nobody's concern any more.
#[test]
fn a_timeout_ends_the_probe() {
    let mut sender = timed_out();
    sender.recovery.probe_end = 11;
    sender.enter_loss(&Now::default());
    assert_eq!(sender.recovery.probe_end, 0);
}

/// RFC 5681's open state again once nothing is out of order, lost or sent again.
#[test]
fn the_phase_is_open_when_nothing_is_amiss() {
    let phase = |change: fn(&mut Sender)| {
        let mut sender = reducing(100, 50, 10);
        (sender.window.phase, sender.window.nxt) = (Phase::Recovery, 99);
        change(&mut sender);
        sender.keep_open(&Now::default());
        assert_eq!(sender.recovery.high_seq, 99);
        sender.window.phase
    };
    assert_eq!(phase(|_| {}), Phase::Open);
    assert_eq!(phase(|sender| sender.board.sacked_out = 1), Phase::Disorder);
    assert_eq!(phase(|sender| sender.board.lost_out = 1), Phase::Disorder);
    assert_eq!(phase(|sender| sender.board.resent_out = 1), Phase::Disorder);
    assert_eq!(phase(|sender| sender.board.phantom_sacked = 1), Phase::Disorder);
    assert_eq!(phase(|sender| sender.board.get_mut(0).flags = flag::EVER_RESENT), Phase::Disorder);
    assert_eq!(phase(|sender| sender.board.get_mut(0).flags = flag::PSH), Phase::Open);
    assert_eq!(phase(|sender| sender.board.get_mut(1).flags = flag::EVER_RESENT), Phase::Open);
}

/// RFC 5681, section 3.1: all is lost and one segment leaves; repeating the same timeout is no
/// other loss. F-RTO (RFC 5682) begins with the first one.
#[test]
fn a_timeout_starts_over_once() {
    let mut sender = reducing(100, INFINITE, 10);
    (sender.window.phase, sender.window.cwnd) = (Phase::Open, 20);
    (sender.window.una, sender.window.nxt) = (1, 11);
    let now = Now::new(simnel_core::time::Time(1_000_000_000));
    sender.enter_loss(&now);
    assert_eq!((sender.board.lost_out, sender.window.lost, sender.window.cwnd), (10, 10, 1));
    assert_eq!((sender.window.ssthresh, sender.window.prior_cwnd), (14, 20));
    assert_eq!((sender.window.phase, sender.recovery.high_seq), (Phase::Loss, 11));
    assert!(sender.recovery.frto && sender.counters.reductions == 1);
    assert_eq!((sender.used_since_ms, sender.window.count), (1_000, 0));
    // The same segment again.
    sender.timers.retries = 1;
    sender.window.cwnd = 9;
    sender.enter_loss(&now);
    assert_eq!((sender.counters.reductions, sender.window.ssthresh), (1, 14));
    assert!(sender.recovery.frto && sender.window.cwnd == 1);
    // Another one after progress.
    sender.timers.retries = 0;
    sender.window.cwnd = 10;
    sender.enter_loss(&now);
    assert_eq!((sender.counters.reductions, sender.window.ssthresh), (2, 7));
    assert!(!sender.recovery.frto);
}

/// Linux's `tcp_enter_loss`: F-RTO is tried after a timeout outside recovery, and after a repeated
/// one. A recovery whose data has all arrived is over, and another reduction is due.
#[test]
fn a_timeout_in_recovery_is_the_same_loss() {
    for (una, retries, frto, reductions) in [(5, 0, false, 0), (5, 1, true, 0), (11, 0, false, 1)] {
        let mut sender = reducing(100, 50, 10);
        (sender.window.cwnd, sender.window.una, sender.window.nxt) = (20, una, 21);
        (sender.recovery.high_seq, sender.timers.retries) = (11, retries);
        sender.enter_loss(&Now::default());
        assert_eq!((sender.recovery.frto, sender.counters.reductions), (frto, reductions));
    }
}

/// An episode's beginning holds until its end; where it is undone and something is lost still,
/// another one begins.
#[test]
fn an_episode_goes_on_as_it_began() {
    for (resends, prior, marker) in [(2, 60, Some(1)), (0, 75, Some(3))] {
        let mut sender = reducing(100, 50, 10);
        (sender.window.una, sender.window.nxt, sender.window.cwnd) = (3, 11, 50);
        (sender.recovery.high_seq, sender.recovery.prior_ssthresh) = (11, 60);
        (sender.recovery.undo_marker, sender.recovery.undo_resends) = (Some(1), resends);
        sender.mark_lost(0);
        sender.alert(3, 0, &mut of(0), &Now::default());
        assert_eq!(sender.window.phase, Phase::Recovery);
        assert_eq!((sender.recovery.prior_ssthresh, sender.recovery.undo_marker), (prior, marker));
    }
}

/// A timeout that is taken back ends its phase; what is out of order still is Disorder.
#[test]
fn after_a_needless_timeout_the_phase_is_looked_at_anew() {
    let mut sender = timed_out();
    (sender.recovery.undo_marker, sender.recovery.resend_stamp) = (Some(1), 10);
    sender.board.get_mut(4).flags = flag::SACKED;
    sender.board.sacked_out = 1;
    sender.board.sacked.insert(5, 6);
    let mut ack = Ack::new(9, 0);
    ack.facts = fact::ADVANCED;
    sender.alert(1, 0, &mut ack, &Now::default());
    assert_eq!((sender.window.phase, sender.counters.undos), (Phase::Disorder, 0));
}

/// Linux: three duplicates that were not believed were losses after all.
#[test]
fn a_timeout_forgets_an_overestimate_of_reordering() {
    let reordering = |phase, sacked: u32| {
        let mut sender = reducing(100, 50, 10);
        (sender.window.phase, sender.recovery.reordering) = (phase, 9);
        for id in 1..=sacked {
            sender.board.get_mut(id).flags = flag::SACKED;
        }
        sender.board.sacked_out = sacked;
        sender.enter_loss(&Now::default());
        sender.recovery.reordering
    };
    assert_eq!(reordering(Phase::Disorder, 3), 3);
    assert_eq!(reordering(Phase::Disorder, 2), 9);
    assert_eq!(reordering(Phase::Recovery, 3), 9);
}

/// An acknowledgement with these facts.
fn of(facts: u16) -> Ack {
    let mut ack = Ack::new(0, 0);
    ack.facts = facts;
    ack
}

/// A sender in the phase after a timeout, up to 11, with ten segments in flight.
fn timed_out() -> Sender {
    let mut sender = reducing(100, 50, 10);
    (sender.window.phase, sender.recovery.high_seq) = (Phase::Loss, 11);
    (sender.window.una, sender.window.nxt, sender.write_end) = (1, 11, 100);
    (sender.peer_edge, sender.recovery.frto) = (100, true);
    sender.window.cwnd = 1;
    sender
}

/// RFC 5682, section 3.1: an ACK that moves on brings new data, and the next one tells.
#[test]
fn frto_asks_with_new_data() {
    use fact::{ADVANCED, DATA_ACKED, ORIGINAL, SACKED};
    let after = |facts, duplicates, change: fn(&mut Sender)| {
        let mut sender = timed_out();
        change(&mut sender);
        sender.proceed_after_timeout(duplicates, &of(facts), &Now::default());
        (sender.recovery.frto, sender.resend, sender.window.phase, sender.recovery.high_seq)
    };
    let new_sent = |sender: &mut Sender| sender.window.nxt = 13;
    // Step 2b: two new segments leave first, as far as there are some and the peer takes them.
    let asked = (true, Resend::NewFirst, Phase::Loss, 11);
    let conventional = (false, Resend::Lost, Phase::Loss, 11);
    assert_eq!(after(ADVANCED | DATA_ACKED, 0, |sender| sender.window.una = 2), asked);
    assert_eq!(after(ADVANCED, 0, |sender| sender.write_end = 11), conventional);
    assert_eq!(after(ADVANCED, 0, |sender| sender.peer_edge = 11), conventional);
    // No progress yet: the timer's work goes on.
    assert_eq!(after(SACKED, 0, |_| {}), (true, Resend::Lost, Phase::Loss, 11));
    // Step 3a: the new data was SACKed, or a duplicate has come: the rest is lost.
    assert_eq!(after(SACKED, 0, new_sent), conventional);
    assert_eq!(after(0, 1, new_sent), conventional);
    assert_eq!(after(0, 0, new_sent), (true, Resend::Lost, Phase::Loss, 11));
    // Step 3b: something sent once has arrived: nothing was lost.
    assert_eq!(after(ORIGINAL, 0, |_| {}).2, Phase::Open);
    assert_eq!(after(ORIGINAL, 0, |sender| sender.recovery.frto = false).2, Phase::Loss);
    // All of it is acknowledged.
    let over = |sender: &mut Sender| sender.window.una = 11;
    assert_eq!(after(ADVANCED | DATA_ACKED, 0, over).2, Phase::Open);
    // Without SACK only when more than that is (RFC 6582, section 3.2).
    let held = |sender: &mut Sender| (sender.window.una, sender.sack) = (11, false);
    assert_eq!(after(ADVANCED | DATA_ACKED, 0, held).2, Phase::Loss);
}

/// Linux's `tcp_process_loss`: without SACK, duplicates after new data stand for that, and progress
/// ends what earlier ones stood for.
#[test]
fn duplicates_after_a_timeout_are_of_new_data() {
    for (nxt, duplicates, facts, phantom) in [
        (13, 1, 0, 3),
        (11, 1, 0, 2),
        (13, 0, 0, 2),
        (13, 0, fact::ADVANCED, 0),
        (11, 0, fact::ADVANCED, 0),
    ] {
        let mut sender = timed_out();
        (sender.sack, sender.recovery.frto) = (false, false);
        (sender.window.nxt, sender.board.phantom_sacked) = (nxt, 2);
        sender.proceed_after_timeout(duplicates, &of(facts), &Now::default());
        assert_eq!(sender.board.phantom_sacked, phantom, "{nxt} {duplicates} {facts}");
    }
}

/// Linux's `tcp_try_undo_loss`: the stamp, a duplicate, or F-RTO; the phase ends with SACK, or
/// where F-RTO is sure.
#[test]
fn a_needless_timeout_is_taken_back() {
    let undone = |by_frto, sack, marker, echo| {
        let mut sender = timed_out();
        (sender.sack, sender.recovery.undo_marker) = (sack, marker);
        (sender.recovery.resend_stamp, sender.recovery.undo_resends) = (10, 1);
        sender.timers.retries = 3;
        let ack = Ack::new(echo, 0);
        let undone = sender.undo_after_timeout(by_frto, &ack, &Now::default());
        assert_eq!(sender.timers.retries, if undone { 0 } else { 3 });
        assert!(!undone || sender.recovery.undo_marker.is_none());
        (undone, sender.window.phase)
    };
    assert_eq!(undone(true, true, None, 0), (true, Phase::Open));
    assert_eq!(undone(true, false, None, 0), (true, Phase::Open));
    assert_eq!(undone(false, true, Some(1), 9), (true, Phase::Open));
    assert_eq!(undone(false, false, Some(1), 9), (true, Phase::Loss));
    assert_eq!(undone(false, true, Some(1), 10), (false, Phase::Loss));
    assert_eq!(undone(false, true, None, 9), (false, Phase::Loss));
}

/// Linux's `tcp_undo_cwnd_reduction`: window and threshold as before, if they may come back.
#[test]
fn what_is_undone_comes_back() {
    let undo = |prior, unmark| {
        let mut sender = reducing(100, 50, 10);
        (sender.window.cwnd, sender.recovery.prior_ssthresh) = (20, prior);
        (sender.recovery.undo_marker, sender.queue_cwr) = (Some(1), true);
        sender.mark_lost(3);
        sender.undo(unmark, &Now::default());
        assert!(sender.recovery.undo_marker.is_none() && sender.rack.advanced);
        assert_eq!(sender.board.lost_out, u32::from(!unmark));
        let window = &sender.window;
        (window.cwnd, window.ssthresh, sender.counters.undos, sender.queue_cwr)
    };
    assert_eq!(undo(80, true), (100, 80, 1, false));
    assert_eq!(undo(50, false), (100, 50, 1, true));
    assert_eq!(undo(40, false), (100, 50, 1, true));
    // A mark is no mistake: nothing comes back.
    assert_eq!(undo(0, true), (20, 50, 0, true));
}

/// Linux's `tcp_try_undo_partial`: with repetitions still out, the rest must wait.
#[test]
fn a_hole_that_the_original_fills_ends_recovery() {
    let partial = |marker, echo, resent| {
        let mut sender = reducing(100, 50, 10);
        (sender.recovery.undo_marker, sender.recovery.resend_stamp) = (marker, 10);
        (sender.board.resent_out, sender.window.mss) = (resent, 1);
        (sender.board.sacked_out, sender.window.una) = (1, 3);
        sender.board.sacked.insert(6, 7);
        let waits = sender.undo_on_partial(1, &Ack::new(echo, 0), &Now::default());
        assert_eq!(sender.recovery.resend_stamp == 0, sender.window.phase == Phase::Disorder);
        (waits, sender.window.phase, sender.recovery.reordering_seen)
    };
    assert_eq!(partial(Some(1), 9, 0), (false, Phase::Disorder, true));
    assert_eq!(partial(Some(1), 9, 1), (true, Phase::Recovery, true));
    assert_eq!(partial(Some(1), 10, 0), (false, Phase::Recovery, false));
    assert_eq!(partial(None, 9, 0), (false, Phase::Recovery, false));
}

/// RFC 8985, section 7.4.2: whether a probe has repaired a loss that nobody else saw.
#[test]
fn a_probe_that_repaired_a_loss_reduces_the_window() {
    use fact::{ADVANCED, DATA, DUPLICATE_PROBE, SACKED, WINDOW};
    let probe = |ack_seq, resent, facts| {
        let mut sender = reducing(0, INFINITE, 2);
        (sender.window.phase, sender.window.cwnd) = (Phase::Open, 20);
        (sender.recovery.probe_end, sender.recovery.probe_resent) = (11, resent);
        sender.take_probe_ack(ack_seq, &of(facts), &Now::default());
        assert_eq!(sender.window.phase, Phase::Open);
        (sender.recovery.probe_end, sender.counters.reductions, sender.window.cwnd)
    };
    // Not reached yet.
    assert_eq!(probe(10, true, ADVANCED), (11, 0, 20));
    // New data needs no proof, a duplicate is proof enough.
    assert_eq!(probe(11, false, ADVANCED), (0, 0, 20));
    assert_eq!(probe(11, true, ADVANCED | DUPLICATE_PROBE), (0, 0, 20));
    // Both have arrived: a bare duplicate ACK.
    assert_eq!(probe(11, true, 0), (0, 0, 20));
    assert_eq!(probe(11, true, ADVANCED), (11, 0, 20));
    assert_eq!(probe(11, true, SACKED), (11, 0, 20));
    assert_eq!((probe(11, true, DATA).0, probe(11, true, WINDOW).0), (11, 11));
    // More is acknowledged, and no duplicate was told of.
    assert_eq!(probe(12, true, ADVANCED), (0, 1, 14));
}

/// A sender without SACK in `phase`, with `out` segments in flight.
fn without_sack(phase: Phase, out: u32) -> Sender {
    let mut sender = reducing(100, 50, out);
    (sender.sack, sender.window.phase) = (false, phase);
    sender
}

/// RFC 6582: without SACK a duplicate ACK stands for a segment that has left the network. More
/// duplicates than segments that can have left are a sign of reordering (Linux's
/// `tcp_add_reno_sack`).
#[test]
fn duplicates_stand_for_segments_that_arrived() {
    let count = |known, lost, duplicates| {
        let mut sender = without_sack(Phase::Disorder, 4);
        (sender.board.phantom_sacked, sender.board.lost_out) = (known, lost);
        sender.count_duplicates(duplicates);
        (sender.board.phantom_sacked, sender.window.delivered, sender.recovery.reordering)
    };
    assert_eq!(count(2, 0, 1), (3, 1, 3));
    assert_eq!(count(2, 0, 0), (2, 0, 3));
    // At least one is still missing, and what is lost has not arrived.
    assert_eq!(count(3, 0, 1), (3, 0, 4));
    assert_eq!(count(1, 2, 1), (2, 1, 3));
    assert_eq!(count(2, 2, 1), (2, 0, 4));
    // Nothing in flight, nothing to tell; with SACK blocks tell.
    let mut sender = without_sack(Phase::Open, 0);
    sender.count_duplicates(1);
    assert_eq!((sender.board.phantom_sacked, sender.window.delivered), (0, 0));
    let mut sender = reducing(100, 50, 4);
    sender.count_duplicates(1);
    assert_eq!((sender.board.phantom_sacked, sender.window.delivered), (0, 0));
}

/// Linux's `tcp_remove_reno_sacks`: an ACK that moves on delivers what no duplicate stood for, and
/// one segment at least.
#[test]
fn an_ack_that_moves_on_counts_what_duplicates_did_not() {
    let cover = |known, acked| {
        let mut sender = without_sack(Phase::Recovery, 4);
        sender.board.phantom_sacked = known;
        sender.cover_duplicates(acked);
        (sender.board.phantom_sacked, sender.window.delivered)
    };
    assert_eq!(cover(0, 2), (0, 2));
    assert_eq!(cover(3, 2), (2, 1));
    assert_eq!(cover(3, 4), (0, 1));
    assert_eq!(cover(3, 9), (0, 6));
    assert_eq!(cover(3, 0), (3, 0));
    // More duplicates than segments that are still out.
    let mut sender = without_sack(Phase::Recovery, 2);
    sender.board.phantom_sacked = 5;
    sender.cover_duplicates(3);
    assert_eq!((sender.board.phantom_sacked, sender.recovery.reordering), (1, 5));
}

/// Linux's `tcp_newreno_mark_lost`: as many duplicates as segments may be overtaken; in recovery
/// each ACK that moves on; the head alone, and once.
#[test]
fn without_sack_the_head_is_lost_when_duplicates_say_so() {
    let lost = |phase, known, facts, head| {
        let mut sender = without_sack(phase, 4);
        (sender.board.phantom_sacked, sender.recovery.reordering) = (known, 5);
        sender.board.get_mut(0).flags = head;
        (sender.board.lost_out, sender.board.resent_out) = (u32::from(head != 0), 1);
        sender.identify_losses(&mut of(facts), &Now::default());
        [0, 1].map(|id| sender.board.get(id).has(flag::LOST)) == [true, false]
            && sender.window.lost == 1
    };
    assert!(!lost(Phase::Disorder, 4, 0, 0) && lost(Phase::Disorder, 5, 0, 0));
    assert!(lost(Phase::Cwr, 5, 0, 0));
    assert!(!lost(Phase::Recovery, 9, 0, 0) && lost(Phase::Recovery, 0, fact::ADVANCED, 0));
    assert!(!lost(Phase::Loss, 9, fact::ADVANCED, 0));
    assert!(!lost(Phase::Recovery, 0, fact::ADVANCED, flag::LOST | flag::RESENT));
}

/// RFC 6582, section 3.2, as in Linux: the phase is held, a needless reduction is not.
#[test]
fn without_sack_the_phase_ends_beyond_its_end() {
    for (sack, una, held) in [(false, 11, true), (false, 12, false), (true, 11, false)] {
        let mut sender = timed_out();
        (sender.sack, sender.window.una) = (sack, una);
        sender.window.phase = Phase::Recovery;
        sender.recovery.resend_stamp = 7;
        (sender.recovery.undo_marker, sender.recovery.undo_resends) = (Some(1), 0);
        assert_eq!(sender.leave_recovery(&Now::default()), !held, "{sack} {una}");
        let phase = if held { Phase::Recovery } else { Phase::Open };
        assert_eq!((sender.window.phase, sender.recovery.undo_marker), (phase, None));
        assert_eq!(sender.recovery.resend_stamp, if held { 0 } else { 7 });
    }
}

/// RFC 2018, section 8: a receiver may drop what it had SACKed; then the head is SACKED.
#[test]
fn sacks_are_forgotten_if_the_receiver_took_them_back() {
    for (id, left) in [(0, 0), (1, 1)] {
        let mut sender = reducing(100, 50, 10);
        sender.board.get_mut(id).flags = flag::SACKED;
        sender.board.sacked_out = 1;
        sender.board.get_mut(id).flags |= flag::PSH;
        sender.forget_renegade_sacks();
        assert_eq!(sender.board.sacked_out, left);
        let flags = if left == 0 { flag::PSH } else { flag::PSH | flag::SACKED };
        assert_eq!(sender.board.get(id).flags, flags);
    }
}

/// Linux's `tcp_end_cwnd_reduction`: to the threshold, unless all was undone.
#[test]
fn a_reduction_ends_at_the_threshold() {
    let ended = |ssthresh, phase, marker| {
        let mut sender = reducing(100, ssthresh, 10);
        (sender.window.cwnd, sender.recovery.undo_marker) = (70, marker);
        sender.window.phase = phase;
        sender.end_reduction(&Now::new(simnel_core::time::Time(9_000_000)));
        assert_eq!(sender.used_since_ms, if sender.window.cwnd == 70 { 0 } else { 9 });
        sender.window.cwnd
    };
    assert_eq!(ended(50, Phase::Cwr, None), 50);
    assert_eq!(ended(50, Phase::Recovery, Some(1)), 50);
    assert_eq!(ended(50, Phase::Recovery, None), 70);
    assert_eq!(ended(INFINITE, Phase::Cwr, Some(1)), 70);
}

/// RFC 3708: repetitions that are still out may yet be told of as duplicates.
#[test]
fn an_episode_begins_with_what_was_sent_again() {
    for (resent, probe_end, probe_resent, undo_resends) in [
        (0, 0, true, -1),
        (0, 11, false, -1),
        (0, 11, true, 1),
        (1, 0, false, 1),
        (7, 0, false, 7),
        (7, 11, true, 8),
    ] {
        let mut sender = reducing(100, 50, 10);
        (sender.board.resent_out, sender.window.una) = (resent, 77);
        (sender.recovery.probe_end, sender.recovery.probe_resent) = (probe_end, probe_resent);
        sender.start_undo();
        let recovery = &sender.recovery;
        assert_eq!((recovery.undo_marker, recovery.undo_resends), (Some(77), undo_resends));
    }
}

/// RFC 8985, section 8: while a segment is waited for, its timer stands for the timeout.
#[test]
fn the_reordering_timer_is_not_set_anew_by_progress() {
    let identify = |waited_for: bool, resent: bool| {
        let mut sender = reducing(100, 50, 10);
        (sender.window.phase, sender.window.mss) = (Phase::Open, 1);
        sender.rtt.update(40_000, 1, 11);
        let now = Now::new(simnel_core::time::Time(1_000_000_000));
        sender.rtt.update_min(&now, 40_000);
        sender.recovery.reordering_seen = true;
        for id in 0..10 {
            sender.board.get_mut(id).sent_us = 955_000;
        }
        if resent {
            sender.mark_lost(0);
            sender.board.note_resent(0, 900_000, true);
        }
        if waited_for || resent {
            let newest = *sender.board.get(9);
            sender.rack.advance(&newest, 40_000, &now);
        }
        let mut ack = of(fact::SET_TIMER | fact::DATA_ACKED);
        sender.identify_losses(&mut ack, &now);
        let timer = (ack.has(fact::SET_TIMER), ack.has(fact::LOST_RESENT));
        assert!(ack.has(fact::DATA_ACKED));
        timer
    };
    assert_eq!(identify(false, false), (true, false));
    assert_eq!(identify(true, false), (false, false));
    assert_eq!(identify(true, true), (false, true));
}

/// RFC 8985, section 6.3: a timeout takes for lost what can no longer arrive, and the head.
#[test]
fn a_timeout_spares_what_was_just_sent() {
    let lost = |sack| {
        let mut sender = reducing(100, 50, 3);
        sender.sack = sack;
        let now = Now::new(simnel_core::time::Time(1_000_000_000));
        let arrived = Record { sent_us: 900_000, ..*sender.board.get(0) };
        sender.rack.advance(&arrived, 0, &now);
        // Sent 99, 100 and 99 ms ago, with an RTT of 100.
        for (id, sent_us) in [(0, 901_000), (1, 900_000), (2, 901_000)] {
            sender.board.get_mut(id).sent_us = sent_us;
        }
        sender.board.phantom_sacked = 1;
        sender.mark_all_lost(&now);
        assert_eq!(sender.board.phantom_sacked, 0);
        [0, 1, 2].map(|id| sender.board.get(id).has(flag::LOST))
    };
    assert_eq!((lost(true), lost(false)), ([true, true, false], [true; 3]));
}

#[test]
fn the_stamp_goes_with_the_last_repetition() {
    for (resent, echo, stamp, phase) in
        [(0, 0, 0, Phase::Open), (1, 0, 9, Phase::Disorder), (0, fact::ECHO, 0, Phase::Cwr)]
    {
        let mut sender = reducing(100, 50, 10);
        (sender.window.phase, sender.window.cwnd) = (Phase::Disorder, 20);
        (sender.board.resent_out, sender.recovery.resend_stamp) = (resent, 9);
        sender.reopen(&of(echo), &Now::default());
        assert_eq!((sender.recovery.resend_stamp, sender.window.phase), (stamp, phase));
    }
}

/// The control hears of timeouts and phases: DCTCP remembers the window of a loss.
#[test]
fn the_control_is_told() {
    let config = Config { congestion: crate::CongestionControl::Dctcp, ..Config::default() };
    for event in [Event::Timeout, Event::ReductionDone] {
        let mut sender = Sender::new(&config);
        sender.window.cwnd = 40;
        sender.tell(event, &Now::default());
        sender.window.cwnd = 5;
        let told = event == Event::Timeout;
        assert_eq!(sender.control.undo(&sender.window), if told { 40 } else { 5 });
    }
    for phase in [Phase::Recovery, Phase::Disorder] {
        let mut sender = Sender::new(&config);
        sender.window.cwnd = 40;
        sender.set_phase(phase, &Now::default());
        sender.window.cwnd = 5;
        let told = phase == Phase::Recovery;
        assert_eq!(sender.control.undo(&sender.window), if told { 40 } else { 5 });
    }
}
