//! Quantities as sweeps read them.

use pyo3::prelude::*;
use simnel_lab::experiments::sweep::axis;

/// A number in its base unit, and that unit.
#[pyfunction]
pub fn quantity(words: &str) -> Option<(f64, &'static str)> {
    axis::quantity(words)
}
