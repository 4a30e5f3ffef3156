//! Priority tiers: their shares of the rate, their COBALT settings, their turn.
//!
//! Each tier has a virtual clock that runs at the tier's threshold rate. While shaping, the highest
//! tier whose clock is not ahead of time is served; if all are ahead, the one that is least so: an
//! idle tier's share is borrowed. Without a shaper the tiers share by weighted DRR. (Piece of CAKE,
//! section III-C; facts A.3, A.4.)

use super::flows::{Flow, Flows, Found, State};
use super::hosts::{End, Hosts};
use super::params::{DiffservMode, FlowMode, HostLoad, Params};
use crate::aqm::cobalt;
use crate::packet::Packet;
use crate::qdisc::Device;
use crate::random::Random;
use crate::rate::{ByteTime, Rate};
use crate::sched::rotation::Rotation;
use crate::tc::stats::{TinStats, MAX_TINS};
use crate::time::{Span, Time};

/// Smallest and largest bytes that a flow sends in a turn: one full Ethernet frame at the most.
const QUANTUM: (u64, u64) = (300, 1514);

/// One tier.
#[derive(Clone, Debug)]
pub(super) struct Tin {
    /// When the tier's clock says that its next packet is due.
    pub(super) time_next: Time,
    remainder: u64,
    byte_time: ByteTime,
    /// Flows in each state.
    population: [u32; State::COUNT],
    /// Bytes that the tier may still send in this round of DRR (unlimited mode).
    pub(super) deficit: i64,
    new_flows: Rotation,
    old_flows: Rotation,
    decaying_flows: Rotation,
    /// Bytes queued.
    pub(super) backlog: u64,
    pub(super) cobalt: cobalt::Params,
    /// Bytes a flow may send in a turn.
    flow_quantum: u32,
    /// Bytes that the tier may send in a round of DRR.
    tin_quantum: u32,
    rate: Rate,
    pub(super) flows: Flows,
    pub(super) hosts: Hosts,
    pub(super) counters: Counters,
}

/// What a tier counts for `tc -s`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) drops: u32,
    pub(super) marks: u32,
    pub(super) ack_drops: u32,
    pub(super) way_direct_hits: u32,
    pub(super) way_indirect_hits: u32,
    pub(super) way_misses: u32,
    pub(super) way_collisions: u32,
    pub(super) unresponsive: u32,
    pub(super) max_len: u32,
    avg_delay: u64,
    peak_delay: u64,
    base_delay: u64,
}

/// An exponentially weighted moving average with weight 2^-shift.
#[inline]
pub(super) fn ewma(average: u64, sample: u64, shift: u32) -> u64 {
    average - (average >> shift) + (sample >> shift)
}

impl Tin {
    /// An idle tier with `queues` flow queues; [`Tin::configure`] must follow.
    pub(super) fn new(queues: u32) -> Tin {
        Tin {
            time_next: Time::ZERO,
            remainder: 0,
            byte_time: ByteTime::default(),
            population: [queues, 0, 0, 0, 0],
            deficit: 0,
            new_flows: Rotation::default(),
            old_flows: Rotation::default(),
            decaying_flows: Rotation::default(),
            backlog: 0,
            cobalt: cobalt::Params::default(),
            flow_quantum: 0,
            tin_quantum: 0,
            rate: Rate::default(),
            flows: Flows::new(queues),
            hosts: Hosts::new(queues),
            counters: Counters::default(),
        }
    }

    /// Sets everything that follows from the tier's rate.
    fn configure(&mut self, rate: Rate, tin_quantum: u32, params: &Params, device: &Device) {
        self.rate = rate;
        self.byte_time = ByteTime::new(rate, device.arithmetic);
        self.tin_quantum = tin_quantum;
        let (least, most) = QUANTUM;
        self.flow_quantum =
            if rate.is_unlimited() { most } else { (rate.0 >> 12).clamp(least, most) } as u32;
        // A slow line is never asked for less delay than one and a half packets.
        let mtu_time = self.byte_time.of(device.mtu);
        let target = Span(mtu_time.0 * 3 / 2).max(params.target);
        self.cobalt = cobalt::Params {
            target,
            interval: (params.rtt + target).saturating_sub(params.target).max(target * 2),
            mtu_time,
            arithmetic: device.arithmetic,
        };
    }

