//! Attributes written into bytes that are there.

use super::attribute::{aligned, HEADER};

/// A writer of attributes. Once it is full it writes nothing more, which [`Writer::finish`] tells.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut [u8],
    len: usize,
    is_full: bool,
}

/// The bytes were too few for what was to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

impl core::fmt::Display for Full {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("no room for all attributes")
    }
}

impl core::error::Error for Full {}

impl<'a> Writer<'a> {
    /// A writer into `out`, from its first byte on.
    pub fn new(out: &'a mut [u8]) -> Writer<'a> {
        Writer { out, len: 0, is_full: false }
    }

    /// Number of bytes written, if there was room for all.
    pub fn finish(self) -> Result<usize, Full> {
        if self.is_full {
            Err(Full)
        } else {
            Ok(self.len)
        }
    }

    /// Writes `bytes` as they are.
    pub fn bytes(&mut self, bytes: &[u8]) {
        match self.out.get_mut(self.len..).and_then(|room| room.get_mut(..bytes.len())) {
            Some(room) if !self.is_full => {
                for (to, from) in room.iter_mut().zip(bytes) {
                    *to = *from;
                }
                self.len += bytes.len();
            }
            _ => self.is_full = true,
        }
    }

    /// Writes numbers one after the other, as a C structure of them has them.
    pub fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.bytes(&word.to_ne_bytes()));
    }

    /// Writes an attribute that holds what `write` writes.
    pub fn nest(&mut self, number: u16, write: impl FnOnce(&mut Writer<'a>)) {
        let start = self.len;
        self.bytes(&[0; HEADER]);
        write(self);
        let len = self.len - start;
        self.bytes(&[0; 3][..aligned(len) - len]);
        let header = self.out.get_mut(start..).and_then(|out| out.first_chunk_mut::<HEADER>());
        match (header, u16::try_from(len)) {
            (Some(header), Ok(len)) if !self.is_full => {
                let ([a, b], [c, d]) = (len.to_ne_bytes(), number.to_ne_bytes());
                *header = [a, b, c, d];
            }
            _ => self.is_full = true,
        }
    }

    /// Writes an attribute.
    pub fn attribute(&mut self, number: u16, payload: &[u8]) {
        self.nest(number, |out| out.bytes(payload));
    }

    /// Writes an attribute of 32 bits.
    pub fn u32(&mut self, number: u16, value: u32) {
        self.attribute(number, &value.to_ne_bytes());
    }

    /// Writes an attribute of 64 bits. It need not be aligned.
    pub fn u64(&mut self, number: u16, value: u64) {
        self.attribute(number, &value.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::Attributes;

    #[test]
    fn what_is_written_is_read_back() {
        let mut room = [0xff; 64];
        let mut out = Writer::new(&mut room);
        out.attribute(3, &[1]);
        out.nest(4, |out| {
            out.u32(1, 7);
            out.u64(2, 9);
        });
        let len = out.finish().unwrap();
        assert_eq!((len, room[len]), (8 + 4 + 8 + 12, 0xff));
        let mut outer = Attributes::new(&room[..len]);
        assert_eq!(outer.next().unwrap().payload, [1]);
        let mut inner = Attributes::new(outer.next().unwrap().payload);
        assert_eq!(inner.next().unwrap().payload, 7u32.to_ne_bytes());
        assert_eq!(inner.next().unwrap().payload, 9u64.to_ne_bytes());
        assert_eq!((outer.next(), inner.next(), outer.rest()), (None, None, &[][..]));
    }

    #[test]
    fn too_little_room_is_told_however_little() {
        for room in 0..28 {
            let mut room = std::vec![0; room];
            let mut out = Writer::new(&mut room);
            out.nest(4, |out| {
                out.u32(1, 7);
                out.nest(2, |out| out.attribute(2, &[1, 2, 3, 4, 5]));
            });
            assert_eq!(out.finish(), Err(Full));
        }
        // Once full it writes nothing more, however short: no header before what is not all there.
        let mut room = [0; 8];
        let mut out = Writer::new(&mut room);
        out.nest(4, |out| out.bytes(&[1; 5]));
        out.bytes(&[2]);
        assert_eq!((out.finish(), room), (Err(Full), [0; 8]));
        assert_eq!(std::format!("{Full}"), "no room for all attributes");
        let mut room = std::vec![0; 70_000];
        let mut out = Writer::new(&mut room);
        out.attribute(1, &[0; 66_000]);
        assert_eq!(out.finish(), Err(Full));
    }
}
