//! The send buffer: how far a blocking writer has got, and where what it wrote is pushed.
//!
//! Linux counts memory: of each segment its payload, its headers' room and its bookkeeping. The
//! buffer grows to twice the window whenever the window has room, up to a cap. A writer that finds
//! it full sleeps, and is woken when a third of it is free. Segments that were SACKed merge with
//! their SACKed neighbours and save all but the payload (Linux's `tcp_shift_skb_data`). So the
//! writer goes on during a recovery. On paths that hold more than two thirds of the cap this shows:
//! what is in flight swings below the window.
//!
//! PSH marks places where the writer stopped: at the end of what it had, and where it fell asleep.
//! Within one call it also follows whenever more than half the largest window was written without
//! PSH. Linux decides that when data is written, by the window of that moment, and not when it
//! leaves.

use super::{Sender, UNLIMITED};
use crate::clock::before;
use crate::config::Config;

/// The buffer. Small, since every endpoint has one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Source {
    /// Bytes that are still to be written; `ENDLESS`: there is always more.
    pub left: u64,
    /// Cap in bytes of memory; zero for none.
    cap: u32,
    /// The window that its present size was made for; zero before the first.
    window: u32,
    /// The writer sleeps until no more than so many bytes are unacknowledged or unsent, nothing of
    /// which is merged.
    wake: u32,
    /// Up to here a segment has carried PSH, or a call has ended: the low 32 bits.
    pub pushed: u32,
    /// Bytes from `pushed` to the end of a call of full length, less one.
    call_left: u16,
    /// Memory of a segment beside its payload.
    overhead: u16,
    /// Memory that the buffer grows by for each segment of the window, in units of `SIZING`.
    sizing: u16,
    /// Half the peer's largest window when the writer last wrote, and when what leaves next was
    /// written. A call is no longer than the most that this holds.
    half: u16,
    pub first_half: u16,
    pace: Pace,
    /// Number of `stops`.
    stop_count: u8,
    /// Ends of writes after which the writer fell asleep and that were not sent yet, in order. The
    /// low 32 bits of sequence numbers, since all lie within a buffer.
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

/// Most stops that are remembered. The writer sleeps until a third of the buffer is free, and half
/// of it or less was not sent. A buffer that grows faster loses a stop.
const STOPS: usize = 4;
/// A source that always has more to write.
pub(super) const ENDLESS: u64 = u64::MAX;
/// Bytes that a writer hands over in one call (conformance/record-linux.py).
const CALL: u32 = 64 << 10;
/// Unit of sizes of the allocator.
const SIZING: u32 = 64;

impl Source {
    pub(super) fn new(config: &Config) -> Source {
        Source {
            // Linux's is an `int`.
            cap: config.sndbuf_max.min(i32::MAX as u32),
            overhead: config.segment_overhead.min(u16::MAX.into()) as u16,
            sizing: (config.congestion.buffered_windows() * config.segment_sizing())
                .div_ceil(SIZING)
                .min(u16::MAX.into()) as u16,
            pushed: 1,
            call_left: (CALL - 1) as u16,
            ..Source::default()
        }
    }

    /// The writer falls asleep having written up to `end`.
    fn stop_at(&mut self, end: u64) {
        let last = usize::from(self.stop_count).min(STOPS - 1);
        self.stops[last] = end as u32;
        self.stop_count = last as u8 + 1;
    }

    /// The writer is about to write, with half the peer's largest window.
    fn write_with(&mut self, half: u32) {
        self.half = half.min(u16::MAX.into()) as u16;
        if self.stop_count == 0 {
            self.first_half = self.half;
        }
    }

    /// True if the segment up to `end`, which is being sent, carries PSH; `last`: nothing behind it
    /// was written.
    #[inline]
    pub(super) fn pushes(&mut self, end: u64, last: bool) -> bool {
        let end = end as u32;
        let mut since = end.wrapping_sub(self.pushed);
        let mut call = u32::from(self.call_left) + 1;
        while since > call {
            // Another call goes on with the segment in which this one ended.
            since -= call;
            call = CALL;
        }
        let stopped = self.stopped_at(end) | last | (since == call);
        let pushes = stopped || since > self.first_half.into();
        if stopped {
            call = CALL;
        } else if pushes {
            call -= since;
        }
        if pushes {
            since = 0;
        }
        self.pushed = end.wrapping_sub(since);
        self.call_left = (call - 1) as u16;
        pushes
    }

