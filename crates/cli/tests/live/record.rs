//! A recording is what the queue saw: the same discipline, asked again, decides as it did.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Instant;

use rustix::process::{kill_process, Signal};
use serde_json::Value;
use simnel_gateway::control::{Client, Entry};
use simnel_testbed::traffic::{Bulk, BulkOptions, Connections, Direction};
use simnel_testbed::{Home, Process};

use crate::trial::daemon_of;
use crate::{text, Live, SECOND, SIMNEL};

/// Bytes in front of a file's first packet.
const PCAP_HEADER: u64 = 24;

/// Summary of `file` replayed through `words`.
fn replayed(file: &Path, words: &str) -> Value {
    let mut command = Command::new(SIMNEL);
    command.arg("replay").arg(file).args(["--rate", "5mbit", "--json", "--qdisc", words]);
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn count(summary: &Value, what: &str) -> u64 {
    summary[what].as_u64().unwrap_or_else(|| panic!("no `{what}`: {summary}"))
}

fn uploads(home: &Home) -> Bulk {
    let options = BulkOptions { direction: Direction::Upload, flows: 4, congestion: "cubic" };
    Connections::open(&home.lan1, &home.server, Home::SERVER, options).unwrap().start().unwrap()
}

#[test]
fn what_is_recorded_is_replayed() {
    let Some(live) = Live::beside_others("what_is_recorded_is_replayed") else { return };
    let directory = live.home.testbed.directory().unwrap().to_owned();
    let control = live.control_dir();
    let record = |name: &str, options: &str| -> Process {
        let words = format!("record wan {} {options}", directory.join(name).display());
        let mut all: Vec<&str> = words.split_whitespace().collect();
        all.extend(["--control-dir", &control]);
        let mut process = live.home.gateway.spawn(SIMNEL, &all).unwrap();
        while !directory.join(format!("{name}.upload.pcap")).exists() {
            assert!(process.failure().is_none(), "{:?}", process.failure());
            thread::sleep(SECOND / 100);
        }
        process
    };
    let upload = || -> Entry {
        let shown = Client::connect(&directory, "wan").unwrap().show().unwrap();
        let upload = |entry: &Entry| entry.direction == simnel_gateway::Direction::Upload;
        shown.into_iter().find(upload).unwrap()
    };

    let line = live.line("rate 100mbit delay 5ms fifo 1000p");
    let up = live.start("wan", "up wan download 50mbit upload 5mbit pfifo limit 60");
    let before = upload().datapath;
    let recording = record("evening", "");
    let second = live.simnel(&format!("record wan {}/other", directory.display()));
    assert!(text(&second.stderr).contains("another client records"), "{}", text(&second.stderr));
    let bulk = uploads(&live.home);
    thread::sleep(SECOND * 2);
    drop(bulk);
    thread::sleep(SECOND / 2);
    let after = upload();
    assert!(recording.stop().is_some_and(|status| status.success()), "it ends in good order");
    let file = directory.join("evening.upload.pcap");
    let same = replayed(&file, &after.config);
    let (received, dropped) =
        (after.datapath.received - before.received, after.datapath.dropped - before.dropped);
    let (packets, again) = (count(&same, "packets"), count(&same, "dropped"));
    println!("recorded {packets} of {received}; dropped {dropped} live, {again} again");
    assert_eq!(packets, received);
    assert!(again.abs_diff(dropped) <= 2 + dropped / 10 && dropped > 5);
    let p99 = |summary: &Value| summary["sojourn_ns"]["p99"].as_u64().unwrap() / 1_000_000;
    let short = replayed(&file, "pfifo limit 20");
    println!("99 of 100 wait {} ms; in a third of the queue {} ms", p99(&same), p99(&short));
    assert!(p99(&short) < p99(&same) / 2 && count(&short, "dropped") > again);

    // Whoever is killed: what is there can be read, and another daemon is recorded as well.
    let mut recording = record("always", "--rotate --size 100k --anonymous --direction upload");
    let bulk = uploads(&live.home);
    thread::sleep(SECOND / 2);
    kill_process(daemon_of(up.id()), Signal::KILL).unwrap();
    let [old, new] = [".1", ""].map(|end| directory.join(format!("always.upload.pcap{end}")));
    let begin = Instant::now();
    // The next file is begun as well: its name is nobody's for a moment.
    let is_begun = |file: &Path| file.metadata().is_ok_and(|data| data.len() > PCAP_HEADER);
    while !old.exists() || !is_begun(&new) {
        assert!(begin.elapsed() < SECOND * 10, "the files are not full: {:?}", recording.failure());
        thread::sleep(SECOND / 50);
    }
    recording.kill();
    drop(bulk);
    for file in [&old, &new] {
        let bytes = std::fs::read(file).unwrap();
        let packets = count(&replayed(file, "fq_codel"), "packets");
        println!("{}: {packets} packets, {} bytes", file.display(), bytes.len());
        assert!(bytes.len() <= 50 * 1024);
        let hosts: [[u8; 4]; 2] = [[192, 168, 77, 11], [10, 77, 0, 1]];
        let told = |host: &[u8; 4]| bytes.windows(4).any(|part| part == host);
        assert!(!hosts.iter().any(told), "an address is in it");
    }

    // What came between two daemons is missing, and that is said.
    let mut recording = record("gap", "--for 5s --direction upload");
    kill_process(daemon_of(up.id()), Signal::KILL).unwrap();
    let begin = Instant::now();
    let said = loop {
        if let Some(ended) = recording.failure() {
            break ended.to_string();
        }
        assert!(begin.elapsed() < SECOND * 60, "it goes on");
        thread::sleep(SECOND / 20);
    };
    assert!(said.contains("exit status: 0") && said.contains("s are missing"), "{said}");
    live.ok("down wan");
    drop(up);
    line.stop();
    assert!(live.is_clean());
}
