//! The flows of one direction: who sends, how much, and how long it waits.
//!
//! ```text
//! arrived    find the flow or give it a place; count it into the backlog
//! released   packets, bytes, marks, sojourn
//! dropped    drops
//! ```
//!
//! A flow's place is one of `WAYS` in the set that its hash picks, as in a processor's cache. A
//! packet costs one look at eight tags in one cache line, however many flows there are. In a full
//! set the flow that has been silent longest gives its place up. Flows with packets queued stay;
//! where all eight have some, a newcomer is counted as untracked. The hash is keyed, so nobody
//! outside can aim at a set.
//!
//! Nothing here locks, and nothing allocates after construction. The data path's thread owns the
//! table, and copies a part of it for the control thread when asked. Sojourn times are by the
//! discipline's clock (`pace.rs`).

mod entry;
mod recent;

use simnel_core::packet::Flags;
use simnel_core::qdisc::DropReason;
use simnel_core::sojourns::Sojourns;
use simnel_core::wire::{flow_keys, FlowKeys};
use simnel_core::{Packet, Span, Time};

use crate::classify::LINK;
pub(crate) use entry::entries;
pub use entry::{FlowEntry, HeldFlow, LineEntry};

/// Flows that a direction keeps account of at most.
pub const MOST_FLOWS: usize = 4096;
/// Places that a flow may have: their tags fill a cache line.
const WAYS: usize = 8;
const SETS: usize = MOST_FLOWS / WAYS;
/// Parts in which the table is copied: 512 flows take some 20 µs of the data path's time.
pub(crate) const PARTS: usize = 8;
/// A flow that was silent so long, with nothing queued, is no longer told of.
pub(crate) const FORGOTTEN: Span = Span::from_secs(60);

/// Counters and state of a flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    /// Addresses, protocol and ports.
    pub(crate) keys: FlowKeys,
    /// The last packet's code point, as it arrived.
    pub(crate) dscp: u8,
    /// The last packet's firewall mark, as it arrived.
    pub(crate) mark: u32,
    /// Packets released.
    pub(crate) packets: u64,
    /// Bytes released.
    pub(crate) bytes: u64,
    /// Packets dropped, but for acknowledgements that a newer one made redundant.
    pub(crate) drops: u64,
    /// Acknowledgements dropped because a newer one made them redundant.
    pub(crate) ack_drops: u64,
    /// Packets released with a mark for CE.
    pub(crate) marks: u64,
    /// Packets queued.
    pub(crate) backlog_packets: u32,
    /// Bytes queued.
    pub(crate) backlog_bytes: u64,
    /// Sojourn time of the last released packet.
    pub(crate) sojourn: Span,
    /// Arrival time of its first packet.
    pub(crate) first: Time,
    /// Arrival time of its last packet.
    pub(crate) last: Time,
    recent: recent::Recent,
}

impl Flow {
    fn new(keys: FlowKeys, now: Time) -> Flow {
        Flow {
            keys,
            dscp: 0,
            mark: 0,
            packets: 0,
            bytes: 0,
            drops: 0,
            ack_drops: 0,
            marks: 0,
            backlog_packets: 0,
            backlog_bytes: 0,
            sojourn: Span::ZERO,
            first: now,
            last: now,
            recent: recent::Recent::default(),
        }
    }

    /// Sojourn that 99 of 100 of its last packets did not exceed.
    pub(crate) fn sojourn_p99(&self) -> Span {
        self.recent.p99()
    }

    #[inline]
    fn left(&mut self, packet: &Packet) {
        self.backlog_packets = self.backlog_packets.saturating_sub(1);
        self.backlog_bytes = self.backlog_bytes.saturating_sub(u64::from(packet.len));
    }
}

/// Counters of the direction as a whole, since it came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Whole {
    /// Sojourn times of all packets.
    pub(crate) sojourns: Sojourns,
    /// Arrivals that found no place for their flow.
    pub(crate) untracked: u64,
    /// Flows that gave their place up to another.
    pub(crate) evicted: u64,
}

/// A part of the table, copied at `now`.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) now: Time,
    pub(crate) whole: Whole,
    pub(crate) flows: Vec<Flow>,
}

impl Part {
    /// Adds the same table's next part, copied later. Ages of all are by the later time, so that no
    /// packet waited longer than its flow is old.
    pub(crate) fn append(&mut self, mut later: Part) {
        self.flows.append(&mut later.flows);
        (self.now, self.whole) = (later.now, later.whole);
    }

    /// Adds another lane's: a flow is in one.
    pub(crate) fn join(&mut self, mut other: Part) {
        self.now = self.now.max(other.now);
        self.flows.append(&mut other.flows);
        let Whole { sojourns, untracked, evicted } = &mut self.whole;
        sojourns.join(&other.whole.sojourns);
        *untracked += other.whole.untracked;
        *evicted += other.whole.evicted;
    }
}

