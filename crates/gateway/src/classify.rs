//! From the bytes that the kernel copied to a packet descriptor.
//!
//! NFQUEUE hands over packets from the IP header on. Their `len` counts 14 bytes of Ethernet more,
//! as a discipline of the kernel would see them. So `overhead` settings mean the same in both
//! homes.

use simnel_core::flow::HashKey;
use simnel_core::wire::LinkLayer;

/// Bytes that precede each packet on the wire and are not in NFQUEUE's copy.
pub(crate) const LINK: LinkLayer = LinkLayer::Ip { link_header: 14 };

/// Headers of PPPoE and PPP.
const PPPOE: usize = 8;

/// Part of a packet with this EtherType to read. Gives the length of all headers in front of it,
/// copied by NFQUEUE or not; its bytes; and the bytes of the copy skipped. PPPoE is only seen
/// between a bridge's ports.
#[inline]
pub(crate) fn network(protocol: u16, bytes: &[u8]) -> (LinkLayer, &[u8], u32) {
    match (protocol, bytes) {
        (0x8864, [_, _, _, _, _, _, 0x00, 0x21 | 0x57, inner @ ..]) => {
            (LinkLayer::Ip { link_header: 14 + PPPOE as u8 }, inner, PPPOE as u32)
        }
        _ => (LINK, bytes, 0),
    }
}

/// A fresh random key for flow hashes, or the reason why the kernel gives none.
pub(crate) fn random_key() -> std::io::Result<HashKey> {
    let mut bytes = [0u8; 16];
    let read = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    debug_assert_eq!(read, bytes.len(), "so few bytes come whole");
    Ok(key_of(bytes))
}

/// The key of all these bytes.
fn key_of(bytes: [u8; 16]) -> HashKey {
    let key = u128::from_le_bytes(bytes);
    HashKey::new(key as u64, (key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pppoe_is_stepped_over_where_ip_is_in_it() {
        let session = |high, low| [0x11, 0, 0, 1, 0, 4, high, low, 0x45, 0x00];
        let inner: (LinkLayer, &[u8], u32) = (LinkLayer::Ip { link_header: 22 }, &[0x45, 0x00], 8);
        assert_eq!(network(0x8864, &session(0, 0x21)), inner);
        assert_eq!(network(0x8864, &session(0, 0x57)), inner);
        // The link control protocol; another EtherType; cut short.
        let control = session(0xc0, 0x21);
        assert_eq!(network(0x8864, &control), (LINK, &control[..], 0));
        let bytes = session(0, 0x21);
        assert_eq!(network(0x0800, &bytes), (LINK, &bytes[..], 0));
        assert_eq!(network(0x8864, &bytes[..7]), (LINK, &bytes[..7], 0));
    }

    #[test]
    fn nobody_can_know_the_next_key() {
        let keys: Vec<HashKey> = (0..8).map(|_| random_key().unwrap()).collect();
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key));
        }
    }

    #[test]
    fn all_bytes_of_a_key_count() {
        let bytes = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
        let key = HashKey::new(0x0807_0605_0403_0201, 0x100f_0e0d_0c0b_0a09);
        assert!(key_of(bytes) == key);
    }
}
