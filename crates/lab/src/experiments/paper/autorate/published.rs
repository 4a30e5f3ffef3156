//! The rules of cake-autorate 3, as its README and the comments of its settings describe them.
//!
//! A contender, from the published description alone and with its published defaults. With answers
//! of ICMP echo each direction gets half of the RTT. A baseline follows a lower value by 90 % of
//! the way at each answer, a higher one by 0.1 %. Bufferbloat is 3 of the last 6 answers late by
//! more than 30 ms. Then rates fall by 1 % to 25 %, as the mean lateness goes from 30 to 60 ms, at
//! most every 300 ms. Otherwise, with more than 75 % of the rate in use, they rise by up to 4 % an
//! answer. They rise less as the mean goes from 10 to 30 ms, and not within 300 ms of a fall. With
//! less in use, they return to the base rate by 1 % a second. Not taken over: replacing of
//! reflectors, and its sleep.

use simnel_core::{Span, Time};

const REFLECTORS: usize = 6;
const WINDOW: usize = 6;
const LATE_MS: f64 = 30.0;
const NO_DELAY_MS: f64 = 10.0;
const WORST_MS: f64 = 60.0;
const REFRACTORY: Span = Span::from_millis(300);
const DECAY: Span = Span::from_millis(1000);
/// Window in which the used rate is measured.
const MONITOR: Span = Span::from_millis(200);

/// One direction: rates in bit/s.
struct Direction {
    rate: f64,
    base: f64,
    limits: (f64, f64),
    used: f64,
    bytes: u64,
    fell: Time,
    decayed: Time,
}

/// Both directions.
pub struct Rules {
    directions: [Direction; 2],
    baselines: [Option<f64>; REFLECTORS],
    late: [f64; WINDOW],
    measured: Time,
}

impl Rules {
    /// Limits and base rates in kbit/s.
    pub fn new(limits: [(u64, u64); 2], base: [u64; 2]) -> Rules {
        let direction = |n: usize| Direction {
            rate: base[n] as f64 * 1e3,
            base: base[n] as f64 * 1e3,
            limits: (limits[n].0 as f64 * 1e3, limits[n].1 as f64 * 1e3),
            used: 0.0,
            bytes: 0,
            fell: Time::ZERO,
            decayed: Time::ZERO,
        };
        Rules {
            directions: [direction(0), direction(1)],
            baselines: [None; REFLECTORS],
            late: [0.0; WINDOW],
            measured: Time::ZERO,
        }
    }

    /// Bytes released since the last call.
    pub fn released(&mut self, bytes: [u64; 2], now: Time) {
        let span = now.since(self.measured);
        for (direction, bytes) in self.directions.iter_mut().zip(bytes) {
            direction.bytes += bytes;
            if span >= MONITOR {
                direction.used = direction.bytes as f64 * 8e9 / span.0 as f64;
                direction.bytes = 0;
            }
        }
        if span >= MONITOR {
            self.measured = now;
        }
    }

    /// An answer.
    pub fn answer(&mut self, reflector: usize, rtt: Span, now: Time) {
        let one_way = rtt.0 as f64 / 2e6;
        let Some(baseline) = self.baselines.get_mut(reflector) else { return };
        let old = baseline.unwrap_or(one_way);
        let alpha = if one_way > old { 0.001 } else { 0.9 };
        *baseline = Some(old + alpha * (one_way - old));
        self.late.rotate_right(1);
        self.late[0] = one_way - old;
        let late = self.late.iter().filter(|late| **late > LATE_MS).count();
        let mean = self.late.iter().sum::<f64>() / WINDOW as f64;
        for direction in &mut self.directions {
            direction.adjust(late >= WINDOW / 2, mean, now);
        }
    }

    /// Rates in bit/s.
    pub fn rates(&self) -> [u64; 2] {
        [self.directions[0].rate as u64, self.directions[1].rate as u64]
    }
}

impl Direction {
    fn adjust(&mut self, bloat: bool, mean: f64, now: Time) {
        if bloat {
            if now.since(self.fell) >= REFRACTORY {
                let part = ((mean - LATE_MS) / (WORST_MS - LATE_MS)).clamp(0.0, 1.0);
                self.rate *= 0.99 - part * (0.99 - 0.75);
                (self.fell, self.decayed) = (now, now);
            }
        } else if self.used > 0.75 * self.rate {
            if now.since(self.fell) >= REFRACTORY {
                let part = ((LATE_MS - mean) / (LATE_MS - NO_DELAY_MS)).clamp(0.0, 1.0);
                self.rate *= 1.0 + part * 0.04;
            }
        } else if now.since(self.decayed) >= DECAY {
            let toward = if self.rate > self.base { 0.99 } else { 1.01 };
            self.rate *= toward;
            self.decayed = now;
        }
        self.rate = self.rate.clamp(self.limits.0, self.limits.1);
    }
}
