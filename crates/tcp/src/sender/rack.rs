//! RACK: a segment is lost if one sent after it has arrived, and time has passed (RFC 8985).
//!
//! The time is the reordering window: zero in recovery and after three SACKs as long as no
//! reordering was ever seen, else a quarter of the least RTT, more after D-SACKs, at most the
//! smoothed RTT. Candidates come in the order of their last transmission from two queues: first
//! transmissions, which are in sequence order, and retransmissions. Both are only ever read from
//! the front, so detection costs the number of losses, not the size of the window.

use super::scoreboard::{flag, Record};
use super::{Sender, REORDERING};
use crate::clock::{before, Now};
use crate::congestion::Phase;

/// Recoveries for which a widened reordering window lasts (RFC 8985, section 6.2, step 4).
const PERSIST: u8 = 16;

/// The newest segment known to have arrived, and the reordering window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    /// When it was last sent.
    sent_us: u32,
    /// Where it ends: breaks ties between segments of the same microsecond.
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
    /// The window may widen again when this is acknowledged.
    round_end: u64,
    any: bool,
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
            round_end: 0,
            any: false,
        }
    }
}

impl Rack {
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
        if !self.any || Rack::sent_after(record.sent_us, record.end(), self.sent_us, self.end) {
            self.any = true;
            self.sent_us = record.sent_us;
            self.end = record.end();
        }
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
    #[inline]
    pub(super) fn adapt_reordering_window(&mut self) {
        if self.rack.duplicate_seen {
            self.rack.duplicate_seen = false;
            if self.window.una >= self.rack.round_end {
                self.rack.steps = self.rack.steps.saturating_add(1);
                self.rack.round_end = self.window.nxt;
                self.rack.persist = PERSIST;
            }
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
            if !record.has(skip) {
                let rack = &self.rack;
                if !Rack::sent_after(rack.sent_us, rack.end, record.sent_us, record.end()) {
                    break;
                }
                let remaining = rack.remaining_us(&record, reordering_us, now);
                if remaining > 0 {
                    wait_us = wait_us.max(remaining as u32);
                } else {
                    self.mark_lost(id);
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
                self.mark_lost(id);
            }
            if at == 0 {
                self.board.resent.pop_front();
            } else {
                at += 1;
            }
        }
        wait_us
    }

    /// Takes a segment for lost and counts it.
    pub(super) fn mark_lost(&mut self, id: u32) {
        if self.board.mark_lost(id) {
            self.window.lost = self.window.lost.wrapping_add(1);
        }
    }

    /// Without SACK, three duplicate ACKs stand for a loss (RFC 6582).
    pub(super) fn duplicates_prove_loss(&self) -> bool {
        self.recovery.duplicates >= REORDERING
    }
}
