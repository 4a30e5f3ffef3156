//! `simnel paper` from outside: every experiment that was published, every claim, whole lines.

use std::collections::BTreeSet;

use simnel_lab::experiments::paper;

use super::simnel;

/// Experiments of each paper: their number is that of the papers' tests as docs/LAB.md counts them.
const EXPERIMENTS: [(char, u32); 6] = [('A', 7), ('B', 10), ('C', 7), ('D', 6), ('E', 7), ('F', 9)];

#[test]
fn every_published_experiment_is_there_with_claims() {
    let known: BTreeSet<&str> = paper::experiments().iter().map(|one| one.id).collect();
    let expected: BTreeSet<String> = EXPERIMENTS
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |n| format!("{letter}{n}")))
        .collect();
    assert_eq!(known, expected.iter().map(String::as_str).collect());
    let output = simnel(&["paper", "--json"]);
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    let listed: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect();
    assert!(listed.iter().all(|one| known.contains(one["id"].as_str().expect("an id"))), "{lines}");
    assert_eq!(listed.len(), known.len());
    for id in known {
        assert!(!paper::claims(id).is_empty(), "{id} claims nothing");
    }
}

/// Cheap ones of every kind: direct work, scenarios, grids that share runs, transfers that end.
#[test]
fn a_subset_gives_one_whole_line_for_each_of_its_claims() {
    let ids = ["A1", "A5", "A6", "B2", "B8", "C6", "D4", "E1"];
    let output = simnel(&[&["paper"], &ids[..], &["--repetitions", "2", "--json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let mut missing: BTreeSet<String> =
        ids.iter().flat_map(|id| paper::claims(id)).map(|claim| claim.id).collect();
    let lines = String::from_utf8(output.stdout).expect("UTF-8");
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).expect("a JSON object");
        let id = line["id"].as_str().expect("an id");
        assert!(missing.remove(id), "{id} is not expected, or there twice");
        for key in ["paper", "claim", "stated"] {
            assert!(line[key].as_str().is_some_and(|text| !text.is_empty()), "{id}: no {key}");
        }
        for key in ["simulated", "ci95"] {
            let value = &line[key];
            let measured = |value: &serde_json::Value| value.is_number();
            let all = value.as_object().is_some_and(|all| all.values().all(measured));
            assert!(measured(value) || all, "{id}: no {key}: {value}");
        }
        assert!(line["holds"].is_boolean(), "{id} was not judged: {errors}");
        let verdict = line["verdict"].as_str().expect("a verdict");
        assert_eq!(verdict == "holds", line["holds"] == true, "{id}: {verdict}");
        // Every key is there, whether or not Linux was asked; its interval comes with its value.
        for key in ["linux", "linux_ci95", "linux_holds"] {
            assert!(line.get(key).is_some(), "{id}: no {key}");
        }
        assert_eq!(line["linux"].is_null(), line["linux_ci95"].is_null(), "{id}");
    }
    assert!(missing.is_empty(), "no line for {missing:?}");
}

#[test]
fn an_experiment_that_there_is_not_is_refused() {
    let output = simnel(&["paper", "Z9"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(said.contains("no such experiment: `Z9`") && said.contains("A1"), "{said}");
}
