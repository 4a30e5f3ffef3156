//! Shares of flows, in bounded memory.
//!
//! A table holds [`CAPACITY`] flows (or hosts) exactly. When it is full, it looks at those without
//! a packet in the queue. It sums up half of them, none with more bytes than the half-way one has.
//! Of this *rest* their number,
//! their bytes, and the squares of these are kept, so that totals stay exact. What is summed up and
//! comes again is counted as a new one. So beyond the capacity the number of flows is too high, and
//! Jain's index too low, by those that came again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use simnel_scenario::summary::jain_of_sums;

/// Flows, and hosts, that are told apart at a time.
pub const CAPACITY: usize = 1 << 16;

/// Fate of a flow's packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that arrived.
    pub packets: u64,
    /// Of those, sent.
    pub sent: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets dropped, filtered acknowledgements included.
    pub dropped: u64,
    /// Packets sent with a mark that the discipline set.
    pub marked: u64,
}

impl Counts {
    /// Adds `other`.
    pub fn add(&mut self, other: &Counts) {
        self.packets += other.packets;
        self.sent += other.sent;
        self.bytes += other.bytes;
        self.dropped += other.dropped;
        self.marked += other.marked;
    }

    /// Packets that neither left nor were lost.
    fn waiting(&self) -> u64 {
        self.packets.saturating_sub(self.sent + self.dropped)
    }
}

/// A flow or host.
#[derive(Clone, Copy, Debug)]
pub struct Entry<L> {
    /// Its hash.
    pub key: u64,
    /// The flow.
    pub label: L,
    /// Its share.
    pub counts: Counts,
}

/// Place at which an entry was found: it is still there as long as no entry of the table has moved.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    key: u64,
    slot: u32,
    generation: u32,
}

/// All that is no longer told apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rest {
    /// Number of entries that were summed up.
    pub entries: u64,
    /// Their share together.
    pub counts: Counts,
    squares: f64,
}

/// The table.
pub struct Table<L> {
    entries: Vec<Entry<L>>,
    index: HashMap<u64, u32, BuildHasherDefault<Spread>>,
    rest: Rest,
    /// Changes when entries move.
    generation: u32,
    capacity: usize,
    /// Entries at which there will be another summing-up.
    full: usize,
}

impl<L: Copy> Table<L> {
    /// A table for `capacity` entries.
    pub fn new(capacity: usize) -> Table<L> {
        Table {
            entries: Vec::new(),
            index: HashMap::default(),
            rest: Rest::default(),
            generation: 0,
            capacity: capacity.max(2),
            full: capacity.max(2),
        }
    }

    /// The entry of `key`, made with `label` if it is new. What has to make room goes to `leaving`.
    #[inline]
    pub fn find(
        &mut self,
        key: u64,
        label: impl FnOnce() -> L,
        leaving: impl FnMut(&Entry<L>),
    ) -> Found {
        let slot = match self.index.get(&key) {
            Some(slot) => *slot,
            None => self.insert(key, label(), leaving),
        };
        Found { key, slot, generation: self.generation }
    }

    /// The counts of an entry that has a packet waiting, or was just found.
    #[inline]
    pub fn counts(&mut self, found: Found) -> &mut Counts {
        let slot = match found.generation == self.generation {
            true => Some(found.slot),
            false => self.index.get(&found.key).copied(),
        };
        match slot.and_then(|slot| self.entries.get_mut(slot as usize)) {
            Some(entry) => &mut entry.counts,
            None => &mut self.rest.counts,
        }
    }

    /// Those that are told apart, in the order in which they came.
    pub fn entries(&self) -> &[Entry<L>] {
        &self.entries
    }

    /// The others.
    pub fn rest(&self) -> &Rest {
        &self.rest
    }

    /// Jain's index of the bytes; None below two entries.
    pub fn jain(&self) -> Option<f64> {
        let (mut sum, mut squares) = (self.rest.counts.bytes as f64, self.rest.squares);
        for entry in &self.entries {
            sum += entry.counts.bytes as f64;
            squares += (entry.counts.bytes as f64).powi(2);
        }
        jain_of_sums(self.entries.len() as u64 + self.rest.entries, sum, squares)
    }

