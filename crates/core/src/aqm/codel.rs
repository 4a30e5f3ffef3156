//! CoDel: controlled delay (Nichols and Jacobson 2012; RFC 8289).
//!
//! A queue is bad when it stands: when no packet for a whole `interval` has waited less than
//! `target`. Then a packet is dropped, or marked, as it leaves. The next one follows `interval`
//! later, and more `interval / sqrt(count)` after each other. So the rate of signals rises linearly
//! until the queue goes below target (RFC 8289, section 5). If it stands again soon, dropping
//! resumes near the rate that had worked (same section). A queue of one MTU or less is never bad.
//!
//! A queue that is found empty was below target. Linux before March 2026 kept the old time in that
//! case, so that a flow's first packet after a pause could be dropped (facts C.4). And a queue that
//! never dropped has no last spell to resume. Linux compares with time zero instead, and for half
//! of its clock's 73 minutes takes that for recent. [`Arithmetic::Linux`] does so, too.
//!
//! `ce_threshold` is a second, immediate law for senders that answer each mark (DCTCP, L4S): CE on
//! every ECN-capable packet that has waited longer.
//!
//! Caller's rule: [`CodelState::leaves`] for each packet taken from the queue, and at once for the
//! next one if that was dropped. [`CodelState::found_empty`] when there is none to take.
//! [`Arithmetic::Linux`] counts time in 1024 ns and roots in 16 bits, as the recordings.

use super::{inverse_sqrt, Verdict};
use crate::packet::Packet;
use crate::rate::{Arithmetic, Release};
use crate::time::{Span, Time};

/// Settings, with the names and defaults of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodelParams {
    /// Standing delay that is accepted. Whole microseconds.
    pub target: Span,
    /// A worst-case round-trip time: how long senders take to answer. Whole microseconds.
    pub interval: Span,
    /// Delay above which every ECN-capable packet is marked. Whole microseconds.
    pub ce_threshold: Option<Span>,
    /// Packets to which `ce_threshold` applies.
    pub ce_selector: CeSelector,
    /// Mark ECN-capable packets where others are dropped.
    pub ecn: bool,
}

/// Packets by their traffic class octet: those with `octet & mask == value`. The default is all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CeSelector {
    /// Value of the octet after the mask.
    pub value: u8,
    /// Bits of the octet that are compared.
    pub mask: u8,
}

impl Default for CodelParams {
    fn default() -> CodelParams {
        CodelParams {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ce_threshold: None,
            ce_selector: CeSelector::default(),
            ecn: false,
        }
    }
}

/// [`CodelParams`] in the units of the computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    target: u64,
    interval: u64,
    ce_threshold: u64,
    /// Queues of this many bytes or fewer are never bad.
    mtu: u64,
    /// Nanoseconds in a unit of time, as a power of two.
    shift: u32,
    ce_selector: CeSelector,
    ecn: bool,
    arithmetic: Arithmetic,
}

/// Counters of all queues under one law together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets marked by the control law.
    pub ecn_marks: u32,
    /// Packets marked by `ce_threshold`.
    pub ce_marks: u32,
    /// Largest packet seen, in bytes.
    pub max_packet: u32,
    /// Sojourn time of the packet that was looked at last, in units of the law.
    last_delay: u64,
}

impl Counters {
    /// There is no last packet any more.
    pub fn forget_delay(&mut self) {
        self.last_delay = 0;
    }

    /// A packet of `len` bytes was looked at that had waited for `sojourn`.
    #[inline(always)]
    fn note(&mut self, sojourn: u64, len: u32) {
        self.last_delay = sojourn;
        if len > self.max_packet {
            self.max_packet = len;
        }
    }
}

/// State of one queue. Times are in units of the law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodelState {
    /// Time until which the delay must stay above target to be called standing; zero while it is
    /// below.
    first_above: u64,
    /// Time at which the next signal is due; zero before the first spell.
    drop_next: u64,
    /// Signals in this spell, or in the last one.
    count: u32,
    /// `count` when this spell, or the last one, began.
    lastcount: u32,
    /// 1/sqrt(count), Q0.32.
    rec_inv_sqrt: u32,
    spell: Spell,
    /// Packets dropped one after another since the last one that passed, in a spell under way.
    run: u16,
}

