//! Members asked by hand: one alone is a cake, and two take turns to the nanosecond.

use simnel_core::packet::Flags;
use simnel_core::qdisc::cake::{DiffservMode, FlowMode, Member, Params};
use simnel_core::qdisc::{build, Detail, Device, DropReason, Managed, PacketOwner};
use simnel_core::random::Random;
use simnel_core::sched::parallel::Timing;
use simnel_core::{Packet, Qdisc, Rate, Span, Time};

use crate::packet;

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
    for (flow_mode, ingress) in [
        (FlowMode::TripleIsolate, false),
        (FlowMode::TripleIsolate, true),
        (FlowMode::DualSrchost, false),
        (FlowMode::DualDsthost, true),
        (FlowMode::Flows, false),
        (FlowMode::Hosts, false),
    ] {
        let params = Params { flow_mode, ingress, memlimit: 200_000, queues: 64, ..params(RATE) };
        let mut member = members(&params, 1).remove(0);
        let device = Device { seed: Random::derive(SEED, 0).u64(), ..Device::default() };
        let mut cake = build(&params.into(), &device).unwrap();
        let (mut lost, mut lost_by_cake) = (Lost::default(), Lost::default());
        let (mut now, mut random, mut handle) = (Time(1 << 30), Random::new(9), 0);
        for round in 0..40 {
            let case = format!("{flow_mode:?}, {ingress}, round {round}");
            let flows = 1 + random.below(20);
            let tos = [0, 2][round % 2];
            for _ in 0..random.below(200) {
                let flow = random.below(flows);
                let mut packet = packet(u64::from(flow) * 77, flow % 5);
                packet.dst_host = flow % 3;
                packet.len = 64 + random.below(1_451);
                (packet.flags, packet.tos) = (Flags::IPV4, tos);
                (handle, packet.handle) = (handle + 1, handle);
                member.enqueue(&packet, now, &mut lost);
                cake.enqueue(&packet, now, &mut lost_by_cake);
                assert_eq!(member.queue_of(&packet), cake.queue_of(&packet), "{case}");
            }
            // Now and then some are left for the next round.
            let left = if round % 3 == 0 { 20 } else { 0 };
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
