//! When the next segment may leave, if the sender is paced.
//!
//! Each segment moves the time on by its length over the pacing rate, with half a segment of credit
//! for a late start, as Linux's TCP and `fq` do. The first ten segments are not paced.

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

    /// How long a segment would have to wait.
    #[inline]
    pub(super) fn delay(&self, now: Time) -> Span {
        self.next.since(now)
    }

    /// A segment of `len` bytes, the `count`th, left at `now` at `rate` bytes per second.
    #[inline]
    pub(super) fn after_sending(&mut self, len: u32, count: u64, rate: u64, now: Time) {
        if rate == 0 || count < UNPACED_SEGMENTS {
            return;
        }
        let length = u64::from(len) * 1_000_000_000 / rate;
        let credit = now.since(self.next).0;
        self.next = self.next.max(now) + Span(length - credit.min(length / 2));
    }
}
