//! `simnel sim`, `bench sim` and `conformance linux` from outside.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use super::{simnel, text, SIMNEL};

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

fn write(directory: &Path, text: &str) -> PathBuf {
    let path = directory.join("scenario.toml");
    std::fs::write(&path, text).expect("a scenario");
    path
}

fn objects(output: &Output) -> Vec<serde_json::Value> {
    let lines = text(&output.stdout);
    lines.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect()
}

/// The result in a page, which its script draws.
pub fn result(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("type=\"application/json\">").expect("a result");
    let (json, _) = rest.split_once("</script>").expect("the element ends");
    serde_json::from_str(json).expect("JSON")
}

#[test]
fn a_report_is_a_page_or_a_folder_of_pages() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), SCENARIO);
    let at = |name: &str| directory.path().join(name);
    for (asked, page) in [("page.html", "page.html"), ("new", "new/scenario.html")] {
        let asked = at(asked);
        let output = simnel(&["sim", path.to_str().unwrap(), "--report", asked.to_str().unwrap()]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains(&format!("page: {}", at(page).display())));
        assert!(at(page).is_file(), "{page}");
    }
    assert!(!path.with_extension("html").exists(), "only where it was asked for");
}

#[test]
fn pages_of_different_things_stand_side_by_side() {
    let directory = tempfile::tempdir().expect("a directory");
    for folder in ["a", "b"] {
        std::fs::create_dir(directory.path().join(folder)).expect("a folder");
        write(&directory.path().join(folder), SCENARIO);
    }
    let run = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        super::simnel_in(directory.path(), &words).output().expect("the program starts")
    };
    for (words, page) in [
        ("sim a/scenario.toml", "a/scenario.html"),
        ("sim a/scenario.toml --report pages", "pages/scenario.html"),
        ("sim a/scenario.toml --report pages -j", "pages/scenario.html"),
        ("sim a/scenario.toml --report pages --qdisc pie", "pages/scenario-pie.html"),
        ("sim a/scenario.toml --qdisc pie", "a/scenario-pie.html"),
        ("sim b/scenario.toml --report b.html", "b.html"),
    ] {
        let output = run(words);
        assert!(output.status.success(), "{words}: {}", text(&output.stderr));
        assert!(directory.path().join(page).is_file(), "{words}: {page}");
    }
    let there = || std::fs::read(directory.path().join("pages/scenario.html")).expect("a page");
    let before = there();
    let output = run("sim b/scenario.toml --report pages");
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    let said = crate::unwrapped(&text(&output.stderr));
    assert!(said.contains("made by another command or of another file"), "{said}");
    assert_eq!((text(&output.stdout), there()), (String::new(), before), "nothing was simulated");
}

#[test]
fn a_report_overwrites_no_file_of_another_kind() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), SCENARIO);
    let scenario = path.to_str().unwrap();
    let compared = ["compare", "cake", "fq_codel", "--report", scenario];
    for words in [&["sim", scenario, "--report", scenario][..], &compared] {
        let output = simnel(words);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("already"), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "nothing was simulated");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), SCENARIO);
    }
}

#[test]
fn nothing_overwrites_what_it_is_made_of() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("k.toml"), SCENARIO).expect("a scenario");
    std::fs::write(at("k.html"), SCENARIO).expect("a scenario");
    let run = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        super::simnel_in(directory.path(), &words).output().expect("the program starts")
    };
    let made = run("sim k.toml --json --pcapng k.pcapng");
    assert!(made.status.success(), "{}", text(&made.stderr));
    for (link, to) in [("link.toml", "k.toml"), ("link.pcapng", "k.pcapng")] {
        std::os::unix::fs::symlink(to, at(link)).expect("a link");
    }
    std::fs::copy(at("k.pcapng"), at("k.csv")).expect("a file");
    let contents = || {
        let entries = std::fs::read_dir(directory.path()).expect("the directory");
        let file = |entry: std::io::Result<std::fs::DirEntry>| {
            let path = entry.expect("an entry").path();
            (path.clone(), std::fs::read(path).expect("a file"))
        };
        entries.map(file).collect::<std::collections::BTreeMap<_, _>>()
    };
    let before = contents();
    for words in [
        "sim k.toml --json --pcapng k.toml",
        "sim k.toml --json --pcapng ./link.toml",
        "sim link.toml --json --pcapng k.toml",
        "sim k.html",
        "sim k.html --json --report k.html",
        "replay k.pcapng --qdisc pfifo -o k.pcapng",
        "replay k.pcapng --qdisc pfifo -o link.pcapng",
        "replay k.pcapng --to-binary ./k.pcapng",
        "replay a.csv --golden k.toml -o link.toml",
        "plot k.html -o k.html",
        "sweep k.toml --over rtt=20ms|40ms --repetitions 1 -o new.html",
        "sweep k.toml --over rtt=20ms|40ms --repetitions 1 -o new.csv",
        "sweep --merge k.csv --output new.jsonl --report k.html",
    ] {
        let output = run(words);
        assert_eq!(output.status.code(), Some(2), "{words}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("would overwrite"), "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "", "{words}");
        assert_eq!(contents(), before, "{words}");
    }
}

