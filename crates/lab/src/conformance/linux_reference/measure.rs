//! Linux's figures beside ours.

use std::collections::BTreeMap;

use serde::Serialize;
use simnel_core::qdisc::DropReason;
use simnel_core::Span;
use simnel_sim::{Distribution, Outcome, Results};

use super::format::{Flow, Recording, Run};
use super::situation::Situation;

/// One figure of one situation.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The situation: the file's name.
    pub name: String,
    /// Measure to compare.
    pub metric: String,
    /// Linux's figure, mean over its runs.
    pub linux: Option<f64>,
    /// Ours, mean over ours; none if the situation could not be simulated.
    pub ours: Option<f64>,
    /// `ours / linux - 1`; none where Linux has zero or we have nothing.
    pub difference: Option<f64>,
    /// True if the difference is tolerated.
    pub within: bool,
    /// Reason of the ledger, if it has one for this line.
    pub ledger: Option<String>,
    /// Least and greatest of Linux's runs.
    pub linux_range: Option<[f64; 2]>,
    /// Least and greatest of ours.
    pub our_range: Option<[f64; 2]>,
    /// True if runs scatter so much that means of so few may differ as much by chance.
    pub scatter: bool,
}

impl Line {
    /// A line that says why there is nothing to compare.
    pub(super) fn failure(name: &str, problem: String) -> Line {
        Line {
            name: name.into(),
            metric: problem,
            linux: None,
            ours: None,
            difference: None,
            within: false,
            ledger: None,
            linux_range: None,
            our_range: None,
            scatter: false,
        }
    }
}

/// Difference that a figure may have from Linux's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Goodput: 5 %.
    Goodput,
    /// Added latency in milliseconds: 20 % or 0.5 ms.
    Latency,
    /// Drops and marks: 25 %; half a packet, since means of whole numbers are compared.
    Count,
}

impl Tolerance {
    /// True if `ours` is as good as `linux`.
    pub fn accepts(self, linux: f64, ours: f64) -> bool {
        self.excess(linux, ours) <= 0.0
    }

    /// Amount by which the difference is beyond what is tolerated; zero or less if it is not
    /// beyond.
    fn excess(self, linux: f64, ours: f64) -> f64 {
        let tolerated = match self {
            Tolerance::Goodput => 0.05 * linux,
            Tolerance::Latency => 0.5f64.max(0.2 * linux),
            Tolerance::Count => 0.5f64.max(0.25 * linux),
        };
        (ours - linux).abs() - tolerated
    }
}

/// One figure, run by run.
#[derive(Clone, Debug)]
struct Sample {
    tolerance: Tolerance,
    values: Vec<f64>,
}

impl Sample {
    fn mean(&self) -> f64 {
        self.values.iter().sum::<f64>() / self.values.len() as f64
    }

    fn range(&self) -> [f64; 2] {
        let fold = |of: fn(f64, f64) -> f64| self.values.iter().copied().reduce(of);
        [fold(f64::min).unwrap_or(0.0), fold(f64::max).unwrap_or(0.0)]
    }

    /// Variance of single runs, estimated from these.
    fn variance(&self) -> f64 {
        let mean = self.mean();
        let squares = self.values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        squares / (self.values.len() as f64 - 1.0).max(1.0)
    }

    /// True if the means of `self` and `other` are apart by more than is tolerated, but still
    /// within three standard errors of that. With so few runs of such scatter they say no more. The
    /// scatter of either is taken for both, whichever is larger: a recording has two runs.
    fn scatters_with(&self, other: &Sample) -> bool {
        let variance = self.variance().max(other.variance());
        let runs = |sample: &Sample| 1.0 / sample.values.len() as f64;
        let error = (variance * (runs(self) + runs(other))).sqrt();
        let beyond = self.tolerance.excess(self.mean(), other.mean());
        beyond > 0.0 && beyond <= STANDARD_ERRORS * error
    }
}

/// Standard errors that two means may be apart by chance: of hundreds of figures, one or two are
/// further apart than two of these.
const STANDARD_ERRORS: f64 = 3.0;

/// Figures by metric.
type Figures = BTreeMap<String, Sample>;

fn add(figures: &mut Figures, metric: String, value: f64, tolerance: Tolerance) {
    let fresh = || Sample { tolerance, values: Vec::new() };
    figures.entry(metric).or_insert_with(fresh).values.push(value);
}

