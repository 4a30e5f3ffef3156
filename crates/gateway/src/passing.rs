//! RTTs of passing TCP: what `simnel_autorate::RoundTrips` is told of a direction's packets.
//!
//! An upload's timestamp counts from when its packet is let go, so our own queue is no part of the
//! RTT; but its bytes are at hand only while it arrives. So it waits until then in the slot that
//! the kernel's number of the packet picks; a packet that is overtaken by many others is forgotten.
//!
//! Times are of the real clock: each direction's discipline has one of its own (`pace.rs`).

use std::sync::Arc;

use simnel_autorate::{RoundTrips, Stamp};
use simnel_core::packet::Flags;
use simnel_core::wire::{ack_view, AckView};
use simnel_core::{Packet, Time};

use crate::classify::LINK;
use crate::connections::Connections;
use crate::direction::Direction;
use crate::owner::id;

/// Packets that came after one while it was queued, before its timestamp is forgotten.
const QUEUED: usize = 4096;

/// State that both directions share.
#[derive(Clone)]
pub(crate) struct Shared {
    connections: Arc<Connections>,
    pub(crate) trips: Arc<RoundTrips>,
}

impl Shared {
    /// Nothing is under way.
    pub(crate) fn new() -> std::io::Result<Shared> {
        let connections = Arc::new(Connections::new()?);
        Ok(Shared { connections, trips: Arc::new(RoundTrips::new()) })
    }
}

/// The timestamp of a packet that is queued.
#[derive(Clone, Copy, Default)]
struct Waiting {
    id: u32,
    /// None once it has left.
    stamp: Option<Stamp>,
    connection: u64,
}

/// One direction's part.
pub(crate) struct Passing {
    shared: Shared,
    /// Empty for the download.
    waiting: Box<[Waiting]>,
}

impl Passing {
    pub(crate) fn new(shared: Shared, direction: Direction) -> Passing {
        let waiting = match direction {
            Direction::Upload => vec![Waiting::default(); QUEUED],
            Direction::Download => Vec::new(),
        };
        Passing { shared, waiting: waiting.into_boxed_slice() }
    }

    /// `packet`, which starts with `bytes`, arrives.
    #[inline]
    pub(crate) fn arrived(&mut self, packet: &Packet, bytes: &[u8], now: Time) {
        if !packet.flags.has(Flags::TCP) {
            return;
        }
        let Some(view) = ack_view(LINK, bytes).filter(|view| view.timestamp != (0, 0)) else {
            return;
        };
        let connection = self.shared.connections.of(bytes);
        if self.waiting.is_empty() {
            self.shared.trips.echoed(connection, view.timestamp.1, now);
            self.shared.trips.came(connection, view.timestamp.0, now);
            return;
        }
        let has_data = view.has_payload || view.flags & AckView::SYN != 0;
        let stamp = Some(Stamp { value: view.timestamp.0, has_data });
        self.waiting[id(packet) as usize % QUEUED] = Waiting { id: id(packet), stamp, connection };
    }

