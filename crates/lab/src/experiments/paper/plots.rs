//! Figures of measures: curves, distributions, dots, sweeps.

use simnel_scenario::summary::millis;

use super::measure::{Measure, Measures};
use crate::figures::{Axis, Dots, Figure, Line, Plot};

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

/// Runs as dots in groups. `measure` names the measure of a category (first argument) and a series
/// (second).
pub fn dots(
    (id, title): (&str, &str),
    y: Axis,
    measures: &Measures,
    categories: &[&str],
    series: &[&str],
    measure: &dyn Fn(&str, &str) -> Measure,
) -> Figure {
    let dots = series.iter().map(|name| {
        let of = || categories.iter().map(|category| measure(category, name));
        Dots {
            name: name.to_string(),
            values: of().map(|measure| measures.values(&measure).to_vec()).collect(),
            measures: of().map(|measure| measure.to_string()).collect(),
            stated: Vec::new(),
        }
    });
    let plot = Plot::Dots(
        categories.iter().map(|category| category.to_string()).collect(),
        dots.collect(),
    );
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
