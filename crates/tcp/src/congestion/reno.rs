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
