//! LEDBAT: fills what others leave, and yields when the queue grows (RFC 6817).
//!
//! The one-way delay is the difference of the two timestamps of an acknowledgement. Its least value
//! of the last ten minutes is the path's own (base); what the last few samples are above that is
//! the queue. The window grows in proportion to how far the queue is below the target, and never
//! faster than Reno's. It shrinks in proportion to how far the queue is above. A loss halves it.
//! What the application or the receiver leaves unused of it is cut off.
//!
//! Slow start, which the RFC allows, ends early: at half of the target, before it can do harm.

use super::{AckSample, Control, Phase, Window};
use crate::clock::Now;
use crate::config::Config;

/// Minutes of base delay that are remembered (`BASE_HISTORY`).
const BASE_HISTORY: usize = 10;
/// Milliseconds per slot of it.
const SLOT_MS: u32 = 60_000;
/// Samples of which the least is the current delay (`CURRENT_FILTER`).
const CURRENT_FILTER: usize = 4;
/// Segments by which the window may exceed what is in flight (`ALLOWED_INCREASE`).
const ALLOWED_INCREASE: u32 = 1;
/// Least window in segments (`MIN_CWND`).
const MIN_CWND: u32 = 2;
/// One segment of growth, in the unit of `credit`.
const ONE: i64 = 1 << 20;

/// State of the control.
#[derive(Clone, Debug)]
pub(crate) struct Ledbat {
    target_ms: i64,
    base: [u32; BASE_HISTORY],
    slot_start_ms: u32,
    current: [u32; CURRENT_FILTER],
    next: usize,
    any: bool,
    /// Growth (or shrinking) that has not yet made a whole segment.
    credit: i64,
}

impl Ledbat {
    pub(crate) fn new(config: &Config) -> Ledbat {
        Ledbat {
            target_ms: (config.ledbat_target.as_micros() as i64 / 1_000).max(1),
            base: [u32::MAX; BASE_HISTORY],
            slot_start_ms: 0,
            current: [u32::MAX; CURRENT_FILTER],
            next: 0,
            any: false,
            credit: 0,
        }
    }

    fn update_delays(&mut self, delay_ms: u32, now: &Now) {
        if !self.any {
            self.any = true;
            self.slot_start_ms = now.ms;
        }
        let slots = now.ms.wrapping_sub(self.slot_start_ms) / SLOT_MS;
        if slots > 0 {
            let shift = (slots as usize).min(BASE_HISTORY);
            self.base.copy_within(..BASE_HISTORY - shift, shift);
            self.base[..shift].fill(u32::MAX);
            self.slot_start_ms = self.slot_start_ms.wrapping_add(slots * SLOT_MS);
        }
        self.base[0] = self.base[0].min(delay_ms);
        self.current[self.next] = delay_ms;
        self.next = (self.next + 1) % CURRENT_FILTER;
    }

    /// Delay in the queue in ms; zero while nothing is known.
    fn queuing_ms(&self) -> i64 {
        if !self.any {
            return 0;
        }
        let least = |values: &[u32]| values.iter().copied().min().unwrap_or(u32::MAX);
        i64::from(least(&self.current)) - i64::from(least(&self.base))
    }
}

impl Control for Ledbat {
    fn reduce(&mut self, window: &Window, _now: &Now) -> u32 {
        self.credit = 0;
        (window.cwnd / 2).max(MIN_CWND)
    }

    fn grow(&mut self, window: &mut Window, acked: u32, _now: &Now) {
        let off_target = self.target_ms - self.queuing_ms();
        let mut left = acked;
        if window.in_slow_start() {
            if off_target > self.target_ms / 2 {
                if window.cwnd_limited {
                    left = window.slow_start(acked);
                }
                if left == 0 || window.in_slow_start() {
                    return;
                }
            } else {
                window.ssthresh = window.cwnd;
            }
        }
        // Never faster than Reno, however far the target.
        let share = off_target.min(self.target_ms) * ONE / self.target_ms;
        self.credit += share * i64::from(left) / i64::from(window.cwnd.max(1));
        let whole = self.credit.div_euclid(ONE);
        self.credit = self.credit.rem_euclid(ONE);
        let wanted = (i64::from(window.cwnd) + whole).max(i64::from(MIN_CWND)) as u32;
        let flight = window.in_flight + acked;
        window.cwnd = wanted.min(flight + ALLOWED_INCREASE).max(MIN_CWND);
    }

