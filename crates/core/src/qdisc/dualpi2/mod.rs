//! `dualpi2`: two coupled queues, for low latency and for the rest (RFC 9332; man tc-dualpi2).
//!
//! ECT(1) and CE packets are of scalable senders (RFC 9331) and go to the L queue, all others to
//! the C queue. The C queue is under [`Pi2`]: marked or dropped with the square of its probability.
//! The L queue is marked from `step_thresh` on, and with `coupling` times that probability, so that
//! its senders leave the others their share. It is served first, but the C queue has
//! `classic_protection` percent of the line for sure.
//!
//! Overload (section 4.2): once marking all of the L queue is not enough, its packets are dropped
//! with the probability of the C queue's; with `overflow`, the limit alone drops. Classic packets
//! are dropped even if they are ECN-capable from 1 / coupling^2 on.
//!
//! Deviations from Linux's: signals recur evenly, as in the RFC's pseudo-code, instead of being
//! drawn; whose turn it is, is deficit round robin. (Linux 7.3's decisions: `dualpi2/plain` in
//! conformance/golden.)
//!
//! Invariants: order within each queue; `enqueued = sent + dropped + queued`.

mod netlink;
mod stats;
mod words;

use alloc::boxed::Box;

use crate::aqm::pi2::{Pi2, Pi2Params, Recurrence, ONE};
use crate::aqm::Verdict;
use crate::packet::{Ecn, Packet};
use crate::qdisc::stats::narrow;
use crate::qdisc::store::{Queue, Store, MAX_PACKETS};
use crate::qdisc::{
    prepared, spare_of, Backlog, Config, ConfigError, Detail, Device, DropReason, Managed,
    PacketOwner, Qdisc, Snapshot,
};
use crate::sched::drr::Drr;
use crate::sched::{Account, Scheduled};
use crate::steps::Budget;
use crate::tick::Periodic;
use crate::time::{Span, Time};

pub use stats::Stats;

/// From where on the L queue is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A packet that has waited longer.
    Delay(Span),
    /// A packet that leaves more packets behind.
    Packets(u32),
}

/// Settings, with the names and defaults of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Packets that may be queued, in both queues together.
    pub limit: u32,
    /// Bytes of memory (`truesize`) that may be used; twice the device's MTU for each packet of
    /// `limit` if None.
    pub memlimit: Option<u32>,
    /// How many times more the L queue is marked than the root of the C queue's: 1 to 255.
    pub coupling: u32,
    /// From where on the L queue is marked.
    pub step: Step,
    /// Packets that must be in the L queue for a step.
    pub min_qlen_step: u32,
    /// Drop packets of the L queue in overload.
    pub drop_on_overload: bool,
    /// Decide about the C queue when packets leave; else when they come.
    pub drop_at_dequeue: bool,
    /// All ECN-capable packets go to the L queue.
    pub any_ect: bool,
    /// Percent of the line that are the C queue's for sure: 0 to 100.
    pub classic_protection: u8,
    /// Split super-packets: only shown, as nothing is split here.
    pub split_gso: bool,
    /// The controller.
    pub aqm: Pi2Params,
}

impl Params {
    /// Memory that may be used on `device`.
    fn memory_limit(&self, device: &Device) -> u32 {
        let double = device.mtu.saturating_mul(2);
        self.memlimit.unwrap_or(self.limit.saturating_mul(double))
    }
}

impl Default for Params {
    fn default() -> Params {
        Params {
            limit: 10_000,
            memlimit: None,
            coupling: 2,
            step: Step::Delay(Span::from_millis(1)),
            min_qlen_step: 0,
            drop_on_overload: true,
            drop_at_dequeue: true,
            any_ect: false,
            classic_protection: 10,
            split_gso: true,
            aqm: Pi2Params::default(),
        }
    }
}

/// The low-latency queue.
const L: usize = 0;
/// The classic queue.
const C: usize = 1;

/// One of the two queues.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    queue: Queue,
    packets: u32,
    account: Account,
    signals: Recurrence,
    quantum: u32,
}

impl Scheduled for Lane {
    fn account(&mut self) -> &mut Account {
        &mut self.account
    }
}

/// Two coupled queues.
#[derive(Clone, Debug)]
pub struct Dualpi2 {
    params: Params,
    device: Device,
    lanes: [Lane; 2],
    drr: Drr,
    store: Store<u64>,
    pi: Pi2,
    /// For drops of the L queue in overload.
    overload: Recurrence,
    timer: Periodic,
    /// Packets that whoever stands above has taken out to look at.
    lent: u32,
    stats: Stats,
}

/// Bytes a turn of the L and the C queue: one full frame for the smaller share.
fn quanta(params: &Params, device: &Device) -> [u32; 2] {
    let classic = u32::from(params.classic_protection.min(100));
    let times =
        |share: u32, other: u32| device.mtu.max(1).saturating_mul(share.max(1)) / other.max(1);
    match classic {
        0..=50 => [times(100 - classic, classic), device.mtu.max(1)],
        _ => [device.mtu.max(1), times(classic, 100 - classic)],
    }
}