/// A part for [`Table::copy`] to fill.
pub(crate) fn empty_part() -> Vec<Flow> {
    Vec::with_capacity(MOST_FLOWS / PARTS)
}

/// The table.
pub(crate) struct Table {
    /// Hash of the flow in each place; zero where there is none.
    tags: Box<[[u64; WAYS]]>,
    flows: Box<[Option<Flow>]>,
    whole: Whole,
}

impl Table {
    /// A table without flows. Its memory is touched as flows come.
    pub(crate) fn new() -> Table {
        Table {
            tags: vec![[0; WAYS]; SETS].into_boxed_slice(),
            flows: vec![None; MOST_FLOWS].into_boxed_slice(),
            whole: Whole::default(),
        }
    }

    /// Counts a packet that arrives; `bytes` are its headers.
    #[inline]
    pub(crate) fn arrived(&mut self, packet: &Packet, bytes: &[u8], now: Time) {
        let place = match self.find(packet) {
            Some(place) => place,
            None => match self.admit(packet, bytes, now) {
                Some(place) => place,
                None => {
                    self.whole.untracked += 1;
                    return;
                }
            },
        };
        if let Some(flow) = &mut self.flows[place] {
            flow.last = now;
            flow.dscp = packet.dscp();
            flow.mark = packet.mark;
            flow.backlog_packets += 1;
            flow.backlog_bytes += u64::from(packet.len);
        }
    }

    /// Counts a packet that is let go after `sojourn`.
    #[inline]
    pub(crate) fn released(&mut self, packet: &Packet, sojourn: Span) {
        self.whole.sojourns.add(sojourn, 1);
        let Some(flow) = self.of(packet) else { return };
        flow.left(packet);
        flow.packets += 1;
        flow.bytes += u64::from(packet.len);
        flow.marks += u64::from(packet.flags.has(Flags::MARKED));
        flow.sojourn = sojourn;
        flow.recent.add(sojourn);
    }

    /// Counts a packet that is dropped.
    #[inline]
    pub(crate) fn dropped(&mut self, packet: &Packet, reason: DropReason) {
        let Some(flow) = self.of(packet) else { return };
        flow.left(packet);
        if reason == DropReason::AckFilter {
            flow.ack_drops += 1;
        } else {
            flow.drops += 1;
        }
    }

    /// Copies part `number` of [`PARTS`] into `flows`, which is empty and has room.
    pub(crate) fn copy(&self, number: usize, mut flows: Vec<Flow>, now: Time) -> Part {
        let each = MOST_FLOWS / PARTS;
        let part = self.flows.iter().skip(number * each).take(each).flatten();
        let told =
            part.filter(|flow| flow.backlog_packets > 0 || now.since(flow.last) <= FORGOTTEN);
        flows.extend(told.take(flows.capacity()));
        Part { now, whole: self.whole, flows }
    }

    #[inline]
    fn of(&mut self, packet: &Packet) -> Option<&mut Flow> {
        let place = self.find(packet)?;
        self.flows[place].as_mut()
    }

    #[inline]
    fn find(&self, packet: &Packet) -> Option<usize> {
        let (set, tag) = (set_of(packet), tag_of(packet));
        let way = self.tags[set].iter().position(|&other| other == tag)?;
        Some(set * WAYS + way)
    }

    /// Gives a new flow its place, if it is IP and there is one.
    #[cold]
    #[inline(never)]
    fn admit(&mut self, packet: &Packet, bytes: &[u8], now: Time) -> Option<usize> {
        let keys = flow_keys(LINK, bytes);
        keys.protocol?;
        let set = set_of(packet);
        let first = set * WAYS;
        // An empty place comes first.
        let silent = |place: &usize| self.flows[*place].as_ref().map(|flow| flow.last);
        let may_go = |place: &usize| {
            self.flows[*place].as_ref().is_none_or(|flow| flow.backlog_packets == 0)
        };
        let place = (first..first + WAYS).filter(may_go).min_by_key(silent)?;
        self.whole.evicted += u64::from(self.flows[place].is_some());
        self.tags[set][place - first] = tag_of(packet);
        self.flows[place] = Some(Flow::new(keys, now));
        Some(place)
    }
}

#[inline]
fn set_of(packet: &Packet) -> usize {
    // Of other bits than those that pick a discipline's queue.
    (packet.flow >> 40) as usize % SETS
}

#[inline]
fn tag_of(packet: &Packet) -> u64 {
    packet.flow.max(1)
}

#[cfg(test)]
mod tests;
