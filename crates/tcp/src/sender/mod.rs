//! The sending half of an endpoint.
//!
//! One struct, [`Sender`], has its behaviour in several files. `ack` takes in acknowledgements, and
//! `recovery` decides what they mean (phases, PRR, undo). `rack` finds losses by time, and `timers`
//! fires RTO, tail loss probe and window probe. `transmit` says what leaves next. The state lives
//! in `scoreboard` (segments in flight), `rtt`, `rate_sample`, `pacing` and the congestion
//! control's `Window`.
//!
//! The order of steps within an acknowledgement is Linux's: SACK, cumulative part, RTT, RACK, tail
//! loss probe, phase, timers, window. Transmission comes last; the endpoint polls for it.

mod ack;
pub(crate) mod pacing;
mod rack;
pub(crate) mod rate_sample;
mod recovery;
mod rtt;
pub(crate) mod scoreboard;
mod source;
mod timers;
mod transmit;

use simnel_core::time::Time;

use crate::clock::{Now, Ticks};
use crate::config::Config;
use crate::congestion::{self, Controller, Phase, Window};
use crate::path::{Experience, Path};
use crate::segment::Segment;
use pacing::Pacer;
use rack::Rack;
use rate_sample::Sampler;
use recovery::Recovery;
use rtt::RoundTrip;
use scoreboard::Scoreboard;
use source::{Source, ENDLESS};
use timers::Timers;

pub(crate) use transmit::Outgoing;

/// Sequence number up to which a source without any limit has written: never reached.
const UNLIMITED: u64 = 1 << 62;

/// Counters for reports.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub bytes_sent: u64,
    pub data_segments: u64,
    pub resends: u32,
    pub timeouts: u32,
    pub probes: u32,
    pub undos: u32,
    pub reductions: u32,
}

/// A segment that leaves whatever the window says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Forced {
    /// SYN, with the record still to be made.
    Syn,
    /// The first unacknowledged segment; `counted` if it was marked lost.
    Again { counted: bool },
    /// Tail loss probe.
    Probe,
    /// Window probe.
    WindowProbe,
}

/// Permission to send, as the last acknowledgement or timer left it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Resend {
    /// Nothing is to be sent again for now.
    #[default]
    Nothing,
    /// Lost segments, as far as the window allows.
    Lost,
    /// New data first: F-RTO finds out whether the timeout was spurious.
    NewFirst,
}

/// The sending half. First, what an endpoint that only receives looks at as well; last, what is
/// seldom looked at.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Sender {
    /// One past the last byte written.
    write_end: u64,
    /// The peer's window, and the segment that told it last.
    window_seq: u64,
    peer_window: u32,
    resend: Resend,
    /// A segment to send regardless of the window.
    forced: Option<Forced>,
    /// The timer must be set when the present burst is over.
    timer_stale: bool,
    /// Something may be sendable.
    dirty: bool,
    /// The application has closed: FIN follows the last byte.
    closing: bool,
    /// The writer has written its last in this moment, and what can leaves before it goes on.
    writing: bool,
    fin_sent: bool,
    /// The connection negotiated ECN; the next new segment must carry CWR.
    pub(crate) ecn: bool,
    pub(crate) queue_cwr: bool,
    pub(crate) sack: bool,
    /// Window validation (RFC 7661's aim, Linux's means), with what is below.
    limited: bool,
    /// The idle time since data was last sent has had its effect.
    restarted: bool,
    timers: Timers,
    pacer: Pacer,
    pub(crate) window: Window,
    /// Segments sent since the last acknowledgement, timer or write was taken in.
    burst: u32,
    peer_window_max: u32,
    /// Right edge of the peer's window.
    peer_edge: u64,
    pub(crate) board: Scoreboard,
    rack: Rack,
    pub(crate) rtt: RoundTrip,
    recovery: Recovery,
    pub(crate) control: Controller,
    usage_end: u64,
    most_out: u32,
    used: u32,
    used_since_ms: u32,
    /// Timestamp echoed by the last acknowledgement; zero if none.
    last_echo: u32,
    /// Time of the last delivery, in microseconds, wrapping.
    delivered_us: u32,
    /// Smoothed RTT of earlier connections on the path, in 1/8 µs; zero if unknown.
    known_rtt8_us: u32,
    /// End of the last segment below the MSS (Minshall's rule for Nagle).
    small_end: u64,
    source: Source,
    settings: Settings,
    ticks: Ticks,
    sampler: Sampler,
    pub(crate) counters: Counters,
}

