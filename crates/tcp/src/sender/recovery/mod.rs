//! Recovery on acknowledgements: phases, proportional rate reduction, and taking it all back.
//!
//! The phases are Linux's:
//! - Open;
//! - Disorder (something was overtaken);
//! - CWR (reducing because of a mark or a lost probe);
//! - Recovery (RFC 6675 with RACK's losses);
//! - Loss (after a timeout, RFC 5681 3.1, with F-RTO, RFC 5682).
//!
//! In CWR and Recovery the window follows proportional rate reduction (RFC 6937 and its successor
//! draft). `sndcnt` comes from what was delivered, so that the flow never stalls nor bursts.
//!
//! A reduction is undone if timestamps show that the first retransmission was answered before it
//! could have been (Eifel, RFC 3522). It is also undone if D-SACKs account for every retransmission
//! (RFC 3708).

use super::ack::{fact, Ack};
use super::scoreboard::flag;
use super::{Resend, Sender, MAX_REORDERING, REORDERING};
use crate::clock::{before, Now};
use crate::congestion::{Event, Phase, INFINITE};

/// State of loss recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// The present phase ends when this is acknowledged.
    pub high_seq: u64,
    /// First number of the episode that may be undone.
    pub undo_marker: Option<u64>,
    /// Retransmissions of the episode that no D-SACK has accounted for; -1 if none was sent yet.
    pub undo_resends: i32,
    /// Segments that D-SACKs ever reported.
    pub reported: u32,
    /// Timestamp of the first retransmission of the episode, of the first SYN before all; zero if
    /// none.
    pub resend_stamp: u32,
    /// Threshold before the reduction; zero if it must not be taken back.
    pub prior_ssthresh: u32,
    delivered: u32,
    sent: u32,
    /// Segments that may be overtaken.
    pub reordering: u32,
    pub reordering_seen: bool,
    /// Tail loss probe: right edge when it was sent, zero if none is out; and whether it was a
    /// retransmission.
    pub probe_end: u64,
    pub probe_resent: bool,
    /// F-RTO is under way.
    pub frto: bool,
}

impl Recovery {
    pub(super) fn new() -> Recovery {
        Recovery {
            high_seq: 0,
            undo_marker: None,
            undo_resends: 0,
            reported: 0,
            resend_stamp: 0,
            prior_ssthresh: 0,
            delivered: 0,
            sent: 0,
            reordering: REORDERING,
            reordering_seen: false,
            probe_end: 0,
            probe_resent: false,
            frto: false,
        }
    }
}

impl Sender {
    /// In CWR or Recovery, where PRR rules the window.
    #[inline]
    pub(super) fn reducing(&self) -> bool {
        matches!(self.window.phase, Phase::Cwr | Phase::Recovery)
    }

    pub(super) fn set_phase(&mut self, phase: Phase, now: &Now) {
        self.control.on_phase(&mut self.window, phase, now);
        self.window.phase = phase;
    }

    /// The threshold as it stands, or would after a mild reduction of an untested window.
    pub(super) fn current_ssthresh(&self) -> u32 {
        let window = &self.window;
        if self.reducing() {
            window.ssthresh
        } else {
            window.ssthresh.max(window.cwnd / 2 + window.cwnd / 4)
        }
    }

