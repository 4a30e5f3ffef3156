//! `simnel.Error`: what was wrong, where, and a correct form.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simnel_lab::experiments::sweep::SweepError;
use simnel_scenario::ScenarioError;

create_exception!(
    simnel,
    Error,
    PyValueError,
    "A scenario, words of a discipline or a file that Simnel cannot work with."
);

/// An error about `text`, in which its place is looked up.
pub fn in_scenario(error: ScenarioError, text: &str) -> PyErr {
    let place = match error.place(text) {
        Some((line, column)) => format!(" (line {line}, column {column})"),
        None => String::new(),
    };
    Error::new_err(format!("{}{place}; expected {}", error.what, error.expected))
}

/// An error of a key that was to be set.
pub fn of_key(error: SweepError) -> PyErr {
    Error::new_err(error.to_string())
}
