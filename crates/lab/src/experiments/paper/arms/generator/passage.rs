//! Packets that pass the gateway: the time of each in the disciplines of its ports.
//!
//! A packet socket sees every packet twice: as it comes in at one port, and as it leaves the other
//! port's discipline. It is known again by its headers, without what a router changes, and by the
//! beginning of its payload. Times are the kernel's.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::net::Ipv4Addr;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use rustix::net::sockopt;
use serde::{Deserialize, Serialize};
use simnel_sim::Direction::{self, Down, Up};
use simnel_testbed::TestbedError;
use socket2::{Domain, Protocol, SockFilter, Socket, Type};

use super::{micros, Course, Sides};
use crate::experiments::paper::arms::network::Network;

/// Packets that left the discipline of one direction in the watched time.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Passed {
    /// Their bytes, as Ethernet frames.
    pub bytes: u64,
    /// Time of each in the discipline, in microseconds.
    pub waits: Vec<u32>,
    /// Packets that came in the watched time and never left.
    #[serde(default)]
    pub dropped: u64,
}

/// The far end of a flow: its protocol, address and port on the Internet. An ICMP probe's
/// identifier stands for the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FarEnd {
    pub protocol: u8,
    pub address: Ipv4Addr,
    pub port: u16,
}

/// Numbers of protocols (IANA), and of Ethernet's type for IPv4.
pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
const IPV4: [u8; 2] = [8, 0];
/// All protocols (`ETH_P_ALL`): only then is what goes out seen as well.
const ALL: u16 = 3;
const ETHERNET: usize = 14;
/// Of each frame: all headers, and a datagram's number.
const SEEN: usize = ETHERNET + 96;
/// Room for what comes at one moment. More than any host allows its users: its largest receive
/// buffer would say how coarsely TCP tells its window.
const ROOM: usize = 32 << 20;

/// Time between reads of the socket.
const PERIOD: Duration = Duration::from_millis(50);

type Mac = [u8; 6];
/// Addresses of the gateway's ports, by which the ways of a frame are told apart.
const LAN: Mac = [2, 0, 0, 0, 0, 1];
const WAN: Mac = [2, 0, 0, 0, 0, 2];

/// Packets that passed, by flow and direction.
#[derive(Debug, Default)]
pub(super) struct Passage {
    passed: BTreeMap<(FarEnd, usize), Passed>,
    /// Packets that left and had not been seen to come: the socket had no room.
    pub unseen: u64,
}

impl Passage {
    /// Those of the flow to `end`: up, down.
    pub fn take(&mut self, end: FarEnd) -> [Passed; 2] {
        [Up, Down].map(|way| self.passed.remove(&(end, way as usize)).unwrap_or_default())
    }

    fn dropped(&mut self, lost: &Inside) {
        if lost.counts {
            self.passed.entry(lost.of).or_default().dropped += 1;
        }
    }
}

/// Watches the packets of some `ways` through the gateway until the course's end. Those that leave
/// it after `from` on the clock are kept.
pub(super) fn watch(
    sides: Sides<'_>,
    ways: &[Direction],
    from: Duration,
    course: &Course,
) -> Result<JoinHandle<io::Result<Passage>>, TestbedError> {
    let (gateway, filter) = (sides.gateway, filter(ways));
    for (port, [a, b, c, d, e, f]) in [(Network::LAN, LAN), (Network::WAN, WAN)] {
        let address = format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}");
        gateway.ip(&["link", "set", port, "address", &address])?;
    }
    let open = || {
        // What came before the filter was there is of no flow.
        let protocol = Protocol::from(i32::from(ALL.to_be()));
        let socket = Socket::new(Domain::PACKET, Type::RAW, Some(protocol))?;
        socket.attach_filter(&filter)?;
        sockopt::set_socket_recv_buffer_size_force(&socket, ROOM)?;
        (sides.means.read_frames)(socket.into())
    };
    let mut drain = gateway.enter(open)?.map_err(unwatched)?;
    let course = course.clone();
    let epoch = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let zero = epoch + course.zero.saturating_duration_since(Instant::now());
    Ok(thread::spawn(move || {
        let mut seen = Seen::default();
        let (from, to) = (zero + from, zero + course.duration);
        loop {
            let is_last = course.over();
            let mut see = |frame: &[u8], at| seen.frame(frame, at, (from..to).contains(&at));
            seen.passage.unseen += drain(&mut see)?;
            if is_last {
                return Ok(seen.ended());
            }
            thread::sleep(PERIOD);
        }
    }))
}

