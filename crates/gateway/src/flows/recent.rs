//! Sojourn times of a flow's last packets: all counts are halved when there are 256, and so tell of
//! the last 128 to 256.

use simnel_core::sojourns::{bucket, quantile, BUCKETS};
use simnel_core::Span;

/// Packets that are told of at most.
const WINDOW: u16 = 256;

/// Sojourn times of a flow's last packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recent {
    counts: [u8; BUCKETS],
    total: u16,
}

impl Default for Recent {
    fn default() -> Recent {
        Recent { counts: [0; BUCKETS], total: 0 }
    }
}

impl Recent {
    #[inline]
    pub(crate) fn add(&mut self, sojourn: Span) {
        if self.total >= WINDOW - 1 {
            self.halve();
        }
        self.counts[bucket(sojourn)] += 1;
        self.total += 1;
    }

    #[inline(never)]
    fn halve(&mut self) {
        self.total = 0;
        for count in &mut self.counts {
            *count /= 2;
            self.total += u16::from(*count);
        }
    }

    pub(crate) fn p99(&self) -> Span {
        quantile(&self.counts.map(u64::from), 990)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_forgets_what_lies_256_packets_back() {
        let mut recent = Recent::default();
        for _ in 0..200 {
            recent.add(Span::from_millis(100));
        }
        assert!(recent.p99() > Span::from_millis(100));
        for _ in 0..2_000 {
            recent.add(Span::from_millis(1));
        }
        assert!(recent.p99() < Span::from_micros(1_300), "{:?}", recent.p99());
        for _ in 0..4 {
            recent.add(Span::from_millis(50));
        }
        assert!(recent.p99() > Span::from_millis(50), "four of 256 are more than a hundredth");
    }

    #[test]
    fn counts_are_halved_before_they_are_256() {
        let mut recent = Recent::default();
        for n in 1..=255 {
            recent.add(Span::from_millis(1));
            assert_eq!(u64::from(recent.total), n);
        }
        recent.add(Span::from_millis(1));
        assert_eq!((recent.total, recent.counts[bucket(Span::from_millis(1))]), (128, 128));
    }
}
