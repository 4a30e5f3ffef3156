//! COBALT: CoDel, and BLUE for flows that do not listen to it.
//!
//! CoDel (RFC 8289) signals, by CE or by dropping, while packets have waited longer than `target`.
//! The signals come closer together as 1/sqrt(count). COBALT's CoDel winds `count` down again in
//! the same steps instead of jumping, whenever a signal falls due that is not needed. BLUE (Feng et
//! al. 1999) runs beside it with a drop probability. Each overflow of the buffer raises that by
//! 1/256, each time the queue is found empty lowers it by 1/4096, at most once a target. BLUE never
//! marks: it is there for senders that ignore marks. (Facts A.6.)
//!
//! Caller's rule: [`CobaltState::passes`] for each packet taken from the queue, and
//! [`CobaltState::decide`] if it does not pass. [`CobaltState::queue_empty`] when there was none to
//! take. [`CobaltState::queue_full`] when a packet of this queue had to go for room.
//!
//! Work is bounded: each step down of `count` is one of the call's budget, and when that runs short
//! the rest is computed at once.

use super::inverse_sqrt;
use crate::packet::Packet;
use crate::random::Random;
use crate::rate::{Arithmetic, Release};
use crate::steps::Budget;
use crate::time::{Span, Time};
use crate::wide::quotient;

/// Settings of one tier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CobaltParams {
    /// Standing delay that is accepted.
    pub target: Span,
    /// A worst-case round-trip time: how long senders take to answer a signal.
    pub interval: Span,
    /// Time to send one packet of full size: no queue is shorter than a few of these.
    pub mtu_time: Span,
    /// Rounding of the spacing of signals.
    pub arithmetic: Arithmetic,
}

impl CobaltParams {
    /// True if `sojourn` is too long.
    #[inline(always)]
    fn is_over_target(&self, sojourn: Span, bulk_flows: u32) -> bool {
        sojourn > self.target
            && sojourn > self.mtu_time * (2 * u64::from(bulk_flows))
            && sojourn > self.mtu_time * 4
    }
}

/// State of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CobaltState {
    /// Time at which the next signal is due; while `count` is zero, that until which the state is
    /// kept.
    drop_next: Time,
    /// Time at which BLUE's drop probability last changed.
    blue_timer: Time,
    /// Signals sent in this spell of congestion.
    count: u32,
    /// 1/sqrt(count), Q0.32. Zero until the first spell, which therefore begins without a grace
    /// interval.
    rec_inv_sqrt: u32,
    /// BLUE's drop probability, Q0.32.
    p_drop: u32,
    /// The queue is above target.
    dropping: bool,
}

/// Decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CobaltVerdict {
    /// Send it as it is.
    Pass,
    /// Send it; CE has been set.
    Marked,
    /// CoDel wants it dropped.
    Congested,
    /// BLUE wants it dropped; CoDel may have marked it before.
    Flood {
        /// CE has been set all the same.
        marked: bool,
    },
}

impl CobaltVerdict {
    /// True if the packet is to be dropped.
    #[inline(always)]
    pub fn is_drop(self) -> bool {
        matches!(self, CobaltVerdict::Congested | CobaltVerdict::Flood { .. })
    }

    /// True if CE has been set.
    #[inline(always)]
    pub fn is_marked(self) -> bool {
        matches!(self, CobaltVerdict::Marked | CobaltVerdict::Flood { marked: true })
    }
}

/// Result of finding the queue empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Emptied {
    /// [`CobaltState::is_at_rest`] now.
    pub at_rest: bool,
    /// BLUE, which had been active, is no longer.
    pub tamed: bool,
}

/// BLUE's step up at an overflow: 1/256.
const P_INC: u32 = 1 << 24;
/// BLUE's step down at an empty queue: 1/4096.
const P_DEC: u32 = 1 << 20;

impl CobaltState {
    /// A queue that was never congested.
    pub const NEW: CobaltState = CobaltState {
        drop_next: Time::ZERO,
        blue_timer: Time::ZERO,
        count: 0,
        rec_inv_sqrt: 0,
        p_drop: 0,
        dropping: false,
    };

