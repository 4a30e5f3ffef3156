//! Pipes: a way with a constant delay, and optionally a rate in front of it.
//!
//! All packets take equally long, so they leave in the order in which they came. A ring holds what
//! is under way, and only its head has an event. Hosts at the same distance share a pipe. An access
//! link with a rate is a pipe of its own, in which a packet first waits for those before it. That
//! is netem's `rate`: serialisation behind the previous packet, then the delay. Jitter lengthens
//! the way of single packets, never beyond order: nobody arrives before an earlier packet.
//!
//! Invariant: due times in the ring never decrease.

use std::slice;

use prefetch_index::prefetch_index;
use simnel_core::random::Random;
use simnel_core::rate::{Arithmetic, ByteTime};
use simnel_core::{Rate, Span, Time};

/// Places of a ring when something is under way for the first time.
const FIRST_PLACES: usize = 4;

/// A way from one place to another.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    delay: Span,
    /// The delay is all: there is neither jitter nor a rate.
    constant: bool,
    /// Longest additional delay.
    jitter: Span,
    /// None without a rate.
    byte_time: Option<ByteTime>,
    /// Time at which the sender of an access link has sent everything; `remainder` is the fraction
    /// beyond.
    free: Time,
    remainder: u64,
    last_due: Time,
    random: Random,
    /// True at the end that leads to the bottleneck of the route.
    pub to_bottleneck: bool,
    ring: Ring,
}

impl Pipe {
    /// An empty pipe; a zero rate stands for none.
    pub fn new(
        (delay, jitter): (Span, Span),
        rate: Rate,
        to_bottleneck: bool,
        random: Random,
    ) -> Pipe {
        Pipe {
            delay,
            constant: jitter == Span::ZERO && rate.is_unlimited(),
            jitter,
            byte_time: (!rate.is_unlimited()).then(|| ByteTime::new(rate, Arithmetic::Exact)),
            free: Time::ZERO,
            remainder: 0,
            last_due: Time::ZERO,
            random,
            to_bottleneck,
            ring: Ring::default(),
        }
    }

    /// Takes `handle`, a frame of `len` bytes, in at `now`. Returns the time for which the caller
    /// must plan an event, if the pipe was empty.
    #[inline(always)]
    pub fn push(&mut self, handle: u32, len: u32, now: Time) -> Option<Time> {
        let due = if self.constant { now + self.delay } else { self.due(len, now) };
        self.last_due = self.last_due.max(due);
        self.ring.push((self.last_due, handle));
        (self.ring.len() == 1).then_some(self.last_due)
    }

    /// Time at which a frame of `len` bytes that comes at `now` is through, before jitter is kept
    /// in order.
    #[inline(never)]
    fn due(&mut self, len: u32, now: Time) -> Time {
        let mut due = now + self.delay;
        if let Some(byte_time) = &self.byte_time {
            self.free = self.free.max(now) + byte_time.charge(len, &mut self.remainder);
            due = self.free + self.delay;
        }
        if self.jitter != Span::ZERO {
            // 128 bits: a jitter of seconds in nanoseconds times 64 random bits.
            let part = u128::from(self.random.u64()) * u128::from(self.jitter.0 + 1);
            due += Span((part >> 64) as u64);
        }
        due
    }

    /// The head, whose time the caller knows to have come, and the time of what follows;
    /// `Time::MAX` if nothing does.
    #[inline]
    pub fn pop(&mut self) -> Option<(u32, Time)> {
        let (_, handle) = self.ring.pop()?;
        Some((handle, self.ring.get(0).map_or(Time::MAX, |(due, _)| *due)))
    }

    /// The packet that arrives after `n` others.
    #[inline]
    pub fn upcoming(&self, n: usize) -> Option<u32> {
        self.ring.get(n).map(|(_, handle)| *handle)
    }

    /// Has the processor fetch what the ring says of that packet, and does not wait. It was written
    /// one delay ago, and has left the cache where thousands of packets are under way.
    #[inline]
    pub fn prefetch(&self, n: usize) {
        if let Some(entry) = self.ring.get(n) {
            prefetch_index(slice::from_ref(entry), 0);
        }
    }

