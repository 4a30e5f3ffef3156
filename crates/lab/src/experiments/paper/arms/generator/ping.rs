//! Round-trip probes: UDP, echoed by a thread at the other side, and ICMP, echoed by the kernel.
//!
//! A request carries its number, and goes at its time or when the one before was answered. Times
//! are taken around the system calls; on a busy machine a thread may be woken late, which then
//! shows as delay.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Socket, Type};

use super::{failed, micros, open_udp, Course, Heard, Join, Sides, IDLE, NUMBER, ROOM, STOP_CHECK};
use crate::experiments::paper::arms::plan::Flow;
use simnel_testbed::icmp::{Message, REPLY, REQUEST};
use simnel_testbed::TestbedError;

/// A UDP probe from home.
pub(super) fn udp(
    flow: &Flow,
    size: usize,
    interval: Duration,
    sides: Sides<'_>,
    course: &Course,
) -> Result<Join, TestbedError> {
    let near = echoed(flow, sides, course)?;
    let error = |error| failed(flow, "send UDP probes", error);
    let back = near.try_clone().map_err(error)?;
    let port = near.peer_addr().map_err(error)?.port();
    let size = size.max(NUMBER);
    let mut request = vec![0; size];
    let send = move |number: u32| {
        request[..NUMBER].copy_from_slice(&number.to_be_bytes());
        // What cannot be sent is what does not come back.
        let _ = near.send(&request);
    };
    let mut data = [0; ROOM];
    let receive = move || match back.recv(&mut data) {
        Ok(count) if count >= NUMBER => {
            Some(u32::from_be_bytes([data[0], data[1], data[2], data[3]]))
        }
        _ => None,
    };
    Ok(probe((flow, port), interval, course, send, receive))
}

/// A socket at home to one on the Internet whose thread sends everything back.
fn echoed(flow: &Flow, sides: Sides<'_>, course: &Course) -> Result<UdpSocket, TestbedError> {
    let error = |error| failed(flow, "send UDP probes", error);
    let open = |address| open_udp(address, flow.dscp);
    let far = sides.internet.enter(|| open(flow.internet))?.map_err(error)?;
    let near = sides.home.enter(|| open(flow.home))?.map_err(error)?;
    near.connect(far.local_addr().map_err(error)?).map_err(error)?;
    let course = course.clone();
    thread::spawn(move || {
        let mut data = [0; ROOM];
        while !course.over() {
            if let Ok((count, from)) = far.recv_from(&mut data) {
                let _ = far.send_to(&data[..count], from);
            }
        }
    });
    Ok(near)
}

/// A UDP probe from home that asks when the answer has come, or is overdue: netperf's UDP_RR.
///
/// Its requests are small: they carry the last byte of their number.
pub(super) fn in_turn(
    flow: &Flow,
    size: usize,
    patience: Duration,
    sides: Sides<'_>,
    course: &Course,
) -> Result<Join, TestbedError> {
    let socket = echoed(flow, sides, course)?;
    let to = socket.peer_addr().map_err(|error| failed(flow, "send UDP probes", error))?;
    let (start, stop) = (flow.start, flow.stop.unwrap_or(course.duration));
    let (zero, course) = (course.zero, course.clone());
    let mut data = vec![0; size.max(1)];
    let prober = thread::spawn(move || {
        let mut record = Record::default();
        for (from, to) in [(zero - IDLE, zero), (zero + start, zero + stop)] {
            course.wait_until(from);
            record.first = record.sent.len();
            while Instant::now() < to && !course.over() {
                data[0] = record.sent.len() as u8;
                let asked = Instant::now();
                record.sent.push(asked);
                let _ = socket.send(&data);
                while asked.elapsed() < patience && !course.over() {
                    // The socket looks up now and then, answer or not.
                    let Ok(1..) = socket.recv(&mut data) else { continue };
                    let latest = record.sent.len() - 1;
                    let age = usize::from((latest as u8).wrapping_sub(data[0]));
                    let Some(number) = latest.checked_sub(age) else { continue };
                    record.came.push((number, Instant::now()));
                    if age == 0 {
                        break;
                    }
                }
            }
        }
        record
    });
    let heard = move || prober.join().unwrap_or_default().heard(zero);
    Ok(Box::new(move || Heard { port: to.port(), ..heard() }))
}

