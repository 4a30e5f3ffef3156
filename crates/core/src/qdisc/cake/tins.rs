//! Whom to serve: the choice between tins, and between the flows of a tin.
//!
//! While shaping, the highest tin whose clock is not ahead of time is served. If all are ahead, the
//! one that is least so is served: an idle tin's share is borrowed. Without a shaper the tins share
//! by weighted DRR. Within a tin, DRR++: flows that keep within a quantum are served before those
//! with a standing queue. A flow's quantum is divided by the load of its hosts. (Piece of CAKE,
//! sections III-B and III-C, Algorithm 2; facts A.4, A.5, A.8.)
//!
//! With limited deficit savings (ours) DRR-LDS takes the place of DRR++ within the tins; see
//! `saving`.
//!
//! Invariants: a flow is in the list that its standing says. `active` has the bit of each tin with
//! flows that may have something to send.

use alloc::boxed::Box;

use super::flows::{Flow, Flows};
use super::guard::Guard;
use super::hosts::{End, Hosts};
use super::loads::{part, quantum, recount, recount_in, LoadRule};
use super::overflow::Heap;
use super::parallel::Seat;
use super::params::{FlowMode, Params};
use super::tin::{share, Tin};
use super::MAX_TINS;
use crate::aqm::cobalt::Emptied;
use crate::arena::{Arena, List};
use crate::memory::NoMemory;
use crate::packet::Packet;
use crate::qdisc::Device;
use crate::random::Random;
use crate::rate::Rate;
use crate::sched::active::Turns;
use crate::sched::sparse::{Quanta, Sparse};
use crate::sched::ways::Found;
use crate::sched::Standing;
use crate::steps::{step, Budget};
use crate::time::Time;

/// So many turns of tins in debt are part of what a call may do; fewer are not worth counting.
const LONG: u32 = 16;
/// Turns of tins in debt after which whole rounds are paid at once.
const TURNS: u32 = 128;

/// All tins with their queues and hosts.
#[derive(Debug)]
pub(super) struct Tins {
    pub(super) tins: Row,
    count: usize,
    pub(super) flows: Flows,
    pub(super) hosts: Hosts,
    pub(super) rule: LoadRule,
    /// Tins that have flows with something to send, one bit each.
    pub(super) active: u32,
    /// Tins whose deficit may have to be refilled, one bit each.
    owing: u32,
    /// Most savings of an empty queue in bytes, if it may save.
    pub(super) savings: Option<u32>,
    pub(super) guard: Option<Box<Guard>>,
    /// Its place among parallel queues, if it is one.
    pub(super) seat: Option<Box<Seat>>,
    /// Neither savings nor a guard nor a seat: DRR++ with quanta by the load of hosts.
    pub(super) is_plain: bool,
}

/// Tins side by side. Where stacks are short they are in a box of their own, since construction
/// would have them on its stack. Elsewhere they are without that detour, which is some two percent
/// of a packet's time.
#[cfg(feature = "pages")]
type Row = Box<[Tin; MAX_TINS]>;
#[cfg(not(feature = "pages"))]
type Row = [Tin; MAX_TINS];

/// Tins of `queues` queues each, apart for the stack's sake.
#[inline(never)]
fn at_rest(queues: u32) -> Row {
    #[allow(clippy::useless_conversion)]
    Row::from(core::array::from_fn(|n| Tin::new(n as u32 * queues)))
}

impl Tins {
    /// Idle tins for `params`; [`Tins::reserve`] and [`Tins::set_rate`] must follow.
    #[inline(always)]
    pub(super) fn new(
        params: &Params,
        flows: Flows,
        hosts: Hosts,
        guard: Option<Box<Guard>>,
    ) -> Tins {
        let count = super::tin_map::tin_map(params.diffserv).count();
        Tins {
            tins: at_rest(params.queues),
            count,
            flows,
            hosts,
            rule: LoadRule::new(params),
            active: 0,
            owing: every_tin(count),
            savings: params.savings,
            seat: None,
            is_plain: params.savings.is_none() && guard.is_none(),
            guard,
        }
    }

