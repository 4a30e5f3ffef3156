//! flent's data files, format 4: what flent itself opens and plots.
//!
//! A file is gzipped JSON: `x_values` in seconds, `results` with one value (or null) for each of
//! them, `raw_values` with times, and `metadata`. The keys are flent's own. Series have flent's
//! names, so that its plots (rrul's `all_scaled`, `ping_cdf`, `totals`) find them. Times are of the
//! simulation: the epoch is its beginning, so that equal runs make equal files.

use std::collections::BTreeMap;
#[cfg(not(target_family = "wasm"))]
use std::io::Read;
use std::io::Write;

use serde::{Deserialize, Serialize};
use simnel_sim::{Direction, FlowResult, Kind, Outcome, Traffic};

use self::test::{is_transfer, way, Test};
#[cfg(not(target_family = "wasm"))]
use crate::files;
use simnel_scenario::summary::{interval_mbps, millis};
use simnel_scenario::Finished;

pub mod plot;
mod test;

/// A data file.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Data {
    /// Format.
    pub version: u32,
    /// Seconds since the beginning.
    pub x_values: Vec<f64>,
    /// Series by name.
    pub results: BTreeMap<String, Vec<Option<f64>>>,
    /// By flent's keys.
    pub metadata: serde_json::Map<String, serde_json::Value>,
    /// Samples by series.
    #[serde(default)]
    pub raw_values: serde_json::Map<String, serde_json::Value>,
}

/// The format that is written.
pub const VERSION: u32 = 4;

impl Data {
    /// The data of a run called `title`.
    pub fn of(title: &str, run: &Finished) -> Data {
        let results = &run.results;
        let step = results.interval.0 as f64 / 1e9;
        let points = results.simulated.0.div_ceil(results.interval.0.max(1)) as usize;
        let (test, series) = series(run, points);
        let length = results.simulated.0 as f64 / 1e9;
        let transfers = run.results.flows.iter().filter(|f| is_transfer(f, &run.setup.traffic));
        let metadata = serde_json::json!({
            "NAME": test.name(),
            "TITLE": title,
            "TIME": "1970-01-01T00:00:00.000000Z",
            "T0": "1970-01-01T00:00:00.000000Z",
            "LENGTH": length,
            "TOTAL_LENGTH": length,
            "STEP_SIZE": step,
            "HOST": "server",
            "HOSTS": ["server"],
            "LOCAL_HOST": "home",
            "IP_VERSION": 4,
            "FLENT_VERSION": format!("simnel {}", env!("CARGO_PKG_VERSION")),
            "DATA_FILENAME": file_name(title),
            "NOTE": format!("up: {}; down: {}", run.qdisc[0], run.qdisc[1]),
            "FAILED_RUNNERS": 0,
            "TEST_PARAMETERS": test.parameters(transfers.count()),
            "SERIES_META": {},
            "BATCH_NAME": null,
            "BATCH_TIME": null,
            "BATCH_TITLE": null,
            "BATCH_UUID": null,
        });
        let mut raw = serde_json::Map::new();
        for (name, values) in &series {
            let sample = |(n, value): (usize, &Option<f64>)| {
                let value = (*value)?;
                Some(serde_json::json!({"t": n as f64 * step, "val": value}))
            };
            let samples: Vec<_> = values.iter().enumerate().filter_map(sample).collect();
            raw.insert(name.clone(), samples.into());
        }
        Data {
            version: VERSION,
            x_values: (0..points).map(|n| n as f64 * step).collect(),
            results: series,
            metadata: match metadata {
                serde_json::Value::Object(map) => map,
                _ => Default::default(),
            },
            raw_values: raw,
        }
    }

    /// Reads a file, gzipped or not; formats 2 to 4 have the parts that are needed here.
    #[cfg(not(target_family = "wasm"))]
    pub fn read(file: impl Read) -> Result<Data, String> {
        let text = files::whole(file, files::WHOLE)
            .map_err(|error| format!("the file is damaged, or no data file: {error}"))?;
        let value: serde_json::Value = serde_json::from_slice(&text)
            .map_err(|error| format!("this is no JSON, and so no data file: {error}"))?;
        // Later formats may mean something else by the same keys.
        match value.get("version").and_then(serde_json::Value::as_u64) {
            None => return Err("there is no `version` in it: this is no data file of flent".into()),
            Some(version @ 2..) if version <= u64::from(VERSION) => {}
            Some(version) => {
                return Err(format!("format {version}: only 2 to {VERSION} can be read"));
            }
        }
        let data: Data = serde_json::from_value(value)
            .map_err(|error| format!("not flent's format: {error}"))?;
        let points = data.x_values.len();
        match data.results.iter().find(|(_, values)| values.len() != points) {
            Some((name, values)) => Err(format!(
                "the series `{name}` has {} values for {points} points in time",
                values.len()
            )),
            None => Ok(data),
        }
    }

