//! Traces through disciplines: a capture of a real line goes in, what would have happened comes
//! out.
//!
//! [`open`] reads arrivals as CSV, captures and our own binary traces ([`records`]), a packet at a
//! time. [`drive`] sends them through a discipline in front of the recordings' virtual device
//! ([`VirtualDevice`](super::golden::VirtualDevice)). It tells a [`Sink`] what becomes of each:
//! [`Events`] writes it down in the recordings' format, [`Tally`] sums it up.
//!
//! Memory is bounded, however long the trace and however many its flows. It holds a read-ahead
//! buffer, the packets that wait in the discipline (its own limit), and [`shares::CAPACITY`] flows
//! and hosts.

use std::path::Path;

use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::wire::Classifier;

use crate::files::replace;

mod capture;
mod drive;
mod error;
mod events;
mod link_type;
mod open;
mod recorded;
pub mod records;
mod rows;
pub mod shares;
mod source;
mod tally;
#[cfg(test)]
mod tests;
mod window;

pub use drive::{drive, Sink, Waiting};
pub use error::{Failure, Place, TraceError};
pub use events::Events;
pub use open::{open, source, Trace};
pub use recorded::tally_of;
pub use source::Source;
pub use tally::{Quantiles, ShareLine, Shares, Summary, Tally};

/// Packets between two looks at the clock and at the sink.
pub const STEP: u64 = 1 << 14;

/// The classifier of a replay with `seed`: the same seed, the same queues.
pub fn classifier(seed: u64) -> Classifier {
    // The hash spreads whatever the key is; it only has to differ between seeds.
    let key = HashKey::new(seed, seed.rotate_left(32) ^ 0x5bd1_e995_9d1b_58d3);
    Classifier::new(FlowHasher::new(key, 128))
}

/// Reads `source` to its end: an error now is better than half a result.
pub fn check(source: &mut dyn Source, step: &mut dyn FnMut()) -> Result<u64, TraceError> {
    let mut packets = 0;
    while source.advance()?.is_some() {
        packets += 1;
        if packets % STEP == 0 {
            step();
        }
    }
    Ok(packets)
}

/// Writes `source` as a binary trace to `path`, which appears when it is complete, or not at all.
/// Returns the number of packets.
pub fn write_binary(
    source: &mut dyn Source,
    path: &Path,
    step: &mut dyn FnMut(),
) -> Result<u64, Failure> {
    replace(path, |file| records::write(source, file, step))
}
