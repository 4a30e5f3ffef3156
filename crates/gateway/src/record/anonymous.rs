//! Other addresses in place of those that were recorded, by a key that nobody keeps.
//!
//! Each half of an address goes through a Feistel network, so no two addresses become one: hosts,
//! and networks of 64 bits (the hosts of IPv6's cake), stay as many as they were. Checksums are
//! cleared, which would tell whether a guess of the addresses is right; so are options of IP and
//! routing headers, which may hold addresses.

use std::hash::{BuildHasher, RandomState};

/// The key of one recording.
pub(super) struct Key(RandomState);

/// Rounds after which a Feistel network of random functions tells nothing (Luby and Rackoff).
const ROUNDS: u8 = 4;
/// Headers that are followed in one packet, as `simnel_core::wire` does.
const MOST_HEADERS: usize = 16;
/// No operation, as an option of IPv4.
const NOTHING: u8 = 1;

impl Key {
    /// A fresh key.
    pub(super) fn new() -> Key {
        Key(RandomState::new())
    }

    /// Puts other addresses into an IP packet of which `bytes` are the headers, tunnels' included.
    pub(super) fn hide(&self, mut bytes: &mut [u8]) {
        let mut next = None;
        for _ in 0..MOST_HEADERS {
            let length = match (next, bytes.first().map_or(0, |first| first >> 4)) {
                (None | Some(4), 4) => self.hide_v4(bytes, &mut next),
                (None | Some(41), 6) => self.hide_v6(bytes, &mut next),
                // Hop-by-hop, routing, destination; fragment; authentication.
                (Some(0 | 43 | 60), _) if bytes.len() >= 8 => {
                    let length = (usize::from(bytes[1]) + 1) * 8;
                    let end = length.min(bytes.len());
                    bytes[4..end].fill(0);
                    extension(bytes, length, &mut next)
                }
                (Some(44), _) if bytes.len() >= 8 => extension(bytes, 8, &mut next),
                (Some(51), _) if bytes.len() >= 8 => {
                    let length = (usize::from(bytes[1]) + 2) * 4;
                    extension(bytes, length, &mut next)
                }
                (Some(6), _) => return clear(bytes, 16),
                (Some(17 | 136), _) => return clear(bytes, 6),
                _ => return,
            };
            let Some(rest) = length.and_then(|length| bytes.get_mut(length..)) else { return };
            bytes = rest;
        }
    }

    fn hide_v4(&self, bytes: &mut [u8], next: &mut Option<u8>) -> Option<usize> {
        let length = usize::from(bytes[0] & 15) * 4;
        let fixed = bytes.first_chunk_mut::<20>()?;
        fixed[10..12].fill(0);
        for at in [12, 16] {
            let address =
                u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
            let other = self.permuted(u64::from(address), 16, 4) as u32;
            fixed[at..at + 4].copy_from_slice(&other.to_be_bytes());
        }
        *next = Some(fixed[9]);
        let end = length.min(bytes.len());
        bytes.get_mut(20..end)?.fill(NOTHING);
        Some(length)
    }

    fn hide_v6(&self, bytes: &mut [u8], next: &mut Option<u8>) -> Option<usize> {
        let fixed = bytes.first_chunk_mut::<40>()?;
        for address in fixed[8..].chunks_exact_mut(16) {
            let half = |at: usize| {
                let bytes = address[at..].first_chunk().copied().unwrap_or_default();
                u64::from_be_bytes(bytes)
            };
            let network = half(0);
            // The same host in another network is another one.
            let host = half(8) ^ self.0.hash_one((network, 7u8));
            let other = [self.permuted(network, 32, 6), self.permuted(host, 32, 8)];
            address.copy_from_slice(&other.map(u64::to_be_bytes).concat());
        }
        *next = Some(fixed[6]);
        Some(40)
    }

    /// Another number of twice `half` bits for each; `what` tells apart what must not be compared.
    fn permuted(&self, number: u64, half: u32, what: u8) -> u64 {
        let mask = (1 << half) - 1;
        let (mut left, mut right) = (number >> half, number & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.0.hash_one((what, round, right)) & mask);
        }
        left << half | right
    }
}

/// Steps over an extension header of `length` bytes.
fn extension(bytes: &[u8], length: usize, next: &mut Option<u8>) -> Option<usize> {
    *next = bytes.first().copied();
    Some(length)
}

/// Clears the checksum at `at`.
fn clear(bytes: &mut [u8], at: usize) {
    if let Some(sum) = bytes.get_mut(at..at + 2) {
        sum.fill(0);
    }
}
