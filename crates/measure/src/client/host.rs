//! Echoes from any host, such as the home's router: ICMP where this user may, else TCP.
//!
//! Linux gives ICMP echoes to users of the groups in `net.ipv4.ping_group_range`, and to root. TCP
//! needs no right: a port that is closed answers, too, unless a firewall keeps silent.

use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::probe::{answers, Language, Prober};

/// Ports that home routers mostly answer on: DNS, web, SSH, and one that is mostly closed.
const PORTS: [u16; 5] = [53, 80, 443, 22, 9];
const PATIENCE: Duration = Duration::from_millis(700);

/// Starts echoes from `host`, and says by what; None if it answers to nothing.
pub(crate) fn start(
    host: IpAddr,
    interval: Duration,
    start: Instant,
) -> Option<(Prober, &'static str)> {
    let kinds = [(Type::DGRAM, false), (Type::RAW, true)];
    for (kind, raw) in kinds {
        let Ok(socket) = icmp_socket(host, kind) else { continue };
        let ident = std::process::id() as u16;
        let language = Icmp { six: host.is_ipv6(), raw, ident };
        let Ok(prober) = Prober::datagrams(socket, language, interval, start) else { continue };
        if prober.is_answered(PATIENCE) {
            return Some((prober, "ICMP"));
        }
    }
    let port = PORTS.into_iter().find(|port| answers(SocketAddr::new(host, *port), PATIENCE))?;
    // A handshake costs more than an echo.
    let interval = interval.max(Duration::from_millis(50));
    Some((Prober::connections(SocketAddr::new(host, port), interval, start), "TCP"))
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

/// ICMP's echo (RFC 792, RFC 4443).
struct Icmp {
    six: bool,
    /// IPv4 packets come with their headers, and everybody's.
    raw: bool,
    ident: u16,
}

impl Language for Icmp {
    fn request(&self, number: u32) -> Vec<u8> {
        let mut bytes = vec![if self.six { 128 } else { 8 }, 0, 0, 0];
        bytes.extend(self.ident.to_be_bytes());
        bytes.extend((number as u16).to_be_bytes());
        bytes.extend(number.to_be_bytes());
        bytes.extend([0x5a; 28]);
        if !self.six {
            let sum = checksum(&bytes);
            bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        bytes
    }

    fn reply(&self, bytes: &[u8]) -> Option<(u32, Option<[u64; 2]>)> {
        let header = match self.raw && !self.six {
            true => usize::from(bytes.first()? & 0x0f) * 4,
            false => 0,
        };
        let bytes = bytes.get(header..)?;
        let kind = if self.six { 129 } else { 0 };
        let own = !self.raw || bytes.get(4..6)? == self.ident.to_be_bytes();
        let number = bytes.get(8..12)?.try_into().ok()?;
        (*bytes.first()? == kind && own).then_some((u32::from_be_bytes(number), None))
    }
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes
        .chunks(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or_default()));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_rfc_s() {
        // RFC 1071, section 3: the sum of these words is ddf2.
        let words = [0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7];
        assert_eq!(checksum(&words), !0xddf2);
        let icmp = Icmp { six: false, raw: false, ident: 7 };
        assert_eq!(checksum(&icmp.request(5)), 0);
    }

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
