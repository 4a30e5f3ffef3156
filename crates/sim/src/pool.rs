//! The packets that are somewhere in the network, by handle.
//!
//! A slab: a packet is a slot from when it is sent until it arrives or is lost; disciplines and
//! pipes hold its index. A slot is two cache lines: what is looked at on the way, and what it
//! carries. As the owner of the packets, the pool also counts what disciplines drop and mark, flow
//! by flow. It folds everything that happens into the trace hash.
//!
//! Invariant: slots in use = packets sent - packets delivered - packets lost.

use std::slice;

use prefetch_index::prefetch_index;
use simnel_core::packet::{Ecn, Flags};
use simnel_core::qdisc::{DropReason, PacketOwner};
use simnel_core::wire::tcp::AckView;
use simnel_core::{Packet, Time};
use simnel_tcp::{Segment, TcpFlags};

/// No pipe: the packet is there at once.
pub(crate) const NO_PIPE: u32 = u32::MAX;
/// The ECN field within the TOS octet.
const ECN_MASK: u8 = 3;

/// Contents of a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Payload {
    /// A TCP segment.
    Tcp(Segment),
    /// A datagram of an application.
    Datagram(Datagram),
}

/// Contents of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// Number within its stream.
    pub sequence: u32,
    /// Time at which the first datagram of the exchange left.
    pub sent: Time,
    /// Time at which the answer left; zero in a request.
    pub answered: Time,
    /// UDP or ICMP payload in bytes.
    pub size: u32,
}

/// Events of its connections that an application asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watch {
    Nothing,
    /// That one has opened, closed or failed.
    Ends,
    /// Also that data has come.
    Everything,
}

/// The part of a packet for lines and pipes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Tag {
    /// Keyed hash of the five-tuple.
    pub hash: u64,
    /// Keyed hashes of the hosts.
    pub hosts: (u32, u32),
    /// The socket that sent it.
    pub socket: u32,
    /// The flow on whose account it goes.
    pub flow: u32,
    /// The traffic that the flow belongs to.
    pub group: u32,
    /// The pipe to the bottleneck, and the one behind it.
    pub to_bottleneck: u32,
    /// See `to_bottleneck`.
    pub from_bottleneck: u32,
    /// Number of the connection that it belongs to, of those that have used the socket.
    pub generation: u16,
    /// Direction in which it goes: index of the line.
    pub direction: u8,
    /// The descriptor's flags.
    pub flags: Flags,
    /// Events that the sender's application asks for.
    pub watch: Watch,
    /// TOS octet, as the discipline left it. This and what follows are the packet's own, and last:
    /// all before is copied from the socket's in one piece.
    pub tos: u8,
    /// Bytes of memory that it takes; zero: as many as a frame of its length from a device.
    pub memory: u16,
    /// Bytes of the Ethernet frame.
    pub len: u32,
}

const _: () = assert!(size_of::<Tag>() == 48);

impl Tag {
    /// Of a socket that belongs to nobody.
    pub const NONE: Tag = Tag {
        hash: 0,
        hosts: (0, 0),
        socket: 0,
        flow: 0,
        group: 0,
        len: 0,
        to_bottleneck: NO_PIPE,
        from_bottleneck: NO_PIPE,
        generation: 0,
        tos: 0,
        memory: 0,
        direction: 0,
        flags: Flags(0),
        watch: Watch::Nothing,
    };

    /// The descriptor that a discipline gets of the packet with this handle.
    #[inline(always)]
    pub fn packet(&self, handle: u32) -> Packet {
        let mut packet = Packet::new(u64::from(handle), self.len);
        packet.flow = self.hash;
        (packet.src_host, packet.dst_host) = self.hosts;
        packet.tos = self.tos;
        packet.flags = self.flags;
        if self.memory > 0 {
            packet.truesize = self.memory.into();
        }
        packet
    }
}

/// A packet in the network: a cache line for what it carries, and one for the way.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct InFlight {
    payload: Payload,
    tag: Tag,
}

