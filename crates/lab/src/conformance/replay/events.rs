//! Fate of each packet, in the format of the recordings' `.out`.

use std::io::{self, Write};

use simnel_core::{Packet, Time};

use super::drive::{Sink, Waiting};
use super::source::Source;
use crate::conformance::golden::{Event, Fate};

/// Writes a line for each packet that leaves.
pub struct Events<'a> {
    out: &'a mut dyn Write,
    lines: Vec<u8>,
    full: bool,
}

/// Bytes that are written at once.
const PIECE: usize = 1 << 16;

impl<'a> Events<'a> {
    /// Writes to `out`; with tier, queue and length on the line if `full`, as recordings of cake
    /// have it.
    pub fn new(out: &'a mut dyn Write, full: bool) -> Events<'a> {
        Events { out, lines: Vec::with_capacity(2 * PIECE), full }
    }

    /// Writes one event.
    #[inline]
    pub fn write(&mut self, event: Event) {
        let fate = if self.full { event.fate } else { event.fate.bare() };
        Event { fate, ..event }.write(&mut self.lines);
        self.lines.push(b'\n');
    }

    /// Hands on what was written, if it is much or if it is `all`.
    pub fn flush(&mut self, all: bool) -> io::Result<()> {
        if all || self.lines.len() >= PIECE {
            self.out.write_all(&self.lines)?;
            self.lines.clear();
        }
        Ok(())
    }
}

impl Sink for Events<'_> {
    type Note = ();

    #[inline]
    fn arrived(&mut self, _: Time, _: &Packet, _: &dyn Source) {}

    #[inline]
    fn left(&mut self, time: Time, waiting: &Waiting<()>, fate: Fate) {
        self.write(Event { time, id: waiting.id, fate });
    }

    fn step(&mut self) -> io::Result<()> {
        self.flush(true)
    }
}
