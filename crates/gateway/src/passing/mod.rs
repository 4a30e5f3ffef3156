//! RTTs of passing TCP: what `simnel_autorate::RoundTrips` is told of a direction's packets, and
//! each connection's, for people to look at.
//!
//! An RTT is from this machine to the far end and back. An upload's segment counts from when it is
//! let go, so our own queue is no part of it. But its bytes are at hand only while it arrives. So a
//! note of the answer to await stays until the release, in the slot that the kernel's number of the
//! packet picks. A packet is forgotten if many others arrive while it is queued.
//!
//! All this costs some 80 ns a packet, and is done only while somebody asks.
//!
//! Times are of the real clock: each direction's discipline has one of its own (`pace.rs`).

mod overheard;
mod smoothed;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use simnel_autorate::{RoundTrips, Stamp};
use simnel_core::packet::Flags;
use simnel_core::wire::{ack_view, awaited_ack, AckView, FlowKeys};
use simnel_core::{Packet, Span, Time};

use crate::classify::LINK;
use crate::connections::Connections;
use crate::direction::Direction;
use crate::owner::id;
pub(crate) use overheard::Overheard;
use smoothed::Smoothed;

/// Packets that came after one while it was queued, before its timestamp is forgotten.
const QUEUED: usize = 4096;
/// Time for which a question is remembered: whoever wants to know asks again before.
const INTEREST: Span = Span::from_secs(10);

/// State that both directions share with whoever asks.
pub(crate) struct Shared {
    connections: Connections,
    trips: RoundTrips,
    smoothed: Smoothed,
    /// Nobody is interested from then on, in nanoseconds.
    until: AtomicU64,
}

impl Shared {
    /// Nothing is under way, and nobody has asked.
    pub(crate) fn new() -> std::io::Result<Arc<Shared>> {
        Ok(Arc::new(Shared {
            connections: Connections::new()?,
            trips: RoundTrips::new(),
            smoothed: Smoothed::new(),
            until: AtomicU64::new(0),
        }))
    }

    /// Keeps an eye on RTTs for a while from `now` on.
    pub(crate) fn ask(&self, now: Time) {
        self.until.store((now + INTEREST).0, Ordering::Relaxed);
    }

    /// RTTs that were found since they were last taken.
    pub(crate) fn trips(&self) -> &RoundTrips {
        &self.trips
    }

    /// The smoothed RTT of the connection that has packets with these keys, if it is known.
    pub(crate) fn rtt(&self, keys: FlowKeys) -> Option<Span> {
        self.smoothed.of(self.connections.of_keys(keys))
    }

    #[inline]
    fn is_asked(&self, now: Time) -> bool {
        now.0 < self.until.load(Ordering::Relaxed)
    }

    /// A segment of TCP, which starts with `bytes`, leaves for the line.
    pub(crate) fn left(&self, bytes: &[u8], now: Time) {
        let answer = ack_view(LINK, bytes).and_then(|view| Answer::to(&view, bytes));
        if let Some(answer) = answer {
            self.awaits(self.connections.of(bytes), answer, now);
        }
    }

    /// The far end of `connection` was asked for an answer.
    #[inline]
    fn awaits(&self, connection: u64, answer: Answer, now: Time) {
        match answer {
            Answer::Echo(stamp) => self.trips.sent(connection, stamp, now),
            Answer::Ack(ack) => self.trips.asked(connection, ack, now),
        }
    }

    /// A segment of TCP, which starts with `bytes`, came from the line.
    pub(crate) fn came(&self, bytes: &[u8], now: Time) {
        let Some(view) = ack_view(LINK, bytes) else { return };
        let connection = self.connections.of(bytes);
        let rtt = match view.timestamp {
            (0, 0) => self.trips.acknowledged(connection, view.ack, now),
            (value, echo) => {
                self.trips.came(connection, value, now);
                self.trips.echoed(connection, echo, now)
            }
        };
        if let Some(rtt) = rtt {
            self.smoothed.add(connection, rtt);
        }
    }
}

