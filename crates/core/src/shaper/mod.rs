//! Shapers: when to send.

pub mod deficit_clock;
