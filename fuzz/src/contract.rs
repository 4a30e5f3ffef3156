//! The contract of `qdisc::Qdisc`, driven by random operations.
//!
//! After every operation: packets in = out + dropped + queued, by the discipline's own count and by
//! ours; every handle leaves once, unchanged but for ECN and DSCP; a queued packet means a next
//! event; an error of `configure` changes nothing. In the end: the queue drains by following
//! `next_event`, in a bounded number of steps.

use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::framing::{Cells, Framing};
use simnel_core::packet::Flags;
use simnel_core::qdisc::cake::{self, AckFilter, DiffservMode, FlowMode, HostLoad};
use simnel_core::qdisc::{delay, fifo, line, DropReason, PacketOwner};
use simnel_core::tc::Config;
use simnel_core::wire::{ack_view, AckView, Classifier, LinkLayer};
use simnel_core::{Packet, Qdisc, Rate, Span, Time};

use crate::input::Input;

/// Packets in one run: enough for every queue to overflow, few enough for thousands of runs a
/// second.
const MAX_PACKETS: usize = 2_000;
/// Calls of `dequeue` without a packet that draining may take, for each packet queued and beyond:
/// a shaper may wake early, and an AQM may move its clock, but not forever.
const IDLE_STEPS_PER_PACKET: usize = 16;

/// Where a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Queued,
    Sent,
    Dropped(DropReason),
}

/// What went in under one handle, and what became of it.
struct Entry {
    packet: Packet,
    frame: Vec<u8>,
    place: Place,
}

/// Owner of all packets of a run; a handle is an index plus [`Ledger::BASE`].
#[derive(Default)]
struct Ledger {
    entries: Vec<Entry>,
    queued: u64,
    queued_bytes: u64,
    sent: u64,
    sent_bytes: u64,
    dropped: [u64; DropReason::COUNT],
}

impl Ledger {
    /// Handles are opaque: none of them is a small number.
    const BASE: u64 = 0xfeed_0000_0000_0000;

    fn admit(&mut self, mut packet: Packet, frame: Vec<u8>) -> Packet {
        packet.handle = Ledger::BASE + self.entries.len() as u64;
        self.entries.push(Entry { packet, frame, place: Place::Queued });
        self.queued += 1;
        self.queued_bytes += u64::from(packet.len);
        packet
    }

    /// `packet` has left the discipline; it must be one that was in there, and the same still.
    fn leave(&mut self, packet: &Packet, place: Place) {
        let index = packet.handle.wrapping_sub(Ledger::BASE) as usize;
        let entry = self.entries.get_mut(index).expect("a handle that nobody handed in");
        assert_eq!(entry.place, Place::Queued, "handle {index} left twice, now {place:?}");
        entry.place = place;
        let was = entry.packet;
        assert_eq!(
            (packet.flow, packet.src_host, packet.dst_host, packet.len, packet.truesize),
            (was.flow, was.src_host, was.dst_host, was.len, was.truesize),
        );
        assert_eq!((packet.gso_size, packet.gso_segs), (was.gso_size, was.gso_segs));
        assert_eq!((packet.mark, packet.class), (was.mark, was.class));
        let added = Flags(packet.flags.0 & !was.flags.0);
        assert_eq!(packet.flags.0 & was.flags.0, was.flags.0, "a flag was lost");
        assert_eq!(added.0 & !(Flags::MARKED | Flags::WASHED).0, 0, "a flag was invented");
        if packet.dscp() != was.dscp() {
            assert!(packet.dscp() == 0 && added.has(Flags::WASHED), "DSCP changed, not washed");
        }
        if packet.tos & 3 != was.tos & 3 {
            assert!(packet.tos & 3 == 3 && was.tos & 3 != 0 && added.has(Flags::MARKED));
        }
        self.queued -= 1;
        self.queued_bytes -= u64::from(packet.len);
    }
}

impl PacketOwner for Ledger {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        self.leave(&packet, Place::Dropped(reason));
        self.dropped[reason as usize] += 1;
    }

    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        let index = packet.handle.wrapping_sub(Ledger::BASE) as usize;
        let entry = self.entries.get(index).expect("a view of a handle that nobody handed in");
        assert_eq!(entry.place, Place::Queued, "a view of a packet that has left");
        ack_view(LinkLayer::Ethernet, &entry.frame)
    }
}

/// A discipline with its ledger and its clock.
struct Run {
    qdisc: Box<dyn Qdisc>,
    ledger: Ledger,
    now: Time,
}

