//! Link types of captures: from what was captured to what `wire` reads.
//!
//! Numbers are those of the tcpdump group's registry. Linux's cooked headers stand in for the
//! Ethernet header that a packet had or would have: it counts as one in the packet's length.

use simnel_core::wire::LinkLayer;

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Bytes of a cooked packet that are rewritten, where they must be: all headers.
const REWRITTEN: usize = 256;

/// Link types that are met and not understood.
const OTHERS: [(u32, &str); 16] = [
    (6, "token ring"),
    (10, "FDDI"),
    (51, "PPPoE without Ethernet"),
    (104, "Cisco HDLC"),
    (105, "802.11"),
    (107, "frame relay"),
    (119, "802.11 with Prism headers"),
    (123, "ATM"),
    (127, "802.11 with radiotap headers"),
    (163, "802.11 with AVS headers"),
    (187, "Bluetooth HCI"),
    (189, "USB"),
    (195, "802.15.4"),
    (220, "USB"),
    (239, "NFLOG"),
    (253, "netlink"),
];

/// A link type that is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinkType {
    Ethernet,
    /// IP without anything before it.
    Ip,
    /// Linux's cooked header, 16 bytes, EtherType last.
    Cooked,
    /// Its second version, 20 bytes, EtherType first.
    Cooked2,
    /// BSD's loopback: four bytes of the address family, in either byte order.
    Loopback,
    /// PPP, with or without HDLC's address and control.
    Ppp,
}

/// Place in a frame at which the part begins that `wire` reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) link: LinkLayer,
    /// From which captured byte on; unless the header was rewritten.
    pub(super) start: usize,
    /// Bytes by which the packet on the wire is shorter than the original length says.
    pub(super) removed: u32,
}

impl LinkType {
    pub(super) const HELP: &'static str =
        "Ethernet, raw IP, PPP, BSD's loopback and Linux's cooked captures (`tcpdump -i any`) are \
         understood";

    pub(super) fn new(number: u32) -> Result<LinkType, String> {
        match number {
            0 | 108 => Ok(LinkType::Loopback),
            1 => Ok(LinkType::Ethernet),
            9 | 50 => Ok(LinkType::Ppp),
            12 | 14 | 101 | 228 | 229 => Ok(LinkType::Ip),
            113 => Ok(LinkType::Cooked),
            276 => Ok(LinkType::Cooked2),
            _ => {
                let known = OTHERS.iter().find(|(known, _)| *known == number);
                let name = known.map(|(_, name)| format!(" ({name})")).unwrap_or_default();
                Err(format!("link type {number}{name} is not understood"))
            }
        }
    }

    /// Finds the part that `wire` reads. Where no part of `captured` would do, `rewritten` holds it
    /// afterwards; else it is empty.
    #[inline]
    pub(super) fn locate(self, captured: &[u8], rewritten: &mut Vec<u8>) -> Cut {
        rewritten.clear();
        match self {
            LinkType::Ethernet => Cut { link: LinkLayer::Ethernet, start: 0, removed: 0 },
            LinkType::Ip => Cut { link: LinkLayer::Ip { link_header: 0 }, start: 0, removed: 0 },
            // The last 14 bytes end in an EtherType, as an Ethernet header does.
            LinkType::Cooked => {
                Cut { link: LinkLayer::Ethernet, start: captured.len().min(2), removed: 2 }
            }
            LinkType::Loopback => bare(captured, 4),
            LinkType::Ppp => {
                let framed = if captured.starts_with(&[0xff, 0x03]) { 2 } else { 0 };
                // A protocol's number ends with its first odd byte.
                let short = captured.get(framed).is_some_and(|first| first & 1 == 1);
                bare(captured, framed + if short { 1 } else { 2 })
            }
            LinkType::Cooked2 => {
                let cut = Cut { link: LinkLayer::Ethernet, start: 0, removed: 6 };
                let Some((header, packet)) = captured.split_first_chunk::<20>() else {
                    return Cut { start: captured.len(), ..cut };
                };
                rewritten.extend_from_slice(&header[20 - (ETHERNET - 2)..]);
                rewritten.extend_from_slice(&header[..2]);
                rewritten.extend_from_slice(&packet[..packet.len().min(REWRITTEN)]);
                cut
            }
        }
    }
}

/// IP behind `header` bytes that count for nothing.
fn bare(captured: &[u8], header: usize) -> Cut {
    let link = LinkLayer::Ip { link_header: 0 };
    Cut { link, start: captured.len().min(header), removed: header as u32 }
}