    /// True if there may be something to send.
    #[inline(always)]
    fn is_active(&self) -> bool {
        self.sparse_flows() + self.bulk_flows() > 0
    }

    #[inline(always)]
    fn sparse_flows(&self) -> u32 {
        self.population[State::Sparse as usize] + self.population[State::SparseWait as usize]
    }

    /// Flows with a standing queue.
    #[inline(always)]
    pub(super) fn bulk_flows(&self) -> u32 {
        self.population[State::Bulk as usize]
    }

    /// Charges `len` bytes sent at `now` to the tier's clock, which may save up at most one packet.
    #[inline(always)]
    pub(super) fn advance_clock(&mut self, len: u32, now: Time) {
        let duration = self.byte_time.charge(len, &mut self.remainder);
        if self.time_next < now {
            self.time_next += duration;
        } else if self.time_next < now + duration {
            self.time_next = now + duration;
        }
    }

    /// Starts a round of DRR between tiers for this one.
    #[inline]
    pub(super) fn refill(&mut self) {
        self.deficit += i64::from(self.tin_quantum);
    }

    /// Bytes that `flow` may send in a turn: the tier's quantum divided by the load of its hosts,
    /// rounded up or down at random so that no flow loses by rounding.
    #[inline(always)]
    fn quantum(&self, flow: u32, mode: FlowMode, random: &mut Random) -> i32 {
        let hosts = self.flows.queues[flow as usize].hosts;
        let mut load = 1;
        if mode.isolates_sources() {
            load = load.max(self.hosts.load(End::Source, hosts[0]));
        }
        if mode.isolates_destinations() {
            load = load.max(self.hosts.load(End::Destination, hosts[1]));
        }
        // 65535 / load, as Linux's table of reciprocals has it.
        let share = if load == 1 { 65_535 } else { 65_535 / u32::from(load) };
        ((self.flow_quantum * share + u32::from(random.u16())) >> 16) as i32
    }

    /// The one place where a flow changes its state: keeps the tier's counts and the hosts' loads.
    #[inline(always)]
    pub(super) fn set_state(&mut self, flow: u32, state: State, rule: LoadRule) {
        let queue = &mut self.flows.queues[flow as usize];
        let before = core::mem::replace(&mut queue.state, state);
        let hosts = queue.hosts;
        self.population[before as usize] -= 1;
        self.population[state as usize] += 1;
        match (rule.counts(before), rule.counts(state)) {
            (false, true) => self.count_hosts(hosts, rule.mode),
            (true, false) => self.discount_hosts(hosts, rule.mode),
            _ => {}
        }
    }

    fn count_hosts(&mut self, hosts: [u16; 2], mode: FlowMode) {
        if mode.isolates_sources() {
            self.hosts.count(End::Source, hosts[0]);
        }
        if mode.isolates_destinations() {
            self.hosts.count(End::Destination, hosts[1]);
        }
    }

    fn discount_hosts(&mut self, hosts: [u16; 2], mode: FlowMode) {
        if mode.isolates_sources() {
            self.hosts.discount(End::Source, hosts[0]);
        }
        if mode.isolates_destinations() {
            self.hosts.discount(End::Destination, hosts[1]);
        }
    }

    /// The flow whose turn it is. Old debts are paid on the way.
    #[inline(always)]
    pub(super) fn choose_flow(
        &mut self,
        mut prefer_decaying: bool,
        rule: LoadRule,
        random: &mut Random,
    ) -> Option<u32> {
        // Ends: each time round, one flow's deficit grows by at least one byte.
        loop {
            let rotation = if prefer_decaying && !self.decaying_flows.is_empty() {
                &mut self.decaying_flows
            } else if !self.new_flows.is_empty() {
                &mut self.new_flows
            } else if !self.old_flows.is_empty() {
                &mut self.old_flows
            } else {
                &mut self.decaying_flows
            };
            prefer_decaying = false;
            let queue = rotation.first()?;
            let flow = &self.flows.queues[queue as usize];
            if flow.deficit > 0 {
                return Some(queue);
            }
            let (state, has_packets) = (flow.state, !flow.packets.is_empty());
            rotation.remove_first(&mut self.flows.queues, queue);
            self.old_flows.push(&mut self.flows.queues, queue);
            if state == State::Sparse {
                let state = if has_packets { State::Bulk } else { State::SparseWait };
                self.set_state(queue, state, rule);
            }
            let quantum = self.quantum(queue, rule.mode, random);
            self.flows.queues[queue as usize].deficit += quantum;
        }
    }

