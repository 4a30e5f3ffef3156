//! SFB's bins, its penalty box, its change of bins; and that it finds the flow that does not
//! respond.

use super::*;
use crate::packet::Flags;
use crate::qdisc::{Config, Discard, Managed, PacketOwner, Qdisc};

fn sfb(params: Params) -> Sfb {
    Sfb::new(&params, &Device::default()).unwrap()
}

fn packet(flow: u64, tos: u8) -> Packet {
    let mut packet = Packet::new(flow, 1000);
    (packet.flow, packet.flags, packet.tos) = (flow.wrapping_mul(0x9e37_79b9), Flags::IPV4, tos);
    packet
}

/// Length and probability of each of the present bins of `flow`.
fn bins(sfb: &mut Sfb, flow: u64) -> [(u16, u16); LEVELS] {
    let mut blue = sfb.aqm().clone();
    let present = blue.present;
    let hash = blue.hash(&packet(flow, 0), present, &mut Discard);
    let mut bins = blue.sets[present].bins(hash);
    core::array::from_fn(|_| bins.next().map(|bin| (bin.len, bin.prob)).unwrap())
}

#[test]
fn a_packet_is_counted_in_one_bin_of_each_level_while_it_is_queued() {
    let mut sfb = sfb(Params::default());
    (0..3).for_each(|_| sfb.enqueue(&packet(1, 0), Time(0), &mut Discard));
    assert_eq!(bins(&mut sfb, 1), [(3, 0); LEVELS]);
    let total = |sfb: &Sfb| {
        let set = &sfb.aqm().sets[0];
        set.bins.iter().map(|level| level.iter().map(|bin| u32::from(bin.len)).sum()).collect()
    };
    sfb.enqueue(&packet(2, 0), Time(0), &mut Discard);
    let sums: std::vec::Vec<u32> = total(&sfb);
    assert_eq!(sums, [4; LEVELS]);
    while sfb.dequeue(Time(1), &mut Discard).is_some() {}
    let sums: std::vec::Vec<u32> = total(&sfb);
    assert_eq!(sums, [0; LEVELS]);
}

#[test]
fn probabilities_rise_at_target_and_fall_when_idle() {
    let steps = Params { increment: 100, decrement: 30, target: 4, max: 100, ..Params::default() };
    let mut sfb = sfb(steps);
    // The first four find fewer than four.
    for (already, prob) in [(0, 0), (4, 0), (5, 100), (6, 200)] {
        while sfb.backlog().packets < already {
            sfb.enqueue(&packet(1, 2), Time(0), &mut Discard);
        }
        assert_eq!(bins(&mut sfb, 1)[0].1, prob, "{already}");
    }
    // A bin of 16 at each level is the flow's: 200 there, and 12 in the mean of all.
    let Detail::Sfb(stats) = sfb.snapshot().detail else { panic!() };
    assert_eq!((stats.maxqlen, stats.maxprob.0, stats.avgprob.0), (sfb.backlog().packets, 200, 12));
    while sfb.dequeue(Time(1), &mut Discard).is_some() {}
    for prob in [170, 140] {
        sfb.enqueue(&packet(1, 2), Time(2), &mut Discard);
        sfb.dequeue(Time(2), &mut Discard);
        assert_eq!(bins(&mut sfb, 1)[0].1, prob);
    }
}

#[test]
fn a_flow_that_fills_all_its_bins_is_cut_and_others_are_not() {
    let mut sfb = sfb(Params { increment: 0, ..Params::default() });
    (0..40).for_each(|_| sfb.enqueue(&packet(1, 0), Time(0), &mut Discard));
    assert_eq!(sfb.backlog().packets, Params::default().max);
    sfb.enqueue(&packet(2, 0), Time(0), &mut Discard);
    assert_eq!(sfb.backlog().packets, Params::default().max + 1);
    let Detail::Sfb(stats) = sfb.snapshot().detail else { panic!() };
    assert_eq!(stats.bucketdrop, 15);
}

