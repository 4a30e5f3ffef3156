//! Other addresses in place of those that were recorded, by a key that nobody keeps.
//!
//! Each half of an address goes through a Feistel network, so no two addresses become one. Hosts,
//! and networks of 64 bits (the hosts of IPv6's cake), stay as many as they were. Checksums are
//! cleared, which would tell whether a guess of the addresses is right. So are options of IP and
//! routing headers, which may hold addresses, and what Multipath TCP announces.

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
                (Some(6), _) => {
                    clear(bytes, 16);
                    return hide_announced(bytes);
                }
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

/// Clears the addresses that a TCP header announces, with their proof (ADD_ADDR, RFC 8684, section
/// 3.4.1).
fn hide_announced(bytes: &mut [u8]) {
    const NO_OPERATION: u8 = 1;
    const MULTIPATH: u8 = 30;
    const ADD_ADDRESS: u8 = 3;
    let end = bytes.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4).min(bytes.len());
    let mut options = bytes.get_mut(20..end).unwrap_or_default();
    loop {
        let length = match *options {
            [0, ..] | [] => return,
            [NO_OPERATION, ..] => 1,
            [_, length, ..] => usize::from(length).max(2).min(options.len()),
            [_] => return,
        };
        let (option, rest) = options.split_at_mut(length);
        if let [MULTIPATH, _, kind, _, announced @ ..] = option {
            if *kind >> 4 == ADD_ADDRESS {
                announced.fill(0);
            }
        }
        options = rest;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// A Feistel network gives each number another one of as many bits.
    #[test]
    fn no_two_numbers_become_one() {
        let key = Key::new();
        for half in [1, 4, 5] {
            let all: BTreeSet<u64> =
                (0..1 << (2 * half)).map(|number| key.permuted(number, half, 9)).collect();
            assert!(all.iter().copied().eq(0..1 << (2 * half)), "{half}: {all:?}");
        }
    }

    /// Extension headers are stepped over by their own lengths (RFC 8200, section 4; RFC 4302).
    #[test]
    fn what_follows_any_header_is_hidden() {
        let key = Key::new();
        let hidden = |mut bytes: Vec<u8>| {
            key.hide(&mut bytes);
            bytes
        };
        let v6 = |next| [&[0x60, 0, 0, 0, 0, 0, next, 64][..], &[0xfd; 32]].concat();
        let udp = [0, 9, 0, 53, 0, 8, 0xee, 0xee];
        let headers: [(u8, &[u8]); 5] = [
            (0, &[17, 0, 1, 4, 0, 0, 0, 0]),
            (60, &[&[17, 2, 1, 20][..], &[0; 20]].concat()),
            (43, &[&[17, 1, 4, 0][..], &[0; 12]].concat()),
            (44, &[17, 0xff, 0, 0, 0, 0, 0, 1]),
            (51, &[&[17, 4, 0, 0][..], &[0; 20]].concat()),
        ];
        for (kind, header) in headers {
            let bytes = hidden([&v6(kind), header, &udp].concat());
            assert_eq!(bytes[40 + header.len()..], [0, 9, 0, 53, 0, 8, 0, 0], "{kind}");
            // Cut short, nothing that is there is left as it was.
            for length in 40..40 + header.len() {
                let cut = hidden([&v6(kind), header].concat()[..length].to_vec());
                assert_ne!(cut[8..24], [0xfd; 16], "{kind}");
            }
        }
        // IPv4's options end where it says.
        let v4 = [
            &[0x46, 0, 0, 0, 0, 0, 0, 0, 64, 17, 1, 2, 10, 0, 0, 1, 10, 0, 0, 2, 7, 4, 5, 6][..],
            &udp,
        ]
        .concat();
        let bytes = hidden(v4);
        assert_eq!(bytes[20..], [1, 1, 1, 1, 0, 9, 0, 53, 0, 8, 0, 0]);
    }

    #[test]
    fn addresses_that_multipath_tcp_announces_are_hidden() {
        let key = Key::new();
        let tcp = |options: &[u8]| {
            let offset = (5 + options.len() as u8 / 4) << 4;
            let fixed =
                [0, 9, 1, 187, 0, 0, 0, 1, 0, 0, 0, 1, offset, 0x10, 0xff, 0xff, 0, 0, 0, 0];
            let ip = [0x45, 0, 0, 0, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            let mut bytes = [&ip[..], &fixed, options, b"payload"].concat();
            key.hide(&mut bytes);
            assert_eq!(bytes[40 + options.len()..], *b"payload");
            bytes[40..40 + options.len()].to_vec()
        };
        let announced = [30, 16, 0x30, 7, 192, 168, 1, 5, 1, 2, 3, 4, 5, 6, 7, 8];
        let hidden = [&[30, 16, 0x30, 7][..], &[0; 12]].concat();
        let stamps = [8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!(tcp(&announced), hidden);
        let with = |last: &[u8]| [&[1, 1][..], &stamps, last].concat();
        assert_eq!(tcp(&with(&announced)), with(&hidden));
        // Acknowledgements of data and all else stay: the filters of acknowledgements go by them.
        for kept in [
            [30, 8, 0x20, 1, 9, 9, 9, 9],
            [5, 8, 1, 2, 3, 4, 5, 6],
            [0, 16, 0x30, 7, 1, 2, 3, 4],
            [9, 0, 30, 1, 1, 1, 1, 1],
        ] {
            assert_eq!(tcp(&kept), kept);
        }
    }
}
