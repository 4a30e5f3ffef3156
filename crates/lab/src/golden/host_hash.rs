//! The hash by which Linux's cake tells hosts apart.
//!
//! A recording prints `srchash=` and `dsthash=`, computed over flow keys without a network
//! protocol; the kernel hashes with it, and so indexes its host table (and, in the modes that hash
//! hosts only, its queues) by another number. That number is rebuilt here from the recording's hash
//! key: SipHash-2-4 over the flow keys' fixed layout, all zero but the protocol and one address,
//! which stands in the second place since Linux puts the two in order first. It was found by
//! looking for the layout that gives the printed hashes; with the protocol in it, it gives the
//! printed queues.

use std::hash::Hasher;
use std::net::IpAddr;

use siphasher::sip::SipHasher24;

/// Tags, VLANs, key id, ports and ICMP: everything between the protocol and the addresses.
const UNUSED: [u8; 32] = [0; 32];
/// The keys end at a multiple of eight bytes.
const PADDING: [u8; 4] = [0; 4];

/// The hash of `address` under the recording's `key0` and `key1`.
pub(super) fn host_hash((key0, key1): (u64, u64), address: IpAddr) -> u32 {
    let mut hasher = SipHasher24::new_with_keys(key0, key1);
    match address {
        IpAddr::V4(address) => {
            hasher.write(&[0x08, 0x00, 0, 0]);
            hasher.write(&UNUSED);
            hasher.write(&[0; 4]);
            hasher.write(&address.octets());
        }
        IpAddr::V6(address) => {
            hasher.write(&[0x86, 0xdd, 0, 0]);
            hasher.write(&UNUSED);
            hasher.write(&[0; 16]);
            hasher.write(&address.octets());
        }
    }
    hasher.write(&PADDING);
    // Linux keeps zero for "not hashed".
    (hasher.finish() as u32).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_the_queue_of_a_recording_in_srchost_mode() {
        // cake-fairness/srchost-5flows: 10.0.0.2 is served from queue 729.
        let key = (16_087_627_446_496_450_036, 8_605_160_114_021_949_717);
        assert_eq!(host_hash(key, "10.0.0.2".parse().unwrap()) % 1024, 729);
    }
}
