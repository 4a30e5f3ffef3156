//! Seats asked by hand: what each may send, and when, to the nanosecond.

use super::*;
use crate::steps;
use std::format;
use std::vec::Vec;

/// 8 ns a byte.
const RATE: Rate = Rate(125_000_000);
const FULL: u32 = 1514;
/// Time of a full packet.
const PACKET: Span = Span(8 * 1514);
const TIMING: &Timing = &Timing::KERNEL;
/// The weight of a host's only flow.
const ALONE: u16 = u16::MAX;
const TIN: usize = 0;

fn seats_of(count: usize, tins: &[Rate], charges_drops: bool) -> Vec<Seat> {
    let mut seats: Vec<Seat> = Shared::seats(count, TIMING).unwrap().collect();
    for seat in &mut seats {
        configure(seat, tins, charges_drops);
    }
    seats
}

fn configure(seat: &mut Seat, tins: &[Rate], charges_drops: bool) {
    let tins = tins.iter().map(|rate| (*rate, FULL));
    seat.configure(tins.clone().next().unwrap().0, Arithmetic::Exact, tins, charges_drops);
}

/// Seats with one tin.
fn seats(count: usize) -> Vec<Seat> {
    seats_of(count, &[RATE], false)
}

/// Seats with three tins of the whole rate, a half and a quarter.
fn tinned(count: usize) -> Vec<Seat> {
    seats_of(count, &[RATE, Rate(RATE.0 / 2), Rate(RATE.0 / 4)], false)
}

fn micros(n: u64) -> Time {
    Time(n * 1_000)
}

/// Packets that a seat with a standing queue may send from `now` on, each when the line is free.
fn sends(seat: &mut Seat, mut now: Time, most: u32) -> (u32, Time) {
    for sent in 0..most {
        now = now.max(seat.shared.clock.next());
        if seat.choose(now, 1, 0).is_none() {
            return (sent, now);
        }
        seat.sent(TIN, FULL, true);
    }
    (most, now)
}

#[test]
fn the_line_is_paid_for_in_lots_and_by_who_leaves() {
    let [mut first, second] = <[Seat; 2]>::try_from(seats(2)).unwrap();
    for sent in 0..6 {
        assert_eq!(first.choose(Time(sent * 800), 1, 0), Some(TIN));
        first.sent(TIN, 100, true);
        // The others do not know yet.
        assert_eq!((first.due(0), second.due(0)), (Time((sent + 1) * 800), Time::ZERO));
    }
    assert_eq!(first.choose(Time(4_799), 1, 0), None);
    assert_eq!(first.choose(Time(4_800), 1, 0), Some(TIN));
    first.sent(TIN, 100, true);
    assert_eq!(second.due(0), Time(5_600));
    first.sent(TIN, 100, true);
    assert_eq!((first.due(0), second.due(0)), (Time(6_400), Time(5_600)));
    first.leave();
    assert_eq!(second.due(0), Time(6_400));
    // A packet longer than a lot, after 10 ms of idleness: some of it is caught up with.
    let late = first.shared.timing.late;
    assert_eq!(first.choose(micros(10_000), 1, 0), Some(TIN));
    first.sent(TIN, FULL, true);
    assert_eq!(second.due(0), micros(10_000) - late + PACKET);
    // Who owes nothing leaves the clock alone.
    assert_eq!(first.choose(micros(90_000), 1, 0), Some(TIN));
    first.leave();
    assert_eq!(second.due(0), micros(10_000) - late + PACKET);
    // A tin alone has no clock.
    assert_eq!(first.shared.tins.clocks[TIN].due(), Time::ZERO);
    first.start(TIN, micros(90_000));
    assert_eq!(first.shared.tins.clocks[TIN].due(), Time::ZERO);
    assert_eq!(first.shared.tins.waiting[TIN].load(Relaxed), 0);
}

