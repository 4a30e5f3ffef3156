//! Two queues that share a line: classification, coupling, protection, overload.

use super::*;
use crate::packet::Flags;
use crate::qdisc::{self, Discard};

const NOT_ECT: u8 = 0;
const ECT1: u8 = 1;
const ECT0: u8 = 2;
const CE: u8 = 3;

fn dualpi2(words: &str) -> Dualpi2 {
    let Ok(Config::Dualpi2(params)) = qdisc::parse(words) else { panic!("{words}") };
    Dualpi2::new(&params, &Device::default()).unwrap()
}

fn packet(tos: u8) -> Packet {
    let mut packet = Packet::new(tos.into(), 1000);
    (packet.flags, packet.tos) = (Flags::IPV4, tos);
    packet
}

fn stats(dualpi2: &Dualpi2) -> Stats {
    match dualpi2.snapshot().detail {
        Detail::Dualpi2(stats) => stats,
        _ => panic!(),
    }
}

/// Runs a line of a packet a millisecond for `seconds`. For each ECN field in `loads` it is offered
/// so many hundredths of that. Packets sent, and the last delay, by ECN field.
fn run(dualpi2: &mut Dualpi2, seconds: u64, loads: &[(u8, u64)]) -> [(u64, Span); 4] {
    let mut seen = [(0, Span::ZERO); 4];
    for tick in 0..seconds * 10_000 {
        let now = Time(tick * 100_000);
        for (tos, load) in loads {
            if tick * load / 1000 != (tick + 1) * load / 1000 {
                dualpi2.enqueue(&packet(*tos), now, &mut Discard);
            }
        }
        if tick % 10 == 0 {
            if let Some(packet) = dualpi2.dequeue(now, &mut Discard) {
                let (sent, delay) = &mut seen[packet.handle as usize];
                (*sent, *delay) = (*sent + 1, now.since(packet.enqueued));
            }
        }
    }
    seen
}

#[test]
fn ect1_and_ce_are_of_the_low_latency_queue() {
    let mut one = dualpi2("dualpi2");
    let mut any = dualpi2("dualpi2 any_ect");
    for tos in [NOT_ECT, ECT0, ECT1, CE] {
        one.enqueue(&packet(tos), Time(0), &mut Discard);
        any.enqueue(&packet(tos), Time(0), &mut Discard);
    }
    // What is not IP has no ECN field.
    one.enqueue(&Packet::new(9, 60), Time(0), &mut Discard);
    assert_eq!((stats(&one).qlen_l, stats(&one).qlen_c), (2, 3));
    assert_eq!((stats(&any).qlen_l, stats(&any).qlen_c), (3, 1));
}

/// Minor numbers of its own handle: 1 is the L queue, 2 that without signals.
#[test]
fn a_class_chooses_where_the_ecn_field_says_nothing() {
    let handle = Device::default().handle;
    for (class, tos, low_latency) in [
        (handle | 1, NOT_ECT, 1),
        (handle | 2, ECT0, 1),
        (handle | 3, NOT_ECT, 0),
        (handle, NOT_ECT, 0),
        ((handle + 0x1_0000) | 1, NOT_ECT, 0),
        (handle | 3, ECT1, 1),
    ] {
        let mut dualpi2 = dualpi2("dualpi2");
        dualpi2.enqueue(&Packet { class, ..packet(tos) }, Time(0), &mut Discard);
        assert_eq!(
            (stats(&dualpi2).qlen_l, stats(&dualpi2).qlen_c),
            (low_latency, 1 - low_latency)
        );
    }
}

#[test]
fn what_is_not_to_be_touched_is_neither_marked_nor_dropped() {
    let handle = Device::default().handle;
    let fates = |class: u32, tos: u8| {
        let mut dualpi2 = dualpi2("dualpi2 step_thresh 1ms");
        let (mut sent, mut marked) = (0, 0);
        for ms in 0..3_000 {
            // One too many in ten, of a classic sender: the probability rises.
            (0..1 + u64::from(ms % 10 == 0)).for_each(|_| {
                dualpi2.enqueue(&packet(NOT_ECT), Time(ms * 1_000_000), &mut Discard);
            });
            let special = Packet { class, ..packet(tos) };
            if ms % 10 == 5 {
                (0..3).for_each(|_| dualpi2.enqueue(&special, Time(ms * 1_000_000), &mut Discard));
            }
            for _ in 0..1 + u64::from(ms % 10 < 3) {
                let now = Time(ms * 1_000_000 + 999_999);
                let Some(packet) = dualpi2.dequeue(now, &mut Discard) else { continue };
                sent += u32::from(packet.class != 0);
                marked += u32::from(packet.class != 0 && packet.ecn() == Ecn::Ce);
            }
        }
        (stats(&dualpi2).packets_in_l, sent, marked, stats(&dualpi2).drops_l)
    };
    let (came, sent, marked, dropped) = fates(handle | 2, ECT0);
    assert_eq!((sent, marked, dropped), (came, 0, 0));
    // A packet without ECN that a class sends there is dropped where another is marked.
    let (came, sent, marked, dropped) = fates(handle | 1, NOT_ECT);
    assert!(dropped > 100 && marked == 0, "{came} {sent} {marked} {dropped}");
    // What has the field of the L queue is not excepted.
    let (.., marked, dropped) = fates(handle | 2, ECT1);
    assert!(marked > 100 && dropped == 0, "{marked} {dropped}");
}