    /// Takes in an acknowledgement that is dubious, or any outside the Open phase. `duplicates` is
    /// 1 for a bare duplicate ACK.
    pub(super) fn alert(&mut self, prior_una: u64, duplicates: u32, ack: &mut Ack, now: &Now) {
        if ack.has(fact::ECHO) {
            // A mark is no mistake.
            self.recovery.prior_ssthresh = 0;
        }
        self.forget_renegade_sacks();
        if self.window.phase == Phase::Open {
            self.recovery.resend_stamp = 0;
        } else if self.window.una >= self.recovery.high_seq {
            match self.window.phase {
                // Held until something *above* is acknowledged, so that CWR has arrived.
                Phase::Cwr if self.window.una > self.recovery.high_seq => {
                    self.end_reduction(now);
                    self.set_phase(Phase::Open, now);
                }
                Phase::Recovery => {
                    self.board.phantom_sacked = 0;
                    if !self.leave_recovery(now) {
                        return;
                    }
                    self.end_reduction_after(Phase::Recovery, now);
                }
                _ => {}
            }
        }
        match self.window.phase {
            Phase::Recovery => return self.proceed_in_recovery(prior_una, duplicates, ack, now),
            Phase::Loss => {
                self.proceed_after_timeout(duplicates, ack, now);
                self.identify_losses(ack, now);
                if self.window.phase != Phase::Open && !ack.has(fact::LOST_RESENT) {
                    return;
                }
            }
            _ => {}
        }
        if ack.has(fact::ADVANCED) {
            self.board.phantom_sacked = 0;
        }
        self.count_duplicates(duplicates);
        if self.window.phase <= Phase::Disorder {
            self.undo_on_duplicates(now);
        }
        self.identify_losses(ack, now);
        if self.board.lost_out == 0 {
            self.reopen(ack, now);
            return;
        }
        self.enter_recovery(ack.has(fact::ECHO), now);
        self.resend = Resend::Lost;
    }

    /// An acknowledgement within recovery.
    fn proceed_in_recovery(&mut self, prior_una: u64, duplicates: u32, ack: &mut Ack, now: &Now) {
        if !ack.has(fact::ADVANCED) {
            self.count_duplicates(duplicates);
        } else if self.undo_on_partial(prior_una, ack, now) {
            return;
        }
        if self.undo_on_duplicates(now) {
            self.reopen(ack, now);
        }
        self.identify_losses(ack, now);
        if self.window.phase != Phase::Recovery {
            if self.board.lost_out == 0 {
                return;
            }
            self.enter_recovery(ack.has(fact::ECHO), now);
        }
        self.resend = Resend::Lost;
    }

    /// RACK's verdict; without SACK, duplicates'.
    fn identify_losses(&mut self, ack: &mut Ack, now: &Now) {
        if self.board.is_empty() {
            return;
        }
        if !self.sack {
            let due = match self.window.phase {
                Phase::Recovery => ack.has(fact::ADVANCED),
                Phase::Loss => false,
                _ => self.board.phantom_sacked >= self.recovery.reordering,
            };
            let head = self.board.head();
            if due && !self.board.get(head).has(flag::LOST) {
                self.mark_lost(head);
            }
            return;
        }
        let resent = self.board.resent_out;
        if self.detect_losses(now) {
            ack.facts &= !fact::SET_TIMER;
        }
        if resent > self.board.resent_out {
            ack.facts |= fact::LOST_RESENT;
        }
    }

    /// The receiver has dropped what it had SACKed: the head is SACKed and yet unacknowledged.
    fn forget_renegade_sacks(&mut self) {
        if self.board.first().is_some_and(|record| record.has(flag::SACKED)) {
            self.board.forget_sacks();
        }
    }

    /// Back to Open or Disorder, whichever it is; a mark starts CWR.
    fn reopen(&mut self, ack: &Ack, now: &Now) {
        if !self.any_resent() {
            self.recovery.resend_stamp = 0;
        }
        if ack.has(fact::ECHO) {
            self.enter_cwr(now);
        }
        if self.window.phase != Phase::Cwr {
            self.keep_open(now);
        }
    }

    pub(super) fn keep_open(&mut self, now: &Now) {
        let board = &self.board;
        let amiss = board.sacked_out + board.phantom_sacked + board.lost_out > 0;
        let phase = if amiss || self.any_resent() { Phase::Disorder } else { Phase::Open };
        if self.window.phase != phase {
            self.set_phase(phase, now);
            self.recovery.high_seq = self.window.nxt;
        }
    }

    /// A retransmission is in flight, or the head was sent again.
    fn any_resent(&self) -> bool {
        self.board.resent_out > 0
            || self.board.first().is_some_and(|record| record.has(flag::EVER_RESENT))
    }

    fn enter_cwr(&mut self, now: &Now) {
        self.recovery.prior_ssthresh = 0;
        if self.window.phase < Phase::Cwr {
            self.recovery.undo_marker = None;
            self.start_reduction(now);
            self.set_phase(Phase::Cwr, now);
        }
    }

