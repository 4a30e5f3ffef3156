//! Link headers: from the first byte of a frame to its network header.
//!
//! Ethernet II may have stacked VLAN tags (IEEE 802.1Q, 802.1ad and the older 0x9100), and PPPoE
//! sessions (RFC 2516, section 5) that carry IP. Bare IP is as the kernel's queues deliver it.
//! Whatever is none of these is still located, with the EtherType that was found last.
//!
//! Invariant: `offset` never exceeds the length of the bytes that were looked at.

/// Layer to which the first byte belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLayer {
    /// A whole Ethernet frame, without frame check sequence.
    Ethernet,
    /// An IP packet whose link header is not among the bytes (NFQUEUE, TUN).
    Ip {
        /// Bytes of link header that the packet has when it is sent: 14 on Ethernet. They count
        /// in `len`, `network_offset` and `header_len` of the packet.
        link_header: u8,
    },
}

/// Tags followed before giving up. Two are in use (802.1ad around 802.1Q); some networks add one.
pub const MAX_VLAN_TAGS: usize = 4;

pub(super) const ETHERNET_HEADER: usize = 14;
pub(super) const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
pub(super) const ETHERTYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const ETHERTYPE_ARP: [u8; 2] = [0x08, 0x06];
const ETHERTYPE_PPPOE_SESSION: [u8; 2] = [0x88, 0x64];
/// PPPoE header (version, code, session, length) and the PPP protocol number.
const PPPOE_HEADER: usize = 8;

/// Offset of the network header, and what it claims to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// Bytes before it.
    pub(super) offset: usize,
    /// The innermost EtherType that was found; zeros for 802.3 frames, which have a length there.
    pub(super) ethertype: [u8; 2],
    pub(super) network: Network,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Network {
    /// IP, as the EtherType and the header's version field agree.
    Ip,
    Arp,
    Other,
}

/// Finds the network header.
pub(super) fn locate(link: LinkLayer, bytes: &[u8]) -> Located {
    let other = |offset, ethertype| Located { offset, ethertype, network: Network::Other };
    if link != LinkLayer::Ethernet {
        return Located { offset: 0, ethertype: [0; 2], network: Network::Ip };
    }
    let Some(header) = bytes.first_chunk::<ETHERNET_HEADER>() else {
        return other(bytes.len(), [0; 2]);
    };
    let mut offset = ETHERNET_HEADER;
    let mut ethertype = [header[12], header[13]];
    for _ in 0..MAX_VLAN_TAGS {
        if !matches!(ethertype, [0x81, 0x00] | [0x88, 0xa8] | [0x91, 0x00]) {
            break;
        }
        let Some([_, _, high, low]) = bytes.get(offset..).and_then(|tag| tag.first_chunk()) else {
            return other(offset, ethertype);
        };
        ethertype = [*high, *low];
        offset += 4;
    }
    let version = |at| bytes.get(at).map(|first| first >> 4);
    match ethertype {
        ETHERTYPE_IPV4 if version(offset) == Some(4) => {
            Located { offset, ethertype, network: Network::Ip }
        }
        ETHERTYPE_IPV6 if version(offset) == Some(6) => {
            Located { offset, ethertype, network: Network::Ip }
        }
        ETHERTYPE_ARP => Located { offset, ethertype, network: Network::Arp },
        ETHERTYPE_PPPOE_SESSION => match pppoe(bytes.get(offset..).unwrap_or(&[])) {
            Some(carried) if version(offset + PPPOE_HEADER) == Some(carried) => {
                Located { offset: offset + PPPOE_HEADER, ethertype, network: Network::Ip }
            }
            _ => other(offset, ethertype),
        },
        [0..=5, _] => other(offset, [0; 2]),
        _ => other(offset, ethertype),
    }
}

/// The IP version that a PPPoE session frame carries; None for PPP's own control packets.
fn pppoe(bytes: &[u8]) -> Option<u8> {
    const VERSION_1_TYPE_1: u8 = 0x11;
    const SESSION_DATA: u8 = 0;
    match bytes.first_chunk::<PPPOE_HEADER>()? {
        [VERSION_1_TYPE_1, SESSION_DATA, _, _, _, _, 0x00, 0x21] => Some(4),
        [VERSION_1_TYPE_1, SESSION_DATA, _, _, _, _, 0x00, 0x57] => Some(6),
        _ => None,
    }
}
