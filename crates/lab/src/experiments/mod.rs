//! Experiments: runs of a scenario, sweeps over settings, comparisons, the published ones.

pub mod compare;
pub mod paper;
pub mod scenario;
pub mod sweep;
