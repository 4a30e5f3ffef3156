//! The cursor over attributes.

/// Bytes of an attribute's header: its length and its number.
pub(super) const HEADER: usize = 4;
/// Flag in an attribute's number: it holds attributes.
const NESTED: u16 = 1 << 15;
/// Flag in an attribute's number: it is big-endian. No discipline looks at it.
const BIG_ENDIAN: u16 = 1 << 14;

/// Contents of an attribute `TCA_OPTIONS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options<'a> {
    /// Bytes behind its header.
    pub payload: &'a [u8],
    /// True if its number has the flag `NLA_F_NESTED`, which some disciplines insist on.
    pub is_nested: bool,
}

/// One attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Number, without flags.
    pub number: u16,
    /// True if the sender says that it holds attributes.
    pub is_nested: bool,
    /// Place of its header among the bytes that are read.
    pub offset: usize,
    /// Bytes behind its header.
    pub payload: &'a [u8],
}

/// Attributes from left to right, up to the first that does not fit into the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    offset: usize,
}

/// `len` rounded up to where the next attribute begins.
pub(super) const fn aligned(len: usize) -> usize {
    len.next_multiple_of(4)
}

impl<'a> Attributes<'a> {
    /// The attributes in `bytes`.
    pub fn new(bytes: &'a [u8]) -> Attributes<'a> {
        Attributes { bytes, offset: 0 }
    }

    /// Bytes that have not been read: those that are no attribute, once there is none any more.
    pub fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.offset..).unwrap_or_default()
    }

    /// Place of [`Attributes::rest`].
    pub fn offset(&self) -> usize {
        self.offset.min(self.bytes.len())
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Attribute<'a>> {
        let (header, _) = self.rest().split_first_chunk::<HEADER>()?;
        let [len, number] = [[header[0], header[1]], [header[2], header[3]]];
        let (len, number) = (usize::from(u16::from_ne_bytes(len)), u16::from_ne_bytes(number));
        let payload = self.rest().get(HEADER..len)?;
        let offset = self.offset;
        self.offset += aligned(len);
        Some(Attribute {
            number: number & !(NESTED | BIG_ENDIAN),
            is_nested: number & NESTED != 0,
            offset,
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    fn header(len: u16, number: u16) -> [u8; 4] {
        let ([a, b], [c, d]) = (len.to_ne_bytes(), number.to_ne_bytes());
        [a, b, c, d]
    }

    #[test]
    fn attributes_end_where_one_does_not_fit() {
        let mut bytes = Vec::new();
        bytes.extend(header(5, 7 | NESTED));
        bytes.extend([1, 0, 0, 0]);
        bytes.extend(header(4, 8));
        for (broken, left) in [
            (&[][..], 0),
            (&header(3, 9)[..], 4),
            (&header(9, 9)[..], 4),
            (&[1, 2, 3][..], 3),
            (&header(0, 0)[..], 4),
        ] {
            let all = [&bytes[..], broken].concat();
            let mut attributes = Attributes::new(&all);
            let read: Vec<_> = attributes.by_ref().collect();
            let numbers: Vec<_> = read.iter().map(|a| (a.number, a.is_nested, a.offset)).collect();
            assert_eq!(numbers, [(7, true, 0), (8, false, 8)]);
            assert_eq!((read[0].payload, read[1].payload), (&[1][..], &[][..]));
            assert_eq!((attributes.rest().len(), attributes.offset()), (left, 12));
        }
    }

    #[test]
    fn the_last_attribute_needs_no_padding() {
        let mut bytes = header(6, 1).to_vec();
        bytes.extend([1, 2]);
        let mut attributes = Attributes::new(&bytes);
        assert_eq!(attributes.next().map(|attribute| attribute.payload), Some(&[1, 2][..]));
        assert_eq!((attributes.next(), attributes.rest().len()), (None, 0));
    }
}
