//! A packet as the C side hands it over, and its descriptor.

use simnel_core::flow::Addresses;
use simnel_core::packet::Packet;
use simnel_core::wire::{Classifier, FlowKeys, LinkLayer};

use crate::host::bytes;

/// A packet that arrives (`struct simnel_arrival`).
#[repr(C)]
#[derive(Debug)]
pub struct Arrival {
    /// Address of the `sk_buff`.
    pub handle: u64,
    /// Its first bytes that lie in one piece.
    pub start: *const u8,
    /// Connection before address translation; null if there is none, or nobody asked.
    pub translation: *const Translation,
    /// Bytes at `start`.
    pub captured: u32,
    /// Bytes from `start` to the packet's end.
    pub remaining: u32,
    /// Bytes that queues count (`qdisc_pkt_len`).
    pub len: u32,
    /// Memory that the packet takes.
    pub truesize: u32,
    /// The firewall mark.
    pub mark: u32,
    /// `skb->priority`: a class, if its major number is the discipline's handle.
    pub priority: u32,
    /// Bytes before `start`, where the network header is; [`Arrival::ETHERNET`]: `start` is a whole
    /// Ethernet frame.
    pub link_header: u32,
    /// Class that a filter chose; 0 if none did.
    pub class: u32,
    /// Of a super-packet, payload bytes of each segment in the lower half, their number in the
    /// upper.
    pub gso: u32,
}

/// The connection of a packet as it was before its addresses were translated
/// (`struct simnel_translation`).
#[repr(C)]
#[derive(Debug)]
pub struct Translation {
    /// Addresses in network byte order; of IPv4 the first four bytes.
    pub source: [u8; 16],
    /// As `source`.
    pub destination: [u8; 16],
    /// Source and destination port as in the header.
    pub ports: [u8; 4],
    /// IP protocol.
    pub protocol: u8,
    /// 4 or 6.
    pub version: u8,
}

impl Arrival {
    /// A `link_header` that says: Ethernet from the first byte on.
    pub const ETHERNET: u32 = u32::MAX;

    /// The descriptor.
    ///
    /// # Safety
    /// `start` and `translation` must be null or point to what their fields say.
    // Apart: what it takes of the stack is free again when the discipline is called.
    #[inline(never)]
    pub(crate) unsafe fn describe(&self, classifier: &Classifier) -> Packet {
        // SAFETY: the caller's promise.
        let head = unsafe { bytes(self.start, self.captured) }.unwrap_or(&[]);
        let link = match self.link_header {
            Arrival::ETHERNET => LinkLayer::Ethernet,
            bytes => LinkLayer::Ip { link_header: bytes.min(255) as u8 },
        };
        let mut packet = classifier.classify(link, head, self.remaining, self.handle);
        packet.len = self.len;
        packet.truesize = self.truesize;
        packet.mark = self.mark;
        packet.class = self.priority;
        packet.gso_size = self.gso as u16;
        packet.gso_segs = (self.gso >> 16) as u16;
        // SAFETY: the caller's promise.
        if let Some(translation) = unsafe { self.translation.as_ref() } {
            translation.apply(&mut packet, classifier);
        }
        packet
    }
}

impl Translation {
    /// Gives `packet` the hashes of the connection inside.
    #[cold]
    fn apply(&self, packet: &mut Packet, classifier: &Classifier) {
        let first = |address: &[u8; 16]| [address[0], address[1], address[2], address[3]];
        let addresses = match self.version {
            4 => Addresses::V4(first(&self.source), first(&self.destination)),
            _ => Addresses::V6(self.source, self.destination),
        };
        let protocol = Some(self.protocol);
        let hash = classifier.hash(&FlowKeys { addresses, protocol, ports: self.ports });
        packet.flow = hash.flow;
        packet.src_host = hash.src_host;
        packet.dst_host = hash.dst_host;
    }
}