    fn on_sample(&mut self, _window: &mut Window, sample: &AckSample, now: &Now) {
        if let Some(delay_ms) = sample.one_way_ms {
            self.update_delays(delay_ms, now);
        }
    }

    fn on_phase(&mut self, _window: &mut Window, phase: Phase, _now: &Now) {
        if phase == Phase::Loss {
            self.credit = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setup() -> (Ledbat, Window) {
        let mut window = crate::sender::initial_window(&Config::default());
        window.cwnd = 100;
        window.ssthresh = 50;
        window.in_flight = 99;
        window.cwnd_limited = true;
        (Ledbat::new(&Config::default()), window)
    }

    #[test]
    fn grows_below_the_target_and_shrinks_above() {
        let (mut control, mut window) = setup();
        let sample = |delay| AckSample { one_way_ms: Some(delay), ..AckSample::default() };
        control.on_sample(&mut window, &sample(20), &Now::default());
        for _ in 0..100 {
            control.grow(&mut window, 1, &Now::default());
        }
        assert_eq!(window.cwnd, 100);
        control.grow(&mut window, 1, &Now::default());
        assert_eq!(window.cwnd, 101);
        for _ in 0..4 {
            control.on_sample(&mut window, &sample(220), &Now::default());
        }
        for _ in 0..90 {
            control.grow(&mut window, 1, &Now::default());
        }
        assert_eq!(window.cwnd, 100);
    }

    /// RFC 6817, section 2.4.2: `cwnd += GAIN * off_target * bytes_newly_acked * MSS / cwnd` with
    /// `off_target = (TARGET - queuing_delay) / TARGET`. Growth in a window of ACKs is linear: one
    /// segment at an empty queue, none at 100 ms.
    #[test]
    fn growth_is_linear_in_the_distance_to_the_target() {
        for (queue_ms, growth) in [(0u32, 10i64), (50, 5), (75, 2), (100, 0), (150, -5), (200, -10)]
        {
            let (mut control, mut window) = setup();
            window.cwnd = 1_000;
            window.in_flight = 2_000;
            control.update_delays(20, &Now::default());
            for _ in 0..CURRENT_FILTER {
                control.update_delays(20 + queue_ms, &Now::default());
            }
            for _ in 0..10_000 {
                control.grow(&mut window, 1, &Now::default());
            }
            let grown = i64::from(window.cwnd) - 1_000;
            assert!((grown - growth).abs() <= 1, "{queue_ms} ms: {grown}, not {growth}");
        }
    }

    /// RFC 6817, section 2.4.2: a window that the application does not fill is not grown by it.
    #[test]
    fn slow_start_waits_for_who_does_not_fill_the_window() {
        let (mut control, mut window) = setup();
        (window.ssthresh, window.cwnd_limited) = (200, false);
        (0..500).for_each(|_| control.grow(&mut window, 10, &Now::default()));
        assert_eq!(window.cwnd, 100);
        window.cwnd_limited = true;
        control.grow(&mut window, 10, &Now::default());
        assert_eq!(window.cwnd, 110);
    }

    #[test]
    fn a_loss_halves() {
        let (mut control, window) = setup();
        assert_eq!(control.reduce(&window, &Now::default()), 50);
    }

    #[test]
    fn the_base_is_forgotten_after_ten_minutes() {
        let (mut control, _) = setup();
        control.update_delays(10, &Now::default());
        for minute in 1..=9 {
            control.update_delays(30, &Now { ms: minute * SLOT_MS, ..Now::default() });
        }
        assert_eq!(control.queuing_ms(), 20);
        control.update_delays(30, &Now { ms: 10 * SLOT_MS, ..Now::default() });
        assert_eq!(control.queuing_ms(), 0);
    }

    /// RFC 6817 leaves slow start to the sender; here it ends at half of the target.
    #[test]
    fn slow_start_ends_at_half_of_the_target() {
        for (queue_ms, slow_start) in [(0, true), (49, true), (50, false), (90, false)] {
            let (mut control, mut window) = setup();
            (window.ssthresh, window.in_flight) = (1_000, 1_000);
            control.update_delays(20, &Now::default());
            (0..4).for_each(|_| control.update_delays(20 + queue_ms, &Now::default()));
            control.grow(&mut window, 10, &Now::default());
            assert_eq!(window.in_slow_start(), slow_start, "{queue_ms}");
            assert_eq!(window.cwnd, if slow_start { 110 } else { 100 }, "{queue_ms}");
        }
        let (mut control, mut window) = setup();
        (window.ssthresh, window.cwnd_limited) = (1_000, false);
        control.grow(&mut window, 10, &Now::default());
        assert_eq!(window.cwnd, 100);
        // What the threshold leaves counts for the steady state: a whole segment of 102.
        (window.ssthresh, window.cwnd_limited, window.in_flight) = (102, true, 1_000);
        control.grow(&mut window, 104, &Now::default());
        assert_eq!(window.cwnd, 103);
    }

    /// Section 2.4.2: `ALLOWED_INCREASE` over what is in flight, and two segments at least.
    #[test]
    fn the_window_stays_near_what_is_used() {
        // Growth of five segments is due.
        for (in_flight, cwnd) in
            [(40, 42), (97, 99), (98, 100), (99, 101), (102, 104), (103, 105), (200, 105)]
        {
            let (mut control, mut window) = setup();
            control.credit = 5 * ONE;
            window.in_flight = in_flight;
            control.grow(&mut window, 1, &Now::default());
            assert_eq!(window.cwnd, cwnd, "{in_flight}");
        }
        let (mut control, mut window) = setup();
        control.update_delays(0, &Now::default());
        (0..4).for_each(|_| control.update_delays(9_000, &Now::default()));
        control.grow(&mut window, 500, &Now::default());
        assert_eq!(window.cwnd, 2);
        assert_eq!(control.reduce(&window, &Now::default()), 2);
    }

    #[test]
    fn the_delay_is_the_least_of_the_last_four() {
        let (mut control, mut window) = setup();
        assert_eq!(control.queuing_ms(), 0);
        for (delay, queue) in
            [(20, 0), (90, 0), (80, 0), (70, 0), (60, 40), (95, 40), (95, 40), (95, 40), (95, 75)]
        {
            control.update_delays(delay, &Now::default());
            assert_eq!(control.queuing_ms(), queue, "{delay}");
        }
        control.on_sample(&mut window, &AckSample::default(), &Now::default());
        assert_eq!(control.queuing_ms(), 75);
        // A loss and a timeout begin the count of a segment's parts anew.
        control.credit = 9;
        control.on_phase(&mut window, Phase::Recovery, &Now::default());
        assert_eq!(control.credit, 9);
        control.on_phase(&mut window, Phase::Loss, &Now::default());
        assert_eq!(control.credit, 0);
        control.credit = 9;
        control.reduce(&window, &Now::default());
        assert_eq!(control.credit, 0);
    }

    /// Minutes count from the first sample; those without one hold nothing.
    #[test]
    fn each_minute_has_its_own_base() {
        let (mut control, _) = setup();
        let at = |ms| Now { ms, ..Now::default() };
        control.update_delays(10, &at(30_000));
        control.update_delays(40, &at(89_999));
        assert_eq!(control.base[..2], [10, u32::MAX]);
        control.update_delays(40, &at(90_000));
        assert_eq!(control.base[..3], [40, 10, u32::MAX]);
        control.update_delays(30, &at(220_000));
        assert_eq!(control.base[..5], [30, u32::MAX, 40, 10, u32::MAX]);
        control.update_delays(50, &at(269_999));
        assert_eq!(control.base[0], 30);
        control.update_delays(50, &at(270_000));
        assert_eq!(control.base[..2], [50, 30]);
        control.update_delays(60, &at(90_000_000));
        assert_eq!(
            control.base,
            [
                60,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX,
                u32::MAX
            ]
        );
    }
}
