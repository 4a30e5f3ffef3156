//! CUBIC: the window as a cubic function of the time since the last loss (RFC 9438).
//!
//! `W(t) = C (t - K)^3 + Wmax`, with C = 0.4 and a decrease to 0.7. It is fast up to the
//! neighbourhood of the window at which the last loss came, slow around it, fast beyond. Where Reno
//! would be faster, it follows an estimate of Reno's window (section 4.3). A loss below the last
//! maximum gives way to newcomers (fast convergence, section 4.7).
//!
//! Arithmetic as in Linux: time in 1/1024 s, C as 410/1024, the decrease as 717/1024. Growth is the
//! number of acknowledged segments per segment of growth, at least 2. The result is set at most
//! once a millisecond, or every 1/32 s while the window stands still.

use super::hystart::HyStart;
use super::{AckSample, Control, Event, Phase, Window};
use crate::clock::Now;
use crate::config::Config;

/// Scale of the decrease.
const BETA_SCALE: u32 = 1024;
/// Decrease of the window: 0.7.
const BETA: u32 = 717;
/// Growth of the Reno estimate: eight times the segments to be acknowledged per segment, as a share
/// of the window. It is 8 (1 + β) / (3 (1 - β)) = 15 (RFC 9438, figure 4, inverted).
const RENO_SCALE: u32 = 8 * (BETA_SCALE + BETA) / 3 / (BETA_SCALE - BETA);
/// C in 1/1024: 0.4.
const C_SCALED: u64 = 410;
/// Bits after the point of time in seconds.
const TIME_BITS: u32 = 10;
/// Samples of the first second after a reduction say nothing about the path without a queue.
const DISCARD_MS: i32 = 1_000;

/// State of the control.
#[derive(Clone, Debug)]
pub(crate) struct Cubic {
    fast_convergence: bool,
    reno_friendly: bool,
    hystart: HyStart,
    /// Segments to acknowledge per segment of growth.
    per: u32,
    /// Window at the last reduction (Wmax), zero before the first.
    last_max: u32,
    /// Window, and time in ms, of the last computation.
    last_cwnd: u32,
    last_ms: u32,
    /// Start of the present curve in ms; None before the first ACK of it.
    epoch_ms: Option<u32>,
    /// Centre of the curve: window, and time from the epoch in 1/1024 s (K).
    origin: u32,
    k: u32,
    /// Least RTT in µs, zero if unknown.
    least_rtt_us: u32,
    /// Segments acknowledged that the Reno estimate has not counted yet.
    acked: u32,
    /// The Reno estimate.
    reno_cwnd: u32,
}

impl Cubic {
    pub(crate) fn new(config: &Config) -> Cubic {
        let hystart = HyStart::new(config.slow_start_exit);
        Cubic::unacquainted(config.fast_convergence, config.reno_friendly, hystart)
    }

    /// Knows nothing of the line yet.
    fn unacquainted(fast_convergence: bool, reno_friendly: bool, hystart: HyStart) -> Cubic {
        Cubic {
            fast_convergence,
            reno_friendly,
            hystart,
            per: 0,
            last_max: 0,
            last_cwnd: 0,
            last_ms: 0,
            epoch_ms: None,
            origin: 0,
            k: 0,
            least_rtt_us: 0,
            acked: 0,
            reno_cwnd: 0,
        }
    }

    /// Sets `per` for the present window.
    fn update(&mut self, cwnd: u32, acked: u32, now: &Now) {
        self.acked += acked;
        if self.last_cwnd == cwnd && now.ms.wrapping_sub(self.last_ms) as i32 <= 1_000 / 32 {
            return;
        }
        if self.epoch_ms.is_none() || now.ms != self.last_ms {
            self.last_cwnd = cwnd;
            self.last_ms = now.ms;
            let epoch = match self.epoch_ms {
                Some(epoch) => epoch,
                None => self.start_epoch(cwnd, acked, now),
            };
            self.per = self.curve(cwnd, now.ms.wrapping_sub(epoch));
        }
        if self.reno_friendly {
            let per = ((u64::from(cwnd) * u64::from(RENO_SCALE)) >> 3).max(1) as u32;
            if self.acked > per {
                // Usually one step; a long silence may have left several.
                let steps = (self.acked - 1) / per;
                self.acked -= steps * per;
                self.reno_cwnd += steps;
            }
            if self.reno_cwnd > cwnd {
                self.per = self.per.min(cwnd / (self.reno_cwnd - cwnd));
            }
        }
        // At most half again a round trip.
        self.per = self.per.max(2);
    }

