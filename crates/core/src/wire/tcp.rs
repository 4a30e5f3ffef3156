//! The view of a TCP header that an ACK filter needs.
//!
//! Linux's cake drops an acknowledgement only if nothing is lost with it (facts A.10; the filter
//! itself is cake's). This file answers what can be answered by one packet alone: flags, payload,
//! cumulative acknowledgement, SACK blocks (RFC 2018) and timestamps (RFC 7323). TCP may be
//! directly in IPv4 or IPv6, or in IPv6 in IPv4 (6in4, RFC 4213).
//!
//! Never guesses: unless the whole TCP header was captured, unfragmented and without IPv6 extension
//! headers, there is no view, and the packet is not filtered.

use super::ip::{header, protocol, Header, TCP_HEADER};
use super::link::{locate, LinkLayer, Network};
use crate::flow::Addresses;

/// Most SACK blocks that fit a TCP header (RFC 2018, section 3).
pub const MAX_SACK_BLOCKS: usize = 4;

/// The parts of a TCP segment that decide whether it is a redundant acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AckView {
    /// Reserved bits (bits 8..=11) and flags (bits 0..=7: FIN SYN RST PSH ACK URG ECE CWR).
    pub flags: u16,
    /// True if the segment carries data.
    pub has_payload: bool,
    /// True if every option is NOP, EOL, MD5, a well-formed SACK or a well-formed timestamp:
    /// nothing would be lost with them. False keeps the segment from being filtered.
    pub expendable_options: bool,
    /// Cumulative acknowledgement.
    pub ack: u32,
    /// Timestamp value and echo; (0, 0) if there is no timestamp option.
    pub timestamp: (u32, u32),
    /// Number of SACK blocks.
    pub sack_count: u8,
    /// SACK blocks: left edge, right edge.
    pub sack: [(u32, u32); MAX_SACK_BLOCKS],
}

impl AckView {
    /// FIN.
    pub const FIN: u16 = 0x01;
    /// SYN.
    pub const SYN: u16 = 0x02;
    /// RST.
    pub const RST: u16 = 0x04;
    /// PSH.
    pub const PSH: u16 = 0x08;
    /// ACK.
    pub const ACK: u16 = 0x10;
    /// URG.
    pub const URG: u16 = 0x20;
    /// ECE.
    pub const ECE: u16 = 0x40;
    /// CWR.
    pub const CWR: u16 = 0x80;

    /// Walks the options. Linux stops at a malformed length and judges by what it saw until then.
    fn read_options(&mut self, mut options: &[u8]) {
        const END: u8 = 0;
        const NOP: u8 = 1;
        const SACK: u8 = 5;
        const TIMESTAMP: u8 = 8;
        const MD5: u8 = 19;

        let (mut has_sack, mut has_timestamp) = (false, false);
        // Each step takes at least one of 40 bytes.
        while let [kind, rest @ ..] = options {
            match *kind {
                END => return,
                NOP => {
                    options = rest;
                    continue;
                }
                _ => {}
            }
            let Some(length) = rest.first().map(|length| usize::from(*length)) else { return };
            let Some(value) = options.get(2..length) else { return };
            match *kind {
                MD5 => {}
                SACK if value.len() % 8 == 0 && !has_sack => {
                    has_sack = true;
                    self.sack_count = (value.len() / 8).min(MAX_SACK_BLOCKS) as u8;
                    for (block, edges) in self.sack.iter_mut().zip(value.chunks_exact(8)) {
                        *block = pair(edges);
                    }
                }
                TIMESTAMP if value.len() == 8 && !has_timestamp => {
                    has_timestamp = true;
                    self.timestamp = pair(value);
                }
                // Unknown, malformed, or a second one of which nobody could say that it is covered.
                _ => self.expendable_options = false,
            }
            options = &options[length..];
        }
    }
}

/// The IP header right before the TCP header of the packet that starts with `bytes`.
fn carrier(link: LinkLayer, bytes: &[u8]) -> Option<Header<'_>> {
    let located = locate(link, bytes);
    if located.network != Network::Ip {
        return None;
    }
    let mut ip = header(bytes.get(located.offset..)?)?;
    if ip.protocol == protocol::IPV6 && matches!(ip.addresses, Addresses::V4(..)) && !ip.fragment {
        ip = header(ip.body).filter(|inner| matches!(inner.addresses, Addresses::V6(..)))?;
    }
    (ip.protocol == protocol::TCP && !ip.fragment).then_some(ip)
}

/// The maximum segment size in bytes that a SYN announces (RFC 9293, section 3.7.1). The sender of
/// the SYN will take as much in one segment, options and data together.
pub fn announced_segment(link: LinkLayer, bytes: &[u8]) -> Option<u16> {
    const SYN: u8 = AckView::SYN as u8;
    const NOP: u8 = 1;
    let segment = carrier(link, bytes)?.body;
    let fixed = segment.first_chunk::<TCP_HEADER>()?;
    if fixed[13] & SYN == 0 {
        return None;
    }
    let mut options = segment.get(TCP_HEADER..usize::from(fixed[12] >> 4) * 4)?;
    loop {
        options = match options {
            [NOP, rest @ ..] => rest,
            [2, 4, high, low, ..] => return Some(u16::from_be_bytes([*high, *low])),
            // Each takes at least its two bytes of 40.
            [_, length, ..] if *length >= 2 => options.get(usize::from(*length)..)?,
            _ => return None,
        };
    }
}

/// The TCP header of the packet that starts with `bytes`, if it is wholly there.
pub fn ack_view(link: LinkLayer, bytes: &[u8]) -> Option<AckView> {
    let ip = carrier(link, bytes)?;
    let fixed = ip.body.first_chunk::<TCP_HEADER>()?;
    let length = usize::from(fixed[12] >> 4) * 4;
    // A stated length of zero (super-packets beyond 64 kB) leaves the payload unknown: no view.
    let options = ip.body.get(TCP_HEADER..length)?;
    let payload = ip.stated_body.checked_sub(length)?;
    let mut view = AckView {
        flags: u16::from_be_bytes([fixed[12] & 0x0f, fixed[13]]),
        has_payload: payload != 0,
        expendable_options: true,
        ack: u32::from_be_bytes([fixed[8], fixed[9], fixed[10], fixed[11]]),
        ..AckView::default()
    };
    view.read_options(options);
    Some(view)
}

/// The acknowledgement number with which the far end will answer a segment that asks for one. It is
/// the sequence number behind SYN, data and FIN (RFC 9293, section 3.4). None if the segment has
/// none of these.
pub fn awaited_ack(link: LinkLayer, bytes: &[u8]) -> Option<u32> {
    let ip = carrier(link, bytes)?;
    let fixed = ip.body.first_chunk::<TCP_HEADER>()?;
    let header = Some(usize::from(fixed[12] >> 4) * 4).filter(|length| *length >= TCP_HEADER)?;
    let payload = ip.stated_body.checked_sub(header)?;
    let flags = u16::from(fixed[13]);
    let one = |flag| usize::from(flags & flag != 0);
    let asks = payload + one(AckView::SYN) + one(AckView::FIN);
    let sequence = u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]);
    (asks > 0).then(|| sequence.wrapping_add(asks as u32))
}

/// Two big-endian words; zeros if there are not eight bytes.
fn pair(bytes: &[u8]) -> (u32, u32) {
    match bytes.first_chunk::<8>() {
        Some([a, b, c, d, e, f, g, h]) => {
            (u32::from_be_bytes([*a, *b, *c, *d]), u32::from_be_bytes([*e, *f, *g, *h]))
        }
        None => (0, 0),
    }
}
