//! Hand-made frames, one for each thing that the parser claims to know.

use std::vec;
use std::vec::Vec;

use proptest::prelude::*;

use super::ip::MAX_HEADERS;
use super::*;
use crate::flow::HashKey;

const A: [u8; 4] = [10, 0, 0, 1];
const B: [u8; 4] = [192, 0, 2, 7];
const PORTS: [u8; 4] = [0x1f, 0x90, 1, 187];

fn a6() -> [u8; 16] {
    core::array::from_fn(|i| 0x20 + i as u8)
}
fn b6() -> [u8; 16] {
    core::array::from_fn(|i| 0xf0 - i as u8)
}

fn classifier() -> Classifier {
    Classifier::new(FlowHasher::new(HashKey::new(1, 2), 128))
}

fn classify(frame: &[u8]) -> Packet {
    classifier().classify(LinkLayer::Ethernet, frame, frame.len() as u32, 77)
}

/// The hashes that the five-tuple should give.
fn hash(addresses: Addresses, protocol: u8, ports: [u8; 4]) -> FlowHash {
    classifier().hasher.hash(&addresses, protocol, ports)
}

fn hashes(packet: &Packet) -> FlowHash {
    FlowHash { flow: packet.flow, src_host: packet.src_host, dst_host: packet.dst_host }
}

/// Everything that classification fills.
fn fields(packet: &Packet) -> (FlowHash, [u64; 8]) {
    let Packet { handle, len, truesize, header_len, network_offset, tos, flags, .. } = *packet;
    let rest = [handle, len.into(), truesize.into(), header_len.into(), network_offset.into()];
    let [a, b, c, d, e] = rest;
    (hashes(packet), [a, b, c, d, e, tos.into(), flags.0.into(), packet.gso_segs.into()])
}

fn ethernet(ethertype: u16, network: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(network);
    frame
}

fn v4_with(protocol: u8, fragment: u16, options: &[u8], body: &[u8]) -> Vec<u8> {
    let length = 20 + options.len();
    let mut packet = vec![0x40 | (length / 4) as u8, 0xb9];
    packet.extend(((length + body.len()) as u16).to_be_bytes());
    packet.extend([0x12, 0x34]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0]);
    packet.extend(A.iter().chain(&B).chain(options).chain(body));
    packet
}

fn v4(protocol: u8, body: &[u8]) -> Vec<u8> {
    v4_with(protocol, 0x4000, &[], body)
}

