//! Scheduling: whom to serve next.

pub mod rotation;