    /// Reserves the memory of the tins themselves.
    pub(super) fn reserve(&mut self, queues: u32, device: &Device) -> Result<(), NoMemory> {
        for tin in self.iter_mut() {
            tin.sparse = Sparse::as_by(device.arithmetic, device.memory)?;
        }
        self.open_savings(queues);
        Ok(())
    }

    /// Sets rates, quanta, targets and intervals of all tins for a global rate.
    pub(super) fn set_rate(&mut self, rate: Rate, params: &Params, device: &Device) {
        for (tin_index, tin) in self.iter_mut().enumerate() {
            let (rate, quantum) = share(params.diffserv, rate, tin_index);
            tin.configure(rate, quantum, params, device);
        }
    }

    /// Forgets all flows, whose queues must be empty, and hosts; keeps settings and counters.
    pub(super) fn forget(&mut self, queues: u32) {
        self.iter_mut().for_each(Tin::forget);
        self.flows.clear();
        self.hosts.clear();
        self.guard.iter_mut().for_each(|guard| guard.clear());
        self.seat.iter_mut().for_each(|seat| seat.clear());
        self.active = 0;
        self.owing = every_tin(self.count);
        self.reopen_savings(queues);
    }

    /// Number of tins.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// All tins.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Tin> {
        self.tins.iter_mut().take(self.count)
    }

    /// A tin. (The remainder says to the compiler that there is one of that number.)
    #[inline(always)]
    pub(super) fn tin(&self, tin_index: usize) -> &Tin {
        &self.tins[tin_index % MAX_TINS]
    }

    /// A tin, to be changed.
    #[inline(always)]
    pub(super) fn tin_mut(&mut self, tin_index: usize) -> &mut Tin {
        &mut self.tins[tin_index % MAX_TINS]
    }

    /// A tin and one of its queues, if there is a queue of that number.
    #[inline(always)]
    pub(super) fn pair_mut(
        &mut self,
        tin_index: usize,
        flow_index: u32,
    ) -> Option<(&mut Tin, &mut Flow)> {
        Some((&mut self.tins[tin_index % MAX_TINS], self.flows.get_mut(flow_index)?))
    }

    /// True if a tin has flows that may have something to send.
    #[inline(always)]
    pub(super) fn is_active(&self, tin_index: usize) -> bool {
        self.active >> tin_index & 1 != 0
    }

    /// Index of the tin to serve while shaping: the highest one on schedule, else the one with the
    /// earliest schedule. None if no tin has flows.
    #[inline(always)]
    pub(super) fn choose_by_schedule(&self, now: Time) -> Option<usize> {
        let mut rest = self.active;
        if rest & rest.wrapping_sub(1) == 0 {
            return (rest != 0).then(|| rest.trailing_zeros() as usize);
        }
        let (mut best, mut earliest) = (0, Time::MAX);
        while rest != 0 {
            let tin_index = rest.trailing_zeros() as usize;
            let due = self.tin(tin_index).time_next;
            if due <= now || due <= earliest {
                (best, earliest) = (tin_index, due);
            }
            rest &= rest - 1;
        }
        Some(best)
    }

    /// The tin to serve without a shaper, starting from `current`: weighted DRR. None if no tin
    /// has flows. The caller charges what it sends to the tin's deficit.
    #[inline(always)]
    pub(super) fn choose_by_deficit(
        &mut self,
        mut current: usize,
        budget: &Budget,
    ) -> Option<usize> {
        if self.active == 0 {
            return None;
        }
        // The usual case in few steps: one tin has packets, and the others are not in debt.
        if self.active | self.owing == 1 << current {
            self.owing = self.active;
            let tin = self.tin_mut(current);
            for _ in 0..LONG {
                if tin.deficit >= 0 {
                    return Some(current);
                }
                step();
                tin.refill(1);
            }
        } else {
            for _ in 0..LONG {
                match self.turn(current) {
                    Ok(chosen) => return Some(chosen),
                    Err(next) => current = next,
                }
            }
        }
        budget.lend(|budget| self.choose_by_deficit_at_length(current, budget))
    }

    /// As [`Tins::choose_by_deficit`] after the first turns.
    #[cold]
    #[inline(never)]
    fn choose_by_deficit_at_length(
        &mut self,
        mut current: usize,
        budget: &Budget,
    ) -> Option<usize> {
        let mut turns = LONG;
        // Ends: each round pays every tin that is in debt its quantum.
        loop {
            match self.turn(current) {
                Ok(chosen) => {
                    budget.spend_on(turns);
                    return Some(chosen);
                }
                Err(next) => current = next,
            }
            turns += 1;
            if turns.is_multiple_of(TURNS) {
                self.pay_whole_rounds();
            }
        }
    }

    /// One turn of weighted DRR: the tin itself, if it may send, or the one whose turn is next.
    #[inline(always)]
    fn turn(&mut self, current: usize) -> Result<usize, usize> {
        let (bit, is_active) = (1 << current, self.is_active(current));
        let tin = self.tin_mut(current);
        if is_active && tin.deficit >= 0 {
            self.owing |= bit;
            return Ok(current);
        }
        step();
        if tin.deficit <= 0 {
            tin.refill(1);
        } else {
            self.owing &= !bit;
        }
        // Nothing happens to the other tins in their turns.
        let concerned = self.active | self.owing;
        let later = concerned & (u32::MAX << 1 << current);
        let next = if later != 0 { later } else { concerned };
        Err(next.trailing_zeros() as usize)
    }

    /// Pays the rounds after which still no active tin may send, all at once.
    #[cold]
    fn pay_whole_rounds(&mut self) {
        let (active, owing, count) = (self.active, self.owing, self.count);
        let numbers = || (0..count).filter(|tin_index| (active | owing) >> tin_index & 1 != 0);
        let waiting = numbers().filter(|tin_index| active >> tin_index & 1 != 0);
        let rounds = waiting.map(|tin_index| self.tin(tin_index).rounds_in_debt());
        let Some(least) = rounds.min() else { return };
        for tin_index in numbers() {
            let tin = self.tin_mut(tin_index);
            tin.refill(tin.rounds_in_debt().min(least.saturating_sub(1)));
        }
    }

    /// Index of the queue for `packet`, with its hosts known if the mode needs them.
    #[inline(always)]
    pub(super) fn flow_index_of(
        &mut self,
        tin_index: usize,
        packet: &Packet,
        arena: &mut Arena,
        heap: &mut Heap,
    ) -> u32 {
        let LoadRule { mode, .. } = self.rule;
        if mode == FlowMode::Flowblind {
            return self.flows.base(tin_index);
        }
        let hash = mode.queue_hash(packet);
        let home = self.tin(tin_index).base + self.flows.within_tin(hash);
        match self.flows.guess(home, hash) {
            Some(flow_index) => {
                let counters = &mut self.tin_mut(tin_index).counters;
                counters.way_hits += 1;
                counters.way_indirect_hits += u32::from(flow_index != home);
                flow_index
            }
            None => self
                .search(tin_index, hash, packet)
                .unwrap_or_else(|| self.share_or_take(tin_index, hash, packet, arena, heap)),
        }
    }

    /// Index of the queue that the flow has, or gets. None: its set is full, and hosts are guarded.
    #[inline(never)]
    fn search(&mut self, tin_index: usize, hash: u32, packet: &Packet) -> Option<u32> {
        let (flow_index, found) = self.flows.search(tin_index, hash);
        let tin = &mut self.tins[tin_index % MAX_TINS];
        let counters = &mut tin.counters;
        match found {
            Found::Own { indirect } => {
                let is_free = self.flows.is_free(flow_index);
                counters.way_hits += u32::from(indirect || !is_free);
                counters.way_indirect_hits += u32::from(indirect);
                if is_free {
                    self.assign_hosts(tin_index, flow_index, packet);
                }
            }
            Found::Fresh => {
                counters.way_misses += 1;
                if self.savings.is_some() {
                    // An empty queue that saves keeps the signals that its last flow needed.
                    tin.forget_signals(self.flows.get_mut(flow_index)?);
                }
                self.assign_hosts(tin_index, flow_index, packet);
            }
            Found::Collision => {
                counters.way_collisions += 1;
                if self.guard.is_some() {
                    return None;
                }
                self.flows.rename(flow_index, hash);
                let (base, rule) = (self.flows.base(tin_index), self.rule);
                let flow = self.flows.get(flow_index)?;
                let is_counted = match self.savings {
                    None => rule.counts(flow.account.standing),
                    Some(_) => !flow.packets.is_empty(),
                };
                if is_counted {
                    rule.each_end(flow.hosts, |end, place| self.hosts.discount(base, end, place));
                }
                self.assign_hosts(tin_index, flow_index, packet);
                let hosts = self.flows.get(flow_index)?.hosts;
                if is_counted {
                    rule.each_end(hosts, |end, place| self.hosts.count(base, end, place));
                }
            }
        }
        Some(flow_index)
    }

    pub(super) fn assign_hosts(&mut self, tin_index: usize, flow_index: u32, packet: &Packet) {
        let (base, LoadRule { mode, .. }) = (self.flows.base(tin_index), self.rule);
        let Some(Flow { hosts, .. }) = self.flows.get_mut(flow_index) else { return };
        if mode.isolates_sources() {
            hosts[0] = self.hosts.find(base, End::Source, packet.src_host);
        }
        if mode.isolates_destinations() {
            hosts[1] = self.hosts.find(base, End::Destination, packet.dst_host);
        }
        if let Some(guard) = &mut self.guard {
            let ends = [(End::Source, packet.src_host), (End::Destination, packet.dst_host)];
            let hosts = ends.map(|(end, host)| self.hosts.in_use_with(base, end, host));
            guard.assign(flow_index, guard.end_for(hosts));
        }
    }

    /// Puts the flow whose first packet was just queued where it belongs.
    #[inline(always)]
    pub(super) fn wake(
        &mut self,
        tin_index: usize,
        flow_index: u32,
        packet: &Packet,
        adj_len: u32,
        random: &mut Random,
    ) {
        if !self.is_plain {
            if self.seat.is_some() {
                return self.wake_parallel(tin_index, flow_index, random);
            }
            return match self.savings {
                Some(_) => self.wake_saver(tin_index, flow_index, packet, adj_len),
                None => self.wake_guarded(tin_index, flow_index),
            };
        }
        let Tins { tins, flows, hosts, rule, active, .. } = self;
        let tin = &mut tins[tin_index % MAX_TINS];
        let queues = &mut *flows.queues;
        let Some(flow) = queues.get_mut(flow_index as usize) else { return };
        match flow.account.standing {
            Standing::Idle | Standing::Decaying => {}
            Standing::Waiting => {
                recount(tin, flow, Standing::Waiting, Standing::Old, *rule, hosts);
                flow.account.standing = Standing::Old;
                return;
            }
            _ => return,
        }
        let from = flow.account.standing;
        recount(tin, flow, from, Standing::New, *rule, hosts);
        let quantum = quantum(tin.flow_quantum, tin.base, flow, hosts, random);
        if from == Standing::Decaying {
            tin.decaying.remove(queues, flow_index);
        }
        tin.sparse.enter(queues, flow_index, quantum);
        *active |= 1 << tin_index;
    }

    /// Looks at one decaying flow of a tin: it goes to rest, or waits for another round.
    #[inline(always)]
    pub(super) fn decay(&mut self, tin_index: usize, now: Time) {
        let Tins { tins, flows, hosts, rule, .. } = self;
        let tin = &mut tins[tin_index % MAX_TINS];
        let queues = &mut *flows.queues;
        let Some((flow_index, flow)) = tin.decaying.head(queues) else { return };
        let Emptied { at_rest, tamed } = flow.cobalt.queue_empty(&tin.cobalt, now);
        if tamed {
            tin.counters.unresponsive -= 1;
        }
        if !at_rest {
            return tin.decaying.pass_to(flow.account.links().next());
        }
        recount(tin, flow, Standing::Decaying, Standing::Idle, *rule, hosts);
        flow.account.standing = Standing::Idle;
        tin.decaying.remove(queues, flow_index);
    }

    /// The flow of an active tin that sends next, with its index. On the way old debts are paid,
    /// and flows with nothing to send leave. Where `drops_are_charged`, nobody is chosen either if
    /// one has left: it may be another tin's turn then. Nothing else could make another the next.
    #[inline(always)]
    pub(super) fn choose_flow(
        &mut self,
        tin_index: usize,
        now: Time,
        drops_are_charged: bool,
        arena: &Arena,
        random: &mut Random,
        budget: &Budget,
    ) -> Option<(u32, &mut Tin, &mut Flow)> {
        if !self.is_plain {
            if self.seat.is_some() {
                let flow_index =
                    budget.lend(|budget| self.choose_parallel(tin_index, now, random, budget))?;
                let (tin, flow) = self.pair_mut(tin_index, flow_index)?;
                return Some((flow_index, tin, flow));
            }
            let flow_index = match self.savings {
                Some(_) => {
                    budget.lend(|budget| self.choose_saver(tin_index, arena, random, budget))?
                }
                None => {
                    let choose =
                        |budget: &_| self.choose_guarded(tin_index, now, drops_are_charged, budget);
                    budget.lend(choose)?
                }
            };
            let (tin, flow) = self.pair_mut(tin_index, flow_index)?;
            return Some((flow_index, tin, flow));
        }
        let Tins { tins, flows, hosts, rule, active, .. } = self;
        let tin = &mut tins[tin_index % MAX_TINS];
        let queues = &mut *flows.queues;
        let flow_index = loop {
            let Tin { sparse, bulk_flows, base, flow_quantum, .. } = tin;
            let quanta = TinQuanta {
                flow_quantum: *flow_quantum,
                base: *base,
                bulk_flows,
                rule: *rule,
                hosts,
                random,
            };
            let Some(flow_index) = sparse.choose(queues, quanta, budget) else {
                if sparse.is_empty() {
                    *active &= !(1 << tin_index);
                }
                return None;
            };
            if !queues.get(flow_index as usize)?.packets.is_empty() {
                break flow_index;
            }
            retire(tin, queues, flow_index, now, *rule, hosts);
            if !budget.spend() || drops_are_charged {
                return None;
            }
        };
        Some((flow_index, tin, queues.get_mut(flow_index as usize)?))
    }

    /// True without savings and without a guard.
    #[inline(always)]
    pub(super) fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// A long queue of the host with most bytes, which loses a packet on overflow. None unless
    /// hosts are guarded, or if none is found within `budget`.
    pub(super) fn heaviest_flow(&mut self, budget: &Budget) -> Option<u32> {
        self.guard.as_mut()?.heaviest_flow(&self.flows, budget)
    }

    /// A packet of `len` bytes was queued for the flow: the hosts' books.
    #[inline(always)]
    pub(super) fn note_arrival(&mut self, tin_index: usize, flow_index: u32, len: u32) {
        if let Some(guard) = &mut self.guard {
            guard.grown(tin_index, flow_index, &self.flows.queues, len);
        }
    }

    /// A packet of `len` bytes of the flow has left: the hosts' books.
    #[inline(always)]
    pub(super) fn note_removal(&mut self, tin_index: usize, flow_index: u32, len: u32) {
        if let Some(guard) = &mut self.guard {
            if let Some(flow) = self.flows.get(flow_index) {
                guard.shrunk(tin_index, flow_index, flow, len);
            }
        }
    }

    /// The flow has sent a packet of `len` bytes, and `charged` of them are its account's.
    #[inline(always)]
    pub(super) fn note_turn(&mut self, tin_index: usize, flow_index: u32, len: u32, charged: u32) {
        if let Some(guard) = &mut self.guard {
            let Some(flow) = self.flows.get(flow_index) else { return };
            guard.shrunk(tin_index, flow_index, flow, len);
            guard.charge(tin_index, flow_index, flow, charged);
        }
    }

    /// The packets of the flow whose turn comes after this one's.
    #[inline(always)]
    pub(super) fn upcoming(&self, flow_index: u32) -> Option<&List> {
        let queues = &*self.flows.queues;
        queues.get(flow_index as usize)?.account.upcoming(queues).map(|flow| &flow.packets)
    }
}