fn v6(next: u8, body: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x6b, 0x91, 0x23, 0x45];
    packet.extend((body.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    packet.extend(a6().iter().chain(&b6()).chain(body));
    packet
}

fn tcp(flags: u16, options: &[u8], payload: usize) -> Vec<u8> {
    assert_eq!(options.len() % 4, 0);
    let mut segment = PORTS.to_vec();
    segment.extend([0, 0, 0, 1, 0xaa, 0xbb, 0xcc, 0xdd]);
    segment.extend((((5 + options.len() as u16 / 4) << 12) | flags).to_be_bytes());
    segment.extend([1, 0xf5, 0, 0, 0, 0]);
    segment.extend(options);
    segment.resize(segment.len() + payload, 0x55);
    segment
}

fn udp(payload: usize) -> Vec<u8> {
    let mut datagram = PORTS.to_vec();
    datagram.resize(8 + payload, 0);
    datagram
}

/// An IPv6 extension header of `8 * units` bytes.
fn extension(next: u8, units: u8) -> Vec<u8> {
    let mut header = vec![next, units - 1];
    header.resize(8 * usize::from(units), 0);
    header
}

const IN_V4: Addresses = Addresses::V4(A, B);
fn in_v6() -> Addresses {
    Addresses::V6(a6(), b6())
}

#[test]
fn plain_packets() {
    let packet = classify(&ethernet(0x0800, &v4(6, &tcp(0x10, &[1, 1, 1, 0], 5))));
    assert_eq!(hashes(&packet), hash(IN_V4, 6, PORTS));
    assert_eq!((packet.handle, packet.len, packet.truesize), (77, 63, 768));
    assert_eq!((packet.network_offset, packet.header_len, packet.tos), (14, 58, 0xb9));
    assert_eq!((packet.flags, packet.adj_len), (Flags::IPV4 | Flags::TCP, 63));

    let packet = classify(&ethernet(0x86dd, &v6(17, &udp(100))));
    assert_eq!(hashes(&packet), hash(in_v6(), 17, PORTS));
    assert_eq!((packet.header_len, packet.tos, packet.flags), (62, 0xb9, Flags::IPV6));
}

#[test]
fn bare_ip_counts_the_link_header_that_is_not_there() {
    for network in [v4(6, &tcp(0x10, &[], 0)), v4_with(17, 0, &[1; 4], &udp(9)), v6(17, &udp(0))] {
        let framed = ethernet(if network[0] >> 4 == 4 { 0x0800 } else { 0x86dd }, &network);
        let link = LinkLayer::Ip { link_header: 14 };
        let bare = classifier().classify(link, &network, network.len() as u32, 77);
        assert_eq!(fields(&bare), fields(&classify(&framed)));
    }
    let odd = classifier().classify(LinkLayer::Ip { link_header: 255 }, &[0x12], u32::MAX, 1);
    assert_eq!((odd.len, odd.network_offset, odd.header_len), (u32::MAX, 255, 255));
}

#[test]
fn tags_and_sessions_move_the_network_header_and_nothing_else() {
    let network = v4(17, &udp(30));
    let plain = classify(&ethernet(0x0800, &network));
    let tag = |inner: u16, rest: &[u8]| {
        let mut tagged = vec![0x20, 7];
        tagged.extend(inner.to_be_bytes());
        tagged.extend(rest);
        tagged
    };
    let pppoe = |protocol: [u8; 2], rest: &[u8]| {
        let mut session = vec![0x11, 0, 0, 9];
        session.extend((rest.len() as u16 + 2).to_be_bytes());
        session.extend(protocol.iter().chain(rest));
        session
    };
    let six = v6(17, &udp(30));
    let cases = [
        (18, ethernet(0x8100, &tag(0x0800, &network))),
        (22, ethernet(0x88a8, &tag(0x8100, &tag(0x0800, &network)))),
        (22, ethernet(0x8864, &pppoe([0, 0x21], &network))),
        (26, ethernet(0x8100, &tag(0x8864, &pppoe([0, 0x21], &network)))),
        (22, ethernet(0x8864, &pppoe([0, 0x57], &six))),
    ];
    for (offset, frame) in cases {
        let packet = classify(&frame);
        let v6 = packet.flags.has(Flags::IPV6);
        assert_eq!(packet.network_offset, offset);
        assert_eq!(packet.header_len, offset + if v6 { 48 } else { 28 });
        let expected = if v6 { hash(in_v6(), 17, PORTS) } else { hashes(&plain) };
        assert_eq!(hashes(&packet), expected);
    }
    // One tag too many is no IP packet any more, and neither is PPP's own control traffic.
    let mut frame = network.clone();
    for _ in 0..MAX_VLAN_TAGS {
        frame = tag(if frame.len() == network.len() { 0x0800 } else { 0x8100 }, &frame);
    }
    assert!(classify(&ethernet(0x8100, &frame)).is_ip());
    assert!(!classify(&ethernet(0x8100, &tag(0x8100, &frame))).is_ip());
    assert!(!classify(&ethernet(0x8864, &pppoe([0xc0, 0x21], &network))).is_ip());
}

#[test]
fn options_and_extension_headers_are_stepped_over() {
    let packet = classify(&ethernet(0x0800, &v4_with(6, 0, &[1; 12], &tcp(0x10, &[], 0))));
    assert_eq!(hashes(&packet), hash(IN_V4, 6, PORTS));
    assert_eq!((packet.header_len, packet.flags), (14 + 32 + 20, Flags::IPV4 | Flags::TCP));

    let mut body = [extension(43, 1), extension(60, 2), extension(51, 3)].concat();
    // Authentication header: 4-byte units, less two.
    body.extend([44, 4]);
    body.resize(body.len() + 22, 0);
    // A fragment header of a packet that is whole.
    body.extend(extension(6, 1));
    body.extend(tcp(0x10, &[], 3));
    let packet = classify(&ethernet(0x86dd, &v6(0, &body)));
    assert_eq!(hashes(&packet), hash(in_v6(), 6, PORTS));
    assert_eq!(packet.header_len, 14 + 40 + 8 + 16 + 24 + 24 + 8 + 20);
    assert!(packet.flags.has(Flags::TCP));

    // More headers than anyone sends: still a packet with its hosts.
    let endless = vec![extension(0, 1); MAX_HEADERS + 1].concat();
    let packet = classify(&ethernet(0x86dd, &v6(0, &endless)));
    assert_eq!(hashes(&packet), hash(in_v6(), 0, [0; 4]));
    // IPv4 has no such headers.
    let packet = classify(&ethernet(0x0800, &v4(60, &[extension(17, 1), udp(0)].concat())));
    assert_eq!(hashes(&packet), hash(IN_V4, 60, [0; 4]));
}

#[test]
fn fragments_of_one_datagram_share_a_flow_without_ports() {
    let (first, later) = (udp(64), vec![9; 64]);
    let flows = [(0x2000, &first), (0x2008, &later), (0x0010, &later)]
        .map(|(fragment, body)| classify(&ethernet(0x0800, &v4_with(17, fragment, &[], body))));
    for packet in flows {
        assert_eq!(hashes(&packet), hash(IN_V4, 17, [0; 4]));
        assert_eq!((packet.header_len, packet.flags), (34, Flags::IPV4));
    }
    // IPv6: the number behind the fragment header need not be the same in all of them.
    let fragment = |next: u8, offset: u16, body: &[u8]| {
        let mut header = vec![next, 0];
        header.extend(offset.to_be_bytes());
        header.extend([0, 0, 0, 9]);
        header.extend(body);
        classify(&ethernet(0x86dd, &v6(44, &header)))
    };
    for packet in [fragment(60, 1, &first), fragment(17, 65, &later), fragment(17, 128, &later)] {
        assert_eq!(hashes(&packet), hash(in_v6(), 44, [0; 4]));
    }
    let tcp_fragment = fragment(6, 1, &tcp(0x10, &[], 0));
    assert!(!tcp_fragment.flags.has(Flags::TCP));
}

/// Offsets of fragments count in eights of a byte, to 65,528; the number of a fragment header means
/// nothing in IPv4.
#[test]
fn whatever_is_set_but_not_to_fragment_makes_a_fragment() {
    for fragment in [1, 0x00ff, 0x0100, 0x1f00, 0x3f00, 0x2000, 0x7f00] {
        let packet = classify(&ethernet(0x0800, &v4_with(17, fragment, &[], &udp(9))));
        assert_eq!(hashes(&packet), hash(IN_V4, 17, [0; 4]), "{fragment:#x}");
    }
    for whole in [0, 0x4000, 0x8000] {
        let packet = classify(&ethernet(0x0800, &v4_with(17, whole, &[], &udp(9))));
        assert_eq!(hashes(&packet), hash(IN_V4, 17, PORTS), "{whole:#x}");
    }
    let header = [vec![17, 0, 0, 0, 0, 0, 0, 9], udp(4)].concat();
    let packet = classify(&ethernet(0x0800, &v4(44, &header)));
    assert_eq!((hashes(&packet), packet.header_len), (hash(IN_V4, 44, [0; 4]), 34));
}

/// Authentication headers count their length in fours, less two (RFC 4302, section 2.2).
#[test]
fn behind_an_authentication_header_of_any_length_stand_the_ports() {
    for units in [1u8, 4, 5, 7] {
        let mut header = vec![17, units];
        header.resize(4 * (usize::from(units) + 2), 0);
        header.extend(udp(3));
        let packet = classify(&ethernet(0x0800, &v4(51, &header)));
        assert_eq!(hashes(&packet), hash(IN_V4, 17, PORTS), "{units}");
        assert_eq!(usize::from(packet.header_len), 14 + 20 + header.len() - 3, "{units}");
    }
}

/// Frames whose EtherType or protocol, and whose packet, are of the same version of IP or of two.
#[test]
fn frames_that_say_one_version_and_carry_another_are_not_ip() {
    let (four, six) = (v4(17, &udp(9)), v6(17, &udp(9)));
    let session = |protocol: u8, network: &[u8]| {
        let mut frame = vec![0x11, 0, 0, 1, 0, 0, 0, protocol];
        frame.extend(network);
        frame
    };
    for (ethertype, body, flags) in [
        (0x0800, four.clone(), Flags::IPV4),
        (0x0800, six.clone(), Flags::default()),
        (0x86dd, six.clone(), Flags::IPV6),
        (0x86dd, four.clone(), Flags::default()),
        (0x8864, session(0x21, &four), Flags::IPV4),
        (0x8864, session(0x21, &six), Flags::default()),
        (0x8864, session(0x57, &six), Flags::IPV6),
        (0x8864, session(0x57, &four), Flags::default()),
    ] {
        let frame = ethernet(ethertype, &body);
        assert_eq!(classify(&frame).flags, flags, "{ethertype:#x}: {:#x}", body[0]);
    }
}

#[test]
fn a_frame_without_ip_has_its_link_addresses_and_its_ethertype_as_keys() {
    let mut frame: Vec<u8> = (1..=12).collect();
    frame.extend([0x88, 0xb5, 9, 9, 9]);
    let (mut src, mut dst) = ([0; 16], [0; 16]);
    dst[..6].copy_from_slice(&[1, 2, 3, 4, 5, 6]);
    src[..6].copy_from_slice(&[7, 8, 9, 10, 11, 12]);
    let keys =
        |src, dst, ports| FlowKeys { addresses: Addresses::V6(src, dst), protocol: None, ports };
    let whole = flow_keys(LinkLayer::Ethernet, &frame);
    assert_eq!(whole, keys(src, dst, [0x88, 0xb5, 0, 0]));
    let packet = classify(&frame);
    assert_eq!(hashes(&packet), classifier().hash(&whole));
    // As far as they are captured.
    src[2..].fill(0);
    assert_eq!(flow_keys(LinkLayer::Ethernet, &frame[..8]), keys(src, dst, [0; 4]));
    let bare = flow_keys(LinkLayer::Ip { link_header: 14 }, &[0x12; 30]);
    assert_eq!(bare, keys([0; 16], [0; 16], [0; 4]));
}

/// Bytes of headers that are not all there do not count.
#[test]
fn a_header_that_is_cut_off_has_ports_and_no_length() {
    for (protocol, body, headers) in [
        (17, 8, 8),
        (17, 7, 0),
        (17, 4, 0),
        (136, 8, 8),
        (136, 7, 0),
        (6, 20, 20),
        (6, 19, 0),
        (6, 4, 0),
    ] {
        let transport = if protocol == 6 { tcp(0x10, &[], 0) } else { udp(0) };
        let packet = classify(&ethernet(0x0800, &v4(protocol, &transport[..body])));
        assert_eq!(hashes(&packet), hash(IN_V4, protocol, PORTS), "{protocol} {body}");
        assert_eq!(usize::from(packet.header_len), 34 + headers, "{protocol} {body}");
    }
}

#[test]
fn tunnels_are_told_apart_by_their_inner_addresses() {
    let inner4 = v4(17, &udp(4));
    let inner6 = v6(6, &tcp(0x10, &[], 0));
    let other_end = Addresses::V4([172, 16, 0, 1], [172, 16, 0, 2]);
    let outer4 = |protocol, body: &[u8]| {
        let mut packet = v4(protocol, body);
        packet[12..20].copy_from_slice(&[172, 16, 0, 1, 172, 16, 0, 2]);
        classify(&ethernet(0x0800, &packet))
    };
    let six_in_four = outer4(41, &inner6);
    assert_eq!(hashes(&six_in_four), hash(in_v6(), 6, PORTS));
    assert_eq!(six_in_four.flags, Flags::IPV4 | Flags::TCP);
    assert_eq!(six_in_four.header_len, 14 + 20 + 40 + 20);
    assert_eq!(hashes(&outer4(4, &inner4)), hash(IN_V4, 17, PORTS));

    let four_in_six = classify(&ethernet(0x86dd, &v6(4, &inner4)));
    assert_eq!(hashes(&four_in_six), hash(IN_V4, 17, PORTS));
    assert_eq!(four_in_six.flags, Flags::IPV6);
    let six_in_six = classify(&ethernet(0x86dd, &v6(41, &v6(60, &inner6))));
    assert_eq!(six_in_six.flags, Flags::IPV6);

    // A fragment of a tunnel, or a tunnel of nonsense, has its ends only.
    assert_eq!(hashes(&outer4(41, &[0x60; 20])), hash(other_end, 41, [0; 4]));
    let inside = outer4(4, &v4_with(17, 0x2000, &[], &udp(8)));
    assert_eq!((hashes(&inside), inside.header_len), (hash(IN_V4, 17, [0; 4]), 54));
    let mut fragment = v4_with(41, 0x2000, &[], &inner6);
    fragment[12..20].copy_from_slice(&[172, 16, 0, 1, 172, 16, 0, 2]);
    assert_eq!(hashes(&classify(&ethernet(0x0800, &fragment))), hash(other_end, 41, [0; 4]));
}

#[test]
fn ports_where_there_are_ports() {
    for protocol in [6, 17, 33, 132, 136] {
        let packet = classify(&ethernet(0x0800, &v4(protocol, &tcp(0, &[], 0))));
        assert_eq!(hashes(&packet), hash(IN_V4, protocol, PORTS), "{protocol}");
    }
    for protocol in [1, 47, 50, 58] {
        let packet = classify(&ethernet(0x86dd, &v6(protocol, &tcp(0, &[], 0))));
        assert_eq!(hashes(&packet), hash(in_v6(), protocol, [0; 4]), "{protocol}");
    }
}

#[test]
fn no_ip_is_a_stable_flow_without_hosts() {
    let arp = classify(&ethernet(0x0806, &[0; 28]));
    assert_eq!((arp.flags, arp.tos, arp.src_host, arp.dst_host), (Flags::ARP, 0, 0, 0));
    assert_eq!((arp.network_offset, arp.header_len), (14, 14));
    let other = classify(&ethernet(0x88cc, &[0; 28]));
    assert_eq!(other.flags, Flags::default());
    assert_ne!(arp.flow, other.flow);
    assert_eq!(other.flow, classify(&ethernet(0x88cc, &[1; 90])).flow);
    let mut elsewhere = ethernet(0x88cc, &[0; 28]);
    elsewhere[11] ^= 1;
    assert_ne!(other.flow, classify(&elsewhere).flow);
    // 802.3: what would be the EtherType is a length.
    assert_eq!(classify(&ethernet(38, &[0; 46])).flow, classify(&ethernet(39, &[0; 46])).flow);
}

#[test]
fn damage_costs_certainty_only() {
    let good = v4(17, &udp(8));
    let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut packet = good.clone();
        change(&mut packet);
        classify(&ethernet(0x0800, &packet))
    };
    // Header length below 20, another version than the EtherType's, a header cut short: not IP.
    for packet in [
        damaged(&|p| p[0] = 0x44),
        damaged(&|p| p[0] = 0x65),
        damaged(&|p| p.truncate(19)),
        damaged(&|p| p.clear()),
    ] {
        assert_eq!((packet.flags, packet.src_host, packet.handle), (Flags::default(), 0, 77));
    }
    // A total length below the header's: hosts, but no ports.
    let packet = damaged(&|p| p[3] = 19);
    assert_eq!(hashes(&packet), hash(IN_V4, 17, [0; 4]));
    // Ports lie beyond the stated length: that is padding, not a header.
    let packet = damaged(&|p| p[3] = 23);
    assert_eq!((hashes(&packet), packet.header_len), (hash(IN_V4, 17, [0; 4]), 34));
    // Zero stands for a super-packet beyond 64 kB.
    assert_eq!(hashes(&damaged(&|p| p[3] = 0)), hash(IN_V4, 17, PORTS));
    for stated in 1..20 {
        let mut packet = v6(6, &tcp(0x10, &[], 0));
        packet[5] = stated;
        assert_eq!(classify(&ethernet(0x86dd, &packet)).flags, Flags::IPV6);
        let mut packet = v4(6, &tcp(0x10, &[], 0));
        packet[3] = 20 + stated;
        assert_eq!(classify(&ethernet(0x0800, &packet)).flags, Flags::IPV4);
    }
    let mut jumbo = v6(6, &tcp(0x10, &[], 0));
    jumbo[5] = 0;
    assert_eq!(hashes(&classify(&ethernet(0x86dd, &jumbo))), hash(in_v6(), 6, PORTS));
    // Captured up to the ports.
    assert_eq!(hashes(&damaged(&|p| p.truncate(24))), hash(IN_V4, 17, PORTS));
    // A TCP header length below 20 is no TCP header; its ports still are.
    let mut segment = tcp(0x10, &[], 0);
    segment[12] = 0x40;
    let packet = classify(&ethernet(0x0800, &v4(6, &segment)));
    assert_eq!((hashes(&packet), packet.flags), (hash(IN_V4, 6, PORTS), Flags::IPV4));
    for length in 0..14 {
        assert_eq!(classify(&ethernet(0x0800, &good)[..length]).flags, Flags::default());
    }
}

