//! The line that all queues share: when it is free again.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::time::{Span, Time};

/// A lot of time that a queue uses before it pays.
pub const LOT: Span = Span::from_micros(5);
/// How early a flow without a standing queue may send, if two full packets do not take longer.
pub const AHEAD: Span = Span::from_micros(20);
/// Most time that is caught up with after the line was free: late timers, and idleness.
pub const LATE: Span = Span::from_micros(500);

/// When the line is free again, in cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Clock(AtomicU64);

impl Clock {
    /// When the line is free again.
    pub fn next(&self) -> Time {
        Time(self.0.load(Relaxed))
    }

    /// The line was used for `time`, up to `now`. Two steps that no other queue can hold up; if one
    /// comes between them, the clock is the same.
    pub fn pay(&self, time: Span, now: Time) {
        self.0.fetch_max(now.0.saturating_sub(LATE.0), Relaxed);
        self.0.fetch_add(time.0, Relaxed);
    }
}