    #[cold]
    fn insert(&mut self, key: u64, label: L, leaving: impl FnMut(&Entry<L>)) -> u32 {
        if self.entries.len() >= self.full {
            self.sum_up(leaving);
        }
        let slot = self.entries.len() as u32;
        self.entries.push(Entry { key, label, counts: Counts::default() });
        self.index.insert(key, slot);
        slot
    }

    fn sum_up(&mut self, mut leaving: impl FnMut(&Entry<L>)) {
        let idle = self.entries.iter().filter(|entry| entry.counts.waiting() == 0);
        let mut bytes: Vec<u64> = idle.map(|entry| entry.counts.bytes).collect();
        let half = bytes.len().div_ceil(2);
        if half > 0 {
            let (_, most, _) = bytes.select_nth_unstable(half - 1);
            let most = *most;
            let mut left = half;
            let rest = &mut self.rest;
            self.entries.retain(|entry| {
                let goes = left > 0 && entry.counts.waiting() == 0 && entry.counts.bytes <= most;
                if goes {
                    left -= 1;
                    leaving(entry);
                    rest.entries += 1;
                    rest.squares += (entry.counts.bytes as f64).powi(2);
                    rest.counts.add(&entry.counts);
                }
                !goes
            });
            self.index.clear();
            let slots = self.entries.iter().zip(0..);
            self.index.extend(slots.map(|(entry, slot)| (entry.key, slot)));
            self.generation = self.generation.wrapping_add(1);
        }
        // Where nearly all have packets waiting the queue is what bounds the table.
        self.full = self.capacity.max(self.entries.len() * 2);
    }
}

/// Spreads keys that are hashes already over all bits.
#[derive(Default)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(self.0 << 8 ^ u64::from(*byte));
        }
    }

    #[inline]
    fn write_u64(&mut self, key: u64) {
        self.0 = key.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_stay_exact_beyond_the_capacity_and_the_large_stay_told_apart() {
        let mut table: Table<u64> = Table::new(8);
        let mut folded = 0;
        for round in 0..10 {
            for key in 0..100u64 {
                let found = table.find(key, || key, |entry| folded += entry.counts.bytes);
                let counts = table.counts(found);
                counts.packets += 1;
                counts.sent += 1;
                counts.bytes += if key == 7 { 1_000_000 } else { 1 + round };
            }
        }
        let kept: u64 = table.entries().iter().map(|entry| entry.counts.bytes).sum();
        let all = 10 * 1_000_000 + 99 * (1..=10).sum::<u64>();
        assert_eq!(kept + table.rest().counts.bytes, all);
        assert_eq!(folded, table.rest().counts.bytes);
        assert!(table.entries().len() <= 8);
        let largest = table.entries().iter().find(|entry| entry.label == 7).unwrap();
        assert_eq!(largest.counts.bytes, 10_000_000);
        assert!(table.jain().unwrap() < 0.01);
    }

    #[test]
    fn who_has_packets_waiting_is_kept_and_found_again() {
        let mut table: Table<()> = Table::new(2);
        let waiting = table.find(1, || (), |_| {});
        table.counts(waiting).packets = 1;
        for key in 2..50 {
            let found = table.find(key, || (), |entry| assert_ne!(entry.key, 1));
            table.counts(found).bytes = key;
        }
        table.counts(waiting).bytes = 77;
        let entry = table.entries().iter().find(|entry| entry.key == 1).unwrap();
        assert_eq!(entry.counts.bytes, 77);
        // All wait: nobody can go.
        for key in 100..200 {
            let found = table.find(key, || (), |_| {});
            table.counts(found).packets = 1;
        }
        assert!(table.entries().len() >= 100);
    }

    #[test]
    fn equal_shares_are_an_index_of_one() {
        let mut table: Table<()> = Table::new(4);
        assert_eq!(table.jain(), None);
        for key in 0..100 {
            let found = table.find(key, || (), |_| {});
            table.counts(found).bytes = 5;
        }
        assert!((table.jain().unwrap() - 1.0).abs() < 1e-12);
    }
}
