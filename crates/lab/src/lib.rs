//! See docs/ARCHITECTURE.md.

pub mod testbed;
