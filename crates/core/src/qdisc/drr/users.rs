//! DRR between users or flows: one queue each, one buffer for all (DRR-LDS, sections 2.2 and 3).

use alloc::boxed::Box;

use super::{Params, User};
use crate::aqm::age_limit::AgeLimit;
use crate::memory::{filled, NoMemory};
use crate::packet::Packet;
use crate::qdisc::child::Tally;
use crate::qdisc::longest::Longest;
use crate::qdisc::store::{Queue, Store, MAX_PACKETS};
use crate::qdisc::{Backlog, Device, DropReason};
use crate::sched::drr::Drr;
use crate::sched::scheduler::Scheduler;
use crate::sched::sharing::Sharing;
use crate::sched::ways::Ways;
use crate::sched::{Account, Scheduled};
use crate::steps::Budget;
use crate::time::Time;

/// The queues.
#[derive(Clone, Debug)]
pub(super) struct Users {
    queues: Box<[UserQueue]>,
    longest: Longest,
    ways: Ways,
    sharing: Sharing<Drr>,
    store: Store,
    user: User,
    quantum: u32,
    buffer: u32,
    max_age: Option<AgeLimit>,
    /// Queue at which the search for the longest begins: the one after the last that was robbed.
    victim: u32,
}

/// A user's queue.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(32))]
struct UserQueue {
    queue: Queue,
    account: Account,
}

const _: () = assert!(core::mem::size_of::<UserQueue>() == 32);

impl Scheduled for UserQueue {
    #[inline]
    fn account(&mut self) -> &mut Account {
        &mut self.account
    }
}

impl Users {
    /// Empty queues. `params` are valid.
    pub(super) fn new(params: &Params, device: &Device) -> Result<Users, NoMemory> {
        let mut queues = filled(params.queues as usize, UserQueue::default())?;
        Ok(Users {
            sharing: Sharing::new(params.savings, &mut queues, Drr::default()),
            queues,
            longest: Longest::of(params.queues)?,
            ways: Ways::new(params.queues)?,
            store: Store::new(params.buffer, device.memory)?,
            user: params.user,
            quantum: params.quantum.unwrap_or(device.mtu),
            buffer: params.buffer.min(MAX_PACKETS),
            max_age: params.max_age.map(AgeLimit),
            victim: 0,
        })
    }

    #[inline]
    pub(super) fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut Tally<'_>) {
        if self.store.len() >= self.buffer || !self.store.has_slot() {
            self.steal(owner);
        }
        let Users { queues, longest, ways, sharing, store, .. } = self;
        let is_idle = |user: &UserQueue| user.account.standing.is_free();
        let index = ways.find(self.user.hash(packet), queues, is_idle);
        let Some(user) = queues.get_mut(index as usize) else { return };
        let queued = store.insert(&mut user.queue, packet, now);
        debug_assert!(queued.is_some(), "there is room");
        longest.changed(index, |_| Some(&user.queue));
        sharing.arrived(queues, index, self.quantum, |user| store.head_len(&user.queue));
    }

    #[inline]
    pub(super) fn dequeue(&mut self, now: Time, owner: &mut Tally<'_>) -> Option<&mut Packet> {
        let Users { queues, longest, sharing, store, quantum, .. } = self;
        let budget = Budget::default();
        loop {
            let head = |user: &mut UserQueue| store.head_len(&user.queue);
            let index = sharing.choose(queues, head, |_| *quantum, &budget)?;
            let user = queues.get_mut(index as usize)?;
            let Some((slot, ..)) = store.detach(&mut user.queue) else {
                // Who has lost its last packet has no turn: the next call finds another.
                sharing.found_empty(queues, index);
                return None;
            };
            longest.changed(index, |_| Some(&user.queue));
            let packet = store.packet_mut(slot)?;
            if self.max_age.is_some_and(|limit| limit.exceeded_by(packet, now)) {
                store.discard(slot, DropReason::Congested, owner);
                let head = store.head_len(&user.queue);
                sharing.dropped(queues, index, head);
                budget.spend_on(longest.cost());
                if !budget.spend() {
                    return None;
                }
                continue;
            }
            let len = packet.len;
            sharing.sent(queues, index, len, |user| store.head_len(&user.queue));
            return store.send(slot);
        }
    }

    /// Takes the oldest packet of the longest queue; of several the next in turn after the last
    /// victim. In a short buffer most queues are equally long, and the paper says nothing about
    /// that. To take the first by number would rob the same users again and again.
    #[cold]
    fn steal(&mut self, owner: &mut Tally<'_>) {
        let queue = |index: u32| self.queues.get(index as usize).map(|user| &user.queue);
        let Some(index) = self.longest.from(self.victim, queue) else { return };
        self.victim = index.wrapping_add(1);
        let Some(user) = self.queues.get_mut(index as usize) else { return };
        self.store.drop_first(&mut user.queue, DropReason::Overlimit, owner);
        self.longest.changed(index, |_| Some(&user.queue));
        let head = self.store.head_len(&user.queue);
        self.sharing.dropped(&mut self.queues, index, head);
    }

    #[inline]
    pub(super) fn next_event(&self) -> Option<Time> {
        // In the past: now.
        (self.store.len() > 0).then_some(Time::ZERO)
    }

    #[inline]
    pub(super) fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    /// Takes everything out, oldest packet first.
    pub(super) fn drain(&mut self, mut take: impl FnMut(&Packet)) {
        let mut all = self.store.gather(self.queues.iter_mut().map(|user| &mut user.queue));
        while let Some(packet) = self.store.take(&mut all) {
            take(&packet);
        }
    }

    pub(super) fn reset(&mut self, owner: &mut Tally<'_>) {
        for index in 0..self.queues.len() {
            if let Some(user) = self.queues.get_mut(index) {
                self.store.clear(&mut user.queue, owner);
            }
            self.sharing.dropped(&mut self.queues, index as u32, None);
        }
        self.longest.clear();
        self.victim = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::{parse, Config, Discard};

    #[test]
    fn a_queue_that_has_a_turn_without_packets_holds_up_nobody() {
        for words in ["drr", "drr savings 9000"] {
            let Config::Drr(params) = parse(words).unwrap() else { panic!("{words}") };
            let mut users = Users::new(&params, &Device::default()).unwrap();
            let mut counts = [0; DropReason::COUNT];
            let mut owner = Tally { owner: &mut Discard, dropped: &mut counts };
            for flow in 1..=4 {
                let mut packet = Packet::new(flow, 1000);
                packet.flow = flow;
                users.enqueue(&packet, Time(flow), &mut owner);
            }
            // Of two that have a turn the packets go, behind the scheduler's back.
            for user in users.queues.iter_mut().filter(|user| !user.queue.is_empty()).step_by(2) {
                users.store.clear(&mut user.queue, &mut owner);
            }
            let sent = (9..15).filter(|at| users.dequeue(Time(*at), &mut owner).is_some()).count();
            assert_eq!((sent, users.next_event()), (2, None), "{words}");
        }
    }
}
