//! Headers that are kept, payload that is not, addresses, files, and the cost of a packet.

use std::collections::BTreeSet;
use std::time::Instant;

use simnel_core::flow::{Addresses, FlowHasher, HashKey};
use simnel_core::wire::{flow_keys, Classifier, LinkLayer};

use super::anonymous::Key;
use super::*;
use crate::classify::{self, LINK};
use crate::direction::Direction;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// IPv4 with ten bytes of a transport header's rest and of payload.
fn v4(protocol: u8, from: [u8; 4], to: [u8; 4]) -> Vec<u8> {
    let transport: &[u8] = match protocol {
        TCP => &[0, 9, 1, 187, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 5, 6, 0, 0],
        _ => &[0, 9, 0, 53, 0, 18, 5, 6],
    };
    let length = (20 + transport.len() + 10) as u16;
    let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 3, 4];
    bytes[2..4].copy_from_slice(&length.to_be_bytes());
    bytes.extend([from, to].concat());
    bytes.extend(transport);
    bytes.extend(*b"my payload");
    bytes
}

fn v6(next: u8, from: u8, to: u8, inner: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0, 0, inner.len() as u8, next, 64];
    for host in [from, to] {
        bytes.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    bytes.extend(inner);
    bytes
}

fn queued(protocol: u16, bytes: &[u8]) -> Queued<'_> {
    Queued { protocol, bytes, len: bytes.len() as u32, ..Queued::default() }
}

fn described(queued: &Queued<'_>) -> Packet {
    let (link, bytes, skipped) = classify::network(queued.protocol, queued.bytes);
    let classifier = Classifier::new(FlowHasher::of_flows(HashKey::new(1, 2)));
    classifier.classify(link, bytes, queued.len - skipped, 0)
}

/// Records of packets that come a second and seven nanoseconds apart.
fn recorded(packets: &[(u16, Vec<u8>)]) -> Recorded {
    let mut recorder = Recorder::new(room(1));
    for (n, (protocol, bytes)) in (1u64..).zip(packets) {
        let queued = queued(*protocol, bytes);
        recorder.arrived(&described(&queued), &queued, Time(n * 1_000_000_007));
    }
    recorder.finish()
}

/// Headers and length on the wire of each record.
fn records(mut raw: &[u8]) -> Vec<(Vec<u8>, u32)> {
    let mut all = Vec::new();
    while !raw.is_empty() {
        let word = |at: usize| u32::from_le_bytes(raw[at..at + 4].try_into().unwrap());
        let end = HEAD + word(8) as usize;
        all.push((raw[HEAD..end].to_vec(), word(12)));
        raw = &raw[end..];
    }
    all
}

fn records_of(recorded: &Recorded) -> Vec<(Vec<u8>, u32)> {
    records(&recorded.raw)
}

#[test]
fn headers_are_kept_and_no_payload_is() {
    let (tcp, udp) = (v4(TCP, [10, 0, 0, 1], [192, 0, 2, 1]), v4(UDP, [10, 0, 0, 1], [8; 4]));
    let session = [&[0x11, 0, 0, 1, 0, 60, 0, 0x21][..], &udp].concat();
    let packets = [
        (0x0800, tcp.clone()),
        (0x0800, udp.clone()),
        (0x86dd, v6(UDP, 1, 2, &udp[20..])),
        (0x8864, session.clone()),
        (0x0806, vec![1; 28]),
        (0x0800, vec![0x45; 3]),
    ];
    let recorded = recorded(&packets);
    assert_eq!((recorded.packets, recorded.lost, recorded.bytes), (6, 0, recorded.raw.len()));
    assert_eq!(recorded.raw[..8], [1, 0, 0, 0, 7, 0, 0, 0]);
    let records = records(&recorded.raw);
    let lengths: Vec<(usize, u32)> = records.iter().map(|(head, len)| (head.len(), *len)).collect();
    assert_eq!(lengths, [(54, 64), (42, 52), (62, 72), (50, 60), (14, 42), (14, 17)]);
    assert_eq!(records[0].0[12..14], [8, 0]);
    assert_eq!(records[0].0[14..], tcp[..40]);
    assert_eq!(records[3].0[14..], session[..36]);
    // Whoever reads them tells the same flows.
    for ((protocol, bytes), (head, len)) in packets.iter().zip(&records).take(4) {
        let live = described(&queued(*protocol, bytes));
        let classifier = Classifier::new(FlowHasher::of_flows(HashKey::new(1, 2)));
        let read = classifier.classify(LinkLayer::Ethernet, head, *len, 0);
        assert_eq!(
            (read.flow, read.len, read.network_offset, read.header_len),
            (live.flow, live.len, live.network_offset, live.header_len)
        );
    }
}

