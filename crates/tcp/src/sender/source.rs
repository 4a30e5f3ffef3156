//! The send buffer of an unlimited source: how far a blocking writer has got.
//!
//! Linux counts memory: of each segment its payload, its headers' room and its bookkeeping. The
//! buffer grows to twice the window whenever the window has room, up to a cap. A writer that finds
//! it full sleeps, and is woken when a third of it is free. Segments that were SACKed merge with
//! their SACKed neighbours and save all but the payload (Linux's `tcp_shift_skb_data`), so that the
//! writer goes on during a recovery. On paths that hold more than two thirds of the cap this shows:
//! what is in flight swings below the window.

use super::{Sender, UNLIMITED};
use crate::clock::before;
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
    wake: u32,
    pace: Pace,
    /// How many of `stops` there are.
    stop_count: u8,
    /// Where the writer fell asleep and nothing was sent yet, in order: the low 32 bits, since all
    /// lie within a buffer.
    stops: [u32; STOPS],
}

/// State of the writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Pace {
    /// About to write.
    #[default]
    Awake,
    /// Writes, and what it writes leaves.
    Writing,
    /// Waits for room.
    Asleep,
}

/// Stops that are remembered. The writer sleeps until a third of the buffer is free, and half of it
/// or less was not sent; what grows faster loses a stop.
const STOPS: usize = 4;

impl Source {
    pub(super) fn new(config: &Config) -> Source {
        Source {
            // Linux's is an `int`.
            cap: config.sndbuf_max.min(i32::MAX as u32),
            overhead: config.segment_overhead,
            sizing: config.congestion.buffered_windows() * config.segment_sizing(),
            ..Source::default()
        }
    }

    /// The writer falls asleep having written up to `end`.
    fn stop_at(&mut self, end: u64) {
        let last = usize::from(self.stop_count).min(STOPS - 1);
        self.stops[last] = end as u32;
        self.stop_count = last as u8 + 1;
    }

    /// True if `end`, which is being sent, is where the writer fell asleep: it has nothing more to
    /// say for now, which PSH tells the receiver.
    #[inline]
    pub(super) fn stopped_at(&mut self, end: u64) -> bool {
        let mut found = false;
        while self.stop_count > 0 && !before(end as u32, self.stops[0]) {
            found |= self.stops[0] == end as u32;
            self.stops.rotate_left(1);
            self.stop_count -= 1;
        }
        found
    }

    /// Memory below which the writer is woken.
    fn awake(&self) -> u64 {
        u64::from(self.size) * 2 / 3
    }
}

impl Sender {
    /// Nothing more of what was written may leave: lets the writer of an unlimited source go on if
    /// it is awake. True if that may have changed something.
    ///
    /// Linux sends what an acknowledgement allows from the buffer first, and the writer runs after
    /// that; what it writes leaves at once, as far as the window allows, before it sleeps again.
    #[inline]
    pub(super) fn refill(&mut self) -> bool {
        if !self.source.unlimited {
            return false;
        }
        if self.source.pace == Pace::Writing {
            self.source.pace = Pace::Asleep;
            return false;
        }
        self.look_for_room();
        self.source.pace == Pace::Awake && self.fill()
    }

