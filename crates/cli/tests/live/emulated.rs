//! The emulated line over real interfaces: rate, delay, accounting, checksums and super-packets.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use simnel_core::framing::Framing;
use simnel_core::qdisc::{delay, fifo, line, Config};
use simnel_core::{Rate, Span};
use simnel_gateway::link::{DirectionStats, Link, LinkSettings};
use simnel_testbed::probe::Probe;
use simnel_testbed::traffic::{BulkOptions, Connections, Direction};
use simnel_testbed::wire::{self, Sampler};
use simnel_testbed::{Home, HomeOptions, Namespace, Testbed, TestbedError};

use crate::{alone, beside_others, within_tries, Try, Watch};

const SETTLE: Duration = Duration::from_millis(500);

fn line(bits: u64, delay: Span, limit: u32) -> Config {
    Config::Line(line::Params {
        fifo: fifo::Params { kind: fifo::Kind::Pfifo, limit: Some(limit) },
        rate: Rate::from_bits(bits),
        framing: Framing::default(),
        delay: delay::Params { delay, jitter: Span::ZERO, limit: 10_000 },
    })
}

/// Builds a testbed, or says why the test is not run.
fn or_skip<T>(test: &str, testbed: Result<T, TestbedError>) -> Option<T> {
    match testbed {
        Ok(testbed) => Some(testbed),
        Err(TestbedError::NotRoot) => {
            eprintln!("NOT RUN: {test} needs root");
            None
        }
        Err(TestbedError::Command { message, .. }) if message.contains("Unknown device type") => {
            eprintln!("NOT RUN: {test} needs a device type that this kernel lacks: {message}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs `work` while a link joins two interfaces of `namespace`; returns its counters.
fn with_link<T: Send>(
    namespace: &Namespace,
    [a, b]: [&str; 2],
    [a_to_b, b_to_a]: [Config; 2],
    work: impl FnOnce() -> T + Send,
) -> (T, [DirectionStats; 2]) {
    let settings = LinkSettings { a: a.into(), b: b.into(), a_to_b, b_to_a };
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let link = scope.spawn(|| {
            let run = || {
                let link = Link::new(settings).unwrap();
                link.run(&stop).unwrap();
                link.stats()
            };
            namespace.enter(run).unwrap()
        });
        thread::sleep(Duration::from_millis(100));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        stop.store(true, Ordering::Relaxed);
        let stats = link.join().unwrap();
        (result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), stats)
    })
}

fn home_line(home: &Home, line: [Config; 2], work: impl FnOnce() + Send) -> [DirectionStats; 2] {
    with_link(&home.isp, [Home::LINE_HOME, Home::LINE_CORE], line, work).1
}

/// Idle round trips through the home's line: as long as they should be?
fn delay_is_right(home: &Home, ideal: Duration) -> Try {
    let watch = Watch::start();
    let probe =
        Probe::start(&home.lan1, &home.server, Home::SERVER, Duration::from_millis(10)).unwrap();
    thread::sleep(Duration::from_secs(2));
    let mut rtts: Vec<_> = probe.stop().iter().filter_map(|echo| echo.rtt).collect();
    rtts.sort_unstable();
    let median = rtts[rtts.len() / 2];
    println!(
        "idle RTT: ideal {ideal:?}, least {:?}, median {median:?}, p99 {:?}",
        rtts[0],
        rtts[rtts.len() * 99 / 100]
    );
    assert!(rtts[0] >= ideal, "the line never delivers early");
    watch.judge(median < ideal + Duration::from_millis(2))
}

/// Floods the line with half as much again, in full-sized frames: is what comes through the line's
/// rate?
fn rate_is_right(home: &Home, bits: u64) -> Try {
    let socket = home.lan1.enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    let target = SocketAddr::new(Home::SERVER, 9);
    let _sink = home.server.enter(|| UdpSocket::bind(target).unwrap()).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..5 {
                    let _ = socket.send_to(&[0; 1472], target);
                }
                thread::sleep(Duration::from_millis(2));
            }
        });
        thread::sleep(SETTLE);
        let watch = Watch::start();
        let sampler = home.server.watch_rx("net0", Duration::from_millis(100));
        thread::sleep(Duration::from_secs(4));
        let samples = sampler.stop();
        stop.store(true, Ordering::Relaxed);
        let (mean, peak) = (wire::rate(&samples) * 8, wire::peak_rate(&samples, 1) * 8);
        let error = mean as f64 / bits as f64 - 1.0;
        println!("rate: {mean} bit/s ({:+.4} %), highest 100 ms {peak}", error * 100.0);
        let reached = error.abs() < 0.001 && (peak as f64) < bits as f64 * 1.05;
        watch.judge_unless(reached, |machine| error.abs() > 0.05 + machine.taken())
    })
}

