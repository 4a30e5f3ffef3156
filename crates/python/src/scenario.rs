//! A scenario: its text, understood, and what can be asked of it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::Arc;

use pyo3::prelude::*;
use simnel_lab::experiments::scenario as files;
use simnel_lab::experiments::sweep::{axis, measures};
use simnel_scenario::{Finished, ScenarioError, Simulation, Summary, STEPS};
use simnel_sim::Direction;

use crate::discipline::{lock, Fault, Own};
use crate::error::{in_scenario, of_key, whole, Error};
use crate::run::Run;
use crate::work::{interruptible, Stop, Watch};

/// Contents of traces by their names.
type Traces = BTreeMap<String, String>;

#[pyclass(frozen, module = "simnel._simnel")]
pub struct Scenario {
    text: String,
    directory: PathBuf,
    traces: Traces,
    read: simnel_scenario::Scenario,
}

impl Scenario {
    /// Traces that are not `known` are looked for in `directory`.
    fn understand(
        text: String,
        name: &str,
        directory: PathBuf,
        known: &Traces,
    ) -> PyResult<Scenario> {
        let traces = RefCell::new(Traces::new());
        let trace = |name: &str| {
            let known = known.get(name).cloned();
            let found = known.map_or_else(|| files::trace(&directory, name), Ok)?;
            traces.borrow_mut().insert(name.to_string(), found.clone());
            Ok(found)
        };
        match simnel_scenario::Scenario::parse(&text, name, &trace) {
            Ok(read) => Ok(Scenario { text, directory, traces: traces.into_inner(), read }),
            Err(error) => Err(in_scenario(error, &text)),
        }
    }

    fn table(&self) -> PyResult<toml::Table> {
        let parsed = self.text.parse();
        parsed.map_err(|error: toml::de::Error| Error::new_err(error.message().to_string()))
    }

    /// Words that were handed over are not the text's.
    fn refused(&self, error: ScenarioError, qdisc: Option<&str>) -> PyErr {
        in_scenario(error, if qdisc.is_some() { "" } else { &self.text })
    }

    fn simulation(&self, qdisc: Option<&str>) -> PyResult<Simulation> {
        self.read.simulation(qdisc).map_err(|error| self.refused(error, qdisc))
    }

    /// A run at time zero.
    pub fn begin(&self, qdisc: Option<&str>, seed: u64) -> PyResult<(Simulation, simnel_sim::Run)> {
        let simulation = self.simulation(qdisc)?;
        let run = simulation.begin(seed).map_err(|error| self.refused(error, qdisc))?;
        Ok((simulation, run))
    }

    /// A run with words, for which nothing of Python is needed.
    fn finished(&self, qdisc: Option<&str>, seed: u64, watch: &Watch<'_>) -> PyResult<Finished> {
        let run = self.simulation(qdisc)?.run(seed, &mut |step| {
            watch.steps.store(step, Ordering::Relaxed);
            go_on(!watch.stop.load(Ordering::Relaxed))
        });
        run.map_err(|error| self.refused(error, qdisc))
    }

    /// A run with disciplines that `make` makes, one for each direction, on the calling thread.
    fn finished_own(
        &self,
        make: &Bound<'_, PyAny>,
        seed: u64,
        watch: &Watch<'_>,
        progress: Option<&Py<PyAny>>,
    ) -> PyResult<Finished> {
        // On the line as it is: what stands in for the discipline does not shape.
        let (simulation, mut run) = self.begin(Some("pfifo"), seed)?;
        let fault = Fault::default();
        for direction in Direction::BOTH {
            run.host(direction, Box::new(Own::new(make, Arc::clone(&fault))?));
        }
        let py = make.py();
        let mut finished = simulation.drive(run, &mut |step| {
            let told = py
                .check_signals()
                .and_then(|()| progress.map_or(Ok(()), |told| told.call1(py, (step,)).map(drop)));
            if let Err(error) = told {
                lock(&fault).get_or_insert(error);
            }
            go_on(lock(&fault).is_none() && !watch.stop.load(Ordering::Relaxed))
        });
        if let Some(error) = lock(&fault).take() {
            return Err(error);
        }
        let name = match make.getattr("__name__") {
            Ok(name) => name.extract()?,
            Err(_) => make.get_type().name()?.to_string(),
        };
        finished.qdisc = [String::clone(&name), name];
        Ok(finished)
    }
}

fn go_on(does: bool) -> ControlFlow<()> {
    match does {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    }
}

/// A discipline: words, or what makes one that is written in Python.
#[derive(FromPyObject)]
pub enum Choice {
    Words(String),
    Own(Py<PyAny>),
}

