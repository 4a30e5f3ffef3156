//! The rate of one direction. The control law is told in the crate's documentation.
//!
//! ```text
//!            delay, and load that may have made it
//!   Rising -----------------------------------------> Draining
//!     ^  |  download: arrivals below the rate            | delay gone: known capacity * 31/32
//!     |  +----------------> Holding <--------------------+
//!     +---- hold is over -----+         no lower delay, twice: another route; the old rate
//! ```
//!
//! Sources: the drain is ours; the search above a known capacity doubles its steps as slow start
//! does (RFC 5681); a hold that doubles while the same capacity is found again is Karn's backoff
//! turned to probing.

use simnel_core::{Rate, Span, Time};

use crate::{DRAIN, HIGH, LOW};

/// Intervals that are remembered.
const HISTORY: usize = 16;
/// Intervals over which an arrival rate is taken.
const RECENT: usize = 3;
/// Intervals over which the growth of a queue is taken.
const GROWTH: usize = 5;
/// Time until what was released at a new rate shows in the probes.
const FEEDBACK: Span = Span::from_millis(200);
/// Holds at a capacity: the first, and the longest.
const SHORT_HOLD: Span = Span::from_millis(250);
const LONG_HOLD: Span = Span::from_secs(2);
/// Steps of the search, in 1/1024 of the rate an interval: on a steady line (6 % a second), on one
/// that has changed, and at most (double in 0.7 s).
const FIRST_STEP: u64 = 3;
const QUICK_STEP: u64 = 12;
const LAST_STEP: u64 = 50;
/// A step of the search is doubled after so long.
const STEP_TIME: Span = Span::from_millis(500);
/// Delay that is enough to tell that the line is busy, where arrivals say so too.
const SLIGHT: Span = Span::from_millis(3);
/// An ordinary full packet.
const PACKET: u64 = 1514;
/// Drains without success after which the delay is no queue's.
const DRAINS: u8 = 2;
/// A load that is gone for so long had no part in a delay.
const LOAD_MEMORY: Span = Span::from_secs(1);

/// The range of a direction's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Never below.
    pub floor: Rate,
    /// Never above.
    pub ceiling: Rate,
}

/// A direction's queue in one interval, as its counters show it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Bytes that came, dropped ones included.
    pub arrived: u64,
    /// Bytes released.
    pub released: u64,
    /// Bytes queued at the end.
    pub backlog: u64,
}

/// A direction's state in the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The rate grows while there is load.
    Rising,
    /// The capacity was found; the rate stays a little below.
    Holding,
    /// A queue elsewhere is being emptied.
    Draining,
}

impl Phase {
    /// A word for tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Rising => "rising",
            Phase::Holding => "holding",
            Phase::Draining => "draining",
        }
    }
}

/// Why a rate last changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Load, and no delay.
    Room,
    /// Delay that the load has made.
    Delay,
    /// Packets arrived more slowly than they may.
    Arrivals,
    /// The queue elsewhere is gone.
    Drained,
    /// The delay was another route's.
    Route,
}

impl Reason {
    /// In words.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Room => "load without delay",
            Reason::Delay => "delay under load",
            Reason::Arrivals => "the line delivers less",
            Reason::Drained => "the delay is gone",
            Reason::Route => "the delay is the route's",
        }
    }
}

/// The line as known at one tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Evidence {
    pub delay: Option<Span>,
    /// This direction's load may be the cause.
    pub accused: bool,
    /// This direction may try more than the capacity last seen.
    pub searches: bool,
    /// The other direction may be the cause too.
    pub unsure: bool,
}

/// An interval that is over.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    seen: Seen,
    span: Span,
    rate: u64,
    delay: Option<Span>,
}

/// A drain under way.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// When the first of drains in a row began.
    began: Time,
    until: Time,
    /// Delay when it began.
    delay: Span,
    /// The state before the first of several drains in a row.
    before: (u64, Option<u64>),
    number: u8,
    /// The other direction may have made the delay as well.
    unsure: bool,
    /// Less load has not lowered the delay, again and again: it is not this direction's.
    in_vain: bool,
}

