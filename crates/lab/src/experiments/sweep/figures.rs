//! A sweep's results as figures. A measure over the axis with the most quantities, a panel for each
//! value of a second such axis; settings that differ otherwise are lines. Without quantities, runs
//! are dots.

use super::names::Words;
use super::pivot::{name_of, Shape};
use super::{axis, PointResult};
use crate::figures::{Axis, Dots, Figure, Line, Plot};
use crate::flent::slug;

/// Greatest ratio of values for which a linear axis is read well.
const LINEAR: f64 = 50.0;

/// Figures of the measure `name`, all on one scale; none if there is nothing to compare.
pub fn figures(results: &[PointResult], name: &str) -> Vec<Figure> {
    let Shape { quantities, words } = Shape::of(results);
    let [across, others @ ..] = quantities.as_slice() else { return dots(results, name, &words) };
    let (apart, others) = others.split_at(1.min(others.len()));
    let rest = [others, &words].concat();
    let mut panels: Vec<(String, Vec<&PointResult>)> = Vec::new();
    for result in results {
        let title = name_of(&result.point, apart);
        match panels.iter_mut().find(|panel| panel.0 == title) {
            Some(panel) => panel.1.push(result),
            None => panels.push((title, vec![result])),
        }
    }
    let (y, words) = (scale(results, name), Words::of(name));
    let one = |(value, results): &(String, Vec<&PointResult>)| {
        let title = match apart {
            [key] => format!("{}, {key} {value}", words.whole()),
            _ => words.whole(),
        };
        lines(results, (name, &title), across, &rest, y.clone())
    };
    panels.iter().map(one).collect()
}

/// One axis for all panels.
fn scale(results: &[PointResult], name: &str) -> Axis {
    let label = Words::of(name).label();
    let means = || results.iter().filter_map(|result| Some(result.values.get(name)?.mean));
    let (least, most) = (means().fold(f64::MAX, f64::min), means().fold(f64::MIN, f64::max));
    match least > 0.0 && most > LINEAR * least {
        true => Axis::log(&label).within(least, most),
        false if least < most => Axis::linear(&label).within(least.min(0.0), most),
        false => Axis::linear(&label),
    }
}

fn lines(
    results: &[&PointResult],
    (name, title): (&str, &str),
    across: &str,
    rest: &[&str],
    y: Axis,
) -> Figure {
    let mut lines: Vec<Line> = Vec::new();
    let mut base_unit = "";
    for PointResult { point, values, .. } in results {
        let (Some((x, base)), Some(y)) = (axis::quantity(&point[across]), values.get(name)) else {
            continue;
        };
        base_unit = base;
        let series = if rest.is_empty() { Words::of(name).of } else { name_of(point, rest) };
        match lines.iter_mut().find(|line| line.name == series) {
            Some(line) => line.points.push([x, y.mean]),
            None => lines.push(Line { name: series, points: vec![[x, y.mean]] }),
        }
    }
    let most = lines.iter().flat_map(|line| &line.points).map(|point| point[0]).fold(0.0, f64::max);
    let (unit, factor) = axis::readable(base_unit, most);
    for line in &mut lines {
        line.points.iter_mut().for_each(|point| point[0] /= factor);
        line.points.sort_by(|a, b| a[0].total_cmp(&b[0]));
    }
    let positive = lines.iter().flat_map(|line| &line.points).all(|point| point[0] > 0.0);
    let label = if unit.is_empty() { across.to_string() } else { format!("{across} ({unit})") };
    let x = if positive { Axis::log(&label) } else { Axis::linear(&label) };
    Figure::new((&slug(title), title), (x, y), Plot::Lines(lines))
}

/// Runs as dots: the first of `words` across, the others are series.
fn dots(results: &[PointResult], name: &str, words: &[&str]) -> Vec<Figure> {
    let [across, rest @ ..] = words else { return Vec::new() };
    let (mut categories, mut series): (Vec<String>, Vec<Dots>) = Default::default();
    for PointResult { point, runs, .. } in results {
        let (category, other) = (&point[*across], name_of(point, rest));
        if !categories.contains(category) {
            categories.push(category.clone());
        }
        let other = if rest.is_empty() { Words::of(name).of } else { other };
        let at = series.iter().position(|dots| dots.name == other).unwrap_or_else(|| {
            series.push(Dots { name: other, ..Dots::default() });
            series.len() - 1
        });
        let place = categories.iter().position(|one| one == category).unwrap_or(0);
        let values = &mut series[at].values;
        values.resize(values.len().max(place + 1), Vec::new());
        values[place] = runs.get(name).cloned().unwrap_or_default();
    }
    let axes = (Axis::linear(""), scale(results, name).whole());
    vec![Figure::new((&slug(name), &Words::of(name).whole()), axes, Plot::Dots(categories, series))]
}
