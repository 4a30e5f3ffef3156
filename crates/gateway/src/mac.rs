//! Hardware addresses.

use std::fmt;

/// An Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mac(pub [u8; 6]);

impl Mac {
    pub(crate) fn number(&self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        u64::from_be_bytes([0, 0, a, b, c, d, e, f])
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

#[cfg(test)]
mod tests {
    use super::Mac;

    #[test]
    fn an_address_is_told_and_counted_from_its_first_byte() {
        let address = Mac([2, 3, 4, 5, 6, 0xf7]);
        assert_eq!(address.number(), 0x0203_0405_06f7);
        assert_eq!(address.to_string(), "02:03:04:05:06:f7");
    }
}
