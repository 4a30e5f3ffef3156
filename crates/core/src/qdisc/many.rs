//! Many queues, each under an AQM of its own: the common part of `fq_codel` and `fq_pie`.
//!
//! A packet's queue is found by its keyed hash. The scheduler is DRR++ (RFC 8290, section 4.2) or,
//! with `savings`, DRR with limited deficit savings (`sched/savings.rs`). Under savings a queue
//! that runs empty now and then still gets its full share. A sparse flow is then served in the next
//! turn, which is one packet long. All queues share one limit of packets and one of memory. A
//! discipline of this kind is its settings and an implementation of [`FlowAqm`].
//!
//! Invariants: a queue with packets is on one of the scheduler's lists; `enqueued` is the sum of
//! sent, dropped and queued. A queue and all that decides about it are one cache line or two.
//! Memory may stay above its limit after an arrival, as in Linux, but then no packet is added
//! without another dropped. A call does a bounded number of steps, and the next goes on.

use alloc::boxed::Box;
use core::fmt;

use crate::aqm::Verdict;
use crate::memory::{filled, NoMemory};
use crate::packet::Packet;
use crate::qdisc::longest::Longest;
use crate::qdisc::store::{Queue, Store, MAX_PACKETS};
use crate::qdisc::{
    prepared, spare_of, Backlog, Class, Config, ConfigError, Detail, Device, DropReason, Listed,
    Managed, PacketOwner, Qdisc, Snapshot, Totals,
};
use crate::sched::scheduler::Scheduler;
use crate::sched::sharing::{either, Sharing};
use crate::sched::sparse::Sparse;
use crate::sched::{Account, Scheduled, Standing};
use crate::steps::{step, Budget, PER_LOOP};
use crate::time::Time;

/// Most queues: those that 16 bits of a hash tell apart.
pub const MAX_FLOWS: u32 = 65_536;

/// Settings that all disciplines of this kind have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Packets that may be queued.
    pub limit: u32,
    /// Queues, 1 to [`MAX_FLOWS`].
    pub flows: u32,
    /// Bytes that a flow may send in its turn, above zero; the device's MTU if None.
    pub quantum: Option<u32>,
    /// Bytes of memory that may be used.
    pub memory_limit: u32,
    /// Most savings of an empty queue, in bytes: DRR-LDS. None for DRR++.
    pub savings: Option<u32>,
}

/// Descriptors that stay in the nearest cache by themselves: with more, the next ones are fetched.
const CACHED_PACKETS: u32 = 2048;

/// Bytes that a packet leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Bytes in its queue.
    pub queue: u64,
    /// Bytes in all queues.
    pub all: u64,
}

/// Loss for want of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Packets.
    pub packets: u32,
    /// True if memory was short.
    pub memory: bool,
}

