//! The parser, the ACK view and the rewriting, on bytes of any kind.
//!
//! The first byte chooses the link layer, the next four the length on the wire.

#![no_main]

use libfuzzer_sys::fuzz_target;
use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::packet::Flags;
use simnel_core::wire::{ack_view, clear_dscp, set_ecn_ce, set_tos, Classifier, LinkLayer};
use simnel_fuzz::seeds;
use simnel_fuzz::support::input::Input;

fuzz_target!(init: seeds::write(seeds::frames()), |bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let link = match input.u8() {
        choice if choice & 1 == 0 => LinkLayer::Ethernet,
        choice => LinkLayer::Ip { link_header: choice },
    };
    let wire_len = input.u32();
    let frame = input.bytes(usize::MAX);
    let classifier = Classifier::new(FlowHasher::new(HashKey::new(1, 2), 64));
    let classify = |frame: &[u8]| classifier.classify(link, frame, wire_len, 0xfeed);

    let packet = classify(frame);
    let unseen = match link {
        LinkLayer::Ethernet => 0,
        LinkLayer::Ip { link_header } => u32::from(link_header),
    };
    assert_eq!((packet.handle, packet.len), (0xfeed, wire_len.saturating_add(unseen)));
    assert!(packet.header_len >= packet.network_offset);
    assert_eq!(packet.src_host != 0, packet.is_ip());
    assert!(packet.is_ip() || (packet.tos == 0 && !packet.flags.has(Flags::TCP)));

    let view = ack_view(link, frame);
    assert!(view.is_none() || packet.flags.has(Flags::TCP));

    // Marking, washing and setting: as the descriptor says, and nothing but the octet.
    let mut marked = frame.to_vec();
    assert_eq!(set_ecn_ce(link, &mut marked), packet.is_ip() && packet.tos & 3 != 0);
    let after = classify(&marked);
    assert_eq!(
        (after.flow, after.src_host, after.dst_host, after.header_len, after.flags),
        (packet.flow, packet.src_host, packet.dst_host, packet.header_len, packet.flags)
    );
    let mut expected = packet;
    expected.mark_ce();
    assert_eq!(after.tos, expected.tos);
    assert_eq!(ack_view(link, &marked), view);
    assert_eq!(clear_dscp(link, &mut marked), packet.is_ip());
    expected.wash();
    assert_eq!(classify(&marked).tos, expected.tos);
    assert_eq!(set_tos(link, &mut marked, packet.tos), packet.is_ip());
    // The first octets are restored; a checksum may come back as the other zero.
    assert_eq!(classify(&marked).tos, packet.tos);
    let changed = frame.iter().zip(&marked).filter(|(before, now)| before != now).count();
    assert!(changed <= 2);
});
