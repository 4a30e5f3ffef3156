//! `dualpi2`: two coupled queues, for low latency and for the rest (RFC 9332; man tc-dualpi2).
//!
//! ECT(1) and CE packets are of scalable senders (RFC 9331) and go to the L queue. All others go to
//! the C queue, unless their class says otherwise. Minor number 1 is the L queue, 2 is the L queue
//! without any signals. The C queue is under [`Pi2`]: marked or dropped with the square of its
//! probability. The L queue is marked from `step_thresh` on, and with `coupling` times that
//! probability, so that its senders leave the others their share. While fewer than two full frames
//! wait, the probability has no say.
//!
//! A credit decides whose turn it is while both queues have packets. Each byte that the L queue
//! then sends adds the share of the C queue to it (`classic_protection` percent). Each byte of the
//! C queue takes away the share of the L queue. The L queue sends while the credit is not above
//! zero.
//!
//! Overload (section 4.2) is when marking all of the L queue is not enough. Then its packets are
//! dropped as classic ones are, and these even if they are ECN-capable. With `overflow` the
//! probability ends there, and the limit alone drops.
//!
//! All decisions are those of Linux 7.3.
//!
//! Invariants: order within each queue; `enqueued = sent + dropped + queued`.

mod netlink;
mod stats;
mod words;

use alloc::boxed::Box;

use crate::aqm::pi2::{Pi2, Pi2Params, ONE};
use crate::aqm::Verdict;
use crate::packet::{Ecn, Flags, Packet};
use crate::qdisc::stats::narrow;
use crate::qdisc::store::{Queue, Store, MAX_PACKETS};
use crate::qdisc::{
    prepared, spare_of, Backlog, Config, ConfigError, Detail, Device, DropReason, Managed,
    PacketOwner, Qdisc, Snapshot,
};
use crate::random::Random;
use crate::steps::Budget;
use crate::tick::{Periodic, Tick};
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
    /// Coupling factor, 1 to 255: the L queue's marking probability divided by the square root of
    /// the C queue's.
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
    /// Split super-packets: whoever hands over packets does it ([`Needs`](super::Needs)).
    pub split_gso: bool,
    /// The controller.
    pub aqm: Pi2Params,
}

impl Params {
    /// The largest base probability: without drops in overload, what marks all of the L queue.
    fn most(&self) -> u32 {
        match self.drop_on_overload {
            true => ONE,
            false => ONE / self.coupling.max(1),
        }
    }

    /// The queue of packets with this ECN field, whatever their class.
    fn has_low_latency(&self, packet: &Packet) -> bool {
        packet.is_ip()
            && match packet.ecn() {
                Ecn::Ect1 | Ecn::Ce => true,
                Ecn::Ect0 => self.any_ect,
                Ecn::NotEct => false,
            }
    }

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

/// Minor numbers of classes: the L queue, and the L queue without signals.
const L4S: u32 = 1;
const UNTOUCHED: u32 = 2;

/// One of the two queues.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    queue: Queue,
    packets: u32,
}

/// Two coupled queues.
#[derive(Clone, Debug)]
pub struct Dualpi2 {
    params: Params,
    device: Device,
    lanes: [Lane; 2],
    /// Debt to the C queue, which sends while it is above zero. Bytes by percent.
    credit: i32,
    store: Store<u64>,
    pi: Pi2,
    random: Random,
    timer: Periodic,
    /// Time of the last call.
    seen: Time,
    /// Packets that whoever stands above has taken out to look at.
    lent: Backlog,
    stats: Stats,
}

impl Dualpi2 {
    /// Empty queues for `device`.
    pub fn new(params: &Params, device: &Device) -> Result<Dualpi2, ConfigError> {
        let period = params.aqm.tupdate;
        let mut dualpi2 = Dualpi2 {
            params: *params,
            device: *device,
            lanes: [Lane::default(); 2],
            credit: 0,
            store: Store::new(params.limit, device.memory)?,
            pi: Pi2::default(),
            random: Random::new(device.seed),
            // Linux's is precise, not one of its timer wheel.
            timer: Periodic::new(Tick::Exact, device.now, period, period),
            seen: device.now,
            lent: Backlog::default(),
            stats: Stats::default(),
        };
        dualpi2.forget_credit();
        Ok(dualpi2)
    }

    /// Bytes of a full frame.
    fn frame(&self) -> u32 {
        self.device.mtu.clamp(1, 1 << 20)
    }

    /// Percent of the L and of the C queue.
    fn shares(&self) -> [i32; 2] {
        let classic = i32::from(self.params.classic_protection.min(100));
        [100 - classic, classic]
    }

