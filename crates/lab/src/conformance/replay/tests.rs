//! Traces of every kind, whole and damaged.

use std::borrow::Cow;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::{DataLink, Endianness, TsResolution};
use simnel_core::qdisc::{self, Device};
use simnel_core::{Packet, Time};

use super::*;
use crate::conformance::golden::{self, Link, Recording};

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/golden")
}

/// All packets of a trace: times and descriptors.
fn packets(path: &Path) -> Result<Vec<(Time, Packet)>, TraceError> {
    let mut source = open(path, classifier(1))?.packets;
    let mut all = Vec::new();
    while let Some(time) = source.advance()? {
        all.push((time, source.describe()));
    }
    Ok(all)
}

/// Fields that a comparison of descriptors looks at.
fn fields((time, packet): &(Time, Packet)) -> [u64; 10] {
    [
        time.0,
        packet.flow,
        packet.src_host.into(),
        packet.dst_host.into(),
        packet.len.into(),
        packet.class.into(),
        packet.network_offset.into(),
        packet.header_len.into(),
        packet.tos.into(),
        packet.flags.0.into(),
    ]
}

fn same(a: &Path, b: &Path) {
    let (a, b) = (packets(a).unwrap(), packets(b).unwrap());
    assert!(!a.is_empty());
    assert_eq!(a.iter().map(fields).collect::<Vec<_>>(), b.iter().map(fields).collect::<Vec<_>>());
}

fn complaint(path: &Path) -> String {
    packets(path).expect_err("a bad trace").to_string()
}

/// The events of a replay of `path`.
fn events(path: &Path, words: &str, link: Link) -> String {
    let config = qdisc::parse(words).unwrap();
    let mut source = open(path, classifier(1)).unwrap().packets;
    let make = |now| {
        let device = Device { now, ..Device::default() };
        qdisc::build(&config, &device).map_err(|error| error.to_string())
    };
    let mut out = Vec::new();
    drive(source.as_mut(), make, link, Events::new(&mut out, true), &mut || {}).unwrap();
    String::from_utf8(out).unwrap()
}

/// IPv4, UDP, `payload` bytes behind the headers.
fn v4(payload: usize) -> Vec<u8> {
    let length = (28 + payload) as u16;
    let mut bytes = vec![0x45, 0xb8, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7];
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes.extend([0x1f, 0x90, 0, 53, 0, 0, 0, 0]);
    bytes.resize(28 + payload, 0);
    bytes
}

/// IPv6, a TCP acknowledgement with a SACK block.
fn v6() -> Vec<u8> {
    let mut bytes = vec![0x60, 0x20, 0, 0, 0, 32, 6, 64];
    bytes.extend([0xfd; 16]);
    bytes.extend([0xfc; 16]);
    bytes.extend([0, 80, 1, 187, 0, 0, 0, 1, 0, 0, 0, 9, 0x80, 0x10, 1, 0, 0, 0, 0, 0]);
    bytes.extend([1, 1, 5, 10, 0, 0, 0, 20, 0, 0, 0, 30]);
    bytes
}

fn ethernet(ethertype: u16, network: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(network);
    frame
}

fn frames() -> Vec<Vec<u8>> {
    vec![
        ethernet(0x0800, &v4(60)),
        ethernet(0x86dd, &v6()),
        ethernet(0x0806, &[0; 28]),
        ethernet(0x88cc, &[1; 50]),
        ethernet(0x8100, &[&[0, 1, 8, 0][..], &v4(9)].concat()),
    ]
}

fn pcap(path: &Path, header: PcapHeader, frames: &[Vec<u8>], snap: usize) {
    let mut bytes = Vec::new();
    let mut writer = PcapWriter::with_header(&mut bytes, header).unwrap();
    for (n, frame) in frames.iter().enumerate() {
        let data = &frame[..frame.len().min(snap)];
        let time = Duration::from_micros(1_700_000_000_000_000 + 10 * n as u64);
        writer.write_packet(&PcapPacket::new(time, frame.len() as u32, data)).unwrap();
    }
    std::fs::write(path, bytes).unwrap();
}