impl Dualpi2 {
    /// Empty queues for `device`.
    pub fn new(params: &Params, device: &Device) -> Result<Dualpi2, ConfigError> {
        let mut dualpi2 = Dualpi2 {
            params: *params,
            device: *device,
            lanes: [Lane::default(); 2],
            drr: Drr::default(),
            store: Store::new(params.limit, device.memory)?,
            pi: Pi2::default(),
            overload: Recurrence::default(),
            timer: Periodic::new(device.tick, device.now, params.aqm.tupdate, params.aqm.tupdate),
            lent: 0,
            stats: Stats::default(),
        };
        dualpi2.set_quanta();
        Ok(dualpi2)
    }

    fn set_quanta(&mut self) {
        for (lane, quantum) in self.lanes.iter_mut().zip(quanta(&self.params, &self.device)) {
            lane.quantum = quantum;
        }
    }

    fn lane_of(&self, packet: &Packet) -> usize {
        let low_latency = packet.is_ip()
            && match packet.ecn() {
                Ecn::Ect1 | Ecn::Ce => true,
                Ecn::Ect0 => self.params.any_ect,
                Ecn::NotEct => false,
            };
        if low_latency {
            L
        } else {
            C
        }
    }

    /// How long the packet that has waited longest in a lane has waited.
    fn delay(&self, lane: usize, now: Time) -> Span {
        let head = self.store.head(&self.lanes[lane].queue);
        head.map_or(Span::ZERO, |packet| now.since(packet.enqueued))
    }

    #[inline]
    fn catch_up(&mut self, now: Time) {
        if self.timer.is_due(now) {
            self.update(now);
        }
    }

    #[cold]
    fn update(&mut self, now: Time) {
        let mut timer = self.timer;
        timer.catch_up(now, |at| {
            let delay = self.delay(L, at).max(self.delay(C, at));
            // A queue that stands gets older with each round.
            self.pi.update(&self.params.aqm, delay) || self.store.len() > 0
        });
        self.timer = timer;
    }

    /// Decision about a classic packet.
    fn classic(&mut self, packet: &Packet) -> Verdict {
        let probability = self.pi.squared();
        if !self.lanes[C].signals.hits(probability) {
            return Verdict::Pass;
        }
        let most = ONE / u64::from(self.params.coupling.pow(2)).max(1);
        if probability < most && packet.is_markable() {
            return Verdict::Marked;
        }
        Verdict::Drop
    }

    /// Decision about a packet of the L queue that has waited for `delay`.
    fn low_latency(&mut self, packet: &Packet, delay: Span) -> Verdict {
        let coupled = self.pi.coupled(self.params.coupling);
        let overloaded = coupled >= ONE;
        if overloaded && self.params.drop_on_overload && self.overload.hits(self.pi.squared()) {
            return Verdict::Drop;
        }
        let left = self.lanes[L].packets;
        let beyond = match self.params.step {
            Step::Delay(most) => delay > most,
            Step::Packets(most) => left > most,
        };
        let step = beyond && left >= self.params.min_qlen_step;
        self.stats.step_marks += u32::from(step);
        if self.lanes[L].signals.hits(if step { ONE } else { coupled }) && packet.is_markable() {
            return Verdict::Marked;
        }
        Verdict::Pass
    }

    /// The lane whose turn it is; None also if the budget is spent.
    #[inline]
    fn turn(&mut self, budget: &Budget) -> Option<usize> {
        match self.params.classic_protection {
            0 if !self.lanes[L].queue.is_empty() => return Some(L),
            100.. if !self.lanes[C].queue.is_empty() => return Some(C),
            _ => {}
        }
        let store = &self.store;
        let lane = self.drr.next_covered(
            &mut self.lanes,
            |lane| store.head_len(&lane.queue).unwrap_or(0),
            |lane| lane.quantum,
            budget,
        );
        lane.map(|lane| lane as usize)
    }

    /// Takes the first packet of `lane` out of it. [`Store::send`] or [`Store::discard`] must
    /// follow.
    fn detach(&mut self, lane: usize) -> Option<u32> {
        let (slot, ..) = self.store.detach(&mut self.lanes[lane].queue)?;
        self.lanes[lane].packets -= 1;
        if self.lanes[lane].queue.is_empty() {
            self.drr.retire(&mut self.lanes, lane as u32);
        }
        Some(slot)
    }

    fn is_full(&self, packet: &Packet) -> bool {
        let memory = self.store.memory + u64::from(packet.truesize);
        self.store.len() + self.lent >= self.params.limit.min(MAX_PACKETS)
            || memory > u64::from(self.params.memory_limit(&self.device))
    }

