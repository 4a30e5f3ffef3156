//! Nanoseconds that `Classifier::classify` takes for a packet, over fixed mixes of 1000 frames.
//! Beside each time stands a hash of what it returned, so that nobody optimises it into doing
//! nothing.
//!
//! `cargo bench -p simnel-core --bench classify`. Median and best of 40 rounds. `plain` is the fast
//! path as a bridge meets it, `bare` as the gateway does (no link header among the bytes). `home`
//! is what a home line carries. `odd` takes the general path throughout.

use std::hint::black_box;
use std::time::Instant;

use simnel_core::flow::{FlowHasher, HashKey};
use simnel_core::random::Random;
use simnel_core::wire::{Classifier, LinkLayer};

const FRAMES: usize = 1000;
const ROUNDS: usize = 40;
/// Passes over the frames in one round: long enough for the clock not to matter.
const PASSES: usize = 50;
/// Bytes of each packet that the gateway copies.
const CAPTURE: usize = 128;

#[derive(Clone, Copy)]
enum Kind {
    Tcp4,
    Udp4,
    Tcp6,
    Udp6,
    Vlan,
    SixInFour,
    Options,
    Fragment6,
    Arp,
}

fn main() {
    use Kind::*;
    let framed = LinkLayer::Ethernet;
    let bare = LinkLayer::Ip { link_header: 14 };
    let mixes: [(&str, LinkLayer, &[Kind]); 6] = [
        ("plain v4", framed, &[Tcp4, Udp4]),
        ("bare v4", bare, &[Tcp4, Udp4]),
        ("plain v6", framed, &[Tcp6, Udp6]),
        ("bare v6", bare, &[Tcp6, Udp6]),
        ("home", framed, &[Tcp4, Tcp4, Tcp4, Udp4, Udp4, Tcp6, Tcp6, Udp6, Udp6, Vlan, Arp]),
        ("odd", framed, &[Vlan, SixInFour, Options, Fragment6, Arp]),
    ];
    let classifier = Classifier::new(FlowHasher::new(HashKey::new(1, 2), 128));
    println!("{:<10} {:>10} {:>10}  hash of results", "mix", "median ns", "best ns");
    for (name, link, kinds) in mixes {
        let mut random = Random::new(7);
        let frames: Vec<Vec<u8>> = (0..FRAMES)
            .map(|_| frame(kinds[random.below(kinds.len() as u32) as usize], &mut random))
            .map(|frame| if link == bare { frame[14..].to_vec() } else { frame })
            .collect();
        let mut digest = 0u64;
        let mut times: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                digest = 0;
                let start = Instant::now();
                for _ in 0..PASSES {
                    for (handle, frame) in black_box(&frames).iter().enumerate() {
                        let seen = &frame[..frame.len().min(CAPTURE)];
                        let packet = classifier.classify(
                            black_box(link),
                            seen,
                            frame.len() as u32,
                            handle as u64,
                        );
                        digest = digest.rotate_left(5)
                            ^ packet.flow
                            ^ u64::from(packet.src_host ^ packet.dst_host)
                            ^ u64::from(packet.tos) << 32
                            ^ u64::from(packet.header_len) << 40
                            ^ u64::from(packet.flags.0) << 48;
                    }
                }
                start.elapsed().as_nanos() as f64 / (PASSES * FRAMES) as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{name:<10} {:>10.1} {:>10.1}  {digest:016x}", times[ROUNDS / 2], times[0]);
    }
}

/// A frame of random addresses, ports and size.
fn frame(kind: Kind, random: &mut Random) -> Vec<u8> {
    let payload = random.below(1200) as usize;
    let transport = |protocol: u8, random: &mut Random| {
        let mut bytes = random.u32().to_be_bytes().to_vec();
        bytes.resize(if protocol == 6 { 32 } else { 8 }, 0);
        if protocol == 6 {
            (bytes[12], bytes[13]) = (0x80, 0x10);
        }
        bytes.resize(bytes.len() + payload, 0);
        bytes
    };
    match kind {
        Kind::Tcp4 => link(0x0800, &v4(6, &[], &transport(6, random), random)),
        Kind::Udp4 => link(0x0800, &v4(17, &[], &transport(17, random), random)),
        Kind::Tcp6 => link(0x86dd, &v6(6, &transport(6, random), random)),
        Kind::Udp6 => link(0x86dd, &v6(17, &transport(17, random), random)),
        Kind::Options => link(0x0800, &v4(6, &[1, 1, 1, 0], &transport(6, random), random)),
        Kind::SixInFour => {
            let inner = v6(6, &transport(6, random), random);
            link(0x0800, &v4(41, &[], &inner, random))
        }
        Kind::Fragment6 => {
            let mut body = vec![17, 0, 0, 1, 0, 0, 0, 9];
            body.extend(transport(17, random));
            link(0x86dd, &v6(44, &body, random))
        }
        Kind::Vlan => {
            let mut tagged = vec![0, 7, 0x08, 0x00];
            tagged.extend(v4(6, &[], &transport(6, random), random));
            link(0x8100, &tagged)
        }
        Kind::Arp => link(0x0806, &[0; 46]),
    }
}

fn link(ethertype: u16, network: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(network);
    frame
}

fn v4(protocol: u8, options: &[u8], body: &[u8], random: &mut Random) -> Vec<u8> {
    let length = 20 + options.len();
    let mut packet = vec![0x40 | (length / 4) as u8, 0];
    packet.extend(((length + body.len()) as u16).to_be_bytes());
    packet.extend([0, 0, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend(random.u64().to_be_bytes());
    packet.extend(options);
    packet.extend(body);
    packet
}

fn v6(next: u8, body: &[u8], random: &mut Random) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((body.len() as u16).to_be_bytes());
    packet.extend([next, 64]);
    for _ in 0..4 {
        packet.extend(random.u64().to_be_bytes());
    }
    packet.extend(body);
    packet
}
