//! The event queue: what happens next.
//!
//! Events are keyed (time, sequence number), so that those of the same nanosecond happen in the
//! order in which they were planned, on every machine. Every pipe, line and timer has at most one
//! event pending (htsim's way; Handley et al., NDP, SIGCOMM 2017, section 5). So the queue is as
//! small as the network, not as large as what is in flight, and stays in the first-level cache.
//!
//! An entry is one 128-bit number: time, sequence, target.

use std::hint::select_unpredictable;

use simnel_core::Time;

mod wheel;

use wheel::Wheel;

/// Receiver of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The head of a pipe has arrived at its end.
    Pipe(u32),
    /// A line can send again.
    Line(u32),
    /// An endpoint's timer.
    Endpoint(u32),
    /// An application's timer.
    App(u32),
    /// The rate of a line changes.
    Rate(u32),
    /// The recorder takes its samples.
    Sample,
}

/// Bits of a target's number.
const INDEX_BITS: u32 = 24;
/// Bits of a whole target; the sequence number has the other 36: 68 thousand million events.
const TARGET_BITS: u32 = INDEX_BITS + 4;
/// The bits of a target's index within its kind.
const INDEX_MASK: u32 = (1 << INDEX_BITS) - 1;
/// Bit by which lines differ from pipes.
const LINE: u64 = 1 << INDEX_BITS;
/// Most targets of one kind.
pub(crate) const MAX_TARGETS: usize = 1 << INDEX_BITS;
/// Timers with which a heap stays in the nearest cache: nothing is faster.
const FEW: usize = 128;
/// Children of a node.
const ARITY: usize = 4;

impl Target {
    #[inline(always)]
    fn code(self) -> u64 {
        let (kind, index) = match self {
            Target::Pipe(index) => (0, index),
            Target::Line(index) => (LINE >> INDEX_BITS, index),
            Target::Endpoint(index) => (2, index),
            Target::App(index) => (3, index),
            Target::Rate(index) => (4, index),
            Target::Sample => (5, 0),
        };
        debug_assert!((index as usize) < MAX_TARGETS);
        kind << INDEX_BITS | u64::from(index)
    }

    #[inline(always)]
    fn from_code(code: u64) -> Target {
        let index = code as u32 & INDEX_MASK;
        match (code >> INDEX_BITS) & 15 {
            0 => Target::Pipe(index),
            1 => Target::Line(index),
            2 => Target::Endpoint(index),
            3 => Target::App(index),
            4 => Target::Rate(index),
            _ => Target::Sample,
        }
    }
}

/// All pending events, in four stores by kind. Lines and the few pipes that all packets go through
/// compete in a tournament. Access links, of which there may be thousands with nothing under way,
/// have a heap. Timers, which mostly lie far ahead, have a heap too, and beyond a few a wheel.
/// Sequence numbers are common to all.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    near: Tournament,
    accesses: Heap,
    timers: Heap,
    many_timers: Wheel,
    /// The first of these three.
    first_heaped: u128,
    /// The time of the last event from one of them.
    now: Time,
    shared: u32,
    sequence: u64,
}

impl Events {
    /// No events, of two lines and pipes, of which the first so many are shared by hosts.
    pub fn new(shared: u32) -> Events {
        Events {
            near: Tournament::new(LINES + shared as usize),
            accesses: Heap::default(),
            timers: Heap::default(),
            many_timers: Wheel::default(),
            now: Time::ZERO,
            first_heaped: NOTHING,
            shared,
            sequence: 0,
        }
    }

    /// Plans an event. That of a line or shared pipe takes the place of the one that it had.
    #[inline]
    pub fn push(&mut self, time: Time, target: Target) {
        let low = self.sequence << TARGET_BITS | target.code();
        self.sequence += 1;
        let entry = u128::from(time.0) << 64 | u128::from(low);
        match target {
            Target::Line(line) => self.near.set(line as usize, entry),
            Target::Pipe(pipe) if pipe < self.shared => {
                self.near.set(LINES + pipe as usize, entry);
            }
            Target::Pipe(_) => self.push_heaped(true, entry),
            _ => self.push_heaped(false, entry),
        }
    }

    #[inline(never)]
    fn push_heaped(&mut self, access: bool, entry: u128) {
        if access {
            self.accesses.push(entry);
        } else if self.timers.length < FEW || !self.many_timers.push(entry, self.now) {
            self.timers.push(entry);
        }
        self.first_heaped = self.first_heaped.min(entry);
    }

