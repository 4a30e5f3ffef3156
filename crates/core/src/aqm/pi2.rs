//! PI2: a proportional-integral controller whose output is squared for senders that answer to the
//! root of it (De Schepper et al. 2016; RFC 9332, appendix A).
//!
//! Every `tupdate` a base probability moves by alpha * (delay - target) + beta * (delay - last
//! delay). Scalable senders (DCTCP, Prague) are marked with `coupling` times that probability.
//! Classic ones (Reno, CUBIC) are marked or dropped with its square. So both get the same rate
//! (section 2.1). Unlike PIE's, the steps need no tuning: the square makes the loop linear.
//!
//! Numbers are Linux's: a probability of one is 32 bits that are all set. A weight is kept rounded
//! down to 2^-38 of that for each nanosecond, and shown rounded down once more. Of a step of more
//! than 32 bits only the lower 32 count.

use crate::time::Span;

/// Probability one.
pub const ONE: u32 = u32::MAX;
/// Bits that are lost between a weighted delay and a probability.
const SHIFT: u32 = 6;
const NANOS: u64 = 1_000_000_000;

/// A weight in 1/256 Hz as it is kept: for each nanosecond, in 2^-38 of a probability.
fn kept(weight: u32) -> u32 {
    // Of 8 and 6 bits behind the point two are the difference.
    (((u64::from(weight) * u64::from(ONE)) >> (8 - SHIFT)) / NANOS) as u32
}

/// A weight in 1/256 Hz as Linux gives it back: rounded down twice.
pub fn as_kept(weight: u32) -> u64 {
    ((u64::from(kept(weight)) * NANOS) << (8 - SHIFT)) / u64::from(ONE)
}

/// Settings of the controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pi2Params {
    /// Delay of the classic queue to steer for.
    pub target: Span,
    /// Time between updates.
    pub tupdate: Span,
    /// Weight of the delay's distance from target, in 1/256 Hz.
    pub alpha: u32,
    /// Weight of the delay's change, in 1/256 Hz.
    pub beta: u32,
}

impl Default for Pi2Params {
    /// For a typical round trip of 15 ms and one of 100 ms at most (RFC 9332, appendix A.1). Only
    /// `tupdate` is Linux's: it is 15 ms in the RFC and 16 ms here.
    fn default() -> Pi2Params {
        Pi2Params {
            target: Span::from_millis(15),
            tupdate: Span::from_millis(16),
            alpha: 41,
            beta: 819,
        }
    }
}

impl Pi2Params {
    /// Settings for round trips of `max_rtt` at most and `typical_rtt` usually, as `tc` computes
    /// them (RFC 9332, appendix A.1). alpha is 0.1 * tupdate / max_rtt^2, beta is 0.3 / max_rtt.
    /// The longest is six typical ones, unless both are said. None if alpha would be zero, as it is
    /// before beta. Neither is ever beyond what Linux can keep.
    pub fn for_round_trips(max_rtt: Option<Span>, typical_rtt: Option<Span>) -> Option<Pi2Params> {
        // 0.1 and 0.3 as C has them in single precision, in units of 2^-27.
        const TENTH: u128 = 13_421_773;
        const THREE_TENTHS: u128 = 40_265_320;
        let micros = |span: Span| span.as_micros().max(1);
        let (max, typical) = match (max_rtt.map(micros), typical_rtt.map(micros)) {
            (Some(max), Some(typical)) => (max, typical),
            (Some(max), None) => (max, (max / 6).max(1)),
            (None, Some(typical)) => (typical.saturating_mul(6), typical),
            (None, None) => return Some(Pi2Params::default()),
        };
        let tupdate = typical.min(max / 3).max(1);
        let (wide, squared) = (u128::from(max), u128::from(max) * u128::from(max));
        let weight = |times: u128, over: u128| ((256 * 1_000_000 * times) / over) >> 27;
        let alpha = weight(TENTH * u128::from(tupdate), squared);
        let beta = weight(THREE_TENTHS, wide);
        (alpha > 0).then(|| Pi2Params {
            target: Span::from_micros(typical),
            tupdate: Span::from_micros(tupdate),
            alpha: alpha as u32,
            beta: beta as u32,
        })
    }
}

/// The controller's state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pi2 {
    probability: u32,
    last_delay: Span,
}

