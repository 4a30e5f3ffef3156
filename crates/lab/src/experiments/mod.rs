//! Experiments: runs of a scenario, sweeps over settings, comparisons, the published ones.

#[cfg(not(target_family = "wasm"))]
pub mod compare;
pub mod paper;
#[cfg(not(target_family = "wasm"))]
pub mod scenario;
#[cfg(not(target_family = "wasm"))]
pub mod sweep;
