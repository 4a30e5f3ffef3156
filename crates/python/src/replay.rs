//! A capture through a discipline, as `simnel replay --json` does it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use simnel_core::qdisc::{self, Config, Device};
use simnel_core::tc::slip;
use simnel_core::{Packet, Time};
use simnel_lab::conformance::golden::{Fate, Link};
use simnel_lab::conformance::replay::{
    classifier, drive, open, Failure, Sink, Source, Tally, TraceError, Waiting,
};

use crate::error::{whole, Error};
use crate::work::{interruptible, Watch};

/// The summary as JSON.
#[pyfunction]
#[pyo3(signature = (path, qdisc, rate = None, seed = 1, top = 10, progress = None))]
pub fn replay(
    py: Python<'_>,
    path: PathBuf,
    qdisc: &str,
    rate: Option<&str>,
    #[pyo3(from_py_with = whole)] seed: u64,
    #[pyo3(from_py_with = whole)] top: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let config = qdisc::parse_strictly(qdisc).map_err(|error| Error::new_err(error.to_string()))?;
    let asked = rate.map(bits).transpose()?;
    // What shapes itself has no line behind it.
    let bits = asked.filter(|_| config.rate().is_none());
    let link = bits.map_or(Link::InfinitelyFast, Link::BitsPerSecond);
    let work = |watch: &Watch<'_>| {
        let tally = through(&path, &config, link, seed, watch)?;
        Ok(tally.summary(qdisc, bits, top))
    };
    let summary = interruptible(py, progress.as_ref(), work)?;
    let summary = summary.map_err(|error: Failure| match error {
        Failure::Trace(error) => in_trace(&error),
        other => Error::new_err(other.to_string()),
    })?;
    serde_json::to_string(&summary).map_err(|error| Error::new_err(error.to_string()))
}

fn bits(words: &str) -> PyResult<u64> {
    match slip::rate(words).map_err(Error::new_err)? {
        rate if rate.is_unlimited() => Err(Error::new_err("a rate above zero is needed")),
        rate => Ok(rate.bits()),
    }
}

fn through(
    path: &Path,
    config: &Config,
    link: Link,
    seed: u64,
    watch: &Watch<'_>,
) -> Result<Tally, Failure> {
    let mut trace = open(path, classifier(seed)).map_err(Failure::Trace)?;
    let make = |now| {
        let device = Device { seed, now, ..Device::default() };
        qdisc::build(config, &device).map_err(|error| error.to_string())
    };
    let read = trace.read.clone();
    let step = &mut || watch.steps.store(read.get(), Ordering::Relaxed);
    let sink = Stoppable { tally: Tally::new(), stop: watch.stop };
    drive(trace.packets.as_mut(), make, link, sink, step).map(|sink| sink.tally)
}

/// A tally that is given up when it is told to stop.
struct Stoppable<'a> {
    tally: Tally,
    stop: &'a AtomicBool,
}

impl Sink for Stoppable<'_> {
    type Note = <Tally as Sink>::Note;

    fn arrived(&mut self, time: Time, packet: &Packet, source: &dyn Source) -> Self::Note {
        self.tally.arrived(time, packet, source)
    }

    fn left(&mut self, time: Time, waiting: &Waiting<Self::Note>, fate: Fate) {
        self.tally.left(time, waiting, fate);
    }

    fn step(&mut self) -> io::Result<()> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }
}

fn in_trace(error: &TraceError) -> PyErr {
    match error.help {
        Some(help) => Error::new_err(format!("{error}; {help}")),
        None => Error::new_err(error.to_string()),
    }
}
