//! Taking in an acknowledgement: SACK blocks, the cumulative part, RTT samples, the window.
//!
//! The common case, an acknowledgement in order without SACK while nothing is amiss, costs one
//! visit per record acknowledged and no search. (RFC 9293, 3.10.7.4; RFC 2018; RFC 2883; RFC 6298.)

use super::scoreboard::{flag, Id, Record};
use super::{Resend, Sender};
use crate::clock::{before, Now};
use crate::congestion::{AckSample, Event, Phase};
use crate::segment::{Segment, TcpFlags, MAX_SACK};

/// Facts about one acknowledgement, one bit each.
pub(super) mod fact {
    /// It came with data.
    pub(in super::super) const DATA: u16 = 1;
    /// It moved the peer's window.
    pub(in super::super) const WINDOW: u16 = 2;
    /// It acknowledged data.
    pub(in super::super) const DATA_ACKED: u16 = 4;
    /// It acknowledged our SYN.
    pub(in super::super) const SYN_ACKED: u16 = 8;
    /// It acknowledged something that was sent more than once.
    pub(in super::super) const RESENT_ACKED: u16 = 16;
    /// It SACKed something new.
    pub(in super::super) const SACKED: u16 = 32;
    /// It echoes a congestion mark.
    pub(in super::super) const ECHO: u16 = 64;
    /// It tells of a retransmission that was lost.
    pub(in super::super) const LOST_RESENT: u16 = 128;
    /// It (S)ACKed something sent once, before recovery began.
    pub(in super::super) const ORIGINAL: u16 = 256;
    /// The first unacknowledged number moved.
    pub(in super::super) const ADVANCED: u16 = 512;
    /// It reports a duplicate.
    pub(in super::super) const DUPLICATE: u16 = 1024;
    /// The duplicate is the tail loss probe.
    pub(in super::super) const DUPLICATE_PROBE: u16 = 2048;
    /// The retransmission timer must start anew.
    pub(in super::super) const SET_TIMER: u16 = 4096;
    /// A single segment's ACK, which the receiver may have delayed.
    pub(in super::super) const MAYBE_DELAYED: u16 = 8192;

    pub(in super::super) const ACKED: u16 = DATA_ACKED | SYN_ACKED;
    pub(in super::super) const NOT_DUP: u16 = DATA | WINDOW | ACKED;
    pub(in super::super) const ALERT: u16 = SACKED | ECHO | DUPLICATE;
}

/// Findings from one acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack {
    pub facts: u16,
    /// Echoed timestamp, zero if none.
    pub echo: u32,
    /// The peer's timestamp.
    peer_stamp: u32,
    /// Lowest number that arrived later than a higher one although sent once.
    reordered: u64,
    /// Sending times of the first and last newly SACKed segment that was sent once.
    first_sacked_us: Option<u32>,
    last_sacked_us: u32,
    /// Sending time of the newest segment that it delivered.
    pub newest_us: Option<u32>,
    /// Segments acknowledged cumulatively.
    pub acked: u32,
    pub rtt_us: Option<u32>,
}

impl Ack {
    /// Nothing is known yet but the stamps.
    #[inline]
    pub(super) fn new(echo: u32, peer_stamp: u32) -> Ack {
        Ack {
            facts: 0,
            echo,
            peer_stamp,
            reordered: NO_SEQ,
            first_sacked_us: None,
            last_sacked_us: 0,
            newest_us: None,
            acked: 0,
            rtt_us: None,
        }
    }

    #[inline]
    pub(super) fn has(&self, facts: u16) -> bool {
        self.facts & facts != 0
    }

    /// A segment that had left at `sent_us` was delivered.
    #[inline]
    fn note_delivered(&mut self, sent_us: u32) {
        if self.newest_us.is_none_or(|newest| before(newest, sent_us)) {
            self.newest_us = Some(sent_us);
        }
    }
}

/// Nothing was overtaken.
const NO_SEQ: u64 = u64::MAX;

impl Sender {
    /// True if `segment` acknowledges nothing new while nothing is in flight: the common case of an
    /// endpoint that only receives.
    #[inline]
    pub(crate) fn is_settled(&mut self, segment: &Segment) -> bool {
        let settled = segment.ack == self.window.una
            && self.window.nxt == self.window.una
            && segment.window == self.peer_window
            && self.write_end <= self.window.nxt;
        if settled {
            self.window_seq = segment.seq;
        }
        settled
    }

