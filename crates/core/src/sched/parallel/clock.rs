//! The line that all queues share: when it is free again.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::time::{Span, Time};

/// A lot of time that a queue uses before it pays.
pub const LOT: Span = Span::from_micros(5);

/// Time at which the line is free again, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Clock {
    next: AtomicU64,
    /// The same for delivered packets alone, at two thirds of the rate; used where drops are
    /// charged.
    failsafe: AtomicU64,
}

impl Clock {
    /// Time at which the line is free again.
    pub fn next(&self) -> Time {
        Time(self.next.load(Relaxed))
    }

    /// Time at which it is free again whatever was dropped.
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

/// Time at which a tin's next packet is due at its threshold, shared by all queues.
#[derive(Debug, Default)]
pub struct TinClock(AtomicU64);

impl TinClock {
    /// Time at which the tin's next packet is due.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_catches_up_with_some_lateness_and_drops_are_forgiven() {
        let (clock, late) = (Clock::default(), Span(500));
        for (time, now, next) in [
            (100, 0, 100),
            (100, 50, 200),
            // Late by no more than is caught up with, and by more.
            (100, 700, 300),
            (100, 1_000, 600),
            (0, 2_000, 1_500),
        ] {
            clock.pay(Span(time), Time(now), late);
            assert_eq!(clock.next(), Time(next), "{now}");
        }
        // Two thirds of the rate take half as long again.
        clock.pay_failsafe(Span(100), Time(1_500), late);
        assert_eq!(clock.failsafe(), Time(1_150));
        clock.forgive();
        assert_eq!(clock.next(), Time(1_150));
        clock.pay_failsafe(Span(301), Time(1_500), late);
        clock.forgive();
        assert_eq!((clock.next(), clock.failsafe()), (Time(1_150), Time(1_601)));
    }

    /// One that is behind catches up with all, and none is ahead by more than its last packet.
    #[test]
    fn a_tin_is_ahead_by_one_payment_at_most() {
        for (due, time, now, next) in [
            (0, 10, 100, 10),
            (95, 10, 100, 105),
            (100, 30, 100, 130),
            (120, 30, 100, 130),
            (150, 30, 100, 150),
        ] {
            let clock = TinClock::default();
            clock.start(Time(due));
            clock.pay(Span(time), Time(now));
            assert_eq!(clock.due(), Time(next), "{due}");
            clock.start(Time(140));
            assert_eq!(clock.due(), Time(next.max(140)), "{due}");
        }
    }
}