#[test]
fn a_super_packet_is_recorded_as_its_segments() {
    let bytes = v4(TCP, [10, 0, 0, 1], [192, 0, 2, 1]);
    let queued = Queued { len: 40 + 3_000, is_super: true, ..queued(0x0800, &bytes) };
    let mut packet = described(&queued);
    (packet.gso_size, packet.gso_segs) = (1_448, 3);
    let mut recorder = Recorder::new(room(1));
    recorder.arrived(&packet, &queued, Time(1));
    let records = records_of(&recorder.finish());
    let lengths: Vec<u32> = records.iter().map(|(_, len)| *len).collect();
    assert_eq!(lengths, [1_502, 1_502, 158]);
    let stated = |head: &[u8]| u16::from_be_bytes([head[16], head[17]]);
    assert_eq!(records.iter().map(|(head, _)| stated(head)).collect::<Vec<_>>(), [1488, 1488, 144]);
    // IPv6 states the length behind its own header (RFC 8200, section 3).
    let bytes = v6(TCP, 1, 2, &v4(TCP, [0; 4], [0; 4])[20..40]);
    let queued = Queued { protocol: 0x86dd, bytes: &bytes, len: 60 + 3_000, ..queued };
    let mut packet = described(&queued);
    (packet.gso_size, packet.gso_segs) = (1_448, 3);
    let mut recorder = Recorder::new(room(1));
    recorder.arrived(&packet, &queued, Time(1));
    let recorded = recorder.finish();
    let stated: Vec<u32> = records_of(&recorded)
        .iter()
        .map(|(head, _)| u32::from(u16::from_be_bytes([head[18], head[19]])))
        .collect();
    assert_eq!(stated, [1_468, 1_468, 124]);
}

#[test]
fn what_there_is_no_room_for_is_counted() {
    let bytes = v4(UDP, [10, 0, 0, 1], [192, 0, 2, 1]);
    let queued = queued(0x0800, &bytes);
    let mut recorder = Recorder::new(Vec::with_capacity(2 * (HEAD + 42) + 41));
    for _ in 0..9 {
        recorder.arrived(&described(&queued), &queued, Time(1));
    }
    let recorded = recorder.finish();
    assert_eq!((recorded.packets, recorded.lost), (2, 7));
    assert_eq!(recorded.raw.capacity(), 2 * (HEAD + 42) + 41);
    // Room for one packet is used for it.
    let mut recorder = Recorder::new(Vec::with_capacity(HEAD + 42));
    (0..2).for_each(|_| recorder.arrived(&described(&queued), &queued, Time(1)));
    let recorded = recorder.finish();
    assert_eq!((recorded.packets, recorded.lost), (1, 1));
    // What waited, and as much that came since, may be told at once.
    assert!(most() >= 2 * room(1).capacity());
}

