//! Command lines that make no sense. Every command refuses them with status 2 and an error that
//! names the word, and none panics, whatever it is given.
//!
//! No command line here can take effect, not even for root. Each has a word that is nothing
//! anywhere (no keyword, number, path or interface), and the interface otherwise named exists
//! nowhere.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use simnel_core::qdisc;
use simnel_core::random::Random;

use super::SIMNEL;

/// A well-formed name of an interface that does not exist.
const NOWHERE: &str = "simnel-none";
/// Longest time that a command may take to say no.
const PATIENCE: Duration = Duration::from_secs(10);
/// Command lines tried by each test.
const CASES: u32 = 150;

/// Runs `simnel`, which must end by itself, and soon.
fn refused(args: &[OsString]) -> (i32, String) {
    let mut child = Command::new(SIMNEL)
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let begin = Instant::now();
    while child.try_wait().expect("the child is ours").is_none() {
        if begin.elapsed() > PATIENCE {
            child.kill().expect("the child is ours");
            panic!("{args:?} was accepted, or never ends");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let Output { status, stderr, .. } = child.wait_with_output().expect("the child is ours");
    let errors = String::from_utf8_lossy(&stderr).into_owned();
    let status = status.code().unwrap_or_else(|| panic!("{args:?} was killed: {status}"));
    assert!(!errors.contains("panicked") && status != 101, "{args:?}: {errors}");
    (status, errors)
}

fn words(line: &str) -> Vec<OsString> {
    line.split(' ').map(OsString::from).collect()
}

/// The commands that `--help` lists.
fn commands() -> Vec<String> {
    let help = Command::new(SIMNEL).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let list = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names: Vec<String> = list
        .take_while(|line| !line.trim().is_empty())
        // A description that goes on is indented further.
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(String::from))
        .filter(|name| name != "help")
        .collect();
    assert!(names.len() >= 11, "{names:?}");
    names
}

fn pick<'a, T>(random: &mut Random, of: &'a [T]) -> &'a T {
    &of[random.below(of.len() as u32) as usize]
}

/// A word that is nothing anywhere.
fn junk(random: &mut Random) -> String {
    let parts = ["x/q", "ä/ö", "7/", "mbit/", "%s/", "0x/g", "cake/", "\"/'", "e0/:"];
    format!("{}{}", pick(random, &parts), random.below(1_000))
}

/// A line of words that a command accepts as far as they go, one of which is made junk. Its places:
/// IFACE, RATE, WORDS of the discipline that precedes.
fn spoiled(random: &mut Random, template: &str) -> (Vec<String>, String) {
    let mut line: Vec<String> = Vec::new();
    let mut places = Vec::new();
    for word in template.split(' ') {
        places.push(line.len());
        match word {
            "IFACE" => line.push(NOWHERE.into()),
            "RATE" => {
                line.push(pick(random, &["1mbit", "2.5Gibit", "64kbit", "9Mibit"]).to_string())
            }
            "WORDS" => {
                let discipline = if line[0] == "link" { "line" } else { "cake" };
                let flags: Vec<&str> = qdisc::keywords(discipline)
                    .filter(|keyword| keyword.argument.is_empty())
                    .map(|keyword| keyword.word)
                    .collect();
                for _ in 0..random.below(4) {
                    line.push((*pick(random, &flags)).into());
                    places.push(line.len());
                }
                line.push((*pick(random, &flags)).into());
            }
            // What comes before the first place is the command.
            word => {
                places.pop();
                line.push(word.into());
            }
        }
    }
    let word = junk(random);
    line[*pick(random, &places)].clone_from(&word);
    (line, word)
}

#[test]
fn every_command_refuses_options_and_words_that_it_does_not_have() {
    for command in commands() {
        for extra in ["--x/q7", "-%", "--x/q7=1"] {
            let (status, errors) = refused(&words(&format!("{command} {extra}")));
            assert_eq!(status, 2, "{command} {extra}: {errors}");
            let named = extra.split('=').next().unwrap();
            assert!(errors.contains(named), "{command} {extra}: {errors}");
        }
    }
    let (status, errors) = refused(&words("x/q7"));
    assert!(status == 2 && errors.contains("x/q7"), "{errors}");
    for line in [
        "daemon x/q7",
        "demo x/q7",
        "demo fq_codel x/q7",
        "demo cake bandwidth 3mbit",
        "demo --line x_q7",
        "demo --rtt x/q7",
        "demo --seconds x/q7",
        "compare fq_codel x/q7",
        "compare fq_codel cake --rtt x/q7",
        "demo --seconds 7000000000",
        "down simnel-none x/q7",
        "show simnel-none x/q7",
        "bench x/q7",
        "bench core --flows x/q7",
        "bench core --pairs 1 --flows 1 --input x/q7",
        "bench core --pairs 1 --flows 1 --load x/q7",
        "bench core --pairs 1 --flows 1 --qdisc x/q7",
        "conformance x/q7",
        "completions x/q7",
        "man x/q7",
    ] {
        let (status, errors) = refused(&words(line));
        let named = line.rsplit(' ').next().unwrap();
        assert!(status == 2 && errors.contains(named), "{line}: {status}, {errors}");
    }
}