    /// True if `end` is where the writer fell asleep.
    #[inline]
    fn stopped_at(&mut self, end: u32) -> bool {
        let mut found = false;
        while self.stop_count > 0 && !before(end, self.stops[0]) {
            found |= self.stops[0] == end;
            self.stops.rotate_left(1);
            self.stop_count -= 1;
            self.first_half = self.half;
        }
        found
    }

    /// Its size.
    fn size(&self) -> u64 {
        let wanted = u64::from(self.sizing) * u64::from(SIZING) * u64::from(self.window);
        wanted.min(self.cap.into())
    }

    /// Memory below which the writer is woken.
    fn awake(&self) -> u64 {
        self.size() * 2 / 3
    }
}

impl Sender {
    /// Nothing more of what was written may leave: lets the writer go on if it is awake and has
    /// more to write. True if that may have changed something.
    ///
    /// Linux first sends from the buffer what an acknowledgement allows, and the writer runs after
    /// that. What it writes leaves at once, as far as the window allows, before it sleeps again.
    #[inline]
    pub(super) fn refill(&mut self) -> bool {
        if self.source.left == 0 {
            return false;
        }
        if self.source.pace == Pace::Writing {
            self.source.pace = Pace::Asleep;
            return false;
        }
        self.look_for_room();
        self.source.pace == Pace::Awake && self.fill()
    }

    /// To call when a segment has left, or all that may. Makes the buffer larger if the window was
    /// not filled, and wakes the writer if a third of the buffer is free.
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
        self.source.window = self.window.cwnd.max(self.window.initial);
        let (mss, overhead) = (u64::from(self.window.mss), u64::from(self.source.overhead));
        self.source.wake = (self.source.awake() / (mss + overhead) * mss) as u32;
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