/// Active queue management of many queues.
///
/// Calls for one queue come in the order of [`super::single::Aqm`]; [`FlowAqm::catch_up`] goes
/// before any other.
pub trait FlowAqm: Sized + Send + 'static {
    /// Settings of the discipline.
    type Params: Copy + Listed + Send;
    /// Its state of one queue.
    type State: Copy + fmt::Debug + Send;
    /// True if an arrival beyond the limit of packets is refused, and memory is not limited; else
    /// the longest queue loses packets for it.
    const REFUSES: bool;

    /// An AQM for queues that were always empty.
    fn new(params: &Self::Params, device: &Device) -> Result<Self, ConfigError>;
    /// The settings that all disciplines of this kind have.
    fn settings(params: &Self::Params) -> Settings;
    /// Most packets that the queue with most bytes loses at once when a limit is reached. It loses
    /// the older half of its bytes, within this number and [`PER_LOOP`].
    fn batch(params: &Self::Params) -> u32 {
        let _ = params;
        1
    }
    /// Its state of a queue that was always empty.
    fn state(&self) -> Self::State;
    /// Other settings from now on; what was learnt stays. [`FlowAqm::settle`] goes before, for
    /// each queue.
    fn change(&mut self, params: &Self::Params, device: &Device);

    /// `class` with what the AQM knows of its queue.
    fn class(&self, state: &Self::State, class: Class) -> Class {
        let _ = state;
        class
    }

    /// Notes what was due by `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        let _ = now;
    }
    /// Does for a queue, which has had `bytes` since it last changed, what was due meanwhile.
    fn settle(&mut self, state: &mut Self::State, bytes: u64) {
        let _ = (state, bytes);
    }
    /// `packet` comes to a queue of `bytes`; `memory` is in use. On [`Verdict::Marked`] the queue
    /// marks it.
    fn arrives(
        &mut self,
        state: &mut Self::State,
        packet: &Packet,
        bytes: u64,
        memory: u64,
    ) -> Verdict;
    /// The arrival found no room in all queues. Its own has `bytes`.
    fn refused(&mut self, state: &mut Self::State, bytes: u64);
    /// Packets of a queue were dropped for want of room.
    fn overflowed(&mut self, state: &mut Self::State, loss: Loss);
    /// `packet` was taken out. True if it passes as it is, which is then noted; else nothing is,
    /// and [`FlowAqm::leaves`] decides.
    fn passes(&mut self, state: &mut Self::State, packet: &Packet, left: Left, now: Time) -> bool;
    /// Decides about a packet that does not pass at once. May mark it.
    fn leaves(
        &mut self,
        state: &mut Self::State,
        packet: &mut Packet,
        left: Left,
        now: Time,
    ) -> Verdict {
        let _ = (state, packet, left, now);
        Verdict::Pass
    }
    /// There was no packet to take.
    fn found_empty(&mut self, state: &mut Self::State);
    /// The counters of this discipline alone. What is common goes to `totals`.
    fn statistics(&self, lists: &Lists, totals: &mut Totals) -> Detail;
}

/// State of the scheduler's lists, for statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// Times that a flow which had been idle came back.
    pub new_flow_count: u32,
    /// Flows on the list that goes first (with savings: those that can pay).
    pub new: u32,
    /// Flows with or after a standing queue (with savings: those that collect).
    pub old: u32,
    /// Bytes of memory in use.
    pub memory: u64,
    /// Limit of that.
    pub memory_limit: u32,
}

/// One queue with all that decides about it.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Flow<S> {
    queue: Queue,
    account: Account,
    /// The AQM's state.
    pub state: S,
}

impl<S> Flow<S> {
    fn queue(&self) -> &Queue {
        &self.queue
    }
}

impl<S> Scheduled for Flow<S> {
    #[inline]
    fn account(&mut self) -> &mut Account {
        &mut self.account
    }
}

/// A packet that was taken out of its queue.
struct Taken {
    /// Its queue.
    index: u32,
    /// Slot of the store in which it lies.
    slot: u32,
    /// Its bytes.
    len: u32,
    /// True if it passes as it is.
    passes: bool,
}

/// Queues under `A`, and their scheduler.
#[derive(Clone, Debug)]
pub struct Many<A: FlowAqm> {
    queues: Queues<A>,
    sharing: Sharing<Sparse>,
    params: A::Params,
    device: Device,
}

/// All but the scheduler. That is handed in: which it is, is asked once for each packet, and not at
/// every step.
#[derive(Clone, Debug)]
struct Queues<A: FlowAqm> {
    flows: Box<[Flow<A::State>]>,
    longest: Longest,
    store: Store<u64>,
    aqm: A,
    quantum: u32,
    /// The discipline's own, with which packets' classes are compared.
    handle: u32,
    /// Packets that may be queued: less those that are `lent`.
    limit: u32,
    lent: u32,
    memory_limit: u64,
    batch: u32,
    new_flow_count: u32,
}

