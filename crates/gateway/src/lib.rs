//! See docs/ARCHITECTURE.md.

pub mod link;
