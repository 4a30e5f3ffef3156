//! `autorate-ingress`: the rate follows what arrives.
//!
//! The bytes that came between two gaps longer than average give a bandwidth. A moving average of
//! these that follows rises quickly is the capacity estimate. The shaper is set to 15/16 of it, at
//! most every 250 ms. Linux before 7.3 forgot to note the time of the last change, so that the
//! pause was without effect. Here it holds, except under `Arithmetic::Linux` of such a release.
//! (Facts A.11.)

use super::tin::ewma;
use crate::rate::{Arithmetic, Rate, Release};
use crate::time::{Span, Time};
use crate::wide::quotient;

/// Least time between two changes of the rate.
const PAUSE: Span = Span::from_millis(250);
/// A gap counts as no longer than this.
const LONGEST_GAP: Span = Span::from_secs(1);

/// The estimator.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Autorate {
    last_packet: Time,
    /// Moving average of the gaps between packets, ns.
    avg_gap: u64,
    window_begin: Time,
    window_bytes: u64,
    /// Estimated capacity, bytes a second.
    peak: u64,
    last_change: Time,
}

impl Autorate {
    /// An estimator whose first guess is `rate`.
    pub(super) fn new(rate: Rate) -> Autorate {
        Autorate { peak: rate.0, ..Autorate::default() }
    }

    /// The estimated capacity.
    pub(super) fn capacity(&self) -> Rate {
        Rate(self.peak)
    }

    /// A packet of `bytes` has arrived at `now`, for which the ACK filter took out one of
    /// `filtered`. Returns the new rate when it is time to change it.
    pub(super) fn arrival(
        &mut self,
        bytes: u32,
        filtered: u32,
        now: Time,
        arithmetic: Arithmetic,
    ) -> Option<Rate> {
        let came = self.window_bytes.wrapping_add(bytes.into());
        self.window_bytes = match arithmetic {
            Arithmetic::Exact => came.saturating_sub(filtered.into()),
            Arithmetic::Linux(_) => came.wrapping_sub(filtered.into()),
        };
        let gap = now.since(self.last_packet).min(LONGEST_GAP).0;
        self.last_packet = now;
        self.avg_gap = ewma(self.avg_gap, gap, if gap > self.avg_gap { 2 } else { 8 });
        if gap <= self.avg_gap {
            return None;
        }
        let window = now.since(self.window_begin).0.max(1);
        let bandwidth = match arithmetic {
            Arithmetic::Exact => {
                let bandwidth = quotient(u128::from(self.window_bytes) * 1_000_000_000, window);
                u64::try_from(bandwidth).unwrap_or(u64::MAX)
            }
            Arithmetic::Linux(_) => self.window_bytes.wrapping_mul(1_000_000_000) / window,
        };
        self.peak = ewma(self.peak, bandwidth, if bandwidth > self.peak { 2 } else { 8 });
        (self.window_bytes, self.window_begin) = (0, now);
        if now <= self.last_change + PAUSE {
            return None;
        }
        if arithmetic == Arithmetic::Exact || arithmetic.is_since(Release::V7_3) {
            self.last_change = now;
        }
        // As in Linux, an estimate below one byte a second is no limit: that is the first packet
        // of a machine that has been up for long. At such a rate nothing would leave.
        Some(Rate(self.peak.saturating_mul(15) / 16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_rate_of_a_paced_stream_and_pauses_between_changes() {
        let mut autorate = Autorate::new(Rate(100_000));
        let mut changes = std::vec::Vec::new();
        // 1500 bytes each 1.2 ms: 1.25 MB/s, with a longer gap each tenth packet.
        let mut now = Time(1_000_000_000);
        for i in 0..20_000 {
            now += Span::from_micros(if i % 10 == 0 { 1_500 } else { 1_167 });
            if let Some(rate) = autorate.arrival(1500, 0, now, Arithmetic::Exact) {
                changes.push((now, rate));
            }
        }
        let (_, last) = changes[changes.len() - 1];
        assert!((1_050_000..1_250_000).contains(&last.0), "{last:?}");
        assert!(changes.windows(2).all(|w| w[1].0.since(w[0].0) > PAUSE));
    }

    #[test]
    fn a_first_packet_long_after_boot_sets_no_rate() {
        for arithmetic in [Arithmetic::Exact, Arithmetic::LINUX] {
            let day = Time::ZERO + Span::from_secs(86_400);
            let rate = Autorate::new(Rate(0)).arrival(1514, 0, day, arithmetic);
            assert!(rate.is_some_and(Rate::is_unlimited), "{rate:?}");
        }
    }

    #[test]
    fn as_in_linux_there_is_no_pause_and_what_is_filtered_does_not_count() {
        for (arithmetic, pauses) in [
            (Arithmetic::Exact, true),
            (Arithmetic::LINUX, false),
            (Arithmetic::Linux(Release::V7_3), true),
        ] {
            let mut autorate = Autorate::new(Rate(100_000));
            let mut at = |ms, filtered| {
                let now = Time::ZERO + Span::from_millis(ms);
                (autorate.arrival(66, filtered, now, arithmetic), autorate.window_bytes)
            };
            assert!(at(400, 0).0.is_some());
            assert_eq!((at(410, 0).1, at(420, 54).1), (66, 78));
            assert_eq!(at(600, 0).0.is_none(), pauses);
        }
    }

    /// A gap that is longer than the average ends a window: its bytes by its time are a bandwidth.
    /// The estimate follows that by a quarter upwards and by a 256th downwards.
    #[test]
    fn an_estimate_follows_each_window() {
        for arithmetic in [Arithmetic::Exact, Arithmetic::LINUX] {
            let mut autorate = Autorate::new(Rate(256_000));
            let at = |autorate: &mut Autorate, ms, bytes| {
                autorate.arrival(bytes, 0, Time::ZERO + Span::from_millis(ms), arithmetic);
                autorate.capacity().0
            };
            // 1,000 bytes in 10 ms.
            assert_eq!(at(&mut autorate, 10, 1_000), 256_000 - 1_000 + 100_000 / 256);
            let before = autorate.capacity().0;
            assert_eq!(at(&mut autorate, 11, 1_000), before, "within a window");
            // 2,000 in 21 ms.
            let lower = before - before / 256 + 95_238 / 256;
            assert_eq!(at(&mut autorate, 31, 1_000), lower);
            // A million in 20 ms.
            assert_eq!(at(&mut autorate, 51, 1_000_000), lower - lower / 4 + 50_000_000 / 4);
        }
    }
}
