//! Ten thousand flows: such a run works, its cost in events does not grow with the flows, and its
//! memory does not grow with time. (`simnel bench sim --scale` measures time and memory of the full
//! size: ten seconds at 10 Gbit/s.)

use simnel_core::qdisc;
use simnel_core::{Rate, Span, Time};
use simnel_sim::setup::{Access, Host, LineSetup, Recording};
use simnel_sim::{Direction, Kind, Results, Run, Setup, Traffic};

fn setup(flows: u32) -> Setup {
    let line = LineSetup::wire(
        qdisc::parse("cake besteffort flows").expect("words"),
        Some(Rate::from_bits(10_000_000_000)),
    );
    let half = Access { delay: Span::from_millis(10), rate: None };
    let traffic = Traffic {
        count: flows,
        stagger: Span::from_millis(200),
        ..Traffic::one("bulk", Kind::Bulk { size: None }, Direction::Up)
    };
    let home = Access::default();
    Setup {
        duration: Span::from_millis(600),
        warmup: Span::from_millis(300),
        lines: [line.clone(), line],
        hosts: vec![
            Host { address: [10, 0, 1, 1], home: true, egress: home, ingress: home },
            Host { address: [10, 0, 2, 1], home: false, egress: half, ingress: half },
        ],
        traffic: vec![traffic],
        recording: Recording::default(),
    }
}

fn results(flows: u32) -> Results {
    let results = Run::new(&setup(flows), 1).expect("a good set-up").finish();
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

/// The process's resident memory now and at its greatest, in kibibytes; None where Linux's
/// /proc/self/status (proc(5)) is not there.
fn resident() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let figure = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some((figure("VmRSS:")?, figure("VmHWM:")?))
}

#[test]
fn memory_is_bounded_by_the_flows_and_not_by_time() {
    let mut setup = setup(2_000);
    setup.duration = Span::from_secs(6);
    setup.lines[0].rate = Some(Rate::from_bits(500_000_000));
    let mut run = Run::new(&setup, 1).expect("a good set-up");
    run.advance(Time::ZERO + Span::from_secs(2));
    let Some((early, _)) = resident() else {
        println!("NOT RUN: memory is not measured where there is no /proc");
        return;
    };
    run.advance(Time::ZERO + Span::from_secs(6));
    let (late, peak) = resident().unwrap_or_default();
    assert!(run.results().conservation.holds());
    // Another test runs beside this one: its ten thousand flows take some 60 MB.
    assert!(peak < 200 << 10, "{peak} KiB");
    assert!(late < early + (80 << 10), "{early} KiB after 2 s, {late} KiB after 6 s");
}
