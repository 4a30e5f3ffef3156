//! `fq_codel` beyond its parts: hashing, overflow, settings, savings.

use super::*;
use crate::qdisc::{Config, Discard, DropReason, Managed, PacketOwner, Qdisc};
use crate::time::Span;
use std::vec::Vec;

/// A packet of `flow`, which is also the number of its queue.
fn packet(handle: u64, flow: u64, len: u32) -> Packet {
    let mut packet = Packet::new(handle, len);
    packet.flow = flow << 22;
    packet
}

fn fq_codel(change: impl FnOnce(&mut Params)) -> FqCodel {
    let mut params = Params::default();
    change(&mut params);
    FqCodel::new(&params, &Device::default()).unwrap()
}

fn stats(qdisc: &FqCodel) -> Stats {
    match qdisc.snapshot().detail {
        Detail::FqCodel(stats) => stats,
        other => panic!("{other:?}"),
    }
}

#[derive(Default)]
struct Lost(Vec<u64>);
impl PacketOwner for Lost {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        assert_eq!(reason, DropReason::Overlimit);
        self.0.push(packet.handle);
    }
}

#[test]
fn overflow_costs_the_longest_queue_half_of_its_bytes() {
    let (mut qdisc, mut lost) = (fq_codel(|params| params.queues.limit = 20), Lost::default());
    for n in 0..12 {
        qdisc.enqueue(&packet(n, 5, 1000), Time(n), &mut lost);
    }
    for n in 12..20 {
        qdisc.enqueue(&packet(n, 900, 1500), Time(n), &mut lost);
    }
    assert!(lost.0.is_empty());
    // Queue 5 has 12,000 bytes and queue 900 as many: the first of them gives 6,000.
    qdisc.enqueue(&packet(20, 7, 100), Time(20), &mut lost);
    assert_eq!(lost.0, [0, 1, 2, 3, 4, 5]);
    assert_eq!((stats(&qdisc).drop_overlimit, stats(&qdisc).drop_overmemory.0), (6, 0));
}

#[test]
fn overflow_costs_no_more_than_the_batch() {
    let change = |params: &mut Params| {
        (params.queues.memory_limit, params.drop_batch) = (10 * 2304, 3);
    };
    let (mut qdisc, mut lost) = (fq_codel(change), Lost::default());
    for n in 0..11 {
        qdisc.enqueue(&packet(n, 5, 1514), Time(n), &mut lost);
    }
    assert_eq!(lost.0, [0, 1, 2]);
    let Stats { drop_overmemory, memory_used, .. } = stats(&qdisc);
    assert_eq!((drop_overmemory.0, memory_used.0), (3, 8 * 2304));
}

#[test]
fn a_packet_without_bytes_is_not_overlooked() {
    let (mut qdisc, mut lost) = (fq_codel(|params| params.queues.limit = 1), Lost::default());
    for n in 0..5 {
        qdisc.enqueue(&packet(n, n, 0), Time(n), &mut lost);
    }
    assert_eq!((lost.0.len(), qdisc.backlog().packets), (4, 1));
}

#[test]
fn queues_are_found_by_the_hash_scaled_to_their_number() {
    let mut qdisc = fq_codel(|params| params.queues.flows = 3);
    let third = (1u64 << 32) / 3 + 1;
    for (n, hash) in
        [0, third - 1, third, 2 * third - 1, 2 * third, u64::MAX].into_iter().enumerate()
    {
        let mut packet = Packet::new(n as u64, 100);
        packet.flow = hash;
        qdisc.enqueue(&packet, Time(0), &mut Discard);
    }
    assert_eq!(stats(&qdisc).new_flow_count, 3);
}

#[test]
fn a_new_flow_overtakes_a_standing_queue() {
    let mut qdisc = fq_codel(|_| {});
    for n in 0..10 {
        qdisc.enqueue(&packet(n, 1, 1514), Time(0), &mut Discard);
    }
    let next = |qdisc: &mut FqCodel| qdisc.dequeue(Time(1), &mut Discard).unwrap().handle;
    assert_eq!(next(&mut qdisc), 0);
    qdisc.enqueue(&packet(100, 2, 100), Time(1), &mut Discard);
    assert_eq!((stats(&qdisc).new_flows_len, stats(&qdisc).old_flows_len), (2, 0));
    // The first flow's quantum is used up: it goes behind the new one.
    assert_eq!(next(&mut qdisc), 100);
    assert_eq!(stats(&qdisc).old_flows_len, 1);
    assert_eq!(next(&mut qdisc), 1);
}

