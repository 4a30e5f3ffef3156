//! Each congestion control on a bottleneck of 10 Mbit/s and 40 ms: what it is known for.

mod path;

use path::{millis, seconds, Path};
use simnel_core::time::{Span, Time};
use simnel_tcp::{Config, CongestionControl, EcnMode, Pacing, SlowStartExit};

/// Nanoseconds a byte at 10 Mbit/s.
const TEN_MBIT: u64 = 800;
/// Payload share of a full segment on the wire of the test's path.
const PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;

/// Goodput as a share of the link's, and the mean round-trip time in ms, after `from` seconds.
fn run(config: &Config, limit: usize, mark_above: usize, from: u64, to: u64) -> (f64, f64, u64) {
    let mut path = Path::new(config, millis(40));
    path.there.ns_per_byte = TEN_MBIT;
    path.there.limit = limit;
    path.there.mark_above = mark_above;
    path.connect();
    path.a.write_unlimited();
    path.run_until(seconds(from));
    let before = path.b.received();
    let (mut sum, mut count) = (0, 0);
    let mut time = seconds(from);
    while time < seconds(to) {
        time += Span::from_millis(10);
        path.run_until(time);
        sum += path.there.queued() as u64 * 1514 * TEN_MBIT;
        count += 1;
    }
    let bytes = (path.b.received() - before) as f64;
    let share = bytes * TEN_MBIT as f64 / 1e9 / (to - from) as f64 / PAYLOAD_SHARE;
    (share, 40.0 + sum as f64 / count as f64 / 1e6, path.a.stats().retransmits)
}

fn config(congestion: CongestionControl) -> Config {
    Config { congestion, ..Config::default() }
}

#[test]
fn loss_based_controls_fill_the_buffer() {
    for congestion in [CongestionControl::Reno, CongestionControl::Cubic] {
        let (share, rtt, resent) = run(&config(congestion), 100, usize::MAX, 10, 60);
        println!("{congestion:?}: {share:.3} {rtt:.0} ms, {resent} sent again");
        assert!(share > 0.995, "{congestion:?} {share}");
        assert!((80.0..160.0).contains(&rtt), "{congestion:?} {rtt}");
        assert!(resent > 0 && resent < 300, "{congestion:?} {resent}");
    }
}

#[test]
fn ledbat_keeps_the_queue_at_its_target() {
    let (share, rtt, _) = run(&config(CongestionControl::Ledbat), 1_000, usize::MAX, 20, 60);
    println!("ledbat: {share:.3} {rtt:.0} ms");
    assert!(share > 0.98, "{share}");
    assert!((110.0..160.0).contains(&rtt), "{rtt}");
}

#[test]
fn ledbat_yields_to_cubic() {
    // Two flows cannot meet in a path of two endpoints: let the queue be filled by its delay. A
    // base delay measured early, then a standing queue far above the target.
    let mut path = Path::new(&config(CongestionControl::Ledbat), millis(40));
    path.there.ns_per_byte = TEN_MBIT;
    path.connect();
    path.a.write_unlimited();
    path.run_until(seconds(5));
    path.there.delay = millis(20 + 300);
    path.run_until(seconds(40));
    assert!(path.a.stats().cwnd <= 4, "{}", path.a.stats().cwnd);
}

#[test]
fn bbr_fills_the_link_and_not_the_buffer() {
    let (share, rtt, _) = run(&config(CongestionControl::Bbr), 1_000, usize::MAX, 10, 60);
    println!("bbr: {share:.3} {rtt:.0} ms");
    assert!(share > 0.93, "{share}");
    assert!(rtt < 60.0, "{rtt}");
}

#[test]
fn bbr_ignores_scattered_losses() {
    let mut path = Path::new(&config(CongestionControl::Bbr), millis(40));
    path.there.ns_per_byte = TEN_MBIT;
    path.fate = Box::new(|n, _| if n % 100 == 0 { path::Fate::Drop } else { path::Fate::Pass });
    path.connect();
    path.a.write_unlimited();
    path.run_until(seconds(30));
    let share = path.b.received() as f64 * TEN_MBIT as f64 / 1e9 / 30.0 / PAYLOAD_SHARE;
    println!("bbr under 1 % loss: {share:.3}");
    assert!(share > 0.88, "{share}");
}

#[test]
fn dctcp_holds_the_queue_at_the_marking_threshold() {
    let dctcp = Config { ecn: EcnMode::Accurate, ..config(CongestionControl::Dctcp) };
    let (share, rtt, resent) = run(&dctcp, 1_000, 10, 10, 30);
    println!("dctcp: {share:.3} {rtt:.1} ms, {resent} sent again");
    assert!(share > 0.97, "{share}");
    // Ten segments wait 12 ms; DCTCP swings a little about that.
    assert!((44.0..58.0).contains(&rtt), "{rtt}");
    assert_eq!(resent, 0);
}

#[test]
fn classic_ecn_needs_no_retransmission() {
    let cubic = Config { ecn: EcnMode::On, ..config(CongestionControl::Cubic) };
    let (share, rtt, resent) = run(&cubic, 1_000, 40, 10, 60);
    println!("cubic with ecn: {share:.3} {rtt:.0} ms, {resent} sent again");
    assert_eq!(resent, 0);
    assert!(share > 0.98 && rtt < 110.0, "{share} {rtt}");
}

#[test]
fn pacing_and_hystart_avoid_the_first_overshoot() {
    let start = |exit, pacing| {
        let config = Config { slow_start_exit: exit, pacing, ..Config::default() };
        let mut path = Path::new(&config, millis(40));
        path.there.ns_per_byte = TEN_MBIT;
        path.there.limit = 60;
        path.connect();
        path.a.write_unlimited();
        path.run_until(seconds(2));
        path.there.dropped
    };
    let blind = start(SlowStartExit::LossOnly, Pacing::Off);
    assert!(blind > 20, "{blind}");
    for pacing in [Pacing::Off, Pacing::On] {
        for exit in [SlowStartExit::HyStart, SlowStartExit::HyStartPlusPlus] {
            let dropped = start(exit, pacing);
            println!("{exit:?} {pacing:?}: {dropped} dropped, {blind} without");
            assert!(dropped < blind, "{exit:?} {pacing:?} {dropped}");
        }
    }
}

#[test]
fn a_paced_window_is_spread_over_the_round_trip() {
    let gaps = |pacing| {
        let config = Config { pacing, congestion: CongestionControl::Reno, ..Config::default() };
        let mut path = Path::new(&config, millis(100));
        path.connect();
        path.a.write(1448 * 400);
        path.trace = Some(Vec::new());
        path.run_until(seconds(3));
        let sent: Vec<Time> = path.trace.unwrap().iter().filter(|s| s.0).map(|s| s.1).collect();
        sent.windows(2).filter(|pair| pair[1] > pair[0]).count()
    };
    let (bursts, paced) = (gaps(Pacing::Off), gaps(Pacing::On));
    assert!(paced > 300 && bursts < 260, "{paced} against {bursts}");
}
