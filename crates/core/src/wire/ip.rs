//! IPv4 and IPv6 headers, extension headers and tunnels: any packet, at leisure.
//!
//! [`header`] reads one IP header (RFC 791, RFC 8200). [`walk`] goes on from there to the ports. On
//! its way are IPv6 extension headers (hop-by-hop, routing, destination, fragment), authentication
//! headers, and IP in IP in all four combinations. Inside a tunnel the *innermost* addresses make
//! flow and hosts, as in Linux's flow dissector. So the flows in a 6in4 tunnel are told apart. A
//! tunnel that is not understood falls back to its outer addresses.
//!
//! Fragments never show ports, the first one included, so that all of a datagram share a flow.
//! Ports are the first four bytes of TCP, UDP, UDP-Lite, SCTP and DCCP. All else, ICMP included,
//! has ports zero: an echo request and the errors and replies beside it stay in one flow.
//!
//! Invariants: never looks beyond the length that the IP header states (Ethernet pads short
//! frames), nor beyond the capture; at most [`MAX_HEADERS`] headers are followed.

use super::{be16, FlowKeys};
use crate::flow::Addresses;
use crate::packet::Flags;

/// Headers followed behind the first IP header, tunnels and extensions together: as many as Linux's
/// flow dissector follows. Beyond that a packet is not understood, not refused.
pub(super) const MAX_HEADERS: usize = 15;

/// Protocol numbers (IANA).
pub(super) mod protocol {
    pub const HOP_BY_HOP: u8 = 0;
    pub const IPV4: u8 = 4;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
    pub const DCCP: u8 = 33;
    pub const IPV6: u8 = 41;
    pub const ROUTING: u8 = 43;
    pub const FRAGMENT: u8 = 44;
    pub const AUTHENTICATION: u8 = 51;
    pub const DESTINATION: u8 = 60;
    pub const SCTP: u8 = 132;
    pub const UDP_LITE: u8 = 136;
}

pub(super) const IPV4_HEADER: usize = 20;
pub(super) const IPV6_HEADER: usize = 40;
pub(super) const UDP_HEADER: usize = 8;
pub(super) const TCP_HEADER: usize = 20;
/// More-fragments bit and fragment offset of the IPv4 word at byte 6.
const IPV4_FRAGMENT: u16 = 0x3fff;

/// One IP header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'a> {
    pub(super) addresses: Addresses,
    pub(super) protocol: u8,
    /// TOS or traffic class.
    pub(super) tos: u8,
    /// True for an IPv4 fragment, the first one included. (IPv6 tells in an extension header.)
    pub(super) fragment: bool,
    /// Bytes of the header itself, IPv4 options included.
    pub(super) length: usize,
    /// Bytes behind the header as the header states them; zero may also mean "more than fits".
    pub(super) stated_body: usize,
    /// Their captured part.
    pub(super) body: &'a [u8],
}

/// Facts from a packet's innermost headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walk {
    /// Addresses, protocol and ports as far in as was understood.
    pub(super) addresses: Addresses,
    /// See `addresses`.
    pub(super) protocol: u8,
    /// See `addresses`; zeros where there are none.
    pub(super) ports: [u8; 4],
    /// Bytes from the network header to the first byte not understood as a header.
    pub(super) headers: usize,
    /// TOS or traffic class of the outermost header.
    pub(super) tos: u8,
    /// Network layer of the outermost header, and whether TCP was found.
    pub(super) flags: Flags,
}

impl Walk {
    /// Header fields that tell the packet's flow.
    pub(super) fn keys(&self) -> FlowKeys {
        let Walk { addresses, protocol, ports, .. } = *self;
        FlowKeys { addresses, protocol: Some(protocol), ports }
    }
}