#[test]
fn a_syn_announces_its_segments_and_nothing_else_does() {
    let announced = |flags, options: &[u8]| {
        announced_segment(LinkLayer::Ethernet, &ethernet(0x0800, &v4(6, &tcp(flags, options, 0))))
    };
    const SIZE: [u8; 4] = [2, 4, 0x05, 0xb4];
    assert_eq!(announced(0x02, &SIZE), Some(1460));
    assert_eq!(announced(0x12, &[&[1, 3, 3, 7], &SIZE[..]].concat()), Some(1460));
    assert_eq!(announced(0x10, &SIZE), None);
    // None said, the end of options before it, a length that leads nowhere, another length.
    for options in [&[1; 4][..], &[0, 2, 4, 5], &[3, 0, 2, 4], &[3, 90, 2, 4], &[2, 3, 5, 1]] {
        assert_eq!(announced(0x02, options), None, "{options:?}");
    }
}

#[test]
fn an_acknowledgement_is_awaited_behind_syn_data_and_fin() {
    const SYN: u16 = AckView::SYN;
    const FIN: u16 = AckView::FIN;
    let frame = |flags, payload| ethernet(0x0800, &v4(6, &tcp(flags, &[1; 12], payload)));
    let awaited = |frame: &[u8]| awaited_ack(LinkLayer::Ethernet, frame);
    let sequence = u32::from_be_bytes(tcp(0, &[], 0)[4..8].try_into().unwrap());
    for (flags, payload, behind) in
        [(SYN, 0, 1), (SYN, 9, 10), (0x10, 9, 9), (0x10 | FIN, 0, 1), (FIN | SYN, 9, 11)]
    {
        let frame = frame(flags, payload);
        assert_eq!(awaited(&frame), Some(sequence.wrapping_add(behind)));
        // Captured without its data; and without some of its fixed header.
        assert_eq!(awaited(&frame[..frame.len() - payload]), awaited(&frame));
        assert_eq!(awaited(&frame[..14 + 20 + 19]), None);
    }
    assert_eq!(awaited(&frame(0x10, 0)), None);
    for words in [0, 4] {
        let mut impossible = frame(SYN, 9);
        impossible[14 + 20 + 12] = words << 4;
        assert_eq!(awaited(&impossible), None);
    }
    let mut round = frame(0x10, 9);
    round[14 + 20 + 4..][..4].fill(0xff);
    assert_eq!(awaited(&round), Some(8));
}

