//! Memory of paths that hosts keep from one connection to the next, and from one run to the next.
//!
//! A fresh boot knows nothing, and a run without a memory forgets with each connection. Flent's
//! tests run one after another between the same hosts. To simulate such tests, runs hand one memory
//! on: [`Run::recall`](crate::Run::recall) before each, [`Results::memory`](crate::Results) after
//! it.

use std::collections::BTreeMap;

use simnel_tcp::{Endpoint, Path};

use crate::capture::Headers;

/// Paths by addresses: whose memory it is, and the destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Slow-start thresholds are kept as well: Linux up to 5.5. Later ones keep RTTs only
    /// (`tcp_no_ssthresh_metrics_save`).
    pub thresholds: bool,
    /// Findings by path.
    pub paths: BTreeMap<([u8; 4], [u8; 4]), Path>,
}

impl Memory {
    /// A new connection's end begins with what its host knows.
    pub(crate) fn prepare(&self, headers: &Headers, endpoint: &mut Endpoint) {
        if let Some(path) = self.paths.get(&(headers.source, headers.destination)) {
            endpoint.recall(path);
        }
    }

    /// A connection's end is over.
    pub(crate) fn learn(&mut self, headers: &Headers, endpoint: &Endpoint) {
        let path = self.paths.entry((headers.source, headers.destination)).or_default();
        endpoint.remember(path);
        if !self.thresholds {
            path.ssthresh = 0;
        }
    }
}