/// Flow 1 always has packets; flow 2 sends bursts of ten and pauses. The packets of each in 20,000
/// turns, and the most turns that the first of a burst waited.
fn shares(savings: Option<u32>) -> ([u32; 2], u64) {
    let mut qdisc = fq_codel(|params| {
        params.queues.savings = savings;
        // Its law is not the matter here.
        params.aqm.target = crate::time::Span::from_secs(100);
    });
    let (mut sent, mut wait) = ([0; 2], 0);
    for turn in 0..20_000u64 {
        if turn % 25 == 0 {
            (0..10)
                .for_each(|n| qdisc.enqueue(&packet(turn + n, 2, 1514), Time(turn), &mut Discard));
        }
        if turn == 0 || qdisc.backlog().packets < 40 {
            (0..4).for_each(|_| qdisc.enqueue(&packet(0, 1, 1514), Time(turn), &mut Discard));
        }
        let packet = qdisc.dequeue(Time(turn), &mut Discard).unwrap();
        let flow = (packet.flow >> 22) as usize;
        sent[flow - 1] += 1;
        if flow == 2 && packet.handle % 25 == 0 {
            wait = wait.max(turn - packet.handle);
        }
    }
    (sent, wait)
}

#[test]
fn savings_let_bursts_pass_and_delay_no_sparse_flow() {
    let (with, wait) = shares(Some(15_140));
    assert!(with[1].abs_diff(8_000) < 20, "{with:?}");
    assert!(wait <= 2, "{wait} turns");
}

#[test]
fn settings_change_without_loss_and_without_reordering() {
    let mut qdisc = fq_codel(|params| params.queues.flows = 4);
    for n in 0..100u64 {
        qdisc.enqueue(&packet(n, n % 7 * 140, 600), Time(n), &mut Discard);
    }
    for (flows, savings) in [(1024, None), (16, Some(3000)), (2, None)] {
        let mut params = Params::default();
        (params.queues.flows, params.queues.savings) = (flows, savings);
        qdisc.configure(&Config::FqCodel(params), Time(100), &mut Discard).unwrap();
        assert_eq!(qdisc.backlog().packets, 100);
    }
    let mut last = [0; 7];
    for _ in 0..100 {
        let handle = qdisc.dequeue(Time(101), &mut Discard).unwrap().handle;
        assert!(handle >= last[handle as usize % 7]);
        last[handle as usize % 7] = handle;
    }
    let mut params = Params::default();
    params.queues.limit = 3;
    (0..10).for_each(|n| qdisc.enqueue(&packet(n, n * 10, 600), Time(102), &mut Discard));
    qdisc.configure(&Config::FqCodel(params), Time(103), &mut Discard).unwrap();
    assert_eq!(qdisc.backlog().packets, 3);
    params.queues.flows = 0;
    assert!(qdisc.configure(&Config::FqCodel(params), Time(104), &mut Discard).is_err());
    assert_eq!(qdisc.backlog().packets, 3);
}

#[test]
fn drops_of_codel_leave_the_scheduler_in_order() {
    for savings in [None, Some(5000)] {
        let mut qdisc = fq_codel(|params| params.queues.savings = savings);
        let mut sent = 0;
        // 1 ms a packet while 1.5 come: queues stand, and CoDel drops.
        for n in 0..30_000u64 {
            let now = Time(n * 1_000_000);
            qdisc.enqueue(&packet(n, n % 3, 1000), now, &mut Discard);
            if n % 2 == 0 {
                qdisc.enqueue(&packet(n, 3 + n % 5, 300), now, &mut Discard);
            }
            sent += u32::from(qdisc.dequeue(now, &mut Discard).is_some());
        }
        let snapshot = qdisc.snapshot();
        let congested = snapshot.totals.dropped[DropReason::Congested as usize];
        assert!(sent == 30_000 && congested > 500, "{sent} sent, {congested} dropped");
        while qdisc.dequeue(Time(31_000_000_000), &mut Discard).is_some() {}
        assert_eq!(qdisc.backlog(), crate::qdisc::Backlog::default());
        assert_eq!(qdisc.next_event(), None);
    }
}

