//! Members asked by hand: one alone is a cake, and two take turns to the nanosecond.

use simnel_core::packet::Flags;
use simnel_core::qdisc::cake::{DiffservMode, FlowMode, Member, Params};
use simnel_core::qdisc::{build, Detail, Device, Discard, DropReason, Managed, PacketOwner};
use simnel_core::random::Random;
use simnel_core::sched::parallel::Timing;
use simnel_core::{Packet, Qdisc, Rate, Span, Time};

use crate::run::FULL;
use crate::{configure, fill, packet};

const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
/// Bytes a second: 1 Gbit/s.
const RATE: u64 = 125_000_000;

/// Handles of what was dropped, with the reason.
#[derive(Default)]
struct Lost(Vec<(u64, DropReason)>);

impl PacketOwner for Lost {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        self.0.push((packet.handle, reason));
    }
}

fn params(rate: u64) -> Params {
    Params { bandwidth: Rate(rate), diffserv: DiffservMode::Besteffort, ..Params::default() }
}

fn members(params: &Params, count: usize) -> Vec<Member> {
    let device = Device { seed: SEED, ..Device::default() };
    Member::all(params, &device, count, &Timing::KERNEL).expect("parallel queues")
}

/// The next packet, whenever it may be sent.
fn next(qdisc: &mut dyn Managed, now: &mut Time, owner: &mut Lost) -> Option<Packet> {
    loop {
        *now = (*now).max(qdisc.next_event()?);
        if let Some(packet) = qdisc.dequeue(*now, owner) {
            return Some(*packet);
        }
    }
}

/// With the same dice a member without others sends, marks and drops what a cake does, in that
/// order, and tells the same about it.
#[test]
fn a_member_alone_is_a_cake() {
    for (flow_mode, ingress, largest) in [
        (FlowMode::TripleIsolate, false, FULL),
        (FlowMode::TripleIsolate, true, FULL),
        (FlowMode::DualSrchost, false, FULL),
        (FlowMode::DualDsthost, true, FULL),
        (FlowMode::Flows, false, FULL),
        (FlowMode::Hosts, false, FULL),
        // Super-packets, whose flows owe hundreds of quanta.
        (FlowMode::TripleIsolate, false, 300_000),
        (FlowMode::DualSrchost, true, 300_000),
    ] {
        let most = if largest == FULL { 200 } else { 40 };
        let mut params =
            Params { flow_mode, ingress, memlimit: most * 1_000, queues: 64, ..params(RATE) };
        if largest > FULL {
            // They may wait for long, and take much room.
            params.set_rtt(Span::from_secs(100));
            params.memlimit = 20 << 20;
        }
        let mut member = members(&params, 1).remove(0);
        let device = Device { seed: Random::derive(SEED, 0).u64(), ..Device::default() };
        let mut cake = build(&params.into(), &device).unwrap();
        let (mut lost, mut lost_by_cake) = (Lost::default(), Lost::default());
        let (mut now, mut random, mut handle) = (Time(1 << 30), Random::new(9), 0);
        for round in 0..40 {
            let case = format!("{flow_mode:?}, {ingress}, {largest}, round {round}");
            let flows = 1 + random.below(20);
            let tos = [0, 2][round % 2];
            for _ in 0..random.below(most) {
                let flow = random.below(flows);
                let mut packet = packet(u64::from(flow) * 77, flow % 5);
                packet.dst_host = flow % 3;
                packet.len = 64 + random.below(largest - 63);
                (packet.flags, packet.tos) = (Flags::IPV4, tos);
                (handle, packet.handle) = (handle + 1, handle);
                member.enqueue(&packet, now, &mut lost);
                cake.enqueue(&packet, now, &mut lost_by_cake);
                assert_eq!(member.queue_of(&packet), cake.queue_of(&packet), "{case}");
            }
            // Now and then some are left for the next round.
            let left = if round % 3 == 0 { most / 10 } else { 0 };
            let mut later = now;
            while cake.backlog().packets > left {
                let sent = next(&mut *cake, &mut now, &mut lost_by_cake).expect("packets wait");
                let own = next(&mut member, &mut later, &mut lost).expect("packets wait");
                assert_eq!((own.handle, own.tos), (sent.handle, sent.tos), "{case}");
                assert_eq!(member.placement(), cake.placement(), "{case}");
                // It may catch up with idleness, and flows without a standing queue go early.
                let early = Span(2 * 1514 * 1_000_000_000 / RATE) + Timing::KERNEL.late;
                assert!(later <= now && now.since(later) <= early, "{case}");
            }
            assert_eq!(lost.0, lost_by_cake.0, "{case}");
            assert_eq!(member.backlog(), cake.backlog(), "{case}");
            assert_eq!(member.marked(), cake.marked(), "{case}");
            assert_eq!(member.snapshot().totals.dropped, cake.snapshot().totals.dropped, "{case}");
            let tin = |qdisc: &dyn Managed| match qdisc.snapshot().detail {
                Detail::Cake(stats) => stats.tins[0],
                _ => panic!("cake"),
            };
            let (own, its) = (tin(&member), tin(&*cake));
            let counts = |tin: simnel_core::qdisc::cake::TinStats| {
                [tin.sparse_flows, tin.bulk_flows, tin.unresponsive_flows]
            };
            assert_eq!(counts(own), counts(its), "{case}");
            assert_eq!(member.class(5).is_some(), cake.class(5).is_some());
            // A cake catches up with all that it was late for while packets waited.
            if left == 0 {
                now += Span::from_millis(u64::from(random.below(300)));
            }
        }
    }
}

