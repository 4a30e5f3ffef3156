//! The inputs that fuzzing starts from.
//!
//! Made anew at each run, not stored, so that they follow the table of disciplines, the keywords
//! and the recordings of `tc`. Each target calls [`write()`] before libFuzzer reads its corpus;
//! what libFuzzer finds lies beside them.

use std::path::Path;

use simnel_core::tc;

use crate::support::table::DISCIPLINES;

/// What the real `tc` was asked and said: lines that start with `$` are words.
const RECORDED: &str = include_str!("../../crates/core/tests/data/tc/options.txt");
/// The configuration file that is shipped.
const SHIPPED: &str = include_str!("../../dist/simnel.toml");

/// Writes `inputs` into the directory that the environment variable `SEEDS` names, if it is set.
///
/// # Panics
/// If that cannot be done.
pub fn write(inputs: Vec<Vec<u8>>) {
    let Some(directory) = std::env::var_os("SEEDS") else { return };
    for (number, input) in inputs.iter().enumerate() {
        let path = Path::new(&directory).join(format!("seed-{number:04}"));
        std::fs::write(&path, input).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
}

/// Lives of a queue as `support::contract` decodes them, for every discipline of the table.
pub fn disciplines() -> Vec<Vec<u8>> {
    // 255 full packets of flow and hosts 0x05, of 0x1a, and 200 small ones of 0x2f with EF.
    let flood = [0, 0x80, 0x05, 0, 255, 0, 0x80, 0x1a, 2, 255, 0, 0x81, 60, 0x2f, 0xb8, 200];
    // Wait for the next event, then up to sixteen packets.
    let drain = [13, 7, 15].repeat(60);
    // Pure acknowledgements of two connections.
    let acks: Vec<u8> = (0..40).flat_map(|n| [5, 0x12 | n & 1, n]).collect();
    // 65,535 bytes in segments of 1448, of 48 and of one byte, behind 66 bytes of headers.
    let long: Vec<u8> = [[0xa8, 5], [48, 0], [1, 0]]
        .iter()
        .flat_map(|[low, high]| [0, 0x42, 0xff, 0xff, 0x05, 0, 66, *low, *high])
        .collect();
    // 250 ms, 16 s, 70 s.
    let pauses = [[11, 239, 20], [11, 239, 26], [11, 255, 28]].concat();
    let lives: [Vec<u8>; 6] = [
        [&flood[..], &drain].concat(),
        [&acks[..], &drain, &flood, &acks].concat(),
        [&long[..], &drain, &pauses, &long, &flood].concat(),
        // Empty, asleep, too early, full, reset, full.
        [&pauses[..], &[7, 3, 10, 128], &flood, &[15], &flood, &[10, 200], &drain].concat(),
        // Every other discipline's settings while packets wait.
        (0..DISCIPLINES.len() as u8)
            .flat_map(|line| [&flood[5..10], &[14, line << 2, 13, 7, 9]].concat())
            .collect(),
        // Its own keywords, seven at a time.
        (0..60u8)
            .flat_map(|n| {
                let keywords =
                    (0..7).flat_map(move |k| [n.wrapping_mul(7).wrapping_add(k), 200, 13]);
                [0, 0x80, n, n, 40, 14, 1, 7].into_iter().chain(keywords).chain([7, 3])
            })
            .collect(),
    ];
    let choices = 0..DISCIPLINES.len() as u8;
    choices.flat_map(|line| lives.iter().map(move |life| [&[line], &life[..]].concat())).collect()
}

/// Ethernet frames behind the link-layer choice and a length.
pub fn frames() -> Vec<Vec<u8>> {
    let v4 = |protocol: u8, fragment: u16, rest: &[u8]| {
        let length = (20 + rest.len()) as u16;
        let mut packet = vec![0x45, 0xb8];
        packet.extend(length.to_be_bytes());
        packet.extend([0, 1]);
        packet.extend(fragment.to_be_bytes());
        packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 1, 0, 2]);
        [&packet, rest].concat()
    };
    let v6 = |next: u8, rest: &[u8]| {
        let mut packet = vec![0x60, 0x02, 0x12, 0x34];
        packet.extend((rest.len() as u16).to_be_bytes());
        packet.extend([next, 64]);
        packet.extend([[0x20; 16], [0x21; 16]].concat());
        [&packet, rest].concat()
    };
    let udp = [0x13, 0x88, 0x00, 0x35, 0x00, 0x0c, 0, 0, 1, 2, 3, 4];
    let tcp = |options: &[u8]| {
        let mut segment = vec![0x80, 1, 0x01, 0xbb, 0, 0, 0, 1, 0, 0, 9, 9];
        segment.push((5 + options.len() as u8 / 4) << 4);
        segment.extend([0x10, 0xff, 0xff, 0, 0, 0, 0]);
        [&segment, options].concat()
    };
    let timestamp = [1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 6];
    let sack = [1, 1, 5, 18, 0, 0, 20, 0, 0, 0, 30, 0, 0, 0, 40, 0, 0, 0, 50, 0];
    let all = tcp(&[&timestamp[..], &sack].concat());
    let hop_by_hop = [&[6, 0, 1, 4, 0, 0, 0, 0][..], &all].concat();
    let fragment = [&[17, 0, 0, 1, 0, 0, 0, 9][..], &udp].concat();
    let chain =
        [&[60, 0, 1, 4, 0, 0, 0, 0, 43, 0, 1, 4, 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0, 0][..], &udp];
    let tagged = |tags: &[[u8; 4]], kind: [u8; 2], packet: &[u8]| {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &tags.concat(), &kind, packet].concat()
    };
    const IPV4: [u8; 2] = [8, 0];
    const IPV6: [u8; 2] = [0x86, 0xdd];
    let frames = [
        tagged(&[], IPV4, &v4(6, 0x4000, &tcp(&[]))),
        tagged(&[], IPV4, &v4(6, 0x4000, &all)),
        tagged(&[], IPV4, &v4(6, 0x4000, &tcp(&[2, 4, 5, 0xb4]))),
        tagged(&[], IPV4, &v4(17, 0, &udp)),
        tagged(&[], IPV4, &v4(17, 0x2000, &udp)),
        tagged(&[], IPV4, &v4(17, 0x0010, &udp)),
        tagged(&[], IPV4, &v4(1, 0, &[8, 0, 0, 0, 0, 1, 0, 1])),
        tagged(&[], IPV6, &v6(6, &all)),
        tagged(&[], IPV6, &v6(17, &udp)),
        tagged(&[], IPV6, &v6(0, &hop_by_hop)),
        tagged(&[], IPV6, &v6(44, &fragment)),
        tagged(&[], IPV6, &v6(0, &chain.concat())),
        // IPv6 in IPv4, and in each other.
        tagged(&[], IPV4, &v4(41, 0, &v6(6, &all))),
        tagged(&[], IPV4, &v4(41, 0, &v6(41, &v6(17, &udp)))),
        tagged(&[], IPV4, &v4(4, 0, &v4(6, 0, &all))),
        tagged(&[[0x81, 0, 0, 7]], IPV4, &v4(6, 0, &all)),
        tagged(&[[0x88, 0xa8, 0, 7], [0x81, 0, 0, 8]], IPV6, &v6(6, &all)),
        tagged(&[], [8, 6], &[0, 1, 8, 0, 6, 4, 0, 1]),
    ];
    let lead = |link: u8| [link, 0xee, 5, 0, 0];
    let as_frame = frames.iter().map(|frame| [&lead(0)[..], frame].concat());
    // The network layer alone, as the kernel's queue hands it over.
    let as_packet = frames.iter().map(|frame| [&lead(15)[..], &frame[14..]].concat());
    // Cut off within the last header.
    let cut = frames.iter().map(|frame| [&lead(0)[..], &frame[..frame.len() - 9]].concat());
    as_frame.chain(as_packet).chain(cut).collect()
}

