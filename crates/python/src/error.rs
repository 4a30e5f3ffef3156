//! `simnel.Error`: what was wrong, where, and a correct form.

use pyo3::create_exception;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
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

/// An error of pickle: `what` has no bytes, `instead` names what has.
pub fn stays(what: &str, instead: &str) -> PyErr {
    PyTypeError::new_err(format!("{what} stays in its process; expected {instead}"))
}

/// An error of a key that was to be set.
pub fn of_key(error: SweepError) -> PyErr {
    Error::new_err(error.to_string())
}

/// A whole number that Python hands over. One that `T` cannot hold is a [`struct@Error`], where
/// PyO3's own conversion has an OverflowError.
pub fn whole<'py, T>(number: &Bound<'py, PyAny>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    number.extract().map_err(|error: PyErr| {
        if !error.is_instance_of::<PyOverflowError>(number.py()) {
            return error;
        }
        let bits = 8 * size_of::<T>();
        Error::new_err(format!(
            "{number} cannot be used; expected a whole number, 0 to 2^{bits} - 1"
        ))
    })
}
