//! A scenario: its text, understood, and what can be asked of it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use simnel_lab::experiments::scenario as files;
use simnel_lab::experiments::sweep::{axis, measures};
use simnel_scenario::{Finished, ScenarioError, Summary, STEPS};

use crate::error::{in_scenario, of_key, Error};
use crate::run::Run;
use crate::work::{interruptible, Stop, Watch};

#[pyclass(frozen, module = "simnel._simnel")]
pub struct Scenario {
    text: String,
    directory: PathBuf,
    read: simnel_scenario::Scenario,
}

impl Scenario {
    fn understand(text: String, name: &str, directory: PathBuf) -> PyResult<Scenario> {
        match files::parse(&text, name, &directory) {
            Ok(read) => Ok(Scenario { text, directory, read }),
            Err(error) => Err(in_scenario(error, &text)),
        }
    }

    /// Words that were handed over are not the text's.
    fn refused(&self, error: ScenarioError, qdisc: Option<&str>) -> PyErr {
        in_scenario(error, if qdisc.is_some() { "" } else { &self.text })
    }

    fn finished(&self, qdisc: Option<&str>, seed: u64, watch: &Watch) -> PyResult<Finished> {
        let simulation = self.read.simulation(qdisc);
        let run = simulation.and_then(|simulation| {
            simulation.run(seed, &mut |step| {
                watch.steps.store(step, Ordering::Relaxed);
                match watch.stop.load(Ordering::Relaxed) {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            })
        });
        run.map_err(|error| self.refused(error, qdisc))
    }
}

#[pymethods]
impl Scenario {
    #[classattr]
    const STEPS: u64 = STEPS;

    #[new]
    #[pyo3(signature = (text, name = "scenario", directory = None))]
    fn new(text: String, name: &str, directory: Option<PathBuf>) -> PyResult<Scenario> {
        Scenario::understand(text, name, directory.unwrap_or_default())
    }

    #[staticmethod]
    fn from_file(path: PathBuf) -> PyResult<Scenario> {
        match files::read(&path) {
            Ok((read, text)) => {
                let directory = path.parent().unwrap_or(Path::new("")).to_path_buf();
                Ok(Scenario { text, directory, read })
            }
            Err((error, text)) => Err(in_scenario(error, &text)),
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

    fn with_values(&self, values: BTreeMap<String, String>) -> PyResult<Scenario> {
        let mut table: toml::Table = self
            .text
            .parse()
            .map_err(|error: toml::de::Error| Error::new_err(error.message().to_string()))?;
        for (key, value) in &values {
            axis::set(&mut table, key, value).map_err(of_key)?;
        }
        let directory = self.directory.clone();
        Scenario::understand(table.to_string(), &self.read.name, directory)
    }

    #[pyo3(signature = (qdisc = None))]
    fn check(&self, qdisc: Option<&str>) -> PyResult<()> {
        self.read.setup(qdisc).map(drop).map_err(|error| self.refused(error, qdisc))
    }

    #[pyo3(signature = (qdisc = None, seed = 1, progress = None))]
    fn run(
        &self,
        py: Python<'_>,
        qdisc: Option<&str>,
        seed: u64,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Run> {
        let work = |watch: &Watch<'_>| self.finished(qdisc, seed, watch);
        let finished = interruptible(py, progress.as_ref(), work)??;
        let summary = Summary::new(&self.read, &finished);
        Ok(Run::new(finished, summary))
    }

    #[pyo3(signature = (qdisc = None, seed = 1, stop = None))]
    fn measure(
        &self,
        py: Python<'_>,
        qdisc: Option<&str>,
        seed: u64,
        stop: Option<&Stop>,
    ) -> PyResult<Option<BTreeMap<String, f64>>> {
        let never = AtomicBool::new(false);
        let stop = stop.map_or(&never, |stop| &stop.0);
        let watch = Watch { stop, steps: &Default::default() };
        let finished = py.detach(|| self.finished(qdisc, seed, &watch))?;
        // Half a run measures nothing.
        Ok(finished.results.complete.then(|| measures(&Summary::new(&self.read, &finished))))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Scenario>,
    ) -> (Bound<'py, PyAny>, (String, String, PathBuf)) {
        let own = slf.get();
        let arguments = (own.text.clone(), own.read.name.clone(), own.directory.clone());
        (slf.get_type().into_any(), arguments)
    }

    fn __repr__(&self) -> String {
        format!("<simnel.Scenario: {}>", self.read.name)
    }
}
