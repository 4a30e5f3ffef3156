//! Axes of sweeps: `KEY=VALUE|VALUE|…` or `KEY=FROM..TO[:POINTS]`.
//!
//! A key is a path in the scenario's file, entries of lists by number or name: `line.rtt`,
//! `traffic.bulk.count`, `traffic.0.cc`. Shorthands: `rate` is both directions of the line, `rtt`
//! is `line.rtt`, `qdisc` both disciplines. Ranges are geometric: rates, times and sizes span
//! decades. A value becomes what it looks like: a whole number, a fraction, a truth, or words.

use super::{wrong, SweepError};

/// Points of a range unless told.
const POINTS: usize = 5;
/// Most points of a range.
const MAX_POINTS: usize = 100_000;

/// Units of ranges and how many of their base they are.
const UNITS: [(&str, &str, f64); 11] = [
    ("bit", "bit", 1.0),
    ("kbit", "bit", 1e3),
    ("mbit", "bit", 1e6),
    ("gbit", "bit", 1e9),
    ("ns", "ns", 1.0),
    ("us", "ns", 1e3),
    ("ms", "ns", 1e6),
    ("s", "ns", 1e9),
    ("%", "%", 1.0),
    ("", "", 1.0),
    ("b", "b", 1.0),
];

/// A key and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Path in the file.
    pub key: String,
    /// What it is set to.
    pub values: Vec<String>,
}

impl Axis {
    /// Reads axes that are separated by commas.
    pub fn parse_all(text: &str) -> Result<Vec<Axis>, SweepError> {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Axis::parse).collect()
    }

    fn parse(text: &str) -> Result<Axis, SweepError> {
        let fix = "KEY=VALUE|VALUE|… or KEY=FROM..TO:POINTS, such as rtt=10ms..500ms:6";
        let bad = || wrong(format!("`{text}` is no axis"), fix);
        let (key, values) = text.split_once('=').ok_or_else(bad)?;
        let (key, values) = (key.trim(), values.trim());
        if key.is_empty() || values.is_empty() {
            return Err(bad());
        }
        let values = match values.split_once("..") {
            Some((from, rest)) => range(from.trim(), rest.trim()).ok_or_else(bad)?,
            None => values.split('|').map(|value| value.trim().to_string()).collect(),
        };
        Ok(Axis { key: key.into(), values })
    }
}

/// Geometric steps from one quantity to another; None if they are none, or of different kinds.
fn range(from: &str, rest: &str) -> Option<Vec<String>> {
    let (to, points) = match rest.split_once(':') {
        Some((to, points)) => (to, points.parse().ok()?),
        None => (rest, POINTS),
    };
    let ((low, unit), (high, other)) = (quantity(from)?, quantity(to)?);
    if unit != other || low <= 0.0 || high < low || !(1..=MAX_POINTS).contains(&points) {
        return None;
    }
    let whole = from.parse::<u64>().is_ok() && to.parse::<u64>().is_ok();
    let mut values: Vec<String> = (0..points)
        .map(|n| {
            let share = n as f64 / (points - 1).max(1) as f64;
            let value = low * (high / low).powf(share);
            match (unit, whole) {
                ("", false) | ("%", _) => format!("{}{unit}", (value * 1e6).round() / 1e6),
                _ => format!("{}{unit}", value.round()),
            }
        })
        .collect();
    values.dedup();
    Some(values)
}

/// A number in its base unit, and that unit.
fn quantity(text: &str) -> Option<(f64, &'static str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, base, factor) = UNITS.iter().find(|(name, ..)| *name == unit)?;
    Some((number.parse::<f64>().ok()? * factor, base))
}

/// Sets `key` of a scenario's file.
pub(super) fn set(table: &mut toml::Table, key: &str, value: &str) -> Result<(), SweepError> {
    match key {
        "rate" => {
            set_path(table, "line.up", value)?;
            set_path(table, "line.down", value)
        }
        "rtt" => set_path(table, "line.rtt", value),
        key => set_path(table, key, value),
    }
}

fn set_path(table: &mut toml::Table, key: &str, value: &str) -> Result<(), SweepError> {
    let missing = |part: &str| {
        let what = format!("the scenario has no `{part}` (of `{key}`)");
        wrong(what, "a path such as line.rtt or traffic.bulk.count")
    };
    let mut parts: Vec<&str> = key.split('.').collect();
    let last = parts.pop().unwrap_or(key);
    let mut place = table;
    for part in parts {
        // `traffic.bulk`: entries of a list go on in the next part, by number or name.
        if place.get(part).is_some_and(toml::Value::is_array) {
            return set_entry(place, key, value);
        }
        let next = place.get_mut(part).and_then(toml::Value::as_table_mut);
        place = next.ok_or_else(|| missing(part))?;
    }
    place.insert(last.into(), typed(value));
    Ok(())
}

/// `LIST.ENTRY.KEY`: the entry by number, or all of that name or kind.
fn set_entry(table: &mut toml::Table, key: &str, value: &str) -> Result<(), SweepError> {
    let bad = || {
        wrong(format!("`{key}` names no entry of the scenario"), "LIST.ENTRY.KEY: traffic.bulk.cc")
    };
    let mut parts = key.splitn(3, '.');
    let (Some(list), Some(entry), Some(last)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(bad());
    };
    let Some(toml::Value::Array(entries)) = table.get_mut(list) else { return Err(bad()) };
    let number = entry.parse::<usize>().ok();
    let mut found = false;
    for (n, one) in entries.iter_mut().enumerate() {
        let Some(one) = one.as_table_mut() else { continue };
        let name = one.get("name").or(one.get("kind")).and_then(toml::Value::as_str);
        if number == Some(n) || name == Some(entry) {
            one.insert(last.into(), typed(value));
            found = true;
        }
    }
    if found {
        Ok(())
    } else {
        Err(bad())
    }
}

fn typed(value: &str) -> toml::Value {
    if let Ok(number) = value.parse::<i64>() {
        return number.into();
    }
    match (value.parse::<bool>(), value.parse::<f64>()) {
        (Ok(truth), _) => truth.into(),
        (_, Ok(number)) if number.is_finite() => number.into(),
        _ => value.into(),
    }
}