/// Kuznetzov's format: that of the file `of`, with eight bytes more before each packet.
fn patched(path: &Path, of: &Path, big_endian: bool) {
    let plain = std::fs::read(of).unwrap();
    let word = |at: usize| {
        let bytes = plain[at..at + 4].try_into().unwrap();
        if big_endian {
            u32::from_be_bytes(bytes)
        } else {
            u32::from_le_bytes(bytes)
        }
    };
    let magic = 0xa1b2_cd34_u32;
    let magic = if big_endian { magic.to_be_bytes() } else { magic.to_le_bytes() };
    let mut bytes = [&magic, &plain[4..24]].concat();
    let mut at = 24;
    while at < plain.len() {
        let end = at + 16 + word(at + 8) as usize;
        bytes.extend(
            [&plain[at..at + 16], &[2, 0, 0, 0, 8, 0, 4, 0], &plain[at + 16..end]].concat(),
        );
        at = end;
    }
    std::fs::write(path, bytes).unwrap();
}

fn pcapng(path: &Path, link: DataLink, options: &[u8], ticks: u64, frames: &[Vec<u8>]) {
    let mut bytes = Vec::new();
    let mut writer = PcapNgWriter::new(&mut bytes).unwrap();
    let options = options.iter().map(|n| InterfaceDescriptionOption::IfTsResol(*n)).collect();
    let interface = InterfaceDescriptionBlock { linktype: link, snaplen: 0, options };
    writer.write_pcapng_block(interface).unwrap();
    for (n, frame) in frames.iter().enumerate() {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            // The library writes the number of nanoseconds as the number of ticks.
            timestamp: Duration::from_nanos(1_700_000_000 * ticks + n as u64 * ticks / 100_000),
            original_len: frame.len() as u32,
            data: Cow::Borrowed(frame),
            options: Vec::new(),
        };
        writer.write_pcapng_block(block).unwrap();
    }
    std::fs::write(path, bytes).unwrap();
}

fn header(endianness: Endianness, ts_resolution: TsResolution) -> PcapHeader {
    PcapHeader { endianness, ts_resolution, ..PcapHeader::default() }
}

#[test]
fn all_kinds_of_capture_describe_the_same_packets() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let plain = at("plain.pcap");
    pcap(&plain, header(Endianness::Little, TsResolution::MicroSecond), &frames(), 9999);
    let first = packets(&plain).unwrap();
    assert_eq!(first[0].0, Time(1_700_000_000_000_000_000));
    assert_eq!(first[1].0, Time(1_700_000_000_000_010_000));
    assert_eq!(
        first.iter().map(|(_, packet)| packet.len).collect::<Vec<_>>(),
        [102, 86, 42, 64, 55]
    );
    assert_eq!((first[0].1.dscp(), first[1].1.tos & 3), (46, 2));
    assert_eq!(first[0].1.flow, first[4].1.flow);

    let other = at("other");
    pcap(&other, header(Endianness::Big, TsResolution::NanoSecond), &frames(), 9999);
    same(&plain, &other);
    for endianness in [Endianness::Little, Endianness::Big] {
        pcap(&other, header(endianness, TsResolution::MicroSecond), &frames(), 9999);
        patched(&other, &other, endianness == Endianness::Big);
        same(&plain, &other);
    }
    for (option, ticks) in [(&[][..], 1_000_000), (&[9], 1_000_000_000), (&[7], 10_000_000)] {
        pcapng(&other, DataLink::ETHERNET, option, ticks, &frames());
        same(&plain, &other);
    }
    let zipped = at("zipped");
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(&std::fs::read(&plain).unwrap()).unwrap();
    std::fs::write(&zipped, gz.finish().unwrap()).unwrap();
    same(&plain, &zipped);
    write_binary(open(&plain, classifier(9)).unwrap().packets.as_mut(), &other, &mut || {})
        .unwrap();
    same(&plain, &other);

    // Short captures lose nothing that counts, except options.
    pcap(&other, header(Endianness::Little, TsResolution::MicroSecond), &frames(), 60);
    let short = packets(&other).unwrap();
    assert_eq!(fields(&short[0]), fields(&first[0]));
    assert_eq!(short[1].1.len, 86);
}