/// One direction.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    /// An upload: what is released is known, what the line delivers is not.
    sends: bool,
    limits: Limits,
    rate: u64,
    known: Option<u64>,
    phase: Phase,
    drain: Option<Drain>,
    past: [Past; HISTORY],
    noted: Time,
    changed: Time,
    loaded: Option<Time>,
    hold: Span,
    hold_until: Time,
    step: u64,
    first_step: u64,
    stepped: Time,
    reason: Option<(Reason, Time)>,
}

impl Law {
    pub fn new(sends: bool, limits: Limits, now: Time) -> Law {
        let floor = limits.floor.bytes().max(1);
        let ceiling = limits.ceiling.bytes().max(floor);
        let limits = Limits { floor: Rate(floor), ceiling: Rate(ceiling) };
        let middle = (u128::from(floor) * u128::from(ceiling)).isqrt() as u64;
        Law {
            sends,
            limits,
            rate: middle,
            known: None,
            phase: Phase::Rising,
            drain: None,
            past: [Past::default(); HISTORY],
            noted: now,
            changed: now,
            loaded: None,
            hold: SHORT_HOLD,
            hold_until: now,
            step: QUICK_STEP,
            first_step: QUICK_STEP,
            stepped: now,
            reason: None,
        }
    }

    pub fn rate(&self) -> Rate {
        Rate(self.rate)
    }

    pub fn phase(&self) -> Phase {
        self.phase
    }

    pub fn known(&self) -> Option<Rate> {
        self.known.map(Rate)
    }

    pub fn reason(&self) -> Option<(Reason, Time)> {
        self.reason
    }

    pub fn is_draining(&self) -> bool {
        self.phase == Phase::Draining
    }

    /// True if a drain has gone on for long enough to have shown an effect.
    pub fn has_tried(&self) -> bool {
        self.drain.is_some_and(|drain| self.noted.since(drain.began) >= FEEDBACK + FEEDBACK)
    }

    /// True if a drain has shown that the delay is not this direction's.
    pub fn drains_in_vain(&self) -> bool {
        self.drain.is_some_and(|drain| drain.in_vain)
    }

    /// True if a drain has gone on for so long that it would have shown an effect, whatever it was
    /// that disturbed it.
    pub fn has_tried_for_long(&self) -> bool {
        self.drain.is_some_and(|drain| self.noted.since(drain.began) >= (DRAIN + FEEDBACK) * 3)
    }

    /// True if it would try more than the capacity last seen.
    pub fn wants_to_search(&self) -> bool {
        let over = self.phase == Phase::Holding && self.noted >= self.hold_until;
        (over || self.phase == Phase::Rising) && self.wants_more() && self.rate >= self.near()
    }

    /// A little less than the capacity last seen; zero if none was.
    fn near(&self) -> u64 {
        self.known.map_or(0, |known| part(known, 31, 32))
    }

    /// Takes note of an interval.
    pub fn note(&mut self, seen: &Seen, delay: Option<Span>, now: Time) {
        let span = now.since(self.noted);
        self.noted = now;
        self.past.rotate_right(1);
        self.past[0] = Past { seen: *seen, span, rate: self.rate, delay };
        if self.is_loaded() {
            self.loaded = Some(now);
        }
    }

    /// Bytes a second over the latest `n` intervals.
    fn mean(&self, n: usize, bytes: fn(&Past) -> u64) -> u64 {
        let past = &self.past[..n.min(HISTORY)];
        let time: u64 = past.iter().map(|past| past.span.0).fold(0, u64::saturating_add);
        let sum: u64 = past.iter().map(bytes).fold(0, u64::saturating_add);
        rate(sum, Span(time))
    }

    fn arriving(&self) -> u64 {
        self.mean(RECENT, |past| past.seen.arrived)
    }

    /// The rate that was set over the latest intervals.
    fn set(&self) -> u64 {
        let past = &self.past[..RECENT];
        past.iter().map(|past| past.rate / RECENT as u64).sum()
    }

