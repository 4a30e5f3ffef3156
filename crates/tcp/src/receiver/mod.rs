//! The receiving half of an endpoint.
//!
//! `reassembly` keeps what came out of order and says what to SACK; `delayed_ack` decides when to
//! acknowledge; `window` decides how much to offer. This file is the path of a segment through
//! them, in Linux's order: measure, queue, note marks, grow the window, then the ACK decision,
//! which waits until the sender has had its chance to carry the acknowledgement with data.

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
        if segment.seq > self.nxt {
            self.note_mark(segment.ecn);
            self.acks.schedule();
            if self.acks.holds_back() && self.reassembly.displaces(segment.seq, end) {
                let mut ranges = [(0, 0); MAX_SACK];
                let count = self.reassembly.blocks(&mut ranges);
                self.owed = Some(Box::new(Owed::Ranges(ranges, count)));
            }
            let fresh = self.reassembly.store(segment.seq, end);
            if !fresh && self.sack {
                self.reassembly.report_duplicate(segment.seq, end);
            }
            // Without SACK an ACK that moves the window would be no duplicate.
            if fresh && self.sack && self.window.grow(segment.len, unit, false) {
                self.acks.quick_once();
            }
            self.window.hold(self.reassembly.held(), self.reassembly.ranges());
            return;
        }
        if segment.seq < self.nxt && self.sack {
            self.reassembly.report_duplicate(segment.seq, self.nxt);
        }
        let before = self.nxt;
        self.nxt = end;
        self.window.queue(before, end, (segment.len / unit.max(1)).max(1));
        self.acks.schedule();
        self.acks.measure(unit, segment.flags.has(TcpFlags::PSH), &mut self.window);
        self.acks.pace(&self.window, round, now);
        self.note_mark(segment.ecn);
        if unit >= window::GROWTH_LEN && self.window.grow(segment.len, unit, true) {
            self.acks.quick_once();
        }
        if !self.reassembly.is_empty() {
            self.nxt = self.reassembly.advance(self.nxt);
            if self.nxt > end {
                self.window.queue_held(end, self.nxt);
            }
            if self.reassembly.is_empty() {
                // RFC 5681, section 4.2: a filled gap is acknowledged at once.
                self.acks.now();
            }
            self.window.hold(self.reassembly.held(), self.reassembly.ranges());
        }
        self.received += self.nxt - before;
        if !self.fin && self.nxt > self.fin_seq {
            // FIN takes a number and is no payload.
            self.fin = true;
            self.received -= 1;
            self.acks.now();
        }
    }

    /// A segment's ECN field (RFC 3168, section 6.1.3; RFC 8257, section 3.2).
    #[inline]
    fn note_mark(&mut self, ecn: Ecn) {
        if !self.ecn {
            return;
        }
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
    #[inline]
    pub(crate) fn fill(&mut self, segment: &mut Segment, now: &Now) {
        segment.ack = self.nxt;
        segment.window = self.window.offer(self.nxt, &mut self.acks, now);
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
