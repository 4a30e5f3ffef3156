//! The lab's colours, dashes and markers, for whoever draws.

use pyo3::prelude::*;
use simnel_lab::figures::styles::{styles, ALONE};

/// Of each name: a colour as `#rrggbb`, lengths of dashes and gaps as SVG has them, or "none", and
/// a marker's number.
#[pyfunction]
pub fn looks(names: Vec<String>) -> Vec<(&'static str, &'static str, usize)> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let styles = styles(&names);
    styles.iter().map(|style| (ALONE[style.colour], style.dash(), style.marker)).collect()
}
