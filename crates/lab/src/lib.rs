//! Experiments on the core: what a discipline did, replayed and judged.
//!
//! * [`golden`]: recordings of Linux's own queue disciplines, compared with ours packet by packet.
//! * [`replay`]: traces of any length through any discipline: what would have happened.
//! * [`testbed`]: network namespaces with real Linux TCP, probes and counters.
//! * [`demo`]: one home line under load, without and with the gateway.
//! * [`scenario`]: what is simulated, as a file that a person writes; [`sweep`]: over many
//!   settings.
//! * [`paper`]: the published experiments, run again and judged; [`compare`]: disciplines on a
//!   line.
//!
//! A simulation from a program: parse, choose a discipline and a seed, run, look.
//!
//! ```
//! use std::path::Path;
//!
//! use simnel_lab::scenario::{Finished, Scenario, Summary};
//! use simnel_sim::Run;
//!
//! let text = r#"
//!     duration = "5s"
//!     [line]
//!     up = "3mbit"
//!     down = "20mbit"
//!     rtt = "90ms"
//!     [[traffic]]
//!     kind = "bulk"
//!     direction = "up"
//!     [[traffic]]
//!     kind = "ping"
//! "#;
//! let scenario = Scenario::parse(text, "upload", Path::new("")).expect("a scenario");
//! let mut delays = Vec::new();
//! for words in ["pfifo limit 1000", "cake bandwidth {rate}"] {
//!     let (setup, qdisc) = scenario.setup(Some(words)).expect("a discipline");
//!     let results = Run::new(&setup, 1).expect("a set-up").finish();
//!     let run = Finished { qdisc, setup, results };
//!     let summary = Summary::new(&scenario, &run);
//!     assert!(summary.groups[0].goodput_mbps > 1.0);
//!     let line = &run.results.lines[0];
//!     delays.push(line.sojourn[1].quantile(500));
//! }
//! assert!(delays[1] < delays[0], "a ping waits for the upload in a FIFO and not in cake");
//! ```

#![forbid(unsafe_code)]

pub mod compare;
pub mod demo;
pub mod files;
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