    /// True if the rate is used up.
    pub fn is_loaded(&self) -> bool {
        self.waits() == RECENT
            || self.mean(RECENT, |past| past.seen.released) >= part(self.set(), 27, 32)
    }

    /// True if it was within the last second.
    pub fn was_loaded(&self) -> bool {
        self.loaded.is_some_and(|at| self.noted.since(at) < LOAD_MEMORY)
    }

    /// True if a download's packets arrive more slowly than the rate would allow, and none waits.
    fn is_starved(&self) -> bool {
        if self.sends {
            return false;
        }
        self.waits() < RECENT && self.arriving() < part(self.set(), 31, 32)
    }

    /// Of the latest intervals, those that ended with packets waiting here.
    fn waits(&self) -> usize {
        self.past[..RECENT].iter().filter(|past| past.seen.backlog >= PACKET).count()
    }

    /// True if a download arrives as evenly as from a server that never idles, and none waits here:
    /// the line is the bottleneck, and the arrival rate its capacity.
    pub fn is_limited_by_line(&self) -> bool {
        !self.sends && self.waits() < RECENT - 1 && self.is_even() && self.was_loaded()
    }

    /// True if, besides, the line's capacity is about what it was.
    pub fn confirms(&self) -> bool {
        let known = self.known.unwrap_or(0);
        self.is_limited_by_line() && self.arriving() >= part(known, 31, 32)
    }

    /// True if the rate is what limits the load, so that more would be used.
    fn wants_more(&self) -> bool {
        self.waits() >= RECENT - 1 || self.arriving() >= part(self.set(), 31, 32)
    }

    /// True if packets arrive as evenly as a server that never idles sends them.
    fn is_even(&self) -> bool {
        let rates = self.past[..RECENT].iter().map(|past| rate(past.seen.arrived, past.span));
        let (low, high) = rates.fold((u64::MAX, 0), |(l, h), rate| (rate.min(l), rate.max(h)));
        // Two packets more or less may fall into an interval.
        let packets = rate(2 * PACKET, self.past[0].span);
        high.saturating_sub(low) <= high / 16 + packets
    }

    /// True if a queue elsewhere may be this direction's.
    pub fn may_be_guilty(&self) -> bool {
        let arriving = self.arriving();
        if self.sends {
            return self.was_loaded();
        }
        // At exactly the set rate, with packets waiting here, the line has nothing queued.
        let flood = arriving > part(self.set(), 17, 16);
        arriving >= self.set() / 10 && (self.is_starved() || self.is_limited_by_line() || flood)
    }

    /// The capacity, from what is known while a queue stands or grows elsewhere.
    fn estimate(&self) -> u64 {
        if self.is_starved() || self.is_limited_by_line() {
            return self.arriving();
        }
        let released = self.mean(GROWTH, |past| past.seen.released);
        let ends = (self.past[0].delay, self.past[GROWTH].delay);
        let growth = match ends {
            (Some(new), Some(old)) => new.saturating_sub(old).0,
            _ => 0,
        };
        let time: u64 = self.past[..GROWTH].iter().map(|past| past.span.0).sum();
        part(released, time.max(1), time.max(1).saturating_add(growth))
    }

    /// Sets the rate for this tick. True if the delay turned out to be the route's.
    pub fn decide(&mut self, evidence: &Evidence, now: Time) -> bool {
        let delay = evidence.delay;
        if let Some(drain) = &mut self.drain {
            drain.unsure |= evidence.unsure && self.sends;
            let drain = *drain;
            return self.go_on_draining(drain, evidence, now);
        }
        let settled = now.since(self.changed) >= FEEDBACK || self.phase != Phase::Holding;
        match delay {
            Some(delay) if delay >= HIGH && evidence.accused && settled => {
                self.start_draining(delay, now);
            }
            Some(delay) if delay >= SLIGHT && self.finds_its_end(evidence) => {
                self.found(self.arriving());
                self.set_rate(part(self.arriving(), 31, 32), Reason::Arrivals, now);
                self.start_holding(now);
            }
            Some(delay) if delay < LOW => self.go_on(delay, evidence.searches, now),
            _ => self.stepped = now,
        }
        false
    }

