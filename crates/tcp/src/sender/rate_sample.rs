//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation), for controls that take over.
//!
//! Each segment remembers how many had been delivered when it left, and when. When it is delivered
//! itself, the difference over the longer of sending and acknowledging time is a sample of the
//! path's rate. Off, and free of cost, for controls that do not ask.

use alloc::boxed::Box;

use super::rtt::RoundTrip;
use super::scoreboard::{flag, Departure, Record};
use crate::clock::{before, Now};
use crate::congestion::{RateSample, Window};

/// The connection's side of sampling: a pointer's room where it is off.
#[derive(Clone, Debug)]
pub(super) struct Sampler(Option<Box<Sampling>>);

#[derive(Clone, Copy, Debug, Default)]
struct Sampling {
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
    pub(super) fn new(enabled: bool) -> Sampler {
        Sampler(enabled.then(Box::default))
    }

    #[inline]
    pub(super) fn is_enabled(&self) -> bool {
        self.0.is_some()
    }

    /// Record of a segment that leaves now. `idle`: nothing else is in flight.
    #[inline]
    pub(super) fn depart(&mut self, idle: bool, delivered: u32, now: &Now) -> Departure {
        let Some(sampling) = &mut self.0 else { return Departure::default() };
        if idle {
            sampling.first_sent_us = now.us;
            sampling.delivered_us = now.us;
        }
        let Sampling { delivered_us, first_sent_us, .. } = **sampling;
        Departure { delivered, delivered_us, first_sent_us }
    }

    #[inline]
    pub(super) fn app_limited(&self) -> bool {
        self.0.as_ref().is_some_and(|sampling| sampling.app_limited_until != 0)
    }

    /// The application has nothing more to send while the window would allow it.
    #[inline]
    pub(super) fn limit_by_application(&mut self, delivered: u32, in_flight: u32) {
        if let Some(sampling) = &mut self.0 {
            sampling.app_limited_until = delivered.wrapping_add(in_flight).max(1);
        }
    }

    /// `record` was delivered.
    #[inline]
    pub(super) fn on_delivered(&mut self, record: &Record, departure: Departure) {
        let Some(sampling) = &mut self.0 else { return };
        let newer = sampling.best.is_none_or(|best| {
            before(best.sent_us, record.sent_us)
                || (best.sent_us == record.sent_us && best.end < record.end())
        });
        if newer {
            sampling.best = Some(Newest {
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
        let mut sample = RateSample { acked, lost, ..RateSample::default() };
        let Some(sampling) = &mut self.0 else { return sample };
        let limited_until = sampling.app_limited_until;
        if limited_until != 0 && before(limited_until, window.delivered) {
            sampling.app_limited_until = 0;
        }
        if acked > 0 {
            sampling.delivered_us = now.us;
        }
        let Some(newest) = sampling.best.take() else { return sample };
        sampling.first_sent_us = newest.sent_us;
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
