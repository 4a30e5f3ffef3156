//! CAKE: Common Applications Kept Enhanced, a whole queue management system in one discipline.
//!
//! Piece of CAKE (Høiland-Jørgensen, Täht, Morton 2018), as Linux deploys it today (facts A):
//!
//! ```text
//! enqueue: tin by DSCP or mark -> queue by keyed hash -> (ACK filter) -> over memory? drop heads
//! dequeue: shaper due? -> tin by schedule or DRR -> flow by DRR++ -> COBALT: pass, mark or drop
//! ```
//!
//! The main parts:
//!
//! * `tin`, `tins` and `tin_map` (code points to tins);
//! * `flows` (set-associative queues), `hosts` and `loads` (of hosts, and quanta);
//! * `overflow` (longest queue), `ack_filter`, `autorate`, `saving` and `sizes`;
//! * `reconfigure` (changes at run time) and `managed` (settings and statistics).
//!
//! The shaper is `shaper::deficit_clock`, the AQM `aqm::cobalt`, the schedulers `sched::sparse` and
//! `sched::savings`.
//!
//! Names: a priority tier (the paper's word) is a *tin*, as in `tc`. `tin` is a `Tin` itself, and
//! `tin_index` its number. `flow` is a `Flow`, a queue with all that decides about it. `flow_index`
//! is its number among the `queues` of all tins.
//!
//! Invariants: a flow stands in the list that its standing says; one with packets can be chosen.
//! Memory in use is within the limit whenever a call returns. The exception is an arrival that
//! would need more drops for that than one call may do (`overruns` counts these).
//!
//! Where we differ from Linux: changing tins or flow mode re-sorts queued packets instead of
//! dropping them. And, as `Device` chooses, `autorate-ingress` keeps its pause, times carry their
//! remainders, and intervals above 4 s are not cut to 32 bits.

mod ack_filter;
mod autorate;
mod flows;
mod guard;
mod hosts;
mod loads;
mod managed;
mod netlink;
mod overflow;
// Without 64-bit atomics no queue has a seat among parallel ones.
#[cfg_attr(not(target_has_atomic = "64"), path = "alone.rs")]
mod parallel;
mod params;
mod reconfigure;
mod saving;
mod sizes;
mod stats;
mod tin;
mod tin_map;
mod tins;
mod words;

pub use parallel::Member;
pub use params::{AckFilter, FlowMode, HostGuard, HostLoad, Params};
pub use stats::{tin_name, Stats, TinStats, MAX_TINS};
pub use tin_map::DiffservMode;

use alloc::boxed::Box;

use self::ack_filter::AckStore;
use self::autorate::Autorate;
use self::flows::Flows;
use self::guard::Guard;
use self::hosts::Hosts;
use self::sizes::Sizes;
use self::tin::Tin;
use self::tin_map::TinMap;
use self::tins::Tins;
use super::{Backlog, ConfigError, Device, DropReason, PacketOwner, Qdisc};
use crate::aqm::cobalt::CobaltVerdict;
use crate::arena::Arena;
use crate::packet::{Flags, Packet};
use crate::qdisc::books::Books;
use crate::random::Random;
use crate::rate::{ByteTime, Rate};
use crate::shaper::deficit_clock::DeficitClock;
use crate::steps::Budget;
use crate::time::Time;

/// ARP is served like network control: CS7.
const ARP_DSCP: u8 = 56;
/// So many packets stay in the first-level cache; where there are more, the next flow's is fetched.
const NEAR_PACKETS: u32 = 256;
/// Packets for which memory is reserved at once where the rest is taken as needed: 64 KiB of
/// descriptors. As much again is reserved for each of eight tins that the mode does not have.
/// Linux's cake always allocates all eight, so that room is less than it spends.
const RESERVED_PACKETS: u32 = 1024;

/// The discipline.
#[derive(Debug)]
pub struct Cake {
    clock: DeficitClock,
    /// Bytes of `truesize` queued.
    memory: u64,
    memory_limit: u64,
    current_tin_index: usize,
    current_flow_index: u32,
    random: Random,
    /// Packets need more than to be queued: wash, ACK filter, autorate.
    has_extras: bool,
    /// The last `dequeue` had done enough in the middle of a tin's turn: the next goes on there.
    is_cut_short: bool,
    tins: Tins,
    arena: Arena,
    heap: overflow::Heap,
    tin_map: &'static TinMap,
    params: Params,
    /// The present rate: `params.bandwidth`, or what `autorate` found.
    rate: Rate,
    acks: Option<AckStore>,
    autorate: Autorate,
    sizes: Sizes,
    memory_used: u64,
    /// Calls that ended above the limit.
    overruns: u32,
    books: Books,
    device: Device,
}