/// The part of [`Config`] that sending needs.
#[derive(Clone, Copy, Debug)]
struct Settings {
    initial_rto_ticks: u32,
    frto: bool,
    tail_loss_probe: bool,
    slow_start_after_idle: bool,
    nagle: bool,
    tso_segments: u32,
    in_flight_max: u32,
}

/// Linux's cap on the retransmission timeout: two minutes, in µs.
const MAX_RTO_US: u32 = 120_000_000;
/// Segments that may be overtaken before a later one's arrival proves a loss (RFC 5681).
const REORDERING: u32 = 3;
/// Most that Linux believes of reordering (`tcp_max_reordering`).
const MAX_REORDERING: u32 = 300;

/// The window of a new connection.
pub(crate) fn initial_window(config: &Config) -> Window {
    Window {
        cwnd: config.initial_window.max(1),
        ssthresh: congestion::INFINITE,
        count: 0,
        prior_cwnd: 0,
        initial: config.initial_window.max(1),
        mss: u32::from(config.advertised_mss()),
        una: 0,
        nxt: 0,
        srtt8_us: 0,
        min_rtt_us: u32::MAX,
        in_flight: 0,
        packets_out: 0,
        delivered: 0,
        delivered_ce: 0,
        lost: 0,
        cwnd_limited: false,
        last_sent_ms: 0,
        paced: config.pacing == crate::config::Pacing::On,
        pacing_rate: congestion::UNPACED,
        app_limited: false,
        ignore_rates: false,
        phase: Phase::Open,
    }
}

impl Sender {
    pub(crate) fn new(config: &Config) -> Sender {
        let ticks = Ticks::new(config.tick);
        let control = Controller::new(config);
        let min_rto_us = config.min_rto.as_micros().min(u64::from(MAX_RTO_US)) as u32;
        let initial_us = config.initial_rto.as_micros().min(u64::from(MAX_RTO_US)) as u32;
        let settings = Settings {
            initial_rto_ticks: ticks.covering(initial_us),
            frto: config.frto,
            tail_loss_probe: config.tail_loss_probe,
            slow_start_after_idle: config.slow_start_after_idle,
            nagle: config.nagle,
            tso_segments: u32::from(config.tso_segments.max(1)),
            // No peer's window is larger.
            in_flight_max: match config.in_flight_max {
                0 => u32::MAX,
                bytes => bytes,
            },
        };
        let mut window = initial_window(config);
        window.paced |= control.takes_over();
        Sender {
            window,
            board: Scoreboard::new(control.takes_over()),
            rtt: RoundTrip::new(min_rto_us),
            counters: Counters::default(),
            recovery: Recovery::new(),
            rack: Rack::default(),
            timers: Timers::new(settings.initial_rto_ticks),
            sampler: Sampler::new(control.takes_over()),
            pacer: Pacer::default(),
            control,
            ticks,
            settings,
            source: Source::new(config),
            write_end: 1,
            closing: false,
            writing: false,
            fin_sent: false,
            peer_edge: 0,
            peer_window: 0,
            peer_window_max: 0,
            delivered_us: 0,
            window_seq: 0,
            small_end: 0,
            last_echo: 0,
            resend: Resend::Nothing,
            forced: None,
            timer_stale: false,
            dirty: false,
            burst: 0,
            limited: false,
            most_out: 0,
            usage_end: 0,
            used: 0,
            used_since_ms: 0,
            restarted: false,
            known_rtt8_us: 0,
            ecn: false,
            queue_cwr: false,
            sack: config.sack,
        }
    }

    /// Begins with what the host remembers of the path; to be called before the handshake.
    pub(crate) fn recall(&mut self, path: &Path) {
        if path.ssthresh > 0 {
            self.window.ssthresh = path.ssthresh;
        }
        self.recovery.reordering = self.recovery.reordering.max(path.reordering);
        self.known_rtt8_us = path.srtt8_us;
    }

