//! UDP sockets for irtt servers (`simnel_measure::irtt`): one for each family, both at one port, by
//! which the table lets their datagrams pass the queues (`nft`).
//!
//! A port that nobody listens at, or a router without a route, answers by ICMP. The kernel keeps
//! such answers with the address that was meant (`IP_RECVERR` of ip(7)). It has the next send fail
//! for them, whoever that is for; so a send that fails is tried once more.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    bind, getsockname, recvfrom, recvmsg, sendto, socket_with, sockopt, AddressFamily,
    RecvAncillaryBuffer, RecvFlags, SendFlags, SocketFlags, SocketType,
};
use simnel_measure::irtt::{answer, Answer};

use crate::sys;

/// IP_RECVERR and IPV6_RECVERR.
const ERRORS: [(i32, i32); 2] =
    [(libc::IPPROTO_IP, libc::IP_RECVERR), (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)];
/// Ports tried until one is free in both families.
const TRIES: usize = 16;

/// Sockets for one interface's sessions with irtt servers.
#[derive(Debug)]
pub(crate) struct Datagrams {
    v4: OwnedFd,
    /// None where the kernel has no IPv6.
    v6: Option<OwnedFd>,
    /// Of both.
    pub(crate) port: u16,
}

/// News from a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A datagram of the protocol.
    Answer(Answer),
    /// The network says that a datagram did not get there.
    Unreachable,
}

impl Datagrams {
    /// Opens them; needs no privileges.
    ///
    /// # Errors
    /// No descriptors, memory or ports are left.
    pub(crate) fn open() -> io::Result<Datagrams> {
        (0..TRIES).find_map(|_| Datagrams::pair().ok()).map_or_else(Datagrams::pair, Ok)
    }

    /// The same, unless the port is taken in the other family.
    fn pair() -> io::Result<Datagrams> {
        let v4 = socket(AddressFamily::INET)?;
        bind(&v4, &SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))?;
        let port = SocketAddr::try_from(getsockname(&v4)?)?.port();
        let v6 = socket(AddressFamily::INET6).ok();
        if let Some(v6) = &v6 {
            sockopt::set_ipv6_v6only(v6, true)?;
            bind(v6, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)))?;
        }
        Ok(Datagrams { v4, v6, port })
    }

    /// Readable when an answer is there.
    pub(crate) fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        [Some(&self.v4), self.v6.as_ref()].into_iter().flatten().map(AsFd::as_fd)
    }

    /// Sends without waiting.
    pub(crate) fn send(&self, to: SocketAddr, bytes: &[u8]) -> io::Result<()> {
        let fd = match to {
            SocketAddr::V4(_) => &self.v4,
            SocketAddr::V6(_) => self.v6.as_ref().ok_or(io::ErrorKind::Unsupported)?,
        };
        let send = || sendto(fd, bytes, SendFlags::empty(), &to);
        send().or_else(|_| send())?;
        Ok(())
    }

    /// The next news, and of whom; None if there is none yet. What else arrives is skipped, at most
    /// `budget` of it.
    pub(crate) fn receive(&self, budget: &mut usize) -> Option<(SocketAddr, News)> {
        let mut bytes = [0u8; 512];
        for fd in self.fds() {
            while *budget > 0 {
                let Some(from) = next_error(fd) else { break };
                *budget -= 1;
                if let Some(from) = from {
                    return Some((from, News::Unreachable));
                }
            }
            while *budget > 0 {
                let Ok((length, _, from)) = recvfrom(fd, &mut bytes[..], RecvFlags::empty()) else {
                    break;
                };
                *budget -= 1;
                let from = from.and_then(|from| SocketAddr::try_from(from).ok());
                if let Some(news) = from.zip(answer(&bytes[..length.min(bytes.len())])) {
                    return Some((news.0, News::Answer(news.1)));
                }
            }
        }
        None
    }
}

fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(family, SocketType::DGRAM, flags, None)?;
    let (level, name) = ERRORS[usize::from(family == AddressFamily::INET6)];
    sys::set_option(&fd, level, name, 1i32)?;
    Ok(fd)
}