    /// The books for what was decided about a packet of `lane`.
    fn note(&mut self, verdict: Verdict, lane: usize) {
        match (verdict, lane) {
            (Verdict::Pass, _) => {}
            (Verdict::Marked, _) => self.stats.ecn_mark += 1,
            (Verdict::Drop, L) => self.stats.drops_l += 1,
            (Verdict::Drop, _) => self.stats.drops_c += 1,
        }
    }
}

impl Qdisc for Dualpi2 {
    #[inline]
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.store.books.totals.enqueued_packets += 1;
        self.catch_up(now);
        if self.is_full(packet) || !self.store.has_slot() {
            self.stats.overlimit += 1;
            return self.store.refuse(packet, now, DropReason::Overlimit, owner);
        }
        let lane = self.lane_of(packet);
        let mut verdict = Verdict::Pass;
        if lane == C && !self.params.drop_at_dequeue {
            verdict = self.classic(packet);
            self.note(verdict, lane);
            if verdict == Verdict::Drop {
                return self.store.refuse(packet, now, DropReason::Congested, owner);
            }
        }
        let queued = self.store.insert(&mut self.lanes[lane].queue, packet, now);
        debug_assert!(queued.is_some(), "the store has one slot more than the limit");
        if verdict == Verdict::Marked {
            queued.map(Packet::mark_ce);
        }
        self.lanes[lane].packets += 1;
        let quantum = self.lanes[lane].quantum;
        self.drr.activate(&mut self.lanes, lane as u32, quantum);
        self.stats.max_queue = self.stats.max_queue.max(self.store.len());
        self.stats.max_memory_used = self.stats.max_memory_used.max(narrow(self.store.memory));
        match lane {
            L => self.stats.packets_in_l += 1,
            _ => self.stats.packets_in_c += 1,
        }
    }

    #[inline]
    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.catch_up(now);
        let budget = Budget::default();
        while let Some(lane) = self.turn(&budget) {
            let slot = self.detach(lane)?;
            let packet = *self.store.packet(slot)?;
            let delay = now.since(packet.enqueued);
            match lane {
                L => self.stats.delay_l = delay,
                _ => self.stats.delay_c = delay,
            }
            let verdict = match lane {
                L => self.low_latency(&packet, delay),
                _ if self.params.drop_at_dequeue => self.classic(&packet),
                _ => Verdict::Pass,
            };
            self.note(verdict, lane);
            match verdict {
                Verdict::Drop => {
                    self.store.discard(slot, DropReason::Congested, owner);
                    if !budget.spend() {
                        break;
                    }
                    continue;
                }
                Verdict::Marked => {
                    self.store.packet_mut(slot)?.mark_ce();
                }
                Verdict::Pass => {}
            }
            self.lanes[lane].account.charge(packet.len);
            return self.store.send(slot);
        }
        None
    }

    fn lend(&mut self, lent: Backlog, _: Time) {
        self.lent = lent.packets;
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        let heads = self.lanes.iter().filter_map(|lane| self.store.head(&lane.queue));
        heads.map(|packet| packet.enqueued).min()
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        for lane in [L, C] {
            self.store.clear(&mut self.lanes[lane].queue, owner);
            self.drr.retire(&mut self.lanes, lane as u32);
            self.lanes[lane].packets = 0;
            self.lanes[lane].signals = Recurrence::default();
        }
        (self.pi, self.overload) = (Pi2::default(), Recurrence::default());
    }
}

impl Managed for Dualpi2 {
    fn snapshot(&self) -> Snapshot {
        let mut totals = self.store.totals();
        totals.marked = self.stats.ecn_mark.into();
        let stats = Stats {
            probability: self.pi.base(),
            credit: self.lanes[C].account.deficit - self.lanes[L].account.deficit,
            memory_used: narrow(self.store.memory),
            memory_limit: self.params.memory_limit(&self.device),
            qlen_l: self.lanes[L].packets,
            qlen_c: self.lanes[C].packets,
            ..self.stats
        };
        Snapshot { totals, backlog: self.backlog(), detail: Detail::Dualpi2(stats) }
    }

    fn config(&self) -> Config {
        Config::Dualpi2(self.params)
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        prepared::<Params>(config, &self.device, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, _: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of::<Dualpi2>(spare) else { return };
        self.params = spare.params;
        let params = spare.params;
        self.timer.set_period(params.aqm.tupdate);
        self.set_quanta();
        let limit = params.limit.min(MAX_PACKETS);
        let memory_limit = u64::from(params.memory_limit(&self.device));
        let too_much = |store: &Store<u64>| store.len() > limit || store.memory > memory_limit;
        // The classic queue stands; the other one is short by design.
        for lane in [C, L] {
            while too_much(&self.store) {
                let Some(slot) = self.detach(lane) else { break };
                self.stats.overlimit += 1;
                self.store.discard(slot, DropReason::Overlimit, owner);
            }
        }
        let queues = self.lanes.iter_mut().map(|lane| &mut lane.queue);
        self.store.take_room(&mut spare.store, queues);
    }
}

#[cfg(test)]
mod tests;