/// The bits of `count` tins.
fn every_tin(count: usize) -> u32 {
    (1 << count) - 1
}

/// The flow that was chosen had nothing to send: it goes to rest, at once or by way of decay.
#[inline(always)]
fn retire(
    tin: &mut Tin,
    queues: &mut [Flow],
    flow_index: u32,
    now: Time,
    rule: LoadRule,
    hosts: &mut Hosts,
) {
    let Some(flow) = queues.get_mut(flow_index as usize) else { return };
    let to = empty(tin, flow, now, rule, hosts);
    tin.sparse.leave(queues, flow_index, to);
    if to == Standing::Decaying {
        tin.decaying.push(queues, flow_index);
    }
}

/// The books of a flow that was chosen and had nothing to send; says where it is to stand.
#[inline(always)]
pub(super) fn empty(
    tin: &mut Tin,
    flow: &mut Flow,
    now: Time,
    rule: LoadRule,
    hosts: &mut Hosts,
) -> Standing {
    let Emptied { at_rest, tamed } = flow.cobalt.queue_empty(&tin.cobalt, now);
    if tamed {
        tin.counters.unresponsive -= 1;
    }
    let to = if at_rest { Standing::Idle } else { Standing::Decaying };
    recount(tin, flow, flow.account.standing, to, rule, hosts);
    to
}

