//! A set of sequence numbers as sorted, disjoint, non-adjacent ranges.
//!
//! The sender keeps what was SACKed in one. Usually empty, rarely more than a handful of ranges: a
//! sorted vector beats any tree, and never shrinks its memory, so that recovery allocates once.

use alloc::vec::Vec;

/// Ranges `[left, right)` in ascending order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ranges: Vec<(u64, u64)>,
}

impl Ranges {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of ranges.
    #[inline]
    pub(crate) fn count(&self) -> usize {
        self.ranges.len()
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    /// The lowest range, where it is kept.
    #[inline]
    pub(crate) fn first_ref(&self) -> Option<&(u64, u64)> {
        self.ranges.first()
    }

    /// One past the highest number in the set.
    #[inline]
    pub(crate) fn end(&self) -> Option<u64> {
        self.ranges.last().map(|range| range.1)
    }

    /// Adds `[left, right)` and returns the range that it has become part of.
    pub(crate) fn insert(&mut self, left: u64, right: u64) -> (u64, u64) {
        // Most arrivals extend the highest range or open a new one above it.
        let from = match self.ranges.last() {
            Some(last) if left > last.1 => self.ranges.len(),
            Some(last) if left >= last.0 => self.ranges.len() - 1,
            _ => self.ranges.partition_point(|range| range.1 < left),
        };
        let to = from + self.ranges[from..].partition_point(|range| range.0 <= right);
        if from == to {
            self.ranges.insert(from, (left, right));
            return (left, right);
        }
        let merged = (self.ranges[from].0.min(left), self.ranges[to - 1].1.max(right));
        self.ranges[from] = merged;
        self.ranges.drain(from + 1..to);
        merged
    }

    /// Forgets everything below `seq`.
    pub(crate) fn forget_below(&mut self, seq: u64) {
        let gone = self.ranges.partition_point(|range| range.1 <= seq);
        if gone > 0 {
            self.ranges.drain(..gone);
        }
        if let Some(first) = self.ranges.first_mut() {
            first.0 = first.0.max(seq);
        }
    }

    /// The lowest part of `[left, right)` that is not in the set.
    pub(crate) fn first_gap(&self, left: u64, right: u64) -> Option<(u64, u64)> {
        let gap = first_gap(&self.ranges, |range| *range, left, right);
        gap.map(|(start, end, _)| (start, end))
    }
}

/// The lowest part of `[left, right)` in none of the `sorted` ranges, which may touch, and the
/// place of the one behind it.
#[inline]
pub(crate) fn first_gap<T>(
    sorted: &[T],
    range: impl Fn(&T) -> (u64, u64),
    left: u64,
    right: u64,
) -> Option<(u64, u64, usize)> {
    let mut at = sorted.partition_point(|one| range(one).1 <= left);
    let mut start = left;
    while let Some((_, end)) = sorted.get(at).map(&range).filter(|(begin, _)| *begin <= start) {
        start = end;
        at += 1;
    }
    let end = sorted.get(at).map_or(right, |one| range(one).0.min(right));
    (start < end).then_some((start, end, at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_empty_set_has_no_lowest_range() {
        let mut ranges = Ranges::default();
        assert!(ranges.is_empty() && ranges.first_ref().is_none());
        ranges.insert(20, 30);
        ranges.insert(5, 10);
        assert!(!ranges.is_empty());
        assert_eq!(ranges.first_ref(), Some(&(5, 10)));
        assert_eq!((ranges.count(), ranges.end()), (2, Some(30)));
        ranges.clear();
        assert!(ranges.is_empty() && ranges.end().is_none());
    }

    proptest! {
        /// Against one bit a number.
        #[test]
        fn behaves_as_a_set(
            inserts in prop::collection::vec((0u64..200, 1u64..30), 1..40),
            cut in 0u64..230,
            probe in (0u64..200, 1u64..60),
        ) {
            let mut ranges = Ranges::default();
            let mut bits = [false; 300];
            for (left, len) in inserts {
                let part = ranges.insert(left, left + len);
                prop_assert!(part.0 <= left && part.1 >= left + len);
                bits[left as usize..(left + len) as usize].fill(true);
            }
            ranges.forget_below(cut);
            bits[..cut as usize].fill(false);
            for pair in ranges.ranges.windows(2) {
                prop_assert!(pair[0].1 < pair[1].0);
            }
            let mut seen = [false; 300];
            for (l, r) in &ranges.ranges {
                prop_assert!(l < r);
                seen[*l as usize..*r as usize].fill(true);
            }
            prop_assert_eq!(&seen[..], &bits[..]);
            let (l, r) = (probe.0, probe.0 + probe.1);
            let first = (l..r).find(|n| !bits[*n as usize]);
            let gap = first.map(|f| (f, (f..r).find(|n| bits[*n as usize]).unwrap_or(r)));
            prop_assert_eq!(ranges.first_gap(l, r), gap);
        }
    }
}