/// As from `simnel sim <(sed s/2mbit/3mbit/ FILE)`.
#[test]
fn a_scenario_from_a_pipe_has_no_page_beside_it() {
    let mut command = Command::new(SIMNEL);
    command.args(["sim", "/dev/stdin"]).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(SCENARIO.as_bytes()).expect("the scenario");
    let output = child.wait_with_output().expect("an end");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("bulk") && !text(&output.stdout).contains("page: "));
    assert!(!Path::new("/dev/stdin.html").exists());
}

#[test]
fn a_dash_is_standard_input() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = write(directory.path(), SCENARIO);
    let fed = |words: &[&str]| {
        let input = std::fs::File::open(&path).expect("the scenario");
        let mut command = Command::new(SIMNEL);
        command.args(words).stdin(input).current_dir(directory.path());
        command.output().expect("the command")
    };
    let output = fed(&["sim", "-", "--json", "--report", "pages"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(objects(&output)[0]["scenario"], "stdin");
    assert!(directory.path().join("pages/stdin.html").is_file());
    let sweep = ["sweep", "-", "--over", "rtt=20ms|40ms", "--repetitions", "1", "--json"];
    let output = fed(&sweep);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(objects(&output).len(), 2);
    assert!(directory.path().join("stdin.sweep.jsonl").is_file());
}

#[test]
fn a_discipline_that_is_there_twice_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), SCENARIO);
    let twice = ["--qdisc", "fq_codel", "--qdisc", "fq_codel "];
    let output = simnel(&[&["sim", path.to_str().unwrap(), "--json"], &twice[..]].concat());
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    assert!(text(&output.stderr).contains("`fq_codel` is there twice"));
}

