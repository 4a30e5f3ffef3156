//! Attributes of a discipline as a table, by which they are read and written.
//!
//! As Linux does: first all attributes are looked at in their order, each against what is declared
//! for its number. Then the values are taken in the table's order, which is that of dumps. Of
//! attributes with the same number the last counts.

use super::attribute::{Attribute, Attributes, Options};
use super::error::{Error, Problem};
use super::writer::Writer;
use crate::time::Span;

/// Strictness of Linux about a discipline's attributes, which depends on the discipline's age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rules {
    /// Unknown attributes, bytes too many and bytes behind the last attribute are ignored.
    Liberal,
    /// All of that is an error.
    Strict,
}

/// The attributes of settings `P`.
pub(crate) struct Table<P: 'static> {
    /// Strictness of Linux about them.
    pub rules: Rules,
    /// Attributes with a meaning, in the order in which Linux dumps them.
    pub fields: &'static [Field<P>],
}

/// One attribute of settings `P`.
pub(crate) struct Field<P: 'static> {
    name: &'static str,
    number: u16,
    access: Access<P>,
    /// Least and largest value, and what a value is refused with that is neither.
    range: Option<(i64, i64, Option<&'static str>)>,
    is_fixed: bool,
    is_required: bool,
    is_unsupported: bool,
    is_strict: bool,
}

/// A value's kind and the way to it.
enum Access<P: 'static> {
    /// 32 bits that are a member of the settings.
    Number(Member<P, u32>),
    /// 32 bits, of which any of these says yes.
    Flag(u32, Member<P, bool>),
    /// Microseconds in 32 bits of a time that is kept in such units.
    Micros(Span, Member<P, Span>),
    U8(Get<P, u8>, Set<P, u8>),
    U32(Get<P, u32>, Set<P, u32>),
    I32(Get<P, i32>, Set<P, i32>),
    U64(Get<P, u64>, Set<P, u64>),
    Struct(Layout<P>),
    /// Bits and which of them count (`struct nla_bitfield32`); these ones are known.
    Bits(u32, Layout<P>),
    /// So many bytes, which are looked at by themselves.
    Bytes(usize),
}

/// The way to a member of settings.
type Member<P, T> = fn(&mut P) -> &mut T;

/// A C structure of numbers, one after the other without gaps.
pub(crate) struct Layout<P: 'static>(pub &'static [Part<P>]);

/// A number of a structure, how it is read off `P`, and how it is set.
pub(crate) enum Part<P: 'static> {
    /// 8 bits.
    U8(fn(&P) -> u8, fn(&mut P, u8)),
    /// 32 bits.
    U32(fn(&P) -> u32, fn(&mut P, u32)),
}

impl<P> Layout<P> {
    /// Bytes of the structure.
    pub const fn width(&self) -> usize {
        let (mut width, mut n) = (0, 0);
        while n < self.0.len() {
            width += self.0[n].width();
            n += 1;
        }
        width
    }

    /// Takes all of `bytes` that are there; parts without bytes stay as they are.
    pub fn read(&self, bytes: &[u8], params: &mut P) {
        let mut rest = bytes;
        for part in self.0 {
            let Some((value, behind)) = rest.split_at_checked(part.width()) else { return };
            rest = behind;
            match part {
                Part::U8(_, set) => set(params, u8::from_ne_bytes(first(value))),
                Part::U32(_, set) => set(params, u32::from_ne_bytes(first(value))),
            }
        }
    }

    /// Writes the structure.
    pub fn write(&self, params: &P, out: &mut Writer<'_>) {
        for part in self.0 {
            match part {
                Part::U8(get, _) => out.bytes(&get(params).to_ne_bytes()),
                Part::U32(get, _) => out.bytes(&get(params).to_ne_bytes()),
            }
        }
    }
}

impl<P> Part<P> {
    const fn width(&self) -> usize {
        match self {
            Part::U8(..) => 1,
            Part::U32(..) => 4,
        }
    }
}

/// Reads a value off settings, if it is to be shown.
type Get<P, T> = fn(&P) -> Option<T>;
/// Sets a value.
type Set<P, T> = fn(&mut P, T);

