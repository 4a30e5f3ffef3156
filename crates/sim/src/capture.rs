//! Real bytes for captures: Ethernet, IPv4, TCP, UDP and ICMP headers with right checksums.
//!
//! Packets have no payload bytes in the simulator; in a capture they are zeros. Who wants one
//! implements [`Capture`] and is given every frame that leaves a line, in order of time.

use std::collections::VecDeque;

use simnel_core::Time;

use crate::pool::{Payload, Tag};
use crate::setup::Direction;

/// Takes frames.
pub trait Capture: Send {
    /// `frame` left the line of `direction` at `now`.
    fn frame(&mut self, direction: Direction, now: Time, frame: &[u8]);
}

/// Puts the frames of both lines in order: a line gives a frame away when it starts, with its end.
pub(crate) struct InOrder {
    capture: Box<dyn Capture>,
    /// Frames whose end has not come.
    held: VecDeque<(Time, Direction, Vec<u8>)>,
}

impl InOrder {
    pub fn new(capture: Box<dyn Capture>) -> InOrder {
        InOrder { capture, held: VecDeque::new() }
    }

    /// Takes a frame in that leaves at `at`.
    pub fn hold(&mut self, direction: Direction, at: Time, frame: &[u8]) {
        let place = self.held.partition_point(|(earlier, ..)| *earlier <= at);
        self.held.insert(place, (at, direction, frame.to_vec()));
    }

    /// Gives away all that has left by `now`.
    pub fn release(&mut self, now: Time) {
        while self.held.front().is_some_and(|(at, ..)| *at <= now) {
            if let Some((at, direction, frame)) = self.held.pop_front() {
                self.capture.frame(direction, at, &frame);
            }
        }
    }
}

/// Constant part of the headers of a socket's packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Headers {
    pub source: [u8; 4],
    pub destination: [u8; 4],
    pub ports: (u16, u16),
    pub protocol: u8,
    /// Sequence number that stands for the sender's zero.
    pub isn: u32,
    /// True for the side that is asked.
    pub answers: bool,
}

/// Protocol numbers (IANA).
pub(crate) mod protocol {
    pub const ICMP: u8 = 1;
    pub const TCP: u8 = 6;
    pub const UDP: u8 = 17;
}

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const UDP: usize = 8;
const ETHERTYPE_IPV4: [u8; 2] = [0x08, 0x00];
const DO_NOT_FRAGMENT: u8 = 0x40;