    /// The credit of two queues that have sent nothing: the larger share begins.
    fn forget_credit(&mut self) {
        let [low_latency, classic] = self.shares();
        self.credit = self.frame() as i32 * (classic - low_latency);
    }

    fn lane_of(&self, packet: &Packet) -> usize {
        if self.params.has_low_latency(packet) {
            return L;
        }
        match packet.minor_of(self.device.handle) {
            Some(L4S | UNTOUCHED) => L,
            _ => C,
        }
    }

    /// True for a packet of the L queue that is neither marked nor dropped.
    fn is_untouched(&self, packet: &Packet) -> bool {
        packet.minor_of(self.device.handle) == Some(UNTOUCHED)
            && !self.params.has_low_latency(packet)
    }

    /// Time that the first packet of a lane has waited by `now`; zero if there is none.
    fn delay(&self, lane: usize, now: Time) -> Span {
        let head = self.store.head(&self.lanes[lane].queue);
        head.map_or(Span::ZERO, |packet| now.since(packet.enqueued))
    }

    #[inline]
    fn catch_up(&mut self, now: Time) {
        self.seen = now;
        if self.timer.is_due(now) {
            self.update(now);
        }
    }

    #[cold]
    fn update(&mut self, now: Time) {
        let (mut timer, most) = (self.timer, self.params.most());
        timer.catch_up(now, |at| {
            let delay = self.delay(L, at).max(self.delay(C, at));
            // A queue that stands gets older with each round.
            self.pi.update(&self.params.aqm, delay, most) || self.store.len() > 0
        });
        self.timer = timer;
    }

    /// True with the probability `chance`.
    #[inline]
    fn draw(&mut self, chance: u32) -> bool {
        self.random.u32() <= chance
    }

    /// Decision of the controller about a packet of `lane`.
    #[inline]
    fn judge(&mut self, lane: usize, packet: &Packet) -> Verdict {
        let queued = self.store.backlog().bytes + self.lent.bytes;
        if queued < 2 * u64::from(self.frame()) {
            return Verdict::Pass;
        }
        let (base, coupled) = (self.pi.base(), self.pi.coupled(self.params.coupling));
        let overload = coupled > ONE.into();
        let signal = match lane {
            C => self.draw(base) && self.draw(base),
            _ if self.is_untouched(packet) => false,
            _ if !overload => self.draw(coupled as u32),
            _ if self.params.drop_on_overload && self.draw(base) && self.draw(base) => {
                return Verdict::Drop;
            }
            _ => packet.is_markable(),
        };
        match signal {
            false => Verdict::Pass,
            true if packet.is_markable() && !(lane == C && overload) => Verdict::Marked,
            true => Verdict::Drop,
        }
    }

    /// True if a packet of the L queue has waited too long, by its `delay` or by the packets behind
    /// it.
    #[inline]
    fn is_late(&self, packet: &Packet, delay: Span) -> bool {
        packet.flags.has(Flags::STEP)
            && match self.params.step {
                Step::Delay(most) => delay > most,
                Step::Packets(most) => self.lanes[L].packets > most,
            }
    }

    /// The lane whose turn it is, and what each byte from it adds to the credit.
    #[inline]
    fn turn(&mut self) -> Option<(usize, i32)> {
        let has = |lane: usize| !self.lanes[lane].queue.is_empty();
        let [low_latency, classic] = self.shares();
        match (has(L), has(C)) {
            (true, true) if self.credit <= 0 => Some((L, classic)),
            (true, true) => Some((C, -low_latency)),
            (true, false) => Some((L, 0)),
            (false, true) => Some((C, 0)),
            (false, false) => {
                self.forget_credit();
                None
            }
        }
    }

    /// Takes the first packet of `lane` out of it, which leaves without [`Flags::STEP`], and says
    /// how it was queued. [`Store::send`] or [`Store::discard`] must follow.
    fn detach(&mut self, lane: usize) -> Option<(u32, Packet)> {
        let (slot, packet, _) = self.store.detach(&mut self.lanes[lane].queue)?;
        let queued = *packet;
        packet.flags.put(Flags::STEP, false);
        self.lanes[lane].packets -= 1;
        Some((slot, queued))
    }

    fn is_full(&self, packet: &Packet) -> bool {
        let memory = self.store.memory + u64::from(packet.truesize);
        self.store.len() + self.lent.packets >= self.params.limit.min(MAX_PACKETS)
            || memory > u64::from(self.params.memory_limit(&self.device))
    }