#[test]
fn one_wrong_word_among_right_ones_is_named() {
    let templates = [
        "up IFACE download RATE",
        "up IFACE upload RATE cake WORDS",
        "up IFACE download RATE upload RATE cake WORDS",
        "change IFACE upload RATE",
        "change IFACE download RATE cake WORDS",
        "link simnel-none simnel-nill rate RATE WORDS",
        "link simnel-none simnel-nill rate RATE WORDS reverse rate RATE WORDS",
        "down IFACE",
        "show IFACE",
        "show -s IFACE",
        "show -j IFACE",
    ];
    let mut random = Random::derive(6, 1);
    for case in 0..CASES {
        let template = templates[case as usize % templates.len()];
        let (line, word) = spoiled(&mut random, template);
        let args: Vec<OsString> = line.iter().map(OsString::from).collect();
        let (status, errors) = refused(&args);
        assert_eq!(status, 2, "{line:?}: {errors}");
        assert!(errors.contains(&word), "{line:?} does not name `{word}`: {errors}");
    }
}

#[test]
fn a_missing_value_is_misuse_too() {
    for (line, named) in [
        ("up", "IFACE"),
        ("up simnel-none", "simnel-none"),
        ("up simnel-none download", "download"),
        ("up simnel-none download 1mbit upload", "upload"),
        ("up simnel-none download 1mbit cake rtt", "rtt"),
        ("up simnel-none download 1mbit cake overhead 999", "999"),
        ("change", "INTERFACE"),
        ("change simnel-none upload", "RATE"),
        ("change simnel-none sideways 1mbit", "sideways"),
        ("link simnel-none simnel-nill rate", "rate"),
        ("link simnel-none simnel-nill rate 1mbit fifo", "fifo"),
        ("down", "INTERFACE"),
        ("replay x/q7 --qdisc pie --rate 20", "did you mean `20mbit`"),
        ("replay x/q7 --qdisc pie --rate 5", "less than a byte per second: did you mean `5mbit`?"),
        ("conformance golden", "DIRECTORY"),
        ("completions", "SHELL"),
        ("test --server 127.0.0.1 --ca x_q7", "--ca"),
        ("test --iperf3 127.0.0.1 --ca x_q7", "--ca"),
    ] {
        let (status, errors) = refused(&words(line));
        assert!(status == 2 && errors.contains(named), "{line}: {status}, {errors}");
    }
}

/// As an unset variable of a script leaves them.
#[test]
fn empty_words_are_named() {
    for (line, place) in [
        ("change simnel-none upload _", 4),
        ("change simnel-none upload 1mbit _ --for 1m", 5),
        ("up simnel-none upload _", 4),
        ("up simnel-none upload 1mbit _", 5),
        ("up simnel-none upload 1mbit cake _ nat", 6),
    ] {
        let args: Vec<OsString> =
            line.split(' ').map(|word| word.replace('_', "").into()).collect();
        let (status, errors) = refused(&args);
        let named = format!("word {place} is empty");
        assert!(status == 2 && errors.contains(&named), "{line}: {status}, {errors}");
    }
}

#[test]
fn noise_is_refused_without_panic() {
    let commands = commands();
    let known = [
        "download",
        "upload",
        "1mbit",
        "cake",
        "line",
        "nat",
        "rate",
        "reverse",
        "--",
        "-s",
        "-j",
        "--json",
        "",
        " ",
        "=",
        "--seconds",
        "--config",
        "--only",
        "--output",
        "-",
        "\u{202e}",
        "core",
    ];
    let mut random = Random::derive(6, 2);
    for _ in 0..CASES {
        let command = pick(&mut random, &commands);
        let mut args = vec![OsString::from(command)];
        let spoiled = random.below(6);
        for place in 0..6 {
            args.push(match random.below(4) {
                // The one that makes sure that nothing takes effect.
                _ if place == spoiled => "--x/q7".into(),
                0 => junk(&mut random).into(),
                1 => "9".repeat(1 + random.below(400) as usize).into(),
                2 => {
                    let bytes = (0..random.below(30)).map(|_| 1 + random.below(255) as u8);
                    OsString::from_vec(bytes.collect())
                }
                _ => (*pick(&mut random, &known)).into(),
            });
        }
        // (After `--` nothing is an option: then that one is a word that no command has.)
        let help = ["-h", "--help", "-V", "--version"];
        if args.iter().any(|arg| help.iter().any(|help| arg == help)) {
            continue;
        }
        let (status, errors) = refused(&args);
        assert!(status == 1 || status == 2, "{args:?}: {status}, {errors}");
        assert!(!errors.trim().is_empty(), "{args:?}");
    }
}
