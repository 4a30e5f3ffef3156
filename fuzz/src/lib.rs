//! Shared by the fuzz targets: a reader of random bytes, the disciplines under test, and the
//! contract that each must keep whatever happens to it.
//!
//! All of it is the property tests' own, so that both check the same thing. A target is a few lines
//! in `fuzz_targets/`; `scripts/fuzz.sh` runs them on stable Rust. Inputs are decoded by position,
//! so that libFuzzer's mutations stay local: one byte changes one decision.

pub mod edits;
pub mod seeds;

#[path = "../../crates/core/tests/support/mod.rs"]
pub mod support;

/// True if `config` has a rate of 2^64 bit/s or more. `tc` prints what is left of it modulo 2^64,
/// and so do we: its words do not mean the same.
pub fn has_wrapped_rate(config: &simnel_core::qdisc::Config) -> bool {
    let shown = format!("{config:?}");
    let mut rates = shown.split("Rate(").skip(1).filter_map(|rest| rest.split(')').next());
    rates.any(|rate| rate.parse::<u64>().is_ok_and(|bytes| bytes > u64::MAX / 8))
}

/// Three texts in one input, divided by zeros: further ones belong to the last.
pub fn in_parts(bytes: &[u8]) -> [&[u8]; 3] {
    let mut parts = bytes.splitn(3, |byte| *byte == 0);
    [(); 3].map(|()| parts.next().unwrap_or_default())
}
