//! BBR version 1: a model of the path instead of a reaction to loss
//! (Cardwell et al., 2016; draft-cardwell-iccrg-bbr-congestion-control-00; Linux's constants).
//!
//! The model is the greatest delivery rate of the last ten round trips and the least RTT of the
//! last ten seconds. Segments are paced at a gain times the rate. The window is capped at a gain
//! times their product, plus what aggregated ACKs were seen to add.
//!
//! ```text
//!  Startup --- rate stands still for three rounds ---> Drain --- pipe holds one BDP ---> ProbeBw
//!     ^                                                                                  |    ^
//!     +---- (pipe was never full) ---- ProbeRtt <--- least RTT is ten seconds old -------+    |
//!                                         +---- 200 ms and a round trip with four segments ---+
//! ```
//!
//! A token-bucket policer is suspected after two intervals of a steady rate with a fifth of the
//! segments lost. The rate so found is then used for 48 round trips.
//!
//! Rates are segments per µs in Q24, gains in Q8.

use simnel_core::random::Random;

use super::{Control, Event, Phase, RateSample, Window, UNPACED};
use crate::clock::{before, Now};
use crate::config::Config;
use crate::windowed::Windowed;

/// Bits of a rate's fraction.
const RATE_BITS: u32 = 24;
/// Bits of a gain's fraction.
const GAIN_BITS: u32 = 8;
/// A gain of one.
const ONE: u32 = 1 << GAIN_BITS;
/// 2/ln 2: the least gain that doubles the rate every round trip.
const HIGH_GAIN: u32 = ONE * 2885 / 1000 + 1;
/// Its inverse: empties in one round what Startup queued.
const DRAIN_GAIN: u32 = ONE * 1000 / 2885;
/// Window gain while probing: room for delayed and aggregated ACKs.
const WINDOW_GAIN: u32 = ONE * 2;
/// Pacing gains of the eight phases of ProbeBw, one least RTT each: probe, drain, cruise.
const CYCLE: [u32; 8] = [ONE * 5 / 4, ONE * 3 / 4, ONE, ONE, ONE, ONE, ONE, ONE];
/// Round trips over which the rate's maximum is taken.
const RATE_ROUNDS: u32 = 10;
/// The pipe is full if the rate did not grow by a quarter in three rounds.
const FULL_ROUNDS: u32 = 3;
/// Age at which the least RTT is measured anew.
const MIN_RTT_AGE_MS: u32 = 10_000;
/// Time spent with few segments in flight for that.
const PROBE_RTT_MS: u32 = 200;
/// These few, and the least window.
const LEAST_WINDOW: u32 = 4;
/// Share of the rate that pacing stays below, in percent, lest queues never drain.
const MARGIN_PERCENT: u64 = 1;
/// Round trips over which the extra from aggregated ACKs is remembered (twice).
const EXTRA_ROUNDS: u32 = 5;
/// Longest time for which that extra counts, in µs.
const EXTRA_MAX_US: u64 = 100_000;
/// The epoch of aggregation restarts after so many segments.
const EXTRA_RESET: u32 = 1 << 20;
/// Below this pacing rate (1.2 Mbit/s, in bytes) super-packets have one segment.
const SLOW_RATE: u64 = 1_200_000 / 8;

/// The phase of the control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// State of the control.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    random: Random,
    mode: Mode,
    /// Greatest rate, by round.
    rate: Windowed<true>,
    round: u32,
    round_start: bool,
    /// The round ends when a segment sent after this count of deliveries is delivered.
    round_delivered: u32,
    /// Time of the last delivery, by which phases and rates are timed.
    delivered: Now,
    min_rtt_us: u32,
    min_rtt_ms: u32,
    probe_rtt_done_ms: Option<u32>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    pacing_gain: u32,
    window_gain: u32,
    cycle: usize,
    cycle_us: u32,
    full_rate: u32,
    full_rounds: u32,
    full: bool,
    seen_rtt: bool,
    pacing_rate: u64,
    prior_phase: Phase,
    prior_cwnd: u32,
    conserve: bool,
    epoch_us: u32,
    epoch_acked: u32,
    extra: [u32; 2],
    extra_rounds: u32,
    extra_slot: usize,
    policer: Policer,
}

