//! The recordings' files. Keys that are not needed are ignored, keys that may be absent are
//! optional: recordings differ in what they measured.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::ReferenceError;
use crate::files;

/// One situation and what Linux did in it.
#[derive(Clone, Debug, Deserialize)]
pub struct Recording {
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// Round-trip time without queues.
    pub base_rtt_ms: f64,
    /// The value of `net.ipv4.tcp_ecn`.
    #[serde(default)]
    pub ecn: u32,
    /// Length of each run, in seconds.
    pub duration_s: f64,
    /// The router's set-up, a command a line.
    #[serde(default)]
    pub tc: Vec<String>,
    /// The hosts' set-up.
    #[serde(default)]
    pub host_qdisc: String,
    /// Environment of the recording.
    #[serde(default)]
    pub env: BTreeMap<String, Value>,
    /// Linux's results, seed by seed.
    pub runs: Vec<Run>,
}

/// One run of Linux.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    /// Its seed.
    #[serde(default)]
    pub seed: u64,
    /// The measured window in seconds.
    pub window_s: [f64; 2],
    /// Its flows, with their set-up and results.
    pub flows: Vec<Flow>,
    /// Round-trip times of probes by mark.
    #[serde(default)]
    pub probe_rtt_ms: Option<BTreeMap<String, Figures>>,
    /// The disciplines' statistics by port, such as `up(r1)`.
    #[serde(default)]
    pub qdisc: BTreeMap<String, Statistics>,
}

/// One flow of a run.
#[derive(Clone, Debug, Deserialize)]
pub struct Flow {
    /// `tcp`, `cbr` or `probe`.
    pub t: String,
    /// `up` or `down`.
    #[serde(default)]
    pub dir: Option<String>,
    /// Code point by name.
    #[serde(default)]
    pub mark: Option<String>,
    /// Seconds after the beginning.
    #[serde(default)]
    pub start: f64,
    /// Seconds after the beginning at which it stopped.
    #[serde(default)]
    pub stop: Option<f64>,
    /// Sender's address.
    #[serde(default)]
    pub srcip: String,
    /// Receiver's address.
    #[serde(default)]
    pub dstip: String,
    /// Congestion control.
    #[serde(default)]
    pub cc: Option<String>,
    /// Payload received in the window.
    #[serde(default)]
    pub goodput_mbps: Option<f64>,
    /// CBR: bits a second of payload.
    #[serde(default)]
    pub rate: Option<f64>,
    /// CBR: payload of a datagram in bytes. TCP: payload of the transfer; None: without end.
    #[serde(default)]
    pub size: Option<u32>,
    /// TCP: bits a second that the receiver reads; None: all that comes.
    #[serde(default)]
    pub read: Option<f64>,
    /// TCP: seconds from its start to its end at the receiver, if it came to that.
    #[serde(default)]
    pub completion: Option<f64>,
    /// CBR: payload received in the window.
    #[serde(default)]
    pub rx_mbps: Option<f64>,
    /// CBR: one-way delay.
    #[serde(default)]
    pub owd_ms: Option<Figures>,
}

/// Figures of a delay in milliseconds.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Figures {
    /// Mean.
    pub mean: f64,
}

/// `tc -s -j` of one port when the window began and when it ended.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Statistics {
    #[serde(default)]
    at_warm: Vec<Value>,
    #[serde(default)]
    at_end: Vec<Value>,
}

impl Statistics {
    /// Packets dropped in the window by the innermost discipline, filtered acknowledgements aside.
    pub fn drops(&self) -> Option<f64> {
        self.difference(|entry| {
            let ack_drops = number(entry, "ack_drops").unwrap_or(0.0);
            Some(number(entry, "drops")? - ack_drops)
        })
    }

    /// Packets marked in the window; None if the discipline does not count marks.
    pub fn marks(&self) -> Option<f64> {
        // Marks of a ce_threshold are counted apart.
        let at_threshold = |entry: &Value| number(entry, "ce_mark").unwrap_or(0.0);
        self.difference(|entry| {
            let marked = number(entry, "ecn_mark").or_else(|| number(entry, "marked"))?;
            Some(marked + at_threshold(entry))
        })
    }

    /// Filtered acknowledgements in the window; None if the discipline has no filter.
    pub fn ack_drops(&self) -> Option<f64> {
        self.difference(|entry| number(entry, "ack_drops"))
    }