fn full(flow: u64, host: u32, tos: u8) -> Packet {
    let mut packet = packet(flow, host);
    (packet.tos, packet.flags) = (tos, Flags::IPV4);
    packet
}

/// Bytes of each DSCP that members send in so many microseconds from `now` on, asked each of them.
fn sent(members: &mut [Member], now: Time, micros: u64) -> [u64; 64] {
    let mut bytes = [0; 64];
    for now in (0..micros).map(|n| now + Span::from_micros(n)) {
        for member in members.iter_mut() {
            let sent = member.dequeue(now, &mut Discard);
            sent.into_iter().for_each(|p| bytes[usize::from(p.dscp())] += u64::from(p.len));
        }
    }
    bytes
}

/// Two queues send in turn, each when the line is free, and nobody asks an empty one.
#[test]
fn members_are_due_when_the_line_is_free() {
    let mut both = members(&params(RATE), 2);
    assert_eq!((both[0].next_event(), both[1].next_event()), (None, None));
    for (n, member) in both.iter_mut().enumerate() {
        fill(member, 3, &packet(n as u64, n as u32), Time::ZERO);
    }
    let mut now = Time::ZERO;
    for turn in 0..6 {
        let member = &mut both[turn % 2];
        // New flows may be two full packets early, and these are theirs.
        let due = member.next_event().expect("packets wait");
        assert!(due <= now, "{turn}: {due:?}");
        assert!(member.dequeue(now, &mut Discard).is_some(), "{turn}");
        now = Time(8 * u64::from(FULL) * (turn as u64 + 1));
        let left = both[turn % 2].backlog().packets;
        assert_eq!(left, 2 - turn as u32 / 2);
    }
    assert_eq!((both[0].next_event(), both[1].next_event()), (None, None));
    // A queue of full packets of a flow that stands waits for its time.
    fill(&mut both[0], 3, &packet(0, 0), now);
    assert!(both[0].dequeue(now, &mut Discard).is_some());
    assert!(both[0].dequeue(now, &mut Discard).is_none());
    assert_eq!(both[0].next_event(), Some(now + Span(8 * u64::from(FULL))));
    both[0].reset(&mut Discard);
    assert_eq!((both[0].next_event(), both[0].backlog().packets), (None, 0));
}

/// Flows that are not a host's only one have a part of its weight, and a tin's hosts are its own.
#[test]
fn hosts_are_told_apart_in_every_tin() {
    for dscp in [0, 8, 46] {
        let settings = Params {
            diffserv: DiffservMode::Diffserv3,
            flow_mode: FlowMode::DualSrchost,
            ..params(RATE)
        };
        let mut all = members(&settings, 2);
        // Hosts whose places are the same; the first has flows in both queues, before the other.
        let from = |flow, host: u32| {
            let mut packet = full(flow, 0, dscp << 2);
            packet.src_host = 1 | host << 10;
            packet
        };
        (0..3).for_each(|flow| fill(&mut all[0], 300, &from(8 + flow, 0), Time::ZERO));
        (0..3).for_each(|flow| fill(&mut all[1], 300, &from(24 + flow, 0), Time::ZERO));
        sent(&mut all, Time::ZERO, 300);
        fill(&mut all[0], 600, &from(16, 1), Time(300_000));
        let mut bytes = [[0u64; 2]; 2];
        for micros in 300..6_300 {
            for (member, bytes) in all.iter_mut().zip(&mut bytes) {
                let sent = member.dequeue(Time(micros * 1_000), &mut Discard);
                sent.into_iter().for_each(|p| bytes[(p.src_host >> 10) as usize] += 1514);
            }
        }
        let line = 6_000 * RATE / 1_000_000;
        // The first queue's flows of that host have a quarter; those of the second another.
        let [[first, other], [second, _]] = bytes;
        let near = |bytes: u64, parts: u64| bytes.abs_diff(line * parts / 4) <= line / 12;
        assert!(near(first, 1) && near(second, 1) && near(other, 2), "{dscp}: {bytes:?}");
        // Without the second queue the first host's three flows have half of the line.
        drop(all.pop());
        let mut alone = [0u64; 2];
        for micros in 6_300..9_300 {
            let sent = all[0].dequeue(Time(micros * 1_000), &mut Discard);
            sent.into_iter().for_each(|p| alone[(p.src_host >> 10) as usize] += 1514);
        }
        assert!(alone[0].abs_diff(alone[1]) <= line / 24, "{dscp}: {alone:?}");
    }
}