#[pymethods]
impl Scenario {
    #[classattr]
    const STEPS: u64 = STEPS;

    #[new]
    #[pyo3(signature = (text, name = "scenario", directory = None, traces = None))]
    fn new(
        text: String,
        name: &str,
        directory: Option<PathBuf>,
        traces: Option<Traces>,
    ) -> PyResult<Scenario> {
        let directory = directory.unwrap_or_default();
        Scenario::understand(text, name, directory, &traces.unwrap_or_default())
    }

    #[staticmethod]
    fn from_file(path: PathBuf) -> PyResult<Scenario> {
        match files::read(&path) {
            Ok((read, text)) => {
                let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
                Scenario::understand(text, &read.name, directory, &Traces::new())
            }
            Err((error, text)) => Err(in_scenario(error, &text.unwrap_or_default())),
        }
    }

    #[getter]
    fn name(&self) -> &str {
        &self.read.name
    }

    #[getter]
    fn question(&self) -> &str {
        &self.read.question
    }

    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    #[getter]
    fn traces(&self) -> Traces {
        self.traces.clone()
    }

    /// In their order: a later one may be part of an earlier one.
    fn with_values(&self, values: Vec<(String, String)>) -> PyResult<Scenario> {
        let mut table = self.table()?;
        for (key, value) in &values {
            axis::set(&mut table, key, value).map_err(of_key)?;
        }
        let directory = self.directory.clone();
        Scenario::understand(table.to_string(), &self.read.name, directory, &self.traces)
    }

    fn check_keys(&self, keys: Vec<String>) -> PyResult<()> {
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        axis::each_once(&self.table()?, &keys).map_err(of_key)
    }

    #[pyo3(signature = (qdisc = None))]
    fn check(&self, py: Python<'_>, qdisc: Option<Choice>) -> PyResult<()> {
        match qdisc {
            None => self.simulation(None).map(drop),
            Some(Choice::Words(words)) => self.simulation(Some(&words)).map(drop),
            Some(Choice::Own(make)) => Own::new(make.bind(py), Fault::default()).map(drop),
        }
    }

    #[pyo3(signature = (qdisc = None, seed = 1, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        qdisc: Option<Choice>,
        #[pyo3(from_py_with = whole)] seed: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Run> {
        let with_words = |words: Option<&str>| {
            let work = |watch: &Watch<'_>| self.finished(words, seed, watch);
            interruptible(py, progress.as_ref(), work)?
        };
        let finished = match qdisc {
            None => with_words(None)?,
            Some(Choice::Words(words)) => with_words(Some(&words))?,
            Some(Choice::Own(make)) => {
                let watch = Watch { stop: &Default::default(), steps: &Default::default() };
                self.finished_own(make.bind(py), seed, &watch, progress.as_ref())?
            }
        };
        let summary = Summary::new(&self.read, &finished);
        Ok(Run::new(finished, summary))
    }

    #[pyo3(signature = (qdisc = None, seed = 1, stop = None))]
    fn measure(
        &self,
        py: Python<'_>,
        qdisc: Option<Choice>,
        #[pyo3(from_py_with = whole)] seed: u64,
        stop: Option<&Stop>,
    ) -> PyResult<Option<BTreeMap<String, f64>>> {
        // Without a switch the run ends by a signal, which only a process's main thread sees.
        let with_words = |words: Option<&str>| match stop {
            Some(stop) => {
                let watch = Watch { stop: &stop.0, steps: &Default::default() };
                py.detach(|| self.finished(words, seed, &watch))
            }
            None => interruptible(py, None, |watch| self.finished(words, seed, watch))?,
        };
        let finished = match qdisc {
            None => with_words(None)?,
            Some(Choice::Words(words)) => with_words(Some(&words))?,
            Some(Choice::Own(make)) => {
                let never = Stop::default();
                let watch = Watch { stop: &stop.unwrap_or(&never).0, steps: &Default::default() };
                self.finished_own(make.bind(py), seed, &watch, None)?
            }
        };
        // Half a run measures nothing.
        Ok(finished.results.complete.then(|| measures(&Summary::new(&self.read, &finished))))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Scenario>,
    ) -> (Bound<'py, PyAny>, (String, String, PathBuf, Traces)) {
        let Scenario { text, directory, traces, read } = slf.get();
        let arguments = (text.clone(), read.name.clone(), directory.clone(), traces.clone());
        (slf.get_type().into_any(), arguments)
    }

    fn __repr__(&self) -> String {
        format!("<simnel.Scenario: {}>", self.read.name)
    }
}