    fn difference(&self, of: impl Fn(&Value) -> Option<f64>) -> Option<f64> {
        // Parents count what those below them dropped again. A recording whose window begins at
        // zero has nothing before it.
        let before = of_leaves(&self.at_warm, &of).unwrap_or(0.0);
        Some(of_leaves(&self.at_end, &of)? - before)
    }
}

/// The sum over the disciplines that have none below; None if none of them counts it. Where they
/// are listed without their places, the last one is the only leaf.
fn of_leaves(entries: &[Value], of: impl Fn(&Value) -> Option<f64>) -> Option<f64> {
    let major = |entry: &Value, key: &str| -> Option<String> {
        Some(entry.get(key)?.as_str()?.split_once(':')?.0.to_string())
    };
    let above: Vec<String> = entries.iter().filter_map(|entry| major(entry, "parent")).collect();
    if above.is_empty() {
        return of(entries.last()?);
    }
    let is_leaf =
        |entry: &&Value| !major(entry, "handle").is_some_and(|handle| above.contains(&handle));
    entries.iter().filter(is_leaf).filter_map(of).reduce(|sum, count| sum + count)
}

/// A counter of a discipline; of cake, which may count by tin only, the sum of its tins'.
fn number(entry: &Value, key: &str) -> Option<f64> {
    let of_tins = || {
        let tins = entry.get("tins")?.as_array()?;
        tins.iter().map(|tin| tin.get(key)?.as_f64()).sum()
    };
    entry.get(key).and_then(Value::as_f64).or_else(of_tins)
}

impl Recording {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Recording, ReferenceError> {
        let text =
            files::read_text(path, files::WHOLE).map_err(|e| ReferenceError::new(path, e))?;
        let recording: Recording =
            serde_json::from_str(&text).map_err(|e| ReferenceError::new(path, e))?;
        if recording.runs.is_empty() {
            return Err(ReferenceError::new(path, "a recording needs at least one run"));
        }
        if recording.runs.iter().any(|run| run.flows.is_empty()) {
            return Err(ReferenceError::new(path, "a run needs at least one flow"));
        }
        Ok(recording)
    }

    /// A number of the environment.
    pub fn environment(&self, key: &str) -> Option<u64> {
        let value = self.env.get(key)?;
        value.as_u64().or_else(|| value.as_str().and_then(|text| text.parse().ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_differences_of_the_leaf_wherever_it_keeps_them() {
        let statistics = |text: &str| -> Statistics { serde_json::from_str(text).expect("JSON") };
        let flat = statistics(
            r#"{"at_warm": [{"handle": "1:", "drops": 2},
                            {"parent": "1:1", "handle": "10:", "drops": 2, "ecn_mark": 1,
                             "ce_mark": 5}],
                "at_end": [{"handle": "1:", "drops": 12},
                           {"parent": "1:1", "handle": "10:", "drops": 12, "ecn_mark": 4,
                            "ce_mark": 7}]}"#,
        );
        assert_eq!((flat.drops(), flat.marks(), flat.ack_drops()), (Some(10.0), Some(5.0), None));
        let tins = statistics(
            r#"{"at_end": [{"drops": 12, "tins": [{"drops": 2, "ecn_mark": 3, "ack_drops": 4},
                {"drops": 1, "ecn_mark": 1, "ack_drops": 5}]}]}"#,
        );
        assert_eq!(
            (tins.drops(), tins.marks(), tins.ack_drops()),
            (Some(3.0), Some(4.0), Some(9.0))
        );
        assert_eq!(Statistics::default().drops(), None);
        let bare =
            statistics(r#"{"at_end": [{"kind": "htb", "drops": 5}, {"kind": "red", "drops": 5}]}"#);
        assert_eq!(bare.drops(), Some(5.0));
        // A tree's leaves are added up.
        let leaves = statistics(
            r#"{"at_end": [{"handle": "1:", "drops": 7},
                {"parent": "1:1", "handle": "2:", "drops": 7},
                {"parent": "2:1", "handle": "10:", "drops": 3},
                {"parent": "2:2", "handle": "20:", "drops": 4, "ecn_mark": 6}]}"#,
        );
        assert_eq!((leaves.drops(), leaves.marks()), (Some(7.0), Some(6.0)));
    }
}