    /// The common case for a packet that leaves the queue at `now` after `sojourn`: true if nothing
    /// was ever wrong here and nothing is now. Else nothing is done, and [`CobaltState::decide`]
    /// must follow. `bulk_flows` raises the target where the queue stands behind the bottleneck
    /// (`ingress`): each flow needs two packets under way; zero elsewhere.
    #[inline(always)]
    pub fn passes(
        &mut self,
        params: &CobaltParams,
        sojourn: Span,
        now: Time,
        bulk_flows: u32,
    ) -> bool {
        if self.count | self.p_drop != 0 || params.is_over_target(sojourn, bulk_flows) {
            return false;
        }
        // `dropping` is false while `count` is zero.
        self.drop_next = now + params.interval;
        true
    }

    /// Decides about a packet that does not pass at once, and marks it if marking is enough.
    #[inline(never)]
    pub fn decide(
        &mut self,
        params: &CobaltParams,
        packet: &mut Packet,
        now: Time,
        bulk_flows: u32,
        random: &mut Random,
        budget: &Budget,
    ) -> CobaltVerdict {
        let over_target = params.is_over_target(now.since(packet.enqueued), bulk_flows);
        let mut behind = now > self.drop_next;
        let due = self.count > 0 && now >= self.drop_next;
        let mut verdict = CobaltVerdict::Pass;

        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = now + self.spacing(params);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }

        if due && self.dropping {
            verdict =
                if packet.mark_ce() { CobaltVerdict::Marked } else { CobaltVerdict::Congested };
            self.count = self.count.saturating_add(1);
            self.reschedule(params);
            behind = now > self.drop_next;
        } else if due {
            self.step_down(params, now, budget);
            behind = false;
        }

        // BLUE draws for every packet, before Linux 7.3 also for one that is lost already.
        let is_lost = verdict == CobaltVerdict::Congested;
        let draws = self.p_drop != 0 && !(is_lost && params.arithmetic.is_since(Release::V7_3));
        if draws && random.u32() < self.p_drop && !is_lost {
            verdict = CobaltVerdict::Flood { marked: verdict == CobaltVerdict::Marked };
        }

