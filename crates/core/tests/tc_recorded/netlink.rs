//! Our netlink attributes against those of the real `tc` and of Linux's own disciplines: recordings
//! made by scripts/record-netlink.sh, which says how they are written down.

use serde_json::Value;
use simnel_core::aqm::red::Law;
use simnel_core::netlink::{Attributes, Options, Writer};
use simnel_core::qdisc::{self, red, sfq, Config, Device, Snapshot};
use simnel_core::rate::Rate;

use super::{snapshot, with_jiffies};

const RECORDED: &str = include_str!("../data/tc/netlink.txt");

/// Disciplines that the recording kernel did not have: what it refused says nothing.
const NOT_THERE: &[&str] = &["fq_pie"];

/// Messages that were recorded for some words.
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
pub(super) fn bytes(line: &str) -> Vec<u8> {
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
pub(super) fn options<'a>(name: &str, payload: &'a [u8]) -> Options<'a> {
    Options { payload, is_nested: ["fq_pie", "dualpi2"].contains(&name) }
}

fn parse(block: &Block) -> Result<Config, simnel_core::netlink::Error> {
    let options = block.request.as_ref().map(|bytes| options(block.name, bytes));
    qdisc::netlink::parse(block.name, options, None, &Device::default())
}

fn written(config: &Config, snapshot: Option<&Snapshot>) -> Vec<u8> {
    let mut room = [0; 512];
    let len = qdisc::netlink::write_options(config, snapshot, &mut room).unwrap();
    room[..len].to_vec()
}

/// Attributes by number, so that a difference says where it is.
fn attributes(payload: &[u8]) -> Vec<(u16, Vec<u8>)> {
    Attributes::new(payload).map(|found| (found.number, found.payload.to_vec())).collect()
}

/// Settings, with what packets, bursts and a line come to in their place: `red`'s law, or of `sfq`,
/// whose queues are never idle, its weight.
pub(super) fn comparable(config: &Config) -> (Config, Option<Law>, u32) {
    let mut config = config.clone();
    let (red, is_whole) = match &mut config {
        Config::Red(red::Params { kind: red::Kind::Linux(red), .. }) => (red, true),
        Config::Sfq(sfq::Params { red: Some(early), .. }) => (&mut early.red, false),
        _ => return (config, None, 0),
    };
    let law = Law::new(red).unwrap();
    (red.avpkt, red.burst, red.bandwidth) = (0, 0, Rate(0));
    let wlog = law.wlog();
    (config, Some(law).filter(|_| is_whole), wlog)
}

/// Writes `payload` without the empty attributes (number 1) by which the recording kernel aligned
/// numbers of 64 bits. Other kernels need none of these. Those within tiers (number 10) and within
/// each of them are left out, too.
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
        let said = said.resolved(&Device::default());
        assert_eq!(comparable(&parsed), comparable(&said), "{}", block.words);
        compared[0] += 1;
    }
    assert!(compared[0] > 110 && compared[1] > 1, "{compared:?}");
}

#[test]
fn settings_are_dumped_as_linux_dumps_them() {
    let mut compared = 0;
    for block in blocks() {
        let Some(recorded) = &block.options else { continue };
        let counted = block.shown.as_ref().map(snapshot);
        let ours = written(&with_jiffies(parse(&block).expect(block.words)), counted.as_ref());
        assert_eq!(attributes(&ours), attributes(recorded), "{}", block.words);
        assert_eq!(ours, *recorded, "{}", block.words);
        compared += 1;
    }
    assert!(compared > 90, "{compared}");
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
    assert!(compared > 8, "{compared}");
}

/// A number in the order of bytes of this machine, as an attribute of `number`.
fn attribute(number: u16, value: &[u8]) -> Vec<u8> {
    let mut room = [0; 512];
    let mut out = Writer::new(&mut room);
    out.attribute(number, value);
    let len = out.finish().unwrap();
    room[..len].to_vec()
}

fn number(number: u16, value: u32) -> Vec<u8> {
    attribute(number, &value.to_ne_bytes())
}

/// The error that `payload` gives for `name`: its text, its place and Linux's number of it.
fn refused(name: &str, payload: &[u8], old: Option<&Config>) -> (String, usize, u8) {
    let device = Device::default();
    let error = qdisc::netlink::parse(name, Some(options(name, payload)), old, &device)
        .expect_err("an error");
    (error.text().as_str().into(), error.offset, error.errno() as u8)
}

