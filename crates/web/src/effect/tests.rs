use simnel_gateway::flows::{FlowEntry, HeldFlow};
use simnel_gateway::view::Delay;

use super::*;

fn line(direction: Direction, config: &str, limit: u64, rate: u64) -> LineView {
    LineView {
        dev: "wan".into(),
        direction,
        in_kernel: false,
        config: config.into(),
        limit_bps: Some(limit),
        rate_bps: rate,
        packets_per_s: 0,
        bytes: 0,
        packets: 11,
        overlimits: 12,
        requeues: 13,
        backlog_packets: 0,
        backlog_bytes: 0,
        drops: 0,
        new_drops: 0,
        marks: Some(0),
        new_marks: Some(0),
        delay: Some(Delay::default()),
        tiers: Vec::new(),
        cpu_permille: Some(0),
        headroom_bps: None,
        follows: None,
    }
}

/// A flow of host `host` at home, of packets of `size` bytes.
fn flow(direction: Direction, host: u8, protocol: u8, rate_bps: u64, size: u64) -> FlowView {
    let ends = [[192, 168, 1, host], [198, 51, 100, 1]];
    let [source, destination] = match direction {
        Direction::Upload => ends,
        Direction::Download => [ends[1], ends[0]],
    };
    let entry = FlowEntry {
        dev: "wan".into(),
        direction,
        source: source.into(),
        destination: destination.into(),
        sport: 443,
        dport: 50_000,
        protocol,
        packets: 1_000,
        bytes: 1_000 * size,
        rtt_ns: None,
        tracked: None,
        held: Some(HeldFlow::default()),
    };
    FlowView { entry, host: None, rate_bps, class: None }
}

/// An upload that is full, the download of its acknowledgements, a call, and a film.
fn evening() -> View {
    let mut upload = flow(Direction::Upload, 7, TCP, 2_600_000, 1_500);
    upload.entry.held = Some(HeldFlow { backlog_packets: 20, ..HeldFlow::default() });
    View {
        words: Vec::new(),
        lines: vec![
            line(
                Direction::Upload,
                "htb rate 3Mbit burst 1600 pfifo limit 500p",
                3_000_000,
                2_900_000,
            ),
            line(Direction::Download, "cake bandwidth 20Mbit", 20_000_000, 6_000_000),
        ],
        hosts: Vec::new(),
        flows: vec![
            upload,
            flow(Direction::Download, 7, TCP, 90_000, 80),
            flow(Direction::Upload, 9, UDP, 100_000, 214),
            flow(Direction::Download, 8, TCP, 5_900_000, 1_500),
        ],
        untold: None,
    }
}

#[test]
fn what_a_change_would_do_is_seen_beforehand() {
    let view = evening();
    let words = "cake bandwidth 3Mbit";
    let effect = effect(&view, Direction::Upload, (words, Some(3_000_000))).unwrap();
    println!("{}\n{}", effect.words, effect.scenario);
    assert!(effect.words.contains("1 greedy upload, 2 other flows: small packets wait"));
    let Effect { before, after, .. } = &effect;
    assert!(before.small_p99_ms > Some(300.0), "{before:?}");
    assert!(after.small_p99_ms.is_some_and(|ms| ms < 30.0), "{after:?}");
    // The film keeps its rate, and the upload has the line to itself but for the call.
    for outcome in [before, after] {
        assert!((5.4..6.6).contains(&outcome.download.mbps), "{outcome:?}");
        assert!((2.5..3.1).contains(&outcome.upload.mbps), "{outcome:?}");
    }
    // Whoever wants to know more runs it.
    let scenario = Scenario::parse(&effect.scenario, "again", &no_files).unwrap();
    assert!(scenario.simulation(Some(words)).is_ok());
    assert_eq!(effect.scenario.matches("[[host]]").count(), 4);
}

/// A greedy flow over a long way does not fill within the time what it fills over a short one.
#[test]
fn far_ends_are_as_far_away_as_they_were_seen_to_be() {
    let download = |rtt_ms: u64| {
        let mut greedy = flow(Direction::Download, 7, TCP, 19_500_000, 1_500);
        greedy.entry.held = Some(HeldFlow { drops: 9, ..HeldFlow::default() });
        greedy.entry.rtt_ns = Some(rtt_ms * 1_000_000);
        let mut film = flow(Direction::Download, 8, TCP, 500_000, 1_500);
        film.entry.sport = 444;
        let mut view = evening();
        view.flows = vec![greedy, film];
        view.lines[1].rate_bps = 20_000_000;
        let effect =
            effect(&view, Direction::Upload, ("cake bandwidth 3Mbit", Some(3_000_000))).unwrap();
        assert!(effect.scenario.contains("internet = \"far0\""), "{}", effect.scenario);
        assert!(effect.scenario.contains("internet = \"far\""), "{}", effect.scenario);
        effect.after.download.mbps
    };
    let (near, far) = (download(15), download(900));
    assert!(near > 17.0 && far < near / 2.0, "{near} {far}");
}

/// Nobody says of the kernel's flows who waits: on a full line, those that have a part of it do.
#[test]
fn flows_that_the_kernel_shapes_are_judged_by_their_rates() {
    let mut view = evening();
    view.flows.iter_mut().for_each(|flow| flow.entry.held = None);
    view.flows.push(flow(Direction::Upload, 7, TCP, 140_000, 300));
    let change = ("cake bandwidth 3Mbit", Some(3_000_000));
    let effect = effect(&view, Direction::Upload, change).unwrap();
    assert!(effect.words.contains("1 greedy upload, 3 other flows"), "{}", effect.words);
}

#[test]
fn an_idle_line_is_supposed_to_be_full() {
    let mut view = evening();
    view.flows.clear();
    let effect = effect(&view, Direction::Upload, ("cake bandwidth 2Mbit", Some(2_000_000)));
    let effect = effect.unwrap();
    let supposed = "1 greedy download, 1 greedy upload (nothing is on the line now)";
    assert!(effect.words.contains(supposed), "{}", effect.words);
    assert!(effect.after.upload.mbps < 2.1 && effect.before.upload.mbps > 2.3, "{effect:?}");
}

#[test]
fn any_view_is_simulated_in_bounded_time() {
    let mut view = evening();
    for (index, line) in view.lines.iter_mut().enumerate() {
        (line.config, line.limit_bps) = ("cake unlimited".into(), None);
        line.rate_bps = 40_000_000_000 * index as u64;
    }
    view.flows.extend((0..200).map(|n| flow(Direction::Download, n, UDP, 90_000, 100)));
    let effect = effect(&view, Direction::Download, ("cake bandwidth 50Mbit", Some(50_000_000)));
    let effect = effect.unwrap();
    assert_eq!(effect.lasts_ms, *LASTS_MS.start());
    assert!(effect.words.contains("small ones left out"), "{}", effect.words);
    view = View::default();
    let nothing = super::effect(&view, Direction::Upload, ("cake", None)).unwrap();
    assert!(nothing.words.contains("small packets wait"), "{}", nothing.words);
    view.lines.push(line(Direction::Upload, "no discipline", 1_000_000, 0));
    assert!(super::effect(&view, Direction::Upload, ("cake", None)).is_err());
}