#[test]
fn cooked_and_raw_captures_are_understood() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let networks =
        [(0x0800u16, v4(60)), (0x86dd, v6()), (0x8100, [&[0, 1, 8, 0][..], &v4(9)].concat())];
    let framed: Vec<Vec<u8>> = networks.iter().map(|(kind, net)| ethernet(*kind, net)).collect();
    let plain = at("plain");
    pcap(&plain, header(Endianness::Little, TsResolution::MicroSecond), &framed, 9999);

    let cooked: Vec<Vec<u8>> = networks
        .iter()
        .map(|(kind, net)| [&[0; 14][..], &kind.to_be_bytes(), net].concat())
        .collect();
    let other = at("other");
    pcapng(&other, DataLink::LINUX_SLL, &[], 1_000_000, &cooked);
    same(&plain, &other);
    let cooked2: Vec<Vec<u8>> = networks
        .iter()
        .map(|(kind, net)| [&kind.to_be_bytes()[..], &[0; 18], net].concat())
        .collect();
    let sll2 = PcapHeader {
        datalink: DataLink::Unknown(276),
        ..header(Endianness::Little, TsResolution::MicroSecond)
    };
    pcap(&other, sll2, &cooked2, 9999);
    same(&plain, &other);

    let raw = PcapHeader { datalink: DataLink::RAW, ..PcapHeader::default() };
    pcap(&other, raw, &[v4(60), v6()], 9999);
    let (plain, raw) = (packets(&plain).unwrap(), packets(&other).unwrap());
    for ((_, plain), (_, raw)) in plain.iter().zip(&raw) {
        assert_eq!((raw.flow, raw.tos, raw.flags), (plain.flow, plain.tos, plain.flags));
        assert_eq!((raw.len, raw.network_offset), (plain.len - 14, 0));
    }
}

#[test]
fn a_binary_trace_decides_as_the_text_that_it_came_from() {
    let directory = tempfile::tempdir().unwrap();
    let (mut compared, mut filtered) = (0, 0);
    for path in golden::list(&recordings()).unwrap() {
        let group = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        // A trace holds packets only.
        let is_plain = Recording::read(&path).unwrap().commands.is_empty();
        if !is_plain || !["cake-ackfilter", "cake-tins", "htb", "drr"].contains(&group) {
            continue;
        }
        let csv = path.with_extension("csv.gz");
        let binary = directory.path().join("trace");
        let mut source = open(&csv, classifier(1)).unwrap().packets;
        write_binary(source.as_mut(), &binary, &mut || {}).unwrap();
        same(&csv, &binary);
        let words = "cake bandwidth 2mbit ack-filter-aggressive";
        let from_text = events(&csv, words, Link::InfinitelyFast);
        assert_eq!(from_text, events(&binary, words, Link::InfinitelyFast), "{}", csv.display());
        assert_eq!(from_text, events(&csv, words, Link::InfinitelyFast), "not deterministic");
        filtered += from_text.matches(" ackfilt ").count();
        compared += 1;
    }
    assert!(compared >= 3 && filtered > 100, "{compared} traces, {filtered} filtered");
}

