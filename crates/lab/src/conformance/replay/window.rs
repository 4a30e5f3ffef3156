//! A window that moves over a file: pieces of any length up to a cap, without a copy of each.

use std::io::{self, Read};
use std::ops::Range;

/// Bytes read at once: large enough for few calls, small enough to stay in the cache.
const CHUNK: usize = 1 << 18;

/// The window.
pub(super) struct Window {
    reader: Box<dyn Read>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Window {
    pub(super) fn new(reader: Box<dyn Read>) -> Window {
        Window { reader, buffer: vec![0; CHUNK], start: 0, end: 0 }
    }

    /// The next `len` bytes, to be looked at with [`bytes`](Self::bytes) until the next call; fewer
    /// where the file ends.
    #[inline]
    pub(super) fn take(&mut self, len: usize) -> io::Result<Range<usize>> {
        let taken = self.peek(len)?;
        self.start = taken.end;
        Ok(taken)
    }

    /// As [`take`](Self::take), but the bytes stay to be taken.
    #[inline]
    pub(super) fn peek(&mut self, len: usize) -> io::Result<Range<usize>> {
        if self.end - self.start < len {
            self.fill(len)?;
        }
        Ok(self.start..self.end.min(self.start + len))
    }

    /// Result of [`take`](Self::take).
    #[inline]
    pub(super) fn bytes(&self, range: Range<usize>) -> &[u8] {
        &self.buffer[range]
    }

    #[cold]
    fn fill(&mut self, len: usize) -> io::Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < len {
            self.buffer.resize(len, 0);
        }
        while self.end < len {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(0) => break,
                Ok(bytes) => self.end += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
