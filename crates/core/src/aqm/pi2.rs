//! PI2: a proportional-integral controller whose output is squared for senders that answer to the
//! root of it (De Schepper et al. 2016; RFC 9332, appendix A).
//!
//! Every `tupdate` a base probability moves by alpha * (delay - target) + beta * (delay - last
//! delay). Scalable senders (DCTCP, Prague) are marked with `coupling` times it, classic ones
//! (Reno, CUBIC) marked or dropped with its square, so that both get the same rate (section 2.1).
//! Unlike PIE's, the steps need no tuning: the square makes the loop linear.
//!
//! Signals are not drawn but accumulated ([`Recurrence`], appendix A.2, `recur`): every 1/p-th
//! packet is one, which has no variance to speak of.
//!
//! Numbers: probabilities are Q0.32, in u64, so that one is a value.

use crate::time::Span;
use crate::wide::quotient;

/// Probability one.
pub const ONE: u64 = 1 << 32;

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
    /// For a typical round trip of 15 ms and one of 100 ms at most; RFC 9332, appendix A.1.
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
    /// them (RFC 9332, appendix A.1): alpha = 0.1 * tupdate / max_rtt^2, beta = 0.3 / max_rtt. The
    /// longest is six typical ones, unless both are said. None if alpha would be nothing, as it is
    /// before beta; neither is ever beyond what Linux can keep.
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
    probability: u64,
    last_delay: Span,
}

impl Pi2 {
    /// Moves the base probability, with queues that delay by `delay` now. False if nothing changed.
    pub fn update(&mut self, params: &Pi2Params, delay: Span) -> bool {
        let before = *self;
        let weigh = |weight: u32, from: Span| {
            let distance = u128::from(delay.0.abs_diff(from.0));
            let step =
                quotient(u128::from(weight) * distance * u128::from(ONE), 256 * 1_000_000_000);
            if delay < from {
                -(step as i128)
            } else {
                step as i128
            }
        };
        let step = weigh(params.alpha, params.target) + weigh(params.beta, self.last_delay);
        let moved = i128::from(self.probability) + step;
        self.probability = moved.clamp(0, i128::from(ONE)) as u64;
        self.last_delay = delay;
        *self != before
    }

    /// The base probability.
    #[inline]
    pub fn base(&self) -> u64 {
        self.probability
    }

    /// For senders that answer to the root of it.
    #[inline]
    pub fn squared(&self) -> u64 {
        ((u128::from(self.probability) * u128::from(self.probability)) >> 32) as u64
    }

    /// For scalable senders, `coupling` times the base; may exceed one.
    #[inline]
    pub fn coupled(&self, coupling: u32) -> u64 {
        self.probability.saturating_mul(coupling.into())
    }
}

/// Turns a probability into signals at even distances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recurrence {
    /// Sum of probabilities since the last signal.
    sum: u64,
}

impl Recurrence {
    /// True for every 1/`probability`-th call.
    #[inline]
    pub fn hits(&mut self, probability: u64) -> bool {
        self.sum += probability.min(ONE);
        let hit = self.sum >= ONE;
        if hit {
            self.sum -= ONE;
        }
        hit
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
        pi.update(&params, ms(25));
        let step = pi.base() as f64 / ONE as f64;
        let ideal = 41.0 / 256.0 * 0.010 + 819.0 / 256.0 * 0.025;
        assert!((step - ideal).abs() < 1e-8, "{step} {ideal}");
        pi.update(&params, ms(25));
        let second = pi.base() as f64 / ONE as f64 - step;
        assert!((second - 41.0 / 256.0 * 0.010).abs() < 1e-8);
        for _ in 0..10 {
            pi.update(&params, Span::from_secs(5));
            pi.update(&params, Span::from_secs(9));
        }
        assert_eq!((pi.base(), pi.squared(), pi.coupled(2)), (ONE, ONE, 2 * ONE));
        (0..1000).for_each(|_| {
            pi.update(&params, Span::ZERO);
        });
        assert_eq!(pi.base(), 0);
        assert!(!pi.update(&params, Span::ZERO));
    }

    #[test]
    fn the_square_and_the_coupling_give_equal_rates() {
        let pi = Pi2 { probability: ONE / 10, last_delay: Span::ZERO };
        assert_eq!(pi.squared(), (ONE / 10).pow(2) >> 32);
        assert_eq!(pi.coupled(2), 2 * (ONE / 10));
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

    #[test]
    fn signals_recur() {
        let mut recurrence = Recurrence::default();
        let hits: std::vec::Vec<bool> = (0..12).map(|_| recurrence.hits(ONE / 4)).collect();
        for (n, hit) in hits.iter().enumerate() {
            assert_eq!(*hit, n % 4 == 3, "{n}");
        }
        assert!((0..5).all(|_| recurrence.hits(7 * ONE)));
    }
}