#[test]
fn what_streams_by_is_treated_as_a_recording_is() {
    // Disciplines without hashes, seeds and ticks: nothing is injected.
    let mut compared = 0;
    for path in golden::list(&recordings()).unwrap() {
        let recording = Recording::read(&path).unwrap();
        // A trace that streams by holds packets only.
        let is_plain = recording.commands.is_empty();
        if !is_plain || !["codel", "tbf", "fifo"].contains(&recording.group.as_str()) {
            continue;
        }
        let device = golden::linux_device(&recording).unwrap();
        let mut qdisc = golden::build(&recording.words, &device).unwrap();
        let expected = golden::replay(&recording, qdisc.as_mut(), &device).unwrap().events;
        let mut source = open(&path.with_extension("csv.gz"), classifier(1)).unwrap().packets;
        let mut out = Vec::new();
        let make = |_| golden::build(&recording.words, &device);
        let sink = Events::new(&mut out, true);
        drive(source.as_mut(), make, recording.link, sink, &mut || {}).unwrap();
        let ours = String::from_utf8(out).unwrap();
        let expected: String = expected.iter().map(|event| format!("{event}\n")).collect();
        assert_eq!(ours, expected, "{}", recording.full_name());
        compared += 1;
    }
    assert!(compared > 0);
}

#[test]
fn a_summary_counts_every_packet_once() {
    let path = golden::list(&recordings()).unwrap().remove(0).with_extension("csv.gz");
    let run = |capacity| {
        let mut source = open(&path, classifier(1)).unwrap().packets;
        let config = qdisc::parse("fq_codel limit 50").unwrap();
        let make = |_| qdisc::build(&config, &Device::default()).map_err(|e| e.to_string());
        let sink = Tally::with_capacity(capacity);
        let link = Link::BitsPerSecond(2_000_000);
        let tally = drive(source.as_mut(), make, link, sink, &mut || {}).unwrap();
        tally.summary("fq_codel", Some(2_000_000), 1000)
    };
    let exact = run(shares::CAPACITY);
    assert_eq!(exact.packets, exact.sent + exact.dropped + exact.ack_filtered + exact.queued);
    let times = exact.sojourn_ns.expect("packets were sent");
    assert!(exact.sent > 0 && times.p50 <= times.p99 && times.p99 <= times.max);
    for shares in [&exact.flows, &exact.sources, &exact.destinations] {
        assert_eq!(shares.top.iter().map(|line| line.bytes).sum::<u64>(), exact.sent_bytes);
        assert_eq!(shares.top.iter().map(|line| line.sent).sum::<u64>(), exact.sent);
        assert_eq!((shares.count, shares.summed_up), (shares.top.len() as u64, 0));
    }
    assert_eq!(exact, run(shares::CAPACITY));
    assert_eq!(Tally::new().summary("pfifo limit 0", None, 1).sojourn_ns, None);
    // In a smaller memory the same happens; less of it is told apart.
    let small = run(2);
    assert_eq!((small.sent, small.sojourn_ns), (exact.sent, exact.sojourn_ns));
    assert!(small.flows.count >= exact.flows.count);
}

#[test]
fn packets_out_of_order_are_taken_together_with_the_one_before() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    pcap(&path, PcapHeader::default(), &frames(), 9999);
    let mut bytes = std::fs::read(&path).unwrap();
    // The microseconds of the third packet.
    let third = 24 + 2 * 16 + frames()[0].len() + frames()[1].len();
    bytes[third + 4..third + 8].fill(0);
    std::fs::write(&path, &bytes).unwrap();
    let mut source = open(&path, classifier(1)).unwrap().packets;
    let mut times = Vec::new();
    while let Some(time) = source.advance().unwrap() {
        times.push(time);
    }
    assert!(times.is_sorted() && times[2] == times[1]);
    assert_eq!(source.out_of_order(), 1);
}

