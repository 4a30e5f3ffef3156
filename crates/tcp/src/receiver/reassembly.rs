//! Data out of order, and the SACK blocks for them (RFC 2018, RFC 2883).
//!
//! Data is kept in buffers, as in Linux, since memory counts. What follows a buffer joins it while
//! there is room; what precedes one does not. Beside them are the last four ranges that changed,
//! newest first, as Linux reports them. An ACK names a duplicate before all, then the newest range.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::window::MERGED;
use crate::ranges::first_gap;

/// Ranges that are remembered by age.
const RECENT: usize = 4;
/// Newest ranges that an ACK which is held back is sure to report. That is one less than fit beside
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

/// Data out of order, and SACK blocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store {
    /// In ascending order; neighbours may touch.
    buffers: Vec<Buffer>,
    /// The newest first, `recent_count` of them.
    recent: [(u64, u64); RECENT],
    /// With `has_duplicate`: what came twice.
    duplicate: (u64, u64),
}

/// Sequence numbers `[left, right)` of so many segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub left: u64,
    pub right: u64,
    pub segments: u32,
}

impl Store {
    /// The lowest part of `[left, right)` that is not there, and the place of the buffer behind it.
    fn first_gap(&self, left: u64, right: u64) -> Option<(u64, u64, usize)> {
        first_gap(&self.buffers, |buffer| (buffer.left, buffer.right), left, right)
    }
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

    /// Number of buffers out of order.
    pub(crate) fn buffers(&self) -> usize {
        self.store.as_ref().map_or(0, |store| store.buffers.len())
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
        self.store.as_ref().is_some_and(|store| store.first_gap(left, right).is_none())
    }

