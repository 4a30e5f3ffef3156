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
    /// When the first and last newly SACKed segment that was sent once had left.
    first_sacked_us: Option<u32>,
    last_sacked_us: u32,
    /// Segments acknowledged cumulatively.
    acked: u32,
    pub rtt_us: Option<u32>,
}

impl Ack {
    /// Segments acknowledged cumulatively.
    pub(super) fn acked_segments(&self) -> u32 {
        self.acked
    }

    #[inline]
    pub(super) fn has(&self, facts: u16) -> bool {
        self.facts & facts != 0
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
        let mut ack = Ack {
            facts: 0,
            echo: self.last_echo,
            peer_stamp: segment.ts_val,
            reordered: NO_SEQ,
            first_sacked_us: None,
            last_sacked_us: 0,
            acked: 0,
            rtt_us: None,
        };
        self.burst = 0;
        self.dirty = true;
        if ack_seq < una {
            if segment.sack_count > 0 && self.sack {
                self.take_sack(segment, una, &mut ack, now);
                self.alert(una, 0, &mut ack, now);
            }
            return true;
        }
        let prior_highest = self.highest_sacked();
        let prior_out = self.board.len();
        let prior_sacked = self.board.sacked_out;
        let (prior_delivered, prior_lost) = (self.window.delivered, self.window.lost);
        let prior_in_flight = self.board.in_flight();
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
            return true;
        }

