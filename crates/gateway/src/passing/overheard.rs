//! RTTs of TCP that passes where the kernel shapes, from copies of its headers.
//!
//! ```text
//! leaves      discipline -> copy -> line     the time of a TSval's first leaving
//! comes       line -> copy -> discipline     that of its echo
//! ```
//!
//! A packet socket of the interface sees both on the line's side of the disciplines, so our own
//! queues are no part of an RTT. It is read 20 times a second, by the kernel's stamps. Few copies
//! may wait (`autorate/copies.rs`), so what it costs is bounded, and more than that is not seen.
//! What was under way then is forgotten, since answers that were missed would seem late.

use std::io;
use std::sync::Arc;

use simnel_autorate::RoundTrips;

use super::Shared;
use crate::frames::{Calendar, Listener, PacketSocket};

/// Calls for one look: more than there is room for.
const CALLS: usize = 32;

/// Passing TCP, as far as it was read.
pub(crate) struct Overheard {
    listener: Listener,
    calendar: Calendar,
    passing: Arc<Shared>,
}

impl Overheard {
    /// Copies by `socket`, of no interface yet.
    ///
    /// # Errors
    /// Descriptors are short.
    pub(crate) fn by(socket: &PacketSocket) -> io::Result<Overheard> {
        let (listener, calendar) = (Listener::on(socket.again()?), Calendar::new());
        Ok(Overheard { listener, calendar, passing: Shared::new()? })
    }

    /// Listens to the interface with this number from now on.
    pub(crate) fn listen_to(&self, index: u32) -> io::Result<()> {
        self.listener.listen_to(index)
    }

