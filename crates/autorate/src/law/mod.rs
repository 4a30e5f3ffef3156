//! The rate of one direction. The control law is told in the crate's documentation.
//!
//! ```text
//!            delay, and load that may have made it
//!   Rising -----------------------------------------> Draining
//!     ^  |  download: arrivals below the rate            | delay gone: known capacity * 63/64
//!     |  +----------------> Holding <--------------------+
//!     +---- hold is over -----+           no lower delay: another route; the old rate
//! ```
//!
//! A delay that comes at once, and does not grow then, is watched before anything is done: loads
//! make queues that grow. What had been sent when a line paused comes afterwards in one burst, at
//! the line's capacity. How long our shaper was busy with it tells how fast it came.
//!
//! A drain is begun by what has shown so far, and goes deeper as more shows. So does what the line
//! of an upload carries: what passed, by what the queue changed a round trip later.
//!
//! Sources: the drain is ours. The search takes what was delivered without delay for a floor of the
//! capacity. It tries a gain over it, as BBR does (Cardwell et al., ACM Queue 14(5), 2016). Gains
//! double while they succeed, that is, while more is carried than was known. A hold that doubles
//! while the same capacity is found again is Karn's backoff turned to probing. A burst's rate as
//! the capacity is packet-train dispersion, with a train that nobody had to send. (Dovrolis et al.,
//! "What do packet dispersion techniques measure?", INFOCOM 2001.)

use simnel_core::{Rate, Span, Time};

use self::history::{part, part_span, ECHO, GROWTH, LOAD_MEMORY, STILL};
use crate::{DRAIN, HIGH, INTERVAL, LOW, SLIGHT};

mod history;
mod shown;
#[cfg(test)]
mod tests;

pub(crate) use self::history::History;
pub use self::history::Seen;
pub use self::shown::{Phase, Reason};

/// Time until what was released at a new rate shows in the probes.
const FEEDBACK: Span = Span::from_millis(200);
/// Holds at a capacity: the first, and the longest.
const SHORT_HOLD: Span = Span::from_millis(250);
const LONG_HOLD: Span = Span::from_secs(2);
/// A capacity that differs by no more than this part, and what jitter makes of it, is the same:
/// estimates err by as much.
const SAME: u64 = 32;
/// A step of the search has shown its effect after so long.
const STEP: Span = Span::from_millis(300);
/// Gains of the search over what the line has carried, in 1/64. The first one makes a queue of at
/// most 1/16 of [`STEP`], 19 ms, if it is in vain. The last makes one of 75 ms, where each gain
/// half as large was not in vain.
const FIRST_GAIN: u64 = 4;
const LAST_GAIN: u64 = 16;
/// A delay that has come at once is watched for so long, if it does not grow: until it is known
/// whether it stands still.
const JUMP: Span = Span(INTERVAL.0 * (STILL + ECHO + 2) as u64);
/// Drains without success after which the delay is no queue's.
const DRAINS: u8 = 2;
/// The range of a direction's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Never below.
    pub floor: Rate,
    /// Never above.
    pub ceiling: Rate,
}

