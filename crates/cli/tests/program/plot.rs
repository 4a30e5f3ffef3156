//! `simnel plot`: pages from data files, ours and in flent's own older form; errors for all else.

use std::path::Path;
use std::process::Command;

use super::{simnel, SIMNEL};

/// As flent 1 wrote it: format 3, other keys, samples beside the flows.
const OLDER: &str = r#"{
  "version": 3,
  "x_values": [0.0, 0.2, 0.4],
  "results": {
    "TCP upload": [1.0, 2.0, 3.0],
    "TCP upload::tcp_cwnd": [10, 20, 30],
    "TCP download": [9.0, null, 7.0],
    "Ping (ms) ICMP": [10.5, 11.5, null],
    "qdisc_stats_router::dropped": [0, 1, 1]
  },
  "metadata": {"NAME": "tcp_bidirectional", "TITLE": "before & after", "LENGTH": 140},
  "raw_values": {"Ping (ms) ICMP": [{"seq": 1.0, "t": 1496158967.1, "val": 10.5}]}
}"#;

#[test]
fn a_file_of_flent_becomes_a_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, page) = (directory.path().join("a.flent"), directory.path().join("page.html"));
    std::fs::write(&file, OLDER).expect("a file");
    let words = ["plot", &file.to_string_lossy(), "--report", &page.to_string_lossy()];
    let output = simnel(&words);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(page.contains("before &amp; after"));
    for title in ["Upload", "Download", "Latency", "Latency, distribution", "Latency, quartiles"] {
        assert!(page.contains(&format!("<figcaption>{title}</figcaption>")), "{title}");
    }
    assert!(!page.contains("tcp_cwnd") && !page.contains("qdisc_stats"));
    assert_eq!(std::fs::read_dir(directory.path()).expect("the directory").count(), 2);
}

#[test]
fn what_comes_in_by_a_pipe_is_drawn() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("a.flent");
    std::fs::write(&file, OLDER).expect("a file");
    let mut command = Command::new(SIMNEL);
    command.args(["plot", "-", "-o"]).arg(directory.path());
    command.stdin(std::fs::File::open(file).expect("the file"));
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = std::fs::read_to_string(directory.path().join("stdin-plot.html")).expect("the page");
    assert!(page.contains("before &amp; after"));
}

#[test]
fn journals_are_drawn_as_they_are_and_packed() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let run = |run: u32, rtt: &str| {
        let values = "{\"groups.ping.application.added_ms.p99\":3.5}";
        format!(
            "{{\"run\":{run},\"point\":{{\"rtt\":\"{rtt}\"}},\"seed\":1,\"values\":{values}}}\n"
        )
    };
    let head = "{\"sweep\":\"1\",\"scenario\":\"line\",\"runs\":2}\n";
    let journal = [head, &run(0, "10ms"), &run(1, "20ms")].concat();
    std::fs::write(path("a.jsonl"), &journal).expect("a journal");
    let packed = Command::new("gzip").args(["-k", &path("a.jsonl")]).status().expect("gzip");
    assert!(packed.success());
    let page = path("page.html");
    for name in ["a.jsonl", "a.jsonl.gz"] {
        let output = simnel(&["plot", &path(name), "--report", &page]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(std::fs::read_to_string(&page).expect("the page").contains("<figcaption>"));
    }
    std::fs::write(path("a.jsonl"), journal.replace("{\"run\":1", "[")).expect("a journal");
    let error = simnel(&["plot", &path("a.jsonl"), "--report", &page]).stderr;
    let error = String::from_utf8_lossy(&error).replace(['\n', '│', ' '], "");
    assert!(error.contains("line3isnolineofasweephelp:linesastheywerewritten"), "{error}");
}

#[test]
fn other_files_are_refused_by_name_and_leave_no_page() {
    let directory = tempfile::tempdir().expect("a directory");
    let page = directory.path().join("page.html");
    let refused = |name: &str, content: &[u8]| {
        let file = directory.path().join(name);
        std::fs::write(&file, content).expect("a file");
        let output =
            simnel(&["plot", &file.to_string_lossy(), "--report", &page.to_string_lossy()]);
        assert_eq!(output.status.code(), Some(1), "{name}");
        let error = String::from_utf8_lossy(&output.stderr).replace(['\n', '│', ' '], "");
        assert!(error.contains(name), "{error}");
        error
    };
    assert!(refused("empty", b"").contains("noJSON"));
    assert!(refused("broken.gz", b"\x1f\x8b\x08\x00rest").contains("damaged"));
    assert!(refused("newer", b"{\"version\": 5}").contains("format5"));
    let silent = "{\"version\":4,\"x_values\":[],\"results\":{},\"metadata\":{}}";
    assert!(refused("silent", silent.as_bytes()).contains("nothingtoplot"));
    assert!(!Path::new(&page).exists());
    let missing = simnel(&["plot", "/nowhere/at/all", "-o", &page.to_string_lossy()]);
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/nowhere"));
}
