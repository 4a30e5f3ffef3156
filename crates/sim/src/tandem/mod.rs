//! A gateway's shaper and the line that it stands before, or behind: two queues in a row.
//!
//! Where a line's capacity changes, a second queue matters: that of the modem (upload) or of the
//! provider (download). It is a FIFO whose server follows the capacity. A [`Tandem`] is both as one
//! discipline on an unlimited line: *upload* shaper then FIFO, *download* FIFO then shaper. The
//! event loop knows nothing of it.
//!
//! A FIFO's departures follow from its arrivals and from the capacity over time. So each is known
//! when a packet comes; packets move on when the tandem is next asked. `next_event` is never later
//! than the earliest of both queues' next events, so nothing moves late.
//!
//! What a gateway's own programs send (DSCP [`OWN`]) does not pass its shaper. Of what passes TCP
//! timestamps are noted on the side of the line, see [`Tandem::stamps`].
//!
//! Invariants: order is kept in the FIFO, also when the way behind it becomes shorter. What came
//! and was not dropped is in exactly one of the queues.

use std::any::Any;
use std::collections::VecDeque;

use simnel_core::qdisc::{
    Backlog, Config, ConfigError, DropReason, Managed, PacketOwner, Qdisc, Snapshot,
};
use simnel_core::wire::AckView;
use simnel_core::{Packet, Rate, Span, Time};

use crate::schedule::Step;
use crate::setup::Direction;

/// DSCP of packets of the gateway's own: CS7.
pub const OWN: u8 = 56;
/// Timestamps that are kept until somebody takes them.
const MOST_STAMPS: usize = 4096;
/// Calls of a shaper in one turn.
const MOST_CALLS: u32 = 1 << 20;

/// A line's capacity and length over time.
#[derive(Clone, Debug, Default)]
pub struct Capacity {
    /// The rate from each time on, beginning at zero; a zero rate is an outage.
    pub rates: Vec<Step>,
    /// Additional delay from each time on.
    pub delays: Vec<(Time, Span)>,
    /// Bytes that the FIFO holds.
    pub buffer: u64,
}

impl Capacity {
    /// The rate at `now`.
    pub fn at(&self, now: Time) -> Rate {
        self.rates[..self.rates.partition_point(|step| step.at <= now)]
            .last()
            .map_or(Rate(0), |step| step.rate)
    }

    /// The additional delay at `now`.
    pub fn delay(&self, now: Time) -> Span {
        self.delays[..self.delays.partition_point(|(at, _)| *at <= now)]
            .last()
            .map_or(Span::ZERO, |(_, delay)| *delay)
    }

    /// Bytes that the line could carry between two times.
    pub fn bytes(&self, from: Time, to: Time) -> u64 {
        let ends = self.rates.iter().skip(1).map(|step| step.at).chain([Time::MAX]);
        let sum: u128 = self
            .rates
            .iter()
            .zip(ends)
            .map(|(step, end)| {
                let span = end.min(to).since(step.at.max(from));
                u128::from(step.rate.bytes()) * u128::from(span.0)
            })
            .sum();
        (sum / 1_000_000_000) as u64
    }

    /// Time at which `bytes` that start at `start` are through; `Time::MAX` if no rate follows.
    fn end(&self, start: Time, bytes: u32) -> Time {
        let mut left = u128::from(bytes) * 1_000_000_000;
        let mut at = start;
        let first = self.rates.partition_point(|step| step.at <= start).saturating_sub(1);
        for (n, step) in self.rates.iter().enumerate().skip(first) {
            let end = self.rates.get(n + 1).map_or(Time::MAX, |next| next.at);
            at = at.max(step.at);
            let rate = u128::from(step.rate.bytes());
            if rate == 0 {
                continue;
            }
            let needed = left.div_ceil(rate);
            if needed <= u128::from(end.since(at).0) {
                return at + Span(needed as u64);
            }
            left = left.saturating_sub(rate * u128::from(end.since(at).0));
            at = end;
        }
        Time::MAX
    }
}

