//! CoDel and COBALT against their pseudo-code, written down once more, over random queues.
//!
//! All times are a few units apart, so that every limit is often met exactly: target, interval,
//! the time of the next signal, sixteen intervals.

use std::collections::VecDeque;

use simnel_core::aqm::cobalt::{CobaltParams, CobaltState, CobaltVerdict};
use simnel_core::aqm::codel::{CodelParams, CodelState, Counters, Law};
use simnel_core::aqm::{inverse_sqrt, Verdict};
use simnel_core::packet::Flags;
use simnel_core::random::Random;
use simnel_core::rate::Arithmetic;
use simnel_core::steps::Budget;
use simnel_core::{Packet, Span, Time};

const TARGET: u64 = 2;
const INTERVAL: u64 = 16;
const MTU: u32 = 1514;
/// Units of time in which each arithmetic counts for CoDel: 1 ns and 1024 ns.
const UNITS: [(Arithmetic, u64); 2] = [(Arithmetic::Exact, 1), (Arithmetic::LINUX, 1024)];

fn packet(enqueued: u64, len: u32, tos: u8) -> Packet {
    let mut packet = Packet::new(0, len);
    (packet.enqueued, packet.tos, packet.flags) = (Time(enqueued), tos, Flags::IPV4);
    packet
}

/// CoDel as RFC 8289, section 5, has it, in units of time.
#[derive(Default)]
struct Codel {
    arithmetic: Arithmetic,
    first_above: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    root: u32,
    dropping: bool,
}

/// A call's result: what passes and whether it is marked, and how many were dropped before.
type Sent = (Option<(Packet, bool)>, u32);

impl Codel {
    fn control_law(&self, from: u64) -> u64 {
        from + ((INTERVAL * u64::from(self.root)) >> 32)
    }

    /// The first packet, and whether it may be signalled.
    fn first(
        &mut self,
        queue: &mut VecDeque<Packet>,
        unit: u64,
        now: u64,
    ) -> Option<(Packet, bool)> {
        let Some(packet) = queue.pop_front() else {
            self.first_above = 0;
            return None;
        };
        let left: u32 = queue.iter().map(|packet| packet.len).sum();
        let mut ok = false;
        if now - packet.enqueued.0 / unit < TARGET || left <= MTU {
            self.first_above = 0;
        } else if self.first_above == 0 {
            self.first_above = now + INTERVAL;
        } else {
            // Linux waits for the interval to be over.
            ok = now > self.first_above;
        }
        Some((packet, ok))
    }