/// `asked`: which tins had such a flow in front when the queue was asked last.
#[test]
fn a_flow_without_a_standing_queue_is_due_early_and_one_that_has_come_ends_a_nap() {
    let mut seat = seats(1).remove(0);
    seat.shared.clock.pay(Span::from_micros(100), Time::ZERO, Span::ZERO);
    let (free, nap, early) = (micros(100), micros(300), micros(100) - PACKET - PACKET);
    for (asked, sparse, naps_until, due) in [
        (0, 0, Time::ZERO, free),
        (0, 1, Time::ZERO, early),
        (1, 1, Time::ZERO, early),
        (1, 0, Time::ZERO, free),
        (3, 1, Time::ZERO, early),
        (0, 0, nap, nap),
        (0, 1, nap, early),
        (1, 1, nap, nap),
        (1, 2, nap, early),
        (3, 1, nap, nap),
        (1, 0, nap, nap),
    ] {
        (seat.asked_sparse, seat.naps_until) = (asked, naps_until);
        assert_eq!(seat.due(sparse), due, "{asked} {sparse} {naps_until:?}");
    }
    assert_eq!(seat.choose(early - Span(1), 1, 1), None);
    assert_eq!(seat.due(1), early);
    assert_eq!(seat.choose(early, 1, 0), None);
    assert_eq!(seat.due(0), free);
    assert_eq!(seat.choose(early, 1, 1), Some(TIN));
    // Two full packets, or the timing's least where that is more.
    for (bits, micros) in [(10_000_000, 2_422), (1_000_000_000, 24), (10_000_000_000, 20)] {
        configure(&mut seat, &[Rate::from_bits(bits)], false);
        assert_eq!(seat.ahead().as_micros(), micros, "{bits}");
    }
}

/// A queue sends no more than a lead beyond the one with the least service. Then it sleeps until
/// that one has made up for half of the lead, and goes on.
#[test]
fn rounds_of_two_queues_differ_by_a_lead_and_a_packet() {
    let mut seats = seats(2);
    for seat in &mut seats {
        seat.reweigh(TIN, 0, ALONE);
        assert_eq!(seat.choose(Time::ZERO, 1, 0), Some(TIN));
    }
    seats[0].look(TIN);
    // In 250 us the line takes 31,250 bytes, of which each flow has a half: ten packets fit.
    let (sent, blocked) = sends(&mut seats[0], Time::ZERO, 99);
    assert_eq!((sent, blocked), (11, Time(11 * PACKET.0)));
    // Of these 16,654 bytes the second one lacks all but half of the lead; both round down.
    let nap = seats[0].due(0).since(blocked);
    assert_eq!(nap, Span(8 * 8_840));
    let (sent, now) = sends(&mut seats[1], blocked, 1);
    assert_eq!((sent, seats[0].choose(now, 1, 0)), (1, None));
    let free = seats[0].shared.clock.next();
    assert_eq!(seats[0].choose(free, 1, 0), Some(TIN));
    let (sent, now) = sends(&mut seats[1], now, 99);
    // Up to the first one's 11, and then ten more and one.
    assert_eq!(sent, 21);
    // Alone it may send what it likes.
    seats[1].leave();
    let (_, now) = sends(&mut seats[0], now, 50);
    // Who joins begins in the present round, whatever it had.
    assert_eq!(seats[1].choose(now, 1, 0), None);
    assert_eq!(seats[1].rounds[TIN].served, seats[0].rounds[TIN].served);
    let (sent, _) = sends(&mut seats[1], now, 99);
    assert_eq!(sent, 11);
    // Where it is ahead of that by no more than the lead, it stays ahead.
    seats[1].leave();
    let ahead = seats[1].rounds[TIN].served - seats[0].rounds[TIN].served;
    let lead = seats[1].rounds[TIN].lead;
    assert!(ahead > lead);
    seats[1].choose(now, 1, 0);
    let served = |seat: &Seat| (seat.rounds[TIN].served, seat.mine.0[TIN].served.load(Relaxed));
    assert_eq!(served(&seats[1]).0, seats[0].rounds[TIN].served + lead);
    assert_eq!(served(&seats[1]).0, served(&seats[1]).1);
}