/// A time of signals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Spell {
    /// There is none.
    #[default]
    Off,
    /// The next signal is due at `drop_next`.
    On,
    /// It has just begun with a drop: the next packet takes the dropped one's place.
    Begun,
    /// A packet was just dropped: if the delay still stands, the next signal is counted from its.
    Dropped,
}

/// Spells that begin within so many intervals of the last one resume it (RFC 8289, section 5).
const RESUME_INTERVALS: u64 = 16;
/// Linux since 7.3 drops so many packets in one call at most (facts C.5).
const MOST_DROPS: u16 = 256;
/// Linux counts time for CoDel in 2^10 ns.
const LINUX_SHIFT: u32 = 10;
/// 1/sqrt(1) as Linux keeps it: 16 bits.
const ONE: u32 = 0xffff_0000;

impl Law {
    /// The law of `params` on a device whose largest frame has `mtu` bytes.
    pub fn new(params: &CodelParams, mtu: u32, arithmetic: Arithmetic) -> Law {
        let shift = match arithmetic {
            Arithmetic::Exact => 0,
            Arithmetic::Linux(_) => LINUX_SHIFT,
        };
        Law {
            target: params.target.0 >> shift,
            interval: params.interval.0 >> shift,
            ce_threshold: params.ce_threshold.map_or(u64::MAX, |span| span.0 >> shift),
            mtu: mtu.into(),
            shift,
            ce_selector: params.ce_selector,
            ecn: params.ecn,
            arithmetic,
        }
    }

    /// Sojourn time of the packet that was looked at last.
    pub fn last_delay(&self, counters: &Counters) -> Span {
        Span(counters.last_delay << self.shift)
    }

    /// Sojourn time of `packet` at `now`, both in units of the law.
    #[inline(always)]
    fn sojourn(&self, packet: &Packet, now: u64) -> u64 {
        now.saturating_sub(packet.enqueued.0 >> self.shift)
    }

    /// True if `ce_threshold` is for `packet`.
    fn is_selected(&self, packet: &Packet) -> bool {
        packet.tos & self.ce_selector.mask == self.ce_selector.value
    }
}

impl CodelState {
    /// Decides about `packet`, which was taken from its queue at `now`; `left` bytes remain there.
    /// Marks are set, and counted in `counters`.
    #[inline]
    pub fn leaves(
        &mut self,
        law: &Law,
        counters: &mut Counters,
        packet: &mut Packet,
        left: u64,
        now: Time,
    ) -> Verdict {
        let now = now.0 >> law.shift;
        let sojourn = law.sojourn(packet, now);
        counters.note(sojourn, packet.len);
        let mut verdict = Verdict::Pass;
        if sojourn < law.target || left <= law.mtu {
            self.found_empty();
        } else {
            verdict = self.above_target(law, counters, packet, now);
        }
        if sojourn > law.ce_threshold
            && verdict != Verdict::Drop
            && law.is_selected(packet)
            && packet.mark_ce()
        {
            counters.ce_marks += 1;
            verdict = Verdict::Marked;
        }
        verdict
    }

    /// The common case of [`CodelState::leaves`]: true if nothing has to be decided about the
    /// packet, which is then noted. Else nothing is.
    #[inline(always)]
    pub fn passes(
        &mut self,
        law: &Law,
        counters: &mut Counters,
        packet: &Packet,
        now: Time,
    ) -> bool {
        let sojourn = law.sojourn(packet, now.0 >> law.shift);
        if sojourn >= law.target || sojourn > law.ce_threshold {
            return false;
        }
        counters.note(sojourn, packet.len);
        self.found_empty();
        true
    }

    /// There was no packet to take.
    #[inline]
    pub fn found_empty(&mut self) {
        if self.first_above != 0 || self.spell != Spell::Off {
            self.first_above = 0;
            // The drop that begins a spell looks at one more packet, whatever that is.
            self.spell = if self.spell == Spell::Begun { Spell::On } else { Spell::Off };
        }
    }

