//! A sweep's results by its axes: tables of one measure, for a terminal and as heat maps.

use std::collections::BTreeMap;

use super::{axis, PointResult};
use crate::statistics::Estimate;

/// The axes of a sweep that have more than one value, by what they are in tables and figures.
pub(super) struct Shape<'a> {
    /// Axes of quantities, the one with the most values first.
    pub quantities: Vec<&'a str>,
    /// The others.
    pub words: Vec<&'a str>,
}

impl<'a> Shape<'a> {
    pub fn of(results: &'a [PointResult]) -> Shape<'a> {
        let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (key, value) in results.iter().flat_map(|result| &result.point) {
            let known = values.entry(key).or_default();
            if !known.contains(&value.as_str()) {
                known.push(value);
            }
        }
        values.retain(|_, values| values.len() > 1);
        let (mut quantities, words): (Vec<_>, Vec<_>) = values
            .into_iter()
            .partition(|(_, values)| values.iter().all(|one| axis::quantity(one).is_some()));
        quantities.sort_by_key(|(_, values)| std::cmp::Reverse(values.len()));
        let keys = |axes: Vec<(&'a str, Vec<&str>)>| axes.into_iter().map(|(key, _)| key).collect();
        Shape { quantities: keys(quantities), words: keys(words) }
    }
}

/// Values of `keys` at a setting, as the name of what shares them.
pub(super) fn name_of(point: &BTreeMap<String, String>, keys: &[&str]) -> String {
    let values: Vec<&str> = keys.iter().map(|key| point[*key].as_str()).collect();
    values.join(", ")
}

/// One measure at all settings that share the words of `title`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pivot {
    /// Words that all its settings share; empty where there are none.
    pub title: String,
    /// The axis of the rows.
    pub across: String,
    /// Values of the other axis, or of all others.
    pub columns: Vec<String>,
    /// By value of the rows' axis a cell a column; None where nothing was measured.
    pub rows: Vec<(String, Vec<Option<Estimate>>)>,
}

/// Measure `name`: two axes of quantities make a table a discipline, one makes a table with a
/// column a discipline.
pub fn pivots(results: &[PointResult], name: &str) -> Vec<Pivot> {
    let Shape { quantities, words } = Shape::of(results);
    let two = quantities.len() > 1;
    let mut keys = [quantities, words].concat();
    if keys.is_empty() {
        keys.extend(
            results.iter().flat_map(|result| result.point.keys()).next().map(String::as_str),
        );
    }
    let (down, rest) = keys.split_at(1.min(keys.len()));
    let (across, apart) = rest.split_at(if two { 1 } else { rest.len() });
    let mut made: Vec<Pivot> = Vec::new();
    for PointResult { point, values, .. } in results {
        let (title, row) = (name_of(point, apart), name_of(point, down));
        let column = if across.is_empty() { "mean".into() } else { name_of(point, across) };
        let place = made.iter().position(|pivot| pivot.title == title).unwrap_or_else(|| {
            let across = down.join("");
            made.push(Pivot { title, across, columns: Vec::new(), rows: Vec::new() });
            made.len() - 1
        });
        let pivot = &mut made[place];
        let at = position(&mut pivot.columns, |one| **one == column, || column.clone());
        let row = position(&mut pivot.rows, |one| one.0 == row, || (row.clone(), Vec::new()));
        let cells = &mut pivot.rows[row].1;
        cells.resize(cells.len().max(at + 1), None);
        cells[at] = values.get(name).copied();
    }
    for pivot in &mut made {
        pivot.rows.iter_mut().for_each(|(_, cells)| cells.resize(pivot.columns.len(), None));
    }
    made
}

/// Place of the entry that `is` it, which is added if it is not there.
fn position<T>(list: &mut Vec<T>, is: impl Fn(&&T) -> bool, make: impl FnOnce() -> T) -> usize {
    list.iter().position(|one| is(&one)).unwrap_or_else(|| {
        list.push(make());
        list.len() - 1
    })
}
