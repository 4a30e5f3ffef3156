//! The protocol of irtt (github.com/heistp/irtt), version 1, as a client speaks it without an HMAC.
//!
//! ```text
//! open(wanted) ->      <- Opened { token, … }    what is wanted, and what the server gives
//! request(token, n) -> <- Echo { token, n, … }   any number of these
//! close(token) ->
//! ```
//!
//! Echoes bring the server's monotonic clock back, as it received and as it answered. Numbers are
//! little-endian; parameters are pairs of varints (protobuf's, the values zigzag). A server with an
//! HMAC key answers nobody who does not have it. Nothing here has a socket or a clock.

use std::time::Duration;

/// Port at which irtt listens.
pub const PORT: u16 = 2112;

/// Bytes of a request and of its echo: the header, and two times of the monotonic clock.
pub const LENGTH: usize = 32;

const MAGIC: [u8; 3] = [0x14, 0xa7, 0x5b];
const OPEN: u8 = 1;
const REPLY: u8 = 2;
const CLOSE: u8 = 4;
/// Magic, flags and token.
const HEADER: usize = 12;

/// Parameters by number.
const VERSION: u8 = 1;
const DURATION: u8 = 2;
const INTERVAL: u8 = 3;
const BYTES: u8 = 4;
const STAMP_AT: u8 = 6;
const CLOCK: u8 = 7;

/// Both times, of the monotonic clock.
const BOTH_TIMES: i64 = 3;
const MONOTONIC: i64 = 2;

/// An open session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Name of the session, in all that follows.
    pub token: u64,
    /// The least time between two requests.
    pub interval: Duration,
    /// Time after which the server forgets the session.
    pub duration: Duration,
}

/// An echo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The session.
    pub token: u64,
    /// The request that is answered.
    pub number: u32,
    /// The server's monotonic clock in ns, as it received and as it answered.
    pub clock: [u64; 2],
}

/// A datagram of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To [`open`].
    Opened(Opened),
    /// To [`open`], that it will not; with the reason.
    Refused(&'static str),
    /// To [`request`].
    Echo(Echo),
    /// The session with this token is no more.
    Closed(u64),
}

/// Asks for a session with small requests every `interval`, for `duration`.
pub fn open(interval: Duration, duration: Duration) -> Vec<u8> {
    let mut bytes = [&MAGIC[..], &[OPEN]].concat();
    let nanoseconds = |time: Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    let wanted = [
        (VERSION, 1),
        (DURATION, nanoseconds(duration)),
        (INTERVAL, nanoseconds(interval)),
        (BYTES, LENGTH as i64),
        (STAMP_AT, BOTH_TIMES),
        (CLOCK, MONOTONIC),
    ];
    for (parameter, value) in wanted {
        bytes.push(parameter);
        put_varint(&mut bytes, value);
    }
    bytes
}

/// A request of the session `token`.
pub fn request(token: u64, number: u32) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    bytes[..HEADER].copy_from_slice(&header(0, token));
    bytes[HEADER..HEADER + 4].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// Ends the session `token`; nobody answers to that.
pub fn close(token: u64) -> [u8; HEADER] {
    header(CLOSE, token)
}

fn header(flags: u8, token: u64) -> [u8; HEADER] {
    let mut bytes = [0; HEADER];
    bytes[..3].copy_from_slice(&MAGIC);
    bytes[3] = flags;
    bytes[4..].copy_from_slice(&token.to_le_bytes());
    bytes
}

/// The meaning of a datagram from a server; None if it is none of this protocol.
pub fn answer(bytes: &[u8]) -> Option<Answer> {
    let (head, rest) = bytes.split_first_chunk::<HEADER>()?;
    let [a, b, c, flags, token @ ..] = *head;
    let token = u64::from_le_bytes(token);
    if [a, b, c] != MAGIC || flags & REPLY == 0 {
        return None;
    }
    match flags & (OPEN | CLOSE) {
        OPEN => opened(token, rest),
        0 => echo(token, rest),
        CLOSE => Some(Answer::Closed(token)),
        _ => Some(Answer::Refused("it closed the connection while it was opened")),
    }
}

