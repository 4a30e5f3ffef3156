//! Figures of measures: curves, distributions, bars, sweeps.

use simnel_scenario::summary::millis;

use super::measure::{Measure, Measures};
use crate::figures::{Axis, Bars, Figure, Line, Plot};

/// Curves: `names` are measures and what the legend calls them. Those without points are left
/// out.
pub fn curves(
    (id, title): (&str, &str),
    axes: (Axis, Axis),
    measures: &Measures,
    names: &[(Measure, String)],
) -> Figure {
    let line = |(measure, name): &(Measure, String)| {
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
    names: &[(Measure, String)],
) -> Figure {
    let line = |(measure, name): &(Measure, String)| {
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
    measure: &dyn Fn(&str, &str) -> Measure,
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

/// Sweeps: for each of `series`, the means of a measure over the settings of `xs`.
pub fn sweep(
    measures: &Measures,
    xs: &[f64],
    series: &[&str],
    measure: &dyn Fn(&str, f64) -> Measure,
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
