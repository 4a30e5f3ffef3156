//! Round-trip time and retransmission timeout (RFC 6298, as Linux computes them).
//!
//! Smoothed RTT in units of 1/8 µs, deviation as four times its mean, in µs. Linux differs from the
//! RFC in two ways that matter: the deviation shrinks slowly when RTTs fall (a finer gain), and the
//! term that is added to the smoothed RTT is the *largest* deviation of the last round trip, never
//! below the least timeout. So the timeout is at least the RTT plus 200 ms, not 200 ms.

use crate::clock::Now;
use crate::windowed::Windowed;

/// Window of the minimum-RTT filter in milliseconds: five minutes (Linux's `tcp_min_rtt_wlen`).
const MIN_RTT_WINDOW_MS: u32 = 300_000;

/// The estimator.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoundTrip {
    /// Smoothed RTT, in 1/8 µs; zero until there is a sample.
    pub srtt8_us: u32,
    /// Four times the smoothed mean deviation, in µs.
    deviation4_us: u32,
    /// Largest deviation of the present round trip.
    largest_us: u32,
    /// Variance term added to the smoothed RTT.
    variation_us: u32,
    /// The present round trip ends when this is acknowledged.
    round_end: u64,
    /// Least addition: `Config::min_rto`.
    floor_us: u32,
    min: Windowed<false>,
    measured: bool,
}

impl RoundTrip {
    pub(crate) fn new(floor_us: u32) -> RoundTrip {
        RoundTrip { floor_us, ..RoundTrip::default() }
    }

    /// Smoothed RTT in microseconds.
    #[inline]
    pub(crate) fn srtt_us(&self) -> u32 {
        self.srtt8_us >> 3
    }

    /// Least RTT in microseconds; `u32::MAX` until there is one.
    #[inline]
    pub(crate) fn min_us(&self) -> u32 {
        if self.measured {
            self.min.value()
        } else {
            u32::MAX
        }
    }

    /// Least addition to the smoothed RTT, in microseconds.
    pub(crate) fn floor_us(&self) -> u32 {
        self.floor_us
    }

    /// Takes in a sample for the minimum.
    #[inline]
    pub(crate) fn update_min(&mut self, now: &Now, sample_us: u32) {
        let sample_us = sample_us.max(1);
        if self.measured {
            self.min.update(MIN_RTT_WINDOW_MS, now.ms, sample_us);
        } else {
            self.min.reset(now.ms, sample_us);
            self.measured = true;
        }
    }

    /// Takes in a sample for the timeout. `una` and `nxt` bound what is in flight.
    #[inline]
    pub(crate) fn update(&mut self, sample_us: u32, una: u64, nxt: u64) {
        if self.srtt8_us == 0 {
            self.srtt8_us = (sample_us << 3).max(1);
            self.deviation4_us = sample_us << 1;
            self.variation_us = self.deviation4_us.max(self.floor_us);
            self.largest_us = self.variation_us;
            self.round_end = nxt;
            return;
        }
        let error = sample_us as i32 - (self.srtt8_us >> 3) as i32;
        self.srtt8_us = self.srtt8_us.saturating_add_signed(error).max(1);
        let mut change = error.abs() - (self.deviation4_us >> 2) as i32;
        if error < 0 && change > 0 {
            // A falling RTT is no reason to expect a wider spread.
            change >>= 3;
        }
        self.deviation4_us = self.deviation4_us.saturating_add_signed(change);
        if self.deviation4_us > self.largest_us {
            self.largest_us = self.deviation4_us;
            self.variation_us = self.variation_us.max(self.largest_us);
        }
        if una > self.round_end {
            if self.largest_us < self.variation_us {
                self.variation_us -= (self.variation_us - self.largest_us) >> 2;
            }
            self.round_end = nxt;
            self.largest_us = self.floor_us;
        }
    }

    /// The retransmission timeout without backoff, in microseconds.
    #[inline]
    pub(crate) fn timeout_us(&self) -> u32 {
        (self.srtt8_us >> 3) + self.variation_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_is_the_rtt_plus_at_least_the_floor() {
        let mut rtt = RoundTrip::new(200_000);
        rtt.update(50_000, 1, 100);
        assert_eq!(rtt.timeout_us(), 250_000);
        for round in 1..200 {
            rtt.update(50_000, round * 100 + 1, round * 100 + 100);
        }
        assert_eq!(rtt.timeout_us(), 250_000);
        rtt.update(1_050_000, 30_000, 30_100);
        // One error of a second: a quarter of it is deviation, which counts four times, and an
        // eighth is mean.
        assert!((1_150_000..1_200_000).contains(&rtt.timeout_us()), "{}", rtt.timeout_us());
    }

    #[test]
    fn falling_rtts_do_not_widen_the_timeout_much() {
        let mut rtt = RoundTrip::new(200_000);
        rtt.update(1_000_000, 1, 2);
        let before = rtt.timeout_us();
        rtt.update(100_000, 3, 4);
        assert!(rtt.timeout_us() < before);
    }
}
