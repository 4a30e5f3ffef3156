//! PIE: drop with a probability that a proportional-integral controller derives from queueing delay
//! (RFC 8033; Pan et al. 2013).
//!
//! Every `tupdate` the probability moves by alpha * (delay - target) + beta * (delay - last delay).
//! The steps are smaller while it is small (the auto-tuning table of RFC 8033, section 4.2).
//! Arrivals are dropped, or marked, with that probability. The sum of probabilities since the last
//! drop keeps drops from clustering: none below a sum of 0.85, always from 8.5 on (section 5.4). A
//! burst of 150 ms from idle is let through (section 4.4).
//!
//! Two flavours (facts D.3):
//!
//! * Linux 6.1. Delay from timestamps, beyond 250 ms two percent more at each update, the burst
//!   allowance shrinks as packets leave.
//! * FreeBSD, which keeps closer to the RFC. Delay from an estimate of the departure rate, a guard
//!   on the last but one delay, the burst allowance shrinks at updates.
//!
//! Numbers are those of Linux, so that decisions can be compared bit for bit. Probabilities are in
//! units of 2^-56 ([`MAX_PROB`] is 1), times in units of 64 ns, rates in bytes per 64 ns times 256.
//!
//! Caller's rule: [`PieState::admit`] for each arrival that the queue has room for, and
//! [`PieState::overflowed`] for one it has not. [`PieState::dequeued`] for each departure.
//! [`PieState::update`] every `tupdate` (the first time after [`FIRST_UPDATE`]).

use super::Verdict;
use crate::packet::Packet;
use crate::random::Random;
use crate::rate::Arithmetic;
use crate::steps::step;
use crate::tick::MAX_ROUNDS;
use crate::time::{Span, Time};

/// Probability one.
pub const MAX_PROB: u64 = u64::MAX >> 8;
/// The first powers of a tenth, as probabilities.
const DECADES: [u64; 7] = [
    MAX_PROB,
    MAX_PROB / 10,
    MAX_PROB / 100,
    MAX_PROB / 1_000,
    MAX_PROB / 10_000,
    MAX_PROB / 100_000,
    MAX_PROB / 1_000_000,
];
/// From the making of a queue to its first update.
pub const FIRST_UPDATE: Span = Span::from_millis(500);

/// Implementation whose details are followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flavour {
    /// Linux's sch_pie.
    #[default]
    Linux,
    /// FreeBSD's dummynet.
    Freebsd,
}

/// Settings, with the names of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieParams {
    /// Delay to steer for.
    pub target: Span,
    /// Time between updates; zero for a single one.
    pub tupdate: Span,
    /// Weight of the delay's distance from target, in sixteenths of a hertz: 0..=32.
    pub alpha: u32,
    /// Weight of the delay's change, in sixteenths of a hertz: 0..=32.
    pub beta: u32,
    /// Mark ECN-capable packets while the probability is moderate.
    pub ecn: bool,
    /// Smaller packets are dropped less, in proportion to their size.
    pub bytemode: bool,
    /// Delay is backlog over an estimated departure rate, instead of the time that packets waited.
    pub dq_rate_estimator: bool,
    /// Keep drops from clustering. Always so in Linux.
    pub derandomise: bool,
    /// Raise a probability of 10 % and more by 2 % at most. Always so in Linux.
    pub cap_drop: bool,
    /// Do nothing until the queue is a third full. FreeBSD's `onoff`.
    pub on_off: bool,
    /// Implementation whose details are followed.
    pub flavour: Flavour,
}

impl Default for PieParams {
    fn default() -> PieParams {
        PieParams {
            target: Span::from_millis(15),
            tupdate: Span::from_millis(15),
            alpha: 2,
            beta: 20,
            ecn: false,
            bytemode: false,
            dq_rate_estimator: false,
            derandomise: true,
            cap_drop: true,
            on_off: false,
            flavour: Flavour::Linux,
        }
    }
}

