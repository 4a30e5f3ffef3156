//! `sfq`: stochastic fairness queueing (McKenney 1990; man tc-sfq; facts D.5), and its RED.
//!
//! Packets are hashed into `divisor` buckets; a bucket with packets holds one of `flows` slots.
//! Slots are served in a round, each while its allotment lasts (`sched/drr.rs`). A new flow goes to
//! the end of the round. When `limit` is exceeded the slot with most packets (`depths.rs`) loses
//! its last one, or its first with `headdrop`. Every `perturb` seconds the hash gets another key,
//! so that no two flows share a bucket for ever, and all packets are sorted anew. That may be more
//! than one call may do (`MOST_WORK`: 1,344 packets by default). Packets then stay where they are,
//! and only packets to come go by the new key.
//!
//! With `redflowlimit` each slot is under RED (`aqm/red`). With `headdrop`, signals go to the
//! slot's first packet, which is to reach its receiver soonest.
//!
//! Under [`Arithmetic::Linux`] the owner computes the hash ([`PacketOwner::keyed_hash`]), so that
//! decisions can be compared.

mod depths;
mod netlink;
mod stats;
mod words;

use alloc::boxed::Box;

use self::depths::{Depths, MAX_DEPTH};
use super::store::{Queue, Store};
use super::{
    prepared, spare_of, Backlog, Class, Config, ConfigError, Detail, Device, DropReason, Managed,
    PacketOwner, Qdisc, Snapshot,
};
use crate::aqm::red::{self, RedState, RedVerdict, Signals};
use crate::aqm::Verdict;
use crate::flow::rekeyed;
use crate::memory::filled;
use crate::packet::Packet;
use crate::random::Random;
use crate::rate::Arithmetic;
use crate::sched::drr::Drr;
use crate::sched::{Account, Scheduled};
use crate::steps::{step, Budget, PER_LOOP};
use crate::tick::Periodic;
use crate::time::{Span, Time};

pub use stats::Stats;

/// Most slots.
pub const MAX_FLOWS: u32 = 65_408;
/// Most buckets.
pub const MAX_DIVISOR: u32 = 65_536;
/// Most steps that sorting anew may take: two for each packet, and one for each slot.
const MOST_WORK: u32 = 2_816;
/// Most slots that are gone through in their order for it.
const MOST_SLOTS: u32 = PER_LOOP;
/// Most keys that are made up for at once: only the last one stays.
const MOST_KEYS: u32 = 64;
const DEFAULT_LIMIT: u32 = 127;
const DEFAULT_FLOWS: u32 = 128;
const DEFAULT_DIVISOR: u32 = 1024;

/// Settings, with the names of `tc`. What is None was not said; see [`Params::effective`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Packets that may be queued.
    pub limit: Option<u32>,
    /// Packets that one flow may have queued.
    pub depth: Option<u32>,
    /// Flows that may have packets queued.
    pub flows: Option<u32>,
    /// Buckets of the hash: a power of two.
    pub divisor: Option<u32>,
    /// Bytes that a flow may send in its turn, above zero; the device's MTU if None.
    pub quantum: Option<u32>,
    /// Seconds between changes of the hash; never if zero.
    pub perturb: u32,
    /// Drop first packets instead of last ones.
    pub headdrop: bool,
    /// RED for each flow.
    pub red: Option<RedParams>,
}

/// RED for each flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedParams {
    /// Bytes from which min and max were derived, where they were.
    pub limit: u32,
    /// RED's own.
    pub red: red::RedParams,
}

/// Settings in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effective {
    /// Packets that may be queued.
    pub limit: u32,
    /// Packets that one flow may have queued.
    pub depth: u32,
    /// Flows that may have packets queued.
    pub flows: u32,
    /// Buckets of the hash.
    pub divisor: u32,
}

impl Params {
    /// Settings in force, each bounded by the others as in Linux.
    pub fn effective(&self) -> Effective {
        let depth = self.depth.unwrap_or(MAX_DEPTH).clamp(1, MAX_DEPTH);
        let divisor = self.divisor.unwrap_or(DEFAULT_DIVISOR);
        let mut flows = self.flows.unwrap_or(DEFAULT_FLOWS).clamp(1, MAX_FLOWS);
        if let Some(divisor) = self.divisor {
            flows = flows.min(divisor);
        }
        let mut limit = DEFAULT_LIMIT;
        if let Some(packets) = self.limit {
            limit = packets.min(depth * flows);
            flows = flows.min(limit);
        }
        Effective { limit, depth, flows, divisor }
    }

