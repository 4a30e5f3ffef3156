//! RED: random early detection (Floyd and Jacobson 1993), as Linux has it.
//!
//! Each arrival moves an average of the queue: `avg += (queue - avg) * 2^-Wlog`. Below `min`
//! nothing happens. From `max` on every packet gets a signal. Between them the chance of a signal
//! rises to `max_p`. It grows with the packets since the last signal, so that signals come at even
//! distances. After an idle time the average is what it would be had packets of `avpkt` bytes
//! passed meanwhile. A table of shifts says how far it falls, computed as `tc` does, since the
//! kernel has no logarithm. (Facts D.7.)
//!
//! Adaptive RED (Floyd, Gummadi and Shenker 2001) steers `max_p` every half second so that the
//! average stays in the middle fifth of `min..max`.
//!
//! Quirk kept for equality: `tc` computes the table for ticks of 64 ns, and the kernel looks it up
//! with microseconds. So Linux's average decays sixteen times too slowly.
//!
//! [`ns`] is the other RED, of the simulators. Caller's rule for both: `arrives` for each arrival,
//! also one that finds no room; `found_empty` when there was nothing to take.

use crate::packet::Packet;
use crate::random::Random;
use crate::rate::Rate;
use crate::tick::Periodic;
use crate::time::{Span, Time};

pub mod ns;
mod told;

pub use told::burst_for;

/// Time between two adaptations (the ARED paper's recommendation, section 5).
pub const ADAPT_EVERY: Span = Span::from_millis(500);

/// Settings, with the names of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedParams {
    /// Average below which nothing is signalled, in bytes.
    pub min: u32,
    /// Average from which everything is, in bytes.
    pub max: u32,
    /// Size of an average packet in bytes.
    pub avpkt: u32,
    /// Packets that may come at once before the average reaches `min`.
    pub burst: u32,
    /// The line's rate: how fast the average of an idle queue falls.
    pub bandwidth: Rate,
    /// Highest chance between `min` and `max`, Q0.32.
    pub probability: u32,
    /// Adapt `probability`.
    pub adaptive: bool,
    /// Treatment of packets.
    pub signals: Signals,
}

/// Ways to signal congestion to senders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Mark ECN-capable packets where others are dropped.
    pub ecn: bool,
    /// Drop, even with `ecn`, from `max` on.
    pub harddrop: bool,
    /// Queue what cannot be marked, too. Needs `ecn`.
    pub nodrop: bool,
}

/// Reason for which [`Law::new`] cannot use its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// `max` is below `min`, or zero.
    Range,
    /// `burst` is too small for `min`, or larger than any average can follow.
    Burst,
    /// `probability` is too small for the distance of `min` and `max`.
    Probability,
    /// The average's memory cannot be counted at this `bandwidth`.
    Bandwidth,
}

/// [`RedParams`] in the units of the computation: averages are in bytes times 2^`wlog`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Law {
    min: u64,
    max: u64,
    wlog: u32,
    /// Microseconds of idleness to an entry of `shifts`, as a power of two.
    scell_log: u32,
    /// Distance of `min` and `max` in bytes.
    delta: u32,
    /// Averages in bytes between which adaptation rests.
    band: (u64, u64),
    adaptive: bool,
    signals: Signals,
    /// Powers of two by which the average falls, by idle time.
    shifts: [u8; SHIFTS],
}

/// State of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedState {
    average: u64,
    /// Packets since the last signal, or since the average came to `min`; -1 below `min`.
    count: i64,
    /// Random number that `count` runs against.
    against: u32,
    max_p: u32,
    /// max_p over delta: what a random number is divided by.
    step: u32,
    idle_since: Option<Time>,
    timer: Periodic,
}

/// RED's decision about an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RedVerdict {
    /// Nothing.
    Pass,
    /// It has been marked, or would be: chance wanted a signal.
    Early {
        /// Mark only; else drop.
        marked: bool,
    },
    /// The average is above `max`.
    Forced {
        /// Mark only; else drop.
        marked: bool,
    },
    /// A signal was wanted; `nodrop` let the packet through without.
    Spared,
}

/// Entries of the table of shifts.
pub const SHIFTS: usize = 256;
/// Largest shift: more than an average has bits.
const MAX_SHIFT: u8 = 31;
/// 1 %, Q0.32: `max_p` is not lowered below.
const MAX_P_MIN: u32 = ((1u64 << 32) / 100 + 1) as u32;
/// 50 %, Q0.32: `max_p` is not raised above.
const MAX_P_MAX: u32 = 50 * MAX_P_MIN;
/// Fractional bits of the logarithm and the powers below.
const FRACTION: u32 = 60;