#[test]
fn a_capture_that_cannot_be_written_is_told_and_leaves_no_half() {
    let directory = tempfile::tempdir().unwrap();
    let path = write(directory.path(), SCENARIO);
    let sim =
        |capture: &str| simnel(&["sim", path.to_str().unwrap(), "--json", "--pcapng", capture]);
    let output = sim("/dev/full");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let errors = text(&output.stderr);
    assert!(errors.contains("/dev/full: No space left on device"), "{errors}");
    let capture = directory.path().join("run.pcapng");
    assert!(sim(capture.to_str().unwrap()).status.success());
    assert!(capture.metadata().unwrap().len() > 100_000, "all of it is there");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn an_input_that_makes_no_sense_is_refused_with_status_2() {
    let directory = tempfile::tempdir().unwrap();
    let slow = SCENARIO.replace("up = \"2mbit\"", "up = \"600\"");
    for (scenario, qdisc, said) in [
        ("", "pie", "missing field `duration`"),
        (SCENARIO, "cake bandwidth 20", "`bandwidth 20` is 20 bits per second: did you mean"),
        (SCENARIO, "tbf rate 2mbps burst 9k limit 9k", "did you mean `2mbit`?"),
        (&slow, "pie", "`600` is 600 bits per second: did you mean `600mbit`?"),
    ] {
        let path = write(directory.path(), scenario);
        let output = simnel(&["sim", path.to_str().unwrap(), "--qdisc", qdisc]);
        let errors = text(&output.stderr).replace("\n  │ ", " ");
        assert!(errors.contains(said), "{said}: {errors}");
        assert_eq!(output.status.code(), Some(2), "{errors}");
    }
    let output = simnel(&["sim", directory.path().join("none.toml").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let none = ["--qdisc", "pfifo limit 0", "--json"];
    let path = write(directory.path(), SCENARIO);
    let output = simnel(&[&["sim", path.to_str().unwrap()][..], &none].concat());
    let said = "`pfifo limit 0` drops packets whatever comes: `limit 0` leaves no room";
    assert!(text(&output.stderr).contains(said), "{}", text(&output.stderr));
    let explicit = ["--qdisc", "cake bandwidth 20bit", "--json"];
    let path = write(directory.path(), SCENARIO);
    let output = simnel(&[&["sim", path.to_str().unwrap()][..], &explicit].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
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
    let page = std::fs::read_to_string(path.with_extension("html")).expect("the page");
    assert!(page.starts_with("<!doctype html>"));
    let result = result(&page);
    assert_eq!(result["question"], "Does it work?");
    assert_eq!(result["names"], serde_json::json!(["cake"]));
    assert_eq!(result["scenario"], SCENARIO);
    assert!(result["cases"][0]["runs"][0][0]["groups"][0]["goodput_mbps"].as_f64() > Some(0.5));
    let named = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!named.contains("http://") && !named.contains("https://"), "it needs no network");
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
    assert!(!path.with_extension("html").exists(), "no page unless asked for");
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

/// Hours of work on any machine.
fn write_long(directory: &Path) -> PathBuf {
    let long = SCENARIO.replace("\"5s\"", "\"8000000s\"").replace("10mbit", "100mbit");
    write(directory, &format!("interval = \"1000s\"\n{long}"))
}

/// Runs the long scenario for a while and presses Ctrl-C.
fn interrupted(args: &[&str], errors: Stdio, wait: Duration) -> Output {
    let child = Command::new(SIMNEL)
        .arg("sim")
        .args(args)
        .stdout(Stdio::piped())
        .stderr(errors)
        .spawn()
        .expect("the binary runs");
    std::thread::sleep(wait);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("SIGINT");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", text(&output.stderr));
    output
}

#[test]
fn ctrl_c_leaves_a_valid_report_that_says_it_is_partial() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_long(directory.path());
    let wait = Duration::from_millis(1_500);
    let output = interrupted(&[path.to_str().unwrap()], Stdio::piped(), wait);
    assert!(text(&output.stdout).contains("PARTIAL"), "{}", text(&output.stdout));
    let page = std::fs::read_to_string(path.with_extension("html")).expect("the page");
    assert!(page.contains("Partial: ") && page.trim_end().ends_with("</html>"));
    // Without a terminal nobody wants to see a bar.
    assert!(!text(&output.stderr).contains('%'), "{}", text(&output.stderr));
}

#[test]
fn ctrl_c_leaves_valid_json_and_a_page_if_one_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_long(directory.path());
    let page = directory.path().join("page.html");
    let args = [path.to_str().unwrap(), "--seed", "1..9", "--json", "--report"];
    let args = [&args[..], &[page.to_str().unwrap()]].concat();
    let output = interrupted(&args, Stdio::piped(), Duration::from_millis(1_500));
    let runs = objects(&output);
    assert!(!runs.is_empty() && runs.iter().any(|run| run["complete"] == false));
    for run in &runs {
        assert!(run["simulated_s"].as_f64() > Some(0.0) && run["groups"][0]["each"].is_array());
    }
    assert!(text(&output.stderr).contains("of 9 runs"), "{}", text(&output.stderr));
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains("Partial: ") && page.trim_end().ends_with("</html>"));
}

#[test]
fn a_terminal_sees_a_bar_and_the_time_that_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = write_long(directory.path());
    let flags = rustix::pty::OpenptFlags::RDWR | rustix::pty::OpenptFlags::NOCTTY;
    let terminal = rustix::pty::openpt(flags).expect("a pseudo-terminal");
    rustix::pty::grantpt(&terminal).expect("leave to use it");
    rustix::pty::unlockpt(&terminal).expect("it is unlocked");
    let name = rustix::pty::ptsname(&terminal, Vec::new()).expect("its name");
    let errors =
        std::fs::File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let args = [path.to_str().unwrap(), "--json"];
    let output = interrupted(&args, Stdio::from(errors), Duration::from_secs(3));
    assert_eq!(objects(&output)[0]["complete"], false);
    let mut drawn = vec![0; 65_536];
    let length = std::fs::File::from(terminal).read(&mut drawn).expect("what was drawn");
    let drawn = String::from_utf8_lossy(&drawn[..length]);
    assert!(drawn.contains(" %, ") && drawn.contains("left"), "{drawn:?}");
}

