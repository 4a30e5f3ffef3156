//! Random packets: any size, few flows and hosts so that they meet, super-packets, TCP with real
//! bytes behind it.

use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::packet::Flags;
use simnel_core::wire::{Classifier, LinkLayer};
use simnel_core::{Packet, Span};

use super::input::Input;

/// Minor numbers of the classes in the table of disciplines, and one of none.
const CLASSES: [u32; 8] = [0x1, 0x2, 0xa, 0xb, 0x10, 0x20, 0x30, 0x99];

/// A packet of random fields, and how many of it to enqueue.
pub fn random_packet(input: &mut Input) -> (Packet, u8) {
    let shape = input.u8();
    let len = match shape & 3 {
        0 => 1514,
        1 => u32::from(input.u8()),
        2 => u32::from(input.u16()),
        _ => input.magnitude().min(u64::from(u32::MAX)) as u32,
    };
    let mut packet = Packet::new(0, len);
    // Few flows and hosts, so that they meet; now and then one of all bits.
    let who = input.u8();
    packet.flow = if shape & 4 == 0 { u64::from(who & 15) } else { input.u64() };
    packet.src_host = u32::from(who >> 4 & 3) + 1;
    packet.dst_host = u32::from(who >> 6);
    packet.class = CLASSES[usize::from(who & 7)];
    packet.tos = input.u8();
    packet.flags = match shape >> 3 & 3 {
        0 => Flags::IPV4,
        1 => Flags::IPV6,
        2 => Flags::IPV4 | Flags::TCP,
        _ => Flags::ARP,
    };
    if shape & 32 != 0 {
        (packet.mark, packet.class) = (input.u32(), input.u32());
        packet.truesize = input.magnitude().min(1 << 24) as u32;
        packet.network_offset = input.u8();
    }
    if shape & 64 != 0 {
        // Mostly as many segments as the length has, but nothing relies on that.
        packet.header_len = input.u8();
        packet.gso_size = input.u16();
        let payload = packet.len.saturating_sub(u32::from(packet.header_len));
        let segments = payload.div_ceil(u32::from(packet.gso_size).max(1));
        packet.gso_segs = if who & 3 == 3 { input.u16() } else { segments as u16 };
    }
    let copies = if shape & 128 == 0 { 1 } else { input.u8() };
    (packet, copies)
}

/// Thousands of packets of thousands of flows of one host.
#[derive(Clone, Copy, Debug)]
pub struct Flood {
    /// Packets in all.
    pub packets: u32,
    /// A packet is sent after so many; none if zero.
    pub sends_every: u32,
    /// Time from packet to packet.
    pub gap: Span,
    /// Flows.
    pub flows: u32,
    len: u32,
    tos: u8,
}

impl Flood {
    /// Mostly of hundreds of packets, now and then of tens of thousands.
    pub fn random(input: &mut Input) -> Flood {
        Flood {
            packets: 1 << (input.u8() % 16),
            flows: 1 << (input.u8() % 17),
            len: [64, 1514, 9000, 65_000][usize::from(input.u8() % 4)],
            tos: input.u8() % 4,
            sends_every: u32::from(input.u8() % 8),
            gap: Span(input.magnitude() % 1_000_000),
        }
    }

    /// The packet number `n`.
    pub fn packet(&self, n: u32) -> Packet {
        let mut packet = Packet::new(0, self.len);
        let flow = n % self.flows;
        packet.class = CLASSES[(n % 8) as usize];
        packet.flow = u64::from(flow.wrapping_mul(0x9e37_79b1));
        (packet.src_host, packet.dst_host) = (1, flow + 1);
        (packet.tos, packet.flags) = (self.tos, Flags::IPV4);
        packet
    }
}

/// A frame of random bytes, as a driver would describe it.
pub fn random_frame(input: &mut Input) -> (Packet, Vec<u8>) {
    let length = usize::from(input.u8());
    let frame = input.bytes(length).to_vec();
    let wire_len = (frame.len() as u32).saturating_add(u32::from(input.u8()) * 6);
    (describe(&frame, wire_len), frame)
}

/// An acknowledgement of one of two connections, mostly pure.
pub fn random_ack(input: &mut Input) -> (Packet, Vec<u8>) {
    let (shape, number) = (input.u8(), input.u8());
    let odd_flags = if shape & 14 == 0 { input.u8() } else { 0 };
    let payload = if shape & 112 == 0 { 100 } else { 0 };
    let frame = ack(shape & 1, 0x10 | odd_flags, u32::from(number) * 1448, payload);
    (describe(&frame, frame.len() as u32), frame)
}

/// Ethernet, IPv4, TCP without options.
pub fn ack(connection: u8, flags: u8, number: u32, payload: usize) -> Vec<u8> {
    let mut frame = vec![0; 54 + payload];
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let length = (40 + payload) as u16;
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&length.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 2, 10, 1, 0, connection]);
    frame[34..38].copy_from_slice(&[0x80, 0x01, 0x01, 0xbb]);
    frame[42..46].copy_from_slice(&number.to_be_bytes());
    (frame[46], frame[47]) = (0x50, flags);
    frame
}

/// The descriptor that a driver makes of `frame`.
pub fn describe(frame: &[u8], wire_len: u32) -> Packet {
    let classifier = Classifier::new(FlowHasher::new(HashKey::new(3, 4), 64));
    classifier.classify(LinkLayer::Ethernet, frame, wire_len, 0)
}
