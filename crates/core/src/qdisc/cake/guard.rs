//! The guard of hosts: however many flows a host has, and however often they come and go, the
//! others keep their share. (Ours; Linux divides a flow's quantum by the load of its hosts
//! instead.)
//!
//! DRR++ at two levels. Hosts share a tin as flows do elsewhere: a host that was idle goes first
//! with one quantum, then takes turns. Within its turn a host's flows share by DRR++ again. So a
//! host of a thousand new flows is not a thousand times first, and one that sends little waits for
//! nobody's flows. Two more things are kept apart:
//!
//! * *Queues.* A new flow whose set of eight is full may take a queue there from the host with most
//!   flows. It does so if its own host has fewer flows, the new one included. What lies in that
//!   queue joins another queue of the host that lost it. Otherwise hosts share queues with
//!   themselves.
//! * *Room.* On overflow the host with most bytes queued loses packets, from its longest queue as
//!   far as that is known.
//!
//! A host is one end of a flow: the one that the settings name, or else the end with fewer hosts,
//! but at least two. Those are the ones at home, if the other end is the Internet.
//!
//! Invariants: a flow that is new, waiting or old stands in the group that `ends` says; a group
//! with flows stands in its tin's list.

use alloc::boxed::Box;

use super::flows::{Flow, Flows};
use super::hosts::{End, Hosts};
use super::loads::{recount, LoadRule};
use super::overflow::Heap;
use super::params::{FlowMode, HostGuard, Params};
use super::tin::Tin;
use super::tins::{empty, Tins};
use super::MAX_TINS;
use crate::arena::Arena;
use crate::memory::{filled, Memory, NoMemory};
use crate::packet::Packet;
use crate::sched::active::Turns;
use crate::sched::rotation::Rotation;
use crate::sched::scheduler::Scheduler;
use crate::sched::sparse::{Quanta, Sparse};
use crate::sched::ways::set_of;
use crate::sched::{Account, Scheduled, Standing};
use crate::steps::Budget;
use crate::time::Time;

/// A host's flows.
#[derive(Clone, Debug, Default)]
struct Group {
    account: Account,
    flows: Sparse<Rotation>,
    /// Flows that stand here.
    count: u32,
    /// Bytes queued (`len`).
    backlog: u64,
    /// The longest queue, as far as arrivals tell; may have passed to another host.
    longest: u32,
}

impl Scheduled for Group {
    #[inline(always)]
    fn account(&mut self) -> &mut Account {
        &mut self.account
    }
}

impl Group {
    /// The flow, which stands here, has no packets: it goes to rest, at once or by way of decay.
    fn retire(
        &mut self,
        tin: &mut Tin,
        queues: &mut [Flow],
        flow_index: u32,
        now: Time,
        rule: LoadRule,
        hosts: &mut Hosts,
    ) {
        self.count -= 1;
        self.flows.remove(queues, flow_index);
        let Some(flow) = queues.get_mut(flow_index as usize) else { return };
        let to = empty(tin, flow, now, rule, hosts);
        flow.account.standing = to;
        if to == Standing::Decaying {
            tin.decaying.push(queues, flow_index);
        }
    }
}

/// The groups of all tins.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// By tin, end and place.
    groups: Box<[Group]>,
    /// The end by which each queue's flow is grouped.
    ends: Box<[End]>,
    /// The groups of each tin in the order of their turns.
    turns: [Sparse; MAX_TINS],
    /// Places of an end in a tin.
    places: u32,
    /// The end that the settings name.
    end: Option<End>,
    /// The group with most bytes, as far as arrivals tell.
    heaviest: u32,
}

impl Guard {
    /// The guard that `params` ask for, over so many `tins`, if their flow mode isolates hosts.
    #[inline(never)]
    pub(super) fn wanted(
        params: &Params,
        tins: usize,
        memory: Memory,
    ) -> Result<Option<Box<Guard>>, NoMemory> {
        let end = match (params.flow_mode, params.host_guard) {
            (_, HostGuard::Off) => return Ok(None),
            (FlowMode::DualSrchost, _) => Some(End::Source),
            (FlowMode::DualDsthost, _) => Some(End::Destination),
            (FlowMode::TripleIsolate, HostGuard::Source) => Some(End::Source),
            (FlowMode::TripleIsolate, HostGuard::Destination) => Some(End::Destination),
            (FlowMode::TripleIsolate, HostGuard::On) => None,
            _ => return Ok(None),
        };
        let all = tins * params.queues as usize;
        let mut guard = Box::new(Guard {
            groups: filled(2 * all, Group::default())?,
            ends: filled(all, End::Source)?,
            turns: Default::default(),
            places: params.queues,
            end,
            heaviest: 0,
        });
        for turns in &mut guard.turns[..tins] {
            *turns = Sparse::with_wheel(memory)?;
        }
        Ok(Some(guard))
    }

