//! Hashes that are the same for both directions of a connection.

use simnel_core::flow::{Addresses, FlowHasher, HashKey};
use simnel_core::wire::{flow_keys, Classifier, FlowKeys};

use crate::classify::{self, LINK};

/// Tells connections apart, whichever way a packet goes.
pub(crate) struct Connections(Classifier);

impl Connections {
    /// With a key that nobody knows.
    pub(crate) fn new() -> std::io::Result<Connections> {
        Ok(Connections::with_key(classify::random_key()?))
    }

    pub(crate) fn with_key(key: HashKey) -> Connections {
        Connections(Classifier::new(FlowHasher::of_flows(key)))
    }

    /// The connection of the packet that starts with `bytes`.
    #[inline]
    pub(crate) fn of(&self, bytes: &[u8]) -> u64 {
        self.0.hash(&of_both_directions(flow_keys(LINK, bytes))).flow
    }
}

/// The same for both directions of a connection.
fn of_both_directions(keys: FlowKeys) -> FlowKeys {
    let [a, b, c, d] = keys.ports;
    let swapped = match keys.addresses {
        Addresses::V4(source, destination) if source > destination => {
            Addresses::V4(destination, source)
        }
        Addresses::V6(source, destination) if source > destination => {
            Addresses::V6(destination, source)
        }
        _ => return keys,
    };
    FlowKeys { addresses: swapped, ports: [c, d, a, b], ..keys }
}