/// [`PieParams`] in the units of the computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    target: u64,
    /// Probability for each unit of time, before auto-tuning.
    alpha: u64,
    beta: u64,
    /// Burst allowance that one update uses up; zero where departures do.
    burst_step: u64,
    /// Probability up to which ECN-capable packets are marked.
    mark_up_to: u64,
    /// Bytes of backlog below which nothing is dropped.
    small_backlog: u64,
    /// Bytes of backlog at which PIE wakes up; zero if it never sleeps.
    turn_on: u64,
    mtu: u32,
    bytemode: bool,
    dq_rate_estimator: bool,
    derandomise: bool,
    cap_drop: bool,
    flavour: Flavour,
    arithmetic: Arithmetic,
}

/// State of one queue. What each packet meets comes first, so that it shares a cache line with what
/// stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct PieState {
    /// Drop probability.
    prob: u64,
    /// Burst still allowed.
    burst_time: u32,
    /// Updates that it has had, where somebody counts them.
    pub(crate) updates: u32,
    /// Delay at the last departure, or at the last update with the rate estimator.
    qdelay: u64,
    /// Time at which the last packet left, or the present measurement began; [`UNSET`] if neither.
    dq_tstamp: u64,
    /// Bytes that left in the present measurement; [`UNSET`] if there is none.
    dq_count: u64,
    /// Sum of probabilities since the last drop.
    accu_prob: u64,
    /// Delay at the update before.
    qdelay_old: u64,
    /// Estimated departure rate.
    avg_dq_rate: u32,
    /// False while `on_off` lets everything through.
    active: bool,
}

/// No measurement.
const UNSET: u64 = u64::MAX;
/// Nanoseconds in a unit of time, as a power of two.
const UNIT_SHIFT: u32 = 6;
const UNITS_PER_SECOND: u64 = 1_000_000_000 >> UNIT_SHIFT;
/// Burst that a queue may take from idle (RFC 8033, section 4.4): 150 ms.
const MAX_BURST: u32 = units(Span::from_millis(150)) as u32;
/// Delay from which Linux raises the probability by 2 % more: found by experiment, it says.
const HIGH_DELAY: u64 = units(Span::from_millis(250));
/// 2 %.
const STEP: u64 = MAX_PROB / 100 * 2;
/// Sums of probabilities between which chance decides (RFC 8033, section 5.4).
const ACCU_LOW: u64 = MAX_PROB / 100 * 85;
const ACCU_HIGH: u64 = MAX_PROB / 2 * 17;
/// Bytes that make a measurement of the departure rate (RFC 8033, section 5.2: 2^14).
const DQ_THRESHOLD: u64 = 1 << 14;
/// Scale of the departure rate, as a power of two.
const RATE_SHIFT: u32 = 8;
/// FreeBSD's value of RFC 8033's MEAN_PKTSIZE, in bytes: two of them do not make a queue.
const MEAN_PACKET: u64 = 800;

const fn units(span: Span) -> u64 {
    span.0 >> UNIT_SHIFT
}

impl Law {
    /// True if the delay is told from the rate of departure, and not from time stamps.
    #[inline]
    pub fn estimates_rate(&self) -> bool {
        self.dq_rate_estimator
    }

    /// The law of `params` on a device whose largest frame has `mtu` bytes. `limit` bytes fill the
    /// queue (for `on_off`).
    pub fn new(params: &PieParams, mtu: u32, limit: u64, arithmetic: Arithmetic) -> Law {
        let weight = |sixteenths: u32| (u64::from(sixteenths) * (MAX_PROB / UNITS_PER_SECOND)) >> 4;
        let linux = params.flavour == Flavour::Linux;
        Law {
            target: units(params.target),
            alpha: weight(params.alpha),
            beta: weight(params.beta),
            burst_step: if linux { 0 } else { units(params.tupdate) },
            mark_up_to: if params.ecn { MAX_PROB / 10 } else { 0 },
            small_backlog: if linux { 2 * u64::from(mtu) } else { 2 * MEAN_PACKET + 1 },
            turn_on: if params.on_off { (limit / 3).max(1) } else { 0 },
            mtu: mtu.max(1),
            bytemode: params.bytemode,
            dq_rate_estimator: params.dq_rate_estimator,
            derandomise: params.derandomise,
            cap_drop: params.cap_drop,
            flavour: params.flavour,
            arithmetic,
        }
    }

