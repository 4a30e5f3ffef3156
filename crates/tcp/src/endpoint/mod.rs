//! One end of a connection: the calls by which a simulator or a test drives it.
//!
//! The one rule concerns every call that takes `now`, and `write`, `close`, `abort` and `read`.
//! After such a call, drain [`Endpoint::poll_transmit`] until it returns None, then ask
//! [`Endpoint::next_timer`] anew. Segments must be sent in the order in which they come out.
//!
//! The endpoint joins a sending and a receiving half. It does the handshake and the farewell (RFC
//! 9293, sections 3.5 and 3.6), negotiates options, and lets data carry acknowledgements. It
//! decides on a bare ACK only when nothing else leaves, as Linux does.

mod handshake;

use simnel_core::packet::Ecn;
use simnel_core::time::{Span, Time};

use crate::clock::{Now, Ticks};
use crate::config::Config;
use crate::gro::Gro;
use crate::path::Path;
use crate::receiver::delayed_ack::Round;
use crate::receiver::{Owed, Receiver};
use crate::segment::{Segment, TcpFlags};
use crate::sender::{Outgoing, Sender};
use crate::state::{Events, State, Stats};
use handshake::Negotiated;

/// Kinds of segments that may have to leave, one bit each; zero makes polling free.
mod work {
    /// The sending half may have something.
    pub(super) const SEND: u8 = 1;
    /// An ACK may be due.
    pub(super) const ACK: u8 = 2;
    /// The handshake's last ACK is due.
    pub(super) const HANDSHAKE: u8 = 4;
    /// A reset is due.
    pub(super) const RESET: u8 = 8;
    /// An ACK about the state before the last change of marks is due.
    pub(super) const OWED: u8 = 16;
}

/// One end of a connection.
///
/// In the order of the declaration, so that what a segment touches lies together: data touches the
/// beginning, an acknowledgement nearly all.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Endpoint {
    receiver: Receiver,
    state: State,
    work: u8,
    events: Events,
    negotiated: Negotiated,
    gro: Gro,
    segments_sent: u64,
    segments_received: u64,
    data_received: u64,
    acks_sent: u64,
    sender: Sender,
}

impl Endpoint {
    /// A closed endpoint.
    pub fn new(config: &Config) -> Endpoint {
        Endpoint {
            sender: Sender::new(config),
            receiver: Receiver::new(config, Ticks::new(config.tick)),
            state: State::Closed,
            work: 0,
            events: Events::default(),
            gro: Gro::new(config.gro_segments, config.gro_window),
            negotiated: Negotiated::wanted(config),
            segments_sent: 0,
            segments_received: 0,
            data_received: 0,
            acks_sent: 0,
        }
    }

    /// Begins with what this end's host remembers of the path; to be called before
    /// [`Endpoint::connect`] or [`Endpoint::listen`].
    pub fn recall(&mut self, path: &Path) {
        self.sender.recall(path);
    }

    /// Adds to a host's memory what this end has found of the path; for when the connection ends.
    pub fn remember(&self, path: &mut Path) {
        path.learn(&self.sender.experience());
    }

    /// Opens the connection: a SYN will come out.
    pub fn connect(&mut self, _now: Time) {
        if self.state == State::Closed && self.segments_sent == 0 {
            self.state = State::SynSent;
            self.sender.open();
            self.work |= work::SEND;
        }
    }

    /// Waits for a SYN.
    pub fn listen(&mut self) {
        if self.state == State::Closed && self.segments_sent == 0 {
            self.state = State::Listen;
        }
    }

