use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::sojourns::bucket_limit;
use simnel_core::wire::{Classifier, FlowKeys};

use super::*;
use crate::direction::Direction;

/// The head of a UDP packet from port `port`, and its descriptor.
fn packet(port: u16) -> (Vec<u8>, Packet) {
    let mut bytes =
        vec![0x45, 46 << 2, 0, 100, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    bytes.extend(port.to_be_bytes());
    bytes.extend([0, 53, 0, 80, 0, 0]);
    let classifier = Classifier::new(FlowHasher::new(HashKey::new(1, 2), 128));
    let packet = classifier.classify(LINK, &bytes, 100, u64::from(port));
    (bytes, packet)
}

fn all(table: &Table, now: Time) -> Vec<Flow> {
    (0..PARTS).flat_map(|part| table.copy(part, empty_part(), now).flows).collect()
}

#[test]
fn a_packet_is_queued_then_sent_or_dropped() {
    let mut table = Table::new();
    let (bytes, mut one) = packet(7);
    one.mark = 0x51;
    for _ in 0..4 {
        table.arrived(&one, &bytes, Time(5));
    }
    let mut marked = one;
    marked.flags.set(Flags::MARKED);
    table.released(&one, Span::from_millis(3));
    table.released(&marked, Span::from_millis(4));
    table.dropped(&one, DropReason::Congested);
    let flows = all(&table, Time(9));
    let [flow] = flows.as_slice() else { panic!("{flows:?}") };
    assert_eq!(flow.keys.ports, [0, 7, 0, 53]);
    assert_eq!((flow.keys.protocol, flow.dscp, flow.mark), (Some(17), 46, 0x51));
    assert_eq!((flow.packets, flow.bytes, flow.marks, flow.drops), (2, 228, 1, 1));
    assert_eq!((flow.backlog_packets, flow.backlog_bytes), (1, 114));
    assert_eq!(flow.sojourn, Span::from_millis(4));
    table.dropped(&one, DropReason::AckFilter);
    let flow = all(&table, Time(9))[0];
    assert_eq!((flow.drops, flow.ack_drops, flow.backlog_packets), (1, 1, 0));
    assert_eq!(flow.sojourn_p99(), bucket_limit(32), "4 ms are in the bucket of 3.7 to 4.2");
}

/// Parts are copied one after the other, and no packet was queued longer than its flow is old.
#[test]
fn a_flow_is_as_old_as_its_last_packet_waited_at_least() {
    let mut table = Table::new();
    let ports = 1..=200;
    for port in ports.clone() {
        let (bytes, one) = packet(port);
        table.arrived(&one, &bytes, Time(0));
    }
    let mut told = table.copy(0, empty_part(), Time(100));
    for number in 1..PARTS {
        // Something leaves between two copies.
        let now = Time(100 + number as u64);
        ports.clone().for_each(|port| table.released(&packet(port).1, now.since(Time(0))));
        told.append(table.copy(number, empty_part(), now));
    }
    let (lines, flows) = entries("wan", &[(Direction::Upload, told)], |_| None);
    assert_eq!((flows.len(), lines[0].now_ns), (200, 107));
    assert_eq!((lines[0].sojourn_ns, lines[0].sojourns.iter().sum::<u64>()), (107, 200 * 7));
    for held in flows.iter().filter_map(|flow| flow.held) {
        assert!(held.sojourn_ns <= held.age_ns && held.age_ns == 107, "{held:?}");
    }
}

/// Each lane has flows of its own, and counts its own packets.
#[test]
fn lanes_are_told_of_as_one() {
    let part = |ports: &[u16], sojourn: u64, now| {
        let mut table = Table::new();
        for &port in ports {
            let (bytes, packet) = packet(port);
            table.arrived(&packet, &bytes, Time(1));
            table.released(&packet, Span::from_millis(sojourn));
        }
        let mut joined = table.copy(0, empty_part(), now);
        (1..PARTS).for_each(|n| joined.flows.extend(table.copy(n, empty_part(), now).flows));
        (joined.whole.untracked, joined.whole.evicted) = (sojourn, 10 * sojourn);
        joined
    };
    for (first, second) in [((7, 3), (9, 4)), ((9, 4), (7, 3))] {
        let mut joined = part(&[1, 2, 3], first.1, Time(first.0));
        joined.join(part(&[4, 5], second.1, Time(second.0)));
        assert_eq!((joined.now, joined.flows.len()), (Time(9), 5));
        let Whole { sojourns, untracked, evicted } = joined.whole;
        assert_eq!((sojourns.last, untracked, evicted), (Span::from_millis(4), 7, 70));
        assert_eq!(sojourns.counts.iter().sum::<u64>(), 5);
        assert!(sojourns.counts.iter().all(|packets| [0, 2, 3].contains(packets)), "{sojourns:?}");
    }
}

/// The control socket's words: who sends to whom, and how long ago.
#[test]
fn entries_tell_of_each_flow_and_of_the_line() {
    let mut table = Table::new();
    let (bytes, one) = packet(7);
    table.arrived(&one, &bytes, Time(5));
    table.released(&one, Span::from_millis(3));
    table.arrived(&one, &bytes, Time(6));
    let mut part = table.copy(0, empty_part(), Time(9));
    (1..PARTS).for_each(|n| part.flows.extend(table.copy(n, empty_part(), Time(9)).flows));
    let rtt = |keys: FlowKeys| (keys.ports == [0, 7, 0, 53]).then_some(Span(40));
    let (lines, flows) = entries("wan", &[(Direction::Upload, part)], rtt);
    let ([line], [flow]) = (&lines[..], &flows[..]) else { panic!("{lines:?} {flows:?}") };
    let from = |end: u8| std::net::IpAddr::from([192, 0, 2, end]);
    assert_eq!((flow.source, flow.sport), (from(1), 7));
    assert_eq!((flow.destination, flow.dport, flow.protocol), (from(2), 53, 17));
    let held = flow.held.unwrap();
    assert_eq!((held.age_ns, held.idle_ns, flow.packets, held.backlog_packets), (4, 3, 1, 1));
    assert_eq!((held.sojourn_ns, line.sojourn_ns), (3_000_000, 3_000_000));
    assert_eq!(flow.rtt_ns, Some(40));
    assert_eq!((line.now_ns, line.sojourns.iter().sum::<u64>()), (9, 1));
    assert_eq!((&*line.dev, line.direction), ("wan", flow.direction));
}

#[test]
fn the_silent_give_way_and_those_with_packets_queued_stay() {
    let mut table = Table::new();
    let (bytes, held) = packet(1);
    table.arrived(&held, &bytes, Time(0));
    for port in 2..=40_000u16 {
        let (bytes, other) = packet(port);
        let now = Time(u64::from(port));
        table.arrived(&other, &bytes, now);
        table.released(&other, Span::ZERO);
    }
    let flows = all(&table, Time(40_000));
    assert_eq!(flows.len(), MOST_FLOWS);
    let port = |flow: &Flow| u16::from_be_bytes([flow.keys.ports[0], flow.keys.ports[1]]);
    assert!(flows.iter().any(|flow| port(flow) == 1 && flow.backlog_packets == 1));
    // The last eight of each set: those of the last tenth are all there but for chance.
    let recent = flows.iter().filter(|flow| port(flow) > 39_000).count();
    assert!(recent >= 990, "{recent} of the last 1000");
    let whole = table.copy(0, empty_part(), Time(0)).whole;
    assert_eq!(whole.evicted as usize, 40_000 - MOST_FLOWS);
    assert_eq!(whole.untracked, 0);
}

#[test]
fn where_all_have_packets_queued_a_newcomer_is_untracked() {
    let mut table = Table::new();
    for port in 1..=40_000u16 {
        let (bytes, packet) = packet(port);
        table.arrived(&packet, &bytes, Time(0));
    }
    let whole = table.copy(0, empty_part(), Time(0)).whole;
    assert_eq!(whole.untracked as usize, 40_000 - MOST_FLOWS);
    // What was not counted in is not counted out.
    for port in 1..=40_000u16 {
        table.released(&packet(port).1, Span::ZERO);
    }
    let flows = all(&table, Time(0));
    assert!(flows.iter().all(|flow| flow.packets == 1 && flow.backlog_packets == 0));
}

#[test]
fn silent_flows_are_told_of_for_a_minute() {
    let mut table = Table::new();
    let (bytes, one) = packet(7);
    table.arrived(&one, &bytes, Time(0));
    let later = Time(0) + FORGOTTEN + FORGOTTEN;
    assert_eq!(all(&table, later).len(), 1, "queued still");
    table.released(&one, Span::ZERO);
    assert_eq!(all(&table, Time(0) + FORGOTTEN).len(), 1);
    assert_eq!(all(&table, later).len(), 0);
}
