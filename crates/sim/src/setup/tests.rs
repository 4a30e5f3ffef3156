//! The bounds of what a run takes: each one, and one beyond it.

use simnel_core::qdisc;

use super::*;

/// A ping between two hosts.
fn setup(kind: Kind) -> Setup {
    let line = LineSetup::wire(qdisc::parse("pfifo").expect("words"), None);
    let far = Access { delay: Span::from_millis(10), rate: None };
    let near = Access::default();
    Setup {
        duration: Span::from_secs(10),
        warmup: Span::ZERO,
        lines: [line.clone(), line],
        hosts: vec![
            Host { address: [10, 0, 1, 1], home: true, egress: near, ingress: near },
            Host { address: [10, 0, 2, 1], home: false, egress: far, ingress: far },
        ],
        traffic: vec![Traffic::one("it", kind, Direction::Up)],
        recording: Recording::default(),
    }
}

const PING: Kind = Kind::Ping { size: 64, interval: Span::from_millis(100), icmp: false };

/// A change, whether it is still taken, and a part of the error if not.
type Case = (fn(&mut Setup), Option<&'static str>);

fn check(cases: &[Case]) {
    for (number, (change, expected)) in cases.iter().enumerate() {
        let mut setup = setup(PING);
        change(&mut setup);
        let error = setup.check().err().map(|error| error.to_string());
        match (&error, expected) {
            (None, None) => {}
            (Some(error), Some(part)) => assert!(error.contains(part), "case {number}: {error}"),
            _ => panic!("case {number}: {error:?}"),
        }
    }
}

/// With three flows, and two lines, 50 million numbers.
fn ten_million_intervals(setup: &mut Setup, flows: u32) {
    setup.recording.interval = Span(setup.duration.0 / 10_000_000);
    setup.traffic[0].count = flows;
}

#[test]
fn times_and_numbers_have_bounds() {
    check(&[
        (|_| {}, None),
        (|s| s.duration = MAX_DURATION, None),
        (|s| s.duration = MAX_DURATION + Span(1), Some("the duration")),
        (|s| s.duration = Span::ZERO, Some("the duration")),
        (|s| s.warmup = Span(s.duration.0 - 1), None),
        (|s| s.warmup = s.duration, Some("the warm-up")),
        (|s| s.traffic[0].count = MAX_FLOWS as u32, None),
        (|s| s.traffic[0].count = MAX_FLOWS as u32 + 1, Some("the number of flows")),
        // Three series each: two lines and a flow.
        (|s| s.recording.interval = Span(s.duration.0 / 16_666_666), None),
        (|s| s.recording.interval = Span(s.duration.0 / 16_666_668), Some("the intervals")),
        (|s| s.recording.interval = Span::ZERO, Some("the intervals")),
        (|s| ten_million_intervals(s, 3), None),
        (|s| ten_million_intervals(s, 4), Some("the intervals")),
    ]);
}

#[test]
fn lines_and_hosts_have_bounds() {
    check(&[
        (|s| s.hosts[0].egress.delay = MAX_DELAY, None),
        (|s| s.hosts[1].ingress.delay = MAX_DELAY + Span(1), Some("the delay of 10.0.2.1")),
        (|s| s.hosts[1].egress.delay = MAX_DELAY + Span(1), Some("the delay of")),
        (|s| s.lines[1].jitter = MAX_DELAY, None),
        (|s| s.lines[1].jitter = MAX_DELAY + Span(1), Some("the jitter")),
        (|s| s.lines[0].loss = Loss::Every(2), None),
        (|s| s.lines[0].loss = Loss::Every(1), Some("the periodic loss")),
        (|s| s.lines[0].loss = Loss::Every(0), Some("the periodic loss")),
        (|s| s.lines[0].steps = [5, 5, 7].map(step).to_vec(), None),
        (|s| s.lines[0].steps = [5, 7, 6].map(step).to_vec(), Some("steps in order")),
    ]);
}

fn step(ms: u64) -> Step {
    Step { at: Time::ZERO + Span::from_millis(ms), rate: Rate(1) }
}

#[test]
fn traffic_is_between_a_home_and_the_internet() {
    check(&[
        (|s| s.traffic[0].pairs.clear(), Some("the hosts of `it`")),
        (|s| s.traffic[0].pairs = vec![(0, 1), (0, 2)], Some("hosts of the set-up")),
        (|s| s.traffic[0].pairs = vec![(1, 0)], Some("one on the Internet")),
        (|s| s.traffic[0].pairs = vec![(0, 0)], Some("one on the Internet")),
        (|s| s.traffic[0].pairs = vec![(1, 1)], Some("one on the Internet")),
        // A microsecond, over all four ways.
        (|s| delays(s, 500, 500), None),
        (|s| delays(s, 500, 499), Some("the round-trip time")),
        (|s| s.traffic[0].dscp = 63, None),
        (|s| s.traffic[0].dscp = 64, Some("the DSCP")),
        (|s| s.traffic[0].tcp.mtu = 100, None),
        (|s| s.traffic[0].tcp.mtu = 99, Some("the MTU")),
        (|s| s.traffic[0].tcp.mtu = 1_500, None),
        (|s| s.traffic[0].tcp.mtu = 1_501, Some("the MTU")),
        // The smaller of both lines' devices counts.
        (|s| s.lines[1].device.mtu = 1_513, Some("the MTU")),
        (|s| s.traffic[0].start = MAX_DURATION, None),
        (|s| s.traffic[0].start = MAX_DURATION + Span(1), Some("the start")),
        (|s| s.traffic[0].stagger = MAX_DURATION, None),
        (|s| s.traffic[0].stagger = MAX_DURATION + Span(1), Some("the start")),
        (|s| reads(s, Kind::Bulk { size: None }, 1, 1), None),
        (|s| reads(s, PING, 1, 1), Some("the reading")),
        (|s| reads(s, Kind::Bulk { size: None }, 0, 1), Some("the reading")),
        (|s| reads(s, Kind::Bulk { size: None }, 1, 0), Some("the reading")),
        (|s| reads(s, Kind::Bulk { size: None }, 1, MAX_DURATION.0), None),
        (|s| reads(s, Kind::Bulk { size: None }, 1, MAX_DURATION.0 + 1), Some("the reading")),
    ]);
}

fn reads(setup: &mut Setup, kind: Kind, portion: u64, interval: u64) {
    setup.traffic[0].kind = kind;
    setup.traffic[0].reading = Some(Reading { portion, interval: Span(interval) });
}

fn delays(setup: &mut Setup, egress: u64, ingress: u64) {
    setup.hosts[1].egress.delay = Span(egress);
    setup.hosts[1].ingress.delay = Span(ingress);
}

#[test]
fn each_kind_of_traffic_has_bounds() {
    const US: Span = Span::from_micros(1);
    let ping = |size, interval| Kind::Ping { size, interval, icmp: true };
    let datagrams = |ports| Kind::Datagrams { size: 9, interval: US, ports };
    let messages = |size, interval| Kind::Messages { size, interval };
    let bursts = |size, pause| Kind::Bursts { size, pause };
    for (kind, expected) in [
        (Kind::Bulk { size: None }, None),
        (Kind::Bulk { size: Some(1) }, None),
        (Kind::Bulk { size: Some(MAX_TRANSFER) }, None),
        (Kind::Bulk { size: Some(0) }, Some("the size")),
        (Kind::Bulk { size: Some(MAX_TRANSFER + 1) }, Some("the size")),
        (ping(1_472, US), None),
        (ping(1_473, US), Some("the size")),
        (ping(u32::MAX, US), Some("the size")),
        (ping(9, Span(US.0 - 1)), Some("the interval")),
        (ping(9, MAX_DURATION), None),
        (ping(9, MAX_DURATION + Span(1)), Some("the interval")),
        (datagrams(1), None),
        (datagrams(MAX_PORTS), None),
        (datagrams(0), Some("the ports")),
        (datagrams(MAX_PORTS + 1), Some("the ports")),
        (Kind::RequestResponse { size: 1_472 }, None),
        (Kind::RequestResponse { size: 1_473 }, Some("the size")),
        (messages(1, US), None),
        (messages(0, US), Some("the size")),
        (messages(1, Span::ZERO), Some("the interval")),
        (bursts(1, (Span::ZERO, MAX_DURATION)), None),
        (bursts(0, (US, US)), Some("the bursts")),
        (bursts(1, (US, Span::ZERO)), Some("the bursts")),
        (bursts(1, (US, MAX_DURATION + Span(1))), Some("the bursts")),
        (bursts(MAX_TRANSFER + 1, (US, US)), Some("the bursts")),
    ] {
        let error = setup(kind.clone()).check().err().map(|error| error.to_string());
        assert_eq!(error.is_some(), expected.is_some(), "{kind:?}: {error:?}");
        assert!(error.is_none_or(|error| error.contains(expected.unwrap())), "{kind:?}");
    }
}

#[test]
fn browsing_has_bounds() {
    let web = |change: fn(&mut web::Params)| {
        let mut params = web::Params::default();
        change(&mut params);
        setup(Kind::Web(params)).check().is_ok()
    };
    let day = Span::from_secs(86_400);
    assert!(web(|_| {}));
    assert_eq!(day, Span(86_400_000_000_000));
    for (good, bad) in [
        (
            (|p| p.interval = Span::from_micros(10)) as fn(&mut web::Params),
            (|p| p.interval = Span(9_999)) as fn(&mut web::Params),
        ),
        (
            |p| p.interval = Span::from_secs(86_400),
            |p| p.interval = Span::from_secs(86_400) + Span(1),
        ),
        (|p| p.pages = (1, 10_000), |p| p.pages = (1, 10_001)),
        (|p| p.pages = (3, 3), |p| p.pages = (3, 2)),
        (|p| p.objects = (1, 1), |p| p.objects = (0, 1)),
        (|p| p.request = (1, 1_000_000), |p| p.request = (1, 1_000_001)),
        (|p| p.object_size = 1, |p| p.object_size = 0),
        (|p| p.object_size = web::MAX_OBJECT, |p| p.object_size = web::MAX_OBJECT + 1),
        (|p| p.object_spread_milli = 4_000, |p| p.object_spread_milli = 4_001),
        (|p| p.think = Span::from_secs(60), |p| p.think = Span::from_secs(60) + Span(1)),
        (
            |p| p.reading = Span::from_secs(86_400),
            |p| p.reading = Span::from_secs(86_400) + Span(1),
        ),
    ] {
        assert!(web(good) && !web(bad));
    }
}

fn five(params: &mut dash::Params, prefill: Span) {
    (params.chunk, params.buffer) = (Span::from_secs(2), Span::from_secs(5));
    params.prefill = prefill;
}

#[test]
fn video_has_bounds() {
    let video = |change: fn(&mut dash::Params)| {
        let mut params = dash::Params::default();
        change(&mut params);
        setup(Kind::Dash(params)).check().is_ok()
    };
    assert!(video(|_| {}));
    for (good, bad) in [
        (
            (|p| p.ladder = (0..64).map(|n| 1_000 + n).collect()) as fn(&mut dash::Params),
            (|p| p.ladder = (0..65).map(|n| 1_000 + n).collect()) as fn(&mut dash::Params),
        ),
        (|p| p.ladder = vec![1_000], |p| p.ladder = vec![999]),
        (|p| p.ladder = vec![1_000_000_000], |p| p.ladder = vec![1_000_000_001]),
        (|p| p.ladder = vec![5_000, 5_001], |p| p.ladder = vec![5_000, 5_000]),
        (|p| p.ladder = vec![5_000, 5_001], |p| p.ladder.clear()),
        (|p| p.chunk = Span::from_millis(10), |p| p.chunk = Span(9_999_999)),
        (
            |p| (p.chunk, p.buffer) = (Span::from_secs(60), Span::from_secs(60)),
            |p| (p.chunk, p.buffer) = (Span::from_secs(61), Span::from_secs(61)),
        ),
        (
            |p| (p.buffer, p.prefill) = (p.chunk, Span::ZERO),
            |p| (p.buffer, p.prefill) = (Span(p.chunk.0 - 1), Span::ZERO),
        ),
        (|p| p.buffer = Span::from_secs(3_600), |p| p.buffer = Span::from_secs(3_601)),
        (|p| p.prefill = p.buffer, |p| p.prefill = p.buffer + Span(1)),
        // Two chunks of two seconds are all that a buffer of five is filled with.
        (|p| five(p, Span::from_secs(4)), |p| five(p, Span::from_secs(4) + Span(1))),
        (|p| p.safety_milli = 1, |p| p.safety_milli = 0),
        (|p| p.safety_milli = 1_000, |p| p.safety_milli = 1_001),
    ] {
        assert!(video(good) && !video(bad));
    }
}

#[test]
fn series_have_an_interval_that_has_only_begun() {
    let mut setup = setup(PING);
    assert_eq!(setup.intervals(), 11);
    setup.recording.interval = Span::from_millis(3_000);
    assert_eq!(setup.intervals(), 4);
    setup.warmup = Span::from_secs(2);
    assert_eq!(setup.window(), (Time(2_000_000_000), Time(10_000_000_000)));
}
