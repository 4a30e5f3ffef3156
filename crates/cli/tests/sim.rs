//! `simnel sim`, `bench sim` and `conformance linux` from outside.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const SCENARIO: &str = "# Does it work?
duration = \"5s\"
qdisc = \"cake bandwidth {rate}\"
[line]
up = \"2mbit\"
down = \"10mbit\"
[[traffic]]
kind = \"bulk\"
[[traffic]]
kind = \"ping\"
";

fn simnel(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_simnel")).args(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

fn write(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("scenario.toml");
    std::fs::write(&path, text).expect("a scenario");
    path
}

fn objects(output: &Output) -> Vec<serde_json::Value> {
    let lines = text(&output.stdout);
    lines.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect()
}

#[test]
fn a_scenario_gives_a_table_and_a_page_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), SCENARIO);
    let output = simnel(&["sim", path.to_str().unwrap()]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    for expected in ["Does it work?", "cake bandwidth 10mbit", "bulk", "ping", "line down"] {
        assert!(table.contains(expected), "{expected} is not in\n{table}");
    }
    let page = std::fs::read_to_string(directory.path().join("report.html")).expect("the page");
    assert!(page.starts_with("<!doctype html>") && page.contains("<svg") && !page.contains("NaN"));
    assert!(!page.contains("http://") && !page.contains("https://"), "the page needs no network");
}

#[test]
fn disciplines_and_seeds_multiply_and_runs_repeat() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), SCENARIO);
    let args =
        ["sim", path.to_str().unwrap(), "--qdisc", "pfifo", "--qdisc", "cake", "--seed", "1..3"];
    let run = || simnel(&[&args[..], &["--json"]].concat());
    let (one, other) = (run(), run());
    assert_eq!(text(&one.stdout), text(&other.stdout), "the same seeds give the same bytes");
    let runs = objects(&one);
    assert_eq!(runs.len(), 6);
    let named: Vec<_> =
        runs.iter().map(|run| (run["qdisc_up"].clone(), run["seed"].clone())).collect();
    assert_eq!((named[0].0.as_str(), named[0].1.as_u64()), (Some("pfifo"), Some(1)));
    assert_eq!((named[5].0.as_str(), named[5].1.as_u64()), (Some("cake"), Some(3)));
    assert!(runs.iter().all(|run| run["complete"] == true));
    assert!(!directory.path().join("report.html").exists(), "no page unless asked for");
}

#[test]
fn errors_point_at_the_line_and_say_what_was_expected() {
    let directory = tempfile::tempdir().unwrap();
    for (wrong, right, line, expected) in [
        ("\"5s\"", "\"5\"", ":2:12", "a time with its unit"),
        ("\"10mbit\"", "\"fast\"", ":6:8", "a rate such as"),
        ("kind = \"ping\"", "kind = \"pong\"", ":10:8", "\"ping\""),
        ("bandwidth", "badwidth", ":3:15", "bandwidth"),
        ("duration", "durations", ":2:1", "durations"),
        ("kind = \"bulk\"", "kind = \"bulk\"\nrate = 5", ":9:8", "one of size"),
    ] {
        let path = write(directory.path(), &SCENARIO.replacen(wrong, right, 1));
        let output = simnel(&["sim", path.to_str().unwrap()]);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(line), "{line} is not in\n{error}");
        assert!(error.contains(expected), "{expected} is not in\n{error}");
    }
    let path = write(directory.path(), SCENARIO);
    let output = simnel(&["sim", path.to_str().unwrap(), "--qdisc", "cake badwidth 1mbit"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("badwidth"));
    assert_eq!(simnel(&["sim", path.to_str().unwrap(), "--seed", "3..1"]).status.code(), Some(2));
    assert_eq!(simnel(&["sim", "no/such/file.toml"]).status.code(), Some(1));
}

#[test]
fn ctrl_c_leaves_a_valid_report_that_says_it_is_partial() {
    let directory = tempfile::tempdir().unwrap();
    // Hours of work on any machine.
    let long = SCENARIO.replace("\"5s\"", "\"8000000s\"").replace("10mbit", "100mbit");
    let path = write(directory.path(), &format!("interval = \"1000s\"\n{long}"));
    let child = Command::new(env!("CARGO_BIN_EXE_simnel"))
        .args(["sim", path.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    std::thread::sleep(Duration::from_millis(1_500));
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("SIGINT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("PARTIAL"), "{}", text(&output.stdout));
    let page = std::fs::read_to_string(directory.path().join("report.html")).expect("the page");
    assert!(page.contains("Partial report") && page.trim_end().ends_with("</html>"));
}

#[test]
fn the_benchmark_says_what_it_did_and_with_which_result() {
    let output = simnel(&["bench", "sim", "--only", "50up", "--runs", "1", "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let figures = objects(&output);
    assert_eq!(figures.len(), 1);
    let figure = &figures[0];
    assert_eq!(
        (figure["bench"].as_str(), figure["scenario"].as_str()),
        (Some("sim"), Some("50up"))
    );
    assert_eq!(figure["simulated_s"], 60);
    assert!(figure["bottleneck_packets"].as_u64() > Some(50_000));
    assert!(figure["wall_ms"].as_f64() > Some(0.0) && figure["events"].as_u64() > Some(50_000));
    assert_eq!(figure["hash"].as_str().map(str::len), Some(16));
    assert_eq!(simnel(&["bench", "sim", "--only", "nothing"]).status.code(), Some(2));
}

#[test]
fn linux_s_situations_are_compared_line_by_line() {
    let recordings = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/linux");
    let ledger = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/linux-ledger.toml");
    let args = ["conformance", "linux", recordings, "--only", "A_cubic_pfifo1000", "--json"];
    let output = simnel(&[&args[..], &["--ledger", ledger]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = objects(&output);
    assert!(lines.len() >= 4);
    for line in &lines {
        for key in ["name", "metric", "linux", "ours", "difference", "within", "ledger"] {
            assert!(line.get(key).is_some(), "{key} is not in {line}");
        }
        assert_eq!(line["within"], true, "{line}");
    }
    let empty = tempfile::tempdir().unwrap();
    let output = simnel(&["conformance", "linux", empty.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no recording"));
}
