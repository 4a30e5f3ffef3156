//! The bottleneck: a discipline, and the line that asks it for a packet whenever it is free.
//!
//! Four kinds of line. *Unlimited*: takes whatever the discipline gives (it shapes itself). *Wire*:
//! one packet at a time, exactly `framed length / rate`, remainders carried; a packet is gone when
//! its last bit is. *Bucket*: Linux's htb or tbf in front of a fast wire; a packet goes at once as
//! long as tokens are not negative, and is then paid for; at most `burst` bytes are saved up.
//! *Trace*: Mahimahi's delivery opportunities.
//!
//! A line has at most one event that counts, at `planned`; earlier plans push another event, and
//! one that fires at another time than `planned` is ignored. Waking early is harmless.

use simnel_core::framing::Framing;
use simnel_core::qdisc::Qdisc;
use simnel_core::rate::{Arithmetic, ByteTime};
use simnel_core::{Packet, Rate, Span, Time};

use crate::pool::Pool;
use crate::record::LineRecord;
use crate::schedule::{Step, Trace, OPPORTUNITY_BYTES};

/// No event is planned.
const NEVER: Time = Time::MAX;

/// What a line is made of.
#[derive(Clone, Debug)]
pub(crate) enum Medium {
    /// No limit but the discipline's own.
    Unlimited,
    /// Exact serialisation.
    Wire,
    /// A token bucket of so many bytes.
    Bucket(u32),
    /// Delivery opportunities.
    Trace(Trace),
}

/// What came of asking a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Served {
    /// The packet with this handle is through; ask again.
    Through(u32),
    /// Nothing now: plan an event.
    Plan(Time),
    /// Nothing now, and no event but those that are planned.
    Idle,
}

/// A discipline and its line.
pub(crate) struct Line {
    /// The discipline.
    pub qdisc: Box<dyn Qdisc + Send>,
    /// What passed.
    pub record: LineRecord,
    direction: usize,
    medium: Medium,
    framing: Framing,
    rate: Option<Rate>,
    byte_time: ByteTime,
    remainder: u64,
    /// Wire: when the packet being sent ends. Bucket: when the tokens are back at zero.
    free: Time,
    /// Wire and trace: the packet being sent. Trace: how many of its bytes are not sent, and what
    /// is left of the present opportunity.
    sending: Option<u32>,
    unsent: u32,
    budget: u32,
    /// Trace: number of the next opportunity that was not used.
    opportunity: u64,
    steps: Vec<Step>,
    next_step: usize,
    planned: Time,
}

impl Line {
    /// An idle line. `rate` is None for an unlimited line, zero during an outage.
    pub fn new(
        direction: usize,
        qdisc: Box<dyn Qdisc + Send>,
        medium: Medium,
        rate: Option<Rate>,
        framing: Framing,
        steps: Vec<Step>,
        record: LineRecord,
    ) -> Line {
        let medium = if rate.is_none() && !matches!(medium, Medium::Trace(_)) {
            Medium::Unlimited
        } else {
            medium
        };
        Line {
            qdisc,
            record,
            direction,
            medium,
            framing,
            rate,
            byte_time: ByteTime::new(rate.unwrap_or_default(), Arithmetic::Exact),
            remainder: 0,
            free: Time::ZERO,
            sending: None,
            unsent: 0,
            budget: 0,
            opportunity: 0,
            steps,
            next_step: 0,
            planned: NEVER,
        }
    }

    /// Takes `packet` in. The caller then calls [`Line::serve`], unless the line is busy.
    #[inline]
    pub fn enqueue(&mut self, packet: Packet, now: Time, pool: &mut Pool) {
        self.qdisc.enqueue(packet, now, pool);
        self.record.arrived(pool.dropped[self.direction]);
    }

    /// True while a packet is being sent, with an event for its end: nothing else can happen.
    #[inline]
    pub fn is_busy(&self, now: Time) -> bool {
        self.sending.is_some() && self.free > now && matches!(self.medium, Medium::Wire)
    }

    /// True if the event that fires `now` is the one that counts.
    #[inline]
    pub fn is_due(&mut self, now: Time) -> bool {
        let due = self.planned == now;
        if due {
            self.planned = NEVER;
        }
        due
    }

    /// The next packet that is through at `now`, or what to do when there is none. To be called
    /// until it has nothing more.
    #[inline]
    pub fn serve(&mut self, now: Time, pool: &mut Pool) -> Served {
        match self.medium {
            Medium::Wire => self.serve_wire(now, pool),
            Medium::Unlimited => match self.take(now, pool) {
                Some(packet) => Served::Through(packet.handle as u32),
                None => self.ask_later(now),
            },
            Medium::Bucket(burst) => self.serve_bucket(burst, now, pool),
            Medium::Trace(_) => self.serve_trace(now, pool),
        }
    }

