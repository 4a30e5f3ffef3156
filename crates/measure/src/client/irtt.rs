//! Echoes from an irtt server (github.com/heistp/irtt), protocol version 1.
//!
//! A request to open names what is wanted; the server answers with a token and with what it gives.
//! Echoes carry token and number, and bring the server's monotonic clock back, as it received and
//! as it answered. Numbers are little-endian; parameters are pairs of varints (protobuf's, the
//! values zigzag). A server with an HMAC key answers nobody who does not have it.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::probe::{Language, Prober};
use crate::Error;

/// Where irtt listens.
pub const PORT: u16 = 2112;

const MAGIC: [u8; 3] = [0x14, 0xa7, 0x5b];
const OPEN: u8 = 1;
const REPLY: u8 = 2;
const CLOSE: u8 = 4;
/// Bytes of an echo: the header, and two times of the monotonic clock.
const LENGTH: usize = 32;
/// Requests to open, and the time for each.
const TRIES: u32 = 4;
const PATIENCE: Duration = Duration::from_millis(500);

/// Parameters by number.
const VERSION: u8 = 1;
const DURATION: u8 = 2;
const INTERVAL: u8 = 3;
const BYTES: u8 = 4;
const STAMP_AT: u8 = 6;
const CLOCK: u8 = 7;

/// Starts echoes for up to `time`.
pub(crate) fn probes(
    address: SocketAddr,
    interval: Duration,
    time: Duration,
    start: Instant,
) -> Result<Prober, Error> {
    let failed = |source| Error::Unreachable { address, command: "irtt server", source };
    let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect(address).map_err(failed)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let request = open_request(interval, time);
    let mut silence = std::io::ErrorKind::TimedOut.into();
    for _ in 0..TRIES {
        socket.send(&request).map_err(failed)?;
        let mut answer = [0; 512];
        match socket.recv(&mut answer) {
            Ok(count) => match opened(&answer[..count]) {
                Some(Ok((token, least))) => {
                    let interval = interval.max(least);
                    return Prober::datagrams(socket, Irtt { token }, interval, start)
                        .map_err(failed);
                }
                Some(Err(reason)) => {
                    return Err(Error::Refused { address, reason: reason.into() });
                }
                None => {}
            },
            Err(error) => silence = error,
        }
    }
    Err(failed(silence))
}

/// The request: both times of the monotonic clock, in small packets.
fn open_request(interval: Duration, time: Duration) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &[OPEN]].concat();
    let wanted = [
        (VERSION, 1),
        (DURATION, time.as_nanos() as i64),
        (INTERVAL, interval.as_nanos() as i64),
        (BYTES, LENGTH as i64),
        (STAMP_AT, 3),
        (CLOCK, 2),
    ];
    for (parameter, value) in wanted {
        bytes.push(parameter);
        put_varint(&mut bytes, value);
    }
    bytes
}

/// Token and least interval of an answer; None if it is no answer to a request to open.
fn opened(bytes: &[u8]) -> Option<Result<(u64, Duration), &'static str>> {
    let flags = *bytes.get(3)?;
    (bytes[..3] == MAGIC && flags & (OPEN | REPLY) == OPEN | REPLY).then_some(())?;
    if flags & CLOSE != 0 {
        return Some(Err("it closed the connection while it was opened"));
    }
    let token = u64::from_le_bytes(bytes.get(4..12)?.try_into().ok()?);
    let (mut rest, mut interval) = (&bytes[12..], 0);
    while let Some((&parameter, value)) = rest.split_first() {
        let (value, used) = varint(value)?;
        let right = match parameter {
            BYTES => value == LENGTH as i64,
            STAMP_AT => value == 3,
            CLOCK => value == 2,
            INTERVAL => {
                interval = value;
                true
            }
            // The fill of payloads is a text, the last parameter, and not ours.
            9.. => break,
            _ => true,
        };
        if !right {
            return Some(Err("it restricts what echoes carry"));
        }
        rest = rest.get(1 + used..)?;
    }
    Some(Ok((token, Duration::from_nanos(interval.max(0) as u64))))
}

fn put_varint(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// A number, and the bytes that it takes.
fn varint(bytes: &[u8]) -> Option<(i64, usize)> {
    let mut value = 0u64;
    for (n, byte) in bytes.iter().take(9).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * n);
        if byte & 0x80 == 0 {
            return Some(((value >> 1) as i64 ^ -((value & 1) as i64), n + 1));
        }
    }
    None
}

/// Echoes of an open connection.
struct Irtt {
    token: u64,
}

impl Language for Irtt {
    fn request(&self, number: u32) -> Vec<u8> {
        let mut bytes = [&MAGIC[..], &[0]].concat();
        bytes.extend(self.token.to_le_bytes());
        bytes.extend(number.to_le_bytes());
        bytes.resize(LENGTH, 0);
        bytes
    }

    fn reply(&self, bytes: &[u8]) -> Option<(u32, Option<[u64; 2]>)> {
        let long = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let echo = bytes.get(..3)? == MAGIC && bytes.get(3)? & (OPEN | REPLY | CLOSE) == REPLY;
        (echo && long(4)? == self.token).then_some(())?;
        let number = u32::from_le_bytes(bytes.get(12..16)?.try_into().ok()?);
        Some((number, Some([long(16)?, long(24)?])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_protobuf_s() {
        for (value, bytes) in [(0, &[0][..]), (-1, &[1]), (1, &[2]), (150, &[0xac, 2])] {
            let mut written = Vec::new();
            put_varint(&mut written, value);
            assert_eq!(written, bytes);
            assert_eq!(varint(bytes), Some((value, bytes.len())));
        }
        assert_eq!(varint(&[0x80]), None);
        assert_eq!(varint(&[0xff; 20]), None);
    }

    #[test]
    fn answers_are_read_with_care() {
        let request = open_request(Duration::from_millis(20), Duration::from_secs(60));
        let mut answer = request[..3].to_vec();
        answer.push(OPEN | REPLY);
        answer.extend(77u64.to_le_bytes());
        answer.extend(&request[4..]);
        assert_eq!(opened(&answer), Some(Ok((77, Duration::from_millis(20)))));
        for end in 0..answer.len() {
            let _ = opened(&answer[..end]);
        }
        answer[3] |= CLOSE;
        assert!(matches!(opened(&answer), Some(Err(_))));
        assert_eq!(opened(&request), None);
        let irtt = Irtt { token: 77 };
        let mut echo = irtt.request(5);
        assert_eq!(irtt.reply(&echo), None);
        echo[3] = REPLY;
        assert_eq!(irtt.reply(&echo), Some((5, Some([0, 0]))));
        assert_eq!(Irtt { token: 78 }.reply(&echo), None);
        assert_eq!(irtt.reply(&echo[..20]), None);
    }
}
