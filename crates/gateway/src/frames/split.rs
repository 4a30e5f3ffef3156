//! A super-packet into the segments that it will be on the wire, as the kernel would cut it before
//! a device that cannot.
//!
//! TCP over IPv4 and IPv6, and UDP's segments (`VIRTIO_NET_HDR_GSO_UDP_L4`). Each segment repeats
//! all headers; what differs is IP's length and identification, TCP's sequence number and flags,
//! and UDP's length. Transport checksums are left to the kernel, as in what came.

use simnel_measure::checksum::Sum;

use super::header::{describe, Handle, ETHERNET_HEADER, GSO_UDP_L4, NEEDS_CSUM, VNET_BYTES};
use super::outgoing::Frame;
use super::pool::{Pool, CHUNK_BYTES};

/// Segments of what is cut: 64 KB of 512 bytes each.
pub(crate) const MOST_SEGMENTS: usize = 128;
const TAG: usize = 4;
const IPV6_HEADER: usize = 40;
/// TCP's flags that only the last segment keeps...
const FIN_PSH: u8 = 0x09;
/// ...and that only the first does: RFC 3168, section 6.1.2.
const CWR: u8 = 0x80;

/// Offsets of a super-packet's headers, from the Ethernet header on.
#[derive(Clone, Copy, Debug)]
struct Layout {
    network: usize,
    transport: usize,
    /// All headers.
    headers: usize,
    is_ipv6: bool,
    is_udp: bool,
}

/// Puts the segments of a super-packet into `segments`, which must be empty. False if it is none
/// that can be cut here, or the pool has no room; then there are none.
pub(crate) fn split(pool: &mut Pool, whole: Frame, segments: &mut Vec<Frame>) -> bool {
    const MOST_HEADERS: usize = VNET_BYTES + u8::MAX as usize;
    let (handle, len) = (whole.handle, whole.len as usize);
    let from = usize::from(handle.start);
    let mut start = [0; MOST_HEADERS];
    start.copy_from_slice(&pool.bytes(handle.chunk)[from..][..MOST_HEADERS]);
    let size = usize::from(describe(handle, &start, len).gso_size);
    let Some(layout) = layout(&start, len) else { return false };
    let payload = len - layout.headers;
    let fits = size > 0 && VNET_BYTES + layout.headers + size <= CHUNK_BYTES;
    if !fits || payload.div_ceil(size) > MOST_SEGMENTS {
        return false;
    }
    for (number, at) in (0..payload).step_by(size).enumerate() {
        let length = size.min(payload - at);
        let Some(chunk) = pool.take() else {
            segments.drain(..).for_each(|segment| pool.release(segment.handle.chunk));
            return false;
        };
        let part = Part { number, at, length, is_last: at + length == payload };
        let head = &mut pool.bytes_mut(chunk)[..VNET_BYTES + layout.headers];
        head.copy_from_slice(&start[..VNET_BYTES + layout.headers]);
        layout.adapt(head, &part);
        let source = (handle.chunk, from + VNET_BYTES + layout.headers + at);
        pool.copy(source, (chunk, VNET_BYTES + layout.headers), length);
        let len = (layout.headers + length) as u32;
        segments.push(Frame { handle: Handle { chunk, start: 0 }, len });
    }
    true
}

/// A segment's part of the payload.
struct Part {
    number: usize,
    at: usize,
    length: usize,
    is_last: bool,
}

/// The layout of a super-packet of `len` bytes whose buffer begins with `start`; None if it has
/// others in between, or is not whole.
fn layout(start: &[u8], len: usize) -> Option<Layout> {
    let frame = &start[VNET_BYTES..];
    let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let mut network = ETHERNET_HEADER;
    while matches!(word(network - 2)?, 0x8100 | 0x88a8) {
        network += TAG;
    }
    let (is_ipv6, transport, protocol) = match (word(network - 2)?, *frame.get(network)?) {
        (0x0800, first @ 0x45..=0x4f) => {
            (false, network + usize::from(first & 15) * 4, *frame.get(network + 9)?)
        }
        (0x86dd, 0x60..=0x6f) => (true, network + IPV6_HEADER, *frame.get(network + 6)?),
        _ => return None,
    };
    let is_udp = start[1] == GSO_UDP_L4;
    let headers = match (is_udp, protocol) {
        (true, 17) => transport + 8,
        (false, 6) => transport + usize::from(*frame.get(transport + 12)? >> 4) * 4,
        _ => return None,
    };
    let least = transport + if is_udp { 8 } else { 20 };
    let layout = Layout { network, transport, headers, is_ipv6, is_udp };
    (headers >= least && headers < len && headers <= frame.len()).then_some(layout)
}

