//! Limited deficit savings in CAKE: what an empty queue saves up, and what stays as it was.

use simnel_core::Span;

use crate::driver::{packet, with, Driver};

/// Numbers of the flows of the next `count` packets.
fn order(driver: &mut Driver, count: usize) -> Vec<u32> {
    let flow = |_| (driver.take().expect("a packet waits").flow / 8 - 1) as u32;
    (0..count).map(flow).collect()
}

#[test]
fn a_queue_that_was_empty_sends_what_it_has_saved_up_at_once() {
    let mut driver = Driver::new("besteffort flows savings 6kb");
    driver.put_all(packet(9, 1514), 20);
    assert_eq!(order(&mut driver, 5), [9; 5]);
    driver.put_all(packet(1, 1514), 8);
    // 6144 bytes: four packets. Then both collect, and take turns.
    assert_eq!(order(&mut driver, 4), [1; 4]);
    let rest = order(&mut driver, 8);
    assert_eq!(rest.iter().filter(|flow| **flow == 1).count(), 4, "{rest:?}");
}

#[test]
fn nothing_saved_is_plain_drr() {
    let mut driver = Driver::new("besteffort flows savings 0");
    driver.put_all(packet(9, 1514), 8);
    assert_eq!(order(&mut driver, 2), [9; 2]);
    driver.put_all(packet(1, 1514), 4);
    let both = order(&mut driver, 8);
    assert_eq!(both.iter().filter(|flow| **flow == 1).count(), 4, "{both:?}");
}

#[test]
fn flows_are_counted_while_they_have_packets() {
    let mut driver = Driver::new("besteffort savings 15kb");
    let counts = |driver: &Driver| (driver.tin(0).sparse_flows, driver.tin(0).bulk_flows);
    driver.put_all(packet(1, 1514), 2);
    driver.put(packet(2, 1514));
    assert_eq!(counts(&driver), (0, 2));
    order(&mut driver, 3);
    assert_eq!(counts(&driver), (0, 0));
    assert!(driver.take().is_none());
    driver.wait(Span::from_millis(500));
    driver.put(packet(1, 1514));
    assert_eq!(counts(&driver), (0, 1));
    assert_eq!(order(&mut driver, 1), [1]);
}

#[test]
fn savings_can_be_switched_on_and_off_under_way() {
    let mut driver = Driver::new("besteffort");
    driver.put_all(packet(1, 1514), 10);
    driver.put_all(packet(2, 1514), 10);
    order(&mut driver, 3);
    driver.change("besteffort savings 15kb");
    order(&mut driver, 5);
    driver.change("besteffort");
    order(&mut driver, 12);
    assert!(driver.take().is_none());
}

#[test]
fn an_overflow_leaves_the_lists_in_order() {
    let mut driver = Driver::new("besteffort flows savings 3kb memlimit 20kb");
    for round in 0..200 {
        for flow in 0..5 {
            driver.put(packet(flow, 300 + 97 * (round % 13)));
        }
        driver.take();
    }
    while driver.take().is_some() {}
    assert_eq!((driver.tin(0).sparse_flows, driver.tin(0).bulk_flows), (0, 0));
}

/// After a reset as well.
#[test]
fn a_reset_leaves_all_queues_with_full_savings() {
    let mut driver = Driver::new("diffserv3 flows savings 6kb");
    driver.put_all(packet(1, 1514), 9);
    order(&mut driver, 7);
    driver.cake.reset(&mut driver.owner);
    driver.put_all(packet(9, 1514), 12);
    assert_eq!(order(&mut driver, 5), [9; 5]);
    driver.put_all(packet(1, 1514), 5);
    assert_eq!(order(&mut driver, 4), [1; 4]);
}

/// A host has its place while a flow of it has packets: another one may have taken it since.
#[test]
fn a_flow_that_was_empty_finds_its_host_again() {
    let mut driver = Driver::new("besteffort dual-srchost savings 15kb bandwidth 100mbit");
    let of = |flow, host| with(packet(flow, 1514), |p| p.src_host = host);
    let flows = [of(1, 1), of(2, 1 + 1024), of(3, 3)];
    // The first host comes and goes; the second one has the same home.
    driver.put_all(flows[0], 2);
    order(&mut driver, 2);
    [flows[1], flows[0], flows[2]].iter().for_each(|flow| driver.put_all(*flow, 3));
    let mut sent = [0u32; 3];
    for turn in 0..640 {
        let flow = order(&mut driver, 1)[0];
        // At first what was saved up is sent.
        sent[flow as usize - 1] += u32::from(turn >= 40);
        driver.put(flows[flow as usize - 1]);
    }
    assert!(sent.iter().all(|sent| sent.abs_diff(200) <= 3), "{sent:?}");
}

#[test]
fn blue_wakes_and_rests_where_queues_save() {
    let mut driver = Driver::new("besteffort bandwidth 80mbit memlimit 23040b savings 3kb");
    driver.put_all(packet(1, 1514), 12);
    assert_eq!(driver.tin(0).unresponsive_flows, 1);
    // Its probability is 1/256: sixteen empty queues, each a target after the last step.
    for step in 0..16 {
        driver.take_all();
        driver.wait(Span::from_millis(6));
        driver.put(packet(1, 1514));
        assert_eq!(driver.tin(0).unresponsive_flows, 1, "{step}");
    }
    driver.take_all();
    assert_eq!(driver.tin(0).unresponsive_flows, 0);
}

/// A queue that was empty for long enough is anybody's.
#[test]
fn who_takes_a_queue_over_does_not_inherit_signals() {
    let mut driver = Driver::new("flows besteffort memlimit 23040b savings 3kb");
    let in_set = |n: u64| with(packet(1, 1514), |p| p.flow = n * 1024 + 8);
    driver.put_all(in_set(1), 12);
    assert_eq!(driver.tin(0).unresponsive_flows, 1);
    driver.take_all();
    // Rounds in which it saves up.
    driver.put_all(packet(9, 1514), 8);
    driver.take_all();
    assert_eq!(driver.tin(0).unresponsive_flows, 1);
    driver.put(in_set(2));
    assert_eq!(driver.tin(0).unresponsive_flows, 0);
}
