//! Measures of runs: named numbers, curves and distributions.
//!
//! A [`View`] is one run with the questions that experiments ask. A [`Sample`] is the answers of
//! one run; [`Measures`] are those of all runs, each a [`Measure`] of its arm. Numbers are in
//! Mbit/s and milliseconds. Curves are those of the first repetition.

use std::collections::BTreeMap;
use std::fmt;

use simnel_core::qdisc::DropReason;
use simnel_sim::{Direction, Distribution, FlowResult, Kind, Moment, Outcome, Results};

use crate::statistics::Estimate;
use simnel_scenario::summary::{interval_mbps, millis, Times};
use simnel_scenario::Finished;

/// Points of a curve.
pub type Curve = Vec<[f64; 2]>;

/// A quantity of an arm: what claims and figures are about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Measure {
    /// The arm.
    pub arm: String,
    /// The name under which the experiment measures it.
    pub quantity: String,
}

/// A quantity that an experiment measures, shown as its name. Each paper lists its own, so that a
/// misspelt one does not compile.
pub trait Measured: fmt::Display {}

/// Lists quantities: `Variant(part: Type) = "its name, {part}"`.
macro_rules! quantities {
    ($(#[$doc:meta])* $list:ident {
        $($one:ident $(($($part:ident: $type:ty),+))? = $name:literal,)+
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum $list { $(#[doc = concat!("Named `", $name, "`.")] $one $(($($type),+))?,)+ }

        impl std::fmt::Display for $list {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self { $($list::$one $(($($part),+))? => write!(f, $name),)+ }
            }
        }

        impl $crate::experiments::paper::Measured for $list {}
    };
}
pub(crate) use quantities;

/// The measure `quantity` of `arm`.
pub fn of(arm: impl fmt::Display, quantity: impl Measured) -> Measure {
    Measure { arm: arm.to_string(), quantity: quantity.to_string() }
}

/// As reports and JSON name it: `cake/goodput`.
impl fmt::Display for Measure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.arm, self.quantity)
    }
}

/// Measures of one run.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Numbers; None where a run has nothing to take one from.
    pub values: Vec<(String, Option<f64>)>,
    /// Curves.
    pub curves: Vec<(String, Curve)>,
    /// Distributions of times.
    pub distributions: Vec<(String, Distribution)>,
}

impl Sample {
    /// Adds a number, or the name of one that this run does not show.
    pub fn value(&mut self, of: impl Measured, value: impl Into<Option<f64>>) {
        self.values.push((of.to_string(), value.into()));
    }

    /// Adds a curve.
    pub fn curve(&mut self, of: impl Measured, points: Curve) {
        self.curves.push((of.to_string(), points));
    }

    /// Adds a distribution.
    pub fn distribution(&mut self, of: impl Measured, distribution: Distribution) {
        self.distributions.push((of.to_string(), distribution));
    }
}

/// Measures of all runs of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    values: BTreeMap<Measure, Vec<f64>>,
    curves: BTreeMap<Measure, Curve>,
    distributions: BTreeMap<Measure, Distribution>,
    /// Arms in order.
    pub arms: Vec<String>,
}

impl Measures {
    /// Adds a run of `arm`.
    pub fn add(&mut self, arm: &str, sample: Sample) {
        if !self.arms.iter().any(|known| known == arm) {
            self.arms.push(arm.to_string());
        }
        let name = |quantity: String| Measure { arm: arm.to_string(), quantity };
        for (key, value) in sample.values {
            self.values.entry(name(key)).or_default().extend(value);
        }
        for (key, points) in sample.curves {
            self.curves.entry(name(key)).or_insert(points);
        }
        for (key, distribution) in sample.distributions {
            self.distributions.entry(name(key)).or_default().merge(&distribution);
        }
    }

    /// Mean and interval of a number.
    pub fn estimate(&self, name: &Measure) -> Option<Estimate> {
        Estimate::of(self.values.get(name)?)
    }

    /// All values of a number; none if it was not measured.
    pub fn values(&self, name: &Measure) -> &[f64] {
        self.values.get(name).map_or(&[], Vec::as_slice)
    }

    /// A curve of the first repetition; empty if there is none.
    pub fn curve(&self, name: &Measure) -> &[[f64; 2]] {
        self.curves.get(name).map_or(&[], Vec::as_slice)
    }

    /// A distribution over all repetitions.
    pub fn distribution(&self, name: &Measure) -> Option<&Distribution> {
        self.distributions.get(name)
    }

    /// All numbers that runs name, whether or not they show them.
    pub fn names(&self) -> impl Iterator<Item = &Measure> {
        self.values.keys()
    }

    /// Adds a number that follows from those of all arms.
    pub fn derive(&mut self, name: Measure, values: Vec<f64>) {
        self.values.insert(name, values);
    }
}

/// One run, to be asked.
pub struct View<'a> {
    /// The arm that it belongs to.
    pub arm: &'a str,
    /// The run.
    pub run: &'a Finished,
}