/// The error that the gateway's packets cannot be seen.
pub(super) fn unwatched(source: io::Error) -> TestbedError {
    TestbedError::Traffic { what: "cannot watch the gateway's packets".into(), source }
}

/// A filter that passes what goes some `ways` (`linux/filter.h`): each packet more that is read
/// takes time in a guest, and room between two looks.
fn filter(ways: &[Direction]) -> Vec<SockFilter> {
    const LOAD: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const IS: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const PASS: u16 = 0x06; // BPF_RET | BPF_K
    let mut filter = Vec::new();
    let ends = |mac: Mac| u32::from_be_bytes([mac[2], mac[3], mac[4], mac[5]]);
    for way in ways {
        let (comes_to, leaves_from) = match way {
            Up => (LAN, WAN),
            Down => (WAN, LAN),
        };
        // The ends of the addresses, of which the first begins the frame.
        for (at, mac) in [(2, comes_to), (8, leaves_from)] {
            filter.push(SockFilter::new(LOAD, 0, 0, at));
            filter.push(SockFilter::new(IS, 0, 1, ends(mac)));
            filter.push(SockFilter::new(PASS, 0, 0, SEEN as u32));
        }
    }
    filter.push(SockFilter::new(PASS, 0, 0, 0));
    filter
}

/// Packets in the gateway, and those that have left it.
#[derive(Default)]
struct Seen {
    /// By headers: more than one of each, if they are the same to the last bit.
    inside: HashMap<u64, Vec<Inside>>,
    passage: Passage,
}

/// A packet that came in.
struct Inside {
    /// Since the epoch.
    came: Duration,
    of: (FarEnd, usize),
    counts: bool,
}

impl Seen {
    /// All that passed, once nothing more will leave.
    fn ended(mut self) -> Passage {
        for lost in self.inside.into_values().flatten() {
            self.passage.dropped(&lost);
        }
        self.passage
    }

    /// A packet that leaves: of several the last, since one before it may have been dropped.
    fn leave(&mut self, key: u64) -> Option<Inside> {
        let Entry::Occupied(mut same) = self.inside.entry(key) else { return None };
        let last = same.get_mut().pop();
        if same.get().is_empty() {
            same.remove();
        }
        last
    }

    /// A frame that came in or went out at `now`; in the watched time if it `counts`.
    fn frame(&mut self, frame: &[u8], now: Duration, counts: bool) {
        let Some((way, leaves)) = way(frame) else { return };
        let Some((end, bytes)) = frame.get(ETHERNET..).and_then(|packet| far_end(packet, way))
        else {
            return;
        };
        let mut packet = [0; SEEN];
        let length = frame.len().min(SEEN);
        packet[..length].copy_from_slice(&frame[..length]);
        let packet = &mut packet[ETHERNET..length];
        // What a router and its disciplines change: ECN and DSCP, time to live, checksum.
        packet[1] = 0;
        packet[8] = 0;
        packet[10..12].fill(0);
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(way as u8);
        hasher.write(packet);
        let key = hasher.finish();
        let of = (end, way as usize);
        if !leaves {
            self.inside.entry(key).or_default().push(Inside { came: now, of, counts });
            return;
        }
        let Some(Inside { came, .. }) = self.leave(key) else {
            self.passage.unseen += 1;
            return;
        };
        if counts {
            let passed = self.passage.passed.entry(of).or_default();
            passed.bytes += bytes;
            passed.waits.push(micros(now.saturating_sub(came)));
        }
    }
}