    /// Findings of this connection about its path.
    pub(crate) fn experience(&self) -> Experience {
        let window = &self.window;
        Experience {
            srtt8_us: if self.timers.is_doubled { 0 } else { window.srtt8_us },
            cwnd: window.cwnd,
            ssthresh: (window.ssthresh < congestion::INFINITE).then_some(window.ssthresh),
            open: window.phase == Phase::Open,
            reordering: Some(self.recovery.reordering).filter(|found| *found > REORDERING),
        }
    }

    /// True if `segment` answers our first SYN: repetitions of it were needless (RFC 3522).
    pub(crate) fn answers_first_syn(&self, segment: &Segment) -> bool {
        segment.timestamps && segment.ts_echo == self.recovery.resend_stamp
    }

    /// The handshake is over: `mss` is the payload of a full segment from here on. A SYN that was
    /// lost more than once leaves a window of one segment (RFC 5681, section 3.1).
    pub(crate) fn start(&mut self, mss: u32, lost_no_syn: bool, now: &Now) {
        self.window.mss = mss;
        let lost_syns = self.counters.resends > 1 && !lost_no_syn;
        self.window.cwnd = if lost_syns { 1 } else { self.window.initial };
        self.used_since_ms = now.ms;
        self.recovery.resend_stamp = 0;
        self.window.srtt8_us = self.rtt.srtt8_us;
        self.window.min_rtt_us = self.rtt.min_us();
        // The SYN is small: a longer RTT that is known of data makes a better first timeout.
        if self.known_rtt8_us > self.window.srtt8_us {
            let rtt_us = self.known_rtt8_us >> 3;
            let rto_us = rtt_us + (2 * rtt_us).max(self.rtt.floor_us());
            self.timers.rto_ticks = self.ticks.covering(rto_us.min(MAX_RTO_US));
        }
        self.dirty = true;
    }

    pub(crate) fn write(&mut self, bytes: u64) {
        if !self.closing && self.source.left != ENDLESS {
            self.source.left = self.source.left.saturating_add(bytes).min(UNLIMITED);
            self.dirty = true;
        }
    }

    pub(crate) fn write_unlimited(&mut self) {
        if !self.closing {
            self.source.left = ENDLESS;
            self.dirty = true;
        }
    }

    pub(crate) fn close(&mut self) {
        if self.source.left == ENDLESS {
            self.source.left = 0;
            self.write_end = self.window.nxt.max(1);
        }
        self.closing = true;
        self.dirty = true;
    }

    /// Payload bytes written and not sent yet.
    pub(crate) fn unsent(&self) -> u64 {
        if self.source.left == ENDLESS {
            return u64::MAX;
        }
        self.write_end.saturating_sub(self.window.nxt.max(1)) + self.source.left
    }

    /// Payload bytes acknowledged: neither SYN nor FIN counts.
    #[inline]
    pub(crate) fn acked(&self) -> u64 {
        self.window.una.min(self.write_end).saturating_sub(1)
    }

    /// All that was written, and FIN, is acknowledged.
    pub(crate) fn finished(&self) -> bool {
        self.fin_sent && self.window.una == self.window.nxt
    }

    /// The application has closed.
    pub(crate) fn is_closing(&self) -> bool {
        self.closing
    }

    /// Bytes that the peer takes beyond what it has acknowledged.
    pub(crate) fn peer_window(&self) -> u64 {
        self.peer_edge.saturating_sub(self.window.una)
    }

    /// No timer, no segment any more.
    pub(crate) fn stop(&mut self) {
        self.timers = Timers::new(self.settings.initial_rto_ticks);
        self.pacer = Pacer::default();
        self.forced = None;
        self.dirty = false;
    }

    /// The first unacknowledged segment leaves again.
    pub(crate) fn repeat_head(&mut self) {
        self.forced = Some(Forced::Again { counted: false });
        self.dirty = true;
    }

