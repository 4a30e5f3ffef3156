//! The receiving half of an endpoint.
//!
//! `reassembly` keeps what came out of order and says what to SACK; `delayed_ack` decides when to
//! acknowledge; `window` decides how much to offer. This file is the path of a segment through
//! them, in Linux's order: measure, queue, note marks, grow the window. The ACK decision comes
//! last, once the sender has had its chance to carry the acknowledgement with data.

pub(crate) mod delayed_ack;
pub(crate) mod reassembly;
pub(crate) mod window;

use alloc::boxed::Box;

use simnel_core::packet::Ecn;
use simnel_core::time::Time;

use crate::clock::{Now, Ticks};
use crate::config::{Config, EcnMode};
use crate::segment::{Segment, TcpFlags, MAX_SACK};
use delayed_ack::{AckTimers, Round};
use reassembly::Reassembly;
use window::ReceiveWindow;

/// Segments that are acknowledged at once after a mark or a suspected retransmission of the peer.
const QUICK_AFTER_MARK: u8 = 2;

/// The receiving half.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    pub reassembly: Reassembly,
    /// ACK of the state before the last segment, not yet sent.
    pub owed: Option<Box<Owed>>,
    /// FIN's number; the last of all while it has not come.
    fin_seq: u64,
    pub ce_received: u64,
    /// Up to where data had come when marks last changed.
    prior_nxt: u64,
    /// Payload bytes received in order.
    pub received: u64,
    pub window: ReceiveWindow,
    pub acks: AckTimers,
    /// Next sequence number expected.
    pub nxt: u64,
    /// Timestamp to echo.
    pub ts_recent: u32,
    /// FIN has arrived in order.
    pub fin: bool,
    ecn: bool,
    accurate: bool,
    seen_ect: bool,
    /// ECE goes out until CWR comes in; with accurate feedback, while marks come in.
    pub echo: bool,
    sack: bool,
}

/// An ACK of the past.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owed {
    /// Of the state before marks changed (DCTCP): acknowledgement number and echo.
    Mark { ack: u64, echo: bool },
    /// Of ranges that the next ACK would not tell any more, and their number.
    Ranges([(u32, u32); MAX_SACK], u8),
}

impl Receiver {
    pub(crate) fn new(config: &Config, ticks: Ticks) -> Receiver {
        Receiver {
            nxt: 0,
            reassembly: Reassembly::default(),
            acks: AckTimers::new(config, ticks),
            window: ReceiveWindow::new(config),
            ts_recent: 0,
            received: 0,
            ce_received: 0,
            owed: None,
            fin: false,
            fin_seq: u64::MAX,
            ecn: false,
            accurate: config.ecn == EcnMode::Accurate,
            seen_ect: false,
            echo: false,
            prior_nxt: 0,
            sack: config.sack,
        }
    }

    /// The handshake settled these. `options` is what options take of each segment; an `answer` to
    /// a SYN is about to leave.
    pub(crate) fn start(&mut self, peer_mss: u32, options: u32, ecn: bool, answer: bool) {
        self.ecn = ecn;
        self.window.start(peer_mss, options, answer);
    }

    pub(crate) fn negotiate_sack(&mut self, sack: bool) {
        self.sack = sack;
        self.acks.hold_back(sack);
    }

    /// Takes in what `segment` says beside its acknowledgement. True if it is worth looking at
    /// the acknowledgement too (false: it lies wholly outside the window).
    #[inline]
    pub(crate) fn accepts(&mut self, segment: &Segment) -> bool {
        let end = segment.end_seq();
        let edge = self.window.acked + u64::from(self.window.offered);
        if end < self.window.acked || segment.seq > self.nxt.max(edge) {
            if !segment.flags.has(TcpFlags::RST) {
                self.on_outside(segment);
            }
            return false;
        }
        if segment.timestamps && segment.seq <= self.window.acked {
            self.ts_recent = segment.ts_val;
        }
        true
    }

    /// Wholly old, or beyond the window: acknowledge at once, and say what came twice.
    #[cold]
    fn on_outside(&mut self, segment: &Segment) {
        let end = segment.end_seq();
        if end != segment.seq && segment.seq < self.nxt {
            self.acks.enter_quick(self.acks.most_quick, &self.window);
            if self.sack {
                self.reassembly.report_duplicate(segment.seq, end.min(self.nxt));
            }
        }
        self.acks.now();
    }