    /// Takes in the acknowledgement of `segment`. False if it is for something never sent.
    pub(crate) fn on_ack(&mut self, segment: &Segment, now: &Now) -> bool {
        let (ack_seq, una) = (segment.ack, self.window.una);
        if ack_seq > self.window.nxt {
            return false;
        }
        self.last_echo = if segment.timestamps { segment.ts_echo } else { 0 };
        let mut ack = Ack::new(self.last_echo, segment.ts_val);
        self.burst = 0;
        self.dirty = true;
        if ack_seq < una {
            if segment.sack_count > 0 && self.sack {
                // Linux does not count what an old acknowledgement delivers.
                let delivered = self.window.delivered;
                self.take_sack(segment, una, &mut ack, now);
                self.window.delivered = delivered;
                self.sampler.forget();
                self.alert(una, 0, &mut ack, now);
            }
            return true;
        }
        let prior_highest = self.highest_sacked();
        let prior_out = self.board.len();
        let prior_sacked = self.board.sacked_out + self.board.phantom_sacked;
        let (prior_delivered, prior_lost) = (self.window.delivered, self.window.lost);
        let prior_in_flight = if self.control.takes_over() { self.board.in_flight() } else { 0 };
        if ack_seq > una {
            ack.facts |= fact::ADVANCED;
            self.timers.retries = 0;
        }
        if segment.end_seq() > segment.seq {
            ack.facts |= fact::DATA;
        }
        self.take_window(segment, &mut ack);
        if segment.sack_count > 0 && self.sack {
            self.take_sack(segment, una, &mut ack, now);
        }
        let echo =
            self.ecn && segment.flags.has(TcpFlags::ECE) && !segment.flags.has(TcpFlags::SYN);
        if echo {
            ack.facts |= fact::ECHO;
        }
        self.control.on_ack(&mut self.window, ack_seq - una, echo);
        if prior_out == 0 {
            self.window.una = ack_seq;
            self.timers.window_probes = 0;
            if ack.has(fact::DUPLICATE) {
                self.alert(una, 0, &mut ack, now);
            }
            return true;
        }

        self.take_cumulative(ack_seq, prior_highest, prior_sacked, &mut ack, now);
        self.adapt_reordering_window(ack.newest_us, now);
        if self.recovery.probe_end != 0 {
            self.take_probe_ack(ack_seq, &ack, now);
        }
        if !ack.has(fact::NOT_DUP) || ack.has(fact::ALERT) || self.window.phase != Phase::Open {
            let duplicate = !ack.has(fact::ADVANCED | fact::NOT_DUP | fact::DUPLICATE);
            self.alert(una, u32::from(duplicate), &mut ack, now);
        }
        if ack.has(fact::SET_TIMER) {
            // What leaves in answer sets the timer again: once is enough.
            self.timer_stale = self.wants_probe();
            if !self.timer_stale {
                self.set_timer(now);
            }
        }

        let delivered = self.window.delivered.wrapping_sub(prior_delivered);
        if delivered > 0 {
            self.delivered_us = now.us;
        }
        if echo {
            self.window.delivered_ce += delivered;
        }
        let lost = self.window.lost.wrapping_sub(prior_lost);
        self.window.packets_out = self.board.len();
        self.window.in_flight = self.board.in_flight();
        if self.control.takes_over() {
            let delayed = ack.has(fact::MAYBE_DELAYED);
            let mut sample = self.sampler.finish(delivered, lost, &self.window, &self.rtt, now);
            sample.ack_delayed = delayed;
            sample.rtt_us = ack.rtt_us;
            sample.prior_in_flight = prior_in_flight;
            sample.wait_us = self.pacer.delay(now.time).as_micros() as u32;
            // Before the handshake's end there is nothing to control, nor is the MSS known.
            if !ack.has(fact::SYN_ACKED) {
                self.control.control(&mut self.window, &sample, now);
            }
            if core::mem::take(&mut self.window.ignore_rates) {
                self.sampler.limit_by_application(self.window.delivered, self.window.in_flight);
            }
        } else if self.reducing() {
            self.reduce_proportionally(delivered, lost, ack.has(fact::ADVANCED));
        } else if self.may_grow(&ack) {
            self.window.cwnd_limited = self.is_cwnd_limited();
            self.control.grow(&mut self.window, delivered, now);
        }
        true
    }

    /// Growth needs data acknowledged; where reordering is the rule, SACKed data will do.
    #[inline]
    fn may_grow(&self, ack: &Ack) -> bool {
        if self.recovery.reordering > super::REORDERING {
            return ack.has(fact::ACKED | fact::SACKED);
        }
        ack.has(fact::DATA_ACKED)
    }

