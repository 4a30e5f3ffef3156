//! The loads that flows are to their hosts, and the quanta that follow from them.
//!
//! A flow that counts is a load of its hosts at the ends that the mode isolates. Its quantum is the
//! tin's, divided by the larger of its hosts' loads. (Piece of CAKE, Algorithm 2; facts A.8.)

use super::flows::Flow;
use super::hosts::{End, Hosts};
use super::params::{FlowMode, HostGuard, HostLoad, Params};
use super::tin::Tin;
use crate::random::Random;
use crate::sched::Standing;

/// The one place where a flow's standing is counted: keeps the tin's bulk flows and the hosts'
/// loads.
#[inline(always)]
pub(super) fn recount(
    tin: &mut Tin,
    flow: &Flow,
    from: Standing,
    to: Standing,
    rule: LoadRule,
    hosts: &mut Hosts,
) {
    recount_in(&mut tin.bulk_flows, tin.base, flow, from, to, rule, hosts);
}

/// As [`recount`], for the `bulk_flows` of the tin whose queues start at `base`.
#[inline(always)]
pub(super) fn recount_in(
    bulk_flows: &mut u32,
    base: u32,
    flow: &Flow,
    from: Standing,
    to: Standing,
    rule: LoadRule,
    hosts: &mut Hosts,
) {
    if from == Standing::Old {
        *bulk_flows -= 1;
    }
    if to == Standing::Old {
        *bulk_flows += 1;
    }
    if rule.counted & (1 << from as u8 | 1 << to as u8) == 0 {
        return;
    }
    match (rule.counts(from), rule.counts(to)) {
        (false, true) => rule.each_end(flow.hosts, |end, place| hosts.count(base, end, place)),
        (true, false) => rule.each_end(flow.hosts, |end, place| hosts.discount(base, end, place)),
        _ => {}
    }
}

/// Bytes that a flow may send in a turn: the tin's quantum divided by the load of its hosts. It is
/// rounded up or down at random, so that no flow loses by it. (Ends that the mode does not isolate
/// have no load.)
#[inline(always)]
pub(super) fn quantum(
    flow_quantum: u32,
    base: u32,
    flow: &Flow,
    hosts: &Hosts,
    random: &mut Random,
) -> u32 {
    rounded(flow_quantum, part(base, flow, hosts), random)
}

/// So many of 65536 parts of a quantum, rounded up or down at random.
#[inline(always)]
pub(super) fn rounded(flow_quantum: u32, part: u32, random: &mut Random) -> u32 {
    (flow_quantum * part + u32::from(random.u16())) >> 16
}

/// The part of a quantum that a flow gets, of 65536: one by the larger load of its hosts.
#[inline(always)]
pub(super) fn part(base: u32, flow: &Flow, hosts: &Hosts) -> u32 {
    let [source, destination] = flow.hosts;
    let source = hosts.load(base, End::Source, source);
    reciprocal(source.max(hosts.load(base, End::Destination, destination)))
}

/// 65535 / `load`, as Linux's table of reciprocals has it; without a load all.
#[inline(always)]
pub(super) fn reciprocal(load: u16) -> u32 {
    match RECIPROCALS.get(usize::from(load)) {
        Some(part) => u32::from(*part),
        None => divided(load),
    }
}

/// Those of most loads. Who shares a host is nothing that a branch could foresee.
const RECIPROCALS: [u16; 16] = {
    let mut all = [65_535; 16];
    let mut load = 2;
    while load < all.len() {
        all[load] = 65_535 / load as u16;
        load += 1;
    }
    all
};

#[cold]
fn divided(load: u16) -> u32 {
    65_535 / u32::from(load.max(1))
}

/// The rule by which flows count as their hosts' load, and at which end.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(4))] // Copied as one word.
pub(super) struct LoadRule {
    /// The standings that count, one bit each: those with a standing queue, or with
    /// `host-load active` all that stand in a rotation. With a guard it is all that have a queue,
    /// so that a guarded host keeps its place.
    counted: u8,
    /// The ends that the mode isolates, one bit each.
    ends: u8,
    pub(super) mode: FlowMode,
}

impl LoadRule {
    pub(super) fn new(params: &Params) -> LoadRule {
        let until_idle = params.host_guard != HostGuard::Off;
        let all_active = until_idle || params.host_load == HostLoad::Active;
        let bit = |standing: Standing, counts: bool| u8::from(counts) << standing as u8;
        let mode = params.flow_mode;
        LoadRule {
            mode,
            counted: bit(Standing::Old, true)
                | bit(Standing::New, all_active)
                | bit(Standing::Waiting, all_active)
                | bit(Standing::Decaying, until_idle),
            ends: u8::from(mode.isolates_sources())
                | u8::from(mode.isolates_destinations()) << End::Destination as u8,
        }
    }

    #[inline(always)]
    pub(super) fn counts(self, standing: Standing) -> bool {
        self.counted >> standing as u8 & 1 != 0
    }

    /// True if the mode isolates hosts, at either end.
    #[inline(always)]
    pub(super) fn isolates_hosts(self) -> bool {
        self.ends != 0
    }

    /// Calls `f` with each end that the mode isolates, and its place.
    #[inline(always)]
    pub(super) fn each_end(self, [source, destination]: [u16; 2], mut f: impl FnMut(End, u16)) {
        if self.ends & 1 << End::Source as u8 != 0 {
            f(End::Source, source);
        }
        if self.ends & 1 << End::Destination as u8 != 0 {
            f(End::Destination, destination);
        }
    }
}