    /// The first event, if it is not after `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, Target)> {
        let near = self.near.first();
        if near < self.first_heaped {
            let time = Time((near >> 64) as u64);
            if time > until {
                return None;
            }
            return Some((time, self.near.take(near)));
        }
        self.pop_heaped(until)
    }

    #[inline(never)]
    fn pop_heaped(&mut self, until: Time) -> Option<(Time, Target)> {
        let first = self.first_heaped;
        let time = Time((first >> 64) as u64);
        if time > until || first == NOTHING {
            return None;
        }
        if self.accesses.first() == first {
            self.accesses.pop();
        } else if self.timers.first() == first {
            self.timers.pop();
        } else {
            self.many_timers.pop();
        }
        self.now = time;
        self.first_heaped =
            self.accesses.first().min(self.timers.first()).min(self.many_timers.first());
        Some((time, Target::from_code(first as u64)))
    }

    /// Owner of the timer that comes after `n` others, as far as that is known.
    #[inline]
    pub fn upcoming_timer(&self, n: usize) -> Option<Target> {
        self.many_timers.upcoming(n).map(|entry| Target::from_code(entry as u64))
    }
}

/// The first competitors of a [`Tournament`] are the lines.
const LINES: usize = 2;
/// Later than every event: of one who has none, and the top of an empty heap.
const NOTHING: u128 = u128::MAX;

/// First of a fixed number of competitors. It is a tree in which every node knows the earliest of
/// its four children, side by side in one cache line. A change costs a step for each level,
/// whatever the values are, so that a processor has no branch to predict.
#[derive(Clone, Debug)]
struct Tournament {
    /// Children of the root; the competitors themselves if there are no more than four.
    top: Children,
    /// Children of other nodes, by number less one; those of the last level are the competitors.
    below: Vec<Children>,
    first: u128,
    /// Competitors have the numbers of nodes from here on. The root is number 0, the children of n
    /// begin at 4n + 1.
    leaves: usize,
    /// Competitor whose event was taken and not replaced yet; none if there are not so many. Nearly
    /// every event plans exactly one successor, which then is the only change.
    taken: usize,
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Children([u128; ARITY]);

impl Children {
    /// The earliest. Values are chosen, not places: what was just written is at hand.
    #[inline(always)]
    fn least(&self) -> u128 {
        let Children([a, b, c, d]) = *self;
        earlier(earlier(a, b), earlier(c, d))
    }
}

/// The earlier of two events, without a branch.
#[inline(always)]
fn earlier(a: u128, b: u128) -> u128 {
    select_unpredictable(b < a, b, a)
}

impl Tournament {
    fn new(competitors: usize) -> Tournament {
        let (mut leaves, mut width) = (1, ARITY);
        while width < competitors {
            leaves += width;
            width *= ARITY;
        }
        let top = Children([NOTHING; ARITY]);
        let below = vec![top; leaves - 1];
        Tournament { top, below, first: NOTHING, leaves, taken: usize::MAX }
    }

    #[inline(always)]
    fn set(&mut self, competitor: usize, entry: u128) {
        if competitor == self.taken {
            self.taken = usize::MAX;
        }
        let (place, least) = match self.leaves {
            1 => (competitor, entry),
            _ => self.climb(competitor, entry),
        };
        self.top.0[place % ARITY] = least;
        self.first = self.top.least();
    }

    /// Sets the entry of a competitor in all nodes below the root. Gives the child of the root that
    /// is above it, and that child's earliest entry.
    fn climb(&mut self, competitor: usize, entry: u128) -> (usize, u128) {
        let (mut at, mut least) = (self.leaves + competitor, entry);
        loop {
            let (parent, place) = ((at - 1) / ARITY, (at - 1) % ARITY);
            let Some(children) = parent.checked_sub(1).and_then(|n| self.below.get_mut(n)) else {
                return (place, least);
            };
            children.0[place] = least;
            least = children.least();
            at = parent;
        }
    }

    /// The owner of the least entry, whose next event will take its place.
    #[inline(always)]
    fn take(&mut self, least: u128) -> Target {
        let code = least as u64;
        let index = code as u32 & INDEX_MASK;
        if code & LINE != 0 {
            self.taken = index as usize;
            Target::Line(index)
        } else {
            self.taken = LINES + index as usize;
            Target::Pipe(index)
        }
    }

    /// The least entry.
    #[inline(always)]
    fn first(&mut self) -> u128 {
        if self.taken != usize::MAX {
            self.set(self.taken, NOTHING);
        }
        self.first
    }
}

/// A heap of four children a node. It is filled up with [`NOTHING`], so that every node that has
/// children has all of them.
#[derive(Clone, Debug)]
struct Heap {
    entries: Vec<u128>,
    length: usize,
}

impl Default for Heap {
    fn default() -> Heap {
        Heap { entries: vec![NOTHING], length: 0 }
    }
}

impl Heap {
    /// The least entry.
    fn first(&self) -> u128 {
        self.entries[0]
    }