    fn dequeue(&mut self, queue: &mut VecDeque<Packet>, unit: u64, now: u64) -> Sent {
        let (mut lost, mut marked) = (0, false);
        let Some((mut packet, mut ok)) = self.first(queue, unit, now) else {
            self.dropping = false;
            return (None, 0);
        };
        let is_marked = |packet: &Packet| matches!(packet.tos & 3, 1..);
        if self.dropping {
            self.dropping = ok;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                self.root = inverse_sqrt::next_short(self.arithmetic, self.root, self.count);
                if is_marked(&packet) {
                    self.drop_next = self.control_law(self.drop_next);
                    marked = true;
                    break;
                }
                lost += 1;
                let Some(next) = self.first(queue, unit, now) else {
                    self.dropping = false;
                    return (None, lost);
                };
                (packet, ok) = next;
                self.dropping = ok;
                if ok {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if ok {
            let since = now.wrapping_sub(self.drop_next);
            let is_recent = match self.arithmetic {
                Arithmetic::Exact => self.drop_next != 0 && since < 16 * INTERVAL,
                Arithmetic::Linux(_) => (since.wrapping_sub(16 * INTERVAL) as i32) < 0,
            };
            let delta = self.count.wrapping_sub(self.lastcount);
            if delta > 1 && is_recent {
                self.count = delta;
                self.root = inverse_sqrt::next_short(self.arithmetic, self.root, self.count);
            } else {
                self.count = 1;
                let exact = self.arithmetic == Arithmetic::Exact;
                self.root = if exact { u32::MAX } else { 0xffff_0000 };
            }
            self.lastcount = self.count;
            self.drop_next = self.control_law(now);
            self.dropping = true;
            if is_marked(&packet) {
                marked = true;
            } else {
                lost += 1;
                let Some((next, _)) = self.first(queue, unit, now) else {
                    self.dropping = false;
                    return (None, lost);
                };
                packet = next;
            }
        }
        (Some((packet, marked)), lost)
    }
}

/// The same with ours, by its short way where that is open.
fn dequeue(
    codel: &mut CodelState,
    law: &Law,
    queue: &mut VecDeque<Packet>,
    now: Time,
    shortcuts: &mut u32,
) -> Sent {
    let (mut lost, mut counters) = (0, Counters::default());
    while let Some(mut packet) = queue.pop_front() {
        let left: u32 = queue.iter().map(|packet| packet.len).sum();
        let mut slow = *codel;
        let verdict = slow.leaves(law, &mut counters, &mut packet, left.into(), now);
        if codel.passes(law, &mut Counters::default(), &packet, now) {
            assert_eq!((verdict, slow), (Verdict::Pass, *codel));
            *shortcuts += 1;
        }
        *codel = slow;
        match verdict {
            Verdict::Drop => lost += 1,
            verdict => return (Some((packet, verdict == Verdict::Marked)), lost),
        }
    }
    codel.found_empty();
    (None, lost)
}

#[test]
fn codel_signals_when_its_pseudo_code_does() {
    for (arithmetic, unit) in UNITS {
        let params = CodelParams {
            target: Span(TARGET * unit),
            interval: Span(INTERVAL * unit),
            ecn: true,
            ..CodelParams::default()
        };
        let law = Law::new(&params, MTU, arithmetic);
        let (mut ours, mut model) =
            (CodelState::default(), Codel { arithmetic, ..Codel::default() });
        let (mut queue, mut random) = (VecDeque::new(), Random::new(5));
        let (mut lost, mut marks, mut resumed, mut shortcuts, mut short) = (0, 0, 0, 0, 0);
        let mut now = 1000;
        for step in 0..200_000 {
            // Spells of overload, of less, and rests of about sixteen intervals.
            let arrivals = [2, 2, 0, 1, 2][step / 40 % 5];
            now += u64::from(random.below(3));
            if step % 200 == 100 {
                now += u64::from(random.below(20)) + 15 * INTERVAL;
            }
            for _ in 0..random.below(arrivals + 1) {
                let len = [60, 757, 1514][random.below(3) as usize];
                queue.push_back(packet(now * unit, len, u8::from(random.below(4) == 0) * 2));
            }
            let mut same = queue.clone();
            let before = ours.counts().1;
            let at = Time(now * unit);
            short += u32::from(queue.front().is_some_and(|p| now - p.enqueued.0 / unit < TARGET));
            let expected = model.dequeue(&mut same, unit, now);
            let sent = dequeue(&mut ours, &law, &mut queue, at, &mut shortcuts);
            // Only the model does not write marks down.
            let plain = |(sent, lost): Sent| (sent.map(|(packet, m)| (packet.enqueued, m)), lost);
            assert_eq!(plain(sent), plain(expected), "step {step}");
            assert_eq!(ours.counts(), (model.count, model.lastcount), "step {step}");
            let due = model.dropping.then_some(Time(model.drop_next * unit));
            assert_eq!(ours.drop_next(&law), due, "step {step}");
            (lost, marks) = (lost + sent.1, marks + u32::from(sent.0.is_some_and(|(_, m)| m)));
            resumed += u32::from(ours.counts().1 > 1 && ours.counts().1 != before);
            if queue.len() > 60 {
                queue.clear();
                ours.overflowed(1);
                model.count += 1;
            }
        }
        assert!(lost > 1000 && marks > 300 && resumed > 20, "{lost} {marks} {resumed}");
        assert!(shortcuts >= short, "{shortcuts} of {short} were short");
    }
}

/// COBALT's queue as Linux has it (facts A.6), with signed times.
struct Cobalt {
    arithmetic: Arithmetic,
    count: u32,
    root: u32,
    drop_next: i64,
    dropping: bool,
    p_drop: u32,
    blue_timer: i64,
}

impl Cobalt {
    fn control(&mut self) {
        self.root = inverse_sqrt::next(self.arithmetic, self.root, self.count);
        self.drop_next += self.spacing();
    }

    fn spacing(&self) -> i64 {
        ((INTERVAL * u64::from(self.root)) >> 32) as i64
    }

    /// The packet's fate: marked, dropped.
    fn decide(&mut self, over: bool, ecn: bool, now: i64, random: &mut Random) -> (bool, bool) {
        let mut late = now - self.drop_next;
        let mut due = self.count > 0 && late >= 0;
        if over && !self.dropping {
            self.dropping = true;
            self.drop_next = now + self.spacing();
        }
        if over && self.count == 0 {
            self.count = 1;
        }
        if !over {
            self.dropping = false;
        }
        let (mut marked, mut dropped) = (false, false);
        if due && self.dropping {
            (marked, dropped) = (ecn, !ecn);
            self.count += 1;
            self.control();
            late = now - self.drop_next;
        } else {
            while due {
                self.count -= 1;
                self.control();
                late = now - self.drop_next;
                due = self.count > 0 && late >= 0;
            }
        }
        if self.p_drop > 0 {
            dropped |= random.u32() < self.p_drop;
        }
        if self.count == 0 {
            self.drop_next = now + INTERVAL as i64;
        } else if late > 0 && !dropped {
            self.drop_next = now;
        }
        (marked, dropped)
    }

    fn queue_full(&mut self, now: i64) {
        if now - self.blue_timer > TARGET as i64 {
            self.p_drop = self.p_drop.saturating_add(1 << 24);
            self.blue_timer = now;
        }
        (self.dropping, self.drop_next) = (true, now);
        self.count = self.count.max(1);
    }

    fn queue_empty(&mut self, now: i64) {
        self.dropping = false;
        if self.p_drop > 0 && now - self.blue_timer > TARGET as i64 {
            self.p_drop = self.p_drop.saturating_sub(1 << 20);
            self.blue_timer = now;
        }
        if self.count > 0 && now >= self.drop_next {
            self.count -= 1;
            self.control();
        }
    }
}

#[test]
fn cobalt_decides_as_its_pseudo_code() {
    for arithmetic in [Arithmetic::Exact, Arithmetic::LINUX] {
        let params = CobaltParams {
            target: Span(TARGET),
            interval: Span(INTERVAL),
            mtu_time: Span(1),
            arithmetic,
        };
        let mut ours = CobaltState::NEW;
        let mut model = Cobalt {
            arithmetic,
            count: 0,
            root: 0,
            drop_next: 0,
            dropping: false,
            p_drop: 0,
            blue_timer: 0,
        };
        let (mut random, mut dice, mut same_dice) =
            (Random::new(6), Random::new(7), Random::new(7));
        let (mut now, mut seen) = (1000u64, [0; 5]);
        for step in 0..200_000 {
            now += u64::from(random.below(4));
            let spell = step / 50 % 4;
            match random.below(40) {
                0 => {
                    let awakened = ours.queue_full(&params, Time(now));
                    assert_eq!(awakened, model.p_drop == 0 && ours.is_unresponsive());
                    model.queue_full(now as i64);
                    seen[0] += 1;
                }
                1..=15 if spell == 0 => {
                    let was_flooded = model.p_drop > 0;
                    let emptied = ours.queue_empty(&params, Time(now));
                    model.queue_empty(now as i64);
                    assert_eq!(emptied.tamed, was_flooded && model.p_drop == 0);
                    assert_eq!(emptied.at_rest, ours.is_at_rest(Time(now)));
                    seen[1] += 1;
                }
                draw => {
                    // Over target is more than that, and than four packets or two for each flow.
                    let sojourn = u64::from(random.below(if spell == 1 { 12 } else { 6 }));
                    let bulk_flows = random.below(4);
                    let least = TARGET.max(4).max(2 * u64::from(bulk_flows));
                    let (over, ecn) = (sojourn > least, draw % 2 == 0);
                    let mut packet = packet(now - sojourn, 1514, u8::from(ecn) * 2);
                    let (waited, at) = (Span(sojourn), Time(now));
                    let mut short = ours;
                    let passes = short.passes(&params, waited, at, bulk_flows);
                    assert_eq!(passes, model.count == 0 && model.p_drop == 0 && !over);
                    let budget = Budget::default();
                    let verdict =
                        ours.decide(&params, &mut packet, at, bulk_flows, &mut dice, &budget);
                    if passes {
                        assert_eq!((verdict, short), (CobaltVerdict::Pass, ours), "step {step}");
                    }
                    let expected = model.decide(over, ecn, now as i64, &mut same_dice);
                    let seen_here = (verdict.is_marked(), verdict.is_drop());
                    assert_eq!(seen_here, expected, "step {step}");
                    seen[2] += u32::from(expected.0);
                    seen[3] += u32::from(expected.1);
                    seen[4] += u32::from(passes);
                }
            }
            let due = model.dropping.then_some(Time(model.drop_next as u64));
            assert_eq!(ours.spell(), (model.count, due), "step {step}");
            assert_eq!(ours.blue(), (model.p_drop, Time(model.blue_timer as u64)));
            let flooded = model.p_drop > 0;
            assert_eq!(ours.is_unresponsive(), flooded);
            let at_rest = !flooded && model.count == 0 && now as i64 >= model.drop_next;
            assert_eq!(ours.is_at_rest(Time(now)), at_rest, "step {step}");
            if step % 5_000 == 0 {
                // Calm for a while: BLUE forgets.
                while model.p_drop > 0 || model.count > 0 {
                    now += 40;
                    ours.queue_empty(&params, Time(now));
                    model.queue_empty(now as i64);
                }
            }
        }
        assert!(seen.iter().all(|count| *count > 200), "{seen:?}");
    }
}

/// Linux multiplies 32 bits (facts A.6): of an interval of 5 s, 0.7 s are left.
#[test]
fn linux_cuts_cobalts_longest_intervals() {
    for (arithmetic, millis) in [(Arithmetic::Exact, 5_000), (Arithmetic::LINUX, 705)] {
        let params = CobaltParams {
            target: Span::from_millis(5),
            interval: Span::from_secs(5),
            mtu_time: Span::ZERO,
            arithmetic,
        };
        let (mut cobalt, mut random) = (CobaltState::NEW, Random::new(1));
        let mut decide = |cobalt: &mut CobaltState, now: u64| {
            let mut packet = packet(now - 100_000_000, 1514, 0);
            cobalt.decide(&params, &mut packet, Time(now), 0, &mut random, &Budget::default())
        };
        let start = 20_000_000_000;
        assert_eq!(decide(&mut cobalt, start), CobaltVerdict::Pass);
        assert_eq!(decide(&mut cobalt, start + 1), CobaltVerdict::Congested);
        // The second signal is due after interval / sqrt(2).
        let (count, due) = cobalt.spell();
        let spacing = due.unwrap().since(Time(start)).as_micros() / 1000;
        assert_eq!((count, spacing), (2, (f64::from(millis) / 2f64.sqrt()) as u64));
    }
}