    /// Takes in payload, FIN and marks. `unit` is the payload of one segment of a merged one.
    #[inline]
    pub(crate) fn on_data(&mut self, segment: &Segment, unit: u32, round: &Round, now: &Now) {
        let end = segment.end_seq();
        self.reassembly.forget_duplicate();
        self.window.auto_consume(self.nxt, now);
        if segment.timestamps {
            self.window.measure_rtt(segment, now);
        }
        if segment.flags.has(TcpFlags::CWR) && self.ecn && !self.accurate {
            self.echo = false;
            self.acks.now();
        }
        if end <= self.nxt {
            // All of it came before: a needless retransmission.
            if self.sack {
                self.reassembly.report_duplicate(segment.seq, end);
            }
            self.acks.enter_quick(self.acks.most_quick, &self.window);
            self.acks.now();
            return;
        }
        if segment.seq <= self.nxt && self.window.is_shut(self.nxt) {
            // A window probe: it is answered and not taken.
            self.acks.now();
            return;
        }
        if segment.flags.has(TcpFlags::FIN) {
            self.fin_seq = end - 1;
        }
        // Only what has merged is more than one.
        let segments = if segment.len == unit { 1 } else { (segment.len / unit.max(1)).max(1) };
        if segment.seq > self.nxt {
            self.note_mark(segment.ecn);
            self.acks.schedule();
            let fresh = !self.reassembly.holds(segment.seq, end);
            if !fresh && self.sack {
                self.reassembly.report_duplicate(segment.seq, end);
            }
            if self.acks.holds_back() && self.reassembly.displaces(segment.seq, end) {
                let mut ranges = [(0, 0); MAX_SACK];
                let count = self.reassembly.blocks(&mut ranges);
                self.owed = Some(Box::new(Owed::Ranges(ranges, count)));
            }
            let joined = self.reassembly.store(segment.seq, end, segments);
            if joined {
                self.window.hold(self.reassembly.held(), self.reassembly.buffers());
            }
            // Without SACK an ACK that moves the window would be no duplicate.
            if fresh && self.sack && self.window.grow(self.nxt, segment.len, joined) {
                self.acks.quick_once();
            }
            self.window.hold(self.reassembly.held(), self.reassembly.buffers());
            return;
        }
        if segment.seq < self.nxt && self.sack {
            self.reassembly.report_duplicate(segment.seq, self.nxt);
        }
        let before = self.nxt;
        self.nxt = end;
        self.window.queue(before, end, segments);
        self.acks.schedule();
        self.acks.measure(unit, segment.flags.has(TcpFlags::PSH), &mut self.window);
        if segment.len > 0 {
            self.window.time_window(end, now);
        }
        self.acks.pace(&self.window, round, now);
        self.note_mark(segment.ecn);
        if unit >= window::GROWTH_LEN && self.window.grow(self.nxt, segment.len, true) {
            self.acks.quick_once();
        }
        if !self.reassembly.is_empty() {
            let window = &mut self.window;
            self.nxt = self.reassembly.advance(self.nxt, |buffer| {
                window.queue(buffer.left, buffer.right, buffer.segments);
            });
            if self.reassembly.is_empty() {
                // RFC 5681, section 4.2: a filled gap is acknowledged at once.
                self.acks.now();
            }
            self.window.hold(self.reassembly.held(), self.reassembly.buffers());
        }
        self.received += self.nxt - before;
        if !self.fin && self.nxt > self.fin_seq {
            // FIN takes a number and is no payload.
            self.fin = true;
            self.received -= 1;
            self.acks.await_farewell();
        }
    }

    /// A segment's ECN field, if the connection has negotiated ECN.
    #[inline(always)]
    fn note_mark(&mut self, ecn: Ecn) {
        if self.ecn {
            self.note_negotiated_mark(ecn);
        }
    }