    /// Puts the flow of a packet just queued into the rotation where it belongs.
    #[inline(always)]
    pub(super) fn activate(&mut self, queue: u32, rule: LoadRule, random: &mut Random) {
        match self.flows.queues[queue as usize].state {
            State::Sparse | State::Bulk => {}
            // Was empty, and waited in the bulk rotation for its deficit to be paid.
            State::SparseWait => self.set_state(queue, State::Bulk, rule),
            state @ (State::Idle | State::Decaying) => {
                if state == State::Decaying {
                    self.decaying_flows.remove(&mut self.flows.queues, queue);
                }
                self.new_flows.push(&mut self.flows.queues, queue);
                self.set_state(queue, State::Sparse, rule);
                let quantum = self.quantum(queue, rule.mode, random);
                self.flows.queues[queue as usize].deficit = quantum;
            }
        }
    }

    /// The flow that was chosen had nothing to send: it goes to rest, at once or by way of decay.
    #[inline(always)]
    pub(super) fn retire(&mut self, queue: u32, rule: LoadRule, now: Time) {
        let flow = &mut self.flows.queues[queue as usize];
        if flow.cobalt.queue_empty(&self.cobalt, now) {
            self.counters.unresponsive -= 1;
        }
        let at_rest = flow.cobalt.is_at_rest(now);
        let from = match flow.state {
            State::Decaying => &mut self.decaying_flows,
            State::Sparse => &mut self.new_flows,
            State::SparseWait | State::Bulk | State::Idle => &mut self.old_flows,
        };
        from.remove_first(&mut self.flows.queues, queue);
        if at_rest {
            self.set_state(queue, State::Idle, rule);
        } else {
            self.decaying_flows.push(&mut self.flows.queues, queue);
            self.set_state(queue, State::Decaying, rule);
        }
    }

    /// The queue for `packet`, with its hosts known if the mode needs them.
    #[inline(always)]
    pub(super) fn queue_of(&mut self, packet: &Packet, rule: LoadRule) -> u32 {
        let mode = rule.mode;
        if mode == FlowMode::Flowblind {
            return 0;
        }
        let (queue, found) = self.flows.find(mode.queue_hash(packet));
        match found {
            Found::Direct => self.counters.way_direct_hits += 1,
            Found::Own { indirect } => {
                self.counters.way_indirect_hits += u32::from(indirect);
                if self.flows.queues[queue as usize].state == State::Idle {
                    self.assign_hosts(queue, packet, mode);
                }
            }
            Found::Fresh => {
                self.counters.way_misses += 1;
                self.assign_hosts(queue, packet, mode);
            }
            Found::Collision => {
                self.counters.way_collisions += 1;
                let Flow { state, hosts, .. } = self.flows.queues[queue as usize];
                if rule.counts(state) {
                    self.discount_hosts(hosts, mode);
                }
                self.assign_hosts(queue, packet, mode);
                if rule.counts(state) {
                    self.count_hosts(self.flows.queues[queue as usize].hosts, mode);
                }
            }
        }
        queue
    }

    fn assign_hosts(&mut self, queue: u32, packet: &Packet, mode: FlowMode) {
        let hosts = &mut self.flows.queues[queue as usize].hosts;
        if mode.isolates_sources() {
            hosts[0] = self.hosts.find(End::Source, packet.src_host);
        }
        if mode.isolates_destinations() {
            hosts[1] = self.hosts.find(End::Destination, packet.dst_host);
        }
    }

    /// Puts the sojourn time of a delivered packet into the moving averages.
    #[inline(always)]
    pub(super) fn record_delay(&mut self, sojourn: Span) {
        let Counters { avg_delay, peak_delay, base_delay, .. } = &mut self.counters;
        let sojourn = sojourn.0;
        *avg_delay = ewma(*avg_delay, sojourn, 8);
        *peak_delay = ewma(*peak_delay, sojourn, if sojourn > *peak_delay { 2 } else { 8 });
        *base_delay = ewma(*base_delay, sojourn, if sojourn < *base_delay { 2 } else { 8 });
    }

