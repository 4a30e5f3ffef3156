//! Sizes of the segments of super-packets, and of the fragments of datagrams.
//!
//! NFQUEUE tells that a packet is a super-packet, but not how long its segments are; what they
//! occupy on the wire depends on that. TCP's segments are limited by two sizes: what the receiver
//! has announced in its SYN, and what the sender's own interface allows. The latter is told by the
//! sender's own announcement. The smaller announcement of a connection is kept here, for the
//! threads of both directions. What began earlier, and UDP, is reckoned with short segments: rather
//! too many headers than too few.
//!
//! A path with a smaller MTU than its ends, of which these learn from ICMP, is not seen. Then 64 kB
//! in segments of 1348 bytes instead of 1448 are charged 0.3 % too little.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use simnel_core::packet::Flags;
use simnel_core::wire::announced_segment;
use simnel_core::Packet;

use crate::classify::LINK;
use crate::connections::Connections;

/// Places for connections: of two that share one, the later stays. 64 KB.
const PLACES: usize = 8_192;
/// Largest packet of a segment where nothing is known: IPv6's least MTU, RFC 8200, section 5.
const UNKNOWN: u32 = 1_280;
/// Smallest packet of a segment that is believed.
const LEAST: u32 = 68;
/// Headers of IPv4, and of IPv6 with that of a fragment, that each fragment repeats.
const FRAGMENT_HEADERS: [u32; 2] = [20, 48];
/// Longest packet that can be a SYN: all options, and some tunnel's headers.
const LONGEST_SYN: u32 = 200;

/// Segment sizes that receivers have announced.
pub(crate) struct SegmentSizes {
    connections: Connections,
    /// Only then are announcements read.
    wanted: AtomicBool,
    /// 48 bits of a connection's hash, and 16 of its largest packet.
    places: Box<[AtomicU64]>,
}

impl SegmentSizes {
    /// Nothing is known yet, and nothing wanted.
    pub(crate) fn new() -> std::io::Result<SegmentSizes> {
        Ok(SegmentSizes::of(Connections::new()?))
    }