    /// Forgets all flows.
    pub(super) fn clear(&mut self) {
        self.groups.fill(Group::default());
        self.turns.iter_mut().for_each(Sparse::clear);
        self.heaviest = 0;
    }

    /// The end by which flows are grouped now.
    fn present_end(&self, hosts: &Hosts) -> End {
        self.end_for(hosts.in_use())
    }

    /// The end by which flows are grouped among so many sources and destinations.
    pub(super) fn end_for(&self, [sources, destinations]: [u32; 2]) -> End {
        self.end.unwrap_or(match (sources > 1, destinations > 1) {
            (true, true) if destinations < sources => End::Destination,
            (false, true) => End::Destination,
            _ => End::Source,
        })
    }

    /// The flow, which stands nowhere and has no packet, is grouped by `end`.
    pub(super) fn assign(&mut self, flow_index: u32, end: End) {
        if let Some(own) = self.ends.get_mut(flow_index as usize) {
            *own = end;
        }
    }

    /// Index of a host's group.
    fn group_index_at(&self, tin_index: usize, end: End, place: u16) -> u32 {
        (2 * tin_index as u32 + end as u32) * self.places + u32::from(place)
    }

    /// Index of the group of `flow`.
    fn group_index_of(&self, tin_index: usize, flow_index: u32, flow: &Flow) -> u32 {
        let end = self.ends.get(flow_index as usize).copied().unwrap_or(End::Source);
        self.group_index_at(tin_index, end, flow.hosts[end as usize])
    }

    /// A packet of `len` bytes was queued for `flow`.
    #[inline]
    pub(super) fn grown(&mut self, tin_index: usize, flow_index: u32, queues: &[Flow], len: u32) {
        let Some(flow) = queues.get(flow_index as usize) else { return };
        let group_index = self.group_index_of(tin_index, flow_index, flow);
        let Some(group) = self.groups.get_mut(group_index as usize) else { return };
        group.backlog += u64::from(len);
        let longest = queues.get(group.longest as usize).map_or(0, |flow| flow.backlog);
        if flow.backlog >= longest {
            group.longest = flow_index;
        }
        let backlog = group.backlog;
        self.weigh(group_index, backlog);
    }

    /// The group has got packets, and now has `backlog` bytes.
    #[inline(always)]
    fn weigh(&mut self, group_index: u32, backlog: u64) {
        let most = self.groups.get(self.heaviest as usize).map_or(0, |group| group.backlog);
        if backlog > most {
            self.heaviest = group_index;
        }
    }

    /// A packet of `len` bytes of `flow` left.
    #[inline]
    pub(super) fn shrunk(&mut self, tin_index: usize, flow_index: u32, flow: &Flow, len: u32) {
        let group_index = self.group_index_of(tin_index, flow_index, flow);
        if let Some(group) = self.groups.get_mut(group_index as usize) {
            group.backlog -= u64::from(len);
        }
    }

    /// `len` bytes are charged to the host of `flow`.
    #[inline]
    pub(super) fn charge(&mut self, tin_index: usize, flow_index: u32, flow: &Flow, len: u32) {
        let group_index = self.group_index_of(tin_index, flow_index, flow);
        if let Some(group) = self.groups.get_mut(group_index as usize) {
            group.account.charge(len);
        }
    }

    /// A long queue of the heaviest host: its longest, as far as arrivals tell, else any with
    /// packets. None if there is none among those that `budget` allows to look at.
    pub(super) fn heaviest_flow(&mut self, flows: &Flows, budget: &Budget) -> Option<u32> {
        let has_packets = |index: &u32| flows.has_packets(*index);
        let is_there = |&index: &u32| {
            let flow = flows.get(index);
            let own = flow.map(|flow| self.group_index_of(flows.tin_index_of(index), index, flow));
            own == Some(self.heaviest)
        };
        let group = self.groups.get(self.heaviest as usize)?;
        let longest = Some(group.longest).filter(has_packets).filter(is_there);
        let others = || {
            let mut standing = group.flows.standing(next_of(&flows.queues));
            // Some have sent their last packet.
            standing.find(|index| budget.is_short() || (budget.spend() && has_packets(index)))
        };
        let found = longest.or_else(others).filter(has_packets);
        if let Some(flow_index) = found {
            self.groups.get_mut(self.heaviest as usize)?.longest = flow_index;
        }
        found
    }

