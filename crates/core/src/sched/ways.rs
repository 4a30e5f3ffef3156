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

/// Searches the set of `home`, from there on, unless one's `own` place is known. Of all places'
/// states `is_free` knows those of places that may be taken.
#[inline(always)]
pub fn search<S>(
    home: u32,
    own: Option<u32>,
    (states, is_free): (&[S], impl Fn(&S) -> bool),
) -> (u32, Found) {
    if let Some(place) = own {
        return (place, Found::Own { indirect: place != home });
    }
    // Mostly none is free, which is found with less than which is the first.
    let set = set_at(states, home);
    let is_some_free = set.is_some_and(|set| set.iter().any(&is_free));
    let free =
        if is_some_free { set.and_then(|set| first_in_set(set, home, is_free)) } else { None };
    free.map_or((home, Found::Collision), |place| (place, Found::Fresh))
}

/// The set of `home`, in one piece.
#[inline(always)]
fn set_at<T>(places: &[T], home: u32) -> Option<&[T; WAYS as usize]> {
    places.get((home & !(WAYS - 1)) as usize..)?.first_chunk()
}

/// The first place of the `set` of `home`, from there on, that `is` what is sought.
#[inline(always)]
fn first_in_set<T>(set: &[T; WAYS as usize], home: u32, is: impl Fn(&T) -> bool) -> Option<u32> {
    let way = |n| (home + n) % WAYS;
    let found = (0..WAYS).map(way).find(|&way| is(&set[way as usize]))?;
    Some((home & !(WAYS - 1)) + found)
}

/// The first of all `places` in the set of `home`, from there on, that `is` what is sought.
#[inline(always)]
pub fn first<T>(places: &[T], home: u32, is: impl Fn(&T) -> bool) -> Option<u32> {
    first_in_set(set_at(places, home)?, home, is)
}

/// The places of the set of `home`, from there on.
#[inline(always)]
pub fn set_of(home: u32) -> impl Iterator<Item = u32> + Clone {
    let set = home & !(WAYS - 1);
    (0..WAYS).map(move |n| set + ((home + n) & (WAYS - 1)))
}

/// Tags of all places: hashes of those who hold them, or held them last. Those who hold places of a
/// set have different ones.
#[derive(Clone, Debug)]
pub struct Tags {
    sets: Box<[Set]>,
}

/// The tags of a set. Seven bits of each lie in a word of their own, where one of eight is found
/// without a branch: no processor foresees which.
#[derive(Clone, Copy, Debug)]
struct Set {
    tags: [u32; WAYS as usize],
    bits: u64,
}

impl Set {
    /// Nobody has held its places: no tag has these bits.
    const NEW: Set = Set { tags: [0; WAYS as usize], bits: HIGH };
}

/// The lowest bit of each byte.
const LOW: u64 = u64::from_ne_bytes([1; 8]);
/// The highest bit of each byte.
const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);

/// The bits of a tag that are compared first: the highest ones, since the lowest choose the set.
#[inline(always)]
fn bits(tag: u32) -> u64 {
    u64::from(tag >> 25)
}

impl Tags {
    /// For so many `places`: a multiple of [`WAYS`].
    pub fn new(places: usize) -> Result<Tags, NoMemory> {
        Ok(Tags { sets: filled(places / WAYS as usize, Set::NEW)? })
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.sets.fill(Set::NEW);
    }

    #[inline(always)]
    fn set(&self, home: u32) -> Option<&Set> {
        self.sets.get((home / WAYS) as usize)
    }

    /// The tag of a place.
    pub fn get(&self, place: u32) -> Option<u32> {
        Some(self.set(place)?.tags[(place % WAYS) as usize])
    }

    /// The place is that of `tag` from now on.
    pub fn put(&mut self, place: u32, tag: u32) {
        let Some(set) = self.sets.get_mut((place / WAYS) as usize) else { return };
        set.tags[(place % WAYS) as usize] = tag;
        let shift = 8 * (place % WAYS);
        set.bits = set.bits & !(0xff << shift) | bits(tag) << shift;
    }

    /// The first place of the set of `home`, from there on, with this tag.
    #[inline(always)]
    pub fn find(&self, home: u32, tag: u32) -> Option<u32> {
        first_in_set(&self.set(home)?.tags, home, |other| *other == tag)
    }

    /// A place of the set of `home` with this tag, without a search. None also where another place
    /// with the same bits hides it.
    #[inline(always)]
    pub fn guess(&self, home: u32, tag: u32) -> Option<u32> {
        let set = self.set(home)?;
        // Where bits are equal, a highest bit is left. Behind the first, others may be, too.
        let differences = set.bits ^ bits(tag).wrapping_mul(LOW);
        let equal = differences.wrapping_sub(LOW) & !differences & HIGH | 1 << 63;
        let way = equal.trailing_zeros() / 8;
        (set.tags[way as usize] == tag).then_some(home & !(WAYS - 1) | way)
    }
}

/// The user that each queue was given to last, as a hash.
#[derive(Clone, Debug)]
pub struct Ways {
    tags: Tags,
    mask: u32,
}

impl Ways {
    /// For `queues` queues: a power of two, at least [`WAYS`].
    pub fn new(queues: u32) -> Result<Ways, NoMemory> {
        Ok(Ways { tags: Tags::new(queues as usize)?, mask: queues - 1 })
    }

    /// The queue of the user with this hash, whose it is from now on.
    #[inline]
    pub fn find<Q>(&mut self, hash: u32, queues: &[Q], is_idle: impl Fn(&Q) -> bool) -> u32 {
        let home = hash & self.mask;
        if self.tags.get(home) == Some(hash) {
            return home;
        }
        let (queue, _) = search(home, self.tags.find(home, hash), (queues, is_idle));
        self.tags.put(queue, hash);
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against a search, as tags come and go, of which some differ in their lowest bits only.
    #[test]
    fn a_guess_is_right_and_wrong_only_where_bits_are_equal() {
        let mut random = crate::random::Random::new(5);
        let mut tags = Tags::new(32).unwrap();
        let known = [1 << 25, 5 << 25, 0x7f << 25, u32::MAX, 0x80 << 24, 3, 7 << 25, 1 << 25 | 9];
        let (mut found, mut hidden) = (0, 0);
        for _ in 0..20_000 {
            let (place, home) = (random.u32() % 32, random.u32() % 32);
            let [put, tag] = [(); 2].map(|()| known[random.u32() as usize % known.len()]);
            if tags.find(place, put).is_none() {
                tags.put(place, put);
                assert_eq!(tags.get(place), Some(put));
            }
            match (tags.guess(home, tag), tags.find(home, tag)) {
                (None, Some(_)) => {
                    let equal =
                        |place| tags.get(place).is_some_and(|other| bits(other) == bits(tag));
                    assert!(set_of(home).filter(|place| equal(*place)).count() >= 2);
                    hidden += 1;
                }
                (guess, right) => {
                    assert_eq!(guess, right);
                    found += u32::from(right.is_some());
                }
            }
        }
        assert!(found > 1_000 && hidden > 100, "{found} found, {hidden} hidden");
        assert_eq!((tags.guess(32, 3), tags.find(32, 3), tags.get(32)), (None, None, None));
    }

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
