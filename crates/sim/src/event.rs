//! The event queue: what happens next.
//!
//! Keyed (time, sequence number), so that events of the same nanosecond happen in the order in
//! which they were planned, on every machine. Every pipe, line and timer has at most one event
//! pending (htsim's way; Handley et al., NDP, SIGCOMM 2017, section 5): the queue is as small as
//! the network, not as large as what is in flight, and stays in the first-level cache.
//!
//! Heaps of four children a node, each entry one 128-bit number: time, sequence, target. What was
//! popped leaves a hole at the top which the next push fills in place, since nearly every event
//! plans exactly one successor.

use simnel_core::Time;

/// Who an event is for.
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
/// How many targets of one kind there can be.
pub(crate) const MAX_TARGETS: usize = 1 << INDEX_BITS;
/// Children of a node.
const ARITY: usize = 4;

impl Target {
    #[inline(always)]
    fn code(self) -> u64 {
        let (kind, index) = match self {
            Target::Pipe(index) => (0, index),
            Target::Line(index) => (1, index),
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
        let index = (code & ((1 << INDEX_BITS) - 1)) as u32;
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

/// All pending events: those of pipes and lines, which come and go with every packet, in one heap,
/// those of timers, which mostly lie far ahead, in another. Sequence numbers are common to both.
#[derive(Clone, Debug)]
pub(crate) struct Events {
    near: Heap,
    far: Heap,
    /// The first of `far`.
    first_far: u128,
    sequence: u64,
}

impl Default for Events {
    fn default() -> Events {
        let (near, far) = (Heap::default(), Heap::default());
        Events { near, far, first_far: NOTHING, sequence: 0 }
    }
}

impl Events {
    /// Plans an event.
    #[inline]
    pub fn push(&mut self, time: Time, target: Target) {
        let low = self.sequence << TARGET_BITS | target.code();
        self.sequence += 1;
        let entry = u128::from(time.0) << 64 | u128::from(low);
        match target {
            Target::Pipe(_) | Target::Line(_) => self.near.push(entry),
            _ => {
                self.far.push(entry);
                self.first_far = self.first_far.min(entry);
            }
        }
    }

    /// The first event, if it is not after `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, Target)> {
        let near = self.near.first();
        if near < self.first_far {
            let time = Time((near >> 64) as u64);
            if time > until {
                return None;
            }
            self.near.hole = true;
            return Some((time, Target::from_code(near as u64)));
        }
        self.pop_far(until)
    }

    #[inline(never)]
    fn pop_far(&mut self, until: Time) -> Option<(Time, Target)> {
        let top = self.first_far;
        let time = Time((top >> 64) as u64);
        if time > until || top == NOTHING {
            return None;
        }
        self.far.hole = true;
        self.first_far = self.far.first();
        Some((time, Target::from_code(top as u64)))
    }
}

/// Later than every event: the top of an empty heap.
const NOTHING: u128 = u128::MAX;

/// A heap whose top may be a hole. It is filled up with [`NOTHING`], so that every node that has
/// children has all of them.
#[derive(Clone, Debug)]
struct Heap {
    entries: Vec<u128>,
    length: usize,
    /// The top was taken and its place is still free.
    hole: bool,
}

impl Default for Heap {
    fn default() -> Heap {
        Heap { entries: vec![NOTHING], length: 0, hole: false }
    }
}

impl Heap {
    #[inline(always)]
    fn push(&mut self, entry: u128) {
        if self.hole {
            self.hole = false;
            self.sift_down(entry);
        } else {
            self.append(entry);
        }
    }

    /// The least entry.
    #[inline(always)]
    fn first(&mut self) -> u128 {
        if self.hole {
            self.fill();
        }
        self.entries.first().copied().unwrap_or(NOTHING)
    }

    /// Nothing came into the hole: the last entry does.
    fn fill(&mut self) {
        self.hole = false;
        self.length -= 1;
        let last = std::mem::replace(&mut self.entries[self.length], NOTHING);
        if self.length > 0 {
            self.sift_down(last);
        }
    }

    fn append(&mut self, entry: u128) {
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
    #[inline(always)]
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

    #[test]
    fn events_come_in_order_of_time_and_then_of_planning() {
        let (mut events, mut model) = (Events::default(), BTreeMap::new());
        let mut random = Random::new(3);
        let mut now = 0;
        for step in 0..200_000u64 {
            // Few distinct times, so that ties are common; bursts of pushes and of pops.
            if random.below(100) < 50 + 8 * u32::from(step % 1000 < 400) {
                let time = now + u64::from(random.below(50));
                let target = if step % 3 == 0 {
                    Target::Pipe(step as u32)
                } else {
                    Target::App(step as u32)
                };
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
        assert!(model.len() > 100);
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
