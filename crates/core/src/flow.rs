//! The flow and the hosts of a packet, as keyed hashes.
//!
//! Nobody outside, who does not know a random 128-bit key, can aim collisions at a queue:
//!
//! * flow: source ‖ destination ‖ source port ‖ destination port ‖ protocol, 64 bits of SipHash-1-3
//!   (Aumasson and Bernstein 2012);
//! * host: source address, and destination address, 32 bits each, zero never standing for a host.
//!   Of IPv6 SipHash-1-3 as well; of IPv4, which fits a machine word, multiply-shift
//!   (Dietzfelbinger et al. 1997) twice with secrets of each end's own, so that no pattern of
//!   addresses clumps.
//!
//! IPv6 hosts may be told apart by a prefix only (`host-prefix 64`): a phone with five privacy
//! addresses is one host. Linux hashes all 128 bits, which is the default here too.

/// The secret of a classifier: whoever knows it can aim collisions.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey {
    k0: u64,
    k1: u64,
}

impl core::fmt::Debug for HashKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

/// Source and destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// IPv4, as in the header (network byte order).
    V4([u8; 4], [u8; 4]),
    /// IPv6, as in the header.
    V6([u8; 16], [u8; 16]),
}

/// The hashes of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowHash {
    /// Of the five-tuple.
    pub flow: u64,
    /// Of the source address.
    pub src_host: u32,
    /// Of the destination address.
    pub dst_host: u32,
}

/// Hashes five-tuples under a key.
#[derive(Clone, Copy, Debug)]
pub struct FlowHasher {
    /// Before the first word.
    start: SipHash13,
    /// Hosts are told apart; else their hashes are zero.
    has_hosts: bool,
    /// Bits of each half of an IPv6 address that tell hosts apart.
    host_mask: [u64; 2],
    /// Secrets of IPv4's sources and destinations.
    host_keys: [HostKey; 2],
}

impl HashKey {
    /// A key from 16 bytes of the owner's best randomness.
    pub const fn new(k0: u64, k1: u64) -> HashKey {
        HashKey { k0, k1 }
    }
}

impl FlowHasher {
    /// A hasher that tells IPv6 hosts apart by their first `host_prefix` bits (128: by all).
    pub const fn new(key: HashKey, host_prefix: u8) -> FlowHasher {
        let start = SipHash13::new(key);
        let secret =
            [start.finish(0, 8), start.finish(1, 8), start.finish(2, 8), start.finish(3, 8)];
        FlowHasher {
            start,
            has_hosts: true,
            host_mask: [leading(host_prefix), leading(host_prefix.saturating_sub(64))],
            host_keys: [HostKey::new(secret[0], secret[1]), HostKey::new(secret[2], secret[3])],
        }
    }

    /// A hasher for whoever needs no hosts.
    pub const fn of_flows(key: HashKey) -> FlowHasher {
        FlowHasher { has_hosts: false, ..FlowHasher::new(key, 128) }
    }

    /// The three hashes. `ports` holds the four bytes of source and destination port as in the
    /// header, zero where the protocol has none.
    pub fn hash(&self, addresses: &Addresses, protocol: u8, ports: [u8; 4]) -> FlowHash {
        match addresses {
            Addresses::V4(src, dst) => self.hash_v4(*src, *dst, protocol, ports),
            Addresses::V6(src, dst) => self.hash_v6(src, dst, protocol, ports),
        }
    }

    /// [`FlowHasher::hash`] of IPv4 addresses.
    #[inline(always)]
    pub(crate) fn hash_v4(
        &self,
        src: [u8; 4],
        dst: [u8; 4],
        protocol: u8,
        ports: [u8; 4],
    ) -> FlowHash {
        let (src, dst) = (u32::from_le_bytes(src), u32::from_le_bytes(dst));
        let flow = self.start.word(u64::from(src) | u64::from(dst) << 32);
        let flow = flow.finish(last_word(protocol, ports), 13);
        if !self.has_hosts {
            return FlowHash { flow, src_host: 0, dst_host: 0 };
        }
        let [of_src, of_dst] = &self.host_keys;
        FlowHash { flow, src_host: of_src.hash(src), dst_host: of_dst.hash(dst) }
    }

    /// [`FlowHasher::hash`] of IPv6 addresses: the three are computed side by side.
    #[inline(never)]
    pub(crate) fn hash_v6(
        &self,
        src: &[u8; 16],
        dst: &[u8; 16],
        protocol: u8,
        ports: [u8; 4],
    ) -> FlowHash {
        let (start, src, dst) = (self.start, halves(src), halves(dst));
        let flow = start.word(src[0]).word(src[1]).word(dst[0]).word(dst[1]);
        let flow = flow.finish(last_word(protocol, ports), 37);
        if !self.has_hosts {
            return FlowHash { flow, src_host: 0, dst_host: 0 };
        }
        let host = |[a, b]: [u64; 2]| {
            start.word(a & self.host_mask[0]).word(b & self.host_mask[1]).finish(0, 16)
        };
        FlowHash { flow, src_host: nonzero(host(src)), dst_host: nonzero(host(dst)) }
    }
}