        self.take_cumulative(ack_seq, prior_highest, prior_sacked, &mut ack, now);
        self.adapt_reordering_window();
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
            self.control.control(&mut self.window, &sample, now);
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
        let mut duplicate = None;
        if let Some((left, right)) = first {
            let within = second.is_some_and(|(l, r)| left >= l && right <= r);
            if left < segment.ack || within {
                duplicate = Some((left, right));
                self.take_duplicate_report(left, right, prior_una, ack);
            }
        }
        // In order of sequence: the newest block comes first, and an older one that is news with it
        // would look overtaken.
        let mut sorted = [(0, 0); MAX_SACK];
        let fresh = segment.sack_blocks().filter(|block| duplicate != Some(*block));
        let count = sorted.iter_mut().zip(fresh).map(|(slot, block)| *slot = block).count();
        sorted[..count].sort_unstable();
        for (left, right) in &sorted[..count] {
            self.take_block((*left).max(segment.ack), (*right).min(self.window.nxt), ack, now);
        }
        if self.window.phase != Phase::Loss || self.recovery.undo_marker.is_some() {
            self.note_reordering(ack.reordered);
        }
    }

    /// A D-SACK: the receiver got `[left, right)` twice.
    fn take_duplicate_report(&mut self, left: u64, right: u64, prior_una: u64, ack: &mut Ack) {
        if right <= left || right > self.window.nxt || self.counters.resends == 0 {
            return;
        }
        ack.facts |= fact::DUPLICATE;
        if self.recovery.probe_end != 0 && self.recovery.probe_end == right {
            ack.facts |= fact::DUPLICATE_PROBE;
        } else if self.recovery.reordering_seen {
            self.rack.duplicate_seen = true;
        }
        let segments = (right - left).div_ceil(u64::from(self.window.mss.max(1))) as i32;
        let marker = self.recovery.undo_marker;
        if self.recovery.undo_resends > 0 && marker.is_some_and(|marker| right > marker) {
            // Below una the records are gone and are counted by size, above it each counts itself.
            if right <= prior_una {
                self.recovery.undo_resends = (self.recovery.undo_resends - segments).max(0);
            } else {
                self.discount_resent(left, right);
            }
        }
    }

    /// A duplicate of segments still on record: their retransmission was not needed.
    fn discount_resent(&mut self, left: u64, right: u64) {
        let Some(mut id) = self.board.find(left.max(self.window.una), self.window.mss) else {
            return;
        };
        while self.board.holds(id) && self.board.get(id).end() <= right {
            let record = self.board.get_mut(id);
            if record.has(flag::RESENT | flag::EVER_RESENT) {
                self.recovery.undo_resends = (self.recovery.undo_resends - 1).max(0);
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
                self.window.delivered = self.window.delivered.wrapping_add(1);
                if !ack.has(fact::RESENT_ACKED) || !answers_original(&record, ack.echo, now) {
                    self.rack.advance(&record, self.rtt.min_us(), now);
                }
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
            // A hole filled by what was sent once: that is reordering.
            if reordered < prior_highest {
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

/// The echoed timestamp is older than the last transmission of `record`, which was a repetition:
/// that was needless, and when it left tells nothing (RFC 8985, 6.2, step 2).
#[cold]
fn answers_original(record: &Record, echo: u32, now: &Now) -> bool {
    record.has(flag::RESENT | flag::EVER_RESENT)
        && echo != 0
        && before(echo, now.timestamp_at(record.sent_us))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use simnel_core::time::Time;

    fn nothing() -> Ack {
        Ack {
            facts: 0,
            echo: 0,
            peer_stamp: 0,
            reordered: NO_SEQ,
            first_sacked_us: None,
            last_sacked_us: 0,
            acked: 0,
            rtt_us: None,
        }
    }

    /// A sender that has sent up to 1001 in segments of 100, and something twice.
    fn sender() -> Sender {
        let mut sender = Sender::new(&Config::default());
        (sender.window.una, sender.window.nxt, sender.window.mss) = (1, 1_001, 100);
        sender.counters.resends = 1;
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
            sender.take_duplicate_report(left, right, 1, &mut ack);
            (ack.facts, sender.rack.duplicate_seen)
        };
        let probe = fact::DUPLICATE | fact::DUPLICATE_PROBE;
        assert_eq!(report(901, 1_001, 1_001, true, 1), (probe, false));
        assert_eq!(report(801, 901, 1_001, true, 1), (fact::DUPLICATE, true));
        assert_eq!(report(801, 901, 1_001, false, 1), (fact::DUPLICATE, false));
        assert_eq!(report(901, 1_001, 0, true, 1), (fact::DUPLICATE, true));
        // Nothing was sent twice, nothing is there, or it was never sent.
        assert_eq!(report(901, 1_001, 1_001, true, 0), (0, false));
        assert_eq!(report(901, 901, 1_001, true, 1), (0, false));
        assert_eq!(report(901, 1_002, 1_001, true, 1), (0, false));
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
            sender.take_duplicate_report(left, right, prior_una, &mut nothing());
            (sender.recovery.undo_resends, sender.board.resent_out)
        };
        // Below what is acknowledged: 250 bytes are three segments.
        assert_eq!(left_of(1, 251, 251, Some(1), 5), (2, 2));
        assert_eq!(left_of(1, 251, 251, Some(1), 2), (0, 2));
        assert_eq!(left_of(1, 251, 251, Some(251), 5), (5, 2));
        assert_eq!(left_of(1, 251, 251, Some(250), 5), (2, 2));
        assert_eq!(left_of(1, 251, 251, None, 5), (5, 2));
        assert_eq!(left_of(1, 251, 251, Some(1), 0), (0, 2));
        assert_eq!(left_of(1, 251, 251, Some(1), -1), (-1, 2));
        // Still on record: those that were sent again, and no others.
        assert_eq!(left_of(1, 301, 1, Some(1), 5), (4, 1));
        assert_eq!(left_of(201, 401, 1, Some(1), 5), (3, 0));
        assert_eq!(left_of(401, 601, 1, Some(1), 5), (5, 2));
        assert_eq!(left_of(201, 399, 1, Some(1), 5), (4, 1));
    }

    /// RFC 9293, section 3.4: an acknowledgement in the midst of a segment leaves the rest.
    #[test]
    fn part_of_a_segment_may_be_acknowledged() {
        let (mut sender, mut ack) = (sender(), nothing());
        sender.take_cumulative(231, 0, 0, &mut ack, &Now::default());
        let first = sender.board.first().unwrap();
        assert_eq!((first.seq, first.end(), sender.board.len()), (231, 301, 8));
        assert_eq!((ack.acked_segments(), sender.window.una), (2, 231));
        assert!(ack.has(fact::DATA_ACKED));
        sender.take_cumulative(301, 0, 0, &mut ack, &Now::default());
        assert_eq!((sender.board.len(), sender.window.delivered), (7, 3));
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
            assert_eq!(sender.recovery.duplicates, duplicates, "{segment:?}");
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
}