    fn validate(&self) -> Result<(), ConfigError> {
        let check = |ok: bool, option, expected| {
            ok.then_some(()).ok_or(ConfigError::OutOfRange { option, expected })
        };
        let Effective { limit, divisor, .. } = self.effective();
        let divisors = "a power of two from 1 to 65536";
        check((1..=MAX_DIVISOR).contains(&divisor), "divisor", divisors)?;
        check(divisor.is_power_of_two(), "divisor", divisors)?;
        check(self.quantum != Some(0), "quantum", "at least 1 byte")?;
        check(limit > 1, "limit", "more than 1 packet, also as depth times flows")
    }
}

/// A flow with packets.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    queue: Queue,
    account: Account,
    /// Its bucket.
    bucket: u32,
}

impl Scheduled for Slot {
    #[inline]
    fn account(&mut self) -> &mut Account {
        &mut self.account
    }
}

/// RED over all slots.
#[derive(Clone, Debug)]
struct Early {
    law: red::Law,
    slots: Box<[RedState]>,
    signals: Signals,
    /// A queue that was always empty.
    fresh: RedState,
}

/// Stochastic fair queues.
#[derive(Clone, Debug)]
pub struct Sfq {
    /// The slot of each bucket; [`NO_SLOT`] if it has no packets.
    buckets: Box<[u32]>,
    slots: Box<[Slot]>,
    depths: Depths,
    drr: Drr,
    store: Store,
    early: Option<Early>,
    key: [u64; 2],
    perturbation: Periodic,
    random: Random,
    limits: Effective,
    /// Packets that whoever stands above has taken out to look at.
    lent: u32,
    quantum: u32,
    stats: Stats,
    params: Params,
    device: Device,
}

const NO_SLOT: u32 = u32::MAX;

impl Sfq {
    /// Empty queues for `device`.
    pub fn new(params: &Params, device: &Device) -> Result<Sfq, ConfigError> {
        params.validate()?;
        let limits = params.effective();
        let mut sfq = Sfq {
            buckets: filled(limits.divisor as usize, NO_SLOT)?,
            slots: filled(limits.flows as usize, Slot::default())?,
            depths: Depths::new(limits.flows)?,
            drr: Drr::default(),
            store: Store::new(limits.limit, device.memory)?,
            early: Early::new(params, limits.flows, device)?,
            key: [0; 2],
            perturbation: Periodic::never(),
            random: Random::new(device.seed),
            limits,
            lent: 0,
            quantum: params.quantum.unwrap_or(device.mtu),
            stats: Stats::default(),
            params: params.clone(),
            device: *device,
        };
        sfq.key = sfq.random.key();
        sfq.start_perturbation(device.now);
        Ok(sfq)
    }

    /// Sets the timer; the key is changed at once, too.
    fn start_perturbation(&mut self, now: Time) {
        let period = Span::from_secs(self.params.perturb.into());
        if period > Span::ZERO {
            self.perturbation = Periodic::new(self.device.tick, now, period, period);
            self.key = self.random.key();
        } else {
            self.perturbation = Periodic::never();
        }
    }

    /// The bucket of `packet`: the one that its class names, or its hash.
    #[inline]
    fn bucket(&self, packet: &Packet, owner: &mut dyn PacketOwner) -> u32 {
        if let Some(named) = packet.named_queue(self.device.handle, self.limits.divisor) {
            return named;
        }
        let theirs = match self.device.arithmetic {
            Arithmetic::Exact => None,
            Arithmetic::Linux(_) => owner.keyed_hash(packet, self.key),
        };
        let hash = theirs.unwrap_or_else(|| rekeyed(packet.flow, self.key));
        hash & self.limits.divisor.wrapping_sub(1)
    }

