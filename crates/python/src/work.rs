//! Long work beside the interpreter.
//!
//! The work has a thread of its own. The calling thread, which may be Python's main one, looks for
//! signals now and then and passes progress on. An exception from either ends the work soon, and is
//! the caller's once the work has ended.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

/// Time between looks for signals; progress is told as often.
const LOOK: Duration = Duration::from_millis(50);

/// A switch that ends runs on other threads.
#[pyclass(frozen, module = "simnel._simnel")]
#[derive(Default)]
pub struct Stop(pub Arc<AtomicBool>);

#[pymethods]
impl Stop {
    #[new]
    fn new() -> Stop {
        Stop::default()
    }

    fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The work's view of its caller.
pub struct Watch<'a> {
    /// True when it is to end.
    pub stop: &'a AtomicBool,
    /// Steps done.
    pub steps: &'a AtomicU64,
}

/// Does `work` while Python goes on; `progress` is called with the steps that are done.
pub fn interruptible<T: Send>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&Watch<'_>) -> T + Send,
) -> PyResult<T> {
    let (stop, steps) = (AtomicBool::new(false), AtomicU64::new(0));
    py.detach(|| {
        let (done, ended) = mpsc::channel();
        thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let result = work(&Watch { stop: &stop, steps: &steps });
                // Whoever waits has not gone: it ends after this.
                let _ = done.send(());
                drop(done);
                result
            });
            let mut refused = None;
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if refused.is_none() {
                    refused = tell(progress, steps.load(Ordering::Relaxed)).err();
                    stop.store(refused.is_some(), Ordering::Relaxed);
                }
            }
            let result = match worker.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            };
            match refused {
                Some(error) => Err(error),
                None => {
                    tell(progress, steps.load(Ordering::Relaxed))?;
                    Ok(result)
                }
            }
        })
    })
}

fn tell(progress: Option<&Py<PyAny>>, steps: u64) -> PyResult<()> {
    Python::attach(|py| {
        py.check_signals()?;
        progress.map_or(Ok(()), |progress| progress.call1(py, (steps,)).map(drop))
    })
}