/// Runs the operations that `bytes` stand for on a discipline made by `build`.
pub fn exercise(build: fn(u8) -> Box<dyn Qdisc>, bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut run = Run {
        qdisc: build(input.u8()),
        ledger: Ledger::default(),
        now: Time(100_000_000_000 + input.magnitude() / 2),
    };
    let classifier = Classifier::new(FlowHasher::new(HashKey::new(3, 4), 64));
    while !input.is_empty() && run.ledger.entries.len() < MAX_PACKETS {
        match input.u8() % 16 {
            0..=4 => {
                let (packet, copies) = random_packet(&mut input);
                for _ in 0..copies {
                    run.enqueue(packet, Vec::new());
                }
            }
            5..=6 => {
                let length = usize::from(input.u8());
                let frame = input.bytes(length).to_vec();
                let wire_len = (frame.len() as u32).saturating_add(u32::from(input.u8()) * 6);
                let packet = classifier.classify(LinkLayer::Ethernet, &frame, wire_len, 0);
                run.enqueue(packet, frame);
            }
            7..=10 => {
                for _ in 0..=input.u8() % 16 {
                    run.dequeue();
                }
            }
            11..=12 => run.now += Span(input.magnitude() % 100_000_000_000),
            13 => run.sleep_until_next_event(),
            14 => run.configure(&random_config(&mut input)),
            _ => run.reset(),
        }
        run.check();
    }
    run.drain();
}

impl Run {
    fn enqueue(&mut self, packet: Packet, frame: Vec<u8>) {
        let packet = self.ledger.admit(packet, frame);
        self.qdisc.enqueue(packet, self.now, &mut self.ledger);
    }

    fn dequeue(&mut self) -> bool {
        let Some(packet) = self.qdisc.dequeue(self.now, &mut self.ledger) else { return false };
        self.ledger.leave(&packet, Place::Sent);
        self.ledger.sent += 1;
        self.ledger.sent_bytes += u64::from(packet.len);
        true
    }

    fn sleep_until_next_event(&mut self) {
        if let Some(event) = self.qdisc.next_event() {
            self.now = self.now.max(event);
        }
    }

    fn configure(&mut self, config: &Config) {
        let (before, backlog) = (self.qdisc.config(), self.qdisc.backlog());
        if self.qdisc.configure(config, self.now, &mut self.ledger).is_err() {
            assert_eq!(self.qdisc.config(), before, "an error changed the settings");
            assert_eq!(self.qdisc.backlog(), backlog, "an error changed the queue");
        }
    }

    fn reset(&mut self) {
        self.qdisc.reset(&mut self.ledger);
        assert_eq!(self.ledger.queued, 0, "reset kept packets");
    }

    /// What must hold between any two operations.
    fn check(&self) {
        let (backlog, snapshot) = (self.qdisc.backlog(), self.qdisc.snapshot());
        let (ledger, totals) = (&self.ledger, &snapshot.totals);
        assert_eq!(
            (u64::from(backlog.packets), backlog.bytes),
            (ledger.queued, ledger.queued_bytes)
        );
        assert_eq!(snapshot.backlog, backlog);
        assert_eq!(totals.enqueued_packets, ledger.entries.len() as u64);
        assert_eq!((totals.sent_packets, totals.sent_bytes), (ledger.sent, ledger.sent_bytes));
        assert_eq!(totals.dropped, ledger.dropped);
        assert_eq!(
            totals.enqueued_packets,
            totals.sent_packets + totals.drops() + u64::from(backlog.packets),
            "packets in = out + dropped + queued"
        );
        assert_eq!(self.qdisc.next_event().is_some(), backlog.packets > 0, "next event");
    }

    /// Follows `next_event` until the queue is empty.
    fn drain(&mut self) {
        let mut idle = (self.ledger.queued as usize + 1) * IDLE_STEPS_PER_PACKET;
        while self.ledger.queued > 0 {
            self.sleep_until_next_event();
            if !self.dequeue() && self.ledger.queued > 0 {
                idle -= 1;
                assert!(idle > 0, "{} packets never come out", self.ledger.queued);
            }
        }
        self.check();
        assert!(self.qdisc.dequeue(self.now, &mut self.ledger).is_none());
        assert!(self.ledger.entries.iter().all(|entry| entry.place != Place::Queued));
    }
}

