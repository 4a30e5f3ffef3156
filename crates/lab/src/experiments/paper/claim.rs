//! Claims of the papers and the judge.
//!
//! A claim is a number or a relation that a paper states, as it stands there, and how it is
//! judged. The judge sees what the simulations measured, by name, and nothing else; a claim whose
//! measures are missing is not judged.

use serde::Serialize;

use super::measure::{Measure, Measures};
use crate::figures::Stated;
use crate::statistics::{number, Estimate};

/// Allowed distance of a simulated value from a stated one: the larger of the two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// Share of the stated value.
    pub relative: f64,
    /// In the measure's own unit.
    pub absolute: f64,
}

impl Tolerance {
    /// A share of the stated value.
    pub const fn share(relative: f64) -> Tolerance {
        Tolerance { relative, absolute: 0.0 }
    }

    /// Added latencies: 25 % or 1 ms. What the reference data of Piece of CAKE is held to; taken
    /// also for the "about" of the other papers, which give no tolerance.
    pub const LATENCY: Tolerance = Tolerance { relative: 0.25, absolute: 1.0 };

    fn of(self, value: f64) -> f64 {
        (value.abs() * self.relative).max(self.absolute)
    }
}

/// Rule that judges a claim, by means over the repetitions.
#[derive(Clone, Debug, PartialEq)]
pub enum Judge {
    /// The measure is the value.
    Near(Measure, f64, Tolerance),
    /// The measure is in the range, both ends included.
    Between(Measure, f64, f64),
    /// The measure is not above the limit.
    AtMost(Measure, f64),
    /// The measure is not below the limit.
    AtLeast(Measure, f64),
    /// The measures rise strictly in this order.
    Rising(Vec<Measure>),
    /// The first measure is not above the second one.
    NotAbove(Measure, Measure),
    /// The first measure divided by the second one is in the range.
    Ratio(Measure, Measure, f64, f64),
    /// The first measure divided by the second one is the value, give or take the last.
    NearRatio(Measure, Measure, f64, f64),
    /// The measures differ by at most this.
    Differ(Measure, Measure, f64),
    /// The first measure is at most this above the second one.
    MoreByAtMost(Measure, Measure, f64),
    /// The measures of the first pair differ by more than those of the second one.
    DifferMore((Measure, Measure), (Measure, Measure)),
    /// The sum of the variances between runs of the first measures is below that of the second.
    SteadierTogether(Vec<Measure>, Vec<Measure>),
    /// All of these.
    All(Vec<Judge>),
}

/// A claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The experiment's identifier and a name or number of its own: `A3.2`.
    pub id: String,
    /// The claim, in words.
    pub text: String,
    /// The value or relation that the paper states.
    pub stated: String,
    /// Rule that judges it.
    pub judge: Judge,
}

/// A judged claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The claim.
    pub claim: Claim,
    /// Each measure's name and estimate.
    pub simulated: Vec<(Measure, Estimate)>,
    /// True if it holds; None if something was not measured.
    pub holds: Option<bool>,
}

impl Judge {
    /// The measures that it looks at, each once, in order.
    pub fn measures(&self) -> Vec<&Measure> {
        let mut names: Vec<&Measure> = match self {
            Judge::Near(name, ..)
            | Judge::Between(name, ..)
            | Judge::AtMost(name, _)
            | Judge::AtLeast(name, _) => vec![name],
            Judge::Rising(names) => names.iter().collect(),
            Judge::NotAbove(a, b)
            | Judge::Ratio(a, b, ..)
            | Judge::NearRatio(a, b, ..)
            | Judge::Differ(a, b, _)
            | Judge::MoreByAtMost(a, b, _) => vec![a, b],
            Judge::DifferMore((a, b), (c, d)) => vec![a, b, c, d],
            Judge::SteadierTogether(a, b) => a.iter().chain(b).collect(),
            Judge::All(judges) => judges.iter().flat_map(Judge::measures).collect(),
        };
        let mut seen = std::collections::BTreeSet::new();
        names.retain(|name| seen.insert(*name));
        names
    }

    /// Its statements about single measures: a value or a range of each. Where it compares, the
    /// range of the first measure follows from the `mean` of the second.
    pub fn stated(&self, mean: &dyn Fn(&Measure) -> Option<f64>) -> Vec<(&Measure, Stated)> {
        let range = |name, value, low, high| {
            vec![(name, Stated { value, within: (low, high), compared: false })]
        };
        let beside = |name, other: &Measure, within: &dyn Fn(f64) -> (f64, f64)| {
            let stated = |mean| Stated { value: None, within: within(mean), compared: true };
            mean(other).map(|mean| (name, stated(mean))).into_iter().collect()
        };
        let least = f64::NEG_INFINITY;
        match self {
            Judge::Near(name, value, within) => {
                let tolerance = within.of(*value);
                range(name, Some(*value), value - tolerance, value + tolerance)
            }
            Judge::Between(name, low, high) => range(name, None, *low, *high),
            Judge::AtMost(name, limit) => range(name, None, least, *limit),
            Judge::AtLeast(name, limit) => range(name, None, *limit, f64::INFINITY),
            Judge::NotAbove(a, b) => beside(a, b, &|mean| (least, mean)),
            Judge::MoreByAtMost(a, b, most) => beside(a, b, &|mean| (least, mean + most)),
            Judge::Differ(a, b, most) => beside(a, b, &|mean| (mean - most, mean + most)),
            Judge::Ratio(a, b, low, high) => beside(a, b, &|mean| (mean * low, mean * high)),
            Judge::NearRatio(a, b, ratio, within) => {
                let (low, high) = (ratio - within, ratio + within);
                let mut bands = beside(a, b, &|mean| (mean * low, mean * high));
                for (_, stated) in &mut bands {
                    stated.value = mean(b).map(|mean| mean * ratio);
                }
                bands
            }
            Judge::Rising(names) => names
                .windows(2)
                .flat_map(|pair| beside(&pair[1], &pair[0], &|mean| (mean, f64::INFINITY)))
                .collect(),
            Judge::All(judges) => judges.iter().flat_map(|one| one.stated(mean)).collect(),
            Judge::DifferMore(..) | Judge::SteadierTogether(..) => Vec::new(),
        }
    }