/// A flow of a quarter of a quantum has gone further in its round with the same bytes.
#[test]
fn service_is_counted_by_weight_and_weights_and_flows_are_summed() {
    let mut seats = seats(2);
    let [first, second] = &mut seats[..] else { panic!() };
    first.charge(TIN, 1000);
    assert_eq!(first.rounds[TIN].served, 0, "no flow, no service");
    for (from, to, weight, flows) in [
        (0, ALONE, 65_535, 1),
        (ALONE, 16_384, 16_384, 1),
        (0, 16_384, 32_768, 2),
        (16_384, 0, 16_384, 1),
    ] {
        first.reweigh(TIN, from, to);
        assert_eq!(first.rounds[TIN].weight, weight);
        first.choose(Time::ZERO, 1, 0);
        second.look(TIN);
        assert_eq!(second.bulk_elsewhere(TIN), flows);
    }
    first.charge(TIN, 1000);
    assert_eq!(first.rounds[TIN].served, 4_000 << 8);
    // The lead is one of all weights, a whole at least: here of three quarters and a half.
    let lead_bytes = 31_250;
    assert_eq!(second.rounds[TIN].lead, lead_bytes << 8);
    second.reweigh(TIN, 0, 49_152);
    first.reweigh(TIN, 0, 16_384);
    second.look(TIN);
    assert_eq!(second.rounds[TIN].lead, (lead_bytes << 24) / (49_152 + 32_768));
    // On a slow line it is a quantum.
    configure(second, &[Rate(1_000_000)], false);
    assert_eq!(second.rounds[TIN].lead, u64::from(FULL) << 8);
    second.look(TIN);
    assert_eq!(second.rounds[TIN].lead, u64::from(FULL) << 8);
    // Without flows there is nothing to be ahead with.
    first.clear();
    second.look(TIN);
    assert_eq!((second.bulk_elsewhere(TIN), first.rounds[TIN].weight), (0, 0));
    assert_eq!(first.mine.0[TIN].weight.load(Relaxed), 0);
    assert_eq!(first.mine.0[TIN].bulk_flows.load(Relaxed), 0);
}

/// The least of those that contend counts, wherever it stands in the row; counters wrap.
#[test]
fn the_least_service_of_all_that_contend_is_found() {
    for base in [1 << 20, u64::MAX - 100] {
        for (served, least) in [
            ([500, 300, 400], Some(300)),
            ([300, 400, 500], Some(300)),
            ([500, 400, 300], Some(300)),
            ([900, 1_200, 1_000], Some(900)),
            // The queue itself is the last, or all are as far.
            ([1_100, 1_200, 1_001], None),
            ([1_000, 1_000, 1_000], None),
        ] {
            let mut seats = seats(4);
            for (seat, served) in seats[1..].iter().zip(served) {
                seat.mine.0[TIN].served.store(u64::wrapping_add(base, served), Relaxed);
                seat.mine.0[TIN].asked.store(1, Relaxed);
            }
            let seat = &mut seats[0];
            seat.rounds[TIN].served = u64::wrapping_add(base, 1_000);
            seat.rounds[TIN].contends = true;
            steps::take();
            seat.look(TIN);
            assert_eq!(steps::take(), 4);
            let found = u64::wrapping_add(base, least.unwrap_or(1_000));
            assert_eq!(seat.rounds[TIN].least, found, "{served:?}");
            // None of them is a lead behind.
            assert_eq!(seat.naps_until, Time::ZERO, "{served:?}");
        }
    }
}

/// A queue that was not asked for 400 us while the line was free gives up its turn, and not before.
#[test]
fn who_misses_its_turn_while_the_line_is_free_is_passed_over() {
    let stall = TIMING.stall;
    let now = micros(1_000);
    let before = now - stall - Span(1);
    for (free, asked, passed) in [
        (before, before, true),
        (before, now - stall, false),
        (now - stall, before, false),
        (now, before, false),
        (before, now, false),
    ] {
        let mut seats = tinned(2);
        let tin = 1;
        seats[0].shared.clock.pay(Span::ZERO, free, Span::ZERO);
        seats[1].reweigh(tin, 0, ALONE);
        seats[1].now = asked;
        seats[1].wait(tin);
        seats[1].contend(tin);
        let waiting = |seats: &[Seat]| seats[0].shared.tins.waiting[tin].load(Relaxed);
        assert_eq!(waiting(&seats), 1);
        seats[0].now = now;
        seats[0].look(tin);
        let case = format!("{free:?} {asked:?}");
        assert_eq!(waiting(&seats), u32::from(!passed), "{case}");
        assert_eq!(seats[0].bulk_elsewhere(tin), u32::from(!passed), "{case}");
        let asked = seats[1].mine.0[tin].asked.load(Relaxed);
        assert_eq!(asked == 0, passed, "{case}");
        // It leaves once only, and may come again.
        seats[1].leave();
        assert_eq!(waiting(&seats), 0, "{case}");
        seats[1].wait(tin);
        seats[1].wait(tin);
        assert_eq!(waiting(&seats), 1, "{case}");
        seats[1].leave();
        assert_eq!(waiting(&seats), 0, "{case}");
    }
    // A failsafe clock that is behind makes the line as free.
    for (charges_drops, passed) in [(false, false), (true, true)] {
        let mut seats = seats_of(2, &[RATE], charges_drops);
        seats[1].reweigh(TIN, 0, ALONE);
        seats[1].contend(TIN);
        seats[0].shared.clock.pay(Span::ZERO, now, Span::ZERO);
        seats[0].now = now;
        seats[0].look(TIN);
        assert_eq!(seats[0].bulk_elsewhere(TIN), u32::from(!passed));
    }
}