/// Of everything that a run records, the report says something.
#[test]
fn the_report_has_every_quantity() {
    let directory = tempfile::tempdir().unwrap();
    let traffic = [
        "kind = \"bulk\"\ncount = 2\nsize = 200000\ndirection = \"both\"\necn = true",
        "kind = \"voip\"\ndscp = \"EF\"",
        "kind = \"ping\"",
        "kind = \"web\"\nrate = 4",
        "kind = \"dash\"",
        "kind = \"iot\"",
        "kind = \"bursts\"\nsize = 50000\npause = \"1s\"",
        "name = \"load\"\nkind = \"bulk\"\ndirection = \"both\"\ncount = 2",
    ];
    let scenario = format!(
        "duration = \"30s\"\nwindows = true\nqdisc = \"cake bandwidth {{rate}} ack-filter\"\n\
         [line]\nup = \"1mbit\"\ndown = \"10mbit\"\n[[traffic]]\n{}\n",
        traffic.join("\n[[traffic]]\n")
    );
    let path = write(directory.path(), &scenario);
    let output = simnel(&["sim", path.to_str().unwrap(), "--json"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let run = &objects(&output)[0];
    let found = |place: &serde_json::Value, path: &str| {
        let value = place.pointer(path).unwrap_or_else(|| panic!("no {path} in {place}"));
        let some = value.as_array().is_none_or(|array| !array.is_empty()) && !value.is_null();
        assert!(some, "{path} says nothing");
    };
    for line in run["lines"].as_array().expect("lines") {
        for path in ["/utilisation", "/sojourn_ms/p99", "/sojourn_cdf/0/1", "/drops", "/marks"] {
            found(line, path);
        }
    }
    assert!(run["lines"][0]["ack_drops"].as_u64() > Some(0), "{}", run["lines"][0]);
    let groups = run["groups"].as_array().expect("groups");
    let group = |name: &str| {
        let named = groups.iter().find(|group| group["name"] == name);
        named.unwrap_or_else(|| panic!("no group {name}"))
    };
    let load = group("load down");
    for path in [
        "/jain",
        "/series_mbps/0",
        "/each/1/mbps",
        "/each/1/series_mbps/0",
        "/each/1/drops/0/0",
        "/each/1/marks",
        "/sojourn_ms/p95",
        "/sojourn_cdf/0/0",
        "/windows/1/cwnd/0",
        "/windows/1/srtt_ms/0",
    ] {
        found(load, path);
    }
    for (name, paths) in [
        ("bulk down", ["/completion_ms/p50", "/finished"].as_slice()),
        ("voip up", &["/added_ms/p99", "/added_cdf/0/0", "/jitter_ms", "/loss", "/mos"]),
        ("voip down", &["/added_series_ms/9"]),
        ("ping", &["/added_ms/max", "/added_cdf/0/0", "/added_there_ms", "/added_back_ms"]),
        ("ping", &["/added_series_ms/0", "/added_series_ms/9"]),
        ("web", &["/pages", "/load_ms/p95"]),
        ("dash", &["/rates_mbps/0/0", "/chosen_mbps", "/stalls", "/stalled_s"]),
        ("iot", &["/latency_ms/p50"]),
        ("bursts", &["/completed", "/completion_ms/mean"]),
    ] {
        paths.iter().for_each(|path| found(&group(name)["application"], path));
    }
    found(group("bulk down"), "/each/0/completion_s");
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
    // Of it 3 MB are the run's. The rest are pages of the unoptimised program: 15 to 17 MB, as its
    // code happens to lie.
    let peak = figure["peak_mb"].as_f64().expect("Linux knows the peak");
    assert!(peak > 1.0 && peak < 30.0, "{peak} MB");
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