mod acks {
    use super::*;

    const TIMESTAMP: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8];

    fn view(options: &[u8]) -> AckView {
        ack_view(LinkLayer::Ethernet, &ethernet(0x0800, &v4(6, &tcp(0x10, options, 0)))).unwrap()
    }

    #[test]
    fn a_plain_acknowledgement() {
        let view = view(&TIMESTAMP);
        let expected = AckView {
            flags: AckView::ACK,
            expendable_options: true,
            ack: 0xaabb_ccdd,
            timestamp: (9, 8),
            ..AckView::default()
        };
        assert_eq!(view, expected);
    }

    #[test]
    fn seen_through_every_wrapping_that_counts_and_no_other() {
        let segment = tcp(0x0f50, &TIMESTAMP, 7);
        let link = LinkLayer::Ethernet;
        let six = v6(6, &segment);
        for frame in [
            ethernet(0x0800, &v4(6, &segment)),
            ethernet(0x0800, &v4_with(6, 0, &[1; 8], &segment)),
            ethernet(0x86dd, &six),
            ethernet(0x0800, &v4(41, &six)),
        ] {
            let view = ack_view(link, &frame).unwrap();
            assert_eq!((view.flags, view.has_payload), (0x0f50, true));
            // All but the payload must be there.
            assert_eq!(ack_view(link, &frame[..frame.len() - 7]), Some(view));
            assert_eq!(ack_view(link, &frame[..frame.len() - 8]), None);
        }
        let wrapped = [extension(6, 1), segment.clone()].concat();
        for frame in [
            ethernet(0x86dd, &v6(60, &wrapped)),
            ethernet(0x86dd, &v6(44, &wrapped)),
            ethernet(0x0800, &v4_with(6, 0x2000, &[], &segment)),
            ethernet(0x0800, &v4(4, &v4(6, &segment))),
            ethernet(0x86dd, &v6(41, &six)),
            ethernet(0x0800, &v4(17, &segment)),
            ethernet(0x0806, &v4(6, &segment)),
        ] {
            assert_eq!(ack_view(link, &frame), None);
        }
        let bare = LinkLayer::Ip { link_header: 14 };
        assert!(ack_view(bare, &six).unwrap().has_payload);
    }

    #[test]
    fn padding_is_not_payload_and_a_short_length_is_not_believed() {
        let mut frame = ethernet(0x0800, &v4(6, &tcp(0x10, &[], 0)));
        frame.resize(60, 0);
        assert!(!ack_view(LinkLayer::Ethernet, &frame).unwrap().has_payload);
        for total in [0, 19, 39] {
            frame[17] = total;
            assert_eq!(ack_view(LinkLayer::Ethernet, &frame), None);
        }
    }

    #[test]
    fn options_that_may_go_and_options_that_may_not() {
        let sack = [1, 1, 5, 18, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4];
        let seen = view(&sack);
        assert_eq!((seen.sack_count, seen.sack[..2].to_vec()), (2, vec![(1, 2), (3, 4)]));
        assert!(seen.expendable_options);

        let mut md5 = vec![19, 18];
        md5.resize(20, 1);
        for expendable in [
            &[][..],
            &md5,
            &[5, 2, 1, 1],
            // The end of the list hides what follows; a broken length stops the walk.
            &[0, 2, 4, 5, 180, 0, 0, 0],
            &[1, 1, 2, 1],
            &[1, 1, 2, 5],
            &[1, 1, 1, 2],
        ] {
            assert!(view(expendable).expendable_options, "{expendable:?}");
        }
        let twice = [TIMESTAMP, TIMESTAMP].concat();
        for kept in [
            &[2, 4, 5, 180][..],
            &[3, 3, 7, 0],
            &[4, 2, 1, 1],
            &[34, 2, 1, 1],
            &[254, 4, 0, 0],
            &[5, 4, 0, 0],
            &[5, 6, 0, 0, 0, 0, 1, 1],
            &[8, 4, 0, 0],
            &[2, 4, 5, 180, 1, 1, 2, 1],
            &twice,
        ] {
            assert!(!view(kept).expendable_options, "{kept:?}");
        }
        assert_eq!(view(&[8, 4, 0, 0]).timestamp, (0, 0));
    }
}

