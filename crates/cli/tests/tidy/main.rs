//! The house rules, as a test.
//!
//! These are rules that a compiler does not know. The deterministic crates have no clock, float or
//! unordered map. Unsafe code is in two crates only. Dependencies go one way. Nothing is left for
//! later. Sentences, lines and files are such that a reader can take them in.
//!
//! Each rule brings a sample that it must catch and one that it must not. A rule that can no
//! longer fail is itself a failure.

mod code;
mod crates;
mod prose;
mod rooms;
mod rules;

use std::path::{Path, PathBuf};

use rules::RULES;

/// One text file of the repository.
pub struct Source {
    /// Path from the root, with `/`.
    pub path: String,
    /// Contents.
    pub text: String,
}

/// A rule's objections: line (from 1) and complaint.
pub type Complaints = Vec<(usize, String)>;

/// Directories that hold nothing of ours.
const NOT_OURS: [&str; 7] =
    [".git", "target", "out", "fuzz/target", "fuzz/corpus", "fuzz/artifacts", "site/node_modules"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every text file below `directory`.
fn read_tree(root: &Path, directory: &Path, sources: &mut Vec<Source>) {
    let entries = std::fs::read_dir(directory).expect("a readable directory");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        if NOT_OURS.contains(&name.as_str()) || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            read_tree(root, &path, sources);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            sources.push(Source { path: name, text });
        }
    }
}

/// Every text file of the repository.
fn sources() -> Vec<Source> {
    let (root, mut sources) = (root(), Vec::new());
    read_tree(&root, &root, &mut sources);
    sources
}

#[test]
fn the_repository_is_tidy() {
    let sources = sources();
    assert!(sources.iter().any(|source| source.path == "crates/core/src/lib.rs"));
    let mut complaints = Vec::new();
    for source in &sources {
        for rule in RULES {
            for (line, complaint) in (rule.check)(source) {
                complaints.push(format!("{}:{line}: {complaint} [{}]", source.path, rule.name));
            }
        }
    }
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

/// `foo/mod.rs`, and not `foo.rs` beside `foo/`.
#[test]
fn modules_have_one_form() {
    let (root, mut sources) = (root(), Vec::new());
    read_tree(&root, &root.join("crates"), &mut sources);
    let stems = sources.iter().filter_map(|source| source.path.strip_suffix(".rs"));
    let both: Vec<&str> = stems.filter(|stem| root.join(stem).is_dir()).collect();
    assert!(both.is_empty(), "beside a folder of the same name: {both:?}");
}

#[test]
fn each_rule_can_fail() {
    for rule in RULES {
        for (path, text) in rule.caught {
            let source = Source { path: (*path).into(), text: (*text).into() };
            assert!(!(rule.check)(&source).is_empty(), "{} lets pass: {path}: {text}", rule.name);
        }
        for (path, text) in rule.allowed {
            let source = Source { path: (*path).into(), text: (*text).into() };
            let complaints = (rule.check)(&source);
            assert!(complaints.is_empty(), "{} catches {path}: {text}: {complaints:?}", rule.name);
        }
        assert!(!rule.caught.is_empty() && !rule.allowed.is_empty(), "{}", rule.name);
    }
}
