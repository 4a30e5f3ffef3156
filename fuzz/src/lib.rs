//! What the fuzz targets share: a reader of random bytes, the disciplines under test, and the
//! contract that each must keep whatever happens to it.
//!
//! All of it is the property tests' own, so that both check the same thing. A target is a few lines
//! in `fuzz_targets/`; `scripts/fuzz.sh` runs them on stable Rust. Inputs are decoded by position,
//! so that libFuzzer's mutations stay local: one byte changes one decision.

pub mod seeds;

#[path = "../../crates/core/tests/support/mod.rs"]
pub mod support;