#[test]
fn a_queue_that_is_not_ahead_looks_at_the_others_now_and_then() {
    let mut seat = seats(2).remove(0);
    seat.reweigh(TIN, 0, ALONE);
    let mut looks = |now| {
        steps::take();
        assert_eq!(seat.choose(now, 1, 0), Some(TIN));
        steps::take() > 0
    };
    let first = micros(1_000);
    assert!(looks(first), "who joins looks");
    let again = first + TIMING.look + Span(1);
    assert_eq!([first + TIMING.look, again, again].map(&mut looks), [false, true, false]);
    // It is ahead beyond its lead, and not with it.
    let round = &mut seat.rounds[TIN];
    round.served = round.least + round.lead;
    assert!(!round.is_ahead());
    round.served += 1;
    assert!(round.is_ahead());
    // Nobody is looked for in tins of its own, however long the line was free.
    let mut seat = tinned(2).remove(0);
    steps::take();
    assert_eq!(seat.choose(first, 0b100, 0), Some(2));
    assert_eq!(steps::take(), 2);
    assert_eq!(seat.choose(first + TIMING.look, 0b100, 0), Some(2));
    assert_eq!(steps::take(), 0);
}

/// The tins in which a queue waits and contends, as the others see it.
#[test]
fn the_others_know_of_tins_with_packets_and_of_standing_queues() {
    for active in 0..8u32 {
        for sparse in (0..8).filter(|sparse| sparse & !active == 0) {
            let mut seats = tinned(2);
            seats[0].choose(micros(5), active, sparse);
            for tin in 0..3 {
                let bit = 1 << tin;
                let shared = &seats[0].shared;
                let waiting = shared.tins.waiting[tin].load(Relaxed);
                let case = format!("{active:03b} {sparse:03b} {tin}");
                assert_eq!(waiting, u32::from(active & bit != 0), "{case}");
                let asked = shared.lanes[0].0[tin].asked.load(Relaxed);
                let stands = active & !sparse & bit != 0;
                assert_eq!(asked, if stands { 5_000 } else { 0 }, "{case}");
            }
            // What has gone is known as well.
            seats[0].choose(micros(6), 0, 0);
            let waiting = &seats[0].shared.tins.waiting;
            assert_eq!([0, 1, 2].map(|tin| waiting[tin].load(Relaxed)), [0; 3]);
            let asked = |tin: usize| seats[0].mine.0[tin].asked.load(Relaxed);
            assert_eq!([0, 1, 2].map(asked), [0; 3]);
        }
    }
}

