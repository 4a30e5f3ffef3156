//! ECN and DSCP back into bytes: the last step of a mark or a wash.
//!
//! Only the TOS octet (RFC 2474, RFC 3168) or traffic class of the outermost IP header changes. At
//! a tunnel's end the inner header takes over a mark (RFC 6040). IPv4's header checksum is brought
//! up to date from the difference alone (RFC 1624, equation 3). So a checksum that was wrong before
//! stays wrong, and nobody downstream is deceived.
//!
//! These accept exactly the packets that `classify` flags as IPv4 or IPv6; all others, and short
//! captures, are left untouched.

use super::ip::{IPV4_HEADER, IPV6_HEADER};
use super::link::{locate, LinkLayer, Network};

/// Sets CE on an ECN-capable packet; says whether the packet now carries CE.
pub fn set_ecn_ce(link: LinkLayer, bytes: &mut [u8]) -> bool {
    change_tos(link, bytes, |tos| if tos & 3 == 0 { tos } else { tos | 3 })
        .is_some_and(|tos| tos & 3 == 3)
}

/// Clears the DSCP and keeps the ECN field; says whether this is an IP packet.
pub fn clear_dscp(link: LinkLayer, bytes: &mut [u8]) -> bool {
    change_tos(link, bytes, |tos| tos & 3).is_some()
}

/// Sets the whole octet, DSCP and ECN; says whether this is an IP packet.
pub fn set_tos(link: LinkLayer, bytes: &mut [u8], tos: u8) -> bool {
    change_tos(link, bytes, |_| tos).is_some()
}

/// Applies `change` to the octet and returns the result; None if there is no complete IP header.
fn change_tos(link: LinkLayer, bytes: &mut [u8], change: impl Fn(u8) -> u8) -> Option<u8> {
    let located = locate(link, bytes);
    if located.network != Network::Ip {
        return None;
    }
    let network = bytes.get_mut(located.offset..)?;
    match *network.first()? {
        first @ 0x45..=0x4f => {
            let header = network.first_chunk_mut::<IPV4_HEADER>()?;
            let old = header[1];
            let new = change(old);
            header[1] = new;
            let checksum = u16::from_be_bytes([header[10], header[11]]);
            let word = |tos| u16::from_be_bytes([first, tos]);
            [header[10], header[11]] = updated(checksum, word(old), word(new)).to_be_bytes();
            Some(new)
        }
        first @ 0x60..=0x6f => {
            let header = network.first_chunk_mut::<IPV6_HEADER>()?;
            let new = change(first << 4 | header[1] >> 4);
            header[0] = 0x60 | new >> 4;
            header[1] = new << 4 | header[1] & 0x0f;
            Some(new)
        }
        _ => None,
    }
}

/// The internet checksum after the 16-bit word `old` became `new`: ~(~C + ~old + new) in ones'
/// complement. The form matters: it never yields the second zero where full addition would not.
fn updated(checksum: u16, old: u16, new: u16) -> u16 {
    if old == new {
        return checksum;
    }
    let sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ones' complement sum of ten words, complemented.
    fn full(words: [u16; 10]) -> u16 {
        let mut sum: u32 = words.iter().map(|word| u32::from(*word)).sum();
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    #[test]
    fn incremental_equals_full_for_every_octet() {
        for (from, to) in (0..=255u8).flat_map(|from| (0..=255u8).map(move |to| (from, to))) {
            let mut words = [0x4500 | u16::from(from), 84, 7, 0x4000, 0x4001, 0, 0x0a00, 1, 9, 2];
            words[2] = u16::from(to) * 257;
            let before = full(words);
            words[0] = 0x4500 | u16::from(to);
            assert_eq!(
                updated(before, 0x4500 | u16::from(from), words[0]),
                full(words),
                "{from:#x} to {to:#x}"
            );
        }
    }

    #[test]
    fn a_carry_of_the_carry_counts() {
        // 0xffff + 0xffff + 1 is 0x1_ffff: its carry makes another one.
        assert_eq!(updated(0, 0, 1), 0xfffe);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // Section 4: the older equation gives 0xffff here.
        assert_eq!(updated(0xdd2f, 0x5555, 0x3285), 0x0000);
    }
}
