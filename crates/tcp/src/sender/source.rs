//! The send buffer of an unlimited source: how far a blocking writer has got.
//!
//! Linux counts memory. The buffer holds twice the window, up to a cap; a writer that finds it full
//! sleeps, and is woken when a third of it is free. On paths that hold more than two thirds of the
//! cap (some thousand segments) this shows: what is in flight swings below the window.

use super::{Sender, UNLIMITED};

/// Memory of a segment in the send buffer beside its payload (headers and bookkeeping).
const SEGMENT_OVERHEAD: u64 = 1_280;
/// Memory per segment of the window that the buffer grows by, at twice the window: what Linux
/// reckons for a full segment, rounded up to its allocator's sizes.
const SIZING: u64 = 2 * 4_352;

/// The buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source {
    /// There is always more to write.
    pub unlimited: bool,
    /// Cap in bytes of memory; zero for none.
    cap: u32,
    /// Size now.
    size: u32,
    /// The writer sleeps until no more than so many bytes are unacknowledged or unsent.
    wake: u64,
}

impl Source {
    pub(super) fn new(cap: u32) -> Source {
        Source { cap, ..Source::default() }
    }
}

impl Sender {
    /// Lets the writer of an unlimited source go on if it is awake.
    #[inline]
    pub(super) fn refill(&mut self) {
        if self.source.unlimited && self.write_end - self.window.una <= self.source.wake {
            self.fill();
        }
    }

    fn fill(&mut self) {
        if self.source.cap == 0 {
            self.write_end = UNLIMITED;
            self.source.wake = 0;
            return;
        }
        let window = self.window.cwnd;
        // A window in full use is no reason to expand.
        if self.board.in_flight() < window || self.source.size == 0 {
            let wanted = SIZING * u64::from(window.max(self.window.initial));
            self.source.size = self.source.size.max(wanted.min(self.source.cap.into()) as u32);
        }
        let mss = u64::from(self.window.mss);
        let segments = (u64::from(self.source.size) / (mss + SEGMENT_OVERHEAD)).max(2) + 1;
        self.write_end = self.write_end.max(self.window.una.max(1) + segments * mss);
        self.source.wake = segments * 2 / 3 * mss;
    }
}
