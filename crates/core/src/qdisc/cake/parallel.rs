//! CAKE on parallel queues: one discipline for each transmit queue, one rate and one fairness.
//!
//! A [`Member`] is CAKE with a seat among others (`sched::parallel`, which has the scheme). Its own
//! shaper is off: the seat says when a packet may leave. A flow's quantum is divided by the load
//! that its hosts have over all queues. The seat is told the sum of these weights and each byte of
//! service, so that the rounds of all queues keep pace.
//!
//! A change is prepared and adopted member by member; in between, members run at different rates,
//! each in the others' rounds.
//!
//! So far without `autorate-ingress`, savings and a guard of hosts; with these a member is refused.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::flows::Flow;
use super::hosts::{End, Hosts};
use super::loads::{reciprocal, recount, recount_in, rounded, LoadRule};
use super::params::HostGuard;
use super::tins::{empty, Tins};
use super::{Cake, Params, MAX_TINS};
use crate::memory::reserved;
use crate::packet::Packet;
use crate::qdisc::{
    spare_of, Backlog, Class, Config, ConfigError, Device, Managed, PacketOwner, Qdisc, Snapshot,
};
use crate::random::Random;
use crate::rate::ByteTime;
use crate::sched::active::Turns;
pub(super) use crate::sched::parallel::Seat;
use crate::sched::parallel::{Shared, Timing, MOST_SEATS};
use crate::sched::sparse::Quanta;
use crate::sched::Standing;
use crate::steps::Budget;
use crate::time::Time;

/// The loads of hosts over all queues.
#[derive(Debug)]
pub(super) struct Everywhere(Arc<Shared>);

impl Everywhere {
    pub(super) fn count(&self, base: u32, end: End, hash: u32) {
        self.0.loads.count(end as usize, in_tin(base, hash), 1);
    }

    pub(super) fn discount(&self, base: u32, end: End, hash: u32, flows: u16) {
        if flows > 0 {
            self.0.loads.discount(end as usize, in_tin(base, hash), flows.into());
        }
    }

    fn load(&self, base: u32, end: End, hash: u32) -> u16 {
        self.0.loads.load(end as usize, in_tin(base, hash))
    }
}

/// The name of a host in the tin that begins at `base`: its loads there are its own.
fn in_tin(base: u32, hash: u32) -> u32 {
    hash ^ base.wrapping_mul(0x9e37_79b9)
}

/// One of several disciplines that share a rate and are fair together.
#[derive(Debug)]
pub struct Member(Box<Cake>);

impl Member {
    /// A discipline for each of `count` queues, with `params` for all of them together, that are
    /// asked as `timing` says.
    pub fn all(
        params: &Params,
        device: &Device,
        count: usize,
        timing: &'static Timing,
    ) -> Result<Vec<Member>, ConfigError> {
        let range = (1..=MOST_SEATS).contains(&count);
        accept(range, "mq", "1 to 256 transmit queues")?;
        Member::suits(params)?;
        let mut members = reserved(count)?;
        for (number, seat) in Shared::seats(count, timing)?.enumerate() {
            let seed = Random::derive(device.seed, number as u64).u64();
            let mut cake = Cake::boxed(0, params, &Device { seed, ..*device })?;
            let everywhere = Everywhere(seat.shared().clone());
            cake.tins.take_seat(Box::new(seat), Some(everywhere));
            cake.leave_rate_to_seat();
            members.push(Member(cake));
        }
        Ok(members)
    }

    /// An error unless parallel queues can have these settings.
    pub fn suits(params: &Params) -> Result<(), ConfigError> {
        accept(!params.bandwidth.is_unlimited(), "bandwidth", "a rate that parallel queues share")?;
        let is_steady = !params.autorate_ingress;
        accept(is_steady, "autorate-ingress", "a rate that is given, on parallel queues")?;
        accept(params.savings.is_none(), "savings", "none on parallel queues")?;
        let is_unguarded = params.host_guard == HostGuard::Off;
        accept(is_unguarded, "host-guard", "`no-host-guard` on parallel queues")
    }

