//! See docs/ARCHITECTURE.md.

pub mod demo;
pub mod testbed;