impl Law {
    /// The law of `params`.
    pub fn new(params: &RedParams) -> Result<Law, Unfit> {
        let delta = params.max.checked_sub(params.min).filter(|_| params.max > 0);
        // As Linux has it where they are the same: then nothing lies between them.
        let delta = delta.ok_or(Unfit::Range)?.max(1);
        if u64::from(params.probability) <= 2 * u64::from(delta) {
            return Err(Unfit::Probability);
        }
        let wlog = weight(params.min, params.burst, params.avpkt.max(1)).ok_or(Unfit::Burst)?;
        let micros = u128::from(params.avpkt) * 1_000_000 / u128::from(params.bandwidth.0.max(1));
        let (scell_log, shifts) = idle_shifts(wlog, micros).ok_or(Unfit::Bandwidth)?;
        let fifth = u64::from(delta / 5);
        Ok(Law {
            min: u64::from(params.min) << wlog,
            max: u64::from(params.max) << wlog,
            wlog,
            scell_log,
            delta,
            band: (u64::from(params.min) + 2 * fifth, u64::from(params.min) + 3 * fifth),
            adaptive: params.adaptive,
            signals: params.signals,
            shifts,
        })
    }

    /// The average's weight is two to the minus this.
    pub fn wlog(&self) -> u32 {
        self.wlog
    }
}

/// The smallest Wlog with which `burst` packets of `avpkt` bytes may come into an empty queue while
/// the average stays below `min` bytes. That is, with W = 2^-Wlog:
/// burst + 1 - min/avpkt <= (1 - (1-W)^burst) / W.
fn weight(min: u32, burst: u32, avpkt: u32) -> Option<u32> {
    // Both sides times avpkt.
    let excess = (i128::from(burst) + 1) * i128::from(avpkt) - i128::from(min);
    if excess < i128::from(avpkt) {
        return None;
    }
    let one = 1u128 << FRACTION;
    (1..32).find(|wlog| {
        let mut power = one;
        let (mut square, mut left) = (one - (one >> wlog), burst);
        while left > 0 {
            if left & 1 == 1 {
                power = (power * square) >> FRACTION;
            }
            square = (square * square) >> FRACTION;
            left >>= 1;
        }
        (excess as u128) << FRACTION <= ((one - power) << wlog) * u128::from(avpkt)
    })
}

/// For idle times in cells of `1 << clog` units: by how much an average with weight 2^-wlog falls
/// while packets of `micros` could have passed. The unit is `tc`'s tick of 64 ns.
fn idle_shifts(wlog: u32, micros: u128) -> Option<(u32, [u8; SHIFTS])> {
    // 15.625 ticks are a microsecond. A packet that takes none would empty the average at once.
    idle_shifts_of_ticks(wlog, (micros * 125 / 8).max(1))
}

/// The same of packets of so many ticks, at least one.
fn idle_shifts_of_ticks(wlog: u32, ticks: u128) -> Option<(u32, [u8; SHIFTS])> {
    // -ln(1 - 2^-wlog), by its series.
    let logarithm: u128 =
        (1..=u128::from(FRACTION / wlog)).map(|k| (1 << FRACTION >> (wlog * k as u32)) / k).sum();
    let clog = (0..32)
        .find(|clog| (u128::from(MAX_SHIFT) * ticks) << FRACTION < (512 * logarithm) << clog)?;
    let mut shifts = [0; SHIFTS];
    for (cell, shift) in (0u128..).zip(&mut shifts) {
        let fall = ((cell << clog) * logarithm / ticks) >> FRACTION;
        *shift = fall.min(u128::from(MAX_SHIFT)) as u8;
    }
    shifts[SHIFTS - 1] = MAX_SHIFT;
    Some((clog, shifts))
}

impl RedState {
    /// A queue that is idle from `now` on. `timer` is for the adaptation, every [`ADAPT_EVERY`].
    pub fn new(params: &RedParams, law: &Law, now: Time, timer: Periodic) -> RedState {
        RedState {
            average: 0,
            count: -1,
            against: 0,
            max_p: params.probability,
            step: (params.probability / law.delta.max(1)).max(1),
            idle_since: Some(now),
            timer,
        }
    }

    /// Memory that Linux has cleared and not set up yet: the first packet between the thresholds is
    /// hit.
    pub fn cleared(self) -> RedState {
        RedState { count: 0, ..self }
    }

    /// The common case of [`RedState::arrives`]: true if the average stays below `min`, which is
    /// then noted. Else nothing is.
    #[inline]
    pub fn admits(&mut self, law: &Law, backlog: u64, now: Time) -> bool {
        if self.idle_since.is_some() || (law.adaptive && self.timer.is_due(now)) {
            return false;
        }
        let average = self.average + backlog - (self.average >> law.wlog);
        if average >= law.min {
            return false;
        }
        (self.average, self.count) = (average, -1);
        true
    }

