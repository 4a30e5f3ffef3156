//! Every scenario of the repository: it is understood, it runs, it runs twice the same.

use std::path::{Path, PathBuf};

use simnel_lab::scenario::{report, Finished, Scenario, Summary};
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

#[test]
fn every_scenario_runs_twice_the_same_and_is_reported() {
    for path in scenarios() {
        let name = path.display();
        let scenario = Scenario::read(&path).unwrap_or_else(|(error, _)| panic!("{name}: {error}"));
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
        let page = report::page(&scenario, "", &[finished], &[summary.clone()]);
        assert!(page.contains("<svg") && !page.contains("NaN") && !page.contains("inf "), "{name}");
        let table = report::table(&scenario, &[summary]);
        assert!(table.contains("line down") && !table.contains("NaN"), "{name}: {table}");
    }
}