    /// The slot of `bucket`, which is given one if need be; None if all are taken. What RED knew of
    /// an earlier flow is forgotten if `begins_anew`.
    #[inline]
    fn slot_of(&mut self, bucket: u32, begins_anew: bool) -> Option<u32> {
        let given = *self.buckets.get(bucket as usize)?;
        if given != NO_SLOT {
            return Some(given);
        }
        let slot = self.depths.free()?;
        *self.buckets.get_mut(bucket as usize)? = slot;
        self.slots.get_mut(slot as usize)?.bucket = bucket;
        if begins_anew {
            self.forget(slot);
        }
        Some(slot)
    }

    /// Lets RED begin anew in `slot`.
    #[inline]
    fn forget(&mut self, slot: u32) {
        if let Some(Early { slots, fresh, .. }) = &mut self.early {
            if let Some(red) = slots.get_mut(slot as usize) {
                *red = fresh.clone();
            }
        }
    }

    /// Queues `packet` at the end of `slot`.
    #[inline]
    fn append(&mut self, slot: u32, packet: &Packet, enqueued: Time, is_marked: bool) {
        let Some(Slot { queue, .. }) = self.slots.get_mut(slot as usize) else { return };
        let queued = self.store.insert(queue, packet, enqueued);
        debug_assert!(queued.is_some(), "the store has one slot more than the limit");
        if is_marked {
            queued.map(Packet::mark_ce);
        }
        self.depths.grown(slot);
        self.drr.activate(&mut self.slots, slot, self.quantum);
    }

    /// The books for a packet that was taken out of `slot`.
    #[inline]
    fn shrunk(&mut self, slot: u32) {
        self.depths.shrunk(slot);
        if self.depths.packets(slot) == 0 {
            self.drr.retire(&mut self.slots, slot);
            let Some(Slot { bucket, .. }) = self.slots.get(slot as usize) else { return };
            if let Some(given) = self.buckets.get_mut(*bucket as usize) {
                *given = NO_SLOT;
            }
        }
    }

    /// Drops a packet of the longest slot; of single packets, that which would be next.
    #[cold]
    fn drop_from_longest(&mut self, owner: &mut dyn PacketOwner) {
        let victim = match self.depths.longest() {
            Some((_, 1)) => self.drr.first(),
            longest => longest.map(|(slot, _)| slot),
        };
        let Some(slot) = victim else { return };
        let Some(Slot { queue, .. }) = self.slots.get_mut(slot as usize) else { return };
        let packet = match self.params.headdrop {
            true => self.store.take(queue),
            false => self.store.take_last(queue),
        };
        if let Some(packet) = packet {
            self.shrunk(slot);
            self.store.books.give_up(packet, DropReason::Overlimit, owner);
        }
    }

    /// No more may come to `slot`: `packet` is dropped, or takes the place of the first one, marked
    /// if RED said so.
    #[cold]
    fn refuse(
        &mut self,
        slot: u32,
        packet: &Packet,
        now: Time,
        reason: DropReason,
        is_marked: bool,
        owner: &mut dyn PacketOwner,
    ) {
        if !self.params.headdrop {
            return self.store.refuse(packet, now, reason, owner);
        }
        let Some(Slot { queue, .. }) = self.slots.get_mut(slot as usize) else { return };
        self.store.drop_first(queue, reason, owner);
        let queued = self.store.insert(queue, packet, now);
        debug_assert!(queued.is_some(), "in the place of the first one");
        if is_marked {
            queued.map(Packet::mark_ce);
        }
    }

    /// RED's decision about `packet`, which comes to `slot`. It may mark another in its place.
    fn consult(&mut self, slot: u32, packet: &Packet, now: Time) -> Verdict {
        let Some(early) = &mut self.early else { return Verdict::Pass };
        let Some(Slot { queue, .. }) = self.slots.get(slot as usize) else { return Verdict::Pass };
        let Some(red) = early.slots.get_mut(slot as usize) else { return Verdict::Pass };
        let forced = match red.arrives(&early.law, packet, queue.bytes, now, &mut self.random) {
            RedVerdict::Early { .. } => false,
            RedVerdict::Forced { .. } => true,
            RedVerdict::Pass | RedVerdict::Spared => return Verdict::Pass,
        };
        self.store.books.totals.overlimits += 1;
        if early.signals.ecn && !(forced && early.signals.harddrop) {
            let head = self.store.head_mut(queue).filter(|_| self.params.headdrop);
            let (head, own) = match head.is_some_and(Packet::mark_ce) {
                true => (1, 0),
                false => (0, u32::from(packet.is_markable())),
            };
            let (at_head, at_tail) = match forced {
                false => (&mut self.stats.prob_mark_head, &mut self.stats.prob_mark),
                true => (&mut self.stats.forced_mark_head, &mut self.stats.forced_mark),
            };
            *at_head += head;
            *at_tail += own;
            if head + own > 0 {
                self.store.books.totals.marked += 1;
                return if own > 0 { Verdict::Marked } else { Verdict::Pass };
            }
        }
        *(if forced { &mut self.stats.forced_drop } else { &mut self.stats.prob_drop }) += 1;
        Verdict::Drop
    }