const EINVAL: u8 = 22;
const ERANGE: u8 = 34;

#[test]
fn what_linux_refuses_is_refused_and_named() {
    let behind = |first: Vec<u8>, then: Vec<u8>| [first, then].concat();
    let refuses = |name, payload: &[u8], text: &str, offset, errno| {
        assert_eq!(refused(name, payload, None), (text.to_string(), offset, errno), "{name}");
    };
    let short = behind(number(9, 1), attribute(7, &[1, 2]));
    refuses("cake", &short, "TCA_CAKE_RTT: 4 bytes expected, 2 given", 8, ERANGE);
    let far = number(6, -65i32 as u32);
    refuses("cake", &far, "TCA_CAKE_OVERHEAD: -64 to 256 expected", 0, EINVAL);
    refuses("cake", &number(14, 257), "TCA_CAKE_MPU: 0 to 256 expected", 0, EINVAL);
    let none = "TCA_FQ_CODEL_FLOWS: 1 to 65536 expected";
    refuses("fq_codel", &number(5, 0), none, 0, EINVAL);
    refuses("fq_pie", &number(7, 0), "TCA_FQ_PIE_QUANTUM: 1 to 1048576 expected", 0, ERANGE);
    let long = attribute(1, &[0; 8]);
    refuses("fq_pie", &long, "TCA_FQ_PIE_LIMIT: 4 bytes expected, 8 given", 0, EINVAL);
    let unknown = behind(number(1, 9), number(13, 1));
    refuses("fq_pie", &unknown, "TCA_OPTIONS: attribute 13 is unknown", 8, EINVAL);
    let left = behind(number(1, 9), vec![1, 2, 3]);
    refuses("fq_pie", &left, "TCA_OPTIONS: 3 bytes follow the last attribute", 8, EINVAL);
    let nested = number(1 | 1 << 15, 9);
    refuses(
        "fq_pie",
        &nested,
        "TCA_FQ_PIE_LIMIT: the flag NLA_F_NESTED is not expected",
        0,
        EINVAL,
    );
    refuses("sfb", &[], "TCA_SFB_PARMS: must be given", 0, EINVAL);
    let part = attribute(1, &[0; 35]);
    refuses("sfb", &part, "TCA_SFB_PARMS: 36 bytes expected, 35 given", 0, EINVAL);
    refuses("dualpi2", &number(1, 0), "TCA_DUALPI2_LIMIT: 1 to 4294967295 expected", 0, ERANGE);
    let both = behind(number(7, 1), number(8, 1));
    let said = "TCA_DUALPI2_STEP_THRESH_US: either that or packets expected";
    refuses("dualpi2", &both, said, 8, EINVAL);
    refuses("dualpi2", &attribute(14, &[2]), "TCA_DUALPI2_ECN_MASK: 1 or 3 expected", 0, EINVAL);
    let table = attribute(2, &[0; 256]);
    refuses("red", &table, "TCA_RED_PARMS: must be given", 0, EINVAL);
    let flat = behind(attribute(1, &[0; 16]), table);
    refuses("red", &flat, "TCA_RED_PARMS: max of at least min expected", 0, EINVAL);
    // Newer than Linux's strict rules, unlike what else red has.
    let short = "TCA_RED_EARLY_DROP_BLOCK: 4 bytes expected, 1 given";
    refuses("red", &attribute(5, &[1]), short, 0, EINVAL);
    let long = "TCA_RED_MARK_BLOCK: 4 bytes expected, 8 given";
    refuses("red", &attribute(6, &[0; 8]), long, 0, EINVAL);
    let flags = |bytes| behind(attribute(4, bytes), attribute(3, &[1]));
    for (bytes, text, errno) in [
        (&[0; 7][..], "8 bytes expected, 7 given", ERANGE),
        (&[0; 12], "8 bytes expected, 12 given", ERANGE),
        (&[1, 0, 0, 0, 0, 0, 0, 0], "no value that is not selected expected", EINVAL),
        (&[0, 0, 0, 0, 1, 1, 1, 1], "known flags expected", EINVAL),
    ] {
        refuses("red", &flags(bytes), &format!("TCA_RED_FLAGS: {text}"), 0, errno);
    }
    let nested = attribute(4 | 1 << 15, &[0; 12]);
    refuses("red", &nested, "TCA_RED_FLAGS: the flag NLA_F_NESTED is not expected", 0, EINVAL);
    let part = "TCA_OPTIONS: 20 bytes expected, 19 given";
    refuses("sfq", &[0; 19], part, 0, EINVAL);
    let odd = [[0; 4], [0; 4], [0; 4], 3u32.to_ne_bytes(), [0; 4]].concat();
    let said = "TCA_OPTIONS: divisor: a power of two to 65536 expected";
    refuses("sfq", &odd, said, 0, EINVAL);
    let mut heavy = [0; 72];
    heavy[40] = 64;
    let said = "TCA_OPTIONS: thresholds below 2^31 when weighed expected";
    refuses("sfq", &heavy, said, 0, EINVAL);
    refuses("nonsense", &[], "TCA_KIND: not of this discipline", 0, 95);

    let flat = Options { payload: &number(1, 9), is_nested: false };
    let error = qdisc::netlink::parse("fq_pie", Some(flat), None, &Device::default()).unwrap_err();
    assert_eq!(error.text().as_str(), "TCA_OPTIONS: the flag NLA_F_NESTED is missing");
}