    fn start_epoch(&mut self, cwnd: u32, acked: u32, now: &Now) -> u32 {
        self.acked = acked;
        self.reno_cwnd = cwnd;
        if self.last_max <= cwnd {
            self.k = 0;
            self.origin = cwnd;
        } else {
            let distance = u64::from(self.last_max - cwnd);
            self.k = cube_root((distance << (TIME_BITS * 4)) / C_SCALED);
            self.origin = self.last_max;
        }
        self.epoch_ms = Some(now.ms);
        now.ms
    }

    /// Segments per segment of growth that the cubic function asks for, one least RTT ahead.
    fn curve(&self, cwnd: u32, since_epoch_ms: u32) -> u32 {
        let ahead_ms = u64::from(since_epoch_ms) + u64::from(self.least_rtt_us.div_ceil(1_000));
        let t = (ahead_ms << TIME_BITS) / 1_000;
        let distance = t.abs_diff(u64::from(self.k)).min(1 << 16);
        let delta = (C_SCALED * distance * distance * distance) >> (TIME_BITS * 4);
        let origin = u64::from(self.origin);
        let target =
            if t < u64::from(self.k) { origin.saturating_sub(delta) } else { origin + delta };
        let cwnd = u64::from(cwnd);
        let per = if target > cwnd { cwnd / (target - cwnd) } else { cwnd * 100 };
        // Before the first loss nothing is known of the path: 5 % a round trip at least.
        let per = if self.last_max == 0 { per.min(20) } else { per };
        per.min(u64::from(u32::MAX / 2)) as u32
    }
}

impl Control for Cubic {
    fn reduce(&mut self, window: &Window, _now: &Now) -> u32 {
        let cwnd = window.cwnd;
        self.epoch_ms = None;
        self.last_max = if cwnd < self.last_max && self.fast_convergence {
            scale(cwnd, BETA_SCALE + BETA) / 2
        } else {
            cwnd
        };
        scale(cwnd, BETA).max(2)
    }

    fn grow(&mut self, window: &mut Window, acked: u32, now: &Now) {
        if !window.cwnd_limited {
            return;
        }
        let mut left = acked;
        if window.in_slow_start() {
            left = window.slow_start(self.hystart.allowance(acked, window.paced));
            if left == 0 || window.in_slow_start() {
                return;
            }
        }
        self.update(window.cwnd, left, now);
        window.increase(self.per, left);
    }

    fn on_sample(&mut self, window: &mut Window, sample: &AckSample, now: &Now) {
        let Some(rtt_us) = sample.rtt_us else { return };
        if self.epoch_ms.is_some_and(|epoch| (now.ms.wrapping_sub(epoch) as i32) < DISCARD_MS) {
            return;
        }
        let rtt_us = rtt_us.max(1);
        if self.least_rtt_us == 0 || rtt_us < self.least_rtt_us {
            self.least_rtt_us = rtt_us;
        }
        if window.in_slow_start() {
            self.hystart.update(window, rtt_us, self.least_rtt_us, now);
        }
    }

    fn on_event(&mut self, window: &mut Window, event: Event, now: &Now) {
        // Time without data is no time of the curve (RFC 9438, section 5.8).
        if event == Event::SendStart {
            if let Some(epoch) = self.epoch_ms {
                let idle = now.ms.wrapping_sub(window.last_sent_ms);
                if idle as i32 > 0 {
                    let moved = epoch.wrapping_add(idle);
                    let future = (moved.wrapping_sub(now.ms) as i32) > 0;
                    self.epoch_ms = Some(if future { now.ms } else { moved });
                }
            }
        }
    }

    fn on_phase(&mut self, window: &mut Window, phase: Phase, now: &Now) {
        if phase == Phase::Loss {
            *self = Cubic::unacquainted(self.fast_convergence, self.reno_friendly, self.hystart);
            self.hystart.restart(window, now);
        } else if phase > Phase::Disorder {
            self.hystart.congested();
        }
    }
}

