//! The least or greatest of the samples of a sliding window of time, in constant space.
//!
//! Kathleen Nichols' filter, as Linux uses it for the minimum RTT and BBR for bandwidth. It keeps
//! the best sample, and the best of the later parts of the window. So a good one is at hand when
//! the best grows too old. The time scale is the caller's (32 bits, wrapping).

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    time: u32,
    value: u32,
}

/// The best of a window: the greatest if `MAX`, else the least.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Windowed<const MAX: bool> {
    best: [Sample; 3],
}

impl<const MAX: bool> Windowed<MAX> {
    /// Holds `value` alone.
    pub(crate) fn reset(&mut self, time: u32, value: u32) {
        self.best = [Sample { time, value }; 3];
    }

    #[inline]
    pub(crate) fn value(&self) -> u32 {
        self.best[0].value
    }

    #[inline]
    fn as_good(value: u32, than: Sample) -> bool {
        if MAX {
            value >= than.value
        } else {
            value <= than.value
        }
    }

    /// Takes in a sample; `window` is the length of the window.
    #[inline]
    pub(crate) fn update(&mut self, window: u32, time: u32, value: u32) {
        let [first, second, third] = self.best;
        let sample = Sample { time, value };
        if Self::as_good(value, first) || time.wrapping_sub(third.time) > window {
            self.best = [sample; 3];
            return;
        }
        if Self::as_good(value, second) {
            self.best = [first, sample, sample];
        } else if Self::as_good(value, third) {
            self.best[2] = sample;
        }
        self.age(window, sample);
    }

    /// Lets the later samples take the place of those that are too old.
    fn age(&mut self, window: u32, sample: Sample) {
        let [first, second, third] = self.best;
        let passed = sample.time.wrapping_sub(first.time);
        if passed > window {
            self.best = [second, third, sample];
            if sample.time.wrapping_sub(second.time) > window {
                self.best = [third, sample, sample];
            }
        } else if second.time == first.time && passed > window / 4 {
            self.best = [first, sample, sample];
        } else if third.time == second.time && passed > window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_is_forgotten_after_the_window() {
        let mut least = Windowed::<false>::default();
        least.reset(0, 50);
        for time in 1..200 {
            least.update(100, time, 60 + time % 7);
            assert_eq!(least.value() == 50, time <= 100, "{time}");
        }
        assert!((60..67).contains(&least.value()));
        let mut greatest = Windowed::<true>::default();
        greatest.update(10, 0, 5);
        greatest.update(10, 1, 9);
        greatest.update(10, 2, 7);
        assert_eq!(greatest.value(), 9);
    }

    /// Values in the order of age, after `samples` of (time, value).
    fn held<const MAX: bool>(samples: &[(u32, u32)]) -> [u32; 3] {
        let mut windowed = Windowed::<MAX>::default();
        windowed.reset(samples[0].0, samples[0].1);
        for &(time, value) in &samples[1..] {
            windowed.update(100, time, value);
        }
        windowed.best.map(|sample| sample.value)
    }

    /// Nichols' rule: with no better one, a quarter of the window later the second best is taken
    /// anew, and half of it later the third.
    #[test]
    fn later_quarters_have_their_own_best() {
        assert_eq!(held::<true>(&[(0, 100), (25, 80)]), [100, 100, 100]);
        assert_eq!(held::<true>(&[(0, 100), (26, 80)]), [100, 80, 80]);
        assert_eq!(held::<true>(&[(0, 100), (26, 80), (50, 70)]), [100, 80, 80]);
        assert_eq!(held::<true>(&[(0, 100), (26, 80), (51, 70)]), [100, 80, 70]);
        assert_eq!(held::<true>(&[(0, 100), (26, 80), (51, 70), (60, 75)]), [100, 80, 75]);
        assert_eq!(held::<true>(&[(0, 100), (26, 80), (51, 70), (60, 85)]), [100, 85, 85]);
        assert_eq!(held::<true>(&[(0, 100), (26, 80), (51, 70), (60, 100)]), [100; 3]);
        assert_eq!(held::<false>(&[(0, 10), (26, 20), (51, 30), (60, 25)]), [10, 20, 25]);
        assert_eq!(held::<false>(&[(0, 10), (26, 20), (51, 30), (60, 20)]), [10, 20, 20]);
        assert_eq!(held::<false>(&[(0, 10), (26, 20), (51, 30), (60, 31)]), [10, 20, 30]);
    }

    #[test]
    fn what_is_too_old_gives_way_to_the_next() {
        let start = [(0, 100), (26, 80), (51, 70)];
        let after = |time| held::<true>(&[start[0], start[1], start[2], (time, 5)]);
        assert_eq!(after(100), [100, 80, 70]);
        assert_eq!(after(101), [80, 70, 5]);
        assert_eq!(after(126), [80, 70, 5]);
        assert_eq!(after(127), [70, 5, 5]);
        assert_eq!(after(151), [70, 5, 5]);
        assert_eq!(after(152), [5, 5, 5]);
    }
}
