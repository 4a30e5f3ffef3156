//! The clock that a shaper is told: a little slower than the real one. So no second on the wire
//! holds more than a second's worth.
//!
//! A schedule kept exactly still puts too much into some one-second windows, for two reasons:
//!
//! * packets are whole: a window that opens just before one leaves may hold a part of one too many;
//! * wake-ups are late, and what was due meanwhile leaves in a burst. A window that opens just
//!   before a burst holds what should have left before it.
//!
//! Together that is at most the time of one packet and the lag behind the schedule as the window
//! opens. So in the second after a lag the clock loses as much, and no window exceeds the rate. The
//! mean rate is lower by the largest lag of a second, not by their sum: hundredths of a percent on
//! a quiet machine. Lag beyond what a burst may make up for is forfeited at once: the clock stands
//! still.
//!
//! Invariant: times told never decrease.

use simnel_core::qdisc::{Config, Device};
use simnel_core::{Span, Time};

/// Length of the windows.
#[cfg(test)]
const WINDOW: Span = Span::from_secs(1);
/// Lags are remembered in slots of this length...
const SLOT: Span = Span::from_millis(50);
/// ...for a window after the one that they belong to.
const SLOTS: usize = 21;
/// Most time lost per window for whole packets: a full frame with any overhead at 10 Mbit/s. Below
/// that rate one packet is a larger part of a second than a rate may be lowered by for its sake.
const MOST_FOR_PACKET: Span = Span::from_micros(1_300);
/// Most time lost per window for lag: 1 %.
const MOST_FOR_LAG: Span = Span::from_millis(10);

/// A discipline's clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// A moment, by the real clock...
    real: Time,
    /// ...and what the discipline was told then.
    told: Time,
    /// Nanoseconds lost in a second since then.
    slip: u64,
    /// Time of the largest packet; None if there is no rate to keep.
    packet: Option<Span>,
    /// The largest lag of each slot, in a ring; the present one is `slot` and began at `began`.
    worst: [Span; SLOTS],
    slot: usize,
    began: Time,
    /// Shared with other lanes: nothing that happens here changes it.
    is_shared: bool,
}

/// Nanoseconds that a shared clock loses in a second: what its lanes may be late by all together.
const SHARED_SLIP: u64 = 5_000_000;

impl Pace {
    /// A clock that agrees with the real one at `now`, for the discipline that `config` describes.
    pub(crate) fn new(config: &Config, device: &Device, now: Time) -> Pace {
        let mut pace = Pace {
            real: now,
            told: now,
            slip: 0,
            packet: None,
            worst: [Span::ZERO; SLOTS],
            slot: 0,
            began: now,
            is_shared: false,
        };
        pace.follow(config, device, now);
        pace
    }

    /// The clock of lanes that share a rate: the same wherever it is asked.
    pub(crate) fn shared() -> Pace {
        Pace {
            real: Time::ZERO,
            told: Time::ZERO,
            slip: SHARED_SLIP,
            packet: None,
            worst: [Span::ZERO; SLOTS],
            slot: 0,
            began: Time::ZERO,
            is_shared: true,
        }
    }

    /// Follows changed settings.
    pub(crate) fn follow(&mut self, config: &Config, device: &Device, now: Time) {
        if self.is_shared {
            return;
        }
        // An emulated `line` has its rate as a wire has, and a bucket its burst.
        self.packet = config.packet_time(device).map(|time| time.min(MOST_FOR_PACKET));
        self.adjust(now);
    }

    /// The time that the discipline is told at `now`.
    #[inline]
    pub(crate) fn at(&self, now: Time) -> Time {
        let passed = now.since(self.real).0;
        let lost = u128::from(passed) * u128::from(self.slip) / 1_000_000_000;
        self.told + Span(passed - lost as u64)
    }

    /// Real time from `now` until the discipline may be told `time`.
    #[inline]
    pub(crate) fn until(&self, time: Time, now: Time) -> Span {
        let left = u128::from(time.since(self.at(now)).0);
        Span((left * 1_000_000_000).div_ceil(u128::from(1_000_000_000 - self.slip)) as u64)
    }

    /// True if there is a rate that must not be exceeded.
    #[inline]
    pub(crate) fn keeps_a_rate(&self) -> bool {
        self.packet.is_some()
    }

    /// A due packet has left, so much too late.
    #[inline]
    pub(crate) fn lagged(&mut self, lag: Span, now: Time) {
        if !self.keeps_a_rate() {
            return;
        }
        let slots = (now.since(self.began).0 / SLOT.0) as usize;
        let larger = lag > self.worst[self.slot];
        if slots > 0 {
            self.began += SLOT * slots as u64;
            for _ in 0..slots.min(SLOTS) {
                self.slot = (self.slot + 1) % SLOTS;
                self.worst[self.slot] = Span::ZERO;
            }
        }
        if larger || slots > 0 {
            let worst = &mut self.worst[self.slot];
            *worst = lag.max(*worst);
            self.adjust(now);
        }
    }

    /// Stands still for `span`: lag that will not be made up for.
    pub(crate) fn forfeit(&mut self, span: Span, now: Time) {
        if self.is_shared {
            return;
        }
        self.told = self.at(now) - span;
        self.real = now;
    }

    fn adjust(&mut self, now: Time) {
        (self.told, self.real) = (self.at(now), now);
        let lag = self.worst.iter().max().map_or(Span::ZERO, |&lag| lag.min(MOST_FOR_LAG));
        self.slip = self.packet.map_or(0, |packet| (packet + lag).0);
    }
}

