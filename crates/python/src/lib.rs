//! The lab as a Python package: `simnel._simnel`, on which the package's Python stands.
//!
//! Thin: scenarios, runs and questions are the lab's own; what is here turns their results into
//! numbers, text and Arrow tables. Long work leaves the interpreter to other threads and looks for
//! Ctrl-C meanwhile (`work`). What a caller got wrong is a `simnel.Error` in the lab's words.

#![allow(missing_docs)] // Python's documentation is in the package's `.py` and `.pyi`.

use pyo3::prelude::*;

mod compare;
mod discipline;
mod error;
mod looks;
mod paper;
mod quantity;
mod replay;
mod run;
mod scenario;
mod session;
mod table;
mod work;

#[pymodule]
mod _simnel {
    #[pymodule_export]
    use super::compare::{compare, compare_runs};
    #[pymodule_export]
    use super::discipline::Packet;
    #[pymodule_export]
    use super::error::Error;
    #[pymodule_export]
    use super::looks::looks;
    #[pymodule_export]
    use super::paper::{about_paper, paper, paper_runs, papers};
    #[pymodule_export]
    use super::quantity::quantity;
    #[pymodule_export]
    use super::replay::replay;
    #[pymodule_export]
    use super::run::{Distribution, Run};
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::session::Session;
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::work::Stop;

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