/// The highest tin that is on schedule goes first, else the one with the highest threshold. A tin
/// with packets in other queues alone is on schedule when it is a lead late.
#[test]
fn a_tins_turn_comes_by_schedule_over_all_queues() {
    const NOW: u64 = 10_000_000;
    /// Twice two full packets at a quarter of the rate.
    const EARLY: i64 = 8 * 1514 * 2 * 4;
    const LATE: i64 = -250_000;
    for (active, sparse, elsewhere, due, tin) in [
        (0b111, 0, 0, [0, 0, 0], 2),
        (0b111, 0, 0, [0, 0, 1], 1),
        (0b111, 0, 0, [0, 1, 1], 0),
        (0b111, 0, 0, [1, 1, 1], 0),
        (0b110, 0, 0, [0, 1, 1], 1),
        (0b100, 0, 0, [0, 0, 1], 2),
        (0b111, 0b100, 0, [0, 0, EARLY], 2),
        (0b111, 0b100, 0, [0, 0, EARLY + 1], 1),
        (0b111, 0b010, 0, [0, EARLY / 2, 1], 1),
        (0b111, 0b100, 0, [0, 1, EARLY + 1], 0),
        (0b011, 0, 0b100, [0, 0, LATE + 1], 1),
        (0b011, 0, 0b100, [0, 0, LATE], 2),
        (0b011, 0b001, 0b100, [0, 0, LATE + 1], 1),
        (0b110, 0, 0b001, [LATE, 1, 1], 0),
        (0b110, 0, 0b001, [1, 1, 1], 0),
        (0b010, 0, 0b100, [0, 1, 1], 1),
    ] {
        let mut seats = tinned(2);
        for (tin, due) in due.into_iter().enumerate() {
            let clock = &seats[0].shared.tins.clocks[tin];
            clock.start(Time((NOW as i64 + due) as u64));
            if elsewhere >> tin & 1 != 0 {
                seats[1].wait(tin);
            }
        }
        seats[0].now = Time(NOW);
        let case = format!("{active:03b} {sparse:03b} {elsewhere:03b} {due:?}");
        assert_eq!(seats[0].preferred(active, sparse), tin, "{case}");
        // Time that is not yet paid counts.
        let rounds = &mut seats[0].rounds;
        (0..3).for_each(|tin| rounds[tin].unpaid = Span((LATE.abs() + EARLY) as u64));
        let highest = (active | elsewhere as u32).trailing_zeros();
        assert_eq!(seats[0].preferred(active, sparse), highest as usize, "{case}");
        // Who has taken its turn is told where.
        let mut seats = tinned(1);
        let chosen = seats[0].choose(Time(NOW), active, sparse);
        assert_eq!((chosen, seats[0].tin()), (Some(active.ilog2() as usize), chosen), "{case}");
    }
    // As fast as 5 us allow.
    let seat = seats_of(1, &[Rate(1_250_000_000), Rate(625_000_000)], false).remove(0);
    assert_eq!(seat.rounds[1].ahead, Span::from_micros(20));
    assert_eq!(seat.rounds[0].ahead, Span::from_micros(10));
}

/// A queue sleeps for a nap while it is another one's turn, unless that one is absent.
#[test]
fn a_queue_waits_for_another_ones_tin_and_not_for_an_absent_one() {
    let now = micros(10_000);
    let stall = TIMING.stall;
    for (free, is_present) in [
        (now, true),
        (now - stall, true),
        (now - stall - Span(1), false),
        (now + Span::from_micros(7), true),
    ] {
        let mut seats = tinned(2);
        seats[0].shared.clock.pay(Span::ZERO, free, Span::ZERO);
        seats[1].now = micros(1);
        seats[1].wait(2);
        steps::take();
        let chosen = seats[0].choose(now, 0b011, 0);
        assert_eq!(chosen, if is_present { None } else { Some(1) }, "{free:?}");
        // It looks at both queues where it joins, and for that one if the line was free.
        assert_eq!(steps::take(), if is_present { 4 } else { 6 }, "{free:?}");
        let nap = now.max(free) + TIMING.nap;
        assert_eq!(seats[0].due(0), if is_present { nap } else { free }, "{free:?}");
    }
}

/// In a tin in which it is ahead, a queue leaves the turn to the others, and serves another one.
#[test]
fn a_queue_that_is_ahead_in_a_tin_serves_its_others() {
    for (active, chosen) in [(0b100, None), (0b101, Some(0)), (0b110, Some(1)), (0b111, Some(1))] {
        let mut seats = tinned(2);
        for seat in &mut seats {
            (0..3).for_each(|tin| seat.reweigh(tin, 0, ALONE));
        }
        assert_eq!(seats[1].choose(Time::ZERO, 0b100, 0), Some(2));
        assert_eq!(seats[0].choose(Time::ZERO, active, 0), Some(2));
        seats[0].charge(2, 100_000);
        assert_eq!(seats[0].choose(Time::ZERO, active, 0), chosen, "{active:03b}");
        // Flows without a standing queue are before those of others that have one.
        assert_eq!(seats[0].choose(Time::ZERO, active, 0b100), Some(2), "{active:03b}");
    }
}