    /// Stores `[left, right)`, so many `segments`, which is told of first from now on, even if all
    /// of it was there. True if the buffer before took it in.
    pub(crate) fn store(&mut self, left: u64, right: u64, segments: u32) -> bool {
        let store = self.store.get_or_insert_default();
        let (mut from, mut joined) = (left, false);
        while let Some((left, right, at)) = store.first_gap(from, right) {
            self.held += (right - left) as u32;
            from = right;
            let before = at.checked_sub(1).map(|before| &mut store.buffers[before]);
            match before.filter(|b| b.right == left && b.segments + segments <= MERGED) {
                Some(before) => {
                    before.right = right;
                    before.segments += segments;
                    joined = true;
                }
                None => store.buffers.insert(at, Buffer { left, right, segments }),
            }
        }
        self.remember(left, right);
        joined
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

    /// All up to `next` is in order: hands over the buffers that this sets free, and says how far
    /// they reach.
    pub(crate) fn advance(&mut self, next: u64, mut over: impl FnMut(Buffer)) -> u64 {
        let Some(store) = &mut self.store else { return next };
        let (mut next, mut gone) = (next, 0);
        for buffer in &store.buffers {
            if buffer.left > next {
                break;
            }
            self.held -= (buffer.right - buffer.left) as u32;
            gone += 1;
            if buffer.right > next {
                over(Buffer { left: next, ..*buffer });
                next = buffer.right;
            }
        }
        store.buffers.drain(..gone);
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

    /// Stores one segment.
    fn store(reassembly: &mut Reassembly, left: u64, right: u64) -> bool {
        reassembly.store(left, right, 1)
    }

    /// The buffers that are set free if all up to `next` is in order.
    fn advance(reassembly: &mut Reassembly, next: u64) -> (u64, std::vec::Vec<(u64, u64, u32)>) {
        let mut freed = std::vec::Vec::new();
        let next = reassembly.advance(next, |buffer| {
            freed.push((buffer.left, buffer.right, buffer.segments));
        });
        (next, freed)
    }

    fn blocks(reassembly: &mut Reassembly) -> std::vec::Vec<(u32, u32)> {
        let mut out = [(0, 0); 3];
        let count = reassembly.blocks(&mut out);
        out[..usize::from(count)].to_vec()
    }

    #[test]
    fn the_newest_block_comes_first_and_grows() {
        let mut reassembly = Reassembly::default();
        assert!(!reassembly.holds(20, 30));
        store(&mut reassembly, 20, 30);
        store(&mut reassembly, 40, 50);
        assert_eq!(blocks(&mut reassembly), [(40, 50), (20, 30)]);
        store(&mut reassembly, 30, 35);
        assert_eq!(blocks(&mut reassembly), [(20, 35), (40, 50)]);
        assert!(reassembly.holds(22, 28) && reassembly.holds(40, 50));
        assert!(!reassembly.holds(34, 41) && !reassembly.holds(19, 21));
        store(&mut reassembly, 42, 44);
        // RFC 2883: the block that a duplicate is part of follows it.
        assert_eq!(blocks(&mut reassembly), [(40, 50), (20, 35)]);
        assert_eq!(reassembly.held(), 25);
        store(&mut reassembly, 35, 40);
        assert_eq!(blocks(&mut reassembly), [(20, 50)]);
        assert_eq!(reassembly.held(), 30);
        let set_free = [(20, 40, 3), (40, 50, 1)].to_vec();
        assert_eq!(advance(&mut reassembly, 20), (50, set_free));
        assert!(reassembly.is_empty() && !reassembly.has_blocks() && reassembly.held() == 0);
    }

    #[test]
    fn a_duplicate_is_reported_once_and_first() {
        let mut reassembly = Reassembly::default();
        store(&mut reassembly, 20, 30);
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

    /// Linux's `tcp_data_queue_ofo`: what follows a buffer joins it, up to seventeen segments; what
    /// closes the gap before one does not join that.
    #[test]
    fn what_follows_a_buffer_joins_it() {
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.buffers(), 0);
        for (left, joins, buffers) in [
            (20, false, 1),
            (60, false, 2),
            (40, false, 3),
            (70, true, 3),
            (50, true, 3),
            (30, true, 3),
            (30, false, 3),
        ] {
            assert_eq!(store(&mut reassembly, left, left + 10), joins, "{left}");
            assert_eq!(reassembly.buffers(), buffers, "{left}");
        }
        assert_eq!(reassembly.held(), 60);
        // Only what is missing is stored, between and behind what is there.
        assert!(reassembly.store(10, 90, 1));
        assert_eq!((reassembly.held(), reassembly.buffers()), (80, 4));
        let set_free = [(10, 20, 1), (20, 40, 2), (40, 60, 2), (60, 90, 3)].to_vec();
        assert_eq!(advance(&mut reassembly, 10), (90, set_free));
        assert_eq!((reassembly.held(), reassembly.buffers()), (0, 0));
        // Seventeen are the most, however they come.
        assert!(!reassembly.store(100, 116, 16));
        assert!(!reassembly.store(116, 118, 2));
        assert!(reassembly.store(118, 133, 15));
        assert!(!store(&mut reassembly, 133, 134));
        // What was sent twice is handed over where it is new.
        assert!(!store(&mut reassembly, 140, 150));
        assert_eq!(advance(&mut reassembly, 116), (134, [(116, 133, 17), (133, 134, 1)].to_vec()));
        assert_eq!((reassembly.held(), reassembly.buffers()), (10, 1));
        assert_eq!(advance(&mut reassembly, 145), (150, [(145, 150, 1)].to_vec()));
    }

    /// Ten segments in each of three ranges: three buffers, not four for thirty segments.
    #[test]
    fn ranges_are_not_counted_together() {
        let mut reassembly = Reassembly::default();
        for n in (0..36).filter(|n| n % 12 < 10) {
            store(&mut reassembly, 100 * n, 100 * (n + 1));
        }
        assert_eq!((reassembly.held(), reassembly.buffers()), (3_000, 3));
    }

    /// An ACK tells of three ranges at most: one more would push the oldest out of it.
    #[test]
    fn a_range_displaces_what_is_told_no_more() {
        let mut reassembly = Reassembly::default();
        let displaces: std::vec::Vec<bool> = [20, 40, 60]
            .into_iter()
            .map(|left| {
                let displaces = reassembly.displaces(left, left + 10);
                store(&mut reassembly, left, left + 10);
                displaces
            })
            .collect();
        assert_eq!(displaces, [false, false, TOLD == 2]);
        // What touches one of the newest is at home there; neighbours touch.
        assert!(!reassembly.displaces(70, 75) && !reassembly.displaces(50, 60));
        assert!(reassembly.displaces(71, 75) && reassembly.displaces(30, 35));
    }
}