    /// Leaves the line to the others if all that was queued has been dropped. Nobody asks an empty
    /// queue again, and the others would wait for it.
    fn settle(&mut self) {
        if self.0.arena.is_empty() {
            self.0.tins.leave_line();
        }
    }
}

/// An error unless `ok`.
fn accept(ok: bool, option: &'static str, expected: &'static str) -> Result<(), ConfigError> {
    ok.then_some(()).ok_or(ConfigError::OutOfRange { option, expected })
}

impl Cake {
    /// Leaves the rate to its seat among parallel queues, if it has one.
    pub(super) fn leave_rate_to_seat(&mut self) {
        let count = self.tins.count();
        let Tins { tins, seat: Some(seat), .. } = &mut self.tins else { return };
        let shares = tins.iter().take(count).map(|tin| (tin.rate, tin.flow_quantum));
        seat.configure(self.rate, self.device.arithmetic, shares, self.params.ingress);
        self.clock.set_rate(ByteTime::default());
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.tins.seat.iter_mut().for_each(|seat| seat.clear());
    }
}

impl Qdisc for Member {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.0.enqueue(packet, now, owner);
        self.settle();
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        if self.0.arena.is_empty() {
            return None;
        }
        let (active, sparse) = self.0.tins.waiting();
        self.0.tins.seat.as_mut()?.choose(now, active, sparse)?;
        self.0.dequeue(now, owner)
    }

    fn next_event(&self) -> Option<Time> {
        let seat = self.0.tins.seat.as_ref()?;
        let (_, sparse) = self.0.tins.waiting();
        (!self.0.arena.is_empty()).then(|| seat.due(sparse))
    }

    fn placement(&self) -> Option<(u8, u32)> {
        self.0.placement()
    }

    fn backlog(&self) -> Backlog {
        self.0.backlog()
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.0.reset(owner);
    }
}

impl Managed for Member {
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }

    fn marked(&self) -> u64 {
        self.0.marked()
    }

    fn class(&self, n: u32) -> Option<Class> {
        self.0.class(n)
    }

    fn queue_of(&self, packet: &Packet) -> Option<u32> {
        self.0.queue_of(packet)
    }

    fn config(&self) -> Config {
        self.0.config()
    }

    fn prepare(&self, config: &Config, _: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        self.prepare_on(config, &self.0.device)
    }

    fn prepare_on(
        &self,
        config: &Config,
        device: &Device,
    ) -> Result<Box<dyn Managed + Send>, ConfigError> {
        let Config::Cake(params) = config else { return Err(ConfigError::OtherDiscipline) };
        Member::suits(params)?;
        Ok(Box::new(Member(Cake::boxed(self.0.arena.capacity(), params, device)?)))
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        let Some(Member(spare)) = spare_of(spare) else { return };
        self.0.reconfigure(spare, now, owner);
        self.settle();
    }
}

impl LoadRule {
    /// `flow` passes from the new flows to the old.
    fn age(self, bulk_flows: &mut u32, base: u32, flow: &Flow, hosts: &mut Hosts) {
        recount_in(bulk_flows, base, flow, Standing::New, Standing::Old, self, hosts);
    }
}

impl Tins {
    /// Is one of parallel queues from now on.
    fn take_seat(&mut self, seat: Box<Seat>, everywhere: Option<Everywhere>) {
        (self.seat, self.hosts.everywhere) = (Some(seat), everywhere);
        self.is_plain = false;
    }

    /// As [`Tins::take_seat`], in place of `old`, none of whose flows counts any more.
    pub(super) fn take_seat_of(&mut self, old: &mut Tins) {
        let Some(mut seat) = old.seat.take() else { return };
        seat.clear();
        old.hosts.clear();
        self.take_seat(seat, old.hosts.everywhere.take());
    }

    /// Nothing is left but what is being sent.
    pub(super) fn leave_line(&mut self) {
        self.seat.iter_mut().for_each(|seat| seat.leave());
    }

