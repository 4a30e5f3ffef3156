//! Acknowledgements that the filter drops (facts A.10): each rule with a case that it keeps and one
//! that goes.

use simnel_core::qdisc::DropReason;
use simnel_core::wire::AckView;

use crate::driver::{packet, Driver};

/// A pure acknowledgement up to `ack`.
fn pure(ack: u32) -> AckView {
    AckView { flags: AckView::ACK, expendable_options: true, ack, ..AckView::default() }
}

fn sacking(ack: u32, blocks: &[(u32, u32)]) -> AckView {
    let mut view = AckView { sack_count: blocks.len() as u8, ..pure(ack) };
    view.sack[..blocks.len()].copy_from_slice(blocks);
    view
}

/// Indices of those of `views` that are dropped when all come into one queue.
fn filtered(mode: &str, views: &[AckView]) -> Vec<usize> {
    let mut driver = Driver::new(&format!("besteffort {mode}"));
    for view in views {
        driver.put_tcp(packet(1, 100), *view);
    }
    assert!(driver.owner.dropped.iter().all(|(_, reason)| *reason == DropReason::AckFilter));
    assert_eq!(driver.tin(0).ack_drops as usize, driver.owner.dropped.len());
    driver.lost().iter().map(|handle| *handle as usize - 1).collect()
}

fn conservative(views: &[AckView]) -> Vec<usize> {
    filtered("ack-filter", views)
}

fn aggressive(views: &[AckView]) -> Vec<usize> {
    filtered("ack-filter-aggressive", views)
}

