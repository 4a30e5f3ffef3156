//! Data Center TCP: a window reduced in proportion to the marks (RFC 8257, as Linux has it).
//!
//! Once a round trip the share of marked segments is averaged into `alpha`; a mark then reduces the
//! window by half of alpha. Losses halve it as usual, growth is Reno's. The receiver must echo
//! every mark (`EcnMode::Accurate`).

use super::{reno, Control, Event, Phase, Window};
use crate::clock::Now;

/// Alpha of one: every segment was marked.
const ONE: u32 = 1 << SHARE_BITS;
/// Bits of alpha.
const SHARE_BITS: u32 = 10;
/// Weight of a new round trip: 1/16 (section 4.2).
const GAIN_SHIFT: u32 = 4;

/// State of the control.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dctcp {
    /// Share of marked segments, in 1/1024. Starts at one: the first mark halves the window.
    alpha: u32,
    delivered: u32,
    delivered_ce: u32,
    /// The present round trip ends when this is acknowledged.
    round_end: u64,
    loss_cwnd: u32,
}

impl Dctcp {
    pub(crate) fn new() -> Dctcp {
        Dctcp { alpha: ONE, delivered: 0, delivered_ce: 0, round_end: 0, loss_cwnd: 0 }
    }

    fn react_to_loss(&mut self, window: &mut Window) {
        self.loss_cwnd = window.cwnd;
        window.ssthresh = (window.cwnd / 2).max(2);
    }
}

impl Control for Dctcp {
    fn reduce(&mut self, window: &Window, _now: &Now) -> u32 {
        self.loss_cwnd = window.cwnd;
        let cut = (u64::from(window.cwnd) * u64::from(self.alpha)) >> (SHARE_BITS + 1);
        (window.cwnd - cut as u32).max(2)
    }

    fn grow(&mut self, window: &mut Window, acked: u32, _now: &Now) {
        reno::grow(window, acked);
    }

    fn on_ack(&mut self, window: &mut Window, bytes: u64, _echo: bool) {
        if window.una + bytes < self.round_end {
            return;
        }
        let marked = window.delivered_ce.wrapping_sub(self.delivered_ce);
        let delivered = window.delivered.wrapping_sub(self.delivered);
        let decay = match self.alpha >> GAIN_SHIFT {
            // Too small for the shift: let it vanish.
            0 => self.alpha,
            decay => decay,
        };
        self.alpha -= decay;
        if marked > 0 {
            let share =
                (u64::from(marked) << (SHARE_BITS - GAIN_SHIFT)) / u64::from(delivered.max(1));
            self.alpha = (self.alpha + share as u32).min(ONE);
        }
        self.round_end = window.nxt;
        self.delivered = window.delivered;
        self.delivered_ce = window.delivered_ce;
    }

    fn on_phase(&mut self, window: &mut Window, phase: Phase, _now: &Now) {
        if phase == Phase::Recovery && window.phase != Phase::Recovery {
            self.react_to_loss(window);
        }
    }

    fn on_event(&mut self, window: &mut Window, event: Event, _now: &Now) {
        if event == Event::Timeout {
            self.react_to_loss(window);
        }
    }

