//! The line's FIFO to the nanosecond, and what passes which queue in which order.

use super::*;
use simnel_core::qdisc::{self, Device, Discard};

fn at(ms: u64) -> Time {
    Time::ZERO + Span::from_millis(ms)
}

fn steps(rates: &[(u64, u64)]) -> Capacity {
    let step = |(ms, bytes): &(u64, u64)| Step { at: at(*ms), rate: Rate(*bytes) };
    Capacity { rates: rates.iter().map(step).collect(), delays: Vec::new(), buffer: 10_000 }
}

/// A byte a microsecond.
fn line() -> Capacity {
    steps(&[(0, 1_000_000)])
}

/// A tandem with the shaper that words describe.
fn tandem(direction: Direction, shaper: &str, capacity: Capacity) -> Tandem {
    let shaper = qdisc::build(&qdisc::parse(shaper).unwrap(), &Device::default()).unwrap();
    Tandem::new(direction, shaper, capacity)
}

/// A packet of 1000 bytes.
fn packet(handle: u64) -> Packet {
    Packet::new(handle, 1_000)
}

/// The same of the gateway's own.
fn own(handle: u64) -> Packet {
    let mut packet = packet(handle);
    packet.tos = OWN << 2;
    packet
}

/// An owner that remembers what it lost; each packet has its handle for a timestamp.
#[derive(Default)]
struct Owner {
    lost: Vec<(u64, DropReason)>,
    flags: u16,
    has_payload: bool,
}

impl PacketOwner for Owner {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        self.lost.push((packet.handle, reason));
    }

    fn ack_view(&mut self, packet: &Packet) -> Option<AckView> {
        let timestamp = (packet.handle as u32, 7 * packet.handle as u32);
        let (flags, has_payload) = (self.flags, self.has_payload);
        let known = packet.handle != 99;
        known.then(|| AckView { timestamp, flags, has_payload, ..AckView::default() })
    }
}

/// Packets as they come out from `now` on, each when the tandem asks to be called.
fn deliver(tandem: &mut Tandem, mut now: Time) -> Vec<(u64, Time)> {
    let mut out = Vec::new();
    while let Some(due) = tandem.next_event() {
        now = now.max(due);
        out.extend(tandem.dequeue(now, &mut Discard).map(|packet| (packet.handle, now)));
    }
    out
}

#[test]
fn a_packet_takes_as_long_as_the_rates_say() {
    // 1 byte/us for 1 ms, an outage of 1 ms, then half as much.
    let capacity = steps(&[(0, 1_000_000), (1, 0), (2, 500_000)]);
    assert_eq!(capacity.end(Time::ZERO, 1000), Time(1_000_000));
    assert_eq!(capacity.end(Time::ZERO, 1500), Time(3_000_000));
    assert_eq!(capacity.end(Time(1_500_000), 500), Time(3_000_000));
    assert_eq!(capacity.bytes(Time::ZERO, Time(4_000_000)), 2000);
    assert_eq!(steps(&[(0, 0)]).end(Time::ZERO, 1), Time::MAX);
    assert_eq!([0, 1, 2].map(|ms| capacity.at(at(ms)).bytes()), [1_000_000, 0, 500_000]);
}

/// The way is as long as it is when the last byte leaves; nobody overtakes where it gets shorter.
#[test]
fn order_is_kept_when_the_way_becomes_shorter() {
    let delays = vec![(Time::ZERO, Span::from_millis(5)), (at(2), Span::from_millis(1))];
    let mut line = tandem(Direction::Up, "pfifo", Capacity { delays, ..line() });
    (0..6).for_each(|n| line.enqueue(&packet(n), Time::ZERO, &mut Discard));
    let due = [6, 6, 6, 6, 6, 7].map(at);
    assert_eq!(deliver(&mut line, Time::ZERO), (0..).zip(due).collect::<Vec<_>>());
}

