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

use crate::autorate::{in_kernel, kernel_shapes};
use crate::trial::daemon_of;
use crate::{text, within, Live, SECOND, SIMNEL};

/// Bytes in front of a file's first packet.
const PCAP_HEADER: u64 = 24;

/// Summary of `file` replayed through `words`, at the upload's rate.
fn replayed(file: &Path, words: &str) -> Value {
    replayed_at("5mbit", file, words)
}

fn replayed_at(rate: &str, file: &Path, words: &str) -> Value {
    let mut command = Command::new(SIMNEL);
    command.arg("replay").arg(file).args(["--rate", rate, "--json", "--qdisc", words]);
    let output = command.output().unwrap();
    let said = text(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn count(summary: &Value, what: &str) -> u64 {
    summary[what].as_u64().unwrap_or_else(|| panic!("no `{what}`: {summary}"))
}

fn uploads(home: &Home) -> Bulk {
    bulk(home, Direction::Upload)
}

fn bulk(home: &Home, direction: Direction) -> Bulk {
    let options = BulkOptions { direction, flows: 4, congestion: "cubic" };
    Connections::open(&home.lan1, &home.server, Home::SERVER, options).unwrap().start().unwrap()
}

/// Begins a recording, of the upload at least.
fn record(live: &Live, name: &str, options: &str) -> Process {
    let (directory, control) = (live.home.testbed.directory().unwrap(), live.control_dir());
    let words = format!("record wan {} {options}", directory.join(name).display());
    let mut all: Vec<&str> = words.split_whitespace().collect();
    all.extend(["--control-dir", &control]);
    let mut process = live.home.gateway.spawn(SIMNEL, &all).unwrap();
    while !directory.join(format!("{name}.upload.pcap")).exists() {
        if let Some(error) = process.failure() {
            panic!("{error}");
        }
        thread::sleep(SECOND / 100);
    }
    process
}

/// Words of a recording that ends by itself.
fn ended(mut recording: Process) -> String {
    let begin = Instant::now();
    loop {
        if let Some(ended) = recording.failure() {
            return ended.to_string();
        }
        assert!(begin.elapsed() < SECOND * 60, "it goes on");
        thread::sleep(SECOND / 20);
    }
}

#[test]
fn what_is_recorded_is_replayed() {
    let Some(live) = Live::beside_others("what_is_recorded_is_replayed") else { return };
    let directory = live.home.testbed.directory().unwrap().to_owned();
    let record = |name: &str, options: &str| record(&live, name, options);
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
    let recording = record("gap", "--for 5s --direction upload");
    kill_process(daemon_of(up.id()), Signal::KILL).unwrap();
    let said = ended(recording);
    assert!(said.contains("exit status: 0") && said.contains("s are missing"), "{said}");
    live.ok("down wan");
    drop(up);
    line.stop();
    assert!(live.is_clean());
}

/// Packets that a discipline of the kernel was given, and those of them that it dropped.
fn counted(live: &Live, device: &str) -> (u64, u64) {
    let shown = text(&within(&live.home.gateway, "tc", &["-s", "qdisc", "show"]).stdout);
    let ours = |line: &&str| line.contains(" 51a1: ") && line.contains(&format!(" dev {device}"));
    let lines: Vec<&str> = shown.lines().skip_while(|line| !ours(line)).take(3).collect();
    let words = lines.join(" ").replace(['(', ',', ')'], " ");
    let words: Vec<&str> = words.split_whitespace().collect();
    let number = |at: usize| words[at].trim_end_matches('p').parse::<u64>().unwrap();
    let place = |word: &str| words.iter().position(|other| *other == word).expect(&shown);
    let dropped = number(place("dropped") + 1);
    (number(place("pkt") - 1) + dropped + number(place("backlog") + 2), dropped)
}

/// Times at which packets of `file` came: segments of a super-packet come at once.
fn arrivals(file: &Path) -> usize {
    let bytes = std::fs::read(file).unwrap();
    let mut rest = &bytes[PCAP_HEADER as usize..];
    let mut times = std::collections::BTreeSet::new();
    while let Some((head, packet)) = rest.split_first_chunk::<16>() {
        times.insert(head[..8].to_vec());
        let captured = u32::from_le_bytes(head[8..12].try_into().unwrap());
        rest = &packet[captured as usize..];
    }
    times.len()
}

/// Packets that the kernel shapes are recorded in front of its disciplines, each way; nothing is
/// left behind.
#[test]
fn what_the_kernel_shapes_is_recorded_and_replayed() {
    let test = "what_the_kernel_shapes_is_recorded_and_replayed";
    let live = Live::beside_others(test).filter(|live| kernel_shapes(live, test));
    let Some(live) = live else { return };
    let directory = live.home.testbed.directory().unwrap().to_owned();
    let line = live.line("rate 100mbit delay 5ms fifo 1000p");
    let both = [
        ("upload", "5mbit cake bandwidth 5mbit", "wan "),
        ("download", "100mbit cake bandwidth 20mbit", "simnel-"),
    ];
    live.ok("up wan download 20mbit upload 5mbit egress --backend kernel");
    let taps = || {
        let shown = within(&live.home.gateway, "ip", &["-o", "link", "show", "type", "tun"]);
        text(&shown.stdout).lines().count()
    };

    let recording = record(&live, "evening", "");
    assert_eq!(taps(), 2);
    let second = live.simnel(&format!("record wan {}/other", directory.display()));
    assert!(text(&second.stderr).contains("another client records"), "{}", text(&second.stderr));
    let before = both.map(|(_, _, device)| counted(&live, device));
    let flows = [Direction::Upload, Direction::Download].map(|way| bulk(&live.home, way));
    thread::sleep(SECOND * 2);
    drop(flows);
    thread::sleep(SECOND / 2);
    let after = both.map(|(_, _, device)| counted(&live, device));
    assert!(recording.stop().is_some_and(|status| status.success()), "it ends in good order");
    assert_eq!(taps(), 0);
    for (at, (direction, words, _)) in both.into_iter().enumerate() {
        let (rate, words) = words.split_once(' ').unwrap();
        let [arrived, dropped] = [after[at].0 - before[at].0, after[at].1 - before[at].1];
        let file = directory.join(format!("evening.{direction}.pcap"));
        let again = replayed_at(rate, &file, words);
        let (packets, wholes) = (count(&again, "packets"), arrivals(&file));
        println!(
            "{direction}: recorded {packets} of {arrived}, which came at {wholes} times; \
             dropped {dropped} live, {} again",
            count(&again, "dropped")
        );
        // Few come between the two counts and the recording's ends.
        assert!(packets.abs_diff(arrived) <= 10 && arrived > 500, "{direction}");
        assert!(count(&again, "dropped").abs_diff(dropped) <= 5 + dropped / 4, "{direction}");
    }

    // Whoever is killed leaves no tap: packets pass, and another recording begins.
    let mut recording = record(&live, "killed", "");
    recording.kill();
    assert_eq!(taps(), 0);
    let recording = record(&live, "once", "--for 1s");
    drop(uploads(&live.home));
    let said = ended(recording);
    assert!(said.contains("exit status: 0"), "{said}");
    assert!(count(&replayed(&directory.join("once.upload.pcap"), "cake"), "packets") > 10);

    // What is made anew is recorded again; what is given back ends the recording.
    let recording = record(&live, "anew", "");
    within(&live.home.gateway, "tc", &["qdisc", "del", "dev", "wan", "clsact"]);
    let ifb = within(&live.home.gateway, "ip", &["-o", "link", "show", "type", "ifb"]);
    let ifb = text(&ifb.stdout);
    let ifb = ifb.split([':', ' ']).find(|word| word.starts_with("simnel-")).unwrap().to_owned();
    within(&live.home.gateway, "tc", &["qdisc", "del", "dev", &ifb, "clsact"]);
    thread::sleep(SECOND * 2);
    let before = live.simnel("show wan");
    drop(uploads(&live.home));
    assert!(before.status.success());
    live.ok("down wan");
    let said = ended(recording);
    assert!(said.contains("exit status: 0") && said.contains("is gone"), "{said}");
    assert!(count(&replayed(&directory.join("anew.upload.pcap"), "cake"), "packets") > 10);
    assert_eq!(taps(), 0);
    assert!(live.is_clean() && !in_kernel(&live));

    // Beside a daemon that sets the rates, it is the same.
    let words = "up wan download 4mbit..40mbit upload 2mbit..5mbit autorate reflectors";
    let up = live.start("wan", &format!("{words} {} --backend kernel", Home::SERVER));
    let recording = record(&live, "steered", "--for 1s");
    drop(uploads(&live.home));
    let said = ended(recording);
    assert!(said.contains("exit status: 0"), "{said}");
    assert!(count(&replayed(&directory.join("steered.upload.pcap"), "cake"), "packets") > 10);
    live.ok("down wan");
    drop(up);
    assert!(live.is_clean() && !in_kernel(&live));
    line.stop();
}
