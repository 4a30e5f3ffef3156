//! Cost of TCP per data segment, both ends and acknowledgements included, with the least possible
//! path between them: two rings. Prints a hash of what was computed, so that nobody optimises it
//! into doing nothing. `cargo bench -p simnel-tcp [-- SECONDS] [NAME]`.

use std::collections::VecDeque;
use std::time::Instant;

use simnel_core::time::{Span, Time};
use simnel_tcp::{Config, CongestionControl, Endpoint, Segment};

/// One direction: a rate, a queue that drops its tail, a delay.
struct Way {
    flying: VecDeque<(Time, Segment)>,
    free_at: Time,
    ns_per_byte: u64,
    /// Time in the queue above which segments are dropped.
    patience: Span,
    delay: Span,
}

impl Way {
    fn new(ns_per_byte: u64, patience: Span, delay: Span) -> Way {
        Way { flying: VecDeque::new(), free_at: Time::ZERO, ns_per_byte, patience, delay }
    }

    fn send(&mut self, segment: Segment, now: Time) {
        let start = self.free_at.max(now);
        if start.since(now) > self.patience {
            return;
        }
        self.free_at = start + Span(u64::from(segment.wire_len() + 34) * self.ns_per_byte);
        self.flying.push_back((self.free_at + self.delay, segment));
    }

    fn next(&self) -> Time {
        self.flying.front().map_or(Time::MAX, |(arrival, _)| *arrival)
    }
}

fn drain(endpoint: &mut Endpoint, way: &mut Way, now: Time) {
    while let Some(segment) = endpoint.poll_transmit(now) {
        way.send(segment, now);
    }
}

fn run(congestion: CongestionControl, seconds: u64) -> (u64, u64, u64) {
    let config = Config { congestion, ..Config::default() };
    let (mut a, mut b) = (Endpoint::new(&config), Endpoint::new(&config));
    let mut there = Way::new(80, Span::from_millis(20), Span::from_millis(20));
    let mut back = Way::new(0, Span::from_millis(20), Span::from_millis(20));
    let mut now = Time::ZERO;
    b.listen();
    a.connect(now);
    a.write_unlimited();
    drain(&mut a, &mut there, now);
    let end = Time(seconds * 1_000_000_000);
    let mut hash = 0u64;
    loop {
        let timers = (a.next_timer().unwrap_or(Time::MAX), b.next_timer().unwrap_or(Time::MAX));
        let arrivals = (there.next(), back.next());
        now = arrivals.0.min(arrivals.1).min(timers.0).min(timers.1);
        if now > end {
            break;
        }
        if arrivals.0 == now {
            if let Some((_, segment)) = there.flying.pop_front() {
                b.on_segment(&segment, now);
            }
            drain(&mut b, &mut back, now);
        } else if arrivals.1 == now {
            if let Some((_, segment)) = back.flying.pop_front() {
                a.on_segment(&segment, now);
            }
            drain(&mut a, &mut there, now);
        } else if timers.0 == now {
            a.on_timer(now);
            drain(&mut a, &mut there, now);
        } else {
            b.on_timer(now);
            drain(&mut b, &mut back, now);
        }
        hash = (hash ^ now.0).wrapping_mul(0x100_0000_01b3);
    }
    let stats = a.stats();
    (stats.data_segments_sent, stats.retransmits, hash)
}

fn main() {
    let seconds = std::env::args().filter_map(|word| word.parse().ok()).next().unwrap_or(60);
    let named = std::env::args().find_map(|word| CongestionControl::from_name(&word));
    for congestion in CongestionControl::ALL {
        if named.is_some_and(|named| named != congestion) {
            continue;
        }
        let start = Instant::now();
        let (segments, resent, hash) = run(congestion, seconds);
        let ns = start.elapsed().as_nanos() as u64 / segments.max(1);
        println!(
            "{:8} {segments:8} segments {resent:6} sent again {ns:4} ns a segment {hash:016x}",
            congestion.name()
        );
    }
}