    /// Tins with packets, and those in which a flow without a standing queue is next; a bit each.
    fn waiting(&self) -> (u32, u32) {
        let (mut active, mut sparse) = (0, 0);
        for tin_index in 0..self.count() {
            let tin = self.tin(tin_index);
            active |= u32::from(tin.backlog > 0) << tin_index;
            let first = tin.sparse.first_new().and_then(|index| self.flows.get(index));
            let is_new = first.is_some_and(|flow| flow.account.deficit > 0);
            sparse |= u32::from(is_new) << tin_index;
        }
        (active, sparse & active)
    }

    /// The tin that the seat has chosen.
    pub(super) fn tin_of_seat(&self) -> Option<usize> {
        self.seat.as_ref()?.tin()
    }

    /// A tin without packets gets some.
    pub(super) fn start_parallel(&mut self, tin_index: usize, now: Time) {
        self.seat.iter_mut().for_each(|seat| seat.start(tin_index, now));
    }

    /// As [`Tins::wake`].
    #[cold]
    pub(super) fn wake_parallel(&mut self, tin_index: usize, flow_index: u32, random: &mut Random) {
        let Tins { tins, flows, hosts, rule, active, seat, .. } = self;
        let tin = &mut tins[tin_index % MAX_TINS];
        let queues = &mut *flows.queues;
        let Some(flow) = queues.get_mut(flow_index as usize) else { return };
        let from = flow.account.standing;
        match from {
            Standing::Idle | Standing::Decaying => {}
            Standing::Waiting => {
                recount(tin, flow, from, Standing::Old, *rule, hosts);
                flow.account.standing = Standing::Old;
                let weight = weight(tin.base, flow, hosts);
                return reweigh(seat, tin_index, flow, weight);
            }
            _ => return,
        }
        recount(tin, flow, from, Standing::New, *rule, hosts);
        let part = weight(tin.base, flow, hosts);
        if from == Standing::Decaying {
            tin.decaying.remove(queues, flow_index);
        }
        tin.sparse.enter(queues, flow_index, rounded(tin.flow_quantum, part.into(), random));
        *active |= 1 << tin_index;
    }

    /// As [`Tins::choose_flow`].
    #[cold]
    pub(super) fn choose_parallel(
        &mut self,
        tin_index: usize,
        now: Time,
        random: &mut Random,
        budget: &Budget,
    ) -> Option<u32> {
        let Tins { tins, flows, hosts, rule, active, seat, .. } = self;
        let tin = &mut tins[tin_index % MAX_TINS];
        let queues = &mut *flows.queues;
        loop {
            let (base, flow_quantum) = (tin.base, tin.flow_quantum);
            let bulk_flows = &mut tin.bulk_flows;
            let rule = *rule;
            let quanta =
                Rounds { tin_index, flow_quantum, base, bulk_flows, rule, hosts, random, seat };
            let Some(flow_index) = tin.sparse.choose(queues, quanta, budget) else {
                if tin.sparse.is_empty() {
                    *active &= !(1 << tin_index);
                }
                return None;
            };
            let flow = queues.get_mut(flow_index as usize)?;
            if !flow.packets.is_empty() {
                return Some(flow_index);
            }
            if let (Standing::Old, Some(seat)) = (flow.account.standing, &mut *seat) {
                // Service of its round that it forgoes.
                seat.charge(tin_index, flow.account.deficit.max(0) as u32);
            }
            reweigh(seat, tin_index, flow, 0);
            let to = empty(tin, flow, now, rule, hosts);
            tin.sparse.leave(queues, flow_index, to);
            if to == Standing::Decaying {
                tin.decaying.push(queues, flow_index);
            }
            if !budget.spend() {
                return None;
            }
        }
    }

