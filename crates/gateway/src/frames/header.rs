//! From what the kernel says about a frame to a packet descriptor, and VLAN tags back into frames.
//!
//! A received buffer begins with a `virtio_net_hdr` of ten bytes (linux/virtio_net.h, legacy
//! layout, native byte order): flags, gso_type, hdr_len, gso_size, csum_start, csum_offset. Offsets
//! in it count from the start of the Ethernet header.

use simnel_core::packet::Packet;

/// Bytes of the virtio header.
pub(crate) const VNET_BYTES: usize = 10;
/// Bytes of the Ethernet header: two addresses and a type.
pub(crate) const ETHERNET_HEADER: usize = 14;
/// Bytes of a VLAN tag; as much is left free before each buffer for putting one back.
pub(crate) const TAG_BYTES: usize = 4;

pub(super) const NEEDS_CSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
/// `VIRTIO_NET_HDR_GSO_UDP_L4`; other types that come from a socket are TCP.
pub(super) const GSO_UDP_L4: u8 = 5;
/// Beside the type: the flow uses ECN.
const GSO_ECN: u8 = 0x80;
const UDP_HEADER: usize = 8;
const MAC_ADDRESSES: usize = 12;

/// Description of a chain of chunks: packed into a packet's handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Handle {
    /// First chunk of the chain.
    pub(crate) chunk: u32,
    /// Bytes before the virtio header in the first chunk.
    pub(crate) start: u8,
}

impl Handle {
    pub(crate) fn pack(self) -> u64 {
        u64::from(self.start) << 32 | u64::from(self.chunk)
    }
    pub(crate) fn unpack(handle: u64) -> Handle {
        Handle { chunk: handle as u32, start: (handle >> 32) as u8 }
    }
}

/// True for a super-packet of TCP that any device with segmentation cuts. It has no encapsulation,
/// and no CWR, which only its first segment is to have.
pub(crate) fn is_plain_tcp(head: &[u8]) -> bool {
    matches!(head[1], GSO_TCPV4 | GSO_TCPV6)
}

/// Describes a frame. `head` is the first chunk from the virtio header on; `len` counts the frame
/// without that header.
pub(crate) fn describe(handle: Handle, head: &[u8], len: usize) -> Packet {
    let mut packet = Packet::new(handle.pack(), len as u32);
    let word = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
    let frame = &head[VNET_BYTES..];
    if frame.len() >= ETHERNET_HEADER
        && matches!([frame[12], frame[13]], [0x81, 0x00] | [0x88, 0xa8])
    {
        packet.network_offset = (ETHERNET_HEADER + TAG_BYTES) as u8;
    }
    let (gso_type, gso_size) = (head[1] & !GSO_ECN, word(4));
    if gso_type == GSO_NONE || gso_size == 0 {
        return packet;
    }
    let transport = usize::from(word(6));
    let header_len = if head[0] & NEEDS_CSUM == 0 {
        // The kernel sets NEEDS_CSUM on everything that it segments; its own hint serves otherwise.
        usize::from(word(2))
    } else if gso_type == GSO_UDP_L4 {
        transport + UDP_HEADER
    } else {
        transport + frame.get(transport + 12).map_or(20, |offset| usize::from(offset >> 4) * 4)
    };
    let header_len = header_len.min(len).min(usize::from(u8::MAX));
    packet.gso_size = gso_size;
    packet.header_len = header_len as u8;
    packet.gso_segs = (len - header_len).div_ceil(usize::from(gso_size)).max(1) as u16;
    packet
}

/// Payload of each segment of a super-packet by its virtio header; 0 of any other packet.
pub(super) fn segment_of(head: &[u8; VNET_BYTES]) -> u16 {
    match head[1] & !GSO_ECN {
        GSO_NONE => 0,
        _ => u16::from_ne_bytes([head[4], head[5]]),
    }
}

/// Puts the VLAN tag back, if the kernel took one off a frame of `len` bytes. `chunk` is its first
/// chunk, in which the virtio header begins at [`TAG_BYTES`]; tells where it does then, and how
/// long the frame is.
pub(crate) fn with_tag(chunk: &mut [u8], tag: Option<(u16, u16)>, len: usize) -> (usize, usize) {
    let Some((protocol, tag)) = tag else { return (TAG_BYTES, len) };
    insert_tag(chunk, protocol, tag);
    (0, len + TAG_BYTES)
}

