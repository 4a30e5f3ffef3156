//! Random bytes as numbers. Past the end everything is zero, so every input is a valid one.

/// A reader over one fuzz input.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Reads `bytes` from the start.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input(bytes)
    }

    /// True once all bytes were read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn u8(&mut self) -> u8 {
        let [byte] = self.array();
        byte
    }

    /// The next two bytes.
    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    /// The next four bytes.
    pub fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// The next eight bytes.
    pub fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number of any magnitude from two bytes: a mantissa and how far to shift it. Sizes, rates
    /// and times span ten orders of magnitude, and a plain integer is nearly always huge.
    pub fn magnitude(&mut self) -> u64 {
        let [mantissa, shift] = self.array();
        u64::from(mantissa) << (shift % 57)
    }

    /// The next `length` bytes, or as many as there are.
    pub fn bytes(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let taken = self.bytes(N);
        std::array::from_fn(|i| taken.get(i).copied().unwrap_or(0))
    }
}