impl<P> Access<P> {
    /// Bytes of the value.
    const fn width(&self) -> usize {
        match self {
            Access::U8(..) => 1,
            Access::Number(_) | Access::Flag(..) | Access::Micros(..) => 4,
            Access::U32(..) | Access::I32(..) => 4,
            Access::U64(..) => 8,
            Access::Struct(layout) | Access::Bits(_, layout) => layout.width(),
            Access::Bytes(width) => *width,
        }
    }

    /// Sets the value that `payload` begins with.
    fn set(&self, params: &mut P, payload: &[u8]) {
        let word = || u32::from_ne_bytes(first(payload));
        match self {
            Access::Number(member) => *member(params) = word(),
            Access::Flag(kept, member) => *member(params) = word() & kept != 0,
            Access::Micros(_, member) => *member(params) = Span::from_micros(word().into()),
            Access::U8(_, set) => set(params, u8::from_ne_bytes(first(payload))),
            Access::U32(_, set) => set(params, word()),
            Access::I32(_, set) => set(params, i32::from_ne_bytes(first(payload))),
            Access::U64(_, set) => set(params, u64::from_ne_bytes(first(payload))),
            Access::Struct(layout) | Access::Bits(_, layout) => layout.read(payload, params),
            Access::Bytes(_) => {}
        }
    }

    /// Writes the value as an attribute, if it is to be shown.
    fn write(&self, number: u16, params: &mut P, out: &mut Writer<'_>) {
        fn put<const N: usize>(number: u16, value: Option<[u8; N]>, out: &mut Writer<'_>) {
            if let Some(bytes) = value {
                out.attribute(number, &bytes);
            }
        }
        match self {
            Access::Number(member) => out.u32(number, *member(params)),
            Access::Flag(_, member) => out.u32(number, (*member(params)).into()),
            Access::Micros(unit, member) => {
                let micros = member(params).floor(*unit).as_micros();
                out.u32(number, micros.min(u32::MAX.into()) as u32);
            }
            Access::U8(get, _) => put(number, get(params).map(u8::to_ne_bytes), out),
            Access::U32(get, _) => put(number, get(params).map(u32::to_ne_bytes), out),
            Access::I32(get, _) => put(number, get(params).map(i32::to_ne_bytes), out),
            Access::U64(get, _) => put(number, get(params).map(u64::to_ne_bytes), out),
            Access::Struct(layout) | Access::Bits(_, layout) => {
                out.nest(number, |out| layout.write(params, out));
            }
            Access::Bytes(_) => {}
        }
    }

    /// The value that `payload` begins with, where it has 32 bits at most.
    fn number(&self, payload: &[u8]) -> Option<i64> {
        match self {
            Access::U8(..) => Some(u8::from_ne_bytes(first(payload)).into()),
            Access::Number(_) | Access::Flag(..) | Access::Micros(..) | Access::U32(..) => {
                Some(u32::from_ne_bytes(first(payload)).into())
            }
            Access::I32(..) => Some(i32::from_ne_bytes(first(payload)).into()),
            Access::U64(..) | Access::Struct(_) | Access::Bits(..) | Access::Bytes(_) => None,
        }
    }
}

/// The first bytes of `payload`, zeros where there are none: lengths have been checked before.
fn first<const N: usize>(payload: &[u8]) -> [u8; N] {
    payload.first_chunk().copied().unwrap_or([0; N])
}

impl<P> Field<P> {
    /// An attribute of 32 bits that is a member of the settings.
    pub const fn number(name: &'static str, number: u16, member: Member<P, u32>) -> Field<P> {
        Field::new(name, number, Access::Number(member))
    }

    /// An attribute of 32 bits that says yes or no.
    pub const fn flag(name: &'static str, number: u16, member: Member<P, bool>) -> Field<P> {
        Field::new(name, number, Access::Flag(u32::MAX, member))
    }

    /// An attribute of 32 bits that says yes or no, of which Linux keeps the lowest eight.
    pub const fn low_flag(name: &'static str, number: u16, member: Member<P, bool>) -> Field<P> {
        Field::new(name, number, Access::Flag(0xff, member))
    }

