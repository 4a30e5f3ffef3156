//! `simnel sweep` and `simnel compare` from outside: resumption after a kill, shards, refusals.

use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use super::{simnel_in, text};

const SCENARIO: &str = "duration = \"60s\"
qdisc = \"cake bandwidth {rate}\"
[line]
up = \"2mbit\"
down = \"10mbit\"
[[traffic]]
kind = \"bulk\"
stagger = \"100ms\"
[[traffic]]
kind = \"ping\"
";
const AXES: &str = "rtt=10ms..160ms:3,qdisc=fq_codel|cake bandwidth {rate}";

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    std::fs::write(directory.path().join("line.toml"), SCENARIO).expect("a scenario");
    directory
}

fn sweep<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["sweep", "line.toml", "--over", AXES, "--repetitions", "5"], more].concat()
}

/// The lines of a journal in order of their runs.
fn journal(path: PathBuf) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("a journal");
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    lines.sort();
    lines
}

#[test]
fn a_sweep_that_was_killed_goes_on_and_ends_as_one_that_was_not() {
    let directory = directory();
    let directory = directory.path();
    let whole = simnel_in(directory, &sweep(&["--out", "whole.jsonl"]))
        .output()
        .expect("the program starts");
    assert!(whole.status.success(), "{}", text(&whole.stderr));

    let args = sweep(&["--out", "killed.jsonl"]);
    let mut child =
        simnel_in(directory, &args).stdout(Stdio::null()).spawn().expect("the binary runs");
    let path = directory.join("killed.jsonl");
    let lines = || std::fs::read_to_string(&path).map_or(0, |text| text.lines().count());
    let began = Instant::now();
    while lines() < 4 && began.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    let before = lines();
    assert!(before >= 4, "nothing was done in a minute");
    assert!(before < 31, "too fast to be killed in the middle");

    let resumed = simnel_in(directory, &args).output().expect("the program starts");
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    assert_eq!(journal(path), journal(directory.join("whole.jsonl")));
    let table = |output: &Output| text(&output.stdout).replace("killed", "whole");
    assert_eq!(table(&resumed), table(&whole));
}

#[test]
fn shards_merge_to_the_whole() {
    let directory = directory();
    let directory = directory.path();
    simnel_in(directory, &sweep(&["--out", "whole.jsonl"])).output().expect("the program starts");
    for shard in ["1/3", "2/3", "3/3"] {
        let output =
            simnel_in(directory, &sweep(&["--shard", shard])).output().expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
    }
    let part = |n: u32| format!("line.sweep.{n}-of-3.jsonl");
    let (one, two, three) = (part(1), part(2), part(3));
    let some = simnel_in(directory, &["sweep", "--merge", &one, &two, "--out", "some.jsonl"])
        .output()
        .expect("the program starts");
    assert!(text(&some.stderr).contains("10 runs are still missing"), "{}", text(&some.stderr));
    let all = simnel_in(directory, &["sweep", "--merge", &one, &two, &three, "--out", "all.jsonl"])
        .output()
        .expect("the program starts");
    assert!(all.status.success(), "{}", text(&all.stderr));
    assert_eq!(journal(directory.join("all.jsonl")), journal(directory.join("whole.jsonl")));
}

