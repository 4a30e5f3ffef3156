//! One queue under one AQM: the common part of `codel`, `pie`, `red`, `blue`, `cobalt` and `sfb`.
//!
//! The queue, its limit and its books are here, once. An [`Aqm`] is asked about every arrival and
//! every departure. It is also told of arrivals that found no room, and of times at which the queue
//! was found empty. A discipline of this kind is its settings and an implementation of [`Aqm`].
//!
//! Invariants: order is never changed; `enqueued = sent + dropped + queued`; at most
//! [`super::fifo::MAX_PACKETS`] packets; what an AQM does for one packet is bounded.

use alloc::boxed::Box;

use crate::packet::Packet;
use crate::qdisc::booked::BookedQueue;
use crate::qdisc::{
    prepared, spare_of, Backlog, Config, ConfigError, Detail, Device, DropReason, Gate, Listed,
    Managed, PacketOwner, Qdisc, Snapshot, Totals,
};
use crate::steps::Budget;
use crate::time::Time;

pub use crate::qdisc::booked::Limit;

/// Fate of a packet by an AQM's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It goes on as it is.
    Pass,
    /// It goes on with CE: set already on departure, to be set by the queue on arrival.
    Marked,
    /// It is to be dropped, also if it was marked.
    Drop(DropReason),
}

/// Active queue management of one queue.
///
/// An arrival that finds room is put to [`Aqm::admits`], except while a packet is lent to the
/// parent or memory has to be taken first. If it was not admitted, [`Aqm::arrives`] decides. Unless
/// the packet is to be dropped, [`Aqm::queued`] follows or, for want of room or memory,
/// [`Aqm::refused`]. For each packet taken out [`Aqm::passes`] is called, and [`Aqm::leaves`]
/// unless it passes. When there was none to take, [`Aqm::found_empty`] is called. Times never
/// decrease.
///
/// `admits` and `passes` are for the common case, in which there is nothing to decide. They should
/// do with little and call nothing: what a call saves and restores costs as much as an AQM.
pub trait Aqm: Sized + Send + 'static {
    /// True to be asked also about arrivals for which there is no room, by [`Aqm::arrives`].
    const SEES_OVERFLOW: bool = false;
    /// True if nothing is marked or dropped on leaving: the first packet is next to be sent, and
    /// may be looked at where it is. False where Linux takes it out for a look.
    const LEAVES_ALL: bool = false;
    /// Settings of the discipline.
    type Params: Copy + Listed + Send;

    /// A queue that was always empty.
    fn new(params: &Self::Params, device: &Device) -> Result<Self, ConfigError>;
    /// Most that the queue may hold.
    fn limit(params: &Self::Params, device: &Device) -> Limit;
    /// Other settings from now on; what was learnt stays. `spare` was made with these settings, for
    /// this change: what it has may be taken.
    fn change(&mut self, params: &Self::Params, device: &Device, spare: &mut Self);

    /// `packet` comes to a queue that holds `backlog` and has room. True if it may stay as it is,
    /// which is then noted; else nothing is, and [`Aqm::arrives`] decides.
    fn admits(&mut self, packet: &Packet, backlog: Backlog, now: Time) -> bool {
        let _ = (packet, backlog, now);
        false
    }
    /// Decides about an arrival that is not admitted at once. Its `enqueued` is not set yet;
    /// `owner` may know more about it. On [`Fate::Marked`] the queue marks it.
    fn arrives(
        &mut self,
        packet: &Packet,
        backlog: Backlog,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> Fate {
        let _ = (packet, backlog, now, owner);
        Fate::Pass
    }
    /// The arrival found no room.
    fn refused(&mut self, now: Time) {
        let _ = now;
    }
    /// The arrival is queued, as one of `packets`.
    fn queued(&mut self, packets: u32) {
        let _ = packets;
    }
    /// `packet` was taken out and `left` remains. True if it passes as it is, which is then noted;
    /// else nothing is, and [`Aqm::leaves`] decides.
    fn passes(&mut self, packet: &Packet, left: Backlog, now: Time) -> bool;
    /// Decides about a packet that does not pass at once. May mark it.
    fn leaves(&mut self, packet: &mut Packet, left: Backlog, now: Time) -> Fate {
        let _ = (packet, left, now);
        Fate::Pass
    }
    /// There was no packet to take.
    fn found_empty(&mut self, now: Time) {
        let _ = now;
    }
    /// Nothing is queued. True if what was learnt is as of a queue that was always empty, or nearly
    /// so: packets may go past it, unseen.
    fn is_at_rest(&self) -> bool {
        false
    }
    /// `backlog` counts as queued from now on. Either the parent has taken a packet out to look at
    /// it, or sends it after that, or settings change.
    fn lends(&mut self, backlog: Backlog, now: Time) {
        let _ = (backlog, now);
    }
    /// The first packet was taken out and dropped for another reason than this AQM's.
    fn discarded(&mut self) {}
    /// The arrival, which is noted as queued, was refused elsewhere ([`Gate::refused`]).
    fn refused_below(&mut self, now: Time) {
        self.refused(now);
    }
    /// `packets` are left elsewhere ([`Gate::left`]). Which ones have gone is not known.
    fn left_below(&mut self, packets: u32) {
        let _ = packets;
    }
    /// Forgets what was learnt; counters stay.
    fn restart(&mut self, params: &Self::Params, device: &Device);
    /// The counters of this discipline alone. What is common goes to `totals`: marks, and
    /// `overlimits` where Linux counts them.
    fn statistics(&self, totals: &mut Totals) -> Detail;
}

