//! Edits of text files: a file that is right, with some of its words exchanged.
//!
//! A file of keys and values can rarely be read once it is changed byte by byte. One whose values
//! are exchanged mostly can.

use crate::seeds::SCENARIOS;
use crate::support::input::Input;

/// Values that stand at an edge, or are of another kind than is expected.
const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "2",
    "60000",
    "65001",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "0.0",
    "-0.5",
    "1e300",
    "1e-300",
    "nan",
    "inf",
    "-inf",
    "true",
    "false",
    "[]",
    "[0]",
    "[2, 1]",
    "[1, 10000]",
    "[1, 2, 3]",
    "{}",
    "\"\"",
    "\"0\"",
    "\"0s\"",
    "\"1ns\"",
    "\"1us\"",
    "\"1ms\"",
    "\"100ms\"",
    "\"1s\"",
    "\"1000s\"",
    "\"8640000s\"",
    "\"18446744073s\"",
    "\"18446744074s\"",
    "\"1e300s\"",
    "\"-1s\"",
    "\"0bit\"",
    "\"1bit\"",
    "\"8bit\"",
    "\"512bit\"",
    "\"1kbit\"",
    "\"1mbit\"",
    "\"100gbit\"",
    "\"1e300bit\"",
    "\"18446744073709551615bps\"",
    "\"unlimited\"",
    "\"0%\"",
    "\"100%\"",
    "\"every 1\"",
    "\"every 2\"",
    "\"nan%\"",
    "\"0kb\"",
    "\"4gb\"",
    "\"1b\"",
    "\"5/s\"",
    "\"nan/s\"",
    "\"up\"",
    "\"down\"",
    "\"both\"",
    "\"home\"",
    "\"internet\"",
    "\"htb\"",
    "\"wire\"",
    "\"bulk\"",
    "\"cbr\"",
    "\"voip\"",
    "\"ping\"",
    "\"web\"",
    "\"dash\"",
    "\"iot\"",
    "\"bittorrent\"",
    "\"bursts\"",
    "\"bbr\"",
    "\"ledbat\"",
    "\"dctcp\"",
    "\"fq_codel\"",
    "\"cake bandwidth {rate}\"",
    "\"pfifo limit 0\"",
    "\"mobile-up.trace\"",
    "\"overhead 34 atm\"",
    "{ up = \"1mbit\", down = \"0bit\" }",
    "{ up = \"mobile-up.trace\", down = \"mobile-down.trace\" }",
    "[\"1s\", \"0s\"]",
    "[\"EF\", \"BE\"]",
    "[\"1kbit\"]",
];

/// Keys that the shipped scenarios do not all have, at the place of another.
const KEYS: &[&str] = &[
    "duration",
    "warmup",
    "interval",
    "windows",
    "up",
    "down",
    "rtt",
    "framing",
    "shaper",
    "burst",
    "loss",
    "jitter",
    "trace",
    "at",
    "count",
    "rate",
    "home",
    "internet",
    "dscp",
    "start",
    "stagger",
    "stop",
    "cc",
    "ecn",
    "slow-start",
    "pacing",
    "nagle",
    "delayed-ack",
    "tso",
    "gro",
    "mtu",
    "window",
    "initial-window",
    "size",
    "pause",
    "protocol",
    "codec",
    "pages",
    "objects",
    "spread",
    "think",
    "reading",
    "chunk",
    "ladder",
    "buffer",
    "prefill",
    "safety",
    "direction",
];

/// One of the shipped scenarios with up to eight lines added, exchanged or left out.
pub fn scenario(bytes: &[u8]) -> String {
    let mut input = Input::new(bytes);
    let shipped = SCENARIOS[usize::from(input.u8()) % SCENARIOS.len()];
    let mut lines: Vec<String> = shipped.lines().map(String::from).collect();
    for _ in 0..input.u8() % 9 {
        if input.is_empty() || lines.is_empty() {
            break;
        }
        let (what, at) = (input.u8(), usize::from(input.u8()) % lines.len());
        let value = VALUES[usize::from(input.u8()) % VALUES.len()];
        match what % 8 {
            0 => {
                lines.remove(at);
            }
            1 => lines.insert(at, lines[usize::from(input.u8()) % lines.len()].clone()),
            2..=4 => {
                let key = KEYS[usize::from(input.u8()) % KEYS.len()];
                lines.insert(at + 1, format!("{key} = {value}"));
            }
            _ => {
                if let Some((key, _)) = lines[at].split_once('=') {
                    lines[at] = format!("{key}= {value}");
                }
            }
        }
    }
    lines.join("\n")
}
