//! Disciplines that run inside the kernel: the module's, and Linux's own of the same names.
//!
//! [`Qdiscs`] speaks traffic control's part of rtnetlink, as `tc` does. Settings of the module's
//! qdisc, `simnel`, are words in one attribute; its statistics are text and JSON, made in the
//! module, so that nobody here needs to know any discipline.

mod qdiscs;

pub use qdiscs::{Listed, Place, Qdiscs, Settings, Verb, INGRESS, OWN_KIND, ROOT};