    /// Decides about `packet`, which comes at `now` to a queue of `backlog` bytes. It is not marked
    /// here.
    #[inline]
    pub fn arrives(
        &mut self,
        law: &Law,
        packet: &Packet,
        backlog: u64,
        now: Time,
        random: &mut Random,
    ) -> RedVerdict {
        if law.adaptive && self.timer.is_due(now) {
            self.adapt(law, now);
        }
        self.observe(law, backlog, now);
        if self.average < law.min {
            self.count = -1;
            return RedVerdict::Pass;
        }
        if self.average >= law.max {
            self.count = -1;
            let marked = law.signals.ecn && !law.signals.harddrop && packet.is_markable();
            // Linux spares nothing that `harddrop` covers.
            let spared = law.signals.nodrop && !law.signals.harddrop && !marked;
            return if spared { RedVerdict::Spared } else { RedVerdict::Forced { marked } };
        }
        if !self.hits(law, random) {
            return RedVerdict::Pass;
        }
        let marked = law.signals.ecn && packet.is_markable();
        if law.signals.nodrop && !marked {
            return RedVerdict::Spared;
        }
        RedVerdict::Early { marked }
    }

    /// Moves the average for an arrival at a queue of `backlog` bytes about which nothing is
    /// decided.
    #[inline]
    pub fn observe(&mut self, law: &Law, backlog: u64, now: Time) {
        self.average = match self.idle_since.take() {
            None => self.average + backlog - (self.average >> law.wlog),
            Some(since) => self.after_idling(law, now.since(since)),
        };
    }

    /// The next packet was to be taken at `now`, and there was none.
    #[inline]
    pub fn found_empty(&mut self, now: Time) {
        self.idle_since.get_or_insert(now);
    }

    /// True if arrivals at the queue, which is empty, change nothing. The average is zero and stays
    /// so, through idle times and without them.
    pub fn is_at_rest(&self) -> bool {
        self.average == 0 && self.count < 0
    }

    /// Uniform distances: the n-th packet since the last signal is hit if n times the distance of
    /// the average from `min` exceeds a random number.
    fn hits(&mut self, law: &Law, random: &mut Random) -> bool {
        self.count += 1;
        let hit = self.count > 0 && {
            let above = (self.average - law.min) >> law.wlog;
            above.saturating_mul(self.count as u64) >= u64::from(self.against)
        };
        if hit {
            self.count = 0;
        }
        if hit || self.count == 0 {
            self.against = random.u32() / self.step.max(1);
        }
        hit
    }

    fn after_idling(&self, law: &Law, idle: Span) -> u64 {
        let longest = (SHIFTS as u64 - 1) << law.scell_log;
        let idle = idle.as_micros().min(longest);
        let cell = (idle >> law.scell_log) as usize;
        match law.shifts.get(cell).copied().unwrap_or(MAX_SHIFT) {
            0 => {
                // Less than halved: a straight line is near enough.
                let fall = ((u128::from(self.average) * u128::from(idle)) >> law.scell_log) as u64;
                let half = self.average >> 1;
                if fall < half {
                    self.average - fall
                } else {
                    half
                }
            }
            shift => self.average >> shift,
        }
    }

    #[cold]
    fn adapt(&mut self, law: &Law, now: Time) {
        let RedState { mut timer, .. } = *self;
        timer.catch_up(now, |at| {
            let average = match self.idle_since {
                None => self.average,
                Some(since) => self.after_idling(law, at.since(since)),
            } >> law.wlog;
            let before = self.max_p;
            if average > law.band.1 && self.max_p <= MAX_P_MAX {
                self.max_p += MAX_P_MIN.min(self.max_p / 4);
            } else if average < law.band.0 && self.max_p >= MAX_P_MIN {
                self.max_p = self.max_p / 10 * 9;
            }
            let delta = u64::from(law.delta.max(1));
            let rounded = (u64::from(self.max_p) + delta / 2) / delta;
            self.step = (rounded as u32).max(1);
            // An idle average may still fall into the band below.
            self.max_p != before || self.idle_since.is_some()
        });
        self.timer = timer;
    }

    /// The average in bytes.
    pub fn average(&self, law: &Law) -> u64 {
        self.average >> law.wlog
    }

    /// Highest chance between `min` and `max`, Q0.32: what adaptation has made of it.
    pub fn max_p(&self) -> u32 {
        self.max_p
    }
}

#[cfg(test)]
mod tests;
