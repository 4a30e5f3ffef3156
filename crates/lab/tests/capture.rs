//! Captures: a standard reader opens them, and an independent parser finds right headers.

use std::fs::File;

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use pcap_file::pcapng::{Block, PcapNgReader};
use simnel_core::Time;
use simnel_lab::experiments::scenario::Pcapng;
use simnel_scenario::{no_files, Scenario};
use simnel_sim::Run;

const SCENARIO: &str = r#"
duration = "2s"
[line]
up = "2mbit"
down = "2mbit"
loss = "every 20"
[[traffic]]
kind = "bulk"
size = 100000
dscp = "EF"
ecn = true
[[traffic]]
kind = "ping"
[[traffic]]
kind = "ping"
protocol = "icmp"
"#;

#[test]
fn every_frame_has_right_headers_and_checksums() {
    let scenario = Scenario::parse(SCENARIO, "capture", &no_files).expect("a scenario");
    let (setup, _) = scenario.setup(None).expect("a set-up");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("run.pcapng");
    let mut run = Run::new(&setup, 1).expect("a run");
    let (capture, fate) = Pcapng::begin(File::create(&path).expect("a file")).expect("a capture");
    run.capture(Box::new(capture));
    let results = run.finish();
    fate.told().expect("room on the disk");

    let file = File::open(&path).expect("the capture");
    let mut reader = PcapNgReader::new(file).expect("pcapng");
    let (mut frames, mut data, mut sacks, mut icmp, mut udp) = (0u64, 0, 0, 0, 0);
    let mut last = std::time::Duration::ZERO;
    while let Some(block) = reader.next_block() {
        let Block::EnhancedPacket(packet) = block.expect("a good block") else { continue };
        assert!(packet.timestamp >= last, "frames are in order of time");
        last = packet.timestamp;
        // Payload is zeros and adds nothing to a checksum, except where it was cut off.
        let mut bytes = packet.data.to_vec();
        bytes.resize(packet.original_len as usize, 0);
        let frame = SlicedPacket::from_ethernet(&bytes).expect("Ethernet, IP and transport");
        let Some(NetSlice::Ipv4(ip)) = &frame.net else { panic!("not IPv4") };
        let header = ip.header().to_header();
        assert_eq!(header.header_checksum, header.calc_header_checksum());
        match frame.transport {
            Some(TransportSlice::Tcp(tcp)) => {
                let sum = tcp.to_header().calc_checksum_ipv4(&header, tcp.payload());
                assert_eq!(Ok(tcp.checksum()), sum);
                assert_eq!(header.dscp.value(), 46);
                data += u64::from(!tcp.payload().is_empty());
                sacks += tcp
                    .options_iterator()
                    .filter(|o| {
                        matches!(o, Ok(etherparse::TcpOptionElement::SelectiveAcknowledgement(..)))
                    })
                    .count();
            }
            Some(TransportSlice::Udp(datagram)) => {
                let header = datagram.to_header();
                assert_eq!(usize::from(header.length), 8 + datagram.payload().len());
                udp += 1;
            }
            Some(TransportSlice::Icmpv4(_)) => icmp += 1,
            _ => panic!("no transport header"),
        }
        frames += 1;
    }
    // Every packet that passed is there, but for those whose last bit is not sent at the end.
    let sending = results.bottleneck_packets - frames;
    assert!(sending <= 2, "{frames} of {}", results.bottleneck_packets);
    assert!(data >= 69 && sacks > 0 && icmp > 30 && udp > 30, "{data} {sacks} {icmp} {udp}");
    assert!(Time(last.as_nanos() as u64) <= results.window.1);
}