#[test]
fn what_linux_ignores_is_ignored() {
    let device = Device::default();
    let parse = |payload: &[u8]| {
        let options = Options { payload, is_nested: false };
        qdisc::netlink::parse("cake", Some(options), None, &device).unwrap()
    };
    // Unknown ones, bytes too many, bytes behind the last, and all but the last of a number.
    let odd = [
        number(7, 20_000),
        number(99, 1),
        attribute(7, &[0x30, 0x75, 0, 0, 1, 2].map(|byte: u8| byte)),
        vec![9, 9, 9],
    ];
    if cfg!(target_endian = "little") {
        assert_eq!(parse(&odd.concat()), parse(&number(7, 30_000)));
    }
    assert_eq!(parse(&[]), qdisc::parse("cake").unwrap());
    // Linux's pie keeps eight bits of a flag, others ask whether there is any.
    for (value, low) in [(0x8000_0000, false), (256, false), (255, true), (0x8000_0080, true)] {
        for (name, flag, word, is_set) in [
            ("pie", 6, "ecn", low),
            ("pie", 7, "bytemode", low),
            ("pie", 8, "dq_rate_estimator", low),
            ("fq_pie", 10, "ecn", low),
            ("fq_pie", 11, "bytemode", low),
            ("fq_pie", 12, "dq_rate_estimator", low),
            ("codel", 4, "ecn", true),
        ] {
            let payload = number(flag, value);
            let options = Some(options(name, &payload));
            let said = qdisc::netlink::parse(name, options, None, &device).unwrap().to_string();
            assert_eq!(said.split_whitespace().any(|said| said == word), is_set, "{said}: {value}");
        }
    }
}

#[test]
fn sizes_are_forgotten_once_when_a_change_names_overhead_or_raw() {
    let device = Device::default();
    let cake = |config| match config {
        Config::Cake(params) => params,
        _ => panic!("no cake"),
    };
    let words = |text| cake(qdisc::parse(text).unwrap().resolved(&device));
    let read = |payload: &[u8], old: Option<&Config>| {
        cake(qdisc::netlink::parse("cake", Some(options("cake", payload)), old, &device).unwrap())
    };
    let old = words("cake bandwidth 9mbit overhead 18");
    for (payload, after) in [
        (number(12, 0), "cake bandwidth 9mbit raw overhead 18"),
        (number(6, 18), "cake bandwidth 9mbit overhead 18"),
    ] {
        let new = read(&payload, Some(&Config::Cake(old)));
        assert_eq!(new, qdisc::cake::Params { forget_sizes: true, ..words(after) });
        assert!(!read(&number(7, 30_000), Some(&Config::Cake(new))).forget_sizes);
        assert!(!read(&payload, None).forget_sizes);
    }
}

