//! Echoes from any host, such as the home's router: ICMP where this user may, else TCP.
//!
//! Linux gives ICMP echoes to users of the groups in `net.ipv4.ping_group_range`, and to root. TCP
//! needs no right: a port that is closed answers, too, unless a firewall keeps silent.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::probe::{answers, Language, Prober};
use crate::icmp::{Message, REPLY, REQUEST};

/// Ports that home routers mostly answer on: DNS, web, SSH, and one that is mostly closed.
const PORTS: [u16; 5] = [53, 80, 443, 22, 9];
/// Time for each of both kinds of echo.
const PATIENCE: Duration = Duration::from_millis(700);

/// Starts echoes from `host`, and says by what; None if it answers to nothing.
pub(crate) fn start(
    host: IpAddr,
    interval: Duration,
    start: Instant,
) -> Option<(Prober, &'static str)> {
    let kinds = [(Type::DGRAM, false), (Type::RAW, true)];
    let by_icmp = kinds.into_iter().find_map(|(kind, raw)| {
        let socket = icmp_socket(host, kind).ok()?;
        let ident = std::process::id() as u16;
        let language = Icmp { six: host.is_ipv6(), raw, ident };
        Prober::datagrams(socket, language, interval, start).ok()
    });
    if let Some(prober) = by_icmp.filter(|prober| prober.is_answered(PATIENCE)) {
        return Some((prober, "ICMP"));
    }
    let port = first_that_answers(host)?;
    // A handshake costs more than an echo.
    let interval = interval.max(Duration::from_millis(50));
    Some((Prober::connections(SocketAddr::new(host, port), interval, start), "TCP"))
}

/// The first of the ports, in their order, that answers; all are asked at once.
fn first_that_answers(host: IpAddr) -> Option<u16> {
    let ask = move |port| answers(SocketAddr::new(host, port), PATIENCE).then_some(port);
    let asked = PORTS.map(|port| thread::spawn(move || ask(port)));
    asked.into_iter().find_map(|answer| answer.join().ok()?)
}

fn icmp_socket(host: IpAddr, kind: Type) -> io::Result<UdpSocket> {
    let (domain, protocol) = match host {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6),
    };
    let socket = Socket::new(domain, kind, Some(protocol))?;
    socket.connect(&SocketAddr::new(host, 0).into())?;
    Ok(socket.into())
}

/// ICMP's echo.
struct Icmp {
    six: bool,
    /// IPv4 packets come with their headers, and everybody's.
    raw: bool,
    ident: u16,
}

impl Language for Icmp {
    fn request(&self, number: u32) -> Vec<u8> {
        let body = [&number.to_be_bytes()[..], &[0x5a; 28]].concat();
        let kind = REQUEST[usize::from(self.six)];
        Message { kind, ident: self.ident, sequence: number as u16, body: &body }.bytes()
    }

    fn reply(&self, bytes: &[u8]) -> Option<(u32, Option<[u64; 2]>)> {
        let message = match self.raw {
            true => Message::read_raw(self.six, bytes)?,
            false => Message::read(bytes)?,
        };
        let is_own = !self.raw || message.ident == self.ident;
        let number = u32::from_be_bytes(*message.body.first_chunk()?);
        (message.kind == REPLY[usize::from(self.six)] && is_own).then_some((number, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_echoes_are_not_ours() {
        let icmp = Icmp { six: false, raw: true, ident: 7 };
        let mut packet = vec![0x45; 20];
        packet.extend(icmp.request(9));
        assert_eq!(icmp.reply(&packet), None, "a request");
        packet[20] = 0;
        assert_eq!(icmp.reply(&packet), Some((9, None)));
        assert_eq!(Icmp { ident: 8, ..icmp }.reply(&packet), None);
        for end in 0..packet.len() {
            let _ = icmp.reply(&packet[..end]);
        }
    }
}
