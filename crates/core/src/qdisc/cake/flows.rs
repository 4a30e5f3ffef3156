//! The flow queues of all tiers, and the 8-way set-associative hash that finds them.
//!
//! Piece of CAKE, section III-B: a queue is looked up by hash modulo the number of queues; if
//! another flow is using it, the seven other queues of its set of eight are tried, first for this
//! flow's tag, then for an idle queue. Only the ninth flow of a set collides. (Facts A.7.)
//!
//! The tags of a set lie together in half a cache line, apart from the queues' state, which takes
//! one line a queue. All tiers' queues stand in one row, so that a queue's number says its tier,
//! and finding its line takes one step.

use alloc::boxed::Box;

use super::params::FlowMode;
use crate::aqm::cobalt::CobaltState;
use crate::arena::List;
use crate::memory::{filled, NoMemory};
use crate::packet::Packet;
use crate::sched::ways::{search, set_of, Found};
use crate::sched::{Account, Scheduled, Standing};

/// One queue.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Flow {
    pub(super) packets: List,
    /// Where the flow stands, and what it may still send, framing included.
    pub(super) account: Account,
    /// Bytes queued (`len`).
    pub(super) backlog: u32,
    /// Places in the tier's host table.
    pub(super) hosts: [u16; 2],
    pub(super) cobalt: CobaltState,
}

const _: () = assert!(core::mem::size_of::<Flow>() == 64);

impl Flow {
    /// True if the flow is in use without a standing queue.
    pub(super) fn is_sparse(&self) -> bool {
        matches!(self.account.standing, Standing::New | Standing::Waiting | Standing::Decaying)
    }
}

impl Scheduled for Flow {
    #[inline(always)]
    fn account(&mut self) -> &mut Account {
        &mut self.account
    }
}

/// The queues of all tiers.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    tags: Box<[u32]>,
    pub(super) queues: Box<[Flow]>,
    /// Queues of each tier, minus one.
    mask: u32,
}

impl Flows {
    /// `count` queues (a power of two, at least eight) for each of `tins` tiers.
    #[inline(never)]
    pub(super) fn new(tins: usize, count: u32) -> Result<Flows, NoMemory> {
        let all = tins * count as usize;
        Ok(Flows { tags: filled(all, 0)?, queues: filled(all, Flow::default())?, mask: count - 1 })
    }

    /// Forgets all flows, whose queues must be empty.
    pub(super) fn clear(&mut self) {
        self.tags.fill(0);
        self.queues.fill(Flow::default());
    }

    /// The first queue of a tier.
    #[inline(always)]
    pub(super) fn base(&self, tin: usize) -> u32 {
        tin as u32 * (self.mask + 1)
    }

    /// The queues of a tier.
    pub(super) fn of_tin(&self, tin: usize) -> &[Flow] {
        let base = self.base(tin) as usize;
        self.queues.get(base..base + self.mask as usize + 1).unwrap_or_default()
    }

    /// The tier of `queue`.
    pub(super) fn tin_of(&self, queue: u32) -> usize {
        // The mask's bits are those of a number within a tier.
        (queue >> self.mask.count_ones()) as usize
    }

    /// Number of `queue` within its tier.
    #[inline(always)]
    pub(super) fn within_tin(&self, queue: u32) -> u32 {
        queue & self.mask
    }

    /// The first queue to look at for the flow with `hash`.
    #[inline(always)]
    pub(super) fn home(&self, tin: usize, hash: u32) -> u32 {
        self.base(tin) + (hash & self.mask)
    }

    /// The queue of the flow with `hash` in the tier whose queues start at `base`, if it is the
    /// first to look at and in use.
    #[inline(always)]
    pub(super) fn direct(&self, base: u32, hash: u32) -> Option<u32> {
        let home = base + (hash & self.mask);
        (self.tags.get(home as usize) == Some(&hash) && !self.is_free(home)).then_some(home)
    }

