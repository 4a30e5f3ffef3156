//! Lines whose capacity changes, and what goes wrong on them.
//!
//! Capacities are made from the seed: shapes that the field reports, no recordings. Steps are of
//! 100 ms for radio, and of seconds for shared cable. They are of 15 s for a satellite's schedule
//! (Mohan et al., "A multifaceted look at Starlink performance", WWW 2024). It is reconfigured
//! every 15 s, with another path and RTT and a short cut. Steps are of 10 ms for frames that wait
//! for their turn. In LTE's uplink a request may be made each 5 to 80 ms (3GPP TS 36.213, 10.1.5);
//! a frame is repeated after 8 ms.

use simnel_core::random::Random;
use simnel_core::{Rate, Span, Time};
use simnel_sim::schedule::Step;
use simnel_sim::tandem::Capacity;

/// Seconds of a run.
pub const SECONDS: u64 = 60;
/// A capacity is halved or doubled at this second.
pub const STEP_AT: u64 = 30;
/// Routes change at these seconds.
pub const ROUTES_AT: [u64; 3] = [15, 30, 45];
/// Time that the FIFO before the line holds at the nominal rate.
const BUFFER: Span = Span::from_millis(500);

/// A kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Constant,
    Halving,
    Doubling,
    Satellite,
    Fading,
    Evening,
    Routes,
    Jitter,
}

/// Time between changes of a jittering line's delay, and the most that each way is longer, in ms.
const TURN: u64 = 10;
const JITTER: u64 = 10;

/// Faults of the reflectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Half of those in use fall silent at 10 s.
    Dead,
    /// They answer twice a second at most, from 10 s on.
    Limited,
    /// Some answer late by up to 80 ms.
    Slow,
    /// All fall silent at 10 s.
    Blind,
}

impl Kind {
    /// Nominal rate in kbit/s, upload and download.
    pub const fn nominal(self) -> [u64; 2] {
        match self {
            Kind::Satellite => [15_000, 100_000],
            Kind::Fading => [10_000, 40_000],
            Kind::Evening => [20_000, 100_000],
            Kind::Doubling => [5_000, 25_000],
            _ => [10_000, 50_000],
        }
    }

    /// Floors and ceilings in kbit/s that a user would give.
    pub const fn limits(self) -> [(u64, u64); 2] {
        let [up, down] = self.nominal();
        [(up / 5, up * 2), (down / 5, down * 2)]
    }

    /// Both directions' capacity.
    pub fn capacity(self, seed: u64) -> [Capacity; 2] {
        let nominal = self.nominal();
        let mut random = Random::derive(seed, 0xca9);
        let mut both = nominal.map(|kbit| {
            let rates = vec![step(0, kbit)];
            let buffer = kbit * 125 * BUFFER.0 / 1_000_000_000;
            Capacity { rates, delays: Vec::new(), buffer }
        });
        let times = |every: u64| (0..SECONDS * 1000).step_by(every as usize);
        for (line, kbit) in both.iter_mut().zip(nominal) {
            match self {
                Kind::Constant | Kind::Routes | Kind::Jitter => {}
                Kind::Halving => line.rates.push(step(STEP_AT * 1000, kbit / 2)),
                Kind::Doubling => line.rates.push(step(STEP_AT * 1000, kbit * 2)),
                Kind::Satellite => {
                    line.rates.clear();
                    for at in times(15_000) {
                        let share = between(&mut random, 50, 140);
                        // The cut of a hand-over.
                        line.rates.push(step(at, 0));
                        line.rates.push(step(at + 80, kbit * share / 100));
                        // Weather and neighbours in between.
                        for later in (1000..15_000).step_by(1000) {
                            let wobble = between(&mut random, 92, 108);
                            line.rates.push(step(at + later, kbit * share / 100 * wobble / 100));
                        }
                    }
                }
                Kind::Fading => {
                    line.rates.clear();
                    let mut share = 100u64;
                    for at in times(100) {
                        // A walk of 6 % a step that returns to the mean.
                        let low = if share > 100 { 92 } else { 95 };
                        let high = if share > 100 { 105 } else { 108 };
                        share = (share * between(&mut random, low, high) / 100).clamp(30, 180);
                        line.rates.push(step(at, kbit * share / 100));
                    }
                }
                Kind::Evening => {
                    line.rates.clear();
                    for at in times(2000) {
                        // Down to 60 % in the middle of the evening, back at its end.
                        let middle = SECONDS * 500;
                        let depth = 40 - 40 * at.abs_diff(middle) / middle;
                        let noise = between(&mut random, 94, 106);
                        line.rates.push(step(at, kbit * (100 - depth) / 100 * noise / 100));
                    }
                }
            }
        }
        if self == Kind::Routes {
            let delays = [25, 0, 40];
            both[1].delays = ROUTES_AT.iter().zip(delays).map(|(at, ms)| delay(*at, ms)).collect();
        }
        if self == Kind::Jitter {
            for line in &mut both {
                let at = times(TURN).map(|ms| Time::ZERO + Span::from_millis(ms));
                let late = |at| (at, Span::from_micros(between(&mut random, 0, JITTER * 1000)));
                line.delays = at.map(late).collect();
            }
        }
        if self == Kind::Satellite {
            let at = (0..SECONDS).step_by(15);
            both[1].delays = at.map(|at| delay(at, between(&mut random, 0, 20))).collect();
        }
        both
    }
}

fn step(ms: u64, kbit: u64) -> Step {
    Step { at: Time::ZERO + Span::from_millis(ms), rate: Rate::from_bits(kbit * 1000) }
}

fn delay(seconds: u64, ms: u64) -> (Time, Span) {
    (Time::ZERO + Span::from_secs(seconds), Span::from_millis(ms))
}

/// A number from `low` to `high`.
pub fn between(random: &mut Random, low: u64, high: u64) -> u64 {
    low + random.u64() % (high - low + 1)
}