#[test]
fn thousands_of_flows_with_the_least_quantum_cost_a_call_little() {
    let params = Params {
        queues: Settings {
            flows: 65_536,
            quantum: Some(1),
            limit: 60_000,
            ..Params::default().queues
        },
        ..Params::default()
    };
    let mut qdisc = FqCodel::new(&params, &Device::default()).unwrap();
    let mut most = 0;
    let mut count = |qdisc: &FqCodel| {
        most = most.max(crate::steps::take());
        qdisc.backlog().packets
    };
    // Memory runs short, too: the longest of all queues is looked for again and again.
    for n in 0..80_000u64 {
        let mut packet = Packet::new(n, 1514);
        packet.flow = u64::from((n % 30_000) as u32 * 0x9e37);
        qdisc.enqueue(&packet, Time(n), &mut Discard);
        count(&qdisc);
    }
    // All have waited for too long.
    let mut calls = 0;
    while count(&qdisc) > 0 {
        qdisc.dequeue(Time(90_000_000_000 + calls * 1_000_000), &mut Discard);
        calls += 1;
    }
    assert!(most <= crate::steps::MOST, "{most} steps");
    assert!(calls < 200_000, "{calls} calls");
}

#[test]
fn a_class_names_a_queue_whatever_the_flow() {
    let qdisc = fq_codel(|params| params.queues.flows = 1024);
    for (class, queue) in [
        (0x8001_0001, 0),
        (0x8001_0400, 1023),
        (0x8001_0401, 5),
        (0x8001_0000, 5),
        (0x8002_0001, 5),
        (1, 5),
        (0, 5),
    ] {
        let packet = Packet { class, ..packet(1, 5, 100) };
        assert_eq!(qdisc.queue_of(&packet), Some(queue), "{class:x}");
    }
}

#[test]
fn a_class_tells_what_its_queue_has_learnt() {
    let mut qdisc = fq_codel(|_| {});
    // Flow 5 stands, flow 6 comes and goes.
    for ms in 0..2_000u64 {
        let now = Time::ZERO + Span::from_millis(ms);
        (0..2).for_each(|n| qdisc.enqueue(&packet(n, 5, 1000), now, &mut Discard));
        if ms % 10 == 0 {
            qdisc.enqueue(&packet(9, 6, 500), now, &mut Discard);
        }
        qdisc.dequeue(now, &mut Discard);
    }
    let standing = qdisc.class(5).unwrap();
    assert!(standing.count > 5 && standing.lastcount > 0, "{standing:?}");
    assert!(standing.drop_next.is_some() && !standing.is_sparse, "{standing:?}");
    let now = Time::ZERO + Span::from_secs(2);
    qdisc.enqueue(&packet(9, 7, 500), now, &mut Discard);
    let fresh = qdisc.class(7).unwrap();
    assert_eq!((fresh.count, fresh.drop_next, fresh.is_sparse), (0, None, true));
    assert_eq!(fresh.deficit, 1514);
    while qdisc.dequeue(now, &mut Discard).is_some() {}
    assert_eq!(qdisc.class(5).unwrap().drop_next, None);
}

/// Settings that leave the number of queues and savings alone leave turns alone.
#[test]
fn queues_are_sorted_anew_where_their_number_changes() {
    for (flows, savings, keeps) in
        [(1024, None, true), (512, None, false), (1024, Some(9_000), false)]
    {
        let mut qdisc = fq_codel(|_| {});
        (0..4).for_each(|n| qdisc.enqueue(&packet(n, 5, 1000), Time(n), &mut Discard));
        assert!((0..2).all(|n| qdisc.dequeue(Time(n), &mut Discard).is_some()));
        let mut params = Params::default();
        (params.queues.flows, params.queues.savings) = (flows, savings);
        params.queues.limit = 5_000;
        qdisc.configure(&Config::FqCodel(params), Time(9), &mut Discard).unwrap();
        let queue = qdisc.queue_of(&packet(0, 5, 0)).unwrap();
        let class = qdisc.class(queue).unwrap();
        assert_eq!((class.backlog.packets, qdisc.backlog().packets), (2, 2), "{flows}");
        // It has sent 2,000 bytes of its first 1,514.
        assert_eq!(class.deficit == 1514 - 2000, keeps, "{flows} {savings:?}: {class:?}");
    }
    let mut none = Params::default();
    none.queues.limit = 0;
    assert!(FqCodel::new(&none, &Device::default()).is_err());
}

