//! From the bytes that the kernel copied to a packet descriptor.
//!
//! NFQUEUE hands over packets from the IP header on. Their `len` counts 14 bytes of Ethernet more, as
//! a discipline of the kernel would see them, so that `overhead` settings mean the same in both homes.

use simnel_core::flow::{Addresses, FlowHasher, HashKey};
use simnel_core::packet::{Flags, Packet};
use simnel_core::wire::tcp::AckView;

/// Bytes of the link header that precedes each packet on the wire.
const LINK_HEADER: u8 = 14;

/// A fresh random key for flow hashes.
pub(crate) fn random_key() -> HashKey {
    // The standard library's only door to the system's randomness.
    let random = || {
        use std::hash::{BuildHasher, Hasher};
        std::collections::hash_map::RandomState::new().build_hasher().finish()
    };
    HashKey::new(random(), random())
}

/// The descriptor of a packet of `len` bytes that starts with `bytes`.
#[inline]
pub(crate) fn classify(hasher: &FlowHasher, bytes: &[u8], len: u32, handle: u64) -> Packet {
    let mut packet = Packet::new(handle, len.saturating_add(u32::from(LINK_HEADER)));
    packet.network_offset = LINK_HEADER;
    let Some((addresses, protocol, transport, tos)) = network(bytes) else { return packet };
    let ports = match protocol {
        6 | 17 => transport.first_chunk().copied().unwrap_or_default(),
        _ => [0; 4],
    };
    let hash = hasher.hash(&addresses, protocol, ports);
    (packet.flow, packet.src_host, packet.dst_host) = (hash.flow, hash.src_host, hash.dst_host);
    packet.tos = tos;
    packet.flags = match addresses {
        Addresses::V4(..) => Flags::IPV4,
        Addresses::V6(..) => Flags::IPV6,
    };
    if protocol == 6 && transport.len() >= 20 {
        packet.flags.set(Flags::TCP);
    }
    packet
}

/// What an ACK filter must know of the packet.
pub(crate) fn ack_view(bytes: &[u8]) -> Option<AckView> {
    let (_, 6, tcp, _) = network(bytes)? else { return None };
    let number = |at: usize| tcp.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    let flags = u16::from_be_bytes([tcp.get(12)? & 0x0f, *tcp.get(13)?]);
    Some(AckView { flags, ack: number(8)?, ..AckView::default() })
}

fn network(bytes: &[u8]) -> Option<(Addresses, u8, &[u8], u8)> {
    match bytes.first()? >> 4 {
        4 => {
            let fixed: &[u8; 20] = bytes.first_chunk()?;
            let header = usize::from(fixed[0] & 15) * 4;
            let source = fixed[12..16].try_into().ok()?;
            let destination = fixed[16..20].try_into().ok()?;
            let transport = bytes.get(header.max(20)..).unwrap_or(&[]);
            Some((Addresses::V4(source, destination), fixed[9], transport, fixed[1]))
        }
        6 => {
            let fixed: &[u8; 40] = bytes.first_chunk()?;
            let source = fixed[8..24].try_into().ok()?;
            let destination = fixed[24..40].try_into().ok()?;
            let tos = fixed[0] << 4 | fixed[1] >> 4;
            Some((Addresses::V6(source, destination), fixed[6], &bytes[40..], tos))
        }
        _ => None,
    }
}