        if self.count == 0 {
            self.drop_next = now + params.interval;
        } else if behind && !verdict.is_drop() {
            self.drop_next = now;
        }
        verdict
    }

    /// Takes the steps down that are due by `now`, one by one while there is budget. Linux takes
    /// all of them so, however many.
    #[inline(never)]
    fn step_down(&mut self, params: &CobaltParams, now: Time, budget: &Budget) {
        let is_bounded = params.arithmetic == Arithmetic::Exact;
        while self.count > 0 && now >= self.drop_next {
            if is_bounded && !budget.spend_at_ease() {
                return self.wind_down_to(params, now);
            }
            self.count -= 1;
            self.reschedule(params);
        }
    }

    /// Takes the steps down that are due by `now` all at once. In a time t, steps of
    /// interval / sqrt(count) lower the root of `count` by t / (2 * interval).
    #[cold]
    fn wind_down_to(&mut self, params: &CobaltParams, now: Time) {
        /// Binary places of roots.
        const PLACES: u32 = 16;
        let late = u128::from(now.since(self.drop_next).0) << PLACES;
        let fall = quotient(late, params.interval.0.max(1).saturating_mul(2));
        let root = (u64::from(self.count) << (2 * PLACES)).isqrt();
        let lower = u128::from(root).saturating_sub(fall);
        self.count = ((lower * lower) >> (2 * PLACES)) as u32;
        self.rec_inv_sqrt = inverse_sqrt::next(Arithmetic::Exact, 0, self.count);
        self.drop_next = now + self.spacing(params);
    }

    /// Signals in this spell, and when the next one is due, if the queue is above target.
    pub fn spell(&self) -> (u32, Option<Time>) {
        (self.count, self.dropping.then_some(self.drop_next))
    }

    /// BLUE's drop probability, Q0.32, and when it last changed.
    pub fn blue(&self) -> (u32, Time) {
        (self.p_drop, self.blue_timer)
    }

    /// The buffer overflowed and this queue lost a packet. True if BLUE has thereby become active.
    pub fn queue_full(&mut self, params: &CobaltParams, now: Time) -> bool {
        let mut awakened = false;
        if now.since(self.blue_timer) > params.target {
            awakened = self.p_drop == 0;
            self.p_drop = self.p_drop.saturating_add(P_INC);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        awakened
    }

    /// The queue was found empty.
    #[inline(always)]
    pub fn queue_empty(&mut self, params: &CobaltParams, now: Time) -> Emptied {
        if self.count | self.p_drop != 0 {
            return self.wind_down(params, now);
        }
        Emptied { at_rest: self.is_at_rest(now), tamed: false }
    }

    #[inline(never)]
    fn wind_down(&mut self, params: &CobaltParams, now: Time) -> Emptied {
        self.dropping = false;
        let mut tamed = false;
        if self.p_drop != 0 && now.since(self.blue_timer) > params.target {
            self.p_drop = self.p_drop.saturating_sub(P_DEC);
            self.blue_timer = now;
            tamed = self.p_drop == 0;
        }
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.reschedule(params);
        }
        Emptied { at_rest: self.is_at_rest(now), tamed }
    }

    /// True once nothing would be lost by forgetting this state.
    #[inline(always)]
    pub fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop | self.count == 0 && now >= self.drop_next
    }

    /// True while BLUE drops: flows here have not answered other signals.
    pub fn is_unresponsive(&self) -> bool {
        self.p_drop != 0
    }

    #[inline]
    fn reschedule(&mut self, params: &CobaltParams) {
        self.rec_inv_sqrt = inverse_sqrt::next(params.arithmetic, self.rec_inv_sqrt, self.count);
        self.drop_next += self.spacing(params);
    }

    /// interval / sqrt(count).
    #[inline]
    fn spacing(&self, params: &CobaltParams) -> Span {
        let interval = match params.arithmetic {
            Arithmetic::Exact => params.interval.0,
            // Linux multiplies 32 bits: of 5 s, 0.7.
            Arithmetic::Linux(_) => params.interval.0 & u64::from(u32::MAX),
        };
        Span(((u128::from(interval) * u128::from(self.rec_inv_sqrt)) >> 32) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Flags;

    #[test]
    fn winding_down_at_once_comes_to_what_steps_come_to() {
        let params = CobaltParams { interval: Span::from_millis(100), ..CobaltParams::default() };
        let now = Time(1 << 60);
        for count in [2_000, 300_000, 2_000_000] {
            for late_ms in [300, 10_000, 80_000, 90_000_000] {
                let root = inverse_sqrt::next(Arithmetic::Exact, 0, count);
                let drop_next = now - Span::from_millis(late_ms);
                let flooded =
                    CobaltState { count, rec_inv_sqrt: root, drop_next, ..CobaltState::NEW };
                let (mut steps, mut leap) = (flooded, flooded);
                while steps.count > 0 && now >= steps.drop_next {
                    steps.count -= 1;
                    steps.reschedule(&params);
                }
                leap.wind_down_to(&params, now);
                let off = steps.count.abs_diff(leap.count);
                assert!(off <= 2 + count / 10_000, "{} and {}", steps.count, leap.count);
                assert!(leap.drop_next > now);
                // As a packet meets it.
                let mut cobalt = flooded;
                let mut packet = Packet::new(0, 1514);
                packet.enqueued = now;
                crate::steps::take();
                let (random, budget) = (&mut Random::new(1), Budget::default());
                let verdict = cobalt.decide(&params, &mut packet, now, 0, random, &budget);
                assert!(crate::steps::take() <= crate::steps::PER_LOOP.into());
                assert_eq!(verdict, CobaltVerdict::Pass);
                let off = steps.count.abs_diff(cobalt.count);
                assert!(off <= 2 + count / 10_000, "{} and {}", steps.count, cobalt.count);
            }
        }
    }

    /// `cobalt_should_drop` takes all steps that are due.
    #[test]
    fn linux_takes_steps_down_one_by_one() {
        let params = CobaltParams {
            interval: Span::from_millis(100),
            arithmetic: Arithmetic::LINUX,
            ..CobaltParams::default()
        };
        let (now, count) = (Time(1 << 60), 300_000);
        let mut steps = CobaltState {
            count,
            rec_inv_sqrt: inverse_sqrt::next(params.arithmetic, 1 << 23, count),
            drop_next: now - Span::from_secs(1),
            ..CobaltState::NEW
        };
        let (mut cobalt, mut packet) = (steps, Packet::new(0, 1514));
        packet.enqueued = now;
        while now >= steps.drop_next {
            steps.count -= 1;
            steps.reschedule(&params);
        }
        assert!(steps.count < count - 2_000 && steps.count > 0);
        let (random, budget) = (&mut Random::new(1), Budget::default());
        cobalt.decide(&params, &mut packet, now, 0, random, &budget);
        assert_eq!((cobalt.count, cobalt.drop_next), (steps.count, steps.drop_next));
    }

    #[test]
    fn blue_draws_for_lost_packets_before_7_3_only() {
        for (release, draws) in [(Release::V6_12, true), (Release::V7_3, false)] {
            let arithmetic = Arithmetic::Linux(release);
            let params = CobaltParams { arithmetic, ..CobaltParams::default() };
            let decide = |ecn, random: &mut Random| {
                let mut packet = Packet::new(0, 1514);
                (packet.tos, packet.flags) = (ecn, Flags::IPV4);
                let dropping =
                    CobaltState { count: 1, p_drop: 1, dropping: true, ..CobaltState::NEW };
                let (now, budget) = (Time(1 << 40), Budget::default());
                dropping.clone().decide(&params, &mut packet, now, 0, random, &budget)
            };
            let fresh = Random::new(1 << 40);
            let mut random = fresh;
            assert_eq!(decide(0, &mut random), CobaltVerdict::Congested);
            assert_eq!(random != fresh, draws);
            // One that is only marked may still be dropped.
            let mut random = fresh;
            assert_eq!(decide(2, &mut random), CobaltVerdict::Marked);
            assert_ne!(random, fresh);
        }
    }

    #[test]
    fn blue_drops_with_its_probability() {
        let dice = || Random::new(0x9e37_79b9_7f4a_7c15);
        let drawn = dice().u32();
        for (p_drop, verdict) in [
            (drawn - 1, CobaltVerdict::Pass),
            (drawn, CobaltVerdict::Pass),
            (drawn + 1, CobaltVerdict::Flood { marked: false }),
        ] {
            let mut cobalt = CobaltState { p_drop, ..CobaltState::NEW };
            let (params, mut packet) = (CobaltParams::default(), Packet::new(0, 1514));
            let budget = Budget::default();
            let decided = cobalt.decide(&params, &mut packet, Time(0), 0, &mut dice(), &budget);
            assert_eq!(decided, verdict);
        }
    }

    /// Either half is enough, and both together.
    #[test]
    fn neither_a_spell_nor_blue_is_forgotten() {
        let params = CobaltParams::default();
        for (count, p_drop) in [(1, 0), (0, 1), (1, 1)] {
            let mut cobalt = CobaltState { count, p_drop, ..CobaltState::NEW };
            assert!(!cobalt.is_at_rest(Time(1 << 40)), "{count} {p_drop}");
            assert!(!cobalt.passes(&params, Span::ZERO, Time(1 << 40), 0), "{count} {p_drop}");
            // The latter takes steps, one by one.
            let Emptied { at_rest, tamed } = cobalt.queue_empty(&params, Time(1 << 40));
            assert_eq!((cobalt.count, cobalt.p_drop, tamed), (0, 0, p_drop > 0));
            assert!(at_rest || count > 0);
        }
        assert!(CobaltState::NEW.is_at_rest(Time(0)));
    }

    /// A queue that is asked late has missed signals: it does not make up for them.
    #[test]
    fn signals_that_were_missed_are_not_given_at_once() {
        let interval = Span::from_millis(100);
        let params =
            CobaltParams { target: Span::from_millis(5), interval, ..CobaltParams::default() };
        for (tos, verdict) in [(2, CobaltVerdict::Marked), (0, CobaltVerdict::Congested)] {
            let (now, drop_next) = (Time(1 << 40), Time(1 << 39));
            let rec_inv_sqrt = u32::MAX;
            let late = CobaltState {
                count: 1,
                dropping: true,
                rec_inv_sqrt,
                drop_next,
                ..CobaltState::NEW
            };
            let mut cobalt = late;
            let mut packet = Packet::new(0, 1514);
            (packet.tos, packet.flags) = (tos, Flags::IPV4);
            let (random, budget) = (&mut Random::new(1), Budget::default());
            let mut decide = |now| cobalt.decide(&params, &mut packet, now, 0, random, &budget);
            assert_eq!(decide(now), verdict);
            let (count, next) = cobalt.spell();
            // One that was dropped is none that was sent: Linux asks for the next packet at once.
            let after = drop_next + cobalt.spacing(&params);
            assert_eq!((count, next), (2, Some(if tos == 2 { now } else { after })));
        }
    }
}
