//! No circles: rooms of a crate import each other one way, and so do disciplines.
//!
//! A room is a file or folder in a crate's `src`, or in a folder there. What a folder's `mod.rs`
//! says (the list of disciplines) is above them.

use std::collections::{BTreeMap, BTreeSet};

use crate::code::without_tests;
use crate::Source;

/// Rooms with those that they import.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Home of the disciplines.
const CORE: &str = "crates/core/src/";
const DISCIPLINES: &str = "qdisc";
/// Home of rooms that are the deepest.
const LAB: &str = "crates/lab/src/";

/// The one folder whose rooms are not told apart: tins, hosts and their books share all they have.
const TOGETHER: (&str, &str) = (CORE, "qdisc/cake");

/// The module that `path` is, in parts.
fn module(path: &str) -> Vec<&str> {
    let path = path.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    path.split('/').filter(|part| *part != "lib").collect()
}

/// All paths in `code`, braces taken apart, that begin with `crate` or `super`, as parts from the
/// root on. `here` is the module that they stand in.
fn paths(code: &str, here: &[&str]) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            if !before.is_some_and(|c| c.is_alphanumeric() || "_:$".contains(c)) {
                let up = usize::from(root == "super::");
                let base =
                    here[..here.len().saturating_sub(up)].iter().map(|part| part.to_string());
                let base = if up > 0 { base.collect() } else { Vec::new() };
                walk(&mut code[at + root.len()..].chars().peekable(), base, &mut found);
            }
        }
    }
    found
}

/// Reads one path, or one in braces for each, behind `base`.
fn walk(
    code: &mut std::iter::Peekable<std::str::Chars<'_>>,
    mut base: Vec<String>,
    found: &mut BTreeSet<Vec<String>>,
) {
    if code.next_if_eq(&'{').is_some() {
        loop {
            while code.next_if(|c| c.is_whitespace() || *c == ',').is_some() {}
            if code.peek().is_none() || code.next_if_eq(&'}').is_some() {
                return;
            }
            walk(code, base.clone(), found);
            // What is no path does not stand in braces; never stay in place.
            if code.peek().is_some_and(|c| !",}".contains(*c) && !c.is_whitespace()) {
                code.next();
            }
        }
    }
    let mut part = String::new();
    while let Some(c) = code.next_if(|c| c.is_alphanumeric() || *c == '_') {
        part.push(c);
    }
    match part.as_str() {
        "super" => drop(base.pop()),
        "self" => {}
        _ => base.push(part),
    }
    found.insert(base.clone());
    if code.next_if_eq(&':').is_some() && code.next_if_eq(&':').is_some() {
        walk(code, base, found);
    }
}

/// Imports between rooms of the crate at `home`, by the folder that they stand in.
fn imports(sources: &[Source], home: &str) -> BTreeMap<String, Imports> {
    let mut all = BTreeMap::<String, Imports>::new();
    let files = sources.iter().filter_map(|source| Some((source.path.strip_prefix(home)?, source)));
    let modules: Vec<(Vec<&str>, &Source)> =
        files.map(|(path, source)| (module(path), source)).collect();
    let is_module = |path: &[String]| modules.iter().any(|(module, _)| module[..] == *path);
    for (here, source) in &modules {
        for path in paths(&without_tests(&source.path, &source.text), here) {
            let is_inside = |depth: &usize| path.len() > *depth && path[..*depth] == here[..*depth];
            for depth in (0..here.len()).take_while(is_inside) {
                let (folder, from, to) = (here[..depth].join("/"), here[depth], &path[depth]);
                let counts = from != to && is_module(&path[..=depth]);
                if counts && (home, folder.as_str()) != TOGETHER {
                    let imports = all.entry(folder).or_default();
                    imports.entry(from.to_string()).or_default().insert(to.clone());
                }
            }
        }
    }
    all
}

/// Rooms that import themselves by way of others.
fn circles(imports: &Imports) -> Vec<&str> {
    let is_circle = |room: &&String| {
        let (mut reached, mut open) = (BTreeSet::new(), vec![*room]);
        while let Some(room) = open.pop() {
            let next = imports.get(room).into_iter().flatten();
            open.extend(next.filter(|room| reached.insert(*room)));
        }
        reached.contains(room)
    };
    imports.keys().filter(is_circle).map(String::as_str).collect()
}

#[test]
fn rooms_of_the_core_import_each_other_one_way() {
    let all = imports(&crate::sources(), CORE);
    let disciplines = &all[DISCIPLINES];
    assert!(all[""][DISCIPLINES].contains("tc") && disciplines["line"].contains("fifo"), "{all:?}");
    for imports in all.values() {
        assert_eq!(circles(imports), [""; 0], "{imports:#?}");
    }
}

#[test]
fn rooms_of_each_crate_import_each_other_one_way() {
    let sources = crate::sources();
    let home = |source: &Source| {
        let (home, _) = source.path.strip_prefix("crates/")?.split_once("/src/")?;
        Some(format!("crates/{home}/src/"))
    };
    let homes: BTreeSet<String> = sources.iter().filter_map(home).collect();
    assert!(homes.len() > 10 && homes.contains(CORE), "{homes:?}");
    let mut found = Vec::new();
    for home in homes {
        let all = imports(&sources, &home);
        let deep = ["conformance/golden", "experiments/paper", "experiments/paper/arms"];
        assert!(home != LAB || deep.iter().all(|folder| all.contains_key(*folder)), "{all:?}");
        for (folder, rooms) in &all {
            let circle = circles(rooms);
            for room in &circle {
                let others: Vec<_> =
                    rooms[*room].iter().filter(|other| circle.contains(&other.as_str())).collect();
                found.push(format!("{home}{folder}: {room} imports {others:?}"));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn circles_are_found() {
    let source =
        |path: &str, text: &str| Source { path: format!("{CORE}{path}"), text: text.into() };
    let tc = source("tc/mod.rs", "use crate::{time, qdisc::{self, Config}};");
    let time = source("time.rs", "pub struct Time;");
    let list = source("qdisc/mod.rs", "use crate::tc::Words; pub mod pie; pub mod fifo;");
    let pie = source("qdisc/pie/mod.rs", "use super::fifo::Fifo;\nuse crate::time::Time;");
    let fifo = source("qdisc/fifo.rs", "fn f() { super::pie::words::f() }");
    let all = imports(&[tc, time, list, pie, fifo], CORE);
    assert_eq!(circles(&all[""]), ["qdisc", "tc"]);
    assert_eq!(circles(&all["qdisc"]), ["fifo", "pie"]);
    let below = source("qdisc/fifo.rs", "use super::Config; use crate::qdisc::Device;");
    assert!(!imports(&[below], CORE).contains_key("qdisc"));
    let lab = |path: &str, text: &str| Source { path: format!("{LAB}{path}"), text: text.into() };
    let run = lab("experiments/paper/run.rs", "use super::series::Memories;");
    let series = lab("experiments/paper/series.rs", "use super::{run::Watch, Arm};");
    assert_eq!(circles(&imports(&[run, series], LAB)["experiments/paper"]), ["run", "series"]);
}