impl<'a> View<'a> {
    /// Values recorded.
    pub fn results(&self) -> &'a Results {
        &self.run.results
    }

    /// Length of the measured window in seconds.
    pub fn window_s(&self) -> f64 {
        let (from, to) = self.results().window;
        to.since(from).0 as f64 / 1e9
    }

    /// Length of an interval of time series in seconds.
    pub fn interval_s(&self) -> f64 {
        self.results().interval.0 as f64 / 1e9
    }

    /// The number of the traffic called `name`.
    ///
    /// # Panics
    ///
    /// If there is none: the experiment asks for what its own set-up does not have.
    fn group(&self, name: &str) -> usize {
        let groups = &self.results().groups;
        let found = groups.iter().position(|group| group == name);
        found.unwrap_or_else(|| panic!("{}: no traffic `{name}` among {groups:?}", self.arm))
    }

    /// The flows of the traffic called `name`.
    pub fn flows(&self, name: &str) -> Vec<&'a FlowResult> {
        let group = self.group(name);
        let belongs = |flow: &&FlowResult| flow.group as usize == group;
        self.results().flows.iter().filter(belongs).collect()
    }

    /// All flows that transfer bulk without end in `direction`.
    pub fn bulk(&self, direction: Direction) -> Vec<&'a FlowResult> {
        let traffic = &self.run.setup.traffic;
        let is_bulk = |flow: &&FlowResult| {
            let kind = &traffic[flow.group as usize].kind;
            flow.direction == direction && matches!(kind, Kind::Bulk { size: None })
        };
        self.results().flows.iter().filter(is_bulk).collect()
    }

    /// Payload of `flows` in the window, Mbit/s.
    pub fn goodput(&self, flows: &[&FlowResult]) -> f64 {
        let bytes: u64 = flows.iter().map(|flow| flow.goodput_bytes()).sum();
        bytes as f64 * 8e-6 / self.window_s()
    }

    /// Payload of `flows` over time: seconds, Mbit/s.
    pub fn throughput(&self, flows: &[&FlowResult]) -> Curve {
        let step = self.interval_s();
        let points = flows.iter().map(|flow| flow.series.len()).max().unwrap_or(0);
        let at = |n: usize| {
            let bytes: u64 = flows.iter().filter_map(|flow| flow.series.get(n)).sum();
            [(n + 1) as f64 * step, interval_mbps(self.results(), n, bytes)]
        };
        (0..points).map(at).collect()
    }

    /// Added delay of a probe or of datagrams in the window.
    pub fn added(&self, name: &str) -> Distribution {
        let mut all = Distribution::default();
        for flow in self.flows(name) {
            match &flow.outcome {
                Outcome::Ping { added_rtt, .. } => all.merge(added_rtt),
                Outcome::Datagrams { added_delay, .. } => all.merge(added_delay),
                Outcome::Messages { latency, .. } => all.merge(latency),
                _ => {}
            }
        }
        all
    }

    /// The figures of [`View::added`], milliseconds.
    pub fn added_times(&self, name: &str) -> Option<Times> {
        Times::of(&self.added(name))
    }

    /// Added delay over time: seconds, mean of the interval in milliseconds. Intervals in which
    /// nothing was sent, or from which nothing arrived, are left out.
    pub fn delay(&self, name: &str) -> Curve {
        let step = self.interval_s();
        let flows = self.flows(name);
        let Some(first) = flows.first() else { return Vec::new() };
        let point = |(n, moment): (usize, &Moment)| Some([n as f64 * step, millis(moment.mean()?)]);
        first.outcome.over_time().iter().enumerate().filter_map(point).collect()
    }

    /// Share of `sent` datagrams or probes that did not arrive, of the traffic called `name`.
    pub fn loss(&self, name: &str) -> f64 {
        let mut counts = (0, 0);
        for flow in self.flows(name) {
            if let Outcome::Ping { sent, received, .. }
            | Outcome::Datagrams { sent, received, .. } = &flow.outcome
            {
                counts = (counts.0 + sent, counts.1 + received);
            }
        }
        // What was under way at the end is not lost: a probe or two.
        let lost = counts.0.saturating_sub(counts.1);
        if counts.0 == 0 {
            return 0.0;
        }
        let dropped: u64 = self.flows(name).iter().map(|flow| dropped(flow)).sum();
        lost.min(dropped) as f64 / counts.0 as f64
    }

    /// Time in the discipline of `direction`, of everything.
    pub fn sojourn(&self, direction: Direction) -> Distribution {
        self.results().lines[direction as usize].all_sojourn()
    }

    /// Time of the traffic called `name` in the discipline of `direction`.
    pub fn sojourn_of(&self, name: &str, direction: Direction) -> Distribution {
        let sojourn = &self.results().lines[direction as usize].sojourn;
        sojourn[self.group(name)].clone()
    }

    /// Share of the line's rate that was used.
    pub fn utilisation(&self, direction: Direction) -> f64 {
        let line = &self.results().lines[direction as usize];
        if line.capacity_bytes == 0 {
            return f64::NAN;
        }
        line.framed_bytes as f64 / line.capacity_bytes as f64
    }

    /// Packets that the discipline of `direction` dropped to signal or for want of room, and all
    /// that were handed to it, in the window.
    pub fn drops(&self, direction: Direction) -> (u64, u64) {
        let n = direction as usize;
        let drops = self.results().flows.iter().map(|flow| flow.fates[n].signals()).sum();
        (drops, drops + self.results().lines[n].packets)
    }
}

/// Packets of `flow` that disciplines dropped, filtered acknowledgements aside.
fn dropped(flow: &FlowResult) -> u64 {
    let filtered = DropReason::AckFilter as usize;
    let all = flow.fates.iter().flat_map(|fates| fates.dropped.iter().enumerate());
    all.filter(|(reason, _)| *reason != filtered).map(|(_, count)| count).sum()
}

/// Values of a curve from `from` on and before `to` (its own first coordinate).
pub fn within(curve: &[[f64; 2]], from: f64, to: f64) -> Vec<f64> {
    curve.iter().filter(|point| (from..to).contains(&point[0])).map(|point| point[1]).collect()
}

/// Mean of values; not a number if there are none.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Greatest of values; zero if there are none.
pub fn greatest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}