    /// The flow, which has packets, moves to the group of its other host.
    fn regroup(
        &mut self,
        tin_index: usize,
        queues: &mut [Flow],
        flow_index: u32,
        end: End,
        flow_quantum: u32,
    ) {
        let Some(flow) = queues.get(flow_index as usize) else { return };
        let (from, bytes) =
            (self.group_index_of(tin_index, flow_index, flow), u64::from(flow.backlog));
        let to = self.group_index_at(tin_index, end, flow.hosts[end as usize]);
        self.assign(flow_index, end);
        if let Some(group) = self.groups.get_mut(from as usize) {
            group.flows.remove(queues, flow_index);
            group.count -= 1;
            group.backlog -= bytes;
        }
        let Some(group) = self.groups.get_mut(to as usize) else { return };
        group.flows.rejoin(queues, flow_index);
        group.count += 1;
        group.backlog += bytes;
        let backlog = group.backlog;
        self.weigh(to, backlog);
        self.turns[tin_index % MAX_TINS].activate(&mut self.groups, to, flow_quantum);
    }
}

/// The quanta of flows within their host's turn: all the same.
struct Within<'a> {
    tin: &'a mut Tin,
    rule: LoadRule,
    hosts: &'a mut Hosts,
}

impl Quanta<Flow> for Within<'_> {
    #[inline]
    fn next(&mut self, flow: &mut Flow, ages: bool) -> u32 {
        if ages {
            let to = if flow.packets.is_empty() { Standing::Waiting } else { Standing::Old };
            recount(self.tin, flow, Standing::New, to, self.rule, self.hosts);
            flow.account.standing = to;
        }
        self.tin.flow_quantum
    }

    fn mean(&mut self, _: &mut Flow) -> u64 {
        u64::from(self.tin.flow_quantum) << 16
    }
}

impl Tins {
    /// As [`Tins::wake`], where hosts are guarded.
    #[inline(never)]
    pub(super) fn wake_guarded(&mut self, tin_index: usize, flow_index: u32) {
        let Tins { tins, flows, hosts, rule, active, guard, .. } = self;
        let Some(guard) = guard else { return };
        let tin = &mut tins[tin_index % MAX_TINS];
        let queues = &mut *flows.queues;
        let Some(flow) = queues.get_mut(flow_index as usize) else { return };
        let from = flow.account.standing;
        let to = match from {
            Standing::Idle | Standing::Decaying => Standing::New,
            Standing::Waiting => Standing::Old,
            _ => return,
        };
        recount(tin, flow, from, to, *rule, hosts);
        if to == Standing::Old {
            flow.account.standing = to;
            return;
        }
        let group_index = guard.group_index_of(tin_index, flow_index, flow);
        if from == Standing::Decaying {
            tin.decaying.remove(queues, flow_index);
        }
        let Guard { groups, turns, .. } = &mut **guard;
        let Some(group) = groups.get_mut(group_index as usize) else { return };
        group.count += 1;
        group.flows.enter(queues, flow_index, tin.flow_quantum);
        turns[tin_index % MAX_TINS].activate(groups, group_index, tin.flow_quantum);
        *active |= 1 << tin_index;
    }

    /// As [`Tins::choose_flow`], where hosts are guarded: a host, and then one of its flows.
    #[inline(never)]
    pub(super) fn choose_guarded(
        &mut self,
        tin_index: usize,
        now: Time,
        drops_are_charged: bool,
        budget: &Budget,
    ) -> Option<u32> {
        let Tins { tins, flows, hosts, rule, active, guard, .. } = self;
        let guard = guard.as_mut()?;
        let tin = &mut tins[tin_index % MAX_TINS];
        let queues = &mut *flows.queues;
        let end = guard.present_end(hosts);
        loop {
            let Guard { groups, turns, ends, .. } = &mut **guard;
            let turns = &mut turns[tin_index % MAX_TINS];
            let flow_quantum = tin.flow_quantum;
            let Some(group_index) = turns.choose(groups, |_: &Group| flow_quantum, budget) else {
                if turns.is_empty() {
                    *active &= !(1 << tin_index);
                }
                return None;
            };
            let group = groups.get_mut(group_index as usize)?;
            let quanta = Within { tin, rule: *rule, hosts };
            let Some(flow_index) = group.flows.choose(queues, quanta, budget) else {
                if !budget.spend() {
                    return None;
                }
                turns.found_empty(groups, group_index);
                continue;
            };
            let flow = queues.get_mut(flow_index as usize)?;
            if flow.packets.is_empty() {
                group.retire(tin, queues, flow_index, now, *rule, hosts);
                budget.spend_on(1);
                if !budget.spend() || drops_are_charged {
                    return None;
                }
            } else if ends.get(flow_index as usize) == Some(&end) {
                return Some(flow_index);
            } else {
                guard.regroup(tin_index, queues, flow_index, end, flow_quantum);
                if !budget.spend() {
                    return None;
                }
            }
        }
    }