#[cfg(test)]
mod tests {
    use simnel_core::qdisc;
    use simnel_core::random::Random;

    use super::*;

    /// Sends full packets for twelve seconds with the given lags. Returns two rates as parts of the
    /// set one: the most in any one-second window, and the mean.
    fn shaped(rate: &str, mut lag: impl FnMut(Time) -> Span) -> (f64, f64) {
        const LENGTH: u64 = 1514;
        let config = qdisc::parse(&format!("cake bandwidth {rate}")).unwrap();
        let Config::Cake(params) = config else { unreachable!() };
        let bytes = params.bandwidth.bytes();
        let start = Time(7_000_000_000);
        let mut pace = Pace::new(&config, &Device::default(), start);
        let (mut due, mut now) = (start, start);
        let mut count = 0;
        let mut sent: Vec<Time> = Vec::new();
        while now.since(start) < Span::from_secs(12) {
            now += pace.until(due, now);
            now += lag(now);
            let told = pace.at(now);
            assert!(told >= due);
            pace.lagged(told.since(due), now);
            while due <= told {
                sent.push(now);
                count += LENGTH;
                due = start + Span(count * 1_000_000_000 / bytes);
            }
        }
        let mut most = 0;
        let mut first = 0;
        for (last, at) in sent.iter().enumerate() {
            while at.since(sent[first]) >= WINDOW {
                first += 1;
            }
            most = most.max(last - first + 1);
        }
        let mean = sent.len() as f64 / now.since(start).0 as f64 * 1e9;
        let part = |packets: f64| packets * LENGTH as f64 / bytes as f64;
        (part(most as f64), part(mean))
    }

    #[test]
    fn no_second_holds_too_much_and_little_is_lost() {
        for rate in ["10mbit", "27mbit", "100mbit", "900mbit"] {
            let mut random = Random::new(5);
            let on_time = shaped(rate, |_| Span::ZERO);
            let usual = shaped(rate, |_| Span::from_micros(20 + u64::from(random.below(60))));
            // Once in 700 ms a millisecond, else as usual.
            let mut last = Time(0);
            let now_and_then = shaped(rate, |now| {
                let hit = now.since(last) > Span::from_millis(700);
                if hit {
                    last = now;
                }
                Span::from_micros(if hit { 1_000 } else { 20 + u64::from(random.below(60)) })
            });
            let often = shaped(rate, |_| {
                Span::from_micros(if random.below(300) == 0 { 3_000 } else { 30 })
            });
            for (what, (most, mean), least) in [
                ("often", often, 0.995),
                ("on time", on_time, 0.998),
                ("usual", usual, 0.998),
                ("now and then", now_and_then, 0.997),
            ] {
                println!("{rate} {what}: most {most:.5}, mean {mean:.5}");
                assert!(most <= 1.0, "{rate}, {what}: {most}");
                assert!(mean >= least, "{rate}, {what}: {mean}");
            }
        }
    }

    #[test]
    fn slow_lines_lose_no_more_than_fast_ones() {
        let (_, mean) = shaped("256kbit", |_| Span::ZERO);
        assert!(mean > 0.998, "{mean}");
    }

    /// The largest lag counts for a second and the slot that it fell into, 10 ms at most.
    #[test]
    fn a_lag_is_lost_again_for_a_second() {
        let config = qdisc::parse("cake bandwidth 10mbit").unwrap();
        let at = |ms| Time(7_000_000_000) + Span::from_millis(ms);
        let mut pace = Pace::new(&config, &Device::default(), at(0));
        let packet = pace.slip;
        assert!(packet > 1_000_000 && packet <= MOST_FOR_PACKET.0);
        for (lag_ms, now, expected_ms) in [
            (3, 0, 3),
            (1, 49, 3),
            (2, 50, 3),
            (0, 1_049, 3),
            (0, 1_050, 2),
            (0, 1_100, 0),
            (11, 1_120, 10),
            (4, 1_140, 10),
            (1, 3_600_000, 1),
        ] {
            pace.lagged(Span::from_millis(lag_ms), at(now));
            assert_eq!(pace.slip - packet, expected_ms * 1_000_000, "at {now} ms");
        }
        // Lanes share a clock that nothing changes.
        let mut shared = Pace::shared();
        shared.lagged(Span::from_millis(9), at(0));
        shared.forfeit(Span::from_millis(9), at(0));
        shared.follow(&config, &Device::default(), at(0));
        assert_eq!((shared.slip, shared.at(at(0))), (SHARED_SLIP, Pace::shared().at(at(0))));
        assert_eq!(shared.at(Time(1_000_000_000)), Time(995_000_000));
    }

    #[test]
    fn without_a_rate_the_clock_is_the_real_one() {
        let config = qdisc::parse("cake unlimited").unwrap();
        let mut pace = Pace::new(&config, &Device::default(), Time(5));
        pace.lagged(Span::from_millis(1), Time(1_000));
        assert_eq!(pace.at(Time(3_000_000_000)), Time(3_000_000_000));
        pace.forfeit(Span(10), Time(3_000_000_000));
        assert_eq!(pace.at(Time(3_000_000_000)), Time(2_999_999_990));
        assert_eq!(pace.until(Time(3_000_000_000), Time(3_000_000_000)), Span(10));
    }
}
