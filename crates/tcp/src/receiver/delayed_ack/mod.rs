//! Timing of acknowledgements (RFC 5681, section 4.2; RFC 1122, 4.2.3.2; and Linux's rules, in
//! full).
//!
//! At once: every second full segment, a filled gap, a change of marks, and everything in quick-ack
//! mode. That mode covers the first 16 segments, those after a mark or a needless retransmission,
//! and one segment whenever the window has grown. Out of order: three at once, then held back
//! ("compressed") for 1 ms or 5 % of the RTT, whichever is less, up to 44. Otherwise after the
//! delayed-ACK time, which adapts: 40 ms while data flows, longer only where segments come at long
//! intervals.

use simnel_core::time::{Span, Time};

use super::window::ReceiveWindow;
use crate::clock::{before, Now, Ticks};
use crate::config::Config;

/// The delayed-ACK time never exceeds this (RFC 1122 says 500 ms; Linux 200).
const MOST_US: u32 = 200_000;
/// Duplicate ACKs that are never held back: they start recovery.
const PROMPT_DUPLICATES: u8 = 3;
/// Most ACKs held back (`tcp_comp_sack_nr`).
const MOST_COMPRESSED: u8 = 44;
/// Longest that one is held back (`tcp_comp_sack_delay_ns`).
const COMPRESSION: Span = Span::from_micros(1_000);
/// Time by which Linux lets that timer fire later (`tcp_comp_sack_slack_ns`).
const COMPRESSION_SLACK: Span = Span::from_micros(100);
/// Segments below this length say nothing of the peer's MSS (Linux: 536 and the TCP header).
const TELLING_LEN: u32 = 536;

/// State of the sending half that matters here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Round {
    /// Smoothed RTT in µs, zero if unknown.
    pub srtt_us: u32,
    /// Retransmission timeout in ticks.
    pub rto_ticks: u32,
}

/// State of the decision, and its two timers.
#[derive(Clone, Debug)]
pub(crate) struct AckTimers {
    ticks: Ticks,
    delayed: bool,
    compress: bool,
    /// Segments acknowledged at once in a full quick-ack phase.
    pub most_quick: u8,
    /// The delayed-ACK time's least value in ticks.
    least_ticks: u32,

    /// An acknowledgement is owed.
    scheduled: bool,
    /// It is owed at once.
    immediate: bool,
    /// A small segment has come since the last ACK.
    pushed: bool,
    /// Segments still to be acknowledged at once.
    quick: u32,
    /// The delayed-ACK time in ticks; zero before the first data.
    ato: u32,
    /// Tick in which data last came, wrapping.
    last_data: u32,
    /// Data goes both ways: acknowledgements ride on data.
    pingpong: bool,
    /// The delayed ACK's time: its tick, wrapping, and when the timer fires.
    due_tick: u32,
    due: Time,
    /// The last full segment's length, as a hint for the peer's MSS.
    last_len: u32,

    compressed: u8,
    duplicates: u8,
    duplicates_of: u64,
    compression_due: Time,
}

impl AckTimers {
    pub(crate) fn new(config: &Config, ticks: Ticks) -> AckTimers {
        let least_us = config.delayed_ack_time.as_micros().min(500_000) as u32;
        AckTimers {
            ticks,
            delayed: config.delayed_ack,
            compress: config.sack_compression,
            most_quick: config.quick_acks,
            least_ticks: ticks.covering(least_us),
            scheduled: false,
            immediate: false,
            pushed: false,
            quick: 0,
            ato: 0,
            last_data: 0,
            pingpong: false,
            due_tick: 0,
            due: Time::MAX,
            last_len: 0,
            compressed: 0,
            duplicates: 0,
            duplicates_of: 0,
            compression_due: Time::MAX,
        }
    }

    /// Duplicates are held back only where SACK was agreed on: without it each one counts.
    pub(crate) fn hold_back(&mut self, sack: bool) {
        self.compress &= sack;
    }

    /// An acknowledgement is owed, by the rules.
    #[inline]
    pub(crate) fn schedule(&mut self) {
        self.scheduled = true;
    }

