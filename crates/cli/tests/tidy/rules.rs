//! The rules themselves. To add one: a line in [`RULES`] with a sample that it must catch.
//!
//! Forbidden words are put together from two halves here, so that this file keeps its own rules.

use crate::code::{lines_with, only_code, without_tests};
use crate::prose::{long_sentences, riddles};
use crate::{Complaints, Source};

/// A rule and the samples, path and text, that prove it.
pub struct Rule {
    pub name: &'static str,
    pub check: fn(&Source) -> Complaints,
    pub caught: &'static [(&'static str, &'static str)],
    pub allowed: &'static [(&'static str, &'static str)],
}

/// Crates whose results must be the same on every machine and in every run.
const DETERMINISTIC: [&str; 3] = ["crates/core/src/", "crates/tcp/src/", "crates/sim/src/"];
/// The one file of the core with floats: numbers as words say them, which are no state.
const NUMBERS: &str = "crates/core/src/tc/number.rs";
/// The crates with unsafe code, the homes in Linux; and a test whose allocator refuses.
const UNSAFE_HOMES: &[&str] =
    &["crates/gateway/", "crates/kernel/", "crates/core/tests/support/refusing.rs"];
/// Columns that fit two files side by side.
const COLUMNS: usize = 100;
/// Lines of a file that is surely more than one concept.
const LINES: usize = 900;

/// Crates of ours that a crate may depend on.
const DEPENDENCIES: &[(&str, &[&str])] = &[
    ("simnel-core", &[]),
    ("simnel-tcp", &["simnel-core"]),
    ("simnel-autorate", &["simnel-core"]),
    ("simnel-sim", &["simnel-core", "simnel-tcp"]),
    // The testbed is for its tests.
    ("simnel-gateway", &["simnel-autorate", "simnel-core", "simnel-measure", "simnel-testbed"]),
    ("simnel-kernel", &["simnel-core"]),
    ("simnel-scenario", &["simnel-core", "simnel-tcp", "simnel-sim"]),
    ("simnel-wasm", &["simnel-core", "simnel-sim", "simnel-scenario", "simnel-lab"]),
    ("simnel-measure", &[]),
    ("simnel-testbed", &["simnel-core", "simnel-measure"]),
    ("simnel-web", &["simnel-core", "simnel-gateway", "simnel-scenario"]),
    (
        "simnel-lab",
        &[
            "simnel-autorate",
            "simnel-core",
            "simnel-tcp",
            "simnel-sim",
            "simnel-scenario",
            "simnel-testbed",
        ],
    ),
    // What the lab measures with is named for a feature of it only.
    (
        "simnel-python",
        &["simnel-core", "simnel-sim", "simnel-scenario", "simnel-lab", "simnel-measure"],
    ),
    (
        "simnel",
        &[
            "simnel-core",
            "simnel-sim",
            "simnel-scenario",
            "simnel-testbed",
            "simnel-measure",
            "simnel-lab",
            "simnel-web",
            "simnel-gateway",
        ],
    ),
];