/// Simulates `recording` and compares, metric by metric.
pub(super) fn measure(name: &str, recording: &Recording, seeds: u64) -> Vec<Line> {
    let mut linux = Figures::new();
    let mut ours = Figures::new();
    let mut failure = None;
    for run in &recording.runs {
        linux_figures(recording, run, &mut linux);
        let situation = match Situation::new(recording, run) {
            Ok(situation) => situation,
            Err(problem) => {
                failure = Some(problem);
                continue;
            }
        };
        for number in 1..=seeds {
            // The first starts its flows exactly when Linux did, the others a little later.
            match situation.run(number == 1, run.seed.wrapping_mul(1_000) + number) {
                Ok(simulation) => {
                    our_figures(run, &simulation.finish(), situation.behind, &mut ours);
                }
                Err(problem) => failure = Some(problem),
            }
        }
    }
    let mut lines = Vec::new();
    if let Some(problem) = failure {
        lines.push(Line::failure(name, format!("cannot be simulated: {problem}")));
    }
    lines.extend(linux.into_iter().map(|(metric, theirs)| {
        let ours = ours.get(&metric);
        let linux = theirs.mean();
        let mean = ours.map(Sample::mean);
        Line {
            name: name.into(),
            metric,
            linux: Some(linux),
            ours: mean,
            difference: mean.filter(|_| linux != 0.0).map(|ours| ours / linux - 1.0),
            within: mean.is_some_and(|ours| theirs.tolerance.accepts(linux, ours)),
            ledger: None,
            linux_range: Some(theirs.range()),
            our_range: ours.map(Sample::range),
            scatter: ours.is_some_and(|ours| theirs.scatters_with(ours)),
        }
    }));
    lines
}

/// The group that a TCP flow's figures count for. Its name has direction, congestion control, mark,
/// the hosts if a run has several, and whether the flow has a size.
fn group(run: &Run, flow: &Flow) -> String {
    let direction = flow.dir.as_deref().unwrap_or("up");
    let control = flow.cc.as_deref().unwrap_or("tcp");
    let mark = flow.mark.as_deref().unwrap_or("BE");
    let tcp = || run.flows.iter().filter(|other| other.t == "tcp");
    let hosts = |f: &Flow| match f.dir.as_deref() {
        Some("down") => (f.dstip.clone(), f.srcip.clone()),
        _ => (f.srcip.clone(), f.dstip.clone()),
    };
    let several = tcp().any(|other| hosts(other) != hosts(flow));
    let pair = if several { format!(" {}>{}", flow.srcip, flow.dstip) } else { String::new() };
    let sized = if flow.size.is_some() { " of a size" } else { "" };
    format!("{direction} {control} {mark}{pair}{sized}")
}

/// Figures of a run's TCP flows, by group.
#[derive(Default)]
struct Transfers {
    mbps: BTreeMap<String, f64>,
    /// Milliseconds from the start to the end of those that have a size and came to their end.
    completions: BTreeMap<String, Vec<f64>>,
}

impl Transfers {
    fn add(&mut self, run: &Run, flow: &Flow, mbps: f64, completion_ms: Option<f64>) {
        let group = group(run, flow);
        if flow.size.is_some() {
            self.completions.entry(group.clone()).or_default().extend(completion_ms);
        }
        *self.mbps.entry(group).or_default() += mbps;
    }

    fn tell(self, figures: &mut Figures) {
        for (group, mbps) in self.mbps {
            add(figures, format!("goodput {group}"), mbps, Tolerance::Goodput);
        }
        for (group, times) in self.completions {
            let number = times.len() as f64;
            add(figures, format!("completed {group}"), number, Tolerance::Count);
            if !times.is_empty() {
                let mean = times.iter().sum::<f64>() / number;
                add(figures, format!("completion {group}"), mean, Tolerance::Latency);
            }
        }
    }
}

fn linux_figures(recording: &Recording, run: &Run, figures: &mut Figures) {
    let mut transfers = Transfers::default();
    for flow in &run.flows {
        match flow.t.as_str() {
            "tcp" => {
                let mbps = flow.goodput_mbps.unwrap_or(0.0);
                transfers.add(run, flow, mbps, flow.completion.map(|seconds| seconds * 1e3));
            }
            "cbr" => {
                let mark = flow.mark.as_deref().unwrap_or("BE");
                if let Some(mbps) = flow.rx_mbps {
                    add(figures, format!("goodput cbr {mark}"), mbps, Tolerance::Goodput);
                }
                if let Some(delay) = flow.owd_ms {
                    let added = delay.mean - recording.base_rtt_ms / 2.0;
                    add(figures, format!("latency cbr {mark}"), added, Tolerance::Latency);
                }
            }
            _ => {}
        }
    }
    transfers.tell(figures);
    for (mark, rtt) in run.probe_rtt_ms.iter().flatten() {
        let added = rtt.mean - recording.base_rtt_ms;
        add(figures, format!("latency probe {mark}"), added, Tolerance::Latency);
    }
    for (port, statistics) in &run.qdisc {
        let direction = if port.starts_with("down") { "down" } else { "up" };
        let mut count = |what: &str, value: Option<f64>| {
            if let Some(value) = value {
                add(figures, format!("{what} {direction}"), value, Tolerance::Count);
            }
        };
        count("drops", statistics.drops());
        count("marks", statistics.marks());
        count("filtered acks", statistics.ack_drops());
    }
}