    /// An acknowledgement is owed at once.
    #[inline]
    pub(crate) fn now(&mut self) {
        self.scheduled = true;
        self.immediate = true;
    }

    /// One more segment is to be acknowledged at once.
    #[inline]
    pub(crate) fn quick_once(&mut self) {
        self.quick |= 1;
    }

    #[inline]
    pub(crate) fn leave_quick(&mut self) {
        self.quick = 0;
    }

    /// True while duplicate ACKs are held back.
    #[inline]
    pub(crate) fn holds_back(&self) -> bool {
        self.compressed > 0
    }

    /// True while an acknowledgement waits for its time.
    pub(crate) fn waiting(&self) -> bool {
        self.due != Time::MAX
    }

    /// The next `most` segments are acknowledged at once, fewer if the window is small.
    pub(crate) fn enter_quick(&mut self, most: u8, window: &ReceiveWindow) {
        self.add_quick(most, window);
        self.pingpong = false;
        self.ato = self.least_ticks;
    }

    fn add_quick(&mut self, most: u8, window: &ReceiveWindow) {
        let half = match window.offered / (2 * window.peer_mss.max(1)) {
            0 => 2,
            segments => segments,
        };
        self.quick = self.quick.max(half.min(most.into()));
    }

    /// Learns the peer's MSS from a segment of `len` bytes.
    #[inline]
    pub(crate) fn measure(&mut self, len: u32, psh: bool, window: &mut ReceiveWindow) {
        let last = core::mem::replace(&mut self.last_len, 0);
        if len >= window.peer_mss {
            window.peer_mss = len.min(window.advertised_mss);
            self.pushed |= psh;
            return;
        }
        if len >= TELLING_LEN {
            self.last_len = len;
            if len == last {
                window.peer_mss = len;
                return;
            }
        }
        self.pushed = true;
    }

    /// Data has come: adapts the delayed-ACK time to its rhythm.
    #[inline]
    pub(crate) fn pace(&mut self, window: &ReceiveWindow, round: &Round, now: &Now) {
        let tick = self.ticks.number(now) as u32;
        if self.ato == 0 {
            self.add_quick(self.most_quick, window);
            self.ato = self.least_ticks;
        } else {
            let gap = tick.wrapping_sub(self.last_data);
            if gap <= self.least_ticks / 2 {
                self.ato = self.ato / 2 + self.least_ticks / 2;
            } else if gap < self.ato {
                self.ato = (self.ato / 2 + gap).min(round.rto_ticks);
            } else if gap > round.rto_ticks {
                // The sender has started over and needs every ACK.
                self.add_quick(self.most_quick, window);
            }
        }
        self.last_data = tick;
    }

    /// Data of ours leaves: if it answers data just received, ACKs may as well ride on answers.
    #[inline]
    pub(crate) fn on_data_sent(&mut self, now: &Now) {
        let tick = self.ticks.number(now) as u32;
        if self.ato != 0 && tick.wrapping_sub(self.last_data) < self.ato {
            self.pingpong = true;
        }
    }

    /// True if an acknowledgement that is owed is due now that the application has read
    /// (`tcp_cleanup_rbuf`). More than a segment is acknowledged then, even if the window's right
    /// edge does not move. A small segment is acknowledged if all was read and data goes one way.
    pub(crate) fn due_at_read(&self, nxt: u64, window: &ReceiveWindow) -> bool {
        let second = nxt - window.acked > u64::from(window.peer_mss);
        let small = self.pushed && !self.pingpong && window.all_read(nxt);
        self.scheduled && (second || small)
    }

    /// FIN has come: the application will close, too, and its FIN acknowledges this one.
    pub(crate) fn await_farewell(&mut self) {
        self.pingpong = true;
    }

