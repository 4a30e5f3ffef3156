//! ICMP echo and ICMP timestamps (RFC 792) by raw sockets.
//!
//! A probe bears a random identifier, a sequence number and a random token that only its receiver
//! can know. By the identifier the table lets it pass the queues (`nft`). An answer counts if all
//! three are right, and the address. A timestamp's token stands where our own time would; its upper
//! bit says that it is no time of day. The answer tells when it was sent, by the far clock.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    ipproto, recvfrom, sendto, socket_with, AddressFamily, Protocol, RecvFlags, SendFlags,
    SocketFlags, SocketType,
};
use simnel_measure::icmp::{Message, REPLY, REQUEST};

use crate::error::Error;
use crate::sys;

/// Types of ICMP that ask for the time, and tell it.
const ASK_TIME: u8 = 13;
const TELL_TIME: u8 = 14;
/// The bit of a time that is none since midnight (RFC 792).
const NO_TIME: u32 = 1 << 31;
/// Bytes for the times of the request's sending, its arrival and the answer's sending.
const TIMES: usize = 12;
/// ICMP_FILTER and ICMP6_FILTER: types that a socket does not take.
const FILTER: i32 = 1;
const SOL_RAW: i32 = 255;

/// Sockets for one interface's probes.
#[derive(Debug)]
pub(crate) struct Echoes {
    v4: OwnedFd,
    /// None where the kernel has no IPv6.
    v6: Option<OwnedFd>,
    pub(crate) ident: u16,
    token: u64,
}

/// An answer: by whom, to which probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) from: IpAddr,
    pub(crate) sequence: u16,
    /// Millisecond of the far clock at which it was sent, if it tells.
    pub(crate) sent: Option<u32>,
}

impl Echoes {
    /// Opens them; needs CAP_NET_RAW.
    ///
    /// # Errors
    /// That is missing, or the kernel refuses.
    pub(crate) fn open(interface: &str) -> Result<Echoes, Error> {
        let failed = |e| refused(interface, e);
        let raw = |family, protocol: Protocol| -> io::Result<OwnedFd> {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            Ok(socket_with(family, SocketType::RAW, flags, Some(protocol))?)
        };
        let v4 = raw(AddressFamily::INET, ipproto::ICMP).map_err(failed)?;
        sys::set_option(&v4, SOL_RAW, FILTER, !(1u32 << REPLY[0] | 1 << TELL_TIME))
            .map_err(failed)?;
        let v6 = raw(AddressFamily::INET6, ipproto::ICMPV6).ok();
        if let Some(v6) = &v6 {
            let mut blocked = [u32::MAX; 8];
            blocked[usize::from(REPLY[1] / 32)] &= !(1 << (REPLY[1] % 32));
            sys::set_option(v6, libc::IPPROTO_ICMPV6, FILTER, blocked).map_err(failed)?;
        }
        let mut random = [0u8; 10];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())
            .map_err(|e| Error::system("asking for randomness", e.into()))?;
        let [a, b, token @ ..] = random;
        Ok(Echoes { v4, v6, ident: u16::from_be_bytes([a, b]), token: u64::from_be_bytes(token) })
    }

    /// Readable when an answer is there.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.v4), self.v6.as_ref()].into_iter().flatten().map(AsFd::as_fd)
    }

    /// Asks `to` for an echo, or for its time, which only IPv4 knows.
    pub(crate) fn send(&self, to: IpAddr, sequence: u16, time: bool) -> io::Result<()> {
        let fd = match to {
            IpAddr::V4(_) => &self.v4,
            IpAddr::V6(_) => self.v6.as_ref().ok_or(io::ErrorKind::Unsupported)?,
        };
        let (ident, token) = (self.ident, self.token);
        let bytes = match time {
            true => time_request(ident, sequence, token),
            false => request(to.is_ipv6(), ident, sequence, token),
        };
        sendto(fd, &bytes, SendFlags::empty(), &SocketAddr::new(to, 0))?;
        Ok(())
    }

    /// The next answer to a probe of ours; None if there is none yet. What else arrives is skipped,
    /// at most `budget` of it.
    pub(crate) fn receive(&self, budget: &mut usize) -> Option<Answer> {
        for fd in self.fds() {
            let mut bytes = [0u8; 128];
            while *budget > 0 {
                let Ok((length, _, from)) = recvfrom(fd, &mut bytes[..], RecvFlags::empty()) else {
                    break;
                };
                *budget -= 1;
                let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                let bytes = &bytes[..length.min(bytes.len())];
                let Some(from) = from.map(|from| from.ip()) else { continue };
                let read = reply(from.is_ipv6(), bytes, self.ident, self.token);
                if let Some((sequence, sent)) = read {
                    return Some(Answer { from, sequence, sent });
                }
            }
        }
        None
    }
}

/// The error of probes of `interface` for which no sockets could be opened.
fn refused(interface: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::PermissionDenied => Error::NoRaw(interface.to_owned()),
        _ => Error::system("opening a socket for ICMP", error),
    }
}

/// A request.
fn request(v6: bool, ident: u16, sequence: u16, token: u64) -> Vec<u8> {
    let kind = REQUEST[usize::from(v6)];
    Message { kind, ident, sequence, body: &token.to_be_bytes() }.bytes()
}