    /// An attribute of 32 bits that is a time in microseconds. Linux keeps it in such units.
    pub const fn micros(
        name: &'static str,
        number: u16,
        unit: Span,
        member: Member<P, Span>,
    ) -> Field<P> {
        Field::new(name, number, Access::Micros(unit, member))
    }

    /// An attribute of 8 bits.
    pub const fn u8(name: &'static str, number: u16, get: Get<P, u8>, set: Set<P, u8>) -> Field<P> {
        Field::new(name, number, Access::U8(get, set))
    }

    /// An attribute of 32 bits.
    pub const fn u32(
        name: &'static str,
        number: u16,
        get: Get<P, u32>,
        set: Set<P, u32>,
    ) -> Field<P> {
        Field::new(name, number, Access::U32(get, set))
    }

    /// An attribute of 32 bits with a sign.
    pub const fn i32(
        name: &'static str,
        number: u16,
        get: Get<P, i32>,
        set: Set<P, i32>,
    ) -> Field<P> {
        Field::new(name, number, Access::I32(get, set))
    }

    /// An attribute of 64 bits.
    pub const fn u64(
        name: &'static str,
        number: u16,
        get: Get<P, u64>,
        set: Set<P, u64>,
    ) -> Field<P> {
        Field::new(name, number, Access::U64(get, set))
    }

    /// An attribute that holds a structure.
    pub const fn structure(name: &'static str, number: u16, layout: Layout<P>) -> Field<P> {
        Field::new(name, number, Access::Struct(layout))
    }

    /// An attribute of bits, of which `known` have a meaning.
    pub const fn bits(name: &'static str, number: u16, known: u32, layout: Layout<P>) -> Field<P> {
        Field::new(name, number, Access::Bits(known, layout))
    }

    /// An attribute of so many bytes, which are looked at by themselves and not dumped.
    pub const fn bytes(name: &'static str, number: u16, width: usize) -> Field<P> {
        Field::new(name, number, Access::Bytes(width))
    }

    const fn new(name: &'static str, number: u16, access: Access<P>) -> Field<P> {
        Field {
            name,
            number,
            access,
            range: None,
            is_fixed: false,
            is_required: false,
            is_unsupported: false,
            is_strict: false,
        }
    }

    /// With a range that is declared for it.
    pub const fn within(mut self, least: i64, most: i64) -> Field<P> {
        self.range = Some((least, most, None));
        self
    }

    /// With a range that the discipline looks after, and what it expects.
    pub const fn taking(mut self, least: i64, most: i64, expected: &'static str) -> Field<P> {
        self.range = Some((least, most, Some(expected)));
        self
    }

    /// Not to be given when settings change.
    pub const fn fixed(mut self) -> Field<P> {
        self.is_fixed = true;
        self
    }

    /// One that must be given.
    pub const fn required(mut self) -> Field<P> {
        self.is_required = true;
        self
    }

    /// One that is of Linux alone.
    pub const fn unsupported(mut self) -> Field<P> {
        self.is_unsupported = true;
        self
    }

    /// One that is newer than the strict rules, which hold for it in any table.
    pub const fn strict(mut self) -> Field<P> {
        self.is_strict = true;
        self
    }

    /// Problems of `attribute` with what is declared for it.
    fn declared(&self, attribute: &Attribute<'_>, rules: Rules) -> Result<(), Problem> {
        let (expected, given) = (self.access.width(), attribute.payload.len());
        let is_strict = self.is_strict || rules == Rules::Strict;
        if let Access::Bits(known, _) = &self.access {
            return declared_bits(*known, attribute, is_strict);
        }
        if is_strict && given != expected {
            return Err(Problem::Length { expected, given });
        }
        if is_strict && attribute.is_nested {
            return Err(Problem::Nested);
        }
        if given < expected {
            return Err(Problem::Short { expected, given });
        }
        match (self.range, self.access.number(attribute.payload)) {
            (Some((least, most, None)), Some(value)) if !(least..=most).contains(&value) => {
                Err(Problem::OutOfRange { least, most })
            }
            _ => Ok(()),
        }
    }

