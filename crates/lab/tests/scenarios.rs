//! Every scenario of the repository: it is understood, it runs, it runs twice the same.

use std::path::{Path, PathBuf};

use simnel_lab::experiments::scenario;
use simnel_lab::report::runs;
use simnel_scenario::{no_files, Finished, Scenario, Summary};
use simnel_sim::Run;

fn scenarios() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = std::fs::read_dir(directory).expect("scenarios");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    paths.sort();
    assert!(paths.len() >= 10, "only {} scenarios", paths.len());
    paths
}

/// Scenarios without meaning, or beyond memory, are refused before they run.
#[test]
fn what_cannot_be_simulated_is_refused_by_its_key() {
    let refused = |top: &str, traffic: &str| {
        let text = format!(
            "duration = \"10s\"\n{top}\n[line]\nup = \"1mbit\"\ndown = \"1mbit\"\n\
             [[traffic]]\n{traffic}\n"
        );
        let error = Scenario::parse(&text, "odd", &no_files).expect_err(traffic);
        let place = error.span.clone().and_then(|span| text.get(span)).unwrap_or_default();
        format!("{}: expected {} `{place}`", error.what, error.expected)
    };
    for (top, traffic, named) in [
        ("", "kind = \"bulk\"\nhome = []", "`home` names no host"),
        ("", "kind = \"bulk\"\ninternet = []", "`internet` names no host"),
        ("", "kind = \"bulk\"\ndscp = []", "`dscp` names no code point"),
        ("", "kind = \"bulk\"\ncount = 0", "`0`"),
        ("", "kind = \"bulk\"\ncount = 4294967295", "`4294967295`"),
        ("", "kind = \"bulk\"\ntso = 0", "1 to 255 segments"),
        ("", "kind = \"bulk\"\nsize = 18446744073709551615", "size"),
        ("", "kind = \"bursts\"\nsize = 9223372036854775807", "1 PiB"),
        ("", "kind = \"bursts\"\npause = []", "`[]`"),
        ("", "kind = \"dash\"\nladder = []", "1 to 64 rates"),
        ("", "kind = \"web\"\nspread = nan", "`nan`"),
        ("", "kind = \"web\"\nrate = inf", "frequency"),
        ("", "kind = \"ping\"\nsize = 4294967290", "size"),
        ("interval = \"1us\"", "kind = \"bulk\"\ncount = 1000", "`interval` is too short"),
        ("", &"kind = \"bulk\"\n[[traffic]]\n".repeat(1_001), "too much traffic"),
    ] {
        let error = refused(top, traffic.trim_end_matches("[[traffic]]\n"));
        assert!(error.contains(named), "{traffic}: {error}");
    }
}

/// A page that is never loaded takes no time at all, rather than none.
#[test]
fn what_never_arrived_is_told_without_times() {
    let remarks = |rate: &str| {
        let text = format!(
            "duration = \"20s\"\n[line]\nup = \"{rate}\"\ndown = \"{rate}\"\n\
             [[traffic]]\nkind = \"web\"\nrate = 1.0\n[[traffic]]\nkind = \"bulk\"\n\
             size = \"1mb\"\n[[traffic]]\nkind = \"iot\"\n"
        );
        let scenario = Scenario::parse(&text, "starved", &no_files).expect("a scenario");
        let finished = scenario.simulation(None).and_then(|one| one.finish(1)).expect("a run");
        runs::table(&scenario, &[Summary::new(&scenario, &finished)], None)
    };
    let starved = remarks("1kbit");
    assert!(starved.contains("0 pages\n") && starved.contains("0 done\n"), "{starved}");
    let fed = remarks("20mbit");
    assert!(fed.contains(" ms (p95 ") && fed.contains("1 done in "), "{fed}");
    assert!(fed.contains("messages take "), "{fed}");
}

#[test]
fn seeds_that_make_no_difference_are_named_once() {
    let said = |traffic: &str, qdiscs: &[&str], seeds: u64| {
        let text = format!(
            "duration = \"2s\"\n[line]\nup = \"5mbit\"\ndown = \"5mbit\"\n\
             [[traffic]]\nkind = \"bulk\"\n{traffic}\n"
        );
        let scenario = Scenario::parse(&text, "alike", &no_files).expect("a scenario");
        let mut summaries = Vec::new();
        for qdisc in qdiscs {
            for seed in 1..=seeds {
                let simulation = scenario.simulation(Some(qdisc));
                let finished = simulation.and_then(|one| one.finish(seed)).expect("a run");
                summaries.push(Summary::new(&scenario, &finished));
            }
        }
        let table = runs::table(&scenario, &summaries, None);
        let page = runs::page(&scenario, "", 1.0, &summaries).expect("a page");
        let found = table.matches("The seeds make no difference").count();
        assert_eq!(page.matches("The seeds make no difference").count(), found);
        (found, table.contains("mean of"))
    };
    assert_eq!(said("", &["pfifo", "codel"], 3), (1, false));
    assert_eq!(said("stagger = \"1s\"", &["pfifo", "codel"], 3), (0, true));
    assert_eq!(said("", &["pfifo", "codel"], 1), (0, false));
}

#[test]
fn every_scenario_runs_twice_the_same_and_is_reported() {
    for path in scenarios() {
        let name = path.display();
        let read = scenario::read(&path);
        let (scenario, _) = read.unwrap_or_else(|(error, _)| panic!("{name}: {error}"));
        assert!(scenario.question.contains('?'), "{name} opens with no question");
        let (setup, qdisc) = scenario.setup(None).unwrap_or_else(|e| panic!("{name}: {e}"));
        let run = || Run::new(&setup, 1).unwrap_or_else(|e| panic!("{name}: {e}")).finish();
        let (one, other) = (run(), run());
        assert_eq!((one.hash, one.events), (other.hash, other.events), "{name}");
        assert!(one.complete && one.conservation.holds(), "{name}: {:?}", one.conservation);

        let finished = Finished { qdisc, setup: setup.clone(), results: one };
        let summary = Summary::new(&scenario, &finished);
        let moved: f64 = summary.groups.iter().map(|group| group.goodput_mbps).sum();
        assert!(moved > 0.0, "{name}: nothing was delivered");
        let page = runs::page(&scenario, "", 1.0, std::slice::from_ref(&summary)).expect("a page");
        let (_, result) = page.split_once("id=\"result\"").expect("the result is in the page");
        assert!(!result.contains("null,null,null"), "{name}: numbers that JSON has not");
        let table = runs::table(&scenario, std::slice::from_ref(&summary), None);
        assert!(table.contains("line down") && !table.contains("NaN"), "{name}: {table}");
        // A narrow terminal shows the same numbers, none of them broken.
        let numbers = |table: &str| {
            let mut numbers: Vec<String> = table
                .split_whitespace()
                .filter(|word| word.parse::<f64>().is_ok())
                .map(String::from)
                .collect();
            numbers.sort();
            numbers
        };
        let narrow = runs::table(&scenario, &[summary], Some(60));
        assert_eq!(numbers(&narrow), numbers(&table), "{name}: {narrow}");
    }
}
