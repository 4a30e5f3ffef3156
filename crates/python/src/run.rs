//! Results of a run: its summary as `simnel sim --json` writes it, distributions, and tables.

use pyo3::prelude::*;
use simnel_core::Span;
use simnel_scenario::summary::{interval_mbps, millis};
use simnel_scenario::{Finished, Summary};
use simnel_sim::{Direction, FlowResult, Moment, Outcome};

use crate::error::{stays, Error};
use crate::table::{Columns, Table};

/// Parts of a whole in which quantiles are asked for.
const MILLION: u64 = 1_000_000;

#[pyclass(frozen, module = "simnel._simnel")]
pub struct Run {
    finished: Finished,
    summary: Summary,
}

/// Times in milliseconds.
#[pyclass(frozen, module = "simnel._simnel")]
pub struct Distribution {
    times: simnel_sim::Distribution,
    what: String,
}

impl Run {
    pub fn new(finished: Finished, summary: Summary) -> Run {
        Run { finished, summary }
    }

    fn group(&self, name: &str) -> PyResult<u32> {
        let groups = &self.finished.results.groups;
        let found = groups.iter().position(|group| group == name);
        found.map(|n| n as u32).ok_or_else(|| {
            let names = groups.join(", ");
            Error::new_err(format!("there is no traffic `{name}`; expected one of {names}"))
        })
    }

    /// Flows of one name, or all.
    fn flows(&self, name: Option<&str>) -> PyResult<impl Iterator<Item = &FlowResult>> {
        let group = name.map(|name| self.group(name)).transpose()?;
        let flows = self.finished.results.flows.iter();
        Ok(flows.filter(move |flow| group.is_none_or(|group| flow.group == group)))
    }
}

/// Delay beyond propagation of a flow's probes or datagrams.
fn added(outcome: &Outcome) -> Option<(&simnel_sim::Distribution, &[Moment], &'static str)> {
    match outcome {
        Outcome::Ping { added_rtt, over_time, .. } => {
            Some((added_rtt, over_time, "round-trip time of probes beyond propagation"))
        }
        Outcome::Datagrams { added_delay, over_time, .. } => {
            Some((added_delay, over_time, "one-way delay of datagrams beyond propagation"))
        }
        _ => None,
    }
}

#[pymethods]
impl Run {
    #[getter]
    fn json(&self) -> PyResult<String> {
        serde_json::to_string(&self.summary).map_err(|error| Error::new_err(error.to_string()))
    }

    #[getter]
    fn names(&self) -> &[String] {
        &self.finished.results.groups
    }

    #[getter]
    fn qdisc(&self) -> (&str, &str) {
        (&self.finished.qdisc[0], &self.finished.qdisc[1])
    }

    #[getter]
    fn seed(&self) -> u64 {
        self.finished.results.seed
    }

    #[getter]
    fn hash(&self) -> &str {
        &self.summary.hash
    }

    /// Probes' delays where there are probes, else datagrams', else the time in the disciplines.
    #[pyo3(signature = (name = None))]
    fn latency(&self, name: Option<&str>) -> PyResult<Distribution> {
        let all: Vec<_> = self.flows(name)?.filter_map(|flow| added(&flow.outcome)).collect();
        let probes = |outcome: &Outcome| matches!(outcome, Outcome::Ping { .. });
        let has_probes = self.flows(name)?.any(|flow| probes(&flow.outcome));
        let mut times = simnel_sim::Distribution::default();
        let Some(what) = all
            .iter()
            .map(|(.., what)| *what)
            .find(|what| has_probes == what.starts_with("round-trip"))
        else {
            return self.sojourn(name);
        };
        all.iter().filter(|(.., of)| *of == what).for_each(|(part, ..)| times.merge(part));
        Ok(Distribution { times, what: what.into() })
    }

    #[pyo3(signature = (name = None))]
    fn sojourn(&self, name: Option<&str>) -> PyResult<Distribution> {
        let group = name.map(|name| self.group(name)).transpose()?;
        let mut times = simnel_sim::Distribution::default();
        for part in self.finished.results.lines.iter().flat_map(|line| {
            line.sojourn.iter().enumerate().filter_map(|(n, part)| {
                group.is_none_or(|group| group as usize == n).then_some(part)
            })
        }) {
            times.merge(part);
        }
        Ok(Distribution { times, what: "time in the disciplines".into() })
    }

