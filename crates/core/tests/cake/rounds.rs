//! Tins without a shaper: weighted deficit round robin, turn by turn (facts A.5), beside the
//! textbook's loop.

use simnel_core::random::Random;
use simnel_core::Span;

use crate::driver::{packet, with, Driver};

/// The loop as it is published: every tin has its turn, and each in debt gets its quantum.
struct Rounds {
    quanta: Vec<i64>,
    deficits: Vec<i64>,
    queued: Vec<u32>,
    /// Tins that have had packets and were not yet found empty.
    is_active: Vec<bool>,
    current: usize,
}

impl Rounds {
    /// The tin that sends next; some tin has packets.
    fn next(&mut self) -> usize {
        loop {
            let tin = self.current;
            if self.is_active[tin] && self.deficits[tin] >= 0 {
                if self.queued[tin] > 0 {
                    return tin;
                }
                self.is_active[tin] = false;
                continue;
            }
            if self.deficits[tin] <= 0 {
                self.deficits[tin] += self.quanta[tin];
            }
            self.current = (tin + 1) % self.quanta.len();
        }
    }
}

/// Code points of the tins of `mode`, the first one first, and their quanta.
fn tins(mode: &str) -> (Vec<u8>, Vec<i64>) {
    match mode {
        "diffserv3" => (vec![0, 8, 46], vec![1024, 64, 256]),
        "diffserv4" => (vec![0, 8, 34, 46], vec![1024, 64, 512, 256]),
        // Each has seven eighths of the one below.
        "precedence" => {
            ((0..8).map(|tin| tin << 3).collect(), vec![256, 224, 196, 171, 149, 130, 113, 98])
        }
        _ => (vec![0], vec![65_535]),
    }
}

#[test]
fn without_a_shaper_tins_take_turns_as_published() {
    // Now and then a super-packet, which takes its tin thousands of rounds.
    for (mode, large) in [
        ("diffserv3", 0),
        ("diffserv4", 0),
        ("precedence", 0),
        ("besteffort", 60),
        ("diffserv3", 60),
        ("diffserv4", 60),
        ("precedence", 60),
    ] {
        let (dscps, quanta) = tins(mode);
        let count = quanta.len();
        let mut rounds = Rounds {
            quanta,
            deficits: vec![0; count],
            queued: vec![0; count],
            is_active: vec![false; count],
            current: 0,
        };
        let mut driver = Driver::new(mode);
        let mut random = Random::new(5);
        for step in 0..3_000 {
            // Most of the time many wait; at times all tins run dry.
            let most = if step / 200 % 2 == 0 { 24 } else { 3 };
            if random.below(most) >= driver.cake.backlog().packets {
                // At first one tin alone, while the others get the quantum that they begin with.
                let tin = if step < 40 { 0 } else { random.below(count as u32) as usize };
                let len = match random.below(100) {
                    n if n < large / 20 => 1 + random.below(400_000),
                    // The quantum, after which a tin has neither debt nor credit.
                    n if n % 3 == 0 => rounds.quanta[tin] as u32,
                    _ => 64 + random.below(1_451),
                };
                driver.put(with(packet(tin as u32, len), |p| p.tos = dscps[tin] << 2));
                rounds.queued[tin] += 1;
                rounds.is_active[tin] = true;
            } else {
                let sent = driver.take().expect("packets wait");
                let tin = rounds.next();
                assert_eq!(usize::from(driver.place().0), tin, "{mode}, step {step}");
                assert_eq!(sent.tos >> 2, dscps[tin], "{mode}, step {step}");
                rounds.queued[tin] -= 1;
                rounds.deficits[tin] -= i64::from(sent.len);
            }
        }
    }
}

/// Linux goes through all eight tins after a change, so that fewer begin anew with the first.
#[test]
fn after_a_change_the_first_tin_is_next_unless_there_are_eight() {
    for (mode, tin) in [("diffserv4", 0), ("precedence", 2)] {
        let (dscps, _) = tins(mode);
        let mut driver = Driver::new(&format!("{mode} memlimit 1mb"));
        driver.put(with(packet(2, 100), |p| p.tos = dscps[2] << 2));
        driver.take();
        assert_eq!(driver.place().0, 2, "{mode}");
        driver.change(&format!("{mode} memlimit 1mb rtt 50ms"));
        assert_eq!(driver.place().0, tin, "{mode}");
    }
}

/// A flow that has gone is kept until its AQM's state has come to rest: for an interval.
#[test]
fn flows_come_to_rest_in_every_tin_and_are_counted_there() {
    for (index, dscp) in [(0, 8), (1, 0), (2, 34), (3, 46)] {
        let mut driver = Driver::new("diffserv4");
        let of = |flow| with(packet(flow, 100), |p| p.tos = dscp << 2);
        for flow in [1, 2] {
            driver.put(of(flow));
            driver.take();
        }
        assert_eq!((driver.tin(index).sparse_flows, driver.tin(index).way_misses), (2, 2));
        driver.wait(Span::from_millis(99));
        driver.put(of(2));
        driver.take();
        assert_eq!((driver.tin(index).sparse_flows, driver.tin(index).way_direct_hits), (2, 1));
        driver.wait(Span::from_millis(1));
        driver.put(of(2));
        driver.take();
        assert_eq!((driver.tin(index).sparse_flows, driver.tin(index).way_misses), (1, 2));
        let others = (0..4).filter(|other| *other != index);
        assert_eq!(others.map(|tin| driver.tin(tin).way_misses).sum::<u32>(), 0);
    }
}
