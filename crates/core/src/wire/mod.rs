//! Bytes to descriptors, and ECN/DSCP back into bytes.
//!
//! [`Classifier::classify`] parses a frame once and hashes it once. Two fast paths read fixed
//! offsets behind one bounds check. They are for TCP or UDP in IPv4 without options, and in IPv6
//! without extension headers. Everything else (tags, tunnels, fragments, damage) takes the general
//! walk out of line ([`link`](LinkLayer), `ip`). A test holds both to the same result.
//!
//! Every frame becomes a valid [`Packet`], however damaged or short. What is not understood is left
//! out, and a flag is set only for what was certainly found. Never a panic, never an allocation.
//!
//! Ports, addresses and protocol make the flow. Linux stops at a non-zero IPv6 flow label and takes
//! that instead; we do not, because Linux senders change the label at each retransmission timeout.

mod ip;
mod link;
mod rewrite;
pub mod tcp;
#[cfg(test)]
mod tests;

pub use link::{LinkLayer, MAX_VLAN_TAGS};
pub use rewrite::{clear_dscp, set_ecn_ce, set_tos};
pub use tcp::{ack_view, announced_segment, awaited_ack, AckView};

use crate::flow::{Addresses, FlowHash, FlowHasher};
use crate::packet::{Flags, Packet};
use ip::{protocol, Walk, IPV4_HEADER, IPV6_HEADER, TCP_HEADER, UDP_HEADER};
use link::{Network, ETHERNET_HEADER, ETHERTYPE_IPV4, ETHERTYPE_IPV6};

/// Protocol number under which frames without IP are hashed: reserved by IANA, so that hardly any
/// IP flow has it.
const NOT_IP: u8 = 255;

/// Turns bytes into descriptors.
#[derive(Clone, Copy, Debug)]
pub struct Classifier {
    hasher: FlowHasher,
}

impl Classifier {
    /// A classifier that hashes with `hasher`.
    pub const fn new(hasher: FlowHasher) -> Classifier {
        Classifier { hasher }
    }

    /// Describes the packet that starts with `bytes` (128 are enough for all common headers).
    ///
    /// `wire_len` is the packet's true length in bytes, counted from the first of `bytes`; a
    /// capture may be shorter. `handle` is the owner's name for the packet. `truesize` is an
    /// estimate, and mark, class and super-packet fields are zero: an owner that knows better sets
    /// them.
    #[inline]
    pub fn classify(&self, link: LinkLayer, bytes: &[u8], wire_len: u32, handle: u64) -> Packet {
        let fast = match link {
            LinkLayer::Ethernet => match bytes.split_first_chunk::<ETHERNET_HEADER>() {
                Some(([.., high, low], network)) => {
                    let plain = match [*high, *low] {
                        ETHERTYPE_IPV4 => self.plain_v4(network),
                        ETHERTYPE_IPV6 => self.plain_v6(network),
                        _ => None,
                    };
                    plain.map(|plain| plain.describe(handle, wire_len, ETHERNET_HEADER as u8))
                }
                None => None,
            },
            LinkLayer::Ip { link_header } => {
                let len = wire_len.saturating_add(u32::from(link_header));
                self.plain_v4(bytes)
                    .or_else(|| self.plain_v6(bytes))
                    .map(|plain| plain.describe(handle, len, link_header))
            }
        };
        match fast {
            Some(packet) => packet,
            None => self.classify_any(link, bytes, wire_len, handle),
        }
    }

    /// TCP or UDP in IPv4 without options and not fragmented. None takes the general path.
    #[inline(always)]
    fn plain_v4(&self, network: &[u8]) -> Option<Summary> {
        let (fixed, transport) = network.split_first_chunk::<IPV4_HEADER>()?;
        if fixed[0] != 0x45 || be16(fixed[6] & 0x3f, fixed[7]) != 0 {
            return None;
        }
        let stated = usize::from(be16(fixed[2], fixed[3])).checked_sub(IPV4_HEADER)?;
        let (ports, length, tcp) = plain_transport(fixed[9], transport, stated)?;
        let [.., s0, s1, s2, s3, d0, d1, d2, d3] = *fixed;
        Some(Summary {
            hash: self.hasher.hash_v4([s0, s1, s2, s3], [d0, d1, d2, d3], fixed[9], ports),
            headers: IPV4_HEADER + length,
            tos: fixed[1],
            flags: Flags::IPV4 | tcp,
        })
    }

