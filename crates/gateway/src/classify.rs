//! From the bytes that the kernel copied to a packet descriptor.
//!
//! NFQUEUE hands over packets from the IP header on. Their `len` counts 14 bytes of Ethernet more,
//! as a discipline of the kernel would see them, so that `overhead` settings mean the same in both
//! homes.

use simnel_core::flow::HashKey;
use simnel_core::wire::LinkLayer;

/// Bytes that precede each packet on the wire and are not in NFQUEUE's copy.
pub(crate) const LINK: LinkLayer = LinkLayer::Ip { link_header: 14 };

/// A fresh random key for flow hashes, or the reason why the kernel gives none.
pub(crate) fn random_key() -> std::io::Result<HashKey> {
    let mut bytes = [0u8; 16];
    let read = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    debug_assert_eq!(read, bytes.len(), "so few bytes come whole");
    let key = u128::from_le_bytes(bytes);
    Ok(HashKey::new(key as u64, (key >> 64) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_can_know_the_next_key() {
        let keys: Vec<HashKey> = (0..8).map(|_| random_key().unwrap()).collect();
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key));
        }
    }
}
