//! Echoes from an irtt server ([`crate::irtt`]).

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use super::probe::{Language, Prober};
use crate::irtt::{answer, open, request, Answer};
use crate::Error;

/// Requests to open, and the time for each.
const TRIES: u32 = 4;
const PATIENCE: Duration = Duration::from_millis(500);

/// Starts echoes for up to `time`.
pub(crate) fn probes(
    address: SocketAddr,
    interval: Duration,
    time: Duration,
    start: Instant,
) -> Result<Prober, Error> {
    let failed = |source| Error::unreachable(address, "irtt server", source);
    let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0; 16], 0).into() };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.connect(address).map_err(failed)?;
    socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
    let wanted = open(interval, time);
    let mut silence = std::io::ErrorKind::TimedOut.into();
    for _ in 0..TRIES {
        socket.send(&wanted).map_err(failed)?;
        let mut bytes = [0; 512];
        match socket.recv(&mut bytes) {
            Ok(count) => match answer(&bytes[..count]) {
                Some(Answer::Opened(opened)) => {
                    let interval = interval.max(opened.interval);
                    let irtt = Irtt { token: opened.token };
                    return Prober::datagrams(socket, irtt, interval, start).map_err(failed);
                }
                Some(Answer::Refused(reason)) => {
                    return Err(Error::Refused { address, reason: reason.into() });
                }
                _ => {}
            },
            Err(error) => silence = error,
        }
    }
    Err(failed(silence))
}

/// Echoes of an open session.
struct Irtt {
    token: u64,
}

impl Language for Irtt {
    fn request(&self, number: u32) -> Vec<u8> {
        request(self.token, number).into()
    }

    fn reply(&self, bytes: &[u8]) -> Option<(u32, Option<[u64; 2]>)> {
        match answer(bytes)? {
            Answer::Echo(echo) if echo.token == self.token => Some((echo.number, Some(echo.clock))),
            _ => None,
        }
    }
}
