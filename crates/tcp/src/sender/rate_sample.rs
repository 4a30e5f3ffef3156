//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation), for controls that take over.
//!
//! Each segment remembers how many had been delivered when it left, and when. When it is delivered
//! itself, the difference over the longer of sending and acknowledging time is a sample of the
//! path's rate. Off, and free of cost, for controls that do not ask.

use super::rtt::RoundTrip;
use super::scoreboard::{flag, Departure, Record};
use crate::clock::{before, Now};
use crate::congestion::Window;

/// One acknowledgement's sample.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSample {
    /// Segments delivered during the interval; None if there is no valid sample.
    pub delivered: Option<u32>,
    /// Length of the interval in µs.
    pub interval_us: u32,
    /// What had been delivered when the newest segment left.
    pub prior_delivered: u32,
    /// Segments in flight before the acknowledgement.
    pub prior_in_flight: u32,
    /// Segments newly delivered, and newly taken for lost, by this acknowledgement.
    pub acked: u32,
    pub lost: u32,
    /// RTT in µs, if there is one.
    pub rtt_us: Option<u32>,
    /// The application, not the path, limited the rate.
    pub app_limited: bool,
    /// The receiver may have delayed the acknowledgement.
    pub ack_delayed: bool,
}

/// The connection's side of sampling.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sampler {
    pub enabled: bool,
    /// When the newest segment known to be delivered was sent.
    first_sent_us: u32,
    /// When something was last delivered.
    delivered_us: u32,
    /// The application limits sending until so many are delivered; zero if it does not.
    app_limited_until: u32,
    /// The newest segment of the present acknowledgement.
    best: Option<Newest>,
}

#[derive(Clone, Copy, Debug)]
struct Newest {
    departure: Departure,
    sent_us: u32,
    end: u64,
    app_limited: bool,
}

impl Sampler {
    /// What to remember of a segment that leaves now. `idle`: nothing else is in flight.
    #[inline]
    pub(super) fn depart(&mut self, idle: bool, delivered: u32, now: &Now) -> Departure {
        if idle {
            self.first_sent_us = now.us;
            self.delivered_us = now.us;
        }
        Departure { delivered, delivered_us: self.delivered_us, first_sent_us: self.first_sent_us }
    }

    #[inline]
    pub(super) fn app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// The application has nothing more to send while the window would allow it.
    #[inline]
    pub(super) fn limit_by_application(&mut self, delivered: u32, in_flight: u32) {
        self.app_limited_until = delivered.wrapping_add(in_flight).max(1);
    }

    /// `record` was delivered.
    #[inline]
    pub(super) fn on_delivered(&mut self, record: &Record, departure: Departure) {
        if !self.enabled {
            return;
        }
        let newer = self.best.is_none_or(|best| {
            before(best.sent_us, record.sent_us)
                || (best.sent_us == record.sent_us && best.end < record.end())
        });
        if newer {
            self.best = Some(Newest {
                departure,
                sent_us: record.sent_us,
                end: record.end(),
                app_limited: record.has(flag::APP_LIMITED),
            });
        }
    }

    /// The sample of an acknowledgement that delivered `acked` segments and revealed `lost`.
    pub(super) fn finish(
        &mut self,
        acked: u32,
        lost: u32,
        window: &Window,
        rtt: &RoundTrip,
        now: &Now,
    ) -> RateSample {
        if self.app_limited() && before(self.app_limited_until, window.delivered) {
            self.app_limited_until = 0;
        }
        if acked > 0 {
            self.delivered_us = now.us;
        }
        let mut sample = RateSample { acked, lost, ..RateSample::default() };
        let Some(newest) = self.best.take() else { return sample };
        self.first_sent_us = newest.sent_us;
        let departure = newest.departure;
        let sending = newest.sent_us.wrapping_sub(departure.first_sent_us);
        let acking = now.us.wrapping_sub(departure.delivered_us);
        sample.interval_us = sending.max(acking);
        sample.prior_delivered = departure.delivered;
        sample.app_limited = newest.app_limited;
        // Shorter than any RTT: an artefact of retransmission.
        if sample.interval_us >= rtt.min_us() && sample.interval_us > 0 {
            sample.delivered = Some(window.delivered.wrapping_sub(departure.delivered));
        }
        sample
    }
}
