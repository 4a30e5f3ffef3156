//! Promises of disciplines beyond the contract: shares, priorities, rates, no starvation. Each
//! line of `support::table` says which of these hold for it.

mod support;

use proptest::collection::vec;
use proptest::prelude::*;
use simnel_core::packet::Flags;
use simnel_core::qdisc::{Config, Discard, DropReason, Managed, PacketOwner};
use simnel_core::random::Random;
use simnel_core::{Packet, Span, Time};
use support::input::Input;
use support::packets::random_packet;
use support::saturation::{lone_flow, saturate, saturate_deeply, shares, Flow, Sent};
use support::table::{make, Promise, DISCIPLINES};

/// Largest error of a share, as a part of it: 5 %.
const TOLERANCE: u64 = 20;

/// The lines of the table that promise `promise`.
fn with(promise: Promise) -> impl Iterator<Item = &'static str> {
    let lines = DISCIPLINES.iter().filter(move |(_, promises)| promises.contains(&promise));
    let words: Vec<&str> = lines.map(|(words, _)| *words).collect();
    assert!(!words.is_empty(), "nobody promises {promise:?}");
    words.into_iter()
}

fn assert_close(share: u64, expected: u64, what: &str) {
    let off = share.abs_diff(expected);
    assert!(off * TOLERANCE <= expected, "{what}: {share} of 10,000 instead of {expected}");
}

#[test]
fn backlogged_flows_send_equally_much_whatever_their_packets() {
    let lengths = [1514, 1514, 1000, 600, 200, 64];
    let flows: Vec<Flow> = (0..).zip(lengths).map(|(n, len)| lone_flow(n, len)).collect();
    for words in with(Promise::EqualFlows) {
        let sent = saturate(make(words).as_mut(), &flows, 60_000);
        // The beginning belongs to sparse flows, each of which starts with a quantum of its own.
        for (flow, share) in shares::<6>(&sent[5_000..], |flow| flow).into_iter().enumerate() {
            assert_close(share, 10_000 / 6, &format!("`{words}`, flow {flow}"));
        }
    }
}

/// Hosts 0, 1 and 2 have 1, 3 and 8 flows at one end, and each flow its own host at the other.
fn unequal_hosts(sources: bool) -> (Vec<Flow>, Vec<usize>) {
    let owners: Vec<usize> = [0; 1].into_iter().chain([1; 3]).chain([2; 8]).collect();
    let flows = (0..).zip(&owners).map(|(number, owner)| {
        let mut flow = lone_flow(number, 1514);
        let shared = 7_000 + *owner as u32 * 11;
        *(if sources { &mut flow.hosts.0 } else { &mut flow.hosts.1 }) = shared;
        flow
    });
    (flows.collect(), owners)
}

#[test]
fn backlogged_hosts_send_equally_much_however_many_flows_they_have() {
    for (promise, sources) in [(Promise::EqualSources, true), (Promise::EqualDestinations, false)] {
        let (flows, owners) = unequal_hosts(sources);
        for words in with(promise) {
            let sent = saturate(make(words).as_mut(), &flows, 60_000);
            for (host, share) in
                shares::<3>(&sent[5_000..], |flow| owners[flow]).into_iter().enumerate()
            {
                assert_close(share, 10_000 / 3, &format!("`{words}`, {promise:?}, host {host}"));
            }
        }
    }
    // The test can fail: between flows only, the host with eight of twelve has two thirds.
    let (flows, owners) = unequal_hosts(true);
    let sent = saturate(make("cake flows").as_mut(), &flows, 20_000);
    assert_close(shares::<3>(&sent, |flow| owners[flow])[2], 6_667, "cake flows");
}

#[test]
fn nobody_starves() {
    const FLOWS: u64 = 40;
    let flows: Vec<Flow> =
        (0..FLOWS as u32).map(|n| lone_flow(n, if n % 4 == 0 { 1514 } else { 100 })).collect();
    for words in with(Promise::NoStarvation) {
        let sent = saturate(make(words).as_mut(), &flows, 40_000);
        let mut last = [0; FLOWS as usize];
        let mut bytes = 0;
        for packet in &sent {
            bytes += u64::from(packet.adj_len);
            let wait = bytes - last[packet.flow];
            // A round: each other flow sends what it was given and one packet more.
            let bound = FLOWS * 2 * (1514 + 1514);
            assert!(wait < bound, "`{words}`: flow {} waited for {wait} bytes", packet.flow);
            last[packet.flow] = bytes;
        }
        assert!(last.iter().all(|last| bytes - last < FLOWS * 2 * 3028), "`{words}`");
    }
}

