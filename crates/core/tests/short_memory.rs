//! Memory that runs short: an allocator refuses the n-th large piece, for every n in turn. Building
//! or changing a discipline of the table is then an error, and what runs goes on as if nobody had
//! asked. The part of a change that takes effect asks for nothing at all.

#[path = "support/refusing.rs"]
mod refusing;
mod support;

use refusing::{with_memory, ASKED, GRANTED, SMALL};
use simnel_core::memory::Memory;
use simnel_core::packet::Flags;
use simnel_core::qdisc::{
    build, parse, Config, ConfigError, Device, Discard, DropReason, Managed, PacketOwner,
};
use simnel_core::random::Random;
use simnel_core::{Packet, Span, Time};
use support::table::DISCIPLINES;

fn settings(words: &str) -> Config {
    parse(words).unwrap_or_else(|error| panic!("`{words}`: {error}"))
}

/// Packets of many flows, so that every queue and every class has some.
fn fill(qdisc: &mut dyn Managed) -> Time {
    fill_from(Time(1_000_000_000), qdisc)
}

fn fill_from(mut now: Time, qdisc: &mut dyn Managed) -> Time {
    let mut random = Random::new(5);
    for handle in 0..400 {
        let mut packet = Packet::new(handle, 60 + random.below(1455));
        packet.flow = u64::from(random.below(40)) * 0x9e37_79b1;
        (packet.src_host, packet.dst_host) = (random.below(5) + 1, random.below(5) + 1);
        packet.tos = random.u32() as u8;
        packet.flags = Flags::IPV4;
        packet.class = if random.below(2) == 0 { 0 } else { 0x8001_0001 + random.below(12) };
        qdisc.enqueue(&packet, now, &mut Discard);
        now += Span(u64::from(random.below(20_000)));
        if handle % 3 == 0 {
            qdisc.dequeue(now, &mut Discard);
        }
    }
    now
}

/// All that leaves from now on.
fn drain(qdisc: &mut dyn Managed, mut now: Time) -> Vec<u64> {
    let mut left = Vec::new();
    while let Some(due) = qdisc.next_event() {
        // Some call that did all that one may needs another, and some wait for a neighbour's time.
        now = now.max(due) + Span(1_000);
        left.extend(qdisc.dequeue(now, &mut Discard).map(|packet| packet.handle));
    }
    left
}

/// Result of `work` with an allocator that gives `pieces` pieces of any size.
fn with_pieces<T>(pieces: u32, work: impl FnOnce() -> T) -> T {
    GRANTED.set(0);
    let result = with_memory(pieces, work);
    GRANTED.set(SMALL);
    result
}

/// Every packet that came has left, was dropped, or is queued.
fn check_books(qdisc: &dyn Managed) {
    let (backlog, totals) = (qdisc.backlog(), qdisc.snapshot().totals);
    assert_eq!(
        totals.enqueued_packets,
        totals.sent_packets + totals.drops() + u64::from(backlog.packets),
        "{}",
        qdisc.config()
    );
}

#[test]
fn a_queue_without_memory_for_more_is_full() {
    let device = Device { memory: Memory::AsNeeded, ..Device::default() };
    for (words, _) in DISCIPLINES.iter() {
        for pieces in [0, 1, 2, 5] {
            let mut qdisc = build(&settings(words), &device).expect("memory");
            let mut now = with_pieces(pieces, || fill(qdisc.as_mut()));
            check_books(qdisc.as_ref());
            with_pieces(0, || {
                while let Some(due) = qdisc.next_event() {
                    now = now.max(due) + Span(1_000);
                    qdisc.dequeue(now, &mut Discard);
                }
            });
            check_books(qdisc.as_ref());
            // With memory it goes on.
            fill_from(now, qdisc.as_mut());
            check_books(qdisc.as_ref());
        }
    }
    // Sixteen can be held without more memory; the older half goes where there is no room.
    let mut qdisc = build(&settings("fq_codel flows 1"), &device).expect("memory");
    with_pieces(0, || {
        for handle in 0..200 {
            qdisc.enqueue(&Packet::new(handle, 1_000), Time(1), &mut Discard);
        }
    });
    let (backlog, drops) = (qdisc.backlog().packets, qdisc.snapshot().totals.drops());
    assert!((8..=16).contains(&backlog), "{backlog} packets");
    assert_eq!(drops + u64::from(backlog), 200);
}