    /// `packets` of the queue were given up for want of room: the next spell is the harder for it.
    pub fn overflowed(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Signals in the present or last spell, and those with which it began.
    pub fn counts(&self) -> (u32, u32) {
        (self.count, self.lastcount)
    }

    /// Time at which the next signal is due, if the queue is in a spell of them.
    pub fn drop_next(&self, law: &Law) -> Option<Time> {
        (self.spell != Spell::Off).then_some(Time(self.drop_next << law.shift))
    }

    /// `packet` has waited for longer than target.
    fn above_target(
        &mut self,
        law: &Law,
        counters: &mut Counters,
        packet: &mut Packet,
        now: u64,
    ) -> Verdict {
        if self.first_above == 0 {
            self.first_above = now.saturating_add(law.interval);
        }
        if now <= self.first_above {
            self.spell = Spell::Off;
            return Verdict::Pass;
        }
        let begins = self.spell == Spell::Off;
        if begins {
            self.begin_spell(law, now);
        } else if !self.signal_is_due(law, now) {
            return Verdict::Pass;
        }
        if law.ecn && packet.mark_ce() {
            counters.ecn_marks += 1;
            if !begins {
                self.drop_next += self.spacing(law);
            }
            return Verdict::Marked;
        }
        self.spell = if begins { Spell::Begun } else { Spell::Dropped };
        Verdict::Drop
    }

    /// Within a spell: true if the packet at hand gets the next signal.
    fn signal_is_due(&mut self, law: &Law, now: u64) -> bool {
        match core::mem::replace(&mut self.spell, Spell::On) {
            Spell::Begun => return false,
            Spell::Dropped => {
                self.drop_next += self.spacing(law);
                self.run = self.run.saturating_add(1);
            }
            Spell::On | Spell::Off => self.run = 0,
        }
        if now < self.drop_next {
            return false;
        }
        if self.run >= MOST_DROPS && law.arithmetic.is_since(Release::V7_3) {
            self.drop_next = now + self.spacing(law);
            return false;
        }
        self.count = self.count.saturating_add(1);
        self.update_root(law);
        true
    }

    /// Begins a spell, from where the last one ended if that is not long ago.
    fn begin_spell(&mut self, law: &Law, now: u64) {
        let signals = self.count.wrapping_sub(self.lastcount);
        if signals > 1 && self.is_recent(law, now) {
            self.count = signals;
            self.update_root(law);
        } else {
            self.count = 1;
            self.rec_inv_sqrt = match law.arithmetic {
                Arithmetic::Exact => u32::MAX,
                Arithmetic::Linux(_) => ONE,
            };
        }
        self.spell = Spell::On;
        self.lastcount = self.count;
        self.drop_next = now + self.spacing(law);
    }

    /// True if the last spell ended not long ago.
    fn is_recent(&self, law: &Law, now: u64) -> bool {
        let most = law.interval.saturating_mul(RESUME_INTERVALS);
        match law.arithmetic {
            Arithmetic::Exact => self.drop_next != 0 && now.saturating_sub(self.drop_next) < most,
            // 32 bits, in which "never" is a time, and one that is half a round off is to come.
            Arithmetic::Linux(_) => {
                (now.wrapping_sub(self.drop_next).wrapping_sub(most) as i32) < 0
            }
        }
    }

    fn update_root(&mut self, law: &Law) {
        self.rec_inv_sqrt = inverse_sqrt::next_short(law.arithmetic, self.rec_inv_sqrt, self.count);
    }

    /// interval / sqrt(count).
    fn spacing(&self, law: &Law) -> u64 {
        let least = law.arithmetic.is_since(Release::V7_3).into();
        (((u128::from(law.interval) * u128::from(self.rec_inv_sqrt)) >> 32) as u64).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Flags;
    use std::collections::VecDeque;
    use std::vec::Vec;

    #[derive(Default)]
    struct Standing {
        packets: VecDeque<Packet>,
        lost: u32,
    }

    impl Standing {
        /// The next packet that CoDel lets go; counts those that it drops.
        fn dequeue(
            &mut self,
            codel: &mut CodelState,
            law: &Law,
            counters: &mut Counters,
            now: Time,
        ) -> Option<Packet> {
            while let Some(mut packet) = self.packets.pop_front() {
                let left = self.packets.iter().map(|packet| u64::from(packet.len)).sum();
                if codel.leaves(law, counters, &mut packet, left, now) != Verdict::Drop {
                    return Some(packet);
                }
                self.lost += 1;
            }
            codel.found_empty();
            None
        }
    }

    fn packet(enqueued: Time, tos: u8) -> Packet {
        let mut packet = Packet::new(0, 1514);
        (packet.enqueued, packet.tos, packet.flags) = (enqueued, tos, Flags::IPV4);
        packet
    }

    const MILLISECOND: u64 = 1_000_000;

    /// One packet a millisecond through a queue that always holds 20 ms, until `ms`; when signals
    /// came, in ms.
    fn signals(law: &Law, codel: &mut CodelState, ms: core::ops::Range<u64>, ecn: u8) -> Vec<u64> {
        let (mut counters, mut times) = (Counters::default(), Vec::new());
        for ms in ms {
            let now = Time(ms * MILLISECOND);
            let mut queue = Standing::default();
            for age in (0..20).rev() {
                queue.packets.push_back(packet(now - Span::from_millis(age), ecn));
            }
            let before = counters.ecn_marks;
            queue.dequeue(codel, law, &mut counters, now).unwrap();
            let count = queue.lost + counters.ecn_marks - before;
            times.extend((0..count).map(|_| ms));
        }
        times
    }

    fn law(ecn: bool, arithmetic: Arithmetic) -> Law {
        Law::new(&CodelParams { ecn, ..CodelParams::default() }, 1514, arithmetic)
    }

    #[test]
    fn counters_tell_the_largest_packet_and_how_long_the_last_one_waited() {
        // Linux counts in 1024 ns: 8 ms are 7812 of them, 5 ms 4882.
        for (arithmetic, waited) in
            [(Arithmetic::Exact, 3 * MILLISECOND), (Arithmetic::LINUX, 2930 << LINUX_SHIFT)]
        {
            let (law, mut codel) = (law(false, arithmetic), CodelState::default());
            let (mut counters, mut queue) = (Counters::default(), Standing::default());
            for len in [200, 900, 300] {
                queue.packets.push_back(Packet { len, ..packet(Time(5 * MILLISECOND), 0) });
                queue.dequeue(&mut codel, &law, &mut counters, Time(8 * MILLISECOND)).unwrap();
            }
            assert_eq!((counters.max_packet, law.last_delay(&counters)), (900, Span(waited)));
            counters.forget_delay();
            assert_eq!((counters.max_packet, law.last_delay(&counters)), (900, Span::ZERO));
        }
    }

    #[test]
    fn only_a_delay_from_target_on_with_more_than_a_packet_left_is_standing() {
        let law = law(false, Arithmetic::Exact);
        let drops = |waited, left| {
            let (mut codel, mut counters) = (CodelState::default(), Counters::default());
            let mut drops = 0;
            for ms in 100..400 {
                let now = Time(ms * MILLISECOND);
                let mut packet = packet(now - waited, 0);
                let verdict = codel.leaves(&law, &mut counters, &mut packet, left, now);
                drops += u32::from(verdict == Verdict::Drop);
            }
            drops
        };
        let target = CodelParams::default().target;
        assert_eq!(drops(Span(target.0 - 1), 9000), 0);
        assert_eq!(drops(target, 1514), 0);
        assert!(drops(target, 1515) > 1);
    }

    #[test]
    fn signals_follow_the_control_law_exactly() {
        let law = law(false, Arithmetic::Exact);
        let mut codel = CodelState::default();
        let times = signals(&law, &mut codel, 1000..1700, 0);
        // The first after an interval, and then at sums of 100 ms / sqrt(n), in whole ns.
        let mut due = 1101 * MILLISECOND;
        let mut expected = std::vec![1101];
        for n in 1u64.. {
            let root = (u64::MAX / n).isqrt();
            due += ((u128::from(100 * MILLISECOND) * u128::from(root)) >> 32) as u64;
            if due > 1699 * MILLISECOND {
                break;
            }
            expected.push(due.div_ceil(MILLISECOND));
        }
        assert!(expected.len() > 8);
        assert_eq!(times, expected);
    }

    #[test]
    fn marks_come_when_drops_would() {
        for arithmetic in [Arithmetic::Exact, Arithmetic::LINUX] {
            let run =
                |ecn, tos| signals(&law(ecn, arithmetic), &mut CodelState::default(), 0..3000, tos);
            assert_eq!(run(true, 2), run(false, 2));
            // Senders that do not know marks are not spared.
            assert_eq!(run(true, 0), run(false, 0));
        }
    }

    #[test]
    fn a_spell_resumes_only_if_the_last_was_recent() {
        let law = law(false, Arithmetic::Exact);
        let mut codel = CodelState::default();
        signals(&law, &mut codel, 1000..3000, 0);
        let (count, lastcount) = codel.counts();
        assert!(count > 20 && lastcount == 1);
        let good = |codel: &mut CodelState, now: u64| {
            let mut queue = Standing::default();
            queue.packets.push_back(packet(Time(now * MILLISECOND), 0));
            queue.dequeue(codel, &law, &mut Counters::default(), Time(now * MILLISECOND));
        };
        good(&mut codel, 3000);
        let mut recent = codel;
        signals(&law, &mut recent, 3001..3103, 0);
        assert_eq!(recent.counts(), (count - 1, count - 1));
        let mut late = codel;
        signals(&law, &mut late, 5000..5102, 0);
        assert_eq!(late.counts(), (1, 1));
    }

    #[test]
    fn in_linux_a_queue_that_never_dropped_did_so_at_time_zero() {
        // Of 2^32 units the first 16 intervals, and the second half.
        for (seconds, resumes) in [(1, true), (2, false), (2000, false), (2300, true)] {
            let law = law(false, Arithmetic::LINUX);
            let mut codel = CodelState::default();
            codel.overflowed(50);
            signals(&law, &mut codel, seconds * 1000..seconds * 1000 + 150, 0);
            assert_eq!(codel.counts().1, if resumes { 50 } else { 1 }, "{seconds} s");
        }
    }

    #[test]
    fn since_7_3_a_call_drops_256_packets_and_counts_anew() {
        let interval = Span::from_micros(20);
        let params = CodelParams { interval, ..CodelParams::default() };
        let lost = |release| {
            let law = Law::new(&params, 1514, Arithmetic::Linux(release));
            let (mut codel, mut queue) = (CodelState::default(), Standing::default());
            queue.packets = (0..700).map(|_| packet(Time::ZERO, 0)).collect();
            [10, 20, 30].map(|ms| {
                let before = queue.lost;
                queue.dequeue(&mut codel, &law, &mut Counters::default(), Time(ms * MILLISECOND));
                queue.lost - before
            })
        };
        assert_eq!(lost(Release::V7_3), [0, 1, u32::from(MOST_DROPS)]);
        // No time between two: all go but three that pass, the one before, and the last.
        assert_eq!(lost(Release::V6_12), [0, 1, 700 - 5]);
    }

    #[test]
    fn an_empty_queue_was_below_target() {
        let law = law(false, Arithmetic::Exact);
        let mut codel = CodelState::default();
        assert!(signals(&law, &mut codel, 0..50, 0).is_empty());
        let now = Time(50 * MILLISECOND);
        Standing::default().dequeue(&mut codel, &law, &mut Counters::default(), now);
        assert!(signals(&law, &mut codel, 400..500, 0).is_empty());
    }

    #[test]
    fn a_single_packet_is_never_a_standing_queue() {
        let law = law(false, Arithmetic::Exact);
        let (mut codel, mut counters) = (CodelState::default(), Counters::default());
        for ms in 1000..3000 {
            let mut queue = Standing::default();
            // What is left after it is exactly one MTU.
            (0..2).for_each(|_| queue.packets.push_back(packet(Time::ZERO, 0)));
            let now = Time(ms * MILLISECOND);
            assert!(queue.dequeue(&mut codel, &law, &mut counters, now).is_some());
            assert_eq!(queue.lost, 0);
        }
    }

    /// Beyond target or the threshold, something is to be decided.
    #[test]
    fn packets_pass_up_to_the_threshold_and_below_target() {
        let ms = Span::from_millis;
        let threshold = Some(ms(2));
        let params = CodelParams { ce_threshold: threshold, ..CodelParams::default() };
        let law = Law::new(&params, 1514, Arithmetic::Exact);
        let (mut codel, mut counters) = (CodelState::default(), Counters::default());
        for (waited, passes) in
            [(ms(0), true), (ms(2), true), (ms(2) + Span(1), false), (ms(3), false), (ms(5), false)]
        {
            let now = Time(9 * MILLISECOND);
            let packet = packet(now - waited, 2);
            assert_eq!(codel.passes(&law, &mut counters, &packet, now), passes, "{waited:?}");
        }
        let plain = law_of(false);
        for (waited, passes) in [(Span(4_999_999), true), (ms(5), false)] {
            let now = Time(9 * MILLISECOND);
            let packet = packet(now - waited, 2);
            assert_eq!(codel.passes(&plain, &mut counters, &packet, now), passes, "{waited:?}");
        }
    }

    fn law_of(ecn: bool) -> Law {
        law(ecn, Arithmetic::Exact)
    }

    /// Eight intervals, or sixteen: less than so many.
    #[test]
    fn a_spell_is_recent_for_a_number_of_intervals() {
        for arithmetic in [Arithmetic::Exact, Arithmetic::LINUX] {
            let law = law(false, arithmetic);
            let most = law.interval * RESUME_INTERVALS;
            let codel = CodelState { drop_next: 1_000, ..CodelState::default() };
            for (after, is_recent) in [(0, true), (most - 1, true), (most, false)] {
                assert_eq!(codel.is_recent(&law, 1_000 + after), is_recent, "{arithmetic:?}");
            }
        }
        assert!(!CodelState::default().is_recent(&law_of(false), 1));
    }

    #[test]
    fn since_7_3_the_257th_drop_of_a_call_waits_for_its_time() {
        let law = law(false, Arithmetic::Linux(Release::V7_3));
        let run = MOST_DROPS - 1;
        let codel = CodelState {
            drop_next: 500,
            count: 9,
            run,
            spell: Spell::Dropped,
            ..CodelState::default()
        };
        for (run, spell) in [(run, Spell::Dropped), (MOST_DROPS, Spell::Dropped)] {
            let mut codel = CodelState { run, spell, ..codel };
            let now = 1 << 40;
            assert!(!codel.signal_is_due(&law, now), "{run}");
            assert_eq!(codel.drop_next, now + codel.spacing(&law));
            assert_eq!((codel.count, codel.spell), (9, Spell::On));
        }
        let mut codel = CodelState { run: run - 1, ..codel };
        assert!(codel.signal_is_due(&law, 1 << 40) && codel.count == 10);
    }

    #[test]
    fn ce_threshold_marks_at_once_what_can_be_marked() {
        let params = CodelParams {
            ce_threshold: Some(Span::from_millis(1)),
            ecn: false,
            ..CodelParams::default()
        };
        let law = Law::new(&params, 1514, Arithmetic::Exact);
        let (mut codel, mut counters) = (CodelState::default(), Counters::default());
        for (age, tos, marks) in [(1_000_000, 2, 0), (1_000_001, 2, 1), (2_000_000, 0, 1)] {
            let mut queue = Standing::default();
            let now = Time(5_000_000);
            queue.packets.push_back(packet(now - Span(age), tos));
            queue.dequeue(&mut codel, &law, &mut counters, now);
            assert_eq!(counters.ce_marks, marks, "{age} ns");
        }
        // L4S only: ECT(1) and CE.
        let ce_selector = CeSelector { value: 1, mask: 1 };
        let law = Law::new(&CodelParams { ce_selector, ..params }, 1514, Arithmetic::Exact);
        for (tos, marks) in [(2, 1), (1, 2), (0, 2), (46 << 2 | 1, 3)] {
            let mut queue = Standing::default();
            queue.packets.push_back(packet(Time::ZERO, tos));
            queue.dequeue(&mut codel, &law, &mut counters, Time(5_000_000));
            assert_eq!(counters.ce_marks, marks, "{tos}");
        }
    }
}