/// Shares of the rate in 1/10,000 that tiers of these DSCPs get while all are backlogged.
fn tier_shares<const N: usize>(words: &str, dscps: [u8; N]) -> [u64; N] {
    let flows: Vec<Flow> = (0..)
        .zip(dscps)
        .map(|(number, dscp)| Flow { tos: dscp << 2, ..lone_flow(number, 1000) })
        .collect();
    shares(&saturate(make(words).as_mut(), &flows, 30_000)[2_000..], |flow| flow)
}

const BEST_EFFORT: u8 = 0;
const BULK: u8 = 8;
const VIDEO: u8 = 34;
const VOICE: u8 = 46;

#[test]
fn tiers_have_their_thresholds_and_borrow_what_is_left() {
    let shaped = "cake bandwidth 10mbit";
    let by_class = |words: &str| tier_shares(words, [BEST_EFFORT, BULK, VIDEO, VOICE]);
    for (share, expected) in by_class(&format!("{shaped} diffserv4")).into_iter().zip([
        10_000 - 625 - 5_000 - 2_500,
        625,
        5_000,
        2_500,
    ]) {
        assert_close(share, expected, "diffserv4");
    }
    let three = tier_shares(&format!("{shaped} diffserv3"), [BEST_EFFORT, BULK, VOICE]);
    for (share, expected) in three.into_iter().zip([10_000 - 625 - 2_500, 625, 2_500]) {
        assert_close(share, expected, "diffserv3");
    }
    // The two highest of eight have 7/8 to the seventh and sixth, the third what is left.
    let top = tier_shares(&format!("{shaped} precedence"), [56, 48, 40]);
    for (share, expected) in top.into_iter().zip([3_927, 4_488, 1_585]) {
        assert_close(share, expected, "precedence");
    }
    // A tier alone has everything: thresholds are priorities, not limits.
    let alone = [Flow { tos: VOICE << 2, ..lone_flow(0, 1000) }];
    let sent = saturate(make("cake bandwidth 10mbit diffserv4").as_mut(), &alone, 10_000);
    let time = sent[sent.len() - 1].at.since(sent[0].at).0;
    assert!(time.abs_diff(9_999 * 800_000) < 1_000_000, "{time} ns");
    // Without a rate: the tiers' weights.
    for (share, expected) in by_class("cake diffserv4").into_iter().zip([5_517, 345, 2_759, 1_379])
    {
        assert_close(share, expected, "diffserv4 unlimited");
    }
}

#[test]
fn unshaped_disciplines_send_whenever_something_waits() {
    for words in with(Promise::WorkConserving) {
        let mut qdisc = make(words);
        let mut random = simnel_core::random::Random::new(5);
        let mut now = Time(1_000_000_000);
        for handle in 0..20_000 {
            let longest = 2 << random.below(28);
            now += Span(u64::from(random.below(longest)));
            if random.below(2) == 0 {
                for _ in 0..random.below(4) {
                    let mut packet = Packet::new(handle, 1 + random.below(1514));
                    packet.flow = u64::from(random.below(9)) * 0x9e37_79b1;
                    packet.tos = random.u32() as u8;
                    packet.flags = simnel_core::packet::Flags::IPV4;
                    qdisc.enqueue(&packet, now, &mut Discard);
                }
            } else if qdisc.backlog().packets > 0 {
                let sent = qdisc.dequeue(now, &mut Discard);
                assert!(sent.is_some() || qdisc.backlog().packets == 0, "`{words}` idles");
            }
        }
    }
}

/// Packets marked of 30,000 that can be, of three flows of which each always waits.
fn marks_under_congestion(words: &str) -> u64 {
    // ECT(0); long, so that a hundred of them wait for longer than any target.
    let flows: Vec<Flow> = (0..3).map(|n| Flow { tos: 2, ..lone_flow(n, 9000) }).collect();
    let mut qdisc = make(words);
    saturate_deeply(qdisc.as_mut(), &flows, 30_000, 100);
    qdisc.snapshot().totals.marked
}