impl Pi2 {
    /// Moves the base probability, to `most` at the utmost, with queues that delay by `delay` now.
    /// False if nothing changed.
    pub fn update(&mut self, params: &Pi2Params, delay: Span, most: u32) -> bool {
        let before = *self;
        let weigh = |weight: u32, from: Span| {
            (delay.0.wrapping_sub(from.0) as i64).wrapping_mul(kept(weight).into())
        };
        let change =
            weigh(params.alpha, params.target).wrapping_add(weigh(params.beta, self.last_delay));
        let step = (change.unsigned_abs() >> SHIFT) as u32;
        let moved = match change > 0 {
            true => self.probability.checked_add(step).unwrap_or(ONE),
            false => self.probability.saturating_sub(step),
        };
        self.probability = moved.min(most);
        self.last_delay = delay;
        *self != before
    }

    /// Begins again with no probability, but with the last delay.
    pub fn restart(&mut self) {
        self.probability = 0;
    }

    /// The base probability.
    #[inline]
    pub fn base(&self) -> u32 {
        self.probability
    }

    /// For scalable senders, `coupling` times the base; may exceed one.
    #[inline]
    pub fn coupled(&self, coupling: u32) -> u64 {
        u64::from(self.probability) * u64::from(coupling)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_proportional_and_bounded() {
        let params = Pi2Params::default();
        let mut pi = Pi2::default();
        let ms = Span::from_millis;
        // 10 ms above target, 25 above the last: 0.16 * 0.010 + 3.2 * 0.025.
        pi.update(&params, ms(25), ONE);
        let part = |pi: &Pi2| f64::from(pi.base()) / f64::from(ONE);
        let step = part(&pi);
        let ideal = 41.0 / 256.0 * 0.010 + 819.0 / 256.0 * 0.025;
        // Weights are whole numbers of 44 and more.
        assert!((step / ideal - 1.0).abs() < 0.001, "{step} {ideal}");
        pi.update(&params, ms(25), ONE);
        let (second, ideal) = (part(&pi) - step, 41.0 / 256.0 * 0.010);
        assert!((second / ideal - 1.0).abs() < 0.001, "{second} {ideal}");
        (1..10).for_each(|n| {
            pi.update(&params, ms(n * 100), ONE);
        });
        assert_eq!((pi.base(), pi.coupled(2)), (ONE, 2 * u64::from(ONE)));
        pi.update(&params, Span::from_secs(1), ONE / 3);
        assert_eq!(pi.base(), ONE / 3);
        (0..1000).for_each(|_| {
            pi.update(&params, Span::ZERO, ONE);
        });
        assert_eq!(pi.base(), 0);
        assert!(!pi.update(&params, Span::ZERO, ONE));
    }

    #[test]
    fn a_new_start_forgets_the_probability_alone() {
        let (params, delay) = (Pi2Params::default(), Span::from_millis(40));
        let (mut old, mut new) = (Pi2::default(), Pi2::default());
        old.update(&params, delay, ONE);
        old.restart();
        assert_eq!(old.base(), 0);
        old.update(&params, delay, ONE);
        new.update(&params, delay, ONE);
        assert!(0 < old.base() && old.base() < new.base());
    }

    #[test]
    fn settings_for_round_trips_are_those_of_the_rfc() {
        let ms = Span::from_millis;
        let of = |max, typical: Option<u64>| {
            Pi2Params::for_round_trips(Some(ms(max)), typical.map(ms)).unwrap()
        };
        let internet = of(100, Some(15));
        // 0.1 * 0.015 / 0.01 = 0.15 Hz; 0.3 / 0.1 = 3 Hz.
        assert_eq!((internet.target, internet.tupdate), (ms(15), ms(15)));
        assert_eq!((internet.alpha, internet.beta), (38, 768));
        assert_eq!((of(300, None).target, of(300, None).tupdate), (ms(50), ms(50)));
        assert_eq!((of(30, Some(20)).target, of(30, Some(20)).tupdate), (ms(20), ms(10)));
        assert_eq!(Pi2Params::for_round_trips(None, Some(ms(50))), Some(of(300, None)));
        let never = Pi2Params::for_round_trips(Some(Span::from_secs(100)), None);
        assert_eq!(never, None);
    }
}
