//! Slow start as real Linux was recorded doing it: payload received per 10 ms on a clean path of
//! 50 ms and 1 Gbit/s, Linux 6.1.192 in virtual time (one segment a packet, CUBIC). The odd small
//! buckets are what a delayed ACK sets free. Five round trips agree to the segment; from then on
//! which segment carries PSH depends on when the recorded writer wrote, and a segment or two of the
//! hundreds of a round trip come one later or sooner.

mod path;

use path::{millis, Path};
use simnel_core::time::Time;
use simnel_tcp::Config;

/// Bucket number and bytes; buckets between are empty.
const RECORDED: [(usize, u64); 13] = [
    (7, 14_480),
    (12, 28_960),
    (17, 55_024),
    (21, 2_896),
    (22, 110_048),
    (26, 5_792),
    (27, 220_096),
    (31, 11_584),
    (32, 440_192),
    (36, 23_168),
    (37, 583_544),
    (38, 293_944),
    (41, 46_336),
];

#[test]
fn slow_start_is_linux_s() {
    let mut path = Path::new(&Config::default(), millis(50));
    path.there.ns_per_byte = 8;
    path.connect();
    path.a.write_unlimited();
    let mut buckets = Vec::new();
    let mut before = 0;
    for n in 1..=42u64 {
        path.run_until(Time(n * 10_000_000));
        let bytes = path.b.received() - before;
        before += bytes;
        if bytes > 0 {
            buckets.push((n as usize - 1, bytes));
        }
    }
    let exact = 8;
    assert_eq!(buckets[..exact], RECORDED[..exact]);
    assert_eq!(buckets.len(), RECORDED.len());
    for (ours, linux) in buckets.iter().zip(RECORDED) {
        assert_eq!(ours.0, linux.0);
        assert!(ours.1.abs_diff(linux.1) <= 4 * 1448, "{ours:?}, Linux {linux:?}");
    }
}

/// The same kernel on a slow line: 3 Mbit/s, 90 ms, nothing lost. HyStart's rounds count from the
/// first one; the round that begins at 72 segments acknowledged is the first whose least RTT shows
/// the queue, and its ninth sample ends slow start at 86.
#[test]
fn hystart_ends_slow_start_where_linux_does() {
    const THREE_MBIT: u64 = 2_667;
    let mut path = Path::new(&Config::default(), millis(90));
    path.there.ns_per_byte = THREE_MBIT;
    path.connect();
    path.a.write_unlimited();
    path.run_until(Time(570_000_000));
    let grown = path.a.stats().ssthresh;
    assert!((85..=87).contains(&grown), "{grown}");
}