#[test]
fn bad_traces_say_where() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let write = |bytes: &[u8]| std::fs::write(&path, bytes).unwrap();

    let good = "1000,enq+,0,100,10.0.0.1,10.0.0.2,1,2,17,0,2\n";
    for (bad, expected) in [
        ("1000,enq+,2,100,10.0.0.1,10.0.0.2,1,2,17,0,2\n", ":2: packet 2 where 1 was expected"),
        ("999,enq+,1,100,10.0.0.1,10.0.0.2,1,2,17,0,2\n", ":2: time goes back"),
        ("1000,enq+,1,100,10.0.0.1,fd00::2,1,2,17,0,2\n", ":2: 10.0.0.1 and fd00::2"),
        ("1000,enq+,1,100,10.0.0.1,10.0.0.2,1,70000,17,0,2\n", ":2: `70000` is not a port"),
        ("1000,enq+,1,100,10.0.0\n", ":2: "),
        ("1000,sleep\n", ":2: unknown operation `sleep`"),
        ("\n", ":2: time"),
    ] {
        write(format!("{good}{bad}").as_bytes());
        assert!(complaint(&path).contains(expected), "{}", complaint(&path));
    }
    write(&[good.as_bytes(), b"1\xff\n"].concat());
    assert!(complaint(&path).contains(":2: not text"));
    write(&[good.as_bytes(), &[b'1'; 9000]].concat());
    assert!(complaint(&path).contains(":2: this is no line"));

    write(b"");
    assert!(complaint(&path).contains("empty"));
    write(b"\x7fELF and so on");
    assert!(complaint(&path).contains("neither arrivals"));
    // What cannot be read at all says which files can.
    for none in [&directory.path().join("none"), directory.path()] {
        let error = packets(none).expect_err("nothing to read");
        assert!(error.to_string().starts_with(&none.display().to_string()), "{error}");
        assert!(error.help.is_some_and(|help| help.contains("pcap")), "{error:?}");
    }

    let wireless = PcapHeader { datalink: DataLink::IEEE802_11, ..PcapHeader::default() };
    pcap(&path, wireless, &frames(), 9999);
    assert!(complaint(&path).contains("link type 105"));

    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(good.repeat(50).as_bytes()).unwrap();
    let bytes = gz.finish().unwrap();
    write(&bytes[..bytes.len() - 9]);
    assert!(packets(&path).is_err());
}

#[test]
fn what_is_strange_about_a_capture_is_said_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    pcap(&path, header(Endianness::Little, TsResolution::MicroSecond), &frames(), 9999);
    let good = std::fs::read(&path).unwrap();
    // Of the first packet's header: seconds at 0, length on the wire at 12.
    let first = 24;
    let second = first + 16 + frames()[0].len();
    let with = |at: usize, bytes: &[u8]| {
        let mut changed = good.clone();
        changed[at..at + bytes.len()].copy_from_slice(bytes);
        changed
    };
    let ng = |major: u8| {
        pcapng(&path, DataLink::ETHERNET, &[9], 1_000_000_000, &frames());
        let mut bytes = std::fs::read(&path).unwrap();
        let little = bytes[8] == 0x4d;
        bytes[if little { 12 } else { 13 }] = major;
        bytes
    };
    let packed = |bytes: &[u8]| {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(bytes).unwrap();
        gz.finish().unwrap()
    };
    let link = |number: u8| with(20, &[number, 0, 0, 0]);
    for (bytes, expected) in [
        (with(first + 12, &[0xff; 4]), "packet 0: it had 4294967295 bytes on the wire"),
        (with(second, &[0, 0, 0, 0xf0]), "packet 1: it came 26927 days after the one before"),
        (good[..24].to_vec(), "the capture holds no packets"),
        (with(4, &[7]), "version 7.4 of the format"),
        (ng(9), "version 9.0 of the format"),
        (
            [packed(&good), b"and more that is something else".to_vec()].concat(),
            "what follows the gzip data",
        ),
        (b"\x28\xb5\x2f\xfd and so on".to_vec(), "compressed with zstd"),
        (b"\xfd7zXZ\0 and so on".to_vec(), "compressed with xz"),
        (b"BZh9 and so on".to_vec(), "compressed with bzip2"),
        (link(127), "link type 127 (802.11 with radiotap headers)"),
        (link(99), "link type 99 is not understood"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let said = complaint(&path);
        assert!(said.contains(expected), "{expected} is not in {said}");
    }
}

