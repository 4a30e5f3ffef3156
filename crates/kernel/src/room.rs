//! Text in memory of limited size, for the kernel to pass on.

use core::fmt;

/// Text written into memory of C's.
pub(crate) struct Room {
    out: *mut u8,
    left: u32,
    written: u32,
}

impl Room {
    /// Room for `size` bytes at `out`.
    ///
    /// # Safety
    /// The bytes must be writable for as long as this lives.
    pub(crate) const unsafe fn new(out: *mut u8, size: u32) -> Room {
        Room { out, left: size, written: 0 }
    }

    /// Bytes that the text takes; more than there is room for if it did not fit.
    pub(crate) const fn written(&self) -> u32 {
        self.written
    }
}

impl fmt::Write for Room {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let length = text.len() as u32;
        self.written = self.written.saturating_add(length);
        if length > self.left {
            self.left = 0;
            return Err(fmt::Error);
        }
        // SAFETY: `left` bytes at `out` are writable, and `length` is not more.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), self.out, text.len());
            self.out = self.out.add(text.len());
        }
        self.left -= length;
        Ok(())
    }
}