    /// The flow has sent a packet of which so many bytes are charged.
    pub(super) fn sent_parallel(&mut self, tin_index: usize, flow_index: u32, charged: u32) {
        let is_bulk = self.is_bulk(flow_index);
        if let Some(seat) = &mut self.seat {
            seat.sent(tin_index, charged, is_bulk);
        }
    }

    /// A packet of the flow was dropped when it was to be sent; so many bytes are charged.
    pub(super) fn dropped_parallel(
        &mut self,
        tin_index: usize,
        flow_index: u32,
        charged: u32,
        now: Time,
    ) {
        let is_bulk = self.is_bulk(flow_index);
        let Some(seat) = &mut self.seat else { return };
        seat.dropped(tin_index, charged, now);
        if is_bulk {
            seat.charge(tin_index, charged);
        }
    }

    fn is_bulk(&self, flow_index: u32) -> bool {
        self.flows.get(flow_index).is_some_and(|flow| flow.account.standing == Standing::Old)
    }

    /// A packet that was not yet to be sent was dropped, of which so many bytes are charged.
    pub(super) fn charge_line(&mut self, tin_index: usize, charged: u32, now: Time) {
        self.seat.iter_mut().for_each(|seat| seat.dropped(tin_index, charged, now));
    }

    /// Flows with a standing queue in other parallel queues.
    pub(super) fn bulk_elsewhere(&self, tin_index: usize) -> u32 {
        self.seat.as_ref().map_or(0, |seat| seat.bulk_elsewhere(tin_index))
    }
}

/// The quanta of flows by their loads over all queues.
struct Rounds<'a> {
    tin_index: usize,
    flow_quantum: u32,
    base: u32,
    bulk_flows: &'a mut u32,
    rule: LoadRule,
    hosts: &'a mut Hosts,
    random: &'a mut Random,
    seat: &'a mut Option<Box<Seat>>,
}

impl Rounds<'_> {
    /// The present weight of `flow`, which the seat is told if it has a standing queue.
    fn weigh(&mut self, flow: &mut Flow) -> u16 {
        let weight = weight(self.base, flow, self.hosts);
        if flow.account.standing == Standing::Old {
            reweigh(self.seat, self.tin_index, flow, weight);
        }
        weight
    }
}

impl Quanta<Flow> for Rounds<'_> {
    fn next(&mut self, flow: &mut Flow, ages: bool) -> u32 {
        if ages && flow.packets.is_empty() {
            flow.account.standing = Standing::Waiting;
        } else if ages {
            self.rule.age(self.bulk_flows, self.base, flow, self.hosts);
        }
        let weight = self.weigh(flow);
        if let (true, Standing::Old, Some(seat)) = (ages, flow.account.standing, &mut *self.seat) {
            // What it sent beyond its first quantum it pays for in the rounds to come.
            seat.charge(self.tin_index, flow.account.deficit.min(0).unsigned_abs());
        }
        rounded(self.flow_quantum, weight.into(), self.random)
    }

    fn mean(&mut self, flow: &mut Flow) -> u64 {
        u64::from(self.flow_quantum * u32::from(self.weigh(flow)))
    }
}

/// Part of a quantum that a flow gets: one by the larger load of its hosts over all queues.
fn weight(base: u32, flow: &Flow, hosts: &Hosts) -> u16 {
    let ends = [(End::Source, flow.hosts[0]), (End::Destination, flow.hosts[1])];
    let load = |(end, place)| {
        // The mode does not isolate an end at whose place nobody counts.
        let here = hosts.load(base, end, place);
        let everywhere = hosts.everywhere.as_ref();
        everywhere.map_or(here, |all| all.load(base, end, hosts.tag(base, end, place)))
    };
    let [source, destination] = ends.map(load);
    reciprocal(source.max(destination)) as u16
}

/// Tells the seat that the weight of `flow` is another.
fn reweigh(seat: &mut Option<Box<Seat>>, tin_index: usize, flow: &mut Flow, weight: u16) {
    if let Some(seat) = seat {
        seat.reweigh(tin_index, flow.account.weight, weight);
        flow.account.weight = weight;
    }
}