#[test]
fn nothing_is_signalled_below_two_frames() {
    for (others, passes) in [(1, true), (2, false)] {
        let mut dualpi2 = dualpi2("dualpi2 target 1us tupdate 1ms alpha 1000 beta 1000");
        let full = Packet { len: 1514, ..packet(NOT_ECT) };
        // As many that stay: the probability becomes one.
        (0..=others).for_each(|_| dualpi2.enqueue(&full, Time(0), &mut Discard));
        let sent = dualpi2.dequeue(Time(100_000_000), &mut Discard).is_some();
        assert_eq!(dualpi2.pi.base(), ONE);
        assert_eq!(sent && stats(&dualpi2).drops_c == 0, passes, "{others}");
    }
}

#[test]
fn a_reset_begins_anew_but_for_what_was_lost() {
    let mut dualpi2 = dualpi2("dualpi2 limit 40 drop_enqueue");
    run(&mut dualpi2, 5, &[(NOT_ECT, 150), (ECT1, 60)]);
    let before = stats(&dualpi2);
    dualpi2.reset(&mut Discard);
    let after = stats(&dualpi2);
    assert!(before.drops_c > 0 && before.overlimit > 0 && before.probability > 0);
    let kept = |stats: &Stats| (stats.drops_c, stats.drops_l, stats.overlimit, stats.memory_limit);
    assert_eq!(kept(&after), kept(&before));
    let fresh = stats(&self::dualpi2("dualpi2 limit 40"));
    let begun = |stats: &Stats| {
        let Stats { packets_in_c, packets_in_l, max_queue, ecn_mark, step_marks, .. } = *stats;
        let Stats { probability, credit, memory_used, max_memory_used, .. } = *stats;
        ([packets_in_c, packets_in_l, max_queue, ecn_mark, step_marks], probability, credit)
            == ([0; 5], 0, fresh.credit)
            && (memory_used, max_memory_used) == (0, 0)
    };
    assert!(begun(&after) && begun(&fresh) && !begun(&before), "{after:?}");
}

/// The credit of two queues that have sent nothing is a frame times the difference of the shares.
#[test]
fn another_share_begins_with_its_own_credit() {
    let mut dualpi2 = dualpi2("dualpi2");
    assert_eq!(stats(&dualpi2).credit, 1514 * (10 - 90));
    (0..4).for_each(|n| dualpi2.enqueue(&packet(n % 2), Time(0), &mut Discard));
    dualpi2.dequeue(Time(1), &mut Discard).unwrap();
    let earned = 1514 * (10 - 90) + 1000 * 10;
    assert_eq!(stats(&dualpi2).credit, earned);
    let mut change = |words: &str| {
        dualpi2.configure(&qdisc::parse(words).unwrap(), Time(1), &mut Discard).unwrap();
        stats(&dualpi2).credit
    };
    assert_eq!(change("dualpi2 target 20ms"), earned);
    assert_eq!(change("dualpi2 classic_protection 60"), 1514 * (60 - 40));
}

#[test]
fn the_low_latency_queue_goes_first_and_the_classic_one_is_protected() {
    for (words, share) in [
        ("dualpi2", 10),
        ("dualpi2 classic_protection 25", 25),
        ("dualpi2 classic_protection 70", 70),
        ("dualpi2 classic_protection 0", 0),
        ("dualpi2 classic_protection 100", 100),
    ] {
        let mut dualpi2 = dualpi2(words);
        for _ in 0..1000 {
            dualpi2.enqueue(&packet(ECT1), Time(0), &mut Discard);
            dualpi2.enqueue(&packet(NOT_ECT), Time(0), &mut Discard);
        }
        let classic = (0..500)
            .filter_map(|_| dualpi2.dequeue(Time(1), &mut Discard).copied())
            .filter(|packet| packet.handle == 0)
            .count();
        // Of 500, with the grain of a turn.
        assert!(classic.abs_diff(share * 5) <= 15, "{words}: {classic}");
    }
}

