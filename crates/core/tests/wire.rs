//! The parser against an independent one: packets built by etherparse must come back field by
//! field, and rewriting must leave checksums that etherparse accepts. Beside that, what must hold
//! for bytes of any kind: no panic, nothing claimed that was not there, nothing touched but the one
//! octet.

use etherparse::{
    IpHeaders, IpNumber, Ipv4Header, Ipv6FlowLabel, Ipv6Header, PacketBuilder, SlicedPacket,
    TcpHeader, TcpOptionElement, VlanId,
};
use proptest::prelude::*;

use simnel_core::flow::{Addresses, FlowHasher, HashKey};
use simnel_core::packet::Flags;
use simnel_core::wire::{
    ack_view, clear_dscp, set_ecn_ce, set_tos, AckView, Classifier, LinkLayer,
};
use simnel_core::Packet;

const LINK: LinkLayer = LinkLayer::Ethernet;
const HASHER: FlowHasher = FlowHasher::new(HashKey::new(5, 6), 128);

/// One packet as its builder wants it.
#[derive(Clone, Debug)]
struct Spec {
    src: [u8; 16],
    dst: [u8; 16],
    v6: bool,
    vlans: usize,
    ip_options: usize,
    tos: u8,
    /// The TCP flags octet and the NS bit; None for UDP.
    tcp: Option<(u8, bool)>,
    ports: (u16, u16),
    ack: u32,
    timestamp: Option<(u32, u32)>,
    sack: Vec<(u32, u32)>,
    /// An MSS option, which an ACK filter must not lose.
    mss: bool,
    payload: Vec<u8>,
}

fn specs() -> impl Strategy<Value = Spec> {
    let network = (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<bool>(), 0..3usize, 0..3usize);
    let tcp = prop::option::of((any::<u8>(), any::<bool>()));
    let transport = (any::<u8>(), tcp, any::<(u16, u16)>(), any::<u32>());
    let options =
        (prop::option::of(any::<(u32, u32)>()), prop::collection::vec(any::<(u32, u32)>(), 0..4));
    let rest = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..60));
    (network, transport, options, rest).prop_map(|(network, transport, options, rest)| {
        let (src, dst, v6, vlans, ip_options) = network;
        let (tos, tcp, ports, ack) = transport;
        let (timestamp, mut sack) = options;
        let (mss, payload) = rest;
        // 40 bytes of options: timestamp 10, SACK 2 + 8n, MSS 4, and padding.
        sack.truncate(if timestamp.is_some() { 2 } else { 3 });
        Spec {
            src,
            dst,
            v6,
            vlans,
            ip_options: ip_options * 4,
            tos,
            tcp,
            ports,
            ack,
            timestamp,
            sack,
            mss,
            payload,
        }
    })
}

impl Spec {
    fn short(address: [u8; 16]) -> [u8; 4] {
        [address[0], address[1], address[2], address[3]]
    }

    fn addresses(&self) -> Addresses {
        if self.v6 {
            Addresses::V6(self.src, self.dst)
        } else {
            Addresses::V4(Spec::short(self.src), Spec::short(self.dst))
        }
    }

    fn protocol(&self) -> IpNumber {
        if self.tcp.is_some() {
            IpNumber::TCP
        } else {
            IpNumber::UDP
        }
    }

    fn ip(&self) -> IpHeaders {
        if self.v6 {
            let header = Ipv6Header {
                traffic_class: self.tos,
                flow_label: Ipv6FlowLabel::try_new(0xabcde).unwrap(),
                payload_length: 0,
                next_header: self.protocol(),
                hop_limit: 64,
                source: self.src,
                destination: self.dst,
            };
            IpHeaders::Ipv6(header, Default::default())
        } else {
            let (src, dst) = (Spec::short(self.src), Spec::short(self.dst));
            let mut header = Ipv4Header::new(0, 64, self.protocol(), src, dst).unwrap();
            header.dscp = (self.tos >> 2).try_into().unwrap();
            header.ecn = (self.tos & 3).try_into().unwrap();
            header.options = vec![1; self.ip_options].as_slice().try_into().unwrap();
            IpHeaders::Ipv4(header, Default::default())
        }
    }