    /// The flow has lost a packet. If that was its last, it retires: on overflow nobody looks for
    /// packets in vain.
    #[cold]
    pub(super) fn settle_guarded(&mut self, tin_index: usize, flow_index: u32, now: Time) {
        let Tins { tins, flows, hosts, rule, guard, .. } = self;
        let Some(guard) = guard else { return };
        let Some(flow) = flows.get(flow_index) else { return };
        if flow.packets.is_empty() {
            let group_index = guard.group_index_of(tin_index, flow_index, flow);
            let tin = &mut tins[tin_index % MAX_TINS];
            let Some(group) = guard.groups.get_mut(group_index as usize) else { return };
            group.retire(tin, &mut flows.queues, flow_index, now, *rule, hosts);
        }
    }

    /// A queue for the flow with `hash`, whose set is full.
    #[cold]
    pub(super) fn share_or_take(
        &mut self,
        tin_index: usize,
        hash: u32,
        packet: &Packet,
        arena: &mut Arena,
        heap: &mut Heap,
    ) -> u32 {
        let home = self.flows.home(tin_index, hash);
        let Some(guard) = &self.guard else { return home };
        let base = self.flows.base(tin_index);
        let ends = [(End::Source, packet.src_host), (End::Destination, packet.dst_host)];
        let end = guard.end_for(ends.map(|(end, host)| self.hosts.in_use_with(base, end, host)));
        let host = if end == End::Source { packet.src_host } else { packet.dst_host };
        let place = self.hosts.find(base, end, host);
        let own = guard.group_index_at(tin_index, end, place);
        let flow = |index: u32| self.flows.get(index);
        let group_of = |index: u32| Some(guard.group_index_of(tin_index, index, flow(index)?));
        let count = |index: u32| guard.groups.get(index as usize).map_or(0, |group| group.count);

        let mut ways = set_of(home);
        let decaying = |index: &u32| {
            flow(*index).map(|flow| flow.account.standing) == Some(Standing::Decaying)
        };
        let taken = ways.clone().find(decaying).or_else(|| {
            let others = |index: u32| group_of(index).map_or(0, count);
            let heaviest = ways.clone().max_by_key(|&index| others(index))?;
            (others(heaviest) > count(own) + 1).then_some(heaviest)
        });
        if let Some(flow_index) = taken {
            self.vacate(tin_index, flow_index, arena, heap);
            self.flows.rename(flow_index, hash);
            self.assign_hosts(tin_index, flow_index, packet);
            return flow_index;
        }
        ways.find(|&index| group_of(index) == Some(own))
            .or_else(|| {
                let group = guard.groups.get(own as usize)?;
                group.flows.standing(next_of(&self.flows.queues)).next()
            })
            .unwrap_or(home)
    }

    /// Frees a queue: its packets join another one of the same host, which has one.
    fn vacate(&mut self, tin_index: usize, flow_index: u32, arena: &mut Arena, heap: &mut Heap) {
        let Tins { tins, flows, hosts, rule, guard, .. } = self;
        let Some(guard) = guard else { return };
        let tin = &mut tins[tin_index % MAX_TINS];
        let queues = &mut *flows.queues;
        let Some(flow) = queues.get_mut(flow_index as usize) else { return };
        let group_index = guard.group_index_of(tin_index, flow_index, flow);
        let from = flow.account.standing;
        recount(tin, flow, from, Standing::Idle, *rule, hosts);
        tin.forget_signals(flow);
        let mut packets = core::mem::take(&mut flow.packets);
        let bytes = core::mem::take(&mut flow.backlog);
        let mut heir = None;
        if from == Standing::Decaying {
            tin.decaying.remove(queues, flow_index);
        } else if let Some(group) = guard.groups.get_mut(group_index as usize) {
            group.count -= 1;
            group.flows.remove(queues, flow_index);
            heir = group.flows.standing(next_of(queues)).next();
        }
        if let Some(flow) = queues.get_mut(flow_index as usize) {
            flow.account.standing = Standing::Idle;
        }
        let Some(heir) = heir.filter(|_| !packets.is_empty()) else { return };
        let Some(flow) = queues.get_mut(heir as usize) else { return };
        if flow.account.standing == Standing::Waiting {
            recount(tin, flow, Standing::Waiting, Standing::Old, *rule, hosts);
            flow.account.standing = Standing::Old;
        }
        arena.append(&mut flow.packets, &mut packets);
        flow.backlog = flow.backlog.wrapping_add(bytes);
        heap.shrunk(flow_index, flows);
        heap.grown(heir, flows);
    }
}