    fn count_drop(&mut self, lane: usize) {
        match lane {
            L => self.stats.drops_l += 1,
            _ => self.stats.drops_c += 1,
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
        let verdict = match self.params.drop_at_dequeue {
            true => Verdict::Pass,
            false => self.judge(lane, packet),
        };
        if verdict == Verdict::Drop {
            self.count_drop(lane);
            return self.store.refuse(packet, now, DropReason::Congested, owner);
        }
        // Linux counts before it adds.
        self.stats.max_queue = self.stats.max_queue.max(self.store.len() + self.lent.packets);
        let takes_steps = lane == L
            && self.lanes[L].packets >= self.params.min_qlen_step
            && !self.is_untouched(packet);
        let queued = self.store.insert(&mut self.lanes[lane].queue, packet, now);
        debug_assert!(queued.is_some(), "the store has one slot more than the limit");
        if let Some(queued) = queued {
            queued.flags.put(Flags::STEP, takes_steps);
            if verdict == Verdict::Marked {
                queued.mark_ce();
                self.stats.ecn_mark += 1;
                self.store.books.totals.marked += 1;
            }
        }
        self.lanes[lane].packets += 1;
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
        while let Some((lane, change)) = self.turn() {
            let (slot, packet) = self.detach(lane)?;
            let delay = now.since(packet.enqueued);
            let mut verdict = match self.params.drop_at_dequeue {
                true => self.judge(lane, &packet),
                false => Verdict::Pass,
            };
            let is_late = lane == L && verdict != Verdict::Drop && self.is_late(&packet, delay);
            // As in Linux, a packet that is marked for both reasons counts twice.
            if verdict == Verdict::Marked {
                self.stats.ecn_mark += 1;
            }
            if is_late && packet.is_markable() {
                self.stats.ecn_mark += 1;
                self.stats.step_marks += 1;
                verdict = Verdict::Marked;
            } else if is_late {
                verdict = Verdict::Drop;
            }
            if verdict == Verdict::Drop {
                self.count_drop(lane);
                self.store.discard(slot, DropReason::Congested, owner);
                if !budget.spend() {
                    return None;
                }
                continue;
            }
            self.credit = self.credit.wrapping_add((packet.len as i32).wrapping_mul(change));
            if verdict == Verdict::Marked {
                let packet = self.store.packet_mut(slot)?;
                let before = packet.flags.has(Flags::MARKED);
                packet.mark_ce();
                self.store.books.totals.marked += u64::from(!before);
            }
            return self.store.send(slot);
        }
        None
    }

    fn lend(&mut self, lent: Backlog, now: Time) {
        self.catch_up(now);
        self.lent = lent;
    }

    #[inline]
    fn next_event(&self) -> Option<Time> {
        let heads = self.lanes.iter().filter_map(|lane| self.store.head(&lane.queue));
        heads.map(|packet| packet.enqueued).min()
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    /// As in Linux, the counters of the controller, too, but for the last delay.
    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        for lane in [L, C] {
            while let Some((slot, _)) = self.detach(lane) {
                self.store.discard(slot, DropReason::Reset, owner);
            }
        }
        self.pi.restart();
        self.forget_credit();
        let Stats { drops_c, drops_l, overlimit, .. } = self.stats;
        self.stats = Stats { drops_c, drops_l, overlimit, ..Stats::default() };
    }
}

impl Managed for Dualpi2 {
    fn snapshot(&self) -> Snapshot {
        let mut totals = self.store.totals();
        totals.overlimits = self.stats.overlimit.into();
        let stats = Stats {
            probability: self.pi.base(),
            delay_l: self.delay(L, self.seen),
            delay_c: self.delay(C, self.seen),
            credit: self.credit,
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

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        let Some(spare) = spare_of::<Dualpi2>(spare) else { return };
        self.catch_up(now);
        let params = spare.params;
        let shares = self.params.classic_protection;
        self.params = params;
        self.timer.set_period(params.aqm.tupdate);
        if shares != params.classic_protection {
            self.forget_credit();
        }
        let limit = params.limit.min(MAX_PACKETS);
        let memory_limit = u64::from(params.memory_limit(&self.device));
        let too_much = |store: &Store<u64>| store.len() > limit || store.memory > memory_limit;
        // The classic queue stands; the other one is short by design.
        for lane in [C, L] {
            while too_much(&self.store) {
                let Some((slot, _)) = self.detach(lane) else { break };
                self.store.discard(slot, DropReason::Overlimit, owner);
            }
        }
        let queues = self.lanes.iter_mut().map(|lane| &mut lane.queue);
        self.store.take_room(&mut spare.store, queues);
    }
}

#[cfg(test)]
mod tests;
