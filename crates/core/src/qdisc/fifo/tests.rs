//! Limits, drops at either end, changes at run time, conservation.

use std::vec::Vec;

use super::*;
use crate::qdisc::Discard;

/// Handles of what was dropped, with the reason.
#[derive(Default)]
struct Lost(Vec<(u64, DropReason)>);

impl PacketOwner for Lost {
    fn dropped(&mut self, packet: Packet, reason: DropReason) {
        self.0.push((packet.handle, reason));
    }
}

fn fifo(kind: Kind, limit: Option<u32>) -> Fifo {
    Fifo::new(&Params { kind, limit }, &Device::default()).unwrap()
}

fn fill(fifo: &mut Fifo, lost: &mut Lost, handles: core::ops::Range<u64>, len: u32) {
    for handle in handles {
        fifo.enqueue(&Packet::new(handle, len), Time(handle), lost);
        let snapshot = fifo.snapshot();
        let totals = snapshot.totals;
        assert_eq!(
            totals.enqueued_packets,
            totals.sent_packets + totals.drops() + u64::from(snapshot.backlog.packets)
        );
    }
}

fn drain(fifo: &mut Fifo) -> Vec<u64> {
    let next = || fifo.dequeue(Time(99), &mut Lost::default()).map(|packet| packet.handle);
    core::iter::from_fn(next).collect()
}

const OVER: DropReason = DropReason::Overlimit;

#[test]
fn pfifo_drops_the_newcomer() {
    let (mut queue, mut lost) = (fifo(Kind::Pfifo, Some(3)), Lost::default());
    fill(&mut queue, &mut lost, 0..5, 100);
    assert_eq!(queue.next_event(), Some(Time(0)));
    assert_eq!(queue.backlog(), Backlog { packets: 3, bytes: 300 });
    assert_eq!(lost.0, [(3, OVER), (4, OVER)]);
    assert_eq!(drain(&mut queue), [0, 1, 2]);
    assert_eq!(queue.next_event(), None);
    assert_eq!(queue.snapshot().totals.sent_bytes, 300);
}

#[test]
fn head_drop_keeps_the_newest() {
    let (mut queue, mut lost) = (fifo(Kind::PfifoHeadDrop, Some(3)), Lost::default());
    fill(&mut queue, &mut lost, 0..5, 100);
    assert_eq!(lost.0, [(0, OVER), (1, OVER)]);
    assert_eq!(drain(&mut queue), [2, 3, 4]);
}

#[test]
fn a_limit_of_zero_drops_all() {
    for kind in [Kind::Pfifo, Kind::Bfifo, Kind::PfifoHeadDrop] {
        let (mut queue, mut lost) = (fifo(kind, Some(0)), Lost::default());
        fill(&mut queue, &mut lost, 0..2, 100);
        assert_eq!(lost.0.len(), 2, "{kind:?}");
        assert!(drain(&mut queue).is_empty());
    }
}

#[test]
fn bfifo_counts_bytes_and_a_smaller_packet_may_still_fit() {
    let (mut queue, mut lost) = (fifo(Kind::Bfifo, Some(1000)), Lost::default());
    fill(&mut queue, &mut lost, 0..1, 900);
    fill(&mut queue, &mut lost, 1..2, 101);
    fill(&mut queue, &mut lost, 2..3, 100);
    assert_eq!(lost.0, [(1, OVER)]);
    assert_eq!(queue.backlog(), Backlog { packets: 2, bytes: 1000 });
}

#[test]
fn limits_default_to_the_devices_queue_length() {
    let device = Device::default();
    let limit = |kind| Params { kind, limit: None }.effective_limit(&device);
    assert_eq!(limit(Kind::Pfifo), 1000);
    assert_eq!(limit(Kind::PfifoHeadDrop), 1000);
    assert_eq!(limit(Kind::Bfifo), 1_514_000);
}

