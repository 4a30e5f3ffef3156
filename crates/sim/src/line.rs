//! The bottleneck: a discipline, and the line that asks it for a packet whenever it is free.
//!
//! Four kinds of line. *Unlimited*: takes whatever the discipline gives (it shapes itself). *Wire*:
//! one packet at a time, exactly `framed length / rate`, remainders carried; a packet is gone when
//! its last bit is. *Bucket*: Linux's htb or tbf in front of a fast wire. A packet goes at once as
//! long as tokens are not negative, and is then paid for; at most `burst` bytes are saved up.
//! *Trace*: Mahimahi's delivery opportunities.
//!
//! A line has at most one event, at `planned`; an earlier plan takes its place. Waking early is
//! harmless.
//!
//! When a packet starts on a wire, its end is known. It goes into the pipe behind the line at once,
//! with that end as its time. So the line needs an event for the end only if something waits. A
//! packet for a host without a pipe is kept until then ([`Line::keep`]).

use simnel_core::framing::Framing;
use simnel_core::qdisc::Managed;
use simnel_core::rate::{Arithmetic, ByteTime};
use simnel_core::{Packet, Rate, Span, Time};

use crate::pool::Pool;
use crate::record::LineRecord;
use crate::schedule::{Step, Trace, OPPORTUNITY_BYTES};

/// No event is planned.
const NEVER: Time = Time::MAX;

/// Parts of a line.
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

/// A line's answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Served {
    /// The packet with this handle is through; ask again.
    Through(u32),
    /// The packet with this handle, which was kept, is through; ask again.
    Kept(u32),
    /// The packet with this handle has started on a wire and is through at that time. The caller
    /// either passes it on or has the line keep it, and then calls [`Line::started`].
    Started(u32, Time),
    /// Nothing now: plan an event.
    Plan(Time),
    /// Nothing now, and no event but those that are planned.
    Idle,
}

/// A discipline and its line.
pub(crate) struct Line {
    /// The discipline.
    pub qdisc: Box<dyn Managed + Send>,
    /// Traffic that passed.
    pub record: LineRecord,
    direction: usize,
    medium: Medium,
    framing: Framing,
    rate: Option<Rate>,
    byte_time: ByteTime,
    remainder: u64,
    /// Wire: when the packet being sent ends. Bucket: when the tokens are back at zero.
    free: Time,
    /// Wire: the packet to be handed over at its end. Trace: the packet being sent, how many of its
    /// bytes are not sent, and what is left of the present opportunity.
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
        qdisc: Box<dyn Managed + Send>,
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
    pub fn enqueue(&mut self, packet: &Packet, now: Time, pool: &mut Pool) {
        self.qdisc.enqueue(packet, now, pool);
        self.record.arrived(self.dropped(pool));
    }

    /// True while a packet is being sent whose end has an event: nothing else can happen.
    #[inline]
    pub fn is_busy(&self, now: Time) -> bool {
        self.free > now && self.planned == self.free && matches!(self.medium, Medium::Wire)
    }

    /// The line's event has come. Gives out the packet that a wire has kept until now, its end.
    #[inline]
    pub fn wake(&mut self, now: Time) -> Option<u32> {
        self.planned = NEVER;
        if self.free > now || !matches!(self.medium, Medium::Wire) {
            return None;
        }
        self.sending.take()
    }

    /// The next packet that is through at `now`, or what to do when there is none. To be called
    /// until it has nothing more.
    #[inline(always)]
    pub fn serve(&mut self, now: Time, pool: &mut Pool) -> Served {
        match self.medium {
            Medium::Wire => self.serve_wire(now, pool),
            _ => self.serve_other(now, pool),
        }
    }

    #[inline(always)]
    fn serve_wire(&mut self, now: Time, pool: &mut Pool) -> Served {
        if self.free > now {
            let waiting = self.sending.is_some() || self.record.queued(self.dropped(pool)) > 0;
            return if waiting { self.plan(self.free) } else { Served::Idle };
        }
        if let Some(handle) = self.sending.take() {
            return Served::Kept(handle);
        }
        if self.is_down() {
            return Served::Idle;
        }
        let Some((handle, length)) = self.take(now, pool) else { return self.ask_later(now) };
        // A line that was idle starts now, and the fraction of a nanosecond is not carried over.
        if self.free < now {
            self.remainder = 0;
        }
        self.free = now + self.byte_time.charge(length, &mut self.remainder);
        Served::Started(handle, self.free)
    }

    /// Keeps the packet that has started until its end.
    #[inline]
    pub fn keep(&mut self, handle: u32) {
        self.sending = Some(handle);
    }

    /// The packet that has started is taken care of. What is to be done now: an event for its end,
    /// if there is something to do then.
    #[inline(always)]
    pub fn started(&mut self, pool: &Pool) -> Served {
        if self.sending.is_some() || self.record.queued(self.dropped(pool)) > 0 {
            self.plan(self.free)
        } else {
            Served::Idle
        }
    }

    /// Kept apart from [`Line::serve_wire`], which has to be small.
    #[inline(never)]
    fn serve_other(&mut self, now: Time, pool: &mut Pool) -> Served {
        match self.medium {
            Medium::Wire => self.serve_wire(now, pool),
            Medium::Unlimited => match self.take(now, pool) {
                Some((handle, _)) => Served::Through(handle),
                None => self.ask_later(now),
            },
            Medium::Bucket(burst) => self.serve_bucket(burst, now, pool),
            Medium::Trace(_) => self.serve_trace(now, pool),
        }
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
        let Some((handle, length)) = self.take(now, pool) else { return self.ask_later(now) };
        let full = now - self.byte_time.of(burst);
        if self.free < full {
            (self.free, self.remainder) = (full, 0);
        }
        self.free += self.byte_time.charge(length, &mut self.remainder);
        Served::Through(handle)
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
                    Some((handle, length)) => {
                        self.unsent = length;
                        *self.sending.insert(handle)
                    }
                    None if self.goes_on(now) => return self.ask_later(now),
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

    /// True if the discipline gave nothing only because it had worked enough for one call.
    #[cold]
    fn goes_on(&self, now: Time) -> bool {
        self.qdisc.next_event().is_some_and(|at| at <= now)
    }

    /// The discipline's next packet, recorded: its handle, and its bytes on the line.
    #[inline(always)]
    fn take(&mut self, now: Time, pool: &mut Pool) -> Option<(u32, u32)> {
        let packet = self.qdisc.dequeue(now, pool)?;
        let group = pool.taken(packet, now);
        let length = self.framing.charge(packet);
        self.record.taken(packet, length, group, now);
        Some((packet.handle as u32, length))
    }

    /// Packets that the discipline has dropped from the beginning.
    #[inline]
    fn dropped(&self, pool: &Pool) -> u64 {
        pool.dropped[self.direction]
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

    /// Time of the next change of the rate.
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

    /// The packet that the line keeps while it sends it.
    pub fn on_the_wire(&self) -> Option<u32> {
        self.sending
    }
}
