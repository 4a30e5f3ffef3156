//! The load of each host: how many flows that count it has in this tin, as source and destination.
//!
//! A set-associative table like the flows' (1024 places, 8 ways): a place keeps its tag for as long
//! as a flow counts there. A set whose places are all taken shares the original one. (Facts A.7,
//! A.8; Piece of CAKE, section III-B.1.)

use alloc::boxed::Box;

use super::parallel::Everywhere;
use crate::memory::{filled, NoMemory};
use crate::sched::ways::{first, search, set_of, Found};

/// One end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Source = 0,
    Destination = 1,
}

/// The hosts of all tins.
#[derive(Debug)]
pub(super) struct Hosts {
    /// The hash of the host at each place, as source and as destination.
    tags: Box<[[u32; 2]]>,
    /// Its counting flows, apart from the hashes: each packet that opens a turn reads them.
    loads: Box<[[u16; 2]]>,
    /// Places of each tin, minus one.
    mask: u32,
    /// Places with flows that count, as source and as destination.
    in_use: [u32; 2],
    /// The same over all parallel queues, if this is one.
    pub(super) everywhere: Option<Everywhere>,
}

impl Hosts {
    /// Tables of `places` (a power of two, at least eight) for each of so many `tins`.
    #[inline(never)]
    pub(super) fn new(tins: usize, places: u32) -> Result<Hosts, NoMemory> {
        let all = tins * places as usize;
        let (tags, loads) = (filled(all, [0; 2])?, filled(all, [0; 2])?);
        Ok(Hosts { tags, loads, mask: places - 1, in_use: [0; 2], everywhere: None })
    }

    /// Forgets all hosts.
    pub(super) fn clear(&mut self) {
        self.withdraw();
        self.tags.fill([0; 2]);
        self.loads.fill([0; 2]);
        self.in_use = [0; 2];
    }

    /// The place of the host with `hash` in the tin that begins at `base`. It is the one that has
    /// its tag, else one that no flow counts in, else one that it shares.
    pub(super) fn find(&mut self, base: u32, end: End, hash: u32) -> u16 {
        let end = end as usize;
        let home = base + (hash & self.mask);
        let own = first(&self.tags, home, |tags| tags[end] == hash);
        let free = (&*self.loads, |loads: &[u16; 2]| loads[end] == 0);
        let (at, found) = search(home, own, free);
        let place = (at - base) as u16;
        if self.everywhere.is_some() && found == Found::Collision {
            // Who is counted under one name must be discounted under the same.
            return place;
        }
        if let Some(tags) = self.tags.get_mut(at as usize) {
            tags[end] = hash;
        }
        place
    }

    /// The host at `place`.
    pub(super) fn tag(&self, base: u32, end: End, place: u16) -> u32 {
        let tags = self.tags.get((base + u32::from(place)) as usize);
        tags.map_or(0, |tags| tags[end as usize])
    }

    /// Takes its flows out of the loads that parallel queues share.
    fn withdraw(&mut self) {
        let Some(everywhere) = &self.everywhere else { return };
        let of_tin = self.mask as usize + 1;
        for (n, (tags, loads)) in self.tags.iter().zip(&self.loads).enumerate() {
            let base = (n - n % of_tin) as u32;
            for end in [End::Source, End::Destination] {
                everywhere.discount(base, end, tags[end as usize], loads[end as usize]);
            }
        }
    }

    /// One more flow counts at `place`.
    #[inline(always)]
    pub(super) fn count(&mut self, base: u32, end: End, place: u16) {
        let Some(loads) = self.loads.get_mut((base + u32::from(place)) as usize) else { return };
        let load = &mut loads[end as usize];
        self.in_use[end as usize] += u32::from(*load == 0);
        *load = load.saturating_add(1);
        if let Some(everywhere) = &self.everywhere {
            everywhere.count(base, end, self.tag(base, end, place));
        }
    }