/// The queue after a given one in its list.
fn next_of(queues: &[Flow]) -> impl Fn(u32) -> Option<u32> + Copy + '_ {
    |index| Some(queues.get(index as usize)?.account.links().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::List;
    use crate::qdisc::Device;
    use crate::rate::Rate;

    fn guard(flow_mode: FlowMode, host_guard: HostGuard) -> Option<Box<Guard>> {
        let params = Params { flow_mode, host_guard, queues: 8, ..Params::default() };
        Guard::wanted(&params, 2, Memory::Reserved).unwrap()
    }

    #[test]
    fn hosts_are_guarded_at_the_end_that_mode_or_words_name() {
        use FlowMode::{DualDsthost, DualSrchost, Flows, Hosts, TripleIsolate};
        let (source, destination) = (Some(Some(End::Source)), Some(Some(End::Destination)));
        for (flow_mode, host_guard, end) in [
            (TripleIsolate, HostGuard::Off, None),
            (TripleIsolate, HostGuard::On, Some(None)),
            (TripleIsolate, HostGuard::Source, source),
            (TripleIsolate, HostGuard::Destination, destination),
            (DualSrchost, HostGuard::On, source),
            (DualDsthost, HostGuard::On, destination),
            (DualDsthost, HostGuard::Off, None),
            (Flows, HostGuard::On, None),
            (Hosts, HostGuard::On, None),
        ] {
            assert!(guard(flow_mode, host_guard).map(|guard| guard.end) == end, "{flow_mode:?}");
        }
    }

    /// A home has few hosts, and the world beyond the line many.
    #[test]
    fn without_a_word_the_end_with_fewer_hosts_counts_unless_it_has_one() {
        let guard = guard(FlowMode::TripleIsolate, HostGuard::On).unwrap();
        for (hosts, end) in [
            ([0, 0], End::Source),
            ([1, 1], End::Source),
            ([2, 1], End::Source),
            ([9, 1], End::Source),
            ([1, 2], End::Destination),
            ([1, 9], End::Destination),
            ([3, 2], End::Destination),
            ([2, 3], End::Source),
            ([2, 2], End::Source),
        ] {
            assert!(guard.end_for(hosts) == end, "{hosts:?}");
        }
        let named = self::guard(FlowMode::TripleIsolate, HostGuard::Destination).unwrap();
        assert!(named.end_for([2, 9]) == End::Destination);
    }

    #[test]
    fn the_longest_queue_of_the_host_with_most_bytes_is_found() {
        let mut guard = guard(FlowMode::DualSrchost, HostGuard::On).unwrap();
        let mut flows = Flows::new(2, 8).unwrap();
        let mut arena = Arena::new(99, 9, Memory::Reserved).unwrap();
        let mut put = |guard: &mut Guard, flows: &mut Flows, index: u32, host, len| {
            let flow = &mut flows.queues[index as usize];
            flow.hosts = [host, 0];
            arena.push(&mut flow.packets, &Packet::new(0, len)).unwrap();
            flow.backlog += len;
            guard.grown(0, index, &flows.queues, len);
        };
        let found =
            |guard: &mut Guard, flows: &Flows| guard.heaviest_flow(flows, &Budget::default());
        put(&mut guard, &mut flows, 1, 3, 900);
        assert_eq!(found(&mut guard, &flows), Some(1));
        put(&mut guard, &mut flows, 2, 5, 500);
        assert_eq!(found(&mut guard, &flows), Some(1), "less is not heavier");
        put(&mut guard, &mut flows, 4, 5, 400);
        assert_eq!(found(&mut guard, &flows), Some(1), "as much is not heavier");
        put(&mut guard, &mut flows, 4, 5, 50);
        assert_eq!(found(&mut guard, &flows), Some(2), "the longer of the heavier host");
        put(&mut guard, &mut flows, 4, 5, 50);
        assert_eq!(found(&mut guard, &flows), Some(4), "as long, and later");
        // Packets leave: the other host is the heavier one with its next packet.
        guard.shrunk(0, 4, &flows.queues[4], 400);
        let backlog = |guard: &Guard, host: usize| guard.groups[host].backlog;
        assert_eq!((backlog(&guard, 3), backlog(&guard, 5)), (900, 600));
        put(&mut guard, &mut flows, 1, 3, 100);
        assert_eq!(found(&mut guard, &flows), Some(1));
        // Where the longest has sent all, any other of that host that has packets.
        let queues = &mut flows.queues;
        [2, 4, 1].iter().for_each(|index| guard.groups[3].flows.enter(queues, *index, 1514));
        flows.queues[2].hosts = [3, 0];
        let all = core::mem::take(&mut flows.queues[1].packets);
        assert_eq!(found(&mut guard, &flows), Some(2), "not one of another host");
        flows.queues[2].packets = List::EMPTY;
        assert_eq!(found(&mut guard, &flows), Some(4), "the first one with packets");
        flows.queues[4].packets = List::EMPTY;
        assert_eq!(found(&mut guard, &flows), None);
        flows.queues[1].packets = all;
        assert_eq!(found(&mut guard, &flows), Some(1));
        guard.clear();
        assert_eq!((guard.heaviest, backlog(&guard, 3)), (0, 0));
    }

    /// A flow without packets ends the tin's turn where drops are charged, since earlier drops may
    /// have made it another tin's turn.
    #[test]
    fn after_a_flow_in_vain_the_tin_is_chosen_anew_where_drops_are_charged() {
        let (flow_mode, host_guard) = (FlowMode::DualSrchost, HostGuard::On);
        let params = Params { flow_mode, host_guard, queues: 8, ..Params::default() };
        for (are_charged, chosen) in [(false, [Some(2), Some(2)]), (true, [None, Some(2)])] {
            let (flows, hosts) = (Flows::new(3, 8).unwrap(), Hosts::new(3, 8).unwrap());
            let mut tins = Tins::new(&params, flows, hosts, guard(flow_mode, host_guard));
            tins.set_rate(Rate(0), &params, &Device::default());
            let mut arena = Arena::new(9, 9, Memory::Reserved).unwrap();
            for index in [1, 2] {
                tins.flows.queues[usize::from(index)].hosts = [index, 0];
                tins.wake_guarded(0, index.into());
            }
            let list = &mut tins.flows.queues[2].packets;
            arena.push(list, &Packet::new(0, 100)).unwrap();
            let mut choose = || tins.choose_guarded(0, Time(9), are_charged, &Budget::default());
            assert_eq!([choose(), choose()], chosen);
        }
    }

    #[test]
    fn a_flow_moves_with_its_bytes_to_its_other_host() {
        let mut guard = guard(FlowMode::TripleIsolate, HostGuard::On).unwrap();
        let mut queues = Flows::new(2, 8).unwrap().queues;
        for (index, backlog) in [(1, 100), (2, 250)] {
            let flow = &mut queues[index];
            (flow.hosts, flow.backlog) = ([3, 5], backlog);
            let group = &mut guard.groups[3];
            group.flows.enter(&mut queues, index as u32, 1514);
            (group.count, group.backlog) = (group.count + 1, group.backlog + u64::from(backlog));
        }
        for (flow_index, end, source, destination) in [
            (2, End::Destination, (1, 100), (1, 250)),
            (1, End::Destination, (0, 0), (2, 350)),
            (2, End::Source, (1, 250), (1, 100)),
        ] {
            guard.regroup(0, &mut queues, flow_index, end, 1514);
            let books = |group: &Group| (group.count, group.backlog);
            // Eight places of sources, and then those of destinations.
            let [own, other] = [3, 8 + 5].map(|index: usize| books(&guard.groups[index]));
            assert_eq!((own, other), (source, destination), "{flow_index}");
            assert!(guard.ends[flow_index as usize] == end);
            let place = if end == End::Source { 3 } else { 8 + 5 };
            let next = next_of(&queues);
            assert!(guard.groups[place].flows.standing(next).any(|index| index == flow_index));
        }
    }
}