impl<A: FlowAqm> Many<A> {
    /// Empty queues for `device`.
    pub fn new(params: &A::Params, device: &Device) -> Result<Many<A>, ConfigError> {
        let settings = A::settings(params);
        settings.validate()?;
        let aqm = A::new(params, device)?;
        let mut flows = empty(&aqm, settings.flows)?;
        let sparse = Sparse::as_by(device.arithmetic, device.memory)?;
        let sharing = Sharing::new(settings.savings, &mut flows, sparse);
        let queues = Queues {
            flows,
            longest: longest::<A>(settings.flows)?,
            store: Store::new(settings.limit, device.memory)?,
            aqm,
            quantum: settings.quantum.unwrap_or(device.mtu),
            handle: device.handle,
            limit: settings.limit.min(MAX_PACKETS),
            lent: 0,
            memory_limit: settings.memory_limit.into(),
            batch: A::batch(params),
            new_flow_count: 0,
        };
        Ok(Many { queues, sharing, params: *params, device: *device })
    }

    fn lists(&self) -> Lists {
        let count = |wanted: [Standing; 2]| {
            let standings = self.queues.flows.iter().map(|flow| flow.account.standing);
            standings.filter(|standing| wanted.contains(standing)).count() as u32
        };
        Lists {
            new_flow_count: self.queues.new_flow_count,
            new: count([Standing::New, Standing::Eligible]),
            old: count([Standing::Old, Standing::Collecting]),
            memory: self.queues.store.memory,
            memory_limit: A::settings(&self.params).memory_limit,
        }
    }
}

impl<A: FlowAqm> Queues<A> {
    #[inline]
    fn enqueue(
        &mut self,
        scheduler: &mut impl Scheduler<Flow<A::State>>,
        packet: &Packet,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) {
        self.store.books.totals.enqueued_packets += 1;
        self.aqm.catch_up(now);
        let has_slot = self.store.has_slot();
        if !A::REFUSES && !has_slot {
            self.make_room(scheduler, self.batch, owner);
        }
        let index = self.index_of(packet);
        let Some(flow) = self.flows.get_mut(index as usize) else {
            return self.store.refuse(packet, now, DropReason::Overlimit, owner);
        };
        if A::REFUSES && (self.store.len() >= self.limit || !has_slot) {
            self.aqm.refused(&mut flow.state, flow.queue.bytes);
            return self.store.refuse(packet, now, DropReason::Overlimit, owner);
        }
        let bytes = flow.queue.bytes;
        let verdict = self.aqm.arrives(&mut flow.state, packet, bytes, self.store.memory);
        if verdict == Verdict::Drop {
            return self.store.refuse(packet, now, DropReason::Congested, owner);
        }
        self.insert(scheduler, index, packet, now, verdict == Verdict::Marked);
        if self.is_over_limit() {
            self.make_room(scheduler, self.batch, owner);
        }
    }