    /// RFC 3168, section 6.1.3; RFC 8257, section 3.2.
    #[inline(never)]
    fn note_negotiated_mark(&mut self, ecn: Ecn) {
        let marked = ecn == Ecn::Ce;
        if self.accurate && ecn != Ecn::NotEct && marked != self.echo {
            if self.acks.waiting() && self.prior_nxt > self.window.acked {
                let owed = Owed::Mark { ack: self.prior_nxt, echo: self.echo };
                self.owed = Some(Box::new(owed));
            }
            self.echo = marked;
            self.acks.now();
        }
        self.prior_nxt = self.nxt;
        match ecn {
            Ecn::NotEct => {
                // A connection that had ECT and lacks it now retransmits.
                if self.seen_ect {
                    self.acks.enter_quick(QUICK_AFTER_MARK, &self.window);
                }
            }
            Ecn::Ce => {
                self.ce_received += 1;
                if !self.echo {
                    // The sender's window may be small by now: do not make it wait.
                    self.acks.enter_quick(QUICK_AFTER_MARK, &self.window);
                    self.echo = true;
                }
                self.seen_ect = true;
            }
            _ => self.seen_ect = true,
        }
    }

    /// Fills in what every segment with ACK says of the receiving half.
    #[inline(always)]
    pub(crate) fn fill(&mut self, segment: &mut Segment, now: &Now) {
        segment.ack = self.nxt;
        segment.window = self.window.offer(self.nxt, || self.acks.leave_quick(), now);
        segment.ts_echo = self.ts_recent;
        if self.sack && self.reassembly.has_blocks() {
            let room = MAX_SACK;
            segment.sack_count = self.reassembly.blocks(&mut segment.sack[..room]);
        }
        if self.echo {
            segment.flags.set(TcpFlags::ECE);
        }
        self.acks.sent();
    }