/// A tin that had nothing to send has no claim on the time before.
#[test]
fn a_tin_that_was_idle_begins_at_its_threshold() {
    let settings = Params { diffserv: DiffservMode::Diffserv3, ..params(RATE) };
    let mut all = members(&settings, 2);
    fill(&mut all[0], 1_000, &full(1, 1, 0), Time::ZERO);
    fill(&mut all[1], 10, &full(2, 2, 46 << 2), Time::ZERO);
    let now = Time(1_000_000_000);
    sent(&mut all, Time::ZERO, 3_000);
    // It begins with its first packet, which finds the line busy.
    while all[0].dequeue(now, &mut Discard).is_some() {}
    fill(&mut all[1], 1, &full(2, 2, 46 << 2), now);
    assert!(all[1].dequeue(now, &mut Discard).is_none());
    fill(&mut all[1], 1_000, &full(2, 2, 46 << 2), now);
    let bytes = sent(&mut all, now, 4_000);
    // Voice has a quarter of the line while others want the rest.
    let (voice, rest) = (bytes[46], bytes[0]);
    assert!(voice.abs_diff(4_000 * 125 / 4) <= 4_000 * 125 / 12, "{voice} and {rest}");
}

/// A tin's schedule begins with its first packet, not with those that follow.
#[test]
fn a_tin_that_waits_keeps_its_place() {
    let settings = Params { diffserv: DiffservMode::Diffserv3, ..params(RATE) };
    let mut member = members(&settings, 1).remove(0);
    let (begin, mut now) = (Time(1_000_000_000), Time(1_001_000_000));
    fill(&mut member, 1, &full(2, 2, 46 << 2), begin);
    fill(&mut member, 10, &full(1, 1, 0), now);
    fill(&mut member, 9, &full(2, 2, 46 << 2), now);
    // A quarter of a millisecond's bytes are due to voice.
    let order: Vec<u8> = (0..20)
        .filter_map(|_| next(&mut member, &mut now, &mut Lost::default()))
        .map(|packet| packet.tos >> 2)
        .collect();
    assert_eq!(order, [[46; 10], [0; 10]].concat());
}

/// The others have the line as soon as a queue is gone, and owe nothing for it.
#[test]
fn a_queue_that_is_gone_is_not_waited_for() {
    let mut all = members(&params(RATE), 2);
    for (n, member) in all.iter_mut().enumerate() {
        fill(member, 400, &packet(n as u64, n as u32), Time::ZERO);
    }
    sent(&mut all, Time::ZERO, 100);
    // The first one's device stands still: the second is ahead soon.
    let [_, second] = &mut all[..] else { panic!() };
    let asked = |n: u64| Time(100_000 + n * 20_000);
    let waits = (1..15).find(|n| sent(std::slice::from_mut(second), asked(*n), 20)[0] == 0);
    let waits = waits.expect("it waits within 300 us, of which nobody is absent yet");
    drop(all.remove(0));
    let bytes = sent(&mut all, asked(waits + 1), 50)[0];
    assert!(bytes >= 50 * 125, "{bytes}");
}

/// A new flow goes before the line is free, by two full packets, until its quantum is used up.
#[test]
fn new_flows_go_early_in_every_tin() {
    for (diffserv, dscp) in [
        (DiffservMode::Besteffort, 0),
        (DiffservMode::Diffserv3, 0),
        (DiffservMode::Diffserv3, 8),
        (DiffservMode::Diffserv3, 46),
    ] {
        let mut both = members(&Params { diffserv, ..params(RATE) }, 2);
        let packet_time = Span(8 * u64::from(FULL));
        let first = Time(1_000_000_000);
        fill(&mut both[0], 9, &full(1, 1, dscp << 2), first);
        assert!(both[0].dequeue(first, &mut Discard).is_some());
        // Both of them now wait for the line, which catches up with 500 us.
        let busy = first + Span::from_micros(1);
        while both[0].dequeue(busy, &mut Discard).is_some() {}
        fill(&mut both[0], 60, &full(1, 1, dscp << 2), busy);
        while both[0].dequeue(busy, &mut Discard).is_some() {}
        let free = both[0].next_event().expect("packets wait");
        assert!(free > busy && free.since(busy) <= packet_time, "{dscp}: {free:?}");
        fill(&mut both[1], 3, &full(2, 2, dscp << 2), busy);
        assert!(both[1].next_event().expect("packets wait") <= busy, "{dscp}");
        assert!(both[1].dequeue(busy, &mut Discard).is_some(), "{dscp}");
        assert!(both[1].dequeue(busy, &mut Discard).is_none(), "{dscp}");
        assert_eq!(both[1].next_event(), Some(free + packet_time), "{dscp}");
    }
}

