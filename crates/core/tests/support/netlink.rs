//! Netlink options of any bytes: each is an error that names an attribute, or settings that a
//! discipline can live with.

use simnel_core::netlink::{Options, Writer};
use simnel_core::qdisc::{self, build, netlink, red, sfb, sfq, Config, Device};

use super::contract::exercise;
use super::input::Input;

/// Requests of the real `tc`: lines that start with `>` are options.
const RECORDED: &str = include_str!("../data/tc/netlink.txt");
/// Longest options that are made.
const MOST_BYTES: usize = 1024;
/// Packets for which a discipline is built: what asks for more is left alone.
const MOST_PACKETS: u32 = 20_000;
/// Bytes likewise.
const MOST_MEMORY: u32 = 8 << 20;
/// More than any options or statistics need.
const ROOM: usize = 2048;

/// The bytes for [`check`] that stand for the options `payload` of the `kind`-th discipline.
pub fn seed(kind: u8, payload: &[u8], operations: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u16).to_le_bytes();
    [&[kind, 0x10][..], &length, payload, operations].concat()
}

/// Reads options that `bytes` stand for: a discipline, a choice, options, and operations for it.
pub fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kinds: Vec<&str> = netlink::kinds().collect();
    let name = kinds[usize::from(input.u8()) % kinds.len()];
    let choice = input.u8();
    let payload = match choice & 3 {
        0 => {
            let length = input.u16();
            input.bytes(length.into()).to_vec()
        }
        _ => attributes(name, &mut input),
    };
    // Mostly as each of them needs it.
    let is_strict = ["fq_pie", "dualpi2"].contains(&name);
    let is_nested = is_strict != (choice & 0x70 == 0);
    let device = Device::default();
    let old = qdisc::parse(&words(name)).expect("words").resolved(&device);
    let old = (choice & 4 != 0).then_some(old);
    let options = (choice & 0x88 != 0x88).then_some(Options { payload: &payload, is_nested });
    match netlink::parse(name, options, old.as_ref(), &device) {
        Ok(config) => {
            round(name, &config, is_strict);
            if is_small(&config) {
                if let Ok(qdisc) = build(&config, &device) {
                    let mut room = [0; ROOM];
                    netlink::write_statistics(&qdisc.snapshot(), &mut room).expect("room");
                    exercise(qdisc, input.bytes(usize::MAX));
                }
            }
        }
        Err(error) => {
            let text = error.text();
            let (attribute, problem) = text.as_str().split_once(": ").expect("two parts");
            assert!(attribute.starts_with("TCA_") && problem.len() > 5, "{error}");
            assert_eq!(text.as_str(), error.to_string(), "cut off");
            assert!(error.offset <= payload.len(), "{error} at {}", error.offset);
        }
    }
}

/// The least words for a discipline.
fn words(name: &str) -> String {
    let rest = if name == "red" { " limit 60000 avpkt 1000" } else { "" };
    format!("{name}{rest}")
}

/// Attributes of numbers, lengths and values as they may be, and then mostly a limit.
fn attributes(name: &str, input: &mut Input<'_>) -> Vec<u8> {
    let mut room = [0; MOST_BYTES];
    let mut out = Writer::new(&mut room);
    let structure = match name {
        "red" | "sfb" => Some(1),
        _ => None,
    };
    if name == "sfq" {
        (0..18).for_each(|_| out.words(&[input.magnitude() as u32]));
    }
    for _ in 0..input.u8() % 12 {
        let (number, kind) = (u16::from(input.u8() % 20), input.u8());
        match kind {
            0..=15 => out.attribute(number, input.bytes(usize::from(kind))),
            16..=23 => out.nest(number | 1 << 15, |out| out.u32(1, input.u32())),
            24..=63 => out.attribute(number, &[input.u8()]),
            64..=95 => out.u64(number, input.magnitude()),
            96..=127 if name == "red" => out.attribute(2, &[kind & 31; 256]),
            _ if Some(number % 4) == structure => {
                out.nest(number % 4, |out| {
                    (0..9).for_each(|_| out.words(&[input.magnitude() as u32]));
                });
            }
            _ => out.u32(number, input.magnitude() as u32),
        }
    }
    let limit = match name {
        "cake" => 10,
        "fq_pie" | "dualpi2" => 1,
        _ => 2,
    };
    if input.u8() & 3 != 0 && structure.is_none() && name != "sfq" {
        out.u32(limit, 1000 + u32::from(input.u16()) * 16 % MOST_PACKETS);
    }
    let cut = usize::from(input.u8() < 32) * usize::from(input.u8() % 5);
    out.finish().map_or(Vec::new(), |len| room[..len.saturating_sub(cut)].to_vec())
}

/// Dumps are read back, where Linux dumps all that must be given.
fn round(name: &str, config: &Config, is_nested: bool) {
    let mut room = [0; ROOM];
    let len = netlink::write_options(config, None, &mut room).expect("room");
    let options = Options { payload: &room[..len], is_nested };
    let again = netlink::parse(name, Some(options), None, &Device::default());
    match (name, again) {
        ("red", Err(error)) => assert_eq!(error.attribute, "TCA_RED_STAB"),
        (_, Ok(again)) => assert_eq!(again.name(), config.name()),
        (_, Err(error)) => panic!("{config:?} is dumped as what is refused: {error}"),
    }
}

fn is_small(config: &Config) -> bool {
    match config {
        Config::Cake(params) => (1..=MOST_MEMORY).contains(&params.memlimit),
        Config::Codel(params) => params.limit <= MOST_PACKETS,
        Config::FqCodel(params) => params.queues.limit <= MOST_PACKETS,
        Config::Pie(params) => params.limit <= MOST_PACKETS,
        Config::FqPie(params) => params.queues.limit <= MOST_PACKETS,
        Config::Red(red::Params { limit, .. }) => *limit <= MOST_MEMORY,
        Config::Sfq(params) => sfq::Params::effective(params).limit <= MOST_PACKETS,
        Config::Sfb(sfb::Params { limit, .. }) => limit.is_some_and(|limit| limit <= MOST_PACKETS),
        Config::Dualpi2(params) => params.limit <= MOST_PACKETS,
        _ => false,
    }
}

/// Names of disciplines and the options that the real `tc` sent for them.
pub fn requests() -> Vec<(&'static str, Vec<u8>)> {
    let blocks = RECORDED.split("\n$ ").skip(1);
    let read = |block: &'static str| {
        let name = block.split([' ', '\n']).next()?;
        let (len, hex) = block.split_once("> ")?.1.lines().next()?.split_once(' ')?;
        let digit = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
        let mut bytes: Vec<u8> = (0..hex.len() / 2).filter_map(|n| digit(2 * n)).collect();
        bytes.resize(len.parse().ok()?, 0);
        Some((name, bytes))
    };
    blocks.filter_map(read).collect()
}