fn our_figures(run: &Run, results: &Results, behind: [Span; 2], figures: &mut Figures) {
    let behind = behind.map(|delay| delay.0 as f64 / 1e6);
    let seconds = (results.window.1.since(results.window.0).0 as f64 / 1e9).max(1e-9);
    let mbps = |bytes: u64| bytes as f64 * 8e-6 / seconds;
    let mut transfers = Transfers::default();
    let mut probes: BTreeMap<String, Distribution> = BTreeMap::new();
    for (flow, ours) in run.flows.iter().zip(&results.flows) {
        let mark = flow.mark.as_deref().unwrap_or("BE");
        match &ours.outcome {
            Outcome::Transfer => {
                let took = ours.finished.map(|end| end.since(ours.started).0 as f64 / 1e6);
                transfers.add(run, flow, mbps(ours.goodput_bytes()), took);
            }
            Outcome::Datagrams { added_delay, .. } => {
                let received = mbps(ours.goodput_bytes());
                add(figures, format!("goodput cbr {mark}"), received, Tolerance::Goodput);
                if let Some(mean) = added_delay.mean() {
                    let way = usize::from(flow.dir.as_deref() == Some("down"));
                    let added = mean.0 as f64 / 1e6 + behind[way];
                    add(figures, format!("latency cbr {mark}"), added, Tolerance::Latency);
                }
            }
            Outcome::Ping { added_rtt, .. } => {
                probes.entry(mark.to_string()).or_default().merge(added_rtt);
            }
            _ => {}
        }
    }
    transfers.tell(figures);
    for (mark, added) in probes {
        // A run in which no probe was answered has no latency.
        let Some(mean) = added.mean() else { continue };
        let mean = mean.0 as f64 / 1e6 + behind[0] + behind[1];
        add(figures, format!("latency probe {mark}"), mean, Tolerance::Latency);
    }
    for (n, direction) in ["up", "down"].into_iter().enumerate() {
        let fates = || results.flows.iter().map(|flow| &flow.fates[n]);
        let sum = |of: &dyn Fn(&simnel_sim::Fates) -> u64| fates().map(of).sum::<u64>() as f64;
        let mut count = |what: &str, value: f64| {
            add(figures, format!("{what} {direction}"), value, Tolerance::Count);
        };
        count("drops", sum(&|fates| fates.signals() + fates.lost));
        count("marks", sum(&|fates| fates.marked));
        count("filtered acks", sum(&|fates| fates.dropped[DropReason::AckFilter as usize]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances_are_those_of_the_issue() {
        assert!(Tolerance::Goodput.accepts(10.0, 9.51) && !Tolerance::Goodput.accepts(10.0, 9.49));
        assert!(Tolerance::Latency.accepts(1.0, 1.49) && !Tolerance::Latency.accepts(1.0, 1.51));
        assert!(
            Tolerance::Latency.accepts(100.0, 81.0) && !Tolerance::Latency.accepts(100.0, 79.0)
        );
        assert!(Tolerance::Count.accepts(0.0, 0.4) && !Tolerance::Count.accepts(0.0, 1.0));
        assert!(Tolerance::Count.accepts(100.0, 76.0) && !Tolerance::Count.accepts(100.0, 74.0));
    }

    /// Delays are told beyond those of the end hosts: what a port of the router adds counts.
    #[test]
    fn what_the_router_delays_is_added() {
        let recording: Recording = serde_json::from_value(serde_json::json!({
            "base_rtt_ms": 40, "duration_s": 2,
            "tc": ["tc qdisc add dev r1 root netem delay 30ms",
                   "tc qdisc add dev r0 root netem delay 5ms"],
            "runs": [{"window_s": [0, 2],
                "probe_rtt_ms": {"BE": {"mean": 75}},
                "flows": [
                    {"t": "probe"},
                    {"t": "cbr", "dir": "down", "rate": 8e4, "size": 100,
                     "owd_ms": {"mean": 25}, "rx_mbps": 0.08}]}],
        }))
        .expect("a recording");
        let lines = measure("netem", &recording, 2);
        for (metric, added) in [("latency probe BE", 35.0), ("latency cbr BE", 5.0)] {
            let line = lines.iter().find(|line| line.metric == metric).expect("a figure");
            let ours = line.ours.expect("ours");
            assert!((ours - added).abs() < 0.1 && line.within, "{line:?}");
        }
    }

    #[test]
    fn scatter_is_what_chance_can_do_and_no_more() {
        let sample =
            |values: &[f64]| Sample { tolerance: Tolerance::Goodput, values: values.to_vec() };
        let apart = sample(&[0.4, 0.8]);
        assert!(apart.scatters_with(&sample(&[0.9, 0.4, 0.9, 1.2])));
        // Far off, or off with runs that all agree, is no chance.
        assert!(!apart.scatters_with(&sample(&[2.0, 2.1, 2.0])));
        assert!(!sample(&[1.0, 1.0]).scatters_with(&sample(&[1.1, 1.1, 1.1])));
        // What is within tolerance needs no excuse.
        assert!(!apart.scatters_with(&sample(&[0.4, 0.8])));
    }
}