    fn tcp_header(&self, (flags, ns): (u8, bool)) -> TcpHeader {
        let mut header = TcpHeader::new(self.ports.0, self.ports.1, 1, 501);
        let bit = |mask: u16| u16::from(flags) & mask != 0;
        header.fin = bit(AckView::FIN);
        header.syn = bit(AckView::SYN);
        header.rst = bit(AckView::RST);
        header.psh = bit(AckView::PSH);
        header.ack = bit(AckView::ACK);
        header.urg = bit(AckView::URG);
        header.ece = bit(AckView::ECE);
        header.cwr = bit(AckView::CWR);
        header.ns = ns;
        header.acknowledgment_number = self.ack;
        let mut options = Vec::new();
        if let Some((value, echo)) = self.timestamp {
            options.push(TcpOptionElement::Timestamp(value, echo));
        }
        if let [first, more @ ..] = self.sack.as_slice() {
            let more = std::array::from_fn(|i| more.get(i).copied());
            options.push(TcpOptionElement::SelectiveAcknowledgement(*first, more));
        }
        if self.mss {
            options.push(TcpOptionElement::MaximumSegmentSize(1460));
        }
        header.set_options(&options).unwrap();
        header
    }

    fn frame(&self) -> Vec<u8> {
        let link = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let id = VlanId::try_new(7).unwrap();
        let network = match self.vlans {
            0 => link.ip(self.ip()),
            1 => link.single_vlan(id).ip(self.ip()),
            _ => link.double_vlan(id, id).ip(self.ip()),
        };
        let mut frame = Vec::new();
        match self.tcp {
            Some(flags) => {
                network.tcp_header(self.tcp_header(flags)).write(&mut frame, &self.payload)
            }
            None => network.udp(self.ports.0, self.ports.1).write(&mut frame, &self.payload),
        }
        .unwrap();
        frame
    }

    fn network_offset(&self) -> usize {
        14 + 4 * self.vlans
    }

    /// The packet in an IPv4 tunnel (6in4, IPIP), behind an Ethernet header.
    fn tunnelled(&self) -> Vec<u8> {
        let frame = self.frame();
        let inner = &frame[self.network_offset()..];
        let number = if self.v6 { IpNumber::IPV6 } else { IpNumber::IPV4 };
        let mut outer = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ip(IpHeaders::Ipv4(
                Ipv4Header::new(0, 64, number, [172, 16, 0, 1], [172, 16, 0, 2]).unwrap(),
                Default::default(),
            ))
            .write(&mut outer, number, inner)
            .unwrap();
        outer
    }
}

fn classify(bytes: &[u8], wire_len: usize) -> Packet {
    Classifier::new(HASHER).classify(LINK, bytes, wire_len as u32, 99)
}

/// A packet's contents as classification finds them.
fn findings(packet: &Packet) -> (u64, u32, u32, u8, u8, u8, Flags) {
    let Packet { flow, src_host, dst_host, header_len, network_offset, tos, flags, .. } = *packet;
    (flow, src_host, dst_host, header_len, network_offset, tos, flags)
}

fn with_tos(mut packet: Packet, tos: u8) -> Packet {
    packet.tos = tos;
    packet
}

/// True if etherparse reads an IPv4 header there whose checksum is right, or an IPv6 header.
fn sound(frame: &[u8]) -> bool {
    match SlicedPacket::from_ethernet(frame).unwrap().net {
        Some(etherparse::NetSlice::Ipv4(ip)) => {
            let header = ip.header().to_header();
            header.header_checksum == header.calc_header_checksum()
        }
        other => other.is_some(),
    }
}