#[test]
fn other_addresses_are_as_many_and_tell_nothing() {
    let key = Key::new();
    let hosts = (0..=255u8).map(|host| [192, 168, 1, host]);
    let (mut seen, mut networks) = (BTreeSet::new(), BTreeSet::new());
    for host in hosts {
        let mut bytes = v4(UDP, host, [192, 168, 1, 1]);
        key.hide(&mut bytes);
        seen.insert(bytes[12..16].to_vec());
        if host[3] == 1 {
            assert_eq!(bytes[12..16], bytes[16..20], "the same host");
        }
        assert_eq!((&bytes[10..12], &bytes[26..28]), (&[0, 0][..], &[0, 0][..]), "checksums");
        assert_eq!(bytes[20..26], v4(UDP, host, [0; 4])[20..26], "ports and length");
        let mut bytes = v6(TCP, host[3], 1, &v4(TCP, [0; 4], [0; 4])[20..40]);
        key.hide(&mut bytes);
        networks.insert(bytes[8..16].to_vec());
        seen.insert(bytes[8..24].to_vec());
        assert_eq!(bytes[56..58], [0, 0]);
    }
    assert_eq!((seen.len(), networks.len()), (512, 1));
    // Each of the four bytes tells hosts apart.
    let others = (0..5).map(|at| {
        let mut host = [10, 20, 30, 40];
        host.iter_mut().skip(at).take(1).for_each(|byte| *byte += 1);
        let mut bytes = v4(UDP, host, [192, 168, 1, 1]);
        key.hide(&mut bytes);
        bytes[12..16].to_vec()
    });
    assert_eq!(others.collect::<BTreeSet<_>>().len(), 5);
    // By chance, one key in 256 gives one host an address that begins as all did.
    let same = seen.iter().filter(|address| address.len() == 4 && address.starts_with(&[192, 168]));
    assert!(same.count() < 8);

    // In tunnels, behind extension headers and among IPv4's options, too.
    let inner = v4(TCP, [10, 0, 0, 1], [10, 0, 0, 2]);
    let routing = [&[4, 2, 0, 1, 0, 0, 0, 0][..], &[0xee; 16], &inner].concat();
    let mut bytes = v6(43, 0xaa, 0xbb, &routing);
    key.hide(&mut bytes);
    assert_eq!(bytes[40..64], [&[4, 2, 0, 1][..], &[0; 20]].concat());
    assert!(bytes[76..80] != [10, 0, 0, 1] && bytes[80..84] != [10, 0, 0, 2]);
    let mut bytes = v4(UDP, [10, 0, 0, 1], [10, 0, 0, 2]);
    bytes[0] = 0x47;
    bytes.splice(20..20, [7, 7, 4, 10, 0, 0, 9, 0]);
    key.hide(&mut bytes);
    assert_eq!(bytes[20..28], [1; 8]);
    assert_eq!(bytes[28..34], [0, 9, 0, 53, 0, 18]);
    // A flow is the same flow each time, and another key's is another.
    let hidden = |key: &Key| {
        let mut bytes = v4(TCP, [10, 0, 0, 1], [10, 0, 0, 2]);
        key.hide(&mut bytes);
        flow_keys(LINK, &bytes).addresses
    };
    assert_eq!(hidden(&key), hidden(&key));
    assert_ne!(hidden(&key), hidden(&Key::new()));
    assert_ne!(hidden(&key), Addresses::V4([10, 0, 0, 1], [10, 0, 0, 2]));
}

#[test]
fn hiding_takes_any_bytes() {
    let key = Key::new();
    let mut random = simnel_core::random::Random::new(5);
    for _ in 0..20_000 {
        let inner = v4(random.u32() as u8, [10, 0, 0, 1], [10, 0, 0, 2]);
        let mut bytes = v6([0, 4, 41, 43, 44, 51, 60][random.below(7) as usize], 1, 2, &inner);
        for _ in 0..random.below(4) {
            let at = random.below(bytes.len() as u32) as usize;
            bytes[at] = random.u32() as u8;
        }
        bytes.truncate(random.below(bytes.len() as u32 + 1) as usize);
        key.hide(&mut bytes);
    }
}