/// The FIFO and the line behind it.
#[derive(Debug)]
struct Fifo {
    capacity: Capacity,
    free: Time,
    /// Packets by when they are at the other end, which never decreases.
    under_way: VecDeque<(Time, Packet)>,
    /// Those that are not sent: when they will be, and their bytes.
    waiting: VecDeque<(Time, u32)>,
    bytes: u64,
}

impl Fifo {
    fn push(&mut self, packet: Packet, now: Time, owner: &mut dyn PacketOwner) {
        while let Some((_, len)) = self.waiting.front().copied().filter(|(end, _)| *end <= now) {
            self.waiting.pop_front();
            self.bytes -= u64::from(len);
        }
        if self.bytes + u64::from(packet.len) > self.capacity.buffer {
            return owner.dropped(packet, DropReason::Overlimit);
        }
        self.bytes += u64::from(packet.len);
        let end = self.capacity.end(self.free.max(now), packet.len);
        self.free = end;
        self.waiting.push_back((end, packet.len));
        let last = self.under_way.back().map_or(Time::ZERO, |(due, _)| *due);
        self.under_way.push_back(((end + self.capacity.delay(end)).max(last), packet));
    }

    fn pop(&mut self, now: Time) -> Option<(Time, Packet)> {
        self.due().filter(|due| *due <= now)?;
        self.under_way.pop_front()
    }

    fn due(&self) -> Option<Time> {
        self.under_way.front().map(|(due, _)| *due)
    }
}

/// Bytes that have passed the shaper from the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Handed to it, and what it dropped.
    pub arrived: u64,
    /// Released by it.
    pub released: u64,
    /// Waiting in it.
    pub backlog: u64,
}

/// A timestamp of a passing TCP segment, on the side of the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The packet's flow.
    pub flow: u64,
    /// The timestamp, and the echo of the other end's; zero is none.
    pub value: u32,
    /// See `value`.
    pub echo: u32,
    /// The segment bears data, or SYN.
    pub has_data: bool,
    /// Time at which it passed.
    pub at: Time,
}

/// Shaper and FIFO.
pub struct Tandem {
    direction: Direction,
    shaper: Box<dyn Managed + Send>,
    fifo: Fifo,
    /// The gateway's own, which arrived.
    own: VecDeque<Packet>,
    /// The packet that was handed out last.
    out: Option<Packet>,
    clock: Time,
    passed: Passed,
    stamps: VecDeque<Stamp>,
}

impl Tandem {
    /// Both, empty.
    pub fn new(
        direction: Direction,
        shaper: Box<dyn Managed + Send>,
        capacity: Capacity,
    ) -> Tandem {
        Tandem {
            direction,
            shaper,
            fifo: Fifo {
                capacity,
                free: Time::ZERO,
                under_way: VecDeque::new(),
                waiting: VecDeque::new(),
                bytes: 0,
            },
            own: VecDeque::new(),
            out: None,
            clock: Time::ZERO,
            passed: Passed::default(),
            stamps: VecDeque::new(),
        }
    }

    /// Bytes and packets that the shaper has seen so far.
    pub fn passed(&self) -> Passed {
        Passed { backlog: self.shaper.backlog().bytes, ..self.passed }
    }