#[test]
fn the_penalty_box_starts_full_and_fills_at_its_rate() {
    // One step up is all the way.
    let steps = Params { increment: MAX_PROB, target: 1, max: 1000, ..Params::default() };
    let mut sfb = sfb(steps);
    sfb.enqueue(&packet(1, 0), Time(0), &mut Discard);
    let pass = |sfb: &mut Sfb, n: u32, at: Time| {
        let before = sfb.backlog().packets;
        (0..n).for_each(|_| sfb.enqueue(&packet(1, 0), at, &mut Discard));
        sfb.backlog().packets - before
    };
    assert_eq!(pass(&mut sfb, 50, Time(0)), 20);
    // Ten a second.
    assert_eq!(pass(&mut sfb, 50, Time(99_999_999)), 0);
    assert_eq!(pass(&mut sfb, 50, Time(500_000_000)), 5);
    // Twenty at most.
    assert_eq!(pass(&mut sfb, 50, Time(60_000_000_000)), 20);
    let Detail::Sfb(stats) = sfb.snapshot().detail else { panic!() };
    assert_eq!(stats.penaltydrop, 200 - 45);
    let none = Params { penalty_rate: 0, ..steps };
    sfb.configure(&Config::Sfb(none), Time(60_000_000_000), &mut Discard).unwrap();
    assert_eq!(pass(&mut sfb, 50, Time(99_000_000_000)), 0);
}

#[test]
fn the_bins_are_changed_over_and_warmed_up_before() {
    let (rehash, db) = (Span::from_secs(10), Span::from_secs(2));
    let steps = Params { increment: MAX_PROB, target: 1, rehash, db, ..Params::default() };
    let mut sfb = sfb(steps);
    let at = |ms: u64| Time(ms * 1_000_000);
    (0..3).for_each(|_| sfb.enqueue(&packet(1, 0), at(1), &mut Discard));
    let other = |sfb: &Sfb| {
        let bins = sfb.aqm().sets[1].bins;
        bins.iter().flatten().map(|bin| u32::from(bin.len)).sum::<u32>()
    };
    assert_eq!((sfb.aqm().warming, other(&sfb)), (false, 0));
    sfb.enqueue(&packet(1, 0), at(8_001), &mut Discard);
    assert!(sfb.aqm().warming);
    assert_eq!(other(&sfb), LEVELS as u32);
    let present = |sfb: &Sfb| sfb.aqm().bins().map(|(len, _)| u32::from(len)).sum::<u32>();
    assert_eq!(present(&sfb), 4 * LEVELS as u32);
    sfb.enqueue(&packet(1, 0), at(10_000), &mut Discard);
    assert_eq!(sfb.aqm().present, 0);
    let key = sfb.aqm().sets[0].key;
    sfb.enqueue(&packet(1, 0), at(10_001), &mut Discard);
    assert_eq!((sfb.aqm().present, sfb.aqm().warming), (1, false));
    assert_ne!(sfb.aqm().sets[0].key, key);
    // And back: the first set is warmed up while the second decides.
    assert_eq!(present(&sfb), 3 * LEVELS as u32);
    let first = |sfb: &Sfb| {
        let bins = sfb.aqm().sets[0].bins;
        bins.iter().flatten().map(|bin| u32::from(bin.len)).sum::<u32>()
    };
    let before = first(&sfb);
    sfb.enqueue(&packet(1, 0), at(18_001), &mut Discard);
    assert_eq!((sfb.aqm().warming, first(&sfb)), (false, before));
    sfb.enqueue(&packet(1, 0), Time(18_001_000_001), &mut Discard);
    assert_eq!((sfb.aqm().warming, first(&sfb)), (true, before + LEVELS as u32));
    sfb.enqueue(&packet(1, 0), at(20_002), &mut Discard);
    assert_eq!((sfb.aqm().present, sfb.aqm().warming), (0, false));
    // Whatever was counted where, it is taken off there.
    while sfb.dequeue(at(10_002), &mut Discard).is_some() {}
    assert!(sfb.aqm().sets.iter().all(|set| set.bins.iter().flatten().all(|bin| bin.len == 0)));
}