/// `cwnd * beta / 1024`.
#[inline]
fn scale(cwnd: u32, beta: u32) -> u32 {
    (u64::from(cwnd) * u64::from(beta) / u64::from(BETA_SCALE)) as u32
}

/// The integer cube root, rounded down.
fn cube_root(n: u64) -> u32 {
    let mut root = 0u64;
    // One bit a step from the highest that a root of 64 bits can have.
    for bit in (0..22).rev() {
        let candidate = root | 1 << bit;
        if candidate * candidate * candidate <= n {
            root = candidate;
        }
    }
    root as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cube_roots() {
        for n in [0u64, 1, 7, 8, 26, 27, 1_000_000, (1 << 40) / 410 * 300] {
            let root = u64::from(cube_root(n));
            assert!(root.pow(3) <= n && (root + 1).pow(3) > n, "{n}");
        }
    }

    #[test]
    fn k_is_the_time_to_climb_back() {
        // RFC 9438, figure 2: K = cbrt(Wmax (1 - β) / C); 300 segments lost of 1000 give 9.09 s.
        let mut cubic = Cubic::new(&Config::default());
        cubic.last_max = 1_000;
        cubic.start_epoch(700, 1, &Now::default());
        assert!((9_250..9_350).contains(&cubic.k), "{}", cubic.k);
        // At K the curve is at Wmax, far before it well below.
        cubic.least_rtt_us = 0;
        assert!(cubic.curve(995, cubic.k * 1_000 / 1_024) > 150);
    }

    /// Linux's `bictcp_update`: a step of the estimate for each 15/8 of a window that is more than
    /// that, so twice as much is one step.
    #[test]
    fn the_reno_estimate_grows_by_what_exceeds_its_share() {
        for (acked, steps, left) in [(187, 0, 187), (188, 1, 1), (374, 1, 187), (375, 2, 1)] {
            let mut cubic = Cubic::new(&Config::default());
            (cubic.last_cwnd, cubic.reno_cwnd, cubic.epoch_ms) = (99, 50, Some(0));
            cubic.update(100, acked, &Now::default());
            assert_eq!((cubic.reno_cwnd, cubic.acked), (50 + steps, left), "{acked}");
        }
    }

    #[test]
    fn fast_convergence_forgets_some_of_the_maximum() {
        let mut cubic = Cubic::new(&Config::default());
        let mut window = crate::sender::initial_window(&Config::default());
        window.cwnd = 100;
        assert_eq!(cubic.reduce(&window, &Now::default()), 70);
        assert_eq!(cubic.last_max, 100);
        window.cwnd = 80;
        assert_eq!(cubic.reduce(&window, &Now::default()), 56);
        assert_eq!(cubic.last_max, 68);
    }

    fn at(ms: u32) -> Now {
        Now { ms, us: ms.wrapping_mul(1_000), ..Now::default() }
    }

    fn window(cwnd: u32) -> Window {
        let mut window = crate::sender::initial_window(&Config::default());
        (window.cwnd, window.cwnd_limited) = (cwnd, true);
        window
    }

    /// RFC 9438, section 4.2: W(t) = C (t - K)^3 + Wmax one RTT ahead, K = cbrt((Wmax - W) / C).
    #[test]
    fn growth_is_the_cubic_of_the_time_since_the_loss() {
        for (max, cwnd) in [(1_000u32, 700u32), (100, 70), (2_000, 1_400), (50, 35), (60, 60)] {
            for rtt_ms in [0u32, 10, 200] {
                let mut cubic = Cubic::new(&Config::default());
                (cubic.last_max, cubic.least_rtt_us) = (max, rtt_ms * 1_000);
                cubic.start_epoch(cwnd, 1, &at(5_000));
                let k = (f64::from(max - cwnd) / 0.4).cbrt();
                assert!(
                    (f64::from(cubic.k) / 1_024.0 - k).abs() < 0.01 + k / 1_000.0,
                    "{}",
                    cubic.k
                );
                for since_ms in (0..20_000).step_by(250) {
                    let t = f64::from(since_ms + rtt_ms) / 1_000.0;
                    let target = 0.4 * (t - k).powi(3) + f64::from(max);
                    // What integers cut off, and C of 410/1024.
                    let off = 1.5 + (target - f64::from(max)).abs() / 300.0;
                    for now in [cwnd, max, max * 3 / 2] {
                        let w = f64::from(now);
                        let per =
                            |target: f64| if target > w { w / (target - w) } else { 100.0 * w };
                        let got = f64::from(cubic.curve(now, since_ms));
                        let bounds = per(target + off).floor()..=per(target - off).min(100.0 * w);
                        assert!(
                            bounds.contains(&got),
                            "{max} {now} {since_ms}: {got} of {bounds:?}"
                        );
                    }
                }
            }
        }
    }

    /// Linux's bound while no loss is known: 5 % a round trip at least.
    #[test]
    fn before_the_first_loss_growth_does_not_stand_still() {
        let mut cubic = Cubic::new(&Config::default());
        cubic.start_epoch(1_000, 1, &at(0));
        assert_eq!((cubic.k, cubic.origin), (0, 1_000));
        assert_eq!(cubic.curve(1_000, 100), 20);
        cubic.last_max = 1_000;
        assert_eq!(cubic.curve(1_000, 100), 100_000);
    }

    /// RFC 9438, section 4.3: the estimate grows by 3 (1 - β) / (1 + β) = 0.53 segments a window.
    #[test]
    fn below_renos_window_renos_is_followed() {
        for friendly in [true, false] {
            let mut cubic = Cubic::new(&Config { reno_friendly: friendly, ..Config::default() });
            cubic.last_max = 20;
            for ms in 1..=400 {
                cubic.update(20, 2, &at(ms));
            }
            let grown = 800.0 * 3.0 * 0.3 / 1.7 / 20.0;
            let estimate = f64::from(cubic.reno_cwnd) - 20.0;
            if friendly {
                assert!((estimate - grown).abs() <= 1.5, "{estimate} of {grown}");
                // As many ACKs for a segment as bring the window there within one round trip.
                cubic.update(36, 0, &at(401));
                assert_eq!(cubic.per, 36 / (cubic.reno_cwnd - 36));
                cubic.update(cubic.reno_cwnd - 1, 0, &at(402));
                assert!(cubic.per > 36, "{}", cubic.per);
            } else {
                assert_eq!(estimate, 0.0);
            }
        }
    }

    /// Linux: once a millisecond at most, and every 1/32 s while the window stands still.
    #[test]
    fn the_curve_is_looked_at_now_and_then() {
        let mut cubic = Cubic::new(&Config { reno_friendly: false, ..Config::default() });
        cubic.last_max = 1_000;
        let mut looked = |cwnd, ms| {
            cubic.per = 77_777;
            cubic.update(cwnd, 1, &at(ms));
            cubic.per != 77_777
        };
        assert!(looked(700, 5_000));
        assert!(!looked(700, 5_031));
        assert!(looked(700, 5_032));
        assert!(!looked(701, 5_032));
        assert!(looked(701, 5_033));
        assert!(looked(702, 5_034));
    }

    #[test]
    fn growth_is_half_again_a_round_trip_at_most() {
        let mut cubic = Cubic::new(&Config::default());
        cubic.last_max = 10;
        cubic.update(10, 1, &at(0));
        cubic.update(11, 1, &at(60_000));
        assert_eq!(cubic.per, 2);
    }

    #[test]
    fn slow_start_counts_each_segment_up_to_the_threshold() {
        let mut cubic = Cubic::new(&Config::default());
        let mut open = window(10);
        cubic.grow(&mut open, 7, &at(1));
        assert_eq!((open.cwnd, cubic.epoch_ms), (17, None));
        open.ssthresh = 20;
        cubic.grow(&mut open, 3, &at(2));
        assert_eq!((open.cwnd, cubic.epoch_ms), (20, None));
        open.ssthresh = 24;
        cubic.grow(&mut open, 10, &at(3));
        assert_eq!((open.cwnd, open.count, cubic.epoch_ms), (24, 6, Some(3)));
        open.cwnd_limited = false;
        cubic.grow(&mut open, 100, &at(4));
        assert_eq!((open.cwnd, open.count), (24, 6));
    }

    /// RFC 9438, sections 4.6 and 4.7: to 0.7, two segments at least; Wmax to 0.85 if it fell.
    #[test]
    fn a_loss_keeps_seven_tenths() {
        let mut cubic = Cubic::new(&Config::default());
        for (cwnd, kept, max) in
            [(1_000, 700, 1_000), (1_000, 700, 1_000), (999, 699, 849), (2, 2, 1)]
        {
            cubic.epoch_ms = Some(1);
            assert_eq!(cubic.reduce(&window(cwnd), &at(2)), kept);
            assert_eq!((cubic.last_max, cubic.epoch_ms), (max, None));
        }
        cubic = Cubic::new(&Config { fast_convergence: false, ..Config::default() });
        cubic.last_max = 100;
        cubic.reduce(&window(50), &at(0));
        assert_eq!(cubic.last_max, 50);
    }

    /// Linux: what was queued before the reduction is still in the RTTs of the first second.
    #[test]
    fn the_least_rtt_is_measured_away_from_reductions() {
        let mut cubic = Cubic::new(&Config::default());
        let mut window = window(100);
        window.ssthresh = 50;
        let rtt = |us| AckSample { rtt_us: Some(us), ..AckSample::default() };
        for (ms, us, least) in [(10, 40_000, 40_000), (20, 50_000, 40_000), (30, 30_000, 30_000)] {
            cubic.on_sample(&mut window, &rtt(us), &at(ms));
            assert_eq!(cubic.least_rtt_us, least);
        }
        cubic.epoch_ms = Some(1_000);
        cubic.on_sample(&mut window, &rtt(20_000), &at(1_999));
        cubic.on_sample(&mut window, &AckSample::default(), &at(2_000));
        assert_eq!(cubic.least_rtt_us, 30_000);
        cubic.on_sample(&mut window, &rtt(20_000), &at(2_000));
        assert_eq!(cubic.least_rtt_us, 20_000);
        cubic.on_sample(&mut window, &rtt(0), &at(2_001));
        assert_eq!(cubic.least_rtt_us, 1);
    }

    /// RFC 9438, section 5.8.
    #[test]
    fn idle_time_is_no_time_of_the_curve() {
        let mut cubic = Cubic::new(&Config::default());
        let mut window = window(100);
        window.last_sent_ms = 4_000;
        for (epoch, now, moved) in
            [(1_000, 7_000, 4_000), (1_000, 3_000, 1_000), (3_900, 4_300, 4_200)]
        {
            cubic.epoch_ms = Some(epoch);
            cubic.on_event(&mut window, Event::ReductionDone, &at(now));
            assert_eq!(cubic.epoch_ms, Some(epoch));
            cubic.on_event(&mut window, Event::SendStart, &at(now));
            assert_eq!(cubic.epoch_ms, Some(moved));
        }
        // Never later than now.
        cubic.epoch_ms = Some(6_000);
        cubic.on_event(&mut window, Event::SendStart, &at(5_000));
        assert_eq!(cubic.epoch_ms, Some(5_000));
    }

    /// RFC 9438, section 4.8, and Linux's `bictcp_reset`: after a timeout nothing of the curve is
    /// known any more.
    #[test]
    fn a_timeout_forgets_the_curve() {
        for phase in [Phase::Loss, Phase::Recovery] {
            let mut cubic = Cubic {
                per: 1,
                last_max: 2,
                last_cwnd: 3,
                last_ms: 4,
                epoch_ms: Some(5),
                origin: 6,
                k: 7,
                least_rtt_us: 8,
                acked: 9,
                reno_cwnd: 10,
                ..Cubic::new(&Config { fast_convergence: false, ..Config::default() })
            };
            let mut window = crate::sender::initial_window(&Config::default());
            cubic.on_phase(&mut window, phase, &Now::default());
            let curve = (cubic.origin, cubic.k, cubic.per, cubic.last_max, cubic.reno_cwnd);
            let rest = (cubic.last_cwnd, cubic.last_ms, cubic.least_rtt_us, cubic.acked);
            if phase == Phase::Loss {
                assert_eq!((curve, rest), ((0, 0, 0, 0, 0), (0, 0, 0, 0)));
                assert_eq!(cubic.epoch_ms, None);
            } else {
                assert_eq!((curve, rest), ((6, 7, 1, 2, 10), (3, 4, 8, 9)));
                assert_eq!(cubic.epoch_ms, Some(5));
            }
            assert!(!cubic.fast_convergence);
        }
    }
}
