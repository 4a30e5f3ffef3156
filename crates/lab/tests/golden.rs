//! Our disciplines against recordings of Linux's, packet by packet.
//!
//! Runs the recordings in `conformance/golden`; where the complete set lies in `../shared/golden`
//! next to the repository, that as well. Differences must be in `conformance/ledger.toml`, and
//! every entry there must cover one.

use std::path::{Path, PathBuf};

use simnel_lab::conformance::golden::{build, run_directory, Ledger, Outcome, Recording};

/// Recordings (`group/name`) of disciplines that [`build`] can make; others are listed as not
/// compared.
const COMPARED: &[&str] = &[
    "cake-*/*",
    "changes/*",
    "codel/*",
    "drr/*",
    "dualpi2/*",
    "fq_codel/*",
    "fq_pie/*",
    "htb/*",
    "pie/*",
    "red/*",
    "sfb/*",
    "sfq/*",
    "tbf/*",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn ledger() -> Ledger {
    Ledger::read(&root().join("conformance/ledger.toml")).unwrap_or_else(|error| panic!("{error}"))
}

/// The recordings of the repository, and the complete set if it is there.
fn sets() -> Vec<(&'static str, PathBuf)> {
    let mut sets = vec![("conformance/golden", root().join("conformance/golden"))];
    let complete = root().join("../shared/golden");
    if complete.is_dir() {
        sets.push(("../shared/golden", complete));
    } else {
        println!("NOT RUN: the complete set ../shared/golden (not there)");
    }
    sets
}

#[test]
fn every_recording_is_understood_completely() {
    for (name, directory) in sets() {
        let (mut recordings, mut packets, mut events) = (0, 0, 0);
        for path in simnel_lab::conformance::golden::list(&directory).unwrap() {
            let recording = Recording::read(&path).unwrap_or_else(|error| panic!("{error}"));
            let total = recording.finals.iter().find(|(kind, _)| kind == "total");
            let total = &total.unwrap_or_else(|| panic!("{}: no totals", path.display())).1;
            let counts = recording.counts();
            // The recording's own sums: packets in and out. (`gone` also counts what was returned.)
            assert_eq!(total["enq"], recording.arrivals.len().to_string(), "{}", path.display());
            assert_eq!(total["deq"], counts.sent.to_string(), "{}", path.display());
            recordings += 1;
            packets += recording.arrivals.len();
            events += recording.expected.len();
        }
        println!("{name}: {recordings} recordings, {packets} packets, {events} events read");
        assert!(recordings > 0);
    }
}

#[test]
fn every_discipline_decides_as_linux_does_or_the_ledger_says_why_not() {
    let ledger = ledger();
    let (mut all, mut complete) = (Vec::new(), false);
    for (name, directory) in sets() {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for pattern in COMPARED {
            let some =
                run_directory(&directory, pattern, &|words, device| build(words, device), &ledger);
            outcomes.extend(some.unwrap_or_else(|error| panic!("{error}")));
        }
        let recordings = simnel_lab::conformance::golden::list(&directory).unwrap().len();
        if outcomes.len() < recordings {
            println!("NOT COMPARED: {} of {recordings} in {name}", recordings - outcomes.len());
        }
        let equal = outcomes.iter().filter(|outcome| outcome.equal()).count();
        let accepted = outcomes.iter().filter(|outcome| outcome.accepted()).count();
        println!(
            "{name}: {} recordings compared, {} packets; {equal} equal, {} in the ledger, {} not",
            outcomes.len(),
            outcomes.iter().map(|outcome| outcome.packets).sum::<usize>(),
            accepted - equal,
            outcomes.len() - accepted,
        );
        for outcome in outcomes.iter().filter(|outcome| !outcome.accepted()) {
            println!("{outcome}");
        }
        assert_eq!(accepted, outcomes.len(), "{name}: differences that the ledger does not list");
        complete |= name.starts_with("..");
        all.extend(outcomes);
    }
    // A selection need not show every deviation; what fits a pattern in it must.
    let mut stale = ledger.stale(&all);
    stale.retain(|stale| complete || stale.recordings_exist);
    assert!(stale.is_empty(), "ledger entries that cover no difference: {stale:?}");
}
