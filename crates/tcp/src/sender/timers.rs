//! The sender's timer: retransmission, tail loss probe, reordering, window probe. One at a time.
//!
//! Whichever is due next supersedes the others, as in Linux. A tail loss probe replaces the
//! retransmission timer. Whatever fires or is cancelled restores that timer with what is left of
//! its time. (RFC 6298; RFC 8985, sections 7.2, 7.3 and 8; RFC 9293, 3.8.6.1.)

use simnel_core::time::Time;

use super::{Forced, Sender, MAX_RTO_US};
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
        // What is still waited for is left to acknowledgements, or the timeout.
        self.mark_overdue(now);
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
        self.rearm_rto(now);
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

#[cfg(test)]
mod tests {
    use super::super::scoreboard::Record;
    use super::*;
    use crate::clock::Ticks;
    use crate::{Config, CongestionControl};

    fn at(ms: u64) -> Now {
        Now::new(Time(ms * 1_000_000))
    }

    /// Five segments in flight since 1 s, with a timeout of 1 s.
    fn sender() -> Sender {
        let mut sender = Sender::new(&Config::default());
        for n in 0..5 {
            let record = Record { seq: 1 + 100 * n, len: 100, ..Record::default() };
            sender.board.push(Record { sent_us: 1_000_000, ..record });
        }
        (sender.window.una, sender.window.nxt, sender.window.mss) = (1, 501, 100);
        sender
    }

    #[test]
    fn the_timeout_counts_from_when_the_head_was_sent() {
        let sender = sender();
        assert_eq!(sender.rto_remaining_us(&at(1_300)), 700_000);
        assert_eq!(sender.rto_remaining_us(&at(2_000)), 0);
        assert_eq!(sender.rto_remaining_us(&at(2_500)), -500_000);
        assert_eq!(Sender::new(&Config::default()).rto_remaining_us(&at(9_000)), 1_000_000);
    }

    /// RFC 8985, section 7.2: two RTTs, more for a single segment, and never after the timeout.
    #[test]
    fn a_probe_is_set_to_two_round_trips() {
        let ticks = |srtt_ms: u32, records: u32, fresh, now_ms| {
            let mut sender = sender();
            (records..5).for_each(|_| sender.board.pop());
            sender.rtt.srtt8_us = 8_000 * srtt_ms;
            sender.ticks = Ticks::new(simnel_core::time::Span::ZERO);
            sender.timers.rto_ticks = 1_000_000;
            let now = at(now_ms);
            assert!(sender.schedule_probe(fresh, &now));
            assert_eq!(sender.timers.kind, Kind::Probe);
            sender.timers.at.since(now.time).as_micros()
        };
        assert_eq!(ticks(50, 5, true, 1_000), 100_002);
        assert_eq!(ticks(50, 1, true, 1_000), 300_000);
        assert_eq!(ticks(600, 5, true, 1_900), 1_000_000);
        assert_eq!(ticks(600, 5, false, 1_900), 100_000);
        // The timeout is past: it no longer counts.
        assert_eq!(ticks(50, 5, false, 2_500), 100_002);
        assert_eq!(ticks(50, 5, false, 2_000), 100_002);
    }

    #[test]
    fn only_a_window_probe_is_stopped_by_data() {
        for kind in [Kind::Rto, Kind::Probe, Kind::Reordering, Kind::WindowProbe] {
            let mut sender = sender();
            (sender.timers.kind, sender.timers.at) = (kind, Time(77));
            assert_eq!(sender.reordering_timer_runs(), kind == Kind::Reordering);
            sender.stop_window_probe();
            let stopped = kind == Kind::WindowProbe;
            assert_eq!(sender.timers.kind, if stopped { Kind::None } else { kind });
            assert_eq!(sender.timers.at, if stopped { Time::MAX } else { Time(77) });
        }
    }

    /// `tcp_retries2`: the peer has not answered fifteen probes of its window.
    #[test]
    fn fifteen_window_probes_in_vain_end_it() {
        let mut sender = Sender::new(&Config::default());
        let mut probes = 0;
        loop {
            sender.start_window_probe(&at(0));
            let due = Now::new(sender.timers.at);
            if !sender.on_timer(&due) {
                break;
            }
            assert_eq!(sender.forced.take(), Some(Forced::WindowProbe));
            probes += 1;
        }
        assert_eq!(probes, MAX_RETRIES);
    }

    #[test]
    fn what_the_pacer_held_back_leaves_when_its_time_has_come() {
        use super::super::Resend;
        for (lost, resent, resend) in
            [(0, 0, Resend::Nothing), (1, 0, Resend::Lost), (1, 1, Resend::Nothing)]
        {
            let mut sender = sender();
            (sender.board.lost_out, sender.board.resent_out) = (lost, resent);
            (sender.pacer.wake, sender.dirty) = (at(7).time, false);
            assert!(sender.on_timer(&at(6)) && !sender.dirty);
            assert!(sender.on_timer(&at(7)) && sender.dirty);
            assert_eq!((sender.resend, sender.pacer.wake), (resend, Time::MAX));
        }
    }

    /// RFC 8985, section 7.3: one probe at a time, and only of something in flight.
    #[test]
    fn one_probe_is_out_at_a_time() {
        let forced = |probe_end, empty| {
            let mut sender = if empty { Sender::new(&Config::default()) } else { sender() };
            sender.recovery.probe_end = probe_end;
            sender.send_probe(&at(1_100));
            assert_eq!(sender.counters.probes, u32::from(sender.forced.is_some()));
            sender.forced
        };
        assert_eq!(forced(0, false), Some(Forced::Probe));
        assert_eq!((forced(501, false), forced(0, true)), (None, None));
    }

    /// RFC 8985, section 6.2, step 5: the timer of the reordering window starts recovery, once.
    #[test]
    fn the_reordering_timer_starts_recovery() {
        let fire = |phase, congestion, ms| {
            let mut sender = sender();
            let own = Sender::new(&Config { congestion, ..Config::default() });
            (sender.control, sender.sampler) = (own.control, own.sampler);
            sender.rtt.update(40_000, 1, 501);
            sender.rtt.update_min(&at(0), 40_000);
            (sender.window.phase, sender.window.cwnd) = (phase, 20);
            sender.recovery.reordering_seen = true;
            // The last one has arrived, 40 ms after it was sent.
            sender.board.get_mut(4).sent_us = 1_001_000;
            let last = *sender.board.get(4);
            sender.rack.advance(&last, 40_000, &at(1_041));
            sender.timers.kind = Kind::Reordering;
            sender.on_reordering_timer(&at(ms));
            let kind = sender.timers.kind;
            (sender.window.phase, sender.board.lost_out, sender.window.cwnd, kind)
        };
        use CongestionControl::{Bbr, Reno};
        // Lost 40 ms and a window of 10 after they left; before that the timer, which a short
        // timeout made early, leaves them to the timeout (Linux's `tcp_rack_reo_timeout`).
        assert_eq!(fire(Phase::Open, Reno, 1_049), (Phase::Open, 0, 20, Kind::Rto));
        // One leaves at once, whatever the proportion is.
        assert_eq!(fire(Phase::Open, Reno, 1_050), (Phase::Recovery, 4, 2, Kind::Rto));
        assert_eq!(fire(Phase::Recovery, Reno, 1_050), (Phase::Recovery, 4, 20, Kind::Rto));
        assert_eq!(fire(Phase::Open, Bbr, 1_050).0, Phase::Recovery);
        assert!(fire(Phase::Open, Bbr, 1_050).2 != 2);
    }
}