/// One queue under `A`.
#[derive(Clone, Debug)]
pub struct Single<A: Aqm> {
    queue: BookedQueue,
    aqm: A,
    /// Packets that the parent has taken out to look at.
    lent: Backlog,
    params: A::Params,
    device: Device,
}

impl<A: Aqm> Single<A> {
    /// An empty queue for `device`.
    pub fn new(params: &A::Params, device: &Device) -> Result<Single<A>, ConfigError> {
        let limit = A::limit(params, device);
        Ok(Single {
            queue: BookedQueue::new(limit, limit.packets, device.memory)?,
            aqm: A::new(params, device)?,
            lent: Backlog::default(),
            params: *params,
            device: *device,
        })
    }

    /// The AQM, for its state.
    pub fn aqm(&self) -> &A {
        &self.aqm
    }

    /// Backlog that an arrival meets: packets that are queued, or lent.
    #[inline(always)]
    fn met(&self) -> Backlog {
        let Backlog { packets, bytes } = self.queue.backlog();
        Backlog { packets: packets + self.lent.packets, bytes: bytes + self.lent.bytes }
    }

    fn follow_limit(&mut self) {
        let Limit { packets, bytes } = A::limit(&self.params, &self.device);
        self.queue.set_limit(Limit {
            packets: packets.saturating_sub(self.lent.packets),
            bytes: bytes.saturating_sub(self.lent.bytes),
        });
    }