/// The quanta of a tin's flows, which pass from new to old when they get them.
struct TinQuanta<'a> {
    flow_quantum: u32,
    base: u32,
    bulk_flows: &'a mut u32,
    rule: LoadRule,
    hosts: &'a mut Hosts,
    random: &'a mut Random,
}

impl Quanta<Flow> for TinQuanta<'_> {
    #[inline(always)]
    fn next(&mut self, flow: &mut Flow, ages: bool) -> u32 {
        if ages && flow.packets.is_empty() {
            // Counts as it did when it was new.
            flow.account.standing = Standing::Waiting;
        } else if ages {
            let (from, to) = (Standing::New, Standing::Old);
            recount_in(self.bulk_flows, self.base, flow, from, to, self.rule, self.hosts);
        }
        quantum(self.flow_quantum, self.base, flow, self.hosts, self.random)
    }

    fn mean(&mut self, flow: &mut Flow) -> u64 {
        u64::from(self.flow_quantum * part(self.base, flow, self.hosts))
    }
}

#[cfg(test)]
mod tests {
    use super::super::DiffservMode;
    use super::*;

    #[test]
    fn the_highest_tin_on_schedule_goes_or_the_one_that_is_due_first() {
        let params = Params { diffserv: DiffservMode::Diffserv4, queues: 8, ..Params::default() };
        let (flows, hosts) = (Flows::new(4, 8).unwrap(), Hosts::new(4, 8).unwrap());
        let mut tins = Tins::new(&params, flows, hosts, None);
        for (active, due, tin) in [
            (0, [0, 0, 0, 0], None),
            (0b0100, [9, 9, 99, 9], Some(2)),
            (0b1111, [5, 5, 10, 11], Some(2)),
            (0b0011, [5, 5, 9, 9], Some(1)),
            (0b1011, [30, 20, 9, 25], Some(1)),
            (0b1001, [20, 11, 11, 20], Some(3)),
            (0b1001, [20, 11, 11, 21], Some(0)),
        ] {
            tins.active = active;
            tins.iter_mut().zip(due).for_each(|(tin, due)| tin.time_next = Time(due));
            assert_eq!(tins.choose_by_schedule(Time(10)), tin, "{active:04b} {due:?}");
        }
    }
}
