//! The inputs that fuzzing starts from.
//!
//! Made anew at each run, not stored, so that they follow the table of disciplines, the keywords
//! and the recordings of `tc`. Each target calls [`write()`] before libFuzzer reads its corpus;
//! what libFuzzer finds lies beside them.

use std::path::Path;

use simnel_core::qdisc;

use crate::support::{self, table::DISCIPLINES};

/// Questions to the real `tc` and its answers: lines that start with `$` are words.
const RECORDED: &str = include_str!("../../crates/core/tests/data/tc/options.txt");
/// The configuration file that is shipped.
const SHIPPED: &str = include_str!("../../dist/simnel.toml");

/// The scenarios that are shipped.
pub const SCENARIOS: [&str; 10] = [
    include_str!("../../scenarios/acks.toml"),
    include_str!("../../scenarios/changing.toml"),
    include_str!("../../scenarios/evening.toml"),
    include_str!("../../scenarios/fifty-up.toml"),
    include_str!("../../scenarios/hosts.toml"),
    include_str!("../../scenarios/iot.toml"),
    include_str!("../../scenarios/l4s.toml"),
    include_str!("../../scenarios/mobile.toml"),
    include_str!("../../scenarios/rrul.toml"),
    include_str!("../../scenarios/upload.toml"),
];
/// Directory of their traces.
pub const TRACES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");

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

