//! From the kernel's stamps on frames, by the system's clock, to times of the link's own.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use simnel_core::time::{Span, Time};

use crate::sys;

/// The link's clock and the system's, read together.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// By the link's clock.
    pub(super) now: Time,
    system: Duration,
}

/// Older stamps are not believed: somebody has set the system's clock.
const OLDEST: Duration = Duration::from_millis(20);

impl Moment {
    /// Reads both clocks.
    pub(super) fn now() -> Moment {
        let system = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Moment { now: sys::now(), system }
    }

    /// The link's time of a stamp; now, if it is missing or cannot be right.
    pub(super) fn of(&self, stamp: Option<Duration>) -> Time {
        let age = stamp.and_then(|stamp| self.system.checked_sub(stamp));
        match age.filter(|age| *age <= OLDEST) {
            Some(age) => self.now - Span(age.as_nanos() as u64),
            None => self.now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_are_believed_within_reason() {
        let moment = Moment { now: Time(50_000_000), system: Duration::from_secs(100) };
        let at = |nanos| moment.of(Some(Duration::from_nanos(nanos)));
        assert_eq!(at(100_000_000_000 - 7_000), Time(50_000_000 - 7_000));
        // From the future, from before the clock was set, missing.
        assert_eq!(at(100_000_000_001), moment.now);
        assert_eq!(at(60_000_000_000), moment.now);
        assert_eq!(moment.of(None), moment.now);
    }
}
