//! Link types of captures: from what was captured to what `wire` reads.
//!
//! Numbers are those of the tcpdump group's registry. Linux's cooked headers stand in for the
//! Ethernet header that a packet had or would have: it counts as one in the packet's length.

use simnel_core::wire::LinkLayer;

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Bytes of a cooked packet that are rewritten, where they must be: all headers.
const REWRITTEN: usize = 256;

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
}

/// Where the part begins that `wire` reads.
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
        "Ethernet, raw IP and Linux's cooked captures (`tcpdump -i any`) are understood";

    pub(super) fn new(number: u32) -> Result<LinkType, String> {
        match number {
            1 => Ok(LinkType::Ethernet),
            12 | 14 | 101 | 228 | 229 => Ok(LinkType::Ip),
            113 => Ok(LinkType::Cooked),
            276 => Ok(LinkType::Cooked2),
            _ => Err(format!("link type {number} is not understood")),
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
