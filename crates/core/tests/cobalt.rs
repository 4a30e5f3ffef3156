//! COBALT by itself (facts A.6; RFC 8289, section 5): the spacing of signals for every preset,
//! marks instead of drops, BLUE's steps, and rest.

use simnel_core::aqm::cobalt::{CobaltParams, CobaltState, CobaltVerdict};
use simnel_core::packet::Flags;
use simnel_core::random::Random;
use simnel_core::rate::Arithmetic;
use simnel_core::steps::Budget;
use simnel_core::{Packet, Span, Time};

/// Target and interval in microseconds of every `rtt` preset.
const PRESETS: [(u64, u64); 8] = [
    (5, 100),
    (50, 1_000),
    (500, 10_000),
    (1_500, 30_000),
    (5_000, 100_000),
    (15_000, 300_000),
    (50_000, 1_000_000),
    (50_000_000, 1_000_000_000),
];

fn params(target: u64, interval: u64) -> CobaltParams {
    CobaltParams {
        target: Span::from_micros(target),
        interval: Span::from_micros(interval),
        mtu_time: Span::ZERO,
        arithmetic: Arithmetic::Exact,
    }
}

/// Decides about a packet that leaves at `now`, as a discipline does.
fn should_drop(
    cobalt: &mut CobaltState,
    params: &CobaltParams,
    packet: &mut Packet,
    now: Time,
    bulk_flows: u32,
    random: &mut Random,
) -> CobaltVerdict {
    if cobalt.passes(params, now.since(packet.enqueued), now, bulk_flows) {
        return CobaltVerdict::Pass;
    }
    cobalt.decide(params, packet, now, bulk_flows, random, &Budget::default())
}

/// A queue whose packets leave one `step` after another.
struct Queue {
    cobalt: CobaltState,
    params: CobaltParams,
    now: Time,
    random: Random,
    tos: u8,
}

impl Queue {
    fn new(params: CobaltParams) -> Queue {
        let now = Time(5_000_000_000_000);
        Queue { cobalt: CobaltState::NEW, params, now, random: Random::new(9), tos: 0 }
    }

    /// A packet leaves after `sojourn`.
    fn serve(&mut self, sojourn: Span) -> CobaltVerdict {
        let mut packet = Packet::new(0, 1514);
        (packet.enqueued, packet.tos) = (self.now - sojourn, self.tos);
        packet.flags = Flags::IPV4;
        let before = packet.tos;
        let Queue { cobalt, params, now, random, .. } = self;
        let verdict = should_drop(cobalt, params, &mut packet, *now, 0, random);
        let marked =
            matches!(verdict, CobaltVerdict::Marked | CobaltVerdict::Flood { marked: true });
        assert_eq!(packet.tos, if marked { before | 3 } else { before });
        verdict
    }

    /// Packets `step` apart that all have waited for `sojourn`: when signals were given.
    fn signals(&mut self, sojourn: Span, step: Span, packets: u32) -> Vec<Time> {
        let mut signals = Vec::new();
        for _ in 0..packets {
            self.now += step;
            if self.serve(sojourn) != CobaltVerdict::Pass {
                signals.push(self.now);
            }
        }
        signals
    }
}

/// True if neither CoDel nor BLUE has anything to wind down: only time is left to wait for.
fn is_wound_down(cobalt: &CobaltState) -> bool {
    cobalt.is_at_rest(Time::MAX)
}

#[test]
fn signals_come_closer_together_as_the_square_root() {
    for (target, interval) in PRESETS {
        let mut queue = Queue::new(params(target, interval));
        // A thousandth of an interval between packets; a spell of 20 intervals.
        let step = Span(interval);
        let signals = queue.signals(Span::from_micros(target) + Span(1), step, 20_000);
        // A queue that was never congested begins without a grace interval: at its second packet.
        assert_eq!(signals[0], Time(5_000_000_000_000) + step * 2, "{interval} us");
        for (count, two) in (2u64..).zip(signals.windows(2)) {
            // interval / sqrt(count), seen with the grain of the steps.
            let spacing = i128::from(two[1].since(two[0]).0);
            let interval = i128::from(queue.params.interval.0);
            let grain = 2 * i128::from(step.0);
            let low = (spacing - grain).max(0).pow(2) * i128::from(count);
            let high = (spacing + grain).pow(2) * i128::from(count);
            assert!((low..=high).contains(&interval.pow(2)), "{interval} us, signal {count}");
        }
        // The sum over n of 1/sqrt(n) is 2 sqrt(n): 20 intervals see about 100 signals.
        assert!((95..=125).contains(&signals.len()), "{} in {interval} us", signals.len());
    }
}

