//! A run in the caller's hands: stepped, looked at, and its disciplines' settings changed on the
//! way. What `simnel.gym` stands on.

use std::sync::Mutex;

use pyo3::prelude::*;
use simnel_core::{qdisc, Span, Time};
use simnel_scenario::summary::millis;
use simnel_sim::{Direction, Kind};

use crate::discipline::lock;
use crate::error::{whole, Error};
use crate::scenario::Scenario;

/// A simulation under way. Its parts need more alignment than Python's memory has.
#[pyclass(frozen, module = "simnel._simnel")]
pub struct Session {
    run: Mutex<Box<simnel_sim::Run>>,
    /// Numbers of the flows that are pings.
    pings: Vec<u32>,
}

/// Counters of one direction's discipline since the run began, and what is queued now.
#[derive(IntoPyObject)]
struct Counters {
    sent_packets: u64,
    sent_bytes: u64,
    drops: u64,
    marks: u64,
    backlog_packets: u32,
    backlog_bytes: u64,
}

#[pymethods]
impl Session {
    #[new]
    #[pyo3(signature = (scenario, qdisc = None, seed = 1))]
    fn new(
        scenario: &Scenario,
        qdisc: Option<&str>,
        #[pyo3(from_py_with = whole)] seed: u64,
    ) -> PyResult<Session> {
        let (simulation, mut run) = scenario.begin(qdisc, seed)?;
        let traffic = &simulation.setup().traffic;
        let kinds = traffic.iter().flat_map(|one| (0..one.count).map(|_| &one.kind));
        let pings = kinds.zip(0..).filter(|(kind, _)| matches!(kind, Kind::Ping { .. }));
        let pings: Vec<u32> = pings.map(|(_, flow)| flow).collect();
        pings.iter().for_each(|flow| run.keep_answers(*flow));
        Ok(Session { run: Mutex::new(Box::new(run)), pings })
    }

    #[getter]
    fn now(&self) -> f64 {
        lock(&self.run).now().0 as f64 / 1e9
    }

    #[getter]
    fn is_over(&self) -> bool {
        lock(&self.run).is_over()
    }

    #[getter]
    fn has_pings(&self) -> bool {
        !self.pings.is_empty()
    }

    fn advance(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        if !(seconds > 0.0 && seconds <= 1e6) {
            return Err(Error::new_err(format!(
                "{seconds} s is no step; expected more than 0, to 1e6"
            )));
        }
        let span = Span((seconds * 1e9).round() as u64);
        py.detach(|| {
            let mut run = lock(&self.run);
            let until: Time = run.now() + span;
            run.advance(until);
        });
        Ok(())
    }

    fn configure(&self, direction: &str, words: &str) -> PyResult<()> {
        let refused = |what: String| Error::new_err(format!("`{words}`: {what}"));
        let config = qdisc::parse_strictly(words).map_err(|error| refused(error.to_string()))?;
        let mut run = lock(&self.run);
        let changed = run.configure(to(direction)?, &config);
        changed.map_err(|error| refused(error.to_string()))
    }

    fn counters(&self, direction: &str) -> PyResult<Counters> {
        let snapshot = lock(&self.run).snapshot(to(direction)?);
        Ok(Counters {
            sent_packets: snapshot.totals.sent_packets,
            sent_bytes: snapshot.totals.sent_bytes,
            drops: snapshot.totals.drops(),
            marks: snapshot.totals.marked,
            backlog_packets: snapshot.backlog.packets,
            backlog_bytes: snapshot.backlog.bytes,
        })
    }

    /// Round trips of all pings since the last call: when sent (s), and how long (ms).
    fn answers(&self) -> Vec<(f64, f64)> {
        let mut run = lock(&self.run);
        let all = self.pings.iter().flat_map(|flow| run.answers(*flow));
        all.map(|(sent, rtt)| (sent.0 as f64 / 1e9, millis(rtt))).collect()
    }
}

fn to(word: &str) -> PyResult<Direction> {
    let found = Direction::BOTH.into_iter().find(|direction| direction.name() == word);
    found.ok_or_else(|| Error::new_err(format!("`{word}` is no direction; expected up or down")))
}