    /// The timestamps noted since the last call.
    pub fn stamps(&mut self) -> impl Iterator<Item = Stamp> + '_ {
        self.stamps.drain(..)
    }

    fn note(&mut self, packet: &Packet, at: Time, owner: &mut dyn PacketOwner) {
        let Some(view) = owner.ack_view(packet) else { return };
        let (value, echo) = view.timestamp;
        if (value, echo) == (0, 0) {
            return;
        }
        if self.stamps.len() == MOST_STAMPS {
            self.stamps.pop_front();
        }
        let has_data = view.has_payload || view.flags & AckView::SYN != 0;
        self.stamps.push_back(Stamp { flow: packet.flow, value, echo, has_data, at });
    }

    /// Moves packets from the first queue to the second one.
    fn advance(&mut self, now: Time, owner: &mut dyn PacketOwner) {
        match self.direction {
            Direction::Up => {
                for _ in 0..MOST_CALLS {
                    let Some(at) = self.shaper.next_event().filter(|at| *at <= now) else { break };
                    self.clock = self.clock.max(at);
                    let Some(packet) = self.shaper.dequeue(self.clock, owner).copied() else {
                        continue;
                    };
                    self.passed.released += u64::from(packet.len);
                    self.note(&packet, self.clock, owner);
                    self.fifo.push(packet, self.clock, owner);
                }
            }
            Direction::Down => {
                while let Some((at, packet)) = self.fifo.pop(now) {
                    if packet.tos >> 2 == OWN {
                        self.own.push_back(packet);
                        continue;
                    }
                    self.note(&packet, at, owner);
                    self.passed.arrived += u64::from(packet.len);
                    self.shaper.enqueue(&packet, at, owner);
                }
            }
        }
        self.clock = now;
    }
}

impl Qdisc for Tandem {
    fn enqueue(&mut self, packet: &Packet, now: Time, owner: &mut dyn PacketOwner) {
        self.advance(now, owner);
        if self.direction == Direction::Down || packet.tos >> 2 == OWN {
            return self.fifo.push(*packet, now, owner);
        }
        self.passed.arrived += u64::from(packet.len);
        self.shaper.enqueue(packet, now, owner);
    }

    fn dequeue(&mut self, now: Time, owner: &mut dyn PacketOwner) -> Option<&mut Packet> {
        self.advance(now, owner);
        self.out = match self.direction {
            Direction::Up => self.fifo.pop(now).map(|(_, packet)| packet),
            Direction::Down => self.own.pop_front().or_else(|| {
                let packet = self.shaper.dequeue(now, owner).copied();
                self.passed.released += packet.map_or(0, |packet| u64::from(packet.len));
                packet
            }),
        };
        self.out.as_mut()
    }

    fn next_event(&self) -> Option<Time> {
        let own = (!self.own.is_empty()).then_some(self.clock);
        [self.shaper.next_event(), self.fifo.due(), own].into_iter().flatten().min()
    }

    fn backlog(&self) -> Backlog {
        let all = self.shaper.backlog();
        let others = self.fifo.under_way.iter().map(|(_, packet)| packet).chain(&self.own);
        others.fold(all, |sum, packet| Backlog {
            packets: sum.packets + 1,
            bytes: sum.bytes + u64::from(packet.len),
        })
    }

    fn reset(&mut self, owner: &mut dyn PacketOwner) {
        self.shaper.reset(owner);
        let under_way = self.fifo.under_way.drain(..).map(|(_, packet)| packet);
        under_way.chain(self.own.drain(..)).for_each(|p| owner.dropped(p, DropReason::Reset));
        (self.fifo.bytes, self.fifo.free) = (0, Time::ZERO);
        self.fifo.waiting.clear();
    }
}

/// Settings and statistics are the shaper's.
impl Managed for Tandem {
    fn snapshot(&self) -> Snapshot {
        self.shaper.snapshot()
    }

    fn config(&self) -> Config {
        self.shaper.config()
    }

    fn prepare(&self, config: &Config, now: Time) -> Result<Box<dyn Managed + Send>, ConfigError> {
        self.shaper.prepare(config, now)
    }

    fn adopt(&mut self, spare: &mut dyn Managed, now: Time, owner: &mut dyn PacketOwner) {
        self.advance(now, owner);
        self.shaper.adopt(spare, now, owner);
    }
}

impl Tandem {
    /// `managed` as a tandem, if it is one.
    pub fn of(managed: &mut dyn Managed) -> Option<&mut Tandem> {
        (managed as &mut dyn Any).downcast_mut()
    }
}

#[cfg(test)]
mod tests;