/// A session with the parameters that the server gives.
fn opened(token: u64, mut rest: &[u8]) -> Option<Answer> {
    let (mut interval, mut duration) = (0, 0);
    while let Some((&parameter, value)) = rest.split_first() {
        let (value, used) = varint(value)?;
        let right = match parameter {
            BYTES => value == LENGTH as i64,
            STAMP_AT => value == BOTH_TIMES,
            CLOCK => value == MONOTONIC,
            INTERVAL => {
                interval = value;
                true
            }
            DURATION => {
                duration = value;
                true
            }
            // The fill of payloads is a text, the last parameter, and not ours.
            9.. => break,
            _ => true,
        };
        if !right {
            return Some(Answer::Refused("it restricts what echoes carry"));
        }
        rest = rest.get(1 + used..)?;
    }
    let [interval, duration] =
        [interval, duration].map(|ns| Duration::from_nanos(ns.max(0) as u64));
    Some(Answer::Opened(Opened { token, interval, duration }))
}

fn echo(token: u64, rest: &[u8]) -> Option<Answer> {
    let (number, rest) = rest.split_first_chunk()?;
    let (received, rest) = rest.split_first_chunk()?;
    let answered = rest.first_chunk()?;
    let clock = [*received, *answered].map(u64::from_le_bytes);
    Some(Answer::Echo(Echo { token, number: u32::from_le_bytes(*number), clock }))
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

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(20);
    const MINUTE: Duration = Duration::from_secs(60);

    /// The server's answer that gives what was asked for.
    fn given(token: u64) -> Vec<u8> {
        let request = open(INTERVAL, MINUTE);
        [&header(OPEN | REPLY, token)[..], &request[4..]].concat()
    }

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
    fn a_session_opens_with_what_the_server_gives() {
        let opened = Opened { token: 77, interval: INTERVAL, duration: MINUTE };
        let mut bytes = given(77);
        assert_eq!(answer(&bytes), Some(Answer::Opened(opened)));
        // Text at the end.
        bytes.extend([9, 8, b'r', b'a', b'n', b'd']);
        assert_eq!(answer(&bytes), Some(Answer::Opened(opened)));
        bytes[3] |= CLOSE;
        assert!(matches!(answer(&bytes), Some(Answer::Refused(_))));
        // Requests are no answers.
        assert_eq!(answer(&open(INTERVAL, MINUTE)), None);
        assert_eq!(answer(&request(77, 1)), None);
    }

    #[test]
    fn a_server_that_tells_no_times_is_refused() {
        for parameter in [BYTES, STAMP_AT, CLOCK] {
            let bytes = [&header(OPEN | REPLY, 1)[..], &[parameter, 2]].concat();
            let restricts = Some(Answer::Refused("it restricts what echoes carry"));
            assert_eq!(answer(&bytes), restricts, "{parameter}");
        }
    }

    #[test]
    fn an_echo_has_its_number_and_the_server_s_clock() {
        let mut bytes = request(77, 5);
        bytes[3] = REPLY;
        bytes[16..24].copy_from_slice(&1_000u64.to_le_bytes());
        bytes[24..].copy_from_slice(&1_500u64.to_le_bytes());
        let echo = Echo { token: 77, number: 5, clock: [1_000, 1_500] };
        assert_eq!(answer(&bytes), Some(Answer::Echo(echo)));
        assert_eq!(answer(&bytes[..31]), None);
        let mut closed = close(77);
        assert_eq!(answer(&closed), None);
        closed[3] |= REPLY;
        assert_eq!(answer(&closed), Some(Answer::Closed(77)));
    }

    #[test]
    fn any_bytes_are_read_without_harm() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as u8
        };
        for round in 0..200_000 {
            let mut bytes = given(round);
            match round % 3 {
                // A byte changed, or cut short, or random after the header.
                0 => {
                    let place = usize::from(random()) % bytes.len();
                    bytes[place] = random();
                }
                1 => bytes.truncate(usize::from(random()) % bytes.len()),
                _ => {
                    bytes.truncate(3);
                    bytes.resize_with(3 + usize::from(random()) % 64, &mut random);
                }
            }
            if let Some(Answer::Echo(echo)) = answer(&bytes) {
                assert_eq!(request(echo.token, echo.number)[4..16], bytes[4..16]);
            }
        }
    }
}
