//! Congestion controls behind one trait, one file each.
//!
//! The sender's recovery (`sender::recovery`) decides *when* a window is reduced, kept or grown;
//! a control decides *by how much*. It sees and sets the [`Window`], counts in segments as Linux
//! does, and is told of RTTs and of what becomes of the connection. A control that takes over
//! (BBR) sets window and pacing rate after every acknowledgement instead.

mod bbr;
mod cubic;
mod dctcp;
mod hystart;
mod ledbat;
mod reno;

use alloc::boxed::Box;

use crate::clock::Now;
use crate::config::{Config, CongestionControl};

/// No slow-start threshold is known yet.
pub(crate) const INFINITE: u32 = u32::MAX >> 1;
/// Pacing rate that means "not paced".
pub(crate) const UNPACED: u64 = u64::MAX;

/// The window, and what a control may know of the connection.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Window {
    /// First unacknowledged sequence number.
    pub una: u64,
    /// Next sequence number to send.
    pub nxt: u64,
    /// Smoothed RTT in 1/8 µs.
    pub srtt8_us: u32,
    /// Least RTT in µs, `u32::MAX` if unknown.
    pub min_rtt_us: u32,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments.
    pub ssthresh: u32,
    /// Acknowledged segments that have not yet made the window grow.
    pub count: u32,
    /// The window before the present reduction.
    pub prior_cwnd: u32,
    /// Window at the start (RFC 6928).
    pub initial: u32,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// Bytes per second, by a control that sets it; [`UNPACED`] if it leaves that to the window.
    pub pacing_rate: u64,
    /// Segments in flight.
    pub in_flight: u32,
    /// Segments sent and not cumulatively acknowledged.
    pub packets_out: u32,
    /// Segments delivered since the start, SACKed ones included.
    pub delivered: u32,
    /// Of these, how many the receiver reported as marked.
    pub delivered_ce: u32,
    /// Segments ever taken for lost.
    pub lost: u32,
    /// The last data was sent then, in milliseconds.
    pub last_sent_ms: u32,
    /// The window, not the application, limits sending.
    pub cwnd_limited: bool,
    /// Segments leave at the pacing rate.
    pub paced: bool,
    /// The application limits sending.
    pub app_limited: bool,
    /// Set by a control that keeps the window small on purpose: rates mean nothing meanwhile.
    pub ignore_rates: bool,
    /// Phase of the sender between losses.
    pub phase: Phase,
}

/// Phase of the sender between losses (Linux's congestion-avoidance state machine).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// Nothing dubious.
    #[default]
    Open,
    /// Duplicate ACKs or SACKs, no loss yet.
    Disorder,
    /// The window is being reduced because of a mark or a lost probe.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

impl Window {
    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Slow start: one segment per segment acknowledged, up to the threshold. Returns what is left
    /// of `acked` for congestion avoidance.
    #[inline]
    pub(crate) fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = (self.cwnd + acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        left
    }

    /// Additive increase: one segment per `per` segments acknowledged.
    #[inline]
    pub(crate) fn increase(&mut self, per: u32, acked: u32) {
        if self.count >= per {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += acked;
        if self.count >= per {
            let steps = self.count / per;
            self.count -= steps * per;
            self.cwnd += steps;
        }
    }

    /// Linux's pacing rate in bytes per second: the window a round trip, doubled in the first half
    /// of slow start, else times 1.2. Zero while no RTT is known.
    pub(crate) fn natural_rate(&self) -> u64 {
        if self.srtt8_us == 0 {
            return 0;
        }
        let percent = if self.cwnd < self.ssthresh / 2 { 200 } else { 120 };
        let segments = u64::from(self.cwnd.max(self.packets_out));
        u64::from(self.mss) * 8 * 10_000 * percent * segments / u64::from(self.srtt8_us)
    }

    /// Bytes per second at which segments leave if they are paced.
    #[inline]
    pub(crate) fn current_rate(&self) -> u64 {
        if self.pacing_rate == UNPACED {
            self.natural_rate()
        } else {
            self.pacing_rate
        }
    }
}

/// An acknowledgement's sample of the delivery rate, for controls that take over.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RateSample {
    /// Segments delivered during the interval; None if there is no valid sample.
    pub delivered: Option<u32>,
    /// Length of the interval in µs.
    pub interval_us: u32,
    /// Segments delivered when the newest of these left.
    pub prior_delivered: u32,
    /// Segments in flight before the acknowledgement.
    pub prior_in_flight: u32,
    /// Time until the pacer lets another segment leave, in µs.
    pub wait_us: u32,
    /// Segments newly delivered, and newly taken for lost, by this acknowledgement.
    pub acked: u32,
    pub lost: u32,
    /// RTT in µs, if there is one.
    pub rtt_us: Option<u32>,
    /// The application, not the path, limited the rate.
    pub app_limited: bool,
    /// The receiver may have delayed the acknowledgement.
    pub ack_delayed: bool,
}