/// The last word of a flow's message.
#[inline(always)]
const fn last_word(protocol: u8, ports: [u8; 4]) -> u64 {
    u32::from_le_bytes(ports) as u64 | (protocol as u64) << 32
}

/// Two secret odd numbers that IPv4 addresses are multiplied by.
#[derive(Clone, Copy, Debug)]
struct HostKey([u64; 2]);

impl HostKey {
    const fn new(first: u64, second: u64) -> HostKey {
        HostKey([first | 1, second | 1])
    }

    /// The hash of an address.
    #[inline(always)]
    const fn hash(&self, address: u32) -> u32 {
        let once = self.0[0].wrapping_mul(address as u64);
        let hash = ((once ^ once >> 32).wrapping_mul(self.0[1]) >> 32) as u32;
        hash.wrapping_add((hash == 0) as u32)
    }
}

/// Another hash of a flow, from the one that packets carry: for disciplines that change the key of
/// their hash now and then. Multiply-shift (Dietzfelbinger et al. 1997): two flows share one of `n`
/// buckets under few of all keys.
#[inline]
pub fn rekeyed(flow: u64, key: [u64; 2]) -> u32 {
    ((flow ^ key[0]).wrapping_mul(key[1] | 1) >> 32) as u32
}

/// The first `bits` bits of eight bytes in memory order, as a mask over their little-endian word.
const fn leading(bits: u8) -> u64 {
    match bits {
        0 => 0,
        1..=63 => (u64::MAX << (64 - bits)).swap_bytes(),
        64.. => u64::MAX,
    }
}

#[inline]
fn halves(address: &[u8; 16]) -> [u64; 2] {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&address[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    [word(0), word(8)]
}

/// Folds to 32 bits; zero is kept for "no host".
#[inline]
fn nonzero(hash: u64) -> u32 {
    let folded = (hash ^ (hash >> 32)) as u32;
    folded | u32::from(folded == 0)
}

/// SipHash with one round a word and three at the end. Of the next round the part is done that no
/// word changes: for the first word that is so once for all packets.
#[derive(Clone, Copy)]
struct SipHash13([u64; 4]);

impl core::fmt::Debug for SipHash13 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("SipHash13(secret)")
    }
}

impl SipHash13 {
    #[inline]
    const fn new(key: HashKey) -> SipHash13 {
        let state = [
            key.k0 ^ 0x736f_6d65_7073_6575,
            key.k1 ^ 0x646f_7261_6e64_6f6d,
            key.k0 ^ 0x6c79_6765_6e65_7261,
            key.k1 ^ 0x7465_6462_7974_6573,
        ];
        SipHash13(state).lead()
    }

    /// The part of a round that the next word does not change.
    #[inline(always)]
    const fn lead(mut self) -> SipHash13 {
        let [v0, v1, _, _] = &mut self.0;
        *v0 = v0.wrapping_add(*v1);
        *v1 = v1.rotate_left(13) ^ *v0;
        *v0 = v0.rotate_left(32);
        self
    }

    /// The rest of a round.
    #[inline(always)]
    const fn follow(mut self) -> SipHash13 {
        let [v0, v1, v2, v3] = &mut self.0;
        *v2 = v2.wrapping_add(*v3);
        *v3 = v3.rotate_left(16) ^ *v2;
        *v0 = v0.wrapping_add(*v3);
        *v3 = v3.rotate_left(21) ^ *v0;
        *v2 = v2.wrapping_add(*v1);
        *v1 = v1.rotate_left(17) ^ *v2;
        *v2 = v2.rotate_left(32);
        self
    }

    #[inline(always)]
    const fn word(mut self, word: u64) -> SipHash13 {
        self.0[3] ^= word;
        self = self.follow();
        self.0[0] ^= word;
        self.lead()
    }

