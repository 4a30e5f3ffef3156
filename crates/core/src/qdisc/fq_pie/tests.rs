//! `fq_pie` beyond its parts: a clock for all queues, limits, and flows that keep apart.

use super::*;
use crate::packet::Flags;
use crate::qdisc::{netlink, Backlog, Discard, DropReason, Managed, Qdisc, Snapshot};
use crate::time::Span;

fn fq_pie(change: impl FnOnce(&mut Params)) -> FqPie {
    let mut params = Params::default();
    change(&mut params);
    FqPie::new(&params, &Device::default()).unwrap()
}

fn packet(flow: u64, tos: u8) -> Packet {
    let mut packet = Packet::new(flow, 1000);
    (packet.flow, packet.tos, packet.flags) = (flow << 22, tos, Flags::IPV4);
    packet
}

fn stats(qdisc: &FqPie) -> Stats {
    match qdisc.snapshot().detail {
        Detail::FqPie(stats) => stats,
        other => panic!("{other:?}"),
    }
}

const STEP: Span = Span::from_micros(1000);

/// Flow 1 sends `load` packets a millisecond for `ms`, flow 2 one in ten; the line takes one a
/// millisecond. What each lost and the clock's end.
fn overload(qdisc: &mut FqPie, ms: u64, load: u64, tos: u8) -> ([u64; 2], Time) {
    let (mut sent, mut came, mut now) = ([0; 2], [0; 2], Time::ZERO);
    for n in 0..ms {
        now += STEP;
        for _ in 0..load {
            qdisc.enqueue(&packet(1, tos), now, &mut Discard);
            came[0] += 1;
        }
        if n % 10 == 0 {
            qdisc.enqueue(&packet(2, tos), now, &mut Discard);
            came[1] += 1;
        }
        if let Some(packet) = qdisc.dequeue(now, &mut Discard) {
            sent[packet.handle as usize - 1] += 1;
        }
    }
    while let Some(packet) = qdisc.dequeue(now, &mut Discard) {
        sent[packet.handle as usize - 1] += 1;
    }
    ([came[0] - sent[0], came[1] - sent[1]], now)
}

#[test]
fn the_flow_that_stands_is_dropped_and_the_other_spared() {
    let mut qdisc = fq_pie(|_| {});
    let (lost, _) = overload(&mut qdisc, 10_000, 2, 0);
    assert!(lost[0] > 9_000 && lost[1] == 0, "{lost:?}");
    let stats = stats(&qdisc);
    assert_eq!(u64::from(stats.dropped), lost[0]);
    assert_eq!(stats.pkts_in, 21_000 - stats.dropped);
}

#[test]
fn marks_replace_drops_up_to_ecn_prob() {
    for (ecn_prob, marks_only) in [(100, true), (0, false)] {
        let mut qdisc = fq_pie(|params| (params.aqm.ecn, params.ecn_prob) = (true, ecn_prob));
        // Soon enough after the first update that the probability is not yet 1.
        let (lost, _) = overload(&mut qdisc, 700, 2, 2);
        let marks = stats(&qdisc).ecn_mark;
        assert_eq!((lost[0] == 0, marks > 20), (marks_only, marks_only), "{lost:?}, {marks}");
        assert_eq!(lost[0] > 20, !marks_only, "{lost:?}");
    }
}

#[test]
fn a_full_queue_refuses_the_newcomer_and_memory_is_only_counted() {
    let mut qdisc = fq_pie(|params| {
        (params.queues.limit, params.queues.memory_limit) = (10, 4000);
    });
    for n in 0..12 {
        qdisc.enqueue(&packet(n % 2, 0), Time(n), &mut Discard);
    }
    let stats = stats(&qdisc);
    assert_eq!((stats.overlimit, stats.dropped, qdisc.backlog().packets), (2, 2, 10));
    // Beyond 4000 and the packet's own 2304 from the fourth arrival on.
    assert_eq!((stats.overmemory, stats.memory_used), (7, 10 * 2304));
    assert_eq!(qdisc.snapshot().totals.dropped[DropReason::Overlimit as usize], 2);
}

#[test]
fn idle_time_is_caught_up_with_in_any_number_of_steps() {
    let mut often = fq_pie(|_| {});
    let (_, end) = overload(&mut often, 3_000, 2, 0);
    let mut once = often.clone();
    for ms in 0..5_000 {
        often.dequeue(end + Span::from_millis(ms), &mut Discard);
    }
    let later = end + Span::from_millis(4_999);
    let after = |qdisc: &mut FqPie| {
        (0..200u64)
            .map(|n| {
                qdisc.enqueue(&packet(1, 0), later + STEP * n, &mut Discard);
                stats(qdisc).dropped
            })
            .last()
    };
    assert_eq!(after(&mut often), after(&mut once));
}

#[test]
fn savings_serve_here_too() {
    let mut qdisc = fq_pie(|params| params.queues.savings = Some(5_000));
    let (lost, _) = overload(&mut qdisc, 2_000, 1, 0);
    assert_eq!(lost[1], 0);
    assert_eq!(qdisc.next_event(), None);
}

