//! Settings of every discipline, drawn from its keywords with numbers at all limits, are printed as
//! words that make them.

use simnel_core::qdisc::{self, Config, Device};
use simnel_core::random::Random;

const CASES: u32 = 150_000;
/// Rates beyond it are printed wrapped, as by `tc`, or are more than a double holds.
const LARGEST: u64 = 1 << 50;

const NUMBERS: [&str; 20] = [
    "0",
    "1",
    "2",
    "255",
    "256",
    "65535",
    "65536",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "0x10",
    "010",
    "1e3",
    "1.5",
    "0.1",
    "+5",
];

fn pick<'a, T: ?Sized>(random: &mut Random, of: &[&'a T]) -> &'a T {
    of[random.below(of.len() as u32) as usize]
}

fn number(random: &mut Random) -> String {
    match random.below(6) {
        0 => pick(random, &NUMBERS).into(),
        1 => (1u64 << random.below(40)).to_string(),
        2 => format!("{}.{}", random.below(1000), random.below(1000)),
        3 => (u64::from(random.below(u32::MAX)) * u64::from(1 + random.below(1000))).to_string(),
        4 => random.below(100_000).to_string(),
        _ => random.below(300).to_string(),
    }
}

fn value(random: &mut Random, argument: &str) -> String {
    let units: &[&str] = match argument {
        "RATE" => &["", "bit", "kbit", "mbit", "gbit", "tbit", "bps", "kbps", "mibit"],
        "TIME" | "JITTER" | "MS" | "TIME|Np" => &["", "us", "ms", "s", "ns", "secs", "p"],
        "SIZE" | "N|SIZE" | "Np|SIZE" | "BYTES" => &["", "b", "k", "kb", "mb", "kbit", "p", "/8"],
        "PERCENT" => &["", "%"],
        "SECONDS" => &["", "sec"],
        "N" => &["", "p", "pps"],
        _ => &[""],
    };
    match argument {
        "P" | "HZ" => format!("{}.{:0>8}", random.below(2), random.below(1_000_000)),
        "VALUE/MASK" => format!("{}/{}", number(random), number(random)),
        "MAJOR:MINOR" | "ID" => format!("{}:{:x}", random.below(2), random.below(4)),
        "MINOR" => random.below(4).to_string(),
        words if words.contains('|') && words.starts_with(char::is_lowercase) => {
            pick(random, &words.split('|').collect::<Vec<_>>()).into()
        }
        _ => number(random) + pick(random, units),
    }
}

/// A discipline's words, of those that have others below with theirs.
fn words(random: &mut Random, depth: u32) -> String {
    let all: Vec<&str> = qdisc::disciplines().iter().map(|known| known.name).collect();
    let name = pick(random, &all);
    let mut words = String::from(match name {
        "delay" => "delay 20ms",
        "red" => pick(random, &["red limit 400kb avpkt 1000", "red ns"]),
        "tbf" => "tbf rate 3mbit burst 9kb",
        "htb" => pick(random, &["htb", "htb rate 3mbit", "htb default 1 class 1:1 rate 3mbit"]),
        "drr" => pick(random, &["drr", "drr class 1:1"]),
        name => name,
    });
    let keywords: Vec<_> = qdisc::keywords(name).collect();
    for _ in 0..random.below(6) {
        let keyword = pick(random, &keywords);
        words = words + " " + keyword.word;
        for argument in keyword.argument.split_whitespace() {
            if !argument.starts_with('[') || random.below(2) > 0 {
                words = words + " " + &value(random, argument.trim_matches(['[', ']']));
            }
        }
    }
    if depth < 3 && matches!(name, "htb" | "tbf" | "drr") && random.below(4) > 0 {
        words = words + " " + &self::words(random, depth + 1);
    }
    words
}

/// True if a rate is larger than what is printed exactly.
fn is_beyond(config: &Config) -> bool {
    let shown = format!("{config:?}");
    let rates = shown.split("Rate(").skip(1).filter_map(|rest| rest.split(')').next());
    rates.into_iter().any(|rate| rate.parse::<u64>().is_ok_and(|rate| rate > LARGEST))
}

#[test]
fn what_is_printed_is_read_back() {
    let mut random = Random::derive(16, 2);
    let mut read = 0;
    for _ in 0..CASES {
        let words = words(&mut random, 0);
        let Ok(config) = qdisc::parse(&words) else { continue };
        if is_beyond(&config) {
            continue;
        }
        read += 1;
        for config in [config.clone(), config.resolved(&Device::default())] {
            let printed = config.to_string();
            assert_eq!(qdisc::parse(&printed), Ok(config), "`{words}` is printed as `{printed}`");
        }
    }
    assert!(read > CASES / 4, "{read} settings");
}
