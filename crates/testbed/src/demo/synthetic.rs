//! The part of the demonstration that needs no root: simple senders in virtual time.
//!
//! Each direction is simulated by itself: bulk senders and a 20 ms probe feed the line, through the
//! discipline under demonstration if there is one. A sender keeps a window of full-sized packets in
//! flight. It doubles the window each round trip until its first loss, then adds one a round trip
//! and halves it after each loss. That is AIMD: RFC 5681 without retransmission, timestamps or
//! delayed acknowledgements. Acknowledgements come back after a fixed delay: the other direction's
//! queue does not hold them up, as it would in reality. An echo's time is the sum of its two
//! directions'.
//!
//! Deterministic: integers, events ordered by (time, number), no randomness. It shows queues, not
//! TCP.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use simnel_core::framing::Framing;
use simnel_core::packet::Flags;
use simnel_core::qdisc::line::{self, Line};
use simnel_core::qdisc::{delay, fifo, Device, Discard};
use simnel_core::{Packet, Qdisc, Rate, Span, Time};

use super::report::Phase;
use super::{shaped, Factory, Options, IDLE, PROBE_INTERVAL, RAMP};
use crate::probe::Echo;

const FRAME: u32 = 1514;
const PAYLOAD: u64 = 1448;
/// G.711 over RTP, UDP, IPv4 and Ethernet.
const PROBE_FRAME: u32 = 214;
/// RFC 6928.
const INITIAL_WINDOW: u32 = 10;
/// RFC 6298's lower bound, and far beyond any delay that a FIFO of the default size makes here.
const TIMEOUT: Span = Span::from_secs(5);

/// One phase, without (None) or with a discipline in front of the line.
pub(super) fn run(options: &Options, factory: Option<Factory>) -> Phase {
    let simulate = |rate: Rate| {
        let gateway = factory.map(|factory| factory(shaped(rate, options.share)));
        Simulation::new(options, rate, gateway).run()
    };
    let (down, up) = (simulate(options.download), simulate(options.upload));
    let probes = down.probes.len().min(up.probes.len());
    let echoes = (0..probes).map(|number| {
        let both = down.probes[number].zip(up.probes[number]);
        Echo {
            sent: PROBE_INTERVAL * number as u32,
            rtt: both.map(|(down, up)| Duration::from_nanos((down + up).0)),
        }
    });
    let (idle, load): (Vec<_>, Vec<_>) = echoes.partition(|echo| echo.sent < IDLE);
    let loaded = load.partition_point(|echo| echo.sent < IDLE + RAMP);
    let (start, loaded) = load.split_at(loaded);
    Phase::new(&idle, start, loaded, down.goodput, up.goodput)
}

/// Results of one direction's simulation.
struct Outcome {
    /// One-way delays of the probes; None if lost.
    probes: Vec<Option<Span>>,
    goodput: Rate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The next probe is due.
    Probe,
    /// A sender learns that its packet arrived.
    Acknowledged { sender: usize, number: u32 },
    /// A sender looks whether everything in flight was lost.
    Timeout { sender: usize, expected: u32 },
    /// The gateway's discipline or the line may have something.
    Drive,
}

#[derive(Clone, Debug, Default)]
struct Sender {
    window: u32,
    /// Acknowledgements since the window last grew.
    credit: u32,
    slow_start: bool,
    next: u32,
    /// The oldest packet in flight.
    expected: u32,
    /// Losses before this packet belong to a reduction that was already made.
    recovery: u32,
}

struct Simulation<'a> {
    options: &'a Options,
    gateway: Option<Box<dyn Qdisc>>,
    line: Line,
    senders: Vec<Sender>,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    count: u64,
    driven: Option<Time>,
    end: Time,
    sent_probes: u32,
    probes: BTreeMap<u32, Span>,
    delivered: u64,
}

fn span(duration: Duration) -> Span {
    Span(duration.as_nanos() as u64)
}

