//! Looks at what waits: they agree with the disciplines' own counters at each moment, and change
//! nothing.

use simnel_core::{qdisc, Rate, Span, Time};
use simnel_sim::setup::{Access, Host, LineSetup, Recording};
use simnel_sim::{Direction, Kind, Run, Setup, Traffic, Waiting};
use simnel_tcp::EcnMode;

/// Two uploads, one marked as voice; a download; datagrams; a ping.
fn setup(words: &str) -> Setup {
    let half = Access { delay: Span::from_millis(20), rate: None };
    let traffic = |kind, direction, count, dscp| Traffic {
        count,
        dscp,
        stagger: Span::from_millis(300),
        ..Traffic::one("it", kind, direction)
    };
    let cbr = Kind::Datagrams { size: 172, interval: Span::from_millis(20), ports: 1 };
    let ping = Kind::Ping { size: 64, interval: Span::from_millis(100), icmp: true };
    let line = |mbps: u64| {
        let rate = format!("{mbps}mbit");
        let config = qdisc::parse(&words.replace("{rate}", &rate)).expect("words");
        LineSetup::wire(config, Some(Rate::from_bits(mbps * 1_000_000)))
    };
    Setup {
        duration: Span::from_secs(5),
        warmup: Span::ZERO,
        lines: [line(3), line(15)],
        hosts: vec![
            Host { address: [10, 0, 1, 1], home: true, egress: Access::default(), ingress: half },
            Host { address: [10, 0, 2, 1], home: false, egress: half, ingress: Access::default() },
        ],
        traffic: vec![
            traffic(Kind::Bulk { size: None }, Direction::Up, 1, 0),
            traffic(Kind::Bulk { size: None }, Direction::Up, 1, 46),
            traffic(Kind::Bulk { size: None }, Direction::Down, 2, 0),
            traffic(cbr, Direction::Down, 1, 0),
            traffic(ping, Direction::Up, 1, 0),
        ],
        recording: Recording::default(),
    }
}

/// Looks every 7 ms. The greatest sums of sparse and bulk packets seen.
fn agrees(words: &str) -> [u32; 2] {
    let setup = setup(words);
    let mut run = Run::new(&setup, 5).expect("a good set-up");
    let mut most = [0; 2];
    while !run.is_over() {
        run.advance(run.now() + Span::from_millis(7));
        let flows = run.waiting();
        for direction in Direction::BOTH {
            let way = || flows.iter().map(|flow| flow[direction as usize]);
            let snapshot = run.snapshot(direction);
            let [sparse, bulk] = [|it: Waiting| it.sparse, |it: Waiting| it.bulk]
                .map(|of| way().map(of).sum::<u32>());
            let dropped = way().map(|it| it.dropped).sum::<u64>();
            let (totals, at) = (snapshot.totals, run.now());
            assert_eq!(sparse + bulk, snapshot.backlog.packets, "{words} at {at:?}");
            assert_eq!(way().map(|it| it.bytes).sum::<u64>(), snapshot.backlog.bytes, "{words}");
            assert_eq!(dropped, totals.drops(), "{words} at {at:?}");
            let there = totals.sent_packets + dropped + u64::from(sparse + bulk);
            assert_eq!(totals.enqueued_packets, there, "{words} at {at:?}");
            most = [most[0].max(sparse), most[1].max(bulk)];
        }
    }
    let (watched, alone) = (run.results(), Run::new(&setup, 5).expect("a set-up").finish());
    assert_eq!(watched.hash, alone.hash, "{words}: looking changes the run");
    most
}

#[test]
fn flows_add_up_to_what_the_discipline_says() {
    for words in
        ["pfifo limit 200", "codel", "pie", "sfq", "red limit 200000 avpkt 1000", "dualpi2"]
    {
        let [sparse, bulk] = agrees(words);
        assert!(sparse == 0 && bulk > 5, "{words}: {sparse} and {bulk}");
    }
    for words in [
        "fq_codel",
        "fq_pie",
        "cake bandwidth {rate} diffserv4",
        "cake bandwidth {rate} ack-filter",
    ] {
        let [sparse, bulk] = agrees(words);
        assert!(sparse > 0 && bulk > 5, "{words}: {sparse} and {bulk}");
    }
}

#[test]
fn queues_and_windows_are_told_by_flow() {
    let setup = setup("cake bandwidth {rate} diffserv4");
    let mut run = Run::new(&setup, 5).expect("a good set-up");
    run.advance(Time::ZERO + Span::from_secs(4));
    let windows = run.windows();
    assert!(windows[..4].iter().all(|window| window.is_some_and(|segments| segments > 1)));
    assert_eq!(windows[4..], [None; 2], "no windows without TCP");
    let has_queues = |words| {
        let run = Run::new(&self::setup(words), 5).expect("a good set-up");
        Direction::BOTH.map(|direction| run.has_queues(direction))
    };
    assert_eq!(has_queues("fq_codel"), [true; 2]);
    assert_eq!(has_queues("sfq"), [false; 2], "none of them sparse");
    assert_eq!(has_queues("tbf rate 3mbit burst 5000 limit 20000"), [false; 2]);
}

#[test]
fn marks_are_told_by_flow() {
    let mut setup = setup("fq_codel");
    setup.traffic[2].tcp.ecn = EcnMode::On;
    let mut run = Run::new(&setup, 5).expect("a good set-up");
    run.advance(Time::ZERO + Span::from_secs(4));
    let marked: Vec<[u64; 2]> =
        run.waiting().iter().map(|flow| flow.map(|way| way.marked)).collect();
    // Both downloads alone are of those that are marked.
    assert_eq!([&marked[..2], &marked[4..]].concat(), [[0; 2]; 4]);
    assert!(marked[2..4].iter().all(|[up, down]| *up == 0 && *down > 0), "{marked:?}");
    let both = marked[2][1] + marked[3][1];
    assert_eq!(both, run.snapshot(Direction::Down).totals.marked);
}
