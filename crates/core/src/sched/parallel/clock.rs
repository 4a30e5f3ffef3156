//! The line that all queues share: when it is free again.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::time::{Span, Time};

/// A lot of time that a queue uses before it pays.
pub const LOT: Span = Span::from_micros(5);

/// When the line is free again, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Clock {
    next: AtomicU64,
    /// Where drops are charged: the same for what was delivered alone, at two thirds of the rate.
    failsafe: AtomicU64,
}

impl Clock {
    /// When the line is free again.
    pub fn next(&self) -> Time {
        Time(self.next.load(Relaxed))
    }

    /// When it is free again whatever was dropped.
    pub fn failsafe(&self) -> Time {
        Time(self.failsafe.load(Relaxed))
    }

    /// The line was used for `time`, up to `now`; of time before, at most `late` is caught up with.
    pub fn pay(&self, time: Span, now: Time, late: Span) {
        advance(&self.next, time, now, late);
    }

    /// Packets that take `time` on the line were delivered, likewise.
    pub fn pay_failsafe(&self, time: Span, now: Time, late: Span) {
        advance(&self.failsafe, failsafe(time), now, late);
    }

    /// Forgets drops: from now on the line is free when it would be without them, or earlier.
    pub fn forgive(&self) {
        self.next.fetch_min(self.failsafe.load(Relaxed), Relaxed);
    }
}

/// When a tin's next packet is due at its threshold, shared by all queues.
#[derive(Debug, Default)]
pub struct TinClock(AtomicU64);

impl TinClock {
    /// When the tin's next packet is due.
    pub fn due(&self) -> Time {
        Time(self.0.load(Relaxed))
    }

    /// Begins at `now`, unless it is ahead.
    pub fn start(&self, now: Time) {
        self.0.fetch_max(now.0, Relaxed);
    }

    /// The tin sent for `time` at its threshold up to `now`: it is ahead by that at most.
    pub fn pay(&self, time: Span, now: Time) {
        let before = self.0.fetch_add(time.0, Relaxed);
        if before > now.0 {
            self.0.fetch_min((now + time).0.max(before), Relaxed);
        }
    }
}

/// `time` on the line as the failsafe clock counts it.
pub fn failsafe(time: Span) -> Span {
    Span(time.0 * 3 / 2)
}

/// Two steps that no other queue can hold up; if one comes between them, the clock is the same.
fn advance(clock: &AtomicU64, time: Span, now: Time, late: Span) {
    clock.fetch_max(now.0.saturating_sub(late.0), Relaxed);
    clock.fetch_add(time.0, Relaxed);
}