impl Cake {
    /// An empty discipline, with room for at least `slots` packets. All memory is reserved here;
    /// it is made in a box, since it is too large for a kernel's stack.
    fn boxed(slots: u32, params: &Params, device: &Device) -> Result<Box<Cake>, ConfigError> {
        params.validate()?;
        let count = tin_map::tin_map(params.diffserv).count();
        let guard = Guard::wanted(params, count, device.memory)?;
        let (flows, hosts) = (Flows::new(count, params.queues)?, Hosts::new(count, params.queues)?);
        let slots = params.capacity(device.mtu).max(slots);
        let first = RESERVED_PACKETS * (MAX_TINS + 1).saturating_sub(count) as u32;
        let arena = Arena::new(slots, first, device.memory)?;
        let heap = overflow::Heap::new(params.queues)?;
        let acks = match params.ack_filter {
            AckFilter::Off => None,
            _ => Some(AckStore::new(arena.capacity(), device.memory)?),
        };
        let mut cake = Box::new(Cake {
            clock: DeficitClock::default(),
            memory: 0,
            memory_limit: 0,
            current_tin_index: 0,
            current_flow_index: 0,
            random: Random::new(device.seed),
            has_extras: false,
            is_cut_short: false,
            tins: Tins::new(params, flows, hosts, guard),
            arena,
            heap,
            tin_map: tin_map::tin_map(params.diffserv),
            params: *params,
            rate: params.bandwidth,
            acks,
            autorate: Autorate::new(params.bandwidth),
            sizes: Sizes::NONE,
            memory_used: 0,
            overruns: 0,
            books: Books::default(),
            device: *device,
        });
        cake.tins.reserve(params.queues, device)?;
        cake.apply_params();
        Ok(cake)
    }

    /// Everything that follows from the settings alone.
    fn apply_params(&mut self) {
        let Params { wash, autorate_ingress, ack_filter, .. } = self.params;
        self.has_extras = wash || autorate_ingress || ack_filter != AckFilter::Off;
        self.sizes.forget();
        self.set_rate(self.params.bandwidth);
    }

