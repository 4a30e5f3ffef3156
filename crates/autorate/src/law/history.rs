//! The latest intervals of a direction: load, arrivals, delay, and how they fit together.
//! It judges nothing by a rate that could be set; that is the law's part (`mod.rs`).

use simnel_core::{Rate, Span, Time};

use crate::{LOW, SLIGHT};

/// Intervals that are remembered.
pub(super) const HISTORY: usize = 16;
/// Intervals over which an arrival rate is taken.
pub(super) const RECENT: usize = 3;
/// Intervals over which the growth of a queue is taken.
pub(super) const GROWTH: usize = 5;
/// Intervals over which a delay that stands still is no queue, if what passed did not stand still.
pub(super) const STILL: usize = 6;
/// Intervals until what passed shows in the delay.
pub(super) const ECHO: usize = 2;
/// RTTs that tell so.
const VOTES: u32 = 4;
/// An ordinary full packet.
pub(super) const PACKET: u64 = 1514;
/// Packets that wait at once after a pause and tell the line's capacity.
pub(super) const TRAIN: u64 = 16;
/// A load that is gone for so long had no part in a delay.
pub(super) const LOAD_MEMORY: Span = Span::from_secs(1);

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

/// An interval that is over.
#[derive(Clone, Copy, Debug, Default)]
struct Past {
    seen: Seen,
    span: Span,
    rate: u64,
    delay: Option<Span>,
    /// RTTs that were heard.
    votes: u32,
}

/// The latest intervals of a direction.
#[derive(Clone, Debug)]
pub(crate) struct History {
    /// An upload: what is released is known, what the line delivers is not.
    sends: bool,
    past: [Past; HISTORY],
    /// Jitter of the reflectors that answer.
    pub(super) jitter: Span,
    /// The end of the latest interval.
    pub(super) noted: Time,
    pub(super) loaded: Option<Time>,
}

impl History {
    pub fn new(sends: bool, now: Time) -> History {
        History {
            sends,
            past: [Past::default(); HISTORY],
            jitter: Span::ZERO,
            noted: now,
            loaded: None,
        }
    }

    /// Takes note of an interval in which `rate` was set.
    pub fn note(&mut self, seen: &Seen, rate: Rate, delay: Option<Span>, votes: u32, now: Time) {
        let span = now.since(self.noted);
        self.noted = now;
        self.past.rotate_right(1);
        self.past[0] = Past { seen: *seen, span, rate: rate.bytes(), delay, votes };
        if self.is_loaded() {
            self.loaded = Some(now);
        }
    }

    /// True for an upload.
    pub fn sends(&self) -> bool {
        self.sends
    }

    /// The delay `n` intervals ago; zero if nobody told it.
    pub fn delay(&self, n: usize) -> Span {
        self.past[n].delay.unwrap_or(Span::ZERO)
    }

    /// Bytes a second over the latest `n` intervals.
    fn mean(&self, n: usize, bytes: fn(&Past) -> u64) -> u64 {
        let past = &self.past[..n.min(HISTORY)];
        let time: u64 = past.iter().map(|past| past.span.0).fold(0, u64::saturating_add);
        let sum: u64 = past.iter().map(bytes).fold(0, u64::saturating_add);
        rate(sum, Span(time))
    }

    /// Bytes a second that have come of late.
    pub fn arriving(&self) -> u64 {
        self.mean(RECENT, |past| past.seen.arrived)
    }

    /// The rate that was set over the latest intervals.
    fn set(&self) -> u64 {
        let past = &self.past[..RECENT];
        past.iter().map(|past| past.rate / RECENT as u64).sum()
    }

    /// True if the rate is used up.
    pub(super) fn is_loaded(&self) -> bool {
        // A queue elsewhere makes TCP even, however much more it may send.
        (self.is_even() && self.arriving() >= self.set() / 10)
            || self.waits() == RECENT
            // A full line uses four fifths of what the longest step of a search has set.
            || self.mean(RECENT, |past| past.seen.released) >= part(self.set(), 3, 4)
    }

    /// True if it was within the last second.
    pub fn was_loaded(&self) -> bool {
        self.loaded.is_some_and(|at| self.noted.since(at) < LOAD_MEMORY)
    }

