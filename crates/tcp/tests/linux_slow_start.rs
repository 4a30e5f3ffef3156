//! Slow start as real Linux was recorded doing it: payload received per 10 ms on a clean path of 50
//! ms and 1 Gbit/s. The recorded kernel is Linux 6.1.192 in virtual time (one segment a packet,
//! CUBIC). The odd small buckets are what a delayed ACK sets free. Five round trips agree to the
//! segment. From then on the segment that carries PSH depends on when the recorded writer wrote. A
//! segment or two of the hundreds of a round trip come one bucket later or sooner.

mod path;

use path::{millis, Fate, Path};
use simnel_core::time::Time;
use simnel_tcp::{Config, TcpFlags};

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
/// first one. The round that begins at 72 segments acknowledged is the first whose least RTT shows
/// the queue. Its ninth sample ends slow start at 86.
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

/// Numbers of the segments that carry PSH in a transfer of `size` bytes, or without end, on the
/// same kernel. The line has 25 Mbit/s and 48 ms; the run lasts until its queue first signalled.
/// Segments 87, 117 and 161 lie half of the largest window, as it was when the writer wrote, behind
/// the last PSH. From 163 on calls of 64 KiB are shorter than that.
fn pushed(size: Option<u64>) -> Vec<u64> {
    const TWENTY_FIVE_MBIT: u64 = 320;
    let mut path = Path::new(&Config { segment_overhead: 768, ..Config::default() }, millis(48));
    path.there.ns_per_byte = TWENTY_FIVE_MBIT;
    path.trace = Some(Vec::new());
    path.connect();
    match size {
        Some(size) => path.a.write(size),
        None => path.a.write_unlimited(),
    }
    path.run_until(Time(370_000_000));
    let trace = path.trace.take().expect("a trace").into_iter();
    let pushed = trace.filter(|(from_a, _, segment)| {
        *from_a && segment.len > 0 && segment.flags.has(TcpFlags::PSH)
    });
    pushed.map(|(_, _, segment)| (segment.end_seq() - 1).div_ceil(1_448)).collect()
}

#[test]
fn what_a_writer_writes_is_pushed_where_linux_pushes_it() {
    const RECORDED: [u64; 13] = [21, 31, 46, 64, 87, 92, 117, 123, 161, 163, 215, 283, 369];
    assert_eq!(pushed(None), RECORDED);
    // One of 300 kB is as far ahead of what has left, and ends with its last segment.
    let [before @ .., _, _, _] = RECORDED;
    assert_eq!(pushed(Some(300_000)), [&before[..], &[208]].concat());
}

/// One upload at 16 Mbit/s and 200 ms whose ninth segment is lost, on the same kernel. Five seconds
/// from the SYN on, packet by packet.
struct Lossy {
    /// Numbers of the data segments that carry PSH: the last one that the writer wrote before it
    /// slept. The send buffer grows when a segment leaves room in the window, and the writer runs
    /// when all has left that may.
    pushed: Vec<u64>,
    /// Segments acknowledged and the window offered, in units of 128 bytes, by each ACK.
    offered: Vec<(u64, u32)>,
}

impl Lossy {
    fn run() -> Lossy {
        const SIXTEEN_MBIT: u64 = 500;
        const LOST: u64 = 9;
        const MSS: u64 = 1448;
        let config = Config { segment_overhead: 768, ..Config::default() };
        let mut path = Path::new(&config, millis(200));
        // Where the recorded kernel's ticks lay, of which the timers' wheel takes eight at once.
        path.now = Time(18_230_000);
        path.there.ns_per_byte = SIXTEEN_MBIT;
        path.fate = Box::new(|number, _| if number == LOST { Fate::Drop } else { Fate::Pass });
        path.trace = Some(Vec::new());
        path.connect();
        path.a.write_unlimited();
        path.run_until(Time(5_000_000_000));
        let trace = path.trace.take().expect("a trace");
        let pushed = trace.iter().filter(|(from_a, _, segment)| {
            *from_a && segment.len > 0 && segment.flags.has(TcpFlags::PSH)
        });
        let offered = trace.iter().filter(|(from_a, _, segment)| !from_a && segment.mss == 0);
        Lossy {
            pushed: pushed.map(|(_, _, segment)| segment.end_seq() / MSS).collect(),
            offered: offered
                .map(|(_, _, segment)| (segment.ack / MSS, segment.window.div_ceil(128)))
                .collect(),
        }
    }
}

#[test]
fn the_writer_sleeps_where_linux_s_does() {
    const RECORDED: [u64; 25] = [
        21, 31, 46, 65, 79, 93, 107, 121, 135, 149, 163, 177, 191, 205, 219, 233, 247, 261, 275,
        289, 304, 319, 333, 348, 363,
    ];
    let pushed = Lossy::run().pushed;
    assert_eq!(pushed[..RECORDED.len()], RECORDED);
}

/// A filled gap is acknowledged before what it set free was read, which takes room. The first
/// buffer that is read then ends the measurement, so that the window grows a round trip later.
#[test]
fn the_receiver_offers_what_linux_s_does() {
    const RECORDED: [(u64, u32); 12] = [
        (8, 501),
        (27, 396),
        (29, 501),
        (31, 501),
        (33, 501),
        (35, 501),
        (37, 501),
        (38, 501),
        (39, 501),
        (40, 524),
        (41, 546),
        (42, 569),
    ];
    let offered = Lossy::run().offered;
    let last_duplicate = offered.iter().rposition(|one| one.0 == 8).expect("duplicates");
    assert_eq!(offered[last_duplicate..][..RECORDED.len()], RECORDED);
    assert_eq!(offered.last().expect("an ACK").1, 4_421, "the last that was recorded");
}