/// Requests of the real `tc` for disciplines, with packets for each.
pub fn requests_for_disciplines() -> Vec<Vec<u8>> {
    let operations: Vec<u8> = (0..100u8).map(|n| n.wrapping_mul(37)).collect();
    let seed = |(name, payload): (&str, Vec<u8>)| {
        let kind = qdisc::netlink::kinds().position(|kind| kind == name)?;
        Some(support::netlink::seed(kind as u8, &payload, &operations))
    };
    support::netlink::requests().into_iter().filter_map(seed).collect()
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

/// Words that `tc` was asked when it was recorded, all keywords, and words that are nearly right.
pub fn words() -> Vec<Vec<u8>> {
    let mut all: Vec<String> =
        RECORDED.lines().filter_map(|line| line.strip_prefix("$ ")).map(String::from).collect();
    all.extend(DISCIPLINES.iter().map(|(words, _)| (*words).to_owned()));
    for discipline in qdisc::disciplines() {
        for keyword in qdisc::keywords(discipline.name) {
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

/// The scenarios that are shipped, and edits of them.
pub fn scenarios() -> Vec<Vec<u8>> {
    let whole = SCENARIOS.iter().map(|text| [&[0], text.as_bytes()].concat());
    let edited = (0..200u8).map(|n| {
        let edit = |k: u8| [n.wrapping_mul(31).wrapping_add(k), n ^ k, n.wrapping_mul(k), k];
        let edits: Vec<u8> = (0..8).flat_map(edit).collect();
        [&[1, n, n % 3 + 1][..], &edits].concat()
    });
    whole.chain(edited).collect()
}

/// Traces, recordings and files of flent, small ones.
pub fn files_of_others() -> Vec<Vec<u8>> {
    let frames = frames();
    // Without the choice of the link layer and the length.
    let frames = || frames.iter().filter(|frame| frame[0] == 0).map(|frame| &frame[5..]);
    let mut all = Vec::new();
    for (magic, link) in [(0xa1b2_c3d4_u32, 1_u32), (0xa1b2_3c4d, 1), (0xa1b2_c3d4, 113)] {
        let mut pcap = [&magic.to_le_bytes()[..], &[2, 0, 4, 0], &[0; 8]].concat();
        pcap.extend([0xffffu32.to_le_bytes(), link.to_le_bytes()].concat());
        for (n, frame) in frames().enumerate() {
            let len = frame.len() as u32;
            for word in [n as u32, 1_000, len, len + 500] {
                pcap.extend(word.to_le_bytes());
            }
            pcap.extend(frame);
        }
        all.push([&[0], &pcap[..]].concat());
    }
    let block = |kind: u32, body: &[u8]| {
        let body = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
        let len = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes()[..], &len, &body, &len].concat()
    };
    let section = [&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat();
    // With a resolution of ns, and an offset of a second.
    let interface = [1, 0, 0, 0, 0, 0, 4, 0, 9, 0, 1, 0, 9, 0, 0, 0, 14, 0, 8, 0, 1, 0, 0, 0, 0, 0];
    let interface = [&interface[..], &[0, 0, 0, 0, 0, 0]].concat();
    let mut pcapng = [block(0x0a0d_0d0a, &section), block(1, &interface)].concat();
    for (n, frame) in frames().enumerate() {
        let len = (frame.len() as u32).to_le_bytes();
        let enhanced = [&[0; 8][..], &(n as u32 * 1_000).to_le_bytes(), &len, &len, frame].concat();
        pcapng.extend(block(6, &enhanced));
        pcapng.extend(block(3, &[&len[..], frame].concat()));
    }
    all.push([&[0], &pcapng[..]].concat());
    for stem in ["drr", "cake-ackfilter", "codel", "fq_codel", "htb", "pie", "red", "sfq"] {
        all.extend(recording_of(stem));
    }
    let flent = r#"{"version": 4, "x_values": [0, 0.2, 0.4],
            "metadata": {"TITLE": "a", "NAME": "rrul"},
        "results": {"TCP upload BE": [1, null, 3.5], "Ping (ms) ICMP": [20, 21.5, 1e3]},
        "raw_values": {"Ping (ms) ICMP": [{"t": 0.1, "val": 20}]}}"#;
    all.push([&[2], flent.as_bytes()].concat());
    for trace in ["3\n10\n", "# two\n0\n0\n5\n\n5\n1000", "4294967295", "1\n".repeat(300).as_str()]
    {
        all.push([&[3], trace.as_bytes()].concat());
    }
    all
}

/// The beginning of the first recording of `group` in three parts, and its arrivals as a trace.
fn recording_of(group: &str) -> Vec<Vec<u8>> {
    const PACKETS: usize = 30;
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../conformance/golden");
    let group = Path::new(root).join(group);
    let stems = simnel_lab::conformance::golden::list(&group).expect("recordings");
    let Some(stem) = stems.first() else { return Vec::new() };
    let text = |end: &str| {
        let path = format!("{}{end}", stem.display());
        simnel_lab::files::read_text(Path::new(&path), simnel_lab::files::WHOLE).expect(end)
    };
    let (json, csv, out) = (text(".json"), text(".csv.gz"), text(".out.gz"));
    let mut header: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let arrivals: Vec<&str> = csv.lines().filter(|line| line.contains("enq+")).collect();
    let arrivals = &arrivals[..PACKETS.min(arrivals.len())];
    header["packets"] = arrivals.len().into();
    let (header, csv) = (header.to_string(), arrivals.join("\n"));
    let flows: Vec<&str> = out.lines().filter(|line| line.starts_with('#')).collect();
    let flows = flows[..flows.len().min(PACKETS)].join("\n");
    let whole = [&[1], header.as_bytes(), &[0], csv.as_bytes(), &[0], flows.as_bytes()].concat();
    vec![whole, [&[0], csv.as_bytes()].concat()]
}

/// Answers of DNS with an alias and compressed names, over UDP and TCP, and one of multicast DNS.
pub fn dns() -> Vec<Vec<u8>> {
    let message = [
        &[0, 7, 0x81, 0x80, 0, 1, 0, 2, 0, 0, 0, 0][..],
        b"\x03www\x07example\x03org\0\0\x01\0\x01",
        &[0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 6, 3, b'c', b'd', b'n', 0xc0, 16],
        b"\x03cdn\xc0\x10\0\x01\0\x01\0\0\0\x3c\0\x04\xc0\0\x02\x07",
    ]
    .concat();
    let pointer = [
        &[0, 7, 0x84, 0, 0, 1, 0, 1, 0, 0, 0, 0][..],
        b"\x012\x010\x010\x0210\x07in-addr\x04arpa\0\0\x0c\x80\x01",
        b"\xc0\x0c\0\x0c\x80\x01\0\0\0\x0a\0\x0a\x02tv\x05local\0",
    ]
    .concat();
    let packet = |protocol: u8, transport: &[u8], message: &[u8]| {
        let length = (20 + transport.len() + message.len()) as u8;
        let ip = [0x45, 0, 0, length, 0, 0, 0, 0, 64, protocol, 0, 0, 9, 9, 9, 9, 10, 0, 0, 2];
        [&ip[..], transport, message].concat()
    };
    let udp = [0, 53, 0x9c, 0x40, 0, 0, 0, 0];
    let mut tcp = vec![0, 53, 0x9c, 0x40];
    tcp.resize(12, 0);
    tcp.extend([0x50, 0x18, 0, 0, 0, 0, 0, 0, 0, message.len() as u8]);
    vec![packet(17, &udp, &message), packet(6, &tcp, &message), packet(17, &udp, &pointer)]
}

/// Messages as the kernel writes them, behind a number of messages that wait for an answer.
pub fn netlink() -> Vec<Vec<u8>> {
    let attribute = |kind: u16, data: &[u8]| {
        let mut bytes = (data.len() as u16 + 4).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let message = |kind: u16, seq: u32, body: &[u8]| {
        let length = (body.len() as u32 + 16).to_ne_bytes();
        [&length[..], &kind.to_ne_bytes(), &[0; 2], &seq.to_ne_bytes(), &[0; 4], body].concat()
    };
    let queued = [
        vec![2, 0, 0, 7],
        attribute(1, &[0, 0, 0, 42, 8, 0, 3]),
        attribute(3, &[0x30, 0, 0, 0]),
        attribute(13, &1500u32.to_be_bytes()),
        attribute(21, &[0, 0, 0, 6]),
        attribute(10, &[0x45; 60]),
    ];
    // A number, and the message that it is about.
    let answer = |seq: u32, error: i32| {
        let about = message(0x0a06, seq, &[]);
        message(2, seq, &[&error.to_ne_bytes()[..], &about].concat())
    };
    let packet = message(3 << 8, 0, &queued.concat());
    let answers: Vec<u8> =
        (1..=6).flat_map(|seq| answer(seq, if seq == 4 { -17 } else { 0 })).collect();
    let dump = [message(0x0a05, 1, &queued.concat()), message(3, 1, &[0; 4])].concat();
    [packet, answers, answer(0, i32::MIN), dump]
        .into_iter()
        .map(|bytes| [&[6], &bytes[..]].concat())
        .collect()
}

/// Requests, one a line, and what `simnel change` may be given.
pub fn requests() -> Vec<Vec<u8>> {
    let change =
        |words: &str| format!(r#"{{"cmd":"change","direction":"upload","words":"{words}"}}"#);
    let show = r#"{"cmd":"show"}"#.to_owned();
    let down = r#"{"cmd":"down"}"#.to_owned();
    let mut all: Vec<String> =
        DISCIPLINES.iter().map(|(words, _)| [change(words), show.clone()].join("\n")).collect();
    all.push(
        ["5mbit", "1mbit nat", "unlimited", "2mbit fq_codel limit 10", "3mbit", "tbf"].join("\n"),
    );
    all.push(["1mbit pfifo", "unlimited", "1gbit sfq", "5mbit cake", "0bit", "x"].join("\n"));
    let again: Vec<String> = DISCIPLINES.iter().map(|(words, _)| change(words)).collect();
    all.extend(again.chunks(8).map(|some| [some.join("\n"), down.clone()].join("\n")));
    all.push(r#"{"cmd":"change","direction":"sideways","words":""}"#.into());
    all.into_iter().map(String::into_bytes).collect()
}