#[test]
fn with_its_key_a_set_forgets_what_it_learnt() {
    for (arithmetic, left) in [(Arithmetic::Exact, 0), (Arithmetic::LINUX, 7)] {
        let device = Device { arithmetic, ..Device::default() };
        let mut blue = Blue::new(&Params::default(), &device).unwrap();
        for set in &mut blue.sets {
            set.bins.as_flattened_mut().fill(Bin { len: 2, prob: 7 });
        }
        blue.change_over(Time(601_000_000_000));
        let of_all = |set: &Set, bin| set.bins.as_flattened().iter().all(|it| *it == bin);
        assert!(of_all(&blue.sets[0], Bin { len: 2, prob: left }), "{arithmetic:?}");
        assert!(of_all(&blue.sets[1], Bin { len: 2, prob: 7 }), "the set that takes over");
    }
}

#[test]
fn a_flow_has_a_bin_of_each_level_by_a_hash_of_each_sets_own() {
    let mut blue = Blue::new(&Params::default(), &Device::default()).unwrap();
    blue.sets[0].bins(0x7654_3210).for_each(|bin| bin.len = 1);
    for (level, bins) in blue.sets[0].bins.iter().enumerate() {
        let used: std::vec::Vec<usize> = (0..BINS).filter(|bin| bins[*bin].len == 1).collect();
        assert_eq!(used, [level]);
    }
    let product = |a: u64, b: u64| (u128::from(a) * u128::from(b) % (1 << 64)) as u64;
    for flow in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
        let packet = Packet { flow, ..Packet::new(0, 100) };
        for set in [0, 1] {
            let [first, second] = blue.sets[set].key;
            let once = product(flow ^ first, 0x9e37_79b9_7f4a_7c15);
            let folded = once ^ second ^ (once / (1 << 32));
            let hash = product(folded, 0xbf58_476d_1ce4_e5b9) / (1 << 32);
            let seen = blue.hash(&packet, set, &mut Discard);
            assert_eq!(u64::from(seen), hash.max(1), "{flow} in set {set}");
        }
    }
}

/// Up to one half all that are hit are marked; from there on more and more of them are dropped.
#[test]
fn beyond_one_half_marks_are_not_enough() {
    let steps = Params { increment: 0, decrement: 0, ..Params::default() };
    for (prob, tos, marked, dropped) in [
        (MAX_PROB / 4, 2, 1, 0),
        (MAX_PROB / 4, 0, 0, 1),
        (MAX_PROB / 2, 2, 2, 0),
        (MAX_PROB / 4 * 3, 2, 1, 2),
        (MAX_PROB / 4 * 3, 0, 0, 3),
        (MAX_PROB / 8 * 5, 2, 1, 1),
    ] {
        let mut blue = Blue::new(&steps, &Device::default()).unwrap();
        for level in &mut blue.sets[0].bins {
            level.fill(Bin { len: 1, prob });
        }
        let mut arrive = |n| {
            let none = Backlog::default();
            blue.arrives(&packet(n, tos), none, Time(1), &mut Discard)
        };
        (0..4_000).for_each(|n| _ = arrive(n));
        // In fourths of all; five eighths are two and a half.
        let fourths = |count: u32| (count + 250) / 500;
        let wanted = if prob == MAX_PROB / 8 * 5 { (3, 2) } else { (2 * marked, 2 * dropped) };
        let seen = (fourths(blue.stats.marked), fourths(blue.stats.earlydrop));
        assert_eq!(seen, wanted, "{prob} {tos}");
    }
}

