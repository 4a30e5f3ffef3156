//! The owner of a recording's packets: builds descriptors, serves TCP headers, notes what is lost.
//!
//! The discipline sees Linux's hashes: the low half of `Packet::flow` and both host hashes are the
//! recorded ones (rebuilt from the recording's key). The high half is a hash of the five-tuple's
//! text. So two connections which share a queue hash (both directions of one do, in Linux) are
//! still told apart.

use simnel_core::packet::Flags;
use simnel_core::qdisc::{Device, DropReason, PacketOwner};
use simnel_core::wire::tcp::AckView;
use simnel_core::Packet;

use super::format::{Event, Fate, Recording};
use super::journal::{Journal, Losses};
use super::linux_hash::flow_hash;
use super::row::Arrival;

/// Ethernet header.
pub(super) const LINK_HEADER: u32 = 14;
/// Memory of a recording's packet at most.
const LARGEST_BUFFER: u32 = 2304;

/// The descriptor of packet `id`: what a driver would have made from its bytes.
pub fn descriptor(recording: &Recording, id: usize) -> Packet {
    let arrival = &recording.arrivals[id];
    let flow = &recording.flows[arrival.flow];
    let mut packet = arrival.describe(flow.ipv6);
    packet.handle = id as u64;
    packet.flow = u64::from(fnv32(flow.tuple.as_bytes())) << 32 | u64::from(flow.hash);
    packet.src_host = flow.src_hash;
    packet.dst_host = flow.dst_hash;
    packet
}

impl Arrival {
    /// Fields of the packet on the line, hashes and handle apart.
    pub fn describe(&self, ipv6: bool) -> Packet {
        let mut packet = Packet::new(0, self.len);
        // The recordings write 1:10 for a class of the discipline, whatever its handle.
        packet.class = match self.class {
            0 => 0,
            class => Device::default().handle | class & 0xffff,
        };
        // A recording's packet has one buffer, however long it is.
        packet.truesize = packet.truesize.min(LARGEST_BUFFER);
        packet.network_offset = LINK_HEADER as u8;
        packet.tos = self.tos;
        packet.flags = if ipv6 { Flags::IPV6 } else { Flags::IPV4 };
        if self.tcp.is_some() {
            packet.flags.set(Flags::TCP);
        }
        packet
    }

    /// The TCP header. All options of the recordings (NOP, timestamp, SACK) may be lost with their
    /// packet.
    pub fn ack_view(&self, ipv6: bool) -> Option<AckView> {
        let tcp = self.tcp?;
        let network = if ipv6 { 40 } else { 20 };
        Some(AckView {
            flags: tcp.flags.into(),
            has_payload: self.len > LINK_HEADER + network + tcp.header_len(),
            expendable_options: true,
            ack: tcp.ack,
            timestamp: tcp.timestamp.unwrap_or_default(),
            sack_count: tcp.sack_count,
            sack: tcp.sack,
        })
    }
}

/// Collects events in the order in which the recording prints them.
pub(super) struct Owner<'a> {
    recording: &'a Recording,
    pub(super) events: Vec<Event>,
    losses: Losses,
}

impl<'a> Owner<'a> {
    pub(super) fn new(recording: &'a Recording) -> Owner<'a> {
        Owner {
            recording,
            events: Vec::with_capacity(recording.expected.len()),
            losses: Losses::new(recording.start),
        }
    }
}

impl Journal for Owner<'_> {
    fn losses(&mut self) -> &mut Losses {
        &mut self.losses
    }

    fn left(&mut self, handle: u64, fate: Fate) {
        self.events.push(Event { time: self.losses.now, id: handle, fate });
    }
}

impl PacketOwner for Owner<'_> {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        self.lost(packet.handle, reason);
    }

    /// sfq and sfb draw keys of their own; the hash under each is rebuilt.
    fn keyed_hash(&mut self, packet: &Packet, key: [u64; 2]) -> Option<u32> {
        let arrival = self.recording.arrivals.get(packet.handle as usize)?;
        let (protocol, ends) = self.recording.flows[arrival.flow].ends()?;
        flow_hash((key[0], key[1]), protocol, ends)
    }

    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        let arrival = self.recording.arrivals.get(packet.handle as usize)?;
        arrival.ack_view(self.recording.flows[arrival.flow].ipv6)
    }
}

/// FNV-1a, 32 bits.
fn fnv32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