    /// RFC 9293's rule for window updates: a newer segment's word counts.
    #[inline]
    fn take_window(&mut self, segment: &Segment, ack: &mut Ack) {
        let newer = segment.ack > self.window.una
            || segment.seq > self.window_seq
            || (segment.seq == self.window_seq
                && (segment.window > self.peer_window || segment.window == 0));
        if newer {
            ack.facts |= fact::WINDOW;
            self.window_seq = segment.seq;
            self.peer_window = segment.window;
            self.peer_window_max = self.peer_window_max.max(segment.window);
        }
        self.peer_edge = segment.ack + u64::from(self.peer_window);
    }

    /// The number up to which SACK has reached.
    #[inline]
    pub(super) fn highest_sacked(&self) -> u64 {
        if self.board.sacked_out == 0 {
            return self.window.una;
        }
        self.board.sacked.end().unwrap_or(self.window.una)
    }

    fn take_sack(&mut self, segment: &Segment, prior_una: u64, ack: &mut Ack, now: &Now) {
        let mut blocks = segment.sack_blocks();
        let first = blocks.next();
        let second = blocks.next();
        let mut duplicates = 0;
        if let Some((left, right)) = first {
            let within = second.is_some_and(|(l, r)| left >= l && right <= r);
            if (left < segment.ack || within)
                && self.take_duplicate_report(left, right, (prior_una, segment.ack), ack)
            {
                duplicates = 1;
            }
        }
        // In order of sequence: the newest block comes first, and an older one that is news with it
        // would look overtaken.
        let mut sorted = [(0, 0); MAX_SACK];
        let (una, nxt) = (self.window.una.max(segment.ack), self.window.nxt);
        let valid = |(left, right): &(u64, u64)| una < *left && left < right && *right <= nxt;
        let fresh = segment.sack_blocks().skip(duplicates).filter(valid);
        let count = sorted.iter_mut().zip(fresh).map(|(slot, block)| *slot = block).count();
        sorted[..count].sort_unstable();
        for (left, right) in &sorted[..count] {
            self.take_block(*left, *right, ack, now);
        }
        if self.window.phase != Phase::Loss || self.recovery.undo_marker.is_some() {
            self.note_reordering(ack.reordered);
        }
    }

    /// A D-SACK: the receiver got `[left, right)` twice. False if it is not believed.
    fn take_duplicate_report(
        &mut self,
        left: u64,
        right: u64,
        (prior_una, ack_seq): (u64, u64),
        ack: &mut Ack,
    ) -> bool {
        if right <= left || right - left > self.peer_window_max.into() {
            return false;
        }
        let mss = u64::from(self.window.mss.max(1));
        let segments = (right - left).div_ceil(mss) as u32;
        if segments == 1 && self.recovery.probe_end != 0 && self.recovery.probe_end == right {
            ack.facts |= fact::DUPLICATE_PROBE;
        }
        // No more can have come twice than was sent again.
        self.recovery.reported = self.recovery.reported.wrapping_add(segments);
        if self.recovery.reported > self.counters.resends {
            return false;
        }
        ack.facts |= fact::DUPLICATE;
        if self.recovery.reordering_seen && !ack.has(fact::DUPLICATE_PROBE) {
            self.rack.duplicate_seen = true;
        }
        // A needless retransmission was delivered, too.
        self.window.delivered = self.window.delivered.wrapping_add(segments);
        let Some(marker) = self.recovery.undo_marker else {
            if left > ack_seq {
                self.discount_resent(left, right, ack);
            }
            return true;
        };
        if right <= prior_una {
            // The records are gone: what was sent again counts by size.
            if self.recovery.undo_resends > 0 && right > marker {
                let left = self.recovery.undo_resends - segments as i32;
                self.recovery.undo_resends = left.max(0);
            }
        } else if left > ack_seq || (right <= ack_seq && right > marker) {
            self.discount_resent(left, right, ack);
        }
        true
    }

    /// A duplicate of segments still on record: their retransmission was not needed. If a SACK had
    /// come for one before, the original was only late.
    fn discount_resent(&mut self, left: u64, right: u64, ack: &mut Ack) {
        let Some(mut id) = self.board.find(left.max(self.window.una), self.window.mss) else {
            return;
        };
        let marker = self.recovery.undo_marker;
        while self.board.holds(id) && self.board.get(id).end() <= right {
            let record = self.board.get_mut(id);
            let (seq, end) = (record.seq, record.end());
            if record.has(flag::RESENT | flag::EVER_RESENT) {
                if self.recovery.undo_resends > 0 && marker.is_some_and(|marker| end > marker) {
                    self.recovery.undo_resends -= 1;
                }
                if record.has(flag::SACKED) {
                    ack.reordered = ack.reordered.min(seq);
                }
            }
            if record.has(flag::RESENT) {
                record.flags &= !flag::RESENT;
                self.board.resent_out -= 1;
            }
            id = id.wrapping_add(1);
        }
    }