/// Writes the frame of `packet` into `out`.
pub(crate) fn write_frame(
    (tag, payload): (&Tag, &Payload),
    headers: &Headers,
    (isn, peer_isn): (u32, u32),
    out: &mut Vec<u8>,
) {
    out.clear();
    out.resize(tag.len as usize, 0);
    // Locally administered addresses made of the IPv4 ones.
    out[0..2].copy_from_slice(&[2, 0]);
    out[2..6].copy_from_slice(&headers.destination);
    out[6..8].copy_from_slice(&[2, 0]);
    out[8..12].copy_from_slice(&headers.source);
    out[12..14].copy_from_slice(&ETHERTYPE_IPV4);
    let ip = &mut out[ETHERNET..];
    let total = ip.len() as u16;
    ip[0] = 0x45;
    ip[1] = tag.tos;
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    ip[6] = DO_NOT_FRAGMENT;
    ip[8] = 64;
    ip[9] = headers.protocol;
    ip[12..16].copy_from_slice(&headers.source);
    ip[16..20].copy_from_slice(&headers.destination);
    let sum = checksum(0, &ip[..IPV4]);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());

    let body = &mut ip[IPV4..];
    let pseudo = pseudo_header(headers, body.len());
    let (at, start) = match payload {
        Payload::Tcp(segment) => {
            segment.write_header(headers.ports, (isn, peer_isn), body);
            (16, pseudo)
        }
        Payload::Datagram(datagram) if headers.protocol == protocol::ICMP => {
            body[0] = if headers.answers { 0 } else { 8 };
            body[4..6].copy_from_slice(&headers.ports.0.max(headers.ports.1).to_be_bytes());
            body[6..8].copy_from_slice(&(datagram.sequence as u16).to_be_bytes());
            (2, 0)
        }
        Payload::Datagram(datagram) => {
            let length = (datagram.size as usize + UDP) as u16;
            body[0..2].copy_from_slice(&headers.ports.0.to_be_bytes());
            body[2..4].copy_from_slice(&headers.ports.1.to_be_bytes());
            body[4..6].copy_from_slice(&length.to_be_bytes());
            (6, pseudo)
        }
    };
    let sum = checksum(start, body);
    // UDP sends a checksum of zero as its complement (RFC 768).
    let sum = if sum == 0 && at == 6 { u16::MAX } else { sum };
    body[at..at + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The sum over the pseudo header of TCP and UDP (RFC 9293, section 3.1).
fn pseudo_header(headers: &Headers, length: usize) -> u32 {
    let word = |bytes: &[u8]| u32::from(u16::from_be_bytes([bytes[0], bytes[1]]));
    word(&headers.source)
        + word(&headers.source[2..])
        + word(&headers.destination)
        + word(&headers.destination[2..])
        + u32::from(headers.protocol)
        + length as u32
}

/// The Internet checksum (RFC 1071) on top of `start`.
fn checksum(start: u32, bytes: &[u8]) -> u16 {
    let mut sum = start;
    for pair in bytes.chunks(2) {
        let word = u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]);
        sum += u32::from(word);
        // Folding at once keeps 32 bits from overflowing, whatever the length.
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(((sum & 0xffff) + (sum >> 16)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 1071, section 3: its example, in both orders of odd ends.
    #[test]
    fn checksums_are_those_of_the_rfc() {
        let example = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(0, &example), !0xddf2);
        assert_eq!(checksum(0xffff, &example), !0xddf2);
        assert_eq!(checksum(0, &[0x12, 0x34, 0x56]), !(0x1234 + 0x5600));
        assert_eq!(checksum(0x1_0000, &[]), !1);
        // What is summed with its checksum is nothing.
        let mut whole = [&example[..], &[0, 0]].concat();
        let sum = checksum(7, &whole);
        whole[8..].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(7, &whole), 0);
    }

    /// A frame of 200 bytes, and its sum as a receiver takes it, over a pseudo header of bytes.
    fn frame(payload: &Payload, protocol: u8, answers: bool) -> (Vec<u8>, u16) {
        let headers = Headers {
            source: [10, 200, 30, 40],
            destination: [203, 0, 113, 77],
            ports: (51_234, 443),
            protocol,
            isn: 0,
            answers,
        };
        let mut out = Vec::new();
        let tag = Tag { len: 200, tos: 0xb8, ..Tag::NONE };
        write_frame((&tag, payload), &headers, (7, 9), &mut out);
        let ip = &out[ETHERNET..];
        assert_eq!((out.len(), checksum(0, &ip[..IPV4])), (200, 0));
        assert_eq!((ip[1], ip[9], &ip[12..16]), (0xb8, protocol, &headers.source[..]));
        let body = &ip[IPV4..];
        let mut summed = match protocol {
            protocol::ICMP => Vec::new(),
            _ => [&ip[12..20], &[0, protocol, 0, body.len() as u8]].concat(),
        };
        summed.extend_from_slice(body);
        let sum = checksum(0, &summed);
        (body.to_vec(), sum)
    }

    fn datagram(sequence: u32) -> Payload {
        let (sent, answered) = (Time::ZERO, Time::ZERO);
        Payload::Datagram(crate::pool::Datagram { sequence, sent, answered, size: 158 })
    }

    /// RFC 768, RFC 792 and RFC 9293, section 3.1.
    #[test]
    fn a_frame_has_the_checksums_of_its_protocol() {
        let segment = simnel_tcp::Segment::new(simnel_tcp::TcpFlags::ACK, 100, 200);
        let (tcp, sum) = frame(&Payload::Tcp(segment), protocol::TCP, false);
        assert_eq!((sum, &tcp[..4]), (0, &[0xc8, 0x22, 0x01, 0xbb][..]));
        let (udp, sum) = frame(&datagram(1), protocol::UDP, false);
        assert_eq!((sum, &udp[..6]), (0, &[0xc8, 0x22, 0x01, 0xbb, 0, 166][..]));
        // Echo and its answer, with the number of the exchange.
        for (answers, kind) in [(false, 8), (true, 0)] {
            let (icmp, sum) = frame(&datagram(0x1234), protocol::ICMP, answers);
            assert_eq!((sum, icmp[0], icmp[1], &icmp[6..8]), (0, kind, 0, &[0x12, 0x34][..]));
        }
    }

    /// RFC 768: zero would mean that there is none.
    #[test]
    fn a_checksum_of_zero_is_sent_as_its_complement() {
        let headers =
            |port| Headers { ports: (port, 0), protocol: protocol::UDP, ..Headers::default() };
        let sums = (0..=u16::MAX).map(|port| {
            let (tag, mut out) = (Tag { len: 42, ..Tag::NONE }, Vec::new());
            write_frame((&tag, &datagram(0)), &headers(port), (0, 0), &mut out);
            u16::from_be_bytes([out[40], out[41]])
        });
        let sums: Vec<u16> = sums.filter(|sum| [0, u16::MAX].contains(sum)).collect();
        assert_eq!(sums, [u16::MAX]);
        // Of echoes it is nothing special.
        let echo =
            Headers { ports: (u16::MAX - 0x0800, 0), protocol: protocol::ICMP, ..headers(0) };
        let (tag, mut out) = (Tag { len: 42, ..Tag::NONE }, Vec::new());
        write_frame((&tag, &datagram(0)), &echo, (0, 0), &mut out);
        assert_eq!(out[36..38], [0, 0]);
    }
}
