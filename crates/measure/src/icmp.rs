//! ICMP's messages with an identifier, such as the echo (RFC 792, RFC 4443), without I/O.
//!
//! ```
//! use simnel_measure::icmp::{Message, REPLY, REQUEST};
//!
//! let request = Message { kind: REQUEST[0], ident: 7, sequence: 1, body: b"token" }.bytes();
//! let mut reply = request.clone();
//! reply[0] = REPLY[0];
//! assert_eq!(Message::read(&reply).unwrap().body, b"token");
//! ```

use crate::checksum::checksum;

/// Types of an echo's request, of ICMP and of ICMPv6.
pub const REQUEST: [u8; 2] = [8, 128];
/// Types of its reply.
pub const REPLY: [u8; 2] = [0, 129];
/// Least type of a message of ICMPv6 that informs (RFC 4443). Those of ICMP are below it.
const INFORMS_V6: u8 = 128;
/// Type, code, checksum, identifier, sequence number.
const HEADER: usize = 8;

/// A message; those that are written have code 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its type.
    pub kind: u8,
    /// Identifier: whose message it is.
    pub ident: u16,
    /// Sequence number.
    pub sequence: u16,
    /// All that follows the header.
    pub body: &'a [u8],
}

impl<'a> Message<'a> {
    /// The message that `bytes` are; None if they are too short.
    pub fn read(bytes: &'a [u8]) -> Option<Message<'a>> {
        let (&[kind, _, _, _, ident @ .., a, b], body) = bytes.split_first_chunk::<HEADER>()?;
        let [ident, sequence] = [ident, [a, b]].map(u16::from_be_bytes);
        Some(Message { kind, ident, sequence, body })
    }

    /// The same from a raw socket, which gives IPv4's packets with their headers.
    pub fn read_raw(is_ipv6: bool, packet: &'a [u8]) -> Option<Message<'a>> {
        let header = if is_ipv6 { 0 } else { 4 * usize::from(packet.first()? & 0x0f) };
        Message::read(packet.get(header..)?)
    }

    /// The message as bytes, with ICMP's checksum. The kernel writes ICMPv6's.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.kind, 0, 0, 0];
        bytes.extend(self.ident.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.body);
        if self.kind < INFORMS_V6 {
            let sum = checksum(&bytes);
            bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        for (kind, is_ipv6) in [(REQUEST[0], false), (REPLY[1], true)] {
            for body in [&[][..], &[1, 2, 3]] {
                let message = Message { kind, ident: 0xbeef, sequence: 515, body };
                let bytes = message.bytes();
                assert_eq!(Message::read(&bytes), Some(message));
                // A message sums up to zero with its checksum.
                assert_eq!(checksum(&bytes) == 0, !is_ipv6);
                let header = vec![0x46; if is_ipv6 { 0 } else { 24 }];
                let packet = [header, bytes].concat();
                assert_eq!(Message::read_raw(is_ipv6, &packet), Some(message));
                for end in 0..packet.len() - body.len() {
                    assert_eq!(Message::read_raw(is_ipv6, &packet[..end]), None);
                }
            }
        }
    }
}
