//! A token bucket: tokens of time that an idle line saves up, for packets to spend.
//!
//! The bucket of `tbf` and the two of every `htb` class (man tc-tbf, tc-htb; facts D.8). Tokens are
//! nanoseconds: `depth` of them at most, and a packet costs the time that it takes at the rate.
//! Some clock says how much time has passed; buckets that stand side by side share it.
//!
//! Rate over any span is at most `rate * span + depth` bytes. Fractions of a nanosecond are carried
//! from packet to packet, unless the arithmetic is Linux's.

use crate::rate::{Arithmetic, ByteTime, Rate};
use crate::time::Span;

/// A bucket of time, full at first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    /// Nanoseconds saved up; negative in debt.
    tokens: i64,
    /// Nanoseconds that can be.
    depth: i64,
    byte_time: ByteTime,
    remainder: u64,
}

impl TokenBucket {
    /// A full bucket that holds the time of `burst` bytes at `rate`.
    pub fn new(rate: Rate, burst: u32, arithmetic: Arithmetic) -> TokenBucket {
        let byte_time = ByteTime::of_bucket(rate, arithmetic);
        TokenBucket::with_depth(byte_time, byte_time.of(burst))
    }

    /// A full bucket that holds `depth`.
    pub fn with_depth(byte_time: ByteTime, depth: Span) -> TokenBucket {
        let depth = depth.0.min(i64::MAX as u64 / 4) as i64;
        TokenBucket { tokens: depth, depth, byte_time, remainder: 0 }
    }

    /// Time that it can hold.
    pub fn depth(&self) -> Span {
        Span(self.depth as u64)
    }

    /// Time until it holds what `bytes` cost, but for a fraction, or is full.
    #[inline]
    pub fn wait(&self, bytes: u32) -> Span {
        let needed = self.byte_time.of(bytes).0.min(self.depth as u64) as i64;
        Span((needed - self.tokens).max(0) as u64)
    }

    /// Tokens after `elapsed` more time.
    #[inline]
    pub fn level(&self, elapsed: Span) -> i64 {
        let missing = (self.depth - self.tokens) as u64;
        self.tokens + elapsed.0.min(missing) as i64
    }

    /// Takes the price of `bytes` after `elapsed` more time. Debts are cut off at `floor`. What a
    /// packet may have on a line, 48 MiB, takes no more than 2^56 ns at the lowest rate.
    #[inline]
    pub fn pay(&mut self, elapsed: Span, bytes: u32, floor: i64) {
        let price = self.byte_time.charge(bytes, &mut self.remainder);
        self.tokens = (self.level(elapsed) - price.0 as i64).max(floor);
    }

    /// Lets `elapsed` time pass without a packet.
    #[inline]
    pub fn fill(&mut self, elapsed: Span) {
        self.tokens = self.level(elapsed);
    }

    /// Fills it up.
    pub fn make_full(&mut self) {
        self.tokens = self.depth;
    }

    /// As much as was in `old`, as far as it fits.
    pub fn inherit(&mut self, old: &TokenBucket) {
        self.tokens = old.tokens.min(self.depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_fills_to_its_depth_and_pays_debts_first() {
        // A byte a microsecond.
        let mut bucket = TokenBucket::new(Rate(1_000_000), 3000, Arithmetic::Exact);
        assert_eq!((bucket.level(Span::ZERO), bucket.depth()), (3_000_000, Span(3_000_000)));
        assert_eq!(bucket.level(Span::from_secs(9)), 3_000_000);
        bucket.pay(Span::ZERO, 5000, i64::MIN);
        assert_eq!(bucket.level(Span::from_millis(1)), -1_000_000);
        bucket.pay(Span::from_millis(1), 100_000, -1_500_000);
        assert_eq!(bucket.level(Span::ZERO), -1_500_000);
        bucket.fill(Span::from_millis(4));
        assert_eq!(bucket.level(Span::ZERO), 2_500_000);
        let mut narrow = TokenBucket::new(Rate(1_000_000), 1000, Arithmetic::Exact);
        narrow.inherit(&bucket);
        assert_eq!(narrow.level(Span::ZERO), 1_000_000);
    }

    #[test]
    fn fractions_are_not_lost() {
        // 3 bytes a microsecond: 64 bytes take 21,333 ns and a third.
        let mut bucket = TokenBucket::new(Rate(3_000_000), 0, Arithmetic::Exact);
        for _ in 0..3000 {
            bucket.pay(Span::ZERO, 64, i64::MIN);
        }
        let owed = -bucket.level(Span::ZERO);
        assert!((63_999_999..=64_000_001).contains(&owed), "{owed}");
    }
}