    /// Decides about an arrival that is not admitted at once; then queues it, or gives it up. Where
    /// packets wait elsewhere, as `below` says, the caller does that. It is one function: another
    /// call for each arrival would cost as much as the decision.
    #[inline(never)]
    fn enqueue_if_advised(
        &mut self,
        packet: &Packet,
        below: Option<&Backlog>,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> Fate {
        let (backlog, has_room) = match below {
            None => (self.met(), self.queue.has_room(packet)),
            Some(below) => (*below, self.has_room_below(below)),
        };
        let mut fate = Fate::Pass;
        if has_room || A::SEES_OVERFLOW {
            fate = self.aqm.arrives(packet, backlog, now, owner);
        }
        if matches!(fate, Fate::Pass | Fate::Marked) {
            if has_room && (below.is_some() || self.insert(packet, fate, now)) {
                self.aqm.queued(backlog.packets + 1);
                return fate;
            }
            self.aqm.refused(now);
            fate = Fate::Drop(DropReason::Overlimit);
        }
        if let (None, Fate::Drop(reason)) = (below, fate) {
            self.queue.refuse(packet, now, reason, owner);
        }
        fate
    }

    /// Puts an arrival into the queue; false if memory is short.
    #[inline(always)]
    fn insert(&mut self, packet: &Packet, fate: Fate, now: Time) -> bool {
        let Some(queued) = self.queue.insert(packet, now) else { return false };
        if fate == Fate::Marked {
            queued.mark_ce();
        }
        true
    }

    /// True if one more may wait elsewhere. Where an AQM sees overflows, the limit is that of the
    /// queue itself.
    #[cold]
    fn has_room_below(&self, below: &Backlog) -> bool {
        A::SEES_OVERFLOW || below.packets < A::limit(&self.params, &self.device).packets
    }

    /// Takes the first packet out of the queue; says where it lies and whether it passes at once.
    #[inline(always)]
    fn take(&mut self, now: Time) -> Option<(usize, bool)> {
        let Some((slot, _)) = self.queue.take() else {
            self.aqm.found_empty(now);
            return None;
        };
        let left = self.queue.backlog();
        Some((slot, self.aqm.passes(self.queue.packet(slot)?, left, now)))
    }

    /// Sends the packet in `slot`, which does not pass at once, or the first one after it that may
    /// leave. None if all were dropped, or if that takes more than a call may do.
    #[inline(never)]
    fn decide(
        &mut self,
        mut slot: usize,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> Option<&mut Packet> {
        let budget = Budget::default();
        let mut passes = false;
        while !passes {
            let left = self.queue.backlog();
            let verdict = self.aqm.leaves(self.queue.packet_mut(slot)?, left, now);
            let Fate::Drop(reason) = verdict else { break };
            self.queue.discard(slot, reason, owner);
            if !budget.spend() {
                return None;
            }
            (slot, passes) = self.take(now)?;
        }
        self.queue.packet_mut(slot)
    }
}

impl<A: Aqm> Qdisc for Single<A> {
    #[inline]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let backlog = self.queue.backlog();
        let is_lent = !A::LEAVES_ALL && self.lent.packets != 0;
        if is_lent || !self.queue.has_slot(packet) || !self.aqm.admits(packet, backlog, now) {
            self.enqueue_if_advised(packet, None, now, owner);
            return;
        }
        self.queue.insert_in_slot(packet, now);
        self.aqm.queued(backlog.packets + 1);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        match self.take(now)? {
            (slot, true) => self.queue.packet_mut(slot),
            (slot, false) => self.decide(slot, now, owner),
        }
    }

    #[inline]
    fn peek(&self) -> Option<&Packet> {
        if A::LEAVES_ALL {
            self.queue.head()
        } else {
            None
        }
    }

    fn lend(&mut self, lent: Backlog, now: Time) {
        self.lent = lent;
        self.follow_limit();
        self.aqm.lends(self.met(), now);
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.queue.head().map(|packet| packet.enqueued)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.queue.clear(owner);
        self.aqm.restart(&self.params, &self.device);
    }
}

impl<A: Aqm> Gate for Single<A> {
    fn open(&mut self, owner: &mut dyn PacketOwner) {
        while self.queue.drop_first(DropReason::Reset, owner) {
            self.aqm.discarded();
        }
    }

    fn decide(
        &mut self,
        packet: &Packet,
        below: Backlog,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> Fate {
        self.aqm.left_below(below.packets);
        self.enqueue_if_advised(packet, Some(&below), now, owner)
    }

    fn refused(&mut self, now: Time) {
        self.aqm.refused_below(now);
    }

    fn left(&mut self, packets: u32) {
        self.aqm.left_below(packets);
    }

    fn found_empty(&mut self, now: Time) {
        self.aqm.found_empty(now);
    }
}

impl<A: Aqm> Managed for Single<A> {
    fn snapshot(&self) -> Snapshot {
        let mut totals = self.queue.totals();
        let detail = self.aqm.statistics(&mut totals);
        Snapshot { totals, backlog: self.backlog(), detail }
    }

    fn is_at_rest(&self) -> bool {
        self.queue.is_empty() && self.lent.packets == 0 && self.aqm.is_at_rest()
    }

    fn gate(&mut self) -> Option<&mut dyn Gate> {
        if A::LEAVES_ALL {
            Some(self)
        } else {
            None
        }
    }

    fn config(&self) -> Config {
        self.params.into()
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        prepared::<A::Params>(config, &self.device, now)
    }

    fn prepare_on(
        &self,
        config: &Config,
        device: &Device,
    ) -> Result<Box<dyn Managed + Send>, ConfigError> {
        // The MTU is that of the beginning, as in Linux.
        let Device { tx_queue_len, now, .. } = *device;
        prepared::<A::Params>(config, &Device { tx_queue_len, ..self.device }, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of::<Single<A>>(spare) else { return };
        // What is due by now is done under the settings before.
        self.aqm.lends(self.met(), now);
        self.params = spare.params;
        self.device.tx_queue_len = spare.device.tx_queue_len;
        self.follow_limit();
        while self.queue.is_over_limit() {
            self.queue.drop_first(DropReason::Overlimit, owner);
            self.aqm.discarded();
        }
        self.aqm.change(&self.params, &self.device, &mut spare.aqm);
        self.queue.take_room(&mut spare.queue);
        self.aqm.lends(self.met(), now);
    }
}