    /// True if it holds of `measures`; None if one of them is missing.
    pub fn holds(&self, measures: &Measures) -> Option<bool> {
        let estimate = |name: &Measure| measures.estimate(name);
        let mean = |name: &Measure| estimate(name).map(|estimate| estimate.mean);
        Some(match self {
            Judge::Near(name, value, within) => (mean(name)? - value).abs() <= within.of(*value),
            Judge::Between(name, low, high) => (*low..=*high).contains(&mean(name)?),
            Judge::AtMost(name, limit) => mean(name)? <= *limit,
            Judge::AtLeast(name, limit) => mean(name)? >= *limit,
            Judge::Rising(names) => {
                let means: Option<Vec<f64>> = names.iter().map(mean).collect();
                means?.windows(2).all(|pair| pair[0] < pair[1])
            }
            Judge::NotAbove(a, b) => mean(a)? <= mean(b)?,
            Judge::Ratio(a, b, low, high) => (*low..=*high).contains(&(mean(a)? / mean(b)?)),
            Judge::NearRatio(a, b, ratio, within) => (mean(a)? / mean(b)? - ratio).abs() <= *within,
            Judge::Differ(a, b, most) => (mean(a)? - mean(b)?).abs() <= *most,
            Judge::MoreByAtMost(a, b, most) => mean(a)? - mean(b)? <= *most,
            Judge::DifferMore((a, b), (c, d)) => mean(a)? - mean(b)? > mean(c)? - mean(d)?,
            Judge::SteadierTogether(a, b) => {
                let variance = |names: &[Measure]| -> Option<f64> {
                    names.iter().map(|name| Some(estimate(name)?.deviation.powi(2))).sum()
                };
                variance(a)? < variance(b)?
            }
            Judge::All(judges) => {
                let each: Option<Vec<bool>> = judges.iter().map(|j| j.holds(measures)).collect();
                each?.into_iter().all(|holds| holds)
            }
        })
    }
}

impl Claim {
    /// Judges it.
    pub fn judge(self, measures: &Measures) -> Verdict {
        let simulated = self.judge.measures().into_iter();
        let simulated = simulated.filter_map(|name| Some((name.clone(), measures.estimate(name)?)));
        let simulated = simulated.collect();
        let holds = self.judge.holds(measures);
        Verdict { claim: self, simulated, holds }
    }
}

/// A line of `simnel paper --json`.
#[derive(Serialize)]
pub struct JsonLine<'a> {
    id: &'a str,
    paper: &'static str,
    claim: &'a str,
    stated: &'a str,
    simulated: serde_json::Value,
    ci95: serde_json::Value,
    holds: Option<bool>,
}

impl Verdict {
    /// As one JSON object: `simulated` and `ci95` (half the width of the interval) are numbers, or
    /// objects by measure where the claim is about several.
    pub fn json(&self, paper: super::Paper) -> JsonLine<'_> {
        let of = |value: &dyn Fn(&Estimate) -> Option<f64>| match self.simulated.as_slice() {
            [] => serde_json::Value::Null,
            [(_, one)] => value(one).into(),
            several => several
                .iter()
                .map(|(name, one)| (name.to_string(), serde_json::Value::from(value(one))))
                .collect::<serde_json::Map<_, _>>()
                .into(),
        };
        JsonLine {
            id: &self.claim.id,
            paper: paper.title(),
            claim: &self.claim.text,
            stated: &self.claim.stated,
            simulated: of(&|estimate| Some(estimate.mean)),
            ci95: of(&|estimate| estimate.half_width),
            holds: self.holds,
        }
    }

    /// The simulated values in words: at most four of them, then the range of the rest.
    pub fn simulated_text(&self) -> String {
        match self.simulated.as_slice() {
            [] => "not measured".into(),
            [(_, one)] => one.to_string(),
            several if several.len() <= 4 => {
                let texts: Vec<String> = several.iter().map(|(_, one)| number(one.mean)).collect();
                texts.join(" · ")
            }
            several => {
                let means = || several.iter().map(|(_, one)| one.mean);
                let least = means().fold(f64::INFINITY, f64::min);
                let most = means().fold(f64::NEG_INFINITY, f64::max);
                format!("{} values, {} to {}", several.len(), number(least), number(most))
            }
        }
    }
}
