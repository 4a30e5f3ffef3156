//! No allocation after construction: every discipline of the table, through overflow, ACK filter,
//! AQM, autorate and empty queues, with an allocator that counts.

mod support;

use std::hint::black_box;

use allocation_counter::{measure, AllocationInfo};
use simnel_core::memory::Memory;
use simnel_core::packet::Flags;
use simnel_core::qdisc::{build, parse, Device, Discard, DropReason, Managed, PacketOwner};
use simnel_core::random::Random;
use simnel_core::wire::{ack_view, AckView, LinkLayer};
use simnel_core::{Packet, Span, Time};
use support::packets::{ack, describe};
use support::table::{make, DISCIPLINES};

/// Operations on each discipline.
const OPERATIONS: u32 = 60_000;

/// Serves acknowledgements by number, and counts drops, without memory of its own.
struct Owner {
    frames: Vec<Vec<u8>>,
    drops: [u64; DropReason::COUNT],
}

impl PacketOwner for Owner {
    fn dropped(&mut self, _: Packet, reason: DropReason) {
        self.drops[reason as usize] += 1;
    }
    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        ack_view(LinkLayer::Ethernet, self.frames.get(packet.handle as usize)?)
    }
}

/// Spells of overload, of balance and of idleness, with all kinds of packets.
fn traffic(qdisc: &mut dyn Managed, acks: &[Packet], owner: &mut Owner) {
    let mut random = Random::new(3);
    let mut now = Time(100_000_000_000);
    for step in 0..OPERATIONS {
        let spell = step / 2_000 % 3;
        let arrivals = match spell {
            0 => random.below(6),
            1 => random.below(3),
            _ => u32::from(random.below(10) == 0),
        };
        for _ in 0..arrivals {
            let packet = match random.below(3) {
                0 => acks[random.below(acks.len() as u32) as usize],
                _ => {
                    let mut packet = Packet::new(u64::MAX, 60 + random.below(1455));
                    packet.flow = u64::from(random.below(40)) * 0x9e37_79b1;
                    packet.src_host = random.below(5) + 1;
                    packet.dst_host = random.below(5) + 1;
                    packet.tos = random.u32() as u8;
                    packet.flags = match random.below(16) {
                        0 => Flags::ARP,
                        n if n & 1 == 0 => Flags::IPV6,
                        _ => Flags::IPV4,
                    };
                    if random.below(8) == 0 {
                        packet.len *= 1 + random.below(40);
                        packet.truesize = Packet::typical_truesize(packet.len);
                        (packet.gso_size, packet.header_len) = (1448, 66);
                        packet.gso_segs = (packet.len / 1448 + 1) as u16;
                        (packet.mark, packet.class) = (random.u32(), 0x8001_0000 + random.below(9));
                    }
                    packet
                }
            };
            qdisc.enqueue(&packet, now, owner);
        }
        now += Span(u64::from(random.below(600_000)));
        if qdisc.next_event().is_some_and(|next| next <= now) {
            qdisc.dequeue(now, owner);
        }
        if step % 100 == 0 {
            assert!(qdisc.snapshot().totals.enqueued_packets > 0 || step == 0);
            assert!(qdisc.next_event().is_some() == (qdisc.backlog().packets > 0));
            black_box(qdisc.placement());
        }
        if step == OPERATIONS / 2 {
            qdisc.reset(owner);
        }
        if step % 9_000 == 8_999 {
            while let Some(due) = qdisc.next_event() {
                now = now.max(due);
                qdisc.dequeue(now, owner);
            }
        }
    }
}

#[test]
fn nothing_allocates_after_construction() {
    let frames: Vec<Vec<u8>> = (0..64).map(|n| ack(n as u8 & 1, 0x10, n * 1448, 0)).collect();
    let acks: Vec<Packet> = (0..)
        .zip(&frames)
        .map(|(handle, frame)| {
            let mut packet = describe(frame, frame.len() as u32);
            packet.handle = handle;
            packet
        })
        .collect();
    let mut drops = [0; DropReason::COUNT];
    for (words, _) in DISCIPLINES.iter() {
        let mut qdisc = make(words);
        let mut owner = Owner { frames: frames.clone(), drops: [0; DropReason::COUNT] };
        let AllocationInfo { count_total, bytes_total, .. } =
            measure(|| traffic(qdisc.as_mut(), &acks, &mut owner));
        assert_eq!((count_total, bytes_total), (0, 0), "`{words}` allocates");
        drops = core::array::from_fn(|reason| drops[reason] + owner.drops[reason]);
    }
    for reason in DropReason::ALL {
        assert!(drops[reason as usize] > 0, "no traffic reached {reason:?}");
    }
    // The counter counts.
    assert!(measure(|| drop(make("pfifo"))).count_total > 0);
}

/// Memory that an empty discipline takes where that is taken as needed, beside what Linux 6.1
/// commits for the same: settings, and most bytes.
const EMPTY: [(&str, u64); 8] = [
    ("cake unlimited", 1_000_000),
    ("cake bandwidth 20mbit", 1_000_000),
    ("cake bandwidth 1gbit diffserv8", 1_000_000),
    // 1024 flows of 64 bytes, and 4 of a backlog for each.
    ("fq_codel", (64 + 4) << 10),
    ("sfq", 64 << 10),
    ("pfifo limit 10000", 4 << 10),
    ("pie limit 10000", 4 << 10),
    ("fq_pie", 160 << 10),
];

#[test]
fn an_empty_discipline_takes_little_where_memory_is_taken_as_needed() {
    let device = Device { memory: Memory::AsNeeded, ..Device::default() };
    for (words, most) in EMPTY {
        let config = parse(words).expect(words);
        let of = |device: &Device| {
            let mut kept = None;
            let held = measure(|| kept = Some(build(&config, device))).bytes_current;
            held as u64
        };
        let (needed, reserved) = (of(&device), of(&Device::default()));
        println!("{words}: {needed} bytes, {reserved} if reserved");
        assert!(needed <= most && needed < reserved, "{words}: {needed} bytes");
    }
}

#[test]
fn memory_that_comes_with_packets_goes_with_them() {
    let device = Device { memory: Memory::AsNeeded, ..Device::default() };
    for (words, _) in EMPTY {
        let mut qdisc = build(&parse(words).expect(words), &device).expect(words);
        let now = Time(1_000_000_000);
        let fill = |qdisc: &mut dyn Managed| {
            for handle in 0..4_000 {
                let mut packet = Packet::new(handle, 1_000);
                (packet.flow, packet.flags) = (handle % 100 * 0x9e37_79b1, Flags::IPV4);
                qdisc.enqueue(&packet, now, &mut Discard);
            }
        };
        let drain = |qdisc: &mut dyn Managed| {
            let mut now = now;
            while let Some(due) = qdisc.next_event() {
                now = now.max(due);
                qdisc.dequeue(now, &mut Discard);
            }
        };
        let filled = measure(|| fill(qdisc.as_mut())).bytes_current;
        let queued = i64::from(qdisc.backlog().packets) * size_of::<Packet>() as i64;
        let drained = measure(|| drain(qdisc.as_mut())).bytes_current;
        println!("{words}: {filled} bytes for {queued} of packets, {} stay", filled + drained);
        // Half a page for what comes and goes, and pages that are not full.
        assert!(filled <= queued + (64 << 10), "{words}: {filled} bytes for {queued}");
        // Some pages may be in part at hand, and a wheel was needed or not.
        assert!(filled + drained <= (192 << 10), "{words}: {} bytes stay", filled + drained);
    }
}
