//! Time in the units that TCP uses, and the ticks on which a kernel's timers fire.
//!
//! TCP measures in microseconds (32 bits, wrapping: nothing is in flight for half an hour) and
//! stamps segments in milliseconds. Its timers count ticks ("jiffies") and sit in a timer wheel
//! that trades precision for speed. The longer a timer, the coarser the level of the wheel that
//! holds it. It fires at the first tick after its time that its level knows: up to about an eighth
//! of its length late, and never early. With RTTs of tens of milliseconds this is visible in
//! recordings, so it is modelled; a tick of zero switches it off.

use simnel_core::time::{Span, Time};

/// A point in time in all the units that are in use.
#[derive(Clone, Copy, Debug, Default)]
pub struct Now {
    /// The driver's time.
    pub time: Time,
    /// Microseconds, wrapping.
    pub(crate) us: u32,
    /// Milliseconds, wrapping.
    pub(crate) ms: u32,
    /// Milliseconds.
    pub(crate) whole_ms: u64,
}

impl From<Time> for Now {
    #[inline]
    fn from(time: Time) -> Now {
        Now::new(time)
    }
}

impl Now {
    /// That time in all units.
    #[inline]
    pub fn new(time: Time) -> Now {
        let us = time.0 / 1_000;
        let whole_ms = us / 1_000;
        Now { time, us: us as u32, ms: whole_ms as u32, whole_ms }
    }

    /// Microseconds since `earlier` (a wrapping stamp); zero if that is in the future.
    #[inline]
    pub(crate) fn since_us(&self, earlier: u32) -> u32 {
        let passed = self.us.wrapping_sub(earlier);
        if passed as i32 >= 0 {
            passed
        } else {
            0
        }
    }

    /// The timestamp option's value. Zero means "none" to an echo, so the count starts at one.
    #[inline]
    pub(crate) fn timestamp(&self) -> u32 {
        self.ms.wrapping_add(1)
    }

    /// The timestamp at `earlier`, a wrapping stamp in microseconds.
    pub(crate) fn timestamp_at(&self, earlier: u32) -> u32 {
        let us = self.time.0 / 1_000 - u64::from(self.since_us(earlier));
        ((us / 1_000) as u32).wrapping_add(1)
    }
}

/// `a` is before `b` on a wrapping 32-bit scale.
#[inline]
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Timers in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ticks {
    /// Length of a tick in microseconds; zero where timers are exact and count microseconds.
    us: u32,
}

/// Each level of the wheel is this many bits coarser than the one below it.
const LEVEL_BITS: u32 = 3;
/// Timers shorter than this many ticks sit in the finest level.
const FINEST: u32 = 63;

impl Ticks {
    pub(crate) fn new(tick: Span) -> Ticks {
        Ticks { us: tick.as_micros().min(1_000_000) as u32 }
    }

    /// Ticks that cover `us` microseconds.
    #[inline]
    pub(crate) fn covering(&self, us: u32) -> u32 {
        match self.us {
            // The usual tick, for which the compiler knows a multiplication.
            1_000 => us.div_ceil(1_000),
            _ => self.covering_unusual(us),
        }
    }

    /// Apart from the usual ticks, with which it would share its division.
    #[inline(never)]
    fn covering_unusual(self, us: u32) -> u32 {
        match self.us {
            0 => us,
            tick => us.div_ceil(tick),
        }
    }

    /// Whole ticks in `span`.
    pub(crate) fn within(&self, span: Span) -> u32 {
        (span.0 / (u64::from(self.us.max(1)) * 1_000)).min(u64::from(u32::MAX >> 1)) as u32
    }

    /// Microseconds in `ticks`.
    #[inline]
    pub(crate) fn to_us(self, ticks: u32) -> u32 {
        ticks.saturating_mul(self.us.max(1))
    }

    /// Number of the tick in which `now` lies.
    #[inline]
    pub(crate) fn number(&self, now: &Now) -> u64 {
        match self.us {
            1_000 => now.whole_ms,
            tick => now.time.0 / (u64::from(tick.max(1)) * 1_000),
        }
    }

