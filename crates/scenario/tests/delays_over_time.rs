//! A summary's delays over time: when, where its distribution says how often.

use simnel_scenario::summary::{Application, Summary};
use simnel_scenario::{no_files, Scenario};

/// An upload from 5 s on, a line that stands from 12 s to 15 s, and all the time probes.
const TEXT: &str = r#"
    duration = "20s"
    warmup = "0s"
    qdisc = "pfifo limit 20"
    [line]
    up = "3mbit"
    down = "20mbit"
    rtt = "40ms"
    [[line.change]]
    at = "12s"
    up = "0bit"
    [[line.change]]
    at = "15s"
    up = "3mbit"
    [[traffic]]
    kind = "bulk"
    direction = "up"
    start = "5s"
    [[traffic]]
    kind = "ping"
    interval = "50ms"
    [[traffic]]
    kind = "cbr"
    rate = "50kbit"
    direction = "up"
"#;

#[test]
fn delays_rise_when_the_load_comes_and_are_none_where_nothing_arrived() {
    let scenario = Scenario::parse(TEXT, "load", &no_files).expect("a scenario");
    let run = scenario.simulation(None).and_then(|one| one.finish(1)).expect("a run");
    let summary = Summary::new(&scenario, &run);
    let told = summary.groups.iter().filter_map(|group| match group.application.as_ref()? {
        Application::Ping { added_series_ms, added_ms, .. }
        | Application::Datagrams { added_series_ms, added_ms, .. } => {
            Some((added_series_ms, added_ms.expect("something arrived")))
        }
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert_eq!(told.len(), 2, "probes and datagrams");
    for (series, all) in told {
        assert_eq!(series.len(), 20, "one a second: {series:?}");
        let at = |second: usize| series[second].unwrap_or(f64::NAN);
        assert!((0..5).all(|second| at(second) < 4.0), "an idle line: {series:?}");
        // Twenty packets of 1,514 bytes take 81 ms.
        assert!((7..11).all(|second| at(second) > 20.0), "a full one: {series:?}");
        // The queue was full when the line stood still: nothing was let in.
        assert_eq!([series[13], series[14]], [None, None], "{series:?}");
        let greatest = series.iter().flatten().fold(0.0_f64, |most, one| most.max(*one));
        assert!(greatest > 1_000.0 && greatest <= all.max, "{greatest} ms, {all:?}");
    }
}
