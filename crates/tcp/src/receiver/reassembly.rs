//! Data out of order, and the SACK blocks for them (RFC 2018, RFC 2883).
//!
//! The ranges themselves are kept whole; beside them the last four that changed, newest first, as
//! Linux reports them: an ACK names the newest first, and a duplicate before all.

use alloc::boxed::Box;

use crate::ranges::Ranges;

/// Ranges that are remembered by age.
const RECENT: usize = 4;
/// Newest ranges of which an ACK that is held back can be sure to tell: one less than fit beside
/// timestamps, since ACKs get lost (Linux's `TCP_SACK_BLOCKS_EXPECTED`).
const TOLD: usize = 2;

/// The out-of-order store. While all comes in order, only this much of it is looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reassembly {
    ranges: Ranges,
    /// Bytes in `ranges`: at most a window.
    held: u32,
    recent_count: u8,
    has_duplicate: bool,
    /// None until there is something to report.
    reports: Option<Box<Reports>>,
}

/// SACK blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reports {
    /// The newest first, `recent_count` of them.
    recent: [(u64, u64); RECENT],
    /// With `has_duplicate`: what came twice.
    duplicate: (u64, u64),
}

impl Reassembly {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The lowest range, and what to SACK.
    #[inline]
    pub(crate) fn records(&self) -> (Option<&(u64, u64)>, Option<&Reports>) {
        (self.ranges.first_ref(), self.reports.as_deref())
    }

    /// Number of ranges out of order.
    pub(crate) fn ranges(&self) -> usize {
        self.ranges.count()
    }

    /// Bytes held out of order.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// `[left, right)` would push a range back that an ACK which is held back has yet to tell of.
    pub(crate) fn displaces(&self, left: u64, right: u64) -> bool {
        let count = usize::from(self.recent_count);
        let touches = |range: &(u64, u64)| range.0 <= right && left <= range.1;
        let place = self.reports.as_ref().and_then(|r| r.recent[..count].iter().position(touches));
        place.unwrap_or(count) >= TOLD
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
        self.held += fresh as u32;
        self.ranges.insert(left, right);
        self.remember(left, right);
        true
    }

    /// Puts a range in front of the list by age, joined with what it touches there.
    fn remember(&mut self, left: u64, right: u64) {
        let reports = self.reports.get_or_insert_default();
        let mut joined = (left, right);
        let mut kept = 0;
        let mut list = [(0, 0); RECENT + 1];
        for &(l, r) in &reports.recent[..usize::from(self.recent_count)] {
            if l <= joined.1 && joined.0 <= r {
                joined = (joined.0.min(l), joined.1.max(r));
            } else {
                kept += 1;
                list[kept] = (l, r);
            }
        }
        list[0] = joined;
        self.recent_count = (kept + 1).min(RECENT) as u8;
        reports.recent.copy_from_slice(&list[..RECENT]);
    }

    /// All up to `next` is in order: how far what was held reaches on from there.
    pub(crate) fn advance(&mut self, next: u64) -> u64 {
        let mut next = next;
        while let Some((left, right)) = self.ranges.take_first_up_to(next) {
            self.held -= (right - left) as u32;
            next = next.max(right);
        }
        let Some(reports) = &mut self.reports else { return next };
        let mut kept = 0;
        for n in 0..usize::from(self.recent_count) {
            if reports.recent[n].1 > next {
                reports.recent[kept] = reports.recent[n];
                kept += 1;
            }
        }
        self.recent_count = kept as u8;
        next
    }

    /// `[left, right)` came twice: the next ACK says so.
    #[cold]
    pub(crate) fn report_duplicate(&mut self, left: u64, right: u64) {
        let reports = self.reports.get_or_insert_default();
        reports.duplicate = match reports.duplicate {
            (l, r) if self.has_duplicate && left <= r && l <= right => (l.min(left), r.max(right)),
            _ => (left, right),
        };
        self.has_duplicate = true;
    }

    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.recent_count > 0 || self.has_duplicate
    }

    /// Writes the blocks of the next ACK into `out` and forgets the duplicate.
    pub(crate) fn blocks(&mut self, out: &mut [(u32, u32)]) -> u8 {
        let Some(reports) = &self.reports else { return 0 };
        let duplicate = core::mem::take(&mut self.has_duplicate).then_some(reports.duplicate);
        let recent = reports.recent[..usize::from(self.recent_count)].iter().copied();
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
