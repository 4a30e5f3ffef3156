//! Crates of others: how new a compiler they ask for, and how many of them the gateway alone takes.
//! Of ours, that those which are published bring their licences.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::root;

/// Crates of a program without the lab, ours included: what a router's maker has to read.
const GATEWAY_CRATES: usize = 48;

/// Output of cargo, from what is already here.
fn cargo(arguments: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args(arguments.split(' '))
        .args(["--locked", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo {arguments}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// A version, to compare by.
fn version(text: &str) -> Vec<u64> {
    let mut parts: Vec<u64> = text.split('.').map(|part| part.parse().expect("a number")).collect();
    // 1.88 is 1.88.0.
    parts.resize(3, 0);
    parts
}

/// Packages that ask for a newer compiler than our own do, with what they ask for.
fn too_new(metadata: &Value) -> Vec<String> {
    let packages = metadata["packages"].as_array().expect("packages");
    let stated = |package: &Value| Some(package["rust_version"].as_str()?.to_owned());
    let ours = packages.iter().find(|package| package["name"] == "simnel").expect("the program");
    let ours = version(&stated(ours).expect("a stated version"));
    let newer = packages.iter().filter_map(|package| {
        let asked = stated(package).filter(|asked| version(asked) > ours)?;
        Some(format!("{} {} asks for Rust {asked}", package["name"], package["version"]))
    });
    newer.collect()
}

#[test]
fn the_stated_rust_version_is_enough_for_every_locked_crate() {
    let mut metadata = serde_json::from_str(&cargo("metadata --format-version 1")).expect("JSON");
    assert_eq!(too_new(&metadata), [""; 0], "raise rust-version or pin an older version");
    // The check can fail.
    for package in metadata["packages"].as_array_mut().expect("packages") {
        if package["name"] == "libc" {
            package["rust_version"] = "1.999".into();
        }
    }
    assert_eq!(too_new(&metadata).len(), 1);
}

/// Crates of ours that may be published, and do not have the texts of both licences beside them.
fn unlicensed(metadata: &Value) -> Vec<&str> {
    let packages = metadata["packages"].as_array().expect("packages");
    let ours = packages.iter().filter(|package| package["source"].is_null());
    let lacks = |package: &&Value| {
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let licences = ["LICENSE-APACHE", "LICENSE-MIT"];
        package["publish"].is_null()
            && !licences.iter().all(|name| manifest.with_file_name(name).is_file())
    };
    ours.filter(lacks).filter_map(|package| package["name"].as_str()).collect()
}

#[test]
fn crates_that_are_published_bring_their_licences() {
    let arguments = "metadata --format-version 1 --no-deps";
    let mut metadata = serde_json::from_str(&cargo(arguments)).expect("JSON");
    assert_eq!(unlicensed(&metadata), [""; 0], "link the texts as the other crates do");
    // The check can fail.
    for package in metadata["packages"].as_array_mut().expect("packages") {
        if package["name"] == "simnel-kernel" {
            package["publish"] = Value::Null;
        }
    }
    assert_eq!(unlicensed(&metadata), ["simnel-kernel"]);
}

#[test]
fn the_gateway_alone_takes_few_crates() {
    let count = |features: &str| {
        let tree = cargo(&format!("tree -p simnel {features}-e normal --prefix none"));
        let names = tree.lines().filter_map(|line| line.split(" (").next());
        names.filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().len()
    };
    let (alone, all) = (count("--no-default-features "), count(""));
    println!("{alone} crates without the lab, {all} with it");
    assert!(alone <= GATEWAY_CRATES, "{alone} crates; {GATEWAY_CRATES} at most");
    assert!(all > GATEWAY_CRATES, "nothing was counted");
}