    #[inline]
    fn serve_wire(&mut self, now: Time, pool: &mut Pool) -> Served {
        if let Some(handle) = self.sending {
            if self.free > now {
                return self.plan(self.free);
            }
            self.sending = None;
            return Served::Through(handle);
        }
        if self.is_down() {
            return Served::Idle;
        }
        let Some(packet) = self.take(now, pool) else { return self.ask_later(now) };
        // A line that was idle starts now, and the fraction of a nanosecond is not carried over.
        if self.free < now {
            self.remainder = 0;
        }
        let length = self.framing.charge(&packet);
        self.free = now + self.byte_time.charge(length, &mut self.remainder);
        self.sending = Some(packet.handle as u32);
        self.plan(self.free)
    }

    fn serve_bucket(&mut self, burst: u32, now: Time, pool: &mut Pool) -> Served {
        if self.is_down() {
            return Served::Idle;
        }
        if self.free > now {
            return match self.qdisc.backlog().packets {
                0 => Served::Idle,
                _ => self.plan(self.free),
            };
        }
        let Some(packet) = self.take(now, pool) else { return self.ask_later(now) };
        let full = now - self.byte_time.of(burst);
        if self.free < full {
            (self.free, self.remainder) = (full, 0);
        }
        self.free += self.byte_time.charge(self.framing.charge(&packet), &mut self.remainder);
        Served::Through(packet.handle as u32)
    }

    /// Spends the bytes of every opportunity up to `now`.
    fn serve_trace(&mut self, now: Time, pool: &mut Pool) -> Served {
        let Medium::Trace(trace) = &self.medium else { return Served::Idle };
        // What was missed while nothing waited is lost.
        let current = trace.first_from(now);
        if self.opportunity < current {
            (self.opportunity, self.budget) = (current, 0);
        }
        loop {
            if self.budget == 0 {
                let Medium::Trace(trace) = &self.medium else { return Served::Idle };
                let at = trace.at(self.opportunity);
                if at > now {
                    let waiting = self.sending.is_some() || self.qdisc.backlog().packets > 0;
                    return if waiting { self.plan(at) } else { Served::Idle };
                }
                self.opportunity += 1;
                self.budget = OPPORTUNITY_BYTES;
            }
            let handle = match self.sending {
                Some(handle) => handle,
                None => match self.take(now, pool) {
                    Some(packet) => {
                        self.unsent = self.framing.charge(&packet);
                        *self.sending.insert(packet.handle as u32)
                    }
                    None => {
                        self.budget = 0;
                        continue;
                    }
                },
            };
            let part = self.unsent.min(self.budget);
            self.budget -= part;
            self.unsent -= part;
            if self.unsent == 0 {
                self.sending = None;
                return Served::Through(handle);
            }
        }
    }

    /// The discipline's next packet, recorded.
    #[inline]
    fn take(&mut self, now: Time, pool: &mut Pool) -> Option<Packet> {
        let packet = self.qdisc.dequeue(now, pool)?;
        let group = pool.taken(&packet, now);
        self.record.taken(&packet, group, now);
        Some(packet)
    }

    /// A zero rate: an outage.
    #[inline]
    fn is_down(&self) -> bool {
        self.rate.is_some_and(|rate| rate.is_unlimited())
    }

    /// The discipline gave nothing: when it wants to be asked again.
    #[inline]
    fn ask_later(&mut self, now: Time) -> Served {
        match self.qdisc.next_event() {
            // One nanosecond at least: a discipline that errs on the early side must not stop time.
            Some(at) => self.plan(at.max(now + Span(1))),
            None => Served::Idle,
        }
    }

    #[inline]
    fn plan(&mut self, at: Time) -> Served {
        if at >= self.planned {
            return Served::Idle;
        }
        self.planned = at;
        Served::Plan(at)
    }

    /// When the rate next changes.
    pub fn next_step(&self) -> Option<Time> {
        self.steps.get(self.next_step).map(|step| step.at)
    }

    /// Changes the rate as planned for `now`. What is being sent is sent at the old rate.
    pub fn step(&mut self, now: Time) {
        while let Some(step) = self.steps.get(self.next_step).filter(|step| step.at <= now) {
            self.record.rate_changed(self.rate, now);
            self.rate = Some(step.rate);
            self.byte_time = ByteTime::new(step.rate, Arithmetic::Exact);
            self.remainder = 0;
            if matches!(self.medium, Medium::Bucket(_)) {
                // What was saved or owed at the old rate is neither kept nor claimed.
                self.free = now;
            }
            self.next_step += 1;
        }
    }

    /// The rate now: None if there is no limit.
    pub fn rate(&self) -> Option<Rate> {
        match &self.medium {
            Medium::Trace(trace) => Some(trace.mean_rate()),
            _ => self.rate,
        }
    }

    /// Packets that the line is sending: 0 or 1.
    pub fn on_the_wire(&self) -> usize {
        usize::from(self.sending.is_some())
    }
}
