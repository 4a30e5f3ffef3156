//! Statistics of a discipline as a table, by which they are written, and read with their names.

use super::attribute::{Attribute, Attributes};
use super::writer::Writer;

/// Statistics `S` as `TCA_STATS_APP` has them.
pub(crate) enum Statistics<S: 'static> {
    /// A C structure of numbers, one after the other without gaps.
    Structure(&'static [Statistic<S>]),
    /// Attributes with their numbers, in the order in which Linux dumps them.
    Attributes(&'static [(u16, Statistic<S>)]),
}

/// A number among statistics `S`: its name, and how it is read off `S`.
pub(crate) enum Statistic<S> {
    /// 32 bits.
    U32(&'static str, fn(&S) -> u32),
    /// 64 bits.
    U64(&'static str, fn(&S) -> u64),
    /// Parts of the discipline: a nest of nests, the writer of what is in it, and the name of an
    /// attribute of a part.
    Parts(fn(&S, &mut Writer<'_>), fn(u16) -> Option<&'static str>),
}

/// A number that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The number of the part that it is of, if it is of one.
    pub part: Option<u16>,
    /// Its name, if it is known.
    pub name: Option<&'static str>,
    /// Its place in the structure, or the attribute's number.
    pub number: u16,
    /// Its value.
    pub value: u64,
}

impl<S> Statistics<S> {
    /// True if these are attributes.
    pub const fn is_nested(&self) -> bool {
        matches!(self, Statistics::Attributes(_))
    }

    /// Writes `stats`.
    pub fn write(&self, stats: &S, out: &mut Writer<'_>) {
        match self {
            Statistics::Structure(all) => all.iter().for_each(|one| match one {
                Statistic::U32(_, get) => out.bytes(&get(stats).to_ne_bytes()),
                Statistic::U64(_, get) => out.bytes(&get(stats).to_ne_bytes()),
                Statistic::Parts(..) => {}
            }),
            Statistics::Attributes(all) => all.iter().for_each(|(number, one)| match one {
                Statistic::U32(_, get) => out.u32(*number, get(stats)),
                Statistic::U64(_, get) => out.u64(*number, get(stats)),
                Statistic::Parts(write, _) => out.nest(*number, |out| write(stats, out)),
            }),
        }
    }

    /// The name of the attribute `number`, if it is known.
    pub fn name(&self, number: u16) -> Option<&'static str> {
        match self.attribute(number)? {
            Statistic::U32(name, _) | Statistic::U64(name, _) => Some(name),
            Statistic::Parts(..) => None,
        }
    }

    fn attribute(&self, number: u16) -> Option<&'static Statistic<S>> {
        let Statistics::Attributes(all) = self else { return None };
        all.iter().find(|(known, _)| *known == number).map(|(_, one)| one)
    }

    /// Calls `each` for the numbers in `bytes`, from left to right.
    pub fn read(&self, bytes: &[u8], each: &mut dyn FnMut(Figure)) {
        match self {
            Statistics::Structure(all) => {
                let (mut rest, mut all) = (bytes, all.iter());
                for number in 0.. {
                    let (name, width) = match all.next() {
                        Some(Statistic::U32(name, _)) => (Some(*name), 4),
                        Some(Statistic::U64(name, _)) => (Some(*name), 8),
                        Some(Statistic::Parts(..)) | None => (None, 4),
                    };
                    let Some((one, behind)) = rest.split_at_checked(width) else { return };
                    rest = behind;
                    value(one).into_iter().for_each(|value| {
                        each(Figure { part: None, name, number, value });
                    });
                }
            }
            Statistics::Attributes(_) => {
                for one in Attributes::new(bytes) {
                    if let Some(Statistic::Parts(_, name)) = self.attribute(one.number) {
                        for part in Attributes::new(one.payload) {
                            for one in Attributes::new(part.payload) {
                                figure(Some(part.number), name(one.number), one, each);
                            }
                        }
                    } else {
                        figure(None, self.name(one.number), one, each);
                    }
                }
            }
        }
    }
}

/// Calls `each` for `attribute`, if it is a number.
fn figure(
    part: Option<u16>,
    name: Option<&'static str>,
    attribute: Attribute<'_>,
    each: &mut dyn FnMut(Figure),
) {
    if let Some(value) = value(attribute.payload) {
        each(Figure { part, name, number: attribute.number, value });
    }
}

/// The number that `bytes` are; None if they are of neither width.
fn value(bytes: &[u8]) -> Option<u64> {
    let long = || bytes.try_into().ok().map(u64::from_ne_bytes);
    bytes.try_into().ok().map(|word| u32::from_ne_bytes(word).into()).or_else(long)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Part, name, number and value of each figure in `bytes`.
    fn read<S>(table: &Statistics<S>, bytes: &[u8]) -> Vec<(Option<u16>, &'static str, u16, u64)> {
        let mut all = Vec::new();
        table.read(bytes, &mut |figure| {
            all.push((figure.part, figure.name.unwrap_or("?"), figure.number, figure.value));
        });
        all
    }

    #[test]
    fn a_structure_is_read_with_its_names() {
        const TABLE: Statistics<u64> = Statistics::Structure(&[
            Statistic::U64("long", |stats| *stats),
            Statistic::U32("short", |stats| *stats as u32),
        ]);
        let mut room = [9; 19];
        let mut out = Writer::new(&mut room);
        TABLE.write(&(3 << 32 | 7), &mut out);
        assert_eq!(out.finish(), Ok(12));
        let known = [(None, "long", 0, 3 << 32 | 7), (None, "short", 1, 7)];
        assert_eq!(read(&TABLE, &room[..12]), known);
        assert_eq!(read(&TABLE, &room[..11]), known[..1]);
        // What Linux has added behind; three bytes are no number.
        assert_eq!(read(&TABLE, &room)[2..], [(None, "?", 2, 0x0909_0909)]);
        assert!(!TABLE.is_nested());
    }

    #[test]
    fn attributes_are_read_with_their_names_and_parts() {
        const PART: Statistics<u32> =
            Statistics::Attributes(&[(8, Statistic::U32("marks", |marks| *marks))]);
        const TABLE: Statistics<[u32; 2]> = Statistics::Attributes(&[
            (4, Statistic::U64("sum", |both| both.iter().map(|one| u64::from(*one)).sum())),
            (
                3,
                Statistic::Parts(
                    |both, out| {
                        for (number, one) in (1..).zip(both) {
                            out.nest(number, |out| PART.write(one, out));
                        }
                    },
                    |number| PART.name(number),
                ),
            ),
        ]);
        let mut room = [0; 128];
        let mut out = Writer::new(&mut room);
        TABLE.write(&[5, 6], &mut out);
        out.u32(17, 1);
        // As many bytes as no number has.
        out.attribute(4, &[1, 2]);
        let length = out.finish().unwrap();
        let all = [
            (None, "sum", 4, 11),
            (Some(1), "marks", 8, 5),
            (Some(2), "marks", 8, 6),
            (None, "?", 17, 1),
        ];
        assert_eq!(read(&TABLE, &room[..length]), all);
        assert!(TABLE.is_nested());
        for cut in 0..length {
            assert!(read(&TABLE, &room[..cut]).len() <= all.len());
        }
    }
}
