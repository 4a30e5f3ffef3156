//! New Reno: one segment a round trip more, half the window upon a loss (RFC 5681, section 3.1).
//!
//! Counts acknowledged segments, not ACKs (RFC 3465), so that delayed ACKs do not halve its growth.

use super::{Control, Window};
use crate::clock::Now;

/// The control; all it needs is in the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reno;

impl Control for Reno {
    fn reduce(&mut self, window: &Window, _now: &Now) -> u32 {
        (window.cwnd / 2).max(2)
    }

    fn grow(&mut self, window: &mut Window, acked: u32, _now: &Now) {
        grow(window, acked);
    }
}

/// Slow start, then one segment a window.
pub(super) fn grow(window: &mut Window, acked: u32) {
    if !window.cwnd_limited {
        return;
    }
    let mut left = acked;
    if window.in_slow_start() {
        left = window.slow_start(acked);
        if left == 0 {
            return;
        }
    }
    window.increase(window.cwnd, left);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 5681, section 3.1, counted in segments: each one in slow start, one a window after it.
    #[test]
    fn one_a_segment_then_one_a_window() {
        let mut window = crate::sender::initial_window(&crate::Config::default());
        (window.cwnd, window.ssthresh) = (10, 20);
        let mut grown = |acked, limited| {
            window.cwnd_limited = limited;
            grow(&mut window, acked);
            (window.cwnd, window.count)
        };
        assert_eq!(grown(5, false), (10, 0));
        assert_eq!(grown(5, true), (15, 0));
        assert_eq!(grown(5, true), (20, 0));
        assert_eq!(grown(19, true), (20, 19));
        assert_eq!(grown(1, true), (21, 0));
        // Two windows' worth in one ACK are two segments.
        assert_eq!(grown(43, true), (23, 1));
        assert_eq!(grown(22, true), (24, 0));
    }

    /// Segments above the threshold count for the window's growth.
    #[test]
    fn the_threshold_divides_an_acknowledgement() {
        let mut window = crate::sender::initial_window(&crate::Config::default());
        (window.cwnd, window.ssthresh, window.cwnd_limited) = (18, 20, true);
        grow(&mut window, 7);
        assert_eq!((window.cwnd, window.count), (20, 5));
        // A count from a larger window is worth one segment, and no more.
        (window.cwnd, window.count) = (4, 19);
        window.ssthresh = 4;
        grow(&mut window, 1);
        assert_eq!((window.cwnd, window.count), (5, 1));
    }

    #[test]
    fn a_loss_halves_down_to_two() {
        let mut window = crate::sender::initial_window(&crate::Config::default());
        for (cwnd, kept) in [(100, 50), (5, 2), (2, 2), (1, 2)] {
            window.cwnd = cwnd;
            assert_eq!(Reno.reduce(&window, &Now::default()), kept);
        }
        (window.cwnd, window.prior_cwnd) = (10, 20);
        assert_eq!(Reno.undo(&window), 20);
        window.cwnd = 30;
        assert_eq!(Reno.undo(&window), 30);
    }

    /// Linux's `tcp_update_pacing_rate`: twice a window a round trip in the first half of slow
    /// start, then 1.2 times. If more than a window is in flight, that counts instead.
    #[test]
    fn pacing_is_a_little_above_the_window() {
        let mut window = crate::sender::initial_window(&crate::Config::default());
        assert_eq!(window.natural_rate(), 0);
        (window.mss, window.srtt8_us, window.cwnd, window.ssthresh) = (1_000, 8 * 100_000, 10, 22);
        assert_eq!(window.natural_rate(), 200_000);
        window.packets_out = 20;
        assert_eq!(window.natural_rate(), 400_000);
        (window.cwnd, window.packets_out) = (11, 0);
        assert_eq!(window.natural_rate(), 132_000);
        assert_eq!(window.current_rate(), 132_000);
        window.pacing_rate = 7;
        assert_eq!(window.current_rate(), 7);
    }
}
