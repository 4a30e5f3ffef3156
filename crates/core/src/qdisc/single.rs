//! One queue under one AQM: what `pie`, `red`, `blue`, `cobalt` and `sfb` have in common.
//!
//! The queue, its limit and its books are here, once. An [`Aqm`] is asked about every arrival and
//! every departure, and told of the arrivals that found no room and of the times that the queue was
//! found empty. A discipline of this kind is its settings and an implementation of [`Aqm`].
//!
//! Invariants: order is never changed; `enqueued = sent + dropped + queued`; at most
//! [`super::fifo::MAX_PACKETS`] packets; what an AQM does for one packet is bounded.

use crate::packet::Packet;
use crate::qdisc::fifo::BYTES_PER_SLOT;
use crate::qdisc::store::{Queue, Store, MAX_PACKETS};
use crate::qdisc::{Backlog, ConfigError, Device, DropReason, PacketOwner, Qdisc};
use crate::tc::stats::{Detail, Snapshot, Totals};
use crate::tc::{Config, Listed};
use crate::time::Time;

/// What an AQM makes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing.
    Pass,
    /// It carries CE now.
    Marked,
    /// It is to be dropped, also if it was marked.
    Drop(DropReason),
}

/// How much a queue may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Packets.
    pub packets: u32,
    /// Bytes; no bound if `u64::MAX`.
    pub bytes: u64,
}

impl Limit {
    /// A limit in packets.
    pub fn packets(limit: u32) -> Limit {
        Limit { packets: limit.min(MAX_PACKETS), bytes: u64::MAX }
    }

    /// A limit in bytes, with a slot for each [`BYTES_PER_SLOT`] of them.
    pub fn bytes(limit: u32) -> Limit {
        let packets = (limit / BYTES_PER_SLOT).saturating_add(1).min(MAX_PACKETS);
        Limit { packets, bytes: limit.into() }
    }
}

/// Active queue management of one queue.
///
/// Calls come in this order: for each arrival [`Aqm::arrives`], then [`Aqm::refused`] or
/// [`Aqm::queued`] unless it was to be dropped; for each packet taken out [`Aqm::leaves`]; and
/// [`Aqm::found_empty`] when there was none to take. Times never decrease.
pub trait Aqm: Sized {
    /// True to be asked also about arrivals for which there is no room.
    const SEES_OVERFLOW: bool = false;
    /// True if [`Aqm::leaves`] neither marks nor drops: the first packet is the next to be sent.
    const LEAVES_ALL: bool = false;
    /// Settings of the discipline.
    type Params: Copy + Listed;

    /// A queue that was always empty.
    fn new(params: &Self::Params, device: &Device) -> Result<Self, ConfigError>;
    /// How much the queue may hold.
    fn limit(params: &Self::Params, device: &Device) -> Limit;
    /// Other settings from now on; what was learnt stays.
    fn change(&mut self, params: &Self::Params, device: &Device) -> Result<(), ConfigError>;

    /// `packet` comes to a queue that holds `backlog`. May mark it. Its `enqueued` is not set yet.
    fn arrives(&mut self, packet: &mut Packet, backlog: Backlog, now: Time) -> Verdict;
    /// The arrival found no room.
    fn refused(&mut self, now: Time) {
        let _ = now;
    }
    /// The arrival is queued, as one of `packets`.
    fn queued(&mut self, packets: u32) {
        let _ = packets;
    }
    /// `packet` was taken out and `left` remains. May mark it.
    fn leaves(&mut self, packet: &mut Packet, left: Backlog, now: Time) -> Verdict;
    /// There was no packet to take.
    fn found_empty(&mut self, now: Time) {
        let _ = now;
    }
    /// The first packet was taken out and dropped for another reason than this AQM's.
    fn discarded(&mut self) {}
    /// Forgets what was learnt; counters stay.
    fn restart(&mut self, params: &Self::Params, device: &Device);
    /// The counters of this discipline alone. What is common goes to `totals`: marks, and
    /// `overlimits` where Linux counts them.
    fn statistics(&self, totals: &mut Totals) -> Detail;
}

