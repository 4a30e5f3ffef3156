//! Recording what arrives: headers and lengths, no payload.
//!
//! ```text
//! data path      Recorder   headers of each arrival, into memory that the control thread gave
//! control thread            swaps that memory for an empty one, when a client asks
//! client         Files      from the monotonic clock to the calendar's, addresses, files
//! ```
//!
//! Of what the kernel shapes, the client itself has copies (`kernel/arrivals.rs`), for which there
//! is a `Recorder` in its own memory.
//!
//! The form is pcap's from the start (IETF draft-ietf-opsawg-pcap, nanoseconds). An Ethernet header
//! stands in front, so that lengths are those that the discipline was told. What the memory has no
//! room for is counted and left out: recording never keeps a packet waiting.

mod anonymous;
mod files;
mod joined;

use serde::{Deserialize, Serialize};
use simnel_core::packet::Flags;
use simnel_core::{Packet, Time};

use crate::nfqueue::Queued;

pub use files::{Bounds, Files};
pub(crate) use joined::Joined;

/// Memory of a recorder: arrivals of 50 ms at 200,000 packets a second.
const ROOM: usize = 1 << 20;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// Bytes in front of each packet: seconds, nanoseconds, bytes that follow, bytes on the wire.
const HEAD: usize = 16;

/// Arrivals since the last request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Packets that are in it.
    pub packets: u64,
    /// Packets that there was no room for.
    pub lost: u64,
    /// Bytes of `raw`, which follow the answer's line.
    pub bytes: usize,
    /// pcap's records, with times of the monotonic clock.
    #[serde(skip)]
    pub raw: Vec<u8>,
}

/// Empty memory for one of so many recorders of a direction.
pub(crate) fn room(count: usize) -> Vec<u8> {
    Vec::with_capacity(ROOM / count.max(1))
}

/// The most that an answer may announce: what was kept back, and all that has come since.
pub(crate) const fn most() -> usize {
    2 * ROOM
}

/// The data path's part. Neither allocates nor waits.
pub(crate) struct Recorder {
    /// Never grows.
    raw: Vec<u8>,
    packets: u64,
    lost: u64,
}

impl Recorder {
    pub(crate) fn new(room: Vec<u8>) -> Recorder {
        Recorder { raw: room, packets: 0, lost: 0 }
    }

    /// Keeps the headers of `packet`, which the kernel has `queued`.
    #[inline]
    pub(crate) fn arrived(&mut self, packet: &Packet, queued: &Queued<'_>, now: Time) {
        let known = usize::from(packet.header_len).saturating_sub(ETHERNET);
        let headers = queued.bytes.get(..known).unwrap_or(queued.bytes);
        if packet.gso_segs > 1 {
            self.segments(packet, queued.protocol, headers, now);
        } else {
            self.add(queued.protocol, headers, queued.len + ETHERNET as u32, now);
        }
    }

    /// True while there is room for much: for `packets` of the largest super-packets.
    pub(crate) fn has_room(&self, packets: usize) -> bool {
        /// Segments of 1,448 bytes in 64 KB, with headers of 80 bytes each.
        const LARGEST: usize = 46 * (HEAD + ETHERNET + 80);
        self.raw.capacity() - self.raw.len() >= packets * LARGEST
    }

    /// A super-packet, as the segments that it will be on the wire.
    #[cold]
    fn segments(&mut self, packet: &Packet, protocol: u16, headers: &[u8], now: Time) {
        let size = u32::from(packet.gso_size);
        let mut payload = packet.len.saturating_sub(packet.header_len.into());
        for _ in 0..packet.gso_segs {
            let here = payload.min(size);
            payload -= here;
            let at = self.raw.len() + HEAD + ETHERNET;
            let len = headers.len() as u32 + here;
            self.add(protocol, headers, len + ETHERNET as u32, now);
            // The length that the header states is that of the whole.
            let (place, stated) = match packet.flags.has(Flags::IPV6) {
                true => (at + 4, len.saturating_sub(40)),
                false => (at + 2, len),
            };
            let is_plain = usize::from(packet.network_offset) == ETHERNET;
            if let Some(length) = self.raw.get_mut(place..place + 2).filter(|_| is_plain) {
                length.copy_from_slice(&(stated as u16).to_be_bytes());
            }
        }
    }

    #[inline]
    fn add(&mut self, protocol: u16, headers: &[u8], len: u32, now: Time) {
        const SECOND: u64 = 1_000_000_000;
        let captured = ETHERNET + headers.len();
        if self.raw.capacity() - self.raw.len() < HEAD + captured {
            self.lost += 1;
            return;
        }
        let mut head = [0; HEAD + ETHERNET];
        let words = [(now.0 / SECOND) as u32, (now.0 % SECOND) as u32, captured as u32, len];
        for (place, word) in head.chunks_exact_mut(4).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        head[HEAD + ETHERNET - 2..].copy_from_slice(&protocol.to_be_bytes());
        self.raw.extend_from_slice(&head);
        self.raw.extend_from_slice(headers);
        self.packets += 1;
    }

    /// All that was recorded.
    pub(crate) fn finish(self) -> Recorded {
        let Recorder { raw, packets, lost } = self;
        Recorded { packets, lost, bytes: raw.len(), raw }
    }
}

#[cfg(test)]
mod tests;