#[test]
fn nothing_happens_up_to_the_target() {
    for (target, interval) in PRESETS {
        let mut queue = Queue::new(params(target, interval));
        let sojourn = Span::from_micros(target);
        assert!(queue.signals(sojourn, Span(interval * 10), 2_000).is_empty());
        assert!(is_wound_down(&queue.cobalt));
    }
}

#[test]
fn slow_lines_may_keep_four_packets() {
    let slow = CobaltParams { mtu_time: Span::from_millis(12), ..params(5_000, 100_000) };
    let mut queue = Queue::new(slow);
    let step = Span::from_millis(12);
    assert!(queue.signals(Span::from_millis(48), step, 1_000).is_empty());
    assert!(!queue.signals(Span(48_000_001), step, 1_000).is_empty());
}

#[test]
fn behind_the_bottleneck_each_bulk_flow_may_keep_two() {
    let params = CobaltParams { mtu_time: Span::from_millis(1), ..params(5_000, 100_000) };
    for (flows, sojourn, passes) in [(0, 6, false), (3, 7, false), (4, 8, true), (10, 19, true)] {
        let (mut cobalt, mut random) = (CobaltState::NEW, Random::new(1));
        let mut now = Time(1_000_000_000);
        let mut signals = 0;
        for _ in 0..1_000 {
            now += Span::from_millis(1);
            let mut packet = Packet::new(0, 1514);
            packet.enqueued = now - Span::from_millis(sojourn);
            let verdict = should_drop(&mut cobalt, &params, &mut packet, now, flows, &mut random);
            signals += u32::from(verdict != CobaltVerdict::Pass);
        }
        assert_eq!(signals == 0, passes, "{flows} flows, {sojourn} ms");
    }
}

#[test]
fn marks_follow_the_same_schedule_as_drops() {
    let run = |tos| {
        let mut queue = Queue::new(params(5_000, 100_000));
        queue.tos = tos;
        let mut verdicts = Vec::new();
        for _ in 0..3_000 {
            queue.now += Span::from_micros(700);
            verdicts.push(queue.serve(Span::from_millis(9)));
        }
        verdicts
    };
    let drops = run(0);
    assert!(drops.contains(&CobaltVerdict::Congested) && !drops.contains(&CobaltVerdict::Marked));
    // ECT(0), ECT(1), and CE, which says it already.
    for tos in [2, 1, 3] {
        let marks = run(tos);
        for (drop, mark) in drops.iter().zip(&marks) {
            let expected =
                if *drop == CobaltVerdict::Congested { CobaltVerdict::Marked } else { *drop };
            assert_eq!(*mark, expected, "ECN field {tos}");
        }
    }
}

#[test]
fn a_spell_that_ends_is_wound_down_and_resumed_where_it_stood() {
    let mut queue = Queue::new(params(5_000, 100_000));
    let (above, below, step) = (Span::from_millis(6), Span::from_millis(4), Span::from_micros(100));
    let first = queue.signals(above, step, 20_000);
    assert!((95..=125).contains(&first.len()));
    // 100 ms of rest, not the 2 s that led here: the next signal comes soon after a new spell has
    // begun, and they come closely.
    assert!(queue.signals(below, step, 1_000).is_empty());
    let second = queue.signals(above, step, 1_000);
    let at_first = first.iter().filter(|at| at.since(first[0]) < Span::from_millis(100)).count();
    assert!(second.len() > 3 * at_first, "{} against {at_first}", second.len());
    // After a long rest it begins as the first time, but with its grace interval.
    assert!(queue.signals(below, step, 100_000).is_empty());
    assert!(is_wound_down(&queue.cobalt));
    let begin = queue.now;
    let third = queue.signals(above, step, 20_000);
    let grace = third[0].since(begin);
    assert!(grace >= Span::from_millis(100) && grace < Span::from_millis(101), "{grace:?}");
}

