//! Bits of the packet mark that are ours.

use crate::error::Error;

/// The two bits of the packet mark that carry a discipline's decision from the verdict to the chain
/// behind it. They belong to us; all other bits stay as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkBits {
    mask: u32,
}

impl MarkBits {
    /// Bits 28 and 29, unless somebody uses them (`marks.rs`).
    pub const DEFAULT: MarkBits = MarkBits { mask: 0x3000_0000 };

    /// The bits of `mask`, which must be two.
    ///
    /// # Errors
    /// [`Error::MarkMask`] if there are more or fewer.
    pub fn new(mask: u32) -> Result<MarkBits, Error> {
        if mask.count_ones() == 2 {
            Ok(MarkBits { mask })
        } else {
            Err(Error::MarkMask(mask))
        }
    }

    /// Both bits.
    pub const fn mask(self) -> u32 {
        self.mask
    }

    /// Set CE.
    pub(crate) const fn ce(self) -> u32 {
        1 << self.mask.trailing_zeros()
    }

    /// Clear the DSCP.
    pub(crate) const fn wash(self) -> u32 {
        self.mask & !self.ce()
    }
}

impl Default for MarkBits {
    fn default() -> MarkBits {
        MarkBits::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_two_bits() {
        let bits = MarkBits::new(0x8001_0000).unwrap();
        assert_eq!((bits.ce(), bits.wash()), (0x1_0000, 0x8000_0000));
        assert!(MarkBits::new(0x7).is_err() && MarkBits::new(0).is_err());
    }
}
