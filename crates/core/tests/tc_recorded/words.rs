//! Words against the messages that the real `tc` makes of them: drawn and recorded by
//! conformance/fuzz-tc.py, which says how they are written down.
//!
//! What `tc` refuses is refused here, too, and named. For what it takes, reading its message must
//! give the settings that the words give. Disciplines without netlink attributes of ours are
//! compared number by number.

use std::collections::BTreeMap;

use simnel_core::framing::{Cells, Framing};
use simnel_core::netlink::Attributes;
use simnel_core::qdisc::{self, cake, Config, Device};

use super::netlink::{bytes, comparable, options};

const RECORDED: &str = include_str!("../data/tc/words.txt");

/// Linux's only reason to refuse a message of `tc` that we take: 64 bits have room enough.
const WE_ALSO_TAKE: &str = "thresholds below 2^31 when weighed";

/// The numbers in a message, or in settings.
type Numbers = BTreeMap<&'static str, u64>;

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap()).into()
}

fn attribute(options: &[u8], number: u16) -> Option<&[u8]> {
    Attributes::new(options)
        .filter(|found| found.number == number)
        .last()
        .map(|found| found.payload)
}

/// `struct tc_ratespec`: the rate and its framing. `wide` is the rate in 64 bits, if it needs them.
fn ratespec(spec: &[u8], wide: Option<&[u8]>) -> (u64, [(&'static str, u64); 3]) {
    let short = |at| u64::from(u16::from_ne_bytes(spec[at..at + 2].try_into().unwrap()));
    let rate = wide.map_or(u32_at(spec, 8), |rate| u64::from_ne_bytes(rate.try_into().unwrap()));
    let is_atm = u64::from(spec[1] & 0xf == 2);
    (rate, [("overhead", short(2)), ("mpu", short(6)), ("atm", is_atm)])
}

fn framing(framing: &Framing) -> [(&'static str, u64); 3] {
    let is_atm = u64::from(framing.cells == Cells::Atm);
    [("overhead", framing.overhead as u64), ("mpu", framing.mpu.into()), ("atm", is_atm)]
}

/// A bucket of htb in `tc`'s ticks of 64 ns, of which there are 15.625 in a microsecond.
fn ticks(rate: u64, bytes: u32) -> u64 {
    let micros = (1e6 * (f64::from(bytes) / rate as f64)) as u64 as u32;
    u64::from((f64::from(micros) * 15.625) as u64 as u32)
}

/// Numbers of `tc`'s message for the discipline `name` of which `is_class` is the one class.
fn told(name: &str, is_class: bool, options: Option<&[u8]>) -> Numbers {
    let mut numbers = Numbers::new();
    match (name, options) {
        ("tbf", Some(options)) => {
            let parms = attribute(options, 1).unwrap();
            let (rate, line) = ratespec(parms, attribute(options, 4));
            let (peak, _) = ratespec(&parms[12..], attribute(options, 5));
            let size = |number| attribute(options, number).map_or(0, |bytes| u32_at(bytes, 0));
            numbers.extend([("rate", rate), ("peak", peak), ("limit", u32_at(parms, 24))]);
            numbers.extend([("burst", size(6)), ("mtu", size(7))]);
            numbers.extend(line);
        }
        ("htb", Some(options)) if is_class => {
            let parms = attribute(options, 1).unwrap();
            let (rate, line) = ratespec(parms, attribute(options, 6));
            let (ceil, _) = ratespec(&parms[12..], attribute(options, 7));
            numbers.extend([("rate", rate), ("ceil", ceil)]);
            numbers.extend([("burst", u32_at(parms, 24)), ("cburst", u32_at(parms, 28))]);
            numbers.extend([("quantum", u32_at(parms, 32)), ("prio", u32_at(parms, 40).min(7))]);
            numbers.extend(line);
        }
        ("htb", Some(options)) => {
            let glob = attribute(options, 2).unwrap();
            numbers.extend([("r2q", u32_at(glob, 4).max(1)), ("default", u32_at(glob, 8))]);
            numbers.extend(attribute(options, 5).map(|bytes| ("direct_qlen", u32_at(bytes, 0))));
        }
        ("drr", Some(options)) => {
            numbers.extend(attribute(options, 1).map(|bytes| ("quantum", u32_at(bytes, 0))));
        }
        (_, Some(limit)) => numbers.extend([("limit", u32_at(limit, 0))]),
        (_, None) => {}
    }
    numbers
}

/// The same numbers of settings.
fn meant(config: &Config) -> Numbers {
    let mut numbers = Numbers::new();
    match config {
        Config::Tbf(tbf) => {
            let (peak, mtu) = tbf.peak.map_or((0, 0), |(rate, mtu)| (rate.0, mtu));
            numbers.extend([("rate", tbf.rate.0), ("peak", peak), ("limit", tbf.limit.into())]);
            numbers.extend([("burst", tbf.burst.into()), ("mtu", mtu.into())]);
            numbers.extend(framing(&tbf.framing));
        }
        Config::Htb(htb) => match &htb.classes[..] {
            [class] => {
                numbers.extend([("rate", class.rate.0), ("ceil", class.ceil.0)]);
                numbers.extend([("burst", ticks(class.rate.0, class.burst))]);
                numbers.extend([("cburst", ticks(class.ceil.0, class.cburst))]);
                let quantum = class.quantum.unwrap_or(0).into();
                numbers.extend([("quantum", quantum), ("prio", class.prio.into())]);
                numbers.extend(framing(&class.framing));
            }
            _ => {
                numbers.extend([("r2q", htb.r2q.into()), ("default", htb.default.into())]);
                numbers.extend(htb.direct_qlen.map(|limit| ("direct_qlen", limit.into())));
            }
        },
        Config::Drr(drr) => {
            let quantum = drr.classes[0].quantum;
            numbers.extend(quantum.map(|bytes| ("quantum", bytes.into())));
        }
        Config::Fifo(fifo) => numbers.extend(fifo.limit.map(|limit| ("limit", limit.into()))),
        other => panic!("{other}"),
    }
    numbers
}

#[test]
fn words_mean_what_tc_tells_the_kernel() {
    let drawn = std::env::var("TC_WORDS").map(|file| std::fs::read_to_string(file).expect("words"));
    let text = drawn.as_deref().unwrap_or(RECORDED);
    let device = Device::default();
    let (mut taken, mut refused, mut differ) = (0, 0, Vec::new());
    for block in text.split("\n$ ").skip(1) {
        let (words, answer) = block.split_once('\n').expect("an answer");
        let name = words.split(' ').next().unwrap();
        let is_class = words.split(' ').nth(1) == Some("class");
        let ours = qdisc::parse(words);
        if answer.trim_end_matches('\n') == "!" {
            refused += 1;
            match ours {
                Ok(ours) => differ.push(format!("{words}: refused by tc, here {ours}")),
                Err(error) => assert!(!error.word.is_empty(), "{words}: {error}"),
            }
            continue;
        }
        let message = answer.trim_end_matches('\n').strip_prefix("> ").map(bytes);
        let equal = if !is_class && qdisc::netlink::kinds().any(|kind| kind == name) {
            let options = message.as_deref().map(|message| options(name, message));
            match (qdisc::netlink::parse(name, options, None, &device), &ours) {
                (Ok(told), Ok(ours)) => {
                    comparable(&told) == comparable(&ours.clone().resolved(&device))
                }
                (Err(error), Ok(_)) => error.text().as_str().contains(WE_ALSO_TAKE),
                (told, Err(_)) => told.is_err(),
            }
        } else {
            let told = told(name, is_class, message.as_deref());
            // Which Linux refuses, and not `tc`.
            let nothing = name == "drr" && told.get("quantum") == Some(&0);
            ours.as_ref().map_or(nothing, |ours| meant(ours) == told)
        };
        taken += 1;
        if !equal {
            let ours = ours.map_or_else(|error| error.to_string(), |ours| ours.to_string());
            differ.push(format!("{words}: {answer}    here {ours}"));
        }
    }
    println!("{taken} taken by tc, {refused} refused, {} differ", differ.len());
    assert!(differ.is_empty(), "\n{}", differ.join("\n"));
    assert!(taken > 250 && refused > 200, "{taken} taken, {refused} refused");
}

/// Disciplines of which Linux keeps what a change does not say, as words do that amend.
const KEEP: [&str; 5] = ["cake", "codel", "fq_codel", "fq_pie", "pie"];

/// True if a value may be a zero, which is read otherwise (docs/DISCIPLINES.md, "What is read and
/// what is not").
fn may_say_nothing(words: &str) -> bool {
    words.split(' ').any(|word| {
        let is_digit = |digit: char| digit.is_ascii_digit() || "+-.eE".contains(digit);
        let end = word.find(|digit| !is_digit(digit)).unwrap_or(word.len());
        word[..end].parse::<f64>().is_ok_and(|value| value < 1.0)
    })
}

/// The same settings, without the request to forget sizes, which words do not make.
fn settings(config: &Config, device: &Device) -> Config {
    match config.clone().resolved(device) {
        Config::Cake(cake) => Config::Cake(cake::Params { forget_sizes: false, ..cake }),
        other => other,
    }
}

#[test]
fn words_amend_what_runs_as_tc_changes_it() {
    let device = Device::default();
    let (mut compared, mut differ) = (0, Vec::new());
    for name in KEEP {
        let blocks = RECORDED.split("\n$ ").filter_map(|block| block.split_once('\n'));
        let of_name = |words: &str| words.split(' ').next() == Some(name);
        let blocks = blocks.filter(|(words, answer)| of_name(words) && answer.starts_with('>'));
        let blocks: Vec<_> = blocks.collect();
        for (before, _) in &blocks {
            let Ok(old) = qdisc::parse(before) else { continue };
            for (words, answer) in blocks.iter().filter(|(words, _)| !may_say_nothing(words)) {
                let message = answer.trim_end_matches('\n').strip_prefix("> ").map(bytes);
                let options = message.as_deref().map(|message| options(name, message));
                let running = old.clone().resolved(&device);
                let told = match qdisc::netlink::parse(name, options, Some(&running), &device) {
                    Ok(told) => settings(&told, &device),
                    // The number of queues: words may change it.
                    Err(error) if error.text().as_str().contains("cannot be changed") => continue,
                    Err(error) => panic!("{words}: {error}"),
                };
                compared += 1;
                match qdisc::amend(&old.to_string(), &words[name.len()..]) {
                    Ok(ours) if settings(&ours, &device) == told => {}
                    Ok(ours) => differ.push(format!("{old}, {words}: {told}, here {ours}")),
                    Err(error) => differ.push(format!("{old}, {words}: {told}, here {error}")),
                }
            }
        }
    }
    assert!(differ.is_empty(), "{} differ\n{}", differ.len(), differ.join("\n"));
    assert!(compared > 1500, "{compared}");
}
