//! A packet as the C side hands it over, and its descriptor.

use core::mem::offset_of;
use core::ptr::null;
use core::slice::from_raw_parts;

use simnel_core::flow::{Addresses, HashKey};
use simnel_core::packet::Packet;
use simnel_core::qdisc::{Config, Device};
use simnel_core::wire::{describe_network, Classifier, FlowKeys, LinkLayer};

use crate::host::bytes;
use crate::settings::Chooser;

// The fields that C writes or reads lie where its structure has them.
const _: () = {
    assert!(offset_of!(Packet, handle) == 0 && offset_of!(Packet, len) == 24);
    assert!(offset_of!(Packet, truesize) == 28 && offset_of!(Packet, adj_len) == 40);
    assert!(offset_of!(Packet, mark) == 48 && offset_of!(Packet, class) == 52);
    assert!(offset_of!(Packet, gso_size) == 56 && offset_of!(Packet, gso_segs) == 58);
    assert!(offset_of!(Packet, network_offset) == 61 && offset_of!(Packet, flags) == 63);
    assert!(offset_of!(Arrival, start) == 64);
};

/// A packet that arrives (`struct simnel_arrival`). Each line has room for one, into which C writes
/// what it knows, in place: a descriptor is copied once only, to where it waits.
#[repr(C)]
#[derive(Debug)]
pub struct Arrival {
    /// C writes `handle` (the address of the `sk_buff`), `len` and `adj_len` (`qdisc_pkt_len`),
    /// `truesize`, `mark`, `class` (`skb->priority`), `network_offset`, and for a super-packet
    /// `gso_size` and `gso_segs`. The headers tell the rest.
    pub packet: Packet,
    /// The bytes from the network header on that lie in one piece.
    pub start: *const u8,
    /// Number of these bytes.
    pub captured: u32,
}

/// Further facts about a packet that is not just linear IP (`struct simnel_unusual`).
#[repr(C)]
#[derive(Debug)]
pub struct Unusual {
    /// Connection before address translation; null if there is none, or nobody asked.
    pub translation: *const Translation,
    /// Bytes from `start` to the packet's end.
    pub remaining: u32,
    /// Class that a filter chose; 0 if none did.
    pub class: u32,
    /// Not zero: `start` is that of a whole Ethernet frame.
    pub is_ethernet: u32,
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
    /// Room for a packet.
    pub(crate) const EMPTY: Arrival =
        Arrival { packet: Packet::new(0, 0), start: null(), captured: 0 };

    /// Completes the descriptor of linear IP.
    ///
    /// # Safety
    /// `start` must point to as many bytes as `captured` says.
    #[inline(always)]
    pub(crate) unsafe fn describe(&mut self, reader: &Reader) {
        // SAFETY: the caller's promise.
        let head = unsafe { from_raw_parts(self.start, self.captured as usize) };
        match reader.tells_flows {
            true => reader.classifier.describe(head, &mut self.packet),
            false => describe_network(head, &mut self.packet),
        }
    }

    /// Completes the descriptor of any packet.
    ///
    /// # Safety
    /// As [`Arrival::describe`]; the translation must be null or live.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn describe_unusual(&mut self, unusual: &Unusual, reader: &Reader) {
        let Reader { classifier, chooser, .. } = reader;
        // SAFETY: the caller's promise.
        let head = unsafe { bytes(self.start, self.captured) }.unwrap_or(&[]);
        let told = self.packet;
        let link = match unusual.is_ethernet {
            0 => LinkLayer::Ip { link_header: told.network_offset },
            _ => LinkLayer::Ethernet,
        };
        let packet = &mut self.packet;
        *packet = classifier.classify(link, head, unusual.remaining, told.handle);
        (packet.len, packet.adj_len, packet.truesize) = (told.len, told.adj_len, told.truesize);
        (packet.mark, packet.class) = (told.mark, told.class);
        if told.gso_size != 0 {
            let bytes = unusual.remaining.saturating_add(told.network_offset.into());
            describe_super(packet, &told, bytes);
        }
        // SAFETY: the caller's promise.
        if let Some(translation) = unsafe { unusual.translation.as_ref() } {
            translation.apply(packet, classifier);
        }
        if unusual.class != 0 {
            chooser.apply(unusual.class, packet);
        }
    }
}

/// Completes the descriptor of a super-packet of `bytes`. Where the kernel's length holds the
/// headers of all segments, each is a piece of that length, and none is repeated.
#[cold]
fn describe_super(packet: &mut Packet, told: &Packet, bytes: u32) {
    let headers = u32::from(packet.header_len);
    let payload = bytes.saturating_sub(headers);
    (packet.gso_size, packet.gso_segs) = (told.gso_size, told.gso_segs);
    // Those that come from a guest are not counted.
    if packet.gso_segs == 0 {
        let segments = payload.div_ceil(u32::from(told.gso_size).max(1));
        packet.gso_segs = segments.min(u32::from(u16::MAX)) as u16;
    }
    if told.len > bytes {
        packet.gso_size = told.gso_size.saturating_add(packet.header_len.into());
        packet.header_len = 0;
    }
}

/// The reading of packets that a discipline's settings ask for.
pub(crate) struct Reader {
    classifier: Classifier,
    pub(crate) chooser: Chooser,
    tells_flows: bool,
}

impl Reader {
    pub(crate) fn of(config: &Config, device: &Device, key: HashKey) -> Reader {
        Reader {
            classifier: Classifier::new(config.hasher(key)),
            chooser: Chooser::of(config, device),
            tells_flows: config.tells_flows(),
        }
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