/// Bytes of 250 us at 125 MB/s, a half and a quarter of that.
#[test]
fn a_lead_is_what_the_tin_has_of_the_line() {
    for (waiting, leads) in [
        (0b000, [31_250, 31_250, 31_250]),
        (0b001, [31_250, 15_500, 7_750]),
        (0b010, [15_500, 31_250, 7_750]),
        (0b100, [23_250, 15_500, 31_250]),
        (0b110, [7_750, 15_500, 7_750]),
        (0b111, [7_750, 15_500, 7_750]),
    ] {
        let mut seats = tinned(2);
        (0..3).filter(|tin| waiting >> tin & 1 != 0).for_each(|tin| seats[1].wait(tin));
        let found = [0, 1, 2].map(|tin| seats[0].lead_bytes(tin));
        assert_eq!(found, leads, "{waiting:03b}");
        seats[0].look(1);
        assert_eq!(seats[0].rounds[1].lead, leads[1] << 8, "{waiting:03b}");
    }
    let seat = seats_of(1, &[Rate(u64::MAX)], false).remove(0);
    assert_eq!(seat.lead_bytes(TIN), 1 << 32);
}

/// A tin's clock moves on by what it sends at its threshold, together with the line's.
#[test]
fn tins_pay_at_their_thresholds() {
    let mut seats = tinned(2);
    let now = micros(1_000);
    seats[0].start(1, now);
    seats[0].start(2, now);
    let due = |seat: &Seat, tin: usize| seat.shared.tins.clocks[tin].due();
    assert_eq!(seats[0].choose(now, 0b110, 0), Some(2));
    // A tin that waits somewhere is not started again.
    seats[1].start(2, now + Span(77));
    assert_eq!([0, 1, 2].map(|tin| due(&seats[0], tin)), [Time::ZERO, now, now]);
    // 100 bytes are less than a lot.
    seats[0].sent(2, 100, false);
    assert_eq!((due(&seats[0], 2), seats[0].due_of(2)), (now, now + Span(3_200)));
    seats[0].sent(1, 1_000, false);
    let paid = [Time::ZERO, now + Span(16_000), now + Span(3_200)];
    assert_eq!([0, 1, 2].map(|tin| due(&seats[0], tin)), paid);
    assert_eq!([0, 1, 2].map(|tin| seats[0].due_of(tin)), paid);
    seats[1].start(0, now);
    assert_eq!(due(&seats[0], 0), now);
}

/// The line is free when either clock says so. One counts all that was used, the other what was
/// delivered, at two thirds of the rate.
#[test]
fn drops_are_charged_but_cannot_stop_the_line() {
    let mut seats = seats_of(2, &[RATE], true);
    let [first, second] = &mut seats[..] else { panic!() };
    let clock = |seat: &Seat| (seat.shared.clock.next(), seat.shared.clock.failsafe());
    assert_eq!(first.choose(Time::ZERO, 1, 0), Some(TIN));
    first.sent(TIN, 1_000, false);
    assert_eq!(clock(first), (Time(8_000), Time(12_000)));
    assert_eq!((first.due(0), second.due(0)), (Time(8_000), Time(8_000)));
    first.dropped(TIN, 10_000, Time::ZERO);
    assert_eq!(clock(first), (Time(88_000), Time(12_000)));
    assert_eq!((first.due(0), second.due(0)), (Time(12_000), Time(12_000)));
    // Less than a lot of each.
    first.sent(TIN, 100, false);
    assert_eq!((first.due(0), second.due(0)), (Time(13_200), Time(12_000)));
    first.dropped(TIN, 200, Time::ZERO);
    assert_eq!((first.due(0), second.due(0)), (Time(13_200), Time(12_000)));
    assert_eq!(clock(first), (Time(88_000), Time(12_000)));
    // The same settings again forgive nothing.
    let unpaid = (first.unpaid, first.undelivered);
    configure(first, &[RATE], true);
    assert_eq!(((first.unpaid, first.undelivered), clock(first).0), (unpaid, Time(88_000)));
    // Where drops are not charged any more, only what was delivered counts.
    configure(first, &[RATE], false);
    assert_eq!(clock(first), (Time(12_000), Time(12_000)));
    assert_eq!(first.due(0), Time(12_800));
    configure(first, &[RATE], false);
    first.leave();
    assert_eq!(clock(first), (Time(12_800), Time(12_000)));
}

#[test]
fn a_dropped_packet_is_charged_to_its_tin() {
    let mut seats = seats_of(2, &[RATE, Rate(RATE.0 / 2)], true);
    let now = micros(1_000);
    seats[0].dropped(1, 1_000, now);
    // It had nothing to catch up with but the line's 500 us.
    assert_eq!(seats[1].shared.clock.next(), now - TIMING.late + Span(8_000));
    assert_eq!(seats[1].due_of(1), Time(16_000));
}
