//! The sender's timer: retransmission, tail loss probe, reordering, window probe. One at a time.
//!
//! Whichever is due next supersedes the others, as in Linux: a tail loss probe replaces the
//! retransmission timer, and whatever fires or is cancelled restores it with what is left of its
//! time. (RFC 6298; RFC 8985, sections 7.2 and 7.3; RFC 9293, 3.8.6.1.)

use simnel_core::time::Time;

use super::transmit::Forced;
use super::{Sender, MAX_RTO_US};
use crate::clock::Now;
use crate::congestion::Phase;

/// Purpose of the timer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// It is not set.
    #[default]
    None,
    /// Retransmission timeout.
    Rto,
    /// Tail loss probe.
    Probe,
    /// The reordering window of a suspected loss ends.
    Reordering,
    /// The peer's window may have opened again.
    WindowProbe,
}

/// Timeouts in a row after which the connection is given up (`tcp_retries2`).
pub(super) const MAX_RETRIES: u8 = 15;
/// SYNs in vain after which the connection is given up (`tcp_syn_retries`).
pub(super) const MAX_SYN_RETRIES: u8 = 6;
/// Linux's least timer in ticks (`TCP_TIMEOUT_MIN`).
const LEAST_TICKS: u32 = 2;

/// The timer and the retransmission timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    pub kind: Kind,
    pub at: Time,
    /// Retransmission timeout, backoff included.
    pub rto_ticks: u32,
    /// That has been doubled since the last sample of the RTT.
    pub is_doubled: bool,
    /// Timeouts since something was acknowledged.
    pub retries: u8,
    pub window_probes: u8,
}

impl Timers {
    pub(super) fn new(initial_ticks: u32) -> Timers {
        Timers {
            kind: Kind::None,
            at: Time::MAX,
            rto_ticks: initial_ticks,
            is_doubled: false,
            retries: 0,
            window_probes: 0,
        }
    }
}

impl Sender {
    #[inline]
    fn arm(&mut self, kind: Kind, ticks: u32, now: &Now) {
        self.timers.kind = kind;
        self.timers.at = self.ticks.deadline(now, ticks);
    }

    /// The same, with what a paced segment waits before it leaves on top.
    #[inline]
    fn arm_paced(&mut self, kind: Kind, ticks: u32, now: &Now) {
        let wait = match self.window.paced {
            true => self.ticks.within(self.pacer.delay(now.time)),
            false => 0,
        };
        self.arm(kind, ticks + wait, now);
    }

    #[inline]
    fn disarm(&mut self) {
        self.timers.kind = Kind::None;
        self.timers.at = Time::MAX;
    }

    /// Microseconds until the retransmission timeout of the first segment; may be past.
    #[inline]
    fn rto_remaining_us(&self, now: &Now) -> i32 {
        let rto_us = self.ticks.to_us(self.timers.rto_ticks) as i32;
        match self.board.first() {
            Some(record) => rto_us - now.us.wrapping_sub(record.sent_us) as i32,
            None => rto_us,
        }
    }

    /// Restores the retransmission timer; one that was put off keeps the time it has used.
    #[inline]
    pub(super) fn rearm_rto(&mut self, now: &Now) {
        if self.board.is_empty() {
            self.disarm();
            return;
        }
        let mut ticks = self.timers.rto_ticks;
        if matches!(self.timers.kind, Kind::Probe | Kind::Reordering) {
            ticks = self.ticks.covering(self.rto_remaining_us(now).max(1) as u32);
        }
        self.arm_paced(Kind::Rto, ticks, now);
    }

    /// After progress: a tail loss probe if one is due before the timeout, else the timeout.
    #[inline]
    pub(super) fn set_timer(&mut self, now: &Now) {
        if !self.schedule_probe(true, now) {
            self.rearm_rto(now);
        }
    }

    /// A tail loss probe guards what is in flight.
    #[inline]
    pub(super) fn wants_probe(&self) -> bool {
        self.settings.tail_loss_probe
            && self.sack
            && !self.board.is_empty()
            && matches!(self.window.phase, Phase::Open | Phase::Cwr)
    }

    /// Sets the tail loss probe: two RTTs, more if the receiver may delay its only ACK. With
    /// `fresh` the retransmission timer would start anew. False if there is to be none.
    pub(super) fn schedule_probe(&mut self, fresh: bool, now: &Now) -> bool {
        if !self.wants_probe() {
            return false;
        }
        let mut ticks = self.settings.initial_rto_ticks;
        if self.rtt.srtt8_us != 0 {
            ticks = self.ticks.covering(self.rtt.srtt8_us >> 2);
            ticks += match self.board.len() {
                1 => self.ticks.covering(self.rtt.floor_us()),
                _ => LEAST_TICKS,
            };
        }
        let rto_us = if fresh {
            self.ticks.to_us(self.timers.rto_ticks) as i32
        } else {
            self.rto_remaining_us(now)
        };
        if rto_us > 0 {
            ticks = ticks.min(self.ticks.covering(rto_us as u32));
        }
        self.arm_paced(Kind::Probe, ticks, now);
        true
    }