#[test]
fn memory_is_bounded_whatever_the_limit() {
    let device = Device::default();
    for kind in [Kind::Pfifo, Kind::Bfifo] {
        let params = Params { kind, limit: Some(u32::MAX) };
        assert_eq!(params.max_packets(&device), MAX_PACKETS);
    }
    // Tiny frames fill a bfifo's slots before its bytes; that is a counted drop, not a loss.
    let (mut queue, mut lost) = (fifo(Kind::Bfifo, Some(640)), Lost::default());
    fill(&mut queue, &mut lost, 0..20, 14);
    assert_eq!((queue.backlog().packets, lost.0.len()), (17, 3));
}

#[test]
fn a_changed_limit_costs_only_the_oldest_beyond_it() {
    let (mut queue, mut lost) = (fifo(Kind::Pfifo, Some(6)), Lost::default());
    fill(&mut queue, &mut lost, 0..6, 100);
    let change = |queue: &mut Fifo, lost: &mut Lost, kind, limit| {
        let config = Config::Fifo(Params { kind, limit: Some(limit) });
        queue.configure(&config, Time(6), lost).unwrap();
        assert_eq!(queue.config(), config);
    };
    change(&mut queue, &mut lost, Kind::Pfifo, 100);
    assert!(lost.0.is_empty());
    change(&mut queue, &mut lost, Kind::Pfifo, 4);
    assert_eq!(lost.0, [(0, OVER), (1, OVER)]);
    change(&mut queue, &mut lost, Kind::Bfifo, 350);
    assert_eq!(lost.0.len(), 3);
    fill(&mut queue, &mut lost, 10..11, 50);
    assert_eq!(drain(&mut queue), [3, 4, 5, 10]);
    assert_eq!(
        queue.configure(
            &Config::Delay(crate::qdisc::delay::Params {
                delay: crate::Span::ZERO,
                jitter: crate::Span::ZERO,
                limit: 1
            }),
            Time(7),
            &mut lost
        ),
        Err(ConfigError::OtherDiscipline)
    );
}

#[test]
fn reset_gives_everything_back() {
    let (mut queue, mut lost) = (fifo(Kind::Pfifo, Some(6)), Lost::default());
    fill(&mut queue, &mut lost, 0..2, 100);
    queue.reset(&mut lost);
    assert_eq!(lost.0, [(0, DropReason::Reset), (1, DropReason::Reset)]);
    assert_eq!(queue.backlog(), Backlog::default());
}

#[test]
fn the_next_packet_is_seen_before_it_is_taken() {
    let mut fifo = fifo(Kind::Pfifo, Some(2));
    assert!(fifo.peek().is_none());
    for n in 1..5 {
        fifo.enqueue(&Packet::new(n, 100), Time(n), &mut Discard);
        assert_eq!(fifo.peek().map(|packet| packet.handle), Some(1));
    }
}

#[test]
fn a_limit_in_bytes_is_kept_to_the_byte() {
    let mut lost = Lost::default();
    let mut fifo = fifo(Kind::Bfifo, Some(1_000));
    for (handle, len) in [(1, 1_001), (2, 600), (3, 401), (4, 400), (5, 1)] {
        fifo.enqueue(&Packet::new(handle, len), Time(handle), &mut lost);
    }
    let over = |handle| (handle, DropReason::Overlimit);
    assert_eq!(lost.0, [over(1), over(3), over(5)]);
    // What just fits a lower limit stays.
    for (limit, left) in [(1_000, 2), (999, 1), (400, 1)] {
        let config = Config::Fifo(Params { kind: Kind::Bfifo, limit: Some(limit) });
        fifo.configure(&config, Time(9), &mut lost).unwrap();
        assert_eq!(fifo.backlog().packets, left, "{limit}");
    }
    let limits = [0, 39, 40, 4_000].map(|bytes| Limit::bytes(bytes).packets);
    assert_eq!(limits, [1, 1, 2, 101]);
}