/// The FIFO holds so many bytes, with the packet that is being sent.
#[test]
fn the_lines_buffer_is_bounded_by_bytes() {
    let (mut line, mut owner) = (tandem(Direction::Up, "pfifo", line()), Owner::default());
    (0..12).for_each(|n| line.enqueue(&packet(n), Time::ZERO, &mut owner));
    // The last one is in the shaper until somebody asks.
    assert_eq!(line.backlog(), Backlog { packets: 11, bytes: 11_000 });
    line.enqueue(&packet(12), Time(999_999), &mut owner);
    let overlimit = DropReason::Overlimit;
    assert_eq!(owner.lost, [(10, overlimit), (11, overlimit)]);
    // The first has left by then; who comes now takes its place.
    line.enqueue(&packet(13), at(1), &mut owner);
    assert_eq!(owner.lost.len(), 3);
    line.dequeue(at(2), &mut owner);
    assert_eq!((owner.lost.len(), line.backlog().packets), (3, 10));
    line.enqueue(&Packet::new(14, 1_001), at(2), &mut owner);
    line.dequeue(at(2), &mut owner);
    assert_eq!(owner.lost.last(), Some(&(14, overlimit)));
}

/// Upload: the shaper, and then the line; what it sends itself passes the line alone.
#[test]
fn an_upload_is_shaped_before_the_line() {
    let shaper = "tbf rate 4mbit burst 1000b limit 90kb";
    let (mut line, mut owner) = (tandem(Direction::Up, shaper, line()), Owner::default());
    (1..=3).for_each(|n| line.enqueue(&packet(n), Time::ZERO, &mut owner));
    line.enqueue(&own(9), Time::ZERO, &mut owner);
    assert_eq!(line.passed(), Passed { arrived: 3_000, released: 1_000, backlog: 2_000 });
    assert_eq!(line.backlog(), Backlog { packets: 4, bytes: 4_000 });
    assert_eq!(deliver(&mut line, Time::ZERO), [(1, at(1)), (9, at(2)), (2, at(3)), (3, at(5))]);
    assert_eq!(line.passed(), Passed { arrived: 3_000, released: 3_000, backlog: 0 });
    assert!(owner.lost.is_empty() && line.next_event().is_none());
}

/// Download: the line, and then the shaper, which the gateway's own do not pass.
#[test]
fn a_download_is_shaped_behind_the_line() {
    let shaper = "tbf rate 4mbit burst 1000b limit 90kb";
    let mut line = tandem(Direction::Down, shaper, line());
    for packet in [packet(1), packet(2), own(9), packet(3)] {
        line.enqueue(&packet, Time::ZERO, &mut Discard);
    }
    assert_eq!(line.next_event(), Some(at(1)));
    assert_eq!(line.passed(), Passed::default());
    // Of what was not asked for the shaper has what the line has delivered by then.
    assert_eq!(line.dequeue(at(3), &mut Discard).map(|packet| packet.handle), Some(9));
    assert_eq!(line.passed(), Passed { arrived: 2_000, released: 0, backlog: 2_000 });
    assert_eq!(line.backlog(), Backlog { packets: 3, bytes: 3_000 });
    assert_eq!(deliver(&mut line, at(3)), [(1, at(3)), (2, at(5)), (3, at(7))]);
    assert_eq!(line.passed(), Passed { arrived: 3_000, released: 3_000, backlog: 0 });
    // What waits for nobody is there to be taken at once.
    line.enqueue(&own(10), at(20), &mut Discard);
    line.enqueue(&own(11), at(20), &mut Discard);
    line.enqueue(&packet(12), at(30), &mut Discard);
    assert_eq!((line.next_event(), line.backlog().packets), (Some(at(30)), 3));
    assert_eq!(deliver(&mut line, at(30)), [(10, at(30)), (11, at(30)), (12, at(31))]);
}