    /// Largest probability. Linux lets it run far beyond one, which it returns to when 64 bits are
    /// full.
    fn most(&self) -> u64 {
        match self.arithmetic {
            Arithmetic::Linux(_) => u64::MAX,
            Arithmetic::Exact => MAX_PROB,
        }
    }

    /// Marks up to a probability of `percent`, above which it drops even with ECN; nothing if zero.
    /// PIE's own limit is 10.
    pub fn set_mark_percent(&mut self, percent: u32) {
        self.mark_up_to = MAX_PROB / 100 * u64::from(percent.min(100));
    }
}

impl PieState {
    /// A queue that was always empty.
    pub const NEW: PieState = PieState {
        prob: 0,
        accu_prob: 0,
        qdelay: 0,
        qdelay_old: 0,
        dq_tstamp: UNSET,
        dq_count: UNSET,
        burst_time: MAX_BURST,
        updates: 0,
        avg_dq_rate: 0,
        active: false,
    };

    /// As [`PieState::NEW`], after so many updates.
    pub(crate) const fn after(updates: u32) -> PieState {
        PieState { updates, ..PieState::NEW }
    }

    /// Decides about `packet`, which is coming into a queue of `backlog` bytes. It is not marked
    /// here.
    #[inline]
    pub fn admit(
        &mut self,
        law: &Law,
        packet: &Packet,
        backlog: u64,
        random: &mut Random,
    ) -> Verdict {
        match self.is_calm(law, backlog) {
            true => Verdict::Pass,
            false => self.dice(law, packet, random),
        }
    }

    /// Fate of `packet` by the dice.
    #[inline(never)]
    fn dice(&mut self, law: &Law, packet: &Packet, random: &mut Random) -> Verdict {
        if !self.hits(law, packet.len, random) {
            return Verdict::Pass;
        }
        if law.mark_up_to > 0 && self.prob <= law.mark_up_to && packet.is_markable() {
            return Verdict::Marked;
        }
        self.accu_prob = 0;
        Verdict::Drop
    }

    /// An arrival was dropped for want of room.
    pub fn overflowed(&mut self) {
        self.accu_prob = 0;
    }

    /// True if nothing is dropped from a queue of `backlog` bytes whatever the dice say.
    #[inline]
    pub fn is_calm(&mut self, law: &Law, backlog: u64) -> bool {
        if law.turn_on > 0 && !self.active {
            if backlog < law.turn_on {
                return true;
            }
            self.active = true;
        }
        let guard = match law.flavour {
            Flavour::Linux => self.qdelay,
            Flavour::Freebsd => self.qdelay_old,
        };
        self.burst_time > 0
            || (guard < law.target / 2 && self.prob < MAX_PROB / 5)
            || backlog < law.small_backlog
    }

    /// True if the next update, with the queue empty until then, will leave a queue that was always
    /// empty. Packets that do not wait, passing meanwhile, would only spend some burst: less than
    /// the time from one update to the next.
    pub fn is_at_rest(&self, law: &Law) -> bool {
        !law.dq_rate_estimator
            && self.prob == 0
            && self.accu_prob == 0
            && self.qdelay == 0
            && self.qdelay_old < law.target / 2
    }

    /// Burst that is still let through.
    #[cfg(test)]
    pub(crate) fn burst_left(&self) -> Span {
        Span(u64::from(self.burst_time) << UNIT_SHIFT)
    }

    /// Rolls the dice for a packet of `len` bytes.
    fn hits(&mut self, law: &Law, len: u32, random: &mut Random) -> bool {
        let prob = if law.bytemode && len <= law.mtu {
            u64::from(len) * (self.prob / u64::from(law.mtu.max(1)))
        } else {
            self.prob
        };
        if law.derandomise {
            self.accu_prob = if prob == 0 { 0 } else { self.accu_prob.wrapping_add(prob) };
            if self.accu_prob < ACCU_LOW {
                return false;
            }
            if self.accu_prob >= ACCU_HIGH {
                // Linux's begins anew with drops only: from here on it would mark every packet.
                if law.arithmetic == Arithmetic::Exact {
                    self.accu_prob = 0;
                }
                return true;
            }
        }
        let low = u64::from(random.u32());
        let drawn = u64::from(random.u32()) << 32 | low;
        let hit = drawn >> 8 < prob;
        if hit {
            self.accu_prob = 0;
        }
        hit
    }