const _: () = assert!(size_of::<InFlight>() == 128);

/// Counters of one flow's packets in one direction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fates {
    /// Packets dropped by the discipline, by reason.
    pub dropped: [u64; DropReason::COUNT],
    /// Packets marked by the discipline.
    pub marked: u64,
    /// Packets that the line lost.
    pub lost: u64,
    /// Packets that came for a connection that was over.
    pub late: u64,
}

impl Fates {
    /// Change since `earlier`.
    pub fn since(&self, earlier: &Fates) -> Fates {
        let mut fates = Fates {
            dropped: self.dropped,
            marked: self.marked - earlier.marked,
            lost: self.lost - earlier.lost,
            late: self.late - earlier.late,
        };
        for (count, before) in fates.dropped.iter_mut().zip(earlier.dropped) {
            *count -= before;
        }
        fates
    }

    /// Drops by the discipline except filtered acknowledgements.
    pub fn signals(&self) -> u64 {
        self.dropped.iter().sum::<u64>() - self.dropped[DropReason::AckFilter as usize]
    }
}

/// The same while the run lasts, where there may be thousands: each stops at 2^32 - 1.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    dropped: [u32; DropReason::COUNT],
    marked: u32,
    lost: u32,
    late: u32,
}

impl Account {
    /// Its counters.
    pub fn fates(&self) -> Fates {
        Fates {
            dropped: self.dropped.map(u64::from),
            marked: self.marked.into(),
            lost: self.lost.into(),
            late: self.late.into(),
        }
    }
}

/// Counts one more.
#[inline]
fn count(counter: &mut u32) {
    *counter = counter.saturating_add(1);
}

/// All packets that are under way.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    slots: Vec<InFlight>,
    free: Vec<u32>,
    /// Counters of each flow's packets, by direction.
    pub accounts: Vec<[Account; 2]>,
    hash: u64,
    /// Packets that disciplines have let through.
    pub passed: u64,
    pub sent: u64,
    pub delivered: u64,
    /// Packets that disciplines have dropped, by direction.
    pub dropped: [u64; 2],
    pub lost: u64,
}

impl Pool {
    /// Place of the segment that is inserted next, to be written there before [`Pool::insert`]. A
    /// segment that is written field by field elsewhere and then copied would make the copy wait.
    #[inline]
    pub fn next_segment(&mut self) -> &mut Segment {
        let handle = self.next_handle();
        let payload = &mut self.slots[handle as usize].payload;
        if !matches!(payload, Payload::Tcp(_)) {
            *payload = Payload::Tcp(Segment::new(TcpFlags::ACK, 0, 0));
        }
        match payload {
            Payload::Tcp(segment) => segment,
            Payload::Datagram(_) => unreachable!("it has just been made a segment"),
        }
    }

    /// Puts a packet of `len` bytes into the network, with the tag of its socket and an ECN field.
    /// Its contents are in its slot, or are filled in by the caller.
    #[inline]
    pub fn insert(&mut self, tag: &Tag, len: u32, ecn: u8) -> (u32, &mut Payload) {
        self.sent += 1;
        let handle = self.next_handle();
        self.free.pop();
        // Copied line by line and changed in place: a copy of what was just written would wait.
        let slot = &mut self.slots[handle as usize];
        slot.tag = *tag;
        slot.tag.len = len;
        slot.tag.tos = tag.tos | ecn;
        (handle, &mut slot.payload)
    }

    /// Says how much memory a packet takes.
    pub fn weigh(&mut self, handle: u32, memory: u32) {
        self.slots[handle as usize].tag.memory = memory.min(u16::MAX.into()) as u16;
    }

    /// The slot that is used next.
    #[inline]
    fn next_handle(&mut self) -> u32 {
        match self.free.last() {
            Some(handle) => *handle,
            None => self.open_slot(),
        }
    }

