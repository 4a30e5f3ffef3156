//! Other ways to run an experiment: live, and on Linux's own disciplines.
//!
//! The simulator is one arm. The *live* arm drives the gateway's data path with Linux's TCP in
//! network namespaces (`live`). The *linux* arm drives Linux's own disciplines inside user-mode
//! Linux (`linux`, and `guest` inside). Both take the experiment's scenario, carry its flows out
//! with one generator in real time, and are measured by the experiment itself. So a claim has one
//! column an arm. Where columns differ by more than the tolerances of `conformance/arms.toml`, the
//! report says so ([`ledger`]).

use std::time::Duration;

use super::claim::Verdict;
use super::measure::Measures;

#[cfg(not(target_family = "wasm"))]
mod drive;
#[cfg(not(target_family = "wasm"))]
mod error;
#[cfg(not(target_family = "wasm"))]
pub mod generator;
#[cfg(not(target_family = "wasm"))]
pub mod guest;
#[cfg(not(target_family = "wasm"))]
mod heard;
pub mod ledger;
#[cfg(not(target_family = "wasm"))]
mod linux;
#[cfg(not(target_family = "wasm"))]
mod live;
#[cfg(not(target_family = "wasm"))]
mod network;
#[cfg(not(target_family = "wasm"))]
pub mod plan;
#[cfg(not(target_family = "wasm"))]
pub mod record;

#[cfg(not(target_family = "wasm"))]
pub use drive::{check, run, Options, Watch};
#[cfg(not(target_family = "wasm"))]
pub use error::ArmError;
#[cfg(not(target_family = "wasm"))]
pub use generator::{Drain, Means};
pub use ledger::{Difference, Ledger};
#[cfg(not(target_family = "wasm"))]
pub use linux::Kernel;

/// An arm beside the simulator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The gateway in network namespaces.
    Live,
    /// Linux's own disciplines in user-mode Linux.
    Linux,
}

impl Kind {
    /// Its column's name. What Linux says in virtual time is recorded, and is the column `linux`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Live => "live",
            Kind::Linux => "linux_now",
        }
    }
}

/// The experiments that are meant for other arms: their flows are transfers and probes, and a
/// minute shows what there is.
pub const EXPERIMENTS: [&str; 6] = ["A2", "A3", "A6", "B3", "B4", "B5"];

/// Results of an arm for an experiment.
#[derive(Debug)]
pub struct Reading {
    /// The arm.
    pub kind: Kind,
    /// The experiment's identifier.
    pub id: &'static str,
    /// Measures, under the simulator's names.
    pub measures: Measures,
    /// The same claims, judged by it.
    pub verdicts: Vec<Verdict>,
    /// flent's data of each run: its title and the file's bytes.
    pub flent: Vec<(String, Vec<u8>)>,
    /// Runs that could not be made, and why.
    pub refused: Vec<(String, String)>,
    /// Seconds that were measured of each run.
    pub window_s: f64,
    /// Longest delay with which a thread of the generator was woken: peaks of latency may be this
    /// machine's.
    pub late: Duration,
}

impl Reading {
    /// Words on how the runs were made, and on how far their times can be trusted.
    pub fn quality(&self) -> String {
        let (seconds, late) = (self.window_s, self.late.as_secs_f64() * 1e3);
        format!("one run of {seconds:.0} s measured; threads were woken up to {late:.1} ms late")
    }

    /// Nothing yet.
    pub fn new(kind: Kind, id: &'static str) -> Reading {
        Reading {
            kind,
            id,
            measures: Measures::default(),
            verdicts: Vec::new(),
            flent: Vec::new(),
            refused: Vec::new(),
            window_s: 0.0,
            late: Duration::ZERO,
        }
    }
}
