//! Flows of each host over all queues: a count-min sketch of atomics.
//!
//! A host is counted at two places, found by different bits of its keyed hash; its load is the
//! smaller of both. So it is never too small, and too large only if both places are shared: with
//! 1,000 hosts that is one of 280. (Cormode and Muthukrishnan 2005.)

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::memory::{reserved, NoMemory};

/// Places in a row.
const PLACES: usize = 1 << 14;
/// Rows: two for sources, two for destinations.
const ROWS: usize = 4;

/// The loads of all hosts.
#[derive(Debug)]
pub struct Loads(Box<[AtomicU32]>);

impl Loads {
    pub(super) fn new() -> Result<Loads, NoMemory> {
        let mut places = reserved(PLACES * ROWS)?;
        places.resize_with(PLACES * ROWS, AtomicU32::default);
        Ok(Loads(places.into_boxed_slice()))
    }

    /// The two places of a host at `end`, 0 or 1.
    fn places(&self, end: usize, hash: u32) -> impl Iterator<Item = &AtomicU32> {
        let at = |row: usize, bits: u32| self.0.get(row * PLACES + bits as usize % PLACES);
        [at(2 * end, hash), at(2 * end + 1, hash >> 18)].into_iter().flatten()
    }

    /// So many flows more of the host with `hash`.
    pub fn count(&self, end: usize, hash: u32, flows: u32) {
        for place in self.places(end, hash) {
            place.fetch_add(flows, Relaxed);
        }
    }

    /// So many flows fewer.
    pub fn discount(&self, end: usize, hash: u32, flows: u32) {
        for place in self.places(end, hash) {
            place.fetch_sub(flows, Relaxed);
        }
    }

    /// Flows of the host with `hash`.
    pub fn load(&self, end: usize, hash: u32) -> u16 {
        let least = self.places(end, hash).map(|place| place.load(Relaxed)).min();
        least.map_or(0, |least| least.min(u32::from(u16::MAX)) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use std::vec::Vec;

    #[test]
    fn a_thousand_hosts_are_counted_right_but_for_few() {
        let (loads, mut random) = (Loads::new().unwrap(), Random::new(3));
        let hosts: Vec<u32> = (0..1000).map(|_| random.u32()).collect();
        for (n, &hash) in hosts.iter().enumerate() {
            loads.count(0, hash, n as u32 + 1);
        }
        let wrong = |end, extra: u16| {
            let expected = |n: usize| if end == 0 { n as u16 + extra } else { 0 };
            let off = |(n, hash): (usize, &u32)| loads.load(end, *hash) != expected(n);
            hosts.iter().enumerate().filter(|host| off(*host)).count()
        };
        assert!(wrong(0, 1) <= 10, "{}", wrong(0, 1));
        assert_eq!(wrong(1, 0), 0);
        for (n, &hash) in hosts.iter().enumerate() {
            assert!(loads.load(0, hash) > n as u16);
        }
        for (n, &hash) in hosts.iter().enumerate() {
            loads.discount(0, hash, n as u32 + 1);
        }
        assert!(hosts.iter().all(|&hash| loads.load(0, hash) == 0));
    }

    /// Hosts that share one place only, or whose places are each other's, are told apart.
    #[test]
    fn rows_have_nothing_to_do_with_each_other() {
        let loads = Loads::new().unwrap();
        for end in [0, 1] {
            loads.count(end, 9 << 18 | 5, 3);
            let others = [5 << 18 | 9, 8 << 18 | 5, 9 << 18 | 6].map(|hash| loads.load(end, hash));
            assert_eq!((loads.load(end, 9 << 18 | 5), others), (3, [0; 3]));
        }
        loads.count(1, 77, 1 << 20);
        assert_eq!(loads.load(1, 77), u16::MAX);
    }
}