/// RTT samples of an acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckSample {
    /// RTT of the newest segment acknowledged that was sent once, in µs.
    pub rtt_us: Option<u32>,
    /// Delay from here to the receiver by the two timestamps, in ms, if there are any.
    pub one_way_ms: Option<u32>,
}

/// Transitions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// Sends after having had nothing in flight.
    SendStart,
    /// The window decays after an idle time.
    IdleRestart,
    /// A reduction of the window is complete.
    ReductionDone,
    /// A retransmission timeout has reduced the window.
    Timeout,
}

/// A congestion control. `window` is the connection's; see the module's introduction.
pub(crate) trait Control {
    /// The new slow-start threshold upon a loss or mark.
    fn reduce(&mut self, window: &Window, now: &Now) -> u32;
    /// Lets the window grow by what `acked` delivered segments allow.
    fn grow(&mut self, window: &mut Window, acked: u32, now: &Now);
    /// Takes in what an acknowledgement says about RTTs; may set the slow-start threshold.
    fn on_sample(&mut self, _window: &mut Window, _sample: &AckSample, _now: &Now) {}
    /// Is told of events.
    fn on_event(&mut self, _window: &mut Window, _event: Event, _now: &Now) {}
    /// Is told that the sender's phase is about to become `phase`.
    fn on_phase(&mut self, _window: &mut Window, _phase: Phase, _now: &Now) {}
    /// Is told of each acknowledgement: newly acknowledged bytes, and whether it echoes a mark.
    fn on_ack(&mut self, _window: &mut Window, _bytes: u64, _echo: bool) {}
    /// The window after a reduction that was a mistake.
    fn undo(&mut self, window: &Window) -> u32 {
        window.cwnd.max(window.prior_cwnd)
    }
    /// Sets window and pacing rate, for a control that takes over.
    fn control(&mut self, _window: &mut Window, _sample: &RateSample, _now: &Now) {}
}

/// The controls, one at a time.
#[derive(Clone, Debug)]
pub(crate) enum Controller {
    Reno(reno::Reno),
    Cubic(cubic::Cubic),
    Ledbat(ledbat::Ledbat),
    /// Far larger than the others, and not to make room for in all connections.
    Bbr(Box<bbr::Bbr>),
    Dctcp(dctcp::Dctcp),
}

/// Calls the same method of whichever control it is.
macro_rules! each {
    ($self:ident, $control:ident => $call:expr) => {
        match $self {
            Controller::Reno($control) => $call,
            Controller::Cubic($control) => $call,
            Controller::Ledbat($control) => $call,
            Controller::Bbr($control) => $call,
            Controller::Dctcp($control) => $call,
        }
    };
}

impl Controller {
    pub(crate) fn new(config: &Config) -> Controller {
        match config.congestion {
            CongestionControl::Reno => Controller::Reno(reno::Reno),
            CongestionControl::Cubic => Controller::Cubic(cubic::Cubic::new(config)),
            CongestionControl::Ledbat => Controller::Ledbat(ledbat::Ledbat::new(config)),
            CongestionControl::Bbr => Controller::Bbr(Box::new(bbr::Bbr::new(config))),
            CongestionControl::Dctcp => Controller::Dctcp(dctcp::Dctcp::new()),
        }
    }

    /// True for a control that sets window and pacing rate itself, from rate samples.
    #[inline]
    pub(crate) fn takes_over(&self) -> bool {
        matches!(self, Controller::Bbr(_))
    }

    /// True for a control that wants every mark echoed (and all its packets ECN-capable).
    #[inline]
    pub(crate) fn wants_ecn(&self) -> bool {
        matches!(self, Controller::Dctcp(_))
    }

    #[inline]
    pub(crate) fn reduce(&mut self, window: &Window, now: &Now) -> u32 {
        each!(self, control => control.reduce(window, now))
    }
    #[inline]
    pub(crate) fn grow(&mut self, window: &mut Window, acked: u32, now: &Now) {
        each!(self, control => control.grow(window, acked, now))
    }
    #[inline]
    pub(crate) fn on_sample(&mut self, window: &mut Window, sample: &AckSample, now: &Now) {
        each!(self, control => control.on_sample(window, sample, now))
    }
    #[inline]
    pub(crate) fn on_event(&mut self, window: &mut Window, event: Event, now: &Now) {
        each!(self, control => control.on_event(window, event, now))
    }
    #[inline]
    pub(crate) fn on_phase(&mut self, window: &mut Window, phase: Phase, now: &Now) {
        each!(self, control => control.on_phase(window, phase, now))
    }
    #[inline]
    pub(crate) fn on_ack(&mut self, window: &mut Window, bytes: u64, echo: bool) {
        each!(self, control => control.on_ack(window, bytes, echo))
    }
    #[inline]
    pub(crate) fn undo(&mut self, window: &Window) -> u32 {
        each!(self, control => control.undo(window))
    }
    /// Only for what takes over: kept out of the path of every other acknowledgement.
    #[inline(never)]
    pub(crate) fn control(&mut self, window: &mut Window, sample: &RateSample, now: &Now) {
        each!(self, control => control.control(window, sample, now))
    }
}