    /// `packet` is let go.
    #[inline]
    pub(crate) fn released(&mut self, packet: &Packet, now: Time) {
        let Some(waiting) = self.waiting.get_mut(id(packet) as usize % QUEUED) else { return };
        if waiting.id == id(packet) {
            if let Some(stamp) = waiting.stamp.take() {
                self.shared.trips.sent(waiting.connection, stamp, now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use simnel_core::flow::{FlowHasher, HashKey};
    use simnel_core::wire::Classifier;
    use simnel_core::Span;

    use super::*;

    /// IPv4 and TCP with timestamps, without data, between a host at home and one beyond.
    fn segment(direction: Direction, port: u16, value: u32, echo: u32) -> Vec<u8> {
        let (home, far) = ([192, 0, 2, 1], [198, 51, 100, 1]);
        let (ends, ports) = match direction {
            Direction::Upload => ([home, far], [port, 443]),
            Direction::Download => ([far, home], [443, port]),
        };
        let mut bytes = vec![0x45, 0, 0, 52, 0, 0, 0, 0, 64, 6, 0, 0];
        bytes.extend(ends.concat());
        bytes.extend(ports.map(u16::to_be_bytes).concat());
        bytes.extend([0, 0, 0, 1, 0, 0, 0, 1, 0x80, 0x10, 0xff, 0xff, 0, 0, 0, 0, 1, 1, 8, 10]);
        bytes.extend([value, echo].map(u32::to_be_bytes).concat());
        bytes
    }

    fn described(bytes: &[u8], id: u64) -> Packet {
        let hasher = FlowHasher::of_flows(HashKey::new(1, 2));
        Classifier::new(hasher).classify(LINK, bytes, bytes.len() as u32, id)
    }

    fn both() -> (Passing, Passing, Arc<RoundTrips>) {
        let shared = Shared::new().unwrap();
        let trips = Arc::clone(&shared.trips);
        let upload = Passing::new(shared.clone(), Direction::Upload);
        (upload, Passing::new(shared, Direction::Download), trips)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(1000 + ms)
    }

    #[test]
    fn our_own_queue_is_no_part_of_a_round_trip() {
        let (mut upload, mut download, trips) = both();
        let (up, other) = (segment(Direction::Upload, 9, 50, 7), [0x60; 60]);
        // One that was queued for 200 ms, one that was dropped, and one of another protocol.
        upload.arrived(&described(&up, 1), &up, at(0));
        upload.arrived(&described(&other, 2), &other, at(1));
        let dropped = segment(Direction::Upload, 9, 60, 7);
        upload.arrived(&described(&dropped, 3), &dropped, at(2));
        upload.released(&described(&up, 1), at(200));
        upload.released(&described(&other, 2), at(201));
        for (ms, echo) in [(225, 49), (230, 50), (231, 60)] {
            let down = segment(Direction::Download, 9, 1, echo);
            download.arrived(&described(&down, 4), &down, at(ms));
            // Of another connection.
            let down = segment(Direction::Download, 10, 1, echo);
            download.arrived(&described(&down, 5), &down, at(ms));
        }
        let mut taken = Vec::new();
        trips.take(|_, rtt| taken.push(rtt.as_micros().div_ceil(1000)));
        assert_eq!(taken, [30]);
    }

    /// A far end acknowledges data and SYN by itself, and may be silent about all else until it has
    /// something to say.
    #[test]
    fn a_far_end_that_paused_has_answered_what_asks_for_an_answer() {
        const SYN: u8 = 2;
        for (flags, payload, expected) in [(0, 0, 0), (0, 1, 1), (SYN, 0, 1), (SYN, 1, 1)] {
            let (mut upload, mut download, trips) = both();
            let mut up = segment(Direction::Upload, 9, 50, 7);
            up[33] |= flags;
            up.extend(vec![0; payload]);
            let length = up.len() as u8;
            up[3] = length;
            upload.arrived(&described(&up, 1), &up, at(0));
            upload.released(&described(&up, 1), at(0));
            let down = segment(Direction::Download, 9, 1, 50);
            download.arrived(&described(&down, 2), &down, at(300));
            let mut taken = 0;
            trips.take(|_, _| taken += 1);
            assert_eq!(taken, expected, "{flags} {payload}");
        }
    }

    /// Prints what a packet costs, with `--release` and `--nocapture`.
    #[test]
    fn every_packet_of_many_connections_may_show_one() {
        const PACKETS: u32 = 200_000;
        const CONNECTIONS: u16 = 64;
        let (mut upload, mut download, trips) = both();
        let make = |direction| {
            let one = |n| segment(direction, n as u16 % CONNECTIONS + 1, n, n);
            (1..=1000).map(one).map(|bytes| (described(&bytes, 0), bytes)).collect::<Vec<_>>()
        };
        let (ups, downs) = (make(Direction::Upload), make(Direction::Download));
        let (mut found, start) = (0, Instant::now());
        for n in 0..PACKETS {
            let (packet, bytes) = &ups[n as usize % ups.len()];
            let mut packet = *packet;
            packet.handle = n.into();
            let now = at(0) + Span::from_micros(20) * u64::from(n);
            upload.arrived(&packet, bytes, now);
            upload.released(&packet, now);
            let (packet, bytes) = &downs[n as usize % downs.len()];
            download.arrived(packet, bytes, now + Span::from_millis(1));
            if n % 1000 == 999 {
                trips.take(|_, _| found += 1);
            }
        }
        let each = start.elapsed().as_nanos() / u128::from(2 * PACKETS);
        println!("{each} ns a packet, {found} round-trip times taken");
        // 64 connections fill 28 of 32 places on average.
        assert!(found >= PACKETS / 1000 * 16, "{found}");
    }
}
