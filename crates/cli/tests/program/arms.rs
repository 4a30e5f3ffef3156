//! `simnel paper --live` and `--linux`: columns beside the simulator's, and nothing left behind.
//!
//! The live arm needs root, the linux arm Debian's user-mode-linux; without them the tests say so
//! loudly. Times are those of a busy machine: that there is a plausible value is tested, not which.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::{simnel, text, SIMNEL};

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output().expect("id(1)");
    text(&id.stdout).trim() == "0"
}

fn has_linux() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join("linux.uml").is_file())
}

/// Runs one contender of B4 for a few seconds with `option`; its transfers and probes are of every
/// kind. Returns the first claim about it that has a value in the column `arm`.
fn column(option: &str, arm: &str) -> serde_json::Value {
    let words = "paper B4 --repetitions 1 --json --seconds 10 --contender cake ";
    let output = simnel(&format!("{words}{option}").split(" ").collect::<Vec<_>>());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let lines = text(&output.stdout);
    let mut lines = lines.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let with_value = |line: &serde_json::Value| line[arm].is_number();
    lines.find(with_value).unwrap_or_else(|| panic!("no value in {}", text(&output.stdout)))
}

fn check_column(option: &str, arm: &str) {
    let line = column(option, arm);
    let value = line[arm].as_f64().expect("a number");
    // Milliseconds that four flows each way add: something, and less than an unmanaged queue's.
    assert!((0.1..2000.0).contains(&value), "{line}");
    assert!(line[format!("{arm}_holds")].is_boolean() && line["differ"].is_array(), "{line}");
    assert!(line["simulated"].is_number(), "{line}");
}

#[test]
fn the_live_arm_adds_its_column() {
    if !is_root() {
        eprintln!("NOT RUN: the live arm needs root");
        return;
    }
    check_column("--live", "live");
}

#[test]
fn the_linux_arm_adds_its_column() {
    if !has_linux() {
        eprintln!("NOT RUN: the linux arm needs user-mode Linux (apt-get install user-mode-linux)");
        return;
    }
    check_column("--linux", "linux_now");
}

#[test]
fn what_an_arm_lacks_is_said_before_anything_runs() {
    let none = simnel(&["paper", "A1", "--live"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(text(&none.stderr).contains("A2, A3, A6, B3, B4, B5"), "{}", text(&none.stderr));
    let none = text(&simnel(&["paper", "A1", "D1", "--linux"]).stderr);
    assert!(none.contains("--linux cannot run A1, D1"), "{none}");
    let output = Command::new(SIMNEL)
        .args(["paper", "B3", "--linux"])
        .env("PATH", "/nowhere")
        .output()
        .expect("the program starts");
    let error = text(&output.stderr);
    assert!(
        !output.status.success() && error.contains("apt-get install user-mode-linux"),
        "{error}"
    );
    if is_root() {
        let wrong = simnel(&["paper", "B3", "--live", "--contender", "cak"]);
        let error = text(&wrong.stderr);
        assert!(wrong.status.code() == Some(2) && error.contains("cake-lite"), "{error}");
    } else {
        let error = text(&simnel(&["paper", "B3", "--live"]).stderr);
        assert!(error.contains("needs root"), "{error}");
    }
}

/// Namespaces that `process` has made.
fn namespaces(process: u32) -> Vec<String> {
    let list = Command::new("ip").args(["netns", "list"]).output().expect("ip(8)");
    let ours = format!("simnel-live-{process}-");
    text(&list.stdout).lines().filter(|line| line.starts_with(&ours)).map(String::from).collect()
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not within a minute");
        thread::sleep(Duration::from_millis(50));
    }
}

fn start(words: &str, temporary: &Path) -> Child {
    let mut command = Command::new(SIMNEL);
    command.args(words.split(' ')).env("TMPDIR", temporary);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().expect("the program starts")
}

/// Interrupts it once: it ends by itself, and says that its runs are not all.
fn interrupt(child: Child) {
    let id = child.id().to_string();
    let status = Command::new("kill").args(["-INT", &id]).status().expect("kill(1)");
    assert!(status.success());
    let output = child.wait_with_output().expect("a child");
    let errors = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{errors}");
    assert!(errors.contains("stopped: these are the runs until then"), "{errors}");
}

#[test]
fn an_interrupted_live_run_leaves_no_namespaces() {
    if !is_root() {
        eprintln!("NOT RUN: the live arm needs root");
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let child = start("paper B3 --repetitions 1 --live --contender cake", temporary.path());
    let process = child.id();
    wait_for("namespaces", || namespaces(process).len() == 4);
    interrupt(child);
    assert_eq!(namespaces(process), Vec::<String>::new());
}

#[test]
fn an_interrupted_linux_run_leaves_no_process_and_no_directory() {
    if !has_linux() {
        eprintln!("NOT RUN: the linux arm needs user-mode Linux (apt-get install user-mode-linux)");
        return;
    }
    let temporary = tempfile::tempdir().expect("a directory");
    let child = start("paper B3 --repetitions 1 --linux --contender cake", temporary.path());
    let directories = || std::fs::read_dir(temporary.path()).expect("the directory").count();
    // Of the guest's processes each has our directory on its command line.
    let directory = temporary.path().to_string_lossy().into_owned();
    let processes = || {
        let ours = |entry: &std::fs::DirEntry| {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            text(&line).contains(&directory)
        };
        std::fs::read_dir("/proc").expect("proc").flatten().filter(ours).count()
    };
    wait_for("the guest", || directories() == 1 && processes() > 0);
    interrupt(child);
    wait_for("the guest's end", || directories() == 0 && processes() == 0);
}