    pub(super) fn enter_recovery(&mut self, echo: bool, now: &Now) {
        self.recovery.prior_ssthresh = 0;
        // The episode's first repetition starts the clock.
        if !self.any_resent() {
            self.recovery.resend_stamp = 0;
        }
        self.start_undo();
        if !self.reducing() {
            if !echo {
                self.recovery.prior_ssthresh = self.current_ssthresh();
            }
            self.start_reduction(now);
        }
        self.set_phase(Phase::Recovery, now);
    }

    fn start_undo(&mut self) {
        self.recovery.undo_marker = Some(self.window.una);
        // Retransmissions from before, a probe among them, may still be answered by D-SACKs.
        let probe = self.recovery.probe_end != 0 && self.recovery.probe_resent;
        let resent = self.board.resent_out as i32 + i32::from(probe);
        self.recovery.undo_resends = if resent > 0 { resent } else { -1 };
    }

    /// Sets the threshold and starts PRR.
    pub(super) fn start_reduction(&mut self, now: &Now) {
        self.recovery.high_seq = self.window.nxt;
        self.recovery.probe_end = 0;
        self.window.count = 0;
        self.window.prior_cwnd = self.window.cwnd;
        self.recovery.delivered = 0;
        self.recovery.sent = 0;
        self.window.ssthresh = self.control.reduce(&self.window, now);
        self.counters.reductions += 1;
        self.queue_cwr = self.ecn;
    }

    /// Proportional rate reduction: the window follows what is delivered.
    pub(super) fn reduce_proportionally(&mut self, delivered: u32, lost: u32, advanced: bool) {
        let prior = u64::from(self.window.prior_cwnd);
        if delivered == 0 || prior == 0 {
            return;
        }
        let in_flight = self.board.in_flight();
        self.recovery.delivered += delivered;
        let recovery = &self.recovery;
        let ssthresh = self.window.ssthresh;
        let mut allowed = if in_flight > ssthresh {
            let share = u64::from(ssthresh) * u64::from(recovery.delivered);
            share.div_ceil(prior) as i64 - i64::from(recovery.sent)
        } else {
            let owed = i64::from(recovery.delivered) - i64::from(recovery.sent);
            let mut allowed = owed.max(i64::from(delivered));
            if advanced && lost == 0 {
                allowed += 1;
            }
            allowed.min(i64::from(ssthresh - in_flight))
        };
        // The first retransmission goes out whatever the count says.
        allowed = allowed.max(i64::from(recovery.sent == 0));
        self.window.cwnd = (i64::from(in_flight) + allowed).max(1) as u32;
    }

    /// Segments sent while PRR rules.
    #[inline]
    pub(super) fn count_sent_in_reduction(&mut self) {
        if self.reducing() {
            self.recovery.sent += 1;
        }
    }

    fn end_reduction(&mut self, now: &Now) {
        self.end_reduction_after(self.window.phase, now);
    }

    /// The window becomes the threshold, unless the reduction was undone.
    pub(super) fn end_reduction_after(&mut self, phase: Phase, now: &Now) {
        if self.control.takes_over() {
            return;
        }
        let binding = phase == Phase::Cwr || self.recovery.undo_marker.is_some();
        if self.window.ssthresh < INFINITE && binding {
            self.window.cwnd = self.window.ssthresh;
            self.used_since_ms = now.ms;
        }
        self.tell(Event::ReductionDone, now);
    }

    /// All that was out when recovery began is acknowledged. False if the phase is held.
    fn leave_recovery(&mut self, now: &Now) -> bool {
        if self.may_undo(self.last_echo) {
            self.undo(false, now);
        } else {
            self.rack.persist = self.rack.persist.saturating_sub(1);
        }
        if self.holds_without_sack() {
            return false;
        }
        self.set_phase(Phase::Open, now);
        true
    }

    /// The acknowledgement answers something sent before the first retransmission, which may not
    /// have left yet: a paced sender's waits.
    fn answered_before_resend(&self, echo: u32) -> bool {
        match self.recovery.resend_stamp {
            0 => self.sack || self.window.una < self.recovery.high_seq,
            stamp => echo != 0 && before(echo, stamp),
        }
    }

