//! Placeholder.
use super::Experiment;
/// The experiments.
pub const EXPERIMENTS: &[Experiment] = &[];