    #[inline]
    pub(crate) fn next_timer(&self) -> Time {
        self.acks.next_timer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// A receiver that expects 1001, has acknowledged 501, and offered 5000 then.
    fn receiver(config: &Config) -> Receiver {
        let mut receiver = Receiver::new(config, Ticks::new(config.tick));
        receiver.start(1_460, 12, config.ecn != EcnMode::Off, false);
        (receiver.nxt, receiver.ts_recent) = (1_001, 7);
        (receiver.window.acked, receiver.window.offered) = (501, 5_000);
        receiver
    }

    fn data(seq: u64, len: u32) -> Segment {
        let flags = TcpFlags::ACK;
        Segment { len, timestamps: true, ts_val: 9, ..Segment::new(flags, seq, 1) }
    }

    fn blocks(receiver: &mut Receiver) -> Vec<(u32, u32)> {
        let mut out = [(0, 0); MAX_SACK];
        let count = receiver.reassembly.blocks(&mut out);
        out[..usize::from(count)].to_vec()
    }

    /// True if an ACK is due at once.
    fn prompt(receiver: &mut Receiver) -> bool {
        let Receiver { acks, window, nxt, .. } = receiver;
        acks.decide(*nxt, false, window, &Round::default(), &Now::default())
    }

    /// RFC 9293, section 3.10.7.4, in Linux's way (`tcp_sequence`): some of it must be new and none
    /// of it begin beyond the window.
    #[test]
    fn what_lies_outside_the_window_is_answered_and_not_taken() {
        for (seq, len, taken) in [
            (401, 99, false),
            (401, 100, true),
            (501, 0, true),
            (1_001, 100, true),
            (5_501, 100, true),
            (5_502, 100, false),
        ] {
            let mut receiver = receiver(&Config::default());
            assert_eq!(receiver.accepts(&data(seq, len)), taken, "{seq} {len}");
            assert_eq!(prompt(&mut receiver), !taken);
        }
        // A reset is not answered.
        let mut receiver = receiver(&Config::default());
        assert!(!receiver.accepts(&Segment::new(TcpFlags::RST, 9_000, 0)));
        assert!(!prompt(&mut receiver));
    }

    /// Without timestamps only a window of data tells a round trip; a FIN is no data.
    #[test]
    fn a_window_of_data_is_timed() {
        let timed = |segment: Segment| {
            let mut receiver = receiver(&Config::default());
            receiver.on_data(&segment, segment.len, &Round::default(), &Now::new(Time(5_000_000)));
            receiver.window.timed_us
        };
        let plain = Segment { timestamps: false, ..data(1_001, 1_000) };
        assert_eq!(timed(plain), 5_000);
        assert_eq!(timed(Segment { flags: TcpFlags(TcpFlags::FIN.0), len: 0, ..plain }), 0);
    }

    /// RFC 7323, section 4.3: the stamp of the segment that holds the last number acknowledged.
    #[test]
    fn the_stamp_to_echo_is_of_what_was_expected() {
        for (seq, timestamps, stamp) in
            [(501, true, 9), (490, true, 9), (502, true, 7), (501, false, 7)]
        {
            let mut receiver = receiver(&Config::default());
            assert!(receiver.accepts(&Segment { timestamps, ..data(seq, 600) }));
            assert_eq!(receiver.ts_recent, stamp, "{seq}");
        }
    }

    /// RFC 2883: what had come before is told, up to where it is new.
    #[test]
    fn parts_that_came_twice_are_reported() {
        for (seq, len, outside) in [
            (101, 200, Some((101, 301))),
            (101, 0, None),
            (1_001, 0, None),
            (900, 101, Some((900, 1_001))),
            (900, 300, Some((900, 1_001))),
            (1_001, 100, None),
        ] {
            let mut receiver = receiver(&Config::default());
            receiver.on_outside(&data(seq, len));
            assert_eq!(blocks(&mut receiver).first().copied(), outside, "{seq} {len}");
            assert!(prompt(&mut receiver));
        }
        for sack in [true, false] {
            let mut receiver = receiver(&Config { sack, ..Config::default() });
            let segment = data(901, 300);
            receiver.on_data(&segment, 300, &Round::default(), &Now::default());
            assert_eq!((receiver.nxt, receiver.received), (1_201, 200));
            let told: &[(u32, u32)] = if sack { &[(901, 1_001)] } else { &[] };
            assert_eq!(blocks(&mut receiver), told);
        }
    }

    /// RFC 2883, section 4, as in Linux (`tcp_data_queue`): data that came twice out of order is
    /// reported before the range that holds it. That happens in the next ACK or in none.
    #[test]
    fn what_came_twice_out_of_order_is_told_before_its_range() {
        let mut receiver = receiver(&Config::default());
        receiver.window.offered = 60_000;
        // Ranges that an ACK of before tells of, and whether one is due after that.
        let mut on_data = |seq| {
            let now = Now::new(Time(9_000_000));
            receiver.on_data(&data(seq, 100), 100, &Round::default(), &now);
            let owed = receiver.owed.take().map(|owed| match *owed {
                Owed::Ranges(ranges, count) => ranges[..usize::from(count)].to_vec(),
                Owed::Mark { .. } => panic!("nothing is marked"),
            });
            let Receiver { acks, window, nxt, .. } = &mut receiver;
            if !acks.decide(*nxt, true, window, &Round::default(), &now) {
                return owed;
            }
            receiver.acks.sent();
            Some(blocks(&mut receiver))
        };
        assert_eq!(on_data(2_001), Some([(2_001, 2_101)].to_vec()));
        assert_eq!(on_data(3_001), Some([(3_001, 3_101), (2_001, 2_101)].to_vec()));
        let twice = [(2_001, 2_101), (2_001, 2_101), (3_001, 3_101)];
        assert_eq!(on_data(2_001), Some(twice.to_vec()));
        // Held back from the fourth on, and forgotten when more comes.
        assert_eq!(on_data(3_001), None);
        assert_eq!(on_data(3_101), None);
        // What would push back a range that is told of has an ACK of before sent.
        assert_eq!(on_data(4_001), Some([(3_001, 3_201), (2_001, 2_101)].to_vec()));
        let told = [(2_001, 2_101), (4_001, 4_101), (3_001, 3_201)];
        assert_eq!(on_data(2_001), Some(told.to_vec()));
    }

    /// Linux's `truesize`: segments that have merged take the memory of one. Neighbours share it,
    /// up to seventeen, and what a filled gap sets free joins as well.
    #[test]
    fn what_has_merged_takes_the_memory_of_one() {
        let offered = |segments: &[(u64, u32)]| {
            let config = Config { segment_overhead: 4_000, ..Config::default() };
            let mut receiver = receiver(&Config { rcvbuf: 80_000, ..config });
            receiver.window.offered = 0;
            let now = Now::new(Time(9_000_000));
            for &(seq, len) in segments {
                receiver.on_data(&data(seq, len), 1_000, &Round::default(), &now);
            }
            let Receiver { acks, window, nxt, .. } = &mut receiver;
            window.offer(*nxt, || acks.leave_quick(), &now)
        };
        // Half of what is left of the memory.
        assert_eq!(offered(&[(1_001, 9_000)]), (80_000 - 9_000 - 4_000) / 2);
        assert_eq!(offered(&[(2_001, 1_000), (1_001, 1_000)]), (80_000 - 2_000 - 4_000) / 2);
        let twenty: Vec<(u64, u32)> = (4..21).map(|n| (1 + 1_000 * n, 1_000)).collect();
        let twenty = [&[(1_001, 3_000)], &twenty[..]].concat();
        assert_eq!(offered(&twenty), (80_000 - 20_000 - 8_000) / 2);
        let merged = |second| offered(&[(1_001, 9_000), (10_001, second)]);
        assert_eq!(merged(8_000), (80_000 - 17_000 - 4_000) / 2);
        assert_eq!(merged(9_000), (80_000 - 18_000 - 8_000) / 2);
    }

    /// Number of segments that are acknowledged at once from here on.
    fn quick(receiver: &mut Receiver) -> usize {
        let at_once = |_: &usize| {
            receiver.acks.schedule();
            let due = prompt(receiver);
            receiver.acks.sent();
            receiver.window.acked = receiver.nxt;
            due
        };
        (0..20).take_while(at_once).count()
    }

    /// A needless retransmission is a sign of a lost ACK: the next ones go at once (Linux).
    #[test]
    fn duplicates_bring_quick_acks() {
        for (seq, len, most) in [(101, 200, 16), (101, 0, 0), (1_001, 100, 0)] {
            let mut receiver = receiver(&Config::default());
            receiver.window.offered = 60_000;
            receiver.on_outside(&data(seq, len));
            receiver.acks.sent();
            let left = quick(&mut receiver);
            assert_eq!(left, if most > 0 { most - 1 } else { 0 }, "{seq} {len}");
        }
    }

    /// RFC 3168, section 6.1.3, and Linux's `__tcp_ecn_check_ce`.
    #[test]
    fn marks_are_counted_echoed_and_answered_at_once() {
        let config = Config { ecn: EcnMode::On, ..Config::default() };
        let mut receiver = receiver(&config);
        receiver.window.offered = 60_000;
        receiver.note_mark(Ecn::NotEct);
        assert_eq!((receiver.ce_received, receiver.echo, quick(&mut receiver)), (0, false, 0));
        receiver.note_mark(Ecn::Ce);
        assert_eq!((receiver.ce_received, receiver.echo, quick(&mut receiver)), (1, true, 2));
        receiver.note_mark(Ecn::Ce);
        receiver.note_mark(Ecn::Ect0);
        assert_eq!((receiver.ce_received, receiver.echo, quick(&mut receiver)), (2, true, 0));
        // What lacks ECT now is sent again.
        receiver.note_mark(Ecn::NotEct);
        assert_eq!((receiver.ce_received, quick(&mut receiver)), (2, 2));
        // Without ECN nothing is said.
        let mut without = self::receiver(&Config { ecn: EcnMode::Off, ..config });
        without.note_mark(Ecn::Ce);
        assert_eq!((without.ce_received, without.echo), (0, false));
    }

    /// RFC 8257, section 3.2: before a change is told, what came earlier is, if it still waits.
    #[test]
    fn a_change_of_marks_tells_the_state_before() {
        let owed = |waits, prior_nxt, echo, ecn| {
            let config = Config { ecn: EcnMode::Accurate, ..Config::default() };
            let mut receiver = receiver(&config);
            if waits {
                receiver.acks.schedule();
                assert!(!prompt(&mut receiver));
            }
            (receiver.prior_nxt, receiver.echo) = (prior_nxt, echo);
            receiver.note_mark(ecn);
            assert_eq!(receiver.prior_nxt, 1_001);
            assert_eq!(receiver.echo, if ecn == Ecn::NotEct { echo } else { ecn == Ecn::Ce });
            receiver.owed.map(|owed| match *owed {
                Owed::Mark { ack, echo } => (ack, echo),
                Owed::Ranges(..) => panic!("nothing is held back"),
            })
        };
        assert_eq!(owed(true, 502, false, Ecn::Ce), Some((502, false)));
        assert_eq!(owed(true, 502, true, Ecn::Ect0), Some((502, true)));
        assert_eq!(owed(true, 501, false, Ecn::Ce), None);
        assert_eq!(owed(false, 502, false, Ecn::Ce), None);
        assert_eq!(owed(true, 502, false, Ecn::Ect0), None);
        assert_eq!(owed(true, 502, true, Ecn::NotEct), None);
    }
}