#[test]
fn the_payload_is_what_follows_the_headers_that_are_known() {
    let payload_of = |frame: &[u8]| payload(LinkLayer::Ethernet, frame).map(<[u8]>::len);
    assert_eq!(payload_of(&ethernet(0x0800, &v4(17, &udp(9)))), Some(9));
    assert_eq!(payload_of(&ethernet(0x0800, &v4(6, &tcp(0x10, &[1; 12], 5)))), Some(5));
    assert_eq!(payload_of(&ethernet(0x86dd, &v6(17, &udp(0)))), Some(0));
    let vlan = [&[0, 7, 8, 0][..], &v4(17, &udp(3))].concat();
    assert_eq!(payload_of(&ethernet(0x8100, &vlan)), Some(3));
    assert_eq!(payload_of(&ethernet(0x0806, &[0; 28])), None);
    let bare = v4(17, &udp(9));
    assert_eq!(payload(LinkLayer::Ip { link_header: 14 }, &bare).map(<[u8]>::len), Some(9));
}

#[test]
fn a_frame_without_ip_is_told_by_its_link_addresses() {
    let frame: Vec<u8> = (1..=12).chain([0x88, 0xb5, 0, 0]).collect();
    let keys = flow_keys(LinkLayer::Ethernet, &frame);
    let Addresses::V6(src, dst) = keys.addresses else { panic!() };
    assert_eq!((&dst[..6], &src[..6]), (&frame[..6], &frame[6..12]));
    assert!(dst[6..].iter().chain(&src[6..]).all(|octet| *octet == 0));
    assert_eq!((keys.protocol, keys.ports), (None, [0x88, 0xb5, 0, 0]));
}