    /// Flow by flow and interval by interval.
    fn series(&self) -> PyResult<Table> {
        let results = &self.finished.results;
        let interval = results.interval;
        let mut rows: Vec<(&FlowResult, usize)> = Vec::new();
        for flow in &results.flows {
            let moments = added(&flow.outcome).map_or(0, |(_, moments, _)| moments.len());
            let most = flow.series.len().max(flow.windows.len()).max(moments);
            rows.extend((0..most).map(|n| (flow, n)));
        }
        let each = || rows.iter().copied();
        let moment = |(flow, n): (&FlowResult, usize)| {
            added(&flow.outcome).and_then(|(_, moments, _)| moments.get(n).copied())
        };
        let seconds = interval.0 as f64 / 1e9;
        let mut columns = Columns::default();
        columns.numbers("time_s", each().map(|(_, n)| Some(n as f64 * seconds)));
        columns.words("name", each().map(|(f, _)| Some(&results.groups[f.group as usize])));
        columns.words("direction", each().map(|(flow, _)| Some(flow.direction.name())));
        columns.whole("flow", each().map(|(flow, _)| Some(i64::from(flow.index))));
        columns.numbers(
            "goodput_mbps",
            each().map(|(flow, n)| Some(interval_mbps(results, n, *flow.series.get(n)?))),
        );
        columns.numbers("added_ms", each().map(|row| Some(millis(moment(row)?.mean()?))));
        columns.numbers(
            "added_most_ms",
            each().map(|row| moment(row).filter(|m| m.count > 0).map(|m| millis(m.greatest))),
        );
        columns.whole("cwnd", each().map(|(flow, n)| Some(i64::from(flow.windows.get(n)?.cwnd))));
        columns.numbers("srtt_ms", each().map(|(flow, n)| Some(millis(flow.windows.get(n)?.srtt))));
        columns.table()
    }

    /// A row a flow.
    fn flow_table(&self) -> PyResult<Table> {
        let groups = &self.summary.groups;
        let each = || groups.iter().flat_map(|group| group.each.iter().map(move |f| (group, f)));
        let index = groups.iter().flat_map(|group| 0..group.each.len());
        let mut columns = Columns::default();
        columns.words("name", each().map(|(group, _)| Some(&group.name)));
        columns.words("direction", each().map(|(group, _)| Some(group.direction)));
        columns.whole("flow", index.map(|n| Some(n as i64)));
        columns.numbers("goodput_mbps", each().map(|(_, flow)| Some(flow.mbps)));
        let drops = each().map(|(_, flow)| flow.drops.iter().map(|(_, count)| count).sum::<u64>());
        columns.whole("drops", drops.map(|drops| Some(drops as i64)));
        columns.whole("marks", each().map(|(_, flow)| Some(flow.marks as i64)));
        columns.whole("lost", each().map(|(_, flow)| Some(flow.lost as i64)));
        columns.numbers("completion_s", each().map(|(_, flow)| flow.completion_s));
        columns.table()
    }

    /// Both lines, interval by interval.
    fn line_table(&self) -> PyResult<Table> {
        let results = &self.finished.results;
        let seconds = results.interval.0 as f64 / 1e9;
        let each = || {
            let lines = results.lines.iter();
            lines.flat_map(|line| line.series.iter().enumerate().map(move |(n, b)| (line, n, *b)))
        };
        let mut columns = Columns::default();
        columns.numbers("time_s", each().map(|(_, n, _)| Some(n as f64 * seconds)));
        columns.words("direction", each().map(|(line, ..)| Some(line.direction.name())));
        columns.numbers("mbps", each().map(|(_, n, bytes)| Some(interval_mbps(results, n, bytes))));
        columns.table()
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(stays(
            "a run",
            "what is sent in its place: its json, summary or a table such as series; or scenario, \
             qdisc and seed, which give the same run again",
        ))
    }

    fn __repr__(&self) -> String {
        let [up, down] = Direction::BOTH.map(|direction| &self.finished.qdisc[direction as usize]);
        let name = &self.summary.scenario;
        format!("<simnel.Run: {name}, up `{up}`, down `{down}`, seed {}>", self.seed())
    }
}

#[pymethods]
impl Distribution {
    #[getter]
    fn what(&self) -> &str {
        &self.what
    }

    fn __len__(&self) -> usize {
        self.times.count() as usize
    }

    fn quantile(&self, q: f64) -> PyResult<Option<f64>> {
        if !(0.0..=1.0).contains(&q) {
            return Err(Error::new_err(format!("{q} is no quantile; expected 0 to 1")));
        }
        let part = (q * MILLION as f64).round() as u64;
        Ok(self.times.quantile_of(part, MILLION).map(millis))
    }

    #[getter]
    fn mean(&self) -> Option<f64> {
        let count = self.times.count();
        (count > 0).then(|| self.times.sum() as f64 / count as f64 / 1e6)
    }

    #[getter]
    fn min(&self) -> Option<f64> {
        self.times.least().map(millis)
    }

    #[getter]
    fn max(&self) -> Option<f64> {
        self.times.greatest().map(millis)
    }

    fn cdf(&self) -> PyResult<Table> {
        let points: Vec<(Span, u64)> = self.times.cumulative();
        let total = self.times.count() as f64;
        let mut columns = Columns::default();
        columns.numbers("ms", points.iter().map(|(value, _)| Some(millis(*value))));
        columns.numbers("share", points.iter().map(|(_, seen)| Some(*seen as f64 / total)));
        columns.table()
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(stays("a distribution", "what is sent in its place: its cdf(), a table, or quantiles"))
    }

    fn __repr__(&self) -> PyResult<String> {
        let ms = |q| Ok::<_, PyErr>(self.quantile(q)?.map_or("-".into(), |ms| format!("{ms:.3}")));
        let (what, count) = (&self.what, self.times.count());
        let (half, most) = (ms(0.5)?, ms(0.99)?);
        Ok(format!("<simnel.Distribution: {what}: {count}, p50 {half} ms, p99 {most} ms>"))
    }
}