/// The IP header at the start of `bytes`; None if it is incomplete or no IP header.
pub(super) fn header(bytes: &[u8]) -> Option<Header<'_>> {
    match bytes.first()? >> 4 {
        4 => {
            let fixed = bytes.first_chunk::<IPV4_HEADER>()?;
            let length = usize::from(fixed[0] & 0x0f) * 4;
            if length < IPV4_HEADER {
                return None;
            }
            // Super-packets beyond 64 kB state zero: then everything behind the header is body.
            let total = match be16(fixed[2], fixed[3]) {
                0 => bytes.len(),
                total => usize::from(total),
            };
            let [_, _, _, _, _, _, _, _, _, _, _, _, s0, s1, s2, s3, d0, d1, d2, d3] = *fixed;
            Some(Header {
                addresses: Addresses::V4([s0, s1, s2, s3], [d0, d1, d2, d3]),
                protocol: fixed[9],
                tos: fixed[1],
                fragment: be16(fixed[6], fixed[7]) & IPV4_FRAGMENT != 0,
                length,
                stated_body: usize::from(be16(fixed[2], fixed[3])).saturating_sub(length),
                body: bytes.get(length..total.min(bytes.len())).unwrap_or(&[]),
            })
        }
        6 => {
            let (fixed, rest) = bytes.split_first_chunk::<IPV6_HEADER>()?;
            let stated_body = usize::from(be16(fixed[4], fixed[5]));
            // Jumbograms and super-packets beyond 64 kB state zero.
            let captured = if stated_body == 0 { rest.len() } else { stated_body.min(rest.len()) };
            let (src, behind) = fixed[8..].split_first_chunk()?;
            Some(Header {
                addresses: Addresses::V6(*src, *behind.first_chunk()?),
                protocol: fixed[6],
                tos: fixed[0] << 4 | fixed[1] >> 4,
                fragment: false,
                length: IPV6_HEADER,
                stated_body,
                body: &rest[..captured],
            })
        }
        _ => None,
    }
}

/// Follows all headers of the IP packet at the start of `bytes`; None if it does not start with a
/// complete IP header.
pub(super) fn walk(bytes: &[u8]) -> Option<Walk> {
    let outer = header(bytes)?;
    let mut walk = Walk {
        addresses: outer.addresses,
        protocol: outer.protocol,
        ports: [0; 4],
        headers: outer.length,
        tos: outer.tos,
        flags: match outer.addresses {
            Addresses::V4(..) => Flags::IPV4,
            Addresses::V6(..) => Flags::IPV6,
        },
    };
    let mut fragment = outer.fragment;
    let mut body = outer.body;
    for _ in 0..MAX_HEADERS {
        if fragment {
            break;
        }
        let ipv6 = matches!(walk.addresses, Addresses::V6(..));
        let extension = match walk.protocol {
            protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION if ipv6 => {
                body.first_chunk().map(|[next, len]| (*next, (usize::from(*len) + 1) * 8))
            }
            protocol::AUTHENTICATION => {
                body.first_chunk().map(|[next, len]| (*next, (usize::from(*len) + 2) * 4))
            }
            protocol::FRAGMENT if ipv6 => match body.first_chunk::<8>() {
                // Offset zero and no more fragments: the packet is whole (RFC 6946).
                Some([next, _, high, low, ..]) if be16(*high, *low) & 0xfff9 == 0 => {
                    Some((*next, 8))
                }
                // The number that follows may differ between fragments: the flow keeps 44.
                _ => None,
            },
            protocol::IPV4 | protocol::IPV6 => match header(body) {
                Some(inner) => {
                    walk.addresses = inner.addresses;
                    walk.headers += inner.length;
                    walk.protocol = inner.protocol;
                    fragment = inner.fragment;
                    body = inner.body;
                    continue;
                }
                None => None,
            },
            _ => {
                transport(&mut walk, body);
                None
            }
        };
        let Some((next, length)) = extension else { break };
        let Some(rest) = body.get(length..) else { break };
        walk.protocol = next;
        walk.headers += length;
        body = rest;
    }
    Some(walk)
}

/// Ports, and the length of the transport header where one is known.
fn transport(walk: &mut Walk, body: &[u8]) {
    match walk.protocol {
        protocol::TCP | protocol::UDP | protocol::UDP_LITE | protocol::SCTP | protocol::DCCP => {}
        _ => return,
    }
    let Some(ports) = body.first_chunk() else { return };
    walk.ports = *ports;
    match walk.protocol {
        protocol::TCP => {
            let Some(fixed) = body.first_chunk::<TCP_HEADER>() else { return };
            let length = usize::from(fixed[12] >> 4) * 4;
            if length >= TCP_HEADER {
                walk.flags.set(Flags::TCP);
                walk.headers += length;
            }
        }
        protocol::UDP | protocol::UDP_LITE if body.len() >= UDP_HEADER => {
            walk.headers += UDP_HEADER;
        }
        _ => {}
    }
}
