//! A sweep's results as figures: a measure each, over the axis with the most values that are
//! quantities; settings that differ otherwise are lines.

use std::collections::{BTreeMap, BTreeSet};

use super::{axis, PointResult};
use crate::figures::{Axis, Figure, Line, Plot};
use crate::flent::slug;

/// Of each measure of `names` a figure; none if no setting that differs is a quantity.
pub fn figures(results: &[PointResult], names: &[&String]) -> Vec<Figure> {
    let mut settings: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (key, value) in results.iter().flat_map(|result| &result.point) {
        settings.entry(key).or_default().insert(value);
    }
    settings.retain(|_, values| values.len() > 1);
    let quantities = settings
        .iter()
        .filter(|(_, values)| values.iter().all(|value| axis::quantity(value).is_some()))
        .max_by_key(|(_, values)| values.len());
    let Some((&across, _)) = quantities else { return Vec::new() };
    let varied: Vec<&str> = settings.keys().filter(|key| **key != across).copied().collect();
    names.iter().map(|name| figure(results, name, across, &varied)).collect()
}

fn figure(results: &[PointResult], name: &str, across: &str, varied: &[&str]) -> Figure {
    let mut lines: Vec<Line> = Vec::new();
    let mut base_unit = "";
    for PointResult { point, values } in results {
        let (Some((x, base)), Some(y)) = (axis::quantity(&point[across]), values.get(name)) else {
            continue;
        };
        base_unit = base;
        let other: Vec<&str> = varied.iter().map(|key| point[*key].as_str()).collect();
        let series = if other.is_empty() { name.to_string() } else { other.join(", ") };
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
    Figure::new((&slug(name), name), (x, Axis::linear(name)), Plot::Lines(lines))
}