    /// Ends with the last, partial word of a message of `length` bytes.
    #[inline(always)]
    const fn finish(self, last: u64, length: u64) -> u64 {
        let mut state = self.word(last | length << 56);
        state.0[2] ^= 0xff;
        let state = state.follow().lead().follow().lead().follow().0;
        state[0] ^ state[1] ^ state[2] ^ state[3]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::hash::Hasher;

    fn oracle(bytes: &[u8]) -> u64 {
        let mut hasher = siphasher::sip::SipHasher13::new_with_keys(1, 2);
        hasher.write(bytes);
        hasher.finish()
    }

    #[test]
    fn a_key_is_not_printed() {
        let (key, hasher) =
            (HashKey::new(12_345, 67_890), FlowHasher::of_flows(HashKey::new(1, 2)));
        assert_eq!(std::format!("{key:?}"), "HashKey(secret)");
        assert!(std::format!("{hasher:?}").contains("SipHash13(secret)"));
    }

    #[test]
    fn agrees_with_an_independent_siphash() {
        let hasher = FlowHasher::new(HashKey::new(1, 2), 128);
        let v4 = hasher.hash(&Addresses::V4([10, 0, 0, 1], [10, 1, 0, 7]), 6, [0x1f, 0x90, 1, 187]);
        assert_eq!(v4.flow, oracle(&[10, 0, 0, 1, 10, 1, 0, 7, 0x1f, 0x90, 1, 187, 6]));
        assert_ne!(v4.src_host, v4.dst_host);

        let (src, dst) =
            (core::array::from_fn(|i| i as u8), core::array::from_fn(|i| 99 + i as u8));
        let v6 = hasher.hash(&Addresses::V6(src, dst), 17, [1, 2, 3, 4]);
        let mut message = std::vec::Vec::from(src);
        message.extend(dst);
        message.extend([1, 2, 3, 4, 17]);
        assert_eq!(v6.flow, oracle(&message));
        assert_eq!(v6.src_host, nonzero(oracle(&src)));
    }

    #[test]
    fn few_addresses_of_ipv4_share_a_place_whatever_their_pattern() {
        // 4,096 hosts in 1,024 places are 4 in each; by chance alone hardly ever 20.
        let patterns: [fn(u32) -> u32; 4] = [|n| n, |n| n << 20, |n| n << 8, |n| n * 0x1001];
        for key in 0..50 {
            let hasher = FlowHasher::new(HashKey::new(key, !key), 128);
            for pattern in patterns {
                let mut places = [[0u8; 1024]; 2];
                for n in 0..4096 {
                    let address = pattern(n).to_be_bytes();
                    let hash = hasher.hash(&Addresses::V4(address, address), 6, [0; 4]);
                    places[0][hash.src_host as usize % 1024] += 1;
                    places[1][hash.dst_host as usize % 1024] += 1;
                }
                assert!(places.iter().flatten().all(|&hosts| hosts <= 19));
            }
        }
    }

    /// Multiply-shift with odd numbers, in whole numbers of any length.
    #[test]
    fn words_are_hashed_by_multiplying_and_shifting() {
        let odd = |key: u64| u128::from(key) + 1 - u128::from(key % 2);
        let product = |x: u128, key: u64| x * odd(key) % (1 << 64);
        let keys = [1, 2, 0x1234_5678_9abc_def1, 0xfedc_ba98_7654_3210, u64::MAX];
        let words = [0, 1, 0x0a00_0001, 0xc0a8_01fe, 0xffff_ffff_ffff_ffff, 0x0123_4567_89ab_cdef];
        for (k0, k1) in keys.into_iter().flat_map(|k0| keys.map(|k1| (k0, k1))) {
            for word in words {
                let address = word as u32;
                let once = product(address.into(), k0);
                let hash = product(once ^ once >> 32, k1) >> 32;
                let host = HostKey::new(k0, k1).hash(address);
                assert_eq!(u128::from(host), hash.max(1), "{address} by {k0} and {k1}");
                let again = rekeyed(word, [k0, k1]);
                let differs = u128::from((word | k0) - (word & k0));
                assert_eq!(u128::from(again), product(differs, k1) >> 32, "{word}");
            }
        }
        for (hash, host) in [
            (0, 1),
            (0x1111_1111_1111_1111, 1),
            (0xffff_0000_0f0f_0f0f, 0xf0f0_0f0f),
            (0x0000_0001_0000_0000, 1),
            (0x0000_0000_8000_0000, 0x8000_0000),
        ] {
            assert_eq!(nonzero(hash), host, "{hash:#x}");
        }
    }

    #[test]
    fn hosts_are_left_out_where_nobody_needs_them() {
        let v4 = Addresses::V4([10, 0, 0, 1], [10, 1, 0, 7]);
        let v6 = Addresses::V6([1; 16], [2; 16]);
        let (all, flows) =
            (FlowHasher::new(HashKey::new(1, 2), 128), FlowHasher::of_flows(HashKey::new(1, 2)));
        for addresses in [v4, v6] {
            let expected =
                FlowHash { src_host: 0, dst_host: 0, ..all.hash(&addresses, 6, [1, 2, 3, 4]) };
            assert_eq!(flows.hash(&addresses, 6, [1, 2, 3, 4]), expected);
        }
    }

    #[test]
    fn a_prefix_makes_one_host_of_many_addresses() {
        let hasher = FlowHasher::new(HashKey::new(3, 4), 60);
        let mut src = [0xab; 16];
        let one = hasher.hash(&Addresses::V6(src, [1; 16]), 17, [0; 4]);
        src[15] = 1;
        src[7] ^= 0x0f;
        let same = hasher.hash(&Addresses::V6(src, [1; 16]), 17, [0; 4]);
        assert_eq!(one.src_host, same.src_host);
        assert_ne!(one.flow, same.flow);
        src[7] ^= 0x10;
        assert_ne!(one.src_host, hasher.hash(&Addresses::V6(src, [1; 16]), 17, [0; 4]).src_host);
    }
}