impl Limits {
    /// Their geometric middle, at which a controller begins.
    pub fn middle(self) -> Rate {
        let product = u128::from(self.floor.bytes()) * u128::from(self.ceiling.bytes());
        Rate(product.isqrt() as u64)
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

/// A drain under way.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// Start of the first of drains in a row.
    began: Time,
    until: Time,
    /// Bytes a second that the line is taken to carry.
    capacity: u64,
    /// Delay when it began, or at most until it showed.
    delay: Span,
    /// The state before the first of several drains in a row.
    before: (u64, Option<u64>),
    number: u8,
    /// The other direction may have made the delay as well.
    unsure: bool,
    /// Less load has not lowered this delay, again and again: it is not this direction's.
    in_vain: Option<Span>,
}

/// One direction.
#[derive(Clone, Debug)]
pub(crate) struct Law {
    limits: Limits,
    rate: u64,
    known: Option<u64>,
    phase: Phase,
    drain: Option<Drain>,
    history: History,
    changed: Time,
    /// Time at which a delay was last seen not to be this direction's, and that delay.
    cleared: Option<(Time, Span)>,
    hold: Span,
    hold_until: Time,
    gain: u64,
    stepped: Time,
    /// Time at which the delay last came at once, and the least that it was since.
    jumped: Option<(Time, Span)>,
    reason: Option<(Reason, Time)>,
    /// The capacity found last was shown by more than jitter.
    shown: bool,
    /// So was this capacity, the last time or before.
    proved: bool,
}

impl Law {
    pub fn new(sends: bool, limits: Limits, now: Time) -> Law {
        let floor = limits.floor.bytes().max(1);
        let ceiling = limits.ceiling.bytes().max(floor);
        let limits = Limits { floor: Rate(floor), ceiling: Rate(ceiling) };
        Law {
            limits,
            rate: limits.middle().bytes(),
            known: None,
            phase: Phase::Rising,
            drain: None,
            history: History::new(sends, now),
            changed: now,
            cleared: None,
            hold: SHORT_HOLD,
            hold_until: now,
            gain: FIRST_GAIN,
            stepped: now,
            jumped: None,
            reason: None,
            shown: true,
            proved: false,
        }
    }

    /// Another rate to begin with.
    pub fn begin_at(&mut self, rate: Rate) {
        self.rate = rate.bytes().clamp(self.limits.floor.bytes(), self.limits.ceiling.bytes());
    }

    pub fn history(&self) -> &History {
        &self.history
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
        self.drain.is_some_and(|drain| self.history.noted.since(drain.began) >= FEEDBACK + FEEDBACK)
    }

    /// True if a drain has shown that the delay is not this direction's.
    pub fn drains_in_vain(&self) -> bool {
        self.drain.is_some_and(|drain| drain.in_vain.is_some())
    }

    /// True if a drain has gone on for so long that it would have shown an effect, whatever it was
    /// that disturbed it.
    pub fn has_tried_for_long(&self) -> bool {
        self.drain
            .is_some_and(|drain| self.history.noted.since(drain.began) >= (DRAIN + FEEDBACK) * 3)
    }

    /// True if it would try more than the capacity last seen.
    pub fn wants_to_search(&self) -> bool {
        let over = self.phase == Phase::Holding && self.history.noted >= self.hold_until;
        (over || self.phase == Phase::Rising)
            && self.history.wants_more()
            && self.rate >= self.near()
    }

    /// A little less than the capacity last seen; zero if none was.
    fn near(&self) -> u64 {
        self.known.map_or(0, below)
    }

    /// Takes note of the jitter of answers.
    pub fn note_jitter(&mut self, jitter: Span) {
        self.history.jitter = jitter;
    }

    /// Takes note of an interval.
    pub fn note(&mut self, seen: &Seen, delay: Option<Span>, votes: u32, now: Time) {
        self.history.note(seen, self.rate(), delay, votes, now);
        let [before, after] = [1, 0].map(|n| self.history.delay(n));
        if before < LOW && after >= HIGH {
            self.jumped = Some((now, after));
        } else if let Some((_, least)) = &mut self.jumped {
            *least = after.min(*least);
        }
        if let Some(delay) = delay.filter(|_| self.history.is_no_queue()) {
            self.cleared = Some((now, delay));
        }
    }

    /// True if a download is limited by the line, whose capacity is about what it was.
    pub fn confirms(&self) -> bool {
        let known = self.known.unwrap_or(0);
        self.history.is_limited_by_line() && self.history.arriving() >= part(known, 31, 32)
    }

    /// True if the delay is not this direction's.
    pub fn is_acquitted(&self) -> bool {
        let same = |then: Span| self.history.delay(0).0.abs_diff(then.0) < SLIGHT.0;
        self.cleared
            .is_some_and(|(at, then)| self.history.noted.since(at) < LOAD_MEMORY && same(then))
            || self.drains_in_vain()
            || self.has_tried_for_long()
            || !self.history.was_loaded()
    }