#[test]
fn changes_leave_what_they_do_not_name() {
    let device = Device::default();
    let change = |name, old: &Config, payload: &[u8]| {
        qdisc::netlink::parse(name, Some(options(name, payload)), Some(old), &device)
    };
    for (before, payload, after) in [
        ("cake bandwidth 9mbit nat queues 64 savings 3000", number(7, 30_000), ""),
        ("codel limit 77 ecn", number(4, 0), "codel limit 77"),
        (
            "fq_codel flows 8 ecn savings 9000",
            number(2, 5),
            "fq_codel flows 8 limit 5 savings 9000",
        ),
        ("pie limit 9 ecn freebsd", number(4, 7), "pie limit 9 ecn freebsd alpha 7"),
        ("fq_pie flows 8 ecn", number(6, 7), "fq_pie flows 8 ecn beta 7"),
        ("dualpi2 limit 50", number(1, 70), "dualpi2 limit 70"),
        ("dualpi2 any_ect", number(7, 3), "dualpi2 any_ect step_thresh 3p"),
    ] {
        let old = qdisc::parse(before).unwrap().resolved(&device);
        let new = change(old.name(), &old, &payload).unwrap_or_else(|e| panic!("{before}: {e}"));
        if after.is_empty() {
            // The target goes with the words' rtt, but not with the attribute.
            let (Config::Cake(old), Config::Cake(new)) = (old, new) else { panic!("no cake") };
            assert_eq!(new.rtt.as_micros(), 30_000);
            assert_eq!(new, qdisc::cake::Params { rtt: new.rtt, ..old });
        } else {
            assert_eq!(new, qdisc::parse(after).unwrap().resolved(&device), "{before}");
        }
    }
    for (name, flows) in [("fq_codel", number(5, 64)), ("fq_pie", number(2, 64))] {
        let old = qdisc::parse(name).unwrap();
        let (text, _, errno) = refused(name, &flows, Some(&old));
        assert!(text.contains("FLOWS: cannot be changed") && errno == EINVAL, "{text}");
    }
    let old = qdisc::parse("dualpi2").unwrap();
    assert_eq!(refused("dualpi2", &[], Some(&old)).0, "TCA_OPTIONS: must be given");
    assert_eq!(refused("cake", &[], Some(&old)).2, 95);
}

/// There is no recording of it: Linux 6.1 does not have it.
#[test]
fn dualpi2_speaks_as_linux_6_18() {
    let device = Device::default();
    let payload = [
        number(1, 500),
        number(2, 90_000),
        number(3, 20_000),
        number(4, 8_000),
        number(5, 100),
        number(6, 900),
        number(7, 4),
        number(9, 2),
        attribute(10, &[3]),
        attribute(11, &[0]),
        attribute(12, &[1]),
        attribute(13, &[25]),
        attribute(14, &[3]),
        attribute(15, &[0]),
    ]
    .concat();
    let words = "dualpi2 limit 500 memlimit 90000 target 20ms tupdate 8ms alpha 0.390625 \
                 beta 3.515625 step_thresh 4p min_qlen_step 2 coupling_factor 3 overflow \
                 drop_enqueue classic_protection 25 any_ect no_split_gso";
    let request = Some(options("dualpi2", &payload));
    let parsed = qdisc::netlink::parse("dualpi2", request, None, &device).unwrap();
    assert_eq!(parsed, qdisc::parse(words).unwrap());
    // Weights come back a unit smaller, as Linux keeps them.
    let mut expected = attributes(&payload);
    for (kept, number) in [(99u32, 5), (899, 6)] {
        expected[number - 1].1 = kept.to_ne_bytes().into();
    }
    assert_eq!(attributes(&written(&parsed, None)), expected);
}

/// A dump that is given back is the same again, but for units in which Linux keeps times.
#[test]
fn dumps_are_read_back() {
    let device = Device::default();
    for name in qdisc::netlink::kinds() {
        let config = qdisc::parse(&said(name)).unwrap().resolved(&device);
        let dump = written(&config, None);
        assert!(!dump.is_empty(), "{name}");
        if name == "red" {
            // Linux does not dump the table that must be given.
            assert_eq!(refused(name, &dump, None).0, "TCA_RED_STAB: must be given");
            continue;
        }
        let request = Some(options(name, &dump));
        let again = qdisc::netlink::parse(name, request, None, &device).unwrap();
        assert_eq!(again.name(), config.name());
        let twice = attributes(&written(&again, None));
        for ((number, value), (_, once)) in twice.into_iter().zip(attributes(&dump)) {
            let off = match (value.first_chunk(), once.first_chunk()) {
                (Some(a), Some(b)) => u32::from_ne_bytes(*a).abs_diff(u32::from_ne_bytes(*b)),
                _ => 0,
            };
            assert!(value == once || (value.len() == 4 && off <= 1), "{name} {number}");
        }
    }
}

/// The least that must be said to name a discipline.
fn said(name: &str) -> String {
    match name {
        "red" => "red limit 400000 avpkt 1000".into(),
        name => name.into(),
    }
}
