//! Experiments on the core: what a discipline did, replayed and judged.
//!
//! * [`golden`]: recordings of Linux's own queue disciplines, compared with ours packet by packet.
//! * [`replay`]: traces of any length through any discipline: what would have happened.
//! * [`testbed`]: network namespaces with real Linux TCP, probes and counters.
//! * [`demo`]: one home line under load, without and with the gateway.

#![forbid(unsafe_code)]

pub mod compare;
pub mod demo;
pub mod flent;
pub mod golden;
pub mod linux_reference;
pub mod paper;
pub mod replay;
pub mod report;
pub mod scenario;
pub mod statistics;
pub mod sweep;
pub mod testbed;