#[test]
fn an_hour_of_updates_for_all_flows_costs_a_call_little() {
    let mut qdisc = fq_pie(|params| {
        (params.queues.flows, params.queues.quantum) = (65_536, Some(1));
    });
    for n in 0..4_000 {
        let packet = Packet { flow: n * 0xf_4243, ..packet(1, 0) };
        qdisc.enqueue(&packet, Time(n * 100_000), &mut Discard);
    }
    // The last comes to a queue that has stood for an hour.
    for hour in [0, 3_600] {
        let now = Time::ZERO + Span::from_secs(10 + hour);
        crate::steps::take();
        qdisc.enqueue(&packet(0, 0), now, &mut Discard);
        assert!(crate::steps::take() <= crate::steps::MOST);
    }
    let now = Time::ZERO + Span::from_secs(3_700);
    let (mut calls, mut most) = (0, 0);
    while qdisc.backlog().packets > 0 {
        crate::steps::take();
        qdisc.dequeue(now, &mut Discard);
        most = most.max(crate::steps::take());
        calls += 1;
    }
    assert!(most <= crate::steps::MOST, "{most} steps");
    assert!(calls < 20_000, "{calls} calls");
}

#[test]
fn updates_in_one_go_are_those_that_were_due() {
    // Two alike, one of which is asked about every update by changes that change nothing.
    let mut lazy = fq_pie(|_| {});
    let mut eager = lazy.clone();
    let config = crate::qdisc::Config::FqPie(Params::default());
    let mut random = Random::new(3);
    let mut now = Time::ZERO;
    for n in 0..6_000u64 {
        now += Span(u64::from(random.below(2_000_000)));
        let packet = packet(u64::from(random.below(5)), 0);
        let mut left = [(0, 0); 2];
        for (qdisc, left) in [&mut lazy, &mut eager].into_iter().zip(&mut left) {
            if n % 3 > 0 {
                qdisc.enqueue(&packet, now, &mut Discard);
            }
            let mut sent = 0;
            if n % 2 == 0 {
                sent = qdisc.dequeue(now, &mut Discard).map_or(0, |packet| packet.handle);
            }
            *left = (sent, qdisc.snapshot().totals.drops());
        }
        assert_eq!(left[0], left[1], "{n}");
        eager.configure(&config, now, &mut Discard).unwrap();
    }
    assert!(lazy.snapshot().totals.drops() > 100);
}

#[test]
fn a_flow_is_woken_up_by_a_third_of_its_share_of_the_limit() {
    let device = Device { mtu: 1_000, ..Device::default() };
    let mut params = Params::default();
    (params.queues.limit, params.queues.flows) = (600, 20);
    params.aqm.on_off = true;
    let same = Law::new(&params.aqm, 1_000, 30_000, device.arithmetic);
    assert_eq!(law(&params, &device), same);
    assert_eq!(Controlled::new(&params, &device).unwrap().law, same);
}

#[test]
fn arrivals_departures_and_losses_are_counted() {
    let mut params = Params::default();
    params.queues.memory_limit = 10_000;
    let mut pie = Controlled::new(&params, &Device::default()).unwrap();
    let mut state = pie.state();
    let packet = packet(1, 0);
    // What the packet itself takes is not yet too much.
    let full = 10_000 + u64::from(packet.truesize);
    for (memory, overmemory) in [(0, 0), (full, 0), (full + 1, 1)] {
        assert_eq!(pie.arrives(&mut state, &packet, 0, memory), Verdict::Pass);
        assert_eq!(pie.stats.overmemory, overmemory, "{memory}");
    }
    pie.overflowed(&mut state, Loss { packets: 5, memory: false });
    pie.refused(&mut state, 0);
    let Stats { pkts_in, dropped, overlimit, .. } = pie.stats;
    assert_eq!((pkts_in, dropped, overlimit), (3, 6, 1));
    let lists = Lists { new_flow_count: 7, new: 8, old: 9, memory: 10, memory_limit: 10_000 };
    let mut totals = Totals::default();
    let Detail::FqPie(stats) = pie.statistics(&lists, &mut totals) else { panic!() };
    let lists = (stats.new_flow_count, stats.new_flows_len, stats.old_flows_len);
    assert_eq!((lists, stats.memory_used), ((7, 8, 9), 10));
    let mut room = [0; 64];
    let snapshot = Snapshot { totals, backlog: Backlog::default(), detail: Detail::FqPie(stats) };
    let len = netlink::write_statistics(&snapshot, &mut room).unwrap();
    let words: std::vec::Vec<u32> =
        room[..len].chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect();
    // struct tc_fq_pie_xstats.
    assert_eq!(words, [3, 6, 1, 1, 0, 7, 8, 9, 10]);
}

/// Updates that were due while a packet waited see its bytes, too.
#[test]
fn what_leaves_was_there_until_now() {
    let mut pie = Controlled::new(&Params::default(), &Device::default()).unwrap();
    let (packet, mut state) = (packet(1, 0), pie.state());
    let seconds = |n: u64| Time(n * 1_000_000_000);
    state.dequeued(&pie.law, seconds(0), 1000, Time(40_000_000), 50_000);
    state.update_often(&pie.law, 50_000, 10_000);
    state.dequeued(&pie.law, seconds(5), 1000, seconds(5), 0);
    state.update_often(&pie.law, 0, 1);
    assert!(state.probability() > 0);
    let mut expected = state;
    expected.update_often(&pie.law, 1000, 1);
    let enqueued = Packet { enqueued: seconds(6), ..packet };
    expected.dequeued(&pie.law, seconds(6), 1000, seconds(6), 0);
    pie.updates += 1;
    state.updates = pie.updates - 1;
    expected.updates = pie.updates;
    assert!(pie.passes(&mut state, &enqueued, Left { queue: 0, all: 0 }, seconds(6)));
    assert_eq!(state, expected);
}