#[test]
fn memory_is_short_where_it_is_over_its_limit_only() {
    let truesize = packet(0, 5, 1000).truesize;
    for (memory_limit, overmemory) in [(6 * truesize, 0), (6 * truesize - 1, 1)] {
        let mut qdisc = fq_codel(|params| {
            (params.queues.limit, params.queues.memory_limit) = (5, memory_limit);
            params.drop_batch = 1;
        });
        (0..6).for_each(|n| qdisc.enqueue(&packet(n, 5, 1000), Time(n), &mut Discard));
        let Stats { drop_overlimit, drop_overmemory, .. } = stats(&qdisc);
        assert_eq!((drop_overlimit, drop_overmemory.0), (1, overmemory), "{memory_limit}");
    }
}

/// The drop that begins a spell is no reason to send nothing.
#[test]
fn a_call_that_drops_sends_the_next_packet() {
    let mut qdisc = fq_codel(|_| {});
    (0..40).for_each(|n| qdisc.enqueue(&packet(n, 5, 1000), Time(n), &mut Discard));
    for ms in (200..1_000).step_by(100) {
        let now = Time::ZERO + Span::from_millis(ms);
        assert!(qdisc.dequeue(now, &mut Discard).is_some(), "{ms}");
    }
    assert!(qdisc.snapshot().totals.drops() > 3);
}

/// Linux's `fq_codel_dequeue`: as in `codel`, each queue for itself.
#[test]
fn a_spell_ends_with_the_queue() {
    let mut qdisc = fq_codel(|_| {});
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    for (handle, len) in [(1, 1_500), (2, 1_500), (3, 3_000)] {
        qdisc.enqueue(&packet(handle, 5, len), at(100), &mut Discard);
    }
    let mut next = |ms| {
        let left = qdisc.dequeue(at(ms), &mut Discard).map(|packet| packet.handle);
        (left, qdisc.class(5).unwrap().drop_next.is_some())
    };
    assert_eq!(next(110), (Some(1), false));
    assert_eq!(next(220), (Some(3), true));
    assert_eq!(next(221), (None, false));
}

/// With savings, too: the packet after a drop leaves, whether the queue's deficit covers it or not.
#[test]
fn a_drop_does_not_end_a_turn() {
    let mut qdisc = fq_codel(|params| params.queues.savings = Some(3_000));
    let at = |ms| Time::ZERO + Span::from_millis(ms);
    for (handle, len) in [(1, 1_500), (2, 1_000), (3, 3_000)] {
        qdisc.enqueue(&packet(handle, 5, len), at(100), &mut Discard);
    }
    let next =
        |qdisc: &mut FqCodel, ms| qdisc.dequeue(at(ms), &mut Discard).map(|packet| packet.handle);
    assert_eq!(next(&mut qdisc, 110), Some(1));
    qdisc.enqueue(&packet(4, 9, 100), at(215), &mut Discard);
    assert_eq!([next(&mut qdisc, 220), next(&mut qdisc, 220)], [Some(3), Some(4)]);
}

/// With as many queues as before each keeps its state, with others all begin anew.
#[test]
fn a_spell_goes_on_in_as_many_queues() {
    for (savings, flows, count) in [(None, 1024, 1), (Some(3_000), 1024, 1), (None, 512, 0)] {
        let mut qdisc = fq_codel(|_| {});
        let at = |ms| Time::ZERO + Span::from_millis(ms);
        for handle in 0..9 {
            qdisc.enqueue(&packet(handle, 0, 1_500), at(100), &mut Discard);
        }
        qdisc.dequeue(at(110), &mut Discard);
        qdisc.dequeue(at(220), &mut Discard);
        assert_eq!(qdisc.class(0).unwrap().count, 1);
        let mut params = Params::default();
        (params.queues.savings, params.queues.flows) = (savings, flows);
        qdisc.configure(&Config::FqCodel(params), at(230), &mut Discard).unwrap();
        assert_eq!(qdisc.class(0).unwrap().count, count, "{savings:?} {flows}");
    }
}