/// The next error that the kernel has kept: for whom the datagram was, if it tells.
fn next_error(fd: BorrowedFd<'_>) -> Option<Option<SocketAddr>> {
    let flags = RecvFlags::from_bits_retain(libc::MSG_ERRQUEUE as _);
    // Nothing of the datagram, and not why: silence would say no more.
    let mut reason = RecvAncillaryBuffer::default();
    let message = recvmsg(fd, &mut [], &mut reason, flags).ok()?;
    Some(message.address.and_then(|meant| SocketAddr::try_from(meant).ok()))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use simnel_core::Span;
    use simnel_measure::irtt::{self, Echo};

    use super::*;
    use crate::apart::apart;

    /// Sockets that nobody waits at.
    fn opened() -> Datagrams {
        let datagrams = Datagrams::open().unwrap();
        for fd in datagrams.fds() {
            let flags = rustix::fs::fcntl_getfl(fd).unwrap();
            assert!(flags.contains(rustix::fs::OFlags::NONBLOCK), "{flags:?}");
        }
        datagrams
    }

    /// The next news within five seconds.
    fn news(datagrams: &Datagrams) -> (SocketAddr, News) {
        for _ in 0..50 {
            if let Some(news) = datagrams.receive(&mut 64) {
                return news;
            }
            let fds: Vec<_> = datagrams.fds().collect();
            sys::wait(&fds, Some(Span::from_millis(100)));
        }
        panic!("no news");
    }

    /// Loopback addresses of both families, as far as there are.
    fn peers() -> Vec<UdpSocket> {
        let all = ["127.0.0.1:0", "[::1]:0"].iter().filter_map(|at| UdpSocket::bind(at).ok());
        all.inspect(patient).collect()
    }

    /// Ends a wait for what does not come.
    fn patient(peer: &UdpSocket) {
        peer.set_read_timeout(Some(std::time::Duration::from_secs(10))).unwrap();
    }

    #[test]
    fn both_families_are_heard_at_one_port() {
        let datagrams = opened();
        let peers = peers();
        assert!(!peers.is_empty());
        for peer in peers {
            let at = peer.local_addr().unwrap();
            datagrams.send(at, &irtt::request(7, 9)).unwrap();
            let mut bytes = [0; 64];
            let (length, from) = peer.recv_from(&mut bytes).unwrap();
            assert_eq!((&bytes[..length], from.port()), (&irtt::request(7, 9)[..], datagrams.port));
            bytes[3] = 2;
            peer.send_to(b"nothing of ours", from).unwrap();
            peer.send_to(&bytes[..length], from).unwrap();
            let echo = Answer::Echo(Echo { token: 7, number: 9, clock: [0; 2] });
            assert_eq!(news(&datagrams), (at, News::Answer(echo)));
        }
        assert_eq!(datagrams.receive(&mut 64), None);
    }

    #[test]
    fn a_closed_port_is_told_and_hinders_nobody_else() {
        let datagrams = opened();
        for peer in peers() {
            let other = UdpSocket::bind((peer.local_addr().unwrap().ip(), 0)).unwrap();
            patient(&other);
            let closed = peer.local_addr().unwrap();
            drop(peer);
            datagrams.send(closed, &irtt::close(1)).unwrap();
            // The kernel's answer has come by now: loopback is not slow.
            datagrams.send(other.local_addr().unwrap(), &irtt::close(2)).unwrap();
            assert_eq!(other.recv(&mut [0; 64]).unwrap(), irtt::close(2).len());
            assert_eq!(news(&datagrams), (closed, News::Unreachable));
        }
    }

    /// A flood of what is nobody's answer keeps no thread for longer than was agreed.
    #[test]
    fn no_more_is_read_than_was_agreed() {
        apart("no_more_is_read_than_was_agreed", || {
            let datagrams = opened();
            for peer in peers() {
                let to = (peer.local_addr().unwrap().ip(), datagrams.port);
                for _ in 0..5 {
                    peer.send_to(b"nothing of ours", to).unwrap();
                }
                let mut echo = irtt::request(7, 9);
                echo[3] = 2;
                peer.send_to(&echo, to).unwrap();
                assert_eq!(one_by_one(&datagrams), (6, peer.local_addr().unwrap()));
            }
        });
    }

    #[test]
    fn errors_count_as_what_is_read() {
        apart("errors_count_as_what_is_read", || {
            let datagrams = opened();
            for peer in peers() {
                let closed = peer.local_addr().unwrap();
                drop(peer);
                datagrams.send(closed, &irtt::close(1)).unwrap();
                assert_eq!(one_by_one(&datagrams), (1, closed));
            }
        });
    }

    /// Reads one at a time until there are news: how many that were, and of whom.
    fn one_by_one(datagrams: &Datagrams) -> (usize, SocketAddr) {
        let mut read = 0;
        for _ in 0..200 {
            let fds: Vec<_> = datagrams.fds().collect();
            sys::wait(&fds, Some(Span::from_millis(100)));
            assert_eq!(datagrams.receive(&mut 0), None);
            let mut left = 1;
            let news = datagrams.receive(&mut left);
            assert!(left <= 1, "{left}");
            read += 1 - left;
            if let Some((of, _)) = news {
                return (read, of);
            }
        }
        panic!("no news after {read}");
    }
}
