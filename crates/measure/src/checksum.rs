//! The Internet checksum (RFC 1071): ones' complement of the ones' complement sum of 16-bit words.

/// A sum that is being made, of parts whose lengths are even, but for the last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum(u32);

impl Sum {
    /// Adds `bytes`, of at most 64 KiB. An odd one at the end is the first of a word.
    pub fn add(&mut self, bytes: &[u8]) {
        let (words, odd) = bytes.as_chunks::<2>();
        let words = words.iter().map(|word| u32::from(u16::from_be_bytes(*word)));
        let last = odd.first().map_or(0, |byte| u32::from(*byte) << 8);
        let sum = self.0 + words.sum::<u32>() + last;
        self.0 = (sum >> 16) + (sum & 0xffff);
    }

    /// The sum, not complemented.
    pub fn folded(self) -> u16 {
        ((self.0 >> 16) + (self.0 & 0xffff)) as u16
    }
}

/// The checksum of `bytes`, of at most 64 KiB.
pub fn checksum(bytes: &[u8]) -> u16 {
    let mut sum = Sum::default();
    sum.add(bytes);
    !sum.folded()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 1071, section 3; a sum whose carry carries once more; odd ends.
    #[test]
    fn the_checksum_is_the_rfc_s() {
        assert_eq!(checksum(&[0, 1, 0xf2, 3, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0xff, 0xff, 0xff, 0xff, 0, 1]), !1);
        assert_eq!(checksum(&[0xff, 0xff, 1]), !0x0100);
        assert_eq!(checksum(&[]), 0xffff);
        assert_eq!(checksum(&[0xff; 1 << 16]), 0);
    }

    #[test]
    fn parts_sum_up_to_the_whole() {
        let bytes: Vec<u8> = (0..=255).cycle().take(70_000).collect();
        let mut sum = Sum::default();
        bytes.chunks(62_000).for_each(|part| sum.add(part));
        let mut single = Sum::default();
        bytes.chunks(2).for_each(|word| single.add(word));
        assert_eq!(sum.folded(), single.folded());
    }
}
