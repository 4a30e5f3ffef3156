//! Load on a line, whatever carries it, and what was carried.

use std::time::{Duration, Instant};

use crate::way::Way;
use crate::Error;

/// Plan of a load: its direction and flows, a time in which flows start, and the time that counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) way: Way,
    pub(crate) flows: usize,
    pub(crate) ramp: Duration,
    pub(crate) time: Duration,
    /// Zero of all times.
    pub(crate) start: Instant,
}

/// Something that can load a line.
pub(crate) trait Load {
    /// Loads it as planned.
    fn run(&mut self, plan: &Plan) -> Result<Carried, Error>;
}

/// Figures of a load.
#[derive(Debug, Default)]
pub(crate) struct Carried {
    pub(crate) down: Option<Rate>,
    pub(crate) up: Option<Rate>,
    /// The time that counts, since the measurement's start.
    pub(crate) from: Duration,
    pub(crate) to: Duration,
    pub(crate) requests: Requests,
}

/// Payload that came through one way.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    /// Mean over the time that counts.
    pub(crate) mbit: f64,
    /// Seconds since the measurement's start, and Mbit/s.
    pub(crate) series: Vec<[f64; 2]>,
}

/// Times of requests in ms (draft-ietf-ippm-responsiveness-08, section 4.3).
#[derive(Clone, Debug, Default)]
pub(crate) struct Requests {
    /// Handshakes of TCP on new connections.
    pub(crate) tcp: Vec<f64>,
    /// Handshakes of TLS, each round trip of them.
    pub(crate) tls: Vec<f64>,
    /// Requests on those.
    pub(crate) new: Vec<f64>,
    /// Requests on connections that carry the load.
    pub(crate) loaded: Vec<f64>,
}

impl Requests {
    /// Round trips per minute, as the draft's section 4.3.1 has them; without TLS, for TCP only.
    pub(crate) fn rpm(&self) -> Option<f64> {
        let handshakes =
            if self.tls.is_empty() { vec![&self.tcp] } else { vec![&self.tcp, &self.tls] };
        let parts: Option<Vec<f64>> =
            handshakes.into_iter().chain([&self.new]).map(|part| trimmed_mean(part)).collect();
        let parts = parts?;
        let foreign = 60_000.0 / (parts.iter().sum::<f64>() / parts.len() as f64);
        let loaded = 60_000.0 / trimmed_mean(&self.loaded)?;
        Some((foreign + loaded) / 2.0)
    }
}

/// The mean of all but the largest twentieth.
fn trimmed_mean(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let kept = (values.len() * 95).div_ceil(100);
    (kept > 0).then(|| (values[..kept].iter().sum::<f64>() / kept as f64).max(1e-3))
}

/// Bytes of flows over time, each counted at the receiving end: ns of its clock, bytes so far.
#[derive(Debug, Default)]
pub(crate) struct Meter(pub(crate) Vec<Vec<(u64, u64)>>);

/// Time between points of a series.
const STEP: u64 = 250_000_000;

impl Meter {
    /// Times of the earliest first point of all flows, and of the earliest last one: as long as all
    /// carry. None if they are not in this order.
    pub(crate) fn ends(&self) -> Option<(u64, u64)> {
        let first = self.0.iter().filter_map(|flow| flow.first()).map(|point| point.0).min()?;
        let last = self.0.iter().filter_map(|flow| flow.last()).map(|point| point.0).min()?;
        (last > first).then_some((first, last))
    }

    /// Mbit/s between two times.
    pub(crate) fn mbit(&self, from: u64, to: u64) -> f64 {
        let bytes = |at| self.0.iter().map(|flow| bytes_at(flow, at)).sum::<f64>();
        (bytes(to) - bytes(from)) * 8e3 / to.saturating_sub(from).max(1) as f64
    }

    /// Points each quarter of a second, from the first bytes on; `zero` is the measurement's start.
    pub(crate) fn series(&self, zero: i64) -> Vec<[f64; 2]> {
        let Some((first, last)) = self.ends() else { return Vec::new() };
        let steps = (last - first) / STEP;
        let point = |n: u64| {
            let from = first + n * STEP;
            let middle = (from + STEP / 2) as i64 - zero;
            [middle as f64 / 1e9, self.mbit(from, from + STEP)]
        };
        (0..steps).map(point).collect()
    }
}

/// Bytes of a flow at a time between two counts.
fn bytes_at(flow: &[(u64, u64)], at: u64) -> f64 {
    let next = flow.partition_point(|point| point.0 < at);
    match (next.checked_sub(1).and_then(|n| flow.get(n)), flow.get(next)) {
        (Some(&(t0, b0)), Some(&(t1, b1))) => {
            b0 as f64 + (b1 - b0) as f64 * (at - t0) as f64 / (t1 - t0) as f64
        }
        (Some(&(_, bytes)), None) | (None, Some(&(_, bytes))) => bytes as f64,
        (None, None) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_between_counts() {
        let steady = |rate: u64| (0..=100).map(move |n| (n * 20_000_000, n * rate)).collect();
        let meter = Meter(vec![steady(2_500), steady(50_000)]);
        assert_eq!(meter.ends(), Some((0, 2_000_000_000)));
        // 52,500 bytes in 20 ms.
        assert!((meter.mbit(500_000_001, 1_700_000_003) - 21.0).abs() < 1e-6);
        let series = meter.series(-1_000_000_000);
        assert_eq!(series.len(), 8);
        assert!((series[0][0] - 1.125).abs() < 1e-9 && (series[7][1] - 21.0).abs() < 1e-6);
    }

    #[test]
    fn round_trips_per_minute_are_the_draft_s() {
        let requests = Requests {
            tcp: vec![20.0; 20],
            tls: vec![],
            new: vec![40.0; 20],
            loaded: vec![100.0; 20],
        };
        // TCP only: (60000 / 30 + 60000 / 100) / 2.
        assert!((requests.rpm().unwrap() - 1300.0).abs() < 1e-9);
        let with_tls = Requests { tls: vec![30.0; 20], ..requests.clone() };
        assert!((with_tls.rpm().unwrap() - 1300.0).abs() < 1e-9);
        assert_eq!(Requests { loaded: vec![], ..requests }.rpm(), None);
        // One of twenty is left out, and no more.
        let mut values = vec![1.0; 19];
        values.push(1e9);
        assert_eq!(trimmed_mean(&values), Some(1.0));
        values.push(1e9);
        assert!(trimmed_mean(&values).unwrap() > 1e6);
    }
}