impl Bbr {
    pub(crate) fn new(config: &Config) -> Bbr {
        Bbr {
            random: Random::new(config.seed),
            mode: Mode::Startup,
            rate: Windowed::default(),
            round: 0,
            round_start: false,
            round_delivered: 0,
            delivered: Now::default(),
            min_rtt_us: u32::MAX,
            min_rtt_ms: 0,
            probe_rtt_done_ms: None,
            probe_rtt_round_done: false,
            idle_restart: false,
            pacing_gain: HIGH_GAIN,
            window_gain: HIGH_GAIN,
            cycle: 0,
            cycle_us: 0,
            full_rate: 0,
            full_rounds: 0,
            full: false,
            seen_rtt: false,
            pacing_rate: UNPACED,
            prior_phase: Phase::Open,
            prior_cwnd: 0,
            conserve: false,
            epoch_us: 0,
            epoch_acked: 0,
            extra: [0; 2],
            extra_rounds: 0,
            extra_slot: 0,
            policer: Policer::default(),
        }
    }

    /// The rate in use.
    fn current_rate(&self) -> u32 {
        if self.policer.in_use {
            self.policer.rate
        } else {
            self.rate.value()
        }
    }

    /// Bytes per second of `rate` at `gain`, less the margin.
    fn bytes_per_second(rate: u32, gain: u32, mss: u32) -> u64 {
        let bytes = (u128::from(rate) * u128::from(mss) * u128::from(gain)) >> GAIN_BITS;
        ((bytes * u128::from(10_000 * (100 - MARGIN_PERCENT))) >> RATE_BITS) as u64
    }

    fn start_pacing(&mut self, window: &Window) {
        let rtt_us = match window.srtt8_us >> 3 {
            0 => 1_000,
            us => {
                self.seen_rtt = true;
                us
            }
        };
        let rate = (u64::from(window.cwnd) << RATE_BITS) / u64::from(rtt_us);
        let rate = rate.min(u64::from(u32::MAX)) as u32;
        self.pacing_rate = Bbr::bytes_per_second(rate, HIGH_GAIN, window.mss);
    }

    fn set_pacing_rate(&mut self, window: &mut Window, rate: u32, gain: u32) {
        if !self.seen_rtt && window.srtt8_us != 0 {
            self.start_pacing(window);
        }
        let bytes = Bbr::bytes_per_second(rate, gain, window.mss);
        if self.full || bytes > self.pacing_rate || self.pacing_rate == UNPACED {
            self.pacing_rate = bytes;
        }
        window.pacing_rate = self.pacing_rate.max(1);
    }

    /// Segments of a super-packet at the pacing rate.
    fn burst(&self, window: &Window) -> u32 {
        let bytes = (self.pacing_rate >> 10).min(65_535 - 320);
        let least = if self.pacing_rate < SLOW_RATE { 1 } else { 2 };
        (bytes / u64::from(window.mss.max(1))).clamp(least, 0x7f) as u32
    }

    /// Bandwidth-delay product times `gain`, in segments.
    fn product(&self, window: &Window, rate: u32, gain: u32) -> u32 {
        if self.min_rtt_us == u32::MAX {
            return window.initial;
        }
        let bits = u128::from(rate) * u128::from(self.min_rtt_us) * u128::from(gain);
        let product = (bits >> GAIN_BITS).div_ceil(1 << RATE_BITS);
        product.min(u128::from(u32::MAX / 4)) as u32
    }

    /// A window large enough for super-packets at both ends and in between.
    fn quantize(&self, window: &Window, segments: u32) -> u32 {
        let mut budget = segments + 3 * self.burst(window);
        budget = (budget + 1) & !1;
        if self.mode == Mode::ProbeBw && self.cycle == 0 {
            budget += 2;
        }
        budget
    }

    fn target(&self, window: &Window, gain: u32) -> u32 {
        self.quantize(window, self.product(window, self.rate.value(), gain))
    }

    /// Of `in_flight`, what will still be in the network when the next segment leaves, which counts
    /// if it is to add to that.
    fn in_network(&self, window: &Window, in_flight: u32, wait_us: u32) -> u32 {
        let next = if self.pacing_gain > ONE { self.burst(window) } else { 0 };
        let leaving = (u64::from(self.current_rate()) * u64::from(wait_us)) >> RATE_BITS;
        (in_flight + next).saturating_sub(leaving.min(u64::from(u32::MAX)) as u32)
    }

    fn update_rate(&mut self, window: &Window, sample: &RateSample, now: &Now) {
        self.round_start = false;
        let Some(delivered) = sample.delivered else { return };
        if !before(sample.prior_delivered, self.round_delivered) {
            self.round_delivered = window.delivered;
            self.round = self.round.wrapping_add(1);
            self.round_start = true;
            self.conserve = false;
        }
        self.look_for_policer(window, sample, now);
        let rate = (u64::from(delivered) << RATE_BITS) / u64::from(sample.interval_us);
        let rate = rate.min(u64::from(u32::MAX)) as u32;
        if !sample.app_limited || rate >= self.rate.value() {
            self.rate.update(RATE_ROUNDS, self.round, rate);
        }
    }

