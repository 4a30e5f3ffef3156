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

/// A discipline and its line.
pub(crate) struct Line {
    /// The discipline.
    pub qdisc: Box<dyn Qdisc + Send>,
    /// What passed.
    pub record: LineRecord,
    medium: Medium,
    framing: Framing,
    rate: Option<Rate>,
    byte_time: ByteTime,
    remainder: u64,
    /// Wire: when the packet being sent ends. Bucket: when the tokens are back at zero.
    free: Time,
    /// Wire and trace: the packet being sent, and how many of its bytes are not sent.
    sending: Option<u32>,
    unsent: u32,
    /// Trace: number of the next opportunity that was not used.
    opportunity: u64,
    steps: Vec<Step>,
    next_step: usize,
    planned: Time,
}

impl Line {
    /// An idle line. `rate` is None for an unlimited line, zero during an outage.
    pub fn new(
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
            medium,
            framing,
            rate,
            byte_time: ByteTime::new(rate.unwrap_or_default(), Arithmetic::Exact),
            remainder: 0,
            free: Time::ZERO,
            sending: None,
            unsent: 0,
            opportunity: 0,
            steps,
            next_step: 0,
            planned: NEVER,
        }
    }

    /// Takes `packet` in. The caller then calls [`Line::serve`].
    #[inline]
    pub fn enqueue(&mut self, packet: Packet, now: Time, pool: &mut Pool) {
        self.qdisc.enqueue(packet, now, pool);
        self.record.arrived(self.qdisc.as_ref());
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

    /// Sends what can be sent `now`: the handle of each packet that is through goes to `out`. Returns the time
    /// for which the caller must plan an event.
    #[inline]
    pub fn serve(&mut self, now: Time, pool: &mut Pool, mut out: impl FnMut(u32)) -> Option<Time> {
        match self.medium {
            Medium::Wire => self.serve_wire(now, pool, out),
            Medium::Unlimited => {
                while let Some(packet) = self.take(now, pool) {
                    out(packet.handle as u32);
                }
                self.plan_discipline(now)
            }
            Medium::Bucket(burst) => self.serve_bucket(burst, now, pool, out),
            Medium::Trace(_) => self.serve_trace(now, pool, &mut out),
        }
    }

    #[inline]
    fn serve_wire(&mut self, now: Time, pool: &mut Pool, mut out: impl FnMut(u32)) -> Option<Time> {
        if self.sending.is_some() && self.free <= now {
            self.sending.take().into_iter().for_each(&mut out);
        }
        if self.sending.is_some() {
            return self.plan(self.free);
        }
        if self.is_down() {
            return None;
        }
        let Some(packet) = self.take(now, pool) else { return self.plan_discipline(now) };
        // A line that was idle starts now, and the fraction of a nanosecond is not carried over.
        if self.free < now {
            self.remainder = 0;
        }
        let length = self.framing.charge(&packet);
        self.free = now + self.byte_time.charge(length, &mut self.remainder);
        self.sending = Some(packet.handle as u32);
        self.plan(self.free)
    }

    fn serve_bucket(
        &mut self,
        burst: u32,
        now: Time,
        pool: &mut Pool,
        mut out: impl FnMut(u32),
    ) -> Option<Time> {
        if self.is_down() {
            return None;
        }
        let depth = self.byte_time.of(burst);
        while self.free <= now {
            let Some(packet) = self.take(now, pool) else { return self.plan_discipline(now) };
            let full = now - depth;
            if self.free < full {
                (self.free, self.remainder) = (full, 0);
            }
            self.free += self.byte_time.charge(self.framing.charge(&packet), &mut self.remainder);
            out(packet.handle as u32);
        }
        if self.qdisc.backlog().packets == 0 {
            return None;
        }
        self.plan(self.free)
    }

    fn serve_trace(
        &mut self,
        now: Time,
        pool: &mut Pool,
        out: &mut dyn FnMut(u32),
    ) -> Option<Time> {
        let Medium::Trace(trace) = &self.medium else { return None };
        self.opportunity = self.opportunity.max(trace.first_from(now));
        let mut used = 0;
        while trace.at(self.opportunity + used) <= now {
            used += 1;
        }
        self.opportunity += used;
        let next = trace.at(self.opportunity);
        for _ in 0..used {
            let mut budget = OPPORTUNITY_BYTES;
            while budget > 0 {
                if self.sending.is_none() {
                    let Some(packet) = self.take(now, pool) else { break };
                    self.unsent = self.framing.charge(&packet);
                    self.sending = Some(packet.handle as u32);
                }
                let part = self.unsent.min(budget);
                budget -= part;
                self.unsent -= part;
                if self.unsent == 0 {
                    self.sending.take().into_iter().for_each(&mut *out);
                }
            }
        }
        if self.sending.is_none() && self.qdisc.backlog().packets == 0 {
            return None;
        }
        self.plan(next)
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
    fn plan_discipline(&mut self, now: Time) -> Option<Time> {
        // One nanosecond at least: a discipline that errs on the early side must not stop time.
        self.qdisc.next_event().and_then(|at| self.plan(at.max(now + Span(1))))
    }

    #[inline]
    fn plan(&mut self, at: Time) -> Option<Time> {
        if at >= self.planned {
            return None;
        }
        self.planned = at;
        Some(at)
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