    /// The capacity that a burst has shown. It is at most a step of the search more than the set
    /// rate, since the pause before the burst may have been our own.
    fn burst(&self) -> Option<u64> {
        Some(self.history.burst()?.min(part(self.rate, 64 + LAST_GAIN, 64)))
    }

    /// Sets the rate for this tick.
    pub fn decide(&mut self, evidence: &Evidence, now: Time) {
        let delay = evidence.delay;
        if let Some(mut drain) = self.drain {
            drain.unsure |= evidence.unsure && self.history.sends();
            let is_fresh = now.since(self.changed) < FEEDBACK;
            if let Some(delay) = delay.filter(|_| drain.in_vain.is_none()) {
                self.deepen(&mut drain, delay, is_fresh);
            }
            if is_fresh {
                drain.delay = drain.delay.max(delay.unwrap_or(Span::ZERO));
            }
            self.drain = Some(drain);
            return self.go_on_draining(drain, evidence, now);
        }
        if let (Some(capacity), true) = (self.burst(), delay.is_some_and(|delay| delay < LOW)) {
            self.known = Some(capacity.max(self.known.unwrap_or(0)));
            (self.phase, self.gain) = (Phase::Rising, LAST_GAIN);
        }
        let settled = now.since(self.changed) >= FEEDBACK || self.phase != Phase::Holding;
        match delay {
            Some(delay) if self.is_jump(delay, now) => {}
            Some(delay)
                if evidence.accused && settled && (delay >= HIGH || self.history.lasts()) =>
            {
                self.start_draining(delay, now);
            }
            // What the line has carried until now stands there, and has yet to show.
            Some(delay) if self.finds_its_end(delay, evidence) && self.gets_less() => {
                self.start_draining(delay, now);
            }
            Some(delay) if self.finds_its_end(delay, evidence) => {
                let capacity = self.history.estimate_near(self.known);
                self.found(capacity);
                self.set_rate(below(capacity), Reason::Arrivals, now);
                self.start_holding(now);
            }
            Some(delay) if self.has_stepped_too_far(delay, evidence) => {
                self.start_draining(delay, now);
            }
            Some(delay) if delay < LOW => self.go_on(delay, evidence.searches, now),
            _ => {}
        }
    }

    /// True if the latest change was a rise whose effect may still be coming.
    fn has_just_risen(&self) -> bool {
        let of_late = |at: Time| self.history.noted.since(at) < STEP * 2;
        self.phase == Phase::Rising
            && matches!(self.reason, Some((Reason::Room, at)) if of_late(at))
    }

    /// An upload that has just been raised beyond the capacity. The votes' median strays by less
    /// than the votes do.
    fn has_stepped_too_far(&self, delay: Span, evidence: &Evidence) -> bool {
        let strays = Span(self.history.doubt() / 4);
        delay >= LOW + strays
            && self.history.sends()
            && self.has_just_risen()
            && (evidence.searches || self.rate < self.near())
    }

    /// True if the delay has come at once and not grown since, and no less arrives. A queue that
    /// the load makes grows from interval to interval; this is a route's, or what a moment without
    /// the line has left.
    fn is_jump(&self, delay: Span, now: Time) -> bool {
        let is_less = self.gets_less();
        let stands = |(at, least): (Time, Span)| now.since(at) < JUMP && delay < least + SLIGHT;
        !is_less && self.jumped.is_some_and(stands)
    }

    /// A download whose line shows that it carries much less than it did.
    fn gets_less(&self) -> bool {
        let known = self.known.unwrap_or(0);
        self.history.is_limited_by_line() && self.history.arriving() < part(known, 7, 8)
    }

    /// A download whose search has just passed the capacity. Without a rise before it, a small
    /// delay says nothing: arrivals that our own drops have lowered are even, too.
    fn finds_its_end(&self, delay: Span, evidence: &Evidence) -> bool {
        let late = evidence.accused && delay >= SLIGHT;
        late && self.has_just_risen() && self.history.is_limited_by_line()
    }