#[test]
fn blue_rises_at_overflow_and_falls_at_emptiness_once_a_target() {
    let mut queue = Queue::new(params(5_000, 100_000));
    let Queue { cobalt, params, now, .. } = &mut queue;
    assert!(cobalt.queue_full(params, *now), "active from now on");
    for _ in 0..10 {
        assert!(!cobalt.queue_full(params, *now), "active already");
    }
    assert!(cobalt.is_unresponsive());
    // One step of 1/256, however often it was called; 16 of 1/4096 lead back.
    let mut steps = 0;
    while cobalt.is_unresponsive() {
        *now += Span(5_000_001);
        let tamed = cobalt.queue_empty(params, *now).tamed;
        assert!(!cobalt.queue_empty(params, *now).tamed, "once a target");
        steps += 1;
        assert_eq!(tamed, steps == 16);
    }
    assert_eq!(steps, 16);
    assert!(!cobalt.queue_empty(params, *now).tamed, "tame already");
}

#[test]
fn blue_drops_with_its_probability_and_never_marks() {
    for (steps, expected) in [(1, 10_000 / 256), (64, 2_500), (128, 5_000), (255, 9_961)] {
        let mut queue = Queue::new(params(5_000, 100_000));
        queue.tos = 2;
        for _ in 0..steps {
            queue.now += Span(5_000_001);
            queue.cobalt.queue_full(&queue.params, queue.now);
        }
        // CoDel comes to rest while packets do not wait; BLUE does not.
        let mut floods = 0u32;
        for packet in 0..30_000 {
            queue.now += Span::from_millis(10);
            match queue.serve(Span::ZERO) {
                CobaltVerdict::Flood { marked: false } if packet >= 20_000 => floods += 1,
                CobaltVerdict::Pass | CobaltVerdict::Flood { marked: false } => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(floods.abs_diff(expected) < 150, "{floods} of 10,000 after {steps} overflows");
    }
}

#[test]
fn blue_and_codel_can_act_on_the_same_packet() {
    let mut queue = Queue::new(params(5_000, 100_000));
    queue.tos = 2;
    for _ in 0..300 {
        queue.now += Span(5_000_001);
        queue.cobalt.queue_full(&queue.params, queue.now);
    }
    // Certain to be dropped, and marked before where a signal was due.
    queue.now += Span::from_millis(1);
    assert_eq!(queue.serve(Span::from_millis(9)), CobaltVerdict::Flood { marked: true });
    assert_eq!(queue.serve(Span::from_millis(9)), CobaltVerdict::Flood { marked: false });
}

#[test]
fn state_is_kept_until_nothing_would_be_lost_with_it() {
    let mut queue = Queue::new(params(5_000, 100_000));
    assert!(queue.cobalt.is_at_rest(queue.now));
    // A packet that passed keeps it for an interval.
    queue.serve(Span::ZERO);
    assert!(!queue.cobalt.is_at_rest(queue.now + Span::from_millis(99)));
    assert!(queue.cobalt.is_at_rest(queue.now + Span::from_millis(100)));
    // A spell keeps it until empty looks have wound it down, one step at each due time.
    queue.signals(Span::from_millis(6), Span::from_micros(100), 20_000);
    let mut looks = 0;
    while !queue.cobalt.is_at_rest(queue.now) {
        queue.now += Span::from_millis(20);
        let emptied = queue.cobalt.queue_empty(&queue.params, queue.now);
        assert_eq!(emptied.at_rest, queue.cobalt.is_at_rest(queue.now));
        looks += 1;
        assert!(looks < 1_000);
    }
    assert!(looks > 90, "{looks}");
}