pub const RULES: &[Rule] = &[
    Rule {
        name: "no clock",
        check: |source| in_state(source, &["Instant", "SystemTime"], "time is passed in"),
        caught: &[
            ("crates/core/src/a.rs", "let now = Instant::now();"),
            ("crates/sim/src/a.rs", "use std::time::SystemTime;"),
        ],
        allowed: &[
            ("crates/core/src/a.rs", "// never Instant::now()"),
            ("crates/cli/src/a.rs", "let now = Instant::now();"),
        ],
    },
    Rule {
        name: "ordered containers",
        check: |source| in_state(source, &["HashMap", "HashSet"], "its order changes between runs"),
        caught: &[("crates/tcp/src/a.rs", "use std::collections::HashMap;")],
        allowed: &[("crates/tcp/src/a.rs", "use std::collections::BTreeMap;")],
    },
    Rule {
        name: "no floats in state",
        check: |source| match source.path.as_str() {
            NUMBERS => Vec::new(),
            _ => in_state(source, &["f32", "f64"], "use integers, or fixed point"),
        },
        caught: &[
            ("crates/core/src/a.rs", "let x: f64 = 0;"),
            ("crates/core/src/a/b.rs", "x as f32"),
        ],
        allowed: &[
            ("crates/core/src/a.rs", "#[cfg(test)]\nmod tests {\nlet x: f64 = 0;\n}"),
            ("crates/core/src/a.rs", "let half64 = 1;"),
            (NUMBERS, "struct Number(f64);"),
            ("crates/lab/src/a.rs", "let x: f64 = 0;"),
        ],
    },
    Rule {
        name: "unsafe code has one home",
        check: unsafe_code,
        caught: &[("crates/lab/src/a.rs", "unsafe { x() }"), ("fuzz/a.rs", "unsafe fn x() {}")],
        allowed: &[
            ("crates/gateway/src/a.rs", "unsafe { x() }"),
            ("crates/core/src/lib.rs", "#![forbid(unsafe_code)] // no unsafe code"),
        ],
    },
    Rule {
        name: "dependencies point one way",
        check: dependencies,
        caught: &[
            (
                "crates/core/Cargo.toml",
                "[package]\nname = \"simnel-core\"\n[dependencies]\nserde = \"1\"",
            ),
            (
                "crates/core/Cargo.toml",
                "[package]\nname = \"simnel-core\"\n[dependencies]\nrand = { optional = true }",
            ),
            (
                "crates/core/Cargo.toml",
                "[package]\nname = \"simnel-core\"\n[features]\ndefault = [\"serde\"]",
            ),
            (
                "crates/gateway/Cargo.toml",
                "[package]\nname = \"simnel-gateway\"\n[dependencies]\nsimnel-lab = \"1\"",
            ),
            (
                "crates/lab/Cargo.toml",
                "[package]\nname = \"simnel-lab\"\n\
                 [target.'cfg(unix)'.dependencies]\nsimnel-gateway = \"1\"",
            ),
            ("crates/new/Cargo.toml", "[package]\nname = \"simnel-new\""),
        ],
        allowed: &[
            (
                "crates/core/Cargo.toml",
                "[package]\nname = \"simnel-core\"\n[dev-dependencies]\nproptest = \"1\"",
            ),
            (
                "crates/core/Cargo.toml",
                "[package]\nname = \"simnel-core\"\n\
                 [dependencies]\nserde = { workspace = true, optional = true }",
            ),
            (
                "crates/lab/Cargo.toml",
                "[package]\nname = \"simnel-lab\"\n\
                 [dependencies]\nsimnel-core = \"1\"\nserde = \"1\"",
            ),
        ],
    },
    Rule {
        name: "the terminal obeys us only",
        check: |source| match source.path.starts_with("crates/cli/src/") {
            true if source.path != "crates/cli/src/terminal.rs" => {
                let code = without_tests(&source.path, &source.text);
                let place = |line| (line, "`eprintln`: errors may hold others' words: say!".into());
                lines_with(&code, "eprintln").into_iter().map(place).collect()
            }
            _ => Vec::new(),
        },
        caught: &[("crates/cli/src/a.rs", "eprintln!(\"{error}\");")],
        allowed: &[
            ("crates/cli/src/a.rs", "crate::say!(\"{error}\");"),
            ("crates/cli/src/terminal.rs", "eprintln!(\"{}\", Printable(text));"),
        ],
    },
    Rule {
        name: "facts are told",
        check: untold_facts,
        caught: &[
            ("a.rs", concat!("// so it is (fac", "ts A.99)")),
            ("a.rs", concat!("fac", "ts D.1, B.7")),
            ("a.rs", concat!("//! it rests. (Fac", "ts A.99.)")),
        ],
        allowed: &[
            ("a.rs", concat!("// as Linux (fac", "ts A.3, A.4; RFC 1)")),
            ("a.rs", "ack.facts |= fact::A;"),
        ],
    },
    Rule {
        name: "documentation names its item",
        check: riddles,
        caught: &[
            ("a.rs", concat!("/// Wh", "at it holds.\nstruct A;")),
            ("a.rs", concat!("//! Wheth", "er it is so.")),
            ("a.rs", concat!("    /// # Errors\n    /// Wh", "o is missing.")),
            ("a.rs", concat!("/// Ho", "w often it fires.\nstruct A;")),
        ],
        allowed: &[
            ("a.rs", concat!("/// Bytes queued.\n/// Wh", "at is dropped counts.")),
            ("a.rs", concat!("// Wh", "at follows is short.")),
        ],
    },
    Rule {
        name: "sentences can be taken in",
        check: long_sentences,
        caught: &[(
            "a.rs",
            concat!(
                "/// 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\n",
                "/// 21 22 23 24 `2 5` 26."
            ),
        )],
        allowed: &[
            (
                "a.rs",
                concat!(
                    "/// 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\n",
                    "/// 21 22 23 24 `25 is one, 26. too`. And 2.\n/// - 3"
                ),
            ),
            (
                "a.rs",
                concat!(
                    "/// ```\n/// 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20\n",
                    "/// 21 22 23 24 25 26.\n/// ```"
                ),
            ),
        ],
    },
    Rule {
        name: "lines fit",
        check: long_lines,
        caught: &[(
            "a.rs",
            concat!(
                "// 3456789 123456789 123456789 123456789 123456789 ",
                "123456789 123456789 123456789 123456789 123456789 1"
            ),
        )],
        allowed: &[
            (
                "a.rs",
                concat!(
                    "// 3456789 123456789 123456789 123456789 123456789 ",
                    "123456789 123456789 123456789 123456789 123456789"
                ),
            ),
            ("a.rs", "// ééééééééééééééééééééééééééééééééééééééééééééééééééééé"),
        ],
    },
    Rule {
        name: "files are one job each",
        check: long_files,
        caught: &[("a.rs", NINE_HUNDRED_AND_ONE_LINES)],
        allowed: &[("a.rs", "\n\n"), ("a.csv", NINE_HUNDRED_AND_ONE_LINES)],
    },
    Rule {
        name: "nothing is left for later",
        check: unfinished,
        caught: &[
            ("a.rs", concat!("// TO", "DO: more")),
            ("a.md", concat!("FIX", "ME")),
            ("a.rs", concat!("to", "do!()")),
            ("a.rs", concat!("unimple", "mented!(\"x\")")),
            ("a.rs", concat!("#[ig", "nore]")),
            ("a.rs", concat!("#[ig", "nore = \"slow\"]")),
        ],
        allowed: &[("a.rs", "\"todo\" // methodology"), ("a.rs", "#[allow(x)] let ignore = 1;")],
    },
    Rule {
        name: "the project stands alone",
        check: outside,
        caught: &[
            ("a.md", concat!("see /wo", "rk/x")),
            ("a.sh", concat!("cd /ro", "ot/x")),
            ("a.rs", concat!("\"/ho", "me/someone/x\"")),
            (concat!("AGEN", "TS.md"), ""),
            (concat!("docs/CLAU", "DE.md"), ""),
        ],
        allowed: &[("a.md", "see docs/network/x and ../shared/golden, ~/.cargo")],
    },
];

