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
    /// Sending time of the newest delivered segment, or of the first one after an idle time.
    /// Microseconds, wrapping.
    first_sent_us: u32,
    /// Time of the last delivery, or of the first segment after an idle time. Microseconds,
    /// wrapping.
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

    /// Makes no sample of what was delivered since the last one.
    pub(super) fn forget(&mut self) {
        let Some(sampling) = &mut self.0 else { return };
        if let Some(newest) = sampling.best.take() {
            sampling.first_sent_us = newest.sent_us;
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
        // Shorter than any RTT, which is 1 µs at least: an artefact of retransmission.
        if sample.interval_us >= rtt.min_us() {
            sample.delivered = Some(window.delivered.wrapping_sub(departure.delivered));
        }
        sample
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u32) -> Now = |us| Now { us, ms: us / 1_000, ..Now::default() };

    struct Path {
        sampler: Sampler,
        window: Window,
        rtt: RoundTrip,
    }

    impl Path {
        fn new() -> Path {
            let mut rtt = RoundTrip::new(0);
            rtt.update_min(&AT(0), 10_000);
            let window = crate::sender::initial_window(&crate::Config::default());
            Path { sampler: Sampler::new(true), window, rtt }
        }

        fn send(&mut self, seq: u64, us: u32, idle: bool) -> (Record, Departure) {
            let departure = self.sampler.depart(idle, self.window.delivered, &AT(us));
            (Record { seq, sent_us: us, len: 1, ..Record::default() }, departure)
        }

        fn ack(&mut self, sent: &[(Record, Departure)], us: u32) -> RateSample {
            sent.iter()
                .for_each(|(record, departure)| self.sampler.on_delivered(record, *departure));
            self.window.delivered += sent.len() as u32;
            self.sampler.finish(sent.len() as u32, 3, &self.window, &self.rtt, &AT(us))
        }
    }

    /// Nothing is delivered in no time, whatever the least RTT.
    #[test]
    fn an_interval_of_no_length_is_no_sample() {
        for (us, delivered) in [(1_000, None), (1_001, Some(1))] {
            let mut path = Path::new();
            path.rtt.update_min(&AT(0), 0);
            let first = path.send(1, 1_000, true);
            assert_eq!(path.ack(&[first], us).delivered, delivered);
        }
    }

    /// Section 3.1.2 of the draft: over the longer of the times of sending and of acknowledging.
    #[test]
    fn a_sample_is_over_the_longer_of_sending_and_acknowledging() {
        let mut path = Path::new();
        let first = path.send(1, 1_000, true);
        let second = path.send(2, 31_000, false);
        let sample = path.ack(&[first], 12_000);
        assert_eq!((sample.delivered, sample.interval_us), (Some(1), 11_000));
        assert_eq!((sample.acked, sample.lost, sample.prior_delivered), (1, 3, 0));
        // Sent over 30 ms; acknowledged within 40 since the first of the flight left.
        let sample = path.ack(&[second], 41_000);
        assert_eq!((sample.delivered, sample.interval_us), (Some(2), 40_000));
        // What left after an acknowledgement is measured from there.
        let third = path.send(3, 45_000, false);
        let fourth = path.send(4, 95_000, false);
        let sample = path.ack(&[third, fourth], 96_000);
        assert_eq!((sample.prior_delivered, sample.delivered), (2, Some(2)));
        assert_eq!(sample.interval_us, 64_000);
        // ACKs that come in a bunch: sending took longer.
        let fifth = path.send(5, 100_000, true);
        let sixth = path.send(6, 140_000, false);
        path.sampler.0.as_mut().unwrap().delivered_us = 139_000;
        let seventh = path.send(7, 150_000, false);
        let sample = path.ack(&[sixth, seventh, fifth], 160_000);
        assert_eq!((sample.interval_us, sample.delivered), (50_000, Some(3)));
    }

    /// Section 3.3: the newest counts, by its time and then by its place.
    #[test]
    fn the_newest_segment_makes_the_sample() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]] {
            let mut path = Path::new();
            let first = path.send(1, 1_000, true);
            path.window.delivered = 5;
            let second = path.send(2, 9_000, false);
            path.window.delivered = 7;
            let third = path.send(3, 9_000, false);
            let all = [first, second, third];
            let sample = path.ack(&order.map(|n| all[n]), 30_000);
            assert_eq!((sample.prior_delivered, sample.delivered), (7, Some(3)), "{order:?}");
        }
    }

    #[test]
    fn intervals_shorter_than_any_rtt_say_nothing() {
        for (us, delivered) in [(10_999, None), (11_000, Some(1))] {
            let mut path = Path::new();
            let first = path.send(1, 1_000, true);
            assert_eq!(path.ack(&[first], us).delivered, delivered);
            // Nor does what delivers nothing.
            assert_eq!(path.ack(&[], 50_000).delivered, None);
            assert_eq!(path.sampler.0.as_ref().unwrap().delivered_us, us);
        }
    }

    /// Section 3.2: until what was in flight then, and one more, is delivered.
    #[test]
    fn the_applications_limit_lasts_for_a_flight() {
        let mut path = Path::new();
        let first = path.send(1, 1_000, true);
        assert!(!path.sampler.app_limited());
        path.sampler.limit_by_application(0, 0);
        assert!(path.sampler.app_limited());
        path.sampler.limit_by_application(0, 1);
        let mut second = path.send(2, 2_000, false);
        second.0.flags = flag::APP_LIMITED;
        assert!(!path.ack(&[first], 20_000).app_limited);
        assert!(path.sampler.app_limited());
        assert!(path.ack(&[second], 21_000).app_limited);
        assert!(!path.sampler.app_limited());
    }

    /// Linux's `tcp_ack`: an old acknowledgement makes no sample, and what it delivered does not
    /// count for the next one. But the next flight is measured from there.
    #[test]
    fn what_is_forgotten_makes_no_sample() {
        let mut path = Path::new();
        let first = path.send(1, 1_000, true);
        let second = path.send(2, 9_000, false);
        path.sampler.on_delivered(&second.0, second.1);
        path.sampler.forget();
        assert_eq!(path.ack(&[], 20_000).delivered, None);
        assert_eq!(path.ack(&[first], 21_000).interval_us, 20_000);
        path.sampler.on_delivered(&second.0, second.1);
        path.sampler.forget();
        assert_eq!(path.send(3, 30_000, false).1.first_sent_us, 9_000);
    }

    #[test]
    fn off_it_counts_and_no_more() {
        let mut path = Path::new();
        path.sampler = Sampler::new(false);
        assert!(!path.sampler.is_enabled() && Sampler::new(true).is_enabled());
        let first = path.send(1, 1_000, true);
        path.sampler.limit_by_application(1, 1);
        assert!(!path.sampler.app_limited());
        let sample = path.ack(&[first], 30_000);
        assert_eq!((sample.acked, sample.lost, sample.delivered), (1, 3, None));
    }
}
