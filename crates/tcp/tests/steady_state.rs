//! Long flows under exact periodic loss, against the formulas: Reno against Mathis et al. (1997),
//! CUBIC against RFC 9438, section 5.1. Every `1/p`-th data segment is dropped; nothing else
//! limits.

mod path;

use path::{millis, seconds, Fate, Path};
use simnel_tcp::{Config, CongestionControl};

/// Mean window in segments over `duration` seconds, after `warm_up` seconds.
fn mean_window(congestion: CongestionControl, period: u64, rtt_ms: u64, run: (u64, u64)) -> f64 {
    let config = Config { congestion, rcvbuf_max: 256 << 20, sndbuf_max: 0, ..Config::default() };
    let mut path = Path::new(&config, millis(rtt_ms));
    path.fate = Box::new(move |n, _| if n % period == 0 { Fate::Drop } else { Fate::Pass });
    path.connect();
    path.a.write_unlimited();
    let (warm_up, duration) = run;
    path.run_until(seconds(warm_up));
    let before = path.b.received();
    path.run_until(seconds(warm_up + duration));
    let segments = (path.b.received() - before) as f64 / 1448.0;
    segments * (rtt_ms as f64 / 1e3) / duration as f64
}

/// Enough of a run to see some sixty losses.
fn run_length(window: f64, period: u64, rtt_ms: u64) -> (u64, u64) {
    let per_loss = period as f64 / window * rtt_ms as f64 / 1e3;
    ((per_loss * 10.0) as u64 + 5, (per_loss * 60.0) as u64 + 5)
}

#[test]
fn reno_follows_mathis() {
    for period in [1_000u64, 3_000, 10_000] {
        for rtt_ms in [10, 50, 100, 200] {
            let expected = (1.5 * period as f64).sqrt();
            let run = run_length(expected, period, rtt_ms);
            let window = mean_window(CongestionControl::Reno, period, rtt_ms, run);
            let ratio = window / expected;
            println!("reno 1/{period} {rtt_ms} ms: {window:.1} of {expected:.1}: {ratio:.3}");
            assert!((ratio - 1.0).abs() <= 0.08, "1/{period}, {rtt_ms} ms: {ratio:.3}");
        }
    }
}

#[test]
fn cubic_follows_rfc_9438() {
    for period in [100u64, 1_000, 3_000, 10_000] {
        for rtt_ms in [10, 50, 100, 200] {
            let p = 1.0 / period as f64;
            let rtt = rtt_ms as f64 / 1e3;
            let cubic = 1.054 * (rtt / p).powf(0.75);
            let reno = (1.5 / p).sqrt();
            let expected = cubic.max(reno);
            let run = run_length(expected, period, rtt_ms);
            let window = mean_window(CongestionControl::Cubic, period, rtt_ms, run);
            let ratio = window / expected;
            println!(
                "cubic 1/{period} {rtt_ms} ms: {window:.1}; formulas: cubic {cubic:.1}, \
                 reno {reno:.1}; {ratio:.3}"
            );
            // Windows of a dozen segments are beyond both formulas: recovery is no small part.
            if period >= 1_000 {
                assert!((ratio - 1.0).abs() <= 0.25, "1/{period}, {rtt_ms} ms: {ratio:.3}");
            }
        }
    }
}
