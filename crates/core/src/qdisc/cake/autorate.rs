//! `autorate-ingress`: the rate follows what arrives.
//!
//! Between bursts the bytes of the last window give a bandwidth; a moving average that follows
//! rises quickly is the capacity estimate, and the shaper is set to 15/16 of it, at most every 250
//! ms. Linux forgot for years to note the time of the last change, so the pause was without effect;
//! here it holds. (Facts A.11.)

use super::tin::ewma;
use crate::rate::Rate;
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

    /// `bytes` have arrived at `now`. Returns the new rate when it is time to change it.
    pub(super) fn arrival(&mut self, bytes: u32, now: Time) -> Option<Rate> {
        self.window_bytes += u64::from(bytes);
        let gap = now.since(self.last_packet).min(LONGEST_GAP).0;
        self.last_packet = now;
        self.avg_gap = ewma(self.avg_gap, gap, if gap > self.avg_gap { 2 } else { 8 });
        if gap <= self.avg_gap {
            return None;
        }
        let window = now.since(self.window_begin).0.max(1);
        let bandwidth = quotient(u128::from(self.window_bytes) * 1_000_000_000, window);
        let bandwidth = u64::try_from(bandwidth).unwrap_or(u64::MAX);
        self.peak = ewma(self.peak, bandwidth, if bandwidth > self.peak { 2 } else { 8 });
        (self.window_bytes, self.window_begin) = (0, now);
        if now <= self.last_change + PAUSE {
            return None;
        }
        self.last_change = now;
        Some(Rate((self.peak / 16 * 15).max(1)))
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
            if let Some(rate) = autorate.arrival(1500, now) {
                changes.push((now, rate));
            }
        }
        let (_, last) = changes[changes.len() - 1];
        assert!((1_050_000..1_250_000).contains(&last.0), "{last:?}");
        assert!(changes.windows(2).all(|w| w[1].0.since(w[0].0) > PAUSE));
    }
}