    /// Those under way.
    pub fn handles(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.len()).filter_map(|n| self.upcoming(n))
    }

    /// Packets under way.
    pub fn len(&self) -> usize {
        self.ring.len()
    }
}

/// A queue in a power of two of places, named by numbers that count on and wrap. So neither end
/// needs to know where the places end.
#[derive(Clone, Debug, Default)]
struct Ring {
    places: Vec<(Time, u32)>,
    head: usize,
    tail: usize,
}

impl Ring {
    #[inline]
    fn len(&self) -> usize {
        self.tail.wrapping_sub(self.head)
    }

    #[inline(always)]
    fn place(&self, number: usize) -> usize {
        number & self.places.len().wrapping_sub(1)
    }

    /// The entry behind `n` others.
    #[inline(always)]
    fn get(&self, n: usize) -> Option<&(Time, u32)> {
        if n >= self.len() {
            return None;
        }
        self.places.get(self.place(self.head.wrapping_add(n)))
    }

    #[inline(always)]
    fn push(&mut self, entry: (Time, u32)) {
        if self.len() == self.places.len() {
            self.grow();
        }
        let place = self.place(self.tail);
        if let Some(free) = self.places.get_mut(place) {
            *free = entry;
            self.tail = self.tail.wrapping_add(1);
        }
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(Time, u32)> {
        let first = self.get(0).copied()?;
        self.head = self.head.wrapping_add(1);
        Some(first)
    }

    /// Twice as many places; what is there moves to the first of them.
    #[cold]
    fn grow(&mut self) {
        let length = self.len();
        let first = self.place(self.head);
        if length > 0 {
            self.places.rotate_left(first);
        }
        self.places.resize((2 * length).max(FIRST_PLACES), (Time::ZERO, 0));
        (self.head, self.tail) = (0, length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_makes_packets_wait_for_each_other() {
        let delay = (Span::from_millis(25), Span::ZERO);
        let mut pipe = Pipe::new(delay, Rate::from_bits(8_000_000), true, Random::new(1));
        // 1000 bytes at 1 byte/µs: 1 ms each.
        assert_eq!(pipe.push(1, 1000, Time::ZERO), Some(Time(26_000_000)));
        assert_eq!(pipe.push(2, 1000, Time::ZERO), None);
        assert_eq!(pipe.pop(), Some((1, Time(27_000_000))));
        assert_eq!((pipe.pop(), pipe.pop()), (Some((2, Time::MAX)), None));
    }

    #[test]
    fn a_ring_is_a_queue() {
        let (mut ring, mut model) = (Ring::default(), std::collections::VecDeque::new());
        let mut random = Random::new(7);
        for step in 0..10_000 {
            if random.below(100) < if step % 1_000 < 500 { 60 } else { 40 } {
                ring.push((Time(step), step as u32));
                model.push_back((Time(step), step as u32));
            } else {
                assert_eq!(ring.pop(), model.pop_front());
            }
            let n = random.below(8) as usize;
            assert_eq!((ring.len(), ring.get(n)), (model.len(), model.get(n)));
        }
    }

    #[test]
    fn jitter_keeps_order_and_stays_in_range() {
        let mut pipe = Pipe::new((Span(1000), Span(500)), Rate::default(), false, Random::new(9));
        let (mut last, mut spread) = (Time::ZERO, [false; 2]);
        for at in (0..1_000_000).step_by(400) {
            let due = pipe.push(0, 1514, Time(at)).expect("the pipe was empty");
            assert!(due >= last && due >= Time(at + 1000) && due <= Time(at + 1500));
            spread[usize::from(due > Time(at + 1250))] = true;
            last = due;
            assert_eq!(pipe.pop(), Some((0, Time::MAX)));
        }
        assert_eq!(spread, [true; 2]);
    }

    /// The longest that is asked for is as likely as any other.
    #[test]
    fn a_jitter_of_a_nanosecond_is_one_or_none() {
        let mut pipe = Pipe::new((Span(10), Span(1)), Rate::default(), false, Random::new(9));
        let mut late = 0;
        for at in (0..1_000).map(|n| n * 100) {
            late += pipe.push(0, 1514, Time(at)).expect("the pipe was empty").0 - at - 10;
            pipe.pop();
        }
        assert!((450..=550).contains(&late), "{late}");
    }
}
