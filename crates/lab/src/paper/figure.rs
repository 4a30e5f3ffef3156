//! Figures as data: what is drawn, not how.
//!
//! One description serves the page, the SVG and PNG files and the CSV.

/// Points of one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What the legend calls it.
    pub name: String,
    /// Coordinates.
    pub points: Vec<[f64; 2]>,
}

/// Bars of one name, one for each category.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// What the legend calls them.
    pub name: String,
    /// Height, and half the confidence interval; None where nothing was measured.
    pub values: Vec<Option<(f64, f64)>>,
}

/// Boxes of one name, one for each category: least, quartiles, greatest.
#[derive(Clone, Debug, PartialEq)]
pub struct Boxes {
    /// What the legend calls them.
    pub name: String,
    /// The five numbers; None where nothing was measured.
    pub values: Vec<Option<[f64; 5]>>,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub enum Plot {
    /// Time series, sweeps, cumulative distributions.
    Lines(Vec<Line>),
    /// Groups of bars.
    Bars(Vec<String>, Vec<Bars>),
    /// Groups of boxes.
    Boxes(Vec<String>, Vec<Boxes>),
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity and unit.
    pub label: String,
    /// Logarithmic.
    pub log: bool,
    /// What it shows at least and at most, whatever lies beyond; None: everything.
    pub limits: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str) -> Axis {
        Axis { label: label.into(), log: false, limits: None }
    }

    /// As it is, but it ends at these values.
    pub fn within(self, least: f64, most: f64) -> Axis {
        Axis { limits: Some((least, most)), ..self }
    }

    /// A logarithmic axis.
    pub fn log(label: &str) -> Axis {
        Axis { label: label.into(), log: true, limits: None }
    }
}

/// A figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Name for files: letters, digits, hyphens.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Across; without meaning for bars and boxes, whose categories stand there.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// What is drawn.
    pub plot: Plot,
}

use super::measure::Measures;
use crate::scenario::summary::millis;

impl Figure {
    /// Curves: `names` are measures and what the legend calls them. Those without points are left
    /// out.
    pub fn curves(
        (id, title): (&str, &str),
        axes: (Axis, Axis),
        measures: &Measures,
        names: &[(String, String)],
    ) -> Figure {
        let line = |(measure, name): &(String, String)| {
            let points = measures.curve(measure).to_vec();
            (!points.is_empty()).then(|| Line { name: name.clone(), points })
        };
        let lines = names.iter().filter_map(line).collect();
        Figure::new((id, title), axes, Plot::Lines(lines))
    }

    /// Cumulative distributions of milliseconds.
    pub fn cdf(
        (id, title): (&str, &str),
        x: Axis,
        measures: &Measures,
        names: &[(String, String)],
    ) -> Figure {
        let line = |(measure, name): &(String, String)| {
            let distribution = measures.distribution(measure)?;
            let all = distribution.count() as f64;
            let point = |(value, below): &(_, u64)| [millis(*value), *below as f64 / all];
            let points: Vec<[f64; 2]> = distribution.cumulative().iter().map(point).collect();
            (!points.is_empty()).then(|| Line { name: name.clone(), points })
        };
        let lines = names.iter().filter_map(line).collect();
        let y = Axis::linear("share of samples");
        Figure::new((id, title), (x, y), Plot::Lines(lines))
    }

    /// Groups of bars with confidence intervals. `measure` names the measure of a category (first
    /// argument) and a series (second).
    pub fn bars(
        (id, title): (&str, &str),
        y: Axis,
        measures: &Measures,
        categories: &[&str],
        series: &[&str],
        measure: &dyn Fn(&str, &str) -> String,
    ) -> Figure {
        let value = |category: &&str, name: &&str| {
            let estimate = measures.estimate(&measure(category, name))?;
            Some((estimate.mean, estimate.half_width.unwrap_or(0.0)))
        };
        let bars = series.iter().map(|name| Bars {
            name: name.to_string(),
            values: categories.iter().map(|category| value(category, name)).collect(),
        });
        let categories = categories.iter().map(|category| category.to_string()).collect();
        let plot = Plot::Bars(categories, bars.collect());
        Figure::new((id, title), (Axis::linear(""), y), plot)
    }

    /// A figure of what is given.
    pub fn new((id, title): (&str, &str), (x, y): (Axis, Axis), plot: Plot) -> Figure {
        Figure { id: id.into(), title: title.into(), x, y, plot }
    }
}

/// Sweeps: for each of `series`, the means of a measure over the settings of `xs`.
pub fn sweep(
    measures: &Measures,
    xs: &[f64],
    series: &[&str],
    measure: &dyn Fn(&str, f64) -> String,
) -> Plot {
    let lines = series.iter().map(|name| Line {
        name: name.to_string(),
        points: xs
            .iter()
            .filter_map(|x| Some([*x, measures.estimate(&measure(name, *x))?.mean]))
            .collect(),
    });
    Plot::Lines(lines.collect())
}