#[test]
fn files_are_whole_bounded_and_nobody_elses() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let stem = directory.path().join("evening");
    let both = Direction::BOTH;
    let one = recorded(&[(0x0800, v4(UDP, [10, 0, 0, 1], [192, 0, 2, 1]))]).raw;
    let bounds = |rotate| Bounds { size: 2 * (24 + 3 * one.len() as u64 + 9), rotate };
    let mut files = Files::create(&stem, &both, bounds(false), false).unwrap();
    let upload = directory.path().join("evening.upload.pcap");
    let length = |path| std::fs::metadata(path).unwrap().len();
    for n in 1..=3 {
        assert!(files.append(Direction::Upload, one.clone()).unwrap());
        assert_eq!(length(&upload), 24 + n * one.len() as u64);
    }
    assert!(!files.append(Direction::Upload, one.clone()).unwrap(), "it is full");
    assert_eq!(length(&upload), 24 + 3 * one.len() as u64);
    assert_eq!((files.written(Direction::Upload), files.written(Direction::Download)), (3, 0));
    assert!(files.append(Direction::Download, one.clone()).unwrap());
    assert_eq!(std::fs::metadata(&upload).unwrap().permissions().mode() & 0o777, 0o600);
    // Times are the calendar's: this year's.
    let bytes = std::fs::read(&upload).unwrap();
    let seconds = u32::from_le_bytes(bytes[24..28].try_into().unwrap());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    assert!(u64::from(seconds).abs_diff(now) < 30 * 24 * 3600 * 12, "{seconds} of {now}");
    let error = Files::create(&stem, &both, bounds(false), false).err().unwrap().to_string();
    assert!(error.contains("evening.upload.pcap"), "{error}");
    // Where one of them cannot be made, none is left.
    std::fs::remove_file(&upload).unwrap();
    let error = Files::create(&stem, &both, bounds(false), false).err().unwrap().to_string();
    assert!(error.contains("evening.download.pcap") && !upload.exists(), "{error}");

    // Nor is an earlier half of another recording replaced.
    let theirs = directory.path().join("always.upload.pcap.1");
    std::fs::write(&theirs, "theirs").unwrap();
    let stem = directory.path().join("always");
    let refused = |rotate| Files::create(&stem, &both, bounds(rotate), false).err();
    let error = refused(true).unwrap().to_string();
    assert!(error.contains("always.upload.pcap.1"), "{error}");
    assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
    assert!(!directory.path().join("always.upload.pcap").exists());
    std::fs::rename(&theirs, directory.path().join("always.download.pcap.1")).unwrap();
    assert!(refused(true).is_some() && !directory.path().join("always.upload.pcap").exists());

    // The older half makes room, and records are whole on either side.
    let mut files = Files::create(&stem, &both[..1], bounds(true), false).unwrap();
    assert!(files.append(Direction::Upload, one.repeat(8)).unwrap());
    let [new, old] =
        ["pcap", "pcap.1"].map(|end| directory.path().join(format!("always.upload.{end}")));
    assert_eq!(
        (length(&old), length(&new)),
        (24 + 3 * one.len() as u64, 24 + 2 * one.len() as u64)
    );
    assert_eq!(files.written(Direction::Upload), 8);
    // Of half a record nothing is written.
    assert!(files.append(Direction::Upload, one[..one.len() - 1].to_vec()).unwrap());
    assert_eq!(length(&new), 24 + 2 * one.len() as u64);
}

#[test]
fn recording_costs_little() {
    const PACKETS: u32 = 8_000;
    let bytes = v4(TCP, [10, 0, 0, 1], [192, 0, 2, 1]);
    let queued = queued(0x0800, &bytes);
    let packet = described(&queued);
    let time = |recorder: &mut Option<Recorder>| {
        let begin = Instant::now();
        for n in 0..PACKETS {
            if let Some(recorder) = std::hint::black_box(&mut *recorder) {
                recorder.arrived(std::hint::black_box(&packet), &queued, Time(n.into()));
            }
        }
        begin.elapsed().as_nanos() as f64 / f64::from(PACKETS)
    };
    let best = |mut make: Box<dyn FnMut() -> Option<Recorder>>| {
        (0..20).map(|_| time(&mut make())).fold(f64::INFINITY, f64::min)
    };
    let off = best(Box::new(|| None));
    let on = best(Box::new(|| Some(Recorder::new(room(1)))));
    println!("recording: {on:.1} ns a packet, {off:.1} while nobody does");
    if !cfg!(debug_assertions) {
        assert!(on < 100.0 && off < 5.0, "{on:.1} and {off:.1} ns");
    }
}
