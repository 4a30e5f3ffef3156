//! The core in a program of one's own: packets in, packets out when the shaper says so.
//!
//! `cargo run -p simnel-core --example embed`

use simnel_core::qdisc::{build, parse, Device, Discard};
use simnel_core::{Packet, Span, Time};

fn main() {
    let config = parse("cake bandwidth 10mbit besteffort").expect("cake's words");
    let mut qdisc = build(&config, &Device::default()).expect("cake");
    // Whoever embeds the core owns clock and packets: here both are numbers.
    let mut now = Time::ZERO;
    for number in 0..50 {
        // The handle is the owner's; flow and hosts are hashes of its headers.
        let mut packet = Packet::new(number, 1514);
        packet.flow = number % 3;
        qdisc.enqueue(&packet, now, &mut Discard);
    }
    let mut sent = 0;
    while let Some(due) = qdisc.next_event() {
        now = now.max(due);
        while let Some(packet) = qdisc.dequeue(now, &mut Discard) {
            let waited = now.since(packet.enqueued).0 / 1_000_000;
            println!("packet {:2} of flow {} after {waited} ms", packet.handle, packet.flow);
            sent += 1;
        }
    }
    // The others were dropped: the queue had been standing for too long.
    assert!((40..=50).contains(&sent), "{sent}");
    // Each packet of 1514 bytes takes 1.2 ms at 10 Mbit/s.
    assert!(now.since(Time::ZERO) >= Span::from_micros(1_200 * (sent - 1)));
}
