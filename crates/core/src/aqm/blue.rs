//! BLUE: a marking probability that learns from overflow and idleness alone (Feng, Kandlur, Saha
//! and Shin 1999; 2002).
//!
//! It rises by d1 when the queue overflows or stands above a threshold, and falls by d2 when the
//! line is idle. It moves at most once in a `freeze` time, so that a change can show before the
//! next. The paper's experiments have d1 from 0.0025 to 0.02, d2 a tenth of that, and freeze times
//! from 10 to 100 ms. The defaults here are the largest of each. (Facts D.8.)
//!
//! Caller's rule: [`BlueState::raise`] for each loss or each arrival above the threshold,
//! [`BlueState::lower`] whenever there is nothing to send, [`BlueState::hits`] for each arrival.

use crate::random::Random;
use crate::time::{Span, Time};

/// Settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlueParams {
    /// Step up (d1), Q0.32.
    pub increment: u32,
    /// Step down (d2), Q0.32.
    pub decrement: u32,
    /// Least time between two steps.
    pub freeze: Span,
}

impl Default for BlueParams {
    fn default() -> BlueParams {
        let percent = (1u64 << 32) / 100;
        BlueParams {
            increment: (2 * percent) as u32,
            decrement: (percent / 5) as u32,
            freeze: Span::from_millis(100),
        }
    }
}

/// State of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlueState {
    /// Q0.32.
    probability: u32,
    /// Time of the last step.
    moved: Option<Time>,
}

impl BlueState {
    /// Congestion: the queue is too long.
    pub fn raise(&mut self, params: &BlueParams, now: Time) {
        if self.thaw(params, now) {
            self.probability = self.probability.saturating_add(params.increment);
        }
    }

    /// The line is idle.
    #[inline]
    pub fn lower(&mut self, params: &BlueParams, now: Time) {
        if self.probability > 0 && self.thaw(params, now) {
            self.probability = self.probability.saturating_sub(params.decrement);
        }
    }

    /// Rolls the dice for a packet. Draws only while there is a chance.
    #[inline]
    pub fn hits(&self, random: &mut Random) -> bool {
        self.probability > 0 && random.u32() < self.probability
    }

    /// The probability, Q0.32.
    pub fn probability(&self) -> u32 {
        self.probability
    }

    /// True, once in a freeze time.
    fn thaw(&mut self, params: &BlueParams, now: Time) -> bool {
        let frozen = self.moved.is_some_and(|moved| now.since(moved) < params.freeze);
        if !frozen {
            self.moved = Some(now);
        }
        !frozen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_step_in_a_freeze_time() {
        let params = BlueParams::default();
        let mut blue = BlueState::default();
        for ms in 0..250 {
            blue.raise(&params, Time(ms * 1_000_000));
        }
        assert_eq!(blue.probability(), 3 * params.increment);
        // A step down waits for the last step up.
        blue.lower(&params, Time(299_999_999));
        assert_eq!(blue.probability(), 3 * params.increment);
        blue.lower(&params, Time(300_000_000));
        blue.raise(&params, Time(399_999_999));
        assert_eq!(blue.probability(), 3 * params.increment - params.decrement);
        (4..100).for_each(|n| blue.raise(&params, Time(n * 100_000_000)));
        assert_eq!(blue.probability(), u32::MAX);
        (100..700).for_each(|n| blue.lower(&params, Time(n * 100_000_000)));
        assert_eq!(blue.probability(), 0);
    }

    #[test]
    fn an_idle_line_without_a_probability_freezes_nothing() {
        let (params, mut blue) = (BlueParams::default(), BlueState::default());
        blue.lower(&params, Time::ZERO);
        blue.raise(&params, Time(1));
        assert_eq!(blue.probability(), params.increment);
    }

    #[test]
    fn of_all_draws_as_many_hit_as_the_probability_says() {
        let seeded = || Random::derive(1, 0);
        let drawn = seeded().u32();
        let hits = |probability| BlueState { probability, moved: None }.hits(&mut seeded());
        assert!(hits(drawn + 1) && !hits(drawn));
        // Without a chance nothing is drawn: other decisions see the same numbers.
        let mut random = seeded();
        BlueState::default().hits(&mut random);
        assert_eq!(random.u32(), drawn);
    }

    #[test]
    fn the_dice_follow_the_probability() {
        let mut random = Random::new(1);
        let blue = BlueState { probability: u32::MAX / 4, moved: None };
        let hits = (0..100_000).filter(|_| blue.hits(&mut random)).count();
        assert!(hits.abs_diff(25_000) < 500, "{hits}");
        assert!((0..1000).all(|_| !BlueState::default().hits(&mut random)));
    }
}
