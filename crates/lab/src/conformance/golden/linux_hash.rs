//! The hashes by which Linux tells flows and hosts apart, rebuilt from a key.
//!
//! SipHash-2-4 over the flow keys' fixed layout: protocols, then tags, VLANs, key id, ports and
//! ICMP, then both addresses. Addresses and ports are each put in order first, so that both
//! directions of a connection hash alike.
//!
//! *Hosts* (cake): a recording prints `srchash=` and `dsthash=`, computed over keys without a
//! network protocol. The kernel hashes with it, and so indexes its host table by another number. In
//! the modes that hash hosts only, it indexes its queues by that number, too. All is zero there but
//! the network protocol and one address, which comes second by the order. The layout was found by
//! looking for the one that gives the printed hashes; with the protocol in it, it gives the printed
//! queues.
//!
//! *Flows* (sfq): the discipline draws keys of its own, and hashes what is queued anew with each.

use std::hash::Hasher;
use std::net::IpAddr;

use siphasher::sip::SipHasher24;

/// Between the protocols and the ports: flow label, two VLAN tags, key id.
const BEFORE_PORTS: [u8; 24] = [0; 24];
/// Between the ports and the addresses: ICMP.
const AFTER_PORTS: [u8; 4] = [0; 4];
/// The keys end at a multiple of eight bytes.
const PADDING: [u8; 4] = [0; 4];

/// The hash of `address` under `key`.
pub(super) fn host_hash(key: (u64, u64), address: IpAddr) -> u32 {
    let none = match address {
        IpAddr::V4(_) => IpAddr::from([0; 4]),
        IpAddr::V6(_) => IpAddr::from([0; 16]),
    };
    hash(key, 0, [0; 2], [none, address])
}

/// The hash of a flow under `key`; None if the two addresses are of different families.
pub(super) fn flow_hash(
    key: (u64, u64),
    protocol: u8,
    [source, destination]: [(IpAddr, u16); 2],
) -> Option<u32> {
    // Ports and IPv4 addresses are compared as a little-endian machine finds them in the packet.
    let mut ports = [source.1, destination.1];
    ports.sort_unstable_by_key(|port| port.swap_bytes());
    let mut addresses = [source.0, destination.0];
    match addresses {
        [IpAddr::V4(_), IpAddr::V4(_)] => addresses.sort_unstable_by_key(|address| match address {
            IpAddr::V4(address) => u32::from_le_bytes(address.octets()),
            IpAddr::V6(_) => 0,
        }),
        [IpAddr::V6(_), IpAddr::V6(_)] => addresses.sort_unstable(),
        _ => return None,
    }
    Some(hash(key, protocol, ports, addresses))
}

fn hash((key0, key1): (u64, u64), protocol: u8, ports: [u16; 2], addresses: [IpAddr; 2]) -> u32 {
    let mut hasher = SipHasher24::new_with_keys(key0, key1);
    hasher.write(if addresses[0].is_ipv4() { &[0x08, 0x00] } else { &[0x86, 0xdd] });
    hasher.write(&[protocol, 0]);
    hasher.write(&BEFORE_PORTS);
    ports.iter().for_each(|port| hasher.write(&port.to_be_bytes()));
    hasher.write(&AFTER_PORTS);
    for address in addresses {
        match address {
            IpAddr::V4(address) => hasher.write(&address.octets()),
            IpAddr::V6(address) => hasher.write(&address.octets()),
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

    #[test]
    fn gives_the_hash_of_a_recorded_flow() {
        // sfq/perturb: 10.0.0.1,10.1.0.16,1129,80,17.
        let key = (5_101_603_666_707_859_987, 16_026_105_275_427_366_015);
        let end = |address: &str, port| (address.parse().unwrap(), port);
        let (source, destination) = (end("10.0.0.1", 1129), end("10.1.0.16", 80));
        let forward = flow_hash(key, 17, [source, destination]);
        assert_eq!(forward, Some(2_784_902_838));
        assert_eq!(flow_hash(key, 17, [destination, source]), forward);
        assert_eq!(flow_hash(key, 17, [source, end("::1", 80)]), None);
    }
}