    /// Sets the reordering timer.
    pub(super) fn start_reordering_timer(&mut self, wait_us: u32, now: &Now) {
        let ticks = self.ticks.covering(wait_us) + LEAST_TICKS;
        self.arm(Kind::Reordering, ticks.min(self.timers.rto_ticks), now);
    }

    #[inline]
    pub(super) fn reordering_timer_runs(&self) -> bool {
        self.timers.kind == Kind::Reordering
    }

    /// The peer's window is shut and nothing is in flight: ask from time to time.
    pub(super) fn start_window_probe(&mut self, now: &Now) {
        if self.timers.kind == Kind::None {
            let ticks = self.backed_off(self.timers.window_probes.into());
            self.arm_paced(Kind::WindowProbe, ticks, now);
        }
    }

    /// Something could be sent: no window probe is needed.
    #[inline]
    pub(super) fn stop_window_probe(&mut self) {
        if self.timers.kind == Kind::WindowProbe {
            self.disarm();
        }
    }

    /// The timeout doubled `times`, at most the cap.
    fn backed_off(&self, times: u32) -> u32 {
        let cap = self.ticks.covering(MAX_RTO_US);
        let doubled = u64::from(self.timers.rto_ticks) << times.min(20);
        doubled.min(u64::from(cap)) as u32
    }

    /// Lets the timer fire if it is due. False if the connection must be given up.
    pub(crate) fn on_timer(&mut self, now: &Now) -> bool {
        if self.pacer.wake <= now.time {
            self.pacer.wake = Time::MAX;
            self.dirty = true;
            if self.board.lost_out > self.board.resent_out {
                self.allow_resends();
            }
        }
        if self.timers.at > now.time {
            return true;
        }
        self.burst = 0;
        self.dirty = true;
        let kind = self.timers.kind;
        match kind {
            Kind::None => self.disarm(),
            Kind::Rto => return self.on_timeout(now),
            Kind::Probe => self.send_probe(now),
            Kind::Reordering => self.on_reordering_timer(now),
            Kind::WindowProbe => {
                self.disarm();
                self.timers.window_probes += 1;
                if self.timers.window_probes > MAX_RETRIES {
                    return false;
                }
                self.forced = Some(Forced::WindowProbe);
            }
        }
        true
    }

    fn on_timeout(&mut self, now: &Now) -> bool {
        self.disarm();
        if self.board.is_empty() {
            return true;
        }
        let opening = self.window.una == 0;
        let most = if opening { MAX_SYN_RETRIES } else { MAX_RETRIES };
        if self.timers.retries >= most {
            return false;
        }
        self.counters.timeouts += 1;
        if opening {
            self.forced = Some(Forced::Again { counted: false });
        } else {
            self.enter_loss(now);
            self.forced = Some(Forced::Again { counted: true });
        }
        self.timers.retries += 1;
        self.timers.is_doubled = true;
        self.timers.rto_ticks = self.backed_off(1);
        self.arm(Kind::Rto, self.timers.rto_ticks, now);
        true
    }

    /// Tail loss probe: new data if there is any, else the last segment again.
    fn send_probe(&mut self, now: &Now) {
        if self.recovery.probe_end == 0 && !self.board.is_empty() {
            self.recovery.probe_resent = false;
            self.counters.probes += 1;
            self.forced = Some(Forced::Probe);
        } else {
            self.rearm_rto(now);
        }
    }

    fn on_reordering_timer(&mut self, now: &Now) {
        let in_flight = self.board.in_flight();
        let lost = self.window.lost;
        let wait_us = self.mark_overdue(now);
        if wait_us > 0 {
            self.start_reordering_timer(wait_us, now);
        }
        if self.board.in_flight() != in_flight {
            if self.window.phase != Phase::Recovery {
                self.enter_recovery(false, now);
                if !self.control.takes_over() {
                    let lost = self.window.lost.wrapping_sub(lost);
                    self.reduce_proportionally(1, lost, false);
                }
            }
            self.allow_resends();
        }
        if wait_us == 0 {
            self.rearm_rto(now);
        }
    }

    /// Call after a probe was sent: the timeout starts anew, and nothing else guards the probe.
    pub(super) fn probe_sent(&mut self, resent: bool, now: &Now) {
        self.burst = 0;
        self.recovery.probe_end = self.window.nxt;
        self.recovery.probe_resent = resent;
        self.timers.kind = Kind::None;
        self.rearm_rto(now);
    }
}