    /// TCP or UDP in IPv6 without extension headers. None takes the general path.
    #[inline(always)]
    fn plain_v6(&self, network: &[u8]) -> Option<Summary> {
        let (fixed, transport) = network.split_first_chunk::<IPV6_HEADER>()?;
        if fixed[0] >> 4 != 6 {
            return None;
        }
        let stated = usize::from(be16(fixed[4], fixed[5]));
        let (ports, length, tcp) = plain_transport(fixed[6], transport, stated)?;
        let (src, dst) = fixed[8..].split_first_chunk()?;
        Some(Summary {
            hash: self.hasher.hash_v6(src, dst.first_chunk()?, fixed[6], ports),
            headers: IPV6_HEADER + length,
            tos: fixed[0] << 4 | fixed[1] >> 4,
            flags: Flags::IPV6 | tcp,
        })
    }

    /// Fills in what the headers tell of an IP packet, which starts with `bytes`. Its length and
    /// `network_offset` must be known; the rest stays as it is. For owners that keep room for one
    /// descriptor, which is then never copied.
    #[inline(always)]
    pub fn describe(&self, bytes: &[u8], packet: &mut Packet) {
        match self.plain_v4(bytes).or_else(|| self.plain_v6(bytes)) {
            Some(plain) => plain.fill(packet),
            None => self.describe_any(bytes, packet),
        }
    }

    /// The general path of [`Classifier::describe`].
    #[cold]
    #[inline(never)]
    fn describe_any(&self, bytes: &[u8], packet: &mut Packet) {
        let link = LinkLayer::Ip { link_header: packet.network_offset };
        self.summarize(link, bytes, &link::locate(link, bytes)).fill(packet);
    }

    /// The general path: any link header, any IP packet, anything else.
    #[cold]
    #[inline(never)]
    fn classify_any(&self, link: LinkLayer, bytes: &[u8], wire_len: u32, handle: u64) -> Packet {
        let located = link::locate(link, bytes);
        let (unseen, len) = match link {
            LinkLayer::Ethernet => (0, wire_len),
            LinkLayer::Ip { link_header } => {
                (link_header, wire_len.saturating_add(u32::from(link_header)))
            }
        };
        // At most 14 + 4 tags + PPPoE = 38 bytes, or `link_header`.
        let offset = unseen.saturating_add(located.offset as u8);
        self.summarize(link, bytes, &located).describe(handle, len, offset)
    }

    fn summarize(&self, link: LinkLayer, bytes: &[u8], located: &link::Located) -> Summary {
        match network(located, bytes) {
            Some(walk) => {
                let Walk { headers, tos, flags, .. } = walk;
                Summary { hash: self.hash(&walk.keys()), headers, tos, flags }
            }
            None => Summary {
                hash: self.hash(&keys_of_link(link, bytes, located.ethertype)),
                headers: 0,
                tos: 0,
                flags: if located.network == Network::Arp { Flags::ARP } else { Flags::default() },
            },
        }
    }

    /// The hashes of `keys`, as [`classify`](Classifier::classify) takes them from a packet.
    #[inline]
    pub fn hash(&self, keys: &FlowKeys) -> FlowHash {
        let hash = |protocol| self.hasher.hash(&keys.addresses, protocol, keys.ports);
        match keys.protocol {
            Some(protocol) => hash(protocol),
            None => FlowHash { src_host: 0, dst_host: 0, ..hash(NOT_IP) },
        }
    }
}

/// Fills in what the network header tells of an IP packet, which starts with `bytes`. Unless it is
/// a super-packet, that is enough for disciplines that tell no flows
/// ([`Config::tells_flows`](crate::qdisc::Config::tells_flows)). `header_len` stays unknown, and so
/// does whether it is TCP.
#[inline(always)]
pub fn describe_network(bytes: &[u8], packet: &mut Packet) {
    (packet.tos, packet.flags) = match bytes.first_chunk::<IPV4_HEADER>() {
        Some([0x45..=0x4f, tos, ..]) => (*tos, Flags::IPV4),
        Some([first @ 0x60..=0x6f, second, ..]) if bytes.len() >= IPV6_HEADER => {
            (first << 4 | second >> 4, Flags::IPV6)
        }
        _ => (0, Flags::default()),
    };
}