/// A request for the time.
fn time_request(ident: u16, sequence: u16, token: u64) -> Vec<u8> {
    let mut body = [0; TIMES];
    body[..4].copy_from_slice(&(token as u32 | NO_TIME).to_be_bytes());
    Message { kind: ASK_TIME, ident, sequence, body: &body }.bytes()
}

/// The sequence number, if `bytes` are an answer to a request of ours, and the far clock's time, if
/// it was told. Those of IPv4 have their IP header in front.
fn reply(v6: bool, bytes: &[u8], ident: u16, token: u64) -> Option<(u16, Option<u32>)> {
    let message = Message::read_raw(v6, bytes).filter(|message| message.ident == ident)?;
    let (sequence, body) = (message.sequence, message.body);
    if !v6 && message.kind == TELL_TIME {
        let (times, _) = body.first_chunk::<TIMES>()?.as_chunks();
        let [asked, _, sent] = [0, 1, 2].map(|nth| u32::from_be_bytes(times[nth]));
        let is_ours = asked == token as u32 | NO_TIME;
        return is_ours.then(|| (sequence, Some(sent).filter(|sent| sent & NO_TIME == 0)));
    }
    let is_ours = message.kind == REPLY[usize::from(v6)] && body.starts_with(&token.to_be_bytes());
    is_ours.then_some((sequence, None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_echoes_count() {
        let mut echo = request(false, 9, 77, 5);
        echo[0] = 0;
        let mut packet = vec![0x46; 24];
        packet.extend(&echo);
        assert_eq!(reply(false, &packet, 9, 5), Some((77, None)));
        assert_eq!(reply(false, &packet, 8, 5), None);
        assert_eq!(reply(false, &packet, 9, 6), None);
        assert_eq!(reply(true, &echo, 9, 5), None);
        echo[0] = 129;
        assert_eq!(reply(true, &echo, 9, 5), Some((77, None)));
        for length in 0..packet.len() {
            assert_eq!(reply(false, &packet[..length], 9, 5), None, "{length}");
        }
    }

    #[test]
    fn an_answer_that_tells_the_time_counts_by_its_token() {
        let mut times = time_request(9, 77, 5 << 40 | 6);
        times[0] = TELL_TIME;
        times[16..20].copy_from_slice(&86_399_999u32.to_be_bytes());
        let mut packet = vec![0x45; 20];
        packet.extend(&times);
        assert_eq!(reply(false, &packet, 9, 6), Some((77, Some(86_399_999))));
        assert_eq!(reply(false, &packet, 9, 7), None);
        assert_eq!(reply(true, &times, 9, 6), None);
        for length in 0..packet.len() {
            assert_eq!(reply(false, &packet[..length], 9, 6), None, "{length}");
        }
        // A clock that is none of the day's.
        packet[36] |= 0x80;
        assert_eq!(reply(false, &packet, 9, 6), Some((77, None)));
    }

    #[test]
    fn a_token_of_a_request_for_the_time_is_never_a_time_of_day() {
        for token in [0, 6, 0x8000_0006, u64::MAX] {
            let mut times = time_request(9, 77, token);
            assert_eq!(times[8] & 0x80, 0x80, "{token:x}");
            times[0] = TELL_TIME;
            let packet = [vec![0x45; 20], times].concat();
            assert_eq!(reply(false, &packet, 9, token), Some((77, Some(0))), "{token:x}");
        }
    }

    #[test]
    fn a_missing_capability_is_named() {
        let refused = |code| refused("wan", io::Error::from_raw_os_error(code));
        assert!(matches!(refused(libc::EPERM), Error::NoRaw(interface) if interface == "wan"));
        assert!(refused(libc::EMFILE).to_string().contains("opening a socket for ICMP"));
    }

    /// The kernel answers for loopback, at once. Our own requests come back there as well.
    #[test]
    fn answers_are_taken_and_nothing_else() {
        crate::apart::apart("answers_are_taken_and_nothing_else", || {
            let echoes = Echoes::open("lo").unwrap();
            for fd in echoes.fds() {
                let flags = rustix::fs::fcntl_getfl(fd).unwrap();
                assert!(flags.contains(rustix::fs::OFlags::NONBLOCK), "{flags:?}");
            }
            let next = |budget: &mut usize| {
                (0..50).find_map(|_| {
                    let fds: Vec<_> = echoes.fds().collect();
                    sys::wait(&fds, Some(simnel_core::Span::from_millis(100)));
                    echoes.receive(budget)
                })
            };
            let all = [(7, "127.0.0.1", false), (8, "127.0.0.1", true), (9, "::1", false)];
            for (sequence, to, time) in all {
                let to: IpAddr = to.parse().unwrap();
                match echoes.send(to, sequence, time) {
                    // A kernel without IPv6.
                    Err(_) if to.is_ipv6() => continue,
                    sent => sent.unwrap(),
                }
                let mut budget = 4;
                let answer = next(&mut budget).expect("an answer");
                let found = (answer.from, answer.sequence, answer.sent.is_some());
                assert_eq!((found, budget), ((to, sequence, time), 3));
                // It was all.
                assert_eq!((echoes.receive(&mut budget), budget), (None, 3));
            }
            echoes.send([127, 0, 0, 1].into(), 10, false).unwrap();
            assert_eq!(echoes.receive(&mut 0), None);
            assert_eq!(next(&mut 1).map(|answer| answer.sequence), Some(10));
        });
    }
}