    /// Takes the least entry out; there must be one.
    fn pop(&mut self) {
        self.length -= 1;
        let last = std::mem::replace(&mut self.entries[self.length], NOTHING);
        if self.length > 0 {
            self.sift_down(last);
        }
    }

    fn push(&mut self, entry: u128) {
        if self.length == self.entries.len() {
            self.entries.extend([NOTHING; ARITY]);
        }
        let mut at = self.length;
        self.length += 1;
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.entries[parent] <= entry {
                break;
            }
            self.entries[at] = self.entries[parent];
            at = parent;
        }
        self.entries[at] = entry;
    }

    /// Puts `entry` in the place of the top and moves it to where it belongs.
    fn sift_down(&mut self, entry: u128) {
        let entries = self.entries.as_mut_slice();
        let mut at = 0;
        while let Some([a, b, c, d]) =
            entries.get(at * ARITY + 1..).and_then(|children| children.first_chunk::<ARITY>())
        {
            let left = if b < a { (1, *b) } else { (0, *a) };
            let right = if d < c { (3, *d) } else { (2, *c) };
            let (least, child) = if right.1 < left.1 { right } else { left };
            if child >= entry {
                break;
            }
            entries[at] = child;
            at = at * ARITY + 1 + least;
        }
        entries[at] = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simnel_core::random::Random;
    use std::collections::BTreeMap;

    /// From a tournament of one level to one of three, and with places for all that are in it.
    #[test]
    fn events_come_in_order_of_time_and_then_of_planning() {
        for shared in [1, 3, 14, 39] {
            order_is_kept(shared, 200_000 / 4);
        }
    }

    fn order_is_kept(shared: u32, steps: u64) {
        let (mut events, mut model) = (Events::new(shared), BTreeMap::new());
        let mut random = Random::new(3);
        let (mut now, mut most) = (0, 0);
        for step in 0..steps {
            most = most.max(model.len());
            // Few distinct times, so that ties are common; bursts of pushes and of pops.
            if random.below(100) < 50 + 8 * u32::from(step % 1000 < 400) {
                let time = now + u64::from(random.below(50));
                let target = match step % 7 {
                    0..=2 => Target::Pipe(random.below(40)),
                    3 => Target::Line(random.below(2)),
                    _ => Target::App(step as u32),
                };
                // A line or shared pipe has one event.
                let one = match target {
                    Target::Pipe(pipe) => pipe < shared,
                    _ => matches!(target, Target::Line(_)),
                };
                if one {
                    model.retain(|_, other| *other != target);
                }
                model.insert((time, step), target);
                events.push(Time(time), target);
            } else {
                let until = now + u64::from(random.below(10));
                let expected = model.first_key_value().map(|(key, target)| (*key, *target));
                match (events.pop(Time(until)), expected) {
                    (Some(popped), Some((key, target))) => {
                        assert_eq!(popped, (Time(key.0), target));
                        model.remove(&key);
                        now = key.0;
                    }
                    (None, None) => {}
                    (None, Some((key, _))) => assert!(key.0 > until),
                    (Some(popped), None) => panic!("{popped:?} from an empty queue"),
                }
            }
        }
        assert!(most > 50, "{most}");
    }

    /// Hundreds of timers are up to three seconds ahead, and none is lost or told of twice.
    #[test]
    fn many_timers_come_once_each() {
        let (mut events, mut model) = (Events::new(1), BTreeMap::new());
        let mut random = Random::new(7);
        let mut now = 0;
        for step in 0..20_000u64 {
            if step < 400 || random.below(2) == 0 && step < 15_000 {
                let time = now + u64::from(random.below(3_000_000_000));
                model.insert((time, step), Target::Endpoint(step as u32));
                events.push(Time(time), Target::Endpoint(step as u32));
            } else if let Some((time, target)) = events.pop(Time(u64::MAX - 1)) {
                now = time.0;
                assert_eq!(
                    model.pop_first().map(|(key, target)| (key.0, target)),
                    Some((now, target))
                );
            }
        }
        assert!(model.is_empty() && now > 30_000_000_000, "{now}");
    }

    /// Of nothing, nothing comes, however long one waits.
    #[test]
    fn an_empty_queue_has_no_event() {
        assert_eq!(Events::new(1).pop(Time::MAX), None);
    }

    #[test]
    fn targets_survive_their_coding() {
        let last = MAX_TARGETS as u32 - 1;
        for target in [
            Target::Pipe(last),
            Target::Line(1),
            Target::Endpoint(7),
            Target::App(last),
            Target::Rate(0),
            Target::Sample,
        ] {
            assert_eq!(Target::from_code(target.code()), target);
        }
    }
}
