//! Points in time and spans of it, in nanoseconds.
//!
//! The core never reads a clock: whoever drives it says what time it is. A [`Time`] counts from an
//! epoch that the driver chooses (boot for the gateway, zero for a simulation), so only differences
//! mean anything. Microseconds would be too coarse: 1500 bytes at 10 Gbit/s take 1.2 µs.

use core::ops::{Add, AddAssign, Mul, Sub};

/// A point in time: nanoseconds since the driver's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Span(pub u64);

impl Time {
    /// The driver's epoch.
    pub const ZERO: Time = Time(0);
    /// Later than any time that can occur.
    pub const MAX: Time = Time(u64::MAX);

    /// Time since `earlier`; zero if `earlier` is in fact later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Microseconds from `other` to this time, rounded towards zero; below zero if it is earlier.
    pub fn micros_after(self, other: Time) -> i32 {
        let micros =
            |later: Time, earlier| later.since(earlier).as_micros().min(i32::MAX as u64) as i32;
        micros(self, other) - micros(other, self)
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// A span of `n` microseconds.
    pub const fn from_micros(n: u64) -> Span {
        Span(n * 1_000)
    }
    /// A span of `n` milliseconds.
    pub const fn from_millis(n: u64) -> Span {
        Span(n * 1_000_000)
    }
    /// A span of `n` seconds.
    pub const fn from_secs(n: u64) -> Span {
        Span(n * 1_000_000_000)
    }
    /// Whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }
    /// As many whole `units` as it has, for a clock that knows no less.
    pub fn floor(self, units: Span) -> Span {
        Span(self.0 - self.0.checked_rem(units.0).unwrap_or(0))
    }
    /// `self - other`, or zero if that would be negative.
    #[inline]
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}
impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        *self = *self + span;
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, span: Span) -> Time {
        Time(self.0.saturating_sub(span.0))
    }
}
impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}
impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}
impl Mul<u64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }
}