/// The answer that a queued packet's far end will give.
#[derive(Clone, Copy)]
enum Answer {
    /// The echo of a timestamp.
    Echo(Stamp),
    /// An acknowledgement, where there are no timestamps.
    Ack(u32),
}

impl Answer {
    /// The answer to the segment with this `view`, which starts with `bytes`.
    fn to(view: &AckView, bytes: &[u8]) -> Option<Answer> {
        match view.timestamp {
            (0, 0) => awaited_ack(LINK, bytes).map(Answer::Ack),
            (value, _) => {
                let has_data = view.has_payload || view.flags & AckView::SYN != 0;
                Some(Answer::Echo(Stamp { value, has_data }))
            }
        }
    }
}

/// A packet that is queued.
#[derive(Clone, Copy, Default)]
struct Waiting {
    id: u32,
    /// None once it has left.
    answer: Option<Answer>,
    connection: u64,
}

/// One direction's part.
pub(crate) struct Passing {
    shared: Arc<Shared>,
    /// Empty for the download.
    waiting: Box<[Waiting]>,
}

impl Passing {
    pub(crate) fn new(shared: Arc<Shared>, direction: Direction) -> Passing {
        let waiting = match direction {
            Direction::Upload => vec![Waiting::default(); QUEUED],
            Direction::Download => Vec::new(),
        };
        Passing { shared, waiting: waiting.into_boxed_slice() }
    }

    /// `packet`, which starts with `bytes`, arrives.
    #[inline]
    pub(crate) fn arrived(&mut self, packet: &Packet, bytes: &[u8], now: Time) {
        if packet.flags.has(Flags::TCP) && self.shared.is_asked(now) {
            self.look(packet, bytes, now);
        }
    }

    #[inline(never)]
    fn look(&mut self, packet: &Packet, bytes: &[u8], now: Time) {
        if self.waiting.is_empty() {
            self.shared.came(bytes, now);
            return;
        }
        let answer = ack_view(LINK, bytes).and_then(|view| Answer::to(&view, bytes));
        if answer.is_some() {
            let connection = self.shared.connections.of(bytes);
            let id = id(packet);
            self.waiting[id as usize % QUEUED] = Waiting { id, answer, connection };
        }
    }

