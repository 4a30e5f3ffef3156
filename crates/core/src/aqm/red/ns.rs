//! RED as the simulators have it: gentle, adaptive, and configuring itself from the line's rate and
//! delay. ns-2's of 2004 and later, which the CoDel paper compared with; ns-3's keeps its rules.
//!
//! Differences from Linux's: the queue is counted in packets. A *gentle* RED does not jump to one
//! at `max`: the chance rises on, from max_p to 1 at twice `max` (Floyd 2000). A signal waits until
//! 1/p packets have passed and then becomes likely within the next 1/p (`wait`). The average of an
//! idle queue falls as though packets of `mean` bytes had passed at the line's rate.
//!
//! Settings left out are computed (Floyd, Gummadi and Shenker 2001, section 5). `min` is half of
//! what a queue of 5 ms holds, at least 5 packets. `max` is three times `min`. The weight is
//! 1 - exp(-1 / (10 RTT C)), C in packets a second: an average over ten round trips. `max_p` is
//! 1/10 at first and, with `adaptive`, steered every half second between 1 % and 50 %.
//!
//! Numbers: averages and thresholds are in packets, Q32; probabilities Q0.32.

use super::Signals;
use crate::packet::Packet;
use crate::random::Random;
use crate::rate::Rate;
use crate::tick::Periodic;
use crate::time::{Span, Time};
use crate::wide::quotient;

pub use super::ADAPT_EVERY;

/// Settings. Zero thresholds and weight are computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NsParams {
    /// The line's rate.
    pub bandwidth: Rate,
    /// A typical round trip without queueing; at least 100 ms count.
    pub rtt: Span,
    /// Size of a packet in bytes, to count the line's rate in packets.
    pub mean: u32,
    /// Packets on average below which nothing is signalled.
    pub min: u32,
    /// Packets on average from which (gentle: up to whose double) the chance passes `probability`.
    pub max: u32,
    /// Weight of one sample in the average, Q0.32.
    pub weight: u32,
    /// Highest chance between `min` and `max`, Q0.32.
    pub probability: u32,
    /// Rise on between `max` and its double.
    pub gentle: bool,
    /// Wait between signals.
    pub wait: bool,
    /// Adapt `probability`.
    pub adaptive: bool,
    /// Treatment of packets; `nodrop` means nothing here.
    pub signals: Signals,
}

impl Default for NsParams {
    fn default() -> NsParams {
        NsParams {
            bandwidth: Rate::from_bits(10_000_000),
            rtt: Span::from_millis(100),
            mean: 500,
            min: 0,
            max: 0,
            weight: 0,
            probability: (ONE / 10) as u32,
            gentle: true,
            wait: true,
            adaptive: true,
            signals: Signals::default(),
        }
    }
}

/// [`NsParams`] with everything computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    min: u64,
    max: u64,
    weight: u64,
    /// Nanoseconds in which one packet passes the line.
    packet_time: u64,
    params: NsParams,
}

/// State of one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NsState {
    average: u64,
    max_p: u64,
    /// Packets since the last signal.
    count: u64,
    /// The average was above `min` at the last arrival.
    above: bool,
    idle_since: Option<Time>,
    timer: Periodic,
}

pub use super::RedVerdict;

const ONE: u64 = 1 << 32;
/// Delay whose queue is aimed at (ARED, section 5.2).
const TARGET_DELAY: Span = Span::from_millis(5);
/// Smallest `min` that is computed, in packets: less would not admit a burst.
const LEAST_MIN: u64 = 5;
/// Round trip that is assumed at least.
const LEAST_RTT: Span = Span::from_millis(100);
/// `max_p` is steered between these, Q0.32 (ARED, section 4).
const BOTTOM: u64 = ONE / 100;
const TOP: u64 = ONE / 2;
/// Additive step up, and multiplicative one down in hundredths.
const ALPHA: u64 = ONE / 100;
const BETA_PERCENT: u64 = 90;
/// Chance up to which ECN-capable packets are marked only.
const MARK_UP_TO: u64 = ONE / 10;
const NANOS: u64 = 1_000_000_000;

impl Law {
    /// The law of `params`.
    pub fn new(params: &NsParams) -> Law {
        let rate = u128::from(params.bandwidth.0.max(1));
        let mean = u128::from(params.mean.max(1));
        let packets_in = |span: Span| {
            // Q32: bytes in that time, over the size of a packet.
            let bytes = (rate << 32) * u128::from(span.0) / u128::from(NANOS);
            (bytes / mean).min(u128::from(u64::MAX >> 16)) as u64
        };
        let min = match params.min {
            0 => (packets_in(TARGET_DELAY) / 2).max(LEAST_MIN * ONE),
            min => u64::from(min) << 32,
        };
        let max = match params.max {
            0 => min.saturating_mul(3),
            max => (u64::from(max) << 32).max(min + 1),
        };
        let weight = match params.weight {
            0 => one_minus_exp(
                (u128::from(ONE) << 32)
                    / u128::from(packets_in(params.rtt.max(LEAST_RTT)).max(1))
                    / 10,
            ),
            weight => weight.into(),
        };
        let packet_time = (mean * u128::from(NANOS) / rate).clamp(1, u128::from(u64::MAX)) as u64;
        Law { min, max, weight, packet_time, params: *params }
    }