#[test]
fn rate_and_delay_are_as_set() {
    const BITS: u64 = 20_000_000;
    let _alone = alone();
    let Some(home) = or_skip("rate_and_delay", Home::new("lk-", HomeOptions::default())) else {
        return;
    };
    let line = line(BITS, Span::from_millis(10), 100);
    let stats = home_line(&home, [line.clone(), line], || {
        // Twice the delay, and 214 bytes at 20 Mbit/s each way (86 µs).
        let ideal = Duration::from_micros(20_000 + 2 * 86);
        within_tries("a delay within 2 ms", || delay_is_right(&home, ideal));
        within_tries("a rate within 0.1 %", || rate_is_right(&home, BITS));
    });
    println!("{stats:#?}");
    for side in stats {
        let accounted = side.delivered_packets + side.dropped + side.refused + side.truncated;
        assert_eq!(side.received_packets, accounted);
        assert_eq!((side.missed, side.truncated, side.refused), (0, 0, 0));
    }
    assert!(stats[0].dropped > 0, "the flood met the limit");
}

/// Frames between two hosts with all offloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Frames {
    Plain,
    /// On a VLAN.
    Tagged,
    /// The device behind the link does not cut super-packets.
    Uncut,
}

/// A client and a server with all offloads on, so that partial checksums and super-packets cross
/// the link.
fn offloaded(frames: Frames) -> Result<(Testbed, [Namespace; 3]), TestbedError> {
    let mut testbed = Testbed::new("lk-")?;
    let [a, middle, b] = ["a", "m", "b"].map(|name| testbed.namespace(name));
    let (a, middle, b) = (a?, middle?, b?);
    testbed.veth((&a, "net0"), (&middle, "left"))?;
    testbed.veth((&middle, "right"), (&b, "net0"))?;
    for (host, address) in [(&a, "10.78.0.2/24"), (&b, "10.78.0.1/24")] {
        let mut interface = "net0";
        if frames == Frames::Tagged {
            let tag = ["link", "add", "link", "net0", "name", "tag7", "type", "vlan", "id", "7"];
            host.ip(&tag)?;
            host.ip(&["link", "set", "tag7", "up"])?;
            interface = "tag7";
        }
        host.address(interface, address)?;
    }
    if frames == Frames::Uncut {
        middle.run("ethtool", &["-K", "right", "tso", "off"])?;
    }
    Ok((testbed, [a, middle, b]))
}

fn bulk_through(frames: Frames, line: Config, seconds: u64) -> Option<(u64, [DirectionStats; 2])> {
    let (_testbed, [a, middle, b]) = or_skip("offloads", offloaded(frames))?;
    let options = BulkOptions { direction: Direction::Upload, flows: 1, congestion: "cubic" };
    let (rate, stats) = with_link(&middle, ["left", "right"], [line.clone(), line], || {
        let bulk =
            Connections::open(&a, &b, [10, 78, 0, 1].into(), options).unwrap().start().unwrap();
        thread::sleep(SETTLE);
        let sampler = Sampler::start(Duration::from_millis(100), bulk.counter());
        thread::sleep(Duration::from_secs(seconds));
        wire::rate(&sampler.stop()) * 8
    });
    println!("{frames:?}: {:.3} Gbit/s of payload, {stats:#?}", rate as f64 / 1e9);
    Some((rate, stats))
}