    /// The file's bytes, gzipped; the same for the same data.
    pub fn write(&self) -> std::io::Result<Vec<u8>> {
        let mut encoder =
            flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::default());
        serde_json::to_writer(&mut encoder, self)?;
        encoder.flush()?;
        encoder.finish()
    }

    /// The title.
    pub fn title(&self) -> &str {
        self.metadata.get("TITLE").and_then(|title| title.as_str()).unwrap_or_default()
    }
}

/// A name for a file about `title`, as flent makes them.
pub fn file_name(title: &str) -> String {
    format!("{}.flent.gz", slug(title))
}

/// `text` with nothing but letters, digits, dots and hyphens.
pub fn slug(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    text.chars().map(keep).collect()
}

/// flent's names of classes.
fn class(dscp: u8) -> String {
    match dscp {
        0 => "BE".into(),
        8 => "BK".into(),
        46 => "EF".into(),
        n if n % 8 == 0 => format!("CS{}", n / 8),
        n => format!("DSCP{n}"),
    }
}

/// Value at each point in time, if there is one.
type Series = Vec<Option<f64>>;

/// The run's series, by the names of the test that it is. flent's tests are made of transfers
/// without end; of other flows over TCP, which may be thousands, each group of the traffic is one
/// series.
fn series(run: &Finished, points: usize) -> (Test, BTreeMap<String, Series>) {
    let traffic = &run.setup.traffic;
    let class_of = |flow: &FlowResult| class(traffic[flow.group as usize].dscp);
    let transfers: Vec<(Direction, String)> = run
        .results
        .flows
        .iter()
        .filter(|flow| is_transfer(flow, traffic))
        .map(|flow| (flow.direction, class_of(flow)))
        .collect();
    let test = Test::of(&transfers);
    let mut series: BTreeMap<String, Series> = BTreeMap::new();
    let mut rates: [Vec<Series>; 2] = Default::default();
    let mut pings: Vec<Series> = Vec::new();
    let mut groups: BTreeMap<(u32, usize), Series> = BTreeMap::new();
    // Flows of one kind are told apart by their number.
    let mut numbers = BTreeMap::new();
    let mut insert = |name: &dyn Fn(usize) -> String, values| {
        let number = numbers.entry(name(1)).or_insert(0);
        *number += 1;
        series.insert(name(*number), values);
    };
    for flow in &run.results.flows {
        let (direction, class) = (flow.direction, class_of(flow));
        let Traffic { kind, name, .. } = &traffic[flow.group as usize];
        let rate = |n: usize| Some(interval_mbps(&run.results, n, *flow.series.get(n)?));
        match &flow.outcome {
            Outcome::Ping { over_time, base_rtt, .. } => {
                let at = |n: usize| {
                    let mean = over_time.get(n).and_then(|moment| moment.mean());
                    mean.map(|added| millis(added) + millis(*base_rtt))
                };
                let values: Series = (0..points).map(at).collect();
                pings.push(values.clone());
                let name = |n: usize| match kind {
                    Kind::Ping { icmp: true, .. } if n == 1 => "Ping (ms) ICMP".to_string(),
                    Kind::Ping { icmp: true, .. } => format!("Ping (ms) ICMP{n}"),
                    _ => test.probe(&class, n),
                };
                insert(&name, values);
            }
            Outcome::Datagrams { .. } => {
                let name = |n: usize| format!("UDP {} {name} {n}", way(direction));
                insert(&name, (0..points).map(rate).collect());
            }
            _ if is_transfer(flow, traffic) => {
                let values: Series = (0..points).map(rate).collect();
                rates[direction as usize].push(values.clone());
                insert(&|n| test.transfer(direction, &class, n), values);
            }
            _ => {
                let group = groups.entry((flow.group, direction as usize)).or_default();
                group.resize(points, None);
                for (n, sum) in group.iter_mut().enumerate() {
                    *sum = rate(n).map(|rate| rate + sum.unwrap_or(0.0)).or(*sum);
                }
            }
        }
    }
    for ((group, direction), values) in groups {
        let name = &traffic[group as usize].name;
        insert(&|_| format!("TCP {} {name}", way(Direction::BOTH[direction])), values);
    }
    let sum = |all: &[Series]| -> Series {
        (0..points).map(|n| Some(all.iter().filter_map(|values| values[n]).sum())).collect()
    };
    let mean = |all: &[Series]| -> Series {
        let at = |n: usize| {
            let there: Vec<f64> = all.iter().filter_map(|values| values[n]).collect();
            (!there.is_empty()).then(|| there.iter().sum::<f64>() / there.len() as f64)
        };
        (0..points).map(at).collect()
    };
    for direction in Direction::BOTH {
        let (all, way) = (&rates[direction as usize], way(direction));
        if !all.is_empty() {
            series.insert(format!("TCP {way} sum"), sum(all));
            series.insert(format!("TCP {way} avg"), mean(all));
        }
    }
    if !transfers.is_empty() {
        series.insert("TCP totals".into(), sum(&rates.concat()));
    }
    if !pings.is_empty() {
        series.insert("Ping (ms) avg".into(), mean(&pings));
    }
    (test, series)
}

#[cfg(test)]
mod tests;
