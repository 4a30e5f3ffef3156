//! Experiments on the core: what a discipline did, simulated, replayed and judged.
//!
//! * [`experiments`]: runs of a scenario, sweeps over many settings, disciplines compared on a
//!   line, and the published experiments, run again and judged.
//! * [`conformance`]: recordings of Linux's own queue disciplines and TCP, compared with ours, and
//!   captures of any length through any discipline.
//! * [`report`]: pages and files of results; [`figures`]: their drawings; [`flent`]: data files.
//!
//! ```no_run
//! use std::sync::atomic::AtomicBool;
//!
//! use simnel_lab::experiments::compare::{compare, verdict, Question};
//!
//! let question = Question {
//!     contenders: vec!["cake bandwidth {rate}".into(), "fq_codel".into()],
//!     line: ("20mbit".into(), "3mbit".into()),
//!     rtt: "90ms".into(),
//!     repetitions: 5,
//! };
//! let done = compare(&question, &AtomicBool::new(false), &|| ()).expect("a good question");
//! for sentence in verdict(&done.rows, &question.contenders) {
//!     println!("{}", sentence.text);
//! }
//! ```

#![forbid(unsafe_code)]

#[cfg(not(target_family = "wasm"))]
pub mod conformance;
pub mod experiments;
pub mod figures;
#[cfg(not(target_family = "wasm"))]
pub mod files;
pub mod flent;
mod pattern;
#[cfg(not(target_family = "wasm"))]
pub mod report;
pub mod statistics;