    fn look_for_policer(&mut self, window: &Window, sample: &RateSample, now: &Now) {
        let (probing, known) = (self.mode == Mode::ProbeBw, self.policer.in_use);
        if self.policer.sample(self.round_start, probing, window, sample, now) {
            self.start_probing(now);
        } else if self.policer.in_use && !known {
            self.pacing_gain = ONE;
        }
    }

    /// Updates the measure of aggregation: segments that arrive beyond what the rate explains.
    fn update_extra(&mut self, window: &Window, sample: &RateSample, now: &Now) {
        if sample.acked == 0 || sample.delivered.is_none() {
            return;
        }
        if self.round_start {
            self.extra_rounds = (self.extra_rounds + 1).min(31);
            if self.extra_rounds >= EXTRA_ROUNDS {
                self.extra_rounds = 0;
                self.extra_slot ^= 1;
                self.extra[self.extra_slot] = 0;
            }
        }
        let passed = u64::from(now.us.wrapping_sub(self.epoch_us));
        let mut expected =
            ((u128::from(self.current_rate()) * u128::from(passed)) >> RATE_BITS) as u64;
        if u64::from(self.epoch_acked) <= expected || self.epoch_acked + sample.acked >= EXTRA_RESET
        {
            self.epoch_acked = 0;
            self.epoch_us = now.us;
            expected = 0;
        }
        self.epoch_acked = (self.epoch_acked + sample.acked).min(EXTRA_RESET - 1);
        let extra = (u64::from(self.epoch_acked) - expected).min(u64::from(window.cwnd)) as u32;
        let slot = &mut self.extra[self.extra_slot];
        *slot = (*slot).max(extra);
    }

