//! The send buffer of an unlimited source: how far a blocking writer has got.
//!
//! Linux counts memory: of each segment its payload, its headers' room and its bookkeeping. The
//! buffer grows to twice the window whenever the window has room, up to a cap. A writer that finds
//! it full sleeps, and is woken when a third of it is free. Segments that were SACKed merge with
//! their SACKed neighbours and save all but the payload (Linux's `tcp_shift_skb_data`), so that the
//! writer goes on during a recovery. On paths that hold more than two thirds of the cap this shows:
//! what is in flight swings below the window.

use super::{Sender, UNLIMITED};
use crate::config::Config;

/// The buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source {
    /// There is always more to write.
    pub unlimited: bool,
    /// Cap in bytes of memory; zero for none.
    cap: u32,
    /// Size now, and the window that it was made for.
    size: u32,
    window: u32,
    /// Memory of a segment beside its payload.
    overhead: u32,
    /// Memory that the buffer grows by for each segment of the window.
    sizing: u32,
    /// The writer sleeps until no more than so many bytes are unacknowledged or unsent, nothing of
    /// which is merged.
    wake: u64,
}

impl Source {
    pub(super) fn new(config: &Config) -> Source {
        Source {
            cap: config.sndbuf_max,
            overhead: config.segment_overhead,
            // Room for the window twice over, in case of losses (`tcp_sndbuf_expand`).
            sizing: 2 * config.segment_sizing(),
            ..Source::default()
        }
    }

    /// Memory below which the writer is woken.
    fn awake(&self) -> u64 {
        u64::from(self.size) * 2 / 3
    }
}

impl Sender {
    /// Lets the writer of an unlimited source go on if it is awake.
    #[inline]
    pub(super) fn refill(&mut self) {
        if !self.source.unlimited {
            return;
        }
        // Linux looks after each segment that leaves, and after each burst.
        if self.window.cwnd > self.source.window && self.board.in_flight() < self.window.cwnd {
            let drained = self.write_end <= self.window.nxt;
            if self.burst > 0 || drained {
                self.expand();
            }
        }
        if self.write_end - self.window.una <= self.source.wake || self.board.sacked_out > 0 {
            self.fill();
        }
    }

    /// A window that was not filled is a reason to let the writer be further ahead.
    fn expand(&mut self) {
        let Source { cap, overhead, sizing, .. } = self.source;
        let window = self.window.cwnd.max(self.window.initial);
        self.source.window = window;
        if cap == 0 {
            self.write_end = UNLIMITED;
            return;
        }
        let wanted = u64::from(sizing) * u64::from(window);
        self.source.size = wanted.min(cap.into()) as u32;
        let mss = u64::from(self.window.mss);
        self.source.wake = self.source.awake() / (mss + u64::from(overhead)) * mss;
    }

    fn fill(&mut self) {
        let Source { cap, overhead, size, .. } = self.source;
        if cap == 0 {
            return;
        }
        let (mss, overhead) = (u64::from(self.window.mss), u64::from(overhead));
        let ranges = self.board.sacked.count() as u64;
        let saved = u64::from(self.board.sacked_out).saturating_sub(ranges) * overhead;
        let una = self.window.una.max(1);
        let held = self.write_end.saturating_sub(una) / mss * (mss + overhead);
        if held.saturating_sub(saved) <= self.source.awake() {
            let segments = (u64::from(size) + saved).div_ceil(mss + overhead).max(2);
            self.write_end = self.write_end.max(una + segments * mss);
        }
    }
}