    #[inline]
    fn dequeue(
        &mut self,
        scheduler: &mut impl Scheduler<Flow<A::State>>,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> Option<&mut Packet> {
        self.aqm.catch_up(now);
        let budget = Budget::default();
        let Taken { index, slot, len, passes } = self.next(scheduler, now, &budget)?;
        match passes {
            true => self.send(scheduler, slot, len, index, owner),
            false => self.dequeue_decided(scheduler, slot, index, now, budget, owner),
        }
    }

    /// [`Queues::dequeue`] from where the packet in `slot` was taken out of queue `index` and does
    /// not pass at once.
    #[inline(never)]
    fn dequeue_decided(
        &mut self,
        scheduler: &mut impl Scheduler<Flow<A::State>>,
        mut slot: u32,
        mut index: u32,
        now: Time,
        budget: Budget,
        owner: &mut dyn PacketOwner,
    ) -> Option<&mut Packet> {
        let mut passes = false;
        while !passes {
            if let Some(decided) = self.decide(scheduler, slot, index, now, &budget, owner) {
                slot = decided;
                break;
            }
            self.note_change(index);
            budget.spend_on(self.longest.cost());
            if budget.is_spent() {
                return None;
            }
            Taken { index, slot, passes, .. } = self.next(scheduler, now, &budget)?;
        }
        let len = self.store.packet(slot)?.len;
        self.send(scheduler, slot, len, index, owner)
    }

    /// Takes the packet whose turn it is out of its queue.
    #[inline(always)]
    fn next(
        &mut self,
        scheduler: &mut impl Scheduler<Flow<A::State>>,
        now: Time,
        budget: &Budget,
    ) -> Option<Taken> {
        loop {
            let Queues { flows, store, quantum, .. } = self;
            let head = |flow: &mut Flow<_>| store.head_len(&flow.queue);
            let index = scheduler.choose(flows, head, |_| *quantum, budget)?;
            if let Some(taken) = self.detach(scheduler, index, now) {
                return Some(taken);
            }
            if !budget.spend() {
                return None;
            }
        }
    }

    /// True if packets must go for want of room.
    #[inline(always)]
    fn is_over_limit(&self) -> bool {
        let over_memory = !A::REFUSES && self.store.memory > self.memory_limit;
        over_memory || self.store.len() > self.limit
    }

    /// Queue `index` has got or lost packets.
    #[inline(always)]
    fn note_change(&mut self, index: u32) {
        if !A::REFUSES {
            self.longest.changed(index, |index| self.flows.get(index as usize).map(Flow::queue));
        }
    }

    /// The queue of a packet: the one that its class names, or its hash.
    #[inline]
    fn index_of(&self, packet: &Packet) -> u32 {
        let queues = self.flows.len() as u64;
        let hashed = || ((u64::from(packet.flow as u32) * queues) >> 32) as u32;
        packet.named_queue(self.handle, queues as u32).unwrap_or_else(hashed)
    }

    /// Queues `packet`, for which there is room, and tells the scheduler.
    #[inline(always)]
    fn insert(
        &mut self,
        scheduler: &mut impl Scheduler<Flow<A::State>>,
        index: u32,
        packet: &Packet,
        enqueued: Time,
        is_marked: bool,
    ) {
        let Some(flow) = self.flows.get_mut(index as usize) else { return };
        let queued = self.store.insert(&mut flow.queue, packet, enqueued);
        debug_assert!(queued.is_some(), "the store has one slot more than the limit");
        if is_marked {
            queued.map(Packet::mark_ce);
        }
        self.note_change(index);
        let Queues { flows, store, .. } = self;
        let was_idle = scheduler.arrived(flows, index, self.quantum, |f| store.head_len(&f.queue));
        self.new_flow_count = self.new_flow_count.wrapping_add(u32::from(was_idle));
    }

    /// Takes the first packet out of queue `index`.
    #[inline(always)]
    fn detach(
        &mut self,
        scheduler: &mut impl Scheduler<Flow<A::State>>,
        index: u32,
        now: Time,
    ) -> Option<Taken> {
        let Queues { flows, store, aqm, .. } = self;
        let Flow { queue, state, .. } = flows.get_mut(index as usize)?;
        let Some((slot, packet, all)) = store.detach(queue) else {
            aqm.found_empty(state);
            scheduler.found_empty(flows, index);
            return None;
        };
        let left = Left { queue: queue.bytes, all };
        let (len, passes) = (packet.len, aqm.passes(state, packet, left, now));
        Some(Taken { index, slot, len, passes })
    }

    /// Sends the packet of `len` bytes in `slot`, which was taken out of queue `index`.
    #[inline(always)]
    fn send(
        &mut self,
        scheduler: &mut impl Scheduler<Flow<A::State>>,
        slot: u32,
        len: u32,
        index: u32,
        owner: &mut dyn PacketOwner,
    ) -> Option<&mut Packet> {
        self.note_change(index);
        let Queues { flows, store, .. } = self;
        scheduler.sent(flows, index, len, |f| store.head_len(&f.queue));
        if store.len() > CACHED_PACKETS {
            self.expect_after(index, owner);
        }
        self.store.send(slot)
    }

    /// Tells the owner whose packets leave soon: those of the two queues after `index`.
    #[inline(never)]
    fn expect_after(&self, index: u32, owner: &mut dyn PacketOwner) {
        let Queues { flows, store, .. } = self;
        let upcoming = |flow: &Flow<_>| flow.account.upcoming(flows);
        let Some(next) = flows.get(index as usize).and_then(upcoming) else { return };
        if let Some(after) = upcoming(next) {
            store.expect(&next.queue, &after.queue, owner);
        }
    }

    /// Slot of the packet to be sent: the one in `slot`, or the first one after it that may go. The
    /// packet in `slot` was taken out of queue `index` and does not pass at once. None: all were
    /// dropped, or as many as `budget` allows.
    #[inline(never)]
    fn decide(
        &mut self,
        scheduler: &mut impl Scheduler<Flow<A::State>>,
        mut slot: u32,
        index: u32,
        now: Time,
        budget: &Budget,
        owner: &mut dyn PacketOwner,
    ) -> Option<u32> {
        let mut passes = false;
        while !passes {
            let Queues { flows, store, aqm, .. } = self;
            let Flow { queue, state, .. } = flows.get_mut(index as usize)?;
            let left = Left { queue: queue.bytes, all: store.backlog().bytes };
            if aqm.leaves(state, store.packet_mut(slot)?, left, now) != Verdict::Drop {
                break;
            }
            store.discard(slot, DropReason::Congested, owner);
            if !budget.spend() {
                let head = store.head_len(queue);
                scheduler.dropped(flows, index, head);
                return None;
            }
            Taken { slot, passes, .. } = self.detach(scheduler, index, now)?;
        }
        Some(slot)
    }

    /// Drops the older half of the longest queue, but not more than `batch` packets.
    #[cold]
    fn make_room(
        &mut self,
        scheduler: &mut impl Scheduler<Flow<A::State>>,
        batch: u32,
        owner: &mut dyn PacketOwner,
    ) {
        let memory = self.store.memory > self.memory_limit;
        let queue = |index: u32| self.flows.get(index as usize).map(Flow::queue);
        let Some(index) = self.longest.from(0, queue) else { return };
        let Some(flow) = self.flows.get_mut(index as usize) else { return };
        let half = flow.queue.bytes / 2;
        let batch = batch.min(PER_LOOP);
        let (mut packets, mut bytes) = (0, 0);
        while packets == 0 || (packets < batch && bytes < half) {
            let dropped = self.store.drop_first(&mut flow.queue, DropReason::Overlimit, owner);
            let Some(len) = dropped else { break };
            step();
            packets += 1;
            bytes += u64::from(len);
        }
        self.aqm.overflowed(&mut flow.state, Loss { packets, memory });
        let head = self.store.head_len(&flow.queue);
        self.note_change(index);
        scheduler.dropped(&mut self.flows, index, head);
    }

    /// Moves all packets into the queues of `spare`, which are empty, in the order of their coming.
    fn sort_into(&mut self, spare: &mut Queues<A>, scheduler: &mut Sharing<Sparse>) {
        let mut waiting = self.store.gather(self.flows.iter_mut().map(|flow| &mut flow.queue));
        self.store.take_room(&mut spare.store, core::iter::once(&mut waiting));
        // With as many queues each flow stays in its own.
        let stays = self.flows.len() == spare.flows.len();
        for (number, new) in spare.flows.iter_mut().enumerate() {
            let old = self.flows.get(number).filter(|_| stays);
            new.state = old.map_or_else(|| self.aqm.state(), |old| old.state);
        }
        core::mem::swap(&mut self.flows, &mut spare.flows);
        core::mem::swap(&mut self.longest, &mut spare.longest);
        while let Some(packet) = self.store.take(&mut waiting) {
            let index = self.index_of(&packet);
            self.insert(scheduler, index, &packet, packet.enqueued, false);
        }
    }
}

fn empty<A: FlowAqm>(aqm: &A, flows: u32) -> Result<Box<[Flow<A::State>]>, NoMemory> {
    let flow = Flow { queue: Queue::default(), account: Account::default(), state: aqm.state() };
    filled(flows as usize, flow)
}

/// The finder of the longest of `flows` empty queues. Where arrivals are refused it is rarely
/// asked: after a change of settings.
fn longest<A: FlowAqm>(flows: u32) -> Result<Longest, NoMemory> {
    match A::REFUSES {
        true => Ok(Longest::searched(flows)),
        false => Longest::of(flows),
    }
}

impl Settings {
    fn validate(&self) -> Result<(), ConfigError> {
        let check = |ok: bool, option, expected| {
            ok.then_some(()).ok_or(ConfigError::OutOfRange { option, expected })
        };
        check((1..=MAX_FLOWS).contains(&self.flows), "flows", "a number of queues, 1 to 65536")?;
        check(self.quantum != Some(0), "quantum", "at least 1 byte")?;
        check(self.limit > 0, "limit", "at least 1 packet")
    }
}

impl<A: FlowAqm> Qdisc for Many<A> {
    #[inline]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let Many { queues, sharing, .. } = self;
        either!(sharing, scheduler => queues.enqueue(scheduler, packet, now, owner));
    }

