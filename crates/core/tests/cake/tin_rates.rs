//! Thresholds, quanta, targets and intervals of tins (facts A.3).

use simnel_core::qdisc::cake::TinStats;
use simnel_core::Span;

use crate::driver::Driver;

fn only_tin(words: &str) -> TinStats {
    Driver::new(&format!("besteffort {words}")).tin(0)
}

/// `span` in whole tens of microseconds, rounded.
fn hundredths(span: Span) -> u64 {
    (span.0 + 5_000) / 10_000
}

#[test]
fn the_worked_table() {
    // Quantum in bytes, target and interval in 0.01 ms, as `tc` shows them for an RTT of 100 ms.
    for (rate, quantum, target, interval) in [
        ("64kbit", 300, 28_388, 56_775),
        ("128kbit", 300, 14_194, 28_388),
        ("256kbit", 300, 7_097, 16_597),
        ("512kbit", 300, 3_548, 13_048),
        ("1mbit", 300, 1_817, 11_317),
        ("2mbit", 300, 908, 10_408),
        ("10mbit", 305, 500, 10_000),
        ("20mbit", 610, 500, 10_000),
        ("49mbit", 1495, 500, 10_000),
        ("49612kbit", 1514, 500, 10_000),
        ("1gbit", 1514, 500, 10_000),
        ("100gbit", 1514, 500, 10_000),
        ("unlimited", 1514, 500, 10_000),
    ] {
        let tin = only_tin(&format!("bandwidth {rate}"));
        assert_eq!(
            (tin.flow_quantum, hundredths(tin.target), hundredths(tin.interval)),
            (quantum, target, interval),
            "{rate}"
        );
    }
}

#[test]
fn presets_of_the_round_trip_time() {
    for (word, target, interval) in [
        ("datacentre", 5, 100),
        ("lan", 50, 1_000),
        ("metro", 500, 10_000),
        ("regional", 1_500, 30_000),
        ("internet", 5_000, 100_000),
        ("oceanic", 15_000, 300_000),
        ("satellite", 50_000, 1_000_000),
        ("interplanetary", 50_000_000, 1_000_000_000),
        ("rtt 7ms", 350, 7_000),
        ("rtt 10us", 1, 10),
    ] {
        // Where packets take no time, and where they take 1.2 ms.
        let tin = only_tin(word);
        let micros = Span::from_micros;
        assert_eq!((tin.target, tin.interval), (micros(target), micros(interval)), "{word}");
        let slow = only_tin(&format!("bandwidth 10mbit {word}"));
        let least = Span(1514 * 800 * 3 / 2);
        let target = micros(target).max(least);
        let longer = target.saturating_sub(tin.target);
        let interval = (micros(interval) + longer).max(target * 2);
        assert_eq!((slow.target, slow.interval), (target, interval), "{word} at 10 Mbit/s");
    }
}

#[test]
fn thresholds_of_every_mode() {
    let rate = 1_250_000;
    // In the order of `tc -s`.
    let eighths: Vec<u64> =
        (0..8).scan(rate, |r, _| Some(std::mem::replace(r, *r * 7 / 8))).collect();
    let modes: [(&str, &[u64]); 5] = [
        ("besteffort", &[rate]),
        ("diffserv3", &[rate / 16, rate, rate / 4]),
        ("diffserv4", &[rate / 16, rate, rate / 2, rate / 4]),
        ("diffserv8", &eighths),
        ("precedence", &eighths),
    ];
    for (mode, thresholds) in modes {
        let driver = Driver::new(&format!("bandwidth 10mbit {mode}"));
        let stats = driver.stats();
        assert_eq!(usize::from(stats.tin_count), thresholds.len(), "{mode}");
        for (tin, threshold) in stats.tins.iter().zip(thresholds) {
            assert_eq!(tin.threshold_rate.0, *threshold, "{mode}");
            // Everything else follows from the tin's own rate.
            let alone = only_tin(&format!("bandwidth {}bps", threshold));
            assert_eq!(tin.flow_quantum, alone.flow_quantum, "{mode}");
            assert_eq!((tin.target, tin.interval), (alone.target, alone.interval), "{mode}");
        }
        let unlimited = Driver::new(mode).stats();
        assert!(unlimited.tins.iter().all(|tin| tin.threshold_rate.0 == 0), "{mode}");
    }
}