    #[cold]
    fn open_slot(&mut self) -> u32 {
        let nothing = Datagram { sequence: 0, sent: Time::ZERO, answered: Time::ZERO, size: 0 };
        self.slots.push(InFlight { tag: Tag::NONE, payload: Payload::Datagram(nothing) });
        let handle = (self.slots.len() - 1) as u32;
        self.free.push(handle);
        handle
    }

    /// The part of a packet for lines and pipes.
    #[inline]
    pub fn tag(&self, handle: u32) -> &Tag {
        &self.slots[handle as usize].tag
    }

    /// Contents of a packet.
    #[inline]
    pub fn payload(&self, handle: u32) -> &Payload {
        &self.slots[handle as usize].payload
    }

    /// True if it is more than an acknowledgement.
    #[inline]
    pub fn has_data(&self, handle: u32) -> bool {
        !matches!(self.payload(handle), Payload::Tcp(segment) if segment.len == 0)
    }

    /// True if it brings data to the socket for which `packet` is.
    #[inline]
    pub fn continues(&self, handle: u32, packet: u32) -> bool {
        let [tag, before] = [self.tag(handle), self.tag(packet)];
        let same = (tag.socket, tag.generation) == (before.socket, before.generation);
        same && self.has_data(handle)
    }

    /// Has the processor fetch a packet, and does not wait.
    #[inline]
    pub fn prefetch(&self, handle: u32) {
        let slot = &self.slots[handle as usize];
        prefetch_index(slice::from_ref(&slot.tag), 0);
        prefetch_index(slice::from_ref(&slot.payload), 0);
    }

    /// Contents of a packet as it arrives: with the mark that it was given on its way.
    #[inline]
    pub fn arrive(&mut self, handle: u32) -> &Payload {
        let InFlight { tag, payload } = &mut self.slots[handle as usize];
        if let Payload::Tcp(segment) = payload {
            if tag.tos & ECN_MASK == Ecn::Ce as u8 {
                segment.ecn = Ecn::Ce;
            }
        }
        payload
    }

    /// The packet has arrived; its slot is free once the caller is done with it.
    #[inline]
    pub fn delivered(&mut self, handle: u32) {
        self.delivered += 1;
        self.free.push(handle);
    }

    /// The packet got lost on the line.
    pub fn lost(&mut self, handle: u32) {
        self.lost += 1;
        count(&mut self.account(handle).lost);
        self.mix(u64::from(handle) | 1 << 40);
        self.free.push(handle);
    }

    /// The packet came for a connection that was over.
    pub fn late(&mut self, handle: u32) {
        count(&mut self.account(handle).late);
        self.delivered(handle);
    }

    /// A discipline gave `packet` for sending at `now`. Returns the traffic that it belongs to.
    #[inline]
    pub fn taken(&mut self, packet: &Packet, now: Time) -> u32 {
        self.passed += 1;
        let handle = packet.handle as u32;
        let tag = &mut self.slots[handle as usize].tag;
        tag.tos = packet.tos;
        let (group, socket) = (tag.group, tag.socket);
        if packet.flags.has(Flags::MARKED) {
            count(&mut self.account(handle).marked);
        }
        self.mix(now.0);
        self.mix(u64::from(socket) << 32 | u64::from(packet.len) << 8 | u64::from(packet.tos));
        group
    }

    /// True for each slot in use, by handle.
    pub fn used(&self) -> Vec<bool> {
        let mut used = vec![true; self.slots.len()];
        self.free.iter().for_each(|handle| used[*handle as usize] = false);
        used
    }

