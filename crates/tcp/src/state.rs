//! State of an endpoint for an application or a report: where the connection stands, what has
//! happened to it, and its counters.

use simnel_core::time::Span;

/// State of a connection (RFC 9293, section 3.3.2, the states that tell an application something).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not opened yet, or ended by a reset.
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

/// Events since the last [`crate::Endpoint::take_events`].
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