    /// Time at which a timer fires that is set at `now` for `ticks`.
    #[inline]
    pub(crate) fn deadline(&self, now: &Now, ticks: u32) -> Time {
        if self.us == 0 {
            return now.time + Span(u64::from(ticks) * 1_000);
        }
        let expires = self.number(now) + u64::from(ticks);
        // Level n takes timers from 63 * 8^(n-1) ticks on.
        let shift = match ticks / FINEST {
            0 => 0,
            multiple => (multiple.ilog2() / LEVEL_BITS + 1) * LEVEL_BITS,
        };
        Time((((expires >> shift) + 1) << shift) * u64::from(self.us) * 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_fire_on_ticks_late_and_never_early() {
        let ticks = Ticks::new(Span::from_millis(1));
        let now = Now::new(Time(10_300_000));
        assert_eq!(ticks.deadline(&now, 40), Time(51_000_000));
        for n in [1u32, 62, 63, 251, 503, 504, 4_000, 120_000] {
            let due = now.time.0 + u64::from(n) * 1_000_000;
            let fires = ticks.deadline(&now, n).0;
            assert!(fires > due - 1_000_000 && fires <= due + 1_000_000 + due / 8, "{n}");
        }
        assert_eq!(Ticks::new(Span::ZERO).deadline(&now, 40_000), Time(50_300_000));
    }

    /// Linux's timer wheel: level n is for timers from 63 * 8^(n-1) ticks on, in steps of 8^n.
    #[test]
    fn longer_timers_are_coarser() {
        for tick_ms in [1, 4, 10] {
            let ticks = Ticks::new(Span::from_millis(tick_ms));
            for now_ms in [0u64, 1, 999, 123_456] {
                let now = Now::new(Time(now_ms * 1_000_000 + 7));
                for (from, to, step) in
                    [(1u32, 62u32, 1u64), (63, 503, 8), (504, 4_031, 64), (4_032, 32_255, 512)]
                {
                    for n in [from, (from + to) / 2, to] {
                        let due = now_ms / tick_ms + u64::from(n);
                        let fires = (due / step + 1) * step;
                        assert_eq!(
                            ticks.deadline(&now, n),
                            Time(fires * tick_ms * 1_000_000),
                            "{n}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn ticks_cover_times_and_fit_into_them() {
        for (tick_us, us, covering, within, back) in [
            (1_000, 1_000, 1, 1, 1_000),
            (1_000, 1_001, 2, 1, 2_000),
            (4_000, 8_001, 3, 2, 12_000),
            (0, 8_001, 8_001, 8_001, 8_001),
        ] {
            let ticks = Ticks::new(Span(tick_us * 1_000));
            assert_eq!(ticks.covering(us), covering);
            assert_eq!(ticks.within(Span(u64::from(us) * 1_000)), within);
            assert_eq!(ticks.to_us(covering), back);
        }
        assert_eq!(Ticks::new(Span(3_000_000_000)).to_us(1), 1_000_000);
        assert_eq!(Ticks::new(Span::ZERO).within(Span(u64::MAX)), u32::MAX >> 1);
    }

    #[test]
    fn stamps_wrap_and_none_is_of_the_future() {
        let late = Now::new(Time(((1 << 32) + 5_000) * 1_000));
        assert_eq!((late.us, late.whole_ms, late.ms), (5_000, 4_294_972, 4_294_972));
        assert_eq!(late.since_us(4_000), 1_000);
        assert_eq!(late.since_us(5_000), 0);
        assert_eq!(late.since_us(5_001), 0);
        assert_eq!(late.since_us(u32::MAX), 5_001);
        // RFC 7323's "no echo" is zero.
        assert_eq!(Now::new(Time(0)).timestamp(), 1);
        assert_eq!(late.timestamp(), 4_294_973);
        assert_eq!(late.timestamp_at(3_000), 4_294_971);
        assert_eq!(late.timestamp_at(6_000), late.timestamp());
        assert!(before(u32::MAX, 0) && before(1, 2) && !before(2, 2) && !before(0, u32::MAX));
    }
}