    /// The application is about to write. If all it wrote before has left, and the window has room,
    /// rates measured from here on are limited by it (Linux's `tcp_rate_check_app_limited`).
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
        if self.source.window == 0 {
            self.expand();
        }
        self.source.pace = Pace::Writing;
        self.source.write_with(self.peer_window_max / 2);
        let room = self.room();
        let taken = room.min(self.source.left);
        self.write_end = (self.write_end + taken).min(UNLIMITED);
        if self.source.left != ENDLESS {
            self.source.left -= taken;
        }
        if self.source.left == 0 {
            self.writing = true;
            // Whoever writes next has not slept.
            self.source.pace = Pace::Awake;
        } else if taken > 0 && self.source.cap > 0 {
            self.source.stop_at(self.write_end);
        }
        true
    }

    /// Bytes that fit into the buffer: it is full when a segment more would begin beyond its size.
    fn room(&self) -> u64 {
        if self.source.cap == 0 {
            return UNLIMITED;
        }
        let (mss, overhead) = (u64::from(self.window.mss), u64::from(self.source.overhead));
        let segments = (self.source.size() + self.merged()).div_ceil(mss + overhead).max(2);
        let end = self.window.una.max(1) + segments * mss;
        // Segments are full but the last.
        end.saturating_sub(self.write_end).next_multiple_of(mss.max(1))
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
        let found: std::vec::Vec<u32> =
            (1..=6).map(|n| 1_000 * n).filter(|end| source.stopped_at(*end)).collect();
        assert_eq!(found, [1_000, 2_000, 3_000, 6_000]);
    }

    /// Linux's `forced_push` and `tcp_push`: a call of 64 KiB may end within a segment, with which
    /// the next call goes on. Half a window counts from that end, or from the last push.
    #[test]
    fn half_a_window_counts_from_the_last_push() {
        let pushed = |half, stop: Option<u64>, last: u64| {
            let mut source = Source::new(&Config::default());
            source.write_with(half);
            stop.into_iter().for_each(|stop| source.stop_at(stop));
            (1..=140)
                .filter(|n| source.pushes(1 + n * 1_000, *n == last))
                .collect::<std::vec::Vec<u64>>()
        };
        assert_eq!(pushed(30_000, None, 0), [31, 62, 96, 127]);
        assert_eq!(pushed(29_999, None, 0)[..2], [30, 60]);
        assert_eq!(pushed(30_400, None, 0)[..3], [31, 62, 96]);
        // Segments 66 and 132 begin in one call and end in the next; half a window is longer.
        assert_eq!(pushed(1 << 20, None, 0), []);
        // Who slept, or had no more, begins another call.
        assert_eq!(pushed(1 << 20, Some(64_001), 100), [64, 100]);
        assert_eq!(pushed(1 << 20, Some(64_001), 64), [64]);
        assert_eq!(pushed(60_000, Some(64_001), 0), [61, 64, 125]);
        // Calls that end with a segment are pushed there.
        let mut source = Source::new(&Config::default());
        source.write_with(u32::MAX);
        let ends = (1..=130).filter(|n| source.pushes(1 + n * 1_024, *n == 64));
        assert_eq!(ends.collect::<std::vec::Vec<u64>>(), [64, 128]);
    }

    /// The window that counts is that of the time of writing.
    #[test]
    fn a_push_goes_by_the_window_in_which_it_was_written() {
        let mut source = Source::new(&Config::default());
        source.write_with(5_000);
        source.stop_at(10_001);
        source.write_with(20_000);
        source.stop_at(40_001);
        let pushed = (1..=40).filter(|n| source.pushes(1 + n * 1_000, false));
        assert_eq!(pushed.collect::<std::vec::Vec<u64>>(), [6, 10, 31, 40]);
    }

    /// A transfer is written as far as the buffer has room, and ends where it ends.
    #[test]
    fn a_transfer_is_written_by_and_by() {
        let config = Config { sndbuf_max: 274_000, ..Config::default() };
        let mut sender = Sender::new(&config);
        (sender.window.cwnd, sender.window.mss, sender.window.una) = (50, 1_460, 1);
        sender.write(200_000);
        sender.close();
        assert!(sender.refill());
        assert_eq!((sender.write_end, sender.unsent()), (146_001, 200_000));
        assert_eq!(sender.source.pace, Pace::Writing);
        // What left of it, but for FIN, which is behind the rest.
        sender.window.nxt = 146_001;
        assert!(!sender.refill() && !sender.refill());
        sender.window.una = 146_001;
        assert!(sender.refill());
        assert_eq!((sender.write_end, sender.unsent(), sender.source.left), (200_001, 54_000, 0));
        // Nobody sleeps; what is written behind a part of a segment fills segments.
        assert_eq!(sender.source.pace, Pace::Awake);
        assert!(!sender.refill());
        let mut sender = Sender::new(&Config { sndbuf_max: 274_000, ..Config::default() });
        (sender.window.cwnd, sender.window.mss, sender.window.una) = (50, 1_460, 1);
        sender.write_end = 101;
        sender.write(200_000);
        assert!(sender.refill());
        assert_eq!(sender.write_end, 101 + 146_000);
    }

    /// `tcp_sndbuf_expand`: the window twice over, up to the cap; two thirds are to be left.
    #[test]
    fn the_buffer_holds_the_window_twice() {
        let config = Config { sndbuf_max: 1_000_000, ..Config::default() };
        let mut sender = Sender::new(&config);
        (sender.window.cwnd, sender.window.mss) = (50, 1_460);
        sender.expand();
        assert_eq!((sender.source.size(), sender.source.window), (50 * 2 * 4_352, 50));
        // Segments of 1460 and 1280.
        assert_eq!(sender.source.wake, 290_133 / 2_740 * 1_460);
        sender.window.cwnd = 500;
        sender.expand();
        assert_eq!(sender.source.size(), 1_000_000);
        sender.window.cwnd = 2;
        sender.expand();
        assert_eq!(sender.source.size(), 10 * 2 * 4_352);
        // BBR's thrice.
        let bbr = Config { congestion: CongestionControl::Bbr, ..config };
        let mut sender = Sender::new(&bbr);
        sender.window.cwnd = 50;
        sender.expand();
        assert_eq!(sender.source.size(), 50 * 3 * 4_352);
        // Without a cap there is always more.
        let mut sender = Sender::new(&Config { sndbuf_max: 0, ..config });
        sender.source.left = ENDLESS;
        sender.fill();
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
            (sender.write_end, sender.source.left) = (write_end, ENDLESS);
            assert!(sender.fill());
            assert_eq!((sender.write_end, sender.source.pace), (filled, Pace::Writing));
            assert_eq!(sender.source.stopped_at(146_001), write_end == 1);
        }
        // What SACKed neighbours save has room for more: 29 times 1280 bytes, 13 segments.
        let mut sender = Sender::new(&Config { sndbuf_max: 274_000, ..Config::default() });
        (sender.window.cwnd, sender.window.mss, sender.window.una) = (50, 1_460, 1);
        sender.board.sacked_out = 30;
        sender.board.sacked.insert(1_461, 45_261);
        sender.source.left = ENDLESS;
        assert!(sender.fill());
        assert_eq!(sender.write_end, 1 + 114 * 1_460);
    }
}
