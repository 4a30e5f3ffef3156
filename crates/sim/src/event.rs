//! The event queue: what happens next.
//!
//! Keyed (time, sequence number), so that events of the same nanosecond happen in the order in
//! which they were planned, on every machine. Every pipe, line and timer has at most one event
//! pending (htsim's way; Handley et al., NDP, SIGCOMM 2017, section 5): the queue is as small as
//! the network, not as large as what is in flight, and stays in the first-level cache.
//!
//! A heap of four children a node, each entry one 128-bit number: time, sequence, target. What was
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

/// All pending events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    heap: Vec<u128>,
    /// The top was taken and its place is still free.
    hole: bool,
    sequence: u64,
}

impl Events {
    /// Plans an event.
    #[inline]
    pub fn push(&mut self, time: Time, target: Target) {
        let low = self.sequence << TARGET_BITS | target.code();
        self.sequence += 1;
        let entry = u128::from(time.0) << 64 | u128::from(low);
        if self.hole {
            self.hole = false;
            self.sift_down(entry);
        } else {
            self.heap.push(entry);
            self.sift_up(entry);
        }
    }

    /// The first event, if it is not after `until`.
    #[inline]
    pub fn pop(&mut self, until: Time) -> Option<(Time, Target)> {
        if self.hole {
            self.hole = false;
            let last = self.heap.pop()?;
            if self.heap.is_empty() {
                return None;
            }
            self.sift_down(last);
        }
        let top = *self.heap.first()?;
        let time = Time((top >> 64) as u64);
        if time > until {
            return None;
        }
        self.hole = true;
        Some((time, Target::from_code(top as u64)))
    }

    #[inline]
    fn sift_up(&mut self, entry: u128) {
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[at] = self.heap[parent];
            at = parent;
        }
        self.heap[at] = entry;
    }

    /// Puts `entry` in the place of the top and moves it to where it belongs.
    #[inline]
    fn sift_down(&mut self, entry: u128) {
        let heap = self.heap.as_mut_slice();
        let mut at = 0;
        loop {
            let first = at * ARITY + 1;
            let Some(children) = heap.get(first..(first + ARITY).min(heap.len())) else { break };
            let mut least = 0;
            for child in 1..children.len() {
                if children[child] < children[least] {
                    least = child;
                }
            }
            match children.get(least) {
                Some(&child) if child < entry => {
                    heap[at] = child;
                    at = first + least;
                }
                _ => break,
            }
        }
        heap[at] = entry;
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
                model.insert((time, step), Target::App(step as u32));
                events.push(Time(time), Target::App(step as u32));
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