    /// A download whose search has just passed the capacity.
    fn finds_its_end(&self, evidence: &Evidence) -> bool {
        evidence.accused && self.phase == Phase::Rising && self.is_limited_by_line()
    }

    fn go_on(&mut self, delay: Span, searches: bool, now: Time) {
        if self.phase == Phase::Holding && now >= self.hold_until {
            self.phase = Phase::Rising;
            (self.step, self.stepped) = (self.first_step, now);
        }
        if self.phase != Phase::Rising || !self.wants_more() {
            self.stepped = now;
            return;
        }
        let near = self.near();
        if self.rate < near {
            let up = ((near - self.rate) / 4).max(self.rate / 32).max(1);
            self.stepped = now;
            return self.set_rate((self.rate + up).min(near), Reason::Room, now);
        }
        if !searches || delay >= SLIGHT {
            self.stepped = now;
            return;
        }
        if now.since(self.stepped) >= STEP_TIME {
            self.step = (self.step * 2).min(LAST_STEP);
            self.stepped = now;
        }
        let up = part(self.rate, self.step, 1024).max(1);
        self.set_rate(self.rate.saturating_add(up), Reason::Room, now);
    }

    fn start_draining(&mut self, delay: Span, now: Time) {
        let before = (self.rate, self.known);
        let estimate = self.estimate().min(self.rate);
        if self.is_sure() {
            self.known = Some(estimate.max(1));
        }
        self.drain_at(estimate, delay, before, 1, now);
    }

    /// True if an estimate is the line's capacity, and not only what a disturbed load has left.
    fn is_sure(&self) -> bool {
        self.sends || self.is_limited_by_line()
    }

    fn drain_at(
        &mut self,
        capacity: u64,
        delay: Span,
        before: (u64, Option<u64>),
        number: u8,
        now: Time,
    ) {
        self.phase = Phase::Draining;
        let until = now + DRAIN + FEEDBACK;
        let began = self.drain.map_or(now, |drain| drain.began);
        let unsure = self.drain.is_some_and(|drain| drain.unsure);
        let in_vain = self.drain.is_some_and(|drain| drain.in_vain);
        self.drain = Some(Drain { began, until, delay, before, number, unsure, in_vain });
        self.set_rate(drained(capacity, delay), Reason::Delay, now);
    }

    fn go_on_draining(&mut self, drain: Drain, evidence: &Evidence, now: Time) -> bool {
        let Some(delay) = evidence.delay else {
            // Nobody votes any more: what was found is all that is known.
            self.end_drain(now);
            return false;
        };
        if delay < LOW || delay < Span(drain.delay.0 / 4) {
            self.end_drain(now);
            return false;
        }
        let known = self.known.unwrap_or(self.rate);
        if delay >= HIGH && self.is_starved() && self.arriving() < known {
            // Less still: the queue there stands, so arrivals are the capacity.
            if self.is_sure() {
                self.known = Some(self.arriving());
            }
            self.set_rate(drained(self.arriving(), delay), Reason::Arrivals, now);
        } else if now.since(self.changed) >= FEEDBACK
            && delay > drain.delay
            && !self.is_starved()
            && !drain.unsure
            && !drain.in_vain
        {
            // It still grows: the estimate was too high. Or the delay is not this direction's.
            let halved = self.rate <= drain.before.0 / 2;
            if halved && drain.number >= DRAINS {
                return self.find_in_vain();
            }
            let estimate = self.estimate().min(self.rate);
            if self.is_sure() {
                self.known = Some(estimate);
            }
            let number = drain.number + u8::from(halved);
            self.drain_at(estimate, delay, drain.before, number, now);
            return false;
        }
        if now < drain.until || drain.in_vain {
            return false;
        }
        let falls = delay < part_span(drain.delay, 3, 4);
        if delay < HIGH {
            // So little is the path's own, if a drain cannot lower it.
            self.end_drain(now);
            return !falls;
        }
        if falls {
            // Once more, as far as it is needed.
            let known = self.known.unwrap_or(self.rate);
            self.drain_at(known, delay, drain.before, 1, now);
            return false;
        }
        // A delay that grew meanwhile says that the rate was still too high; a route's is constant.
        let share = if delay > part_span(drain.delay, 5, 4) { 4 } else { 7 };
        let fell_enough = self.rate <= part(drain.before.0, share, 8) && !self.is_starved();
        if drain.number >= DRAINS && fell_enough {
            return self.find_in_vain();
        }
        let estimate = self.estimate().min(self.rate);
        if self.is_sure() {
            self.known = Some(estimate);
        }
        let number = if self.is_starved() { 1 } else { drain.number + 1 };
        self.drain_at(estimate, delay, drain.before, number, now);
        false
    }