    /// Packets in the network.
    pub fn in_use(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A hash of all that disciplines and lines did, in order and with times.
    pub fn hash(&self) -> u64 {
        self.hash ^ self.hash >> 32
    }

    /// Folds a number into the hash: a multiplication by an odd number and a rotation (as FxHash).
    #[inline]
    pub fn mix(&mut self, value: u64) {
        self.hash = (self.hash.rotate_left(5) ^ value).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    #[inline]
    fn account(&mut self, handle: u32) -> &mut Account {
        let tag = &self.slots[handle as usize].tag;
        let (flow, direction) = (tag.flow as usize, usize::from(tag.direction & 1));
        &mut self.accounts[flow][direction]
    }
}

impl PacketOwner for Pool {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        let handle = packet.handle as u32;
        count(&mut self.account(handle).dropped[reason as usize]);
        let direction = self.tag(handle).direction & 1;
        self.dropped[usize::from(direction)] += 1;
        self.mix(u64::from(handle) | (reason as u64 + 2) << 40);
        self.free.push(handle);
    }

    fn expect(&mut self, next: &Packet, after: &Packet) {
        prefetch_index(slice::from_ref(after), 0);
        prefetch_index(slice::from_ref(&self.slots[next.handle as usize].tag), 0);
    }

    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        match self.payload(packet.handle as u32) {
            Payload::Tcp(segment) => Some(segment.ack_view()),
            Payload::Datagram(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pool of two flows with an account for each direction.
    fn pool() -> Pool {
        Pool { accounts: vec![[Account::default(); 2]; 2], ..Pool::default() }
    }

    /// A packet of `flow` in `direction`, as a discipline has it.
    fn packet(pool: &mut Pool, flow: u32, direction: u8) -> Packet {
        let (handle, _) = pool.insert(&Tag { flow, direction, ..Tag::NONE }, 100, 0);
        Packet::new(handle.into(), 100)
    }

    fn fates(pool: &Pool, flow: usize, direction: usize) -> Fates {
        pool.accounts[flow][direction].fates()
    }

    /// A packet's fate is on its flow's account, and its slot is free then.
    #[test]
    fn fates_are_counted_by_flow_and_direction() {
        let mut pool = pool();
        let mut hashes = vec![pool.hash()];
        let gone = packet(&mut pool, 0, 1);
        pool.dropped(gone, DropReason::Congested);
        hashes.push(pool.hash());
        let lost = packet(&mut pool, 1, 0);
        pool.lost(lost.handle as u32);
        hashes.push(pool.hash());
        let late = packet(&mut pool, 1, 1);
        pool.late(late.handle as u32);
        let mut marked = packet(&mut pool, 0, 0);
        (marked.tos, marked.flags) = (3, Flags::MARKED);
        pool.taken(&marked, Time(9));
        hashes.push(pool.hash());
        let plain = packet(&mut pool, 0, 0);
        pool.taken(&plain, Time(9));
        hashes.push(pool.hash());
        let mut dropped = [0; DropReason::COUNT];
        dropped[DropReason::Congested as usize] = 1;
        assert_eq!(fates(&pool, 0, 1), Fates { dropped, ..Fates::default() });
        assert_eq!(fates(&pool, 1, 0), Fates { lost: 1, ..Fates::default() });
        assert_eq!(fates(&pool, 1, 1), Fates { late: 1, ..Fates::default() });
        assert_eq!(fates(&pool, 0, 0), Fates { marked: 1, ..Fates::default() });
        assert_eq!((pool.sent, pool.passed, pool.dropped), (5, 2, [0, 1]));
        assert_eq!((pool.delivered, pool.lost), (1, 1));
        // One slot was enough for the first three.
        assert_eq!((pool.in_use(), pool.used()), (2, vec![true, true]));
        assert_eq!(pool.tag(marked.handle as u32).tos, 3);
        // All that disciplines and the line do makes another hash.
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 5);
    }

    /// Another packet, another end, another moment: another hash.
    #[test]
    fn each_history_has_its_hash() {
        let taken = |socket, len, tos, now| {
            let mut pool = pool();
            let (handle, _) = pool.insert(&Tag { socket, ..Tag::NONE }, len, 0);
            let mut packet = Packet::new(handle.into(), len);
            packet.tos = tos;
            pool.taken(&packet, Time(now));
            pool.hash()
        };
        let ended = |handle: usize, end: fn(&mut Pool, Packet)| {
            let mut pool = pool();
            let packets = [0; 3].map(|_| packet(&mut pool, 0, 0));
            end(&mut pool, packets[handle]);
            pool.hash()
        };
        let lost = |pool: &mut Pool, packet: Packet| pool.lost(packet.handle as u32);
        let mut hashes = vec![
            taken(0, 100, 0, 1),
            taken(0, 100, 0, 2),
            taken(0, 100, 1, 1),
            taken(0, 101, 0, 1),
            taken(1, 100, 0, 1),
            ended(0, lost),
            ended(1, lost),
            ended(2, lost),
        ];
        for handle in 0..3 {
            hashes.push(ended(handle, |pool, packet| pool.dropped(packet, DropReason::Congested)));
            hashes.push(ended(handle, |pool, packet| pool.dropped(packet, DropReason::Overlimit)));
        }
        hashes.sort_unstable();
        hashes.dedup();
        assert_eq!(hashes.len(), 14);
    }

    /// Data of the same connection goes on with it: no acknowledgement, and nobody else's.
    #[test]
    fn only_data_of_its_connection_continues_a_segment() {
        let mut pool = pool();
        let mut segment = |socket, generation, len| {
            let tag = Tag { socket, generation, ..Tag::NONE };
            let (handle, payload) = pool.insert(&tag, 66 + len, 0);
            *payload = Payload::Tcp(Segment { len, ..Segment::new(TcpFlags::ACK, 1, 1) });
            handle
        };
        let first = segment(4, 7, 1_000);
        let others = [(4, 7, 10, true), (4, 7, 0, false), (5, 7, 10, false), (4, 8, 10, false)];
        let others = others.map(|(socket, was, len, goes_on)| (segment(socket, was, len), goes_on));
        for (other, goes_on) in others {
            assert_eq!(pool.continues(other, first), goes_on, "{other}");
        }
    }

    /// A filtered acknowledgement tells its sender nothing.
    #[test]
    fn signals_are_drops_of_what_was_wanted() {
        let mut fates = Fates::default();
        for (reason, count) in
            [(DropReason::AckFilter, 3), (DropReason::Congested, 2), (DropReason::Overlimit, 4)]
        {
            fates.dropped[reason as usize] = count;
        }
        assert_eq!(fates.signals(), 6);
        let later = Fates { marked: 7, lost: 5, late: 2, ..fates };
        let change = later.since(&Fates { marked: 1, lost: 1, late: 1, ..fates });
        assert_eq!(change, Fates { marked: 6, lost: 4, late: 1, ..Fates::default() });
    }

    /// Headers of TCP can be looked at; an acknowledgement has no data, and a mark arrives.
    #[test]
    fn contents_are_a_segments_or_a_datagrams() {
        let mut pool = pool();
        for (len, marked) in [(0, false), (1_000, true)] {
            let segment = Segment { len, ..Segment::new(TcpFlags::ACK, 1, 77) };
            let ecn = if marked { Ecn::Ce as u8 } else { Ecn::Ect0 as u8 };
            let (handle, payload) = pool.insert(&Tag::NONE, 66 + len, ecn);
            *payload = Payload::Tcp(segment);
            assert_eq!(pool.has_data(handle), len > 0);
            let view = pool.ack_view(&Packet::new(handle.into(), 66));
            assert_eq!(view.map(|view| (view.ack, view.has_payload)), Some((77, len > 0)));
            let Payload::Tcp(segment) = pool.arrive(handle) else { panic!() };
            assert_eq!(segment.ecn == Ecn::Ce, marked);
        }
        let (sent, answered) = (Time(1), Time::ZERO);
        let (handle, payload) = pool.insert(&Tag::NONE, 64, 0);
        *payload = Payload::Datagram(Datagram { sequence: 1, sent, answered, size: 22 });
        assert!(pool.has_data(handle) && pool.ack_view(&Packet::new(handle.into(), 64)).is_none());
    }
}