/// Invariants for bytes of any kind, before and after they are marked.
fn stays_sound(link: LinkLayer, bytes: &[u8], wire_len: u32) -> Result<(), TestCaseError> {
    let classifier = Classifier::new(HASHER);
    let before = classifier.classify(link, bytes, wire_len, 7);
    prop_assert_eq!(before.handle, 7);
    prop_assert!(before.len >= wire_len);
    prop_assert!(before.header_len >= before.network_offset);
    let view = ack_view(link, bytes);
    prop_assert!(view.is_none() || before.flags.has(Flags::TCP));
    let mut marked = bytes.to_vec();
    let answer = set_ecn_ce(link, &mut marked);
    prop_assert_eq!(answer, before.is_ip() && before.tos & 3 != 0);
    let after = classifier.classify(link, &marked, wire_len, 7);
    prop_assert_eq!(findings(&with_tos(after, before.tos)), findings(&before));
    prop_assert_eq!(ack_view(link, &marked), view);
    Ok(())
}

proptest! {
    #[test]
    fn every_field_as_etherparse_wrote_it(spec in specs()) {
        let frame = spec.frame();
        let packet = classify(&frame, frame.len());
        let [a, b] = spec.ports.0.to_be_bytes();
        let [c, d] = spec.ports.1.to_be_bytes();
        let protocol = spec.protocol().0;
        let hash = HASHER.hash(&spec.addresses(), protocol, [a, b, c, d]);
        let mut flags = if spec.v6 { Flags::IPV6 } else { Flags::IPV4 };
        if spec.tcp.is_some() {
            flags.set(Flags::TCP);
        }
        let headers = (frame.len() - spec.payload.len()) as u8;
        let expected = (
            hash.flow,
            hash.src_host,
            hash.dst_host,
            headers,
            spec.network_offset() as u8,
            spec.tos,
            flags,
        );
        prop_assert_eq!(findings(&packet), expected);
        prop_assert_eq!((packet.handle, packet.len), (99, frame.len() as u32));

        // The same flow and hosts inside a tunnel, and the tunnel's own TOS.
        let tunnel = spec.tunnelled();
        let inside = classify(&tunnel, tunnel.len());
        prop_assert_eq!(
            (inside.flow, inside.src_host, inside.dst_host),
            (hash.flow, hash.src_host, hash.dst_host)
        );
        prop_assert_eq!((inside.tos, inside.flags.has(Flags::IPV4)), (0, true));
    }

    #[test]
    fn acknowledgements_as_etherparse_wrote_them(spec in specs()) {
        let frame = spec.frame();
        let view = ack_view(LINK, &frame);
        let expected = spec.tcp.map(|(flags, ns)| {
            let mut sack = [(0, 0); 4];
            sack[..spec.sack.len()].copy_from_slice(&spec.sack);
            AckView {
                flags: u16::from(flags) | u16::from(ns) << 8,
                has_payload: !spec.payload.is_empty(),
                expendable_options: !spec.mss,
                ack: spec.ack,
                timestamp: spec.timestamp.unwrap_or_default(),
                sack_count: spec.sack.len() as u8,
                sack,
            }
        });
        prop_assert_eq!(view, expected);
        let tunnel = spec.tunnelled();
        prop_assert_eq!(ack_view(LINK, &tunnel), expected.filter(|_| spec.v6));
        // A capture without the whole header gives no view; one without payload gives the same.
        let headers = frame.len() - spec.payload.len();
        prop_assert_eq!(ack_view(LINK, &frame[..headers]), expected);
        prop_assert_eq!(ack_view(LINK, &frame[..headers - 1]), None);
    }

    #[test]
    fn rewriting_changes_one_octet_and_keeps_the_checksum(spec in specs(), tos in any::<u8>()) {
        let original = spec.frame();
        type Rewrite<'a> = &'a dyn Fn(&mut [u8]) -> bool;
        let ce = if spec.tos & 3 == 0 { spec.tos } else { spec.tos | 3 };
        let cases: [(Rewrite, u8, bool); 3] = [
            (&|bytes| set_ecn_ce(LINK, bytes), ce, ce & 3 == 3),
            (&|bytes| clear_dscp(LINK, bytes), spec.tos & 3, true),
            (&|bytes| set_tos(LINK, bytes, tos), tos, true),
        ];
        for (rewrite, expected, answer) in cases {
            let mut frame = original.clone();
            prop_assert_eq!(rewrite(&mut frame), answer);
            prop_assert!(sound(&frame));
            let before = classify(&original, original.len());
            let after = classify(&frame, frame.len());
            prop_assert_eq!(after.tos, expected);
            prop_assert_eq!(
                findings(&with_tos(after, 0)),
                findings(&with_tos(before, 0))
            );
            // Setting the octet back restores every byte: nothing else was touched.
            prop_assert!(set_tos(LINK, &mut frame, spec.tos));
            prop_assert_eq!(&frame, &original);
        }
    }

    /// A shorter capture may say less, and never anything else.
    #[test]
    fn truncation_keeps_claims_honest(spec in specs(), tunnel in any::<bool>()) {
        let frame = if tunnel { spec.tunnelled() } else { spec.frame() };
        let whole = classify(&frame, frame.len());
        let mut last = Flags::default();
        for keep in 0..=frame.len() {
            let packet = classify(&frame[..keep], frame.len());
            prop_assert_eq!((packet.handle, packet.len), (99, frame.len() as u32));
            prop_assert!(whole.flags.has(packet.flags), "{keep}: {:?}", packet.flags);
            prop_assert!(packet.flags.has(last), "more bytes, fewer claims");
            last = packet.flags;
            prop_assert_eq!(packet.tos, if packet.is_ip() { whole.tos } else { 0 });
            prop_assert_eq!(packet.src_host != 0, packet.is_ip());
            // A cut takes ports at once or not at all, and rewriting works whenever IP was claimed.
            let mut cut = frame[..keep].to_vec();
            prop_assert_eq!(clear_dscp(LINK, &mut cut), packet.is_ip());
        }
        prop_assert_eq!(last, whole.flags);
    }

    #[test]
    fn any_bytes_are_a_packet(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        ethertype in prop::sample::select(
            vec![0u16, 0x0800, 0x86dd, 0x8100, 0x88a8, 0x8864, 0x0806],
        ),
        wire_len in any::<u32>(),
        header in any::<u8>(),
    ) {
        if let Some(field) = bytes.get_mut(12..14) {
            field.copy_from_slice(&ethertype.to_be_bytes());
        }
        for link in [LINK, LinkLayer::Ip { link_header: header }] {
            stays_sound(link, &bytes, wire_len)?;
        }
    }

    #[test]
    fn a_damaged_packet_is_a_packet(
        spec in specs(),
        tunnel in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut frame = if tunnel { spec.tunnelled() } else { spec.frame() };
        for (at, value) in damage {
            let at = at.index(frame.len().min(80));
            frame[at] = value;
        }
        stays_sound(LINK, &frame, frame.len() as u32)?;
        stays_sound(LinkLayer::Ip { link_header: 14 }, &frame[14..], frame.len() as u32)?;
    }

    /// Fragments of one datagram share a flow, whatever is in them; IPv4's hosts survive.
    #[test]
    fn fragments_share_a_flow(
        mut spec in specs(),
        offsets in prop::collection::vec(1u16..0x2000, 1..4),
    ) {
        (spec.v6, spec.vlans) = (false, 0);
        let mut frame = spec.frame();
        frame[20..22].copy_from_slice(&0x2000u16.to_be_bytes());
        let first = classify(&frame, frame.len());
        for offset in offsets {
            frame[20..22].copy_from_slice(&offset.to_be_bytes());
            for byte in frame.iter_mut().skip(34 + spec.ip_options) {
                *byte = !*byte;
            }
            let later = classify(&frame, frame.len());
            prop_assert_eq!(findings(&later), findings(&first));
            prop_assert!(!later.flags.has(Flags::TCP) && ack_view(LINK, &frame).is_none());
        }
    }
}