#[test]
fn each_packet_that_is_cut_is_over_a_limit() {
    let box_only = Params { increment: MAX_PROB, target: 1, max: 1000, ..Params::default() };
    for (params, packets, overlimits) in [
        // The longest bins, the penalty box, the queue itself.
        (Params { increment: 0, ..Params::default() }, 40, 15),
        (Params { penalty_rate: 0, ..box_only }, 30, 29),
        (Params { penalty_burst: 0, ..box_only }, 30, 29),
        (Params { limit: Some(7), ..Params::default() }, 20, 13),
    ] {
        let mut sfb = sfb(params);
        (0..packets).for_each(|_| sfb.enqueue(&packet(1, 0), Time(0), &mut Discard));
        let totals = sfb.snapshot().totals;
        assert_eq!((totals.overlimits, totals.drops()), (overlimits, overlimits), "{params:?}");
    }
    let device = Device { tx_queue_len: 77, ..Device::default() };
    for (limit, effective) in [(None, 77), (Some(0), 77), (Some(1), 1)] {
        assert_eq!(Params { limit, ..Params::default() }.effective_limit(&device), effective);
    }
}

#[test]
fn what_a_lower_limit_throws_out_is_taken_off_its_bins() {
    let mut sfb = sfb(Params::default());
    (0..10).for_each(|n| sfb.enqueue(&packet(n, 0), Time(0), &mut Discard));
    let few = Params { limit: Some(3), ..Params::default() };
    sfb.configure(&Config::Sfb(few), Time(1), &mut Discard).unwrap();
    let packets: u32 = sfb.aqm().bins().map(|(len, _)| u32::from(len)).sum();
    assert_eq!((sfb.backlog().packets, packets), (3, 3 * LEVELS as u32));
}

/// Counts drops by flow.
struct Losses([u32; 20]);

impl PacketOwner for Losses {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        self.0[packet.handle as usize] += 1;
    }
}

#[test]
fn the_flow_that_does_not_respond_bears_the_losses() {
    // A line of one packet a millisecond; one flow sends as much and half again, nineteen send a
    // fortieth of it each.
    let quick = Params { increment: 300, decrement: 30, ..Params::default() };
    let (mut sfb, mut losses) = (sfb(quick), Losses([0; 20]));
    for tick in 0..100_000u64 {
        let now = Time(tick * 500_000);
        if tick % 4 != 3 {
            sfb.enqueue(&packet(0, 0), now, &mut losses);
        }
        if tick % 4 == 1 {
            sfb.enqueue(&packet(1 + tick / 4 % 19, 0), now, &mut losses);
        }
        if tick % 2 == 0 {
            sfb.dequeue(now, &mut losses);
        }
    }
    let others: u32 = losses.0[1..].iter().sum();
    // 75,000 of the one, 25,000 of the others; the line has 50,000.
    assert!(losses.0[0] > 40_000, "{:?}", losses.0);
    assert!(others < 2_500, "{others}");
}

#[test]
fn the_set_that_is_warmed_up_learns_and_the_other_does_not() {
    let steps = Params { increment: 100, target: 1, ..Params::default() };
    for other in [0, 1] {
        let mut blue = Blue::new(&steps, &Device::default()).unwrap();
        for level in blue.sets.iter_mut().flat_map(|set| &mut set.bins) {
            level.fill(Bin { len: 1, prob: 0 });
        }
        blue.warm(&packet(1, 0), other, &mut Discard);
        let learnt = blue
            .sets
            .each_ref()
            .map(|set| set.bins.iter().flatten().map(|bin| usize::from(bin.prob)).sum::<usize>());
        let mut expected = [0; 2];
        expected[other] = 100 * LEVELS;
        assert_eq!(learnt, expected);
        assert_eq!(blue.hashes.map(|hash| hash > 0), [other == 0, other == 1]);
    }
}