#[test]
fn a_step_marks_what_has_waited() {
    let mut dualpi2 = dualpi2("dualpi2 step_thresh 1ms");
    (0..3).for_each(|n| dualpi2.enqueue(&packet(ECT1), Time(n * 500_000), &mut Discard));
    let at = |dualpi2: &mut Dualpi2, now| dualpi2.dequeue(Time(now), &mut Discard).unwrap().ecn();
    assert_eq!(at(&mut dualpi2, 1_000_000), Ecn::Ect1);
    assert_eq!(at(&mut dualpi2, 1_500_001), Ecn::Ce);
    assert_eq!(at(&mut dualpi2, 2_000_000), Ecn::Ect1);
    assert_eq!(stats(&dualpi2).step_marks, 1);
    let mut packets = self::dualpi2("dualpi2 step_thresh 2p");
    (0..5).for_each(|_| packets.enqueue(&packet(ECT1), Time(0), &mut Discard));
    let marks: std::vec::Vec<bool> = (0..5).map(|_| at(&mut packets, 1) == Ecn::Ce).collect();
    assert_eq!(marks, [true, true, false, false, false]);
}

/// `struct tc_dualpi2_xstats`: twelve words.
#[test]
fn the_kernel_is_told_all_figures() {
    let mut dualpi2 = dualpi2("dualpi2 limit 20");
    run(&mut dualpi2, 2, &[(ECT1, 60), (NOT_ECT, 60)]);
    dualpi2.dequeue(Time(2_000_000_000), &mut Discard);
    dualpi2.enqueue(&packet(ECT1), Time(2_000_000_000), &mut Discard);
    dualpi2.lend(Backlog::default(), Time(2_000_500_000));
    let figures = stats(&dualpi2);
    let mut room = [0; 48];
    let length = qdisc::netlink::write_statistics(&dualpi2.snapshot(), &mut room).unwrap();
    let words: std::vec::Vec<u32> =
        room[..length].chunks(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect();
    let micros = |delay: Span| delay.as_micros() as u32;
    assert_eq!(
        words,
        [
            figures.probability,
            micros(figures.delay_c),
            micros(figures.delay_l),
            figures.packets_in_c,
            figures.packets_in_l,
            figures.max_queue,
            figures.ecn_mark,
            figures.step_marks,
            figures.credit as u32,
            figures.memory_used,
            figures.max_memory_used,
            figures.memory_limit,
        ]
    );
    // Nothing that would be equal by being nothing.
    assert!(words.iter().all(|word| *word > 0), "{words:?}");
}

#[test]
fn two_marks_on_a_packet_are_one_marked_packet() {
    for words in ["drop_dequeue", "drop_enqueue"] {
        let mut dualpi2 =
            dualpi2(&std::format!("dualpi2 overflow step_thresh 1ms limit 100 {words}"));
        run(&mut dualpi2, 10, &[(ECT1, 120)]);
        let totals = dualpi2.snapshot().totals;
        let Stats { ecn_mark, step_marks, .. } = stats(&dualpi2);
        // All wait too long, and are marked by chance as well soon.
        assert!(step_marks > 9_000 && ecn_mark > step_marks * 3 / 2, "{ecn_mark} {step_marks}");
        assert!(u64::from(ecn_mark) > totals.marked && totals.marked >= step_marks.into());
        assert!(totals.marked <= totals.sent_packets + dualpi2.backlog().packets as u64);
    }
}

#[test]
fn the_classic_queue_is_steered_and_the_other_marked_with_the_root() {
    let mut dualpi2 = dualpi2("dualpi2");
    // 105 % of the line without answer to drops, and 10 % of it with low latency.
    let seen = run(&mut dualpi2, 60, &[(NOT_ECT, 105), (ECT1, 10)]);
    let after = stats(&dualpi2);
    let target = Params::default().aqm.target;
    assert!(seen[0].1 .0.abs_diff(target.0) < target.0, "{:?}", seen[0].1);
    // All low-latency packets pass, within a few packets' time.
    assert!(seen[1].0 >= 5_990 && seen[1].1 <= Span::from_millis(2), "{:?}", seen[1]);
    // Of 63,000 classic ones 9,000 must go: a seventh, the square of 0.38.
    let base = after.probability as f64 / ONE as f64;
    assert!((0.35..0.41).contains(&base), "{base}");
    assert!(after.drops_c.abs_diff(9_000) < 400 && after.drops_l == 0, "{after:?}");
}

#[test]
fn marks_are_coupled() {
    let mut dualpi2 = dualpi2("dualpi2 step_thresh 10s");
    // A tenth too much, so that a tenth is dropped: the root of that is 0.32, and the L queue is
    // marked with twice the root.
    run(&mut dualpi2, 60, &[(NOT_ECT, 100), (ECT1, 10)]);
    let Stats { drops_c, packets_in_c, ecn_mark, packets_in_l, .. } = stats(&dualpi2);
    let root = (f64::from(drops_c) / f64::from(packets_in_c)).sqrt();
    let marked = f64::from(ecn_mark) / f64::from(packets_in_l);
    assert!((0.29..0.33).contains(&root), "{root}");
    assert!((marked - 2.0 * root).abs() < 0.04, "{marked} {root}");
}

#[test]
fn overload_drops_even_what_is_ecn_capable() {
    for (words, congested) in [("dualpi2 limit 300", true), ("dualpi2 limit 300 overflow", false)] {
        let mut dualpi2 = dualpi2(words);
        // Scalable senders that do not listen.
        run(&mut dualpi2, 30, &[(ECT1, 200)]);
        let after = stats(&dualpi2);
        assert_eq!(after.drops_l > 10_000, congested, "{words} {after:?}");
        assert_eq!(after.overlimit > 10_000, !congested, "{words} {after:?}");
    }
    // Classic ECN senders that do not are dropped from a quarter on.
    let mut dualpi2 = dualpi2("dualpi2");
    run(&mut dualpi2, 30, &[(ECT0, 200)]);
    let after = stats(&dualpi2);
    assert!(after.drops_c > 10_000 && after.overlimit == 0, "{after:?}");
    let mut early = self::dualpi2("dualpi2 drop_enqueue");
    run(&mut early, 30, &[(NOT_ECT, 200)]);
    assert!(stats(&early).drops_c > 10_000);
}

#[test]
fn memory_and_a_smaller_limit_cut_the_classic_queue() {
    let mut dualpi2 = dualpi2("dualpi2 memlimit 23040");
    (0..20).for_each(|_| dualpi2.enqueue(&packet(NOT_ECT), Time(0), &mut Discard));
    assert_eq!(dualpi2.backlog().packets, 10);
    let mut dualpi2 = self::dualpi2("dualpi2");
    for tos in [ECT1, NOT_ECT, NOT_ECT, NOT_ECT] {
        dualpi2.enqueue(&packet(tos), Time(0), &mut Discard);
    }
    let small = qdisc::parse("dualpi2 limit 2").unwrap();
    dualpi2.configure(&small, Time(0), &mut Discard).unwrap();
    assert_eq!((stats(&dualpi2).qlen_l, stats(&dualpi2).qlen_c), (1, 1));
}

/// Updates that nobody was there for are made up for, as long as packets stand.
#[test]
fn a_long_silence_is_as_many_updates() {
    for packets in [0, 30] {
        let mut both = [dualpi2("dualpi2"), dualpi2("dualpi2")];
        for dualpi2 in &mut both {
            // First some probability, to come down from.
            dualpi2.pi = raised();
            (0..packets).for_each(|_| dualpi2.enqueue(&packet(NOT_ECT), Time(0), &mut Discard));
        }
        let [asked, left] = &mut both;
        let end = Time::ZERO + Span::from_secs(2);
        for ms in 0..2_000 {
            asked.lend(Backlog::default(), Time(ms * 1_000_000));
        }
        let before = left.pi.base();
        asked.lend(Backlog::default(), end);
        left.lend(Backlog::default(), end);
        assert_eq!(asked.pi.base(), left.pi.base(), "{packets}");
        assert_eq!(left.pi.base() > before, packets > 0);
    }
}

/// The same where one update finds all as it was: another packet has waited as long as the last.
#[test]
fn an_update_without_effect_does_not_end_a_silence() {
    let mut both = [dualpi2("dualpi2 target 20ms"), dualpi2("dualpi2 target 20ms")];
    let at = |ms: u64| Time(ms * 1_000_000);
    for dualpi2 in &mut both {
        dualpi2.enqueue(&packet(NOT_ECT), at(0), &mut Discard);
        assert!(dualpi2.dequeue(at(16), &mut Discard).is_some());
        (0..9).for_each(|_| dualpi2.enqueue(&packet(NOT_ECT), at(16), &mut Discard));
        // The last delay stays.
        dualpi2.pi.restart();
    }
    let [asked, left] = &mut both;
    for ms in 17..2_001 {
        asked.lend(Backlog::default(), at(ms));
        assert!(ms > 47 || asked.pi.base() == 0, "{ms}");
    }
    left.lend(Backlog::default(), at(2_000));
    assert!(asked.pi.base() > 0);
    assert_eq!(asked.pi.base(), left.pi.base());
}

/// A controller that has seen a delay of 100 ms.
fn raised() -> Pi2 {
    let (mut pi, params) = (Pi2::default(), Params::default());
    pi.update(&params.aqm, Span::from_millis(100), params.most());
    assert!(pi.base() > 0 && pi.base() < params.most());
    pi
}

/// Packets that are held above count for the two frames that always pass, and the longest queue.
#[test]
fn packets_that_were_lent_count() {
    for (bytes, judged) in [(0, false), (2_027, false), (2_028, true), (9_000, true)] {
        let mut dualpi2 = dualpi2("dualpi2 overflow");
        for _ in 0..3 {
            dualpi2.enqueue(&packet(ECT1), Time(0), &mut Discard);
        }
        dualpi2.lend(Backlog { packets: 7, bytes }, Time(0));
        dualpi2.enqueue(&packet(ECT1), Time(0), &mut Discard);
        assert_eq!(stats(&dualpi2).max_queue, 10);
        dualpi2.dequeue(Time(0), &mut Discard);
        dualpi2.dequeue(Time(0), &mut Discard);
        // Of two full frames 1,000 bytes are here, behind the packet that is judged.
        (dualpi2.pi, dualpi2.params.coupling) = (at(ONE), 255);
        let sent = dualpi2.dequeue(Time(0), &mut Discard).copied().unwrap();
        assert_eq!(sent.ecn() == Ecn::Ce, judged, "{bytes}");
    }
}

/// A controller that is at `most`.
fn at(most: u32) -> Pi2 {
    let mut pi = Pi2::default();
    (0..9_000).for_each(|_| {
        pi.update(&Params::default().aqm, Span::from_secs(9), most);
    });
    assert_eq!(pi.base(), most);
    pi
}

/// In overload, where all of the L queue would be marked, the square of the base probability drops.
#[test]
fn overload_begins_beyond_a_coupled_probability_of_one() {
    for (words, coupling, base, dropped) in [
        ("dualpi2", 3, ONE / 3, 0),
        ("dualpi2", 3, ONE / 3 + 1, 111),
        ("dualpi2", 2, ONE / 10 * 6, 360),
        ("dualpi2", 2, ONE, 1_000),
        ("dualpi2 overflow", 2, ONE / 10 * 6, 0),
    ] {
        let mut dualpi2 = dualpi2(words);
        (0..4_000).for_each(|_| dualpi2.enqueue(&packet(ECT1), Time(0), &mut Discard));
        (dualpi2.pi, dualpi2.params.coupling) = (at(base), coupling);
        while dualpi2.backlog().packets > 4 {
            let Some(sent) = dualpi2.dequeue(Time(0), &mut Discard) else { continue };
            // The last ones always pass.
            let ecn = sent.ecn();
            assert!(ecn == Ecn::Ce || dualpi2.backlog().packets < 4, "{words} {base}");
        }
        let drops = stats(&dualpi2).drops_l / 4;
        assert!(drops.abs_diff(dropped) <= 25, "{words} {base}: {drops} of 1,000");
    }
}

#[test]
fn a_change_drops_what_is_too_much_by_packets_or_by_memory_and_no_more() {
    let truesize = packet(NOT_ECT).truesize;
    for (limit, memory, left) in [
        (4, 0, 4),
        (10, 0, 10),
        (100, truesize * 6, 6),
        (100, truesize * 6 - 1, 5),
        (4, truesize * 6, 4),
    ] {
        // No memory is what follows from the limit.
        let words = std::format!("dualpi2 limit {limit} memlimit {memory}");
        let mut dualpi2 = dualpi2("dualpi2");
        (0..10).for_each(|_| dualpi2.enqueue(&packet(NOT_ECT), Time(0), &mut Discard));
        dualpi2.configure(&qdisc::parse(&words).unwrap(), Time(0), &mut Discard).unwrap();
        assert_eq!(dualpi2.backlog().packets, left, "{words}");
    }
}