    /// Changes the key as often as was due by `now`, and sorts the packets anew. True if that was
    /// much work.
    #[inline]
    fn catch_up(&mut self, now: Time, owner: &mut dyn PacketOwner) -> bool {
        self.perturbation.is_due(now) && self.perturb(now, owner)
    }

    #[cold]
    fn perturb(&mut self, now: Time, owner: &mut dyn PacketOwner) -> bool {
        let mut keys = 0;
        self.perturbation.catch_up(now, |_| {
            self.key = self.random.key();
            keys += 1;
            keys < MOST_KEYS
        });
        if 2 * self.store.len() + self.limits.flows.min(MOST_SLOTS) <= MOST_WORK {
            let packets = self.drain();
            self.sort_in(packets, now, owner);
        }
        self.limits.flows.min(MOST_SLOTS) + self.limits.limit > PER_LOOP / 2
    }

    /// Queues what had been queued before. Some may find their slot full, or none free.
    fn sort_in(&mut self, mut packets: Queue, now: Time, owner: &mut dyn PacketOwner) {
        while let Some(packet) = self.store.take(&mut packets) {
            step();
            let bucket = self.bucket(&packet, owner);
            // Linux forgets in slots that had packets only.
            let begins_anew = self.device.arithmetic == Arithmetic::Exact;
            match self.slot_of(bucket, begins_anew) {
                Some(slot) if self.depths.packets(slot) < self.limits.depth => {
                    let bytes = self.slots.get(slot as usize).map_or(0, |slot| slot.queue.bytes);
                    if let Some(Early { slots, law, .. }) = &mut self.early {
                        // The averages begin anew; nothing is signalled here.
                        if let Some(red) = slots.get_mut(slot as usize) {
                            red.observe(law, bytes, now);
                        }
                    }
                    self.append(slot, &packet, packet.enqueued, false);
                }
                _ => self.store.books.give_up(packet, DropReason::Overlimit, owner),
            }
        }
    }

    /// Takes everything out of the slots into one queue: slot by slot, where there are few of them,
    /// else in the order of their turns.
    fn drain(&mut self) -> Queue {
        let mut all = Queue::default();
        if self.limits.flows <= MOST_SLOTS {
            (0..self.limits.flows).for_each(|slot| _ = self.empty(slot, &mut all));
        }
        while self.drr.first().and_then(|slot| self.empty(slot, &mut all)).is_some() {}
        all
    }

    /// Takes all packets of `slot` over into `all`; None if there is no such slot.
    fn empty(&mut self, slot: u32, all: &mut Queue) -> Option<()> {
        step();
        if self.depths.packets(slot) > 0 {
            self.forget(slot);
        }
        while let Some(packet) = self.store.take(&mut self.slots.get_mut(slot as usize)?.queue) {
            step();
            self.shrunk(slot);
            let moved = self.store.insert(all, &packet, packet.enqueued);
            debug_assert!(moved.is_some(), "into the place that it has left");
        }
        Some(())
    }
}