    #[inline]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        let Many { queues, sharing, .. } = self;
        either!(sharing, scheduler => queues.dequeue(scheduler, now, owner))
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        // In the past: now.
        (self.queues.store.len() > 0).then_some(Time::ZERO)
    }

    fn lend(&mut self, lent: Backlog, _: Time) {
        let limit = A::settings(&self.params).limit.min(MAX_PACKETS);
        (self.queues.limit, self.queues.lent) = (limit.saturating_sub(lent.packets), lent.packets);
    }

    #[inline]
    fn backlog(&self) -> Backlog {
        self.queues.store.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        let Many { queues, sharing, .. } = self;
        for flow in &mut queues.flows {
            queues.store.clear(&mut flow.queue, owner);
            (flow.state, flow.account) = (queues.aqm.state(), Account::default());
        }
        queues.longest.clear();
        let numbers = 0..queues.flows.len() as u32;
        match sharing {
            Sharing::Plain(sparse) => sparse.clear(),
            Sharing::Savings(savings) => savings.restart(&mut queues.flows, numbers),
        }
    }
}

impl<A: FlowAqm> Managed for Many<A> {
    fn snapshot(&self) -> Snapshot {
        let mut totals = self.queues.store.totals();
        let detail = self.queues.aqm.statistics(&self.lists(), &mut totals);
        Snapshot { totals, backlog: self.backlog(), detail }
    }