#[test]
fn a_part_of_a_sweep_speaks_of_no_page() {
    let directory = directory();
    let more = |kind: &str| format!("[[traffic]]\nkind = \"{kind}\"\n");
    let parts = [SCENARIO, &more("voip"), &more("cbr\"\nrate = \"90kbit"), &more("web")];
    let scenario = parts.concat().replace("60s", "2s");
    std::fs::write(directory.path().join("line.toml"), scenario).expect("a scenario");
    let said = |more: &[&str]| {
        let words = ["sweep", "line.toml", "--over", "rtt=10ms|20ms", "--repetitions", "1"];
        let mut command = simnel_in(directory.path(), &[&words, more].concat());
        let output = command.output().expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let part = said(&["--shard", "1/2"]);
    assert!(part.contains(" measures more; --show") && !part.contains("page"), "{part}");
    let whole = said(&[]);
    assert!(whole.contains(" measures more on the page; --show"), "{whole}");
}

#[test]
fn refusals_name_the_thing_and_the_fix() {
    let directory = directory();
    let cases = [
        ("qdisc=fq_codel|caek|sfq", "`caek` (word 1) is not a queue discipline"),
        ("rtt=10ms..5mbit", "is no axis"),
        ("traffic.web.count=2", "no `web` among its `traffic`"),
        ("line.foo=1", "unknown field `foo`"),
    ];
    for (over, expected) in cases {
        let output = simnel_in(directory.path(), &["sweep", "line.toml", "--over", over])
            .output()
            .expect("the program starts");
        assert_eq!(output.status.code(), Some(2), "{over}");
        let said = text(&output.stderr).replace("\n  │ ", " ");
        assert!(said.contains(expected) && said.contains("help:"), "{over}: {said}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).expect("a directory").count(), 1);
}

#[test]
fn a_sweep_ends_with_tables_a_page_and_its_runs() {
    let directory = directory();
    let path = |name: &str| directory.path().join(name);
    let shown = ["--show", "goodput", "--show", "added"];
    let output = simnel_in(directory.path(), &sweep(&shown)).output().expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(path("line.sweep.html")).expect("the page");
    assert!(page.contains(">added latency of ping, p99, ms</h3>"), "titles are words");
    let measures = text(&output.stdout).matches(" ± ").count() / 6;
    assert_eq!(page.matches("<figure>").count(), measures);
    assert_eq!(page.matches("<table class=\"heat\">").count(), measures);

    let csv = std::fs::read_to_string(path("line.sweep.csv")).expect("the runs");
    let mut rows = csv.lines();
    let head = rows.next().expect("a heading");
    assert!(head.starts_with("\"qdisc\",\"rtt\",\"seed\",\"groups.bulk."), "{head}");
    assert_eq!(rows.clone().count(), 30);
    assert!(rows.all(|row| row.matches(',').count() == head.matches(',').count()));
}

#[test]
fn a_sweep_is_shown_by_its_axes() {
    let directory = directory();
    let run = |over: &str, name: &str| {
        let (journal, page) =
            (format!("{name}.jsonl"), directory.path().join(format!("{name}.html")));
        let args = ["sweep", "line.toml", "--repetitions", "2", "--over", over, "-o", &journal];
        let output = simnel_in(directory.path(), &args).output().expect("the program starts");
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), std::fs::read_to_string(page).expect("the page"))
    };
    // Two axes of quantities: a panel for each value of one, and a map a discipline.
    let (said, page) = run("rtt=10ms|20ms|40ms,rate=1mbit|2mbit,qdisc=sfq|fq_codel", "both");
    assert!(said.contains("added latency of ping, p99, ms: sfq  (groups.ping"), "{said}");
    let measures = page.matches("<section").count();
    assert_eq!(page.matches("<figure>").count(), 2 * measures);
    assert_eq!(page.matches("<table class=\"heat\">").count(), 2 * measures);
    // None: runs are dots.
    let (said, page) = run("qdisc=sfq|fq_codel", "words");
    assert!(said.contains("\nsfq ") && page.contains("class=\"run\""), "{said}");
}

#[test]
fn a_comparison_ends_with_a_verdict_and_a_page() {
    let directory = directory();
    let words = ["pfifo limit 1000", "cake bandwidth {rate}"];
    let line = ["--line", "20mbit/3mbit", "--rtt", "90ms", "--repetitions", "2"];
    let output = simnel_in(directory.path(), &[&["compare"], &words[..], &line].concat())
        .output()
        .expect("the program starts");
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.contains("Verdict: `cake bandwidth {rate}` on this line"), "{said}");
    let page = "compare-pfifo-limit-1000-cake-bandwidth-rate-20mbit-3mbit-90ms.html";
    let page = std::fs::read_to_string(directory.path().join(page)).expect("the page");
    let result = super::sim::result(&page);
    assert_eq!(result["names"], serde_json::json!(["pfifo limit 1000", "cake"]));
    let first = result["said"][0]["text"].as_str().expect("a sentence");
    assert!(first.starts_with("Verdict: cake on this line") && !page.contains("{rate}"), "{first}");
    let cases = result["cases"].as_array().expect("workloads");
    assert_eq!(cases.len(), 4);
    let runs = |case: &serde_json::Value| case["runs"].as_array().map(|runs| runs.len());
    assert!(cases.iter().all(|case| runs(case) == Some(2)), "a list of runs a discipline");
    let series = &cases[0]["runs"][0][0]["groups"][0]["series_mbps"];
    assert_eq!(series, &serde_json::json!([]), "curves are of one scenario");
}

#[test]
fn a_journal_is_an_ordinary_file() {
    let directory = directory();
    for place in ["/dev/full", "/dev/null"] {
        let output = simnel_in(directory.path(), &sweep(&["--output", place])).output().unwrap();
        let errors = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains(&format!("{place}: no journal can be there")), "{errors}");
    }
}