    /// True if a download's packets arrive more slowly than the rate would allow. At least one of
    /// the latest intervals must have ended with none waiting here.
    pub fn is_starved(&self) -> bool {
        if self.sends {
            return false;
        }
        self.waits() < RECENT && self.arriving() < part(self.set(), 31, 32)
    }

    /// Of the latest intervals, those that ended with packets waiting here.
    fn waits(&self) -> usize {
        self.past[..RECENT].iter().filter(|past| past.seen.backlog >= PACKET).count()
    }

    /// True if a download arrives as evenly as from a server that never idles, and hardly any of it
    /// waits here. Then the line is the bottleneck, and the arrival rate its capacity.
    pub fn is_limited_by_line(&self) -> bool {
        !self.sends && self.waits() < RECENT - 1 && self.is_even() && self.was_loaded()
    }

    /// True if the rate is about what limits the load, so that more would be used.
    pub fn wants_more(&self) -> bool {
        self.waits() >= RECENT - 1 || self.arriving() >= part(self.set(), 7, 8)
    }

    /// True if packets arrive as evenly as a server that never idles sends them.
    pub(super) fn is_even(&self) -> bool {
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
        // At exactly the set rate, with packets waiting here, the line has nothing queued. What
        // comes faster for long may be all that the line can carry.
        let set = self.mean(HISTORY, |past| part(past.rate, past.span.0, 1_000_000_000));
        let long = self.mean(HISTORY, |past| past.seen.arrived) > part(set, 129, 128);
        let flood = long || arriving > part(self.set(), 17, 16);
        arriving >= self.set() / 10 && (self.is_starved() || self.is_limited_by_line() || flood)
    }

    /// True if the delay is more than a moment ago: no route's is.
    pub fn sees_growth(&self) -> bool {
        let [new, old] = [0, STILL].map(|n| self.delay(n));
        old >= LOW && new > old + SLIGHT
    }

    /// True if there is hardly any delay that could be this direction's.
    pub fn sees_little(&self) -> bool {
        self.past[0].delay.is_none_or(|delay| delay < SLIGHT)
    }

    /// True if the delay cannot be a queue of this direction: it stood still while what passed did
    /// not. A queue's length is what has passed more, or less, than the line's capacity.
    pub fn is_no_queue(&self) -> bool {
        let past = &self.past[..STILL];
        let delays = past.iter().map(|past| past.delay.map_or(0, |delay| delay.0));
        let (low, high) = delays.fold((u64::MAX, 0), |(l, h), delay| (l.min(delay), h.max(delay)));
        let votes: u32 = past.iter().map(|past| past.votes).sum();
        if low < SLIGHT.0 || votes < VOTES || past[..2].iter().any(|past| past.votes == 0) {
            return false;
        }
        // What passed shows after a round trip.
        let passed = &self.past[ECHO..STILL + ECHO];
        let bytes = self.passing();
        let sum = |of: &dyn Fn(&Past) -> u64| passed.iter().map(of).fold(0, u64::saturating_add);
        let mean = rate(sum(&|past| bytes(past)), Span(sum(&|past| past.span.0)));
        // Lengths that a queue with the mean as its capacity would have had, in ns, as votes show
        // them: the lower of two.
        let (mut length, mut least, mut most) = (0i64, i64::MAX, i64::MIN);
        for past in passed.iter().rev() {
            let before = length;
            let worth = part(bytes(past), 1_000_000_000, mean).min(1 << 40) as i64;
            length += worth - past.span.0.min(1 << 40) as i64;
            let shown = length.min(before);
            (least, most) = (least.min(shown), most.max(shown));
        }
        most.abs_diff(least) >= (high - low).saturating_mul(4).saturating_add(LOW.0)
    }

    /// The capacity, from what is known while a queue stands or grows elsewhere.
    pub fn estimate(&self) -> u64 {
        let (rate, time, growth) = self.passed();
        part(rate, time, time.saturating_add(growth))
    }

    /// The same, but the capacity last `known` as far as jitter may be all that speaks against it.
    pub fn estimate_near(&self, known: Option<u64>) -> u64 {
        let doubt = self.doubt();
        let Some(known) = known.filter(|_| doubt > 0) else { return self.estimate() };
        let (rate, time, growth) = self.passed();
        let took = time.saturating_add(growth);
        let least = part(rate, time, took.saturating_add(doubt));
        // Where no queue grows for certain, the line may carry more than what was sent.
        let is_full = self.line_is_full() || growth > doubt;
        let most = if is_full { part(rate, time, took.saturating_sub(doubt)) } else { u64::MAX };
        known.clamp(least, most)
    }