    /// One flow fewer counts at `place`.
    #[inline(always)]
    pub(super) fn discount(&mut self, base: u32, end: End, place: u16) {
        let Some(loads) = self.loads.get_mut((base + u32::from(place)) as usize) else { return };
        let load = &mut loads[end as usize];
        debug_assert!(*load > 0, "a host was discounted more often than counted");
        self.in_use[end as usize] -= u32::from(*load == 1);
        *load = load.saturating_sub(1);
        if let Some(everywhere) = &self.everywhere {
            everywhere.discount(base, end, self.tag(base, end, place), 1);
        }
    }

    /// Hosts with flows that count, as sources and as destinations.
    pub(super) fn in_use(&self) -> [u32; 2] {
        self.in_use
    }

    /// Hosts with flows that count at one end, and `hash` with them.
    pub(super) fn in_use_with(&self, base: u32, end: End, hash: u32) -> u32 {
        let end = end as usize;
        let mut places = set_of(hash & self.mask).map(|place| (base + place) as usize);
        let known = places.any(|at| {
            self.tags.get(at).is_some_and(|tags| tags[end] == hash)
                && self.loads.get(at).is_some_and(|loads| loads[end] > 0)
        });
        self.in_use[end] + u32::from(!known)
    }

    /// Flows that count at `place`.
    #[inline(always)]
    pub(super) fn load(&self, base: u32, end: End, place: u16) -> u16 {
        let loads = self.loads.get((base + u32::from(place)) as usize);
        loads.map_or(0, |loads| loads[end as usize])
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        self.withdraw();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::ways::WAYS;

    #[test]
    fn ninth_host_of_a_set_shares_a_place() {
        let mut hosts = Hosts::new(1, 64).unwrap();
        // All of these have their home in place 3 of the first set.
        let places: [u16; WAYS as usize] = core::array::from_fn(|i| {
            let place = hosts.find(0, End::Source, 3 + 64 * i as u32);
            hosts.count(0, End::Source, place);
            place
        });
        assert_eq!(places, [3, 4, 5, 6, 7, 0, 1, 2]);
        assert_eq!(hosts.find(0, End::Source, 3 + 64 * 8), 3);
        assert_eq!(hosts.find(0, End::Source, 3 + 64 * 5), 0);
        hosts.discount(0, End::Source, 6);
        assert_eq!(hosts.find(0, End::Source, 3 + 64 * 9), 6);
        // The other end has loads of its own.
        assert_eq!(hosts.find(0, End::Destination, 3 + 64), 3);
    }

    /// A host is in use while a flow counts there, at each end for itself.
    #[test]
    fn hosts_with_flows_are_counted_with_and_without_a_newcomer() {
        use End::{Destination, Source};
        let mut hosts = Hosts::new(2, 64).unwrap();
        let base = 64;
        assert_eq!((hosts.in_use(), hosts.in_use_with(base, Source, 5)), ([0, 0], 1));
        let flow = |hosts: &mut Hosts, end, hash| {
            let place = hosts.find(base, end, hash);
            hosts.count(base, end, place);
            place
        };
        let five = flow(&mut hosts, Source, 5);
        flow(&mut hosts, Source, 5);
        let other = flow(&mut hosts, Source, 5 + 64);
        flow(&mut hosts, Destination, 9);
        assert_eq!((hosts.in_use(), hosts.load(base, Source, five)), ([2, 1], 2));
        for (end, hash, with) in [
            (Source, 5, 2),
            (Source, 5 + 64, 2),
            (Source, 5 + 128, 3),
            (Source, 9, 3),
            (Destination, 9, 1),
            (Destination, 5, 2),
        ] {
            assert_eq!(hosts.in_use_with(base, end, hash), with, "{end:?} {hash}");
        }
        // Another tin has hosts of its own.
        assert_eq!(hosts.in_use_with(0, Source, 5), 3);
        hosts.discount(base, Source, five);
        assert_eq!((hosts.in_use(), hosts.in_use_with(base, Source, 5)), ([2, 1], 2));
        hosts.discount(base, Source, five);
        // Its tag is still there, but no flow.
        assert_eq!((hosts.in_use(), hosts.in_use_with(base, Source, 5)), ([1, 1], 2));
        hosts.discount(base, Source, other);
        assert_eq!(hosts.in_use(), [0, 1]);
        hosts.clear();
        assert_eq!((hosts.in_use(), hosts.in_use_with(base, Destination, 9)), ([0, 0], 1));
    }
}