    /// True if `queue` may be given to another flow.
    #[inline(always)]
    pub(super) fn is_free(&self, queue: u32) -> bool {
        self.queues.get(queue as usize).is_some_and(|flow| flow.account.standing.is_free())
    }

    /// The queue of the flow with `hash` in tier `tin`. Unless the set is full, it is the flow's
    /// from now on.
    pub(super) fn search(&mut self, tin: usize, hash: u32) -> (u32, Found) {
        let is_own = |queue: u32| self.tags.get(queue as usize) == Some(&hash);
        let is_free = |queue: u32| self.is_free(queue);
        let (queue, found) = search(self.home(tin, hash), is_own, is_free);
        if found != Found::Collision {
            self.rename(queue, hash);
        }
        (queue, found)
    }

    /// The queue of `packet`'s flow within its tier, if it has one in use that no other flow has
    /// taken the tag of.
    #[cold]
    pub(super) fn find(&self, tin: usize, mode: FlowMode, packet: &Packet) -> Option<u32> {
        if mode == FlowMode::Flowblind {
            return Some(0);
        }
        let hash = mode.queue_hash(packet);
        let is_own = |queue: &u32| self.tags.get(*queue as usize) == Some(&hash);
        let mut places = set_of(self.home(tin, hash)).filter(|queue| !self.is_free(*queue));
        places.find(is_own).map(|queue| self.within_tin(queue))
    }

    /// `queue` is that of the flow with `hash` from now on.
    pub(super) fn rename(&mut self, queue: u32, hash: u32) {
        if let Some(tag) = self.tags.get_mut(queue as usize) {
            *tag = hash;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_flows_fit_a_set_and_the_ninth_collides() {
        let mut flows = Flows::new(1, 64).unwrap();
        for i in 0..8u32 {
            let (queue, found) = flows.search(0, 5 + 64 * (i + 1));
            assert_eq!(found, Found::Fresh);
            assert_eq!(queue, (5 + i) % 8);
            flows.queues[queue as usize].account.standing = Standing::Old;
        }
        assert_eq!(flows.direct(0, 5 + 64), Some(5));
        assert_eq!(flows.direct(0, 5 + 64 * 3), None);
        assert_eq!(flows.search(0, 5 + 64 * 3), (7, Found::Own { indirect: true }));
        assert_eq!(flows.search(0, 5 + 64 * 9), (5, Found::Collision));
        flows.rename(5, 5 + 64 * 9);
        // The tag has passed to the newcomer: the first flow now collides in its turn.
        assert_eq!(flows.direct(0, 5 + 64 * 9), Some(5));
        flows.queues[0].account.standing = Standing::Idle;
        assert_eq!(flows.search(0, 5 + 64), (0, Found::Fresh));
    }

    #[test]
    fn collision_probability_follows_the_paper() {
        // Figure 1: with n active flows a new one collides if its set of 8 is full:
        // P[Binomial(n, 1/128) >= 8] = 0.24 % at 256 flows, 5.0 % at 512 of 1024 queues.
        let mut random = crate::random::Random::new(11);
        let (trials, mut collisions) = (400, [0u32; 2]);
        for _ in 0..trials {
            let mut flows = Flows::new(1, 1024).unwrap();
            for n in 0..512 {
                let hash = random.u32() | 1;
                let (queue, found) = flows.search(0, hash);
                if found == Found::Collision {
                    flows.rename(queue, hash);
                } else {
                    flows.queues[queue as usize].account.standing = Standing::Old;
                }
                let window = match n {
                    240..272 => 0,
                    480..512 => 1,
                    _ => continue,
                };
                collisions[window] += u32::from(found == Found::Collision);
            }
        }
        let share = |i: usize| collisions[i] * 10_000 / (trials * 32);
        assert!((5..60).contains(&share(0)), "{} per 10,000 at 256 flows", share(0));
        assert!((300..650).contains(&share(1)), "{} per 10,000 at 500 flows", share(1));
    }
}
