//! Recordings that are damaged: reading and replaying them ends with an error that names the
//! recording, or with an outcome, never with a panic.
//!
//! Each case takes a real recording and changes one of its three files in one place. That is a
//! byte, a number, a line, the end, or the compression.

use std::io::{Read, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use flate2::Compression;
use simnel_core::random::Random;
use simnel_lab::conformance::golden::{build, run_directory, Ledger};

/// Damaged recordings tried, of each group's smallest.
const CASES: u32 = 60;
const SUFFIXES: [&str; 3] = [".json", ".csv.gz", ".out.gz"];

/// The smallest recording of each group, without suffix.
fn smallest() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/golden");
    let directories = |path: &Path| {
        let entries = std::fs::read_dir(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let mut found: Vec<PathBuf> = directories(&root)
        .into_iter()
        .filter(|path| path.is_dir())
        .filter_map(|group| {
            let inputs = directories(&group);
            let inputs = inputs.iter().filter_map(|p| p.to_str()?.strip_suffix(".csv.gz"));
            let size = |stem: &&str| std::fs::metadata(format!("{stem}.csv.gz")).unwrap().len();
            inputs.min_by_key(size).map(PathBuf::from)
        })
        .collect();
    found.sort();
    assert!(found.len() >= 6, "{found:?}");
    found
}

fn unpacked(stem: &Path, suffix: &str) -> Vec<u8> {
    let bytes = std::fs::read(format!("{}{suffix}", stem.display())).unwrap();
    if !suffix.ends_with(".gz") {
        return bytes;
    }
    let mut text = Vec::new();
    GzDecoder::new(&bytes[..]).read_to_end(&mut text).unwrap();
    text
}

fn packed(text: &[u8], suffix: &str) -> Vec<u8> {
    if !suffix.ends_with(".gz") {
        return text.to_vec();
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

/// Changes `text` in one place.
fn damage(text: &mut Vec<u8>, random: &mut Random) {
    let at = random.below(text.len() as u32) as usize;
    let line_end = |from: usize| {
        text[from..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |n| from + n)
    };
    let number = text[at..].iter().position(u8::is_ascii_digit).map(|n| at + n);
    match random.below(8) {
        0 => text[at] = random.u32() as u8,
        1 => text.truncate(at),
        2 => drop(text.drain(at..(at + 20).min(text.len()))),
        3 => drop(text.drain(at..line_end(at))),
        4 => {
            let line = text[at..line_end(at)].to_vec();
            text.splice(at..at, line);
        }
        5 => drop(text.splice(at..at, [b',', b',', b'\n'])),
        // A number becomes enormous, negative, or none.
        choice => {
            let Some(number) = number else { return };
            let new: &[u8] = match (choice, random.below(3)) {
                (6, _) => b"99999999999999999999",
                (_, 0) => b"18446744073709551615",
                (_, 1) => b"-1",
                _ => b"x",
            };
            text.splice(number..number + 1, new.iter().copied());
        }
    }
}

#[test]
fn damage_is_an_error_and_not_a_panic() {
    let (mut refused, mut replayed) = (0, 0);
    for (group, stem) in (0..).zip(smallest()) {
        let texts = SUFFIXES.map(|suffix| unpacked(&stem, suffix));
        let mut random = Random::derive(77, group);
        for case in 0..CASES {
            let directory = tempfile::tempdir().unwrap();
            let damaged = random.below(3) as usize;
            for (index, (suffix, text)) in SUFFIXES.iter().zip(&texts).enumerate() {
                let mut text = text.clone();
                if index == damaged {
                    damage(&mut text, &mut random);
                }
                let mut bytes = packed(&text, suffix);
                if index == damaged && case % 10 == 9 {
                    damage(&mut bytes, &mut random);
                }
                std::fs::write(directory.path().join(format!("damaged{suffix}")), bytes).unwrap();
            }
            let run = || {
                run_directory(
                    directory.path(),
                    "*",
                    &|words, device| build(words, device),
                    &Ledger::default(),
                )
            };
            let outcome = catch_unwind(AssertUnwindSafe(run));
            let what = format!("{}{}, case {case}", stem.display(), SUFFIXES[damaged]);
            match outcome.unwrap_or_else(|_| panic!("{what}: panicked")) {
                Ok(_) => replayed += 1,
                Err(error) => {
                    let text = error.to_string();
                    // By its file's name, or by the name that it has in its JSON.
                    let name = stem.file_name().unwrap().to_str().unwrap();
                    let named = text.contains("damaged") || text.contains(name);
                    assert!(named, "{what}: not named: {text}");
                    refused += 1;
                }
            }
        }
    }
    // Most damage is found; some of it leaves a recording that is merely different.
    assert!(refused > 100 && replayed > 20, "{refused} refused, {replayed} replayed");
}