/// Packets of flows without a standing queue are none of the others' rounds.
#[test]
fn new_flows_take_nothing_from_the_standing_ones_beside_them() {
    let mut all = members(&params(RATE), 2);
    for (n, member) in all.iter_mut().enumerate() {
        fill(member, 600, &packet(n as u64, n as u32), Time::ZERO);
    }
    let mut bytes = [[0u64; 2]; 2];
    for micros in 0..4_000u64 {
        let now = Time(micros * 1_000);
        if micros % 50 == 0 {
            all[0].enqueue(&packet(8 + micros / 50 * 8, 9 + micros as u32 / 50), now, &mut Discard);
        }
        for (member, bytes) in all.iter_mut().zip(&mut bytes) {
            let sent = member.dequeue(now, &mut Discard);
            sent.into_iter().for_each(|p| bytes[usize::from(p.flow > 7)] += u64::from(p.len));
        }
    }
    let [[first, new], [second, _]] = bytes;
    assert!(new >= 78 * 1514, "{bytes:?}");
    assert!(first.abs_diff(second) <= 20_000, "{bytes:?}");
}

/// In one queue the seat's tin is served, by thresholds: voice is on schedule at once.
#[test]
fn a_member_serves_the_tin_whose_turn_it_is() {
    let mut member =
        members(&Params { diffserv: DiffservMode::Diffserv3, ..params(RATE) }, 1).remove(0);
    let (mut now, mut lost) = (Time(1 << 30), Lost::default());
    fill(&mut member, 90, &full(1, 1, 0), now);
    for _ in 0..40 {
        next(&mut member, &mut now, &mut lost).expect("packets wait");
    }
    let mut small = full(2, 2, 46 << 2);
    small.len = 200;
    fill(&mut member, 5, &small, now);
    for place in [2, 2, 2, 2, 2, 0] {
        next(&mut member, &mut now, &mut lost).expect("packets wait");
        assert_eq!(member.placement().map(|(tin, _)| tin), Some(place));
    }
}

/// A queue whose packets were all dropped is not waited for.
#[test]
fn a_queue_that_a_change_empties_leaves_the_line() {
    let mut all = members(&params(RATE), 2);
    for (n, member) in all.iter_mut().enumerate() {
        fill(member, 400, &packet(n as u64, n as u32), Time::ZERO);
    }
    sent(&mut all, Time::ZERO, 100);
    let asked = |n: u64| Time(100_000 + n * 20_000);
    let waits = (1..15).find(|n| sent(&mut all[1..], asked(*n), 20)[0] == 0).expect("it waits");
    configure(&mut all[..1], 100 + 20 * (waits + 1), |params| params.memlimit = 1);
    assert_eq!(all[0].backlog().packets, 0);
    let bytes = sent(&mut all[1..], asked(waits + 1), 50)[0];
    assert!(bytes >= 50 * 125, "{bytes}");
}

/// Marks, drops and classes are told as those of a cake are.
#[test]
fn a_member_tells_of_marks_and_flows() {
    let mut member = members(&params(1_250_000), 1).remove(0);
    let marked = full(1, 1, 2);
    fill(&mut member, 90, &marked, Time::ZERO);
    fill(&mut member, 90, &packet(2, 2), Time::ZERO);
    let (mut now, mut lost, mut marks) = (Time::ZERO, Lost::default(), 0);
    for _ in 0..110 {
        let sent = next(&mut member, &mut now, &mut lost).expect("packets wait");
        marks += u64::from(sent.flags.has(Flags::MARKED));
    }
    let dropped = member.snapshot().totals.dropped[DropReason::Congested as usize];
    assert!(marks > 1 && dropped > 1, "{marks} and {dropped}");
    assert_eq!((member.marked(), lost.0.len() as u64), (marks, dropped));
    let queue = member.queue_of(&marked).expect("in use");
    assert_eq!(queue, 1);
    let class = member.class(queue).expect("a flow");
    assert!(class.is_used && !class.is_sparse && class.count > 0, "{class:?}");
    assert_eq!(
        (member.class(3).map(|class| class.is_used), member.class(4_096)),
        (Some(false), None)
    );
    assert!(member.placement() == Some((0, 1)) || member.placement() == Some((0, 2)));
    member.reset(&mut lost);
    assert_eq!(
        (member.backlog().packets, member.next_event(), member.queue_of(&marked)),
        (0, None, None)
    );
}