    /// `packet` is let go.
    #[inline]
    pub(crate) fn released(&mut self, packet: &Packet, now: Time) {
        if !self.shared.is_asked(now) {
            return;
        }
        let Some(waiting) = self.waiting.get_mut(id(packet) as usize % QUEUED) else { return };
        if waiting.id != id(packet) {
            return;
        }
        if let Some(answer) = waiting.answer.take() {
            self.shared.awaits(waiting.connection, answer, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use simnel_core::flow::{FlowHasher, HashKey};
    use simnel_core::wire::{flow_keys, Classifier};

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

    fn both() -> (Passing, Passing, Arc<Shared>) {
        let shared = Shared::new().unwrap();
        shared.ask(at(0));
        let each = |direction| Passing::new(Arc::clone(&shared), direction);
        (each(Direction::Upload), each(Direction::Download), shared)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Span::from_millis(1000 + ms)
    }

    #[test]
    fn our_own_queue_is_no_part_of_a_round_trip() {
        let (mut upload, mut download, shared) = both();
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
        shared.trips().take(|_, rtt| taken.push(rtt.as_micros().div_ceil(1000)));
        assert_eq!(taken, [30]);
    }

    /// A far end acknowledges data and SYN by itself, and may be silent about all else until it has
    /// something to say.
    #[test]
    fn a_far_end_that_paused_has_answered_what_asks_for_an_answer() {
        const SYN: u8 = 2;
        for (flags, payload, expected) in [(0, 0, 0), (0, 1, 1), (SYN, 0, 1), (SYN, 1, 1)] {
            let (mut upload, mut download, shared) = both();
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
            shared.trips().take(|_, _| taken += 1);
            assert_eq!(taken, expected, "{flags} {payload}");
        }
    }

    /// The same without its timestamps: a SYN, or an acknowledgement with as much data.
    fn plain(direction: Direction, payload: u8, [sequence, ack]: [u32; 2], flags: u8) -> Vec<u8> {
        let mut bytes = segment(direction, 9, 0, 0);
        bytes.truncate(40);
        bytes[3] = 40 + payload;
        bytes[24..32].copy_from_slice(&[sequence, ack].map(u32::to_be_bytes).concat());
        (bytes[32], bytes[33]) = (0x50, flags);
        bytes.resize(40 + usize::from(payload), 0);
        bytes
    }

    #[test]
    fn a_connection_s_round_trips_are_smoothed_and_told_for_its_keys_either_way() {
        const SYN: u8 = 2;
        const ACK: u8 = 16;
        let (mut upload, mut download, shared) = both();
        let mut ms = 0;
        let mut trip = |up: Vec<u8>, down: Vec<u8>, rtt: u64| {
            ms += 1000;
            shared.ask(at(ms));
            upload.arrived(&described(&up, ms), &up, at(ms - 500));
            upload.released(&described(&up, ms), at(ms));
            download.arrived(&described(&down, 2), &down, at(ms + rtt));
            let told = [up, down].map(|bytes| shared.rtt(flow_keys(LINK, &bytes)));
            assert_eq!(told[0], told[1]);
            told[0].map(|rtt| rtt.as_micros().div_ceil(1000))
        };
        let (up, down) = (Direction::Upload, Direction::Download);
        let stamped = |port, value| {
            let mut sent = segment(up, port, value, 7);
            sent[33] |= SYN;
            (sent, segment(down, port, 1, value))
        };
        let (sent, echo) = stamped(7, 50);
        assert_eq!(trip(sent, echo, 40), Some(40));
        let (sent, echo) = stamped(7, 51);
        assert_eq!(trip(sent, echo, 120), Some(50));
        // One without timestamps: SYN, data, and a bare acknowledgement, which nobody answers.
        let answer = |ack| plain(down, 0, [1, ack], ACK);
        assert_eq!(trip(plain(up, 0, [99, 0], SYN), answer(100), 24), Some(24));
        assert_eq!(trip(plain(up, 30, [100, 1], ACK), answer(130), 32), Some(25));
        assert_eq!(trip(plain(up, 0, [130, 1], ACK), answer(130), 400), Some(25));
    }

    #[test]
    fn packets_are_looked_at_only_while_somebody_asks() {
        let (mut upload, mut download, shared) = both();
        let mut taken = |ms: u64, value| {
            let (up, down) = (
                segment(Direction::Upload, 9, value, 7),
                segment(Direction::Download, 9, 1, value),
            );
            upload.arrived(&described(&up, 1), &up, at(ms));
            upload.released(&described(&up, 1), at(ms));
            download.arrived(&described(&down, 2), &down, at(ms + 1));
            download.arrived(&described(&down, 2), &down, at(ms + 2));
            let mut taken = 0;
            shared.trips().take(|_, _| taken += 1);
            taken
        };
        taken(0, 49);
        assert_eq!(taken(9_000, 50), 0, "a pause, in which the far end had nothing to say");
        assert_eq!(taken(9_003, 51), 1);
        assert_eq!(taken(10_000, 52), 0);
        assert_eq!(taken(10_003, 53), 0);
        shared.ask(at(20_000));
        taken(20_000, 54);
        assert_eq!(taken(20_003, 55), 1);
    }

    /// Prints what a packet costs, with `--release` and `--nocapture`.
    #[test]
    fn every_packet_of_many_connections_may_show_one() {
        const PACKETS: u32 = 200_000;
        const CONNECTIONS: u16 = 64;
        let (mut upload, mut download, shared) = both();
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
            shared.ask(now);
            upload.arrived(&packet, bytes, now);
            upload.released(&packet, now);
            let (packet, bytes) = &downs[n as usize % downs.len()];
            download.arrived(packet, bytes, now + Span::from_millis(1));
            if n % 1000 == 999 {
                shared.trips().take(|_, _| found += 1);
            }
        }
        let each = start.elapsed().as_nanos() / u128::from(2 * PACKETS);
        println!("{each} ns a packet, {found} round-trip times taken");
        // 64 connections fill 28 of 32 places on average.
        assert!(found >= PACKETS / 1000 * 16, "{found}");
    }
}