    /// The tier's counters as `tc -s` shows them.
    pub(super) fn stats(&self) -> TinStats {
        let counters = &self.counters;
        let short = |n: u32| n.min(u32::from(u16::MAX)) as u16;
        TinStats {
            threshold_rate: self.rate,
            sent_bytes: counters.bytes,
            sent_packets: counters.packets,
            backlog_bytes: self.backlog,
            target: self.cobalt.target,
            interval: self.cobalt.interval,
            peak_delay: Span(counters.peak_delay),
            avg_delay: Span(counters.avg_delay),
            base_delay: Span(counters.base_delay),
            way_direct_hits: counters.way_direct_hits,
            way_indirect_hits: counters.way_indirect_hits,
            way_misses: counters.way_misses,
            way_collisions: counters.way_collisions,
            drops: counters.drops,
            ecn_mark: counters.marks,
            ack_drops: counters.ack_drops,
            sparse_flows: short(self.sparse_flows() + self.population[State::Decaying as usize]),
            bulk_flows: short(self.bulk_flows()),
            unresponsive_flows: short(counters.unresponsive),
            max_pkt_len: short(counters.max_len),
            flow_quantum: short(self.flow_quantum),
        }
    }
}

/// Which flows count as their hosts' load, and at which end.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadRule {
    pub(super) mode: FlowMode,
    pub(super) load: HostLoad,
}

impl LoadRule {
    #[inline]
    fn counts(self, state: State) -> bool {
        match self.load {
            HostLoad::Bulk => state == State::Bulk,
            HostLoad::Active => {
                matches!(state, State::Sparse | State::SparseWait | State::Bulk)
            }
        }
    }
}

/// Share of the rate and weight in DRR of each tier of `mode`, by internal index.
fn shares(mode: DiffservMode, rate: Rate) -> ([(Rate, u32); MAX_TINS], usize) {
    let part = |shift: u32| Rate(rate.0 >> shift);
    let mut tiers = [(rate, 0); MAX_TINS];
    let table: &[(Rate, u32)] = match mode {
        DiffservMode::Besteffort => &[(rate, 65_535)],
        DiffservMode::Diffserv3 => &[(rate, 1024), (part(4), 64), (part(2), 256)],
        DiffservMode::Diffserv4 => &[(rate, 1024), (part(4), 64), (part(1), 512), (part(2), 256)],
        DiffservMode::Diffserv8 | DiffservMode::Precedence => {
            // Each tier has seven eighths of the rate and of the weight of the one below.
            let (mut threshold, mut quantum) = (rate.0, 256);
            for tier in &mut tiers {
                *tier = (Rate(threshold), quantum);
                threshold = threshold * 7 / 8;
                quantum = quantum * 7 / 8;
            }
            return (tiers, MAX_TINS);
        }
    };
    tiers[..table.len()].copy_from_slice(table);
    (tiers, table.len())
}

/// Sets rates, quanta, targets and intervals of all tiers for a global rate.
pub(super) fn configure(tins: &mut [Tin], rate: Rate, params: &Params, device: &Device) {
    let (tiers, count) = shares(params.diffserv, rate);
    debug_assert_eq!(count, tins.len());
    for (tin, (rate, quantum)) in tins.iter_mut().zip(tiers) {
        tin.configure(rate, quantum, params, device);
    }
}

/// The tier to serve while shaping: the highest one on schedule, else the one with the earliest
/// schedule. None if no tier has flows.
#[inline]
pub(super) fn choose_by_schedule(tins: &[Tin], now: Time) -> Option<usize> {
    let mut best = None;
    let mut earliest = Time::MAX;
    for (index, tin) in tins.iter().enumerate() {
        if tin.is_active() && (tin.time_next <= now || tin.time_next <= earliest) {
            best = Some(index);
            earliest = tin.time_next;
        }
    }
    best
}

/// The tier to serve without a shaper, starting from `current`: weighted DRR. None if no tier has
/// flows.
#[inline]
pub(super) fn choose_by_deficit(tins: &mut [Tin], mut current: usize) -> Option<usize> {
    if !tins.iter().any(Tin::is_active) {
        return None;
    }
    // Ends: each round pays every tier that is in debt its quantum.
    while tins[current].deficit < 0 || !tins[current].is_active() {
        if tins[current].deficit <= 0 {
            tins[current].refill();
        }
        current = if current + 1 == tins.len() { 0 } else { current + 1 };
    }
    Some(current)
}