    /// A SACK block: only what no earlier block has covered is looked at.
    fn take_block(&mut self, left: u64, right: u64, ack: &mut Ack, now: &Now) {
        let mut from = left;
        while let Some((start, end)) = self.board.sacked.first_gap(from, right) {
            from = end;
            let Some(mut id) = self.board.find(start, self.window.mss) else { continue };
            let mut covered: Option<(u64, u64)> = None;
            while self.board.holds(id) {
                let record = *self.board.get(id);
                if record.end() > end {
                    break;
                }
                if record.seq >= start {
                    self.take_sacked(id, record, ack, now);
                    covered = Some((covered.map_or(record.seq, |c| c.0), record.end()));
                }
                id = id.wrapping_add(1);
            }
            if let Some((l, r)) = covered {
                self.board.sacked.insert(l, r);
            }
        }
    }

    /// One segment has just been SACKed.
    fn take_sacked(&mut self, id: Id, record: Record, ack: &mut Ack, now: &Now) {
        if record.has(flag::SACKED) {
            return;
        }
        self.rack.advance(&record, self.rtt.min_us(), now);
        ack.note_delivered(record.sent_us);
        self.sampler.on_delivered(&record, self.board.departure(id));
        let mut flags = record.flags;
        if flags & flag::RESENT != 0 {
            // Without LOST the retransmission is taken to be still on its way.
            if flags & flag::LOST != 0 {
                flags &= !(flag::LOST | flag::RESENT);
                self.board.lost_out -= 1;
                self.board.resent_out -= 1;
            }
        } else {
            if flags & flag::EVER_RESENT == 0 {
                if record.seq < self.highest_sacked() {
                    ack.reordered = ack.reordered.min(record.seq);
                }
                if record.end() <= self.recovery.high_seq {
                    ack.facts |= fact::ORIGINAL;
                }
                ack.first_sacked_us.get_or_insert(record.sent_us);
                ack.last_sacked_us = record.sent_us;
            }
            if flags & flag::LOST != 0 {
                flags &= !flag::LOST;
                self.board.lost_out -= 1;
            }
        }
        self.board.get_mut(id).flags = flags | flag::SACKED;
        self.board.sacked_out += 1;
        self.window.delivered = self.window.delivered.wrapping_add(1);
        ack.facts |= fact::SACKED;
    }

    /// Takes all that is acknowledged off the scoreboard.
    #[inline]
    fn take_cumulative(
        &mut self,
        ack_seq: u64,
        prior_highest: u64,
        prior_sacked: u32,
        ack: &mut Ack,
        now: &Now,
    ) {
        let una = self.window.una;
        let mut first_us = None;
        let mut last_us = 0;
        let mut reordered = NO_SEQ;
        while let Some(&record) = self.board.first() {
            let end = record.end();
            if end > ack_seq {
                if record.seq < ack_seq {
                    let head = self.board.head();
                    let record = self.board.get_mut(head);
                    record.len = (end - ack_seq) as u16;
                    record.seq = ack_seq;
                    ack.facts |= fact::DATA_ACKED;
                }
                break;
            }
            if record.has(flag::RESENT | flag::EVER_RESENT) {
                ack.facts |= fact::RESENT_ACKED;
            } else if !record.has(flag::SACKED) {
                last_us = record.sent_us;
                first_us.get_or_insert(record.sent_us);
                reordered = reordered.min(record.seq);
                if end <= self.recovery.high_seq {
                    ack.facts |= fact::ORIGINAL;
                }
            }
            if !record.has(flag::SACKED) {
                self.window.delivered = self.window.delivered.wrapping_add(u32::from(self.sack));
                if !ack.has(fact::RESENT_ACKED) || !answers_original(&record, ack.echo, now) {
                    self.rack.advance(&record, self.rtt.min_us(), now);
                }
                ack.note_delivered(record.sent_us);
                let departure = self.board.departure(self.board.head());
                self.sampler.on_delivered(&record, departure);
            }
            if record.has(flag::SYN) {
                ack.facts |= fact::SYN_ACKED;
                self.recovery.resend_stamp = 0;
            } else {
                ack.facts |= fact::DATA_ACKED;
            }
            ack.acked += 1;
            self.board.pop();
        }
        self.window.una = ack_seq;
        self.board.settle(ack_seq);

        let mut rtt_us = None;
        let mut sampled_us = None;
        if let (Some(first), false) = (first_us, ack.has(fact::RESENT_ACKED)) {
            rtt_us = Some(now.since_us(first));
            sampled_us = Some(now.since_us(last_us));
            let single = ack.acked == 1
                && prior_sacked == 0
                && ack_seq - una < u64::from(self.window.mss)
                && !before(first, self.delivered_us)
                && !ack.has(fact::ALERT | fact::SYN_ACKED);
            if single {
                ack.facts |= fact::MAYBE_DELAYED;
            }
        }
        let mut sack_rtt_us = None;
        if let Some(first) = ack.first_sacked_us {
            sack_rtt_us = Some(now.since_us(first));
            sampled_us = Some(now.since_us(ack.last_sacked_us));
        }
        let updated = self.take_rtt(rtt_us.or(sack_rtt_us), sampled_us, ack, now);
        if ack.has(fact::ACKED) {
            ack.facts |= fact::SET_TIMER;
            if !self.sack {
                self.cover_duplicates(ack.acked);
                // Of what was repeated nobody knows which sending arrived.
                if ack.has(fact::RESENT_ACKED) {
                    ack.facts &= !fact::ORIGINAL;
                }
            } else if reordered < prior_highest {
                // A hole filled by what was sent once: that is reordering.
                self.note_reordering(reordered);
            }
        } else if let (true, Some(sack), Some(head)) = (updated, sack_rtt_us, self.board.first()) {
            // SACKs of data sent after the head was last sent must not push the timeout on.
            if sack > now.since_us(head.sent_us) {
                ack.facts |= fact::SET_TIMER;
            }
        }
        let one_way_ms = (ack.echo != 0).then(|| ack.peer_stamp.wrapping_sub(ack.echo));
        let sample = AckSample { rtt_us: ack.rtt_us, one_way_ms };
        self.control.on_sample(&mut self.window, &sample, now);
    }