    /// Less load does not lower the delay: the rate falls no further.
    fn find_in_vain(&mut self) -> bool {
        if let Some(drain) = &mut self.drain {
            drain.in_vain = true;
        }
        false
    }

    fn end_drain(&mut self, now: Time) {
        let Some(drain) = self.drain.take() else { return };
        let before = drain.before.0;
        if drain.in_vain {
            // What has lowered the delay was the other direction's drain.
            self.known = drain.before.1;
            self.set_rate(before, Reason::Drained, now);
            return self.start_holding(now);
        }
        let mut known = self.known.map_or(before, |known| known.min(before));
        if drain.unsure {
            // It went only when the other direction was drained too: most of it was that one's.
            known = (known + 3 * before) / 4;
            self.known = Some(known);
        }
        self.learn(drain.before.1);
        self.set_rate(part(known, 31, 32), Reason::Drained, now);
        self.start_holding(now);
    }

    fn start_holding(&mut self, now: Time) {
        self.phase = Phase::Holding;
        self.hold_until = now + self.hold;
    }

    /// A capacity was found: the same as before, or another one.
    fn found(&mut self, capacity: u64) {
        let before = self.known.replace(capacity.max(1));
        self.learn(before);
    }

    /// The known capacity was `before`: how soon is another to be expected?
    fn learn(&mut self, before: Option<u64>) {
        let known = self.known.unwrap_or(self.rate);
        let same = before.is_some_and(|before| known.abs_diff(before) <= before / 10);
        if same {
            self.hold = Span(self.hold.0 * 2).min(LONG_HOLD);
            self.first_step = if self.sends { FIRST_STEP } else { 2 * FIRST_STEP };
        } else {
            self.hold = SHORT_HOLD;
            self.first_step = QUICK_STEP;
        }
    }

    /// The baselines are new: what was taken for a queue was none.
    pub fn shifted(&mut self, now: Time) {
        if let Some(drain) = self.drain.take() {
            self.known = drain.before.1;
            self.set_rate(drain.before.0, Reason::Route, now);
            self.start_holding(now);
        }
    }

    fn set_rate(&mut self, rate: u64, reason: Reason, now: Time) {
        let rate = rate.clamp(self.limits.floor.bytes(), self.limits.ceiling.bytes());
        if rate != self.rate {
            self.rate = rate;
            self.changed = now;
            self.reason = Some((reason, now));
        }
    }
}

/// Bytes a second.
fn rate(bytes: u64, span: Span) -> u64 {
    part(bytes, 1_000_000_000, span.0)
}

/// A rate at which a queue of `delay` at `capacity` is gone after [`DRAIN`]; half at least.
fn drained(capacity: u64, delay: Span) -> u64 {
    let left = DRAIN.saturating_sub(delay).0.max(DRAIN.0 / 2);
    part(capacity, left, DRAIN.0)
}

/// `value * numerator / denominator`, without overflow.
fn part(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    scaled.min(u64::MAX.into()) as u64
}

fn part_span(span: Span, numerator: u64, denominator: u64) -> Span {
    Span(part(span.0, numerator, denominator))
}
