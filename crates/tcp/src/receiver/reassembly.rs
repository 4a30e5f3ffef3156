//! What has arrived out of order, and what to SACK of it (RFC 2018, RFC 2883).
//!
//! The ranges themselves are kept whole; beside them the last four that changed, newest first, as
//! Linux reports them: an ACK names the newest first, and a duplicate before all.

use crate::ranges::Ranges;

/// Ranges that are remembered by age.
const RECENT: usize = 4;

/// The out-of-order store.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(crate) struct Reassembly {
    recent: [(u64, u64); RECENT],
    recent_count: usize,
    ranges: Ranges,
    /// Bytes in `ranges`.
    held: u64,
    duplicate: Option<(u64, u64)>,
}

impl Reassembly {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The lowest range.
    #[inline]
    pub(crate) fn first(&self) -> Option<&(u64, u64)> {
        self.ranges.first_ref()
    }

    /// Bytes held out of order.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Stores `[left, right)`. False if all of it was there.
    pub(crate) fn store(&mut self, left: u64, right: u64) -> bool {
        let mut fresh = 0;
        let mut from = left;
        while let Some((start, end)) = self.ranges.first_gap(from, right) {
            fresh += end - start;
            from = end;
        }
        if fresh == 0 {
            return false;
        }
        self.held += fresh;
        self.ranges.insert(left, right);
        self.remember(left, right);
        true
    }

    /// Puts a range in front of the list by age, joined with what it touches there.
    fn remember(&mut self, left: u64, right: u64) {
        let mut joined = (left, right);
        let mut kept = 0;
        let mut list = [(0, 0); RECENT + 1];
        for &(l, r) in &self.recent[..self.recent_count] {
            if l <= joined.1 && joined.0 <= r {
                joined = (joined.0.min(l), joined.1.max(r));
            } else {
                kept += 1;
                list[kept] = (l, r);
            }
        }
        list[0] = joined;
        self.recent_count = (kept + 1).min(RECENT);
        self.recent.copy_from_slice(&list[..RECENT]);
    }

    /// All up to `next` is in order: how far what was held reaches on from there.
    pub(crate) fn advance(&mut self, next: u64) -> u64 {
        let mut next = next;
        while let Some((left, right)) = self.ranges.take_first_up_to(next) {
            self.held -= right - left;
            next = next.max(right);
        }
        let mut kept = 0;
        for n in 0..self.recent_count {
            if self.recent[n].1 > next {
                self.recent[kept] = self.recent[n];
                kept += 1;
            }
        }
        self.recent_count = kept;
        next
    }

    /// `[left, right)` came twice: the next ACK says so.
    #[cold]
    pub(crate) fn report_duplicate(&mut self, left: u64, right: u64) {
        self.duplicate = match self.duplicate {
            Some((l, r)) if left <= r && l <= right => Some((l.min(left), r.max(right))),
            _ => Some((left, right)),
        };
    }

    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.recent_count > 0 || self.duplicate.is_some()
    }

    /// Writes the blocks of the next ACK into `out` and forgets the duplicate.
    pub(crate) fn blocks(&mut self, out: &mut [(u32, u32)]) -> u8 {
        let duplicate = self.duplicate.take();
        let recent = self.recent[..self.recent_count].iter().copied();
        let mut count = 0;
        for (slot, (left, right)) in out.iter_mut().zip(duplicate.into_iter().chain(recent)) {
            *slot = (left as u32, right as u32);
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(reassembly: &mut Reassembly) -> std::vec::Vec<(u32, u32)> {
        let mut out = [(0, 0); 3];
        let count = reassembly.blocks(&mut out);
        out[..usize::from(count)].to_vec()
    }

    #[test]
    fn the_newest_block_comes_first_and_grows() {
        let mut reassembly = Reassembly::default();
        assert!(reassembly.store(20, 30));
        assert!(reassembly.store(40, 50));
        assert_eq!(blocks(&mut reassembly), [(40, 50), (20, 30)]);
        assert!(reassembly.store(30, 35));
        assert_eq!(blocks(&mut reassembly), [(20, 35), (40, 50)]);
        assert!(!reassembly.store(22, 28));
        assert!(reassembly.store(35, 40));
        assert_eq!(blocks(&mut reassembly), [(20, 50)]);
        assert_eq!(reassembly.held(), 30);
        assert_eq!(reassembly.advance(20), 50);
        assert!(reassembly.is_empty() && !reassembly.has_blocks() && reassembly.held() == 0);
    }

    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        let mut reassembly = Reassembly::default();
        reassembly.store(20, 30);
        reassembly.report_duplicate(5, 10);
        assert_eq!(blocks(&mut reassembly), [(5, 10), (20, 30)]);
        assert_eq!(blocks(&mut reassembly), [(20, 30)]);
    }
}