    /// Takes in a segment from the other side.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, now: impl Into<Now>) {
        self.segments_received += 1;
        self.data_received += u64::from(segment.len > 0);
        let now = now.into();
        if self.gro.is_off() {
            self.take(segment, segment.len, &now);
            return;
        }
        for (segment, unit) in self.gro.push(segment, now.time).into_iter().flatten() {
            self.take_merged(&segment, unit, &now);
        }
    }

    /// To call after [`Endpoint::on_segment`] if another segment of data comes in the same moment,
    /// before the application can read. Acknowledgements that are due because it reads wait for
    /// that segment.
    pub fn await_more(&mut self) {
        self.receiver.window.await_more();
    }

    /// Takes in a merged segment, apart from the way of others.
    #[inline(never)]
    fn take_merged(&mut self, segment: &Segment, unit: u32, now: &Now) {
        self.take(segment, unit, now);
    }

    #[inline(always)]
    fn take(&mut self, segment: &Segment, unit: u32, now: &Now) {
        match self.state {
            State::Established | State::Closing | State::CloseWait | State::Finished => {}
            _ => {
                if !self.take_handshake(segment, now) {
                    return;
                }
            }
        }
        if segment.flags.0 & (TcpFlags::SYN.0 | TcpFlags::RST.0) != 0 {
            self.take_unusual(segment);
            return;
        }
        // RFC 9293, section 3.10.7.4: without ACK nothing is taken, and nothing answered.
        if !segment.flags.has(TcpFlags::ACK) {
            return;
        }
        if !self.receiver.accepts(segment) {
            self.work |= work::ACK;
            return;
        }
        if !self.sender.is_settled(segment) {
            let acked = self.sender.acked();
            if !self.sender.on_ack(segment, now) {
                return;
            }
            self.events.acked |= self.sender.acked() > acked;
            self.work |= work::SEND;
        }
        if segment.len > 0 || segment.flags.has(TcpFlags::FIN) {
            self.take_data(segment, unit, now);
        }
        if self.state != State::Established {
            self.settle_state();
        }
    }

    #[inline]
    fn take_data(&mut self, segment: &Segment, unit: u32, now: &Now) {
        let before = self.receiver.received;
        let round = self.round();
        self.receiver.on_data(segment, unit, &round, now);
        self.events.data |= self.receiver.received > before;
        self.work |= work::ACK;
        if self.receiver.owed.is_some() {
            self.work |= work::OWED;
        }
        if self.receiver.fin {
            if self.sender.is_closing() {
                self.receiver.acks.now();
            }
            self.settle_state();
        }
    }

    /// SYN or RST in a connection that stands.
    #[cold]
    fn take_unusual(&mut self, segment: &Segment) {
        if segment.flags.has(TcpFlags::RST) {
            if self.receiver.accepts(segment) {
                self.die();
            }
        } else {
            // A SYN, ACKed or not, that has been answered: the answer was lost.
            self.receiver.acks.now();
            self.work |= work::ACK;
        }
    }

    /// Follows the closing of both directions.
    fn settle_state(&mut self) {
        if self.receiver.fin {
            self.events.peer_closed |= self.state != State::CloseWait;
        }
        if matches!(self.state, State::Closed | State::Listen | State::SynSent | State::SynReceived)
        {
            return;
        }
        let finished = self.sender.finished() && self.receiver.fin;
        let state = match (self.sender.is_closing(), self.receiver.fin) {
            _ if finished => State::Finished,
            (true, _) => State::Closing,
            (false, true) => State::CloseWait,
            (false, false) => State::Established,
        };
        self.events.finished |= finished && self.state != State::Finished;
        self.state = state;
    }

    /// Ends the connection without a farewell.
    fn die(&mut self) {
        self.state = State::Closed;
        self.events.reset = true;
        self.work = 0;
        self.sender.stop();
        self.receiver.acks.stop();
    }

    /// The next segment to send at `now`, or None.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let mut segment = Segment::new(TcpFlags::ACK, 0, 0);
        self.poll_transmit_into(|| &mut segment, &Now::new(now)).copied()
    }

    /// As [`Endpoint::poll_transmit`], with the segment written into what `place` gives, which is
    /// asked only if there is one.
    #[inline]
    pub fn poll_transmit_into<'a>(
        &mut self,
        place: impl FnOnce() -> &'a mut Segment,
        now: &Now,
    ) -> Option<&'a mut Segment> {
        if self.work == 0 {
            return None;
        }
        if self.work & (work::RESET | work::HANDSHAKE | work::OWED) != 0 {
            if let Some(segment) = self.poll_unusual(now) {
                let out = place();
                *out = segment;
                return Some(out);
            }
        }
        if self.work & work::SEND != 0 {
            let standing = !matches!(
                self.state,
                State::Closed | State::Listen | State::SynSent | State::SynReceived
            );
            if let Some(outgoing) = self.sender.poll(standing, now) {
                let out = place();
                self.compose(&outgoing, out, now);
                return Some(out);
            }
            self.work &= !work::SEND;
        }
        if self.work & work::ACK != 0 {
            self.work &= !work::ACK;
            let round = self.round();
            let receiver = &mut self.receiver;
            let out_of_order = !receiver.reassembly.is_empty();
            let (nxt, window) = (receiver.nxt, &mut receiver.window);
            let due = receiver.acks.decide(nxt, out_of_order, window, &round, now);
            if due {
                let out = place();
                self.compose_ack(out, now);
                return Some(out);
            }
        }
        None
    }

    #[cold]
    fn poll_unusual(&mut self, now: &Now) -> Option<Segment> {
        let mut out = self.blank(TcpFlags::RST | TcpFlags::ACK, now);
        if self.work & work::RESET != 0 {
            self.work = 0;
            out.seq = self.sender.window.nxt;
            out.ack = self.receiver.nxt;
            self.segments_sent += 1;
            return Some(out);
        }
        if self.work & work::HANDSHAKE != 0 {
            self.work &= !work::HANDSHAKE;
            self.compose_ack(&mut out, now);
            return Some(out);
        }
        self.work &= !work::OWED;
        let owed = *self.receiver.owed.take()?;
        self.compose_ack(&mut out, now);
        match owed {
            Owed::Mark { ack, echo } => {
                out.ack = ack;
                out.flags.0 &= !TcpFlags::ECE.0;
                if echo {
                    out.flags.set(TcpFlags::ECE);
                }
                self.receiver.acks.now();
            }
            // The segment that made it due waits for the next ACK, as in Linux.
            Owed::Ranges(ranges, count) => (out.sack, out.sack_count) = (ranges, count),
        }
        Some(out)
    }

    /// A segment with these flags and the options of every segment.
    #[inline]
    fn blank(&self, flags: TcpFlags, now: &Now) -> Segment {
        let mut segment = Segment::new(flags, 0, 0);
        segment.window_scale = self.negotiated.scale;
        segment.timestamps = self.negotiated.timestamps;
        if segment.timestamps {
            segment.ts_val = now.timestamp();
        }
        segment
    }

    /// A bare ACK.
    #[inline]
    fn compose_ack(&mut self, out: &mut Segment, now: &Now) {
        *out = self.blank(TcpFlags::ACK, now);
        out.seq = self.sender.window.nxt;
        self.receiver.fill(out, now);
        if self.sender.ecn && self.sender.control.wants_ecn() {
            out.ecn = Ecn::Ect0;
        }
        self.segments_sent += 1;
        self.acks_sent += 1;
    }

    /// The segment of what the sending half wants to send.
    #[inline]
    fn compose(&mut self, outgoing: &Outgoing, out: &mut Segment, now: &Now) {
        self.segments_sent += 1;
        if outgoing.syn {
            *out = self.compose_syn(now);
            return;
        }
        *out = self.blank(TcpFlags::ACK, now);
        out.seq = outgoing.seq;
        out.len = outgoing.len;
        if outgoing.psh {
            out.flags.set(TcpFlags::PSH);
        }
        if outgoing.fin {
            out.flags.set(TcpFlags::FIN);
        }
        if self.sender.ecn {
            if outgoing.fresh && outgoing.len > 0 {
                out.ecn = Ecn::Ect0;
                if core::mem::take(&mut self.sender.queue_cwr) {
                    out.flags.set(TcpFlags::CWR);
                }
            } else if self.sender.control.wants_ecn() {
                out.ecn = Ecn::Ect0;
            }
        }
        if outgoing.len > 0 {
            self.receiver.acks.on_data_sent(now);
        }
        self.receiver.fill(out, now);
    }

    #[inline]
    fn round(&self) -> Round {
        Round { srtt_us: self.sender.window.srtt8_us >> 3, rto_ticks: self.sender.rto_ticks() }
    }

    /// Time at which [`Endpoint::on_timer`] must be called; None while no timer runs. May move in
    /// either direction with every call; calling early is harmless.
    #[inline]
    pub fn next_timer(&self) -> Option<Time> {
        let timers = self.sender.next_timer().min(self.receiver.next_timer());
        let next = timers.min(self.gro.next_timer());
        (next != Time::MAX).then_some(next)
    }

    /// Lets timers that are due at `now` fire.
    pub fn on_timer(&mut self, now: Time) {
        let now = Now::new(now);
        if self.gro.next_timer() <= now.time {
            if let Some((segment, unit)) = self.gro.flush() {
                self.take_merged(&segment, unit, &now);
            }
        }
        if self.receiver.next_timer() <= now.time {
            let round = self.round();
            self.receiver.acks.on_timer(&round, &now);
            self.work |= work::ACK;
        }
        if self.sender.next_timer() <= now.time {
            self.work |= work::SEND;
            if !self.sender.on_timer(&now) {
                self.die();
            }
        }
    }

    /// Queues `bytes` for sending. Allowed before the handshake has completed.
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
        self.work |= work::SEND;
    }

    /// From now on there is always something to send, until [`Endpoint::close`].
    pub fn write_unlimited(&mut self) {
        self.sender.write_unlimited();
        self.work |= work::SEND;
    }

    /// Closes our direction after the data that was written (an unlimited source stops with what
    /// was sent already).
    pub fn close(&mut self) {
        if !self.sender.is_closing() {
            self.sender.close();
            self.work |= work::SEND;
            self.settle_state();
        }
    }

    /// Ends the connection at once with a RST.
    pub fn abort(&mut self) {
        let standing = !matches!(self.state, State::Closed | State::Listen | State::Finished);
        self.die();
        self.events.reset = false;
        if standing {
            self.work = work::RESET;
        }
    }

    /// Consumption of data as it arrives (the default), or only by [`Endpoint::read`].
    pub fn set_auto_read(&mut self, automatic: bool) {
        self.receiver.window.set_auto_read(automatic);
    }

    /// Bytes that can be read.
    pub fn readable(&self) -> u64 {
        self.receiver.window.unread(self.receiver.received + 1)
    }

    /// Consumes up to `bytes` at `now`; returns how many. An ACK that opens the window may be due.
    pub fn read(&mut self, bytes: u64, now: Time) -> u64 {
        let now = Now::new(now);
        let taken = bytes.min(self.readable());
        let Receiver { acks, window, nxt, .. } = &mut self.receiver;
        if taken > 0 && (window.consume(taken, *nxt, &now) || acks.due_at_read(*nxt, window)) {
            acks.now();
            self.work |= work::ACK;
        }
        taken
    }

    /// Events since the last call.
    #[inline]
    pub fn take_events(&mut self) -> Events {
        core::mem::take(&mut self.events)
    }

    /// Payload bytes received in order so far.
    #[inline]
    pub fn received(&self) -> u64 {
        self.receiver.received
    }

    /// Payload bytes of ours acknowledged so far.
    #[inline]
    pub fn acked(&self) -> u64 {
        self.sender.acked()
    }

    /// Bytes written and not yet sent for the first time; `u64::MAX` for an unlimited source.
    pub fn unsent(&self) -> u64 {
        self.sender.unsent()
    }

    /// State of the connection.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Memory beside the endpoint that the next acknowledgement touches, for a caller who fetches
    /// it beforehand. It is the records of the oldest segment in flight and of the one that leaves
    /// next. While there are losses, it is also what was SACKed and what was sent again.
    #[inline]
    pub fn records(&self) -> ([&impl Sized; 2], Option<&impl Sized>, Option<&impl Sized>) {
        let board = &self.sender.board;
        let records = [board.get(board.head()), board.get(board.last_id().wrapping_add(1))];
        (records, board.sacked.first_ref(), board.resent.front())
    }

    /// Memory that the next data meets beside the endpoint: data out of order, and SACK blocks.
    /// For whoever fetches it beforehand.
    #[inline]
    pub fn held(&self) -> Option<&impl Sized> {
        self.receiver.reassembly.record()
    }

    /// All the numbers.
    pub fn stats(&self) -> Stats {
        let (sender, receiver) = (&self.sender, &self.receiver);
        let window = &sender.window;
        let micros = |us: u32| Span::from_micros(u64::from(us));
        Stats {
            state: self.state,
            bytes_sent: sender.counters.bytes_sent,
            bytes_acked: sender.acked(),
            bytes_received: receiver.received,
            segments_sent: self.segments_sent,
            data_segments_sent: sender.counters.data_segments,
            segments_received: self.segments_received,
            data_segments_received: self.data_received,
            acks_sent: self.acks_sent,
            retransmits: sender.counters.resends.into(),
            timeouts: sender.counters.timeouts.into(),
            probes: sender.counters.probes.into(),
            undos: sender.counters.undos.into(),
            reductions: sender.counters.reductions.into(),
            ce_received: receiver.ce_received,
            cwnd: window.cwnd,
            ssthresh: if window.ssthresh >= crate::congestion::INFINITE {
                u32::MAX
            } else {
                window.ssthresh
            },
            in_flight: sender.board.in_flight(),
            mss: window.mss,
            peer_window: sender.peer_window(),
            srtt: micros(sender.rtt.srtt_us()),
            min_rtt: match sender.rtt.min_us() {
                u32::MAX => Span::ZERO,
                us => micros(us),
            },
            rto: micros(sender.rto_us()),
            pacing_rate: window.current_rate(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten thousand flows are to fit into memory many times over.
    #[test]
    fn an_endpoint_is_small() {
        let size = core::mem::size_of::<Endpoint>();
        assert!(size <= 1_024, "{size}");
    }
}