    fn go_on(&mut self, delay: Span, searches: bool, now: Time) {
        if self.phase == Phase::Holding && now >= self.hold_until {
            self.phase = Phase::Rising;
            self.gain = FIRST_GAIN;
        }
        if self.phase != Phase::Rising || !self.history.wants_more() {
            return;
        }
        let near = self.near();
        if self.rate < near {
            let up = ((near - self.rate) / 4).min(self.rate / 8).max(self.rate / 32).max(1);
            return self.set_rate((self.rate + up).min(near), Reason::Room, now);
        }
        if !searches || delay >= SLIGHT || now.since(self.stepped) < STEP {
            return;
        }
        // What was carried without delay is no more than the capacity.
        let carried = self.history.carried();
        let known = self.known.unwrap_or(0);
        self.known = Some(known.max(carried));
        let next = part(carried, 64 + self.gain, 64).max(self.rate);
        // To carry what was known is no success: half of the least gain more is.
        if carried >= part(self.rate, 31, 32) && carried >= part(known, 128 + FIRST_GAIN, 128) {
            self.gain = (self.gain * 2).min(LAST_GAIN);
        }
        self.stepped = now;
        self.set_rate(next, Reason::Room, now);
    }

    fn start_draining(&mut self, delay: Span, now: Time) {
        let before = (self.rate, self.known);
        self.shown = self.history.is_proved();
        let known = self.known.filter(|_| delay < HIGH * 2);
        let estimate = self.history.estimate_near(known).min(self.rate);
        if self.history.is_sure() {
            self.known = Some(estimate.max(1));
        }
        self.drain_at(estimate, delay, before, 1, now);
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
        let in_vain = None;
        self.drain = Some(Drain { began, until, capacity, delay, before, number, unsure, in_vain });
        self.set_rate(drained(capacity, delay), Reason::Delay, now);
    }

    /// Lowers the rate of a drain whose queue is longer than it seemed, or does not go. What had
    /// been released before still adds to it, and the line may carry less than was estimated.
    fn deepen(&mut self, drain: &mut Drain, delay: Span, is_fresh: bool) {
        let shown = self.history.shown_by_change();
        let stays = delay >= HIGH && shown.is_some_and(|shown| shown < part(drain.capacity, 7, 8));
        let grows = is_fresh && delay > drain.delay;
        if !(stays || grows) {
            return;
        }
        if let Some(shown) = shown.filter(|shown| *shown < drain.capacity) {
            drain.capacity = shown.max(1);
            self.known = Some(drain.capacity);
        }
        // Not a change that has yet to show: it is the same drain.
        self.rate = self.rate.min(drained(drain.capacity, delay)).max(self.limits.floor.bytes());
    }

