//! Round-trip time and retransmission timeout (RFC 6298, as Linux computes them).
//!
//! Smoothed RTT in units of 1/8 µs, deviation as four times its mean, in µs. Linux differs from the
//! RFC in two ways that matter. A sample below the smoothed RTT widens the deviation at an eighth
//! of the usual gain. And the term that is added to the smoothed RTT follows the *largest*
//! deviation of a round trip, never below the least timeout. So the timeout is at least the RTT
//! plus 200 ms, not 200 ms.

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
        (self.srtt8_us >> 3).saturating_add(self.variation_us)
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

    /// RFC 6298, section 2: first R and R/2, then gains of 1/8 and 1/4 (four deviations count).
    #[test]
    fn gains_are_those_of_the_rfc() {
        let mut rtt = RoundTrip::new(0);
        rtt.update(80_000, 1, 10);
        assert_eq!(
            (rtt.srtt_us(), rtt.deviation4_us, rtt.timeout_us()),
            (80_000, 160_000, 240_000)
        );
        rtt.update(160_000, 2, 10);
        // 7/8 of 80 and 1/8 of 160; 3/4 of 40 and 1/4 of 80, times four.
        assert_eq!((rtt.srtt_us(), rtt.deviation4_us), (90_000, 200_000));
        assert_eq!(rtt.timeout_us(), 290_000);
        // Linux: an error downwards counts an eighth of what it would widen, and all it narrows.
        rtt.update(10_000, 3, 10);
        assert_eq!((rtt.srtt_us(), rtt.deviation4_us), (80_000, 200_000 + 30_000 / 8));
        rtt.update(80_000, 4, 10);
        assert_eq!((rtt.srtt_us(), rtt.deviation4_us), (80_000, 203_750 - 50_937));
    }

    /// Linux: the largest deviation of a round counts, and falls by a quarter of the way a round.
    #[test]
    fn the_variation_follows_the_largest_of_a_round() {
        let mut rtt = RoundTrip::new(200_000);
        rtt.update(100_000, 1, 10);
        assert_eq!(rtt.timeout_us(), 300_000);
        rtt.update(300_000, 2, 10);
        assert_eq!(rtt.timeout_us(), 125_000 + 350_000);
        // Within the round it does not fall.
        (0..20).for_each(|_| rtt.update(125_000, 10, 20));
        assert_eq!(rtt.variation_us, 350_000);
        rtt.update(125_000, 11, 20);
        assert_eq!((rtt.variation_us, rtt.largest_us), (350_000, 200_000));
        rtt.update(125_000, 20, 30);
        assert_eq!(rtt.variation_us, 350_000);
        rtt.update(125_000, 21, 30);
        assert_eq!(rtt.variation_us, 350_000 - 150_000 / 4);
    }

    /// Linux's `tcp_min_rtt_wlen`: five minutes.
    #[test]
    fn the_least_rtt_is_remembered_for_five_minutes() {
        let mut rtt = RoundTrip::new(200_000);
        assert_eq!((rtt.min_us(), rtt.floor_us()), (u32::MAX, 200_000));
        let at = |ms| Now { ms, ..Now::default() };
        rtt.update_min(&at(7), 50_000);
        assert_eq!(rtt.min_us(), 50_000);
        rtt.update_min(&at(300_007), 60_000);
        assert_eq!(rtt.min_us(), 50_000);
        rtt.update_min(&at(300_008), 60_000);
        assert_eq!(rtt.min_us(), 60_000);
        rtt.update_min(&at(300_009), 0);
        assert_eq!(rtt.min_us(), 1);
    }
}