/// An ICMP probe from home. `number` tells the probes of a run apart.
pub(super) fn icmp(
    flow: &Flow,
    number: u16,
    size: usize,
    interval: Duration,
    sides: Sides<'_>,
    course: &Course,
) -> Result<Join, TestbedError> {
    let error = |error| failed(flow, "send ICMP probes", error);
    let open = || {
        let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
        socket.set_tos_v4(u32::from(flow.dscp) << 2)?;
        let at = |address: Ipv4Addr| SocketAddr::from(SocketAddrV4::new(address, 0)).into();
        socket.bind(&at(flow.home))?;
        socket.connect(&at(flow.internet))?;
        socket.set_read_timeout(Some(STOP_CHECK))?;
        io::Result::Ok(socket)
    };
    let near = sides.home.enter(open)?.map_err(error)?;
    let back = near.try_clone().map_err(error)?;
    let mut body = vec![0; size.max(NUMBER)];
    let send = move |sequence: u32| {
        let _ = (&near).write(&request(&mut body, number, sequence));
    };
    let mut data = [0; ROOM];
    let receive = move || {
        let count = (&back).read(&mut data).ok()?;
        reply(&data[..count], number)
    };
    Ok(probe((flow, number), interval, course, send, receive))
}

/// An echo request whose `body` begins with its number.
fn request(body: &mut [u8], ident: u16, number: u32) -> Vec<u8> {
    body[..NUMBER].copy_from_slice(&number.to_be_bytes());
    Message { kind: REQUEST[0], ident, sequence: number as u16, body }.bytes()
}

/// The number that `packet` carries, if it is a reply to `ident`.
fn reply(packet: &[u8], ident: u16) -> Option<u32> {
    let message = Message::read_raw(false, packet)?;
    let is_ours = message.kind == REPLY[0] && message.ident == ident;
    let number = message.body.first_chunk()?;
    is_ours.then(|| u32::from_be_bytes(*number))
}

/// Requests of a probe and what came back.
#[derive(Default)]
struct Record {
    sent: Vec<Instant>,
    /// Answers: the request's number, and when it came.
    came: Vec<(usize, Instant)>,
    /// The first request that was not on the idle line.
    first: usize,
}

impl Record {
    fn heard(self, zero: Instant) -> Heard {
        let Record { sent, came, first } = self;
        let mut rtts: Vec<Option<u32>> = vec![None; sent.len()];
        for (number, at) in came {
            if let Some(rtt) = rtts.get_mut(number) {
                rtt.get_or_insert(micros(at.saturating_duration_since(sent[number])));
            }
        }
        let first = first.min(sent.len());
        let idle = rtts[..first].iter().flatten().min().copied();
        let times = sent[first..].iter().zip(&rtts[first..]);
        Heard {
            times: times.map(|(at, rtt)| (at.saturating_duration_since(zero), *rtt)).collect(),
            idle: idle.unwrap_or(0),
            failure: idle.is_none().then(|| "nothing came back over the idle line".into()),
            ..Heard::default()
        }
    }
}

/// Sends at every interval: first on the idle line, then from the flow's start to its end.
fn probe(
    (flow, port): (&Flow, u16),
    interval: Duration,
    course: &Course,
    mut send: impl FnMut(u32) + Send + 'static,
    mut receive: impl FnMut() -> Option<u32> + Send + 'static,
) -> Join {
    let (start, stop) = (flow.start, flow.stop.unwrap_or(course.duration));
    let sending = course.clone();
    let sender = thread::spawn(move || {
        let mut sent: Vec<Instant> = Vec::new();
        // On the idle line until the clock starts, then by the clock.
        let idle = sending.zero - IDLE;
        let first = (IDLE.as_nanos() / interval.as_nanos().max(1)) as u32;
        loop {
            let n = sent.len() as u32;
            let at = match n.checked_sub(first) {
                None => idle + interval * n,
                Some(n) => sending.zero + start + interval * n,
            };
            if at >= sending.zero + stop {
                return (sent, first as usize);
            }
            sending.wait_until(at);
            if sending.over() {
                return (sent, first as usize);
            }
            sent.push(Instant::now());
            send(n);
        }
    });
    let receiving = course.clone();
    let receiver = thread::spawn(move || {
        let mut came = Vec::new();
        while !receiving.over() {
            if let Some(number) = receive() {
                came.push((number as usize, Instant::now()));
            }
        }
        came
    });
    let zero = course.zero;
    Box::new(move || {
        let (sent, first) = sender.join().unwrap_or_default();
        let came = receiver.join().unwrap_or_default();
        Heard { port, ..Record { sent, came, first }.heard(zero) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_carry_their_number() {
        const HEADER: [u8; 20] = [0x45; 20];
        let mut packet = [&HEADER[..], &request(&mut [0xff; 56], 0xbeef, 70_000)].concat();
        assert_eq!(reply(&packet, 0xbeef), None);
        packet[20] = REPLY[0];
        assert_eq!(reply(&packet, 0xbeef), Some(70_000));
        assert_eq!(reply(&packet, 0xbeee), None);
        assert_eq!(reply(&packet[..29], 0xbeef), None);
    }
}