    fn go_on_draining(&mut self, drain: Drain, evidence: &Evidence, now: Time) {
        let Some(delay) = evidence.delay else {
            // Nobody votes any more: what was found is all that is known.
            return self.end_drain(now);
        };
        if delay < LOW || delay < Span(drain.delay.0 / 4) {
            return self.end_drain(now);
        }
        if drain.in_vain.is_some_and(|then| delay > then + LOW) {
            // It grows: there is a queue, and it may be here after all.
            return self.drain_at(
                self.history.estimate().min(self.rate),
                delay,
                drain.before,
                1,
                now,
            );
        }
        let known = self.known.unwrap_or(self.rate);
        if delay >= HIGH && self.history.is_starved() && self.history.arriving() < known {
            // Less still: the queue there stands, so arrivals are the capacity.
            if self.history.is_sure() {
                self.known = Some(self.history.arriving());
            }
            self.set_rate(drained(self.history.arriving(), delay), Reason::Arrivals, now);
        } else if now.since(self.changed) >= FEEDBACK
            && delay > drain.delay + SLIGHT
            && !self.history.is_starved()
            && !drain.unsure
            && drain.in_vain.is_none()
        {
            // It still grows: the estimate was too high. Or the delay is not this direction's.
            let halved = self.rate <= drain.before.0 / 2;
            if halved && drain.number >= DRAINS {
                return self.find_in_vain(delay);
            }
            let estimate = self.history.estimate().min(self.rate);
            if self.history.is_sure() {
                self.known = Some(estimate);
            }
            let number = drain.number + u8::from(halved);
            return self.drain_at(estimate, delay, drain.before, number, now);
        }
        if now < drain.until || drain.in_vain.is_some() {
            return;
        }
        let falls = delay < part_span(drain.delay, 3, 4);
        if delay < HIGH && falls {
            // So little is left to the hold.
            return self.end_drain(now);
        }
        if delay < HIGH && drain.number >= DRAINS {
            return self.find_in_vain(delay);
        }
        if falls {
            // Once more, as far as it is needed.
            let known = self.known.unwrap_or(self.rate);
            let capacity = self.history.shown_by_change().map_or(known, |shown| known.min(shown));
            if capacity < known {
                self.known = Some(capacity.max(1));
            }
            return self.drain_at(capacity, delay, drain.before, 1, now);
        }
        // A delay that grew meanwhile says that the rate was still too high; a route's is constant.
        let share = if delay > part_span(drain.delay, 5, 4) { 4 } else { 7 };
        let fell_enough = self.rate <= part(drain.before.0, share, 8) && !self.history.is_starved();
        if drain.number >= DRAINS && fell_enough {
            return self.find_in_vain(delay);
        }
        let estimate = self.history.estimate().min(self.rate);
        if self.history.is_sure() {
            self.known = Some(estimate);
        }
        let number = if self.history.is_starved() { 1 } else { drain.number + 1 };
        self.drain_at(estimate, delay, drain.before, number, now);
    }

    /// Less load does not lower the delay: the rate falls no further.
    fn find_in_vain(&mut self, delay: Span) {
        if let Some(drain) = &mut self.drain {
            drain.in_vain = Some(delay);
        }
    }

    fn end_drain(&mut self, now: Time) {
        let Some(drain) = self.drain.take() else { return };
        let (rate, known) = drain.before;
        if drain.in_vain.is_some() || drain.unsure {
            // The other direction's drain may be what has lowered the delay: the rate rises again,
            // as far as the delay stays away.
            self.known = known.or(Some(rate));
            self.phase = Phase::Rising;
            return;
        }
        let found = self.known.map_or(rate, |known| known.min(rate));
        self.learn(known);
        self.set_rate(below(found), Reason::Drained, now);
        self.start_holding(now);
    }

    fn start_holding(&mut self, now: Time) {
        self.phase = Phase::Holding;
        self.hold_until = now + self.hold;
    }

    /// A capacity was found: the same as before, or another one.
    fn found(&mut self, capacity: u64) {
        self.shown = true;
        let before = self.known.replace(capacity.max(1));
        self.learn(before);
    }

    /// The known capacity was `before`: how soon is another to be expected?
    fn learn(&mut self, before: Option<u64>) {
        let known = self.known.unwrap_or(self.rate);
        let doubt = self.history.doubt();
        let same = before.is_some_and(|before| {
            let errs = part(before, doubt, INTERVAL.0 * GROWTH as u64);
            known.abs_diff(before) <= (before / SAME).saturating_add(errs)
        });
        self.proved = self.shown || (same && self.proved);
        if same && self.proved {
            self.hold = Span(self.hold.0 * 2).min(LONG_HOLD);
        } else {
            self.hold = SHORT_HOLD;
        }
    }

    /// The baselines are new: what was taken for a queue was none.
    pub fn shifted(&mut self, now: Time) {
        self.cleared = None;
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

/// A rate at which a queue of `delay` at `capacity` is gone after [`DRAIN`]; half at least.
fn drained(capacity: u64, delay: Span) -> u64 {
    let left = DRAIN.saturating_sub(delay).0.max(DRAIN.0 / 2);
    part(capacity, left, DRAIN.0)
}

/// The rate for a line of this capacity, so that what little is queued there goes.
fn below(capacity: u64) -> u64 {
    part(capacity, 63, 64)
}