/// 901 empty lines.
const NINE_HUNDRED_AND_ONE_LINES: &str = match std::str::from_utf8(&[b'\n'; LINES + 1]) {
    Ok(text) => text,
    Err(_) => panic!("line feeds are UTF-8"),
};

fn in_state(source: &Source, words: &[&str], why: &str) -> Complaints {
    if !is_rust(source) || !DETERMINISTIC.iter().any(|home| source.path.starts_with(home)) {
        return Vec::new();
    }
    let code = without_tests(&source.path, &source.text);
    let complaint = |word: &&str| {
        let text = format!("`{word}`: {why}");
        lines_with(&code, word)
            .into_iter()
            .map(move |line| (line, text.clone()))
            .collect::<Vec<_>>()
    };
    words.iter().flat_map(complaint).collect()
}

/// Sections that are cited and not in docs/FACTS.md.
fn untold_facts(source: &Source) -> Complaints {
    const FACTS: &str = include_str!("../../../../docs/FACTS.md");
    let is_section = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_uppercase())
            && word[1..].starts_with('.')
            && word.len() > 2
    };
    let untold = |(number, line): (usize, &str)| {
        // With or without a capital.
        let cited = line.split(concat!("ac", "ts ")).skip(1).flat_map(|text| {
            let words = text.split([' ', ',']).filter(|word| !word.is_empty());
            words
                .map(|word| word.trim_end_matches([';', '.', ')', ':', '`']))
                .take_while(move |word| is_section(word))
        });
        let untold = cited.filter(|section| !FACTS.contains(&format!("\n### {section} ")));
        untold
            .map(|section| (number + 1, format!("docs/FACTS.md has no section {section}")))
            .collect::<Vec<_>>()
    };
    if !is_rust(source) {
        return Vec::new();
    }
    source.text.lines().enumerate().flat_map(untold).collect()
}