/// What `tc` was asked when it was recorded, all keywords, and words that are nearly right.
pub fn words() -> Vec<Vec<u8>> {
    let mut all: Vec<String> =
        RECORDED.lines().filter_map(|line| line.strip_prefix("$ ")).map(String::from).collect();
    all.extend(DISCIPLINES.iter().map(|(words, _)| (*words).to_owned()));
    for discipline in tc::disciplines() {
        for keyword in tc::keywords(discipline.name) {
            let value = keyword.argument.split_whitespace().next().map_or("", |_| "20");
            all.push(format!("{} {} {value}", discipline.name, keyword.word));
        }
    }
    for odd in ["cake bandwith 1mbit", "cake rtt -1ms", "cake overhead", "cke", "cake 1e9999bit"] {
        all.push(odd.into());
    }
    // The first byte chooses between text and keywords.
    all.into_iter().map(|words| [&[0], words.as_bytes()].concat()).collect()
}

/// The file that is shipped, with every line that it has commented out, and with each key there is.
pub fn files() -> Vec<Vec<u8>> {
    let uncommented: String =
        SHIPPED.lines().map(|line| line.trim_start_matches("# ")).collect::<Vec<_>>().join("\n");
    let table = "[[interface]]\nname = \"eth0\"\nupload = \"10mbit\"\n";
    let keys = [
        "download = \"50mbit\"",
        "qdisc = \"cake diffserv4 nat\"",
        "download_qdisc = \"cake egress\"\ndownload = \"1mbit\"",
        "upload_qdisc = \"pfifo limit 5\"",
        "mark_mask = 0x30000000",
        "realtime = 50",
        "spin_us = 20\ncatch_up_us = 200",
        "queue_length = 4096\nlock_memory = true",
        "uplaod = \"1mbit\"",
    ];
    let mut files = vec![SHIPPED.as_bytes().to_vec(), uncommented.into_bytes()];
    files.push(format!("control_dir = \"/run/x\"\n{table}").into_bytes());
    files.extend(keys.iter().map(|key| format!("{table}{key}\n").into_bytes()));
    files
}