#[derive(Default)]
struct Returned(std::vec::Vec<DropReason>);

impl PacketOwner for Returned {
    fn dropped(&mut self, _: Packet, reason: DropReason) {
        self.0.push(reason);
    }
}

/// Fate of a packet of `flow`, while so many wait elsewhere.
fn decide(sfb: &mut Sfb, flow: u64, packets: u32) -> Fate {
    let below = Backlog { packets, bytes: 1000 * u64::from(packets) };
    sfb.gate().unwrap().decide(&packet(flow, 0), below, Time(1), &mut Discard)
}

fn counters(sfb: &Sfb) -> Stats {
    let Detail::Sfb(stats) = sfb.snapshot().detail else { panic!() };
    stats
}

#[test]
fn bins_count_what_waits_elsewhere() {
    let mut sfb = sfb(Params { limit: Some(10), max: 5, ..Params::default() });
    (0..3).for_each(|_| sfb.enqueue(&packet(1, 0), Time(0), &mut Discard));
    // Its own queue is given up.
    let mut returned = Returned::default();
    sfb.gate().unwrap().open(&mut returned);
    assert_eq!((returned.0, sfb.backlog().packets), (std::vec![DropReason::Reset; 3], 0));
    assert_eq!(bins(&mut sfb, 1), [(0, 0); LEVELS]);
    for already in 0..5 {
        assert_eq!(decide(&mut sfb, 1, already), Fate::Pass);
    }
    assert_eq!(decide(&mut sfb, 1, 5), Fate::Drop(DropReason::Congested));
    // One that is refused below does not count.
    assert_eq!(decide(&mut sfb, 8, 5), Fate::Pass);
    sfb.gate().unwrap().refused(Time(2));
    assert_eq!((bins(&mut sfb, 1), bins(&mut sfb, 8)), ([(5, 0); LEVELS], [(0, 0); LEVELS]));
    // Nor those that have left, or were dropped there before the next one comes.
    sfb.gate().unwrap().left(4);
    assert_eq!(bins(&mut sfb, 1), [(4, 0); LEVELS]);
    assert_eq!(decide(&mut sfb, 8, 1), Fate::Pass);
    assert_eq!((bins(&mut sfb, 1), bins(&mut sfb, 8)), ([(1, 0); LEVELS], [(1, 0); LEVELS]));
    assert_eq!(decide(&mut sfb, 3, 10), Fate::Drop(DropReason::Overlimit));
    let Stats { childdrop, bucketdrop, queuedrop, .. } = counters(&sfb);
    assert_eq!((childdrop, bucketdrop, queuedrop), (1, 1, 1));
    sfb.gate().unwrap().left(0);
    assert_eq!((bins(&mut sfb, 1), counters(&sfb).maxqlen), ([(0, 0); LEVELS], 0));
}

/// More than a call may see to.
#[test]
fn bins_forget_a_long_queue_elsewhere_bit_by_bit() {
    let limit = 5000;
    let mut sfb =
        sfb(Params { limit: Some(limit), max: limit, target: limit, ..Params::default() });
    (0..limit).for_each(|n| assert_eq!(decide(&mut sfb, 1, n), Fate::Pass));
    let counted: std::vec::Vec<u32> = (0..6)
        .map(|_| {
            crate::steps::take();
            sfb.gate().unwrap().left(0);
            assert!(crate::steps::take() <= crate::steps::MOST);
            counters(&sfb).maxqlen
        })
        .collect();
    assert_eq!(counted, [3976, 2952, 1928, 904, 0, 0]);
    // What it learns has room, although it has forgotten less than has left.
    (0..limit).for_each(|n| assert_eq!(decide(&mut sfb, 1, n), Fate::Pass));
    let room = sfb.aqm().queued.capacity();
    for _ in 0..2 * limit {
        decide(&mut sfb, 1, 0);
    }
    assert_eq!(sfb.aqm().queued.capacity(), room);
}
