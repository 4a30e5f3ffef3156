//! Distributions of durations in bounded memory.
//!
//! A histogram in the manner of HDR (Tene): 256 buckets of 512 ns, then 128 for each further power
//! of two, in 14 kB. So from 52 µs up to an hour a bucket is narrower than 1 % of what is in it.
//! Beside it are the exact count, sum, least and greatest: means are exact, quantiles are the
//! histogram's.
//!
//! Counting happens for every packet that leaves a discipline, so it is a shift, an index and an
//! addition here, in line. `hdrhistogram` itself, which has the same buckets, is the oracle of the
//! tests.

use prefetch_index::prefetch_index;
use simnel_core::Span;

/// Binary digits of the finest bucket's width: 512 ns.
const UNIT_BITS: u32 = 9;
/// Binary digits of a value that its bucket keeps.
const DIGITS: u32 = 8;
/// Longer times count as this long: an hour.
const GREATEST: u64 = 3_600_000_000_000;
/// Buckets in all.
const BUCKETS: usize = index(GREATEST) + 1;

/// The bucket of a value, at most [`GREATEST`].
#[inline(always)]
const fn index(value: u64) -> usize {
    let units = value >> UNIT_BITS;
    let shift = (units | 1 << (DIGITS - 1)).ilog2() - (DIGITS - 1);
    ((shift as usize) << (DIGITS - 1)) + (units >> shift) as usize
}

/// The least value of a bucket, and the bucket's width.
const fn bucket(index: usize) -> (u64, u64) {
    let shift = ((index >> (DIGITS - 1)) as u32).saturating_sub(1);
    let units = index as u64 - ((shift as u64) << (DIGITS - 1));
    (units << (shift + UNIT_BITS), 1 << (shift + UNIT_BITS))
}

/// Distribution of durations.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: Box<[u32; BUCKETS]>,
    count: u64,
    sum: u128,
    least: u64,
    greatest: u64,
}

impl Default for Distribution {
    fn default() -> Distribution {
        Distribution {
            counts: Box::new([0; BUCKETS]),
            count: 0,
            sum: 0,
            least: u64::MAX,
            greatest: 0,
        }
    }
}

impl Distribution {
    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, span: Span) {
        let bucket = self.begin(span);
        self.complete(bucket);
    }

    /// The first half of [`Distribution::record`]: gives the bucket that is still to be counted,
    /// and has the processor fetch it without waiting.
    #[inline]
    pub(crate) fn begin(&mut self, span: Span) -> usize {
        let bucket = index(span.0.min(GREATEST));
        prefetch_index(self.counts.as_slice(), bucket);
        self.count += 1;
        self.sum += u128::from(span.0);
        self.least = self.least.min(span.0);
        self.greatest = self.greatest.max(span.0);
        bucket
    }

    /// The second half of [`Distribution::record`].
    #[inline]
    pub(crate) fn complete(&mut self, bucket: usize) {
        if let Some(count) = self.counts.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.sum, self.least, self.greatest) = (0, 0, u64::MAX, 0);
    }

    /// Adds what `other` has counted.
    pub fn merge(&mut self, other: &Distribution) {
        for (count, more) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count = count.saturating_add(*more);
        }
        self.count += other.count;
        self.sum += other.sum;
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }

    /// Number of durations counted.
    pub fn count(&self) -> u64 {
        self.count
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
        self.quantile_of(per_mille, 1000)
    }

    /// The value below which `part` of `whole`, which is not zero, lies; None if nothing was
    /// counted.
    pub fn quantile_of(&self, part: u64, whole: u64) -> Option<Span> {
        if self.count() == 0 {
            return None;
        }
        let share = u128::from(self.count()) * u128::from(part);
        let rank = share.div_ceil(u128::from(whole)).max(1) as u64;
        let mut seen = 0;
        for (index, count) in self.recorded() {
            seen += u64::from(count);
            if seen >= rank {
                let (start, width) = bucket(index);
                return Some(Span((start + width / 2).clamp(self.least, self.greatest)));
            }
        }
        Some(Span(self.greatest))
    }

    /// The cumulative distribution: (value, how many are not above it), in ascending order.
    pub fn cumulative(&self) -> Vec<(Span, u64)> {
        let mut seen = 0;
        self.recorded()
            .map(|(index, count)| {
                seen += u64::from(count);
                let (start, width) = bucket(index);
                (Span((start + width - 1).min(self.greatest)), seen)
            })
            .collect()
    }

    /// Buckets with something in them, in ascending order.
    fn recorded(&self) -> impl Iterator<Item = (usize, u32)> + '_ {
        let counted = self.counts.iter().copied().enumerate();
        counted.filter(|(_, count)| *count > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use simnel_core::random::Random;

    #[test]
    fn buckets_are_those_of_hdrhistogram() {
        let mut oracle = Histogram::<u32>::new_with_bounds(1_000, GREATEST, 2).expect("bounds");
        let mut distribution = Distribution::default();
        let mut random = Random::new(11);
        for _ in 0..50_000 {
            // All magnitudes from a nanosecond to an hour.
            let value = (random.u64() >> (20 + random.below(44))).min(GREATEST);
            oracle.saturating_record(value);
            distribution.record(Span(value));
        }
        let theirs: Vec<(u64, u64)> = oracle
            .iter_recorded()
            .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
            .collect();
        let ours: Vec<(u64, u64)> = distribution
            .recorded()
            .map(|(index, count)| (bucket(index).0 + bucket(index).1 - 1, u64::from(count)))
            .collect();
        assert!(ours.len() > 2_000);
        assert_eq!(ours, theirs);
    }

    #[test]
    fn quantiles_are_within_one_percent_and_means_exact() {
        let mut distribution = Distribution::default();
        assert_eq!((distribution.mean(), distribution.quantile(500)), (None, None));
        assert_eq!((distribution.least(), distribution.greatest()), (None, None));
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
        // A quantile is the middle of its bucket, within what was recorded.
        let mut spread = Distribution::default();
        for nanos in [1, 1_000_000, 1_000_000_000] {
            spread.record(Span(nanos));
        }
        let (start, width) = bucket(index(1_000_000));
        assert_eq!(spread.quantile(500), Some(Span(start + width / 2)));
        assert_eq!(spread.quantile(1000), spread.greatest());
        // Of those that are not above a value of the cumulative distribution, there are so many.
        let mut uneven = Distribution::default();
        let values = [1, 600, 700, 1_024, 90_000, 90_001, 5_000_000, 5_010_000, 3_000_000_000];
        values.iter().for_each(|nanos| uneven.record(Span(*nanos)));
        let cumulative = uneven.cumulative();
        for (value, count) in &cumulative {
            let not_above = values.iter().filter(|nanos| **nanos <= value.0).count();
            assert_eq!(not_above as u64, *count, "{value:?}");
        }
        assert!(cumulative.windows(2).all(|pair| pair[0].1 < pair[1].1));
        assert_eq!(cumulative.last(), Some(&(Span(3_000_000_000), 9)));
        assert_eq!(uneven.sum(), values.iter().map(|nanos| u128::from(*nanos)).sum());
        let mut twice = distribution.clone();
        twice.merge(&distribution);
        assert_eq!((twice.count(), twice.mean()), (2000, distribution.mean()));
    }
}
