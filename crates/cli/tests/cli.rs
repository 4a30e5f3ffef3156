//! The command line from outside: exit statuses, and errors that name the thing and the fix.

use std::process::{Command, Output};

fn simnel(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_simnel")).args(args).output().expect("the binary runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

#[test]
fn help_completions_and_manual_know_every_command() {
    let help = text(&simnel(&["--help"]).stdout);
    let pages = tempfile::tempdir().unwrap();
    let directory = pages.path().to_str().unwrap();
    assert!(simnel(&["man", "--output", directory]).status.success());
    let bash = text(&simnel(&["completions", "bash"]).stdout);
    let man = text(&simnel(&["man"]).stdout);
    for command in ["bench", "conformance", "completions", "man"] {
        assert!(help.contains(command), "{command} is not in --help");
        assert!(bash.contains(command), "{command} is not in the completions");
        assert!(man.contains(&format!("simnel\\-{command}(1)")), "{command} is not in the manual");
        assert!(pages.path().join(format!("simnel-{command}.1")).exists());
    }
}

#[test]
fn misuse_is_status_2_and_failure_is_status_1() {
    assert_eq!(simnel(&["no-such-command"]).status.code(), Some(2));
    assert_eq!(simnel(&["bench", "core", "--flows", "0"]).status.code(), Some(2));
    let output = simnel(&["bench", "core", "--qdisc", "carrot cake", "--pairs", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("carrot"), "{}", text(&output.stderr));
    let output = simnel(&["down", "nosuch0"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("nosuch0"), "{}", text(&output.stderr));
}

#[test]
fn a_negative_overhead_is_a_word_and_no_option() {
    for command in [
        "up nosuch0 download 1mbit cake overhead -4",
        "change nosuch0 upload 1mbit cake overhead -4",
        "link nosuch0 nosuch1 rate 1mbit overhead -4",
    ] {
        let output = simnel(&command.split(' ').collect::<Vec<_>>());
        let errors = text(&output.stderr);
        assert!(output.status.code() == Some(1) && !errors.contains("-4"), "{command}: {errors}");
    }
}

#[test]
fn conformance_says_what_it_did_not_find() {
    let empty = tempfile::tempdir().unwrap();
    let output = simnel(&["conformance", "golden", empty.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("no recording") && error.contains("NAME.csv.gz"), "{error}");

    let output = simnel(&["conformance", "golden", "no/such/directory"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("no/such/directory"));
}

#[test]
fn conformance_prints_one_json_object_for_each_recording() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/golden");
    let output = simnel(&["conformance", "golden", golden, "--only", "cake-tins/map-*", "--json"]);
    let lines = text(&output.stdout);
    let mut count = 0;
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(line["name"].as_str().unwrap().starts_with("cake-tins/map-"));
        assert_eq!(line["packets"], 768);
        assert_eq!(line["equal"].as_bool().unwrap(), line["first_difference"].is_null());
        count += 1;
    }
    assert_eq!(count, 5);
    let all_equal = !lines.contains("\"equal\":false");
    assert_eq!(output.status.success(), all_equal, "the status says what the lines say");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_simnel"))
        .args(["completions", "bash"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}