#[test]
fn ppp_and_loopback_captures_are_understood() {
    let directory = tempfile::tempdir().unwrap();
    let (plain, path) = (directory.path().join("plain"), directory.path().join("trace"));
    let network = [v4(60), v6()];
    let datalink = |number: u32| PcapHeader { datalink: number.into(), ..PcapHeader::default() };
    pcap(&plain, datalink(101), &network, 9999);
    let headers: [(u32, [&[u8]; 2]); 5] = [
        (0, [&[2, 0, 0, 0], &[30, 0, 0, 0]]),
        (108, [&[0, 0, 0, 2], &[0, 0, 0, 24]]),
        (9, [&[0x00, 0x21], &[0x00, 0x57]]),
        (9, [&[0x21], &[0x57]]),
        (50, [&[0xff, 0x03, 0x00, 0x21], &[0xff, 0x03, 0x00, 0x57]]),
    ];
    for (number, [four, six]) in headers {
        let frames = [[four, &network[0]].concat(), [six, &network[1]].concat()];
        pcap(&path, datalink(number), &frames, 9999);
        same(&plain, &path);
    }
}

#[test]
fn packets_without_their_ports_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let count = |snap: usize| {
        pcap(&path, PcapHeader::default(), &frames(), snap);
        let mut source = open(&path, classifier(1)).unwrap().packets;
        while source.advance().unwrap().is_some() {}
        source.cut_short()
    };
    // Two of IPv4, one of them with a tag, and one of IPv6.
    assert_eq!((count(9999), count(96), count(36), count(20)), (0, 0, 3, 3));
    // Not even the EtherType.
    assert_eq!(count(12), frames().len() as u64);
}

#[test]
fn hours_in_a_queue_are_told_from_an_hour() {
    let mut tally = Tally::new();
    let packet = Packet::new(0, 1500);
    let keys = || simnel_core::wire::flow_keys(simnel_core::wire::LinkLayer::Ethernet, &[]);
    let note = tally.arrival(Time::ZERO, &packet, keys);
    let waiting = Waiting { id: 0, arrived: Time::ZERO, len: 1500, note };
    let late = Time(5 * 3600 * 1_000_000_000);
    tally.departure(
        late,
        &waiting,
        golden::Fate::Sent { place: None, adj_len: None, marked: false },
    );
    let summary = serde_json::to_value(tally.summary("pfifo", None, 1)).unwrap();
    let p99 = summary["sojourn_ns"]["p99"].as_f64().unwrap() / 1e6;
    assert!((17_980_000.0..=18_020_000.0).contains(&p99), "{summary}");
}

/// Every length that a damaged file may have, and every byte that may be wrong in it.
#[test]
fn damage_is_an_error_with_the_packet_s_number_or_harmless() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let source = directory.path().join("source");
    pcap(&source, PcapHeader::default(), &frames(), 9999);
    let mut kinds = vec![std::fs::read(&source).unwrap()];
    let mut trace = open(&source, classifier(1)).unwrap().packets;
    write_binary(trace.as_mut(), &path, &mut || {}).unwrap();
    kinds.push(std::fs::read(&path).unwrap());
    pcapng(&path, DataLink::ETHERNET, &[9], 1_000_000_000, &frames());
    kinds.push(std::fs::read(&path).unwrap());
    for bytes in kinds {
        for length in 8..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            match packets(&path) {
                Ok(packets) => assert!(packets.len() < frames().len()),
                Err(error) => {
                    let said = error.to_string();
                    let named = said.contains("cut off") || said.contains("holds no packets");
                    assert!(named, "{length}: {error}");
                    assert!(matches!(error.place, Place::File | Place::Packet(_)));
                }
            }
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0xff;
            std::fs::write(&path, &damaged).unwrap();
            // Whatever comes of it, it is an answer.
            let _ = packets(&path).map(|packets| packets.len());
        }
    }
}