    /// A packet of `len` bytes that came at `enqueued` leaves at `now`; `backlog` bytes remain.
    #[inline]
    pub fn dequeued(&mut self, law: &Law, enqueued: Time, len: u32, now: Time, backlog: u64) {
        let now = units(Span(now.0));
        if law.dq_rate_estimator {
            return self.measure(law, len, now, backlog);
        }
        let last = core::mem::replace(&mut self.dq_tstamp, now);
        self.qdelay = if backlog == 0 { 0 } else { now - units(Span(enqueued.0)) };
        if self.burst_time > 0 && last != UNSET && law.burst_step == 0 {
            self.spend_burst(now - last);
        }
    }

    #[inline]
    fn spend_burst(&mut self, time: u64) {
        self.burst_time = self.burst_time.saturating_sub(time.min(MAX_BURST.into()) as u32);
    }

    /// Measures how long [`DQ_THRESHOLD`] bytes take to leave, while there are as many to leave.
    fn measure(&mut self, law: &Law, len: u32, now: u64, backlog: u64) {
        if backlog >= DQ_THRESHOLD && self.dq_count == UNSET {
            (self.dq_tstamp, self.dq_count) = (now, 0);
        }
        if self.dq_count == UNSET {
            return;
        }
        self.dq_count += u64::from(len);
        let took = now - self.dq_tstamp;
        if self.dq_count < DQ_THRESHOLD || took == 0 {
            return;
        }
        let rate = ((self.dq_count << RATE_SHIFT) / took).min(u64::from(u32::MAX)) as u32;
        self.avg_dq_rate = match self.avg_dq_rate {
            0 => rate,
            average => average - (average >> 3) + (rate >> 3),
        };
        // What was learnt outlasts the backlog; a new measurement needs one.
        (self.dq_count, self.dq_tstamp) =
            if backlog < DQ_THRESHOLD { (UNSET, self.dq_tstamp) } else { (0, now) };
        if law.burst_step == 0 {
            self.spend_burst(took);
        }
    }

    /// Computes the probability anew; `backlog` bytes are queued. False if nothing changed: without
    /// an arrival or a departure, nothing will at the next update either.
    pub fn update(&mut self, law: &Law, backlog: u64) -> bool {
        let before = *self;
        if law.turn_on > 0 && !self.active {
            return false;
        }
        let (qdelay, qdelay_old) = if law.dq_rate_estimator {
            self.qdelay_old = self.qdelay;
            let rate = u64::from(self.avg_dq_rate);
            let scaled = match law.arithmetic {
                // 32 bits: 16 MiB.
                Arithmetic::Linux(_) => u64::from((backlog as u32) << RATE_SHIFT),
                Arithmetic::Exact => backlog << RATE_SHIFT,
            };
            (scaled.checked_div(rate).unwrap_or(0), self.qdelay_old)
        } else {
            (self.qdelay, self.qdelay_old)
        };
        self.spend_burst(law.burst_step);
        let capped = self.control(law, qdelay, qdelay_old);
        // Two quiet periods in a row. (No delay with a backlog: nothing has left yet.)
        if qdelay == 0 && qdelay_old == 0 && backlog == 0 && !capped {
            self.prob -= self.prob / 64;
        }
        self.qdelay = qdelay;
        let quiet = |delay| delay < law.target / 2;
        let knows_rate = !law.dq_rate_estimator || self.avg_dq_rate > 0;
        if quiet(self.qdelay) && quiet(self.qdelay_old) && self.prob == 0 && knows_rate {
            let PieState { qdelay, qdelay_old, updates, .. } = *self;
            *self = PieState { qdelay, qdelay_old, updates, ..PieState::NEW };
        }
        if !law.dq_rate_estimator {
            self.qdelay_old = qdelay;
        }
        *self != before
    }

