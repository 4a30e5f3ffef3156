//! Our netlink attributes against those of the real `tc` and of Linux's own disciplines: recordings
//! made by scripts/record-netlink.sh, which says how they are written down.

use serde_json::Value;
use simnel_core::netlink::{Attributes, Options, Writer};
use simnel_core::qdisc::{self, Config, Device};

use super::{snapshot, with_jiffies};

const RECORDED: &str = include_str!("../data/tc/netlink.txt");

/// Disciplines that the recording kernel did not have: what it refused says nothing.
const NOT_THERE: &[&str] = &["fq_pie"];

/// What was recorded for some words.
struct Block {
    words: &'static str,
    name: &'static str,
    /// Options that `tc` sent, if it did.
    request: Option<Vec<u8>>,
    is_refused: bool,
    options: Option<Vec<u8>>,
    statistics: Option<Vec<u8>>,
    shown: Option<Value>,
}

/// A length, and bytes in hexadecimal without the zeros at the end.
fn bytes(line: &str) -> Vec<u8> {
    let (len, hex) = line.split_once(' ').expect("a length");
    let digits = hex.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
    let mut bytes: Vec<u8> = digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    bytes.resize(len.parse().unwrap(), 0);
    bytes
}

fn blocks() -> Vec<Block> {
    let first = RECORDED.find("\n$ ").expect("a block") + 3;
    let read = |text: &'static str| {
        let (words, rest) = text.split_once('\n').unwrap();
        let line = |sign: &str| rest.lines().find_map(|line| line.strip_prefix(sign));
        let name = words.split(' ').next().unwrap();
        Block {
            words,
            name,
            request: line("> ").map(bytes),
            is_refused: rest.lines().any(|line| line == "!"),
            options: line("< ").map(bytes),
            statistics: line("= ").map(bytes),
            shown: rest
                .lines()
                .find(|line| line.starts_with('{'))
                .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{words}: {e}"))),
        }
    };
    let blocks = RECORDED[first..].split("\n$ ").map(read);
    blocks.filter(|block| qdisc::netlink::kinds().any(|kind| kind == block.name)).collect()
}

/// `tc` says that attributes are nested where Linux insists on it.
fn options<'a>(name: &str, payload: &'a [u8]) -> Options<'a> {
    Options { payload, is_nested: ["fq_pie", "dualpi2"].contains(&name) }
}

fn parse(block: &Block) -> Result<Config, simnel_core::netlink::Error> {
    let options = block.request.as_ref().map(|bytes| options(block.name, bytes));
    qdisc::netlink::parse(block.name, options, None, &Device::default())
}

fn written(config: &Config) -> Vec<u8> {
    let mut room = [0; 512];
    let len = qdisc::netlink::write_options(config, &mut room).unwrap();
    room[..len].to_vec()
}

/// Attributes by number, so that a difference says where it is.
fn attributes(payload: &[u8]) -> Vec<(u16, Vec<u8>)> {
    Attributes::new(payload).map(|found| (found.number, found.payload.to_vec())).collect()
}

/// Writes `payload` without the empty attributes (number 1) by which the recording kernel aligned
/// numbers of 64 bits, as others need not; also within tiers (number 10) and each of them.
fn unpadded(payload: &[u8], holds: fn(u16) -> bool, out: &mut Writer<'_>) {
    for found in Attributes::new(payload) {
        match (found.number, found.payload) {
            (1, []) => {}
            (10, tiers) if holds(10) => {
                out.nest(10, |out| unpadded(tiers, |number| number < 9, out))
            }
            (tier, values) if holds(tier) => out.nest(tier, |out| unpadded(values, |_| false, out)),
            (number, value) => out.attribute(number, value),
        }
    }
}

#[test]
fn what_tc_sends_means_what_its_words_mean() {
    let mut compared = [0; 2];
    for block in blocks() {
        let parsed = parse(&block);
        if block.is_refused && !NOT_THERE.contains(&block.name) {
            let error = parsed.expect_err(block.words);
            assert!(error.text().as_str().starts_with("TCA_"), "{}: {error}", block.words);
            compared[1] += 1;
            continue;
        }
        let parsed = parsed.unwrap_or_else(|error| panic!("{}: {error}", block.words));
        let said = qdisc::parse(block.words).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parsed, said.resolved(&Device::default()), "{}", block.words);
        compared[0] += 1;
    }
    assert!(compared[0] > 40 && compared[1] > 1, "{compared:?}");
}

#[test]
fn settings_are_dumped_as_linux_dumps_them() {
    let mut compared = 0;
    for block in blocks() {
        let Some(recorded) = &block.options else { continue };
        let ours = written(&with_jiffies(parse(&block).expect(block.words)));
        assert_eq!(attributes(&ours), attributes(recorded), "{}", block.words);
        assert_eq!(ours, *recorded, "{}", block.words);
        compared += 1;
    }
    assert!(compared > 40, "{compared}");
}

#[test]
fn statistics_are_dumped_as_linux_dumps_them() {
    let mut compared = 0;
    for block in blocks() {
        let (Some(mut recorded), Some(shown)) = (block.statistics, &block.shown) else { continue };
        if block.name == "cake" {
            let mut plain = [0; 2048];
            let mut out = Writer::new(&mut plain);
            unpadded(&recorded, |number| number == 10, &mut out);
            let len = out.finish().unwrap();
            recorded = plain[..len].to_vec();
        }
        let mut room = [0; 2048];
        let len = qdisc::netlink::write_statistics(&snapshot(shown), &mut room).unwrap();
        assert_eq!(attributes(&room[..len]), attributes(&recorded), "{}", block.words);
        assert_eq!(room[..len], recorded[..], "{}", block.words);
        compared += 1;
    }
    assert!(compared > 5, "{compared}");
}