/// True if the first of two goes, when the second follows directly (aggressive).
fn goes(candidate: AckView, trigger: AckView) -> bool {
    match aggressive(&[candidate, trigger]).as_slice() {
        [] => false,
        [0] => true,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_conservative_filter_always_keeps_two() {
    let acks = [pure(1), pure(2), pure(3), pure(4), pure(5)];
    assert_eq!(conservative(&acks[..2]), []);
    assert_eq!(conservative(&acks), [0, 1, 2]);
    assert_eq!(aggressive(&acks), [0, 1, 2, 3]);
    assert_eq!(filtered("no-ack-filter", &acks), []);
}

#[test]
fn an_acknowledgement_must_acknowledge_more() {
    assert!(goes(pure(1000), pure(1001)));
    // The same number again is a duplicate, which tells of a loss; an older one came late.
    assert!(!goes(pure(1000), pure(1000)));
    assert!(!goes(pure(1000), pure(999)));
    // Sequence numbers go round.
    assert!(goes(pure(u32::MAX - 5), pure(10)));
    assert!(!goes(pure(10), pure(u32::MAX - 5)));
}

#[test]
fn only_pure_acknowledgements_go() {
    let payload = AckView { has_payload: true, ..pure(1000) };
    assert!(!goes(payload, pure(2000)));
    // But data makes older acknowledgements redundant like any other segment.
    assert!(goes(pure(500), payload));
    let options = AckView { expendable_options: false, ..pure(1000) };
    assert!(!goes(options, pure(2000)));
    assert!(goes(pure(500), options));
    for flag in [AckView::FIN, AckView::SYN, AckView::RST, AckView::PSH, AckView::URG] {
        let flagged = AckView { flags: AckView::ACK | flag, ..pure(1000) };
        assert!(!goes(flagged, pure(2000)), "flag {flag:#x}");
        assert_eq!(goes(pure(500), flagged), flag != AckView::SYN, "flag {flag:#x}");
    }
    for reserved in [0x100, 0x200, 0x400, 0x800] {
        let flagged = AckView { flags: AckView::ACK | reserved, ..pure(1000) };
        assert!(!goes(flagged, pure(2000)), "reserved bit {reserved:#x}");
    }
    let silent = AckView { flags: 0, ..pure(1000) };
    assert!(!goes(silent, pure(2000)) && !goes(pure(500), silent), "no ACK flag");
}

#[test]
fn echoes_of_congestion_are_kept_apart() {
    let with = |flags, ack| AckView { flags: AckView::ACK | flags, ..pure(ack) };
    for echo in [AckView::ECE, AckView::CWR, AckView::ECE | AckView::CWR] {
        // Directly before the newcomer: only with the same echo.
        assert!(!goes(with(echo, 1), pure(2)));
        assert!(!goes(pure(1), with(echo, 2)));
        assert!(goes(with(echo, 1), with(echo, 2)));
        // The first of each sort stays: one that differs makes the filter forget the one before.
        assert_eq!(conservative(&[pure(1), with(echo, 2), pure(3)]), []);
        assert_eq!(conservative(&[pure(1), with(echo, 2), pure(3), pure(4)]), []);
        assert_eq!(conservative(&[pure(1), with(echo, 2), with(echo, 3), pure(4)]), [1]);
        assert_eq!(conservative(&[pure(1), pure(2), with(echo, 3)]), [0]);
    }
}

#[test]
fn selective_acknowledgements_must_be_covered() {
    let block = (5_000, 6_000);
    // SACK blocks are not lost, whatever the newcomer acknowledges.
    assert!(!goes(sacking(1000, &[block]), pure(2000)));
    assert!(goes(sacking(1000, &[block]), sacking(2000, &[block])));
    assert!(goes(sacking(1000, &[block]), sacking(2000, &[(4_000, 7_000)])));
    assert!(!goes(sacking(1000, &[block]), sacking(2000, &[(5_001, 7_000)])));
    assert!(!goes(sacking(1000, &[block]), sacking(2000, &[(4_000, 5_999)])));
    assert!(goes(sacking(1, &[block]), sacking(2, &[(9_000, 9_500), block])));
    let two = sacking(1, &[(9_000, 9_500), block]);
    assert!(!goes(two, sacking(2, &[block])));
    assert!(goes(two, sacking(2, &[(4_000, 9_500)])));
    // With the same number the newcomer must SACK strictly more.
    assert!(goes(pure(1000), sacking(1000, &[block])));
    assert!(goes(sacking(1000, &[block]), sacking(1000, &[(5_000, 6_001)])));
    assert!(goes(sacking(1000, &[block]), sacking(1000, &[block, (8_000, 8_100)])));
    assert!(!goes(sacking(1000, &[block]), sacking(1000, &[block])));
    // Ranges that go round the number space.
    let round = (u32::MAX - 500, 500);
    let at = u32::MAX - 9_000;
    assert!(goes(sacking(at, &[round]), sacking(at + 1, &[(u32::MAX - 500, 501)])));
    assert!(!goes(sacking(at, &[round]), sacking(at + 1, &[(u32::MAX - 500, 499)])));
}

#[test]
fn a_report_of_a_duplicate_is_said_only_once() {
    // A block below the cumulative number (RFC 2883) is never repeated by the sender.
    let report = sacking(10_000, &[(5_000, 6_000)]);
    assert!(!goes(report, sacking(11_000, &[(5_000, 6_000)])));
    assert!(goes(sacking(4_000, &[(5_000, 6_000)]), sacking(4_500, &[(5_000, 6_000)])));
}

#[test]
fn timestamps_must_not_go_back() {
    let at = |ack, timestamp| AckView { timestamp, ..pure(ack) };
    assert!(goes(at(1, (100, 50)), at(2, (100, 50))));
    assert!(goes(at(1, (100, 50)), at(2, (101, 51))));
    assert!(!goes(at(1, (100, 50)), at(2, (99, 50))));
    assert!(!goes(at(1, (100, 50)), at(2, (100, 49))));
    assert!(goes(at(1, (u32::MAX, u32::MAX)), at(2, (0, 0))));
}

#[test]
fn the_aggressive_filter_drops_a_single_one_only_next_to_the_newcomer() {
    let payload = AckView { has_payload: true, ..pure(2) };
    assert_eq!(aggressive(&[pure(1), pure(3)]), [0]);
    // Data in between: the one acknowledgement stays.
    assert_eq!(aggressive(&[pure(1), payload, pure(3)]), [0], "the data was a trigger itself");
    let wide = AckView { has_payload: true, ack: 0, ..pure(0) };
    assert_eq!(aggressive(&[pure(1), wide, pure(3)]), []);
    assert_eq!(conservative(&[pure(1), wide, pure(3), wide, pure(5)]), [0]);
}

#[test]
fn one_acknowledgement_goes_for_each_that_comes() {
    // Data segments that acknowledge nothing new pile acknowledgements up; then one covers all.
    let stale = AckView { has_payload: true, ..pure(0) };
    let views: Vec<AckView> = (1..=6).flat_map(|n| [pure(n), stale]).chain([pure(100)]).collect();
    let lost = conservative(&views);
    assert_eq!(lost, [0, 2, 4, 6, 8], "each dropped by the one that came two later");
    let mut driver = Driver::new("besteffort ack-filter");
    let mut most = 0;
    for view in views {
        let before = driver.owner.dropped.len();
        driver.put_tcp(packet(1, 100), view);
        most = most.max(driver.owner.dropped.len() - before);
    }
    assert_eq!(most, 1);
}

#[test]
fn connections_and_super_packets_are_kept_apart() {
    // Two connections in one queue, as in a mode that is blind to ports.
    let mut driver = Driver::new("besteffort flowblind ack-filter-aggressive");
    for n in 1..=3 {
        driver.put_tcp(packet(1, 100), pure(n));
        driver.put_tcp(packet(2, 100), pure(n));
    }
    // None stands directly before the next one of its connection, so one of each waits.
    assert_eq!(driver.lost(), [1, 2]);
    assert_eq!(driver.tin(0).dropped_bytes, 200);
    let mut long = packet(1, 3_000);
    (long.gso_size, long.gso_segs, long.header_len) = (1_448, 2, 66);
    let mut driver = Driver::new("besteffort ack-filter-aggressive no-split-gso");
    driver.put_tcp(packet(1, 100), pure(1));
    driver.put_tcp(long, AckView { has_payload: true, ..pure(2) });
    driver.put_tcp(long, AckView { has_payload: true, ..pure(3) });
    assert_eq!(driver.lost(), []);
    // What is not TCP has no view and is never touched.
    let mut driver = Driver::new("besteffort ack-filter-aggressive");
    driver.put_all(packet(1, 100), 5);
    assert_eq!(driver.lost(), []);
}

/// Memory of filtered packets is free again: acknowledgements without end never drive anything out.
#[test]
fn memory_of_what_is_filtered_is_free_again() {
    let mut driver = Driver::new("besteffort ack-filter memlimit 64k");
    let held = u64::from(packet(1, 100).truesize);
    assert!(held * 10_000 > 64 * 1024 * 10, "or there is nothing to see");
    for ack in 0..10_000 {
        driver.put_tcp(packet(1, 100), pure(ack));
    }
    assert_eq!(driver.cake.backlog().packets, 2);
    assert_eq!(driver.drops(DropReason::AckFilter), 9_998);
    assert!(u64::from(driver.stats().memory_used) <= 3 * held, "{}", driver.stats().memory_used);
    // And none is owed in the end.
    driver.take_all();
    driver.put_all(packet(1, 1514), 10);
    assert_eq!((driver.cake.backlog().packets, driver.drops(DropReason::Overlimit)), (10, 0));
}
