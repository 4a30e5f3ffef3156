//! Scenarios: no file panics or stands still, and what can be built runs.
//!
//! The first byte chooses: even, the rest is a file; odd, the bytes are edits of a file that runs.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use simnel_core::{Span, Time};
use simnel_fuzz::{edits, seeds};
use simnel_lab::experiments::scenario;
use simnel_lab::report::runs;
use simnel_scenario::{Finished, Summary};
use simnel_sim::{Run, Setup};

/// Flows of a run at most: each has its memory.
const FLOWS: u64 = 2_000;
/// Intervals of a run's time series, by flow, at most.
const SAMPLES: u64 = 1 << 20;
/// Events of a run: some milliseconds.
const EVENTS: u64 = 3_000;

fuzz_target!(init: seeds::write(seeds::scenarios()), |bytes: &[u8]| {
    let Some((choice, rest)) = bytes.split_first() else { return };
    if choice & 1 == 0 {
        if let Ok(text) = std::str::from_utf8(rest) {
            check(text);
        }
    } else {
        check(&edits::scenario(rest));
    }
});

fn check(text: &str) {
    let scenario = match scenario::parse(text, "fuzzed", Path::new(seeds::TRACES)) {
        Ok(scenario) => scenario,
        Err(error) => {
            assert!(!error.what.is_empty() && !error.expected.is_empty());
            let place = error.span.clone().map(|span| text.get(span));
            assert_ne!(place, Some(None), "`{}` lies beside the text", error.what);
            return;
        }
    };
    let (setup, qdisc) = scenario.setup(None).expect("checked when it was read");
    if is_large(&setup) {
        return;
    }
    let mut run = Run::new(&setup, 1).expect("a set-up that was checked");
    let over = run.advance_by(Time::MAX, EVENTS);
    assert!(over || run.now() > Time::ZERO || setup.duration < Span(1_000), "time stands still");
    let results = run.results();
    assert!(results.conservation.holds());
    let finished = Finished { qdisc, setup, results };
    let summary = Summary::new(&scenario, &finished);
    let table = runs::table(&scenario, std::slice::from_ref(&summary), None);
    assert!(!table.contains("NaN"), "{table}");
    serde_json::to_vec(&summary).expect("a summary is JSON");
}

/// True of what a machine needs more than milliseconds and megabytes for.
fn is_large(setup: &Setup) -> bool {
    let flows: u64 = setup.traffic.iter().map(|traffic| u64::from(traffic.count)).sum();
    let intervals = setup.duration.0 / setup.recording.interval.0;
    flows > FLOWS || intervals.saturating_mul(flows + 2) > SAMPLES
}