    /// Everything that follows from the rate. Apart, for the stack's sake.
    #[inline(never)]
    fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
        self.tins.set_rate(rate, &self.params, &self.device);
        self.clock.set_rate(ByteTime::new(rate, self.device.arithmetic));
        self.leave_rate_to_seat();
        let Device { mtu, arithmetic, .. } = self.device;
        self.memory_limit = self.params.memory_limit(rate, mtu, arithmetic);
    }

    /// The tin of `packet`.
    #[inline(always)]
    fn select_tin(&self, packet: &Packet) -> usize {
        let dscp = match packet.flags {
            flags if flags.any(Flags::IPV4 | Flags::IPV6) => packet.dscp(),
            flags if flags.has(Flags::ARP) => ARP_DSCP,
            _ => 0,
        };
        if self.params.fwmark | packet.class != 0 {
            if let Some(tin_index) = self.overridden_tin(packet) {
                return tin_index;
            }
        }
        self.tin_map.tin_index_of(dscp)
    }

    /// The tin that the firewall mark or the packet's class asks for: 1 is the first that
    /// statistics show.
    #[cold]
    fn overridden_tin(&self, packet: &Packet) -> Option<usize> {
        if self.tins.count() == 1 {
            return Some(0);
        }
        let by_mark = self.tin_map.marked(self.params.fwmark, packet.mark);
        by_mark.or_else(|| self.tin_map.numbered(packet.minor_of(self.device.handle)?))
    }

    /// Queues a copy of `packet` with a length that can be charged.
    #[cold]
    #[inline(never)]
    fn admit_shortened(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        let mut shortened = *packet;
        shortened.len = packet.len.clamp(1, ByteTime::MOST_BYTES);
        self.admit(&shortened, now, owner);
    }

    /// Queues a copy of `packet`, whose length can be charged.
    #[inline(never)]
    fn admit(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.books.totals.enqueued_packets += 1;
        if !self.arena.has_slot() {
            self.free_slot(now, owner);
        }
        // Not where a packet leaves: who took it looks at the clock next, which waits for all that
        // is being fetched.
        if self.arena.len() > NEAR_PACKETS {
            if let Some(packets) = self.tins.upcoming(self.current_flow_index) {
                self.arena.warm(packets);
            }
        }
        let adj_len = self.sizes.charge(&self.params.framing, packet);

        let tin_index = self.select_tin(packet);
        if !self.tins.is_plain() && self.tins.tin(tin_index).backlog == 0 {
            self.tins.start_parallel(tin_index, now);
        }
        let tin = self.tins.tin_mut(tin_index);
        if tin.backlog == 0 {
            tin.time_next = tin.time_next.max(now);
            if self.arena.is_empty() {
                self.is_cut_short = false;
                self.books.totals.overlimits += u64::from(self.clock.start(now));
            }
        }
        if packet.len > tin.counters.max_len {
            tin.counters.max_len = packet.len;
        }
        tin.counters.bytes += u64::from(packet.len);

        let flow_index =
            self.tins.flow_index_of(tin_index, packet, &mut self.arena, &mut self.heap);
        // Not beside `bytes`: compilers make one slow vector of two neighbours.
        self.tins.tin_mut(tin_index).counters.packets += 1;
        let Some((slot, was_empty, queued)) = self.append(packet, tin_index, flow_index) else {
            // No slot is free, which `enqueue` sees to after each arrival.
            self.tins.tin_mut(tin_index).counters.dropped_bytes += u64::from(packet.len);
            return self.books.refuse(packet, now, DropReason::Overlimit, owner);
        };
        (queued.enqueued, queued.adj_len) = (now, adj_len);
        if !self.tins.is_plain() {
            self.tins.note_arrival(tin_index, flow_index, packet.len);
        }
        if self.has_extras {
            self.apply_extras(slot, tin_index, flow_index, now, owner);
        }
        self.heap.grown(flow_index, &self.tins.flows);
        if was_empty {
            self.tins.wake(tin_index, flow_index, packet, adj_len, &mut self.random);
        }
        if self.memory > self.memory_used {
            self.memory_used = self.memory;
        }
        if self.is_over_limit() {
            self.make_room(Some(flow_index), now, owner);
        }
    }

    /// Puts a copy of `packet` at the end of a queue. Says where it lies, and whether the queue had
    /// been empty. None if no slot is free, which `enqueue` sees to after each arrival.
    #[inline(always)]
    fn append(
        &mut self,
        packet: &Packet,
        tin_index: usize,
        flow_index: u32,
    ) -> Option<(u32, bool, &mut Packet)> {
        let (tin, flow) = self.tins.pair_mut(tin_index, flow_index)?;
        let was_empty = flow.packets.is_empty();
        let (slot, queued) = self.arena.push(&mut flow.packets, packet)?;
        flow.backlog = flow.backlog.wrapping_add(packet.len);
        tin.backlog += u64::from(packet.len);
        self.books.came(packet.len);
        self.memory += u64::from(packet.truesize);
        Some((slot, was_empty, queued))
    }

    /// The books for a packet that has been taken out of a queue.
    #[inline(always)]
    fn account_removal(&mut self, len: u32, truesize: u32, tin_index: usize, flow_index: u32) {
        let Some((tin, flow)) = self.tins.pair_mut(tin_index, flow_index) else { return };
        flow.backlog = flow.backlog.wrapping_sub(len);
        tin.backlog -= u64::from(len);
        self.books.went(len);
        self.memory -= u64::from(truesize);
        self.tins.note_removal(tin_index, flow_index, len);
    }

    /// Work of some configurations on a packet that was just queued.
    #[inline(never)]
    fn apply_extras(
        &mut self,
        slot: u32,
        tin_index: usize,
        flow_index: u32,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) {
        let Some(queued) = self.arena.get_mut(slot) else { return };
        let len = queued.len;
        if self.params.wash {
            queued.wash();
        }
        let mut filtered = 0;
        if self.note_header(slot, owner) {
            filtered = self.drop_redundant_ack(tin_index, flow_index, now, owner);
        }
        if self.params.autorate_ingress {
            let arithmetic = self.device.arithmetic;
            if let Some(rate) = self.autorate.arrival(len, filtered, now, arithmetic) {
                self.set_rate(rate);
            }
        }
    }

    /// Notes the TCP header of the packet just queued in `slot`; true if it has one that matters.
    /// Apart, for the stack's sake.
    #[inline(never)]
    fn note_header(&mut self, slot: u32, owner: &mut dyn PacketOwner) -> bool {
        let (Some(store), Some(newest)) = (&mut self.acks, self.arena.get(slot)) else {
            return false;
        };
        let view = if newest.segments() > 1 { None } else { owner.ack_view(newest) };
        store.set(slot, view.as_ref());
        view.is_some()
    }

    /// Drops the acknowledgement that the flow's last packet makes redundant, if there is one.
    #[inline(never)]
    fn drop_redundant_ack(
        &mut self,
        tin_index: usize,
        flow_index: u32,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) -> u32 {
        let Some(ack) = self.take_redundant_ack(flow_index) else { return 0 };
        self.account_removal(ack.len, ack.truesize, tin_index, flow_index);
        self.tins.settle(tin_index, flow_index, false, now, &self.arena);
        let counters = &mut self.tins.tin_mut(tin_index).counters;
        counters.ack_drops += 1;
        counters.dropped_bytes += u64::from(ack.len);
        self.charge_early(tin_index, ack.adj_len, now);
        self.books.discard(&ack, DropReason::AckFilter, owner);
        ack.len
    }

    fn take_redundant_ack(&mut self, flow_index: u32) -> Option<Packet> {
        let store = self.acks.as_ref()?;
        let list = &mut self.tins.flows.get_mut(flow_index)?.packets;
        let (mode, arithmetic) = (self.params.ack_filter, self.device.arithmetic);
        let before = store.redundant(mode, arithmetic, &self.arena, list)?;
        self.arena.remove_after(list, before).copied()
    }

    /// True if packets must go for want of memory or slots.
    #[inline(always)]
    fn is_over_limit(&self) -> bool {
        self.memory > self.memory_limit || self.arena.is_full()
    }

    /// Drops heads of the longest queues until memory is within its limit and a slot is free, but
    /// no more than a call may. `arrived` is the queue of a packet that has just come, if there is
    /// one. It stands in for a longest queue that is not found at once.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, arrived: Option<u32>, now: Time, owner: &mut dyn PacketOwner) {
        let mut stand_in = arrived.filter(|_| self.tins.guard.is_some());
        let (mut vain, mut is_renewed) = (0, false);
        let budget = Budget::default();
        while budget.spend() {
            if !self.is_over_limit() {
                return;
            }
            let known = self.tins.heaviest_flow(&budget);
            let flows = &self.tins.flows;
            let known = known.or(stand_in.filter(|index| flows.has_packets(*index)));
            let flow_index = known.unwrap_or_else(|| self.heap.longest(flows));
            if flows.has_packets(flow_index) {
                self.drop_head(flow_index, now, owner);
                budget.spend_on(overflow::Heap::STEPS);
                vain = 0;
            } else if vain < 2 {
                // Building the heap anew is much for one call, twice is too much.
                stand_in = arrived.filter(|_| is_renewed);
                self.heap.distrust();
                (vain, is_renewed) = (vain + 1, true);
            } else {
                break;
            }
        }
        if self.arena.is_empty() {
            // What no queue holds is not in use, whatever the books say.
            debug_assert_eq!(self.memory, 0);
            self.memory = 0;
        }
        let overran = arrived.is_some() && self.is_over_limit();
        self.overruns = self.overruns.saturating_add(u32::from(overran));
    }

    /// Drops the head of a longest queue, since memory for another slot is short.
    #[cold]
    fn free_slot(&mut self, now: Time, owner: &mut dyn PacketOwner) {
        let heaviest = self.tins.heaviest_flow(&Budget::default());
        let flow_index = heaviest.unwrap_or_else(|| self.heap.longest(&self.tins.flows));
        self.drop_head(flow_index, now, owner);
    }

    /// Drops a flow's first packet for want of room.
    fn drop_head(&mut self, flow_index: u32, now: Time, owner: &mut dyn PacketOwner) {
        let tin_index = self.tins.flows.tin_index_of(flow_index);
        let Some((tin, flow)) = self.tins.pair_mut(tin_index, flow_index) else { return };
        let Some(&mut packet) = self.arena.pop(&mut flow.packets) else { return };
        tin.counters.unresponsive += u32::from(flow.cobalt.queue_full(&tin.cobalt, now));
        tin.counters.drops += 1;
        tin.counters.dropped_bytes += u64::from(packet.len);
        self.account_removal(packet.len, packet.truesize, tin_index, flow_index);
        self.charge_early(tin_index, packet.adj_len, now);
        self.heap.shrunk(flow_index, &self.tins.flows);
        self.tins.settle(tin_index, flow_index, false, now, &self.arena);
        self.books.discard(&packet, DropReason::Overlimit, owner);
    }

    /// Charges a packet that was dropped before its turn, if drops are charged.
    fn charge_early(&mut self, tin_index: usize, adj_len: u32, now: Time) {
        if self.params.ingress {
            charge(&mut self.clock, self.tins.tin_mut(tin_index), adj_len, now, false);
            self.tins.charge_line(tin_index, adj_len, now);
        }
    }

    /// The tin to serve, if one may be served now.
    #[inline(always)]
    fn choose_tin(&mut self, now: Time, budget: &Budget) -> Option<usize> {
        if !self.clock.is_unlimited() {
            if self.clock.is_blocked(now) {
                self.books.totals.overlimits += 1;
                return None;
            }
            return self.tins.choose_by_schedule(now);
        }
        if !self.tins.is_plain() {
            if let Some(tin_index) = self.tins.tin_of_seat() {
                return self.tins.is_active(tin_index).then_some(tin_index);
            }
        }
        self.tins.choose_by_deficit(self.current_tin_index, budget)
    }

    /// One try to send a packet of `tin`.
    #[inline(always)]
    fn turn(
        &mut self,
        tin_index: usize,
        now: Time,
        budget: &Budget,
        owner: &mut dyn PacketOwner,
    ) -> Turn {
        self.current_tin_index = tin_index;
        let ingress = self.params.ingress;
        let Cake { tins, arena, random, .. } = self;
        let elsewhere = if ingress { tins.bulk_elsewhere(tin_index) } else { 0 };
        let chosen = tins.choose_flow(tin_index, now, ingress, arena, random, budget);
        let Some((flow_index, tin, flow)) = chosen else { return Turn::Nobody };
        let Some((slot, packet)) = arena.detach(&mut flow.packets) else { return Turn::Nobody };
        let Packet { len, adj_len, truesize, enqueued, .. } = *packet;
        flow.backlog = flow.backlog.wrapping_sub(len);
        tin.backlog -= u64::from(len);
        self.books.went(len);
        self.memory -= u64::from(truesize);

        let sojourn = now.since(enqueued);
        let bulk_flows = if ingress { tin.bulk_flows + elsewhere } else { 0 };
        if !flow.cobalt.passes(&tin.cobalt, sojourn, now, bulk_flows) {
            let verdict = budget.lend(|budget| {
                flow.cobalt.decide(&tin.cobalt, packet, now, bulk_flows, random, budget)
            });
            // The last packet of a queue may be marked but is never dropped.
            if verdict.is_drop() && !flow.packets.is_empty() {
                budget.spend();
                self.discard(slot, tin_index, flow_index, verdict, now, owner);
                return Turn::Dropped;
            }
            let marks = u32::from(verdict.is_marked());
            tin.counters.marks += marks;
            self.books.totals.marked += u64::from(marks);
        }

        tin.record_delay(sojourn);
        flow.account.deficit -= adj_len as i32;
        charge_turn(&mut self.clock, tin, adj_len, now, true);
        self.current_flow_index = flow_index;
        self.heap.sent(flow_index, &self.tins.flows);
        if !self.tins.is_plain() {
            self.tins.settle(tin_index, flow_index, true, now, &self.arena);
            self.tins.note_turn(tin_index, flow_index, len, adj_len);
            self.tins.sent_parallel(tin_index, flow_index, adj_len);
            if self.arena.len() == 1 {
                self.tins.leave_line();
            }
        }
        Turn::Sent(slot)
    }

    /// [`Cake::dequeue`] after a first turn of `tin` in `vain`. Ends: in each turn flows leave the
    /// rotations or a packet is lost. A turn that is more work than one call may do goes on in the
    /// next, whatever it has cost meanwhile: it is one decision.
    #[inline(never)]
    fn dequeue_further(
        &mut self,
        mut vain: Turn,
        mut tin_index: usize,
        now: Time,
        budget: Budget,
        owner: &mut dyn PacketOwner,
    ) -> Option<&mut Packet> {
        loop {
            match vain {
                Turn::Sent(slot) => return self.arena.release(slot),
                _ if budget.is_spent() => {
                    self.is_cut_short = true;
                    return None;
                }
                Turn::Nobody => tin_index = budget.lend(|budget| self.choose_tin(now, budget))?,
                Turn::Dropped => {}
            }
            vain = self.turn(tin_index, now, &budget, owner);
        }
    }

    /// Drops the packet in `slot`, which has been taken out of its queue.
    #[cold]
    #[inline(never)]
    fn discard(
        &mut self,
        slot: u32,
        tin_index: usize,
        flow_index: u32,
        verdict: CobaltVerdict,
        now: Time,
        owner: &mut dyn PacketOwner,
    ) {
        self.heap.shrunk(flow_index, &self.tins.flows);
        let reason = match verdict {
            CobaltVerdict::Flood { .. } => DropReason::Flood,
            _ => DropReason::Congested,
        };
        let Some(&mut packet) = self.arena.release(slot) else { return };
        let Some((tin, flow)) = self.tins.pair_mut(tin_index, flow_index) else { return };
        tin.counters.drops += 1;
        tin.counters.dropped_bytes += u64::from(packet.len);
        if self.params.ingress {
            flow.account.deficit -= packet.adj_len as i32;
            charge_turn(&mut self.clock, tin, packet.adj_len, now, false);
            self.tins.dropped_parallel(tin_index, flow_index, packet.adj_len, now);
        }
        let charged = if self.params.ingress { packet.adj_len } else { 0 };
        self.tins.note_turn(tin_index, flow_index, packet.len, charged);
        self.books.discard(&packet, reason, owner);
        if self.params.ingress {
            self.tins.settle(tin_index, flow_index, false, now, &self.arena);
        }
    }
}