    fn config(&self) -> Config {
        self.params.into()
    }

    fn class(&self, n: u32) -> Option<Class> {
        let Queues { flows, store, aqm, .. } = &self.queues;
        let flow = flows.get(n as usize)?;
        let class = Class {
            backlog: store.backlog_of(&flow.queue),
            is_used: flow.account.standing != Standing::Idle,
            is_sparse: matches!(flow.account.standing, Standing::New | Standing::Eligible),
            deficit: flow.account.deficit,
            ..Class::default()
        };
        Some(aqm.class(&flow.state, class))
    }

    fn queue_of(&self, packet: &Packet) -> Option<u32> {
        Some(self.queues.index_of(packet))
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        prepared::<A::Params>(config, &self.device, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of::<Many<A>>(spare) else { return };
        let (new, old) = (A::settings(&spare.params), A::settings(&self.params));
        self.params = spare.params;
        let Many { queues, sharing, .. } = self;
        queues.aqm.catch_up(now);
        for flow in &mut queues.flows {
            queues.aqm.settle(&mut flow.state, flow.queue.bytes);
        }
        queues.aqm.change(&self.params, &self.device);
        queues.quantum = spare.queues.quantum;
        queues.limit = spare.queues.limit.saturating_sub(queues.lent);
        (queues.memory_limit, queues.batch) = (spare.queues.memory_limit, spare.queues.batch);
        while queues.is_over_limit() {
            queues.make_room(sharing, 1, owner);
        }
        if new.flows != old.flows || new.savings != old.savings {
            core::mem::swap(sharing, &mut spare.sharing);
            queues.sort_into(&mut spare.queues, sharing);
        } else {
            let lists = queues.flows.iter_mut().map(|flow| &mut flow.queue);
            queues.store.take_room(&mut spare.queues.store, lists);
        }
    }
}
