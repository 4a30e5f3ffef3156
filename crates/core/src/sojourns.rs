//! Sojourn times in logarithmic buckets: four to each doubling, from 16 µs to 0.8 s.
//!
//! Bucket 0 is below 16 µs, the last 0.8 s and above. [`bucket_limit`] says where each ends, so a
//! quantile is too high by a quarter at most.
//!
//! [`Sojourns`] only grows: whoever looks twice has the times in between as a difference.

use core::fmt;

use crate::tc::Json;
use crate::time::Span;

/// Buckets of a histogram of sojourn times.
pub const BUCKETS: usize = 64;
/// Bucket 0 ends at 2 to the power of this, in nanoseconds (16 µs).
const FIRST: u32 = 14;
/// Buckets to a doubling are 2 to the power of this.
const FINENESS: u32 = 2;

/// The bucket of a sojourn time.
#[inline]
pub fn bucket(sojourn: Span) -> usize {
    let ns = sojourn.0;
    let Some(doublings) = ns.max(1).ilog2().checked_sub(FIRST) else { return 0 };
    let quarter = ns >> (FIRST + doublings - FINENESS) & 3;
    ((doublings << FINENESS) as usize + quarter as usize + 1).min(BUCKETS - 1)
}

/// End of bucket `number`. For the last bucket, which has no end, it is the beginning.
pub fn bucket_limit(number: usize) -> Span {
    let number = number.min(BUCKETS - 2) as u64;
    let (doublings, quarter) = (number >> FINENESS, number & 3);
    Span(((4 + quarter) << (u64::from(FIRST) - 2)) << doublings)
}

/// The limit of the bucket in which the `permille` smallest of 1000 end; zero if there are none.
pub fn quantile(counts: &[u64], permille: u64) -> Span {
    let total: u64 = counts.iter().sum();
    if total == 0 {
        return Span::ZERO;
    }
    let rank = (total * permille).div_ceil(1000).max(1);
    let mut seen = 0;
    let reached = |count: &u64| {
        seen += count;
        seen >= rank
    };
    bucket_limit(counts.iter().position(reached).unwrap_or(BUCKETS - 1))
}

/// Sojourn times since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sojourns {
    /// Packets by the bucket of their sojourn.
    pub counts: [u64; BUCKETS],
    /// Sojourn time of the last packet.
    pub last: Span,
}

impl Default for Sojourns {
    fn default() -> Sojourns {
        Sojourns { counts: [0; BUCKETS], last: Span::ZERO }
    }
}

impl Sojourns {
    /// Counts packets that leave after `sojourn`.
    #[inline]
    pub fn add(&mut self, sojourn: Span, packets: u64) {
        self.last = sojourn;
        self.counts[bucket(sojourn)] += packets;
    }

    /// Adds those of another queue of the same line.
    pub fn join(&mut self, other: &Sojourns) {
        self.counts.iter_mut().zip(other.counts).for_each(|(n, other)| *n += other);
        self.last = self.last.max(other.last);
    }

    /// Writes them as members of an open object.
    pub fn write_json(&self, json: &mut Json<'_>) -> fmt::Result {
        json.key("sojourn_ns")?.number(self.last.0)?;
        json.key("sojourns")?.begin_array()?;
        self.counts.iter().try_for_each(|count| json.number(*count))?;
        json.end_array()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_below_the_limit_of_its_bucket_by_a_quarter_at_most() {
        for ns in (0..4_000_000u64).step_by(977).chain((0..800_000_000).step_by(99_991)) {
            let span = Span(ns);
            let limit = bucket_limit(bucket(span));
            assert!(span < limit, "{ns}");
            assert!(ns < 16_384 || limit.0 <= ns + ns / 4 + 1, "{ns}: {limit:?}");
        }
        assert_eq!(bucket(Span(u64::MAX)), BUCKETS - 1);
        assert_eq!(bucket_limit(BUCKETS - 1), bucket_limit(BUCKETS - 2));
    }

    #[test]
    fn quantiles_are_of_the_packets_not_of_the_buckets() {
        let mut sojourns = Sojourns::default();
        for ms in 1..=100 {
            sojourns.add(Span::from_millis(ms), 1);
        }
        let within = |permille, low, high| {
            let at = quantile(&sojourns.counts, permille);
            assert!(at > Span::from_millis(low) && at <= Span::from_millis(high), "{at:?}");
        };
        within(500, 49, 63);
        within(990, 98, 124);
        assert_eq!(quantile(&[0; BUCKETS], 500), Span::ZERO);
    }
}