    /// Thresholds in packets and the weight, Q32 all: what was set or computed.
    pub fn resolved(&self) -> (u64, u64, u64) {
        (self.min, self.max, self.weight)
    }
}

/// 1 - exp(-x) for x from 0 to 1, by its series; Q32.
fn one_minus_exp(x: u128) -> u64 {
    let x = (x.min(u128::from(ONE))) as i128;
    let (mut term, mut sum) = (x, 0);
    for k in 2..16 {
        sum += term;
        term = -(term * x / k) >> 32;
    }
    sum.clamp(1, i128::from(ONE)) as u64
}

/// `x * y`, both Q32.
fn times(x: u64, y: u64) -> u64 {
    ((u128::from(x) * u128::from(y)) >> 32) as u64
}

/// (1 - weight)^n, Q32.
fn decay(weight: u64, mut n: u64) -> u64 {
    let (mut power, mut square) = (ONE, ONE - weight.min(ONE));
    while n > 0 && power > 0 {
        if n & 1 == 1 {
            power = times(power, square);
        }
        square = times(square, square);
        n >>= 1;
    }
    power
}

impl NsState {
    /// A queue that is idle from `now` on. `timer` is for the adaptation, every [`ADAPT_EVERY`].
    pub fn new(params: &NsParams, now: Time, timer: Periodic) -> NsState {
        NsState {
            average: 0,
            max_p: params.probability.into(),
            count: 0,
            above: false,
            idle_since: Some(now),
            timer,
        }
    }

    /// Decides about `packet`, which comes at `now` to a queue of `packets`. It is not marked here.
    pub fn arrives(
        &mut self,
        law: &Law,
        packet: &Packet,
        packets: u32,
        now: Time,
        random: &mut Random,
    ) -> RedVerdict {
        if law.params.adaptive && self.timer.is_due(now) {
            self.adapt(law, now);
        }
        if let Some(since) = self.idle_since.take() {
            let passed = now.since(since).0 / law.packet_time.max(1);
            self.average = times(self.average, decay(law.weight, passed));
        }
        self.average =
            self.average - times(self.average, law.weight) + law.weight * u64::from(packets);
        self.count += 1;
        if self.average < law.min || packets <= 1 {
            self.above = false;
            return RedVerdict::Pass;
        }
        let certain = if law.params.gentle { law.max.saturating_mul(2) } else { law.max };
        let signals = &law.params.signals;
        if self.average >= certain {
            (self.count, self.above) = (0, true);
            let marked = signals.ecn && !signals.harddrop && packet.is_markable();
            return RedVerdict::Forced { marked };
        }
        if !core::mem::replace(&mut self.above, true) {
            // The first of a spell only starts the count.
            self.count = 1;
            return RedVerdict::Pass;
        }
        let chance = self.chance(law);
        if u64::from(random.u32()) >= self.spaced(law, chance) {
            return RedVerdict::Pass;
        }
        self.count = 0;
        let marked = signals.ecn && chance <= MARK_UP_TO && packet.is_markable();
        RedVerdict::Early { marked }
    }