    /// RTTs up to now.
    pub(crate) fn round_trips(&mut self) -> &RoundTrips {
        self.calendar.follow();
        for _ in 0..CALLS {
            // An interface that goes down is an error, once.
            let Ok(count) = self.listener.receive() else { break };
            for heard in (0..count).filter_map(|index| self.listener.get(index)) {
                let time = self.calendar.time(heard.stamp);
                match heard.is_sent {
                    true => self.passing.left(heard.bytes, time),
                    false => self.passing.came(heard.bytes, time),
                }
            }
            if count < Listener::BATCH {
                break;
            }
        }
        if self.listener.take_drops() > 0 {
            self.passing.trips().forget();
        }
        self.passing.trips()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustix::net::{AddressFamily, Protocol, SocketType};
    use simnel_core::Span;

    use super::*;
    use crate::apart::{apart, cable};
    use crate::autorate::copies;
    use crate::sys::{self, Query};

    /// Ethernet frames; which way is said by the device that sends.
    struct Sender(std::os::fd::OwnedFd);

    impl Sender {
        fn at(device: &str) -> (Sender, u32) {
            let index = sys::interface(device, Query::Index).unwrap();
            let none = None::<Protocol>;
            let socket = rustix::net::socket(AddressFamily::PACKET, SocketType::RAW, none).unwrap();
            PacketSocket::on(socket.try_clone().unwrap()).bind(index).unwrap();
            (Sender(socket), index)
        }

        fn send(&self, ethertype: u16, packet: &[u8]) {
            let frame = [&[2; 12][..], &ethertype.to_be_bytes(), packet].concat();
            let sent = rustix::net::send(&self.0, &frame, rustix::net::SendFlags::empty());
            assert_eq!(sent, Ok(frame.len()));
        }
    }

    /// TCP with `options` and a byte of data, from one end to the other or back.
    fn tcp(is_back: bool, options: &[u8]) -> Vec<u8> {
        let ports: [u16; 2] = if is_back { [443, 5000] } else { [5000, 443] };
        let mut bytes = ports.map(u16::to_be_bytes).concat();
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x50 + (options.len() as u8 / 4) * 16, 0x10]);
        bytes.extend([0xff, 0xff, 0, 0, 0, 0]);
        bytes.extend(options);
        bytes.push(7);
        bytes
    }

    fn stamps(value: u32, echo: u32) -> Vec<u8> {
        [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
    }

    fn v4(is_back: bool, protocol: u8, fragment: u16, body: &[u8]) -> Vec<u8> {
        let ends = if is_back {
            [[198, 51, 100, 1], [192, 0, 2, 1]]
        } else {
            [[192, 0, 2, 1], [198, 51, 100, 1]]
        };
        let mut bytes = vec![0x46, 0, 0, 24 + body.len() as u8, 0, 0];
        bytes.extend(fragment.to_be_bytes());
        bytes.extend([64, protocol, 0, 0]);
        bytes.extend(ends.concat());
        // An option of IP: nothing, four times.
        bytes.extend([1; 4]);
        bytes.extend(body);
        bytes
    }

    fn v6(is_back: bool, next: u8, body: &[u8]) -> Vec<u8> {
        let ends = if is_back { [[3; 16], [4; 16]] } else { [[4; 16], [3; 16]] };
        let mut bytes = vec![0x60, 0, 0, 0, 0, body.len() as u8, next, 64];
        bytes.extend(ends.concat());
        bytes.extend(body);
        bytes
    }

    fn taken(overheard: &mut Overheard) -> Vec<Span> {
        let mut taken = Vec::new();
        overheard.round_trips().take(|_, rtt| taken.push(rtt));
        taken
    }

    const V4: u16 = 0x0800;
    const V6: u16 = 0x86dd;

    #[test]
    fn what_left_and_came_back_is_a_round_trip() {
        apart("what_left_and_came_back_is_a_round_trip", || {
            cable("wan", "line", "192.0.2.1/24");
            cable("other", "end", "192.0.2.9/32");
            let ((here, index), (beyond, _)) = (Sender::at("wan"), Sender::at("line"));
            let (_, elsewhere) = Sender::at("other");
            let mut overheard = Overheard::by(&copies().unwrap()).unwrap();
            let segment = |is_v6, is_back, value, echo| {
                let segment = tcp(is_back, &stamps(value, echo));
                match is_v6 {
                    false => (V4, v4(is_back, 6, 0, &segment)),
                    true => (V6, v6(is_back, 6, &segment)),
                }
            };
            let send = |sender: &Sender, (ethertype, packet): (u16, Vec<u8>)| {
                sender.send(ethertype, &packet);
            };
            // The kernel begins to stamp a moment after it was asked to.
            overheard.listen_to(index).unwrap();
            for value in 1.. {
                send(&here, segment(false, false, value, 1));
                std::thread::sleep(Duration::from_millis(2));
                send(&beyond, segment(false, true, 9, value));
                if !taken(&mut overheard).is_empty() {
                    break;
                }
                assert!(value < 1000, "no stamps");
            }
            overheard.listen_to(elsewhere).unwrap();
            // Nobody listens there.
            send(&here, segment(false, false, 5000, 1));
            overheard.listen_to(index).unwrap();
            send(&beyond, segment(false, true, 9, 5000));
            assert_eq!(taken(&mut overheard), []);
            for is_v6 in [false, true] {
                let before = sys::now();
                send(&here, segment(is_v6, false, 6000, 1));
                std::thread::sleep(Duration::from_millis(20));
                send(&beyond, segment(is_v6, true, 9, 6000));
                let most = sys::now().since(before);
                std::thread::sleep(Duration::from_millis(20));
                // An echo that has counted already.
                send(&beyond, segment(is_v6, true, 10, 6000));
                let rtts = taken(&mut overheard);
                let possible = Span::from_millis(20)..=most;
                assert!(rtts.len() == 1 && possible.contains(&rtts[0]), "{rtts:?}, {possible:?}");
            }
        });
    }

    #[test]
    fn a_filter_takes_timestamps_and_nothing_else() {
        apart("a_filter_takes_timestamps_and_nothing_else", || {
            cable("wan", "line", "192.0.2.1/24");
            let ((_, index), (beyond, _)) = (Sender::at("wan"), Sender::at("line"));
            let mut listener = Listener::on(copies().unwrap());
            listener.listen_to(index).unwrap();
            let segment = tcp(true, &stamps(1, 2));
            // A SYN's options begin with another one; a packet may be cut short anywhere.
            let other = tcp(true, &[&[2, 4, 5, 180][..], &stamps(1, 2)].concat());
            let whole = v4(true, 6, 0, &segment);
            (0..44).for_each(|length| beyond.send(V4, &whole[..length]));
            for packet in [&v4(true, 17, 0, &segment), &v4(true, 6, 0x0005, &segment)] {
                beyond.send(V4, packet);
            }
            beyond.send(V4, &v4(true, 6, 0, &other));
            beyond.send(V4, &v4(true, 6, 0, &tcp(true, &[])));
            beyond.send(V6, &v6(true, 17, &segment));
            beyond.send(0x0806, &whole);
            let wanted =
                [(V4, whole), (V4, v4(true, 6, 0x2000, &segment)), (V6, v6(true, 6, &segment))];
            for (ethertype, packet) in &wanted {
                beyond.send(*ethertype, packet);
            }
            let count = listener.receive().unwrap();
            let heard: Vec<_> = (0..count)
                .map(|index| listener.get(index).unwrap())
                .map(|heard| (heard.protocol, heard.bytes.to_vec(), heard.is_sent))
                .collect();
            assert_eq!(heard, wanted.map(|(ethertype, packet)| (ethertype, packet, false)));
        });
    }

    /// Beyond what is looked at, no RTT is made up: the answer may be among the rest.
    #[test]
    fn what_was_under_way_is_forgotten_where_some_was_missed() {
        apart("what_was_under_way_is_forgotten_where_some_was_missed", || {
            cable("wan", "line", "192.0.2.1/24");
            let ((here, index), (beyond, _)) = (Sender::at("wan"), Sender::at("line"));
            let mut overheard = Overheard::by(&copies().unwrap()).unwrap();
            overheard.listen_to(index).unwrap();
            here.send(V4, &v4(false, 6, 0, &tcp(false, &stamps(50, 1))));
            let flood = v4(true, 6, 0, &tcp(true, &stamps(3, 4)));
            let count = 5_000;
            (0..count).for_each(|_| beyond.send(V4, &flood));
            assert_eq!(taken(&mut overheard), []);
            beyond.send(V4, &v4(true, 6, 0, &tcp(true, &stamps(9, 50))));
            assert_eq!(taken(&mut overheard), []);
            // Another one, of which nothing is missed.
            here.send(V4, &v4(false, 6, 0, &tcp(false, &stamps(51, 1))));
            beyond.send(V4, &v4(true, 6, 0, &tcp(true, &stamps(9, 51))));
            assert_eq!(taken(&mut overheard).len(), 1);
        });
    }
}
