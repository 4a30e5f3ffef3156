//! One end of a connection: the calls by which a simulator or a test drives it.
//!
//! The one rule: after every call that takes `now`, and after `write`, `close`, `abort` and `read`,
//! drain [`Endpoint::poll_transmit`] until it returns None, then ask [`Endpoint::next_timer`] anew.
//! Segments must be sent in the order in which they come out.

use simnel_core::time::{Span, Time};

use crate::config::Config;
use crate::segment::Segment;

/// Where a connection stands (RFC 9293, section 3.3.2, the states that tell an application
/// something).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not opened yet, or over.
    #[default]
    Closed,
    /// Waits for a SYN.
    Listen,
    /// Has sent a SYN.
    SynSent,
    /// Has answered a SYN.
    SynReceived,
    /// Open in both directions.
    Established,
    /// Our FIN is sent, or will be after the data that waits.
    Closing,
    /// The other side has closed; we may still send.
    CloseWait,
    /// Both have closed and all is acknowledged.
    Finished,
}

/// What has happened since the last [`Endpoint::take_events`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// The handshake has completed.
    pub connected: bool,
    /// New bytes are readable (or were consumed, with automatic reading).
    pub data: bool,
    /// Bytes of ours were acknowledged.
    pub acked: bool,
    /// The other side has sent its FIN, and all its data has arrived.
    pub peer_closed: bool,
    /// Both directions are closed and acknowledged: the endpoint may be dropped.
    pub finished: bool,
    /// The connection was aborted: RST from the other side, or no answer after many attempts.
    pub reset: bool,
}

/// A snapshot of an endpoint, for reports; counters run from the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// State of the connection.
    pub state: State,
    /// Payload bytes sent, repetitions included.
    pub bytes_sent: u64,
    /// Payload bytes of ours acknowledged by the other side.
    pub bytes_acked: u64,
    /// Payload bytes received in order.
    pub bytes_received: u64,
    /// Segments sent, of all kinds.
    pub segments_sent: u64,
    /// Segments with payload sent, repetitions included.
    pub data_segments_sent: u64,
    /// Segments received, of all kinds.
    pub segments_received: u64,
    /// Segments with payload received.
    pub data_segments_received: u64,
    /// Segments without payload, SYN, FIN or RST sent.
    pub acks_sent: u64,
    /// Segments sent again.
    pub retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub probes: u64,
    /// Window reductions that were taken back because nothing had been lost.
    pub undos: u64,
    /// Times that the window was reduced, by loss or mark.
    pub reductions: u64,
    /// Segments with a CE mark received.
    pub ce_received: u64,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; `u32::MAX` until one is known.
    pub ssthresh: u32,
    /// Segments in flight by the scoreboard's estimate.
    pub in_flight: u32,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Window that the other side has offered, in bytes beyond what it has acknowledged.
    pub peer_window: u64,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// Least round-trip time of the last five minutes.
    pub min_rtt: Span,
    /// Retransmission timeout.
    pub rto: Span,
    /// Pacing rate in bytes per second: what it is, or would be with pacing on.
    pub pacing_rate: u64,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Endpoint {
    config: Config,
}

impl Endpoint {
    /// A closed endpoint.
    pub fn new(config: &Config) -> Endpoint {
        Endpoint { config: *config }
    }

    /// Opens the connection: a SYN will come out.
    pub fn connect(&mut self, now: Time) {
        let _ = (now, self.config);
    }

    /// Waits for a SYN.
    pub fn listen(&mut self) {}

    /// Takes in a segment from the other side.
    pub fn on_segment(&mut self, segment: &Segment, now: Time) {
        let _ = (segment, now);
    }

    /// The next segment to send at `now`, or None.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Segment> {
        let _ = now;
        None
    }

    /// When [`Endpoint::on_timer`] must be called; None while no timer runs. May move in either
    /// direction with every call; calling early is harmless.
    pub fn next_timer(&self) -> Option<Time> {
        None
    }

    /// Lets timers that are due at `now` fire.
    pub fn on_timer(&mut self, now: Time) {
        let _ = now;
    }

    /// Queues `bytes` for sending. Allowed before the handshake has completed.
    pub fn write(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// From now on there is always something to send, until [`Endpoint::close`].
    pub fn write_unlimited(&mut self) {}

    /// Closes our direction after the data that was written (an unlimited source stops with what
    /// was sent already).
    pub fn close(&mut self) {}

    /// Ends the connection at once with a RST.
    pub fn abort(&mut self) {}

    /// Whether data is consumed as it arrives (the default), or only by [`Endpoint::read`].
    pub fn set_auto_read(&mut self, automatic: bool) {
        let _ = automatic;
    }

    /// Bytes that can be read.
    pub fn readable(&self) -> u64 {
        0
    }

    /// Consumes up to `bytes`; returns how many.
    pub fn read(&mut self, bytes: u64) -> u64 {
        bytes.min(0)
    }

    /// What has happened since the last call.
    pub fn take_events(&mut self) -> Events {
        Events::default()
    }

    /// Payload bytes received in order so far.
    pub fn received(&self) -> u64 {
        0
    }

    /// Payload bytes of ours acknowledged so far.
    pub fn acked(&self) -> u64 {
        0
    }

    /// Bytes written and not yet sent for the first time; `u64::MAX` for an unlimited source.
    pub fn unsent(&self) -> u64 {
        0
    }

    /// State of the connection.
    pub fn state(&self) -> State {
        State::Closed
    }

    /// All the numbers.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }
}