impl<'a> Simulation<'a> {
    fn new(options: &'a Options, rate: Rate, gateway: Option<Box<dyn Qdisc>>) -> Simulation<'a> {
        let params = line::Params {
            fifo: fifo::Params { kind: fifo::Kind::Pfifo, limit: Some(options.fifo) },
            rate,
            framing: Framing::default(),
            delay: delay::Params {
                delay: Span(options.rtt.0 / 2),
                jitter: Span::ZERO,
                limit: 100_000,
            },
        };
        let load = Duration::from_secs(u64::from(options.seconds));
        Simulation {
            options,
            gateway,
            line: Line::new(&params, &Device::default()).expect("memory for a line"),
            senders: vec![Sender::default(); options.flows],
            events: BinaryHeap::new(),
            count: 0,
            driven: None,
            end: Time::ZERO + span(IDLE + load),
            sent_probes: 0,
            probes: BTreeMap::new(),
            delivered: 0,
        }
    }

    fn run(mut self) -> Outcome {
        let loaded = Time::ZERO + span(IDLE);
        self.at(Time::ZERO, Event::Probe);
        for sender in 0..self.senders.len() {
            // A timeout from idleness: starts the sender.
            self.at(loaded, Event::Timeout { sender, expected: 0 });
        }
        while let Some(Reverse((now, _, event))) = self.events.pop() {
            match event {
                Event::Probe if now < self.end => {
                    let mut packet = Packet::new(u64::from(self.sent_probes), PROBE_FRAME);
                    describe(&mut packet, 0);
                    self.sent_probes += 1;
                    self.offer(packet, now);
                    self.at(now + span(PROBE_INTERVAL), Event::Probe);
                }
                Event::Probe => {}
                Event::Acknowledged { sender, number } => self.acknowledged(sender, number, now),
                Event::Timeout { sender, expected } => self.timeout(sender, expected, now),
                // One that an earlier one has taken the place of.
                Event::Drive if self.driven != Some(now) => continue,
                Event::Drive => self.driven = None,
            }
            self.drive(now);
        }
        let measured = self.end.since(loaded + span(RAMP)).0.max(1);
        let bytes = u128::from(self.delivered * PAYLOAD);
        Outcome {
            probes: (0..self.sent_probes).map(|number| self.probes.get(&number).copied()).collect(),
            goodput: Rate((bytes * 1_000_000_000 / u128::from(measured)) as u64),
        }
    }

    fn at(&mut self, time: Time, event: Event) {
        self.count += 1;
        self.events.push(Reverse((time, self.count, event)));
    }

    /// Hands a packet to the gateway, or to the line itself.
    fn offer(&mut self, packet: Packet, now: Time) {
        match &mut self.gateway {
            Some(gateway) => gateway.enqueue(&packet, now, &mut Discard),
            None => self.line.enqueue(&packet, now, &mut Discard),
        }
    }

    /// Moves what is due from the gateway to the line and from the line to its end.
    fn drive(&mut self, now: Time) {
        if let Some(gateway) = &mut self.gateway {
            while let Some(packet) = gateway.dequeue(now, &mut Discard) {
                self.line.enqueue(packet, now, &mut Discard);
            }
        }
        while let Some(&mut packet) = self.line.dequeue(now, &mut Discard) {
            self.deliver(packet, now);
        }
        let gateway = self.gateway.as_ref().and_then(|gateway| gateway.next_event());
        let due = [gateway, self.line.next_event()].into_iter().flatten().min();
        if let Some(due) = due.map(|due| due.max(Time(now.0 + 1))) {
            if self.driven.is_none_or(|driven| due < driven) {
                self.driven = Some(due);
                self.at(due, Event::Drive);
            }
        }
    }

    fn deliver(&mut self, packet: Packet, now: Time) {
        let number = packet.handle as u32;
        match (packet.handle >> 32) as usize {
            0 => {
                let sent = Time::ZERO + span(PROBE_INTERVAL) * u64::from(number);
                self.probes.insert(number, now.since(sent));
            }
            flow => {
                let measured = Time::ZERO + span(IDLE + RAMP);
                if measured <= now && now < self.end {
                    self.delivered += 1;
                }
                let back = now + Span(self.options.rtt.0 / 2);
                self.at(back, Event::Acknowledged { sender: flow - 1, number });
            }
        }
    }

    fn acknowledged(&mut self, sender: usize, number: u32, now: Time) {
        let state = &mut self.senders[sender];
        if number < state.expected {
            return;
        }
        // Flows are not reordered: what was jumped over is lost.
        let lost = number > state.expected;
        if lost && state.expected >= state.recovery {
            state.window = (state.window / 2).max(2);
            (state.credit, state.slow_start, state.recovery) = (0, false, state.next);
        }
        state.expected = number + 1;
        if state.slow_start {
            state.window += 1;
        } else {
            state.credit += 1;
            if state.credit >= state.window {
                (state.window, state.credit) = (state.window + 1, 0);
            }
        }
        self.fill_window(sender, now);
    }

    fn timeout(&mut self, sender: usize, expected: u32, now: Time) {
        if self.senders[sender].expected != expected || now >= self.end {
            return;
        }
        let state = &mut self.senders[sender];
        state.expected = state.next;
        (state.window, state.credit, state.slow_start) = (INITIAL_WINDOW, 0, true);
        self.fill_window(sender, now);
    }

    fn fill_window(&mut self, sender: usize, now: Time) {
        if now >= self.end {
            return;
        }
        loop {
            let state = &mut self.senders[sender];
            if state.next - state.expected >= state.window {
                break;
            }
            let handle = (sender as u64 + 1) << 32 | u64::from(state.next);
            state.next += 1;
            let mut packet = Packet::new(handle, FRAME);
            describe(&mut packet, sender as u32 + 1);
            packet.flags.set(Flags::TCP);
            self.offer(packet, now);
        }
        let expected = self.senders[sender].expected;
        self.at(now + TIMEOUT, Event::Timeout { sender, expected });
    }
}

/// Gives a packet the identity of a flow: number 0 is host 2's probe, others are host 1's.
fn describe(packet: &mut Packet, flow: u32) {
    // Any spread over the queues will do; this is Fibonacci hashing.
    packet.flow = u64::from(flow + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    (packet.src_host, packet.dst_host) = if flow == 0 { (1, 2) } else { (3, 4) };
    packet.flags.set(Flags::IPV4);
}