impl Layout {
    /// Makes the headers of the whole, behind a virtio header in `head`, those of a part.
    fn adapt(&self, head: &mut [u8], part: &Part) {
        let (vnet, frame) = head.split_at_mut(VNET_BYTES);
        vnet.fill(0);
        vnet[0] = NEEDS_CSUM;
        vnet[6..8].copy_from_slice(&(self.transport as u16).to_ne_bytes());
        let checksum = if self.is_udp { 6 } else { 16 };
        vnet[8..10].copy_from_slice(&(checksum as u16).to_ne_bytes());

        let length = self.headers - self.transport + part.length;
        let ip = &mut frame[self.network..self.transport];
        let mut sum = Sum::default();
        if self.is_ipv6 {
            ip[4..6].copy_from_slice(&(length as u16).to_be_bytes());
            sum.add(&ip[8..40]);
        } else {
            let whole = self.headers - self.network + part.length;
            ip[2..4].copy_from_slice(&(whole as u16).to_be_bytes());
            let identification = u16::from_be_bytes([ip[4], ip[5]]);
            let next = identification.wrapping_add(part.number as u16);
            ip[4..6].copy_from_slice(&next.to_be_bytes());
            ip[10..12].fill(0);
            let mut own = Sum::default();
            own.add(ip);
            ip[10..12].copy_from_slice(&(!own.folded()).to_be_bytes());
            sum.add(&ip[12..20]);
        }
        sum.add(&[0, if self.is_udp { 17 } else { 6 }]);
        sum.add(&(length as u16).to_be_bytes());

        let transport = &mut frame[self.transport..];
        if self.is_udp {
            transport[4..6].copy_from_slice(&(length as u16).to_be_bytes());
        } else {
            let sequence =
                u32::from_be_bytes([transport[4], transport[5], transport[6], transport[7]]);
            let sequence = sequence.wrapping_add(part.at as u32);
            transport[4..8].copy_from_slice(&sequence.to_be_bytes());
            if !part.is_last {
                transport[13] &= !FIN_PSH;
            }
            if part.number > 0 {
                transport[13] &= !CWR;
            }
        }
        // Of what the kernel does not see: it adds the rest (linux/virtio_net.h, csum_start).
        transport[checksum..checksum + 2].copy_from_slice(&sum.folded().to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frames::TAG_BYTES;

    const MAC: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    const ALL_FLAGS: u8 = 0x80 | 0x10 | 0x08 | 0x01;
    const SEQUENCE: u32 = u32::MAX - 1_499;

    /// A virtio header, Ethernet with `between`, IP and TCP with a timestamp, or UDP; then payload
    /// whose bytes are all different from their neighbours.
    fn super_packet(
        between: &[u8],
        is_ipv6: bool,
        is_udp: bool,
        size: u16,
        payload: usize,
    ) -> Vec<u8> {
        let mut bytes = vec![NEEDS_CSUM, if is_udp { GSO_UDP_L4 } else { 1 }, 0, 0];
        bytes.extend(size.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(MAC);
        bytes.extend(between);
        let protocol = if is_udp { 17 } else { 6 };
        if is_ipv6 {
            bytes.extend([0x86, 0xdd, 0x60, 1, 2, 3, 0xff, 0xff, protocol, 64]);
            bytes.extend([[0xfd; 16], [0xfe; 16]].concat());
        } else {
            bytes.extend([0x08, 0, 0x45, 8, 0xff, 0xff, 0xff, 0xff, 0x40, 0, 64, protocol, 9, 9]);
            bytes.extend([10, 0, 0, 1, 10, 0, 0, 2]);
        }
        let transport = bytes.len() - VNET_BYTES;
        bytes[6..8].copy_from_slice(&(transport as u16).to_ne_bytes());
        bytes.extend([0x13, 1, 0x14, 0x51]);
        if is_udp {
            bytes.extend([0xff, 0xff, 7, 7]);
        } else {
            bytes.extend(SEQUENCE.to_be_bytes());
            bytes.extend([0, 0, 0, 9, 8 << 4, ALL_FLAGS, 1, 2, 7, 7, 0, 0]);
            bytes.extend([1, 1, 8, 10, 0, 0, 0, 3, 0, 0, 0, 4]);
        }
        bytes.extend((0..payload).map(|at| (at * 7 + at / 256) as u8));
        bytes
    }

    /// Puts bytes that begin with a virtio header into a pool, as they would arrive.
    fn put(pool: &mut Pool, bytes: &[u8]) -> Frame {
        let place = TAG_BYTES;
        let padded = [&[0; TAG_BYTES][..], bytes].concat();
        // Not in the order of their memory.
        let mut chunks: Vec<u32> =
            padded.chunks(CHUNK_BYTES).map(|_| pool.take().unwrap()).collect();
        chunks.reverse();
        for (chunk, part) in chunks.iter().zip(padded.chunks(CHUNK_BYTES)) {
            pool.bytes_mut(*chunk)[..part.len()].copy_from_slice(part);
        }
        pool.chain(&chunks);
        let handle = Handle { chunk: chunks[0], start: place as u8 };
        Frame { handle, len: (bytes.len() - VNET_BYTES) as u32 }
    }

    /// The frames of a super-packet; None if it stays whole.
    fn frames(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
        let mut pool = Pool::new(256).unwrap();
        let whole = put(&mut pool, bytes);
        let mut segments = Vec::new();
        let is_cut = split(&mut pool, whole, &mut segments);
        assert_eq!(segments.is_empty(), !is_cut);
        let bytes = |segment: &Frame| {
            let length = VNET_BYTES + segment.len as usize;
            pool.bytes(segment.handle.chunk)[..length].to_vec()
        };
        is_cut.then(|| segments.iter().map(bytes).collect())
    }

    fn word(bytes: &[u8], at: usize) -> u16 {
        u16::from_be_bytes([bytes[at], bytes[at + 1]])
    }

    /// The sum of all: 0xffff over a part with its checksum.
    fn sum(bytes: &[u8]) -> u16 {
        let mut sum = Sum::default();
        sum.add(bytes);
        sum.folded()
    }

    /// Does what the kernel does with the rest of the transport checksum, and checks all sums.
    fn check_sums(segment: &[u8], network: usize) {
        let (vnet, frame) = segment.split_at(VNET_BYTES);
        let field = |at: usize| usize::from(u16::from_ne_bytes([vnet[at], vnet[at + 1]]));
        assert_eq!((vnet[0], vnet[1], field(4)), (NEEDS_CSUM, 0, 0));
        let transport = field(6);
        let mut whole = frame[transport..].to_vec();
        let rest = !sum(&whole);
        whole[field(8)..field(8) + 2].copy_from_slice(&rest.to_be_bytes());
        let ip = &frame[network..transport];
        let (addresses, protocol) = match ip[0] >> 4 {
            4 => (&ip[12..20], ip[9]),
            _ => (&ip[8..40], ip[6]),
        };
        let length = (whole.len() as u16).to_be_bytes();
        let pseudo = [addresses, &[0, protocol], &length, &whole].concat();
        assert_eq!(sum(&pseudo), 0xffff, "the transport's checksum");
        if ip[0] >> 4 == 4 {
            assert_eq!(sum(ip), 0xffff, "the header's checksum");
            assert_eq!(usize::from(word(ip, 2)), frame.len() - network);
        } else {
            assert_eq!(usize::from(word(ip, 4)), frame.len() - network - IPV6_HEADER);
        }
    }

    #[test]
    fn tcp_is_cut_as_a_device_would_cut_it() {
        let tags: [&[u8]; 3] = [&[], &[0x81, 0, 0, 7], &[0x88, 0xa8, 0, 1, 0x81, 0, 0, 2]];
        for (tag, is_ipv6) in tags.into_iter().flat_map(|tag| [(tag, false), (tag, true)]) {
            let bytes = super_packet(tag, is_ipv6, false, 1_000, 3_501);
            let (network, ip) = (14 + tag.len(), if is_ipv6 { 40 } else { 20 });
            let transport = network + ip;
            let headers = transport + 32;
            let payload = &bytes[VNET_BYTES + headers..];
            let segments = frames(&bytes).expect("it can be cut");
            assert_eq!(segments.len(), 4);
            let mut all = Vec::new();
            for (number, segment) in segments.iter().enumerate() {
                check_sums(segment, network);
                let frame = &segment[VNET_BYTES..];
                assert_eq!(frame[..network], bytes[VNET_BYTES..VNET_BYTES + network]);
                let tcp = &frame[transport..];
                let sequence = u32::from_be_bytes(*tcp[4..].first_chunk().unwrap());
                assert_eq!(sequence, SEQUENCE.wrapping_add(1_000 * number as u32));
                let flags = match number {
                    0 => 0x80 | 0x10,
                    3 => 0x10 | 0x08 | 0x01,
                    _ => 0x10,
                };
                assert_eq!((tcp[13], &tcp[20..24]), (flags, &[1, 1, 8, 10][..]));
                if !is_ipv6 {
                    let identification = 0xffff_u16.wrapping_add(number as u16);
                    assert_eq!(word(frame, network + 4), identification);
                }
                all.extend_from_slice(&frame[headers..]);
            }
            assert_eq!(all, payload, "{} {is_ipv6}", tag.len());
        }
    }

    #[test]
    fn udp_is_cut_with_lengths_of_its_own() {
        for is_ipv6 in [false, true] {
            let bytes = super_packet(&[], is_ipv6, true, 1_200, 2_401);
            let segments = frames(&bytes).expect("it can be cut");
            let transport = if is_ipv6 { 54 } else { 34 };
            let lengths: Vec<u16> =
                segments.iter().map(|segment| word(segment, VNET_BYTES + transport + 4)).collect();
            assert_eq!(lengths, [1_208, 1_208, 9]);
            segments.iter().for_each(|segment| check_sums(segment, 14));
        }
    }

    #[test]
    fn what_cannot_be_cut_stays_whole() {
        let tcp = super_packet(&[], false, false, 1_000, 2_500);
        assert!(frames(&tcp).is_some());
        let network = VNET_BYTES + 14;
        // Another protocol; UDP's bytes under TCP's name; headers that end beyond all bytes.
        for (at, byte) in
            [(network - 2, 9), (network + 9, 17), (network, 0x44), (network + 32, 0x40)]
        {
            let mut other = tcp.clone();
            other[at] = byte;
            assert_eq!(frames(&other), None, "byte {at}");
        }
        let only_headers = &tcp[..network + 52];
        assert_eq!(frames(only_headers), None);
        // Segments longer than a chunk; too many; none.
        let most = (CHUNK_BYTES - VNET_BYTES - 14 - 52) as u16;
        assert!(frames(&super_packet(&[], false, false, most, 2_560)).is_some());
        for size in [most + 1, 19, 0] {
            assert_eq!(frames(&super_packet(&[], false, false, size, 2_560)), None, "{size}");
        }
        assert_eq!(
            frames(&super_packet(&[], false, false, 20, 2_560)).unwrap().len(),
            MOST_SEGMENTS
        );
    }

    #[test]
    fn a_carry_of_a_carry_is_added() {
        assert_eq!(sum(&[0xff, 0xff, 0xff, 0xff, 0, 1]), 1);
    }

    #[test]
    fn without_room_nothing_is_kept() {
        let mut pool = Pool::new(0).unwrap();
        let whole = put(&mut pool, &super_packet(&[], false, false, 1_000, 5_000));
        let mut taken: Vec<u32> = std::iter::from_fn(|| pool.take()).collect();
        (0..4).for_each(|_| pool.release(taken.pop().unwrap()));
        let mut segments = Vec::new();
        assert!(!split(&mut pool, whole, &mut segments) && segments.is_empty());
        assert_eq!(std::iter::from_fn(|| pool.take()).count(), 4);
    }

    #[test]
    fn no_bytes_are_too_wild() {
        let mut random = simnel_core::random::Random::new(5);
        let sound = super_packet(&[0x81, 0, 0, 7], true, false, 1_300, 4_000);
        for _ in 0..3_000 {
            let mut bytes = sound.clone();
            for _ in 0..3 {
                let at = random.below(120) as usize;
                bytes[at] = random.u32() as u8;
            }
            bytes.truncate(VNET_BYTES + 14 + random.below(4_000) as usize);
            for segment in frames(&bytes).into_iter().flatten() {
                assert!(segment.len() <= CHUNK_BYTES);
            }
        }
    }
}
