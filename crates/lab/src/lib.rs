//! Experiments on the core: what a discipline did, replayed and judged.
//!
//! * [`golden`]: recordings of Linux's own queue disciplines, compared with ours packet by packet.

#![forbid(unsafe_code)]

pub mod golden;