fn unsafe_code(source: &Source) -> Complaints {
    if !is_rust(source) || UNSAFE_HOMES.iter().any(|home| source.path.starts_with(home)) {
        return Vec::new();
    }
    let lines = lines_with(&only_code(&source.text), "unsafe");
    lines
        .into_iter()
        .map(|line| (line, format!("only {} may", UNSAFE_HOMES.join(" and "))))
        .collect()
}

fn dependencies(source: &Source) -> Complaints {
    let file = source.path.strip_prefix("crates/").and_then(|rest| rest.split_once('/'));
    if file.map(|(_, file)| file) != Some("Cargo.toml") {
        return Vec::new();
    }
    let manifest: toml::Table = match source.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![(1, error.to_string())],
    };
    let name = manifest.get("package").and_then(|p| p.get("name")).and_then(|name| name.as_str());
    let name = name.unwrap_or_default();
    let Some((_, allowed)) = DEPENDENCIES.iter().find(|(known, _)| *known == name) else {
        return vec![(1, format!("`{name}` has no line in DEPENDENCIES: what may it use?"))];
    };
    let mut complaints = Vec::new();
    let targets = manifest.get("target").and_then(|t| t.as_table()).into_iter();
    let tables = targets.flat_map(|t| t.values().filter_map(|v| v.as_table())).chain([&manifest]);
    for table in tables {
        for kind in ["dependencies", "build-dependencies", "dev-dependencies"] {
            let used = table.get(kind).and_then(|k| k.as_table()).into_iter().flatten();
            for (used, how) in used {
                let ours = used.starts_with("simnel") && used != name;
                // The core builds without any; who asks for it gets serde's forms of statistics.
                let asked_for = used == "serde" && how.get("optional") == Some(&true.into());
                let foreign_in_core =
                    name == "simnel-core" && kind != "dev-dependencies" && !asked_for;
                if (ours && !allowed.contains(&used.as_str())) || (!ours && foreign_in_core) {
                    complaints.push((1, format!("{name} must not depend on {used}")));
                }
            }
        }
    }
    if name == "simnel-core" && manifest.get("features").is_some_and(|f| f.get("default").is_some())
    {
        complaints.push((1, "simnel-core must have no default features".into()));
    }
    complaints
}

fn long_lines(source: &Source) -> Complaints {
    if !is_rust(source) {
        return Vec::new();
    }
    let columns = source.text.lines().map(|line| line.chars().count()).enumerate();
    columns
        .filter(|(_, columns)| *columns > COLUMNS)
        .map(|(n, columns)| (n + 1, format!("{columns} columns; {COLUMNS} fit")))
        .collect()
}

fn long_files(source: &Source) -> Complaints {
    let lines = source.text.lines().count();
    if !is_rust(source) || lines <= LINES {
        return Vec::new();
    }
    vec![(lines, format!("{lines} lines: split it by part ({LINES} at most)"))]
}

fn unfinished(source: &Source) -> Complaints {
    let mut complaints = Vec::new();
    for word in [concat!("TO", "DO"), concat!("FIX", "ME")] {
        complaints.extend(lines_with(&source.text, word).into_iter().map(|n| (n, word.into())));
    }
    if is_rust(source) {
        let code = only_code(&source.text);
        for word in [concat!("to", "do!"), concat!("unimple", "mented!"), concat!("#[ig", "nore")] {
            complaints.extend(lines_with(&code, word).into_iter().map(|n| (n, word.into())));
        }
    }
    complaints
}

fn outside(source: &Source) -> Complaints {
    let name = source.path.rsplit('/').next().unwrap_or_default();
    let mut complaints = Vec::new();
    if [concat!("AGEN", "TS.md"), concat!("CLAU", "DE.md")].contains(&name) {
        complaints.push((1, "does not belong into the project".into()));
    }
    for prefix in [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")] {
        // Only as the beginning of a path: `docs/work/` is fine.
        let starts_path = |line: &str| {
            line.match_indices(prefix).any(|(at, _)| {
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~/".contains(c))
            })
        };
        let lines = source.text.lines().enumerate().filter(|(_, line)| starts_path(line));
        complaints.extend(lines.map(|(n, _)| (n + 1, format!("a path of one machine: {prefix}"))));
    }
    complaints
}

fn is_rust(source: &Source) -> bool {
    source.path.ends_with(".rs")
}
