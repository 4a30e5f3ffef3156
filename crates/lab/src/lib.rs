//! Experiments on the core: what a discipline did, simulated, replayed and judged.
//!
//! * [`experiments`]: runs of a scenario, sweeps over many settings, disciplines compared on a
//!   line, and the published experiments, run again and judged.
//! * [`conformance`]: recordings of Linux's own queue disciplines and TCP, compared with ours, and
//!   captures of any length through any discipline.
//! * [`report`]: pages and files of results; [`figures`]: their drawings; [`flent`]: data files.

#![forbid(unsafe_code)]

pub mod conformance;
pub mod experiments;
pub mod figures;
pub mod files;
pub mod flent;
mod pattern;
pub mod report;
pub mod statistics;
