//! Distributions of durations in bounded memory.
//!
//! An HDR histogram of nanoseconds (1 % of the value, from a microsecond to an hour, 13 kB) beside
//! the exact count, sum, least and greatest. Means are exact; quantiles are the histogram's.

use hdrhistogram::Histogram;
use simnel_core::Span;

/// Shorter times share a bucket.
const LEAST: u64 = 1_000;
/// Longer times count as this long: an hour.
const GREATEST: u64 = 3_600_000_000_000;

/// How durations were distributed.
#[derive(Clone, Debug)]
pub struct Distribution {
    histogram: Histogram<u32>,
    sum: u128,
    least: u64,
    greatest: u64,
}

impl Default for Distribution {
    fn default() -> Distribution {
        let histogram = Histogram::new_with_bounds(LEAST, GREATEST, 2)
            .expect("the bounds are constant and in order");
        Distribution { histogram, sum: 0, least: u64::MAX, greatest: 0 }
    }
}

impl Distribution {
    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, span: Span) {
        self.histogram.saturating_record(span.0);
        self.sum += u128::from(span.0);
        self.least = self.least.min(span.0);
        self.greatest = self.greatest.max(span.0);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.histogram.reset();
        (self.sum, self.least, self.greatest) = (0, u64::MAX, 0);
    }

    /// Adds what `other` has counted.
    pub fn merge(&mut self, other: &Distribution) {
        // Equal bounds: nothing can be out of range.
        let _ = self.histogram.add(&other.histogram);
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }

    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Sum in nanoseconds, exact.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Mean, rounded down to a nanosecond; None if nothing was counted.
    pub fn mean(&self) -> Option<Span> {
        (self.count() > 0).then(|| Span((self.sum / u128::from(self.count())) as u64))
    }

    /// Least; None if nothing was counted.
    pub fn least(&self) -> Option<Span> {
        (self.count() > 0).then_some(Span(self.least))
    }

    /// Greatest; None if nothing was counted.
    pub fn greatest(&self) -> Option<Span> {
        (self.count() > 0).then_some(Span(self.greatest))
    }

    /// The value below which `per_mille` thousandths lie; None if nothing was counted.
    pub fn quantile(&self, per_mille: u64) -> Option<Span> {
        if self.count() == 0 {
            return None;
        }
        let rank = (u128::from(self.count()) * u128::from(per_mille)).div_ceil(1000).max(1) as u64;
        let mut seen = 0;
        for step in self.histogram.iter_recorded() {
            seen += step.count_since_last_iteration();
            if seen >= rank {
                let value = self.histogram.median_equivalent(step.value_iterated_to());
                return Some(Span(value.clamp(self.least, self.greatest)));
            }
        }
        Some(Span(self.greatest))
    }

    /// The cumulative distribution: (value, how many are not above it), in ascending order.
    pub fn cumulative(&self) -> Vec<(Span, u64)> {
        let mut seen = 0;
        self.histogram
            .iter_recorded()
            .map(|step| {
                seen += step.count_since_last_iteration();
                (Span(step.value_iterated_to().min(self.greatest)), seen)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_one_percent_and_means_exact() {
        let mut distribution = Distribution::default();
        assert_eq!((distribution.mean(), distribution.quantile(500)), (None, None));
        for millis in 1..=1000 {
            distribution.record(Span::from_millis(millis));
        }
        assert_eq!(distribution.mean(), Some(Span::from_micros(500_500)));
        for (per_mille, millis) in [(1, 1), (500, 500), (990, 990), (1000, 1000)] {
            let value = distribution.quantile(per_mille).expect("values").0;
            let exact = millis * 1_000_000u64;
            assert!(value.abs_diff(exact) * 100 <= exact, "{per_mille}: {value}");
        }
        assert_eq!(distribution.cumulative().last(), Some(&(Span::from_millis(1000), 1000)));
        let mut twice = distribution.clone();
        twice.merge(&distribution);
        assert_eq!((twice.count(), twice.mean()), (2000, distribution.mean()));
    }
}