    fn may_undo(&self, echo: u32) -> bool {
        self.recovery.undo_marker.is_some()
            && (self.recovery.undo_resends == 0 || self.answered_before_resend(echo))
    }

    /// Takes the reduction back; `unmark` forgets the losses as well.
    fn undo(&mut self, unmark: bool, now: &Now) {
        if unmark {
            self.board.unmark_all_lost();
        }
        if self.recovery.prior_ssthresh > 0 {
            self.window.cwnd = self.control.undo(&self.window);
            if self.recovery.prior_ssthresh > self.window.ssthresh {
                self.window.ssthresh = self.recovery.prior_ssthresh;
                self.queue_cwr = false;
            }
            self.counters.undos += 1;
        }
        self.used_since_ms = now.ms;
        self.recovery.undo_marker = None;
        self.rack.advanced = true;
    }

    /// A hole was filled by the original: nothing was lost, only late. True if the rest of the
    /// acknowledgement must wait.
    fn undo_on_partial(&mut self, prior_una: u64, ack: &Ack, now: &Now) -> bool {
        if self.recovery.undo_marker.is_none() || !self.answered_before_resend(ack.echo) {
            return false;
        }
        self.note_reordering(prior_una);
        if self.board.resent_out > 0 {
            return true;
        }
        if !self.any_resent() {
            self.recovery.resend_stamp = 0;
        }
        self.undo(true, now);
        self.keep_open(now);
        false
    }

    /// D-SACKs account for every retransmission.
    fn undo_on_duplicates(&mut self, now: &Now) -> bool {
        if self.recovery.undo_marker.is_none() || self.recovery.undo_resends != 0 {
            return false;
        }
        self.extend_reordering_memory();
        self.undo(false, now);
        true
    }

    /// True if the timeout was shown to be a mistake.
    fn undo_after_timeout(&mut self, by_frto: bool, ack: &Ack, now: &Now) -> bool {
        if !by_frto && !self.may_undo(ack.echo) {
            return false;
        }
        self.undo(true, now);
        self.timers.retries = 0;
        if !self.holds_without_sack() && (by_frto || self.sack) {
            self.set_phase(Phase::Open, now);
        }
        true
    }

    /// An acknowledgement after a timeout (RFC 5682, section 3.1, SACK-enhanced).
    fn proceed_after_timeout(&mut self, duplicates: u32, ack: &Ack, now: &Now) {
        let recovered = self.window.una >= self.recovery.high_seq;
        if ack.has(fact::ADVANCED) && self.undo_after_timeout(false, ack, now) {
            return;
        }
        if self.recovery.frto {
            // Something sent once, before the timeout, has arrived: not all was lost.
            if ack.has(fact::ORIGINAL) && self.undo_after_timeout(true, ack, now) {
                return;
            }
            if self.window.nxt > self.recovery.high_seq {
                if ack.has(fact::SACKED) || duplicates > 0 {
                    self.recovery.frto = false;
                }
            } else if ack.has(fact::ADVANCED) && !recovered {
                self.recovery.high_seq = self.window.nxt;
                // New data will tell; sent once the window has been set.
                if self.write_end > self.window.nxt && self.peer_edge > self.window.nxt {
                    self.resend = Resend::NewFirst;
                    return;
                }
                self.recovery.frto = false;
            }
        }
        if recovered {
            self.leave_recovery(now);
            return;
        }
        if self.window.nxt > self.recovery.high_seq && duplicates > 0 {
            self.count_duplicates(duplicates);
        } else if ack.has(fact::ADVANCED) {
            self.board.phantom_sacked = 0;
        }
        self.resend = Resend::Lost;
    }