    fn undo(&mut self, window: &Window) -> u32 {
        window.cwnd.max(self.loss_cwnd)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alpha_follows_the_share_of_marks() {
        let mut control = Dctcp::new();
        let mut window = crate::sender::initial_window(&crate::Config::default());
        window.cwnd = 100;
        for round in 1..200u32 {
            window.delivered = round * 100;
            window.delivered_ce = round * 20;
            window.una = u64::from(round) * 100;
            window.nxt = window.una + 100;
            control.on_ack(&mut window, 0, true);
        }
        // A fifth is marked: 205 of 1024, less what the shifts cut off.
        assert!((180..=210).contains(&control.alpha), "{}", control.alpha);
        let kept = control.reduce(&window, &Now::default());
        assert!((89..=92).contains(&kept), "{kept}");
    }

    /// The paper's formulas (Alizadeh et al. 2010, section 3.1), round by round:
    /// α ← (1 - g) α + g F with g = 1/16, and a marked window becomes W (1 - α/2).
    #[test]
    fn alpha_and_the_cut_are_those_of_the_paper() {
        let mut control = Dctcp::new();
        let mut window = crate::sender::initial_window(&crate::Config::default());
        window.cwnd = 1_000;
        let mut alpha = 1.0f64;
        for (round, marked) in (1u32..).zip([100, 0, 0, 50, 0, 100, 10, 0, 0, 0, 25, 3, 0, 100]) {
            window.delivered += 100;
            window.delivered_ce += marked;
            window.una = u64::from(round) * 100;
            window.nxt = window.una + 100;
            control.on_ack(&mut window, 0, marked > 0);
            alpha += (f64::from(marked) / 100.0 - alpha) / 16.0;
            let ours = f64::from(control.alpha) / f64::from(ONE);
            // Each round's two shifts cut off less than two units of 1/1024.
            assert!((ours - alpha).abs() < 0.02, "round {round}: {ours} of {alpha}");
            let kept = f64::from(control.reduce(&window, &Now::default()));
            let expected = 1_000.0 * (1.0 - alpha / 2.0);
            assert!((kept - expected).abs() < 12.0, "round {round}: {kept} of {expected}");
        }
        // All marked: a halving, as for a loss.
        control.alpha = ONE;
        assert_eq!(control.reduce(&window, &Now::default()), 500);
    }

    #[test]
    fn alpha_moves_once_a_round_trip() {
        let mut control = Dctcp::new();
        let mut window = crate::sender::initial_window(&crate::Config::default());
        (window.una, window.nxt, window.delivered) = (100, 200, 100);
        control.on_ack(&mut window, 0, false);
        let after_one = control.alpha;
        assert_eq!(after_one, ONE - ONE / 16);
        for una in 101..200 {
            (window.una, window.delivered) = (una, una as u32);
            control.on_ack(&mut window, 0, false);
        }
        assert_eq!(control.alpha, after_one);
    }

    /// RFC 8257, section 3.5: losses are answered as ever; undone, the window is what it was.
    #[test]
    fn losses_halve_whatever_alpha_is() {
        let now = Now::default();
        let mut window = crate::sender::initial_window(&crate::Config::default());
        for alpha in [0, ONE / 4, ONE] {
            let mut control = Dctcp { alpha, ..Dctcp::new() };
            (window.cwnd, window.ssthresh, window.phase) = (100, 80, Phase::Open);
            control.on_phase(&mut window, Phase::Cwr, &now);
            control.on_event(&mut window, Event::SendStart, &now);
            assert_eq!(window.ssthresh, 80);
            control.on_phase(&mut window, Phase::Recovery, &now);
            assert_eq!(window.ssthresh, 50);
            window.cwnd = 60;
            assert_eq!(control.undo(&window), 100);
            // The same recovery again is no other loss.
            window.phase = Phase::Recovery;
            control.on_phase(&mut window, Phase::Recovery, &now);
            assert_eq!(window.ssthresh, 50);
            control.on_event(&mut window, Event::Timeout, &now);
            assert_eq!((window.ssthresh, control.undo(&window)), (30, 60));
            window.cwnd = 3;
            control.on_event(&mut window, Event::Timeout, &now);
            assert_eq!(window.ssthresh, 2);
            assert!(control.reduce(&window, &now) >= 2);
            assert_eq!(control.undo(&window), 3);
        }
    }

    #[test]
    fn without_marks_alpha_vanishes() {
        let mut control = Dctcp::new();
        let mut window = crate::sender::initial_window(&crate::Config::default());
        for _ in 0..100 {
            control.on_ack(&mut window, 0, false);
        }
        assert_eq!(control.alpha, 0);
        // And rises with the first mark: 64 of 1024 a round, if all are marked.
        (window.delivered, window.delivered_ce) = (10, 10);
        control.on_ack(&mut window, 0, true);
        assert_eq!(control.alpha, 64);
    }

    #[test]
    fn grows_as_reno_does() {
        let mut control = Dctcp::new();
        let mut window = crate::sender::initial_window(&crate::Config::default());
        (window.cwnd, window.cwnd_limited) = (10, true);
        control.grow(&mut window, 4, &Now::default());
        assert_eq!(window.cwnd, 14);
    }
}
