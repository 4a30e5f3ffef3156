//! Files that others made: traces, recordings, flent's data. None panics or stands still; what can
//! be read can be used.
//!
//! The first byte chooses the kind.

#![no_main]

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use simnel_core::Time;
use simnel_fuzz::{in_parts, seeds};
use simnel_lab::flent::{plot, Data};
use simnel_lab::conformance::golden::{self, linux_device, replay, Recording};
use simnel_lab::conformance::replay::{classifier, source};
use simnel_lab::experiments::scenario;
use simnel_sim::Run;

fuzz_target!(init: seeds::write(seeds::files_of_others()), |bytes: &[u8]| {
    let Some((kind, rest)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => trace(rest),
        1 => recording(rest),
        2 => flent(rest),
        _ => opportunities(rest),
    }
});

/// Directory of files that are read by their names.
static DIRECTORY: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = std::env::temp_dir().join(format!("simnel-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&path).expect("a directory for a few files");
    path
});

/// A capture, arrivals as text, or our own binary trace.
fn trace(bytes: &[u8]) {
    let reader = Box::new(Cursor::new(bytes.to_vec()));
    let Ok(mut packets) = source(Path::new("fuzzed"), reader, classifier(1)) else { return };
    let (mut last, mut count) = (Time::ZERO, 0);
    loop {
        match packets.advance() {
            Ok(Some(time)) => {
                assert!(time >= last, "time goes back");
                (last, count) = (time, count + 1);
                // A packet of no bytes may stand in 16 bytes of a file.
                assert!(count <= bytes.len() * 1_100, "more packets than bytes");
                let (packet, keys) = (packets.describe(), packets.keys());
                let view = packets.ack_view();
                assert!(view.is_none() || keys.protocol == Some(6), "{packet:?}");
            }
            Ok(None) => {
                assert!(packets.out_of_order() < count.max(1) as u64);
                return;
            }
            Err(error) => return assert!(!error.to_string().is_empty()),
        }
    }
}

/// The three files of a recording of Linux, replayed if they can be read.
fn recording(bytes: &[u8]) {
    let [json, csv, out] = ["json", "csv", "out"].map(|name| DIRECTORY.join(name));
    let parts = in_parts(bytes);
    for (path, part) in [&json, &csv, &out].into_iter().zip(parts) {
        std::fs::write(path, part).expect("a small file");
    }
    for out in [Some(out.as_path()), None] {
        let Ok(recording) = Recording::read_files(&json, &csv, out) else { continue };
        assert_eq!(recording.counts().sent > 0, recording.expected.iter().any(is_sent));
        let Ok(device) = linux_device(&recording) else { continue };
        if let Ok(mut qdisc) = golden::build(&recording.words, &device) {
            let _ = replay(&recording, qdisc.as_mut(), &device);
        }
    }
}

fn is_sent(event: &golden::Event) -> bool {
    matches!(event.fate, golden::Fate::Sent { .. })
}

/// A trace of Mahimahi's, and a line that follows it.
fn opportunities(bytes: &[u8]) {
    const LINE: &str = "duration = \"100s\"\ninterval = \"10s\"\n[line]\nup = \"1mbit\"\n\
        trace = { down = \"trace\" }\n[[traffic]]\nkind = \"bulk\"\n[[traffic]]\nkind = \"ping\"\n";
    std::fs::write(DIRECTORY.join("trace"), bytes).expect("a small file");
    let Ok(scenario) = scenario::parse(LINE, "fuzzed", &DIRECTORY) else { return };
    let (setup, _) = scenario.setup(None).expect("checked when it was read");
    let mut run = Run::new(&setup, 1).expect("a set-up that was checked");
    let over = run.advance_by(Time::MAX, 3_000);
    assert!(over || run.now() > Time::ZERO, "time stands still");
    assert!(run.results().conservation.holds());
}

fn flent(bytes: &[u8]) {
    match Data::read(bytes) {
        Ok(data) => {
            plot::plots(&data);
            let again = Data::read(&data.write().expect("memory")[..]).expect("our own file");
            assert_eq!(again.results.len(), data.results.len());
        }
        Err(reason) => assert!(!reason.is_empty()),
    }
}