impl Early {
    fn new(params: &Params, flows: u32, device: &Device) -> Result<Option<Early>, ConfigError> {
        let Some(RedParams { red, .. }) = params.red else { return Ok(None) };
        // Which packet is marked is not RED's to say here.
        let blind = red::RedParams { signals: Signals::default(), adaptive: false, ..red };
        let law = red::Law::new(&blind).map_err(|_| ConfigError::OutOfRange {
            option: "redflowlimit",
            expected: "min below max, and burst and probability that fit them",
        })?;
        let fresh = RedState::new(&blind, &law, device.now, Periodic::never());
        let unused = match device.arithmetic {
            Arithmetic::Exact => fresh.clone(),
            // Sorting anew may give a slot packets that never had one.
            Arithmetic::Linux(_) => fresh.clone().cleared(),
        };
        let slots = filled(flows as usize, unused)?;
        Ok(Some(Early { law, slots, signals: red.signals, fresh }))
    }
}

impl Qdisc for Sfq {
    #[inline]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.store.books.totals.enqueued_packets += 1;
        self.catch_up(now, owner);
        if !self.store.has_slot() {
            self.drop_from_longest(owner);
        }
        let bucket = self.bucket(packet, owner);
        let Some(slot) = self.slot_of(bucket, true) else {
            return self.store.refuse(packet, now, DropReason::Overlimit, owner);
        };
        let early = self.consult(slot, packet, now);
        if early == Verdict::Drop {
            return self.refuse(slot, packet, now, DropReason::Congested, false, owner);
        }
        if self.depths.packets(slot) >= self.limits.depth {
            let is_marked = early == Verdict::Marked;
            return self.refuse(slot, packet, now, DropReason::Overlimit, is_marked, owner);
        }
        self.append(slot, packet, now, early == Verdict::Marked);
        if self.store.len() + self.lent > self.limits.limit {
            self.drop_from_longest(owner);
        }
    }

    fn lend(&mut self, lent: Backlog, _: Time) {
        self.lent = lent.packets;
    }

    #[inline]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        let budget = Budget::default();
        if self.catch_up(now, owner) {
            budget.spend_on(2 * PER_LOOP);
        }
        let slot = self.drr.next_solvent(&mut self.slots, self.quantum, &budget)?;
        let chosen = self.slots.get_mut(slot as usize)?;
        let (place, ..) = self.store.detach(&mut chosen.queue)?;
        chosen.account.charge(self.store.packet(place)?.len);
        self.shrunk(slot);
        self.store.send(place)
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        // In the past: now.
        (self.store.len() > 0).then_some(Time::ZERO)
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        let mut packets = self.drain();
        self.store.clear(&mut packets, owner);
    }
}

impl Managed for Sfq {
    fn snapshot(&self) -> Snapshot {
        let detail = Detail::Sfq(self.early.is_some().then_some(self.stats));
        Snapshot { totals: self.store.totals(), backlog: self.backlog(), detail }
    }

    fn config(&self) -> Config {
        Config::Sfq(self.params.clone())
    }

    fn class(&self, n: u32) -> Option<Class> {
        let given = *self.buckets.get(n as usize)?;
        // A bucket without packets has no slot.
        let Some(slot) = self.slots.get(given as usize) else { return Some(Class::default()) };
        Some(Class {
            backlog: self.store.backlog_of(&slot.queue),
            is_used: true,
            deficit: slot.account.deficit,
            ..Class::default()
        })
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        prepared::<Params>(config, &self.device, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of::<Sfq>(spare) else { return };
        self.catch_up(now, owner);
        if spare.params == self.params {
            // Turns and deficits stay: only what is beside or above it changes.
            return;
        }
        let perturbed = spare.params.perturb != self.params.perturb;
        core::mem::swap(&mut self.params, &mut spare.params);
        let limits = spare.limits;
        while self.store.len() + self.lent > limits.limit {
            self.drop_from_longest(owner);
        }
        let mut packets = self.drain();
        self.store.take_room(&mut spare.store, core::iter::once(&mut packets));
        if limits.divisor != self.limits.divisor || limits.flows != self.limits.flows {
            core::mem::swap(&mut self.buckets, &mut spare.buckets);
            core::mem::swap(&mut self.slots, &mut spare.slots);
            core::mem::swap(&mut self.depths, &mut spare.depths);
            self.drr = Drr::default();
        }
        core::mem::swap(&mut self.early, &mut spare.early);
        (self.limits, self.quantum) = (limits, spare.quantum);
        if perturbed {
            self.start_perturbation(now);
        }
        self.sort_in(packets, now, owner);
    }
}

#[cfg(test)]
mod tests;
