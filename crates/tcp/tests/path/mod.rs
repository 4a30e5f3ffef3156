//! Two endpoints and a path between them, for tests: delay, rate, a tail-drop queue, and whatever
//! the test wants done to single segments. Sender `a` sends data to `b`.

#![allow(dead_code)]

use std::collections::BTreeMap;

use simnel_core::packet::Ecn;
use simnel_core::time::{Span, Time};
use simnel_tcp::{Config, Endpoint, Segment};

/// Fate of a segment that enters the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    Pass,
    Drop,
    Mark,
    /// Arrives so much later than it would (and may be overtaken).
    Late(Span),
    /// Arrives twice.
    Twice,
}

/// Bytes of link and IP header on the wire.
pub const HEADERS: u64 = 34;

/// One direction.
pub struct Direction {
    pub delay: Span,
    /// Nanoseconds a byte; zero for no limit.
    pub ns_per_byte: u64,
    /// Segments that may wait.
    pub limit: usize,
    /// ECN-capable segments that find more than so many waiting are marked.
    pub mark_above: usize,
    free_at: Time,
    /// Departures of what waits or is being sent.
    waiting: std::collections::VecDeque<Time>,
    pub dropped: u64,
}

impl Direction {
    pub fn new(delay: Span) -> Direction {
        Direction {
            delay,
            ns_per_byte: 0,
            limit: usize::MAX,
            mark_above: usize::MAX,
            free_at: Time::ZERO,
            waiting: Default::default(),
            dropped: 0,
        }
    }

    /// Segments that wait or are being sent.
    pub fn queued(&self) -> usize {
        self.waiting.len()
    }

    /// Arrival time of a segment that enters now; None if the queue is full.
    fn enter(&mut self, segment: &mut Segment, now: Time) -> Option<Time> {
        while self.waiting.front().is_some_and(|departure| *departure <= now) {
            self.waiting.pop_front();
        }
        if self.waiting.len() > self.limit {
            self.dropped += 1;
            return None;
        }
        if self.waiting.len() > self.mark_above && segment.ecn != Ecn::NotEct {
            segment.ecn = Ecn::Ce;
        }
        let bytes = u64::from(segment.wire_len()) + HEADERS;
        self.free_at = self.free_at.max(now) + Span(bytes * self.ns_per_byte);
        if self.ns_per_byte > 0 {
            self.waiting.push_back(self.free_at);
        }
        Some(self.free_at + self.delay)
    }
}

/// A segment seen entering the path: from `a`?, time, segment.
pub type Seen = (bool, Time, Segment);

/// The decision on the fate of segments.
pub type Decide<'t> = Box<dyn FnMut(u64, &Segment) -> Fate + 't>;

pub struct Path<'t> {
    pub a: Endpoint,
    pub b: Endpoint,
    pub there: Direction,
    pub back: Direction,
    pub now: Time,
    /// Decides on each data segment of `a`: its number among these (from 1), and itself.
    pub fate: Decide<'t>,
    pub data_sent: u64,
    pub trace: Option<Vec<Seen>>,
    flying: BTreeMap<(Time, u64), (bool, Segment)>,
    sequence: u64,
    pub events: u64,
}

impl<'t> Path<'t> {
    /// A path of round-trip time `rtt` without other limits.
    pub fn new(config: &Config, rtt: Span) -> Path<'t> {
        Path::between(config, config, rtt)
    }

    pub fn between(a: &Config, b: &Config, rtt: Span) -> Path<'t> {
        Path {
            a: Endpoint::new(a),
            b: Endpoint::new(b),
            there: Direction::new(Span(rtt.0 / 2)),
            back: Direction::new(Span(rtt.0 - rtt.0 / 2)),
            now: Time::ZERO,
            fate: Box::new(|_, _| Fate::Pass),
            data_sent: 0,
            trace: None,
            flying: BTreeMap::new(),
            sequence: 0,
            events: 0,
        }
    }

    pub fn connect(&mut self) {
        self.b.listen();
        self.a.connect(self.now);
        self.drain();
    }

    pub fn drain(&mut self) {
        loop {
            let mut any = false;
            while let Some(segment) = self.a.poll_transmit(self.now) {
                any = true;
                self.send(true, segment);
            }
            while let Some(segment) = self.b.poll_transmit(self.now) {
                any = true;
                self.send(false, segment);
            }
            if !any {
                return;
            }
        }
    }

    fn send(&mut self, from_a: bool, mut segment: Segment) {
        if let Some(trace) = &mut self.trace {
            trace.push((from_a, self.now, segment));
        }
        let mut fate = Fate::Pass;
        if from_a && segment.len > 0 {
            self.data_sent += 1;
            fate = (self.fate)(self.data_sent, &segment);
        }
        let direction = if from_a { &mut self.there } else { &mut self.back };
        if fate == Fate::Drop {
            return;
        }
        let Some(mut arrival) = direction.enter(&mut segment, self.now) else { return };
        match fate {
            Fate::Mark if segment.ecn != Ecn::NotEct => segment.ecn = Ecn::Ce,
            Fate::Late(by) => arrival += by,
            Fate::Twice => self.fly(arrival, from_a, segment),
            _ => {}
        }
        self.fly(arrival, from_a, segment);
    }

    fn fly(&mut self, arrival: Time, from_a: bool, segment: Segment) {
        self.sequence += 1;
        self.flying.insert((arrival, self.sequence), (from_a, segment));
    }

    /// Time of the next event.
    pub fn next(&self) -> Option<Time> {
        let arrival = self.flying.first_key_value().map(|((time, _), _)| *time);
        [arrival, self.a.next_timer(), self.b.next_timer()].into_iter().flatten().min()
    }

    /// Lets one moment pass. False if nothing will ever happen again.
    pub fn step(&mut self) -> bool {
        let Some(next) = self.next() else { return false };
        self.now = self.now.max(next);
        self.events += 1;
        if let Some(entry) = self.flying.first_entry() {
            if entry.key().0 <= self.now {
                let (from_a, segment) = entry.remove();
                let to = if from_a { &mut self.b } else { &mut self.a };
                to.on_segment(&segment, self.now);
                self.drain();
                return true;
            }
        }
        if self.a.next_timer().is_some_and(|time| time <= self.now) {
            self.a.on_timer(self.now);
        }
        if self.b.next_timer().is_some_and(|time| time <= self.now) {
            self.b.on_timer(self.now);
        }
        self.drain();
        true
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Time) {
        while self.next().is_some_and(|next| next <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Runs until nothing happens any more, at most until `end`. True if it came to rest.
    pub fn run_out(&mut self, end: Time) -> bool {
        self.run_until(end);
        self.next().is_none()
    }
}

pub fn seconds(n: u64) -> Time {
    Time(n * 1_000_000_000)
}

pub fn millis(n: u64) -> Span {
    Span::from_millis(n)
}
