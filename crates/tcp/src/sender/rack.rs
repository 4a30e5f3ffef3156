//! RACK: a segment is lost if one sent after it has arrived, and time has passed (RFC 8985).
//!
//! The time is the reordering window. While no reordering was ever seen, it is zero in recovery and
//! after three SACKs. Else it is a quarter of the least RTT, more after D-SACKs, at most the
//! smoothed RTT. Candidates come in the order of their last transmission from two queues: first
//! transmissions, which are in sequence order, and retransmissions. Both are only ever read from
//! the front, so detection costs the number of losses, not the size of the window.

use super::scoreboard::{flag, Record};
use super::Sender;
use crate::clock::{before, Now};
use crate::congestion::Phase;

/// Recoveries for which a widened reordering window lasts (RFC 8985, section 6.2, step 4).
const PERSIST: u8 = 16;

/// The newest segment known to have arrived, and the reordering window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// Time of its last transmission, in microseconds, wrapping.
    sent_us: u32,
    /// Sequence number of its end: breaks ties between segments of the same microsecond.
    end: u64,
    /// Its RTT.
    rtt_us: u32,
    /// There is something new since the last detection.
    pub advanced: bool,
    /// Quarters of the least RTT in the reordering window.
    steps: u8,
    pub persist: u8,
    /// A D-SACK has come since the window was widened.
    pub duplicate_seen: bool,
    /// Time of the last widening of the window, in microseconds. It may widen again when something
    /// that left later is delivered.
    widened_us: u64,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            sent_us: 0,
            end: 0,
            rtt_us: 0,
            advanced: false,
            steps: 1,
            persist: 0,
            duplicate_seen: false,
            widened_us: 0,
        }
    }
}

impl Rack {
    /// Restarts the comparison at `now`, for use while nothing waits for an acknowledgement. What
    /// leaves from now on is newer than all that has arrived, however long ago. So [`before`]
    /// compares only times within half an hour of each other.
    #[inline]
    pub(super) fn begin(&mut self, now: &Now) {
        (self.sent_us, self.end) = (now.us, 0);
    }

    /// `a`, ending at `a_end`, was sent after `b`.
    #[inline]
    fn sent_after(a: u32, a_end: u64, b: u32, b_end: u64) -> bool {
        before(b, a) || (a == b && a_end > b_end)
    }

    /// `record` has arrived.
    #[inline]
    pub(super) fn advance(&mut self, record: &Record, min_rtt_us: u32, now: &Now) {
        let rtt_us = now.since_us(record.sent_us);
        if record.has(flag::RESENT | flag::EVER_RESENT) && rtt_us < min_rtt_us {
            // Too soon for the retransmission: it was the original.
            return;
        }
        self.advanced = true;
        self.rtt_us = rtt_us;
        if Rack::sent_after(record.sent_us, record.end(), self.sent_us, self.end) {
            self.sent_us = record.sent_us;
            self.end = record.end();
        }
    }

    /// True if the window was widened last before `sent_us`, when something left.
    #[cold]
    fn leaves_round(&self, sent_us: u32, now: &Now) -> bool {
        now.time.0 / 1_000 - u64::from(now.since_us(sent_us)) >= self.widened_us
    }

    /// Time until `record` counts as lost, not positive if it does.
    #[inline]
    fn remaining_us(&self, record: &Record, reordering_us: u32, now: &Now) -> i32 {
        (self.rtt_us + reordering_us) as i32 - now.since_us(record.sent_us) as i32
    }
}

impl Sender {
    fn reordering_window_us(&self) -> u32 {
        if !self.recovery.reordering_seen
            && (self.window.phase >= Phase::Recovery
                || self.board.sacked_out >= self.recovery.reordering)
        {
            return 0;
        }
        let quarter = self.rtt.min_us() / 4;
        quarter.saturating_mul(u32::from(self.rack.steps)).min(self.rtt.srtt_us())
    }

    /// D-SACKs widen the reordering window, once a round trip; undisturbed recoveries narrow it.
    /// `newest_us` is when the newest segment that was delivered had left: without one the matter
    /// waits.
    #[inline]
    pub(super) fn adapt_reordering_window(&mut self, newest_us: Option<u32>, now: &Now) {
        let Some(newest_us) = newest_us else { return };
        let seen = core::mem::take(&mut self.rack.duplicate_seen);
        if seen && self.rack.leaves_round(newest_us, now) {
            self.rack.steps = self.rack.steps.saturating_add(1);
            self.rack.widened_us = now.time.0 / 1_000;
            self.rack.persist = PERSIST;
        } else if self.rack.persist == 0 {
            self.rack.steps = 1;
        }
    }

    /// A D-SACK has shown that recovery was needless.
    pub(super) fn extend_reordering_memory(&mut self) {
        self.rack.persist = (self.rack.persist + 1).min(PERSIST);
    }