proptest! {
    /// Whatever the fast paths take, the general path sees alike, and the keys give its hashes.
    #[test]
    fn fast_and_general_path_agree(
        shape in 0usize..6,
        payload in 0usize..80,
        changes in prop::collection::vec((0usize..70, any::<u8>()), 0..4),
        keep in 0usize..200,
        bare in any::<bool>(),
    ) {
        let network = match shape {
            0 => v4(6, &tcp(0x10, &[1; 12], payload)),
            1 => v4(17, &udp(payload)),
            2 => v6(6, &tcp(0x18, &[], payload)),
            3 => v6(17, &udp(payload)),
            4 => v4(41, &v6(17, &udp(payload))),
            _ => v6(60, &[extension(6, 1), tcp(0x10, &[], payload)].concat()),
        };
        let mut frame = if bare {
            network
        } else {
            ethernet(if network[0] >> 4 == 4 { 0x0800 } else { 0x86dd }, &network)
        };
        for (at, value) in changes {
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
        }
        let link = if bare { LinkLayer::Ip { link_header: 14 } } else { LinkLayer::Ethernet };
        let seen = &frame[..keep.min(frame.len())];
        let fast = classifier().classify(link, seen, 500, 3);
        let general = classifier().classify_any(link, seen, 500, 3);
        prop_assert_eq!(fields(&fast), fields(&general));
        prop_assert_eq!(classifier().hash(&flow_keys(link, seen)), hashes(&fast));
        if bare {
            let mut in_place = Packet::new(3, 514);
            classifier().describe(seen, &mut in_place);
            prop_assert_eq!(fields(&in_place), fields(&fast));
            describe_network(seen, &mut in_place);
            prop_assert_eq!(in_place.tos, fast.tos);
            prop_assert_eq!(in_place.flags.0, fast.flags.0 & !Flags::TCP.0);
        }
    }
}
