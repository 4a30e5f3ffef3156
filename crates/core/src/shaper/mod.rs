//! Shapers: when to send.

pub mod deficit_clock;
pub mod token_bucket;
