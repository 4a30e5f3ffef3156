//! The guard of hosts, turn by turn: hosts take turns, and within them their flows.

use simnel_core::{Packet, Span};

use crate::driver::{packet, with, Driver};

/// A full packet of flow `number` of a host.
fn of(number: u32, host: u32) -> Packet {
    with(packet(number, 1514), |p| (p.src_host, p.dst_host) = (host * 8 + 1, 700 + number))
}

/// Hosts of the next `count` packets.
fn hosts(driver: &mut Driver, count: usize) -> Vec<u32> {
    (0..count).map(|_| driver.take().expect("packets wait").src_host / 8).collect()
}

/// Sparse and bulk flows.
fn flows(driver: &Driver) -> (u16, u16) {
    (driver.tin(0).sparse_flows, driver.tin(0).bulk_flows)
}

#[test]
fn hosts_have_equal_parts_and_so_have_the_flows_of_one() {
    for words in ["host-guard src", "dual-srchost host-guard", "host-guard"] {
        let mut driver = Driver::new(&format!("besteffort {words}"));
        let flows = [of(1, 1), of(2, 2), of(3, 2), of(4, 2), of(5, 3), of(6, 3)];
        flows.iter().for_each(|flow| driver.put_all(*flow, 3));
        let mut sent = [0u32; 6];
        for _ in 0..600 {
            let packet = driver.take().expect("packets wait");
            let index = flows.iter().position(|flow| flow.flow == packet.flow).unwrap();
            sent[index] += 1;
            driver.put(flows[index]);
        }
        for (index, part) in [200, 67, 67, 67, 100, 100].into_iter().enumerate() {
            assert!(sent[index].abs_diff(part) <= 3, "{words}: {sent:?}");
        }
        // Who has only one flow left has as much as before.
        let mut sent = [0u32; 6];
        for turn in 0..630 {
            let packet = driver.take().expect("packets wait");
            let index = flows.iter().position(|flow| flow.flow == packet.flow).unwrap();
            sent[index] += u32::from(turn >= 30);
            if [0, 1, 4].contains(&index) {
                driver.put(flows[index]);
            }
        }
        assert!([0, 1, 4].iter().all(|index| sent[*index].abs_diff(200) <= 3), "{sent:?}");
    }
}

/// A host of many new flows is first once, and not once for each.
#[test]
fn a_host_that_was_idle_goes_first_with_one_quantum() {
    let mut driver = Driver::new("besteffort host-guard src");
    driver.put_all(of(1, 1), 6);
    assert_eq!(hosts(&mut driver, 3), [1; 3]);
    (2..8).for_each(|flow| driver.put_all(of(flow, 2), 2));
    driver.put(of(9, 3));
    assert_eq!(hosts(&mut driver, 8), [2, 3, 2, 1, 2, 1, 2, 1]);
}

/// As without the guard: a packet that comes before an old debt is paid makes a flow bulk.
#[test]
fn a_flow_in_debt_waits_for_its_turn() {
    let mut driver = Driver::new("besteffort host-guard src");
    driver.put_all(of(9, 9), 10);
    hosts(&mut driver, 2);
    assert_eq!(flows(&driver), (0, 1));
    driver.put(with(of(1, 1), |p| p.len = 4000));
    driver.put(of(2, 1));
    // The host owes a quantum more, and then its other flow is new.
    assert_eq!((hosts(&mut driver, 3), flows(&driver)), (vec![1, 9, 1], (2, 1)));
    driver.put(with(of(1, 1), |p| p.len = 100));
    assert_eq!(flows(&driver), (1, 2));
    let rest = driver.take_all().len();
    assert_eq!((rest, driver.lost().len()), (8, 0));
}

/// The host with most bytes loses, from its longest queue.
#[test]
fn the_host_with_most_loses_on_overflow() {
    // Room for 20 packets.
    let mut driver = Driver::new("besteffort host-guard src memlimit 46080b");
    let long = driver.put(of(1, 1));
    driver.put_all(of(1, 1), 7);
    // Of no queue as long as that one, but twelve in all.
    let first = driver.put(of(2, 2));
    driver.put_all(of(2, 2), 4);
    (3..10).for_each(|flow| driver.put_all(of(flow, 2), 1));
    assert!(driver.lost().is_empty());
    driver.put(of(20, 3));
    assert_eq!(driver.lost(), [first]);
    // Until it has fewer than the other one: that loses then.
    for _ in 0..4 {
        driver.put(of(20, 3));
    }
    assert!(!driver.lost().contains(&long));
    let lost = driver.owner.dropped.iter().filter(|(p, _)| p.src_host == 2 * 8 + 1).count();
    assert_eq!(lost, 5);
    // Seven are left of it, and nine of the first one, which loses its oldest.
    driver.put(of(1, 1));
    assert_eq!(driver.lost().pop(), Some(long));
    // The books agree with what is there.
    assert_eq!(driver.tin(0).backlog_bytes, driver.cake.backlog().bytes);
    assert_eq!(driver.cake.backlog().packets, 20);
    assert_eq!(driver.stats().overruns, 0);
    let sent = driver.take_all().len() + driver.lost().len();
    assert_eq!(sent, 26);
}

