//! Detection of the moment at which slow start has filled the path: HyStart, and HyStart++.
//!
//! HyStart (Ha and Rhee, 2011; as Linux's CUBIC has it) watches one round trip at a time, from 16
//! segments on. *Ack train*: ACKs follow each other within 2 ms for longer than half the least RTT.
//! Then a whole pipe of segments is on its way back. *Delay*: the least RTT of a round's samples
//! (eight at least) exceeds the least ever by an eighth (4..16 ms). Either ends slow start for
//! good.
//!
//! HyStart++ (RFC 9406) uses delay alone, and does not trust it at once. Growth continues at a
//! quarter for up to five rounds (conservative slow start), and resumes if the RTT falls again.

use super::Window;
use crate::clock::Now;
use crate::config::SlowStartExit;

/// Window below which neither looks (Linux's `hystart_low_window`; RFC 9406 has no such bound).
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
/// Segments that an ACK may add where the sender does not pace (RFC 9406, `L`).
const MOST_PER_ACK: u32 = 8;
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

    /// Starts over, as after a timeout. HyStart++ is for a connection's first slow start only
    /// (RFC 9406, section 4.3).
    pub(crate) fn restart(&mut self, window: &Window, now: &Now) {
        *self = HyStart::new(self.kind);
        self.congested();
        self.start_round(window, now);
    }

    /// Congestion was seen, which ends the first slow start.
    pub(crate) fn congested(&mut self) {
        self.found |= self.kind == SlowStartExit::HyStartPlusPlus;
    }

    fn start_round(&mut self, window: &Window, now: &Now) {
        self.round_start_us = now.us;
        self.last_ack_us = now.us;
        self.round_end = window.nxt;
        self.last_round_rtt_us = self.round_rtt_us;
        self.round_rtt_us = u32::MAX;
        self.samples = 0;
    }

    /// Of `acked` segments, how many slow start may count now (RFC 9406, section 4.2).
    #[inline]
    pub(crate) fn allowance(&mut self, acked: u32, paced: bool) -> u32 {
        if self.found || self.kind != SlowStartExit::HyStartPlusPlus {
            return acked;
        }
        let acked = if paced { acked } else { acked.min(MOST_PER_ACK) };
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
        // flight. Linux's ends with what was sent after its end.
        let new_round = match self.kind {
            SlowStartExit::HyStartPlusPlus => window.una >= self.round_end,
            _ => window.una > self.round_end,
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    struct Start {
        hystart: HyStart,
        window: Window,
        us: u32,
        least_us: u32,
    }

    impl Start {
        fn new(kind: SlowStartExit) -> Start {
            let mut window = crate::sender::initial_window(&crate::Config::default());
            (window.cwnd, window.una, window.nxt) = (64, 1, 101);
            Start { hystart: HyStart::new(kind), window, us: 0, least_us: u32::MAX }
        }

        /// A round trip with `samples` of `rtt_us`, `gap_us` apart. True if slow start has ended.
        fn round(&mut self, samples: u32, rtt_us: u32, gap_us: u32) -> bool {
            self.us += 1_000_000;
            self.least_us = self.least_us.min(rtt_us);
            (self.window.una, self.window.nxt) = (self.window.nxt + 1, self.window.nxt + 101);
            for _ in 0..samples {
                let now = Now { us: self.us, ms: self.us / 1_000, ..Now::default() };
                self.hystart.update(&mut self.window, rtt_us, self.least_us, &now);
                self.us += gap_us;
            }
            self.window.ssthresh == self.window.cwnd
        }
    }

    /// RFC 9406, section 4.2: a rise by an eighth of the last round's least RTT, within 4 and 16
    /// ms, after eight samples. It is not looked for below 16 segments, a bound of Linux's.
    #[test]
    fn a_risen_rtt_begins_conservative_slow_start() {
        for (rtt_us, rise_us) in [(40_000, 5_000), (16_000, 4_000), (400_000, 16_000)] {
            for (risen_us, samples, cwnd, begins) in [
                (rise_us, 8, 64, true),
                (rise_us + 1, 20, 16, true),
                (rise_us - 1, 20, 64, false),
                (rise_us, 7, 64, false),
                (rise_us, 20, 15, false),
            ] {
                let mut start = Start::new(SlowStartExit::HyStartPlusPlus);
                start.round(8, rtt_us, 3_000);
                start.window.cwnd = cwnd;
                start.round(samples, rtt_us + risen_us, 3_000);
                assert_eq!(start.hystart.css_rounds > 0, begins, "{rtt_us} {risen_us} {samples}");
                // A quarter of what is acknowledged, without a rest.
                let counted = [10, 2, 3, 1].map(|acked| start.hystart.allowance(acked, true));
                assert_eq!(counted, if begins { [2, 1, 0, 1] } else { [10, 2, 3, 1] });
            }
        }
    }

    #[test]
    fn conservative_slow_start_ends_after_five_rounds_or_when_the_rtt_falls() {
        let mut start = Start::new(SlowStartExit::HyStartPlusPlus);
        start.round(8, 40_000, 3_000);
        start.round(8, 50_000, 3_000);
        for _ in 0..4 {
            assert!(!start.round(8, 50_000, 3_000));
        }
        assert!(start.round(1, 50_000, 3_000));

        let mut start = Start::new(SlowStartExit::HyStartPlusPlus);
        start.round(8, 40_000, 3_000);
        start.round(8, 50_000, 3_000);
        start.round(7, 49_999, 3_000);
        assert!(start.hystart.css_rounds > 0);
        start.round(8, 49_999, 3_000);
        assert_eq!(start.hystart.allowance(10, true), 10);
        // And may begin again.
        start.round(8, 60_000, 3_000);
        assert_eq!(start.hystart.css_rounds, CSS_ROUNDS);
    }

    /// Linux: more than the least RTT and an eighth of it, within 4 and 16 ms; eight samples first.
    #[test]
    fn hystart_ends_slow_start_when_the_delay_rises() {
        for (rtt_us, rise_us) in [(40_000, 5_000), (16_000, 4_000), (400_000, 16_000)] {
            for (risen_us, samples, ends) in
                [(rise_us + 1, 9, true), (rise_us, 30, false), (rise_us + 1, 8, false)]
            {
                let mut start = Start::new(SlowStartExit::HyStart);
                assert!(!start.round(30, rtt_us, 3_000));
                assert_eq!(
                    start.round(samples, rtt_us + risen_us, 3_000),
                    ends,
                    "{rtt_us} {risen_us}"
                );
            }
        }
        // One sample of a round without a queue is enough to go on.
        let mut start = Start::new(SlowStartExit::HyStart);
        start.round(1, 40_000, 3_000);
        (start.us, start.window.una) = (start.us + 1, start.window.nxt);
        assert!(!start.round(1, 40_000, 3_000));
        let now = Now { us: start.us + 3_000, ..Now::default() };
        start.window.una = start.hystart.round_end;
        for _ in 0..30 {
            start.hystart.update(&mut start.window, 90_000, 40_000, &now);
        }
        assert!(!start.hystart.found);
    }

    /// Linux: ACKs at most 2 ms apart for longer than half the least RTT; paced, the whole and what
    /// four super-packets take.
    #[test]
    fn hystart_ends_slow_start_when_acks_fill_the_round_trip() {
        assert!(Start::new(SlowStartExit::HyStart).round(12, 40_000, 2_000));
        assert!(!Start::new(SlowStartExit::HyStart).round(11, 40_000, 2_000));
        assert!(!Start::new(SlowStartExit::HyStart).round(40, 40_000, 2_001));
        let paced = |samples, rate| {
            let mut start = Start::new(SlowStartExit::HyStart);
            (start.window.paced, start.window.pacing_rate) = (true, rate);
            start.round(samples, 40_000, 1_000)
        };
        // 4 x 65536 bytes take 0.5 ms at 524 MB/s; a ms counts at most.
        for (rate, samples) in [(524_288_000, 42), (1, 43), (1 << 60, 42)] {
            assert!(paced(samples, rate) && !paced(samples - 1, rate), "{rate}");
        }
        assert!(!Start::new(SlowStartExit::LossOnly).round(100, 40_000, 1_000));
        let mut small = Start::new(SlowStartExit::HyStart);
        small.window.cwnd = 15;
        assert!(!small.round(100, 40_000, 1_000));
    }

    /// RFC 9406, section 4.2: L is 8 where packets are not paced.
    #[test]
    fn an_ack_of_many_segments_counts_for_eight() {
        let mut start = Start::new(SlowStartExit::HyStartPlusPlus);
        let counted = |start: &mut Start, paced| start.hystart.allowance(40, paced);
        assert_eq!((counted(&mut start, false), counted(&mut start, true)), (8, 40));
        start.round(8, 40_000, 3_000);
        start.round(8, 50_000, 3_000);
        assert_eq!((counted(&mut start, false), counted(&mut start, true)), (2, 10));
        start.hystart.congested();
        assert_eq!(counted(&mut start, false), 40);
        assert_eq!(counted(&mut Start::new(SlowStartExit::HyStart), false), 40);
    }

    /// RFC 9406, section 4.3: the first slow start, that which ends without a loss.
    #[test]
    fn later_slow_starts_are_plain() {
        type End = fn(&mut Start);
        let timeout: End = |start| start.hystart.restart(&start.window, &Now::default());
        for end in [timeout, |start| start.hystart.congested()] {
            let mut start = Start::new(SlowStartExit::HyStartPlusPlus);
            end(&mut start);
            start.round(8, 40_000, 3_000);
            start.round(8, 80_000, 3_000);
            assert_eq!(start.hystart.css_rounds, 0);
        }
    }

    /// RFC 9406, section 4.2: when the end is acknowledged; Linux waits for one segment more.
    #[test]
    fn a_round_ends_with_its_end() {
        for (kind, begun) in [(SlowStartExit::HyStartPlusPlus, 1), (SlowStartExit::HyStart, 2)] {
            let mut start = Start::new(kind);
            start.round(1, 40_000, 0);
            start.window.una = start.hystart.round_end;
            let now = Now { us: start.us, ..Now::default() };
            start.hystart.update(&mut start.window, 40_000, 40_000, &now);
            assert_eq!(start.hystart.samples, begun);
        }
    }

    #[test]
    fn a_timeout_starts_over() {
        let mut start = Start::new(SlowStartExit::HyStart);
        start.round(12, 40_000, 2_000);
        assert!(start.hystart.found);
        let now = Now { us: 7, ..Now::default() };
        start.hystart.restart(&start.window, &now);
        let HyStart { found, round_start_us, last_ack_us, round_end, .. } = start.hystart;
        assert_eq!(
            (found, round_start_us, last_ack_us, round_end),
            (false, 7, 7, start.window.nxt)
        );
    }
}