#[test]
fn standing_congestion_is_marked_where_marks_are_understood() {
    for words in with(Promise::Marks) {
        assert!(marks_under_congestion(words) > 0, "`{words}` marks nothing");
    }
    // The test can fail: nobody has told this one to.
    assert_eq!(marks_under_congestion("codel"), 0);
}

/// Bytes that are sent between the coming of a lone packet and its leaving, at worst, while twenty
/// flows are backlogged.
fn worst_wait_of_a_sparse_flow(words: &str) -> u64 {
    let mut qdisc = make(words);
    let packet = |number: u32, handle| {
        let flow = lone_flow(number, 1514);
        let mut packet = Packet::new(handle, flow.len);
        (packet.flow, packet.flags) = (flow.hash, simnel_core::packet::Flags::IPV4);
        (packet.src_host, packet.dst_host) = flow.hosts;
        packet
    };
    let (mut now, mut waited, mut worst) = (Time(100_000_000_000), None, 0);
    for round in 0..4_000u64 {
        for n in 0..20 {
            qdisc.enqueue(&packet(n, 0), now, &mut Discard);
        }
        if round % 50 == 49 && waited.is_none() {
            qdisc.enqueue(&packet(20, 1), now, &mut Discard);
            waited = Some(0);
        }
        for _ in 0..20 {
            now += Span(12_112);
            let Some(sent) = qdisc.dequeue(now, &mut Discard) else { break };
            let (len, is_sparse) = (u64::from(sent.len), sent.handle == 1);
            match (waited, is_sparse) {
                (Some(bytes), true) => (worst, waited) = (worst.max(bytes), None),
                (Some(bytes), false) => waited = Some(bytes + len),
                _ => {}
            }
        }
    }
    worst.max(waited.unwrap_or(0))
}

#[test]
fn a_flow_that_is_idle_otherwise_does_not_wait_for_the_others() {
    const BOUND: u64 = 2 * 1514;
    for words in with(Promise::SparseFirst) {
        let wait = worst_wait_of_a_sparse_flow(words);
        assert!(wait <= BOUND, "`{words}`: {wait} bytes");
    }
    // The test can fail: here a new flow goes to the end of the round.
    assert!(worst_wait_of_a_sparse_flow("sfq") > BOUND);
}

/// Random packets at random times, by a driver that is never late.
fn drive(qdisc: &mut dyn Managed, bytes: &[u8]) -> Vec<Sent> {
    let mut input = Input::new(bytes);
    let (mut now, mut sent) = (Time(100_000_000_000), Vec::new());
    while !input.is_empty() && sent.len() < 2_000 {
        let (packet, copies) = random_packet(&mut input);
        let end = now + Span(input.magnitude() % 1_000_000_000);
        for _ in 0..=copies % 32 {
            qdisc.enqueue(&packet, now, &mut Discard);
        }
        while let Some(at) = qdisc.next_event().map(|at| at.max(now)).filter(|at| *at <= end) {
            now = at;
            if let Some(&mut Packet { adj_len, .. }) = qdisc.dequeue(now, &mut Discard) {
                sent.push(Sent { at, flow: 0, adj_len });
            }
        }
        now = end;
    }
    sent
}

/// The most by which the bytes between two packets exceed what the rate allows for the time between
/// them, in bytes times 10^9. Either each packet's time begins when it is seen, or it ends there.
fn excess(sent: &[Sent], rate: u64, begins: bool) -> i128 {
    let (mut worst, mut least, mut bytes) = (0, i128::MAX, 0i128);
    for packet in sent {
        let len = i128::from(packet.adj_len) * 1_000_000_000;
        bytes += if begins { 0 } else { len };
        let ahead = bytes - i128::from(rate) * i128::from(packet.at.0);
        least = least.min(ahead);
        worst = worst.max(ahead - least);
        bytes += if begins { len } else { 0 };
    }
    worst
}

