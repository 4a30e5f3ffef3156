//! Choice of the next segment: forced ones, lost ones again, new data; and window validation.
//!
//! The endpoint polls until there is nothing more. New data needs room in the congestion window and
//! in the peer's. As far as they are on, it also passes Nagle's rule (with Minshall's refinement),
//! TSO's wish for larger bursts, and the pacer. When the burst is over, the sender notes whether
//! the window was what limited it: an application-limited window must not grow (RFC 7661).

use super::scoreboard::{flag, Record};
use super::{Forced, Resend, Sender};
use crate::clock::Now;
use crate::congestion::{Event, Phase};

/// A segment to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    pub seq: u64,
    /// Payload bytes.
    pub len: u32,
    pub syn: bool,
    pub fin: bool,
    pub psh: bool,
    /// Sent for the first time.
    pub fresh: bool,
}

/// Reason why no new segment leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Limit {
    /// Nothing was written.
    Application,
    /// The congestion window.
    Window,
    /// The peer's window.
    Peer,
    /// A wait that ends by itself.
    Other,
}

/// Share of the window for which TSO waits at most (`tcp_tso_win_divisor`).
const TSO_WINDOW_SHARE: u32 = 3;

impl Sender {
    /// Opens our direction: a SYN will leave.
    pub(crate) fn open(&mut self) {
        self.forced = Some(Forced::Syn);
        self.dirty = true;
    }

    /// The next segment, if any. `established`: data may be sent.
    #[inline]
    pub(crate) fn poll(&mut self, established: bool, now: &Now) -> Option<Outgoing> {
        if !self.dirty {
            return None;
        }
        if let Some(forced) = self.forced.take() {
            if let Some(outgoing) = self.force(forced, now) {
                return Some(outgoing);
            }
        }
        if !established {
            self.dirty = false;
            return None;
        }
        if self.resend == Resend::Lost {
            if let Some(outgoing) = self.resend_lost(now) {
                return Some(outgoing);
            }
            self.resend = Resend::Nothing;
        }
        let outgoing = self.send_new(now);
        if outgoing.is_none() && self.resend == Resend::NewFirst {
            self.resend = Resend::Nothing;
            if self.window.nxt <= self.recovery.high_seq {
                // F-RTO could send nothing new: conventional recovery.
                self.recovery.frto = false;
                self.resend = Resend::Lost;
                return self.poll(established, now);
            }
        }
        outgoing
    }

    #[cold]
    fn force(&mut self, forced: Forced, now: &Now) -> Option<Outgoing> {
        match forced {
            Forced::Syn => {
                let record = Record {
                    seq: 0,
                    sent_us: now.us,
                    len: 1,
                    flags: flag::SYN,
                    ..Record::default()
                };
                self.board.push(record);
                // Also if it is repeated: an answer to this one shows that it was not lost.
                self.recovery.resend_stamp = now.timestamp();
                self.window.nxt = 1;
                self.window.packets_out = 1;
                self.rearm_rto(now);
                Some(outgoing(&record, true))
            }
            Forced::Again { counted } => {
                let id = self.board.head();
                (!self.board.is_empty()).then(|| self.send_again(id, counted, now))
            }
            Forced::Probe => self.force_probe(now),
            Forced::WindowProbe => {
                let room = self.peer_edge.saturating_sub(self.window.nxt);
                let unsent = self.written().min(u64::from(self.window.mss));
                self.start_window_probe(now);
                if room > 0 && unsent > 0 {
                    return Some(self.send_segment(unsent.min(room) as u32, now));
                }
                let seq = self.window.una.wrapping_sub(1);
                Some(Outgoing { seq, len: 0, syn: false, fin: false, psh: false, fresh: false })
            }
        }
    }

    fn force_probe(&mut self, now: &Now) -> Option<Outgoing> {
        let len = self.written().min(u64::from(self.window.mss)) as u32;
        if len > 0 && self.window.nxt + u64::from(len) <= self.peer_edge {
            if self.window.paced && self.pacer.must_wait(now.time) {
                self.rearm_rto(now);
                return None;
            }
            let outgoing = self.send_segment(len, now);
            self.probe_sent(false, now);
            return Some(outgoing);
        }
        if self.board.is_empty() {
            return None;
        }
        let outgoing = self.send_again(self.board.last_id(), false, now);
        self.probe_sent(true, now);
        Some(outgoing)
    }