/// Outcome of a tin's turn.
enum Turn {
    /// The packet in this slot is to be sent.
    Sent(u32),
    /// A packet was dropped. Where drops are charged, it may be another flow's turn now.
    Dropped,
    /// No flow was chosen: the tin has none any more, or the call has done enough.
    Nobody,
}

/// Charges a packet to the shaper and to its tin's clock.
#[inline(always)]
fn charge(clock: &mut DeficitClock, tin: &mut Tin, len: u32, now: Time, delivered: bool) {
    if !clock.is_unlimited() {
        tin.advance_clock(len, now);
        clock.charge(len, delivered);
    }
}

/// As [`charge`], for a packet of the tin whose turn it is: without a shaper it is charged to the
/// tin's share.
#[inline(always)]
fn charge_turn(clock: &mut DeficitClock, tin: &mut Tin, len: u32, now: Time, delivered: bool) {
    match clock.is_unlimited() {
        true => tin.deficit -= i64::from(len),
        false => charge(clock, tin, len, now, delivered),
    }
}

impl Qdisc for Cake {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        match packet.is_chargeable(ByteTime::MOST_BYTES) {
            true => self.admit(packet, now, owner),
            false => self.admit_shortened(packet, now, owner),
        }
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        if self.arena.is_empty() {
            return None;
        }
        let budget = Budget::default();
        if self.is_cut_short {
            self.is_cut_short = false;
            let tin_index = self.current_tin_index;
            return self.dequeue_further(Turn::Dropped, tin_index, now, budget, owner);
        }
        let tin_index = self.choose_tin(now, &budget)?;
        self.tins.decay(tin_index, now);
        match self.turn(tin_index, now, &budget, owner) {
            Turn::Sent(slot) => self.arena.release(slot),
            vain => self.dequeue_further(vain, tin_index, now, budget, owner),
        }
    }

    fn next_event(&self) -> Option<Time> {
        // What was cut short goes on in the past: now.
        let due = if self.is_cut_short { Time::ZERO } else { self.clock.next_due() };
        (!self.arena.is_empty()).then_some(due)
    }

    fn placement(&self) -> Option<(u8, u32)> {
        Some((self.current_tin_index as u8, self.tins.flows.within_tin(self.current_flow_index)))
    }

    fn backlog(&self) -> Backlog {
        Backlog { packets: self.arena.len(), bytes: self.books.bytes() }
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        for flow in &mut self.tins.flows.queues {
            while let Some(&mut packet) = self.arena.pop(&mut flow.packets) {
                self.books.went(packet.len);
                self.books.discard(&packet, DropReason::Reset, owner);
            }
        }
        self.memory = 0;
        self.is_cut_short = false;
        self.tins.forget(self.params.queues);
        self.heap.clear();
        (self.current_tin_index, self.current_flow_index) = (0, 0);
        self.autorate = Autorate::new(self.params.bandwidth);
        self.set_rate(self.params.bandwidth);
        self.clock.restart();
    }
}
