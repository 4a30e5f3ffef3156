//! Timers of disciplines, and the ticks to which a kernel rounds them.
//!
//! Some disciplines do something every so often: PIE computes its probability, SFQ changes its
//! hash. A driver calls only for packets, so a timer that fired meanwhile is caught up with at the
//! next call. What it would have done depends on nothing that has happened since. [`Periodic`]
//! bounds that work.
//!
//! Linux counts time for timers in jiffies, HZ a second, and its timer wheel fires one granule
//! late rather than early. A granule is a jiffy for delays below 63 jiffies, 8 jiffies below 504,
//! and so on by eights. Both show in PIE, whose 15 ms become 16 ms or, at 250 Hz, 20 ms.
//! [`Tick::Jiffies`] reproduces that, for comparison with recordings.

use crate::time::{Span, Time};
use crate::wide::{quotient, quotient_up};

/// Rounding of the time at which a timer fires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tick {
    /// None: it fires exactly when it was asked to.
    #[default]
    Exact,
    /// At a jiffy, as Linux.
    Jiffies {
        /// Jiffies a second: 100 to 1000.
        hz: u32,
        /// True to fire as late as the timer wheel does, false at the jiffy asked for.
        wheel: bool,
    },
}

/// Most rounds that are made up for at once. PIE's probability falls from 1 to 0 in fewer.
pub(crate) const MAX_ROUNDS: u32 = 1024;
/// Delays below this many jiffies have a granule of one jiffy in Linux's timer wheel; each
/// eightfold of it multiplies the granule by eight.
const FIRST_LEVEL: u64 = 63;
/// Levels of the timer wheel.
const LEVELS: u32 = 9;
const NANOS: u64 = 1_000_000_000;

impl Tick {
    /// Time at which a timer fires that is set at `now` to fire `delay` later.
    pub fn expiry(self, now: Time, delay: Span) -> Time {
        let Tick::Jiffies { hz, wheel } = self else { return now + delay };
        let hz = u64::from(hz.max(1));
        // Linux lets its 32-bit count overflow five minutes after boot. That moves the granules.
        let boot = (1u64 << 32).wrapping_sub(300 * hz);
        let jiffies = quotient_up(product(delay.0, hz), NANOS) as u64;
        let mut expiry = boot + quotient(product(now.0, hz), NANOS) as u64 + jiffies;
        if wheel {
            let mut level = 0;
            while level + 1 < LEVELS && jiffies >= FIRST_LEVEL << (3 * level) {
                level += 1;
            }
            expiry = ((expiry >> (3 * level)) + 1) << (3 * level);
        }
        Time(quotient_up(product(expiry - boot, NANOS), hz) as u64)
    }

    /// `now` as a count of ticks has it: the last tick.
    #[inline]
    pub fn last(self, now: Time) -> Time {
        let Tick::Jiffies { hz, .. } = self else { return now };
        let hz = u64::from(hz.max(1));
        let ticks = quotient(product(now.0, hz), NANOS);
        Time(quotient_up(ticks * u128::from(NANOS), hz) as u64)
    }

    /// `span` as a number of ticks has it: enough ticks for it.
    pub fn enough(self, span: Span) -> Span {
        let Tick::Jiffies { hz, .. } = self else { return span };
        let hz = u64::from(hz.max(1));
        let ticks = quotient_up(product(span.0, hz), NANOS);
        Span(quotient(ticks * u128::from(NANOS), hz) as u64)
    }
}

/// `a * b`, whole.
fn product(a: u64, b: u64) -> u128 {
    u128::from(a) * u128::from(b)
}

/// A timer that sets itself again each time it fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periodic {
    next: Time,
    period: Span,
    tick: Tick,
}

impl Periodic {
    /// A timer that is set at `now` to fire after `first` and then every `period`; never again if
    /// `period` is zero.
    pub fn new(tick: Tick, now: Time, first: Span, period: Span) -> Periodic {
        Periodic { next: tick.expiry(now, first), period, tick }
    }

    /// A timer that never fires.
    pub const fn never() -> Periodic {
        Periodic { next: Time::MAX, period: Span::ZERO, tick: Tick::Exact }
    }

