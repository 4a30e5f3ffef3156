//! CoDel: controlled delay (Nichols and Jacobson 2012; RFC 8289).
//!
//! A queue is bad when it stands: when no packet for a whole `interval` has waited less than
//! `target`. Then a packet is dropped, or marked, as it leaves; the next one `interval` later, and
//! then `interval / sqrt(count)` after each other, so that the rate of signals rises linearly until
//! the queue goes below target (RFC 8289, section 5). If it stands again soon, dropping resumes near
//! the rate that had worked (section 5.4). A queue of one MTU or less is never bad.
//!
//! Deviations from Linux 6.1 (both are in conformance/ledger.toml where a recording shows them). A
//! queue that is found empty was below target: Linux before 7.0 kept the old time in that case,
//! so that a flow's first packet after a pause could be dropped (facts C.4). And a queue that never
//! dropped has no last spell to resume, where Linux compares with time zero.
//!
//! `ce_threshold` is a second, immediate law for senders that answer each mark (DCTCP, L4S): CE on
//! every ECN-capable packet that has waited longer.
//!
//! Caller's rule: [`Codel::dequeue`] takes the packets itself, through [`Queue`].
//! [`Arithmetic::Linux`] counts time in 1024 ns and roots in 16 bits, as the recordings.

use super::inverse_sqrt;
use crate::packet::Packet;
use crate::rate::Arithmetic;
use crate::time::{Span, Time};

/// Settings, with the names and defaults of `tc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Standing delay that is accepted. Whole microseconds.
    pub target: Span,
    /// A worst-case round-trip time: how long senders take to answer. Whole microseconds.
    pub interval: Span,
    /// Delay above which every ECN-capable packet is marked. Whole microseconds.
    pub ce_threshold: Option<Span>,
    /// Mark ECN-capable packets where others are dropped.
    pub ecn: bool,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ce_threshold: None,
            ecn: false,
        }
    }
}

/// [`Params`] in the units of the computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    target: u64,
    interval: u64,
    ce_threshold: u64,
    /// Queues of this many bytes or fewer are never bad.
    mtu: u64,
    /// Nanoseconds in a unit of time, as a power of two.
    shift: u32,
    ecn: bool,
    arithmetic: Arithmetic,
}

/// What all queues under one law count together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets marked by the control law.
    pub ecn_marks: u32,
    /// Packets marked by `ce_threshold`.
    pub ce_marks: u32,
    /// Largest packet seen, in bytes.
    pub max_packet: u32,
    /// How long the packet that was looked at last had waited.
    pub last_delay: Span,
}

/// State of one queue. Times are in units of the law.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codel {
    /// Until when the delay must stay above target to be called standing; zero while it is below.
    first_above: u64,
    /// When the next signal is due; zero before the first spell.
    drop_next: u64,
    /// Signals in this spell, or in the last one.
    count: u32,
    /// `count` when this spell, or the last one, began.
    lastcount: u32,
    /// 1/sqrt(count), Q0.32.
    rec_inv_sqrt: u32,
    /// In a spell.
    dropping: bool,
}

/// The queue that CoDel takes packets from.
pub trait Queue {
    /// Takes the first packet.
    fn pop(&mut self) -> Option<Packet>;
    /// Bytes that are left.
    fn bytes(&self) -> u64;
    /// Gives up a packet that was taken.
    fn congested(&mut self, packet: Packet);
}

/// Spells that begin within so many intervals of the last one resume it (RFC 8289, section 5.4).
const RESUME_INTERVALS: u64 = 16;
/// Linux counts time for CoDel in 2^10 ns.
const LINUX_SHIFT: u32 = 10;
/// What Linux has of 1/sqrt(1): 16 bits.
const ONE: u32 = 0xffff_0000;

impl Law {
    /// The law of `params` on a device whose largest frame has `mtu` bytes.
    pub fn new(params: &Params, mtu: u32, arithmetic: Arithmetic) -> Law {
        let shift = match arithmetic {
            Arithmetic::Exact => 0,
            Arithmetic::Linux => LINUX_SHIFT,
        };
        Law {
            target: params.target.0 >> shift,
            interval: params.interval.0 >> shift,
            ce_threshold: params.ce_threshold.map_or(u64::MAX, |span| span.0 >> shift),
            mtu: mtu.into(),
            shift,
            ecn: params.ecn,
            arithmetic,
        }
    }
}

