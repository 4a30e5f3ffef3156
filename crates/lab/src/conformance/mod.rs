//! Disciplines and TCP against recordings: Linux's own, and captures of any line.

pub mod fuzz;
pub mod golden;
pub mod linux_reference;
pub mod replay;