    /// Problems of the discipline with `attribute`.
    fn usable(&self, attribute: &Attribute<'_>, changes: bool) -> Result<(), Problem> {
        if self.is_fixed && changes {
            return Err(Problem::Fixed);
        }
        if self.is_unsupported {
            return Err(Problem::Unsupported);
        }
        match (self.range, self.access.number(attribute.payload)) {
            (Some((least, most, Some(expected))), Some(value))
                if !(least..=most).contains(&value) =>
            {
                Err(Problem::Refused { expected })
            }
            _ => Ok(()),
        }
    }
}

impl<P> Table<P> {
    /// Takes what `options` say into `params`. `changes` tells that these are of a discipline that
    /// runs.
    pub fn read(&self, options: &Options<'_>, params: &mut P, changes: bool) -> Result<(), Error> {
        self.check(options)?;
        for field in self.fields {
            let Some(attribute) = last(options.payload, field.number) else {
                if field.is_required {
                    return Err(Error {
                        attribute: field.name,
                        offset: 0,
                        problem: Problem::Missing,
                    });
                }
                continue;
            };
            field
                .usable(&attribute, changes)
                .map_err(|problem| field.error(&attribute, problem))?;
            field.access.set(params, attribute.payload);
        }
        Ok(())
    }

    /// Looks at all attributes in their order.
    fn check(&self, options: &Options<'_>) -> Result<(), Error> {
        let error = |offset, problem| Error { attribute: "TCA_OPTIONS", offset, problem };
        let is_strict = self.rules == Rules::Strict;
        if is_strict && !options.is_nested {
            return Err(error(0, Problem::NotNested));
        }
        let mut attributes = Attributes::new(options.payload);
        for attribute in attributes.by_ref() {
            let number = attribute.number;
            match self.fields.iter().find(|field| field.number == number) {
                Some(field) => field
                    .declared(&attribute, self.rules)
                    .map_err(|problem| field.error(&attribute, problem))?,
                None if is_strict => {
                    return Err(error(attribute.offset, Problem::Unknown { number }));
                }
                None => {}
            }
        }
        match attributes.rest().len() {
            0 => Ok(()),
            _ if !is_strict => Ok(()),
            bytes => Err(error(attributes.offset(), Problem::Leftover { bytes })),
        }
    }

    /// The attribute `name` that counts in `payload`.
    pub fn find<'a>(&self, payload: &'a [u8], name: &str) -> Option<Attribute<'a>> {
        let field = self.fields.iter().find(|field| field.name == name)?;
        last(payload, field.number)
    }

    /// A problem with the attribute `name`.
    pub fn error(&self, payload: &[u8], name: &'static str, problem: Problem) -> Error {
        let offset = self.find(payload, name).map_or(0, |attribute| attribute.offset);
        Error { attribute: name, offset, problem }
    }

    /// Writes `params` as attributes.
    pub fn write(&self, params: &P, out: &mut Writer<'_>)
    where
        P: Clone,
    {
        let mut params = params.clone();
        self.fields.iter().for_each(|field| field.access.write(field.number, &mut params, out));
    }
}

impl<P> Field<P> {
    fn error(&self, attribute: &Attribute<'_>, problem: Problem) -> Error {
        Error { attribute: self.name, offset: attribute.offset, problem }
    }
}

/// Problems of bits, of which some are known.
fn declared_bits(known: u32, attribute: &Attribute<'_>, is_strict: bool) -> Result<(), Problem> {
    let (expected, given) = (8, attribute.payload.len());
    if is_strict && attribute.is_nested {
        return Err(Problem::Nested);
    }
    // Not even a liberal rule takes more.
    let Some((value, selector)) =
        attribute.payload.split_at_checked(4).filter(|_| given == expected)
    else {
        return Err(Problem::Short { expected, given });
    };
    let [value, selector] = [value, selector].map(|word| u32::from_ne_bytes(first(word)));
    if (value | selector) & !known != 0 {
        return Err(Problem::Refused { expected: "known flags" });
    }
    if value & !selector != 0 {
        return Err(Problem::Refused { expected: "no value that is not selected" });
    }
    Ok(())
}

/// The last attribute with `number`.
fn last(payload: &[u8], number: u16) -> Option<Attribute<'_>> {
    Attributes::new(payload).filter(|attribute| attribute.number == number).last()
}
