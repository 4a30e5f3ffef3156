//! Pacing: the earliest time at which the next segment may leave, if the sender is paced.
//!
//! Each segment moves that time on by its length over the pacing rate. A late start gives credit of
//! at most half a segment, as in Linux's TCP and `fq`. The first ten segments are not paced, but
//! the tenth makes the next one wait: it follows the ninth, and has no credit.

use simnel_core::time::{Span, Time};

/// Segments of data that leave unpaced: an initial window.
const UNPACED_SEGMENTS: u64 = 10;

/// The pacer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    /// The next segment may leave then.
    next: Time,
    /// A segment waits for that time; else never.
    pub(crate) wake: Time,
}

impl Default for Pacer {
    fn default() -> Pacer {
        Pacer { next: Time::ZERO, wake: Time::MAX }
    }
}

impl Pacer {
    /// True if a segment must wait; asks to be woken.
    #[inline]
    pub(super) fn must_wait(&mut self, now: Time) -> bool {
        if self.next > now {
            self.wake = self.next;
            return true;
        }
        false
    }

    /// Time that a segment would have to wait.
    #[inline]
    pub(super) fn delay(&self, now: Time) -> Span {
        self.next.since(now)
    }

    /// A segment of `len` bytes, the `count`th, left at `now` at `rate` bytes per second.
    #[inline]
    pub(super) fn after_sending(&mut self, len: u32, count: u64, rate: u64, now: Time) {
        let credit = now.since(self.next).0;
        self.next = self.next.max(now);
        if rate == 0 || count < UNPACED_SEGMENTS {
            return;
        }
        let length = u64::from(len) * 1_000_000_000 / rate;
        self.next += Span(length - credit.min(length / 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: u64 = 1_000_000;

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    #[test]
    fn a_segment_waits_for_the_time_of_the_one_before() {
        let mut pacer = Pacer::default();
        assert_eq!(pacer.wake, Time::MAX);
        pacer.after_sending(1_000, 10, RATE, ms(5));
        // A millisecond, less half of it for the start.
        assert!(!pacer.must_wait(Time(5_500_000)));
        assert_eq!(pacer.wake, Time::MAX);
        assert!(pacer.must_wait(Time(5_499_999)));
        assert_eq!(pacer.wake, Time(5_500_000));
        assert_eq!(pacer.delay(ms(5)), Span(500_000));
        assert_eq!(pacer.delay(ms(7)), Span::ZERO);
        // On time, or before it, there is no credit.
        pacer.after_sending(1_000, 11, RATE, Time(5_500_000));
        assert_eq!(pacer.next, Time(6_500_000));
        pacer.after_sending(1_000, 12, RATE, ms(6));
        assert_eq!(pacer.next, Time(7_500_000));
        // What was late is made up for, up to half a segment.
        pacer.after_sending(1_000, 13, RATE, Time(7_600_000));
        assert_eq!(pacer.next, Time(8_500_000));
        pacer.after_sending(1_000, 14, RATE, ms(20));
        assert_eq!(pacer.next, Time(20_500_000));
        pacer.after_sending(500, 15, 2 * RATE, Time(20_500_000));
        assert_eq!(pacer.next, Time(20_750_000));
    }

    #[test]
    fn an_initial_window_is_not_paced_nor_what_has_no_rate() {
        let mut pacer = Pacer::default();
        for count in 1..10 {
            pacer.after_sending(1_000, count, RATE, ms(5));
        }
        pacer.after_sending(1_000, 99, 0, ms(5));
        assert!(!pacer.must_wait(ms(5)));
        pacer.after_sending(1_000, 10, RATE, ms(5));
        assert_eq!(pacer.delay(ms(5)), Span::from_millis(1));
    }
}
