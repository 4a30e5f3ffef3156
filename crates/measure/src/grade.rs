//! Grades of the delay that load adds, and quantiles in which what was lost is later than anything.

use serde::{Deserialize, Serialize};

/// A grade of the delay that load adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Grade {
    /// Below 5 ms: nobody notices the load.
    #[serde(rename = "A+")]
    APlus,
    /// Below 30 ms.
    A,
    /// Below 60 ms.
    B,
    /// Below 200 ms: calls suffer.
    C,
    /// Below 400 ms.
    D,
    /// More: calls fail.
    F,
}

impl Grade {
    /// The grade for an added delay in ms; None is "lost".
    pub fn of(added_ms: Option<f64>) -> Grade {
        let steps = [
            (5.0, Grade::APlus),
            (30.0, Grade::A),
            (60.0, Grade::B),
            (200.0, Grade::C),
            (400.0, Grade::D),
        ];
        let below = |added: f64| steps.iter().find(|(limit, _)| added < *limit);
        added_ms.and_then(below).map_or(Grade::F, |(_, grade)| *grade)
    }

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Grade::APlus => "A+",
            Grade::A => "A",
            Grade::B => "B",
            Grade::C => "C",
            Grade::D => "D",
            Grade::F => "F",
        }
    }

    /// Green, yellow or red, for terminals.
    pub fn colour(self) -> &'static str {
        match self {
            Grade::APlus | Grade::A => "\x1b[1;32m",
            Grade::B | Grade::C => "\x1b[1;33m",
            Grade::D | Grade::F => "\x1b[1;31m",
        }
    }
}

/// Explanation of the grades for people, in two lines.
pub const HOW: &str = "The grade is of what load adds for 95 of 100 packets: below 5 ms A+, 30 A, \
                       60 B,\n200 C, 400 D, else F. Rates are of payload.\n";

/// The smallest value that `percent` of 100 values do not exceed; None is larger than any.
pub fn quantile(values: impl Iterator<Item = Option<f64>>, percent: usize) -> Option<f64> {
    let mut values: Vec<f64> = values.map(|value| value.unwrap_or(f64::INFINITY)).collect();
    values.sort_unstable_by(f64::total_cmp);
    let rank = (values.len() * percent).div_ceil(100).max(1);
    values.get(rank - 1).copied().filter(|value| value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_have_their_bounds() {
        let grades = [0.0, 5.0, 30.0, 60.0, 200.0, 400.0].map(|ms| Grade::of(Some(ms)).name());
        assert_eq!(grades, ["A+", "A", "B", "C", "D", "F"]);
        assert_eq!(Grade::of(None), Grade::F);
    }

    #[test]
    fn what_is_lost_is_later_than_any() {
        let values = || [Some(3.0), None, Some(1.0), Some(2.0)].into_iter();
        assert_eq!(quantile(values(), 50), Some(2.0));
        assert_eq!(quantile(values(), 75), Some(3.0));
        assert_eq!(quantile(values(), 76), None);
        assert_eq!(quantile(std::iter::empty(), 50), None);
    }
}