    fn update_cycle(&mut self, window: &Window, sample: &RateSample, now: &Now) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let over = now.us.wrapping_sub(self.cycle_us) > self.min_rtt_us;
        let in_network = self.in_network(window, sample.prior_in_flight, sample.wait_us);
        let next = if self.pacing_gain == ONE {
            over
        } else if self.pacing_gain > ONE {
            // Probing lasts until the queue it makes is there, or losses show that it is.
            over && (sample.lost > 0 || in_network >= self.target(window, self.pacing_gain))
        } else {
            over || in_network <= self.target(window, ONE)
        };
        if next {
            self.advance_cycle(now);
        }
    }

    fn advance_cycle(&mut self, now: &Now) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_us = now.us;
    }

    /// Enters ProbeBw in any phase but the draining one.
    fn start_probing(&mut self, now: &Now) {
        self.mode = Mode::ProbeBw;
        self.cycle = CYCLE.len() - 1 - self.random.below(CYCLE.len() as u32 - 1) as usize;
        self.advance_cycle(now);
    }

    fn check_full(&mut self, sample: &RateSample) {
        if self.full || !self.round_start || sample.app_limited {
            return;
        }
        let threshold = u64::from(self.full_rate) * 5 / 4;
        if u64::from(self.rate.value()) >= threshold {
            self.full_rate = self.rate.value();
            self.full_rounds = 0;
            return;
        }
        self.full_rounds += 1;
        self.full = self.full_rounds >= FULL_ROUNDS;
    }

    fn check_drained(&mut self, window: &mut Window, wait_us: u32, now: &Now) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
            window.ssthresh = self.target(window, ONE);
        }
        if self.mode == Mode::Drain
            && self.in_network(window, window.in_flight, wait_us) <= self.target(window, ONE)
        {
            self.start_probing(now);
        }
    }

    fn update_min_rtt(&mut self, window: &mut Window, sample: &RateSample, now: &Now) {
        let age_ms = now.ms.wrapping_sub(self.min_rtt_ms);
        let expired = age_ms > MIN_RTT_AGE_MS && self.min_rtt_us != u32::MAX;
        if let Some(rtt_us) = sample.rtt_us {
            if rtt_us < self.min_rtt_us || (expired && !sample.ack_delayed) {
                self.min_rtt_us = rtt_us;
                self.min_rtt_ms = now.ms;
            }
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_window(window);
            self.probe_rtt_done_ms = None;
        }
        if self.mode == Mode::ProbeRtt {
            // Rates measured with so few segments say nothing.
            window.ignore_rates = true;
            match self.probe_rtt_done_ms {
                None if window.in_flight <= LEAST_WINDOW => {
                    self.probe_rtt_done_ms = Some(now.ms.wrapping_add(PROBE_RTT_MS));
                    self.probe_rtt_round_done = false;
                    self.round_delivered = window.delivered;
                }
                None => {}
                Some(_) => {
                    self.probe_rtt_round_done |= self.round_start;
                    if self.probe_rtt_round_done {
                        self.check_probe_rtt_done(window, now);
                    }
                }
            }
        }
        if sample.acked > 0 {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, window: &mut Window, now: &Now) {
        if !self.probe_rtt_done_ms.is_some_and(|done| before(done, now.ms)) {
            return;
        }
        self.min_rtt_ms = now.ms;
        window.cwnd = window.cwnd.max(self.prior_cwnd);
        if self.full {
            let delivered = self.delivered;
            self.start_probing(&delivered);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn save_window(&mut self, window: &Window) {
        if self.prior_phase < Phase::Recovery && self.mode != Mode::ProbeRtt {
            self.prior_cwnd = window.cwnd;
        } else {
            self.prior_cwnd = self.prior_cwnd.max(window.cwnd);
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.window_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.policer.in_use => (ONE, WINDOW_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle], WINDOW_GAIN),
            Mode::ProbeRtt => (ONE, ONE),
        };
    }

    /// In the first round of recovery one segment leaves for each that is delivered; afterwards the
    /// window is what it was. Returns the window, and whether it is final.
    fn recover(&mut self, window: &Window, sample: &RateSample) -> (u32, bool) {
        let mut cwnd = window.cwnd;
        if sample.lost > 0 {
            cwnd = cwnd.saturating_sub(sample.lost).max(1);
        }
        let (before, phase) = (self.prior_phase, window.phase);
        if phase == Phase::Recovery && before != Phase::Recovery {
            self.conserve = true;
            self.round_delivered = window.delivered;
            cwnd = window.in_flight + sample.acked;
        } else if before >= Phase::Recovery && phase < Phase::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
            self.conserve = false;
        }
        self.prior_phase = phase;
        if self.conserve {
            return (cwnd.max(window.in_flight + sample.acked), true);
        }
        (cwnd, false)
    }

    fn set_window(&mut self, window: &mut Window, sample: &RateSample) {
        if sample.acked > 0 {
            let (mut cwnd, done) = self.recover(window, sample);
            if !done {
                let rate = self.current_rate();
                let mut target = self.product(window, rate, self.window_gain);
                if self.full {
                    let most = (u128::from(rate) * u128::from(EXTRA_MAX_US)) >> RATE_BITS;
                    let extra = self.extra[0].max(self.extra[1]);
                    target += extra.min(most as u32);
                }
                let target = self.quantize(window, target);
                if self.full {
                    cwnd = (cwnd + sample.acked).min(target);
                } else if cwnd < target || window.delivered < window.initial {
                    cwnd += sample.acked;
                }
                cwnd = cwnd.max(LEAST_WINDOW);
            }
            window.cwnd = cwnd;
        }
        if self.mode == Mode::ProbeRtt {
            window.cwnd = window.cwnd.min(LEAST_WINDOW);
        }
    }
}

impl Control for Bbr {
    fn reduce(&mut self, window: &Window, _now: &Now) -> u32 {
        self.save_window(window);
        window.ssthresh
    }

    fn grow(&mut self, _window: &mut Window, _acked: u32, _now: &Now) {}

    fn control(&mut self, window: &mut Window, sample: &RateSample, now: &Now) {
        if sample.acked > 0 {
            self.delivered = *now;
        }
        let delivered = self.delivered;
        self.update_rate(window, sample, &delivered);
        self.update_extra(window, sample, &delivered);
        self.update_cycle(window, sample, &delivered);
        self.check_full(sample);
        self.check_drained(window, sample.wait_us, &delivered);
        self.update_min_rtt(window, sample, now);
        self.update_gains();
        self.set_pacing_rate(window, self.current_rate(), self.pacing_gain);
        self.set_window(window, sample);
    }

    fn on_event(&mut self, window: &mut Window, event: Event, now: &Now) {
        if event != Event::SendStart {
            return;
        }
        if self.pacing_rate == UNPACED {
            self.start_pacing(window);
            window.pacing_rate = self.pacing_rate;
            // The handshake's RTT is the first: no data has queued yet.
            self.min_rtt_us = window.min_rtt_us;
            self.min_rtt_ms = now.ms;
        }
        if window.app_limited {
            self.idle_restart = true;
            self.epoch_us = now.us;
            self.epoch_acked = 0;
            match self.mode {
                Mode::ProbeBw => self.set_pacing_rate(window, self.current_rate(), ONE),
                Mode::ProbeRtt => self.check_probe_rtt_done(window, now),
                _ => {}
            }
        }
        if window.packets_out == 0 {
            self.delivered = *now;
        }
    }