#[test]
fn super_packets_pass_and_are_charged_by_segment() {
    let _alone = alone();
    let bits = 100_000_000;
    let line = line(bits, Span::from_millis(1), 1000);
    within_tries("super-packets, the rate within 1 %", || {
        let watch = Watch::start();
        let Some((rate, stats)) = bulk_through(Frames::Plain, line.clone(), 3) else {
            return Try::Holds;
        };
        let ideal = bits as f64 * 1448.0 / 1514.0;
        println!("goodput {:.4} of ideal", rate as f64 / ideal);
        let mean = stats[0].received_bytes / stats[0].received_packets;
        assert!(mean > 1514, "mean frame of {mean} bytes: no super-packets");
        watch.judge((rate as f64 / ideal - 1.0).abs() < 0.01)
    });
}

#[test]
fn vlan_tags_survive_with_super_packets() {
    let _alone = alone();
    let bits = 100_000_000;
    let line = line(bits, Span::from_millis(1), 1000);
    within_tries("tagged super-packets, the rate within 2 %", || {
        let watch = Watch::start();
        let Some((rate, _)) = bulk_through(Frames::Tagged, line.clone(), 2) else {
            return Try::Holds;
        };
        let ideal = bits as f64 * 1448.0 / 1518.0;
        watch.judge((rate as f64 / ideal - 1.0).abs() < 0.02)
    });
}

#[test]
fn a_device_that_does_not_cut_gets_segments() {
    let _alone = alone();
    let bits = 100_000_000;
    let line = line(bits, Span::from_millis(1), 1000);
    within_tries("super-packets in segments, nine tenths of the rate and more", || {
        let watch = Watch::start();
        let Some((rate, stats)) = bulk_through(Frames::Uncut, line.clone(), 2) else {
            return Try::Holds;
        };
        let mean = stats[0].received_bytes / stats[0].received_packets;
        assert!(mean <= 1514, "mean frame of {mean} bytes: not cut");
        watch.judge(rate > bits / 10 * 9)
    });
}

#[test]
fn without_a_rate_the_link_is_fast() {
    let _alone = alone();
    within_tries("200 Mbit/s and more without a rate", || {
        let watch = Watch::start();
        let through = bulk_through(Frames::Plain, line(0, Span::ZERO, 10_000), 3);
        watch.judge(through.is_none_or(|(rate, _)| rate > 200_000_000))
    });
}

#[test]
fn a_removed_interface_ends_the_link_with_its_name() {
    let _beside_others = beside_others();
    let Some((_testbed, [a, middle, _])) = or_skip("removal", offloaded(Frames::Plain)) else {
        return;
    };
    let line = line(0, Span::ZERO, 100);
    let settings = LinkSettings {
        a: "left".into(),
        b: "right".into(),
        a_to_b: line.clone(),
        b_to_a: line.clone(),
    };
    let stop = AtomicBool::new(false);
    let error = thread::scope(|scope| {
        let run = || Link::new(settings).unwrap().run(&stop).unwrap_err();
        let link = scope.spawn(|| middle.enter(run).unwrap());
        thread::sleep(Duration::from_millis(200));
        a.ip(&["link", "del", "net0"]).unwrap();
        link.join().unwrap()
    });
    assert!(error.to_string().starts_with("left: "), "{error}");
    let none =
        LinkSettings { a: "left".into(), b: "right".into(), a_to_b: line.clone(), b_to_a: line };
    let error = middle.enter(|| Link::new(none).unwrap_err()).unwrap();
    assert!(error.to_string().contains("no interface `left`"), "{error}");
}
