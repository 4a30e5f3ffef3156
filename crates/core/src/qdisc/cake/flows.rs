//! The flow queues of all tins, and the 8-way set-associative hash that finds them.
//!
//! Piece of CAKE, section III-B: a queue is looked up by hash modulo the number of queues. If
//! another flow is using it, the seven other queues of its set of eight are tried. That search is
//! first for this flow's tag, then for an idle queue. Only the ninth flow of a set collides. (Facts
//! A.7.)
//!
//! The tags of a set lie together in half a cache line, apart from the queues' state, which takes
//! one line a queue. All tins' queues stand in one row, so that a queue's number says its tin,
//! and finding its line takes one step.

use alloc::boxed::Box;

use super::params::FlowMode;
use crate::aqm::cobalt::CobaltState;
use crate::arena::List;
use crate::memory::{filled, NoMemory};
use crate::packet::Packet;
use crate::sched::ways::{search, set_of, Found, Tags};
use crate::sched::{Account, Scheduled, Standing};

/// One queue.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(64))]
pub(super) struct Flow {
    pub(super) packets: List,
    /// The flow's standing, and the bytes that it may still send, framing included.
    pub(super) account: Account,
    /// Bytes queued (`len`).
    pub(super) backlog: u32,
    /// Places in the tin's host table.
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

/// The queues of all tins.
#[derive(Clone, Debug)]
pub(super) struct Flows {
    tags: Tags,
    pub(super) queues: Box<[Flow]>,
    /// Queues of each tin, minus one.
    mask: u32,
}

impl Flows {
    /// `count` queues (a power of two, at least eight) for each of so many `tins`.
    #[inline(never)]
    pub(super) fn new(tins: usize, count: u32) -> Result<Flows, NoMemory> {
        let all = tins * count as usize;
        Ok(Flows { tags: Tags::new(all)?, queues: filled(all, Flow::default())?, mask: count - 1 })
    }

    /// Forgets all flows, whose queues must be empty.
    pub(super) fn clear(&mut self) {
        self.tags.clear();
        self.queues.fill(Flow::default());
    }

    /// The queue of this number.
    #[inline(always)]
    pub(super) fn get(&self, flow_index: u32) -> Option<&Flow> {
        self.queues.get(flow_index as usize)
    }

    /// As [`Flows::get`], to be changed.
    #[inline(always)]
    pub(super) fn get_mut(&mut self, flow_index: u32) -> Option<&mut Flow> {
        self.queues.get_mut(flow_index as usize)
    }

    /// True if there are packets in the queue of this number.
    #[inline(always)]
    pub(super) fn has_packets(&self, flow_index: u32) -> bool {
        self.get(flow_index).is_some_and(|flow| !flow.packets.is_empty())
    }

    /// Index of a tin's first queue.
    #[inline(always)]
    pub(super) fn base(&self, tin_index: usize) -> u32 {
        tin_index as u32 * (self.mask + 1)
    }

    /// The queues of a tin.
    pub(super) fn of_tin(&self, tin_index: usize) -> &[Flow] {
        let base = self.base(tin_index) as usize;
        self.queues.get(base..base + self.mask as usize + 1).unwrap_or_default()
    }

    /// Index of a flow's tin.
    pub(super) fn tin_index_of(&self, flow_index: u32) -> usize {
        // The mask's bits are those of a number within a tin.
        (flow_index >> self.mask.count_ones()) as usize
    }

    /// A flow's number within its tin.
    #[inline(always)]
    pub(super) fn within_tin(&self, flow_index: u32) -> u32 {
        flow_index & self.mask
    }

    /// Index of the first queue to look at for the flow with `hash`.
    #[inline(always)]
    pub(super) fn home(&self, tin_index: usize, hash: u32) -> u32 {
        self.base(tin_index) + (hash & self.mask)
    }

    /// Index of the queue of the flow with `hash` and this `home`, if it has one that is in use.
    /// Now and then it is not found ([`Tags::guess`]).
    #[inline(always)]
    pub(super) fn guess(&self, home: u32, hash: u32) -> Option<u32> {
        self.tags.guess(home, hash).filter(|flow_index| !self.is_free(*flow_index))
    }

    /// True if the queue may be given to another flow.
    #[inline(always)]
    pub(super) fn is_free(&self, flow_index: u32) -> bool {
        self.get(flow_index).is_some_and(|flow| flow.account.standing.is_free())
    }

    /// Index of the queue for the flow with `hash`. Unless the set is full, it is the flow's from
    /// now on.
    pub(super) fn search(&mut self, tin_index: usize, hash: u32) -> (u32, Found) {
        let home = self.home(tin_index, hash);
        let free = (&*self.queues, |flow: &Flow| flow.account.standing.is_free());
        let (flow_index, found) = search(home, self.tags.find(home, hash), free);
        if found != Found::Collision {
            self.rename(flow_index, hash);
        }
        (flow_index, found)
    }

    /// The queue of `packet`'s flow within its tin, if it has one in use that no other flow has
    /// taken the tag of.
    #[cold]
    pub(super) fn find(&self, tin_index: usize, mode: FlowMode, packet: &Packet) -> Option<u32> {
        if mode == FlowMode::Flowblind {
            return Some(0);
        }
        let hash = mode.queue_hash(packet);
        let is_own = |index: &u32| self.tags.get(*index) == Some(hash);
        let mut used = set_of(self.home(tin_index, hash)).filter(|index| !self.is_free(*index));
        used.find(is_own).map(|index| self.within_tin(index))
    }

    /// The queue is that of the flow with `hash` from now on.
    pub(super) fn rename(&mut self, flow_index: u32, hash: u32) {
        self.tags.put(flow_index, hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_flows_fit_a_set_and_the_ninth_collides() {
        let mut flows = Flows::new(1, 64).unwrap();
        let hash = |n: u32| 5 + 64 * n + (n << 25);
        for i in 0..8u32 {
            let (flow_index, found) = flows.search(0, hash(i + 1));
            assert_eq!(found, Found::Fresh);
            assert_eq!(flow_index, (5 + i) % 8);
            flows.queues[flow_index as usize].account.standing = Standing::Old;
        }
        assert_eq!((flows.guess(5, hash(1)), flows.guess(5, hash(3))), (Some(5), Some(7)));
        assert_eq!(flows.search(0, hash(3)), (7, Found::Own { indirect: true }));
        assert_eq!(flows.guess(5, hash(9)), None);
        assert_eq!(flows.search(0, hash(9)), (5, Found::Collision));
        flows.rename(5, hash(9));
        // The tag has passed to the newcomer: the first flow now collides in its turn.
        assert_eq!(flows.guess(5, hash(9)), Some(5));
        flows.queues[0].account.standing = Standing::Idle;
        assert_eq!(flows.search(0, hash(1)), (0, Found::Fresh));
        assert_eq!(flows.guess(5, hash(1)), None, "not in use");
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
                let (flow_index, found) = flows.search(0, hash);
                if found == Found::Collision {
                    flows.rename(flow_index, hash);
                } else {
                    flows.queues[flow_index as usize].account.standing = Standing::Old;
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
