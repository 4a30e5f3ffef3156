//! CAKE's shaper: a virtual clock that each packet moves on by the time it takes at the set rate.
//!
//! Piece of CAKE, Algorithm 1, lines 9-17 (line 9 says "after" where "before" is meant). Nothing
//! may be sent while the clock is ahead of time. If the clock falls behind while the queue is idle,
//! it is set to the present: idling earns no burst. If it falls behind while the queue is busy, it
//! is left there: a driver that wakes late catches up.
//!
//! Behind the bottleneck (`ingress`) dropped packets are charged too. A second, failsafe clock
//! counts only what was delivered, at two thirds of the rate. Sending is blocked only while both
//! are ahead, so that drops alone can never stop the line. (Facts A.4.)
//!
//! When an empty queue fills, the failsafe clock may be behind although the first one is ahead.
//! Linux leaves it there, and so, after drops and a pause, sends up to two thirds of the pause's
//! worth at once. Here it is set to the present as well, except under `Arithmetic::Linux`.
//!
//! Nor do the clocks move while there is no rate. A rate that comes then finds them at the time of
//! the last empty queue: call [`DeficitClock::start`], or that time is sent for at once.

use crate::rate::ByteTime;
use crate::time::{Span, Time};

/// The two clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeficitClock {
    next: Time,
    failsafe: Time,
    byte_time: ByteTime,
    remainder: u64,
    unlimited: bool,
}

impl DeficitClock {
    /// Runs at another rate from now on. What was charged stays charged, unless there is no rate
    /// left to pay it off at.
    pub fn set_rate(&mut self, byte_time: ByteTime) {
        self.byte_time = byte_time;
        self.remainder = 0;
        let had_rate = !core::mem::replace(&mut self.unlimited, byte_time == ByteTime::default());
        if self.unlimited && had_rate {
            self.restart();
        }
    }

    /// Forgets the schedule: the next packet may be sent at once.
    pub fn restart(&mut self) {
        (self.next, self.failsafe, self.remainder) = (Time::ZERO, Time::ZERO, 0);
    }

    /// True if there is no rate to keep.
    #[inline]
    pub fn is_unlimited(&self) -> bool {
        self.unlimited
    }

    /// A packet has come into an empty queue. True if it must wait.
    #[inline]
    pub fn start(&mut self, now: Time) -> bool {
        if self.next < now {
            (self.next, self.failsafe) = (now, now);
            return false;
        }
        if self.byte_time.is_exact() {
            self.failsafe = self.failsafe.max(now);
        }
        self.is_blocked(now)
    }

    /// True if nothing may be sent yet.
    #[inline]
    pub fn is_blocked(&self, now: Time) -> bool {
        self.next_due() > now
    }

    /// Time at which the next packet may be sent.
    #[inline]
    pub fn next_due(&self) -> Time {
        self.next.min(self.failsafe)
    }

    /// Charges `len` bytes on the line.
    #[inline(always)]
    pub fn charge(&mut self, len: u32, delivered: bool) {
        let duration = self.byte_time.charge(len, &mut self.remainder);
        self.next += duration;
        if delivered {
            self.failsafe += Span(duration.0 * 3 / 2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rate::{Arithmetic, Rate};

    fn clock(bits: u64) -> DeficitClock {
        let mut clock = DeficitClock::default();
        clock.set_rate(ByteTime::new(Rate::from_bits(bits), Arithmetic::Exact));
        clock
    }

    #[test]
    fn idling_earns_nothing_and_waking_late_loses_nothing() {
        let mut clock = clock(8_000_000); // 1 byte a microsecond
        assert!(!clock.start(Time(5_000_000_000)));
        clock.charge(1000, true);
        assert_eq!(clock.next_due(), Time(5_001_000_000));
        // Half a millisecond late, still busy: the schedule stands.
        clock.charge(1000, true);
        assert_eq!(clock.next_due(), Time(5_002_000_000));
    }

    #[test]
    fn drops_and_a_pause_earn_nothing_either() {
        let mut clock = clock(8_000_000);
        clock.start(Time(0));
        clock.charge(1_000_000, false);
        // The first clock is 1 s ahead; the queue was empty for half of that.
        assert!(!clock.start(Time(500_000_000)));
        clock.charge(1000, true);
        assert_eq!(clock.next_due(), Time(501_500_000));
    }

    /// Linux's `cake_enqueue`: only a clock that is behind is set to the present. One that is on
    /// time leaves the failsafe clock where it is.
    #[test]
    fn a_clock_on_time_earns_nothing() {
        for (us, due) in [(1_000, 1_500), (1_001, 1_001)] {
            let mut clock = clock(8_000_000);
            clock.start(Time(0));
            clock.charge(1000, true);
            assert!(!clock.start(Time(1_000 * us)));
            clock.charge(1000, false);
            assert_eq!(clock.next_due(), Time(1_000 * due));
        }
    }

    #[test]
    fn nothing_waits_once_there_is_no_rate() {
        let mut clock = clock(8_000_000);
        clock.start(Time(1_000));
        clock.charge(1_000_000, true);
        assert!(clock.is_blocked(Time(2_000)));
        clock.set_rate(ByteTime::default());
        assert!(clock.is_unlimited() && !clock.is_blocked(Time(2_000)));
    }

    #[test]
    fn dropped_packets_cannot_stop_the_line() {
        let mut clock = clock(8_000_000);
        clock.start(Time(0));
        for _ in 0..100 {
            clock.charge(1000, false);
        }
        assert!(!clock.is_blocked(Time(0)));
        clock.charge(1000, true);
        // Delivered bytes count one and a half times on the failsafe clock.
        assert_eq!(clock.next_due(), Time(1_500_000));
    }
}