    /// The next packet was to be taken at `now`, and there was none.
    pub fn found_empty(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    /// The chance at the present average.
    fn chance(&self, law: &Law) -> u64 {
        let part = |above: u64, of: u64, whole: u64| {
            quotient(u128::from(whole) * u128::from(above), of) as u64
        };
        if self.average < law.max {
            return part(self.average - law.min, law.max - law.min, self.max_p);
        }
        self.max_p + part(self.average - law.max, law.max, ONE - self.max_p)
    }

    /// The chance, higher the more packets have passed since the last signal.
    fn spaced(&self, law: &Law, chance: u64) -> u64 {
        let passed = self.count.saturating_mul(chance);
        let (zero_below, certain_from) = if law.params.wait { (ONE, 2 * ONE) } else { (0, ONE) };
        if passed < zero_below {
            return 0;
        }
        if passed >= certain_from {
            return ONE;
        }
        quotient(u128::from(chance) << 32, certain_from - passed).min(ONE.into()) as u64
    }

    #[cold]
    fn adapt(&mut self, law: &Law, now: Time) {
        let mut timer = self.timer;
        let part = (law.max - law.min) / 10 * 4;
        timer.catch_up(now, |_| {
            let before = self.max_p;
            if self.average < law.min + part && self.max_p > BOTTOM {
                self.max_p = (self.max_p / 100 * BETA_PERCENT).max(BOTTOM);
            } else if self.average > law.max - part && self.max_p < TOP {
                self.max_p = (self.max_p + ALPHA.min(self.max_p / 4)).min(TOP);
            }
            self.max_p != before
        });
        self.timer = timer;
    }

    /// The average in packets, Q32.
    pub fn average(&self) -> u64 {
        self.average
    }

    /// Highest chance between `min` and `max`, Q0.32: what adaptation has made of it.
    pub fn max_p(&self) -> u64 {
        self.max_p
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Flags;
    use crate::tick::Tick;

    const EIGHTH: u64 = ONE / 8;

    /// Thresholds of 10 and 30 packets, and an average that stands still.
    fn law(change: impl Fn(&mut NsParams)) -> Law {
        let mut params = NsParams { min: 10, max: 30, adaptive: false, ..NsParams::default() };
        change(&mut params);
        Law { weight: 0, ..Law::new(&params) }
    }

    fn state(law: &Law, packets: u64) -> NsState {
        let timer = Periodic::new(Tick::Exact, Time::ZERO, ADAPT_EVERY, ADAPT_EVERY);
        let state = NsState::new(&law.params, Time::ZERO, timer);
        NsState { average: packets << 32, idle_since: None, max_p: EIGHTH, ..state }
    }

    /// To max_p at `max`, and to one at twice `max`.
    #[test]
    fn the_chance_rises_on_two_straight_lines() {
        let law = law(|_| ());
        for (packets, chance) in [
            (10, 0),
            (15, EIGHTH / 4),
            (20, EIGHTH / 2),
            (30, EIGHTH),
            (45, EIGHTH + (ONE - EIGHTH) / 2),
            (60, ONE),
        ] {
            assert_eq!(state(&law, packets).chance(&law), chance, "{packets}");
        }
    }

    /// p / (1 - np), and with `wait` p / (2 - np) from the packet on with which np is one.
    #[test]
    fn the_chance_grows_with_the_packets_since_the_last_signal() {
        let (waits, hurries) = (law(|_| ()), law(|params| params.wait = false));
        for (count, waiting, hurrying) in [
            (0, 0, EIGHTH),
            (4, 0, 2 * EIGHTH),
            (6, 0, 4 * EIGHTH),
            (7, 0, ONE),
            (8, EIGHTH, ONE),
            (9, ONE / 7, ONE),
            (12, 2 * EIGHTH, ONE),
            (15, ONE, ONE),
            (16, ONE, ONE),
            (1 << 40, ONE, ONE),
        ] {
            let state = NsState { count, ..state(&waits, 20) };
            assert_eq!(state.spaced(&waits, EIGHTH), waiting, "{count}");
            assert_eq!(state.spaced(&hurries, EIGHTH), hurrying, "{count}");
        }
    }

    #[test]
    fn thresholds_belong_to_what_is_above_them() {
        let mut random = Random::new(3);
        let law = law(|params| params.signals.ecn = true);
        let mut packet = Packet::new(0, 500);
        (packet.flags, packet.tos) = (Flags::IPV4, 2);
        for (average, queued, count, was_above, verdict, is_above, counted) in [
            (10 * ONE - 1, 9, 5, true, RedVerdict::Pass, false, 6),
            // The first of a spell only starts the count.
            (10 * ONE, 9, 5, false, RedVerdict::Pass, true, 1),
            (10 * ONE, 1, 5, true, RedVerdict::Pass, false, 6),
            (30 * ONE, 2, 15, true, RedVerdict::Early { marked: false }, true, 0),
            (60 * ONE - 1, 9, 9, true, RedVerdict::Early { marked: false }, true, 0),
            (60 * ONE, 9, 9, true, RedVerdict::Forced { marked: true }, true, 0),
        ] {
            let mut state = NsState { average, count, above: was_above, ..state(&law, 0) };
            let said = state.arrives(&law, &packet, queued, Time(1), &mut random);
            assert_eq!((said, state.above, state.count), (verdict, is_above, counted), "{average}");
        }
    }

    /// Two fifths from the thresholds on; as often as was due, if it was not asked.
    #[test]
    fn adaptation_rests_between_two_fifths_of_the_way() {
        let law = law(|params| params.adaptive = true);
        let (up, down) = (EIGHTH + ALPHA, EIGHTH / 100 * 90);
        let part = (law.max - law.min) / 10 * 4;
        for (average, rounds, highest) in [
            (law.min + part - 1, 1, down),
            (law.min + part, 1, EIGHTH),
            (law.max - part, 1, EIGHTH),
            (law.max - part + 1, 1, up),
            (law.max, 3, EIGHTH + 3 * ALPHA),
            (law.max, 100, TOP),
            (law.min, 100, BOTTOM),
        ] {
            let mut state = NsState { average, ..state(&law, 0) };
            state.adapt(&law, Time(ADAPT_EVERY.0 * rounds));
            assert_eq!(state.max_p(), highest, "{average} {rounds}");
        }
    }
}