    /// True if `record` was sent recently enough that it may still arrive.
    pub(super) fn may_still_arrive(&self, record: &Record, now: &Now) -> bool {
        self.rack.remaining_us(record, 0, now) > 0
    }

    /// Looks for losses if there is news; starts the reordering timer if some need more time.
    /// True if it did.
    pub(super) fn detect_losses(&mut self, now: &Now) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let wait_us = self.mark_overdue(now);
        if wait_us > 0 {
            self.start_reordering_timer(wait_us, now);
        }
        wait_us > 0
    }

    /// Marks what is overdue; returns in how many µs the last candidate will be, zero if none.
    pub(super) fn mark_overdue(&mut self, now: &Now) -> u32 {
        let reordering_us = self.reordering_window_us();
        self.mark_overdue_originals(reordering_us, now)
            .max(self.mark_overdue_resent(reordering_us, now))
    }

    /// Among the segments that were sent once.
    fn mark_overdue_originals(&mut self, reordering_us: u32, now: &Now) -> u32 {
        let skip = flag::SACKED | flag::LOST | flag::RESENT | flag::EVER_RESENT;
        let mut wait_us = 0;
        let mut id = self.board.oldest_original;
        while self.board.holds(id) {
            let record = *self.board.get(id);
            if !record.has(skip) && !record.judged {
                let rack = &self.rack;
                if !Rack::sent_after(rack.sent_us, rack.end, record.sent_us, record.end()) {
                    break;
                }
                let remaining = rack.remaining_us(&record, reordering_us, now);
                if remaining > 0 {
                    wait_us = wait_us.max(remaining as u32);
                } else {
                    self.judge_lost(id);
                }
            }
            id = id.wrapping_add(1);
            if wait_us == 0 {
                self.board.oldest_original = id;
            }
        }
        wait_us
    }

    /// Among retransmissions.
    fn mark_overdue_resent(&mut self, reordering_us: u32, now: &Now) -> u32 {
        let mut wait_us = 0;
        let mut at = 0;
        while let Some(&(id, sent_us)) = self.board.resent.get(at) {
            let record = *self.board.get(id);
            let stale = !self.board.holds(id)
                || record.sent_us != sent_us
                || record.has(flag::SACKED)
                || record.flags & (flag::LOST | flag::RESENT) == flag::LOST;
            if !stale {
                let rack = &self.rack;
                if !Rack::sent_after(rack.sent_us, rack.end, record.sent_us, record.end()) {
                    break;
                }
                let remaining = rack.remaining_us(&record, reordering_us, now);
                if remaining > 0 {
                    wait_us = wait_us.max(remaining as u32);
                    at += 1;
                    continue;
                }
                self.judge_lost(id);
            }
            if at == 0 {
                self.board.resent.pop_front();
            } else {
                at += 1;
            }
        }
        wait_us
    }

    /// RACK's verdict on a segment. If it is taken back, nothing but the timeout or an
    /// acknowledgement tells of the segment any more, until it is sent again (Linux).
    fn judge_lost(&mut self, id: u32) {
        self.board.get_mut(id).judged = true;
        self.mark_lost(id);
    }

    /// Takes a segment for lost and counts it.
    pub(super) fn mark_lost(&mut self, id: u32) {
        if self.board.mark_lost(id) {
            self.window.lost = self.window.lost.wrapping_add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use simnel_core::time::Time;

    fn at(us: u64) -> Now {
        Now::new(Time(us * 1_000))
    }

    fn record(seq: u64, sent_us: u32, flags: u8) -> Record {
        Record { seq, sent_us, len: 100, flags, ..Record::default() }
    }

    /// Ten segments, sent a ms apart from 1 ms on; least and smoothed RTT of 40 ms.
    fn sender() -> Sender {
        let mut sender = Sender::new(&Config::default());
        for n in 0..10 {
            sender.board.push(record(1 + 100 * n, 1_000 + 1_000 * n as u32, 0));
        }
        (sender.window.una, sender.window.nxt) = (1, 1_001);
        sender.rtt.update(40_000, 1, 1_001);
        sender.rtt.update_min(&at(0), 40_000);
        sender
    }

    fn lost(sender: &Sender) -> std::vec::Vec<u32> {
        (0..10).filter(|id| sender.board.get(*id).has(flag::LOST)).collect()
    }

    /// RFC 8985, section 6.2, step 2: the newest is the latest sent, by time and then by number. A
    /// retransmission that seems answered sooner than any RTT does not count: the original was
    /// answered.
    #[test]
    fn the_newest_arrival_leads() {
        let mut rack = Rack::default();
        let mut advance = |seq, sent_us, flags, us| {
            rack.advanced = false;
            rack.advance(&record(seq, sent_us, flags), 40_000, &at(us));
            (rack.sent_us, rack.end, rack.rtt_us, rack.advanced)
        };
        assert_eq!(advance(101, 5_000, 0, 50_000), (5_000, 201, 45_000, true));
        assert_eq!(advance(1, 5_000, 0, 50_001), (5_000, 201, 45_001, true));
        assert_eq!(advance(201, 5_000, 0, 50_002), (5_000, 301, 45_002, true));
        assert_eq!(advance(901, 4_999, 0, 50_003), (5_000, 301, 45_004, true));
        assert_eq!(advance(1, 20_000, flag::EVER_RESENT, 59_999), (5_000, 301, 45_004, false));
        assert_eq!(advance(1, 20_000, flag::RESENT, 60_000), (20_000, 101, 40_000, true));
        assert_eq!(advance(301, 30_000, 0, 60_001), (30_000, 401, 30_001, true));
    }

    /// Step 4: zero in recovery or after three SACKs while no reordering was seen. Else a quarter
    /// of the least RTT for each step, the smoothed RTT at most.
    #[test]
    fn the_reordering_window_is_a_quarter_of_the_least_rtt() {
        let window = |seen, phase, sacked, steps| {
            let mut sender = sender();
            sender.recovery.reordering_seen = seen;
            sender.window.phase = phase;
            sender.board.sacked_out = sacked;
            sender.rack.steps = steps;
            sender.reordering_window_us()
        };
        assert_eq!(window(false, Phase::Open, 2, 1), 10_000);
        assert_eq!(window(false, Phase::Open, 3, 1), 0);
        assert_eq!(window(false, Phase::Cwr, 0, 1), 10_000);
        assert_eq!(window(false, Phase::Recovery, 0, 1), 0);
        assert_eq!(window(false, Phase::Loss, 0, 1), 0);
        assert_eq!(window(true, Phase::Recovery, 9, 1), 10_000);
        assert_eq!(window(true, Phase::Recovery, 9, 3), 30_000);
        assert_eq!(window(true, Phase::Recovery, 9, 200), 40_000);
    }

    /// One step more for each round trip with D-SACKs, kept for 16 recoveries. A round ends when
    /// something is delivered that left after the last step (Linux's `tcp_rack_update_reo_wnd`).
    #[test]
    fn duplicates_widen_the_window_once_a_round_trip() {
        let mut sender = sender();
        let mut adapt = |seen, newest_us, us| {
            sender.rack.duplicate_seen |= seen;
            sender.adapt_reordering_window(newest_us, &at(us));
            (sender.rack.steps, sender.rack.persist, sender.rack.duplicate_seen)
        };
        assert_eq!(adapt(true, None, 40_000), (1, 0, true));
        assert_eq!(adapt(false, Some(1_000), 41_000), (2, 16, false));
        assert_eq!(adapt(true, Some(40_999), 80_000), (2, 16, false));
        assert_eq!(adapt(true, Some(41_000), 81_000), (3, 16, false));
        assert_eq!(adapt(false, Some(90_000), 130_000), (3, 16, false));
        sender.rack.persist = 0;
        sender.adapt_reordering_window(None, &at(140_000));
        assert_eq!(sender.rack.steps, 3);
        sender.adapt_reordering_window(Some(100_000), &at(140_000));
        assert_eq!(sender.rack.steps, 1);
        sender.extend_reordering_memory();
        assert_eq!(sender.rack.persist, 1);
        (0..20).for_each(|_| sender.extend_reordering_memory());
        assert_eq!(sender.rack.persist, PERSIST);
    }

    /// Step 5: what was sent before the newest arrival is lost an RTT and the window after it left;
    /// the rest is waited for.
    #[test]
    fn what_is_overdue_is_lost_and_the_rest_is_waited_for() {
        let mut sender = sender();
        // The seventh, sent at 7 ms, arrives at 47 ms.
        let seventh = *sender.board.get(6);
        sender.board.get_mut(6).flags |= flag::SACKED;
        sender.board.sacked_out = 1;
        assert!(!sender.detect_losses(&at(47_000)));
        sender.rack.advance(&seventh, 40_000, &at(47_000));
        // 40 ms and a window of 10: nothing yet; the sixth is due in 9 ms.
        assert_eq!(sender.mark_overdue(&at(47_000)), 9_000);
        assert!(lost(&sender).is_empty());
        assert_eq!(sender.mark_overdue(&at(50_999)), 5_001);
        assert!(lost(&sender).is_empty());
        assert_eq!(sender.mark_overdue(&at(51_000)), 5_000);
        assert_eq!(lost(&sender), [0]);
        assert_eq!(sender.window.lost, 1);
        assert_eq!(sender.mark_overdue(&at(53_500)), 2_500);
        assert_eq!(lost(&sender), [0, 1, 2]);
        assert_eq!(sender.mark_overdue(&at(56_000)), 0);
        // The seventh has arrived, and later ones were sent after it.
        assert_eq!(lost(&sender), [0, 1, 2, 3, 4, 5]);
        assert_eq!(sender.board.oldest_original, 7);
        // Once sent again they are judged by that.
        sender.board.note_resent(0, 57_000, true);
        assert_eq!(sender.mark_overdue(&at(200_000)), 0);
        assert!(sender.board.get(0).has(flag::RESENT));
        let mut newest = record(1_001, 60_000, 0);
        newest.len = 1;
        sender.rack.advance(&newest, 40_000, &at(101_000));
        assert_eq!(sender.mark_overdue(&at(101_000)), 7_000);
        assert!(sender.board.get(0).has(flag::RESENT));
        assert_eq!(sender.mark_overdue(&at(108_000)), 0);
        assert!(!sender.board.get(0).has(flag::RESENT) && sender.board.get(0).has(flag::LOST));
    }

    #[test]
    fn news_is_looked_at_once_and_the_timer_covers_the_rest() {
        let mut sender = sender();
        let seventh = *sender.board.get(6);
        sender.rack.advance(&seventh, 40_000, &at(47_000));
        assert!(sender.detect_losses(&at(47_000)));
        assert!(!sender.rack.advanced && !sender.detect_losses(&at(47_000)));
        // With all of it lost there is nothing to wait for.
        let mut sender = self::sender();
        sender.rack.advance(&seventh, 40_000, &at(47_000));
        sender.window.phase = Phase::Recovery;
        assert!(!sender.detect_losses(&at(47_000)));
        assert_eq!(lost(&sender), [0, 1, 2, 3, 4, 5]);
        assert!(!sender.reordering_timer_runs());
        assert!(sender.may_still_arrive(sender.board.get(8), &at(48_999)));
        assert!(!sender.may_still_arrive(sender.board.get(8), &at(49_000)));
    }

    /// Linux's `tcp_rack_detect_loss` takes segments that it marks lost off its list. If the
    /// reduction is undone, they are not judged again before they are retransmitted. Segments that
    /// a timeout marked lost are judged again.
    #[test]
    fn a_verdict_that_was_taken_back_is_not_repeated() {
        for (by_timeout, left) in [(false, std::vec![]), (true, std::vec![0, 1, 2, 3, 4, 5])] {
            let mut sender = sender();
            sender.window.phase = Phase::Recovery;
            if by_timeout {
                (0..6).for_each(|id| sender.mark_lost(id));
            }
            let seventh = *sender.board.get(6);
            sender.rack.advance(&seventh, 40_000, &at(47_000));
            assert_eq!(sender.mark_overdue(&at(100_000)), 0);
            assert_eq!(lost(&sender), [0, 1, 2, 3, 4, 5]);
            sender.board.unmark_all_lost();
            assert!(lost(&sender).is_empty());
            assert_eq!(sender.mark_overdue(&at(100_000)), 0);
            assert_eq!(lost(&sender), left);
        }
        let mut sender = sender();
        sender.board.get_mut(3).judged = true;
        sender.board.note_resent(3, 57_000, true);
        sender.rack.advance(&record(1_001, 60_000, 0), 40_000, &at(108_000));
        sender.mark_overdue(&at(120_000));
        assert_eq!(lost(&sender).len(), 10);
    }

    /// RFC 8985, section 7.3: a probe is a retransmission, judged by its own sending time. First
    /// transmissions before and after it are judged by theirs.
    #[test]
    fn a_probe_does_not_hide_other_losses() {
        let mut sender = sender();
        sender.window.phase = Phase::Recovery;
        sender.board.note_resent(2, 90_000, false);
        let seventh = *sender.board.get(6);
        sender.rack.advance(&seventh, 40_000, &at(47_000));
        assert_eq!(sender.mark_overdue(&at(100_000)), 0);
        assert_eq!(lost(&sender), [0, 1, 3, 4, 5]);
    }

    #[test]
    fn a_repetition_that_is_waited_for_stays_on_the_list() {
        let mut sender = sender();
        for (id, us) in [(1, 57_000), (2, 58_000)] {
            sender.mark_lost(id);
            sender.board.note_resent(id, us, true);
        }
        // The second one has arrived.
        sender.board.get_mut(2).flags |= flag::SACKED;
        sender.board.oldest_original = 10;
        sender.recovery.reordering_seen = true;
        sender.rack.advance(&record(1_001, 60_000, 0), 40_000, &at(100_000));
        assert_eq!(sender.mark_overdue(&at(100_000)), 7_000);
        assert!(sender.board.get(1).has(flag::RESENT));
        assert_eq!(sender.mark_overdue(&at(107_000)), 0);
        assert!(!sender.board.get(1).has(flag::RESENT));
    }
}