/// Header fields that tell a packet's flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowKeys {
    /// The innermost IP addresses; of a frame without IP, its link addresses in the first six
    /// bytes.
    pub addresses: Addresses,
    /// The IP protocol; None without IP.
    pub protocol: Option<u8>,
    /// Source and destination port as in the header, zeros where there are none; of a frame
    /// without IP, its EtherType in the first two bytes.
    pub ports: [u8; 4],
}

/// The keys of the packet that starts with `bytes`: what [`Classifier::classify`] hashes, for
/// whoever must name the flow.
pub fn flow_keys(link: LinkLayer, bytes: &[u8]) -> FlowKeys {
    let located = link::locate(link, bytes);
    match network(&located, bytes) {
        Some(walk) => walk.keys(),
        None => keys_of_link(link, bytes, located.ethertype),
    }
}

/// Bytes behind the headers of the packet that starts with `bytes`, as far as they are captured and
/// the headers are understood; None without IP.
pub fn payload(link: LinkLayer, bytes: &[u8]) -> Option<&[u8]> {
    let located = link::locate(link, bytes);
    let walk = network(&located, bytes)?;
    bytes.get(located.offset + walk.headers..)
}

/// Follows the IP headers, if there are any.
fn network(located: &link::Located, bytes: &[u8]) -> Option<Walk> {
    match located.network {
        Network::Ip => ip::walk(bytes.get(located.offset..).unwrap_or(&[])),
        Network::Arp | Network::Other => None,
    }
}

/// The keys of a frame without IP: both link addresses, as far as captured, and the EtherType.
fn keys_of_link(link: LinkLayer, bytes: &[u8], [high, low]: [u8; 2]) -> FlowKeys {
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    if link == LinkLayer::Ethernet {
        for (i, byte) in bytes.iter().take(12).enumerate() {
            if i < 6 {
                dst[i] = *byte;
            } else {
                src[i - 6] = *byte;
            }
        }
    }
    FlowKeys { addresses: Addresses::V6(src, dst), protocol: None, ports: [high, low, 0, 0] }
}

/// Facts from all headers together.
struct Summary {
    hash: FlowHash,
    /// Bytes of headers from the network header on.
    headers: usize,
    tos: u8,
    flags: Flags,
}

impl Summary {
    #[inline(always)]
    fn describe(self, handle: u64, len: u32, network_offset: u8) -> Packet {
        let mut packet = Packet::new(handle, len);
        packet.network_offset = network_offset;
        self.fill(&mut packet);
        packet
    }

    /// Fills in all but lengths and `network_offset`.
    #[inline(always)]
    fn fill(self, packet: &mut Packet) {
        packet.flow = self.hash.flow;
        packet.src_host = self.hash.src_host;
        packet.dst_host = self.hash.dst_host;
        packet.header_len = (usize::from(packet.network_offset) + self.headers).min(255) as u8;
        packet.tos = self.tos;
        packet.flags = self.flags;
    }
}

/// Ports, header length and flag of a TCP or UDP header that is wholly there and within the
/// `stated` bytes.
#[inline(always)]
fn plain_transport(number: u8, transport: &[u8], stated: usize) -> Option<([u8; 4], usize, Flags)> {
    match number {
        protocol::TCP if stated >= TCP_HEADER => {
            let fixed = transport.first_chunk::<TCP_HEADER>()?;
            let length = usize::from(fixed[12] >> 4) * 4;
            let ports = [fixed[0], fixed[1], fixed[2], fixed[3]];
            (length >= TCP_HEADER).then_some((ports, length, Flags::TCP))
        }
        protocol::UDP if stated >= UDP_HEADER => {
            let [a, b, c, d, ..] = *transport.first_chunk::<UDP_HEADER>()?;
            Some(([a, b, c, d], UDP_HEADER, Flags::default()))
        }
        _ => None,
    }
}

#[inline(always)]
const fn be16(high: u8, low: u8) -> u16 {
    u16::from_be_bytes([high, low])
}