    /// The next lost segment, if the window has room.
    fn resend_lost(&mut self, now: &Now) -> Option<Outgoing> {
        if self.board.in_flight() >= self.window.cwnd {
            return None;
        }
        let id = self.board.next_to_resend()?;
        if self.window.paced && self.pacer.must_wait(now.time) {
            return None;
        }
        let outgoing = self.send_again(id, true, now);
        self.count_sent_in_reduction();
        if id == self.board.head() && !self.reordering_timer_runs() {
            self.timers.kind = super::timers::Kind::None;
            self.rearm_rto(now);
        }
        Some(outgoing)
    }

    /// Sends a segment once more; `counted` if because it was taken for lost.
    fn send_again(&mut self, id: u32, counted: bool, now: &Now) -> Outgoing {
        if outgoing(self.board.get(id), false).len > 0 {
            self.note_departure(now);
        }
        let departure = self.sampler.depart(false, self.window.delivered, now);
        self.board.set_departure(id, departure);
        self.board.note_resent(id, now.us, counted);
        let limited = if self.sampler.app_limited() { flag::APP_LIMITED } else { 0 };
        let record = self.board.get_mut(id);
        record.flags = record.flags & !flag::APP_LIMITED | limited;
        if counted {
            if self.recovery.resend_stamp == 0 {
                self.recovery.resend_stamp = now.timestamp();
            }
            self.recovery.undo_resends = self.recovery.undo_resends.max(0) + 1;
        }
        let record = *self.board.get(id);
        self.counters.resends += 1;
        let outgoing = outgoing(&record, false);
        self.counters.data_segments += u64::from(outgoing.len > 0);
        self.counters.bytes_sent += u64::from(outgoing.len);
        self.after_sending(outgoing.len, now);
        outgoing
    }

    /// New data, if all allow it; closes the burst if not.
    #[inline]
    fn send_new(&mut self, now: &Now) -> Option<Outgoing> {
        loop {
            let limit = match self.next_new(now) {
                Ok(len) => return Some(self.send_segment(len, now)),
                Err(limit) => limit,
            };
            if self.refill() {
                continue;
            }
            // The writer has got to the end of its calls, and closes behind what is left of them.
            let waits = self.write_end > self.window.nxt;
            if core::mem::take(&mut self.writing) && self.closing && waits {
                continue;
            }
            if limit == Limit::Peer && self.board.is_empty() {
                self.start_window_probe(now);
            }
            return self.end_burst(limit == Limit::Window, now);
        }
    }

    /// Payload bytes of the next new segment, or what forbids it.
    #[inline]
    fn next_new(&mut self, now: &Now) -> Result<u32, Limit> {
        let unsent = self.write_end.saturating_sub(self.window.nxt);
        let fin = self.closing && !self.fin_sent && self.source.left == 0;
        if unsent == 0 && !fin {
            return Err(Limit::Application);
        }
        let mss = self.window.mss;
        let len = unsent.min(u64::from(mss)) as u32;
        if self.board.is_empty() {
            self.restart_after_idle(now);
        }
        let in_flight = self.board.in_flight();
        let carries_fin = fin && self.ends_with(len, unsent);
        if in_flight >= self.window.cwnd && !(carries_fin && self.settings.tso_segments == 1) {
            return Err(Limit::Window);
        }
        if self.window.nxt + u64::from(len) > self.peer_edge {
            return Err(Limit::Peer);
        }
        if self.window.nxt + u64::from(len) - self.window.una > self.settings.in_flight_max.into() {
            return Err(Limit::Other);
        }
        if len < mss && !carries_fin && self.nagle_holds() {
            return Err(Limit::Other);
        }
        if self.settings.tso_segments > 1 && self.tso_waits(unsent, in_flight, now) {
            return Err(Limit::Window);
        }
        if self.window.paced && self.pacer.must_wait(now.time) {
            return Err(Limit::Other);
        }
        Ok(len)
    }