/// One queue under `A`.
#[derive(Clone, Debug)]
pub struct Single<A: Aqm> {
    limit: Limit,
    queue: Queue,
    store: Store,
    aqm: A,
    params: A::Params,
    device: Device,
}

impl<A: Aqm> Single<A> {
    /// An empty queue for `device`.
    pub fn new(params: &A::Params, device: &Device) -> Result<Single<A>, ConfigError> {
        let limit = A::limit(params, device);
        Ok(Single {
            limit,
            queue: Queue::default(),
            store: Store::new(limit.packets),
            aqm: A::new(params, device)?,
            params: *params,
            device: *device,
        })
    }

    /// The AQM, for its state.
    pub fn aqm(&self) -> &A {
        &self.aqm
    }

    #[inline]
    fn has_room(&self, backlog: Backlog, packet: &Packet) -> bool {
        backlog.packets < self.limit.packets
            && backlog.bytes + u64::from(packet.len) <= self.limit.bytes
    }
}

impl<A: Aqm> Qdisc for Single<A> {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.store.totals.enqueued_packets += 1;
        let backlog = self.store.backlog();
        let has_room = self.has_room(backlog, &packet);
        if has_room || A::SEES_OVERFLOW {
            if let Verdict::Drop(reason) = self.aqm.arrives(&mut packet, backlog, now) {
                packet.enqueued = now;
                return self.store.give_up(packet, reason, owner);
            }
        }
        if has_room && self.store.insert_at(&mut self.queue, &packet, now) {
            return self.aqm.queued(backlog.packets + 1);
        }
        self.aqm.refused(now);
        packet.enqueued = now;
        self.store.give_up(packet, DropReason::Overlimit, owner);
    }

    #[inline]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<Packet> {
        loop {
            let Some(slot) = self.store.detach(&mut self.queue) else {
                self.aqm.found_empty(now);
                return None;
            };
            // The packet is in its slot still.
            let Backlog { packets, bytes } = self.store.backlog();
            let left = Backlog { packets: packets - 1, bytes };
            match self.aqm.leaves(self.store.packet_mut(slot), left, now) {
                Verdict::Drop(reason) => self.store.discard(slot, reason, owner),
                Verdict::Pass | Verdict::Marked => return Some(self.store.send(slot)),
            }
        }
    }

    #[inline]
    fn peek(&self) -> Option<&Packet> {
        if A::LEAVES_ALL {
            self.store.head(&self.queue)
        } else {
            None
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        self.store.head(&self.queue).map(|packet| packet.enqueued)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn snapshot(&self) -> Snapshot {
        let mut totals = self.store.totals;
        let detail = self.aqm.statistics(&mut totals);
        Snapshot { totals, backlog: self.backlog(), detail }
    }

    fn config(&self) -> Config {
        self.params.into()
    }

    fn configure(
        &mut self,
        config: &Config,
        _: Time,
        owner: &mut dyn PacketOwner,
    ) -> Result<(), ConfigError> {
        let params = *A::Params::of(config).ok_or(ConfigError::OtherDiscipline)?;
        self.aqm.change(&params, &self.device)?;
        self.params = params;
        self.limit = A::limit(&params, &self.device);
        while {
            let backlog = self.store.backlog();
            backlog.packets > self.limit.packets || backlog.bytes > self.limit.bytes
        } {
            let Some(packet) = self.store.take(&mut self.queue) else { break };
            self.aqm.discarded();
            self.store.give_up(packet, DropReason::Overlimit, owner);
        }
        self.store.resize(self.limit.packets, core::iter::once(&mut self.queue));
        Ok(())
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.store.clear(&mut self.queue, owner);
        self.aqm.restart(&self.params, &self.device);
    }
}