    pub(crate) fn of(connections: Connections) -> SegmentSizes {
        SegmentSizes {
            connections,
            wanted: AtomicBool::new(false),
            places: (0..PLACES).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Announcements are kept from now on.
    pub(crate) fn want(&self) {
        self.wanted.store(true, Ordering::Relaxed);
    }

    /// Keeps what `packet`, which starts with `bytes`, announces.
    #[inline]
    pub(crate) fn learn(&self, packet: &Packet, bytes: &[u8]) {
        if self.wanted.load(Ordering::Relaxed)
            && packet.flags.has(Flags::TCP)
            && packet.len <= LONGEST_SYN
        {
            self.keep(packet, bytes);
        }
    }

    #[inline(never)]
    fn keep(&self, packet: &Packet, bytes: &[u8]) {
        let Some(announced) = announced_segment(LINK, bytes) else { return };
        let whole = u32::from(announced) + plain_headers(packet);
        let (place, tag) = self.place(bytes);
        let largest = tag | u64::from(whole.min(u16::MAX.into()));
        let kept = place.load(Ordering::Relaxed);
        place.store(if kept & TAG == tag { largest.min(kept) } else { largest }, Ordering::Relaxed);
    }

    /// Describes the super-packet `packet`, which starts with `bytes`. `mtu` is what the interface
    /// sends at most in one packet, link header included.
    pub(crate) fn describe(&self, packet: &mut Packet, bytes: &[u8], mtu: u32) {
        let link = u32::from(packet.network_offset);
        let (place, tag) = self.place(bytes);
        let kept = place.load(Ordering::Relaxed);
        let is_known = kept & TAG == tag && packet.flags.has(Flags::TCP);
        let largest = if is_known { kept as u16 as u32 } else { UNKNOWN };
        let largest = largest.clamp(LEAST, mtu.saturating_sub(link).max(LEAST));
        let headers = u32::from(packet.header_len);
        describe_segments(packet, (largest + link).saturating_sub(headers).max(1) as u16);
    }

    fn place(&self, bytes: &[u8]) -> (&AtomicU64, u64) {
        let hash = self.connections.of(bytes);
        (&self.places[hash as usize % PLACES], hash & TAG)
    }
}

/// Describes the super-packet `packet`, each of whose segments carries `size` bytes.
pub(crate) fn describe_segments(packet: &mut Packet, size: u16) {
    let payload = packet.len.saturating_sub(packet.header_len.into());
    packet.gso_size = size;
    packet.gso_segs = payload.div_ceil(size.max(1).into()).clamp(1, u16::MAX.into()) as u16;
}

/// Describes `packet`, which is no super-packet, as the fragments that it is on the wire, if it is
/// longer than `mtu`. Connection tracking puts a datagram together before our queue, and the kernel
/// cuts it behind that. Each is charged with the headers of the whole: UDP's few bytes too much.
pub(crate) fn describe_fragments(packet: &mut Packet, mtu: u32) {
    if packet.len <= mtu || !packet.flags.any(Flags::IPV4 | Flags::IPV6) {
        return;
    }
    let repeated = u32::from(packet.network_offset)
        + FRAGMENT_HEADERS[usize::from(packet.flags.has(Flags::IPV6))];
    // All but the last carry a multiple of 8 bytes: RFC 791, section 3.2; RFC 8200, section 4.5.
    let longest = repeated + (mtu.saturating_sub(repeated) & !7);
    let headers = u32::from(packet.header_len);
    let size = longest.saturating_sub(headers).clamp(8, u16::MAX.into());
    packet.gso_size = size as u16;
    packet.gso_segs = packet.len.saturating_sub(headers).div_ceil(size).min(u16::MAX.into()) as u16;
}

/// Bits of a place that tell connections apart.
const TAG: u64 = !0xffff;

/// IP and TCP headers without options, which an announcement does not count.
fn plain_headers(packet: &Packet) -> u32 {
    if packet.flags.has(Flags::IPV6) {
        60
    } else {
        40
    }
}

#[cfg(test)]
mod tests {
    use simnel_core::flow::{FlowHasher, HashKey};
    use simnel_core::wire::Classifier;

    use super::*;

    /// IPv4, and TCP with `options`, from host `from` to host `to`.
    fn tcp(from: u8, to: u8, flags: u8, options: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0];
        bytes.extend([10, 0, 0, from, 10, 0, 0, to]);
        // Ports are the hosts' numbers.
        bytes.extend([0, from, 0, to]);
        bytes.extend([0; 8]);
        bytes.extend([(5 + options.len() as u8 / 4) << 4, flags, 0, 0, 0, 0, 0, 0]);
        bytes.extend(options);
        let length = bytes.len() as u16;
        bytes[2..4].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    fn classified(bytes: &[u8], len: u32) -> Packet {
        Classifier::new(FlowHasher::of_flows(HashKey::new(1, 2))).classify(LINK, bytes, len, 0)
    }

    const SYN: u8 = 2;
    const ACK: u8 = 16;
    const MTU: u32 = 1514;

    /// Segments of `payload` bytes from host 1 to host 2, and how long each is.
    fn described(sizes: &SegmentSizes, payload: u32, options: &[u8]) -> (u16, u16) {
        let bytes = tcp(1, 2, ACK, options);
        let mut packet = classified(&bytes, bytes.len() as u32 + payload);
        sizes.describe(&mut packet, &bytes, MTU);
        (packet.gso_segs, packet.gso_size)
    }

    #[test]
    fn segments_are_as_long_as_the_receiver_has_announced() {
        let sizes = SegmentSizes::of(Connections::with_key(HashKey::new(3, 4)));
        let announce = |from, to, size: u16| {
            let [high, low] = size.to_be_bytes();
            let bytes = tcp(from, to, SYN, &[1, 1, 4, 2, 2, 4, high, low]);
            sizes.learn(&classified(&bytes, bytes.len() as u32), &bytes);
        };
        let timestamps = [1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0];
        announce(2, 1, 1460);
        assert_eq!(described(&sizes, 14_480, &timestamps), (12, 1228), "nobody wanted to know");
        sizes.want();
        announce(1, 2, 1460);
        assert_eq!(described(&sizes, 14_480, &timestamps), (10, 1448));
        assert_eq!(described(&sizes, 14_481, &timestamps), (11, 1448));
        assert_eq!(described(&sizes, 14_600, &[]), (10, 1460));
        // The other end is behind PPPoE; then the first says its own again.
        announce(2, 1, 1452);
        announce(1, 2, 1460);
        assert_eq!(described(&sizes, 14_400, &timestamps), (10, 1440));
        // Less than a header.
        announce(2, 1, 0);
        assert_eq!(described(&sizes, 28, &[]), (1, 28));
    }

    #[test]
    fn no_segment_is_longer_than_the_interface_allows() {
        let sizes = SegmentSizes::of(Connections::with_key(HashKey::new(3, 4)));
        sizes.want();
        let bytes = tcp(2, 1, SYN, &[2, 4, 0x23, 0]);
        sizes.learn(&classified(&bytes, bytes.len() as u32), &bytes);
        assert_eq!(described(&sizes, 14_600, &[]), (10, 1460));
    }

    #[test]
    fn what_is_not_known_is_reckoned_with_short_segments() {
        let sizes = SegmentSizes::of(Connections::with_key(HashKey::new(3, 4)));
        sizes.want();
        assert_eq!(described(&sizes, 12_400, &[]), (10, 1240));
        let mut udp = tcp(1, 2, 0, &[]);
        udp[9] = 17;
        let mut packet = classified(&udp, 28 + 12_520);
        sizes.describe(&mut packet, &udp, MTU);
        assert_eq!((packet.gso_segs, packet.gso_size), (10, 1252));
    }

    #[test]
    fn a_datagram_longer_than_the_interface_sends_is_charged_as_its_fragments() {
        use simnel_core::framing::Framing;
        let mut udp = tcp(1, 2, 0, &[]);
        udp[9] = 17;
        let mut ipv6 = vec![0x60, 0, 0, 0, 0, 0, 17, 64];
        ipv6.extend([1; 32]);
        ipv6.extend([0, 1, 0, 2, 0, 0, 0, 0]);
        // IP's length, and what is charged with Ethernet's headers.
        for (bytes, len, mtu, segments, charged) in [
            (&udp, 1500, MTU, 0, 1514),
            (&udp, 1501, MTU, 2, 1514 + 43),
            (&udp, 8028, MTU, 6, 5 * 1514 + 42 + 640),
            (&udp, 8028, 1506, 6, 5 * 1506 + 42 + 680),
            (&udp, 8028, 1500, 6, 5 * 1498 + 42 + 720),
            // Full to the last byte, and one more.
            (&udp, 28 + 5 * 1472, MTU, 5, 5 * 1514),
            (&udp, 29 + 5 * 1472, MTU, 6, 5 * 1514 + 43),
            (&ipv6, 8048, MTU, 6, 5 * 1510 + 62 + 760),
            (&ipv6, 48 + 5 * 1448, MTU, 5, 5 * 1510),
            (&ipv6, 49 + 5 * 1448, MTU, 6, 5 * 1510 + 63),
        ] {
            let mut packet = classified(bytes, len);
            describe_fragments(&mut packet, mtu);
            let found = (packet.gso_segs, Framing::default().charge(&packet));
            assert_eq!(found, (segments, charged), "{len} {mtu}");
        }
        let mut other = classified(&[0; 64], 8042);
        describe_fragments(&mut other, MTU);
        assert_eq!(other.gso_segs, 0, "only IP has fragments");
    }

    #[test]
    fn any_bytes_are_harmless() {
        let sizes = SegmentSizes::of(Connections::with_key(HashKey::new(3, 4)));
        sizes.want();
        let mut random = simnel_core::random::Random::new(9);
        for _ in 0..50_000 {
            let mut bytes = tcp(2, 1, SYN, &[2, 4, 5, 0xb4, 3, 3, 7, 0]);
            let cut = random.below(bytes.len() as u32 + 1) as usize;
            let at = random.below(bytes.len() as u32) as usize;
            bytes[at] = random.u32() as u8;
            bytes.truncate(cut);
            let mut packet = classified(&bytes, random.below(1 << 20));
            sizes.learn(&packet, &bytes);
            let mtu = random.below(3_000);
            describe_fragments(&mut packet, mtu);
            assert!(packet.gso_segs == 0 || packet.gso_size > 0);
            sizes.describe(&mut packet, &bytes, mtu);
            assert!(packet.gso_size > 0 && packet.gso_segs > 0);
        }
    }
}
