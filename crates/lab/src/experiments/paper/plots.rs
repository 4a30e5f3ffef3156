//! Figures of measures: curves, distributions, dots, sweeps.

use std::fmt::Display;

use simnel_scenario::summary::millis;

use super::measure::{of, Measure, Measured, Measures};
use crate::figures::{Axis, Boxes, Dots, Figure, Line, Plot};
use crate::statistics::five_numbers;

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
pub fn dots<C: Display, S: Display>(
    (id, title): (&str, &str),
    y: Axis,
    measures: &Measures,
    categories: &[C],
    series: &[S],
    measure: &dyn Fn(&C, &S) -> Measure,
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
    let plot = Plot::Dots(categories.iter().map(C::to_string).collect(), dots.collect());
    Figure::new((id, title), (Axis::linear(""), y), plot)
}

/// Runs as dots: arms, and quantities of each.
pub fn arms_dots<Q: Measured + Copy>(
    id: (&str, &str),
    y: Axis,
    measures: &Measures,
    arms: &[&str],
    quantities: &[Q],
) -> Figure {
    dots(id, y, measures, arms, quantities, &|arm, quantity| of(arm, *quantity))
}

/// Boxes of all values of the measures that `names` gives for a category (first argument) and a
/// series (second).
pub fn boxes<C: Display>(
    measures: &Measures,
    categories: &[C],
    series: &[&str],
    names: &dyn Fn(&C, &str) -> Vec<Measure>,
) -> Plot {
    let series = series.iter().map(|one| {
        let value = |category| {
            let all: Vec<f64> = names(category, one)
                .iter()
                .flat_map(|name| measures.values(name))
                .copied()
                .collect();
            five_numbers(&all)
        };
        Boxes { name: one.to_string(), values: categories.iter().map(value).collect() }
    });
    Plot::Boxes(categories.iter().map(C::to_string).collect(), series.collect())
}

/// Sweeps: a line for each of `series`, its name and the measure at a setting: the means over `xs`.
pub fn sweep(
    measures: &Measures,
    xs: &[f64],
    series: &[(String, impl Fn(f64) -> Measure)],
) -> Plot {
    let lines = series.iter().map(|(name, measure)| {
        let point = |x: &f64| Some([*x, measures.estimate(&measure(*x))?.mean]);
        Line { name: name.clone(), points: xs.iter().filter_map(point).collect() }
    });
    Plot::Lines(lines.collect())
}
