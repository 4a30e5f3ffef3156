//! DRR++: new flows first, then bulk, then decay (facts A.5), as the flow counts of `tc -s` tell.

use simnel_core::Span;

use crate::driver::{packet, with, Driver};

impl Driver {
    /// Sparse (with decaying) and bulk flows of the first tin.
    fn flows(&self) -> (u16, u16) {
        (self.tin(0).sparse_flows, self.tin(0).bulk_flows)
    }

    /// Number of the flow whose packet comes next.
    fn next_flow(&mut self) -> u32 {
        (self.take().expect("a packet waits").flow / 8 - 1) as u32
    }
}

#[test]
fn a_flow_turns_bulk_when_its_quantum_is_spent_and_more_waits() {
    let mut driver = Driver::new("besteffort");
    driver.put_all(packet(1, 757), 5);
    assert_eq!(driver.flows(), (1, 0));
    // Two packets are the quantum of 1514 bytes; noticed when the third is due.
    for expected in [(1, 0), (1, 0), (0, 1), (0, 1), (0, 1)] {
        driver.take();
        assert_eq!(driver.flows(), expected);
    }
    assert!(driver.take().is_none());
}

#[test]
fn a_sparse_flow_that_overspends_and_rests_waits_its_turn() {
    let mut driver = Driver::new("besteffort");
    driver.put_all(packet(9, 1514), 10);
    driver.take();
    driver.take();
    assert_eq!(driver.flows(), (0, 1));
    // 4000 bytes exceed two quanta; the queue is empty then, so the flow counts as sparse still.
    driver.put(packet(1, 4000));
    assert_eq!(driver.next_flow(), 1);
    assert_eq!(driver.next_flow(), 9);
    assert_eq!(driver.flows(), (1, 1));
    // A packet that comes while the debt is not yet paid makes it bulk: no second quantum.
    driver.put(packet(1, 100));
    assert_eq!(driver.flows(), (0, 2));
}

#[test]
fn newcomers_go_first_in_order_of_arrival() {
    let mut driver = Driver::new("besteffort");
    driver.put_all(packet(1, 1514), 10);
    for _ in 0..3 {
        assert_eq!(driver.next_flow(), 1);
    }
    for flow in [5, 3, 4] {
        driver.put(packet(flow, 100));
    }
    let order: Vec<u32> = (0..5).map(|_| driver.next_flow()).collect();
    assert_eq!(order, [5, 3, 4, 1, 1]);
}

#[test]
fn a_flow_decays_until_its_aqm_is_at_rest() {
    let mut driver = Driver::new("besteffort rtt 100ms");
    driver.put(packet(1, 100));
    driver.take();
    // Its queue is empty, but nobody has looked: it is sparse.
    assert_eq!(driver.flows(), (1, 0));
    driver.put(packet(2, 100));
    driver.wait(Span::from_millis(50));
    driver.take();
    // Looked at 50 ms later: decaying, which counts as sparse.
    assert_eq!(driver.flows(), (2, 0));
    driver.wait(Span::from_millis(101));
    driver.put(packet(3, 100));
    driver.take();
    // An interval has passed for both: gone. The third has sent and nobody has looked.
    assert_eq!(driver.flows(), (1, 0));
    // A packet wakes a decaying flow up as a new one, ahead of the bulk.
    driver.put_all(packet(4, 1514), 5);
    for _ in 0..3 {
        driver.take();
    }
    driver.put(packet(3, 100));
    assert_eq!(driver.next_flow(), 3);
}

#[test]
fn sparse_flows_hardly_wait_behind_bulk() {
    let mut driver = Driver::new("besteffort bandwidth 10mbit");
    for flow in 0..4 {
        driver.put_all(packet(flow, 1514), 200);
    }
    for _ in 0..16 {
        driver.take();
    }
    let ping = with(packet(9, 100), |p| p.len = 100);
    for _ in 0..30 {
        driver.wait(Span::from_millis(20));
        let came = driver.now;
        let handle = driver.put(ping);
        while driver.take().expect("packets wait").handle != handle {}
        // The packet on the line ends, the ping is sent: one full packet at 10 Mbit/s is 1.2 ms.
        assert!(driver.now.since(came) <= Span::from_micros(1_300), "{:?}", driver.now.since(came));
    }
}