    fn on_phase(&mut self, window: &mut Window, phase: Phase, _now: &Now) {
        if phase == Phase::Loss {
            self.prior_phase = Phase::Loss;
            self.full_rate = 0;
            // A timeout ends a round, and tells of a loss.
            self.round_start = true;
            let loss = RateSample { lost: 1, ..RateSample::default() };
            let delivered = self.delivered;
            self.look_for_policer(window, &loss, &delivered);
        }
    }

    fn undo(&mut self, window: &Window) -> u32 {
        self.full_rate = 0;
        self.full_rounds = 0;
        self.policer = Policer::default();
        window.cwnd
    }
}

/// Least length of a policer's interval in round trips.
const INTERVAL_ROUNDS: u32 = 4;
/// Share of segments lost in an interval, in 1/256.
const INTERVAL_LOSS: u64 = 50;
/// Two intervals agree if their rates differ by less than this share, in 1/256 ...
const INTERVAL_RATIO: u32 = ONE / 8;
/// ... or by fewer bytes a second (4 kbit/s).
const INTERVAL_DIFFERENCE: u64 = 4_000 / 8;
/// Round trips for which the rate is used.
const USE_ROUNDS: u32 = 48;

/// Detects token-bucket policers: intervals between losses whose rates agree.
#[derive(Clone, Copy, Debug, Default)]
struct Policer {
    in_use: bool,
    sampling: bool,
    rounds: u32,
    /// Rate of the last interval, or in use.
    rate: u32,
    start_ms: u32,
    start_delivered: u32,
    start_lost: u32,
}

impl Policer {
    fn start_interval(&mut self, window: &Window, now: &Now) {
        self.start_ms = now.ms;
        self.start_delivered = window.delivered;
        self.start_lost = window.lost;
        self.rounds = 0;
    }

    fn restart(&mut self, window: &Window, now: &Now) {
        *self = Policer::default();
        self.start_interval(window, now);
    }

    /// Takes in a sample. True if the rate was in use for long enough while probing.
    fn sample(
        &mut self,
        round: bool,
        probing: bool,
        window: &Window,
        sample: &RateSample,
        now: &Now,
    ) -> bool {
        if self.in_use {
            if round && probing {
                self.rounds += 1;
                if self.rounds >= USE_ROUNDS {
                    self.restart(window, now);
                    return true;
                }
            }
            return false;
        }
        let lost_now = sample.lost > 0;
        if !self.sampling {
            if !lost_now {
                return false;
            }
            self.start_interval(window, now);
            self.sampling = true;
        }
        if sample.app_limited {
            self.restart(window, now);
            return false;
        }
        self.rounds += u32::from(round);
        if self.rounds < INTERVAL_ROUNDS {
            return false;
        }
        if self.rounds > 4 * INTERVAL_ROUNDS {
            self.restart(window, now);
            return false;
        }
        if lost_now {
            self.end_interval(window, now);
        }
        false
    }

    fn end_interval(&mut self, window: &Window, now: &Now) {
        let lost = u64::from(window.lost.wrapping_sub(self.start_lost));
        let delivered = u64::from(window.delivered.wrapping_sub(self.start_delivered));
        if delivered == 0 || lost << GAIN_BITS < INTERVAL_LOSS * delivered {
            return;
        }
        let passed_ms = now.ms.wrapping_sub(self.start_ms);
        if passed_ms as i32 <= 0 {
            return;
        }
        let rate = (delivered << RATE_BITS) / (u64::from(passed_ms) * 1_000);
        let rate = rate.min(u64::from(u32::MAX)) as u32;
        if self.rate > 0 {
            let apart = rate.abs_diff(self.rate);
            let close =
                u64::from(apart) << GAIN_BITS <= u64::from(INTERVAL_RATIO) * u64::from(self.rate);
            if close || Bbr::bytes_per_second(apart, ONE, window.mss) <= INTERVAL_DIFFERENCE {
                self.rate = ((u64::from(rate) + u64::from(self.rate)) / 2) as u32;
                self.in_use = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = rate;
        self.start_interval(window, now);
    }
}

#[cfg(test)]
mod tests;
