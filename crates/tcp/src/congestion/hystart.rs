//! When slow start has filled the path: HyStart, and HyStart++.
//!
//! HyStart (Ha and Rhee, 2011; as Linux's CUBIC has it) watches one round trip at a time, from 16
//! segments on. *Ack train*: ACKs that follow each other within 2 ms for longer than half the
//! least RTT show that a whole pipe of segments is on its way back. *Delay*: the least RTT of a
//! round's samples (eight at least) exceeds the least ever by an eighth (4..16 ms). Either ends
//! slow start for good.
//!
//! HyStart++ (RFC 9406) uses delay alone, and does not trust it at once: growth continues at a
//! quarter for up to five rounds (conservative slow start), and resumes if the RTT falls again.

use super::Window;
use crate::clock::Now;
use crate::config::SlowStartExit;

/// Window below which neither looks (Linux's `hystart_low_window`).
const LOW_WINDOW: u32 = 16;
/// Samples a round before its least counts (both).
const MIN_SAMPLES: u32 = 8;
/// ACKs further apart than this do not belong to one train (Linux's `hystart_ack_delta_us`).
const TRAIN_GAP_US: u32 = 2_000;
/// Largest super-packet of the sending device, in bytes.
const BURST_BYTES: u64 = 65_536;
/// Bounds of the delay that counts as increase.
const DELAY_MIN_US: u32 = 4_000;
/// See [`DELAY_MIN_US`].
const DELAY_MAX_US: u32 = 16_000;
/// Growth divisor in conservative slow start (RFC 9406, `CSS_GROWTH_DIVISOR`).
const CSS_DIVISOR: u32 = 4;
/// Rounds of conservative slow start (RFC 9406, `CSS_ROUNDS`).
const CSS_ROUNDS: u32 = 5;

/// Detector of the end of slow start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HyStart {
    kind: SlowStartExit,
    /// Slow start's end was found.
    found: bool,
    /// The present round began then.
    round_start_us: u32,
    /// The round ends when this is acknowledged.
    round_end: u64,
    /// Last ACK of the train.
    last_ack_us: u32,
    /// Least RTT of the round.
    round_rtt_us: u32,
    /// Least RTT of the round before (HyStart++).
    last_round_rtt_us: u32,
    samples: u32,
    /// Rounds left of conservative slow start; zero outside it.
    css_rounds: u32,
    /// Least RTT when conservative slow start began.
    css_baseline_us: u32,
    /// Acknowledged segments that have not yet made the window grow there.
    css_count: u32,
}

impl HyStart {
    pub(crate) fn new(kind: SlowStartExit) -> HyStart {
        HyStart {
            kind,
            found: false,
            round_start_us: 0,
            round_end: 0,
            last_ack_us: 0,
            round_rtt_us: u32::MAX,
            last_round_rtt_us: u32::MAX,
            samples: 0,
            css_rounds: 0,
            css_baseline_us: u32::MAX,
            css_count: 0,
        }
    }

    /// Starts over, as after a timeout.
    pub(crate) fn restart(&mut self, window: &Window, now: &Now) {
        *self = HyStart::new(self.kind);
        self.start_round(window, now);
    }

    fn start_round(&mut self, window: &Window, now: &Now) {
        self.round_start_us = now.us;
        self.last_ack_us = now.us;
        self.round_end = window.nxt;
        self.last_round_rtt_us = self.round_rtt_us;
        self.round_rtt_us = u32::MAX;
        self.samples = 0;
    }

    /// Of `acked` segments, how many slow start may count now.
    #[inline]
    pub(crate) fn allowance(&mut self, acked: u32) -> u32 {
        if self.css_rounds == 0 {
            return acked;
        }
        self.css_count += acked;
        let allowed = self.css_count / CSS_DIVISOR;
        self.css_count %= CSS_DIVISOR;
        allowed
    }

    /// Takes in an RTT during slow start; sets the threshold to the window at its end.
    /// `least_us` is the least RTT of the connection.
    pub(crate) fn update(&mut self, window: &mut Window, rtt_us: u32, least_us: u32, now: &Now) {
        if self.found || self.kind == SlowStartExit::LossOnly {
            return;
        }
        // Rounds are counted from the first one, so that one never begins in the middle of a
        // flight.
        let new_round = window.una > self.round_end;
        if new_round {
            self.start_round(window, now);
        }
        if window.cwnd < LOW_WINDOW {
            return;
        }
        if self.kind == SlowStartExit::HyStartPlusPlus {
            self.update_plus_plus(window, rtt_us, new_round);
        } else if self.train_is_long(window, least_us, now) || self.delay_rose(rtt_us, least_us) {
            self.found = true;
            window.ssthresh = window.cwnd;
        }
    }

    fn train_is_long(&mut self, window: &Window, least_us: u32, now: &Now) -> bool {
        if now.us.wrapping_sub(self.last_ack_us) > TRAIN_GAP_US {
            return false;
        }
        self.last_ack_us = now.us;
        // Time that four super-packets take to leave lies in the train as well, a ms at most.
        let burst_us = match window.current_rate() {
            0 => 0,
            rate => (BURST_BYTES * 4_000_000 / rate).min(1_000) as u32,
        };
        let mut threshold = least_us + burst_us;
        if !window.paced {
            threshold /= 2;
        }
        now.us.wrapping_sub(self.round_start_us) > threshold
    }

    fn delay_rose(&mut self, rtt_us: u32, least_us: u32) -> bool {
        self.round_rtt_us = self.round_rtt_us.min(rtt_us);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
            return false;
        }
        self.round_rtt_us > least_us + (least_us / 8).clamp(DELAY_MIN_US, DELAY_MAX_US)
    }

    /// RFC 9406, section 4.2.
    fn update_plus_plus(&mut self, window: &mut Window, rtt_us: u32, new_round: bool) {
        self.round_rtt_us = self.round_rtt_us.min(rtt_us);
        self.samples += 1;
        if new_round && self.css_rounds > 0 {
            self.css_rounds -= 1;
            if self.css_rounds == 0 {
                self.found = true;
                window.ssthresh = window.cwnd;
                return;
            }
        }
        if self.samples < MIN_SAMPLES || self.last_round_rtt_us == u32::MAX {
            return;
        }
        if self.css_rounds > 0 {
            if self.round_rtt_us < self.css_baseline_us {
                self.css_rounds = 0;
                self.css_baseline_us = u32::MAX;
            }
            return;
        }
        let rise = (self.last_round_rtt_us / 8).clamp(DELAY_MIN_US, DELAY_MAX_US);
        if self.round_rtt_us >= self.last_round_rtt_us.saturating_add(rise) {
            self.css_baseline_us = self.round_rtt_us;
            self.css_rounds = CSS_ROUNDS;
            self.css_count = 0;
        }
    }
}