#[test]
fn a_discipline_for_which_memory_is_short_is_an_error() {
    let mut refused = 0;
    for (words, _) in DISCIPLINES.iter() {
        let config = settings(words);
        for large in 0.. {
            match with_memory(large, || build(&config, &Device::default())) {
                Ok(_) => break,
                Err(error) => assert_eq!(error, ConfigError::NoMemory, "`{words}`, {large}"),
            }
            refused += 1;
        }
    }
    // Each has a queue at least, most several tables.
    assert!(refused > 2 * DISCIPLINES.len(), "{refused} refusals");
}

#[test]
fn a_change_for_which_memory_is_short_changes_nothing() {
    for memory in [Memory::Reserved, Memory::AsNeeded] {
        let (changes, refused) = change_all(&Device { memory, ..Device::default() });
        assert!(changes > 300 && refused > changes / 2, "{changes} changes, {refused} refusals");
    }
}

/// Changes every discipline of the table to all others of its kind; says how many changes there
/// were, and how many were refused before that.
fn change_all(device: &Device) -> (u32, u32) {
    let (mut changes, mut refused) = (0, 0);
    for (from, _) in DISCIPLINES.iter() {
        for (to, _) in DISCIPLINES.iter() {
            let (from, to) = (settings(from), settings(to));
            if from.name() != to.name() {
                continue;
            }
            let make = || {
                let mut qdisc = build(&from, device).expect("memory");
                let now = fill(qdisc.as_mut());
                (qdisc, now)
            };
            let (mut qdisc, now) = make();
            let state = |qdisc: &dyn Managed| (qdisc.config(), qdisc.snapshot(), qdisc.backlog());
            let before = state(qdisc.as_ref());
            let mut large = 0;
            let spare = loop {
                match with_memory(large, || qdisc.prepare(&to, now)) {
                    Ok(spare) => break spare,
                    Err(error) => assert_eq!(error, ConfigError::NoMemory, "{from} to {to}"),
                }
                assert_eq!(state(qdisc.as_ref()), before);
                (large, refused) = (large + 1, refused + 1);
            };
            changes += 1;
            let (mut untouched, _) = make();
            assert_eq!(drain(qdisc.as_mut(), now), drain(untouched.as_mut(), now), "{from}");

            let (mut qdisc, now) = make();
            let mut spare = spare;
            let asked = ASKED.get();
            qdisc.adopt(spare.as_mut(), now, &mut Discard);
            // Packets that pass from one discipline to another below need pages there, if not all
            // are reserved.
            let passes = ["drr", "tbf", "htb"].contains(&from.name());
            if device.memory == Memory::Reserved || !passes {
                assert_eq!(ASKED.get(), asked, "{from} to {to} allocates");
            }
            assert_eq!(qdisc.config(), to);
            drop(spare);
            check_books(qdisc.as_ref());
            drain(qdisc.as_mut(), now);
        }
    }
    (changes, refused)
}

/// The packet dropped last; nothing is allocated for it.
#[derive(Default)]
struct LastLost(Option<u64>);

impl PacketOwner for LastLost {
    fn dropped(&mut self, packet: Packet, _: DropReason) {
        self.0 = Some(packet.handle);
    }
}

/// cake drops the first of its longest queue where memory for another packet is short, as it does
/// where its limit is reached.
#[test]
fn without_memory_the_longest_queue_of_cake_loses_its_head() {
    let device = Device { memory: Memory::AsNeeded, ..Device::default() };
    let mut cake = build(&settings("cake besteffort memlimit 99mb"), &device).expect("memory");
    let (now, mut lost) = (Time(1_000_000_000), LastLost::default());
    let of_flow = |handle, flow: u64| {
        let mut packet = Packet::new(handle, 1_000);
        (packet.flow, packet.flags) = (flow * 8, Flags::IPV4);
        packet
    };
    for handle in 0.. {
        with_pieces(0, || cake.enqueue(&of_flow(handle, 1), now, &mut lost));
        if lost.0.is_some() {
            break;
        }
    }
    assert_eq!(lost.0, Some(0));
    let before = cake.backlog().packets;
    with_pieces(0, || cake.enqueue(&of_flow(u64::MAX, 2), now, &mut lost));
    assert_eq!((lost.0, cake.backlog().packets), (Some(1), before));
    assert!(drain(cake.as_mut(), now).contains(&u64::MAX));
    check_books(cake.as_ref());
}