/// Timestamps are noted between the queues: when the shaper lets a packet go, or the line has
/// delivered it.
#[test]
fn timestamps_are_noted_on_the_side_of_the_line() {
    let shaper = "tbf rate 4mbit burst 1000b limit 90kb";
    for (direction, times) in [(Direction::Up, [0, 2]), (Direction::Down, [1, 2])] {
        for (flags, has_payload, has_data) in [
            (AckView::ACK, false, false),
            (AckView::ACK, true, true),
            (AckView::SYN | AckView::ACK, false, true),
        ] {
            let mut line = tandem(direction, shaper, line());
            let mut owner = Owner { flags, has_payload, ..Owner::default() };
            // Without a stamp, or a header, or of the gateway's own: nothing to note.
            line.enqueue(&own(8), Time::ZERO, &mut owner);
            for handle in [0, 99] {
                line.enqueue(&Packet::new(handle, 1), Time::ZERO, &mut owner);
            }
            let begin = at(10);
            for handle in [1, 2] {
                let mut packet = packet(handle);
                packet.flow = 40 + handle;
                line.enqueue(&packet, begin, &mut owner);
            }
            while let Some(due) = line.next_event() {
                line.dequeue(due, &mut owner);
            }
            let stamps: Vec<Stamp> = line.stamps().collect();
            let stamp = |handle: u32, ms| Stamp {
                flow: u64::from(40 + handle),
                value: handle,
                echo: 7 * handle,
                has_data,
                at: begin + Span::from_millis(ms),
            };
            assert_eq!(stamps, [stamp(1, times[0]), stamp(2, times[1])]);
            assert_eq!(line.stamps().count(), 0);
        }
    }
    // Nobody takes them: the last ones are kept.
    let mut line = tandem(Direction::Up, "pfifo", Capacity { buffer: 1 << 30, ..line() });
    for handle in 100..MOST_STAMPS as u64 + 103 {
        line.enqueue(&packet(handle), Time::ZERO, &mut Discard);
        line.dequeue(Time::ZERO, &mut Owner::default());
    }
    let stamps: Vec<u32> = line.stamps().map(|stamp| stamp.value).collect();
    assert_eq!((stamps.len(), stamps[0]), (MOST_STAMPS, 103));
}

/// A change is of the shaper, and finds it as it is by then.
#[test]
fn settings_are_the_shapers() {
    let mut line = tandem(Direction::Up, "tbf rate 4mbit burst 1000b limit 90kb", line());
    (0..4).for_each(|n| line.enqueue(&packet(n), Time::ZERO, &mut Discard));
    let faster = qdisc::parse("tbf rate 8mbit burst 1000b limit 90kb").unwrap();
    line.configure(&faster, at(3), &mut Discard).unwrap();
    assert_eq!(line.config(), faster);
    assert_eq!(line.passed().released, 2_000, "at 0 and at 2 ms");
    assert_eq!(line.snapshot().backlog.packets, 2);
    let out: Vec<u64> = deliver(&mut line, at(3)).into_iter().map(|(handle, _)| handle).collect();
    assert_eq!(out, [0, 1, 2, 3]);
    assert!(Tandem::of(&mut line).is_some());
}

#[test]
fn a_reset_drops_all_and_frees_the_line() {
    for direction in Direction::BOTH {
        let mut line = tandem(direction, "tbf rate 4mbit burst 1000b limit 90kb", line());
        let mut owner = Owner::default();
        for packet in [packet(1), packet(2), own(3), packet(4), own(5)] {
            line.enqueue(&packet, Time::ZERO, &mut owner);
        }
        line.dequeue(Time(3_500_000), &mut owner);
        let held = line.backlog().packets as usize;
        line.reset(&mut owner);
        assert!(owner.lost.iter().all(|(_, reason)| *reason == DropReason::Reset));
        assert_eq!((owner.lost.len(), held), (held, 4), "{direction}");
        assert_eq!((line.backlog(), line.next_event()), (Backlog::default(), None));
        // All of the buffer is free, and the line.
        (0..10).for_each(|n| line.enqueue(&own(n), at(4), &mut owner));
        assert_eq!((owner.lost.len(), line.next_event()), (held, Some(at(5))), "{direction}");
    }
}