    /// True if FIN rides on a segment of `len` bytes of those that wait: on the last of them, and
    /// not while the writer writes. It closes afterwards, and what could leave at once has left.
    /// A segment with FIN leaves whatever the window (`tcp_send_fin`, `tcp_cwnd_test`).
    #[inline]
    fn ends_with(&self, len: u32, unsent: u64) -> bool {
        u64::from(len) == unsent && (len == 0 || !self.writing)
    }

    /// A small segment is in flight and unacknowledged: another must wait.
    #[inline]
    fn nagle_holds(&self) -> bool {
        self.settings.nagle && !self.board.is_empty() && self.small_end > self.window.una
    }

    /// True if less than a super-packet (TSO) is to wait for more room in the window.
    #[inline(never)]
    fn tso_waits(&self, unsent: u64, in_flight: u32, now: &Now) -> bool {
        if self.burst > 0 || self.window.phase >= Phase::Recovery {
            return false;
        }
        let goal = self.burst_goal();
        let room = self.window.cwnd - in_flight;
        let waiting = unsent.div_ceil(u64::from(self.window.mss.max(1)));
        if u64::from(room) >= waiting || room >= goal {
            return false;
        }
        if room >= self.window.cwnd / TSO_WINDOW_SHARE {
            return false;
        }
        // As long as writes follow one another, and the head's ACK is due within a millisecond or
        // half an RTT.
        let Some(head) = self.board.first() else { return false };
        let (age, rtt) = (now.since_us(head.sent_us), self.rtt.srtt_us());
        let follows = now.ms.wrapping_sub(self.window.last_sent_ms) <= 1;
        follows && age + (rtt / 2).min(1_000) >= rtt
    }

    /// Segments of a super-packet: a millisecond at the pacing rate, two at least.
    pub(super) fn burst_goal(&self) -> u32 {
        let per_ms = (self.window.current_rate() >> 10) / u64::from(self.window.mss.max(1));
        (per_ms.min(64) as u32).clamp(2, self.settings.tso_segments.max(2))
    }

    /// Sends `len` bytes of new data, with FIN if they are the last.
    #[inline]
    fn send_segment(&mut self, len: u32, now: &Now) -> Outgoing {
        let seq = self.window.nxt;
        let end = seq + u64::from(len);
        let last = end == self.write_end;
        let ends = self.ends_with(len, self.write_end.saturating_sub(seq));
        let fin = self.closing && ends && self.source.left == 0 && !self.fin_sent;
        self.stop_window_probe();

        self.note_departure(now);
        let departure = self.sampler.depart(self.board.is_empty(), self.window.delivered, now);
        let mut flags = 0;
        let psh = len > 0 && self.source.pushes(end, last);
        if psh {
            flags |= flag::PSH;
        }
        if fin {
            flags |= flag::FIN;
            self.fin_sent = true;
        }
        if self.sampler.app_limited() {
            flags |= flag::APP_LIMITED;
        }
        let sequence_len = (len + u32::from(fin)) as u16;
        let record = Record { seq, sent_us: now.us, len: sequence_len, flags, judged: false };
        let first = self.board.is_empty();
        let id = self.board.push(record);
        self.board.set_departure(id, departure);
        self.window.nxt = end + u64::from(fin);
        self.window.packets_out = self.board.len();
        if len < self.window.mss {
            self.small_end = end;
        }
        self.burst += 1;
        self.counters.data_segments += u64::from(len > 0);
        self.counters.bytes_sent += u64::from(len);
        self.count_sent_in_reduction();
        // Where a tail loss probe is wanted, the end of the burst sets it.
        if (first || self.timers.kind == super::timers::Kind::Probe) && !self.wants_probe() {
            self.rearm_rto(now);
        }
        self.after_sending(len, now);
        if self.source.left > 0 {
            self.look_for_room();
        }
        Outgoing { seq, len, syn: false, fin, psh, fresh: true }
    }

    /// Data leaves, for the first time or again.
    #[inline]
    fn note_departure(&mut self, now: &Now) {
        if self.board.in_flight() == 0 {
            self.window.app_limited = self.sampler.app_limited();
            if self.board.is_empty() {
                self.rack.begin(now);
            }
            self.tell(Event::SendStart, now);
        }
        self.window.last_sent_ms = now.ms;
        self.restarted = false;
    }