impl Codel {
    /// The next packet that `queue` shall send at `now`. Up to all of its packets are given up on
    /// the way. Marks are set, and counted in `counters`.
    #[inline]
    pub fn dequeue(
        &mut self,
        law: &Law,
        counters: &mut Counters,
        queue: &mut impl Queue,
        now: Time,
    ) -> Option<Packet> {
        let now = now.0 >> law.shift;
        let mut next = queue.pop();
        let standing = self.is_standing(law, counters, next.as_ref(), queue.bytes(), now);
        let mut sojourn = counters.last_delay.0 >> law.shift;
        if !standing {
            self.dropping = false;
        } else if !self.dropping || now >= self.drop_next {
            next = self.signal(law, counters, queue, next, now);
            sojourn = counters.last_delay.0 >> law.shift;
        }
        let packet = next.as_mut()?;
        if sojourn > law.ce_threshold && packet.mark_ce() {
            counters.ce_marks += 1;
        }
        next
    }

    /// `packets` of the queue were given up for want of room: the next spell is the harder for it.
    pub fn overflowed(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// Signals in the present or last spell, and when it began.
    pub fn counts(&self) -> (u32, u32) {
        (self.count, self.lastcount)
    }

    /// In a spell of signals.
    pub fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// When the next signal is due.
    pub fn drop_next(&self, law: &Law) -> Time {
        Time(self.drop_next << law.shift)
    }

    /// Looks at a packet that was taken; `left` bytes remain. True if the delay has stood above
    /// target for an interval.
    #[inline]
    fn is_standing(
        &mut self,
        law: &Law,
        counters: &mut Counters,
        packet: Option<&Packet>,
        left: u64,
        now: u64,
    ) -> bool {
        let Some(packet) = packet else {
            self.first_above = 0;
            return false;
        };
        let sojourn = now.saturating_sub(packet.enqueued.0 >> law.shift);
        counters.last_delay = Span(sojourn << law.shift);
        counters.max_packet = counters.max_packet.max(packet.len);
        if sojourn < law.target || left <= law.mtu {
            self.first_above = 0;
            false
        } else if self.first_above == 0 {
            self.first_above = now.saturating_add(law.interval);
            false
        } else {
            now > self.first_above
        }
    }

    /// The delay stands and a signal is due; `packet` is the first to get it.
    #[cold]
    fn signal(
        &mut self,
        law: &Law,
        counters: &mut Counters,
        queue: &mut impl Queue,
        packet: Option<Packet>,
        now: u64,
    ) -> Option<Packet> {
        let mut next = packet;
        if !self.dropping {
            next = self.mark_or_drop(law, counters, queue, next?, now).0;
            self.begin_spell(law, now);
            return next;
        }
        // Ends: each time round, a packet leaves the queue.
        while self.dropping && now >= self.drop_next {
            self.count = self.count.saturating_add(1);
            self.update_root(law);
            let (after, standing, marked) = self.mark_or_drop(law, counters, queue, next?, now);
            next = after;
            if !standing {
                self.dropping = false;
                break;
            }
            self.drop_next += self.spacing(law);
            if marked {
                break;
            }
        }
        next
    }

    /// Signals to `packet`. Returns the packet to send now, whether the delay still stands, and
    /// whether a mark was enough.
    fn mark_or_drop(
        &mut self,
        law: &Law,
        counters: &mut Counters,
        queue: &mut impl Queue,
        mut packet: Packet,
        now: u64,
    ) -> (Option<Packet>, bool, bool) {
        if law.ecn && packet.mark_ce() {
            counters.ecn_marks += 1;
            return (Some(packet), true, true);
        }
        queue.congested(packet);
        let next = queue.pop();
        let standing = self.is_standing(law, counters, next.as_ref(), queue.bytes(), now);
        (next, standing, false)
    }

    /// Begins a spell, from where the last one ended if that is not long ago.
    fn begin_spell(&mut self, law: &Law, now: u64) {
        let signals = self.count.wrapping_sub(self.lastcount);
        let recent = self.drop_next != 0
            && now.saturating_sub(self.drop_next) < law.interval.saturating_mul(RESUME_INTERVALS);
        if signals > 1 && recent {
            self.count = signals;
            self.update_root(law);
        } else {
            self.count = 1;
            self.rec_inv_sqrt = match law.arithmetic {
                Arithmetic::Exact => u32::MAX,
                Arithmetic::Linux => ONE,
            };
        }
        self.dropping = true;
        self.lastcount = self.count;
        self.drop_next = now + self.spacing(law);
    }

    fn update_root(&mut self, law: &Law) {
        self.rec_inv_sqrt = inverse_sqrt::next_short(law.arithmetic, self.rec_inv_sqrt, self.count);
    }

    /// interval / sqrt(count).
    fn spacing(&self, law: &Law) -> u64 {
        ((u128::from(law.interval) * u128::from(self.rec_inv_sqrt)) >> 32) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Flags;
    use std::collections::VecDeque;
    use std::vec::Vec;

    /// A queue that notes when packets were given up.
    #[derive(Default)]
    struct Standing {
        packets: VecDeque<Packet>,
        lost: u32,
    }

    impl Queue for Standing {
        fn pop(&mut self) -> Option<Packet> {
            self.packets.pop_front()
        }
        fn bytes(&self) -> u64 {
            self.packets.iter().map(|packet| u64::from(packet.len)).sum()
        }
        fn congested(&mut self, _: Packet) {
            self.lost += 1;
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
    fn signals(law: &Law, codel: &mut Codel, ms: core::ops::Range<u64>, ecn: u8) -> Vec<u64> {
        let (mut counters, mut times) = (Counters::default(), Vec::new());
        for ms in ms {
            let now = Time(ms * MILLISECOND);
            let mut queue = Standing::default();
            for age in (0..20).rev() {
                queue.packets.push_back(packet(now - Span::from_millis(age), ecn));
            }
            let before = counters.ecn_marks;
            codel.dequeue(law, &mut counters, &mut queue, now).unwrap();
            let count = queue.lost + counters.ecn_marks - before;
            times.extend((0..count).map(|_| ms));
        }
        times
    }

    fn law(ecn: bool, arithmetic: Arithmetic) -> Law {
        Law::new(&Params { ecn, ..Params::default() }, 1514, arithmetic)
    }

    #[test]
    fn signals_follow_the_control_law_exactly() {
        let law = law(false, Arithmetic::Exact);
        let mut codel = Codel::default();
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
        for arithmetic in [Arithmetic::Exact, Arithmetic::Linux] {
            let run =
                |ecn, tos| signals(&law(ecn, arithmetic), &mut Codel::default(), 0..3000, tos);
            assert_eq!(run(true, 2), run(false, 2));
            // Senders that do not know marks are not spared.
            assert_eq!(run(true, 0), run(false, 0));
        }
    }

    #[test]
    fn a_spell_resumes_only_if_the_last_was_recent() {
        let law = law(false, Arithmetic::Exact);
        let mut codel = Codel::default();
        signals(&law, &mut codel, 1000..3000, 0);
        let (count, lastcount) = codel.counts();
        assert!(count > 20 && lastcount == 1);
        let good = |codel: &mut Codel, now: u64| {
            let mut queue = Standing::default();
            queue.packets.push_back(packet(Time(now * MILLISECOND), 0));
            codel.dequeue(&law, &mut Counters::default(), &mut queue, Time(now * MILLISECOND));
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
    fn an_empty_queue_was_below_target() {
        let law = law(false, Arithmetic::Exact);
        let mut codel = Codel::default();
        assert!(signals(&law, &mut codel, 0..50, 0).is_empty());
        let now = Time(50 * MILLISECOND);
        codel.dequeue(&law, &mut Counters::default(), &mut Standing::default(), now);
        assert!(signals(&law, &mut codel, 400..500, 0).is_empty());
    }

    #[test]
    fn a_single_packet_is_never_a_standing_queue() {
        let law = law(false, Arithmetic::Exact);
        let (mut codel, mut counters) = (Codel::default(), Counters::default());
        for ms in 1000..3000 {
            let mut queue = Standing::default();
            // What is left after it is exactly one MTU.
            (0..2).for_each(|_| queue.packets.push_back(packet(Time::ZERO, 0)));
            assert!(codel
                .dequeue(&law, &mut counters, &mut queue, Time(ms * MILLISECOND))
                .is_some());
            assert_eq!(queue.lost, 0);
        }
    }

    #[test]
    fn ce_threshold_marks_at_once_what_can_be_marked() {
        let params =
            Params { ce_threshold: Some(Span::from_millis(1)), ecn: false, ..Params::default() };
        let law = Law::new(&params, 1514, Arithmetic::Exact);
        let (mut codel, mut counters) = (Codel::default(), Counters::default());
        for (age, tos, marks) in [(1_000_000, 2, 0), (1_000_001, 2, 1), (2_000_000, 0, 1)] {
            let mut queue = Standing::default();
            let now = Time(5_000_000);
            queue.packets.push_back(packet(now - Span(age), tos));
            codel.dequeue(&law, &mut counters, &mut queue, now);
            assert_eq!(counters.ce_marks, marks, "{age} ns");
        }
    }
}