    /// A segment has left, or all that may: makes the buffer larger if the window was not filled,
    /// and wakes the writer if a third of it is free.
    #[inline]
    pub(super) fn look_for_room(&mut self) {
        if self.source.pace != Pace::Asleep {
            return;
        }
        if self.window.cwnd > self.source.window && self.board.in_flight() < self.window.cwnd {
            self.expand();
        }
        if self.write_end - self.window.una <= self.source.wake.into() || self.board.sacked_out > 0
        {
            self.wake();
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
        self.source.wake = (self.source.awake() / (mss + u64::from(overhead)) * mss) as u32;
    }

    fn wake(&mut self) {
        if self.source.cap == 0 {
            return;
        }
        let (mss, overhead) = (u64::from(self.window.mss), u64::from(self.source.overhead));
        let una = self.window.una.max(1);
        let held = self.write_end.saturating_sub(una) / mss * (mss + overhead);
        if held.saturating_sub(self.merged()) <= self.source.awake() {
            self.source.pace = Pace::Awake;
        }
    }

    /// Memory that SACKed segments save by having merged with their neighbours.
    fn merged(&self) -> u64 {
        let ranges = self.board.sacked.count() as u64;
        u64::from(self.board.sacked_out).saturating_sub(ranges) * u64::from(self.source.overhead)
    }

    /// The application is about to write: if all it wrote before has left, and the window has room,
    /// rates measured from here on are its own (Linux's `tcp_rate_check_app_limited`).
    #[inline]
    pub(super) fn note_application_limit(&mut self) {
        if !self.sampler.is_enabled() || self.written() >= self.window.mss.into() {
            return;
        }
        let in_flight = self.board.in_flight();
        if in_flight < self.window.cwnd && self.board.lost_out <= self.board.resent_out {
            self.sampler.limit_by_application(self.window.delivered, in_flight);
        }
    }

    /// The writer fills the buffer.
    fn fill(&mut self) -> bool {
        self.note_application_limit();
        if self.source.size == 0 {
            self.expand();
        }
        self.source.pace = Pace::Writing;
        if self.source.cap > 0 {
            let Source { overhead, size, .. } = self.source;
            let (mss, overhead) = (u64::from(self.window.mss), u64::from(overhead));
            let segments = (u64::from(size) + self.merged()).div_ceil(mss + overhead).max(2);
            let end = self.window.una.max(1) + segments * mss;
            if end > self.write_end {
                self.write_end = end;
                self.source.stop_at(end);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CongestionControl;

    /// Linux's `tcp_shift_skb_data`: SACKed neighbours are one, and save all overheads but one.
    #[test]
    fn sacked_neighbours_save_their_overhead() {
        let mut sender = Sender::new(&Config { segment_overhead: 1_000, ..Config::default() });
        assert_eq!(sender.merged(), 0);
        sender.board.sacked_out = 6;
        sender.board.sacked.insert(101, 501);
        sender.board.sacked.insert(901, 1_101);
        assert_eq!(sender.merged(), 4_000);
        sender.board.sacked_out = 1;
        assert_eq!(sender.merged(), 0);
    }

    /// PSH goes where the writer fell asleep, of four such places at most.
    #[test]
    fn stops_are_found_once_and_in_order() {
        let mut source = Source::new(&Config::default());
        [100, 200, 300].into_iter().for_each(|end| source.stop_at(end));
        assert!(!source.stopped_at(99) && source.stopped_at(100) && !source.stopped_at(100));
        // Passed without an end there.
        assert!(!source.stopped_at(201) && !source.stopped_at(299) && source.stopped_at(300));
        (1..=6).for_each(|n| source.stop_at(1_000 * n));
        let found: std::vec::Vec<u64> =
            (1..=6).map(|n| 1_000 * n).filter(|end| source.stopped_at(*end)).collect();
        assert_eq!(found, [1_000, 2_000, 3_000, 6_000]);
    }

    /// `tcp_sndbuf_expand`: the window twice over, up to the cap; two thirds are to be left.
    #[test]
    fn the_buffer_holds_the_window_twice() {
        let config = Config { sndbuf_max: 1_000_000, ..Config::default() };
        let mut sender = Sender::new(&config);
        (sender.window.cwnd, sender.window.mss) = (50, 1_460);
        sender.expand();
        assert_eq!((sender.source.size, sender.source.window), (50 * 2 * 4_352, 50));
        // Segments of 1460 and 1280.
        assert_eq!(sender.source.wake, 290_133 / 2_740 * 1_460);
        sender.window.cwnd = 500;
        sender.expand();
        assert_eq!(sender.source.size, 1_000_000);
        sender.window.cwnd = 2;
        sender.expand();
        assert_eq!(sender.source.size, 10 * 2 * 4_352);
        // BBR's thrice.
        let bbr = Config { congestion: CongestionControl::Bbr, ..config };
        let mut sender = Sender::new(&bbr);
        sender.window.cwnd = 50;
        sender.expand();
        assert_eq!(sender.source.size, 50 * 3 * 4_352);
        // Without a cap there is always more.
        let mut sender = Sender::new(&Config { sndbuf_max: 0, ..config });
        sender.expand();
        assert_eq!(sender.write_end, UNLIMITED);
    }

    /// Linux's `sk_stream_write_space`: a sleeping writer goes on when a third is free.
    #[test]
    fn the_writer_is_woken_when_a_third_is_free() {
        let pace = |una, write_end, pace| {
            let mut sender = Sender::new(&Config { sndbuf_max: 274_000, ..Config::default() });
            (sender.window.cwnd, sender.window.mss, sender.window.una) = (50, 1_460, una);
            sender.expand();
            (sender.write_end, sender.source.pace) = (write_end, pace);
            sender.look_for_room();
            sender.source.pace
        };
        // A hundred segments of 2740; two thirds are 66.
        let (una, most) = (1_000_001, 66 * 1_460);
        assert_eq!(pace(una, una + most, Pace::Asleep), Pace::Awake);
        assert_eq!(pace(una, una + most + 1_460, Pace::Asleep), Pace::Asleep);
        assert_eq!(pace(una, una + most, Pace::Writing), Pace::Writing);
    }

    /// `tcp_should_expand_sndbuf`: a buffer that fills the window is large enough.
    #[test]
    fn the_buffer_grows_where_the_window_is_not_filled() {
        for (in_flight, window) in [(50, 10), (49, 50)] {
            let mut sender = Sender::new(&Config { sndbuf_max: 274_000, ..Config::default() });
            (sender.window.mss, sender.window.una) = (1_460, 1);
            (sender.source.window, sender.source.pace) = (10, Pace::Asleep);
            sender.window.cwnd = 50;
            for _ in 0..in_flight {
                sender.board.push(Default::default());
            }
            sender.look_for_room();
            assert_eq!(sender.source.window, window, "{in_flight}");
        }
    }

    /// `tcp_rate_check_app_limited`: less than a segment is left, and the window has room.
    #[test]
    fn rates_are_the_applications_if_little_is_left_and_more_might_leave() {
        for (written, cwnd, limited) in [(1_459, 1, true), (1_460, 1, false), (1_459, 0, false)] {
            let bbr = CongestionControl::Bbr;
            let mut sender = Sender::new(&Config { congestion: bbr, ..Config::default() });
            (sender.window.mss, sender.window.cwnd, sender.window.nxt) = (1_460, cwnd, 1);
            sender.write_end = 1 + written;
            sender.note_application_limit();
            assert_eq!(sender.sampler.app_limited(), limited, "{written} {cwnd}");
        }
    }

    /// SACKed neighbours give their memory back before anything is acknowledged.
    #[test]
    fn sacks_wake_the_writer() {
        for (sacked, pace) in [(0, Pace::Asleep), (2, Pace::Asleep), (30, Pace::Awake)] {
            let mut sender = Sender::new(&Config { sndbuf_max: 274_000, ..Config::default() });
            (sender.window.cwnd, sender.window.mss, sender.window.una) = (50, 1_460, 1);
            sender.expand();
            (sender.write_end, sender.source.pace) = (1 + 70 * 1_460, Pace::Asleep);
            sender.board.sacked_out = sacked;
            sender.board.sacked.insert(1_461, 2_921);
            sender.look_for_room();
            assert_eq!(sender.source.pace, pace, "{sacked}");
        }
    }

    /// A hundred segments of 1460 and 1280 bytes fill 274,000; what is written stays.
    #[test]
    fn the_writer_fills_the_buffer() {
        for (write_end, filled) in [(1, 146_001), (146_001, 146_001), (150_000, 150_000)] {
            let mut sender = Sender::new(&Config { sndbuf_max: 274_000, ..Config::default() });
            (sender.window.cwnd, sender.window.mss, sender.window.una) = (50, 1_460, 1);
            sender.write_end = write_end;
            assert!(sender.fill());
            assert_eq!((sender.write_end, sender.source.pace), (filled, Pace::Writing));
            assert_eq!(sender.source.stopped_at(146_001), write_end == 1);
        }
        // What SACKed neighbours save has room for more: 29 times 1280 bytes, 13 segments.
        let mut sender = Sender::new(&Config { sndbuf_max: 274_000, ..Config::default() });
        (sender.window.cwnd, sender.window.mss, sender.window.una) = (50, 1_460, 1);
        sender.board.sacked_out = 30;
        sender.board.sacked.insert(1_461, 45_261);
        assert!(sender.fill());
        assert_eq!(sender.write_end, 1 + 114 * 1_460);
    }
}