    /// Grounds of an estimate: bytes a second, over how long, and by how much a queue grew
    /// meanwhile, in ns.
    fn passed(&self) -> (u64, u64, u64) {
        let time = |n: usize| self.past[..n].iter().map(|past| past.span.0).sum::<u64>().max(1);
        if self.line_is_full() {
            return (self.arriving(), time(RECENT), 0);
        }
        (self.mean(GROWTH, |past| past.seen.released), time(GROWTH), self.growth())
    }

    /// The capacity of an upload, by what its queue has changed and what had passed a round trip
    /// before. None of a download, nor where no more has changed than jitter may have.
    pub fn shown_by_change(&self) -> Option<u64> {
        let (new, old) = (self.past[0].delay?, self.past[GROWTH].delay?);
        if !self.sends || new.0.abs_diff(old.0) <= self.doubt() {
            return None;
        }
        let passed = &self.past[ECHO..ECHO + GROWTH];
        let time = passed.iter().map(|past| past.span.0).fold(0, u64::saturating_add);
        let bytes = passed.iter().map(|past| past.seen.released).fold(0, u64::saturating_add);
        // What it took the line to carry that.
        let took = time.saturating_add(new.0).saturating_sub(old.0).max(time / 2);
        Some(rate(bytes, Span(took)))
    }

    /// True if a download shows by its arrivals that the line is full.
    fn line_is_full(&self) -> bool {
        self.is_starved() || self.is_limited_by_line()
    }

    /// Nanoseconds by which the delay has grown over the latest intervals.
    fn growth(&self) -> u64 {
        match (self.past[0].delay, self.past[GROWTH].delay) {
            (Some(new), Some(old)) => new.saturating_sub(old).0,
            _ => 0,
        }
    }

    /// Nanoseconds of a delay's growth that may be jitter, on a line that has it.
    pub fn doubt(&self) -> u64 {
        if self.jitter < SLIGHT {
            return 0;
        }
        self.jitter.0
    }

    /// True if the delay is more than jitter, or arrivals show it as well.
    pub fn is_proved(&self) -> bool {
        self.line_is_full() || self.delay(0).0 > self.doubt().saturating_mul(2)
    }

    /// The rate at which a download came after a pause, if it was more than what is set and makes
    /// a queue here. What had been sent to a line that paused comes at the line's capacity.
    pub fn burst(&self) -> Option<u64> {
        let [now, before] = [0, 1].map(|n| &self.past[n]);
        let Seen { arrived, released, backlog } = now.seen;
        // All that came did so while something was being released.
        let busy = Span(part(released, 1_000_000_000, now.rate));
        let paused = before.seen.backlog < PACKET && busy < part_span(now.span, 1, 2);
        let counts = !self.sends && self.was_loaded() && paused && backlog >= TRAIN * PACKET;
        counts.then(|| rate(arrived, busy))
    }

    /// True if a small delay does not go by itself.
    pub fn lasts(&self) -> bool {
        let low = |past: &Past| past.delay.is_some_and(|delay| delay >= LOW);
        self.past[..STILL * 2].iter().all(low)
    }

    /// The bytes a second that the line has carried of late.
    pub fn carried(&self) -> u64 {
        self.mean(GROWTH - 1, self.passing())
    }

    /// Bytes that were on the line.
    fn passing(&self) -> fn(&Past) -> u64 {
        if self.sends {
            |past| past.seen.released
        } else {
            |past| past.seen.arrived
        }
    }

    /// True if an estimate is the line's capacity, and not only what a disturbed load has left.
    pub fn is_sure(&self) -> bool {
        self.sends || self.is_limited_by_line()
    }
}

/// Bytes a second.
fn rate(bytes: u64, span: Span) -> u64 {
    part(bytes, 1_000_000_000, span.0)
}

/// `value * numerator / denominator`, without overflow.
pub(super) fn part(value: u64, numerator: u64, denominator: u64) -> u64 {
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
    scaled.min(u64::MAX.into()) as u64
}

/// As [`part`].
pub(super) fn part_span(span: Span, numerator: u64, denominator: u64) -> Span {
    Span(part(span.0, numerator, denominator))
}