    /// Nothing more leaves with data: is a bare ACK due? Starts a timer if it must wait.
    #[inline]
    pub(crate) fn decide(
        &mut self,
        nxt: u64,
        out_of_order: bool,
        window: &mut ReceiveWindow,
        round: &Round,
        now: &Now,
    ) -> bool {
        if !self.scheduled {
            return false;
        }
        if self.immediate || (self.quick > 0 && !self.pingpong) || !self.delayed {
            return true;
        }
        let second = nxt - window.acked > u64::from(window.peer_mss);
        if second && window.may_advance(nxt, now) {
            return true;
        }
        if out_of_order {
            return self.decide_out_of_order(nxt, window, round, now);
        }
        // The rest is the application's, which reads when all of the moment has come.
        if window.more_comes() {
            return self.delay(round, now);
        }
        if second && window.reads(nxt) {
            return true;
        }
        // The application has read all there was; a small segment is answered then.
        if self.pushed && !self.pingpong && window.reads(nxt) {
            return true;
        }
        self.delay(round, now)
    }

    /// Duplicate ACKs: three at once, the rest together.
    fn decide_out_of_order(
        &mut self,
        nxt: u64,
        window: &ReceiveWindow,
        round: &Round,
        now: &Now,
    ) -> bool {
        if !self.compress || self.compressed >= MOST_COMPRESSED {
            return true;
        }
        if self.duplicates_of != nxt {
            self.duplicates_of = nxt;
            self.duplicates = 0;
        }
        if self.duplicates < PROMPT_DUPLICATES {
            self.duplicates += 1;
            return true;
        }
        self.compressed += 1;
        self.scheduled = false;
        if self.compression_due == Time::MAX {
            let mut rtt_us = window.rtt_us();
            if round.srtt_us != 0 && (rtt_us == 0 || round.srtt_us < rtt_us) {
                rtt_us = round.srtt_us;
            }
            let share = Span(u64::from(rtt_us) * 1_000 / 20);
            self.compression_due = now.time + share.min(COMPRESSION) + COMPRESSION_SLACK;
        }
        false
    }

    /// Starts the delayed-ACK timer; true if it is as good as over.
    fn delay(&mut self, round: &Round, now: &Now) -> bool {
        let mut ato = self.ato;
        let most_ticks = self.ticks.covering(MOST_US).max(self.least_ticks);
        if ato > self.least_ticks && round.srtt_us != 0 {
            ato = ato.min(self.ticks.covering(round.srtt_us).max(self.least_ticks));
        }
        let ato = ato.min(most_ticks);
        let tick = self.ticks.number(now) as u32;
        let due_tick = tick.wrapping_add(ato);
        if self.due != Time::MAX {
            if !before(tick.wrapping_add(ato / 4), self.due_tick) {
                return true;
            }
            if !before(due_tick, self.due_tick) {
                return false;
            }
        }
        self.due_tick = due_tick;
        self.due = self.ticks.deadline(now, ato);
        false
    }

    /// A segment with an acknowledgement has left.
    #[inline]
    pub(crate) fn sent(&mut self) {
        self.compressed = 0;
        self.compression_due = Time::MAX;
        if self.quick > 0 && self.scheduled {
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = self.least_ticks;
            }
        }
        self.scheduled = false;
        self.immediate = false;
        self.pushed = false;
        self.due = Time::MAX;
    }

    /// No timer any more.
    pub(crate) fn stop(&mut self) {
        self.sent();
    }

    #[inline]
    pub(crate) fn next_timer(&self) -> Time {
        self.due.min(self.compression_due)
    }

    /// Lets timers that are due fire.
    pub(crate) fn on_timer(&mut self, round: &Round, now: &Now) {
        if self.compression_due <= now.time {
            self.compression_due = Time::MAX;
            if self.compressed > 0 {
                self.compressed -= 1;
                self.now();
            }
        }
        if self.due <= now.time {
            self.due = Time::MAX;
            if self.scheduled {
                if self.pingpong {
                    self.pingpong = false;
                    self.ato = self.least_ticks;
                } else {
                    // Missed: the next segment takes longer than was thought.
                    self.ato = (self.ato * 2).min(round.rto_ticks.max(1));
                }
                self.now();
            }
        }
    }
}

#[cfg(test)]
mod tests;
