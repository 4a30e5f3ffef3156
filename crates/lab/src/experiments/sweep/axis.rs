//! Axes of sweeps: `KEY=VALUE|VALUE|…` or `KEY=FROM..TO[:POINTS]`.
//!
//! A key is a path in the scenario's file, entries of lists by number or name: `line.rtt`,
//! `traffic.bulk.count`, `traffic.0.cc`. Shorthands: `rate` is both directions of the line, `rtt`
//! is `line.rtt`, `qdisc` both disciplines. Ranges are geometric: rates, times and sizes span
//! decades. A value becomes what it looks like: a whole number, a fraction, a truth, a list or a
//! table as files have it, or words.

use super::{wrong, SweepError};

/// Points of a range unless told.
const POINTS: usize = 5;
/// Most points of a range.
const MAX_POINTS: usize = 100_000;

/// Units of ranges and how many of their base they are; `tc`'s kilobytes are of 1024.
const UNITS: [(&str, &str, f64); 16] = [
    ("gbit", "bit", 1e9),
    ("mbit", "bit", 1e6),
    ("kbit", "bit", 1e3),
    ("bit", "bit", 1.0),
    ("s", "ns", 1e9),
    ("ms", "ns", 1e6),
    ("us", "ns", 1e3),
    ("ns", "ns", 1.0),
    ("mb", "b", 1_048_576.0),
    ("m", "b", 1_048_576.0),
    ("kb", "b", 1024.0),
    ("k", "b", 1024.0),
    ("b", "b", 1.0),
    ("/s", "/s", 1.0),
    ("%", "%", 1.0),
    ("", "", 1.0),
];

/// A key and its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Path in the file.
    pub key: String,
    /// Its values.
    pub values: Vec<String>,
}

impl Axis {
    /// Reads axes that are separated by commas; those within lists and tables separate none.
    pub fn parse_all(text: &str) -> Result<Vec<Axis>, SweepError> {
        let mut open = 0u32;
        let parts = text.split(|letter| {
            match letter {
                '[' | '{' => open += 1,
                ']' | '}' => open = open.saturating_sub(1),
                _ => {}
            }
            letter == ',' && open == 0
        });
        parts.map(str::trim).filter(|part| !part.is_empty()).map(Axis::parse).collect()
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
            Some((from, rest)) => {
                let fix = "FROM..TO:POINTS of one unit, upwards from above zero since its steps \
                           are geometric, of 1 to 100000 points, such as rtt=10ms..500ms:6";
                let bad = || wrong(format!("`{text}` is no axis"), fix);
                range(from.trim(), rest.trim()).ok_or_else(bad)?
            }
            None => values.split('|').map(|value| value.trim().to_string()).collect(),
        };
        Ok(Axis { key: key.into(), values })
    }
}

/// The unit in which quantities of `base` up to `most` are read best: the largest that `most` is
/// one of. With it, how many of the base it is.
pub fn readable(base: &'static str, most: f64) -> (&'static str, f64) {
    let fits = |&&(_, of, factor): &&(&str, &str, f64)| of == base && factor <= most;
    UNITS.iter().find(fits).map_or((base, 1.0), |&(unit, _, factor)| (unit, factor))
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
                ("", true) => format!("{}", value.round()),
                ("" | "%" | "/s", _) => format!("{}{unit}", (value * 1e6).round() / 1e6),
                _ => written(value, unit),
            }
        })
        .collect();
    values.dedup();
    Some(values)
}

/// A quantity of base unit `base` with four digits, in the largest unit that it is one of, as a
/// fraction where needed: `3.162mbit`. Bytes are whole numbers of theirs.
fn written(value: f64, base: &str) -> String {
    let digits = 10f64.powf(value.abs().log10().floor() - 3.0).max(1.0);
    let value = if base == "b" { value.round() } else { (value / digits).round() * digits };
    let whole = |(_, of, factor): &&(&str, &str, f64)| {
        *of == base && value >= *factor && (base != "b" || (value / factor).fract() == 0.0)
    };
    match UNITS.iter().find(whole) {
        Some((name, _, factor)) => format!("{}{name}", value / factor),
        None => format!("{value}{base}"),
    }
}

/// A number in its base unit, and that unit.
pub fn quantity(text: &str) -> Option<(f64, &'static str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let (_, base, factor) = UNITS.iter().find(|(name, ..)| *name == unit)?;
    Some((number.parse::<f64>().ok()? * factor, base))
}

/// Refuses a key of `keys`, of a scenario's file, that a later one sets again.
pub fn each_once(table: &toml::Table, keys: &[&str]) -> Result<(), SweepError> {
    const MARK: &str = "of the first";
    for (n, key) in keys.iter().enumerate() {
        for later in &keys[n + 1..] {
            let mut table = table.clone();
            set(&mut table, key, MARK)?;
            set(&mut table, later, "")?;
            if !table.to_string().contains(MARK) {
                let what = format!("`{key}` is set again by `{later}`");
                return Err(wrong(what, "one axis for each key, such as rtt=10ms|50ms"));
            }
        }
    }
    Ok(())
}

/// Sets `key` of a scenario's file.
pub fn set(table: &mut toml::Table, key: &str, value: &str) -> Result<(), SweepError> {
    match key {
        "rate" => {
            set_path(table, "line.up", value)?;
            set_path(table, "line.down", value)
        }
        "rtt" => set_path(table, "line.rtt", value),
        key => set_path(table, key, value),
    }
}

/// Sets what `key`, a path, leads to.
fn set_path(table: &mut toml::Table, key: &str, value: &str) -> Result<(), SweepError> {
    let parts: Vec<&str> = key.split('.').collect();
    walk(table, &parts, value).map_err(|missing| {
        wrong(
            format!("the scenario has no {missing} (of `{key}`)"),
            "a path such as line.rtt, traffic.bulk.count, traffic.0.cc or line.change.0.up",
        )
    })
}

/// Goes along `parts`: keys of tables, numbers or names of entries of lists. The error is what was
/// not there.
fn walk(table: &mut toml::Table, parts: &[&str], value: &str) -> Result<(), String> {
    let (first, rest) = match parts {
        [] => return Err("empty key".into()),
        [last] => {
            table.insert((*last).into(), typed(value));
            return Ok(());
        }
        [first, rest @ ..] => (*first, rest),
    };
    match table.get_mut(first) {
        Some(toml::Value::Table(inner)) => walk(inner, rest, value),
        Some(toml::Value::Array(entries)) => {
            let (entry, rest) = (rest[0], &rest[1..]);
            let number = entry.parse::<usize>().ok();
            let mut found = false;
            for (n, one) in entries.iter_mut().enumerate() {
                let Some(one) = one.as_table_mut() else { continue };
                // By its name; what has none goes by its kind.
                let name = one.get("name").or(one.get("kind")).and_then(toml::Value::as_str);
                if number == Some(n) || name == Some(entry) {
                    walk(one, rest, value)?;
                    found = true;
                }
            }
            found.then_some(()).ok_or_else(|| format!("`{entry}` among its `{first}`"))
        }
        _ => Err(format!("`{first}`")),
    }
}

fn typed(value: &str) -> toml::Value {
    if let Ok(number) = value.parse::<i64>() {
        return number.into();
    }
    // Lists and tables are written as a file has them.
    if value.starts_with(['[', '{']) {
        return value.parse().unwrap_or_else(|_| value.into());
    }
    match (value.parse::<bool>(), value.parse::<f64>()) {
        (Ok(truth), _) => truth.into(),
        (_, Ok(number)) if number.is_finite() => number.into(),
        _ => value.into(),
    }
}
