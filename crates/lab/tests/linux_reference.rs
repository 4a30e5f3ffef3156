//! The simulator against the recordings of Linux that come with the project.
//!
//! Every situation is compared, every figure is within its tolerance or in the ledger, and the
//! ledger lists nothing that is no longer so. Files that are no recordings stop nothing.

use std::path::{Path, PathBuf};

use simnel_lab::conformance::linux_reference::{compare_all, list, Ledger, Line};

fn conformance() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance")
}

#[test]
fn every_figure_is_within_tolerance_or_in_the_ledger() {
    let ledger = Ledger::read(&conformance().join("linux-ledger.toml")).expect("a ledger");
    let paths = list(&conformance().join("linux")).expect("recordings");
    assert!(paths.len() > 40, "only {} recordings", paths.len());
    let compared = compare_all(&paths, 3, &ledger, &|| {});
    let lines: Vec<Line> = compared.into_iter().flatten().collect();
    let wrong: Vec<&Line> =
        lines.iter().filter(|line| !line.within && line.ledger.is_none()).collect();
    assert!(wrong.is_empty(), "beyond tolerance and not in the ledger: {wrong:#?}");
    let listed = lines.iter().filter(|line| !line.within).count();
    assert!(listed * 5 < lines.len(), "{listed} of {} figures are in the ledger", lines.len());
    let stale = ledger.stale(&lines);
    assert!(stale.is_empty(), "no longer true: {stale:#?}");
}

/// A recording of a second, with `change` made to it.
fn small(change: impl Fn(&mut serde_json::Value)) -> String {
    let mut recording = serde_json::json!({
        "base_rtt_ms": 20,
        "duration_s": 2,
        "tc": [
            "tc -n R qdisc add dev r1 root handle 1: cake bandwidth 5mbit",
            "tc -n R qdisc add dev r0 root handle 1: cake bandwidth 5mbit"
        ],
        "runs": [{
            "seed": 1,
            "window_s": [1, 2],
            "flows": [{"t": "tcp", "dir": "up", "cc": "cubic", "goodput_mbps": 4.6}]
        }]
    });
    change(&mut recording);
    recording.to_string()
}

#[test]
fn files_of_any_kind_give_lines_that_name_them_and_do_not_stop_the_others() {
    let tc = |words: &'static str| {
        small(move |recording| {
            let line = format!("tc -n R qdisc add dev r1 root handle 1: {words}");
            recording["tc"][0] = line.into();
        })
    };
    let flow = |key: &'static str, value: serde_json::Value| {
        small(move |recording| recording["runs"][0]["flows"][0][key] = value.clone())
    };
    let files = [
        ("good", small(|_| {}), None),
        ("text", "not JSON at all".into(), Some("cannot be read")),
        ("list", "[1, 2, 3]".into(), Some("cannot be read")),
        ("other", "{\"name\": \"no recording\"}".into(), Some("base_rtt_ms")),
        ("no_runs", small(|r| r["runs"] = serde_json::json!([])), Some("at least one run")),
        ("vegas", flow("cc", "vegas".into()), Some("`vegas`")),
        ("mark", flow("mark", "EG".into()), Some("`EG`")),
        ("kind", flow("t", "sctp".into()), Some("`sctp`")),
        ("cbr", flow("t", "cbr".into()), Some("rate and size")),
        ("hhf", tc("hhf limit 10"), Some("`hhf limit 10`")),
        ("option", tc("fq_codel limmit 10"), Some("limmit")),
        ("value", tc("red limit soon"), Some("soon")),
        ("rate", tc("tbf rate fast burst 2k"), Some("`fast`")),
        ("loss", tc("netem loss 300%"), Some("`300%`")),
        ("model", tc("netem loss gemodel 1% 10%"), Some("`gemodel`")),
        (
            "window",
            small(|r| r["runs"][0]["window_s"] = serde_json::json!([2, 1])),
            Some("warm-up"),
        ),
        ("never", small(|r| r["base_rtt_ms"] = (-5).into()), Some("round-trip time")),
        ("forever", small(|r| r["base_rtt_ms"] = 1e300.into()), Some("60 s")),
        (
            "no_flows",
            small(|r| r["runs"][0]["flows"] = serde_json::json!([])),
            Some("at least one flow"),
        ),
        ("no_tc", small(|r| r["tc"] = serde_json::json!([])), None),
    ];
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("odd recordings");
    std::fs::create_dir_all(&directory).expect("a directory");
    let mut paths = Vec::new();
    for (name, text, _) in &files {
        paths.push(directory.join(format!("{name}.json")));
        std::fs::write(paths.last().expect("a path"), text).expect("a file");
    }
    paths.push(directory.join("absent.json"));
    let compared = compare_all(&paths, 1, &Ledger::default(), &|| {});
    assert_eq!(compared.len(), paths.len());
    for (lines, (name, _, problem)) in compared.iter().zip(&files) {
        assert!(lines.iter().all(|line| line.name == *name), "{lines:?}");
        let failure = lines.iter().find(|line| line.metric.starts_with("cannot be"));
        match (failure, problem) {
            (None, None) => assert!(lines.iter().any(|line| line.ours.is_some()), "{lines:?}"),
            (Some(line), Some(problem)) => {
                assert!(line.metric.contains(problem) && !line.within, "{name}: {line:?}");
            }
            _ => panic!("{name}: {lines:?}"),
        }
    }
    let absent = &compared[files.len()][0];
    assert!(absent.metric.contains("absent.json"), "{absent:?}");
}