/// Direction of an IPv4 frame through the gateway, and true if it leaves; None for any other frame.
fn way(frame: &[u8]) -> Option<(Direction, bool)> {
    if frame.get(12..ETHERNET)? != IPV4 {
        return None;
    }
    let (to, from) = (&frame[..6], &frame[6..12]);
    match () {
        () if from == WAN => Some((Up, true)),
        () if from == LAN => Some((Down, true)),
        () if to == LAN => Some((Up, false)),
        () if to == WAN => Some((Down, false)),
        () => None,
    }
}

/// The far end of the flow that an IPv4 packet belongs to, and the bytes of its frame.
fn far_end(packet: &[u8], way: Direction) -> Option<(FarEnd, u64)> {
    let header = usize::from(packet.first()? & 0x0f) * 4;
    let (protocol, rest) = (*packet.get(9)?, packet.get(header..)?);
    let (address, number) = match way {
        Up => (packet.get(16..20)?, 2),
        Down => (packet.get(12..16)?, 0),
    };
    let number = if protocol == ICMP { 4 } else { number };
    let port = u16::from_be_bytes(rest.get(number..number + 2)?.try_into().ok()?);
    let address = Ipv4Addr::from(<[u8; 4]>::try_from(address).ok()?);
    let bytes = u16::from_be_bytes([packet[2], packet[3]]);
    Some((FarEnd { protocol, address, port }, u64::from(bytes) + ETHERNET as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: Mac = [2, 0, 0, 0, 0, 9];

    /// A TCP segment from port 80 of 10.2.0.1 to home, with the number `id`.
    fn segment(from: Mac, to: Mac, id: u8, time_to_live: u8) -> Vec<u8> {
        let mut frame = [&to[..], &from[..], &IPV4].concat();
        frame.extend([0x45, 0, 5, 0xdc, 0, id, 0x40, 0, time_to_live, TCP, 0xaa, time_to_live]);
        frame.extend([10, 2, 0, 1, 10, 1, 0, 1, 0, 80, 0x80, 0]);
        frame.resize(SEEN, 0);
        frame
    }

    #[test]
    fn packets_are_known_again_behind_the_discipline() {
        let mut seen = Seen::default();
        let at = Duration::from_millis;
        for id in 1..=3 {
            seen.frame(&segment(HOST, WAN, id, 64), at(id.into()), true);
        }
        // The second is dropped; the first leaves before the watched time.
        seen.frame(&segment(LAN, HOST, 1, 63), at(5), false);
        seen.frame(&segment(LAN, HOST, 3, 63), at(10), true);
        assert_eq!(seen.passage.unseen, 0);
        seen.frame(&segment(LAN, HOST, 4, 63), at(10), true);
        assert_eq!(seen.passage.unseen, 1);
        let mut passage = seen.ended();
        let end = FarEnd { protocol: TCP, address: Ipv4Addr::new(10, 2, 0, 1), port: 80 };
        let down = Passed { bytes: 1514, waits: vec![7_000], dropped: 1 };
        assert_eq!(passage.take(end), [Passed::default(), down]);
    }

    /// Answers of connections that are over carry no number.
    #[test]
    fn packets_that_are_the_same_are_as_many_as_came() {
        let mut seen = Seen::default();
        let at = Duration::from_millis;
        for ms in [0, 1, 2] {
            seen.frame(&segment(HOST, WAN, 1, 64), at(ms), ms > 0);
        }
        for ms in [5, 6] {
            seen.frame(&segment(LAN, HOST, 1, 63), at(ms), true);
        }
        let passage = seen.ended();
        let passed: Vec<&Passed> = passage.passed.values().collect();
        // The one that is left came before the watched time.
        let two = Passed { bytes: 2 * 1514, waits: vec![3_000, 5_000], dropped: 0 };
        assert_eq!((passed, passage.unseen), (vec![&two], 0));
    }

    #[test]
    fn what_does_not_pass_is_no_packet_of_a_flow() {
        assert_eq!(way(&segment(HOST, [0xff; 6], 1, 64)), None);
        assert_eq!(way(&[0; ETHERNET]), None);
        assert_eq!(way(&segment(HOST, LAN, 1, 64)), Some((Up, false)));
        assert_eq!(way(&segment(WAN, HOST, 1, 64)), Some((Up, true)));
        assert_eq!(far_end(&[0x45, 0, 5], Down), None);
    }
}