/// Puts a VLAN tag back that the kernel took off. `chunk` is the first chunk, in which the virtio
/// header begins at [`TAG_BYTES`]; afterwards it begins at 0 and the frame is a tag longer.
fn insert_tag(chunk: &mut [u8], protocol: u16, tag: u16) {
    chunk.copy_within(TAG_BYTES..TAG_BYTES + VNET_BYTES + MAC_ADDRESSES, 0);
    let at = VNET_BYTES + MAC_ADDRESSES;
    chunk[at..at + 2].copy_from_slice(&protocol.to_be_bytes());
    chunk[at + 2..at + 4].copy_from_slice(&tag.to_be_bytes());
    // The transport header lies further on by the tag.
    if chunk[0] & NEEDS_CSUM != 0 {
        let start = u16::from_ne_bytes([chunk[6], chunk[7]]) + TAG_BYTES as u16;
        chunk[6..8].copy_from_slice(&start.to_ne_bytes());
    }
    let header = u16::from_ne_bytes([chunk[2], chunk[3]]);
    if header != 0 {
        chunk[2..4].copy_from_slice(&(header + TAG_BYTES as u16).to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A virtio header for TCP segmentation and 100 bytes of frame, at `start`.
    fn super_packet(start: usize) -> Vec<u8> {
        let mut bytes = vec![0u8; 256];
        let head = &mut bytes[start..];
        (head[0], head[1]) = (NEEDS_CSUM, 1 | GSO_ECN);
        head[2..4].copy_from_slice(&66u16.to_ne_bytes());
        head[4..6].copy_from_slice(&1448u16.to_ne_bytes());
        head[6..8].copy_from_slice(&34u16.to_ne_bytes());
        for at in 0..MAC_ADDRESSES {
            head[VNET_BYTES + at] = at as u8 + 1;
        }
        head[VNET_BYTES + 12] = 8;
        head[VNET_BYTES + 34 + 12] = 8 << 4;
        bytes
    }

    #[test]
    fn segments_are_counted_from_the_transport_header() {
        let handle = Handle { chunk: 9, start: 4 };
        let packet = describe(handle, &super_packet(0), 66 + 3 * 1448 + 1);
        assert_eq!((packet.gso_size, packet.gso_segs, packet.header_len), (1448, 4, 66));
        assert_eq!(packet.network_offset, 14);
        assert_eq!(Handle::unpack(packet.handle), handle);
        let plain = describe(handle, &[0; 64], 1514);
        assert_eq!((plain.gso_size, plain.segments()), (0, 1));
    }

    /// The kernel's hint serves where it says of no checksum that it is to be done.
    #[test]
    fn headers_end_where_the_kernel_says_or_the_transport_does() {
        let described = |change: fn(&mut [u8])| {
            let mut bytes = super_packet(0);
            change(&mut bytes);
            let packet = describe(Handle { chunk: 0, start: 0 }, &bytes, 2_000);
            (packet.header_len, packet.gso_size)
        };
        assert_eq!(described(|head| head[VNET_BYTES + 46] = 5 << 4), (54, 1448));
        // Without and with CWR; UDP.
        let plain = |kind| is_plain_tcp(&[0, kind, 0, 0]);
        let kinds = [1, 4, 1 | GSO_ECN, 4 | GSO_ECN, 3, GSO_UDP_L4, GSO_NONE];
        assert_eq!(kinds.map(plain), [true, true, false, false, false, false, false]);
        for flags in [0, 2] {
            let mut bytes = super_packet(0);
            bytes[0] = flags;
            bytes[2..4].copy_from_slice(&70u16.to_ne_bytes());
            let packet = describe(Handle { chunk: 0, start: 0 }, &bytes, 2_000);
            assert_eq!((packet.header_len, packet.gso_size), (70, 1448));
        }
        assert_eq!(described(|head| head[1] = GSO_UDP_L4), (42, 1448));
        assert_eq!(described(|head| head[1] = GSO_NONE | GSO_ECN), (0, 0));
        assert_eq!(described(|head| head[4..6].fill(0)), (0, 0));
        // Offsets without a meaning stay what they are if a tag goes back.
        let mut chunk = super_packet(TAG_BYTES);
        (chunk[TAG_BYTES], chunk[TAG_BYTES + 2], chunk[TAG_BYTES + 3]) = (0, 0, 0);
        insert_tag(&mut chunk, 0x8100, 1);
        assert_eq!((&chunk[2..4], &chunk[6..8]), (&[0, 0][..], &34u16.to_ne_bytes()[..]));
    }

    #[test]
    fn a_listener_reads_the_segments_size_alone() {
        let mut head = *super_packet(0).first_chunk().unwrap();
        assert_eq!(segment_of(&head), 1448);
        head[1] = GSO_NONE | GSO_ECN;
        assert_eq!(segment_of(&head), 0);
    }

    #[test]
    fn a_tag_goes_back_between_addresses_and_type() {
        let mut chunk = super_packet(TAG_BYTES);
        assert_eq!(with_tag(&mut chunk, None, 700), (TAG_BYTES, 700));
        assert_eq!(chunk, super_packet(TAG_BYTES));
        assert_eq!(with_tag(&mut chunk, Some((0x8100, 0x2007)), 700), (0, 704));
        let frame = &chunk[VNET_BYTES..];
        assert_eq!(frame[..12], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        assert_eq!(frame[12..18], [0x81, 0, 0x20, 7, 8, 0]);
        // The kernel's hint and the transport header move on by the tag.
        let offsets = [2, 6].map(|at| u16::from_ne_bytes([chunk[at], chunk[at + 1]]));
        assert_eq!(offsets, [70, 38]);
        let packet = describe(Handle { chunk: 0, start: 0 }, &chunk, 70 + 2 * 1448);
        assert_eq!((packet.network_offset, packet.header_len, packet.gso_segs), (18, 70, 2));
    }
}