/// A flow that has lost its last packet stands there no longer.
#[test]
fn a_flow_that_has_lost_all_retires_at_once() {
    let mut driver = Driver::new("besteffort host-guard src memlimit 6912b");
    driver.put_all(of(1, 1), 3);
    hosts(&mut driver, 2);
    assert_eq!(flows(&driver), (0, 1));
    driver.put(with(of(1, 2), |p| (p.flow, p.len) = (5_000, 100)));
    driver.put(with(of(1, 2), |p| (p.flow, p.len) = (5_000, 100)));
    assert_eq!((flows(&driver), driver.lost().len()), ((1, 1), 0));
    driver.put(with(of(1, 2), |p| (p.flow, p.len) = (5_000, 100)));
    // The long packet of the first host went, and with it the flow's place among the bulk.
    assert_eq!((driver.lost().len(), flows(&driver)), (1, (2, 0)));
    assert_eq!(driver.take_all().len(), 3);
}

/// In a full set of eight, a flow of a host with fewer queues takes one of the host with most. The
/// packets of that queue join another one of their host.
#[test]
fn the_ninth_flow_of_a_set_takes_a_queue_of_the_host_with_most() {
    let in_set = |n: u64, host| with(of(1, host), |p| p.flow = n * 64);
    // Flows of the newcomer's host, and of a third one: the rest is of the one with most.
    for (own, third, taken) in
        [(0, 0, true), (2, 0, true), (3, 0, true), (3, 1, false), (4, 0, false), (1, 4, true)]
    {
        let mut driver = Driver::new("besteffort host-guard src queues 64");
        // Flows of it that have gone do not count.
        (0..4).for_each(|n| {
            driver.put_all(with(in_set(n, 2), |p| (p.flow, p.len) = (n * 64 + 8, 100)), 1)
        });
        driver.take_all();
        driver.put(with(in_set(9, 4), |p| p.flow += 16));
        driver.take_all();
        driver.wait(Span::from_secs(1));
        (0..own).for_each(|n| driver.put_all(in_set(n, 2), 2));
        (own..8 - third).for_each(|n| driver.put_all(in_set(n, 1), 2));
        (8 - third..8).for_each(|n| driver.put_all(in_set(n, 3), 2));
        assert_eq!(driver.tin(0).way_collisions, 0);
        let other = 2;
        let handle = driver.put(in_set(99, other));
        assert_eq!(driver.tin(0).way_collisions, 1, "{own}");
        if !taken {
            // It shares a queue of its own host.
            let packets = |n| driver.cake.class(n).expect("a queue").backlog.packets;
            assert_eq!((0..8).position(|n| packets(n) == 3), (0..own as usize).next());
        }
        let queue = |n| driver.cake.queue_of(&in_set(n, 1));
        let owned = (0..8).filter(|n| queue(*n).is_some()).count();
        assert_eq!(owned, if taken { 7 } else { 8 }, "{own}");
        assert_eq!(driver.cake.queue_of(&in_set(99, other)).is_some(), taken, "{own}");
        // None is lost, and none twice.
        let mut sent: Vec<u64> = driver.take_all().iter().map(|p| p.handle).collect();
        assert!(sent.contains(&handle), "{own}");
        sent.sort_unstable();
        assert_eq!(sent, (6..=22).collect::<Vec<u64>>(), "{own}");
    }
}

/// One source's flows are grouped by destination, and by source once there is a second one.
#[test]
fn flows_change_their_group_with_the_end_that_has_fewer_hosts() {
    let mut driver = Driver::new("besteffort host-guard");
    let of = |number, src: u32, dst: u32| {
        with(packet(number, 1514), |p| (p.src_host, p.dst_host) = (src, 700 + dst))
    };
    let flows = [of(1, 8, 1), of(2, 8, 1), of(3, 8, 2), of(4, 16, 2)];
    for (present, shares) in [(3, [75, 75, 150, 0]), (4, [50, 50, 50, 150])] {
        flows[..present].iter().for_each(|flow| driver.put_all(*flow, 3));
        let mut sent = [0u32; 4];
        for turn in 0..340 {
            let packet = driver.take().expect("packets wait");
            let index = flows.iter().position(|flow| flow.flow == packet.flow).unwrap();
            sent[index] += u32::from(turn >= 40);
            driver.put(flows[index]);
        }
        for (sent, share) in sent.into_iter().zip(shares) {
            assert!(sent.abs_diff(share) <= 3, "{sent:?} {shares:?}");
        }
    }
}

/// A queue that is taken takes nothing of its flow along.
#[test]
fn blue_forgets_a_flow_whose_queue_is_taken() {
    let in_set = |n: u64, host| with(of(1, host), |p| p.flow = n * 64);
    // Room for ten packets.
    let mut driver = Driver::new("besteffort host-guard src queues 64 memlimit 23040b");
    (0..8).for_each(|n| driver.put_all(in_set(n, 1), 1));
    driver.put_all(in_set(7, 1), 3);
    assert_eq!((driver.lost().len(), driver.tin(0).unresponsive_flows), (1, 1));
    driver.take();
    driver.put(in_set(99, 2));
    assert_eq!(driver.cake.queue_of(&in_set(7, 1)), None);
    assert_eq!((driver.lost().len(), driver.tin(0).unresponsive_flows), (1, 0));
    assert_eq!(driver.take_all().len(), 10);
}
