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
        self.of_keys(flow_keys(LINK, bytes))
    }

    /// The connection of packets with these keys.
    #[inline]
    pub(crate) fn of_keys(&self, keys: FlowKeys) -> u64 {
        self.0.hash(&of_both_directions(keys)).flow
    }
}

/// The same for both directions of a connection.
fn of_both_directions(keys: FlowKeys) -> FlowKeys {
    let [a, b, c, d] = keys.ports;
    let (from, to) = ([a, b], [c, d]);
    let swapped = match keys.addresses {
        Addresses::V4(source, destination) if (source, from) > (destination, to) => {
            Addresses::V4(destination, source)
        }
        Addresses::V6(source, destination) if (source, from) > (destination, to) => {
            Addresses::V6(destination, source)
        }
        _ => return keys,
    };
    FlowKeys { addresses: swapped, ports: [c, d, a, b], ..keys }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UDP from one host and port to the other.
    fn packet(is_v6: bool, from: (u8, u8), to: (u8, u8)) -> Vec<u8> {
        let mut bytes = match is_v6 {
            true => {
                [&[0x60, 0, 0, 0, 0, 8, 17, 64][..], &[0xfd; 15], &[from.0], &[0xfd; 15], &[to.0]]
                    .concat()
            }
            false => {
                let fixed = [0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0];
                [&fixed[..], &[10, 0, 0, from.0, 10, 0, 0, to.0]].concat()
            }
        };
        bytes.extend([0, from.1, 0, to.1, 0, 8, 0, 0]);
        bytes
    }

    #[test]
    fn both_directions_are_one_connection_and_others_are_not() {
        let connections = Connections::with_key(HashKey::new(1, 2));
        for is_v6 in [false, true] {
            let of = |from, to| connections.of(&packet(is_v6, from, to));
            let one = of((1, 70), (2, 80));
            assert_eq!(one, of((2, 80), (1, 70)));
            // Of two ends of one host, too.
            assert_eq!(of((1, 70), (1, 80)), of((1, 80), (1, 70)));
            for other in [of((1, 80), (2, 70)), of((1, 71), (2, 80)), of((1, 70), (3, 80))] {
                assert_ne!(one, other);
            }
        }
    }
}