    /// As `rounds` of [`PieState::update`] between which no packet comes or goes. Where each adds
    /// the same they are taken at once; of others only so many.
    pub(crate) fn update_often(&mut self, law: &Law, backlog: u64, mut rounds: u32) {
        for _ in 0..MAX_ROUNDS {
            if rounds == 0 {
                return;
            }
            step();
            let before = *self;
            if !self.update(law, backlog) {
                return;
            }
            rounds -= 1;
            // An empty queue's falls by a part of itself.
            if backlog > 0 && (PieState { prob: self.prob, ..before }) == *self {
                rounds -= self.stride(law, before.prob, rounds);
            }
        }
    }

    /// Moves the probability as the last update did from `before`, up to `rounds` times, while it
    /// stays in the decade that decides how far. Says how often it did.
    fn stride(&mut self, law: &Law, before: u64, rounds: u32) -> u32 {
        let tuning = |prob: u64| PieState { prob, ..PieState::NEW }.tuning();
        if tuning(before) != tuning(self.prob) {
            return 0;
        }
        let part = |decade: u32| DECADES.get(decade as usize).copied().unwrap_or(0);
        let (low, high) = match tuning(before) {
            0 => (part(1), law.most()),
            11 => (0, part(6)),
            shift => (part(shift.div_ceil(2) + 1), part(shift.div_ceil(2))),
        };
        let length = self.prob.abs_diff(before).max(1);
        let rises = self.prob > before;
        // Short of the lower end, where more may change.
        let room =
            if rises { high.saturating_sub(self.prob) } else { self.prob.saturating_sub(low + 1) };
        let times = (room / length).min(rounds.into());
        self.prob = match rises {
            true => self.prob + times * length,
            false => self.prob - times * length,
        };
        times as u32
    }

    /// Moves the probability. True if it ran against its upper end.
    fn control(&mut self, law: &Law, qdelay: u64, qdelay_old: u64) -> bool {
        let (alpha, beta) = (law.alpha >> self.tuning(), law.beta >> self.tuning());
        let product = |weight: u64, x: u64, y: u64| weight.wrapping_mul(x.wrapping_sub(y)) as i64;
        let mut delta =
            product(alpha, qdelay, law.target).wrapping_add(product(beta, qdelay, qdelay_old));
        if law.cap_drop && self.prob >= MAX_PROB / 10 && delta > (MAX_PROB / 50) as i64 {
            delta = STEP as i64;
        }
        if law.flavour == Flavour::Linux && qdelay > HIGH_DELAY {
            delta = delta.wrapping_add((MAX_PROB / 50) as i64);
        }
        if delta <= 0 {
            self.prob = self.prob.saturating_sub(delta.unsigned_abs());
            return false;
        }
        match self.prob.checked_add(delta as u64) {
            Some(prob) if prob <= law.most() => {
                self.prob = prob;
                false
            }
            _ => {
                self.prob = MAX_PROB;
                true
            }
        }
    }

    /// By how many powers of two the weights are scaled down: 1 below 10 %, 2 more for each decade
    /// below 1 % down to a millionth.
    fn tuning(&self) -> u32 {
        let [_, tenth, below @ ..] = &DECADES;
        if self.prob >= *tenth {
            return 0;
        }
        1 + 2 * below.iter().take_while(|end| self.prob < **end).count() as u32
    }

    /// Drop probability in units of 1/[`MAX_PROB`].
    pub fn probability(&self) -> u64 {
        self.prob
    }

    /// The delay that the next update will go by.
    pub fn delay(&self) -> Span {
        Span(self.qdelay << UNIT_SHIFT)
    }

    /// Estimated departure rate in bytes a second; zero if nothing was measured.
    pub fn departure_rate(&self) -> u64 {
        (u64::from(self.avg_dq_rate) * UNITS_PER_SECOND) >> RATE_SHIFT
    }
}

#[cfg(test)]
mod tests;