    /// A retransmission timeout: everything in flight is taken for lost, the window starts over.
    pub(super) fn enter_loss(&mut self, now: &Now) {
        let fresh = self.window.phase < Phase::Recovery;
        self.mark_all_lost(now);
        let reduce = self.window.phase <= Phase::Disorder
            || self.recovery.high_seq <= self.window.una
            || (self.window.phase == Phase::Loss && self.timers.retries == 0);
        if reduce {
            self.recovery.prior_ssthresh = self.current_ssthresh();
            self.window.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.control.reduce(&self.window, now);
            self.counters.reductions += 1;
            self.tell(Event::Timeout, now);
            self.start_undo();
        }
        self.window.cwnd = self.board.in_flight() + 1;
        self.window.count = 0;
        self.used_since_ms = now.ms;
        if self.window.phase <= Phase::Disorder && self.board.sacked_out >= REORDERING {
            // Duplicates enough, and yet no recovery: reordering was overestimated.
            self.recovery.reordering = self.recovery.reordering.min(REORDERING);
        }
        self.set_phase(Phase::Loss, now);
        self.recovery.high_seq = self.window.nxt;
        self.recovery.probe_end = 0;
        self.queue_cwr = self.ecn;
        self.recovery.frto = self.settings.frto && (fresh || self.timers.retries > 0);
    }

    fn mark_all_lost(&mut self, now: &Now) {
        self.forget_renegade_sacks();
        self.board.phantom_sacked = 0;
        let head = self.board.head();
        for n in 0..self.board.len() {
            let id = head.wrapping_add(n);
            let record = *self.board.get(id);
            // What was sent recently may still arrive; the head has had its time.
            if n == 0 || !self.sack || !self.may_still_arrive(&record, now) {
                self.mark_lost(id);
            }
        }
    }

    /// An acknowledgement while a tail loss probe is out (RFC 8985, section 7.4).
    pub(super) fn take_probe_ack(&mut self, ack_seq: u64, ack: &Ack, now: &Now) {
        let edge = self.recovery.probe_end;
        if ack_seq < edge {
            return;
        }
        if !self.recovery.probe_resent || ack.has(fact::DUPLICATE_PROBE) {
            self.recovery.probe_end = 0;
        } else if ack_seq > edge {
            // The probe repaired a loss that nobody else will ever see: react to it.
            self.start_reduction(now);
            self.set_phase(Phase::Cwr, now);
            self.end_reduction(now);
            self.keep_open(now);
        } else if !ack.has(fact::ADVANCED | fact::NOT_DUP | fact::SACKED) {
            self.recovery.probe_end = 0;
        }
    }

    /// Without SACK, a duplicate ACK stands for one segment that arrived (RFC 6582).
    fn count_duplicates(&mut self, duplicates: u32) {
        if self.sack || duplicates == 0 {
            return;
        }
        let before = self.board.phantom_sacked;
        self.board.phantom_sacked += duplicates;
        self.limit_duplicates(0);
        let delivered = self.board.phantom_sacked.saturating_sub(before);
        self.window.delivered = self.window.delivered.wrapping_add(delivered);
    }

    /// Without SACK, an acknowledgement that moves on by `acked` segments fills one hole. The
    /// others were told of by duplicates, as far as there were any.
    pub(super) fn cover_duplicates(&mut self, acked: u32) {
        let known = self.board.phantom_sacked;
        let delivered = acked.saturating_sub(known).max(u32::from(acked > 0));
        self.window.delivered = self.window.delivered.wrapping_add(delivered);
        self.board.phantom_sacked = known.saturating_sub(acked.saturating_sub(1));
        self.limit_duplicates(acked);
    }

    /// At least one segment is missing, and what is lost has not arrived: more duplicates than that
    /// leaves are a sign of reordering.
    fn limit_duplicates(&mut self, acked: u32) {
        let out = self.board.len();
        let arrived = out - self.board.lost_out.max(1).min(out);
        if self.board.phantom_sacked > arrived {
            self.board.phantom_sacked = arrived;
            self.recovery.reordering = (out + acked).min(MAX_REORDERING);
            self.recovery.reordering_seen = true;
        }
    }

    /// Without SACK the phase is held until something above its end is acknowledged, lest old
    /// duplicates start another (RFC 6582, section 3.2).
    fn holds_without_sack(&mut self) -> bool {
        let holds = !self.sack && self.window.una == self.recovery.high_seq;
        if holds && !self.any_resent() {
            self.recovery.resend_stamp = 0;
        }
        holds
    }
}

#[cfg(test)]
mod tests;
