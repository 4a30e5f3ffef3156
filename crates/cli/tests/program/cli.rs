//! The command line from outside: exit statuses, and errors that name the thing and the fix.

use std::process::Command;

use super::{simnel, simnel_in, text, SIMNEL};

#[test]
fn help_completions_and_manual_know_every_command() {
    let help = text(&simnel(&["--help"]).stdout);
    let pages = tempfile::tempdir().unwrap();
    let directory = pages.path().to_str().unwrap();
    assert!(simnel(&["man", "--output", directory]).status.success());
    let next = completed(&["simnel", ""]);
    let man = text(&simnel(&["man"]).stdout);
    for command in ["bench", "conformance", "completions", "man"] {
        assert!(help.contains(command), "{command} is not in --help");
        assert!(next.contains(command), "{command} is not in the completions");
        assert!(man.contains(&format!("simnel\\-{command}(1)")), "{command} is not in the manual");
        assert!(pages.path().join(format!("simnel-{command}.1")).exists());
    }
}

/// Words that the script for bash offers in the place of the last of `words`.
fn completed(words: &[&str]) -> String {
    let script = text(&simnel(&["completions", "bash"]).stdout);
    assert!(script.contains("COMPLETE=\"bash\""), "{script}");
    let output = Command::new(SIMNEL)
        .env("COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string())
        .env("_CLAP_IFS", "\n")
        .arg("--")
        .args(words)
        .output()
        .expect("the program starts");
    text(&output.stdout)
}

#[test]
fn completion_offers_words_interfaces_and_experiments() {
    for (words, expected) in [
        (&["simnel", "up", ""][..], &["lo"][..]),
        (&["simnel", "up", "v0", ""], &["download", "cake", "fq_codel", "diffserv4"]),
        (&["simnel", "up", "v0", "upload", "9mbit", "fq_codel", ""], &["flows", "target"]),
        (&["simnel", "change", "v0", ""], &["download", "upload"]),
        (&["simnel", "change", "v0", "upload", "diff"], &["diffserv8"]),
        (&["simnel", "tc", "qdisc", ""], &["add", "show"]),
        (&["simnel", "tc", "qdisc", "add", "dev", ""], &["lo"]),
        (&["simnel", "tc", "qdisc", "add", "dev", "v0", "root", "simnel", ""], &["cake", "pie"]),
        (&["simnel", "up", "v0", "--backend", ""], &["kernel", "userspace"]),
        (&["simnel", "words", "fq"], &["fq_codel", "fq_pie"]),
        (&["simnel", "paper", ""], &["A3", "B4"]),
    ] {
        let offered = completed(words);
        for word in expected {
            assert!(offered.lines().any(|line| line == *word), "{words:?}: {offered}");
        }
    }
}

#[test]
fn words_lists_disciplines_and_their_keywords() {
    let all = text(&simnel(&["words"]).stdout);
    assert!(all.lines().any(|line| line.starts_with("cake ")), "{all}");
    let cake = text(&simnel(&["words", "cake"]).stdout);
    for word in ["bandwidth RATE ", "diffserv4 ", "ack-filter "] {
        assert!(cake.lines().any(|line| line.starts_with(word)), "{word}: {cake}");
    }
    let unknown = simnel(&["words", "caek"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("did you mean `cake`"), "{}", text(&unknown.stderr));
}

#[test]
fn misuse_is_status_2_and_failure_is_status_1() {
    assert_eq!(simnel(&["no-such-command"]).status.code(), Some(2));
    assert_eq!(simnel(&["bench", "core", "--flows", "0"]).status.code(), Some(2));
    let output = simnel(&["bench", "core", "--qdisc", "carrot cake", "--pairs", "1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("carrot"), "{}", text(&output.stderr));
    let output = simnel(&["daemon", "--config", "nosuch.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("`simnel setup`"), "{}", text(&output.stderr));
    let output = simnel(&["serve", "--listen", "127.0.0.1:x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("192.0.2.1:8730"), "{}", text(&output.stderr));
    let output = simnel(&["up", "auto", "upload", "5mbit"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("measures the rates itself"), "{}", text(&output.stderr));
    let output = simnel(&["record", "nosuch0", "/tmp"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("for example /tmp/nosuch0"), "{}", text(&output.stderr));
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
fn import_ends_with_status_1_if_nothing_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("tc");
    let cake = |bandwidth: &str| format!("qdisc cake 1: root refcnt 2 bandwidth {bandwidth}\n");
    for (text, args, status, told) in [
        (cake("9Mbit"), &["--dev", "wan", "--command"][..], 0, "simnel up wan upload 9Mbit cake"),
        (cake("9Mbit"), &[], 1, "`--dev eth0`"),
        (cake("unlimited"), &["--dev", "wan"], 0, "upload_qdisc = \"cake bandwidth unlimited\""),
        (cake("unlimited"), &["--dev", "wan", "--command"], 1, "leave out --command"),
        (cake(""), &["--dev", "wan"], 1, "does not tell its `bandwidth`"),
    ] {
        std::fs::write(&file, &text).unwrap();
        let output = simnel_in(directory.path(), &["import", "tc", "tc"]).args(args).output();
        let output = output.expect("the program starts");
        let all = self::text(&output.stdout) + &self::text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{text}{args:?}: {all}");
        assert!(all.contains(told), "{text}{args:?}: {all}");
        assert_eq!(output.stdout.is_empty(), status == 1, "{text}{args:?}: {all}");
    }
}

#[test]
fn a_cause_is_told_once_and_root_is_asked_for_where_it_would_help() {
    let output = simnel(&["show", "--control-dir", "/dev/null"]);
    assert_eq!(output.status.code(), Some(1));
    let errors = text(&output.stderr);
    assert_eq!(errors.matches("Not a directory").count(), 1, "{errors}");
    assert!(!errors.contains("root?"), "{errors}");
}

#[test]
fn where_nothing_runs_rules_say_so() {
    let empty = tempfile::tempdir().unwrap();
    let output = simnel(&["rules", "--control-dir", empty.path().to_str().unwrap()]);
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(errors.contains("nothing is shaped here: `simnel up"), "{errors}");
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
    let mut child = Command::new(SIMNEL)
        .args(["completions", "bash"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

/// Foreign text: names in files, names of files, text that is no TOML, words.
#[test]
fn a_terminal_obeys_nothing_of_what_others_wrote() {
    const EVIL: &str = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}";
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let named = "\\u001B]0;owned\\u0007\\u009b2J\\u202e";
    let scenario = format!(
        "# What of {EVIL}?\nname = \"{named}\"\nduration = \"1s\"\nquestion = \"{named}\"\n\
         [line]\nup = \"1mbit\"\ndown = \"1mbit\"\n[[traffic]]\nkind = \"ping\"\n\
         name = \"{named}\"\n"
    );
    // A comment may hold no control characters; what it may hold is bad enough.
    let scenario = scenario.replace(EVIL, "\u{9b}2J\u{202e}");
    let (good, bad) = (path(&format!("{EVIL}.toml")), path("bad.toml"));
    std::fs::write(&good, &scenario).unwrap();
    std::fs::write(&bad, format!("{scenario}cc = \"{named}\" # \u{9b}\n")).unwrap();
    let report = path("report.html");
    let lost = path(EVIL);
    let option = format!("--{EVIL}");
    for (args, status) in [
        (&["sim", &good, "--report", &report][..], 0),
        (&["sim", &good, "--json"], 0),
        (&["sim", &bad], 2),
        (&["sim", &lost], 1),
        (&["sim", &good, "--qdisc", EVIL], 2),
        (&["plot", &lost], 1),
        (&["plot", &good], 1),
        (&["replay", &lost, "--qdisc", "pie"], 1),
        (&["replay", &good, "--qdisc", EVIL], 2),
        (&["conformance", "golden", &lost], 1),
        (&["sweep", &good, "--over", &format!("{EVIL}=1|2")], 2),
        (&["down", "eth0", "--control-dir", &lost], 1),
        (&["change", EVIL, "upload", "1mbit"], 2),
        (&["up", "eth0", "upload", EVIL], 2),
        (&["show", &option], 2),
        (&[EVIL], 2),
    ] {
        let output = simnel(args);
        let all = text(&output.stdout) + &text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{args:?}: {all:?}");
        let obeyed = |c: &char| c.is_control() && *c != '\n' || *c == '\u{202e}';
        assert_eq!(all.chars().find(obeyed), None, "{args:?}: {all:?}");
        assert!(all.contains("u009b2J"), "{args:?} says nothing of it: {all}");
    }
    let page = std::fs::read_to_string(&report).unwrap();
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'), "the page");
}

#[test]
fn a_port_that_is_taken_is_told_with_another_way() {
    let folder = tempfile::tempdir().expect("a directory");
    std::fs::write(folder.path().join("index.html"), "").expect("a page");
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = other.local_addr().expect("its address").port().to_string();
    let words = ["lab", "--no-open", "--port", &port, folder.path().to_str().expect("a path")];
    let output = simnel(&words);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("in use") && said.contains("--port"), "{said}");
}
