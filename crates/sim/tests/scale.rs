//! Ten thousand flows: bounded memory is measured from outside (`simnel bench sim --only scale`);
//! here, that such a run works and that its cost in events does not grow with the flows.

use simnel_core::tc;
use simnel_core::{Rate, Span};
use simnel_sim::setup::{Access, Host, LineSetup, Recording};
use simnel_sim::{Direction, Kind, Results, Run, Setup, Traffic};

fn results(flows: u32) -> Results {
    let line = LineSetup::wire(
        tc::parse("cake besteffort flows").expect("words"),
        Some(Rate::from_bits(10_000_000_000)),
    );
    let half = Access { delay: Span::from_millis(10), rate: None };
    let traffic = Traffic {
        name: "bulk".into(),
        kind: Kind::Bulk { size: None },
        direction: Direction::Up,
        pairs: vec![(0, 1)],
        count: flows,
        dscp: 0,
        start: Span::ZERO,
        stagger: Span::from_millis(200),
        stop: None,
        tcp: simnel_tcp::Config::default(),
    };
    let home = Access::default();
    let setup = Setup {
        duration: Span::from_millis(600),
        warmup: Span::from_millis(300),
        lines: [line.clone(), line],
        hosts: vec![
            Host { address: [10, 0, 1, 1], home: true, egress: home, ingress: home },
            Host { address: [10, 0, 2, 1], home: false, egress: half, ingress: half },
        ],
        traffic: vec![traffic],
        recording: Recording::default(),
    };
    let results = Run::new(&setup, 1).expect("a good set-up").finish();
    assert!(results.conservation.holds(), "{:?}", results.conservation);
    results
}

#[test]
fn ten_thousand_flows_fill_ten_gigabit_with_as_many_events_a_packet_as_ten() {
    let (few, many) = (results(10), results(10_000));
    let moved =
        |results: &Results| -> u64 { results.flows.iter().map(|flow| flow.goodput_bytes()).sum() };
    // 0.3 s at 10 Gbit/s are 375 MB; headers and the end of slow start take their share.
    assert!(moved(&many) > 300_000_000, "{}", moved(&many));
    let share = |results: &Results| results.events * 100 / results.bottleneck_packets.max(1);
    assert!(share(&many) < share(&few) * 3 / 2, "{} against {}", share(&many), share(&few));
}