    /// The retransmission timeout in ticks.
    #[inline]
    pub(crate) fn rto_ticks(&self) -> u32 {
        self.timers.rto_ticks
    }

    pub(crate) fn rto_us(&self) -> u32 {
        self.ticks.to_us(self.timers.rto_ticks)
    }

    /// The next timer of this half.
    #[inline]
    pub(crate) fn next_timer(&self) -> Time {
        self.timers.at.min(self.pacer.wake)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simnel_core::time::Time;

    /// Linux's `tcp_init_metrics`: a known threshold and known reordering are used. A known RTT
    /// that is longer than the SYN's sets the first timeout. That is three times the RTT, or 200 ms
    /// above it if that is more.
    #[test]
    fn a_known_path_sets_threshold_reordering_and_first_timeout() {
        let begin = |ssthresh, reordering, rtt_us: u32| {
            let mut sender = Sender::new(&Config::default());
            sender.recall(&Path { ssthresh, reordering, srtt8_us: 8 * rtt_us });
            sender.rtt.update(50_000, 0, 1);
            sender.timers.rto_ticks = 77;
            sender.start(1_448, false, &Now::new(Time(9_000_000)));
            assert_eq!((sender.window.srtt8_us, sender.used_since_ms), (8 * 50_000, 9));
            (sender.window.ssthresh, sender.recovery.reordering, sender.timers.rto_ticks)
        };
        assert_eq!(begin(0, 0, 0), (congestion::INFINITE, 3, 77));
        assert_eq!(begin(30, 9, 50_000), (30, 9, 77));
        assert_eq!(begin(30, 2, 60_000), (30, 3, 260));
        assert_eq!(begin(30, 9, 400_000), (30, 9, 1_200));
    }

    /// RFC 5681, section 3.1: a SYN that was lost leaves a window of one.
    #[test]
    fn a_lost_syn_costs_the_initial_window() {
        for (resends, needless, cwnd) in
            [(0, false, 10), (1, false, 10), (2, false, 1), (2, true, 10)]
        {
            let mut sender = Sender::new(&Config::default());
            sender.counters.resends = resends;
            sender.start(1_448, needless, &Now::default());
            assert_eq!(sender.window.cwnd, cwnd, "{resends} {needless}");
        }
    }

    /// RFC 9293, section 3.6: nothing is written after the end, which is where a source was closed.
    #[test]
    fn what_is_closed_takes_nothing_more() {
        let mut sender = Sender::new(&Config::default());
        sender.write(1_000);
        assert_eq!(sender.unsent(), 1_000);
        sender.close();
        sender.write(1_000);
        sender.write_unlimited();
        assert_eq!(sender.unsent(), 1_000);
        let mut sender = Sender::new(&Config::default());
        sender.write_unlimited();
        sender.window.nxt = 5_001;
        sender.close();
        assert_eq!((sender.write_end, sender.unsent()), (5_001, 0));
    }

    /// Linux's `tcp_update_metrics`: what a connection leaves to the next one.
    #[test]
    fn a_connection_leaves_what_it_has_found() {
        let found = |change: fn(&mut Sender)| {
            let mut sender = Sender::new(&Config::default());
            (sender.window.srtt8_us, sender.window.cwnd) = (8 * 50_000, 44);
            change(&mut sender);
            sender.experience()
        };
        let usual = found(|_| {});
        assert_eq!((usual.srtt8_us, usual.cwnd, usual.open), (400_000, 44, true));
        assert_eq!((usual.ssthresh, usual.reordering), (None, None));
        assert_eq!(found(|sender| sender.window.ssthresh = 30).ssthresh, Some(30));
        let infinite = found(|sender| sender.window.ssthresh = congestion::INFINITE + 1);
        assert_eq!(infinite.ssthresh, None);
        assert_eq!(found(|sender| sender.recovery.reordering = 4).reordering, Some(4));
        assert_eq!(found(|sender| sender.recovery.reordering = 2).reordering, None);
        assert!(!found(|sender| sender.window.phase = Phase::Cwr).open);
        // A timeout that was doubled says that the RTT is not known.
        assert_eq!(found(|sender| sender.timers.is_doubled = true).srtt8_us, 0);
    }
}
