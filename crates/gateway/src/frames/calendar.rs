//! Times of packet sockets, which the kernel stamps by the calendar's clock.

use std::time::Duration;

use simnel_core::Time;

use crate::sys;

/// A step of the calendar's clock, and no trouble of reading it.
const STEP: u64 = 1_000_000;

/// Distance of the calendar's clock from the monotonic one.
pub(crate) struct Calendar {
    ahead: u64,
}

impl Calendar {
    /// The distance now.
    pub(crate) fn new() -> Calendar {
        Calendar { ahead: sys::calendar_ahead() }
    }

    /// Follows steps of the calendar's clock.
    pub(crate) fn follow(&mut self) {
        let ahead = sys::calendar_ahead();
        if ahead.abs_diff(self.ahead) > STEP {
            self.ahead = ahead;
        }
    }

    /// The monotonic clock's time of a stamp, or now.
    pub(crate) fn time(&self, stamp: Option<Duration>) -> Time {
        let stamp = stamp.map(|stamp| (stamp.as_nanos() as u64).saturating_sub(self.ahead));
        stamp.map_or_else(sys::now, Time)
    }
}
