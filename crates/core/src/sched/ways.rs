//! A set-associative look-up: which queue is a user's (Piece of CAKE, section III-B).
//!
//! A queue is found by hash; if another user holds it, the seven other queues of its set of eight
//! are tried, first for this user's, then for an idle one. Only the ninth user of a set shares.
//! The tags of a set lie together in half a cache line, apart from the queues.

use alloc::boxed::Box;
use alloc::vec;

/// Queues in a set.
pub const WAYS: u32 = 8;

/// Which user each queue was given to last.
#[derive(Clone, Debug)]
pub struct Ways {
    tags: Box<[u32]>,
}

impl Ways {
    /// For `queues` queues: a power of two, at least [`WAYS`].
    pub fn new(queues: u32) -> Ways {
        Ways { tags: vec![0; queues as usize].into_boxed_slice() }
    }

    /// The queue of the user with this hash, whose it is from now on.
    #[inline]
    pub fn find(&mut self, hash: u32, is_idle: impl Fn(u32) -> bool) -> u32 {
        let home = hash & (self.tags.len() as u32 - 1);
        if self.tags[home as usize] == hash && !is_idle(home) {
            return home;
        }
        let set = home & !(WAYS - 1);
        let way = |n: u32| set + ((home + n) & (WAYS - 1));
        let own = (0..WAYS).map(way).find(|&queue| self.tags[queue as usize] == hash);
        let queue = own.or_else(|| (0..WAYS).map(way).find(|&queue| is_idle(queue)));
        let queue = queue.unwrap_or(home);
        self.tags[queue as usize] = hash;
        queue
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_users_fit_a_set_and_the_ninth_shares() {
        let mut ways = Ways::new(64);
        let mut idle = [true; 64];
        for n in 0..8u32 {
            let queue = ways.find(5 + 64 * (n + 1), |queue| idle[queue as usize]);
            assert_eq!(queue, (5 + n) % 8);
            idle[queue as usize] = false;
        }
        let mut find = |hash, idle: &[bool; 64]| ways.find(hash, |queue| idle[queue as usize]);
        assert_eq!(find(5 + 64, &idle), 5);
        assert_eq!(find(5 + 64 * 3, &idle), 7);
        assert_eq!(find(5 + 64 * 9, &idle), 5);
        idle[0] = true;
        // Its home has another's tag now; its own old one is nowhere.
        assert_eq!(find(5 + 64, &idle), 0);
    }
}