    /// True if [`Periodic::catch_up`] has something to do.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        self.next <= now
    }

    /// Time of the next firing.
    pub fn next(&self) -> Time {
        self.next
    }

    /// Another period from the next time on.
    pub fn set_period(&mut self, period: Span) {
        self.period = period;
    }

    /// Calls `fire` for each time that has come by `now`, with that time. `fire` says whether one
    /// more call could change anything; if not, and after 1024 rounds, what remains is skipped.
    #[cold]
    pub fn catch_up(&mut self, now: Time, mut fire: impl FnMut(Time) -> bool) {
        for _ in 0..MAX_ROUNDS {
            if !self.is_due(now) {
                return;
            }
            crate::steps::step();
            let goes_on = fire(self.next);
            self.next = self.after(self.next);
            if !goes_on {
                break;
            }
        }
        if self.is_due(now) {
            let step = self.after(self.next).since(self.next).0.max(1);
            self.next += Span(now.since(self.next).0 / step * step);
            self.next = self.after(self.next);
        }
    }

    /// Firings by `now` since it was last caught up with; bounded as in [`Periodic::catch_up`].
    #[cold]
    pub fn count(&mut self, now: Time) -> u32 {
        let mut times = 0;
        if self.tick == Tick::Exact && self.period > Span::ZERO && self.is_due(now) {
            let periods = now.since(self.next).0 / self.period.0;
            times = periods.min(u64::from(MAX_ROUNDS) - 1) as u32 + 1;
            self.next += Span((periods + 1).saturating_mul(self.period.0));
        }
        self.catch_up(now, |_| {
            times += 1;
            true
        });
        times
    }

    fn after(&self, time: Time) -> Time {
        if self.period == Span::ZERO {
            return Time::MAX;
        }
        // At least one nanosecond on, so that time passes in every round.
        self.tick.expiry(time, self.period).max(time + Span(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A period so long that its end is no time any more.
    #[test]
    fn time_passes_in_every_round() {
        for wheel in [false, true] {
            let tick = Tick::Jiffies { hz: 1000, wheel };
            let longest = Periodic { next: Time(5), period: Span(u64::MAX - 1_000_000), tick };
            assert!(longest.after(Time(1 << 40)) > Time(1 << 40));
        }
    }

    #[test]
    fn expiries_as_recorded() {
        let start = Time(100_000_000_000);
        let half = Span::from_millis(500);
        let plain = Tick::Jiffies { hz: 1000, wheel: false };
        assert_eq!(plain.expiry(start, half), Time(100_500_000_000));
        assert_eq!(
            plain.expiry(Time(100_500_000_001), Span::from_millis(15)),
            Time(100_515_000_000)
        );
        // Golden pie/hz250-wheel: 125 jiffies have a granule of 8, 4 jiffies one of 1.
        let wheel = Tick::Jiffies { hz: 250, wheel: true };
        assert_eq!(wheel.expiry(start, half), Time(100_512_000_000));
        let next = wheel.expiry(Time(100_512_000_000), Span::from_millis(15));
        assert_eq!(next, Time(100_532_000_000));
        assert_eq!(Tick::Exact.expiry(Time(7), Span(8)), Time(15));
        assert_eq!(
            (plain.last(Time(1_999_999)), Tick::Exact.last(Time(3))),
            (Time(1_000_000), Time(3))
        );
        let slow = Tick::Jiffies { hz: 250, wheel: false };
        assert_eq!((slow.enough(half), slow.enough(Span(1))), (half, Span::from_millis(4)));
    }

    /// Level n of Linux's wheel has granules of 8^n jiffies, for delays below 63 * 8^n. A timer
    /// fires at the end of the granule that it falls in.
    #[test]
    fn the_wheel_rounds_up_by_a_granule_that_grows_with_the_delay() {
        let wheel = Tick::Jiffies { hz: 1000, wheel: true };
        let boot = (1u64 << 32) - 300_000;
        let mut granule = 1;
        for level in 0..9 {
            let first = if level == 0 { 1 } else { 63 * granule / 8 };
            for delay in [first, first + 1, 63 * granule - 1] {
                for now in [0, 12_345] {
                    let fires = wheel.expiry(Time(now * 1_000_000), Span::from_millis(delay));
                    let expected = (boot + now + delay) / granule * granule + granule - boot;
                    assert_eq!(fires, Time(expected * 1_000_000), "{delay} at level {level}");
                }
            }
            granule *= 8;
        }
    }

    /// There is no tenth level: the granules of the ninth, two days and a half long at 250 Hz,
    /// are the longest.
    #[test]
    fn the_longest_delays_have_the_granules_of_the_last_level() {
        let wheel = Tick::Jiffies { hz: 250, wheel: true };
        let (granule, boot) = (1u64 << 24, (1u64 << 32) - 300 * 250);
        for delay in [63 * granule, 65 * granule + 1, 503 * granule, 600 * granule] {
            let fires = wheel.expiry(Time::ZERO, Span::from_millis(4 * delay));
            let expected = (boot + delay) / granule * granule + granule - boot;
            assert_eq!(fires, Time(expected * 4_000_000), "{delay}");
        }
    }

    #[test]
    fn what_was_missed_is_counted_at_once_if_it_comes_in_equal_steps() {
        let ms = Span::from_millis;
        let mut timer = Periodic::new(Tick::Exact, Time::ZERO, ms(15), ms(15));
        crate::steps::take();
        assert_eq!((timer.count(Time::ZERO + ms(15_000)), timer.next().0), (1_000, 15_015_000_000));
        assert_eq!(crate::steps::take(), 0);
        // Jiffies of 4 ms make 16 of 15.
        let jiffies = Tick::Jiffies { hz: 250, wheel: false };
        let mut timer = Periodic::new(jiffies, Time::ZERO, ms(15), ms(15));
        assert_eq!((timer.count(Time::ZERO + ms(160)), timer.next().0), (10, 176_000_000));
        let mut once = Periodic::new(Tick::Exact, Time::ZERO, ms(15), Span::ZERO);
        assert_eq!((once.count(Time::ZERO + ms(15)), once.next()), (1, Time::MAX));
    }

    #[test]
    fn another_period_counts_from_the_next_expiry_on() {
        let ms = Span::from_millis;
        let mut timer = Periodic::new(Tick::Exact, Time::ZERO, ms(10), ms(10));
        timer.set_period(ms(3));
        assert_eq!(timer.next(), Time::ZERO + ms(10));
        assert_eq!((timer.count(Time::ZERO + ms(16)), timer.next()), (3, Time::ZERO + ms(19)));
        assert_eq!(timer.count(Time::ZERO + ms(18)), 0);
    }

    #[test]
    fn a_timer_keeps_its_rhythm_however_late_it_is_called() {
        let period = Span::from_millis(15);
        let timer = Periodic::new(Tick::Exact, Time::ZERO, Span::from_millis(500), period);
        let (mut prompt, mut late, mut bored) = (timer, timer, timer);
        let mut rounds = 0;
        for ms in 0..100_000 {
            prompt.catch_up(Time(ms * 1_000_000), |_| {
                rounds += 1;
                true
            });
        }
        assert_eq!(rounds, (99_999 - 500) / 15 + 1);
        let mut late_rounds = 0;
        late.catch_up(Time(99_999_000_000), |_| {
            late_rounds += 1;
            true
        });
        bored.catch_up(Time(99_999_000_000), |_| false);
        assert_eq!(late_rounds, MAX_ROUNDS);
        let mut counted = timer;
        for ms in [500, 530, 531, 99_999] {
            let (mut fired, mut expected) = (counted, 0);
            fired.catch_up(Time(ms * 1_000_000), |_| {
                expected += 1;
                true
            });
            assert_eq!(counted.count(Time(ms * 1_000_000)), expected);
            assert_eq!(counted, fired);
        }
        // Jiffies of 4 ms stretch 15 ms to 16, each time.
        let jiffies = Tick::Jiffies { hz: 250, wheel: false };
        let mut slow = Periodic::new(jiffies, Time::ZERO, period, period);
        assert_eq!(slow.count(Time(160_000_000)), 10);
        assert_eq!((prompt, prompt), (late, bored));
        let mut once = Periodic::new(Tick::Exact, Time::ZERO, period, Span::ZERO);
        once.catch_up(Time(u64::MAX - 1), |_| true);
        assert_eq!(once.next(), Time::MAX);
    }
}
