//! A set-associative look-up (Piece of CAKE, section III-B).
//!
//! A user's place is found by hash. If another user holds it, the seven other places of its set are
//! searched: first for the user's own, then for a free one. A set has eight places, and only its
//! ninth user shares.

use alloc::boxed::Box;

use crate::memory::{filled, NoMemory};

/// Places in a set.
pub const WAYS: u32 = 8;

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// One's own place; `indirect` if it is not the first of the search.
    Own {
        /// True if it is another than the first.
        indirect: bool,
    },
    /// A free place.
    Fresh,
    /// All eight are held by others: the first one.
    Collision,
}

/// Searches the set of `home`, from there on. Of all places' tags, `is_own` knows one's own; of
/// their states `is_free` those of places that may be taken.
#[inline(always)]
pub fn search<T, S>(
    home: u32,
    (tags, is_own): (&[T], impl Fn(&T) -> bool),
    (states, is_free): (&[S], impl Fn(&S) -> bool),
) -> (u32, Found) {
    if let Some(place) = first_in_set(tags, home, is_own) {
        return (place, Found::Own { indirect: place != home });
    }
    // Mostly none is free, which is found with less than which is the first.
    let is_some_free = set_at(states, home).is_some_and(|set| set.iter().any(&is_free));
    let free = if is_some_free { first_in_set(states, home, is_free) } else { None };
    free.map_or((home, Found::Collision), |place| (place, Found::Fresh))
}

/// The set of `home`, in one piece.
#[inline(always)]
fn set_at<T>(places: &[T], home: u32) -> Option<&[T; WAYS as usize]> {
    places.get((home & !(WAYS - 1)) as usize..)?.first_chunk()
}

/// The first place of the set of `home`, from there on, that `is` what is sought.
#[inline(always)]
fn first_in_set<T>(places: &[T], home: u32, is: impl Fn(&T) -> bool) -> Option<u32> {
    let set = set_at(places, home)?;
    let way = |n| (home + n) % WAYS;
    let found = (0..WAYS).map(way).find(|&way| is(&set[way as usize]))?;
    Some((home & !(WAYS - 1)) + found)
}

/// The places of the set of `home`, from there on.
#[inline(always)]
pub fn set_of(home: u32) -> impl Iterator<Item = u32> + Clone {
    let set = home & !(WAYS - 1);
    (0..WAYS).map(move |n| set + ((home + n) & (WAYS - 1)))
}

/// The user that each queue was given to last, as a hash.
#[derive(Clone, Debug)]
pub struct Ways {
    tags: Box<[u32]>,
}

impl Ways {
    /// For `queues` queues: a power of two, at least [`WAYS`].
    pub fn new(queues: u32) -> Result<Ways, NoMemory> {
        Ok(Ways { tags: filled(queues as usize, 0)? })
    }

    /// The queue of the user with this hash, whose it is from now on.
    #[inline]
    pub fn find<Q>(&mut self, hash: u32, queues: &[Q], is_idle: impl Fn(&Q) -> bool) -> u32 {
        let home = hash & (self.tags.len() as u32).wrapping_sub(1);
        if self.tags.get(home as usize) == Some(&hash) {
            return home;
        }
        let (queue, _) = search(home, (&self.tags, |tag| *tag == hash), (queues, is_idle));
        if let Some(tag) = self.tags.get_mut(queue as usize) {
            *tag = hash;
        }
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_users_fit_a_set_and_the_ninth_shares() {
        let mut ways = Ways::new(64).unwrap();
        let mut idle = [true; 64];
        for n in 0..8u32 {
            let queue = ways.find(5 + 64 * (n + 1), &idle, |idle| *idle);
            assert_eq!(queue, (5 + n) % 8);
            idle[queue as usize] = false;
        }
        let mut find = |hash, idle: &[bool; 64]| ways.find(hash, idle, |idle| *idle);
        assert_eq!(find(5 + 64, &idle), 5);
        assert_eq!(find(5 + 64 * 3, &idle), 7);
        assert_eq!(find(5 + 64 * 9, &idle), 5);
        idle[0] = true;
        // Its home has another's tag now; its own old one is nowhere.
        assert_eq!(find(5 + 64, &idle), 0);
    }
}