/// The promised rate of a line of the table in bytes a second.
fn promised_rate(promises: &[Promise]) -> Option<u64> {
    promises.iter().find_map(|promise| match promise {
        Promise::Rate(bits) => Some(bits / 8),
        _ => None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_window_sees_more_than_the_rate(bytes in vec(any::<u8>(), 0..400)) {
        for (words, promises) in DISCIPLINES.iter() {
            let Some(rate) = promised_rate(promises) else { continue };
            let mut qdisc = make(words);
            let begins = matches!(qdisc.config(), Config::Cake(_));
            let sent = drive(qdisc.as_mut(), &bytes);
            // Times are whole nanoseconds.
            let rounding = i128::from(rate) + 1_000_000_000;
            let excess = excess(&sent, rate, begins);
            prop_assert!(excess <= rounding, "`{}`: {} bytes more", words, excess / 1_000_000_000);
        }
    }
}

#[test]
fn the_rate_is_reached_and_a_faster_one_would_be_noticed() {
    let flows: Vec<Flow> = (0..4).map(|n| lone_flow(n, 1514)).collect();
    // Behind the bottleneck what is dropped takes its part of the rate.
    for (words, promises) in DISCIPLINES.iter().filter(|(words, _)| !words.contains("ingress")) {
        let Some(rate) = promised_rate(promises) else { continue };
        let sent = saturate(make(words).as_mut(), &flows, 3_000);
        let sent = &sent[1..];
        let bytes: u64 = sent[1..].iter().map(|packet| u64::from(packet.adj_len)).sum();
        let time = sent[sent.len() - 1].at.since(sent[0].at).0;
        let ideal = u128::from(bytes) * 1_000_000_000 / u128::from(rate);
        assert!(ideal.abs_diff(u128::from(time)) <= ideal / 1_000, "`{words}`: {time}, {ideal}");
        assert!(excess(sent, rate * 99 / 100, true) > 1_000 * 1_000_000_000, "`{words}`");
    }
}

/// Packets, the reasons of those that were dropped, and their marks.
#[derive(Default, PartialEq)]
struct Fates(Vec<(u64, Option<DropReason>, bool)>);

impl PacketOwner for Fates {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        self.0.push((packet.handle, Some(reason), false));
    }
}

/// The fates of random packets; as `describe_network` describes them if `is_blind`.
fn fates(words: &str, bytes: &[u8], is_blind: bool) -> Fates {
    let (mut qdisc, mut fates, mut now) = (make(words), Fates::default(), Time(0));
    let mut input = Input::new(bytes);
    for handle in 0.. {
        if input.is_empty() {
            break;
        }
        now += Span(input.magnitude() % 3_000_000);
        if input.u8().is_multiple_of(3) {
            let Some(sent) = qdisc.dequeue(now, &mut fates) else { continue };
            let (handle, is_marked) = (sent.handle, sent.flags.has(Flags::MARKED));
            fates.0.push((handle, None, is_marked));
            continue;
        }
        let (mut packet, copies) = random_packet(&mut input);
        packet.handle = handle;
        if is_blind {
            (packet.flow, packet.src_host, packet.dst_host) = (0, 0, 0);
            if packet.gso_segs == 0 {
                packet.header_len = 0;
                packet.flags.0 &= !Flags::TCP.0;
            }
        }
        for _ in 0..copies.min(20) {
            qdisc.enqueue(&packet, now, &mut fates);
        }
    }
    fates
}

#[test]
fn who_says_to_tell_no_flows_reads_nothing_of_them() {
    let mut random = Random::new(7);
    let inputs: Vec<Vec<u8>> =
        (0..60).map(|_| (0..2_000).map(|_| random.u32() as u8).collect()).collect();
    let decides_alike =
        |words| inputs.iter().all(|bytes| fates(words, bytes, true) == fates(words, bytes, false));
    let blind = DISCIPLINES.iter().filter(|(words, _)| !make(words).config().tells_flows());
    let mut names = Vec::new();
    for (words, _) in blind {
        assert!(decides_alike(words), "`{words}`");
        names.push(make(words).config().name());
    }
    for name in ["pfifo", "codel", "pie", "red", "blue", "cobalt", "dualpi2", "tbf", "htb"] {
        assert!(names.contains(&name), "`{name}` says to tell flows");
    }
    // The test can fail.
    for words in ["fq_codel", "cake", "sfb", "drr"] {
        assert!(!decides_alike(words), "`{words}`");
    }
}