    /// `rtt_us` is for the timeout, `sampled_us` for the congestion control. True if there was one.
    #[inline]
    fn take_rtt(
        &mut self,
        rtt_us: Option<u32>,
        sampled_us: Option<u32>,
        ack: &mut Ack,
        now: &Now,
    ) -> bool {
        let (mut rtt_us, mut sampled_us) = (rtt_us, sampled_us);
        if rtt_us.is_none() && ack.echo != 0 && ack.has(fact::ACKED) {
            // Of a retransmission only the timestamp tells which sending was answered.
            let ms = now.timestamp().wrapping_sub(ack.echo);
            if ms < i32::MAX as u32 / 1_000 {
                rtt_us = Some(ms.max(1) * 1_000);
                sampled_us = rtt_us;
            }
        }
        ack.rtt_us = sampled_us;
        let (Some(rtt), Some(sampled)) = (rtt_us, sampled_us) else { return false };
        if !ack.has(fact::MAYBE_DELAYED) || sampled <= self.rtt.min_us() {
            self.rtt.update_min(now, sampled);
        }
        self.rtt.update(rtt, self.window.una, self.window.nxt);
        self.window.srtt8_us = self.rtt.srtt8_us;
        self.window.min_rtt_us = self.rtt.min_us();
        self.timers.rto_ticks = self.ticks.covering(self.rtt.timeout_us().min(super::MAX_RTO_US));
        self.timers.is_doubled = false;
        true
    }

    /// The segments from `low` on were overtaken: later arrivals prove less than was thought.
    pub(super) fn note_reordering(&mut self, low: u64) {
        let highest = self.highest_sacked();
        if low >= highest {
            return;
        }
        let mss = u64::from(self.window.mss.max(1));
        let distance = highest - low;
        if distance > u64::from(self.recovery.reordering) * mss {
            let segments = distance.div_ceil(mss).min(u64::from(super::MAX_REORDERING));
            self.recovery.reordering = segments as u32;
        }
        self.recovery.reordering_seen = true;
    }

    /// A change by the application or the clock may have made something sendable.
    pub(super) fn allow_resends(&mut self) {
        self.resend = Resend::Lost;
        self.dirty = true;
    }

    /// Tells the control of an event.
    pub(super) fn tell(&mut self, event: Event, now: &Now) {
        self.control.on_event(&mut self.window, event, now);
    }
}

/// True if the echoed timestamp is older than the last transmission of `record`, which was a
/// retransmission. That was needless, and its sending time tells nothing (RFC 8985, 6.2, step 2).
#[cold]
fn answers_original(record: &Record, echo: u32, now: &Now) -> bool {
    record.has(flag::RESENT | flag::EVER_RESENT)
        && echo != 0
        && before(echo, now.timestamp_at(record.sent_us))
}

#[cfg(test)]
mod tests;