    #[inline]
    fn after_sending(&mut self, len: u32, now: &Now) {
        if self.window.paced {
            let rate = self.window.current_rate();
            self.pacer.after_sending(len, self.counters.data_segments, rate, now.time);
        }
    }

    /// Bytes in the send buffer that were not sent yet.
    pub(super) fn written(&self) -> u64 {
        self.write_end.saturating_sub(self.window.nxt)
    }

    /// Nothing more leaves for now.
    #[inline]
    fn end_burst(&mut self, cwnd_limited: bool, now: &Now) -> Option<Outgoing> {
        self.dirty = false;
        let limited = cwnd_limited || self.board.in_flight() >= self.window.cwnd;
        if self.burst > 0 || cwnd_limited {
            self.validate_window(limited, now);
        }
        let stale = core::mem::take(&mut self.timer_stale);
        if self.burst > 0 {
            self.burst = 0;
            if !self.schedule_probe(false, now) && stale {
                self.set_timer(now);
            }
        } else if stale {
            self.set_timer(now);
        }
        None
    }

    /// Remembers the most that was out in this round trip, or that the window was the limit.
    #[inline]
    fn validate_window(&mut self, limited: bool, now: &Now) {
        let out = self.board.len();
        if self.window.una >= self.usage_end || limited || (!self.limited && out > self.most_out) {
            self.limited = limited;
            self.most_out = out;
            self.usage_end = self.window.nxt;
        }
        if self.is_cwnd_limited() {
            self.used = 0;
            self.used_since_ms = now.ms;
            return;
        }
        self.used = self.used.max(out);
        let unused_ms = now.ms.wrapping_sub(self.used_since_ms);
        let rto_ms = self.rto_us() / 1_000;
        if self.settings.slow_start_after_idle
            && unused_ms as i32 >= rto_ms as i32
            && !self.control.takes_over()
        {
            self.shrink_unused_window(now);
        }
    }

    /// Half way from the window to what was used of it, once a timeout (RFC 2861).
    #[cold]
    fn shrink_unused_window(&mut self, now: &Now) {
        if self.window.phase == Phase::Open {
            let used = self.used.max(self.window.initial);
            if used < self.window.cwnd {
                self.window.ssthresh = self.current_ssthresh();
                self.window.cwnd = (self.window.cwnd + used) / 2;
            }
            self.used = 0;
        }
        self.used_since_ms = now.ms;
    }

    /// The window limits sending; in slow start it may be twice what was out.
    #[inline]
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.limited || (self.window.in_slow_start() && self.window.cwnd < 2 * self.most_out)
    }

    /// After an idle time the window halves for every timeout that has passed (RFC 5681, 4.1).
    #[inline(never)]
    fn restart_after_idle(&mut self, now: &Now) {
        let rto_ms = (self.rto_us() / 1_000).max(1);
        let idle_ms = now.ms.wrapping_sub(self.window.last_sent_ms);
        if !self.settings.slow_start_after_idle
            || self.control.takes_over()
            || self.counters.data_segments == 0
            || idle_ms as i32 <= rto_ms as i32
            || self.restarted
        {
            return;
        }
        // Each idle time counts once.
        self.restarted = true;
        self.tell(Event::IdleRestart, now);
        self.window.ssthresh = self.current_ssthresh();
        let floor = self.window.initial.min(self.window.cwnd);
        let halvings = ((idle_ms - 1) / rto_ms).min(31);
        self.window.cwnd = (self.window.cwnd >> halvings).max(floor);
        self.used_since_ms = now.ms;
        self.used = 0;
    }
}

/// The segment of a record.
fn outgoing(record: &Record, fresh: bool) -> Outgoing {
    let (syn, fin) = (record.has(flag::SYN), record.has(flag::FIN));
    Outgoing {
        seq: record.seq,
        len: u32::from(record.len) - u32::from(syn) - u32::from(fin),
        syn,
        fin,
        psh: record.has(flag::PSH),
        fresh,
    }
}

#[cfg(test)]
mod tests;
