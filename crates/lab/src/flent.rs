//! flent's data files, format 4: what flent itself opens and plots.
//!
//! A file is gzipped JSON: `x_values` in seconds, `results` with one value (or null) for each of
//! them, `raw_values` with times, and `metadata` by flent's own keys. Series have flent's names, so
//! that its plots (rrul's `all_scaled`, `ping_cdf`, `totals`) find them. Times are of the
//! simulation: the epoch is its beginning, so that equal runs make equal files.

use std::collections::BTreeMap;
use std::io::Write;

use serde::{Deserialize, Serialize};
use simnel_sim::{Direction, Kind, Outcome};

use crate::scenario::summary::millis;
use crate::scenario::Finished;

pub mod plot;

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
        let points = (results.simulated.0 / results.interval.0.max(1)) as usize;
        let mut series: BTreeMap<String, Vec<Option<f64>>> = BTreeMap::new();
        let mut sums: [Vec<f64>; 2] = [vec![0.0; points], vec![0.0; points]];
        let mut pings: Vec<Vec<Option<f64>>> = Vec::new();
        let mut marked = BTreeMap::new();
        for flow in &results.flows {
            let traffic = &run.setup.traffic[flow.group as usize];
            let class = class(traffic.dscp);
            match &flow.outcome {
                Outcome::Ping { over_time, base_rtt, .. } => {
                    let kind = match traffic.kind {
                        Kind::Ping { icmp: true, .. } => "Ping (ms) ICMP".to_string(),
                        _ => format!("Ping (ms) UDP {class}"),
                    };
                    let at = |n: usize| {
                        let mean = over_time.get(n).and_then(|moment| moment.mean());
                        mean.map(|added| millis(added) + millis(*base_rtt))
                    };
                    let values: Vec<Option<f64>> = (0..points).map(at).collect();
                    pings.push(values.clone());
                    series.insert(unused(kind, &series), values);
                }
                _ => {
                    let way = match flow.direction {
                        Direction::Up => "upload",
                        Direction::Down => "download",
                    };
                    let rate = |n: usize| flow.series.get(n).map(|b| *b as f64 * 8e-6 / step);
                    let values: Vec<Option<f64>> = (0..points).map(rate).collect();
                    let sum = &mut sums[flow.direction as usize];
                    for (sum, value) in sum.iter_mut().zip(&values) {
                        *sum += value.unwrap_or(0.0);
                    }
                    *marked.entry(flow.direction).or_insert(0u32) += 1;
                    let name = match &flow.outcome {
                        Outcome::Datagrams { .. } => format!("UDP {way} {}", traffic.name),
                        _ => format!("TCP {way} {class}"),
                    };
                    series.insert(unused(name, &series), values);
                }
            }
        }
        let all = |values: &[f64]| values.iter().map(|value| Some(*value)).collect::<Vec<_>>();
        let mut totals = vec![0.0; points];
        for (direction, name) in [(Direction::Up, "upload"), (Direction::Down, "download")] {
            let Some(flows) = marked.get(&direction) else { continue };
            let sum = &sums[direction as usize];
            totals.iter_mut().zip(sum).for_each(|(total, value)| *total += value);
            let mean: Vec<f64> = sum.iter().map(|value| value / f64::from(*flows)).collect();
            series.insert(format!("TCP {name} sum"), all(sum));
            series.insert(format!("TCP {name} avg"), all(&mean));
        }
        series.insert("TCP totals".into(), all(&totals));
        let average = |n: usize| {
            let values: Vec<f64> = pings.iter().filter_map(|ping| ping[n]).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        series.insert("Ping (ms) avg".into(), (0..points).map(average).collect());
        let length = results.simulated.0 as f64 / 1e9;
        let metadata = serde_json::json!({
            "NAME": "rrul",
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
            "NOTE": format!("simulated; up: {}; down: {}", run.qdisc[0], run.qdisc[1]),
            "FAILED_RUNNERS": 0,
            "TEST_PARAMETERS": {},
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

    /// Reads a file's bytes, gzipped or not; formats 2 to 4 have the parts that are needed here.
    pub fn read(bytes: &[u8]) -> Result<Data, String> {
        let mut text = String::new();
        let read = if bytes.starts_with(&[0x1f, 0x8b]) {
            let mut decoder = flate2::read::GzDecoder::new(bytes);
            std::io::Read::read_to_string(&mut decoder, &mut text)
        } else {
            std::io::Read::read_to_string(&mut { bytes }, &mut text)
        };
        read.map_err(|error| error.to_string())?;
        serde_json::from_str(&text).map_err(|error| format!("not flent's format: {error}"))
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

/// `name`, or with a number behind it if there is such a series already: flent's way.
fn unused(name: String, series: &BTreeMap<String, Vec<Option<f64>>>) -> String {
    if !series.contains_key(&name) {
        return name;
    }
    (2..).map(|n| format!("{name}{n}")).find(|n| !series.contains_key(n)).unwrap_or(name)
}
