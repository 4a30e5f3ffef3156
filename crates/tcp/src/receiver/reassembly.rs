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
    /// Bytes in the store: at most a window.
    held: u32,
    recent_count: u8,
    has_duplicate: bool,
    /// None until there is something to store or to report.
    store: Option<Box<Store>>,
}

/// Ranges out of order, and SACK blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    ranges: Ranges,
    /// The newest first, `recent_count` of them.
    recent: [(u64, u64); RECENT],
    /// With `has_duplicate`: what came twice.
    duplicate: (u64, u64),
}

impl Reassembly {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// The store, while there is something in it or to report.
    #[inline]
    pub(crate) fn record(&self) -> Option<&Store> {
        let in_use = self.held > 0 || self.has_blocks();
        self.store.as_deref().filter(|_| in_use)
    }

    /// Number of ranges out of order.
    pub(crate) fn ranges(&self) -> usize {
        self.store.as_ref().map_or(0, |store| store.ranges.count())
    }

    /// Bytes held out of order.
    pub(crate) fn held(&self) -> u32 {
        self.held
    }

    /// `[left, right)` would push a range back that an ACK which is held back has yet to tell of.
    pub(crate) fn displaces(&self, left: u64, right: u64) -> bool {
        let count = usize::from(self.recent_count);
        let touches = |range: &(u64, u64)| range.0 <= right && left <= range.1;
        let place = self.store.as_ref().and_then(|s| s.recent[..count].iter().position(touches));
        place.unwrap_or(count) >= TOLD
    }

    /// All of `[left, right)` is there.
    pub(crate) fn holds(&self, left: u64, right: u64) -> bool {
        self.store.as_ref().is_some_and(|store| store.ranges.first_gap(left, right).is_none())
    }

    /// Stores `[left, right)`, which is told of first from now on, even if all of it was there.
    pub(crate) fn store(&mut self, left: u64, right: u64) {
        let store = self.store.get_or_insert_default();
        let mut from = left;
        while let Some((start, end)) = store.ranges.first_gap(from, right) {
            self.held += (end - start) as u32;
            from = end;
        }
        store.ranges.insert(left, right);
        self.remember(left, right);
    }

    /// Puts a range in front of the list by age, joined with what it touches there.
    fn remember(&mut self, left: u64, right: u64) {
        let store = self.store.get_or_insert_default();
        let mut joined = (left, right);
        let mut kept = 0;
        let mut list = [(0, 0); RECENT + 1];
        for &(l, r) in &store.recent[..usize::from(self.recent_count)] {
            if l <= joined.1 && joined.0 <= r {
                joined = (joined.0.min(l), joined.1.max(r));
            } else {
                kept += 1;
                list[kept] = (l, r);
            }
        }
        list[0] = joined;
        self.recent_count = (kept + 1).min(RECENT) as u8;
        store.recent.copy_from_slice(&list[..RECENT]);
    }

    /// All up to `next` is in order: how far what was held reaches on from there.
    pub(crate) fn advance(&mut self, next: u64) -> u64 {
        let Some(store) = &mut self.store else { return next };
        let mut next = next;
        while let Some((left, right)) = store.ranges.take_first_up_to(next) {
            self.held -= (right - left) as u32;
            next = next.max(right);
        }
        let mut kept = 0;
        for n in 0..usize::from(self.recent_count) {
            if store.recent[n].1 > next {
                store.recent[kept] = store.recent[n];
                kept += 1;
            }
        }
        self.recent_count = kept as u8;
        next
    }

    /// `[left, right)` came twice: the next ACK says so, unless more data comes before.
    #[cold]
    pub(crate) fn report_duplicate(&mut self, left: u64, right: u64) {
        self.store.get_or_insert_default().duplicate = (left, right);
        self.has_duplicate = true;
    }

    /// More data has come: a report whose ACK was held back is forgotten.
    #[inline]
    pub(crate) fn forget_duplicate(&mut self) {
        self.has_duplicate = false;
    }

    #[inline]
    pub(crate) fn has_blocks(&self) -> bool {
        self.recent_count > 0 || self.has_duplicate
    }

    /// Writes the blocks of the next ACK into `out` and forgets the duplicate.
    pub(crate) fn blocks(&mut self, out: &mut [(u32, u32)]) -> u8 {
        let Some(store) = &self.store else { return 0 };
        let duplicate = core::mem::take(&mut self.has_duplicate).then_some(store.duplicate);
        let recent = store.recent[..usize::from(self.recent_count)].iter().copied();
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
        assert!(!reassembly.holds(20, 30));
        reassembly.store(20, 30);
        reassembly.store(40, 50);
        assert_eq!(blocks(&mut reassembly), [(40, 50), (20, 30)]);
        reassembly.store(30, 35);
        assert_eq!(blocks(&mut reassembly), [(20, 35), (40, 50)]);
        assert!(reassembly.holds(22, 28) && reassembly.holds(40, 50));
        assert!(!reassembly.holds(34, 41) && !reassembly.holds(19, 21));
        reassembly.store(42, 44);
        // RFC 2883: the block that a duplicate is part of follows it.
        assert_eq!(blocks(&mut reassembly), [(40, 50), (20, 35)]);
        assert_eq!(reassembly.held(), 25);
        reassembly.store(35, 40);
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
        reassembly.report_duplicate(5, 10);
        reassembly.report_duplicate(10, 15);
        assert_eq!(blocks(&mut reassembly), [(10, 15), (20, 30)]);
        reassembly.report_duplicate(5, 10);
        reassembly.forget_duplicate();
        assert_eq!(blocks(&mut reassembly), [(20, 30)]);
    }

    #[test]
    fn ranges_are_counted() {
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.ranges(), 0);
        for (n, left) in [20, 60, 40].into_iter().enumerate() {
            reassembly.store(left, left + 10);
            assert_eq!((reassembly.ranges(), reassembly.held()), (n + 1, 10 * (n as u32 + 1)));
        }
        reassembly.store(30, 40);
        assert_eq!((reassembly.ranges(), reassembly.held()), (2, 40));
    }

    /// An ACK tells of three ranges at most: one more would push the oldest out of it.
    #[test]
    fn a_range_displaces_what_is_told_no_more() {
        let mut reassembly = Reassembly::default();
        let displaces: std::vec::Vec<bool> = [20, 40, 60]
            .into_iter()
            .map(|left| {
                let displaces = reassembly.displaces(left, left + 10);
                reassembly.store(left, left + 10);
                displaces
            })
            .collect();
        assert_eq!(displaces, [false, false, TOLD == 2]);
        // What touches one of the newest is at home there; neighbours touch.
        assert!(!reassembly.displaces(70, 75) && !reassembly.displaces(50, 60));
        assert!(reassembly.displaces(71, 75) && reassembly.displaces(30, 35));
    }
}