/// A packet of random fields, and how many of it to enqueue.
fn random_packet(input: &mut Input) -> (Packet, u8) {
    let shape = input.u8();
    let len = match shape & 3 {
        0 => 1514,
        1 => u32::from(input.u8()),
        2 => u32::from(input.u16()),
        _ => input.magnitude().min(1 << 19) as u32,
    };
    let mut packet = Packet::new(0, len);
    // Few flows and hosts, so that they meet; now and then one of all bits.
    let who = input.u8();
    packet.flow = if shape & 4 == 0 { u64::from(who & 15) } else { input.u64() };
    packet.src_host = u32::from(who >> 4 & 3) + 1;
    packet.dst_host = u32::from(who >> 6);
    packet.tos = input.u8();
    packet.flags = match shape >> 3 & 3 {
        0 => Flags::IPV4,
        1 => Flags::IPV6,
        2 => Flags::IPV4 | Flags::TCP,
        _ => Flags::ARP,
    };
    if shape & 32 != 0 {
        (packet.mark, packet.class) = (input.u32(), input.u32());
        packet.truesize = input.magnitude().min(1 << 24) as u32;
        packet.network_offset = input.u8();
    }
    if shape & 64 != 0 {
        // What an owner may hand in: segments of at least the least MSS that Linux sends (48), as
        // many as the length has. `rate::ByteTime` has room for no more.
        packet.header_len = input.u8();
        packet.gso_size = input.u16().max(48);
        packet.len = packet.len.clamp(u32::from(packet.header_len) + 1, 65_535 + 14);
        let payload = packet.len - u32::from(packet.header_len);
        packet.gso_segs = payload.div_ceil(u32::from(packet.gso_size)) as u16;
    }
    let copies = if shape & 128 == 0 { 1 } else { input.u8() };
    (packet, copies)
}

/// Settings within the documented ranges; often another discipline's.
fn random_config(input: &mut Input) -> Config {
    match input.u8() % 4 {
        0 => Config::Cake(random_cake(input)),
        1 => Config::Fifo(random_fifo(input)),
        2 => Config::Delay(random_delay(input)),
        _ => Config::Line(line::Params {
            fifo: random_fifo(input),
            rate: random_rate(input),
            framing: random_framing(input),
            delay: random_delay(input),
        }),
    }
}

fn random_rate(input: &mut Input) -> Rate {
    match input.u8() {
        0 => Rate(0),
        // Up to 400 Gbit/s; not so slow that a packet takes longer than the clock lasts.
        _ => Rate(input.magnitude().clamp(64, 50_000_000_000)),
    }
}

fn random_fifo(input: &mut Input) -> fifo::Params {
    use fifo::Kind::{Bfifo, Pfifo, PfifoHeadDrop};
    let kind = [Pfifo, Bfifo, PfifoHeadDrop][usize::from(input.u8() % 3)];
    // Limits that a test can reach, or that are allocated without harm.
    let limit = input.magnitude().min(1 << 14) as u32;
    fifo::Params { kind, limit: (limit != 0).then_some(limit) }
}

fn random_delay(input: &mut Input) -> delay::Params {
    let span = |input: &mut Input| Span(input.magnitude() % 10_000_000_000);
    let (delay, jitter) = (span(input), span(input));
    delay::Params { delay, jitter, limit: input.magnitude().clamp(1, 1 << 12) as u32 }
}

fn random_framing(input: &mut Input) -> Framing {
    Framing {
        compensate: input.u8() & 1 != 0,
        overhead: (input.u16() % 321) as i16 - 64,
        mpu: input.u16() % 257,
        cells: [Cells::None, Cells::Atm, Cells::Ptm][usize::from(input.u8() % 3)],
    }
}

fn random_cake(input: &mut Input) -> cake::Params {
    use {DiffservMode::*, FlowMode::*};
    let flow_modes =
        [Flowblind, Srchost, Dsthost, Hosts, Flows, DualSrchost, DualDsthost, TripleIsolate];
    let switches = input.u8();
    let on = |bit: u8| switches & (1 << bit) != 0;
    let mut params = cake::Params {
        bandwidth: random_rate(input),
        autorate_ingress: on(0),
        diffserv: [Diffserv3, Diffserv4, Diffserv8, Besteffort, Precedence]
            [usize::from(input.u8() % 5)],
        flow_mode: flow_modes[usize::from(input.u8() % 8)],
        nat: on(1),
        wash: on(2),
        ingress: on(3),
        ack_filter: [AckFilter::Off, AckFilter::Conservative, AckFilter::Aggressive]
            [usize::from(input.u8() % 3)],
        split_gso: on(4),
        framing: random_framing(input),
        memlimit: input.magnitude().min(1 << 28) as u32,
        fwmark: if on(5) { input.u32() } else { 0 },
        queues: 8 << (input.u8() % 8),
        host_prefix: input.u8() % 128 + 1,
        host_load: if on(6) { HostLoad::Active } else { HostLoad::Bulk },
        ..cake::Params::default()
    };
    params.set_rtt(Span::from_micros(input.magnitude().clamp(1, 1_000_000_000)));
    params
}
